//! The arguments of `results`, `report` and `export`.

use std::path::PathBuf;

use benchmaster_units::TimeSpan;
use clap::{Args, Subcommand, ValueEnum};

use super::complete::results;

/// List, show, tag and remove results
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster results list
  benchmaster results show results/quick-mnt-nfs-20261123-0327
  benchmaster results tag results/quick-mnt-nfs-20261123-0327 'before the upgrade'
  benchmaster results clean --older-than 30d --unfinished     what it would remove
  benchmaster results clean --older-than 30d --unfinished --yes")]
pub(crate) struct ResultsArgs {
    #[command(subcommand)]
    pub(crate) command: ResultsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ResultsCommand {
    List(ListArgs),
    /// Print the summary of a results directory
    Show {
        /// The results directory
        #[arg(add = results())]
        directory: PathBuf,
    },
    /// Give a results directory a name of its own, which lists show
    Tag {
        /// The results directory
        #[arg(add = results())]
        directory: PathBuf,
        /// The name; an empty one removes it
        tag: String,
    },
    Clean(CleanArgs),
}

/// List the results directories below a directory
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The directory
    #[arg(default_value = "results")]
    pub(crate) directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove results directories
///
/// Names what it would remove, and removes it with --yes. Tagged results stay unless they are named, and so does every file that
/// Benchmaster did not write. Results in which a study is being carried out are left alone.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Results directories to remove [default: those in `results` that --older-than and --unfinished choose]
    #[arg(required_unless_present_any = ["older_than", "unfinished"], conflicts_with_all = ["older_than", "unfinished"], add = results())]
    pub(crate) directories: Vec<PathBuf>,
    /// Choose results that were begun so long ago or longer
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<TimeSpan>,
    /// Choose results of studies that did not end
    #[arg(long)]
    pub(crate) unfinished: bool,
    /// Remove them
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Regenerate the HTML report of a study's results
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster report results/quickstart
  benchmaster report results/quickstart -o /tmp/quickstart.html")]
pub(crate) struct ReportArgs {
    /// The results directory
    #[arg(add = results())]
    pub(crate) directory: PathBuf,
    /// The file to write [default: DIRECTORY/report.html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Export results as CSV, JSON, Parquet or Markdown
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster export results/quickstart --format csv          tables in results/quickstart/export
  benchmaster export results/quickstart --format json -o -    one document on standard output
  benchmaster export results/quickstart --format markdown -o - | gh issue create -F -")]
pub(crate) struct ExportArgs {
    /// The results directory
    #[arg(add = results())]
    pub(crate) directory: PathBuf,
    /// The format
    #[arg(short, long, value_enum)]
    pub(crate) format: ExportFormat,
    /// Directory to write into; `-` prints the document, or of csv the table of responses [default: DIRECTORY/export]
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
    /// A text for issues and pull requests
    Markdown,
}
