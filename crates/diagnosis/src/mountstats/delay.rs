//! Servers that ask to come again later.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Shortest wait of a version 4 client, in seconds (`NFS4_POLL_RETRY_MIN`).
const V4_WAIT: f64 = 0.1;
/// Wait of a version 3 client (`NFS_JUKEBOX_RETRY_TIME`).
const V3_WAIT: f64 = 5.0;

pub(crate) const DETECTOR: Detector = Detector { id: "server-delay", detect };

fn detect(observed: &Observed) -> Verdict {
    let Some(delays) = observed.event("delay") else {
        return Verdict::Unknown("this kernel's events line has no `delay`".into());
    };
    if delays == 0 {
        return Verdict::Clear;
    }
    // Our own client waits alike in all versions, and says so if otherwise.
    let own = observed.mount.option("delay_initial").and_then(|text| text.parse::<f64>().ok());
    let wait = own.unwrap_or(if observed.is_v4() { V4_WAIT } else { V3_WAIT });
    let waited = delays as f64 * wait;
    let what = format!(
        "The server answered {} {} that the client should come again later; each such wait is {wait} s or more.",
        plural(delays as usize, "time"),
        observed.period()
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with([
                Evidence::number("answers to come again later (event `delay`)", delays as f64),
                Evidence::seconds("shortest wait of the client", wait),
                Evidence::number("delegations given back (DELEGRETURN)", observed.ops("DELEGRETURN") as f64),
            ])
            .costs_as(
                share(waited, observed.call_seconds() + waited),
                CostOf::CallTime,
                format!("at least {delays} times {wait} s"),
            ),
    )
}
