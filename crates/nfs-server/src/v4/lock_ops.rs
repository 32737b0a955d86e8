//! LOCK, LOCKT, LOCKU, RELEASE_LOCKOWNER; TEST_STATEID and FREE_STATEID.

use benchmaster_nfs_proto::v4::{
    FreeStateidArgs, LockArgs, LockDenied, LockOk, LockOwner4, LockType4, Locker4, LocktArgs, LockuArgs,
    LockuOk, Nfsstat4, OpenToLockOwner4, Opnum, ReleaseLockownerArgs, Stateid4, TestStateidArgs,
};
use benchmaster_nfs_proto::xdr::Opaque;

use super::io_ops::check_kind;
use super::turns::refused;
use super::{Compound, Failure, OpResult};
use crate::fs::Kind;
use crate::handle::FileId;
use crate::state::client::Clients;
use crate::state::file::{Files, Keeper};
use crate::state::interval::Range;
use crate::state::lock::{LockFailure, LockRequest};
use crate::state::owner::{OwnerId, OwnerKind, SeqidCheck};
use crate::state::shards::All;
use crate::state::waiter::LockHolder;
use crate::state::{ClientId, Stop};

/// LOCK (RFC 7530 §16.10, RFC 8881 §18.10).
pub(crate) fn lock(c: &mut Compound<'_>, args: LockArgs<'_>) -> OpResult {
    let file = c.file()?;
    check_lockable(c, file)?;
    if c.minor > 0 {
        return lock_in_session(c, file, &args);
    }
    let mut all = c.server.state.all();
    let (stateid, seqid) = match args.locker {
        Locker4::OpenOwner(locker) => return lock_new(c, &mut all, file, &args, &locker),
        Locker4::LockOwner(locker) => (c.stateid(locker.lock_stateid)?, locker.lock_seqid),
    };
    let (at, owner, turn) = all.files().state_turn(&stateid, file, OwnerKind::Lock, seqid, Opnum::LOCK)?;
    c.renew(&mut all, file, at);
    c.in_turn(&mut all, owner, turn, seqid, Opnum::LOCK, |c, all| {
        let files = all.files().part(file);
        files.check_state_seqid(0, at, &stateid)?;
        let (client, name) = files.lock_owner_of(at)?;
        place_in_turn(c, all, file, at, (client, &name, owner), &args)
    })
}

/// LOCK of 4.1: only the part of the file is locked.
fn lock_in_session(c: &mut Compound<'_>, file: FileId, args: &LockArgs<'_>) -> OpResult {
    loop {
        let outcome = {
            let mut part = c.server.state.write(file);
            let (clients, files) = part.split();
            let (at, client, name) = match args.locker {
                Locker4::OpenOwner(locker) => {
                    let stateid = c.stateid(locker.open_stateid)?;
                    let at = files.find_open(c.minor, c.client, &stateid, file)?;
                    (at, files.opener_client(at)?, locker.lock_owner.owner.0.into())
                }
                Locker4::LockOwner(locker) => {
                    let stateid = c.stateid(locker.lock_stateid)?;
                    let at = files.find_lock(c.minor, c.client, &stateid, file)?;
                    files.check_state_seqid(c.minor, at, &stateid)?;
                    let (client, name) = files.lock_owner_of(at)?;
                    (at, client, name)
                }
            };
            place(c, clients, files, at, (client, &name, None), args)
        };
        let stop = match outcome {
            Err(LockFailure::Stop(stop)) => stop,
            outcome => return answer_lock(c, outcome, args),
        };
        let cleared = c.server.state.clear(file, stop, c.now.instant, c.effects);
        cleared.map_err(|stop| refused(c.minor, stop))?;
    }
}

/// LOCK of 4.0, in the sequence of its owner.
fn place_in_turn(
    c: &mut Compound<'_>,
    all: &mut All<'_>,
    file: FileId,
    at: u32,
    (client, name, turn): (ClientId, &[u8], OwnerId),
    args: &LockArgs<'_>,
) -> OpResult {
    loop {
        let (clients, files) = all.split();
        let outcome = place(c, clients, files.part(file), at, (client, name, Some(turn)), args);
        files.settle(file);
        let stop = match outcome {
            Err(LockFailure::Stop(stop)) => stop,
            outcome => return answer_lock(c, outcome, args),
        };
        let cleared = all.clear(file, stop, c.now.instant, c.effects);
        cleared.map_err(|stop| refused(c.minor, stop))?;
    }
}

/// LOCKT (RFC 7530 §16.11, RFC 8881 §18.11).
pub(crate) fn lockt(c: &mut Compound<'_>, args: LocktArgs<'_>) -> OpResult {
    let file = c.file()?;
    check_lockable(c, file)?;
    let range = Range::new(args.offset, args.length).ok_or(Nfsstat4::INVAL)?;
    loop {
        let outcome = {
            let part = c.server.state.read(file);
            let client = c.client_of(part.clients(), args.owner.clientid)?;
            // It claims nothing: only locks that are not reclaimed yet make its answer uncertain.
            if part.clients().in_grace() {
                return Err(Nfsstat4::GRACE.into());
            }
            let request = LockRequest {
                client,
                owner: args.owner.owner.0,
                turn: None,
                range,
                write: args.locktype.is_write(),
                blocking: false,
            };
            part.files().test_lock(part.clients(), file, &request, c.now.instant)
        };
        match outcome {
            Ok(()) => return Ok(()),
            Err(LockFailure::Denied(holder)) => return Err(denied(c, &holder)),
            Err(LockFailure::Stop(stop)) => {
                let cleared = c.server.state.clear(file, stop, c.now.instant, c.effects);
                cleared.map_err(|stop| refused(c.minor, stop))?;
            }
        }
    }
}

/// LOCKU (RFC 7530 §16.12, RFC 8881 §18.12).
pub(crate) fn locku(c: &mut Compound<'_>, args: LockuArgs) -> OpResult {
    let file = c.file()?;
    check_lockable(c, file)?;
    let stateid = c.stateid(args.lock_stateid)?;
    let unlock = |c: &mut Compound<'_>, files: &mut Files, at: u32| {
        files.check_state_seqid(c.minor, at, &stateid)?;
        let range = Range::new(args.offset, args.length).ok_or(Nfsstat4::INVAL)?;
        files.unlock(at, range, c.effects)
    };
    let answer = |c: &mut Compound<'_>, lock_stateid| {
        c.set_stateid(lock_stateid);
        c.answer(&LockuOk { lock_stateid })
    };
    while c.minor > 0 {
        let outcome = {
            let mut part = c.server.state.write(file);
            let at = part.files().find_lock(c.minor, c.client, &stateid, file)?;
            unlock(c, part.files(), at)
        };
        match outcome {
            Ok(stateid) => return answer(c, stateid),
            Err(stop) => {
                let cleared = c.server.state.clear(file, stop, c.now.instant, c.effects);
                cleared.map_err(|stop| refused(c.minor, stop))?;
            }
        }
    }
    let mut all = c.server.state.all();
    let (at, owner, turn) =
        all.files().state_turn(&stateid, file, OwnerKind::Lock, args.seqid, Opnum::LOCKU)?;
    c.renew(&mut all, file, at);
    c.in_turn(&mut all, owner, turn, args.seqid, Opnum::LOCKU, |c, all| {
        loop {
            match unlock(c, all.files().part(file), at) {
                Ok(stateid) => return answer(c, stateid),
                Err(stop) => {
                    let cleared = all.clear(file, stop, c.now.instant, c.effects);
                    cleared.map_err(|stop| refused(c.minor, stop))?;
                }
            }
        }
    })
}

/// RELEASE_LOCKOWNER (RFC 7530 §16.37).
pub(crate) fn release_lockowner(c: &mut Compound<'_>, args: ReleaseLockownerArgs<'_>) -> OpResult {
    if c.minor > 0 {
        return Err(Nfsstat4::NOTSUPP.into());
    }
    let mut all = c.server.state.all();
    let client = c.client_of(all.clients(), args.lock_owner.clientid)?;
    Ok(all.files().release_lock_owner(client, args.lock_owner.owner.0, c.effects)?)
}

/// TEST_STATEID (RFC 8881 §18.48).
pub(crate) fn test_stateid(c: &mut Compound<'_>, args: TestStateidArgs<'_>) -> OpResult {
    let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    c.reply.encoder.put(&(args.stateids.len() as u32));
    for stateid in args.stateids.iter() {
        let part = c.server.state.read_of(&stateid);
        c.reply.encoder.put(&part.files().test_stateid(client, &stateid));
    }
    Ok(())
}

/// FREE_STATEID (RFC 8881 §18.38).
pub(crate) fn free_stateid(c: &mut Compound<'_>, args: FreeStateidArgs) -> OpResult {
    let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let stateid = c.stateid(args.stateid)?;
    let revoked = c.server.state.write_of(&stateid).files().free_stateid(client, &stateid, c.effects)?;
    if revoked {
        let mut all = c.server.state.all();
        let (clients, files) = all.split();
        files.refresh_revoked(clients, client);
    }
    Ok(())
}

/// The first lock of a 4.0 owner on a file, through the open of the file.
fn lock_new(
    c: &mut Compound<'_>,
    all: &mut All<'_>,
    file: FileId,
    args: &LockArgs<'_>,
    locker: &OpenToLockOwner4<'_>,
) -> OpResult {
    let stateid = c.stateid(locker.open_stateid)?;
    let name = locker.lock_owner.owner.0;
    all.clients().check(ClientId(locker.lock_owner.clientid))?;
    let (at, opener, turn) =
        all.files().state_turn(&stateid, file, OwnerKind::Open, locker.open_seqid, Opnum::LOCK)?;
    c.renew(all, file, at);
    let mark = c.reply.mark();
    let mut lock_owner = None;
    let outcome = c.in_turn(all, opener, turn, locker.open_seqid, Opnum::LOCK, |c, all| {
        let files = all.files();
        let at = files.part(file).find_open(0, None, &stateid, file)?;
        let client = files.part(file).opener_client(at)?;
        if client != ClientId(locker.lock_owner.clientid) {
            return Err(Nfsstat4::BAD_STATEID.into());
        }
        // An owner that is known goes on with its sequence, be it with a lock on this very file: after another OPEN of
        // the file clients begin with the open's stateid again. Anything but its next number is BAD_SEQID (RFC 7530
        // §16.10.5).
        if let Some(owner) = files.known_lock_owner(client, name) {
            match files.lock_turn(owner, locker.lock_seqid)? {
                // A repetition would repeat the open owner's number, too.
                SeqidCheck::Replay(_) => return Err(Nfsstat4::BAD_SEQID.into()),
                SeqidCheck::Run => lock_owner = Some(owner),
            }
        }
        let owner = files.lock_owner(client, name, locker.lock_seqid, c.now.instant);
        let placed = place_in_turn(c, all, file, at, (client, name, owner), args);
        if placed.is_ok() {
            lock_owner = Some(owner);
        }
        all.files().abandon_turn(owner);
        placed
    });
    if let Some(owner) = lock_owner {
        let replay = c.replay_of(Opnum::LOCK, 0, mark, &outcome);
        all.files().record_turn(owner, locker.lock_seqid, replay, c.now.instant);
    }
    outcome
}

/// Locks through the open or lock state `at`, for an owner: client, name, and sequence (4.0). What is stopped has changed
/// nothing.
fn place(
    c: &mut Compound<'_>,
    clients: &Clients,
    files: &mut Files,
    at: u32,
    (client, owner, turn): (ClientId, &[u8], Option<OwnerId>),
    args: &LockArgs<'_>,
) -> Result<Stateid4, LockFailure> {
    let range = Range::new(args.offset, args.length).ok_or(Nfsstat4::INVAL)?;
    let write = args.locktype.is_write();
    let user = c.file().and_then(|file| c.check_user(files.opener_uid(at), file, write));
    user.map_err(Stop::from)?;
    let keeper = Keeper::Client(client);
    if !files.has_room(&keeper) {
        return Err(Stop::Room(keeper).into());
    }
    if args.reclaim {
        clients.may_reclaim(client)?;
    } else {
        clients.may_claim(client)?;
    }
    let request = LockRequest { client, owner, turn, range, write, blocking: args.locktype.is_blocking() };
    files.lock(clients, at, &request, c.now.instant, c.effects)
}

fn answer_lock(
    c: &mut Compound<'_>,
    outcome: Result<Stateid4, LockFailure>,
    args: &LockArgs<'_>,
) -> OpResult {
    match outcome {
        Ok(lock_stateid) => {
            c.reply.encoder.put(&LockOk { lock_stateid });
            c.set_stateid(lock_stateid);
            Ok(())
        }
        Err(LockFailure::Denied(_)) if args.reclaim => Err(Nfsstat4::RECLAIM_CONFLICT.into()),
        Err(LockFailure::Denied(holder)) => Err(denied(c, &holder)),
        Err(LockFailure::Stop(stop)) => Err(refused(c.minor, stop)),
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
