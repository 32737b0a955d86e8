//! What is known of a study, as the decisions need it.

use std::collections::BTreeSet;

use benchmaster_record::results::{
    DesignRecord, GoalRecord, Replication, StageKind, StudyRecord, StudyResults, Unit,
};
use benchmaster_stats::model::{Data, Factor, Fit, Term, all_terms, fit};
use benchmaster_stats::transform::WIDE_SPREAD;

use super::addition::AdaptiveError;
use crate::runs::counts;

/// On which scale effects add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// As measured: effects are differences.
    Identity,
    /// The natural logarithm: effects are ratios.
    Log,
}

impl Scale {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Log => "log",
        }
    }

    pub(super) fn back(self, value: f64) -> f64 {
        match self {
            Self::Identity => value,
            Self::Log => value.exp(),
        }
    }
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) response: String,
    pub(super) unit: Unit,
    pub(super) names: Vec<String>,
    pub(super) level_names: Vec<Vec<String>>,
    pub(super) levels: Vec<u32>,
    /// Of each run that counts, confirmation runs left out: its levels, stage and response as measured.
    pub(super) rows: Vec<Vec<u32>>,
    pub(super) stages: Vec<u32>,
    pub(super) values: Vec<f64>,
    pub(super) scale: Scale,
    /// Treatments of the design and of what was added to it, each once.
    pub(super) distinct: Vec<Vec<u32>>,
    /// The stage of each of them.
    pub(super) first_stage: Vec<u32>,
    /// What is known of the design, which combinations may be run among it.
    pub(super) design: DesignRecord,
    /// How often a treatment of the first design was run at least.
    pub(super) replicates: u32,
    pub(super) confidence: f64,
    pub(super) screen: bool,
    pub(super) interest: Vec<Term>,
    pub(super) precision: Option<f64>,
    pub(super) goal: Option<GoalRecord>,
    /// Stages that added treatments, and stages that only ran known ones again.
    pub(super) separating_rounds: usize,
    pub(super) replicating_rounds: usize,
}

impl Facts {
    pub(super) fn of(results: &StudyResults, response: &str) -> Result<Self, AdaptiveError> {
        let study = &results.study;
        if study.factors.is_empty() {
            return Err(AdaptiveError::NoFactors);
        }
        let confirms = |stage: u32| is_confirmation(study, stage);
        let (mut rows, mut stages, mut values, mut unit) = (vec![], vec![], vec![], None);
        for run in results.runs.iter().filter(|run| counts(run) && !confirms(run.stage)) {
            let Some(treatment) = study.treatments.iter().find(|t| t.index == run.key.treatment) else {
                continue;
            };
            let Some(found) = run.responses.iter().find(|r| r.name == response) else { continue };
            if treatment.centre {
                continue;
            }
            unit = unit.or(Some(found.unit));
            rows.push(treatment.levels.clone());
            stages.push(run.stage);
            values.push(found.value);
        }
        let Some(unit) = unit else { return Err(AdaptiveError::NoRuns { response: response.into() }) };
        let (low, high) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v: &f64| (l.min(v), h.max(v)));
        let mut seen = BTreeSet::new();
        let (mut distinct, mut first_stage) = (Vec::new(), Vec::new());
        for treatment in study.treatments.iter().filter(|t| !t.centre && !confirms(t.stage)) {
            if seen.insert(treatment.levels.clone()) {
                distinct.push(treatment.levels.clone());
                first_stage.push(treatment.stage);
            }
        }
        let details = &study.design_details;
        let interest: Vec<Term> = if details.interest.is_empty() {
            all_terms(study.factors.len(), 1).into_iter().filter(|t| !t.is_empty()).collect()
        } else {
            details.interest.iter().map(|t| t.iter().map(|&f| f as usize).collect()).collect()
        };
        Ok(Self {
            response: response.into(),
            unit,
            names: study.factors.iter().map(|f| f.name.clone()).collect(),
            level_names: study.factors.iter().map(|f| f.levels.clone()).collect(),
            levels: study.design_levels(),
            rows,
            stages,
            values,
            scale: if low > 0.0 && high / low > WIDE_SPREAD { Scale::Log } else { Scale::Identity },
            distinct,
            first_stage,
            design: details.clone(),
            replicates: match study.replicates {
                Replication::Fixed(n) => n,
                Replication::Sequential { min, .. } => min,
            },
            confidence: study.confidence,
            screen: details.screen,
            interest,
            precision: details.precision,
            goal: details.goal.clone(),
            separating_rounds: rounds(study, true),
            replicating_rounds: rounds(study, false),
        })
    }

    /// The same of the runs of the first design alone.
    pub(super) fn first_design(&self) -> Self {
        let mut first = self.clone();
        let kept = |index: &usize| self.stages[*index] == 0;
        let indices: Vec<_> = (0..self.rows.len()).filter(kept).collect();
        first.rows = indices.iter().map(|&i| self.rows[i].clone()).collect();
        first.values = indices.iter().map(|&i| self.values[i]).collect();
        first.stages = vec![0; indices.len()];
        first
    }

    /// Combinations of all levels.
    pub(super) fn combinations(&self) -> u64 {
        self.levels.iter().fold(1, |product, &n| product.saturating_mul(n.into()))
    }

    /// Runs of the full design.
    pub(super) fn full_runs(&self) -> u64 {
        let allowed = match benchmaster_design::full(&self.levels) {
            Ok(rows) if !self.design.exclude.is_empty() => {
                rows.iter().filter(|row| self.design.allows(row)).count() as u64
            }
            _ => self.combinations(),
        };
        allowed.saturating_mul(self.replicates.into())
    }

    /// The terms that are looked at: all up to two factors, and those that were asked for.
    pub(super) fn terms(&self) -> Vec<Term> {
        let mut terms: Vec<_> =
            all_terms(self.levels.len(), 2).into_iter().filter(|t| !t.is_empty()).collect();
        for term in &self.interest {
            if !terms.contains(term) {
                terms.push(term.clone());
            }
        }
        terms
    }

    /// The model of these terms, on the scale of the analysis; stages are blocks.
    pub(super) fn fit(&self, terms: &[Term]) -> Result<Fit, AdaptiveError> {
        Ok(fit(&self.data(), terms, self.confidence)?)
    }

    pub(super) fn data(&self) -> Data {
        let y = match self.scale {
            Scale::Identity => self.values.clone(),
            Scale::Log => self.values.iter().map(|v| v.ln()).collect(),
        };
        let several = self.stages.iter().any(|s| Some(s) != self.stages.first());
        Data {
            factors: self.levels.iter().map(|&n| Factor::named(n as usize)).collect(),
            rows: self.rows.clone(),
            y,
            block: several.then(|| self.stages.clone()),
            whole_plot: None,
        }
    }

    /// `sync × delay`.
    pub(super) fn name(&self, term: &[usize]) -> String {
        let names: Vec<_> = term.iter().filter_map(|&f| self.names.get(f)).map(String::as_str).collect();
        names.join(" × ")
    }

    /// `version=4.1 storage=memory`.
    pub(super) fn label(&self, row: &[u32]) -> String {
        let level = |(factor, &level): (usize, &u32)| {
            let name = self.level_names.get(factor).and_then(|names| names.get(level as usize));
            format!(
                "{}={}",
                self.names.get(factor).map_or("", String::as_str),
                name.map_or("?", String::as_str)
            )
        };
        row.iter().enumerate().map(level).collect::<Vec<_>>().join(" ")
    }
}

/// Whether a stage only confirms: its runs are kept apart, because they were chosen by the results of the others.
pub(super) fn is_confirmation(study: &StudyRecord, stage: u32) -> bool {
    study.stages.iter().any(|s| s.number == stage && s.kind == StageKind::Confirmation)
}

/// Stages, confirmations left out, that added treatments, or that added none.
fn rounds(study: &StudyRecord, added: bool) -> usize {
    let adds = |number: u32| study.treatments.iter().any(|t| t.stage == number);
    let stages = study.stages.iter().filter(|s| s.kind != StageKind::Confirmation);
    stages.filter(|s| adds(s.number) == added).count()
}
