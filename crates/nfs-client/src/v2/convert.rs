//! What version 2 says, as all versions have it.

use std::time::UNIX_EPOCH;

use benchmaster_nfs_proto::v2::{Fattr, Ftype, Nfsstat2, SERVER_TIME, Sattr, Timeval, UNSET};

use crate::error::NfsError;
use crate::protocol::NfsResult;
use crate::types::{AccessBits, Attributes, FileType, SetAttributes, SetTime, Time};
use crate::v3::convert::change;

pub(super) fn attributes(f: &Fattr) -> Attributes {
    let changed = time(f.ctime);
    Attributes {
        kind: match f.ftype {
            Ftype::Reg => FileType::Regular,
            Ftype::Dir => FileType::Directory,
            Ftype::Lnk => FileType::Symlink,
            Ftype::Non | Ftype::Blk | Ftype::Chr => FileType::Other,
        },
        mode: f.mode & 0o7777,
        links: f.nlink,
        uid: f.uid,
        gid: f.gid,
        size: f.size.into(),
        used: u64::from(f.blocks) * 512,
        fsid: (f.fsid.into(), 0),
        fileid: f.fileid.into(),
        accessed: time(f.atime),
        modified: time(f.mtime),
        changed,
        change: change(changed),
    }
}

fn time(t: Timeval) -> Time {
    Time { seconds: t.seconds.into(), nanos: t.useconds.saturating_mul(1000) }
}

/// A size that the version can say.
pub(super) fn size(size: u64) -> NfsResult<u32> {
    u32::try_from(size).ok().filter(|size| *size != UNSET).ok_or(NfsError::V2(Nfsstat2::FBIG))
}

/// The server's time can only be asked for both times at once; where one of them alone is to be now, it is the
/// client's.
pub(super) fn set(wanted: &SetAttributes) -> NfsResult<Sattr> {
    let both = wanted.accessed == Some(SetTime::Now) && wanted.modified == Some(SetTime::Now);
    Ok(Sattr {
        mode: wanted.mode.unwrap_or(UNSET),
        uid: wanted.uid.unwrap_or(UNSET),
        gid: wanted.gid.unwrap_or(UNSET),
        size: wanted.size.map_or(Ok(UNSET), size)?,
        atime: set_time(wanted.accessed, both),
        mtime: set_time(wanted.modified, both),
    })
}

fn set_time(wanted: Option<SetTime>, of_server: bool) -> Timeval {
    let Some(wanted) = wanted else { return Timeval { seconds: UNSET, useconds: UNSET } };
    let (seconds, useconds) = match wanted {
        SetTime::To(time) => (time.seconds.max(0).unsigned_abs(), time.nanos / 1000),
        SetTime::Now => {
            let now = UNIX_EPOCH.elapsed().unwrap_or_default();
            (now.as_secs(), if of_server { SERVER_TIME } else { now.subsec_micros() })
        }
    };
    // The last second that can be said is the one before [`UNSET`].
    Timeval { seconds: seconds.min(u64::from(UNSET - 1)) as u32, useconds }
}

/// What the mode allows to a user (POSIX rules; user 0 may do everything but execute a file without execute bits).
pub(super) fn access(of: &Attributes, uid: u32, is_in_group: impl Fn(u32) -> bool) -> AccessBits {
    let is_directory = of.kind == FileType::Directory;
    let class = match () {
        () if uid == 0 => 6 | of.mode & 1 | of.mode >> 3 & 1 | of.mode >> 6 & 1 | u32::from(is_directory),
        () if of.uid == uid => of.mode >> 6,
        () if is_in_group(of.gid) => of.mode >> 3,
        () => of.mode,
    };
    let [read, write, execute] = [4, 2, 1].map(|bit| class & bit != 0);
    let granted = [
        (AccessBits::READ, read),
        (AccessBits::LOOKUP, execute && is_directory),
        (AccessBits::MODIFY | AccessBits::EXTEND, write),
        (AccessBits::DELETE, write && is_directory),
        (AccessBits::EXECUTE, execute && !is_directory),
    ];
    AccessBits(granted.into_iter().filter(|(_, granted)| *granted).map(|(bits, _)| bits).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: FileType, mode: u32) -> Attributes {
        let time = Time::default();
        Attributes {
            kind,
            mode,
            links: 1,
            uid: 10,
            gid: 20,
            size: 0,
            used: 0,
            fsid: (0, 0),
            fileid: 1,
            accessed: time,
            modified: time,
            changed: time,
            change: 0,
        }
    }

    #[test]
    fn the_mode_says_who_may_what() {
        use AccessBits as Bits;
        let of = |mode, uid, gid| access(&file(FileType::Regular, mode), uid, |g| g == gid).0;
        assert_eq!(of(0o640, 10, 1), Bits::READ | Bits::MODIFY | Bits::EXTEND);
        assert_eq!(of(0o640, 11, 20), Bits::READ);
        assert_eq!(of(0o641, 11, 21), Bits::EXECUTE);
        // The owner's bits count for the owner, even if others may more.
        assert_eq!(of(0o077, 10, 20), 0);
        assert_eq!(of(0o000, 0, 0), Bits::READ | Bits::MODIFY | Bits::EXTEND);
        assert_eq!(of(0o010, 0, 0), Bits::READ | Bits::MODIFY | Bits::EXTEND | Bits::EXECUTE);
        let directory = access(&file(FileType::Directory, 0), 0, |_| false).0;
        assert_eq!(directory, Bits::ALL & !Bits::EXECUTE);
    }

    #[test]
    fn sizes_and_times_have_32_bits() {
        assert_eq!(size(0xffff_fffe), Ok(0xffff_fffe));
        assert_eq!(size(0xffff_ffff), Err(NfsError::V2(Nfsstat2::FBIG)));
        assert_eq!(size(1 << 32), Err(NfsError::V2(Nfsstat2::FBIG)));
        let at = |seconds| set_time(Some(SetTime::To(Time { seconds, nanos: 1_999 })), false);
        assert_eq!(at(5), Timeval { seconds: 5, useconds: 1 });
        assert_eq!(at(-5), Timeval { seconds: 0, useconds: 1 });
        assert_eq!(at(1 << 40), Timeval { seconds: UNSET - 1, useconds: 1 });
        let now = Some(SetTime::Now);
        let both = SetAttributes { accessed: now, modified: now, ..SetAttributes::default() };
        assert_eq!(set(&both).unwrap().mtime.useconds, SERVER_TIME);
        let one = SetAttributes { modified: now, ..SetAttributes::default() };
        let set = set(&one).unwrap();
        assert!(set.atime.seconds == UNSET && set.mtime.useconds < SERVER_TIME);
    }
}
