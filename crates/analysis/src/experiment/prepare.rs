//! A table as the statistics want it: only factors that vary, only levels that occur, blocks and plots as numbers.

use std::collections::HashMap;

use benchmaster_design::term;
use benchmaster_stats::model::{CENTRE, Contrast, Data, Factor, Term};

use super::table::{ExperimentError, Options, Polynomial, Table, TableFactor};

/// The runs of a table, ready for a model.
pub(super) struct Prepared<'a> {
    pub(super) table: &'a Table,
    /// Factors that vary, by their numbers in the table. The model's factors are counted among these.
    pub(super) active: Vec<usize>,
    /// Per factor that varies, its levels that occur, by their numbers in the table.
    pub(super) present: Vec<Vec<u32>>,
    /// The runs, as measured, centre points with them.
    pub(super) data: Data,
    /// Their rows in the table.
    pub(super) source: Vec<usize>,
    /// Centre points among them.
    pub(super) centre_points: usize,
    /// Different combinations of levels with their runs, in the order in which they first occur.
    pub(super) treatments: Vec<Treatment>,
}

/// A combination of levels that was run.
pub(super) struct Treatment {
    /// Levels as the model counts them.
    pub(super) levels: Vec<u32>,
    pub(super) runs: usize,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(table: &'a Table, options: &Options) -> Result<Self, ExperimentError> {
        let factors = table.factors.len();
        if factors > term::MAX_FACTORS as usize {
            return Err(ExperimentError::TooManyFactors(factors));
        }
        if let Some(row) = table.rows.iter().position(|row| row.levels.len() != factors) {
            let found = table.rows[row].levels.len();
            return Err(ExperimentError::Shape { row, found, expected: factors });
        }
        let corners: Vec<_> = table.rows.iter().enumerate().filter(|(_, row)| !row.centre).collect();
        if corners.is_empty() {
            return Err(ExperimentError::NoRuns { response: table.response.clone() });
        }
        let mut seen: Vec<Vec<bool>> = table.factors.iter().map(|f| vec![false; f.levels.len()]).collect();
        for (row, run) in &corners {
            for (factor, &level) in run.levels.iter().enumerate() {
                match seen[factor].get_mut(level as usize) {
                    Some(seen) => *seen = true,
                    None => {
                        let TableFactor { name, levels, .. } = &table.factors[factor];
                        let (factor, levels) = (name.clone(), levels.clone());
                        let level = format!("number {level} (run {})", row + 1);
                        return Err(ExperimentError::UnknownLevel { factor, level, levels });
                    }
                }
            }
        }
        let mut prepared = Self {
            table,
            active: Vec::new(),
            present: Vec::new(),
            data: Data {
                factors: Vec::new(),
                rows: Vec::new(),
                y: Vec::new(),
                block: None,
                whole_plot: None,
            },
            source: Vec::new(),
            centre_points: 0,
            treatments: Vec::new(),
        };
        let mut number_of = Vec::new();
        for (factor, seen) in seen.iter().enumerate() {
            let present: Vec<u32> = (0..seen.len() as u32).filter(|&l| seen[l as usize]).collect();
            if present.len() > 1 {
                let mut numbers = vec![0; seen.len()];
                (0u32..).zip(&present).for_each(|(number, &level)| numbers[level as usize] = number);
                number_of.push(numbers);
                let values =
                    table.factors[factor].values.as_ref().filter(|values| values.len() == seen.len());
                let values = values.filter(|_| options.polynomial == Polynomial::Numeric);
                prepared.data.factors.push(Factor {
                    levels: present.len(),
                    values: values.map(|values| present.iter().map(|&l| values[l as usize]).collect()),
                });
                prepared.active.push(factor);
                prepared.present.push(present);
            }
        }
        if prepared.active.is_empty() && factors > 0 {
            let factors = table.factors.iter().map(|f| f.name.clone()).collect();
            return Err(ExperimentError::NothingVaried { factors });
        }
        let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
        for (number, run) in table.rows.iter().enumerate() {
            let own = prepared.active.iter().zip(&number_of);
            let level =
                |level: u32, numbers: &Vec<u32>| numbers.get(level as usize).copied().unwrap_or(CENTRE);
            let levels: Vec<u32> = own.map(|(&factor, numbers)| level(run.levels[factor], numbers)).collect();
            // Halfway only in factors that do not vary any more, it would pass for a corner.
            if run.centre && !levels.contains(&CENTRE) {
                continue;
            }
            prepared.source.push(number);
            prepared.data.rows.push(levels.clone());
            prepared.data.y.push(run.response);
            if run.centre {
                prepared.centre_points += 1;
                continue;
            }
            let place = *places.entry(levels.clone()).or_insert_with(|| {
                prepared.treatments.push(Treatment { levels: levels.clone(), runs: 0 });
                prepared.treatments.len() - 1
            });
            prepared.treatments[place].runs += 1;
        }
        let runs = || prepared.source.iter().map(|&row| &table.rows[row]);
        let block = numbers(runs().map(|run| run.block.as_deref()));
        let whole_plot = numbers(runs().map(|run| run.whole_plot.as_deref()));
        (prepared.data.block, prepared.data.whole_plot) = (block, whole_plot);
        Ok(prepared)
    }

    /// The letters' mask of a term of the model, over the factors of the table.
    pub(super) fn mask(&self, model_term: &Term) -> term::Term {
        model_term.iter().fold(0, |mask, &factor| mask | 1 << self.active[factor])
    }

    /// The same of a mask over the model's factors.
    pub(super) fn outer_mask(&self, inner: term::Term) -> term::Term {
        term::factors(inner).fold(0, |mask, factor| mask | 1 << self.active[factor as usize])
    }

    /// `AB`; `I` for the mean.
    pub(super) fn letters(&self, model_term: &Term) -> String {
        term::letters(self.mask(model_term))
    }

    /// `sync × io_size`; `mean` for the mean.
    pub(super) fn name(&self, model_term: &Term) -> String {
        if model_term.is_empty() {
            return "mean".into();
        }
        model_term.iter().map(|&factor| self.factor_name(factor)).collect::<Vec<_>>().join(" × ")
    }

    /// Name of a factor of the model.
    pub(super) fn factor_name(&self, factor: usize) -> &str {
        &self.table.factors[self.active[factor]].name
    }

    /// Name of a level as the model counts it.
    pub(super) fn level_name(&self, factor: usize, level: u32) -> &str {
        let number = self.present[factor][level as usize];
        &self.table.factors[self.active[factor]].levels[number as usize]
    }

    /// Names of all levels of a factor of the model.
    pub(super) fn level_names(&self, factor: usize) -> Vec<String> {
        let count = self.data.factors[factor].levels as u32;
        (0..count).map(|level| self.level_name(factor, level).to_owned()).collect()
    }

    /// `sync=on io_size=64KiB`.
    pub(super) fn label(&self, levels: &[u32]) -> String {
        let one = |(factor, &level): (usize, &u32)| {
            format!("{}={}", self.factor_name(factor), self.level_name(factor, level))
        };
        levels.iter().enumerate().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Contrasts of a term in words: `L`, `level M`, `L × level M`; empty when all its factors have two levels.
    pub(super) fn contrast(&self, model_term: &Term, parts: &[Contrast]) -> String {
        let one = |(&factor, part): (&usize, &Contrast)| match part {
            Contrast::TwoLevel => None,
            Contrast::Level(level) => Some(format!("level {}", self.level_name(factor, *level))),
            polynomial @ Contrast::Polynomial(_) => Some(polynomial.to_string()),
        };
        model_term.iter().zip(parts).filter_map(one).collect::<Vec<_>>().join(" × ")
    }

    /// Whether all factors of a term have two levels.
    pub(super) fn is_two_level(&self, model_term: &Term) -> bool {
        model_term.iter().all(|&factor| self.data.factors[factor].levels == 2)
    }

    /// Levels of each factor of the model.
    pub(super) fn levels(&self) -> Vec<u32> {
        self.data.factors.iter().map(|f| f.levels as u32).collect()
    }

    /// Combinations of all levels; saturates.
    pub(super) fn combinations(&self) -> u64 {
        self.data.factors.iter().fold(1u64, |product, f| product.saturating_mul(f.levels as u64))
    }

    /// Fewest and most runs of a treatment.
    pub(super) fn replicates(&self) -> (usize, usize) {
        let runs = self.treatments.iter().map(|t| t.runs);
        (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0))
    }
}

/// Names as numbers in the order in which they occur; `None` when no run has one, or all have the same.
fn numbers<'a>(names: impl Iterator<Item = Option<&'a str>>) -> Option<Vec<u32>> {
    let mut known: HashMap<Option<&str>, u32> = HashMap::new();
    let all: Vec<u32> = names
        .map(|name| {
            let next = known.len() as u32;
            *known.entry(name).or_insert(next)
        })
        .collect();
    (known.len() > 1).then_some(all)
}
