//! What is told of a client in production by its `mountstats`, told of the clients of a run.

use super::observed::mounts;
use crate::finding::Setup;
use crate::mountstats;
use crate::mountstats::observed::Observed;
use crate::mountstats::rule::Detector as OfMount;
use crate::prelude::*;

/// A detector of mounts for the clients of a run.
macro_rules! of_mounts {
    ($one:path) => {
        Detector { id: $one.id, detect: |measured| look(measured, &$one) }
    };
}

pub(super) const ATTRIBUTES: Detector = of_mounts!(mountstats::attributes::DETECTOR);
pub(super) const COMMITS: Detector = of_mounts!(mountstats::commits::DETECTOR);
pub(super) const IMBALANCE: Detector = of_mounts!(mountstats::connections::IMBALANCE);
pub(super) const DELAY: Detector = of_mounts!(mountstats::delay::DETECTOR);
pub(super) const STATE_TESTS: Detector = of_mounts!(mountstats::state_tests::DETECTOR);
pub(super) const SOFT: Detector = of_mounts!(mountstats::options::SOFT);
/// A client that keeps nothing waits for each write with and without the option.
pub(super) const SYNCHRONOUS: Detector = Detector {
    id: mountstats::options::SYNCHRONOUS.id,
    detect: |measured| {
        if Setup::of(measured).has(Need::NothingCached) {
            Verdict::Irrelevant
        } else {
            look(measured, &mountstats::options::SYNCHRONOUS)
        }
    },
};
/// Only the kernel's client has a page cache out of which a page can be written twice.
pub(super) const REWRITTEN: Detector = Detector {
    id: mountstats::readahead::REWRITTEN.id,
    detect: |measured| match measured.rpcs() {
        Some((rpc, _)) if rpc.source == RpcSource::Kernel => {
            look(measured, &mountstats::readahead::REWRITTEN)
        }
        _ => Verdict::Irrelevant,
    },
};
/// What the server cut is told as such.
pub(super) const TRANSFER_SIZE: Detector = Detector {
    id: mountstats::sizes::OPTIONS.id,
    detect: |measured| {
        if super::transfer_size::told(measured) {
            Verdict::Clear
        } else {
            look(measured, &mountstats::sizes::OPTIONS)
        }
    },
};
/// What a detector of mounts says of the clients of a run: of several that have it, the dearest speaks.
pub(super) fn look(measured: &Measured<'_>, detector: &OfMount) -> Verdict {
    of_all(mounts(measured), detector)
}

fn of_all(clients: &[Observed], detector: &OfMount) -> Verdict {
    if clients.is_empty() {
        return Verdict::Irrelevant;
    }
    let several = clients.len() > 1;
    let mut found: Vec<(String, Finding)> = Vec::new();
    let (mut clear, mut unknown) = (false, None);
    for client in clients {
        match (detector.detect)(client) {
            Verdict::Found(finding) => found.push((client.client.clone(), finding)),
            Verdict::Clear => clear = true,
            Verdict::Unknown(why) => unknown = Some(why),
            Verdict::Irrelevant => {}
        }
    }
    let dearest = found.iter().max_by(|(_, a), (_, b)| a.share().total_cmp(&b.share())).cloned();
    match (dearest, unknown) {
        (Some((client, mut finding)), _) => {
            let all = found.len();
            if several {
                let others = if all > 1 { format!(" (and {} more clients)", all - 1) } else { String::new() };
                finding.what = format!("{client}{others}: {}", finding.what);
                finding = finding.of_clients(found.into_iter().map(|(client, _)| client));
            }
            Verdict::Found(finding.shown_by(Plot::Counters))
        }
        (None, Some(why)) => Verdict::Unknown(why),
        (None, None) if clear => Verdict::Clear,
        (None, None) => Verdict::Irrelevant,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rpc::{ERRORS, RECONNECTS, RETRANSMISSIONS, TIMEOUTS};
    use super::*;
    use crate::finding::Confidence;
    use crate::results::testing::Made;
    use benchmaster_record::phase::Phase;
    use benchmaster_record::results::CheckKind;

    /// A made-up run in which a kind of call was made so often, for so many milliseconds, with so many errors.
    fn made(operation: &str, ops: u64, ms: u64, errors: u64) -> Made {
        let mut made = Made::served();
        let rows = made.rows();
        rows.retain(|row| row.operation != operation);
        let mut row = rows[0].clone();
        (row.operation, row.ops, row.transmissions, row.errors) = (operation.into(), ops, ops, errors);
        (row.execute_ns, row.rtt_ns, row.queue_ns) = (ms * 1_000_000, ms * 1_000_000, 0);
        rows.push(row);
        made
    }

    #[test]
    fn rpcs_of_a_run_are_looked_at_as_those_of_a_mount() {
        assert_eq!(Made::new().verdict(&COMMITS), Verdict::Irrelevant);
        let writes = |made: &mut Made| made.rows().iter().find(|row| row.operation == "WRITE").unwrap().ops;
        let few = made("COMMIT", 10, 10, 0);
        assert_eq!(few.verdict(&COMMITS), Verdict::Clear);
        let mut many = made("COMMIT", 0, 0, 0);
        let often = writes(&mut many);
        let many = made("COMMIT", often, 10_000_000, 0).found(&COMMITS);
        assert!(many.cost.unwrap().share > 0.5);
        assert_eq!(many.at.unwrap().plot, Some(Plot::Counters));
    }

    #[test]
    fn options_of_the_url_are_those_of_the_mount() {
        let mut made = made("GETATTR", 900_000_000, 10_000, 0);
        made.run().service.as_mut().unwrap().url =
            "nfs://{server}/export?version=3&sync=file&actimeo=0s&cache=linux".into();
        assert!(made.found(&ATTRIBUTES).what.contains("kept for 0 s"));
        assert!(made.found(&SYNCHRONOUS).what.contains("has `sync`"));
        made.run().service.as_mut().unwrap().url = "nfs://{server}/export".into();
        assert_eq!(made.verdict(&SYNCHRONOUS), Verdict::Irrelevant, "each write waits all the same");
    }

    #[test]
    fn errors_that_the_client_mended_are_told_elsewhere() {
        let mut made = made("READ", 1000, 100, 7);
        made.rows().iter_mut().filter(|row| row.operation != "READ").for_each(|row| row.errors = 0);
        assert!(made.found(&ERRORS).what.contains("7 of 1000 READ"));
        let phases = &mut made.recording().rpc.as_mut().unwrap().phases;
        phases
            .iter_mut()
            .find(|phase| phase.phase == Phase::Measure)
            .unwrap()
            .events
            .insert("delay".into(), 7);
        assert_eq!(made.verdict(&ERRORS), Verdict::Clear);
        let delay = made.found(&DELAY);
        assert!(delay.what.contains("answered 7 times"), "{}", delay.what);
    }

    #[test]
    fn what_was_sent_again_is_told_by_the_check() {
        let mut made = made("READ", 1000, 100, 0);
        assert_eq!(made.verdict(&RETRANSMISSIONS), Verdict::Clear);
        let workload = made.recording().workload.clone();
        let sent: u64 = made.rows().iter().map(|row| row.transmissions).sum();
        made.checked(CheckKind::RpcRetransmissions, &workload, &[("again", sent as f64 * 1.1e-4)]);
        assert_eq!(made.found(&RETRANSMISSIONS).id, "retransmission");
        assert_eq!(made.verdict(&TIMEOUTS), Verdict::Clear);
        made.checked(CheckKind::RpcTimeouts, &workload, &[("timeouts", 3.0)]);
        assert_eq!(made.found(&TIMEOUTS).id, "major-timeout");
        made.run().checks.clear();
        made.checked(CheckKind::RpcRetransmissions, &workload, &[("again", sent as f64 * 0.9e-4)]);
        assert_eq!(made.verdict(&RETRANSMISSIONS), Verdict::Clear);
    }

    #[test]
    fn reconnects_are_told_by_the_check_or_the_connections() {
        let mut made = made("READ", 1000, 100, 0);
        assert_eq!(made.verdict(&RECONNECTS), Verdict::Clear);
        let workload = made.recording().workload.clone();
        made.checked(CheckKind::Reconnects, &workload, &[("reconnects", 1.0)]);
        assert_eq!(made.found(&RECONNECTS).confidence, Confidence::Certain);
    }
}
