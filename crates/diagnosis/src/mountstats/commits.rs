//! Writes that are made stable in small pieces.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Remedy};
use crate::words::{percent, share, size};

const LEAST_COMMITS: u64 = 100;
/// The same where they are most of the time of calls: slow ones are few.
const LEAST_SLOW_COMMITS: u64 = 20;
const MOST_OF_THE_TIME: f64 = 0.5;
/// COMMITs for each WRITE.
const LEAST_RATIO: f64 = 0.2;
/// Share of the time of calls.
const LEAST_COST: f64 = 0.1;

pub(crate) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "commits",
    group: Group::Condition,
    title: "COMMIT after every few WRITEs",
    mechanism: "Each fsync, close after writing, or lack of memory on the client makes it ask the server to put what was written on stable storage, \
                and wait. Done after every few WRITEs, that wait is most of the time of writing.",
    formula: "found when there are 100 COMMITs or more (20 where their share is ≥ 50 %), one for every 5 WRITEs or fewer, and their share of the execute \
              time, which is the cost, is ≥ 10 %",
    source: "COMMIT and WRITE in mountstats; RFC 1813, section 3.3.21; paper 003, section 2",
};

fn detect(observed: &Observed) -> Verdict {
    let (commits, writes) = (observed.ops("COMMIT"), observed.ops("WRITE"));
    let ratio = commits as f64 / writes.max(1) as f64;
    let time = observed.operation("COMMIT").map_or(0, |operation| operation.execute_ms);
    let written = observed.bytes("server_written").unwrap_or(0) as f64;
    let part = share(time as f64 / 1e3, observed.call_seconds());
    let least = if part >= MOST_OF_THE_TIME { LEAST_SLOW_COMMITS } else { LEAST_COMMITS };
    if commits < least || ratio < LEAST_RATIO || part < LEAST_COST {
        return Verdict::Clear;
    }
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "The client asked {commits} times {} that what it had written be put on stable storage, for {writes} WRITEs: \
             {} each time; {} of the time of calls.",
            observed.period(),
            size(written / commits as f64),
            percent(part)
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("COMMITs", commits as f64),
            Evidence::number("WRITEs", writes as f64),
            Evidence::number("flushes at close (event `vfs_flush`)", observed.event("vfs_flush").unwrap_or(0) as f64),
            Evidence::number("fsyncs (event `vfs_fsync`)", observed.event("vfs_fsync").unwrap_or(0) as f64),
            Evidence::milliseconds("mean time of a COMMIT", time as f64 / commits as f64),
        ],
        confidence: Confidence::Certain,
        cost: Some(Cost { share: part, of: CostOf::CallTime, estimate: "execute time of COMMIT".into() }),
        also: Vec::new(),
        remedy: Remedy::new("Let applications write more before they close or fsync files; a server with a log in fast or battery-backed memory answers COMMIT sooner.")
            .confirmed_by("the built-in workload `write-latency` with and without `fsync` shows what a COMMIT costs here"),
    })
}
