//! The command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use benchmaster_nfs_server::ExportConfig;
use benchmaster_nfs_server::inject::Rule;
use benchmaster_units::{ByteSize, TimeSpan};
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
    Serve(ServeArgs),
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

/// Serve files in memory over NFS: v2, v3, v4.0, v4.1, v4.2 on one port
///
/// A server for measuring clients alone, and one whose behaviour is known: it can be told to be slow, to fail or to lose
/// replies. Everything is in memory and gone at the end, unless `--state` names a file. It runs until it gets SIGINT or
/// SIGTERM and then prints its statistics as one line of JSON; SIGUSR1 prints them meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster serve                                       127.0.0.1:2049, export /export
  mount -t nfs -o vers=4.2 127.0.0.1:/export /mnt         as root, elsewhere on the same host
  mount -t nfs -o vers=3,nolock,port=2049,mountport=2049,mountproto=tcp 127.0.0.1:/export /mnt
  benchmaster serve --inject 'READ delay=1ms' --inject 'WRITE drop-reply p=0.001' --seed 7
  benchmaster serve --listen 10.0.0.1 --allow-remote --portmap --export /data:ro --export /scratch:limit=10GiB

Rules of --inject: OPERATION ACTION... [CONDITION...]
  OPERATION   a procedure or operation (READ, OPEN, SETATTR, COMPOUND, ...) in every version, or * for every call
  ACTION      delay=TIME, error=NAME, drop-reply, disconnect, bandwidth=RATE
  CONDITION   p=NUMBER (probability), client=N (in order of arrival, from 1), count=N (no more than N times),
              every=TIME (with `* disconnect`: closes all connections so often)")]
pub(crate) struct ServeArgs {
    /// Address to listen on: ADDRESS, PORT or ADDRESS:PORT; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2049", value_parser = listen_address)]
    pub(crate) listen: SocketAddr,
    /// Allow an address that other hosts can reach; users are believed whatever they say they are
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Answer as portmapper too [default with the option: port 111 of the same address]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, value_parser = portmap_address)]
    pub(crate) portmap: Option<Option<SocketAddr>>,
    /// Export: PATH, PATH:ro, PATH:limit=SIZE (repeatable)
    #[arg(long, value_name = "EXPORT", default_value = "/export")]
    pub(crate) export: Vec<ExportConfig>,
    /// File in which files and client names survive a restart; read at the start, written at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Threads [default: one per CPU]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Lease time of NFSv4
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = time_span)]
    pub(crate) lease: TimeSpan,
    /// Slots of a session
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) slots: u32,
    /// Largest READ and WRITE
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = max_io)]
    pub(crate) max_io: ByteSize,
    /// Grant no delegations
    #[arg(long, conflicts_with = "write_delegations")]
    pub(crate) no_delegations: bool,
    /// Grant write delegations also to clients that do not ask for them
    #[arg(long)]
    pub(crate) write_delegations: bool,
    /// Read from one page of zeros, drop what is written (sizes and times are kept)
    #[arg(long)]
    pub(crate) null_data: bool,
    /// Steps in which change attribute and times move, as on servers with coarse clocks
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub(crate) change_granularity: Option<TimeSpan>,
    /// Treat user 0 as nobody
    #[arg(long)]
    pub(crate) root_squash: bool,
    /// Behaviour on demand (repeatable); see below
    #[arg(long, value_name = "RULE")]
    pub(crate) inject: Vec<Rule>,
    /// Seed of what is drawn at random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the statistics to this file instead of standard output (replaced each time)
    #[arg(long, value_name = "FILE")]
    pub(crate) stats: Option<PathBuf>,
    /// Give the statistics, as one line of JSON, to everyone who connects to this Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) stats_socket: Option<PathBuf>,
    /// What to log on standard error: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log: tracing::metadata::LevelFilter,
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

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    socket_address(text, 2049)
}

fn portmap_address(text: &str) -> Result<SocketAddr, String> {
    socket_address(text, 111)
}

/// ADDRESS, PORT or ADDRESS:PORT.
fn socket_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let address = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port));
    let only_port = || text.parse::<u16>().map(|port| SocketAddr::new(loopback, port));
    text.parse()
        .or(address)
        .or_else(|_| only_port())
        .map_err(|_| format!("write an address such as 127.0.0.1, [::1]:{port}, or a port"))
}

fn max_io(text: &str) -> Result<ByteSize, String> {
    let size = text.parse::<ByteSize>().map_err(|error| error.to_string())?;
    let right = (4096..=16 << 20).contains(&size.bytes()) && size.bytes() % 4096 == 0;
    right.then_some(size).ok_or_else(|| "write a multiple of 4KiB from 4KiB to 16MiB".into())
}
