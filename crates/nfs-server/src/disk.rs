//! A disk behind the server: when a reply may leave that waits for stable storage, or for data that is not in memory.
//!
//! Files are in memory as ever; the disk is a model of times. [`model`](self) takes the time of each access and lets a
//! page cache, a journal and a device do their work on a clock of their own; a reply is held back until its job is done.
//! No thread waits, and no other lock is held while the model's is.

mod config;
mod device;
mod journal;
mod model;
mod pages;
mod report;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use config::{DiskConfig, DiskError, DiskKind, DiskOrder, ExportMode};
pub use model::Job;
pub(crate) use model::{Access, Stability};
pub use report::DiskReport;

use device::Nanos;
use model::Model;

/// The disk of a server.
#[derive(Debug)]
pub struct Disk {
    started: Instant,
    model: Mutex<Model>,
}

impl Disk {
    /// A disk whose jobs are fetched by `threads` threads.
    pub(crate) fn new(
        config: DiskConfig,
        export: ExportMode,
        threads: usize,
        seed: u64,
        started: Instant,
    ) -> Self {
        Self { started, model: Mutex::new(Model::new(config, export, threads, seed)) }
    }

    /// Begins an access, as part of `job` if there is one. `None`: the reply may leave.
    pub(crate) fn access(&self, now: Instant, job: Option<Job>, access: Access) -> Option<Job> {
        self.model.lock().access(self.at(now), job, access)
    }

    /// Lets a thread fetch the job when it is done. `false`: it is.
    pub(crate) fn hold(&self, job: Job, thread: usize) -> bool {
        self.model.lock().hold(job, thread)
    }

    /// The jobs of a thread that are done by `now`, and when there may be more.
    pub(crate) fn done(&self, now: Instant, thread: usize) -> (Vec<Job>, Instant) {
        let mut model = self.model.lock();
        model.advance(self.at(now));
        let next = Duration::from_nanos(model.next());
        (model.take_done(thread), self.started + next)
    }

    /// Lets time pass, for what has no waiter.
    pub(crate) fn tick(&self, now: Instant) {
        self.model.lock().advance(self.at(now));
    }

    /// Counts a reply that was held back.
    pub(crate) fn held(&self, time: Duration) {
        self.model.lock().held(time.as_nanos() as Nanos);
    }

    /// What it has done by `now`.
    pub fn report(&self, now: Instant) -> DiskReport {
        let mut model = self.model.lock();
        model.advance(self.at(now));
        model.report()
    }

    fn at(&self, now: Instant) -> Nanos {
        now.saturating_duration_since(self.started).as_nanos() as Nanos
    }
}
