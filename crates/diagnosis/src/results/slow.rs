//! Slow operations one by one, as far as the recording kept them: those that ended together.

use std::collections::BTreeSet;

use benchmaster_record::recording::SlowOperation;

use crate::measured::Measured;

/// How far apart in time operations end that ended together: nanoseconds, a part of the latency of the first, and times what
/// they take else.
const APART_NS: f64 = 2e6;
const APART: f64 = 0.05;
const USUAL: f64 = 2.0;
/// How many times as far apart as their latencies the ends of operations may be that something released together.
const RELEASED: u64 = 4;

/// Slow operations that were all under way at one moment, and ended together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Together {
    /// When the first of them ended, in nanoseconds from the start of the measured phase.
    pub(super) ended_ns: u64,
    /// The longest latency.
    pub(super) longest_ns: u64,
    /// All latencies.
    pub(super) sum_ns: u64,
    /// Operations, and workers that had them.
    pub(super) operations: usize,
    pub(super) workers: usize,
    /// From the first to the last end, and from the lowest to the highest latency.
    ends_apart_ns: u64,
    latencies_apart_ns: u64,
}

impl Together {
    /// Whether something released all of them at once. Operations that are each held up for the same time have latencies that are
    /// more alike than their ends.
    pub(super) fn is_released(&self) -> bool {
        self.ends_apart_ns <= RELEASED * self.latencies_apart_ns
    }
}

/// Operations that took at least so long, by those that ended together; others take `usual_ns`.
pub(super) fn together(measured: &Measured<'_>, least_ns: u64, usual_ns: u64) -> Vec<Together> {
    let mut slow: Vec<&SlowOperation> =
        measured.recording.slow.iter().filter(|one| one.latency_ns >= least_ns).collect();
    slow.sort_by_key(|one| end(one));
    let with = |group: &[&SlowOperation], next: &SlowOperation| {
        let Some(first) = group.first() else { return false };
        let apart = APART_NS + APART * first.latency_ns as f64 + USUAL * usual_ns as f64;
        (end(next) - end(first)) as f64 <= apart && next.start_ns <= end(first)
    };
    let mut groups: Vec<Vec<&SlowOperation>> = Vec::new();
    for one in slow {
        match groups.last_mut().filter(|group| with(group, one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.iter().filter_map(|group| of(group)).collect()
}

fn end(one: &SlowOperation) -> u64 {
    one.start_ns.saturating_add(one.latency_ns)
}

fn of(group: &[&SlowOperation]) -> Option<Together> {
    let latencies = || group.iter().map(|one| one.latency_ns);
    let (ended_ns, longest_ns) = (end(group.first()?), latencies().max()?);
    Some(Together {
        ended_ns,
        longest_ns,
        sum_ns: latencies().sum(),
        operations: group.len(),
        workers: group.iter().map(|one| one.worker).collect::<BTreeSet<_>>().len(),
        ends_apart_ns: end(group.last()?) - ended_ns,
        latencies_apart_ns: longest_ns - latencies().min()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::phenomena::made;
    use benchmaster_record::results::RunRecord;

    #[test]
    fn operations_that_end_together_are_one_group() {
        let ms = |start: u64, latency: u64, worker: u32| SlowOperation {
            worker,
            start_ns: start * 1_000_000,
            latency_ns: latency * 1_000_000,
            ..SlowOperation::default()
        };
        let mut recording = made::recording("read", 10.0);
        // A stop from 100 to 160 ms; one alone; two that end at about the same time, but were never under way together.
        recording.slow =
            vec![ms(95, 66, 0), ms(99, 61, 1), ms(100, 60, 2), ms(300, 70, 1), ms(500, 40, 0), ms(540, 1, 1)];
        // Each of them takes as long.
        recording.slow.extend([ms(700, 60, 0), ms(701, 60, 1), ms(703, 60, 2)]);
        let mut results = made::study(
            "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.read]\nuse = \"random-read\"\n",
        );
        made::add(&mut results, 0, vec![recording], &[]);
        let run: &RunRecord = &results.runs[0];
        let traces = made::Traces::default();
        let measured = Measured::new(&results, run, &run.recordings[0], &traces);
        let found: Vec<_> = together(&measured, 20_000_000, 0)
            .iter()
            .map(|one| (one.workers, one.operations, one.longest_ns / 1_000_000, one.is_released()))
            .collect();
        assert_eq!(found, [(3, 3, 66, true), (1, 1, 70, true), (1, 1, 40, true), (3, 3, 60, false)]);
        assert_eq!(together(&measured, 65_000_000, 0).len(), 2);
    }
}
