//! The matrix of a model: the mean, the blocks, then the contrasts of each term.

use super::coding::{Contrast, contrasts};
use super::data::{CENTRE, Data, Factor, Term};
use super::matrix::Matrix;
use super::qr::Groups;

/// What a column of the model matrix belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column {
    Block,
    /// 1 for a centre point, 0 for all other runs.
    Centre,
    Term {
        term: usize,
        parts: Vec<Contrast>,
    },
}

/// Contrast codes of all factors and the columns of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    /// For each factor its contrasts: what each stands for, and its number for each level.
    codes: Vec<Vec<(Contrast, Vec<f64>)>>,
    /// The terms, the mean first.
    pub(super) terms: Vec<Term>,
    pub(super) columns: Vec<Column>,
    /// For each column of a term which contrast of each of its factors it multiplies.
    choices: Vec<Vec<usize>>,
}

impl Layout {
    pub(super) fn new(factors: &[Factor], terms: Vec<Term>, blocks: usize, centre: bool) -> Self {
        let codes: Vec<_> = factors.iter().map(contrasts).collect();
        let (mut columns, mut choices) = (Vec::new(), Vec::new());
        for (number, term) in terms.iter().enumerate() {
            let counts: Vec<_> = term.iter().map(|&f| codes[f].len()).collect();
            for place in 0..counts.iter().product() {
                let mut rest = place;
                let choice: Vec<_> = counts.iter().map(|&n| (rest % n, rest /= n).0).collect();
                let parts = term.iter().zip(&choice).map(|(&f, &c)| codes[f][c].0).collect();
                columns.push(Column::Term { term: number, parts });
                choices.push(choice);
            }
            if number == 0 {
                for _ in 1..blocks {
                    columns.push(Column::Block);
                    choices.push(Vec::new());
                }
                if centre {
                    columns.push(Column::Centre);
                    choices.push(Vec::new());
                }
            }
        }
        Self { codes, terms, columns, choices }
    }

    /// The model matrix. Blocks are coded sum-to-zero, so that the mean is that of all blocks.
    pub(super) fn matrix(&self, rows: &[Vec<u32>], blocks: Option<&Groups>) -> Matrix {
        let mut matrix = Matrix::filled(rows.len(), self.columns.len(), 1.0);
        let mut block = 0;
        for ((target, column), choice) in matrix.columns_mut().zip(&self.columns).zip(&self.choices) {
            match column {
                Column::Block => {
                    block += 1;
                    let of_run = blocks.map_or(&[][..], |b| &b.of_run);
                    for (value, &own) in target.iter_mut().zip(of_run) {
                        *value = if own == 0 { -1.0 } else { f64::from(u8::from(own == block)) };
                    }
                }
                Column::Centre => {
                    for (value, row) in target.iter_mut().zip(rows) {
                        *value = f64::from(u8::from(is_centre(row)));
                    }
                }
                Column::Term { term, .. } => {
                    for (&factor, &contrast) in self.terms[*term].iter().zip(choice) {
                        let codes = &self.codes[factor][contrast].1;
                        for (value, row) in target.iter_mut().zip(rows) {
                            *value *= codes.get(row[factor] as usize).copied().unwrap_or(0.0);
                        }
                    }
                }
            }
        }
        matrix
    }

    /// Number of factors.
    pub(super) fn factors(&self) -> usize {
        self.codes.len()
    }

    /// Number of levels of a factor; `None` for one that does not exist.
    pub(super) fn levels(&self, factor: usize) -> Option<usize> {
        self.codes.get(factor)?.first().map(|(_, column)| column.len())
    }

    /// The value of a column at a combination of levels, averaged over the levels of factors that have none here and
    /// over the blocks: contrasts add up to 0, so columns with such a factor vanish.
    pub(super) fn value(&self, column: usize, level: impl Fn(usize) -> Option<u32>) -> f64 {
        let Column::Term { term, .. } = &self.columns[column] else { return 0.0 };
        let parts = self.terms[*term].iter().zip(&self.choices[column]);
        let code = |(&factor, &contrast): (&usize, &usize)| {
            level(factor).map_or(0.0, |level| self.codes[factor][contrast].1[level as usize])
        };
        parts.map(code).product()
    }
}

/// The name of a combination of contrasts: empty for two-level factors alone.
pub(super) fn contrast_name(parts: &[Contrast]) -> String {
    let names = parts.iter().map(Contrast::to_string).filter(|name| !name.is_empty());
    names.collect::<Vec<_>>().join(" · ")
}

/// Whether a run is a centre point.
pub(super) fn is_centre(row: &[u32]) -> bool {
    row.contains(&CENTRE)
}

/// The blocks of the runs; `None` without blocks, or with only one.
pub(super) fn blocks(data: &Data) -> Option<Groups> {
    data.block.as_ref().map(|block| Groups::new(block.iter())).filter(|groups| groups.sizes.len() > 1)
}
