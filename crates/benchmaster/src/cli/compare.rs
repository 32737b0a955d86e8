//! The arguments of `compare` and `history`.

use std::path::PathBuf;

use clap::Args;

use super::ci::{CiArgs, FailOn, fail_on};
use super::complete::results;
use super::value::{level, part};

/// Compare two results: what changed and what is the same
///
/// Cells with the same levels of the same factors are compared by Welch's test, by ranks and by the ratio of means with its
/// interval; p is corrected for the number of tests. A change is one that is outside the band of differences that do not
/// matter. Results of different targets, servers, networks, kernels, machines or workloads are refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster compare results/before results/after
  benchmaster compare results/before results/after --band 5% --response headline,latency
  benchmaster compare results/before results/after -o comparison.html
  benchmaster compare results/main results/branch --fail-on regression --junit junit.xml
  benchmaster compare results/quickstart --factor version     two levels within one study

Exit status: 0 nothing changed, 1 something did (see --fail-on), 2 wrong usage, or results that cannot be compared.")]
pub(crate) struct CompareArgs {
    /// Results directory that the other is compared with
    #[arg(value_name = "A", add = results())]
    pub(crate) a: PathBuf,
    /// Results directory that is compared
    #[arg(value_name = "B", required_unless_present = "factor", conflicts_with = "factor", add = results())]
    pub(crate) b: Option<PathBuf>,
    /// Compare the two levels of this factor of A
    #[arg(long, value_name = "NAME")]
    pub(crate) factor: Option<String>,
    /// Responses to compare: names, `headline` (the one that stands for each workload), `latency` (mean, p50 and p99 of each
    /// kind of operation), `all` [default: headline]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) response: Vec<String>,
    /// Differences that do not matter: 2% or 0.02
    #[arg(long, value_name = "PART", default_value = "2%", value_parser = part)]
    pub(crate) band: f64,
    /// Confidence level of the intervals [default: that of A]
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) confidence: Option<f64>,
    /// What gives the exit status 1
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', default_value = "changed", value_parser = fail_on([
        FailOn::Never, FailOn::Regression, FailOn::Changed, FailOn::Undecided, FailOn::Warning,
    ]))]
    pub(crate) fail_on: Vec<FailOn>,
    #[command(flatten)]
    pub(crate) ci: CiArgs,
    /// Compare even if environments differ; differences are listed
    #[arg(long)]
    pub(crate) force: bool,
    /// Write a page as well: both side by side, with latencies, calls, findings and conditions
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Find where a series of results changes
///
/// Each results directory is one point: the mean of a response over its runs, in every cell. They are ordered by the time of
/// their first run. The series may be looked at after every result, as a nightly gate does: of series without a change, 5 %
/// raise an alarm within 100 results, also if neighbouring results resemble each other. With --data the series is a column of
/// a CSV file, in the order of its rows.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster history results/nightly-*
  benchmaster history results/nightly-* -o history.html
  benchmaster history results/nightly-* --min-change 5% --fail-on regression --recent 7
  benchmaster history --data throughput.csv --response y --json

Exit status: 0 fine, 1 a change that --fail-on names, 2 wrong usage or input.")]
pub(crate) struct HistoryArgs {
    /// Results directories
    #[arg(value_name = "DIR", required_unless_present = "data", conflicts_with = "data", add = results())]
    pub(crate) directories: Vec<PathBuf>,
    /// A CSV file with one result per row
    #[arg(long, value_name = "FILE", requires = "response")]
    pub(crate) data: Option<PathBuf>,
    /// The response, or column of the file [default: the primary response]
    #[arg(long, value_name = "NAME")]
    pub(crate) response: Option<String>,
    /// Largest p of a change: the share of series without one that raise an alarm within 100 results
    #[arg(long, value_name = "P", default_value = "0.05", value_parser = level)]
    pub(crate) p_max: f64,
    /// Changes must be larger than this: 5% or 0.05
    #[arg(long, value_name = "PART", default_value = "0%", value_parser = part)]
    pub(crate) min_change: f64,
    /// What gives the exit status 1
    #[arg(long, value_name = "WHAT", default_value = "never",
        value_parser = fail_on([FailOn::Never, FailOn::Regression, FailOn::Changed]))]
    pub(crate) fail_on: FailOn,
    /// Only changes that one of the last N results revealed set exit status 1 [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) recent: Option<usize>,
    /// Write a page as well: every series with its changes
    #[arg(short, long, value_name = "FILE.html")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
