//! What some processes of a run recorded, as one.

use std::collections::BTreeMap;

use benchmaster_record::model::{Sharing, Workload};
use benchmaster_record::recording::{
    AgentRecording, ClockFacts, Collected, FilesetFacts, HostSamples, HostUse, PhaseTiming, Recording,
    ReplayFacts, RpcSource, StartFacts,
};
use benchmaster_record::witness::Witness;
use benchmaster_workload::conduct::Share;
use serde::{Deserialize, Serialize};

use super::{MergeError, Observer, rpc, series};
use crate::clock::Relation;
use crate::perform::{Observations, Performed};

/// Errors that are kept in full.
const MOST_DETAILS: usize = 100;

/// Agents that are named beside what they did to caches; more are counted.
const MOST_NAMED: usize = 10;

/// What one process of a run recorded, or several, on the clock of the process that leads them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gathered {
    /// When the measured phase began on that clock.
    start_ns: i64,
    /// Everything but what the other fields have. Times count from the start.
    recording: Recording,
    /// The first operation of each client, since the start.
    first_operations: Vec<(u32, i64)>,
    /// What was done to caches, and by which agents.
    caches: Vec<(String, Vec<String>)>,
}

impl Gathered {
    /// What one process recorded, on its own clock.
    pub fn of(name: String, host: String, pid: u32, share: Share, performed: Performed) -> Self {
        let Performed { mut recording, start_monotonic_ns: start_ns, observations } = performed;
        let host_use = recording.host;
        if share.processes > 1 {
            let texts = recording.error_details.iter_mut().chain(&mut recording.corruption);
            let problems = recording.rpc.iter_mut().flat_map(|rpc| &mut rpc.problems);
            texts.chain(problems).for_each(|text| *text = format!("{name}: {text}"));
        }
        recording.error_details.truncate(MOST_DETAILS);
        // Processes of one host see the same counters: the first one's are taken.
        if !share.first_on_host {
            recording.host.processors = 0;
            recording.host.written_back = Some(0);
            if let Some(rpc) = recording.rpc.as_mut().filter(|rpc| rpc.source != RpcSource::Client) {
                rpc.phases.clear();
            }
        }
        if !share.lead {
            (recording.host.free_before, recording.host.free_after) = (None, None);
        }
        let mut first: BTreeMap<u32, i64> = BTreeMap::new();
        for worker in &recording.workers {
            let starts = worker.series.iter().filter_map(|series| series.first_start_ns);
            let Some(start) = starts.min().map(u64::cast_signed) else { continue };
            first.entry(worker.client).and_modify(|first| *first = start.min(*first)).or_insert(start);
        }
        let done = std::mem::take(&mut recording.cache.done);
        let acted = share.first_on_host || share.lead;
        let caches = acted.then(|| (done, vec![name.clone()])).into_iter().collect();
        recording.agents = vec![agent(name.clone(), host, pid, share, host_use)];
        let first_operations = first.into_iter().collect();
        let mut gathered = Self { start_ns, recording, first_operations, caches };
        gathered.add(name, observations, &|time| time - start_ns);
        gathered
    }

    /// The same on the clock of another process, on which the measured phase began at `start_ns`: `relation` is the clock so
    /// far beside that one. Offsets and their bounds add up.
    #[must_use]
    pub fn carried(mut self, relation: &Relation, start_ns: i64) -> Self {
        let own_start = self.start_ns;
        let shift = |time: &mut i64| *time = relation.to_controller(own_start + *time) - start_ns;
        self.first_operations.iter_mut().for_each(|(_, time)| shift(time));
        let samples = self.recording.samples.iter_mut().flat_map(|host| &mut host.samples.series);
        samples.flat_map(|series| &mut series.points).for_each(|point| shift(&mut point.time_ns));
        for collected in &mut self.recording.collected {
            shift(&mut collected.start_ns);
            shift(&mut collected.end_ns);
        }
        let outer = relation.facts(start_ns);
        for agent in &mut self.recording.agents {
            agent.clock = chained(outer, agent.clock);
        }
        self.start_ns = start_ns;
        self
    }

    /// One of several, all on one clock.
    ///
    /// # Errors
    /// See [`MergeError`].
    pub fn merge(workload: &Workload, mut parts: Vec<Self>) -> Result<Self, MergeError> {
        parts.sort_by_key(|part| part.recording.agents.first().map(|agent| agent.first_client));
        let all: Vec<&Recording> = parts.iter().map(|part| &part.recording).collect();
        let first = *all.first().ok_or(MergeError::Nothing)?;
        let merged = Recording {
            series: series::merge(&all)?,
            parts: series::part_rows(&all),
            slow: series::slow(&all),
            rpc: rpc::merge(&all),
            phases: phases(&all),
            filesets: filesets(workload, &all),
            host: host_use(&all),
            length_ns: all.iter().map(|recording| recording.length_ns).max().unwrap_or(1),
            error_details: all.iter().flat_map(|r| &r.error_details).take(MOST_DETAILS).cloned().collect(),
            corruption: all.iter().find_map(|recording| recording.corruption.clone()),
            verified_bytes: all.iter().filter_map(|recording| recording.verified_bytes).reduce(|a, b| a + b),
            witness: all.iter().filter_map(|recording| recording.witness.clone()).reduce(Witness::and),
            replay: all.iter().filter_map(|recording| recording.replay.clone()).reduce(ReplayFacts::and),
            workload: first.workload.clone(),
            cut_reason: first.cut_reason.clone(),
            cache: first.cache.clone(),
            timed: first.timed,
            started_unix_ns: first.started_unix_ns,
            interval_ns: first.interval_ns,
            cut_ns: first.cut_ns,
            start: None,
            workers: Vec::new(),
            agents: Vec::new(),
            samples: Vec::new(),
            collected: Vec::new(),
        };
        let start_ns = parts.first().map_or(0, |part| part.start_ns);
        let mut gathered = Self { start_ns, recording: merged, first_operations: vec![], caches: vec![] };
        for part in parts {
            let Recording { workers, agents, samples, collected, .. } = part.recording;
            gathered.recording.workers.extend(workers);
            gathered.recording.agents.extend(agents);
            gathered.recording.samples.extend(samples);
            gathered.recording.collected.extend(collected);
            gathered.first_operations.extend(part.first_operations);
            for (done, agents) in part.caches {
                match gathered.caches.iter_mut().find(|(known, _)| *known == done) {
                    Some((_, known)) => known.extend(agents),
                    None => gathered.caches.push((done, agents)),
                }
            }
        }
        Ok(gathered)
    }

    /// Adds what a process without clients saw.
    pub(crate) fn observe(&mut self, observer: Observer, start_ns: i64) {
        let Observer { name, host, pid, relation, observations } = observer;
        let share = Share { count: 0, ..Share::all(0) };
        let mut agent = agent(name.clone(), host, pid, share, HostUse::default());
        agent.clock = relation.facts(start_ns);
        self.recording.agents.push(agent);
        self.add(name, observations, &|time| relation.to_controller(time) - start_ns);
    }

    /// The recording of all processes of a run; `stagger_ns` lies between the starts of one client and the next.
    #[must_use]
    pub fn finish(self, stagger_ns: u64) -> Recording {
        let Self { mut recording, first_operations, caches, .. } = self;
        let with_clients = recording.agents.iter().filter(|agent| agent.clients > 0);
        let bounds = with_clients.map(|agent| agent.clock.bound_ns);
        recording.start = start_facts(bounds, &first_operations, stagger_ns);
        recording.cache.done = match caches.as_slice() {
            [(done, _)] => done.clone(),
            several => several.iter().map(cache_text).collect::<Vec<_>>().join("; "),
        };
        recording
    }

    /// Adds what an agent read and printed, by a clock that is converted.
    fn add(&mut self, agent: String, observations: Observations, since_start: &dyn Fn(i64) -> i64) {
        if let Some(mut samples) = observations.samples {
            let points = samples.series.iter_mut().flat_map(|series| &mut series.points);
            points.for_each(|point| point.time_ns = since_start(point.time_ns));
            self.recording.samples.push(HostSamples { agent, samples });
        }
        self.recording.collected.extend(observations.collected.into_iter().map(|collected| Collected {
            start_ns: since_start(collected.start_ns),
            end_ns: since_start(collected.end_ns),
            ..collected
        }));
    }
}

/// An agent on its own clock.
fn agent(name: String, host: String, pid: u32, share: Share, host_use: HostUse) -> AgentRecording {
    let clock = ClockFacts { drift: Some(0.0), ..ClockFacts::default() };
    AgentRecording { name, host, pid, first_client: share.first, clients: share.count, clock, host_use }
}

/// A clock beside a second one, which is known beside a third.
pub(crate) fn chained(outer: ClockFacts, inner: ClockFacts) -> ClockFacts {
    ClockFacts {
        offset_ns: outer.offset_ns + inner.offset_ns,
        bound_ns: outer.bound_ns + inner.bound_ns,
        // An agent's own clock took none.
        exchanges: if inner.exchanges == 0 { outer.exchanges } else { inner.exchanges.min(outer.exchanges) },
        drift: outer.drift.zip(inner.drift).map(|(a, b)| a + b + a * b),
    }
}

/// How well clients began together: by the first operation of each on the common clock, and the bounds of the agents' clocks.
pub(crate) fn start_facts(
    bounds: impl Iterator<Item = u64>,
    first: &[(u32, i64)],
    stagger_ns: u64,
) -> Option<StartFacts> {
    let planned = |client: u32| stagger_ns.saturating_mul(u64::from(client)).cast_signed();
    let late = || first.iter().map(|(client, time)| time - planned(*client));
    let (earliest, latest) = (late().min()?, late().max()?);
    let mut bounds: Vec<u64> = bounds.collect();
    bounds.sort_unstable_by(|a, b| b.cmp(a));
    Some(StartFacts {
        spread_ns: (latest - earliest).unsigned_abs(),
        bound_ns: bounds.iter().take(2).sum(),
        server_spread_ns: None,
        stagger_ns,
    })
}

/// `c1, c2: nothing`.
fn cache_text((done, agents): &(String, Vec<String>)) -> String {
    let named = agents.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match agents.len().saturating_sub(MOST_NAMED) {
        0 => format!("{named}: {done}"),
        more => format!("{named} and {more} more: {done}"),
    }
}

/// Time that processes used is added; shares of hosts are those of the busiest.
fn host_use(parts: &[&Recording]) -> HostUse {
    let uses = || parts.iter().map(|part| &part.host);
    let most = |of: fn(&HostUse) -> Option<f64>| uses().filter_map(of).reduce(f64::max);
    let drifts = uses().map(|host| host.clock_drift);
    let step = uses().map(|host| host.clock_step_ns).max_by_key(|step| step.unsigned_abs());
    HostUse {
        process_user_ns: uses().map(|host| host.process_user_ns).sum(),
        process_system_ns: uses().map(|host| host.process_system_ns).sum(),
        host_busy: most(|host| host.host_busy),
        host_steal: most(|host| host.host_steal),
        processors: uses().map(|host| host.processors).sum(),
        clock_step_ns: step.unwrap_or(0),
        clock_drift: drifts.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0),
        trace_stall_ns: uses().map(|host| host.trace_stall_ns).sum(),
        free_before: uses().find_map(|host| host.free_before),
        free_after: uses().find_map(|host| host.free_after),
        read_ahead_kib: uses().filter_map(|host| host.read_ahead_kib).min(),
        written_back: uses().map(|host| host.written_back).sum(),
        null_rate: uses().filter_map(|host| host.null_rate).reduce(f64::min),
    }
}

fn phases(parts: &[&Recording]) -> Vec<PhaseTiming> {
    let mut merged: Vec<PhaseTiming> = Vec::new();
    for phase in parts.iter().flat_map(|part| &part.phases) {
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

fn filesets(workload: &Workload, parts: &[&Recording]) -> Vec<FilesetFacts> {
    let mut merged: Vec<FilesetFacts> = Vec::new();
    for facts in parts.iter().flat_map(|part| &part.filesets) {
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
    merged
}
