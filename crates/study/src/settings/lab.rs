//! The section `[lab]`: machines in user space with the real Linux NFS client and server, in which the study runs.

use benchmaster_lab::{BackEnd, FileSystem, KernelChoice, KnfsdConfig, LabConfig, ServerKind};
use benchmaster_record::results::LabTime;
use benchmaster_record::words;
use benchmaster_units::{ByteSize, TimeSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changed_keys;

/// Keys that another lab is brought up for: machines boot, which takes seconds.
pub(crate) const HARD_TO_CHANGE: [&str; 8] = [
    "lab.name",
    "lab.server",
    "lab.kernel",
    "lab.server_kernel",
    "lab.back_end",
    "lab.time",
    "lab.memory",
    "lab.server_memory",
];

words! {
    /// What a disk of the lab does with writes until its power is cut.
    #[derive(Default, JsonSchema)]
    LabDiskCache {
        /// It has no cache that forgets: every write that was done is kept.
        None = "none",
        /// Of the writes since the last flush each is kept, lost, or torn between sectors.
        #[default]
        Volatile = "volatile",
        /// Flushes are reported and not done: what was written in the last second is at risk as well.
        Lying = "lying",
    }
}

/// Machines in user space in which the study runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LabSettings {
    /// The name of a lab that is up (`benchmaster lab up --name`): it is used when it is up and is what the study asks for.
    /// Otherwise the study brings one up that ends with it.
    #[schemars(extend("examples" = ["default"]))]
    pub name: String,
    /// Who serves.
    pub server: LabServer,
    /// The kernel of the clients: `"packaged"`, a version that `benchmaster lab kernel build` has built, or a file.
    #[schemars(extend("examples" = ["packaged", "6.12", "/boot/linux.uml"]))]
    pub kernel: String,
    /// The kernel of the server. If absent, that of the clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_kernel: Option<String>,
    /// What the machines are. If absent, the best that works on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_end: Option<LabBackEnd>,
    /// Whether time passes as it does, or only when all machines wait.
    pub time: LabTime,
    /// Memory of each client.
    pub memory: ByteSize,
    /// Memory of the server.
    pub server_memory: ByteSize,
    /// Threads of the kernel's server.
    #[schemars(range(min = 1, max = 1024))]
    pub threads: u32,
    /// The file system that the server exports.
    pub file_system: LabFileSystem,
    /// Size of the file system's disk.
    pub disk_size: ByteSize,
    /// What the disk does with writes until its power is cut, see `failure` in `[run]`.
    pub disk_cache: LabDiskCache,
    /// Options of `mkfs` for `ext4` and `xfs`.
    pub mkfs_options: String,
    /// Options that the server mounts its file system with.
    #[schemars(extend("examples" = ["data=journal"]))]
    pub mount_options: String,
    /// Whether the export is `sync`: replies wait until data are stored. `async` replies earlier, and loses data in a crash.
    pub sync: bool,
    /// Whether the kernel's server grants delegations.
    pub delegations: bool,
    /// Lease time of NFSv4 of the kernel's server, also the length of its grace period.
    pub lease: TimeSpan,
}

impl Default for LabSettings {
    fn default() -> Self {
        let (lab, knfsd) = (LabConfig::default(), KnfsdConfig::default());
        Self {
            name: lab.name,
            server: LabServer::Knfsd,
            kernel: "packaged".into(),
            server_kernel: None,
            back_end: None,
            time: LabTime::Real,
            memory: ByteSize(lab.client_memory),
            server_memory: ByteSize(lab.server_memory),
            threads: knfsd.threads,
            file_system: LabFileSystem::Tmpfs,
            disk_size: ByteSize(knfsd.disk_size),
            disk_cache: LabDiskCache::default(),
            mkfs_options: String::new(),
            mount_options: String::new(),
            sync: knfsd.sync,
            delegations: knfsd.delegations,
            lease: TimeSpan(knfsd.lease),
        }
    }
}

words! {
    /// Who serves in a lab.
    #[derive(JsonSchema)]
    LabServer {
        /// The kernel's server, on a machine of its own.
        Knfsd = "knfsd",
        /// The embedded server, in this process; `[server]` describes it.
        Memory = "memory",
        /// NFS-Ganesha.
        Ganesha = "ganesha",
        /// A server outside of the lab: `[server] host`.
        Host = "host",
    }
}

words! {
    /// What the machines of a lab are.
    #[derive(JsonSchema)]
    LabBackEnd {
        /// QEMU with the processor's virtualisation.
        QemuKvm = "qemu-kvm",
        /// User-mode Linux.
        Uml = "uml",
        /// QEMU that emulates the processor.
        QemuTcg = "qemu-tcg",
        /// Network namespaces with processes of this host: for the user-space client.
        Namespaces = "namespaces",
    }
}

impl LabBackEnd {
    fn back_end(self) -> BackEnd {
        match self {
            Self::QemuKvm => BackEnd::QemuKvm,
            Self::Uml => BackEnd::Uml,
            Self::QemuTcg => BackEnd::QemuTcg,
            Self::Namespaces => BackEnd::Namespaces,
        }
    }
}

words! {
    /// What the kernel's server exports.
    #[derive(JsonSchema)]
    LabFileSystem {
        /// Memory.
        Tmpfs = "tmpfs",
        /// A disk with ext4.
        Ext4 = "ext4",
        /// A disk with XFS.
        Xfs = "xfs",
    }
}

/// A mistake in the settings of the lab: the key, what is wrong, and what would be right.
pub type LabMistake = (&'static str, String, String);

impl LabSettings {
    /// The lab that is wanted, with so many clients; `emulated` puts a wire between them and the server. `host` is the
    /// server outside of the lab, if it is one.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn config(&self, clients: u32, emulated: bool, host: Option<&str>) -> Result<LabConfig, LabMistake> {
        let kernel = |key, text: &str| {
            text.parse::<KernelChoice>().map_err(|error| {
                let help = "write `\"packaged\"`, a version such as `\"6.12\"`, or the path of a kernel";
                (key, error.to_string(), help.to_owned())
            })
        };
        let server = match self.server {
            LabServer::Knfsd => ServerKind::Knfsd(self.knfsd()),
            LabServer::Memory => ServerKind::Memory,
            LabServer::Ganesha => ServerKind::Ganesha,
            LabServer::Host => ServerKind::Address(host.unwrap_or_default().to_owned()),
        };
        Ok(LabConfig {
            name: self.name.clone(),
            clients,
            server,
            back_end: self.back_end.map(LabBackEnd::back_end),
            kernel: kernel("kernel", &self.kernel)?,
            server_kernel: self
                .server_kernel
                .as_deref()
                .map(|text| kernel("server_kernel", text))
                .transpose()?,
            client_memory: self.memory.0,
            server_memory: self.server_memory.0,
            emulated,
            power_cuts: false,
            lasting: false,
        })
    }

    /// How the kernel's server is set up.
    pub fn knfsd(&self) -> KnfsdConfig {
        KnfsdConfig {
            threads: self.threads,
            file_system: match self.file_system {
                LabFileSystem::Tmpfs => FileSystem::Tmpfs,
                LabFileSystem::Ext4 => FileSystem::Ext4,
                LabFileSystem::Xfs => FileSystem::Xfs,
            },
            disk_size: self.disk_size.0,
            sync: self.sync,
            delegations: self.delegations,
            lease: self.lease.0,
            mkfs_options: self.mkfs_options.split_whitespace().map(str::to_owned).collect(),
            mount_options: self.mount_options.clone(),
        }
    }

    /// The kernel of the server.
    pub fn server_kernel(&self) -> &str {
        self.server_kernel.as_deref().unwrap_or(&self.kernel)
    }

    /// The key here that says what a key of `[server]` says of the embedded server.
    pub(crate) fn changed_key(&self, of_server: &str) -> Option<&'static str> {
        ["threads", "delegations", "lease"].into_iter().find(|key| *key == of_server)
    }

    /// Keys that describe the kernel's server and differ from what they are by themselves.
    pub fn changed_knfsd(&self) -> Vec<String> {
        const KNFSD: [&str; 10] = [
            "threads",
            "file_system",
            "disk_size",
            "mkfs_options",
            "mount_options",
            "sync",
            "delegations",
            "lease",
            "server_kernel",
            "server_memory",
        ];
        changed_keys(self).filter(|key| KNFSD.contains(&key.as_str())).collect()
    }
}
