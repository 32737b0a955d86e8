//! The arguments of `explore`.

use std::path::PathBuf;

use benchmaster_record::nfs::NfsVersion;
use benchmaster_units::TimeSpan;
use clap::Args;

use super::change::ChangeArgs;
use super::value::version;

/// Try the NFS client and server under faults drawn from seeds
///
/// Clients and server run in one thread on virtual time, with a simulated network. Each seed draws what clients do and what goes
/// wrong: lost, late and doubled packets, broken connections, a server that stands still, restarts or loses power, clients that
/// die, leases that expire, a clock that is set. An oracle checks that data that was called stable is there, that a lock has one
/// holder, that each change is made once, that an open sees what others closed before it, and that everything ends. A scenario that
/// fails is made as small as possible and written to a file, which repeats it byte for byte.
///
/// With a study of the lab on virtual time, clients and server are Linux' own, clients do what the study says, and the ledger of
/// `verify = "durability"` is the oracle.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster explore                                     1,000 seeds
  benchmaster explore --seconds 1h --first 1000000        as many as can be tried in an hour
  benchmaster explore --nfs 4.1 --clients 2               a narrower choice
  benchmaster explore results/explore/seed-42.json        once more what failed, with its history
  benchmaster explore --seeds 1 --first 42 --history      the history of one seed
  benchmaster explore studies/explore-lab.toml            Linux' clients and server in the lab

Exit status: 0 all promises were kept, 1 one was broken.")]
pub(crate) struct ExploreArgs {
    /// A study of the lab on virtual time, or a scenario that was written before
    #[arg(value_name = "STUDY|FILE", conflicts_with_all = ["nfs", "clients", "operations"])]
    pub(crate) file: Option<PathBuf>,
    /// Seeds to try [default: 1000; of a study 100]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u64>,
    /// First seed [default: 0]
    #[arg(long, value_name = "SEED")]
    pub(crate) first: Option<u64>,
    /// Try seeds for this time instead, such as 60s or 1h
    #[arg(long, value_name = "TIME", conflicts_with = "seeds")]
    pub(crate) seconds: Option<TimeSpan>,
    /// NFS versions [default: 3,4.0,4.1,4.2]
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',', value_parser = version)]
    pub(crate) nfs: Vec<NfsVersion>,
    /// Most clients
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) clients: u8,
    /// Most operations of each client
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) operations: u8,
    /// Most faults
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(..=100))]
    pub(crate) faults: u8,
    /// Seeds tried at once [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Where scenarios that fail are written
    #[arg(long, value_name = "DIR", default_value = "results/explore")]
    pub(crate) keep: PathBuf,
    /// Show the history also where nothing is wrong
    #[arg(long)]
    pub(crate) history: bool,
    /// Also write a page that opens in a browser, with the time line of each failure
    #[arg(long, value_name = "PAGE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

impl ExploreArgs {
    pub(crate) fn first(&self) -> u64 {
        self.first.unwrap_or_default()
    }

    /// How many seeds are tried, when `usual` are unless said otherwise.
    pub(crate) fn seeds(&self, usual: u64) -> u64 {
        self.seeds.unwrap_or(usual)
    }
}
