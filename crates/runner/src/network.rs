//! By what means the network of a treatment is emulated, and what is known of it.

use std::sync::Arc;
use std::time::Duration;

use benchmaster_netem::interface::Interface;
use benchmaster_netem::link::{Link, MTU};
use benchmaster_netem::namespace::{Namespace, NamespaceError, Privilege, enter_user_namespace, privilege};
use benchmaster_netem::network::{self, Network, NetworkConfig, NetworkError};
use benchmaster_netem::toeplitz::HashKey;
use benchmaster_netem::wire::{DirectionReport, Report};
use benchmaster_record::results::{Emulator, NetworkAchieved, NetworkRecord};
use benchmaster_telemetry::sampling::Sampler;

use benchmaster_study::plan::Plan;
use benchmaster_study::settings::{Launcher, Means, NetworkSettings, Settings, TargetKind};

use super::transmit_queues::TransmitQueues;

/// What a delay by the relay is good for.
const RELAY_NOTE: &str = "a TCP relay that acknowledges locally: right for the latency of requests and replies only, not \
                          for what TCP's windows would do to the throughput of a long network";

/// What a treatment asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing is emulated.
    Plain,
    /// A relay of TCP connections.
    Relay,
    /// Namespaces with a network between them; `fallback` to a relay where there can be none.
    Namespaces {
        /// By this, or by the best.
        means: Option<network::Means>,
        /// Whether a relay will do.
        fallback: bool,
    },
}

/// What a treatment asks for.
pub(crate) fn wanted(settings: &Settings) -> Wanted {
    let network = &settings.network;
    let here = matches!(settings.target.kind(), TargetKind::Embedded(_)) && settings.launcher().is_here();
    // Between the machines of a lab it is the lab's.
    if settings.lab.is_some() {
        return Wanted::Plain;
    }
    let plain = network.is_plain();
    match network.means {
        Means::Netem if here => Wanted::Namespaces { means: Some(network::Means::Netem), fallback: false },
        Means::Wire if here => Wanted::Namespaces { means: Some(network::Means::Wire), fallback: false },
        Means::Auto if here && (!plain || settings.clients.namespaces) => Wanted::Namespaces {
            means: None,
            fallback: network.beyond_delay().is_none() && !settings.clients.namespaces,
        },
        _ if plain => Wanted::Plain,
        _ => Wanted::Relay,
    }
}

/// Puts this process where it may make network namespaces, if a treatment of the plan needs them and it is not root's. To be
/// called while the process has one thread. Gives why that is not possible; studies for which a relay will do run nevertheless.
///
/// # Errors
/// When user namespaces are refused.
pub fn prepare_process(plan: &Plan) -> Result<(), NamespaceError> {
    let wants = |settings: &Settings| matches!(wanted(settings), Wanted::Namespaces { .. });
    let needed = plan.all_treatments().any(|treatment| wants(&treatment.settings));
    if needed && matches!(privilege(), Privilege::UserNamespace) { enter_user_namespace() } else { Ok(()) }
}

/// By what a treatment's network would be emulated on this host, in words; `None` when nothing is.
pub fn emulation_here(settings: &Settings) -> Option<String> {
    let (asked, fallback) = match wanted(settings) {
        Wanted::Plain => return None,
        Wanted::Relay => {
            return Some("a relay of TCP connections (right for the latency of requests only)".into());
        }
        Wanted::Namespaces { means, fallback } => (means, fallback),
    };
    let found = benchmaster_netem::namespace::capabilities();
    let netem = || match &found.netem {
        Ok(()) => Ok("tc netem between namespaces"),
        Err(reason) => Err(format!("not by tc netem: {reason}")),
    };
    let wire = || match &found.wire {
        Ok(()) => Ok("a user-space wire between namespaces"),
        Err(reason) => Err(format!("not by a wire: {reason}")),
    };
    let chosen = match asked {
        Some(network::Means::Netem) => netem(),
        Some(network::Means::Wire) => wire(),
        None if settings.network.of_queues().is_some() => wire(),
        None => netem().or_else(|no| wire().map_err(|reason| format!("{no}; {reason}"))),
    };
    Some(match chosen {
        Ok(means) => means.to_owned(),
        Err(reason) if fallback => {
            format!("a relay of TCP connections (right for the latency of requests only; {reason})")
        }
        Err(reason) => format!("cannot be emulated on this host: {reason}"),
    })
}

/// A network between namespaces that runs.
#[derive(Debug)]
pub(super) struct Wired {
    key: Key,
    network: Network,
    /// Namespaces of the clients, in their order.
    pub(super) clients: Vec<Arc<Namespace>>,
    /// With which the present run hashes flows to transmit queues, if there are any.
    hash_key: Option<HashKey>,
    /// What was carried while workloads of the present run were measured.
    carried: Option<NetworkAchieved>,
}

/// Networks that differ in nothing but their links are one. One per MTU and congestion control: what the kernel remembers of
/// connections to an address (their `ssthresh`, for example) would go over from one congestion control to the next.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    clients: u32,
    server_bandwidth: Option<u64>,
    /// With the key of seed 0: that of a run is set when it begins.
    interface: Option<Interface>,
    mtu: u16,
    congestion: Option<String>,
    cwnd_clamp: Option<u32>,
    means: Option<network::Means>,
}

/// Networks between namespaces.
#[derive(Debug, Default)]
pub(super) struct Networks(Vec<Wired>);

impl Networks {
    /// The network of a treatment, started if there is none yet, with the treatment's links.
    pub(super) fn get(
        &mut self,
        settings: &Settings,
        means: Option<network::Means>,
    ) -> Result<usize, NetworkError> {
        // Clients in one process are in one namespace.
        let clients = if settings.launcher() == Launcher::Threads { 1 } else { settings.clients() };
        let server_bandwidth = settings.network.server_bandwidth.map(|bandwidth| bits(bandwidth.0));
        // Reading the study has made sure that it is one.
        let mtu = settings.network.mtu.map_or(MTU, |mtu| u16::try_from(mtu).unwrap_or(u16::MAX));
        let congestion = settings.network.congestion.clone();
        let cwnd_clamp = settings.network.cwnd_clamp;
        let key = HashKey::of_seed(0);
        let interface = settings.network.interface(key).map(|interface| Interface { key, ..interface });
        let key = Key { clients, server_bandwidth, interface, mtu, congestion, cwnd_clamp, means };
        let link = link(&settings.network);
        let index = match self.0.iter().position(|wired| wired.key == key) {
            Some(index) => index,
            None => {
                let config = NetworkConfig {
                    server_bandwidth,
                    interface,
                    mtu,
                    congestion: key.congestion.clone(),
                    cwnd_clamp,
                    means,
                    ..NetworkConfig::new(clients, link)
                };
                let network = Network::start(config)?;
                let namespaces = (0..clients).map(|client| {
                    let namespace = network.client(client).run(Namespace::current)??;
                    Ok::<_, NamespaceError>(Arc::new(namespace))
                });
                let clients = namespaces.collect::<Result<_, _>>()?;
                self.0.push(Wired { key, network, clients, hash_key: None, carried: None });
                self.0.len() - 1
            }
        };
        let wired = &mut self.0[index];
        if *wired.network.link() != link {
            wired.network.set(link)?;
        }
        Ok(index)
    }

    pub(super) fn wired(&mut self, index: usize) -> &mut Wired {
        &mut self.0[index]
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Wired {
    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// What is stored of it.
    pub(super) fn record(&self, settings: &NetworkSettings) -> NetworkRecord {
        let base = u64::try_from(self.network.base_rtt().as_nanos()).unwrap_or(u64::MAX);
        let emulator = match self.network.means() {
            network::Means::Netem => Emulator::Netem,
            network::Means::Wire => Emulator::Wire,
        };
        NetworkRecord { base_rtt_ns: Some(base), note: self.network.note(), ..record(settings, emulator) }
    }

    /// A run begins, in which flows are hashed to transmit queues with the key of the settings, or that of this seed.
    pub(super) fn begin_run(&mut self, settings: &NetworkSettings, seed: u64) {
        self.carried = None;
        self.hash_key = settings.interface(HashKey::of_seed(seed)).map(|interface| interface.key);
    }

    /// What samples its hosts' transmit queues, if they have any.
    pub(super) fn sampler(&self) -> Option<Box<dyn Sampler>> {
        self.key.interface?;
        Some(Box::new(TransmitQueues(self.network.interfaces()?)))
    }

    /// A workload is about to be measured: until the first re-hash it is a whole period from now.
    pub(super) fn begin(&mut self) -> Result<(), NetworkError> {
        if let Some(key) = self.hash_key {
            self.network.set_hash_key(key);
        }
        self.network.clear()
    }

    /// A workload has been measured.
    pub(super) fn end(&mut self) -> Result<(), NetworkError> {
        let carried = achieved_of(&self.network.achieved()?);
        self.carried = Some(match self.carried.take() {
            None => carried,
            Some(before) => merged(&before, &carried),
        });
        Ok(())
    }

    /// What was carried while workloads of this run were measured.
    pub(super) fn carried(&self) -> Option<NetworkAchieved> {
        self.carried.clone()
    }
}

/// What a wire carried, over all clients and both directions.
pub(super) fn achieved_of(report: &Report) -> NetworkAchieved {
    let sum =
        |count: fn(&DirectionReport) -> u64| -> Option<u64> { Some(report.directions().map(count).sum()) };
    let lateness = report.lateness();
    NetworkAchieved {
        packets: sum(|direction| direction.frames),
        lost: sum(|direction| direction.lost),
        overflowed: sum(|direction| direction.queue_drops + direction.overruns),
        lateness_p99_ns: lateness.map(|lateness| nanos(lateness.p99)),
        lateness_max_ns: lateness.map(|lateness| nanos(lateness.max)),
    }
}

pub(super) fn merged(a: &NetworkAchieved, b: &NetworkAchieved) -> NetworkAchieved {
    let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
    let most = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.max(b));
    NetworkAchieved {
        packets: sum(a.packets, b.packets),
        lost: sum(a.lost, b.lost),
        overflowed: sum(a.overflowed, b.overflowed),
        lateness_p99_ns: most(a.lateness_p99_ns, b.lateness_p99_ns),
        lateness_max_ns: most(a.lateness_max_ns, b.lateness_max_ns),
    }
}

/// The network that the study asks for, by this emulator.
pub(super) fn record(settings: &NetworkSettings, emulator: Emulator) -> NetworkRecord {
    NetworkRecord {
        emulator,
        delay_ns: settings.delay.nanos(),
        jitter_ns: settings.jitter.nanos(),
        bandwidth: settings.bandwidth.map(|bandwidth| bits(bandwidth.0)),
        loss: settings.loss.0,
        base_rtt_ns: None,
        note: String::new(),
    }
}

/// What is stored of a relay; `instead` says why it is no network between namespaces.
pub(super) fn relay_record(settings: &NetworkSettings, instead: Option<&str>) -> NetworkRecord {
    let note = match instead {
        Some(reason) => format!("{RELAY_NOTE}; {reason}"),
        None => RELAY_NOTE.to_owned(),
    };
    NetworkRecord { note, ..record(settings, Emulator::Relay) }
}

pub(super) fn link(settings: &NetworkSettings) -> Link {
    Link {
        delay: settings.delay.0,
        jitter: settings.jitter.0,
        bandwidth: settings.bandwidth.map(|bandwidth| bits(bandwidth.0)),
        loss: settings.loss.0,
        queue: settings.queue.map(|queue| queue.0),
    }
}

/// Bit/s of bytes per second.
fn bits(bytes: f64) -> u64 {
    (bytes * 8.0).round() as u64
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
