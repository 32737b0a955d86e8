//! A lab that is up.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::net::{IpAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use benchmaster_netem::link::Link;
use benchmaster_netem::namespace::{Namespace, NamespaceError};
use benchmaster_netem::wire::Report;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::backend::{BackEnd, Unavailable};
use crate::config::{KnfsdConfig, LabConfig, ServerKind};
use crate::cut::{CutFacts, PowerCut};
use crate::facts::{LabFacts, LabStatus, MachineProblem, ProblemKind};
use crate::guest::protocol::write;
use crate::guest::{self, AskError, Command, GuestFacts, Output, Request, knfsd};
use crate::kernel::KernelError;
use crate::last_lines::last_lines;
use crate::machine::{MachineError, MachineState};
use crate::network;
use crate::root::{Consent, RootError};
use crate::supervisor::socket::{self, Ask};
use crate::supervisor::state::{self, Directory, Known};
use crate::supervisor::{Failure, Word};
use crate::virtual_time::{self, Inside, InsideError};

mod bring_up;
mod end;
mod problems;

use bring_up::{check, plan, program, start};
use end::End;

/// How long the holder may take to answer what it knows.
const ANSWER: Duration = Duration::from_secs(30);
/// How long it may take to set the server up.
const SET_UP: Duration = Duration::from_secs(250);
/// How long a power cut may take, with a repair of the server's file system.
const CUT: Duration = Duration::from_secs(400);
/// How long a lab may take to be gone after it was ended.
const END: Duration = Duration::from_secs(15);
/// How long a machine may take to answer what it knows before it hangs.
const HANGS: Duration = Duration::from_secs(10);

/// Why something could not be done with a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no such lab.
    #[error("the lab `{0}` is not up; run `benchmaster lab up --name {0}`")]
    NotUp(String),
    #[error(
        "the lab `{0}` is already up; see `benchmaster lab status`, end it with `benchmaster lab down --name {0}`"
    )]
    UpAlready(String),
    /// It was up once: its supervisor has ended by something else than `down`, and all its machines with it.
    #[error("the lab `{0}` has ended; run `benchmaster lab up --name {0}`")]
    Ended(String),
    /// A configuration that cannot be.
    #[error("`{key}` of a lab cannot be {value}: {needed}")]
    Config {
        /// The field of [`LabConfig`].
        key: &'static str,
        value: String,
        needed: String,
    },
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// No root for the guests.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A machine did not start.
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The supervisor or a machine did not do it.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The supervisor ended without a word.
    #[error("the lab's supervisor ended without a word{0}")]
    Supervisor(String),
    #[error("the lab's directory {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    /// In a kernel on virtual time.
    #[error(transparent)]
    Inside(#[from] InsideError),
    /// The machine did not do what it was asked for.
    #[error("the machine `{machine}`: {source}")]
    Asked { machine: String, source: AskError },
}

pub use self::problems::warnings as kernel_warnings;

/// A lab that is up. One that was brought up here and is not lasting ends when this is dropped, or this process does.
#[derive(Debug)]
pub struct Lab {
    config: LabConfig,
    directory: Directory,
    namespace: Arc<Namespace>,
    /// Process 1 of the lab.
    process: u32,
    /// The socket with which a lab that is not lasting ends.
    lifeline: Option<UnixStream>,
    /// How much of each console was looked at.
    seen: Mutex<HashMap<String, u64>>,
    /// In a kernel on virtual time: the nodes that are the machines.
    inside: Option<Box<Inside>>,
}

impl Lab {
    /// Brings a lab up. Nothing is installed: what is missing is an error that names it.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn up(config: &LabConfig, tell: &mut dyn FnMut(&str)) -> Result<Self, LabError> {
        Self::up_with(config, &program()?, &mut |_| false, tell)
    }

    /// Brings a lab up whose supervisor is `program` (this program's file, which serves `__supervisor` and
    /// `guest`). `consent` is asked before packages are installed.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn up_with(
        config: &LabConfig,
        program: &Path,
        consent: Consent<'_>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        check(config)?;
        let directory = Directory::of(&config.name);
        if virtual_time::is_inside() {
            return Self::inside(config, directory, tell);
        }
        let failed = |source| LabError::Directory { path: directory.path().to_owned(), source };
        let lock = directory.take().map_err(failed)?;
        let lock = lock.ok_or_else(|| LabError::UpAlready(config.name.clone()))?;
        directory.clear().map_err(failed)?;
        let brought_up = plan(config, &directory, consent, tell)
            .and_then(|plan| start(&plan, &directory, program, lock, tell));
        let (lifeline, process) = match brought_up {
            Ok(started) => started,
            Err(error) => {
                // What the machines and the supervisor said stays, until the next lab of the name.
                directory.keep_logs();
                return Err(error);
            }
        };
        let started = state::started(process).unwrap_or_default();
        let known = Known { config: config.clone(), process, started };
        directory.make_known(&known).map_err(failed)?;
        if config.lasting {
            write(&mut &lifeline, &Word::Stay).map_err(failed)?;
        }
        let lifeline = (!config.lasting).then_some(lifeline);
        Self::of(known, directory, lifeline)
    }

    /// The lab of this kernel on virtual time.
    fn inside(
        config: &LabConfig,
        directory: Directory,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        let inside = Inside::start(config.clients, tell)?;
        if let ServerKind::Knfsd(server) = &config.server {
            inside.serve(server)?;
        }
        Ok(Self {
            config: config.clone(),
            directory,
            namespace: Arc::clone(inside.namespace()),
            process: std::process::id(),
            lifeline: None,
            seen: Mutex::default(),
            inside: Some(Box::new(inside)),
        })
    }

    /// A lab that is up; `None`: there is none of that name.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn attach(name: &str) -> Result<Option<Self>, LabError> {
        let directory = Directory::of(name);
        if !directory.is_held() {
            return Ok(None);
        }
        // It may be coming up just now.
        let Some(known) = directory.known() else { return Ok(None) };
        let lab = Self::of(known, directory, None)?;
        for (name, console) in lab.consoles() {
            let length = fs::metadata(console).map(|facts| facts.len()).unwrap_or_default();
            lab.seen.lock().insert(name, length);
        }
        Ok(Some(lab))
    }

    fn of(known: Known, directory: Directory, lifeline: Option<UnixStream>) -> Result<Self, LabError> {
        let (config, process) = (known.config, known.process);
        let (answer, descriptor) = ask_holder::<()>(&directory, &config.name, &Ask::Namespace, ANSWER)?;
        answer?;
        let namespace = descriptor.ok_or_else(|| LabError::Ended(config.name.clone()))?;
        let namespace = Arc::new(Namespace::from(namespace));
        let seen = Mutex::default();
        Ok(Self { config, directory, namespace, process, lifeline, seen, inside: None })
    }

    /// Ends a lab and everything in it. What an earlier one left behind that did not end by itself is removed too.
    ///
    /// # Errors
    /// [`LabError::NotUp`]
    pub fn down(name: &str, tell: &mut dyn FnMut(&str)) -> Result<(), LabError> {
        let directory = Directory::of(name);
        let failed = |source| LabError::Directory { path: directory.path().to_owned(), source };
        if !directory.is_held() {
            if directory.path().exists() {
                directory.remove().map_err(failed)?;
                tell(&format!("the lab `{name}` had ended already; what was left of it is removed"));
                return Ok(());
            }
            return Err(LabError::NotUp(name.into()));
        }
        let known = directory.known().ok_or_else(|| LabError::NotUp(name.into()))?;
        let end = End::of(known.process, known.started);
        match ask_holder::<()>(&directory, name, &Ask::Down, END) {
            Ok((answer, _)) => answer?,
            Err(error) => {
                tell(&format!("{error}; it is killed"));
                end.kill();
            }
        }
        end.wait(END);
        directory.remove().map_err(failed)
    }

    /// The labs of this user.
    pub fn list() -> Vec<LabStatus> {
        let status = |(name, directory): (String, Directory)| {
            let known = directory.known().filter(|_| directory.is_held());
            let asked = || ask_holder(&directory, &name, &Ask::Facts, HANGS).ok()?.0.ok();
            LabStatus {
                process: known.as_ref().map(|known| known.process),
                facts: known.and_then(|_| asked()),
                directory: directory.path().to_owned(),
                name,
            }
        };
        state::all().into_iter().map(status).collect()
    }

    /// As asked for when it was brought up; [`Lab::facts`] has what it is by now.
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    /// What it consists of.
    ///
    /// # Errors
    /// [`LabError::Ended`]
    pub fn facts(&self) -> Result<LabFacts, LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.facts(&self.config)?);
        }
        self.ask_holder(&Ask::Facts, ANSWER)
    }

    /// Where this program is on the machines: guests have it in their root, processes of this host where it was started from.
    ///
    /// # Errors
    /// [`LabError::Directory`]
    pub fn program(&self) -> Result<String, LabError> {
        match self.config.back_end {
            Some(BackEnd::Namespaces) => Ok(program()?.display().to_string()),
            _ => Ok("/benchmaster".to_owned()),
        }
    }

    /// A connection that is standard input and output of a program in a machine.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn stream(&self, machine: &str, argv: &[String]) -> Result<TcpStream, LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.stream(machine, argv)?);
        }
        let stream = self.connect(machine)?;
        self.asked(machine, &stream, &Request::Stream { argv: argv.to_vec() }, ANSWER).map(|()| stream)
    }

    /// Runs a program in a machine to its end.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn run(&self, machine: &str, command: &Command) -> Result<Output, LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.run(machine, command)?);
        }
        // It ends by the guest's clock; this is for guests that hang.
        let limit = command.limit + ANSWER;
        self.ask(machine, &Request::Run(command.clone()), limit)
    }

    /// A connection to a program on a terminal of `(rows, columns)`.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn shell(&self, machine: &str, argv: &[String], size: (u16, u16)) -> Result<TcpStream, LabError> {
        let stream = self.connect(machine)?;
        let request = Request::Shell { argv: argv.to_vec(), rows: size.0, columns: size.1 };
        self.asked(machine, &stream, &request, ANSWER).map(|()| stream)
    }

    /// Asks the control server of a machine.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn ask<T: DeserializeOwned>(
        &self,
        machine: &str,
        request: &Request,
        limit: Duration,
    ) -> Result<T, LabError> {
        self.asked(machine, &self.connect(machine)?, request, limit)
    }

    /// What a machine says of itself.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn guest_facts(&self, machine: &str) -> Result<GuestFacts, LabError> {
        self.ask(machine, &Request::Facts, HANGS)
    }

    fn asked<T: DeserializeOwned>(
        &self,
        machine: &str,
        stream: &TcpStream,
        request: &Request,
        limit: Duration,
    ) -> Result<T, LabError> {
        guest::ask(stream, request, limit)
            .map_err(|source| LabError::Asked { machine: machine.to_owned(), source })
    }

    /// A connection to the control server of a machine.
    fn connect(&self, machine: &str) -> Result<TcpStream, LabError> {
        let connect = Ask::Connect(machine.to_owned());
        let (answer, descriptor) = ask_holder::<()>(&self.directory, &self.config.name, &connect, ANSWER)?;
        answer?;
        let descriptor = descriptor.ok_or_else(|| LabError::Ended(self.config.name.clone()))?;
        Ok(TcpStream::from(descriptor))
    }

    /// The server's network namespace: the embedded server of a lab without a server machine listens in it.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// Where clients find the server.
    pub fn server_address(&self) -> IpAddr {
        network::server_address().into()
    }

    /// Changes the links of all clients of an emulated lab.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn set_link(&self, link: &Link) -> Result<(), LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.set_link(link)?);
        }
        self.ask_holder(&Ask::SetLink(*link), ANSWER)
    }

    /// What the wire of an emulated lab carried since it was cleared.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn network_report(&self) -> Result<Report, LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.network_report()?);
        }
        self.ask_holder(&Ask::NetworkReport, ANSWER)
    }

    /// Resets the counts of [`Lab::network_report`].
    ///
    /// # Errors
    /// [`LabError`]
    pub fn clear_network_report(&self) -> Result<(), LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.clear_network_report()?);
        }
        self.ask_holder(&Ask::ClearNetworkReport, ANSWER)
    }

    /// Sets the server machine up in another way, without booting it again.
    ///
    /// # Errors
    /// [`LabError`]
    pub fn restart_server(&self, config: &KnfsdConfig) -> Result<knfsd::Started, LabError> {
        if let Some(inside) = &self.inside {
            return Ok(inside.serve(config)?);
        }
        self.ask_holder(&Ask::RestartServer(config.clone()), SET_UP)
    }

    /// Cuts the power of the server machine: it is killed at once, its disk keeps what such a disk can keep, and it boots
    /// again and serves what it served, at the same address. Clients stay up. Returns when NFS is served again. The next
    /// [`Lab::restart_server`] makes the file system again.
    ///
    /// # Errors
    /// [`LabError`]; [`Failure::NoPowerCut`] if the lab was brought up without [`LabConfig::power_cuts`].
    pub fn cut_server(&self, cut: &PowerCut) -> Result<CutFacts, LabError> {
        if self.inside.is_some() {
            let reason = "on virtual time it is in the kernel that the clients have".to_owned();
            return Err(Failure::NoPowerCut { reason }.into());
        }
        self.ask_holder(&Ask::CutServer(*cut), CUT)
    }

    /// What only a kernel on virtual time has: faults of its network and its server.
    pub fn on_virtual_time(&self) -> Option<&Inside> {
        self.inside.as_deref()
    }

    /// The consoles of the machines, by name: the server's first, if it is one.
    pub fn consoles(&self) -> Vec<(String, PathBuf)> {
        if self.inside.is_some() {
            // There is one, the host's to keep.
            return Vec::new();
        }
        let server = self.config.server.is_machine().then(|| "server".to_owned());
        let names = server.into_iter().chain((1..=self.config.clients).map(|client| format!("c{client}")));
        names.map(|name| (name.clone(), self.directory.console(&name))).collect()
    }

    /// The directory that machines see as `/host`.
    pub fn share(&self) -> PathBuf {
        self.directory.share()
    }

    /// What went wrong in machines since the last call: those that have ended, those that do not answer within 10 s, and what
    /// kernels warned of.
    pub fn problems(&self) -> Vec<MachineProblem> {
        if self.inside.is_some() {
            // With its kernel this process ends as well.
            return Vec::new();
        }
        let states: HashMap<String, MachineState> = match self.facts() {
            Ok(facts) => facts.machines.into_iter().map(|machine| (machine.name, machine.state)).collect(),
            Err(_) => HashMap::new(),
        };
        let consoles = self.consoles();
        thread::scope(|scope| {
            let look = |(name, console): &(String, PathBuf)| {
                let (name, console, state) = (name.clone(), console.clone(), states.get(name).cloned());
                scope.spawn(move || self.problems_of(&name, &console, state))
            };
            let looking: Vec<_> = consoles.iter().map(look).collect();
            looking.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }

    fn problems_of(&self, name: &str, console: &Path, state: Option<MachineState>) -> Vec<MachineProblem> {
        let new = self.new_console_text(name, console);
        let problem = |what, lines| MachineProblem { machine: name.to_owned(), what, lines };
        let mut found = Vec::new();
        let warnings = problems::warnings(&new);
        if !warnings.is_empty() {
            found.push(problem(ProblemKind::Warned, warnings));
        }
        let last = || last_lines(console, 20);
        match state {
            Some(MachineState::Running) => {
                if self.guest_facts(name).is_err() {
                    found.push(problem(ProblemKind::Hangs, last()));
                }
            }
            Some(MachineState::Ended(cause)) => {
                let lines = [vec![cause.to_string()], last()].concat();
                found.push(problem(ProblemKind::Ended, lines));
            }
            None => {
                let lines = [vec!["the lab's supervisor has ended".to_owned()], last()].concat();
                found.push(problem(ProblemKind::Ended, lines));
            }
        }
        found
    }

    /// What a console has got since it was last looked at; whole lines.
    fn new_console_text(&self, name: &str, console: &Path) -> String {
        let mut seen = self.seen.lock();
        let from = seen.entry(name.to_owned()).or_default();
        let read = || {
            let mut file = File::open(console)?;
            file.seek(SeekFrom::Start(*from))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        let mut bytes = read().unwrap_or_default();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
        *from += whole as u64;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn ask_holder<T: DeserializeOwned>(&self, ask: &Ask, limit: Duration) -> Result<T, LabError> {
        Ok(ask_holder(&self.directory, &self.config.name, ask, limit)?.0?)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(lifeline) = self.lifeline.take() {
            let end = End::of(self.process, state::started(self.process).unwrap_or_default());
            drop(lifeline);
            end.wait(END);
        }
    }
}

/// What a holder answers, and the descriptor with it.
type Answered<T> = (Result<T, Failure>, Option<std::os::fd::OwnedFd>);

fn ask_holder<T: DeserializeOwned>(
    directory: &Directory,
    name: &str,
    ask: &Ask,
    limit: Duration,
) -> Result<Answered<T>, LabError> {
    let asked = UnixStream::connect(directory.socket()).and_then(|socket| socket::ask(&socket, ask, limit));
    asked.map_err(|error| match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::ConnectionRefused
        | ErrorKind::BrokenPipe
        | ErrorKind::ConnectionReset
        | ErrorKind::UnexpectedEof => LabError::Ended(name.to_owned()),
        _ => {
            let what = format!("; it has not answered within {} s: {error}", limit.as_secs());
            LabError::Supervisor(what)
        }
    })
}
