//! The recordings of the processes of a run as one.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::model::{Sharing, Workload};
use benchmaster_record::recording::{
    AgentRecording, CacheAction, FilesetFacts, HostSamples, HostUse, PhaseTiming, Recording, ReplayFacts,
    StartFacts, WorkerRecording,
};
use benchmaster_workload::conduct::Share;

use crate::clock::Relation;
use crate::perform::{Observations, Performed};

mod rpc;
mod series;

/// What one process brought home, and who it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name in the study.
    pub name: String,
    pub host: String,
    pub pid: u32,
    pub share: Share,
    /// Its clock beside the controller's.
    pub relation: Relation,
    /// What it did.
    pub performed: Performed,
}

/// What a process without clients brought home.
#[derive(Debug, Clone, PartialEq)]
pub struct Observer {
    /// Its name in the study.
    pub name: String,
    pub host: String,
    pub pid: u32,
    /// Its clock beside the controller's.
    pub relation: Relation,
    /// What it saw.
    pub observations: Observations,
}

/// Why recordings cannot be one.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There are none.
    #[error("no agent recorded anything")]
    Nothing,
    #[error(
        "agent `{agent}` recorded different data than the first one ({what}): the agents differ in version"
    )]
    Different { agent: String, what: String },
    /// A histogram cannot be read.
    #[error("agent `{agent}`: {source}")]
    Histogram { agent: String, source: benchmaster_record::recording::HistogramError },
}

/// The number of workers of all clients before each share: what the worker numbers of a process's trace are to be
/// increased by.
pub fn first_workers(workload: &Workload, shares: &[Share]) -> Vec<u32> {
    let of_client = |client: u32| -> u32 {
        let groups = workload.groups.iter();
        let own = groups.filter(|group| group.clients.is_none_or(|clients| clients.contains(client)));
        own.map(|group| group.workers).sum()
    };
    let before = |share: &Share| (0..share.first).map(of_client).sum();
    shares.iter().map(before).collect()
}

/// Makes one recording of those of all processes, of which the measured phase began at `start_ns` of the controller's
/// clock. `stagger_ns` lies between the starts of one client and the next.
///
/// Counts and histograms are added, intervals by their number; times of a phase span those of all.
///
/// # Errors
/// See [`MergeError`].
pub fn merge(
    workload: &Workload,
    mut parts: Vec<Part>,
    observers: Vec<Observer>,
    start_ns: i64,
    stagger_ns: u64,
) -> Result<Recording, MergeError> {
    parts.sort_by_key(|part| part.share.first);
    let agents: Vec<AgentRecording> = parts
        .iter()
        .map(|part| {
            agent(
                &part.name,
                &part.host,
                part.pid,
                part.share,
                part.relation.facts(start_ns),
                part.performed.recording.host,
            )
        })
        .chain(observers.iter().map(|on| {
            let share = Share { count: 0, ..Share::all(0) };
            agent(&on.name, &on.host, on.pid, share, on.relation.facts(start_ns), HostUse::default())
        }))
        .collect();
    let start = start_facts(&parts, start_ns, stagger_ns);
    let host = host_use(&parts);
    let phases = phases(&parts);
    let filesets = filesets(workload, &parts);
    let cache = cache(&parts);
    let error_details = details(&parts);
    let corruption = parts.iter().find_map(|part| {
        let what = part.performed.recording.corruption.as_ref()?;
        Some(named(&part.name, what, parts.len()))
    });
    let verified = parts.iter().filter_map(|part| part.performed.recording.verified_bytes);
    let verified_bytes = verified.reduce(|a, b| a + b);
    let rpc = rpc::merge(&parts);
    let series = series::merge(&parts)?;
    let rows = series::part_rows(&parts);
    let replays = parts.iter().filter_map(|part| part.performed.recording.replay.clone());
    let replay = replays.reduce(ReplayFacts::and);

    let (mut samples, mut collected, mut workers) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |name: String, relation: &Relation, observations: Observations| {
        let shift = |time: &mut i64| *time = relation.to_controller(*time) - start_ns;
        if let Some(mut read) = observations.samples {
            read.series.iter_mut().flat_map(|s| &mut s.points).for_each(|point| shift(&mut point.time_ns));
            samples.push(HostSamples { agent: name, samples: read });
        }
        collected.extend(observations.collected.into_iter().map(|mut collected| {
            shift(&mut collected.start_ns);
            shift(&mut collected.end_ns);
            collected
        }));
    };
    let length_ns = parts.iter().map(|part| part.performed.recording.length_ns).max().unwrap_or(1);
    let mut first = None;
    for part in parts {
        add(part.name, &part.relation, part.performed.observations);
        let mut recording = part.performed.recording;
        workers.append(&mut recording.workers);
        first.get_or_insert(recording);
    }
    for observer in observers {
        add(observer.name, &observer.relation, observer.observations);
    }
    let first = first.ok_or(MergeError::Nothing)?;
    Ok(Recording {
        length_ns,
        series,
        workers,
        parts: rows,
        phases,
        filesets,
        cache,
        host,
        error_details,
        verified_bytes,
        corruption,
        rpc,
        agents,
        start,
        samples,
        collected,
        replay,
        ..first
    })
}

fn agent(
    name: &str,
    host: &str,
    pid: u32,
    share: Share,
    clock: benchmaster_record::recording::ClockFacts,
    host_use: HostUse,
) -> AgentRecording {
    AgentRecording {
        name: name.to_owned(),
        host: host.to_owned(),
        pid,
        first_client: share.first,
        clients: share.count,
        clock,
        host_use,
    }
}

fn named(agent: &str, text: &str, agents: usize) -> String {
    if agents > 1 { format!("{agent}: {text}") } else { text.to_owned() }
}

/// How well clients began together: by the first operation of each on the common clock.
fn start_facts(parts: &[Part], start_ns: i64, stagger_ns: u64) -> Option<StartFacts> {
    let mut first: BTreeMap<u32, i64> = BTreeMap::new();
    for part in parts {
        let Performed { recording, start_monotonic_ns, .. } = &part.performed;
        let began = part.relation.to_controller(*start_monotonic_ns) - start_ns;
        for WorkerRecording { client, series, .. } in &recording.workers {
            let starts = series.iter().filter_map(|series| series.first_start_ns);
            let Some(start) = starts.min() else { continue };
            let planned = stagger_ns.saturating_mul(u64::from(*client));
            let late = began + start.cast_signed() - planned.cast_signed();
            first.entry(*client).and_modify(|first| *first = late.min(*first)).or_insert(late);
        }
    }
    let (earliest, latest) = (first.values().min()?, first.values().max()?);
    let mut bounds: Vec<u64> = parts.iter().map(|part| part.relation.bound_ns()).collect();
    bounds.sort_unstable_by(|a, b| b.cmp(a));
    Some(StartFacts {
        spread_ns: (latest - earliest).unsigned_abs(),
        bound_ns: bounds.iter().take(2).sum(),
        server_spread_ns: None,
        stagger_ns,
    })
}

/// Time that processes used is added; shares of hosts are those of the busiest.
fn host_use(parts: &[Part]) -> HostUse {
    let uses = || parts.iter().map(|part| &part.performed.recording.host);
    let most = |of: fn(&HostUse) -> Option<f64>| uses().filter_map(of).reduce(f64::max);
    let largest = |of: fn(&HostUse) -> f64| uses().map(of).max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let step = uses().map(|host| host.clock_step_ns).max_by_key(|step| step.unsigned_abs());
    let by_host: BTreeMap<&str, u32> =
        parts.iter().map(|part| (part.host.as_str(), part.performed.recording.host.processors)).collect();
    let lead = parts.iter().find(|part| part.share.lead).map(|part| &part.performed.recording.host);
    HostUse {
        process_user_ns: uses().map(|host| host.process_user_ns).sum(),
        process_system_ns: uses().map(|host| host.process_system_ns).sum(),
        host_busy: most(|host| host.host_busy),
        host_steal: most(|host| host.host_steal),
        processors: by_host.values().sum(),
        clock_step_ns: step.unwrap_or(0),
        clock_drift: largest(|host| host.clock_drift).unwrap_or(0.0),
        trace_stall_ns: uses().map(|host| host.trace_stall_ns).sum(),
        free_before: lead.and_then(|host| host.free_before),
        free_after: lead.and_then(|host| host.free_after),
        read_ahead_kib: uses().filter_map(|host| host.read_ahead_kib).min(),
        written_back: written_back(parts),
        null_rate: uses().filter_map(|host| host.null_rate).reduce(f64::min),
    }
}

/// Processes of one host see the same counter.
fn written_back(parts: &[Part]) -> Option<u64> {
    let mut by_host: BTreeMap<&str, u64> = BTreeMap::new();
    for part in parts {
        let host = by_host.entry(part.host.as_str()).or_default();
        *host = (*host).max(part.performed.recording.host.written_back?);
    }
    (!by_host.is_empty()).then(|| by_host.values().sum())
}

fn phases(parts: &[Part]) -> Vec<PhaseTiming> {
    let mut merged: Vec<PhaseTiming> = Vec::new();
    for phase in parts.iter().flat_map(|part| &part.performed.recording.phases) {
        match merged.iter_mut().find(|known| known.phase == phase.phase) {
            Some(known) => {
                known.start_ns = known.start_ns.min(phase.start_ns);
                known.end_ns = known.end_ns.max(phase.end_ns);
                known.operations += phase.operations;
                known.errors += phase.errors;
            }
            None => merged.push(phase.clone()),
        }
    }
    merged
}

fn filesets(workload: &Workload, parts: &[Part]) -> Vec<FilesetFacts> {
    let mut merged: Vec<FilesetFacts> = Vec::new();
    for part in parts {
        for facts in &part.performed.recording.filesets {
            let shared = workload.filesets.get(&facts.name).is_some_and(|set| set.sharing == Sharing::Shared);
            match merged.iter_mut().find(|known| known.name == facts.name) {
                // All look at the same files.
                Some(known) if shared => known.cached_bytes = known.cached_bytes.max(facts.cached_bytes),
                Some(known) => {
                    known.files += facts.files;
                    known.bytes += facts.bytes;
                    known.reused &= facts.reused;
                    known.cached_bytes = known.cached_bytes.zip(facts.cached_bytes).map(|(a, b)| a + b);
                }
                None => merged.push(facts.clone()),
            }
        }
    }
    merged
}

/// What was done on every host, each text once.
fn cache(parts: &[Part]) -> CacheAction {
    let actions = || parts.iter().filter(|part| part.share.first_on_host || part.share.lead);
    let done: BTreeSet<&str> = actions().map(|part| part.performed.recording.cache.done.as_str()).collect();
    let requested = parts.first().map(|part| part.performed.recording.cache.requested.clone());
    let done = match done.len() {
        0 | 1 => done.into_iter().collect(),
        _ => {
            let of = |part: &Part| format!("{}: {}", part.name, part.performed.recording.cache.done);
            actions().map(of).collect::<Vec<_>>().join("; ")
        }
    };
    CacheAction { requested: requested.unwrap_or_default(), done }
}

/// The first few errors of each process.
fn details(parts: &[Part]) -> Vec<String> {
    const MOST: usize = 100;
    let of = |part: &Part| {
        let name = part.name.clone();
        let details = part.performed.recording.error_details.clone().into_iter();
        details.map(move |text| named(&name, &text, parts.len()))
    };
    parts.iter().flat_map(of).take(MOST).collect()
}
