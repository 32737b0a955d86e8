//! Options of the mount that cost data or time.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Share of the time of calls from which on it is told.
const LEAST_COST: f64 = 0.1;

pub(crate) const SYNCHRONOUS: Detector = Detector { id: "synchronous-mount", detect: detect_sync };

fn detect_sync(observed: &Observed) -> Verdict {
    let option = ["sync", "noac"].into_iter().find(|name| observed.mount.option(name).is_some());
    let (Some(option), Some(write)) = (option, observed.operation("WRITE")) else { return Verdict::Clear };
    let part = share(write.execute_ms as f64 / 1e3, observed.call_seconds());
    if part < LEAST_COST {
        return Verdict::Clear;
    }
    let what = format!(
        "The mount has `{option}`: each of {} WRITEs was waited for, {:.1} ms on average, {} of the time of calls.",
        write.ops,
        write.execute_ms as f64 / write.ops as f64,
        percent(part)
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with([
                Evidence::number("WRITEs", write.ops as f64),
                Evidence::bytes("bytes of a WRITE", write.bytes_sent as f64 / write.ops as f64),
            ])
            .costs(part),
    )
}

pub(crate) const SOFT: Detector = Detector { id: "soft-mount", detect: detect_soft };

fn detect_soft(observed: &Observed) -> Verdict {
    let option = ["soft", "softerr"].into_iter().find(|name| observed.mount.option(name).is_some());
    let (Some(option), Some(write)) = (option, observed.operation("WRITE")) else { return Verdict::Clear };
    let timeouts = observed.sum(|operation| operation.timeouts);
    Verdict::Found(Finding::new(if timeouts > 0 { Confidence::Likely } else { Confidence::Possible }, match timeouts {
            0 => format!(
                "The mount has `{option}` and is written to: a server that is away too long loses data."
            ),
            _ => format!(
                "The mount has `{option}`, is written to, and {timeouts} calls have timed out: data may be lost."
            ),
        }).with([
            Evidence::number("WRITEs", write.ops as f64),
            Evidence::number("major timeouts", timeouts as f64),
        ]))
}
