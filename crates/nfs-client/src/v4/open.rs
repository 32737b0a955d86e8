//! OPEN and OPEN_CONFIRM.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_proto::v4::{
    AccessArgs, AccessOk, Bitmap4, Createhow4, Creatverfattr, GetattrOk, Nfsstat4, OPEN_RESULT_CONFIRM,
    OpenArgs, OpenClaim4, OpenClaimDelegateCur4, OpenConfirmArgs, OpenConfirmOk, OpenDelegation4,
    OpenDelegationType4, OpenOk, Openflag4, Opnum, SHARE_ACCESS_READ, SHARE_ACCESS_WRITE, SHARE_DENY_NONE,
    Stateid4, WANT_NO_DELEG, fattr4,
};

use super::attrs::{self, Encoded};
use super::compound::{Failure, Ops, Results};
use super::delegation::DelegationKind;
use super::establish::handle_of;
use super::io_ops::is_gone;
use super::need::Need;
use super::request::{Kind, Retry};
use super::state::{File, OpenState, Owner, SeqidGuard};
use super::{Client, Inner};
use crate::delay::{Delay, DelayPolicy};
use crate::error::NfsError;
use crate::ops::{Op, v4 as ops};
use crate::protocol::{NfsResult, Opened};
use crate::types::{AccessBits, Attributes, Create, Handle, OpenHow, SetAttributes};

/// How often a number of an owner is guessed, each time one lower: a server that does not count requests which it put
/// off (DELAY, GRACE) may be several behind.
pub(super) const GUESSES: u32 = 16;

/// How long the reply of an earlier OPEN is waited for.
const REORDERED: Duration = Duration::from_secs(5);

/// By which right a file is opened.
#[derive(Debug, Clone, Copy)]
pub(super) enum Claim<'a> {
    Name(&'a Handle, &'a [u8]),
    Handle(&'a Handle),
    Previous(&'a Handle, OpenDelegationType4),
    DelegateCur(&'a Handle, &'a [u8], Stateid4),
    DelegateCurHandle(&'a Handle, Stateid4),
}

#[derive(Debug, Clone, Copy)]
struct Request<'a> {
    claim: Claim<'a>,
    access: u32,
    how: Openflag4<'a>,
    /// Counted as OPEN, and asks for attributes.
    attributes: bool,
    recovery: bool,
    /// Another file of the same open.
    beside: Option<&'a File>,
}

/// What an OPEN brought. It is large, and is written in place instead of being returned.
#[derive(Debug, Default)]
struct Reply {
    stateid: Stateid4,
    handle: Option<Handle>,
    /// Why the filehandle did not come.
    failed: Option<Nfsstat4>,
    confirm: bool,
    set: Bitmap4,
    /// Whether the directory changed.
    changed: bool,
    delegation: Option<(DelegationKind, Stateid4, bool)>,
    attributes: Option<Attributes>,
}

/// Counts an OPEN that is under way.
struct Opening<'i>(&'i Inner);

impl<'i> Opening<'i> {
    fn new(inner: &'i Inner) -> Self {
        inner.files.opening.set(inner.files.opening.get() + 1);
        Self(inner)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let left = self.0.files.opening.get() - 1;
        self.0.files.opening.set(left);
        if left == 0 {
            self.0.delegations.nothing_opens();
        }
    }
}

/// Counts an OPEN that waits for the replies of earlier ones.
struct Waiting<'i>(&'i Cell<u32>);

impl<'i> Waiting<'i> {
    fn new(waiting: &'i Cell<u32>) -> Self {
        waiting.set(waiting.get() + 1);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// `share_access` of an open.
pub(super) fn access_of(how: &OpenHow) -> u32 {
    let access =
        if how.read { SHARE_ACCESS_READ } else { 0 } | if how.write { SHARE_ACCESS_WRITE } else { 0 };
    access.max(SHARE_ACCESS_READ)
}

impl Inner {
    /// Opens a file by its name.
    pub(super) async fn open(
        self: &Rc<Self>,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
    ) -> NfsResult<Opened<File>> {
        let access = access_of(how);
        let size = (how.truncate && how.create == Create::IfAbsent).then_some(0);
        let exclusive = how.create == Create::Exclusive;
        let mut first = SetAttributes { mode: Some(how.mode & 0o7777), size, ..Default::default() };
        if exclusive && !self.exclusive.get().contains(fattr4::MODE) {
            first.mode = None;
        }
        let first = Encoded::new(&first);
        let verf = self.files.verifier(&self.options.verifier);
        let how4 = match how.create {
            Create::No => Openflag4::NoCreate,
            Create::IfAbsent => Openflag4::Create(Createhow4::Unchecked(first.fattr())),
            Create::Exclusive if self.has_sessions() => {
                Openflag4::Create(Createhow4::Exclusive41(Creatverfattr { verf, attrs: first.fattr() }))
            }
            Create::Exclusive => Openflag4::Create(Createhow4::Exclusive(verf)),
        };
        let request = Request {
            claim: Claim::Name(directory, name),
            access,
            how: how4,
            attributes: true,
            recovery: false,
            beside: None,
        };
        let mut reply = Reply::default();
        let file = self.open_with(&request, Some((directory, name)), &mut reply).await?;
        let mut attributes = reply.attributes;
        let mut left = SetAttributes::default();
        if exclusive && !reply.set.contains(fattr4::MODE) {
            left.mode = Some(how.mode & 0o7777);
        }
        if how.truncate && how.create != Create::IfAbsent && !exclusive {
            left.size = Some(0);
        }
        if left != SetAttributes::default() {
            match self.setattr(&file.handle(), Some(&file), &left).await {
                Ok(after) => attributes = after.or(attributes),
                Err(error) => {
                    // What the caller sees is the first error.
                    let _ = self.close(file).await;
                    return Err(error);
                }
            }
        }
        let created = exclusive || (how.create == Create::IfAbsent && reply.changed);
        Ok(Opened { file, attributes, created })
    }

    /// Opens, and takes in the state.
    async fn open_with(
        self: &Rc<Self>,
        request: &Request<'_>,
        place: Option<(&Handle, &[u8])>,
        reply: &mut Reply,
    ) -> NfsResult<File> {
        let _opening = Opening::new(self);
        let mut retry: Option<Retry> = None;
        let (mut guesses, mut changed, mut delegation) = (0, false, None);
        // The owner of a file that has it open already, or of an attempt that opened it: with it, it is the same open.
        let mut again = request.beside.map(|file| file.state.owner.borrow().clone());
        loop {
            let turn = match &again {
                Some(owner) => self.turn_of(owner).await?,
                None => self.any_turn().await?,
            };
            let epoch = self.recovery.epoch();
            let mut result = self.send_open(&turn, request, reply).await;
            while let Err(NfsError::V4(Nfsstat4::BAD_SEQID)) = result
                && guesses < GUESSES
            {
                guesses += 1;
                turn.step_back();
                turn.next();
                result = self.send_open(&turn, request, reply).await;
            }
            let status = match result {
                Ok(()) => match (&reply.handle, reply.failed) {
                    (Some(handle), _) => {
                        let handle = *handle;
                        // Also where an earlier attempt created it, or brought the delegation.
                        reply.changed |= changed;
                        reply.delegation = reply.delegation.or(delegation);
                        if reply.confirm {
                            match self.confirm(&turn, &handle, reply.stateid, false).await {
                                Ok(stateid) => reply.stateid = stateid,
                                // The server did not take the owner for known, or has lost it with all state: the open
                                // is void, and is repeated. What else was lost is found out by the next OPEN.
                                Err(NfsError::V4(
                                    Nfsstat4::BAD_SEQID
                                    | Nfsstat4::BAD_STATEID
                                    | Nfsstat4::STALE_STATEID
                                    | Nfsstat4::EXPIRED,
                                )) => {
                                    (changed, delegation) = (reply.changed, reply.delegation);
                                    self.owners.discard(&turn.owner);
                                    retry.get_or_insert_with(|| Retry::new(self)).recovering()?;
                                    continue;
                                }
                                Err(error) => return Err(error),
                            }
                        }
                        self.in_order(&turn.owner, handle, reply.stateid).await;
                        let access = request.access;
                        let (file, replaced) =
                            self.files.opened(&turn.owner, handle, reply.stateid, access, place);
                        if replaced {
                            self.lose_locks(&file.state);
                            if file.state.needed() & !access != 0 {
                                file.state.suspect.set(true);
                                self.demand(Need::STATES, self.recovery.epoch());
                            }
                        }
                        if let Some((kind, stateid, recalled)) = reply.delegation {
                            self.granted(handle, kind, stateid, recalled, reply.attributes.as_ref());
                        }
                        return Ok(file);
                    }
                    // Opened, but we do not know what.
                    (None, Some(status)) => {
                        changed |= reply.changed;
                        delegation = reply.delegation.or(delegation);
                        again = Some(turn.owner.clone());
                        status
                    }
                    (None, None) => return Err(NfsError::Nonsense("no filehandle")),
                },
                Err(NfsError::V4(Nfsstat4::BAD_SEQID)) => {
                    again = None;
                    self.owners.discard(&turn.owner);
                    retry.get_or_insert_with(|| Retry::new(self)).recovering()?;
                    continue;
                }
                Err(NfsError::V4(status)) => status,
                Err(error) => return Err(error),
            };
            drop(turn);
            let delegated = matches!(request.claim, Claim::DelegateCur(..) | Claim::DelegateCurHandle(..));
            if delegated && is_gone(status) {
                return Err(NfsError::V4(status));
            }
            if !retry.get_or_insert_with(|| Retry::new(self)).after(self, status, epoch).await? {
                return Err(NfsError::V4(status));
            }
        }
    }

    /// Waits until earlier OPENs of the same file are known, whose replies are still on their way. A CLOSE meanwhile would
    /// close the file for them too (Linux: `nfs_set_open_stateid_locked`, which waits as long).
    async fn in_order(self: &Rc<Self>, owner: &Rc<Owner>, handle: Handle, stateid: Stateid4) {
        let files = &self.files;
        let mut delay = Delay::new(DelayPolicy { give_up: REORDERED, ..DelayPolicy::LOCK });
        while !files.follows(owner, handle, stateid) {
            // The others may wait for the same.
            let waiting = Waiting::new(&files.waiting);
            if files.opening.get() <= files.waiting.get() {
                return;
            }
            let Ok(at) = delay.again(self.reactor.now()) else { return };
            self.reactor.sleep_until(at).await;
            drop(waiting);
        }
    }

    /// Sends an OPEN once.
    async fn send_open(
        self: &Rc<Self>,
        turn: &SeqidGuard,
        request: &Request<'_>,
        reply: &mut Reply,
    ) -> NfsResult<()> {
        let (directory, claim, by_name) = match request.claim {
            Claim::Name(directory, name) => (directory, OpenClaim4::Null(name.into()), true),
            Claim::Handle(handle) => (handle, OpenClaim4::Fh, false),
            Claim::Previous(handle, kind) => (handle, OpenClaim4::Previous(kind), false),
            Claim::DelegateCur(directory, name, delegate_stateid) => {
                let claim = OpenClaimDelegateCur4 { delegate_stateid, file: name.into() };
                (directory, OpenClaim4::DelegateCur(claim), true)
            }
            Claim::DelegateCurHandle(handle, stateid) => (handle, OpenClaim4::DelegCurFh(stateid), false),
        };
        // What is cached of a file that others may have changed meanwhile is not what a delegation would answer for.
        let opened_again = request.recovery && !matches!(request.claim, Claim::Previous(..));
        let unwanted = opened_again || !self.options.delegations;
        let want = if self.has_sessions() && unwanted { WANT_NO_DELEG } else { 0 };
        let args = OpenArgs {
            seqid: turn.sequence(),
            share_access: request.access | want,
            share_deny: SHARE_DENY_NONE,
            owner: turn.owner.named(self.client.get()),
            openhow: request.how,
            claim,
        };
        let op: Op = if request.attributes { ops::OPEN } else { ops::OPEN_NOATTR };
        let kind = Kind::repeatable(op).recovering(request.recovery);
        let access = AccessArgs {
            access: AccessBits::READ | AccessBits::MODIFY | AccessBits::EXTEND | AccessBits::EXECUTE,
        };
        let encode = |ops: &mut Ops<'_>| {
            ops.put(Opnum::OPEN, &args);
            if by_name {
                ops.put(Opnum::GETFH, &());
            }
            if request.attributes {
                ops.put(Opnum::ACCESS, &access);
            }
            ops.attributes();
        };
        let reply = RefCell::new(reply);
        let decode = |results: &mut Results<'_, '_>| {
            let ok: OpenOk<'_> = results.take(Opnum::OPEN)?;
            let delegation = match ok.delegation {
                OpenDelegation4::None | OpenDelegation4::NoneExt(_) => None,
                OpenDelegation4::Read(d) | OpenDelegation4::ReadAttrs(d) => {
                    Some((DelegationKind::Read, d.stateid, d.recall))
                }
                OpenDelegation4::Write(d) | OpenDelegation4::WriteAttrs(d) => {
                    Some((DelegationKind::Write, d.stateid, d.recall))
                }
            };
            let reply = &mut **reply.borrow_mut();
            reply.stateid = ok.stateid;
            reply.handle = (!by_name).then_some(*directory);
            reply.failed = None;
            reply.confirm = ok.rflags & OPEN_RESULT_CONFIRM != 0;
            reply.set = ok.attrset;
            reply.changed = ok.cinfo.before != ok.cinfo.after || !ok.cinfo.atomic;
            reply.delegation = delegation;
            reply.attributes = None;
            // From here on the file is open, whatever happens to the rest.
            match rest_of_open(results, reply, by_name, request.attributes) {
                Ok(()) => {}
                Err(Failure::Status(status)) => reply.failed = Some(status),
                Err(failure) => return Err(failure),
            }
            Ok(())
        };
        self.in_turn([turn], kind, directory, encode, decode).await
    }

    /// OPEN_CONFIRM (4.0), within the turn of the OPEN.
    async fn confirm(
        self: &Rc<Self>,
        turn: &SeqidGuard,
        handle: &Handle,
        open_stateid: Stateid4,
        recovery: bool,
    ) -> NfsResult<Stateid4> {
        let mut retry = Retry::new(self);
        let mut guesses = 0;
        loop {
            turn.next();
            let args = OpenConfirmArgs { open_stateid, seqid: turn.sequence() };
            let result = self
                .in_turn(
                    [turn],
                    Kind::repeatable(ops::OPEN_CONFIRM).recovering(recovery),
                    handle,
                    |ops| {
                        ops.put(Opnum::OPEN_CONFIRM, &args);
                    },
                    |results| Ok(results.take::<OpenConfirmOk>(Opnum::OPEN_CONFIRM)?.open_stateid),
                )
                .await;
            match result {
                Err(NfsError::V4(Nfsstat4::BAD_SEQID)) if guesses < GUESSES => {
                    guesses += 1;
                    turn.step_back();
                }
                Err(NfsError::V4(status @ (Nfsstat4::DELAY | Nfsstat4::RESOURCE))) => {
                    retry.after(self, status, self.recovery.epoch()).await?;
                }
                result => return result,
            }
        }
    }

    /// Reopens a file for the recovery.
    pub(super) async fn open_again(self: &Rc<Self>, state: &Rc<OpenState>, reclaim: bool) -> NfsResult<()> {
        let handle = state.handle.get();
        let (parent, name) = (state.parent.get(), state.name.borrow().clone());
        let claim = match (reclaim, self.has_sessions()) {
            (true, _) => Claim::Previous(&handle, self.delegations.kind4(&handle)),
            (false, true) => Claim::Handle(&handle),
            (false, false) => Claim::Name(&parent, &name),
        };
        let access = state.needed();
        let how = Openflag4::NoCreate;
        let request = Request { claim, access, how, attributes: false, recovery: true, beside: None };
        let mut retry = Retry::new(self);
        // Its own owner as long as no other request of the owner is under way.
        let mut own = Some(state.owner.borrow().clone());
        let mut reply = Reply::default();
        let turn = loop {
            let turn = own.as_ref().and_then(|owner| owner.turn_now()).or_else(|| self.owners.fresh());
            let turn = turn.ok_or(NfsError::StateLost("no open owner is available"))?;
            let status = match self.send_open(&turn, &request, &mut reply).await {
                Ok(()) => break turn,
                Err(NfsError::V4(status)) => status,
                Err(error) => return Err(error),
            };
            if status == Nfsstat4::BAD_SEQID && own.take().is_some() {
                continue;
            }
            let wait = matches!(status, Nfsstat4::DELAY | Nfsstat4::RESOURCE | Nfsstat4::GRACE);
            if !wait || !retry.after(self, status, self.recovery.epoch()).await? {
                return Err(NfsError::V4(status));
            }
        };
        let found = reply.handle.ok_or(NfsError::V4(reply.failed.unwrap_or(Nfsstat4::STALE)))?;
        let stateid = if reply.confirm {
            self.confirm(&turn, &found, reply.stateid, true).await?
        } else {
            reply.stateid
        };
        if found != handle {
            // The name is another file now.
            return Err(NfsError::V4(Nfsstat4::STALE));
        }
        state.stateid.set(stateid);
        state.shared.set(access);
        self.files.moved(state, &turn.owner);
        if let Some((kind, stateid, recalled)) = reply.delegation {
            self.delegations.reclaimed(&handle);
            self.granted(handle, kind, stateid, recalled || !reclaim, reply.attributes.as_ref());
        }
        Ok(())
    }
}

/// The results that follow OPEN.
fn rest_of_open(
    results: &mut Results<'_, '_>,
    reply: &mut Reply,
    by_name: bool,
    with_access: bool,
) -> Result<(), Failure> {
    if by_name {
        reply.handle = Some(handle_of(results.take(Opnum::GETFH)?)?);
    }
    if with_access {
        results.take::<AccessOk>(Opnum::ACCESS)?;
    }
    let got: GetattrOk<'_> = results.take(Opnum::GETATTR)?;
    reply.attributes = attrs::decode(&got.obj_attributes)?.usable();
    Ok(())
}

impl Client {
    /// Opens at the server a file that was opened here only, under a delegation that is about to be returned
    /// (CLAIM_DELEGATE_CUR; by filehandle from 4.1 on). Counted as `OPEN_NOATTR`. If the delegation was revoked, or lost in a
    /// restart of the server, it is opened like any other file. `beside`: the file is open at the server too, and the open is
    /// to be the same, with its locks.
    ///
    /// # Errors
    /// [`NfsError::StateLost`] when there is no delegation any more and the name refers to another file; those of OPEN.
    pub async fn open_claim_delegate_cur(
        &self,
        handle: &Handle,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
        beside: Option<&File>,
    ) -> NfsResult<File> {
        let inner = &self.0;
        loop {
            let stateid = inner.delegations.any_stateid(handle);
            let claim = match stateid {
                Some(stateid) if inner.has_sessions() => Claim::DelegateCurHandle(handle, stateid),
                Some(stateid) => Claim::DelegateCur(directory, name, stateid),
                None => Claim::Name(directory, name),
            };
            let request = Request {
                claim,
                access: access_of(how),
                how: Openflag4::NoCreate,
                attributes: false,
                recovery: false,
                beside,
            };
            let epoch = inner.recovery.epoch();
            let result = inner.open_with(&request, Some((directory, name)), &mut Reply::default()).await;
            match (stateid, result) {
                (Some(stateid), Err(NfsError::V4(status))) if is_gone(status) => {
                    inner.delegation_refused(handle, stateid, status, epoch).await?;
                }
                (None, Ok(file)) if file.handle() != *handle => {
                    inner.close(file).await?;
                    return Err(NfsError::StateLost("the name now refers to another file"));
                }
                (_, result) => return result,
            }
        }
    }
}
