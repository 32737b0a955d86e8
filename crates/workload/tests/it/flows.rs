//! Repeats, choices, pauses, picks and limits.

use benchmaster_record::recording::StopReason;

use crate::bench::{Bench, count, total, workload};

#[test]
pub(crate) fn nested_repeats_multiply() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 2 }
         filesets.data = { files = 3, size = 100 }
         [[groups]]
         name = 'g'
         flow = [
             { repeat = 3, flow = [
                 { op = 'stat', label = 'outer' },
                 { repeat = 4, flow = [{ op = 'stat', label = 'inner' }] },
                 { repeat = 0, flow = [{ op = 'stat', label = 'never' }] },
             ] },
             { op = 'stat', label = 'after' },
         ]",
    ));
    let counts = ["outer", "inner", "never", "after"].map(|label| count(&recording, label));
    assert_eq!(counts, [6, 24, 0, 2]);
}

#[test]
pub(crate) fn the_last_read_of_a_file_is_as_long_as_what_is_left() {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 6 }
         filesets.data = { files = 3, size = 10000 }
         [[groups]]
         name = 'g'
         flow = [
             { op = 'open', file = 'next' },
             { repeat = 'end-of-file', flow = [{ op = 'read', io_size = 4096 }] },
             { op = 'close' },
         ]",
    ));
    assert_eq!((count(&recording, "read"), total(&recording, "read").bytes), (18, 60_000));
    let reads: Vec<(u64, u32)> =
        trace.iter().filter(|r| r.bytes > 0).map(|r| (r.offset, r.bytes)).take(4).collect();
    assert_eq!(reads, [(0, 4096), (4096, 4096), (8192, 1808), (0, 4096)]);
}

#[test]
pub(crate) fn files_without_bytes_end_at_once() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 40 }
         filesets.data = { files = 40, size = { distribution = 'uniform', min = 0, max = 1 } }
         [[groups]]
         name = 'g'
         flow = [
             { op = 'open', file = 'next' },
             { repeat = 'end-of-file', flow = [{ op = 'read', io_size = 64 }] },
             { op = 'close' },
         ]",
    ));
    assert_eq!(count(&recording, "close"), 40);
    assert_eq!(total(&recording, "read").bytes, recording.filesets[0].bytes);
    assert!((1..40).contains(&count(&recording, "read")), "the draw has files of both sizes");
}

#[test]
pub(crate) fn choices_follow_their_weights() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 4000 }
         filesets.data = { files = 1, size = 100 }
         [[groups]]
         name = 'g'
         flow = [{ choose = [
             { weight = 7.0, flow = [{ op = 'stat', label = 'seven' }] },
             { weight = 2.0, flow = [{ op = 'stat', label = 'two' }, { op = 'stat', label = 'also-two' }] },
             { weight = 1.0, flow = [] },
         ] }]",
    ));
    let [seven, two, also] = ["seven", "two", "also-two"].map(|label| count(&recording, label));
    // Five standard deviations of the binomial distribution; the draw is fixed by the seed besides.
    assert!(seven.abs_diff(2800) < 145, "{seven}");
    assert!(two.abs_diff(800) < 127, "{two}");
    assert_eq!(two, also);
}

#[test]
pub(crate) fn pauses_take_their_time_and_are_no_part_of_operations() {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 8 }
         filesets.data = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = 512 }, { pause = '5ms' }]",
    ));
    assert_eq!(count(&recording, "read"), 8);
    for pair in trace.windows(2) {
        assert!(pair[1].start_ns >= pair[0].start_ns + pair[0].latency_ns + 4_999_000, "{pair:?}");
    }
}

#[test]
pub(crate) fn iterations_and_bytes_limit_each_worker() {
    for (until, reads) in [
        ("iterations = 7", 7),
        ("bytes = '40KiB'", 10),
        ("bytes = '41KiB'", 11),
        ("iterations = 3, bytes = '40KiB'", 3),
    ] {
        let mut bench = Bench::new();
        let recording = bench.run(&workload(&format!(
            "until = {{ {until} }}
             filesets.data = {{ files = 2, size = '16KiB' }}
             [[groups]]
             name = 'g'
             workers = 3
             setup = [{{ op = 'open', file = 'own' }}]
             flow = [{{ op = 'read', io_size = '4KiB' }}]"
        )));
        for worker in &recording.workers {
            assert_eq!((worker.series[0].count, worker.stop), (reads, StopReason::Work), "{until}");
        }
    }
}

#[test]
pub(crate) fn a_byte_limit_lets_the_repetition_end_that_it_ends_in() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { bytes = '12KiB' }
         filesets.data = { files = 1, size = '16KiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own', flags = ['write'] }]
         flow = [{ op = 'write', io_size = '4KiB' }, { op = 'fsync' }]",
    ));
    assert_eq!((count(&recording, "write"), count(&recording, "fsync")), (3, 3));
}

/// Numbers of the files of 7 that have their other name after `iterations` renames by each of 2 workers.
fn renamed(pick: &str, iterations: u64) -> Vec<usize> {
    let mut bench = Bench::new();
    bench.run(&workload(&format!(
        "until = {{ iterations = {iterations} }}
         filesets.data = {{ files = 7, size = 0 }}
         [[groups]]
         name = 'g'
         workers = 2
         flow = [{{ op = 'rename', file = '{pick}' }}]"
    )));
    let names = bench.names("data/c0");
    assert_eq!(names.len(), 7);
    (0..7).filter(|&number| names[number].ends_with(".renamed")).collect()
}

#[test]
pub(crate) fn picks_go_through_the_files_as_they_say() {
    assert_eq!(renamed("own", 1), [0, 1]);
    assert_eq!(renamed("own", 2), [0; 0]);
    assert_eq!(renamed("once", 2), [0, 1, 2, 3]);
    assert_eq!(renamed("once", 9), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(renamed("next", 3), [0, 1, 2, 3, 4, 5]);
    // Shares of 4 and 3 files: the second worker starts over.
    assert_eq!(renamed("next", 4), [0, 2, 3, 4, 5, 6]);
}

#[test]
pub(crate) fn workers_that_share_a_file_start_at_different_places() {
    let mut bench = Bench::new();
    bench.clients = 2;
    let (_, trace) = bench.trace(&workload(
        "until = { iterations = 1 }
         filesets.data = { files = 1, size = '1MiB', sharing = 'shared' }
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = 12288 }]",
    ));
    let mut offsets: Vec<u64> = trace.iter().map(|record| record.offset).collect();
    offsets.sort_unstable();
    // 85 whole reads, a quarter of them apart.
    assert_eq!(offsets, [0, 21 * 12288, 42 * 12288, 63 * 12288]);
}

#[test]
pub(crate) fn random_positions_cover_the_whole_file_and_stay_within_it() {
    let mut bench = Bench::new();
    let (_, trace) = bench.trace(&workload(
        "until = { iterations = 2000 }
         filesets.data = { files = 1, size = 41000 }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = 4096, offset = 'random' }]",
    ));
    let mut counts = [0u32; 10];
    for record in trace {
        assert_eq!((record.offset % 4096, record.bytes), (0, 4096));
        counts[(record.offset / 4096) as usize] += 1;
    }
    // Binomial with mean 200 and standard deviation 13.4.
    assert!(counts.iter().all(|count| (130..270).contains(count)), "{counts:?}");
}

#[test]
pub(crate) fn workers_that_create_remove_and_look_do_not_get_into_each_others_way() {
    let mut bench = Bench::new();
    // However the workers are scheduled, more files exist than are in use: where all are, one in use is taken.
    let recording = bench.run(&workload(
        "until = { iterations = 200 }
         filesets.data = { files = 1000, size = '4KiB', prefill = 0.5 }
         [[groups]]
         name = 'create'
         workers = 2
         flow = [{ op = 'create', flags = ['write', 'exclusive'] }, { op = 'write', io_size = '4KiB' }, { op = 'close' }]
         [[groups]]
         name = 'remove'
         workers = 2
         flow = [{ op = 'unlink', file = 'random' }]
         [[groups]]
         name = 'rename'
         flow = [{ op = 'rename', file = 'random' }]
         [[groups]]
         name = 'look'
         workers = 3
         flow = [{ op = 'open', file = 'random' }, { op = 'close' }, { op = 'stat', file = 'next' }]",
    ));
    let left = 500 + count(&recording, "create") - count(&recording, "unlink");
    assert_eq!(bench.names("data/c0").len() as u64, left);
}
