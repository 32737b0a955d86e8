//! Every built-in workload runs, and does exactly what it says.

use std::collections::BTreeSet;

use benchmaster_builtin::{
    BUILT_IN, DataParameters, FileCreationParameters, MetadataParameters, SmallFileReadParameters, SyncMode,
    WorkloadSpec, WriteLatencyParameters,
};
use benchmaster_record::model::{Sharing, Until, Workload};
use benchmaster_record::recording::StopReason;
use benchmaster_units::{ByteSize, TimeSpan};

use crate::bench::{Bench, count, total};

fn data() -> DataParameters {
    DataParameters {
        io_size: ByteSize::kib(4),
        file_size: ByteSize::kib(64),
        workers: 2,
        duration: TimeSpan::millis(30),
        ..DataParameters::default()
    }
}

/// The workload of a specification, but with a number of repetitions instead of a duration.
fn times(spec: &WorkloadSpec, iterations: u64) -> Workload {
    let workload = spec.expand("w").unwrap();
    Workload { until: Until { iterations: Some(iterations), ..Until::default() }, ..workload }
}

#[test]
pub(crate) fn reads_and_writes_do_as_many_operations_of_the_size_asked_for() {
    for (spec, label) in [
        (WorkloadSpec::SequentialRead(data()), "read"),
        (WorkloadSpec::RandomRead(data()), "read"),
        (WorkloadSpec::SequentialWrite(data()), "write"),
        (WorkloadSpec::RandomWrite(data()), "write"),
    ] {
        let mut bench = Bench::new();
        bench.clients = 2;
        let recording = bench.run(&times(&spec, 40));
        assert_eq!((count(&recording, label), total(&recording, label).bytes), (160, 160 * 4096));
        assert_eq!(recording.series.len(), 1, "set-up and tear-down are not measured");
        assert_eq!(recording.workers.len(), 4);
        assert_eq!((recording.filesets[0].files, recording.filesets[0].bytes), (4, 4 * 65_536));
        assert_eq!(bench.names("w"), ["c0", "c1"]);
        assert_eq!(bench.size("w/c1/f00000001"), 65_536);
    }
}

#[test]
pub(crate) fn a_duration_ends_them() {
    for spec in [WorkloadSpec::RandomRead(data()), WorkloadSpec::SequentialWrite(data())] {
        let mut bench = Bench::new();
        let recording = bench.run(&spec.expand("w").unwrap());
        assert!(recording.timed && recording.length_ns >= 30_000_000, "{}", recording.length_ns);
        assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Time));
        assert!(recording.workers.iter().all(|worker| worker.end_ns >= 30_000_000));
    }
}

#[test]
pub(crate) fn sequential_reads_go_from_start_to_end_and_over_again() {
    let mut bench = Bench::new();
    let spec = WorkloadSpec::SequentialRead(DataParameters { workers: 1, ..data() });
    let (_, trace) = bench.trace(&times(&spec, 40));
    let expected: Vec<u64> = (0..40).map(|n| n % 16 * 4096).collect();
    assert_eq!(trace.iter().map(|record| record.offset).collect::<Vec<_>>(), expected);
}

#[test]
pub(crate) fn flushing_after_every_write_flushes_after_every_write() {
    for (sync, label) in [(SyncMode::Fsync, "fsync"), (SyncMode::Fdatasync, "fdatasync")] {
        let mut bench = Bench::new();
        let spec = WorkloadSpec::SequentialWrite(DataParameters { sync, workers: 1, ..data() });
        let recording = bench.run(&times(&spec, 5));
        assert_eq!((count(&recording, "write"), count(&recording, label)), (5, 5));
    }
}

#[test]
pub(crate) fn files_that_are_not_prefilled_grow_by_being_written() {
    let mut bench = Bench::new();
    let spec = WorkloadSpec::SequentialWrite(DataParameters { prefill: false, workers: 1, ..data() });
    let recording = bench.run(&times(&spec, 16));
    assert_eq!((recording.filesets[0].files, bench.size("w/c0/f00000000")), (0, 65_536));
}

#[test]
pub(crate) fn file_creation_creates_each_file_once() {
    for (sharing, directories, each) in
        [(Sharing::Private, ["c0", "c1"].as_slice(), 101), (Sharing::Shared, &["shared"], 101)]
    {
        let mut bench = Bench::new();
        bench.clients = 2;
        let parameters = FileCreationParameters {
            files: each,
            file_size: ByteSize(10_000),
            io_size: ByteSize::kib(4),
            directory_width: 20,
            sharing,
            workers: 3,
            fsync: true,
            ..FileCreationParameters::default()
        };
        let recording = bench.run(&WorkloadSpec::FileCreation(parameters).expand("w").unwrap());
        let files = each * directories.len() as u64;
        for label in ["create", "fsync", "close"] {
            assert_eq!(count(&recording, label), files, "{label}");
        }
        assert_eq!(
            (count(&recording, "write"), total(&recording, "write").bytes),
            (3 * files, 10_000 * files)
        );
        assert!(!recording.timed);
        assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Work));
        assert_eq!(bench.names("w"), directories);
        for directory in directories {
            let mut names = BTreeSet::new();
            for below in bench.names(&format!("w/{directory}")) {
                for name in bench.names(&format!("w/{directory}/{below}")) {
                    assert_eq!(bench.size(&format!("w/{directory}/{below}/{name}")), 10_000);
                    assert!(names.insert(name));
                }
            }
            assert_eq!(names.len() as u64, each);
        }
    }
}

#[test]
pub(crate) fn write_latency_writes_flushes_and_closes_once() {
    let mut bench = Bench::new();
    let parameters = WriteLatencyParameters {
        file_size: ByteSize(100_000),
        io_size: ByteSize::kib(8),
        workers: 2,
        ..WriteLatencyParameters::default()
    };
    let workload = WorkloadSpec::WriteLatency(parameters).expand("w").unwrap();
    let (recording, trace) = bench.trace(&workload);
    let labels: Vec<&str> = recording.series.iter().map(|series| series.key.label.as_str()).collect();
    assert_eq!(labels, ["write", "fsync", "close"], "in the order of the flow");
    assert_eq!(
        (count(&recording, "write"), count(&recording, "fsync"), count(&recording, "close")),
        (26, 2, 2)
    );
    assert_eq!(total(&recording, "write").bytes, 200_000);
    assert_eq!(trace.len(), 30);
    for worker in &recording.workers {
        let [write, fsync, close] = &worker.series[..] else { panic!("{worker:?}") };
        assert!(write.first_start_ns <= fsync.first_start_ns && fsync.first_start_ns <= close.first_start_ns);
        assert!(write.last_end_ns <= fsync.last_end_ns && fsync.last_end_ns <= close.last_end_ns);
    }
    assert_eq!(bench.size("w/c0/f00000001"), 100_000);
    assert!(recording.host.null_rate.is_some_and(|rate| rate > 0.0));
}

#[test]
pub(crate) fn small_files_are_read_whole() {
    let mut bench = Bench::new();
    let parameters = SmallFileReadParameters {
        files: 50,
        file_size: ByteSize(5000),
        directory_width: 7,
        workers: 3,
        ..SmallFileReadParameters::default()
    };
    let recording = bench.run(&times(&WorkloadSpec::SmallFileRead(parameters), 20));
    for label in ["open", "read", "close"] {
        assert_eq!(count(&recording, label), 60, "{label}");
    }
    assert_eq!(total(&recording, "read").bytes, 300_000);
}

#[test]
pub(crate) fn metadata_leaves_nothing_behind_and_a_warm_up_does_not_break_it() {
    let mut bench = Bench::new();
    let parameters =
        MetadataParameters { workers: 2, warm_up: TimeSpan::millis(20), ..MetadataParameters::default() };
    let recording = bench.run(&times(&WorkloadSpec::Metadata(parameters), 100));
    for label in ["create", "close", "stat", "rename", "unlink", "readdir"] {
        // What the warm-up left undone of its last round comes on top.
        assert!((200..=202).contains(&count(&recording, label)), "{label}: {}", count(&recording, label));
    }
    assert!(bench.names("w/c0").is_empty());
    assert_eq!(bench.names("w-listed/c0").len(), 100);
}

#[test]
pub(crate) fn every_built_in_workload_is_tried_here() {
    let tried = [
        "sequential-read",
        "random-read",
        "sequential-write",
        "random-write",
        "file-creation",
        "write-latency",
        "small-file-read",
        "metadata",
        // In client_areas.rs.
        "client-network",
        "client-cache",
        "client-locks",
        "client-structures",
        "locked-read",
        "file-server",
        "web-server",
        "mail-server",
        "bonnie",
        "delegation-recall",
        "delegation-grant",
        "oltp",
        // In peers.rs.
        "software-build",
        "client-scheduling",
        "ior",
        "mdtest",
        "smallfile",
        "mixed",
        "postmark",
        "tree-extract",
        "tree-clone",
        // In replay.rs.
        "replay",
        "custom",
    ];
    assert_eq!(BUILT_IN.iter().map(|built_in| built_in.name).collect::<Vec<_>>(), tried);
}
