//! The arguments of `diagnose`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::complete::results;

/// Say what is wrong, how that is known, its cost, and what to do
///
/// Looks at what a study left in its results directory, or at nothing but the statistics that the Linux NFS client keeps for each
/// mount: copies of /proc/self/mountstats. What they do not show is reported as unknown.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true))]
#[command(override_usage = "benchmaster diagnose [OPTIONS] <DIR>
       benchmaster diagnose [OPTIONS] --mountstats <FILE>...
       benchmaster diagnose [OPTIONS] --explain <ID>")]
#[command(after_help = "\
Examples:
  benchmaster diagnose results/quickstart                      the runs of a study, and all of them together
  benchmaster diagnose --mountstats /proc/self/mountstats      this client, since its mounts were made
  benchmaster diagnose --mountstats c1.txt c2.txt c3.txt       several clients, compared as well
  cat /proc/self/mountstats > before; sleep 60; cat /proc/self/mountstats > after
  benchmaster diagnose --mountstats after --before before      what is wrong now, not since the mount
  benchmaster diagnose --explain request-queue                 mechanism, formula and source of a finding")]
pub(crate) struct DiagnoseArgs {
    /// The results directory of a study
    #[arg(value_name = "DIR", group = "what", add = results())]
    pub(crate) directory: Option<PathBuf>,
    /// Copies of /proc/self/mountstats, each of another client
    #[arg(long, value_name = "FILE", num_args = 1.., group = "what")]
    pub(crate) mountstats: Vec<PathBuf>,
    /// Earlier copies of the same clients, in the same order: what was counted between the two is looked at
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "mountstats")]
    pub(crate) before: Vec<PathBuf>,
    /// Tell what stands behind a kind of finding; `all` lists them
    #[arg(long, value_name = "ID", group = "what")]
    pub(crate) explain: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
