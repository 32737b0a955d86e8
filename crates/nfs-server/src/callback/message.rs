//! Callback messages: calls built, replies read (RFC 7530 §16, RFC 8881 §20).

use benchmaster_nfs_proto::rpc::{CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply};
use benchmaster_nfs_proto::v4::{
    Attributes, Bitmap4, CbArgop, CbCompoundHeader, CbGetattrArgs, CbNotifyArgs, CbNotifyLockArgs,
    CbRecallArgs, CbRecallSlotArgs, CbResop, CbSequenceArgs, CompoundRes, Fattr4, LockOwner4, NFS_CB,
    Nfsstat4, Nfstime4, Notify4, PROC_COMPOUND, PROC_NULL, ReferringCall4, ReferringCallList4, Sessionid4,
    fattr4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, List};

use crate::fs::Time;
use crate::handle;
use crate::state::backchannel::{BackClaim, Credential};
use crate::state::delegated::HolderAttributes;
use crate::state::{Callback, ClientId};

/// How a client is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address<'a> {
    pub(super) program: u32,
    pub(super) credential: &'a Credential,
}

/// What precedes the operation in a CB_COMPOUND.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frame {
    /// 4.0: `callback_ident`.
    Ident(u32),
    /// From 4.1 on: CB_SEQUENCE.
    Sequence {
        minor: u32,
        session: Sessionid4,
        claim: BackClaim,
        /// Session, slot and sequence number of the request whose reply the client must see first.
        refers: Option<(Sessionid4, u32, u32)>,
    },
}

/// What a client answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallbackReply {
    /// RPC did not get through to the callback program.
    Refused,
    /// CB_NULL was answered.
    Alive,
    /// CB_COMPOUND: status of CB_SEQUENCE (OK in 4.0, which has none), and of the operation where it was executed.
    Compound {
        sequence: Nfsstat4,
        operation: Option<Nfsstat4>,
        /// What CB_GETATTR returned.
        attributes: Option<HolderAttributes>,
    },
}

/// A CB_NULL call.
pub(super) fn null(xid: u32, to: Address<'_>) -> Vec<u8> {
    let mut e = Encoder::new();
    header(&mut e, xid, to, PROC_NULL);
    e.buffer().to_vec()
}

/// A CB_COMPOUND call. `None`: there is no operation to send.
pub(super) fn compound(
    xid: u32,
    to: Address<'_>,
    frame: Frame,
    client: ClientId,
    instance: u32,
    what: &Callback,
) -> Option<Vec<u8>> {
    let mut e = Encoder::new();
    header(&mut e, xid, to, PROC_COMPOUND);
    let (minorversion, callback_ident, count) = match frame {
        Frame::Ident(ident) => (0, ident, 1),
        Frame::Sequence { minor, .. } => (minor, 0, 2),
    };
    e.put(&CbCompoundHeader { tag: "".into(), minorversion, callback_ident, count });
    if let Frame::Sequence { session, claim, refers, .. } = frame {
        let call = refers.map(|(_, slotid, sequenceid)| ReferringCall4 { sequenceid, slotid });
        let calls = refers.map(|(sessionid, ..)| ReferringCallList4 {
            sessionid,
            referring_calls: List::Items(call.as_slice()),
        });
        // The reply is a few bytes and not worth a cache: Linux refuses to keep any (REP_TOO_BIG_TO_CACHE).
        e.put(&CbArgop::Sequence(CbSequenceArgs {
            sessionid: session,
            sequenceid: claim.sequence,
            slotid: claim.slot,
            highest_slotid: claim.highest,
            cachethis: false,
            referring_call_lists: List::Items(calls.as_slice()),
        }));
    }
    match what {
        Callback::Probe => return None,
        Callback::Recall { stateid, file, truncate } => {
            let fh = handle::encode(instance, *file);
            let (stateid, truncate) = (*stateid, *truncate);
            e.put(&CbArgop::Recall(CbRecallArgs { stateid, truncate, fh: fh.as_slice().into() }));
        }
        Callback::GetAttributes { file, times, .. } => {
            let fh = handle::encode(instance, *file);
            let attr_request = if *times { KNOWN_BY_HOLDER } else { KNOWN_BY_HOLDER & SIZE_AND_CHANGE };
            e.put(&CbArgop::Getattr(CbGetattrArgs { fh: fh.as_slice().into(), attr_request }));
        }
        Callback::Notify { stateid, dir, changes } => {
            let fh = handle::encode(instance, *dir);
            let changes: Result<Vec<Notify4<'_>>, _> =
                changes.iter().map(|change| Decoder::new(change).get()).collect();
            let changes = changes.ok()?;
            let (stateid, changes) = (*stateid, List::Items(&changes));
            e.put(&CbArgop::Notify(CbNotifyArgs { stateid, fh: fh.as_slice().into(), changes }));
        }
        Callback::RecallSlots { highest } => {
            e.put(&CbArgop::RecallSlot(CbRecallSlotArgs { target_highest_slotid: *highest }));
        }
        Callback::NotifyLock { file, owner } => {
            let fh = handle::encode(instance, *file);
            let lock_owner = LockOwner4 { clientid: client.0, owner: owner.as_slice().into() };
            e.put(&CbArgop::NotifyLock(CbNotifyLockArgs { fh: fh.as_slice().into(), lock_owner }));
        }
    }
    Some(e.buffer().to_vec())
}

/// The transaction number of a reply.
pub(super) fn xid(message: &[u8]) -> Option<u32> {
    message.first_chunk().map(|word| u32::from_be_bytes(*word))
}

/// Reads the reply to a call of `what`; `sequenced`: the call had a CB_SEQUENCE. What does not decode is a refusal.
pub(super) fn answer(message: &[u8], what: &Callback, sequenced: bool) -> CallbackReply {
    let mut d = Decoder::new(message);
    let Ok(Message::Reply { reply: RpcReply::Success(_), .. }) = d.get() else {
        return CallbackReply::Refused;
    };
    if *what == Callback::Probe {
        return CallbackReply::Alive;
    }
    let Ok(mut compound) = d.get::<CompoundRes<'_>>() else { return CallbackReply::Refused };
    let mut attributes = None;
    let mut next = || {
        let result = compound.results.take::<CbResop<'_>>().and_then(Result::ok)?;
        if let CbResop::Getattr(Ok(found)) = &result {
            attributes = holder_attributes(&found.obj_attributes);
        }
        Some(result.status())
    };
    let sequence = if sequenced { next() } else { Some(Nfsstat4::OK) };
    match sequence {
        // Not even CB_SEQUENCE: the compound as such was refused.
        None => CallbackReply::Compound { sequence: compound.status, operation: None, attributes: None },
        Some(Nfsstat4::OK) => {
            let operation = next();
            let operation = operation.or((compound.status != Nfsstat4::OK).then_some(compound.status));
            CallbackReply::Compound { sequence: Nfsstat4::OK, operation, attributes }
        }
        Some(sequence) => CallbackReply::Compound { sequence, operation: None, attributes: None },
    }
}

/// What the holder of a write delegation knows better.
const SIZE_AND_CHANGE: Bitmap4 = Bitmap4::of(&[fattr4::CHANGE, fattr4::SIZE]);
const KNOWN_BY_HOLDER: Bitmap4 =
    Bitmap4::of(&[fattr4::CHANGE, fattr4::SIZE, fattr4::TIME_DELEG_ACCESS, fattr4::TIME_DELEG_MODIFY]);

fn holder_attributes(found: &Fattr4<'_>) -> Option<HolderAttributes> {
    let found = Attributes::decode(found).ok()?;
    let time = |time: Nfstime4| {
        (time.nseconds < 1_000_000_000).then_some(Time { seconds: time.seconds, nanos: time.nseconds })
    };
    Some(HolderAttributes {
        change: found.change,
        size: found.size,
        atime: found.time_deleg_access.and_then(time),
        mtime: found.time_deleg_modify.and_then(time),
    })
}

fn header(e: &mut Encoder, xid: u32, to: Address<'_>, procedure: u32) {
    let cred = OpaqueAuth { flavor: to.credential.flavor, body: to.credential.body.as_slice().into() };
    let verf = OpaqueAuth::NONE;
    let (program, version) = (to.program, NFS_CB);
    e.put(&CallHeader { xid, rpc_version: RPC_VERSION, program, version, procedure, cred, verf });
}
