//! What the workers of a run recorded, added up: totals, and the series of intervals.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

use super::Slot;
use super::parts::SIZES;
use crate::execute::Done;
use crate::operation_error::OperationError;
use crate::recording::{
    EncodedHistogram, IntervalStats, OperationStats, PartOf, PartRow, SeriesKey, SeriesRecording,
    SlowOperation, latency_histogram,
};

/// Errors kept in full.
const KEPT_ERRORS: usize = 20;

/// Intervals kept ready for adding: workers hand in an interval soon after its end, all at about the same time.
const OPEN_INTERVALS: usize = 3;

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(super) series: Vec<SeriesKey>,
    pub(super) interval_ns: u64,
    pub(super) open_loop: bool,
    inner: Mutex<Inner>,
    operations: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    latency_ns: AtomicU64,
}

#[derive(Debug)]
struct Inner {
    /// The newest intervals, per series.
    open: BTreeMap<u32, Vec<Option<Accumulated>>>,
    /// Older ones, encoded: memory must not grow by a full histogram with every interval. A worker that was held up for
    /// long may still add to them.
    closed: BTreeMap<u32, Vec<Option<OperationStats>>>,
    totals: Vec<Accumulated>,
    /// Of each series, as in its slots.
    parts: Vec<Vec<(u64, u64)>>,
    slow: Vec<SlowOperation>,
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

    fn close(self) -> OperationStats {
        OperationStats {
            count: self.latency.len(),
            bytes: self.bytes,
            errors: self.errors,
            sum_ns: self.sum_ns,
            latency: EncodedHistogram::encode(&self.latency),
        }
    }

    fn reopen(stats: OperationStats) -> Self {
        match stats.latency.decode() {
            Ok(latency) => Self { latency, bytes: stats.bytes, errors: stats.errors, sum_ns: stats.sum_ns },
            Err(error) => unreachable!("encoded by `close` in this run: {error}"),
        }
    }
}

impl Inner {
    fn interval(&mut self, index: u32, series: usize) -> &mut Vec<Option<Accumulated>> {
        let closed = &mut self.closed;
        self.open.entry(index).or_insert_with(|| match closed.remove(&index) {
            Some(stats) => stats.into_iter().map(|stats| stats.map(Accumulated::reopen)).collect(),
            None => std::iter::repeat_with(|| None).take(series).collect(),
        })
    }

    /// Encodes the oldest intervals until `left` are open.
    fn close_down_to(&mut self, left: usize) {
        while self.open.len() > left {
            let Some((index, series)) = self.open.pop_first() else { return };
            self.closed.insert(index, series.into_iter().map(|sums| sums.map(Accumulated::close)).collect());
        }
    }
}

impl Collector {
    pub(crate) fn new(series: Vec<SeriesKey>, interval_ns: u64, open_loop: bool) -> Self {
        let count = series.len();
        Self {
            inner: Mutex::new(Inner {
                open: BTreeMap::new(),
                closed: BTreeMap::new(),
                totals: (0..count).map(|_| Accumulated::new()).collect(),
                parts: vec![vec![(0, 0); PartRow::FILES + SIZES]; count],
                slow: Vec::new(),
                service: (0..if open_loop { count } else { 0 }).map(|_| latency_histogram()).collect(),
                errors: vec![BTreeMap::new(); count],
                details: Vec::new(),
                corruption: None,
                verified: 0,
            }),
            series,
            interval_ns: interval_ns.max(1),
            open_loop,
            operations: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            latency_ns: AtomicU64::new(0),
        }
    }

    /// What was done up to the last time that each worker handed in.
    pub(crate) fn progress(&self) -> Done {
        let [operations, bytes, errors, latency_ns] =
            [&self.operations, &self.bytes, &self.errors, &self.latency_ns]
                .map(|count| count.load(Ordering::Relaxed));
        Done { operations, bytes, errors, latency_ns }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The data are sums; a worker that panicked while adding has lost only its own part.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what a worker recorded in an interval or a part of it, and empties its slots.
    pub(super) fn take(&self, interval: u32, slots: &mut [Slot]) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let mut done = Done::default();
        for (at, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| !slot.is_empty()) {
            let series = inner.interval(interval, self.series.len());
            series[at].get_or_insert_with(Accumulated::new).add(slot);
            inner.totals[at].add(slot);
            for (sum, more) in
                inner.parts[at].iter_mut().zip(slot.parts.all((slot.latency.len(), slot.sum_ns)))
            {
                *sum = (sum.0 + more.0, sum.1.saturating_add(more.1));
            }
            let room = SlowOperation::MOST.saturating_sub(inner.slow.len());
            inner.slow.extend(slot.slow.hand_in(slot.latency.len(), slot.sum_ns).take(room));
            if let Some(service) = &slot.service {
                service.add_to(&mut inner.service[at]);
            }
            done.operations += slot.latency.len();
            done.bytes += slot.bytes;
            done.errors += slot.errors;
            done.latency_ns = done.latency_ns.saturating_add(slot.sum_ns);
            slot.clear();
        }
        inner.close_down_to(OPEN_INTERVALS);
        self.operations.fetch_add(done.operations, Ordering::Relaxed);
        self.bytes.fetch_add(done.bytes, Ordering::Relaxed);
        self.errors.fetch_add(done.errors, Ordering::Relaxed);
        self.latency_ns.fetch_add(done.latency_ns, Ordering::Relaxed);
    }

    /// Counts a failed operation by its error.
    pub(super) fn failure(&self, series: u16, error: OperationError, describe: impl FnOnce() -> String) {
        let mut inner = self.lock();
        *inner.errors[usize::from(series)].entry(error.name()).or_default() += 1;
        if inner.details.len() < KEPT_ERRORS {
            let label = &self.series[usize::from(series)].label;
            inner.details.push(format!("{label} {}", describe()));
        }
    }

    /// Notes something that happened outside of the measured phase.
    pub(crate) fn note(&self, detail: String) {
        let mut inner = self.lock();
        if inner.details.len() < 2 * KEPT_ERRORS {
            inner.details.push(detail);
        }
    }

    /// Notes wrong data; the first is kept.
    pub(crate) fn corruption(&self, text: String) {
        self.lock().corruption.get_or_insert(text);
    }

    /// Adds bytes proved right.
    pub(crate) fn verified(&self, bytes: u64) {
        self.lock().verified += bytes;
    }

    /// Everything recorded, once all workers have finished.
    pub(crate) fn finish(self) -> Collected {
        let mut inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        inner.close_down_to(0);
        let mut intervals = vec![Vec::new(); self.series.len()];
        for (index, series) in inner.closed {
            for (intervals, stats) in intervals.iter_mut().zip(series) {
                intervals.extend(stats.map(|stats| IntervalStats { index, stats }));
            }
        }
        let of_series = |(key, parts): (&SeriesKey, &Vec<(u64, u64)>)| part_rows(&key.label, parts);
        let parts = self.series.iter().zip(&inner.parts).flat_map(of_series).collect();
        let mut service = inner.service.iter().map(EncodedHistogram::encode);
        let all = self.series.into_iter().zip(inner.totals).zip(intervals).zip(inner.errors);
        let series = all
            .map(|(((key, total), intervals), errors)| SeriesRecording {
                key,
                total: total.close(),
                intervals,
                errors,
                span: None,
                service: service.next(),
            })
            .collect();
        let Inner { details, corruption, verified, mut slow, .. } = inner;
        slow.sort_by_key(|one| (one.start_ns, one.worker));
        Collected { series, parts, slow, details, corruption, verified }
    }
}

/// Files and sizes of a series that had operations.
fn part_rows(label: &str, parts: &[(u64, u64)]) -> Vec<PartRow> {
    let row = |(at, &(count, sum_ns)): (usize, &(u64, u64))| {
        let (part, key) = match at.checked_sub(PartRow::FILES) {
            Some(size) => (PartOf::Size, size),
            None => (PartOf::File, at),
        };
        PartRow { part, label: label.into(), key: key as u32, count, sum_ns }
    };
    parts.iter().enumerate().map(row).filter(|row| row.count > 0).collect()
}

/// What a [`Collector`] holds in the end.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) series: Vec<SeriesRecording>,
    pub(crate) parts: Vec<PartRow>,
    pub(crate) slow: Vec<SlowOperation>,
    pub(crate) details: Vec<String>,
    pub(crate) corruption: Option<String>,
    pub(crate) verified: u64,
}
