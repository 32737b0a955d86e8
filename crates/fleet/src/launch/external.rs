//! Agents that something else starts (Kubernetes, `mpiexec`, a person): they dial the controller, with a rank and with
//! credentials that were made before (see [`ControllerKey`]).

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::{LastLines, LaunchError, Started, by_host, ranked, resolve};
use crate::secure::{ControllerKey, Listener};

/// The port where nothing else is said: agents must know it.
pub const PORT: u16 = 7049;

/// Which agents are awaited, and where.
#[derive(Debug, Clone)]
pub struct ExternalConfig {
    /// Where the controller listens: an address or a name of this host, with a port or without (then [`PORT`]).
    pub address: String,
    /// How many agents there are, of the ranks 0 and up.
    pub agents: u32,
    /// The file with the controller's key.
    pub credentials: PathBuf,
    /// How long it may take until all of them are there.
    pub deadline: Duration,
    /// Most agents behind one process: see [`tree`](crate::tree).
    pub fan_out: u32,
    /// Arguments of this program for an agent on standard input and output.
    pub arguments: Vec<String>,
}

/// Waits for all agents; they come in the order of their ranks, each named after its host. `tell` hears what users should know.
///
/// # Errors
/// When the address or the file cannot be used, or agents are not there in time: which, and who was refused.
pub async fn launch(
    config: &ExternalConfig,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Started>, LaunchError> {
    let failed = |reason: String| LaunchError::new("external", reason);
    let deadline = Instant::now() + config.deadline;
    let (address, _) = resolve(&config.address, PORT).await.map_err(failed)?;
    let key = ControllerKey::read_file(&config.credentials).map_err(|error| failed(error.to_string()))?;
    let listener = Listener::bind_with(address, &key).await.map_err(|error| failed(error.to_string()))?;
    tell(&format!("waiting for {} agents, which dial {}", config.agents, listener.address()));
    let mut ranked = ranked::admit(listener, config.agents, config.fan_out, &config.arguments, deadline)
        .await
        .map_err(|missing| ranked::late(&missing, config.agents, config.deadline))?;
    ranked.admitted.refused.iter().for_each(|refusal| tell(&refusal.to_string()));
    let mut leads = ranked.leads();
    let started = by_host(ranked.admitted.joined).map(|(name, agent)| Started {
        name,
        stream: agent.stream,
        process: None,
        errors: LastLines::default(),
        keep: None,
        leads: leads(),
    });
    Ok(started.collect())
}
