//! Where the services of a server are: one server's address, the connections to its NFS port, and the ports of MOUNT
//! and the lock manager, which only its portmapper may know (RFC 1833).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_proto::nlm::PROGRAM as NLM;
use benchmaster_nfs_proto::portmap::{
    self, IPPROTO_TCP, IPPROTO_UDP, Mapping, PmapProc, Rpcb, RpcbProc, UniversalAddress,
};
use benchmaster_nfs_proto::v2 as nfs2;
use benchmaster_nfs_proto::v3::PROGRAM as NFS;
use benchmaster_nfs_proto::xdr::Opaque;

use crate::connect::Connect;
use crate::counters::Counters;
use crate::error::NfsError;
use crate::ops::{self, Op};
use crate::options::NFS_PORT;
use crate::reactor::Reactor;
use crate::rpc::{self, Call, Rpc, RpcError, RpcGss, RpcOptions, RpcTls, Transport};

/// The portmapper and the service of unmounting are not waited for longer: their answers can be done without.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// Longest reply of services other than NFS.
const SMALL: usize = 64 << 10;

/// Why a server could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no address to connect to.
    #[error("the server has no address")]
    NoAddress,
    /// No connection to the server could be made.
    #[error("cannot connect to {address}: {error}")]
    Unreachable {
        /// The server's address and the port of the service.
        address: SocketAddr,
        /// Cause.
        error: io::Error,
    },
    /// The server refused.
    #[error("{0}")]
    Nfs(#[from] NfsError),
}

impl From<RpcError> for ConnectError {
    fn from(error: RpcError) -> Self {
        Self::Nfs(error.into())
    }
}

#[derive(Debug)]
pub(crate) struct Site {
    /// Connections to the NFS port.
    pub(crate) nfs: Rpc,
    /// Whether that port was given, and not found.
    port_given: bool,
}

impl Site {
    /// Connects to the NFS port, of the first address that takes the connection.
    pub(crate) async fn connect(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        wanted: &Connect,
        version: u32,
    ) -> Result<Self, ConnectError> {
        let mut failure = ConnectError::NoAddress;
        for &address in &wanted.addresses {
            match Self::connect_to(reactor, counters, wanted, version, address).await {
                Ok(site) => return Ok(site),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn connect_to(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        wanted: &Connect,
        version: u32,
        ip: IpAddr,
    ) -> Result<Self, ConnectError> {
        let gids = &wanted.gids;
        let mut options = RpcOptions {
            address: SocketAddr::new(ip, wanted.port.unwrap_or(NFS_PORT)),
            others: Vec::new(),
            transport: wanted.transport,
            nagle: wanted.nagle,
            connections: wanted.connections,
            timeout: wanted.timeout,
            retransmissions: wanted.retransmissions,
            resend_on_live_connection: true,
            max_message: wanted.largest_message(),
            credential: rpc::credential(&wanted.machine, wanted.uid, wanted.gid, gids),
            tls: wanted.tls.clone().map(|tls| RpcTls { tls, program: NFS, version }),
            gss: wanted.gss.clone().map(|gss| gss.of(NFS, version, null_of(version))),
        };
        if wanted.port.is_none()
            && wanted.tls.is_none()
            && let Ok(Some(port)) = ask(reactor, counters, &options, NFS, version).await
        {
            options.address.set_port(port);
        }
        let nfs = connected(reactor, counters, options).await?;
        Ok(Self { nfs, port_given: wanted.port.is_some() })
    }

    /// Calls to another of its services, at `port` if that is given.
    ///
    /// Otherwise, where the port of NFS was given, that one is tried first, as there may be another server's portmapper
    /// on the machine, and then the portmapper asked; where it was not, the portmapper is asked first. With TLS the portmapper
    /// is not asked at all, as that would be a call in the clear: the service is at the port of NFS, or its port is given.
    pub(crate) async fn service(
        &self,
        program: u32,
        version: u32,
        null: Op,
        port: Option<u16>,
    ) -> Result<Rpc, ConnectError> {
        let tls = self.nfs.options().tls.as_ref();
        let protects = self.nfs.options().gss.as_ref().filter(|_| program == NLM);
        let gss = protects.map(|gss| RpcGss { program, version, null, ..gss.clone() });
        if let Some(port) = port {
            let tls = tls.map(|tls| RpcTls { program, version, ..tls.clone() });
            return self.at(port, self.nfs.options().timeout, tls, gss).await;
        }
        let (reactor, counters) = (self.nfs.reactor(), self.nfs.counters());
        let elsewhere = ask(reactor, counters, self.nfs.options(), program, version);
        if !self.port_given && tls.is_none() {
            return match elsewhere.await {
                Ok(Some(port)) => self.at(port, self.nfs.options().timeout, None, gss).await,
                Ok(None) | Err(_) => Ok(self.nfs.clone()),
            };
        }
        match self.nfs.call(Call::new(null, program, version, 0).sys(), |_, _| {}, |_| Ok(())).await {
            Ok(()) => Ok(self.nfs.clone()),
            Err(error @ (RpcError::ProgramUnavailable(_) | RpcError::VersionMismatch { .. }))
                if tls.is_none() =>
            {
                match elsewhere.await {
                    Ok(Some(port)) => self.at(port, self.nfs.options().timeout, None, gss).await,
                    Ok(None) | Err(_) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Calls to the service at this address for something that can be done without: it is not tried for long.
    pub(crate) async fn briefly(&self, address: SocketAddr) -> Result<Rpc, ConnectError> {
        if address == self.nfs.options().address {
            Ok(self.nfs.clone())
        } else {
            let options = self.nfs.options();
            self.at(address.port(), options.timeout.min(PATIENCE), options.tls.clone(), None).await
        }
    }

    async fn at(
        &self,
        port: u16,
        timeout: Duration,
        tls: Option<RpcTls>,
        gss: Option<RpcGss>,
    ) -> Result<Rpc, ConnectError> {
        let options = self.nfs.options();
        if port == options.address.port() {
            return Ok(self.nfs.clone());
        }
        let address = SocketAddr::new(options.address.ip(), port);
        let options =
            RpcOptions { address, connections: 1, timeout, max_message: SMALL, tls, gss, ..options.clone() };
        connected(self.nfs.reactor(), self.nfs.counters(), options).await
    }
}

/// What NULL calls of a version of NFS are counted under.
fn null_of(version: u32) -> Op {
    if version == nfs2::VERSION { ops::v2::NULL } else { ops::v3::NULL }
}

async fn connected(
    reactor: &Reactor,
    counters: &Rc<Counters>,
    options: RpcOptions,
) -> Result<Rpc, ConnectError> {
    let address = options.address;
    let connected = Rpc::connect_once(reactor, counters, options).await;
    connected.map_err(|error| ConnectError::Unreachable { address, error })
}

/// Asks the portmapper of a server for the port of a program; `None` when it does not know it.
async fn ask(
    reactor: &Reactor,
    counters: &Rc<Counters>,
    of: &RpcOptions,
    program: u32,
    version: u32,
) -> Result<Option<u16>, ConnectError> {
    let options = RpcOptions {
        address: SocketAddr::new(of.address.ip(), portmap::PORT),
        transport: Transport::Tcp,
        connections: 1,
        timeout: of.timeout.min(PATIENCE),
        retransmissions: 0,
        max_message: SMALL,
        gss: None,
        ..of.clone()
    };
    let rpc = connected(reactor, counters, options).await?;
    let port = port_of(&rpc, of.transport, program, version).await;
    rpc.close();
    Ok(port?)
}

/// The port of a program, from the portmapper that `rpc` calls.
async fn port_of(rpc: &Rpc, transport: Transport, prog: u32, vers: u32) -> Result<Option<u16>, NfsError> {
    let prot = match transport {
        Transport::Tcp => IPPROTO_TCP,
        Transport::Udp => IPPROTO_UDP,
    };
    let address = rpc.options().address;
    if address.is_ipv4() {
        let call =
            Call::new(ops::portmap::GETPORT, portmap::PROGRAM, portmap::VERSION_2, PmapProc::GETPORT.0);
        let mapping = Mapping { prog, vers, prot, port: 0 };
        let port = rpc.call(call, |e, _| e.put(&mapping), |d| d.get::<u32>()).await?;
        let port = u16::try_from(port);
        return Ok(Some(port.map_err(|_| NfsError::Nonsense("a port above 65535"))?).filter(|port| *port > 0));
    }
    let call = Call::new(ops::portmap::GETADDR, portmap::PROGRAM, portmap::VERSION_4, RpcbProc::GETADDR.0);
    let netid = UniversalAddress(address).netid(prot).unwrap_or_default();
    let wanted = Rpcb { prog, vers, netid: netid.into(), addr: Opaque(&[]), owner: Opaque(&[]) };
    let found = rpc
        .call(
            call,
            |e, _| e.put(&wanted),
            |d| {
                let text: Opaque<'_> = d.get()?;
                Ok((!text.0.is_empty()).then(|| UniversalAddress::from_bytes(text.0)))
            },
        )
        .await?;
    let found = found.transpose().map_err(|_| NfsError::Nonsense("no universal address"))?;
    Ok(found.map(|UniversalAddress(address)| address.port()).filter(|port| *port > 0))
}
