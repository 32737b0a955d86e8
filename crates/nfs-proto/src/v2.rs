//! NFS version 2 (RFC 1094): procedures, status, attributes, arguments and results.

use crate::xdr::{Bulk, Chain, Decode, Decoder, Encode, Encoder, Opaque, XdrError};

/// RPC program of NFS, all versions.
pub const PROGRAM: u32 = 100_003;
/// Version of the program.
pub const VERSION: u32 = 2;
/// Most bytes of one READ or WRITE (RFC 1094 §2.3.1).
pub const MAX_DATA: u32 = 8192;
/// Longest name.
pub const MAX_NAME: u32 = 255;
/// Longest path (content of a symbolic link).
pub const MAX_PATH: u32 = 1024;
/// A field of [`Sattr`] that is not to be set.
pub const UNSET: u32 = u32::MAX;
/// Microseconds in a [`Timeval`] of [`Sattr`] that ask for the server's time: a custom of all clients and servers,
/// after SunOS.
pub const SERVER_TIME: u32 = 1_000_000;

/// File handle.
pub type Fhandle = [u8; 32];
/// Name within a directory.
pub type Filename<'a> = Opaque<'a, MAX_NAME>;
/// Content of a symbolic link.
pub type Path<'a> = Opaque<'a, MAX_PATH>;

xdr_code! {
    /// Procedure numbers (RFC 1094 §2.2).
    pub struct Proc2("NFSPROC_") {
        /// Do nothing.
        NULL = 0,
        /// Attributes of an object.
        GETATTR = 1,
        /// Change attributes.
        SETATTR = 2,
        /// Obsolete.
        ROOT = 3,
        /// Look a name up.
        LOOKUP = 4,
        /// Content of a symbolic link.
        READLINK = 5,
        /// Read from a file.
        READ = 6,
        /// Never used.
        WRITECACHE = 7,
        /// Write to a file, stably.
        WRITE = 8,
        /// Create a file.
        CREATE = 9,
        /// Remove a name of something that is no directory.
        REMOVE = 10,
        /// Rename.
        RENAME = 11,
        /// Create a hard link.
        LINK = 12,
        /// Create a symbolic link.
        SYMLINK = 13,
        /// Create a directory.
        MKDIR = 14,
        /// Remove a directory.
        RMDIR = 15,
        /// List a directory.
        READDIR = 16,
        /// State of the file system.
        STATFS = 17,
    }
    /// Status of a procedure (RFC 1094 §2.3.1).
    pub struct Nfsstat2("NFSERR_") {
        /// Success.
        OK = 0,
        /// Not owner.
        PERM = 1,
        /// No such file or directory.
        NOENT = 2,
        /// I/O error.
        IO = 5,
        /// No such device or address.
        NXIO = 6,
        /// Permission denied.
        ACCES = 13,
        /// File exists.
        EXIST = 17,
        /// No such device.
        NODEV = 19,
        /// Not a directory.
        NOTDIR = 20,
        /// Is a directory.
        ISDIR = 21,
        /// File too large.
        FBIG = 27,
        /// No space left.
        NOSPC = 28,
        /// Read-only file system.
        ROFS = 30,
        /// Name too long.
        NAMETOOLONG = 63,
        /// Directory not empty.
        NOTEMPTY = 66,
        /// Quota exceeded.
        DQUOT = 69,
        /// The handle's object is gone.
        STALE = 70,
        /// The server's write cache was flushed.
        WFLUSH = 99,
    }
}

xdr_enum! {
    /// Type of a file system object.
    pub enum Ftype {
        /// No file; sockets.
        Non = 0,
        /// Regular file.
        Reg = 1,
        /// Directory.
        Dir = 2,
        /// Block device.
        Blk = 3,
        /// Character device; named pipes have device number [`UNSET`].
        Chr = 4,
        /// Symbolic link.
        Lnk = 5,
    }
}

xdr_struct! {
    /// Time since 1970-01-01 UTC.
    pub struct Timeval {
        /// Seconds since 1970-01-01.
        pub seconds: u32,
        /// Microseconds of the second.
        pub useconds: u32,
    }
    /// Attributes of an object.
    pub struct Fattr {
        /// File type.
        pub ftype: Ftype,
        /// Type and permission bits, as in `stat`.
        pub mode: u32,
        /// Hard links.
        pub nlink: u32,
        /// User id of the owner.
        pub uid: u32,
        /// Group id of the owner's group.
        pub gid: u32,
        /// Size in bytes.
        pub size: u32,
        /// Size of a block.
        pub blocksize: u32,
        /// Device number of a special file.
        pub rdev: u32,
        /// Space used, in blocks of 512 bytes.
        pub blocks: u32,
        /// Number of the file system on the server.
        pub fsid: u32,
        /// Number of the object within its file system.
        pub fileid: u32,
        /// Time of the last access.
        pub atime: Timeval,
        /// Last change of data.
        pub mtime: Timeval,
        /// Last change of attributes.
        pub ctime: Timeval,
    }
    /// Attributes to set; [`UNSET`] leaves one as it is.
    pub struct Sattr {
        /// Permission bits.
        pub mode: u32,
        /// User id of the owner.
        pub uid: u32,
        /// Group id of the owner's group.
        pub gid: u32,
        /// Size in bytes.
        pub size: u32,
        /// Time of the last access.
        pub atime: Timeval,
        /// Last change of data.
        pub mtime: Timeval,
    }
    /// A name in a directory.
    pub struct DirOpArgs<'a> {
        /// Handle of the directory.
        pub dir: Fhandle,
        /// Name of the entry.
        pub name: Filename<'a>,
    }
    /// Handle and attributes of an object.
    pub struct DirOpOk {
        /// Filehandle of the object.
        pub file: Fhandle,
        /// Attributes of the object.
        pub attributes: Fattr,
    }
    /// Arguments of SETATTR.
    pub struct SetattrArgs {
        /// Filehandle of the object.
        pub file: Fhandle,
        /// Attributes to set.
        pub attributes: Sattr,
    }
    /// Arguments of READ.
    pub struct ReadArgs {
        /// Filehandle of the file.
        pub file: Fhandle,
        /// Offset of the first byte.
        pub offset: u32,
        /// Number of bytes.
        pub count: u32,
        /// Unused.
        pub totalcount: u32,
    }
    /// Result of READ.
    pub struct ReadOk<'a> {
        /// Attributes of the file.
        pub attributes: Fattr,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// Arguments of WRITE.
    pub struct WriteArgs<'a> {
        /// Filehandle of the file.
        pub file: Fhandle,
        /// Unused.
        pub beginoffset: u32,
        /// Offset of the first byte.
        pub offset: u32,
        /// Unused.
        pub totalcount: u32,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// Arguments of CREATE and MKDIR.
    pub struct CreateArgs<'a> {
        /// Directory and name of the new object.
        pub where_: DirOpArgs<'a>,
        /// Attributes of the new object.
        pub attributes: Sattr,
    }
    /// Arguments of RENAME.
    pub struct RenameArgs<'a> {
        /// Directory and name before the operation.
        pub from: DirOpArgs<'a>,
        /// Directory and name after the operation.
        pub to: DirOpArgs<'a>,
    }
    /// Arguments of LINK.
    pub struct LinkArgs<'a> {
        /// Filehandle of the object.
        pub from: Fhandle,
        /// Directory and name of the new link.
        pub to: DirOpArgs<'a>,
    }
    /// Arguments of SYMLINK.
    pub struct SymlinkArgs<'a> {
        /// Directory and name of the object.
        pub from: DirOpArgs<'a>,
        /// Path that the link refers to.
        pub to: Path<'a>,
        /// Attributes of the new object.
        pub attributes: Sattr,
    }
    /// Arguments of READDIR.
    pub struct ReaddirArgs {
        /// Exported directory, or filehandle of a directory.
        pub dir: Fhandle,
        /// Cookie of the last entry seen, 0 at first.
        pub cookie: u32,
        /// Most bytes of entries.
        pub count: u32,
    }
    /// An entry of a directory.
    pub struct Entry<'a> {
        /// Number of the object.
        pub fileid: u32,
        /// Name of the entry.
        pub name: Filename<'a>,
        /// Where to go on after this entry.
        pub cookie: u32,
    }
    /// Result of READDIR.
    pub struct ReaddirOk<'a> {
        /// Entries of the directory, in order of their cookies.
        pub entries: Chain<'a, Entry<'a>>,
        /// Whether the last one is the directory's last.
        pub eof: bool,
    }
    /// Result of STATFS.
    pub struct StatfsOk {
        /// Best size of READ and WRITE.
        pub tsize: u32,
        /// Size of a block.
        pub bsize: u32,
        /// Total size in blocks.
        pub blocks: u32,
        /// Free blocks, including those reserved for the superuser.
        pub bfree: u32,
        /// Blocks free for the caller.
        pub bavail: u32,
    }
}

impl Sattr {
    /// Sets nothing.
    pub const NONE: Self = {
        let time = Timeval { seconds: UNSET, useconds: UNSET };
        Self { mode: UNSET, uid: UNSET, gid: UNSET, size: UNSET, atime: time, mtime: time }
    };
}

/// Result of a procedure: `T` after success, otherwise the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Res<T> {
    /// `NFS_OK`.
    Ok(T),
    /// Any other status.
    Err(Nfsstat2),
}

impl<T> Res<T> {
    /// The status.
    pub fn status(&self) -> Nfsstat2 {
        match self {
            Self::Ok(_) => Nfsstat2::OK,
            Self::Err(status) => *status,
        }
    }

    /// The result or the status.
    pub fn ok(self) -> Result<T, Nfsstat2> {
        match self {
            Self::Ok(value) => Ok(value),
            Self::Err(status) => Err(status),
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Res<T> {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(match d.get()? {
            Nfsstat2::OK => Self::Ok(d.get()?),
            status => Self::Err(status),
        })
    }
}

impl<T: Encode> Encode for Res<T> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        e.put(&self.status());
        if let Self::Ok(value) = self {
            e.put(value);
        }
    }
}

#[cfg(test)]
impl<'a, T: arbitrary::Arbitrary<'a>> arbitrary::Arbitrary<'a> for Res<T> {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(match u.arbitrary()? {
            Nfsstat2::OK => Self::Ok(u.arbitrary()?),
            _ if u.arbitrary()? => Self::Ok(u.arbitrary()?),
            status => Self::Err(status),
        })
    }
}

/// Result of GETATTR, SETATTR and WRITE.
pub type AttrRes = Res<Fattr>;
/// Result of LOOKUP, CREATE and MKDIR.
pub type DirOpRes = Res<DirOpOk>;
/// Result of READLINK.
pub type ReadlinkRes<'a> = Res<Path<'a>>;
/// Result of READ.
pub type ReadRes<'a> = Res<ReadOk<'a>>;
/// Result of READDIR.
pub type ReaddirRes<'a> = Res<ReaddirOk<'a>>;
/// Result of STATFS.
pub type StatfsRes = Res<StatfsOk>;
