//! Who executes the runs: this process, or a fleet of agents.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use benchmaster_fleet::controller::{
    FailureKind, Fleet, FleetConfig, FleetError, Launch, MemberProgress, MemberState,
};
use benchmaster_fleet::job::{HookSpec, Job, Side};
use benchmaster_fleet::launch::guests::Opened;
use benchmaster_lab::Lab;
use benchmaster_netem::namespace::Namespace;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::HookRecord;
use benchmaster_telemetry::Environment;
use benchmaster_trace::TraceSink;
use benchmaster_workload::execute::{Edge, ExecuteError, Progress};
use benchmaster_workload::target::Target;

use super::hooks::{self, Ended};
use super::lab::SERVER_MACHINE;
use super::local::{LocalClients, LocalError};
use super::{ClientProgress, ClientState, RunError};
use benchmaster_study::settings::{ClientSettings, Launcher, Settings};

/// The least time without a sign of life after which an agent in a lab is lost.
const PATIENCE_IN_LAB: Duration = Duration::from_secs(15);

/// What went wrong with whoever executes.
#[derive(Debug)]
pub(super) enum CrewError {
    /// A process is lost, and the run with it. It can be tried again.
    Lost {
        /// Its agent's name.
        agent: String,
        /// Why.
        reason: String,
    },
    /// The run went wrong, and would not be better for being repeated.
    Failed(String),
    /// It was stopped from outside.
    Stopped,
    /// The workload cannot be carried out.
    Execute(Box<ExecuteError>),
    /// Anything else that ends the session.
    Fatal(Box<RunError>),
}

impl From<RunError> for CrewError {
    fn from(error: RunError) -> Self {
        Self::Fatal(Box::new(error))
    }
}

impl From<LocalError> for CrewError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Execute(error) => error.into(),
            LocalError::Area(error) => RunError::from(error).into(),
            LocalError::Merge(error) => RunError::from(error).into(),
            LocalError::Namespace(error) => {
                RunError::from(benchmaster_netem::network::NetworkError::from(error)).into()
            }
            error @ LocalError::Panicked => Self::Failed(error.to_string()),
        }
    }
}

impl From<FleetError> for CrewError {
    fn from(error: FleetError) -> Self {
        match error {
            FleetError::Stopped => Self::Stopped,
            FleetError::Job { kind: FailureKind::Stopped, .. } => Self::Stopped,
            FleetError::Lost { agent, reason } => Self::Lost { agent, reason },
            error => RunError::from(error).into(),
        }
    }
}

impl From<ExecuteError> for CrewError {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Stopped => Self::Stopped,
            // It is kept, as failed.
            error @ (ExecuteError::ReadBack(_) | ExecuteError::WorkerLost { .. }) => {
                Self::Failed(error.to_string())
            }
            error => Self::Execute(Box::new(error)),
        }
    }
}

/// A moment of a job.
pub(super) enum Moment<'a> {
    /// Counters of others are to be read.
    Edge(Edge),
    /// It goes on.
    Progress(Progress, &'a [ClientProgress]),
}

/// What one host did of a command.
pub(super) struct Done {
    pub(super) agent: String,
    pub(super) ended: Ended,
}

impl Done {
    /// What is stored of it.
    pub(super) fn record(&self, of: &HookRecord) -> HookRecord {
        HookRecord {
            agent: self.agent.clone(),
            ended: self.ended.ended.clone(),
            succeeded: self.ended.succeeded,
            output: self.ended.output.clone(),
            ..of.clone()
        }
    }
}

/// Who executes.
#[derive(Debug)]
pub(super) enum Crew {
    /// Clients in this process.
    Local(LocalClients),
    /// Agents.
    Away(Box<Away>),
}

/// Agents, and what they were launched for.
#[derive(Debug)]
pub(super) struct Away {
    fleet: Fleet,
    clients: ClientSettings,
    number: u32,
    launcher: Launcher,
    server: Option<String>,
    lab: bool,
    namespaces: Vec<Arc<Namespace>>,
    /// Places with the export that files were prepared on.
    open: Vec<(String, Target)>,
}

impl Crew {
    /// Whoever a treatment wants.
    pub(super) fn launch(
        settings: &Settings,
        namespaces: &[Arc<Namespace>],
        lab: Option<&Lab>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, CrewError> {
        let launcher = settings.launcher();
        let number = settings.clients();
        let launch = match launcher {
            Launcher::Threads => return Ok(Self::Local(LocalClients::default())),
            Launcher::Local => Launch::Local { processes: number, namespaces: namespaces.to_vec() },
            Launcher::Ssh => Launch::Ssh {
                hosts: settings.hosts().map_err(|error| RunError::Target {
                    target: "clients.hosts".into(),
                    problem: error.to_string(),
                })?,
                options: settings.clients.ssh_options.clone(),
                binary_on_hosts: settings.clients.binary.as_ref().map(PathBuf::from),
            },
            Launcher::Lab => in_lab(settings, lab)?,
            Launcher::External => Launch::External {
                agents: settings.nodes(),
                address: settings.clients.address.clone().unwrap_or_else(|| "127.0.0.1".into()),
                credentials: settings.clients.credentials.clone().unwrap_or_default().into(),
            },
            Launcher::Slurm => Launch::Slurm {
                nodes: nodes(settings),
                options: settings.clients.slurm_options.clone(),
                address: settings.clients.address.clone().or_else(|| {
                    // Whoever reaches the embedded server reaches the controller.
                    let listen =
                        settings.server.listens().ok().filter(|_| settings.server.listen.is_some())?;
                    Some(listen.ip().to_string())
                }),
            },
        };
        let binary = std::env::current_exe().map_err(FleetError::Controller).map_err(CrewError::from)?;
        let usual = FleetConfig::new(launch, number, binary);
        let config = FleetConfig {
            patience: match launcher {
                // A machine has a part of a processor, and may get none of it for seconds.
                Launcher::Lab => settings.clients.patience.0.max(PATIENCE_IN_LAB),
                _ => settings.clients.patience.0,
            },
            server: settings.server.other_host().map(str::to_owned),
            launch_timeout: match launcher {
                // Images are fetched, and queues waited in.
                Launcher::External => Duration::from_mins(10),
                _ => usual.launch_timeout,
            },
            ..usual
        };
        Ok(Self::Away(Box::new(Away {
            fleet: Fleet::launch(&config, stop, tell)?,
            clients: settings.clients.clone(),
            number,
            launcher,
            server: settings.server.other_host().map(str::to_owned),
            lab: settings.has_server_machine(),
            namespaces: namespaces.to_vec(),
            open: Vec::new(),
        })))
    }

    /// Whether it is what a treatment wants.
    pub(super) fn serves(&self, settings: &Settings, namespaces: &[Arc<Namespace>]) -> bool {
        let launcher = settings.launcher();
        match self {
            Self::Local(_) => launcher == Launcher::Threads,
            Self::Away(away) => {
                let apart = |clients: &ClientSettings| ClientSettings {
                    // They are told to each run.
                    stagger: Default::default(),
                    count: None,
                    ..clients.clone()
                };
                let same = |(one, other): (&Arc<Namespace>, &Arc<Namespace>)| Arc::ptr_eq(one, other);
                away.launcher == launcher
                    && away.number == settings.clients()
                    && away.server.as_deref() == settings.server.other_host()
                    && apart(&away.clients) == apart(&settings.clients)
                    && away.namespaces.len() == namespaces.len()
                    && away.namespaces.iter().zip(namespaces).all(same)
            }
        }
    }

    /// Makes the working directory of a place, or reaches it by `target` from now on.
    pub(super) fn open(
        &mut self,
        place: &str,
        target: &Target,
        id: &str,
        namespaces: &[Arc<Namespace>],
    ) -> Result<(), CrewError> {
        let same = match self {
            Self::Local(here) => here.open(place, target, id, namespaces.first())?,
            Self::Away(away) => away.open(place, target, id)?,
        };
        if same {
            Ok(())
        } else {
            let problem = "is not the export that files were prepared on".to_owned();
            Err(RunError::Target { target: target.to_string(), problem }.into())
        }
    }

    /// Forgets filesets that must not be carried over into another run.
    pub(super) fn begin_run(&mut self, place: &str, fresh: bool) -> Result<(), CrewError> {
        match self {
            Self::Local(here) => Ok(here.begin_run(place, fresh)?),
            Self::Away(away) => Ok(away.fleet.begin_run(place, fresh)?),
        }
    }

    /// Does a job with all clients.
    pub(super) fn perform(
        &mut self,
        place: &str,
        job: &Job,
        clients: u32,
        sink: Option<&mut dyn TraceSink>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(Moment<'_>),
    ) -> Result<Recording, CrewError> {
        match self {
            Self::Local(here) => {
                let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
                let recording = here.perform(place, job, clients, sink, stop, &mut |progress| {
                    if let Some(edge) = progress.edge {
                        return observe(Moment::Edge(edge));
                    }
                    let client = ClientProgress {
                        name: host.clone(),
                        host: host.clone(),
                        done: progress.done,
                        ..ClientProgress::default()
                    };
                    observe(Moment::Progress(progress, &[client]));
                })?;
                Ok(recording)
            }
            Self::Away(away) => {
                let names: Vec<_> = away
                    .fleet
                    .members()
                    .iter()
                    .map(|member| (member.name.clone(), member.host.clone()))
                    .collect();
                let recording = away.fleet.perform(place, job, sink, stop, &mut |progress| {
                    if let Some(edge) = progress.total.edge {
                        return observe(Moment::Edge(edge));
                    }
                    let client =
                        |(member, (name, host)): (&MemberProgress, &(String, String))| ClientProgress {
                            name: name.clone(),
                            host: host.clone(),
                            done: member.done,
                            state: match member.state {
                                MemberState::Working => ClientState::Working,
                                MemberState::Waiting => ClientState::Waiting,
                                MemberState::Done => ClientState::Done,
                                MemberState::Failed => ClientState::Failed,
                            },
                        };
                    let clients: Vec<_> = progress.members.iter().zip(&names).map(client).collect();
                    observe(Moment::Progress(progress.total, &clients));
                });
                recording.map_err(|error| match error {
                    // What the workload met there; others may do better in the next run.
                    FleetError::Job { agent, text, kind: FailureKind::Job } => {
                        CrewError::Failed(format!("agent `{agent}`: {text}"))
                    }
                    error => error.into(),
                })
            }
        }
    }

    /// Runs a command once on each host of a side.
    pub(super) fn run_hook(
        &mut self,
        on: Side,
        hook: &HookSpec,
        stop: &AtomicBool,
    ) -> Result<Vec<Done>, CrewError> {
        let here = || vec![Done { agent: "controller".into(), ended: hooks::run(hook, stop) }];
        match self {
            // Clients and server are on this host.
            Self::Local(_) => Ok(here()),
            Self::Away(away) if on == Side::Server && away.server.is_none() && !away.lab => Ok(here()),
            Self::Away(away) => {
                let done = away.fleet.run_hook(on, hook, stop)?.into_iter();
                let done = done.map(|done| Done {
                    agent: done.agent,
                    ended: Ended {
                        succeeded: done.fine,
                        ended: done.ended,
                        output: String::from_utf8_lossy(&done.output).into_owned(),
                    },
                });
                Ok(done.collect())
            }
        }
    }

    /// The environment of each host as seen from a directory.
    pub(super) fn environment(
        &mut self,
        directory: Option<&Path>,
    ) -> Result<Vec<(String, Environment)>, CrewError> {
        match self {
            Self::Local(_) => {
                let environment = benchmaster_telemetry::environment::collect(directory);
                Ok(vec![(environment.host.clone(), environment)])
            }
            Self::Away(away) => {
                let found = away.fleet.environment(directory)?.into_iter();
                Ok(found.map(|(_, environment)| (environment.host.clone(), environment)).collect())
            }
        }
    }

    /// Removes all working directories.
    pub(super) fn remove(&mut self) -> Result<(), CrewError> {
        match self {
            Self::Local(here) => Ok(here.remove()?),
            Self::Away(away) => {
                away.open.clear();
                Ok(away.fleet.remove()?)
            }
        }
    }

    /// Ends it: nothing is left.
    pub(super) fn end(self) -> Result<(), CrewError> {
        match self {
            Self::Local(mut here) => Ok(here.remove()?),
            Self::Away(away) => Ok(away.fleet.end()?),
        }
    }
}

/// Agents in the machines of a lab.
fn in_lab(settings: &Settings, lab: Option<&Lab>) -> Result<Launch, CrewError> {
    // It was brought up before.
    let lab =
        lab.ok_or_else(|| CrewError::Failed("there is no lab; internal error, please report it".into()))?;
    let program = lab.program().map_err(RunError::from)?;
    let agent = [program.as_str(), "agent", "--stdio"].map(str::to_owned);
    let open = |name: &str| {
        let stream = lab.stream(name, &agent).map_err(RunError::from)?;
        Ok::<_, CrewError>(Opened::new(name, stream))
    };
    let clients = (1..=settings.clients()).map(|number| open(&format!("c{number}")));
    let clients = clients.collect::<Result<_, _>>()?;
    // A machine that loses power takes its agent with it.
    let watched = settings.has_server_machine() && !settings.cuts_power();
    let server = watched.then(|| open(SERVER_MACHINE)).transpose()?;
    Ok(Launch::Opened { clients, server })
}

/// Nodes to ask Slurm for: as the study says, those of the allocation that is there already, or one for each client.
fn nodes(settings: &Settings) -> Option<u32> {
    let allocated = std::env::var_os("SLURM_JOB_ID").is_some();
    settings.clients.nodes.or_else(|| (!allocated).then(|| settings.clients()))
}

impl Away {
    /// See [`Here::open`].
    fn open(&mut self, place: &str, target: &Target, id: &str) -> Result<bool, CrewError> {
        let exports = |target: &Target| match target {
            Target::Nfs(target) => Some(target.options.export.clone()),
            Target::Directory(_) => None,
        };
        if let Some((_, known)) = self.open.iter_mut().find(|(known, _)| known == place) {
            if exports(known) != exports(target) || (exports(target).is_none() && known != target) {
                return Ok(false);
            }
            if known != target {
                self.fleet.reach_by(place, target)?;
                *known = target.clone();
            }
            return Ok(true);
        }
        // Exports may be the same directory: each needs a name of its own.
        let others = self.open.iter().filter(|(_, target)| matches!(target, Target::Nfs(_))).count();
        let id = match target {
            Target::Nfs(_) if others > 0 => format!("{id}-{others}"),
            _ => id.to_owned(),
        };
        self.fleet.open(place, target, &id)?;
        self.open.push((place.to_owned(), target.clone()));
        Ok(true)
    }
}
