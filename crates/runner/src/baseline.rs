//! What the network between clients and server is capable of without NFS, measured once before the first run over it.

use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use benchmaster_netem::namespace::NamespaceError;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_probe::{
    Direction, Latency, NetworkProbe, ProbeConfig, ProbeError, RpcProbe, ServeConfig, Throughput, network,
    rpc_null, serve,
};
use benchmaster_record::results::{BaselineRecord, FlowsBaseline, NetworkRecord, RoundTripBaseline};
use benchmaster_workload::target::{NfsTarget, Target};
use jiff::Timestamp;
use serde::Serialize;

use super::services::Reached;
use super::services::Services;
use benchmaster_study::baseline;
use benchmaster_study::settings::Settings;

/// Baselines of this session.
#[derive(Debug, Default)]
pub(super) struct Baselines {
    taken: BTreeSet<String>,
}

/// Why there is no baseline.
#[derive(Debug, thiserror::Error)]
pub(super) enum BaselineError {
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error("the address of `{host}` is not known: {source}")]
    Address { host: String, source: std::io::Error },
}

/// The whole result, as it is stored.
#[derive(Debug, Default, Serialize)]
struct Probed {
    /// Raw TCP to a far end where the server is.
    network: Option<NetworkProbe>,
    /// The server itself.
    rpc: Option<RpcProbe>,
}

impl Baselines {
    /// The baseline of a target over a network, if it was not taken in this session.
    pub(super) fn take(
        &mut self,
        settings: &Settings,
        reached: &Reached,
        services: &mut Services,
        session: u32,
    ) -> Result<Option<BaselineRecord>, BaselineError> {
        let (Target::Nfs(target), Some(service)) = (&reached.target, &reached.service) else {
            return Ok(None);
        };
        let host = settings.target.place().split('?').next().unwrap_or_default().to_owned();
        // The probes speak TCP. All embedded servers of a network are at the same place.
        let server = host.rsplit_once('/').map_or(host.as_str(), |(server, _)| server);
        let known = format!("{server} {:?} {:?}", reached.network, service.network);
        if target.options.transport == Transport::Udp || !self.taken.insert(known) {
            return Ok(None);
        }
        let time = Timestamp::now();
        let ours = service.server == ServedBy::Embedded && service.network.emulator != Emulator::Relay;
        let probed = match services.wired(reached.network) {
            Some(wired) => {
                let (client, network) = (wired.clients.first().cloned(), wired.network());
                let far_end = SocketAddr::new(network.server_address(), 0);
                let far_end = network.server().run(|| serve(ServeConfig::new(far_end)))??;
                let probe = || probe(target, &service.network, Some(far_end.address()));
                match client {
                    Some(client) => client.run(probe)??,
                    None => probe()?,
                }
            }
            None if ours => {
                let far_end = serve(ServeConfig::new((Ipv4Addr::LOCALHOST, 0).into()))?;
                probe(target, &service.network, Some(far_end.address()))?
            }
            None => probe(target, &service.network, None)?,
        };
        Ok(Some(record(&probed, session, time, host, service.network.clone())))
    }
}

/// Measures from where this thread is.
fn probe(
    target: &NfsTarget,
    link: &NetworkRecord,
    far_end: Option<SocketAddr>,
) -> Result<Probed, BaselineError> {
    let options = &target.options;
    let unknown = |source| BaselineError::Address { host: options.host.clone(), source };
    let mut addresses = (options.host.as_str(), options.nfs_port()).to_socket_addrs().map_err(unknown)?;
    let address = addresses.next().ok_or_else(|| unknown(std::io::ErrorKind::NotFound.into()))?;
    let round_trip =
        Duration::from_nanos(2 * (link.delay_ns + link.jitter_ns)).max(Duration::from_micros(50));
    let count = baseline::round_trips(round_trip);
    let rpc = rpc_null(address, count)?;
    let Some(far_end) = far_end else { return Ok(Probed { network: None, rpc: Some(rpc) }) };
    let config = ProbeConfig {
        repetitions: baseline::REPETITIONS,
        round_trips: count,
        connects: baseline::connects(round_trip),
        flows: baseline::FLOWS.to_vec(),
        duration: baseline::TRANSFER,
        warm_up: Some(baseline::warm_up(round_trip)),
        sample_interval: baseline::TRANSFER,
        null_data: None,
        ..ProbeConfig::baseline(Some(far_end))
    };
    Ok(Probed { network: Some(network(&config)?), rpc: Some(rpc) })
}

fn record(
    probed: &Probed,
    session: u32,
    time: Timestamp,
    target: String,
    network: NetworkRecord,
) -> BaselineRecord {
    let raw = probed.network.as_ref().map(|network| &network.round_trip);
    let null = probed.rpc.as_ref().map(|rpc| &rpc.null);
    let throughput = probed.network.iter().flat_map(|network| &network.throughput);
    BaselineRecord {
        session,
        time,
        client: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        target,
        network,
        round_trip: raw.or(null).map(round_trip),
        flows: throughput.map(flows).collect(),
        result: serde_json::to_string(probed).unwrap_or_default(),
    }
}

fn round_trip(latency: &Latency) -> RoundTripBaseline {
    let nanos = |us: f64| (us * 1e3).round() as u64;
    RoundTripBaseline {
        count: latency.n as u64,
        min_ns: nanos(latency.min_us),
        median_ns: nanos(latency.median_us),
        p99_ns: nanos(latency.p99_us.unwrap_or(latency.max_us)),
    }
}

fn flows(throughput: &Throughput) -> FlowsBaseline {
    let all = throughput.repetitions.iter().flat_map(|repetition| &repetition.flows);
    FlowsBaseline {
        flows: throughput.flows.into(),
        direction: match throughput.direction {
            Direction::ToClient => "receive",
            Direction::ToFarEnd => "send",
        }
        .into(),
        count: u32::try_from(throughput.bytes_per_s.n).unwrap_or(u32::MAX),
        throughput: throughput.bytes_per_s.mean,
        half_width: throughput.bytes_per_s.half_width,
        fairness: throughput.fairness.as_ref().map(|fairness| fairness.mean),
        retransmissions: Some(all.map(|flow| flow.retransmits).sum()),
    }
}
