//! More opening and closing than reading and writing.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share};

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

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

/// Told of stored results as well.
pub(crate) const EXPLANATION: Explanation = Explanation {
    id: "open-close-share",
    group: Group::Phenomenon,
    title: "Opening, closing and locking are most of the calls",
    mechanism: "In version 4 every open and close of a file is a call, and so is every lock; version 3 has none for opens. With small files, or files \
                opened for each access, that is more than the data. A delegation lets the client open, close and lock the file by itself.",
    formula: "found when OPEN, CLOSE, LOCK, LOCKU and their like are a third or more of 500 or more calls; cost = their share of the execute time",
    source: "operations in mountstats; paper 001, figure 4 (more than a third of the requests are OPEN and CLOSE) and table 2; RFC 8881, section 10.4",
};

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
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "{} of the calls {} open, close or lock files instead of moving data.",
            percent(part),
            observed.period()
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence,
        confidence: Confidence::Certain,
        cost: Some(Cost {
            share: share(time as f64 / 1e3, observed.call_seconds()),
            of: CostOf::CallTime,
            estimate: "execute time of these operations".into(),
        }),
        also: Vec::new(),
        remedy: Remedy::new("Keep files open, or let the server delegate them (Linux servers do where no other client writes the file and the callback channel works). \
                             For read-only trees of small files version 3 makes fewer calls.")
            .by(Need::LinuxServer, "sysctl fs.leases-enable=1   # on a Linux server")
            .confirmed_by("`studies/paper001-delegations.toml` compares versions with and without delegations"),
    })
}
