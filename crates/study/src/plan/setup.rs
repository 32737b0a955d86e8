//! Where a study runs: clients, network, what is read beside it, and what is done to the server.

use std::collections::BTreeMap;

use serde::Serialize;

use super::study::PlannedTreatment;
use crate::settings::{Launcher, Settings};

/// A step that sets the server up, or undoes that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    pub name: String,
    /// `study`, `treatment`, `run`, or `end` for what is done when a session ends.
    pub when: String,
    /// `server` or `clients`.
    pub on: String,
    /// The host, if it is known: that of the server.
    pub host: Option<String>,
    /// The command, as the shell is given it.
    pub command: String,
    /// Labels of the treatments that have it; empty when all have.
    pub treatments: Vec<String>,
}

/// A network that is emulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedNetwork {
    /// What is asked for.
    pub link: String,
    /// By what means it would be emulated on this host; `None` when that was not found out.
    pub means: Option<String>,
}

/// What would emulate the network of a treatment on this host, in words; `None` when nothing is emulated.
pub type LocalEmulation = fn(&Settings) -> Option<String>;

/// Clients of a treatment and where they are, in words.
pub(super) fn clients(settings: &Settings) -> String {
    let count = settings.clients();
    let clients = match count {
        1 => "1 client".to_owned(),
        n => format!("{n} clients"),
    };
    let place = match settings.launcher() {
        Launcher::Threads => " in this process".to_owned(),
        Launcher::Local if count == 1 => " in a separate process on this host".to_owned(),
        Launcher::Local => ", each in a separate process on this host".to_owned(),
        Launcher::Slurm => " in tasks of Slurm".to_owned(),
        Launcher::External => " in agents that something else starts".to_owned(),
        Launcher::Lab if count == 1 => " on a machine of the lab".to_owned(),
        Launcher::Lab => ", each on a machine of the lab".to_owned(),
        Launcher::Ssh => format!(" by ssh on {}", spread(settings, count)),
    };
    let stagger = match settings.clients.stagger.nanos() {
        0 => String::new(),
        _ => format!(", one more every {}", settings.clients.stagger),
    };
    format!("{clients}{place}{stagger}")
}

/// `c1 (0–2), c2 (3, 4)`: the clients of each host, by number, in contiguous shares.
fn spread(settings: &Settings, count: u32) -> String {
    let hosts = settings.hosts().unwrap_or_default();
    let number = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let mut first = 0;
    let parts = hosts.iter().zip(0u32..).map(|(host, index)| {
        let share = count / number + u32::from(index < count % number);
        let last = first + share.max(1) - 1;
        let text = match share {
            1 => format!("{host} ({first})"),
            _ => format!("{host} ({first}–{last})"),
        };
        first += share;
        text
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// What is read beside every measured phase, in words.
pub(super) fn sampling(settings: &Settings) -> String {
    let sampling = &settings.sampling;
    let read = match (sampling.enabled, &sampling.samplers) {
        (false, _) => "no counters".to_owned(),
        (true, None) => format!("all counters every {}", sampling.interval),
        (true, Some(names)) => format!("{} every {}", names.join(", "), sampling.interval),
    };
    let commands = settings
        .collect
        .iter()
        .map(|collect| format!("; {} on {}: {}", collect.name, collect.on.name(), collect.command));
    format!("{read}{}", commands.collect::<String>())
}

/// The networks of all treatments, each once. `emulation`: what would emulate the network of a treatment on this host.
pub(super) fn networks(
    treatments: &[PlannedTreatment],
    emulation: Option<LocalEmulation>,
) -> Vec<PlannedNetwork> {
    let mut found: Vec<PlannedNetwork> = Vec::new();
    for settings in treatments.iter().map(|treatment| &treatment.settings) {
        let network = &settings.network;
        if network.is_plain() && !settings.clients.namespaces {
            continue;
        }
        let mut parts = vec![format!("delay {}", network.delay)];
        if network.jitter.nanos() > 0 {
            parts.push(format!("jitter {}", network.jitter));
        }
        parts.extend(network.bandwidth.map(|bandwidth| format!("{bandwidth} per client")));
        if network.loss.0 > 0.0 {
            parts.push(format!("loss {}", network.loss));
        }
        parts.extend(network.server_bandwidth.map(|bandwidth| format!("{bandwidth} at the server")));
        parts.extend(network.queue.map(|queue| format!("{queue} may wait")));
        if network.of_queues().is_some() {
            parts.push(match (network.queues.unwrap_or(1), network.queue_discipline.unwrap_or_default()) {
                (1, discipline) => format!("1 transmit queue ({discipline})"),
                (queues, discipline) => format!("{queues} transmit queues ({discipline})"),
            });
        }
        parts.extend(network.queue_limit.map(|limit| format!("{limit} in each")));
        parts.extend(network.flow_limit.map(|limit| format!("{limit} of a flow")));
        parts.extend(network.rehash.map(|period| format!("hashed again every {period}")));
        parts.extend(network.mtu.map(|mtu| format!("MTU {mtu}")));
        parts.extend(network.congestion.as_ref().map(|name| format!("TCP with {name}")));
        parts.extend(network.cwnd_clamp.map(|segments| format!("at most {segments} segments in flight")));
        let link = parts.join(", ");
        if found.iter().all(|known| known.link != link) {
            let means = match (&settings.lab, emulation) {
                (_, None) => None,
                (Some(_), _) => Some("a user-space wire between the machines of the lab".to_owned()),
                (None, Some(emulation)) => emulation(settings),
            };
            found.push(PlannedNetwork { link, means });
        }
    }
    found
}

/// The steps of all treatments in order, each command once.
pub(super) fn steps(treatments: &[PlannedTreatment]) -> Vec<PlannedStep> {
    let mut found: Vec<PlannedStep> = Vec::new();
    let mut labels: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for treatment in treatments.iter().filter(|treatment| treatment.settings.server.is_managed()) {
        let server = &treatment.settings.server;
        for step in server.ready_steps().unwrap_or_default() {
            let when = step.when.map_or("end", |when| when.name());
            let same = |known: &PlannedStep| {
                known.name == step.name && known.command == step.command && known.when == when
            };
            let index = found.iter().position(same).unwrap_or(found.len());
            if index == found.len() {
                found.push(PlannedStep {
                    name: step.name,
                    when: when.into(),
                    on: step.on.name().into(),
                    host: server.other_host().filter(|_| step.on.name() == "server").map(str::to_owned),
                    command: step.command,
                    treatments: Vec::new(),
                });
            }
            labels.entry(index).or_default().push(treatment.record.label.clone());
        }
    }
    for (index, labels) in labels {
        if labels.len() < treatments.len() {
            found[index].treatments = labels;
        }
    }
    found
}
