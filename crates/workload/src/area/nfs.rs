//! A working directory on an NFS server, reached by the user-space client: jobs mount, do their work and unmount; those that
//! follow each other share a mount.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use benchmaster_nfs_client::counters::Snapshot;
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::types::{FileType, Space};

use super::fill::Filler;
use super::{AreaError, MARKER, directory_name, io_error, new_id};
use crate::engine::nfs::NfsEngine;
use crate::files::PathBuffer;
use crate::nfs::{self, Jobs, Left, SharedMount};
use crate::operation_error::OperationError;
use crate::target::NfsTarget;

#[derive(Debug)]
pub(crate) struct NfsArea {
    target: NfsTarget,
    id: String,
    /// Tells it from others of the same study, also in containers that look the same.
    unique: String,
    /// Name of the working directory below the export.
    directory: String,
    url: PathBuf,
    traffic: Mutex<Traffic>,
}

/// What jobs did on the wire.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) counters: Snapshot,
    /// What was wrong in the end.
    pub(crate) problems: Vec<String>,
}

impl NfsArea {
    /// Makes the directory below the export of `target`.
    pub(super) fn create(target: &NfsTarget, id: &str) -> Result<Self, AreaError> {
        let area = Self::new(target, id);
        area.job("create", async |mount| {
            match mount.stat(area.directory.as_bytes()).await {
                Ok(found) => {
                    let ours = found.kind == FileType::Directory && area.is_ours(mount).await?;
                    if !ours {
                        return Err(AreaError::Foreign { path: area.url.clone() });
                    }
                    area.remove_marked(mount).await?;
                }
                Err(error) if error.is_absent() => {}
                Err(error) => return Err(area.error("examine", "", error)),
            }
            let made = mount.mkdir(area.directory.as_bytes(), 0o755).await;
            made.map_err(|error| area.error("make", "", error))?;
            area.write_marker(mount).await.map_err(|error| area.error("write", MARKER, error))
        })?;
        Ok(area)
    }

    /// The directory that another process of the same session made below the export of `target`; `None` if it is not there.
    pub(super) fn find(target: &NfsTarget, id: &str) -> Result<Option<Self>, AreaError> {
        let area = Self::new(target, id);
        let found = area.job("join", async |mount| {
            let text = match area.marker(mount).await {
                Err(error) if error.is_absent() => return Ok(false),
                text => text.map_err(|error| area.error("read", MARKER, error))?,
            };
            if area.is_our_mark(&text) {
                Ok(true)
            } else {
                Err(AreaError::Foreign { path: area.url.clone() })
            }
        })?;
        Ok(found.then_some(area))
    }

    fn new(target: &NfsTarget, id: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let unique = format!("{}{}", new_id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let directory = directory_name(id);
        let url = PathBuf::from(target.place()).join(&directory);
        let traffic = Mutex::default();
        Self { target: target.clone(), id: id.into(), unique, directory, url, traffic }
    }

    /// Where it is, and how it is reached.
    pub(crate) fn target(&self) -> &NfsTarget {
        &self.target
    }

    /// Name of the working directory below the export.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// URL of the working directory.
    pub(super) fn url(&self) -> &Path {
        &self.url
    }

    pub(super) fn reach_by(&mut self, target: &NfsTarget) {
        self.target = target.clone();
        self.url = PathBuf::from(target.place()).join(&self.directory);
    }

    /// What was counted since this was last called.
    pub(crate) fn take_traffic(&self) -> Traffic {
        std::mem::take(&mut *self.traffic.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells a client of this study, of this process, from all others.
    pub(crate) fn identity(&self, client: &str) -> String {
        let name = rustix::system::uname();
        let host = name.nodename().to_string_lossy();
        format!("{host}-{}-{}-{}-{client}", std::process::id(), self.id, self.unique)
    }

    /// Counts what a job did.
    fn note(&self, left: Left) {
        let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.counters.add(&left.counters);
        traffic.problems.extend(left.problems);
    }

    /// Does a job on this thread, with one mount.
    fn job<T>(&self, name: &str, work: impl AsyncFn(&Mount) -> Result<T, AreaError>) -> Result<T, AreaError> {
        let (result, left) = nfs::job(&self.target, &self.identity(name), work)?;
        self.note(left);
        result
    }

    /// Does a job on this thread, with the mount that jobs share.
    fn shared<T>(
        &self,
        shared: &SharedMount,
        work: impl AsyncFn(&Mount) -> Result<T, AreaError>,
    ) -> Result<T, AreaError> {
        shared.job(&self.target, &self.identity("jobs"), work)
    }

    /// The jobs that shared a mount are done.
    pub(crate) fn unmount(&self, shared: SharedMount) -> Result<(), AreaError> {
        if let Some(left) = shared.unmount(&self.target)? {
            self.note(left);
        }
        Ok(())
    }

    /// Does `work` for every number below `count`: where these are many on several threads and mounts, several at a time
    /// on each; else here, with the mount that jobs share. Ends early when `stop` is set.
    pub(crate) fn jobs<E: From<AreaError> + Send>(
        &self,
        shared: &SharedMount,
        name: &str,
        count: u64,
        work: impl AsyncFn(&NfsEngine<'_>, u64, &mut Vec<u8>) -> Result<(), E> + Sync,
        stop: &AtomicBool,
        tick: &mut dyn FnMut(),
    ) -> Result<(), E> {
        let identity = |thread| self.identity(&format!("{name}{thread}"));
        let jobs = Jobs { target: &self.target, identity: &identity, stop };
        let (result, left) = jobs.for_each(count, shared, work, tick);
        self.note(left);
        result
    }

    /// An empty path below the working directory.
    pub(crate) fn path(&self) -> PathBuffer {
        PathBuffer::below(self.directory.as_bytes())
    }

    /// A path below the export.
    fn below(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.directory).into_bytes()
    }

    fn error(&self, action: &'static str, name: &str, error: NfsError) -> AreaError {
        let path = if name.is_empty() { self.url.clone() } else { self.url.join(name) };
        io_error(action, &path, OperationError::from(error).into())
    }

    /// Whether an existing directory of our name is ours to remove: it is marked, or a session that was killed between
    /// making and marking it left it, or the marker, empty.
    async fn is_ours(&self, mount: &Mount) -> Result<bool, AreaError> {
        if self.marker(mount).await.is_ok_and(|text| self.is_our_mark(&text)) {
            return Ok(true);
        }
        let mut names = Vec::new();
        let listed =
            mount.readdir(self.directory.as_bytes(), &mut |entry| names.push(entry.name.to_vec())).await;
        listed.map_err(|error| self.error("list", "", error))?;
        if names.iter().any(|name| name != MARKER.as_bytes()) {
            return Ok(false);
        }
        if names.is_empty() {
            Ok(true)
        } else {
            match mount.stat(&self.below(MARKER)).await {
                Ok(found) => Ok(found.size == 0),
                Err(error) => Err(self.error("examine", MARKER, error)),
            }
        }
    }

    /// Whether this is what a marker of ours contains. A server that keeps no data gives as many zeros for it.
    fn is_our_mark(&self, text: &[u8]) -> bool {
        let null = text.len() == self.id.len() && text.iter().all(|byte| *byte == 0);
        null || text.trim_ascii() == self.id.as_bytes()
    }

    async fn marker(&self, mount: &Mount) -> Result<Vec<u8>, NfsError> {
        let file = mount.open(&self.below(MARKER), &OpenFlags::READ).await?;
        let mut text = vec![0; 256];
        let read = mount.read(&file, &mut text, 0).await;
        mount.close(file).await?;
        text.truncate(read?);
        Ok(text)
    }

    async fn write_marker(&self, mount: &Mount) -> Result<(), NfsError> {
        let file = mount.open(&self.below(MARKER), &OpenFlags { mode: 0o644, ..OpenFlags::CREATE }).await?;
        let written = mount.write(&file, self.id.as_bytes(), 0).await;
        mount.close(file).await?;
        written.map(drop)
    }

    /// Makes it again where it is gone, as after a failure of its server.
    pub(super) fn restore(&self, shared: &SharedMount) -> Result<(), AreaError> {
        self.shared(shared, async |mount| {
            let made = mount.create_dirs(self.directory.as_bytes()).await;
            made.map_err(|error| self.error("make", "", error))?;
            self.write_marker(mount).await.map_err(|error| self.error("write", MARKER, error))
        })
    }

    /// Removes the directory, its marker last: what a kill leaves behind is still known as ours.
    async fn remove_marked(&self, mount: &Mount) -> Result<(), AreaError> {
        let mut names = Vec::new();
        let listed =
            mount.readdir(self.directory.as_bytes(), &mut |entry| names.push(entry.name.to_vec())).await;
        match listed {
            // A failure of its server has taken it.
            Err(error) if error.is_absent() => return Ok(()),
            listed => listed.map_err(|error| self.error("list", "", error))?,
        }
        for name in names.iter().filter(|name| *name != MARKER.as_bytes()) {
            let name = String::from_utf8_lossy(name);
            let removed = mount.remove_tree(&self.below(&name)).await;
            removed.map_err(|error| self.error("remove", &name, error))?;
        }
        let removed = mount.remove_tree(self.directory.as_bytes()).await;
        removed.map_err(|error| self.error("remove", "", error))
    }

    pub(super) fn remove(self) -> Result<(), AreaError> {
        self.job("remove", async |mount| self.remove_marked(mount).await)?;
        match self.take_traffic().problems.into_iter().next() {
            Some(problem) => Err(AreaError::Client { path: self.url, problem }),
            None => Ok(()),
        }
    }

    /// Removes what has this name in the directory, if anything has.
    pub(super) fn discard(&self, shared: &SharedMount, name: &str) -> Result<(), AreaError> {
        self.shared(shared, async |mount| {
            let removed = mount.remove_tree(&self.below(name)).await;
            removed.map_err(|error| self.error("remove", name, error))
        })
    }

    /// Bytes of the file system, and those free.
    pub(super) fn space(&self, shared: &SharedMount) -> Result<(u64, u64), AreaError> {
        let Space { total, available, .. } = self.shared(shared, async |mount| {
            mount.space().await.map_err(|error| self.error("examine", "", error))
        })?;
        Ok((total, available))
    }

    /// Makes the directories and files of a table. Every file is stable when it is closed.
    pub(super) fn fill(
        &self,
        shared: &SharedMount,
        filler: &Filler<'_>,
        observe: &mut dyn FnMut(u64),
    ) -> Result<(), AreaError> {
        let table = filler.table;
        self.shared(shared, async |mount| {
            let mut path = self.path();
            for directory in 0..table.directories() {
                table.directory_path(directory, &mut path);
                let made = mount.create_dirs(path.bytes()).await;
                made.map_err(|error| self.error("make", &path.text(), error))?;
            }
            Ok(())
        })?;
        let fill = async |engine: &NfsEngine<'_>, file, chunk: &mut Vec<u8>| {
            filler.fill(engine, file, self.path(), chunk).await
        };
        let mut tick = || observe(filler.written.load(Ordering::Relaxed));
        self.jobs(shared, "fill", table.files(), fill, filler.stop, &mut tick)
    }
}
