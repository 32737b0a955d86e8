//! Attributes asked for again and again.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Fewer calls say little.
const LEAST_CALLS: u64 = 500;
/// Share of the calls from which on it is told, where options ask for it.
const WITH_OPTIONS: f64 = 0.2;
/// The same where they do not.
const WITHOUT: f64 = 0.6;
/// Seconds; the kernel's own lowest choice for files is 3, the highest 60.
const SHORT: u64 = 3;

pub(crate) const DETECTOR: Detector = Detector { id: "attribute-calls", detect };

fn detect(observed: &Observed) -> Verdict {
    let calls = observed.calls();
    if calls < LEAST_CALLS {
        return Verdict::Unknown(format!("{calls} calls are too few; {LEAST_CALLS} or more tell"));
    }
    let number = |name: &str| observed.mount.option(name).and_then(|text| text.parse::<u64>().ok());
    let short = number("actimeo").or_else(|| number("acregmax")).filter(|seconds| *seconds <= SHORT);
    let noac = observed.mount.option("noac").is_some();
    let asked: u64 = ["GETATTR", "ACCESS"].map(|name| observed.ops(name)).iter().sum();
    // Of those that applications did not ask for themselves.
    let part = share(asked.saturating_sub(observed.asked_for) as f64, calls as f64);
    let why = match (noac, short) {
        (true, _) => Some("`noac`".to_owned()),
        (false, Some(seconds)) => Some(format!("attributes that are kept for {seconds} s at most")),
        (false, None) => None,
    };
    if part < if why.is_some() { WITH_OPTIONS } else { WITHOUT } {
        return Verdict::Clear;
    }
    let time: u64 = ["GETATTR", "ACCESS"]
        .iter()
        .filter_map(|name| observed.operation(name))
        .map(|operation| operation.execute_ms)
        .sum();
    let cost = share(time as f64 / 1e3, observed.call_seconds());
    let opens = observed.event("vfs_open").unwrap_or(0);
    let (confidence, remedy) = match &why {
        Some(_) => (Confidence::Certain, Remedy::default()),
        None => (Confidence::Possible, case("attribute-calls", "without-options")),
    };
    Verdict::Found(
        Finding::new(
            confidence,
            format!(
                "{} of the calls {} ask for attributes or permissions{}.",
                percent(part),
                observed.period(),
                why.map_or(String::new(), |why| format!(", because of {why}"))
            ),
        )
        .with([
            Evidence::number("GETATTR", observed.ops("GETATTR") as f64),
            Evidence::number("ACCESS", observed.ops("ACCESS") as f64),
            Evidence::number("files opened by applications (event `vfs_open`)", opens as f64),
        ])
        .costs(cost)
        .advised(remedy),
    )
}
