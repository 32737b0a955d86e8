//! Many workers on one thread, on the engine that does nothing: what is late then is late because of the executor.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use benchmaster_nfs_client::reactor::Reactor;
use hdrhistogram::Histogram;

use super::NullBench;
use crate::engine::null::NullEngine;
use crate::lane::{Job, Lane, Limits, Stream, WorkerContext, WorkerShared, nap_of_many_ns};
use crate::recorder::{Collector, Recorder, ThreadRecorder, WorkerRecord};
use crate::recording::latency_histogram;

/// Workers that share a thread as tasks of its reactor, as those of the `nfs` engine do, each repeating the flow at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowd {
    pub workers: u32,
    /// Repetitions of the flow per second, of all together.
    pub rate: f64,
    pub duration: Duration,
    /// Length of an interval, at whose end the thread hands its histograms over.
    pub interval: Duration,
}

/// Why a crowd could not run.
#[derive(Debug, thiserror::Error)]
pub enum CrowdError {
    /// The kernel gives no descriptors for the reactor.
    #[error("the reactor cannot run: {0}")]
    Reactor(#[from] io::Error),
    /// A histogram that was just encoded cannot be read.
    #[error("the latencies cannot be read: {0}")]
    Latencies(String),
}

impl NullBench<'_> {
    /// Latencies in nanoseconds, counted from the instant at which each operation was to start.
    ///
    /// # Errors
    /// [`CrowdError`].
    pub fn run_crowd(&self, crowd: &Crowd) -> Result<Histogram<u64>, CrowdError> {
        let interval = u64::try_from(crowd.interval.as_nanos()).unwrap_or(u64::MAX);
        let collector = Collector::new(self.program.measured_series(), interval, true);
        let reactor = Reactor::new()?;
        let engine = &NullEngine { reactor: Some(reactor.clone()) };
        // Tasks need no buffers that let successive writes differ; ten thousand of them would need gigabytes.
        let lane = |worker| Lane::new(1, Stream::new(worker, 0, 1), self.group.max_io, 0, b"");
        let mut lanes: Vec<_> = (0..crowd.workers).map(|worker| RefCell::new(lane(worker))).collect();
        let shared: Vec<_> = lanes.iter().map(|_| WorkerShared::new(self.tables.len())).collect();
        let contexts: Vec<_> = (0..crowd.workers).map(|worker| self.context(worker, crowd.workers)).collect();
        let forever = AtomicU64::new(u64::MAX);
        let counter = RefCell::new(Recorder::default());
        let set_up = contexts.iter().zip(&shared).zip(&mut lanes).map(|((context, shared), lane)| {
            let limits = Limits::until(&forever);
            let (counter, lane) = (&counter, lane.get_mut());
            Box::pin(async move {
                let job = Job { engine, context, shared, limits: &limits, record: counter };
                lane.run(&job, &self.group.setup, 0, false).await;
                shared.begin_phase();
            })
        });
        reactor.run_all(&mut set_up.collect::<Vec<_>>())?;

        // Time for all tasks to begin to wait.
        let start = self.clock.after(self.clock.now(), 200_000_000);
        let nanos = u64::try_from(crowd.duration.as_nanos()).unwrap_or(u64::MAX);
        let deadline = AtomicU64::new(self.clock.after(start, nanos));
        let thread = ThreadRecorder::new(&collector, &self.clock, start, None);
        let period_ns = Some(f64::from(crowd.workers) * 1e9 / crowd.rate);
        let work = contexts.iter().zip(&shared).zip(&mut lanes).map(|((context, shared), lane)| {
            let limits = Limits { start, period_ns, ..Limits::until(&deadline) };
            let record = RefCell::new(Recorder::Shared(WorkerRecord::new(&thread, context.worker)));
            let lane = lane.get_mut();
            Box::pin(async move {
                let job = Job { engine, context, shared, limits: &limits, record: &record };
                lane.repeat(&job, &self.group.flow).await;
            })
        });
        reactor.run_all(&mut work.collect::<Vec<_>>())?;
        thread.finish();
        let unreadable = |error: &dyn std::fmt::Display| CrowdError::Latencies(error.to_string());
        let mut sum = latency_histogram();
        for series in collector.finish().series {
            let latencies = series.total.latency.decode().map_err(|error| unreadable(&error))?;
            sum.add(latencies).map_err(|error| unreadable(&error))?;
        }
        Ok(sum)
    }

    pub(super) fn context(&self, worker: u32, workers: u32) -> WorkerContext<'_> {
        WorkerContext {
            clock: &self.clock,
            tables: &self.tables,
            client: 0,
            place: 0,
            places: 1,
            worker,
            workers,
            verify: None,
            max_failures: 1,
            rendezvous: None,
            nap_ns: nap_of_many_ns(worker, workers as usize),
        }
    }
}
