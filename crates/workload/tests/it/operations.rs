//! Every operation and open flag does what it says.

use benchmaster_record::phase::Phase;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use benchmaster_record::model::{OpenFlag, Step, Workload};
use benchmaster_workload::execute::ExecuteError;

use crate::bench::{Bench, count, series, total, workload};

/// One fileset `data` of 4 files of 8 KiB, one worker, `iterations` times `flow`.
fn simple(prefill: f64, iterations: u64, flow: &str) -> Workload {
    workload(&format!(
        "until = {{ iterations = {iterations} }}
         filesets.data = {{ files = 4, size = '8KiB', prefill = {prefill:?} }}
         [[groups]]
         name = 'g'
         flow = [{flow}]"
    ))
}

#[test]
pub(crate) fn create_write_and_close_make_a_file_of_the_size_written() {
    let mut bench = Bench::new();
    let flow = "{ op = 'create', flags = ['write', 'exclusive'] }, { repeat = 2, flow = [{ op = 'write', io_size = '3KiB' }] }, { op = 'close' }";
    let recording = bench.run(&simple(0.0, 4, flow));
    assert_eq!(
        (count(&recording, "create"), count(&recording, "write"), count(&recording, "close")),
        (4, 8, 4)
    );
    assert_eq!(total(&recording, "write").bytes, 8 * 3072);
    assert_eq!(bench.names("data/c0"), ["f00000000", "f00000001", "f00000002", "f00000003"]);
    assert_eq!(bench.size("data/c0/f00000003"), 6144);
}

#[test]
pub(crate) fn what_is_written_is_different_everywhere() {
    let mut bench = Bench::new();
    let flow = "{ op = 'open', file = 'next', flags = ['write'] }, { repeat = 'end-of-file', flow = [{ op = 'write', io_size = '4KiB' }] }";
    bench.run(&simple(1.0, 4, flow));
    let mut blocks = BTreeSet::new();
    for name in bench.names("data/c0") {
        for block in bench.content(&format!("data/c0/{name}")).chunks(4096) {
            assert!(blocks.insert(block.to_vec()), "two blocks are the same");
        }
    }
    assert_eq!(blocks.len(), 8);
}

#[test]
pub(crate) fn exclusive_creation_of_a_file_that_exists_is_an_error() {
    let mut bench = Bench::new();
    let flow = "{ op = 'create', file = 'own', flags = ['write', 'exclusive'] }";
    let recording = bench.try_run(&simple(1.0, 3, flow)).unwrap();
    let created = series(&recording, "create");
    assert_eq!((created.total.count, created.total.errors), (0, 3));
    assert_eq!(created.errors, BTreeMap::from([("EEXIST".to_owned(), 3)]));
    assert_eq!(recording.error_details[0], "create data/c0/f00000000: File exists (os error 17)");
}

#[test]
pub(crate) fn truncate_empties_a_file() {
    let mut bench = Bench::new();
    bench.run(&simple(
        1.0,
        1,
        "{ op = 'open', file = 'own', flags = ['write', 'truncate'] }, { op = 'close' }",
    ));
    assert_eq!((bench.size("data/c0/f00000000"), bench.size("data/c0/f00000001")), (0, 8192));
}

#[test]
pub(crate) fn appending_workers_lose_nothing() {
    let mut bench = Bench::new();
    let log = workload(
        "until = { iterations = 50 }
         filesets.log = { files = 1, size = 0 }
         [[groups]]
         name = 'g'
         workers = 3
         setup = [{ op = 'open', file = 'own', flags = ['write', 'append'] }]
         flow = [{ op = 'write', io_size = 1000 }]",
    );
    let (recording, trace) = bench.trace(&log);
    assert_eq!(total(&recording, "write").bytes, 150_000);
    assert_eq!(bench.size("log/c0/f00000000"), 150_000);
    assert!(trace.iter().all(|record| record.offset == u64::MAX), "only the file system knows the place");
    bench.area.begin_run(false).unwrap();
    assert!(!bench.run(&log).filesets[0].reused, "the file is no longer as its fileset says");
    assert_eq!(bench.size("log/c0/f00000000"), 150_000);
}

/// Opens a file with `flags` and returns the flags the kernel shows for it while the workload runs.
fn kernel_flags(flags: &[OpenFlag]) -> Result<i32, ExecuteError> {
    let mut bench = Bench::new();
    let mut opening = workload(
        "until = { duration = '10min' }
         filesets.data = { files = 1, size = '8KiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'fsync' }]",
    );
    opening.groups[0].setup[0] = Step { flags: flags.to_vec(), ..opening.groups[0].setup[0].clone() };
    let file = bench.path("data/c0/f00000000");
    let found = Mutex::new(None);
    let result = bench.watch(&opening, |progress, stop| {
        if progress.phase != Phase::Measure {
            return;
        }
        for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            if std::fs::read_link(entry.path()).is_ok_and(|path| path == file) {
                let info = std::path::Path::new("/proc/self/fdinfo").join(entry.file_name());
                let Ok(info) = std::fs::read_to_string(info) else { continue };
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
                *found.lock().unwrap() = Some(i32::from_str_radix(flags, 8).unwrap());
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    match (result, found.into_inner().unwrap()) {
        (Err(ExecuteError::Stopped), Some(flags)) => Ok(flags),
        (Err(error), None) => Err(error),
        (result, flags) => panic!("{result:?} {flags:?}"),
    }
}

#[test]
pub(crate) fn flags_reach_the_kernel() {
    use OpenFlag::{Append, Direct, Dsync, Sync, Write, WriteOnly};
    for (flags, expected) in [
        (vec![], libc::O_RDONLY),
        (vec![Write], libc::O_RDWR),
        (vec![WriteOnly], libc::O_WRONLY),
        (vec![Write, Sync], libc::O_RDWR | libc::O_SYNC),
        (vec![Write, Dsync], libc::O_RDWR | libc::O_DSYNC),
        (vec![Write, Append], libc::O_RDWR | libc::O_APPEND),
        (vec![Write, Direct], libc::O_RDWR | libc::O_DIRECT),
    ] {
        let mask = libc::O_ACCMODE | libc::O_SYNC | libc::O_DSYNC | libc::O_APPEND | libc::O_DIRECT;
        match kernel_flags(&flags) {
            Ok(found) => assert_eq!(found & mask, expected, "{flags:?}"),
            // Not every file system knows O_DIRECT; one that does not must say so.
            Err(ExecuteError::SetUp { group, problem }) if flags.contains(&Direct) => {
                assert_eq!(group, "g");
                assert_eq!(problem, "data/c0/f00000000: Invalid argument (os error 22)");
            }
            Err(error) => panic!("{flags:?}: {error}"),
        }
    }
}

#[test]
pub(crate) fn renaming_flips_between_two_names() {
    for (times, name) in [(3, "f00000000.renamed"), (2, "f00000000")] {
        let mut bench = Bench::new();
        let recording = bench.run(&simple(
            0.25,
            times,
            "{ op = 'rename', file = 'own' }, { op = 'stat', file = 'same' }",
        ));
        assert_eq!((count(&recording, "rename"), count(&recording, "stat")), (times, times));
        assert_eq!(bench.names("data/c0"), [name]);
    }
}

#[test]
pub(crate) fn stat_of_a_missing_file_is_an_error() {
    let mut bench = Bench::new();
    let recording = bench.try_run(&simple(0.0, 1, "{ op = 'stat', file = 'own' }")).unwrap();
    assert_eq!(series(&recording, "stat").errors, BTreeMap::from([("ENOENT".to_owned(), 1)]));
}

#[test]
pub(crate) fn every_file_is_unlinked_once_by_any_number_of_workers() {
    for pick in ["once", "random", "next"] {
        let mut bench = Bench::new();
        let recording = bench.run(&workload(&format!(
            "filesets.data = {{ files = 100, size = 0, directory_width = 10 }}
             [[groups]]
             name = 'g'
             workers = 3
             flow = [{{ op = 'unlink', file = '{pick}' }}]"
        )));
        assert_eq!(count(&recording, "unlink"), 100, "{pick}");
        assert_eq!(bench.names("data/c0").len(), 10);
        assert!(bench.names("data/c0/d000007").is_empty());
        if pick == "next" {
            let counts: Vec<u64> = recording.workers.iter().map(|worker| worker.series[0].count).collect();
            assert_eq!(counts, [34, 33, 33], "each worker has its share");
        }
    }
}

#[test]
pub(crate) fn directories_are_listed_made_and_removed() {
    let mut bench = Bench::new();
    let flow = "{ op = 'mkdir', file = 'next' }, { op = 'readdir', file = 'same' }";
    let recording = bench.run(&simple(0.0, 4, flow));
    assert_eq!((count(&recording, "mkdir"), count(&recording, "readdir")), (4, 4));
    assert_eq!(bench.names("data/c0"), ["d00000000", "d00000001", "d00000002", "d00000003"]);
    let recording = bench.try_run(&simple(0.0, 5, "{ op = 'mkdir', file = 'own' }")).unwrap();
    assert_eq!(
        series(&recording, "mkdir").errors,
        BTreeMap::from([("EEXIST".to_owned(), 5)]),
        "it is there already"
    );
    bench.area.begin_run(true).unwrap();
    bench.run(&simple(0.0, 9, "{ op = 'mkdir', file = 'random' }, { op = 'rmdir', file = 'same' }"));
    assert!(bench.names("data/c0").is_empty());
}

#[test]
pub(crate) fn flushes_are_counted_apart() {
    let mut bench = Bench::new();
    let flow = "{ op = 'open', file = 'own', flags = ['write'] }, { op = 'write', io_size = 512, offset = 'random' }, \
                { op = 'fdatasync', label = 'flush-data' }, { op = 'fsync' }, { op = 'close' }";
    let recording = bench.run(&simple(1.0, 3, flow));
    assert_eq!((count(&recording, "flush-data"), count(&recording, "fsync")), (3, 3));
}

#[test]
pub(crate) fn write_locks_exclude_each_other() {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 25 }
         filesets.data = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{ op = 'open', file = 'own', flags = ['write'] }]
         flow = [
             { op = 'lock', lock = 'write' },
             { op = 'read', io_size = 8, offset = 'random' },
             { pause = '200us' },
             { op = 'write', io_size = 8, offset = 'random' },
             { op = 'unlock' },
         ]",
    ));
    assert_eq!((count(&recording, "lock"), count(&recording, "unlock")), (50, 50));
    let of = |label: &str, worker: u32| -> Vec<(u64, u64)> {
        let number = recording.series.iter().position(|series| series.key.label == label).unwrap();
        let records = trace.iter().filter(|r| usize::from(r.series) == number && r.worker == worker);
        records.map(|record| (record.start_ns, record.start_ns + record.latency_ns)).collect()
    };
    // The lock is held at least from the end of `lock` to the start of `unlock`.
    let mut held: Vec<(u64, u64)> = (0..2)
        .flat_map(|worker| {
            let (locks, unlocks) = (of("lock", worker), of("unlock", worker));
            assert_eq!((locks.len(), unlocks.len()), (25, 25));
            locks.into_iter().zip(unlocks).map(|(lock, unlock)| (lock.1, unlock.0)).collect::<Vec<_>>()
        })
        .collect();
    held.sort_unstable();
    assert!(held.iter().all(|(from, to)| to - from >= 200_000));
    assert!(
        held.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "two workers held the lock at once: {held:?}"
    );
}

#[test]
pub(crate) fn read_locks_are_shared_and_write_locks_of_other_ranges_too() {
    let mut bench = Bench::new();
    // Every worker keeps its lock; if they excluded each other, set-up would never end.
    bench.run(&workload(
        "until = { iterations = 2 }
         filesets.data = { files = 2, size = '4KiB' }
         [[groups]]
         name = 'readers'
         workers = 3
         setup = [{ op = 'open', file = 'own' }, { op = 'lock', lock = 'read' }]
         flow = [{ op = 'read', io_size = '1KiB' }]",
    ));
}

#[test]
pub(crate) fn several_handles_are_kept_apart() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 1 }
         filesets.from = { files = 1, size = 10000 }
         filesets.to = { files = 1, size = 10000, prefill = 0.0 }
         [[groups]]
         name = 'copy'
         flow = [
             { op = 'open', fileset = 'from', file = 'own', handle = 'in' },
             { op = 'create', fileset = 'to', file = 'own', handle = 'out', flags = ['write'] },
             { repeat = 'end-of-file', flow = [
                 { op = 'read', handle = 'in', io_size = 4096 },
                 { op = 'write', handle = 'out', io_size = 4096 },
             ] },
             { op = 'close', handle = 'in' },
             { op = 'close', handle = 'out' },
         ]",
    ));
    assert_eq!((total(&recording, "read").bytes, total(&recording, "write").bytes), (10_000, 10_000));
    assert_eq!((count(&recording, "read"), count(&recording, "write")), (3, 3));
    assert_eq!(bench.size("to/c0/f00000000"), 10_000);
}

/// Everything that is done by name beside files, once for each of 4 files.
const BESIDE: &str = "{ op = 'symlink', file = 'next' }, { op = 'readlink', file = 'same' },
    { op = 'stat', file = 'same', of = 'symlink', label = 'stat-symlink' }, { op = 'link', file = 'same' },
    { op = 'stat', file = 'same', of = 'link', label = 'stat-link' },
    { op = 'open', file = 'same', of = 'link' }, { op = 'read', io_size = '8KiB' }, { op = 'close' },
    { op = 'chmod', file = 'same' }, { op = 'utimes', file = 'same' }, { op = 'access', file = 'same' },
    { op = 'readdir-stat', file = 'same' }";

#[test]
pub(crate) fn links_and_attributes_are_made_and_read() {
    let mut bench = Bench::new();
    let recording = bench.run(&simple(1.0, 4, BESIDE));
    for label in
        ["symlink", "readlink", "stat-symlink", "link", "stat-link", "read", "chmod", "utimes", "access"]
    {
        assert_eq!(count(&recording, label), 4, "{label}");
    }
    assert_eq!(count(&recording, "readdir-stat"), 4);
    let names = bench.names("data/c0");
    assert_eq!(names.len(), 12);
    assert_eq!(names[..3], ["f00000000", "f00000000.link", "f00000000.symlink"]);
    // What lies beside the files goes when the flow says so, and with the fileset.
    bench.area.begin_run(false).unwrap();
    let removing = format!(
        "{BESIDE}, {{ op = 'unlink', file = 'same', of = 'symlink' }}, {{ op = 'unlink', file = 'same', of = 'link' }}"
    );
    let recording = bench.run(&simple(1.0, 4, &removing));
    assert_eq!((recording.filesets[0].reused, count(&recording, "unlink")), (false, 8));
    assert_eq!(bench.names("data/c0").len(), 4);
}

#[test]
pub(crate) fn a_file_is_truncated_and_seen_so_through_its_handle() {
    let mut bench = Bench::new();
    let recording = bench.run(&simple(
        1.0,
        4,
        "{ op = 'open', file = 'next', flags = ['write'] }, { op = 'fstat' }, { op = 'truncate', io_size = 3000 },
         { repeat = 'end-of-file', flow = [{ op = 'read', io_size = '1KiB' }] }, { op = 'truncate', label = 'empty' },
         { op = 'close' }",
    ));
    assert_eq!(
        (count(&recording, "truncate"), count(&recording, "empty"), count(&recording, "fstat")),
        (4, 4, 4)
    );
    assert_eq!((count(&recording, "read"), total(&recording, "read").bytes), (12, 12_000));
    assert_eq!(bench.size("data/c0/f00000003"), 0);
}

/// What version 4.2 added.
const ADDED: &str = "{ op = 'open', file = 'next', flags = ['write'] }, { op = 'allocate', io_size = '16KiB' },
    { op = 'seek-data' }, { op = 'close' }, { op = 'setxattr', file = 'same', io_size = 200 },
    { op = 'getxattr', file = 'same' }, { op = 'listxattr', file = 'same' }, { op = 'removexattr', file = 'same' },
    { op = 'copy', file = 'same' }, { op = 'open', file = 'same', of = 'copy' }, { op = 'read', io_size = '16KiB' },
    { op = 'close' }";

fn added(mut bench: Bench) {
    let recording = bench.run(&simple(1.0, 4, ADDED));
    for label in ["allocate", "seek-data", "setxattr", "getxattr", "listxattr", "removexattr", "copy", "read"]
    {
        assert_eq!(count(&recording, label), 4, "{label}");
    }
    assert_eq!(bench.size("data/c0/f00000001.copy"), 16 << 10);
    let copy = bench.content("data/c0/f00000002.copy");
    assert_eq!(copy, bench.content("data/c0/f00000002"));
    assert!(copy[..8192].iter().any(|byte| *byte != 0) && copy[8192..].iter().all(|byte| *byte == 0));
}

#[test]
fn space_attributes_and_copies_are_had_from_the_kernel() {
    added(Bench::new());
}

#[test]
fn space_attributes_and_copies_are_had_from_a_server() {
    for options in ["version=4.2", "version=4.2&cache=linux"] {
        added(Bench::nfs(options, benchmaster_nfs_server::ServerConfig::default()));
    }
}

#[test]
fn what_a_version_lacks_is_an_error_that_says_so() {
    for version in ["2", "3", "4.0", "4.1"] {
        let mut bench =
            Bench::nfs(&format!("version={version}"), benchmaster_nfs_server::ServerConfig::default());
        for flow in [
            "{ op = 'setxattr', file = 'own' }",
            "{ op = 'getxattr', file = 'own' }",
            "{ op = 'listxattr', file = 'own' }",
            "{ op = 'removexattr', file = 'own' }",
            "{ op = 'copy', file = 'own' }",
            "{ op = 'open', file = 'own', flags = ['write'] }, { op = 'allocate', io_size = 100, label = 'failing' }",
            "{ op = 'open', file = 'own' }, { op = 'seek-data', label = 'failing' }",
        ] {
            let recording = bench.try_run(&simple(1.0, 1, flow)).unwrap();
            let failed = recording.series.iter().find(|series| series.total.errors > 0);
            let errors = &failed.unwrap_or_else(|| panic!("{version}: {flow}")).errors;
            assert_eq!(*errors, BTreeMap::from([("EOPNOTSUPP".to_owned(), 1)]), "{version}: {flow}");
        }
        // The rest is there in all versions.
        bench.run(&simple(1.0, 4, BESIDE));
    }
}

#[test]
fn io_uring_does_them_as_system_calls() {
    if !crate::bench::has_uring() {
        eprintln!("skipped: io_uring is not to be had");
        return;
    }
    let mut all = simple(1.0, 4, &format!("{BESIDE}, {{ op = 'copy', file = 'same' }}"));
    all.groups[0].io = benchmaster_record::model::IoMethod::IoUring;
    let mut bench = Bench::new();
    assert_eq!(count(&bench.run(&all), "copy"), 4);
    assert_eq!(bench.names("data/c0").len(), 16);
}
