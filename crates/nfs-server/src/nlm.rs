//! Network lock manager versions 1, 3 and 4 (RFC 1813 appendix II) and the part of NSM that it needs.
//!
//! Locks live in the table that NFSv4 uses too ([`crate::state`]). A lock that had to wait is granted by a call to the
//! client's own lock manager: [`callback`].

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::nlm::{self as proto, Netobj, NlmStats, Notify, Proc, Res, ShareArgs, ShareRes};
use benchmaster_nfs_proto::xdr::Encoder;
use proto::v4::{CancelArgs, LockArgs, TestArgs, TestReply, UnlockArgs};

use crate::call::{Call, Refusal, Served};
use crate::fs::{FsError, Kind, access, permits};
use crate::handle::FileId;
use crate::peer::Protection;
use crate::shared::Shared;
use crate::state::file::Keeper;
use crate::state::interval::Range;
use crate::state::nlm::NlmOutcome;
use crate::state::nlm_lock::{NlmHost, NlmLock, NlmOwner, NlmWaiter, Route};
use crate::state::{Effects, Stop};

mod args;
pub(crate) mod callback;
mod messages;
pub(crate) mod monitor;
pub(crate) mod nsm;
pub(crate) mod share;
#[cfg(test)]
mod tests;

/// Lowest and highest version served (2 never was one).
pub(crate) const VERSIONS: (u32, u32) = (proto::v1::VERSION, proto::v4::VERSION);

pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    let procedure = Proc(call.procedure);
    if call.version < proto::v1::VERSION_3 && procedure.0 >= Proc::SHARE.0 {
        return Err(Refusal::ProcUnavail);
    }
    match procedure {
        Proc::NULL => Ok(0),
        Proc::TEST | Proc::TEST_MSG => {
            let args = args::test(call)?;
            Ok(test(call, &args))
        }
        Proc::LOCK | Proc::LOCK_MSG | Proc::NM_LOCK => {
            let args = args::lock(call)?;
            let stat = lock(call, &args).unwrap_or_else(|stat| stat);
            Ok(answer(call, args.cookie, stat))
        }
        Proc::CANCEL | Proc::CANCEL_MSG => {
            let args = args::cancel(call)?;
            let stat = cancel(call, &args).unwrap_or_else(|stat| stat);
            Ok(answer(call, args.cookie, stat))
        }
        Proc::UNLOCK | Proc::UNLOCK_MSG => {
            let args = args::unlock(call)?;
            let stat = unlock(call, &args).unwrap_or_else(|stat| stat);
            Ok(answer(call, args.cookie, stat))
        }
        // Those are for clients; nothing waits here.
        Proc::GRANTED | Proc::GRANTED_MSG => {
            let args = args::test(call)?;
            Ok(answer(call, args.cookie, NlmStats::DENIED))
        }
        // Answers to messages that this server does not send: it calls GRANTED, whose answer is its reply.
        Proc::TEST_RES | Proc::LOCK_RES | Proc::CANCEL_RES | Proc::UNLOCK_RES | Proc::GRANTED_RES => Ok(0),
        Proc::SHARE | Proc::UNSHARE => {
            let args: ShareArgs<'_> = call.args()?;
            let stat = share(call, &args, procedure == Proc::SHARE).unwrap_or_else(|stat| stat);
            let stat = in_version(call.version, stat);
            call.reply.encoder.put(&ShareRes { cookie: args.cookie, stat, sequence: 0 });
            Ok(stat.0)
        }
        Proc::FREE_ALL => {
            let args: Notify<'_> = call.args()?;
            free_all(call, args.name.0);
            Ok(0)
        }
        _ => Err(Refusal::ProcUnavail),
    }
}

/// Whether a call that comes twice is to be executed once: a LOCK that the network delayed until after its UNLOCK would lock
/// again, and nothing would ever unlock it.
pub(crate) fn must_not_repeat(procedure: u32) -> bool {
    matches!(Proc(procedure), Proc::LOCK | Proc::CANCEL | Proc::UNLOCK | Proc::NM_LOCK)
}

/// To be called about ten times a second: takes locks back that clients did not want any more when they were granted.
pub(crate) fn tick(server: &Shared, effects: &mut Effects) {
    for lock in server.lock_callbacks.refused() {
        server.state.write(lock.file).files().nlm_unlock(lock.file, &lock.owner, lock.range, effects);
    }
    server.monitor.tell(&server.lock_callbacks, server.boot, server.address.ip());
    if !server.state.clients().clients().in_grace() {
        server.monitor.grace_ended();
    }
}

/// A lock that had to wait is given: tells its host, now and after a restart.
pub(crate) fn granted(server: &Shared, waiter: &NlmWaiter) {
    server.monitor.note(waiter.route);
    server.lock_callbacks.granted(waiter);
}

/// Forgets all locks and shares of a machine that says this of itself: those that came from the same address.
fn free_all(call: &mut Call<'_>, name: &[u8]) {
    if is_broken(Mutant::ClientRestartIgnored) {
        return;
    }
    let host = host(call, name);
    call.server.state.each_part(|part| part.files().nlm_free_all(&host, call.effects));
    call.server.shares.free_all(&host);
}

fn host(call: &Call<'_>, name: &[u8]) -> NlmHost {
    NlmHost { address: call.peer.address.ip().to_canonical(), name: name.into() }
}

fn test(call: &mut Call<'_>, args: &TestArgs<'_>) -> u32 {
    let holder = wanted(call, &args.alock, args.exclusive).and_then(|lock| {
        let part = call.server.state.read(lock.file);
        if part.clients().in_grace() {
            return Err(NlmStats::DENIED_GRACE_PERIOD);
        }
        Ok(part.files().nlm_test(&lock))
    });
    let version = call.version;
    let reply = match &holder {
        Ok(None) => TestReply::Other(NlmStats::GRANTED.0),
        Ok(Some(holder)) => TestReply::Denied(proto::v4::Holder {
            exclusive: holder.write,
            svid: holder.svid,
            oh: holder.owner[..].into(),
            l_offset: holder.range.first,
            l_len: holder.range.nlm_length(),
        }),
        Err(stat) => TestReply::Other(in_version(version, *stat).0),
    };
    send(call, |e| messages::put_test_res(e, version, args.cookie, reply));
    reply.stat().0
}

fn lock(call: &mut Call<'_>, args: &LockArgs<'_>) -> Result<NlmStats, NlmStats> {
    let lock = wanted(call, &args.alock, args.exclusive)?;
    let wait = args.block.then(|| NlmWaiter {
        lock: lock.clone(),
        version: call.version,
        route: route(call),
        handle: args.alock.fh.0.into(),
        cookie: args.cookie.0.into(),
    });
    let now = call.now.instant;
    let outcome = loop {
        let outcome = {
            let mut part = call.server.state.write(lock.file);
            let (clients, files) = part.split();
            files.nlm_lock(clients, &lock, wait.clone(), args.reclaim, now, call.effects)
        };
        let NlmOutcome::Stop(stop) = outcome else { break outcome };
        let cleared = call.server.state.clear(lock.file, stop, now, call.effects);
        cleared.map_err(|_| NlmStats::DENIED_NOLOCKS)?;
    };
    Ok(match outcome {
        NlmOutcome::Granted => {
            call.server.monitor.note(route(call));
            NlmStats::GRANTED
        }
        NlmOutcome::Denied => NlmStats::DENIED,
        NlmOutcome::Blocked => NlmStats::BLOCKED,
        NlmOutcome::Grace => NlmStats::DENIED_GRACE_PERIOD,
        NlmOutcome::Stop(_) => NlmStats::DENIED_NOLOCKS,
    })
}

fn cancel(call: &mut Call<'_>, args: &CancelArgs<'_>) -> Result<NlmStats, NlmStats> {
    let lock = described(call, &args.alock, args.exclusive)?;
    let found = call.server.state.write(lock.file).files().nlm_cancel(&lock);
    Ok(if found { NlmStats::GRANTED } else { NlmStats::DENIED })
}

fn unlock(call: &mut Call<'_>, args: &UnlockArgs<'_>) -> Result<NlmStats, NlmStats> {
    let mut lock = described(call, &args.alock, false)?;
    let state = &call.server.state;
    let mut part = state.write(lock.file);
    // A request that still waits is given up too: the answer to its CANCEL, or to the LOCK itself, may have been lost.
    for exclusive in [false, true] {
        lock.exclusive = exclusive;
        part.files().nlm_cancel(&lock);
    }
    if !part.files().nlm_may_unlock(&lock) {
        drop(part);
        let room = Stop::Room(Keeper::Host(lock.owner.host.address));
        let cleared = state.clear(lock.file, room, call.now.instant, call.effects);
        cleared.map_err(|_| NlmStats::DENIED_NOLOCKS)?;
        part = state.write(lock.file);
    }
    part.files().nlm_unlock(lock.file, &lock.owner, lock.range, call.effects);
    Ok(NlmStats::GRANTED)
}

fn share(call: &mut Call<'_>, args: &ShareArgs<'_>, take: bool) -> Result<NlmStats, NlmStats> {
    let file = file(call, args.share.fh)?;
    if !take {
        call.server.shares.release(file, &host(call, args.share.caller_name.0), &args.share);
        return Ok(NlmStats::GRANTED);
    }
    let in_grace = call.server.state.clients().clients().in_grace();
    if in_grace != args.reclaim {
        return Err(NlmStats::DENIED_GRACE_PERIOD);
    }
    let state = &call.server.state;
    let denied = share::reads(args.share.access) && state.denied(file, false)
        || share::writes(args.share.access) && state.denied(file, true);
    if denied {
        return Err(NlmStats::DENIED);
    }
    call.server.shares.take(file, host(call, args.share.caller_name.0), &args.share)?;
    call.server.monitor.note(route(call));
    Ok(NlmStats::GRANTED)
}

/// A lock that the caller may ask for: who may not write may not lock exclusively.
fn wanted(call: &mut Call<'_>, alock: &proto::v4::Lock<'_>, exclusive: bool) -> Result<NlmLock, NlmStats> {
    let lock = described(call, alock, exclusive)?;
    let attr = call.attr(lock.file).map_err(|_| NlmStats::STALE_FH)?;
    if attr.kind != Kind::Regular {
        return Err(NlmStats::FAILED);
    }
    let right = if exclusive { access::WRITE } else { access::READ };
    if attr.uid != call.who.uid && !permits(&attr, call.who, right) {
        return Err(NlmStats::DENIED);
    }
    Ok(lock)
}

fn described(call: &mut Call<'_>, alock: &proto::v4::Lock<'_>, exclusive: bool) -> Result<NlmLock, NlmStats> {
    // To the end is 0, and all ones as well.
    let length = if alock.l_len == 0 { u64::MAX } else { alock.l_len };
    let range = Range::new(alock.l_offset, length).ok_or(NlmStats::FBIG)?;
    let host = host(call, alock.caller_name.0);
    let owner = NlmOwner { host, oh: alock.oh.0.into(), svid: alock.svid };
    Ok(NlmLock { file: file(call, alock.fh)?, owner, range, exclusive })
}

/// Lock managers of kernels use AUTH_SYS, whatever flavour the file is used with: docs/decisions/0071-locks-with-auth-sys.md.
fn file(call: &mut Call<'_>, handle: Netobj<'_>) -> Result<FileId, NlmStats> {
    let id = call.resolve_by_any_flavor(handle.0).map_err(|_| NlmStats::STALE_FH)?;
    match call.attr(id) {
        Ok(_) => Ok(id),
        Err(FsError::Stale) => Err(NlmStats::STALE_FH),
        Err(_) => Err(NlmStats::FAILED),
    }
}

/// Answers with a status, in the reply or by a call of the answering procedure.
fn answer(call: &mut Call<'_>, cookie: Netobj<'_>, stat: NlmStats) -> u32 {
    let stat = in_version(call.version, stat);
    send(call, |e| e.put(&Res { cookie, stat }));
    if stat == NlmStats::BLOCKED { 0 } else { stat.0 }
}

fn route(call: &Call<'_>) -> Route {
    Route {
        client: call.peer.address.ip(),
        server: call.peer.local.ip(),
        secured: call.peer.protection != Protection::Plain,
    }
}

fn send(call: &mut Call<'_>, put: impl FnOnce(&mut Encoder)) {
    match Proc(call.procedure) {
        Proc::TEST_MSG | Proc::LOCK_MSG | Proc::CANCEL_MSG | Proc::UNLOCK_MSG | Proc::GRANTED_MSG => {
            let mut e = Encoder::new();
            put(&mut e);
            /// From a message to its answer: TEST_MSG 6, TEST_RES 11, and so on.
            const ANSWER: u32 = Proc::TEST_RES.0 - Proc::TEST_MSG.0;
            let procedure = Proc(call.procedure + ANSWER);
            call.server.lock_callbacks.message(route(call), call.version, procedure, e.buffer());
        }
        _ => put(&mut call.reply.encoder),
    }
}

/// Versions 1 and 3 end at DENIED_GRACE_PERIOD.
fn in_version(version: u32, stat: NlmStats) -> NlmStats {
    match stat {
        _ if version >= proto::v4::VERSION => stat,
        NlmStats::DEADLCK => NlmStats::DENIED,
        NlmStats::ROFS | NlmStats::STALE_FH | NlmStats::FBIG | NlmStats::FAILED => NlmStats::DENIED_NOLOCKS,
        stat => stat,
    }
}
