//! What a fleet shall be.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_netem::namespace::Namespace;

use crate::launch::guests::Opened;
use crate::tree::FAN_OUT;

/// What a fleet shall be.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// How agents are started, and where.
    pub launch: Launch,
    /// Clients of a run, over all agents; at least one for each.
    pub clients: u32,
    /// A host, reached over ssh, whose agent has no clients and looks on: the server's.
    pub server: Option<String>,
    /// The program of agents.
    pub binary: PathBuf,
    /// Arguments of local agents.
    pub arguments: Vec<String>,
    /// An agent that gives no sign of life for this long is lost, and so is a controller for its agents.
    pub patience: Duration,
    /// Most agents behind one process: more are led by aggregators.
    pub fan_out: u32,
    /// How long the start of all agents may take.
    pub launch_timeout: Duration,
    /// Time for messages to be delivered before a phase starts, beside what was measured: the longest round trip, and a little
    /// for each agent.
    pub delivery: Duration,
}

impl FleetConfig {
    /// Agents of a program that is `benchmaster`, with the usual times.
    pub fn new(launch: Launch, clients: u32, binary: impl Into<PathBuf>) -> Self {
        Self {
            launch,
            clients,
            server: None,
            binary: binary.into(),
            arguments: ["agent", "--stdio"].map(str::to_owned).into(),
            patience: Duration::from_secs(5),
            fan_out: FAN_OUT,
            launch_timeout: Duration::from_secs(60),
            delivery: Duration::from_millis(3),
        }
    }
}

/// How agents are started, and where.
#[derive(Debug, Clone)]
pub enum Launch {
    /// Processes on this host.
    Local {
        processes: u32,
        /// The network namespace of each; none: all in that of the controller.
        namespaces: Vec<Arc<Namespace>>,
    },
    /// One on each host, by the system's OpenSSH; see [`ssh`](crate::launch::ssh).
    Ssh {
        /// The hosts, `host` or `user@host`.
        hosts: Vec<String>,
        /// Further options of `ssh`.
        options: Vec<String>,
        /// Where the program is on the hosts; `None`: it is copied.
        binary_on_hosts: Option<PathBuf>,
    },
    /// Started by others already, on machines of a lab for example; see [`guests`](crate::launch::guests).
    Opened {
        /// Those with clients.
        clients: Vec<Opened>,
        /// The one that looks on at the server.
        server: Option<Opened>,
    },
    /// Something else starts them, and they dial this host; see [`external`](crate::launch::external).
    External {
        /// How many.
        agents: u32,
        /// Where this host listens: an address or a name, with a port or without.
        address: String,
        /// The file with the controller's key.
        credentials: PathBuf,
    },
    /// One on each node of a Slurm cluster; see [`slurm`](crate::launch::slurm).
    Slurm {
        /// How many nodes; `None`: those of the allocation in which this process runs.
        nodes: Option<u32>,
        /// Further options of `srun`.
        options: Vec<String>,
        /// Address of this host that the nodes can reach.
        address: Option<String>,
    },
}
