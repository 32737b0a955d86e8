//! Workers that wait for each other inside a workload.

use benchmaster_record::model::Workload;
use benchmaster_record::recording::{Recording, StopReason, TraceRecord};

use crate::bench::{Bench, count, has_uring, series, workload};

/// Start and end of the `round`-th operation of a series by each worker that did so many.
fn spans(recording: &Recording, trace: &[TraceRecord], label: &str, round: usize) -> Vec<(u64, u64)> {
    let number = recording.series.iter().position(|series| series.key.label == label).unwrap();
    let of = |worker: usize| {
        trace
            .iter()
            .filter(move |record| usize::from(record.series) == number && record.worker as usize == worker)
            .nth(round)
            .map(|record| (record.start_ns, record.start_ns + record.latency_ns))
    };
    (0..recording.workers.len()).filter_map(of).collect()
}

/// Every worker's operation of one kind is over before any worker's of another kind begins.
fn assert_before(before: &[(u64, u64)], after: &[(u64, u64)], what: &str) {
    // A time is cut to whole nanoseconds twice.
    let last = before.iter().map(|(_, end)| end).max().unwrap();
    let first = after.iter().map(|(start, _)| start).min().unwrap();
    assert!(*last <= first + 2, "{what}: {before:?} {after:?}");
}

/// Two groups on all clients, in step twice in each repetition.
fn in_step(repetitions: u64, io: &str) -> Workload {
    workload(&format!(
        "until = {{ iterations = {repetitions} }}
         trace = true
         filesets.data = {{ files = 4, size = '4KiB' }}
         [[groups]]
         name = 'one'
         workers = 3
         io = '{io}'
         setup = [{{ op = 'open', file = 'own' }}, {{ meet = 'opened' }}]
         flow = [
             {{ op = 'read', label = 'first', io_size = '4KiB' }},
             {{ meet = 'between' }},
             {{ op = 'stat', label = 'second', file = 'own' }},
             {{ meet = 'end' }},
         ]
         [[groups]]
         name = 'other'
         workers = 2
         flow = [
             {{ op = 'stat', label = 'third', file = 'own' }},
             {{ meet = 'between' }},
             {{ op = 'stat', label = 'fourth', file = 'own' }},
             {{ meet = 'end' }},
         ]"
    ))
}

fn check_in_step(bench: &mut Bench, io: &str) {
    bench.clients = 2;
    let (recording, trace) = bench.trace(&in_step(25, io));
    for round in 0..25 {
        let of =
            |labels: [&str; 2], round| labels.map(|label| spans(&recording, &trace, label, round)).concat();
        let (before, after) = (of(["first", "third"], round), of(["second", "fourth"], round));
        assert_eq!((before.len(), after.len()), (10, 10));
        assert_before(&before, &after, &format!("round {round}"));
        if round > 0 {
            assert_before(&of(["second", "fourth"], round - 1), &before, &format!("start of round {round}"));
        }
    }
}

#[test]
pub(crate) fn workers_of_all_groups_and_clients_keep_in_step() {
    check_in_step(&mut Bench::new(), "sync");
}

#[test]
fn workers_on_io_uring_keep_in_step() {
    if has_uring() {
        check_in_step(&mut Bench::new(), "io_uring")
    } else {
        println!("skipped: the system allows no io_uring")
    }
}

#[test]
fn streams_of_one_worker_meet_in_the_set_up() {
    if !has_uring() {
        println!("skipped: the system allows no io_uring");
        return;
    }
    let recording = Bench::new().run(&workload(
        "until = { iterations = 64 }
         filesets.data = { files = 2, size = '64KiB' }
         [[groups]]
         name = 'g'
         workers = 2
         queue_depth = 8
         io = 'io_uring'
         setup = [{ op = 'open', file = 'own' }, { meet = 'opened' }]
         flow = [{ op = 'read', io_size = '4KiB' }]",
    ));
    assert_eq!(count(&recording, "read"), 128);
}

#[test]
pub(crate) fn workers_that_have_ended_are_not_waited_for() {
    let recording = Bench::new().run(&workload(
        "until = { iterations = 30 }
         filesets.few = { files = 5, size = 0 }
         filesets.data = { files = 1, size = 0 }
         [[groups]]
         name = 'short'
         flow = [{ op = 'stat', label = 'few', fileset = 'few', file = 'once' }, { meet = 'both' }]
         [[groups]]
         name = 'long'
         flow = [{ op = 'stat', label = 'many', fileset = 'data' }, { meet = 'both' }]",
    ));
    assert_eq!((count(&recording, "few"), count(&recording, "many")), (5, 30));
    let stops: Vec<StopReason> = recording.workers.iter().map(|worker| worker.stop).collect();
    assert_eq!(stops, [StopReason::Work; 2]);
}

#[test]
pub(crate) fn a_failed_operation_does_not_put_workers_out_of_step() {
    let mut bench = Bench::new();
    bench.max_errors = 1000;
    // The file of worker 1 does not exist, so that all it does fails.
    let recording = bench
        .try_run(&workload(
            "until = { iterations = 10 }
             filesets.data = { files = 2, size = '4KiB', prefill = 0.5 }
             [[groups]]
             name = 'g'
             workers = 2
             flow = [
                 { op = 'open', file = 'own' },
                 { repeat = 3, flow = [{ op = 'read', io_size = '4KiB' }, { meet = 'loop' }] },
                 { op = 'close' },
                 { meet = 'end' },
             ]",
        ))
        .unwrap();
    let counts = |label: &str| {
        let total = &series(&recording, label).total;
        (total.count, total.errors)
    };
    // After its failed open the worker goes on at the first meeting of the repeat; nothing is open to be read after it.
    assert_eq!(counts("open"), (10, 10));
    assert_eq!(counts("read"), (30, 20));
    assert_eq!(counts("close"), (10, 10));
}

#[test]
pub(crate) fn meetings_end_with_their_phase() {
    let recording = Bench::new().run(&workload(
        "until = { duration = '40ms' }
         warm_up = '30ms'
         filesets.data = { files = 2, size = 0 }
         [[groups]]
         name = 'quick'
         flow = [{ op = 'stat', label = 'quick', file = 'own' }, { meet = 'both' }]
         [[groups]]
         name = 'slow'
         flow = [{ op = 'stat', label = 'slow', file = 'own' }, { pause = '7ms' }, { meet = 'both' }]",
    ));
    let (quick, slow) = (count(&recording, "quick"), count(&recording, "slow"));
    assert!(quick.abs_diff(slow) <= 1, "{quick} {slow}");
    let recording = Bench::new().run(&workload(
        "until = { duration = '30ms' }
         filesets.data = { files = 2, size = 0 }
         [[groups]]
         name = 'alone'
         flow = [{ op = 'stat', file = 'own' }, { take = 'tokens', count = 1000000 }]
         [[groups]]
         name = 'poster'
         flow = [{ op = 'stat', label = 'other', file = 'own' }, { post = 'tokens' }, { pause = '1h' }]",
    ));
    assert_eq!((count(&recording, "stat"), count(&recording, "other")), (1, 1));
}

#[test]
pub(crate) fn counters_keep_makers_and_takers_together() {
    let mut bench = Bench::new();
    bench.clients = 2;
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 60 }
         trace = true
         filesets.data = { files = 4, size = 0 }
         [[groups]]
         name = 'makers'
         workers = 2
         flow = [{ op = 'stat', label = 'make', file = 'own' }, { post = 'made', limit = 3 }]
         [[groups]]
         name = 'takers'
         flow = [{ take = 'made', count = 2 }, { op = 'stat', label = 'use', file = 'own' }]",
    ));
    // Each client makes 120 and uses 2 at a time, 60 times.
    assert_eq!((count(&recording, "make"), count(&recording, "use")), (240, 120));
    for client in 0..2 {
        let of = |label: &str| -> Vec<u64> {
            let number = recording.series.iter().position(|series| series.key.label == label).unwrap();
            let own = |record: &&TraceRecord| {
                usize::from(record.series) == number
                    && recording.workers[record.worker as usize].client == client
            };
            let mut times: Vec<u64> = trace
                .iter()
                .filter(own)
                .map(|record| match label {
                    "make" => record.start_ns + record.latency_ns,
                    _ => record.start_ns,
                })
                .collect();
            times.sort_unstable();
            times
        };
        let (made, used) = (of("make"), of("use"));
        for (number, start) in used.iter().enumerate() {
            assert!(made[2 * number + 1] <= start + 2, "use {number} before what it needs was made");
        }
    }
}

#[test]
pub(crate) fn who_takes_is_done_when_nobody_is_left_who_posts() {
    let recording = Bench::new().run(&workload(
        "until = { iterations = 10 }
         filesets.few = { files = 3, size = 0 }
         filesets.data = { files = 1, size = 0 }
         [[groups]]
         name = 'maker'
         setup = [{ post = 'made', count = 2 }]
         flow = [{ op = 'stat', label = 'make', fileset = 'few', file = 'once' }, { post = 'made' }]
         [[groups]]
         name = 'taker'
         flow = [{ take = 'made' }, { op = 'stat', label = 'use', fileset = 'data' }]",
    ));
    assert_eq!((count(&recording, "make"), count(&recording, "use")), (3, 5));
}

#[test]
pub(crate) fn steps_are_repeated_for_a_time() {
    let (recording, trace) = Bench::new().trace(&workload(
        "until = { iterations = 2 }
         trace = true
         filesets.data = { files = 1, size = 0 }
         [[groups]]
         name = 'g'
         flow = [{ repeat = { duration = '20ms' }, flow = [{ op = 'stat' }] }, { op = 'readdir' }]",
    ));
    assert_eq!(count(&recording, "readdir"), 2);
    let readdir = recording.series.iter().position(|series| series.key.label == "readdir").unwrap();
    let ends: Vec<u64> = trace
        .iter()
        .filter(|record| usize::from(record.series) == readdir)
        .map(|record| record.start_ns)
        .collect();
    assert!(ends[0] >= 19_900_000 && ends[1] >= ends[0] + 19_900_000, "{ends:?}");
    assert!(count(&recording, "stat") >= 2);
}

#[test]
pub(crate) fn every_client_goes_through_all_files() {
    let mut bench = Bench::new();
    bench.clients = 3;
    let recording = bench.run(&workload(
        "until = { iterations = 4 }
         filesets.data = { files = 8, size = 0, sharing = 'shared', prefill = 0.0 }
         [[groups]]
         name = 'maker'
         clients = { first = 0, last = 0 }
         workers = 2
         flow = [{ op = 'create', file = 'every', flags = ['exclusive'] }, { op = 'close' }, { meet = 'made' }]
         [[groups]]
         name = 'removers'
         clients = { first = 1, last = 1 }
         workers = 2
         flow = [{ meet = 'made' }, { op = 'unlink', file = 'every' }]",
    ));
    assert_eq!((count(&recording, "create"), count(&recording, "unlink")), (8, 8));
    assert!(bench.names("data/shared").is_empty());
}
