//! One job on the group of a process: barriers, starts, progress, and what they bring home.

use benchmaster_record::phase::Phase;
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use benchmaster_record::recording::TraceRecord;
use benchmaster_workload::conduct::Share;
use benchmaster_workload::conduct::{Start, Step};
use benchmaster_workload::execute::{Done, Edge};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::barrier::Point;
use super::clocks;
use super::connection::{Call, CallError, Instructor};
use super::error::FleetError;
use super::group::{Child, Group, in_turns, rounds};
use super::stage::{Said, Stage};
use crate::clock::Relation;
use crate::job::Job;
use crate::merge::{Gathered, Observer, first_workers};
use crate::perform::{Observations, Performed};
use crate::protocol::{
    Answer, Failure, FailureKind, Instruction, MemberDone, PhaseProgress, Report, Role, Task, TraceBatch,
};
use crate::stream::frames::Incoming;

/// Reports of all agents that wait to be looked at; more wait at the agents.
const REPORTS: usize = 256;

/// Time between two observations.
const OBSERVE: Duration = Duration::from_millis(200);

/// How long agents may take to stop in good order after one of them failed: workers that wait for a server are given up by
/// the executor after 5 s.
pub(crate) const FAILING: Duration = Duration::from_secs(7);

/// Time for an agent's messages at a start, beside the delivery of all.
pub(super) const DELIVERY_EACH: Duration = Duration::from_micros(60);

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberProgress {
    /// What it did in this phase so far.
    pub done: Done,
    pub state: MemberState,
    pub(super) phase: Phase,
    pub(super) elapsed: Duration,
    pub(super) length: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberState {
    /// Its part of the run.
    Working,
    Waiting,
    /// It has brought home what it recorded.
    Done,
    /// It failed or was lost.
    Failed,
}

/// The process above a group: an aggregator's controller. The controller itself is above its own group.
pub(crate) trait Above {
    /// How long the group may take to stop in good order when it is to.
    const STOPPING: Duration;

    /// The next instruction from there.
    async fn order(&mut self) -> Instruction;

    /// The group says something; gives the instruction that follows at once, if any does.
    async fn say(&mut self, said: Said) -> Option<Instruction>;

    /// Calls that were recorded.
    async fn record(&mut self, records: Vec<TraceRecord>) -> Result<(), FleetError>;

    /// How far the agents are; `edge`: of the measured phase.
    fn progress(&mut self, members: &[MemberProgress], edge: Option<Edge>);
}

/// What a group brings home.
#[derive(Debug)]
pub(crate) struct Brought {
    pub(crate) gathered: Gathered,
    /// The agent at the server.
    pub(crate) observer: Option<Observer>,
    /// When the measured phase began, on the clock of the process that leads the group.
    pub(crate) start_ns: i64,
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
    Gathered(Box<Gathered>),
    Observed(Box<Observations>),
}

/// An agent in a run, or an aggregator.
struct Part {
    instructor: Instructor,
    outcome: Option<Outcome>,
    ended: bool,
}

struct Running<'a, A> {
    children: &'a [Child],
    above: &'a mut A,
    parts: Vec<Part>,
    progress: Vec<MemberProgress>,
    stage: Stage,
    /// Where the workers of each agent are in the whole.
    first_workers: Vec<u32>,
    /// They convert instants for each agent.
    clocks: Vec<clocks::Known>,
    delivery: Duration,
    /// The phase that is about to begin.
    starting: Option<Start>,
    start_ns: Option<i64>,
    observed: Instant,
}

/// Why a run cannot go on.
enum RunError {
    /// The call of the child of this number failed.
    Call(usize, CallError),
    /// What this agent was asked to do failed there.
    Failed(String, Failure),
    Other(FleetError),
}

impl Group {
    /// Does a job in a place: all agents together, phase by phase, and in step with other groups.
    pub(crate) async fn perform(
        &self,
        place: &str,
        job: &Job,
        roles: &[Role],
        above: &mut impl Above,
    ) -> Result<Brought, FleetError> {
        self.refresh_clocks().await?;
        let (events, incoming) = channel(REPORTS);
        let mut tasks = JoinSet::new();
        let running = self.begin(place, job, roles, above, &events, &mut tasks).await?;
        drop(events);
        let ended = self.conduct(running, incoming).await;
        tasks.abort_all();
        let (outcomes, start_ns) = ended?;
        let relations = self.relations().await?;
        self.gather(job, roles, outcomes, relations, start_ns.unwrap_or_else(monotonic_ns)).await
    }

    /// Hands the job to all agents.
    async fn begin<'a, A: Above>(
        &'a self,
        place: &str,
        job: &Job,
        roles: &[Role],
        above: &'a mut A,
        events: &Sender<(usize, Event)>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Running<'a, A>, FleetError> {
        let mut parts = Vec::with_capacity(self.children.len());
        for (index, child) in self.children.iter().enumerate() {
            let roles = roles.get(child.agents.clone()).unwrap_or_default().to_vec();
            let task = Task { place: place.to_owned(), job: job.clone(), roles };
            let call = match child.connection.perform(task) {
                Ok(call) => call,
                Err(error) => return Err(child.error(error).await),
            };
            parts.push(Part { instructor: call.instructor(), outcome: None, ended: false });
            tasks.spawn(follow(call, index, events.clone()));
        }
        let idle = MemberProgress {
            done: Done::default(),
            phase: Phase::Prepare,
            state: MemberState::Working,
            elapsed: Duration::ZERO,
            length: None,
        };
        let has_clients = |child: &Child| roles.get(child.agents.start).is_some_and(|r| r.share.is_some());
        let shares: Vec<Share> = roles.iter().filter_map(|role| role.share).collect();
        let clocks: Vec<_> = self.children.iter().map(|child| *child.clock.lock()).collect();
        let round_trip = clocks.iter().map(|clock| clock.round_trip).max().unwrap_or_default();
        let each = DELIVERY_EACH * u32::try_from(parts.len()).unwrap_or(u32::MAX);
        Ok(Running {
            children: &self.children,
            above,
            parts,
            progress: vec![idle; roles.len()],
            stage: Stage::new(self.children.iter().map(has_clients)),
            first_workers: first_workers(&job.workload, &shares),
            clocks,
            delivery: self.delivery + round_trip + each,
            starting: None,
            start_ns: None,
            observed: Instant::now(),
        })
    }

    /// Takes the agents through the run; gives what each brought home, and when the measured phase began.
    async fn conduct<A: Above>(
        &self,
        mut running: Running<'_, A>,
        mut incoming: Receiver<(usize, Event)>,
    ) -> Result<(Vec<Option<Outcome>>, Option<i64>), FleetError> {
        let mut error: Option<RunError> = None;
        let mut stopped = false;
        // A run that goes well has none.
        let mut deadline = Instant::now() + Duration::from_hours(1_000_000);
        while running.parts.iter().any(|part| !part.ended) {
            tokio::select! {
                Some((index, event)) = incoming.recv() => {
                    if let Err(failed) = running.take(index, event).await && error.is_none() {
                        running.stop();
                        error = Some(failed);
                        deadline = Instant::now() + FAILING;
                    }
                }
                order = running.above.order(), if !stopped => {
                    if order == Instruction::Stop {
                        stopped = true;
                        running.stop();
                        error = Some(RunError::Other(FleetError::Stopped));
                        deadline = Instant::now() + A::STOPPING;
                    } else {
                        running.obey(order);
                    }
                }
                () = sleep_until(deadline) => break,
                () = sleep(OBSERVE) => {}
            }
            running.tell(None);
        }
        let outcomes = running.parts.into_iter().map(|part| part.outcome).collect();
        Err(match error {
            None => return Ok((outcomes, running.start_ns)),
            Some(RunError::Call(index, error)) => self.children[index].error(error).await,
            Some(RunError::Failed(agent, Failure { kind, text })) => FleetError::Job { agent, text, kind },
            Some(RunError::Other(error)) => error,
        })
    }

    /// Measures the clocks again that were not looked at for long.
    async fn refresh_clocks(&self) -> Result<(), FleetError> {
        let stale = |child: &&Child| child.clock.lock().is_stale(monotonic_ns());
        self.renew_clocks(self.children.iter().filter(stale).collect()).await.map(drop)
    }

    /// The clocks of all agents over the run that is just over.
    async fn relations(&self) -> Result<Vec<Relation>, FleetError> {
        let drifting = |child: &&Child| child.clock.lock().can_drift();
        let mut renewed =
            self.renew_clocks(self.children.iter().filter(drifting).collect()).await?.into_iter();
        let relation = |child: &Child| {
            let mut clock = child.clock.lock();
            if clock.can_drift() { renewed.next() } else { Some(clock.renew(None, monotonic_ns())) }
        };
        Ok(self.children.iter().filter_map(relation).collect())
    }

    async fn renew_clocks(&self, of: Vec<&Child>) -> Result<Vec<Relation>, FleetError> {
        let measured = in_turns(clocks::AT_ONCE, rounds(of.iter().map(|child| &child.connection))).await?;
        let mut relations = Vec::with_capacity(of.len());
        for (child, measured) in of.into_iter().zip(measured) {
            match measured {
                Ok(measured) => relations.push(child.clock.lock().renew(Some(measured), monotonic_ns())),
                Err(error) => return Err(child.error(error).await),
            }
        }
        Ok(relations)
    }

    /// What all bring home as one.
    async fn gather(
        &self,
        job: &Job,
        roles: &[Role],
        outcomes: Vec<Option<Outcome>>,
        relations: Vec<Relation>,
        start_ns: i64,
    ) -> Result<Brought, FleetError> {
        let (mut parts, mut observer) = (Vec::new(), None);
        for ((child, outcome), relation) in self.children.iter().zip(outcomes).zip(relations) {
            let share = roles.get(child.agents.start).and_then(|role| role.share);
            let of = self.agents.get(child.agents.start);
            let named = of.map(|agent| (agent.name.clone(), agent.host.clone(), agent.pid));
            match (share, outcome, named) {
                (Some(share), Some(Outcome::Performed(performed)), Some((name, host, pid)))
                    if !child.leads =>
                {
                    parts.push((Gathered::of(name, host, pid, share, *performed), relation));
                }
                (Some(_), Some(Outcome::Gathered(gathered)), _) if child.leads => {
                    parts.push((*gathered, relation));
                }
                (None, Some(Outcome::Observed(observations)), Some((name, host, pid))) => {
                    let observations = *observations;
                    observer = Some(Observer { name, host, pid, relation, observations });
                }
                _ => {
                    let text = "its result is not that of its part of the run".into();
                    return Err(FleetError::Job { agent: child.name.clone(), text, kind: FailureKind::Job });
                }
            }
        }
        // Signs of life are given meanwhile.
        let workload = job.workload.clone();
        let merged = tokio::task::spawn_blocking(move || {
            let on_one_clock = |(part, relation): (Gathered, Relation)| part.carried(&relation, start_ns);
            Gathered::merge(&workload, parts.into_iter().map(on_one_clock).collect())
        });
        let gathered = merged.await.map_err(|error| FleetError::Controller(error.into()))??;
        Ok(Brought { gathered, observer, start_ns })
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

impl<A: Above> Running<'_, A> {
    /// Tells all agents to stop.
    fn stop(&self) {
        for part in self.parts.iter().filter(|part| !part.ended) {
            part.instructor.send(Instruction::Stop);
        }
    }

    /// Takes what came from an agent.
    async fn take(&mut self, index: usize, event: Event) -> Result<(), RunError> {
        let error = match event {
            // The connection may end after the agent's part did.
            Event::Lost if self.parts[index].ended => return Ok(()),
            Event::Lost => CallError::Lost,
            Event::Report(incoming) => match incoming.value::<Answer<Report>>() {
                Ok(Ok(report)) => return self.report(index, report).await,
                Ok(Err(refused)) => CallError::Refused(refused),
                Err(error) => error.into(),
            },
        };
        self.end(index, None);
        Err(RunError::Call(index, error))
    }

    /// The agents of a child.
    fn members(&mut self, index: usize) -> &mut [MemberProgress] {
        let agents = self.children[index].agents.clone();
        self.progress.get_mut(agents).unwrap_or_default()
    }

    fn set(&mut self, index: usize, state: MemberState) {
        self.members(index).iter_mut().for_each(|member| member.state = state);
    }

    /// The part of an agent is over.
    fn end(&mut self, index: usize, outcome: Option<Outcome>) {
        self.set(index, if outcome.is_some() { MemberState::Done } else { MemberState::Failed });
        self.parts[index].outcome = outcome;
        self.parts[index].ended = true;
    }

    async fn report(&mut self, index: usize, report: Report) -> Result<(), RunError> {
        match report {
            Report::Reached(step) => return self.waits(index, Point::Step(step), Duration::ZERO).await,
            Report::Ready { phase, lead } => return self.waits(index, Point::Start(phase), lead).await,
            Report::Trace(TraceBatch(records)) => return self.record(index, records).await,
            Report::Attended { meeting, attendance } => {
                if let Some(said) = self.stage.attends(index, meeting, attendance) {
                    self.say(said).await;
                }
            }
            Report::Progress(PhaseProgress { phase, elapsed, length, done }) => {
                for member in self.members(index) {
                    *member = MemberProgress { done, state: member.state, phase, elapsed, length };
                }
            }
            Report::Members { behind, members } => {
                let PhaseProgress { phase, elapsed, length, .. } = behind;
                for (known, new) in self.members(index).iter_mut().zip(members) {
                    let MemberDone(state, [operations, bytes, errors, latency_ns]) = new;
                    let done = Done { operations, bytes, errors, latency_ns };
                    *known = MemberProgress { done, state, phase, elapsed, length };
                }
            }
            Report::Performed(performed) => self.end(index, Some(Outcome::Performed(performed))),
            Report::Gathered(gathered) => self.end(index, Some(Outcome::Gathered(gathered))),
            Report::Observed(observations) => self.end(index, Some(Outcome::Observed(observations))),
            Report::Failed(failure) => {
                self.end(index, None);
                return Err(RunError::Failed(self.children[index].name.clone(), failure));
            }
            Report::MemberFailed { agent, lost, failure } => {
                self.end(index, None);
                return Err(if lost {
                    RunError::Other(FleetError::Lost { agent, reason: failure.text })
                } else {
                    RunError::Failed(agent, failure)
                });
            }
        }
        Ok(())
    }

    /// An agent waits at a point. The last one has the group say so.
    async fn waits(&mut self, index: usize, point: Point, lead: Duration) -> Result<(), RunError> {
        self.set(index, MemberState::Waiting);
        let said = self.stage.waits(index, point, lead).map_err(|out| {
            RunError::Failed(self.children[out.agent].name.clone(), Failure::of_job(out.text))
        })?;
        if let Some(said) = said {
            self.say(said).await;
        }
        Ok(())
    }

    async fn say(&mut self, said: Said) {
        let said = match said {
            Said::Ready { phase, lead } => {
                self.starting = Some(phase);
                if phase == Start::Measure {
                    self.tell(Some(Edge::Begin));
                }
                Said::Ready { phase, lead: lead + self.delivery }
            }
            said => said,
        };
        if let Some(order) = self.above.say(said).await {
            self.obey(order);
        }
    }

    /// All groups go on.
    fn obey(&mut self, order: Instruction) {
        match order {
            Instruction::Stop => {}
            Instruction::Met { meeting, .. } => {
                for index in self.stage.met(meeting) {
                    self.parts[index].instructor.send(order);
                }
            }
            Instruction::Go(step) => {
                let members = self.stage.go(Point::Step(step));
                let edge = match step {
                    Step::Measured => Some(Edge::End),
                    // All wait until it has been done.
                    Step::Cut => Some(Edge::Cut),
                    _ => None,
                };
                if edge.is_some() && !members.is_empty() {
                    self.tell(edge);
                }
                for index in members {
                    self.parts[index].instructor.send(order);
                    self.set(index, MemberState::Working);
                }
            }
            Instruction::StartAt(instant) => {
                let Some(phase) = self.starting.take() else { return };
                if phase == Start::Measure {
                    self.start_ns = Some(instant);
                }
                for index in self.stage.go(Point::Start(phase)) {
                    let at = self.clocks[index].to_agent(instant);
                    self.parts[index].instructor.send(Instruction::StartAt(at));
                    self.set(index, MemberState::Working);
                }
            }
        }
    }

    /// Passes recorded calls on, with the workers' numbers in the whole.
    async fn record(&mut self, index: usize, mut records: Vec<TraceRecord>) -> Result<(), RunError> {
        let child = &self.children[index];
        if !child.leads {
            let first = self.first_workers.get(child.agents.start).copied().unwrap_or(0);
            for record in &mut records {
                record.worker = record.worker.saturating_add(first);
            }
        }
        self.above.record(records).await.map_err(RunError::Other)
    }

    /// Tells how far the agents are, when it is time to or a moment has come.
    fn tell(&mut self, edge: Option<Edge>) {
        if edge.is_some() || self.observed.elapsed() >= OBSERVE {
            self.observed = Instant::now();
            self.above.progress(&self.progress, edge);
        }
    }
}

/// The phase of the agent that is furthest behind, and what all did.
pub(crate) fn together(members: &[MemberProgress]) -> PhaseProgress {
    let active = members.iter().filter(|member| member.state != MemberState::Done);
    let behind = active.min_by_key(|member| member.phase).or(members.last());
    PhaseProgress {
        phase: behind.map_or(Phase::Prepare, |member| member.phase),
        elapsed: behind.map_or(Duration::ZERO, |member| member.elapsed),
        length: behind.and_then(|member| member.length),
        done: members.iter().map(|member| member.done).sum(),
    }
}
