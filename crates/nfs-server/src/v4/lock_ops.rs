//! LOCK, LOCKT, LOCKU, RELEASE_LOCKOWNER; TEST_STATEID and FREE_STATEID.

use benchmaster_nfs_proto::v4::{
    FreeStateidArgs, LockArgs, LockDenied, LockOk, LockOwner4, LockType4, Locker4, LocktArgs, LockuArgs,
    LockuOk, Nfsstat4, OpenToLockOwner4, Opnum, ReleaseLockownerArgs, TestStateidArgs,
};
use benchmaster_nfs_proto::xdr::Opaque;

use super::io_ops::check_kind;
use super::open_ops::too_much;
use super::{Compound, Failure, OpResult};
use crate::fs::Kind;
use crate::handle::FileId;
use crate::state::file::Keeper;
use crate::state::interval::Range;
use crate::state::lock::{LockFailure, LockRequest};
use crate::state::owner::{OwnerId, OwnerKind, SeqidCheck};
use crate::state::waiter::LockHolder;
use crate::state::{ClientId, Tables};

/// LOCK (RFC 7530 §16.10, RFC 8881 §18.10).
pub(crate) fn lock(c: &mut Compound<'_>, args: LockArgs<'_>) -> OpResult {
    let file = c.file()?;
    check_lockable(c, file)?;
    let tables = &mut *c.server.state.write();
    match args.locker {
        Locker4::OpenOwner(locker) => lock_new(c, tables, file, &args, &locker),
        Locker4::LockOwner(locker) => {
            let stateid = c.stateid(locker.lock_stateid)?;
            if c.minor > 0 {
                let at = tables.files.find_lock(c.minor, c.client, &stateid, file)?;
                tables.files.check_state_seqid(c.minor, at, &stateid)?;
                let (client, name) = tables.files.lock_owner_of(at)?;
                return place(c, tables, at, client, &name, &args, 0).map(drop);
            }
            let seqid = locker.lock_seqid;
            let (at, owner, turn) =
                tables.files.state_turn(&stateid, file, OwnerKind::Lock, seqid, Opnum::LOCK)?;
            c.renew(tables, at);
            c.in_turn(tables, owner, turn, seqid, Opnum::LOCK, |c, tables| {
                tables.files.check_state_seqid(0, at, &stateid)?;
                let (client, name) = tables.files.lock_owner_of(at)?;
                place(c, tables, at, client, &name, &args, seqid).map(drop)
            })
        }
    }
}

/// LOCKT (RFC 7530 §16.11, RFC 8881 §18.11).
pub(crate) fn lockt(c: &mut Compound<'_>, args: LocktArgs<'_>) -> OpResult {
    let file = c.file()?;
    check_lockable(c, file)?;
    let range = Range::new(args.offset, args.length).ok_or(Nfsstat4::INVAL)?;
    let tables = &mut *c.server.state.write();
    let client = c.client_of(tables, args.owner.clientid)?;
    // It claims nothing: only locks that are not reclaimed yet make its answer uncertain.
    if tables.clients.in_grace() {
        return Err(Nfsstat4::GRACE.into());
    }
    let request = LockRequest {
        client,
        owner: args.owner.owner.0,
        range,
        write: args.locktype.is_write(),
        blocking: false,
    };
    let Tables { clients, files } = tables;
    match files.test_lock(clients, file, &request, c.now.instant, c.effects) {
        None => Ok(()),
        Some(holder) => Err(denied(c, &holder)),
    }
}

/// LOCKU (RFC 7530 §16.12, RFC 8881 §18.12).
pub(crate) fn locku(c: &mut Compound<'_>, args: LockuArgs) -> OpResult {
    let file = c.file()?;
    check_lockable(c, file)?;
    let stateid = c.stateid(args.lock_stateid)?;
    let tables = &mut *c.server.state.write();
    let unlock = |c: &mut Compound<'_>, tables: &mut Tables, at: u32| {
        tables.files.check_state_seqid(c.minor, at, &stateid)?;
        let range = Range::new(args.offset, args.length).ok_or(Nfsstat4::INVAL)?;
        let unlocked = tables.files.unlock(at, range, c.effects)?;
        let lock_stateid = unlocked.ok_or_else(|| too_much(c.minor))?;
        c.set_stateid(lock_stateid);
        c.answer(&LockuOk { lock_stateid })
    };
    if c.minor > 0 {
        let at = tables.files.find_lock(c.minor, c.client, &stateid, file)?;
        return unlock(c, tables, at);
    }
    let (at, owner, turn) =
        tables.files.state_turn(&stateid, file, OwnerKind::Lock, args.seqid, Opnum::LOCKU)?;
    c.renew(tables, at);
    c.in_turn(tables, owner, turn, args.seqid, Opnum::LOCKU, |c, tables| unlock(c, tables, at))
}

/// RELEASE_LOCKOWNER (RFC 7530 §16.37).
pub(crate) fn release_lockowner(c: &mut Compound<'_>, args: ReleaseLockownerArgs<'_>) -> OpResult {
    if c.minor > 0 {
        return Err(Nfsstat4::NOTSUPP.into());
    }
    let tables = &mut *c.server.state.write();
    let client = c.client_of(tables, args.lock_owner.clientid)?;
    Ok(tables.files.release_lock_owner(client, args.lock_owner.owner.0, c.effects)?)
}

/// TEST_STATEID (RFC 8881 §18.48).
pub(crate) fn test_stateid(c: &mut Compound<'_>, args: TestStateidArgs<'_>) -> OpResult {
    let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let tables = c.server.state.read();
    c.reply.encoder.put(&(args.stateids.len() as u32));
    for stateid in args.stateids.iter() {
        c.reply.encoder.put(&tables.files.test_stateid(client, &stateid));
    }
    Ok(())
}

/// FREE_STATEID (RFC 8881 §18.38).
pub(crate) fn free_stateid(c: &mut Compound<'_>, args: FreeStateidArgs) -> OpResult {
    let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let stateid = c.stateid(args.stateid)?;
    let Tables { clients, files } = &mut *c.server.state.write();
    Ok(files.free_stateid(clients, client, &stateid, c.effects)?)
}

/// The first lock of an owner on a file, through the open of the file.
fn lock_new(
    c: &mut Compound<'_>,
    tables: &mut Tables,
    file: FileId,
    args: &LockArgs<'_>,
    locker: &OpenToLockOwner4<'_>,
) -> OpResult {
    let stateid = c.stateid(locker.open_stateid)?;
    let name = locker.lock_owner.owner.0;
    if c.minor > 0 {
        let at = tables.files.find_open(c.minor, c.client, &stateid, file)?;
        let (client, _) = tables.files.opener(at)?;
        return place(c, tables, at, client, name, args, 0).map(drop);
    }
    tables.clients.check(ClientId(locker.lock_owner.clientid))?;
    let (at, opener, turn) =
        tables.files.state_turn(&stateid, file, OwnerKind::Open, locker.open_seqid, Opnum::LOCK)?;
    c.renew(tables, at);
    let mark = c.reply.mark();
    let mut lock_owner = None;
    let outcome = c.in_turn(tables, opener, turn, locker.open_seqid, Opnum::LOCK, |c, tables| {
        let at = tables.files.find_open(0, None, &stateid, file)?;
        let (client, _) = tables.files.opener(at)?;
        if client != ClientId(locker.lock_owner.clientid) {
            return Err(Nfsstat4::BAD_STATEID.into());
        }
        // An owner that is known goes on with its sequence, be it with a lock on this very file: after another OPEN of
        // the file clients begin with the open's stateid again. Anything but its next number is BAD_SEQID (RFC 7530
        // §16.10.5).
        if let Some(owner) = tables.files.known_lock_owner(client, name) {
            match tables.files.lock_turn(owner, locker.lock_seqid)? {
                // A repetition would repeat the open owner's number, too.
                SeqidCheck::Replay(_) => return Err(Nfsstat4::BAD_SEQID.into()),
                SeqidCheck::Run => lock_owner = Some(owner),
            }
        }
        lock_owner = Some(place(c, tables, at, client, name, args, locker.lock_seqid)?);
        Ok(())
    });
    if let Some(owner) = lock_owner {
        let replay = c.replay_of(Opnum::LOCK, 0, mark, &outcome);
        tables.files.record_turn(owner, locker.lock_seqid, replay, c.now.instant);
    }
    outcome
}

/// Locks through the open or lock state `at`.
fn place(
    c: &mut Compound<'_>,
    tables: &mut Tables,
    at: u32,
    client: ClientId,
    name: &[u8],
    args: &LockArgs<'_>,
    seqid: u32,
) -> Result<OwnerId, Failure> {
    let range = Range::new(args.offset, args.length).ok_or(Nfsstat4::INVAL)?;
    let file = c.file()?;
    c.check_user(tables.files.opener_uid(at), file, args.locktype.is_write())?;
    let Tables { clients, files } = tables;
    if !files.has_room(&Keeper::Client(client)) {
        return Err(too_much(c.minor));
    }
    if args.reclaim {
        clients.may_reclaim(client)?;
    } else {
        clients.may_claim(client)?;
    }
    let request = LockRequest {
        client,
        owner: name,
        range,
        write: args.locktype.is_write(),
        blocking: args.locktype.is_blocking(),
    };
    match files.lock(clients, at, &request, seqid, c.now.instant, c.effects) {
        Ok((lock_stateid, owner)) => {
            c.reply.encoder.put(&LockOk { lock_stateid });
            c.set_stateid(lock_stateid);
            Ok(owner)
        }
        Err(LockFailure::Denied(_)) if args.reclaim => Err(Nfsstat4::RECLAIM_CONFLICT.into()),
        Err(LockFailure::Denied(holder)) => Err(denied(c, &holder)),
        Err(LockFailure::Status(status)) => Err(status.into()),
    }
}

/// Tells whose lock is in the way.
fn denied(c: &mut Compound<'_>, holder: &LockHolder) -> Failure {
    c.reply.encoder.put(&LockDenied {
        offset: holder.range.first,
        length: holder.range.length(),
        locktype: if holder.write { LockType4::Write } else { LockType4::Read },
        owner: LockOwner4 { clientid: holder.client.0, owner: Opaque(&holder.owner) },
    });
    Failure { status: Nfsstat4::DENIED, keep_body: true }
}

/// Only regular files are locked (RFC 8881 §18.10.3); to 4.0 other kinds but directories are invalid arguments.
fn check_lockable(c: &Compound<'_>, file: FileId) -> OpResult {
    let (_, _, attr) = c.look(file)?;
    match attr.kind {
        Kind::Symlink if c.minor == 0 => Err(Nfsstat4::INVAL.into()),
        kind => check_kind(kind),
    }
}
