//! What this host lets this process do, found by trying.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::thread::UnshareFlags;

use super::{Namespace, NamespaceError, leave, user};
use crate::wire::tap;

/// How this process can make network namespaces.
#[derive(Debug)]
pub enum Privilege {
    /// As it is: it is root's, or in a user namespace already.
    Direct,
    /// After [`enter_user_namespace`](super::enter_user_namespace).
    UserNamespace,
    /// Not at all.
    Nothing(NamespaceError),
}

/// Which means of emulation can be used on this host by this process, or why not. Where [`privilege`] is
/// [`Privilege::UserNamespace`], what can be used after entering one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// `tc netem` between veth devices.
    pub netem: Result<(), String>,
    /// The user-space wire between TAP devices.
    pub wire: Result<(), String>,
}

/// Finds out how network namespaces can be made, by making one.
pub fn privilege() -> Privilege {
    if Namespace::new().is_ok() {
        return Privilege::Direct;
    }
    match in_child(UnshareFlags::NEWUSER | UnshareFlags::NEWNET, None) {
        Ok(()) => Privilege::UserNamespace,
        Err(error) => Privilege::Nothing(user::refused(error)),
    }
}

/// Finds out what can be used, by trying in namespaces that are thrown away.
pub fn capabilities() -> Capabilities {
    let spaces = match privilege() {
        Privilege::Direct => UnshareFlags::NEWNET,
        Privilege::UserNamespace => UnshareFlags::NEWUSER | UnshareFlags::NEWNET,
        Privilege::Nothing(error) => {
            let reason = Err(error.to_string());
            return Capabilities { netem: reason.clone(), wire: reason };
        }
    };
    Capabilities { netem: try_netem(spaces), wire: try_wire(spaces) }
}

fn try_wire(spaces: UnshareFlags) -> Result<(), String> {
    in_child(spaces, Some(tap::DEVICE)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{} not found; as root: modprobe tun", tap::DEVICE),
        io::ErrorKind::PermissionDenied => format!("no permission to use {}: {error}", tap::DEVICE),
        _ => format!("cannot create a TAP device: {error}"),
    })
}

fn try_netem(spaces: UnshareFlags) -> Result<(), String> {
    let mut command = Command::new("tc");
    command.args(["qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]).stdin(Stdio::null());
    // SAFETY: between fork and exec one system call is made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(move || leave(spaces)) };
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "`tc` not found; install iproute2".to_owned(),
        _ => format!("cannot run `tc`: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it failed without a message");
    Err(format!("the kernel has no netem qdisc that this process can use (tc: {said})"))
}

/// Whether a process with one thread can enter new namespaces of these kinds and then, if its device is given, make a
/// TAP.
///
/// A child tries, which comes no further than before its `exec`: user namespaces are refused to processes with
/// threads, and this one would be left in them.
fn in_child(spaces: UnshareFlags, tun: Option<&str>) -> io::Result<()> {
    /// No step fails with it: it says that all were done.
    const DONE: i32 = libc::EXFULL;
    let tun = tun.map(CString::new).transpose()?;
    let attempt = move || {
        leave(spaces)?;
        if let Some(path) = &tun {
            let file = open(path.as_c_str(), OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
            tap::attach(&file, "bm0")?;
        }
        Err(io::Error::from_raw_os_error(DONE))
    };
    // It is never executed.
    let mut command = Command::new("/");
    // SAFETY: between fork and exec only system calls are made, on memory prepared before; nothing is allocated (an
    // error of the system is a number) and no lock is taken.
    unsafe { command.pre_exec(attempt) };
    match command.stdin(Stdio::null()).spawn() {
        Err(error) if error.raw_os_error() == Some(DONE) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::other("a directory was executed")),
    }
}
