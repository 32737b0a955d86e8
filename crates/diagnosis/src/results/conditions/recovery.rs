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
/// Share of the time after which all operations fail.
const LASTED: f64 = 0.9;

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
    let broken = never_again(measured);
    let lasted = match broken {
        Some(from) => format!(
            " No operation succeeded after {} of {}: what was recovered was lost again.",
            time(from),
            time(measured.recording.length_ns as f64)
        ),
        None => String::new(),
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!("Clients lost their state on the server while it was measured: {told}.{lasted}"),
    )
    .with(evidence);
    if let Some(from) = broken {
        let part = 1.0 - share(from, measured.recording.length_ns as f64);
        return Verdict::Found(finding.costs_as(part, CostOf::Time, "time in which no operation succeeded"));
    }
    // All wait until it is over, those that make no call of the recovery as well.
    let calls = recovering as f64 / (took as f64).max(1.0);
    Verdict::Found(match stopped(measured).filter(|share| *share > calls) {
        Some(share) => finding.costs_as(share, CostOf::Time, "time in which no operation ended"),
        None => finding.costs(calls),
    })
}

/// When the last operation had succeeded, if operations failed after it for a tenth of the time or more: in nanoseconds.
fn never_again(measured: &Measured<'_>) -> Option<f64> {
    let recording = measured.recording;
    let intervals = || recording.series.iter().flat_map(|series| &series.intervals);
    let last = intervals().filter(|one| one.stats.count > 0).map(|one| one.index).max()?;
    let failed = intervals().any(|one| one.index > last && one.stats.errors > 0);
    let from = (f64::from(last) + 1.0) * recording.interval_ns as f64;
    (failed && from <= LASTED * recording.length_ns as f64).then_some(from)
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
    fn a_session_that_is_lost_again_and_again_costs_the_rest_of_the_time() {
        let mut made = Made::served();
        let recording = made.recording();
        recording.rpc.as_mut().unwrap().phases.iter_mut().for_each(|phase| {
            phase.events.insert("session-recovered".into(), 288);
        });
        let (interval, length) = (recording.interval_ns, recording.length_ns);
        let until = length / interval / 4;
        recording.series.truncate(1);
        for one in &mut recording.series[0].intervals {
            if u64::from(one.index) >= until {
                (one.stats.count, one.stats.errors) = (0, 3);
            }
        }
        let found = made.found(&DETECTOR);
        assert!(
            found.what.contains("288 sessions recreated. No operation succeeded after"),
            "{}",
            found.what
        );
        assert!((found.cost.unwrap().share - 0.75).abs() < 0.05);
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
