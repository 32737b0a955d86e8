//! A file system in memory: inodes, directories, data in reference-counted pages, extended attributes.
//!
//! It knows nothing of NFS versions. All functions take the caller and the time; errors are [`FsError`], which each
//! version maps to its own codes. Changes to a directory report its attributes before and after, taken atomically.
//!
//! Locks: the rename lock (only for renames from one directory to another), then inodes by ascending number, then the
//! inode table's list of free numbers. Where a directory's lock is held and a lower-numbered inode is needed, it is
//! only tried; if that fails all is let go, locked in order and looked at again. A slot that turns out to hold another
//! file than the one wanted is let go before anything else is waited for.

use std::fmt;
use std::time::Duration;

use hashbrown::DefaultHashBuilder;
use parking_lot::Mutex;
use smallvec::SmallVec;

mod acl;
mod attributes;
mod data;
mod directory;
mod extra;
mod file;
pub(crate) mod image;
mod inode;
mod logged;
mod namespace;
mod page;
mod rename;
mod runs;
mod space;
mod table;
mod trouble;
mod types;
mod volatile;
mod xattr;

#[cfg(test)]
mod tests;

pub use acl::{ACES_MAX, Ace, Acl, Who};
pub use page::PageSlice;
pub use trouble::Trouble;
pub use types::*;

pub(crate) use image::ImageError;
pub(crate) use namespace::check_name;

use inode::{Body, Clock, Inode};
use logged::Logged;
use space::Space;
use table::{Table, WriteGuard};
use trouble::Troubles;
use types::CAPACITY;
use volatile::Volatile;

/// Options of one file system.
#[derive(Debug, Clone, Default)]
pub struct FsConfig {
    /// Bytes of data after which writes fail with [`FsError::NoSpace`]. Data takes whole blocks of 4 KiB (less in files
    /// below that), and once for every file that shares it.
    pub limit: Option<u64>,
    /// Reads come from one page of zeros, writes keep only the size.
    pub null_data: bool,
    /// Steps in which times and the change attribute move.
    pub change_granularity: Option<Duration>,
    /// Whether data that is not stable can be lost: costs a copy of what is overwritten.
    pub volatile: bool,
}

/// A file system. Shared between threads.
pub struct FileSystem {
    config: FsConfig,
    clock: Clock,
    space: Space,
    table: Table,
    hasher: DefaultHashBuilder,
    /// Held while a directory may get another parent.
    renames: Mutex<()>,
    root: Node,
    volatile: Option<Volatile>,
    logged: Option<Box<Logged>>,
    troubles: Troubles,
}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem").field("config", &self.config).finish_non_exhaustive()
    }
}

impl FileSystem {
    /// An empty file system: a root directory of user 0 with `mode`.
    pub fn new(config: FsConfig, mode: u32, now: Time) -> Self {
        let fs = Self::without_root(config);
        let time = fs.clock.time(now).into();
        let mut root = Inode {
            nlink: 2,
            change: fs.clock.change(0, now),
            atime: time,
            mtime: time,
            ctime: time,
            birth: time,
            body: Body::Directory(Box::new(directory::Directory::new(fs.root))),
            ..Inode::free()
        };
        root.set_mode(mode);
        // The table is empty: its first number is free.
        let _ = fs.table.restore(fs.root.ino, root);
        fs.space.restore(0, space::of_file(b""));
        fs
    }

    fn without_root(config: FsConfig) -> Self {
        Self {
            clock: Clock::new(config.change_granularity),
            space: Space::new(config.limit),
            table: Table::new(),
            hasher: DefaultHashBuilder::default(),
            renames: Mutex::new(()),
            root: Node { ino: 1, generation: 1 },
            volatile: config.volatile.then(Volatile::default),
            logged: None,
            troubles: Troubles::default(),
            config,
        }
    }

    /// Node of the root directory.
    pub fn root(&self) -> Node {
        self.root
    }

    /// Space and file counts.
    pub fn stat(&self) -> FsStat {
        let files = self.table.used();
        let total_bytes = self.space.limit();
        let free_files = self.space.free_files().min((CAPACITY - 1).saturating_sub(files));
        FsStat {
            total_bytes,
            free_bytes: total_bytes.saturating_sub(self.space.used()),
            total_files: files.saturating_add(free_files),
            free_files,
            used_files: files,
        }
    }

    /// Marks a directory as the place where another file system is mounted: it is neither removed nor replaced.
    pub(crate) fn pin(&self, dir: Node) -> Result<(), FsError> {
        self.table.write(dir)?.pinned = true;
        Ok(())
    }

    /// Locks files for writing, by ascending number; the guards come in that order. Different files.
    fn lock(&self, mut nodes: [Node; 2]) -> Result<SmallVec<[WriteGuard<'_>; 4]>, FsError> {
        nodes.sort_unstable();
        // Of one number, even one generation: the second lock would wait for the first.
        if nodes[0].ino == nodes[1].ino {
            return Err(FsError::Stale);
        }
        nodes.iter().map(|node| self.table.write(*node)).collect()
    }

    /// Locks the files of a rename for writing (each once) by ascending number; says which guard is whose. The first
    /// two must be there; `None` when another one is gone.
    #[allow(clippy::type_complexity, reason = "two lists that belong together")]
    fn lock_found(
        &self,
        nodes: [Option<Node>; 4],
    ) -> Result<Option<(SmallVec<[Node; 4]>, SmallVec<[WriteGuard<'_>; 4]>)>, FsError> {
        let mut order: SmallVec<[Node; 4]> = nodes.into_iter().flatten().collect();
        order.sort_unstable();
        order.dedup();
        if order.windows(2).any(|pair| pair[0].excludes(pair[1])) {
            let [from, to, ..] = nodes;
            let given = from.zip(to).is_some_and(|(from, to)| from.excludes(to));
            return if given { Err(FsError::Stale) } else { Ok(None) };
        }
        let mut guards = SmallVec::new();
        for node in &order {
            match self.table.write(*node) {
                Ok(guard) => guards.push(guard),
                Err(error) if nodes[..2].contains(&Some(*node)) => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some((order, guards)))
    }
}
