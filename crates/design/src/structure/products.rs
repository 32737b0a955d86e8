//! The structure of rows that are no regular fraction, from the inner products of the terms' columns.

use super::terms::{
    MAX_PARAMETERS, MAX_PRODUCTS, Model, NO_CORRELATION, PARTIAL_ALIASES, Size, TermStructure, Terms, orders,
    refuse_above,
};
use crate::coding::{cells, contrasts, distinct, transform};
use crate::design::DesignError;
use crate::linear::{Independent, dot, largest_eigenvalue};

/// Inner products of any two columns.
enum Products {
    /// Two levels: the product of two terms' columns is the column of the factors that only one of them has.
    Transformed {
        /// Sum of each term's column, by its mask.
        sums: Vec<f64>,
        /// Mask of each column.
        masks: Vec<usize>,
    },
    /// The lower triangle, row by row.
    Multiplied(Vec<f64>),
}

impl Products {
    fn of(rows: &[Vec<u32>], different: &[(&[u32], u32)], levels: &[u32], terms: &Terms) -> Self {
        let two_level = levels.iter().all(|&n| n == 2);
        match two_level.then(|| transform(rows, levels)).flatten() {
            Some(sums) => {
                let masks = (0..terms.len()).map(|term| terms.mask(term) as usize).collect();
                Self::Transformed { sums, masks }
            }
            None => Self::Multiplied(multiply(different, levels, terms)),
        }
    }

    fn get(&self, a: usize, b: usize) -> f64 {
        match self {
            Self::Transformed { sums, masks } => sums[masks[a] ^ masks[b]],
            Self::Multiplied(triangle) => {
                let (low, high) = if a < b { (a, b) } else { (b, a) };
                triangle[high * (high + 1) / 2 + low]
            }
        }
    }
}

/// Rows that are multiplied side by side.
const LANES: usize = 8;

/// Adds the products of all columns up, some rows at a time.
fn multiply(different: &[(&[u32], u32)], levels: &[u32], terms: &Terms) -> Vec<f64> {
    let contrasts: Vec<_> = levels.iter().map(|&n| contrasts(n)).collect();
    let starts = starts(terms);
    let columns = terms.degrees.iter().sum::<usize>();
    let mut triangle = vec![0.0; columns * (columns + 1) / 2];
    let mut values = vec![[0.0; LANES]; columns];
    for rows in different.chunks(LANES) {
        for lane in 0..LANES {
            // A row that is there several times counts as often; lanes without a row count nothing.
            values[0][lane] = rows.get(lane).map_or(0.0, |(_, times)| f64::from(*times).sqrt());
            let Some((row, _)) = rows.get(lane) else {
                values.iter_mut().for_each(|value| value[lane] = 0.0);
                continue;
            };
            for term in 1..terms.len() {
                let Some(&factor) = terms.factors[term].last() else { continue };
                let (factor, prefix) = (factor as usize, terms.prefix[term]);
                let level = row[factor] as usize;
                let mut column = starts[term];
                for earlier in starts[prefix]..starts[prefix] + terms.degrees[prefix] {
                    for contrast in &contrasts[factor][1..] {
                        values[column][lane] = values[earlier][lane] * contrast[level];
                        column += 1;
                    }
                }
            }
        }
        let mut rest = triangle.as_mut_slice();
        for (number, own) in values.iter().enumerate() {
            let (line, below) = rest.split_at_mut(number + 1);
            for (sum, other) in line.iter_mut().zip(&values) {
                *sum += own.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
            }
            rest = below;
        }
    }
    triangle
}

/// The first column of each term.
fn starts(terms: &Terms) -> Vec<usize> {
    let running = terms.degrees.iter().scan(0, |next, degrees| {
        let start = *next;
        *next += degrees;
        Some(start)
    });
    running.collect()
}

/// The columns of the terms up to an order, block by block, over some rows.
pub(crate) struct Blocks {
    pub(crate) terms: Terms,
    products: Products,
    starts: Vec<usize>,
    runs: usize,
}

impl Blocks {
    /// Rows that have been checked against the levels.
    ///
    /// # Errors
    /// More terms than can be treated.
    pub(crate) fn new(rows: &[Vec<u32>], levels: &[u32], max_order: u32) -> Result<Self, DesignError> {
        let max_order = orders(levels, max_order);
        let fits = |size: Size| size.parameters <= MAX_PARAMETERS as u64;
        refuse_above(levels, max_order, &format!("{MAX_PARAMETERS} parameters"), fits)?;
        let different = distinct(rows, levels);
        let transformed = levels.iter().all(|&n| n == 2) && cells(levels).is_some();
        let work = |size: Size| different.len() as f64 * (size.parameters as f64).powi(2);
        let fits = |size| transformed || work(size) <= MAX_PRODUCTS;
        refuse_above(levels, max_order, &format!("{MAX_PRODUCTS:e} products"), fits)?;
        let terms = Terms::up_to(levels, max_order);
        let products = Products::of(rows, &different, levels, &terms);
        Ok(Self { starts: starts(&terms), terms, products, runs: rows.len() })
    }

    /// Number of columns of the terms up to an order.
    pub(crate) fn columns(&self, order: u32) -> usize {
        let terms = (0..self.terms.len()).take_while(|&term| self.terms.order(term) <= order);
        terms.map(|term| self.terms.degrees[term]).sum()
    }

    /// These columns, of which later ones may depend on earlier ones.
    pub(crate) fn independent(&self, columns: &[usize]) -> Independent {
        Independent::of(columns.len(), |a, b| self.products.get(columns[a], columns[b]))
    }

    pub(crate) fn analyse(&self) -> (Vec<Model>, Vec<TermStructure>) {
        let columns: Vec<_> = (0..self.columns(self.terms.max_order())).collect();
        let independent = self.independent(&columns);
        let models: Vec<_> = (0..=self.terms.max_order())
            .map(|order| {
                let parameters = self.columns(order);
                Model { order, parameters, rank: independent.rank(parameters) }
            })
            .collect();
        let aliases = self.aliases();
        let terms = aliases
            .into_iter()
            .enumerate()
            .map(|(term, aliases)| {
                let model = models[self.terms.order(term) as usize];
                self.of_term(term, model, &independent, aliases)
            })
            .collect();
        (models, terms)
    }

    fn of_term(
        &self,
        term: usize,
        model: Model,
        independent: &Independent,
        aliases: Vec<(usize, f64)>,
    ) -> TermStructure {
        let degrees = self.terms.degrees[term];
        let columns = self.starts[term]..self.starts[term] + degrees;
        // The combinations of columns that are 0 in all rows, restricted to this term: a contrast can be estimated when
        // all of them leave it alone.
        let positions: Vec<_> = columns.map(|column| (column, independent.position(column))).collect();
        let zero: Vec<Vec<f64>> = positions
            .iter()
            .map(|&(own, position)| {
                let coefficient = |(column, coordinates): &(usize, Vec<f64>)| match position {
                    Some(position) => clean(independent.coefficient(position, coordinates)),
                    None => f64::from(u8::from(*column == own)),
                };
                independent.dependent(model.parameters).map(coefficient).collect()
            })
            .collect();
        let lost = Independent::of(degrees, |a, b| dot(&zero[a], &zero[b])).columns.len();
        let known: Option<Vec<_>> = positions.iter().map(|&(_, position)| position).collect();
        let variance_inflation = known.filter(|_| lost == 0).map(|positions| {
            let covariance = |a: usize, b: usize| independent.inverse(positions[a], positions[b], model.rank);
            let determinant = Independent::of(degrees, covariance).log_determinant;
            self.runs as f64 * (determinant / degrees as f64).exp()
        });
        let complete = |correlation: f64| correlation.abs() > 1.0 - NO_CORRELATION;
        let listed = aliases
            .iter()
            .enumerate()
            .take_while(|(number, (_, correlation))| *number < PARTIAL_ALIASES || complete(*correlation))
            .map(|(_, (other, correlation))| (self.terms.factors[*other].clone(), *correlation))
            .collect::<Vec<_>>();
        TermStructure {
            factors: self.terms.factors[term].clone(),
            degrees_of_freedom: degrees as u32,
            estimable_degrees_of_freedom: (degrees - lost) as u32,
            estimable: lost == 0,
            aliases_left_out: aliases.len() - listed.len(),
            aliases: listed,
            variance_inflation,
        }
    }

    /// Per term the others that it is correlated with, the strongest first, then in the order of the terms.
    pub(crate) fn aliases(&self) -> Vec<Vec<(usize, f64)>> {
        let raw = |a: usize, b: usize| self.products.get(a, b);
        let runs = self.runs as f64;
        let about_mean = |a: usize, b: usize| {
            self.products.get(a, b) - self.products.get(a, 0) * self.products.get(b, 0) / runs
        };
        let columns = self.starts.last().map_or(0, |start| start + self.terms.degrees[self.starts.len() - 1]);
        // What a constant column leaves about its mean is rounding, which must not be scaled up to a column.
        let constant: Vec<bool> = (0..columns)
            .map(|column| about_mean(column, column) <= NO_CORRELATION * raw(column, column))
            .collect();
        let centred = |a: usize, b: usize| if constant[a] || constant[b] { 0.0 } else { about_mean(a, b) };
        let raw_bases: Vec<_> = (0..self.terms.len()).map(|term| self.orthonormal(term, &raw)).collect();
        let centred_bases: Vec<_> = (0..self.terms.len())
            .map(|term| {
                if self.block(term).all(|column| constant[column]) {
                    Vec::new()
                } else {
                    self.orthonormal(term, &centred)
                }
            })
            .collect();
        let mut aliases = vec![Vec::new(); self.terms.len()];
        for a in 0..self.terms.len() {
            for b in 0..a {
                let correlation = if centred_bases[a].is_empty() || centred_bases[b].is_empty() {
                    self.correlation((a, &raw_bases[a]), (b, &raw_bases[b]), &raw)
                } else {
                    self.correlation((a, &centred_bases[a]), (b, &centred_bases[b]), &centred)
                };
                if correlation.abs() > NO_CORRELATION {
                    aliases[a].push((b, correlation));
                    aliases[b].push((a, correlation));
                }
            }
        }
        // Equal correlations differ by rounding.
        let strength = |correlation: f64| (correlation.abs() / NO_CORRELATION).round() as u64;
        for aliases in &mut aliases {
            aliases.sort_by_key(|&(other, correlation)| (std::cmp::Reverse(strength(correlation)), other));
        }
        aliases
    }

    fn block(&self, term: usize) -> std::ops::Range<usize> {
        self.starts[term]..self.starts[term] + self.terms.degrees[term]
    }

    /// Combinations of the term's columns that are orthonormal over the rows.
    fn orthonormal(&self, term: usize, product: &impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
        let (start, degrees) = (self.starts[term], self.terms.degrees[term]);
        Independent::of(degrees, |a, b| product(start + a, start + b)).inverse_factor(degrees)
    }

    /// The correlation of two columns, or the largest canonical one of two blocks, whose orthonormal combinations are
    /// given.
    fn correlation(
        &self,
        (a, of_a): (usize, &[Vec<f64>]),
        (b, of_b): (usize, &[Vec<f64>]),
        product: &impl Fn(usize, usize) -> f64,
    ) -> f64 {
        let (start_a, start_b) = (self.starts[a], self.starts[b]);
        if let (1, 1) = (self.terms.degrees[a], self.terms.degrees[b]) {
            let scale = |basis: &[Vec<f64>]| basis.first().map_or(0.0, |combination| combination[0]);
            let correlation = product(start_a, start_b) * scale(of_a) * scale(of_b);
            return if correlation.abs() > 1.0 - NO_CORRELATION { correlation.signum() } else { correlation };
        }
        let between: Vec<Vec<f64>> = of_a
            .iter()
            .map(|left| {
                let column = |j: usize| {
                    left.iter().enumerate().map(|(i, x)| x * product(start_a + i, start_b + j)).sum()
                };
                let products: Vec<f64> = (0..self.terms.degrees[b]).map(column).collect();
                of_b.iter().map(|right| dot(&products, right)).collect()
            })
            .collect();
        let sum: f64 = between.iter().flatten().map(|x| x * x).sum();
        if sum.sqrt() <= NO_CORRELATION {
            return 0.0;
        }
        let squared = if between.len() == 1 || between[0].len() == 1 {
            sum
        } else {
            let square = |left: &Vec<f64>| between.iter().map(|right| dot(left, right)).collect();
            largest_eigenvalue(between.iter().map(square).collect())
        };
        if squared > 1.0 - NO_CORRELATION { 1.0 } else { squared.sqrt() }
    }
}

/// Coefficients of dependent columns are 0 where only rounding says otherwise.
fn clean(coefficient: f64) -> f64 {
    if coefficient.abs() < 1e-7 { 0.0 } else { coefficient }
}
