//! What the versions of NFS have in common.

pub use benchmaster_record::nfs::NfsVersion as Version;
use std::fmt;

/// A filehandle: up to 128 bytes that only the server understands.
#[derive(Clone, Copy)]
pub struct Handle {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl Handle {
    /// Most bytes (RFC 7530 §4.1; 64 in version 3, exactly 32 in version 2).
    pub const MAX: usize = 128;

    /// The handle of these bytes; `None` when there are too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut handle = Self { len: bytes.len() as u8, bytes: [0; Self::MAX] };
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(handle)
    }

    /// The bytes of the handle, as the server chose them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Default for Handle {
    /// The empty handle, which no server gives out.
    fn default() -> Self {
        Self { len: 0, bytes: [0; Self::MAX] }
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Handle {}

impl PartialOrd for Handle {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Handle {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl std::hash::Hash for Handle {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileType {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Device, socket, pipe.
    Other,
}

/// A time as the server gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
}

/// Attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// File type.
    pub kind: FileType,
    /// Permission bits.
    pub mode: u32,
    /// Number of hard links.
    pub links: u32,
    /// Owner, where it is a number.
    pub uid: u32,
    /// Group, where it is a number.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Storage in bytes.
    pub used: u64,
    /// Identifier of the file system on the server.
    pub fsid: (u64, u64),
    /// Number of the file within its file system.
    pub fileid: u64,
    /// Time of the last access.
    pub accessed: Time,
    /// Last change of the content.
    pub modified: Time,
    /// Last change of content or attributes.
    pub changed: Time,
    /// Changes whenever the file does: the change attribute of version 4, else made of [`Self::changed`].
    pub change: u64,
}

/// Attributes to set; what is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// User id of the owner.
    pub uid: Option<u32>,
    /// Group id.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Time of the last access.
    pub accessed: Option<SetTime>,
    /// Last change of the content.
    pub modified: Option<SetTime>,
}

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The server's current time.
    Now,
    /// The given time.
    To(Time),
}

/// How stable written data must be before the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stability {
    /// Not at all; COMMIT makes it so.
    #[default]
    Unstable,
    /// Data, and metadata needed to read them.
    Data,
    /// Data and metadata are stable (FILE_SYNC).
    File,
}

/// Tells instances of a server apart: unstable data written under another verifier may be lost.
pub type Verifier = [u8; 8];

/// What a READ brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Bytes put into the buffer.
    pub len: usize,
    /// Whether the file ends there.
    pub eof: bool,
}

/// What a WRITE did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Number of bytes written.
    pub len: usize,
    /// How stable they are.
    pub stability: Stability,
    /// Changes when the server may have lost unstable data.
    pub verifier: Verifier,
    /// Attributes after it, where the version has them.
    pub attributes: Option<Attributes>,
}

/// What access is asked for and granted (the bits of ACCESS, RFC 1813 §3.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessBits(pub u32);

impl AccessBits {
    /// Read a file or directory.
    pub const READ: u32 = 1;
    /// Find a name in a directory.
    pub const LOOKUP: u32 = 2;
    /// Rewrite data or change entries.
    pub const MODIFY: u32 = 4;
    /// Append or add entries.
    pub const EXTEND: u32 = 8;
    /// Deleting entries of a directory.
    pub const DELETE: u32 = 16;
    /// Executing a file.
    pub const EXECUTE: u32 = 32;
    /// All bits.
    pub const ALL: u32 = 63;
}

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Shared lock.
    Read,
    /// Exclusive lock.
    Write,
}

/// Bytes of a file. `length` 0: to the end, however far it moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes; 0: to the end of the file.
    pub length: u64,
}

impl Range {
    /// All of a file.
    pub const WHOLE: Self = Self { offset: 0, length: 0 };

    /// First byte, and the one after the last; `u64::MAX` where there is no last.
    fn span(self) -> (u64, u64) {
        let end = if self.length == 0 { u64::MAX } else { self.offset.saturating_add(self.length) };
        (self.offset, end)
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        let ((from, to), (start, end)) = (self.span(), other.span());
        from < end && start < to
    }

    /// What is left without the bytes of another: a part before them and one after them.
    pub(crate) fn without(self, other: Self) -> impl Iterator<Item = Self> {
        let ((from, to), (start, end)) = (self.span(), other.span());
        let part = |from: u64, to: u64| {
            (from < to).then(|| Self { offset: from, length: if to == u64::MAX { 0 } else { to - from } })
        };
        let parts =
            if self.overlaps(other) { [part(from, start), part(end, to)] } else { [Some(self), None] };
        parts.into_iter().flatten()
    }
}

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenHow {
    /// Opens for reading.
    pub read: bool,
    /// Opens for writing.
    pub write: bool,
    /// Whether and how to create it.
    pub create: Create,
    /// Truncate an existing file.
    pub truncate: bool,
    /// Permission bits of a new file.
    pub mode: u32,
}

/// Whether and how a file is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// The file must exist.
    #[default]
    No,
    /// Created if it does not exist.
    IfAbsent,
    /// Must not exist (EXCLUSIVE4_1, EXCLUSIVE4 or EXCLUSIVE in version 3, so that a repeated request is recognised).
    Exclusive,
}

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Total size in bytes.
    pub total: u64,
    /// Bytes free for this user.
    pub available: u64,
    /// Files free for this user.
    pub files_available: u64,
}

/// Limits of a server's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest READ in bytes.
    pub max_read: u32,
    /// Largest WRITE in bytes.
    pub max_write: u32,
    /// Granularity of times in nanoseconds (`time_delta`).
    pub time_delta_ns: u64,
    /// Seconds of the lease; 0 where there is none.
    pub lease_seconds: u32,
}

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Name of the entry.
    pub name: &'a [u8],
    /// Number of the file.
    pub fileid: u64,
    /// Attributes, where they were asked for and came.
    pub attributes: Option<&'a Attributes>,
    /// Filehandle, where it was asked for and came.
    pub handle: Option<&'a Handle>,
}
