//! MOUNT versions 1 and 2 (RFC 1094 appendix A, X/Open XNFS) and 3 (RFC 1813 appendix I).

use crate::v2::Fhandle;
use crate::xdr::{Chain, List, Opaque};

/// RPC program of MOUNT.
pub const PROGRAM: u32 = 100_005;
/// Version that gives handles of NFS version 2.
pub const VERSION_1: u32 = 1;
/// Version 1 with PATHCONF.
pub const VERSION_2: u32 = 2;
/// Version that gives handles of NFS version 3.
pub const VERSION_3: u32 = 3;

/// Path of a directory on the server.
pub type DirPath<'a> = Opaque<'a, 1024>;
/// Name of a client or group of clients.
pub type Name<'a> = Opaque<'a, 255>;
/// Result of DUMP.
pub type MountList<'a> = Chain<'a, MountBody<'a>>;
/// Result of EXPORT.
pub type Exports<'a> = Chain<'a, ExportNode<'a>>;

xdr_code! {
    /// Procedure numbers.
    pub struct Proc("MOUNTPROC_") {
        /// Do nothing.
        NULL = 0,
        /// Handle of an exported directory.
        MNT = 1,
        /// List of mounts.
        DUMP = 2,
        /// Forget a mount.
        UMNT = 3,
        /// Forget all mounts of the client.
        UMNTALL = 4,
        /// List of exports.
        EXPORT = 5,
        /// The same list (versions 1 and 2).
        EXPORTALL = 6,
        /// POSIX limits (version 2).
        PATHCONF = 7,
    }
    /// Status of MNT (RFC 1813 §5.1.5; versions 1 and 2 send numbers of UNIX errors, which are the same).
    pub struct Mountstat3("MNT3ERR_") {
        /// Success.
        OK = 0,
        /// Not owner.
        PERM = 1,
        /// No such file or directory.
        NOENT = 2,
        /// I/O error.
        IO = 5,
        /// Permission denied.
        ACCES = 13,
        /// Not a directory.
        NOTDIR = 20,
        /// Invalid argument.
        INVAL = 22,
        /// Name too long.
        NAMETOOLONG = 63,
        /// Operation not supported.
        NOTSUPP = 10004,
        /// Failure of the server.
        SERVERFAULT = 10006,
    }
}

xdr_struct! {
    /// Success of MNT, version 3.
    pub struct MountOk3<'a> {
        /// Handle of the directory, for NFS version 3.
        pub fhandle: Opaque<'a, 64>,
        /// Flavours of authentication accepted for it, the preferred one first.
        pub auth_flavors: List<'a, u32>,
    }
    /// A mount.
    pub struct MountBody<'a> {
        /// Name or address of the client.
        pub hostname: Name<'a>,
        /// Exported path.
        pub directory: DirPath<'a>,
    }
    /// An export.
    pub struct ExportNode<'a> {
        /// Exported directory, or filehandle of a directory.
        pub dir: DirPath<'a>,
        /// Who may mount it; everybody if empty.
        pub groups: Chain<'a, Name<'a>>,
    }
    /// Result of PATHCONF.
    pub struct Ppathcnf {
        /// Largest number of hard links of a file.
        pub link_max: i32,
        /// Longest line of a terminal.
        pub max_canon: i32,
        /// Longest input of a terminal.
        pub max_input: i32,
        /// Longest name, in bytes.
        pub name_max: i32,
        /// Longest path, in bytes.
        pub path_max: i32,
        /// Most bytes of one atomic write to a pipe.
        pub pipe_buf: i32,
        /// Character that switches special characters off.
        pub vdisable: u32,
        /// Unused.
        pub xxx: i32,
        /// Which values above are unknown (bit field).
        pub mask: i32,
        /// High word of the mask.
        pub mask_high: i32,
    }
}

xdr_union! {
    /// Result of MNT, versions 1 and 2.
    pub enum FhStatus {
        /// Handle of the directory, for NFS version 2.
        0 => Ok(Fhandle);
        /// Number of the UNIX error.
        Err
    }
    /// Result of MNT, version 3.
    pub enum MountRes3<'a> {
        /// Success.
        0 => Ok(MountOk3<'a>);
        /// A [`Mountstat3`].
        Err
    }
}
