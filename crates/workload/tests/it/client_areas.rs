//! The workloads that look at one part of a client each do exactly what they say.

use benchmaster_builtin::{
    ClientCacheParameters, ClientLocksParameters, ClientNetworkParameters, ClientSchedulingParameters,
    ClientStructuresParameters, LockedFiles, LockedOperation, NetworkTest, PageOrder, WorkloadSpec,
    WriteOrder,
};
use benchmaster_nfs_server::ServerConfig;
use benchmaster_record::model::{Until, Workload};
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::Recording;
use benchmaster_units::{ByteSize, TimeSpan};

use crate::bench::{Bench, count, total};

/// A directory and a server of each kind.
fn benches() -> Vec<Bench> {
    let server = |version| Bench::nfs(&format!("version={version}"), ServerConfig::default());
    vec![Bench::new(), server("3"), server("4.1")]
}

/// The workload of a specification, but with a number of repetitions instead of a duration.
fn times(spec: &WorkloadSpec, iterations: u64) -> Workload {
    let workload = spec.expand("w").unwrap();
    Workload { until: Until { iterations: Some(iterations), ..Until::default() }, ..workload }
}

/// Calls of a kind in the measured phase; `None` on a directory.
fn calls(recording: &Recording, operation: &str) -> Option<u64> {
    let rpc = recording.rpc.as_ref()?;
    Some(rpc.phase(Phase::Measure).unwrap().row(operation).map_or(0, |row| row.ops))
}

#[test]
fn a_small_request_is_one_call_and_large_ones_move_whole_files() {
    for mut bench in benches() {
        let network = |test| {
            WorkloadSpec::ClientNetwork(ClientNetworkParameters {
                test,
                file_size: ByteSize::mib(1),
                workers: (test != NetworkTest::Rate).then_some(2),
                verify: true.into(),
                ..ClientNetworkParameters::default()
            })
        };
        let recording = bench.run(&times(&network(NetworkTest::Latency), 20));
        assert_eq!((count(&recording, "stat"), recording.workers.len()), (40, 2));
        assert_eq!(recording.verified_bytes, None, "there is nothing to verify");
        bench.area.begin_run(true).unwrap();
        let recording = bench.run(&times(&network(NetworkTest::Rate), 3));
        assert_eq!((count(&recording, "stat"), recording.workers.len()), (192, 64));
        for (test, label) in [(NetworkTest::Read, "read"), (NetworkTest::Write, "write")] {
            bench.area.begin_run(true).unwrap();
            let recording = bench.run(&times(&network(test), 2));
            assert_eq!((count(&recording, label), total(&recording, label).bytes), (4, 4 << 20));
            assert!(recording.verified_bytes.is_some_and(|bytes| bytes >= 2 << 20));
            if let Some(reads) = calls(&recording, "READ") {
                assert_eq!(reads + calls(&recording, "WRITE").unwrap(), 4, "1 MiB is one call");
            }
        }
    }
}

#[test]
fn files_are_looked_at_once_and_then_again() {
    for mut bench in benches() {
        let parameters = ClientCacheParameters {
            files: 5,
            file_size: ByteSize(10_000),
            io_size: ByteSize::kib(4),
            repeats: 3,
            workers: 2,
            verify: true.into(),
            ..ClientCacheParameters::default()
        };
        let recording = bench.run(&WorkloadSpec::ClientCache(parameters).expand("w").unwrap());
        for (when, visits) in [("first", 10), ("again", 30)] {
            for label in ["stat", "open", "close"] {
                assert_eq!(count(&recording, &format!("{when}-{label}")), visits, "{when}-{label}");
            }
            let read = total(&recording, &format!("{when}-read"));
            assert_eq!((read.count, read.bytes), (3 * visits, 10_000 * visits));
        }
        assert_eq!(recording.verified_bytes, Some(400_000));
        assert_eq!(recording.filesets[0].files, 10);
    }
}

#[test]
fn a_client_with_a_cache_reads_files_once() {
    let mut bench = Bench::nfs("version=4.1&cache=linux", ServerConfig::default());
    let parameters = ClientCacheParameters {
        files: 5,
        file_size: ByteSize::kib(64),
        repeats: 3,
        ..ClientCacheParameters::default()
    };
    let recording = bench.run(&WorkloadSpec::ClientCache(parameters).expand("w").unwrap());
    assert_eq!((count(&recording, "again-read"), calls(&recording, "READ")), (15, Some(5)));
}

#[test]
fn workers_share_one_file_in_parts_or_have_their_own() {
    for (operation, label) in
        [(LockedOperation::Write, "write"), (LockedOperation::Read, "read"), (LockedOperation::Stat, "stat")]
    {
        for (files, number, size) in [(LockedFiles::One, 1, 4 << 16), (LockedFiles::Own, 4, 1 << 16)] {
            for mut bench in benches() {
                let spec = WorkloadSpec::ClientLocks(ClientLocksParameters {
                    files,
                    operation,
                    workers: 4,
                    part_size: ByteSize::kib(64),
                    verify: true.into(),
                    duration: TimeSpan::seconds(5),
                    ..ClientLocksParameters::default()
                });
                let (recording, trace) = bench.trace(&times(&spec, 16));
                assert_eq!(count(&recording, label), 64);
                let facts = &recording.filesets[0];
                assert_eq!((facts.files, facts.bytes), (number, number * size));
                if operation == LockedOperation::Stat {
                    continue;
                }
                // Sixteen steps of 4 KiB are a worker's part, and nobody else's.
                let mut places: Vec<u64> = trace.iter().map(|record| record.offset).collect();
                places.sort_unstable();
                let expected: Vec<u64> = match files {
                    LockedFiles::One => (0..64).map(|n| n * 4096).collect(),
                    LockedFiles::Own => (0..64).map(|n| n / 4 * 4096).collect(),
                };
                assert_eq!(places, expected);
            }
        }
    }
}

#[test]
fn dirty_data_grow_by_stages_while_files_are_open() {
    for order in [PageOrder::Sequential, PageOrder::Random] {
        for mut bench in benches() {
            let spec = WorkloadSpec::ClientStructures(ClientStructuresParameters {
                dirty: ByteSize::mib(1),
                order,
                open_files: 19,
                workers: 2,
                verify: true.into(),
                ..ClientStructuresParameters::default()
            });
            let recording = bench.run(&spec.expand("w").unwrap());
            for (label, writes) in [("dirty-64KiB", 32), ("dirty-256KiB", 96), ("dirty-1MiB", 384)] {
                assert_eq!(count(&recording, label), writes, "{label}");
            }
            assert_eq!((count(&recording, "fsync"), count(&recording, "close")), (2, 2));
            // Two workers hold eight files each, and one the rest.
            assert_eq!((recording.workers.len(), recording.series.len()), (5, 5));
            if order == PageOrder::Sequential {
                assert_eq!(recording.verified_bytes, Some(2 << 20));
            }
            if let Some(commits) = calls(&recording, "COMMIT") {
                assert!(commits <= 2, "{commits}");
            }
        }
    }
}

#[test]
fn a_file_is_written_in_order_or_out_of_it() {
    let kib = |places: &mut dyn Iterator<Item = u64>| places.map(|n| n * 1024).collect::<Vec<u64>>();
    for (order, expected) in [
        (WriteOrder::Sequential, Some(kib(&mut (0..64)))),
        (WriteOrder::Reverse, Some(kib(&mut (0..64).rev()))),
        (WriteOrder::Strided, Some(kib(&mut (0..64).step_by(4)))),
        (WriteOrder::Random, None),
    ] {
        for mut bench in benches() {
            let spec = WorkloadSpec::ClientScheduling(ClientSchedulingParameters {
                order,
                stride: ByteSize::kib(4),
                file_size: ByteSize::kib(64),
                verify: true.into(),
                ..ClientSchedulingParameters::default()
            });
            let (recording, trace) = bench.trace(&spec.expand("w").unwrap());
            let writes: Vec<u64> =
                trace.iter().filter(|record| record.bytes > 0).map(|record| record.offset).collect();
            assert_eq!(writes.len() as u64, count(&recording, "write"));
            assert_eq!((count(&recording, "fsync"), count(&recording, "close")), (1, 1));
            match expected {
                Some(ref expected) => assert_eq!(writes, *expected),
                None => assert!(writes.len() == 64 && !writes.is_sorted(), "{writes:?}"),
            }
        }
    }
}

#[test]
fn a_client_with_a_cache_puts_small_writes_together() {
    let calls_in = |order| {
        let mut bench = Bench::nfs("version=3&cache=linux", ServerConfig::default());
        let spec = WorkloadSpec::ClientScheduling(ClientSchedulingParameters {
            order,
            file_size: ByteSize::kib(512),
            ..ClientSchedulingParameters::default()
        });
        calls(&bench.run(&spec.expand("w").unwrap()), "WRITE").unwrap()
    };
    let (sequential, strided) = (calls_in(WriteOrder::Sequential), calls_in(WriteOrder::Strided));
    assert!(sequential <= 512, "{sequential}");
    assert!(strided <= 32, "{strided}");
}
