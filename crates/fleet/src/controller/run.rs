//! One job on all agents: barriers, starts, progress, and what they bring home.

use benchmaster_record::phase::Phase;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_telemetry::clock::monotonic_ns;
use benchmaster_workload::conduct::{Assembled, Attendance, Roll, Share, Start, Step};
use benchmaster_workload::execute::{Edge, Progress};
use benchmaster_workload::recording::{Recording, TraceSink};
use prost::bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::codegen::tokio_stream::wrappers::UnboundedReceiverStream;

use super::barrier::{Barrier, Point, Reached};
use super::channel::Client;
use super::error::{FailureKind, FleetError};
use super::{Fleet, LOOK, clocks, encoded};
use crate::clock::Relation;
use crate::job::Job;
use crate::merge::{Onlooker, Part, first_workers, merge};
use crate::protocol::wire::{self, instruction, report};
use crate::protocol::{self, phase_number, step_number, trace};

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

/// Largest result of an agent.
const RESULT: u64 = 1 << 30;

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
    /// Operations finished in this phase so far.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// The phase it is in.
    pub phase: Phase,
    /// What it does.
    pub state: MemberState,
    elapsed: Duration,
    length: Option<Duration>,
}

/// What an agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Its part of the run.
    Working,
    /// It waits for others.
    Waiting,
    /// It has brought home what it recorded.
    Done,
    /// It failed or was lost.
    Failed,
}

/// What comes from an agent.
enum Event {
    Report(report::Kind),
    /// No more comes.
    Ended(Result<(), Status>),
}

/// An agent in a run.
struct Agent {
    instructions: UnboundedSender<wire::Instruction>,
    result: Vec<u8>,
    of: Option<u64>,
    ended: bool,
}

impl Agent {
    fn tell(&self, kind: instruction::Kind) {
        // One that is gone is found by the end of its reports.
        let _ = self.instructions.send(wire::Instruction { kind: Some(kind) });
    }

    fn is_complete(&self) -> bool {
        self.of == Some(self.result.len() as u64)
    }
}

/// A run under way.
struct Running<'s, 'o> {
    agents: Vec<Agent>,
    progress: Vec<MemberProgress>,
    barrier: Barrier,
    roll: Roll,
    /// Where the workers of each agent are in the whole.
    first_workers: Vec<u32>,
    /// By which each agent is told instants of the controller.
    clocks: Vec<clocks::Known>,
    delivery: Duration,
    start_ns: Option<i64>,
    sink: Option<&'s mut dyn TraceSink>,
    observe: &'o mut dyn FnMut(FleetProgress<'_>),
    observed: Instant,
}

/// Why a run cannot go on, and with which agent.
enum Trouble {
    /// The agent's connection failed.
    Status(usize, Status),
    /// It ended without a result.
    Silent(usize),
    /// It reported a failure.
    Failed(usize, wire::Failure),
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
        let (results, start_ns) = ended?;
        let relations = self.relations(stop)?;
        self.merge(job, results, relations, start_ns)
    }

    /// Hands the job to all agents.
    fn begin<'s, 'o>(
        &self,
        place: &str,
        job: &Job,
        sink: Option<&'s mut dyn TraceSink>,
        observe: &'o mut dyn FnMut(FleetProgress<'_>),
        events: &Sender<(usize, Event)>,
        tasks: &mut JoinSet<()>,
    ) -> Result<Running<'s, 'o>, FleetError> {
        let encoded_job = encoded(job)?;
        let mut agents = Vec::with_capacity(self.members.len());
        for (index, member) in self.members.iter().enumerate() {
            let (instructions, outgoing) = unbounded_channel();
            let agent = Agent { instructions, result: Vec::new(), of: None, ended: false };
            agent.tell(instruction::Kind::Task(wire::Task {
                place: place.to_owned(),
                job: encoded_job.clone(),
                share: member.share.map(|share| encoded(&share)).transpose()?,
                neighbours: self.neighbours.get(index).copied().unwrap_or(1),
                looks: member.share.is_none_or(|share| share.first_on_host),
            }));
            agents.push(agent);
            let client = self.behind[index].connection.client.clone();
            let outgoing = UnboundedReceiverStream::new(outgoing);
            tasks.spawn_on(follow(client, outgoing, index, events.clone()), self.runtime.handle());
        }
        let shares: Vec<Share> = self.members.iter().filter_map(|member| member.share).collect();
        let round_trip = self.behind.iter().map(|behind| behind.clock.round_trip).max().unwrap_or_default();
        let each = DELIVERY_EACH * u32::try_from(agents.len()).unwrap_or(u32::MAX);
        let idle = MemberProgress {
            operations: 0,
            bytes: 0,
            phase: Phase::Prepare,
            state: MemberState::Working,
            elapsed: Duration::ZERO,
            length: None,
        };
        Ok(Running {
            progress: vec![idle; agents.len()],
            agents,
            barrier: Barrier::new(self.members.iter().map(|member| member.share.is_some())),
            roll: Roll::new(self.members.iter().map(|member| member.share.is_some())),
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
    ) -> Result<(Vec<Vec<u8>>, Option<i64>), FleetError> {
        let mut trouble: Option<Trouble> = None;
        let mut deadline: Option<Instant> = None;
        while running.agents.iter().any(|agent| !agent.ended) {
            let event = self
                .runtime
                .block_on(async { tokio::time::timeout(LOOK, incoming.recv()).await.ok().flatten() });
            if stop.load(Ordering::Relaxed) && !matches!(trouble, Some(Trouble::Other(FleetError::Stopped))) {
                trouble = Some(Trouble::Other(FleetError::Stopped));
                running.stop();
                deadline = Some(Instant::now() + STOPPING);
            }
            if let Some((index, event)) = event
                && let Err(found) = running.take(index, event)
                && trouble.is_none()
            {
                running.stop();
                trouble = Some(found);
                deadline = Some(Instant::now() + FAILING);
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                break;
            }
            running.tell(None);
        }
        let Some(trouble) = trouble else {
            let results = running.agents.into_iter().map(|agent| agent.result).collect();
            return Ok((results, running.start_ns));
        };
        let error = match trouble {
            Trouble::Status(index, status) => self.runtime.block_on(self.behind[index].error(status)),
            Trouble::Silent(index) => {
                let otherwise = "its part of the run ended without a result";
                self.runtime.block_on(self.behind[index].lost(otherwise))
            }
            Trouble::Failed(index, failure) => {
                let kind = if failure.kind == "stopped" { FailureKind::Stopped } else { FailureKind::Job };
                FleetError::Job { agent: self.members[index].name.clone(), text: failure.text, kind }
            }
            Trouble::Other(error) => error,
        };
        Err(self.note(error))
    }

    /// Measures the clocks again that were not looked at for long.
    fn refresh_clocks(&mut self, stop: &AtomicBool) -> Result<(), FleetError> {
        for index in 0..self.behind.len() {
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError::Stopped);
            }
            if self.behind[index].clock.is_stale()
                && let Err(status) = self.runtime.block_on(self.behind[index].renew_clock())
            {
                let error = self.runtime.block_on(self.behind[index].error(status));
                return Err(self.note(error));
            }
        }
        Ok(())
    }

    /// The clocks of all agents over the run that is just over.
    fn relations(&mut self, stop: &AtomicBool) -> Result<Vec<Relation>, FleetError> {
        let drifting: Vec<usize> =
            (0..self.behind.len()).filter(|&index| self.behind[index].clock.can_drift()).collect();
        let turn = std::sync::Arc::new(tokio::sync::Semaphore::new(super::MEASURED));
        let rounds = drifting.iter().map(|&index| {
            let (turn, connection) = (turn.clone(), self.behind[index].connection.clone());
            async move {
                let _turn = turn.acquire_owned().await;
                clocks::measure(&connection).await
            }
        });
        let mut measured = super::all(&self.runtime, stop, rounds)?.into_iter();
        let mut relations = Vec::with_capacity(self.behind.len());
        for index in 0..self.behind.len() {
            let round = if drifting.contains(&index) { measured.next() } else { None };
            match round.transpose() {
                Ok(round) => relations.push(self.behind[index].clock.renew(round)),
                Err(status) => {
                    let error = self.runtime.block_on(self.behind[index].error(status));
                    return Err(self.note(error));
                }
            }
        }
        Ok(relations)
    }

    /// One recording of all.
    fn merge(
        &self,
        job: &Job,
        results: Vec<Vec<u8>>,
        relations: Vec<Relation>,
        start_ns: Option<i64>,
    ) -> Result<Recording, FleetError> {
        let (mut parts, mut onlookers) = (Vec::new(), Vec::new());
        for ((member, result), relation) in self.members.iter().zip(results).zip(relations) {
            let unreadable = |error: protocol::Unreadable| FleetError::Job {
                agent: member.name.clone(),
                text: error.to_string(),
                kind: FailureKind::Job,
            };
            let (name, host, pid) = (member.name.clone(), member.host.clone(), member.pid);
            match member.share {
                Some(share) => {
                    let performed = protocol::decode(&result).map_err(unreadable)?;
                    parts.push(Part { name, host, pid, share, relation, performed });
                }
                None => {
                    let beside = protocol::decode(&result).map_err(unreadable)?;
                    onlookers.push(Onlooker { name, host, pid, relation, beside });
                }
            }
        }
        let stagger_ns = u64::try_from(job.stagger.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = start_ns.unwrap_or_else(monotonic_ns);
        Ok(merge(&job.workload, parts, onlookers, start_ns, stagger_ns)?)
    }
}

/// Hands an agent its instructions and passes its reports on.
async fn follow(
    mut client: Client,
    instructions: UnboundedReceiverStream<wire::Instruction>,
    index: usize,
    events: Sender<(usize, Event)>,
) {
    let result = async {
        let mut reports = client.perform(instructions).await?.into_inner();
        while let Some(report) = reports.message().await? {
            if let Some(kind) = report.kind {
                // Nobody listens any more when the run was given up.
                let _ = events.send((index, Event::Report(kind))).await;
            }
        }
        Ok(())
    };
    let result = result.await;
    let _ = events.send((index, Event::Ended(result))).await;
}

impl Running<'_, '_> {
    /// Tells all agents to stop.
    fn stop(&self) {
        for agent in self.agents.iter().filter(|agent| !agent.ended) {
            agent.tell(instruction::Kind::Stop(wire::Nothing {}));
        }
    }

    /// Takes what came from an agent.
    fn take(&mut self, index: usize, event: Event) -> Result<(), Trouble> {
        let kind = match event {
            Event::Report(kind) => kind,
            Event::Ended(result) => {
                let agent = &mut self.agents[index];
                agent.ended = true;
                let fine = agent.is_complete();
                self.progress[index].state = if fine { MemberState::Done } else { MemberState::Failed };
                return match result {
                    Ok(()) if fine => Ok(()),
                    Ok(()) => Err(Trouble::Silent(index)),
                    Err(status) => Err(Trouble::Status(index, status)),
                };
            }
        };
        match kind {
            report::Kind::Met(step) => self.waits(index, Point::Step(step.number), Duration::ZERO),
            report::Kind::Ready(ready) => {
                self.waits(index, Point::Start(ready.phase), Duration::from_nanos(ready.lead_ns))
            }
            report::Kind::Came(meeting) => {
                self.came(index, &meeting);
                Ok(())
            }
            report::Kind::Progress(progress) => {
                let member = &mut self.progress[index];
                member.operations = progress.operations;
                member.bytes = progress.bytes;
                member.phase = Phase::from_name(&progress.phase).unwrap_or(Phase::Prepare);
                member.elapsed = Duration::from_nanos(progress.elapsed_ns);
                member.length = Some(progress.length_ns).filter(|ns| *ns != 0).map(Duration::from_nanos);
                Ok(())
            }
            report::Kind::Trace(bytes) => self.record(index, &bytes),
            report::Kind::Done(piece) => {
                let agent = &mut self.agents[index];
                if piece.of > RESULT || *agent.of.get_or_insert(piece.of) != piece.of {
                    let text = format!("its result of {} bytes is too large", piece.of);
                    return Err(Trouble::Failed(index, wire::Failure { kind: "job".into(), text }));
                }
                agent.result.extend_from_slice(&piece.bytes);
                Ok(())
            }
            report::Kind::Failed(failure) => Err(Trouble::Failed(index, failure)),
        }
    }

    /// An agent waits at a point. The last one lets all go on.
    fn waits(&mut self, index: usize, point: Point, lead: Duration) -> Result<(), Trouble> {
        self.progress[index].state = MemberState::Waiting;
        let reached = self.barrier.wait(index, point, lead).map_err(|out| {
            let failure = wire::Failure { kind: "job".into(), text: out.text };
            Trouble::Failed(out.agent, failure)
        })?;
        let Some(Reached { point, agents, lead }) = reached else { return Ok(()) };
        let measure = phase_number(Start::Measure);
        match point {
            Point::Start(phase) => {
                if phase == measure {
                    self.tell(Some(Edge::Begin));
                }
                let wait = i64::try_from((lead + self.delivery).as_nanos()).unwrap_or(i64::MAX / 2);
                let instant = monotonic_ns() + wait;
                for &agent in &agents {
                    let at = self.clocks[agent].to_agent(instant);
                    self.agents[agent].tell(instruction::Kind::StartAt(at));
                }
                if phase == measure {
                    self.start_ns = Some(instant);
                }
            }
            Point::Step(number) => {
                if number == step_number(Step::Measured) {
                    self.tell(Some(Edge::End));
                }
                for &agent in &agents {
                    self.agents[agent].tell(instruction::Kind::Go(wire::Step { number }));
                }
            }
        }
        for agent in agents {
            self.progress[agent].state = MemberState::Working;
        }
        Ok(())
    }

    /// Workers of an agent came to a meeting, or no longer take part. The last ones let all go on.
    fn came(&mut self, index: usize, meeting: &wire::Meeting) {
        let Ok(number) = u16::try_from(meeting.number) else { return };
        let attendance = match meeting.time {
            0 => Attendance::Left,
            time => Attendance::Here(time),
        };
        let Some(Assembled { time, processes, .. }) = self.roll.note(index, number, attendance) else {
            return;
        };
        for agent in processes {
            self.agents[agent].tell(instruction::Kind::Held(wire::Meeting { number: meeting.number, time }));
        }
    }

    /// Writes recorded calls, with the workers' numbers in the whole.
    fn record(&mut self, index: usize, bytes: &Bytes) -> Result<(), Trouble> {
        let unreadable = |error: protocol::Unreadable| {
            Trouble::Failed(index, wire::Failure { kind: "job".into(), text: error.to_string() })
        };
        let mut records = trace::decode(bytes).map_err(unreadable)?;
        let first = self.first_workers.get(index).copied().unwrap_or(0);
        for record in &mut records {
            record.worker = record.worker.saturating_add(first);
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        sink.write(&records).map_err(|error| Trouble::Other(FleetError::Trace(error)))
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
            operations: self.progress.iter().map(|member| member.operations).sum(),
            bytes: self.progress.iter().map(|member| member.bytes).sum(),
            edge,
        };
        (self.observe)(FleetProgress { total, members: &self.progress });
    }
}
