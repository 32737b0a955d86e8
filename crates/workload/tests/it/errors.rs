//! Operations that fail, and targets that cannot be used.

use std::collections::BTreeMap;

use benchmaster_record::recording::StopReason;
use benchmaster_workload::area::AreaError;
use benchmaster_workload::execute::ExecuteError;

use crate::bench::{Bench, check_sums, count, series, workload};

#[test]
pub(crate) fn failed_writes_are_counted_by_name_and_workers_give_up() {
    let mut bench = Bench::new();
    // A file whose every write fails for want of space.
    let file = bench.path("data/c0/f00000000");
    bench.hook(format!("rm {0} && ln -s /dev/full {0}", file.display()));
    let recording = bench
        .try_run(&workload(
            "until = { duration = '10min' }
             filesets.data = { files = 2, size = '64KiB' }
             [[groups]]
             name = 'g'
             workers = 1
             setup = [{ op = 'open', file = 'own', flags = ['write'] }]
             flow = [{ op = 'write', io_size = '4KiB' }]",
        ))
        .unwrap();
    check_sums(&recording);
    let written = series(&recording, "write");
    assert_eq!((written.total.count, written.total.bytes, written.total.errors), (0, 0, 10));
    assert_eq!(written.errors, BTreeMap::from([("ENOSPC".to_owned(), 10)]));
    let expected = "write data/c0/f00000000, offset 0: No space left on device (os error 28)";
    assert_eq!(recording.error_details[0], expected);
    assert_eq!(recording.workers[0].stop, StopReason::Errors);
}

#[test]
pub(crate) fn the_limit_of_errors_counts_errors_in_a_row() {
    let mut bench = Bench::new();
    bench.max_errors = 2;
    let recording = bench
        .try_run(&workload(
            "until = { iterations = 20 }
             filesets.here = { files = 1, size = 0 }
             filesets.gone = { files = 1, size = 0, prefill = 0.0 }
             [[groups]]
             name = 'g'
             flow = [{ op = 'stat', fileset = 'here', label = 'good' }, { op = 'stat', fileset = 'gone', file = 'own', label = 'bad' }]",
        ))
        .unwrap();
    assert_eq!((count(&recording, "good"), series(&recording, "bad").total.errors), (20, 20));
    assert_eq!(recording.workers[0].stop, StopReason::Work);
    assert_eq!(recording.error_details.len(), 20);
}

#[test]
pub(crate) fn files_that_vanish_are_errors_and_hang_nobody() {
    let mut bench = Bench::new();
    bench.hook(format!("rm -r {}", bench.path("data").display()));
    let text = "until = { duration = '10min' }
         filesets.data = { files = 20, size = '4KiB' }
         [[groups]]
         name = 'g'
         workers = 3
         flow = [{ op = 'open', file = 'random' }, { op = 'read', io_size = '4KiB' }, { op = 'close' }]";
    let recording = bench.try_run(&workload(text)).unwrap();
    let opened = series(&recording, "open");
    assert_eq!((opened.total.count, opened.total.errors), (0, 30), "ten for each worker");
    assert_eq!(opened.errors, BTreeMap::from([("ENOENT".to_owned(), 30)]));
    assert!(recording.workers.iter().all(|worker| worker.stop == StopReason::Errors));
    assert_eq!(
        (count(&recording, "read"), count(&recording, "close")),
        (0, 0),
        "the rest of the flow is skipped"
    );

    bench.hook = None;
    bench.area.begin_run(true).unwrap();
    let text = text.replace("duration = '10min'", "iterations = 5");
    assert_eq!(count(&bench.run(&workload(&text)), "close"), 15, "the next run makes the files anew");
}

#[test]
pub(crate) fn a_read_that_ends_early_is_an_error() {
    let mut bench = Bench::new();
    bench.hook(format!("truncate -s 6000 {}", bench.path("data/c0/f00000000").display()));
    let recording = bench
        .try_run(&workload(
            "until = { iterations = 3 }
             filesets.data = { files = 1, size = 12000 }
             [[groups]]
             name = 'g'
             setup = [{ op = 'open', file = 'own' }]
             flow = [{ op = 'read', io_size = 4000 }]",
        ))
        .unwrap();
    let read = series(&recording, "read");
    assert_eq!((read.total.count, read.total.bytes), (1, 4000));
    assert_eq!(read.errors, BTreeMap::from([("short".to_owned(), 2)]));
    assert_eq!(
        recording.error_details[0],
        "read data/c0/f00000000, offset 4000: only 2000 of 4000 bytes were moved"
    );
}

#[test]
pub(crate) fn a_handle_whose_file_could_not_be_opened_is_bad() {
    let mut bench = Bench::new();
    let recording = bench
        .try_run(&workload(
            "until = { iterations = 1 }
             filesets.data = { files = 1, size = '4KiB' }
             [[groups]]
             name = 'g'
             setup = [{ op = 'open', file = 'own' }]
             flow = [{ op = 'close' }, { op = 'read', io_size = '4KiB' }]",
        ))
        .unwrap();
    assert_eq!(series(&recording, "read").errors, BTreeMap::from([("EBADF".to_owned(), 1)]));
}

#[test]
pub(crate) fn a_target_without_space_says_how_much_is_needed_and_free() {
    let mut bench = Bench::new();
    let text = "until = { iterations = 1 }
         filesets.data = { files = 3, size = '1000TiB' }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]";
    let error = bench.try_run(&workload(text)).unwrap_err();
    let ExecuteError::Area(AreaError::NoSpace { fileset, needed, free, path }) = &error else {
        panic!("{error}")
    };
    assert_eq!((fileset.as_str(), *needed, path.as_path()), ("data", 3000 << 40, bench.target.path()));
    assert!(*free > 0);
    let text = error.to_string();
    assert!(text.starts_with("fileset `data` needs 3298534883328000 bytes and `"), "{text}");
    assert!(text.contains(&format!("has {free} bytes free; make it smaller")), "{text}");
    assert_eq!(bench.names("."), [".benchmaster"], "nothing was begun");
}

#[test]
pub(crate) fn a_workload_that_makes_no_sense_names_every_place() {
    let mut bench = Bench::new();
    let error = bench.try_run(&workload(
        "filesets.data = { files = 1, size = 0 }
         filesets.other = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         queue_depth = 4
         flow = [
             { op = 'read', io_size = '4KiB' },
             { op = 'open', fileset = 'data', file = 'own', flags = ['exclusive', 'append'] },
             { op = 'write', io_size = '4KiB' },
             { op = 'open', fileset = 'other', handle = 'o', flags = ['write-only'] },
             { op = 'read', handle = 'o', offset = 'append', io_size = '4KiB' },
             { op = 'stat', file = 'new' },
             { pause = '1ms', label = 'x' },
         ]",
    ));
    let Err(ExecuteError::Workload(errors)) = error else { panic!("{error:?}") };
    let found: Vec<(&str, &str)> = errors.iter().map(|e| (e.path.as_str(), e.message.as_str())).collect();
    for expected in [
        ("groups[0].queue_depth", "a queue depth above 1 needs asynchronous I/O"),
        ("groups[0].flow", "with a queue depth above 1 the flow may only hold reads and writes"),
        ("until", "nothing ends the group `g`"),
        ("groups[0].flow[0]", "`read` comes before any `open` or `create` of its handle"),
        ("groups[0].flow[1].flags", "`exclusive` is about files that are created"),
        ("groups[0].flow[1].flags", "`append` needs a file opened for writing"),
        ("groups[0].flow[2]", "`write` needs a handle opened for writing"),
        ("groups[0].flow[4]", "`read` needs a handle opened for reading"),
        ("groups[0].flow[4].offset", "there is nothing to read at the end"),
        ("groups[0].flow[5]", "the workload has several filesets, and the step names none"),
        ("groups[0].flow[5].file", "`new` yields a file that does not exist, and `stat` needs one"),
        ("groups[0].flow[6].label", "`label` belongs to an operation, and this step has no `op`"),
    ] {
        assert!(found.contains(&expected), "{expected:?} is not among {found:#?}");
    }
    assert_eq!(bench.names("."), [".benchmaster"], "nothing was begun");
}
