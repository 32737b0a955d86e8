//! The servers and emulated networks of a study: started when a treatment first needs them, stopped at the end.

use benchmaster_record::results::ServedBy;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_netem::namespace::Namespace;
use benchmaster_netem::network::NetworkError;
use benchmaster_netem::relay::{Relay, RelayConfig};
use benchmaster_nfs_client::options::{MountOptions, NFS_PORT, Security};
use benchmaster_nfs_server::users::Users;
use benchmaster_nfs_server::{Server, ServerConfig, ServerKerberos};
use benchmaster_record::results::{NetworkAchieved, NetworkRecord, ServiceRecord};
use benchmaster_rpc_gss::{Acceptor, Flavor};
use benchmaster_workload::target::{NfsTarget, Target};

use super::RunError;
use super::certificates::Certificates;
use super::network::{Networks, Wanted, nanos, relay_record, wanted};
use benchmaster_study::settings::{SERVER, ServerSettings, Settings, TargetKind};

/// The port on which the kernel's client asks for those of NFSv3.
const PORTMAP_PORT: u16 = 111;

/// Servers, relays and networks that run.
#[derive(Debug, Default)]
pub(super) struct Services {
    servers: Vec<Embedded>,
    relays: Vec<Relaying>,
    networks: Networks,
    /// The server in the network of the study's lab.
    lab: Option<Embedded>,
    /// Why there can be no network between namespaces, once that is known.
    refused: Option<String>,
}

/// How the target of a treatment is reached.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    pub(super) target: Target,
    /// The same for all ways to reach the same files.
    pub(super) place: String,
    /// Who serves it, if it is an export.
    pub(super) service: Option<ServiceRecord>,
    /// The network between namespaces over which it is reached.
    pub(super) network: Option<usize>,
}

#[derive(Debug)]
struct Embedded {
    settings: ServerSettings,
    /// Where it listens besides its first address.
    also_listens: Vec<SocketAddr>,
    /// What protects its connections, and the certificates made for it.
    security: (Protection, Option<Certificates>),
    /// Whether it can lose what is not stable.
    volatile: bool,
    export: String,
    /// The network whose server it is.
    network: Option<usize>,
    server: Arc<Server>,
}

impl Embedded {
    /// Whether it is the one that a treatment wants.
    fn is_for(&self, settings: &Settings, export: &str, network: Option<usize>) -> bool {
        let same = self.settings == settings.server && self.volatile == settings.cuts_power();
        let same = same && settings.target.also_listens() == Ok(self.also_listens.clone());
        same && self.security.0 == protection(settings) && self.export == export && self.network == network
    }
}

#[derive(Debug)]
struct Relaying {
    target: SocketAddr,
    relay: Relay,
}

impl Services {
    /// How an export is reached.
    pub(super) fn reach(&mut self, settings: &Settings) -> Result<Reached, RunError> {
        let mut options = options(settings)?;
        let embedded = matches!(settings.target.kind(), TargetKind::Embedded(_));
        let url =
            if embedded { options.to_string().replacen("127.0.0.1", SERVER, 1) } else { options.to_string() };
        let (network, relayed) = self.network(settings)?;
        if embedded {
            let embedded = self.server(settings, &options, network)?;
            if let Some(certificates) = &embedded.security.1 {
                certificates.give(&mut options);
            }
            let address = embedded.server.address();
            (options.host, options.port) = (address.ip().to_string(), Some(address.port()));
        }
        // Files of one user may not be another's to change; servers of different networks have the same address.
        let place = format!("{} of {}:{}", NfsTarget::new(options.clone()).place(), options.uid, options.gid);
        let place = match network {
            Some(network) => format!("{place} in network {network}"),
            None => place,
        };
        if relayed.is_some() {
            let delay = settings.network.delay.0;
            let mount_port = options.mount_port.filter(|port| *port != options.nfs_port());
            if let Some(port) = mount_port {
                options.mount_port =
                    Some(self.relay(settings, &resolve(&options.host, port)?, delay)?.port());
            }
            let address = self.relay(settings, &resolve(&options.host, options.nfs_port())?, delay)?;
            (options.host, options.port) = (address.ip().to_string(), Some(address.port()));
        }
        let network_record = match (network, relayed) {
            (Some(index), _) => self.networks.wired(index).record(&settings.network),
            (None, Some(record)) => record,
            (None, None) => NetworkRecord::default(),
        };
        let server = if embedded {
            ServedBy::Embedded
        } else if settings.server.is_managed() {
            ServedBy::Managed
        } else {
            ServedBy::External
        };
        let service = ServiceRecord { url, server, network: network_record, achieved: None };
        Ok(Reached { target: Target::Nfs(NfsTarget::new(options)), place, service: Some(service), network })
    }

    /// The network between namespaces, if there is one, or what is to be stored of the relay instead.
    fn network(&mut self, settings: &Settings) -> Result<(Option<usize>, Option<NetworkRecord>), RunError> {
        let relay = |refused: Option<&str>| Ok((None, Some(relay_record(&settings.network, refused))));
        let (means, fallback) = match wanted(settings) {
            Wanted::Plain => return Ok((None, None)),
            Wanted::Relay => return relay(None),
            Wanted::Namespaces { means, fallback } => (means, fallback),
        };
        if let Some(reason) = self.refused.as_deref().filter(|_| fallback) {
            return relay(Some(reason));
        }
        match self.networks.get(settings, means) {
            Ok(index) => Ok((Some(index), None)),
            // Whatever stands in the way is told with the results.
            Err(error) if fallback => {
                let reason = error.to_string();
                let refused = self.refused.insert(reason);
                relay(Some(refused))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The server with these settings, started if there is none yet.
    fn server(
        &mut self,
        settings: &Settings,
        options: &MountOptions,
        network: Option<usize>,
    ) -> Result<&Embedded, RunError> {
        let export = export_of(options);
        let same = |known: &Embedded| known.is_for(settings, &export, network);
        let index = match self.servers.iter().position(same) {
            Some(index) => index,
            None => {
                let mut config = config(settings, &export)?;
                let wired = network.map(|network| self.networks.wired(network).network().server_address());
                let address = wired.unwrap_or_else(|| config.listen.ip());
                let protection = protection(settings);
                let certificates = Certificates::make(protection.0, address)?;
                config.tls = certificates.as_ref().map(Certificates::of_server);
                config.require_tls = certificates.is_some();
                if protection.1 != Flavor::Sys {
                    config.security = [protection.1].into_iter().collect();
                    config.kerberos = Some(kerberos(settings)?);
                }
                let server = match network.map(|network| self.networks.wired(network)) {
                    // Its threads stay in the namespace of the one that starts them.
                    Some(wired) => {
                        config.listen = SocketAddr::new(wired.network().server_address(), 0);
                        wired
                            .network()
                            .server()
                            .run(|| Server::start(config))
                            .map_err(NetworkError::from)??
                    }
                    None => Server::start(config)?,
                };
                let also_listens = also_listens(settings)?;
                let (settings, volatile) = (settings.server.clone(), settings.cuts_power());
                let server = Arc::new(server);
                let security = (protection, certificates);
                self.servers.push(Embedded {
                    settings,
                    also_listens,
                    security,
                    volatile,
                    export,
                    network,
                    server,
                });
                self.servers.len() - 1
            }
        };
        Ok(&self.servers[index])
    }

    /// Whether another server is in the lab's network than a treatment wants.
    pub(super) fn has_other_in_lab(&self, settings: &Settings) -> bool {
        let same =
            |known: &Embedded| settings.is_embedded() && known.is_for(settings, &lab_export(settings), None);
        self.lab.as_ref().is_some_and(|known| !same(known))
    }

    /// Starts the embedded server of a treatment in the network of its lab, where the kernels of machines find it, if that is
    /// who serves and it does not run.
    pub(super) fn serve_lab(&mut self, settings: &Settings, namespace: &Namespace) -> Result<(), RunError> {
        if self.has_other_in_lab(settings) {
            self.lab = None;
        }
        if !settings.is_embedded() || self.lab.is_some() {
            return Ok(());
        }
        let export = lab_export(settings);
        let mut config = config(settings, &export)?;
        let address = benchmaster_lab::network::server_address();
        config.listen = (address, NFS_PORT).into();
        config.portmap = Some((address, PORTMAP_PORT).into());
        let server = namespace.run(|| Server::start(config)).map_err(NetworkError::from)??;
        let (volatile, server) = (settings.cuts_power(), Arc::new(server));
        self.lab = Some(Embedded {
            settings: settings.server.clone(),
            also_listens: Vec::new(),
            security: ((Security::None, Flavor::Sys), None),
            volatile,
            export,
            network: None,
            server,
        });
        Ok(())
    }

    /// The lab ends: what was in its network does so before.
    pub(super) fn leave_lab(&mut self) {
        self.lab = None;
    }

    /// Where the relay to a server listens, started if there is none yet.
    fn relay(
        &mut self,
        settings: &Settings,
        target: &SocketAddr,
        delay: Duration,
    ) -> Result<SocketAddr, RunError> {
        let same = |known: &&Relaying| known.target == *target && known.relay.delay() == delay;
        if let Some(known) = self.relays.iter().find(same) {
            return Ok(known.relay.address());
        }
        let mut config = RelayConfig::new(*target, delay);
        if let (true, Ok(listen)) = (settings.server.listen.is_some(), settings.server.listens()) {
            // Clients on other hosts reach it where they would reach the server.
            config.listen = SocketAddr::new(listen.ip(), 0);
        }
        let relay = Relay::start(config)?;
        let address = relay.address();
        self.relays.push(Relaying { target: *target, relay });
        Ok(address)
    }

    /// The embedded server of a treatment, if it runs.
    pub(super) fn embedded(&self, settings: &Settings, network: Option<usize>) -> Option<&Arc<Server>> {
        if settings.lab.is_some() {
            return self.lab.as_ref().map(|known| &known.server);
        }
        let TargetKind::Embedded(_) = settings.target.kind() else { return None };
        let options = settings.target.mount_options("127.0.0.1").ok().flatten()?;
        let export = export_of(&options);
        let same = |known: &&Embedded| known.is_for(settings, &export, network);
        Some(&self.servers.iter().find(same)?.server)
    }

    /// The namespaces of a network's clients.
    pub(super) fn namespaces(&mut self, network: Option<usize>) -> Vec<Arc<Namespace>> {
        network.map_or_else(Vec::new, |index| self.networks.wired(index).clients.clone())
    }

    /// The network of a run.
    pub(super) fn wired(&mut self, network: Option<usize>) -> Option<&mut super::network::Wired> {
        network.map(|index| self.networks.wired(index))
    }

    /// What the emulation did while workloads of a run were measured; of a relay since it was started.
    pub(super) fn achieved(&mut self, network: Option<usize>, target: &Target) -> Option<NetworkAchieved> {
        if let Some(wired) = self.wired(network) {
            return wired.carried();
        }
        let Target::Nfs(target) = target else { return None };
        let port = target.options.nfs_port();
        let relaying = self.relays.iter().find(|relaying| relaying.relay.address().port() == port)?;
        let achieved = relaying.relay.achieved();
        Some(NetworkAchieved {
            lateness_p99_ns: Some(nanos(achieved.lateness_99)),
            lateness_max_ns: Some(nanos(achieved.lateness_max)),
            ..NetworkAchieved::default()
        })
    }

    /// Stops everything.
    pub(super) fn stop(&mut self) {
        self.lab = None;
        self.relays.clear();
        self.servers.clear();
        self.networks.clear();
    }
}

/// The export of the embedded server in a lab: that of the target.
fn lab_export(settings: &Settings) -> String {
    match settings.target.kind() {
        TargetKind::Mount(mount) => mount.source.split_once(':').map_or("/", |(_, path)| path).to_owned(),
        _ => match settings.target.mount_options("127.0.0.1") {
            Ok(Some(options)) => export_of(&options),
            _ => "/export".into(),
        },
    }
}

fn export_of(options: &MountOptions) -> String {
    String::from_utf8_lossy(&options.export).into_owned()
}

fn config(settings: &Settings, export: &str) -> Result<ServerConfig, RunError> {
    let config = settings.server.config(export);
    let config =
        config.map_err(|(key, problem, _)| RunError::Target { target: format!("server.{key}"), problem })?;
    let also_listen = also_listens(settings)?;
    // It costs copies of data that are not stable.
    Ok(ServerConfig { volatile: settings.cuts_power(), also_listen, ..config })
}

/// The addresses on which the embedded server of a treatment listens besides the first.
fn also_listens(settings: &Settings) -> Result<Vec<SocketAddr>, RunError> {
    settings.target.also_listens().map_err(|mistake| RunError::Target {
        target: format!("target.{}", mistake.key),
        problem: mistake.problem,
    })
}

/// What protects connections, and what protects calls.
type Protection = (Security, Flavor);

/// What protects what is said to the embedded server of a treatment.
fn protection(settings: &Settings) -> Protection {
    let options = settings.target.mount_options("127.0.0.1").ok().flatten();
    options.map_or((Security::None, Flavor::Sys), |options| (options.security, options.sec))
}

/// The embedded server's keys, and who its users are.
fn kerberos(settings: &Settings) -> Result<ServerKerberos, RunError> {
    let acceptor = Acceptor::new(settings.server.keytab.as_deref())?;
    let users = settings.server.map.as_deref().map(Users::read).transpose()?;
    Ok(ServerKerberos { mechanism: Arc::new(acceptor), users: users.unwrap_or_default() })
}

/// The options of an export; those of the embedded server with its address, but not yet its port.
pub(super) fn options(settings: &Settings) -> Result<MountOptions, RunError> {
    let wrong = |problem: String| RunError::Target { target: settings.target.place().to_owned(), problem };
    let options = settings.target.mount_options("127.0.0.1").map_err(|mistake| wrong(mistake.problem))?;
    options.ok_or_else(|| wrong("is no URL".into()))
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, RunError> {
    let failed = |source| RunError::Resolve { host: host.to_owned(), source };
    let mut addresses = (host, port).to_socket_addrs().map_err(failed)?;
    addresses.next().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
}
