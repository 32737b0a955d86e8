//! Connections that are lost, and connections that are not used alike.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Evidence, Finding, Need, Remedy};
use crate::words::percent;

/// Seconds without calls after which the client closes a connection itself (`XS_IDLE_DISC_TO`).
const IDLE: u64 = 300;
/// Fewer are no pattern.
const LEAST: u64 = 3;
/// Requests from which on shares of connections tell.
const LEAST_SENDS: u64 = 10_000;
/// Difference between the busiest and the idlest, as a share of the mean.
const UNEVEN: f64 = 0.5;

pub(crate) const RECONNECTS: Detector = Detector { explanation: &RECONNECT, detect: detect_reconnects };

const RECONNECT: Explanation = Explanation {
    id: "reconnects",
    group: Group::Condition,
    title: "Connections were lost and re-established",
    mechanism: "When a connection breaks, requests without a reply are sent again on a new one, and slots and locks wait meanwhile. A client closes an idle \
                connection itself after 5 minutes, which is harmless and no more frequent than that.",
    formula: "found when connects, less the first of each connection, are ≥ 3 and more than one in 300 s",
    source: "`connects` of xprt in mountstats; `XS_IDLE_DISC_TO` of net/sunrpc/xprtsock.c",
};

fn detect_reconnects(observed: &Observed) -> Verdict {
    let connects: Vec<u64> = observed.of_connections("connects").collect();
    if connects.is_empty() {
        return Verdict::Unknown("connections of this kind (UDP) are not counted".into());
    }
    let first = u64::from(observed.since_mount);
    let again: u64 = connects.iter().map(|connects| connects.saturating_sub(first)).sum();
    let idle = observed.seconds / IDLE * connects.len() as u64;
    if again < LEAST || again <= idle {
        return Verdict::Clear;
    }
    Verdict::Found(Finding {
        id: RECONNECT.id,
        what: format!(
            "Connections to the server were re-established {again} times {}, more often than idle ones are closed.",
            observed.period()
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("connections re-established", again as f64),
            Evidence::number("connections", connects.len() as f64),
            Evidence::number("most that idleness can explain", idle as f64),
        ],
        confidence: Confidence::Likely,
        cost: None,
        also: Vec::new(),
        remedy: Remedy::new("Firewalls and address translators that forget connections, servers that were started again, and networks that are cut are the usual causes.")
            .by(Need::KernelClient, "dmesg -T | grep -i nfs; ss -tno dst SERVER"),
    })
}

pub(crate) const IMBALANCE: Detector = Detector { explanation: &UNEVEN_USE, detect: detect_imbalance };

const UNEVEN_USE: Explanation = Explanation {
    id: "uneven-connections",
    group: Group::Condition,
    title: "Connections of one mount carry different loads",
    mechanism: "With `nconnect` the client deals calls out in turn, skipping connections with longer queues. When one carries much less, its way is slower: \
                another path or queue of the network (Hash-Cast), or packets lost there.",
    formula: "found when (most − fewest requests of a connection) / mean ≥ 0.5, with 10,000 requests or more",
    source: "`sends` of xprt in mountstats; paper 000, section 4 (Hash-Cast)",
};

fn detect_imbalance(observed: &Observed) -> Verdict {
    let sends: Vec<u64> = observed.of_connections("sends").collect();
    let total: u64 = sends.iter().sum();
    let (Some(most), Some(fewest)) = (sends.iter().max(), sends.iter().min()) else {
        return Verdict::Unknown("connections of this kind are not counted".into());
    };
    let spread = (most - fewest) as f64 * sends.len() as f64 / total.max(1) as f64;
    if sends.len() < 2 || total < LEAST_SENDS || spread < UNEVEN {
        return Verdict::Clear;
    }
    Verdict::Found(Finding {
        id: UNEVEN_USE.id,
        what: format!(
            "The {} connections carry between {} and {} of the requests.",
            sends.len(),
            percent(*fewest as f64 / total as f64),
            percent(*most as f64 / total as f64)
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence: (1..)
            .zip(&sends)
            .map(|(number, sends)| Evidence::number(format!("requests of connection {number}"), *sends as f64))
            .collect(),
        confidence: Confidence::Possible,
        cost: None,
        also: Vec::new(),
        remedy: Remedy::new("Compare the connections' round trips, windows and losses; another port number can take another path.")
            .by(Need::KernelClient, "ss -tin dst SERVER")
            .confirmed_by("`benchmaster probe HOST` with several flows"),
    })
}
