//! What a study sets up outside of this process: the steps of a managed server, and mounts on the clients' hosts.

use std::collections::BTreeSet;
use std::time::Duration;

use benchmaster_fleet::job::{HookSpec, Side};
use benchmaster_record::results::RunKey;

use benchmaster_study::plan::{Plan, PlannedTreatment};
use benchmaster_study::settings::{
    CacheControl, MountSettings, ReadyStep, ServerCache, Settings, StepSide, TargetKind, When, quote,
};

/// How long mounting and unmounting may take.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(120);

/// Where a small system, such as a guest's, has no `mountpoint`, the kernel's list of mounts says the same of paths without
/// spaces.
const MOUNTPOINT: &str =
    "command -v mountpoint >/dev/null || mountpoint() { grep -qF \" $2 \" /proc/self/mounts; }; ";

/// A mount with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    settings: MountSettings,
    pub(super) path: String,
    /// Whether the directory is the study's own, and goes with it.
    own: bool,
}

impl Mount {
    /// That of a treatment.
    pub(super) fn of(settings: &Settings, id: &str) -> Option<Self> {
        let TargetKind::Mount(mount) = settings.target.kind() else { return None };
        let path = mount.path.clone().unwrap_or_else(|| format!("/run/benchmaster/{id}"));
        let mounted = settings.server_host().map_or_else(|| mount.clone(), |server| mount.of(&server));
        Some(Self { settings: mounted, path, own: mount.path.is_none() })
    }

    fn mounting(&self) -> String {
        let MountSettings { source, options, kind, .. } = &self.settings;
        let options = if options.is_empty() { String::new() } else { format!(" -o {}", quote(options)) };
        format!("mount -t {}{options} {} {}", quote(kind), quote(source), quote(&self.path))
    }

    /// The command that makes its directory, and fails where something is mounted there already.
    pub(super) fn make_room(&self) -> HookSpec {
        let path = quote(&self.path);
        let taken = format!("{} is already a mount point; unmount it, or choose another path", self.path);
        let taken = quote(&taken);
        hook(format!(
            "{MOUNTPOINT}mkdir -p {path} && if mountpoint -q {path}; then echo {taken} >&2; exit 1; fi"
        ))
    }

    /// The command that mounts it.
    pub(super) fn mount(&self) -> HookSpec {
        hook(self.mounting())
    }

    /// The command that unmounts it, if it is mounted.
    pub(super) fn unmount(&self) -> HookSpec {
        let path = quote(&self.path);
        let remove =
            if self.own { format!("; rmdir {path} 2>/dev/null || [ ! -d {path} ]") } else { String::new() };
        hook(format!("{MOUNTPOINT}if mountpoint -q {path}; then umount {path} || exit; fi{remove}"))
    }

    fn remounting(&self) -> String {
        format!("umount {} && {}", quote(&self.path), self.mounting())
    }
}

fn hook(command: String) -> HookSpec {
    HookSpec { command, timeout: MOUNT_TIMEOUT, environment: Vec::new() }
}

/// Shell command that empties the caches of a host.
pub(super) const DROP: &str = "sync && echo 3 > /proc/sys/vm/drop_caches";

/// The command that every client's host runs before a workload is measured, once files are there: what the study asks for,
/// mounting again, and, where the server is on this host, emptying its cache.
pub(super) fn before_measuring(settings: &Settings, mount: Option<&Mount>) -> Option<HookSpec> {
    let mut commands = Vec::new();
    let managed = settings.server.is_managed() && settings.server.other_host().is_none();
    if managed && settings.server.cache == ServerCache::Cold {
        commands.push(DROP.to_owned());
    }
    if settings.run.cache == CacheControl::Remount {
        commands.extend(mount.map(Mount::remounting));
    }
    commands.extend(settings.run.cache_hook.clone());
    // A hook of several lines stays one command.
    let command = match &commands[..] {
        [] => return None,
        [one] => one.clone(),
        [first @ .., last] => format!("{} && {{\n{last}\n}}", first.join(" && ")),
    };
    Some(HookSpec { command, timeout: settings.run.hook_timeout.0, environment: Vec::new() })
}

/// Which side a step is done on.
pub(super) fn side(on: StepSide) -> Side {
    match on {
        StepSide::Server => Side::Server,
        StepSide::Clients => Side::Clients,
    }
}

/// How far things are set up.
#[derive(Debug, Default)]
pub(super) struct SetUp {
    /// Whether the steps of the study are done.
    study: bool,
    /// Treatment of the last run, and the block with settings of its own in which it was.
    treatment: Option<(u32, Option<u32>)>,
    /// What is mounted.
    pub(super) mounted: Option<Mount>,
    /// The steps that undo what was done.
    pub(super) teardown: Vec<ReadyStep>,
    /// Whether was undone what a killed session had left.
    pub(super) cleaned: bool,
    /// Targets whose environment was looked at.
    pub(super) looked: BTreeSet<String>,
}

impl SetUp {
    /// The steps to be done before a run of a treatment, in order.
    pub(super) fn due(&self, planned: &PlannedTreatment) -> Vec<ReadyStep> {
        if !planned.settings.server.is_managed() {
            return Vec::new();
        }
        let other = self.treatment != Some((planned.record.index, planned.in_block));
        let steps = planned.settings.server.ready_steps().unwrap_or_default().into_iter();
        let due = steps.filter(|step| match step.when {
            Some(When::Study) => !self.study,
            Some(When::Treatment) => other,
            Some(When::Run) => true,
            None => false,
        });
        due.collect()
    }

    /// Steps are about to be done, and are undone from now on.
    pub(super) fn begin(&mut self, planned: &PlannedTreatment) {
        self.teardown = teardown(&planned.settings);
    }

    /// They are done.
    pub(super) fn done(&mut self, planned: &PlannedTreatment) {
        self.study |= planned.settings.server.is_managed();
        self.treatment = Some((planned.record.index, planned.in_block));
    }

    /// The treatment of the last run.
    pub(super) fn last<'p>(&self, plan: &'p Plan) -> Option<&'p PlannedTreatment> {
        let (treatment, block) = self.treatment?;
        plan.treatment(treatment, block)
    }

    /// Something went wrong: nothing is taken for granted.
    pub(super) fn forget(&mut self) {
        self.treatment = None;
    }
}

/// The steps that undo what was done for a treatment.
pub(super) fn teardown(settings: &Settings) -> Vec<ReadyStep> {
    let steps = settings.server.ready_steps().unwrap_or_default();
    steps.into_iter().filter(|step| step.when.is_none()).collect()
}

/// A step as it is run: with what it is for in its environment.
pub(super) fn spec(step: &ReadyStep, study: &str, planned: Option<(&PlannedTreatment, RunKey)>) -> HookSpec {
    let mut environment = vec![("BENCHMASTER_STUDY".to_owned(), study.to_owned())];
    if let Some((planned, key)) = planned {
        environment.push(("BENCHMASTER_TREATMENT".into(), planned.record.label.clone()));
        environment.push(("BENCHMASTER_REPLICATE".into(), (key.replicate + 1).to_string()));
    }
    HookSpec { command: step.command.clone(), timeout: step.timeout.0, environment }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(path: Option<&str>) -> Mount {
        let settings = MountSettings {
            source: "srv:/my export".into(),
            options: "vers=4.1".into(),
            kind: "nfs".into(),
            path: path.map(str::to_owned),
        };
        let target = benchmaster_study::settings::TargetSettings {
            mount: Some(settings.clone()),
            ..Default::default()
        };
        assert!(matches!(target.kind(), TargetKind::Mount(_)));
        let path = path.map_or("/run/benchmaster/cafe".to_owned(), str::to_owned);
        Mount { own: settings.path.is_none(), settings, path }
    }

    #[test]
    fn commands_quote_what_is_the_users() {
        let mount = mount(Some("/mnt/a b"));
        assert_eq!(mount.mounting(), "mount -t nfs -o vers=4.1 'srv:/my export' '/mnt/a b'");
        assert!(mount.remounting().starts_with("umount '/mnt/a b' && mount "), "{}", mount.remounting());
        assert!(!mount.unmount().command.contains("rmdir"), "another user's directory stays");
    }

    #[test]
    fn a_directory_of_ones_own_goes_with_the_mount() {
        assert!(mount(None).unmount().command.contains("rmdir /run/benchmaster/cafe"));
    }
}
