//! One file: its attributes and what it contains.

use std::sync::Arc;
use std::time::Duration;

use super::data::Data;
use super::directory::Directory;
use super::extra::Extra;
use super::{Acl, Attr, FsError, Kind, Node, Time, space};
use crate::cred::Credentials;

/// Mode bits that hand over rights.
pub(super) const SET_USER: u32 = 0o4000;
pub(super) const SET_GROUP: u32 = 0o2000;
pub(super) const STICKY: u32 = 0o1000;
/// Group may execute: set-group-ID without it meant mandatory locking and hands over nothing.
const GROUP_EXECUTE: u32 = 0o0010;

/// A slot of the inode table. 120 bytes: there may be ten millions of them.
#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) generation: u32,
    pub(super) nlink: u32,
    /// Opens that keep it alive without a name.
    pub(super) holds: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u16,
    /// Another file system is mounted here: neither removed nor replaced.
    pub(super) pinned: bool,
    pub(super) change: u64,
    pub(super) atime: Stamp,
    pub(super) mtime: Stamp,
    pub(super) ctime: Stamp,
    pub(super) birth: Stamp,
    pub(super) body: Body,
    pub(super) extra: Option<Box<Extra>>,
}

/// Content, by kind.
#[derive(Debug, Default)]
pub(super) enum Body {
    /// No file: a free slot.
    #[default]
    Free,
    Regular(Data),
    Directory(Box<Directory>),
    Symlink(Box<[u8]>),
    Special(Kind, (u32, u32)),
}

/// A [`Time`] in 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stamp([u32; 3]);

impl From<Time> for Stamp {
    fn from(time: Time) -> Self {
        Self([(time.seconds >> 32) as u32, time.seconds as u32, time.nanos])
    }
}

impl From<Stamp> for Time {
    fn from(Stamp([high, low, nanos]): Stamp) -> Self {
        Self { seconds: (u64::from(high) << 32 | u64::from(low)) as i64, nanos }
    }
}

/// How times and change attributes move.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    step: Option<i128>,
}

impl Clock {
    pub(super) fn new(granularity: Option<Duration>) -> Self {
        Self { step: granularity.map(|step| step.as_nanos() as i128).filter(|step| *step > 0) }
    }

    /// `now`, as files show it.
    pub(super) fn time(self, now: Time) -> Time {
        let Some(step) = self.step else { return now };
        let floor = nanos(now).div_euclid(step) * step;
        Time {
            seconds: floor.div_euclid(1_000_000_000) as i64,
            nanos: floor.rem_euclid(1_000_000_000) as u32,
        }
    }

    /// The change attribute after one more change.
    pub(super) fn change(self, old: u64, now: Time) -> u64 {
        match self.step {
            None => old.saturating_add(1),
            Some(step) => old.max(u64::try_from(nanos(now).div_euclid(step)).unwrap_or(0)),
        }
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

impl Inode {
    /// A free slot.
    pub(super) fn free() -> Self {
        Self { generation: 1, ..Self::default() }
    }

    pub(super) fn kind(&self) -> Kind {
        match &self.body {
            Body::Directory(_) => Kind::Directory,
            Body::Symlink(_) => Kind::Symlink,
            Body::Special(kind, _) => *kind,
            Body::Regular(_) | Body::Free => Kind::Regular,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    pub(super) fn attr(&self, ino: u64) -> Attr {
        let (size, used) = match &self.body {
            Body::Regular(data) => (data.size, data.used()),
            Body::Directory(dir) => (dir.size(), dir.size()),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Free | Body::Special(..) => (0, 0),
        };
        Attr {
            node: Node { ino, generation: self.generation },
            kind: self.kind(),
            mode: u32::from(self.mode),
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            size,
            used,
            device: if let Body::Special(_, device) = self.body { device } else { (0, 0) },
            atime: self.atime.into(),
            mtime: self.mtime.into(),
            ctime: self.ctime.into(),
            birth: self.birth.into(),
            change: self.change,
            acl: self.acl().cloned(),
        }
    }

    pub(super) fn acl(&self) -> Option<&Arc<Acl>> {
        self.extra.as_ref().and_then(|extra| extra.acl.as_ref())
    }

    pub(super) fn set_acl(&mut self, acl: Option<Arc<Acl>>) {
        if acl.is_some() || self.extra.is_some() {
            self.extra.get_or_insert_default().acl = acl;
        }
    }

    /// What the file and, of a directory, the names in it count.
    pub(super) fn names_cost(&self) -> u64 {
        match &self.body {
            Body::Free => 0,
            Body::Directory(dir) => {
                space::of_file(b"") + dir.after(0).map(|entry| space::of_name(entry.name)).sum::<u64>()
            }
            _ => self.file_cost(),
        }
    }

    /// What the file alone counts.
    pub(super) fn file_cost(&self) -> u64 {
        space::of_file(if let Body::Symlink(target) = &self.body { target } else { b"" })
    }

    /// Notes that attributes changed.
    pub(super) fn attributes_changed(&mut self, clock: Clock, now: Time) {
        self.ctime = clock.time(now).into();
        self.change = clock.change(self.change, now);
    }

    /// Notes that data (or entries) changed.
    pub(super) fn data_changed(&mut self, clock: Clock, now: Time) {
        self.attributes_changed(clock, now);
        self.mtime = self.ctime;
    }

    /// Takes set-user-ID and set-group-ID away because content changed by someone who may not leave them.
    pub(super) fn drop_privileges(&mut self, who: &Credentials) {
        if who.uid != 0 && !self.is_directory() {
            self.drop_set_ids(self.mode_bits() & GROUP_EXECUTE != 0 || !who.in_group(self.gid));
        }
    }

    /// Takes set-user-ID away because the owner changes, and set-group-ID where it hands over rights.
    pub(super) fn drop_for_owner(&mut self) {
        if !self.is_directory() {
            self.drop_set_ids(self.mode_bits() & GROUP_EXECUTE != 0);
        }
    }

    fn drop_set_ids(&mut self, group_too: bool) {
        let gone = SET_USER | if group_too { SET_GROUP } else { 0 };
        self.set_mode(self.mode_bits() & !gone);
    }

    pub(super) fn mode_bits(&self) -> u32 {
        u32::from(self.mode)
    }

    pub(super) fn set_mode(&mut self, mode: u32) {
        self.mode = (mode & 0o7777) as u16;
    }

    /// Content of a regular file; says what it is instead.
    pub(super) fn regular(&self) -> Result<&Data, FsError> {
        match &self.body {
            Body::Regular(data) => Ok(data),
            other => Err(other.not_regular()),
        }
    }

    /// As [`Inode::regular`].
    pub(super) fn regular_mut(&mut self) -> Result<&mut Data, FsError> {
        match &mut self.body {
            Body::Regular(data) => Ok(data),
            other => Err(other.not_regular()),
        }
    }

    pub(super) fn directory(&self) -> Result<&Directory, FsError> {
        match &self.body {
            Body::Directory(dir) => Ok(dir),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory, FsError> {
        match &mut self.body {
            Body::Directory(dir) => Ok(dir),
            _ => Err(FsError::NotDirectory),
        }
    }
}

impl Body {
    fn not_regular(&self) -> FsError {
        match self {
            Self::Directory(_) => FsError::IsDirectory,
            Self::Symlink(_) => FsError::IsSymlink,
            _ => FsError::WrongKind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_stays_small() {
        assert!(
            size_of::<parking_lot::RwLock<Inode>>() <= 128,
            "{}",
            size_of::<parking_lot::RwLock<Inode>>()
        );
    }

    #[test]
    fn times_survive_their_short_form() {
        for time in [
            Time { seconds: i64::MIN, nanos: 999_999_999 },
            Time { seconds: -1, nanos: 5 },
            Time { seconds: 1_700_000_000, nanos: 0 },
            Time { seconds: i64::MAX, nanos: 1 },
        ] {
            assert_eq!(Time::from(Stamp::from(time)), time);
        }
    }

    #[test]
    fn a_coarse_clock_moves_in_steps() {
        let clock = Clock::new(Some(Duration::from_secs(2)));
        let at = |seconds, nanos| Time { seconds, nanos };
        assert_eq!(clock.time(at(7, 9)), at(6, 0));
        assert_eq!(clock.time(at(-1, 0)), at(-2, 0));
        assert_eq!(clock.change(3, at(7, 9)), 3);
        assert_eq!(clock.change(3, at(8, 0)), 4);
        assert_eq!(Clock::new(None).change(3, at(7, 9)), 4);
    }
}
