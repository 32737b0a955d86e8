//! Attributes: reading, setting (chmod(2), chown(2), utimensat(2), truncate(2)), and the time of last access.

use std::sync::Arc;

use super::data::SIZE_MAX;
use super::inode::{Inode, SET_GROUP};
use super::{Acl, Attr, Changed, FileSystem, FsError, Node, SetAttr, SetTime, Time, access, permits};
use crate::cred::Credentials;
use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

/// Age at which a time of last access is renewed though nothing changed since: one day (relatime).
const RELATIME_SECONDS: i64 = 24 * 60 * 60;

impl FileSystem {
    /// Attributes of a file. [`FsError::Stale`] when it is gone.
    pub fn attr(&self, file: Node) -> Result<Attr, FsError> {
        Ok(self.table.read(file)?.attr(file.ino))
    }

    /// Sets attributes. With `guard`, only when ctime still is that ([`FsError::NotSync`] otherwise, NFSv3 SETATTR).
    /// Rules of chmod(2), chown(2), utimensat(2), truncate(2) apply; `size_checked` says that the right to write was
    /// established elsewhere (open for writing). All is set or nothing.
    ///
    /// A size for something that has none gives the error that writing to it gives.
    pub fn set_attr(
        &self,
        who: &Credentials,
        file: Node,
        set: &SetAttr,
        guard: Option<Time>,
        size_checked: bool,
        now: Time,
    ) -> Result<Changed, FsError> {
        let room = self.room()?;
        let mut inode = self.table.write(file)?;
        let before = inode.attr(file.ino);
        if guard.is_some_and(|guard| guard != before.ctime) && !is_broken(Mutant::GuardIgnored) {
            return Err(FsError::NotSync);
        }
        may_set(&inode, &before, who, set, size_checked)?;
        self.may_change()?;
        if *set != SetAttr::default() {
            let acl = next_acl(&inode, set);
            let cost = |acl: Option<&Arc<Acl>>| acl.map_or(0, |acl| acl.cost());
            if let Some(acl) = &acl {
                let (old, new) = (cost(inode.acl()), cost(acl.as_ref()));
                self.space.data.take(new.saturating_sub(old))?;
                self.space.data.give_back(old.saturating_sub(new));
            }
            self.apply(&mut inode, who, set, now);
            if let Some(acl) = acl {
                inode.set_acl(acl);
            }
            if let Some(size) = set.size {
                self.after_resize(file, size);
            }
            self.log(room, |record| {
                record.attributes(file.ino, &inode);
                record.verifier(file.ino, &inode);
                record.acl(file.ino, &inode);
            });
        }
        Ok(Changed { before, after: inode.attr(file.ino) })
    }

    /// Sets what [`may_set`] allowed.
    fn apply(&self, inode: &mut Inode, who: &Credentials, set: &SetAttr, now: Time) {
        inode.attributes_changed(self.clock, now);
        if set.size.is_some() {
            inode.data_changed(self.clock, now);
            inode.drop_privileges(who);
        }
        if let Some(size) = set.size
            && let Ok(data) = inode.regular_mut()
        {
            let used = data.used();
            data.resize(size);
            let now_used = data.used();
            self.space.settle(0, used, now_used);
        }
        if set.uid.is_some() || set.gid.is_some() {
            inode.uid = set.uid.unwrap_or(inode.uid);
            inode.gid = set.gid.unwrap_or(inode.gid);
            inode.drop_for_owner();
        }
        if let Some(mode) = next_mode(inode.mode_bits(), set) {
            // chmod(2): only members of the group may hand its rights over.
            let keep = if who.uid == 0 || who.in_group(inode.gid) { 0o7777 } else { 0o7777 & !SET_GROUP };
            inode.set_mode(mode & keep);
        }
        self.apply_times(inode, set, now);
        if let Some(extra) = &mut inode.extra {
            extra.verifier = None;
        }
    }

    /// Sets times that the holder of a delegation knows, no later than now. A new time of the data is one of the
    /// attributes, too; `modified`: the data changed, at whatever time.
    pub fn set_delegated_times(
        &self,
        file: Node,
        atime: Option<Time>,
        mtime: Option<Time>,
        modified: bool,
        now: Time,
    ) -> Result<Attr, FsError> {
        let room = self.room()?;
        let mut inode = self.table.write(file)?;
        let now = self.clock.time(now);
        if let Some(mtime) = mtime.map(|mtime| mtime.min(now)) {
            if Time::from(inode.mtime) != mtime {
                let ctime = mtime.max(inode.ctime.into());
                inode.attributes_changed(self.clock, ctime);
            }
            inode.mtime = mtime.into();
        } else if modified {
            inode.data_changed(self.clock, now);
        }
        if let Some(atime) = atime {
            inode.atime = atime.min(now).into();
        }
        self.log(room, |record| record.attributes(file.ino, &inode));
        Ok(inode.attr(file.ino))
    }

    pub(super) fn apply_times(&self, inode: &mut Inode, set: &SetAttr, now: Time) {
        let value = |time: SetTime| match time {
            SetTime::Now => self.clock.time(now).into(),
            SetTime::To(time) => time.into(),
        };
        inode.atime = set.atime.map_or(inode.atime, value);
        inode.mtime = set.mtime.map_or(inode.mtime, value);
        inode.birth = set.birth.map_or(inode.birth, Into::into);
    }

    /// Renews the time of last access where relatime says so: when the file changed since, or after a day. Only then
    /// the inode is locked for writing. Returns the new time. No lock may be held.
    pub(super) fn touch(&self, file: Node, attr: &Attr, now: Time) -> Option<Time> {
        let now = self.clock.time(now);
        let due = attr.atime <= attr.mtime
            || attr.atime <= attr.ctime
            || now.seconds.saturating_sub(attr.atime.seconds) >= RELATIME_SECONDS;
        if !due || now <= attr.atime {
            return None;
        }
        let mut inode = self.table.write(file).ok()?;
        inode.atime = now.into();
        Some(now)
    }

    /// The verifier of exclusive creation that the file was made with.
    pub fn verifier(&self, file: Node) -> Result<Option<u64>, FsError> {
        // Whoever finds it there takes the creation for done.
        self.speak_of_all();
        Ok(self.table.read(file)?.extra.as_ref().and_then(|extra| extra.verifier))
    }

    /// Keeps an unlinked file alive (an open of NFSv4); each hold needs one [`FileSystem::release`].
    pub fn hold(&self, file: Node) -> Result<(), FsError> {
        let mut inode = self.table.write(file)?;
        inode.holds = inode.holds.checked_add(1).ok_or(FsError::TooManyLinks)?;
        Ok(())
    }

    /// Ends one [`FileSystem::hold`].
    pub fn release(&self, file: Node) {
        let Ok(mut inode) = self.table.write(file) else { return };
        inode.holds = inode.holds.saturating_sub(1);
        drop(self.free_if_gone(file.ino, inode));
    }
}

impl FileSystem {
    /// Ends all [holds](FileSystem::hold): whoever had them is forgotten.
    pub(crate) fn forget_holds(&self) {
        for ino in 1..self.table.end() {
            let Some(node) = self
                .table
                .peek(ino)
                .filter(|inode| inode.holds > 0)
                .map(|inode| Node { ino, generation: inode.generation })
            else {
                continue;
            };
            let Ok(mut inode) = self.table.write(node) else { continue };
            inode.holds = 0;
            drop(self.free_if_gone(ino, inode));
        }
    }
}

/// Whether `who` may set all of that.
fn may_set(
    inode: &Inode,
    attr: &Attr,
    who: &Credentials,
    set: &SetAttr,
    size_checked: bool,
) -> Result<(), FsError> {
    let owner = who.uid == 0 || who.uid == attr.uid;
    let exact = |time| matches!(time, Some(SetTime::To(_)));
    let rights = [
        (set.mode.is_some() || set.acl.is_some(), access::SET_ACL),
        (set.birth.is_some() || exact(set.atime) || exact(set.mtime), access::SET_TIMES),
    ];
    if !owner
        && rights.iter().any(|(sets, right)| *sets && !permits(attr, who, *right))
        && !is_broken(Mutant::AnybodySetsModes)
    {
        return Err(FsError::NotOwner);
    }
    may_chown(attr, who, set)?;
    let may_touch = owner || permits(attr, who, access::WRITE) || permits(attr, who, access::SET_TIMES);
    if (set.atime.is_some() || set.mtime.is_some()) && !may_touch {
        return Err(FsError::Access);
    }
    if let Some(size) = set.size {
        inode.regular()?;
        if !size_checked && !permits(attr, who, access::WRITE) {
            return Err(FsError::Access);
        }
        if size > SIZE_MAX {
            return Err(FsError::TooLarge);
        }
    }
    Ok(())
}

/// Permission bits after `set`, if it concerns them: with both, the list comes after the mode (RFC 8881 §6.4.1.3).
pub(super) fn next_mode(mode: u32, set: &SetAttr) -> Option<u32> {
    match &set.acl {
        Some(acl) => Some(set.mode.unwrap_or(mode) & !0o777 | acl.mode()),
        None => set.mode,
    }
}

/// The access control list after `set`, if it concerns it.
fn next_acl(inode: &Inode, set: &SetAttr) -> Option<Option<Arc<Acl>>> {
    let directory = inode.is_directory();
    match (&set.acl, set.mode, inode.acl()) {
        (Some(acl), ..) => Some(acl.kept(directory)),
        (None, Some(mode), Some(acl)) => Some(Some(Arc::new(acl.with_mode(mode, directory)))),
        _ => None,
    }
}

/// chown(2): only user 0 gives files away; the owner may choose among their own groups, and whom a list lets become the owner
/// may.
pub(super) fn may_chown(attr: &Attr, who: &Credentials, set: &SetAttr) -> Result<(), FsError> {
    let takes = || permits(attr, who, access::TAKE);
    let owner = who.uid == attr.uid || (set.uid.is_some() || set.gid.is_some()) && takes();
    let uid = set.uid.is_none_or(|uid| owner && (uid == attr.uid || uid == who.uid));
    let gid = set.gid.is_none_or(|gid| owner && (gid == attr.gid || who.in_group(gid)));
    if who.uid == 0 || (uid && gid) { Ok(()) } else { Err(FsError::NotOwner) }
}
