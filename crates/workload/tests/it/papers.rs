//! The workloads of the papers and of Filebench do exactly what they say.

use benchmaster_builtin::{
    BonnieColumn, BonnieParameters, Conditions, DelegationGrantParameters, DelegationRecallParameters,
    FileCreationParameters, FileServerParameters, GrantCase, LockedReadParameters, MailServerParameters,
    OltpParameters, WebServerParameters, WorkloadSpec, WriteLatencyParameters,
};
use benchmaster_nfs_server::ServerConfig;
use benchmaster_record::model::{LockKind, Sharing, Until, Workload};
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{Recording, StopReason};
use benchmaster_units::{ByteSize, TimeSpan};
use benchmaster_workload::program::Access;

use crate::bench::{Bench, count, total, workload};

/// The workload of a specification, but with a number of repetitions instead of a duration.
pub(crate) fn times(spec: &WorkloadSpec, iterations: u64) -> Workload {
    let workload = spec.expand("w").unwrap();
    Workload { until: Until { iterations: Some(iterations), ..Until::default() }, ..workload }
}

fn counts<const N: usize>(recording: &Recording, labels: [&str; N]) -> [u64; N] {
    labels.map(|label| count(recording, label))
}

/// Bytes that were proved to be what was written.
fn proved(recording: &Recording) -> u64 {
    recording.verified_bytes.unwrap()
}

#[test]
pub(crate) fn files_that_grow_are_read_to_their_end() {
    let mut bench = Bench::new();
    let growing = workload(
        "until = { iterations = 10 }
         verify = true
         filesets.data = { files = 12, size = 10000, prefill = 0.5 }
         [[groups]]
         name = 'g'
         flow = [
             { op = 'open', file = 'next', flags = ['write', 'append'], handle = 'end' },
             { op = 'write', io_size = 700, label = 'more', handle = 'end' },
             { op = 'close', handle = 'end' },
             { op = 'open', file = 'same' },
             { repeat = 'end-of-file', flow = [{ op = 'read', io_size = 4096 }] },
             { op = 'close' },
             { op = 'create', file = 'new', flags = ['write', 'append'], label = 'mail', handle = 'end' },
             { op = 'write', io_size = 5000, label = 'text', handle = 'end' },
             { op = 'close', handle = 'end' },
             { op = 'open', file = 'same', label = 'again' },
             { repeat = 'end-of-file', flow = [{ op = 'read', io_size = 4096, label = 'mail-read' }] },
             { op = 'close' },
             { op = 'unlink', file = 'same' },
         ]",
    );
    let recording = bench.run(&growing);
    // Each of the first six files is appended to, and then, as the others are not there, the first one four times more.
    let lengths = [10_700, 10_700, 10_700, 10_700, 10_700, 10_700, 11_400, 12_100, 12_800, 13_500];
    assert_eq!(total(&recording, "read").bytes, lengths.iter().sum::<u64>());
    assert_eq!(count(&recording, "read"), lengths.iter().map(|length| length.div_ceil(4096)).sum::<u64>());
    assert_eq!(
        (count(&recording, "mail-read"), total(&recording, "mail-read").bytes),
        (20, 50_000),
        "what was only appended to is as long as what was appended"
    );
    // Of files of 10,000 bytes all is proved whenever it is read, and once more at the end.
    assert_eq!(proved(&recording), 10 * 10_000 + 6 * 10_000);
}

#[test]
pub(crate) fn locked_reads_lock_read_and_unlock_each_file_so_often() {
    for (reopen, lock, opens) in [(false, LockKind::Read, 12), (true, LockKind::Write, 60)] {
        let mut bench = Bench::new();
        bench.clients = 2;
        let parameters = LockedReadParameters {
            files: 6,
            repeats: 5,
            reopen,
            lock,
            workers: 3,
            verify: true.into(),
            ..LockedReadParameters::default()
        };
        let (recording, trace) = bench.trace(&WorkloadSpec::LockedRead(parameters).expand("w").unwrap());
        assert_eq!(
            counts(&recording, ["open", "lock", "read", "unlock", "close"]),
            [opens, 60, 60, 60, opens],
            "reopen = {reopen}"
        );
        assert_eq!((total(&recording, "read").bytes, trace.len() as u64), (60 * 4096, 180 + 2 * opens));
        assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Work));
    }
}

#[test]
pub(crate) fn the_file_server_does_its_eleven_flow_operations() {
    let mut bench = Bench::new();
    bench.clients = 2;
    let parameters = FileServerParameters {
        files: 60,
        mean_file_size: ByteSize::kib(16),
        workers: 4,
        io_size: ByteSize::kib(512),
        verify: true.into(),
        ..FileServerParameters::default()
    };
    let recording = bench.run(&times(&WorkloadSpec::FileServer(parameters), 25));
    let labels = [
        "create",
        "close-written",
        "open-to-append",
        "append",
        "close-appended",
        "open-to-read",
        "close-read",
        "delete",
        "stat",
    ];
    assert_eq!(counts(&recording, labels), [200; 9]);
    // No file is longer than one write and one read; one that another worker has just created has nothing to read.
    let [writes, reads] = counts(&recording, ["write", "read"]);
    assert!(writes == 200 && (100..=200).contains(&reads), "{writes} {reads}");
    let appended = total(&recording, "append").bytes;
    assert!(appended > 0 && appended <= 200 * (16 << 10), "{appended}");
    assert_eq!((recording.filesets[0].files, recording.filesets[0].name.as_str()), (2 * 48, "w"));
    for client in ["c0", "c1"] {
        let directories = bench.names(&format!("w/{client}"));
        let files: usize =
            directories.iter().map(|directory| bench.names(&format!("w/{client}/{directory}")).len()).sum();
        assert_eq!((directories.len(), files), (3, 48), "as many files were made as removed");
    }
    assert!(proved(&recording) > 0);
}

#[test]
pub(crate) fn the_web_server_reads_ten_files_for_each_line_of_its_log() {
    let mut bench = Bench::new();
    let parameters = WebServerParameters {
        files: 40,
        workers: 5,
        verify: true.into(),
        append_size: ByteSize::kib(1),
        ..WebServerParameters::default()
    };
    let recording = bench.run(&times(&WorkloadSpec::WebServer(parameters), 6));
    assert_eq!(counts(&recording, ["open", "read", "close", "append"]), [300, 300, 300, 30]);
    assert_eq!(bench.names("w-log/c0"), ["f00000000"], "one log");
    assert_eq!(bench.size("w-log/c0/f00000000"), 16_384 + total(&recording, "append").bytes);
    assert!(proved(&recording) >= total(&recording, "read").bytes);
}

#[test]
pub(crate) fn the_mail_server_reads_what_was_appended() {
    let mut bench = Bench::new();
    let parameters = MailServerParameters {
        files: 40,
        workers: 4,
        append_size: ByteSize::kib(8),
        verify: true.into(),
        ..MailServerParameters::default()
    };
    let recording = bench.run(&times(&WorkloadSpec::MailServer(parameters), 50));
    let labels = [
        "delete",
        "create",
        "append-new",
        "fsync-new",
        "close-new",
        "open-to-append",
        "append",
        "fsync",
        "close-appended",
        "open",
        "close",
    ];
    assert_eq!(counts(&recording, labels), [200; 11]);
    // Mails are shorter than a read; one that another worker has just created has nothing to read.
    for reads in counts(&recording, ["read-to-append", "read"]) {
        assert!((100..=200).contains(&reads), "{reads}");
    }
    assert_eq!(bench.names("w/c0").len(), 32, "as many mails came as went");
    let left: u64 = bench.names("w/c0").iter().map(|name| bench.size(&format!("w/c0/{name}"))).sum();
    assert!(left > 0);
}

#[test]
pub(crate) fn bonnie_has_its_six_columns() {
    let mut bench = Bench::new();
    let column = |column| {
        let parameters = BonnieParameters {
            column,
            file_size: ByteSize(100_000),
            fileset: Some("bonnie".into()),
            prefill: false,
            seeks: 300,
            verify: true.into(),
            ..BonnieParameters::default()
        };
        WorkloadSpec::Bonnie(parameters).expand("w").unwrap()
    };
    let moved = |recording: &Recording, label| (count(recording, label), total(recording, label).bytes);
    for (written, read, calls) in [
        (BonnieColumn::CharWrite, BonnieColumn::CharRead, 25),
        (BonnieColumn::BlockWrite, BonnieColumn::BlockRead, 13),
    ] {
        let recording = bench.run(&column(written));
        assert_eq!((moved(&recording, "write"), count(&recording, "close")), ((calls, 100_000), 1));
        let recording = bench.run(&column(read));
        assert_eq!((moved(&recording, "read"), count(&recording, "close")), ((calls, 100_000), 1));
        assert_eq!(proved(&recording), 100_000);
    }
    let (recording, trace) = bench.trace(&column(BonnieColumn::Rewrite));
    assert_eq!((moved(&recording, "read"), moved(&recording, "write")), ((13, 100_000), (13, 100_000)));
    let offsets: Vec<u64> = trace.iter().map(|record| record.offset).take(6).collect();
    assert_eq!(offsets, [0, 0, 8192, 8192, 16384, 16384], "each block is written where it was read");

    let recording = bench.run(&column(BonnieColumn::Seeks));
    assert_eq!((count(&recording, "seek"), recording.workers.len()), (300, 3));
    // Binomial with mean 30 and standard deviation 5.2.
    assert!((5..60).contains(&count(&recording, "update")), "{}", count(&recording, "update"));
    assert_eq!(bench.size("bonnie/c0/f00000000"), 100_000);
}

#[test]
pub(crate) fn what_is_created_can_be_proved() {
    let mut bench = Bench::new();
    bench.clients = 2;
    let created = FileCreationParameters {
        files: 20,
        file_size: ByteSize::kib(10),
        io_size: ByteSize::kib(4),
        sharing: Sharing::Private,
        workers: 3,
        verify: true.into(),
        ..FileCreationParameters::default()
    };
    let recording = bench.run(&WorkloadSpec::FileCreation(created).expand("w").unwrap());
    assert_eq!((count(&recording, "create"), proved(&recording)), (40, 40 * 10_240));
    let latency = WriteLatencyParameters {
        file_size: ByteSize(50_000),
        verify: true.into(),
        ..WriteLatencyParameters::default()
    };
    let recording = bench.run(&WorkloadSpec::WriteLatency(latency).expand("v").unwrap());
    assert_eq!((count(&recording, "write"), proved(&recording)), (14, 100_000));
}

#[test]
pub(crate) fn a_duration_ends_filebenchs_workloads() {
    let duration = TimeSpan::millis(40);
    for spec in [
        WorkloadSpec::FileServer(FileServerParameters {
            files: 100,
            mean_file_size: ByteSize::kib(4),
            workers: 4,
            duration,
            ..FileServerParameters::default()
        }),
        WorkloadSpec::WebServer(WebServerParameters {
            files: 20,
            workers: 4,
            duration,
            ..WebServerParameters::default()
        }),
        WorkloadSpec::MailServer(MailServerParameters {
            files: 50,
            workers: 4,
            duration,
            ..MailServerParameters::default()
        }),
    ] {
        let recording = Bench::new().run(&spec.expand("w").unwrap());
        assert!(recording.timed);
        assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Time), "{spec:?}");
    }
}

fn for_clients(spec: &WorkloadSpec, clients: u32) -> Workload {
    spec.expand_under("w", Conditions { access: Access::System, clients }).unwrap()
}

#[test]
pub(crate) fn files_are_recalled_after_all_holders_have_them_and_before_they_let_go() {
    for rounds in [1, 3] {
        let mut bench = Bench::new();
        bench.clients = 4;
        let parameters = DelegationRecallParameters {
            holders: 2,
            files: 5,
            rounds,
            ..DelegationRecallParameters::default()
        };
        let spec = WorkloadSpec::DelegationRecall(parameters);
        let (recording, trace) = bench.trace(&for_clients(&spec, 4));
        // Two of the clients open all files in each round.
        assert_eq!(counts(&recording, ["recall", "close"]), [2 * 5 * rounds; 2]);
        assert_eq!(recording.workers.len(), 2 * 5 + 2);
        if rounds == 1 {
            assert_eq!(trace.len(), 20, "what is held is opened in the set-up");
        } else {
            // Those who hold let go and open again after each round.
            assert_eq!(counts(&recording, ["release", "hold"]), [2 * 5 * rounds; 2]);
        }
        assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Work));
    }
}

#[test]
pub(crate) fn a_grant_is_probed_by_opening_again() {
    for (case, clients, stats) in [
        (GrantCase::ReadOnly, 2, 0),
        (GrantCase::ForWriting, 1, 0),
        (GrantCase::HeldForWriting, 2, 0),
        (GrantCase::StatFirst, 1, 6),
    ] {
        let mut bench = Bench::new();
        bench.clients = clients;
        let parameters =
            DelegationGrantParameters { case, files: 6, opens: 4, ..DelegationGrantParameters::default() };
        let recording = bench.run(&for_clients(&WorkloadSpec::DelegationGrant(parameters), clients));
        let probes = if case == GrantCase::ReadOnly { 2 } else { 1 };
        assert_eq!(
            counts(&recording, ["open", "open-again", "close"]),
            [6 * probes, 18 * probes, 24 * probes],
            "{case:?}"
        );
        assert_eq!(recording.series.iter().filter(|series| series.key.label == "stat").count(), stats.min(1));
        assert!(stats == 0 || count(&recording, "stat") == stats as u64);
    }
}

/// A probe of our client with the cache of Linux: with a delegation each file costs one OPEN.
#[test]
fn delegations_are_granted_by_the_three_rules() {
    for (case, granted) in [
        (GrantCase::ReadOnly, true),
        (GrantCase::ForWriting, false),
        (GrantCase::HeldForWriting, false),
        (GrantCase::StatFirst, true),
    ] {
        let clients = if case == GrantCase::HeldForWriting { 2 } else { 1 };
        let mut bench = Bench::nfs("version=4.1&cache=linux", ServerConfig::default());
        bench.clients = clients;
        let parameters =
            DelegationGrantParameters { case, files: 6, opens: 4, ..DelegationGrantParameters::default() };
        let recording = bench.run(&for_clients(&WorkloadSpec::DelegationGrant(parameters), clients));
        let measured = recording.rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
        let opens = measured.row("OPEN").map_or(0, |row| row.ops);
        let grants = measured.events.get("delegation-granted").copied().unwrap_or_default();
        assert_eq!((opens, grants), if granted { (6, 6) } else { (24, 0) }, "{case:?}");
    }
}

#[test]
pub(crate) fn the_database_writes_after_so_many_reads() {
    let mut bench = Bench::new();
    let parameters = OltpParameters {
        files: 2,
        file_size: ByteSize::kib(64),
        log_size: ByteSize::mib(1),
        readers: 4,
        writers: 2,
        think_time: TimeSpan::default(),
        writes: 5,
        reads_per_data_write: 40,
        data_ahead: 10,
        reads_per_log_write: 20,
        log_ahead: 10,
        verify: true.into(),
        ..OltpParameters::default()
    };
    let mut workload = WorkloadSpec::Oltp(parameters).expand("w").unwrap();
    workload.until = Until { iterations: Some(100), ..Until::default() };
    let recording = bench.run(&workload);
    let [reads, log, data] = counts(&recording, ["read", "log-write", "data-write"]);
    // The log is written before the first 20 reads, and after each 20; each writer of data, 5 blocks, after each 40. What
    // readers do last nobody may wait for any more.
    assert_eq!((reads, total(&recording, "read").bytes), (400, 400 * 2048));
    assert!((20..=21).contains(&log), "{log}");
    assert!((95..=110).contains(&data), "{data}");
    assert_eq!(total(&recording, "log-write").bytes, log * (256 << 10));
    assert_eq!((bench.size("w-log/c0/f00000000"), bench.size("w/c0/f00000001")), (1 << 20, 65_536));
}
