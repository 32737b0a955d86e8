//! Machines of a virtual-time lab: namespaces of the one kernel, each held by a process of its own.
//!
//! A node has its own network, host name, mounts and processes. Programs that look for their services in `/proc` or keep
//! files in `/run` find their own, and NFS version 4 clients have different host names, and so different client ids.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use benchmaster_netem::namespace::Namespace;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::config::KnfsdConfig;
use crate::guest::ToolError;
use crate::guest::knfsd::ServerFault;
use crate::guest::{client, knfsd};

/// What a holder says when its node is ready.
const READY: &str = "ready";

/// What a process of a virtual-time lab does beside the agents: the arguments of the hidden command.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Process 1 of the guest.
    First,
    /// Process 1 of a node of this name: makes its mounts, and lives as long as its standard input is open.
    Hold(String),
    /// Starts what the kernel's client needs in the node where it runs.
    Client,
    /// Makes the kernel's server what is asked for, in the node where it runs.
    Serve(Box<KnfsdConfig>),
    /// Has something go wrong with a server that was set up like this, in the node where it runs.
    Fault(Box<(ServerFault, KnfsdConfig)>),
}

/// Why a part was not done.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// There is no such part.
    #[error("`{0}` is not a part of a virtual-time lab; the program itself gives these arguments")]
    Unknown(String),
    /// The node could not be made.
    #[error("cannot {what} in the node `{name}`: {source}")]
    Node { name: String, what: &'static str, source: io::Error },
    /// The client's services do not run.
    #[error(transparent)]
    Client(#[from] ToolError),
    /// The server does not serve.
    #[error(transparent)]
    Server(#[from] knfsd::KnfsdError),
    /// A fault could not be brought about.
    #[error(transparent)]
    Fault(#[from] knfsd::ServerFaultError),
}

impl Part {
    /// The arguments that say it.
    pub fn arguments(&self) -> Vec<String> {
        match self {
            Self::First => vec!["first".into()],
            Self::Hold(name) => vec!["hold".into(), name.clone()],
            Self::Client => vec!["client".into()],
            // It has text keys and plain values only.
            Self::Serve(config) => vec!["serve".into(), serde_json::to_string(config).unwrap_or_default()],
            Self::Fault(fault) => vec!["fault".into(), serde_json::to_string(fault).unwrap_or_default()],
        }
    }

    /// Reads the arguments.
    ///
    /// # Errors
    /// [`PartError::Unknown`]
    pub fn parse(arguments: &[String]) -> Result<Self, PartError> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let part = match words[..] {
            ["first"] => Some(Self::First),
            ["hold", name] => Some(Self::Hold(name.into())),
            ["client"] => Some(Self::Client),
            ["serve", config] => serde_json::from_str(config).ok().map(Self::Serve),
            ["fault", fault] => serde_json::from_str(fault).ok().map(Self::Fault),
            _ => None,
        };
        part.ok_or_else(|| PartError::Unknown(arguments.join(" ")))
    }

    /// Does it.
    ///
    /// # Errors
    /// [`PartError`]
    pub fn play(&self) -> Result<(), PartError> {
        match self {
            Self::First => {
                super::first();
                Ok(())
            }
            Self::Hold(name) => hold(name),
            Self::Client => Ok(client::start()?),
            Self::Serve(config) => {
                let started = knfsd::start(config)?;
                // It has text keys and plain values only.
                say(&serde_json::to_string(&started).unwrap_or_default())
            }
            Self::Fault(fault) => say(&fault.0.bring_about(&fault.1)?),
        }
    }
}

/// What the server's node says to whoever had it do something.
fn say(text: &str) -> Result<(), PartError> {
    let failed = |source| PartError::Node { name: "server".into(), what: "say what was done", source };
    writeln!(io::stdout(), "{text}").map_err(failed)
}

fn hold(name: &str) -> Result<(), PartError> {
    let failed = |what| {
        move |error: rustix::io::Errno| PartError::Node { name: name.into(), what, source: error.into() }
    };
    rustix::system::sethostname(name.as_bytes()).map_err(failed("set the host name"))?;
    // Not other nodes, but processes here that have mounts of their own shall see what is mounted.
    for kind in [MountPropagationFlags::PRIVATE, MountPropagationFlags::SHARED] {
        mount_change("/", kind | MountPropagationFlags::REC).map_err(failed("keep mounts apart"))?;
    }
    for (kind, at, what) in [
        ("proc", "/proc", "mount /proc"),
        ("sysfs", "/sys", "mount /sys"),
        ("tmpfs", "/run", "mount /run"),
        ("tmpfs", "/var/lib/nfs", "mount /var/lib/nfs"),
    ] {
        mount(kind, at, kind, MountFlags::empty(), None).map_err(failed(what))?;
    }
    let talk = |source| PartError::Node { name: name.into(), what: "say that it is ready", source };
    let mut output = io::stdout();
    writeln!(output, "{READY}").and_then(|()| output.flush()).map_err(talk)?;
    // Nothing is sent: it ends with whoever started it.
    io::stdin().read_to_end(&mut Vec::new()).map(drop).map_err(talk)
}

/// A node, and what enters it.
#[derive(Debug)]
pub(super) struct Node {
    holder: Child,
    /// In the order in which they are entered: what is found in `/proc` is needed no more once mounts are others.
    namespaces: Vec<OwnedFd>,
}

impl Node {
    /// Makes one in a network namespace. `program` is this program.
    pub(super) fn start(name: &str, network: &Namespace, program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(super::COMMAND).args(Part::Hold(name.into()).arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = on_thread(|| {
            network.enter().map_err(io::Error::other)?;
            let kinds = UnshareFlags::NEWNS | UnshareFlags::NEWUTS | UnshareFlags::NEWPID;
            // SAFETY: only descriptor tables that are no longer shared could break what others rely on, and none of these
            // kinds touches them.
            unsafe { unshare_unsafe(kinds) }?;
            command.spawn()
        })?;
        let mut line = String::new();
        if let Some(output) = holder.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line.trim_end() != READY {
            let status = holder.wait()?;
            return Err(io::Error::other(format!("its first process ended: {status}")));
        }
        let open = |kind| File::open(format!("/proc/{}/ns/{kind}", holder.id())).map(OwnedFd::from);
        let namespaces = ["net", "uts", "pid", "mnt"].map(open).into_iter().collect::<io::Result<_>>()?;
        Ok(Self { holder, namespaces })
    }

    /// Starts a program there.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        on_thread(|| {
            // SAFETY: the current directory and the like are no longer shared with other threads, which keep theirs;
            // descriptors stay shared.
            unsafe { unshare_unsafe(UnshareFlags::FS) }?;
            for namespace in &self.namespaces {
                move_into_link_name_space(namespace.as_fd(), None)?;
            }
            command.spawn()
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // With the first process of its process namespace all others end. It may have ended before.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Calls it on a thread of its own, whose namespaces may change.
fn on_thread<T: Send>(what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("node".into()).spawn_scoped(scope, what)?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread ended; internal error, please report it")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::{CutDisk, PowerCut};

    #[test]
    fn arguments_lead_back_to_parts() {
        let cut = PowerCut { disk: CutDisk::Cached, seed: 7 };
        let parts = [
            Part::First,
            Part::Hold("c1".into()),
            Part::Client,
            Part::Serve(Box::new(KnfsdConfig { threads: 3, ..KnfsdConfig::default() })),
            Part::Fault(Box::new((ServerFault::LosePower(cut), KnfsdConfig::default()))),
        ];
        for part in parts {
            assert_eq!(Part::parse(&part.arguments()).unwrap(), part);
        }
        for wrong in [&["hold"][..], &[], &["serve", "{}"], &["second"]] {
            let wrong: Vec<String> = wrong.iter().map(|word| (*word).to_owned()).collect();
            assert!(matches!(Part::parse(&wrong), Err(PartError::Unknown(_))), "{wrong:?}");
        }
    }
}
