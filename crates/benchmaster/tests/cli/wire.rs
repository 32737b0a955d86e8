//! Studies of exports: the embedded server, one that `serve` runs, and what is wrong with either.

use benchmaster_record::phase::Phase;
use benchmaster_record::results::ServedBy;
use benchmaster_record::results::StudyResults;
use rustix::process::Signal;

use crate::place::{Place, Running, finish, snapshot, stderr, stdout, transcript};
use crate::serve::serve;

/// Runs of 30 ms each on the embedded server: two versions, with and without a delay.
const WIRE: &str = r#"[study]
name = "wire"
seed = 1

[target]
url = "nfs://{server}/export"

[network]
means = "relay"

[run]
interval = "30ms"

[factors.version]
parameter = "target.version"
levels = ["3", "4.1"]

[factors.delay]
parameter = "network.delay"
levels = ["0ms", "1ms"]

[design]
replicates = 3

[workload.read]
use = "random-read"
file_size = "64KiB"
io_size = "4KiB"
workers = 2
duration = "60ms"

[workload.create]
use = "file-creation"
files = 20
file_size = "4KiB"
"#;

/// The RPCs of a kind in a phase of a workload, over all runs.
fn calls(results: &StudyResults, workload: &str, phase: Phase, operation: &str) -> u64 {
    let recordings = results.runs.iter().flat_map(|run| &run.recordings).filter(|r| r.workload == workload);
    let rows = recordings.filter_map(|r| r.rpc.as_ref()?.phase(phase)?.row(operation));
    rows.map(|row| row.ops).sum()
}

#[test]
#[ignore = "full tier: minutes of measuring"]
fn the_embedded_server_is_measured_with_and_without_a_delay() {
    let place = Place::in_memory();
    place.write("wire.toml", WIRE);
    let output = place.run(&["run", "wire.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    // Of some of it the summary tells no more than the name.
    let text = transcript(&output) + &transcript(&place.run(&["analyze", "results/wire"]));
    for part in [
        "measuring nfs://{server}/export, on nfs (the embedded server)",
        "network emulated with a one-way delay of 1 ms by a TCP relay",
        "12 of 12 runs finished",
        "read: RPCs per client in the measured phase",
        "v3 READ",
        "v4 OPEN",
        "shared-host",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(place.path("results/wire/report.html").exists());
    place.assert_nothing_left();

    let results = place.results("results/wire");
    for run in &results.runs {
        let service = run.service.as_ref().unwrap();
        let delayed = results.study.treatments[run.key.treatment as usize].label.contains("delay=1ms");
        let (network, delay) = if delayed { ("tcp-relay", 1_000_000) } else { ("none", 0) };
        assert_eq!((service.network.emulator.name(), service.network.delay_ns), (network, delay));
        assert_eq!(service.server, ServedBy::Embedded);
        for recording in &run.recordings {
            let rpc = recording.rpc.as_ref().unwrap();
            assert!(rpc.problems.is_empty(), "{:?}", rpc.problems);
            let measured = rpc.phase(Phase::Measure).unwrap();
            if recording.workload == "read" {
                let row = measured.row("READ").unwrap();
                let operations: u64 = recording.series.iter().map(|s| s.total.count).sum();
                assert_eq!(row.ops, operations, "one READ for each operation");
                // A round trip takes at least twice the delay.
                assert!(row.rtt_ns >= row.ops * 2 * delay, "{row:?}");
                // The server counted the same.
                let used = run.server_use.iter().find(|used| used.workload == "read").unwrap();
                let server = used.operations.iter().find(|o| o.operation == "READ").unwrap();
                assert_eq!(server.ops, row.ops);
                assert!(used.cpu_ns.is_none_or(|ns| ns > 0));
            }
        }
        let names: Vec<_> = run.responses.iter().map(|r| r.name.as_str()).collect();
        for name in ["read.rpcs", "read.rpcs_per_operation", "read.cpu_per_operation", "read.rpc_rtt"] {
            assert!(names.contains(&name), "no {name} in {names:?}");
        }
    }
    assert_eq!(calls(&results, "read", Phase::Measure, "OPEN"), 0, "files are opened before");
    assert!(calls(&results, "read", Phase::SetUp, "OPEN") > 0);
    assert!(calls(&results, "create", Phase::Measure, "CREATE") > 0);
}

#[test]
#[ignore = "full tier: minutes of measuring"]
fn a_server_that_serve_runs_is_measured_by_its_url() {
    let place = Place::in_memory();
    let (server, address) = serve(&place, &[]);
    let study = WIRE
        .replace("{server}", &address.to_string())
        .replace("levels = [\"0ms\", \"1ms\"]", "levels = [\"0ms\", \"2ms\"]");
    place.write("wire.toml", &study.replace("replicates = 3", "replicates = 1"));
    let output = place.run(&["run", "wire.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results/wire");
    assert!(results.runs.iter().all(|run| run.service.as_ref().unwrap().server == ServedBy::External));
    assert!(results.runs.iter().all(|run| run.server_use.is_empty()));
    let quick =
        place.run(&["quick", &format!("nfs://{address}/export?version=3"), "--duration", "20ms", "-q"]);
    assert_eq!(quick.status.code(), Some(0), "{}", transcript(&quick));
    let names = place.list("results");
    let quick = names.iter().find(|name| name.starts_with("quick-127-0-0-1-")).expect("its results");
    assert_eq!(place.results(&format!("results/{quick}")).runs.len(), 5);
    drop(server);
}

#[test]
#[ignore = "full tier: minutes of measuring"]
fn quick_measures_each_time_and_the_embedded_server_without_a_target() {
    let place = Place::in_memory();
    let output = place.run(&["quick", "--duration", "20ms", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    // Another target is measured in a directory of its own, and the same one again.
    let output = place.run(&["quick", "target", "--duration", "20ms", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let output = place.run(&["quick", "target", "--duration", "20ms", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let names = place.list("results");
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|name| place.results(&format!("results/{name}")).runs.len() == 5));
    let embedded = names.iter().find(|name| name.starts_with("quick-embedded-export-")).expect("its results");
    let results = place.results(&format!("results/{embedded}"));
    assert!(results.runs.iter().all(|run| run.service.as_ref().unwrap().server == ServedBy::Embedded));
    let printed = place.run(&["quick", "--print", "--duration", "1s"]);
    snapshot("quick_print_embedded", &place, &transcript(&printed));
}

#[test]
#[ignore = "full tier: minutes"]
fn quick_measures_two_targets_in_turns_and_compares_them() {
    let place = Place::in_memory();
    let output = place.run(&["quick", "--against", "3", "--duration", "20ms", "-q", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let responses = found["responses"].as_array().unwrap();
    assert_eq!(responses.len(), 8, "{found:#}");
    assert!(responses.iter().all(|response| response["cells"][0]["ratio"]["ratio"].as_f64().unwrap() > 0.0));
    let names = place.list("results");
    let results = place.results(&format!("results/{}", names[0]));
    let urls = |treatment: u32| {
        let runs = results.runs.iter().filter(move |run| run.key.treatment == treatment);
        runs.map(|run| run.service.as_ref().unwrap().url.clone()).collect::<Vec<_>>()
    };
    assert!(urls(0).len() == 5 && urls(0).iter().all(|url| url.ends_with("version=4.1")), "{:?}", urls(0));
    assert!(urls(1).len() == 5 && urls(1).iter().all(|url| url.ends_with("version=3")), "{:?}", urls(1));
    // Two directories, and a verdict that fails.
    std::fs::create_dir(place.path("other")).unwrap();
    let arguments = ["quick", "target", "--against", "other", "--duration", "20ms", "--fail-on", "undecided"];
    let output = place.run(&arguments);
    assert!(stdout(&output).contains("\nResponses\n"), "{}", transcript(&output));
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{}", transcript(&output));
}

#[test]
fn a_version_needs_an_export_by_its_url() {
    let place = Place::new();
    let output = place.run(&["quick", "target", "--against", "4.1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--against 4.1 needs an export by URL"), "{}", stderr(&output));
    let printed =
        stdout(&place.run(&["quick", "nfs://filer/vol1?vers=4.2&nconnect=2", "--against", "3", "--print"]));
    assert!(
        printed.contains("B = { \"target.url\" = \"nfs://filer/vol1?nconnect=2&version=3\" }"),
        "{printed}"
    );
}

/// A firewall, or another service on the port.
#[test]
fn a_server_that_says_nothing_is_told_at_once() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut running = Running::start(place.command(&["quick", &format!("nfs://{address}/export")]));
    running.wait_for(&format!("connecting to {address}"));
    let (status, _, told) = running.end();
    assert_eq!(status.code(), Some(2), "{told}");
    assert!(told.contains("it accepts the connection, but sends nothing for 4 s"), "{told}");
    drop(listener);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let web = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 100]);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let output = place.run(&["quick", &format!("nfs://{address}/export")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("check that it is an NFS server"), "{}", stderr(&output));
    web.join().unwrap();
    assert_eq!(place.list("."), ["target", "tmp"]);
}

#[test]
fn what_is_wrong_with_an_export_is_said_before_anything_is_made() {
    let place = Place::new();
    // Nobody listens on a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (server, address) = serve(&place, &[]);
    let port = address.port();
    for (name, url) in [
        ("wire_no_server", format!("nfs://127.0.0.1:{free}/export?version=4.1")),
        ("wire_no_server_v3", format!("nfs://127.0.0.1:{free}/export?version=3")),
        ("wire_no_export", format!("nfs://{address}/nothing?version=4.1")),
        ("wire_no_export_v3", format!("nfs://{address}/nothing?version=3")),
        ("wire_no_host", "nfs://no-such-host.invalid/export".to_owned()),
        ("wire_bad_option", "nfs://127.0.0.1/export?rsise=4KiB".to_owned()),
        ("wire_bad_value", "nfs://127.0.0.1/export?version=5".to_owned()),
        ("wire_bad_url", "nfs:///export".to_owned()),
    ] {
        let output = place.run(&["quick", &url]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", transcript(&output));
        let text = transcript(&output)
            .replace(&format!(":{free}"), ":[FREE]")
            .replace(&format!(":{port}"), ":[PORT]");
        // What a resolver says differs from one system to the next.
        let text = match text.split_once("no-such-host.invalid` (") {
            Some((before, rest)) => {
                format!("{before}no-such-host.invalid` ([WHY]{}", &rest[rest.find(");").unwrap_or(0)..])
            }
            None => text,
        };
        snapshot(name, &place, &text);
        assert_eq!(place.list("."), ["target", "tmp"], "{name}: nothing is made");
    }
    drop(server);
}

#[test]
fn a_study_of_an_export_goes_on_after_kill_9() {
    let place = Place::in_memory();
    let (server, address) = serve(&place, &[]);
    let study =
        WIRE.replace("{server}", &address.to_string()).replace("[\"0ms\", \"1ms\"]", "[\"0ms\", \"2ms\"]");
    place.write("wire.toml", &study);
    let mut run = Running::start(place.command(&["run", "wire.toml"]));
    run.wait_for("[3/12]");
    run.signal(Signal::KILL);
    run.end();
    let before = place.results("results/wire");
    assert!((3..12).contains(&before.runs.len()), "{} runs", before.runs.len());
    let output = finish(place.command(&["run", "wire.toml"]));
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(stderr(&output).contains("interrupted once"), "{}", stderr(&output));
    let after = place.results("results/wire");
    assert_eq!((after.runs.len(), after.interruptions()), (12, 1));
    assert_eq!(after.runs[..before.runs.len()], before.runs);

    drop(server);
}

/// A study of the repository with some text replaced, run once for each treatment; per treatment its runs' first recording.
fn paper(place: &Place, name: &str, replace: &[(&str, &str)]) -> StudyResults {
    let mut text =
        std::fs::read_to_string(crate::built_in::repository(&format!("studies/{name}.toml"))).unwrap();
    for (old, new) in replace.iter().chain(&[("replicates = 5", "replicates = 1")]) {
        assert!(text.contains(old), "`{old}` is not in {name}");
        text = text.replace(old, new);
    }
    place.write("paper.toml", &text);
    let output = place.run(&["run", "-q", "paper.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    place.results(&format!("results/{name}"))
}

/// The RPCs of the measured phase of the runs of a treatment.
fn measured(results: &StudyResults, treatment: u32, operation: &str) -> u64 {
    let runs = results.runs.iter().filter(|run| run.key.treatment == treatment);
    let rows = runs
        .flat_map(|run| &run.recordings)
        .filter_map(|r| r.rpc.as_ref()?.phase(Phase::Measure)?.row(operation));
    rows.map(|row| row.ops).sum()
}

#[test]
fn locked_reads_cost_the_calls_of_the_paper() {
    let place = Place::in_memory();
    let (files, clients) = (20, 2);
    let results =
        paper(&place, "paper000-locked-read", &[("files = 1000", "files = 20"), ("count = 5", "count = 2")]);
    let n = files * clients;
    // v4.1 without and with delegations, as printed for 1,000 files and one client.
    for (operation, without, with) in [
        ("OPEN", n, n),
        ("READ", 10 * n, n),
        ("CLOSE", n, n),
        ("GETATTR", 10 * n, 0),
        ("LOCK", 10 * n, 0),
        ("LOCKU", 10 * n, 0),
        ("FREE_STATEID", 10 * n, 0),
    ] {
        assert_eq!(
            (measured(&results, 1, operation), measured(&results, 2, operation)),
            (without, with),
            "{operation}"
        );
    }
    assert_eq!((measured(&results, 0, "READ"), measured(&results, 0, "UNLOCK")), (10 * n, 10 * n), "NFSv3");
}

#[test]
fn a_recall_costs_the_calls_of_the_paper() {
    let place = Place::in_memory();
    let n = 5;
    let results = paper(
        &place,
        "paper000-delegation-recall",
        &[
            ("files = 1000", "files = 5"),
            ("3 = { \"workload.recall.holders\" = 3, \"clients.count\" = 4 }\n", ""),
            ("4 = { \"workload.recall.holders\" = 4, \"clients.count\" = 5 }\n", ""),
        ],
    );
    for holders in [1, 2u64] {
        // Without delegations; the holders' own opens are in the set-up.
        let without = 2 * (holders as u32 - 1);
        let with = without + 1;
        assert_eq!(measured(&results, without, "OPEN"), n);
        assert_eq!(
            measured(&results, without, "DELEGRETURN") + measured(&results, without, "OPEN_NOATTR"),
            0
        );
        // With them every open is made again, more than once where a holder is slow.
        let run = results.runs.iter().find(|run| run.key.treatment == with).unwrap();
        let measure = run.recordings[0].rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
        let delays = measure.events["delay"];
        assert!(delays >= n, "{delays}");
        assert_eq!(measured(&results, with, "OPEN"), n + delays);
        let returned = (measured(&results, with, "DELEGRETURN"), measured(&results, with, "OPEN_NOATTR"));
        assert_eq!(returned, (n * holders, n * holders));
        assert!(run.recordings[0].length_ns >= n * 100_000_000, "each waits for 0.1 s");
        let recalled =
            run.responses.iter().find(|found| found.name == "recall.delegations_recalled").unwrap();
        assert_eq!(recalled.value, (n * holders) as f64);
    }
}
