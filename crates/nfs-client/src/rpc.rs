//! Remote procedure calls (RFC 5531) to one server over one or more connections.
//!
//! A [`Rpc`] keeps its connections up: one that breaks is made again, and what was outstanding on it is sent again
//! with the same transaction number, as the duplicate request caches and sessions of servers want it. A call ends at
//! the latest when its time is over ([`RpcOptions::timeout`] × ([`RpcOptions::retransmissions`] + 1)).
//!
//! Requests of one turn of the [reactor](crate::reactor) leave together in one system call. Replies are decoded where
//! they were received, by the task that called. Data of large READs are received straight into the caller's buffer,
//! and those of large WRITEs sent straight from it: the caller's own task moves them, so that no pointer outlives its
//! borrow.

mod call;
mod connection;
mod gss;
mod incoming;
mod outgoing;
mod pending;
mod server;
mod stream;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthStat, AuthSys, CALL, OpaqueAuth, RPC_VERSION};
use benchmaster_nfs_proto::xdr::{Bulk, Encoder, List, XdrError};

use self::connection::Connection;
use self::gss::Gss;
pub use self::gss::{ClientGss, RpcGss};
use benchmaster_rpc_tls::ClientTls;

use crate::counters::{Counters, Event};
use crate::ops::Op;
use crate::reactor::Reactor;

pub use self::server::CallbackListener;

/// Why a call has no result. None of these says whether the server executed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// No reply in time, or no connection.
    #[error("no reply in time")]
    TimedOut,
    /// The server does not have the program.
    #[error("the server does not serve RPC program {0}")]
    ProgramUnavailable(u32),
    /// It has, but not in this version.
    #[error("the server serves versions {low} to {high} of RPC program {program}, and not {wanted}")]
    VersionMismatch {
        /// RPC program number.
        program: u32,
        /// Program version that was called.
        wanted: u32,
        /// Lowest program version that the server has.
        low: u32,
        /// Highest program version that the server has.
        high: u32,
    },
    /// The server does not have the procedure.
    #[error("the server does not know procedure {procedure} of RPC program {program}")]
    ProcedureUnavailable {
        /// RPC program number.
        program: u32,
        /// Procedure number.
        procedure: u32,
    },
    /// The server could not decode the arguments.
    #[error("the server could not decode the arguments")]
    GarbageArguments,
    /// The server failed, from lack of memory for example.
    #[error("the server failed (SYSTEM_ERR)")]
    SystemError,
    /// The server refuses the credential.
    #[error("the server refuses the credential ({0})")]
    Denied(AuthStat),
    /// The reply is not what the RPC or NFS protocol says.
    #[error("the reply cannot be decoded: {0}")]
    BadReply(XdrError),
    /// The reply's RPC header has values that the RPC protocol does not know.
    #[error("the reply has an unknown RPC status ({0})")]
    UnknownStatus(u32),
    /// The server, which has to be reached over TLS, can be reached no more in that way.
    #[error("the server does not take a TLS connection any more, and no call is sent without it")]
    Insecure,
    /// No context of Kerberos could be made.
    #[error(
        "no Kerberos context with the server could be made: its tickets have expired, or it does not accept them; \
         look at `klist`, and at the logs of the server and the KDC"
    )]
    NoContext,
    /// A reply that should be protected by Kerberos is not.
    #[error("a reply is not protected as it must be: it was changed on the way, or is not from the server")]
    Forged,
    /// The client is being closed.
    #[error("the client is closed")]
    Closed,
}

/// Transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// TCP, with record marks.
    #[default]
    Tcp,
    /// UDP, one message per datagram.
    Udp,
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub struct RpcOptions {
    /// Address on which it listens.
    pub address: SocketAddr,
    /// More addresses of the same server: connections go to all addresses in turn, from `address` on.
    pub others: Vec<SocketAddr>,
    /// Transport protocol.
    pub transport: Transport,
    /// Whether TCP holds small segments back until earlier ones are acknowledged (Nagle's algorithm).
    pub nagle: bool,
    /// Connections to each address; calls take them in turn.
    pub connections: u32,
    /// How long a reply is waited for before the request is sent again.
    pub timeout: Duration,
    /// How often it is sent again for that reason before the call fails.
    pub retransmissions: u32,
    /// Whether requests whose reply does not come are sent again on a connection that is still up. NFSv4 forbids it
    /// (RFC 7530 §3.1.1, RFC 8881 §2.9.2): the connection is then given up first.
    pub resend_on_live_connection: bool,
    /// Largest message accepted, in bytes; a longer one closes the connection.
    pub max_message: usize,
    /// The AUTH_SYS credential of calls, encoded by [`credential`]; empty for AUTH_NONE.
    pub credential: Vec<u8>,
    /// TLS (RFC 9289), without which nothing is sent but the question for it. TCP only.
    pub tls: Option<RpcTls>,
    /// Kerberos; else calls have the AUTH_SYS credential.
    pub gss: Option<RpcGss>,
}

/// How connections are made safe.
#[derive(Debug, Clone)]
pub struct RpcTls {
    /// The client's configuration; its tickets are shared.
    pub tls: ClientTls,
    /// RPC program of the probe: one that the server has on this port.
    pub program: u32,
    /// Its version.
    pub version: u32,
}

/// Encodes an AUTH_SYS credential.
pub fn credential(machine: &str, uid: u32, gid: u32, gids: &[u32]) -> Vec<u8> {
    let mut e = Encoder::new();
    let machine = &machine.as_bytes()[..machine.len().min(255)];
    let gids = List::Items(&gids[..gids.len().min(16)]);
    e.put(&AuthSys { stamp: 0, machine_name: machine.into(), uid, gid, gids });
    e.buffer().to_vec()
}

/// What became of a call's requests. Versions 2 and 3 of NFS need it: a server that restarted does not know any more
/// that it carried a request out, and answers its repetition as if it were new.
#[derive(Debug, Default)]
pub struct History {
    transmissions: Cell<u32>,
    reconnected: Cell<bool>,
}

impl History {
    /// How often the request was sent.
    pub fn transmissions(&self) -> u32 {
        self.transmissions.get()
    }

    /// Whether its connection broke while a reply was waited for.
    pub fn reconnected(&self) -> bool {
        self.reconnected.get()
    }
}

impl RpcOptions {
    /// The address that the connection with this number goes to.
    pub(crate) fn address_of(&self, connection: usize) -> SocketAddr {
        match connection % (1 + self.others.len()) {
            0 => self.address,
            other => self.others[other - 1],
        }
    }
}

/// Program, version and procedure of a call, and how it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// What it is counted under.
    pub op: Op,
    /// RPC program number.
    pub program: u32,
    /// Program version.
    pub version: u32,
    /// Procedure number.
    pub procedure: u32,
    /// Data that belong into the request: the encoder is handed a [`Bulk`] that stands for them.
    pub payload: &'c [u8],
    /// When the wish arose, if something (a session slot) was waited for since; else it is now.
    pub since: Option<Instant>,
    /// The connection to use; else they take turns.
    pub connection: Option<usize>,
    /// Where to note what becomes of the requests.
    pub history: Option<&'c History>,
    /// What the call shows who it is by.
    pub auth: Auth<'c>,
    /// Where to put the body of the reply's verifier.
    pub verifier: Option<&'c RefCell<Vec<u8>>>,
}

/// What a call shows who it is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Auth<'a> {
    /// What the options say.
    #[default]
    Usual,
    /// The AUTH_SYS credential, also where other calls are protected: for services that know nothing else.
    Sys,
    /// This credential and verifier, encoded.
    Written(&'a [u8]),
    /// What the options say; with Kerberos, the server may then forget the context.
    Goodbye,
}

impl<'c> Call<'c> {
    /// A call without payload, made now, on any connection.
    pub fn new(op: Op, program: u32, version: u32, procedure: u32) -> Self {
        Self {
            op,
            program,
            version,
            procedure,
            payload: &[],
            since: None,
            connection: None,
            history: None,
            auth: Auth::Usual,
            verifier: None,
        }
    }

    /// Adds data that is sent after the arguments without being copied.
    pub fn payload(self, payload: &'c [u8]) -> Self {
        Self { payload, ..self }
    }

    /// The wish arose then.
    pub fn since(self, since: Instant) -> Self {
        Self { since: Some(since), ..self }
    }

    /// Sends the call on the connection with this index.
    pub fn on(self, connection: usize) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// Sends the call with the AUTH_SYS credential.
    pub fn sys(self) -> Self {
        Self { auth: Auth::Sys, ..self }
    }

    /// What becomes of the requests is noted there, after what is noted already.
    pub fn history(self, history: &'c History) -> Self {
        Self { history: Some(history), ..self }
    }
}

/// Answers calls of the server (callbacks): is given the number of the connection, and the call with its header; writes
/// the whole reply, header included and without record mark. Nothing written means no answer. It is called while the
/// connection receives: what takes longer than writing the reply, or calls, belongs into a task.
pub type CallHandler = Rc<dyn Fn(usize, &[u8], &mut Encoder)>;

/// Calls to one server. Clones are the same one; the connections close with the last.
#[derive(Clone)]
pub struct Rpc(Rc<Inner>);

pub(crate) struct Inner {
    reactor: Reactor,
    counters: Rc<Counters>,
    options: RpcOptions,
    /// How long a call may take.
    patience: Duration,
    /// See [`auth`].
    auth: Vec<u8>,
    gss: Option<Gss>,
    connections: Vec<Rc<Connection>>,
    turn: Cell<usize>,
    handler: RefCell<Option<CallHandler>>,
}

/// The least time to connect: TCP sends a SYN that was lost again after one second (RFC 6298, section 2).
const LEAST_TO_CONNECT: Duration = Duration::from_secs(3);

impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rpc").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Rpc {
    /// Connects to a server. Returns once the first connection is up; the others follow.
    ///
    /// # Errors
    /// When no connection can be made before [`RpcOptions::timeout`], and 3 s, are over: the last reason.
    pub async fn connect(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        options: RpcOptions,
    ) -> io::Result<Self> {
        let deadline = reactor.now() + options.timeout.max(LEAST_TO_CONNECT);
        let rpc = Self::new(reactor, counters, options);
        let first = &rpc.0.connections[0];
        if !first.up(deadline).await {
            return Err(first.last_error());
        }
        rpc.begin_context(deadline).await?;
        Ok(rpc)
    }

    /// Connects to a server that may not be there: does not try again when the first connection cannot be made.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub async fn connect_once(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        options: RpcOptions,
    ) -> io::Result<Self> {
        let deadline = reactor.now() + options.timeout.max(LEAST_TO_CONNECT);
        let rpc = Self::new(reactor, counters, options);
        let first = &rpc.0.connections[0];
        if !first.tried(deadline).await {
            return Err(first.last_error());
        }
        rpc.begin_context(deadline).await?;
        Ok(rpc)
    }

    fn new(reactor: &Reactor, counters: &Rc<Counters>, options: RpcOptions) -> Self {
        let inner = Rc::new_cyclic(|rpc| Inner {
            reactor: reactor.clone(),
            counters: counters.clone(),
            connections: (0..options.connections.max(1) as usize * (1 + options.others.len()))
                .map(|number| Connection::new(number, reactor, counters, &options, rpc))
                .collect(),
            patience: options.timeout * (options.retransmissions + 1),
            auth: auth(&options.credential),
            gss: options.gss.clone().map(Gss::new),
            options,
            turn: Cell::new(0),
            handler: RefCell::new(None),
        });
        let rpc = Self(inner);
        rpc.0.connections.iter().for_each(|connection| connection.keep_up());
        rpc
    }

    /// The reactor its tasks run on.
    pub fn reactor(&self) -> &Reactor {
        &self.0.reactor
    }

    /// Counters to which calls are added.
    pub fn counters(&self) -> &Rc<Counters> {
        &self.0.counters
    }

    /// Options with which it was connected.
    pub fn options(&self) -> &RpcOptions {
        &self.0.options
    }

    /// The address that a connection goes to.
    pub(crate) fn address(&self, connection: usize) -> SocketAddr {
        self.0.options.address_of(connection)
    }

    /// Whether a connection is up.
    pub(crate) fn is_up(&self, connection: usize) -> bool {
        self.0.connections.get(connection).is_some_and(|connection| connection.is_up())
    }

    /// Waits for the first attempt to make a connection.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(crate) async fn reached(&self, connection: usize) -> io::Result<()> {
        let Some(connection) = self.0.connections.get(connection) else { return Ok(()) };
        let deadline = self.0.reactor.now() + self.0.options.timeout.max(LEAST_TO_CONNECT);
        if connection.tried(deadline).await { Ok(()) } else { Err(connection.last_error()) }
    }

    /// Number of connections, whether up or down.
    pub fn connections(&self) -> usize {
        self.0.connections.len()
    }

    /// Our address on a connection, while it is up.
    pub fn local_address(&self, connection: usize) -> Option<SocketAddr> {
        self.0.connections.get(connection).and_then(|connection| connection.local_address())
    }

    /// How often a connection has been made; changes when it is re-established. 0 while it was never up.
    pub fn generation(&self, connection: usize) -> u64 {
        self.0.connections.get(connection).map_or(0, |connection| connection.generation())
    }

    /// How often connections have been made, all together: while it does not change, no connection broke and was
    /// re-established.
    pub fn generations(&self) -> u64 {
        self.0.connections.iter().map(|connection| connection.generation()).sum()
    }

    /// When something was last received on a connection.
    pub(crate) fn heard(&self, connection: usize) -> Instant {
        let connections = &self.0.connections;
        connections.get(connection).map_or_else(|| self.0.reactor.now(), |connection| connection.heard())
    }

    /// Waits until a connection is up with another generation than `seen`.
    pub async fn renewed(&self, connection: usize, seen: u64) {
        self.0.connections[connection].renewed(seen).await;
    }

    /// Closes a connection, to be re-established; what is outstanding on it will be sent again.
    pub fn reset(&self, connection: usize) {
        if let Some(connection) = self.0.connections.get(connection) {
            connection.reset("given up by the client");
        }
    }

    /// Sets who answers calls that the server makes on our connections.
    pub fn set_handler(&self, handler: CallHandler) {
        *self.0.handler.borrow_mut() = Some(handler);
    }

    async fn begin_context(&self, deadline: Instant) -> io::Result<()> {
        match &self.0.gss {
            Some(gss) => gss.begin(self, deadline).await.inspect_err(|_| self.close()),
            None => Ok(()),
        }
    }

    /// Lets the server forget the context of Kerberos, if there is one. A server that does not answer is not waited for:
    /// contexts end by themselves.
    pub(crate) async fn end_context(&self) {
        let Some(gss) = self.0.gss.as_ref().filter(|gss| gss.has_context()) else { return };
        let RpcGss { null, program, version, .. } = *gss.options();
        let call = Call { auth: Auth::Goodbye, ..Call::new(null, program, version, 0) };
        let until = self.0.reactor.now() + LEAST_TO_CONNECT;
        self.0.reactor.until(until, self.call(call, |_, _| {}, |_| Ok(()))).await;
    }

    /// Closes all connections. Outstanding and later calls end with [`RpcError::Closed`].
    pub fn close(&self) {
        self.0.connections.iter().for_each(|connection| connection.close());
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.0.connections.iter().all(|connection| connection.is_closed())
    }

    /// Bytes given to and taken from the sockets so far, with record marks and retransmissions.
    pub fn wire_bytes(&self) -> (u64, u64) {
        let bytes = self.0.connections.iter().map(|connection| connection.wire_bytes());
        bytes.fold((0, 0), |(sent, received), (s, r)| (sent + s, received + r))
    }
}

/// Puts data of a reply where the caller wants them, as far as they are there.
///
/// Returns how many bytes are still to come (all or none of them).
///
/// # Errors
/// When there are more than `destination` has room for.
pub fn land(data: Bulk<'_>, destination: &mut [u8]) -> Result<usize, XdrError> {
    let len = data.len();
    let limit = destination.len();
    let Some(place) = destination.get_mut(..len) else {
        return Err(XdrError::TooLong { what: "data of a READ", len: len as u32, limit: limit as u32 });
    };
    match data {
        Bulk::Bytes(bytes) => {
            place.copy_from_slice(bytes);
            Ok(0)
        }
        Bulk::Detached(_) => Ok(len),
    }
}

impl Inner {
    fn event(&self, event: Event) {
        self.counters.event(event);
    }

    /// Writes the header of a call.
    fn write_header(&self, e: &mut Encoder, xid: u32, call: &Call<'_>) {
        let words = [xid, CALL, RPC_VERSION, call.program, call.version, call.procedure];
        let mut front = [0; 24];
        for (place, word) in front.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        e.raw(&front);
        match call.auth {
            Auth::Written(auth) => e.raw(auth),
            _ => e.raw(&self.auth),
        }
    }
}

/// Credential and verifier of calls, encoded.
fn auth(credential: &[u8]) -> Vec<u8> {
    let credential = if credential.is_empty() {
        OpaqueAuth::NONE
    } else {
        OpaqueAuth { flavor: AuthFlavor::SYS, body: credential.into() }
    };
    let mut e = Encoder::new();
    e.put(&credential);
    e.put(&OpaqueAuth::NONE);
    e.buffer().to_vec()
}
