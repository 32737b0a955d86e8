//! rename(2).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::inode::{Body, Inode};
use super::namespace::{check_new, check_removable, may_change, may_remove, need};
use super::{Changed, FileSystem, FsError, Node, Renamed, Time, access, space};
use crate::cred::Credentials;
use crate::wal::Room;

impl FileSystem {
    /// Renames, replacing what has the new name when kinds allow (rename(2)). Atomic.
    ///
    /// Both names of one file: nothing happens. A directory into itself or below: [`FsError::Invalid`], as for "."
    /// and ".." as the old name; as the new name they are [`FsError::Exists`]. A directory over something else is
    /// [`FsError::NotDirectory`], something else over a directory [`FsError::IsDirectory`], and a directory over one
    /// with entries [`FsError::NotEmpty`].
    pub fn rename(
        &self,
        who: &Credentials,
        from: Node,
        name: &[u8],
        to: Node,
        new_name: &[u8],
        now: Time,
    ) -> Result<Renamed, FsError> {
        let mut room = self.room()?;
        // Who is whose parent stays as it is while this is held.
        let _tree = (from != to).then(|| self.renames.lock());
        self.find(who, from, None)?;
        self.find(who, to, None)?;
        check_removable(name)?;
        check_new(new_name)?;
        self.may_change()?;
        loop {
            let file = self.find(who, from, Some(name))?.ok_or(FsError::NotFound)?;
            let replaced = self.find(who, to, Some(new_name))?;
            // The directory that the move would put below itself, or replace with something in it.
            if from != to && self.is_above(file, to) {
                return Err(if is_broken(Mutant::MoveBelowItselfExists) {
                    FsError::Exists
                } else {
                    FsError::Invalid
                });
            }
            if from != to && replaced.is_some_and(|replaced| self.is_above(replaced, from)) {
                let directory = self.attr(file).is_ok_and(|attr| attr.kind == super::Kind::Directory);
                return Err(if directory { FsError::NotEmpty } else { FsError::IsDirectory });
            }
            if let Some(renamed) =
                self.rename_found(who, (from, name), (to, new_name), file, replaced, now, &mut room)?
            {
                return Ok(renamed);
            }
        }
    }

    /// What a name in a directory leads to.
    fn find(&self, who: &Credentials, dir: Node, name: Option<&[u8]>) -> Result<Option<Node>, FsError> {
        let inode = self.table.read(dir)?;
        let entries = inode.directory()?;
        need(&inode.attr(dir.ino), who, access::EXECUTE)?;
        Ok(name.and_then(|name| entries.find(&self.hasher, name)).map(|found| found.node))
    }

    /// Whether `dir` is `above` or below it.
    fn is_above(&self, above: Node, dir: Node) -> bool {
        let mut at = dir;
        loop {
            if at == above {
                return true;
            }
            match self.parent(at) {
                Ok(parent) if parent != at => at = parent,
                _ => return false,
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "what was found, who, when, and room to log it")]
    /// Renames when both names still lead to what was found; `None` otherwise.
    fn rename_found(
        &self,
        who: &Credentials,
        (from, name): (Node, &[u8]),
        (to, new_name): (Node, &[u8]),
        file: Node,
        replaced: Option<Node>,
        now: Time,
        room: &mut Option<Room<'_>>,
    ) -> Result<Option<Renamed>, FsError> {
        if is_broken(Mutant::RenameToItself) && replaced == Some(file) {
            self.remove(who, from, name, super::RemoveKind::File, now)?;
            return Err(FsError::NotFound);
        }
        let other = replaced.filter(|other| *other != file);
        let Some((order, mut guards)) = self.lock_found([Some(from), Some(to), Some(file), other])? else {
            return Ok(None);
        };
        let place = |node: Node| order.iter().position(|it| *it == node).ok_or(FsError::Stale);
        let leads = |dir: &Inode, name: &[u8], node: Option<Node>| {
            dir.directory().map(|dir| dir.find(&self.hasher, name).map(|found| found.node) == node)
        };
        let (from_at, to_at, file_at) = (place(from)?, place(to)?, place(file)?);
        if !leads(&guards[from_at], name, Some(file))? || !leads(&guards[to_at], new_name, replaced)? {
            return Ok(None);
        }
        let attrs =
            |node: Node, at: usize, guards: &[super::table::WriteGuard<'_>]| guards[at].attr(node.ino);
        let from_before = attrs(from, from_at, &guards);
        let to_before = attrs(to, to_at, &guards);
        let moved = attrs(file, file_at, &guards);
        let directory = guards[file_at].is_directory();

        if replaced == Some(file) {
            let same = Changed { before: from_before.clone(), after: from_before };
            return Ok(Some(Renamed {
                from: same,
                to: Changed { before: to_before.clone(), after: to_before },
                replaced: None,
            }));
        }

        // Checks, as removal of the old name, removal or addition of the new one.
        may_remove(&from_before, who, &moved)?;
        let right = if directory { access::ADD_DIRECTORY } else { access::WRITE };
        may_change(&to_before, who, right)?;
        if let Some(other) = other {
            let inode = &guards[place(other)?];
            may_remove(&to_before, who, &inode.attr(other.ino))?;
            match &inode.body {
                Body::Directory(_) if !directory => return Err(FsError::IsDirectory),
                Body::Directory(entries) if !entries.is_empty() || inode.pinned => {
                    return Err(FsError::NotEmpty);
                }
                Body::Directory(_) => {}
                _ if directory => return Err(FsError::NotDirectory),
                _ => {}
            }
        }
        if directory && from != to {
            // Its ".." changes.
            need(&moved, who, access::WRITE)?;
        }

        // The new name takes the place of the old one, unless it is there already.
        if other.is_none() {
            self.space.names.take(space::of_name(new_name))?;
        }
        // Changes: from here on nothing fails.
        guards[from_at].directory_mut()?.remove(&self.hasher, name);
        self.space.names.give_back(space::of_name(name));
        let entries = guards[to_at].directory_mut()?;
        let cookie = entries.find(&self.hasher, new_name).map(|found| found.cookie);
        match cookie {
            Some(cookie) => entries.replace(cookie, file),
            None => entries.insert(&self.hasher, new_name, file),
        }
        if directory {
            guards[from_at].nlink -= 1;
            guards[to_at].nlink += 1;
            guards[file_at].directory_mut()?.parent = to;
        }
        guards[from_at].data_changed(self.clock, now);
        if from != to {
            guards[to_at].data_changed(self.clock, now);
        }
        guards[file_at].attributes_changed(self.clock, now);
        let mut gone = None;
        if let Some(other) = other {
            let at = place(other)?;
            guards[at].nlink = if directory { 0 } else { guards[at].nlink.saturating_sub(1) };
            guards[at].attributes_changed(self.clock, now);
            gone = Some((at, guards[at].attr(other.ino)));
            guards[to_at].nlink -= u32::from(directory);
        }
        self.log(room.take(), |record| {
            for (node, inode) in order.iter().zip(&guards) {
                record.attributes(node.ino, inode);
            }
            record.no_name(from.ino, name);
            let entry = guards[to_at].directory().ok().and_then(|dir| dir.find(&self.hasher, new_name));
            if let Some(entry) = entry {
                record.name(to.ino, entry.cookie, new_name, file);
            }
        });
        let renamed = Renamed {
            from: Changed { before: from_before, after: attrs(from, from_at, &guards) },
            to: Changed { before: to_before, after: attrs(to, to_at, &guards) },
            replaced: gone.as_ref().map(|(_, attr)| attr.clone()),
        };
        if let Some((at, attr)) = gone {
            let inode = guards.swap_remove(at);
            drop(guards);
            drop(self.free_if_gone(attr.node.ino, inode));
        }
        Ok(Some(renamed))
    }
}
