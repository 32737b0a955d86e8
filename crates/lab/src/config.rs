//! What a lab is to be.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::BackEnd;
use crate::kernel::KernelChoice;

/// Most clients of a lab: their addresses are 10.77.1.1 to 10.77.1.200.
pub const MOST_CLIENTS: u32 = 200;

/// What a lab is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabConfig {
    /// Its name; labs of one user have different ones.
    pub name: String,
    /// Client machines, `c1` to `cN`.
    pub clients: u32,
    pub server: ServerKind,
    /// What runs the machines; `None`: the best one that works here.
    pub back_end: Option<BackEnd>,
    /// The kernel of the clients.
    pub kernel: KernelChoice,
    /// The kernel of the server machine; `None`: the clients'.
    pub server_kernel: Option<KernelChoice>,
    /// Memory of a client, in bytes.
    pub client_memory: u64,
    /// Memory of the server machine, in bytes.
    pub server_memory: u64,
    /// Whether a wire with delay, bandwidth and loss is between clients and server.
    pub emulated: bool,
    /// Whether the server's power is to be cut ([`crate::Lab::cut_server`]): what is written to its disk is logged then,
    /// and what it has to remember of clients is on a disk of its own.
    #[serde(default)]
    pub power_cuts: bool,
    /// Whether it stays when the process that brought it up ends.
    pub lasting: bool,
}

impl Default for LabConfig {
    fn default() -> Self {
        Self {
            name: "default".into(),
            clients: 1,
            server: ServerKind::default(),
            back_end: None,
            kernel: KernelChoice::Packaged,
            server_kernel: None,
            client_memory: 256 << 20,
            server_memory: 1 << 30,
            emulated: false,
            power_cuts: false,
            lasting: false,
        }
    }
}

/// What serves in a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// The Linux kernel's server, in a machine of its own.
    Knfsd(KnfsdConfig),
    /// The embedded server, in memory, in the lab's namespace.
    Memory,
    Ganesha,
    /// A server elsewhere: its host name or address.
    Address(String),
}

impl Default for ServerKind {
    fn default() -> Self {
        Self::Knfsd(KnfsdConfig::default())
    }
}

impl ServerKind {
    /// Whether a machine of the lab serves.
    pub fn is_machine(&self) -> bool {
        matches!(self, Self::Knfsd(_) | Self::Ganesha)
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Knfsd(_) => "knfsd",
            Self::Memory => "memory",
            Self::Ganesha => "ganesha",
            Self::Address(host) => host,
        })
    }
}

/// Why a text names no server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a server: give `knfsd`, `memory`, `ganesha`, or a host name or address")]
pub struct NoServer(String);

impl FromStr for ServerKind {
    type Err = NoServer;

    fn from_str(text: &str) -> Result<Self, NoServer> {
        let of_host = |c: char| c.is_ascii_alphanumeric() || ".-_:[]%".contains(c);
        match text {
            "knfsd" => Ok(Self::default()),
            "memory" => Ok(Self::Memory),
            "ganesha" => Ok(Self::Ganesha),
            host if !host.is_empty() && host.chars().all(of_host) => Ok(Self::Address(host.into())),
            _ => Err(NoServer(text.into())),
        }
    }
}

/// How the Linux kernel's server is set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnfsdConfig {
    pub threads: u32,
    /// What is exported.
    pub file_system: FileSystem,
    /// Size of its disk, in bytes; without meaning for tmpfs.
    pub disk_size: u64,
    /// Whether writes reach the disk before they are answered: `sync` or `async` of exports(5).
    pub sync: bool,
    /// Whether the server gives delegations.
    pub delegations: bool,
    /// The lease of NFS version 4, and with it the grace period.
    pub lease: Duration,
    pub mkfs_options: Vec<String>,
    /// Options for mount(8), separated by commas; empty: none.
    pub mount_options: String,
}

impl Default for KnfsdConfig {
    fn default() -> Self {
        Self {
            threads: 8,
            file_system: FileSystem::Tmpfs,
            disk_size: 1 << 30,
            sync: true,
            delegations: true,
            lease: Duration::from_secs(10),
            mkfs_options: Vec::new(),
            mount_options: String::new(),
        }
    }
}

/// What a server exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    Tmpfs,
    /// On a disk that is a sparse file of the host.
    Ext4,
    /// On a disk that is a sparse file of the host.
    Xfs,
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tmpfs => "tmpfs",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        })
    }
}

/// Why a text names no file system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a file system of a lab's server: give `tmpfs`, `ext4` or `xfs`")]
pub struct NoFileSystem(String);

impl FromStr for FileSystem {
    type Err = NoFileSystem;

    fn from_str(text: &str) -> Result<Self, NoFileSystem> {
        match text {
            "tmpfs" => Ok(Self::Tmpfs),
            "ext4" => Ok(Self::Ext4),
            "xfs" => Ok(Self::Xfs),
            _ => Err(NoFileSystem(text.into())),
        }
    }
}
