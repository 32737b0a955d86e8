//! Starting the agents of a configuration, or the aggregators that do.

use super::config::{FleetConfig, Launch};
use super::error::FleetError;
use super::group::GREETED;
use crate::launch::{LaunchError, Leads, Muster, Started, external, guests, local, slurm, ssh};
use crate::tree;

/// Sessions of ssh that are opened at the same time, over all aggregators.
const SESSIONS: usize = 256;

/// Starts all: those with clients, and the one at the server.
pub(super) async fn all(
    config: &FleetConfig,
    tell: &mut dyn FnMut(&str),
) -> Result<(Vec<Started>, Option<Started>), FleetError> {
    let clients = match &config.launch {
        Launch::Local { processes, namespaces } if namespaces.is_empty() => {
            let group = |first: u32, processes: u32| Muster::Local {
                first,
                processes,
                program: config.binary.clone(),
                arguments: config.arguments.clone(),
            };
            let groups = tree::groups(*processes as usize, config.fan_out).into_iter();
            let groups: Vec<Muster> =
                groups.map(|group_of| group(group_of.start as u32, group_of.len() as u32)).collect();
            if groups.is_empty() {
                group(0, *processes).launch(None, tell).await?
            } else {
                aggregators(config, groups)?
            }
        }
        Launch::Local { processes, namespaces } => {
            if namespaces.len() != *processes as usize {
                let text = format!("{} network namespaces for {processes} agents", namespaces.len());
                return Err(FleetError::Config(text));
            }
            let local = local::LocalConfig {
                first: 0,
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
            let groups = tree::groups(hosts.len(), config.fan_out);
            let parallel = (SESSIONS / groups.len().max(1)).clamp(1, GREETED);
            let group = |of: std::ops::Range<usize>| Muster::Ssh {
                hosts: hosts.get(of).unwrap_or_default().to_vec(),
                options: options.clone(),
                binary: config.binary.clone(),
                binary_on_hosts: binary_on_hosts.clone(),
                deadline: config.launch_timeout,
                parallel,
            };
            if groups.is_empty() {
                group(0..hosts.len()).launch(None, tell).await?
            } else {
                aggregators(config, groups.into_iter().map(group).collect())?
            }
        }
        Launch::External { agents, address, credentials } => {
            let external = external::ExternalConfig {
                address: address.clone(),
                agents: *agents,
                credentials: credentials.clone(),
                deadline: config.launch_timeout,
                fan_out: config.fan_out,
                arguments: config.arguments.clone(),
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
                fan_out: config.fan_out,
                own_arguments: config.arguments.clone(),
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

/// An aggregator on this host for each group.
fn aggregators(config: &FleetConfig, groups: Vec<Muster>) -> Result<Vec<Started>, FleetError> {
    let local = local::LocalConfig {
        first: 0,
        processes: u32::try_from(groups.len()).unwrap_or(u32::MAX),
        program: config.binary.clone(),
        arguments: config.arguments.clone(),
    };
    let started = local::launch(&local, &mut |_, _| Ok(()))?;
    let named = (1..).zip(started).zip(groups).map(|((number, started), muster)| Started {
        name: format!("aggregator-{number}"),
        leads: Some(Leads { muster, post: None }),
        ..started
    });
    Ok(named.collect())
}

fn over_ssh(config: &FleetConfig, options: &[String], there: Option<&std::path::PathBuf>) -> ssh::SshConfig {
    ssh::SshConfig {
        options: options.to_vec(),
        binary_on_hosts: there.cloned(),
        deadline: config.launch_timeout,
        ..ssh::SshConfig::new(config.binary.clone())
    }
}
