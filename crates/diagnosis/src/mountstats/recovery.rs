//! State that a client lost and had back.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Sessions that a mount makes without having lost any: its own, and one of looking for other ways to the same server.
const FIRST: u64 = 2;
/// Calls that are made when state is had back, and not otherwise.
pub(crate) const CALLS: [&str; 5] =
    ["EXCHANGE_ID", "CREATE_SESSION", "SETCLIENTID", "SETCLIENTID_CONFIRM", "RECLAIM_COMPLETE"];

pub(crate) const DETECTOR: Detector = Detector { id: "session-recovery", detect };

fn detect(observed: &Observed) -> Verdict {
    if !observed.is_v4() {
        return Verdict::Irrelevant;
    }
    let made = observed.ops("CREATE_SESSION") + observed.ops("SETCLIENTID");
    let own = if observed.since_mount { FIRST } else { 0 };
    let Some(again) = made.checked_sub(own).filter(|again| *again > 0) else { return Verdict::Clear };
    let calls = || CALLS.iter().filter_map(|name| observed.operation(name));
    let took: u64 = calls().map(|operation| operation.execute_ms).sum();
    Verdict::Found(
        Finding::new(
            if observed.since_mount { Confidence::Likely } else { Confidence::Certain },
            format!(
                "The client recreated {} with the server {}: it had lost its state there.",
                plural(usize::try_from(again).unwrap_or(usize::MAX), "session"),
                observed.period()
            ),
        )
        .with([
            Evidence::number("sessions and client ids made (CREATE_SESSION, SETCLIENTID)", made as f64),
            Evidence::number(
                "opens had back without a file's name (OPEN_NOATTR)",
                observed.ops("OPEN_NOATTR") as f64,
            ),
        ])
        .costs(share(took as f64 / 1e3, observed.call_seconds())),
    )
}
