//! The loop over the operations of a COMPOUND (RFC 7530 §15.2, RFC 8881 §16.2 and §2.10.6.4).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_proto::v4::{Argop, Bitmap4, CompoundArgs, Nfsstat4, Opnum};

use super::{
    Compound, Failure, Limit, OpResult, client_ops, deleg_ops, dir_ops, file_ops, io_ops, lock_ops, open_ops,
    security, session_ops, space_ops, xattr_ops,
};
use crate::disk::Access;
use crate::handle::FileId;
use crate::state::session::{Begun, Request, Session, SlotGuard};
use crate::stats::{Operation, Sample};

const MINOR_MAX: u32 = 2;
/// Most operations of a 4.0 COMPOUND; sessions state their own limit.
const OPS_MAX: usize = 256;
/// Reply of a 4.0 COMPOUND beyond the data of one READ.
const REPLY_SPARE: usize = 128 * 1024;

/// Executes the operations and appends the results of COMPOUND.
pub(crate) fn run<'r>(c: &mut Compound<'r>, args: &CompoundArgs<'_>, known: &'r mut Option<Arc<Session>>) {
    c.reply.encoder.put(&Nfsstat4::OK);
    c.reply.encoder.put(&args.tag);
    let count_at = c.reply.mark();
    c.reply.encoder.put(&0u32);
    let (mut status, mut results) = (Nfsstat4::OK, 0);
    let (mut slot, mut known) = (None, Some(known));
    if c.minor > MINOR_MAX {
        status = Nfsstat4::MINOR_VERS_MISMATCH;
    } else if std::str::from_utf8(args.tag.0).is_err() {
        // RFC 8881 §16.2.4.
        status = Nfsstat4::INVAL;
    } else {
        if c.minor == 0 {
            let bytes = (c.server.config.max_io as usize).saturating_add(REPLY_SPARE);
            c.limit = Limit { bytes, status: Nfsstat4::RESOURCE };
        }
        let mut ops = args.ops;
        while let Some(op) = ops.next() {
            c.index = results as usize;
            c.next = ops.peek();
            results += 1;
            status = match op {
                Ok(Argop::Sequence(sequence)) if c.minor > 0 && c.index == 0 => {
                    let request = Request {
                        len: c.request_len,
                        tag: args.tag.0,
                        operations: u32::try_from(c.count).unwrap_or(u32::MAX),
                        rest: ops.rest(),
                    };
                    let mut replay = None;
                    // Within `result`: an injected error must come before the slot is claimed.
                    let status = result(c, Opnum::SEQUENCE, |c| {
                        let known = known.take().ok_or(Nfsstat4::SEQUENCE_POS)?;
                        match session_ops::begin(c.server, known, c.peer, c.who, &sequence, &request, c.now) {
                            Begun::New(guard) => {
                                enter(c, &guard);
                                slot = Some(guard);
                            }
                            Begun::Status(status) => return Err(status.into()),
                            Begun::Replay(reply) => replay = Some(reply),
                        }
                        Ok(())
                    });
                    if let Some(reply) = replay {
                        c.server.repeats();
                        c.reply.rollback(c.start);
                        c.reply.encoder.raw(&reply);
                        return;
                    }
                    status
                }
                Ok(op) => {
                    c.bulk = match &op {
                        Argop::Read(args) => args.count.min(c.server.config.max_io).into(),
                        Argop::Write(args) => args.data.len() as u64,
                        _ => 0,
                    };
                    result(c, op.opnum(), |c| {
                        admit(c, op.opnum())?;
                        let guarded = !c.server.exports.all_allow(c.flavor);
                        if guarded {
                            security::before(c, op.opnum())?;
                        }
                        let opnum = op.opnum();
                        reserve(c, &op)?;
                        let changes = disk_accesses(c, op.opnum());
                        let mut outcome = execute(c, op);
                        if guarded && outcome.is_ok() {
                            outcome = security::after(c, opnum);
                        }
                        if outcome.is_ok() {
                            let made = c.made_in.take().map(|directory| Access::Names { directory });
                            changes.into_iter().flatten().chain(made).for_each(|access| c.on_disk(|| access));
                        }
                        let has_body = outcome.map_or_else(|failure| failure.keep_body, |()| true);
                        if has_body && !c.fits(0) { Err(c.limit.status.into()) } else { outcome }
                    })
                }
                Err(bad) => result(c, bad.opnum, |_| Err(bad.status.into())),
            };
            if status != Nfsstat4::OK {
                break;
            }
        }
        c.reply.encoder.patch_u32(count_at, results);
    }
    c.reply.encoder.patch_u32(c.start, status.0);
    match slot {
        Some(slot) if c.waits => slot.take_back(),
        Some(slot) => slot.finish(c.reply, c.start, results),
        None => {}
    }
}

/// The request has its slot: what SEQUENCE decides for the operations after it.
fn enter<'r>(c: &mut Compound<'r>, slot: &SlotGuard<'r>) {
    let session = slot.session;
    let limits = &session.limits;
    c.limit = if slot.cache_this && limits.maxresponsesize_cached < limits.maxresponsesize {
        Limit { bytes: limits.maxresponsesize_cached as usize, status: Nfsstat4::REP_TOO_BIG_TO_CACHE }
    } else {
        Limit { bytes: limits.maxresponsesize as usize, status: Nfsstat4::REP_TOO_BIG }
    };
    c.client = Some(session.client());
    c.session = Some((session, slot.slot));
    c.reply.encoder.put(&slot.result);
}

/// Runs one operation and writes its result: number, status, body.
fn result<'r>(
    c: &mut Compound<'r>,
    opnum: Opnum,
    run: impl FnOnce(&mut Compound<'r>) -> OpResult,
) -> Nfsstat4 {
    c.reply.encoder.put(&opnum);
    let status_at = c.reply.mark();
    c.reply.encoder.put(&Nfsstat4::OK);
    let body = c.reply.mark();
    let outcome = match injected(c, opnum) {
        Some(status) => Err(status.into()),
        None => run(c),
    };
    // One reading for the end of this operation and the beginning of the next.
    let began = std::mem::replace(&mut c.since, c.server.clock.now());
    let sample = Sample {
        received: c.bulk,
        sent: c.reply.encoder.len_since(status_at) as u64,
        service: Duration::from_nanos(c.server.clock.nanos(began, c.since)),
        error: outcome.is_err(),
    };
    c.server.statistics.record(c.host, Operation::V4(opnum), sample);
    let Err(Failure { status, keep_body }) = outcome else { return Nfsstat4::OK };
    let status = if c.minor == 0 { status_in_v40(opnum, status) } else { status };
    c.reply.encoder.patch_u32(status_at, status.0);
    if !keep_body {
        c.reply.rollback(body);
        if opnum == Opnum::SETATTR {
            // Its bitmap comes with every status; a failed SETATTR has set nothing.
            c.reply.encoder.put(&Bitmap4::EMPTY);
        }
    }
    status
}

/// What rules do to an operation: an error in its place, or something that befalls the whole reply.
#[inline]
fn injected(c: &mut Compound<'_>, opnum: Opnum) -> Option<Nfsstat4> {
    if c.server.injector.is_idle() {
        return None;
    }
    let operation = Operation::V4(opnum);
    let decision = c.server.injector.decide(operation, c.host, c.bulk, c.now.instant);
    c.injected = c.injected.and(decision);
    c.reply.falsify(&decision);
    decision.error.map(Nfsstat4)
}

/// Whether the operation may stand where it does.
fn admit(c: &Compound<'_>, opnum: Opnum) -> OpResult {
    /// Operations that need no SEQUENCE before them, if alone (RFC 8881 §15.1.3.3).
    const SESSIONLESS: [Opnum; 5] = [
        Opnum::BIND_CONN_TO_SESSION,
        Opnum::EXCHANGE_ID,
        Opnum::CREATE_SESSION,
        Opnum::DESTROY_SESSION,
        Opnum::DESTROY_CLIENTID,
    ];
    if c.minor == 0 {
        return if c.index < OPS_MAX { Ok(()) } else { Err(Nfsstat4::RESOURCE.into()) };
    }
    let status = match (c.index, opnum) {
        (0, Opnum::SEQUENCE) => return Ok(()),
        (_, Opnum::SEQUENCE) if is_broken(Mutant::LaterSequenceInvalid) => Nfsstat4::INVAL,
        (_, Opnum::SEQUENCE) => Nfsstat4::SEQUENCE_POS,
        (0, op) if !SESSIONLESS.contains(&op) && is_broken(Mutant::OutOfSessionInvalid) => Nfsstat4::INVAL,
        (0, op) if !SESSIONLESS.contains(&op) => Nfsstat4::OP_NOT_IN_SESSION,
        (0, _) if c.count > 1 && !is_broken(Mutant::NotAlone) => Nfsstat4::NOT_ONLY_OP,
        // Not even with SEQUENCE (RFC 8881 §18.34.3).
        (1.., Opnum::BIND_CONN_TO_SESSION) => Nfsstat4::NOT_ONLY_OP,
        _ => return Ok(()),
    };
    Err(status.into())
}

/// Before an operation that changes something: whether its result will fit. Afterwards would be too late.
fn reserve(c: &mut Compound<'_>, op: &Argop<'_>) -> OpResult {
    let Some(most) = most_of_change(op) else { return Ok(()) };
    if !c.fits(most) {
        return Err(c.limit.status.into());
    }
    c.non_idempotent = true;
    Ok(())
}

/// For operations that change something: the longest body of a successful result. For those that change the current
/// file handle, a following GETFH is counted, without which the client could not know what it made (RFC 8881
/// §2.10.6.4).
fn most_of_change(op: &Argop<'_>) -> Option<usize> {
    const CHANGE_INFO: usize = 20;
    const STATEID: usize = 16;
    const BITMAP: usize = 16;
    const VERIFIER: usize = 8;
    const GETFH: usize = 8 + 4 + crate::handle::HANDLE_LEN;
    /// A write delegation with its space limit and an entry for `EVERYONE@`.
    const DELEGATION: usize = 4 + STATEID + 4 + 12 + 12 + 4 + 12;
    Some(match op {
        Argop::Create(_) => CHANGE_INFO + BITMAP + GETFH,
        Argop::Open(_) => STATEID + CHANGE_INFO + 4 + BITMAP + DELEGATION + GETFH,
        Argop::Link(_) | Argop::Remove(_) | Argop::Setxattr(_) | Argop::Removexattr(_) => CHANGE_INFO,
        Argop::Rename(_) => 2 * CHANGE_INFO,
        Argop::Setattr(_) => BITMAP,
        Argop::Write(_) => 4 + 4 + 8,
        Argop::Close(_)
        | Argop::Lock(_)
        | Argop::Locku(_)
        | Argop::OpenConfirm(_)
        | Argop::OpenDowngrade(_) => STATEID,
        Argop::WantDelegation(_) => DELEGATION,
        Argop::GetDirDelegation(_) => 4 + VERIFIER + STATEID + 3 * BITMAP,
        Argop::Copy(_) => 4 + 8 + 4 + 8 + 8,
        Argop::Allocate(_)
        | Argop::Deallocate(_)
        | Argop::Clone(_)
        | Argop::Delegreturn(_)
        | Argop::Delegpurge(_)
        | Argop::ReleaseLockowner(_)
        | Argop::FreeStateid(_)
        | Argop::ReclaimComplete(_) => 0,
        _ => return None,
    })
}

/// Statuses that came with 4.1, as 4.0 would have them (RFC 7530 §13): an object of a wrong type is an invalid
/// argument, and so is a symbolic link for data (RFC 7530 §16.23.4).
fn status_in_v40(opnum: Opnum, status: Nfsstat4) -> Nfsstat4 {
    match (opnum, status) {
        (_, Nfsstat4::WRONG_TYPE) => Nfsstat4::INVAL,
        (Opnum::READ | Opnum::WRITE | Opnum::COMMIT | Opnum::SETATTR, Nfsstat4::SYMLINK) => Nfsstat4::INVAL,
        (Opnum::RESTOREFH, Nfsstat4::NOFILEHANDLE) => Nfsstat4::RESTOREFH,
        _ => status,
    }
}

/// What a change of names or attributes writes to the disk; OPEN, READ, WRITE and COMMIT know themselves.
fn disk_accesses(c: &Compound<'_>, opnum: Opnum) -> [Option<Access>; 2] {
    if c.server.disk.is_none() {
        return [None; 2];
    }
    let names = |directory: Option<FileId>| directory.map(|directory| Access::Names { directory });
    let attributes = |file: Option<FileId>| file.map(|file| Access::Attributes { file });
    match opnum {
        Opnum::CREATE | Opnum::REMOVE => [names(c.current), None],
        Opnum::RENAME => [names(c.current), names(c.saved.filter(|saved| Some(*saved) != c.current))],
        Opnum::LINK => [names(c.current), attributes(c.saved)],
        Opnum::SETATTR
        | Opnum::ALLOCATE
        | Opnum::DEALLOCATE
        | Opnum::CLONE
        | Opnum::COPY
        | Opnum::SETXATTR
        | Opnum::REMOVEXATTR => [attributes(c.current), None],
        _ => [None; 2],
    }
}

fn execute(c: &mut Compound<'_>, op: Argop<'_>) -> OpResult {
    match op {
        Argop::Access(args) => file_ops::access(c, args),
        Argop::Commit(args) => io_ops::commit(c, args),
        Argop::Create(args) => dir_ops::create(c, args),
        Argop::Getattr(args) => file_ops::getattr(c, args),
        Argop::Getfh => file_ops::getfh(c),
        Argop::Link(args) => dir_ops::link(c, args),
        Argop::Lookup(args) => file_ops::lookup(c, args),
        Argop::Lookupp => file_ops::lookupp(c),
        Argop::Nverify(args) => file_ops::nverify(c, args),
        Argop::Putfh(args) => file_ops::putfh(c, args),
        Argop::Putpubfh | Argop::Putrootfh => file_ops::putrootfh(c),
        Argop::Read(args) => io_ops::read(c, args),
        Argop::Readdir(args) => dir_ops::readdir(c, args),
        Argop::Readlink => file_ops::readlink(c),
        Argop::Remove(args) => dir_ops::remove(c, args),
        Argop::Rename(args) => dir_ops::rename(c, args),
        Argop::Restorefh => file_ops::restorefh(c),
        Argop::Savefh => file_ops::savefh(c),
        Argop::Secinfo(args) => security::secinfo(c, args),
        Argop::SecinfoNoName(args) => security::secinfo_no_name(c, args),
        Argop::Setattr(args) => file_ops::setattr(c, args),
        Argop::Verify(args) => file_ops::verify(c, args),
        Argop::Write(args) => io_ops::write(c, args),
        Argop::Allocate(args) => space_ops::allocate(c, args),
        Argop::Clone(args) => space_ops::clone(c, args),
        Argop::Copy(args) => space_ops::copy(c, args),
        Argop::Deallocate(args) => space_ops::deallocate(c, args),
        Argop::IoAdvise(args) => space_ops::io_advise(c, args),
        Argop::ReadPlus(args) => space_ops::read_plus(c, args),
        Argop::Seek(args) => space_ops::seek(c, args),
        Argop::Getxattr(args) => xattr_ops::getxattr(c, args),
        Argop::Setxattr(args) => xattr_ops::setxattr(c, args),
        Argop::Listxattrs(args) => xattr_ops::listxattrs(c, args),
        Argop::Removexattr(args) => xattr_ops::removexattr(c, args),
        Argop::Setclientid(args) => client_ops::setclientid(c, args),
        Argop::SetclientidConfirm(args) => client_ops::setclientid_confirm(c, args),
        Argop::Renew(args) => client_ops::renew(c, args),
        Argop::BackchannelCtl(args) => session_ops::backchannel_ctl(c, args),
        Argop::BindConnToSession(args) => session_ops::bind_conn_to_session(c, args),
        Argop::ExchangeId(args) => session_ops::exchange_id(c, args),
        Argop::CreateSession(args) => session_ops::create_session(c, args),
        Argop::DestroySession(args) => {
            let own = c.session.as_ref().is_some_and(|(session, _)| session.id() == args.sessionid);
            if own && c.index + 1 < c.count {
                // The session of the request itself: at its end only (RFC 8881 §18.37.3).
                return Err(Nfsstat4::NOT_ONLY_OP.into());
            }
            session_ops::destroy_session(c, args)
        }
        Argop::DestroyClientid(args) => session_ops::destroy_clientid(c, args),
        Argop::ReclaimComplete(args) => session_ops::reclaim_complete(c, args),
        Argop::SetSsv(args) => session_ops::set_ssv(c, args),
        Argop::Open(args) => open_ops::open(c, args),
        Argop::OpenConfirm(args) => open_ops::open_confirm(c, args),
        Argop::OpenDowngrade(args) => open_ops::open_downgrade(c, args),
        Argop::Close(args) => open_ops::close(c, args),
        Argop::Lock(args) => lock_ops::lock(c, args),
        Argop::Lockt(args) => lock_ops::lockt(c, args),
        Argop::Locku(args) => lock_ops::locku(c, args),
        Argop::ReleaseLockowner(args) => lock_ops::release_lockowner(c, args),
        Argop::TestStateid(args) => lock_ops::test_stateid(c, args),
        Argop::FreeStateid(args) => lock_ops::free_stateid(c, args),
        Argop::Delegreturn(args) => deleg_ops::delegreturn(c, args),
        Argop::WantDelegation(args) => deleg_ops::want_delegation(c, args),
        // Which notifications are wanted does not matter: none are sent.
        Argop::GetDirDelegation(args) => deleg_ops::get_dir_delegation(c, args),
        // Optional, and not offered: named attributes, delegations that outlive a client's restart (DELEGPURGE), pNFS,
        // copies between servers, asynchronous copies, WRITE_SAME.
        _ => Err(Nfsstat4::NOTSUPP.into()),
    }
}
