//! Latency tables: histograms of all runs of a treatment merged, then percentiles; percentiles are never averaged.

use std::collections::BTreeMap;

use benchmaster_record::recording::{
    EncodedHistogram, IntervalStats, OperationStats, Recording, SeriesKey, SeriesRecording, latency_histogram,
};
use benchmaster_record::results::RunRecord;
use benchmaster_stats::percentile::PercentileTable;
use hdrhistogram::Histogram;
use serde::Serialize;

/// What the latencies of a table count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyKind {
    /// From the start of the call (closed loop).
    Latency,
    /// From the intended start (open loop): waiting included.
    Response,
    /// From the actual start (open loop), over the whole measured phase.
    Service,
}

/// Latencies of one series of one workload, over all runs of a treatment that count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencySummary {
    pub workload: String,
    pub series: SeriesKey,
    /// What latencies count from.
    pub kind: LatencyKind,
    /// Runs merged.
    pub runs: usize,
    /// Whether a warm-up was cut off in at least one of them: what lies before the cut is not in the table.
    pub cut: bool,
    pub count: u64,
    /// Failed operations, over the whole measured phase.
    pub errors: u64,
    /// Mean over operations, in nanoseconds; `None` for service times, whose exact sum is not stored.
    pub mean_ns: Option<f64>,
    /// `p50` to `p99.99` and the extremes `min` and `max`; the value is `None` where there are too few operations.
    pub percentiles: Vec<Percentile>,
    /// The latency of the first operation of each worker, averaged over workers and runs: it often pays for opening
    /// connections and filling caches.
    pub first_ns: Option<f64>,
    #[serde(skip)]
    pub histogram: Histogram<u64>,
}

impl LatencySummary {
    /// The percentile of this label (`p99.9`, `max`, …) in nanoseconds, if there are enough operations.
    pub fn percentile(&self, label: &str) -> Option<u64> {
        self.percentiles.iter().find(|p| p.label == label)?.value_ns
    }
}

/// A percentile of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Percentile {
    /// `min`, `p50`, `p90`, `p95`, `p99`, `p99.9`, `p99.99` or `max`.
    pub label: &'static str,
    /// Its value in nanoseconds; `None` when there are too few operations it.
    pub value_ns: Option<u64>,
}

type Merges = BTreeMap<(String, SeriesKey, LatencyKind), Merge>;

struct Merge {
    workload: String,
    series: SeriesKey,
    kind: LatencyKind,
    order: usize,
    runs: usize,
    cut: bool,
    count: u64,
    errors: u64,
    sum_ns: u64,
    first: Vec<u64>,
    histogram: Histogram<u64>,
}

/// The latency tables of a treatment's runs; what cannot be read goes to `damage`.
pub(super) fn latencies(runs: &[&RunRecord], damage: &mut Vec<String>) -> Vec<LatencySummary> {
    let mut merges = Merges::new();
    for run in runs {
        for recording in &run.recordings {
            for (index, series) in recording.series.iter().enumerate() {
                if let Err(problem) = merge(&mut merges, recording, index, series) {
                    let place = format!(
                        "treatment {} replicate {}, {}.{}",
                        run.key.treatment, run.key.replicate, recording.workload, series.key.label
                    );
                    damage.push(format!("{place}: {problem}; its latencies are missing from the tables"));
                }
            }
        }
    }
    let mut merged: Vec<_> = merges.into_values().collect();
    merged.sort_by_key(|m| m.order);
    merged.into_iter().map(finish).collect()
}

fn merge(
    merges: &mut Merges,
    recording: &Recording,
    index: usize,
    series: &SeriesRecording,
) -> Result<(), String> {
    let kind = if series.service.is_some() { LatencyKind::Response } else { LatencyKind::Latency };
    let (before, counted) = split(recording, series);
    let mut histogram = latency_histogram();
    // The same either way, but few histograms are read when little was cut off.
    if before.len() < counted.len() {
        add(&mut histogram, &series.total.latency)?;
        for stats in before.iter().filter(|s| s.count > 0) {
            let early = stats.latency.decode().map_err(|e| e.to_string())?;
            histogram.subtract(early).map_err(|e| e.to_string())?;
        }
    } else {
        for stats in &counted {
            add(&mut histogram, &stats.latency)?;
        }
    }
    let service = series.service.as_ref().map(EncodedHistogram::decode).transpose();
    let service = service.map_err(|e| e.to_string())?;

    let main = entry(merges, recording, series, kind);
    main.histogram.add(&histogram).map_err(|e| e.to_string())?;
    main.runs += 1;
    main.cut |= recording.timed && recording.cut_ns > 0;
    main.errors += series.total.errors;
    main.count += counted.iter().map(|s| s.count).sum::<u64>();
    main.sum_ns = main.sum_ns.saturating_add(counted.iter().map(|s| s.sum_ns).sum());
    let firsts = recording.workers.iter().flat_map(|w| &w.series).filter(|s| s.series as usize == index);
    main.first.extend(firsts.filter_map(|s| s.first_latency_ns));
    if let Some(service) = service {
        let entry = entry(merges, recording, series, LatencyKind::Service);
        entry.histogram.add(&service).map_err(|e| e.to_string())?;
        entry.runs += 1;
        entry.count += service.len();
    }
    Ok(())
}

fn entry<'a>(
    merges: &'a mut Merges,
    recording: &Recording,
    series: &SeriesRecording,
    kind: LatencyKind,
) -> &'a mut Merge {
    let order = merges.len();
    merges.entry((recording.workload.clone(), series.key.clone(), kind)).or_insert_with(|| Merge {
        workload: recording.workload.clone(),
        series: series.key.clone(),
        kind,
        order,
        runs: 0,
        cut: false,
        count: 0,
        errors: 0,
        sum_ns: 0,
        first: Vec::new(),
        histogram: latency_histogram(),
    })
}

/// What lies before the warm-up cut of a timed workload, and what counts.
fn split<'a>(
    recording: &Recording,
    series: &'a SeriesRecording,
) -> (Vec<&'a OperationStats>, Vec<&'a OperationStats>) {
    if !recording.timed || recording.cut_ns == 0 {
        return (vec![], vec![&series.total]);
    }
    let counts = |index: u32| u64::from(index).saturating_mul(recording.interval_ns) >= recording.cut_ns;
    let (after, before): (Vec<_>, Vec<_>) = series.intervals.iter().partition(|i| counts(i.index));
    let stats = |part: Vec<&'a IntervalStats>| part.into_iter().map(|i| &i.stats).collect();
    (stats(before), stats(after))
}

fn add(into: &mut Histogram<u64>, encoded: &EncodedHistogram) -> Result<(), String> {
    // Nothing recorded is stored as no bytes.
    if encoded.0.is_empty() {
        return Ok(());
    }
    into.add(encoded.decode().map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

fn finish(merge: Merge) -> LatencySummary {
    let rows = PercentileTable::of(&merge.histogram).rows();
    let is_service = merge.kind == LatencyKind::Service;
    let first = merge.first.iter().map(|ns| *ns as f64).sum::<f64>() / merge.first.len() as f64;
    LatencySummary {
        workload: merge.workload,
        series: merge.series,
        kind: merge.kind,
        runs: merge.runs,
        cut: merge.cut,
        count: merge.count,
        errors: merge.errors,
        mean_ns: (!is_service && merge.count > 0).then(|| merge.sum_ns as f64 / merge.count as f64),
        percentiles: rows.map(|row| Percentile { label: row.label, value_ns: row.value }).into(),
        first_ns: (!merge.first.is_empty()).then_some(first),
        histogram: merge.histogram,
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_testkit::study_results;

    use super::*;

    fn of(results: &benchmaster_record::results::StudyResults) -> (Vec<LatencySummary>, Vec<String>) {
        let runs: Vec<_> = results.runs.iter().collect();
        let mut damage = Vec::new();
        (latencies(&runs, &mut damage), damage)
    }

    #[test]
    fn what_was_cut_off_is_not_in_the_table() {
        let mut results = study_results(1, 1, 2);
        let (whole, _) = {
            let mut uncut = results.clone();
            uncut.runs.iter_mut().flat_map(|r| &mut r.recordings).for_each(|r| r.cut_ns = 0);
            of(&uncut)
        };
        let (little, _) = of(&results);
        for run in &mut results.runs {
            run.recordings[0].cut_ns = 15 * run.recordings[0].interval_ns;
        }
        let (much, damage) = of(&results);
        assert_eq!(damage, [""; 0]);
        assert_eq!(whole[0].workload, "write");
        for (table, intervals) in [(&whole[0], 0..20), (&little[0], 2..20), (&much[0], 15..20)] {
            let recordings = results.runs.iter().map(|r| &r.recordings[0].series[0]);
            let count: u64 = recordings
                .flat_map(|s| &s.intervals)
                .filter(|i| intervals.contains(&i.index))
                .map(|i| i.stats.count)
                .sum();
            assert_eq!((table.count, table.histogram.len()), (count, count));
            assert_eq!((table.runs, table.cut), (2, intervals.start > 0));
        }
    }

    #[test]
    fn an_open_loop_has_response_and_service_times() {
        let (tables, _) = of(&study_results(1, 1, 1));
        let kinds: Vec<_> = tables
            .iter()
            .filter(|t| t.workload == "read" && t.series.label == "read")
            .map(|t| (t.kind, t.mean_ns.is_some()))
            .collect();
        assert_eq!(kinds, [(LatencyKind::Response, true), (LatencyKind::Service, false)]);
    }

    #[test]
    fn percentiles_that_the_count_does_not_support_are_absent() {
        let (tables, _) = of(&study_results(1, 1, 1));
        let close = tables.iter().find(|t| t.series.label == "close").unwrap();
        assert!(close.count < 10_000, "{}", close.count);
        assert_eq!(close.percentile("p99.9"), None);
        assert!(close.percentile("max") >= close.percentile("p50"));
        assert!(close.percentile("p50").is_some());
    }

    #[test]
    fn damage_is_reported() {
        let mut results = study_results(1, 1, 1);
        results.runs[0].recordings[1].series[1].total.latency = EncodedHistogram(vec![1, 2, 3]);
        let (tables, damage) = of(&results);
        assert!(tables.iter().all(|t| (t.workload.as_str(), t.series.label.as_str()) != ("read", "read")));
        assert_eq!(damage.len(), 1);
        assert!(damage[0].starts_with("treatment 0 replicate 0, read.read: a stored histogram is damaged"));
    }
}
