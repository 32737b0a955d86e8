//! The arguments of `check`.

use std::path::PathBuf;

use benchmaster_record::conformance::Group;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_units::TimeSpan;
use clap::Args;

/// Check a server against the RFCs, or a directory against POSIX
///
/// Of a server (nfs://…), calls the procedures over the wire, right and wrong; of a directory, makes system calls. Each answer is compared
/// with a rule: what the document demands (must), what it recommends or what is known not to hold everywhere (should), and what Linux
/// does (linux). A broken rule is shown with its section, what was sent and what came. Everything happens in one directory that is
/// made for it and removed at the end; an export must be empty. Servers need no root: the user is that of the URL (uid=, gid=), else
/// that of this process. Permissions of a directory are checked by root only, who acts for other users.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster check nfs://filer/scratch                   every version that the server speaks
  benchmaster check nfs://filer/scratch --nfs 4.1         one version
  benchmaster check nfs://filer/scratch --only open,lock  some groups of checks
  benchmaster check nfs://filer/scratch --junit junit.xml
  benchmaster check /mnt/data                             a directory: files, names, locks, maps, permissions
  benchmaster check /mnt/a --second /mnt/b                and by another mount: what two hosts see of each other
  benchmaster check --list                                all checks, with their rules

Exit status: 0 no rule that binds is broken, 1 one is.")]
pub(crate) struct CheckArgs {
    /// An export, as nfs://SERVER/PATH, or a directory
    #[arg(value_name = "TARGET", required_unless_present = "list")]
    pub(crate) target: Option<String>,
    /// Another path to the same directory, such as a second mount
    #[arg(long, value_name = "PATH")]
    pub(crate) second: Option<PathBuf>,
    /// NFS versions: 2, 3, 4.0, 4.1, 4.2 [default: that of the URL, else all that the server speaks]
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',', value_parser = version)]
    pub(crate) nfs: Vec<NfsVersion>,
    /// Groups or names of checks
    #[arg(long, value_name = "GROUP|CHECK,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Also check an export that is not empty; what is there stays as it is
    #[arg(long)]
    pub(crate) force: bool,
    /// Longest lease whose end is waited for; checks that need it are not made with longer ones
    #[arg(long, value_name = "TIME", default_value = "15s")]
    pub(crate) lease: TimeSpan,
    /// Time in which each reply must come
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) timeout: TimeSpan,
    /// List the checks
    #[arg(long)]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the verdicts as JUnit XML too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Also write a page that opens in a browser, with all checks
    #[arg(long, value_name = "PAGE")]
    pub(crate) html: Option<PathBuf>,
}

fn version(text: &str) -> Result<NfsVersion, String> {
    NfsVersion::from_name(text).ok_or_else(|| "write 2, 3, 4.0, 4.1 or 4.2".into())
}

impl CheckArgs {
    /// Whether a check is chosen.
    pub(crate) fn wants(&self, group: Group, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| word == group.name() || word == name)
    }
}
