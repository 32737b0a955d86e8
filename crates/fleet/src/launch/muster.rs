//! The agents that an aggregator is to start.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::local::{self, LocalConfig};
use super::ssh::{self, SshConfig};
use super::{LastLines, LaunchError, Started, ranked};
use crate::secure::{Handshakes, Listener};

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
    /// The first one beside the aggregator, whose rank it has; the others dial it.
    Ranked {
        ranks: Range<u32>,
        /// Of the first one.
        name: String,
        /// Of the aggregator's program.
        arguments: Vec<String>,
        deadline: Duration,
    },
}

impl Muster {
    /// How many agents.
    pub(crate) fn agents(&self) -> usize {
        match self {
            Self::Local { processes, .. } => *processes as usize,
            Self::Ssh { hosts, .. } => hosts.len(),
            Self::Ranked { ranks, .. } => ranks.len(),
        }
    }

    /// Starts them; `tell` hears what users should know. `listener`: where they dial, if they do.
    pub(crate) async fn launch(
        self,
        listener: Option<Listener>,
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
            Self::Ranked { ranks, name, arguments, deadline } => {
                let none = "it does not listen for agents".to_owned();
                let listener = listener.ok_or_else(|| LaunchError::new(name.as_str(), none))?;
                let others = ranks.start + 1..ranks.end;
                let number = u32::try_from(others.len()).unwrap_or(u32::MAX);
                let until = Instant::now() + deadline;
                let admitted = listener.accept(others, ranks.end, until, &mut Handshakes::new()).await;
                let admitted = admitted.map_err(|missing| ranked::late(&missing, number, deadline))?;
                admitted.refused.iter().for_each(|refusal| tell(&refusal.to_string()));
                let program = "/proc/self/exe".into();
                let beside = LocalConfig { first: 0, processes: 1, program, arguments };
                let mut started = local::launch(&beside, &mut |_, _| Ok(()))?;
                started.iter_mut().for_each(|agent| agent.name.clone_from(&name));
                started.extend(admitted.joined.into_iter().map(|agent| Started {
                    // The controller has given it.
                    name: agent.host,
                    stream: agent.stream,
                    process: None,
                    errors: LastLines::default(),
                    keep: None,
                    leads: None,
                }));
                Ok(started)
            }
        }
    }
}
