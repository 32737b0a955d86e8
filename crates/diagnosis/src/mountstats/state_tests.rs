//! State that the server revoked.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// One look at all opens, locks and delegations, after a lease that ran out, is no storm.
const LEAST_CALLS: u64 = 100;
const LEAST_SHARE: f64 = 0.02;

pub(crate) const DETECTOR: Detector = Detector { id: "state-tests", detect };

fn detect(observed: &Observed) -> Verdict {
    if !observed.is_v4() {
        return Verdict::Irrelevant;
    }
    let tests = observed.ops("TEST_STATEID");
    let part = share(tests as f64, observed.calls() as f64);
    if tests < LEAST_CALLS || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    let both = ["TEST_STATEID", "FREE_STATEID"];
    let took: u64 =
        both.iter().filter_map(|name| observed.operation(name)).map(|operation| operation.execute_ms).sum();
    let what = format!(
        "{} of the calls {} ask the server whether opens, locks and delegations still hold: it says that some were revoked.",
        percent(part),
        observed.period()
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with(both.map(|name| Evidence::number(name, observed.ops(name) as f64)))
            .with([Evidence::number("OPEN", observed.ops("OPEN") as f64)])
            .costs(share(took as f64 / 1e3, observed.call_seconds())),
    )
}
