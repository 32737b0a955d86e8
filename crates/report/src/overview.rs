//! What both the terminal and the page show first: which response stands for a workload, which series, and the facts
//! about the study in words.

mod fleet;
mod wire;

use benchmaster_analysis::adaptive::Answer;
use benchmaster_analysis::headline::Counts;
use benchmaster_analysis::{Analysis, LatencyKind, LatencySummary, TreatmentSummary};
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{
    Check, Replication, RunRecord, SessionEnd, Severity, StudyRecord, StudyResults, Unit,
};

pub(crate) use self::fleet::{
    AgentSummary, Client, LoadSummary, agents, clients, loads, network_text, start_line, starts,
};
pub(crate) use self::wire::{
    events_text, kind_text, kinds, lab_lines, measured_rpcs, network_lines, phase_text,
};
use crate::format;

/// With blanks at which no line may break.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// What belongs together, in the order of the first of each.
pub(crate) fn grouped<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// The responses of a workload as a whole that are rates, the one that stands for it first.
///
/// That is the primary response if it is one of the workload's; else the throughput of a workload that moves data for
/// its own sake, and the operation rate of any other.
pub(crate) fn rates(study: &StudyRecord, analysis: &Analysis, workload: &str) -> Vec<(String, Unit)> {
    let counts_files = counts(study, workload) != Counts::Bytes;
    let files = created(study, workload).map(|label| format!("{label}.operations"));
    let is_of_files = |name: &str| files.as_deref() == Some(short_name(name, workload));
    let mut found: Vec<(String, Unit, bool)> = Vec::new();
    for response in analysis.treatments.iter().flat_map(|t| &t.responses) {
        let Some(what) = response.name.strip_prefix(workload).and_then(|rest| rest.strip_prefix('.')) else {
            continue;
        };
        let is_primary = response.name == analysis.primary_response;
        let is_rate = matches!(response.unit, Unit::BytesPerSecond | Unit::OperationsPerSecond);
        if !is_primary && !is_of_files(&response.name) && (what.contains('.') || !is_rate) {
            continue;
        }
        let moves = response.values.iter().any(|v| v.value != 0.0);
        match found.iter_mut().find(|(name, ..)| *name == response.name) {
            Some((.., any)) => *any |= moves,
            None => found.push((response.name.clone(), response.unit, moves)),
        }
    }
    let rank = |(name, unit, moves): &(String, Unit, bool)| {
        let bytes = (*unit == Unit::BytesPerSecond) == counts_files;
        (*name != analysis.primary_response, !is_of_files(name), !moves, bytes)
    };
    found.sort_by_key(rank);
    let idle = |(_, unit, moves): &(String, Unit, bool)| *unit == Unit::BytesPerSecond && !moves;
    found.retain(|response| response.0 == analysis.primary_response || !idle(response));
    found.into_iter().map(|(name, unit, _)| (name, unit)).collect()
}

/// The number of the workload that is asked about: that of the primary response.
pub(crate) fn asked(results: &StudyResults, analysis: &Analysis) -> usize {
    let primary = &analysis.primary_response;
    let of = |name: &str| primary.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    results.study.workloads.iter().position(|workload| of(&workload.name)).unwrap_or(0)
}

/// The levels of a treatment, in the order of the factors; none where the study has no factors.
pub(crate) fn levels(study: &StudyRecord, treatment: u32) -> Vec<&str> {
    let treatment = study.treatments.iter().find(|one| one.index == treatment);
    let levels = treatment.into_iter().flat_map(|one| study.factors.iter().zip(&one.levels));
    levels.map(|(factor, level)| factor.levels.get(*level as usize).map_or("", String::as_str)).collect()
}

/// The name of a response without its workload.
pub(crate) fn short_name<'a>(response: &'a str, workload: &str) -> &'a str {
    response.strip_prefix(workload).and_then(|rest| rest.strip_prefix('.')).unwrap_or(response)
}

/// The label of the operation whose rate is that of the files that a workload creates.
fn created<'a>(study: &StudyRecord, workload: &str) -> Option<&'a str> {
    (counts(study, workload) == Counts::Created).then_some("create")
}

fn counts(study: &StudyRecord, workload: &str) -> Counts {
    study.workloads.iter().find(|one| one.name == workload).map_or(Counts::Bytes, Counts::of)
}

/// The latency table of the operation that a workload's headline counts; where that counts several, of the one that moves
/// most bytes, else of the most frequent one.
pub(crate) fn main_latency<'a>(
    results: &StudyResults,
    analysis: &Analysis,
    treatment: &'a TreatmentSummary,
    workload: &str,
) -> Option<&'a LatencySummary> {
    let bytes = |latency: &LatencySummary| -> u64 {
        let recordings = results.runs.iter().filter(|r| r.key.treatment == treatment.index);
        recordings
            .flat_map(|r| &r.recordings)
            .filter(|r| r.workload == workload)
            .flat_map(|r| &r.series)
            .filter(|s| s.key == latency.series)
            .map(|s| s.total.bytes)
            .sum()
    };
    let headline = rates(&results.study, analysis, workload).into_iter().next();
    let label = headline.as_ref().and_then(|(name, _)| Some(short_name(name, workload).split_once('.')?.0));
    treatment
        .latencies
        .iter()
        .filter(|l| l.workload == workload && l.kind != LatencyKind::Service)
        .max_by_key(|l| (Some(l.series.label.as_str()) == label, bytes(l), l.count))
}

/// Bytes or operations per second of each interval of a recording; an interval without an operation is 0. A last
/// interval of less than a tenth is left out, because so short a rate says nothing.
pub(crate) fn interval_rates(recording: &Recording, in_bytes: bool) -> Vec<f64> {
    let interval = recording.interval_ns;
    if interval == 0 {
        return Vec::new();
    }
    let last = recording.series.iter().flat_map(|s| &s.intervals).map(|i| u64::from(i.index) + 1).max();
    let intervals = last.unwrap_or(0).min(recording.length_ns.div_ceil(interval)) as usize;
    let mut amounts = vec![0u64; intervals];
    for one in recording.series.iter().flat_map(|s| &s.intervals) {
        if let Some(amount) = amounts.get_mut(one.index as usize) {
            *amount += if in_bytes { one.stats.bytes } else { one.stats.count };
        }
    }
    let span = |index: usize| interval.min(recording.length_ns.saturating_sub(index as u64 * interval));
    let rates = amounts.iter().enumerate().filter(|(i, _)| span(*i) * 10 >= interval);
    rates.map(|(i, amount)| *amount as f64 / (span(i) as f64 / 1e9)).collect()
}

/// The runs of a treatment whose numbers count.
pub(crate) fn counted_runs(results: &StudyResults, treatment: u32) -> impl Iterator<Item = &RunRecord> {
    results.runs.iter().filter(move |r| r.key.treatment == treatment && benchmaster_analysis::counts(r))
}

/// `full design, 4 treatments × 5 replicates, random order, seed 7 (ChaCha8)`.
pub(crate) fn design_line(study: &StudyRecord) -> String {
    let replicates = match study.replicates {
        Replication::Fixed(n) => format!("× {}", format::plural(n as usize, "replicate")),
        Replication::Sequential { min, max, relative_half_width } => format!(
            "× {min} to {max} replicates (until the half width is {} of the mean)",
            format::percent(relative_half_width)
        ),
    };
    format!(
        "{} design, {} {replicates}, {} order, seed {} ({})",
        study.design,
        format::plural(study.treatments.len(), "treatment"),
        study.order,
        study.seed,
        study.generator
    )
}

/// One line per distinct host and target: file system, source, kernel, processors.
pub(crate) fn place_lines(results: &StudyResults) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (host, environment) in results.sessions.iter().flat_map(|s| &s.environment) {
        let target =
            environment.target.as_ref().map(|t| format!("{} on {} ({}), ", t.path, t.file_system, t.source));
        let kernel: Vec<_> = environment.kernel.split_whitespace().take(2).collect();
        let line = format!(
            "{}host {host}, {}, {} of {} processors",
            target.unwrap_or_default(),
            kernel.join(" "),
            environment.processors_allowed,
            environment.processors
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// How the run of the study went: finished, failed, excluded, interrupted.
pub(crate) fn progress_line(results: &StudyResults, analysis: &Analysis) -> String {
    let planned = match results.study.replicates {
        Replication::Fixed(n) => Some(n as usize * results.study.treatments.len()),
        Replication::Sequential { .. } => None,
    };
    let mut line = match planned {
        Some(planned) if analysis.runs <= planned => {
            format!("{} of {} finished", analysis.runs, format::plural(planned, "run"))
        }
        Some(planned) => {
            let added = analysis.runs - planned;
            format!("{} runs finished, {planned} as planned beforehand and {added} added", analysis.runs)
        }
        None => format!("{} finished", format::plural(analysis.runs, "run")),
    };
    if analysis.failed > 0 {
        line += &format!(", {} failed", analysis.failed);
    }
    if analysis.excluded > 0 {
        line += &format!(", {} excluded as invalid", analysis.excluded);
    }
    line += "; ";
    line += &interruptions(results);
    line
}

/// Whether the study went through in one go, and whether it came to its end.
pub(crate) fn interruptions(results: &StudyResults) -> String {
    let resumed = match results.interruptions() {
        0 => None,
        1 => Some("interrupted once and resumed".to_owned()),
        n => Some(format!("interrupted {n} times and resumed")),
    };
    let end = match results.end() {
        Some(SessionEnd::Complete) => return resumed.unwrap_or_else(|| "never interrupted".into()),
        Some(SessionEnd::Stopped) => "stopped before its end",
        Some(SessionEnd::Failed) => "ended by an error",
        None if results.sessions.is_empty() => "never begun",
        None => "not ended (killed, or still running)",
    };
    resumed.map_or_else(|| end.to_owned(), |resumed| format!("{resumed}, then {end}"))
}

/// What the scale of a study changed, for every place where its levels and texts speak of what it was scaled from.
pub(crate) fn scale_text(study: &StudyRecord) -> Option<String> {
    let scale = study.design_details.scale?;
    Some(format!(
        "Scaled by {scale}: amounts of data, numbers of files and times are {scale} of what the study file and its levels say."
    ))
}

/// Where and how a study was measured.
pub(crate) fn facts(results: &StudyResults, analysis: &Analysis) -> Vec<String> {
    let lines = place_lines(results).into_iter().chain(lab_lines(results)).chain(network_lines(results));
    let lines = lines.chain(start_line(results, analysis));
    let version = format!("Benchmaster {}", results.study.version);
    lines.chain([design_line(&results.study), progress_line(results, analysis), version]).collect()
}

/// How valid the numbers of a workload under a treatment are, in a word, and how bad that is.
pub(crate) fn validity(
    results: &StudyResults,
    treatment: &TreatmentSummary,
    workload: &str,
) -> (String, Option<Severity>) {
    if treatment.runs == 0 {
        return ("not run".into(), Some(Severity::Note));
    }
    if !treatment.excluded.is_empty() {
        return (format!("{} invalid", treatment.excluded.len()), Some(Severity::Invalid));
    }
    if !treatment.failed.is_empty() {
        return (format!("{} failed", treatment.failed.len()), Some(Severity::Invalid));
    }
    let warned = counted_runs(results, treatment.index).filter(|run| {
        let about = |c: &Check| c.workload.as_ref().is_none_or(|w| w == workload);
        run.checks.iter().any(|c| c.severity == Severity::Warning && about(c))
    });
    match warned.count() {
        0 => ("ok".into(), None),
        n => (format!("{n} warned"), Some(Severity::Warning)),
    }
}

/// What an adaptive study found, in sentences; none for other studies.
pub(crate) fn adaptive_lines(analysis: &Analysis) -> Vec<String> {
    match &analysis.adaptive {
        None => Vec::new(),
        Some(Answer::Finished(conclusion)) => conclusion.sentences.clone(),
        Some(Answer::Open { reason }) => {
            vec![format!("The study is not finished: {reason}. Run the same command to continue.")]
        }
    }
}

/// What load curves say, in sentences; none for studies without them.
pub(crate) fn load_lines(analysis: &Analysis) -> Vec<String> {
    let curves = analysis.load.iter().flat_map(|load| &load.curves);
    let lines = curves.flat_map(|curve| {
        curve.sentences.iter().enumerate().map(|(number, sentence)| match (number, curve.label.as_str()) {
            (0, label) if !label.is_empty() => format!("{label}: {sentence}"),
            _ => sentence.clone(),
        })
    });
    lines.collect()
}

/// Whether the rate of a workload over time is in bytes, as its first rate is.
pub(crate) fn is_in_bytes(study: &StudyRecord, analysis: &Analysis, workload: &str) -> bool {
    let mut units = rates(study, analysis, workload).into_iter().map(|(_, unit)| unit);
    units.find(|u| matches!(u, Unit::BytesPerSecond | Unit::OperationsPerSecond))
        == Some(Unit::BytesPerSecond)
}
