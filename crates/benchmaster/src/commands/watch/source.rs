//! Where the numbers of mounts come from.

use std::path::{Path, PathBuf};

use benchmaster_telemetry::mountstats::{Mountstats, NfsMount, read_mount_of};

use crate::failure::{Failure, Result};

/// The kernel's statistics or a file like them, of all mounts or of one.
pub(super) struct Source {
    file: Option<PathBuf>,
    /// What is mounted, and where.
    only: Option<(String, PathBuf)>,
}

impl Source {
    /// Finds the mount on which `path` lies.
    pub(super) fn new(path: Option<&Path>, file: Option<&Path>) -> Result<Self> {
        let mut source = Self { file: file.map(Path::to_owned), only: None };
        let all = source.read()?;
        let Some(path) = path else { return Ok(source) };
        let mount = match file {
            // Not the mounts of this process: by name.
            Some(_) => longest(&all, path),
            None => {
                let real = path
                    .canonicalize()
                    .map_err(|error| Failure::wrong(format!("cannot watch `{}`: {error}", path.display())))?;
                read_mount_of(&real)?
            }
        };
        let mount = mount.ok_or_else(|| {
            let points: Vec<_> =
                all.mounts.iter().map(|mount| format!("`{}`", mount.mount_point.display())).collect();
            let mounts = if points.is_empty() {
                "there are no NFS mounts".to_owned()
            } else {
                format!("NFS mounts are {}", points.join(", "))
            };
            Failure::wrong(format!(
                "`{}` is neither on an NFS mount ({mounts}) nor the results directory of a study",
                path.display()
            ))
        })?;
        source.only = Some((mount.device, mount.mount_point));
        Ok(source)
    }

    /// A reading.
    pub(super) fn read(&self) -> Result<Mountstats> {
        let mut stats = match &self.file {
            None => Mountstats::read()?,
            Some(file) => {
                let wrong = |error: anyhow::Error| {
                    Failure::wrong_input(error.context(format!("cannot read `{}`", file.display())))
                };
                let bytes = std::fs::read(file).map_err(|error| wrong(error.into()))?;
                Mountstats::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| wrong(error.into()))?
            }
        };
        if let Some((device, point)) = &self.only {
            stats.mounts.retain(|mount| (&mount.device, &mount.mount_point) == (device, point));
        }
        Ok(stats)
    }
}

/// The mount whose point is the longest front of a path.
fn longest(stats: &Mountstats, path: &Path) -> Option<NfsMount> {
    let on = stats.mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    on.max_by_key(|mount| mount.mount_point.components().count()).cloned()
}
