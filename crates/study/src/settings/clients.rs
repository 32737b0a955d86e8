//! The section `[clients]`: who generates load, and where.

use benchmaster_record::words;
use benchmaster_units::TimeSpan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most clients of a study.
pub const MOST_CLIENTS: u32 = 10_000;

/// Who generates load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSettings {
    /// Clients over all hosts. Each does the whole workload with workers of its own, and with files of its own where
    /// filesets are private. If absent, one for each host of `hosts`, or one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub count: Option<u32>,
    /// Hosts of the clients: names as `ssh` knows them, or patterns such as `c[1-10]`. Clients are spread over them evenly,
    /// in contiguous shares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["c[1-10]", "root@storage"]]))]
    pub hosts: Vec<String>,
    /// How clients are started. If absent, `lab` with `[lab]`, `ssh` with `hosts`, `local` for more than one
    /// client, else `threads`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Launcher>,
    /// Delay from the start of one client to that of the next; all end together.
    pub stagger: TimeSpan,
    /// Options of `ssh`, for clients and for the host of a managed server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["-J", "gateway"]]))]
    pub ssh_options: Vec<String>,
    /// Options of `srun`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["--partition=io", "--cpus-per-task=2"]]))]
    pub slurm_options: Vec<String>,
    /// Nodes of a Slurm cluster, with one process on each, or agents that something else starts. If absent, those of the
    /// allocation in which the study is run, or one for each client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub nodes: Option<u32>,
    /// Address of this host that agents dial, with a port or without. If absent, that of the host's name for nodes of a
    /// Slurm cluster, and `127.0.0.1:7049` for agents that something else starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// File with the key of this host for agents that something else starts: `controller` in the directory that `benchmaster
    /// fleet credentials` wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["/home/me/crew/controller"]))]
    pub credentials: Option<String>,
    /// Path of the program on the hosts. If absent, it is copied there when it is missing or of another version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// Give each client process a network namespace of its own, also when no network is emulated.
    pub namespaces: bool,
    /// A process that gives no sign of life for this time is lost, and the run with it.
    pub patience: TimeSpan,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            count: None,
            hosts: Vec::new(),
            launcher: None,
            stagger: TimeSpan::default(),
            ssh_options: Vec::new(),
            slurm_options: Vec::new(),
            nodes: None,
            address: None,
            credentials: None,
            binary: None,
            namespaces: false,
            patience: TimeSpan::seconds(5),
        }
    }
}

impl ClientSettings {
    /// Clients over all hosts, of which there are `hosts`.
    pub fn number(&self, hosts: usize) -> u32 {
        self.count.unwrap_or_else(|| u32::try_from(hosts).unwrap_or(u32::MAX).max(1))
    }
}

words! {
    /// How clients are started.
    #[derive(JsonSchema)]
    Launcher {
        /// All in this process.
        Threads = "threads",
        /// One process for each client, on this host.
        Local = "local",
        /// One process on each host of `hosts`, by OpenSSH.
        Ssh = "ssh",
        /// Tasks of Slurm, by `srun`.
        Slurm = "slurm",
        /// Something else starts the processes (Kubernetes, `mpiexec`, a person), which dial this host.
        External = "external",
        /// One process on each client of a `[lab]`.
        Lab = "lab",
    }
}

impl Launcher {
    /// Whether clients are on this host.
    pub fn is_here(self) -> bool {
        matches!(self, Self::Threads | Self::Local)
    }
}
