//! Doing a run together: the steps at which the processes of a run wait for each other, the instants at which phases
//! begin, and the meetings of their workers.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use serde::{Deserialize, Serialize};

mod meeting_tracker;

pub use self::meeting_tracker::{Assembled, MeetingTracker};

/// The clients of a run that one process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of its first client, from 0.
    pub first: u32,
    /// How many clients it is.
    pub count: u32,
    /// Clients of the whole run, over all processes.
    pub total: u32,
    /// Number of this process among those of the run, from 0.
    pub process: u32,
    /// Processes of the run.
    pub processes: u32,
    /// Whether this process does what is done once for all that see the same target: it removes stale files, makes shared
    /// filesets, and reads shared files back.
    pub lead: bool,
    /// Whether this process does what is done once for each host: it runs the hook.
    pub first_on_host: bool,
}

impl Share {
    /// All clients of a run in one process.
    pub fn all(clients: u32) -> Self {
        Self {
            first: 0,
            count: clients,
            total: clients,
            process: 0,
            processes: 1,
            lead: true,
            first_on_host: true,
        }
    }

    /// The numbers of its clients.
    pub fn clients(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}

/// A point of a run that all processes reach before any goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Stale files are gone, and each process may make its own.
    Cleared,
    /// All files are there.
    Prepared,
    /// Nobody holds the target open, so that a hook may unmount it.
    Released,
    /// Caches are as asked for, and the hook has run.
    Settled,
    /// Everybody has left the measured phase.
    Measured,
    /// The server was cut, and serves again. Only of workloads with a durability witness.
    Cut,
    /// Everybody has closed all files.
    TornDown,
}

/// A phase that begins at one instant everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Start {
    WarmUp,
    Measure,
}

/// What a process says of a meeting of a workload's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attendance {
    /// All its workers that take part have come, for this time, counted from 1.
    Arrived(u64),
    /// None of its workers takes part any more.
    Left,
}

/// Takes to the other processes of a run what this one's workers do at meetings, by the number of the meeting in the
/// program. It is called by the workers themselves.
pub trait Assembly: Debug + Send + Sync {
    /// Says so for this process.
    fn tell(&self, meeting: u16, attendance: Attendance);
}

/// To be called when a meeting, by its number, was held by all processes for this time, counted from 1.
pub type Held = Arc<dyn Fn(u16, u64) + Send + Sync>;

/// The run was stopped while it waited for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the run was stopped")]
pub struct Stopped;

/// Keeps the processes of a run together.
pub trait Conductor {
    /// Waits until all processes have come to this point.
    ///
    /// # Errors
    /// When the run is stopped meanwhile.
    fn meet(&mut self, step: Step) -> Result<(), Stopped>;

    /// Waits until all processes are ready for a phase, and gives the instant at which it begins, in nanoseconds of this
    /// host's monotonic clock: at least `lead` from now, which this process needs to wake its workers.
    ///
    /// # Errors
    /// When the run is stopped meanwhile.
    fn start(&mut self, phase: Start, lead: Duration) -> Result<i64, Stopped>;

    /// The way to the other processes for meetings of workers, which ends in calls of `held`; `None` when this process is
    /// all there is. Called once for a workload that has meetings.
    fn assembly(&mut self, held: Held) -> Option<Arc<dyn Assembly>>;
}

/// A run of one process, which waits for nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Conductor for Alone {
    fn meet(&mut self, _: Step) -> Result<(), Stopped> {
        Ok(())
    }

    fn start(&mut self, _: Start, lead: Duration) -> Result<i64, Stopped> {
        Ok(monotonic_ns() + i64::try_from(lead.as_nanos()).unwrap_or(i64::MAX / 2))
    }

    fn assembly(&mut self, _: Held) -> Option<Arc<dyn Assembly>> {
        None
    }
}
