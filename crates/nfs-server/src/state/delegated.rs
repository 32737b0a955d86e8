//! What is known of a file that is delegated for writing.

use std::time::Instant;

use crate::fs::{Attr, Time};

/// What is known of a delegated file.
#[derive(Debug)]
pub(super) struct Held {
    /// When it was delegated.
    pub(super) granted: Seen,
    /// When the holder was asked, while it has not answered.
    pub(super) asked: Option<Instant>,
    pub(super) answer: Option<(Instant, Answer)>,
    /// Whether the holder has changed the file.
    pub(super) modified: bool,
}

/// A file as its attributes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(super) change: u64,
    pub(super) size: u64,
    atime: Time,
    mtime: Time,
}

impl From<&Attr> for Seen {
    fn from(attr: &Attr) -> Self {
        Self { change: attr.change, size: attr.size, atime: attr.atime, mtime: attr.mtime }
    }
}

/// What a holder answered, as far as it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HolderAttributes {
    /// Change attribute.
    pub change: Option<u64>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Time of last access.
    pub atime: Option<Time>,
    /// Time of the last change of data.
    pub mtime: Option<Time>,
}

/// What other clients are shown of a file whose holder has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) size: u64,
    pub(crate) modified: bool,
    pub(crate) atime: Option<Time>,
    pub(crate) mtime: Option<Time>,
    /// Whether it is shown for the first time: then the file takes it over.
    pub(crate) first: bool,
}

impl Held {
    /// The times that count: none from before the delegation (RFC 9754 §5). What lies in the future is cut to now by
    /// the file.
    pub(super) fn vet(&self, (atime, mtime): (Option<Time>, Option<Time>)) -> (Option<Time>, Option<Time>) {
        let Seen { atime: accessed, mtime: changed, .. } = self.granted;
        (atime.filter(|time| *time >= accessed), mtime.filter(|time| *time >= changed))
    }
}
