//! Two results directories against each other, and many in a row: what changed, what did not, and what is unknown.
//!
//! Pure over [`StudyResults`]. Cells, which are treatments with the same levels of the same factors, are compared one by
//! one, with Holm's correction over everything that is tested; a change is one that is outside a band of differences that
//! do not matter.

mod cell;
mod common;
mod conditions;
mod history;
mod levels;

use benchmaster_record::results::{Replication, RunRecord, StudyRecord, StudyResults, Unit, WorkloadRecord};
use benchmaster_stats::multiple::holm;

use jiff::Timestamp;
use serde::Serialize;

use benchmaster_units::format::{exact_percent, plural};

use crate::headline::Counts;
use crate::runs::counts;

pub use self::common::{Better, percent};
use self::common::{better, levels, pairs, rounded, two_digits, values};
pub use cell::{
    CellComparison, Direction, OverallComparison, RankSummary, RatioSummary, Verdict, WelchSummary,
};
pub use conditions::{Difference, Differences, differences, machines_of};
pub use history::{
    ChangeSummary, History, HistoryOptions, HistoryPoint, HistorySeries, Series, history, series_of,
};
pub use levels::compare_levels;

/// What to compare, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub responses: Responses,
    /// Differences that do not matter, relative: 0.02 = 2 %.
    pub band: f64,
    /// Confidence level; `None`: that of the first study.
    pub confidence: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Responses {
    /// The one that stands for each workload: of the first workload the first study's primary one.
    Headlines,
    /// All that both have; those that stand for workloads are corrected among themselves.
    All,
    /// Names of responses, and the sets [`HEADLINE`] and [`LATENCY`].
    Named(Vec<String>),
}

/// The set of the responses that stand for workloads.
pub const HEADLINE: &str = "headline";
/// The set of means, medians and 99th percentiles of the latency of each kind of operation.
pub const LATENCY: &str = "latency";

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The first, which the other is compared with.
    pub a: Side,
    pub b: Side,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Differences that do not matter, relative.
    pub band: f64,
    /// What differs besides the results, although it should not: the comparison was forced.
    pub forced: Vec<Difference>,
    /// What differs and may be the reason.
    pub noted: Vec<Difference>,
    /// Cells that only the first has.
    pub only_a: Vec<String>,
    /// Cells that only the second has.
    pub only_b: Vec<String>,
    /// Tests over which p values of headline responses, or of those that were asked for, are corrected (Holm).
    pub family: usize,
    /// The same of all others.
    pub other_family: usize,
    pub responses: Vec<ResponseComparison>,
    /// Changed when anything is, else undecided when anything is, else the same.
    pub verdict: Verdict,
    /// The same in words, and what limits it.
    pub sentences: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    pub study: String,
    /// Version of the program.
    pub version: String,
    /// When the first run began; `None` without runs.
    pub started: Option<Timestamp>,
    pub runs: usize,
    /// Those that failed or were found invalid, and are left out.
    pub left_out: usize,
    /// Whether the number of runs depended on their results.
    pub stopped_by_data: bool,
}

/// A response in all cells that both results have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseComparison {
    pub response: String,
    /// Whether it stands for a workload, or was asked for by its name.
    pub headline: bool,
    pub unit: Unit,
    /// Which way is better; `None` for counts and ratios, of which that is not known.
    pub better: Option<Better>,
    pub cells: Vec<CellComparison>,
    /// The mean over the cells; `None` for a single one.
    pub overall: Option<OverallComparison>,
    /// Changed when a cell is, else undecided when a cell is, else the same.
    pub verdict: Verdict,
}

/// Why two results cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// They are not of the same thing.
    #[error("{}", refusal(.0))]
    Different(Vec<Difference>),
    /// No treatment is in both.
    #[error(
        "no cell is in both results: {a} and {b} have no treatment with the same levels of the same factors; compare \
         results of the same factors"
    )]
    NoCommonCell { a: String, b: String },
    /// A response that is not in both.
    #[error("the response `{name}` is not in both results; both have: {}", known.join(", "))]
    NoSuchResponse {
        name: String,
        /// Those that are.
        known: Vec<String>,
    },
    /// A factor that the study does not have.
    #[error("the study has no factor `{name}`; it has: {}", known.join(", "))]
    NoSuchFactor {
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A factor whose levels are not two.
    #[error(
        "the factor `{name}` has {levels} levels; two levels can be compared: `benchmaster analyze` compares more"
    )]
    NotTwoLevels { name: String, levels: usize },
    /// A confidence level outside 0..1.
    #[error("a confidence level of {0} is not between 0 and 1; use a number such as 0.95")]
    Confidence(f64),
}

fn refusal(differences: &[Difference]) -> String {
    let lines: String = differences.iter().map(|d| format!("\n  {d}")).collect();
    format!(
        "the results differ in more than what was measured, so a difference would say nothing:{lines}\n\
         with --force they are compared all the same"
    )
}

/// Compares two results; `force` compares them although they differ in what should be the same.
///
/// # Errors
/// When they differ in that and it is not forced, have no treatment in common, or lack a response that was asked for.
pub fn compare(
    a: &StudyResults,
    b: &StudyResults,
    options: &Options,
    force: bool,
) -> Result<Comparison, CompareError> {
    let confidence = options.confidence.unwrap_or(a.study.confidence);
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(CompareError::Confidence(confidence));
    }
    let pairs = pairs(&a.study, &b.study);
    let found = differences(a, b);
    if !force && !found.decisive.is_empty() {
        return Err(CompareError::Different(found.decisive));
    }
    if pairs.is_empty() {
        return Err(CompareError::NoCommonCell { a: a.study.name.clone(), b: b.study.name.clone() });
    }
    let mut responses = Vec::new();
    for Wanted { name, unit, headline } in wanted(a, b, &options.responses)? {
        let cells: Vec<_> = pairs
            .iter()
            .map(|(of_a, of_b)| {
                let values = [values(a, of_a.index, &name), values(b, of_b.index, &name)];
                CellComparison::of(of_a.label.clone(), values, confidence)
            })
            .collect();
        let overall = OverallComparison::of(&cells, confidence);
        responses.push(ResponseComparison {
            response: name,
            headline,
            unit,
            better: better(unit),
            cells,
            overall,
            verdict: Verdict::Undecided,
        });
    }
    // Headlines come first: a change among them is not lost in the correction for everything else.
    let first = responses.partition_point(|response: &ResponseComparison| response.headline);
    let (headlines, others) = responses.split_at_mut(first);
    let family = judge(headlines, confidence, options.band);
    let other_family = judge(others, confidence, options.band);
    let mut comparison = Comparison {
        a: side(a),
        b: side(b),
        confidence,
        band: options.band,
        forced: found.decisive,
        noted: found.noted,
        only_a: missing(&a.study, &b.study),
        only_b: missing(&b.study, &a.study),
        family,
        other_family,
        verdict: Verdict::worst(responses.iter().map(|r| r.verdict)),
        responses,
        sentences: vec![],
    };
    comparison.sentences = sentences(&comparison);
    Ok(comparison)
}

impl Comparison {
    /// Everything that was judged: cells and overall means, of every response.
    fn judged(&self) -> impl Iterator<Item = (Verdict, Option<Direction>)> {
        self.responses.iter().flat_map(|r| {
            let cells = r.cells.iter().map(|c| (c.verdict, c.direction));
            cells.chain(r.overall.iter().map(|o| (o.verdict, o.direction)))
        })
    }
}

fn side(results: &StudyResults) -> Side {
    Side {
        study: results.study.name.clone(),
        version: results.study.version.clone(),
        started: results.runs.iter().map(|r| r.started).min(),
        runs: results.runs.len(),
        left_out: results.runs.iter().filter(|r| !counts(r)).count(),
        stopped_by_data: matches!(results.study.replicates, Replication::Sequential { .. })
            || results.study.design_details.precision.is_some(),
    }
}

/// Treatments of `of` that `other` does not have.
fn missing(of: &StudyRecord, other: &StudyRecord) -> Vec<String> {
    let known: Vec<_> = other.treatments.iter().map(|t| levels(other, t)).collect();
    of.treatments.iter().filter(|t| !known.contains(&levels(of, t))).map(|t| t.label.clone()).collect()
}

/// Responses of runs with their units, in the order in which they first appear.
fn known_responses(results: &StudyResults) -> Vec<(String, Unit)> {
    let mut known: Vec<(String, Unit)> = Vec::new();
    for response in results.runs.iter().filter(|r| counts(r)).flat_map(|r| &r.responses) {
        if !known.iter().any(|(name, _)| *name == response.name) {
            known.push((response.name.clone(), response.unit));
        }
    }
    known
}

/// A response to compare.
struct Wanted {
    name: String,
    unit: Unit,
    headline: bool,
}

/// The responses to compare, headlines first.
fn wanted(a: &StudyResults, b: &StudyResults, responses: &Responses) -> Result<Vec<Wanted>, CompareError> {
    let of_b = known_responses(b);
    let both: Vec<_> = known_responses(a).into_iter().filter(|known| of_b.contains(known)).collect();
    let missing = |name: &str| CompareError::NoSuchResponse {
        name: name.to_owned(),
        known: both.iter().map(|(known, _)| known.clone()).collect(),
    };
    let of_name = |name: &str| {
        let known = both.iter().find(|(known, _)| known == name).cloned();
        known.map(|(name, unit)| Wanted { name, unit, headline: true }).ok_or_else(|| missing(name))
    };
    let words: Vec<&str> = match responses {
        Responses::Named(words) => words.iter().map(String::as_str).collect(),
        Responses::Headlines | Responses::All => vec![HEADLINE],
    };
    let mut found: Vec<Wanted> = Vec::new();
    for word in words {
        let of_word = match word {
            HEADLINE => headlines(&a.study, of_name(&a.study.primary_response)?, &both),
            LATENCY => latencies(&both),
            name => vec![of_name(name)?],
        };
        if of_word.is_empty() {
            return Err(missing(word));
        }
        for one in of_word {
            if !found.iter().any(|known| known.name == one.name) {
                found.push(one);
            }
        }
    }
    if *responses == Responses::All {
        let is_new = |(name, _): &&(String, Unit)| {
            !found.iter().any(|one| one.name == *name || is_alike([a, b], &one.name, name))
        };
        let rest: Vec<_> = both.iter().filter(is_new).filter(|(name, _)| !is_set(a, name)).cloned().collect();
        let mut once: Vec<(String, Unit)> = Vec::new();
        for one in rest {
            if !once.iter().any(|(known, unit)| *unit == one.1 && is_alike([a, b], known, &one.0)) {
                once.push(one);
            }
        }
        found.extend(once.into_iter().map(|(name, unit)| Wanted { name, unit, headline: false }));
    }
    Ok(found)
}

/// The responses that stand for workloads; of the primary response's workload that one.
fn headlines(study: &StudyRecord, primary: Wanted, known: &[(String, Unit)]) -> Vec<Wanted> {
    let of_primary = primary.name.split_once('.').map(|(workload, _)| workload.to_owned());
    let others = study.workloads.iter().filter(|workload| Some(&workload.name) != of_primary.as_ref());
    let others: Vec<Wanted> = others.filter_map(|workload| headline(workload, known)).collect();
    std::iter::once(primary).chain(others).collect()
}

/// Mean, median and 99th percentile of every kind of operation.
fn latencies(known: &[(String, Unit)]) -> Vec<Wanted> {
    let is_one = |name: &str| {
        name.rsplit_once(".latency.").is_some_and(|(_, what)| ["mean", "p50", "p99"].contains(&what))
    };
    let found = known.iter().filter(|(name, _)| is_one(name)).cloned();
    found.map(|(name, unit)| Wanted { name, unit, headline: true }).collect()
}

/// The response that stands for a workload.
fn headline(workload: &WorkloadRecord, known: &[(String, Unit)]) -> Option<Wanted> {
    let of =
        |what: &&str| known.iter().find(|(name, _)| *name == format!("{}.{what}", workload.name)).cloned();
    Counts::of(workload).responses().iter().find_map(of).map(|(name, unit)| Wanted {
        name,
        unit,
        headline: true,
    })
}

/// Whether two responses have the same value in every run of both, as `write.throughput` and `write.write.throughput` of a
/// workload that does nothing else.
fn is_alike(both: [&StudyResults; 2], one: &str, other: &str) -> bool {
    let value = |run: &RunRecord, name: &str| run.responses.iter().find(|r| r.name == name).map(|r| r.value);
    let mut runs = both.into_iter().flat_map(|results| &results.runs).filter(|run| counts(run));
    runs.all(|run| value(run, one) == value(run, other))
}

/// Whether a response is not measured but set: the time of a workload that is limited by time.
fn is_set(results: &StudyResults, name: &str) -> bool {
    let Some(workload) = name.strip_suffix(".elapsed") else { return false };
    let recordings = results.runs.iter().flat_map(|run| &run.recordings);
    let mut of_workload = recordings.filter(|recording| recording.workload == workload).peekable();
    of_workload.peek().is_some() && of_workload.all(|recording| recording.timed)
}

/// Corrects all p values for their number, and decides. Returns how many tests there are.
fn judge(responses: &mut [ResponseComparison], confidence: f64, band: f64) -> usize {
    let tests = |r: &ResponseComparison| -> Vec<f64> {
        let cells = r.cells.iter().map(|c| c.welch.as_ref().map(|w| w.p));
        cells.chain([r.overall.as_ref().map(|o| o.p)]).map(|p| p.unwrap_or(f64::NAN)).collect()
    };
    let ranks = |r: &ResponseComparison| -> Vec<f64> {
        r.cells.iter().map(|c| c.ranks.as_ref().map_or(f64::NAN, |ranks| ranks.p)).collect()
    };
    let means: Vec<f64> = responses.iter().flat_map(tests).collect();
    let family = means.iter().filter(|p| !p.is_nan()).count();
    let mut by_mean = holm(&means).into_iter();
    let by_rank: Vec<f64> = responses.iter().flat_map(ranks).collect();
    let rank_family = by_rank.iter().filter(|p| !p.is_nan()).count();
    let mut by_rank = holm(&by_rank).into_iter();
    let reaches = |ranks: &RankSummary| ranks.smallest_p * rank_family as f64 <= 1.0 - confidence;
    // Where no cell can reach the level, it is said once, of the sample.
    let in_some = responses.iter().flat_map(|r| &r.cells).any(|c| c.ranks.as_ref().is_none_or(&reaches));
    for response in responses {
        for cell in &mut response.cells {
            if let (Some(p), Some(welch)) = (by_mean.next(), cell.welch.as_mut()) {
                welch.p_holm = p;
            }
            if let (Some(p), Some(ranks)) = (by_rank.next(), cell.ranks.as_mut()) {
                ranks.p_holm = p;
                ranks.can_reach = reaches(ranks);
            }
            cell.judge(confidence, band, response.unit, family);
            if in_some {
                cell.tell_what_ranks_cannot();
            }
        }
        if let (Some(p), Some(overall)) = (by_mean.next(), response.overall.as_mut()) {
            overall.p_holm = p;
            overall.judge(confidence, band, response.unit, family);
        }
        let all = response.cells.iter().map(|c| c.verdict);
        response.verdict = Verdict::worst(all.chain(response.overall.iter().map(|o| o.verdict)));
    }
    family
}

fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut sentences = Vec::new();
    let judged: Vec<_> = comparison.judged().collect();
    let times = |verdict| judged.iter().filter(|(v, _)| *v == verdict).count();
    let (changed, same, undecided) =
        (times(Verdict::Changed), times(Verdict::Same), times(Verdict::Undecided));
    let comparisons = if judged.len() == 1 { "comparison" } else { "comparisons" };
    sentences.push(format!(
        "Of {} {comparisons}: {changed} changed, {same} the same within ±{}, {undecided} undecided.",
        judged.len(),
        exact_percent(comparison.band)
    ));
    if comparison.family.max(comparison.other_family) > 1 {
        sentences.push(format!(
            "p is corrected for {}{} (Holm): the probability of one or more false changes in all of them is at \
             most {}.",
            plural(comparison.family, "test"),
            match comparison.other_family {
                0 => String::new(),
                others => format!(" of headline responses, and by itself for {others} of all others"),
            },
            exact_percent(1.0 - comparison.confidence)
        ));
    }
    let cells = comparison.responses.iter().flat_map(|r| &r.cells);
    let short: Vec<_> =
        cells.filter_map(|c| c.ranks.as_ref().filter(|r| !r.can_reach).map(|r| (c, r))).collect();
    if let Some((cell, ranks)) = short.first() {
        let whose = if comparison.responses.iter().map(|r| r.cells.len()).sum::<usize>() == short.len() {
            "The sample".into()
        } else {
            format!("In {} the sample", plural(short.len(), "cell"))
        };
        let family = if comparison.family > 1 { " after the correction" } else { "" };
        sentences.push(format!(
            "{whose} cannot reach p ≤ {} by ranks{family}, however large a difference is: {} + {} runs have p ≥ {}. \
             There, a change rests on the assumption of normal values alone; measure more runs.",
            rounded(1.0 - comparison.confidence),
            cell.a_values.len(),
            cell.b_values.len(),
            two_digits(ranks.smallest_p),
        ));
    }
    for (cells, whose) in [(&comparison.only_a, "first"), (&comparison.only_b, "second")] {
        if !cells.is_empty() {
            sentences.push(format!("Only in the {whose} results, and not compared: {}.", cells.join(", ")));
        }
    }
    let stopped = [(&comparison.a, "A"), (&comparison.b, "B")];
    let stopped: Vec<_> =
        stopped.iter().filter(|(side, _)| side.stopped_by_data).map(|(_, name)| *name).collect();
    if !stopped.is_empty() {
        sentences.push(format!(
            "The number of runs of {} was chosen by their results: its intervals cover less often than {}, and false \
             changes are more frequent than p says.",
            stopped.join(" and "),
            exact_percent(comparison.confidence)
        ));
    }
    let left_out = comparison.a.left_out + comparison.b.left_out;
    if left_out > 0 {
        sentences.push(format!(
            "{left_out} {} that failed or that a check found invalid {} left out.",
            if left_out == 1 { "run" } else { "runs" },
            if left_out == 1 { "is" } else { "are" }
        ));
    }
    sentences
}
