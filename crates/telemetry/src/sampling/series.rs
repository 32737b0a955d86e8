//! What is kept of the readings.
//!
//! Samplers give their values in the same order in every tick, so that the next value's series is nearly always that after
//! the last one. Names stand one after the other in one piece of memory for the same reason. Values go into a log of
//! whole chunks: once every series is known, nothing is allocated but a chunk now and then.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use super::{Kind, Metric, MetricKey, Point, SampleError, SamplerProblem, Series, Sink};

/// Series of one sampler beyond which no more are kept.
const MOST_SERIES: usize = 50_000;
/// Problems of one sampler beyond which no more are kept.
const MOST_PROBLEMS: usize = 8;
/// Entries of a chunk of the log: 512 KiB.
const CHUNK: usize = 32 << 10;

/// All that one sampler gave.
#[derive(Debug)]
pub struct Recorder {
    sampler: &'static str,
    slots: Vec<Slot>,
    /// Metric and instance of each slot, in the order of slots.
    names: String,
    /// What is not needed in every tick.
    kinds: Vec<(Kind, &'static str)>,
    index: HashTable<u32>,
    hasher: RandomState,
    /// Times of the readings.
    readings: Vec<i64>,
    log: Vec<Vec<Entry>>,
    problems: Vec<SamplerProblem>,
    known_problems: HashSet<String>,
}

/// The state of one series.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Where its names are.
    name: u32,
    metric_len: u16,
    instance_len: u16,
    /// The last reading that has it, and the last one in the log; numbers of readings.
    seen: u32,
    stored: u32,
    value: f64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    slot: u32,
    reading: u32,
    value: f64,
}

/// No reading.
const NEVER: u32 = u32::MAX;

/// One reading of one sampler, while it is made.
#[derive(Debug)]
pub struct Reading<'a> {
    recorder: &'a mut Recorder,
    number: u32,
    time_ns: i64,
    cursor: usize,
}

impl Recorder {
    /// Nothing yet.
    pub fn new(sampler: &'static str) -> Self {
        Self {
            sampler,
            slots: Vec::new(),
            names: String::new(),
            kinds: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::new(),
            readings: Vec::with_capacity(1 << 10),
            log: Vec::with_capacity(64),
            problems: Vec::new(),
            known_problems: HashSet::new(),
        }
    }

    /// Begins a reading at a time of `CLOCK_MONOTONIC`.
    pub fn reading(&mut self, time_ns: i64) -> Reading<'_> {
        let number = self.readings.len().min(NEVER as usize - 1) as u32;
        self.readings.push(time_ns);
        Reading { recorder: self, number, time_ns, cursor: 0 }
    }

    /// Takes note of a problem, once.
    pub fn problem(&mut self, problem: String) {
        if self.problems.len() >= MOST_PROBLEMS || self.known_problems.contains(&problem) {
            return;
        }
        self.known_problems.insert(problem.clone());
        let problem = if self.problems.len() + 1 == MOST_PROBLEMS {
            format!("{problem} (further problems are not listed)")
        } else {
            problem
        };
        self.problems.push(SamplerProblem { sampler: self.sampler.to_owned(), problem });
    }

    /// All that was recorded.
    pub fn finish(mut self) -> (Vec<Series>, Vec<SamplerProblem>) {
        for slot in 0..self.slots.len() {
            self.store_seen(slot);
        }
        let mut counts = vec![0_usize; self.slots.len()];
        for entry in self.log.iter().flatten() {
            if let Some(count) = counts.get_mut(entry.slot as usize) {
                *count += 1;
            }
        }
        let mut series: Vec<Series> = Vec::with_capacity(self.slots.len());
        for (slot, count) in self.slots.iter().zip(counts) {
            let (metric, instance) = slot.names(&self.names);
            let (kind, unit) = self.kinds.get(series.len()).copied().unwrap_or((Kind::Gauge, ""));
            series.push(Series {
                key: MetricKey {
                    sampler: self.sampler.to_owned(),
                    metric: metric.to_owned(),
                    instance: instance.to_owned(),
                },
                kind,
                unit: Cow::Borrowed(unit),
                points: Vec::with_capacity(count),
            });
        }
        for entry in self.log.into_iter().flatten() {
            let time_ns = self.readings.get(entry.reading as usize).copied().unwrap_or_default();
            if let Some(series) = series.get_mut(entry.slot as usize) {
                series.points.push(Point { time_ns, value: entry.value });
            }
        }
        (series, self.problems)
    }

    fn push(&mut self, entry: Entry) {
        match self.log.last_mut() {
            Some(chunk) if chunk.len() < chunk.capacity() => chunk.push(entry),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(entry);
                self.log.push(chunk);
            }
        }
    }

    /// The end of a row of equal readings goes into the log too.
    fn store_seen(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        if slot.seen != slot.stored {
            slot.stored = slot.seen;
            let entry = Entry { slot: at as u32, reading: slot.seen, value: slot.value };
            self.push(entry);
        }
    }

    /// The slot of that name, made if there is none.
    fn slot(&mut self, metric: Metric<'_>, instance: &str) -> Option<usize> {
        let hash = self.hasher.hash_one((metric.name, instance));
        let (slots, names, hasher) = (&self.slots, &self.names, &self.hasher);
        let is =
            |slot: &u32| slots.get(*slot as usize).is_some_and(|slot| slot.is(names, metric.name, instance));
        if let Some(found) = self.index.find(hash, is) {
            return Some(*found as usize);
        }
        let (metric_len, instance_len) =
            (u16::try_from(metric.name.len()).ok()?, u16::try_from(instance.len()).ok()?);
        let at = self.slots.len();
        if at >= MOST_SERIES {
            self.problem(format!("it has more than {MOST_SERIES} series: further ones are not kept"));
            return None;
        }
        let rehash = |slot: &u32| {
            hasher.hash_one(slots.get(*slot as usize).map_or(("", ""), |slot| slot.names(names)))
        };
        self.index.insert_unique(hash, at as u32, rehash);
        let name = u32::try_from(self.names.len()).ok()?;
        self.names.push_str(metric.name);
        self.names.push_str(instance);
        self.kinds.push((metric.kind, metric.unit));
        self.slots.push(Slot { name, metric_len, instance_len, seen: NEVER, stored: NEVER, value: 0.0 });
        Some(at)
    }
}

impl Slot {
    fn names<'a>(&self, names: &'a str) -> (&'a str, &'a str) {
        let middle = self.name as usize + usize::from(self.metric_len);
        let name = |from, to| names.get(from..to).unwrap_or_default();
        (name(self.name as usize, middle), name(middle, middle + usize::from(self.instance_len)))
    }

    fn is(&self, names: &str, metric: &str, instance: &str) -> bool {
        usize::from(self.metric_len) == metric.len()
            && usize::from(self.instance_len) == instance.len()
            && self.names(names) == (metric, instance)
    }
}

impl Reading<'_> {
    /// `CLOCK_MONOTONIC` of this reading, in nanoseconds.
    pub fn time_ns(&self) -> i64 {
        self.time_ns
    }

    /// Reports what could not be read, once.
    pub fn problem(&mut self, problem: &SampleError) {
        self.recorder.problem(problem.to_string());
    }
}

impl Sink for Reading<'_> {
    fn put(&mut self, metric: Metric<'_>, instance: &str, value: f64) {
        let recorder = &mut *self.recorder;
        let expected = recorder.slots.get(self.cursor);
        let at = if expected.is_some_and(|slot| slot.is(&recorder.names, metric.name, instance)) {
            self.cursor
        } else {
            let Some(at) = recorder.slot(metric, instance) else { return };
            at
        };
        self.cursor = at + 1;
        let Some(slot) = recorder.slots.get_mut(at) else { return };
        if slot.seen == self.number {
            // Twice in one reading: the first one counts.
            return;
        }
        let changed = slot.stored == NEVER || slot.value.to_bits() != value.to_bits();
        if changed && slot.stored != NEVER {
            recorder.store_seen(at);
        }
        let Some(slot) = recorder.slots.get_mut(at) else { return };
        (slot.value, slot.seen) = (value, self.number);
        if changed {
            slot.stored = self.number;
            recorder.push(Entry { slot: at as u32, reading: self.number, value });
        }
    }
}

#[cfg(test)]
mod tests;
