//! The command line.

use std::path::PathBuf;

use benchmaster_units::TimeSpan;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measure and explain network file systems.
///
/// A study file says what to measure and what to vary; `run` measures it, with repetitions and in random order, and says
/// how sure the result is and what speaks against it.
#[derive(Debug, Parser)]
#[command(name = "benchmaster", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  benchmaster quick /mnt/nfs                 the standard battery on a directory
  benchmaster plan studies/quickstart.toml   what a study will do
  benchmaster run studies/quickstart.toml    do it; run the same line again to resume
  benchmaster analyze results/quickstart     effects and intervals of what was measured

Exit status: 0 fine, 1 the measurement failed or failed its own checks, 2 wrong usage or input, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Quick(QuickArgs),
    Plan(PlanArgs),
    Analyze(AnalyzeArgs),
    Report(ReportArgs),
    Export(ExportArgs),
    Workloads(WorkloadsArgs),
    /// Print the JSON Schema of the study file, for editors
    Schema,
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    Man(ManArgs),
}

/// Run or resume a study
///
/// Prints progress on standard error and the summary on standard output, and writes the report. A study that was
/// interrupted, even by kill -9 or a power cut, is resumed by the same command; only the run in flight is repeated.
///
/// What is measured is the file system of the target's directory. A target of `{scratch}` is a new directory below $TMPDIR
/// (/tmp if that is not set), so the file system there is measured; it is named when the study begins and in the summary.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster run studies/quickstart.toml
  benchmaster run my.toml -o /data/my-results --json > summary.json")]
pub(crate) struct RunArgs {
    /// The study file
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) common: RunCommon,
}

#[derive(Debug, Args)]
pub(crate) struct RunCommon {
    /// Results directory [default: results/NAME, the name of the study]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Print the analysis as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Measure a directory with the standard battery, in about two minutes
///
/// Sequential and random reads and writes, write latency, file creation, small files and metadata, five times each. The
/// target keeps nothing of it. `--print` shows the battery as a study file to start from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster quick /mnt/nfs
  benchmaster quick --print /mnt/nfs > my.toml")]
pub(crate) struct QuickArgs {
    /// The directory to measure, usually a mount point
    pub(crate) target: PathBuf,
    /// How long each workload that runs for a time is measured [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub(crate) duration: Option<TimeSpan>,
    /// Print the battery as a study file, and measure nothing
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) common: RunCommon,
}

/// Show what a study will do: treatments, order, time, space
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster plan studies/quickstart.toml
  benchmaster plan studies/quickstart.toml --json | jq .runs")]
pub(crate) struct PlanArgs {
    /// The study file
    pub(crate) study: PathBuf,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show effects and intervals of a study's results
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster analyze results/quickstart
  benchmaster analyze results/quickstart --json | jq '.treatments[].responses[0]'")]
pub(crate) struct AnalyzeArgs {
    /// The results directory
    pub(crate) directory: PathBuf,
    /// Print the analysis as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the HTML report of a study's results anew
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster report results/quickstart
  benchmaster report results/quickstart -o /tmp/quickstart.html")]
pub(crate) struct ReportArgs {
    /// The results directory
    pub(crate) directory: PathBuf,
    /// The file to write [default: DIRECTORY/report.html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Export results as CSV, JSON or Parquet
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster export results/quickstart --format csv          tables in results/quickstart/export
  benchmaster export results/quickstart --format json -o -    one document on standard output")]
pub(crate) struct ExportArgs {
    /// The results directory
    pub(crate) directory: PathBuf,
    /// The format
    #[arg(short, long, value_enum)]
    pub(crate) format: ExportFormat,
    /// Directory to write into; `-` prints the document (json) or the table of responses (csv) [default: DIRECTORY/export]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One file per table
    Csv,
    /// One document
    Json,
    /// One file per table
    Parquet,
}

/// List the built-in workloads, or show one
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  benchmaster workloads
  benchmaster workloads show random-read          its parameters, as a starting point for a study
  benchmaster workloads show random-read --full   the filesets, groups and flow behind it"
)]
pub(crate) struct WorkloadsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WorkloadsCommand>,
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadsCommand {
    /// Print a built-in workload as it stands in a study file
    Show {
        /// Its name
        name: String,
        /// In full: filesets, groups of workers, flow of operations
        #[arg(long)]
        full: bool,
    },
}

/// Print the manual page of the program or of a command (roff)
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster man | man -l -
  benchmaster man run > benchmaster-run.1")]
pub(crate) struct ManArgs {
    /// The command
    pub(crate) command: Option<String>,
}

fn time_span(text: &str) -> Result<TimeSpan, String> {
    text.parse().map_err(|error: benchmaster_units::UnitError| error.to_string())
}
