//! Checks of how a run went: too short, uneven, delayed by its own trace.

use benchmaster_record::recording::StopReason;
use benchmaster_record::results::{Check, CheckKind, Evidence, Severity};

use super::rule::{Consequence, Follows, Rule, Subject, always, any, failed, nothing, when};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Need, Plot, Remedy};
use crate::words::percent;

pub(crate) static TOO_FEW_OPERATIONS: Rule = Rule {
    kind: CheckKind::TooFewOperations,
    explanation: Explanation {
        id: "too-few-operations",
        group: Group::Doubt,
        title: "Too few operations were done",
        mechanism: "A high percentile of a hundred operations rests on one or two of them, and a mean on whatever else happened at that moment.",
        formula: "found when fewer than 100 operations were done in the measured phase",
        source: "the check `too-few-operations`; T. Hoefler and R. Belli, Scientific benchmarking of parallel computing systems (SC '15), rule 4",
    },
    check: too_few_operations,
    remedy: |_| {
        Remedy::new("Measure longer, or do more work in each run.")
            .by(Need::Anywhere, "duration = \"60s\"   # in the workload; or more files, bytes or iterations")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: always,
        worth: |failed| failed.number("operations").is_none_or(|operations| operations < 100.0),
        numbers: &[("operations", "operations done")],
        cost: nothing,
        plot: Some(Plot::Latency),
    }),
};

fn too_few_operations(s: Subject<'_>) -> Option<Check> {
    const ENOUGH: u64 = 100;
    let count: u64 = s.recording.series.iter().map(|series| series.total.count).sum();
    if count >= ENOUGH {
        return None;
    }
    let message = format!("Only {count} operations were done: percentiles mean little.");
    let evidence = [Evidence::number("operations", count as f64)];
    failed(s, CheckKind::TooFewOperations, Severity::Warning, message, evidence)
}

pub(crate) static UNEVEN_FINISH: Rule = Rule {
    kind: CheckKind::UnevenFinish,
    explanation: Explanation {
        id: "uneven-finish",
        group: Group::Doubt,
        title: "Workers did not end together",
        mechanism: "When some workers finish before the others, the rest runs with less competition. A rate over the whole time is then that of no particular number \
                    of workers, and the slowest determines it.",
        formula: "found when the first worker ended more than 5 % of the time before the last; in doubt = that share of the time",
        source: "the check `uneven-finish`; paper 002, section 6 (few points of synchronisation)",
    },
    check: uneven_finish,
    remedy: |_| {
        Remedy::new("Let all workers work for a time instead of an amount of work, so that they end together; if the amount must be fixed, report the slowest worker.")
            .by(Need::Anywhere, "duration = \"60s\"   # instead of `bytes`, `files` or `iterations` in the workload")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| when(measured.recording.workers.len() > 1),
        worth: any,
        numbers: &[
            ("early", "share of the time by which the first worker ended before the last"),
            ("gave_up", "workers that gave up after errors"),
        ],
        cost: |failed| {
            Some((failed.number("early")?, CostOf::Time, "time in which not all workers were working"))
        },
        plot: Some(Plot::Clients),
    }),
};

fn uneven_finish(s: Subject<'_>) -> Option<Check> {
    // Workers that only hold files open end at once.
    let holds = |group: &str| s.workload.groups.iter().any(|g| g.name == group && g.flow.is_empty());
    let workers = || s.recording.workers.iter().filter(|worker| !holds(&worker.group));
    let length = workers().map(|worker| worker.end_ns).max()?;
    let gave_up = workers().filter(|worker| worker.stop == StopReason::Errors).count();
    let earliest = workers().map(|worker| worker.end_ns).min()?;
    let early = 1.0 - earliest as f64 / length.max(1) as f64;
    if early <= 0.05 {
        return None;
    }
    let why = if gave_up > 0 { format!("; {gave_up} gave up after errors") } else { String::new() };
    let message = format!(
        "Workers did not finish together: the first ended {} of the time before the last, so the end was measured with \
         fewer{why}.",
        percent(early)
    );
    let evidence = [Evidence::number("early", early), Evidence::number("gave_up", gave_up as f64)];
    failed(s, CheckKind::UnevenFinish, Severity::Warning, message, evidence)
}

pub(crate) static TRACE_STALL: Rule = Rule {
    kind: CheckKind::TraceStall,
    explanation: Explanation {
        id: "trace-stall",
        group: Group::Doubt,
        title: "Writing the trace delayed the workers",
        mechanism: "Every operation of a traced run becomes a record in a file. When the disk with the results is slower than the workers, they wait for it, and \
                    rates are too low.",
        formula: "found when workers waited more than 1 % of their time for the trace to be written; cost = that share",
        source: "the check `trace-stall`; docs/metrics.md, \"Validity checks\"",
    },
    check: trace_stall,
    remedy: |_| {
        Remedy::new("Put the results on a faster disk, away from what is measured, or run without a trace.")
            .by(Need::Anywhere, "benchmaster run STUDY.toml -o /dev/shm/results   # or `trace = false`")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| when(measured.run.traces.contains_key(&measured.recording.workload)),
        worth: any,
        numbers: &[("share", "share of the workers' time spent waiting for the trace")],
        cost: |failed| {
            Some((failed.number("share")?, CostOf::Time, "time in which workers waited for the trace"))
        },
        plot: Some(Plot::Time),
    }),
};

fn trace_stall(s: Subject<'_>) -> Option<Check> {
    let workers = s.recording.workers.len().max(1) as f64;
    let share = s.recording.host.trace_stall_ns as f64 / (workers * s.recording.length_ns.max(1) as f64);
    if share <= 0.01 {
        return None;
    }
    let message = format!(
        "Workers waited {} of the time for the trace to be written: rates are too low.",
        percent(share)
    );
    failed(s, CheckKind::TraceStall, Severity::Warning, message, [Evidence::number("share", share)])
}
