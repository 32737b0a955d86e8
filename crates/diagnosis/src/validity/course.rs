//! Checks of how a run went: too short, uneven, delayed by its own trace.

use benchmaster_record::recording::StopReason;

use crate::prelude::*;

pub(crate) static TOO_FEW_OPERATIONS: Rule = Rule {
    check: too_few_operations,
    finding: Follows::Finding(Consequence {
        worth: |failed| failed.number("operations").is_none_or(|operations| operations < 100.0),
        numbers: &[("operations", "operations done")],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::TooFewOperations)
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
    check: uneven_finish,
    remedy: Some(|check| {
        let timed = check.number("timed") == Some(1.0);
        case("uneven-finish", if timed { "timed" } else { "work" })
    }),
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.recording.workers.len() > 1),
        numbers: &[
            ("early", "share of the time by which the first worker ended before the last"),
            ("gave_up", "workers that gave up after errors"),
        ],
        cost: |failed| failed.number("early"),
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::UnevenFinish)
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
    let timed = workers().all(|worker| worker.stop == StopReason::Time);
    let evidence = [
        Evidence::number("early", early),
        Evidence::number("gave_up", gave_up as f64),
        Evidence::number("timed", f64::from(u8::from(timed))),
    ];
    failed(s, CheckKind::UnevenFinish, Severity::Warning, message, evidence)
}

pub(crate) static TRACE_STALL: Rule = Rule {
    check: trace_stall,
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.run.traces.contains_key(&measured.recording.workload)),
        numbers: &[("share", "share of the workers' time spent waiting for the trace")],
        cost: |failed| failed.number("share"),
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::TraceStall)
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
