//! Targets of a study: what they are, whether they are still the same, and the working directories on them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use benchmaster_store::record::StudyResults;
use benchmaster_telemetry::Environment;
use benchmaster_telemetry::environment::TargetEnvironment;
use benchmaster_workload::area::{AreaError, WorkArea, scratch_directory};

use super::RunError;
use crate::plan::Plan;
use crate::settings::Settings;

/// Whether every target is a directory.
pub(super) fn check_targets(plan: &Plan) -> Result<(), AreaError> {
    let directories = plan.treatments.iter().filter_map(|treatment| treatment.settings.target.directory());
    for path in directories {
        if !path.is_dir() {
            return Err(AreaError::NotADirectory { path });
        }
    }
    Ok(())
}

/// The environment of this host, and, when treatments differ in it, as seen from each further target.
pub(super) fn environments(
    plan: &Plan,
    areas: &mut Areas,
) -> Result<BTreeMap<String, Environment>, RunError> {
    let mut environments = BTreeMap::new();
    let mut targets: Vec<PathBuf> = Vec::new();
    for treatment in &plan.treatments {
        let target = areas.target(&treatment.settings)?;
        if targets.contains(&target) {
            continue;
        }
        let environment = Environment::collect(Some(&target));
        let name = match targets.is_empty() {
            true => environment.host.clone(),
            false => format!("{} ({})", environment.host, target.display()),
        };
        environments.insert(name, environment);
        targets.push(target);
    }
    Ok(environments)
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

/// The working directories of a study, one per target.
#[derive(Debug)]
pub(super) struct Areas {
    id: String,
    pub(super) scratch: Option<PathBuf>,
    open: BTreeMap<PathBuf, WorkArea>,
}

impl Areas {
    pub(super) fn new(id: &str) -> Self {
        Self { id: id.into(), scratch: None, open: BTreeMap::new() }
    }

    /// The target of a treatment; a scratch directory is made when it is first asked for.
    pub(super) fn target(&mut self, settings: &Settings) -> Result<PathBuf, AreaError> {
        match (settings.target.directory(), &self.scratch) {
            // Hooks run in another current directory.
            (Some(directory), _) => std::path::absolute(&directory).map_err(|source| AreaError::Io {
                action: "find",
                path: directory,
                source,
            }),
            (None, Some(scratch)) => Ok(scratch.clone()),
            (None, None) => {
                let scratch = scratch_directory(&self.id)?;
                self.scratch = Some(scratch.clone());
                Ok(scratch)
            }
        }
    }

    pub(super) fn area(&mut self, settings: &Settings) -> Result<&mut WorkArea, AreaError> {
        let target = self.target(settings)?;
        if !self.open.contains_key(&target) {
            let area = WorkArea::create(&target, &self.id)?;
            self.open.insert(target.clone(), area);
        }
        self.open.get_mut(&target).ok_or(AreaError::NotADirectory { path: target })
    }

    pub(super) fn remove(&mut self) -> Result<(), AreaError> {
        let areas = std::mem::take(&mut self.open).into_values();
        let removed = areas.map(WorkArea::remove).fold(Ok(()), Result::and);
        if let Some(scratch) = self.scratch.take() {
            std::fs::remove_dir_all(&scratch).map_err(|source| AreaError::Io {
                action: "remove",
                path: scratch,
                source,
            })?;
        }
        removed
    }
}
