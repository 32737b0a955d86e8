//! What a study asks, and the answer in two sentences: the same words on the terminal, on the page and in exports.

use std::collections::BTreeMap;

use benchmaster_analysis::experiment::{Experiment, LevelMean, LevelMeans};
use benchmaster_analysis::{
    Analysis, Effects, Estimate, FactorSummary, LevelSummary, ResponseSummary, TreatmentSummary, durability,
};
use benchmaster_record::results::{FactorRecord, StudyResults, Unit, WorkloadRecord};
use benchmaster_record::witness::Durability;
use benchmaster_stats::interval::welch;
use benchmaster_units::format::list;

use crate::format::{self, rounded};
use crate::overview::{self, adaptive_lines, load_lines, unbroken};

/// Levels of a factor up to which all are named in the question.
const LEVELS: usize = 4;
/// Factors up to which each is told of in the answer.
const FACTORS: usize = 3;

/// What is asked: the response, and what it is to depend on.
pub(crate) fn question(results: &StudyResults, analysis: &Analysis) -> String {
    asked(results, analysis, factor)
}

/// The same without the levels.
pub(crate) fn short_question(results: &StudyResults, analysis: &Analysis) -> String {
    asked(results, analysis, |factor| factor.name.clone())
}

fn asked(results: &StudyResults, analysis: &Analysis, factor: fn(&FactorRecord) -> String) -> String {
    let response = &analysis.primary_response;
    if let Some(load) = &analysis.load {
        return match load.goal {
            Some(_) => format!("What load can {} carry within its latency goal?", load.workload),
            None => format!("How do rate and latency of {} depend on the load?", load.workload),
        };
    }
    let factors: Vec<String> = results.study.factors.iter().map(factor).collect();
    let workloads = results.study.workloads.len();
    match factors.as_slice() {
        [] if workloads > 1 => format!("How fast is the target in each of {workloads} workloads?"),
        [] => format!("How high is {response}?"),
        factors => format!("How does {response} depend on {}?", list(factors)),
    }
}

/// The answer in up to two sentences, with intervals. Treatments of different durability are not ranked: a server that answers
/// before it has stored is fast by not doing the work.
pub(crate) fn answer(results: &StudyResults, analysis: &Analysis) -> Vec<String> {
    let mut told = adaptive_lines(analysis);
    told.extend(load_lines(analysis));
    if !told.is_empty() {
        told.truncate(2);
        return told;
    }
    let name = &analysis.primary_response;
    let Some(unit) = analysis.primary_unit else {
        return vec![format!("No run has the response {name}: no answer yet.")];
    };
    let mut found: Vec<Candidate<'_>> = analysis
        .treatments
        .iter()
        .filter_map(|treatment| {
            let response = treatment.response(name)?;
            Some(Candidate { treatment, response, estimate: response.estimate.as_ref()? })
        })
        .collect();
    found.sort_by(|a, b| b.estimate.mean.total_cmp(&a.estimate.mean));
    if !unit.larger_is_better() {
        found.reverse();
    }
    let level = format::percent(analysis.confidence);
    if let Some(sentences) = by_durability(results, name, unit, &level, &found) {
        return sentences;
    }
    match found.as_slice() {
        [] => vec![format!("No run counts, so {name} is unknown.")],
        [one] => vec![format!("{name} is {}.", value(one.estimate, unit, &level))],
        [best, .., worst] => {
            let (most, least) =
                if unit.larger_is_better() { ("highest", "lowest") } else { ("lowest", "highest") };
            let mut sentences = vec![format!(
                "{name} is {most} with {}: {}, and {least} with {}: {}.",
                best.treatment.label,
                value(best.estimate, unit, &level),
                worst.treatment.label,
                value(worst.estimate, unit, "")
            )];
            sentences.extend(what_changes(analysis).or_else(|| next_best(&found, most, analysis.confidence)));
            sentences
        }
    }
}

/// The answer where treatments differ in durability: the best of each class.
fn by_durability(
    results: &StudyResults,
    name: &str,
    unit: Unit,
    level: &str,
    found: &[Candidate<'_>],
) -> Option<Vec<String>> {
    let of = |workload: &&WorkloadRecord| {
        name.strip_prefix(&workload.name).is_some_and(|rest| rest.starts_with('.'))
    };
    let workload = results.study.workloads.iter().find(of).map(|workload| workload.name.as_str());
    let mut classes: BTreeMap<Durability, Vec<&Candidate<'_>>> = BTreeMap::new();
    for one in found {
        classes.entry(durability(results, one.treatment.index, workload)).or_default().push(one);
    }
    if classes.len() < 2 {
        return None;
    }
    let most = if unit.larger_is_better() { "highest" } else { "lowest" };
    let best = classes.iter().enumerate().filter_map(|(number, (class, members))| {
        let [best, others @ ..] = members.as_slice() else { return None };
        let level = if number == 0 { level } else { "" };
        let which = if others.is_empty() { String::new() } else { format!("{most} with ") };
        let label = &best.treatment.label;
        Some(format!("{}: {which}{label}, {}", class.name(), value(best.estimate, unit, level)))
    });
    Some(vec![
        format!("{name} by durability: {}.", best.collect::<Vec<_>>().join("; ")),
        "Levels of different durability are not ranked.".into(),
    ])
}

/// What to mind when reading the answer.
pub(crate) fn more(results: &StudyResults, analysis: &Analysis, answer: &[String]) -> Vec<String> {
    let mut sentences = adaptive_lines(analysis);
    sentences.extend(load_lines(analysis));
    sentences.retain(|sentence| !answer.contains(sentence));
    let estimates = analysis.treatments.iter().filter_map(|t| t.response(&analysis.primary_response));
    let estimates: Vec<_> = estimates.filter_map(|response| response.estimate.as_ref()).collect();
    if let Some(why) = estimates.iter().find_map(|estimate| estimate.no_interval.as_ref()) {
        sentences.push(format!("Where there is no interval: {why}."));
    }
    let left_out = analysis.excluded + analysis.failed;
    if left_out > 0 {
        sentences.push(format!(
            "{left_out} of {} do not count: {} failed, {} excluded as invalid.",
            format::plural(analysis.runs, "run"),
            analysis.failed,
            analysis.excluded
        ));
    }
    let failed = match analysis.errors {
        0 => "no operation failed".into(),
        errors => format!("{} failed", format::plural(errors as usize, "operation")),
    };
    sentences.push(format!("The study was {}, and {failed}.", overview::interruptions(results)));
    sentences
}

struct Candidate<'a> {
    treatment: &'a TreatmentSummary,
    response: &'a ResponseSummary,
    estimate: &'a Estimate,
}

/// `version (3, 4.1)`, `clients (1 to 64, 7 levels)`.
fn factor(factor: &FactorRecord) -> String {
    let name = &factor.name;
    match factor.levels.as_slice() {
        levels if levels.len() <= LEVELS => format!("{name} ({})", levels.join(", ")),
        [first, .., last] => format!("{name} ({first} to {last}, {} levels)", factor.levels.len()),
        _ => name.clone(),
    }
}

/// `a`, `a or b`, `a, b or c`.
fn either(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// `5.1 ± 0.2 MB/s (95 %, n = 5)`; without the level where it was told just before.
fn value(estimate: &Estimate, unit: Unit, level: &str) -> String {
    let shown = format::estimate(estimate.mean, estimate.half_width, unit, None);
    let n = unbroken(&format!("n = {}", estimate.n));
    let level = if level.is_empty() { String::new() } else { format!("{}, ", unbroken(level)) };
    let shown = unbroken(&shown);
    match estimate.half_width {
        Some(_) => format!("{shown} ({level}{n})"),
        None => format!("{shown} ({n}: no interval)"),
    }
}

/// What the factors do: those that matter with their effects, and those that cannot be separated from noise.
fn what_changes(analysis: &Analysis) -> Option<String> {
    if analysis.effects_on != analysis.primary_response {
        return None;
    }
    let (mut matter, noise) = match &analysis.effects {
        Effects::Experiment(experiment) => of_experiment(experiment)?,
        Effects::OneAtATime(levels) => {
            let factors = || levels.factors.iter();
            let matter = factors().filter_map(|f| of_levels(f, analysis.effects_unit)).collect();
            let noise = factors().filter(|f| told_apart(f) == Some(false)).map(|f| f.factor.clone());
            (matter, noise.collect())
        }
        Effects::None { .. } => return None,
    };
    let more = matter.len().saturating_sub(FACTORS);
    matter.truncate(FACTORS);
    if more > 0 {
        matter.push(format!("and {more} more"));
    }
    let noise = (!noise.is_empty()).then(|| format!("o significant effect of {}.", either(&noise)));
    match (matter.is_empty(), noise) {
        (true, None) => None,
        (true, Some(noise)) => Some(format!("N{noise}")),
        (false, None) => Some(format!("What changes it: {}.", matter.join(", "))),
        (false, Some(noise)) => Some(format!("What changes it: {}; n{noise}", matter.join(", "))),
    }
}

/// Factors whose own effect differs from 0, the one that explains most first; and those whose effect does not.
fn of_experiment(experiment: &Experiment) -> Option<(Vec<String>, Vec<String>)> {
    let explained = |means: &LevelMeans| {
        let line = experiment.anova.lines.iter().find(|line| line.term == means.letter);
        line.map_or(0.0, |line| line.sum_of_squares)
    };
    let differs = |means: &LevelMeans| {
        let own = experiment.anova.lines.iter().find(|line| line.kind == "term" && line.term == means.letter);
        own.and_then(|line| line.matters)
    };
    let mut factors: Vec<&LevelMeans> = experiment.main_effects.iter().collect();
    factors.sort_by(|a, b| explained(b).total_cmp(&explained(a)));
    if factors.iter().all(|means| differs(means).is_none()) {
        return None;
    }
    let matter = factors.iter().filter(|means| differs(means) == Some(true));
    let noise = factors.iter().filter(|means| differs(means) == Some(false));
    Some((
        matter.filter_map(|means| effect(experiment, means)).collect(),
        noise.map(|means| means.factor.clone()).collect(),
    ))
}

/// `delay ×0.041 (0.033 to 0.050) from 0ms to 1ms`.
fn effect(experiment: &Experiment, means: &LevelMeans) -> Option<String> {
    let base = means.levels.first()?;
    let size = |level: &&LevelMean| level.effect.zip(base.effect).map_or(0.0, |(a, b)| (a - b).abs());
    let numeric = means.levels.iter().all(|level| level.value.is_some());
    let far = if numeric {
        means.levels.last()?
    } else {
        means.levels.iter().skip(1).max_by(|a, b| size(a).total_cmp(&size(b)))?
    };
    let against = far.against_base?;
    let by = match (experiment.is_log(), against.interval) {
        (true, Some([low, high])) => format!("×{} ({} to {})", ratio(against.value), ratio(low), ratio(high)),
        (true, None) => format!("×{}", ratio(against.value)),
        (false, interval) => {
            let half_width = interval.map(|[low, high]| (high - low) / 2.0);
            signed(against.value, half_width, experiment.unit)
        }
    };
    // What the estimate of a fraction may be due to as well.
    let own = experiment.effects.iter().find(|effect| effect.term == means.letter);
    let name = own.map_or_else(|| means.factor.clone(), |own| experiment.with_aliases(own));
    Some(format!("{name} {by} from {} to {}", base.level, far.level))
}

/// The level that is farthest from the base, if it is told apart from it.
fn of_levels(factor: &FactorSummary, unit: Option<Unit>) -> Option<String> {
    let base = factor.levels.first()?;
    let difference = |level: &&LevelSummary| {
        let against = level.against_base.as_ref().filter(|against| against.told_apart == Some(true));
        against.map_or(0.0, |against| against.difference.abs())
    };
    let far = factor.levels.iter().max_by(|a, b| difference(a).total_cmp(&difference(b)))?;
    let against = far.against_base.as_ref().filter(|against| against.told_apart == Some(true))?;
    let by = signed(against.difference, against.half_width, unit);
    Some(format!("{} {by} from {} to {}", factor.factor, base.level, far.level))
}

fn told_apart(factor: &FactorSummary) -> Option<bool> {
    let of_levels = factor.levels.iter().filter_map(|level| level.against_base.as_ref()?.told_apart);
    of_levels.reduce(|a, b| a | b)
}

fn signed(value: f64, half_width: Option<f64>, unit: Option<Unit>) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", rounded(value, half_width, unit.unwrap_or(Unit::Ratio), None).text(true))
}

/// A ratio to three digits, without an exponent.
fn ratio(ratio: f64) -> String {
    let decimals = format::decimals_for(ratio, 3);
    format::fixed(ratio, decimals)
}

/// Whether the best treatment can be separated from the next.
fn next_best(found: &[Candidate<'_>], most: &str, confidence: f64) -> Option<String> {
    let values = |r: &ResponseSummary| -> Vec<f64> {
        r.values.iter().filter(|v| !v.excluded).map(|v| v.value).collect()
    };
    let (best, next) = (found.first()?, found.get(1)?);
    let comparison = welch(&values(best.response), &values(next.response), confidence).ok()?;
    let (label, level) = (&next.treatment.label, format::percent(confidence));
    Some(if comparison.difference.abs() > comparison.half_width {
        format!("The {most} differs significantly from the next, {label} (Welch interval at {level}).")
    } else {
        format!(
            "The {most} does not differ significantly from the next, {label} (Welch interval at {level})."
        )
    })
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::analyze;
    use benchmaster_record::witness::{CutKind, CutRecord, Witness};
    use benchmaster_testkit::study_results;

    use super::*;

    #[test]
    fn the_question_names_what_is_varied() {
        let of = |treatments| {
            let results = study_results(7, treatments, 3);
            question(&results, &analyze(&results))
        };
        assert_eq!(of(1), "How fast is the target in each of 2 workloads?");
        assert_eq!(of(4), "How does write.throughput depend on io_size (4KiB, 64KiB) and sync (off, on)?");
        assert!(of(9).contains("(4KiB to "), "{}", of(9));
    }

    #[test]
    fn the_answer_has_the_extremes_and_what_changes_it() {
        let results = study_results(7, 4, 5);
        let told = answer(&results, &analyze(&results));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains(" is highest with ") && told[0].contains("(95\u{a0}%, n\u{a0}=\u{a0}"),
            "{told:?}"
        );
        assert!(told[1].starts_with("What changes it: "), "{told:?}");
    }

    #[test]
    fn levels_of_different_durability_are_not_ranked() {
        let mut results = study_results(7, 4, 3);
        let cut = CutRecord { kind: CutKind::Power, how: String::new(), outage_ns: 1 };
        let kept = Witness { cut: Some(cut), blocks: 10, ..Witness::default() };
        for run in &mut results.runs {
            let lost = u64::from(run.key.treatment == 2);
            run.recordings.iter_mut().for_each(|one| one.witness = Some(Witness { lost, ..kept.clone() }));
        }
        let told = answer(&results, &analyze(&results));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("write.throughput by durability: survives power loss: highest with "),
            "{told:?}"
        );
        assert!(told[0].contains("; loses: ") && !told[0].contains("lowest"), "{told:?}");
        assert_eq!(told[1], "Levels of different durability are not ranked.");
        // All of one class are.
        for run in &mut results.runs {
            run.recordings.iter_mut().for_each(|one| one.witness = Some(kept.clone()));
        }
        assert!(answer(&results, &analyze(&results))[0].contains(" is highest with "));
    }

    #[test]
    fn one_treatment_has_one_sentence() {
        let results = study_results(7, 1, 3);
        let told = answer(&results, &analyze(&results));
        assert_eq!(told.len(), 1, "{told:?}");
        let mut results = study_results(7, 2, 2);
        results.runs.clear();
        assert_eq!(
            answer(&results, &analyze(&results)),
            ["No run has the response write.throughput: no answer yet."]
        );
    }

    #[test]
    fn without_effects_the_best_is_compared_with_the_next() {
        let results = study_results(7, 2, 4);
        let mut analysis = analyze(&results);
        analysis.effects = Effects::None { reason: "a test".into() };
        let told = answer(&results, &analysis);
        assert!(told[1].contains("the next, "), "{told:?}");
    }
}
