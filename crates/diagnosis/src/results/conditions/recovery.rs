//! State that clients lost and had back: sessions, client ids, opens, locks.

use crate::mountstats;
use crate::prelude::*;
use crate::results::phenomena::standstill::stopped;

pub(super) const DETECTOR: Detector = Detector { id: "session-recovery", detect };

/// Events of the user-space client.
const EVENTS: [(&str, &str); 5] = [
    ("session-recovered", "sessions recreated"),
    ("client-recovered", "client ids recreated"),
    ("open-reclaimed", "opens reclaimed"),
    ("lock-reclaimed", "locks reclaimed"),
    ("state-lost", "opens and locks that could not be reclaimed"),
];
fn detect(measured: &Measured<'_>) -> Verdict {
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    let rows =
        || phase.rows.iter().filter(|row| mountstats::recovery::CALLS.contains(&row.operation.as_str()));
    let calls: u64 = rows().map(|row| row.ops).sum();
    let events = EVENTS.map(|(name, words)| (words, phase.events.get(name).copied().unwrap_or(0)));
    let recovered: u64 = match rpc.source {
        RpcSource::Client => events.iter().map(|(_, count)| count).sum(),
        RpcSource::Kernel => calls,
    };
    if recovered == 0 {
        return Verdict::Clear;
    }
    let took = phase.total().execute_ns;
    let recovering: u64 = rows().map(|row| row.execute_ns).sum();
    let told = match rpc.source {
        RpcSource::Client => {
            let told: Vec<String> = events
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(words, count)| format!("{count} {words}"))
                .collect();
            told.join(", ")
        }
        RpcSource::Kernel => plural(calls as usize, "call") + " to recreate client ids and sessions",
    };
    let mut evidence: Vec<Evidence> = events
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(words, count)| Evidence::number(*words, *count as f64))
        .collect();
    evidence.push(Evidence::number("calls to make client ids and sessions", calls as f64));
    let finding = Finding::new(
        Confidence::Certain,
        format!("Clients lost their state on the server while it was measured: {told}."),
    )
    .with(evidence);
    // All wait until it is over, those that make no call of the recovery as well.
    let calls = recovering as f64 / (took as f64).max(1.0);
    Verdict::Found(match stopped(measured).filter(|share| *share > calls) {
        Some(share) => finding.costs_as(share, CostOf::Time, "time in which no operation ended"),
        None => finding.costs(calls),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::phase::Phase;

    #[test]
    fn recoveries_are_told_by_their_events() {
        let mut made = Made::served();
        assert_eq!(made.verdict(&DETECTOR), Verdict::Clear);
        let phases = &mut made.recording().rpc.as_mut().unwrap().phases;
        let measure = phases.iter_mut().find(|phase| phase.phase == Phase::Measure).unwrap();
        measure.events.insert("session-recovered".into(), 3);
        measure.events.insert("open-reclaimed".into(), 12);
        let found = made.found(&DETECTOR);
        assert!(found.what.contains("3 sessions recreated, 12 opens reclaimed"), "{}", found.what);
        // Version 3 has no state.
        made.recording().rpc.as_mut().unwrap().connection.version = Some(NfsVersion::V3);
        assert_eq!(made.verdict(&DETECTOR), Verdict::Irrelevant);
    }

    #[test]
    fn the_kernels_client_is_told_by_its_calls() {
        let mut made = Made::served();
        made.recording().rpc.as_mut().unwrap().source = RpcSource::Kernel;
        assert_eq!(made.verdict(&DETECTOR), Verdict::Clear);
        let mut row = made.rows()[0].clone();
        (row.operation, row.ops) = ("CREATE_SESSION".into(), 4);
        made.rows().push(row);
        assert!(made.found(&DETECTOR).what.contains("4 calls to recreate"));
        made.recording().rpc = None;
        assert_eq!(made.verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
