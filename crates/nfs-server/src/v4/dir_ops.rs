//! Operations on directories.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    Bitmap4, CreateArgs, CreateOk, Createtype4, Fattr4, LinkArgs, LinkOk, Nfsstat4, ReaddirArgs, RemoveArgs,
    RemoveOk, RenameArgs, RenameOk, Specdata4, fattr4, notify,
};
use benchmaster_nfs_proto::xdr::Encoder;
use hashbrown::HashMap;

use super::attrs::{self, Purpose, View};
use super::names::check_name;
use super::notifications::{Entry, Event, check_free, needs};
use super::{Compound, Failure, OpResult, change_info};
use crate::fs::{Attr, FileSystem, FsError, Kind, NewFile, Node, PATH_MAX, RemoveKind};
use crate::handle::FileId;
use crate::state::Conflict;

/// CREATE (RFC 7530 §16.4, RFC 8881 §18.4): anything but regular files.
pub(crate) fn create(c: &mut Compound<'_>, args: CreateArgs<'_>) -> OpResult {
    let dir = c.file()?;
    let name = check_name(args.objname)?;
    let device = |dev: Specdata4| (dev.specdata1, dev.specdata2);
    let new = match args.objtype {
        Createtype4::Dir => NewFile::Directory,
        Createtype4::Blk(dev) => NewFile::Special(Kind::Block, device(dev)),
        Createtype4::Chr(dev) => NewFile::Special(Kind::Character, device(dev)),
        Createtype4::Lnk(target) if target.0.is_empty() => return Err(Nfsstat4::INVAL.into()),
        Createtype4::Lnk(target) if target.0.len() > PATH_MAX => return Err(Nfsstat4::NAMETOOLONG.into()),
        Createtype4::Lnk(target) => NewFile::Symlink(target.0),
        Createtype4::Sock => NewFile::Special(Kind::Socket, (0, 0)),
        Createtype4::Fifo => NewFile::Special(Kind::Fifo, (0, 0)),
        Createtype4::Other(_) if is_broken(Mutant::FileTypeInvalid) => return Err(Nfsstat4::INVAL.into()),
        Createtype4::Other(_) => return Err(Nfsstat4::BADTYPE.into()),
    };
    let purpose = match args.objtype {
        Createtype4::Lnk(_) => Purpose::NewLink,
        Createtype4::Dir => Purpose::NewDirectory,
        _ => Purpose::NewObject,
    };
    let set = attrs::to_set(&args.createattrs, c.minor, purpose)?;
    let (fs, node) = directory_for_change(c, dir)?;
    if matches!(new, NewFile::Special(Kind::Block | Kind::Character, _)) && c.who.uid != 0 {
        return Err(Nfsstat4::PERM.into());
    }
    check_free(c, fs, node, name)?;
    let (who, now) = (c.who, c.now.wall);
    let created = c.change_directories(None, &[(dir, needs(notify::ADD_ENTRY))], |notifies| {
        let created = fs.create(who, node, name, new, &set, None, now)?;
        let event = notifies.then(|| added(fs, node, name, created.attr.clone())).transpose()?;
        Ok((created, event.map(|event| (dir, event)).into_iter().collect()))
    })?;
    c.set_current(FileId::new(dir.export, created.attr.node));
    c.answer(&CreateOk { cinfo: change_info(&created.dir), attrset: args.createattrs.attrmask })
}

/// LINK (RFC 7530 §16.9, RFC 8881 §18.9): the saved file gets a name in the current directory.
pub(crate) fn link(c: &mut Compound<'_>, args: LinkArgs<'_>) -> OpResult {
    let (file, dir) = (c.saved_file()?, c.file()?);
    let name = check_name(args.newname)?;
    let (_, node, attr) = c.look(file)?;
    if attr.kind == Kind::Directory {
        return Err(
            if is_broken(Mutant::DirectoryLinkInvalid) { Nfsstat4::INVAL } else { Nfsstat4::ISDIR }.into()
        );
    }
    let (fs, dir_node) = directory_for_change(c, dir)?;
    if file.export != dir.export {
        return Err(Nfsstat4::XDEV.into());
    }
    check_free(c, fs, dir_node, name)?;
    // The number of links is an attribute that delegations promise to keep.
    c.check_conflict(file, Conflict::Change)?;
    let (who, now) = (c.who, c.now.wall);
    let linked = c.change_directories(None, &[(dir, needs(notify::ADD_ENTRY))], |notifies| {
        let linked = fs.link(who, node, dir_node, name, now)?;
        let event = notifies.then(|| added(fs, dir_node, name, linked.attr.clone())).transpose()?;
        Ok((linked, event.map(|event| (dir, event)).into_iter().collect()))
    })?;
    c.answer(&LinkOk { cinfo: change_info(&linked.dir) })
}

/// REMOVE (RFC 7530 §16.26, RFC 8881 §18.25).
pub(crate) fn remove(c: &mut Compound<'_>, args: RemoveArgs<'_>) -> OpResult {
    let dir = c.file()?;
    let name = check_name(args.target)?;
    let (fs, node) = directory_for_change(c, dir)?;
    let (target, _) = fs.lookup(c.who, node, name)?;
    c.check_conflict(FileId::new(dir.export, target), Conflict::Change)?;
    let (who, now) = (c.who, c.now.wall);
    let removed = c.change_directories(None, &[(dir, needs(notify::REMOVE_ENTRY))], |notifies| {
        let cookie = notifies.then(|| fs.cookie(node, name)).transpose()?;
        let removed = fs.remove(who, node, name, RemoveKind::Any, now).map_err(removal_failure)?;
        let attr = removed.attr.clone();
        let event = cookie.map(|cookie| (dir, Event::Removed(Entry { name, cookie, attr })));
        Ok((removed, event.into_iter().collect()))
    })?;
    c.answer(&RemoveOk { cinfo: change_info(&removed.dir) })
}

/// RENAME (RFC 7530 §16.27, RFC 8881 §18.26): from the saved directory to the current one.
pub(crate) fn rename(c: &mut Compound<'_>, args: RenameArgs<'_>) -> OpResult {
    let (from, to) = (c.saved_file()?, c.file()?);
    let old = check_name(args.oldname)?;
    let new = check_name(args.newname)?;
    let (_, from_node) = directory_for_change(c, from)?;
    let (fs, to_node) = directory_for_change(c, to)?;
    if from.export != to.export {
        return Err(Nfsstat4::XDEV.into());
    }
    let (source, _) = fs.lookup(c.who, from_node, old)?;
    let target = fs.lookup(c.who, to_node, new).map(|(target, _)| target);
    if target != Ok(source) {
        c.check_conflict(FileId::new(from.export, source), Conflict::Change)?;
        if let Ok(target) = target {
            c.check_conflict(FileId::new(to.export, target), Conflict::Change)?;
        }
    }
    let moves = [(from, needs(notify::REMOVE_ENTRY)), (to, needs(notify::ADD_ENTRY))];
    let stays = [(from, needs(notify::RENAME_ENTRY))];
    let concerned = if target == Ok(source) {
        &[][..]
    } else if from == to {
        &stays[..]
    } else {
        &moves[..]
    };
    let (who, now) = (c.who, c.now.wall);
    let renamed = c.change_directories(None, concerned, |notifies| {
        let before = notifies.then(|| fs.cookie(from_node, old)).transpose()?;
        let renamed = fs.rename(who, from_node, old, to_node, new, now).map_err(|error| match error {
            // A file in the way of a directory, a directory in the way of a file, or one that is not empty.
            FsError::IsDirectory | FsError::NotDirectory | FsError::NotEmpty => Nfsstat4::EXIST.into(),
            error => removal_failure(error),
        })?;
        let Some(cookie) = before else { return Ok((renamed, Vec::new())) };
        let attr = fs.attr(source)?;
        let gone = Entry { name: old, cookie, attr: attr.clone() };
        let entry = Entry { name: new, cookie: fs.cookie(to_node, new)?, attr };
        let replaced = renamed.replaced.clone();
        let events = if from == to {
            vec![(from, Event::Renamed(gone, entry, replaced))]
        } else {
            vec![(from, Event::Removed(gone)), (to, Event::Added(entry, replaced))]
        };
        Ok((renamed, events))
    })?;
    c.answer(&RenameOk { source_cinfo: change_info(&renamed.from), target_cinfo: change_info(&renamed.to) })
}

/// A new entry, as notifications describe it.
pub(crate) fn added<'n>(
    fs: &FileSystem,
    dir: Node,
    name: &'n [u8],
    attr: Attr,
) -> Result<Event<'n>, FsError> {
    Ok(Event::Added(Entry { name, cookie: fs.cookie(dir, name)?, attr }, None))
}

/// Where only owners remove, others lack access: PERM is no status of REMOVE and RENAME (RFC 7530 §13.2, RFC 8881
/// §15.2).
fn removal_failure(error: FsError) -> Failure {
    match error {
        FsError::NotOwner => Nfsstat4::ACCESS.into(),
        error => error.into(),
    }
}

/// READDIR (RFC 7530 §16.24, RFC 8881 §18.23). Of files that other clients have write delegations on it shows what
/// their holders say, as GETATTR does: entries of those that have not answered yet have an error for attributes.
pub(crate) fn readdir(c: &mut Compound<'_>, args: ReaddirArgs) -> OpResult {
    let server = c.server;
    let concerns = server.config.delegations && attrs::concern_delegations(args.attr_request);
    let mut listed = Vec::new();
    let asks = concerns && server.state.delegates_for_writing();
    let body = c.reply.mark();
    list(c, &args, &HashMap::new(), asks.then_some(&mut listed))?;
    listed.retain(|file| server.state.write_delegated(*file));
    let mut held = HashMap::new();
    for file in listed {
        match c.ask_holder(file) {
            Ok(None) => {}
            Ok(Some(attr)) => drop(held.insert(file, Some(attr))),
            Err(_) if args.attr_request.contains(fattr4::RDATTR_ERROR) && !c.waits => {
                held.insert(file, None);
            }
            Err(failure) => return Err(failure),
        }
    }
    if held.is_empty() {
        return Ok(());
    }
    c.reply.rollback(body);
    list(c, &args, &held, None)
}

/// Lists a directory. `held`: attributes of files that the server does not know itself, `None` where they are not known yet;
/// `listed`: gets the files.
fn list(
    c: &mut Compound<'_>,
    args: &ReaddirArgs,
    held: &HashMap<FileId, Option<Attr>>,
    mut listed: Option<&mut Vec<FileId>>,
) -> OpResult {
    /// End of the list and `eof`.
    const TAIL: usize = 8;
    let dir = c.file()?;
    let (fs, node, attr) = c.look(dir)?;
    if attr.kind != Kind::Directory {
        return Err(Nfsstat4::NOTDIR.into());
    }
    attrs::check_readable(args.attr_request, c.minor)?;
    let verifier = fs.cookie_verifier(node)?.to_be_bytes();
    match args.cookie {
        0 => {}
        1 | 2 if !is_broken(Mutant::ReservedCookies) => return Err(Nfsstat4::BAD_COOKIE.into()),
        _ if args.cookieverf != verifier => return Err(Nfsstat4::NOT_SAME.into()),
        _ => {}
    }
    let most = if is_broken(Mutant::PageOverflows) { usize::MAX } else { args.maxcount as usize };
    let max = most.min(c.room());
    let (server, minor) = (c.server, c.minor);
    let view = View::new(server, minor, dir.export, args.attr_request);
    let body = c.reply.mark();
    let encoder = &mut c.reply.encoder;
    encoder.put(&verifier);
    let (mut entries, mut name_bytes) = (0, 0);
    let mut failure = None;
    let want_attr = !args.attr_request.is_empty();
    let end = fs.read_dir(c.who, node, args.cookie, want_attr, c.now.wall, &mut |entry| {
        let at = encoder.mark();
        encoder.put(&true);
        encoder.put(&entry.cookie);
        encoder.opaque(entry.name);
        name_bytes += 8 + 4 + entry.name.len().div_ceil(4) * 4;
        let file = server.exports.cross(dir.export, entry.node);
        if file.export == dir.export {
            let shown = match held.get(&file) {
                Some(held) => held.as_ref().ok_or(Some(Nfsstat4::DELAY)),
                None => entry.attr.as_ref().ok_or(None),
            };
            match shown {
                Ok(attr) => view.put(encoder, file, attr),
                Err(status) => put_no_attributes(encoder, status),
            }
        } else {
            // The root of an export: its own attributes (RFC 8881 §5.8.2.23).
            let root = server.exports.file(file).and_then(|(fs, node)| fs.attr(node));
            match root {
                Ok(attr) => {
                    View::new(server, minor, file.export, args.attr_request).put(encoder, file, &attr);
                }
                Err(error) if args.attr_request.contains(fattr4::RDATTR_ERROR) => {
                    put_no_attributes(encoder, Some(Failure::from(error).status));
                }
                Err(error) => {
                    failure = Some(Failure::from(error));
                    return false;
                }
            }
        }
        let full = encoder.len_since(body) + TAIL > max;
        // `dircount` is a hint; 0 says nothing.
        let enough = entries > 0 && args.dircount > 0 && name_bytes > args.dircount as usize;
        if full || enough {
            encoder.rollback(at);
            return false;
        }
        entries += 1;
        if let Some(listed) = &mut listed {
            listed.push(file);
        }
        true
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if entries == 0 && !end || encoder.len_since(body) + TAIL > args.maxcount as usize {
        let too_small = (args.maxcount as usize) <= max;
        return Err(if too_small { Nfsstat4::TOOSMALL } else { c.limit.status }.into());
    }
    encoder.put(&false);
    encoder.put(&end);
    Ok(())
}

/// No attributes, or why there are none.
fn put_no_attributes(encoder: &mut Encoder, why: Option<Nfsstat4>) {
    let mut error = Encoder::new();
    why.iter().for_each(|status| error.put(status));
    let attrmask = why.map_or(Bitmap4::EMPTY, |_| Bitmap4::of(&[fattr4::RDATTR_ERROR]));
    encoder.put(&Fattr4 { attrmask, attr_vals: error.buffer().into() });
}

/// File system and node of a directory that is about to be changed.
fn directory_for_change<'r>(c: &Compound<'r>, dir: FileId) -> Result<(&'r FileSystem, Node), Failure> {
    let (_, _, attr) = c.look(dir)?;
    if attr.kind != Kind::Directory {
        return Err(Nfsstat4::NOTDIR.into());
    }
    c.for_change(dir)
}
