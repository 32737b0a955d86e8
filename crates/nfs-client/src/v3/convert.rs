//! What version 3 says, as all versions have it.

use benchmaster_nfs_proto::v3::{self as proto, Fattr3, Ftype3, Nfstime3, Sattr3, StableHow};

use crate::types::{Attributes, FileType, SetAttributes, SetTime, Stability, Time};

pub(super) fn attributes(f: &Fattr3) -> Attributes {
    let changed = time(f.ctime);
    Attributes {
        kind: match f.ftype {
            Ftype3::Reg => FileType::Regular,
            Ftype3::Dir => FileType::Directory,
            Ftype3::Lnk => FileType::Symlink,
            Ftype3::Blk | Ftype3::Chr | Ftype3::Sock | Ftype3::Fifo => FileType::Other,
        },
        mode: f.mode & 0o7777,
        links: f.nlink,
        uid: f.uid,
        gid: f.gid,
        size: f.size,
        used: f.used,
        fsid: (f.fsid, 0),
        fileid: f.fileid,
        accessed: time(f.atime),
        modified: time(f.mtime),
        changed,
        change: change(changed),
    }
}

fn time(t: Nfstime3) -> Time {
    Time { seconds: t.seconds.into(), nanos: t.nseconds }
}

/// A change attribute made of the time of the last change, as Linux makes it.
pub(crate) fn change(changed: Time) -> u64 {
    (changed.seconds.cast_unsigned() << 30).wrapping_add(changed.nanos.into())
}

pub(super) fn set(wanted: &SetAttributes) -> Sattr3 {
    Sattr3 {
        mode: wanted.mode,
        uid: wanted.uid,
        gid: wanted.gid,
        size: wanted.size,
        atime: set_time(wanted.accessed),
        mtime: set_time(wanted.modified),
    }
}

fn set_time(wanted: Option<SetTime>) -> proto::SetTime {
    match wanted {
        None => proto::SetTime::DontChange,
        Some(SetTime::Now) => proto::SetTime::SetToServerTime,
        // Times that 32 bits do not hold become the nearest one.
        Some(SetTime::To(time)) => proto::SetTime::SetToClientTime(Nfstime3 {
            seconds: time.seconds.clamp(0, u32::MAX.into()) as u32,
            nseconds: time.nanos,
        }),
    }
}

pub(super) fn stable(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::Data => StableHow::DataSync,
        Stability::File => StableHow::FileSync,
    }
}

pub(super) fn stability(stable: StableHow) -> Stability {
    match stable {
        StableHow::Unstable => Stability::Unstable,
        StableHow::DataSync => Stability::Data,
        StableHow::FileSync => Stability::File,
    }
}
