//! What a file system says about its files.

use std::sync::Arc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::Acl;
use crate::cred::Credentials;

/// Inode numbers there can be.
pub(super) const CAPACITY: u64 = 1 << 32;
/// Longest file name.
pub const NAME_MAX: usize = 255;
/// Longest symbolic link and path.
pub const PATH_MAX: usize = 4096;
/// Most hard links to a file.
pub const LINK_MAX: u32 = 65_000;
/// Longest value of an extended attribute.
pub const XATTR_SIZE_MAX: usize = 65_536;

/// A file: inode number, and which use of that number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// Inode number, from 1 (the root).
    pub ino: u64,
    /// Counts the uses of the number.
    pub generation: u32,
}

impl Node {
    /// Whether both are different uses of one number: one of them is gone, and their locks would be the same.
    pub(super) fn excludes(self, other: Self) -> bool {
        self.ino == other.ino && self.generation != other.generation
    }
}

/// Time since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanos: u32,
}

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Block device.
    Block,
    /// Character device.
    Character,
    /// FIFO.
    Fifo,
    /// Socket.
    Socket,
}

/// Attributes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attr {
    /// Which file.
    pub node: Node,
    /// File type.
    pub kind: Kind,
    /// Permission bits, set-user-ID, set-group-ID, sticky (07777).
    pub mode: u32,
    /// Hard links.
    pub nlink: u32,
    /// User id of the owner.
    pub uid: u32,
    /// Owning group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Bytes of memory that its data takes.
    pub used: u64,
    /// Major and minor number of a device.
    pub device: (u32, u32),
    /// Last read.
    pub atime: Time,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change of data or attributes.
    pub ctime: Time,
    /// Creation.
    pub birth: Time,
    /// Grows with every change of data or attributes.
    pub change: u64,
    /// Access control list, where it says more than the mode.
    pub acl: Option<Arc<Acl>>,
}

/// A time to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The server's.
    Now,
    /// The client's.
    To(Time),
}

/// Attributes to be set; `None` leaves as is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetAttr {
    /// Permission bits (07777). Setting them changes an access control list that is there.
    pub mode: Option<u32>,
    /// Bits that the mode of a new file does not get, unless it inherits an access control list (RFC 8275 §4.2).
    pub umask: u32,
    /// Access control list; the nine permission bits follow it, whatever `mode` says.
    pub acl: Option<Arc<Acl>>,
    /// User id of the owner.
    pub uid: Option<u32>,
    /// Owning group.
    pub gid: Option<u32>,
    /// Size: truncates or extends.
    pub size: Option<u64>,
    /// Time of last read.
    pub atime: Option<SetTime>,
    /// Time of last change of data.
    pub mtime: Option<SetTime>,
    /// Time of creation.
    pub birth: Option<Time>,
}

/// A change of one file: attributes just before and just after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Before.
    pub before: Attr,
    /// After.
    pub after: Attr,
}

/// A file to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewFile<'a> {
    /// Regular file.
    Regular,
    /// Directory.
    Directory,
    /// Symbolic link with its content.
    Symlink(&'a [u8]),
    /// Device, FIFO or socket, with its device number.
    Special(Kind, (u32, u32)),
}

/// What [`super::FileSystem::create`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Attributes of the new file.
    pub attr: Attr,
    /// Change of the directory.
    pub dir: Changed,
}

/// What [`super::FileSystem::link`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// The file, with one more link.
    pub attr: Attr,
    /// The directory of the new name.
    pub dir: Changed,
}

/// Kinds that a removal accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveKind {
    /// Anything but a directory ([`FsError::IsDirectory`]).
    File,
    /// Only a directory ([`FsError::NotDirectory`]).
    Directory,
    /// Both.
    Any,
}

/// What [`super::FileSystem::remove`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The file, after; `nlink` 0 when this was its last name.
    pub attr: Attr,
    /// Change of the directory.
    pub dir: Changed,
}

/// What [`super::FileSystem::rename`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Directory of the old name.
    pub from: Changed,
    /// Directory of the new name.
    pub to: Changed,
    /// The file that had the new name before, after losing it.
    pub replaced: Option<Attr>,
}

/// Outcome of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadInfo {
    /// Number of bytes read.
    pub len: u32,
    /// Whether the end of file was reached.
    pub eof: bool,
    /// Attributes after the operation.
    pub attr: Attr,
}

/// An entry of a directory.
#[derive(Debug, Clone)]
pub struct DirEntry<'a> {
    /// Name of the entry.
    pub name: &'a [u8],
    /// Where to go on after it.
    pub cookie: u64,
    /// Node that the entry refers to.
    pub node: Node,
    /// Attributes, when asked for.
    pub attr: Option<Attr>,
}

/// Space and file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsStat {
    /// Total size in bytes.
    pub total_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Files that could exist.
    pub total_files: u64,
    /// Files that could still be made.
    pub free_files: u64,
    /// Number of files in use.
    pub used_files: u64,
}

/// What SEEK looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekKind {
    /// Data.
    Data,
    /// A hole (every file ends in one).
    Hole,
}

/// How an extended attribute is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XattrSet {
    /// Creates or replaces the attribute.
    Either,
    /// Creates the attribute; [`FsError::Exists`] if it exists.
    Create,
    /// Replaces the attribute; [`FsError::NoXattr`] if there is none.
    Replace,
}

/// Rights asked for, as bits of [`permits`].
///
/// Those after [`access::EXECUTE`] differ from writing only where there is an access control list.
pub mod access {
    /// Read data or list a directory.
    pub const READ: u32 = 4;
    /// Write data, or change a directory.
    pub const WRITE: u32 = 2;
    /// Execute, or search a directory.
    pub const EXECUTE: u32 = 1;
    /// Add a directory to a directory.
    pub const ADD_DIRECTORY: u32 = 8;
    /// Remove entries of a directory.
    pub const REMOVE_ENTRY: u32 = 16;
    /// Remove the file, wherever it is: by a list only.
    pub const REMOVE: u32 = 32;
    /// Set any times: by a list only, else the owner's right.
    pub const SET_TIMES: u32 = 64;
    /// Set mode and list: by a list only, else the owner's right.
    pub const SET_ACL: u32 = 128;
    /// Become the owner: by a list only.
    pub const TAKE: u32 = 256;
}

/// Whether `who` has all of `wanted` (bits of [`access`]) by the access control list or, without one, by the rules of POSIX for
/// mode bits. User 0 may everything, but execute only what someone may execute.
pub fn permits(attr: &Attr, who: &Credentials, wanted: u32) -> bool {
    if who.uid == 0 {
        let executable = || attr.mode & 0o111 != 0 || attr.acl.as_ref().is_some_and(|acl| acl.lets_execute());
        return wanted & access::EXECUTE == 0 || attr.kind == Kind::Directory || executable();
    }
    if let Some(acl) = attr.acl.as_ref().filter(|_| !is_broken(Mutant::AclUnchecked)) {
        return acl.permits(who, attr.uid, attr.gid, wanted);
    }
    let shift = if who.uid == attr.uid {
        6
    } else if who.in_group(attr.gid) {
        3
    } else {
        0
    };
    let writes = if wanted & (access::ADD_DIRECTORY | access::REMOVE_ENTRY) == 0 { 0 } else { access::WRITE };
    let wanted = wanted & !(access::ADD_DIRECTORY | access::REMOVE_ENTRY) | writes;
    attr.mode >> shift & 7 & wanted == wanted
}

/// Why the file system refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// Caller is not the owner.
    #[error("not owner")]
    NotOwner,
    /// The name does not exist.
    #[error("no such file or directory")]
    NotFound,
    /// Permission bits say no.
    #[error("permission denied")]
    Access,
    /// The name exists.
    #[error("file exists")]
    Exists,
    /// Source and destination are on different file systems.
    #[error("cross-device link")]
    CrossDevice,
    /// The file is not a directory.
    #[error("not a directory")]
    NotDirectory,
    /// The file is a directory.
    #[error("is a directory")]
    IsDirectory,
    /// Arguments make no sense for this file.
    #[error("invalid argument")]
    Invalid,
    /// Is a symbolic link where none is allowed.
    #[error("is a symbolic link")]
    IsSymlink,
    /// Neither regular file nor directory where one is needed.
    #[error("wrong kind of file")]
    WrongKind,
    /// Offset or size beyond what is supported.
    #[error("file too large")]
    TooLarge,
    /// The limit of the export is reached.
    #[error("no space left")]
    NoSpace,
    /// The disk failed, or changes cannot be kept any more.
    #[error("input/output error")]
    Io,
    /// The export is read-only.
    #[error("read-only file system")]
    ReadOnly,
    /// Too many hard links.
    #[error("too many links")]
    TooManyLinks,
    /// Name longer than [`NAME_MAX`].
    #[error("name too long")]
    NameTooLong,
    /// Empty name, or one with a slash or NUL.
    #[error("not a name")]
    BadName,
    /// The directory has entries.
    #[error("directory not empty")]
    NotEmpty,
    /// The file is gone.
    #[error("stale file handle")]
    Stale,
    /// Guard of SETATTR did not match.
    #[error("attributes changed meanwhile")]
    NotSync,
    /// No such extended attribute.
    #[error("no such extended attribute")]
    NoXattr,
    /// Extended attribute too large.
    #[error("extended attribute too large")]
    XattrTooBig,
    /// Offset at or after the end of file (SEEK).
    #[error("no data after this offset")]
    NoSuchRange,
}
