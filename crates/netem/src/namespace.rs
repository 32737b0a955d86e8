//! Network namespaces: network stacks of their own, each with its interfaces, addresses and connections.
//!
//! A [`Namespace`] has no name below `/run/netns`. It lives as long as a descriptor, a process or a socket in it, so
//! that nothing has to be cleaned up, also after `kill -9`.
//!
//! Making one takes the rights of root. A user without them gets them in a user namespace, where the system allows it:
//! [`enter_user_namespace`], early in `main`. [`privilege`] says which it is.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

mod capabilities;
mod discipline;
mod interface;
mod user;

pub use capabilities::{Capabilities, Privilege, capabilities, privilege};
pub(crate) use discipline::Discipline;
pub use interface::{Interfaces, MacAddress, RouteMetrics};
pub use user::{enter_user_namespace, enter_user_namespace_as_root};

/// Why something could not be done with a namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The process may not, or the kernel has no more.
    #[error("cannot create a network namespace: {0}; root or a user namespace is required")]
    Make(#[source] io::Error),
    #[error("cannot enter a network namespace: {0}")]
    Enter(#[source] io::Error),
    /// User namespaces are forbidden or used up.
    #[error("cannot create a user namespace: {reason}")]
    User {
        /// What forbids it, and what would allow it.
        reason: String,
        source: io::Error,
    },
    /// An interface could not be set up.
    #[error("cannot {action} of the interface `{name}`: {source}")]
    Interface {
        /// Such as `set the address`.
        action: &'static str,
        name: String,
        source: io::Error,
    },
    /// The kernel has no descriptor, memory or thread left.
    #[error("cannot work in a network namespace: {0}")]
    Resources(#[from] io::Error),
}

/// A network namespace, held by a descriptor.
#[derive(Debug)]
pub struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    /// Makes one; its loopback interface is up.
    ///
    /// # Errors
    /// [`NamespaceError::Make`] without the right to.
    pub fn new() -> Result<Self, NamespaceError> {
        // The thread's own namespace changes, so it must not be the caller's.
        let made = in_thread(|| {
            leave(UnshareFlags::NEWNET).map_err(NamespaceError::Make)?;
            Ok::<_, NamespaceError>(Self { file: File::open("/proc/thread-self/ns/net")?.into() })
        })??;
        made.interfaces()?.up("lo")?;
        Ok(made)
    }

    /// Another hold on it.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()? })
    }

    /// The namespace in which the calling thread is.
    ///
    /// # Errors
    /// When /proc is not mounted, or no descriptor is left.
    pub fn current() -> Result<Self, NamespaceError> {
        Ok(Self { file: File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// Moves the calling thread into it, and with it threads and processes that it starts later. Sockets that are
    /// open stay where they are.
    ///
    /// # Errors
    /// [`NamespaceError::Enter`] without the right to.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        enter(self.file.as_fd()).map_err(NamespaceError::Enter)
    }

    /// Runs `what` in it, on a thread of its own, and waits for the end.
    ///
    /// # Errors
    /// Those of [`Namespace::enter`], or when no thread can be started; `what` was not called then.
    ///
    /// # Panics
    /// When `what` does.
    pub fn run<T: Send>(&self, what: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        in_thread(|| {
            self.enter()?;
            Ok(what())
        })?
    }

    /// Makes the command start in it.
    ///
    /// # Errors
    /// When no descriptor is left. Without the right to enter, starting the command fails.
    pub fn apply(&self, command: &mut Command) -> Result<(), NamespaceError> {
        let file = self.file.try_clone()?;
        // SAFETY: between fork and exec only one system call is made, on a descriptor that the closure owns; nothing is
        // allocated and no lock is taken.
        unsafe { command.pre_exec(move || enter(file.as_fd())) };
        Ok(())
    }

    /// What sets up the interfaces in it.
    ///
    /// # Errors
    /// Those of [`Namespace::enter`], or when no descriptor is left.
    pub fn interfaces(&self) -> Result<Interfaces, NamespaceError> {
        Ok(self.run(Interfaces::here)??)
    }

    /// Where other processes find it as long as this one lives, for `nsenter --net=PATH` or `ip link set … netns PATH`.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// Of a descriptor that another process gave: of a network namespace, or entering it fails.
impl From<OwnedFd> for Namespace {
    fn from(file: OwnedFd) -> Self {
        Self { file }
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes the command end, by `SIGKILL`, when the calling thread does, also by `kill -9`: call this and start the
/// command from the main thread. What the command starts itself is not touched.
pub fn end_with_caller(command: &mut Command) {
    let caller = rustix::process::getpid();
    let end = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The caller may have ended before.
        if rustix::process::getppid() == Some(caller) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(end) };
}

fn enter(file: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(file, Some(LinkNameSpaceType::Network))?)
}

/// Moves the calling thread into new namespaces of these kinds.
fn leave(kinds: UnshareFlags) -> io::Result<()> {
    debug_assert!((UnshareFlags::NEWUSER | UnshareFlags::NEWNET).contains(kinds));
    // SAFETY: only descriptor tables that are no longer shared could break what others rely on, and none of these kinds
    // touches them.
    Ok(unsafe { unshare_unsafe(kinds) }?)
}

/// Calls it on a thread of its own.
fn in_thread<T: Send>(what: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("namespace".into()).spawn_scoped(scope, what)?;
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}
