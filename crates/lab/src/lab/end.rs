//! The ends of processes of others.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::supervisor::state;

/// The end of a process that is no child of this one.
#[derive(Debug)]
pub(super) struct End {
    descriptor: Option<OwnedFd>,
}

impl End {
    /// Of a process that started at this time; there is nothing to wait for if there is no such process any more.
    pub(super) fn of(process: u32, started: u64) -> Self {
        let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok();
        let descriptor = i32::try_from(process).ok().and_then(Pid::from_raw).and_then(open);
        // With the descriptor the number cannot go to another process any more.
        let same = state::started(process) == Some(started);
        Self { descriptor: descriptor.filter(|_| same) }
    }

    pub(super) fn kill(&self) {
        if let Some(process) = &self.descriptor {
            // It may have ended.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Waits for it, and kills it if it takes too long.
    pub(super) fn wait(&self, limit: Duration) {
        for last in [false, true] {
            if self.ended_within(limit) || last {
                return;
            }
            self.kill();
        }
    }

    fn ended_within(&self, limit: Duration) -> bool {
        let Some(process) = &self.descriptor else { return true };
        let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)), Ok(1..))
    }
}
