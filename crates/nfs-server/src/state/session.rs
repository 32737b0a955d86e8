//! Sessions (RFC 8881 §2.10): slots, limits, connections, and the table they are found in.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use benchmaster_nfs_proto::v4::{
    ChannelAttrs4, ChannelDirFromClient4, ChannelDirFromServer4, Nfsstat4, SequenceArgs, SequenceOk,
    Sessionid4,
};
use hashbrown::{HashMap, HashSet};
use parking_lot::{Mutex, RwLock};

use super::backchannel::{BackChannel, BackConnection};
use super::lease::Lease;
use super::slot::{self, Claim, Slot};
use super::{ClientId, ConnectionId};
use crate::cred::Credentials;
use crate::reply::{Reply, ReplyMark};

#[cfg(test)]
mod tests;

pub use super::slot::Request;

/// Bytes of a reply that has SEQUENCE's result alone and no tag: RPC header 24, COMPOUND 12, SEQUENCE 44.
pub(crate) const MIN_REPLY: u32 = 80;
/// Bytes of a request of SEQUENCE alone, without tag and with AUTH_NONE: RPC header 40, COMPOUND 12, SEQUENCE 36.
pub(crate) const MIN_REQUEST: u32 = 88;

/// Longest result of an operation that fails: number, status, and SETATTR's empty bitmap. So much is kept free for the
/// next operation to be able to say that the reply is too big.
pub(crate) const ERROR_RESULT: usize = 12;

/// Connections that a session remembers; all are forgotten when there are more (a SEQUENCE brings them back).
const MAX_CONNECTIONS: usize = 4096;
const SHARDS: usize = 64;

/// A session: its slots, limits and back channel.
#[derive(Debug)]
pub struct Session {
    id: Sessionid4,
    lease: Arc<Lease>,
    /// Slots that each session should use.
    share: Arc<AtomicU32>,
    /// Limits of the fore channel. Sizes are those of whole RPC messages (RFC 8881 §18.36.3).
    pub(crate) limits: ChannelAttrs4,
    slots: Box<[Slot]>,
    dead: AtomicBool,
    /// `SEQ_STATUS_` flags of this session alone.
    flags: AtomicU32,
    connections: Connections,
    back: Mutex<BackChannel>,
}

/// All sessions by id, apart from the state's tables so that finding one contends with nothing.
#[derive(Debug)]
pub struct Sessions {
    shards: Box<[Shard]>,
    next: AtomicU64,
    boot: u64,
    /// Requests that all should have outstanding, if that is limited, and the share of each: at least 1.
    requests: Option<u32>,
    share: Arc<AtomicU32>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(RwLock<HashMap<Sessionid4, Arc<Session>>>);

/// Connections of the fore channel: a cache by number, which answers nearly always, before the set of all.
#[derive(Debug, Default)]
struct Connections {
    /// Number plus one of a connection, at its place modulo the length.
    recent: [AtomicU64; 16],
    all: Mutex<HashSet<ConnectionId>>,
}

/// What to do with a request that begins with SEQUENCE.
#[derive(Debug)]
pub enum Begun<'s> {
    /// Execute it, and say so to the guard when done.
    New(SlotGuard<'s>),
    /// Send this as the COMPOUND's result: status, tag, results.
    Replay(Vec<u8>),
    /// SEQUENCE fails with this status; nothing else is executed and the slot is as it was.
    Status(Nfsstat4),
}

/// A request being executed on a slot. Dropped without [`SlotGuard::finish`], the slot is free for the next request,
/// and a retry learns that the reply was not kept.
#[derive(Debug)]
pub struct SlotGuard<'s> {
    pub(crate) session: &'s Session,
    pub(crate) slot: u32,
    pub(crate) result: SequenceOk,
    /// Whether the client wants the reply kept.
    pub(crate) cache_this: bool,
    finished: bool,
}

impl Session {
    pub(super) fn new(
        id: Sessionid4,
        lease: Arc<Lease>,
        limits: ChannelAttrs4,
        slots: u32,
        back: BackChannel,
    ) -> Self {
        Self {
            id,
            lease,
            share: Arc::new(AtomicU32::new(u32::MAX)),
            limits,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            dead: AtomicBool::new(false),
            flags: AtomicU32::new(0),
            connections: Connections::default(),
            back: Mutex::new(back),
        }
    }

    /// With this share of what all sessions should have outstanding.
    pub(super) fn sharing(self, sessions: &Sessions) -> Self {
        Self { share: Arc::clone(&sessions.share), ..self }
    }

    /// Session id.
    pub fn id(&self) -> Sessionid4 {
        self.id
    }

    /// Client to which it belongs.
    pub fn client(&self) -> ClientId {
        self.lease.client()
    }

    /// Whether it was destroyed.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    pub(super) fn kill(&self) {
        self.dead.store(true, Ordering::Release);
        // Connections may keep it until their next request.
        self.slots.iter().for_each(Slot::forget);
    }

    /// Claims the slot that a SEQUENCE names, renews the lease, and ties the connection to the session (RFC 8881
    /// §2.10.3.1: with SP4_NONE a SEQUENCE is enough).
    pub fn begin(
        &self,
        connection: ConnectionId,
        who: &Credentials,
        args: &SequenceArgs,
        request: &Request<'_>,
        now: Instant,
    ) -> Begun<'_> {
        if self.is_dead() {
            return Begun::Status(Nfsstat4::BADSESSION);
        }
        let Some(slot) = self.slot(args.slotid) else { return Begun::Status(Nfsstat4::BADSLOT) };
        if let Err(status) = self.check_size(args, request) {
            return Begun::Status(status);
        }
        let claim = slot.claim(args, who, request);
        if let Claim::Status(status) = claim {
            return Begun::Status(status);
        }
        self.lease.renew(now);
        self.connections.note(connection);
        match claim {
            Claim::New => {
                let (slot, result) = (args.slotid, self.result(args));
                let cache_this = args.cachethis;
                Begun::New(SlotGuard { session: self, slot, result, cache_this, finished: false })
            }
            Claim::Replay(reply) => Begun::Replay(reply),
            Claim::Uncached => Begun::Replay(slot::uncached(&self.result(args), request)),
            Claim::Status(status) => Begun::Status(status),
        }
    }

    fn check_size(&self, args: &SequenceArgs, request: &Request<'_>) -> Result<(), Nfsstat4> {
        let limits = &self.limits;
        if request.len > limits.maxrequestsize as usize && !is_broken(Mutant::RequestSizeUnchecked) {
            return Err(Nfsstat4::REQ_TOO_BIG);
        }
        if request.operations > limits.maxoperations && !is_broken(Mutant::OperationsUnchecked) {
            return Err(Nfsstat4::TOO_MANY_OPS);
        }
        let second = if request.operations > 1 { ERROR_RESULT } else { 0 };
        let smallest = MIN_REPLY as usize + request.tag.len().next_multiple_of(4) + second;
        if smallest > limits.maxresponsesize as usize {
            return Err(Nfsstat4::REP_TOO_BIG);
        }
        if args.cachethis && smallest > limits.maxresponsesize_cached as usize {
            return Err(Nfsstat4::REP_TOO_BIG_TO_CACHE);
        }
        Ok(())
    }

    fn result(&self, args: &SequenceArgs) -> SequenceOk {
        let highest = (self.slots.len() as u32).saturating_sub(1);
        SequenceOk {
            sessionid: self.id,
            sequenceid: args.sequenceid,
            slotid: args.slotid,
            highest_slotid: highest,
            target_highest_slotid: highest.min(self.share.load(Ordering::Relaxed) - 1),
            status_flags: self.lease.flags() | self.flags.load(Ordering::Relaxed),
        }
    }

    pub(super) fn slot(&self, slot: u32) -> Option<&Slot> {
        self.slots.get(slot as usize)
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// Whether a slot other than `except` has a request in execution.
    pub(super) fn busy(&self, except: Option<u32>) -> bool {
        self.slots.iter().enumerate().any(|(at, slot)| Some(at as u32) != except && slot.running())
    }

    /// Remembers that the request in execution on `slot` was granted a delegation: until the client uses the slot again
    /// a recall names the request (RFC 8881 §2.10.6.3).
    pub fn granted(&self, slot: u32, other: [u8; 12]) {
        if let Some(slot) = self.slot(slot) {
            slot.granted(other);
        }
    }

    /// Slot and sequence number of the request that granted a delegation, while the client may not have seen its reply.
    pub fn grant(&self, other: &[u8; 12]) -> Option<(u32, u32)> {
        let grant = |(at, slot): (usize, &Slot)| Some((at as u32, slot.grant(other)?));
        self.slots.iter().enumerate().find_map(grant)
    }

    /// Sets or clears `SEQ_STATUS_` flags of this session.
    pub fn set_flags(&self, flags: u32, on: bool) {
        if on {
            self.flags.fetch_or(flags, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flags, Ordering::Relaxed);
        }
    }

    /// `SEQ_STATUS_` flags of this session.
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Back channel of the session.
    pub fn back(&self) -> &Mutex<BackChannel> {
        &self.back
    }

    /// Whether a connection is associated with the session, in whichever direction.
    pub fn has_connection(&self, connection: ConnectionId) -> bool {
        self.connections.has(connection) || self.back.lock().has(connection)
    }

    /// Ties a connection to the fore channel.
    pub(super) fn add_fore(&self, connection: ConnectionId) {
        self.connections.note(connection);
    }

    /// BIND_CONN_TO_SESSION (RFC 8881 §18.34.3): ties a connection to channels. `back` is absent where the connection
    /// cannot carry calls to the client.
    pub fn bind(
        &self,
        connection: ConnectionId,
        back: Option<BackConnection>,
        dir: ChannelDirFromClient4,
    ) -> Result<ChannelDirFromServer4, Nfsstat4> {
        use ChannelDirFromClient4 as Asked;
        use ChannelDirFromServer4 as Bound;
        let mut channel = self.back.lock();
        // On a connection that is associated already, a demand for other channels is INVAL; the wishes that leave the
        // server a choice are granted by adding what is missing.
        match (dir, self.connections.has(connection), channel.has(connection)) {
            (Asked::Fore, _, true) | (Asked::Back, true, _) => return Err(Nfsstat4::INVAL),
            (Asked::Fore, _, false) => {
                self.connections.note(connection);
                return Ok(Bound::Fore);
            }
            _ => {}
        }
        match (dir, back) {
            (Asked::Back, Some(back)) => {
                channel.add(back);
                Ok(Bound::Back)
            }
            (_, Some(back)) => {
                channel.add(back);
                self.connections.note(connection);
                Ok(Bound::Both)
            }
            (Asked::ForeOrBoth, None) => {
                self.connections.note(connection);
                Ok(Bound::Fore)
            }
            (_, None) => Err(Nfsstat4::INVAL),
        }
    }
}

impl SlotGuard<'_> {
    /// The request is done. `body` is where the COMPOUND's result (status, tag, results) begins in the reply, and
    /// `results` the number of results in it.
    ///
    /// The reply is kept when the client said so; when it is SEQUENCE's result alone (RFC 8881 §2.10.6.1.1); and when
    /// the operation after SEQUENCE failed, for then it may be one for which RETRY_UNCACHED_REP must never be returned
    /// (§2.10.6.1.3).
    pub fn finish(mut self, reply: &Reply, body: ReplyMark, results: u32) {
        let failed = || reply.encoder.buffer().get(body.buffer..body.buffer + 4) != Some(&[0; 4]);
        if self.cache_this || results <= 1 || results == 2 && failed() {
            self.finished = true;
            self.release(Some(|kept: &mut Vec<u8>| reply.copy_since_into(body, kept)));
        }
        // Else dropping the guard does what is left.
    }

    /// The request is put aside, to be executed again: the slot is as if it had not come.
    pub fn take_back(mut self) {
        self.finished = true;
        if let Some(slot) = self.session.slot(self.slot) {
            slot.take_back();
        }
    }

    fn release(&self, keep: Option<impl FnOnce(&mut Vec<u8>)>) {
        if let Some(slot) = self.session.slot(self.slot) {
            slot.release(keep);
        }
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        // Once only: the next request may have the slot already.
        if !self.finished {
            self.release(None::<fn(&mut Vec<u8>)>);
        }
    }
}

impl Connections {
    #[inline]
    fn note(&self, connection: ConnectionId) {
        let key = connection.0.wrapping_add(1);
        let Some(place) = self.recent.get(connection.0 as usize % self.recent.len()) else { return };
        if place.load(Ordering::Relaxed) == key {
            return;
        }
        let mut all = self.all.lock();
        if all.len() >= MAX_CONNECTIONS {
            all.clear();
        }
        all.insert(connection);
        place.store(key, Ordering::Relaxed);
    }

    fn has(&self, connection: ConnectionId) -> bool {
        self.all.lock().contains(&connection)
    }
}

impl Sessions {
    pub(super) fn new(boot: u64, requests: Option<u32>) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        let share = Arc::new(AtomicU32::new(u32::MAX));
        Self { shards, next: AtomicU64::new(1), boot, requests, share }
    }

    /// Shares the requests out again, after sessions came or went. The highest slot to use, where that is a lower one for others.
    pub(super) fn share_out(&self) -> Option<u32> {
        let sessions = u32::try_from(self.len()).unwrap_or(u32::MAX);
        let share = (self.requests? / sessions.max(1)).max(1);
        (share < self.share.swap(share, Ordering::Relaxed)).then_some(share - 1)
    }

    /// An id never used before, by this server or an earlier start of it.
    pub(super) fn next_id(&self) -> Sessionid4 {
        let mut id = [0; 16];
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        id[..8].copy_from_slice(&self.boot.to_be_bytes());
        id[8..].copy_from_slice(&count.to_be_bytes());
        id
    }

    /// The session with this id.
    #[inline]
    pub fn get(&self, id: &Sessionid4) -> Option<Arc<Session>> {
        self.shard(id).0.read().get(id).cloned()
    }

    pub(super) fn insert(&self, session: Arc<Session>) {
        self.shard(&session.id).0.write().insert(session.id, session);
    }

    pub(super) fn remove(&self, id: &Sessionid4) {
        self.shard(id).0.write().remove(id);
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.read().len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, id: &Sessionid4) -> &Shard {
        &self.shards[id[15] as usize % SHARDS]
    }
}
