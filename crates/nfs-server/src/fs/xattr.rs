//! Extended attributes (RFC 8276).

use super::extra::Xattr;
use super::inode::{Body, Inode};
use super::{Changed, FileSystem, FsError, NAME_MAX, Node, Time, XATTR_SIZE_MAX, XattrSet};
use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

/// Bytes of names and values that one file may have in all.
const TOTAL_MAX: u64 = 1 << 20;
impl FileSystem {
    /// Value of an extended attribute.
    pub fn xattr(&self, file: Node, name: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), FsError> {
        let inode = self.table.read(file)?;
        check(&inode, name)?;
        let found = inode.xattrs().iter().find(|it| *it.name == *name).ok_or(FsError::NoXattr)?;
        visit(&found.value);
        Ok(())
    }

    /// Sets an extended attribute.
    pub fn set_xattr(
        &self,
        file: Node,
        name: &[u8],
        value: &[u8],
        how: XattrSet,
        now: Time,
    ) -> Result<Changed, FsError> {
        let room = self.room_for_xattrs()?;
        let mut inode = self.table.write(file)?;
        check(&inode, name)?;
        if value.len() > XATTR_SIZE_MAX {
            return Err(FsError::XattrTooBig);
        }
        let before = inode.attr(file.ino);
        let old = inode.xattrs().iter().position(|it| *it.name == *name);
        match (how, old) {
            (XattrSet::Create, Some(_)) if !is_broken(Mutant::XattrCreateReplaces) => {
                return Err(FsError::Exists);
            }
            (XattrSet::Replace, None) if !is_broken(Mutant::XattrReplaceCreates) => {
                return Err(FsError::NoXattr);
            }
            _ => {}
        }
        let extra = inode.extra.get_or_insert_default();
        let total = extra.cost();
        let gone = old.and_then(|at| extra.xattrs.get(at)).map_or(0, |it| Xattr::cost(&it.name, &it.value));
        let cost = Xattr::cost(name, value);
        if total - gone + cost > TOTAL_MAX {
            return Err(FsError::NoSpace);
        }
        self.space.data.take(cost.saturating_sub(gone))?;
        self.space.data.give_back(gone.saturating_sub(cost));
        match old.and_then(|at| extra.xattrs.get_mut(at)) {
            Some(xattr) => xattr.value = value.into(),
            None => {
                extra.last_cookie += 1;
                extra.xattrs.push(Xattr {
                    cookie: extra.last_cookie,
                    name: name.into(),
                    value: value.into(),
                });
            }
        }
        inode.attributes_changed(self.clock, now);
        self.log(room, |record| record.all(file.ino, &inode));
        Ok(Changed { before, after: inode.attr(file.ino) })
    }

    /// Removes an extended attribute.
    pub fn remove_xattr(&self, file: Node, name: &[u8], now: Time) -> Result<Changed, FsError> {
        let room = self.room_for_xattrs()?;
        let mut inode = self.table.write(file)?;
        check(&inode, name)?;
        let before = inode.attr(file.ino);
        let extra = inode.extra.as_mut().ok_or(FsError::NoXattr)?;
        let at = extra.xattrs.iter().position(|it| *it.name == *name).ok_or(FsError::NoXattr)?;
        let gone = extra.xattrs.remove(at);
        self.space.data.give_back(Xattr::cost(&gone.name, &gone.value));
        inode.attributes_changed(self.clock, now);
        self.log(room, |record| record.all(file.ino, &inode));
        Ok(Changed { before, after: inode.attr(file.ino) })
    }

    /// Names of extended attributes after `cookie` (0: from the start), with the cookie after each, until `visit`
    /// returns `false`. Returns whether the end was reached. A name that comes again was removed and created again.
    pub fn list_xattrs(
        &self,
        file: Node,
        cookie: u64,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<bool, FsError> {
        let inode = self.table.read(file)?;
        carries(&inode)?;
        let xattrs = inode.xattrs();
        let first = xattrs.partition_point(|it| it.cookie <= cookie);
        Ok(xattrs.iter().skip(first).all(|it| visit(it.cookie, &it.name)))
    }
}

impl Inode {
    fn xattrs(&self) -> &[Xattr] {
        self.extra.as_ref().map_or(&[], |extra| &extra.xattrs)
    }
}

/// Regular files and directories have extended attributes of users, others do not (as in xattr(7)).
fn carries(inode: &Inode) -> Result<(), FsError> {
    match inode.body {
        Body::Regular(_) | Body::Directory(_) => Ok(()),
        _ => Err(FsError::WrongKind),
    }
}

fn check(inode: &Inode, name: &[u8]) -> Result<(), FsError> {
    carries(inode)?;
    match name.len() {
        0 => Err(FsError::BadName),
        _ if name.contains(&0) => Err(FsError::BadName),
        len if len > NAME_MAX => Err(FsError::NameTooLong),
        _ => Ok(()),
    }
}
