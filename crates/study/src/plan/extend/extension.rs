//! What is added to a study that has already run: a foldover, half of one, or the treatments that tell some effects apart.

use std::collections::BTreeSet;

use benchmaster_design::DesignError;
use benchmaster_design::augment::{AugmentError, Augmentation, augment};
use benchmaster_design::fold::{Addition, Fold, best_fold, semifold};
use benchmaster_design::structure::{TermStructure, structure};
use benchmaster_design::term::{self, Term};
use benchmaster_record::results::{Replication, StageKind, StageRecord, TreatmentRecord};
use jiff::Timestamp;

use crate::plan::study::Plan;
use crate::plan::treatments::number_whole_plots;

/// Effects of more factors than two are taken for negligible.
const MAX_ORDER: u32 = 2;
/// A correlation above which two effects are the same.
const COMPLETE: f64 = 0.999;

/// What is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extension {
    /// All runs again with the levels of these factors exchanged; of all factors when none is named.
    Fold(Vec<u32>),
    /// Half of them, with the levels of this factor exchanged.
    Semifold(u32),
    /// The fewest treatments found with which these effects can be separated from all others of up to two factors.
    Resolve(Vec<Term>),
}

/// A stage that could be added to a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub stage: StageRecord,
    /// The treatments that the study does not have yet, in the order of their numbers.
    pub new: Vec<TreatmentRecord>,
    /// How many treatments would be run that `exclude` forbids; they are left out.
    pub left_out: u32,
}

/// Why a study cannot be extended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExtendError {
    /// Levels can be exchanged only where there are two.
    #[error(
        "the factor `{factor}` has {levels} levels, and only two can be exchanged; `--resolve EFFECT` finds treatments \
         for any numbers of levels"
    )]
    Levels {
        factor: String,
        /// How many levels it has.
        levels: u32,
    },
    /// A factor that the study does not have.
    #[error("the study has no factor `{name}`; its factors are {known}")]
    NoFactor {
        name: String,
        /// The factors of the study.
        known: String,
    },
    /// An effect that the study does not have.
    #[error("`--resolve`: {problem}")]
    NoEffect { problem: String },
    /// All is known already.
    #[error(
        "{effects} can already be separated from all other effects of one and two factors: nothing has to be added"
    )]
    NothingToResolve { effects: String },
    /// The treatments would be those that were run.
    #[error(
        "exchanging the levels of {factors} gives the treatments that were run before: more replicates, but nothing that \
         could not be separated; name other factors"
    )]
    SameTreatments { factors: String },
    /// `exclude` forbids all of them.
    #[error("all treatments that would be added are excluded by the study file")]
    AllExcluded,
    /// No added runs help.
    #[error(transparent)]
    Augment(#[from] AugmentError),
    /// The design cannot be looked at.
    #[error(transparent)]
    Design(#[from] DesignError),
}

/// Runs that are added, and why.
struct Added {
    kind: StageKind,
    reason: String,
    rows: Vec<Vec<u32>>,
}

impl Extension {
    /// Factors by their names or letters, joined by commas; `all` for all of them.
    ///
    /// # Errors
    /// A factor that the study does not have.
    pub fn fold(text: &str, plan: &Plan) -> Result<Self, ExtendError> {
        if text == "all" {
            return Ok(Self::Fold(Vec::new()));
        }
        let mut factors =
            text.split(',').map(|name| factor(name.trim(), plan)).collect::<Result<Vec<_>, _>>()?;
        factors.sort_unstable();
        factors.dedup();
        Ok(Self::Fold(factors))
    }

    /// A factor by its name or letter.
    ///
    /// # Errors
    /// A factor that the study does not have.
    pub fn semifold(text: &str, plan: &Plan) -> Result<Self, ExtendError> {
        Ok(Self::Semifold(factor(text.trim(), plan)?))
    }

    /// Effects as `sync`, `delay*sync` or `AB`, joined by commas.
    ///
    /// # Errors
    /// An effect that the study does not have.
    pub fn resolve(text: &str, plan: &Plan) -> Result<Self, ExtendError> {
        let names = names(plan);
        let effect = |text: &str| {
            term::parse(text.trim(), &names)
                .map_err(|error| ExtendError::NoEffect { problem: error.to_string() })
        };
        Ok(Self::Resolve(text.split(',').map(effect).collect::<Result<_, _>>()?))
    }
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.study.factors.iter().map(|factor| factor.name.as_str()).collect()
}

fn factor(name: &str, plan: &Plan) -> Result<u32, ExtendError> {
    let names = names(plan);
    match term::parse(name, &names) {
        Ok(term) if term::order(term) == 1 => Ok(term.trailing_zeros()),
        _ => Err(ExtendError::NoFactor { name: name.to_owned(), known: names.join(", ") }),
    }
}

impl Plan {
    /// What would be added to the study, after the stages that it has.
    ///
    /// # Errors
    /// When the extension fits neither the factors nor what has been run.
    pub fn extend(&self, extension: &Extension, made: Timestamp) -> Result<Proposal, ExtendError> {
        let Added { kind, reason, rows } = match extension {
            Extension::Fold(factors) => self.fold(factors)?,
            Extension::Semifold(factor) => self.semifold(*factor)?,
            Extension::Resolve(effects) => self.resolve(effects)?,
        };
        let allowed: Vec<_> =
            rows.iter().filter(|row| self.study.design_details.allows(row)).cloned().collect();
        if allowed.is_empty() {
            return Err(ExtendError::AllExcluded);
        }
        let left_out = (rows.len() - allowed.len()) as u32;
        let proposal = self.stage(kind, reason, &allowed, self.study.replicates, made);
        Ok(Proposal { left_out, ..proposal })
    }

    /// A stage that runs the treatments with these levels, those of the study again and others for the first time.
    /// Each is run once however often its levels are given.
    pub fn stage(
        &self,
        kind: StageKind,
        reason: String,
        rows: &[Vec<u32>],
        replicates: Replication,
        made: Timestamp,
    ) -> Proposal {
        let number = self.study.stages.len() as u32 + 1;
        let mut all = self.study.treatments.clone();
        let known = all.len();
        let mut treatments = Vec::new();
        for row in rows {
            let index = match all.iter().find(|treatment| treatment.levels == *row) {
                Some(treatment) => treatment.index,
                None => {
                    let index = all.len() as u32;
                    all.push(TreatmentRecord {
                        index,
                        levels: row.clone(),
                        label: self.file.label(row),
                        block: None,
                        whole_plot: None,
                        stage: number,
                        centre: false,
                    });
                    index
                }
            };
            treatments.push(index);
        }
        treatments.sort_unstable();
        treatments.dedup();
        // Treatments that are there keep their numbers, which go by first appearance.
        number_whole_plots(&mut all, &self.study.design_details.hard_to_change);
        let stage = StageRecord { number, kind, reason, treatments, replicates, made };
        Proposal { stage, new: all.split_off(known), left_out: 0 }
    }

    /// The levels of the design's own treatments.
    fn first_rows(&self) -> Vec<Vec<u32>> {
        let own = self.study.treatments.iter().filter(|treatment| treatment.stage == 0 && !treatment.centre);
        own.map(|treatment| treatment.levels.clone()).collect()
    }

    /// The levels of all treatments without the centre, once for each stage that runs them, and the numbers of the stages.
    pub(super) fn run_rows(&self) -> (Vec<Vec<u32>>, Vec<u32>) {
        let first = self.first_rows().into_iter().map(|row| (row, 0));
        let added = self.study.stages.iter().flat_map(|stage| {
            let treatments =
                stage.treatments.iter().filter_map(|&index| self.study.treatments.get(index as usize));
            treatments
                .filter(|treatment| !treatment.centre)
                .map(|treatment| (treatment.levels.clone(), stage.number))
        });
        first.chain(added).unzip()
    }

    fn factor_names(&self, factors: &[u32]) -> String {
        let name = |factor: &u32| {
            self.study.factors.get(*factor as usize).map(|factor| format!("`{}`", factor.name))
        };
        factors.iter().filter_map(name).collect::<Vec<_>>().join(", ")
    }

    fn effect_names(&self, effects: &[Term]) -> String {
        let names = names(self);
        let one = |effect: &Term| {
            let factors = term::factors(*effect).filter_map(|factor| names.get(factor as usize).copied());
            format!("`{}`", factors.collect::<Vec<_>>().join("*"))
        };
        effects.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn two_levels(&self, factors: &[u32]) -> Result<(), ExtendError> {
        let levels = self.study.design_levels();
        let mut known = (0u32..).zip(&self.study.factors).zip(levels);
        match known.find(|((index, _), levels)| factors.contains(index) && *levels != 2) {
            None => Ok(()),
            Some(((_, factor), levels)) => Err(ExtendError::Levels { factor: factor.name.clone(), levels }),
        }
    }

    fn fold(&self, factors: &[u32]) -> Result<Added, ExtendError> {
        let all: Vec<u32> = (0..self.study.factors.len() as u32).collect();
        let (fold, factors) = match factors {
            [] => (Fold::All, &all[..]),
            some => (
                Fold::Factors(
                    some.iter().fold(0, |mask, &factor| mask | 1u64.checked_shl(factor).unwrap_or(0)),
                ),
                some,
            ),
        };
        self.two_levels(factors)?;
        let added = self.added(Addition::Foldover(fold));
        let rows = self.first_rows();
        if added.rows.iter().all(|row| rows.contains(row)) {
            return Err(ExtendError::SameTreatments { factors: self.factor_names(factors) });
        }
        Ok(added)
    }

    /// Of all halves the one that, with the runs before, tells most effects apart.
    fn semifold(&self, factor: u32) -> Result<Added, ExtendError> {
        self.two_levels(&[factor])?;
        let rows = self.first_rows();
        let levels = self.study.design_levels();
        let mut best: Option<(usize, u32)> = None;
        for subset in (0..levels.len() as u32).filter(|&subset| levels[subset as usize] == 2) {
            let half = semifold(&rows, factor, (subset, 1));
            if half.iter().all(|row| rows.contains(row)) {
                continue;
            }
            // The stage is a factor more, and its main effect is the difference between then and now.
            let staged = |rows: &[Vec<u32>], stage: u32| -> Vec<Vec<u32>> {
                rows.iter().map(|row| row.iter().copied().chain([stage]).collect()).collect()
            };
            let together = [staged(&rows, 0), staged(&half, 1)].concat();
            let with_stage: Vec<u32> = levels.iter().copied().chain([2]).collect();
            let known = structure(&together, &with_stage, MAX_ORDER)?;
            let count = known.terms.iter().filter(|term| term.estimable).count();
            if best.as_ref().is_none_or(|(most, ..)| count > *most) {
                best = Some((count, subset));
            }
        }
        let Some((_, subset)) = best else {
            return Err(ExtendError::SameTreatments { factors: self.factor_names(&[factor]) });
        };
        Ok(self.added(Addition::Semifold { fold: factor, subset: (subset, 1) }))
    }

    /// The runs of a fold, and what they are.
    fn added(&self, addition: Addition) -> Added {
        let rows = addition.rows(&self.first_rows());
        let (kind, reason) = match addition {
            Addition::Semifold { fold, subset: (subset, level) } => {
                let level =
                    self.study.factors.get(subset as usize).and_then(|f| f.levels.get(level as usize));
                let reason = format!(
                    "the runs with {} = {}, with the levels of {} exchanged",
                    self.factor_names(&[subset]),
                    level.map_or("?", String::as_str),
                    self.factor_names(&[fold])
                );
                (StageKind::Semifold, reason)
            }
            Addition::Foldover(fold) => {
                let mask = fold.mask(self.study.factors.len() as u32);
                let names = match fold {
                    Fold::All => "all factors".to_owned(),
                    _ => self.factor_names(&term::factors(mask).collect::<Vec<_>>()),
                };
                (StageKind::Foldover, format!("all runs again with the levels of {names} exchanged"))
            }
        };
        Added { kind, reason, rows }
    }

    /// The smaller of a foldover and single treatments.
    fn resolve(&self, effects: &[Term]) -> Result<Added, ExtendError> {
        let why = format!("to tell {} from other effects", self.effect_names(effects));
        let (rows, block_of) = self.run_rows();
        let levels = self.study.design_levels();
        let terms = self.terms_around(effects, &rows, &levels)?;
        if terms.is_empty() {
            return Err(ExtendError::NothingToResolve { effects: self.effect_names(effects) });
        }
        // Of stages that were added no fraction is left.
        let fraction = self.fraction().filter(|_| self.study.stages.is_empty());
        let folded = fraction.and_then(|fraction| best_fold(&fraction, effects, MAX_ORDER));
        let most = folded.as_ref().map_or(rows.len().max(terms.len() + 1), |fold| fold.runs as usize);
        let single = augment(&Augmentation {
            levels: &levels,
            rows: &rows,
            block_of: &block_of,
            terms: &terms,
            allowed: &|row| self.study.design_details.allows(row),
            most,
        });
        let whole_fold = |addition| {
            let Added { kind, reason, rows } = self.added(addition);
            Ok(Added { kind, reason: format!("{reason}, {why}"), rows })
        };
        match (single, folded) {
            (Ok(single), Some(fold)) if single.len() as u64 >= fold.runs => whole_fold(fold.addition),
            (Err(_), Some(fold)) => whole_fold(fold.addition),
            (Ok(single), _) if single.is_empty() => {
                Err(ExtendError::NothingToResolve { effects: self.effect_names(effects) })
            }
            (Ok(rows), _) => {
                let reason = format!("the treatments with which the model can be solved, {why}");
                Ok(Added { kind: StageKind::Augment, reason, rows })
            }
            (Err(error), None) => Err(error.into()),
        }
    }

    /// The effects that must be estimated together: those to be resolved, all they are mixed up with, and of every other
    /// group of effects that is mixed up the first. None when the asked effects are mixed up with nothing.
    fn terms_around(
        &self,
        effects: &[Term],
        rows: &[Vec<u32>],
        levels: &[u32],
    ) -> Result<Vec<Vec<u32>>, ExtendError> {
        let order = effects.iter().map(|&effect| term::order(effect)).max().unwrap_or(1).max(MAX_ORDER);
        let asked: Vec<Vec<u32>> = effects.iter().map(|&effect| term::factors(effect).collect()).collect();
        let at_hand = |factors: &Vec<u32>| factors.len() as u32 <= MAX_ORDER || asked.contains(factors);
        let mut known = structure(rows, levels, order)?.terms;
        known.retain(|term| at_hand(&term.factors));
        known.iter_mut().for_each(|term| term.aliases.retain(|(other, _)| at_hand(other)));
        let mixed_up = |term: &&TermStructure| asked.contains(&term.factors) && !term.aliases.is_empty();
        if !known.iter().any(|term| mixed_up(&term)) {
            return Ok(Vec::new());
        }
        let of_asked = known.iter().filter(|term| asked.contains(&term.factors));
        let mixed = of_asked.flat_map(|term| term.aliases.iter().map(|(other, _)| other.clone()));
        let main = known.iter().map(|term| &term.factors).filter(|factors| factors.len() == 1).cloned();
        let mut taken: BTreeSet<Vec<u32>> = asked.iter().cloned().chain(mixed).chain(main).collect();
        for term in &known {
            // Where effects are mixed up in part, all would have to be taken.
            let complete = term.aliases.iter().all(|(_, correlation)| correlation.abs() > COMPLETE);
            if complete && !term.aliases.iter().any(|(other, _)| taken.contains(other)) {
                taken.insert(term.factors.clone());
            }
        }
        // The mean is estimated in any case.
        Ok(taken.into_iter().filter(|factors| !factors.is_empty()).collect())
    }
}
