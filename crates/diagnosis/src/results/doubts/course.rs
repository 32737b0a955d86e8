//! Checks of how a run went: too short, uneven, held up.

use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::results::measured::Measured;
use crate::results::stored::{Could, Stored, always, nothing, when, worth_it};

pub(super) static TOO_FEW_OPERATIONS: Stored = Stored {
    check: "too-few-operations",
    explanation: Explanation {
        id: "too-few-operations",
        group: Group::Doubt,
        title: "Too few operations were done",
        mechanism: "A percentile of a hundred operations rests on the few beyond it, and a mean on what happened to be on at that moment.",
        formula: "found when fewer than 100 operations were done while it was measured",
        source: "the check `too-few-operations`; T. Hoefler and R. Belli, Scientific benchmarking of parallel computing systems (SC '15), rule 4",
    },
    confidence: Confidence::Certain,
    could: always,
    worth: |told| told.number("operations").is_none_or(|operations| operations < 100.0),
    numbers: &[("operations", "operations done", "1")],
    cost: nothing,
    remedy: |_| {
        Remedy::new("Measure longer, or do more work in each run.")
            .by("duration = \"60s\"   # in the workload; or more files, bytes or iterations")
    },
    plot: Some(Plot::Latency),
};

pub(super) static UNEVEN_FINISH: Stored = Stored {
    check: "uneven-finish",
    explanation: Explanation {
        id: "uneven-finish",
        group: Group::Doubt,
        title: "Workers did not end together",
        mechanism: "When some workers are done before the others, the rest runs with less competition. A rate over the whole time is then that of no number of \
                    workers, and is ruled by the slowest.",
        formula: "found when the first worker ended more than 5 % of the time before the last; in doubt = that share of the time",
        source: "the check `uneven-finish`; paper 002, section 6 (few points of synchronisation)",
    },
    confidence: Confidence::Certain,
    could: |measured| when(measured.recording.workers.len() > 1),
    worth: worth_it,
    numbers: &[
        ("early", "share of the time by which the first worker ended before the last", "1"),
        ("gave_up", "workers that gave up after errors", "1"),
    ],
    cost: |told| Some((told.number("early")?, CostOf::Time, "time in which not all workers were at work")),
    remedy: |_| {
        Remedy::new("Let all workers work for a time instead of an amount of work, so that they end together; when they must do an amount, look at the \
                     slowest of them.")
            .by("duration = \"60s\"   # instead of `bytes`, `files` or `iterations` in the workload")
    },
    plot: Some(Plot::Clients),
};

pub(super) static TRACE_STALL: Stored = Stored {
    check: "trace-stall",
    explanation: Explanation {
        id: "trace-stall",
        group: Group::Doubt,
        title: "Writing the trace held workers up",
        mechanism: "Every operation of a traced run becomes a line of a file. When the disk with the results takes them more slowly than they are made, workers \
                    wait for it, and rates are too low.",
        formula: "found when workers waited more than 1 % of their time for the trace to be written; cost = that share",
        source: "the check `trace-stall`; docs/metrics.md, \"Validity checks\"",
    },
    confidence: Confidence::Certain,
    could: |measured| when(measured.run.traces.contains_key(&measured.recording.workload)),
    worth: worth_it,
    numbers: &[("share", "share of the workers' time spent waiting for the trace", "1")],
    cost: |told| Some((told.number("share")?, CostOf::Time, "time in which workers waited for the trace")),
    remedy: |_| {
        Remedy::new("Put the results on a faster disk, away from what is measured, or do without a trace.")
            .by("benchmaster run STUDY.toml -o /dev/shm/results   # or `trace = false`")
    },
    plot: Some(Plot::Time),
};

pub(super) static REPLAY_LEFT_OUT: Stored = Stored {
    check: "replay-left-out",
    explanation: Explanation {
        id: "replay-left-out",
        group: Group::Doubt,
        title: "Not all of the trace was replayed",
        mechanism: "Calls that cannot be replayed, because they are of a kind that is not known or of files that cannot be made, are left out: the load is lighter \
                    than what was recorded.",
        formula: "found when calls on files in the trace were left out; in doubt = left out / (replayed + left out)",
        source: "the check `replay-left-out`; docs/replay.md",
    },
    confidence: Confidence::Certain,
    could: replayed,
    worth: worth_it,
    numbers: &[("left_out", "calls left out", "1"), ("replayed", "calls replayed", "1")],
    cost: |told| {
        let (left_out, replayed) = (told.number("left_out")?, told.number("replayed")?);
        Some((left_out / (left_out + replayed), CostOf::Result, "calls that are missing"))
    },
    remedy: |_| {
        Remedy::new(
            "See which kinds they are; those that move no data seldom matter. Record the trace again from the start of the program, so that all \
                     files are opened in it.",
        )
    },
    plot: None,
};

pub(super) static REPLAY_LATE: Stored = Stored {
    check: "replay-late",
    explanation: Explanation {
        id: "replay-late",
        group: Group::Doubt,
        title: "Calls of the trace were replayed late",
        mechanism: "A replay at recorded times begins calls as late as the calls before them ended late. When that is often, the load is that of what replays, not \
                    of what was recorded.",
        formula: "found when a tenth of the calls began more than 1 ms late",
        source: "the check `replay-late`; docs/replay.md",
    },
    confidence: Confidence::Certain,
    could: replayed,
    worth: worth_it,
    numbers: &[
        ("median_ns", "lateness, median", "ns"),
        ("p90_ns", "lateness, exceeded by a tenth", "ns"),
        ("p99_ns", "lateness, exceeded by a hundredth", "ns"),
        ("max_ns", "lateness, most", "ns"),
    ],
    cost: nothing,
    remedy: |_| {
        Remedy::new(
            "If the target is slower than what was recorded, this is the result: compare latencies. Else replay from a host with more idle \
                     processors, or more slowly.",
        )
    },
    plot: Some(Plot::Latency),
};

fn replayed(measured: &Measured<'_>) -> Could {
    let study = measured.study().workloads.iter();
    when(
        study
            .into_iter()
            .any(|workload| workload.name == measured.recording.workload && workload.use_name == "replay"),
    )
}
