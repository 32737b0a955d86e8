//! Names: looking up, making, linking, removing, listing.

use std::sync::Arc;

use super::attributes::{may_chown, next_mode};
use super::data::{Data, SIZE_MAX};
use super::directory::Directory;
use super::extra::Extra;
use super::inode::{Body, Inode, SET_GROUP, STICKY};
use super::table::WriteGuard;
use super::{
    Attr, Changed, Created, DirEntry, FileSystem, FsError, Kind, LINK_MAX, Linked, NAME_MAX, NewFile, Node,
    PATH_MAX, RemoveKind, Removed, SetAttr, Time, Trouble, access, permits, space,
};
use crate::cred::Credentials;
use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

/// Bits of modes that let the group execute and take its identity.
const GROUP_BITS: u32 = 0o2010;

/// An entry beside another.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    pub(crate) name: Box<[u8]>,
    pub(crate) cookie: u64,
    pub(crate) node: Node,
}

impl FileSystem {
    /// Finds a name in a directory ("." and ".." too).
    pub fn lookup(&self, who: &Credentials, dir: Node, name: &[u8]) -> Result<(Node, Attr), FsError> {
        let mut gone = None;
        loop {
            let inode = self.table.read(dir)?;
            let entries = inode.directory()?;
            let attr = inode.attr(dir.ino);
            need(&attr, who, access::EXECUTE)?;
            let node = match name {
                b"." => return Ok((dir, attr)),
                b".." => entries.parent,
                _ => {
                    check_name(name)?;
                    entries.find(&self.hasher, name).ok_or(FsError::NotFound)?.node
                }
            };
            drop(inode);
            match self.attr(node) {
                // Removed just now: what the directory says next is the answer. (A removed directory keeps its "..".)
                Err(FsError::Stale) if gone != Some(node) => gone = Some(node),
                attr => return Ok((node, attr?)),
            }
        }
    }

    /// The directory in which `dir` is; the root is its own parent.
    pub fn parent(&self, dir: Node) -> Result<Node, FsError> {
        Ok(self.table.read(dir)?.directory()?.parent)
    }

    /// Makes a file of any kind. [`FsError::Exists`] when the name is taken ("." and ".." always are).
    /// `verifier` is stored for exclusive creation and survives until the file is changed by SETATTR.
    ///
    /// Without a mode in `set`, files get 0644, directories 0755, links 0777. A size is for regular files only and
    /// ignored for others. The owner is `who`, the group theirs or, in a set-group-ID directory, the directory's;
    /// others only as chown(2) allows. A special file must be of a special kind, a link's content neither empty nor
    /// with a NUL ([`FsError::Invalid`]).
    #[allow(clippy::too_many_arguments, reason = "a file has that much when it is made")]
    pub fn create(
        &self,
        who: &Credentials,
        dir: Node,
        name: &[u8],
        new: NewFile<'_>,
        set: &SetAttr,
        verifier: Option<u64>,
        now: Time,
    ) -> Result<Created, FsError> {
        let room = self.room()?;
        let mut parent = self.table.write(dir)?;
        let right = if matches!(new, NewFile::Directory) { access::ADD_DIRECTORY } else { access::WRITE };
        let before = self.may_add(&parent, who, dir, name, right)?;
        let body = body(new, dir)?;
        self.may_change()?;
        if self.fails(Trouble::Full) {
            return Err(FsError::NoSpace);
        }
        if matches!(body, Body::Regular(_)) && set.size.is_some_and(|size| size > SIZE_MAX) {
            return Err(FsError::TooLarge);
        }
        let attr = self.first_attr(who, &before, &body, set)?;
        let text = if let Body::Symlink(target) = &body { &target[..] } else { b"" };
        let cost = space::of_file(text) + space::of_name(name);
        let acl_cost = attr.acl.as_ref().map_or(0, |acl| acl.cost());
        self.space.data.take(acl_cost)?;
        let allocated = self.space.names.take(cost).and_then(|()| {
            let allocated = self.table.allocate();
            if allocated.is_err() {
                self.space.names.give_back(cost);
            }
            allocated
        });
        if allocated.is_err() {
            self.space.data.give_back(acl_cost);
        }
        let (node, mut inode) = allocated?;
        let directory = matches!(body, Body::Directory(_));
        let time = self.clock.time(now).into();
        *inode = Inode {
            nlink: if directory { 2 } else { 1 },
            uid: attr.uid,
            gid: attr.gid,
            mode: attr.mode as u16,
            change: self.clock.change(0, now),
            atime: time,
            mtime: time,
            ctime: time,
            birth: time,
            body,
            extra: (verifier.is_some() || attr.acl.is_some())
                .then(|| Box::new(Extra { verifier, acl: attr.acl, ..Extra::default() })),
            generation: node.generation,
            ..Inode::free()
        };
        if let (Some(size), Ok(data)) = (set.size, inode.regular_mut()) {
            data.size = size;
        }
        self.apply_times(&mut inode, set, now);
        let attr = inode.attr(node.ino);
        let cookie = parent.directory_mut()?.next_cookie();
        parent.directory_mut()?.insert(&self.hasher, name, node);
        parent.nlink += u32::from(directory);
        parent.data_changed(self.clock, now);
        self.log(room, |record| {
            record.attributes(node.ino, &inode);
            record.verifier(node.ino, &inode);
            record.acl(node.ino, &inode);
            record.attributes(dir.ino, &parent);
            record.name(dir.ino, cookie, name, node);
        });
        Ok(Created { attr, dir: Changed { before, after: parent.attr(dir.ino) } })
    }

    /// Owner, group and mode of a new file.
    fn first_attr(&self, who: &Credentials, dir: &Attr, body: &Body, set: &SetAttr) -> Result<Attr, FsError> {
        let (kind, mode) = match body {
            Body::Directory(_) => (Kind::Directory, 0o755),
            Body::Symlink(_) => (Kind::Symlink, 0o777),
            Body::Special(kind, _) => (*kind, 0o644),
            Body::Regular(_) | Body::Free => (Kind::Regular, 0o644),
        };
        let directory = kind == Kind::Directory;
        let no_list = set.acl.is_none() && !is_broken(Mutant::AclNotInherited);
        let inherited =
            dir.acl.as_ref().filter(|_| no_list).and_then(|acl| acl.inherited(directory)).map(Arc::new);
        let umask = if inherited.is_some() { 0 } else { set.umask };
        let asked = set.mode.map(|mode| mode & !umask);
        let acl = match (&set.acl, inherited, asked) {
            (Some(acl), ..) => acl.kept(directory),
            (None, Some(acl), Some(mode)) => Some(Arc::new(acl.with_mode(mode, directory))),
            (None, inherited, _) => inherited,
        };
        let mode = match (next_mode(mode, &SetAttr { mode: asked, ..set.clone() }), &acl) {
            (None, Some(acl)) => acl.mode(),
            (given, _) => given.unwrap_or(mode),
        };
        let inherits = dir.mode & SET_GROUP != 0;
        let mut attr = Attr {
            kind,
            mode: mode & 0o7777,
            uid: who.uid,
            gid: if inherits { dir.gid } else { who.gid },
            acl,
            ..dir.clone()
        };
        may_chown(&attr, who, set)?;
        attr.uid = set.uid.unwrap_or(attr.uid);
        attr.gid = set.gid.unwrap_or(attr.gid);
        if kind == Kind::Directory {
            attr.mode |= dir.mode & SET_GROUP;
        } else if attr.mode & GROUP_BITS == GROUP_BITS && who.uid != 0 && !who.in_group(attr.gid) {
            attr.mode &= !SET_GROUP;
        }
        Ok(attr)
    }

    /// Makes a hard link. Not to a directory ([`FsError::IsDirectory`]) nor to a file without a name
    /// ([`FsError::NotFound`]).
    pub fn link(
        &self,
        who: &Credentials,
        file: Node,
        dir: Node,
        name: &[u8],
        now: Time,
    ) -> Result<Linked, FsError> {
        if file == dir {
            // A directory is no file to be linked, anything else no directory to link in.
            return Err(match self.table.read(file)?.directory() {
                Ok(_) => FsError::IsDirectory,
                Err(error) => error,
            });
        }
        let room = self.room()?;
        let mut guards = self.lock([file, dir])?;
        let (file_at, dir_at) = if file.ino < dir.ino { (0, 1) } else { (1, 0) };
        let Ok([target, parent]) = guards.get_disjoint_mut([file_at, dir_at]) else {
            return Err(FsError::Stale);
        };
        if target.is_directory() {
            return Err(FsError::IsDirectory);
        }
        let before = self.may_add(parent, who, dir, name, access::WRITE)?;
        if target.nlink == 0 {
            return Err(FsError::NotFound);
        }
        if target.nlink >= LINK_MAX {
            return Err(FsError::TooManyLinks);
        }
        self.space.names.take(space::of_name(name))?;
        target.nlink += 1;
        if !is_broken(Mutant::LinkChangesNothing) {
            target.attributes_changed(self.clock, now);
        }
        let cookie = parent.directory_mut()?.next_cookie();
        parent.directory_mut()?.insert(&self.hasher, name, file);
        parent.data_changed(self.clock, now);
        self.log(room, |record| {
            record.attributes(file.ino, target);
            record.attributes(dir.ino, parent);
            record.name(dir.ino, cookie, name, file);
        });
        Ok(Linked { attr: target.attr(file.ino), dir: Changed { before, after: parent.attr(dir.ino) } })
    }

    /// Removes a name. "." and ".." are [`FsError::Invalid`].
    pub fn remove(
        &self,
        who: &Credentials,
        dir: Node,
        name: &[u8],
        what: RemoveKind,
        now: Time,
    ) -> Result<Removed, FsError> {
        check_removable(name)?;
        let room = self.room()?;
        let (mut parent, mut inode, node) = self.lock_entry(who, dir, name)?;
        let before = parent.attr(dir.ino);
        may_remove(&before, who, &inode.attr(node.ino))?;
        self.may_change()?;
        let directory = match (&inode.body, what) {
            (Body::Directory(_), RemoveKind::File) => return Err(FsError::IsDirectory),
            (Body::Directory(entries), _)
                if (!entries.is_empty() && !is_broken(Mutant::FullDirectoryRemoved)) || inode.pinned =>
            {
                return Err(FsError::NotEmpty);
            }
            (Body::Directory(_), _) => true,
            (_, RemoveKind::Directory) => return Err(FsError::NotDirectory),
            _ => false,
        };
        parent.directory_mut()?.remove(&self.hasher, name);
        self.space.names.give_back(space::of_name(name));
        parent.nlink -= u32::from(directory);
        parent.data_changed(self.clock, now);
        inode.nlink = if directory { 0 } else { inode.nlink.saturating_sub(1) };
        inode.attributes_changed(self.clock, now);
        self.log(room, |record| {
            record.attributes(node.ino, &inode);
            record.attributes(dir.ino, &parent);
            record.no_name(dir.ino, name);
        });
        let removed =
            Removed { attr: inode.attr(node.ino), dir: Changed { before, after: parent.attr(dir.ino) } };
        drop(parent);
        drop(self.free_if_gone(node.ino, inode));
        Ok(removed)
    }

    /// Locks a directory and what a name in it leads to.
    fn lock_entry(
        &self,
        who: &Credentials,
        dir: Node,
        name: &[u8],
    ) -> Result<(WriteGuard<'_>, WriteGuard<'_>, Node), FsError> {
        let mut parent = self.table.write(dir)?;
        loop {
            let entries = parent.directory()?;
            need(&parent.attr(dir.ino), who, access::EXECUTE)?;
            let node = entries.find(&self.hasher, name).ok_or(FsError::NotFound)?.node;
            // Out of order, but without waiting; where one would have to, in order and once more.
            match self.table.try_write(node) {
                Some(inode) => return Ok((parent, inode?, node)),
                None if node.ino > dir.ino => {
                    let inode = self.table.write(node)?;
                    return Ok((parent, inode, node));
                }
                None => {
                    drop(parent);
                    let inode = self.table.write(node);
                    parent = self.table.write(dir)?;
                    let same = parent.directory()?.find(&self.hasher, name).is_some_and(|it| it.node == node);
                    if let (Ok(inode), true) = (inode, same) {
                        need(&parent.attr(dir.ino), who, access::EXECUTE)?;
                        return Ok((parent, inode, node));
                    }
                }
            }
        }
    }

    /// Content of a symbolic link. [`FsError::Invalid`] when it is none.
    pub fn read_link(&self, file: Node, now: Time, visit: &mut dyn FnMut(&[u8])) -> Result<Attr, FsError> {
        let inode = self.table.read(file)?;
        let Body::Symlink(target) = &inode.body else { return Err(FsError::Invalid) };
        visit(target);
        let mut attr = inode.attr(file.ino);
        drop(inode);
        attr.atime = self.touch(file, &attr, now).unwrap_or(attr.atime);
        Ok(attr)
    }

    /// Calls `visit` for the entries after `cookie` (0: from the start) until it returns `false`. "." and ".." are
    /// not among them; cookies are greater than 2 and stay valid while other entries come and go. Returns whether the
    /// end was reached. `want_attr` false saves looking into each inode. The directory's lock is held while visiting:
    /// `visit` must not call this file system.
    #[allow(clippy::too_many_arguments, reason = "as the operation it serves")]
    pub fn read_dir(
        &self,
        who: &Credentials,
        dir: Node,
        cookie: u64,
        want_attr: bool,
        now: Time,
        visit: &mut dyn FnMut(&DirEntry<'_>) -> bool,
    ) -> Result<bool, FsError> {
        let mut cookie = cookie;
        let mut seen = None;
        let (end, dir_attr) = 'again: loop {
            let inode = self.table.read(dir)?;
            let entries = inode.directory()?;
            let dir_attr = inode.attr(dir.ino);
            need(&dir_attr, who, access::READ)?;
            let busy = 'entries: {
                for found in entries.after(cookie) {
                    let attr = match (want_attr, seen.take()) {
                        (false, _) => None,
                        (true, Some((at, attr))) if at == found.cookie => Some(attr),
                        (true, _) => match self.table.try_read(found.node) {
                            Some(inode) => Some(inode?.attr(found.node.ino)),
                            None => break 'entries Some((found.cookie, found.node)),
                        },
                    };
                    let entry = DirEntry { name: found.name, cookie: found.cookie, node: found.node, attr };
                    if !visit(&entry) {
                        break 'again (false, dir_attr);
                    }
                    cookie = found.cookie;
                }
                None
            };
            let Some((at, node)) = busy else { break (true, dir_attr) };
            // Waiting with the directory's lock could be waiting in a circle.
            drop(inode);
            seen = self.attr(node).ok().map(|attr| (at, attr));
        };
        self.touch(dir, &dir_attr, now);
        Ok(end)
    }

    /// The cookie of a name in a directory.
    pub(crate) fn cookie(&self, dir: Node, name: &[u8]) -> Result<u64, FsError> {
        let inode = self.table.read(dir)?;
        let found = inode.directory()?.find(&self.hasher, name).ok_or(FsError::NotFound)?;
        Ok(found.cookie)
    }

    /// What is beside a cookie in a directory: the entry before it, if there is one, and whether none comes after it.
    pub(crate) fn beside(&self, dir: Node, cookie: u64) -> Result<(Option<Beside>, bool), FsError> {
        let inode = self.table.read(dir)?;
        let entries = inode.directory()?;
        let last = entries.after(cookie).next().is_none();
        let before = entries.before(cookie).map(|it| Beside {
            name: it.name.into(),
            cookie: it.cookie,
            node: it.node,
        });
        Ok((before, last))
    }

    /// Verifier of this directory's cookies: changes only when cookies lose their meaning, which they never do.
    pub fn cookie_verifier(&self, dir: Node) -> Result<u64, FsError> {
        self.table.read(dir)?.directory().map(|_| 0)
    }

    /// Whether a name may be added to a directory; its attributes.
    pub(super) fn may_add(
        &self,
        parent: &Inode,
        who: &Credentials,
        dir: Node,
        name: &[u8],
        right: u32,
    ) -> Result<Attr, FsError> {
        let entries = parent.directory()?;
        let attr = parent.attr(dir.ino);
        need(&attr, who, access::EXECUTE)?;
        check_new(name)?;
        if entries.find(&self.hasher, name).is_some() {
            return Err(FsError::Exists);
        }
        may_change(&attr, who, right)?;
        Ok(attr)
    }

    /// Frees a file that has neither names nor holds; its content is returned, to be dropped without locks.
    #[must_use]
    pub(super) fn free_if_gone(&self, ino: u64, inode: WriteGuard<'_>) -> Option<Body> {
        if inode.nlink > 0 || inode.holds > 0 {
            return None;
        }
        let data = inode.regular().map_or(0, Data::used);
        let extra = inode.extra.as_ref().map_or(0, |extra| extra.cost());
        let file = inode.file_cost();
        if inode.regular().is_ok() {
            self.forget_unstable(Node { ino, generation: inode.generation });
        }
        let body = self.table.free(ino, inode);
        self.space.data.give_back(data + extra);
        self.space.names.give_back(file);
        Some(body)
    }
}

/// Content of a new file.
fn body(new: NewFile<'_>, dir: Node) -> Result<Body, FsError> {
    Ok(match new {
        NewFile::Regular => Body::Regular(Data::default()),
        NewFile::Directory => Body::Directory(Box::new(Directory::new(dir))),
        NewFile::Symlink(target) if target.is_empty() || target.contains(&0) => return Err(FsError::Invalid),
        NewFile::Symlink(target) if target.len() > PATH_MAX => return Err(FsError::NameTooLong),
        NewFile::Symlink(target) => Body::Symlink(target.into()),
        NewFile::Special(Kind::Regular | Kind::Directory | Kind::Symlink, _) => return Err(FsError::Invalid),
        NewFile::Special(kind @ (Kind::Block | Kind::Character), device) => Body::Special(kind, device),
        NewFile::Special(kind, _) => Body::Special(kind, (0, 0)),
    })
}

/// Whether something can be called that.
pub(crate) fn check_name(name: &[u8]) -> Result<(), FsError> {
    match name.len() {
        0 => Err(FsError::BadName),
        _ if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(FsError::BadName),
        len if len > NAME_MAX => Err(FsError::NameTooLong),
        _ => Ok(()),
    }
}

/// [`check_name`] for a name to be made: "." and ".." are always there.
pub(super) fn check_new(name: &[u8]) -> Result<(), FsError> {
    if matches!(name, b"." | b"..") { Err(FsError::Exists) } else { check_name(name) }
}

/// [`check_name`] for a name to be removed: "." and ".." cannot be.
pub(super) fn check_removable(name: &[u8]) -> Result<(), FsError> {
    if matches!(name, b"." | b"..") { Err(FsError::Invalid) } else { check_name(name) }
}

/// [`FsError::Access`] unless `who` has all rights of `wanted`.
pub(super) fn need(attr: &Attr, who: &Credentials, wanted: u32) -> Result<(), FsError> {
    let may = permits(attr, who, wanted) || is_broken(Mutant::RightsUnchecked);
    if may { Ok(()) } else { Err(FsError::Access) }
}

/// Whether `who` may add names (`right`) to a directory, which must not be removed itself.
pub(super) fn may_change(dir: &Attr, who: &Credentials, right: u32) -> Result<(), FsError> {
    need(dir, who, right | access::EXECUTE)?;
    if dir.nlink == 0 { Err(FsError::NotFound) } else { Ok(()) }
}

/// Whether `who` may take the name of `file` out of `dir`: by a right to the one or the other (RFC 8881 §6.2.1.3.2), and in a
/// sticky directory only the owner of either.
pub(super) fn may_remove(dir: &Attr, who: &Credentials, file: &Attr) -> Result<(), FsError> {
    need(dir, who, access::EXECUTE)?;
    if file.acl.is_none() || !permits(file, who, access::REMOVE) {
        need(dir, who, access::REMOVE_ENTRY)?;
    }
    if dir.mode & STICKY != 0 && who.uid != 0 && who.uid != dir.uid && who.uid != file.uid {
        return Err(FsError::NotOwner);
    }
    Ok(())
}
