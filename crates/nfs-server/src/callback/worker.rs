//! The background thread of callbacks: what waits to be sent, what waits for a reply.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Nfsstat4, SEQ_STATUS_BACKCHANNEL_FAULT, SEQ_STATUS_CB_PATH_DOWN_SESSION};
use hashbrown::HashMap;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::dial::{Dialled, Dials};
use super::message::{self, Address, CallbackReply, Frame};
use super::{Callbacks, Input};
use crate::state::backchannel::{BackClaim, BackConnection, Credential};
use crate::state::delegated::HolderAttributes;
use crate::state::session::Session;
use crate::state::{Callback, ClientId, ConnectionId, Effects, State};

/// Poll token of the wake-up; client ids never have this value.
const WAKE: u64 = u64::MAX;
/// How often what is in flight is looked over.
const STEP: Duration = Duration::from_millis(100);
/// Until a callback without a path is tried again; a new connection of the client is noticed at once.
const NO_PATH: Duration = Duration::from_secs(1);
/// Until a delayed callback is repeated.
const DELAY: Duration = Duration::from_millis(100);
/// How often BAD_STATEID and BADHANDLE are taken for a reply that the client has not seen yet.
const MAX_RACES: u32 = 5;
/// Between repetitions of such a callback.
const RACE: Duration = Duration::from_millis(250);
/// How long a client may take to answer CB_GETATTR.
const ANSWER: Duration = Duration::from_secs(2);
/// How often an unanswered CB_NULL is sent over a dialled connection.
const MAX_PROBES: u32 = 2;

/// What callbacks belong to.
pub(super) trait Host {
    fn callbacks(&self) -> &Callbacks;
    fn state(&self) -> &State;
    /// The server's number in file handles.
    fn instance(&self) -> u32;
    /// Carries out what answers lead to.
    fn apply(&self, effects: &mut Effects);
}

pub(super) struct Worker<H> {
    host: H,
    poll: OwnedFd,
    dials: Dials,
    waiting: VecDeque<Job>,
    flights: HashMap<u32, Flight>,
    next_xid: u32,
    effects: Effects,
    next_sweep: Instant,
}

/// A callback to be sent.
#[derive(Debug)]
struct Job {
    client: ClientId,
    what: Callback,
    /// When to try next.
    not_before: Instant,
    /// When to give up.
    deadline: Instant,
    attempts: u32,
    /// Slot and session on which it was sent before and must be sent again (RFC 8881 §2.10.6.2).
    bound: Option<(Arc<Session>, BackClaim)>,
}

struct Flight {
    job: Job,
    path: Path,
    timeout: Instant,
}

enum Path {
    /// Over a client's connection; CB_NULL has no slot.
    Session(Arc<Session>, Option<BackClaim>, BackConnection),
    Dialled,
}

/// Outcome of an attempt to send.
enum Sent {
    Yes,
    /// No path now.
    Later(Job),
    /// The client is gone, or cannot take this callback.
    Never(Job),
}

impl<H: Host> Worker<H> {
    pub(super) fn new(host: H, dials: Dials, now: Instant) -> io::Result<Self> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&poll, &host.callbacks().wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self {
            host,
            poll,
            dials,
            waiting: VecDeque::new(),
            flights: HashMap::new(),
            next_xid: 1,
            effects: Effects::new(),
            next_sweep: now,
        })
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        while !self.host.callbacks().stop.load(Ordering::Acquire) {
            self.wait()?;
            self.step(Instant::now());
        }
        Ok(())
    }

    /// Does what is due.
    pub(super) fn step(&mut self, now: Instant) {
        let inputs = std::mem::take(&mut *self.host.callbacks().inbox.lock());
        for input in inputs {
            match input {
                Input::Call(client, callback) => self.take(client, callback, now),
                Input::Reply(connection, message) => self.replied(Some(connection), None, &message, now),
            }
        }
        self.sweep(now);
        self.send(now);
        if !self.effects.is_empty() {
            self.host.apply(&mut self.effects);
            self.effects.clear();
        }
    }

    /// What the caller is to carry.
    pub(super) fn take_dialled(&mut self) -> Vec<Dialled> {
        self.dials.take_sent()
    }

    /// A connection that the caller carried broke.
    pub(super) fn dialled_broken(&mut self, client: ClientId, now: Instant) {
        self.dials.close(client);
        self.dialled_failed(client, now);
    }

    /// Waits for the next thing to do, and handles what dialled connections brought.
    fn wait(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let due = self.waiting.iter().map(|job| job.not_before.min(job.deadline));
        let due = due.chain((!self.flights.is_empty()).then(|| now + STEP)).min();
        let timeout = due.map(|due| {
            let left = due.saturating_duration_since(now);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        let mut space = [MaybeUninit::uninit(); 64];
        let events: Vec<u64> = match epoll::wait(&self.poll, &mut space, timeout.as_ref()) {
            Ok((events, _)) => events.iter().map(|event| event.data.u64()).collect(),
            Err(rustix::io::Errno::INTR) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        for token in events {
            if token == WAKE {
                let _ = rustix::io::read(&self.host.callbacks().wake, &mut [0u8; 8]);
                continue;
            }
            let client = ClientId(token);
            let arrived = self.dials.ready(client);
            let now = Instant::now();
            for message in arrived.messages {
                self.replied(None, Some(client), &message, now);
            }
            if arrived.closed {
                self.dialled_failed(client, now);
            }
        }
        Ok(())
    }

    /// A new callback; the same one waiting or in flight makes it superfluous.
    fn take(&mut self, client: ClientId, what: Callback, now: Instant) {
        if what == Callback::Probe {
            // There may be a path now for what waits.
            self.release_dead_sessions(now);
            self.hurry(client, now);
        }
        let flying = self.flights.values().map(|flight| &flight.job);
        if self.waiting.iter().chain(flying).any(|job| job.client == client && job.is_for(&what)) {
            return;
        }
        // Somebody waits for attributes: before long the delegation is recalled instead.
        let asks = matches!(what, Callback::GetAttributes { .. });
        let job = self.host.callbacks().timing.job;
        let deadline = now + if asks { job.min(ANSWER) } else { job };
        self.waiting.push_back(Job { client, what, not_before: now, deadline, attempts: 0, bound: None });
    }

    /// What waits for this client is tried at once.
    fn hurry(&mut self, client: ClientId, now: Instant) {
        for job in self.waiting.iter_mut().filter(|job| job.client == client) {
            job.not_before = job.not_before.min(now);
        }
    }

    /// Takes what is overdue, or was sent on connections that closed, out of flight.
    fn sweep(&mut self, now: Instant) {
        if now >= self.next_sweep {
            self.next_sweep = now + STEP;
            self.release_dead_sessions(now);
            let tables = self.host.state().clients();
            self.dials.retain(|client| tables.clients().callback_target(client).is_some());
            drop(tables);
            let lost = |flight: &Flight| {
                let closed = match &flight.path {
                    Path::Session(_, _, connection) => !connection.outbox.is_open(),
                    Path::Dialled => false,
                };
                closed || now >= flight.timeout
            };
            for flight in self.take_flights(lost) {
                self.lost(flight, now);
            }
        }
        let over = |job: &Job| now >= job.deadline;
        let (over, rest): (VecDeque<Job>, _) = std::mem::take(&mut self.waiting).into_iter().partition(over);
        self.waiting = rest;
        for job in over {
            self.give_up(job, now);
        }
    }

    /// Frees the callbacks sent on sessions that are no more: they go to another session.
    fn release_dead_sessions(&mut self, now: Instant) {
        let dead = |flight: &Flight| matches!(&flight.path, Path::Session(session, ..) if session.is_dead());
        for Flight { job, .. } in self.take_flights(dead) {
            self.waiting.push_back(Job { bound: None, not_before: now, ..job });
        }
    }

    fn take_flights(&mut self, which: impl Fn(&Flight) -> bool) -> Vec<Flight> {
        self.flights.extract_if(|_, flight| which(flight)).map(|(_, flight)| flight).collect()
    }

    /// No reply came and none will.
    fn lost(&mut self, flight: Flight, now: Instant) {
        if is_broken(Mutant::RecallNotRepeated) {
            return;
        }
        let Flight { mut job, path, .. } = flight;
        match path {
            Path::Session(session, claim, connection) => {
                // The connection is closed or its client does not answer: no path any more, which its next SEQUENCE
                // tells.
                session.back().lock().remove(connection.id);
                self.report_path(job.client, false);
                if let Some(claim) = claim {
                    session.set_flags(SEQ_STATUS_CB_PATH_DOWN_SESSION, true);
                    job.bound = Some((session, claim));
                    job.not_before = now;
                    self.waiting.push_back(job);
                }
            }
            Path::Dialled => {
                self.dials.close(job.client);
                self.report_path(job.client, false);
                self.again(job, now + NO_PATH);
            }
        }
    }

    /// A dialled connection could not be made, or broke.
    fn dialled_failed(&mut self, client: ClientId, now: Instant) {
        let broken = |flight: &Flight| matches!(flight.path, Path::Dialled) && flight.job.client == client;
        for flight in self.take_flights(broken) {
            self.lost(flight, now);
        }
    }

    /// Puts a callback back to be sent later, unless it is a probe that was repeated enough.
    fn again(&mut self, mut job: Job, not_before: Instant) {
        job.attempts += 1;
        if job.what == Callback::Probe && job.attempts >= MAX_PROBES {
            return;
        }
        job.not_before = not_before;
        self.waiting.push_back(job);
    }

    fn give_up(&mut self, job: Job, now: Instant) {
        if let Some((session, claim)) = &job.bound
            && !session.is_dead()
        {
            // Whether the client executed it is not known: neither is the slot's next sequence number.
            session.set_flags(SEQ_STATUS_BACKCHANNEL_FAULT, true);
            session.back().lock().release(*claim, false);
        }
        self.answer(&job, Nfsstat4::CB_PATH_DOWN, None, now);
    }

    fn answer(&mut self, job: &Job, status: Nfsstat4, attributes: Option<HolderAttributes>, now: Instant) {
        let (client, effects) = (job.client, &mut self.effects);
        match job.what {
            Callback::Recall { stateid, .. } => {
                let mut part = self.host.state().write_of(&stateid);
                let (clients, files) = part.split();
                files.recall_answered(clients, client, stateid, status, now);
            }
            Callback::GetAttributes { stateid, .. } => {
                let answer = attributes.filter(|_| status == Nfsstat4::OK);
                let mut part = self.host.state().write_of(&stateid);
                part.files().attributes_answered(client, stateid, answer, now, effects);
            }
            Callback::Notify { stateid, .. } => {
                let mut part = self.host.state().write_of(&stateid);
                part.files().notified(client, stateid, status, now, effects);
            }
            Callback::Probe | Callback::NotifyLock { .. } | Callback::RecallSlots { .. } => {}
        }
    }

    fn report_path(&self, client: ClientId, up: bool) {
        self.host.state().all().clients().callback_probed(client, up);
    }

    /// Sends what is due.
    fn send(&mut self, now: Instant) {
        for _ in 0..self.waiting.len() {
            let Some(job) = self.waiting.pop_front() else { return };
            if job.not_before > now {
                self.waiting.push_back(job);
                continue;
            }
            match self.send_one(job, now) {
                Sent::Yes => {}
                Sent::Later(mut job) => {
                    job.not_before = now + NO_PATH;
                    self.waiting.push_back(job);
                }
                Sent::Never(job) => self.answer(&job, Nfsstat4::CB_PATH_DOWN, None, now),
            }
        }
    }

    fn send_one(&mut self, mut job: Job, now: Instant) -> Sent {
        let (minor, target, sessions) = {
            let tables = self.host.state().clients();
            let clients = tables.clients();
            if clients.check(job.client).is_err() {
                return Sent::Never(job);
            }
            let target = clients.callback_target(job.client).cloned();
            (clients.minor(job.client), target, clients.sessions_of(job.client).to_vec())
        };
        if minor == 0 {
            let Some((target, address)) = target.and_then(|target| target.address.map(|to| (target, to)))
            else {
                self.report_path(job.client, false);
                return Sent::Never(job);
            };
            let xid = self.xid();
            let credential = Credential::root();
            let to = Address { program: target.program, credential: &credential };
            let frame = Frame::Ident(target.ident);
            let message = match job.what {
                Callback::Probe => message::null(xid, to),
                _ => match message::compound(xid, to, frame, job.client, self.host.instance(), &job.what) {
                    Some(message) => message,
                    None => return Sent::Never(job),
                },
            };
            if let Err(error) = self.dials.send(&self.poll, job.client, address, &message) {
                log::debug!("callback to client {} at {address} not sent: {error}", job.client.0);
                self.dials.close(job.client);
                self.report_path(job.client, false);
                self.again(job, now + NO_PATH);
                return Sent::Yes;
            }
            self.fly(xid, job, Path::Dialled, now);
            return Sent::Yes;
        }
        // A callback that may have been executed is repeated where it was sent, or else where it is executed again.
        if let Some((session, claim)) = job.bound.take()
            && !session.is_dead()
            && session.flags() & SEQ_STATUS_BACKCHANNEL_FAULT == 0
        {
            return self.send_on(job, &sessions, session, Some(claim), now);
        }
        let mut left = Sent::Later(job);
        for session in sessions.iter().rev() {
            let Sent::Later(job) = left else { return left };
            left = self.send_on(job, &sessions, session.clone(), None, now);
        }
        match left {
            // A probe that finds no path has its answer.
            Sent::Later(Job { what: Callback::Probe, client, .. }) => {
                self.report_path(client, false);
                Sent::Yes
            }
            left => left,
        }
    }

    /// Sends over a connection of a session, on the given slot or a free one.
    fn send_on(
        &mut self,
        mut job: Job,
        sessions: &[Arc<Session>],
        session: Arc<Session>,
        bound: Option<BackClaim>,
        now: Instant,
    ) -> Sent {
        if session.flags() & SEQ_STATUS_BACKCHANNEL_FAULT != 0 {
            return Sent::Later(job);
        }
        let xid = self.xid();
        let mut back = session.back().lock();
        let Some(connection) = back.connection() else {
            drop(back);
            if let Some(claim) = bound {
                session.set_flags(SEQ_STATUS_CB_PATH_DOWN_SESSION, true);
                job.bound = Some((session, claim));
            }
            return Sent::Later(job);
        };
        let probe = job.what == Callback::Probe;
        let claim = if probe { None } else { bound.or_else(|| back.claim()) };
        let to = Address { program: back.program, credential: &back.credential };
        let message = match claim {
            None if probe => message::null(xid, to),
            None => return Sent::Later(job),
            Some(claim) => {
                let refers = job.delegation().and_then(|other| {
                    sessions.iter().find_map(|session| {
                        let (slot, sequence) = session.grant(&other)?;
                        Some((session.id(), slot, sequence))
                    })
                });
                let frame = Frame::Sequence { minor: back.minor, session: session.id(), claim, refers };
                let message = message::compound(xid, to, frame, job.client, self.host.instance(), &job.what);
                let Some(message) = message.filter(|message| message.len() <= back.max_request as usize)
                else {
                    back.release(claim, false);
                    return Sent::Later(job);
                };
                message
            }
        };
        drop(back);
        if connection.outbox.send(message) {
            self.fly(xid, job, Path::Session(session, claim, connection), now);
            return Sent::Yes;
        }
        let Some(claim) = claim else { return Sent::Later(job) };
        let mut back = session.back().lock();
        back.remove(connection.id);
        match bound {
            Some(claim) => {
                drop(back);
                job.bound = Some((session, claim));
            }
            None => back.release(claim, false),
        }
        Sent::Later(job)
    }

    fn fly(&mut self, xid: u32, job: Job, path: Path, now: Instant) {
        let timeout = now + self.host.callbacks().timing.reply;
        self.flights.insert(xid, Flight { job, path, timeout });
    }

    fn xid(&mut self) -> u32 {
        let xid = self.next_xid;
        self.next_xid = xid.wrapping_add(1);
        xid
    }

    /// A reply, from a connection of a client or a dialled one. One that answers nothing, or comes from elsewhere, is
    /// dropped.
    pub(super) fn replied(
        &mut self,
        connection: Option<ConnectionId>,
        dialled: Option<ClientId>,
        message: &[u8],
        now: Instant,
    ) {
        let Some(xid) = message::xid(message) else { return };
        let Some(flight) = self.flights.get(&xid) else { return };
        let expected = match &flight.path {
            Path::Session(_, _, sent) => connection == Some(sent.id),
            Path::Dialled => dialled == Some(flight.job.client),
        };
        if !expected {
            return;
        }
        let Some(flight) = self.flights.remove(&xid) else { return };
        self.answered(flight, message, now);
    }

    fn answered(&mut self, flight: Flight, message: &[u8], now: Instant) {
        let sequenced = matches!(flight.path, Path::Session(_, Some(_), _));
        let answer = message::answer(message, &flight.job.what, sequenced);
        let client = flight.job.client;
        match answer {
            CallbackReply::Refused => self.lost(flight, now),
            CallbackReply::Alive => self.report_path(client, true),
            CallbackReply::Compound { sequence: Nfsstat4::OK, operation, attributes } => {
                if let Path::Session(session, Some(claim), _) = &flight.path {
                    session.back().lock().release(*claim, true);
                }
                self.report_path(client, true);
                self.executed(flight.job, operation.unwrap_or(Nfsstat4::OK), attributes, now);
                self.hurry(client, now);
            }
            CallbackReply::Compound { sequence, .. } => self.not_executed(flight, sequence, now),
        }
    }

    /// The client executed the callback, with this status.
    fn executed(&mut self, job: Job, status: Nfsstat4, attributes: Option<HolderAttributes>, now: Instant) {
        match status {
            Nfsstat4::DELAY => self.again(job, now + DELAY),
            // The reply that granted the delegation may still be on its way.
            Nfsstat4::BAD_STATEID | Nfsstat4::BADHANDLE if job.attempts < MAX_RACES => {
                self.again(job, now + RACE)
            }
            // Executed before; its reply was lost.
            Nfsstat4::RETRY_UNCACHED_REP => self.answer(&job, Nfsstat4::OK, None, now),
            status => self.answer(&job, status, attributes, now),
        }
    }

    /// CB_SEQUENCE failed, and nothing was executed.
    fn not_executed(&mut self, flight: Flight, status: Nfsstat4, now: Instant) {
        let Flight { mut job, path, .. } = flight;
        let Path::Session(session, Some(claim), connection) = path else {
            // A 4.0 client that does not take the compound.
            self.answer(&job, status, None, now);
            return;
        };
        match status {
            Nfsstat4::DELAY => {
                job.bound = Some((session, claim));
                self.again(job, now + DELAY);
            }
            Nfsstat4::CONN_NOT_BOUND_TO_SESSION => {
                session.back().lock().remove(connection.id);
                self.report_path(job.client, false);
                job.bound = Some((session, claim));
                self.again(job, now);
            }
            // The client and the server have lost each other's count, or the session (RFC 8881 §18.46.3).
            _ => {
                log::debug!("back channel of client {} is beyond repair: {status}", job.client.0);
                session.set_flags(SEQ_STATUS_BACKCHANNEL_FAULT, true);
                session.back().lock().release(claim, false);
                self.report_path(job.client, false);
                self.again(job, now);
            }
        }
    }
}

impl Job {
    /// Whether it does the same.
    fn is_for(&self, what: &Callback) -> bool {
        match (&self.what, what) {
            (Callback::Recall { stateid, .. }, Callback::Recall { stateid: other, .. }) => {
                stateid.other == other.other
            }
            (mine, other) => mine == other,
        }
    }

    /// The delegation it is about.
    fn delegation(&self) -> Option<[u8; 12]> {
        match &self.what {
            Callback::Recall { stateid, .. }
            | Callback::GetAttributes { stateid, .. }
            | Callback::Notify { stateid, .. } => Some(stateid.other),
            _ => None,
        }
    }
}
