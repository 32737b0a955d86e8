//! From the results of a study to the points of its curves.

use std::collections::BTreeSet;

use benchmaster_record::recording::{Recording, SeriesRecording, latency_histogram};
use benchmaster_record::results::{
    CheckKind, LatencyMeasure, LoadCurve, LoadRecord, Replication, RunRecord, StudyRecord, StudyResults,
};
use hdrhistogram::Histogram;

use super::judge::{Observation, Point, Question};
use crate::responses::{counted, counted_stats};
use crate::runs::counts;

/// Checks that say that the generator of the load was the limit, or could have been.
const CLIENT_CHECKS: [CheckKind; 4] =
    [CheckKind::CpuLimit, CheckKind::GeneratorLimit, CheckKind::TraceStall, CheckKind::SlotsExhausted];

/// The points of one curve: those of one treatment of the other factors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    /// The levels of all factors, that of the load at 0.
    pub(super) levels: Vec<u32>,
    /// For people: `version=4.1`; empty without other factors.
    pub(super) label: String,
    /// The loads that were run, in ascending order.
    pub(super) points: Vec<Point>,
}

/// What the curves of a study are asked; `None` when it has none.
pub(super) fn question(study: &StudyRecord) -> Option<Question> {
    let load = study.design_details.load.as_ref()?;
    Some(Question {
        curve: load.curve,
        loads: study.factors.get(load.factor as usize)?.values.clone()?,
        rise: load.rise.clone(),
        achieved: load.achieved,
        goal: load.goal,
        replicates: match study.replicates {
            Replication::Fixed(n) => n,
            Replication::Sequential { min, .. } => min,
        },
        max_replicates: load.max_replicates,
        confidence: study.confidence,
    })
}

/// All curves of a study with what was run of them.
pub(super) fn cells(results: &StudyResults) -> Vec<Cell> {
    let study = &results.study;
    let Some((load, question)) = study.design_details.load.as_ref().zip(question(study)) else {
        return Vec::new();
    };
    let mut cells: Vec<Cell> = Vec::new();
    for treatment in study.treatments.iter().filter(|treatment| !treatment.centre) {
        let Some(&level) = treatment.levels.get(load.factor as usize) else { continue };
        let Some(&requested) = question.loads.get(level as usize) else { continue };
        let mut levels = treatment.levels.clone();
        levels[load.factor as usize] = 0;
        let runs: Vec<_> = results.runs.iter().filter(|run| run.key.treatment == treatment.index).collect();
        let cell = match cells.iter().position(|cell| cell.levels == levels) {
            Some(known) => known,
            None => {
                let label = label(study, &levels, load.factor);
                cells.push(Cell { levels, label, points: Vec::new() });
                cells.len() - 1
            }
        };
        if runs.is_empty() {
            continue;
        }
        let counting: Vec<_> = runs.iter().filter(|run| counts(run)).collect();
        let observed: Vec<_> = counting.iter().filter_map(|run| observe(load, requested, run)).collect();
        let failed = runs.len() - observed.len();
        cells[cell].points.push(Point { level, runs: observed, failed });
    }
    cells.iter_mut().for_each(|cell| cell.points.sort_by_key(|point| point.level));
    cells
}

fn label(study: &StudyRecord, levels: &[u32], load: u32) -> String {
    let factors = (0u32..).zip(&study.factors).zip(levels).filter(|((index, _), _)| *index != load);
    let named = factors.filter_map(|((_, factor), &level)| {
        Some(format!("{}={}", factor.name, factor.levels.get(level as usize)?))
    });
    named.collect::<Vec<_>>().join(" ")
}

/// What a run says of its load, which is `load` per client; `None` when it did nothing of what is counted.
fn observe(record: &LoadRecord, load: f64, run: &RunRecord) -> Option<Observation> {
    let recording = run.recordings.iter().find(|recording| recording.workload == record.workload)?;
    let of_group = || recording.series.iter().filter(|series| series.key.group == record.group);
    let mut response = latency_histogram();
    let (mut done, mut sum, mut operations) = (0, 0, 0);
    for series in of_group() {
        let (stats, latency) = counted_stats(recording, series);
        if record.counted.contains(&series.key.label) {
            done += stats.count;
        }
        sum += stats.sum_ns;
        operations += stats.count;
        // All histograms have the same bounds.
        let _ = response.add(&latency);
    }
    let seconds = counted(recording).seconds;
    if operations == 0 || seconds <= 0.0 {
        return None;
    }
    let service = service(of_group());
    let judged = |latency: &Histogram<u64>, mean: f64| measure(record.goal?.latency, latency, mean);
    let response_ns = sum as f64 / operations as f64;
    Some(Observation {
        requested: (record.curve == LoadCurve::Open).then(|| load * clients(recording, &record.group)),
        achieved: done as f64 / record.per_flow / seconds,
        response_ns,
        judged_ns: judged(&response, response_ns),
        service_ns: service.as_ref().map_or(response_ns, Histogram::mean),
        judged_service_ns: service.as_ref().and_then(|service| judged(service, service.mean())),
        busy: busy(recording, record, service.as_ref()),
        client: client(run, &record.workload),
    })
}

/// How many clients have the group.
fn clients(recording: &Recording, group: &str) -> f64 {
    let workers = recording.workers.iter().filter(|worker| worker.group == group);
    workers.map(|worker| worker.client).collect::<BTreeSet<_>>().len().max(1) as f64
}

/// Service times over the whole measured phase; `None` in a closed loop, where they are the response times.
fn service<'r>(series: impl Iterator<Item = &'r SeriesRecording>) -> Option<Histogram<u64>> {
    let mut all: Option<Histogram<u64>> = None;
    for part in series.filter_map(|series| series.service.as_ref()?.decode().ok()) {
        let _ = all.get_or_insert_with(latency_histogram).add(&part);
    }
    all.filter(|all| !all.is_empty())
}

/// Share of the workers' time within operations.
fn busy(recording: &Recording, record: &LoadRecord, service: Option<&Histogram<u64>>) -> f64 {
    let workers = recording.workers.iter().filter(|worker| worker.group == record.group);
    let time: u64 = workers.map(|worker| worker.end_ns.saturating_sub(worker.start_ns)).sum();
    let within = match service {
        Some(service) => service.mean() * service.len() as f64,
        None => {
            let series = recording.series.iter().filter(|series| series.key.group == record.group);
            series.map(|series| series.total.sum_ns as f64).sum()
        }
    };
    within / (time as f64 * f64::from(record.outstanding.max(1))).max(1.0)
}

/// One number of many latencies; `None` for a quantile that too few operations lie beyond.
fn measure(what: LatencyMeasure, latency: &Histogram<u64>, mean: f64) -> Option<f64> {
    let Some(quantile) = what.quantile() else { return Some(mean) };
    let beyond = latency.len() as f64 * (1.0 - quantile);
    let known = what == LatencyMeasure::Max || beyond >= 1.0;
    known.then(|| latency.value_at_quantile(quantile) as f64)
}

/// A failed check that suggests that the client is the limit.
fn client(run: &RunRecord, workload: &str) -> Option<CheckKind> {
    let of_workload = |of: &Option<String>| of.as_deref().is_none_or(|of| of == workload);
    let found =
        run.checks.iter().find(|check| CLIENT_CHECKS.contains(&check.kind) && of_workload(&check.workload));
    found.map(|check| check.kind)
}

/// The levels of a treatment with another load.
pub(super) fn with_load(levels: &[u32], factor: u32, load: u32) -> Vec<u32> {
    let mut levels = levels.to_vec();
    if let Some(level) = levels.get_mut(factor as usize) {
        *level = load;
    }
    levels
}
