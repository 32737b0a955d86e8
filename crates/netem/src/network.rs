//! An emulated network between one server and some clients, by the best means that this host has.
//!
//! ```no_run
//! use std::time::Duration;
//! use benchmaster_netem::link::Link;
//! use benchmaster_netem::network::{Network, NetworkConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let network = Network::start(NetworkConfig::new(2, Link::of_delay(Duration::from_millis(5))))?;
//! let mut server = std::process::Command::new("my-server");
//! network.server().apply(&mut server)?;
//! server.arg(network.server_address().to_string()).spawn()?;
//! network.client(0).run(|| { /* clients connect from here */ })?;
//! println!("The network is emulated by {}", network.note());
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::interface::Interface;
use crate::link::{Link, LinkError, MTU, check_mtu};
use crate::namespace::{Namespace, NamespaceError, RouteMetrics, capabilities};
use crate::toeplitz::HashKey;
use crate::wire::{Interfaces, Report, Wire, WireConfig, WireError, client_address, server_address};

mod congestion;
mod netem;

pub use congestion::{CongestionError, is_congestion_control};
pub use netem::{CommandError, Netem, Trouble};

/// How a network is emulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// The kernel's `netem` queueing discipline between veth devices.
    Netem,
    /// The user-space [`wire`](crate::wire) between TAP devices.
    Wire,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Netem => "tc netem",
            Self::Wire => "user-space wire",
        })
    }
}

/// Configuration of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkConfig {
    /// From 1 to [`MOST_CLIENTS`](crate::wire::MOST_CLIENTS).
    pub clients: u32,
    /// The link of every client.
    pub link: Link,
    /// Bit/s of the server's port, in each direction, shared by all clients.
    pub server_bandwidth: Option<u64>,
    /// Transmit queues of all hosts' interfaces, which the wire alone has.
    pub interface: Option<Interface>,
    /// The MTU of all interfaces, in bytes, from [`LEAST_MTU`](crate::link::LEAST_MTU) to
    /// [`MOST_MTU`](crate::link::MOST_MTU).
    pub mtu: u16,
    /// The congestion control of TCP connections over it, by the kernel's name, at both ends. `None`: the host's
    /// default.
    pub congestion: Option<String>,
    /// The largest congestion window of TCP connections over it, in segments, at both ends. `None`: not limited.
    pub cwnd_clamp: Option<u32>,
    /// `None`: netem if this host has it, else the wire.
    pub means: Option<Means>,
    /// Seed of jitter and loss; netem has one only with kernels from 6.7 on, and is given none.
    pub seed: u64,
    /// See [`WireConfig::spin`]; nothing to netem.
    pub spin: Duration,
}

impl NetworkConfig {
    /// This many clients, each with this link.
    pub fn new(clients: u32, link: Link) -> Self {
        let spin = WireConfig::new(1, link).spin;
        Self {
            clients,
            link,
            server_bandwidth: None,
            interface: None,
            mtu: MTU,
            congestion: None,
            cwnd_clamp: None,
            means: None,
            seed: 0,
            spin,
        }
    }
}

/// Why a network could not start or change.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// None of the means can be used here.
    #[error("cannot emulate a network on this host; tc netem: {netem}; user-space wire: {wire}")]
    NoMeans { netem: String, wire: String },
    /// The means asked for cannot be used here.
    #[error("cannot emulate a network with {means} on this host: {reason}")]
    Unavailable { means: Means, reason: String },
    /// There is no such link.
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A command that sets up netem failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Namespaces or interfaces could not be made.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// TCP cannot have the congestion control asked for.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// Only netem doubles and reorders frames.
    #[error("a network by the user-space wire cannot be disturbed; use tc netem")]
    NotDisturbed,
    /// The network was set up, but nothing comes through.
    #[error("the emulated network does not carry packets: {0}")]
    Silent(#[source] io::Error),
}

#[derive(Debug)]
enum Emulation {
    Netem(Netem),
    Wire(Wire),
}

/// A running network; dropping it ends it.
#[derive(Debug)]
pub struct Network {
    emulation: Emulation,
    link: Link,
    clients: u32,
    mtu: u16,
    congestion: Option<String>,
    cwnd_clamp: Option<u32>,
    base: Duration,
    /// Means that were not chosen, and why.
    others: Vec<(Means, String)>,
}

impl Network {
    /// Makes the namespaces, connects them, and measures the round trip without the link's settings.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn start(config: NetworkConfig) -> Result<Self, NetworkError> {
        config.link.check()?;
        check_mtu(config.mtu)?;
        config.interface.as_ref().map_or(Ok(()), Interface::check)?;
        let (means, others) = choose(config.means, config.interface.is_some())?;
        let open = Link::default();
        let emulation = match means {
            Means::Wire => Emulation::Wire(Wire::start(WireConfig {
                interface: config.interface,
                mtu: config.mtu,
                seed: config.seed,
                spin: config.spin,
                ..WireConfig::new(config.clients, open)
            })?),
            Means::Netem => Emulation::Netem(Netem::start(config.clients, config.mtu)?),
        };
        let mut network = Self {
            emulation,
            link: open,
            clients: config.clients,
            mtu: config.mtu,
            congestion: config.congestion,
            cwnd_clamp: config.cwnd_clamp,
            base: Duration::ZERO,
            others,
        };
        network.control_congestion()?;
        network.base = round_trip(&network).map_err(NetworkError::Silent)?;
        match &mut network.emulation {
            Emulation::Wire(wire) => wire.set_server_bandwidth(config.server_bandwidth)?,
            Emulation::Netem(netem) => netem.set_server_bandwidth(config.server_bandwidth, &config.link)?,
        }
        network.set(config.link)?;
        network.clear()?;
        Ok(network)
    }

    pub fn server(&self) -> &Namespace {
        match &self.emulation {
            Emulation::Netem(netem) => netem.server(),
            Emulation::Wire(wire) => wire.server(),
        }
    }

    /// Where clients reach the server.
    pub fn server_address(&self) -> IpAddr {
        server_address().into()
    }

    /// The namespace of a client, counted from 0.
    ///
    /// # Panics
    /// When there are no more than `client`.
    pub fn client(&self, client: u32) -> &Namespace {
        match &self.emulation {
            Emulation::Netem(netem) => &netem.clients()[client as usize],
            Emulation::Wire(wire) => &wire.clients()[client as usize],
        }
    }

    /// The address of a client, counted from 0.
    pub fn client_address(&self, client: u32) -> IpAddr {
        client_address(client).into()
    }

    /// How many clients there are.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// The link of every client.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The MTU of all interfaces, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The congestion control of TCP connections over it; `None`: the host's default.
    pub fn congestion(&self) -> Option<&str> {
        self.congestion.as_deref()
    }

    /// The largest congestion window of TCP connections over it, in segments; `None`: not limited.
    pub fn cwnd_clamp(&self) -> Option<u32> {
        self.cwnd_clamp
    }

    /// Has connections of all namespaces over the network controlled as asked for.
    fn control_congestion(&self) -> Result<(), NetworkError> {
        let metrics = RouteMetrics { congestion: self.congestion(), cwnd_clamp: self.cwnd_clamp };
        if metrics.congestion.is_none() && metrics.cwnd_clamp.is_none() {
            return Ok(());
        }
        congestion::control(self.server(), server_address(), metrics)?;
        for client in 0..self.clients {
            congestion::control(self.client(client), client_address(client), metrics)?;
            if self.cwnd_clamp.is_some() {
                congestion::acquaint(self.server(), self.server_address(), self.client(client))
                    .map_err(NetworkError::Silent)?;
            }
        }
        Ok(())
    }

    /// Changes the links of all clients.
    ///
    /// # Errors
    /// [`NetworkError::Link`], or when the means fails.
    pub fn set(&mut self, link: Link) -> Result<(), NetworkError> {
        link.check()?;
        match &mut self.emulation {
            Emulation::Wire(wire) => (0..self.clients).try_for_each(|client| wire.set(client, link))?,
            Emulation::Netem(netem) => netem.set(&link)?,
        }
        self.link = link;
        Ok(())
    }

    /// Puts trouble on the link of one client, counted from 0, until it is called again or all links are set.
    ///
    /// # Errors
    /// [`NetworkError::NotDisturbed`] of a wire; or when netem fails.
    pub fn disturb(&mut self, client: u32, trouble: Trouble) -> Result<(), NetworkError> {
        match &mut self.emulation {
            Emulation::Netem(netem) => Ok(netem.disturb(client, &self.link, trouble)?),
            Emulation::Wire(_) => Err(NetworkError::NotDisturbed),
        }
    }

    /// Hashes all flows to transmit queues with this key from now on. Without transmit queues nothing changes.
    pub fn set_hash_key(&self, key: HashKey) {
        if let Emulation::Wire(wire) = &self.emulation {
            wire.set_key(key);
        }
    }

    /// For those who look at transmit queues while it runs; `None` with netem.
    pub fn interfaces(&self) -> Option<Interfaces> {
        match &self.emulation {
            Emulation::Wire(wire) => Some(wire.interfaces()),
            Emulation::Netem(_) => None,
        }
    }

    pub fn means(&self) -> Means {
        match self.emulation {
            Emulation::Netem(_) => Means::Netem,
            Emulation::Wire(_) => Means::Wire,
        }
    }

    /// The median round trip of a small UDP packet between the first client and the server before the link's settings
    /// were put on, measured when the network started: what the emulation and this host take by themselves. Round
    /// trips are that long and twice the delay.
    pub fn base_rtt(&self) -> Duration {
        self.base
    }

    /// By what the network is emulated, and what results over it are good for: ends a sentence that begins with "emulated by".
    pub fn note(&self) -> String {
        let mut note = match self.means() {
            Means::Netem => "the kernel (tc netem) between namespaces of this host.",
            Means::Wire => "a user-space wire between namespaces of this host.",
        }
        .to_owned();
        note += " TCP is the kernel's own, so that latency and throughput follow delay, bandwidth and loss.";
        note += &format!(
            " Round trips take {:.1} µs longer than twice the delay: those of the emulation itself.",
            self.base.as_nanos() as f64 / 1e3
        );
        for (means, reason) in &self.others {
            note += &format!(" Not by {means}: {}.", reason.trim_end_matches('.'));
        }
        note
    }

    /// What it carried since it started or counts were cleared.
    ///
    /// # Errors
    /// When counters cannot be read.
    pub fn achieved(&self) -> Result<Report, NetworkError> {
        Ok(match &self.emulation {
            Emulation::Wire(wire) => wire.achieved()?,
            Emulation::Netem(netem) => netem.achieved()?,
        })
    }

    /// Resets all counts, before a run.
    ///
    /// # Errors
    /// When counters cannot be read.
    pub fn clear(&mut self) -> Result<(), NetworkError> {
        match &mut self.emulation {
            Emulation::Wire(wire) => wire.clear()?,
            Emulation::Netem(netem) => netem.clear()?,
        }
        Ok(())
    }
}

/// The means, and why others are not used.
fn choose(asked: Option<Means>, has_queues: bool) -> Result<(Means, Vec<(Means, String)>), NetworkError> {
    const QUEUES: &str = "transmit queues are emulated by the user-space wire only";
    let found = capabilities();
    let direct = |result: Result<(), String>| match crate::namespace::privilege() {
        crate::namespace::Privilege::UserNamespace if result.is_ok() => {
            Err("this process is not in a user namespace of its own; enter one first".to_owned())
        }
        _ => result,
    };
    let netem = if has_queues { Err(QUEUES.to_owned()) } else { direct(found.netem) };
    let wire = direct(found.wire);
    match (asked, netem, wire) {
        (None | Some(Means::Netem), Ok(()), _) => Ok((Means::Netem, Vec::new())),
        (None, Err(reason), Ok(())) => Ok((Means::Wire, vec![(Means::Netem, reason)])),
        (Some(Means::Wire), _, Ok(())) => Ok((Means::Wire, Vec::new())),
        (None, Err(netem), Err(wire)) => Err(NetworkError::NoMeans { netem, wire }),
        (Some(means @ Means::Netem), Err(reason), _) | (Some(means @ Means::Wire), _, Err(reason)) => {
            Err(NetworkError::Unavailable { means, reason })
        }
    }
}

/// The median of some round trips between the first client and the server.
fn round_trip(network: &Network) -> io::Result<Duration> {
    const WARM_UP: usize = 20;
    const COUNT: usize = 200;
    const PATIENCE: Duration = Duration::from_secs(2);
    let socket = |namespace: &Namespace, address: IpAddr| {
        let socket = namespace.run(|| UdpSocket::bind((address, 0))).map_err(io::Error::other)??;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok::<_, io::Error>(socket)
    };
    let server = socket(network.server(), network.server_address())?;
    let client = socket(network.client(0), Ipv4Addr::UNSPECIFIED.into())?;
    let address: SocketAddr = server.local_addr()?;
    thread::scope(|scope| {
        let echo = move || {
            let mut buffer = [0; 64];
            for _ in 0..WARM_UP + COUNT {
                let (length, from) = server.recv_from(&mut buffer)?;
                server.send_to(&buffer[..length], from)?;
            }
            Ok::<_, io::Error>(())
        };
        let echo = thread::Builder::new().name("echo".into()).spawn_scoped(scope, echo)?;
        let mut took = Vec::with_capacity(COUNT);
        for round in 0..WARM_UP + COUNT {
            let sent = Instant::now();
            client.send_to(&[0; 32], address)?;
            client.recv_from(&mut [0; 64])?;
            if round >= WARM_UP {
                took.push(sent.elapsed());
            }
        }
        echo.join().unwrap_or_else(|_| Err(io::Error::other("the echo ended")))?;
        took.sort_unstable();
        Ok(took[took.len() / 2])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_stored_by_name() {
        assert_eq!(serde_json::to_string(&Means::Wire).unwrap(), "\"wire\"");
        assert_eq!(serde_json::from_str::<Means>("\"netem\"").unwrap(), Means::Netem);
    }
}
