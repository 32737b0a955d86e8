//! The arguments of `wire`.

use std::ffi::OsString;

use benchmaster_netem::interface::{Discipline, Interface};
use benchmaster_netem::toeplitz::HashKey;
use benchmaster_study::settings::NetworkSettings;
use benchmaster_units::{ByteSize, TimeSpan};
use clap::{Args, ValueEnum};

use super::value::{bits_per_second, discipline, part};

/// Run programs over an emulated network
///
/// Makes a network namespace for the server and one for each client, connects them, and runs COMMAND in that of the first client.
/// TCP is the kernel's own, so throughput is also that of such a network. The backend is `tc netem` if the kernel has it,
/// otherwise a wire in this process that moves Ethernet frames between TAP devices. Works without root where user
/// namespaces are allowed. The server is 10.77.0.1, the first client 10.77.1.1; other networks cannot be reached from
/// there.
///
/// Without COMMAND it prints how to enter the namespaces and runs until SIGINT or SIGTERM. At the end it prints what the
/// network carried and how late. Commands that it started end with it, even after kill -9.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster wire --delay 10ms --server 'iperf3 -s' --port 5201 -- iperf3 -c 10.77.0.1
  benchmaster wire --delay 5ms --jitter 1ms --bandwidth 1Gbit --loss 0.1% -- ping -c 5 10.77.0.1
  benchmaster wire --bandwidth 1Gbit --queue-discipline fq -- ping -c 5 10.77.0.1
  benchmaster wire --delay 1ms --clients 3        prints how to enter the namespaces

COMMAND finds BENCHMASTER_SERVER_ADDRESS, BENCHMASTER_CLIENT_ADDRESS and BENCHMASTER_CLIENT (from 1) in its environment.
The exit status is 0 when all commands succeed, else 1.")]
pub(crate) struct WireArgs {
    /// One-way delay; the round trip grows by twice this
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) delay: TimeSpan,
    /// Jitter: each frame is delayed by up to this much less or more; frames keep their order
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub(crate) jitter: TimeSpan,
    /// Bandwidth of each client's link, in each direction: 1Gbit, 100Mbit/s, 20MB/s [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = bits_per_second)]
    pub(crate) bandwidth: Option<u64>,
    /// Share of frames lost in each direction: 0.1% or 0.001
    #[arg(long, value_name = "PART", default_value = "0", value_parser = part)]
    pub(crate) loss: f64,
    /// Queue limit in bytes [default: bandwidth × round trip + 64KiB]
    #[arg(long, value_name = "SIZE", requires = "bandwidth")]
    pub(crate) queue: Option<ByteSize>,
    /// Bandwidth of the server's link, shared by all clients
    #[arg(long, value_name = "RATE", value_parser = bits_per_second)]
    pub(crate) server_bandwidth: Option<u64>,
    #[command(flatten)]
    pub(crate) queues: QueueArgs,
    /// MTU of all interfaces in bytes, from 576 to 9000 [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=9000))]
    pub(crate) mtu: Option<u16>,
    /// TCP congestion control at both ends, such as cubic or bbr [default: the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Largest TCP congestion window at both ends, in segments [default: not limited]
    #[arg(long, value_name = "SEGMENTS", value_parser = clap::value_parser!(u32).range(1..=65535))]
    pub(crate) cwnd_clamp: Option<u32>,
    /// Number of clients, each with its own namespace and link
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// Run COMMAND in every client's namespace, not only the first
    #[arg(long, requires = "command")]
    pub(crate) all: bool,
    /// Shell command to run in the server's namespace; started first, stopped last
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<OsString>,
    /// Start COMMAND once the server listens on this TCP port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Emulation backend [default: netem if available, otherwise wire]
    #[arg(long, value_enum)]
    pub(crate) means: Option<NetworkMeans>,
    /// Random seed for jitter and loss (wire only)
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Longest busy-wait before a frame is due; less saves CPU time and is less precise (wire only)
    #[arg(long, value_name = "TIME", default_value = "100us")]
    pub(crate) spin: TimeSpan,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Command to run in the first client's namespace
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
}

// Transmit queues of each host, in front of its bandwidth. A doc comment would become that of the command.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Transmit queues of each host, in front of --bandwidth at clients and --server-bandwidth at the server; flows are
    /// hashed to them (wire only) [default: one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) queues: Option<u32>,
    /// Order of packets in each transmit queue: fifo, sfq, fq [default: fifo]
    #[arg(long, value_name = "NAME", value_parser = discipline)]
    pub(crate) queue_discipline: Option<Discipline>,
    /// Limit of each transmit queue in bytes [default: bandwidth × round trip + 64KiB]
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue_limit: Option<ByteSize>,
    /// Most bytes of one flow in its transmit queue; the rest waits at the sender [default: unlimited]
    #[arg(long, value_name = "SIZE")]
    pub(crate) flow_limit: Option<ByteSize>,
    /// Seed of the key with which flows are hashed [default: that of --seed]
    #[arg(long, value_name = "N", conflicts_with = "hash_key")]
    pub(crate) hash_seed: Option<u64>,
    /// Key with which flows are hashed: 40 bytes in hexadecimal, as ethtool -x shows it
    #[arg(long, value_name = "KEY")]
    pub(crate) hash_key: Option<HashKey>,
    /// Period after which flows are hashed with another key [default: never]
    #[arg(long, value_name = "TIME")]
    pub(crate) rehash: Option<TimeSpan>,
}

impl QueueArgs {
    /// The transmit queues asked for.
    pub(crate) fn interface(&self, seed: u64) -> Option<Interface> {
        let asked = NetworkSettings {
            queues: self.queues,
            queue_discipline: self.queue_discipline,
            queue_limit: self.queue_limit,
            flow_limit: self.flow_limit,
            hash_seed: self.hash_seed,
            hash_key: self.hash_key,
            rehash: self.rehash,
            ..NetworkSettings::default()
        };
        asked.interface(HashKey::of_seed(seed))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkMeans {
    /// The kernel's tc netem
    Netem,
    /// Ethernet frames moved by this process
    Wire,
}
