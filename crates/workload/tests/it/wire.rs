//! What is special about workloads on NFS servers: clients, threads, counters, and servers that fail.

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_builtin::{DataParameters, MetadataParameters, WorkloadSpec};
use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_server::config::ExportConfig;
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::model::{Until, Workload};
use benchmaster_record::recording::{Recording, RpcPhase, RpcRecording, RpcSource, StopReason};
use benchmaster_workload::area::{AreaError, WorkArea};
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::execute::{Edge, ExecuteError};
use benchmaster_workload::program::Access;
use benchmaster_workload::target::Target;

use crate::bench::{Bench, below, check_sums, count, nfs_target, series, total, wire, workload};

const VERSIONS: [&str; 5] = ["2", "3", "4.0", "4.1", "4.2"];

fn bench(version: &str) -> Bench {
    Bench::nfs(&format!("version={version}"), ServerConfig::default())
}

fn rpc(recording: &Recording) -> &RpcRecording {
    recording.rpc.as_ref().unwrap()
}

fn phase(recording: &Recording, name: Phase) -> &RpcPhase {
    rpc(recording).phase(name).unwrap_or_else(|| panic!("{name}"))
}

/// Calls of a kind in a phase.
fn calls(recording: &Recording, name: Phase, operation: &str) -> u64 {
    phase(recording, name).row(operation).map_or(0, |row| row.ops)
}

fn reading(iterations: u64, depth: u32) -> Workload {
    workload(&format!(
        "until = {{ iterations = {iterations} }}
         filesets.data = {{ files = 2, size = '64KiB' }}
         [[groups]]
         name = 'g'
         queue_depth = {depth}
         setup = [{{ op = 'open', file = 'own' }}]
         flow = [{{ op = 'read', io_size = '4KiB', offset = 'random' }}]"
    ))
}

#[test]
fn every_call_is_counted_in_its_phase() {
    for version in VERSIONS {
        let mut bench = bench(version);
        let mut reads = reading(100, 1);
        let recording = bench.run(&reads);
        let recorded = rpc(&recording);
        assert_eq!(recorded.source, RpcSource::Client);
        assert_eq!(recorded.problems, [""; 0], "{version}");
        let names: Vec<Phase> = recorded.phases.iter().map(|phase| phase.phase).collect();
        assert_eq!(names, [Phase::SetUp, Phase::Measure, Phase::TearDown]);
        let measured = phase(&recording, Phase::Measure);
        assert_eq!(measured.rows.len(), 1, "{version}: {measured:?}");
        let row = &measured.rows[0];
        assert_eq!((row.operation.as_str(), row.ops, row.transmissions, row.errors), ("READ", 100, 100, 0));
        assert_eq!(row.program, format!("NFSv{}", &version[..1]));
        assert!(row.bytes_received > 100 * 4096 && row.bytes_sent > 100 * 40, "{row:?}");
        assert!(row.execute_ns >= row.rtt_ns && row.rtt_ns > 0, "{row:?}");
        // Both files were written whole, and opened.
        assert!(calls(&recording, Phase::SetUp, "WRITE") >= 2, "{:?}", phase(&recording, Phase::SetUp));
        let connections = phase(&recording, Phase::SetUp).events["connect"];
        assert_eq!(connections, 2, "{version}: one mount of the whole preparation, and the workload's");
        let facts = &recorded.connection;
        assert_eq!(
            (facts.version.map(NfsVersion::name), facts.clients, facts.threads),
            (Some(version), 1, Some(1))
        );
        assert!(
            facts.server.starts_with("nfs://127.0.0.1:") && facts.server.ends_with("/export"),
            "{facts:?}"
        );
        assert_eq!(facts.slots.is_some_and(|slots| slots > 0), version >= "4.1", "{facts:?}");
        let largest = if version == "2" { 8192 } else { 1 << 20 };
        assert_eq!((facts.rsize, facts.wsize, facts.nconnect), (largest, largest, 1));
        let (user, system) = recorded.client_cpu_ns;
        assert!(user + system <= recording.host.process_user_ns + recording.host.process_system_ns);
        assert_eq!(recording.workers[0].cpu_ns, Some((user, system)), "one worker on one thread");
        assert!(recording.host.free_before.is_some_and(|free| free > 0));

        reads.warm_up = "10ms".parse().unwrap();
        let recording = bench.run(&reads);
        let names: Vec<Phase> = rpc(&recording).phases.iter().map(|phase| phase.phase).collect();
        assert_eq!(names, [Phase::SetUp, Phase::WarmUp, Phase::Measure, Phase::TearDown]);
        assert_eq!(calls(&recording, Phase::WarmUp, "READ"), recording.phases[1].operations);
        assert_eq!(calls(&recording, Phase::Measure, "READ"), 100);
        assert_eq!(calls(&recording, Phase::SetUp, "WRITE"), 0, "the files were there");
    }
}

#[test]
fn a_directory_of_this_host_has_no_calls() {
    assert_eq!(Bench::new().run(&reading(10, 1)).rpc, None);
}

#[test]
fn many_operations_of_one_worker_are_outstanding() {
    for version in VERSIONS {
        let rules = vec!["READ delay=20ms".parse().unwrap()];
        let mut bench =
            Bench::nfs(&format!("version={version}"), ServerConfig { rules, ..ServerConfig::default() });
        let recording = bench.run(&reading(64, 32));
        assert_eq!((count(&recording, "read"), calls(&recording, Phase::Measure, "READ")), (64, 64));
        // One after the other they would have taken 64 delays.
        assert!(recording.length_ns < 64 * 20_000_000, "{version}: {}", recording.length_ns);
        let latency = series(&recording, "read").total.latency.decode().unwrap();
        assert!(latency.min() >= 19_800_000, "{}", latency.min());
    }
}

#[test]
fn a_built_in_workload_needs_no_io_uring_over_the_wire() {
    let file_size = "1MiB".parse().unwrap();
    let spec =
        WorkloadSpec::RandomRead(DataParameters { queue_depth: 8, file_size, ..DataParameters::default() });
    let mut reads = spec.expand_for("w", Access::Nfs).unwrap();
    assert!(spec.expand("w").is_err());
    reads.until = Until { iterations: Some(50), ..Until::default() };
    assert_eq!(count(&bench("4.1").run(&reads), "read"), 50);
}

#[test]
fn clients_have_connections_of_their_own_on_threads_of_their_own() {
    for version in ["3", "4.1"] {
        let mut bench = bench(version);
        bench.clients = 3;
        let Target::Nfs(mut target) = bench.area.target().clone() else { panic!("no server") };
        target.threads = Some(2);
        target.options.connections = 2;
        assert!(bench.area.reach_by(&Target::Nfs(target)));
        let recording = bench.run(&reading(40, 1));
        let facts = &rpc(&recording).connection;
        assert_eq!((facts.clients, facts.threads, facts.nconnect), (3, Some(2), 2));
        assert_eq!(calls(&recording, Phase::Measure, "READ"), 120);
        assert_eq!(recording.workers.len(), 3);
        assert!(recording.workers.iter().all(|worker| worker.series[0].count == 40));
        let shared = recording.workers.iter().filter(|worker| worker.cpu_ns.is_none()).count();
        assert_eq!(shared, 2, "two clients share a thread");
    }
}

#[test]
#[ignore = "full tier: waits for deadlines"]
fn ten_thousand_workers_fit_into_one_process() {
    let server = ServerConfig { null_data: true, ..ServerConfig::default() };
    for version in ["3", "4.1"] {
        let mut bench = Bench::nfs(&format!("version={version}"), server.clone());
        let recording = bench.run(&workload(
            "until = { iterations = 3 }
             filesets.data = { files = 1, size = '1MiB' }
             [[groups]]
             name = 'g'
             workers = 10000
             setup = [{ op = 'open', file = 'own' }]
             flow = [{ op = 'read', io_size = '4KiB', offset = 'random' }]",
        ));
        assert_eq!((count(&recording, "read"), recording.workers.len()), (30_000, 10_000));
        assert_eq!(total(&recording, "read").bytes, 30_000 * 4096);
        assert!(recording.workers.iter().all(|worker| worker.series[0].count == 3));
        assert_eq!(calls(&recording, Phase::Measure, "READ"), 30_000);
    }
}

#[test]
fn filesets_are_reused_when_the_same_export_is_reached_in_another_way() {
    let mut bench = bench("3");
    assert!(!bench.run(&reading(5, 1)).filesets[0].reused);
    for version in VERSIONS {
        bench.area.begin_run(false).unwrap();
        let target = nfs_target(bench.server.as_ref().unwrap(), &format!("version={version}&rsize=4KiB"));
        assert!(bench.area.reach_by(&target));
        let recording = bench.run(&reading(5, 1));
        assert!(recording.filesets[0].reused, "{version}");
        let facts = &rpc(&recording).connection;
        assert_eq!((facts.version.map(NfsVersion::name), facts.rsize), (Some(version), 4096));
    }
    let elsewhere = "nfs://127.0.0.1/other?version=3".parse().unwrap();
    let elsewhere = Target::Nfs(benchmaster_workload::target::NfsTarget::new(elsewhere));
    assert!(!bench.area.reach_by(&elsewhere));
    assert!(!bench.area.reach_by(&Target::from(std::path::Path::new("/tmp"))));
    assert_eq!(
        rpc(&bench.run(&reading(5, 1))).connection.version,
        Some(NfsVersion::V42),
        "nothing has changed"
    );
}

#[test]
fn the_clients_cache_is_what_cache_control_is_about() {
    let mut bench = bench("3");
    for (control, requested, done) in [
        (CacheControl::Keep, "keep", "nothing"),
        (CacheControl::Drop, "drop", "nothing to drop: the client keeps no cache"),
        (CacheControl::Fadvise, "fadvise", "nothing to drop: the client keeps no cache"),
    ] {
        bench.cache = control;
        let recording = bench.run(&reading(1, 1));
        assert_eq!((recording.cache.requested.as_str(), recording.cache.done.as_str()), (requested, done));
        assert_eq!(recording.filesets[0].cached_bytes, None, "this host's page cache is not used");
    }
    let mut cached = Bench::nfs("version=4.1&cache=linux", ServerConfig::default());
    cached.cache = CacheControl::Drop;
    for _ in 0..2 {
        let recording = cached.run(&reading(200, 1));
        assert_eq!(recording.cache.done, "the clients mounted again, with empty caches");
        // 16 pages can be read, again and again; every run begins without them.
        let read = calls(&recording, Phase::Measure, "READ");
        assert!((1..=16).contains(&read) && count(&recording, "read") == 200, "{read}");
    }
    bench.hook("case $BENCHMASTER_TARGET in nfs://127.0.0.1:*/export) ;; *) exit 1;; esac");
    bench.run(&reading(1, 1));
}

/// Executes a workload, and does something over another mount before its measured phase.
fn tampered(
    bench: &mut Bench,
    workload: &Workload,
    tamper: impl AsyncFn(&Mount),
) -> Result<Recording, ExecuteError> {
    let options = bench.options().clone();
    bench.watch(workload, |progress, _| {
        if progress.edge == Some(Edge::Begin) {
            wire(&options, &tamper);
        }
    })
}

fn verified(op: &str, iterations: u64) -> Workload {
    workload(&format!(
        "until = {{ iterations = {iterations} }}
         verify = true
         filesets.data = {{ files = 2, size = '64KiB' }}
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
         flow = [{{ op = '{op}', io_size = '16KiB' }}]"
    ))
}

const WRITE: OpenFlags = OpenFlags { truncate: false, ..OpenFlags::READ_WRITE };

#[test]
fn a_changed_byte_is_found_where_it_is() {
    for version in VERSIONS {
        for at in [0u64, 40_000, 65_535] {
            let mut bench = bench(version);
            let flip = async |mount: &Mount| {
                let file = mount.open(&below("data/c0/f00000001"), &WRITE).await.unwrap();
                let mut byte = [0];
                assert_eq!(mount.read(&file, &mut byte, at).await, Ok(1));
                mount.write(&file, &[!byte[0]], at).await.unwrap();
                mount.close(file).await.unwrap();
            };
            let recording = tampered(&mut bench, &verified("read", 4), flip).unwrap();
            let corruption = recording.corruption.unwrap();
            let expected = format!("data/c0/f00000001, offset {at}: wrong byte 0x");
            assert!(corruption.starts_with(&expected), "{version}: {corruption}");
        }
    }
}

#[test]
fn a_lost_write_is_found_by_its_generation() {
    for version in ["3", "4.1"] {
        let mut bench = bench(version);
        let writes = verified("write", 4);
        bench.run(&verified("read", 4));
        let old = bench.content("data/c0/f00000000");
        bench.run(&writes);
        let restore = async |mount: &Mount| {
            let file = mount.open(&below("data/c0/f00000000"), &WRITE).await.unwrap();
            mount.write(&file, &old, 0).await.unwrap();
            mount.close(file).await.unwrap();
        };
        let corruption = tampered(&mut bench, &verified("read", 4), restore).unwrap().corruption.unwrap();
        let expected = "data/c0/f00000000, offset 0: the block holds generation 0 where 1 was written last";
        assert_eq!(corruption, expected, "{version}");
    }
}

#[test]
fn a_lost_write_is_found_by_reading_back_too() {
    let mut bench = bench("3");
    let cut = async |mount: &Mount| mount.truncate(&below("data/c0/f00000001"), 50_000).await.unwrap();
    let mut writes = verified("write", 1);
    writes.groups[0].workers = 1;
    let corruption = tampered(&mut bench, &writes, cut).unwrap().corruption.unwrap();
    assert_eq!(
        corruption,
        "data/c0/f00000001, offset 50000: the file ends before, although this was written"
    );

    let gone = async |mount: &Mount| mount.remove(&below("data/c0/f00000001")).await.unwrap();
    bench.area.begin_run(true).unwrap();
    let error = tampered(&mut bench, &writes, gone).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read back `data/c0/f00000001`: No such file or directory (os error 2)"
    );
}

#[test]
fn a_server_that_stops_fails_operations_and_hangs_nobody() {
    for version in ["3", "4.1"] {
        let options = format!("version={version}&timeo=200ms&retrans=0");
        let mut bench = Bench::nfs(&options, ServerConfig::default());
        bench.max_errors = 2;
        let server = bench.server.take().unwrap();
        let stopped = AtomicBool::new(false);
        let began = Instant::now();
        let mut reads = reading(1, 4);
        reads.until = Until { duration: Some("10min".parse().unwrap()), ..Until::default() };
        let recording = bench.watch(&reads, |progress, _| {
            if progress.phase == Phase::Measure
                && progress.edge.is_none()
                && !stopped.swap(true, Ordering::Relaxed)
            {
                server.stop().unwrap();
            }
        });
        let recording = recording.unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "{version}: {:?}", began.elapsed());
        check_sums(&recording);
        assert_eq!(recording.workers[0].stop, StopReason::Errors);
        let read = series(&recording, "read");
        assert!(read.total.errors >= 2, "{version}: {:?}", read.errors);
        assert!(read.errors.contains_key("ETIMEDOUT"), "{version}: {:?}", read.errors);
        assert!(!recording.error_details.is_empty());
        // It cannot be unmounted any more, where that takes a call.
        if version == "4.1" {
            assert!(!rpc(&recording).problems.is_empty());
            let problem = &rpc(&recording).problems[0];
            assert!(problem.starts_with("unmounting failed: "), "{problem}");
            assert!(recording.error_details.contains(problem), "{:?}", recording.error_details);
        }
        let error = bench.try_run(&reading(2, 1)).unwrap_err().to_string();
        assert!(error.starts_with("NFS server 127.0.0.1:"), "{error}");
        assert!(error.contains("cannot be reached"), "{error}");
    }
}

#[test]
#[ignore = "full tier: waits for deadlines"]
fn a_run_is_stopped_although_the_server_does_not_answer() {
    let closing = workload(
        "until = { iterations = 1 }
         filesets.data = { files = 1, size = 0 }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]
         teardown = [{ op = 'readdir', file = 'own' }]",
    );
    for (phase, workload) in
        [(Phase::Measure, reading(1, 1)), (Phase::Verify, verified("write", 1)), (Phase::TearDown, closing)]
    {
        for version in ["3", "4.1"] {
            // Directories are read by nobody but the tear-down.
            let rules = ["READ delay=5min", "READDIR delay=5min"].map(|rule| rule.parse().unwrap()).to_vec();
            let mut bench =
                Bench::nfs(&format!("version={version}"), ServerConfig { rules, ..ServerConfig::default() });
            let began = Instant::now();
            let result = bench.watch(&workload, |progress, stop| {
                let late = progress.phase == phase && progress.elapsed > Duration::from_millis(50);
                if late || phase == Phase::TearDown && progress.edge == Some(Edge::End) {
                    stop.store(true, Ordering::Relaxed);
                }
            });
            assert!(matches!(result, Err(ExecuteError::Stopped)), "{phase} {version}: {result:?}");
            // Far below the client's own deadline of three minutes.
            assert!(began.elapsed() < Duration::from_secs(50), "{version}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn injected_errors_are_counted_by_name() {
    for version in VERSIONS {
        let rules = vec!["READ error=IO count=3".parse().unwrap()];
        let config = ServerConfig { rules, ..ServerConfig::default() };
        let mut bench = Bench::nfs(&format!("version={version}"), config);
        let recording = bench.try_run(&reading(10, 1)).unwrap();
        let read = series(&recording, "read");
        assert_eq!(
            (read.total.count, read.total.errors, read.errors.get("EIO")),
            (7, 3, Some(&3)),
            "{version}"
        );
        assert!(recording.error_details[0].starts_with("read data/c0/f00000000, offset "), "{recording:?}");
        assert_eq!(phase(&recording, Phase::Measure).row("READ").unwrap().errors, 3);
    }
}

#[test]
fn what_had_to_be_recovered_from_is_counted() {
    // NFS3ERR_JUKEBOX and NFS4ERR_DELAY have the same number.
    for (rule, event) in [("READ error=10008 count=2", "delay"), ("READ disconnect count=2", "reconnect")] {
        for version in ["3", "4.0", "4.1", "4.2"] {
            let config = ServerConfig { rules: vec![rule.parse().unwrap()], ..ServerConfig::default() };
            let mut bench = Bench::nfs(&format!("version={version}&delay_initial=1ms"), config);
            let recording = bench.try_run(&verified("read", 8)).unwrap();
            assert_eq!(recording.error_details, [""; 0], "{version} with {rule}");
            assert_eq!(recording.verified_bytes, Some(256 << 10), "{version}");
            let events = &phase(&recording, Phase::Measure).events;
            assert!(events.get(event).is_some_and(|times| (1..=2).contains(times)), "{version}: {events:?}");
            let retried = phase(&recording, Phase::Measure).row("READ").unwrap();
            assert!(retried.transmissions > 16, "{version}: {retried:?}");
        }
    }
}

#[test]
fn an_export_without_space_says_how_much_is_needed_and_free() {
    let export = ExportConfig { path: "/export".into(), limit: Some(1 << 20), ..ExportConfig::default() };
    let config = ServerConfig { exports: vec![export], ..ServerConfig::default() };
    for version in VERSIONS {
        let mut bench = Bench::nfs(&format!("version={version}"), config.clone());
        let text = "until = { iterations = 1 }
             filesets.data = { files = 3, size = '1MiB' }
             [[groups]]
             name = 'g'
             flow = [{ op = 'stat' }]";
        let error = bench.try_run(&workload(text)).unwrap_err();
        let ExecuteError::Area(AreaError::NoSpace { needed, free, path, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(*needed, 3 << 20);
        assert!(*free <= 1 << 20, "{free}");
        assert_eq!(*path, bench.area.target().place());
        assert_eq!(bench.names("."), [".benchmaster"], "nothing was begun");
    }
}

/// What [`WorkArea::create`] says, as text.
fn refused(target: &Target) -> String {
    WorkArea::create(target, "test").unwrap_err().to_string()
}

#[test]
fn what_a_killed_session_left_is_taken_over_and_nothing_else() {
    for version in VERSIONS {
        let bench = bench(version);
        let target = bench.area.target().clone();
        // Killed: its marker is there, and files.
        bench.wire(async |mount| {
            mount.create_dirs(&below("data/c0")).await.unwrap();
            let file = mount.open(&below("data/c0/f"), &OpenFlags::CREATE).await.unwrap();
            mount.close(file).await.unwrap();
        });
        let area = WorkArea::create(&target, "test").unwrap();
        assert_eq!(bench.names("."), [".benchmaster"], "only the marker is there");
        area.remove().unwrap();
        let left = bench.wire(async |mount| mount.stat(b"benchmaster-test").await);
        assert!(left.is_err_and(|error| error.is_absent()), "{version}");

        for (name, content, ours) in
            [("", "", true), (".benchmaster", "", true), (".benchmaster", "beef", false), ("file", "", false)]
        {
            bench.wire(async |mount| {
                mount.create_dirs(b"benchmaster-test").await.unwrap();
                if !name.is_empty() {
                    let file = mount.open(&below(name), &OpenFlags::CREATE).await.unwrap();
                    mount.write(&file, content.as_bytes(), 0).await.unwrap();
                    mount.close(file).await.unwrap();
                }
            });
            if ours {
                WorkArea::create(&target, "test").unwrap().remove().unwrap();
                continue;
            }
            let error = refused(&target);
            let expected =
                "/export/benchmaster-test` exists and was not made by this study; rename or remove it";
            assert!(error.starts_with("`nfs://127.0.0.1:") && error.ends_with(expected), "{error}");
            assert!(bench.names(".").contains(&name.to_owned()), "nothing of others is touched");
            bench.wire(async |mount| mount.remove_tree(b"benchmaster-test").await.unwrap());
        }
        bench.wire(async |mount| mount.symlink(b"elsewhere", b"benchmaster-test").await.unwrap());
        assert!(matches!(WorkArea::create(&target, "test"), Err(AreaError::Foreign { .. })), "{version}");
    }
}

#[test]
fn targets_that_cannot_be_used_say_why() {
    let export =
        |path: &str, read_only| ExportConfig { path: path.into(), read_only, ..ExportConfig::default() };
    let exports = vec![export("/export", false), export("/fixed", true)];
    let listen = ([127, 0, 0, 1], 0).into();
    let server =
        Server::start(ServerConfig { listen, exports, threads: 1, ..ServerConfig::default() }).unwrap();
    let target = |path: &str, version: &str| {
        let url = format!("nfs://{}{path}?version={version}&timeo=1s&retrans=0", server.address());
        Target::Nfs(benchmaster_workload::target::NfsTarget::new(url.parse().unwrap()))
    };
    for version in VERSIONS {
        let error = refused(&target("/missing", version));
        assert!(error.contains("/missing of NFS server 127.0.0.1:"), "{version}: {error}");
        let error = refused(&target("/fixed", version));
        assert!(error.starts_with("cannot make `nfs://127.0.0.1:"), "{version}: {error}");
        assert!(error.ends_with("/fixed/benchmaster-test`: Read-only file system (os error 30)"), "{error}");
    }
    server.stop().unwrap();
    let error = refused(&target("/export", "3"));
    assert!(error.contains("cannot be reached"), "{error}");
}

#[test]
fn metadata_are_measured_as_the_calls_they_are() {
    let mut bench = bench("4.1");
    let spec = WorkloadSpec::Metadata(MetadataParameters { workers: 4, ..MetadataParameters::default() });
    let mut metadata = spec.expand("w").unwrap();
    metadata.until = Until { iterations: Some(10), ..Until::default() };
    let recording = bench.run(&metadata);
    for (label, operation) in [("create", "OPEN"), ("rename", "RENAME"), ("unlink", "REMOVE")] {
        assert_eq!(count(&recording, label), calls(&recording, Phase::Measure, operation), "{label}");
    }
}

#[test]
fn the_same_seeds_make_the_same_files_on_a_server_and_in_a_directory() {
    let reads = verified("read", 1);
    let mut directory = Bench::new();
    directory.run(&reads);
    let mut server = bench("3");
    server.run(&reads);
    for name in ["data/c0/f00000000", "data/c0/f00000001"] {
        assert_eq!(directory.content(name), server.content(name));
    }
}

/// Every mount has a reactor with descriptors of its own; a long study must not run out of them.
#[test]
fn no_run_leaves_descriptors_behind() {
    // In a process of its own: tests beside it open descriptors as well.
    const ALONE: &str = "BENCHMASTER_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "wire::no_run_leaves_descriptors_behind", "--nocapture"]).env(ALONE, "1");
        let output = alone.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let mut bench = bench("4.1");
    let spec = WorkloadSpec::Metadata(MetadataParameters::default());
    let mut workload = spec.expand("w").unwrap();
    workload.until = Until { iterations: Some(1), ..Until::default() };
    let timers = || {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let of = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).unwrap_or_default();
        open.map(of).filter(|to| to.to_string_lossy().contains("timerfd")).count()
    };
    let before = timers();
    for _ in 0..50 {
        bench.run(&workload);
    }
    // The last run's may be closed a moment later.
    assert!(timers() < before + 10, "{} timers, {before} before", timers());
}
