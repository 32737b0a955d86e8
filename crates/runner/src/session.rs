//! One session: run after run is set up, executed, checked and stored.

mod execute;
mod failure;
mod lab;
mod set_up;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Instant;

use benchmaster_analysis::derived;
use benchmaster_analysis::responses::{Course, cut_warm_up, keep_warm_up, responses};
use benchmaster_analysis::schedule::{Next, ScheduledRun, is_interrupted, next, primary, values};
use benchmaster_design::stream_seed;
use benchmaster_record::results::{
    NetworkAchieved, RetryRecord, RunKey, RunRecord, StudyRecord, StudyResults,
};
use benchmaster_store::Store;
use benchmaster_store::trace::TraceWriter;
use benchmaster_telemetry::Environment;
use jiff::{Timestamp, Zoned};

use self::execute::{Executed, is_traced};
use self::set_up::fatal;
use super::baseline::Baselines;
use super::crew::{Crew, CrewError};
use super::lab::{Labs, is_end, text};
use super::moment;
use super::network::merged;
use super::outcome::events;
use super::services::Reached;
use super::setup::SetUp;
use super::targets::{Targets, check_same_targets, environments, is_known};
use super::{Outcome, Request, RunError, RunEvent};
use benchmaster_diagnosis::validity::{self, Subject};
use benchmaster_study::flow_operations;
use benchmaster_study::plan::PlannedTreatment;
use benchmaster_study::response_names::throughputs_until;
use benchmaster_study::settings::{Cut, Launcher, OnFailure, Settings};

/// A session at work.
pub(super) struct Runner<'a> {
    request: &'a Request<'a>,
    study: &'a StudyRecord,
    earlier: &'a StudyResults,
    store: &'a mut Store,
    session: u32,
    targets: Targets,
    crew: Option<Crew>,
    labs: Labs,
    /// Whether a machine of the lab was found out to be lost, so that the lab is of no more use.
    lost_machine: bool,
    set_up: SetUp,
    baselines: Baselines,
    environments: BTreeMap<String, Environment>,
    /// Where the run in flight belongs.
    scheduled: Option<ScheduledRun>,
    observe: &'a mut dyn FnMut(RunEvent<'_>),
}

/// What became of an attempt at a run.
enum Attempt {
    Done(Box<RunRecord>),
    /// What was recorded until somebody was lost, who it is, and why.
    Lost(Box<RunRecord>, Party, String),
    Stopped,
}

/// Who can be lost, by name.
enum Party {
    Agent(String),
    Machine(String),
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(name) => write!(f, "agent `{name}`"),
            Self::Machine(name) => write!(f, "machine `{name}`"),
        }
    }
}

impl<'a> Runner<'a> {
    /// Makes the working directories that can be made now, in place of those that a killed session left, and begins the
    /// session.
    pub(super) fn begin(
        request: &'a Request<'a>,
        earlier: &'a StudyResults,
        store: &'a mut Store,
        observe: &'a mut dyn FnMut(RunEvent<'_>),
    ) -> Result<Self, RunError> {
        let mut runner = Self {
            request,
            study: &earlier.study,
            earlier,
            store,
            session: 0,
            targets: Targets::new(&earlier.study.id),
            crew: None,
            labs: Labs::new(request.plan, &earlier.study.id),
            lost_machine: false,
            set_up: SetUp::default(),
            baselines: Baselines::default(),
            environments: BTreeMap::new(),
            scheduled: None,
            observe,
        };
        let begun = runner.begin_session();
        if begun.is_err() {
            // The error is that of opening; the next session removes what is left.
            let _ = runner.clean_up();
        }
        begun?;
        Ok(runner)
    }

    fn begin_session(&mut self) -> Result<(), RunError> {
        let treatments = self.request.plan.all_treatments();
        let here = |planned: &&PlannedTreatment| {
            is_known(&planned.settings) && planned.settings.launcher() == Launcher::Threads
        };
        for planned in treatments.filter(here) {
            let reached = self.targets.reach(&planned.settings)?;
            self.open(&planned.settings, &reached).map_err(fatal)?;
        }
        let environments = environments(self.request.plan, &mut self.targets)?;
        check_same_targets(self.earlier, &environments)?;
        self.session = self.store.begin_session(self.request.command, Timestamp::now(), &environments)?;
        self.environments = environments;
        (self.observe)(RunEvent::Begun {
            done: self.earlier.runs.len() as u32,
            interruptions: self.earlier.sessions.iter().filter(|session| is_interrupted(session)).count(),
            environments: &self.environments,
            scratch: self.targets.scratch.as_deref(),
        });
        Ok(())
    }

    pub(super) fn session(&self) -> u32 {
        self.session
    }

    /// Does all runs that are left.
    pub(super) fn all(&mut self, earlier: &StudyResults) -> Result<Outcome, RunError> {
        let mut done = values(self.study, &earlier.runs);
        loop {
            let Next::Run { key, position, run, begins_block } = next(self.study, &done) else {
                return Ok(Outcome::Complete);
            };
            self.wait_for(&run, begins_block);
            if self.stopped() {
                return Ok(Outcome::Stopped);
            }
            let plan = self.request.plan;
            let Some(planned) = plan.treatment(key.treatment, run.block) else {
                return Err(RunError::NoTreatment { treatment: key.treatment });
            };
            self.scheduled = Some(run);
            (self.observe)(RunEvent::RunBegins {
                position,
                treatment: &planned.record,
                replicate: key.replicate,
            });
            self.store.begin_run(self.session, key, position)?;
            let Some(run) = self.one(key, position, planned)? else { return Ok(Outcome::Stopped) };
            self.store.commit_run(&run)?;
            done.push((key, primary(&self.study.primary_response, &run)));
            (self.observe)(RunEvent::RunStored { run: &run, treatment: &planned.record });
            if let (Some(reason), OnFailure::Stop) = (run.failure, planned.settings.run.on_failure) {
                let (treatment, replicate) = (planned.record.label.clone(), key.replicate);
                return Err(RunError::RunFailed { treatment, replicate, reason });
            }
        }
    }

    /// Waits for the time of day at which a block begins, when a run is its first.
    fn wait_for(&mut self, run: &ScheduledRun, begins_block: bool) {
        let block = run.block.and_then(|block| self.request.plan.blocks.get(block as usize));
        let Some((block, at)) = block.and_then(|block| Some((block, block.at?))) else { return };
        if !begins_block {
            return;
        }
        if let Some(until) = moment::next_at(&Zoned::now(), at) {
            (self.observe)(RunEvent::Waiting { block: &block.name, until: &until });
            moment::wait_until(until.timestamp(), self.request.stop);
        }
    }

    fn stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    /// One run, tried as often as the study allows; `None` when it was stopped.
    fn one(
        &mut self,
        key: RunKey,
        position: u32,
        planned: &PlannedTreatment,
    ) -> Result<Option<RunRecord>, RunError> {
        let mut retries = Vec::new();
        loop {
            let (started, began) = (Timestamp::now(), Instant::now());
            let attempt = self.attempt(key, position, planned);
            let attempt = self.look_after_machines(attempt, key, retries.len());
            let (run, agent, reason) = match attempt? {
                Attempt::Stopped => return Ok(None),
                Attempt::Done(run) => return Ok(Some(RunRecord { retries, ..*run })),
                Attempt::Lost(..) if self.stopped() => return Ok(None),
                Attempt::Lost(run, party, reason) => (run, party.to_string(), reason),
            };
            // Nothing can be asked of who is lost; what it was to remove is taken over by those who come next.
            self.disband();
            self.leave_lost_machines()?;
            let text = format!("{agent}: {reason}");
            if retries.len() as u64 >= u64::from(planned.settings.run.retries) {
                return Ok(Some(RunRecord { failure: Some(text), retries, ..*run }));
            }
            (self.observe)(RunEvent::Retry { reason: &text });
            let elapsed_ns = super::network::nanos(began.elapsed());
            retries.push(RetryRecord { started, elapsed_ns, agent: Some(agent), reason });
        }
    }

    fn attempt(
        &mut self,
        key: RunKey,
        position: u32,
        planned: &PlannedTreatment,
    ) -> Result<Attempt, RunError> {
        let settings = &planned.settings;
        let (started, began) = (Timestamp::now(), Instant::now());
        let mut run = Box::new(RunRecord {
            key,
            position,
            stage: self.scheduled.map_or(0, |run| run.stage),
            block: self.scheduled.and_then(|run| run.block),
            whole_plot: self.scheduled.and_then(|run| run.whole_plot),
            session: self.session,
            parameters: planned.parameters(),
            started,
            elapsed_ns: 0,
            failure: None,
            recordings: Vec::new(),
            responses: Vec::new(),
            checks: Vec::new(),
            events: Vec::new(),
            traces: BTreeMap::new(),
            service: None,
            lab: None,
            server_use: Vec::new(),
            retries: Vec::new(),
        });
        let done = self.workloads(&mut run, key, planned);
        if run.failure.is_some() {
            run.responses.clear();
        }
        run.elapsed_ns = super::network::nanos(began.elapsed());
        match done {
            Ok(()) => Ok(Attempt::Done(run)),
            Err((_, CrewError::Stopped)) => Ok(Attempt::Stopped),
            Err(_) if self.stopped() => Ok(Attempt::Stopped),
            Err((_, CrewError::Lost { agent, reason })) => {
                run.responses.clear();
                Ok(Attempt::Lost(run, Party::Agent(agent), reason))
            }
            Err((workload, CrewError::Failed(reason))) => {
                run.failure = Some(format!("workload `{workload}`: {reason}"));
                run.responses.clear();
                Ok(Attempt::Done(run))
            }
            Err((workload, CrewError::Execute(source))) => {
                let (treatment, replicate) = (planned.record.label.clone(), key.replicate);
                Err(RunError::Execute { treatment, replicate, workload, source })
            }
            Err((_, CrewError::Fatal(error))) => Err(*error),
        }
        .inspect_err(|_| log::debug!("run of `{}` gave up", settings.target.place()))
    }

    /// Sets up and does all workloads of a run; in case of trouble with the name of the workload.
    fn workloads(
        &mut self,
        run: &mut RunRecord,
        key: RunKey,
        planned: &PlannedTreatment,
    ) -> Result<(), (String, CrewError)> {
        let settings = &planned.settings;
        let none = |trouble: CrewError| (String::new(), trouble);
        let reached = self.prepare(key, planned).map_err(none)?;
        run.service = reached.service.clone().or_else(|| self.labs.service(settings));
        run.lab = self.labs.record(settings);
        if let Some(wired) = self.targets.services.wired(reached.network) {
            let of_run = format!("hash/{}/{}", key.treatment, key.replicate);
            wired.begin_run(&settings.network, stream_seed(self.study.seed, &of_run));
        }
        for ((name, spec), (_, workload)) in settings.workloads.iter().zip(&planned.workloads) {
            let named = |trouble: CrewError| (name.clone(), trouble);
            let mut trace = if is_traced(settings, workload) {
                let writer = TraceWriter::create(self.store.directory(), key, name);
                Some(writer.map_err(|error| named(RunError::from(error).into()))?)
            } else {
                None
            };
            let Executed { mut recording, server_use, lab, carried } =
                self.execute(key, settings, &reached, (name, workload), trace.as_mut()).map_err(named)?;
            run.server_use.extend(server_use);
            if let Some(trace) = trace {
                let facts = self.trace_facts(workload, &recording);
                let file = trace.finish(&facts).map_err(|error| named(RunError::from(error).into()))?;
                run.traces.insert(name.clone(), file);
            }
            if let Some(service) = &mut run.service {
                service.achieved = match (service.achieved.take(), carried) {
                    (Some(before), Some(now)) => Some(merged(&before, &now)),
                    (None, Some(now)) => Some(now),
                    (_, None) => self.achieved(&reached),
                };
            }
            let course = match settings.run.cut {
                Cut::Mser5 => cut_warm_up(&mut recording),
                Cut::None => {
                    keep_warm_up(&mut recording);
                    Course::Unknown
                }
            };
            let (service, server) =
                (run.service.as_ref(), run.server_use.iter().find(|used| used.workload == *name));
            let unknown = Environment::default();
            let environment = self.environments.values().next().unwrap_or(&unknown);
            let lab = lab.as_ref();
            let subject =
                Subject { workload, recording: &recording, environment, course, service, server, lab };
            run.checks.extend(validity::check(subject));
            run.events.extend(events(&recording));
            if let Some(what) = &recording.corruption {
                run.failure = Some(format!("workload `{name}`: wrong data were read: {what}"));
                run.recordings.push(recording);
                break;
            }
            run.responses.extend(responses(&recording, throughputs_until(spec)));
            run.responses.extend(flow_operations::response(&recording, workload));
            run.responses.extend(derived::responses(&recording, &run.server_use));
            run.recordings.push(recording);
        }
        Ok(())
    }

    fn achieved(&mut self, reached: &Reached) -> Option<NetworkAchieved> {
        self.targets.services.achieved(reached.network, &reached.target)
    }
}
