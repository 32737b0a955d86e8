//! The environment of one host: what a reader needs to judge or repeat a measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts about one host and the target as seen from it. Each is `None` when the system does not tell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: String,
    /// Version of this program.
    pub benchmaster: String,
    /// `uname -srvm`.
    pub kernel: String,
    /// `PRETTY_NAME` of os-release.
    pub distribution: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Processors online.
    pub processors: u32,
    /// Processors this process may run on.
    pub processors_allowed: u32,
    /// Memory in bytes.
    pub memory_total: Option<u64>,
    /// Memory available at the start, in bytes.
    pub memory_available: Option<u64>,
    /// Clock source of the kernel (`tsc`, `kvm-clock`, …).
    pub clock_source: Option<String>,
    /// Hypervisor or container, if it can be told.
    pub virtualization: Option<String>,
    /// CPU frequency governor.
    pub governor: Option<String>,
    /// The target directory, if the target is one.
    pub target: Option<TargetEnvironment>,
    /// Kernel settings that matter (`vm.dirty_ratio`, `net.ipv4.tcp_rmem`, `sunrpc.tcp_slot_table_entries`, …).
    pub sysctls: BTreeMap<String, String>,
}

/// The file system a target directory lies on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetEnvironment {
    pub path: String,
    /// Where the file system is mounted.
    pub mount_point: String,
    /// What is mounted (device, `server:/export`).
    pub source: String,
    /// Type (`ext4`, `nfs4`, `tmpfs`).
    pub file_system: String,
    /// Mount options, per mount and per super block, as the kernel lists them.
    pub options: String,
    /// The whole line of `/proc/self/mountinfo`.
    pub mount_line: String,
    /// Size in bytes.
    pub total_bytes: u64,
    /// Free bytes for this user.
    pub free_bytes: u64,
    /// Free inodes; `None` when the file system does not count them.
    pub free_files: Option<u64>,
    /// Maximum readahead in KiB of the backing device, if it has one.
    pub read_ahead_kib: Option<u64>,
}

impl TargetEnvironment {
    /// Whether the file system keeps its data in memory alone.
    pub fn is_memory(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs")
    }
}
