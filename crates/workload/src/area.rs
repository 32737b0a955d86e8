//! The working directory of a study on a target, and the filesets prepared in it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::cache;
use crate::calibrate::NullRates;
use crate::conduct::{Conductor, Share, Step};
use crate::content::BLOCK;
use crate::files::{FileTable, Rules};
use crate::model::{Fileset, Sharing, Workload};
use crate::nfs::SharedMount;
use crate::program::{Effect, Program};
use crate::random::Random;
use crate::target::{NfsTarget, Target};
use benchmaster_nfs_client::options::Cache;

mod directory;
pub(crate) mod error;
mod fill;
mod nfs;

pub(crate) use self::directory::Directory;
pub use self::directory::scratch_directory;
pub use self::error::AreaError;
use self::fill::Filler;
pub(crate) use self::nfs::NfsArea;

/// Mounts an export and unmounts it again, to see whether that can be done.
///
/// # Errors
/// Why it cannot.
pub fn try_mount(target: &NfsTarget) -> Result<(), AreaError> {
    let identity =
        format!("{}-{}-try", rustix::system::uname().nodename().to_string_lossy(), std::process::id());
    let (result, _) = crate::nfs::job(target, &identity, async |_| Ok::<(), AreaError>(()))?;
    result
}

/// A directory of the study's own on the target. Its content is removed by [`WorkArea::remove`], and by the next
/// session of the same study when a session was killed.
#[derive(Debug)]
pub struct WorkArea {
    target: Target,
    path: PathBuf,
    place: Location,
    prepared: BTreeMap<String, Prepared>,
    null_rates: NullRates,
    /// Whether it was made by another process, which removes it.
    joined: bool,
    /// Whether the server has failed since files were prepared, which may have taken the directory itself.
    failed: bool,
}

/// How the working directory is reached.
#[derive(Debug)]
pub(crate) enum Location {
    Directory(Directory),
    Nfs(Box<NfsArea>),
}

#[derive(Debug)]
struct Prepared {
    fileset: Fileset,
    share: Share,
    seed: u64,
    tables: Vec<Arc<FileTable>>,
    names_changed: bool,
    /// Written by a workload that did not verify.
    opaque: bool,
}

/// How filesets are prepared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preparation<'a> {
    /// Clients that need files.
    pub(crate) share: Share,
    /// Seed of sizes and contents.
    pub(crate) seed: u64,
    /// Ends preparation early when set.
    pub(crate) stop: &'a AtomicBool,
}

/// A fileset made ready for a workload.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) name: String,
    /// One per client of this process, the same one for all when shared.
    pub(crate) tables: Vec<Arc<FileTable>>,
    pub(crate) reused: bool,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Ready {
    /// Whether all clients use the same files.
    pub(crate) fn is_shared(&self) -> bool {
        self.tables.first().is_some_and(|table| table.is_shared())
    }

    pub(crate) fn distinct(&self) -> Vec<&FileTable> {
        let tables = if self.is_shared() { &self.tables[..1] } else { &self.tables[..] };
        tables.iter().map(|table| &**table).collect()
    }
}

/// Marks a working directory as ours.
const MARKER: &str = ".benchmaster";

/// Name of the working directory of a study.
fn directory_name(id: &str) -> String {
    format!("benchmaster-{id}")
}

/// The id of the study that a working directory belongs to.
pub(crate) fn id_of(directory: &str) -> Option<&str> {
    directory.strip_prefix("benchmaster-")
}

impl WorkArea {
    /// Makes `target/benchmaster-<id>`. What an earlier session of the same study left there is removed.
    ///
    /// # Errors
    /// When the target is no directory or cannot be mounted, is not writable, or holds something else under that name.
    pub fn create(target: &Target, id: &str) -> Result<Self, AreaError> {
        let place = match target {
            Target::Directory(directory) => Location::Directory(Directory::create(directory, id)?),
            Target::Nfs(target) => Location::Nfs(Box::new(NfsArea::create(target, id)?)),
        };
        let path = target.place().join(directory_name(id));
        Ok(Self::at(target, path, place, false))
    }

    /// Uses the `target/benchmaster-<id>` that another process of the same session has made, or, where it is not there
    /// because this host sees another file system under that name, makes one.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn join(target: &Target, id: &str) -> Result<Self, AreaError> {
        match (Self::find(target, id)?, target) {
            (Some(found), _) => Ok(found),
            (None, Target::Directory(_)) => Self::create(target, id),
            // An export is the same from everywhere.
            (None, Target::Nfs(_)) => {
                let marker = target.place().join(directory_name(id)).join(MARKER);
                Err(io_error("read", &marker, io::Error::from_raw_os_error(libc::ENOENT)))
            }
        }
    }

    /// The `target/benchmaster-<id>` that another process has made and left; `None` where it is not there.
    pub(crate) fn find(target: &Target, id: &str) -> Result<Option<Self>, AreaError> {
        let place = match target {
            Target::Directory(directory) => Directory::join(directory, id)?.map(Location::Directory),
            Target::Nfs(target) => NfsArea::find(target, id)?.map(|area| Location::Nfs(Box::new(area))),
        };
        let path = target.place().join(directory_name(id));
        Ok(place.map(|place| Self::at(target, path, place, true)))
    }

    fn at(target: &Target, path: PathBuf, place: Location, joined: bool) -> Self {
        let (prepared, null_rates) = (BTreeMap::new(), NullRates::default());
        Self { target: target.clone(), path, place, prepared, null_rates, joined, failed: false }
    }

    /// Rates of the executor alone, measured for the workloads of this directory.
    pub(crate) fn null_rates(&mut self) -> &mut NullRates {
        &mut self.null_rates
    }

    /// Whether another process made the directory and will remove it.
    pub fn is_joined(&self) -> bool {
        self.joined
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Reaches the same files in another way from now on: with other mount options, or over another address of the same
    /// server, which the caller vouches for. `false` when the target is another directory or export; then nothing
    /// changes.
    #[must_use]
    pub fn reach_by(&mut self, target: &Target) -> bool {
        match (&mut self.place, target) {
            (Location::Directory(_), _) => return self.target == *target,
            (Location::Nfs(area), Target::Nfs(other))
                if area.target().options.export == other.options.export =>
            {
                area.reach_by(other);
                self.path = area.url().to_owned();
            }
            (Location::Nfs(_), _) => return false,
        }
        self.target = target.clone();
        true
    }

    /// The working directory; on an NFS server its URL.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The server has failed: what it lost of the directory is made again when it is needed.
    pub(crate) fn note_failure(&mut self) {
        self.failed = true;
    }

    /// The name of the working directory in its target.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(crate) fn place(&self) -> &Location {
        &self.place
    }

    /// Bytes that are free on the target, if it tells.
    pub(crate) fn free_bytes(&self, shared: &SharedMount) -> Option<u64> {
        self.space(shared).ok().map(|(_, free)| free)
    }

    /// Largest readahead of the target's mount in KiB, as it is now; `None` where it has none.
    pub(crate) fn read_ahead_kib(&self) -> Option<u64> {
        match &self.place {
            Location::Directory(directory) => directory.read_ahead_kib(),
            Location::Nfs(_) => None,
        }
    }

    /// Bytes of the target, and those free.
    fn space(&self, shared: &SharedMount) -> Result<(u64, u64), AreaError> {
        match &self.place {
            Location::Directory(directory) => directory.space(),
            Location::Nfs(area) => area.space(shared),
        }
    }

    /// Ends the mount that jobs on an NFS server shared.
    ///
    /// # Errors
    /// When this thread cannot wait for sockets. What else is wrong is in the traffic of the area.
    pub(crate) fn end_jobs(&self, shared: SharedMount) -> Result<(), AreaError> {
        match &self.place {
            Location::Directory(_) => Ok(()),
            Location::Nfs(area) => area.unmount(shared),
        }
    }

    /// Forgets filesets that must not be carried over into another run: those whose files came or went, or all.
    ///
    /// # Errors
    /// When files cannot be removed.
    pub fn begin_run(&mut self, fresh: bool) -> Result<(), AreaError> {
        let stale = self.prepared.iter().filter(|(_, p)| fresh || p.names_changed);
        let stale: Vec<String> = stale.map(|(name, _)| name.clone()).collect();
        let (own, shared) = (!self.joined, SharedMount::default());
        let discarded = stale.iter().try_for_each(|name| self.discard(&shared, name, own));
        discarded.and(self.end_jobs(shared))
    }

    /// Opens the working directory anew, after a hook that may have mounted the target again.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn reopen(&mut self) -> Result<(), AreaError> {
        match &mut self.place {
            Location::Directory(directory) => directory.reopen(),
            Location::Nfs(_) => Ok(()),
        }
    }

    /// Has all that was written so far reach stable storage. Over the wire it did when files were closed.
    pub(crate) fn flush(&self) -> Result<(), AreaError> {
        match &self.place {
            Location::Directory(directory) => directory.flush(),
            Location::Nfs(_) => Ok(()),
        }
    }

    /// What replies promise here.
    pub(crate) fn rules(&self) -> Rules {
        match &self.place {
            // A local file system promises names only where their directory is synced.
            Location::Directory(_) => Rules { names: cache::is_nfs(&self.path), close: false },
            // With a cache, data may stay under a delegation when a file is closed.
            Location::Nfs(area) => Rules { names: true, close: area.target().options.cache == Cache::Off },
        }
    }

    /// Lets go of the working directory, so that the target can be unmounted.
    pub(crate) fn release(&mut self) {
        if let Location::Directory(directory) = &mut self.place {
            directory.release();
        }
    }

    /// Removes the working directory with everything in it, unless it was [joined](Self::join).
    ///
    /// # Errors
    /// When files cannot be removed.
    pub fn remove(self) -> Result<(), AreaError> {
        if self.joined {
            return Ok(());
        }
        match self.place {
            Location::Directory(directory) => directory.remove(),
            Location::Nfs(area) => area.remove(),
        }
    }

    /// Makes the filesets of a workload ready, together with the other processes of the run. `observe` is given the bytes
    /// written so far; what [`Self::end_jobs`] is to end afterwards, also after an error, is `shared`.
    pub(crate) fn prepare(
        &mut self,
        workload: &Workload,
        program: &Program,
        options: &Preparation<'_>,
        shared: &SharedMount,
        conductor: &mut dyn Conductor,
        observe: &mut dyn FnMut(u64),
    ) -> Result<Vec<Ready>, AreaError> {
        if std::mem::take(&mut self.failed) && !self.joined {
            match &mut self.place {
                Location::Directory(directory) => directory.restore()?,
                Location::Nfs(area) => area.restore(shared)?,
            }
        }
        if let Location::Directory(directory) = &mut self.place {
            directory.open()?;
        }
        let verify = program.verify_block;
        let mut reused = Vec::new();
        for ((name, fileset), effect) in workload.filesets.iter().zip(&program.effects) {
            if fileset.sharing == Sharing::Shared {
                self.sharable(name, *effect >= Effect::Data && verify.is_some(), options)?;
            }
            let reuse = self.reusable(name, fileset, options, verify)?;
            if !reuse {
                self.discard(shared, name, options.share.lead || !self.joined)?;
            }
            reused.push(reuse);
        }
        conductor.meet(Step::Cleared)?;
        let mut ready = Vec::new();
        let mut before = 0;
        let described = workload.filesets.iter().zip(&program.effects).zip(&program.grows);
        for ((((name, fileset), effect), grows), reused) in described.zip(reused) {
            if !reused {
                let prepared =
                    self.make(name, fileset, options, verify, shared, &mut |bytes| observe(before + bytes))?;
                self.prepared.insert(name.clone(), prepared);
            }
            let Some(prepared) = self.prepared.get_mut(name) else { continue };
            // What a cut leaves of files is no start for another run.
            prepared.names_changed |= *effect == Effect::Names || program.witnessed;
            prepared.opaque |= *effect >= Effect::Data && verify.is_none();
            for table in &prepared.tables {
                table.rewind();
                table.keep_apart(*effect == Effect::Names);
                if *grows {
                    table.keep_lengths();
                }
            }
            let tables = prepared.tables.clone();
            let distinct = if fileset.sharing == Sharing::Shared { &tables[..1] } else { &tables[..] };
            let counts = distinct.iter().map(|table| table.existing());
            let (files, bytes) = counts.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            before += if reused { 0 } else { bytes };
            ready.push(Ready { name: name.clone(), tables, reused, files, bytes });
        }
        conductor.meet(Step::Prepared)?;
        Ok(ready)
    }

    /// Whether several processes can use a fileset together.
    fn sharable(&self, name: &str, proves: bool, options: &Preparation<'_>) -> Result<(), AreaError> {
        let Share { process, processes, .. } = options.share;
        if processes <= 1 {
            return Ok(());
        }
        if proves {
            return Err(AreaError::NotProvableTogether { fileset: name.into() });
        }
        // The first one makes the directory that all others join.
        if process > 0 && !self.joined {
            return Err(AreaError::NotShared { fileset: name.into(), path: self.target.place() });
        }
        Ok(())
    }

    fn reusable(
        &self,
        name: &str,
        fileset: &Fileset,
        options: &Preparation<'_>,
        verify: Option<usize>,
    ) -> Result<bool, AreaError> {
        let Some(known) = self.prepared.get(name) else { return Ok(false) };
        if known.fileset != *fileset || known.share != options.share || known.seed != options.seed {
            return Ok(false);
        }
        let provable = match verify {
            None => true,
            Some(block) => !known.opaque && known.tables.iter().all(|t| t.tracked_block() == Some(block)),
        };
        if provable {
            Ok(true)
        } else if known.names_changed {
            // Files that an earlier workload of this run made are its result and cannot be made anew.
            Err(AreaError::NotProvable { fileset: name.into() })
        } else {
            Ok(false)
        }
    }

    /// Forgets a fileset, and removes it and whatever a preparation that failed left of one if `own`.
    fn discard(&mut self, shared: &SharedMount, name: &str, own: bool) -> Result<(), AreaError> {
        self.prepared.remove(name);
        if !own {
            return Ok(());
        }
        match &self.place {
            Location::Directory(directory) => directory.discard(name),
            Location::Nfs(area) => area.discard(shared, name),
        }
    }

    fn make(
        &self,
        name: &str,
        fileset: &Fileset,
        options: &Preparation<'_>,
        verify: Option<usize>,
        shared: &SharedMount,
        observe: &mut dyn FnMut(u64),
    ) -> Result<Prepared, AreaError> {
        let Preparation { share, seed, stop } = *options;
        let tables: Vec<Arc<FileTable>> = match fileset.sharing {
            Sharing::Shared => {
                let table = Arc::new(FileTable::new(name, fileset, None, seed, verify));
                (0..share.count.max(1)).map(|_| table.clone()).collect()
            }
            Sharing::Private => {
                let table = |client| Arc::new(FileTable::new(name, fileset, Some(client), seed, verify));
                share.clients().map(table).collect()
            }
        };
        let distinct = if fileset.sharing == Sharing::Shared { &tables[..1] } else { &tables[..] };
        let needed = distinct.iter().map(|table| table.total_bytes()).fold(0u64, u64::saturating_add);
        // The others' files come to the same place.
        let all = match (fileset.sharing, self.joined || share.lead) {
            (Sharing::Private, true) => u64::from(share.total / share.count.max(1)).max(1),
            _ => 1,
        };
        let needed = needed.saturating_mul(all);
        let (total, free) = self.space(shared)?;
        // Some network file systems tell nothing and say 0.
        if total > 0 && needed > free {
            let path = self.target.place();
            return Err(AreaError::NoSpace { fileset: name.into(), needed, free, path });
        }
        let written = AtomicU64::new(0);
        let filler = |table| Filler {
            path: &self.path,
            table,
            block: verify.unwrap_or(BLOCK),
            written: &written,
            stop,
        };
        // Files of all are made by one process.
        let makes = fileset.sharing == Sharing::Private || share.lead;
        for table in distinct.iter().filter(|_| makes) {
            match &self.place {
                Location::Directory(directory) => directory.fill(&filler(table), observe)?,
                Location::Nfs(area) => area.fill(shared, &filler(table), observe)?,
            }
        }
        if let Location::Directory(directory) = &self.place {
            directory.flush()?;
        }
        Ok(Prepared { fileset: fileset.clone(), share, seed, tables, names_changed: false, opaque: false })
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> AreaError {
    AreaError::Io { action, path: path.into(), source }
}

/// A random identifier of 8 hexadecimal digits for a new study.
pub fn new_id() -> String {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    format!("{:08x}", Random::new(now, u64::from(std::process::id())).below(1 << 32))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_a_killed_session_left_is_taken_over_and_nothing_else() {
        let target = tempfile::tempdir().unwrap();
        let area = WorkArea::create(&target.path().into(), "cafe").unwrap();
        std::fs::create_dir_all(area.path().join("data/c0")).unwrap();
        let path = area.path().to_owned();
        drop(area);
        let area = WorkArea::create(&target.path().into(), "cafe").unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "only the marker is there");
        area.remove().unwrap();
        assert!(!path.exists());

        for (name, content) in [("file", "x"), (MARKER, "beef"), (MARKER, "")] {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(name), content).unwrap();
            let created = WorkArea::create(&target.path().into(), "cafe");
            match content {
                "" => drop(created.unwrap()),
                _ => {
                    let error = created.unwrap_err().to_string();
                    assert!(
                        error.ends_with("exists and was not made by this study; rename or remove it"),
                        "{error}"
                    );
                    assert!(path.join(name).exists(), "nothing of others is touched");
                }
            }
            std::fs::remove_dir_all(&path).unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
        assert!(matches!(WorkArea::create(&target.path().into(), "cafe"), Err(AreaError::Foreign { .. })));
    }

    #[test]
    fn a_target_must_be_a_directory_that_can_be_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = WorkArea::create(&file.path().into(), "1").unwrap_err();
        assert!(matches!(error, AreaError::NotADirectory { .. }), "{error}");
        let error = WorkArea::create(&Path::new("/proc").into(), "1").unwrap_err().to_string();
        assert!(error.starts_with("cannot make `/proc/benchmaster-1`: "), "{error}");
    }

    #[test]
    fn scratch_directories_are_private_and_found_again() {
        let id = format!("test-{}", new_id());
        let path = scratch_directory(&id).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(scratch_directory(&id).unwrap(), path);
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(scratch_directory(&id).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(new_id().len(), 8);
    }
}
