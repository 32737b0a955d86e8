//! One process doing its part of a job: the workload's operations, with samplers and attached commands beside the measured
//! phase.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use benchmaster_record::recording::{Collected, Recording};
use benchmaster_telemetry::sampling::{Sampler, Samples, Sampling};
use benchmaster_trace::TraceSink;
use benchmaster_workload::area::WorkArea;
use benchmaster_workload::client_cache::ClientCaches;
use benchmaster_workload::conduct::{Assembly, Conductor, Held, Share, Start, Step, Stopped};
use benchmaster_workload::execute::{Edge, ExecuteError, Options, Progress, execute};
use serde::{Deserialize, Serialize};

use crate::collect::Collecting;
use crate::job::{Job, Side};

/// What a process is beside the clients that it plays.
pub struct Surroundings<'a> {
    /// Its name in the study.
    pub agent: &'a str,
    /// Which commands are its to run.
    pub side: Side,
    /// Processes of the run on this host.
    pub neighbours: u32,
    /// Whether this process runs samplers and commands; one process of each host does.
    pub looks: bool,
    /// Ends the job early when set.
    pub stop: &'a AtomicBool,
    /// Samplers beside those of the system.
    pub samplers: Vec<Box<dyn Sampler>>,
}

impl fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings")
            .field("agent", &self.agent)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

/// What one process brings home from a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Performed {
    /// What was recorded, without agents. Times count from the start of the measured phase as this process saw it.
    pub recording: Recording,
    /// That start on this host's monotonic clock.
    pub start_monotonic_ns: i64,
    /// What was read beside it, by this host's monotonic clock.
    pub observations: Observations,
}

/// What was read and printed beside a measured phase, by this host's monotonic clock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observations {
    /// Counters; `None` when this process read none.
    pub samples: Option<Samples>,
    pub collected: Vec<Collected>,
}

/// Samplers and commands at work.
struct Looking {
    sampling: Option<Sampling>,
    collecting: Collecting,
}

impl Looking {
    fn begin(job: &Job, surroundings: &mut Surroundings<'_>) -> Self {
        let side = surroundings.side;
        let looks = surroundings.looks;
        let commands = job.collect.iter().filter(|spec| looks && spec.on == side).cloned();
        let collecting = Collecting::start(commands);
        let config = job.sampling.as_ref().filter(|_| looks);
        let extra = std::mem::take(&mut surroundings.samplers);
        Self { sampling: config.map(|config| Sampling::start(config, extra)), collecting }
    }

    fn end(self, agent: &str) -> Observations {
        let samples = self.sampling.map(Sampling::stop);
        Observations { samples, collected: self.collecting.finish(agent) }
    }
}

/// Does this process's `share` of a job in `area`, in step with the others. `observe` is called several times a second.
///
/// # Errors
/// See [`ExecuteError`]. Failed operations are no error here: they are in the recording. Nor are samplers and commands that
/// fail: they say so in what they leave.
pub fn perform(
    area: &mut WorkArea,
    job: &Job,
    share: Share,
    mut surroundings: Surroundings<'_>,
    conductor: &mut dyn Conductor,
    trace: Option<&mut dyn TraceSink>,
    observe: &mut dyn FnMut(Progress),
) -> Result<Performed, ExecuteError> {
    let elsewhere = std::env::temp_dir();
    let options = Options {
        share,
        stagger: job.stagger,
        neighbours: surroundings.neighbours,
        seed: job.seed,
        fileset_seed: job.fileset_seed,
        interval_ns: job.interval_ns,
        cache: job.cache,
        hook: job.hook.as_ref().map(|hook| (hook.command.as_str(), hook.timeout)),
        max_errors: job.max_errors,
        ledgers: job.ledgers.as_deref().unwrap_or(&elsewhere),
        stop: surroundings.stop,
    };
    surroundings.samplers.extend(ClientCaches::of(area));
    let agent = surroundings.agent;
    let mut noting = Noting { inner: conductor, start: None };
    let (mut looking, mut observations) = (None, Observations::default());
    let recording = execute(area, &job.name, &job.workload, &options, &mut noting, trace, &mut |progress| {
        match progress.edge {
            Some(Edge::Begin) => looking = Some(Looking::begin(job, &mut surroundings)),
            Some(Edge::End) => {
                if let Some(looking) = looking.take() {
                    observations = looking.end(agent);
                }
            }
            Some(Edge::Cut) | None => {}
        }
        observe(progress);
    })?;
    let start_monotonic_ns = noting.start.unwrap_or_else(monotonic_ns);
    Ok(Performed { recording, start_monotonic_ns, observations })
}

/// Looks on at the measured phase of a job from a host without clients, as the server's.
///
/// # Errors
/// When the job is stopped.
pub fn observe(
    job: &Job,
    mut surroundings: Surroundings<'_>,
    conductor: &mut dyn Conductor,
) -> Result<Observations, Stopped> {
    let agent = surroundings.agent;
    let looking = Looking::begin(job, &mut surroundings);
    conductor.start(Start::Measure, Duration::ZERO)?;
    conductor.meet(Step::Measured)?;
    Ok(looking.end(agent))
}

/// Notes when the measured phase begins.
struct Noting<'a> {
    inner: &'a mut dyn Conductor,
    start: Option<i64>,
}

impl Conductor for Noting<'_> {
    fn meet(&mut self, step: Step) -> Result<(), Stopped> {
        self.inner.meet(step)
    }

    fn start(&mut self, phase: Start, lead: Duration) -> Result<i64, Stopped> {
        let start = self.inner.start(phase, lead)?;
        if phase == Start::Measure {
            self.start = Some(start);
        }
        Ok(start)
    }

    fn assembly(&mut self, held: Held) -> Option<Arc<dyn Assembly>> {
        self.inner.assembly(held)
    }
}
