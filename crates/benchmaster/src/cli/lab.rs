//! The arguments of `lab`.

use std::net::SocketAddr;
use std::path::PathBuf;

use benchmaster_lab::config::{FileSystem, ServerKind};
use benchmaster_lab::supervisor::Stage;
use benchmaster_lab::{BackEnd, KernelChoice};
use benchmaster_units::{ByteSize, TimeSpan};
use clap::{Args, Subcommand};

/// Run real Linux NFS clients and servers in user space
///
/// A lab is a server and clients c1, c2, … that run the Linux kernel's own NFS code, in networks of their own. Nothing outside
/// reaches them. Studies with `[lab]` start their own; see docs/lab.md.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  benchmaster lab setup                                 what machines are made of
  benchmaster lab up --clients 2                        the kernel's server, and two clients
  benchmaster lab exec c1 -- mount -t nfs server:/export /mnt
  benchmaster lab shell c1
  benchmaster lab status
  benchmaster lab down")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    Up(Box<UpArgs>),
    Setup(SetupArgs),
    /// Build and list kernels
    #[command(subcommand)]
    Kernel(KernelCommand),
    /// Stop a lab and everything in it
    Down(NameArgs),
    /// List this user's labs
    Status(StatusArgs),
    /// Open a shell in a machine
    Shell(ShellArgs),
    /// Run a program in a machine
    Exec(ExecArgs),
    /// Print the console output of the machines
    Logs(LogsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The lab
    #[arg(long, default_value = "default")]
    pub(crate) name: String,
}

/// Start a lab and leave it running
///
/// It runs until `benchmaster lab down`.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) lab: NameArgs,
    /// Client machines
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) clients: u32,
    /// What serves: `knfsd` (the Linux kernel, in a machine), `ganesha` (in a machine), `memory` (the embedded server of a study,
    /// in the lab's network), or the address of a server elsewhere
    #[arg(long, default_value = "knfsd")]
    pub(crate) server: ServerKind,
    /// What runs the machines: `qemu-kvm`, `uml`, `qemu-tcg`, or `namespaces` for none [default: the first that works]
    #[arg(long, value_name = "NAME")]
    pub(crate) back_end: Option<BackEnd>,
    /// The kernel: `packaged`, a version that `lab kernel build` has built, or a file
    #[arg(long, default_value = "packaged")]
    pub(crate) kernel: KernelChoice,
    /// The kernel of the server machine [default: that of the clients]
    #[arg(long, value_name = "KERNEL")]
    pub(crate) server_kernel: Option<KernelChoice>,
    /// Memory of a client
    #[arg(long, default_value = "256MiB", value_name = "SIZE")]
    pub(crate) memory: ByteSize,
    /// Memory of the server machine
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub(crate) server_memory: ByteSize,
    /// Put a wire between clients and server whose delay, bandwidth and loss studies can set
    #[arg(long)]
    pub(crate) emulated: bool,
    /// Threads of the kernel's server
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub(crate) threads: u32,
    /// What the kernel's server exports: `tmpfs`, `ext4`, `xfs`
    #[arg(long, default_value = "tmpfs", value_name = "NAME")]
    pub(crate) file_system: FileSystem,
    /// Size of the disk for ext4 and xfs; space is taken as it is written
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub(crate) disk_size: ByteSize,
    /// Answer writes before they reach the disk (`async` of exports(5))
    #[arg(long = "async")]
    pub(crate) unsafe_writes: bool,
    /// Give no delegations
    #[arg(long)]
    pub(crate) no_delegations: bool,
    /// The lease of NFS version 4
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub(crate) lease: TimeSpan,
    /// Options for mkfs
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub(crate) mkfs_options: Option<String>,
    /// Options for mounting what is exported, separated by commas
    #[arg(long, value_name = "OPTIONS", default_value = "", hide_default_value = true)]
    pub(crate) mount_options: String,
    /// Install what is missing without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Download what machines are made of and check what runs here
///
/// Packages of Debian that are not installed are downloaded by apt-get and unpacked in the cache ($XDG_CACHE_HOME or ~/.cache,
/// benchmaster/lab). Nothing is installed, and no rights are needed. `lab up` and studies do the same when they need it.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Get QEMU and a kernel for it, too
    #[arg(long)]
    pub(crate) qemu: bool,
    /// Do it without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    Build(KernelBuildArgs),
    /// Show the kernels that are here
    List(KernelListArgs),
}

/// Build a user-mode kernel with everything in it that NFS uses, and with virtual time
///
/// It is kept, and built again only if the source or the configuration of this version of Benchmaster differs.
#[derive(Debug, Args)]
pub(crate) struct KernelBuildArgs {
    /// The version of Debian's package linux-source-VERSION, such as `6.12`
    #[arg(value_name = "VERSION", required_unless_present = "source")]
    pub(crate) of: Option<String>,
    /// A directory with the source of Linux instead, which stays as it is
    #[arg(long, value_name = "TREE", conflicts_with = "of")]
    pub(crate) source: Option<PathBuf>,
    /// Download the source without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KernelListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// The machine: `server`, `c1`, …
    pub(crate) machine: String,
    #[command(flatten)]
    pub(crate) lab: NameArgs,
    /// A program instead of the shell, with its arguments
    #[arg(last = true)]
    pub(crate) program: Vec<String>,
}

/// Run a program in a machine
///
/// It gets this command's standard input unless that is a terminal. The exit status is 0 if the program's is, else 1.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The machine: `server`, `c1`, …
    pub(crate) machine: String,
    #[command(flatten)]
    pub(crate) lab: NameArgs,
    /// How long it may take
    #[arg(long, default_value = "10min", value_name = "TIME")]
    pub(crate) limit: TimeSpan,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) program: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// A machine, or `supervisor` [default: all machines]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) lab: NameArgs,
}

/// A process of a lab
#[derive(Debug, Args)]
pub(crate) struct SupervisorArgs {
    /// Which
    pub(crate) stage: Stage,
}

/// Process 1 of a machine of a lab
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    /// Only serve requests at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) serve: Option<SocketAddr>,
}
