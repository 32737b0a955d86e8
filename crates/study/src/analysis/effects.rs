//! How factors change the primary response.
//!
//! Two-level balanced full designs are analysed as 2^k·r factorials. In all others each level is compared with the
//! factor's base level: averaged over the cells of all other factors (full), or with everything else at its base
//! (one at a time).

use benchmaster_stats::{factorial, mean, standard_deviation, t_quantile};
use benchmaster_store::record::{FactorRecord, StudyRecord, Unit};
use serde::Serialize;

use super::{Estimate, TreatmentSummary};

/// How the factors change the primary response.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Effects {
    /// Nothing to say.
    None {
        /// Why.
        reason: String,
    },
    /// All factors have two levels and all cells equally many runs.
    Factorial(FactorialSummary),
    /// Each level against its factor's base level.
    Levels {
        /// What is compared with what.
        comparison: LevelComparison,
        /// Why this is not a factorial analysis, and what to mind, in words.
        note: String,
        /// Per factor.
        factors: Vec<FactorSummary>,
    },
}

/// A 2^k·r factorial analysis. Effects are half effects q: going from the low to the high level changes the response
/// by 2q.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorialSummary {
    /// Unit of the response.
    pub unit: Unit,
    /// Runs per cell.
    pub replicates: usize,
    /// The mean over all cells, q0.
    pub mean: f64,
    /// Half width of its interval; `None` when unreplicated.
    pub mean_half_width: Option<f64>,
    /// Factors with their low (base) and high level.
    pub factors: Vec<(String, [String; 2])>,
    /// Main effects and interactions, those that explain most first.
    pub terms: Vec<TermSummary>,
    /// Share of the variation that no factor explains, in percent; `None` when unreplicated or nothing varies.
    pub error_percent: Option<f64>,
    /// Why there are no intervals.
    pub no_interval: Option<String>,
}

/// A main effect or an interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermSummary {
    /// Its factors: `sync`, `io_size × sync`.
    pub name: String,
    /// Its half effect q.
    pub half_effect: f64,
    /// Half width of the interval of q; `None` when unreplicated.
    pub half_width: Option<f64>,
    /// Share of the variation it explains, in percent; `None` when nothing varies.
    pub variation_percent: Option<f64>,
    /// Whether the interval excludes 0; when not, the effect cannot be told apart from noise. `None` = no interval.
    pub told_apart: Option<bool>,
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
    /// The factor.
    pub factor: String,
    /// Its levels; the first is the base.
    pub levels: Vec<LevelSummary>,
}

/// One level of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelSummary {
    /// Its name.
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
    /// Whether the interval excludes 0; when not, the levels cannot be told apart from noise. `None` = no interval.
    pub told_apart: Option<bool>,
}

/// The runs of a treatment that count: values of the primary response.
struct Cell<'a> {
    levels: &'a [u32],
    values: Vec<f64>,
}

pub(super) fn effects(study: &StudyRecord, treatments: &[TreatmentSummary]) -> Effects {
    if study.factors.is_empty() {
        return none("the study has no factors");
    }
    let mut unit = None;
    let cells: Vec<_> = study
        .treatments
        .iter()
        .zip(treatments)
        .map(|(record, summary)| {
            let response = summary.response(&study.primary_response);
            unit = unit.or(response.map(|r| r.unit));
            let values = response.iter().flat_map(|r| &r.values).filter(|v| !v.excluded).map(|v| v.value);
            Cell { levels: &record.levels, values: values.collect() }
        })
        .collect();
    let Some(unit) = unit else {
        return none(&format!("no run has the response {}", study.primary_response));
    };
    if study.design != "full" {
        return Effects::Levels {
            comparison: LevelComparison::OneAtATime,
            note:
                "Each level is compared with the base treatment, where all factors are at their base level; \
                   interactions cannot be seen in such a design."
                    .into(),
            factors: compare(
                study,
                |factor, level| {
                    let others_at_base = |c: &&Cell<'_>| {
                        c.levels.iter().enumerate().all(|(i, &l)| l == if i == factor { level } else { 0 })
                    };
                    cells.iter().filter(others_at_base).collect()
                },
                study.confidence,
            ),
        };
    }
    let (fewest, most) =
        cells.iter().fold((usize::MAX, 0), |(a, b), c| (a.min(c.values.len()), b.max(c.values.len())));
    let two_levels = study.factors.iter().all(|f| f.levels.len() == 2);
    if two_levels && fewest == most && fewest > 0 {
        return two_level(study, &cells, unit, fewest);
    }
    let reason = match two_levels {
        false => "A factor has more than two levels".to_owned(),
        true => format!("Treatments have {fewest} to {most} runs that count"),
    };
    Effects::Levels {
        comparison: LevelComparison::OverAllCells,
        note: format!(
            "{reason}, so each level is compared with the factor's base level, averaged over all combinations of \
             the other factors with equal weight; interactions are not shown."
        ),
        factors: compare(
            study,
            |factor, level| cells.iter().filter(|c| c.levels.get(factor) == Some(&level)).collect(),
            study.confidence,
        ),
    }
}

fn none(reason: &str) -> Effects {
    Effects::None { reason: reason.into() }
}

/// Compares every level of every factor with the base level; `cells_at` gives the cells of a level.
fn compare<'a>(
    study: &StudyRecord,
    cells_at: impl Fn(usize, u32) -> Vec<&'a Cell<'a>>,
    confidence: f64,
) -> Vec<FactorSummary> {
    let of_factor = |(index, factor): (usize, &FactorRecord)| {
        let base = cells_at(index, 0);
        let levels = (0u32..).zip(&factor.levels).map(|(number, level)| {
            let cells = cells_at(index, number);
            LevelSummary {
                level: level.clone(),
                estimate: average(&cells, confidence),
                against_base: if number == 0 { None } else { contrast(&cells, &base, confidence) },
            }
        });
        FactorSummary { factor: factor.name.clone(), levels: levels.collect() }
    };
    study.factors.iter().enumerate().map(of_factor).collect()
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
        told_apart: half_width.map(|h| sum.value.abs() > h),
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

fn two_level(study: &StudyRecord, cells: &[Cell<'_>], unit: Unit, replicates: usize) -> Effects {
    // Standard order: bit j of a cell's place is the level of factor j.
    let mut ordered: Vec<_> = cells.iter().collect();
    ordered.sort_by_key(|c| c.levels.iter().rev().fold(0u64, |place, &level| place << 1 | u64::from(level)));
    let values: Vec<_> = ordered.iter().map(|c| c.values.clone()).collect();
    let analysed = match factorial::effects(&values, study.confidence) {
        Ok(analysed) => analysed,
        Err(problem) => return none(&problem.to_string()),
    };
    let name = |term: u32| {
        let factors = study.factors.iter().enumerate().filter(|(i, _)| term >> i & 1 == 1);
        factors.map(|(_, f)| f.name.as_str()).collect::<Vec<_>>().join(" × ")
    };
    let mean = analysed.terms.first();
    let mut terms: Vec<_> = analysed
        .terms
        .iter()
        .skip(1)
        .map(|effect| TermSummary {
            name: name(effect.term),
            half_effect: effect.q,
            half_width: effect.half_width,
            variation_percent: effect.percent,
            told_apart: effect.significant,
        })
        .collect();
    terms.sort_by(|a, b| b.half_effect.abs().total_cmp(&a.half_effect.abs()));
    Effects::Factorial(FactorialSummary {
        unit,
        replicates,
        mean: mean.map_or(f64::NAN, |m| m.q),
        mean_half_width: mean.and_then(|m| m.half_width),
        factors: study
            .factors
            .iter()
            .map(|f| (f.name.clone(), [f.levels[0].clone(), f.levels[1].clone()]))
            .collect(),
        terms,
        error_percent: analysed.percent_error.filter(|_| replicates > 1),
        no_interval: (replicates == 1)
            .then(|| "one run per treatment tells nothing about the spread between runs".into()),
    })
}

#[cfg(test)]
mod tests {
    use benchmaster_stats::interval::welch;
    use benchmaster_store::record::StudyResults;
    use benchmaster_store::synthetic::study_results;

    use super::super::analyze;
    use super::*;

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

    #[test]
    fn two_levels_give_the_factorial_of_the_textbook() {
        let results = with_values(4, 3, |t, r| JAIN[t as usize][r as usize]);
        let Effects::Factorial(found) = analyze(&results).effects else { panic!("not a factorial") };
        assert_eq!(found.factors[0], ("io_size".into(), ["4KiB".into(), "64KiB".into()]));
        let terms: Vec<_> = found.terms.iter().map(|t| (t.name.as_str(), t.half_effect)).collect();
        assert_eq!(terms, [("io_size", 21.5), ("sync", 9.5), ("io_size × sync", 5.0)]);
        assert_eq!((found.mean, found.replicates), (41.0, 3));
        assert!(found.terms.iter().all(|t| t.told_apart == Some(true) && t.half_width.is_some()));
        let shares: f64 = found.terms.iter().filter_map(|t| t.variation_percent).sum();
        assert!((shares + found.error_percent.unwrap() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn an_unreplicated_factorial_has_no_intervals_and_says_why() {
        let results = with_values(4, 1, |t, _| JAIN[t as usize][0]);
        let Effects::Factorial(found) = analyze(&results).effects else { panic!("not a factorial") };
        assert!(found.no_interval.is_some() && found.error_percent.is_none());
        assert!(found.terms.iter().all(|t| t.half_width.is_none() && t.told_apart.is_none()));
    }

    #[test]
    fn unequal_cells_are_compared_level_by_level() {
        let mut results = with_values(4, 3, |t, r| JAIN[t as usize][r as usize]);
        results.runs.retain(|r| (r.key.treatment, r.key.replicate) != (1, 2));
        let Effects::Levels { comparison, note, factors } = analyze(&results).effects else {
            panic!("not by level")
        };
        assert_eq!(comparison, LevelComparison::OverAllCells);
        assert!(note.starts_with("Treatments have 2 to 3 runs that count"), "{note}");
        let io_size = factors[0].levels[1].against_base.as_ref().unwrap();
        // Cell means 15, 46.5, 24, 77: each cell weighs the same.
        assert!((io_size.difference - 42.25).abs() < 1e-12);
        assert_eq!(io_size.told_apart, Some(true));
    }

    #[test]
    fn one_factor_is_compared_as_welch_does() {
        let mut results = with_values(3, 3, |t, r| JAIN[t as usize][r as usize]);
        for design in ["full", "one-at-a-time"] {
            results.study.design = design.into();
            let Effects::Levels { factors, .. } = analyze(&results).effects else { panic!("not by level") };
            let level = &factors[0].levels[2];
            let expected = welch(&JAIN[2], &JAIN[0], 0.95).unwrap();
            let found = level.against_base.as_ref().unwrap();
            assert!((found.difference - expected.difference).abs() < 1e-12);
            assert!((found.half_width.unwrap() - expected.half_width).abs() < 1e-9);
            assert_eq!(level.estimate.as_ref().unwrap().n, 3);
        }
    }

    #[test]
    fn a_level_without_a_run_has_no_estimate() {
        let mut results = with_values(3, 2, |t, r| JAIN[t as usize][r as usize]);
        results.runs.retain(|r| r.key.treatment != 1);
        let Effects::Levels { factors, .. } = analyze(&results).effects else { panic!("not by level") };
        assert_eq!(factors[0].levels[1].estimate, None);
        assert_eq!(factors[0].levels[1].against_base, None);
        assert!(factors[0].levels[2].against_base.is_some());
    }
}
