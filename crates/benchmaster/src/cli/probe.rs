//! The arguments of `probe`.

use std::net::SocketAddr;
use std::path::PathBuf;

use benchmaster_units::{ByteSize, TimeSpan};
use clap::{Args, Subcommand, ValueEnum};

use super::value::{far_end_address, relay_address, target_address};

/// Measure the network, without a file system
///
/// What a file system reaches can be judged only against what the network below it does: round trips, throughput of one and
/// of many connections, and how evenly they share.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster probe network --serve                 the far end, on this host; prints its address
  benchmaster probe network 127.0.0.1:40123         the probe, to that far end
  benchmaster probe rpc filer                       any NFS server: connections, and calls that do nothing")]
pub(crate) struct ProbeArgs {
    #[command(subcommand)]
    pub(crate) command: ProbeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    Network(Box<ProbeNetworkArgs>),
    Rpc(ProbeRpcArgs),
}

/// Round trips, throughput and fairness, to a far end on another host
///
/// Measured are round trips of small messages; how long opening a connection takes; throughput of several connections at
/// once in each direction, with TCP_INFO over time; and threads that share connections and request null data as fast as
/// they can. Each test is repeated on new connections, and the tests take turns. Without a far end's address, one in this
/// process is used, over loopback: what this host can do without a network.
///
/// With --serve it is the far end, until it gets SIGINT or SIGTERM. It serves whoever reaches it, within limits (128
/// connections, a minute each), or with a token file only those who have the same token; the token itself is never sent.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster probe network                                 this host alone
  benchmaster probe network --serve --listen 10.0.0.1:7800 --allow-remote --token-file token
  benchmaster probe network 10.0.0.1:7800 --token-file token
  benchmaster probe network 10.0.0.1:7800 --flows 1,16 --duration 5s --json > baseline.json")]
pub(crate) struct ProbeNetworkArgs {
    /// The far end: HOST:PORT [default: one in this process]
    #[arg(value_name = "HOST:PORT", value_parser = far_end_address, conflicts_with = "serve")]
    pub(crate) target: Option<SocketAddr>,
    /// Be the far end
    #[arg(long)]
    pub(crate) serve: bool,
    /// With --serve: address to listen on, ADDRESS:PORT or PORT; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = relay_address, requires = "serve")]
    pub(crate) listen: SocketAddr,
    /// With --serve: allow an address that other hosts can reach
    #[arg(long, requires = "serve")]
    pub(crate) allow_remote: bool,
    /// A file with a token of 16 or more bytes, the same at both ends
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Numbers of connections that transfer at once; 0: no transfers
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4,8")]
    pub(crate) flows: Vec<u16>,
    /// Direction of transfers
    #[arg(long, value_enum, default_value_t = Directions::Both)]
    pub(crate) direction: Directions,
    /// Repetitions of each test; intervals are over them
    #[arg(short, long, value_name = "N", default_value_t = 5)]
    pub(crate) repetitions: u16,
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    pub(crate) duration: TimeSpan,
    /// What passes before, while windows grow [default: 20 round trips, from 250ms to 5s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warm_up: Option<TimeSpan>,
    /// Round trips in all; fewer if they take too long
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) round_trips: u32,
    /// Connections on which null data are requested; 0: none
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) connections: u16,
    /// Threads that share each of them
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: u16,
    /// Null data in a reply
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    pub(crate) reply: ByteSize,
    /// Time between two readings of TCP_INFO
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    pub(crate) sample_interval: TimeSpan,
    /// Print JSON, with every flow and TCP_INFO over time
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Directions {
    /// One after the other
    Both,
    /// As writes do
    ToFarEnd,
    /// As reads do
    ToClient,
}

/// Connections to any NFS server over TCP, and calls that do nothing
///
/// A baseline of latency where no far end can be started: how long a connection takes to open (SYN to SYN/ACK), and how
/// long a call of the procedure NULL takes, which does nothing and needs no rights. In five repetitions, on new connections.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster probe rpc filer
  benchmaster probe rpc 10.0.0.1:2049 -n 1000 --json")]
pub(crate) struct ProbeRpcArgs {
    /// The server: HOST or HOST:PORT [default port: 2049]
    #[arg(value_parser = target_address)]
    pub(crate) server: SocketAddr,
    /// Connections, and calls
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) count: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
