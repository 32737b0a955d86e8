//! The ends of processes.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The end of a process, whether or not it is a child of this one.
#[derive(Debug)]
pub(crate) struct Exit(OwnedFd);

impl Exit {
    /// Of a process that was not waited for.
    pub(crate) fn of(process: u32) -> io::Result<Self> {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        let process = process.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Self(pidfd_open(process, PidfdFlags::empty())?))
    }

    pub(crate) fn kill(&self) {
        // It may have ended.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }

    /// Waits for it; whether it came in time.
    pub(crate) fn within(&self, limit: Duration) -> io::Result<bool> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits for all child processes, for those of others too, until one of them ends: how it did.
pub(crate) fn reap_until(child: u32) -> rustix::io::Result<String> {
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(Some((process, status))) if process.as_raw_nonzero().get().unsigned_abs() == child => {
                return Ok(format!("{status:?}"));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
