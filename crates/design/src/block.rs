//! Confounded blocks: runs of a two-level fraction in 2^b groups whose differences fall on chosen interactions.

use std::cmp::Reverse;

use crate::design::DesignError;
use crate::error::FractionError;
use crate::regular::Fraction;
use crate::term::{self, Term};

/// Products that are looked at before the search stops.
const MOST_STEPS: u64 = 20_000_000;
/// Interactions up to this order are counted when choices are compared.
const COUNTED_ORDER: u32 = 4;

/// How runs are put in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocking {
    /// The b terms whose signs make the block of a run.
    pub generators: Vec<Term>,
    /// All terms that cannot be distinguished from differences between blocks: the generators and their products (2^b − 1), in
    /// a fraction each as the shortest of its chain. By order, then letters.
    pub confounded: Vec<Term>,
    /// The block of each row of [`Fraction::rows`], from 0.
    pub block_of_row: Vec<u32>,
    /// Whether all choices were compared; otherwise this is the best of those that were.
    pub proved: bool,
}

/// Puts the runs of a fraction in `blocks` blocks of equal size.
///
/// No main effect is confounded with blocks. Of the choices left it takes the one that confounds the fewest clear
/// interactions of two factors, then the fewest interactions of two factors, then of three and of four.
///
/// # Errors
///
/// A number of blocks that is not a power of two or leaves less than two runs for a block, and one that would confound
/// a main effect in every way.
pub fn blocks(fraction: &Fraction, blocks: u32) -> Result<Blocking, DesignError> {
    let runs = fraction.runs();
    if blocks < 2 || !blocks.is_power_of_two() || u64::from(blocks) > runs / 2 {
        return Err(FractionError::Blocks { blocks, runs }.into());
    }
    let columns = Columns::new(fraction);
    let size = blocks.ilog2() as usize;
    let mut search = Search { columns: &columns, size, steps: 0, best: None };
    search.greedy();
    search.extend(&mut Vec::new(), &[0], Cost::default(), 1);
    let proved = search.steps < MOST_STEPS;
    let best = search.best.ok_or(FractionError::BlocksConfound { blocks, runs, all: proved })?;
    let chosen = best.chosen;
    let mut confounded: Vec<Term> =
        span(&chosen).into_iter().skip(1).map(|column| columns.shortest(column)).collect();
    confounded.sort_unstable_by(|&a, &b| term::compare(a, b));
    let generators = independent(fraction, &confounded, chosen.len());
    let parity = |run: u64, generator: Term| {
        let odd = (run & fraction.column(generator)).count_ones() % 2 == 1;
        u32::from(odd)
    };
    let block_of =
        |run: u64| (0u32..).zip(&generators).map(|(bit, &generator)| parity(run, generator) << bit).sum();
    Ok(Blocking { block_of_row: (0..runs).map(block_of).collect(), generators, confounded, proved })
}

/// What each column of a fraction would cost to lose.
struct Columns {
    /// Per column: whether it is a main effect, clear interactions of two factors, then interactions by order from 2.
    cost: Vec<Option<Cost>>,
    shortest: Vec<Term>,
}

/// Clear interactions of two factors, then interactions of two, three and four factors.
type Cost = [u32; COUNTED_ORDER as usize];

impl Columns {
    fn new(fraction: &Fraction) -> Self {
        let runs = fraction.runs() as usize;
        let mut cost = vec![Some(Cost::default()); runs];
        let mut shortest = vec![None; runs];
        // Columns that no short term has belong to higher orders, which few designs reach.
        for order in 1..=fraction.factors() {
            if order > COUNTED_ORDER && shortest[1..].iter().all(Option::is_some) {
                break;
            }
            for term in term::of_order(fraction.factors(), order) {
                let column = fraction.column(term) as usize;
                shortest[column].get_or_insert(term);
                if order == 1 {
                    cost[column] = None;
                } else if let Some(cost) = cost[column].as_mut().filter(|_| order <= COUNTED_ORDER) {
                    cost[order as usize - 1] += 1;
                }
            }
        }
        for term in fraction.clear().two_factor {
            if let Some(cost) = &mut cost[fraction.column(term) as usize] {
                cost[0] += 1;
            }
        }
        Self { cost, shortest: shortest.into_iter().map(Option::unwrap_or_default).collect() }
    }

    fn shortest(&self, column: u64) -> Term {
        self.shortest[column as usize]
    }
}

struct Search<'a> {
    columns: &'a Columns,
    size: usize,
    steps: u64,
    best: Option<Best>,
}

struct Best {
    cost: Cost,
    /// Of equal choices: the one with the longer shortest terms, then the highest interaction first by letters, then
    /// the others from the lowest order on.
    tie: (Vec<Reverse<u32>>, Vec<Rank>),
    chosen: Vec<u64>,
}

/// Rank of a term, by order and letters.
type Rank = (u32, Reverse<u64>);

fn rank(term: Term) -> Rank {
    (term::order(term), Reverse(term.reverse_bits()))
}

impl Search<'_> {
    /// What a further column costs with all products it makes; `None` if one of them is a main effect.
    fn cost_of(&self, products: &[u64], column: u64) -> Option<Cost> {
        products.iter().try_fold(Cost::default(), |sum, product| {
            let one = self.columns.cost[(product ^ column) as usize]?;
            Some(std::array::from_fn(|index| sum[index] + one[index]))
        })
    }

    /// A first choice: always the column that costs least.
    fn greedy(&mut self) {
        let (mut chosen, mut products) = (Vec::new(), vec![0]);
        for _ in 0..self.size {
            let free = (1..self.columns.cost.len() as u64).filter(|column| !products.contains(column));
            let costs = free.filter_map(|column| Some((self.cost_of(&products, column)?, column)));
            let Some((_, column)) = costs.min() else { return };
            products = with_column(&products, column);
            chosen.push(column);
        }
        self.compare(&chosen, &products);
    }

    /// Adds one more column to the chosen ones in every way that gives a new set of products: each later column has a
    /// higher last base factor than the earlier ones and leaves their last base factors out.
    fn extend(&mut self, chosen: &mut Vec<u64>, products: &[u64], cost: Cost, from: u64) {
        if chosen.len() == self.size {
            self.compare(chosen, products);
            return;
        }
        let last: u64 = chosen.iter().map(|column| 1u64 << column.ilog2()).sum();
        for column in from..self.columns.cost.len() as u64 {
            self.steps += products.len() as u64;
            if self.steps >= MOST_STEPS {
                return;
            }
            let Some(more) = self.cost_of(products, column).filter(|_| column & last == 0) else { continue };
            let cost = std::array::from_fn(|index| cost[index] + more[index]);
            if self.best.as_ref().is_some_and(|best| cost > best.cost) {
                continue;
            }
            chosen.push(column);
            self.extend(chosen, &with_column(products, column), cost, 1u64 << (column.ilog2() + 1));
            chosen.pop();
        }
    }

    fn compare(&mut self, chosen: &[u64], products: &[u64]) {
        let costs = products[1..].iter().filter_map(|&product| self.columns.cost[product as usize]);
        let cost =
            costs.fold(Cost::default(), |sum, one| std::array::from_fn(|index| sum[index] + one[index]));
        if self.best.as_ref().is_some_and(|best| cost > best.cost) {
            return;
        }
        let mut places: Vec<Rank> = products[1..].iter().map(|&p| rank(self.columns.shortest(p))).collect();
        places.sort_unstable();
        let orders: Vec<_> = places.iter().map(|place| Reverse(place.0)).collect();
        let highest = places.partition_point(|place| Some(&Reverse(place.0)) != orders.last());
        places.insert(0, places[highest]);
        let tie = (orders, places);
        if self.best.as_ref().is_none_or(|best| (cost, &tie) < (best.cost, &best.tie)) {
            self.best = Some(Best { cost, tie, chosen: chosen.to_vec() });
        }
    }
}

fn with_column(products: &[u64], column: u64) -> Vec<u64> {
    products.iter().copied().chain(products.iter().map(|product| product ^ column)).collect()
}

/// All products of columns, the empty one first.
fn span(columns: &[u64]) -> Vec<u64> {
    columns.iter().fold(vec![0], |products, &column| with_column(&products, column))
}

/// As many of the confounded terms as make all of them: of the highest order first, by letters.
fn independent(fraction: &Fraction, confounded: &[Term], count: usize) -> Vec<Term> {
    let mut by_order = confounded.to_vec();
    by_order.sort_by(|&a, &b| term::order(b).cmp(&term::order(a)).then(term::compare(a, b)));
    let mut chosen: Vec<Term> = Vec::new();
    for term in by_order {
        let columns: Vec<u64> = chosen.iter().map(|&term| fraction.column(term)).collect();
        if chosen.len() < count && !span(&columns).contains(&fraction.column(term)) {
            chosen.push(term);
        }
    }
    chosen
}
