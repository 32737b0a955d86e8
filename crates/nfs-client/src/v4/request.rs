//! One request: its slot, its connection, what the reply says about session and lease, and whether to send it again.

mod kind;
mod retry;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use benchmaster_nfs_proto::v4::{
    NFS_PROGRAM, NFS_V4, Nfsstat4, Opnum, PROC_COMPOUND, RenewArgs, SequenceArgs,
};
use benchmaster_nfs_proto::xdr::{Bulk, Decode, Decoder, Encode, Encoder, XdrError};

use super::Inner;
use super::compound::{Failure, Ops, Results, Sequenced};
use super::need::Need;
use super::slots::Slot;
use super::state::SeqidGuard;
use crate::counters::Event;
use crate::delay::Delay;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::rpc::{Call, RpcError};
use crate::types::Handle;

pub(super) use kind::Kind;
pub(super) use retry::Retry;

/// What a reply brought. It is written in place: what futures return is copied by each one that returns it.
struct Outcome {
    sequence: Option<Result<Sequenced, Nfsstat4>>,
    status: Nfsstat4,
    result: Result<(), Failure>,
    /// When the call began.
    began: Option<Instant>,
}

impl Outcome {
    const NONE: Self = Self {
        sequence: None,
        status: Nfsstat4::OK,
        result: Err(Failure::Nonsense("no result")),
        began: None,
    };
}

/// A request as it is sent, also again.
struct Sending<'s> {
    kind: &'s Kind<'s>,
    since: Option<Instant>,
    connection: Option<usize>,
    sequence: Option<&'s SequenceArgs>,
    /// How often it was sent.
    sent: &'s Cell<u32>,
    encode: WriteOps<'s>,
}

/// Writes the operations of a request.
type WriteOps<'e> = &'e dyn Fn(&mut Ops<'_>, Bulk<'_>);

/// Reads results and puts their data into the buffer given. Returns how many bytes of data are still to come.
type ReadResults<'d> = &'d mut dyn FnMut(&mut Results<'_, '_>, &mut [u8]) -> Result<usize, Failure>;

/// A reply without the result asked for.
const NO_RESULT: NfsError = NfsError::Nonsense("no result");

/// Reads with `decode` and keeps what it returns in `value`.
fn keeping<'k, R>(
    value: &'k mut Option<R>,
    decode: &'k impl Fn(&mut Results<'_, '_>, &mut [u8]) -> Result<(R, usize), Failure>,
) -> impl FnMut(&mut Results<'_, '_>, &mut [u8]) -> Result<usize, Failure> + 'k {
    |results, destination| {
        let (result, rest) = decode(results, destination)?;
        *value = Some(result);
        Ok(rest)
    }
}

/// A slot in use. Given up before its reply came, its number in the server's table is not known: it stays in use
/// until a SEQUENCE of its own shows it.
struct SlotGuard<'i> {
    inner: &'i Rc<Inner>,
    slot: Slot,
    settled: Cell<bool>,
}

impl SlotGuard<'_> {
    fn settle(&self, used: bool) {
        self.settled.set(true);
        self.inner.slots.give_back(self.slot, used);
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        let inner = self.inner;
        if self.settled.get() || inner.closing.get() || self.slot.generation != inner.slots.generation() {
            return;
        }
        let (inner, slot) = (Rc::downgrade(inner), self.slot);
        self.inner.reactor.spawn(async move {
            if let Some(inner) = inner.upgrade() {
                inner.probe(slot).await;
            }
        });
    }
}

/// The operation may have been executed or not.
pub(super) const UNKNOWN: NfsError =
    NfsError::StateLost("the session was lost while a change was under way: whether it was made is unknown");

impl Inner {
    /// Makes a request, again after what can be waited for or recovered.
    pub(super) async fn perform<R>(
        self: &Rc<Self>,
        kind: Kind<'_>,
        destination: &mut [u8],
        encode: impl Fn(&mut Ops<'_>, Bulk<'_>),
        decode: impl Fn(&mut Results<'_, '_>, &mut [u8]) -> Result<(R, usize), Failure>,
    ) -> NfsResult<R> {
        let mut value = None;
        self.perform_any(&kind, destination, &encode, &mut keeping(&mut value, &decode)).await?;
        value.ok_or(NO_RESULT)
    }

    /// The part of [`Self::perform`] that does not depend on types: compiled once, not once per request.
    async fn perform_any(
        self: &Rc<Self>,
        kind: &Kind<'_>,
        destination: &mut [u8],
        encode: WriteOps<'_>,
        decode: ReadResults<'_>,
    ) -> NfsResult<()> {
        // Nearly all requests succeed at once.
        let epoch = self.recovery.epoch();
        let mut result = self.attempt_any(kind, destination, encode, decode).await;
        if !matches!(result, Err(NfsError::V4(_))) {
            return result;
        }
        let mut retry = Retry::new(self);
        let mut epoch = epoch;
        loop {
            let Err(NfsError::V4(status)) = result else { return result };
            let again = match (kind.recovery, status) {
                (true, Nfsstat4::STALE_CLIENTID | Nfsstat4::EXPIRED) => false,
                // With another stateid perhaps, which the caller chooses.
                (false, Nfsstat4::EXPIRED) if kind.op != ops::RENEW => false,
                _ => retry.after(self, status, epoch).await?,
            };
            if !again {
                return Err(NfsError::V4(status));
            }
            epoch = self.recovery.epoch();
            result = self.attempt_any(kind, destination, encode, decode).await;
        }
    }

    /// Makes a request without data in the reply.
    pub(super) async fn request<R>(
        self: &Rc<Self>,
        kind: Kind<'_>,
        encode: impl Fn(&mut Ops<'_>),
        decode: impl Fn(&mut Results<'_, '_>) -> Result<R, Failure>,
    ) -> NfsResult<R> {
        self.perform(kind, &mut [], |ops, _| encode(ops), |results, _| Ok((decode(results)?, 0))).await
    }

    /// Makes a request of one operation, on `file` if it is about one.
    pub(super) async fn ask<R: for<'a> Decode<'a>>(
        self: &Rc<Self>,
        kind: Kind<'_>,
        file: Option<&Handle>,
        op: Opnum,
        arguments: &impl Encode,
    ) -> NfsResult<R> {
        self.request(
            kind,
            |ops| {
                file.map(|file| ops.on(file));
                ops.put(op, arguments);
            },
            |results| {
                file.map_or(Ok(()), |_| results.on())?;
                results.take(op)
            },
        )
        .await
    }

    /// Makes a request once, or again where its SEQUENCE failed: nothing of it was executed then.
    pub(super) async fn attempt<R>(
        self: &Rc<Self>,
        kind: Kind<'_>,
        encode: impl Fn(&mut Ops<'_>),
        decode: impl Fn(&mut Results<'_, '_>) -> Result<R, Failure>,
    ) -> NfsResult<R> {
        let mut value = None;
        let encode = |ops: &mut Ops<'_>, _: Bulk<'_>| encode(ops);
        let decode = |results: &mut Results<'_, '_>, _: &mut [u8]| Ok((decode(results)?, 0));
        self.attempt_any(&kind, &mut [], &encode, &mut keeping(&mut value, &decode)).await?;
        value.ok_or(NO_RESULT)
    }

    /// The same on a file while the turns of owners are held (4.0), which are settled by the reply.
    pub(super) async fn in_turn<'t, R>(
        self: &Rc<Self>,
        turns: impl IntoIterator<Item = &'t SeqidGuard>,
        kind: Kind<'_>,
        file: &Handle,
        encode: impl Fn(&mut Ops<'_>),
        decode: impl Fn(&mut Results<'_, '_>) -> Result<R, Failure>,
    ) -> NfsResult<R> {
        let reached = Cell::new(false);
        let encode = |ops: &mut Ops<'_>| encode(ops.on(file));
        let decode = |results: &mut Results<'_, '_>| {
            results.on()?;
            reached.set(true);
            decode(results)
        };
        let result = self.attempt(kind.held(), encode, decode).await;
        turns.into_iter().for_each(|turn| turn.settle(&result, reached.get()));
        result
    }

    /// The part of [`Self::attempt`] that does not depend on types.
    async fn attempt_any(
        self: &Rc<Self>,
        kind: &Kind<'_>,
        destination: &mut [u8],
        encode: WriteOps<'_>,
        decode: ReadResults<'_>,
    ) -> NfsResult<()> {
        let sent = Cell::new(0);
        if !self.has_sessions() || kind.bare {
            let since = if kind.bare || kind.held { None } else { self.pass(kind.recovery).await? };
            let begun = self.client.get();
            let connection = kind.connection;
            let sending = Sending { kind, since, connection, sequence: None, sent: &sent, encode };
            let mut outcome = Outcome::NONE;
            self.exchange(&sending, destination, decode, &mut outcome).await?;
            if let (true, true, Err(Failure::Status(status))) =
                (kind.changes, sent.get() > 1, &outcome.result)
                && !matches!(*status, Nfsstat4::DELAY | Nfsstat4::GRACE)
            {
                self.same_server(begun).await?;
            }
            return outcome.result.map_err(Into::into);
        }
        let mut kept: Option<SlotGuard<'_>> = None;
        // Only made where something fails.
        let mut retry: Option<Retry> = None;
        loop {
            let mut since = None;
            let held = match kept.take().filter(|h| h.slot.generation == self.slots.generation()) {
                Some(held) => held,
                None => {
                    let slot = match self.slots.take_now(kind.recovery) {
                        Some(slot) => slot,
                        None => self.wait_for_slot(kind.recovery, &mut since).await?,
                    };
                    SlotGuard { inner: self, slot, settled: Cell::new(false) }
                }
            };
            let epoch = self.recovery.epoch();
            let connection = kind.connection.unwrap_or_else(|| self.next_connection());
            let slot = &held.slot;
            let args = SequenceArgs {
                sessionid: slot.session,
                sequenceid: slot.sequence,
                slotid: slot.number,
                highest_slotid: slot.highest.max(slot.number),
                cachethis: kind.cache,
            };
            let (sequence, connection) = (Some(&args), Some(connection));
            let sending = Sending { kind, since, connection, sequence, sent: &sent, encode };
            let mut outcome = Outcome::NONE;
            // The clock is read once for each call, and again only where the wait for a slot is not to count as the lease's.
            let begun = since.map(|_| self.reactor.now());
            self.exchange(&sending, destination, decode, &mut outcome).await?;
            // Whether an earlier transmission may have been executed though this one was not.
            let unknown = kind.changes && sent.get() > 1;
            let status = match outcome.sequence {
                Some(Ok(ok)) => {
                    held.settle(true);
                    self.sequence_done(&ok, begun.or(outcome.began), connection, slot.generation);
                    // Executed before; but the reply was not to be kept (RFC 8881 §2.10.6.1.3).
                    if outcome.result.as_ref().err() == Some(&Failure::Status(Nfsstat4::RETRY_UNCACHED_REP)) {
                        if kind.changes {
                            return Err(UNKNOWN);
                        }
                        retry.get_or_insert_with(|| Retry::new(self)).recovering()?;
                        continue;
                    }
                    return outcome.result.map_err(Into::into);
                }
                Some(Err(status)) => status,
                None => return Err(outcome.result.err().map_or(NO_RESULT, Into::into)),
            };
            let retry = retry.get_or_insert_with(|| Retry::new(self));
            // Slots of a session that is lost are given back too: where a recovery that ended meanwhile hides the
            // loss, the session stays, and they with it.
            let lost = match status {
                // The slot stays ours, and the same number is sent again.
                Nfsstat4::DELAY => {
                    retry.pause(self).await?;
                    kept = Some(held);
                    continue;
                }
                Nfsstat4::CONN_NOT_BOUND_TO_SESSION => {
                    retry.recovering()?;
                    Box::pin(self.bind(connection.unwrap_or_default())).await?;
                    kept = Some(held);
                    continue;
                }
                Nfsstat4::BADSESSION => {
                    held.settle(false);
                    Some(Need::SESSION)
                }
                Nfsstat4::DEADSESSION | Nfsstat4::BAD_HIGH_SLOT => {
                    held.settle(false);
                    Some(Need::SESSION.and(Need::RESET))
                }
                // Another request was executed with this number: the slot is one ahead of us.
                Nfsstat4::SEQ_FALSE_RETRY | Nfsstat4::RETRY_UNCACHED_REP => {
                    held.settle(true);
                    None
                }
                Nfsstat4::SEQ_MISORDERED => {
                    drop(held);
                    None
                }
                Nfsstat4::BADSLOT if slot.number == 0 => {
                    held.settle(false);
                    Some(Need::SESSION.and(Need::RESET))
                }
                Nfsstat4::BADSLOT => {
                    if self.slots.target(slot.number - 1) {
                        self.counters.event(Event::SlotsLowered);
                    }
                    held.settle(false);
                    None
                }
                status => {
                    held.settle(false);
                    return Err(NfsError::V4(status));
                }
            };
            if let Some(need) = lost {
                if kind.recovery {
                    return Err(NfsError::V4(status));
                }
                self.demand(need, epoch);
                self.recovered().await?;
            }
            if unknown {
                return Err(UNKNOWN);
            }
            retry.recovering()?;
        }
    }

    /// Sends a request and reads its reply.
    async fn exchange(
        self: &Rc<Self>,
        sending: &Sending<'_>,
        destination: &mut [u8],
        decode: ReadResults<'_>,
        outcome: &mut Outcome,
    ) -> NfsResult<()> {
        let Sending { kind, since, connection, sequence, sent, encode } = *sending;
        let minor = self.minor;
        let call = Call {
            payload: kind.payload,
            since,
            connection,
            ..Call::new(kind.op, NFS_PROGRAM, NFS_V4, PROC_COMPOUND)
        };
        let write = |e: &mut Encoder, payload: Bulk<'_>| {
            sent.set(sent.get() + 1);
            let mut ops = Ops::begin(e, minor);
            if let Some(sequence) = sequence {
                ops.sequence(sequence);
            }
            encode(&mut ops, payload);
            ops.end();
        };
        let mut read = |d: &mut Decoder<'_>, destination: &mut [u8]| -> Result<usize, XdrError> {
            let mut results = Results::begin(d)?;
            outcome.status = results.status;
            let read = match sequence {
                None => decode(&mut results, destination),
                Some(_) if !results.more() => Err(Failure::Status(results.status)),
                Some(args) => match results.sequence(args) {
                    Ok(ok) => {
                        outcome.sequence = Some(Ok(ok));
                        decode(&mut results, destination)
                    }
                    Err(failure) => {
                        if let Failure::Status(status) = failure {
                            outcome.sequence = Some(Err(status));
                        }
                        Err(failure)
                    }
                },
            };
            match read {
                Ok(rest) => {
                    outcome.result = Ok(());
                    Ok(rest)
                }
                Err(Failure::Xdr(error)) => Err(error),
                Err(failure) => {
                    outcome.result = Err(failure);
                    Ok(0)
                }
            }
        };
        let began = self.rpc.transact(&call, destination, &write, &mut read).await?;
        outcome.began = Some(began);
        if outcome.status != Nfsstat4::OK {
            self.counters.error(kind.op);
        }
        Ok(())
    }

    /// Waits until the gate is open; since when, if it had to wait.
    pub(super) async fn pass(self: &Rc<Self>, recovery: bool) -> NfsResult<Option<Instant>> {
        if recovery || !self.recovery.is_running() {
            return Ok(None);
        }
        let since = self.reactor.now();
        self.recovered().await?;
        Ok(Some(since))
    }

    /// Waits for a slot; `since` becomes when this began.
    async fn wait_for_slot(self: &Rc<Self>, recovery: bool, since: &mut Option<Instant>) -> NfsResult<Slot> {
        *since = Some(self.pass(recovery).await?.unwrap_or_else(|| self.reactor.now()));
        if let Some(slot) = self.slots.take_now(recovery) {
            return Ok(slot);
        }
        self.counters.event(Event::SlotWait);
        // Every request on a slot ends some time, and a slot that does not come back costs the session: here at the
        // latest.
        let options = self.rpc.options();
        let deadline = self.reactor.now() + options.timeout * (options.retransmissions + 1);
        match self.reactor.until(deadline, self.slots.take(recovery)).await {
            Some(Some(slot)) => Ok(slot),
            Some(None) => Err(RpcError::Closed.into()),
            None => {
                self.demand(Need::SESSION.and(Need::RESET), self.recovery.epoch());
                Err(RpcError::TimedOut.into())
            }
        }
    }

    fn next_connection(&self) -> usize {
        let connections = self.rpc.connections();
        if connections == 1 {
            return 0;
        }
        let turn = || {
            let turn = self.turn.get();
            self.turn.set(turn.wrapping_add(1));
            turn % connections
        };
        let next = turn();
        // Where there are several addresses, the way to one may be gone while others are there.
        if self.options.others.is_empty() || self.rpc.is_up(next) {
            return next;
        }
        (1..connections).map(|_| turn()).find(|other| self.rpc.is_up(*other)).unwrap_or(next)
    }

    /// What a successful SEQUENCE says that was sent after `begun`.
    fn sequence_done(
        self: &Rc<Self>,
        ok: &Sequenced,
        begun: Option<Instant>,
        connection: Option<usize>,
        generation: u64,
    ) {
        if let Some(begun) = begun {
            self.leased_since(begun);
        }
        self.renewed.set(self.rpc.heard(connection.unwrap_or_default()));
        if generation != self.slots.generation() {
            return;
        }
        let (slots, allowed) = self.slots.size();
        let target = ok.target_highest_slotid.min(ok.highest_slotid);
        if target as usize + 1 != allowed && (target as usize + 1 < slots || allowed < slots) {
            if self.slots.target(target) {
                self.counters.event(Event::SlotsLowered);
            }
            self.slots.limit(ok.highest_slotid);
        }
        if ok.status_flags != 0 || self.recovery.flags() != 0 {
            self.status_flags(ok.status_flags);
        }
    }

    /// Finds out where the server stands on a slot whose last reply was not seen, and gives it back.
    async fn probe(self: &Rc<Self>, slot: Slot) {
        let mut delay = Delay::new(self.options.delay);
        // Where the request was counted the next number is right, else its own.
        let mut numbers =
            [super::slots::next_sequence(slot.sequence), slot.sequence].into_iter().cycle().take(6);
        let Some(mut sequence) = numbers.next() else { return };
        loop {
            let kind = Kind::reading(ops::SEQUENCE);
            let args = SequenceArgs {
                sessionid: slot.session,
                sequenceid: sequence,
                slotid: slot.number,
                highest_slotid: slot.highest.max(slot.number),
                cachethis: false,
            };
            let (connection, sent) = (Some(self.next_connection()), Cell::new(0));
            let encode: WriteOps<'_> = &|_, _| {};
            let sending =
                Sending { kind: &kind, since: None, connection, sequence: Some(&args), sent: &sent, encode };
            let mut outcome = Outcome::NONE;
            let done = self.exchange(&sending, &mut [], &mut |_, _| Ok(0), &mut outcome).await;
            let began = outcome.began;
            let status = match done.map(|()| outcome.sequence) {
                Ok(Some(Ok(ok))) => {
                    self.sequence_done(&ok, began, connection, slot.generation);
                    return self.slots.give_back(Slot { sequence, ..slot }, true);
                }
                Ok(Some(Err(status))) => status,
                Ok(None) | Err(_) => break,
            };
            match status {
                Nfsstat4::DELAY => {
                    if delay.pause(&self.reactor, &self.counters, Event::Delay).await.is_err() {
                        break;
                    }
                }
                // That number was used, by the request that was given up.
                Nfsstat4::SEQ_FALSE_RETRY | Nfsstat4::RETRY_UNCACHED_REP => {
                    return self.slots.give_back(Slot { sequence, ..slot }, true);
                }
                Nfsstat4::SEQ_MISORDERED => match numbers.next() {
                    Some(next) => sequence = next,
                    None => break,
                },
                Nfsstat4::CONN_NOT_BOUND_TO_SESSION => {
                    if Box::pin(self.bind(connection.unwrap_or_default())).await.is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
        // That is unknown: a new session is created.
        if slot.generation == self.slots.generation() && !self.closing.get() {
            self.demand(Need::SESSION.and(Need::RESET), self.recovery.epoch());
        }
    }

    /// Version 4.0: a request that was sent more than once has been answered with an error. If the server restarted
    /// meanwhile it has forgotten what it did with the earlier one.
    async fn same_server(self: &Rc<Self>, client: u64) -> NfsResult<()> {
        if self.client.get() != client {
            return Err(UNKNOWN);
        }
        let kind = Kind::reading(ops::RENEW);
        let renew = |ops: &mut Ops<'_>, _: Bulk<'_>| {
            ops.put(Opnum::RENEW, &RenewArgs { clientid: client });
        };
        let mut retry = Retry::new(self);
        let (kind, sent) = (&kind, &Cell::new(0));
        let sending = Sending { kind, since: None, connection: None, sequence: None, sent, encode: &renew };
        loop {
            let mut outcome = Outcome::NONE;
            let mut decode =
                |results: &mut Results<'_, '_>, _: &mut [u8]| results.take::<()>(Opnum::RENEW).map(|()| 0);
            self.exchange(&sending, &mut [], &mut decode, &mut outcome).await?;
            match outcome.result {
                Ok(()) | Err(Failure::Status(Nfsstat4::CB_PATH_DOWN)) => return Ok(()),
                Err(Failure::Status(Nfsstat4::DELAY | Nfsstat4::GRACE | Nfsstat4::RESOURCE)) => {
                    retry.pause(self).await?;
                }
                Err(_) => return Err(UNKNOWN),
            }
        }
    }
}
