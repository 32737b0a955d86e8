//! Requests that were sent again, and calls that timed out.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Fewer are what any network does now and then.
const LEAST: u64 = 10;
/// The same as a share of the requests.
const LEAST_SHARE: f64 = 1e-4;
/// Deciseconds until a request is sent again, unless the mount says otherwise: over TCP.
const TIMEO: f64 = 600.0;
/// The same over UDP.
const TIMEO_UDP: f64 = 11.0;

pub(crate) const RETRANSMISSION: Detector = Detector { id: "retransmission", detect };

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
    let evidence = [
        Evidence::number("requests sent again (transmissions − ops)", again as f64),
        Evidence::number("share of all requests", rate),
        Evidence::seconds("time until a request is sent again (`timeo`)", timeo),
        Evidence::number("connections made (connects of xprt)", reconnects as f64),
    ];
    // Those of a lost connection are sent again at once.
    let waited = if udp || reconnects <= observed.counted.transports.len() as u64 { timeo } else { 0.0 };
    let what = format!(
        "{again} of {sent} requests ({}) were sent again {}{worst}.",
        percent(rate),
        observed.period()
    );
    let finding =
        Finding::new(Confidence::Certain, what).with(evidence).advised(case("retransmission", "mounts"));
    if waited == 0.0 {
        return Verdict::Found(finding);
    }
    let part = share(again as f64 * waited, observed.call_seconds());
    Verdict::Found(finding.costs_as(part, CostOf::CallTime, format!("at most {again} times {waited} s")))
}

pub(crate) const MAJOR_TIMEOUT: Detector = Detector { id: "major-timeout", detect: detect_major };

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
    Verdict::Found(
        Finding::new(
            Confidence::Certain,
            format!("{timeouts} calls waited so long {} that they timed out; {then}.", observed.period()),
        )
        .with([Evidence::number("major timeouts", timeouts as f64)])
        .advised(case("major-timeout", "mounts")),
    )
}
