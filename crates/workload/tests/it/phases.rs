//! Warm-up, open loop, stopping, set-up that fails.

use benchmaster_record::phase::Phase;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use benchmaster_record::recording::TraceRecord;
use benchmaster_workload::execute::ExecuteError;

use crate::bench::{Bench, count, has_uring, series, workload};

#[test]
pub(crate) fn the_warm_up_is_not_recorded() {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 10 }
         warm_up = '20ms'
         filesets.data = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = '4KiB' }]",
    ));
    assert_eq!((count(&recording, "read"), trace.len()), (10, 10));
    let names: Vec<Phase> = recording.phases.iter().map(|phase| phase.phase).collect();
    assert_eq!(names, [Phase::Prepare, Phase::WarmUp, Phase::Measure, Phase::TearDown]);
    let warm_up = &recording.phases[1];
    assert!(warm_up.operations > 0 && warm_up.start_ns <= -20_000_000, "{warm_up:?}");
    assert!(recording.phases.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
    assert_eq!(recording.phases[2].start_ns, 0);
}

#[test]
pub(crate) fn the_measured_phase_takes_up_the_flow_where_the_warm_up_left_it() {
    let mut bench = Bench::new();
    // Begun anew after any other step than the last, the creation would fail.
    let recording = bench.run(&workload(
        "until = { iterations = 20 }
         warm_up = '25ms'
         filesets.data = { files = 2, size = 0, prefill = 0.0 }
         [[groups]]
         name = 'g'
         workers = 2
         flow = [
             { op = 'create', file = 'own', flags = ['write', 'exclusive'] },
             { pause = '1ms' },
             { repeat = 3, flow = [{ pause = '1ms' }, { op = 'stat', file = 'own' }] },
             { op = 'close' },
             { op = 'unlink', file = 'same' },
         ]",
    ));
    assert_eq!(count(&recording, "create"), 40);
    assert!(bench.names("data/c0").is_empty());
}

#[test]
pub(crate) fn a_lock_held_at_the_end_of_the_warm_up_hangs_nobody() {
    for unlocks in [true, false] {
        let mut bench = Bench::new();
        let unlock = if unlocks { ", { op = 'unlock' }" } else { "" };
        let flow = format!(
            "{{ op = 'lock', lock = 'write' }}, {{ pause = '1ms' }}, {{ op = 'stat', file = 'own' }}{unlock}"
        );
        let recording = bench.run(&workload(&format!(
            "until = {{ duration = '200ms' }}
             warm_up = '20ms'
             filesets.data = {{ files = 1, size = '4KiB' }}
             [[groups]]
             name = 'g'
             workers = 2
             setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
             flow = [{flow}]"
        )));
        assert!(count(&recording, "lock") > 0);
    }
}

/// Requests of one worker, 1 ms apart, that take at least 4 ms of waiting each before they start.
fn late_requests() -> (u64, u64, Vec<TraceRecord>) {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 20 }
         filesets.data = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         rate = '1000/s'
         flow = [{ pause = '4ms' }, { op = 'stat', file = 'own' }]",
    ));
    let stat = series(&recording, "stat");
    let service = stat.service.as_ref().unwrap().decode().unwrap();
    let service_sum = service.iter_recorded().map(|v| v.value_iterated_to() * v.count_at_value()).sum();
    (stat.total.sum_ns, service_sum, trace)
}

#[test]
pub(crate) fn in_an_open_loop_latency_counts_from_the_intended_start() {
    let (response, service, trace) = late_requests();
    for (number, record) in (0u64..).zip(&trace) {
        let intended = number * 1_000_000;
        assert!(record.start_ns.abs_diff(intended) < 1000, "{number}: {record:?}");
        // All pauses up to this one have passed since the start.
        assert!(record.start_ns + record.latency_ns >= (number + 1) * 4_000_000, "{number}: {record:?}");
    }
    let waited: u64 = (0..20).map(|number| (number + 1) * 4_000_000 - number * 1_000_000).sum();
    // The service time is known to 1 %.
    assert!(response >= waited + service - service / 50, "{response} {waited} {service}");
}

#[test]
pub(crate) fn an_open_loop_keeps_its_rate() {
    let mut bench = Bench::new();
    let text = |until: &str| {
        format!(
            "until = {{ {until} }}
             filesets.data = {{ files = 1, size = '4KiB' }}
             [[groups]]
             name = 'g'
             workers = 2
             rate = '200/s'
             flow = [{{ op = 'stat', file = 'own' }}]"
        )
    };
    let (recording, mut trace) = bench.trace(&workload(&text("iterations = 10")));
    trace.sort_by_key(|record| record.start_ns);
    for (number, record) in (0u64..).zip(&trace) {
        assert!(record.start_ns.abs_diff(number * 5_000_000) < 1000, "workers take turns: {record:?}");
        assert_eq!(u64::from(record.worker), number % 2);
    }
    assert_eq!(count(&recording, "stat"), 20);
    assert!(recording.length_ns >= 95_000_000);

    let recording = bench.run(&workload(&text("duration = '100ms'")));
    // A machine that is held up does not start all, but never more.
    assert!((1..=20).contains(&count(&recording, "stat")), "{}", count(&recording, "stat"));
}

#[test]
pub(crate) fn a_long_run_can_be_stopped_wherever_it_is() {
    let flow = |rest: &str, flow: &str| {
        format!(
            "until = {{ duration = '10min' }}
             filesets.data = {{ files = 2, size = '64KiB' }}
             [[groups]]
             name = 'g'
             workers = 2
             setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
             {rest}
             flow = [{flow}]"
        )
    };
    let read = "{ op = 'read', io_size = '4KiB' }";
    let mut cases = vec![
        (Phase::Measure, flow("", read)),
        (Phase::Measure, flow("rate = '0.01/s'", read)),
        (Phase::Measure, flow("", "{ pause = '9min' }")),
        (Phase::Measure, flow("", "{ choose = [{ weight = 1.0, flow = [] }] }")),
        (Phase::WarmUp, format!("warm_up = '9min'\n{}", flow("", read))),
        (
            Phase::Prepare,
            flow("", read).replace("flags = ['write'] }", "flags = ['write'] }, { pause = '9min' }"),
        ),
    ];
    if has_uring() {
        cases.push((Phase::Measure, flow("io = 'io_uring'\nqueue_depth = 4", read)));
        cases.push((Phase::Measure, flow("io = 'io_uring'\nqueue_depth = 4\nrate = '0.01/s'", read)));
    }
    for (phase, text) in cases {
        let mut bench = Bench::new();
        let began = Instant::now();
        let result = bench.watch(&workload(&text), |progress, stop| {
            // Not at the very beginning: workers must be at work.
            if progress.phase == phase && progress.elapsed > Duration::from_millis(50) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(matches!(result, Err(ExecuteError::Stopped)), "{phase}: {text}: {result:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{phase}: {text}");
    }
}

#[test]
pub(crate) fn preparation_can_be_stopped() {
    let mut bench = Bench::new();
    bench.stop.store(true, Ordering::Relaxed);
    let text = "until = { iterations = 1 }
         filesets.data = { files = 1000, size = 0 }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]";
    assert!(matches!(bench.try_run(&workload(text)), Err(ExecuteError::Stopped)));
    bench.stop.store(false, Ordering::Relaxed);
    let recording = bench.run(&workload(text));
    assert_eq!(
        (recording.filesets[0].reused, recording.filesets[0].files),
        (false, 1000),
        "half a fileset is none"
    );
}

#[test]
pub(crate) fn a_worker_that_cannot_be_set_up_fails_the_run() {
    let mut bench = Bench::new();
    let group = |name: &str, file: &str| {
        format!(
            "[[groups]]
             name = '{name}'
             workers = 2
             setup = [{{ op = 'open', fileset = '{file}', file = 'own' }}]
             flow = [{{ op = 'read', io_size = '4KiB' }}]\n"
        )
    };
    let text = format!(
        "until = {{ duration = '10min' }}
         filesets.here = {{ files = 2, size = '4KiB' }}
         filesets.not-here = {{ files = 2, size = '4KiB', prefill = 0.0 }}
         {}{}",
        group("fine", "here"),
        group("broken", "not-here")
    );
    let error = bench.try_run(&workload(&text)).unwrap_err().to_string();
    let expected = "a worker of group `broken` could not be set up: not-here/c0/f0000000";
    assert!(
        error.starts_with(expected) && error.ends_with("No such file or directory (os error 2)"),
        "{error}"
    );
}

#[test]
pub(crate) fn a_set_up_without_a_file_to_pick_fails_the_run() {
    let mut bench = Bench::new();
    let error = bench.try_run(&workload(
        "until = { duration = '10min' }
         filesets.data = { files = 2, size = '4KiB', prefill = 0.0 }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'random' }]
         flow = [{ op = 'read', io_size = '4KiB' }]",
    ));
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "a worker of group `g` could not be set up: there is no file to pick");
}

#[test]
pub(crate) fn no_worker_starts_before_the_common_instant() {
    let mut bench = Bench::new();
    bench.clients = 3;
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 1 }
         filesets.data = { files = 1, size = '4KiB', sharing = 'shared' }
         [[groups]]
         name = 'g'
         workers = 4
         flow = [{ op = 'stat' }]",
    ));
    // Times are unsigned and 0 when they would be negative: an operation that began before would end before, too.
    assert!(trace.iter().all(|record| record.start_ns + record.latency_ns > 0));
    assert!(recording.workers.iter().all(|worker| worker.start_ns < worker.end_ns));
    assert_eq!(recording.workers.len(), 12);
    let places: Vec<(u32, u32)> =
        recording.workers.iter().map(|worker| (worker.client, worker.worker)).collect();
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
}

#[test]
pub(crate) fn tear_down_is_done_and_its_errors_are_reported() {
    let mut bench = Bench::new();
    let text = |teardown: &str| {
        format!(
            "until = {{ iterations = 1 }}
             filesets.data = {{ files = 1, size = '4KiB' }}
             [[groups]]
             name = 'g'
             setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
             flow = [{{ op = 'write', io_size = '4KiB' }}]
             teardown = [{teardown}]"
        )
    };
    let recording =
        bench.run(&workload(&text("{ op = 'fsync' }, { op = 'close' }, { op = 'unlink', file = 'same' }")));
    let torn_down = recording.phases.last().unwrap();
    assert_eq!((torn_down.phase, torn_down.operations), (Phase::TearDown, 3));
    assert!(bench.names("data/c0").is_empty());
    bench.area.begin_run(true).unwrap();
    let recording = bench.try_run(&workload(&text("{ op = 'close' }, { op = 'fsync' }"))).unwrap();
    let torn_down = recording.phases.last().unwrap();
    assert_eq!((torn_down.operations, torn_down.errors), (1, 1));
    assert_eq!(recording.error_details, ["tear-down: data/c0/f00000000: Bad file descriptor (os error 9)"]);
}
