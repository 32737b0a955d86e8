//! LOOKUP, and all that makes, moves and removes names.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v3::{
    CreateArgs, CreateHow, CreateOk, Createverf3, DirOpArgs, LinkArgs, LinkWcc, LookupArgs, LookupOk,
    MkdirArgs, MknodArgs, MknodData, Nfsstat3, RemoveArgs, RemoveOk, RenameArgs, RenameWcc, Sattr3,
    SymlinkArgs, WccData,
};

use super::convert::{fattr, no_directory, set_attr, wcc};
use crate::call::Call;
use crate::fs::{Acl, Attr, Kind, NewFile, RemoveKind, SetAttr};
use crate::handle::FileId;
use crate::stateless::is_dot;

pub(super) fn lookup(call: &mut Call<'_>, args: LookupArgs<'_>) -> Result<(), Nfsstat3> {
    let dir = call.object(args.what.dir.0)?;
    let (id, attr) = call.server.exports.lookup(call.who, dir, args.what.name.0)?;
    let dir_attributes = call.attr(dir).ok().map(|attr| fattr(dir.export, &attr));
    let handle = call.handle(id);
    let obj_attributes = call.post_op(id, &attr);
    call.ok(&LookupOk { object: handle[..].into(), obj_attributes, dir_attributes })
}

pub(super) fn create(call: &mut Call<'_>, args: CreateArgs<'_>) -> Result<(), Nfsstat3> {
    let dir = call.object(args.where_.dir.0)?;
    let name = args.where_.name.0;
    match args.how {
        CreateHow::Guarded(sattr) => make(call, dir, name, NewFile::Regular, &set_attr(&sattr)?, None),
        CreateHow::Unchecked(sattr) => {
            let set = set_attr(&sattr)?;
            match make(call, dir, name, NewFile::Regular, &set, None) {
                Err(Nfsstat3::EXIST) => {
                    let empty = SetAttr { size: Some(0), ..set.clone() };
                    let set = if is_broken(Mutant::UncheckedTruncates) { empty } else { set };
                    let attr = call.reuse(dir, name, &set)?;
                    existing_ok(call, dir, &attr)
                }
                result => result,
            }
        }
        CreateHow::Exclusive(verifier) => {
            // SETATTR is to follow; until then only the owner has access.
            let set = SetAttr { acl: Some(Acl::of_mode(0, false).into()), ..SetAttr::default() };
            match make(call, dir, name, NewFile::Regular, &set, Some(verifier)) {
                Err(Nfsstat3::EXIST) => repeated(call, dir, name, verifier),
                result => result,
            }
        }
    }
}

pub(super) fn mkdir(call: &mut Call<'_>, args: MkdirArgs<'_>) -> Result<(), Nfsstat3> {
    make_at(call, args.where_, NewFile::Directory, &args.attributes)
}

pub(super) fn symlink(call: &mut Call<'_>, args: SymlinkArgs<'_>) -> Result<(), Nfsstat3> {
    let link = args.symlink;
    make_at(call, args.where_, NewFile::Symlink(link.symlink_data.0), &link.symlink_attributes)
}

pub(super) fn mknod(call: &mut Call<'_>, args: MknodArgs<'_>) -> Result<(), Nfsstat3> {
    let (kind, device, sattr) = match args.what {
        MknodData::Blk(data) => (Kind::Block, (data.spec.major, data.spec.minor), data.dev_attributes),
        MknodData::Chr(data) => (Kind::Character, (data.spec.major, data.spec.minor), data.dev_attributes),
        MknodData::Sock(sattr) => (Kind::Socket, (0, 0), sattr),
        MknodData::Fifo(sattr) => (Kind::Fifo, (0, 0), sattr),
        MknodData::Other(_) => {
            call.object(args.where_.dir.0)?;
            return Err(Nfsstat3::BADTYPE);
        }
    };
    make_at(call, args.where_, NewFile::Special(kind, device), &sattr)
}

fn make_at(
    call: &mut Call<'_>,
    place: DirOpArgs<'_>,
    new: NewFile<'_>,
    sattr: &Sattr3,
) -> Result<(), Nfsstat3> {
    let dir = call.object(place.dir.0)?;
    make(call, dir, place.name.0, new, &set_attr(sattr)?, None)
}

/// Makes a file and writes the result.
fn make(
    call: &mut Call<'_>,
    dir: FileId,
    name: &[u8],
    new: NewFile<'_>,
    set: &SetAttr,
    verifier: Option<Createverf3>,
) -> Result<(), Nfsstat3> {
    let made = call.create(dir, name, new, set, verifier.map(u64::from_be_bytes))?;
    made_ok(call, dir, &made.attr, wcc(dir.export, &made.dir))
}

/// CREATE EXCLUSIVE of a file that exists: a success if this very request made it.
fn repeated(call: &mut Call<'_>, dir: FileId, name: &[u8], verifier: Createverf3) -> Result<(), Nfsstat3> {
    let (fs, node) = call.server.exports.file(dir)?;
    let (file, attr) = fs.lookup(call.who, node, name)?;
    if fs.verifier(file)? != Some(u64::from_be_bytes(verifier)) {
        return Err(Nfsstat3::EXIST);
    }
    existing_ok(call, dir, &attr)
}

fn existing_ok(call: &mut Call<'_>, dir: FileId, attr: &Attr) -> Result<(), Nfsstat3> {
    let after = Some(fattr(dir.export, &call.attr(dir)?));
    made_ok(call, dir, attr, WccData { before: None, after })
}

fn made_ok(call: &mut Call<'_>, dir: FileId, attr: &Attr, dir_wcc: WccData) -> Result<(), Nfsstat3> {
    let handle = call.handle(FileId::new(dir.export, attr.node));
    let obj_attributes = Some(fattr(dir.export, attr));
    call.ok(&CreateOk { obj: Some(handle[..].into()), obj_attributes, dir_wcc })
}

pub(super) fn remove(call: &mut Call<'_>, args: RemoveArgs<'_>) -> Result<(), Nfsstat3> {
    if is_dot(args.object.name.0) {
        call.object(args.object.dir.0)?;
        return Err(Nfsstat3::ISDIR);
    }
    take_away(call, args.object, RemoveKind::File)
}

pub(super) fn rmdir(call: &mut Call<'_>, args: RemoveArgs<'_>) -> Result<(), Nfsstat3> {
    // RFC 1813 §3.3.13: these two.
    let status = match args.object.name.0 {
        b"." => Nfsstat3::INVAL,
        b".." => Nfsstat3::EXIST,
        _ => return take_away(call, args.object, RemoveKind::Directory),
    };
    call.object(args.object.dir.0)?;
    Err(status)
}

fn take_away(call: &mut Call<'_>, what: DirOpArgs<'_>, kind: RemoveKind) -> Result<(), Nfsstat3> {
    let dir = call.object(what.dir.0)?;
    let removed = call.remove(dir, what.name.0, kind)?;
    call.ok(&RemoveOk { dir_wcc: wcc(dir.export, &removed.dir) })
}

pub(super) fn rename(call: &mut Call<'_>, args: RenameArgs<'_>) -> Result<(), Nfsstat3> {
    let from = call.object(args.from.dir.0)?;
    let to = call.object(args.to.dir.0)?;
    let renamed = call.rename((from, args.from.name.0), (to, args.to.name.0))?;
    call.ok(&RenameWcc {
        fromdir_wcc: wcc(from.export, &renamed.from),
        todir_wcc: wcc(to.export, &renamed.to),
    })
}

pub(super) fn link(call: &mut Call<'_>, args: LinkArgs<'_>) -> Result<(), Nfsstat3> {
    let file = call.object(args.file.0)?;
    let dir = call.object(args.link.dir.0)?;
    let linked = call.link(file, dir, args.link.name.0).map_err(|error| no_directory(error.into()))?;
    call.ok(&LinkWcc {
        file_attributes: Some(fattr(file.export, &linked.attr)),
        linkdir_wcc: wcc(dir.export, &linked.dir),
    })
}
