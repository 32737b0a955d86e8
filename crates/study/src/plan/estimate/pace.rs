//! What is assumed of a target before anything was measured on it, and what a run does beside its workloads.

use std::time::Duration;

use benchmaster_nfs_client::rpc::Transport;

use super::seconds::Seconds;
use crate::baseline;
use crate::settings::{CacheControl, Launcher, Settings, TargetKind};

/// What calls and bytes take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// One call, from its start to its end.
    call: Seconds,
    /// One that waits for stable storage.
    pub(super) stable: Seconds,
    /// One byte, over all clients.
    pub(super) byte: Seconds,
}

/// What each call takes of a processor that all clients share, here or on the server.
const PROCESSING: Seconds = Seconds::new(2e-6, 50e-6);
/// One that waits for stable storage: a controller with a cache that keeps, and a disk.
const STABLE: Seconds = Seconds::new(0.1e-3, 20e-3);

const fn rates(fastest: f64, slowest: f64) -> Seconds {
    Seconds::new(1.0 / fastest, 1.0 / slowest)
}

impl Pace {
    pub(super) fn of(settings: &Settings) -> Self {
        let (call, stable, byte) = match settings.target.kind() {
            // User space of a machine whose processor is shared with all others.
            _ if settings.lab.is_some() => (Seconds::new(50e-6, 2e-3), STABLE, rates(500e6, 20e6)),
            TargetKind::Directory(_) | TargetKind::Scratch => {
                (Seconds::new(3e-6, 0.3e-3), STABLE, rates(3e9, 100e6))
            }
            // All of it is in memory.
            TargetKind::Embedded(_) => {
                let call = Seconds::new(20e-6, 0.3e-3);
                (call, call, rates(3e9, 200e6))
            }
            TargetKind::External(_) | TargetKind::Mount(_) => {
                (Seconds::new(50e-6, 2e-3), STABLE, rates(2e9, 50e6))
            }
        };
        // A call may be no request, or several, one after the other.
        let trip = round_trip(settings).as_secs_f64();
        let network = &settings.network;
        let each = network.bandwidth.map(|link| link.0 * f64::from(settings.clients()));
        let link = each.into_iter().chain(network.server_bandwidth.map(|link| link.0)).reduce(f64::min);
        let on_link = link.map_or(Seconds::default(), |link| Seconds::exactly(1.0 / link));
        Self {
            call: call + Seconds::new(0.5 * trip, 3.0 * trip),
            stable: stable + Seconds::new(trip, 3.0 * trip),
            byte: byte.beside(on_link),
        }
    }

    /// Calls of each of `clients`, of which it has `lanes` in flight.
    pub(super) fn calls(&self, calls: f64, lanes: f64, clients: f64) -> Seconds {
        (self.call * (calls / lanes)).beside(PROCESSING * (calls * clients))
    }
}

/// What the network adds to every request.
fn round_trip(settings: &Settings) -> Duration {
    let network = &settings.network;
    2 * (network.delay.0 + network.jitter.0)
}

/// What a run takes beside warm-up, measured phases and files: threads, the executor's own speed, counters, caches, responses,
/// storing.
pub(super) fn around_run(settings: &Settings) -> Seconds {
    let run = &settings.run;
    let cache = match run.cache {
        CacheControl::Keep => Seconds::default(),
        CacheControl::Fadvise => Seconds::new(0.0, 1.0),
        CacheControl::Drop => Seconds::new(0.05, 5.0),
        CacheControl::Remount => Seconds::new(0.1, 2.0),
    };
    let hook = if run.cache_hook.is_some() { Seconds::new(0.01, 2.0) } else { Seconds::default() };
    let together = match settings.launcher() {
        Launcher::Threads => Seconds::default(),
        Launcher::Local => Seconds::new(0.05, 0.5),
        Launcher::Ssh | Launcher::Slurm | Launcher::External | Launcher::Lab => Seconds::new(0.1, 2.0),
    };
    let each = Seconds::new(0.04, 0.2) + cache + hook + together;
    Seconds::new(0.02, 0.15) + each * settings.workloads.len() as f64
}

/// What begins and ends a session of runs: machines, processes, servers, decisions about further runs.
pub(super) fn around_session(settings: &Settings) -> Seconds {
    let clients = f64::from(settings.clients());
    let start = match settings.launcher() {
        Launcher::Threads => Seconds::default(),
        Launcher::Local => Seconds::new(0.1, 1.0) + Seconds::new(0.0, 0.2) * clients,
        Launcher::Ssh => Seconds::new(1.0, 10.0),
        Launcher::Slurm | Launcher::External => Seconds::new(1.0, 30.0),
        Launcher::Lab => Seconds::new(2.0, 8.0) * (clients + 1.0),
    };
    Seconds::new(0.05, 0.5) + start
}

/// The measurement of the network before the first run over it.
pub(super) fn network(settings: &Settings) -> Seconds {
    if !settings.run.baseline || settings.lab.is_some() {
        return Seconds::default();
    }
    let options = settings.target.mount_options("127.0.0.1").ok().flatten();
    if options.is_none_or(|options| options.transport == Transport::Udp) {
        return Seconds::default();
    }
    let trip = round_trip(settings).max(Duration::from_micros(50));
    let least = baseline::length(trip, settings.is_embedded()).as_secs_f64();
    // Round trips are longer than the delay; on an emulated link transfers fill its queue first, which then drains.
    let most = if settings.network.is_plain() { 2.0 * least + 0.5 } else { 4.0 * least + 1.0 };
    Seconds::new(least, most)
}

/// The summary and the report.
pub(super) fn conclusion(runs: Seconds) -> Seconds {
    Seconds::new(0.05, 0.5) + Seconds::new(0.001, 0.03).times(runs)
}
