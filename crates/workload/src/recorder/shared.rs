//! Recording of workers that share a thread: one set of histograms for all of them, because thousands of workers with
//! histograms of their own would need gigabytes, and the totals of each.

use std::cell::RefCell;

use super::interval::Interval;
use super::{Collector, Slot, Spot, Timing, describe};
use crate::operation_error::OperationError;
use crate::recording::{SlowOperation, TraceRecord, WorkerSeries};
use crate::trace::TraceSender;
use benchmaster_clock::{Clock, Ticks};

/// Records the operations of all workers of one thread.
#[derive(Debug)]
pub(crate) struct ThreadRecorder<'a> {
    collector: &'a Collector,
    clock: &'a Clock,
    start: Ticks,
    inner: RefCell<Inner>,
}

#[derive(Debug)]
struct Inner {
    interval: Interval,
    slots: Vec<Slot>,
    trace: Option<TraceSender>,
}

impl<'a> ThreadRecorder<'a> {
    /// A recorder of a thread whose measured phase begins at `start`.
    pub(crate) fn new(
        collector: &'a Collector,
        clock: &'a Clock,
        start: Ticks,
        trace: Option<TraceSender>,
    ) -> Self {
        let inner = Inner {
            interval: Interval::first(collector, clock, start),
            slots: collector.series.iter().map(|_| Slot::new(collector, start)).collect(),
            trace,
        };
        Self { collector, clock, start, inner: RefCell::new(inner) }
    }

    /// Hands in the rest; returns the time in nanoseconds for which the thread waited for the trace writer.
    pub(crate) fn finish(&self) -> u64 {
        let mut inner = self.inner.borrow_mut();
        let Inner { interval, slots, trace, .. } = &mut *inner;
        self.collector.take(interval.number, slots);
        trace.take().map_or(0, TraceSender::finish)
    }

    /// Hands in when it is due, and moves on to the interval of an operation that ends at `end`; `false` when nothing was
    /// due.
    #[inline]
    fn rolls(&self, inner: &mut Inner, end: Ticks) -> bool {
        let rolls = end >= inner.interval.due;
        if rolls {
            self.roll(inner, end);
        }
        rolls
    }

    #[cold]
    fn roll(&self, inner: &mut Inner, end: Ticks) {
        self.collector.take(inner.interval.number, &mut inner.slots);
        inner.interval.pass(self.collector, self.clock, self.start, end);
    }
}

/// Records the operations of one worker of a [`ThreadRecorder`].
#[derive(Debug)]
pub(crate) struct WorkerRecord<'t> {
    thread: &'t ThreadRecorder<'t>,
    worker: u32,
    totals: Vec<WorkerSeries>,
    /// Of each series, which of the worker's operations was the last slow one.
    last_slow: Vec<Option<u64>>,
    verified: u64,
}

impl<'t> WorkerRecord<'t> {
    /// A record of worker number `worker` of the run.
    pub(crate) fn new(thread: &'t ThreadRecorder<'t>, worker: u32) -> Self {
        let total = |series| WorkerSeries { series, ..WorkerSeries::default() };
        let series = &thread.collector.series;
        let totals = (0..).zip(series).map(|(series, _)| total(series)).collect();
        Self { thread, worker, totals, last_slow: vec![None; series.len()], verified: 0 }
    }

    /// The worker's totals; empties the record.
    pub(crate) fn finish(&mut self) -> Vec<WorkerSeries> {
        if self.verified > 0 {
            self.thread.collector.verified(self.verified);
        }
        let used = |series: &WorkerSeries| series.count + series.errors > 0;
        std::mem::take(&mut self.totals).into_iter().filter(used).collect()
    }

    /// `false` when it took long.
    #[inline]
    fn trace(
        &self,
        inner: &mut Inner,
        series: u16,
        timing: Timing,
        (bytes, spot): (u64, Spot),
        error: u16,
    ) -> bool {
        let Some(trace) = &mut inner.trace else { return true };
        let ThreadRecorder { clock, start, .. } = self.thread;
        trace.push(TraceRecord {
            start_ns: clock.nanos(*start, timing.intended),
            latency_ns: clock.nanos(timing.intended, timing.end),
            offset: spot.offset,
            bytes: bytes as u32,
            worker: self.worker,
            file: spot.file,
            series,
            error,
            fileset: spot.fileset,
        })
    }

    #[inline]
    pub(super) fn success(&mut self, series: u16, timing: Timing, bytes: u64, spot: Spot) -> bool {
        let ThreadRecorder { clock, start, inner, .. } = self.thread;
        let inner = &mut *inner.borrow_mut();
        let rolls = self.thread.rolls(inner, timing.end);
        let latency = clock.nanos(timing.intended, timing.end);
        let slot = &mut inner.slots[usize::from(series)];
        slot.parts.next(bytes, spot, (slot.latency.len(), slot.sum_ns));
        slot.latency.record(latency);
        if let Some(service) = &mut slot.service {
            service.record(clock.nanos(timing.start, timing.end));
        }
        slot.bytes += bytes;
        slot.sum_ns = slot.sum_ns.saturating_add(latency);
        let total = &mut self.totals[usize::from(series)];
        total.count += 1;
        total.bytes += bytes;
        total.sum_ns = total.sum_ns.saturating_add(latency);
        total.last_end_ns = Some(clock.nanos(*start, timing.end));
        if total.first_start_ns.is_none() {
            total.first_start_ns = Some(clock.nanos(*start, timing.start));
            total.first_latency_ns = Some(latency);
        }
        if slot.slow.is(latency) {
            let last = self.last_slow[usize::from(series)].replace(total.count);
            let slow = SlowOperation {
                series: series.into(),
                worker: self.worker,
                start_ns: clock.nanos(*start, timing.intended),
                latency_ns: latency,
                ..SlowOperation::default()
            };
            slot.slow.take(slow, slot.latency.len(), Some(last.map(|last| total.count - last)));
        }
        self.trace(inner, series, timing, (bytes, spot), 0) && !rolls
    }

    #[cold]
    pub(super) fn failure(
        &mut self,
        series: u16,
        timing: Timing,
        spot: Spot,
        error: OperationError,
        file: &dyn Fn() -> String,
    ) {
        let ThreadRecorder { clock, start, inner, collector } = self.thread;
        let inner = &mut *inner.borrow_mut();
        self.thread.rolls(inner, timing.end);
        inner.slots[usize::from(series)].errors += 1;
        let total = &mut self.totals[usize::from(series)];
        total.errors += 1;
        total.last_end_ns = Some(clock.nanos(*start, timing.end));
        let _ = self.trace(inner, series, timing, (0, spot), error.number());
        collector.failure(series, error, || describe(file(), spot.offset, error));
    }

    #[cold]
    pub(super) fn corruption(&mut self, text: String) {
        self.thread.collector.corruption(text);
    }

    pub(super) fn verified(&mut self, bytes: u64) {
        self.verified += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::OperationKind;
    use crate::recording::SeriesKey;

    const INTERVAL: u64 = 1_000_000_000;

    #[test]
    fn workers_of_a_thread_share_histograms_and_keep_totals_of_their_own() {
        let clock = Clock::new();
        let start = clock.now();
        let key =
            |n| SeriesKey { group: "g".into(), label: format!("read{n}"), operation: OperationKind::Read };
        let collector = Collector::new((0..2).map(key).collect(), INTERVAL, true);
        let thread = ThreadRecorder::new(&collector, &clock, start, None);
        let mut workers: Vec<_> = (0..3).map(|worker| WorkerRecord::new(&thread, worker)).collect();
        let timing = |intended: u64, begin: u64, end: u64| Timing {
            intended: clock.after(start, intended),
            start: clock.after(start, begin),
            end: clock.after(start, end),
        };
        // Worker 0 reads in two intervals, worker 1 fails in the second, worker 2 does nothing.
        assert!(workers[0].success(0, timing(1000, 3000, 5000), 10, Spot::NONE));
        assert!(
            !workers[0].success(0, timing(INTERVAL, INTERVAL, INTERVAL + 700), 10, Spot::NONE),
            "it handed in"
        );
        let failed = timing(INTERVAL, INTERVAL, INTERVAL + 900);
        workers[1].failure(
            1,
            failed,
            Spot { offset: 4, ..Spot::NONE },
            OperationError::Os(libc::EIO),
            &|| "f".into(),
        );
        workers[1].verified(7);
        let totals: Vec<_> = workers.iter_mut().map(WorkerRecord::finish).collect();
        assert_eq!(thread.finish(), 0);
        assert_eq!((totals[0].len(), totals[1].len(), totals[2].len()), (1, 1, 0));
        let near = |value: Option<u64>, of: u64| value.unwrap().abs_diff(of) <= 2;
        let read = &totals[0][0];
        assert_eq!((read.series, read.count, read.bytes, read.errors), (0, 2, 20, 0));
        assert!(near(read.first_start_ns, 3000) && near(read.first_latency_ns, 4000), "{read:?}");
        assert!(near(read.last_end_ns, INTERVAL + 700) && read.sum_ns.abs_diff(4700) <= 4, "{read:?}");
        assert_eq!((totals[1][0].series, totals[1][0].errors), (1, 1));
        let collected = collector.finish();
        assert_eq!(collected.verified, 7);
        let intervals = |at: usize| -> Vec<_> {
            let intervals = collected.series[at].intervals.iter();
            intervals.map(|i| (i.index, i.stats.count, i.stats.bytes, i.stats.errors)).collect()
        };
        assert_eq!(intervals(0), [(0, 1, 10, 0), (1, 1, 10, 0)]);
        assert_eq!(intervals(1), [(1, 0, 0, 1)]);
        assert_eq!((collected.series[0].total.count, collected.series[0].total.sum_ns), (2, read.sum_ns));
        let service = collected.series[0].service.as_ref().unwrap().decode().unwrap();
        assert_eq!((service.len(), service.max().abs_diff(2000) < 40), (2, true));
    }
}
