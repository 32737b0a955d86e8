//! What went over the wire while a workload ran, in the columns of Linux' `mountstats`: of the user-space client, and of
//! the kernel's for a directory on an NFS mount.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use crate::nfs::NfsVersion;
use crate::phase::Phase;

/// The RPCs of one workload of one run, summed over its clients.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RpcRecording {
    /// Who called.
    pub source: RpcSource,
    /// By phase, in order: `set-up` (filesets are prepared, clients mount, files are opened), `warm-up` if there is one,
    /// `measure` and `tear-down` (files are closed, written data are read back, clients unmount).
    pub phases: Vec<RpcPhase>,
    /// CPU time in user mode and in the kernel of the clients during the measured phase: that of the reactor threads for
    /// the user-space client, that of the process for the kernel's (whose own threads it does not contain).
    pub client_cpu_ns: (u64, u64),
    /// How the clients reached the server.
    pub connection: ConnectionFacts,
    /// What was wrong in the end, in words: calls still outstanding, state lost, an unmount that failed.
    pub problems: Vec<String>,
}

/// Whose counters they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RpcSource {
    /// The user-space client.
    #[default]
    Client,
    /// The kernel's client, by `/proc/self/mountstats`. What others did on the same mount is counted with it, and where
    /// a column is missing in the kernel's counters it is 0.
    Kernel,
}

/// The RPCs of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RpcPhase {
    pub phase: Phase,
    /// Kinds of calls that were made, in the order of the protocol.
    pub rows: Vec<RpcRow>,
    /// Recoveries and other events out of the ordinary, by name (`reconnect`, `delay`, `slot-wait`, …). The kernel's
    /// client tells of reconnects alone.
    pub events: BTreeMap<String, u64>,
}

/// One kind of call and its counters, which can be used as if they were fields of the row.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RpcRow {
    /// `NFSv3`, `NFSv4`, `MOUNT`, `NLM`, `PORTMAP`, …
    pub program: String,
    /// `READ`; of NFSv4 what the compound is for.
    pub operation: String,
    #[serde(flatten)]
    pub counters: RpcCounters,
}

impl Deref for RpcRow {
    type Target = RpcCounters;

    fn deref(&self) -> &RpcCounters {
        &self.counters
    }
}

impl DerefMut for RpcRow {
    fn deref_mut(&mut self) -> &mut RpcCounters {
        &mut self.counters
    }
}

/// Counters of one kind of call with the columns and meanings of Linux' `mountstats`: a call is counted in all columns when
/// it ends, and one that the caller makes again because of what the server answered (`NFS4ERR_DELAY`,
/// `NFS4ERR_OLD_STATEID`, `NFS3ERR_JUKEBOX`, a lost session) is another call. Times are sums in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RpcCounters {
    /// Calls completed, with or without success.
    pub ops: u64,
    /// Times a request was sent: more than `ops` only where the same request (the same transaction number) was sent again,
    /// because its reply did not arrive in time or its connection broke. At least one for each call.
    pub transmissions: u64,
    /// Major timeouts: calls without a reply within `timeo` × (`retrans` + 1).
    pub timeouts: u64,
    /// Bytes of RPC messages sent, without record marks.
    pub bytes_sent: u64,
    /// Bytes of RPC messages received.
    pub bytes_received: u64,
    /// From issuing the call until the (last) request was handed to the socket: waiting for a session slot, for a
    /// connection, for space in the socket.
    pub queue_ns: u64,
    /// From then until the reply.
    pub rtt_ns: u64,
    /// From issuing the call to the reply: more than queue and RTT together where a request was sent again.
    pub execute_ns: u64,
    /// Calls that failed: on the wire, with an error of the protocol (those made again after it too), or given up.
    pub errors: u64,
}

/// How the clients of a workload reached the server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConnectionFacts {
    /// The server and export as mounted: `nfs://server/export`, or `server:/export` of the kernel's client.
    pub server: String,
    /// `None` when the kernel did not report it.
    pub version: Option<NfsVersion>,
    /// Largest READ.
    pub rsize: u64,
    /// Largest WRITE.
    pub wsize: u64,
    /// Connections per client.
    pub nconnect: u32,
    /// Session slots that the server granted (the fewest of all clients); `None` where there are no sessions or it is
    /// not told.
    pub slots: Option<u32>,
    /// Clients: each with connections, client id and counters of its own.
    pub clients: u32,
    /// Threads that they ran on; `None` for the kernel's client.
    pub threads: Option<u32>,
    /// Cipher suite of TLS 1.3 that every client agreed on with the server, as IANA calls it; `None` where a client had no
    /// TLS, or it is not known (the kernel's client).
    pub tls: Option<String>,
}

impl ConnectionFacts {
    /// Connections of all clients.
    pub fn count(&self) -> u32 {
        self.clients.max(1).saturating_mul(self.nconnect.max(1))
    }
}

impl RpcRecording {
    /// The RPCs of a phase.
    pub fn phase(&self, name: Phase) -> Option<&RpcPhase> {
        self.phases.iter().find(|phase| phase.phase == name)
    }
}

impl RpcPhase {
    /// Calls of this kind; `None` when there were none.
    pub fn row(&self, operation: &str) -> Option<&RpcRow> {
        self.rows.iter().find(|row| row.operation == operation)
    }

    /// Calls of all kinds together, without a name.
    pub fn total(&self) -> RpcRow {
        let mut total = RpcRow::default();
        self.rows.iter().for_each(|row| total.add(row.counters));
        total
    }
}

impl RpcCounters {
    /// What was counted since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            ops: self.ops - earlier.ops,
            transmissions: self.transmissions - earlier.transmissions,
            timeouts: self.timeouts - earlier.timeouts,
            bytes_sent: self.bytes_sent - earlier.bytes_sent,
            bytes_received: self.bytes_received - earlier.bytes_received,
            queue_ns: self.queue_ns - earlier.queue_ns,
            rtt_ns: self.rtt_ns - earlier.rtt_ns,
            execute_ns: self.execute_ns - earlier.execute_ns,
            errors: self.errors - earlier.errors,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.ops += other.ops;
        self.transmissions += other.transmissions;
        self.timeouts += other.timeouts;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.queue_ns += other.queue_ns;
        self.rtt_ns += other.rtt_ns;
        self.execute_ns += other.execute_ns;
        self.errors += other.errors;
    }
}
