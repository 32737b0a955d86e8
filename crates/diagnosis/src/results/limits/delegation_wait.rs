//! Waiting until delegations are given back.

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::recording::RpcSource;

use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Need, Plot, Remedy};
use crate::measured::Measured;
use crate::results::rule::Detector;
use crate::words::{percent, share};

/// Shortest wait of a client that is asked to come again (`NFS4_POLL_RETRY_MIN` of Linux).
const WAIT_NS: f64 = 1e8;
/// Share of the operations' time from which on it is worth a finding.
const LEAST_SHARE: f64 = 0.05;

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "delegation-wait",
    group: Group::Limit,
    title: "Opens wait until other clients give delegations back",
    mechanism: "A file that is delegated to a client cannot be opened for writing by another one before the delegation was recalled and given \
                back. Meanwhile the server answers DELAY; the Linux client comes again after 100 ms, and after twice as long each time, \
                although the recall takes a round trip.",
    formula: "found with DELAY answers while delegations were given back (DELEGRETURN) or recalled, when delays · 100 ms, the shortest wait, is \
              ≥ 5 % of the time of all operations: the cost. Of the kernel's client the delays are those of the samples of mountstats",
    source: "paper 000 §5.3 and paper 001 §3.3 (conflicts cost 100 ms and more); RFC 8881 §10.4; `NFS4_POLL_RETRY_MIN` of Linux",
};

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
    Verdict::Found(
        Finding::new(
            &EXPLANATION,
            Confidence::Likely,
            format!(
                "The server said {delays:.0} times to come again later while {returned:.0} delegations were given back: at 100 ms or more each \
                 that is {} of the time of all operations.",
                percent(part)
            ),
            Remedy::new(
                "Files that several clients write are better without delegations: turn them off on the server, or let clients write files of \
                 their own.",
            )
            .by(Need::EmbeddedServer, "[server] delegations = false")
        .by(Need::LinuxServer, "sysctl fs.leases-enable=0   # on a Linux server, before nfsd starts")
            .confirmed_by("`studies/paper000-delegation-recall.toml`, or `studies/lab-delegation-recall.toml` with the kernel's client"),
        )
        .with([
            Evidence::number("answers to come again later (DELAY)", delays),
            Evidence::number("delegations given back (DELEGRETURN)", returned),
            Evidence::nanoseconds("shortest wait after each", WAIT_NS),
        ])
        .costs(part, CostOf::OperationTime, "delays · 100 ms / time of all operations")
        .shown_by(Plot::Latency),
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
