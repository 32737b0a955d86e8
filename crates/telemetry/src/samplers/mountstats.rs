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

const MOUNT: &str = "mount point";
const OPERATION: &str = "mount point and operation, as in `/mnt/x READ`";
const TRANSPORT: &str = "mount point and connection, as in `/mnt/x xprt 0 tcp`";

/// What it reads; lines and numbers without a name here are recorded as `key.0`, by their places.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo::gauge("age", "s", MOUNT, "since it was mounted"),
    MetricInfo::gauge("lease_time", "s", MOUNT, "the server's lease (version 4)"),
    MetricInfo::gauge("lease_expired", "s", MOUNT, "since the lease ran out; 0 while it is kept (version 4)"),
    MetricInfo::counter("inode_revalidate", "1", MOUNT, "revalidations of cached attributes"),
    MetricInfo::counter("dentry_revalidate", "1", MOUNT, "revalidations of cached names"),
    MetricInfo::counter("data_invalidate", "1", MOUNT, "invalidations of a file's cached data"),
    MetricInfo::counter("attr_invalidate", "1", MOUNT, "invalidations of cached attributes"),
    MetricInfo::counter("vfs_open", "1", MOUNT, "files and directories opened by programs"),
    MetricInfo::counter("vfs_lookup", "1", MOUNT, "names looked up that were not cached"),
    MetricInfo::counter("vfs_access", "1", MOUNT, "rights checked"),
    MetricInfo::counter("vfs_update_page", "1", MOUNT, "pages changed"),
    MetricInfo::counter("vfs_read_page", "1", MOUNT, "pages read one by one"),
    MetricInfo::counter("vfs_read_pages", "1", MOUNT, "groups of pages read"),
    MetricInfo::counter("vfs_write_page", "1", MOUNT, "pages written one by one"),
    MetricInfo::counter("vfs_write_pages", "1", MOUNT, "groups of pages written"),
    MetricInfo::counter("vfs_getdents", "1", MOUNT, "reads of directories"),
    MetricInfo::counter("vfs_setattr", "1", MOUNT, "changes of attributes"),
    MetricInfo::counter("vfs_flush", "1", MOUNT, "flushes of dirty data, at close for example"),
    MetricInfo::counter("vfs_fsync", "1", MOUNT, "fsync"),
    MetricInfo::counter("vfs_lock", "1", MOUNT, "locks of files"),
    MetricInfo::counter("vfs_release", "1", MOUNT, "files closed for the last time"),
    MetricInfo::counter("congestion_wait", "1", MOUNT, "waits because of too much write-back"),
    MetricInfo::counter("setattr_trunc", "1", MOUNT, "files truncated"),
    MetricInfo::counter("extend_write", "1", MOUNT, "writes beyond the end of a file"),
    MetricInfo::counter("silly_rename", "1", MOUNT, "files removed while open, and therefore renamed"),
    MetricInfo::counter("short_read", "1", MOUNT, "replies with less data than requested"),
    MetricInfo::counter("short_write", "1", MOUNT, "replies for partial writes"),
    MetricInfo::counter("delay", "1", MOUNT, "replies asking to retry later (JUKEBOX, DELAY)"),
    MetricInfo::counter("pnfs_read", "1", MOUNT, "reads from data servers"),
    MetricInfo::counter("pnfs_write", "1", MOUNT, "writes to data servers"),
    MetricInfo::counter("normal_read", "B", MOUNT, "read by programs, including from the cache"),
    MetricInfo::counter("normal_written", "B", MOUNT, "written by programs to the cache"),
    MetricInfo::counter("direct_read", "B", MOUNT, "read by programs with O_DIRECT"),
    MetricInfo::counter("direct_written", "B", MOUNT, "written by programs with O_DIRECT"),
    MetricInfo::counter("server_read", "B", MOUNT, "data read from the server"),
    MetricInfo::counter("server_written", "B", MOUNT, "data written to the server"),
    MetricInfo::counter("pages_read", "pages", MOUNT, "read from the server into the cache"),
    MetricInfo::counter("pages_written", "pages", MOUNT, "written from the cache to the server"),
    MetricInfo::counter("pages_read_ok", "pages", MOUNT, "read from the local cache on disk (FS-Cache)"),
    MetricInfo::counter("pages_read_fail", "pages", MOUNT, "not found there"),
    MetricInfo::counter("pages_written_ok", "pages", MOUNT, "written there"),
    MetricInfo::counter("pages_written_fail", "pages", MOUNT, "that could not be written there"),
    MetricInfo::counter("pages_uncached", "pages", MOUNT, "thrown away there"),
    MetricInfo::counter("ops", "1", OPERATION, "calls completed"),
    MetricInfo::counter(
        "transmissions",
        "1",
        OPERATION,
        "requests sent; more than `ops` with retransmissions",
    ),
    MetricInfo::counter("timeouts", "1", OPERATION, "major timeouts"),
    MetricInfo::counter("bytes_sent", "B", OPERATION, "requests, with RPC headers"),
    MetricInfo::counter("bytes_received", "B", OPERATION, "replies, with RPC headers"),
    MetricInfo::counter(
        "queue_time",
        "ns",
        OPERATION,
        "from issuing the call until the request was sent; the kernel adds whole ms",
    ),
    MetricInfo::counter("rtt_time", "ns", OPERATION, "from there until the reply"),
    MetricInfo::counter("execute_time", "ns", OPERATION, "from start to end of the call"),
    MetricInfo::counter("errors", "1", OPERATION, "calls that ended with an error (Linux 5.3 and later)"),
    MetricInfo::gauge("port", "1", TRANSPORT, "port of this end"),
    MetricInfo::counter("binds", "1", TRANSPORT, "times a port was bound"),
    MetricInfo::counter("connects", "1", TRANSPORT, "connections made"),
    MetricInfo::gauge("connect_time", "s", TRANSPORT, "duration of the last connection attempt"),
    MetricInfo::gauge("idle_time", "s", TRANSPORT, "time since last use"),
    MetricInfo::counter("sends", "1", TRANSPORT, "requests sent"),
    MetricInfo::counter("receives", "1", TRANSPORT, "replies received"),
    MetricInfo::counter("bad_xids", "1", TRANSPORT, "replies to unknown requests"),
    MetricInfo::counter(
        "req_u",
        "1",
        TRANSPORT,
        "requests in flight, summed over sends: divided by `sends`, their mean",
    ),
    MetricInfo::counter("backlog_u", "1", TRANSPORT, "requests waiting for a slot, summed over sends"),
    MetricInfo::gauge("max_slots", "1", TRANSPORT, "maximum slots in use"),
    MetricInfo::counter("sending_u", "1", TRANSPORT, "requests waiting to be sent, summed over sends"),
    MetricInfo::counter("pending_u", "1", TRANSPORT, "requests waiting for replies, summed over sends"),
];

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

    fn metrics(&self) -> &'static [MetricInfo] {
        METRICS
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
