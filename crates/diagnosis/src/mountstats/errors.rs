//! Calls that ended with an error.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;
use benchmaster_telemetry::mountstats::Operation;

/// Operations whose errors are answers: names that are not there, or are there already, permissions, locks that others hold; and
/// state that another open of the same file has changed meanwhile (OLD_STATEID), after which the call is made again.
const ANSWERS: [&str; 19] = [
    "CLOSE",
    "OPEN_DOWNGRADE",
    "DELEGRETURN",
    "FREE_STATEID",
    "LOOKUP",
    "ACCESS",
    "OPEN",
    "CREATE",
    "MKDIR",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "SYMLINK",
    "LOCK",
    "LOCKT",
    "GETXATTR",
    "LISTXATTRS",
    "GETACL",
];
/// Share of such answers from which on they are told.
const MANY: f64 = 0.5;
/// Of at least so many calls.
const MANY_CALLS: u64 = 1000;

pub(crate) const DETECTOR: Detector = Detector { id: "operation-errors", detect };

fn detect(observed: &Observed) -> Verdict {
    if observed.called().all(|operation| operation.errors.is_none()) {
        return Verdict::Unknown("errors of operations are counted from Linux 5.3 on".into());
    }
    let errors = |operation: &Operation| operation.errors.unwrap_or(0);
    let told = |operation: &&Operation| {
        let answers = ANSWERS.contains(&operation.name.as_str());
        let rate = share(errors(operation) as f64, operation.ops as f64);
        if answers { operation.ops >= MANY_CALLS && rate >= MANY } else { errors(operation) > 0 }
    };
    let mut told: Vec<&Operation> = observed.called().filter(told).collect();
    if told.is_empty() {
        return Verdict::Clear;
    }
    told.sort_by_key(|operation| std::cmp::Reverse(errors(operation)));
    let words = |operation: &&Operation| {
        let rate = share(errors(operation) as f64, operation.ops as f64);
        format!("{} of {} {} ({})", errors(operation), operation.ops, operation.name, percent(rate))
    };
    let list: Vec<String> = told.iter().map(words).collect();
    let only_answers = told.iter().all(|operation| ANSWERS.contains(&operation.name.as_str()));
    let evidence = told
        .iter()
        .map(|operation| Evidence::number(format!("errors of {}", operation.name), errors(operation) as f64));
    let finding = |confidence| {
        let what = format!("Calls failed {}: {}.", observed.period(), list.join(", "));
        Finding::new(confidence, what).with(evidence)
    };
    Verdict::Found(if only_answers {
        finding(Confidence::Possible).advised(case("operation-errors", "answers"))
    } else {
        finding(Confidence::Certain)
    })
}
