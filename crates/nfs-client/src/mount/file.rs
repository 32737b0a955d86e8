//! Open files.

use std::rc::Rc;

use super::ClientFile;
use super::node::{Node, Slot};
use crate::types::{Create, OpenHow, Stability};

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "flags of open()")]
pub struct OpenFlags {
    /// Opens for reading.
    pub read: bool,
    /// Opens for writing.
    pub write: bool,
    /// Created if it does not exist.
    pub create: bool,
    /// Must not exist; implies [`Self::create`].
    pub exclusive: bool,
    /// Truncated if it exists.
    pub truncate: bool,
    /// Every write of this open file goes to the end.
    pub append: bool,
    /// Writes are stable, with all metadata, when they return (`O_SYNC`).
    pub sync: bool,
    /// Writes are stable, with the metadata needed to read them, when they return (`O_DSYNC`).
    pub dsync: bool,
    /// Permission bits of a new file.
    pub mode: u32,
}

impl OpenFlags {
    /// For reading.
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        append: false,
        sync: false,
        dsync: false,
        mode: 0o644,
    };
    /// For writing.
    pub const WRITE: Self = Self { read: false, write: true, ..Self::READ };
    /// For both.
    pub const READ_WRITE: Self = Self { write: true, ..Self::READ };
    /// For writing; created if it does not exist, else truncated.
    pub const CREATE: Self = Self { create: true, truncate: true, ..Self::WRITE };

    pub(super) fn how(&self) -> OpenHow {
        let create = match (self.exclusive, self.create) {
            (true, _) => Create::Exclusive,
            (false, true) => Create::IfAbsent,
            (false, false) => Create::No,
        };
        let write = self.write || self.append || self.truncate;
        OpenHow { read: self.read || !write, write, create, truncate: self.truncate, mode: self.mode }
    }
}

/// A file that a [`Mount`](super::Mount) opened. Give it to [`Mount::close`](super::Mount::close): dropped, it stays
/// open on a server that knows open files (version 4), and what was not flushed is lost.
#[derive(Debug)]
pub struct File {
    pub(super) open: Open,
    pub(super) node: Rc<Node>,
    pub(super) stability: Stability,
    pub(super) append: bool,
    /// Tells its locks from those of other open files.
    pub(super) owner: u64,
}

/// How a file is open.
#[derive(Debug)]
pub(super) enum Open {
    /// Opened at the server.
    Server(ClientFile),
    /// Perhaps only here.
    Cached(Rc<Slot>),
}

impl File {
    pub(super) fn new(open: Open, node: Rc<Node>, flags: &OpenFlags, mount: Stability, owner: u64) -> Self {
        let own = match (flags.sync, flags.dsync) {
            (true, _) => Stability::File,
            (false, true) => Stability::Data,
            (false, false) => Stability::Unstable,
        };
        Self { open, node, stability: own.max(mount), append: flags.append, owner }
    }
}
