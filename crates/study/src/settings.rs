//! What one treatment asks for: every parameter of a study except those of the experiment itself.
//!
//! Any parameter here can be a factor; its path is the one of the study file (`run.cache`, `workload.write.io_size`).

mod clients;
mod lab;
mod network;
mod sampling;
mod server;
mod steps;
mod target;

use benchmaster_builtin::WorkloadSpec;
use benchmaster_fleet::hosts::HostsError;
use benchmaster_record::witness::CutKind;
use benchmaster_record::words;
use benchmaster_units::TimeSpan;
use benchmaster_workload::program::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::clients::{ClientSettings, Launcher, MOST_CLIENTS};
pub(crate) use self::lab::HARD_TO_CHANGE;
pub use self::lab::{LabBackEnd, LabDiskCache, LabFileSystem, LabMistake, LabServer, LabSettings};
pub use self::network::{Loss, Means, NetworkSettings};
pub use self::sampling::{CollectSettings, SamplingSettings};
pub use self::server::{ReadyStep, ServerCache, ServerKind, ServerMistake, ServerSettings};
pub use self::steps::{
    ParameterText, ServerStep, StepSide, TeardownStep, UnknownParameter, When, quote, substitute,
};
pub(crate) use self::target::alternatives;
pub use self::target::{
    CERTIFICATES, MountSettings, OptionText, SCRATCH, SERVER, TargetKind, TargetMistake, TargetSettings,
    host_of,
};

/// The parameters of one treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// The file system under test.
    pub target: TargetSettings,
    /// Who serves it.
    pub server: ServerSettings,
    /// What is emulated between clients and server.
    pub network: NetworkSettings,
    /// Who generates load.
    pub clients: ClientSettings,
    /// The machines in user space in which it runs, if it runs in such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabSettings>,
    /// How a run is done.
    pub run: RunSettings,
    /// What is read beside every measured phase.
    pub sampling: SamplingSettings,
    /// What is run beside every measured phase.
    pub collect: Vec<CollectSettings>,
    /// The workloads of a run, in the order in which it does them, which is that of the file.
    pub workloads: Vec<(String, WorkloadSpec)>,
}

impl Settings {
    /// How the target's files are reached.
    pub fn access(&self) -> Access {
        match self.target.kind() {
            TargetKind::Directory(_) | TargetKind::Scratch | TargetKind::Mount(_) => Access::System,
            TargetKind::Embedded(_) | TargetKind::External(_) => Access::Nfs,
        }
    }

    /// How clients are started.
    pub fn launcher(&self) -> Launcher {
        let by_itself = || match self.clients.count {
            _ if self.lab.is_some() => Launcher::Lab,
            _ if !self.clients.hosts.is_empty() => Launcher::Ssh,
            Some(count) if count > 1 => Launcher::Local,
            // Only a fleet has somebody on the server's host.
            _ if self.server.other_host().is_some() => Launcher::Local,
            _ => Launcher::Threads,
        };
        self.clients.launcher.unwrap_or_else(by_itself)
    }

    /// What `{server}` stands for, where that is not the embedded server of this host. A lab's network leads nowhere else: a
    /// server elsewhere, too, is reached at the address of the lab's server.
    pub fn server_host(&self) -> Option<String> {
        match &self.lab {
            Some(_) => Some(benchmaster_lab::network::server_address().to_string()),
            // Steps on this host set it up.
            None if self.server.is_managed() && self.server.host.is_none() => Some("localhost".into()),
            _ => self.server.host.clone(),
        }
    }

    /// Whether a machine of the lab is the server, with an agent that looks on.
    pub fn has_server_machine(&self) -> bool {
        let server = self.lab.as_ref().map(|lab| lab.server);
        matches!(server, Some(LabServer::Knfsd | LabServer::Ganesha))
    }

    /// Whether somebody of the study is on a server's host that is not this one.
    pub fn has_server_agent(&self) -> bool {
        self.server.other_host().is_some() || self.has_server_machine()
    }

    /// Whether the embedded server serves: of the target's URL, or to the machines of a lab.
    pub fn is_embedded(&self) -> bool {
        match &self.lab {
            Some(lab) => lab.server == LabServer::Memory,
            None => matches!(self.target.kind(), TargetKind::Embedded(_)),
        }
    }

    /// Whether a workload checks what survives of the acknowledged.
    pub fn is_witnessed(&self) -> bool {
        let of =
            |spec: &WorkloadSpec| serde_json::to_value(spec).is_ok_and(|spec| spec["verify"] == "durability");
        self.workloads.iter().any(|(_, spec)| of(spec))
    }

    /// Whether the server loses power in a run, by this program.
    pub fn cuts_power(&self) -> bool {
        self.run.failure == CutKind::Power && self.run.failure_hook.is_none() && self.is_witnessed()
    }

    /// Whether the kernel of a lab's machine serves.
    pub fn is_knfsd(&self) -> bool {
        self.lab.as_ref().is_some_and(|lab| lab.server == LabServer::Knfsd)
    }

    /// The hosts of the clients, with patterns spelled out; none when they are on this host or Slurm knows them.
    ///
    /// # Errors
    /// What is wrong with a pattern.
    pub fn hosts(&self) -> Result<Vec<String>, HostsError> {
        benchmaster_fleet::hosts::expand(&self.clients.hosts)
    }

    /// Hosts that run nothing but clients of this study while it lasts: those of ssh, nodes of Slurm, agents that something else
    /// starts; 0 when clients are on this host. Patterns of hosts have been checked.
    pub fn nodes(&self) -> u32 {
        match self.launcher() {
            Launcher::Ssh => self.hosts().map_or(0, |hosts| hosts.len() as u32),
            Launcher::Slurm | Launcher::External => self.clients.nodes.unwrap_or_else(|| self.clients()),
            Launcher::Threads | Launcher::Local | Launcher::Lab => 0,
        }
    }

    /// Clients over all hosts. Patterns of hosts have been checked.
    pub fn clients(&self) -> u32 {
        self.clients.number(self.hosts().map_or(0, |hosts| hosts.len()))
    }
}

/// How a run is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Length of an interval of the time series. Automatic if absent: 1 s, or a sixtieth of a workload's duration
    /// when it is shorter than a minute (at least 10 ms), or 100 ms for workloads that end when their work is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<TimeSpan>,
    /// What is done to the page cache of this host before each workload's measured phase.
    pub cache: CacheControl,
    /// Shell command run before each workload's measured phase, to remount the target for example. The target
    /// directory is in the environment variable `BENCHMASTER_TARGET`; a command that fails stops the study, which can be
    /// resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hook: Option<String>,
    /// Time after which `cache_hook` or `failure_hook` is stopped, and the study with it.
    pub hook_timeout: TimeSpan,
    /// What happens to the server at the end of the measured phase of workloads with `verify = "durability"`, before what
    /// it acknowledged is looked for.
    pub failure: CutKind,
    /// Shell command on this host that makes it happen and waits until the server serves again, where that is not the
    /// embedded server or a machine of the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_hook: Option<String>,
    /// Rule that cuts the warm-up off the measured phase of workloads that run for a time.
    pub cut: Cut,
    /// Whether files prepared by an earlier run of the study are used again.
    pub filesets: FilesetReuse,
    /// Record every call of every workload, as `trace = true` does for one.
    pub trace: bool,
    /// A worker gives up after this number of errors in a row.
    #[schemars(range(min = 1))]
    pub max_errors: u64,
    /// How often a run is tried again when a client process is lost: it died, hung, or its host cannot be reached.
    #[schemars(range(max = 100))]
    pub retries: u32,
    /// What follows a run that failed.
    pub on_failure: OnFailure,
    /// Measure round trip and raw TCP throughput between clients and server once, before the first run.
    pub baseline: bool,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            interval: None,
            cache: CacheControl::default(),
            cache_hook: None,
            hook_timeout: TimeSpan::seconds(60),
            failure: CutKind::default(),
            failure_hook: None,
            cut: Cut::default(),
            filesets: FilesetReuse::default(),
            trace: false,
            max_errors: 100,
            retries: 1,
            on_failure: OnFailure::default(),
            baseline: true,
        }
    }
}

impl RunSettings {
    /// The length of an interval for a workload whose measured phase is limited to `duration`, if it is limited by time.
    pub fn interval_for(&self, duration: Option<TimeSpan>) -> TimeSpan {
        let automatic = || match duration {
            Some(limit) => (limit.0 / 60).clamp(TimeSpan::millis(10).0, TimeSpan::seconds(1).0),
            None => TimeSpan::millis(100).0,
        };
        self.interval.unwrap_or_else(|| TimeSpan(automatic()))
    }
}

words! {
    /// What is done to the page cache before the measured phase.
    #[derive(Default, JsonSchema)]
    CacheControl {
        /// Nothing.
        #[default]
        Keep = "keep",
        /// Write everything back and drop all clean pages of the host through `/proc/sys/vm/drop_caches`; needs root.
        Drop = "drop",
        /// Flush the workload's files and ask the kernel to forget their pages with `posix_fadvise`; needs no privilege.
        Fadvise = "fadvise",
        /// Unmount the target and mount it again on every client's host; for `target.mount`.
        Remount = "remount",
    }
}

/// What follows a run that failed, when it was tried as often as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is stored as failed, and the next run begins.
    #[default]
    Continue,
    /// It is stored as failed, and the session ends. The next one goes on with the next run.
    Stop,
}

/// The rule that cuts the warm-up off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Cut {
    /// MSER-5 on the interval series: the cut that minimises the standard error of what remains.
    #[default]
    #[serde(rename = "mser-5")]
    Mser5,
    /// Nothing is cut.
    #[serde(rename = "none")]
    None,
}

/// Whether prepared files are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilesetReuse {
    /// Files that an earlier run of this study prepared with the same description are used as they are.
    #[default]
    Reuse,
    /// Every run removes the files and creates them again.
    Fresh,
}

/// The keys of a section whose values are not the default ones.
fn changed_keys<T: Serialize + Default>(settings: &T) -> impl Iterator<Item = String> {
    let object = |settings: &T| match serde_json::to_value(settings) {
        Ok(serde_json::Value::Object(object)) => object,
        _ => serde_json::Map::new(),
    };
    let default = object(&T::default());
    object(settings)
        .into_iter()
        .filter(move |(key, value)| default.get(key) != Some(value))
        .map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_the_length_of_the_workload() {
        let run = RunSettings::default();
        assert_eq!(run.interval_for(Some(TimeSpan::seconds(3600))), TimeSpan::seconds(1));
        assert_eq!(run.interval_for(Some(TimeSpan::seconds(60))), TimeSpan::seconds(1));
        assert_eq!(run.interval_for(Some(TimeSpan::seconds(30))), TimeSpan::millis(500));
        assert_eq!(run.interval_for(Some(TimeSpan::millis(100))), TimeSpan::millis(10));
        assert_eq!(run.interval_for(None), TimeSpan::millis(100));
        let fixed = RunSettings { interval: Some(TimeSpan::seconds(5)), ..run };
        assert_eq!(fixed.interval_for(Some(TimeSpan::millis(100))), TimeSpan::seconds(5));
    }
}
