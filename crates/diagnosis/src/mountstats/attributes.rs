//! Attributes asked for again and again.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share};

/// Fewer calls say little.
const LEAST_CALLS: u64 = 500;
/// Share of the calls from which on it is told, where options ask for it.
const WITH_OPTIONS: f64 = 0.2;
/// The same where they do not.
const WITHOUT: f64 = 0.6;
/// Seconds; the kernel's own lowest choice for files is 3, the highest 60.
const SHORT: u64 = 3;

pub(crate) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "attribute-calls",
    group: Group::Condition,
    title: "Attributes are requested repeatedly",
    mechanism: "The client keeps attributes for a time (3 to 60 s for files, 30 to 60 s for directories), longer the longer they did not \
                change. `noac`, `actimeo=0` and short times make every stat, open and access a call; `noac` makes writes synchronous too. \
                Each open asks once more (close-to-open consistency).",
    formula: "found when GETATTR and ACCESS are ≥ 20 % of the calls under `noac` or acregmax ≤ 3 s, or ≥ 60 % without; cost = their share \
              of the execute time",
    source: "nfs(5), \"Data and metadata coherence\"; RFC 1813, section 4.11",
};

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
        Some(_) => (
            Confidence::Certain,
            Remedy::new("Leave the option out where no other client changes the files, or where applications lock what they share.")
                .by(Need::KernelClient, "mount -o remount,ac   # or without actimeo=; a value such as actimeo=60 suits files that seldom change"),
        ),
        None => (
            Confidence::Possible,
            Remedy::new("Many opens or stats of files that were known already: a longer attribute time helps for stats, `nocto` for opens of files \
                         that no other client writes, and delegations (version 4) for both.")
                .by(Need::KernelClient, "mount -o actimeo=60   # or nocto, for read-only data"),
        ),
    };
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "{} of the calls {} ask for attributes or permissions{}.",
            percent(part),
            observed.period(),
            why.map_or(String::new(), |why| format!(", because of {why}"))
        ),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("GETATTR", observed.ops("GETATTR") as f64),
            Evidence::number("ACCESS", observed.ops("ACCESS") as f64),
            Evidence::number("files opened by applications (event `vfs_open`)", opens as f64),
        ],
        confidence,
        cost: Some(Cost {
            share: cost,
            of: CostOf::CallTime,
            estimate: "execute time of GETATTR and ACCESS".into(),
        }),
        also: Vec::new(),
        remedy: remedy.confirmed_by(
            "the same workload with `actimeo` as a factor: `[factors.actimeo] parameter = \"target.mount\"`",
        ),
    })
}
