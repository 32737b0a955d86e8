//! The arguments of `witness`.

use std::path::PathBuf;

use clap::Args;

/// Look for what was acknowledged as stable to a run that was killed
///
/// A workload with `verify = "durability"` keeps a ledger of what was acknowledged as stable, and compares it itself at the end. A
/// run that was killed leaves the ledger behind, in its results directory: this reads it and looks for everything that it names,
/// before the next session of the study removes the files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster witness results/durability/write-0-4711.ledger
  benchmaster witness write-0-4711.ledger --target nfs://10.0.0.1/export?version=3

Exit status: 0 all that was acknowledged is there, 1 something is not.")]
pub(crate) struct WitnessArgs {
    /// The ledger
    #[arg(value_name = "LEDGER")]
    pub(crate) ledger: PathBuf,
    /// Where the files are now: a directory or an nfs:// URL [default: where they were]
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
