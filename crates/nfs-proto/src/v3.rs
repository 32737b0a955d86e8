//! NFS version 3 (RFC 1813): procedures, status, attributes, arguments and results.

mod data;
mod procedures;

pub use data::*;
pub use procedures::*;

use crate::xdr::{Decode, Decoder, Encode, Encoder, XdrError};

/// RPC program of NFS, all versions.
pub const PROGRAM: u32 = 100_003;
/// Version of the program.
pub const VERSION: u32 = 3;

xdr_code! {
    /// Procedure numbers (RFC 1813 §3).
    pub struct Proc3("NFSPROC3_") {
        /// Do nothing.
        NULL = 0,
        /// Attributes of an object.
        GETATTR = 1,
        /// Change attributes.
        SETATTR = 2,
        /// Look a name up.
        LOOKUP = 3,
        /// Ask what the caller may do.
        ACCESS = 4,
        /// Content of a symbolic link.
        READLINK = 5,
        /// Read from a file.
        READ = 6,
        /// Write to a file.
        WRITE = 7,
        /// Create a regular file.
        CREATE = 8,
        /// Create a directory.
        MKDIR = 9,
        /// Create a symbolic link.
        SYMLINK = 10,
        /// Create a special file.
        MKNOD = 11,
        /// Remove a name of something that is no directory.
        REMOVE = 12,
        /// Remove a directory.
        RMDIR = 13,
        /// Rename.
        RENAME = 14,
        /// Create a hard link.
        LINK = 15,
        /// List a directory.
        READDIR = 16,
        /// List a directory with attributes and handles.
        READDIRPLUS = 17,
        /// Changing state of the file system.
        FSSTAT = 18,
        /// Fixed properties of the file system.
        FSINFO = 19,
        /// POSIX limits.
        PATHCONF = 20,
        /// Commit written data to stable storage.
        COMMIT = 21,
    }
    /// Status of a procedure (RFC 1813 §2.6).
    pub struct Nfsstat3("NFS3ERR_") {
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
        /// Hard link across devices.
        XDEV = 18,
        /// No such device.
        NODEV = 19,
        /// Not a directory.
        NOTDIR = 20,
        /// Is a directory.
        ISDIR = 21,
        /// Invalid or unsupported argument.
        INVAL = 22,
        /// File too large.
        FBIG = 27,
        /// No space left.
        NOSPC = 28,
        /// Read-only file system.
        ROFS = 30,
        /// Too many hard links.
        MLINK = 31,
        /// Name too long.
        NAMETOOLONG = 63,
        /// Directory not empty.
        NOTEMPTY = 66,
        /// Quota exceeded.
        DQUOT = 69,
        /// The handle's object is gone.
        STALE = 70,
        /// Too many levels of remote in path.
        REMOTE = 71,
        /// The handle is malformed.
        BADHANDLE = 10001,
        /// SETATTR's guard does not match.
        NOT_SYNC = 10002,
        /// Stale READDIR or READDIRPLUS cookie.
        BAD_COOKIE = 10003,
        /// Operation not supported.
        NOTSUPP = 10004,
        /// Buffer or request too small.
        TOOSMALL = 10005,
        /// Error of the server that maps to no other.
        SERVERFAULT = 10006,
        /// The server cannot create objects of this type.
        BADTYPE = 10007,
        /// Started, will take long: try again later.
        JUKEBOX = 10008,
    }
}

/// Result of a procedure: `T` after success, otherwise the status and what the procedure tells nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Res<T, F = ()> {
    /// `NFS3_OK`.
    Ok(T),
    /// Any other status.
    Err(Nfsstat3, F),
}

impl<T, F> Res<T, F> {
    /// The status.
    pub fn status(&self) -> Nfsstat3 {
        match self {
            Self::Ok(_) => Nfsstat3::OK,
            Self::Err(status, _) => *status,
        }
    }

    /// The result or the status.
    pub fn ok(self) -> Result<T, Nfsstat3> {
        match self {
            Self::Ok(value) => Ok(value),
            Self::Err(status, _) => Err(status),
        }
    }
}

impl<'a, T: Decode<'a>, F: Decode<'a>> Decode<'a> for Res<T, F> {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(match d.get()? {
            Nfsstat3::OK => Self::Ok(d.get()?),
            status => Self::Err(status, d.get()?),
        })
    }
}

impl<T: Encode, F: Encode> Encode for Res<T, F> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        e.put(&self.status());
        match self {
            Self::Ok(value) => e.put(value),
            Self::Err(_, value) => e.put(value),
        }
    }
}

#[cfg(test)]
impl<'a, T: arbitrary::Arbitrary<'a>, F: arbitrary::Arbitrary<'a>> arbitrary::Arbitrary<'a> for Res<T, F> {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(match u.arbitrary()? {
            Nfsstat3::OK => Self::Ok(u.arbitrary()?),
            _ if u.arbitrary()? => Self::Ok(u.arbitrary()?),
            status => Self::Err(status, u.arbitrary()?),
        })
    }
}
