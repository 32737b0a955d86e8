//! Recording of operations: per worker without locks, per interval into a collector shared by all workers of a run.
//!
//! An operation costs one histogram increment. When a worker passes the end of an interval, or half a second of a longer
//! one, it hands its histograms to the collector and starts empty ones; the collector keeps older intervals in encoded
//! form, so that memory does not grow with the rate and only slowly with time.

use crate::counts::LatencyCounts;
use crate::operation_error::OperationError;
use crate::recording::{NO_FILE, SlowOperation, TraceRecord, WorkerSeries};
use crate::trace::TraceSender;
use benchmaster_clock::{Clock, Ticks};
use benchmaster_record::phase::Phase;

mod collector;
mod interval;
mod parts;
mod shared;
mod slow;

pub(crate) use collector::Collector;
use interval::Interval;
use parts::Parts;
pub(crate) use shared::{ThreadRecorder, WorkerRecord};
use slow::Slow;

/// When one operation ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// When it should have started: the schedule's time in an open loop, else `start`.
    pub(crate) intended: Ticks,
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
}

/// What one operation worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Offset in the file; `u64::MAX` where the operation has none.
    pub(crate) offset: u64,
    /// The file's number; [`NO_FILE`] where there is none.
    pub(crate) file: u32,
    pub(crate) fileset: u16,
}

impl Spot {
    pub(crate) const NONE: Self = Self { offset: u64::MAX, file: NO_FILE, fileset: 0 };

    /// A file without an offset.
    pub(crate) fn file(fileset: u16, file: u64) -> Self {
        Self { offset: u64::MAX, file: u32::try_from(file).unwrap_or(NO_FILE), fileset }
    }
}

/// Takes what happened in a phase. Streams do not depend on which kind it is: they are compiled once per engine.
#[derive(Debug)]
pub(crate) enum Recorder<'r> {
    /// Of a phase that is not measured.
    Counter(PhaseCounter),
    /// Of a worker with a thread of its own.
    Worker(WorkerRecorder<'r>),
    /// Of one of several workers of a thread.
    Shared(WorkerRecord<'r>),
}

impl Default for Recorder<'_> {
    fn default() -> Self {
        Self::Counter(PhaseCounter::default())
    }
}

impl Recorder<'_> {
    /// One operation that succeeded. `false` when recording it took so long that the time must not count as part of the
    /// next operation.
    #[must_use]
    #[inline]
    pub(crate) fn success(&mut self, series: u16, timing: Timing, bytes: u64, spot: Spot) -> bool {
        match self {
            Self::Worker(recorder) => recorder.success(series, timing, bytes, spot),
            Self::Shared(record) => record.success(series, timing, bytes, spot),
            Self::Counter(counter) => {
                counter.operations += 1;
                true
            }
        }
    }

    #[cold]
    pub(crate) fn failure(
        &mut self,
        series: u16,
        timing: Timing,
        spot: Spot,
        error: OperationError,
        file: &dyn Fn() -> String,
    ) {
        match self {
            Self::Worker(recorder) => recorder.failure(series, timing, spot, error, file),
            Self::Shared(record) => record.failure(series, timing, spot, error, file),
            Self::Counter(counter) => counter.failure(spot, error, file),
        }
    }

    /// Data that was not what it had to be.
    #[cold]
    pub(crate) fn corruption(&mut self, text: String) {
        match self {
            Self::Worker(recorder) => recorder.collector.corruption(text),
            Self::Shared(record) => record.corruption(text),
            Self::Counter(counter) => {
                counter.corruption.get_or_insert(text);
            }
        }
    }

    pub(crate) fn verified(&mut self, bytes: u64) {
        match self {
            Self::Worker(recorder) => recorder.verified += bytes,
            Self::Shared(record) => record.verified(bytes),
            Self::Counter(counter) => counter.verified += bytes,
        }
    }

    /// What a phase that is not measured counted.
    pub(crate) fn into_counter(self) -> PhaseCounter {
        match self {
            Self::Counter(counter) => counter,
            Self::Worker(_) | Self::Shared(_) => PhaseCounter::default(),
        }
    }

    /// Counts an error that is none of an operation, in a phase that is not measured.
    pub(crate) fn error(&mut self, text: String) {
        if let Self::Counter(counter) = self {
            counter.error(text);
        }
    }

    /// Hands in the rest of a measured phase; returns the worker's totals and the time in nanoseconds for which it waited
    /// for the trace writer.
    pub(crate) fn finish(self) -> (Vec<WorkerSeries>, u64) {
        match self {
            Self::Worker(recorder) => recorder.finish(),
            Self::Shared(mut record) => (record.finish(), 0),
            Self::Counter(_) => (Vec::new(), 0),
        }
    }
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

impl PhaseCounter {
    /// Counts an error that is none of an operation.
    pub(crate) fn error(&mut self, text: String) {
        self.errors += 1;
        self.first_error.get_or_insert(text);
    }

    fn failure(&mut self, spot: Spot, error: OperationError, file: &dyn Fn() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| describe(file(), spot.offset, error));
    }

    /// Adds another worker's counts.
    pub(crate) fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.errors += other.errors;
        self.verified += other.verified;
        self.first_error = self.first_error.take().or(other.first_error);
        self.corruption = self.corruption.take().or(other.corruption);
    }

    /// What must not be lost of phase `phase` goes to `collector`.
    pub(crate) fn report(&self, phase: Phase, collector: &Collector) {
        if let Some(error) = &self.first_error {
            collector.note(format!("{phase}: {error}"));
        }
        if let Some(corruption) = &self.corruption {
            collector.corruption(corruption.clone());
        }
        if self.verified > 0 {
            collector.verified(self.verified);
        }
    }
}

fn describe(file: String, offset: u64, error: OperationError) -> String {
    match offset {
        u64::MAX => format!("{file}: {error}"),
        offset => format!("{file}, offset {offset}: {error}"),
    }
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
    parts: Parts,
    slow: Slow,
}

impl Slot {
    fn new(collector: &Collector, start: Ticks) -> Self {
        Self {
            latency: LatencyCounts::new(),
            service: collector.open_loop.then(LatencyCounts::new),
            bytes: 0,
            errors: 0,
            sum_ns: 0,
            first: None,
            last_end: start,
            parts: Parts::new(),
            slow: Slow::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.latency.is_empty() && self.errors == 0
    }

    fn clear(&mut self) {
        self.latency.clear();
        if let Some(service) = &mut self.service {
            service.clear();
        }
        (self.bytes, self.errors, self.sum_ns) = (0, 0, 0);
        self.parts.clear();
    }
}

/// Records one worker's operations.
#[derive(Debug)]
pub(crate) struct WorkerRecorder<'a> {
    collector: &'a Collector,
    clock: &'a Clock,
    start: Ticks,
    worker: u32,
    interval: Interval,
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
        let total = |series| WorkerSeries { series, ..WorkerSeries::default() };
        Self {
            collector,
            clock,
            start,
            worker,
            interval: Interval::first(collector, clock, start),
            slots: collector.series.iter().map(|_| Slot::new(collector, start)).collect(),
            totals: (0..).zip(&collector.series).map(|(series, _)| total(series)).collect(),
            verified: 0,
            trace,
        }
    }

    /// Hands in the rest; returns the worker's totals and the time in nanoseconds for which it waited for the trace
    /// writer.
    pub(crate) fn finish(mut self) -> (Vec<WorkerSeries>, u64) {
        self.hand_in();
        if self.verified > 0 {
            self.collector.verified(self.verified);
        }
        let stalled = self.trace.take().map_or(0, TraceSender::finish);
        let used = |series: &WorkerSeries| series.count + series.errors > 0;
        (self.totals.into_iter().filter(used).collect(), stalled)
    }

    #[cold]
    fn roll(&mut self, end: Ticks) {
        self.hand_in();
        self.interval.pass(self.collector, self.clock, self.start, end);
    }

    fn hand_in(&mut self) {
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
        self.collector.take(self.interval.number, &mut self.slots);
    }

    #[cold]
    fn slow_operation(&self, series: u16, timing: Timing, latency_ns: u64) -> SlowOperation {
        let start_ns = self.clock.nanos(self.start, timing.intended);
        SlowOperation {
            series: series.into(),
            worker: self.worker,
            start_ns,
            latency_ns,
            ..SlowOperation::default()
        }
    }

    /// `false` when it took long.
    #[inline]
    fn trace(&mut self, series: u16, timing: Timing, bytes: u64, spot: Spot, error: u16) -> bool {
        let Some(trace) = &mut self.trace else { return true };
        trace.push(TraceRecord {
            start_ns: self.clock.nanos(self.start, timing.intended),
            latency_ns: self.clock.nanos(timing.intended, timing.end),
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
    fn success(&mut self, series: u16, timing: Timing, bytes: u64, spot: Spot) -> bool {
        let rolls = timing.end >= self.interval.due;
        if rolls {
            self.roll(timing.end);
        }
        let latency = self.clock.nanos(timing.intended, timing.end);
        let slot = &mut self.slots[usize::from(series)];
        slot.parts.next(bytes, spot, (slot.latency.len(), slot.sum_ns));
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
        if slot.slow.is(latency) {
            let slow = self.slow_operation(series, timing, latency);
            let slot = &mut self.slots[usize::from(series)];
            slot.slow.take(slow, slot.latency.len(), None);
        }
        self.trace(series, timing, bytes, spot, 0) && !rolls
    }

    #[cold]
    fn failure(
        &mut self,
        series: u16,
        timing: Timing,
        spot: Spot,
        error: OperationError,
        file: &dyn Fn() -> String,
    ) {
        if timing.end >= self.interval.due {
            self.roll(timing.end);
        }
        self.slots[usize::from(series)].errors += 1;
        self.slots[usize::from(series)].last_end = timing.end;
        let _ = self.trace(series, timing, 0, spot, error.number());
        self.collector.failure(series, error, || describe(file(), spot.offset, error));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;
    use crate::model::OperationKind;
    use crate::recording::{OperationStats, PartOf, SeriesKey, SeriesRecording, latency_histogram};

    const INTERVAL: u64 = 1_000_000_000;

    fn series(count: usize) -> Vec<SeriesKey> {
        let key =
            |n| SeriesKey { group: "g".into(), label: format!("read{n}"), operation: OperationKind::Read };
        (0..count).map(key).collect()
    }

    /// An operation that ended `end` nanoseconds after the start.
    fn timing(clock: &Clock, start: Ticks, begin: u64, end: u64) -> Timing {
        let begin = clock.after(start, begin);
        Timing { intended: begin, start: begin, end: clock.after(start, end) }
    }

    fn sum(parts: impl Iterator<Item = OperationStats>) -> (u64, u64, u64, u64, Histogram<u64>) {
        let mut sums = (0, 0, 0, 0, latency_histogram());
        for part in parts {
            sums.0 += part.count;
            sums.1 += part.bytes;
            sums.2 += part.errors;
            sums.3 += part.sum_ns;
            sums.4.add(part.latency.decode().unwrap()).unwrap();
        }
        sums
    }

    fn check_sums(recorded: &SeriesRecording) {
        let total = sum(std::iter::once(recorded.total.clone()));
        assert_eq!(sum(recorded.intervals.iter().map(|interval| interval.stats.clone())), total);
        assert_eq!(recorded.total.count, total.4.len());
        assert_eq!(recorded.errors.values().sum::<u64>(), recorded.total.errors);
        assert!(recorded.intervals.windows(2).all(|pair| pair[0].index < pair[1].index));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Each worker does operations of random series, length, size and success, at its own pace.
        #[test]
        fn intervals_add_up_to_totals_exactly(
            workers in prop::collection::vec(
                prop::collection::vec((0u16..3, 1u64..3_000_000_000, 0u64..5_000_000_000, 0u64..1 << 20, prop::bool::weighted(0.9)), 0..60),
                1..6,
            ),
            order in any::<u64>(),
        ) {
            let clock = Clock::new();
            let start = clock.now();
            let collector = Collector::new(series(3), INTERVAL, true);
            let mut recorders: Vec<_> =
                (0..).zip(&workers).map(|(n, _)| (WorkerRecorder::new(&collector, &clock, start, n, None), 0u64, 0usize)).collect();
            let mut expected: BTreeMap<(u16, u32), (u64, u64, u64)> = BTreeMap::new();
            // Workers advance in any order, so that some hand in intervals that others have left long ago.
            let mut state = order;
            loop {
                let open: Vec<usize> = (0..workers.len()).filter(|&w| recorders[w].2 < workers[w].len()).collect();
                if open.is_empty() { break; }
                state = crate::random::mix(state, 1, 2);
                let w = open[(state % open.len() as u64) as usize];
                let (recorder, time, next) = &mut recorders[w];
                let (series, latency, gap, bytes, good) = workers[w][*next];
                *next += 1;
                let (begin, end) = (*time + gap, *time + gap + latency);
                *time = end;
                let timing = timing(&clock, start, begin, end);
                let cell = expected.entry((series, (clock.nanos(start, timing.end) / INTERVAL) as u32)).or_default();
                if good {
                    let _ = recorder.success(series, timing, bytes, Spot::NONE);
                    *cell = (cell.0 + 1, cell.1 + bytes, cell.2);
                } else {
                    recorder.failure(series, timing, Spot::NONE, OperationError::Os(libc::EIO), &|| "f".into());
                    cell.2 += 1;
                }
            }
            let mut each = [(0, 0, 0, 0); 3];
            for (recorder, ..) in recorders {
                for part in recorder.finish().0 {
                    let cell = &mut each[part.series as usize];
                    *cell = (cell.0 + part.count, cell.1 + part.bytes, cell.2 + part.errors, cell.3 + part.sum_ns);
                }
            }
            let collected = collector.finish();
            for (number, recorded) in collected.series.iter().enumerate() {
                check_sums(recorded);
                let total = &recorded.total;
                prop_assert_eq!((total.count, total.bytes, total.errors, total.sum_ns), each[number]);
                let cells: BTreeMap<(u16, u32), (u64, u64, u64)> = recorded.intervals.iter().map(|interval| {
                    ((number as u16, interval.index), (interval.stats.count, interval.stats.bytes, interval.stats.errors))
                }).collect();
                let wanted: BTreeMap<_, _> = expected.iter().filter(|(key, _)| usize::from(key.0) == number).map(|(k, v)| (*k, *v)).collect();
                prop_assert_eq!(cells, wanted);
                let service = recorded.service.as_ref().unwrap().decode().unwrap();
                prop_assert_eq!(service, recorded.total.latency.decode().unwrap(), "nothing started late");
            }
        }
    }

    #[test]
    fn response_time_counts_from_the_intended_start_and_service_time_from_the_real_one() {
        let clock = Clock::new();
        let start = clock.now();
        let collector = Collector::new(series(1), INTERVAL, true);
        let mut recorder = WorkerRecorder::new(&collector, &clock, start, 0, None);
        let mut late = timing(&clock, start, 9_000_000, 10_000_000);
        late.intended = clock.after(start, 2_000_000);
        assert!(recorder.success(0, late, 1, Spot::NONE));
        recorder.finish();
        let recorded = &collector.finish().series[0];
        let percent = |value: u64, of: u64| value.abs_diff(of) * 100 / of;
        assert_eq!(percent(recorded.total.latency.decode().unwrap().max(), 8_000_000), 0);
        assert_eq!(percent(recorded.service.as_ref().unwrap().decode().unwrap().max(), 1_000_000), 0);
    }

    #[test]
    fn the_first_operation_and_the_last_end_are_kept_over_all_intervals() {
        let clock = Clock::new();
        let start = clock.now();
        let collector = Collector::new(series(2), INTERVAL, false);
        let mut recorder = WorkerRecorder::new(&collector, &clock, start, 0, None);
        assert!(recorder.success(0, timing(&clock, start, 1000, 5000), 1, Spot::NONE));
        assert!(
            !recorder.success(0, timing(&clock, start, 2 * INTERVAL, 2 * INTERVAL + 900), 1, Spot::NONE),
            "it handed in"
        );
        let (series, _) = recorder.finish();
        assert_eq!(series.len(), 1, "series that were not used are left out");
        let near = |value: Option<u64>, of: u64| value.unwrap().abs_diff(of) <= 2;
        assert!(near(series[0].first_start_ns, 1000), "{series:?}");
        assert!(near(series[0].first_latency_ns, 4000), "{series:?}");
        assert!(near(series[0].last_end_ns, 2 * INTERVAL + 900), "{series:?}");
    }

    #[test]
    fn operations_are_counted_by_file_and_by_size() {
        let clock = Clock::new();
        let start = clock.now();
        let collector = Collector::new(series(1), INTERVAL, false);
        let mut recorder = WorkerRecorder::new(&collector, &clock, start, 0, None);
        let mut end = 0;
        for (file, bytes, length) in [(3, 4096, 1_000), (3, 4097, 2_000), (67, 4096, 4_000), (9, 0, 8_000)] {
            let timed = timing(&clock, start, end, end + length);
            assert!(recorder.success(0, timed, bytes, Spot::file(0, file)));
            end += length;
        }
        assert!(!recorder.success(0, timing(&clock, start, 2 * INTERVAL, 2 * INTERVAL + 500), 1, Spot::NONE));
        recorder.finish();
        let parts = collector.finish().parts;
        let counted: Vec<_> = parts.iter().map(|row| (row.part, row.key, row.count)).collect();
        let (file, size) = (PartOf::File, PartOf::Size);
        assert_eq!(counted, [(file, 3, 3), (file, 9, 1), (size, 0, 1), (size, 12, 2), (size, 13, 1)]);
        assert!(parts[0].sum_ns.abs_diff(7_000) <= 20 && parts[0].label == "read0", "{parts:?}");
    }

    #[test]
    fn five_minutes_of_five_series_are_small() {
        let clock = Clock::new();
        let start = clock.now();
        let collector = Collector::new(series(5), INTERVAL, false);
        let mut recorder = WorkerRecorder::new(&collector, &clock, start, 0, None);
        for interval in 0..300 {
            for n in 0..2000u64 {
                // Latencies over three orders of magnitude, as a busy file system has them.
                let latency = 10_000 + (n * n * n) % 10_000_000;
                let end = interval * INTERVAL + 20_000_000 + n * 400_000;
                let timing = timing(&clock, start, end - latency.min(end), end);
                let _ = recorder.success((n % 5) as u16, timing, 4096, Spot::NONE);
            }
        }
        recorder.finish();
        let collected = collector.finish();
        let size = |series: &SeriesRecording| -> usize {
            series.intervals.iter().map(|i| i.stats.latency.0.len() + size_of_val(i)).sum()
        };
        assert!(collected.series.iter().all(|series| series.intervals.len() == 300));
        let bytes: usize = collected.series.iter().map(size).sum();
        assert!(bytes < 3 << 20, "{bytes} bytes");
    }

    #[test]
    fn errors_are_counted_by_name_and_the_first_ones_kept_in_full() {
        let clock = Clock::new();
        let start = clock.now();
        let collector = Collector::new(series(1), INTERVAL, false);
        let mut recorder = WorkerRecorder::new(&collector, &clock, start, 0, None);
        for n in 0..1000 {
            let error = match n % 4 {
                0 => OperationError::Short { asked: 8, done: 4 },
                _ => OperationError::Os(libc::ENOSPC),
            };
            recorder.failure(
                0,
                timing(&clock, start, 0, 1),
                Spot { offset: n * 8, ..Spot::NONE },
                error,
                &|| "data/f".into(),
            );
        }
        recorder.finish();
        let collected = collector.finish();
        let errors: Vec<_> =
            collected.series[0].errors.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(errors, [("ENOSPC", 750), ("short", 250)]);
        assert_eq!(collected.series[0].total.errors, 1000);
        assert_eq!(collected.details.len(), 20);
        assert_eq!(collected.details[0], "read0 data/f, offset 0: only 4 of 8 bytes were moved");
        assert!(
            collected.details[1].starts_with("read0 data/f, offset 8: No space left on device"),
            "{collected:?}"
        );
    }
}
