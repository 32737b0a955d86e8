//! Writes that are made stable in small pieces.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

const LEAST_COMMITS: u64 = 100;
/// The same where they are most of the time of calls: slow ones are few.
const LEAST_SLOW_COMMITS: u64 = 20;
const MOST_OF_THE_TIME: f64 = 0.5;
/// COMMITs for each WRITE.
const LEAST_RATIO: f64 = 0.2;
/// Share of the time of calls.
const LEAST_COST: f64 = 0.1;

pub(crate) const DETECTOR: Detector = Detector { id: "commits", detect };

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
    let what = format!(
        "The client asked {commits} times {} that what it had written be put on stable storage, for {writes} WRITEs: \
             {} each time; {} of the time of calls.",
        observed.period(),
        size(written / commits as f64),
        percent(part)
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with([
                Evidence::number("COMMITs", commits as f64),
                Evidence::number("WRITEs", writes as f64),
                Evidence::number(
                    "flushes at close (event `vfs_flush`)",
                    observed.event("vfs_flush").unwrap_or(0) as f64,
                ),
                Evidence::number(
                    "fsyncs (event `vfs_fsync`)",
                    observed.event("vfs_fsync").unwrap_or(0) as f64,
                ),
                Evidence::milliseconds("mean time of a COMMIT", time as f64 / commits as f64),
            ])
            .costs(part),
    )
}
