//! Requests that wait on the client before they are sent.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Fewer calls say little.
const LEAST_CALLS: u64 = 100;
/// Share of the calls' time from which on it is worth a finding.
const LEAST_SHARE: f64 = 0.1;
/// Less than this is the client's own work.
const LEAST_MEAN_MS: f64 = 0.2;
/// Requests that wait for a slot whenever one is sent.
const LEAST_BACKLOG: f64 = 1.0;

pub(super) const DETECTOR: Detector = Detector { id: "request-queue", detect };

fn detect(observed: &Observed) -> Verdict {
    let calls = observed.calls();
    let (queue, round_trips) = (observed.sum(|o| o.queue_ms), observed.sum(|o| o.rtt_ms));
    let execute = observed.sum(|o| o.execute_ms);
    let part = share(queue as f64, execute as f64);
    let mean = queue as f64 / calls as f64;
    if calls < LEAST_CALLS || part < LEAST_SHARE || mean < LEAST_MEAN_MS {
        return Verdict::Clear;
    }
    let sends: u64 = observed.of_connections("sends").sum();
    let backlog: u64 = observed.of_connections("backlog_u").sum();
    let sending: u64 = observed.of_connections("sending_u").sum();
    let slots: u64 = observed.of_connections("max_slots").sum();
    let waiting = |sum: u64| sum as f64 / (sends.max(1)) as f64;
    let pending: u64 = observed.of_connections("pending_u").sum();
    // Those that wait for a slot of a session have no place in the connection's table yet.
    let full = waiting(backlog) >= LEAST_BACKLOG;
    let round_trip = round_trips as f64 / calls as f64;
    let mut evidence = vec![
        Evidence::milliseconds("mean time before sending (queue / ops)", mean),
        Evidence::milliseconds("mean round trip time (rtt / ops)", round_trip),
        Evidence::number(
            "calls waiting for a slot whenever one was sent (backlog_u / sends)",
            waiting(backlog),
        ),
        Evidence::number("calls waiting for the socket (sending_u / sends)", waiting(sending)),
        Evidence::number("calls waiting for their replies (pending_u / sends)", waiting(pending)),
    ];
    if slots > 0 {
        evidence.push(Evidence::number("slots of the connections' tables (max_slots)", slots as f64));
    }
    let sessions = observed.mount.option("vers").is_some_and(|version| matches!(version, "4.1" | "4.2"));
    let (why, waits) = match (full, sessions) {
        (true, _) => ("for a slot of the connection's table", "table"),
        (false, true) => ("for a slot of the session or for the socket", "session"),
        (false, false) => ("for the socket", "socket"),
    };
    let what = format!(
        "{} of the time of calls is waiting {why} before anything is sent: {mean:.1} ms, beside {round_trip:.1} ms until the reply.",
        percent(part)
    );
    Verdict::Found(
        Finding::new(if full { Confidence::Certain } else { Confidence::Likely }, what)
            .with(evidence)
            .costs(part)
            .advised(case("request-queue", waits)),
    )
}
