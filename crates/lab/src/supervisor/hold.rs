//! The holder of a lab: brings it up, serves requests, ends it.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use super::boot::{Running, boot};
use super::networks::{Networks, control_tap, data_tap};
use super::socket::{Answer, Ask, answer};
use super::state::Directory;
use super::{Failure, News, Plan, Word, wake_ups};
use crate::backend::BackEnd;
use crate::config::{KnfsdConfig, LabConfig, ServerKind};
use crate::facts::{LabFacts, MachineFacts};
use crate::guest::protocol::{read, write};
use crate::guest::{Request, knfsd};
use crate::kernel::KernelOrigin;
use crate::network;

/// How long the server may take to be set up: mkfs, and a grace period.
const SET_UP: Duration = Duration::from_secs(240);

/// What the threads of a holder share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Plan,
    /// As it is by now: the server may have been set up in another way.
    pub(super) config: Mutex<LabConfig>,
    /// Of those who set the server up in another way or cut its power.
    pub(super) turn: Mutex<()>,
    machines: Vec<Running>,
    networks: Networks,
}

/// Brings the lab up that the first message of the socket describes, and holds it until its end.
pub(super) fn hold(mut news: &UnixStream) -> Result<(), Failure> {
    let plan = read(&mut news).map_err(Failure::other("cannot read what the lab is to be"))?;
    let plan: Plan = benchmaster_frames::decode(&plan).map_err(|error| Failure::Other(error.to_string()))?;
    let directory = Directory::at(plan.directory.clone());
    let shared = Arc::new(OnceLock::<Shared>::new());
    let lifeline = news.try_clone().map_err(Failure::other("no descriptor is left"))?;
    spawn("lifeline", {
        let (shared, directory) = (Arc::clone(&shared), directory.clone());
        move || {
            if !stays(&lifeline) {
                end(shared.get(), &directory, None);
            }
        }
    })?;
    let brought_up = bring_up(plan, news)?;
    let lab: &Shared = shared.get_or_init(|| brought_up);
    let listener =
        UnixListener::bind(directory.socket()).map_err(Failure::other("cannot make the lab's socket"))?;
    write(&mut news, &News::Up).map_err(Failure::other("nothing waits for the lab"))?;
    thread::scope(|scope| {
        loop {
            let Ok((socket, _)) = listener.accept() else {
                // There are too many descriptors for now.
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            let directory = &directory;
            let serve = move || requests(socket, lab, directory);
            // Without a thread the connection is closed, and the other side says so.
            let _ = thread::Builder::new().name("requests".into()).spawn_scoped(scope, serve);
        }
    })
}

fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = thread::Builder::new().name(name.into()).spawn(what);
    thread.map(drop).map_err(Failure::other("cannot start a thread"))
}

/// Waits until the process that brings the lab up has said that it is to stay, or is gone.
fn stays(mut lifeline: &UnixStream) -> bool {
    let word = read(&mut lifeline).ok().and_then(|word| benchmaster_frames::decode(&word).ok());
    word == Some(Word::Stay)
}

/// Ends the lab, and says so when its directory is gone. Whatever still runs ends with process 1, which ends with this process.
fn end(shared: Option<&Shared>, directory: &Directory, asked: Option<&UnixStream>) -> ! {
    shared.into_iter().flat_map(|shared| &shared.machines).for_each(Running::kill);
    let done = match directory.remove() {
        Ok(()) => Answer::Ok(()),
        Err(error) => Err(Failure::other("cannot remove the lab's directory")(error)),
    };
    if let Some(socket) = asked {
        // Who asked may be gone.
        let _ = answer(socket, &done, None);
    }
    std::process::exit(0)
}

fn bring_up(plan: Plan, news: &UnixStream) -> Result<Shared, Failure> {
    let tell = |text: String| {
        // If nothing listens, the lifeline ends everything.
        let _ = write(&mut &*news, &News::Tell(text));
    };
    let has_machines = plan.client.is_some();
    let networks = if has_machines {
        Networks::for_machines(&plan.config)?
    } else {
        Networks::for_processes(&plan.config)?
    };
    if has_machines {
        // Machines open their TAP devices here, and relays to servers elsewhere are started already.
        networks.machines().enter().map_err(|error| Failure::Other(error.to_string()))?;
    }
    if plan.back_end == BackEnd::Uml {
        let interfaces: Vec<_> = (u32::from(!plan.config.server.is_machine())..=plan.config.clients)
            .flat_map(|machine| {
                let data = if machine == 0 { network::server_mac() } else { network::client_mac(machine) };
                [(data_tap(machine), data), (control_tap(machine), network::control_mac(machine))]
            })
            .map(|(tap, mac)| wake_ups::Interface { tap, mac })
            .collect();
        wake_ups::start(networks.machines(), &interfaces)
            .map_err(Failure::other("cannot send what wakes the machines up"))?;
    }
    let machines = boot(&plan, &networks)?;
    for machine in &machines {
        tell(format!("{} is up after {:.2} s", machine.name, machine.boot_time.as_secs_f64()));
    }
    let config = Mutex::new(plan.config.clone());
    let shared = Shared { plan, config, turn: Mutex::default(), machines, networks };
    match &shared.plan.config.server {
        ServerKind::Knfsd(knfsd) => {
            let started = set_up(&shared, knfsd)?;
            let waited = if started.grace.is_zero() {
                String::new()
            } else {
                format!(", after {:.1} s of grace", started.grace.as_secs_f64())
            };
            tell(format!("the server serves with {} threads{waited}", started.threads));
        }
        ServerKind::Ganesha => {
            shared.machine("server")?.ask::<()>(&Request::StartGanesha, SET_UP)?;
            tell("the server is nfs-ganesha".into());
        }
        ServerKind::Memory | ServerKind::Address(_) => {}
    }
    Ok(shared)
}

fn set_up(shared: &Shared, config: &KnfsdConfig) -> Result<knfsd::Started, Failure> {
    shared.machine("server")?.ask(&Request::StartServer(config.clone()), SET_UP)
}

/// Serves the requests of a connection, one after the other.
fn requests(socket: UnixStream, shared: &Shared, directory: &Directory) {
    while let Ok(asked) = read(&mut &socket) {
        let asked = match benchmaster_frames::decode(&asked) {
            Ok(asked) => asked,
            Err(error) => {
                let reason = format!("the lab was brought up by another build: {error}");
                let _ = answer(&socket, &Answer::<()>::Err(Failure::Other(reason)), None);
                return;
            }
        };
        let answered = match asked {
            Ask::Down => end(Some(shared), directory, Some(&socket)),
            Ask::Facts => reply(&socket, Ok(shared.facts())),
            Ask::Connect(machine) => with_descriptor(&socket, shared.connect(&machine)),
            Ask::Namespace => {
                let descriptor = shared.networks.server().and_then(|namespace| {
                    namespace.as_fd().try_clone_to_owned().map_err(Failure::other("no descriptor is left"))
                });
                with_descriptor(&socket, descriptor)
            }
            Ask::SetLink(link) => reply(&socket, shared.networks.set_link(link)),
            Ask::NetworkReport => reply(&socket, shared.networks.report()),
            Ask::ClearNetworkReport => reply(&socket, shared.networks.clear()),
            Ask::RestartServer(config) => reply(&socket, shared.restart_server(config)),
            Ask::CutServer(cut) => reply(&socket, shared.cut_server(cut)),
        };
        if answered.is_err() {
            return;
        }
    }
}

fn reply<T: Serialize>(socket: &UnixStream, result: Answer<T>) -> std::io::Result<()> {
    answer(socket, &result, None)
}

fn with_descriptor(socket: &UnixStream, result: Result<OwnedFd, Failure>) -> std::io::Result<()> {
    match result {
        Ok(descriptor) => answer(socket, &Answer::Ok(()), Some(descriptor.as_fd())),
        Err(failure) => answer(socket, &Answer::<()>::Err(failure), None),
    }
}

impl Shared {
    pub(super) fn machine(&self, name: &str) -> Result<&Running, Failure> {
        let found = self.machines.iter().find(|machine| machine.name == name);
        found.ok_or_else(|| Failure::NoMachine {
            machine: name.to_owned(),
            there: self.machines.iter().map(|machine| machine.name.clone()).collect(),
        })
    }

    fn connect(&self, machine: &str) -> Result<OwnedFd, Failure> {
        Ok(self.machine(machine)?.connect()?.into())
    }

    fn restart_server(&self, config: KnfsdConfig) -> Result<knfsd::Started, Failure> {
        let _turn = self.turn.lock();
        let mut current = self.config.lock();
        match &mut current.server {
            ServerKind::Knfsd(known) => {
                let started = set_up(self, &config)?;
                *known = config;
                Ok(started)
            }
            other => Err(Failure::NoKnfsd(other.to_string())),
        }
    }

    fn facts(&self) -> LabFacts {
        let machine = |machine: &Running| {
            let kernel = machine.bootable.as_ref().map(|bootable| &bootable.kernel);
            let here = || rustix::system::uname().release().to_string_lossy().into_owned();
            MachineFacts {
                name: machine.name.clone(),
                kernel: kernel.map_or_else(here, |kernel| kernel.release.clone()),
                kernel_hash: kernel.map(|kernel| kernel.hash.clone()).unwrap_or_default(),
                kernel_origin: kernel.map_or(KernelOrigin::Given, |kernel| kernel.origin.clone()),
                memory: machine.memory,
                boot_time: machine.boot_time,
                state: machine.state(),
            }
        };
        let needs_wake_ups = self.plan.back_end == BackEnd::Uml;
        LabFacts {
            config: self.config.lock().clone(),
            back_end: self.plan.back_end,
            machines: self.machines.iter().map(machine).collect(),
            image: self.plan.client.as_ref().map(|client| client.image_hash.clone()).unwrap_or_default(),
            wake_ups: if needs_wake_ups { 1.0 / wake_ups::INTERVAL.as_secs_f64() } else { 0.0 },
        }
    }
}
