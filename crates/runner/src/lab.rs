//! The lab of a study: machines that are up already, or that the study brings up and ends with.

use benchmaster_record::results::Emulator;
use benchmaster_record::results::LabTime;
use benchmaster_record::results::ServedBy;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_lab::cut::{CutDisk, PowerCut, Recent};
use benchmaster_lab::facts::ProblemKind;
use benchmaster_lab::guest::Command;
use benchmaster_lab::kernel::KernelOrigin;
use benchmaster_lab::{BackEnd, KnfsdConfig, Lab, LabConfig, LabError, LabFacts, MachineProblem, ServerKind};
use benchmaster_netem::link::Link;
use benchmaster_netem::namespace::Namespace;
use benchmaster_record::results::{LabMachine, LabRecord, NetworkAchieved, NetworkRecord, ServiceRecord};

use super::RunError;
use super::network::{achieved_of, link, record};
use benchmaster_diagnosis::validity::machines::{CLIENT_SCRIPT, ClientLook, SERVER_SCRIPT, ServerLook};
use benchmaster_study::plan::Plan;
use benchmaster_study::settings::{
    LabDiskCache, LabServer, LabSettings, Means, SERVER, Settings, TargetKind,
};

/// The name of the server machine.
pub(super) const SERVER_MACHINE: &str = "server";
/// How long is waited for a machine to be found out as hanging, when its agent was lost.
const FOUND_OUT: Duration = Duration::from_secs(14);
/// Most bytes of a console that are kept with a run: the end.
const CONSOLE: u64 = 1 << 20;

/// For how long a lying disk has writes in its cache that it says it has flushed: not so long that it loses its file system,
/// which was made a moment ago.
const LIE: Duration = Duration::from_secs(1);

/// How long a server on virtual time is down after its power was cut: about as long as a machine of a lab takes to boot.
const DOWN: Duration = Duration::from_secs(3);

/// What the network of a lab on virtual time is good for.
const VIRTUAL_NOTE: &str = "tc netem between namespaces of one kernel on virtual time: delays are exact, and nothing else takes time";

/// What the wire of a lab is good for.
const NOTE: &str = "a wire in user space between machines of a lab: TCP of the machines' kernels, delays right to within some \
                    0.1 ms and the time that the machines themselves take";

/// The lab of a study, if it has one that is up.
#[derive(Debug)]
pub(super) struct Labs {
    /// The results directory's id, after which labs of the study are called.
    id: String,
    /// The most clients of all treatments: others leave machines idle.
    clients: u32,
    /// Whether any treatment emulates a network: then all have the same wire.
    emulated: bool,
    /// Whether the server's power is cut in any: then its disk is always one that can lose it.
    power_cuts: bool,
    /// The labs that treatments need. Where they are several, none that is up already is used.
    kinds: Vec<LabConfig>,
    /// Whether a machine of a lab that was up already was lost.
    distrusted: bool,
    up: Option<Up>,
}

#[derive(Debug)]
struct Up {
    lab: Lab,
    /// As a treatment asked for it.
    wanted: LabConfig,
    server: Option<KnfsdConfig>,
    link: Option<Link>,
    /// Whether it is the study's own.
    own: bool,
    facts: LabFacts,
}

impl Labs {
    pub(super) fn new(plan: &Plan, id: &str) -> Self {
        let settings = || plan.all_treatments().map(|treatment| &treatment.settings);
        let in_lab = || settings().filter(|settings| settings.lab.is_some());
        let mut labs = Self {
            id: id.chars().take(8).collect(),
            clients: in_lab().map(Settings::clients).max().unwrap_or(1),
            emulated: in_lab()
                .any(|settings| !settings.network.is_plain() || settings.network.means == Means::Wire),
            power_cuts: in_lab().any(|settings| settings.is_knfsd() && settings.cuts_power()),
            kinds: Vec::new(),
            distrusted: false,
            up: None,
        };
        let mut kinds: Vec<LabConfig> = Vec::new();
        for config in in_lab().filter_map(|settings| labs.wanted(settings).ok().flatten()) {
            if !kinds.contains(&config) {
                kinds.push(config);
            }
        }
        labs.kinds = kinds;
        labs
    }

    /// The lab that a treatment needs, whatever its server is set up like; `None` without one.
    fn wanted(&self, settings: &Settings) -> Result<Option<LabConfig>, RunError> {
        let Some(lab) = &settings.lab else { return Ok(None) };
        let host = settings.server.host.as_deref();
        let config = lab
            .config(self.clients, self.emulated, host)
            .map_err(|(key, problem, _)| RunError::Target { target: format!("lab.{key}"), problem })?;
        let server = match config.server {
            ServerKind::Knfsd(_) => ServerKind::default(),
            server => server,
        };
        let power_cuts = self.power_cuts && matches!(server, ServerKind::Knfsd(_));
        Ok(Some(LabConfig { server, power_cuts, ..config }))
    }

    /// Whether the lab that is up is not the one that a treatment needs.
    pub(super) fn is_other(&self, settings: &Settings) -> Result<bool, RunError> {
        let wanted = self.wanted(settings)?;
        Ok(self.up.as_ref().is_some_and(|up| wanted.as_ref() != Some(&up.wanted)))
    }

    /// Brings up the lab that a treatment needs, if it is not.
    pub(super) fn bring_up(
        &mut self,
        settings: &Settings,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), RunError> {
        let (Some(wanted), Some(lab)) = (self.wanted(settings)?, &settings.lab) else { return Ok(()) };
        if self.up.is_some() {
            return Ok(());
        }
        let server = (lab.server == LabServer::Knfsd).then(|| lab.knfsd());
        let standing =
            if self.kinds.len() > 1 || self.distrusted { None } else { Lab::attach(&wanted.name)? };
        let (lab, own, server) = match standing {
            Some(lab) => {
                let facts = lab.facts()?;
                if let Some(difference) = differs(&facts, &wanted) {
                    let name = wanted.name.clone();
                    return Err(RunError::OtherLab { name, difference });
                }
                tell(&format!("the lab `{}` is up and is used", wanted.name));
                let found = match &facts.config.server {
                    ServerKind::Knfsd(config) => Some(config.clone()),
                    _ => None,
                };
                (lab, false, found)
            }
            None => {
                let config = LabConfig {
                    name: format!("study-{}", self.id),
                    server: server.clone().map_or_else(|| wanted.server.clone(), ServerKind::Knfsd),
                    ..wanted.clone()
                };
                (Lab::up(&config, tell)?, true, server)
            }
        };
        let facts = lab.facts()?;
        self.up = Some(Up { lab, wanted, server, link: None, own, facts });
        Ok(())
    }

    /// Whether the kernel's server is set up in another way than a treatment wants it.
    pub(super) fn has_other_server(&self, settings: &Settings) -> bool {
        let wanted =
            settings.lab.as_ref().filter(|lab| lab.server == LabServer::Knfsd).map(LabSettings::knfsd);
        self.up.as_ref().is_some_and(|up| wanted.is_some() && up.server != wanted)
    }

    /// Sets the kernel's server up as a treatment wants it.
    pub(super) fn restart_server(&mut self, settings: &Settings) -> Result<(), RunError> {
        if let (Some(up), Some(lab)) = (&mut self.up, &settings.lab) {
            let config = lab.knfsd();
            // If that fails it is neither.
            up.server = None;
            up.lab.restart_server(&config)?;
            up.server = Some(config);
        }
        Ok(())
    }

    /// Has the kernel's server lose power, and waits until it serves again. What was done, in words.
    pub(super) fn cut_server(&self, settings: &Settings, seed: u64) -> Result<String, String> {
        let (up, lab) = self.up.as_ref().zip(settings.lab.as_ref()).ok_or("there is no lab")?;
        let disk = cut_disk(lab.disk_cache);
        let cut = PowerCut { disk, seed };
        if let Some(inside) = up.lab.on_virtual_time() {
            let how = inside.cut_server(&cut, DOWN, &lab.knfsd()).map_err(|error| error.to_string())?;
            return Ok(format!("the machine lost power; {how}"));
        }
        let facts = up.lab.cut_server(&cut).map_err(|error| error.to_string())?;
        let lost = &facts.disk;
        let mut how = format!(
            "the machine was killed; of {} writes that its disk could lose {} were lost and {} torn (disk_cache: {})",
            lost.at_risk, lost.dropped, lost.torn, lab.disk_cache
        );
        if let Some(repaired) = &facts.repaired {
            how += &format!("; the file system had to be repaired: {repaired}");
        }
        Ok(how)
    }

    /// Sets the links of an emulated lab.
    pub(super) fn set_link(&mut self, settings: &Settings) -> Result<(), RunError> {
        let link = link(&settings.network);
        if let Some(up) = self.up.as_mut().filter(|up| up.facts.config.emulated && up.link != Some(link)) {
            up.lab.set_link(&link)?;
            up.link = Some(link);
        }
        Ok(())
    }

    /// The network namespace in which the embedded server listens.
    pub(super) fn namespace(&self) -> Option<Arc<Namespace>> {
        Some(Arc::clone(self.up.as_ref()?.lab.namespace()))
    }

    pub(super) fn lab(&self) -> Option<&Lab> {
        self.up.as_ref().map(|up| &up.lab)
    }

    /// Which of the labs that the study needs it is, from 1; 0 when none is up.
    pub(super) fn number(&self) -> usize {
        let kind = |up: &Up| self.kinds.iter().position(|kind| *kind == up.wanted);
        self.up.as_ref().and_then(kind).map_or(0, |index| index + 1)
    }

    /// What is stored of it.
    pub(super) fn record(&self, settings: &Settings) -> Option<LabRecord> {
        let (up, lab) = (self.up.as_ref()?, settings.lab.as_ref()?);
        let machines = up.facts.machines.iter().map(|machine| LabMachine {
            name: machine.name.clone(),
            kernel: machine.kernel.clone(),
            kernel_hash: machine.kernel_hash.clone(),
            kernel_origin: origin(&machine.kernel_origin),
            memory: machine.memory,
            boot_ns: super::network::nanos(machine.boot_time),
            console: None,
        });
        Some(LabRecord {
            back_end: up.facts.back_end.to_string(),
            time: match up.facts.back_end {
                BackEnd::UmlVirtualTime => LabTime::Virtual,
                _ => LabTime::Real,
            },
            server: match lab.server {
                LabServer::Host => settings.server.host.clone().unwrap_or_default(),
                server => server.name().into(),
            },
            emulated: up.facts.config.emulated,
            image: up.facts.image.clone(),
            wake_ups: up.facts.wake_ups,
            machines: machines.collect(),
        })
    }

    /// Who serves the lab, and what lies between its machines.
    pub(super) fn service(&self, settings: &Settings) -> Option<ServiceRecord> {
        let lab = settings.lab.as_ref().filter(|_| self.up.is_some())?;
        let url = match settings.target.kind() {
            TargetKind::Mount(mount) if mount.options.is_empty() => mount.source.clone(),
            TargetKind::Mount(mount) => format!("{}?{}", mount.source, mount.options),
            TargetKind::Embedded(_) | TargetKind::External(_) => {
                let options = settings.target.mount_options("127.0.0.1").ok().flatten()?;
                options.to_string().replacen("127.0.0.1", SERVER, 1)
            }
            TargetKind::Directory(_) | TargetKind::Scratch => return None,
        };
        let server = match lab.server {
            LabServer::Memory => ServedBy::Embedded,
            LabServer::Knfsd => ServedBy::Knfsd,
            LabServer::Ganesha => ServedBy::Ganesha,
            LabServer::Host => ServedBy::External,
        };
        Some(ServiceRecord { url, server, network: self.network(settings), achieved: None })
    }

    /// What is stored of the network between its machines.
    fn network(&self, settings: &Settings) -> NetworkRecord {
        let up = self.up.as_ref().filter(|up| up.facts.config.emulated);
        match up.map(|up| up.facts.back_end) {
            Some(BackEnd::UmlVirtualTime) => {
                NetworkRecord { note: VIRTUAL_NOTE.into(), ..record(&settings.network, Emulator::Netem) }
            }
            Some(_) => NetworkRecord { note: NOTE.into(), ..record(&settings.network, Emulator::Wire) },
            None => NetworkRecord::default(),
        }
    }

    /// The wire's counts begin anew.
    pub(super) fn begin(&self) -> Result<(), RunError> {
        match self.up.as_ref().filter(|up| up.facts.config.emulated) {
            Some(up) => Ok(up.lab.clear_network_report()?),
            None => Ok(()),
        }
    }

    /// What the wire carried since.
    pub(super) fn carried(&self) -> Result<Option<NetworkAchieved>, RunError> {
        let Some(up) = self.up.as_ref().filter(|up| up.facts.config.emulated) else { return Ok(None) };
        Ok(Some(achieved_of(&up.lab.network_report()?)))
    }

    /// What the kernel's server says of itself; `None` where there is none. What cannot be read is empty.
    pub(super) fn look_at_server(&self) -> Option<ServerLook> {
        let up = self.up.as_ref().filter(|up| up.server.is_some())?;
        Some(ServerLook::parse(&said(&up.lab, SERVER_MACHINE, SERVER_SCRIPT)))
    }

    /// What clients say of themselves.
    pub(super) fn look_at_clients(&self, settings: &Settings) -> Vec<ClientLook> {
        let Some(up) = self.up.as_ref().filter(|up| up.facts.back_end != BackEnd::Namespaces) else {
            return Vec::new();
        };
        let names = (1..=settings.clients()).map(|number| format!("c{number}"));
        names.map(|name| ClientLook::parse(&name, &said(&up.lab, &name, CLIENT_SCRIPT))).collect()
    }

    /// What went wrong in machines since the last call. `suspicion`: an agent was lost, so that what is the matter with its
    /// machine is waited for.
    pub(super) fn problems(&self, suspicion: bool) -> Vec<MachineProblem> {
        let Some(up) = &self.up else { return Vec::new() };
        let until = Instant::now() + FOUND_OUT;
        let mut found = up.lab.problems();
        while suspicion && !found.iter().any(is_end) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(500));
            found.extend(up.lab.problems());
        }
        found
    }

    /// Copies the ends of all consoles below `directory`, the results directory's. Gives the paths relative to that, by machine.
    pub(super) fn keep_consoles(
        &self,
        directory: &Path,
        below: &str,
    ) -> std::io::Result<Vec<(String, String)>> {
        let Some(up) = &self.up else { return Ok(Vec::new()) };
        let mut kept = Vec::new();
        for (machine, console) in up.lab.consoles() {
            let relative = format!("consoles/{below}/{machine}.log");
            let to = directory.join(&relative);
            fs::create_dir_all(to.parent().unwrap_or(directory))?;
            copy_end(&console, &to)?;
            kept.push((machine, relative));
        }
        Ok(kept)
    }

    /// Ends it, if it is the study's own. A machine was lost: it is not used again.
    pub(super) fn give_up(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), RunError> {
        let own = self.up.as_ref().is_none_or(|up| up.own);
        self.distrusted |= !own;
        self.down(tell)
    }

    /// Ends it, if it is the study's own.
    pub(super) fn down(&mut self, tell: &mut dyn FnMut(&str)) -> Result<(), RunError> {
        match self.up.take() {
            Some(up) if up.own => {
                let name = up.lab.config().name.clone();
                match Lab::down(&name, tell) {
                    // It has ended by itself.
                    Ok(()) | Err(LabError::NotUp(_) | LabError::Ended(_)) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// What a disk loses with its power.
pub(super) fn cut_disk(cache: LabDiskCache) -> CutDisk {
    match cache {
        LabDiskCache::None => CutDisk::Durable,
        LabDiskCache::Volatile => CutDisk::Cached,
        LabDiskCache::Lying => CutDisk::Lying(Recent::Time(LIE)),
    }
}

/// Whether a machine is of no more use.
pub(super) fn is_end(problem: &MachineProblem) -> bool {
    matches!(problem.what, ProblemKind::Ended | ProblemKind::Hangs)
}

/// A problem in words, with the last lines of the console.
pub(super) fn text(problem: &MachineProblem) -> String {
    let what = match problem.what {
        ProblemKind::Ended => "has ended",
        ProblemKind::Hangs => "does not answer",
        ProblemKind::Warned => "has a warning of its kernel",
    };
    let lines: String = problem.lines.iter().map(|line| format!("\n  {line}")).collect();
    let console = if lines.is_empty() { "" } else { "; its console says:" };
    format!("the machine `{}` {what}{console}{lines}", problem.machine)
}

/// What the standing lab is, and the study does not want; `None` when it fits.
fn differs(facts: &LabFacts, wanted: &LabConfig) -> Option<String> {
    let found = &facts.config;
    let other = |what: &str, is: &dyn std::fmt::Display, asked: &dyn std::fmt::Display| {
        Some(format!("{what} {is}, and the study asks for {asked}"))
    };
    if found.clients < wanted.clients {
        return other("its clients are", &found.clients, &wanted.clients);
    }
    if std::mem::discriminant(&found.server) != std::mem::discriminant(&wanted.server)
        || matches!((&found.server, &wanted.server), (ServerKind::Address(a), ServerKind::Address(b)) if a != b)
    {
        return other("its server is", &found.server, &wanted.server);
    }
    if let Some(asked) = wanted.back_end.filter(|asked| *asked != facts.back_end) {
        return other("its back-end is", &facts.back_end, &asked);
    }
    if found.kernel != wanted.kernel {
        return other("its kernel is", &found.kernel, &wanted.kernel);
    }
    let server = |config: &LabConfig| config.server_kernel.clone().unwrap_or_else(|| config.kernel.clone());
    if wanted.server.is_machine() && server(found) != server(wanted) {
        return other("the kernel of its server is", &server(found), &server(wanted));
    }
    let size = |bytes| benchmaster_units::ByteSize(bytes);
    if found.client_memory != wanted.client_memory {
        return other(
            "the memory of its clients is",
            &size(found.client_memory),
            &size(wanted.client_memory),
        );
    }
    if wanted.server.is_machine() && found.server_memory != wanted.server_memory {
        return other("the memory of its server is", &size(found.server_memory), &size(wanted.server_memory));
    }
    if wanted.power_cuts && !found.power_cuts {
        return Some("its server's power cannot be cut, and the study asks for a power cut".into());
    }
    if wanted.emulated && !found.emulated {
        return Some("its network is not emulated, and the study asks for an emulated one".into());
    }
    None
}

fn origin(origin: &KernelOrigin) -> String {
    match origin {
        KernelOrigin::Packaged { package, version } => format!("packaged ({package} {version})"),
        KernelOrigin::Built { source } => format!("built from {source}"),
        KernelOrigin::Given => "given".into(),
    }
}

/// What a script in a machine prints; nothing when it cannot be run, which is found out as the machine's problem.
fn said(lab: &Lab, machine: &str, script: &str) -> String {
    let argv = ["sh", "-c", script].map(str::to_owned).into();
    let command = Command { argv, ..Command::default() };
    lab.run(machine, &command).map(|output| output.stdout).unwrap_or_else(|error| {
        log::debug!("`{machine}` sent an unexpected answer: {error}");
        String::new()
    })
}

fn copy_end(from: &PathBuf, to: &Path) -> std::io::Result<()> {
    let mut file = fs::File::open(from)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(CONSOLE)))?;
    let mut bytes = Vec::new();
    file.take(CONSOLE).read_to_end(&mut bytes)?;
    fs::write(to, bytes)
}

impl From<LabError> for RunError {
    fn from(error: LabError) -> Self {
        Self::Lab(Box::new(error))
    }
}
