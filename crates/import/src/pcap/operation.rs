//! What calls do, whatever the version: places, and operations on them.

use std::rc::Rc;

use benchmaster_nfs_proto::xdr::{Bulk, Decoder};
use benchmaster_nfs_proto::{mount as mountd, v3 as nfs3, v4 as nfs4};

/// A file as a call names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// The root of version 4.
    Root,
    Handle(Rc<[u8]>),
    Child(Rc<Place>, Rc<[u8]>),
    Parent(Rc<Place>),
}

/// Attributes that tell what a file was in the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) directory: bool,
    pub(super) size: u64,
}

/// How an operation ended: 0, or the number of an error.
pub(super) type Status = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    /// A filehandle belongs to a place.
    Known(Place, Rc<[u8]>),
    Stat(Place, Status, Option<Seen>),
    Access(Place, Status),
    Open {
        place: Place,
        status: Status,
        writes: bool,
        creates: bool,
        exclusive: bool,
        truncates: bool,
    },
    Close(Place),
    Read {
        place: Place,
        status: Status,
        offset: u64,
        length: u32,
        moved: u32,
    },
    Write {
        place: Place,
        status: Status,
        offset: u64,
        length: u32,
        moved: u32,
    },
    Commit(Place, Status),
    Truncate(Place, Status, u64),
    Chmod(Place, Status, u32),
    SetTimes(Place, Status),
    Readlink(Place, Status, Rc<[u8]>),
    Symlink(Place, Status, Rc<[u8]>),
    Mkdir(Place, Status),
    /// `None`: of version 4, which does not say whether it is a directory.
    Remove {
        place: Place,
        status: Status,
        directory: Option<bool>,
    },
    Rename {
        from: Place,
        to: Place,
        status: Status,
    },
    Link {
        from: Place,
        to: Place,
        status: Status,
    },
    Readdir(Place, Status),
    Lock {
        place: Place,
        offset: u64,
        length: u64,
        exclusive: bool,
    },
    Unlock {
        place: Place,
        offset: u64,
        length: u64,
    },
    /// None on a file, or one that has no counterpart.
    Other(&'static str),
}

fn handle(bytes: &[u8]) -> Place {
    Place::Handle(bytes.into())
}

fn child(directory: Place, name: &[u8]) -> Place {
    Place::Child(Rc::new(directory), name.into())
}

fn named(what: &nfs3::DirOpArgs<'_>) -> Place {
    child(handle(what.dir.0), what.name.0)
}

fn length(data: &Bulk<'_>) -> u32 {
    u32::try_from(data.len()).unwrap_or(u32::MAX)
}

fn seen3(attributes: Option<nfs3::Fattr3>) -> Option<Seen> {
    attributes.map(|it| Seen { directory: it.ftype == nfs3::Ftype3::Dir, size: it.size })
}

/// MOUNT, which gives the first handle.
pub(super) fn mount(
    procedure: u32,
    call: &mut Decoder<'_>,
    reply: &mut Decoder<'_>,
) -> Option<Vec<Operation>> {
    if mountd::Proc(procedure) != mountd::Proc::MNT {
        return Some(vec![Operation::Other("MOUNT")]);
    }
    let path: benchmaster_nfs_proto::xdr::Opaque<'_, 1024> = call.get().ok()?;
    let mut operations = vec![Operation::Other("MOUNT")];
    if let mountd::MountRes3::Ok(ok) = reply.get().ok()? {
        let names = path.0.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        operations.push(Operation::Known(names.fold(Place::Root, child), ok.fhandle.0.into()));
    }
    Some(operations)
}

/// A call of version 3.
pub(super) fn v3(
    procedure: nfs3::Proc3,
    call: &mut Decoder<'_>,
    reply: &mut Decoder<'_>,
) -> Option<Vec<Operation>> {
    use nfs3::Proc3;
    /// Arguments, result and status.
    macro_rules! decoded {
        ($args:ty, $res:ty) => {{
            let (args, res): ($args, $res) = (call.get().ok()?, reply.get().ok()?);
            let status = res.status().0;
            (args, res.ok().ok(), status)
        }};
    }
    let created = |place: &Place, made: Option<nfs3::CreateOk<'_>>| {
        made.and_then(|made| made.obj).map(|object| Operation::Known(place.clone(), object.0.into()))
    };
    let mut all = Vec::new();
    match procedure {
        Proc3::GETATTR => {
            let (args, ok, status) = decoded!(nfs3::GetattrArgs<'_>, nfs3::GetattrRes);
            all.push(Operation::Stat(handle(args.object.0), status, seen3(ok.map(|ok| ok.obj_attributes))));
        }
        Proc3::SETATTR => {
            let (args, _, status) = decoded!(nfs3::SetattrArgs<'_>, nfs3::SetattrRes);
            let (place, new) = (handle(args.object.0), args.new_attributes);
            let times = [new.atime, new.mtime].iter().any(|time| *time != nfs3::SetTime::DontChange);
            all.extend(new.size.map(|size| Operation::Truncate(place.clone(), status, size)));
            all.extend(new.mode.map(|mode| Operation::Chmod(place.clone(), status, mode)));
            all.extend(times.then(|| Operation::SetTimes(place.clone(), status)));
            if all.is_empty() {
                all.push(Operation::Other("SETATTR of the owner"));
            }
        }
        Proc3::LOOKUP => {
            let (args, ok, status) = decoded!(nfs3::LookupArgs<'_>, nfs3::LookupRes<'_>);
            let place = named(&args.what);
            all.extend(ok.map(|ok| Operation::Known(place.clone(), ok.object.0.into())));
            all.push(Operation::Stat(place, status, seen3(ok.and_then(|ok| ok.obj_attributes))));
        }
        Proc3::ACCESS => {
            let (args, _, status) = decoded!(nfs3::AccessArgs<'_>, nfs3::AccessRes);
            all.push(Operation::Access(handle(args.object.0), status));
        }
        Proc3::READLINK => {
            let (args, ok, status) = decoded!(nfs3::ReadlinkArgs<'_>, nfs3::ReadlinkRes<'_>);
            let target = ok.map_or_else(|| (&[][..]).into(), |ok| ok.data.0.into());
            all.push(Operation::Readlink(handle(args.symlink.0), status, target));
        }
        Proc3::READ => {
            let (args, ok, status) = decoded!(nfs3::ReadArgs<'_>, nfs3::ReadRes<'_>);
            let moved = ok.map_or(0, |ok| length(&ok.data));
            let place = handle(args.file.0);
            all.push(Operation::Read { place, status, offset: args.offset, length: args.count, moved });
        }
        Proc3::WRITE => {
            let (args, ok, status) = decoded!(nfs3::WriteArgs<'_>, nfs3::WriteRes);
            let moved = ok.map_or(0, |ok| ok.count);
            let (place, length) = (handle(args.file.0), length(&args.data));
            all.push(Operation::Write { place, status, offset: args.offset, length, moved });
        }
        Proc3::CREATE => {
            let (args, ok, status) = decoded!(nfs3::CreateArgs<'_>, nfs3::CreateRes<'_>);
            let place = named(&args.where_);
            let (exclusive, truncates) = match args.how {
                nfs3::CreateHow::Unchecked(attributes) => (false, attributes.size == Some(0)),
                nfs3::CreateHow::Guarded(_) | nfs3::CreateHow::Exclusive(_) => (true, false),
            };
            let known = created(&place, ok);
            all.push(Operation::Open { place, status, writes: true, creates: true, exclusive, truncates });
            all.extend(known);
        }
        Proc3::MKDIR => {
            let (args, ok, status) = decoded!(nfs3::MkdirArgs<'_>, nfs3::CreateRes<'_>);
            let place = named(&args.where_);
            let known = created(&place, ok);
            all.push(Operation::Mkdir(place, status));
            all.extend(known);
        }
        Proc3::SYMLINK => {
            let (args, ok, status) = decoded!(nfs3::SymlinkArgs<'_>, nfs3::CreateRes<'_>);
            let place = named(&args.where_);
            let known = created(&place, ok);
            all.push(Operation::Symlink(place, status, args.symlink.symlink_data.0.into()));
            all.extend(known);
        }
        Proc3::REMOVE | Proc3::RMDIR => {
            let (args, _, status) = decoded!(nfs3::RemoveArgs<'_>, nfs3::RemoveRes);
            let directory = Some(procedure == Proc3::RMDIR);
            all.push(Operation::Remove { place: named(&args.object), status, directory });
        }
        Proc3::RENAME => {
            let (args, _, status) = decoded!(nfs3::RenameArgs<'_>, nfs3::RenameRes);
            all.push(Operation::Rename { from: named(&args.from), to: named(&args.to), status });
        }
        Proc3::LINK => {
            let (args, _, status) = decoded!(nfs3::LinkArgs<'_>, nfs3::LinkRes);
            all.push(Operation::Link { from: handle(args.file.0), to: named(&args.link), status });
        }
        Proc3::READDIR => {
            let (args, _, status) = decoded!(nfs3::ReaddirArgs<'_>, nfs3::ReaddirRes<'_>);
            all.push(listed(handle(args.dir.0), status, args.cookie));
        }
        Proc3::READDIRPLUS => {
            let (args, _, status) = decoded!(nfs3::ReaddirplusArgs<'_>, nfs3::ReaddirplusRes<'_>);
            all.push(listed(handle(args.dir.0), status, args.cookie));
        }
        Proc3::COMMIT => {
            let (args, _, status) = decoded!(nfs3::CommitArgs<'_>, nfs3::CommitRes);
            all.push(Operation::Commit(handle(args.file.0), status));
        }
        Proc3::FSSTAT | Proc3::FSINFO | Proc3::PATHCONF => {
            all.push(Operation::Other("FSSTAT, FSINFO, PATHCONF"))
        }
        _ => all.push(Operation::Other("MKNOD")),
    }
    Some(all)
}

/// The first call lists a directory, those after it go on.
fn listed(place: Place, status: Status, cookie: u64) -> Operation {
    if cookie == 0 { Operation::Readdir(place, status) } else { Operation::Other("READDIR that goes on") }
}

fn attributes4<'a>(attributes: &nfs4::Fattr4<'a>) -> nfs4::Attributes<'a> {
    nfs4::Attributes::decode(attributes).unwrap_or_default()
}

fn seen4(attributes: &nfs4::Fattr4<'_>) -> Option<Seen> {
    let found = attributes4(attributes);
    let directory = found.file_type? == nfs4::Ftype4::Dir;
    Some(Seen { directory, size: found.size? })
}

/// A COMPOUND: filehandles are followed from operation to operation.
pub(super) fn v4(call: &mut Decoder<'_>, reply: &mut Decoder<'_>) -> Option<Vec<Operation>> {
    use nfs4::{Argop, Resop};
    let call: nfs4::CompoundArgs<'_> = call.get().ok()?;
    let mut reply: nfs4::CompoundRes<'_> = reply.get().ok()?;
    let mut all = Vec::new();
    let (mut current, mut saved) = (Place::Root, Place::Root);
    // What only tells more about another operation.
    let mut beside = Vec::new();
    let mut looked_up = None;
    let mut seen = None;
    for op in call.ops {
        let Some(result) = reply.results.take::<Resop<'_>>() else { break };
        let (op, result) = (op.ok()?, result.ok()?);
        let status = result.status().0;
        let good = status == 0;
        match (op, result) {
            (Argop::Putrootfh | Argop::Putpubfh, _) => current = Place::Root,
            (Argop::Putfh(args), _) => current = handle(args.object.0),
            (Argop::Savefh, _) => saved = current.clone(),
            (Argop::Restorefh, _) => current = saved.clone(),
            (Argop::Lookup(args), _) => {
                current = child(current, args.objname.0);
                looked_up = Some((current.clone(), status));
            }
            (Argop::Lookupp, _) => {
                current = Place::Parent(Rc::new(current));
                looked_up = Some((current.clone(), status));
            }
            (Argop::Getfh, Resop::Getfh(Ok(ok))) => {
                all.push(Operation::Known(current.clone(), ok.object.0.into()));
            }
            (Argop::Getattr(_), Resop::Getattr(result)) => {
                seen = result.ok().and_then(|ok| seen4(&ok.obj_attributes));
                beside.push(Operation::Stat(current.clone(), status, seen));
            }
            (Argop::Access(_), _) => beside.push(Operation::Access(current.clone(), status)),
            (Argop::Open(args), _) => {
                let place = match args.claim {
                    nfs4::OpenClaim4::Null(name) | nfs4::OpenClaim4::DelegatePrev(name) => {
                        child(current, name.0)
                    }
                    nfs4::OpenClaim4::DelegateCur(claim) => child(current, claim.file.0),
                    _ => current,
                };
                current = place.clone();
                let (creates, exclusive, truncates) = match &args.openhow {
                    nfs4::Openflag4::NoCreate => (false, false, false),
                    nfs4::Openflag4::Create(nfs4::Createhow4::Unchecked(attributes)) => {
                        (true, false, attributes4(attributes).size == Some(0))
                    }
                    nfs4::Openflag4::Create(_) => (true, true, false),
                };
                let writes = args.share_access & nfs4::SHARE_ACCESS_WRITE != 0;
                all.push(Operation::Open { place, status, writes, creates, exclusive, truncates });
            }
            (Argop::Close(_), _) if good => all.push(Operation::Close(current.clone())),
            (Argop::Read(args), Resop::Read(result)) => {
                let moved = result.map_or(0, |ok| length(&ok.data));
                let (place, offset) = (current.clone(), args.offset);
                all.push(Operation::Read { place, status, offset, length: args.count, moved });
            }
            (Argop::Write(args), Resop::Write(result)) => {
                let moved = result.map_or(0, |ok| ok.count);
                let (place, length) = (current.clone(), length(&args.data));
                all.push(Operation::Write { place, status, offset: args.offset, length, moved });
            }
            (Argop::Commit(_), _) => all.push(Operation::Commit(current.clone(), status)),
            (Argop::Setattr(args), _) => {
                let new = attributes4(&args.obj_attributes);
                let before = all.len();
                all.extend(new.size.map(|size| Operation::Truncate(current.clone(), status, size)));
                all.extend(new.mode.map(|mode| Operation::Chmod(current.clone(), status, mode)));
                let times = new.time_access_set.is_some() || new.time_modify_set.is_some();
                all.extend(times.then(|| Operation::SetTimes(current.clone(), status)));
                if all.len() == before {
                    all.push(Operation::Other("SETATTR of the owner"));
                }
            }
            (Argop::Readlink, Resop::Readlink(result)) => {
                let target = result.map_or_else(|_| (&[][..]).into(), |ok| ok.link.0.into());
                all.push(Operation::Readlink(current.clone(), status, target));
            }
            (Argop::Create(args), _) => {
                current = child(current, args.objname.0);
                all.push(match args.objtype {
                    nfs4::Createtype4::Dir => Operation::Mkdir(current.clone(), status),
                    nfs4::Createtype4::Lnk(target) => {
                        Operation::Symlink(current.clone(), status, target.0.into())
                    }
                    _ => Operation::Other("MKNOD"),
                });
            }
            (Argop::Remove(args), _) => {
                let place = child(current.clone(), args.target.0);
                all.push(Operation::Remove { place, status, directory: None });
            }
            (Argop::Rename(args), _) => {
                let (from, to) =
                    (child(saved.clone(), args.oldname.0), child(current.clone(), args.newname.0));
                all.push(Operation::Rename { from, to, status });
            }
            (Argop::Link(args), _) => {
                let to = child(current.clone(), args.newname.0);
                all.push(Operation::Link { from: saved.clone(), to, status });
            }
            (Argop::Readdir(args), _) => all.push(listed(current.clone(), status, args.cookie)),
            (Argop::Lock(args), _) if good => {
                let exclusive = matches!(args.locktype, nfs4::LockType4::Write | nfs4::LockType4::WriteW);
                let (place, offset, length) = (current.clone(), args.offset, args.length);
                all.push(Operation::Lock { place, offset, length, exclusive });
            }
            (Argop::Locku(args), _) if good => {
                let (place, offset, length) = (current.clone(), args.offset, args.length);
                all.push(Operation::Unlock { place, offset, length });
            }
            _ => {}
        }
        if !good {
            break;
        }
    }
    let is_news = |operation: &Operation| !matches!(operation, Operation::Known(..));
    if !all.iter().any(is_news) {
        match looked_up {
            Some((place, status)) => all.push(Operation::Stat(place, status, seen)),
            None => all.extend(beside),
        }
    }
    if all.is_empty() {
        all.push(Operation::Other("operations on sessions, leases and state"));
    }
    Some(all)
}
