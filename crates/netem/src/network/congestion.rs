//! The congestion control of TCP connections over a network, and the limit of its window.
//!
//! Both are attributes of the route between the namespaces (`congctl` and `cwnd lock` of ip-route(8)), which both ends of a
//! connection take from it. The setting of a whole namespace (`net.ipv4.tcp_congestion_control`) would refuse what the host does
//! not allow every user, `cubic` where `bbr` is the default for example; and the host's own is never touched.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::namespace::{Namespace, NamespaceError, RouteMetrics};
use crate::wire::{INTERFACE, NETWORK_BITS};

/// Of the kernel (`TCP_CA_NAME_MAX`), with the end.
const LONGEST_NAME: usize = 16;

/// Why TCP cannot have a congestion control.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// The kernel has none of this name, or it could be none's.
    #[error("the congestion control `{name}` is not available on this host; available: {available}")]
    Unavailable {
        name: String,
        /// What the kernel has, as it says it.
        available: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot set the congestion control `{name}`: {source}")]
    Refused { name: String, source: NamespaceError },
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// Whether a congestion control could have this name: up to 15 letters, digits and signs, without spaces.
pub fn is_congestion_control(name: &str) -> bool {
    (1..LONGEST_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Gives connections over the network that begin or end at this address these attributes, from now on.
pub(super) fn control(
    namespace: &Namespace,
    address: Ipv4Addr,
    metrics: RouteMetrics<'_>,
) -> Result<(), CongestionError> {
    let name = metrics.congestion.unwrap_or("the host's default");
    if metrics.congestion.is_some_and(|name| !is_congestion_control(name)) {
        return Err(unavailable(namespace, name)?);
    }
    let interfaces = namespace.interfaces()?;
    match interfaces.set_route(INTERFACE, address, NETWORK_BITS, metrics) {
        Ok(()) => Ok(()),
        // That is how the kernel says that it does not know the name.
        Err(NamespaceError::Interface { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => {
            Err(unavailable(namespace, name)?)
        }
        Err(source) => Err(CongestionError::Refused { name: name.to_owned(), source }),
    }
}

/// Has both ends of later connections between these namespaces have the window of their route: the kernel takes it from what it
/// remembers of the other address, and it begins to remember at the end of a connection.
pub(super) fn acquaint(server: &Namespace, address: IpAddr, client: &Namespace) -> io::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let listener = server.run(|| TcpListener::bind((address, 0))).map_err(io::Error::other)??;
    let address: SocketAddr = listener.local_addr()?;
    let connect = || TcpStream::connect_timeout(&address, PATIENCE);
    let client = client.run(connect).map_err(io::Error::other)??;
    let (server, _) = listener.accept()?;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    for [mut from, mut to] in [[&client, &server], [&server, &client]] {
        from.write_all(&[0])?;
        from.shutdown(Shutdown::Write)?;
        to.read_to_end(&mut Vec::new())?;
    }
    let started = Instant::now();
    // An end that is over has no peer.
    while [&client, &server].iter().any(|stream| stream.peer_addr().is_ok()) {
        if started.elapsed() > PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "a connection did not end"));
        }
        thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

fn unavailable(namespace: &Namespace, name: &str) -> Result<CongestionError, NamespaceError> {
    const LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list: io::Result<String> = namespace.run(|| std::fs::read_to_string(LIST))?;
    let available = match list {
        Ok(list) => list.split_ascii_whitespace().collect::<Vec<_>>().join(", "),
        Err(error) => format!("not known ({LIST}: {error})"),
    };
    Ok(CongestionError::Unavailable { name: name.to_owned(), available })
}
