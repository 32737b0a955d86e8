//! What a finished run says: the value that decides about further runs, and what happened in it.

use benchmaster_record::phase::Phase;
use benchmaster_store::record::{Event, RunKey, RunRecord, StudyRecord};
use benchmaster_workload::recording::Recording;
use jiff::Timestamp;

use crate::analysis::is_invalid;

/// The value that the stopping rule sees; runs that failed or must not be used have none.
pub(super) fn primary(name: &str, run: &RunRecord) -> Option<f64> {
    let usable = run.failure.is_none() && !is_invalid(run);
    run.responses.iter().find(|response| response.name == name).map(|r| r.value).filter(|_| usable)
}

/// The values of finished runs, as the schedule wants them.
pub(super) fn values(study: &StudyRecord, runs: &[RunRecord]) -> Vec<(RunKey, Option<f64>)> {
    runs.iter().map(|run| (run.key, primary(&study.primary_response, run))).collect()
}

pub(super) fn events(recording: &Recording) -> Vec<Event> {
    let time = |offset: i64| {
        Timestamp::from_nanosecond(i128::from(recording.started_unix_ns) + i128::from(offset))
            .unwrap_or_default()
    };
    let name = &recording.workload;
    let at_phase =
        |phase: Phase| recording.phases.iter().find(|p| p.phase == phase).map_or(0, |p| p.start_ns);
    let event = |time, kind: &str, text| Event { time, kind: kind.into(), text };
    let mut events = Vec::new();
    for facts in &recording.filesets {
        let how = if facts.reused { "used again" } else { "made" };
        let text =
            format!("{name}: fileset `{}` {how}: {} files, {} bytes", facts.name, facts.files, facts.bytes);
        events.push(event(time(at_phase(Phase::Prepare)), "prepare", text));
    }
    let cache = format!("{name}: asked for {}; done: {}", recording.cache.requested, recording.cache.done);
    events.push(event(time(at_phase(Phase::Prepare)), "cache", cache));
    events.push(event(time(0), "measure", format!("{name}: measured phase; {}", recording.cut_reason)));
    let end = time(recording.length_ns.cast_signed());
    events.extend(recording.error_details.iter().map(|text| event(end, "error", format!("{name}: {text}"))));
    events
}
