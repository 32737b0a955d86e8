//! The networks of a lab: a namespace with the TAP devices of all machines, in which bridges connect them.
//!
//! One bridge connects the control interfaces with the host's address. Data interfaces are on another bridge, or, where the
//! network is emulated, each on a bridge of its own with an end of the wire; those have no addresses, and so answer no requests.

use std::fs;
use std::sync::Arc;

use benchmaster_netem::link::Link;
use benchmaster_netem::namespace::{Interfaces, Namespace};
use benchmaster_netem::network::{Network, NetworkConfig};
use benchmaster_netem::relay::{Relay, RelayConfig};
use benchmaster_netem::wire::{End, Report, Wire, WireConfig, make_lasting_tap};
use parking_lot::Mutex;

use super::Failure;
use crate::config::{LabConfig, ServerKind};
use crate::network::{
    NETWORK_BITS, client_address, client_mac, control_address, control_host, control_host_mac, control_mac,
    server_address, server_mac,
};

const CONTROL: &str = "control";
const DATA: &str = "data";

/// Ports of a server elsewhere that clients of the lab reach: NFS, the portmapper, and where Linux servers usually have MOUNT.
const RELAYED: [u16; 3] = [2049, 111, 20048];

/// How data go between clients and server.
#[derive(Debug)]
enum Between {
    /// Over a bridge.
    Bridge,
    /// Over a wire.
    Wire(Mutex<Wire>),
    /// There are no machines: clients are namespaces.
    Namespaces(Mutex<Network>),
}

/// The networks of a lab. They are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Networks {
    /// With the TAP devices.
    machines: Arc<Namespace>,
    between: Between,
    /// Of a server elsewhere.
    relays: Vec<Relay>,
}

/// The TAP device of a machine's data interface; 0 is the server.
pub(super) fn data_tap(machine: u32) -> String {
    format!("d{machine}")
}

/// The TAP device of a machine's control interface.
pub(super) fn control_tap(machine: u32) -> String {
    format!("k{machine}")
}

fn failed(error: impl std::error::Error) -> Failure {
    Failure::Other(format!("the lab's network: {error}"))
}

impl Networks {
    /// Networks for machines.
    pub(super) fn for_machines(config: &LabConfig) -> Result<Self, Failure> {
        let machines = Arc::new(Namespace::new().map_err(failed)?);
        let interfaces = machines.interfaces().map_err(failed)?;
        let numbers: Vec<u32> = (u32::from(!config.server.is_machine())..=config.clients).collect();
        let taps = || {
            settings();
            numbers.iter().try_for_each(|machine| {
                make_lasting_tap(&data_tap(*machine))?;
                make_lasting_tap(&control_tap(*machine))
            })
        };
        let made: std::io::Result<()> = machines.run(taps).map_err(failed)?;
        made.map_err(Failure::other("cannot make TAP devices by /dev/net/tun (as root: modprobe tun)"))?;
        control(&interfaces, &numbers).map_err(failed)?;
        let between = if config.emulated {
            Between::Wire(Mutex::new(wire(&machines, &interfaces, config).map_err(failed)?))
        } else {
            bridge(&interfaces, config).map_err(failed)?;
            Between::Bridge
        };
        let mut networks = Self { machines, between, relays: Vec::new() };
        networks.relays = networks.relays_to(&config.server)?;
        Ok(networks)
    }

    /// Networks between processes of this host.
    pub(super) fn for_processes(config: &LabConfig) -> Result<Self, Failure> {
        let network = Network::start(NetworkConfig::new(config.clients, Link::default())).map_err(failed)?;
        let machines = Arc::new(network.server().try_clone().map_err(failed)?);
        let mut networks =
            Self { machines, between: Between::Namespaces(Mutex::new(network)), relays: Vec::new() };
        networks.relays = networks.relays_to(&config.server)?;
        Ok(networks)
    }

    /// Connections to a server elsewhere: a lab's network leads nowhere else.
    fn relays_to(&self, server: &ServerKind) -> Result<Vec<Relay>, Failure> {
        use std::net::ToSocketAddrs as _;
        let ServerKind::Address(host) = server else { return Ok(Vec::new()) };
        let namespace = Arc::new(self.server()?);
        let start = |port: &u16| {
            let unknown =
                |why: String| Failure::Other(format!("the server `{host}` cannot be reached: {why}"));
            let mut addresses = (host.trim_matches(['[', ']']), *port)
                .to_socket_addrs()
                .map_err(|error| unknown(error.to_string()))?;
            let target = addresses.next().ok_or_else(|| unknown("the name has no address".into()))?;
            let config = RelayConfig {
                listen: (server_address(), *port).into(),
                listen_in: Some(Arc::clone(&namespace)),
                ..RelayConfig::new(target, std::time::Duration::ZERO)
            };
            Relay::start(config).map_err(failed)
        };
        RELAYED.iter().map(start).collect()
    }

    /// Where machines are started, and reached by their control addresses.
    pub(super) fn machines(&self) -> &Arc<Namespace> {
        &self.machines
    }

    /// Where the server's address is, or, if the server is a machine, where machines are.
    pub(super) fn server(&self) -> Result<Namespace, Failure> {
        let namespace = match &self.between {
            Between::Wire(wire) => wire.lock().server().try_clone(),
            Between::Bridge | Between::Namespaces(_) => self.machines.try_clone(),
        };
        namespace.map_err(failed)
    }

    /// The namespace of a client that is no machine, counted from 1.
    pub(super) fn client(&self, client: u32) -> Option<Namespace> {
        match &self.between {
            Between::Namespaces(network) => network.lock().client(client.checked_sub(1)?).try_clone().ok(),
            Between::Bridge | Between::Wire(_) => None,
        }
    }

    /// Changes the links of all clients.
    pub(super) fn set_link(&self, link: Link) -> Result<(), Failure> {
        match &self.between {
            Between::Bridge => Err(Failure::NotEmulated),
            Between::Namespaces(network) => network.lock().set(link).map_err(failed),
            Between::Wire(wire) => {
                let wire = wire.lock();
                (0..wire.clients().len() as u32).try_for_each(|client| wire.set(client, link)).map_err(failed)
            }
        }
    }

    /// What was carried since counts were cleared.
    pub(super) fn report(&self) -> Result<Report, Failure> {
        match &self.between {
            Between::Bridge => Err(Failure::NotEmulated),
            Between::Namespaces(network) => network.lock().achieved().map_err(failed),
            Between::Wire(wire) => wire.lock().achieved().map_err(failed),
        }
    }

    pub(super) fn clear(&self) -> Result<(), Failure> {
        match &self.between {
            Between::Bridge => Err(Failure::NotEmulated),
            Between::Namespaces(network) => network.lock().clear().map_err(failed),
            Between::Wire(wire) => wire.lock().clear().map_err(failed),
        }
    }
}

/// For the namespace of the calling thread. What cannot be set is not in this kernel.
fn settings() {
    for (path, value) in [
        ("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"),
        ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"),
        // Each bridge answers for its own address alone.
        ("/proc/sys/net/ipv4/conf/all/arp_ignore", "1"),
        ("/proc/sys/net/ipv4/ip_forward", "0"),
    ] {
        let _ = fs::write(path, value);
    }
}

type Made<T> = Result<T, benchmaster_netem::namespace::NamespaceError>;

fn control(interfaces: &Interfaces, machines: &[u32]) -> Made<()> {
    interfaces.add_bridge(CONTROL)?;
    interfaces.set_mac(CONTROL, control_host_mac())?;
    interfaces.set_address(CONTROL, control_host(), NETWORK_BITS)?;
    interfaces.up(CONTROL)?;
    for machine in machines {
        connect(interfaces, CONTROL, &control_tap(*machine))?;
        interfaces.add_neighbour(CONTROL, control_address(*machine), control_mac(*machine))?;
    }
    Ok(())
}

fn connect(interfaces: &Interfaces, bridge: &str, port: &str) -> Made<()> {
    interfaces.add_port(bridge, port)?;
    interfaces.up(port)
}

/// All data interfaces on one bridge; it has the server's address where no machine has it.
fn bridge(interfaces: &Interfaces, config: &LabConfig) -> Made<()> {
    interfaces.add_bridge(DATA)?;
    let is_machine = config.server.is_machine();
    if !is_machine {
        interfaces.set_mac(DATA, server_mac())?;
        interfaces.set_address(DATA, server_address(), NETWORK_BITS)?;
    }
    interfaces.up(DATA)?;
    for machine in u32::from(!is_machine)..=config.clients {
        connect(interfaces, DATA, &data_tap(machine))?;
        if !is_machine {
            interfaces.add_neighbour(DATA, client_address(machine), client_mac(machine))?;
        }
    }
    Ok(())
}

/// A wire whose ends are bridged to the machines' data interfaces.
fn wire(
    machines: &Arc<Namespace>,
    interfaces: &Interfaces,
    config: &LabConfig,
) -> Result<Wire, benchmaster_netem::wire::WireError> {
    let name = |machine: u32| format!("w{machine}");
    let end = |machine: u32| End::Port { namespace: Arc::clone(machines), name: name(machine) };
    let is_machine = config.server.is_machine();
    let wire = Wire::start(WireConfig {
        server: if is_machine { end(0) } else { End::Own },
        clients: (1..=config.clients).map(end).collect(),
        ..WireConfig::new(config.clients, Link::default())
    })?;
    for machine in u32::from(!is_machine)..=config.clients {
        let bridge = format!("{DATA}{machine}");
        interfaces.add_bridge(&bridge)?;
        interfaces.up(&bridge)?;
        connect(interfaces, &bridge, &name(machine))?;
        connect(interfaces, &bridge, &data_tap(machine))?;
    }
    Ok(wire)
}
