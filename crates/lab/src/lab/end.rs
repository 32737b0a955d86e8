//! The ends of processes of others.

use std::time::Duration;

use crate::exit::Exit;
use crate::supervisor::state;

/// The end of a process that is no child of this one.
#[derive(Debug)]
pub(super) struct End {
    exit: Option<Exit>,
}

impl End {
    /// Of a process that started at this time; there is nothing to wait for if there is no such process any more.
    pub(super) fn of(process: u32, started: u64) -> Self {
        let exit = Exit::of(process).ok();
        // From now on the number cannot go to another process any more.
        let same = state::started(process) == Some(started);
        Self { exit: exit.filter(|_| same) }
    }

    pub(super) fn kill(&self) {
        if let Some(exit) = &self.exit {
            exit.kill();
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
        self.exit.as_ref().is_none_or(|exit| exit.within(limit).unwrap_or(false))
    }
}
