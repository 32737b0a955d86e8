//! What happened over time: what the application did, its latencies, and the counters of the hosts, on one time axis.

mod panels;

use std::collections::BTreeMap;

use benchmaster_analysis::{Analysis, counts};
use benchmaster_record::recording::{Collected, HostSamples, Recording};
use benchmaster_record::results::{RunKey, RunRecord, StudyResults};
use hdrhistogram::Histogram;

use self::panels::{Named, Window, application, panels, server_panels};
use super::bound::{self, Bound};
use super::figure::{Axis, Figure, Heat, Line, Mode, Panel, Values, View, short};
use crate::details::Details;

/// Runs that are drawn over the whole page, one of each treatment.
const RUNS: usize = 24;
/// Values of all samples over the whole page, so that it stays small.
const VALUES: usize = 60_000;
/// Parts of the time that are told apart, at most and at least.
const PARTS: (usize, usize) = (240, 30);
/// Parts of the time in which latencies are told apart, at most.
const COLUMNS: usize = 120;
/// Rows of latencies to a decade.
const PER_DECADE: u32 = 10;
/// Panels of a view that need no samples.
const ALWAYS: usize = 2;
/// Height of what is not in panels, in pixels.
const HEAD: usize = 60;
/// Lines that a view has about.
const LINES: usize = 24;
/// Height of a panel in pixels.
const PANEL: usize = 125;

/// What attached commands printed in a run that is drawn.
pub(crate) struct Drawn {
    pub(crate) run: RunKey,
    pub(crate) workload: String,
    pub(crate) collected: Vec<Collected>,
}

/// Adds a plot for every workload: one run of each treatment, the first that counts. Returns what commands printed in these
/// runs, and what could not be read.
pub(super) fn figures(
    results: &StudyResults,
    analysis: &Analysis,
    details: &dyn Details,
    figures: &mut Vec<Figure>,
) -> (Vec<Drawn>, Vec<String>) {
    let (runs, passed_over) = chosen(results, analysis);
    let views = |recording: &Recording| recording.samples.len().max(1);
    let views: usize = runs.iter().flat_map(|run| &run.recordings).map(views).sum();
    let parts = (VALUES / (views * LINES).max(1)).clamp(PARTS.1, PARTS.0);
    let (mut drawn, mut problems) = (Vec::new(), Vec::new());
    let mut by_workload: Vec<(String, Vec<View>)> =
        results.study.workloads.iter().map(|workload| (workload.name.clone(), Vec::new())).collect();
    for run in runs {
        let label = results.study.treatments.get(run.key.treatment as usize).map_or("?", |t| &t.label);
        let name = format!("{label}, replicate {}", run.key.replicate + 1);
        let read = details.whole(run).unwrap_or_else(|problem| {
            problems.push(format!("the samples of {name} cannot be read: {problem}"));
            None
        });
        let run = read.as_ref().unwrap_or(run);
        for recording in &run.recordings {
            let views = by_workload.iter_mut().find(|(workload, _)| *workload == recording.workload);
            if let Some((_, views)) = views {
                views.extend(of_recording(results, run, recording, &name, parts));
            }
            if !recording.collected.is_empty() {
                drawn.push(Drawn {
                    run: run.key,
                    workload: recording.workload.clone(),
                    collected: recording.collected.clone(),
                });
            }
        }
    }
    let passed_over = match passed_over {
        0 => String::new(),
        n => format!(" {n} more treatments are not drawn, to keep the page small."),
    };
    for (number, (workload, views)) in by_workload.into_iter().enumerate() {
        let Some(first) = views.first() else { continue };
        let sampled = views.iter().any(|view| view.panels.len() > ALWAYS);
        let counters = if sampled {
            " Counters and gauges are means of each part, memory is its maximum; only the busiest disks, \
                 interfaces and RPCs are drawn. All samples are in results.db."
        } else {
            " A section [sampling] in the study adds the counters of the hosts."
        };
        let figure = Figure {
            id: format!("stack-{number}"),
            title: format!("{workload}: what happened over time"),
            note: format!(
                "One run of each treatment (n = 1 run, so there is no interval), divided into up to {parts} equal \
                 parts; all panels share one time axis and zoom together. Latency: darker cells have more \
                 operations; lines are percentiles of each part.{counters}{passed_over}"
            ),
            choice: "run",
            height: HEAD + PANEL * first.panels.len(),
            x: Axis::titled("time since the start of the measured phase [s]"),
            views,
            workload,
            ..Figure::default()
        };
        let after = figures
            .iter()
            .position(|f| f.workload == figure.workload && f.id.starts_with("time-"))
            .map_or(figures.len(), |last| last + 1);
        figures.insert(after, figure);
    }
    (drawn, problems)
}

/// One run of each treatment, the first that counts, and how many treatments are passed over.
fn chosen<'r>(results: &'r StudyResults, analysis: &Analysis) -> (Vec<&'r RunRecord>, usize) {
    let sampled = |run: &RunRecord| run.recordings.iter().any(|r| !r.samples.is_empty());
    let mut chosen = Vec::new();
    for treatment in &analysis.treatments {
        let runs = results.runs.iter().filter(|run| run.key.treatment == treatment.index);
        let finished = runs.filter(|run| run.failure.is_none() && !run.recordings.is_empty());
        chosen.extend(finished.min_by_key(|run| (!sampled(run), !counts(run), run.key.replicate)));
    }
    let passed_over = chosen.len().saturating_sub(RUNS);
    chosen.truncate(RUNS);
    (chosen, passed_over)
}

/// A view for each host of clients that was sampled, with the server's host below it; one where none was.
fn of_recording(
    results: &StudyResults,
    run: &RunRecord,
    recording: &Recording,
    name: &str,
    parts: usize,
) -> Vec<View> {
    let ticks = recording.samples.iter().map(|host| &host.samples);
    let sampled = ticks.map(|s| s.cost.elapsed_ns / u64::from(s.ticks.saturating_sub(1).max(1))).min();
    let interval = sampled.unwrap_or(0).max(recording.interval_ns);
    let part_ns = interval.max(recording.length_ns / parts as u64).max(1);
    let window =
        Window { part_ns: part_ns as i64, parts: (recording.length_ns / part_ns).max(1).min(parts as u64) };
    let (clients, servers): (Vec<&HostSamples>, Vec<&HostSamples>) =
        recording.samples.iter().partition(|host| recording.is_of_clients(host));
    let hosts: Vec<Option<&HostSamples>> =
        if clients.is_empty() { vec![None] } else { clients.into_iter().map(Some).collect() };
    let bound = bound::network(results, run, recording);
    let view = |host: Option<&HostSamples>| {
        let label = match host {
            Some(host) => format!("{name}: {}", host_name(recording, &host.agent)),
            None => name.to_owned(),
        };
        let mut view = View { label, ..View::default() };
        throughput(&mut view, recording, window, bound.as_ref());
        latency(&mut view, recording, parts, bound::round_trip(results, run));
        let of_host = host.map(|host| panels(host, window)).unwrap_or_default();
        let of_servers = servers.iter().flat_map(|host| {
            let name = host_name(recording, &host.agent);
            let named = move |(panel, lines): (Panel, Vec<Named>)| {
                (Panel { title: format!("server {name}: {}", panel.title), ..panel }, lines)
            };
            server_panels(host, window).into_iter().map(named)
        });
        for (panel, lines) in of_host.into_iter().chain(of_servers) {
            add(&mut view, panel, lines, window);
        }
        view.height = Some(HEAD + PANEL * view.panels.len());
        if recording.timed && recording.cut_ns > 0 {
            view.marks.push((recording.cut_ns as f64 / 1e9, "warm-up cut".into()));
        }
        view
    };
    hosts.into_iter().map(view).filter(|view: &View| !view.panels.is_empty()).collect()
}

fn host_name(recording: &Recording, agent: &str) -> String {
    let found = recording.agents.iter().find(|known| known.name == agent);
    found.map_or_else(|| agent.to_owned(), |known| format!("{agent} ({})", known.host))
}

/// Adds a panel with its lines.
fn add(view: &mut View, panel: Panel, lines: Vec<Named>, window: Window) {
    let number = view.panels.len();
    for (color, (name, values)) in lines.into_iter().enumerate() {
        let seconds = window.part_ns as f64 / 1e9;
        let line = Line::new(name, color, Mode::Lines, Values::numbers(values));
        view.lines.push(Line { panel: number, grid: Some((0.5 * seconds, seconds)), unlisted: true, ..line });
    }
    view.panels.push(panel);
}

/// What the application moved or did, with the most that the network carries.
fn throughput(view: &mut View, recording: &Recording, window: Window, bound: Option<&Bound>) {
    let (unit, lines) = application(recording, window);
    let largest =
        lines.iter().flat_map(|(_, values)| values).copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    if lines.is_empty() {
        return;
    }
    let mut panel = panel(if unit == "B/s" { "throughput" } else { "operations per second" }, unit);
    if let Some(bound) = bound.filter(|bound| unit == "B/s" && bound.is_near(largest)) {
        panel.marks.push((bound.rate, bound.name.clone()));
    }
    add(view, panel, lines, window);
}

/// Latencies of all operations by time: how many lie in each cell, and percentiles.
fn latency(view: &mut View, recording: &Recording, parts: usize, round_trip: Option<f64>) {
    let columns = by_part(recording, parts.min(COLUMNS));
    let bin = |ns: u64| ((ns.max(1) as f64).log10() * f64::from(PER_DECADE)).floor() as i64;
    let counts: Vec<BTreeMap<i64, u64>> = columns
        .parts
        .iter()
        .map(|histogram| {
            let mut counts = BTreeMap::new();
            for value in histogram.iter().flat_map(Histogram::iter_recorded) {
                *counts.entry(bin(value.value_iterated_to())).or_insert(0) += value.count_at_value();
            }
            counts
        })
        .collect();
    let bins = || counts.iter().flat_map(BTreeMap::keys).copied();
    let (Some(low), Some(high)) = (bins().min(), bins().max()) else { return };
    let column = |counts: &BTreeMap<i64, u64>| match (counts.keys().next(), counts.keys().next_back()) {
        (Some(&first), Some(&last)) => (
            (first - low) as usize,
            (first..=last).map(|bin| counts.get(&bin).copied().unwrap_or(0)).collect(),
        ),
        _ => (0, Vec::new()),
    };
    let seconds = columns.part_ns as f64 / 1e9;
    let number = view.panels.len();
    view.heat = Some(Heat {
        panel: number,
        grid: (0.0, short(seconds)),
        low: low as f64 / f64::from(PER_DECADE) - 9.0,
        per_decade: PER_DECADE,
        rows: (high - low + 1) as usize,
        columns: counts.iter().map(column).collect(),
    });
    for (color, (quantile, name, least)) in [(0.5, "p50", 10), (0.99, "p99", 200)].into_iter().enumerate() {
        let value = |histogram: &Option<Histogram<u64>>| match histogram {
            Some(histogram) if histogram.len() >= least => histogram.value_at_quantile(quantile) as f64 / 1e9,
            _ => f64::NAN,
        };
        let values: Vec<f64> = columns.parts.iter().map(value).collect();
        if values.iter().any(|value| !value.is_nan()) {
            let line = Line::new(name, color + 1, Mode::Lines, Values::numbers(values));
            let grid = Some((0.5 * seconds, seconds));
            view.lines.push(Line { panel: number, grid, unlisted: true, ..line });
        }
    }
    let mut panel = Panel { log: true, ..panel("latency (log)", "s") };
    let lowest = 10f64.powf(low as f64 / f64::from(PER_DECADE) - 9.0);
    // A round trip that is much shorter than any call would squeeze the latencies.
    panel
        .marks
        .extend(round_trip.filter(|s| s * 30.0 >= lowest).map(|s| (short(s), "one round trip".to_owned())));
    view.panels.push(panel);
}

/// Latencies in equal parts of the time.
struct Columns {
    part_ns: u64,
    parts: Vec<Option<Histogram<u64>>>,
}

/// Latencies of all operations of a recording, merged from those of its intervals. Histograms that cannot be decoded are told
/// by the analysis.
fn by_part(recording: &Recording, parts: usize) -> Columns {
    let interval = recording.interval_ns.max(1);
    let together = recording.length_ns.div_ceil(interval).div_ceil(parts as u64).max(1);
    let number = recording.length_ns.div_ceil(interval * together).max(1) as usize;
    let mut columns = Columns { part_ns: interval * together, parts: vec![None; number] };
    for one in recording.series.iter().flat_map(|series| &series.intervals).filter(|one| one.stats.count > 0)
    {
        let Ok(more) = one.stats.latency.decode() else { continue };
        let Some(part) = columns.parts.get_mut((u64::from(one.index) / together) as usize) else { continue };
        match part {
            Some(histogram) => {
                // All histograms have one shape.
                let _ = histogram.add(more);
            }
            None => *part = Some(more),
        }
    }
    columns
}

/// A panel without a name of its axis: the panel's title says it.
fn panel(title: &str, unit: &'static str) -> Panel {
    Panel { title: title.into(), unit, log: false, marks: Vec::new() }
}

#[cfg(test)]
mod tests {
    use benchmaster_testkit::study_results;

    use super::*;

    #[test]
    fn every_operation_is_in_one_cell() {
        let results = study_results(3, 1, 1);
        let recording = &results.runs[0].recordings[0];
        let mut view = View::default();
        latency(&mut view, recording, 60, None);
        let heat = view.heat.unwrap();
        let drawn: u64 = heat.columns.iter().flat_map(|(_, counts)| counts).sum();
        let in_intervals = recording.series.iter().flat_map(|series| &series.intervals);
        assert_eq!(drawn, in_intervals.map(|one| one.stats.count).sum::<u64>());
        assert!(
            heat.columns.len() <= 60
                && heat.columns.iter().all(|(low, counts)| low + counts.len() <= heat.rows)
        );
        assert_eq!(view.panels.len(), 1);
    }
}
