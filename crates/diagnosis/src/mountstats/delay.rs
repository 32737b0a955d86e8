//! Servers that ask to come again later.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{plural, share};

/// Shortest wait of a version 4 client, in seconds (`NFS4_POLL_RETRY_MIN`).
const V4_WAIT: f64 = 0.1;
/// Wait of a version 3 client (`NFS_JUKEBOX_RETRY_TIME`).
const V3_WAIT: f64 = 5.0;

pub(crate) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "server-delay",
    group: Group::Condition,
    title: "The server asked to come again later",
    mechanism: "NFS4ERR_DELAY (version 3: JUKEBOX) tells the client to wait and ask again: while a delegation is recalled from another \
                client, while files come back from tape, or when the server has no memory. The Linux client waits 100 ms at first and \
                twice as long each time (version 3: 5 s), whatever the server needed, so that a recall of a millisecond costs 100.",
    formula: "found when the `delay` event is above 0; cost ≥ delays · 0.1 s (version 3: 5 s) / (execute time + that)",
    source: "`delay` of the events line in mountstats (`NFSIOS_DELAY`); paper 000, section 5.3 (the 100 ms of delegation recall); \
             RFC 8881, section 15.1.1.3",
};

fn detect(observed: &Observed) -> Verdict {
    let Some(delays) = observed.event("delay") else {
        return Verdict::Unknown("this kernel's events line has no `delay`".into());
    };
    if delays == 0 {
        return Verdict::Clear;
    }
    // Our own client waits alike in all versions, and says so if otherwise.
    let own = observed.mount.option("delay_initial").and_then(|text| text.parse::<f64>().ok());
    let wait = own.unwrap_or(if observed.is_v4() { V4_WAIT } else { V3_WAIT });
    let waited = delays as f64 * wait;
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "The server answered {} {} that the client should come again later; each such wait is {wait} s or more.",
            plural(delays as usize, "time"),
            observed.period()
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("answers to come again later (event `delay`)", delays as f64),
            Evidence::seconds("shortest wait of the client", wait),
            Evidence::number("delegations given back (DELEGRETURN)", observed.ops("DELEGRETURN") as f64),
        ],
        confidence: Confidence::Certain,
        cost: Some(Cost {
            share: share(waited, observed.call_seconds() + waited),
            of: CostOf::CallTime,
            estimate: format!("at least {delays} times {wait} s"),
        }),
        also: Vec::new(),
        remedy: Remedy::new(
            "If several clients write the same files, delegations are recalled repeatedly: a server without delegations is then faster. Otherwise find out what the server waits for.",
        )
        .by(Need::LinuxServer, "sysctl fs.leases-enable=0   # on a Linux server, before nfsd starts")
        .confirmed_by("the built-in workload `delegation-recall` shows the wait per conflict"),
    })
}
