//! From a recording to the numbers that are analysed: the warm-up cut, the part that counts, the responses.

use std::collections::BTreeMap;
use std::ops::Range;

use benchmaster_record::model::OperationKind;
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{
    OperationStats, Recording, RpcRecording, RpcRow, SeriesRecording, StopReason, latency_histogram,
};
use benchmaster_record::results::{Response, Unit};
use benchmaster_stats::steady::{MSER_LEAST, mser5};
use hdrhistogram::Histogram;

/// The part of a recording that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// First interval, after the warm-up cut; `None`: everything counts, by totals.
    pub intervals: Option<(u32, u32)>,
    /// Its length in seconds.
    pub seconds: f64,
}

/// The part that counts of a workload limited by time: whole intervals after the cut during which all workers were at
/// work. Of one limited by work: all of it.
pub fn counted(recording: &Recording) -> Counted {
    let all = Counted { intervals: None, seconds: recording.length_ns as f64 / 1e9 };
    if !recording.timed {
        return all;
    }
    let (first, end) = ((recording.cut_ns / recording.interval_ns) as u32, common_end(recording));
    // Whole intervals without a completion, while there were some: the totals are what is known of the rate.
    let nothing = !completes(recording, first..end) && recording.series.iter().any(|s| s.total.count > 0);
    if first < end && !nothing {
        Counted {
            intervals: Some((first, end)),
            seconds: f64::from(end - first) * recording.interval_ns as f64 / 1e9,
        }
    } else {
        all
    }
}

/// Whether an operation was completed in these intervals.
fn completes(recording: &Recording, range: Range<u32>) -> bool {
    let intervals = recording.series.iter().flat_map(|s| &s.intervals);
    intervals.filter(|i| range.contains(&i.index)).any(|i| i.stats.count > 0)
}

/// The number of whole intervals during which every worker that was limited by time was at work.
fn common_end(recording: &Recording) -> u32 {
    let timed = recording.workers.iter().filter(|worker| worker.stop == StopReason::Time);
    let end = timed.map(|worker| worker.end_ns).min().unwrap_or(recording.length_ns);
    (end / recording.interval_ns) as u32
}

/// What happened per interval, from the first one to the end of the part in which all workers were at work: bytes if the
/// workload moves data, else operations.
pub fn progress_series(recording: &Recording) -> Vec<f64> {
    let mut series = vec![0.0; common_end(recording) as usize];
    let moves_data = recording.series.iter().any(|s| s.total.bytes > 0);
    for interval in recording.series.iter().flat_map(|s| &s.intervals) {
        if let Some(slot) = series.get_mut(interval.index as usize) {
            *slot += if moves_data { interval.stats.bytes } else { interval.stats.count } as f64;
        }
    }
    series
}

pub fn keep_warm_up(recording: &mut Recording) {
    recording.cut_ns = 0;
    recording.cut_reason = "nothing was cut, as the study asks".into();
}

/// What the course of a workload says about its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// Nothing was asked, or there was too little to judge.
    Unknown,
    /// The rate became steady.
    Steady,
    /// It did not.
    NotSteady,
    /// Nothing was completed any more in the second half: the run stood still until its end.
    Stalled {
        /// Operations completed before.
        operations: u64,
        /// When the last of them was, from the common start.
        until_ns: u64,
    },
}

/// Completions from which an empty second half is no chance: one that each of them misses with probability ½.
const STALL_OPERATIONS: u64 = 10;

/// Cuts the warm-up off by MSER-5.
pub fn cut_warm_up(recording: &mut Recording) -> Course {
    recording.cut_ns = 0;
    if !recording.timed {
        recording.cut_reason = "nothing was cut: a fixed amount of work is measured whole".into();
        return Course::Unknown;
    }
    let series = progress_series(recording);
    if let Some((operations, until_ns)) = stall(recording, series.len()) {
        recording.cut_reason =
            "nothing was cut: no operation was completed in the second half of the measured phase".into();
        return Course::Stalled { operations, until_ns };
    }
    let Some(mser) = mser5(&series) else {
        recording.cut_reason = format!(
            "nothing was cut: MSER-5 decides from {MSER_LEAST} intervals or more, and there are {}",
            series.len()
        );
        return Course::Unknown;
    };
    let left = mser.truncate_samples as u32..series.len() as u32;
    if mser.steady && mser.truncate_samples > 0 && !completes(recording, left) {
        recording.cut_reason =
            "nothing was cut: all operations were completed before the cut of MSER-5".into();
        Course::Unknown
    } else if mser.steady {
        recording.cut_ns = mser.truncate_samples as u64 * recording.interval_ns;
        recording.cut_reason = format!("MSER-5 cut {} of {} intervals", mser.truncate_samples, series.len());
        Course::Steady
    } else {
        recording.cut_reason = "nothing was cut: MSER-5 found no steady state".into();
        Course::NotSteady
    }
}

/// Completed operations and the end of the last interval that has one, when the second half of the intervals is empty.
/// MSER-5 would take such a half for a perfectly steady state, and cut away all that was measured.
fn stall(recording: &Recording, intervals: usize) -> Option<(u64, u64)> {
    let filled = recording.series.iter().flat_map(|s| &s.intervals).filter(|i| i.stats.count > 0);
    let filled = filled.filter(|i| (i.index as usize) < intervals);
    let (operations, last) =
        filled.fold((0, 0), |(sum, last), i| (sum + i.stats.count, last.max(i.index as usize)));
    (operations >= STALL_OPERATIONS && last < intervals / 2)
        .then(|| (operations, (last as u64 + 1) * recording.interval_ns))
}

/// The part of one series that counts: its sums, and its latencies as a histogram.
pub fn counted_stats(recording: &Recording, series: &SeriesRecording) -> (OperationStats, Histogram<u64>) {
    let Some((first, end)) = counted(recording).intervals else {
        let histogram = series.total.latency.decode().unwrap_or_else(|_| latency_histogram());
        return (series.total.clone(), histogram);
    };
    let mut sum = OperationStats::default();
    let mut histogram = latency_histogram();
    for interval in series.intervals.iter().filter(|i| (first..end).contains(&i.index)) {
        sum.add_counts(&interval.stats);
        if let Ok(part) = interval.stats.latency.decode() {
            // All histograms have the same bounds.
            let _ = histogram.add(&part);
        }
    }
    (sum, histogram)
}

/// The responses of one workload of a run. A response that has no value (the latency of an operation that never
/// succeeded) is absent. `until` names throughputs up to the end of the last operation of a kind.
pub fn responses(recording: &Recording, until: &[(&str, OperationKind)]) -> Vec<Response> {
    let name = &recording.workload;
    let seconds = counted(recording).seconds;
    let mut list = Vec::new();
    let mut push = |what: String, value: f64, unit| {
        list.push(Response { name: format!("{name}.{what}"), value, unit });
    };
    let parts: Vec<_> = recording.series.iter().map(|s| (s, counted_stats(recording, s))).collect();
    let moves_data = parts.iter().any(|(s, _)| s.key.operation.moves_data());
    let bytes: u64 = parts.iter().map(|(_, (stats, _))| stats.bytes).sum();
    let count: u64 = parts.iter().map(|(_, (stats, _))| stats.count).sum();
    if moves_data {
        push("throughput".into(), bytes as f64 / seconds, Unit::BytesPerSecond);
    }
    push("operations".into(), count as f64 / seconds, Unit::OperationsPerSecond);
    push("elapsed".into(), recording.length_ns as f64, Unit::Nanoseconds);
    if let Some(witness) = &recording.witness {
        push("acknowledged".into(), witness.acknowledged() as f64, Unit::Count);
        push("lost".into(), witness.missing() as f64, Unit::Count);
    }
    for &(what, operation) in until {
        if let Some(nanos) = end_of(recording, operation) {
            push(what.into(), bytes as f64 * 1e9 / nanos.max(1) as f64, Unit::BytesPerSecond);
        }
    }
    for (series, (stats, latency)) in merged_by_label(parts) {
        let label = &series.key.label;
        if series.key.operation.moves_data() {
            push(format!("{label}.throughput"), stats.bytes as f64 / seconds, Unit::BytesPerSecond);
        }
        push(format!("{label}.operations"), stats.count as f64 / seconds, Unit::OperationsPerSecond);
        if let Some((count, bytes, seconds)) = active(recording, label) {
            if series.key.operation.moves_data() {
                push(format!("{label}.active_throughput"), bytes as f64 / seconds, Unit::BytesPerSecond);
            }
            push(format!("{label}.active_operations"), count as f64 / seconds, Unit::OperationsPerSecond);
        }
        if stats.count > 0 {
            let mut latency_of = |what: &str, value: f64| {
                push(format!("{label}.latency.{what}"), value, Unit::Nanoseconds);
            };
            latency_of("mean", stats.sum_ns as f64 / stats.count as f64);
            for (what, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
                // A percentile that fewer than ten operations lie beyond is no more than its few largest values.
                if stats.count as f64 * (1.0 - quantile) >= 10.0 {
                    latency_of(what, latency.value_at_quantile(quantile) as f64);
                }
            }
            latency_of("max", latency.max() as f64);
        }
    }
    for (what, value, unit) in recording.rpc.as_ref().map_or_else(Vec::new, |rpc| of_rpcs(recording, rpc)) {
        push(what.into(), value, unit);
    }
    list
}

/// The response `flow_operations`: the operations of these labels, each as often as it counts.
pub fn flow_operations(recording: &Recording, labels: &BTreeMap<&str, u64>) -> Response {
    let of = |label: &str| labels.get(label).copied().unwrap_or_default();
    let count: u64 = recording
        .series
        .iter()
        .map(|series| of(&series.key.label) * counted_stats(recording, series).0.count)
        .sum();
    Response {
        name: format!("{}.flow_operations", recording.workload),
        value: count as f64 / counted(recording).seconds,
        unit: Unit::OperationsPerSecond,
    }
}

/// What is known of the RPCs of the whole measured phase; they are not counted by interval.
fn of_rpcs(recording: &Recording, rpc: &RpcRecording) -> Vec<(&'static str, f64, Unit)> {
    let rows = rpc.phase(Phase::Measure).map_or(&[][..], |phase| &phase.rows);
    let sum = |column: fn(&RpcRow) -> u64| rows.iter().map(column).sum::<u64>() as f64;
    let operations: u64 =
        recording.series.iter().map(|series| series.total.count + series.total.errors).sum();
    let (calls, operations) = (sum(|row| row.ops), operations as f64);
    let mut list = vec![("rpcs", calls, Unit::Count)];
    if operations > 0.0 {
        let (user, system) = rpc.client_cpu_ns;
        list.push(("rpcs_per_operation", calls / operations, Unit::Ratio));
        list.push(("cpu_per_operation", (user + system) as f64 / operations, Unit::Nanoseconds));
    }
    if calls > 0.0 {
        list.push(("rpc_rtt", sum(|row| row.rtt_ns) / calls, Unit::Nanoseconds));
        list.push(("rpc_queue", sum(|row| row.queue_ns) / calls, Unit::Nanoseconds));
        list.push(("rpc_execute", sum(|row| row.execute_ns) / calls, Unit::Nanoseconds));
    }
    list
}

/// Operations and bytes of all series with a label, and the seconds from the start of the first of them to the end of the
/// last one.
fn active(recording: &Recording, label: &str) -> Option<(u64, u64, f64)> {
    let series = recording.series.iter().filter(|series| series.key.label == label);
    let spans = series.clone().filter_map(|series| series.span);
    let (first, last) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let totals = series.map(|series| (series.total.count, series.total.bytes));
    let (count, bytes) = totals.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    (last > first && count > 0).then(|| (count, bytes, (last - first) as f64 / 1e9))
}

/// Time from the start to the end of the last operation of a kind.
fn end_of(recording: &Recording, operation: OperationKind) -> Option<u64> {
    let is_of =
        |series: u32| recording.series.get(series as usize).is_some_and(|s| s.key.operation == operation);
    let all = recording.workers.iter().flat_map(|worker| &worker.series);
    all.filter(|worker| is_of(worker.series)).filter_map(|worker| worker.last_end_ns).max()
}

type Part<'r> = (&'r SeriesRecording, (OperationStats, Histogram<u64>));

/// Series of several groups that have the same label are one response.
fn merged_by_label(parts: Vec<Part<'_>>) -> Vec<Part<'_>> {
    let mut merged: Vec<Part<'_>> = Vec::new();
    for (series, (stats, latency)) in parts {
        match merged.iter_mut().find(|(known, _)| known.key.label == series.key.label) {
            Some((_, (sum, histogram))) => {
                sum.add_counts(&stats);
                let _ = histogram.add(&latency);
            }
            None => merged.push((series, (stats, latency))),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchmaster_testkit::study_results;

    fn recording() -> Recording {
        study_results(1, 1, 1).runs.remove(0).recordings.remove(0)
    }

    #[test]
    fn only_whole_intervals_after_the_cut_count() {
        let mut recording = recording();
        recording.timed = true;
        recording.interval_ns = 1_000_000_000;
        recording.length_ns = 20_400_000_000;
        recording.cut_ns = 5_000_000_000;
        for worker in &mut recording.workers {
            worker.stop = StopReason::Time;
            worker.end_ns = 19_900_000_000;
        }
        assert_eq!(counted(&recording), Counted { intervals: Some((5, 19)), seconds: 14.0 });
        recording.timed = false;
        assert_eq!(counted(&recording), Counted { intervals: None, seconds: 20.4 });
    }

    #[test]
    fn a_ramp_is_cut_and_a_drift_is_not_called_steady() {
        let shaped = |shape: &dyn Fn(u64) -> u64| {
            let mut recording = recording();
            recording.timed = true;
            recording.interval_ns = 1_000_000_000;
            recording.length_ns = 60_000_000_000;
            recording.workers.clear();
            recording.series.truncate(1);
            let template = recording.series[0].intervals[0].clone();
            recording.series[0].intervals = (0..60)
                .map(|index| {
                    let mut interval = template.clone();
                    interval.index = index;
                    interval.stats.bytes = shape(u64::from(index));
                    interval.stats.count = shape(u64::from(index));
                    interval
                })
                .collect();
            recording
        };
        let mut ramp = shaped(&|i| if i < 10 { i * 10 } else { 100 + (i % 5) });
        assert_eq!(cut_warm_up(&mut ramp), Course::Steady);
        assert_eq!(
            (ramp.cut_ns, ramp.cut_reason.as_str()),
            (10_000_000_000, "MSER-5 cut 10 of 60 intervals")
        );
        let mut drift = shaped(&|i| 1000 + i * 100);
        assert_eq!(cut_warm_up(&mut drift), Course::NotSteady);
        assert_eq!(drift.cut_ns, 0);
        // A stall that lasts until the end is no steady state, whether few or many intervals come before it.
        for (before, lasts) in [(24, 60), (3, 60), (24, 48), (2, 12)] {
            let mut stalled = shaped(&|i| if i < before { 50 + i % 3 } else { 0 });
            stalled.length_ns = lasts * 1_000_000_000;
            let Course::Stalled { operations, until_ns } = cut_warm_up(&mut stalled) else {
                panic!("{before} of {lasts}: {}", stalled.cut_reason)
            };
            assert_eq!(
                (operations, until_ns),
                ((0..before).map(|i| 50 + i % 3).sum(), before * 1_000_000_000)
            );
            assert!(responses(&stalled, &[])[0].value > 0.0);
        }
        // Three operations may all fall into the first half by chance: no verdict, and no rate of 0 either.
        let mut few = shaped(&|i| u64::from(i < 3));
        assert_eq!((cut_warm_up(&mut few), few.cut_ns), (Course::Unknown, 0));
        few.cut_ns = 10_000_000_000;
        assert!(responses(&few, &[]).iter().any(|r| r.name.ends_with(".operations") && r.value > 0.0));
        let mut shorter = shaped(&|i| if (20..60).contains(&i) { 50 } else { 0 });
        assert_eq!(cut_warm_up(&mut shorter), Course::Steady);
        assert_eq!(shorter.cut_ns, 20_000_000_000);
        let mut short = shaped(&|i| i);
        short.length_ns = 49_000_000_000;
        assert_eq!(cut_warm_up(&mut short), Course::Unknown);
        assert!(short.cut_reason.contains("50 intervals or more, and there are 49"), "{}", short.cut_reason);
    }

    #[test]
    fn rpcs_have_responses_per_call_and_per_operation() {
        let mut results = study_results(1, 1, 1);
        benchmaster_testkit::serve(&mut results);
        let recording = &results.runs[0].recordings[0];
        let rpc = recording.rpc.as_ref().unwrap();
        let values = responses(recording, &[]);
        let of = |what: &str| {
            let name = format!("{}.{what}", recording.workload);
            values.iter().find(|response| response.name == name).unwrap().value
        };
        let measured = &rpc.phase(Phase::Measure).unwrap().rows;
        let calls: u64 = measured.iter().map(|row| row.ops).sum();
        assert_eq!(of("rpcs"), calls as f64);
        // One RPC for every operation that succeeded, and none for those that failed.
        let failed: u64 = recording.series.iter().map(|series| series.total.errors).sum();
        assert_eq!(of("rpcs_per_operation"), calls as f64 / (calls + failed) as f64);
        let rtt: u64 = measured.iter().map(|row| row.rtt_ns).sum();
        assert_eq!(of("rpc_rtt"), rtt as f64 / calls as f64);
        assert!(of("rpc_queue") < of("rpc_rtt") && of("rpc_rtt") < of("rpc_execute"));
        let (user, system) = rpc.client_cpu_ns;
        assert_eq!(of("cpu_per_operation"), (user + system) as f64 / (calls + failed) as f64);
    }

    #[test]
    fn every_response_is_one_that_was_promised() {
        let recording = recording();
        let values = responses(&recording, &[]);
        assert!(values.iter().all(|r| r.value.is_finite() && r.name.starts_with(&recording.workload)));
        let series = &recording.series[0];
        let (stats, _) = counted_stats(&recording, series);
        let name = format!("{}.{}.operations", recording.workload, series.key.label);
        let rate = values.iter().find(|r| r.name == name).unwrap().value;
        let same = recording.series.iter().filter(|s| s.key.label == series.key.label).count();
        if same == 1 {
            assert!((rate - stats.count as f64 / counted(&recording).seconds).abs() < 1e-6 * rate);
        }
    }
}
