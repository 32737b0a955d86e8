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
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::Status;

use crate::job::{HookSpec, Side};
use crate::launch::Started;
use crate::protocol::{self, wire};

mod barrier;
mod channel;
mod clocks;
mod config;
mod error;
mod member;
mod run;
mod shares;
mod start;

pub use self::config::{FleetConfig, Launch};
pub use self::error::{FailureKind, FleetError};
pub use self::member::Member;
pub use self::run::{FleetProgress, MemberProgress, MemberState};

use self::channel::Client;
use self::clocks::Known;
use self::member::{Behind, greet};

/// Time between two looks at the flag that stops.
const LOOK: Duration = Duration::from_millis(50);

/// Agents that are greeted at once.
const GREETED: usize = 32;

/// Agents whose clocks are measured at once: few, as each waits for the others in between.
const MEASURED: usize = 4;

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
    /// Starts agents, sees that they are of this version, and relates their clocks. `tell` is told what is going on.
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
        let turn = Arc::new(Semaphore::new(MEASURED));
        let rounds = greeted.iter().map(|(_, connection, ..)| {
            let (turn, connection) = (Arc::clone(&turn), connection.clone());
            async move {
                let _turn = turn.acquire_owned().await;
                clocks::measure(&connection).await
            }
        });
        let measured = all(&runtime, stop, rounds)?;
        let hosts: Vec<String> = greeted.iter().map(|(.., introduction)| introduction.host.clone()).collect();
        // Machines may have been given one name by mistake: what is done once on each host is to be done on all of them.
        let apart = matches!(config.launch, Launch::Opened { .. });
        let names: Vec<&str> = match apart {
            true => greeted[..with_clients].iter().map(|(name, ..)| name.as_str()).collect(),
            false => hosts[..with_clients].iter().map(String::as_str).collect(),
        };
        let roles = shares::divide(config.clients, &names);
        let mut fleet = Self {
            members: Vec::new(),
            behind: Vec::new(),
            neighbours: roles.iter().map(|role| role.neighbours).collect(),
            config: config.clone(),
            lost: None,
            runtime,
        };
        for (index, ((name, connection, process, introduction), measured)) in
            greeted.into_iter().zip(measured).enumerate()
        {
            let clock = match measured {
                Ok(measured) => Known::new(introduction.same_clock, measured),
                Err(status) => return Err(FleetError::Launch(unmeasured(name, &status))),
            };
            fleet.members.push(Member {
                name: name.clone(),
                host: introduction.host,
                pid: introduction.pid,
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
        let open = |join| wire::OpenRequest {
            place: place.to_owned(),
            target: Some(target.into()),
            id: id.to_owned(),
            join,
        };
        let clients = self.with_clients();
        // The first one makes it for all that see the same file system.
        self.each(&clients[..1], &never(), |mut client, _| {
            let open = open(false);
            async move { client.open(open).await }
        })?;
        self.each(&clients[1..], &never(), |mut client, _| {
            let open = open(true);
            async move { client.open(open).await }
        })?;
        Ok(())
    }

    /// Before the first workload of a run; `fresh` leaves no fileset of earlier runs.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub fn begin_run(&mut self, place: &str, fresh: bool) -> Result<(), FleetError> {
        self.each(&self.with_clients(), &never(), |mut client, _| {
            let request = wire::BeginRunRequest { place: place.to_owned(), fresh };
            async move { client.begin_run(request).await }
        })?;
        Ok(())
    }

    /// Reaches the same files by other mount options from now on.
    ///
    /// # Errors
    /// When the target holds other files, and see [`FleetError`].
    pub fn reach_by(&mut self, place: &str, target: &Target) -> Result<(), FleetError> {
        self.each(&self.with_clients(), &never(), |mut client, _| {
            let request = wire::ReachByRequest { place: place.to_owned(), target: Some(target.into()) };
            async move { client.reach_by(request).await }
        })?;
        Ok(())
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
        let bytes = encoded(hook)?;
        let replies = self.each(&whom, stop, |mut client, _| {
            let request = wire::RunHookRequest { hook: bytes.clone() };
            async move { client.run_hook(request).await }
        })?;
        let done = whom.iter().zip(replies).map(|(index, reply)| HookDone {
            agent: self.members[*index].name.clone(),
            ended: reply.ended,
            fine: reply.fine,
            output: reply.output.into(),
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
            self.each(
                some,
                &never(),
                |mut client, _| async move { client.remove(wire::RemoveRequest {}).await },
            )?;
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

    /// Ends what still runs: those that answer are told, the others are killed.
    fn finish(&mut self) {
        let behind = std::mem::take(&mut self.behind);
        self.runtime.block_on(async {
            let deadline = tokio::time::Instant::now() + END;
            let mut tasks = JoinSet::new();
            for mut agent in behind {
                tasks.spawn(async move {
                    let mut client = agent.connection.client.clone();
                    // It ends with its connection as well.
                    let _ = tokio::time::timeout_at(deadline, client.end(wire::EndRequest {})).await;
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
        let replies = self.each(&whom, stop, |mut client, _| {
            let request = wire::EnvironmentRequest { directory: directory.clone() };
            async move { client.environment(request).await }
        })?;
        for (index, reply) in whom.into_iter().zip(replies) {
            let environment: Environment = protocol::decode(&reply.environment).map_err(|error| {
                let agent = self.members[index].name.clone();
                FleetError::Job { agent, text: error.to_string(), kind: FailureKind::Job }
            })?;
            let (host, has_clients) = (self.members[index].host.clone(), self.members[index].share.is_some());
            for member in &mut self.members {
                if member.host == host && member.share.is_some() == has_clients {
                    member.environment = environment.clone();
                }
            }
        }
        Ok(())
    }

    /// Calls some agents at once and waits for all replies, in the order of the agents.
    fn each<R, F, T>(&mut self, whom: &[usize], stop: &AtomicBool, call: F) -> Result<Vec<T>, FleetError>
    where
        F: Fn(Client, usize) -> R,
        R: Future<Output = Result<tonic::Response<T>, Status>> + Send + 'static,
        T: Send + 'static,
    {
        self.usable()?;
        let calls = whom.iter().map(|&index| call(self.behind[index].connection.client.clone(), index));
        let replies = all(&self.runtime, stop, calls)?;
        let mut values = Vec::with_capacity(replies.len());
        let mut failed = None;
        for (&index, reply) in whom.iter().zip(replies) {
            match reply {
                Ok(reply) => values.push(reply.into_inner()),
                Err(status) => {
                    failed.get_or_insert((index, status));
                }
            }
        }
        match failed {
            None => Ok(values),
            Some((index, status)) => {
                let error = self.runtime.block_on(self.behind[index].error(status));
                Err(self.note(error))
            }
        }
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

fn encoded(value: &impl serde::Serialize) -> Result<prost::bytes::Bytes, FleetError> {
    protocol::encode(value).map_err(|error| FleetError::Config(error.to_string()))
}

fn unmeasured(name: String, status: &Status) -> crate::launch::LaunchError {
    crate::launch::LaunchError::new(name, format!("its clock could not be read: {}", status.message()))
}
