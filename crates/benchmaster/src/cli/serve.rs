//! The arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use benchmaster_nfs_server::ExportConfig;
use benchmaster_nfs_server::disk::DiskConfig;
use benchmaster_nfs_server::inject::Rule;
use benchmaster_rpc_gss::Flavors;
use benchmaster_rpc_tls::ServerFiles;
use benchmaster_units::{ByteSize, TimeSpan};
use clap::{Args, ValueEnum};
use log::LevelFilter;

use super::value::{listen_address, log_level, max_io, portmap_address};

/// What files survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeptThrough {
    /// Only an orderly end: the state file is written then
    None,
    /// The end of the process (kill -9)
    Process,
    /// A loss of power, too: as slow as the disk that the state file is on
    Power,
}

/// Serve files in memory over NFS v2, v3, v4.0, v4.1 and v4.2
///
/// A server for measuring clients alone, and one whose behaviour is known: it can be made slow, failing, or lossy in
/// replies. Everything is in memory and gone at the end, unless `--state` names a file. It runs until it gets SIGINT or
/// SIGTERM and then prints its statistics as one line of JSON; SIGUSR1 prints them meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster serve                                       127.0.0.1:2049, export /export
  mount -t nfs -o vers=4.2 127.0.0.1:/export /mnt         as root, elsewhere on the same host
  mount -t nfs -o vers=3,nolock,port=2049,mountport=2049,mountproto=tcp 127.0.0.1:/export /mnt
  benchmaster serve --tls tls/server.pem,tls/server.key --require-tls      files of `benchmaster certificates tls`
  benchmaster serve --sec krb5:krb5i:krb5p --keytab nfs.keytab --map users
  benchmaster serve --inject 'READ delay=1ms' --inject 'WRITE drop-reply p=0.001' --seed 7
  benchmaster serve --listen 10.0.0.1 --allow-remote --portmap --export /data:ro --export /scratch:limit=10GiB

Rules of --inject: OPERATION ACTION... [CONDITION...]
  OPERATION   a procedure or operation (READ, OPEN, SETATTR, COMPOUND, ...) in every version, or * for every call
  ACTION      delay=TIME, error=NAME, drop-reply, disconnect, bandwidth=RATE, corrupt, lie (COMMIT, WRITE),
              stall=TIME, keep-verifier (with `*`)
  CONDITION   p=NUMBER (probability), client=N (in order of arrival, from 1), count=N (no more than N times),
              every=TIME (with `* disconnect`: closes all connections so often)")]
pub(crate) struct ServeArgs {
    /// Address to listen on: ADDRESS, PORT or ADDRESS:PORT; port 0 takes a free one, and with several addresses the same
    /// (repeatable: clients of NFS v4.1 and later can use all addresses in one session)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2049", value_parser = listen_address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Allow an address that other hosts can reach; users are believed whatever they say they are
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Serve NFS v2 and v3 over UDP where other hosts can reach it, too; on loopback addresses it always is
    #[arg(long)]
    pub(crate) udp: bool,
    /// Answer as portmapper too [default with the option: port 111 of the same address]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, value_parser = portmap_address)]
    pub(crate) portmap: Option<Option<SocketAddr>>,
    /// Export: PATH, PATH:ro, PATH:limit=SIZE, PATH:sec=FLAVORS (repeatable)
    #[arg(long, value_name = "EXPORT", default_value = "/export")]
    pub(crate) export: Vec<ExportConfig>,
    /// File in which files and client names survive a restart; read at the start, written at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// What survives when the server is killed or the power goes: changes are logged beside the state file before they are answered
    #[arg(long, value_name = "LEVEL", default_value = "none", requires = "state")]
    pub(crate) durability: KeptThrough,
    /// Certificate and private key for RPC-with-TLS, as PEM files; with a CA, clients need a certificate of it
    #[arg(long, value_name = "CERT,KEY[,CA]", value_parser = tls_files)]
    pub(crate) tls: Option<ServerFiles>,
    /// Serve only clients that use TLS
    #[arg(long, requires = "tls")]
    pub(crate) require_tls: bool,
    /// Security flavours of exports that have no `sec=` of their own: some of sys, krb5, krb5i and krb5p
    #[arg(long, value_name = "FLAVOR[:FLAVOR...]", default_value = "sys")]
    pub(crate) sec: Flavors,
    /// Keytab with the server's Kerberos keys (nfs/HOST) [default with other flavours than sys: the system's]
    #[arg(long, value_name = "FILE")]
    pub(crate) keytab: Option<PathBuf>,
    /// Which users Kerberos principals are: lines of PRINCIPAL UID GID[,GID...]; others are user 65534
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Threads [default: one per CPU]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Lease time of NFSv4
    #[arg(long, value_name = "TIME", default_value = "90s")]
    pub(crate) lease: TimeSpan,
    /// Slots of a session
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) slots: u32,
    /// Requests that all sessions together should have outstanding: each is asked to keep to its share [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests: Option<u32>,
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
    #[arg(long, value_name = "TIME")]
    pub(crate) change_granularity: Option<TimeSpan>,
    /// Map user 0 to the anonymous user (root squash)
    #[arg(long)]
    pub(crate) root_squash: bool,
    /// Hold small segments of replies back until earlier ones are acknowledged (Nagle's algorithm)
    #[arg(long)]
    pub(crate) nagle: bool,
    /// A disk behind the files, a model of times: hdd or ssd, with keys behind it (`hdd,seek=4ms,memory=256MiB`)
    #[arg(long, value_name = "DISK")]
    pub(crate) disk: Option<DiskConfig>,
    /// Answer changes before the disk has them, as exports with the option `async` do
    #[arg(long = "async", requires = "disk")]
    pub(crate) asynchronous: bool,
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
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log_level)]
    pub(crate) log: LevelFilter,
}

/// Two or three files.
fn tls_files(text: &str) -> Result<ServerFiles, String> {
    match text.split(',').collect::<Vec<_>>()[..] {
        [cert, key] => Ok(ServerFiles { cert: cert.into(), key: key.into(), ca: None }),
        [cert, key, ca] => Ok(ServerFiles { cert: cert.into(), key: key.into(), ca: Some(ca.into()) }),
        _ => Err("write two or three files: server.pem,server.key or server.pem,server.key,ca.pem".into()),
    }
}
