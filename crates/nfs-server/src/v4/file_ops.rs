//! Operations on objects and file handles.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    ACCESS_DELETE, ACCESS_EXECUTE, ACCESS_EXTEND, ACCESS_LOOKUP, ACCESS_MODIFY, ACCESS_READ, ACCESS_XALIST,
    ACCESS_XAREAD, ACCESS_XAWRITE, AccessArgs, AccessOk, Bitmap4, Fattr4, GetattrArgs, LookupArgs, Nfsstat4,
    Opnum, PutfhArgs, SetattrArgs, VerifyArgs, notify,
};

use super::attrs::{self, Purpose, View};
use super::names::check_name;
use super::notifications::{Event, needs};
use super::{Compound, Failure, OpResult};
use crate::fs::{Attr, FsError, Kind, access as right, permits};
use crate::handle::{self, FileId};
use crate::state::Conflict;
use crate::state::delegated::Answer;
use crate::state::held::{Asked, Asker};
use crate::state::watch::Notifications;

/// ACCESS (RFC 7530 §16.1, RFC 8881 §18.1, RFC 8276 §8.5).
pub(crate) fn access(c: &mut Compound<'_>, args: AccessArgs) -> OpResult {
    const DIRECTORY: u32 = ACCESS_READ | ACCESS_LOOKUP | ACCESS_MODIFY | ACCESS_EXTEND | ACCESS_DELETE;
    const OTHER: u32 = ACCESS_READ | ACCESS_MODIFY | ACCESS_EXTEND | ACCESS_EXECUTE;
    const XATTR: u32 = ACCESS_XAREAD | ACCESS_XAWRITE | ACCESS_XALIST;
    let file = c.file()?;
    let known = if c.minor >= 2 { DIRECTORY | OTHER | XATTR } else { DIRECTORY | OTHER };
    if args.access & !known != 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    let (_, _, attr) = c.look(file)?;
    let meaningful = match attr.kind {
        Kind::Directory => DIRECTORY | XATTR,
        Kind::Regular => OTHER | XATTR,
        _ => OTHER,
    };
    let supported = args.access & meaningful;
    let read_only = c.for_change(file).is_err();
    let may = |bits: u32, rights: u32, changes: bool| {
        if !(changes && read_only) && permits(&attr, c.who, rights) { bits } else { 0 }
    };
    let granted = if attr.kind == Kind::Directory {
        may(ACCESS_READ, right::READ, false)
            | may(ACCESS_LOOKUP, right::EXECUTE, false)
            | may(ACCESS_MODIFY, right::WRITE | right::REMOVE_ENTRY | right::EXECUTE, true)
            | may(ACCESS_EXTEND, right::WRITE | right::EXECUTE, true)
            | may(ACCESS_EXTEND, right::ADD_DIRECTORY | right::EXECUTE, true)
            | may(ACCESS_DELETE, right::REMOVE_ENTRY | right::EXECUTE, true)
    } else {
        may(ACCESS_READ, right::READ, false)
            | may(ACCESS_EXECUTE, right::EXECUTE, false)
            | may(ACCESS_MODIFY | ACCESS_EXTEND, right::WRITE, true)
    };
    let granted = granted
        | may(ACCESS_XAREAD | ACCESS_XALIST, right::READ, false)
        | may(ACCESS_XAWRITE, right::WRITE, true);
    c.answer(&AccessOk {
        supported,
        access: if is_broken(Mutant::AccessGrantsAll) { supported } else { granted & supported },
    })
}

/// GETATTR (RFC 7530 §16.7, RFC 8881 §18.7).
pub(crate) fn getattr(c: &mut Compound<'_>, args: GetattrArgs) -> OpResult {
    let file = c.file()?;
    attrs::check_readable(args.attr_request, c.minor)?;
    let attr = c.attributes(file, args.attr_request)?;
    View::new(c.server, c.minor, file.export, args.attr_request).put(&mut c.reply.encoder, file, &attr);
    Ok(())
}

/// SETATTR (RFC 7530 §16.32, RFC 8881 §18.30).
pub(crate) fn setattr(c: &mut Compound<'_>, args: SetattrArgs<'_>) -> OpResult {
    let file = c.file()?;
    let (_, _, attr) = c.look(file)?;
    let purpose = Purpose::Existing { mode: attr.mode, directory: attr.kind == Kind::Directory };
    let set = attrs::to_set(&args.obj_attributes, c.minor, purpose)?;
    let (fs, node) = c.for_change(file)?;
    let stateid = c.stateid(args.stateid)?;
    let mut size_checked = false;
    if let Some(size) = set.size {
        match attr.kind {
            Kind::Regular => {}
            Kind::Directory if c.minor == 0 => return Err(Nfsstat4::ISDIR.into()),
            _ => return Err(Nfsstat4::WRONG_TYPE.into()),
        }
        if size > attrs::MAX_FILE_SIZE {
            return Err(Nfsstat4::FBIG.into());
        }
        let right = c.check_io(stateid, file, true)?;
        // Who may by its open needs no permission of the file, nor does the owner (it could give it to itself).
        size_checked = right.client.is_some() && (right.opener == Some(c.who.uid) || attr.uid == c.who.uid);
    } else if c.client.is_none() && !stateid.is_special() {
        // Only to learn whose delegation need not be recalled: without a size the stateid has no other use.
        c.learn_client(stateid, file);
    }
    if let Some(times) = attrs::delegated_times(&args.obj_attributes)? {
        let write = times.1.is_some();
        let right = c.check_io(stateid, file, write)?;
        c.check_user(right.opener, file, write)?;
        let part = c.server.state.read(file);
        let (atime, mtime) = part.files().holders_times(c.minor, c.client, &stateid, file, times)?;
        drop(part);
        fs.set_delegated_times(node, atime, mtime, false, c.now.wall)?;
    }
    let (who, now) = (c.who, c.now.wall);
    let set_all = || fs.set_attr(who, node, &set, None, size_checked, now);
    match attrs::changed_by_setting(args.obj_attributes.attrmask).filter(|_| attr.kind == Kind::Directory) {
        Some(dir) => {
            let needs = Notifications { dir, ..needs(notify::CHANGE_DIR_ATTRS) };
            c.change_directories(None, &[(file, needs)], |_| {
                set_all()?;
                Ok(((), vec![(file, Event::Attributes)]))
            })?;
        }
        None => {
            c.check_conflict(file, Conflict::Change)?;
            set_all()?;
        }
    }
    c.answer(&args.obj_attributes.attrmask)
}

impl Compound<'_> {
    /// Attributes of a file, for GETATTR and VERIFY of these.
    fn attributes(&mut self, file: FileId, mask: Bitmap4) -> Result<Attr, Failure> {
        let held = if attrs::concern_delegations(mask) { self.ask_holder(file)? } else { None };
        held.map_or_else(|| Ok(self.look(file)?.2), Ok)
    }

    /// Attributes of a file that another client has a write delegation on, as its holder knows them: DELAY until it
    /// has answered. `None`: no client knows better than the server.
    pub(super) fn ask_holder(&mut self, file: FileId) -> Result<Option<Attr>, Failure> {
        // Most files have no delegation: look before locking for change.
        if !self.server.config.delegations || !self.server.state.delegated(file) {
            return Ok(None);
        }
        let asker = self.client.map_or(Asker::Unnamed(self.peer.address.ip().to_canonical()), Asker::Client);
        let asked = {
            let mut part = self.server.state.write(file);
            let (clients, files) = part.split();
            files.ask_holder(clients, file, asker, self.now.instant, self.effects)
        };
        let answer = match asked {
            Asked::Nobody => return Ok(None),
            Asked::Waits => {
                // The holder answers at once as a rule: sooner than the client would come back.
                self.waits = self.may_wait && self.session.is_some() && !self.non_idempotent;
                return Err(Nfsstat4::DELAY.into());
            }
            Asked::Holder(answer) => answer,
        };
        let (fs, node, attr) = self.look(file)?;
        let attr = if answer.first {
            let Answer { atime, mtime, modified, .. } = answer;
            fs.set_delegated_times(node, atime, mtime, modified, self.now.wall)?
        } else {
            attr
        };
        Ok(Some(Attr { size: answer.size, ..attr }))
    }
}

/// VERIFY (RFC 7530 §16.35, RFC 8881 §18.31).
pub(crate) fn verify(c: &mut Compound<'_>, args: VerifyArgs<'_>) -> OpResult {
    if same(c, &args.obj_attributes)? || is_broken(Mutant::VerifyAgrees) {
        return Ok(());
    }
    Err(Nfsstat4::NOT_SAME.into())
}

/// NVERIFY (RFC 7530 §16.15, RFC 8881 §18.15).
pub(crate) fn nverify(c: &mut Compound<'_>, args: VerifyArgs<'_>) -> OpResult {
    if same(c, &args.obj_attributes)? && !is_broken(Mutant::NverifyDiffers) {
        return Err(Nfsstat4::SAME.into());
    }
    Ok(())
}

/// Whether the current file's attributes are these: compared as encoded.
fn same(c: &mut Compound<'_>, given: &Fattr4<'_>) -> Result<bool, Failure> {
    let file = c.file()?;
    attrs::check_comparable(given, c.minor)?;
    let attr = c.attributes(file, given.attrmask)?;
    let start = c.reply.mark();
    View::new(c.server, c.minor, file.export, given.attrmask).put(&mut c.reply.encoder, file, &attr);
    let mask_and_count = 4 + 4 * given.attrmask.wire_words() + 4;
    let ours = c.reply.encoder.buffer().get(start.buffer + mask_and_count..);
    let same = ours == Some(given.attr_vals.0);
    c.reply.rollback(start);
    Ok(same)
}

/// PUTFH (RFC 7530 §16.20, RFC 8881 §18.19).
pub(crate) fn putfh(c: &mut Compound<'_>, args: PutfhArgs<'_>) -> OpResult {
    /// Operations that themselves notice that the file is gone, so that PUTFH need not look for it.
    const NOTICING: [Opnum; 5] = [Opnum::READ, Opnum::WRITE, Opnum::GETATTR, Opnum::LOOKUP, Opnum::ACCESS];
    let (instance, file) = handle::decode(args.object.0).map_err(|_| {
        if is_broken(Mutant::BadHandleMissing) { Nfsstat4::NOENT } else { Nfsstat4::BADHANDLE }
    })?;
    if instance != c.server.instance {
        return Err(Nfsstat4::STALE.into());
    }
    if !c.next.is_some_and(|next| NOTICING.contains(&next)) {
        c.look(file)?;
    }
    c.set_current(file);
    Ok(())
}

/// PUTROOTFH and PUTPUBFH: the public file handle is the root (RFC 8881 §18.20.4).
pub(crate) fn putrootfh(c: &mut Compound<'_>) -> OpResult {
    c.set_current(c.server.exports.root());
    Ok(())
}

pub(crate) fn getfh(c: &mut Compound<'_>) -> OpResult {
    let file = c.file()?;
    c.reply.encoder.opaque(&handle::encode(c.server.instance, file));
    Ok(())
}

/// SAVEFH: file handle and stateid.
pub(crate) fn savefh(c: &mut Compound<'_>) -> OpResult {
    c.saved = Some(c.file()?);
    c.saved_stateid = c.current_stateid;
    Ok(())
}

/// RESTOREFH: file handle and stateid.
pub(crate) fn restorefh(c: &mut Compound<'_>) -> OpResult {
    c.current = Some(c.saved_file()?);
    c.current_stateid = c.saved_stateid;
    Ok(())
}

/// LOOKUP (RFC 7530 §16.13, RFC 8881 §18.13).
pub(crate) fn lookup(c: &mut Compound<'_>, args: LookupArgs<'_>) -> OpResult {
    let dir = c.file()?;
    let name = check_name(args.objname)?;
    let (file, _) =
        c.server.exports.lookup(c.who, dir, name).map_err(|error| lookup_failure(c, dir, error))?;
    c.set_current(file);
    Ok(())
}

/// Where a directory was needed: SYMLINK for a symbolic link (RFC 8881 §18.13.4).
fn lookup_failure(c: &Compound<'_>, dir: FileId, error: FsError) -> Failure {
    match error {
        FsError::NotDirectory if c.look(dir).is_ok_and(|(_, _, attr)| attr.kind == Kind::Symlink) => {
            if is_broken(Mutant::SymlinkIsNoDirectory) { Nfsstat4::NOTDIR } else { Nfsstat4::SYMLINK }.into()
        }
        error => error.into(),
    }
}

/// LOOKUPP (RFC 7530 §16.14, RFC 8881 §18.14).
pub(crate) fn lookupp(c: &mut Compound<'_>) -> OpResult {
    let parent = parent(c)?;
    c.set_current(parent);
    Ok(())
}

pub(crate) fn parent(c: &Compound<'_>) -> Result<FileId, Failure> {
    let dir = c.file()?;
    let (_, _, attr) = c.look(dir)?;
    match attr.kind {
        Kind::Directory => {}
        // RFC 8881 §15.2; RFC 7530 §16.14.4 has NOTDIR only.
        Kind::Symlink if c.minor > 0 => return Err(Nfsstat4::SYMLINK.into()),
        _ => return Err(Nfsstat4::NOTDIR.into()),
    }
    if !permits(&attr, c.who, right::EXECUTE) {
        return Err(Nfsstat4::ACCESS.into());
    }
    match c.server.exports.parent(dir)? {
        None if is_broken(Mutant::RootHasParent) => Ok(dir),
        parent => Ok(parent.ok_or(Nfsstat4::NOENT)?),
    }
}

/// READLINK (RFC 7530 §16.25, RFC 8881 §18.24).
pub(crate) fn readlink(c: &mut Compound<'_>) -> OpResult {
    let file = c.file()?;
    let (fs, node, attr) = c.look(file)?;
    if attr.kind != Kind::Symlink {
        return Err(Nfsstat4::WRONG_TYPE.into());
    }
    let encoder = &mut c.reply.encoder;
    fs.read_link(node, c.now.wall, &mut |content| encoder.opaque(content))?;
    Ok(())
}
