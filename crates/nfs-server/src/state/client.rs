//! Client records: SETCLIENTID and EXCHANGE_ID, leases, expiry, grace.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    Nfsstat4, SEQ_STATUS_BACKCHANNEL_FAULT, SEQ_STATUS_CB_PATH_DOWN, SEQ_STATUS_CB_PATH_DOWN_SESSION,
    SEQ_STATUS_RECALLABLE_STATE_REVOKED, SEQ_STATUS_RESTART_RECLAIM_NEEDED, Verifier4,
};
use hashbrown::{HashMap, HashSet};

use super::account::Accounts;
use super::grace::Grace;
use super::lease::Lease;
use super::session::{Session, Sessions};
use super::shards::AllFiles;
use super::{COURTESY, ClientId, Effects};
use crate::config::ServerConfig;

mod budget;
mod record;
#[cfg(test)]
mod tests;
mod v40;
mod v41;

use budget::{Kept, ReplyBudget};
pub use record::{CallbackTarget, Principal};
use record::{Client, Kind};
pub use v40::{ClidInUse, SetClientId};
pub use v41::{CreateSession, ExchangeId, Exchanged};

/// Most client records, and the part of them of one host; a client whose lease ran out makes room for a new one.
const MAX_CLIENTS: u64 = 65_536;
const HOST_SHARE: u64 = 4;
/// Most records not yet confirmed; the oldest makes room (RFC 7530 §16.34.5).
const MAX_UNCONFIRMED: usize = 4096;
/// Most clients kept though their lease ran out; the one that was silent longest makes room.
const MAX_COURTESY: usize = 1024;
/// Most ids remembered as expired.
const MAX_EXPIRED: usize = 65_536;

/// Client records of all minor versions, by id and by name.
#[derive(Debug)]
pub struct Clients {
    lease: Duration,
    slots: u32,
    max_io: u32,
    boot: u64,
    epoch: Instant,
    next: u32,
    by_id: HashMap<ClientId, Client>,
    /// How many records hosts have.
    records: Accounts<IpAddr>,
    /// Records by minor version (0, or 1 for all sessions) and owner.
    by_owner: [HashMap<Vec<u8>, Owner>; 2],
    /// Unconfirmed records, oldest first; ids confirmed or gone meanwhile are skipped.
    unconfirmed: VecDeque<ClientId>,
    expired: HashSet<ClientId>,
    expired_order: VecDeque<ClientId>,
    sessions: Arc<Sessions>,
    replies: ReplyBudget,
    grace: Grace,
    next_scan: Instant,
    /// How often other names became [known](Clients::known_clients).
    known_changes: Arc<AtomicU64>,
}

/// The records of one owner.
#[derive(Debug, Default, Clone, Copy)]
struct Owner {
    confirmed: Option<ClientId>,
    unconfirmed: Option<ClientId>,
}

/// A record to be added.
struct NewRecord<'a> {
    owner: &'a [u8],
    host: IpAddr,
    verifier: Verifier4,
    principal: Principal,
    kind: Kind,
}

impl Clients {
    /// No clients. `boot` differs at every start of the server; `known`: names from before a restart, who may reclaim.
    pub fn new(
        config: &ServerConfig,
        boot: u64,
        sessions: Arc<Sessions>,
        now: Instant,
        known: Vec<Vec<u8>>,
    ) -> Self {
        Self {
            lease: config.lease,
            slots: config.slots.max(1),
            max_io: config.max_io,
            boot,
            epoch: now,
            next: 0,
            by_id: HashMap::new(),
            records: Accounts::new(MAX_CLIENTS, HOST_SHARE),
            by_owner: [HashMap::new(), HashMap::new()],
            unconfirmed: VecDeque::new(),
            expired: HashSet::new(),
            expired_order: VecDeque::new(),
            sessions,
            replies: ReplyBudget::new(config.memory),
            grace: Grace::new(now, config.lease, known),
            next_scan: now,
            known_changes: Arc::default(),
        }
    }

    /// After a restart: hosts with locks of NLM may reclaim them for a lease time.
    pub(crate) fn await_hosts(&mut self, now: Instant) {
        self.grace.await_hosts(now, self.lease);
    }

    /// Grows with every change of the [names to be known](Clients::known_clients), or before.
    pub(super) fn known_changes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.known_changes)
    }

    /// Drops unconfirmed clients after a lease time, and others when their courtesy ends; notices back channels that
    /// went down; ends the grace period.
    pub fn tick(&mut self, files: &mut AllFiles<'_>, now: Instant, effects: &mut Effects) {
        if self.grace.tick(now) {
            self.grace_ended();
        }
        self.drop_unconfirmed(files, now, effects);
        if now < self.next_scan {
            return;
        }
        self.next_scan = now + (self.lease / 8).min(Duration::from_secs(1));
        let keep = self.lease.saturating_add(COURTESY);
        let gone: Vec<ClientId> = self
            .by_id
            .values()
            .filter(|client| client.confirmed && client.lease.age(now) > keep)
            .map(Client::id)
            .collect();
        for id in gone {
            self.expire(files, id, effects);
        }
        let silent = |client: &&Client| client.confirmed && client.lease.age(now) > self.lease;
        let mut silent: Vec<_> =
            self.by_id.values().filter(silent).map(|client| (client.lease.age(now), client.id())).collect();
        silent.sort_unstable_by_key(|(age, _)| *age);
        for (_, id) in silent.into_iter().skip(MAX_COURTESY) {
            self.expire(files, id, effects);
        }
        for client in self.by_id.values() {
            client.refresh_paths();
        }
    }

    /// A confirmed client with a live (or courtesy) lease.
    pub fn check(&self, id: ClientId) -> Result<(), Nfsstat4> {
        match self.by_id.get(&id) {
            Some(client) if client.confirmed => Ok(()),
            _ if self.expired.contains(&id) => Err(Nfsstat4::EXPIRED),
            _ => Err(Nfsstat4::STALE_CLIENTID),
        }
    }

    /// Renews the lease of a client (any operation with its state does).
    pub fn renew(&self, id: ClientId, now: Instant) {
        if let Some(client) = self.by_id.get(&id) {
            client.lease.renew(now);
        }
    }

    /// Whether callbacks can reach the client: condition of granting a delegation.
    pub fn callback_up(&self, id: ClientId) -> bool {
        self.by_id.get(&id).is_some_and(Client::callback_up)
    }

    /// 0 for clients made by SETCLIENTID, 1 for those made by EXCHANGE_ID.
    pub fn minor(&self, id: ClientId) -> u32 {
        self.by_id.get(&id).map_or(0, |client| client.kind.minor() as u32)
    }

    /// The name that a client gave itself.
    pub fn owner(&self, id: ClientId) -> Option<&[u8]> {
        self.by_id.get(&id).map(|client| client.owner.as_slice())
    }

    /// Where a client's record was made from.
    pub(super) fn host(&self, id: ClientId) -> Option<IpAddr> {
        self.by_id.get(&id).map(|client| client.host)
    }

    /// Whether the lease ran out and the client's state is kept only by courtesy: state that conflicts with another
    /// client's request is then dropped with [`Clients::expire`].
    pub fn is_courtesy(&self, id: ClientId, now: Instant) -> bool {
        let mut lease = self.lease;
        if is_broken(Mutant::LeasesNeverEnd) {
            lease = Duration::MAX;
        } else if is_broken(Mutant::LeasesEndEarly) {
            lease /= 10;
        }
        self.by_id.get(&id).is_none_or(|client| client.lease.age(now) > lease)
    }

    /// Drops a client and all its state.
    pub fn expire(&mut self, files: &mut AllFiles<'_>, id: ClientId, effects: &mut Effects) {
        if self.remove(files, id, effects) && self.expired.insert(id) {
            self.expired_order.push_back(id);
            if self.expired_order.len() > MAX_EXPIRED
                && let Some(oldest) = self.expired_order.pop_front()
            {
                self.expired.remove(&oldest);
            }
        }
    }

    /// Whether the grace period lasts (opens and locks other than reclaims get GRACE).
    pub fn in_grace(&self) -> bool {
        self.grace.lasts()
    }

    /// Whether this client may get new opens, locks and delegations: GRACE during the grace period, and until a
    /// client of 4.1 said RECLAIM_COMPLETE (RFC 8881 §18.51.3).
    pub fn may_claim(&self, id: ClientId) -> Result<(), Nfsstat4> {
        let waits = self.by_id.get(&id).is_some_and(|client| match &client.kind {
            Kind::Session(state) => !state.reclaim_complete,
            Kind::Setclientid(_) => false,
        });
        let grace = self.grace.lasts() && !is_broken(Mutant::LocksInGrace);
        if waits || grace { Err(Nfsstat4::GRACE) } else { Ok(()) }
    }

    /// Whether this client may reclaim now (known from before the restart, has not completed).
    pub fn may_reclaim(&self, id: ClientId) -> Result<(), Nfsstat4> {
        let client = self.by_id.get(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let complete = matches!(&client.kind, Kind::Session(state) if state.reclaim_complete);
        if is_broken(Mutant::ReclaimAfterGrace) {
            return Ok(());
        }
        if complete || !self.grace.lasts() {
            Err(Nfsstat4::NO_GRACE)
        } else if self.grace.knows(&client.owner) {
            Ok(())
        } else {
            Err(Nfsstat4::RECLAIM_BAD)
        }
    }

    /// Names of the clients that may have state, to be known after a restart.
    pub fn known_clients(&self) -> Vec<Vec<u8>> {
        let mut names: HashSet<Vec<u8>> = self
            .by_id
            .values()
            .filter(|client| client.confirmed)
            .map(|client| client.owner.clone())
            .collect();
        names.extend(self.grace.awaited().map(<[u8]>::to_vec));
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        names
    }

    /// Answer to [`super::Callback::Probe`]: whether the client answers callbacks.
    pub fn callback_probed(&mut self, id: ClientId, up: bool) {
        if let Some(client) = self.by_id.get_mut(&id) {
            match &mut client.kind {
                Kind::Setclientid(state) => state.callback_up = up,
                Kind::Session(_) => client.refresh_paths(),
            }
        }
    }

    /// Whether there are revoked delegations that the client has not yet freed: status flag of SEQUENCE (RFC 8881 §18.46.3).
    pub fn revoked_delegations(&self, id: ClientId, any: bool) {
        if let Some(client) = self.by_id.get(&id) {
            client.lease.set_flags(SEQ_STATUS_RECALLABLE_STATE_REVOKED, any);
        }
    }

    /// Notes that a recall came to nothing.
    pub(super) fn recall_failed(&self, id: ClientId, now: Instant) {
        if let Some(client) = self.by_id.get(&id) {
            client.lease.recall_failed(now);
        }
    }

    /// Whether a recall came to nothing within a lease: then nothing is delegated to the client.
    pub(super) fn fails_recalls(&self, id: ClientId, now: Instant) -> bool {
        self.by_id.get(&id).is_some_and(|client| client.lease.failed_within(now, self.lease))
    }

    /// Live sessions of a client, the newest last.
    pub fn sessions_of(&self, id: ClientId) -> &[Arc<Session>] {
        match self.by_id.get(&id).map(|client| &client.kind) {
            Some(Kind::Session(state)) => &state.sessions,
            _ => &[],
        }
    }

    /// Where a client of 4.0 wants to be called.
    pub fn callback_target(&self, id: ClientId) -> Option<&CallbackTarget> {
        match &self.by_id.get(&id)?.kind {
            Kind::Setclientid(state) => Some(&state.callback),
            Kind::Session(_) => None,
        }
    }

    /// The confirmed clients, in order of their ids.
    pub fn confirmed(&self) -> Vec<ClientId> {
        let mut ids: Vec<_> = self.by_id.values().filter(|client| client.confirmed).map(Client::id).collect();
        ids.sort();
        ids
    }

    /// Number of confirmed clients.
    pub fn len(&self) -> usize {
        self.by_id.values().filter(|client| client.confirmed).count()
    }

    /// Whether there is no confirmed client.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn next_id(&mut self) -> ClientId {
        self.next = self.next.wrapping_add(1);
        ClientId((self.boot & 0xffff_ffff) << 32 | u64::from(self.next))
    }

    fn owners(&mut self, minor: usize) -> &mut HashMap<Vec<u8>, Owner> {
        &mut self.by_owner[minor & 1]
    }

    fn owner_records(&self, minor: usize, owner: &[u8]) -> Owner {
        self.by_owner[minor & 1].get(owner).copied().unwrap_or_default()
    }

    /// Adds an unconfirmed record in place of the owner's earlier one.
    fn add_unconfirmed(
        &mut self,
        files: &mut AllFiles<'_>,
        new: NewRecord<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Option<ClientId> {
        let NewRecord { owner, host, verifier, principal, kind } = new;
        let minor = kind.minor();
        if let Some(old) = self.owner_records(minor, owner).unconfirmed {
            self.remove(files, old, effects);
        }
        while self.records.left(&host) == 0 {
            let of_host = (self.records.free() > 0).then_some(host);
            if !self.make_room(files, of_host, now, effects) {
                return None;
            }
        }
        self.records.take(host, 1);
        let id = self.next_id();
        let lease = Arc::new(Lease::new(id, self.epoch, now));
        let owner = owner.to_vec();
        self.owners(minor).entry(owner.clone()).or_default().unconfirmed = Some(id);
        self.by_id.insert(id, Client { lease, owner, host, verifier, principal, confirmed: false, kind });
        self.unconfirmed.push_back(id);
        while self.unconfirmed.len() > MAX_UNCONFIRMED
            && let Some(oldest) = self.unconfirmed.pop_front()
        {
            if self.is_unconfirmed(oldest) {
                self.remove(files, oldest, effects);
            }
        }
        Some(id)
    }

    /// Confirms a record; the owner's earlier incarnation and its state go.
    fn confirm(&mut self, files: &mut AllFiles<'_>, id: ClientId, now: Instant, effects: &mut Effects) {
        let Some(client) = self.by_id.get_mut(&id) else { return };
        client.confirmed = true;
        self.known_changes.fetch_add(1, Ordering::Release);
        client.lease.renew(now);
        let (minor, owner) = (client.kind.minor(), client.owner.clone());
        if minor == 1 && self.grace.lasts() && self.grace.knows(&owner) {
            client.lease.set_flags(SEQ_STATUS_RESTART_RECLAIM_NEEDED, true);
        }
        let records = self.owners(minor).entry(owner).or_default();
        let old = records.confirmed.replace(id);
        records.unconfirmed = None;
        if let Some(old) = old.filter(|old| *old != id) {
            self.remove(files, old, effects);
        }
    }

    /// Forgets a record with its sessions and state. Whether there was one.
    fn remove(&mut self, files: &mut AllFiles<'_>, id: ClientId, effects: &mut Effects) -> bool {
        let Some(mut client) = self.by_id.remove(&id) else { return false };
        self.known_changes.fetch_add(1, Ordering::Release);
        self.records.give_back(&client.host, 1);
        if let Kind::Session(state) = &mut client.kind {
            for session in state.sessions.drain(..) {
                self.replies.give_back(id, kept(&session));
                session.kill();
                self.sessions.remove(&session.id());
            }
            self.sessions.share_out();
        }
        let owners = self.owners(client.kind.minor());
        if let Some(records) = owners.get_mut(&client.owner) {
            for record in [&mut records.confirmed, &mut records.unconfirmed] {
                *record = record.filter(|known| *known != id);
            }
            if records.confirmed.is_none() && records.unconfirmed.is_none() {
                owners.remove(&client.owner);
            }
        }
        if client.confirmed {
            files.purge_client(id, effects);
        }
        true
    }

    fn is_unconfirmed(&self, id: ClientId) -> bool {
        self.by_id.get(&id).is_some_and(|client| !client.confirmed)
    }

    fn drop_unconfirmed(&mut self, files: &mut AllFiles<'_>, now: Instant, effects: &mut Effects) {
        while let Some(&oldest) = self.unconfirmed.front() {
            if self.is_unconfirmed(oldest) {
                if !self.is_courtesy(oldest, now) {
                    return;
                }
                self.remove(files, oldest, effects);
            }
            self.unconfirmed.pop_front();
        }
    }

    /// Drops the client (of a host, or of all) whose lease ran out longest ago. `false`: all leases are live.
    fn make_room(
        &mut self,
        files: &mut AllFiles<'_>,
        of_host: Option<IpAddr>,
        now: Instant,
        effects: &mut Effects,
    ) -> bool {
        let among = self.by_id.values().filter(|client| of_host.is_none_or(|host| client.host == host));
        let stalest = among.max_by_key(|client| client.lease.age(now));
        let Some(id) = stalest.filter(|client| client.lease.age(now) > self.lease).map(Client::id) else {
            return false;
        };
        self.expire(files, id, effects);
        true
    }

    fn grace_ended(&mut self) {
        self.known_changes.fetch_add(1, Ordering::Release);
        for client in self.by_id.values() {
            client.lease.set_flags(SEQ_STATUS_RESTART_RECLAIM_NEEDED, false);
        }
    }
}

impl Client {
    fn id(&self) -> ClientId {
        self.lease.client()
    }

    fn callback_up(&self) -> bool {
        match &self.kind {
            Kind::Setclientid(state) => state.callback_up,
            Kind::Session(state) => state.sessions.iter().any(|session| session_path_up(session)),
        }
    }

    /// Sets the flags of sessions without a way for callbacks.
    fn refresh_paths(&self) {
        let Kind::Session(state) = &self.kind else { return };
        let mut any = false;
        for session in &state.sessions {
            let up = session_path_up(session);
            any |= up;
            if up {
                session.set_flags(SEQ_STATUS_CB_PATH_DOWN_SESSION, false);
            }
        }
        self.lease.set_flags(SEQ_STATUS_CB_PATH_DOWN, !any);
    }
}

/// What a session keeps of replies.
fn kept(session: &Session) -> Kept {
    Kept { slots: session.slot_count() as u32, reply: session.limits.maxresponsesize_cached }
}

fn session_path_up(session: &Session) -> bool {
    session.flags() & SEQ_STATUS_BACKCHANNEL_FAULT == 0 && session.back().lock().connection().is_some()
}
