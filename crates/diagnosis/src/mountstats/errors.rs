//! Calls that ended with an error.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share};
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

pub(crate) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "operation-errors",
    group: Group::Condition,
    title: "Calls ended with errors",
    mechanism: "Since Linux 5.3 the ninth column of each operation counts calls that ended with an error of NFS or of the RPC layer. Some are \
                answers (a name that is not there). Errors of READ, WRITE, COMMIT, GETATTR and the like are not: BADSESSION, STALE, \
                EXPIRED and DELAY are among them, and applications may see the rest.",
    formula: "found when errors of operations whose errors are no plain answers are above 0, or when more than half of 1,000 or more calls \
              of one operation fail",
    source: "column 9 of the operations in mountstats (kernel commit 5.3, `om_error_status`)",
};

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
    let (confidence, remedy) = if only_answers {
        (
            Confidence::Possible,
            Remedy::new(
                "If applications look for names that are never there, their search path is the place to mend it.",
            ),
        )
    } else {
        (Confidence::Certain, trace_errors())
    };
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!("Calls failed {}: {}.", observed.period(), list.join(", ")),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: told
            .iter()
            .map(|operation| {
                Evidence::number(format!("errors of {}", operation.name), errors(operation) as f64)
            })
            .collect(),
        confidence,
        cost: None,
        also: Vec::new(),
        remedy,
    })
}

/// What to do about errors that are no plain answers.
pub(crate) fn trace_errors() -> Remedy {
    Remedy::new(
        "The kernel's trace events give the error of each call; state errors (BADSESSION, EXPIRED) point to a restarted \
         server, or to clients that share one client id.",
    )
    .by(Need::KernelClient, "trace-cmd record -e nfs4:nfs4_read -e nfs4:nfs4_write -e sunrpc:rpc_task_end sleep 10")
}
