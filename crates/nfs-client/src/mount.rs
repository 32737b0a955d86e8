//! A mounted export, whatever the version: paths, open files, requests larger than the server takes, data that have to
//! be written again because the server restarted.
//!
//! Paths are bytes relative to the export, with `/` between names. Directories on the way are looked up once and their
//! filehandles kept; the last name goes to the wire every time. A directory whose handle has become stale is looked up
//! once more. Symbolic links are not followed.
//!
//! With [`Cache::Linux`](crate::options::Cache::Linux) names, attributes, access rights and data are kept as the Linux
//! client keeps them, and only what that needs goes to the wire.

mod cached;
mod client;
mod error;
mod extended;
mod file;
mod gate;
mod io;
mod lanes;
mod log;
mod node;
mod paths;
mod remove;
mod tree;

use std::cell::Cell;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;

use benchmaster_rpc_gss::Mechanism;
use benchmaster_rpc_tls::TlsError;

use self::cached::Cache;
use self::client::Protection;
use self::log::Logs;
use self::node::Nodes;
use self::paths::Paths;
use crate::cache::Clock;
use crate::counters::Counters;
use crate::error::NfsError;
use crate::options::{self, MountOptions};
use crate::protocol::{NfsResult, Protocol};
use crate::reactor::Reactor;
use crate::rpc::ClientGss;
use crate::types::Limits;

pub use self::client::{Client, ClientFile};
pub use self::error::MountError;
pub use self::file::{File, OpenFlags};

/// See the [module](self).
#[derive(Debug)]
pub struct Mount(Rc<Core>);

#[derive(Debug)]
struct Core {
    client: Client,
    reactor: Reactor,
    counters: Rc<Counters>,
    options: MountOptions,
    limits: Limits,
    paths: Paths,
    nodes: Nodes,
    logs: Logs,
    cache: Option<Cache>,
    /// Number of the next open file.
    next_owner: Cell<u64>,
}

impl Mount {
    /// Mounts an export. `identity` tells this client from others of the same process: the server keeps open files and
    /// locks under it.
    ///
    /// # Errors
    /// See [`MountError`].
    pub async fn connect(
        reactor: &Reactor,
        options: &MountOptions,
        identity: &str,
    ) -> Result<Self, MountError> {
        Self::connect_by(reactor.clock(), reactor, options, identity).await
    }

    /// The same, with a cache that goes by this clock.
    ///
    /// # Errors
    /// See [`MountError`].
    pub async fn connect_by(
        clock: Clock,
        reactor: &Reactor,
        options: &MountOptions,
        identity: &str,
    ) -> Result<Self, MountError> {
        options.check()?;
        let gss = options.gss().map_err(|error| MountError::kerberos(options, error))?;
        Self::connect_protected(clock, reactor, options, identity, gss).await
    }

    /// The same, with this mechanism of RPCSEC_GSS in the place of Kerberos, where the options have a flavour that needs one.
    ///
    /// # Errors
    /// See [`MountError`].
    pub async fn connect_with(
        mechanism: Arc<dyn Mechanism>,
        reactor: &Reactor,
        options: &MountOptions,
        identity: &str,
    ) -> Result<Self, MountError> {
        options.check()?;
        let gss = options.sec.service().map(|service| ClientGss { mechanism, service });
        Self::connect_protected(reactor.clock(), reactor, options, identity, gss).await
    }

    async fn connect_protected(
        clock: Clock,
        reactor: &Reactor,
        options: &MountOptions,
        identity: &str,
        gss: Option<ClientGss>,
    ) -> Result<Self, MountError> {
        let addresses = resolve(options, &options.host)?;
        let tls = options.tls().map_err(|error| MountError::tls(options, error))?;
        let counters = Rc::new(Counters::new());
        let protection = Protection { tls, gss };
        let client = Client::connect(reactor, &counters, options, &addresses, &protection, identity).await?;
        // Connections cannot do without; this is the proof that the results have.
        if protection.tls.is_some() && counters.tls().is_none() {
            let error = TlsError::Protocol("no session was begun".into());
            return Err(MountError::tls(options, error));
        }
        let limits = client.limits();
        let limits = Limits {
            max_read: limits.max_read.min(options.read_size).max(1),
            max_write: limits.max_write.min(options.write_size).max(1),
            ..limits
        };
        let cached = options.cache == options::Cache::Linux;
        let mount = Self(Rc::new(Core {
            client,
            reactor: reactor.clone(),
            counters,
            limits,
            paths: Paths::default(),
            nodes: Nodes::new(cached),
            logs: Logs::new(options.unstable_limit),
            cache: cached.then(|| Cache::new(clock)),
            next_owner: Cell::new(1),
            options: options.clone(),
        }));
        if cached {
            mount.answer_recalls();
            // Linux asks for the root's attributes when it mounts.
            let root = mount.0.nodes.get(&mount.0.client.root());
            mount.fresh(&root, true).await.map_err(|error| MountError::refused(options, error))?;
        }
        Ok(mount)
    }

    /// What was called and recovered from.
    pub fn counters(&self) -> &Rc<Counters> {
        &self.0.counters
    }

    /// How it was mounted.
    pub fn options(&self) -> &MountOptions {
        &self.0.options
    }

    /// Limits of the server's file system, and those of the options for the size of READ and WRITE.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// The client below, for requests that a mount does not make.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// Ends everything in good order: delegations, open files, session, client id, mount entry.
    ///
    /// # Errors
    /// Those of the requests it takes.
    pub async fn unmount(self) -> NfsResult<()> {
        if let Some(cache) = &self.0.cache {
            // What a recall began is finished, and what the background reads and writes.
            drop(cache.recalls.alone().await);
            cache.flusher.idle().await;
        }
        match Rc::try_unwrap(self.0) {
            Ok(core) => core.client.unmount().await,
            Err(_) => Err(NfsError::Unsupported("the mount is still in use")),
        }
    }
}

/// Addresses of the server, in the order in which to try them.
fn resolve(options: &MountOptions, host: &str) -> Result<Vec<SocketAddr>, MountError> {
    let fail = |error| MountError::Resolve { host: host.to_owned(), error };
    let addresses: Vec<_> = (host, options.nfs_port()).to_socket_addrs().map_err(fail)?.collect();
    if addresses.is_empty() {
        Err(fail(std::io::Error::other("the name has no address")))
    } else {
        Ok(addresses)
    }
}

/// Whether a filehandle that was kept is of no use any more.
fn is_stale(error: &NfsError) -> bool {
    const FHEXPIRED: u32 = 10014;
    error.errno() == libc::ESTALE || matches!(error, NfsError::V4(status) if status.0 == FHEXPIRED)
}
