//! The arguments of `report` and `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Regenerate the HTML report of a study's results
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

/// Export results as CSV, JSON, Parquet or Markdown
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster export results/quickstart --format csv          tables in results/quickstart/export
  benchmaster export results/quickstart --format json -o -    one document on standard output
  benchmaster export results/quickstart --format markdown -o - | gh issue create -F -")]
pub(crate) struct ExportArgs {
    /// The results directory
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
