//! What a client called and what it had to recover from.

use std::cell::{Cell, RefCell};
use std::fmt;

use benchmaster_rpc_tls::Facts;

use crate::ops::Op;

pub use benchmaster_record::recording::RpcCounters as OpCounters;

macro_rules! events {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)*) => {
        /// Something out of the ordinary that the client met or mended.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Event { $($(#[doc = $doc])+ $name,)* }

        impl Event {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in results: `reconnect`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)* }
            }
        }
    };
}

events! {
    /// A connection was made, the first ones included.
    Connect = "connect",
    /// A connection broke or was given up, and another was made in its place.
    Reconnect = "reconnect",
    /// Making a connection failed.
    ConnectFailed = "connect-failed",
    /// A request was sent again because its connection broke.
    Resent = "resent",
    /// A request was sent again because its reply did not come in time.
    Retransmission = "retransmission",
    /// A reply arrived for which no call waits.
    StrayReply = "stray-reply",
    /// Something came that is no RPC message, or too long; the connection was given up.
    Garbage = "garbage",
    /// The server called back.
    Callback = "callback",
    /// The server asked to try later (NFS4ERR_DELAY, NFS3ERR_JUKEBOX), and the call was made again after a pause.
    Delay = "delay",
    /// The server was in its grace period, and the call was made again after a pause.
    Grace = "grace",
    /// A call waited for a session slot.
    SlotWait = "slot-wait",
    /// The server lowered the number of session slots.
    SlotsLowered = "slots-lowered",
    /// The session was lost, and another was made.
    SessionRecovered = "session-recovered",
    /// The client id was lost (the server restarted or the lease expired), and another was made.
    ClientRecovered = "client-recovered",
    /// A connection was bound to the session again.
    ConnectionBound = "connection-bound",
    /// An open file was reclaimed or reopened after its state was lost.
    OpenReclaimed = "open-reclaimed",
    /// A lock was reclaimed after its state was lost.
    LockReclaimed = "lock-reclaimed",
    /// Open files or locks could not be reclaimed; operations on them fail.
    StateLost = "state-lost",
    /// Data written and not committed were written again because the server's verifier had changed.
    Rewritten = "rewritten",
    /// The lease was renewed by a call of its own.
    LeaseRenewed = "lease-renewed",
    /// A delegation was granted.
    DelegationGranted = "delegation-granted",
    /// The server recalled a delegation.
    DelegationRecalled = "delegation-recalled",
    /// A delegation was given back.
    DelegationReturned = "delegation-returned",
    /// The server revoked a delegation.
    DelegationRevoked = "delegation-revoked",
    /// A lock was asked for again after it had been refused because another holds it.
    LockPolled = "lock-polled",
    /// A TLS session was begun.
    TlsHandshake = "tls-handshake",
    /// A TLS session went on from an earlier one, without certificates.
    TlsResumed = "tls-resumed",
    /// The server offers no TLS, or one side did not accept the other's certificate; nothing was sent.
    TlsRefused = "tls-refused",
    /// A TLS record was wrong, or the server ended the session with an alert; the connection was given up.
    TlsBroken = "tls-broken",
    /// Microseconds that the client spent computing in handshakes.
    TlsComputing = "tls-computing-us",
    /// Microseconds from a TCP connection to its TLS session, for all of them together.
    TlsConnecting = "tls-connecting-us",
    /// Microseconds in which TLS records were encrypted and decrypted.
    TlsCipher = "tls-cipher-us",
    /// TLS records sent.
    TlsRecordsSent = "tls-records-sent",
    /// TLS records received.
    TlsRecordsReceived = "tls-records-received",
    /// Bytes of TLS records sent.
    TlsBytesSent = "tls-bytes-sent",
    /// Bytes of TLS records received.
    TlsBytesReceived = "tls-bytes-received",
    /// A context of RPCSEC_GSS was established.
    GssContext = "gss-context",
    /// Another one took its place, because it was about to expire or the server had lost it.
    GssRenewed = "gss-renewed",
    /// There was no context, because this side or the server refused.
    GssRefused = "gss-refused",
    /// Nanoseconds in which checksums were made and checked, and bodies encrypted and decrypted.
    GssCipher = "gss-cipher-ns",
    /// A reply was answered from the server's reply cache or seen to be executed before, and taken as done.
    ReplayAccepted = "replay-accepted",
}

/// Counters of one client, shared by its connections.
#[derive(Default)]
pub struct Counters {
    ops: RefCell<Vec<OpCounters>>,
    events: RefCell<Vec<u64>>,
    /// Calls and the sum of their round trips, by connection.
    connections: RefCell<Vec<(u64, u64)>>,
    /// Calls begun and not completed.
    outstanding: Cell<u64>,
    /// Of the last TLS session.
    secured: Cell<Option<Facts>>,
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl Counters {
    /// Counters that start at zero.
    pub fn new() -> Self {
        Self {
            ops: RefCell::new(vec![OpCounters::default(); Op::COUNT]),
            events: RefCell::new(vec![0; Event::ALL.len()]),
            secured: Cell::new(None),
            connections: RefCell::default(),
            outstanding: Cell::new(0),
        }
    }

    /// Counts a call that a connection brought back.
    pub(crate) fn on_connection(&self, number: usize, rtt_ns: u64) {
        let mut connections = self.connections.borrow_mut();
        if connections.len() <= number {
            connections.resize(number + 1, (0, 0));
        }
        let (calls, sum_ns) = &mut connections[number];
        (*calls, *sum_ns) = (*calls + 1, *sum_ns + rtt_ns);
    }

    /// Adds one to the count of an event.
    pub fn event(&self, event: Event) {
        self.add(event, 1);
    }

    /// Adds to the count of an event.
    pub(crate) fn add(&self, event: Event, count: u64) {
        self.events.borrow_mut()[event as usize] += count;
    }

    /// A TLS session was begun.
    pub(crate) fn secured(&self, facts: Facts) {
        self.secured.set(Some(facts));
    }

    /// What the last TLS session agreed on, where there is TLS.
    pub fn tls(&self) -> Option<Facts> {
        self.secured.get()
    }

    /// Counts a call that the server answered with an error of its protocol.
    pub fn error(&self, op: Op) {
        self.ops.borrow_mut()[usize::from(op.0)].errors += 1;
    }

    /// Changes the counters of a kind of call.
    pub(crate) fn update(&self, op: Op, change: impl FnOnce(&mut OpCounters)) {
        change(&mut self.ops.borrow_mut()[usize::from(op.0)]);
    }

    pub(crate) fn begun(&self) {
        self.outstanding.set(self.outstanding.get() + 1);
    }

    pub(crate) fn ended(&self) {
        self.outstanding.set(self.outstanding.get() - 1);
    }

    /// Calls begun and not completed.
    pub fn outstanding(&self) -> u64 {
        self.outstanding.get()
    }

    /// The counts at this moment.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            ops: self.ops.borrow().clone(),
            events: self.events.borrow().clone(),
            connections: self.connections.borrow().clone(),
        }
    }
}

/// Counters at one time, or what was counted between two times. Can be sent between threads.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    ops: Vec<OpCounters>,
    events: Vec<u64>,
    connections: Vec<(u64, u64)>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops = self.ops().map(|(op, counters)| (op.name(), counters));
        let events = self.events().map(|(event, count)| (event.name(), count));
        f.debug_struct("Snapshot")
            .field("ops", &ops.collect::<Vec<_>>())
            .field("events", &events.collect::<Vec<_>>())
            .finish()
    }
}

impl Snapshot {
    /// All counts are zero.
    pub fn zero() -> Self {
        Counters::new().snapshot()
    }

    /// Kinds of calls that were made at all.
    pub fn ops(&self) -> impl Iterator<Item = (Op, OpCounters)> {
        Op::all().zip(self.ops.iter().copied()).filter(|(_, counters)| *counters != OpCounters::default())
    }

    /// Counters of one kind of call.
    pub fn op(&self, op: Op) -> OpCounters {
        self.ops.get(usize::from(op.0)).copied().unwrap_or_default()
    }

    /// Events that happened at all.
    pub fn events(&self) -> impl Iterator<Item = (Event, u64)> {
        Event::ALL.iter().copied().zip(self.events.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// How often an event happened.
    pub fn event(&self, event: Event) -> u64 {
        self.events.get(event as usize).copied().unwrap_or_default()
    }

    /// Calls and the sum of their round trips in nanoseconds, of each connection.
    pub fn connections(&self) -> impl Iterator<Item = (u64, u64)> {
        self.connections.iter().copied()
    }

    /// What was counted since `earlier`, a snapshot of the same counters.
    pub fn since(&self, earlier: &Self) -> Self {
        let ops = self.ops.iter().zip(&earlier.ops).map(|(now, then)| now.since(*then)).collect();
        let events = self.events.iter().zip(&earlier.events).map(|(now, then)| now - then).collect();
        let before = earlier.connections.iter().copied().chain(std::iter::repeat((0, 0)));
        let connections =
            self.connections.iter().zip(before).map(|(now, then)| (now.0 - then.0, now.1 - then.1)).collect();
        Self { ops, events, connections }
    }

    /// Adds what another client counted.
    pub fn add(&mut self, other: &Self) {
        if self.ops.is_empty() {
            *self = other.clone();
            return;
        }
        self.ops.iter_mut().zip(&other.ops).for_each(|(sum, more)| sum.add(*more));
        self.events.iter_mut().zip(&other.events).for_each(|(sum, more)| *sum += more);
        let length = self.connections.len().max(other.connections.len());
        self.connections.resize(length, (0, 0));
        for (sum, more) in self.connections.iter_mut().zip(&other.connections) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_apart_between_two_times_and_over_clients() {
        let counters = Counters::new();
        counters.on_connection(0, 5);
        let before = counters.snapshot();
        counters.on_connection(2, 7);
        counters.on_connection(0, 6);
        let mut since = counters.snapshot().since(&before);
        assert_eq!(since.connections().collect::<Vec<_>>(), [(1, 6), (0, 0), (1, 7)]);
        since.add(&before);
        assert_eq!(since.connections().collect::<Vec<_>>(), [(2, 11), (0, 0), (1, 7)]);
    }
}
