//! A user-space wire: a thread moves Ethernet frames between TAP devices of client and server namespaces, each as
//! much later as the link of the client says.
//!
//! TCP, its windows, its slow start and its retransmissions are the kernel's own, as over a real network. The network
//! is a star: every client reaches the server, and the server every client; clients do not reach each other.
//! Addresses are those of IPv4, and neighbours are known for good: no ARP travels, so that the first packet takes as
//! long as all others.
//!
//! # Large frames
//! Where a link has no loss, and no bandwidth below [`LARGE_FRAMES_FROM`], the kernel hands over up to 64 KiB of a
//! flow as one frame, as it does to a network card that cuts them (TSO). With loss such a frame would be lost whole,
//! and at a low bandwidth its first byte would wait for its last; frames then have the size of the MTU.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

mod arena;
mod engine;
mod flow;
mod frame;
mod precedence;
mod queues;
mod report;
mod switch;
pub(crate) mod tap;

pub use report::{ClientReport, DirectionReport, Lateness, Report};
pub use tap::make_lasting as make_lasting_tap;

use crate::interface::{Interface, InterfaceReport};
use crate::link::{Link, LinkError, MTU, check_bandwidth, check_mtu};
use crate::namespace::{MacAddress, Namespace, NamespaceError};
use crate::toeplitz::HashKey;
use engine::{Engine, State};
use tap::Tap;

/// Most clients of a wire or network.
pub const MOST_CLIENTS: u32 = 1_000;
/// From this bandwidth on, in bit/s, large frames are used: the largest occupies the link for 0.21 ms then, or less.
pub const LARGE_FRAMES_FROM: u64 = 2_500_000_000;
/// The name of the interface in every namespace.
pub const INTERFACE: &str = "bm0";
/// Bits of the network's addresses that all share.
pub(crate) const NETWORK_BITS: u8 = 16;
/// Packets that wait for the thread to read them; as many as a window of 64 MiB has.
const QUEUE: u32 = 50_000;

/// Configuration of a wire.
#[derive(Debug, Clone, PartialEq)]
pub struct WireConfig {
    /// The links of the clients; as many clients as links, at least one, at most [`MOST_CLIENTS`].
    pub links: Vec<Link>,
    /// Bit/s of the server's own port, in each direction, shared by all clients.
    pub server_bandwidth: Option<u64>,
    /// Transmit queues of all hosts' interfaces, in front of a client's bandwidth to the server, and of the server's
    /// bandwidth to the clients. `None`: one FIFO each, of which nothing is reported.
    pub interface: Option<Interface>,
    /// The MTU of all interfaces, in bytes, from [`LEAST_MTU`](crate::link::LEAST_MTU) to
    /// [`MOST_MTU`](crate::link::MOST_MTU).
    pub mtu: u16,
    /// Seed of jitter and loss: the same for the same frames in the same order.
    pub seed: u64,
    /// Longest time for which the thread does not block before a frame is due, since the kernel wakes it late. How
    /// long it really is follows from how late it was woken so far. Zero: it always blocks.
    pub spin: Duration,
    /// Where the server's end is.
    pub server: End,
    /// Where the clients' ends are; those not listed are [`End::Own`].
    pub clients: Vec<End>,
}

/// Where an end of a wire is.
#[derive(Debug, Clone, Default)]
pub enum End {
    /// An interface of the name [`INTERFACE`], with the end's address, in a namespace made for it.
    #[default]
    Own,
    /// An interface of this name, without an address, in this namespace: for a bridge that leads on to a machine,
    /// which has the end's address and Ethernet address.
    Port {
        namespace: Arc<Namespace>,
        /// At most 15 bytes.
        name: String,
    },
}

impl PartialEq for End {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own, Self::Own) => true,
            (Self::Port { namespace, name }, Self::Port { namespace: other, name: of_other }) => {
                Arc::ptr_eq(namespace, other) && name == of_other
            }
            _ => false,
        }
    }
}

impl WireConfig {
    /// As many clients with the same link.
    pub fn new(clients: u32, link: Link) -> Self {
        Self {
            links: vec![link; clients as usize],
            server_bandwidth: None,
            interface: None,
            mtu: MTU,
            seed: 0,
            spin: Duration::from_micros(100),
            server: End::Own,
            clients: Vec::new(),
        }
    }
}

/// Why a wire could not start or change.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// None, or more than [`MOST_CLIENTS`].
    #[error("{0} clients: the number must be from 1 to {MOST_CLIENTS}")]
    Clients(usize),
    /// There is no such link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Namespaces or interfaces could not be made.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// There is no device for it, or the process may not use it.
    #[error("cannot create a TAP device with {device}: {0}", device = tap::DEVICE)]
    Tap(#[source] io::Error),
    /// The kernel has no descriptor, memory or thread left.
    #[error("cannot start the wire: {0}")]
    Resources(#[from] io::Error),
}

/// A running wire; dropping it stops it, and the devices are gone.
#[derive(Debug)]
pub struct Wire {
    server: Arc<Namespace>,
    clients: Vec<Arc<Namespace>>,
    /// Names of the interfaces: the server's, the clients'.
    names: Vec<String>,
    state: Arc<Mutex<State>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    /// What the devices had dropped when counts were cleared: the server's, the clients'.
    dropped_before: Vec<u64>,
}

impl Wire {
    /// Makes the namespaces and connects them.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn start(config: WireConfig) -> Result<Self, WireError> {
        let count = config.links.len();
        if !(1..=MOST_CLIENTS as usize).contains(&count) {
            return Err(WireError::Clients(count));
        }
        config.links.iter().try_for_each(Link::check)?;
        check_bandwidth(config.server_bandwidth)?;
        check_mtu(config.mtu)?;
        config.interface.as_ref().map_or(Ok(()), Interface::check)?;
        let (server, server_name, port) =
            make_end(&config.server, server_address(), server_mac(), config.mtu)?;
        let mut clients = Vec::with_capacity(count);
        let mut taps = Vec::with_capacity(count + 1);
        let mut names = vec![server_name];
        let neighbours = server.interfaces()?;
        for client in 0..count as u32 {
            let (address, mac) = (client_address(client), client_mac(client));
            let place = config.clients.get(client as usize).unwrap_or(&End::Own);
            let (namespace, name, tap) = make_end(place, address, mac, config.mtu)?;
            if *place == End::Own {
                namespace.interfaces()?.add_neighbour(&name, server_address(), server_mac())?;
            }
            if config.server == End::Own {
                neighbours.add_neighbour(INTERFACE, address, mac)?;
            }
            clients.push(namespace);
            names.push(name);
            taps.push(tap);
        }
        taps.push(port);
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let state = Arc::new(Mutex::new(State::new(taps, &config).map_err(WireError::Tap)?));
        let engine = Engine::new(Arc::clone(&state), Arc::clone(&wake), config.spin)?;
        let thread = std::thread::Builder::new().name("wire".into()).spawn(move || engine.run())?;
        let dropped_before = vec![0; count + 1];
        Ok(Self { server, clients, names, state, wake, thread: Some(thread), dropped_before })
    }

    /// The namespace of the server's end.
    pub fn server(&self) -> &Arc<Namespace> {
        &self.server
    }

    /// The namespaces of the clients' ends.
    pub fn clients(&self) -> &[Arc<Namespace>] {
        &self.clients
    }

    /// Changes the link of a client, counted from 0, for frames from now on. What is under way keeps its time, and is
    /// never overtaken.
    ///
    /// # Errors
    /// [`WireError::Link`], [`WireError::Clients`] when there is no such client.
    pub fn set(&self, client: u32, link: Link) -> Result<(), WireError> {
        link.check()?;
        let client = client as usize;
        if client >= self.clients.len() {
            return Err(WireError::Clients(client + 1));
        }
        self.state.lock().set(client, link).map_err(WireError::Tap)?;
        self.wake();
        Ok(())
    }

    /// Changes the bandwidth of the server's port, in bit/s.
    ///
    /// # Errors
    /// [`WireError::Link`]
    pub fn set_server_bandwidth(&self, bandwidth: Option<u64>) -> Result<(), WireError> {
        check_bandwidth(bandwidth)?;
        self.state.lock().set_server_bandwidth(bandwidth).map_err(WireError::Tap)?;
        self.wake();
        Ok(())
    }

    /// Hashes all flows with this key from now on. Without transmit queues nothing changes.
    pub fn set_key(&self, key: HashKey) {
        self.state.lock().set_key(key);
        self.wake();
    }

    /// For those who look at transmit queues while it runs.
    pub fn interfaces(&self) -> Interfaces {
        Interfaces(Arc::clone(&self.state))
    }

    /// What it carried since it started or counts were cleared.
    ///
    /// # Errors
    /// When the counters of the devices cannot be read.
    pub fn achieved(&self) -> Result<Report, WireError> {
        let mut report = self.state.lock().report();
        let dropped = self.dropped()?.into_iter().zip(&self.dropped_before);
        let mut dropped = dropped.map(|(now, before)| now.saturating_sub(*before));
        if let (Some(first), Some(dropped)) = (report.clients.first_mut(), dropped.next()) {
            // Their destination is unknown.
            first.to_client.overruns += dropped;
        }
        for (client, dropped) in report.clients.iter_mut().zip(dropped) {
            client.to_server.overruns += dropped;
        }
        Ok(report)
    }

    /// Resets all counts.
    ///
    /// # Errors
    /// When the counters of the devices cannot be read.
    pub fn clear(&mut self) -> Result<(), WireError> {
        self.dropped_before = self.dropped()?;
        self.state.lock().clear();
        Ok(())
    }

    /// Frames that the devices dropped because they were not read in time: the server's, the clients'.
    fn dropped(&self) -> Result<Vec<u64>, WireError> {
        let ends = [&self.server].into_iter().chain(&self.clients).zip(&self.names);
        ends.map(|(namespace, name)| dropped(namespace, name)).collect()
    }

    fn wake(&self) {
        // The counter is never full.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }
}

/// A look at the transmit queues of a wire.
#[derive(Debug, Clone)]
pub struct Interfaces(Arc<Mutex<State>>);

impl Interfaces {
    /// What they did since the wire started or counts were cleared, and what waits now: of hosts that sent something, the
    /// clients, then the server.
    pub fn read(&self) -> Vec<InterfaceReport> {
        self.0.lock().interfaces()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.state.lock().stop();
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It does not panic; there would be nothing left to stop if it had.
            let _ = thread.join();
        }
    }
}

/// An end of the wire: its namespace, the name of its interface, and the interface.
fn make_end(
    place: &End,
    address: Ipv4Addr,
    mac: MacAddress,
    mtu: u16,
) -> Result<(Arc<Namespace>, String, Tap), WireError> {
    let (namespace, name) = match place {
        End::Own => (Arc::new(Namespace::new()?), INTERFACE),
        End::Port { namespace, name } => (Arc::clone(namespace), name.as_str()),
    };
    let tap = namespace.run(|| {
        silence_ipv6();
        Tap::new(name)
    })?;
    let tap = tap.map_err(WireError::Tap)?;
    let interfaces = namespace.interfaces()?;
    interfaces.set_queue_length(name, QUEUE)?;
    interfaces.set_mtu(name, mtu)?;
    // A port's Ethernet address is its own, random: a bridge would keep frames to the machine's for itself.
    if *place == End::Own {
        interfaces.set_mac(name, mac)?;
        interfaces.set_address(name, address, NETWORK_BITS)?;
    }
    interfaces.up(name)?;
    Ok((namespace, name.to_owned(), tap))
}

/// Without it each namespace greets its neighbours when it begins. Where it cannot be, a few frames more travel.
pub(crate) fn silence_ipv6() {
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
}

/// Frames that the device of a namespace dropped.
fn dropped(namespace: &Namespace, name: &str) -> Result<u64, WireError> {
    let text = namespace.run(|| std::fs::read_to_string(Path::new("/proc/thread-self/net/dev")))??;
    Ok(dropped_in(&text, name))
}

/// The column of dropped packets to be sent, in /proc/net/dev.
fn dropped_in(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let columns = lines.find(|(interface, _)| interface.trim() == name).map(|(_, columns)| columns);
    columns.and_then(|columns| columns.split_ascii_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

/// The server's address: 10.77.0.1.
pub fn server_address() -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, 1)
}

/// The address of a client, counted from 0: 10.77.1.1 is the first.
pub fn client_address(client: u32) -> Ipv4Addr {
    let [high, low] = ((client / 250 + 1) as u8, (client % 250 + 1) as u8).into();
    Ipv4Addr::new(10, 77, high, low)
}

/// The server's Ethernet address. It is locally administered, as all of these.
pub fn server_mac() -> MacAddress {
    MacAddress([0x02, 0x62, 0x6d, 0, 0, 0])
}

/// The Ethernet address of a client, counted from 0.
pub fn client_mac(client: u32) -> MacAddress {
    let [_, _, high, low] = (client + 1).to_be_bytes();
    MacAddress([0x02, 0x62, 0x6d, 0, high, low])
}

/// Which client has the Ethernet address.
pub(crate) fn client_of(mac: MacAddress) -> Option<usize> {
    match mac.0 {
        [0x02, 0x62, 0x6d, 0, high, low] => usize::from(u16::from_be_bytes([high, low])).checked_sub(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_lead_back() {
        let mut seen = std::collections::HashSet::from([server_address()]);
        for client in 0..MOST_CLIENTS {
            assert!(seen.insert(client_address(client)));
            assert_eq!(client_of(client_mac(client)), Some(client as usize));
        }
        assert_eq!(client_address(0), Ipv4Addr::new(10, 77, 1, 1));
        assert_eq!(client_of(server_mac()), None);
        assert_eq!(client_of(MacAddress([0xff; 6])), None);
    }

    #[test]
    fn dropped_packets_are_found_among_interfaces() {
        let text = "Inter-|   Receive  | Transmit\n face |bytes packets |bytes\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n   \
                    bm0: 1 2 3 4 5 6 7 8 9 10 11 77 13 14 15 16\n";
        assert_eq!(dropped_in(text, "bm0"), 77);
        assert_eq!(dropped_in(text, "lo"), 12);
        assert_eq!(dropped_in(text, "eth0"), 0);
        assert_eq!(dropped_in("bm0: 1 2", "bm0"), 0);
    }
}
