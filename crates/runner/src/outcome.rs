//! What happened in a finished run.

use benchmaster_record::phase::Phase;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::Event;
use jiff::Timestamp;

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
