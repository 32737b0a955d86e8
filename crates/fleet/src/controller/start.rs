//! Starting the agents of a configuration.

use super::config::{FleetConfig, Launch};
use super::error::FleetError;
use crate::launch::{LaunchError, Started, external, guests, local, slurm, ssh};

/// Starts all: those with clients, and the one at the server.
pub(super) async fn all(
    config: &FleetConfig,
    tell: &mut dyn FnMut(&str),
) -> Result<(Vec<Started>, Option<Started>), FleetError> {
    let clients = match &config.launch {
        Launch::Local { processes, namespaces } => {
            if !namespaces.is_empty() && namespaces.len() != *processes as usize {
                let text = format!("{} network namespaces for {processes} agents", namespaces.len());
                return Err(FleetError::Config(text));
            }
            let local = local::LocalConfig {
                processes: *processes,
                program: config.binary.clone(),
                arguments: config.arguments.clone(),
            };
            local::launch(&local, &mut |number, command| {
                let namespace = namespaces.get(number as usize);
                namespace.map_or(Ok(()), |namespace| namespace.apply(command).map_err(|e| e.to_string()))
            })?
        }
        Launch::Opened { clients, server } => {
            let server = guests::take(server.as_slice())?.pop();
            return Ok((guests::take(clients)?, server));
        }
        Launch::Ssh { hosts, options, binary_on_hosts } => {
            let ssh = over_ssh(config, options, binary_on_hosts.as_ref());
            ssh::launch(&ssh, hosts, tell).await?
        }
        Launch::External { agents, address, credentials } => {
            let external = external::ExternalConfig {
                address: address.clone(),
                agents: *agents,
                credentials: credentials.clone(),
                deadline: config.launch_timeout,
            };
            external::launch(&external, tell).await?
        }
        Launch::Slurm { nodes, options, address } => {
            let Some(nodes) = nodes.or_else(slurm::allocated_nodes) else {
                let text = "how many nodes Slurm shall give is not known outside of an allocation; give \
                            `[clients] count`, or run this within `salloc` or `sbatch`";
                return Err(FleetError::Config(text.into()));
            };
            let slurm = slurm::SlurmConfig {
                options: options.clone(),
                address: address.clone(),
                deadline: config.launch_timeout,
                ..slurm::SlurmConfig::new(config.binary.clone(), nodes)
            };
            slurm::launch(&slurm, tell).await?
        }
    };
    let Some(host) = &config.server else { return Ok((clients, None)) };
    let (options, binary_on_hosts) = match &config.launch {
        Launch::Ssh { options, binary_on_hosts, .. } => (options.as_slice(), binary_on_hosts.as_ref()),
        Launch::Local { .. } | Launch::Opened { .. } | Launch::Slurm { .. } | Launch::External { .. } => {
            (&[][..], None)
        }
    };
    let ssh = over_ssh(config, options, binary_on_hosts);
    let server = ssh::launch(&ssh, std::slice::from_ref(host), tell).await?.pop();
    match server {
        Some(server) => Ok((clients, Some(server))),
        None => Err(LaunchError::new(host.as_str(), "nothing was started").into()),
    }
}

fn over_ssh(config: &FleetConfig, options: &[String], there: Option<&std::path::PathBuf>) -> ssh::SshConfig {
    ssh::SshConfig {
        options: options.to_vec(),
        binary_on_hosts: there.cloned(),
        deadline: config.launch_timeout,
        ..ssh::SshConfig::new(config.binary.clone())
    }
}
