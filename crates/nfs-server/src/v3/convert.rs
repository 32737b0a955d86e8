//! Between the file system's types and those of the protocol.

use benchmaster_nfs_proto::v3::{
    Fattr3, Ftype3, Nfsstat3, Nfstime3, PostOpAttr, Sattr3, SetTime, Specdata3, WccAttr, WccData,
};

use crate::call::Call;
use crate::fs::{self, Attr, Changed, FsError, Kind, SetAttr, Time};
use crate::handle::FileId;
use crate::stateless::StatelessError;
use crate::status;

impl Call<'_> {
    /// Attributes beside another result: none where the holder of a write delegation may know better, which the
    /// client's GETATTR recalls (RFC 1813 §2.6: clients take attributes when there are any).
    pub(super) fn post_op(&self, id: FileId, attr: &Attr) -> PostOpAttr {
        let held = self.server.config.delegations && self.server.state.write_delegated(id);
        (!held).then(|| fattr(id.export, attr))
    }
}

/// Attributes of a file of an export.
pub(super) fn fattr(export: u32, attr: &Attr) -> Fattr3 {
    Fattr3 {
        ftype: match attr.kind {
            Kind::Regular => Ftype3::Reg,
            Kind::Directory => Ftype3::Dir,
            Kind::Symlink => Ftype3::Lnk,
            Kind::Block => Ftype3::Blk,
            Kind::Character => Ftype3::Chr,
            Kind::Fifo => Ftype3::Fifo,
            Kind::Socket => Ftype3::Sock,
        },
        mode: attr.mode,
        nlink: attr.nlink,
        uid: attr.uid,
        gid: attr.gid,
        size: attr.size,
        used: attr.used,
        rdev: Specdata3 { major: attr.device.0, minor: attr.device.1 },
        fsid: u64::from(export) + 1,
        fileid: attr.node.ino,
        atime: nfstime(attr.atime),
        mtime: nfstime(attr.mtime),
        ctime: nfstime(attr.ctime),
    }
}

/// A time; what 32 bits cannot hold becomes the nearest that they can.
pub(super) fn nfstime(time: Time) -> Nfstime3 {
    match u32::try_from(time.seconds) {
        Ok(seconds) => Nfstime3 { seconds, nseconds: time.nanos },
        Err(_) if time.seconds < 0 => Nfstime3 { seconds: 0, nseconds: 0 },
        Err(_) => Nfstime3 { seconds: u32::MAX, nseconds: 999_999_999 },
    }
}

/// Weak cache consistency data of a change.
pub(super) fn wcc(export: u32, changed: &Changed) -> WccData {
    let before = &changed.before;
    WccData {
        before: Some(WccAttr {
            size: before.size,
            mtime: nfstime(before.mtime),
            ctime: nfstime(before.ctime),
        }),
        after: Some(fattr(export, &changed.after)),
    }
}

/// A time of a client.
pub(super) fn time(time: Nfstime3) -> Result<Time, Nfsstat3> {
    if time.nseconds >= 1_000_000_000 {
        return Err(Nfsstat3::INVAL);
    }
    Ok(Time { seconds: time.seconds.into(), nanos: time.nseconds })
}

/// Attributes to be set.
pub(super) fn set_attr(sattr: &Sattr3) -> Result<SetAttr, Nfsstat3> {
    let set_time = |set| {
        Ok::<_, Nfsstat3>(match set {
            SetTime::DontChange => None,
            SetTime::SetToServerTime => Some(fs::SetTime::Now),
            SetTime::SetToClientTime(client) => Some(fs::SetTime::To(time(client)?)),
        })
    };
    Ok(SetAttr {
        mode: sattr.mode.map(|mode| mode & 0o7777),
        uid: sattr.uid,
        gid: sattr.gid,
        size: sattr.size,
        atime: set_time(sattr.atime)?,
        mtime: set_time(sattr.mtime)?,
        birth: None,
        ..SetAttr::default()
    })
}

impl From<FsError> for Nfsstat3 {
    fn from(error: FsError) -> Self {
        status::of_error(error).1
    }
}

impl From<StatelessError> for Nfsstat3 {
    fn from(trouble: StatelessError) -> Self {
        match trouble {
            StatelessError::Fs(error) => error.into(),
            StatelessError::BadHandle => Self::BADHANDLE,
            StatelessError::Delegated => Self::JUKEBOX,
        }
    }
}

/// READ and WRITE, SETATTR of the size: a directory is an invalid argument (RFC 1813 §3.3.6).
pub(super) fn no_directory(status: Nfsstat3) -> Nfsstat3 {
    if status == Nfsstat3::ISDIR { Nfsstat3::INVAL } else { status }
}
