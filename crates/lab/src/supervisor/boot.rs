//! The machines of a lab: started together, and waited for until all serve requests.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use benchmaster_netem::namespace::{Namespace, end_with_caller};
use parking_lot::Mutex;

use super::networks::{Networks, control_tap, data_tap};
use super::state::Directory;
use super::{Bootable, Failure, Plan};
use crate::backend::BackEnd;
use crate::choice;
use crate::config::ServerKind;
use crate::guest::arguments::{Address, Arguments};
use crate::guest::{self, AskError, GuestFacts, Request};
use crate::last_lines::last_lines;
use crate::machine::{Interface, Machine, MachineSpec, MachineState};
use crate::network::{self, NETWORK_BITS};

/// How long machines may take until they serve requests. QEMU without the processor's help takes a quarter of it.
const BOOT: Duration = Duration::from_secs(120);
/// How long a machine may take to answer a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Lines of a console in messages.
const LINES: usize = 15;

/// A machine that was started, or the process that stands for it.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: String,
    /// What it booted; `None`: it is a process in a network namespace.
    pub(super) bootable: Option<Bootable>,
    /// In bytes; 0 without a machine.
    pub(super) memory: u64,
    /// From its start until it served requests.
    pub(super) boot_time: Duration,
    console: PathBuf,
    /// Where requests are served, and the namespace from which that is reached.
    address: SocketAddr,
    namespace: Namespace,
    machine: Mutex<Machine>,
    /// As what it was started; `None`: it is a process.
    spec: Option<MachineSpec>,
}

impl Running {
    pub(super) fn state(&self) -> MachineState {
        self.machine.lock().state()
    }

    /// Ends it at once.
    pub(super) fn kill(&self) {
        self.machine.lock().kill();
    }

    /// Cuts its power, does something with its disks, and starts it again. When that was, and how long it took to boot.
    /// Who asks for it meanwhile waits.
    pub(super) fn cut_power<T>(
        &self,
        back_end: BackEnd,
        with_disks: impl FnOnce(&MachineSpec) -> Result<T, Failure>,
    ) -> Result<(T, SystemTime, Duration), Failure> {
        self.check()?;
        let spec = self.spec.as_ref().ok_or_else(|| Failure::NoPowerCut {
            reason: format!("`{}` is a process, not a machine", self.name),
        })?;
        let mut machine = self.machine.lock();
        let (killed, start) = (SystemTime::now(), Instant::now());
        machine.pull_the_plug().map_err(|error| {
            Failure::Other(format!("the machine `{}` cannot be killed: {error}", self.name))
        })?;
        let done = with_disks(spec)?;
        let again = MachineSpec { again: true, ..spec.clone() };
        *machine = choice::start(back_end, &again).map_err(|error| Failure::Other(error.to_string()))?;
        drop(machine);
        self.await_boot(start)?;
        Ok((done, killed, start.elapsed()))
    }

    fn lines(&self) -> Vec<String> {
        last_lines(&self.console, LINES)
    }

    /// What speaks against it, if it has ended.
    fn check(&self) -> Result<(), Failure> {
        match self.state() {
            MachineState::Running => Ok(()),
            MachineState::Ended(cause) => {
                Err(Failure::Ended { machine: self.name.clone(), cause, lines: self.lines() })
            }
        }
    }

    fn silent(&self, limit: Duration) -> Failure {
        Failure::Silent { machine: self.name.clone(), limit, lines: self.lines() }
    }

    fn connect_within(&self, limit: Duration) -> io::Result<TcpStream> {
        let connected = self.namespace.run(|| TcpStream::connect_timeout(&self.address, limit));
        connected.map_err(io::Error::other)?
    }

    /// A connection to its control server.
    pub(super) fn connect(&self) -> Result<TcpStream, Failure> {
        self.check()?;
        self.connect_within(CONNECT).map_err(|_| self.check().err().unwrap_or_else(|| self.silent(CONNECT)))
    }

    /// Asks its control server.
    pub(super) fn ask<T: serde::de::DeserializeOwned>(
        &self,
        request: &Request,
        limit: Duration,
    ) -> Result<T, Failure> {
        let stream = self.connect()?;
        guest::ask(&stream, request, limit).map_err(|error| match error {
            AskError::Silent(_) => self.check().err().unwrap_or_else(|| self.silent(limit)),
            error => match (&error, self.check()) {
                (AskError::Connection(_), Err(ended)) => ended,
                _ => Failure::Refused { machine: self.name.clone(), reason: error.to_string() },
            },
        })
    }

    /// Waits until it serves requests.
    fn await_boot(&self, start: Instant) -> Result<Duration, Failure> {
        // A packet that comes too early is sent again by the kernel after a second, so new ones are sent.
        let mut patience = Duration::from_millis(20);
        loop {
            self.check()?;
            let tried = Instant::now();
            let answered = self
                .connect_within(patience)
                .is_ok_and(|stream| guest::ask::<GuestFacts>(&stream, &Request::Facts, CONNECT).is_ok());
            if answered {
                return Ok(start.elapsed());
            }
            if start.elapsed() > BOOT {
                return Err(self.silent(BOOT));
            }
            thread::sleep(Duration::from_millis(10).saturating_sub(tried.elapsed()));
            patience = (patience * 21 / 20).min(Duration::from_secs(2));
        }
    }
}

/// Starts all machines of the lab, from the thread with which they are to end, and waits until they serve requests.
pub(super) fn boot(plan: &Plan, networks: &Networks) -> Result<Vec<Running>, Failure> {
    let start = Instant::now();
    let mut machines = match &plan.client {
        Some(client) => start_machines(plan, client, networks)?,
        None => start_processes(plan, networks)?,
    };
    let waited: Vec<Result<Duration, Failure>> = thread::scope(|scope| {
        let waiting: Vec<_> =
            machines.iter().map(|machine| scope.spawn(move || machine.await_boot(start))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(Failure::Other("waiting for a machine failed".into())))
        };
        waiting.into_iter().map(join).collect()
    });
    for (machine, waited) in machines.iter_mut().zip(waited) {
        machine.boot_time = waited?;
    }
    Ok(machines)
}

fn start_machines(plan: &Plan, client: &Bootable, networks: &Networks) -> Result<Vec<Running>, Failure> {
    let failed = |error: &dyn std::error::Error| Failure::Other(error.to_string());
    let directory = Directory::at(plan.directory.clone());
    let config = &plan.config;
    fs::create_dir_all(directory.share())
        .map_err(Failure::other("cannot make the lab's shared directory"))?;
    let mut machines = Vec::new();
    for number in u32::from(!config.server.is_machine())..=config.clients {
        let (name, bootable, memory) = match (number, &plan.server) {
            (0, Some(server)) => ("server".to_owned(), server, config.server_memory),
            (number, _) => (format!("c{number}"), client, config.client_memory),
        };
        let mut disks = Vec::new();
        if number == 0
            && let ServerKind::Knfsd(knfsd) = &config.server
        {
            fs::create_dir_all(directory.machine(&name))
                .map_err(Failure::other("cannot make its directory"))?;
            disks.push(disk(directory.machine(&name).join("disk"), knfsd.disk_size)?);
            if plan.back_end == BackEnd::Uml {
                disks.push(disk(directory.machine(&name).join("wakes"), guest::WAKING_DISK)?);
            }
            if config.power_cuts {
                disks.push(disk(directory.machine(&name).join("state"), guest::STATE_DISK)?);
            }
        }
        let (machine, spec) = start_machine(plan, number, &name, bootable, memory, disks)?;
        machines.push(Running {
            console: directory.console(&name),
            address: (network::control_address(number), guest::PORT).into(),
            namespace: networks.machines().try_clone().map_err(|e| failed(&e))?,
            machine: Mutex::new(machine),
            bootable: Some(bootable.clone()),
            boot_time: Duration::ZERO,
            spec: Some(spec),
            name,
            memory,
        });
    }
    Ok(machines)
}

/// A sparse file.
fn disk(path: PathBuf, size: u64) -> Result<PathBuf, Failure> {
    let made = File::create(&path).and_then(|file| file.set_len(size));
    made.map_err(Failure::other("cannot make the server's disk"))?;
    Ok(path)
}

fn start_machine(
    plan: &Plan,
    number: u32,
    name: &str,
    bootable: &Bootable,
    memory: u64,
    disks: Vec<PathBuf>,
) -> Result<(Machine, MachineSpec), Failure> {
    let directory = Directory::at(plan.directory.clone());
    let (data, mac) = match number {
        0 => (network::server_address(), network::server_mac()),
        client => (network::client_address(client), network::client_mac(client)),
    };
    let prefix = NETWORK_BITS;
    let data = Interface { tap: data_tap(number), mac, address: data, prefix };
    let control = Interface {
        tap: control_tap(number),
        mac: network::control_mac(number),
        address: network::control_address(number),
        prefix,
    };
    let address = |of: &Interface| Some(Address { address: of.address, prefix, mac: of.mac });
    let arguments = Arguments {
        name: name.to_owned(),
        data: address(&data),
        control: address(&control),
        clients: plan.config.clients,
        state: (number == 0 && plan.config.power_cuts).then(|| guest::STATE_DEVICE.to_owned()),
    };
    let console = directory.console(name);
    fs::create_dir_all(directory.machine(name)).map_err(Failure::other("cannot make its directory"))?;
    let logged = number == 0 && plan.config.power_cuts;
    let spec = MachineSpec {
        name: name.to_owned(),
        memory,
        kernel: bootable.kernel.clone(),
        image: bootable.image.clone(),
        interfaces: vec![data, control],
        disks,
        disk_log: logged.then(|| ["log.0", "log.1"].map(|file| directory.machine(name).join(file))),
        share: directory.share(),
        arguments: arguments.words(),
        console,
        again: false,
    };
    let machine = choice::start(plan.back_end, &spec).map_err(|error| Failure::Other(error.to_string()))?;
    Ok((machine, spec))
}

/// A process for each client, which serves the same requests in the client's network namespace.
fn start_processes(plan: &Plan, networks: &Networks) -> Result<Vec<Running>, Failure> {
    let directory = Directory::at(plan.directory.clone());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, guest::PORT));
    let start = |number: u32| {
        let name = format!("c{number}");
        let namespace = networks.client(number).ok_or(ErrorKind::NotFound)?;
        fs::create_dir_all(directory.machine(&name))?;
        let console = directory.console(&name);
        let output = File::create(&console)?;
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["__guest", "--serve", &address.to_string()])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        namespace.apply(&mut command).map_err(io::Error::other)?;
        end_with_caller(&mut command);
        command.process_group(0);
        let machine = Mutex::new(Machine::new(command.spawn()?, None));
        let (bootable, memory, boot_time, spec) = (None, 0, Duration::ZERO, None);
        Ok(Running { name, bootable, memory, boot_time, console, address, namespace, machine, spec })
    };
    let all: io::Result<Vec<Running>> = (1..=plan.config.clients).map(start).collect();
    all.map_err(Failure::other("cannot start a client's process"))
}
