//! One job on all agents: barriers, starts, progress, and what they bring home.

use benchmaster_record::phase::Phase;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_clock::monotonic_ns;
use benchmaster_record::recording::{Recording, TraceRecord};
use benchmaster_trace::TraceSink;
use benchmaster_workload::conduct::{Assembled, Attendance, MeetingTracker, Share, Start, Step};
use benchmaster_workload::execute::{Done, Edge, Progress};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::barrier::{Barrier, Point, Reached};
use super::connection::{Call, CallError, Instructor};
use super::error::FleetError;
use super::{Fleet, LOOK, clocks};
use crate::clock::Relation;
use crate::job::Job;
use crate::merge::{Observer, Part, first_workers, merge};
use crate::perform::{Observations, Performed};
use crate::protocol::{Answer, Failure, FailureKind, Instruction, PhaseProgress, Report, Task, TraceBatch};
use crate::stream::frames::Incoming;

/// Reports of all agents that wait to be looked at; more wait at the agents.
const REPORTS: usize = 256;

/// How long agents may take to stop in good order after the run was stopped, and after one of them failed.
const STOPPING: Duration = Duration::from_millis(900);

/// See [`STOPPING`]: workers that wait for a server are given up by the executor after 5 s.
const FAILING: Duration = Duration::from_secs(7);

/// Time for an agent's messages at a start, beside the delivery of all.
const DELIVERY_EACH: Duration = Duration::from_micros(60);

/// Time between two observations.
const OBSERVE: Duration = Duration::from_millis(200);

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct FleetProgress<'a> {
    /// All agents together: the sums of operations and bytes, and the phase of the one that is furthest behind.
    pub total: Progress,
    /// Each, in the order of [`Fleet::members`].
    pub members: &'a [MemberProgress],
}

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberProgress {
    /// What it did in this phase so far.
    pub done: Done,
    pub state: MemberState,
    phase: Phase,
    elapsed: Duration,
    length: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Its part of the run.
    Working,
    Waiting,
    /// It has brought home what it recorded.
    Done,
    /// It failed or was lost.
    Failed,
}

/// What comes from an agent.
enum Event {
    Report(Incoming),
    /// The connection is over.
    Lost,
}

/// What an agent brings home.
enum Outcome {
    Performed(Box<Performed>),
    Observed(Box<Observations>),
}

/// An agent in a run.
struct Agent {
    instructor: Instructor,
    outcome: Option<Outcome>,
    ended: bool,
}

struct Running<'s, 'o> {
    agents: Vec<Agent>,
    progress: Vec<MemberProgress>,
    barrier: Barrier,
    roll: MeetingTracker,
    /// Where the workers of each agent are in the whole.
    first_workers: Vec<u32>,
    /// They convert instants of the controller for each agent.
    clocks: Vec<clocks::Known>,
    delivery: Duration,
    start_ns: Option<i64>,
    sink: Option<&'s mut dyn TraceSink>,
    observe: &'o mut dyn FnMut(FleetProgress<'_>),
    observed: Instant,
}

/// Why a run cannot go on, and with which agent.
enum RunError {
    /// The call of the agent failed.
    Call(usize, CallError),
    /// It reported a failure.
    Failed(usize, Failure),
    Other(FleetError),
}

impl Fleet {
    /// Does a job in a place: all agents together, phase by phase. Recorded calls go to `sink`; `observe` is called several
    /// times a second, and at the edges of the measured phase.
    ///
    /// # Errors
    /// When an agent fails or is lost, or `stop` is set. The others are stopped then.
    pub fn perform(
        &mut self,
        place: &str,
        job: &Job,
        sink: Option<&mut dyn TraceSink>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(FleetProgress<'_>),
    ) -> Result<Recording, FleetError> {
        self.usable()?;
        self.refresh_clocks(stop)?;
        let (events, incoming) = channel(REPORTS);
        let mut tasks = JoinSet::new();
        let running = self.begin(place, job, sink, observe, &events, &mut tasks)?;
        drop(events);
        let ended = self.conduct(running, incoming, stop);
        tasks.abort_all();
        let (outcomes, start_ns) = ended?;
        let relations = self.relations(stop)?;
        self.merge(job, outcomes, relations, start_ns)
    }

    /// Hands the job to all agents.
    fn begin<'s, 'o>(
        &mut self,
        place: &str,
        job: &Job,
        sink: Option<&'s mut dyn TraceSink>,
        observe: &'o mut dyn FnMut(FleetProgress<'_>),
        events: &Sender<(usize, Event)>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Running<'s, 'o>, FleetError> {
        let mut agents = Vec::with_capacity(self.members.len());
        for index in 0..self.members.len() {
            let share = self.members[index].share;
            let call = self.behind[index].connection.perform(Task {
                place: place.to_owned(),
                job: job.clone(),
                share,
                neighbours: self.neighbours.get(index).copied().unwrap_or(1),
                looks: share.is_none_or(|share| share.first_on_host),
            });
            let call = call.map_err(|error| self.failed(index, error))?;
            agents.push(Agent { instructor: call.instructor(), outcome: None, ended: false });
            tasks.spawn_on(follow(call, index, events.clone()), self.runtime.handle());
        }
        let shares: Vec<Share> = self.members.iter().filter_map(|member| member.share).collect();
        let round_trip = self.behind.iter().map(|behind| behind.clock.round_trip).max().unwrap_or_default();
        let each = DELIVERY_EACH * u32::try_from(agents.len()).unwrap_or(u32::MAX);
        let idle = MemberProgress {
            done: Done::default(),
            phase: Phase::Prepare,
            state: MemberState::Working,
            elapsed: Duration::ZERO,
            length: None,
        };
        Ok(Running {
            progress: vec![idle; agents.len()],
            agents,
            barrier: Barrier::new(self.members.iter().map(|member| member.share.is_some())),
            roll: MeetingTracker::new(self.members.iter().map(|member| member.share.is_some())),
            first_workers: first_workers(&job.workload, &shares),
            clocks: self.behind.iter().map(|behind| behind.clock).collect(),
            delivery: self.config.delivery + round_trip + each,
            start_ns: None,
            sink,
            observe,
            observed: Instant::now(),
        })
    }

    /// Takes the agents through the run; gives what each brought home, and when the measured phase began.
    fn conduct(
        &mut self,
        mut running: Running<'_, '_>,
        mut incoming: Receiver<(usize, Event)>,
        stop: &AtomicBool,
    ) -> Result<(Vec<Option<Outcome>>, Option<i64>), FleetError> {
        let mut error: Option<RunError> = None;
        let mut deadline: Option<Instant> = None;
        while running.agents.iter().any(|agent| !agent.ended) {
            let event = self
                .runtime
                .block_on(async { tokio::time::timeout(LOOK, incoming.recv()).await.ok().flatten() });
            if stop.load(Ordering::Relaxed) && !matches!(error, Some(RunError::Other(FleetError::Stopped))) {
                error = Some(RunError::Other(FleetError::Stopped));
                running.stop();
                deadline = Some(Instant::now() + STOPPING);
            }
            if let Some((index, event)) = event
                && let Err(failed) = running.take(index, event)
                && error.is_none()
            {
                running.stop();
                error = Some(failed);
                deadline = Some(Instant::now() + FAILING);
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                break;
            }
            running.tell(None);
        }
        let Some(error) = error else {
            let outcomes = running.agents.into_iter().map(|agent| agent.outcome).collect();
            return Ok((outcomes, running.start_ns));
        };
        Err(match error {
            RunError::Call(index, error) => self.failed(index, error),
            RunError::Failed(index, Failure { kind, text }) => {
                FleetError::Job { agent: self.members[index].name.clone(), text, kind }
            }
            RunError::Other(error) => error,
        })
    }

    /// Measures the clocks again that were not looked at for long.
    fn refresh_clocks(&mut self, stop: &AtomicBool) -> Result<(), FleetError> {
        for index in 0..self.behind.len() {
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError::Stopped);
            }
            if self.behind[index].clock.is_stale()
                && let Err(error) = self.runtime.block_on(self.behind[index].renew_clock())
            {
                return Err(self.failed(index, error));
            }
        }
        Ok(())
    }

    /// The clocks of all agents over the run that is just over.
    fn relations(&mut self, stop: &AtomicBool) -> Result<Vec<Relation>, FleetError> {
        let drifting: Vec<usize> =
            (0..self.behind.len()).filter(|&index| self.behind[index].clock.can_drift()).collect();
        let rounds = clocks::rounds(drifting.iter().map(|&index| &self.behind[index].connection));
        let mut measured = super::all(&self.runtime, stop, rounds)?.into_iter();
        let mut relations = Vec::with_capacity(self.behind.len());
        for index in 0..self.behind.len() {
            let round = if drifting.contains(&index) { measured.next() } else { None };
            match round.transpose() {
                Ok(round) => relations.push(self.behind[index].clock.renew(round)),
                Err(error) => return Err(self.failed(index, error)),
            }
        }
        Ok(relations)
    }

    /// One recording of all.
    fn merge(
        &self,
        job: &Job,
        outcomes: Vec<Option<Outcome>>,
        relations: Vec<Relation>,
        start_ns: Option<i64>,
    ) -> Result<Recording, FleetError> {
        let (mut parts, mut observers) = (Vec::new(), Vec::new());
        for ((member, outcome), relation) in self.members.iter().zip(outcomes).zip(relations) {
            let (name, host, pid) = (member.name.clone(), member.host.clone(), member.pid);
            match (member.share, outcome) {
                (Some(share), Some(Outcome::Performed(performed))) => {
                    parts.push(Part { name, host, pid, share, relation, performed: *performed });
                }
                (None, Some(Outcome::Observed(observations))) => {
                    observers.push(Observer { name, host, pid, relation, observations: *observations });
                }
                _ => {
                    let text = "its result is not that of its part of the run".into();
                    return Err(FleetError::Job { agent: name, text, kind: FailureKind::Job });
                }
            }
        }
        let stagger_ns = u64::try_from(job.stagger.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = start_ns.unwrap_or_else(monotonic_ns);
        Ok(merge(&job.workload, parts, observers, start_ns, stagger_ns)?)
    }
}

/// Passes the reports of an agent on until the connection is over, or the run is.
async fn follow(mut call: Call, index: usize, events: Sender<(usize, Event)>) {
    while let Some(report) = call.next().await {
        // When the run is given up, reports are still read so that the agent is not held up.
        let _ = events.send((index, Event::Report(report))).await;
    }
    let _ = events.send((index, Event::Lost)).await;
}

impl Running<'_, '_> {
    /// Tells all agents to stop.
    fn stop(&self) {
        for agent in self.agents.iter().filter(|agent| !agent.ended) {
            agent.instructor.send(Instruction::Stop);
        }
    }

    /// Takes what came from an agent.
    fn take(&mut self, index: usize, event: Event) -> Result<(), RunError> {
        let error = match event {
            // The connection may end after the agent's part did.
            Event::Lost if self.agents[index].ended => return Ok(()),
            Event::Lost => CallError::Lost,
            Event::Report(incoming) => match incoming.value::<Answer<Report>>() {
                Ok(Ok(report)) => return self.report(index, report),
                Ok(Err(refused)) => CallError::Refused(refused),
                Err(error) => error.into(),
            },
        };
        self.end(index, None);
        Err(RunError::Call(index, error))
    }

    /// The part of an agent is over.
    fn end(&mut self, index: usize, outcome: Option<Outcome>) {
        let state = if outcome.is_some() { MemberState::Done } else { MemberState::Failed };
        self.progress[index].state = state;
        self.agents[index].outcome = outcome;
        self.agents[index].ended = true;
    }

    fn report(&mut self, index: usize, report: Report) -> Result<(), RunError> {
        match report {
            Report::Reached(step) => return self.waits(index, Point::Step(step), Duration::ZERO),
            Report::Ready { phase, lead } => return self.waits(index, Point::Start(phase), lead),
            Report::Trace(TraceBatch(records)) => return self.record(index, records),
            Report::Attended { meeting, attendance } => self.attended(index, meeting, attendance),
            Report::Progress(PhaseProgress { phase, elapsed, length, done }) => {
                let state = self.progress[index].state;
                self.progress[index] = MemberProgress { done, state, phase, elapsed, length };
            }
            Report::Performed(performed) => self.end(index, Some(Outcome::Performed(performed))),
            Report::Observed(observations) => self.end(index, Some(Outcome::Observed(observations))),
            Report::Failed(failure) => {
                self.end(index, None);
                return Err(RunError::Failed(index, failure));
            }
        }
        Ok(())
    }

    /// An agent waits at a point. The last one lets all go on.
    fn waits(&mut self, index: usize, point: Point, lead: Duration) -> Result<(), RunError> {
        self.progress[index].state = MemberState::Waiting;
        let reached = self
            .barrier
            .wait(index, point, lead)
            .map_err(|out| RunError::Failed(out.agent, Failure::of_job(out.text)))?;
        let Some(Reached { point, agents, lead }) = reached else { return Ok(()) };
        match point {
            Point::Start(phase) => {
                if phase == Start::Measure {
                    self.tell(Some(Edge::Begin));
                }
                let wait = i64::try_from((lead + self.delivery).as_nanos()).unwrap_or(i64::MAX / 2);
                let instant = monotonic_ns() + wait;
                for &agent in &agents {
                    let at = self.clocks[agent].to_agent(instant);
                    self.agents[agent].instructor.send(Instruction::StartAt(at));
                }
                if phase == Start::Measure {
                    self.start_ns = Some(instant);
                }
            }
            Point::Step(step) => {
                if step == Step::Measured {
                    self.tell(Some(Edge::End));
                }
                for &agent in &agents {
                    self.agents[agent].instructor.send(Instruction::Go(step));
                }
            }
        }
        for agent in agents {
            self.progress[agent].state = MemberState::Working;
        }
        Ok(())
    }

    /// Workers of an agent came to a meeting, or no longer take part. The last ones let all go on.
    fn attended(&mut self, index: usize, meeting: u16, attendance: Attendance) {
        let Some(Assembled { time, processes, .. }) = self.roll.note(index, meeting, attendance) else {
            return;
        };
        for agent in processes {
            self.agents[agent].instructor.send(Instruction::Met { meeting, time });
        }
    }

    /// Writes recorded calls, with the workers' numbers in the whole.
    fn record(&mut self, index: usize, mut records: Vec<TraceRecord>) -> Result<(), RunError> {
        let first = self.first_workers.get(index).copied().unwrap_or(0);
        for record in &mut records {
            record.worker = record.worker.saturating_add(first);
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        sink.write(&records).map_err(|error| RunError::Other(FleetError::Trace(error)))
    }

    /// Tells the observer, when it is time to or a moment has come.
    fn tell(&mut self, edge: Option<Edge>) {
        if edge.is_none() && self.observed.elapsed() < OBSERVE {
            return;
        }
        self.observed = Instant::now();
        let active = self.progress.iter().filter(|member| member.state != MemberState::Done);
        let behind = active.min_by_key(|member| member.phase).or(self.progress.last());
        let total = Progress {
            phase: behind.map_or(Phase::Prepare, |member| member.phase),
            elapsed: behind.map_or(Duration::ZERO, |member| member.elapsed),
            length: behind.and_then(|member| member.length),
            done: self.progress.iter().map(|member| member.done).sum(),
            edge,
        };
        (self.observe)(FleetProgress { total, members: &self.progress });
    }
}
