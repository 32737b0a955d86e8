//! State that a client lost and had back.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::plural;
use crate::words::share;

/// Sessions that a mount makes without having lost any: its own, and one of looking for other ways to the same server.
const FIRST: u64 = 2;
/// Calls that are made when state is had back, and not otherwise.
pub(crate) const CALLS: [&str; 5] =
    ["EXCHANGE_ID", "CREATE_SESSION", "SETCLIENTID", "SETCLIENTID_CONFIRM", "RECLAIM_COMPLETE"];

pub(crate) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "session-recovery",
    group: Group::Condition,
    title: "Clients lost their state on the server, and had to get it back",
    mechanism: "A server that was started again, a lease that ran out, or another client of the same name makes the server answer BADSESSION, STALE_CLIENTID, STALE_STATEID \
                or EXPIRED. The client then makes a new client id and session and opens and locks everything again, while all other calls wait.",
    formula: "of a study: found when the user-space client counted a recovery of a session or client id, opens or locks reclaimed, or state lost; or the kernel's made \
              EXCHANGE_ID, CREATE_SESSION or SETCLIENTID calls while it was measured (it makes none otherwise). Of mountstats: found when there was a CREATE_SESSION or \
              SETCLIENTID between two readings, or more than 2 since it was mounted. Cost ≥ the time of the calls of the recovery / time of all calls",
    source: "RFC 8881, sections 8.4.2 (recovery after a restart) and 18.36 (CREATE_SESSION)",
};

fn detect(observed: &Observed) -> Verdict {
    if !observed.is_v4() {
        return Verdict::Irrelevant;
    }
    let made = observed.ops("CREATE_SESSION") + observed.ops("SETCLIENTID");
    let own = if observed.since_mount { FIRST } else { 0 };
    let Some(again) = made.checked_sub(own).filter(|again| *again > 0) else { return Verdict::Clear };
    let calls = || CALLS.iter().filter_map(|name| observed.operation(name));
    let took: u64 = calls().map(|operation| operation.execute_ms).sum();
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "The client recreated {} with the server {}: it had lost its state there.",
            plural(usize::try_from(again).unwrap_or(usize::MAX), "session"),
            observed.period()
        ),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::number("sessions and client ids made (CREATE_SESSION, SETCLIENTID)", made as f64),
            Evidence::number(
                "opens had back without a file's name (OPEN_NOATTR)",
                observed.ops("OPEN_NOATTR") as f64,
            ),
        ],
        confidence: if observed.since_mount { Confidence::Likely } else { Confidence::Certain },
        cost: Some(Cost {
            share: share(took as f64 / 1e3, observed.call_seconds()),
            of: CostOf::CallTime,
            estimate: "at least the time of the calls of the recovery".into(),
        }),
        also: Vec::new(),
        remedy: remedy(),
    })
}

/// What to do about lost state.
pub(crate) fn remedy() -> Remedy {
    Remedy::new("See whether the server was started again, whether clients share a name (`shared-client-id`), and whether a client was silent for longer than a lease.")
        .by(Need::LinuxServer, "journalctl -k --grep 'nfsd|NFS' --since TIME; cat /proc/fs/nfsd/clients/*/info   # on a Linux server")
        .confirmed_by("trace events nfs4:nfs4_state_mgr and nfs4:nfs4_sequence_done of the client name the error")
}
