//! Requests that were sent again, and calls that timed out.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share};

/// Fewer are what any network does now and then.
const LEAST: u64 = 10;
/// The same as a share of the requests.
const LEAST_SHARE: f64 = 1e-4;
/// Deciseconds until a request is sent again, unless the mount says otherwise: over TCP.
const TIMEO: f64 = 600.0;
/// The same over UDP.
const TIMEO_UDP: f64 = 11.0;

pub(crate) const RETRANSMISSION: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "retransmission",
    group: Group::Condition,
    title: "The client sent requests again",
    mechanism: "A request without a reply is sent again: over UDP, and over TCP after `timeo` has passed, or at once when the connection was lost and re-established. Each costs at least the time until it is sent again, and a server that did the first one \
                does it twice unless its cache of replies (before version 4.1) or the session's slot knows it.",
    formula: "found when transmissions − ops ≥ 10 and ≥ 0.01 % of the requests; cost ≤ (transmissions − ops) · timeo / execute time",
    source: "columns 1, 2 and 8 of the operations in mountstats (`rpc_clnt_show_stats`); nfs(5), `timeo`, `retrans`",
};

fn detect(observed: &Observed) -> Verdict {
    let (ops, sent) = (observed.calls(), observed.sum(|operation| operation.transmissions));
    let again = sent.saturating_sub(ops);
    let rate = share(again as f64, sent as f64);
    if again < LEAST || rate < LEAST_SHARE {
        return Verdict::Clear;
    }
    let udp = observed.mount.option("proto").is_some_and(|proto| proto.starts_with("udp"));
    let timeo = observed.mount.option("timeo").and_then(|text| text.parse().ok());
    let timeo = timeo.unwrap_or(if udp { TIMEO_UDP } else { TIMEO }) / 10.0;
    let reconnects: u64 = observed.of_connections("connects").sum();
    let worst =
        observed.called().max_by_key(|operation| operation.transmissions.saturating_sub(operation.ops));
    let worst = worst.map_or(String::new(), |operation| {
        format!(
            ", most of them {} ({})",
            operation.name,
            operation.transmissions.saturating_sub(operation.ops)
        )
    });
    let mut evidence = vec![
        Evidence::number("requests sent again (transmissions − ops)", again as f64),
        Evidence::number("share of all requests", rate),
        Evidence::seconds("time until a request is sent again (`timeo`)", timeo),
    ];
    evidence.push(Evidence::number("connections made (connects of xprt)", reconnects as f64));
    // Those of a lost connection are sent again at once.
    let waited = if udp || reconnects <= observed.counted.transports.len() as u64 { timeo } else { 0.0 };
    let cost = (waited > 0.0).then(|| Cost {
        share: share(again as f64 * waited, observed.call_seconds()),
        of: CostOf::CallTime,
        estimate: format!("at most {again} times {waited} s"),
    });
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "{again} of {sent} requests ({}) were sent again {}{worst}.",
            percent(rate),
            observed.period()
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence,
        confidence: Confidence::Certain,
        cost,
        also: Vec::new(),
        remedy: Remedy::new(
            "Look for lost packets on the way (TCP's counters on both sides), and for times at which the server did not answer.",
        )
        .by(Need::KernelClient, "nstat -az TcpRetransSegs; dmesg | grep 'not responding'")
        .confirmed_by("`benchmaster probe HOST` measures the network's loss and round trips without NFS"),
    })
}

pub(crate) const MAJOR_TIMEOUT: Detector = Detector { explanation: &MAJOR, detect: detect_major };

const MAJOR: Explanation = Explanation {
    id: "major-timeout",
    group: Group::Condition,
    title: "Calls waited until they had timed out",
    mechanism: "After `retrans` times of sending a call has a major timeout: the kernel says that the server is not responding. \
                `hard` mounts go on trying, `soft` ones give the application an error.",
    formula: "found when the timeouts column of any operation is above 0",
    source: "column 3 of the operations in mountstats; nfs(5)",
};

fn detect_major(observed: &Observed) -> Verdict {
    let timeouts = observed.sum(|operation| operation.timeouts);
    if timeouts == 0 {
        return Verdict::Clear;
    }
    let soft = observed.mount.option("soft").is_some();
    let then = if soft {
        "applications were given errors for them (`soft`)"
    } else {
        "applications hung meanwhile (`hard`)"
    };
    Verdict::Found(Finding {
        id: MAJOR.id,
        what: format!("{timeouts} calls waited so long {} that they timed out; {then}.", observed.period()),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![Evidence::number("major timeouts", timeouts as f64)],
        confidence: Confidence::Certain,
        cost: None,
        also: Vec::new(),
        remedy: Remedy::new(
            "The server, or the way to it, was away: its own log and that of the network say when.",
        )
        .by(Need::KernelClient, "dmesg -T | grep -E 'nfs: server .* (not responding|OK)'"),
    })
}
