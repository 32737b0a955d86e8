//! The processes of a supervisor, one after the other.

use std::env;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

use benchmaster_netem::namespace::{Privilege, end_with_caller, enter_user_namespace_as_root, privilege};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::{Failure, News, hold};
use crate::exit::reap_until;
use crate::guest::protocol::write;

/// Which process of a supervisor this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Outside,
    /// Is process 1 in them.
    First,
    Holder,
}

/// What the first argument of a supervisor is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a process of a lab's supervisor; `benchmaster lab up` starts them")]
pub struct NoStage(String);

impl FromStr for Stage {
    type Err = NoStage;

    fn from_str(text: &str) -> Result<Self, NoStage> {
        let all = [Self::Outside, Self::First, Self::Holder];
        all.into_iter().find(|stage| stage.name() == text).ok_or_else(|| NoStage(text.into()))
    }
}

impl Stage {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::First => "first",
            Self::Holder => "holder",
        }
    }
}

/// Is a process of a supervisor. Standard input must be the socket of the one that brings the lab up. Call it before there are
/// other threads.
///
/// # Errors
/// Why the lab does not come up; that process has the reason already.
pub fn run(stage: Stage) -> Result<(), Failure> {
    let news = rustix::stdio::stdin().try_clone_to_owned().map(UnixStream::from);
    let news = news.map_err(Failure::other("standard input cannot be used"))?;
    let result = match stage {
        Stage::Outside => outside(&news),
        Stage::First => first(),
        Stage::Holder => hold::hold(&news),
    };
    if let Err(failure) = &result {
        // It may be gone.
        let _ = write(&mut &news, &News::Failed(failure.clone()));
    }
    result
}

/// Makes the namespaces and starts process 1 in them.
fn outside(mut news: &UnixStream) -> Result<(), Failure> {
    match privilege() {
        Privilege::Direct => {}
        Privilege::UserNamespace => {
            enter_user_namespace_as_root().map_err(|error| Failure::Other(error.to_string()))?;
        }
        Privilege::Nothing(error) => {
            let reason = format!("a lab needs root, or a user namespace: {error}");
            return Err(Failure::Other(reason));
        }
    }
    // Signals of the terminal are not for the lab. It fails when this leads a session already, which is as good.
    let _ = rustix::process::setsid();
    // SAFETY: only descriptor tables that are no longer shared could break what others rely on, and neither kind touches
    // them; there is one thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID | UnshareFlags::NEWNS) }
        .map_err(|error| Failure::other("cannot make a namespace of process ids")(error.into()))?;
    let child = next(Stage::First, |_| {})?;
    write(&mut news, &News::Process(child.id())).map_err(Failure::other("nothing waits for the lab"))
}

/// Starts the next process: the same program, with this one's descriptors.
fn next(stage: Stage, prepare: impl FnOnce(&mut Command)) -> Result<Child, Failure> {
    let inherited =
        |descriptor: std::os::fd::BorrowedFd<'_>| descriptor.try_clone_to_owned().map(Stdio::from);
    let start = || {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("benchmaster")
            .args(["__supervisor", stage.name()])
            .stdin(inherited(rustix::stdio::stdin())?)
            .stdout(inherited(rustix::stdio::stdout())?)
            .stderr(inherited(rustix::stdio::stderr())?)
            .current_dir("/");
        prepare(&mut command);
        command.spawn()
    };
    start().map_err(Failure::other("cannot start the next process of the supervisor"))
}

/// Process 1: waits for everything until the holder ends.
fn first() -> Result<(), Failure> {
    // Mounts made here do not reach the host.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| Failure::other("cannot make mounts private")(error.into()))?;
    // Where a container hides parts of /proc it may not be mounted again; the old one does, as it shows more.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _ = mount("proc", Path::new("/proc"), "proc", flags, c"");
    let holder = next(Stage::Holder, end_with_caller)?;
    let ended = reap_until(holder.id());
    ended.map(drop).map_err(|error| Failure::other("cannot wait for the holder")(error.into()))
}

/// The command that is the first process of a supervisor.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["__supervisor", Stage::Outside.name()]);
    // What the user's shell has set is nothing to the lab, but where things are.
    command.env_clear();
    for name in ["PATH", "HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "LANG"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command.current_dir("/");
    command
}

/// The socket that a process of a supervisor has as standard input, and the other end.
pub(crate) fn lifeline() -> io::Result<(UnixStream, Stdio)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours, Stdio::from(std::os::fd::OwnedFd::from(theirs))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_names() {
        for stage in [Stage::Outside, Stage::First, Stage::Holder] {
            assert_eq!(stage.name().parse(), Ok(stage));
        }
        assert!("inside".parse::<Stage>().unwrap_err().to_string().contains("lab up"));
    }
}
