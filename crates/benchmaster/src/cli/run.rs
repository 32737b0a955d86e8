//! The arguments of `run`, `quick` and `agent`.

use std::path::PathBuf;

use benchmaster_units::TimeSpan;
use clap::Args;

use super::change::ChangeArgs;
use super::ci::{CiArgs, FailOn, fail_on};
use super::complete::{results, studies};
use super::value::part;

/// Run or resume a study
///
/// Prints progress on standard error and the summary on standard output, and writes the report. A study that was
/// interrupted, even by kill -9 or a power cut, is resumed by the same command; only the run in flight is repeated.
///
/// What is measured is the file system of the target's directory, or an NFS export over the wire (`target.url`). A path of
/// `{scratch}` is a new directory below $TMPDIR (/tmp if that is not set), so the file system there is measured; it is named
/// when the study begins and in the summary. The host `{server}` of a URL is the embedded server, in memory, in this process.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster run studies/quickstart.toml
  benchmaster run --rw randread --bs 4k --time 30s /mnt/nfs
  benchmaster run --rw read,write --bs 4k,64k,1m 'filer:/vol1?vers=4.2'
  benchmaster run --screen studies/wan-factorial.toml
  benchmaster run studies/paper000-random-read.toml --scale 0.01 --target /mnt/nfs -o results/small
  benchmaster run my.toml -o /data/my-results --json > summary.json")]
pub(crate) struct RunArgs {
    /// The study file. With --rw or --create what to measure, as for `quick`: a directory, nfs://SERVER/EXPORT, SERVER:/EXPORT or
    /// a line of fstab [default: the embedded server]
    #[arg(value_name = "STUDY|TARGET", add = studies())]
    pub(crate) study: Option<PathBuf>,
    /// Run a fraction of the treatments first, then only those needed to resolve what it leaves ambiguous,
    /// until the effects of interest are known (docs/adaptive.md)
    #[arg(long)]
    pub(crate) screen: bool,
    /// What gives the exit status 1
    #[arg(long, value_name = "WHAT", default_value = "invalid", value_parser = fail_on([FailOn::Invalid, FailOn::Warning]))]
    pub(crate) fail_on: FailOn,
    #[command(flatten)]
    pub(crate) common: RunCommon,
    #[command(flatten)]
    pub(crate) line: LineArgs,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

/// A study in one line. Several values, separated by commas, make a factor: every combination of levels is run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "A study in one line, in fio's words; several values (4k,64k) make a factor")]
pub(crate) struct LineArgs {
    /// read, write, randread, randwrite, rw or randrw
    #[arg(long, alias = "readwrite", value_name = "WORDS")]
    rw: Option<String>,
    /// Bytes of a read or write, where k is 1024 [default: 4k]
    #[arg(long, alias = "blocksize", value_name = "SIZES")]
    bs: Option<String>,
    /// Size of the file that each job has [default: 256m; with --create: 0]
    #[arg(long, value_name = "SIZES")]
    size: Option<String>,
    /// Reads and writes that each job keeps outstanding [default: 1]
    #[arg(long, value_name = "NUMBERS")]
    iodepth: Option<String>,
    /// Jobs of each client [default: 1]
    #[arg(long, value_name = "NUMBERS")]
    numjobs: Option<String>,
    /// How long each run is measured: 30, 30s, 5m [default: 3s]
    #[arg(long, alias = "runtime", value_name = "TIMES")]
    time: Option<String>,
    /// O_DIRECT, past the page cache of a directory
    #[arg(long, value_name = "0|1", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    direct: Option<String>,
    /// Flush after every N writes; with --create 1: every file
    #[arg(long, value_name = "NUMBERS")]
    fsync: Option<String>,
    /// Bytes per second of each job, started at even intervals
    #[arg(long, value_name = "SIZES")]
    rate: Option<String>,
    /// Percentage of reads in rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENTAGES")]
    rwmixread: Option<String>,
    /// Check every block that is read
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "crc32c")]
    verify: Option<String>,
    /// Create N files on each client instead of reading and writing
    #[arg(long, value_name = "NUMBERS")]
    create: Option<String>,
    /// Clients, each a process of this host [default: 1]
    #[arg(long, value_name = "NUMBERS")]
    clients: Option<String>,
    /// Runs of each treatment [default: 5]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Print the study as a file, and measure nothing
    #[arg(long)]
    pub(crate) print: bool,
}

impl LineArgs {
    /// The flags that are given, with their values.
    pub(crate) fn flags(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("rw", &self.rw),
            ("bs", &self.bs),
            ("size", &self.size),
            ("iodepth", &self.iodepth),
            ("numjobs", &self.numjobs),
            ("time", &self.time),
            ("direct", &self.direct),
            ("fsync", &self.fsync),
            ("rate", &self.rate),
            ("rwmixread", &self.rwmixread),
            ("verify", &self.verify),
            ("create", &self.create),
            ("clients", &self.clients),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }

    /// The flag that makes it a line.
    pub(crate) fn work(&self) -> Option<&'static str> {
        self.rw.as_ref().map(|_| "rw").or(self.create.as_ref().map(|_| "create"))
    }
}

/// What is expected of a study on virtual time.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Studies on virtual time")]
pub(crate) struct ExpectArgs {
    /// Compare what is found with this file, exactly; differences are printed, and the exit status is 1 (docs/lab.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Option<PathBuf>,
    /// Write what is found into the file of `--expect`
    #[arg(long, requires = "expect")]
    pub(crate) accept: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunCommon {
    /// A trial of `explore`, which runs this in a guest
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Results directory [default: results/NAME of the study; for `quick` and a line, results/NAME-TARGET-TIME]
    #[arg(short, long, value_name = "DIR", add = results())]
    pub(crate) output: Option<PathBuf>,
    /// Print the analysis as JSON instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what happens as one JSON object per line, and everything for people on standard error (docs/watch.md)
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_lines: bool,
    /// Print no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) ci: CiArgs,
}

impl RunCommon {
    /// Whether a program reads standard output.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.json_lines
    }
}

/// Measure a directory or an NFS export in about a minute
///
/// The standard battery: sequential and random reads and writes, write latency, file creation, small files and metadata, five times each. The
/// target keeps nothing of it. Every call measures, into a directory of its own; `-o` names one, and resumes what was
/// interrupted there. `--print` shows the battery as a study file to start from. With `--against` two targets are measured in
/// turns, and each workload has a verdict: whether the second is better, worse or the same, with an interval.
///
/// A directory is measured by system calls. A URL is measured over the wire by Benchmaster's own client, without root and
/// without a mount; options of the mount follow a `?` (version, nconnect, rsize, ...; see docs/study-file.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster quick                                        the embedded server, in memory
  benchmaster quick /mnt/nfs
  benchmaster quick 'nfs://filer/vol1?version=3' -o results/v3
  benchmaster quick nfs://filer/vol1 --against nfs://other/vol1
  benchmaster quick nfs://filer/vol1 --against 3           the same export by NFSv3
  benchmaster quick /mnt/main --against /mnt/branch --fail-on regression --junit junit.xml
  benchmaster quick --print /mnt/nfs > my.toml")]
pub(crate) struct QuickArgs {
    /// What to measure: a directory, usually a mount point, nfs://SERVER/EXPORT, or SERVER:/EXPORT, which the kernel
    /// mounts, also as SERVER:/EXPORT?vers=4.1 or as a line of fstab [default: the embedded server]
    pub(crate) target: Option<PathBuf>,
    /// Measure this target too, in turns with the other, and compare: a further target, or an NFS version
    #[arg(long, value_name = "TARGET|VERSION")]
    pub(crate) against: Option<PathBuf>,
    /// What gives the exit status 1; changes need --against
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', default_value = "invalid", value_parser = fail_on([
        FailOn::Invalid, FailOn::Warning, FailOn::Regression, FailOn::Changed, FailOn::Undecided,
    ]))]
    pub(crate) fail_on: Vec<FailOn>,
    /// With --against: differences that do not matter: 2% or 0.02
    #[arg(long, value_name = "PART", default_value = "2%", value_parser = part, requires = "against")]
    pub(crate) band: f64,
    /// How long each workload that runs for a time is measured [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<TimeSpan>,
    /// Print the battery as a study file, and measure nothing
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten)]
    pub(crate) common: RunCommon,
}

/// Generate load for a study that runs elsewhere
///
/// The controller, `benchmaster run`, starts agents itself: on this host, by ssh or by Slurm. With `launcher = "external"` it
/// waits for agents that something else starts, such as mpiexec or Kubernetes (see `benchmaster fleet`). An agent serves one
/// controller on one stream, runs nothing but the workloads and commands of its study, and ends with the stream.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Serve on standard input and output
    #[arg(long, required_unless_present = "dial", conflicts_with = "dial")]
    pub(crate) stdio: bool,
    /// Connect to the controller at this address; what proves both to each other is read from standard input
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) dial: Option<String>,
    /// Number among the agents of the launch [default: that of Slurm, MPI or an Indexed Job, from the environment]
    #[arg(long, requires = "dial")]
    pub(crate) rank: Option<u32>,
    /// File to read instead of standard input
    #[arg(long, value_name = "FILE", requires = "dial")]
    pub(crate) credentials: Option<PathBuf>,
    /// Try for this long to reach the controller, and again after its connection has ended: until no controller comes
    #[arg(long, value_name = "TIME", requires = "credentials")]
    pub(crate) wait: Option<TimeSpan>,
    /// It has served before
    #[arg(long, hide = true, requires = "wait")]
    pub(crate) served: bool,
}
