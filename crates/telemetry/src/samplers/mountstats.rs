//! The watched NFS mount: `/proc/self/mountstats`.
//!
//! With many mounts the text is long, and writing it costs the kernel more than parsing it costs us. Mounts that are not
//! watched are skipped without being parsed, and once the watched one has been read the rest is not even asked for.

use std::path::{Path, PathBuf};

use super::{Reading, Registered, SampleError, Sampler, SamplingConfig, Source};
use crate::mountinfo;
use crate::sampling::MetricInfo;

mod block;
mod parse;

pub use block::{Block, find};
pub use parse::parse;

/// What it reads; lines and numbers without a name here are recorded as `key.0`, by their places.
pub const METRICS: &[MetricInfo] = crate::mountstats::METRICS;

pub(crate) const REGISTERED: Registered = Registered {
    name: "mountstats",
    about: "The watched NFS mount, from `/proc/self/mountstats`: every line and every column; nothing is read if none is \
            watched. Transports other than TCP have further numbers, with the kernel's names.",
    metrics: METRICS,
    make: |config| Box::new(Mountstats::new(config)),
};

/// Mounts come later, and go: the watched one is looked for again after so many nanoseconds.
const LOOK_AGAIN_NS: i64 = 1_000_000_000;

/// Reads the watched mount.
#[derive(Debug)]
struct Mountstats {
    watched: Option<PathBuf>,
    mountinfo: PathBuf,
    file: Source,
    /// The line with which the mount begins, and its mount point.
    found: Option<(Vec<u8>, String)>,
    again_ns: i64,
    scratch: String,
}

impl Mountstats {
    fn new(config: &SamplingConfig) -> Self {
        let places = &config.places;
        let folder = places.mounts.clone().unwrap_or_else(|| places.proc.join("self"));
        Self {
            watched: config.watch.mount.clone(),
            mountinfo: folder.join("mountinfo"),
            file: Source::new(folder.join("mountstats"), "is /proc mounted?"),
            found: None,
            again_ns: i64::MIN,
            scratch: String::new(),
        }
    }

    /// Finds the mount on which the directory lies.
    fn look(&self, directory: &Path) -> Result<(Vec<u8>, String), SampleError> {
        let fail = |source| SampleError::Read { path: self.mountinfo.clone(), source };
        let text = std::fs::read(&self.mountinfo).map_err(fail)?;
        let mounts = mountinfo::parse(&String::from_utf8_lossy(&text));
        // What is mounted there and does not answer must not be waited for: a path that is a mount point is not looked at.
        let is_mount = mounts.iter().any(|mount| mount.mount_point == directory);
        let real = if is_mount {
            directory.to_owned()
        } else {
            directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
        };
        match mountinfo::mount_of(&mounts, &real) {
            Some(mount) if matches!(mount.file_system.as_str(), "nfs" | "nfs4") => Ok((
                block::first_line(&mount.source, &mount.mount_point),
                mount.mount_point.display().to_string(),
            )),
            mount => Err(SampleError::Other(format!(
                "{} lies on {}, which is no NFS mount of the kernel: nothing is read",
                directory.display(),
                mount.map_or("nothing known", |mount| &mount.file_system)
            ))),
        }
    }
}

impl Sampler for Mountstats {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        let Some(directory) = &self.watched else { return Ok(()) };
        if self.found.is_none() {
            if out.time_ns() < self.again_ns {
                return Ok(());
            }
            self.again_ns = out.time_ns().saturating_add(LOOK_AGAIN_NS);
            self.found = Some(self.look(directory)?);
        }
        let Some((first_line, mount_point)) = &self.found else { return Ok(()) };
        let mut search = Block::new(first_line);
        let Some(text) = self.file.bytes_until(out, |text| search.is_whole(text)) else { return Ok(()) };
        let Some(block) = search.finish(text) else {
            let problem = format!("{mount_point} is not mounted any more: it is looked for every second");
            self.found = None;
            return Err(SampleError::Other(problem));
        };
        let block = String::from_utf8_lossy(block);
        parse(&block, mount_point, &mut self.scratch, out).map_err(|fault| self.file.fault(fault))
    }
}

#[cfg(test)]
mod tests;
