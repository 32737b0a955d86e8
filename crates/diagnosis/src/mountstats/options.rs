//! Options of the mount that cost data or time.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share};

/// Share of the time of calls from which on it is told.
const LEAST_COST: f64 = 0.1;

pub(crate) const SYNCHRONOUS: Detector = Detector { explanation: &SYNC, detect: detect_sync };

const SYNC: Explanation = Explanation {
    id: "synchronous-mount",
    group: Group::Condition,
    title: "Every write waits for the server",
    mechanism: "With `sync` (and with `noac`) write() returns only when the server has the data on stable storage: nothing is gathered, and one call is outstanding per \
                writer.",
    formula: "found when the mount has `sync` or `noac`, and WRITEs are ≥ 10 % of the execute time; cost at most = that share",
    source: "nfs(5), \"The sync mount option\"",
};

fn detect_sync(observed: &Observed) -> Verdict {
    let option = ["sync", "noac"].into_iter().find(|name| observed.mount.option(name).is_some());
    let (Some(option), Some(write)) = (option, observed.operation("WRITE")) else { return Verdict::Clear };
    let part = share(write.execute_ms as f64 / 1e3, observed.call_seconds());
    if part < LEAST_COST {
        return Verdict::Clear;
    }
    Verdict::Found(Finding {
        id: SYNC.id,
        what: format!(
            "The mount has `{option}`: each of {} WRITEs was waited for, {:.1} ms on average, {} of the time of calls.",
            write.ops,
            write.execute_ms as f64 / write.ops as f64,
            percent(part)
        ),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("WRITEs", write.ops as f64),
            Evidence::bytes("bytes of a WRITE", write.bytes_sent as f64 / write.ops as f64),
        ],
        confidence: Confidence::Certain,
        cost: Some(Cost {
            share: part,
            of: CostOf::CallTime,
            estimate: "at most: execute time of WRITE".into(),
        }),
        also: Vec::new(),
        remedy: Remedy::new(
            "Leave it out; applications that need stable data ask for it with fsync or O_SYNC.",
        )
        .by(Need::KernelClient, "mount -o remount,async"),
    })
}

pub(crate) const SOFT: Detector = Detector { explanation: &SOFT_MOUNT, detect: detect_soft };

const SOFT_MOUNT: Explanation = Explanation {
    id: "soft-mount",
    group: Group::Condition,
    title: "Writes can be lost without anybody waiting",
    mechanism: "With `soft` or `softerr` a call that times out gives the application an error, and data that the client still held are lost. \
                Applications that do not look at what close() returns never know.",
    formula: "found when the mount has `soft` or `softerr` and WRITEs were made",
    source: "nfs(5), `soft`",
};

fn detect_soft(observed: &Observed) -> Verdict {
    let option = ["soft", "softerr"].into_iter().find(|name| observed.mount.option(name).is_some());
    let (Some(option), Some(write)) = (option, observed.operation("WRITE")) else { return Verdict::Clear };
    let timeouts = observed.sum(|operation| operation.timeouts);
    Verdict::Found(Finding {
        id: SOFT_MOUNT.id,
        what: match timeouts {
            0 => format!(
                "The mount has `{option}` and is written to: a server that is away too long loses data."
            ),
            _ => format!(
                "The mount has `{option}`, is written to, and {timeouts} calls have timed out: data may be lost."
            ),
        },
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("WRITEs", write.ops as f64),
            Evidence::number("major timeouts", timeouts as f64),
        ],
        confidence: if timeouts > 0 { Confidence::Likely } else { Confidence::Possible },
        cost: None,
        also: Vec::new(),
        remedy: Remedy::new("Use `hard` for whatever is written.").by(Need::KernelClient, "mount -o hard"),
    })
}
