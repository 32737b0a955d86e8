//! The arguments of `simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::value::flows;

/// Evaluate an analytical model
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster simulate hash-cast --flows 5 --queues 8        winners and losers among five clients
  benchmaster simulate hash-cast --flows 2..60 --queues 8    how likely they are, by number of flows")]
pub(crate) struct SimulateArgs {
    #[command(subcommand)]
    pub(crate) model: SimulateCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    HashCast(HashCastArgs),
}

/// Winners and losers when flows are hashed to the queues of a network card
///
/// Each flow goes to a queue, uniformly and independently of the others; queues are served alike, so flows that share one get
/// less. The ratio is the load of the fullest queue over that of the emptiest in use: the rate of the fastest flow over the
/// slowest. Probabilities are exact; with --trials they are simulated as well.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster simulate hash-cast --flows 5 --queues 8 --trials 100000 --seed 7
  benchmaster simulate hash-cast --flows 2..60 --queues 8 --ratio 2,5 --json
  benchmaster simulate hash-cast --flows 2..60 --queues 8 --trials 10000 --html hash-cast.html")]
pub(crate) struct HashCastArgs {
    /// Flows: a number, or a range such as 2..60
    #[arg(long, value_name = "N", value_parser = flows)]
    pub(crate) flows: (u32, u32),
    /// Queues
    #[arg(long, value_name = "Q", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) queues: u32,
    /// Ratios whose probability is printed
    #[arg(long, value_name = "RATIO,...", value_delimiter = ',', default_value = "2,3,4,5")]
    pub(crate) ratio: Vec<f64>,
    /// Also simulate this many times
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub(crate) trials: u64,
    /// Seed of the simulation
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Also draw the probabilities into a page that opens in a browser, without a network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
