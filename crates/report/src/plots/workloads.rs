//! The plots of a study, except those of traces.

use benchmaster_analysis::{Analysis, FairnessSummary, LatencySummary, ResponseSummary, TreatmentSummary};
use benchmaster_record::results::{CheckKind, RunRecord, StudyResults, Unit};
use hdrhistogram::Histogram;

use super::bound;
use super::figure::{Axis, Figure, Line, Mode, Values, View, axis_unit, both_sides, short, thin};
use crate::overview::unbroken;
use crate::sections::results::operation;
use crate::{format, overview};

/// Up to so many treatments are drawn into one plot; more are chosen from.
pub(crate) const TOGETHER: usize = 8;
/// Up to so many runs are drawn as a line each; of more the mean and the extremes of each treatment.
pub(crate) const SINGLE_RUNS: usize = 200;
/// Largest over smallest value from which a response is drawn on a logarithmic axis.
const LOG_FROM: f64 = 30.0;
/// Treatments that can be chosen in plots over time and of latencies.
pub(crate) const CHOICES: usize = 120;
/// Points of one kind of plot over the whole page, so that it stays small.
const POINTS: usize = 16_000;
/// Values of single runs over the whole page.
const RUN_VALUES: usize = 8_000;
/// Workers or clients drawn as a bar each, at most.
const BARS: usize = 400;

/// The plots of every workload in order.
pub(crate) fn figures(results: &StudyResults, analysis: &Analysis) -> Vec<Figure> {
    let workloads = &results.study.workloads;
    let per_plot = POINTS / workloads.len().max(1);
    let mut figures = Vec::new();
    for (number, workload) in workloads.iter().enumerate() {
        let id = |kind: &str| format!("{kind}-{number}");
        let name = workload.name.as_str();
        figures.extend(responses(results, analysis, name, id("response")));
        figures.extend(over_time(results, analysis, name, id("time"), per_plot));
        figures.extend(latencies(analysis, name, &id("latency"), per_plot));
        figures.extend(members(analysis, name, &id("members"), workloads.len()));
    }
    figures
}

/// Every response of a workload by treatment, with intervals and single runs.
fn responses(results: &StudyResults, analysis: &Analysis, workload: &str, id: String) -> Option<Figure> {
    let mut names: Vec<(String, Unit)> = overview::rates(&results.study, analysis, workload);
    let prefix = format!("{workload}.");
    for response in analysis.treatments.iter().flat_map(|t| &t.responses) {
        if response.name.starts_with(&prefix) && !names.iter().any(|(name, _)| *name == response.name) {
            names.push((response.name.clone(), response.unit));
        }
    }
    let treatments = analysis.treatments.as_slice();
    let affordable = (RUN_VALUES / (results.runs.len() * results.study.workloads.len()).max(1)).max(1);
    let passed_over = match names.len().saturating_sub(affordable) {
        0 => String::new(),
        n => format!(" {n} more responses are not drawn, to keep the page small."),
    };
    names.truncate(affordable);
    let mut views: Vec<_> =
        names.iter().map(|(name, unit)| response_view(treatments, name, *unit, workload)).collect();
    if views.is_empty() {
        return None;
    }
    let bounds = bound::of_treatments(results, analysis, workload);
    let mut far = String::new();
    for (view, (_, unit)) in views.iter_mut().zip(&names) {
        if *unit == Unit::BytesPerSecond && view.label.starts_with("throughput") {
            far = bound::by_treatment(view, &bounds);
        }
    }
    let mut estimates = treatments.iter().flat_map(|t| &t.responses).filter_map(|r| r.estimate.as_ref());
    let single = estimates.any(|e| e.half_width.is_none());
    let single = if single { "; a mean of one run has none" } else { "" };
    let label = |t: &TreatmentSummary| match overview::levels(&results.study, t.index) {
        levels if levels.is_empty() => t.label.clone(),
        levels => levels.join(" "),
    };
    let ticks = treatments.iter().enumerate().map(|(i, t)| (i as f64, label(t)));
    let row = 21.min(1 + 1800 / treatments.len().max(1));
    let factors: Vec<_> = results.study.factors.iter().map(|factor| factor.name.as_str()).collect();
    let by = if factors.is_empty() { "treatment".into() } else { factors.join(", ") };
    Some(Figure {
        id,
        workload: workload.into(),
        title: format!("{workload} by {by}"),
        note: format!(
            "n = {}; intervals are at {}{single}.{far}{passed_over}",
            format::plural(results.runs.len(), "run"),
            unbroken(&format::percent(analysis.confidence))
        ),
        choice: "response",
        height: (56 + row * treatments.len()).max(150),
        x: Axis { title: "response".into(), zero: true, ..Axis::default() },
        y: Axis { title: String::new(), reversed: true, ticks: ticks.collect(), ..Axis::default() },
        views,
    })
}

fn response_view(treatments: &[TreatmentSummary], name: &str, unit: Unit, workload: &str) -> View {
    let (factor, x_unit) = axis_unit(unit);
    let found: Vec<(usize, &ResponseSummary)> =
        treatments.iter().enumerate().filter_map(|(i, t)| Some((i, t.response(name)?))).collect();
    let means: Vec<_> = found.iter().filter_map(|(i, r)| Some((*i, r.estimate.as_ref()?))).collect();
    let mean = Line {
        error_x: Some(means.iter().map(|(_, e)| Some(both_sides(e.half_width? * factor))).collect()),
        symbol: "diamond",
        size: Some(11),
        text: means.iter().map(|(_, e)| format!("mean of {}", format::plural(e.n, "run"))).collect(),
        ..Line::through(
            "mean, interval",
            0,
            Mode::Markers,
            means.iter().map(|(i, e)| (e.mean * factor, *i as f64)),
        )
    };
    let mut lines = Vec::new();
    type Pick = fn(&benchmaster_analysis::RunValue) -> bool;
    let kinds: [(&str, Pick, &str, usize, u32); 3] = [
        ("single run", |v| !v.excluded, "circle", 1, 6),
        ("excluded as invalid", |v| v.excluded, "x", 3, 9),
        ("outlier, kept", |v| v.outlier, "circle-open", 3, 12),
    ];
    for (name, pick, symbol, color, size) in kinds {
        let picked: Vec<_> = found
            .iter()
            .flat_map(|(i, r)| r.values.iter().filter(|v| pick(v)).map(move |v| (*i, v)))
            .collect();
        if picked.is_empty() {
            continue;
        }
        // Beside the mean, so that neither hides the other.
        let places = picked.iter().map(|(i, v)| (v.value * factor, *i as f64 + 0.2));
        let text = picked.iter().map(|(_, v)| (v.run.replicate + 1).to_string()).collect();
        lines.push(Line {
            what: "replicate ",
            symbol,
            size: Some(size),
            faint: symbol == "circle",
            text,
            ..Line::through(name, color, Mode::Markers, places)
        });
    }
    lines.push(mean);
    let values = || found.iter().flat_map(|(_, r)| &r.values).map(|v| v.value);
    let (low, high) = values().fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    let x_log = low > 0.0 && high / low > LOG_FROM;
    let short_name = overview::short_name(name, workload);
    let label = match (x_unit, x_log) {
        ("", false) => short_name.to_owned(),
        ("", true) => format!("{short_name} [log]"),
        (unit, false) => format!("{short_name} [{unit}]"),
        (unit, true) => format!("{short_name} [{unit}, log]"),
    };
    View { label, x_unit: Some(x_unit), x_log, lines, ..View::default() }
}

/// Throughput or operations per second of each run over time.
fn over_time(
    results: &StudyResults,
    analysis: &Analysis,
    workload: &str,
    id: String,
    points: usize,
) -> Option<Figure> {
    let in_bytes = overview::is_in_bytes(&results.study, analysis, workload);
    let single = results.runs.len() <= SINGLE_RUNS;
    let treatments = analysis.treatments.len().min(CHOICES);
    let lines_in_all = if single { results.runs.len() } else { 3 * treatments };
    let limit = (points / lines_in_all.max(1)).clamp(20, 240);
    let together = analysis.treatments.len() <= TOGETHER;
    let mut views = Vec::new();
    let mut all = View { label: "all treatments".into(), ..View::default() };
    for (color, treatment) in analysis.treatments.iter().take(CHOICES).enumerate() {
        let color = if together { color } else { 0 };
        let mut view = View { label: treatment.label.clone(), ..View::default() };
        let runs = run_series(results, treatment.index, workload, in_bytes);
        if single {
            run_lines(&mut view, treatment, &runs, color, limit);
        } else {
            band_lines(&mut view, &runs, limit);
        }
        if view.lines.is_empty() {
            continue;
        }
        if together && single {
            all.lines.extend(view.lines);
            all.marks.extend(view.marks);
        } else {
            views.push(view);
        }
    }
    if !all.lines.is_empty() {
        views.push(all);
    }
    let mut far = String::new();
    if in_bytes {
        far = bound::over_time(&mut views, &bound::of_treatments(results, analysis, workload), analysis);
    }
    for view in &mut views {
        view.marks.sort_by(|a, b| a.0.total_cmp(&b.0));
        view.marks.dedup_by(|a, b| a.0 == b.0);
        // Many cuts at many places would hide the lines; their places are in the table of conditions.
        if view.marks.len() > 4 {
            let (low, high) = (view.marks[0].0, view.marks[view.marks.len() - 1].0);
            view.marks = vec![(low, "first warm-up cut".into()), (high, "last warm-up cut".into())];
        }
    }
    let n = results.runs.iter().filter(|r| r.recordings.iter().any(|x| x.workload == workload)).count();
    let what = if single {
        "One line per run (dotted: excluded as invalid)".to_owned()
    } else {
        format!(
            "More than {SINGLE_RUNS} runs: for each treatment the mean over its runs that count, with the lowest \
             and highest run"
        )
    };
    let (title, unit) = if in_bytes { ("throughput", "B/s") } else { ("operations per second", "ops/s") };
    (!views.is_empty()).then(|| Figure {
        id,
        workload: workload.into(),
        title: format!("{workload}: {title} over time"),
        note: format!(
            "{what}; n = {}. Each value is the rate within one interval. Vertical lines mark the warm-up cut; \
             earlier values do not count. Values within one run are not independent, so no interval is drawn.{far}{}",
            format::plural(n, "run"),
            first_only(analysis)
        ),
        choice: "treatment",
        height: 380,
        x: Axis { title: "time since the start of the measured phase [s]".into(), zero: true, ..Axis::default() },
        y: Axis { title: format!("{title} [{unit}]"), unit, zero: true, ..Axis::default() },
        views,
    })
}

/// That not all treatments are drawn, if so.
fn first_only(analysis: &Analysis) -> String {
    match analysis.treatments.len() {
        n if n > CHOICES => format!(" Of {n} treatments the first {CHOICES} are drawn."),
        _ => String::new(),
    }
}

/// The rates of one run by interval.
struct RunSeries {
    replicate: u32,
    counts: bool,
    rates: Vec<f64>,
    interval_s: f64,
    cut_s: f64,
    /// What a check found in the rates, in a few words.
    pattern: String,
}

fn run_series(results: &StudyResults, treatment: u32, workload: &str, in_bytes: bool) -> Vec<RunSeries> {
    let mut series = Vec::new();
    for run in results.runs.iter().filter(|r| r.key.treatment == treatment) {
        for recording in run.recordings.iter().filter(|r| r.workload == workload) {
            series.push(RunSeries {
                replicate: run.key.replicate,
                counts: benchmaster_analysis::counts(run),
                rates: overview::interval_rates(recording, in_bytes),
                interval_s: recording.interval_ns as f64 / 1e9,
                cut_s: if recording.timed { recording.cut_ns as f64 / 1e9 } else { 0.0 },
                pattern: pattern(run, workload),
            });
        }
    }
    series.retain(|s| !s.rates.is_empty());
    series.sort_by_key(|s| s.replicate);
    series
}

/// That a run went in bursts, for the text at its line.
fn pattern(run: &RunRecord, workload: &str) -> String {
    let mut checks = run.checks.iter().filter(|c| c.workload.as_deref() == Some(workload));
    let Some(check) = checks.find(|c| c.kind == CheckKind::BurstAndFlush) else { return String::new() };
    let stalled =
        check.number("stall_share").map_or_else(String::new, |s| format!(", stalled {:.0} %", s * 100.0));
    let period = check.number("period_s").map_or_else(String::new, |s| format!(", every {s:.1} s"));
    format!(", in bursts{period}{stalled}")
}

fn run_lines(view: &mut View, treatment: &TreatmentSummary, runs: &[RunSeries], color: usize, limit: usize) {
    for (i, run) in runs.iter().enumerate() {
        let points = thin(&run.rates, limit);
        let y = Values::numbers(points.iter().map(|(_, v)| *v));
        // A value is that of a whole interval and drawn at its middle.
        let place = |index: usize| (index as f64 + 0.5) * run.interval_s;
        let mut line = Line::new(treatment.label.clone(), color, Mode::Lines, y);
        if points.len() == run.rates.len() {
            line.grid = Some((short(place(0)), run.interval_s));
        } else {
            line.x = Some(Values::numbers(points.iter().map(|(index, _)| place(*index))));
        }
        line.group = Some(treatment.label.clone());
        line.unlisted = i > 0;
        line.faint = !run.counts;
        line.text = vec![format!("replicate {}{}", run.replicate + 1, run.pattern)];
        view.lines.push(line);
        if run.cut_s > 0.0 {
            view.marks.push((run.cut_s, "warm-up cut".into()));
        }
    }
}

fn band_lines(view: &mut View, runs: &[RunSeries], limit: usize) {
    let runs: Vec<_> = runs.iter().filter(|r| r.counts).collect();
    let Some(first) = runs.first() else { return };
    let length = runs.iter().map(|r| r.rates.len()).min().unwrap_or(0);
    let at = |i: usize| runs.iter().map(move |r| r.rates[i]);
    let fold =
        |f: fn(f64, f64) -> f64, start: f64| (0..length).map(|i| at(i).fold(start, f)).collect::<Vec<_>>();
    let mean: Vec<_> = (0..length).map(|i| at(i).sum::<f64>() / runs.len() as f64).collect();
    let extremes = [("lowest run", fold(f64::min, f64::INFINITY)), ("highest run", fold(f64::max, 0.0))];
    for (name, values, color) in
        [("mean over runs", mean, 0)].into_iter().chain(extremes.map(|(name, values)| (name, values, 1)))
    {
        let points = thin(&values, limit);
        let places = points.into_iter().map(|(i, v)| ((i as f64 + 0.5) * first.interval_s, v));
        view.lines.push(Line::through(name, color, Mode::Lines, places));
    }
    let cuts = runs.iter().filter(|r| r.cut_s > 0.0);
    view.marks.extend(cuts.map(|r| (r.cut_s, "warm-up cut".to_owned())));
}

/// Turns a histogram into the points of a curve.
type Curve<'a> = &'a dyn Fn(&Histogram<u64>) -> Vec<(f64, f64)>;

/// Histogram and percentile curve of every operation.
fn latencies(analysis: &Analysis, workload: &str, id: &str, points: usize) -> Vec<Figure> {
    let tables: Vec<(usize, &TreatmentSummary, &LatencySummary)> = analysis
        .treatments
        .iter()
        .take(CHOICES)
        .enumerate()
        .flat_map(|(i, t)| {
            t.latencies.iter().filter(|l| l.workload == workload && l.count > 0).map(move |l| (i, t, l))
        })
        .collect();
    if tables.is_empty() {
        return Vec::new();
    }
    let together = analysis.treatments.len() <= TOGETHER;
    let limit = (points / tables.len()).clamp(12, 200);
    let views = |mode: Mode, curve: Curve<'_>| {
        let mut views: Vec<View> = Vec::new();
        for (number, treatment, table) in &tables {
            let operation = operation(table);
            let (label, name) = if together {
                (operation, treatment.label.clone())
            } else {
                (treatment.label.clone(), operation)
            };
            let curve = curve(&table.histogram);
            let place = views.iter().position(|v| v.label == label).unwrap_or_else(|| {
                views.push(View { label, ..View::default() });
                views.len() - 1
            });
            let color = if together { *number } else { views[place].lines.len() };
            let name = format!("{name} ({} operations)", format::count(table.count));
            views[place].lines.push(Line::through(name, color, mode, curve));
        }
        // The most frequent operation first.
        if together {
            let busiest = |view: &View| {
                let of = tables.iter().filter(|(.., l)| operation(l) == view.label);
                std::cmp::Reverse(of.map(|(.., l)| l.count).max())
            };
            views.sort_by_key(busiest);
        }
        views
    };
    let choice = if together { "operation" } else { "treatment" };
    let merged = format!(
        "All runs of a treatment that count, merged, after the warm-up cut; n is the number of \
         operations in the legend.{}",
        first_only(analysis)
    );
    let seconds = |title: &str| Axis { title: title.into(), unit: "s", log: true, ..Axis::default() };
    vec![
        Figure {
            id: format!("{id}-histogram"),
            workload: workload.into(),
            title: format!("{workload}: latency histogram"),
            note: format!("{merged} {} bins per decade.", bins_per_decade(limit)),
            choice,
            height: 380,
            x: seconds("latency [s, log]"),
            y: Axis { title: "operations per bin [%]".into(), zero: true, ..Axis::default() },
            views: views(Mode::Steps, &|h| bins(h, bins_per_decade(limit))),
        },
        Figure {
            id: format!("{id}-percentiles"),
            workload: workload.into(),
            title: format!("{workload}: latency percentiles"),
            note: format!("{merged} A curve ends where fewer than ten operations remain."),
            choice,
            height: 380,
            x: Axis {
                title: "percentile [%, log of the rest]".into(),
                log: true,
                ticks: percentile_ticks(),
                ..Axis::default()
            },
            y: seconds("latency [s, log]"),
            views: views(Mode::Lines, &|h| percentile_curve(h, limit)),
        },
    ]
}

fn bins_per_decade(limit: usize) -> u32 {
    if limit >= 120 { 20 } else { 10 }
}

/// Share of all values per bin of equal logarithmic width, in percent: (lower end in seconds, share).
pub(crate) fn bins(histogram: &Histogram<u64>, per_decade: u32) -> Vec<(f64, f64)> {
    let width = f64::from(per_decade);
    let bin_of = |ns: u64| ((ns.max(1) as f64).log10() * width).floor() as i64;
    let mut shares: Vec<(i64, u64)> = Vec::new();
    for value in histogram.iter_recorded() {
        let bin = bin_of(value.value_iterated_to());
        match shares.last_mut() {
            Some((last, count)) if *last == bin => *count += value.count_at_value(),
            _ => shares.push((bin, value.count_at_value())),
        }
    }
    let (Some(&(first, _)), Some(&(last, _))) = (shares.first(), shares.last()) else { return Vec::new() };
    let edge = |bin: i64| 10f64.powf(bin as f64 / width) / 1e9;
    let share = |count: u64| count as f64 / histogram.len() as f64 * 100.0;
    let mut curve = vec![(edge(first - 1), 0.0)];
    let mut shares = shares.into_iter().peekable();
    for bin in first..=last {
        let count = shares.next_if(|(b, _)| *b == bin).map_or(0, |(_, count)| count);
        curve.push((edge(bin), share(count)));
    }
    curve.push((edge(last + 1), 0.0));
    curve
}

/// Latency in seconds by 1/(1 − quantile), as far as ten values lie beyond.
pub(crate) fn percentile_curve(histogram: &Histogram<u64>, limit: usize) -> Vec<(f64, f64)> {
    let furthest = histogram.len() as f64 / 10.0;
    if furthest < 2.0 {
        return Vec::new();
    }
    let steps = limit.saturating_sub(1).max(1);
    let place = |step: usize| furthest.powf(step as f64 / steps as f64);
    let point = |x: f64| (x, histogram.value_at_quantile(1.0 - 1.0 / x) as f64 / 1e9);
    let mut curve: Vec<_> = (0..=steps).map(|step| point(place(step))).collect();
    // A point in the middle of a flat stretch adds nothing.
    let mut i = 1;
    while i + 1 < curve.len() {
        if curve[i - 1].1 == curve[i].1 && curve[i].1 == curve[i + 1].1 {
            curve.remove(i);
        } else {
            i += 1;
        }
    }
    curve
}

fn percentile_ticks() -> Vec<(f64, String)> {
    let names = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
    let places = [1.0, 2.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6];
    places.into_iter().zip(names).map(|(x, name)| (x, name.to_owned())).collect()
}

/// The rate of each worker, and of each client where there are several.
fn members(analysis: &Analysis, workload: &str, id: &str, workloads: usize) -> Vec<Figure> {
    let mut figures: Vec<Figure> = Vec::new();
    let bars = (POINTS / analysis.treatments.len().clamp(1, CHOICES) / workloads).clamp(16, BARS);
    for treatment in analysis.treatments.iter().take(CHOICES) {
        for fairness in treatment.fairness.iter().filter(|f| f.workload == workload) {
            let title = match &fairness.group {
                Some(group) => format!("{workload}: rate of each worker of {group}"),
                None => format!("{workload}: rate of each client"),
            };
            let view = member_view(treatment, fairness, bars);
            match figures.iter_mut().find(|f| f.title == title) {
                Some(figure) => figure.views.push(view),
                None => {
                    let unit = if fairness.measure.starts_with("bytes") { "B/s" } else { "ops/s" };
                    let more = if fairness.members > bars {
                        format!(
                            " Of {}, an even selection of {bars} is drawn, with the slowest and the fastest.",
                            fairness.members
                        )
                    } else {
                        String::new()
                    };
                    figures.push(Figure {
                        id: format!("{id}-{}", figures.len()),
                        workload: workload.into(),
                        title,
                        note: format!(
                            "Averaged over the runs that count, while the worker was active, warm-up included; n \
                             and the fairness index with its interval are in the table \"Fairness\".{more}{}",
                            first_only(analysis)
                        ),
                        choice: "treatment",
                        height: 320,
                        x: Axis::titled("client (c) and worker (w)"),
                        y: Axis { title: format!("rate [{unit}]"), unit, zero: true, ..Axis::default() },
                        views: vec![view],
                    });
                }
            }
        }
    }
    figures
}

fn member_view(treatment: &TreatmentSummary, fairness: &FairnessSummary, bars: usize) -> View {
    let mut rates: Vec<_> = fairness.rates.iter().collect();
    if rates.len() > bars {
        rates.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let last = rates.len() - 1;
        rates = (0..bars).map(|i| rates[i * last / (bars - 1)]).collect();
    }
    let name = |client: u32, worker: Option<u32>| match worker {
        Some(worker) => format!("c{client} w{worker}"),
        None => format!("c{client}"),
    };
    let x = Values::Names(rates.iter().map(|r| name(r.client, r.worker)).collect());
    let y = Values::numbers(rates.iter().map(|r| r.rate));
    let line = Line { unlisted: true, ..Line::new(fairness.measure, 0, Mode::Bars, y).at(x) };
    View { label: treatment.label.clone(), lines: vec![line], ..View::default() }
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::latency_histogram;

    use super::*;

    #[test]
    fn bins_add_up_and_have_no_gaps() {
        let mut histogram = latency_histogram();
        histogram.record_n(1_000, 30).unwrap();
        histogram.record_n(1_000_000, 10).unwrap();
        let bins = bins(&histogram, 10);
        assert!((bins.iter().map(|b| b.1).sum::<f64>() - 100.0).abs() < 1e-9);
        assert_eq!((bins[0].1, bins[bins.len() - 1].1), (0.0, 0.0));
        assert!(bins.is_sorted_by(|a, b| a.0 < b.0));
        assert!((31..=34).contains(&bins.len()), "{}", bins.len());
    }

    #[test]
    fn percentile_curves_rise_and_end_where_the_count_ends() {
        let mut histogram = latency_histogram();
        (1..=10_000).for_each(|ns| histogram.record(ns * 100).unwrap());
        let curve = percentile_curve(&histogram, 100);
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert!((curve[curve.len() - 1].0 - 1_000.0).abs() < 1e-6);
        let mut few = latency_histogram();
        few.record_n(5, 19).unwrap();
        assert_eq!(percentile_curve(&few, 100), []);
    }
}
