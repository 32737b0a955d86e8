//! Recording of operations: per worker without locks, per interval into a collector shared by all workers of a run.
//!
//! An operation costs one histogram increment. When a worker passes the end of an interval it hands its histograms to
//! the collector and starts empty ones; the collector keeps intervals in encoded form as soon as all workers have passed
//! them, so that memory does not grow with the rate and only slowly with time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

use crate::clock::{Clock, Ticks};
use crate::counts::LatencyCounts;
use crate::engine::OperationError;
use crate::recording::{
    EncodedHistogram, IntervalStats, OperationStats, SeriesKey, SeriesRecording, TraceRecord, WorkerSeries,
    latency_histogram,
};
use crate::trace::TraceSender;

/// Errors kept in full.
const KEPT_ERRORS: usize = 20;

/// When one operation ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// When it should have started: the schedule's time in an open loop, else `start`.
    pub(crate) intended: Ticks,
    /// When it started.
    pub(crate) start: Ticks,
    /// When it ended.
    pub(crate) end: Ticks,
}

/// Takes what happened in a phase.
pub(crate) trait Record {
    /// One operation that succeeded.
    fn success(&mut self, series: u16, timing: Timing, bytes: u64, offset: u64);
    /// One that failed.
    fn failure(&mut self, series: u16, timing: Timing, offset: u64, error: OperationError, file: &dyn Fn() -> String);
    /// Data that was not what it had to be.
    fn corruption(&mut self, text: String);
    /// Bytes proved right.
    fn verified(&mut self, bytes: u64);
}

/// Counts operations of phases that are not measured.
#[derive(Debug, Default)]
pub(crate) struct PhaseCounter {
    pub(crate) operations: u64,
    pub(crate) errors: u64,
    pub(crate) first_error: Option<String>,
    pub(crate) corruption: Option<String>,
    pub(crate) verified: u64,
}

impl Record for PhaseCounter {
    fn success(&mut self, _: u16, _: Timing, _: u64, _: u64) {
        self.operations += 1;
    }
    fn failure(&mut self, _: u16, _: Timing, offset: u64, error: OperationError, file: &dyn Fn() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| describe(file(), offset, error));
    }
    fn corruption(&mut self, text: String) {
        self.corruption.get_or_insert(text);
    }
    fn verified(&mut self, bytes: u64) {
        self.verified += bytes;
    }
}

fn describe(file: String, offset: u64, error: OperationError) -> String {
    match offset {
        u64::MAX => format!("{file}: {error}"),
        offset => format!("{file}, offset {offset}: {error}"),
    }
}

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Collector {
    series: Vec<SeriesKey>,
    interval_ns: u64,
    open_loop: bool,
    inner: Mutex<Inner>,
    operations: AtomicU64,
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    /// Per worker, the interval it is in.
    progress: Vec<u32>,
    /// Intervals some worker may still add to: per series.
    open: BTreeMap<u32, Vec<Option<Accumulated>>>,
    /// Finished ones, per series.
    closed: Vec<Vec<IntervalStats>>,
    totals: Vec<Accumulated>,
    service: Vec<Histogram<u64>>,
    errors: Vec<BTreeMap<String, u64>>,
    details: Vec<String>,
    corruption: Option<String>,
    verified: u64,
}

#[derive(Debug)]
struct Accumulated {
    latency: Histogram<u64>,
    bytes: u64,
    errors: u64,
    sum_ns: u64,
}

impl Accumulated {
    fn new() -> Self {
        Self { latency: latency_histogram(), bytes: 0, errors: 0, sum_ns: 0 }
    }

    fn add(&mut self, slot: &Slot) {
        slot.latency.add_to(&mut self.latency);
        self.bytes += slot.bytes;
        self.errors += slot.errors;
        self.sum_ns = self.sum_ns.saturating_add(slot.sum_ns);
    }

    fn stats(&self) -> OperationStats {
        OperationStats {
            count: self.latency.len(),
            bytes: self.bytes,
            errors: self.errors,
            sum_ns: self.sum_ns,
            latency: EncodedHistogram::encode(&self.latency),
        }
    }
}

impl Collector {
    pub(crate) fn new(series: Vec<SeriesKey>, workers: usize, interval_ns: u64, open_loop: bool) -> Self {
        let count = series.len();
        Self {
            inner: Mutex::new(Inner {
                progress: vec![0; workers],
                open: BTreeMap::new(),
                closed: vec![Vec::new(); count],
                totals: (0..count).map(|_| Accumulated::new()).collect(),
                service: (0..if open_loop { count } else { 0 }).map(|_| latency_histogram()).collect(),
                errors: vec![BTreeMap::new(); count],
                details: Vec::new(),
                corruption: None,
                verified: 0,
            }),
            series,
            interval_ns,
            open_loop,
            operations: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Operations and bytes up to the last full interval of each worker.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.operations.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The data are sums; a worker that panicked while adding has lost only its own part.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, worker: usize, interval: u32, next: u32, slots: &mut [Slot]) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let (mut operations, mut bytes) = (0, 0);
        for (at, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| !slot.is_empty()) {
            let series = inner.open.entry(interval).or_insert_with(|| slots_of(self.series.len()));
            series[at].get_or_insert_with(Accumulated::new).add(slot);
            inner.totals[at].add(slot);
            if let Some(service) = &slot.service {
                service.add_to(&mut inner.service[at]);
            }
            operations += slot.latency.len();
            bytes += slot.bytes;
            slot.clear();
        }
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        inner.progress[worker] = next;
        let slowest = inner.progress.iter().copied().min().unwrap_or(next);
        while let Some(entry) = inner.open.first_entry() {
            if *entry.key() >= slowest {
                break;
            }
            let (index, series) = entry.remove_entry();
            for (closed, accumulated) in inner.closed.iter_mut().zip(series) {
                if let Some(accumulated) = accumulated {
                    closed.push(IntervalStats { index, stats: accumulated.stats() });
                }
            }
        }
    }

    /// Everything recorded, once all workers have finished.
    pub(crate) fn finish(self) -> Collected {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut service = inner.service.iter().map(EncodedHistogram::encode);
        let parts = self.series.into_iter().zip(inner.totals).zip(inner.closed).zip(inner.errors);
        let series = parts
            .map(|(((key, total), intervals), errors)| SeriesRecording {
                key,
                total: total.stats(),
                intervals,
                errors,
                service: service.next(),
            })
            .collect();
        Collected { series, details: inner.details, corruption: inner.corruption, verified: inner.verified }
    }
}

fn slots_of(count: usize) -> Vec<Option<Accumulated>> {
    (0..count).map(|_| None).collect()
}

/// What a [`Collector`] holds in the end.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) series: Vec<SeriesRecording>,
    pub(crate) details: Vec<String>,
    pub(crate) corruption: Option<String>,
    pub(crate) verified: u64,
}

/// One series of one worker within the current interval.
#[derive(Debug)]
struct Slot {
    latency: LatencyCounts,
    service: Option<LatencyCounts>,
    bytes: u64,
    errors: u64,
    sum_ns: u64,
    /// Start and latency of the worker's first operation, kept from interval to interval.
    first: Option<(Ticks, u64)>,
    last_end: Ticks,
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.latency.is_empty() && self.errors == 0
    }

    fn clear(&mut self) {
        self.latency.clear();
        if let Some(service) = &mut self.service {
            service.clear();
        }
        (self.bytes, self.errors, self.sum_ns) = (0, 0, 0);
    }
}

/// Records one worker's operations.
#[derive(Debug)]
pub(crate) struct WorkerRecorder<'a> {
    collector: &'a Collector,
    clock: &'a Clock,
    start: Ticks,
    worker: u32,
    interval: u32,
    interval_end: Ticks,
    slots: Vec<Slot>,
    totals: Vec<WorkerSeries>,
    verified: u64,
    trace: Option<TraceSender>,
}

impl<'a> WorkerRecorder<'a> {
    /// A recorder for worker number `worker` of the run, whose measured phase begins at `start`.
    pub(crate) fn new(
        collector: &'a Collector,
        clock: &'a Clock,
        start: Ticks,
        worker: u32,
        trace: Option<TraceSender>,
    ) -> Self {
        let slot = || Slot {
            latency: LatencyCounts::new(),
            service: collector.open_loop.then(LatencyCounts::new),
            bytes: 0,
            errors: 0,
            sum_ns: 0,
            first: None,
            last_end: start,
        };
        Self {
            collector,
            clock,
            start,
            worker,
            interval: 0,
            interval_end: clock.after(start, collector.interval_ns),
            slots: collector.series.iter().map(|_| slot()).collect(),
            totals: (0..)
                .zip(&collector.series)
                .map(|(series, _)| WorkerSeries { series, ..WorkerSeries::default() })
                .collect(),
            verified: 0,
            trace,
        }
    }

    /// Hands in the rest; returns the worker's totals and the time it waited for the trace writer.
    pub(crate) fn finish(mut self) -> (Vec<WorkerSeries>, u64) {
        self.hand_in(u32::MAX);
        if self.verified > 0 {
            self.collector.lock().verified += self.verified;
        }
        let stalled = self.trace.take().map_or(0, TraceSender::finish);
        let used = |series: &WorkerSeries| series.count + series.errors > 0;
        (self.totals.into_iter().filter(used).collect(), stalled)
    }

    #[cold]
    fn roll(&mut self, end: Ticks) {
        let length = self.collector.interval_ns;
        // Rounding of ticks must not send an operation back into the interval that is over.
        let next = u32::try_from(self.clock.nanos(self.start, end) / length).unwrap_or(u32::MAX - 1);
        let next = next.max(self.interval + 1);
        self.hand_in(next);
        self.interval = next;
        self.interval_end = self.clock.after(self.start, (u64::from(next) + 1).saturating_mul(length));
    }

    fn hand_in(&mut self, next: u32) {
        for (total, slot) in self.totals.iter_mut().zip(&self.slots) {
            total.count += slot.latency.len();
            total.bytes += slot.bytes;
            total.errors += slot.errors;
            total.sum_ns = total.sum_ns.saturating_add(slot.sum_ns);
            total.first_start_ns = slot.first.map(|(start, _)| self.clock.nanos(self.start, start));
            total.first_latency_ns = slot.first.map(|(_, latency)| latency);
            if !slot.is_empty() {
                total.last_end_ns = Some(self.clock.nanos(self.start, slot.last_end));
            }
        }
        self.collector.take(self.worker as usize, self.interval, next, &mut self.slots);
    }

    #[inline]
    fn trace(&mut self, series: u16, timing: Timing, bytes: u64, offset: u64, error: u16) {
        if let Some(trace) = &mut self.trace {
            trace.push(TraceRecord {
                start_ns: self.clock.nanos(self.start, timing.intended),
                latency_ns: self.clock.nanos(timing.intended, timing.end),
                offset,
                bytes: bytes as u32,
                worker: self.worker,
                series,
                error,
            });
        }
    }
}

impl Record for WorkerRecorder<'_> {
    #[inline]
    fn success(&mut self, series: u16, timing: Timing, bytes: u64, offset: u64) {
        if timing.end >= self.interval_end {
            self.roll(timing.end);
        }
        let latency = self.clock.nanos(timing.intended, timing.end);
        let slot = &mut self.slots[usize::from(series)];
        slot.latency.record(latency);
        if let Some(service) = &mut slot.service {
            service.record(self.clock.nanos(timing.start, timing.end));
        }
        slot.bytes += bytes;
        slot.sum_ns = slot.sum_ns.saturating_add(latency);
        slot.last_end = timing.end;
        if slot.first.is_none() {
            slot.first = Some((timing.start, latency));
        }
        self.trace(series, timing, bytes, offset, 0);
    }

    #[cold]
    fn failure(&mut self, series: u16, timing: Timing, offset: u64, error: OperationError, file: &dyn Fn() -> String) {
        if timing.end >= self.interval_end {
            self.roll(timing.end);
        }
        self.slots[usize::from(series)].errors += 1;
        self.slots[usize::from(series)].last_end = timing.end;
        self.trace(series, timing, 0, offset, error.number());
        let mut inner = self.collector.lock();
        *inner.errors[usize::from(series)].entry(error.name()).or_default() += 1;
        if inner.details.len() < KEPT_ERRORS {
            let label = &self.collector.series[usize::from(series)].label;
            inner.details.push(format!("{label} {}", describe(file(), offset, error)));
        }
    }

    #[cold]
    fn corruption(&mut self, text: String) {
        self.collector.lock().corruption.get_or_insert(text);
    }

    fn verified(&mut self, bytes: u64) {
        self.verified += bytes;
    }
}
