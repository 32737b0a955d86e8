//! A design, and what its treatments are as a set.

use std::borrow::Cow;
use std::collections::HashMap;

use benchmaster_design::DesignError;
use benchmaster_design::regular::Fraction;
use benchmaster_design::structure::{Structure, structure};
use benchmaster_record::results::Replication;

use super::pilot::{Pilot, Spread};
use super::words::Words;

/// A factor of a design.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignFactor {
    /// Its name; the letter itself where no name was given.
    pub name: String,
    /// Names of its levels from low to high.
    pub levels: Vec<String>,
    /// Whether setting it up costs much more than a run.
    pub hard_to_change: bool,
}

/// Runs in which something unwanted may differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockInput {
    /// Every replicate is complete before the next one begins, and is a block.
    pub replicates: bool,
    /// Blocks within a replicate, confounded with interactions: per treatment its block.
    pub of_treatment: Option<Vec<u32>>,
    /// The interactions that define them, and all that are confounded with them.
    pub generators: Vec<u64>,
    /// See `generators`.
    pub confounded: Vec<u64>,
    /// Blocks that the study names (times of day, sets of clients); runs are spread over them.
    pub named: Vec<String>,
}

impl BlockInput {
    /// Blocks within one replicate, at least 1.
    pub(crate) fn blocks_of_replicate(&self) -> u64 {
        let last = self.of_treatment.as_ref().and_then(|of| of.iter().max());
        last.map_or(1, |&last| u64::from(last) + 1)
    }
}

/// A design to be described.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignInput<'a> {
    /// `full`, `fractional`, `plackett-burman`, `orthogonal-array`, `one-at-a-time`, `explicit` or `data`.
    pub kind: String,
    pub factors: Vec<DesignFactor>,
    /// Level numbers of the treatments without centre points. Rows of `--data` may be there several times.
    pub rows: Cow<'a, [Vec<u32>]>,
    /// The fraction that they are, where the design was made as one.
    pub fraction: Option<Fraction>,
    /// The rows before some were excluded.
    pub before_exclusion: Option<Vec<Vec<u32>>>,
    /// How often each row is run.
    pub replicates: Replication,
    /// Effects of interest, each as the numbers of its factors in ascending order.
    pub interest: Vec<Vec<usize>>,
    pub blocks: BlockInput,
    /// Centre runs of each block; all together when runs are not blocked.
    pub centre_points: u32,
    /// Interactions of this many factors are listed in alias chains.
    pub max_order: u32,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// Power of the smallest detectable effect.
    pub power: f64,
    /// How much runs of one treatment differ, as far as it is known.
    pub spread: Option<Spread>,
    /// The effect (2q) that is to be found, to say how many replicates that takes.
    pub effect: Option<Spread>,
    /// Times and spread of runs that were measured.
    pub pilot: Option<&'a Pilot>,
}

/// The order of interactions in alias chains when nothing else is asked for.
pub const MAX_ORDER: u32 = 3;
pub const POWER: f64 = 0.8;

/// What the treatments are as a set, worked out once.
pub(crate) struct Facts<'a> {
    pub(crate) input: &'a DesignInput<'a>,
    pub(crate) words: Words,
    pub(crate) levels: Vec<u32>,
    pub(crate) distinct: usize,
    /// Combinations of all levels; `None` beyond 64 bits.
    pub(crate) combinations: Option<u64>,
    /// The fraction that the treatments are, given or detected.
    pub(crate) fraction: Option<Fraction>,
    /// Whether every combination is there equally often.
    pub(crate) full: bool,
    /// What the rows can tell, when they are neither full nor a fraction that was given; `Err`: why that is not known.
    pub(crate) structure: Option<Result<Structure, DesignError>>,
    /// The same of main effects and interactions of two factors alone, when the other one has more. A structure lists a
    /// limited number of partial aliases of each term: there, those of higher order take no place.
    low_order: Option<Structure>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(input: &'a DesignInput<'a>) -> Self {
        let levels: Vec<u32> = input.factors.iter().map(|factor| factor.levels.len() as u32).collect();
        let combinations = levels.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)));
        let (distinct, even) = match &input.fraction {
            Some(_) => (input.rows.len(), true),
            None => multiplicity(&input.rows),
        };
        let full = even && combinations == Some(distinct as u64);
        let two_level = !levels.is_empty() && levels.iter().all(|&n| n == 2);
        let mut fraction = input.fraction.clone();
        if fraction.is_none() && full && two_level {
            fraction = Fraction::full(levels.len() as u32).ok();
        }
        let known = full || fraction.is_some() || input.rows.is_empty();
        let structure = (!known).then(|| structure_within(&input.rows, &levels, input.max_order));
        if let Some(Ok(structure)) = &structure {
            fraction.clone_from(&structure.regular);
        }
        let low_order = match &structure {
            Some(Ok(all)) if fraction.is_none() && all.models.len() > 3 => {
                structure_within(&input.rows, &levels, 2).ok()
            }
            _ => None,
        };
        let words = Words::new(input.factors.iter().map(|factor| factor.name.clone()).collect());
        Self { input, words, levels, distinct, combinations, fraction, full, structure, low_order }
    }

    /// What irregular rows tell of main effects and interactions of two factors.
    pub(crate) fn low_order(&self) -> Option<&Structure> {
        self.low_order.as_ref().or(self.structure.as_ref()?.as_ref().ok())
    }

    pub(crate) fn all_two_level(&self) -> bool {
        self.levels.iter().all(|&n| n == 2)
    }

    /// Runs of the fewest replicates, and of the most.
    pub(crate) fn runs(&self) -> (u64, u64) {
        let (min, max) = self.replicates();
        let rows = self.input.rows.len() as u64;
        let runs = |replicates: u32| rows * u64::from(replicates) + self.centre_runs(min);
        (runs(min), runs(max))
    }

    /// Different blocks of this many replicates, at least 1.
    pub(crate) fn total_blocks(&self, replicates: u32) -> u64 {
        match self.input.blocks.named.len() as u64 {
            0 => self.visits(replicates),
            named => named.min(u64::from(replicates)),
        }
    }

    /// How often a block is begun; blocks with names take turns.
    fn visits(&self, replicates: u32) -> u64 {
        let blocks = &self.input.blocks;
        let within = blocks.blocks_of_replicate();
        let each = blocks.replicates || !blocks.named.is_empty();
        if each { within * u64::from(replicates) } else { within }
    }

    /// Centre runs of this many replicates.
    pub(crate) fn centre_runs(&self, replicates: u32) -> u64 {
        u64::from(self.input.centre_points) * self.visits(replicates)
    }

    pub(crate) fn replicates(&self) -> (u32, u32) {
        match self.input.replicates {
            Replication::Fixed(n) => (n, n),
            Replication::Sequential { min, max, .. } => (min, max),
        }
    }
}

/// The structure up to `max_order`, or up to the highest order that can be had.
fn structure_within(rows: &[Vec<u32>], levels: &[u32], max_order: u32) -> Result<Structure, DesignError> {
    match structure(rows, levels, max_order) {
        Err(DesignError::StructureTooLarge { possible, .. }) if possible > 0 => {
            structure(rows, levels, possible)
        }
        found => found,
    }
}

/// How many different rows there are, and whether each is there equally often.
fn multiplicity(rows: &[Vec<u32>]) -> (usize, bool) {
    let mut times: HashMap<&[u32], u32> = HashMap::with_capacity(rows.len());
    for row in rows {
        *times.entry(row).or_default() += 1;
    }
    let mut counts = times.values();
    let first = counts.next();
    (times.len(), counts.all(|n| Some(n) == first))
}
