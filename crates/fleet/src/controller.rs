//! The controller: starts agents, takes them through a run together, and makes one recording of theirs.
//!
//! The calls are for a program without asynchronous parts; connections are served by one thread beside it, also between
//! the calls, so that agents are seen to die whenever they do.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_record::recording::Recording;
use benchmaster_telemetry::environment::Environment;
use benchmaster_trace::TraceSink;
use benchmaster_workload::target::Target;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::job::{HookSpec, Job, Side};
use crate::launch::Started;
use crate::protocol::{HookOutcome, Request, Role};

mod barrier;
pub(crate) mod clocks;
mod config;
mod connection;
mod error;
pub(crate) mod group;
mod member;
pub(crate) mod run;
mod shares;
#[cfg(test)]
mod simulation;
pub(crate) mod stage;
mod start;
mod top;

pub use self::config::{FleetConfig, Launch};
pub use self::error::FleetError;
pub use self::member::Member;
pub use self::run::{MemberProgress, MemberState};
pub use self::top::FleetProgress;
pub use crate::protocol::FailureKind;

use self::group::{Group, Terms};
use self::top::Top;

/// Time between two looks at the flag that stops.
const LOOK: Duration = Duration::from_millis(50);

/// How long agents may take to end.
pub(crate) const END: Duration = Duration::from_secs(3);

/// Agents and the controller's hold on them. Dropping it ends them.
#[derive(Debug)]
pub struct Fleet {
    /// First those with clients, then the one that looks on at a server.
    members: Vec<Member>,
    /// The same, what they are in a run.
    roles: Vec<Role>,
    group: Group,
    /// Why it is of no more use.
    lost: Option<(String, String)>,
    runtime: Runtime,
}

/// How a command of the study went on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDone {
    /// The agent that ran it.
    pub agent: String,
    /// How it ended, in words.
    pub ended: String,
    /// Whether it did what it should.
    pub fine: bool,
    /// What it printed; of much the end.
    pub output: Vec<u8>,
}

impl Fleet {
    /// Starts agents, checks that they are of this version, and relates their clocks. `tell` gets messages on progress.
    ///
    /// # Errors
    /// When an agent cannot be started or is not of this version; none is left running then.
    pub fn launch(
        config: &FleetConfig,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, FleetError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fleet")
            .enable_io()
            .enable_time()
            .build()
            .map_err(FleetError::Controller)?;
        let (started, server) = runtime.block_on(until(stop, start::all(config, tell)))?;
        tell(&format!("started {} processes", started.len() + usize::from(server.is_some())));
        Self::assemble(config, runtime, started, server, stop, tell)
    }

    /// Makes a fleet of agents that were started.
    fn assemble(
        config: &FleetConfig,
        runtime: Runtime,
        started: Vec<Started>,
        server: Option<Started>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, FleetError> {
        let observers = usize::from(server.is_some());
        let agents = |started: &Started| started.leads.as_ref().map_or(1, |leads| leads.muster.agents());
        let with_clients: usize = started.iter().map(agents).sum();
        if with_clients == 0 || with_clients > config.clients as usize {
            return Err(FleetError::Config(format!(
                "{with_clients} agents for {} clients: each agent is at least one client; raise `[clients] count` or name \
                 fewer hosts",
                config.clients
            )));
        }
        let terms =
            Terms { patience: config.patience, timeout: config.launch_timeout, delivery: config.delivery };
        let started = started.into_iter().chain(server).collect();
        let group = runtime.block_on(until(stop, Group::open(started, terms, tell)))?;
        let agents = group.agents();
        if agents.len() != with_clients + observers {
            let text = format!("{} of {with_clients} agents are there", agents.len() - observers);
            return Err(FleetError::Config(text));
        }
        // Machines may have been given one name by mistake: what is done once on each host is to be done on all of them.
        let apart = matches!(config.launch, Launch::Opened { .. });
        let hosts = agents[..with_clients].iter().map(|agent| if apart { &agent.name } else { &agent.host });
        let mut roles = shares::divide(config.clients, &hosts.map(String::as_str).collect::<Vec<_>>());
        roles.extend((0..observers).map(|_| Role { share: None, neighbours: 1, looks: true }));
        let members = agents.iter().zip(&roles).map(|(agent, role)| Member {
            name: agent.name.clone(),
            host: agent.host.clone(),
            pid: agent.pid,
            share: role.share,
            environment: Environment::default(),
            clock_bound: agent.clock_bound,
        });
        let mut fleet = Self { members: members.collect(), roles, group, lost: None, runtime };
        fleet.look_at_hosts(None, stop)?;
        let worst = fleet.members.iter().map(|member| member.clock_bound).max().unwrap_or_default();
        tell(&format!("clocks of {} agents are known to within {worst:?}", fleet.members.len()));
        Ok(fleet)
    }

    /// The agents: those with clients in the order of their clients, then the one at the server.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Makes the working directory of a study on a target; `place` is what it is called in later calls.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub fn open(&mut self, place: &str, target: &Target, id: &str) -> Result<(), FleetError> {
        let clients = self.with_clients();
        // The first one makes it for all that see the same file system.
        for (some, join) in [(&clients[..1], false), (&clients[1..], true)] {
            self.each::<()>(some, &never(), || Request::Open {
                place: place.to_owned(),
                target: target.into(),
                id: id.to_owned(),
                join,
            })?;
        }
        Ok(())
    }

    /// Before the first workload of a run; `fresh` leaves no fileset of earlier runs.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub fn begin_run(&mut self, place: &str, fresh: bool) -> Result<(), FleetError> {
        let request = || Request::BeginRun { place: place.to_owned(), fresh };
        self.each::<()>(&self.with_clients(), &never(), request).map(drop)
    }

    /// Reaches the same files by other mount options from now on.
    ///
    /// # Errors
    /// When the target holds other files, and see [`FleetError`].
    pub fn reach_by(&mut self, place: &str, target: &Target) -> Result<(), FleetError> {
        let request = || Request::ReachBy { place: place.to_owned(), target: target.into() };
        self.each::<()>(&self.with_clients(), &never(), request).map(drop)
    }

    /// Runs a command of the study once on every host of a side. How it went is not judged here.
    ///
    /// # Errors
    /// When an agent is lost or `stop` is set.
    pub fn run_hook(
        &mut self,
        on: Side,
        hook: &HookSpec,
        stop: &AtomicBool,
    ) -> Result<Vec<HookDone>, FleetError> {
        let whom: Vec<usize> = (0..self.members.len())
            .filter(|&index| match (on, self.members[index].share) {
                (Side::Clients, Some(share)) => share.first_on_host,
                (Side::Server, None) => true,
                (Side::Clients, None) | (Side::Server, Some(_)) => false,
            })
            .collect();
        let outcomes = self.each(&whom, stop, || Request::RunHook(hook.clone()))?;
        let done = whom.iter().zip(outcomes).map(|(&index, HookOutcome { ended, fine, output })| HookDone {
            agent: self.members[index].name.clone(),
            ended,
            fine,
            output,
        });
        Ok(done.collect())
    }

    /// Looks at all hosts, and at the file system of a directory there; by name of the first agent of each.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub fn environment(
        &mut self,
        directory: Option<&Path>,
    ) -> Result<Vec<(String, Environment)>, FleetError> {
        self.look_at_hosts(directory, &never())?;
        let named = self.first_of_hosts();
        let named = named.iter().map(|&index| &self.members[index]);
        Ok(named.map(|member| (member.name.clone(), member.environment.clone())).collect())
    }

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
        let mut top = Top { stop, sink, observe };
        let performed = self.runtime.block_on(self.group.perform(place, job, &self.roles, &mut top));
        let brought = performed.map_err(|error| self.note(error))?;
        let mut gathered = brought.gathered;
        if let Some(observer) = brought.observer {
            gathered.observe(observer, brought.start_ns);
        }
        Ok(gathered.finish(u64::try_from(job.stagger.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Removes the working directories of all places.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub fn remove(&mut self) -> Result<(), FleetError> {
        let clients = self.with_clients();
        // Those that joined the directories of others leave before these are removed.
        for some in [&clients[1..], &clients[..1]] {
            self.each::<()>(some, &never(), || Request::Remove)?;
        }
        Ok(())
    }

    /// Ends all agents and waits for their processes.
    ///
    /// # Errors
    /// None today; agents that do not end in time are killed.
    pub fn end(self) -> Result<(), FleetError> {
        self.finish();
        Ok(())
    }

    /// Ends what still runs: agents that do not end in time are killed.
    fn finish(&self) {
        self.runtime.block_on(self.group.end(Instant::now() + END));
    }

    /// Numbers of the agents that have clients.
    fn with_clients(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|&index| self.members[index].share.is_some()).collect()
    }

    /// Numbers of the first agent of each host, and of the one at the server.
    fn first_of_hosts(&self) -> Vec<usize> {
        let first = |&index: &usize| self.members[index].share.is_none_or(|share| share.first_on_host);
        (0..self.members.len()).filter(first).collect()
    }

    /// Collects the environment of each host, for all agents there.
    fn look_at_hosts(&mut self, directory: Option<&Path>, stop: &AtomicBool) -> Result<(), FleetError> {
        let directory = directory.map(|path| path.to_string_lossy().into_owned());
        let whom = self.first_of_hosts();
        let environments: Vec<Environment> =
            self.each(&whom, stop, || Request::Environment { directory: directory.clone() })?;
        let hosts: HashMap<(&str, bool), &Environment> = whom
            .iter()
            .zip(&environments)
            .map(|(&index, environment)| (self.members[index].on(), environment))
            .collect();
        let found: Vec<Option<Environment>> =
            self.members.iter().map(|member| hosts.get(&member.on()).map(|&known| known.clone())).collect();
        for (member, environment) in self.members.iter_mut().zip(found) {
            member.environment = environment.unwrap_or_default();
        }
        Ok(())
    }

    /// Asks some agents at once and waits for all answers, in the order of the agents.
    fn each<T: DeserializeOwned>(
        &mut self,
        whom: &[usize],
        stop: &AtomicBool,
        request: impl Fn() -> Request,
    ) -> Result<Vec<T>, FleetError> {
        self.usable()?;
        let answers = self.runtime.block_on(until(stop, self.group.each(whom, request)));
        answers.map_err(|error| self.note(error))
    }

    /// Remembers that an agent was lost.
    fn note(&mut self, error: FleetError) -> FleetError {
        if let FleetError::Lost { agent, reason } = &error {
            self.lost.get_or_insert((agent.clone(), reason.clone()));
        }
        error
    }

    /// Whether no agent was lost so far.
    fn usable(&self) -> Result<(), FleetError> {
        match &self.lost {
            None => Ok(()),
            Some((agent, reason)) => {
                Err(FleetError::Lost { agent: agent.clone(), reason: format!("{reason} (earlier)") })
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Waits until a flag is set.
async fn until_set(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Does something unless it is stopped.
async fn until<T>(
    stop: &AtomicBool,
    future: impl Future<Output = Result<T, FleetError>>,
) -> Result<T, FleetError> {
    tokio::select! {
        biased;
        () = until_set(stop) => Err(FleetError::Stopped),
        done = future => done,
    }
}

/// A flag that is never set.
fn never() -> AtomicBool {
    AtomicBool::new(false)
}
