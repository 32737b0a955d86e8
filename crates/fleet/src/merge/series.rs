//! The series of many processes as one each.

use std::collections::BTreeMap;

use benchmaster_record::recording::{
    EncodedHistogram, HistogramError, IntervalStats, OperationStats, PartOf, PartRow, Recording,
    SeriesRecording, SlowOperation, latency_histogram,
};
use hdrhistogram::Histogram;

use super::MergeError;

/// Adds up every series over all processes.
pub(super) fn merge(parts: &[&Recording]) -> Result<Vec<SeriesRecording>, MergeError> {
    let Some(first) = parts.first() else { return Ok(Vec::new()) };
    let keys = |part: &Recording| -> Vec<_> { part.series.iter().map(|series| series.key.clone()).collect() };
    let expected = keys(first);
    for part in parts {
        let different = |what: &str| Err(MergeError::Different { agent: agent(part), what: what.into() });
        if keys(part) != expected {
            return different("series");
        }
        if (first.interval_ns, &first.workload) != (part.interval_ns, &part.workload) {
            return different("intervals or workload");
        }
    }
    (0..expected.len()).map(|index| one(parts, index)).collect()
}

/// The agent of a recording, or the first of several.
fn agent(recording: &Recording) -> String {
    recording.agents.first().map(|agent| agent.name.clone()).unwrap_or_default()
}

/// Files, sizes and connections over all processes: those of the same number are one.
pub(super) fn part_rows(parts: &[&Recording]) -> Vec<PartRow> {
    let mut sums: BTreeMap<(PartOf, &str, u32), (u64, u64)> = BTreeMap::new();
    for row in parts.iter().flat_map(|part| &part.parts) {
        let (count, sum_ns) = sums.entry((row.part, &row.label, row.key)).or_default();
        (*count, *sum_ns) = (*count + row.count, sum_ns.saturating_add(row.sum_ns));
    }
    let row = |((part, label, key), (count, sum_ns)): ((_, &str, _), _)| PartRow {
        part,
        label: label.into(),
        key,
        count,
        sum_ns,
    };
    sums.into_iter().map(row).collect()
}

/// The first slow operations of all processes, whose workers follow each other.
pub(super) fn slow(parts: &[&Recording]) -> Vec<SlowOperation> {
    let before = parts.iter().scan(0_u32, |workers, part| {
        let before = *workers;
        *workers += part.workers.len() as u32;
        Some(before)
    });
    let of = |(part, before): (&&Recording, u32)| -> Vec<SlowOperation> {
        part.slow.iter().map(|one| SlowOperation { worker: one.worker + before, ..*one }).collect()
    };
    let mut slow: Vec<SlowOperation> = parts.iter().zip(before).flat_map(of).collect();
    slow.sort_by_key(|one| (one.start_ns, one.worker));
    slow.truncate(SlowOperation::MOST);
    slow
}

/// One series over all processes.
fn one(parts: &[&Recording], index: usize) -> Result<SeriesRecording, MergeError> {
    let mut total = Sum::default();
    let mut intervals: BTreeMap<u32, Sum> = BTreeMap::new();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let mut service: Option<Histogram<u64>> = None;
    let mut key = None;
    let mut span: Option<(u64, u64)> = None;
    for part in parts {
        let Some(series) = part.series.get(index) else { continue };
        let unreadable = |source| MergeError::Histogram { agent: agent(part), source };
        key.get_or_insert_with(|| series.key.clone());
        total.add(&series.total).map_err(unreadable)?;
        let wider = |(first, last): (u64, u64), (start, end): (u64, u64)| (first.min(start), last.max(end));
        span = [span, series.span].into_iter().flatten().reduce(wider);
        for interval in &series.intervals {
            intervals.entry(interval.index).or_default().add(&interval.stats).map_err(unreadable)?;
        }
        for (name, count) in &series.errors {
            *errors.entry(name.clone()).or_default() += count;
        }
        if let Some(own) = &series.service {
            let own = own.decode().map_err(unreadable)?;
            // Both have the one shape of all histograms: adding cannot fail.
            let _ = service.get_or_insert_with(latency_histogram).add(&own);
        }
    }
    let key = key.ok_or(MergeError::Nothing)?;
    let interval = |(index, sum): (u32, Sum)| IntervalStats { index, stats: sum.finish() };
    Ok(SeriesRecording {
        key,
        total: total.finish(),
        intervals: intervals.into_iter().map(interval).collect(),
        errors,
        span,
        service: service.map(|service| EncodedHistogram::encode(&service)),
    })
}

/// Statistics as they grow.
#[derive(Debug, Default)]
struct Sum {
    counts: OperationStats,
    /// `None`: what is in `counts` is all.
    latency: Option<Histogram<u64>>,
    parts: u32,
}

impl Sum {
    fn add(&mut self, stats: &OperationStats) -> Result<(), HistogramError> {
        self.parts += 1;
        if self.parts == 1 {
            self.counts = stats.clone();
            return Ok(());
        }
        let latency = match &mut self.latency {
            Some(latency) => latency,
            none => none.insert(self.counts.latency.decode()?),
        };
        // Both have the one shape of all histograms: adding cannot fail.
        let _ = latency.add(&stats.latency.decode()?);
        self.counts.add_counts(stats);
        Ok(())
    }

    fn finish(self) -> OperationStats {
        let latency = match self.latency {
            Some(latency) => EncodedHistogram::encode(&latency),
            None => self.counts.latency,
        };
        OperationStats { latency, ..self.counts }
    }
}
