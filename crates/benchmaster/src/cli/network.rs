//! The arguments of `wire` and `relay`.

use std::ffi::OsString;
use std::net::SocketAddr;

use benchmaster_units::{ByteSize, TimeSpan};
use clap::{Args, ValueEnum};

use super::value::{bits_per_second, byte_size, part, relay_address, target_address, time_span};

/// Relay connections to a server over an emulated network: a delay in each direction
///
/// Everything that clients send to the address it listens on reaches the target a chosen time later, and so does
/// everything on the way back; opening a connection costs a round trip. The relay acknowledges on both sides at once, so
/// that the latency of requests is that of such a network, and the throughput of large transfers is not. The server sees
/// the relay's address and a port above 1023. It runs until it gets SIGINT or SIGTERM and then prints what it forwarded,
/// and how late, as one line of JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster relay --target 127.0.0.1:2049 --delay 1ms       a round trip takes 2 ms more; prints the address to use
  benchmaster relay --listen 3049 --target server --delay 20ms
  benchmaster relay --target 127.0.0.1:80 --delay 5ms -- sh -c 'curl http://$BENCHMASTER_SERVER'")]
pub(crate) struct RelayArgs {
    /// Address to listen on: ADDRESS:PORT or PORT; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = relay_address)]
    pub(crate) listen: SocketAddr,
    /// Where connections lead: HOST or HOST:PORT [default port: 2049]
    #[arg(long, value_name = "HOST", value_parser = target_address)]
    pub(crate) target: SocketAddr,
    /// Delay in each direction, half of what a round trip takes longer
    #[arg(long, value_name = "TIME", value_parser = time_span)]
    pub(crate) delay: TimeSpan,
    /// Allow an address that other hosts can reach; they then reach the target through it
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// What to run meanwhile; the relay ends with it. It finds its address in BENCHMASTER_SERVER (ADDRESS:PORT),
    /// BENCHMASTER_SERVER_ADDRESS and BENCHMASTER_SERVER_PORT
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Run programs over an emulated network: delay, jitter, bandwidth and loss between clients and a server
///
/// Makes a network namespace for the server and one for each client, connects them, and runs COMMAND in that of the first client.
/// TCP is the kernel's own, so that throughput is that of such a network too. The means is `tc netem` where the kernel has
/// it, else a wire in this process that moves Ethernet frames between TAP devices. Without root it works where the system
/// allows user namespaces. The server's address is 10.77.0.1, the first client's 10.77.1.1; other networks cannot be
/// reached from there.
///
/// Without COMMAND it says how to enter the namespaces, and runs until it gets SIGINT or SIGTERM. At the end it prints what the
/// network carried, and how late. Commands that it started end with it, also after kill -9.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster wire --delay 10ms --server 'iperf3 -s' --port 5201 -- iperf3 -c 10.77.0.1
  benchmaster wire --delay 5ms --jitter 1ms --bandwidth 1Gbit --loss 0.1% -- ping -c 5 10.77.0.1
  benchmaster wire --delay 1ms --clients 3        prints how to enter the namespaces

COMMAND finds BENCHMASTER_SERVER_ADDRESS, BENCHMASTER_CLIENT_ADDRESS and BENCHMASTER_CLIENT (from 1) in its environment.
The exit status is 0 when all commands succeed, else 1.")]
pub(crate) struct WireArgs {
    /// Delay in each direction, half of what a round trip takes longer
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time_span)]
    pub(crate) delay: TimeSpan,
    /// The delay of each frame is drawn from so much less to so much more; order is kept
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time_span)]
    pub(crate) jitter: TimeSpan,
    /// Bandwidth of each client's link, in each direction: 1Gbit, 100Mbit/s, 20MB/s [default: what the host does]
    #[arg(long, value_name = "RATE", value_parser = bits_per_second)]
    pub(crate) bandwidth: Option<u64>,
    /// Part of the frames lost, in each direction: 0.1% or 0.001
    #[arg(long, value_name = "PART", default_value = "0", value_parser = part)]
    pub(crate) loss: f64,
    /// Most bytes that wait for the bandwidth [default: what it carries in a round trip, and 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = byte_size, requires = "bandwidth")]
    pub(crate) queue: Option<ByteSize>,
    /// Bandwidth of the server's port, which all clients share
    #[arg(long, value_name = "RATE", value_parser = bits_per_second)]
    pub(crate) server_bandwidth: Option<u64>,
    /// MTU of all interfaces: the largest IP packet in a frame, in bytes, from 576 to 9000 [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..=9000))]
    pub(crate) mtu: Option<u16>,
    /// Congestion control of TCP at both ends, by the kernel's name: cubic [default: the host's]
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Clients, each with a namespace and a link of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: u32,
    /// Run COMMAND for every client at once, not for the first alone
    #[arg(long, requires = "command")]
    pub(crate) all: bool,
    /// A command for the shell to run in the server's namespace; it is started first and ended last
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<OsString>,
    /// Start COMMAND when something listens on this TCP port of the server
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// By what the network is emulated [default: netem if the host has it, else wire]
    #[arg(long, value_enum)]
    pub(crate) means: Option<NetworkMeans>,
    /// Seed of jitter and loss (wire)
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Longest busy waiting before a frame is due; less takes less processor time and is less exact (wire)
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = time_span)]
    pub(crate) spin: TimeSpan,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// What to run in the first client's namespace
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkMeans {
    /// The kernel's tc netem
    Netem,
    /// Ethernet frames moved by this process
    Wire,
}
