//! The agents that an aggregator is to start.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::local::{self, LocalConfig};
use super::ssh::{self, SshConfig};
use super::{LaunchError, Started};

/// Which agents, and how they are started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Muster {
    /// Processes on the aggregator's host.
    Local {
        /// The number of the first one, from 0.
        first: u32,
        processes: u32,
        program: PathBuf,
        arguments: Vec<String>,
    },
    /// See [`ssh`].
    Ssh {
        hosts: Vec<String>,
        options: Vec<String>,
        binary: PathBuf,
        binary_on_hosts: Option<PathBuf>,
        deadline: Duration,
        /// How many hosts are connected to at the same time.
        parallel: usize,
    },
}

impl Muster {
    /// How many agents.
    pub(crate) fn agents(&self) -> usize {
        match self {
            Self::Local { processes, .. } => *processes as usize,
            Self::Ssh { hosts, .. } => hosts.len(),
        }
    }

    /// Starts them; `tell` hears what users should know.
    pub(crate) async fn launch(
        self,
        tell: &mut (impl FnMut(&str) + ?Sized),
    ) -> Result<Vec<Started>, LaunchError> {
        match self {
            Self::Local { first, processes, program, arguments } => {
                local::launch(&LocalConfig { first, processes, program, arguments }, &mut |_, _| Ok(()))
            }
            Self::Ssh { hosts, options, binary, binary_on_hosts, deadline, parallel } => {
                let usual = SshConfig::new(binary);
                let config = SshConfig { options, binary_on_hosts, deadline, parallel, ..usual };
                ssh::launch(&config, &hosts, tell).await
            }
        }
    }
}
