//! The status of each NFS version for what the file system says.

use benchmaster_nfs_proto::v2::Nfsstat2 as V2;
use benchmaster_nfs_proto::v3::Nfsstat3 as V3;
use benchmaster_nfs_proto::v4::Nfsstat4 as V4;

use crate::fs::FsError;

impl From<FsError> for crate::state::Stop {
    fn from(error: FsError) -> Self {
        Self::Status(of_error(error).2)
    }
}

/// Status of versions 2, 3 and 4. RFC 1094 has no names for much of it; names that are none are `ACCES` in RFC 1813
/// §3.2; guards are NFSv3's alone.
pub(crate) fn of_error(error: FsError) -> (V2, V3, V4) {
    match error {
        FsError::NotOwner => (V2::PERM, V3::PERM, V4::PERM),
        FsError::NotFound => (V2::NOENT, V3::NOENT, V4::NOENT),
        FsError::Access => (V2::ACCES, V3::ACCES, V4::ACCESS),
        FsError::Exists => (V2::EXIST, V3::EXIST, V4::EXIST),
        FsError::CrossDevice => (V2::IO, V3::XDEV, V4::XDEV),
        FsError::NotDirectory => (V2::NOTDIR, V3::NOTDIR, V4::NOTDIR),
        FsError::IsDirectory => (V2::ISDIR, V3::ISDIR, V4::ISDIR),
        FsError::Invalid => (V2::IO, V3::INVAL, V4::INVAL),
        FsError::IsSymlink => (V2::IO, V3::INVAL, V4::SYMLINK),
        FsError::WrongKind => (V2::NXIO, V3::INVAL, V4::WRONG_TYPE),
        FsError::TooLarge => (V2::FBIG, V3::FBIG, V4::FBIG),
        FsError::NoSpace => (V2::NOSPC, V3::NOSPC, V4::NOSPC),
        FsError::Io => (V2::IO, V3::IO, V4::IO),
        FsError::ReadOnly => (V2::ROFS, V3::ROFS, V4::ROFS),
        FsError::TooManyLinks => (V2::IO, V3::MLINK, V4::MLINK),
        FsError::NameTooLong => (V2::NAMETOOLONG, V3::NAMETOOLONG, V4::NAMETOOLONG),
        FsError::BadName => (V2::ACCES, V3::ACCES, V4::BADCHAR),
        FsError::NotEmpty => (V2::NOTEMPTY, V3::NOTEMPTY, V4::NOTEMPTY),
        FsError::Stale => (V2::STALE, V3::STALE, V4::STALE),
        FsError::NotSync => (V2::IO, V3::NOT_SYNC, V4::SERVERFAULT),
        FsError::NoXattr => (V2::IO, V3::SERVERFAULT, V4::NOXATTR),
        FsError::XattrTooBig => (V2::IO, V3::SERVERFAULT, V4::XATTR2BIG),
        FsError::NoSuchRange => (V2::IO, V3::SERVERFAULT, V4::NXIO),
    }
}
