//! Waiting until delegations are given back.

use crate::prelude::*;

/// Shortest wait of a client that is asked to come again (`NFS4_POLL_RETRY_MIN` of Linux).
const WAIT_NS: f64 = 1e8;
/// Share of the operations' time from which on it is worth a finding.
const LEAST_SHARE: f64 = 0.05;

pub(super) const DETECTOR: Detector = Detector { id: "delegation-wait", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    let event = |name: &str| phase.events.get(name).copied().unwrap_or(0) as f64;
    let returned =
        measured.rpc("DELEGRETURN").map_or(0.0, |row| row.ops as f64).max(event("delegation-recalled"));
    if returned <= 0.0 {
        return Verdict::Clear;
    }
    let delays = match rpc.source {
        RpcSource::Client => event("delay"),
        RpcSource::Kernel => match measured.clients_growth("mountstats", "delay") {
            Some(delays) => delays,
            None => {
                return Verdict::Unknown(
                    "delegations were given back, and whether others waited for it is not known: add `[sampling]` with the sampler \
                     `mountstats`"
                        .into(),
                );
            }
        },
    };
    let waited = delays * WAIT_NS;
    let part = share(waited, measured.operation_ns() as f64);
    if delays < 1.0 || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    let what = format!(
        "The server said {delays:.0} times to come again later while {returned:.0} delegations were given back: at 100 ms or more each \
                 that is {} of the time of all operations.",
        percent(part)
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::number("answers to come again later (DELAY)", delays),
                Evidence::number("delegations given back (DELEGRETURN)", returned),
                Evidence::nanoseconds("shortest wait after each", WAIT_NS),
            ])
            .costs(part),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::phase::Phase;

    /// One worker-minute of operations with this many delays, and delegations given back.
    fn made(delays: u64, returned: u64) -> Made {
        let mut made = Made::served();
        made.recording().series.iter_mut().for_each(|series| series.total.sum_ns = 0);
        made.recording().series[0].total.sum_ns = 60_000_000_000;
        let rpc = made.recording().rpc.as_mut().unwrap();
        let phase = rpc.phases.iter_mut().find(|phase| phase.phase == Phase::Measure).unwrap();
        phase.events.insert("delay".into(), delays);
        let mut row = phase.rows[0].clone();
        (row.operation, row.ops) = ("DELEGRETURN".into(), returned);
        phase.rows.push(row);
        made
    }

    #[test]
    fn delays_with_recalls_cost_a_tenth_of_a_second_each() {
        let found = made(60, 20).found(&DETECTOR);
        assert!((found.cost.unwrap().share - 0.1).abs() < 1e-9);
        assert!(found.what.contains("60 times") && found.what.contains("20 delegations"), "{}", found.what);
        assert_eq!(made(29, 20).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(60, 0).verdict(&DETECTOR), Verdict::Clear, "delays for other reasons");
    }

    #[test]
    fn of_the_kernel_samples_are_needed_and_version_3_has_no_delegations() {
        let mut kernel = made(0, 20);
        kernel.recording().rpc.as_mut().unwrap().source = RpcSource::Kernel;
        assert!(matches!(kernel.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("mountstats")));
        kernel.sample("c1", "mountstats", "delay", "/mnt/x", 60.0);
        assert!(matches!(kernel.verdict(&DETECTOR), Verdict::Found(_)));
        kernel.recording().rpc.as_mut().unwrap().connection.version = Some(NfsVersion::V3);
        assert_eq!(kernel.verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
