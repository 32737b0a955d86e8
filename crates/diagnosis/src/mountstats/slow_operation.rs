//! One kind of call that takes far longer than the others on the same way.

use benchmaster_telemetry::mountstats::Operation;

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Fewer calls say little of a kind.
const LEAST_CALLS: u64 = 20;
/// Times the quickest kind of call, and milliseconds beyond it.
const LEAST_TIMES: f64 = 3.0;
const LEAST_MS: f64 = 1.0;
/// Share of the time of calls.
const LEAST_SHARE: f64 = 0.3;
/// Bytes that one segment carries.
const SEGMENT: f64 = 1448.0;
/// Bytes per millisecond of the slowest link that is reckoned with: 100 Mbit/s.
const SLOWEST: f64 = 12_500.0;

pub(super) const DETECTOR: Detector = Detector { id: "slow-operation", detect };

/// Milliseconds until the reply, on average.
fn mean(operation: &Operation) -> f64 {
    operation.rtt_ms as f64 / operation.ops.max(1) as f64
}

/// Bytes of the larger direction of a call.
fn bytes(operation: &Operation) -> f64 {
    operation.bytes_sent.max(operation.bytes_received) as f64 / operation.ops.max(1) as f64
}

/// Whether another finding says why calls of this kind take long: requests that were sent again, and writes that wait on
/// purpose.
fn is_said_elsewhere(observed: &Observed, operation: &Operation) -> bool {
    let found = |detector: &Detector| matches!((detector.detect)(observed), Verdict::Found(_));
    operation.transmissions > operation.ops
        || (operation.name == "COMMIT" && found(&super::commits::DETECTOR))
        || (operation.name == "WRITE" && found(&super::options::SYNCHRONOUS))
}

fn detect(observed: &Observed) -> Verdict {
    let kinds = || {
        observed
            .called()
            .filter(|operation| operation.ops >= LEAST_CALLS && !is_said_elsewhere(observed, operation))
    };
    let Some(quickest) = kinds().min_by(|a, b| mean(a).total_cmp(&mean(b))) else { return Verdict::Clear };
    let least = mean(quickest);
    let beyond = |operation: &Operation| {
        let on_link = if bytes(operation) > SEGMENT { bytes(operation) / SLOWEST } else { 0.0 };
        operation.ops as f64 * (mean(operation) - least - on_link)
    };
    let Some(slowest) = kinds().max_by(|a, b| beyond(a).total_cmp(&beyond(b))) else { return Verdict::Clear };
    let part = share(beyond(slowest) / 1e3, observed.call_seconds());
    let much = mean(slowest) >= LEAST_TIMES * least && mean(slowest) - least >= LEAST_MS;
    if slowest.name == quickest.name || part < LEAST_SHARE || !much {
        return Verdict::Clear;
    }
    let small = bytes(slowest) <= SEGMENT;
    let whose =
        if small { "the server takes" } else { "the server, or a link slower than 100 Mbit/s, takes" };
    let shown = |ms: f64| time(ms * 1e6);
    let what = format!(
        "Each {} takes {} until its reply, where {} takes {} on the same way: {whose} {} of the time of all calls {} for it.",
        slowest.name,
        shown(mean(slowest)),
        quickest.name,
        shown(least),
        percent(part),
        observed.period()
    );
    Verdict::Found(
        Finding::new(if small { Confidence::Likely } else { Confidence::Possible }, what)
            .with([
                Evidence::milliseconds(format!("mean RTT of {}", slowest.name), mean(slowest)),
                Evidence::milliseconds("the least mean RTT of a kind of call", least),
                Evidence::number(slowest.name.clone(), slowest.ops as f64),
                Evidence::bytes("bytes of a call, in the larger direction", bytes(slowest)),
            ])
            .costs(part),
    )
}
