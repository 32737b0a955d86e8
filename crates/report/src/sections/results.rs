//! What was measured: results, operations, responses, fairness.

use benchmaster_analysis::headline::Counts;
use benchmaster_analysis::{
    Analysis, Estimate, LatencyKind, LatencySummary, ResponseSummary, TreatmentSummary, durability,
};
use benchmaster_record::model::OperationKind;
use benchmaster_record::results::{RunRecord, ServedBy, StudyResults, Unit, WorkloadRecord};
use benchmaster_record::witness::Durability;

use crate::document::{Block, Cell, Columns, Table};
use crate::format::{self, Scale, rounded};
use crate::overview::{self, grouped};
use crate::plots::bound;

/// Rates of a workload that its table has.
const RATES: usize = 2;
/// Cells of a line of bars.
const BARS: usize = 12;
const RUNS_NOTE: &str = " n: runs that count / finished runs.";

/// The main table of each workload, or one over all workloads when there is one treatment.
pub(crate) fn result_tables(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let workloads = &results.study.workloads;
    match analysis.treatments.as_slice() {
        [treatment] => vec![all_workloads(results, analysis, treatment)],
        treatments => {
            let treatments: Vec<_> = treatments.iter().collect();
            workloads.iter().map(|w| workload_table(results, analysis, &treatments, w)).collect()
        }
    }
}

/// A workload under a treatment.
struct Measured<'a> {
    results: &'a StudyResults,
    analysis: &'a Analysis,
    treatment: &'a TreatmentSummary,
    workload: &'a str,
    latency: Option<&'a LatencySummary>,
}

impl<'a> Measured<'a> {
    fn of(
        results: &'a StudyResults,
        analysis: &'a Analysis,
        treatment: &'a TreatmentSummary,
        workload: &'a str,
    ) -> Self {
        let latency = overview::main_latency(results, analysis, treatment, workload);
        Self { results, analysis, treatment, workload, latency }
    }

    /// A response of the operation whose latency this is.
    fn direction(&self, what: &str) -> Option<&'a ResponseSummary> {
        self.treatment.response(&format!("{}.{}.{what}", self.workload, self.latency?.series.label))
    }

    /// What a failure of the server leaves of it.
    fn durability(&self) -> Durability {
        durability(self.results, self.treatment.index, Some(self.workload))
    }

    fn errors(&self) -> u64 {
        self.treatment.errors_by_workload.get(self.workload).copied().unwrap_or(0)
    }
}

fn all_workloads(results: &StudyResults, analysis: &Analysis, treatment: &TreatmentSummary) -> Table {
    let rates = |workload: &str| overview::rates(&results.study, analysis, workload);
    let rate = |row: &Measured<'_>, unit: Unit| {
        let (name, _) = rates(row.workload).into_iter().find(|(_, of)| *of == unit)?;
        treatment.response(&name)
    };
    let mean = |row: &Measured<'_>, unit: Unit| {
        let estimate = rate(row, unit)?.estimate.as_ref()?;
        let text = match unit {
            Unit::BytesPerSecond => {
                let half_width = estimate.half_width.map(|half| half / 1e6);
                format::estimate(estimate.mean / 1e6, half_width, Unit::Ratio, None)
            }
            unit => format::estimate(estimate.mean, estimate.half_width, unit, None).replace("ops/s", ""),
        };
        Some(Cell::number(text.trim_end(), estimate.mean))
    };
    let column = |unit: Unit| move |row: &Measured<'_>| mean(row, unit).unwrap_or_else(Cell::none);
    let bound = |row: &Measured<'_>| {
        let run = overview::counted_runs(results, treatment.index).next()?;
        bound::network(results, run, run.recordings.iter().find(|r| r.workload == row.workload)?)
    };
    let workloads = results.study.workloads.iter();
    let rows = workloads.map(|workload| Measured::of(results, analysis, treatment, &workload.name));
    let rows: Vec<_> = rows.collect();
    let main = |row: &Measured<'_>| treatment.response(&rates(row.workload).first()?.0);
    let runs: Vec<_> = rows.iter().map(|row| runs_cell(treatment, main(row)).text).collect();
    // One run has no interval, which its row says.
    let same = runs.iter().all(|n| *n == runs[0] && n != "1");
    let n = if same { format!(", n = {}", runs[0]) } else { String::new() };
    let mut names: Vec<String> = rows.iter().filter_map(bound).map(|bound| bound.name).collect();
    names.sort_unstable();
    names.dedup();
    let limits = if names.is_empty() { String::new() } else { format!(" {}", limits_note(results, &names)) };
    let table = Table::of(format!("All workloads: mean ± half width{n}"), rows)
        .column("workload", |row| Cell::name(row.workload))
        .column("#MB/s", column(Unit::BytesPerSecond))
        .column("#IOPS", column(Unit::OperationsPerSecond))
        .column_if(!same, "#n", |row| runs_cell(treatment, main(row)))
        .column("call|1", |row| {
            row.latency.map_or_else(Cell::none, |latency| Cell::text(&latency.series.label))
        });
    let counted = if same { "" } else { RUNS_NOTE };
    let note = format!("{}{counted}{limits}", latency_note("the call that is named"));
    quality(table, None)
        .column_if(!names.is_empty(), "#of the network|3", |row| {
            let moved = rate(row, Unit::BytesPerSecond).and_then(|r| r.estimate.as_ref());
            let Some((bound, moved)) = bound(row).zip(moved) else { return Cell::none() };
            let share = moved.mean / bound.rate;
            Cell::number(format!("{} of {}", format::percent(share), format::rate(bound.rate)), share)
        })
        .note(note)
        .table()
}

/// What the bound of the network is, and what usual ones are.
fn limits_note(results: &StudyResults, names: &[String]) -> String {
    // A frame of Ethernet has 1448 bytes of data and takes the time of 1538.
    let carries = |gigabits: f64| format::rate(gigabits * 1e9 / 8.0 * 1448.0 / 1538.0);
    let [one, ten, more] = [1.0, 10.0, 25.0].map(carries);
    let own = |run: &RunRecord| {
        run.service.as_ref().is_some_and(|s| s.server == ServedBy::Embedded && !s.network.is_emulated())
    };
    let here = if results.runs.iter().all(own) { ", through the loopback device of this host" } else { "" };
    format!(
        "Network at most: {}{here}. For comparison: Ethernet of 1, 10 and 25 Gbit/s carries {one}, {ten} and {more}.",
        names.join(" or ")
    )
}

pub(crate) fn workload_table(
    results: &StudyResults,
    analysis: &Analysis,
    treatments: &[&TreatmentSummary],
    workload: &WorkloadRecord,
) -> Table {
    let use_name = &workload.use_name;
    let workload = workload.name.as_str();
    let rates = overview::rates(&results.study, analysis, workload);
    let rows = treatments.iter().map(|treatment| Measured::of(results, analysis, treatment, workload));
    let rows: Vec<_> = rows.collect();
    let main = rows.iter().find_map(|row| row.latency);
    // Of several operations the percentiles name theirs.
    let of = main.map(|main| main.series.label.as_str());
    let untested = untested(results, treatments, workload);
    let is_other = |l: &LatencySummary| l.workload == workload && Some(l.series.label.as_str()) != of;
    let several = treatments.iter().flat_map(|t| &t.latencies).any(is_other);
    let table = Table::of(format!("{workload} ({use_name}): mean ± half width"), rows);
    let mut table = with_levels(table, results);
    for (number, (name, unit)) in rates.iter().take(RATES).enumerate() {
        let means = treatments.iter().filter_map(|t| t.response(name)?.estimate.as_ref());
        let scale = Scale::common(*unit, means.map(|e| e.mean));
        // The first rate stands for the workload.
        let rank = if number == 0 { 0 } else { 7 };
        let head = format!("#{}|{rank}", overview::short_name(name, workload));
        table = table.column(&head, |row| estimate_cell(row.treatment.response(name), scale));
    }
    let table = table.column("#n", |row| {
        runs_cell(row.treatment, rates.first().and_then(|(name, _)| row.treatment.response(name)))
    });
    let operation = main.map_or("the main operation".into(), |main| format!("operation {}", operation(main)));
    quality(table, of.filter(|_| several)).note(latency_note(&operation) + RUNS_NOTE + untested).table()
}

/// What is said where something is written and no failure was tried.
fn untested(results: &StudyResults, treatments: &[&TreatmentSummary], workload: &str) -> &'static str {
    let writes = results.runs.iter().flat_map(|run| &run.recordings).any(|recording| {
        recording.workload == workload
            && recording.series.iter().any(|series| series.key.operation == OperationKind::Write)
    });
    let tested = |treatment: &&TreatmentSummary| {
        durability(results, treatment.index, Some(workload)) != Durability::Untested
    };
    let unknown = writes && !treatments.iter().any(tested);
    if unknown { " Durability: not tested." } else { "" }
}

/// A column for each factor, or without factors for the treatment, if there are several.
fn with_levels<'a>(table: Columns<Measured<'a>>, results: &StudyResults) -> Columns<Measured<'a>> {
    with_levels_of(table, results, |row| row.treatment.index)
}

/// The same of rows whose treatment has the number that `of` gives.
pub(super) fn with_levels_of<R>(
    mut table: Columns<R>,
    results: &StudyResults,
    of: impl Fn(&R) -> u32,
) -> Columns<R> {
    let study = &results.study;
    for (at, factor) in study.factors.iter().enumerate() {
        table = table.column(&factor.name, |row| {
            let levels = overview::levels(study, of(row));
            Cell::name(levels.get(at).copied().unwrap_or_default())
        });
    }
    let is_needed = study.factors.is_empty() && study.treatments.len() > 1;
    let label = |treatment: u32| study.treatments.iter().find(|known| known.index == treatment);
    table.column_if(is_needed, "treatment", |row| Cell::name(label(of(row)).map_or("", |known| &known.label)))
}

/// Reads and writes of a workload, each in a row of its own; `None` for a workload that is about more than these, or about
/// one of them.
pub(crate) fn directions_table(
    results: &StudyResults,
    analysis: &Analysis,
    treatments: &[&TreatmentSummary],
    workload: &WorkloadRecord,
) -> Option<Table> {
    let name = workload.name.as_str();
    let rows = treatments.iter().flat_map(|&treatment| {
        let latencies = ["read", "write"].into_iter().flat_map(move |label| {
            let own = treatment.latencies.iter().filter(move |one| one.series.label == label);
            own.filter(move |one| one.workload == name && one.kind != LatencyKind::Service)
        });
        latencies.map(move |one| (treatment, one.series.label.as_str(), one))
    });
    let rows: Vec<_> = rows.collect();
    let has = |wanted| rows.iter().any(|(_, label, _)| *label == wanted);
    let transfers = workload.use_name == "custom" || Counts::of(workload) == Counts::Bytes;
    if !(workload.use_name == "mixed" || transfers && has("read") && has("write")) {
        return None;
    }
    let measured = |(treatment, _, latency)| Measured {
        results,
        analysis,
        treatment,
        workload: name,
        latency: Some(latency),
    };
    let table = Table::of(format!("{name}: reads and writes"), rows.into_iter().map(measured));
    let mut table = with_levels(table, results)
        .column("latency of", |row| row.latency.map_or_else(Cell::none, |one| Cell::text(&one.series.label)));
    for (what, head) in [("operations", "#IOPS"), ("throughput", "#throughput")] {
        table = table.column(head, |row| estimate_cell(row.direction(what), None));
    }
    let table = table
        .column("#n", |row| runs_cell(row.treatment, row.direction("operations")))
        .column("#mean|2", |row| Cell::time(row.latency.and_then(|latency| latency.mean_ns)));
    Some(quality(table, None).table())
}

fn latency_note(of: &str) -> String {
    format!(
        "Percentiles are latencies of {of}, merged over all runs that count, without intervals. –: too few \
         operations."
    )
}

/// What is said of every workload: percentiles, of the operation that `of` names, errors, course and validity.
fn quality<'a>(mut table: Columns<Measured<'a>>, of: Option<&str>) -> Columns<Measured<'a>> {
    let of = of.map_or_else(String::new, |of| format!("{of} "));
    for (percentile, rank) in [("p50", 2), ("p99", 1), ("p99.9", 4), ("max", 3)] {
        table = table.column(&format!("#{of}{percentile}|{rank}"), |row| {
            Cell::time(row.latency.and_then(|l| l.percentile(percentile)).map(|ns| ns as f64))
        });
    }
    // Errors are never left out where there are some.
    let errors = if table.any(|row| row.errors() > 0) { "#errors" } else { "#errors|5" };
    let tested = table.any(|row| row.durability() != Durability::Untested);
    table
        .column(errors, |row| Cell::whole(Some(row.errors())))
        .column("over time|6", |row| {
            let bars = over_time(row);
            if bars.is_empty() { Cell::none() } else { Cell::text(bars) }
        })
        .column_if(tested, "durability", |row| Cell::text(row.durability().name()))
        .column("validity", |row| {
            let (word, severity) = overview::validity(row.results, row.treatment, row.workload);
            Cell::text(word).marked(severity)
        })
}

pub(super) fn estimate_cell(response: Option<&ResponseSummary>, scale: Option<Scale>) -> Cell {
    match response.and_then(|r| Some((r, r.estimate.as_ref()?))) {
        Some((response, estimate)) => show(estimate, response.unit, scale),
        None => Cell::none(),
    }
}

pub(crate) fn show(estimate: &Estimate, unit: Unit, scale: Option<Scale>) -> Cell {
    let mut text = format::estimate(estimate.mean, estimate.half_width, unit, scale);
    if estimate.no_interval.is_some() {
        text += " (no interval)";
    }
    Cell::number(text, estimate.mean)
}

fn runs_cell(treatment: &TreatmentSummary, response: Option<&ResponseSummary>) -> Cell {
    let n = response.and_then(|r| r.estimate.as_ref()).map_or(0, |e| e.n);
    let text = if n == treatment.runs { n.to_string() } else { format!("{n}/{}", treatment.runs) };
    Cell::number(text, n as f64)
}

/// Whether there were enough replicates.
pub(crate) fn replicates(analysis: &Analysis) -> Block {
    let decided = format!("Replicates, decided by {}", analysis.primary_response);
    Block::Fold(decided, vec![Block::List(stopping(analysis))])
}

/// Whether there were enough replicates; one line for the treatments that have the same answer.
pub(crate) fn stopping(analysis: &Analysis) -> Vec<String> {
    let groups = grouped(analysis.treatments.iter().map(|treatment| {
        (treatment.stopping.as_deref().unwrap_or("no run counts"), treatment.label.as_str())
    }));
    let all = groups.len() == 1;
    let line = |(decided, members): (&str, Vec<&str>)| match members.as_slice() {
        [one] => format!("{one}: {decided}"),
        _ if all => format!("every treatment: {decided}"),
        many => format!("{} ({} treatments): {decided}", many.join(", "), many.len()),
    };
    groups.into_iter().map(line).collect()
}

pub(crate) fn operations(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let several = analysis.treatments.len() > 1;
    let at = |percentile: &'static str| {
        move |(_, latency): &(&TreatmentSummary, &LatencySummary)| {
            Cell::time(latency.percentile(percentile).map(|ns| ns as f64))
        }
    };
    let of_workload = |workload: &WorkloadRecord| {
        let rows = analysis.treatments.iter().flat_map(|treatment| {
            let latencies = treatment.latencies.iter().filter(|latency| latency.workload == workload.name);
            latencies.map(move |latency| (treatment, latency))
        });
        Table::of(format!("{}: latency of every operation", workload.name), rows)
            .column_if(several, "treatment", |(treatment, _)| Cell::name(&treatment.label))
            .column("operation", |(_, latency)| Cell::text(operation(latency)))
            .column("#count|3", |(_, latency)| Cell::whole(Some(latency.count)))
            .column("#mean|4", |(_, latency)| Cell::time(latency.mean_ns))
            .column("#p50|1", at("p50"))
            .column("#p90|8", at("p90"))
            .column("#p99|1", at("p99"))
            .column("#p99.9|5", at("p99.9"))
            .column("#p99.99|7", at("p99.99"))
            .column("#max|2", at("max"))
            .column("#first call|6", |(_, latency)| Cell::time(latency.first_ns))
            .column("#errors", |(_, latency)| {
                Cell::whole(Some(latency.errors).filter(|_| latency.kind != LatencyKind::Service))
            })
            .note(
                "Over all operations of the runs that count, merged, after the warm-up cut; no interval. \
                 First call: mean over workers and runs. Service times, from the actual start of a call, \
                 include the warm-up.",
            )
            .filled()
    };
    results.study.workloads.iter().filter_map(of_workload).collect()
}

/// Every response with its interval, or why it has none.
pub(crate) fn responses(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let several = analysis.treatments.len() > 1;
    let of_workload = |workload: &WorkloadRecord| {
        let prefix = format!("{}.", workload.name);
        let rows = analysis.treatments.iter().flat_map(|treatment| {
            let responses = treatment.responses.iter().filter(|response| response.name.starts_with(&prefix));
            responses.map(move |response| (treatment, response))
        });
        let deviation = |response: &ResponseSummary| response.estimate.as_ref()?.standard_deviation;
        Table::of(format!("{}: every response", workload.name), rows)
            .column_if(several, "treatment", |(treatment, _)| Cell::name(&treatment.label))
            .column("response", |(_, r)| Cell::text(overview::short_name(&r.name, &workload.name)))
            .column("#mean ± half width", |(_, r)| estimate_cell(Some(r), None))
            .column("#standard deviation|2", |(_, r)| {
                Cell::some(deviation(r), |value| rounded(value, None, r.unit, None).text(true))
            })
            .column("#n", |(_, r)| Cell::count(r.estimate.as_ref().map_or(0, |e| e.n)))
            .column("remarks|1", |(_, r)| Cell::text(remarks(r)))
            .filled()
    };
    results.study.workloads.iter().filter_map(of_workload).collect()
}

/// Jain's index over workers and clients.
pub(crate) fn fairness(analysis: &Analysis) -> Vec<Block> {
    let all = analysis.treatments.iter();
    let all = all.flat_map(|treatment| treatment.fairness.iter().map(move |fairness| (treatment, fairness)));
    let clusters = all.clone().filter_map(|(treatment, fairness)| {
        let clusters = fairness.clusters.as_ref()?;
        Some(Block::Sentence(format!("{}, {}: {}.", treatment.label, fairness.workload, clusters.sentence)))
    });
    let table = Table::of("Fairness (Jain's index)", all)
        .column_if(analysis.treatments.len() > 1, "treatment", |(treatment, _)| Cell::name(&treatment.label))
        .column("workload", |(_, fairness)| Cell::text(&fairness.workload))
        .column("over", |(_, fairness)| {
            Cell::text(match &fairness.group {
                Some(group) => format!("{} workers of {group}", fairness.members),
                None => format!("{} clients", fairness.members),
            })
        })
        .column("#Jain's index", |(_, fairness)| show(&fairness.jain, Unit::Ratio, None))
        .column("#n|1", |(_, fairness)| Cell::count(fairness.jain.n))
        .column("#largest / smallest rate", |(_, fairness)| Cell::fixed(fairness.max_over_min, 3))
        .note("1: all had the same rate; 1/members: one had all of it. Mean ± half width over runs.");
    table.filled().into_iter().map(Block::Table).chain(clusters).collect()
}

/// What the numbers after ± are, and what has none.
pub(super) fn interval_note(analysis: &Analysis) -> String {
    let level = format::percent(analysis.confidence);
    let estimates = || analysis.treatments.iter().filter_map(|t| t.responses.first()?.estimate.as_ref());
    let single = estimates().any(|e| e.half_width.is_none());
    let several = estimates().any(|e| e.half_width.is_some());
    let mut note = String::new();
    if several {
        note += &format!("±: half width of the {level} Student-t interval of the mean over n runs.");
    }
    if single {
        let space = if several { " " } else { "" };
        note += space;
        note += "n = 1: no interval, because one run does not show the spread between runs.";
    }
    if !several && !single {
        note += "No run counts, so there is no mean.";
    }
    note
}

/// The rate over time, averaged over the runs that count, from 0 to the row's largest.
fn over_time(row: &Measured<'_>) -> String {
    let in_bytes = overview::is_in_bytes(&row.results.study, row.analysis, row.workload);
    let recordings = overview::counted_runs(row.results, row.treatment.index).flat_map(|r| &r.recordings);
    let series = recordings.filter(|r| r.workload == row.workload);
    let series: Vec<_> = series.map(|r| overview::interval_rates(r, in_bytes)).collect();
    let length = series.iter().map(Vec::len).min().unwrap_or(0);
    let means: Vec<f64> =
        (0..length).map(|i| series.iter().map(|s| s[i]).sum::<f64>() / series.len() as f64).collect();
    sparkline(&means, BARS)
}

/// A line of bars: each the mean of its part, the highest bar the largest part. Empty for fewer than four values.
fn sparkline(values: &[f64], cells: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if values.len() < 4 {
        return String::new();
    }
    let cells = cells.min(values.len());
    let parts: Vec<f64> = (0..cells)
        .map(|i| {
            let part = &values[i * values.len() / cells..(i + 1) * values.len() / cells];
            part.iter().sum::<f64>() / part.len() as f64
        })
        .collect();
    let highest = parts.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    parts.iter().map(|v| HEIGHTS[((v / highest * 8.0).ceil() as usize).clamp(1, 8) - 1]).collect()
}

/// The operation's label, and what its latency counts from where that matters.
pub(crate) fn operation(latency: &LatencySummary) -> String {
    match latency.kind {
        LatencyKind::Latency => latency.series.label.clone(),
        LatencyKind::Response => format!("{} (response)", latency.series.label),
        LatencyKind::Service => format!("{} (service)", latency.series.label),
    }
}

/// Why there is no interval; outliers; runs left out.
pub(crate) fn remarks(response: &ResponseSummary) -> String {
    let mut remarks = Vec::new();
    match &response.estimate {
        Some(estimate) => {
            remarks.extend(estimate.no_interval.is_some().then(|| "one run: no interval".into()))
        }
        None => remarks.extend(response.no_estimate.clone()),
    }
    let outliers = response.values.iter().filter(|v| v.outlier).count();
    if outliers > 0 {
        remarks.push(format!("{} (kept)", format::plural(outliers, "outlier")));
    }
    let excluded = response.values.iter().filter(|v| v.excluded).count();
    if excluded > 0 {
        remarks.push(format!("{excluded} excluded"));
    }
    remarks.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_start_at_zero_and_show_stalls() {
        assert_eq!(sparkline(&[1.0, 1.0, 0.0, 2.0], 8), "▄▄▁█");
        assert_eq!(sparkline(&[5.0; 24], 12), "█".repeat(12));
        assert_eq!(sparkline(&[1.0; 3], 12), "");
        assert_eq!(sparkline(&[0.0; 9], 12), "");
    }
}
