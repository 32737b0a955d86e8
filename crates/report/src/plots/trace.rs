//! Latency of every call over time, thinned without losing spikes.

use std::collections::BTreeMap;

use benchmaster_analysis::{Analysis, counts};
use benchmaster_record::recording::{Recording, TraceRecord};
use benchmaster_record::results::{RunRecord, StudyResults};

use super::figure::{Axis, Figure, Line, Mode, View};
use crate::details::Details;

/// Parts of the time of which the fastest and the slowest call stay.
const BINS: usize = 400;
/// Slowest calls that stay, wherever they are.
const LARGEST: usize = 50;
/// First calls and failed calls drawn.
const MARKED: usize = 100;
/// Series of single calls over the whole page.
const SERIES: usize = 30;

/// Adds a plot for every workload with traces: one run of each treatment, the first that counts. Returns what could not
/// be read.
pub(super) fn figures(
    results: &StudyResults,
    analysis: &Analysis,
    details: &dyn Details,
    figures: &mut Vec<Figure>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut series_left = SERIES;
    for (number, workload) in results.study.workloads.iter().enumerate() {
        let mut views = Vec::new();
        let mut passed_over = 0;
        for treatment in &analysis.treatments {
            let of_treatment = |r: &&RunRecord| r.key.treatment == treatment.index && r.failure.is_none();
            let mut runs: Vec<_> = results.runs.iter().filter(of_treatment).collect();
            runs.sort_by_key(|r| (!counts(r), r.key.replicate));
            for run in runs {
                let Some(recording) = run.recordings.iter().find(|r| r.workload == workload.name) else {
                    continue;
                };
                if series_left < recording.series.len() {
                    passed_over += 1;
                    break;
                }
                match view(run, recording, &treatment.label, details) {
                    None => continue,
                    Some(Ok(view)) => {
                        series_left -= recording.series.len();
                        views.push(view);
                    }
                    Some(Err(problem)) => problems.push(problem),
                }
                break;
            }
        }
        if views.is_empty() {
            continue;
        }
        let passed_over = match passed_over {
            0 => String::new(),
            n => {
                format!(" {n} more treatments are not drawn, to keep the page small; their traces may exist.")
            }
        };
        let figure = Figure {
            id: format!("trace-{number}"),
            workload: workload.name.clone(),
            title: format!("{}: latency of every call over time", workload.name),
            note: format!(
                "One run of each treatment (n = 1 run; single calls, so there is no interval). For every 1/{BINS} \
                 of the time, the fastest and the slowest call of each operation are drawn, plus the {LARGEST} \
                 slowest calls overall, so no spike is lost. Diamonds are the first call of each worker, crosses \
                 failed calls.{passed_over}"
            ),
            choice: "treatment",
            height: 420,
            x: Axis {
                title: "start of the call since the start of the measured phase [s]".into(),
                ..Axis::default()
            },
            y: Axis { title: "latency [s, log]".into(), unit: "s", log: true, ..Axis::default() },
            views,
        };
        let after =
            figures.iter().rposition(|f| f.workload == workload.name).map_or(figures.len(), |i| i + 1);
        figures.insert(after, figure);
    }
    problems
}

fn view(
    run: &RunRecord,
    recording: &Recording,
    label: &str,
    details: &dyn Details,
) -> Option<Result<View, String>> {
    let mut thinned: Vec<Thinned> =
        recording.series.iter().map(|_| Thinned::new(recording.length_ns)).collect();
    let mut unknown = 0u64;
    let mut take = |records: &[TraceRecord]| {
        for record in records {
            match thinned.get_mut(usize::from(record.series)) {
                Some(series) => series.add(record),
                None => unknown += 1,
            }
        }
    };
    let place = format!("{label}, replicate {}, {}", run.key.replicate + 1, recording.workload);
    if let Err(problem) = details.trace(run, &recording.workload, &mut take)? {
        return Some(Err(format!("the trace of {place} cannot be read: {problem}")));
    }
    if unknown > 0 {
        return Some(Err(format!(
            "the trace of {place} has {unknown} calls of operations that are not in the run"
        )));
    }
    let mut view = View { label: format!("{label}, replicate {}", run.key.replicate + 1), ..View::default() };
    for (color, (series, thinned)) in recording.series.iter().zip(&thinned).enumerate() {
        let name = format!("{} ({} calls)", series.key.label, crate::format::count(thinned.count));
        let group = series.key.label.clone();
        let sets = [
            (name, thinned.kept(), "circle", 4, ""),
            (format!("{group}: first calls"), thinned.first_calls(), "diamond", 10, "first call of worker "),
            (format!("{group}: failed"), thinned.failed.clone(), "x", 9, "errno "),
        ];
        for (name, records, symbol, size, what) in sets {
            if records.is_empty() {
                continue;
            }
            let seconds = |ns: u64| ns as f64 / 1e9;
            let places = records.iter().map(|r| (seconds(r.start_ns), seconds(r.latency_ns.max(1))));
            let text = match what {
                "" => Vec::new(),
                "errno " => records.iter().map(|r| r.error.to_string()).collect(),
                _ => records.iter().map(|r| r.worker.to_string()).collect(),
            };
            view.lines.push(Line {
                symbol,
                size: Some(size),
                text,
                ..Line::through(name, color, Mode::Markers, places)
            });
        }
    }
    if recording.timed && recording.cut_ns > 0 {
        view.marks.push((recording.cut_ns as f64 / 1e9, "warm-up cut".into()));
    }
    Some(Ok(view))
}

/// The calls of one series that are drawn.
struct Thinned {
    bin_ns: u64,
    count: u64,
    /// Fastest and slowest successful call per part of the time.
    bins: BTreeMap<u64, (TraceRecord, TraceRecord)>,
    largest: Vec<TraceRecord>,
    first: BTreeMap<u32, TraceRecord>,
    failed: Vec<TraceRecord>,
}

impl Thinned {
    fn new(length_ns: u64) -> Self {
        Self {
            bin_ns: length_ns.div_ceil(BINS as u64).max(1),
            count: 0,
            bins: BTreeMap::new(),
            largest: Vec::new(),
            first: BTreeMap::new(),
            failed: Vec::new(),
        }
    }

    fn add(&mut self, record: &TraceRecord) {
        self.count += 1;
        let first = self.first.entry(record.worker).or_insert(*record);
        if record.start_ns < first.start_ns {
            *first = *record;
        }
        if record.error != 0 {
            if self.failed.len() < MARKED {
                self.failed.push(*record);
            }
            return;
        }
        let bin = self.bins.entry(record.start_ns / self.bin_ns).or_insert((*record, *record));
        if record.latency_ns < bin.0.latency_ns {
            bin.0 = *record;
        }
        if record.latency_ns > bin.1.latency_ns {
            bin.1 = *record;
        }
        let at = self.largest.partition_point(|r| r.latency_ns >= record.latency_ns);
        if at < LARGEST {
            self.largest.insert(at, *record);
            self.largest.truncate(LARGEST);
        }
    }

    fn kept(&self) -> Vec<TraceRecord> {
        let mut kept: Vec<_> = self.bins.values().flat_map(|(low, high)| [*low, *high]).collect();
        kept.extend(&self.largest);
        kept.sort_by_key(|r| (r.start_ns, r.worker, r.latency_ns));
        kept.dedup();
        kept
    }

    fn first_calls(&self) -> Vec<TraceRecord> {
        self.first.values().filter(|r| r.error == 0).take(MARKED).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_testkit::trace_records;

    use super::*;

    #[test]
    fn no_spike_is_lost() {
        let mut records = trace_records(3, 200_000);
        records.retain(|r| r.series == 0);
        let length = records[records.len() - 1].start_ns;
        // Two spikes in one part of the time, so that one of them is only among the slowest of all.
        records[1_000].latency_ns = 7_000_000_000;
        records[1_001].latency_ns = 6_000_000_000;
        records[1_000].error = 0;
        records[1_001].error = 0;
        let mut thinned = Thinned::new(length);
        records.iter().for_each(|r| thinned.add(r));
        let kept = thinned.kept();
        assert!(kept.len() <= 2 * (BINS + 1) + LARGEST, "{}", kept.len());
        for spike in [records[1_000], records[1_001]] {
            assert!(kept.contains(&spike));
        }
        assert_eq!(thinned.count as usize, records.len());
        let failed = records.iter().filter(|r| r.error != 0).count();
        assert!(failed > 0 && thinned.failed.len() == failed.min(MARKED));
        assert_eq!(thinned.first_calls().len(), 4);
    }
}
