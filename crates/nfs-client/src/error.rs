//! Why an operation on a file failed.

use benchmaster_nfs_proto::mount::Mountstat3;
use benchmaster_nfs_proto::nlm::NlmStats;
use benchmaster_nfs_proto::v2::Nfsstat2;
use benchmaster_nfs_proto::v3::Nfsstat3;
use benchmaster_nfs_proto::v4::Nfsstat4;
use benchmaster_nfs_proto::xdr::XdrError;
use benchmaster_rpc_gss::{Flavor, Flavors};

use crate::rpc::RpcError;

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NfsError {
    /// RPC failed: no reply, or one that refuses the call.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// Version 2 said no.
    #[error("{0}")]
    V2(Nfsstat2),
    /// Version 3 said no.
    #[error("{0}")]
    V3(Nfsstat3),
    /// Version 4 said no.
    #[error("{0}")]
    V4(Nfsstat4),
    /// MOUNT failed with this status.
    #[error("{0}")]
    Mount(Mountstat3),
    /// The lock manager said no.
    #[error("{0}")]
    Nlm(NlmStats),
    /// The export is for other security flavours.
    #[error("the export does not allow sec={}; it allows sec={allowed}", wanted.name())]
    WrongSecurity {
        /// Flavour of the mount.
        wanted: Flavor,
        /// Those that the server names.
        allowed: Flavors,
    },
    /// A reply has the right form and makes no sense: a result missing, more data than asked for.
    #[error("invalid reply from the server: {0}")]
    Nonsense(&'static str),
    /// The version or the server cannot do it.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The server lists a directory on and on.
    #[error("the directory has more than {0} entries")]
    TooManyEntries(usize),
    /// The state of the open file or lock was lost and could not be reclaimed.
    #[error("the state of the file was lost ({0})")]
    StateLost(&'static str),
    /// A name or path is too long or has a place that it cannot have.
    #[error("a name or path is too long")]
    NameTooLong,
    /// It was tried again until the time was over (`NFS4ERR_DELAY`, grace, a lock held by another).
    #[error("the server asked to retry later until the time limit")]
    TriedTooLong,
    /// Sessions, client ids or open files were lost again after each of many recoveries.
    #[error("the session or the state on the server was lost again after each of {0} recoveries")]
    NeverRecovered(u32),
}

impl From<XdrError> for NfsError {
    fn from(error: XdrError) -> Self {
        Self::Rpc(RpcError::BadReply(error))
    }
}

impl NfsError {
    /// The error number that the Linux client would return.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Rpc(RpcError::TimedOut) | Self::TriedTooLong => libc::ETIMEDOUT,
            Self::Rpc(RpcError::Denied(_) | RpcError::Insecure | RpcError::NoContext)
            | Self::WrongSecurity { .. } => libc::EACCES,
            Self::Rpc(RpcError::Closed) => libc::ENOTCONN,
            Self::Rpc(RpcError::VersionMismatch { .. } | RpcError::ProgramUnavailable(_)) => {
                libc::EPROTONOSUPPORT
            }
            Self::Rpc(RpcError::ProcedureUnavailable { .. }) | Self::Unsupported(_) => libc::EOPNOTSUPP,
            Self::Rpc(_) | Self::Nonsense(_) | Self::StateLost(_) | Self::NeverRecovered(_) => libc::EIO,
            Self::NameTooLong => libc::ENAMETOOLONG,
            Self::TooManyEntries(_) => libc::EOVERFLOW,
            Self::V2(status) => errno_of(status.0),
            Self::V3(status) => errno_of(status.0),
            Self::V4(status) => errno_of(status.0),
            Self::Mount(status) => errno_of(status.0),
            Self::Nlm(status) => match *status {
                NlmStats::DENIED | NlmStats::BLOCKED => libc::EAGAIN,
                NlmStats::DEADLCK => libc::EDEADLK,
                NlmStats::STALE_FH => libc::ESTALE,
                NlmStats::ROFS => libc::EROFS,
                NlmStats::FBIG => libc::EFBIG,
                _ => libc::ENOLCK,
            },
        }
    }

    /// Whether the file does not exist.
    pub fn is_absent(&self) -> bool {
        self.errno() == libc::ENOENT
    }

    /// Whether a name exists already.
    pub fn is_present(&self) -> bool {
        self.errno() == libc::EEXIST
    }
}

/// The error number of a status; versions 2, 3 and 4 and MOUNT agree where they have the same one.
fn errno_of(status: u32) -> i32 {
    match status {
        1 => libc::EPERM,
        2 => libc::ENOENT,
        5 => libc::EIO,
        6 => libc::ENXIO,
        13 => libc::EACCES,
        17 => libc::EEXIST,
        18 => libc::EXDEV,
        19 => libc::ENODEV,
        20 => libc::ENOTDIR,
        21 => libc::EISDIR,
        22 => libc::EINVAL,
        27 => libc::EFBIG,
        28 => libc::ENOSPC,
        30 => libc::EROFS,
        31 => libc::EMLINK,
        63 => libc::ENAMETOOLONG,
        66 => libc::ENOTEMPTY,
        69 => libc::EDQUOT,
        70 => libc::ESTALE,
        10001 => libc::EBADF,
        10004 | 10006 => libc::EOPNOTSUPP,
        10008 | 10013 => libc::EAGAIN,
        10010 => libc::EAGAIN,
        10012 => libc::EAGAIN,
        10015 => libc::EACCES,
        10029 => libc::ELOOP,
        10038 => libc::EACCES,
        10045 => libc::EDEADLK,
        10095 => libc::ENODATA,
        _ => libc::EIO,
    }
}
