//! More opening and closing than reading and writing.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

pub(crate) const LEAST_CALLS: u64 = 500;
pub(crate) const LEAST_SHARE: f64 = 1.0 / 3.0;
/// What opening, closing and locking a file takes beside its data.
pub(crate) const AROUND: [&str; 11] = [
    "OPEN",
    "OPEN_NOATTR",
    "OPEN_CONFIRM",
    "CLOSE",
    "OPEN_DOWNGRADE",
    "LOCK",
    "LOCKU",
    "LOCKT",
    "FREE_STATEID",
    "RELEASE_LOCKOWNER",
    "DELEGRETURN",
];

pub(super) const DETECTOR: Detector = Detector { id: "open-close-share", detect };

fn detect(observed: &Observed) -> Verdict {
    if !observed.is_v4() {
        return Verdict::Clear;
    }
    let calls = observed.calls();
    let around: u64 = AROUND.iter().map(|name| observed.ops(name)).sum();
    let part = share(around as f64, calls as f64);
    if calls < LEAST_CALLS || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    let time: u64 =
        AROUND.iter().filter_map(|name| observed.operation(name)).map(|operation| operation.execute_ms).sum();
    let opens = observed.event("vfs_open").unwrap_or(0);
    let evidence = AROUND.iter().filter(|name| observed.ops(name) > 0);
    let mut evidence: Vec<Evidence> =
        evidence.map(|name| Evidence::number(*name, observed.ops(name) as f64)).collect();
    evidence.push(Evidence::number("files opened by applications (event `vfs_open`)", opens as f64));
    Verdict::Found(
        Finding::new(
            Confidence::Certain,
            format!(
                "{} of the calls {} open, close or lock files instead of moving data.",
                percent(part),
                observed.period()
            ),
        )
        .with(evidence)
        .costs(share(time as f64 / 1e3, observed.call_seconds())),
    )
}
