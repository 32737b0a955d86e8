//! LOOKUP, READDIR, and all that makes, moves and removes names.

use benchmaster_nfs_proto::v2::{
    CreateArgs, DirOpArgs, DirOpOk, Entry, LinkArgs, MAX_DATA, Nfsstat2, ReaddirArgs, RenameArgs,
    SymlinkArgs, UNSET,
};

use super::convert::{S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFSOCK, Stop, fattr, fileid, set_attr};
use crate::call::Call;
use crate::disk::Access;
use crate::fs::{Attr, Kind, NewFile, RemoveKind, SetAttr};
use crate::handle::FileId;
use crate::state::Conflict;
use crate::stateless::is_dot;

pub(super) fn lookup(call: &mut Call<'_>, args: DirOpArgs<'_>) -> Result<(), Stop> {
    let dir = call.resolve(&args.dir)?;
    let (id, attr) = call.server.exports.lookup(call.who, dir, args.name.0)?;
    // There is no result without attributes.
    call.conflict(id, Conflict::Read)?;
    found(call, id, &attr)
}

fn found(call: &mut Call<'_>, id: FileId, attr: &Attr) -> Result<(), Stop> {
    let file = call.handle(id);
    call.ok2(&DirOpOk { file, attributes: fattr(id.export, attr) })
}

pub(super) fn create(call: &mut Call<'_>, args: CreateArgs<'_>) -> Result<(), Stop> {
    let dir = call.resolve(&args.where_.dir)?;
    let mut set = set_attr(&args.attributes);
    let (mode, size) = (args.attributes.mode, args.attributes.size);
    let new = match mode & S_IFMT {
        // There is no MKNOD: by custom the size is the device number, and a FIFO a character device without one.
        S_IFCHR if size == UNSET => NewFile::Special(Kind::Fifo, (0, 0)),
        S_IFCHR => NewFile::Special(Kind::Character, (size >> 8, size & 0xff)),
        S_IFBLK => NewFile::Special(Kind::Block, (size >> 8, size & 0xff)),
        S_IFIFO => NewFile::Special(Kind::Fifo, (0, 0)),
        S_IFSOCK => NewFile::Special(Kind::Socket, (0, 0)),
        _ => NewFile::Regular,
    };
    if mode != UNSET && new != NewFile::Regular {
        set.size = None;
        return make(call, dir, args.where_.name.0, new, &set);
    }
    match make(call, dir, args.where_.name.0, NewFile::Regular, &set) {
        Err(Stop::Status(Nfsstat2::EXIST)) => {
            let attr = call.reuse(dir, args.where_.name.0, &set)?;
            found(call, FileId::new(dir.export, attr.node), &attr)
        }
        result => result,
    }
}

pub(super) fn mkdir(call: &mut Call<'_>, args: CreateArgs<'_>) -> Result<(), Stop> {
    let dir = call.resolve(&args.where_.dir)?;
    let set = SetAttr { size: None, ..set_attr(&args.attributes) };
    make(call, dir, args.where_.name.0, NewFile::Directory, &set)
}

pub(super) fn symlink(call: &mut Call<'_>, args: SymlinkArgs<'_>) -> Result<(), Stop> {
    let dir = call.resolve(&args.from.dir)?;
    let set = SetAttr { size: None, ..set_attr(&args.attributes) };
    call.create(dir, args.from.name.0, NewFile::Symlink(args.to.0), &set, None)?;
    call.on_disk(|| Access::Names { directory: dir });
    call.ok2(&())
}

fn make(call: &mut Call<'_>, dir: FileId, name: &[u8], new: NewFile<'_>, set: &SetAttr) -> Result<(), Stop> {
    let attr = call.create(dir, name, new, set, None)?.attr;
    call.on_disk(|| Access::Names { directory: dir });
    found(call, FileId::new(dir.export, attr.node), &attr)
}

pub(super) fn remove(call: &mut Call<'_>, args: DirOpArgs<'_>) -> Result<(), Stop> {
    take_away(call, args, RemoveKind::File)
}

pub(super) fn rmdir(call: &mut Call<'_>, args: DirOpArgs<'_>) -> Result<(), Stop> {
    take_away(call, args, RemoveKind::Directory)
}

fn take_away(call: &mut Call<'_>, args: DirOpArgs<'_>, kind: RemoveKind) -> Result<(), Stop> {
    let dir = call.resolve(&args.dir)?;
    if is_dot(args.name.0) {
        return Err(Nfsstat2::ISDIR.into());
    }
    call.remove(dir, args.name.0, kind)?;
    call.on_disk(|| Access::Names { directory: dir });
    call.ok2(&())
}

pub(super) fn rename(call: &mut Call<'_>, args: RenameArgs<'_>) -> Result<(), Stop> {
    let (from, to) = (call.resolve(&args.from.dir)?, call.resolve(&args.to.dir)?);
    call.rename((from, args.from.name.0), (to, args.to.name.0))?;
    call.on_disk(|| Access::Names { directory: from });
    if to != from {
        call.on_disk(|| Access::Names { directory: to });
    }
    call.ok2(&())
}

pub(super) fn link(call: &mut Call<'_>, args: LinkArgs<'_>) -> Result<(), Stop> {
    let (file, dir) = (call.resolve(&args.from)?, call.resolve(&args.to.dir)?);
    call.link(file, dir, args.to.name.0)?;
    call.on_disk(|| Access::Attributes { file });
    call.on_disk(|| Access::Names { directory: dir });
    call.ok2(&())
}

pub(super) fn readdir(call: &mut Call<'_>, args: ReaddirArgs) -> Result<(), Stop> {
    let dir = call.resolve(&args.dir)?;
    let exports = &call.server.exports;
    let (fs, node) = exports.file(dir)?;
    let parent = exports.parent(dir)?.unwrap_or(dir);
    call.ok2(&())?;
    // The count is of entries alone; their last FALSE and `eof` come on top.
    let mut room = args.count.min(MAX_DATA) as usize;
    let (mut any, mut too_far) = (false, false);
    let e = &mut call.reply.encoder;
    let mut put = |ino: u64, name: &[u8], cookie: u64| {
        let len = 4 + 4 + 4 + name.len().next_multiple_of(4) + 4;
        let Ok(cookie) = u32::try_from(cookie) else {
            too_far = true;
            return false;
        };
        if len > room {
            return false;
        }
        room -= len;
        any = true;
        e.put(&true);
        e.put(&Entry { fileid: fileid(ino), name: name.into(), cookie });
        true
    };
    let dots = [(1, &b"."[..], dir.ino), (2, b"..", parent.ino)];
    let mut left = dots.iter().filter(|(cookie, ..)| *cookie > u64::from(args.cookie));
    let eof = left.all(|(cookie, name, ino)| put(*ino, name, *cookie)) && {
        let after = if args.cookie <= 2 { 0 } else { args.cookie.into() };
        fs.read_dir(call.who, node, after, false, call.now.wall, &mut |entry| {
            put(entry.node.ino, entry.name, entry.cookie)
        })?
    };
    // Neither too little room nor a cookie of more than 32 bits has a status of its own.
    if !any && !eof {
        return Err(if too_far { Nfsstat2::FBIG } else { Nfsstat2::IO }.into());
    }
    let e = &mut call.reply.encoder;
    e.put(&false);
    e.put(&eof);
    Ok(())
}
