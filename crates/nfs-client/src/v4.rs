//! NFS version 4: minor versions 0 (RFC 7530), 1 (RFC 8881) and 2 (RFC 7862).
//!
//! Every operation is one COMPOUND, composed as the Linux client composes it and counted under the name that Linux
//! counts it under. What has to be recovered is recovered here: slots and sessions, client ids and leases, open
//! files, locks and delegations. One recovery runs at a time; operations wait for it and then go on.
//!
//! An operation that changes names and whose session is lost while it is under way has an unknown outcome: it fails
//! with [`NfsError::StateLost`], and is never silently repeated.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v3::PROGRAM as NFS_PROGRAM;
use benchmaster_nfs_proto::v4::{Bitmap4, Stateid4};
use benchmaster_rpc_tls::ClientTls;

use crate::counters::Counters;
use crate::delay::DelayPolicy;
use crate::error::NfsError;
use crate::ops;
use crate::reactor::Reactor;
use crate::rpc::{CallbackListener, ClientGss, Rpc, RpcOptions, RpcTls, Transport};
use crate::types::{Handle, Limits};

mod attrs;
mod back;
mod close;
mod compound;
mod delegation;
mod directory;
mod establish;
mod extended;
mod io_ops;
mod lease;
mod lock;
mod names;
mod need;
mod open;
mod protocol;
mod recover;
mod request;
mod slots;
mod state;
mod trunk;

pub use self::delegation::{Delegation, DelegationKind, RecallHook};
pub(crate) use self::delegation::{Surrender, SurrenderHook};
pub use self::state::File;

use self::delegation::Delegations;
use self::recover::Recovery;
use self::slots::Slots;
use self::state::{Files, Owners};
use self::trunk::ServerIdentity;

/// Room in a message for everything but the data of a READ or WRITE.
pub(crate) const ROOM: u32 = 4096;
/// READ and WRITE asked for where nothing else is said.
const LARGEST_IO: u32 = 4 << 20;

/// How to mount an export of a version 4 server.
#[derive(Debug, Clone)]
pub struct Connect {
    /// Where the server listens (port 2049 as a rule).
    pub address: SocketAddr,
    /// More addresses of the same server, whose connections belong to the same session (session trunking, RFC 8881
    /// §2.10.5). Minor version 1 and later.
    pub others: Vec<SocketAddr>,
    /// Path of the export; looked up from the root, name by name.
    pub export: Vec<u8>,
    /// Minor version: 0, 1 or 2.
    pub minor: u32,
    /// Number of TCP connections to each address.
    pub nconnect: u32,
    /// Whether TCP holds small segments back until earlier ones are acknowledged (Nagle's algorithm).
    pub nagle: bool,
    /// Session slots to ask for.
    pub slots: u32,
    /// Largest READ; 0: what the server allows.
    pub rsize: u32,
    /// Largest WRITE; 0: what the server allows.
    pub wsize: u32,
    /// How long a reply is waited for before the connection is given up and the request sent again.
    pub timeo: Duration,
    /// Number of retransmissions before a call fails.
    pub retrans: u32,
    /// AUTH_SYS credential ([`crate::rpc::credential`]); empty for AUTH_NONE.
    pub credential: Vec<u8>,
    /// Identity of this client: unique among the server's clients, the same after a restart.
    pub identity: Vec<u8>,
    /// Instance of this client: another one for each start.
    pub verifier: [u8; 8],
    /// Whether delegations are wanted. If not they are refused (4.1) or given back at once.
    pub delegations: bool,
    /// Whether GETATTR is appended to the COMPOUND of LOCK, and FREE_STATEID (4.1 and later) to that of LOCKU.
    pub append_to_locks: bool,
    /// Pauses where the server asks for patience.
    pub delay: DelayPolicy,
    /// Part of the lease after which it is renewed when nothing else did.
    pub lease_fraction: f64,
    /// TLS. In version 4.0 there are no callbacks then, and so no delegations: they would come over another connection, in
    /// the clear.
    pub tls: Option<ClientTls>,
    /// Kerberos. In version 4.0 there are no callbacks then, and so no delegations: the server would need a ticket for the
    /// client.
    pub gss: Option<ClientGss>,
}

impl Connect {
    /// With the Linux client's defaults.
    pub fn new(address: SocketAddr, export: &str, minor: u32, identity: &str, verifier: [u8; 8]) -> Self {
        Self {
            address,
            others: Vec::new(),
            export: export.as_bytes().to_vec(),
            minor,
            nconnect: 1,
            nagle: false,
            slots: 64,
            rsize: 0,
            wsize: 0,
            timeo: Duration::from_secs(60),
            retrans: 2,
            credential: crate::rpc::credential("benchmaster", 0, 0, &[]),
            identity: identity.as_bytes().to_vec(),
            verifier,
            delegations: false,
            append_to_locks: false,
            delay: DelayPolicy::default(),
            lease_fraction: 2.0 / 3.0,
            tls: None,
            gss: None,
        }
    }
}

/// A mounted export of a version 4 server. Clones are the same one.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

pub(crate) struct Inner {
    reactor: Reactor,
    counters: Rc<Counters>,
    rpc: Rpc,
    options: Connect,
    minor: u32,
    /// Connections take turns.
    turn: Cell<usize>,
    slots: Slots,
    client: Cell<u64>,
    /// Who the server says that it is (4.1 and later).
    server: RefCell<ServerIdentity>,
    root: Cell<Handle>,
    limits: Cell<Limits>,
    /// Attributes that an exclusive create may set.
    exclusive: Cell<Bitmap4>,
    lease: Cell<Duration>,
    /// When the lease was renewed last.
    renewed: Cell<Instant>,
    /// When the last request was sent that certainly renewed it: from then on it lasts at least.
    leased: Cell<Instant>,
    recovery: Recovery,
    owners: Owners,
    files: Files,
    delegations: Delegations,
    back: back::Channel,
    listener: RefCell<Option<CallbackListener>>,
    /// The client is being closed: nothing is recovered any more.
    closing: Cell<bool>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.options.address)
            .field("minor", &self.minor)
            .finish_non_exhaustive()
    }
}

/// Why a mount failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No connection to the server could be made.
    #[error("cannot connect to {address}: {source}")]
    Connection {
        /// Address of the server.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The minor version does not exist.
    #[error("there is no NFS version 4.{0}; minor versions are 0, 1 and 2")]
    Minor(u32),
    /// The callback service of version 4.0 cannot listen.
    #[error("cannot listen for callbacks: {0}")]
    Callbacks(io::Error),
    /// An address that was given for the server is not one.
    #[error("{address} cannot be used beside {beside}: {reason}")]
    Trunk {
        /// The address.
        address: SocketAddr,
        /// The server's first address.
        beside: SocketAddr,
        /// What is in the way.
        reason: NfsError,
    },
    /// The server does not take us for a client.
    #[error("the server did not grant a session or client id: {0}")]
    Client(NfsError),
    /// The export cannot be found or read.
    #[error("cannot mount {export}: {reason}")]
    Export {
        /// Exported path.
        export: String,
        /// Cause.
        reason: NfsError,
    },
}

impl Client {
    /// Connects, introduces the client, and finds the export.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub async fn connect(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        options: &Connect,
    ) -> Result<Self, ConnectError> {
        if options.minor > 2 {
            return Err(ConnectError::Minor(options.minor));
        }
        let largest = if options.rsize == 0 { LARGEST_IO } else { options.rsize };
        let rpc = RpcOptions {
            address: options.address,
            others: options.others.clone(),
            transport: Transport::Tcp,
            nagle: options.nagle,
            connections: options.nconnect,
            timeout: options.timeo,
            retransmissions: options.retrans,
            resend_on_live_connection: false,
            max_message: (largest + ROOM).max(1 << 20) as usize,
            credential: options.credential.clone(),
            tls: options.tls.clone().map(|tls| RpcTls { tls, program: NFS_PROGRAM, version: 4 }),
            gss: options.gss.clone().map(|gss| gss.of(NFS_PROGRAM, 4, ops::v4::NULL)),
        };
        let address = options.address;
        let rpc = Rpc::connect_once(reactor, counters, rpc)
            .await
            .map_err(|source| ConnectError::Connection { address, source })?;
        let limits = Limits { max_read: 0, max_write: 0, time_delta_ns: 1, lease_seconds: 90 };
        let inner = Rc::new(Inner {
            reactor: reactor.clone(),
            counters: counters.clone(),
            rpc,
            minor: options.minor,
            turn: Cell::new(0),
            slots: Slots::default(),
            client: Cell::new(0),
            server: RefCell::default(),
            root: Cell::new(Handle::default()),
            limits: Cell::new(limits),
            exclusive: Cell::new(Bitmap4::EMPTY),
            lease: Cell::new(Duration::from_secs(90)),
            renewed: Cell::new(reactor.now()),
            leased: Cell::new(reactor.now()),
            recovery: Recovery::default(),
            owners: Owners::new(options.minor),
            files: Files::default(),
            delegations: Delegations::default(),
            back: back::Channel::default(),
            listener: RefCell::new(None),
            closing: Cell::new(false),
            options: options.clone(),
        });
        back::serve(&inner).map_err(ConnectError::Callbacks)?;
        let client = Self(inner);
        let connected = client.0.establish().await;
        if connected.is_err() {
            client.0.end();
        }
        connected.map(|()| client)
    }

    /// Counters of this client.
    pub fn counters(&self) -> &Rc<Counters> {
        &self.0.counters
    }

    /// RPC layer with all connections.
    pub fn rpc(&self) -> &Rpc {
        &self.0.rpc
    }

    /// Slots of the session that the server granted, and how many of them may be used now. (0, 0) in version 4.0.
    pub fn slots(&self) -> (usize, usize) {
        self.0.slots.size()
    }
}

impl Inner {
    /// Ends connections and background tasks, whatever state is left.
    fn end(&self) {
        self.closing.set(true);
        self.rpc.close();
        self.listener.borrow_mut().take();
        self.slots.end();
    }

    fn has_sessions(&self) -> bool {
        self.minor > 0
    }

    /// A stateid as READ, WRITE and SETATTR send it: in version 4.1 it stands for the latest of its kind, so that
    /// operations under way at the same time do not outdate each other (RFC 8881 §8.2.2).
    fn for_data(&self, stateid: Stateid4) -> Stateid4 {
        if self.has_sessions() { Stateid4 { seqid: 0, ..stateid } } else { stateid }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Background tasks hold only weak references.
        if Rc::strong_count(&self.0) == 1 {
            self.0.end();
        }
    }
}
