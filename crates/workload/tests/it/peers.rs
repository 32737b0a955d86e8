//! The workloads in the manner of other benchmarks do exactly what they say.

use benchmaster_builtin::{
    Conditions, IorParameters, IorPhases, MdtestParameters, MdtestPhase, MixedParameters, PostmarkParameters,
    SmallfileOperation, SmallfileParameters, SoftwareBuildParameters, TreeCloneParameters,
    TreeExtractParameters, WorkloadSpec,
};
use benchmaster_nfs_server::ServerConfig;
use benchmaster_record::model::{OffsetPick, Size, Until, Workload};
use benchmaster_record::recording::{Recording, StopReason};
use benchmaster_units::ByteSize;
use benchmaster_workload::program::Access;

use crate::bench::{Bench, count, total};

/// A directory and a server of each kind.
fn benches() -> Vec<Bench> {
    let server = |version| Bench::nfs(&format!("version={version}"), ServerConfig::default());
    vec![Bench::new(), server("3"), server("4.1")]
}

/// The workload of so many clients.
fn of(spec: &WorkloadSpec, clients: u32) -> Workload {
    spec.expand_under("w", Conditions { access: Access::System, clients }).unwrap()
}

fn check_counts(recording: &Recording, expected: &[(&str, u64)]) {
    for (label, number) in expected {
        assert_eq!(count(recording, label), *number, "{label}");
    }
    let all: u64 = recording.series.iter().map(|series| series.total.count).sum();
    let counted: u64 = expected.iter().map(|(_, number)| number).sum();
    assert_eq!(all, counted, "{:?}", recording.series.iter().map(|s| &s.key.label).collect::<Vec<_>>());
    assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Work));
}

#[test]
fn a_build_looks_reads_writes_and_links() {
    for mut bench in benches() {
        bench.clients = 2;
        let fixed = |bytes| Size::Fixed(ByteSize(bytes));
        let spec = WorkloadSpec::SoftwareBuild(SoftwareBuildParameters {
            sources: 6,
            source_size: fixed(5000),
            headers: 10,
            header_size: fixed(3000),
            includes: 3,
            object_size: fixed(9000),
            io_size: ByteSize::kib(4),
            workers: 4,
            verify: true.into(),
            ..SoftwareBuildParameters::default()
        });
        let recording = bench.run(&of(&spec, 2));
        // Eight sources and twelve headers for four workers, on two clients.
        check_counts(
            &recording,
            &[
                ("look", 40),
                ("source-open", 16),
                ("source-read", 32),
                ("source-close", 16),
                ("include-stat", 48),
                ("include-open", 48),
                ("include-read", 48),
                ("include-close", 48),
                ("object-create", 16),
                ("object-write", 48),
                ("object-close", 16),
                ("object-rename", 16),
                ("link-open", 16),
                ("link-read", 48),
                ("link-close", 16),
                ("program-create", 2),
                ("program-write", 2 * 256),
                ("program-close", 2),
            ],
        );
        assert_eq!(total(&recording, "link-read").bytes, 16 * 9000);
        let objects = bench.names("w-objects/c1");
        assert_eq!(objects.len(), 8);
        assert!(objects.iter().all(|name| name.ends_with(".renamed")), "{objects:?}");
    }
}

#[test]
fn an_archive_is_unpacked_into_whole_directories() {
    for mut bench in benches() {
        let spec = WorkloadSpec::TreeExtract(TreeExtractParameters {
            files: 37,
            file_size: Size::Fixed(ByteSize(6000)),
            directory_width: 5,
            io_size: ByteSize::kib(4),
            workers: 2,
            verify: true.into(),
            ..TreeExtractParameters::default()
        });
        let recording = bench.run(&of(&spec, 1));
        // Four directories of five files for each of two workers.
        check_counts(
            &recording,
            &[("create", 40), ("write", 80), ("close", 40), ("utimes", 40), ("chmod", 40), ("mkdir", 8)],
        );
        assert_eq!(recording.verified_bytes, Some(40 * 6000));
        let names = bench.names("w/c0/d000003");
        assert_eq!(names.iter().filter(|name| name.starts_with('f')).count(), 10, "{names:?}");
        assert_eq!(names.len(), 12, "each of two workers has made a directory");
    }
}

#[test]
fn a_repository_is_cloned_and_checked_out() {
    for mut bench in benches() {
        bench.clients = 2;
        let spec = WorkloadSpec::TreeClone(TreeCloneParameters {
            files: 9,
            file_size: Size::Fixed(ByteSize(5000)),
            object_size: Size::Fixed(ByteSize(1000)),
            io_size: ByteSize::kib(4),
            workers: 2,
            verify: true.into(),
            ..TreeCloneParameters::default()
        });
        let recording = bench.run(&of(&spec, 2));
        check_counts(
            &recording,
            &[
                ("object-create", 20),
                ("object-write", 20),
                ("object-close", 20),
                ("object-rename", 20),
                ("object-chmod", 20),
                ("stored-open", 20),
                ("stored-read", 20),
                ("stored-close", 20),
                ("file-create", 20),
                ("file-write", 40),
                ("file-fstat", 20),
                ("file-close", 20),
                ("file-stat", 20),
            ],
        );
        assert_eq!(recording.verified_bytes, Some(20 * (1000 + 1000 + 5000)));
    }
}

fn ior(phases: IorPhases) -> IorParameters {
    IorParameters {
        phases,
        transfer_size: ByteSize::kib(4),
        block_size: ByteSize::kib(16),
        segments: 3,
        workers: 2,
        verify: true.into(),
        ..IorParameters::default()
    }
}

#[test]
fn workers_write_one_file_in_segments_and_read_what_others_wrote() {
    for reorder in [false, true] {
        for mut bench in benches() {
            bench.clients = 2;
            let parameters = IorParameters { reorder, fsync: true, ..ior(IorPhases::WriteRead) };
            let (recording, trace) = bench.trace(&of(&WorkloadSpec::Ior(parameters), 2));
            check_counts(
                &recording,
                &[
                    ("write-open", 4),
                    ("write", 48),
                    ("flush", 4),
                    ("write-close", 4),
                    ("read-open", 4),
                    ("read", 48),
                    ("read-close", 4),
                ],
            );
            assert_eq!(bench.size("w/shared/f00000000"), 4 * 3 * 16_384);
            // What was read is proved, and in the end all that was written.
            assert_eq!(recording.verified_bytes, Some(2 * 48 * 4096));
            let series = |label: &str| recording.series.iter().position(|s| s.key.label == label).unwrap();
            for rank in 0..4_u32 {
                let places = |label: &str| -> Vec<u64> {
                    let of = |r: &&benchmaster_record::recording::TraceRecord| {
                        r.worker == rank && usize::from(r.series) == series(label)
                    };
                    trace.iter().filter(of).map(|record| record.offset).collect()
                };
                let blocks = |rank: u32| -> Vec<u64> {
                    let first = |n: u64| n / 4 * 65_536 + u64::from(rank) * 16_384;
                    (0..12).map(|n| first(n) + n % 4 * 4096).collect()
                };
                assert_eq!(places("write"), blocks(rank));
                assert_eq!(places("read"), blocks(if reorder { (rank + 2) % 4 } else { rank }));
            }
        }
    }
}

#[test]
fn workers_write_a_file_each_and_read_it_or_that_of_another_client() {
    for reorder in [false, true] {
        for mut bench in benches() {
            bench.clients = 2;
            let parameters = IorParameters { reorder, file_per_process: true, ..ior(IorPhases::WriteRead) };
            let recording = bench.run(&of(&WorkloadSpec::Ior(parameters), 2));
            assert_eq!((count(&recording, "write"), count(&recording, "read")), (48, 48));
            let all: u64 = recording.filesets[0].files;
            assert_eq!(all, 0, "none existed before");
            let directories = bench.names("w");
            assert_eq!(directories, if reorder { vec!["shared"] } else { vec!["c0", "c1"] });
            assert_eq!(recording.verified_bytes, Some(2 * 48 * 4096));
        }
    }
}

#[test]
fn one_workload_writes_and_another_reads_the_same_file() {
    for mut bench in benches() {
        let fileset = Some("common".to_owned());
        let write = IorParameters { fileset: fileset.clone(), ..ior(IorPhases::Write) };
        let read = IorParameters { fileset, ..ior(IorPhases::Read) };
        assert_eq!(count(&bench.run(&of(&WorkloadSpec::Ior(write), 1)), "write"), 24);
        let recording = bench.run(&of(&WorkloadSpec::Ior(read), 1));
        assert!(recording.filesets[0].reused);
        assert_eq!((count(&recording, "read"), total(&recording, "read").bytes), (24, 24 * 4096));
        let alone = bench.run(&of(&WorkloadSpec::Ior(ior(IorPhases::Read)), 1));
        assert_eq!(count(&alone, "read"), 24);
    }
}

#[test]
fn files_are_created_seen_read_and_removed_in_phases() {
    let mdtest = MdtestParameters {
        items: 6,
        file_size: ByteSize(5000),
        directories: 2,
        fsync: true,
        workers: 2,
        verify: false.into(),
        ..MdtestParameters::default()
    };
    let tree = MdtestParameters { depth: 2, branch: 2, leaves_only: true, ..mdtest.clone() };
    let unique = MdtestParameters { unique: true, ..mdtest.clone() };
    let neighbour = MdtestParameters { neighbour: true, ..mdtest.clone() };
    for parameters in [mdtest, tree, unique, neighbour] {
        for mut bench in benches() {
            bench.clients = 2;
            let recording = bench.run(&of(&WorkloadSpec::Mdtest(parameters.clone()), 2));
            check_counts(
                &recording,
                &[
                    ("mkdir", 8),
                    ("rmdir", 8),
                    ("create", 24),
                    ("write", 24),
                    ("fsync", 24),
                    ("create-close", 24),
                    ("stat", 24),
                    ("open", 24),
                    ("read", 24),
                    ("read-close", 24),
                    ("unlink", 24),
                ],
            );
            assert_eq!(total(&recording, "read").bytes, 24 * 5000);
            if parameters.unique {
                assert_eq!(bench.names("w/shared"), ["d0", "d1", "d2", "d3"], "one for each worker");
            }
        }
    }
}

#[test]
fn phases_can_be_left_out() {
    for mut bench in benches() {
        let phases = vec![MdtestPhase::Stat, MdtestPhase::Remove];
        let parameters = MdtestParameters { phases, items: 5, workers: 2, ..MdtestParameters::default() };
        let recording = bench.run(&of(&WorkloadSpec::Mdtest(parameters), 1));
        check_counts(&recording, &[("stat", 10), ("unlink", 10)]);
        let phases = vec![MdtestPhase::Create];
        bench.area.begin_run(true).unwrap();
        let parameters =
            MdtestParameters { phases, items: 5, workers: 2, unique: true, ..MdtestParameters::default() };
        let recording = bench.run(&of(&WorkloadSpec::Mdtest(parameters), 1));
        check_counts(&recording, &[("create", 10), ("create-close", 10)]);
        for directory in ["d0", "d1"] {
            assert_eq!(bench.names(&format!("w/shared/{directory}")).len(), 5);
        }
    }
}

#[test]
fn the_twenty_operations_do_what_they_say() {
    use SmallfileOperation as What;
    let three = |op: &'static str| vec![("open", 12), (op, 24), ("close", 12)];
    let cases: Vec<(What, Vec<(&str, u64)>)> = vec![
        (What::Create, vec![("create", 12), ("write", 24), ("close", 12)]),
        (What::Append, three("write")),
        (What::Overwrite, three("write")),
        (What::TruncateOverwrite, three("write")),
        (What::Read, three("read")),
        (What::Stat, vec![("stat", 12)]),
        (What::Chmod, vec![("chmod", 12)]),
        (What::Setxattr, vec![("setxattr", 12)]),
        (What::Getxattr, vec![("getxattr", 12)]),
        (What::Symlink, vec![("symlink", 12)]),
        (What::Rename, vec![("rename", 12)]),
        (What::Delete, vec![("unlink", 12)]),
        (What::DeleteRenamed, vec![("unlink", 12)]),
        (What::Mkdir, vec![("mkdir", 12)]),
        (What::Rmdir, vec![("rmdir", 12)]),
        (What::Readdir, vec![("readdir", 4)]),
        (What::LsL, vec![("readdir-stat", 4)]),
        (What::Cleanup, vec![("unlink-symlink", 12), ("rmdir", 12), ("unlink", 12)]),
        (
            What::SwiftPut,
            vec![
                ("create", 12),
                ("write", 24),
                ("fsync", 12),
                ("close", 12),
                ("setxattr", 12),
                ("rename", 12),
            ],
        ),
        (What::SwiftGet, vec![("open", 12), ("read", 24), ("close", 12), ("getxattr", 12)]),
    ];
    assert_eq!(cases.len(), 20);
    for mut bench in [
        Bench::new(),
        Bench::nfs("version=3", ServerConfig::default()),
        Bench::nfs("version=4.2", ServerConfig::default()),
    ] {
        let old = bench.server.is_some() && !format!("{:?}", bench.options()).contains("V42");
        for (operation, expected) in &cases {
            let attributes =
                matches!(operation, What::Setxattr | What::Getxattr | What::SwiftPut | What::SwiftGet);
            if old && attributes {
                continue;
            }
            let spec = WorkloadSpec::Smallfile(SmallfileParameters {
                operation: *operation,
                files: 6,
                file_size: Size::Fixed(ByteSize(6000)),
                io_size: ByteSize::kib(4),
                directory_width: 3,
                workers: 2,
                verify: (*operation != What::Append).into(),
                ..SmallfileParameters::default()
            });
            let recording = bench.run(&of(&spec, 1));
            check_counts(&recording, expected);
            bench.area.begin_run(true).unwrap();
        }
    }
}

#[test]
fn postmark_creates_transacts_and_deletes_what_is_left() {
    for mut bench in benches() {
        let parameters = PostmarkParameters {
            files: 20,
            transactions: 60,
            subdirectories: 3,
            workers: 2,
            ..PostmarkParameters::default()
        };
        let recording = bench.run(&of(&WorkloadSpec::Postmark(parameters), 1));
        let counted = |label| count(&recording, label);
        let (created, deleted) = (counted("transaction-create"), counted("transaction-delete"));
        assert_eq!((counted("create"), counted("close"), created + deleted), (20, 20, 60));
        assert_eq!(counted("delete"), 20 + created - deleted, "what is left");
        assert_eq!(counted("transaction-open"), 60);
        assert_eq!(counted("transaction-close"), 60 + created);
        let appended = counted("transaction-append");
        assert!((10..50).contains(&created) && (10..50).contains(&appended), "{created} {appended}");
        assert!(counted("transaction-read") >= 60 - appended, "files are read whole");
        assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Work));
        let directories = bench.names("w/c0");
        assert_eq!(directories.len(), 3, "{directories:?}");
        for directory in directories {
            assert!(bench.names(&format!("w/c0/{directory}")).is_empty(), "{directory}");
        }
    }
}

#[test]
fn reads_and_writes_are_mixed_as_asked_for() {
    for offset in [
        OffsetPick::Zipf { exponent: 0.99 },
        OffsetPick::Random,
        OffsetPick::Sequential,
        OffsetPick::Hotspot { share: 0.1, accesses: 0.9 },
    ] {
        for mut bench in benches() {
            let spec = WorkloadSpec::Mixed(MixedParameters {
                offset,
                file_size: ByteSize::kib(512),
                workers: 2,
                verify: true.into(),
                ..MixedParameters::default()
            });
            let workload = of(&spec, 1);
            let workload =
                Workload { until: Until { iterations: Some(200), ..Until::default() }, ..workload };
            let (recording, trace) = bench.trace(&workload);
            let (reads, writes) = (count(&recording, "read"), count(&recording, "write"));
            // Binomial with mean 280 and standard deviation 9.
            assert!(reads + writes == 400 && (240..320).contains(&reads), "{reads} {writes}");
            let sizes: std::collections::BTreeSet<u32> = trace.iter().map(|record| record.bytes).collect();
            assert!([4096, 16_384, 65_536].iter().all(|size| sizes.contains(size)), "{sizes:?}");
            assert!(recording.verified_bytes.is_some_and(|bytes| bytes > 0));
        }
    }
    for (reads, label) in [(1.0, "read"), (0.0, "write")] {
        let parameters = MixedParameters {
            reads,
            file_size: ByteSize::kib(512),
            workers: 2,
            ..MixedParameters::default()
        };
        let workload = of(&WorkloadSpec::Mixed(parameters), 1);
        let workload = Workload { until: Until { iterations: Some(50), ..Until::default() }, ..workload };
        check_counts(&Bench::new().run(&workload), &[(label, 100)]);
    }
}
