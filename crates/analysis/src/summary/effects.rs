//! How factors change a response.
//!
//! All designs but one-at-a-time are analysed as experiments ([`crate::experiment`]). Beside that each level is compared
//! with the factor's base level: averaged over the cells of all other factors, or with everything else at its base (one
//! at a time).

use benchmaster_record::results::{FactorRecord, RunRecord, StudyRecord, StudyResults, TreatmentRecord};
use benchmaster_stats::multiple::holm;
use benchmaster_stats::{mean, standard_deviation, t_quantile, t_two_sided_p};
use serde::Serialize;

use super::treatment::TreatmentSummary;
use crate::experiment::{
    self, CENTRE, Experiment, ExperimentError, LeftOut, Options, Table, TableFactor, TableRow,
};
use crate::runs::{Estimate, counts, is_invalid};

/// How the factors change a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Effects {
    /// Nothing to say.
    None { reason: String },
    /// The effects and interactions of the factors.
    Experiment(Box<Experiment>),
    /// Each level against the base treatment.
    OneAtATime(LevelsSummary),
}

impl Effects {
    /// The experiment, where there is one.
    pub fn experiment(&self) -> Option<&Experiment> {
        match self {
            Self::Experiment(experiment) => Some(experiment),
            _ => None,
        }
    }
}

/// Each level against its factor's base level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelsSummary {
    /// What is compared with what.
    pub comparison: LevelComparison,
    /// The same in words, and what to mind.
    pub note: String,
    pub factors: Vec<FactorSummary>,
}

/// What a level comparison compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelComparison {
    /// Cell means averaged over all combinations of the other factors, every cell with the same weight.
    OverAllCells,
    /// The base treatment against treatments that differ from it in one factor.
    OneAtATime,
}

/// One factor, level by level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorSummary {
    pub factor: String,
    /// Its levels; the first is the base.
    pub levels: Vec<LevelSummary>,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelSummary {
    pub level: String,
    /// Mean response at this level; `None` when a cell it needs has no run that counts.
    pub estimate: Option<Estimate>,
    /// The difference from the base level; `None` for the base itself or without an estimate.
    pub against_base: Option<ContrastSummary>,
}

/// A difference between two levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContrastSummary {
    /// Level minus base.
    pub difference: f64,
    /// The difference relative to the base's mean; `None` when that is 0.
    pub relative: Option<f64>,
    /// Half width of the Welch interval of the difference.
    pub half_width: Option<f64>,
    /// Why there is no interval.
    pub no_interval: Option<String>,
    /// p value of Welch's test; `None` without an interval, and where nothing varies.
    pub p: Option<f64>,
    /// The same, adjusted for all levels of all factors, which are looked at together (Holm).
    pub p_holm: Option<f64>,
    /// Whether `p_holm` is at most 1 − confidence, or there is a difference where nothing varies. `None` = no interval.
    pub told_apart: Option<bool>,
}

/// The runs of a treatment that count: values of the response.
struct Cell<'a> {
    levels: &'a [u32],
    values: Vec<f64>,
}

/// The effects on a response, and its level means.
pub(super) fn effects(
    results: &StudyResults,
    treatments: &[TreatmentSummary],
    response: &str,
    options: &Options,
) -> Result<(Effects, Option<LevelsSummary>), ExperimentError> {
    let study = &results.study;
    let none = |reason: String| Ok((Effects::None { reason }, None));
    if study.design_details.load.is_some() {
        return none("each run is at a point of a load curve, and the curves tell what was found".into());
    }
    if study.factors.is_empty() {
        return none("the study has no factors".into());
    }
    if !treatments.iter().any(|t| t.response(response).is_some()) {
        return none(format!("no run has the response {response}"));
    }
    let levels = levels(study, treatments, response, options.confidence);
    if study.design == "one-at-a-time" && study.stages.is_empty() {
        return Ok((Effects::OneAtATime(levels), None));
    }
    let effects = match experiment::analyze(&table(results, response), options) {
        Ok(experiment) => Effects::Experiment(Box::new(experiment)),
        // What is missing may be there when more has been run.
        Err(error @ (ExperimentError::NoRuns { .. } | ExperimentError::NothingVaried { .. })) => {
            Effects::None { reason: error.to_string() }
        }
        Err(error) => return Err(error),
    };
    Ok((effects, Some(levels)))
}

/// The runs of a study that count, with their levels, blocks and whole plots.
pub fn table(results: &StudyResults, response: &str) -> Table {
    let study = &results.study;
    let design_levels = study.design_levels();
    let factors = study.factors.iter().zip(&design_levels).enumerate();
    let factors = factors.map(|(number, (factor, &levels))| TableFactor {
        name: factor.name.clone(),
        levels: factor.levels.iter().take(levels as usize).cloned().collect(),
        values: factor.values.as_ref().map(|values| values.iter().take(levels as usize).copied().collect()),
        hard_to_change: study.design_details.hard_to_change.contains(&(number as u32)),
    });
    let (mut rows, mut unit) = (Vec::new(), None);
    let value = |run: &RunRecord| {
        let found = run.responses.iter().find(|r| r.name == response);
        found.filter(|r| r.value.is_finite()).map(|r| (r.value, r.unit))
    };
    // A treatment counts with all its runs or with none: which of them have a percentile depends on how fast they were.
    let incomplete: Vec<u32> = results
        .runs
        .iter()
        .filter(|run| counts(run) && value(run).is_none())
        .map(|run| run.key.treatment)
        .collect();
    let mut left_out: Vec<LeftOut> = Vec::new();
    for run in &results.runs {
        let Some(treatment) = study.treatments.iter().find(|t| t.index == run.key.treatment) else {
            continue;
        };
        match value(run).filter(|_| counts(run) && !incomplete.contains(&run.key.treatment)) {
            Some((value, own)) => {
                unit = unit.or(Some(own));
                rows.push(row(study, treatment, run, value));
            }
            None => {
                let reason = if run.failure.is_some() {
                    "failed"
                } else if is_invalid(run) {
                    "a check found the run invalid"
                } else if value(run).is_some() {
                    "other runs of the treatment have no value"
                } else {
                    "no value"
                };
                match left_out.iter_mut().find(|l| l.reason == reason) {
                    Some(same) => same.runs += 1,
                    None => left_out.push(LeftOut { reason: reason.into(), runs: 1 }),
                }
            }
        }
    }
    Table { response: response.to_owned(), unit, factors: factors.collect(), rows, left_out }
}

fn row(study: &StudyRecord, treatment: &TreatmentRecord, run: &RunRecord, response: f64) -> TableRow {
    TableRow {
        levels: if treatment.centre {
            vec![CENTRE; treatment.levels.len()]
        } else {
            treatment.levels.clone()
        },
        response,
        block: study.block_name(run),
        whole_plot: study.whole_plot_name(run),
        order: Some(u64::from(run.position)),
        centre: treatment.centre,
    }
}

/// Every level of every factor against the base level.
fn levels(
    study: &StudyRecord,
    treatments: &[TreatmentSummary],
    response: &str,
    confidence: f64,
) -> LevelsSummary {
    let corners = study.treatments.iter().zip(treatments).filter(|(record, _)| !record.centre);
    let cells: Vec<_> = corners
        .map(|(record, summary)| {
            let values = summary
                .response(response)
                .filter(|r| r.estimate.is_some())
                .into_iter()
                .flat_map(|r| &r.values)
                .filter(|v| !v.excluded);
            Cell { levels: &record.levels, values: values.map(|v| v.value).collect() }
        })
        .collect();
    if study.design == "one-at-a-time" {
        let others_at_base = |cell: &Cell<'_>, factor: usize, level: u32| {
            cell.levels.iter().enumerate().all(|(i, &l)| l == if i == factor { level } else { 0 })
        };
        return LevelsSummary {
            comparison: LevelComparison::OneAtATime,
            note:
                "Each level is compared with the base treatment, where all factors are at their base level; \
                   interactions cannot be seen in such a design."
                    .into(),
            factors: compare(
                study,
                |factor, level| cells.iter().filter(|c| others_at_base(c, factor, level)).collect(),
                confidence,
            ),
        };
    }
    LevelsSummary {
        comparison: LevelComparison::OverAllCells,
        note: format!(
            "Each level is compared with the factor's base level, averaged over all combinations of the other factors \
             that the design has, with equal weight.{}",
            if study.design == "full" {
                ""
            } else {
                " These are not all combinations, so that a difference also has in it what other factors do."
            }
        ),
        factors: compare(
            study,
            |factor, level| cells.iter().filter(|c| c.levels.get(factor) == Some(&level)).collect(),
            confidence,
        ),
    }
}

/// Compares every level of every factor with the base level; `cells_at` gives the cells of a level.
fn compare<'a>(
    study: &StudyRecord,
    cells_at: impl Fn(usize, u32) -> Vec<&'a Cell<'a>>,
    confidence: f64,
) -> Vec<FactorSummary> {
    let design_levels = study.design_levels();
    let of_factor = |(index, factor): (usize, &FactorRecord)| {
        let base = cells_at(index, 0);
        let levels = (0..design_levels[index]).zip(&factor.levels).map(|(number, level)| {
            let cells = cells_at(index, number);
            LevelSummary {
                level: level.clone(),
                estimate: average(&cells, confidence),
                against_base: if number == 0 { None } else { contrast(&cells, &base, confidence) },
            }
        });
        FactorSummary { factor: factor.name.clone(), levels: levels.collect() }
    };
    let mut factors: Vec<FactorSummary> = study.factors.iter().enumerate().map(of_factor).collect();
    // So that of all comparisons of noise one or more seem to differ in at most 1 − confidence of all studies.
    let mut contrasts: Vec<_> = factors
        .iter_mut()
        .flat_map(|factor| &mut factor.levels)
        .filter_map(|level| level.against_base.as_mut().filter(|contrast| contrast.p.is_some()))
        .collect();
    let adjusted = holm(&contrasts.iter().filter_map(|contrast| contrast.p).collect::<Vec<_>>());
    for (contrast, p) in contrasts.iter_mut().zip(adjusted) {
        (contrast.p_holm, contrast.told_apart) = (Some(p), Some(p <= 1.0 - confidence));
    }
    factors
}

/// The mean over cells of equal weight, and its Welch interval.
fn average(cells: &[&Cell<'_>], confidence: f64) -> Option<Estimate> {
    if let [cell] = cells {
        return Estimate::of(&cell.values, confidence).ok();
    }
    let sum = weighted(cells.iter().map(|c| (*c, 1.0 / cells.len() as f64)))?;
    let half_width = sum.half_width(confidence);
    Some(Estimate {
        n: cells.iter().map(|c| c.values.len()).sum(),
        mean: sum.value,
        standard_deviation: None,
        no_interval: half_width.is_none().then(|| SINGLE_RUN.into()),
        half_width,
    })
}

fn contrast(cells: &[&Cell<'_>], base: &[&Cell<'_>], confidence: f64) -> Option<ContrastSummary> {
    let plus = cells.iter().map(|c| (*c, 1.0 / cells.len() as f64));
    let minus = base.iter().map(|c| (*c, -1.0 / base.len() as f64));
    let sum = weighted(plus.chain(minus))?;
    let base_mean = weighted(base.iter().map(|c| (*c, 1.0 / base.len() as f64)))?.value;
    let half_width = sum.half_width(confidence);
    Some(ContrastSummary {
        difference: sum.value,
        relative: (base_mean != 0.0).then(|| sum.value / base_mean),
        half_width,
        no_interval: half_width.is_none().then(|| SINGLE_RUN.into()),
        p: sum.p(),
        p_holm: None,
        told_apart: half_width.map(|_| sum.value != 0.0),
    })
}

const SINGLE_RUN: &str = "a treatment with a single run tells nothing about the spread between runs";

/// A weighted sum of cell means.
struct WeightedSum {
    value: f64,
    /// Variance and Satterthwaite degrees of freedom; `None` when a cell has a single run.
    spread: Option<(f64, f64)>,
}

impl WeightedSum {
    fn p(&self) -> Option<f64> {
        let (variance, df) = self.spread.filter(|(variance, _)| *variance > 0.0)?;
        Some(t_two_sided_p(self.value / variance.sqrt(), df))
    }

    fn half_width(&self, confidence: f64) -> Option<f64> {
        let (variance, df) = self.spread?;
        if variance == 0.0 {
            return Some(0.0);
        }
        Some(t_quantile(0.5 + confidence / 2.0, df) * variance.sqrt()).filter(|h| h.is_finite())
    }
}

/// `None` when there is no cell or one without values. With one cell on each side this is Welch's comparison.
fn weighted<'a>(cells: impl Iterator<Item = (&'a Cell<'a>, f64)>) -> Option<WeightedSum> {
    let (mut value, mut variance, mut denominator, mut known, mut any) = (0.0, 0.0, 0.0, true, false);
    for (cell, weight) in cells {
        any = true;
        value += weight * mean(&cell.values)?;
        match standard_deviation(&cell.values) {
            Some(deviation) => {
                let n = cell.values.len() as f64;
                let part = (weight * deviation).powi(2) / n;
                variance += part;
                denominator += part * part / (n - 1.0);
            }
            None => known = false,
        }
    }
    let df = if denominator > 0.0 { variance * variance / denominator } else { f64::INFINITY };
    any.then_some(WeightedSum { value, spread: known.then_some((variance, df)) })
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::{Check, CheckKind, Severity, StudyResults};
    use benchmaster_stats::interval::welch;
    use benchmaster_testkit::study_results;

    use super::super::{Analysis, analyze, analyze_with};
    use super::*;
    use crate::experiment::{ErrorKind, Transform};

    /// A study whose primary response is a function of treatment and replicate.
    fn with_values(treatments: u32, replicates: u32, value: impl Fn(u32, u32) -> f64) -> StudyResults {
        let mut results = study_results(1, treatments, replicates);
        for run in &mut results.runs {
            run.checks.clear();
            for response in run.responses.iter_mut().filter(|r| r.name == "write.throughput") {
                response.value = value(run.key.treatment, run.key.replicate);
            }
        }
        results
    }

    /// Jain's memory-cache example, 18.1.
    const JAIN: [[f64; 3]; 4] =
        [[15.0, 18.0, 12.0], [45.0, 48.0, 51.0], [25.0, 28.0, 19.0], [75.0, 75.0, 81.0]];

    fn as_measured(results: &StudyResults) -> Analysis {
        let options = Options { transform: Transform::None, ..Options::default() };
        analyze_with(results, None, &options).unwrap()
    }

    fn levels_of(analysis: &Analysis) -> &LevelsSummary {
        match &analysis.effects {
            Effects::OneAtATime(levels) => levels,
            _ => analysis.levels.as_ref().unwrap(),
        }
    }

    #[test]
    fn two_levels_give_the_factorial_of_the_textbook() {
        let results = with_values(4, 3, |t, r| JAIN[t as usize][r as usize]);
        let analysis = as_measured(&results);
        let found = analysis.effects.experiment().unwrap();
        assert_eq!(found.factors[0].levels, ["4KiB", "64KiB"]);
        // Without the rounding of the arithmetic.
        let exact = |value: f64| (value * 1e9).round() / 1e9;
        let terms: Vec<_> =
            found.effects.iter().map(|t| (t.name.as_str(), exact(t.half_effect.unwrap()))).collect();
        assert_eq!(terms, [("io_size", 21.5), ("sync", 9.5), ("io_size × sync", 5.0)]);
        assert_eq!((found.mean.coefficient.round(), found.replicates), (41.0, (3, 3)));
        assert!(found.effects.iter().all(|t| t.significant == Some(true) && t.half_width.is_some()));
        let shares: f64 = found.effects.iter().filter_map(|t| t.variation_percent).sum();
        assert!((shares + found.error.percent.unwrap() - 100.0).abs() < 1e-9);
        // What administrators read first is there too.
        assert_eq!(levels_of(&analysis).factors.len(), 2);
    }

    #[test]
    fn an_unreplicated_factorial_has_no_intervals_and_says_why() {
        let results = with_values(4, 1, |t, _| JAIN[t as usize][0]);
        let analysis = as_measured(&results);
        let found = analysis.effects.experiment().unwrap();
        assert_eq!(found.error.kind, ErrorKind::Lenth);
        assert!(found.lenth.is_some() && found.error.s_e.is_none());
        assert!(found.sentences.iter().any(|s| s.contains("Lenth")), "{:?}", found.sentences);
    }

    #[test]
    fn runs_that_do_not_count_are_left_out_and_counted() {
        let mut results = with_values(4, 3, |t, r| JAIN[t as usize][r as usize]);
        for run in &mut results.runs {
            match (run.key.treatment, run.key.replicate) {
                (1, 2) => run.failure = Some("the server was gone".into()),
                (2, 0) => run.checks.push(Check {
                    kind: CheckKind::CachedReads,
                    severity: Severity::Invalid,
                    workload: None,
                    message: "Read from the cache.".into(),
                    evidence: Default::default(),
                }),
                _ => {}
            }
        }
        let analysis = as_measured(&results);
        let found = analysis.effects.experiment().unwrap();
        assert_eq!((found.runs, found.replicates, found.balanced), (10, (2, 3), false));
        let left: Vec<_> = found.left_out.iter().map(|l| (l.reason.as_str(), l.runs)).collect();
        assert_eq!(left, [("failed", 1), ("a check found the run invalid", 1)]);
        assert!(found.sentences[1].starts_with("2 runs are left out"), "{:?}", found.sentences);
        // Cell means 15, 46.5, 23.5, 77: each cell weighs the same.
        let io_size = levels_of(&analysis).factors[0].levels[1].against_base.as_ref().unwrap();
        assert!((io_size.difference - 42.5).abs() < 1e-12);
        let effect = found.effects.iter().find(|e| e.name == "io_size").unwrap().effect.unwrap();
        assert!((effect - 42.5).abs() < 1e-9, "least squares of the full model gives the same: {effect}");
    }

    #[test]
    fn one_factor_is_compared_as_welch_does() {
        let mut results = with_values(3, 3, |t, r| JAIN[t as usize][r as usize]);
        for design in ["full", "one-at-a-time"] {
            results.study.design = design.into();
            let analysis = analyze(&results);
            let level = &levels_of(&analysis).factors[0].levels[2];
            let expected = welch(&JAIN[2], &JAIN[0], 0.95).unwrap();
            let found = level.against_base.as_ref().unwrap();
            assert!((found.difference - expected.difference).abs() < 1e-12);
            assert!((found.half_width.unwrap() - expected.half_width).abs() < 1e-9);
            assert_eq!(level.estimate.as_ref().unwrap().n, 3);
        }
    }

    /// Of one factor at a time as well, all comparisons are judged together: by themselves, one in eight studies of noise
    /// would name a factor.
    #[test]
    fn levels_of_noise_do_not_differ() {
        let mut draw = benchmaster_stats::random::Generator::new(4, "levels");
        let mut results = with_values(4, 5, |_, _| 0.0);
        results.study.design = "one-at-a-time".into();
        results.study.factors = (0..3).map(|_| results.study.factors[0].clone()).collect();
        results.study.factors.iter_mut().for_each(|factor| factor.levels.truncate(2));
        for treatment in &mut results.study.treatments {
            treatment.levels = (1..4).map(|factor| u32::from(treatment.index == factor)).collect();
        }
        let primary = results.study.primary_response.clone();
        let mut alarms = 0;
        for _ in 0..300 {
            for run in &mut results.runs {
                let own = run.responses.iter_mut().filter(|r| r.name == primary);
                own.for_each(|response| response.value = 100.0 + draw.normal());
            }
            let Effects::OneAtATime(levels) = analyze(&results).effects else { panic!("no levels") };
            let contrasts =
                levels.factors.iter().flat_map(|f| &f.levels).filter_map(|l| l.against_base.as_ref());
            let told_apart = contrasts.map(|contrast| contrast.told_apart == Some(true)).collect::<Vec<_>>();
            assert_eq!(told_apart.len(), 3);
            alarms += u32::from(told_apart.contains(&true));
        }
        // At most 15 are expected, with a standard deviation of 3.8; without the correction about 37.
        assert!(alarms <= 24, "{alarms} of 300");
    }

    #[test]
    fn a_level_without_a_run_has_no_estimate() {
        let mut results = with_values(3, 2, |t, r| JAIN[t as usize][r as usize]);
        results.runs.retain(|r| r.key.treatment != 1);
        let analysis = analyze(&results);
        let levels = &levels_of(&analysis).factors[0].levels;
        assert_eq!((levels[1].estimate.as_ref(), levels[1].against_base.as_ref()), (None, None));
        assert!(levels[2].against_base.is_some());
        // The model has the two levels that there are.
        assert_eq!(analysis.effects.experiment().unwrap().factors[0].levels.len(), 2);
    }

    #[test]
    fn another_response_is_analysed_when_asked_for() {
        let results = with_values(4, 2, |t, r| JAIN[t as usize][r as usize]);
        let names = results.runs[0].responses.iter().map(|r| r.name.clone());
        let other = names.into_iter().find(|name| *name != "write.throughput").unwrap();
        let analysis = analyze_with(&results, Some(&other), &Options::default()).unwrap();
        assert_eq!(analysis.effects_on, other);
        let unknown = analyze_with(&results, Some("nothing"), &Options::default()).unwrap_err();
        assert!(unknown.to_string().contains("write.throughput"), "{unknown}");
    }
}
