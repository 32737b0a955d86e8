//! The controller: starts agents, takes them through a run together, and makes one recording of theirs.
//!
//! The calls are for a program without asynchronous parts; connections are served by one thread beside it, also between
//! the calls, so that agents are seen to die whenever they do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_telemetry::environment::Environment;
use benchmaster_workload::target::Target;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::job::{HookSpec, Side};
use crate::launch::{LaunchError, Started};
use crate::protocol::{HookOutcome, Request};

mod barrier;
mod clocks;
mod config;
mod connection;
mod error;
mod member;
mod run;
mod shares;
mod start;

pub use self::config::{FleetConfig, Launch};
pub use self::error::FleetError;
pub use self::member::Member;
pub use self::run::{FleetProgress, MemberProgress, MemberState};
pub use crate::protocol::FailureKind;

use self::clocks::Known;
use self::connection::CallError;
use self::member::{Behind, Greeted, greet};

/// Time between two looks at the flag that stops.
const LOOK: Duration = Duration::from_millis(50);

/// Agents that are greeted at once.
const GREETED: usize = 32;

/// How long agents may take to end.
const END: Duration = Duration::from_secs(3);

/// Agents and the controller's hold on them. Dropping it ends them.
#[derive(Debug)]
pub struct Fleet {
    /// First those with clients, then the one that looks on at a server.
    members: Vec<Member>,
    behind: Vec<Behind>,
    neighbours: Vec<u32>,
    config: FleetConfig,
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
        let (started, server) = runtime.block_on(async {
            tokio::select! {
                started = start::all(config, tell) => started,
                () = until_set(stop) => Err(FleetError::Stopped),
            }
        })?;
        tell(&format!("started {} agents", started.len() + usize::from(server.is_some())));
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
        let with_clients = started.len();
        if with_clients == 0 || with_clients > config.clients as usize {
            return Err(FleetError::Config(format!(
                "{with_clients} agents for {} clients: each agent is at least one client; raise `[clients] count` or name \
                 fewer hosts",
                config.clients
            )));
        }
        let (patience, timeout) = (config.patience, config.launch_timeout);
        let turn = Arc::new(Semaphore::new(GREETED));
        let greetings = started.into_iter().chain(server).map(|started| {
            let turn = Arc::clone(&turn);
            async move {
                let _turn = turn.acquire_owned().await;
                greet(started, patience, timeout).await
            }
        });
        let greeted = all(&runtime, stop, greetings)?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let measured = all(&runtime, stop, clocks::rounds(greeted.iter().map(|agent| &agent.connection)))?;
        // Machines may have been given one name by mistake: what is done once on each host is to be done on all of them.
        let apart = matches!(config.launch, Launch::Opened { .. });
        let host = |agent: &'_ Greeted| if apart { agent.name.clone() } else { agent.host.clone() };
        let hosts: Vec<String> = greeted[..with_clients].iter().map(host).collect();
        let roles = shares::divide(config.clients, &hosts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut fleet = Self {
            members: Vec::new(),
            behind: Vec::new(),
            neighbours: roles.iter().map(|role| role.neighbours).collect(),
            config: config.clone(),
            lost: None,
            runtime,
        };
        for (index, (greeted, measured)) in greeted.into_iter().zip(measured).enumerate() {
            let Greeted { name, connection, process, host, pid, same_clock } = greeted;
            let clock = match measured {
                Ok(measured) => Known::new(same_clock, measured),
                Err(error) => {
                    let reason = format!("its clock could not be read: {error}");
                    return Err(LaunchError::new(name, reason).into());
                }
            };
            fleet.members.push(Member {
                name: name.clone(),
                host,
                pid,
                share: roles.get(index).map(|role| role.share),
                environment: Environment::default(),
                clock_bound: clock.bound(),
            });
            fleet.behind.push(Behind { name, connection, clock, process });
        }
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
    pub fn end(mut self) -> Result<(), FleetError> {
        self.finish();
        Ok(())
    }

    /// Ends what still runs: agents that do not end in time are killed.
    fn finish(&mut self) {
        let behind = std::mem::take(&mut self.behind);
        self.runtime.block_on(async {
            let deadline = tokio::time::Instant::now() + END;
            let mut tasks = JoinSet::new();
            for mut agent in behind {
                tasks.spawn(async move {
                    // It ends with its connection as well.
                    let end = agent.connection.call::<()>(Request::End);
                    let _ = tokio::time::timeout_at(deadline, end).await;
                    agent.process.end(deadline).await;
                });
            }
            while tasks.join_next().await.is_some() {}
        });
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
        for (index, environment) in whom.into_iter().zip(environments) {
            let (host, has_clients) = (self.members[index].host.clone(), self.members[index].share.is_some());
            for member in &mut self.members {
                if member.host == host && member.share.is_some() == has_clients {
                    member.environment = environment.clone();
                }
            }
        }
        Ok(())
    }

    /// Asks some agents at once and waits for all answers, in the order of the agents.
    fn each<T: DeserializeOwned + Send + 'static>(
        &mut self,
        whom: &[usize],
        stop: &AtomicBool,
        request: impl Fn() -> Request,
    ) -> Result<Vec<T>, FleetError> {
        self.usable()?;
        let calls = whom.iter().map(|&index| {
            let (connection, request) = (self.behind[index].connection.clone(), request());
            async move { connection.call(request).await }
        });
        let answers = all(&self.runtime, stop, calls)?;
        // The first that failed is reported.
        let answers = whom.iter().zip(answers).map(|(&index, answer)| answer.map_err(|error| (index, error)));
        answers.collect::<Result<_, _>>().map_err(|(index, error)| self.failed(index, error))
    }

    /// The error of an agent's call that failed.
    fn failed(&mut self, index: usize, error: CallError) -> FleetError {
        let error = self.runtime.block_on(self.behind[index].error(error));
        self.note(error)
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

/// Does all at once and waits for all of them, in their order, or until it is stopped; they are given up then.
fn all<T, R>(
    runtime: &Runtime,
    stop: &AtomicBool,
    futures: impl Iterator<Item = R>,
) -> Result<Vec<T>, FleetError>
where
    R: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut tasks = JoinSet::new();
    for (index, future) in futures.enumerate() {
        tasks.spawn_on(async move { (index, future.await) }, runtime.handle());
    }
    let mut done: Vec<Option<T>> = (0..tasks.len()).map(|_| None).collect();
    runtime.block_on(async {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(FleetError::Stopped);
            }
            match tokio::time::timeout(LOOK, tasks.join_next()).await {
                Err(_) => {}
                Ok(None) => return Ok(()),
                Ok(Some(Ok((index, value)))) => done[index] = Some(value),
                Ok(Some(Err(error))) => return Err(FleetError::Controller(error.into())),
            }
        }
    })?;
    Ok(done.into_iter().flatten().collect())
}

/// A flag that is never set.
fn never() -> AtomicBool {
    AtomicBool::new(false)
}
