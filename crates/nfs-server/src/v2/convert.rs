//! Between the file system's types and those of the protocol: what exceeds 32 bits becomes the largest number.

use benchmaster_nfs_proto::v2::{Fattr, Ftype, Nfsstat2, SERVER_TIME, Sattr, Timeval, UNSET};

use crate::call::Refusal;
use crate::fs::{Attr, FsError, Kind, SetAttr, SetTime, Time};
use crate::stateless::StatelessError;
use crate::status;

/// Size of a block, as reported to clients.
pub(super) const BLOCK: u32 = 4096;

/// Type bits of a mode.
pub(super) const S_IFMT: u32 = 0o170_000;
pub(super) const S_IFIFO: u32 = 0o010_000;
pub(super) const S_IFCHR: u32 = 0o020_000;
pub(super) const S_IFBLK: u32 = 0o060_000;
pub(super) const S_IFSOCK: u32 = 0o140_000;

/// Why a procedure has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its status says so.
    Status(Nfsstat2),
    /// There is no such answer in version 2.
    Refused(Refusal),
}

impl From<Nfsstat2> for Stop {
    fn from(status: Nfsstat2) -> Self {
        Self::Status(status)
    }
}

impl From<FsError> for Stop {
    fn from(error: FsError) -> Self {
        Self::Status(status::of_error(error).0)
    }
}

impl From<StatelessError> for Stop {
    fn from(trouble: StatelessError) -> Self {
        match trouble {
            StatelessError::Fs(error) => error.into(),
            StatelessError::BadHandle => Nfsstat2::STALE.into(),
            StatelessError::Delegated => Self::Refused(Refusal::NoReply),
        }
    }
}

/// Attributes of a file of an export.
pub(super) fn fattr(export: u32, attr: &Attr) -> Fattr {
    let (ftype, format) = match attr.kind {
        Kind::Regular => (Ftype::Reg, 0o100_000),
        Kind::Directory => (Ftype::Dir, 0o040_000),
        Kind::Symlink => (Ftype::Lnk, 0o120_000),
        Kind::Block => (Ftype::Blk, S_IFBLK),
        Kind::Character => (Ftype::Chr, S_IFCHR),
        // By custom a character device without number.
        Kind::Fifo => (Ftype::Chr, S_IFIFO),
        Kind::Socket => (Ftype::Non, S_IFSOCK),
    };
    Fattr {
        ftype,
        mode: format | attr.mode,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        size: clamp(attr.size),
        blocksize: BLOCK,
        rdev: if attr.kind == Kind::Fifo { UNSET } else { attr.device.0 << 8 | attr.device.1 & 0xff },
        blocks: clamp(attr.used.div_ceil(512)),
        fsid: export + 1,
        fileid: fileid(attr.node.ino),
        atime: timeval(attr.atime),
        mtime: timeval(attr.mtime),
        ctime: timeval(attr.ctime),
    }
}

/// An inode number in 32 bits; both halves count.
pub(super) fn fileid(ino: u64) -> u32 {
    (ino ^ ino >> 32) as u32
}

/// The nearest number of 32 bits.
pub(super) fn clamp(value: u64) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

fn timeval(time: Time) -> Timeval {
    Timeval { seconds: clamp(time.seconds.max(0).unsigned_abs()), useconds: time.nanos / 1000 }
}

/// Attributes to be set.
pub(super) fn set_attr(sattr: &Sattr) -> SetAttr {
    let field = |value: u32| (value != UNSET).then_some(value);
    let time = |time: Timeval| {
        (time.seconds != UNSET && time.useconds < SERVER_TIME)
            .then(|| SetTime::To(Time { seconds: time.seconds.into(), nanos: time.useconds * 1000 }))
    };
    let (mut atime, mut mtime) = (time(sattr.atime), time(sattr.mtime));
    // A custom of SunOS: in mtime this means the server's time for both.
    if sattr.mtime.seconds != UNSET && sattr.mtime.useconds == SERVER_TIME {
        (atime, mtime) = (Some(SetTime::Now), Some(SetTime::Now));
    }
    SetAttr {
        // Some clients know a mode as 16 bits.
        mode: field(sattr.mode).filter(|mode| *mode != 0xffff).map(|mode| mode & 0o7777),
        uid: field(sattr.uid),
        gid: field(sattr.gid),
        size: field(sattr.size).map(u64::from),
        atime,
        mtime,
        birth: None,
        ..SetAttr::default()
    }
}
