//! What several of the phenomena need: numbers in words, histograms, shares.

use benchmaster_record::model::{Sharing, Workload};
use benchmaster_record::recording::IntervalStats;
use hdrhistogram::Histogram;

use crate::prelude::*;

/// Three digits that mean something.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || (size - size.round()).abs() < 1e-9 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A p value in words.
pub(super) fn p_text(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

/// The latencies of a series; `None` when it has none, or they are damaged.
pub(super) fn latencies(series: &SeriesRecording) -> Option<Histogram<u64>> {
    series.total.latency.decode().ok().filter(|histogram| !histogram.is_empty())
}

/// Intervals of a series that count: whole ones after the warm-up cut.
pub(super) fn counted<'a>(
    measured: &Measured<'a>,
    series: &'a SeriesRecording,
) -> impl Iterator<Item = &'a IntervalStats> {
    let first = measured.recording.cut_ns / measured.recording.interval_ns.max(1);
    counted_whole(measured, series).filter(move |one| u64::from(one.index) >= first)
}

/// Whole intervals of a series, also those that were cut.
pub(super) fn counted_whole<'a>(
    measured: &Measured<'a>,
    series: &'a SeriesRecording,
) -> impl Iterator<Item = &'a IntervalStats> + use<'a> {
    let last = measured.recording.length_ns / measured.recording.interval_ns.max(1);
    series.intervals.iter().filter(move |one| u64::from(one.index) < last)
}

/// `calls` of `OPEN` and the like over the wire.
pub(super) fn ops(measured: &Measured<'_>, operations: &[&str]) -> u64 {
    let ops = |name: &&str| measured.rpc(name).map_or(0, |row| row.ops);
    operations.iter().map(ops).sum()
}

/// Nanoseconds that these calls took from their beginnings to their ends.
pub(super) fn execute_ns(measured: &Measured<'_>, operations: &[&str]) -> u64 {
    let took = |name: &&str| measured.rpc(name).map_or(0, |row| row.execute_ns);
    operations.iter().map(took).sum()
}

/// The same of all calls.
pub(super) fn all_execute_ns(measured: &Measured<'_>) -> u64 {
    measured.calls().map_or(0, |calls| calls.execute_ns)
}

/// What is said where RPCs were not counted: of a directory that need not be on NFS nothing.
pub(super) fn without_rpcs(measured: &Measured<'_>) -> Verdict {
    if measured.run.service.is_none() { Verdict::Irrelevant } else { Verdict::Unknown(NO_RPCS.into()) }
}

/// Whether clients use the same files.
pub(super) fn shares_files(measured: &Measured<'_>) -> bool {
    let shared = |workload: &Workload| workload.filesets.values().any(|set| set.sharing == Sharing::Shared);
    measured.workload.is_some_and(shared)
}

/// What is missing where RPCs were not counted.
pub(super) const NO_RPCS: &str =
    "RPCs were not counted: they are for `target.url`, and for directories on NFS mounts of the Linux client";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words() {
        assert_eq!([9.476, 0.9, 16.0, 134.1].map(digits), ["9.48", "0.900", "16", "134"]);
        assert_eq!((p_text(0.0001), p_text(0.02)), ("p < 0.001".into(), "p = 0.020".into()));
    }
}
