//! Designs without a study: from options, and from the rows of a table.

use std::borrow::Cow;

use benchmaster_design::array::orthogonal_array;
use benchmaster_design::block;
use benchmaster_design::plackett_burman::plackett_burman;
use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::{DesignError, full, one_at_a_time, search, term};
use benchmaster_record::results::Replication;
use thiserror::Error;

use super::facts::{BlockInput, DesignFactor, DesignInput, MAX_ORDER, POWER};
use super::words::factors;

/// What a design without a study is to be like.
#[derive(Debug, Clone, PartialEq)]
pub struct DesignRequest {
    /// Names of the factors, or `name=level:level:…`; one number stands for so many factors without names.
    pub factors: Vec<String>,
    /// Number of levels of each factor; empty: two.
    pub levels: Vec<u32>,
    /// `D=AB`, `delay=storage*sync`.
    pub generators: Vec<String>,
    /// The lowest resolution wanted.
    pub resolution: Option<u32>,
    /// The number of treatments wanted.
    pub runs: Option<u64>,
    /// Effects of interest, as letters or names (`AB`, `delay*sync`). Alone they choose the design: they must be clear.
    pub clear: Vec<String>,
    pub plackett_burman: bool,
    /// The smallest orthogonal array, when no number of runs is given.
    pub orthogonal_array: bool,
    /// One factor at a time.
    pub one_at_a_time: bool,
    /// Blocks in each replicate.
    pub blocks: Option<u32>,
    /// Every replicate is a block.
    pub replicate_blocks: bool,
    /// Names or letters of the factors that are hard to change.
    pub hard_to_change: Vec<String>,
    pub centre_points: u32,
    pub replicates: u32,
    /// Order of the interactions that are listed.
    pub max_order: u32,
    pub confidence: f64,
    pub power: f64,
}

impl Default for DesignRequest {
    fn default() -> Self {
        Self {
            factors: Vec::new(),
            levels: Vec::new(),
            generators: Vec::new(),
            resolution: None,
            runs: None,
            clear: Vec::new(),
            plackett_burman: false,
            orthogonal_array: false,
            one_at_a_time: false,
            blocks: None,
            replicate_blocks: false,
            hard_to_change: Vec::new(),
            centre_points: 0,
            replicates: 1,
            max_order: MAX_ORDER,
            confidence: 0.95,
            power: POWER,
        }
    }
}

/// Why a design cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The number of levels does not fit that of the factors.
    #[error(
        "there are {factors} factors, and numbers of levels for {levels}; give one number for each factor"
    )]
    Levels { factors: usize, levels: usize },
    /// The levels of a factor are named, and are not as many as was said.
    #[error(
        "factor `{factor}` has {named} named levels, and `--levels` says {counted}; leave `--levels` out"
    )]
    NamedLevels {
        factor: String,
        /// Levels that are named.
        named: usize,
        /// Levels that were asked for.
        counted: usize,
    },
    /// A factor with one level, or none.
    #[error("factor `{factor}` needs at least 2 levels, and has {levels}; write `{factor}=low:high`")]
    TooFewLevels { factor: String, levels: u32 },
    /// Two factors or two levels with one name.
    #[error("`{name}` is given twice; names must be unique")]
    Twice { name: String },
    /// No factors at all.
    #[error(
        "there are no factors; name them, as in `--factors version,sync,delay`, or say how many, as in `--factors 6`"
    )]
    NoFactors,
    /// Options that each choose the design.
    #[error("{} each choose the design; give one of them", .options.join(" and "))]
    Contradiction { options: Vec<&'static str> },
    /// An option that needs two-level factors.
    #[error("{option} needs factors with two levels, and `{factor}` has {levels}; {instead}")]
    NotTwoLevel {
        option: &'static str,
        /// A factor with more.
        factor: String,
        levels: usize,
        instead: &'static str,
    },
    /// A number of blocks that only a fraction or a full two-level design can have.
    #[error("blocks within a replicate need a full design or a fraction with two levels for each factor")]
    Blocks,
    /// Too many runs of an array.
    #[error("{runs} runs are more than can be planned; {limit} is the limit")]
    Runs { runs: u64, limit: u32 },
    /// The design itself is impossible.
    #[error(transparent)]
    Design(#[from] DesignError),
}

/// The factors of a request.
struct Factors {
    names: Vec<String>,
    levels: Vec<Vec<String>>,
}

impl Factors {
    fn read(request: &DesignRequest) -> Result<Self, RequestError> {
        let given = match &request.factors[..] {
            [] => request.levels.len(),
            [number] if number.parse::<u32>().is_ok() => number.parse().unwrap_or(0),
            names => {
                return Self::named(names, &request.levels);
            }
        };
        // More cannot be planned, and would only take memory.
        let count = given.min(2 * MOST_FACTORS);
        let letters: Vec<String> = (0..count).map(term::letter).collect();
        Self::named(&letters, &request.levels)
    }

    fn named(texts: &[String], counts: &[u32]) -> Result<Self, RequestError> {
        if texts.is_empty() {
            return Err(RequestError::NoFactors);
        }
        if !counts.is_empty() && counts.len() != texts.len() {
            return Err(RequestError::Levels { factors: texts.len(), levels: counts.len() });
        }
        let mut all = Self { names: Vec::new(), levels: Vec::new() };
        for (index, text) in texts.iter().enumerate() {
            let (name, levels) = match text.split_once('=') {
                Some((name, levels)) => (name, levels.split(':').map(str::to_owned).collect()),
                None => (text.as_str(), level_names(counts.get(index).copied().unwrap_or(2))),
            };
            let factor = name.to_owned();
            let wanted = counts.get(index).map_or(levels.len(), |&n| n as usize);
            if levels.len() != wanted {
                return Err(RequestError::NamedLevels { factor, named: levels.len(), counted: wanted });
            }
            if levels.len() < 2 {
                return Err(RequestError::TooFewLevels { factor, levels: levels.len() as u32 });
            }
            let twice = (1..levels.len()).find(|&last| levels[..last].contains(&levels[last]));
            if let Some(level) = twice {
                return Err(RequestError::Twice { name: levels[level].clone() });
            }
            if all.names.contains(&factor) {
                return Err(RequestError::Twice { name: factor });
            }
            all.names.push(factor);
            all.levels.push(levels);
        }
        Ok(all)
    }

    fn counts(&self) -> Vec<u32> {
        self.levels.iter().map(|levels| levels.len() as u32).collect()
    }

    fn need_two_levels(&self, option: &'static str, instead: &'static str) -> Result<u32, RequestError> {
        match self.levels.iter().position(|levels| levels.len() != 2) {
            None => Ok(self.names.len() as u32),
            Some(factor) => Err(RequestError::NotTwoLevel {
                option,
                factor: self.names[factor].clone(),
                levels: self.levels[factor].len(),
                instead,
            }),
        }
    }
}

/// Names of levels that nobody named: `-1` and `1`, or numbers from 1.
pub(super) fn level_names(count: u32) -> Vec<String> {
    match count {
        2 => vec!["-1".to_owned(), "1".to_owned()],
        n => (1..=n.min(MOST_LEVELS)).map(|level| level.to_string()).collect(),
    }
}

/// The most factors a request may have, as a bound of memory.
const MOST_FACTORS: usize = 1_000;
/// The most levels of a factor, as a bound of memory.
const MOST_LEVELS: u32 = 1 << 20;

/// Rows, with what is known of them.
struct Made {
    kind: &'static str,
    rows: Vec<Vec<u32>>,
    fraction: Option<Fraction>,
}

impl Made {
    fn fraction(kind: &'static str, fraction: Fraction) -> Self {
        Self { kind, rows: fraction.rows(), fraction: Some(fraction) }
    }
}

impl DesignRequest {
    /// The design that is asked for.
    ///
    /// # Errors
    /// Contradictions, unknown factors, and designs that do not exist.
    pub fn input(&self) -> Result<DesignInput<'static>, RequestError> {
        let factors = Factors::read(self)?;
        let hard = self
            .hard_to_change
            .iter()
            .try_fold(0, |all, text| Ok::<_, DesignError>(all | term::parse(text, &factors.names)?))?;
        let described = factors.names.iter().zip(&factors.levels).enumerate();
        let described = described.map(|(index, (name, levels))| DesignFactor {
            name: name.clone(),
            levels: levels.clone(),
            hard_to_change: index < 64 && hard >> index & 1 == 1,
        });
        let input = of_rows(described.collect(), Vec::new(), self)?;
        let Made { kind, rows, fraction } = self.make(&factors)?;
        // Confounded blocks are blocks of one replicate; the next replicate has others.
        let replicates = self.replicate_blocks || (self.blocks.is_some() && self.replicates > 1);
        let mut blocks = BlockInput { replicates, ..BlockInput::default() };
        if let Some(count) = self.blocks {
            let fraction = match (&fraction, kind) {
                (Some(fraction), _) => fraction.clone(),
                (None, "full") => {
                    factors.need_two_levels("--blocks", "take replicates as blocks")?;
                    Fraction::full(factors.names.len() as u32)?
                }
                _ => return Err(RequestError::Blocks),
            };
            let blocking = block::blocks(&fraction, count)?;
            blocks.of_treatment = Some(blocking.block_of_row);
            blocks.generators = blocking.generators;
            blocks.confounded = blocking.confounded;
        }
        if self.centre_points > 0 {
            factors
                .need_two_levels("--centre-points", "a factor with three levels shows curvature by itself")?;
        }
        Ok(DesignInput {
            kind: kind.to_owned(),
            rows: Cow::Owned(rows),
            fraction,
            replicates: Replication::Fixed(self.replicates),
            blocks,
            centre_points: self.centre_points,
            ..input
        })
    }

    fn make(&self, factors: &Factors) -> Result<Made, RequestError> {
        const INSTEAD: &str = "for more levels give `--runs`, or `--orthogonal-array`";
        let chosen: Vec<&'static str> = [
            ("--generators", !self.generators.is_empty()),
            ("--resolution", self.resolution.is_some()),
            ("--runs", self.runs.is_some()),
            ("--plackett-burman", self.plackett_burman),
            ("--one-at-a-time", self.one_at_a_time),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect();
        if chosen.len() > 1 || (self.orthogonal_array && chosen.iter().any(|&name| name != "--runs")) {
            let more = self.orthogonal_array.then_some("--orthogonal-array");
            return Err(RequestError::Contradiction { options: chosen.into_iter().chain(more).collect() });
        }
        let levels = factors.counts();
        let two_level = levels.iter().all(|&n| n == 2);
        if !self.generators.is_empty() {
            let count = factors.need_two_levels("--generators", INSTEAD)?;
            let generators = self.generators.iter().map(|text| Generator::parse(text, &factors.names));
            let generators = generators.collect::<Result<Vec<_>, _>>()?;
            return Ok(Made::fraction("fractional", Fraction::from_generators(count, &generators)?));
        }
        if let Some(resolution) = self.resolution {
            let count = factors.need_two_levels("--resolution", INSTEAD)?;
            return Ok(Made::fraction("fractional", search::by_resolution(count, resolution)?));
        }
        if self.plackett_burman {
            let count = factors.need_two_levels("--plackett-burman", INSTEAD)?;
            return Ok(Made { kind: "plackett-burman", rows: plackett_burman(count)?, fraction: None });
        }
        if self.one_at_a_time {
            return Ok(Made { kind: "one-at-a-time", rows: one_at_a_time(&levels)?, fraction: None });
        }
        let all = levels.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)));
        let wanted = self.runs.filter(|&runs| Some(runs) != all);
        match wanted {
            Some(runs) if two_level && !self.orthogonal_array && runs.is_power_of_two() => {
                let fraction = search::by_runs(factors.names.len() as u32, runs)?;
                return Ok(Made::fraction("fractional", fraction));
            }
            Some(runs) => return array(&levels, Some(runs)),
            None if self.orthogonal_array => return array(&levels, None),
            None if !self.clear.is_empty() && self.runs.is_none() => {
                let count = factors.need_two_levels("--clear", INSTEAD)?;
                let terms = self.clear.iter().map(|text| term::parse(text, &factors.names));
                let terms = terms.collect::<Result<Vec<_>, _>>()?;
                let fraction = search::by_clear(count, &terms, MOST_RUNS)?;
                return Ok(Made::fraction("fractional", fraction));
            }
            None => {}
        }
        Ok(Made { kind: "full", rows: full(&levels)?, fraction: None })
    }
}

/// The most runs of a fraction that is searched for by the effects that must be clear.
const MOST_RUNS: u64 = 1 << 12;

fn array(levels: &[u32], runs: Option<u64>) -> Result<Made, RequestError> {
    let runs = runs
        .map(|runs| u32::try_from(runs).map_err(|_| RequestError::Runs { runs, limit: u32::MAX }))
        .transpose()?;
    let array = orthogonal_array(levels, runs)?;
    Ok(Made { kind: "orthogonal-array", rows: array.rows, fraction: None })
}

/// The design of rows that are there: columns of a table, with the names of the levels of each.
///
/// Rows may be there several times; they are then replicates.
pub fn of_rows(
    factors: Vec<DesignFactor>,
    rows: Vec<Vec<u32>>,
    options: &DesignRequest,
) -> Result<DesignInput<'static>, RequestError> {
    let names: Vec<_> = factors.iter().map(|factor| factor.name.clone()).collect();
    let interest = options
        .clear
        .iter()
        .map(|text| Ok(self::factors(term::parse(text, &names)?)))
        .collect::<Result<Vec<_>, DesignError>>()?;
    Ok(DesignInput {
        kind: "data".to_owned(),
        factors,
        rows: Cow::Owned(rows),
        fraction: None,
        before_exclusion: None,
        replicates: Replication::Fixed(1),
        interest,
        blocks: BlockInput::default(),
        centre_points: 0,
        max_order: options.max_order,
        confidence: options.confidence,
        power: options.power,
        spread: None,
        effect: None,
        pilot: None,
    })
}
