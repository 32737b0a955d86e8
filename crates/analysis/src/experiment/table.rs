//! What is analysed, and how.

use benchmaster_design::DesignError;
use benchmaster_record::results::Unit;
use benchmaster_stats::StatsError;
use thiserror::Error;

use super::result::LeftOut;

/// A response of many runs, with the levels of the factors in each.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub response: String,
    /// Its unit; `None` when it is not known, as in a CSV file.
    pub unit: Option<Unit>,
    /// Factors, lettered in this order.
    pub factors: Vec<TableFactor>,
    /// Runs that count. Their order has no meaning; [`TableRow::order`] has.
    pub rows: Vec<TableRow>,
    /// Runs that do not count, with the reason.
    pub left_out: Vec<LeftOut>,
}

/// A factor and its levels.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFactor {
    pub name: String,
    /// Names of its levels. The first is the base level; of two, the first is coded −1 and the second +1.
    pub levels: Vec<String>,
    /// The levels as numbers, where they all are quantities of one kind.
    pub values: Option<Vec<f64>>,
    /// Changed only between whole plots.
    pub hard_to_change: bool,
}

/// A run that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// Per factor, the number of its level, from 0. Where `centre` is set, [`super::CENTRE`] for factors that are halfway.
    pub levels: Vec<u32>,
    pub response: f64,
    /// Block the run is in.
    pub block: Option<String>,
    /// Whole plot the run is in.
    pub whole_plot: Option<String>,
    /// Place in the order of execution.
    pub order: Option<u64>,
    /// A centre point: every factor halfway between its two values.
    pub centre: bool,
}

/// On which scale the response is analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transform {
    /// By rule; see [`super::ScaleChoice`].
    #[default]
    Auto,
    /// As measured.
    None,
    /// The natural logarithm.
    Log,
}

/// How sums of squares of unbalanced data are formed; for balanced data all three are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumsOfSquares {
    /// Each term after those before it.
    I,
    /// Each term after all others that do not contain it.
    II,
    /// Each term after all others.
    III,
}

/// For which factors orthogonal polynomials describe the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Polynomial {
    /// Factors with three and more numeric levels.
    #[default]
    Numeric,
    /// None: every level against the mean of all.
    Never,
}

/// A prediction that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionRequest {
    /// Factor and level, by name, one pair for every factor.
    pub levels: Vec<(String, String)>,
    /// Of the mean of this many further runs; `None` = of the mean of infinitely many.
    pub future_runs: Option<u32>,
}

/// How to analyse a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Confidence level of every interval.
    pub confidence: f64,
    pub transform: Transform,
    /// Interactions of no more factors than this; `None` = all that the runs allow.
    pub max_order: Option<u32>,
    /// The terms of the model, by names (`a`, `a*b`) or letters (`AB`), instead of all up to `max_order`.
    pub terms: Option<Vec<String>>,
    /// How sums of squares are formed; `None`: type III.
    pub sums_of_squares: Option<SumsOfSquares>,
    /// Which levels are described by polynomials.
    pub polynomial: Polynomial,
    /// Predictions to make besides those of the treatments.
    pub predictions: Vec<PredictionRequest>,
    /// Fit the model of significant terms too. Its summary is there in any case when terms can be dropped; with this, the effects
    /// and predictions are those of the reduced model.
    pub reduced: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            confidence: 0.95,
            transform: Transform::Auto,
            max_order: None,
            terms: None,
            sums_of_squares: None,
            polynomial: Polynomial::Numeric,
            predictions: Vec::new(),
            reduced: false,
        }
    }
}

/// Why a table cannot be analysed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    #[error("no run has a value of {response}; measure first")]
    NoRuns { response: String },
    /// All runs have the same levels.
    #[error("nothing was varied: every run has the same level of {}; analyse the values without factors", factors.join(", "))]
    NothingVaried { factors: Vec<String> },
    /// The logarithm was asked for, but there is none.
    #[error(
        "the response {response} has the value {value}, which has no logarithm; analyse it as measured (`--no-log`)"
    )]
    NoLogarithm {
        response: String,
        /// The first value that has none.
        value: f64,
    },
    /// A prediction for a factor that is not there.
    #[error("unknown factor `{name}`; the factors are {}", factors.join(", "))]
    UnknownFactor {
        /// The name as written.
        name: String,
        factors: Vec<String>,
    },
    /// A level that a factor does not have.
    #[error("{factor} has no level `{level}`; its levels are {}", levels.join(", "))]
    UnknownLevel {
        factor: String,
        /// The level as written.
        level: String,
        levels: Vec<String>,
    },
    /// A prediction that leaves a factor open.
    #[error("the prediction does not say the level of {0}; name a level for every factor")]
    OpenPrediction(String),
    /// A row that does not fit the factors.
    #[error("run {} has {found} levels, but there are {expected} factors", row + 1)]
    Shape {
        /// The row, from 0.
        row: usize,
        /// Levels of the row.
        found: usize,
        /// Factors of the table.
        expected: usize,
    },
    /// More factors than the analysis can name.
    #[error("there are {0} factors, but no more than 63 can be analysed together; leave some out")]
    TooManyFactors(usize),
    /// A model that cannot be fitted in reasonable time.
    #[error(
        "the model has {columns} parameters, more than can be fitted in reasonable time (limit: {limit}); {largest} alone \
         has {levels} levels: name the factors that were varied on purpose, ask for fewer terms, or join levels"
    )]
    TooManyParameters {
        /// Parameters of the model.
        columns: u64,
        /// The most there may be.
        limit: u64,
        /// The factor with the most levels.
        largest: String,
        levels: usize,
    },
    /// A term that cannot be understood, or a design whose structure is unknown.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// The statistics refuse the data.
    #[error(transparent)]
    Stats(#[from] StatsError),
}
