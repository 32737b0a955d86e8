//! The arguments of `analyze`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::complete::results;

/// Show effects and intervals of a study's results, or of a CSV file
///
/// Says which factors matter, how sure that is, and what the design cannot separate. Of a study: every response of every
/// treatment, and the effects on the primary response or on that of `--response`. Of a CSV file: the effects of its factor columns
/// on its response column; without factors, the mean, the median and their intervals.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster analyze results/quickstart
  benchmaster analyze results/quickstart --json | jq '.treatments[].responses[0]'
  benchmaster analyze results/wan --response read.throughput --log
  benchmaster analyze results/wan --predict version=v4.1,delay=13.9ms --future-runs 5
  benchmaster analyze --data runs.csv --factors wool,tension --response breaks --json
  benchmaster analyze --data ceramics.csv --pool 4     4 factors and more: noise
  benchmaster analyze --data latencies.csv             one column: mean, median

The response of a CSV file is the column of --response, else `y` or `response`,
otherwise the only numeric column outside --factors, else the last column. Factors
are all columns that have no other part. A run without a value (empty, NA, NaN)
is left out, and said. Levels are in the order of their values when all are
numbers, sizes or durations; else `-`, low, off, no, false come before +, high,
on, yes, true, and all others are in alphabetical order. Of two levels the first
is coded -1 and the second +1.")]
pub(crate) struct AnalyzeArgs {
    /// The results directory
    #[arg(required_unless_present = "data", conflicts_with = "data", add = results())]
    pub(crate) directory: Option<PathBuf>,
    /// A CSV file instead, one run a line; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    /// Print the analysis as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
}

/// How effects are analysed.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// The response [default of a study: its primary response]
    #[arg(long, value_name = "NAME")]
    pub(crate) response: Option<String>,
    /// Confidence level of intervals [default: 0.95; of a study: its own]
    #[arg(long, value_name = "LEVEL", value_parser = confidence)]
    pub(crate) confidence: Option<f64>,
    /// Analyse the logarithm of the response: effects are ratios [default: by rule, with its reasons]
    #[arg(long, conflicts_with = "no_log")]
    pub(crate) log: bool,
    /// Analyse the response as measured
    #[arg(long)]
    pub(crate) no_log: bool,
    /// Highest order of interactions in the model; the others count as noise
    #[arg(long, value_name = "N", conflicts_with = "terms", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) order: Option<u32>,
    /// Count terms of this order and above as noise
    #[arg(long, value_name = "N", conflicts_with_all = ["terms", "order"], value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) pool: Option<u32>,
    /// Only these terms, by names or letters: a,b,a*b or A,B,AB
    #[arg(long, value_name = "TERM,...", value_delimiter = ',')]
    pub(crate) terms: Option<Vec<String>>,
    /// Show the reduced model: terms that do not matter become noise
    #[arg(long)]
    pub(crate) reduced: bool,
    /// Predict the response at these levels, one for each factor (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL,...")]
    pub(crate) predict: Vec<String>,
    /// Also predict the mean of this many further runs
    #[arg(long, value_name = "M", requires = "predict", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) future_runs: Option<u32>,
    /// Sums of squares of unbalanced data [default: III]
    #[arg(long = "type", value_name = "TYPE", value_enum, ignore_case = true)]
    pub(crate) sums_of_squares: Option<SumsType>,
    /// Which factors of three and more levels are described by orthogonal polynomials
    #[arg(long, value_enum, num_args = 0..=1, default_value = "numeric", default_missing_value = "numeric")]
    pub(crate) polynomial: Polynomials,
}

/// What the columns of a CSV file are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Columns of --data")]
pub(crate) struct ColumnArgs {
    /// The factors, lettered in this order [default: all columns without another part]
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', requires = "data")]
    pub(crate) factors: Option<Vec<String>>,
    /// The block of each run [default: `block`, if there is such a column and no --factors]
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub(crate) block: Option<String>,
    /// The whole plot of each run, in which hard-to-change factors keep their levels [default: `whole_plot`]
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub(crate) whole_plot: Option<String>,
    /// The place of each run in the order of execution, for the check for drift [default: `run_order` or `order`]
    #[arg(long, value_name = "COLUMN", requires = "data")]
    pub(crate) order_column: Option<String>,
    /// Levels of a factor in another order, the base level first (repeatable)
    #[arg(long, value_name = "FACTOR=LEVEL,...", requires = "data")]
    pub(crate) levels: Vec<String>,
    /// Without factors: look for changes of the level in the order of the lines
    #[arg(long, requires = "data")]
    pub(crate) changes: bool,
    /// Seed of bootstraps and permutations
    #[arg(long, default_value_t = 0, requires = "data")]
    pub(crate) seed: u64,
}

/// How sums of squares are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SumsType {
    /// Each term after those before it
    #[value(name = "I", alias = "1")]
    I,
    /// Each term after all others that do not contain it
    #[value(name = "II", alias = "2")]
    Ii,
    /// Each term after all others
    #[value(name = "III", alias = "3")]
    Iii,
}

/// Which factors polynomials describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Polynomials {
    /// Those with numeric levels
    Numeric,
    /// None: each level against the mean of all
    Never,
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        _ => Err("a confidence level is between 0 and 1, such as 0.95".into()),
    }
}
