//! Slot tables of sessions that shrink and grow.

use std::time::Duration;

use benchmaster_nfs_proto::v4::{Nfsstat4 as S, SequenceArgs, SequenceOk};

use super::session4::{call, next};
use crate::Stop;
use crate::nfs::callback::Callback;
use crate::nfs::client4::{Client4, body};
use crate::nfs::hold;
use crate::nfs::trial::Trial;

/// How long CB_RECALL_SLOT may take.
const SOON: Duration = Duration::from_secs(2);
/// Clients that are started until the server wants fewer slots of the first.
const OTHERS: u32 = 4;

fn sequence(client: &mut Client4) -> Result<(String, SequenceOk), Stop> {
    let answer = client.compound(&[])?.ok()?;
    let ok = body!(answer, Sequence);
    Ok((answer.sent, ok))
}

/// Lowest slots that the server wants used after others have come; with its target before. Leaves the others.
fn lowered(t: &mut Trial) -> Result<(SequenceOk, SequenceOk, Vec<Client4>), Stop> {
    let (_, before) = sequence(t.a()?)?;
    t.a()?.forget_calls();
    let mut others = Vec::new();
    for n in 0..OTHERS {
        others.push(t.start(&format!("sharing {n}"))?);
        let (_, after) = sequence(t.a()?)?;
        if after.target_highest_slotid < before.target_highest_slotid {
            return Ok((before, after, others));
        }
    }
    for other in &mut others {
        other.leave()?;
    }
    Err(Stop::not_applicable(format!("the server wants no fewer slots beside {OTHERS} more sessions")))
}

checks! {
    /// Slots that the server allows, and wants used.
    LIST, Session;
    "slots-highest-allowed" V41 Must [V41 8881 "18.46.3"]
        "The slot that SEQUENCE names as the highest allowed can be used."
        => |t| {
            let client = t.a()?;
            let (_, ok) = sequence(client)?;
            if ok.highest_slotid == 0 {
                return Err(Stop::not_applicable("the session has one slot"));
            }
            let (slotid, highest_slotid) = (ok.highest_slotid, ok.highest_slotid);
            let last = SequenceArgs { slotid, highest_slotid, sequenceid: 1, ..next(client)? };
            call(client, last, &[])?.is(&[S::OK])
        };
    "slots-target-allowed" V41 Should [V41 8881 "18.46.3"]
        "The highest slot that is to be used is not beyond the highest that is allowed."
        => |t| {
            let (sent, ok) = sequence(t.a()?)?;
            hold(ok.target_highest_slotid <= ok.highest_slotid, &sent, || format!("{ok:?}"))
        };
    "slots-recalled" V41 Should [V41 8881 "20.8.3"]
        "A client whose slots the server wants back is called for it (CB_RECALL_SLOT), with the highest that it may go on to use."
        => |t| {
            let (_, after, mut others) = lowered(t)?;
            let target = after.target_highest_slotid;
            let wanted = Callback::RecallSlot { target };
            let recalled = t.a()?.called(SOON, |call| *call == wanted)?;
            for other in &mut others {
                other.leave()?;
            }
            hold(recalled.is_some(), "another session", || {
                format!("SEQUENCE wants no slot beyond {target}, and no callback says so")
            })
        };
    "slots-given-back" V41 Should [V41 8881 "2.10.6.1"]
        "When the sessions are gone beside which fewer slots were wanted, more are wanted again."
        => |t| {
            let (before, after, mut others) = lowered(t)?;
            for other in &mut others {
                other.leave()?;
            }
            let (sent, again) = sequence(t.a()?)?;
            let wanted = [before, after, again].map(|ok| ok.target_highest_slotid);
            hold(wanted[2] > wanted[1], &sent, || {
                format!("highest slots wanted {wanted:?}: alone, beside others, and alone again")
            })
        };
}
