//! Targets of a study: what they are, whether they are still the same, and the working directories on them.

use benchmaster_record::results::ServedBy;
use std::collections::BTreeMap;
use std::io;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchmaster_nfs_client::mount::MountError;
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_probe::ProbeError;
use benchmaster_record::results::StudyResults;
use benchmaster_telemetry::Environment;
use benchmaster_telemetry::environment::TargetEnvironment;
use benchmaster_workload::area::{AreaError, scratch_directory, try_mount};
use benchmaster_workload::target::{NfsTarget, Target};

use super::services::{Reached, Services};
use super::setup::Mount;
use super::{RunError, RunEvent};
use benchmaster_study::plan::Plan;
use benchmaster_study::settings::{Settings, TargetKind};

/// How long a server has to take a connection, and then to say anything, before anything is made for a study of it.
const PATIENCE: Duration = Duration::from_secs(4);

/// Whether every target is a directory, or an export that can be mounted.
pub(super) fn check_targets(plan: &Plan, observe: &mut dyn FnMut(RunEvent<'_>)) -> Result<(), RunError> {
    let mut mounted = Vec::new();
    plan.all_treatments().try_for_each(|treatment| check_target(&treatment.settings, &mut mounted, observe))
}

/// Why targets of a plan could not be measured now, each reason once.
pub fn missing_targets(plan: &Plan) -> Vec<RunError> {
    let (mut seen, mut mounted, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for settings in plan.all_treatments().map(|treatment| &treatment.settings) {
        if seen.contains(&&settings.target) {
            continue;
        }
        seen.push(&settings.target);
        if let Err(error) = check_target(settings, &mut mounted, &mut |_| {})
            && missing.iter().all(|known: &RunError| known.to_string() != error.to_string())
        {
            missing.push(error);
        }
    }
    missing
}

fn check_target(
    settings: &Settings,
    mounted: &mut Vec<MountOptions>,
    observe: &mut dyn FnMut(RunEvent<'_>),
) -> Result<(), RunError> {
    match settings.target.kind() {
        // What is there on other hosts, or will be there once steps are done, is not known now.
        _ if !settings.launcher().is_here() || settings.server.is_managed() => Ok(()),
        TargetKind::Directory(path) if !path.is_dir() => Err(AreaError::NotADirectory { path }.into()),
        // A device, or a directory for a bind mount.
        TargetKind::Mount(mount) if mount.source.starts_with('/') && !Path::new(&mount.source).exists() => {
            Err(RunError::NoSource { source_path: mount.source.clone().into() })
        }
        TargetKind::External(_) => {
            let options = super::services::options(settings)?;
            if mounted.contains(&options) {
                return Ok(());
            }
            observe(RunEvent::Note(&format!("connecting to {}:{}", options.host, options.nfs_port())));
            answers(&options)?;
            try_mount(&NfsTarget::new(options.clone()))?;
            mounted.push(options);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether a server listens and answers. A client that mounts waits longer: for a server that restarts, for example.
fn answers(options: &MountOptions) -> Result<(), RunError> {
    // A name without address is told by mounting.
    let addresses = (options.host.as_str(), options.nfs_port()).to_socket_addrs();
    if options.transport == Transport::Udp {
        return Ok(());
    }
    let mut failed = None;
    for address in addresses.into_iter().flatten() {
        match benchmaster_probe::answers(address, PATIENCE) {
            Ok(()) => return Ok(()),
            Err(error) => failed = Some(error),
        }
    }
    let Some(error) = failed else { return Ok(()) };
    let server = format!("{}:{}", options.host, options.nfs_port());
    let start = "start the server, or give its port as nfs://server:PORT/export";
    let other = "check that it is an NFS server";
    let silent = || {
        io::Error::other(format!("it accepts the connection, but sends nothing for {} s", PATIENCE.as_secs()))
    };
    let (error, fix) = match error {
        ProbeError::Connect { source, .. } => (source, start),
        ProbeError::Io { source, .. } if is_timeout(source.kind()) => (silent(), other),
        ProbeError::Io { source, .. } => (source, other),
        error => (io::Error::other(error), other),
    };
    Err(AreaError::Mount(MountError::Connect { server, error, fix }).into())
}

fn is_timeout(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether a treatment's target can be looked at from this process before the first run.
pub(super) fn is_known(settings: &Settings) -> bool {
    let mounted = matches!(settings.target.kind(), TargetKind::Mount(_));
    settings.launcher().is_here() && !mounted && !settings.server.is_managed()
}

/// The environment of this host, and, when treatments differ in it, as seen from each further target that is known.
pub(super) fn environments(
    plan: &Plan,
    targets: &mut Targets,
) -> Result<BTreeMap<String, Environment>, RunError> {
    let mut environments = BTreeMap::new();
    let mut seen: Vec<String> = Vec::new();
    for treatment in plan.all_treatments().filter(|treatment| is_known(&treatment.settings)) {
        let settings = &treatment.settings;
        let reached = targets.reach(settings)?;
        let place = place_of(settings, &reached);
        if seen.contains(&place) {
            continue;
        }
        let directory = match &reached.target {
            Target::Directory(path) => Some(path.as_path()),
            Target::Nfs(_) => None,
        };
        let mut environment = benchmaster_telemetry::environment::collect(directory);
        environment.target = environment.target.or_else(|| export(settings, &reached));
        let name = if seen.is_empty() {
            environment.host.clone()
        } else {
            format!("{} ({place})", environment.host)
        };
        environments.insert(name, environment);
        seen.push(place);
    }
    if environments.is_empty() {
        let environment = benchmaster_telemetry::environment::collect(None);
        environments.insert(environment.host.clone(), environment);
    }
    Ok(environments)
}

/// What a target is called where environments are told apart.
pub(super) fn place_of(settings: &Settings, reached: &Reached) -> String {
    match &reached.target {
        Target::Directory(path) => path.display().to_string(),
        Target::Nfs(_) => settings.target.place().to_owned(),
    }
}

/// What is known of a target that no host has mounted.
pub(super) fn export(settings: &Settings, reached: &Reached) -> Option<TargetEnvironment> {
    let Target::Nfs(target) = &reached.target else { return None };
    Some(TargetEnvironment {
        path: settings.target.place().to_owned(),
        mount_point: String::new(),
        source: match &reached.service {
            Some(service) if service.server == ServedBy::Embedded => "the embedded server".into(),
            // Of a server behind a relay not the relay's address, but its own.
            _ => match settings.target.mount_options("") {
                Ok(Some(options)) => source(&options.host, &options.export),
                _ => source(&target.options.host, &target.options.export),
            },
        },
        file_system: "nfs".into(),
        options: String::new(),
        mount_line: String::new(),
        total_bytes: 0,
        free_bytes: 0,
        free_files: None,
        read_ahead_kib: None,
    })
}

fn source(host: &str, export: &[u8]) -> String {
    format!("{host}:{}", String::from_utf8_lossy(export))
}

/// Whether the targets are those of the finished runs: after a reboot the mount may be missing, and a relative path may
/// mean another directory.
pub(super) fn check_same_targets(
    earlier: &StudyResults,
    now: &BTreeMap<String, Environment>,
) -> Result<(), RunError> {
    let last = earlier.runs.last().map(|run| run.session);
    let Some(session) = earlier.sessions.iter().find(|session| Some(session.id) == last) else {
        return Ok(());
    };
    let then: Vec<_> =
        session.environment.values().filter_map(|environment| environment.target.as_ref()).collect();
    let text = |target: &TargetEnvironment| {
        format!("`{}` on {} ({})", target.path, target.file_system, target.source)
    };
    for target in now.values().filter_map(|environment| environment.target.as_ref()) {
        let same_place = |old: &&&TargetEnvironment| old.path == target.path;
        // Local devices change their names; servers do not.
        let remote = |source: &str| source.contains(':') || source.starts_with("//");
        let same = then.iter().find(same_place).is_some_and(|old| {
            old.file_system == target.file_system && (old.source == target.source || !remote(&old.source))
        });
        if !same {
            let then = then.iter().map(|old| text(old)).collect::<Vec<_>>().join(", ");
            return Err(RunError::OtherTarget { then, now: text(target) });
        }
    }
    Ok(())
}

/// How an export of the lab's server is reached by Benchmaster's own client in the lab's machines.
fn reach_in_lab(settings: &Settings) -> Result<Reached, RunError> {
    let mut options = super::services::options(settings)?;
    options.host = settings.server_host().unwrap_or_default();
    let place = format!("{} of {}:{}", NfsTarget::new(options.clone()).place(), options.uid, options.gid);
    Ok(Reached { target: Target::Nfs(NfsTarget::new(options)), place, service: None, network: None })
}

/// The targets of a study, with the servers and networks that they need.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) id: String,
    pub(super) scratch: Option<PathBuf>,
    pub(super) services: Services,
}

impl Targets {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.into(), scratch: None, services: Services::default() }
    }

    /// The target of a treatment; a scratch directory, a server and a network are made when they are first asked for.
    pub(super) fn reach(&mut self, settings: &Settings) -> Result<Reached, RunError> {
        let directory = match settings.target.kind() {
            // Hooks run in another current directory.
            TargetKind::Directory(path) => {
                std::path::absolute(&path).map_err(|source| AreaError::Io { action: "find", path, source })?
            }
            TargetKind::Scratch => match &self.scratch {
                Some(scratch) => scratch.clone(),
                None => {
                    let scratch = scratch_directory(&self.id)?;
                    self.scratch = Some(scratch.clone());
                    scratch
                }
            },
            TargetKind::Mount(_) => match Mount::of(settings, &self.id) {
                Some(mount) => mount.path.into(),
                None => PathBuf::new(),
            },
            TargetKind::Embedded(_) | TargetKind::External(_) if settings.lab.is_some() => {
                return reach_in_lab(settings);
            }
            TargetKind::Embedded(_) | TargetKind::External(_) => return self.services.reach(settings),
        };
        let place = directory.display().to_string();
        Ok(Reached { target: Target::Directory(directory), place, service: None, network: None })
    }

    /// Stops servers and networks, and removes the scratch directory.
    pub(super) fn remove(&mut self) -> Result<(), AreaError> {
        self.services.stop();
        if let Some(scratch) = self.scratch.take() {
            std::fs::remove_dir_all(&scratch).map_err(|source| AreaError::Io {
                action: "remove",
                path: scratch,
                source,
            })?;
        }
        Ok(())
    }
}
