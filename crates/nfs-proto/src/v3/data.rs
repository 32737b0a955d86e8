//! Basic data types (RFC 1813 §2.2 to §2.6).

use crate::xdr::Opaque;

/// File handle, at most 64 bytes.
pub type Fh3<'a> = Opaque<'a, 64>;
/// Name within a directory. The protocol sets no limit; servers do (`NFS3ERR_NAMETOOLONG`).
pub type Filename3<'a> = Opaque<'a>;
/// Content of a symbolic link.
pub type Nfspath3<'a> = Opaque<'a>;
/// Verifier of READDIR cookies.
pub type Cookieverf3 = [u8; 8];
/// Verifier of exclusive creation.
pub type Createverf3 = [u8; 8];
/// Identity of a server instance: unstable data is lost when it changes.
pub type Writeverf3 = [u8; 8];
/// Attributes after an operation, where the server has them at hand.
pub type PostOpAttr = Option<Fattr3>;
/// Handle of a new object, where the server has it at hand.
pub type PostOpFh3<'a> = Option<Fh3<'a>>;

/// Bits of ACCESS (RFC 1813 §3.3.4).
pub mod access {
    /// Read data or list a directory.
    pub const READ: u32 = 0x0001;
    /// Look a name up.
    pub const LOOKUP: u32 = 0x0002;
    /// Rewrite data or change entries.
    pub const MODIFY: u32 = 0x0004;
    /// Write new data or add entries.
    pub const EXTEND: u32 = 0x0008;
    /// Delete an entry.
    pub const DELETE: u32 = 0x0010;
    /// Execute.
    pub const EXECUTE: u32 = 0x0020;
}

/// Bits of [`FsinfoOk::properties`](super::FsinfoOk) (RFC 1813 §3.3.19).
pub mod fsf {
    /// Hard links are supported.
    pub const LINK: u32 = 0x0001;
    /// Symbolic links are supported.
    pub const SYMLINK: u32 = 0x0002;
    /// PATHCONF is the same for every object.
    pub const HOMOGENEOUS: u32 = 0x0008;
    /// Times can be set by SETATTR.
    pub const CANSETTIME: u32 = 0x0010;
}

xdr_enum! {
    /// Type of a file system object.
    pub enum Ftype3 {
        /// Regular file.
        Reg = 1,
        /// Directory.
        Dir = 2,
        /// Block device.
        Blk = 3,
        /// Character device.
        Chr = 4,
        /// Symbolic link.
        Lnk = 5,
        /// Socket.
        Sock = 6,
        /// Named pipe.
        Fifo = 7,
    }
    /// How stable written data must be, or is (RFC 1813 §3.3.7).
    pub enum StableHow {
        /// May be lost until COMMIT.
        Unstable = 0,
        /// Data is stable.
        DataSync = 1,
        /// Data and metadata are stable.
        FileSync = 2,
    }
}

xdr_struct! {
    /// Device numbers.
    pub struct Specdata3 {
        /// Major number.
        pub major: u32,
        /// Minor number.
        pub minor: u32,
    }
    /// Time since 1970-01-01 UTC.
    pub struct Nfstime3 {
        /// Seconds since 1970-01-01.
        pub seconds: u32,
        /// Nanoseconds of the second.
        pub nseconds: u32,
    }
    /// Attributes of an object.
    pub struct Fattr3 {
        /// File type.
        pub ftype: Ftype3,
        /// Permission bits.
        pub mode: u32,
        /// Hard links.
        pub nlink: u32,
        /// User id of the owner.
        pub uid: u32,
        /// Group id of the owner's group.
        pub gid: u32,
        /// Size in bytes.
        pub size: u64,
        /// Bytes of storage used.
        pub used: u64,
        /// Device numbers, of devices.
        pub rdev: Specdata3,
        /// Number of the file system on the server.
        pub fsid: u64,
        /// Number of the object within its file system.
        pub fileid: u64,
        /// Time of the last access.
        pub atime: Nfstime3,
        /// Last change of data.
        pub mtime: Nfstime3,
        /// Last change of attributes.
        pub ctime: Nfstime3,
    }
    /// Attributes before an operation, for weak cache consistency.
    pub struct WccAttr {
        /// Size in bytes.
        pub size: u64,
        /// Last change of data.
        pub mtime: Nfstime3,
        /// Last change of attributes.
        pub ctime: Nfstime3,
    }
    /// Attributes before and after an operation.
    pub struct WccData {
        /// Size and times before the operation.
        pub before: Option<WccAttr>,
        /// Attributes after the operation.
        pub after: PostOpAttr,
    }
    /// Attributes to set.
    pub struct Sattr3 {
        /// Permission bits.
        pub mode: Option<u32>,
        /// User id of the owner.
        pub uid: Option<u32>,
        /// Group id of the owner's group.
        pub gid: Option<u32>,
        /// Size in bytes.
        pub size: Option<u64>,
        /// Time of the last access.
        pub atime: SetTime,
        /// Last change of data.
        pub mtime: SetTime,
    }
    /// A name in a directory.
    pub struct DirOpArgs<'a> {
        /// Handle of the directory.
        pub dir: Fh3<'a>,
        /// Name of the entry.
        pub name: Filename3<'a>,
    }
}

xdr_union! {
    /// What becomes of a time (`set_atime`, `set_mtime`).
    pub enum SetTime {
        /// It stays.
        0 => DontChange,
        /// The server's time.
        1 => SetToServerTime,
        /// This time.
        2 => SetToClientTime(Nfstime3),
    }
}

impl Sattr3 {
    /// Sets nothing.
    pub const NONE: Self = Self {
        mode: None,
        uid: None,
        gid: None,
        size: None,
        atime: SetTime::DontChange,
        mtime: SetTime::DontChange,
    };
}

impl WccData {
    /// Tells nothing.
    pub const NONE: Self = Self { before: None, after: None };
}

impl Fattr3 {
    /// Length of its XDR form in bytes.
    pub const LENGTH: usize = 84;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::Decoder;

    #[test]
    fn attributes_have_one_length() {
        let mut bytes = [0; Fattr3::LENGTH];
        bytes[3] = 1;
        let mut d = Decoder::new(&bytes);
        assert!(d.get::<Fattr3>().is_ok() && d.rest().is_empty());
    }
}
