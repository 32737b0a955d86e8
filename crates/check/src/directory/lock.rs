//! Byte-range locks by `fcntl`.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;

use super::here::Asked;

/// How long a lock that is free, or will be, is waited for: longer than NFS clients take from one try to the next.
const PATIENCE: Duration = Duration::from_secs(45);

/// A lock that another owner has.
pub(super) const TAKEN: &[Errno] = &[Errno::AGAIN, Errno::ACCESS];

/// Whose a lock is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The process, as POSIX has it: closing any descriptor of the file ends its locks.
    Process,
    /// The open of the file (Linux): two opens of one process exclude each other as processes do.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Unlock,
}

/// A lock that is asked for; a length of zero reaches to the end of any file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) kind: Kind,
    pub(super) start: i64,
    pub(super) length: i64,
}

pub(super) const fn reads(start: i64, length: i64) -> Lock {
    Lock { kind: Kind::Read, start, length }
}

pub(super) const fn writes(start: i64, length: i64) -> Lock {
    Lock { kind: Kind::Write, start, length }
}

pub(super) const fn unlocks(start: i64, length: i64) -> Lock {
    Lock { kind: Kind::Unlock, start, length }
}

impl Lock {
    fn raw(self) -> libc::flock {
        let kind = match self.kind {
            Kind::Read => libc::F_RDLCK,
            Kind::Write => libc::F_WRLCK,
            Kind::Unlock => libc::F_UNLCK,
        };
        libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: self.start,
            l_len: self.length,
            l_pid: 0,
        }
    }
}

fn control(file: &OwnedFd, command: libc::c_int, request: &mut libc::flock) -> Result<(), Errno> {
    loop {
        // SAFETY: the descriptor is open, and `request` is a valid `struct flock` that outlives the call.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(request)) };
        match std::io::Error::last_os_error().raw_os_error() {
            _ if result == 0 => return Ok(()),
            Some(libc::EINTR) => {}
            error => return Err(Errno::from_raw_os_error(error.unwrap_or(libc::EIO))),
        }
    }
}

/// Sets a lock at once, or fails.
pub(super) fn set(file: &OwnedFd, owner: Owner, lock: Lock) -> Asked<()> {
    let command = match owner {
        Owner::Process => libc::F_SETLK,
        Owner::Open => libc::F_OFD_SETLK,
    };
    Asked::new(format!("fcntl(set, {owner:?}, {lock:?})"), control(file, command, &mut lock.raw()))
}

/// Sets a lock when it is free. The call waits in a thread of its own, which is left alone if the lock never comes.
pub(super) fn wait(file: &OwnedFd, lock: Lock) -> Asked<()> {
    let (tell, told) = std::sync::mpsc::channel();
    let answer =
        file.try_clone().map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error));
    let answer = answer.and_then(|same| {
        std::thread::spawn(move || tell.send(control(&same, libc::F_OFD_SETLKW, &mut lock.raw())));
        told.recv_timeout(PATIENCE).unwrap_or(Err(Errno::TIMEDOUT))
    });
    Asked::new(format!("fcntl(wait at most {PATIENCE:?}, {lock:?})"), answer)
}

/// The lock that is in the way of this one.
pub(super) fn blocker(file: &OwnedFd, lock: Lock) -> Asked<Option<Lock>> {
    let mut request = lock.raw();
    let answer = control(file, libc::F_OFD_GETLK, &mut request).map(|()| {
        let kind = match libc::c_int::from(request.l_type) {
            libc::F_RDLCK => Kind::Read,
            libc::F_WRLCK => Kind::Write,
            _ => return None,
        };
        Some(Lock { kind, start: request.l_start, length: request.l_len })
    });
    Asked::new(format!("fcntl(get, {lock:?})"), answer)
}
