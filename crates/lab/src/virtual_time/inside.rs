//! The lab that a controller finds in a kernel on virtual time.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_netem::link::Link;
use benchmaster_netem::namespace::{Namespace, NamespaceError};
use benchmaster_netem::network::{Means, Network, NetworkConfig, NetworkError, Trouble};
use benchmaster_netem::wire::{self, INTERFACE, Report, client_mac, server_mac};
use parking_lot::Mutex;

use super::first::Job;
use super::part::{Node, Part};
use super::reset;
use crate::backend::BackEnd;
use crate::config::{KnfsdConfig, LabConfig};
use crate::cut::PowerCut;
use crate::facts::{LabFacts, MachineFacts};
use crate::guest::knfsd::{ServerFault, Started};
use crate::machine::MachineState;

/// Why something could not be done in a kernel on virtual time.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// There is no such machine.
    #[error("the lab has no machine `{0}`")]
    NoMachine(String),
    /// A node or a program in it could not be started.
    #[error("cannot start `{program}` in the node `{machine}`: {source}")]
    Start { machine: String, program: String, source: io::Error },
    /// The server or a client could not be set up.
    #[error("the node `{machine}` could not be set up: {said}")]
    SetUp {
        machine: String,
        /// What the part said.
        said: String,
    },
    /// Segments that break connections cannot be sent.
    #[error("cannot break connections of a client: {0}")]
    Reset(#[source] io::Error),
    /// What the host wrote of the guest.
    #[error("cannot read what the host wrote of this guest: {0}")]
    Job(#[source] io::Error),
    /// Its own program has no path.
    #[error("cannot find this program's own file: {0}")]
    Program(#[source] io::Error),
}

/// Server, clients and the network between them: namespaces of this kernel.
#[derive(Debug)]
pub struct Inside {
    network: Mutex<Network>,
    namespace: Arc<Namespace>,
    server: Node,
    clients: Vec<Node>,
    program: PathBuf,
    /// What streams belong to.
    children: Mutex<Vec<Child>>,
}

impl Inside {
    /// Makes the network and the nodes of `clients` clients, `c1` and on, and of the server; nothing serves yet.
    ///
    /// # Errors
    /// [`InsideError`]
    pub fn start(clients: u32, tell: &mut dyn FnMut(&str)) -> Result<Self, InsideError> {
        let program = std::env::current_exe().map_err(InsideError::Program)?;
        let config =
            NetworkConfig { means: Some(Means::Netem), ..NetworkConfig::new(clients, Link::default()) };
        let network = Network::start(config)?;
        introduce(&network, clients)?;
        let namespace = Arc::new(network.server().run(Namespace::current)??);
        let node = |name: &str, network: &Namespace| {
            let failed = |source| InsideError::Start {
                machine: name.into(),
                program: program.display().to_string(),
                source,
            };
            Node::start(name, network, &program).map_err(failed)
        };
        let server = node("server", network.server())?;
        let mut nodes = Vec::new();
        for client in 0..clients {
            nodes.push(node(&name_of(client), network.client(client))?);
        }
        let lab = Self {
            network: Mutex::new(network),
            namespace,
            server,
            clients: nodes,
            program: program.clone(),
            children: Mutex::default(),
        };
        for client in 0..clients {
            lab.play(&name_of(client), &Part::Client).map(drop)?;
        }
        tell(&format!("server and {clients} clients are in one kernel on virtual time"));
        Ok(lab)
    }

    /// Makes the kernel's server what is asked for, and waits until its grace period is over.
    ///
    /// # Errors
    /// [`InsideError::SetUp`] with what the server said.
    pub fn serve(&self, config: &KnfsdConfig) -> Result<Started, InsideError> {
        let said = self.play("server", &Part::Serve(Box::new(config.clone())))?;
        serde_json::from_str(&said).map_err(|error| InsideError::SetUp {
            machine: "server".into(),
            said: format!("`{said}`: {error}"),
        })
    }

    /// Has something go wrong with a server that was set up like this; what it did, in words, may be empty.
    ///
    /// # Errors
    /// [`InsideError::SetUp`] with what the server said.
    pub fn fault(&self, fault: &ServerFault, config: &KnfsdConfig) -> Result<String, InsideError> {
        self.play("server", &Part::Fault(Box::new((fault.clone(), config.clone()))))
    }

    /// Has the server lose power and boot again after `down`. Nothing passes between it and clients meanwhile; afterwards links are
    /// as they are set. What it did, in words.
    ///
    /// # Errors
    /// [`InsideError`]
    pub fn cut_server(
        &self,
        cut: &PowerCut,
        down: Duration,
        config: &KnfsdConfig,
    ) -> Result<String, InsideError> {
        let all =
            |trouble| (0..self.clients.len() as u32).try_for_each(|client| self.disturb(client, trouble));
        all(Trouble { lost: 1.0, ..Trouble::default() })?;
        let lost = self.fault(&ServerFault::LosePower(*cut), config)?;
        std::thread::sleep(down);
        let booted = self.fault(&ServerFault::Boot, config)?;
        all(Trouble::default())?;
        Ok(format!("{lost}; it serves again {booted}"))
    }

    /// Puts trouble on the link of a client, counted from 0, or takes it away.
    ///
    /// # Errors
    /// [`InsideError::Network`]
    pub fn disturb(&self, client: u32, trouble: Trouble) -> Result<(), InsideError> {
        Ok(self.network.lock().disturb(client, trouble)?)
    }

    /// Breaks the connections of a client, counted from 0, to the server: each when it is used next, within `limit`.
    ///
    /// # Errors
    /// [`InsideError::Reset`]
    pub fn reset_connections(&self, client: u32, limit: Duration) -> Result<(), InsideError> {
        let network = self.network.lock();
        reset::begin(network.server(), wire::client_address(client), limit).map_err(InsideError::Reset)
    }

    /// What the lab consists of. All machines are one kernel and share its memory.
    ///
    /// # Errors
    /// [`InsideError::Job`]
    pub fn facts(&self, config: &LabConfig) -> Result<LabFacts, InsideError> {
        let read = fs::read_to_string(super::JOB).map_err(io::Error::other);
        let job: Job = read
            .and_then(|text| serde_json::from_str(&text).map_err(io::Error::other))
            .map_err(InsideError::Job)?;
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let machine = |name: String| MachineFacts {
            name,
            kernel: release.clone(),
            kernel_hash: job.kernel.hash.clone(),
            kernel_origin: job.kernel.origin.clone(),
            memory: job.memory,
            // On the guest's clock booting takes no time.
            boot_time: Duration::ZERO,
            state: MachineState::Running,
        };
        let names = (0..self.clients.len() as u32).map(name_of);
        let machines = std::iter::once("server".to_owned()).chain(names).map(machine).collect();
        Ok(LabFacts {
            config: config.clone(),
            back_end: BackEnd::UmlVirtualTime,
            machines,
            image: job.image.clone(),
            wake_ups: 0.0,
        })
    }

    /// Changes the links of all clients.
    ///
    /// # Errors
    /// [`InsideError::Network`]
    pub fn set_link(&self, link: &Link) -> Result<(), InsideError> {
        Ok(self.network.lock().set(*link)?)
    }

    /// What the network carried since counts were cleared.
    ///
    /// # Errors
    /// [`InsideError::Network`]
    pub fn network_report(&self) -> Result<Report, InsideError> {
        Ok(self.network.lock().achieved()?)
    }

    /// Resets the counts of [`Inside::network_report`].
    ///
    /// # Errors
    /// [`InsideError::Network`]
    pub fn clear_network_report(&self) -> Result<(), InsideError> {
        Ok(self.network.lock().clear()?)
    }

    /// The server's network namespace.
    pub fn namespace(&self) -> &Arc<Namespace> {
        &self.namespace
    }

    /// Where clients find the server.
    pub fn server_address(&self) -> IpAddr {
        self.network.lock().server_address()
    }

    /// A connection that is standard input and output of a program at a machine's node; errors go to the console. The
    /// program is killed when this is dropped.
    ///
    /// # Errors
    /// [`InsideError`]
    pub fn stream(&self, machine: &str, argv: &[String]) -> Result<TcpStream, InsideError> {
        let (mut command, failed) = self.command(machine, argv)?;
        let (ours, theirs) = pair().map_err(&failed)?;
        command.stdout(OwnedFd::from(theirs.try_clone().map_err(&failed)?));
        command.stdin(OwnedFd::from(theirs));
        let child = self.node(machine)?.spawn(&mut command).map_err(failed)?;
        self.children.lock().push(child);
        Ok(ours)
    }

    /// Runs a program at a machine's node to its end.
    ///
    /// # Errors
    /// [`InsideError`]
    pub fn run(
        &self,
        machine: &str,
        command: &crate::guest::Command,
    ) -> Result<crate::guest::Output, InsideError> {
        let (mut process, failed) = self.command(machine, &command.argv)?;
        process.envs(command.environment.iter().map(|(name, value)| (name, value)));
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.node(machine)?.spawn(&mut process).map_err(&failed)?;
        if let Some(mut input) = child.stdin.take() {
            // A program need not read all of it.
            let _ = io::Write::write_all(&mut input, command.input.as_bytes());
        }
        let output = child.wait_with_output().map_err(failed)?;
        let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
        Ok(crate::guest::Output {
            status: output.status.code().or(signal.map(|signal| 128 + signal)).unwrap_or_default(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// The command for a program, and the error when it cannot be started. The file of this program is where it is, whatever
    /// it is called by others.
    fn command(
        &self,
        machine: &str,
        argv: &[String],
    ) -> Result<(Command, impl Fn(io::Error) -> InsideError + use<>), InsideError> {
        let (machine, program) = (machine.to_owned(), argv.first().cloned().unwrap_or_default());
        let file = if program == super::PROGRAM { self.program.clone() } else { program.clone().into() };
        let failed =
            move |source| InsideError::Start { machine: machine.clone(), program: program.clone(), source };
        let arguments = argv.get(1..).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let mut command = Command::new(file);
        command.args(arguments);
        Ok((command, failed))
    }

    fn node(&self, machine: &str) -> Result<&Node, InsideError> {
        let of_client = || {
            let number: usize = machine.strip_prefix('c')?.parse().ok()?;
            self.clients.get(number.checked_sub(1)?)
        };
        let node = if machine == "server" { Some(&self.server) } else { of_client() };
        node.ok_or_else(|| InsideError::NoMachine(machine.into()))
    }

    /// Has this program do a part at a node, to its end; what it said.
    fn play(&self, machine: &str, part: &Part) -> Result<String, InsideError> {
        let failed = |source| InsideError::Start {
            machine: machine.into(),
            program: self.program.display().to_string(),
            source,
        };
        // Not pipes: a service that goes into the background would hold them open.
        let (mut said, mut complained) =
            (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
        let mut command = Command::new(&self.program);
        command.arg(super::COMMAND).args(part.arguments()).stdin(Stdio::null());
        command.stdout(said.try_clone().map_err(failed)?).stderr(complained.try_clone().map_err(failed)?);
        let status = self.node(machine)?.spawn(&mut command).and_then(|mut child| child.wait());
        if status.map_err(failed)?.success() {
            text(&mut said).map_err(failed)
        } else {
            let said = text(&mut complained).map_err(failed)?;
            Err(InsideError::SetUp { machine: machine.into(), said })
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        for mut child in std::mem::take(&mut *self.children.lock()) {
            // It may have ended before.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Gives all machines Ethernet addresses that are the same in every run, and makes them known for good: no request waits until
/// somebody has been asked for his.
fn introduce(network: &Network, clients: u32) -> Result<(), InsideError> {
    let server = network.server().interfaces()?;
    server.set_mac(INTERFACE, server_mac())?;
    for client in 0..clients {
        let interfaces = network.client(client).interfaces()?;
        interfaces.set_mac(INTERFACE, client_mac(client))?;
        interfaces.add_neighbour(INTERFACE, wire::server_address(), server_mac())?;
        server.add_neighbour(INTERFACE, wire::client_address(client), client_mac(client))?;
    }
    Ok(())
}

/// All of a file.
fn text(file: &mut File) -> io::Result<String> {
    file.rewind()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

fn name_of(client: u32) -> String {
    format!("c{}", client + 1)
}

/// Two connected sockets.
fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (theirs, _) = listener.accept()?;
    // What waits for an acknowledgement would wait in virtual time.
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours, theirs))
}

/// Whether this process is in a guest that was booted by [`boot`](super::boot): only there nodes can be made.
pub fn is_inside() -> bool {
    Path::new(super::JOB).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_connected() {
        let (mut ours, mut theirs) = pair().unwrap();
        io::Write::write_all(&mut ours, b"x").unwrap();
        drop(ours);
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"x");
    }
}
