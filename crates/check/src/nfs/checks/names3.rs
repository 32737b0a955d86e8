//! Names, attributes and listings of version 3.

use std::collections::HashSet;

use benchmaster_nfs_proto::v3::{self, Nfsstat3 as S, Sattr3};

use super::Kind;
use super::attributes4::stranger;
use crate::nfs::hold;
use crate::nfs::stateless::{Answer, Client, Rmdir3, good};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// What a server may say to a name that it does not take.
pub(super) const BAD_NAME: &[S] = &[S::INVAL, S::ACCES, S::EXIST, S::NOTEMPTY, S::ISDIR];
pub(super) const THEN: v3::Nfstime3 = v3::Nfstime3 { seconds: 1_234_567_890, nseconds: 0 };

pub(super) fn place<'a>(dir: &'a [u8], name: &'a str) -> v3::DirOpArgs<'a> {
    v3::DirOpArgs { dir: dir.into(), name: name.into() }
}

pub(super) fn mkdir<'a>(dir: &'a [u8], name: &'a str) -> v3::MkdirArgs<'a> {
    v3::MkdirArgs { where_: place(dir, name), attributes: Sattr3 { mode: Some(0o755), ..Sattr3::NONE } }
}

pub(super) fn remove<'a>(dir: &'a [u8], name: &'a str) -> v3::RemoveArgs<'a> {
    v3::RemoveArgs { object: place(dir, name) }
}

pub(super) fn rmdir<'a>(dir: &'a [u8], name: &'a str) -> Rmdir3<'a> {
    Rmdir3::of(remove(dir, name))
}

pub(super) fn rename<'a>(from: (&'a [u8], &'a str), to: (&'a [u8], &'a str)) -> v3::RenameArgs<'a> {
    v3::RenameArgs { from: place(from.0, from.1), to: place(to.0, to.1) }
}

pub(super) fn lookup<'a>(dir: &'a [u8], name: &'a str) -> v3::LookupArgs<'a> {
    v3::LookupArgs { what: place(dir, name) }
}

pub(super) fn getattr(fh: &[u8]) -> v3::GetattrArgs<'_> {
    v3::GetattrArgs { object: fh.into() }
}

pub(super) fn setattr(fh: &[u8], new_attributes: Sattr3) -> v3::SetattrArgs<'_> {
    v3::SetattrArgs { object: fh.into(), new_attributes, guard: None }
}

pub(super) fn create<'a>(dir: &'a [u8], name: &'a str, how: v3::CreateHow) -> v3::CreateArgs<'a> {
    v3::CreateArgs { where_: place(dir, name), how }
}

pub(super) fn mode(mode: u32) -> Sattr3 {
    Sattr3 { mode: Some(mode), ..Sattr3::NONE }
}

impl Client {
    /// Attributes of an object.
    pub(super) fn stat(&mut self, fh: &[u8]) -> Result<v3::Fattr3, Stop> {
        let answer = self.call(&getattr(fh))?;
        Ok(good!(answer).obj_attributes)
    }

    /// Whether a name is there.
    pub(super) fn has(&mut self, dir: &[u8], name: &str) -> Result<bool, Stop> {
        let answer = self.call(&lookup(dir, name))?;
        Ok(answer.get()?.status() == S::OK)
    }

    pub(super) fn symlink(&mut self, dir: &[u8], name: &str, text: &str) -> Result<Vec<u8>, Stop> {
        let symlink = v3::SymlinkData { symlink_attributes: Sattr3::NONE, symlink_data: text.into() };
        let answer = self.call(&v3::SymlinkArgs { where_: place(dir, name), symlink })?;
        if answer.get()?.status() == S::NOTSUPP {
            return Err(Stop::not_applicable("the file system has no symbolic links"));
        }
        good!(answer);
        self.lookup(dir, name)
    }

    pub(super) fn node(&mut self, dir: &[u8], name: &str, what: v3::MknodData) -> Result<Vec<u8>, Stop> {
        let answer = self.call(&v3::MknodArgs { where_: place(dir, name), what })?;
        if matches!(answer.get()?.status(), S::NOTSUPP | S::PERM | S::BADTYPE) {
            return Err(Stop::not_applicable(format!("the server makes no {what:?}")));
        }
        good!(answer);
        self.lookup(dir, name)
    }
}

impl Trial {
    /// A new object `x` in the directory of the check, with version 3.
    pub(super) fn object3(&mut self, kind: Kind) -> Result<Vec<u8>, Stop> {
        let dir = self.dir();
        let client = self.s()?;
        match kind {
            Kind::File => client.file(&dir, "x", b"content"),
            Kind::Dir => client.mkdir(&dir, "x"),
            Kind::Symlink => client.symlink(&dir, "x", "target"),
            Kind::Fifo => client.node(&dir, "x", v3::MknodData::Fifo(mode(0o644))),
        }
    }
}

/// What a server may also do: refuse the whole call as one that does not decode.
pub(super) fn or_garbage(tried: Tried) -> Tried {
    match tried {
        Err(Stop::Failed { came, .. }) if came.starts_with("GarbageArgs") => Ok(()),
        other => other,
    }
}

/// RENAME of `a` to `b`, where both are what is given.
pub(super) fn rename_onto(t: &mut Trial, from: Kind, to: Kind, allowed: &[S]) -> Tried {
    let dir = t.dir();
    let client = t.s()?;
    for (name, kind) in [("a", from), ("b", to)] {
        match kind {
            Kind::Dir => client.mkdir(&dir, name)?,
            _ => client.file(&dir, name, name.as_bytes())?,
        };
    }
    client.gives(&rename((&dir, "a"), (&dir, "b")), allowed)
}

/// SETATTR of a new file, whose attributes are then right.
pub(super) fn sets(t: &mut Trial, attributes: Sattr3, right: impl Fn(&v3::Fattr3) -> bool) -> Tried {
    let fh = t.object3(Kind::File)?;
    let client = t.s()?;
    let answer = client.call(&setattr(&fh, attributes))?;
    good!(answer);
    let stat = client.stat(&fh)?;
    hold(right(&stat), &answer.sent, || format!("then GETATTR gives {stat:?}"))
}

/// The attributes after an operation that failed or not, where there are any, are those of GETATTR.
pub(super) fn same_after(t: &mut Trial, sent: &str, fh: &[u8], after: v3::PostOpAttr) -> Tried {
    let stat = t.s()?.stat(fh)?;
    hold(after.is_none_or(|after| after == stat), sent, || {
        format!("attributes {after:?}; GETATTR says {stat:?}")
    })
}

/// Pages of READDIR; names with their cookies.
pub(super) fn pages(client: &mut Client, dir: &[u8], count: u32) -> Result<Vec<(u64, String)>, Stop> {
    let (mut cookie, mut cookieverf, mut all) = (0, [0; 8], Vec::new());
    for _ in 0..1000 {
        let answer = client.call(&v3::ReaddirArgs { dir: dir.into(), cookie, cookieverf, count })?;
        let page = good!(answer);
        let before = all.len();
        all.extend(
            page.entries.iter().map(|one| (one.cookie, String::from_utf8_lossy(one.name.0).into_owned())),
        );
        if page.eof {
            return Ok(all);
        }
        hold(all.len() > before, &answer.sent, || "no entries, and not the end".into())?;
        (cookie, cookieverf) = (all.last().map_or(0, |(cookie, _)| *cookie), page.cookieverf);
    }
    Err(Stop::failed("READDIR, page after page", "no end"))
}

/// A directory of many entries lists each once.
pub(super) fn lists_each_once(t: &mut Trial, count: u32) -> Tried {
    let dir = t.dir();
    let client = t.s()?;
    let names: HashSet<String> = (0..60).map(|n| format!("entry-{n:03}")).collect();
    for name in &names {
        client.mkdir(&dir, name)?;
    }
    let mut listed: Vec<String> = pages(client, &dir, count)?.into_iter().map(|(_, name)| name).collect();
    listed.retain(|name| name != "." && name != "..");
    let set: HashSet<String> = listed.iter().cloned().collect();
    hold(
        set == names && listed.len() == names.len(),
        &format!("READDIR of 60 entries, {count} bytes a page"),
        || format!("{} entries, {} different", listed.len(), set.len()),
    )
}

/// What a stranger may do to a new file.
pub(super) fn stranger_may(t: &mut Trial, bits: u32, asked: u32, right: u32) -> Tried {
    let fh = t.object3(Kind::File)?;
    let client = t.s()?;
    client.gives(&setattr(&fh, mode(bits)), &[S::OK])?;
    client.user = stranger(client.user);
    let answer = client.call(&v3::AccessArgs { object: (&fh[..]).into(), access: asked })?;
    let given = good!(answer).access;
    hold(given == right, &answer.sent, || format!("{given:#x}; {right:#x} is right"))
}

/// A longest name, by PATHCONF.
pub(super) fn longest(client: &mut Client, dir: &[u8]) -> Result<usize, Stop> {
    let answer = client.call(&v3::PathconfArgs { object: dir.into() })?;
    Ok(good!(answer).name_max as usize)
}

pub(super) fn wcc_is_right(
    t: &mut Trial,
    dir: &[u8],
    before: v3::Fattr3,
    sent: &str,
    wcc: v3::WccData,
) -> Tried {
    if let Some(told) = wcc.before {
        hold(told.mtime == before.mtime && told.size == before.size, sent, || {
            format!("{told:?} before; GETATTR said {before:?}")
        })?;
    }
    same_after(t, sent, dir, wcc.after)
}

checks! {
    /// Names.
    NAMES, Names;
    "v3-lookup" V3 Must [V3 1813 "3.3.3"]
        "LOOKUP gives the handle and attributes of a name."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let answer = t.s()?.call(&lookup(&dir, "x"))?;
        let ok = good!(answer);
        hold(ok.object.0 == fh, &answer.sent, || "another handle than that of its creation".into())?;
        same_after(t, &answer.sent, &fh, ok.obj_attributes)?;
        same_after(t, &answer.sent, &dir, ok.dir_attributes)
    };
    "v3-lookup-missing" V3 Must [V3 1813 "3.3.3"] "LOOKUP of a name that is not there is NOENT."
        => |t| { let dir = t.dir(); t.s()?.gives(&lookup(&dir, "missing"), &[S::NOENT]) };
    "v3-lookup-in-file" V3 Must [V3 1813 "3.3.3"] "LOOKUP in a file is NOTDIR."
        => |t| { let fh = t.object3(Kind::File)?; t.s()?.gives(&lookup(&fh, "y"), &[S::NOTDIR]) };
    "v3-lookup-dot" V3 Should [V3 1813 "3.3.3"]
        "`.` is the directory itself."
        => |t| {
        let dir = t.dir();
        let answer = t.s()?.call(&lookup(&dir, "."))?;
        let (ok, own) = (good!(answer).obj_attributes, t.s()?.stat(&dir)?.fileid);
        hold(ok.is_none_or(|ok| ok.fileid == own), &answer.sent, || format!("{ok:?}; fileid {own} is right"))
    };
    "v3-lookup-dot-dot" V3 Should [V3 1813 "3.3.3"]
        "`..` is the directory above."
        => |t| {
        let (dir, sub) = (t.dir(), t.object3(Kind::Dir)?);
        let answer = t.s()?.call(&lookup(&sub, ".."))?;
        let (ok, parent) = (good!(answer).obj_attributes, t.s()?.stat(&dir)?.fileid);
        hold(ok.is_none_or(|ok| ok.fileid == parent), &answer.sent, || format!("{ok:?}; fileid {parent} is right"))
    };
    "v3-lookup-long-name" V3 Must [V3 1813 "3.3.3"]
        "A name longer than name_max is NAMETOOLONG (NOENT, where names are cut)."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        let name = "n".repeat(longest(client, &dir)? + 1);
        client.gives(&lookup(&dir, &name), &[S::NAMETOOLONG])
    };
    "v3-lookup-bad-handle" V3 Must [V3 1813 "2.6"] "Bytes that are no handle are BADHANDLE (or STALE)."
        => |t| t.s()?.gives(&lookup(b"no handle at all", "x"), &[S::BADHANDLE, S::STALE]);
    "v3-create-guarded-existing" V3 Must [V3 1813 "3.3.8"]
        "A GUARDED CREATE of a name that is there is EXIST."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::File)?;
        t.s()?.gives(&create(&dir, "x", v3::CreateHow::Guarded(mode(0o644))), &[S::EXIST])
    };
    "v3-create-unchecked-existing" V3 Must [V3 1813 "3.3.8"]
        "An UNCHECKED CREATE of a file that is there leaves its content."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        t.s()?.gives(&create(&dir, "x", v3::CreateHow::Unchecked(Sattr3::NONE)), &[S::OK])?;
        let size = t.s()?.stat(&fh)?.size;
        hold(size == 7, "CREATE UNCHECKED of a file of 7 bytes, GETATTR", || format!("size {size}"))
    };
    "v3-create-unchecked-truncates" V3 Must [V3 1813 "3.3.8"]
        "An UNCHECKED CREATE with size 0 empties the file."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let how = v3::CreateHow::Unchecked(Sattr3 { size: Some(0), ..Sattr3::NONE });
        t.s()?.gives(&create(&dir, "x", how), &[S::OK])?;
        let size = t.s()?.stat(&fh)?.size;
        hold(size == 0, "CREATE UNCHECKED with size 0, GETATTR", || format!("size {size}"))
    };
    "v3-create-exclusive" V3 Must [V3 1813 "3.3.8"]
        "An EXCLUSIVE CREATE succeeds again with its verifier, and is EXIST with another."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        let answer = client.call(&create(&dir, "x", v3::CreateHow::Exclusive([1; 8])))?;
        if answer.get()?.status() == S::NOTSUPP {
            return Err(Stop::not_applicable("the server has no exclusive creation"));
        }
        good!(answer);
        client.gives(&create(&dir, "x", v3::CreateHow::Exclusive([1; 8])), &[S::OK])?;
        client.gives(&create(&dir, "x", v3::CreateHow::Exclusive([2; 8])), &[S::EXIST])
    };
    "v3-create-mode" V3 Must [V3 1813 "3.3.8"]
        "CREATE gives the file the mode asked for, no size, and the caller as owner."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        let answer = client.call(&create(&dir, "x", v3::CreateHow::Guarded(mode(0o604))))?;
        good!(answer);
        let (fh, uid) = (client.lookup(&dir, "x")?, client.user.uid);
        let stat = client.stat(&fh)?;
        let right = stat.mode & 0o7777 == 0o604 && stat.size == 0 && stat.nlink == 1 && (stat.uid == uid || uid == 0);
        hold(right, &answer.sent, || format!("{stat:?}"))
    };
    "v3-create-wcc" V3 Should [V3 1813 "2.6"]
        "CREATE gives the attributes of the directory before and after it truly, where it gives them."
        => |t| {
        let dir = t.dir();
        let before = t.s()?.stat(&dir)?;
        let answer = t.s()?.call(&create(&dir, "x", v3::CreateHow::Guarded(mode(0o644))))?;
        let wcc = good!(answer).dir_wcc;
        wcc_is_right(t, &dir, before, &answer.sent, wcc)
    };
    "v3-create-in-file" V3 Must [V3 1813 "3.3.8"] "CREATE in a file is NOTDIR."
        => |t| { let fh = t.object3(Kind::File)?; t.s()?.gives(&create(&fh, "y", v3::CreateHow::Guarded(mode(0o644))), &[S::NOTDIR]) };
    "v3-create-over-directory" V3 Should [V3 1813 "3.3.8"]
        "An UNCHECKED CREATE of the name of a directory is EXIST (or ISDIR, INVAL)."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::Dir)?;
        t.s()?.gives(&create(&dir, "x", v3::CreateHow::Unchecked(mode(0o644))), &[S::EXIST, S::ISDIR, S::INVAL])
    };
    "v3-create-long-name" V3 Must [V3 1813 "3.3.8"]
        "CREATE of a name longer than name_max is NAMETOOLONG."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        let name = "n".repeat(longest(client, &dir)? + 1);
        client.gives(&create(&dir, &name, v3::CreateHow::Guarded(mode(0o644))), &[S::NAMETOOLONG])
    };
    "v3-create-dot" V3 Must [V3 1813 "3.2"]
        "CREATE of `.` and `..` is refused."
        => |t| {
        let dir = t.dir();
        t.s()?.gives(&create(&dir, ".", v3::CreateHow::Guarded(mode(0o644))), BAD_NAME)?;
        t.s()?.gives(&create(&dir, "..", v3::CreateHow::Guarded(mode(0o644))), BAD_NAME)
    };
    "v3-create-empty-name" V3 Must [V3 1813 "3.2"]
        "CREATE of a name without characters is refused."
        => |t| {
        let dir = t.dir();
        let tried = t.s()?.gives(&create(&dir, "", v3::CreateHow::Guarded(mode(0o644))), &[S::INVAL, S::ACCES, S::EXIST, S::NOENT]);
        or_garbage(tried)
    };
    "v3-create-slash" V3 Must [V3 1813 "3.2"]
        "A name is one component: CREATE of a name with `/` makes nothing in another directory."
        => |t| {
        let (dir, sub) = (t.dir(), t.object3(Kind::Dir)?);
        // A file system may take it as a name like others.
        or_garbage(t.s()?.call(&create(&dir, "x/y", v3::CreateHow::Guarded(mode(0o644)))).map(|_| ()))?;
        let has = t.s()?.has(&sub, "y")?;
        hold(!has, "CREATE of x/y, where x is a directory, LOOKUP of y in x", || "the server walked the path".into())
    };
    "v3-mkdir" V3 Must [V3 1813 "3.3.9"]
        "MKDIR makes a directory with the mode asked for."
        => |t| {
        let fh = t.object3(Kind::Dir)?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.ftype == v3::Ftype3::Dir && stat.mode & 0o777 == 0o755, "MKDIR, GETATTR", || format!("{stat:?}"))
    };
    "v3-mkdir-existing" V3 Must [V3 1813 "3.3.9"] "MKDIR of a name that is there is EXIST."
        => |t| { let dir = t.dir(); t.object3(Kind::File)?; t.s()?.gives(&mkdir(&dir, "x"), &[S::EXIST]) };
    "v3-mkdir-in-file" V3 Must [V3 1813 "3.3.9"] "MKDIR in a file is NOTDIR."
        => |t| { let fh = t.object3(Kind::File)?; t.s()?.gives(&mkdir(&fh, "y"), &[S::NOTDIR]) };
    "v3-symlink" V3 Must [V3 1813 "3.3.10"]
        "SYMLINK makes a link, whose text READLINK gives as it is."
        => |t| {
        let dir = t.dir();
        let text = "../a//b ü";
        let fh = t.s()?.symlink(&dir, "x", text)?;
        let answer = t.s()?.call(&v3::ReadlinkArgs { symlink: (&fh[..]).into() })?;
        let got = good!(answer).data;
        hold(got.0 == text.as_bytes(), &answer.sent, || format!("{got:?}; {text:?} is right"))?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.ftype == v3::Ftype3::Lnk && stat.size == text.len() as u64, "SYMLINK, GETATTR", || format!("{stat:?}"))
    };
    "v3-symlink-existing" V3 Must [V3 1813 "3.3.10"]
        "SYMLINK of a name that is there is EXIST."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::File)?;
        let symlink = v3::SymlinkData { symlink_attributes: Sattr3::NONE, symlink_data: "target".into() };
        t.s()?.gives(&v3::SymlinkArgs { where_: place(&dir, "x"), symlink }, &[S::EXIST])
    };
    "v3-readlink-of-file" V3 Must [V3 1813 "3.3.5"] "READLINK of a file is INVAL."
        => |t| { let fh = t.object3(Kind::File)?; t.s()?.gives(&v3::ReadlinkArgs { symlink: (&fh[..]).into() }, &[S::INVAL]) };
    "v3-mknod-fifo" V3 Must [V3 1813 "3.3.11"]
        "MKNOD makes a FIFO."
        => |t| {
        let fh = t.object3(Kind::Fifo)?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.ftype == v3::Ftype3::Fifo, "MKNOD, GETATTR", || format!("{stat:?}"))
    };
    "v3-mknod-socket" V3 Must [V3 1813 "3.3.11"]
        "MKNOD makes a socket."
        => |t| {
        let dir = t.dir();
        let fh = t.s()?.node(&dir, "x", v3::MknodData::Sock(mode(0o644)))?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.ftype == v3::Ftype3::Sock, "MKNOD, GETATTR", || format!("{stat:?}"))
    };
    "v3-mknod-character-device" V3 Must [V3 1813 "3.3.11"]
        "MKNOD makes a device with its numbers, of those who may."
        => |t| {
        let dir = t.dir();
        let spec = v3::Specdata3 { major: 1, minor: 3 };
        let data = v3::DeviceData { dev_attributes: mode(0o644), spec };
        let fh = t.s()?.node(&dir, "x", v3::MknodData::Chr(data))?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.ftype == v3::Ftype3::Chr && stat.rdev == spec, "MKNOD, GETATTR", || format!("{stat:?}"))
    };
    "v3-mknod-regular" V3 Must [V3 1813 "3.3.11"]
        "MKNOD of a regular file is BADTYPE (or INVAL)."
        => |t| {
        let dir = t.dir();
        t.s()?.gives(&v3::MknodArgs { where_: place(&dir, "x"), what: v3::MknodData::Other(1) }, &[S::BADTYPE, S::INVAL, S::NOTSUPP])
    };
    "v3-remove" V3 Must [V3 1813 "3.3.12"]
        "REMOVE takes a name away."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::File)?;
        t.s()?.gives(&remove(&dir, "x"), &[S::OK])?;
        t.s()?.gives(&lookup(&dir, "x"), &[S::NOENT])
    };
    "v3-remove-stale" V3 Should [V3 1813 "2.6"]
        "The handle of what was removed is STALE, or shows that the object has no link."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        t.s()?.gives(&remove(&dir, "x"), &[S::OK])?;
        let answer = t.s()?.call(&getattr(&fh))?;
        match answer.get()? {
            v3::Res::Ok(ok) if ok.obj_attributes.nlink == 0 => Ok(()),
            v3::Res::Err(S::STALE | S::BADHANDLE, ()) => Ok(()),
            _ => Err(answer.wrong("STALE is right")),
        }
    };
    "v3-remove-missing" V3 Must [V3 1813 "3.3.12"] "REMOVE of a name that is not there is NOENT."
        => |t| { let dir = t.dir(); t.s()?.gives(&remove(&dir, "missing"), &[S::NOENT]) };
    "v3-remove-directory" V3 Must [V3 1813 "3.3.12"]
        "REMOVE of a directory is ISDIR (or PERM, as POSIX has it), or removes it."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::Dir)?;
        t.s()?.gives(&remove(&dir, "x"), &[S::ISDIR, S::PERM, S::OK])
    };
    "v3-remove-in-file" V3 Must [V3 1813 "3.3.12"] "REMOVE in a file is NOTDIR."
        => |t| { let fh = t.object3(Kind::File)?; t.s()?.gives(&remove(&fh, "y"), &[S::NOTDIR]) };
    "v3-remove-one-link" V3 Must [V3 1813 "3.3.12"]
        "REMOVE of one of two names leaves the file under the other."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        linked(t.s()?.call(&v3::LinkArgs { file: (&fh[..]).into(), link: place(&dir, "y") })?)?;
        t.s()?.gives(&remove(&dir, "x"), &[S::OK])?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.nlink == 1, "LINK, REMOVE, GETATTR", || format!("{stat:?}"))
    };
    "v3-rmdir" V3 Must [V3 1813 "3.3.13"] "RMDIR takes an empty directory away."
        => |t| { let dir = t.dir(); t.object3(Kind::Dir)?; t.s()?.gives(&rmdir(&dir, "x"), &[S::OK])?; t.s()?.gives(&lookup(&dir, "x"), &[S::NOENT]) };
    "v3-rmdir-full" V3 Must [V3 1813 "3.3.13"]
        "RMDIR of a directory with entries is NOTEMPTY (or EXIST)."
        => |t| {
        let (dir, sub) = (t.dir(), t.object3(Kind::Dir)?);
        t.s()?.file(&sub, "y", b"")?;
        t.s()?.gives(&rmdir(&dir, "x"), &[S::NOTEMPTY, S::EXIST])
    };
    "v3-rmdir-of-file" V3 Must [V3 1813 "3.3.13"] "RMDIR of a file is NOTDIR."
        => |t| { let dir = t.dir(); t.object3(Kind::File)?; t.s()?.gives(&rmdir(&dir, "x"), &[S::NOTDIR]) };
    "v3-rmdir-missing" V3 Must [V3 1813 "3.3.13"] "RMDIR of a name that is not there is NOENT."
        => |t| { let dir = t.dir(); t.s()?.gives(&rmdir(&dir, "missing"), &[S::NOENT]) };
    "v3-rmdir-dot" V3 Must [V3 1813 "3.3.13"]
        "RMDIR of `.` is INVAL, of `..` EXIST (others are usual)."
        => |t| {
        let sub = t.object3(Kind::Dir)?;
        t.s()?.gives(&rmdir(&sub, "."), BAD_NAME)?;
        t.s()?.gives(&rmdir(&sub, ".."), BAD_NAME)
    };
    "v3-rename" V3 Must [V3 1813 "3.3.14"]
        "RENAME gives an object its new name; handle and number stay."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let client = t.s()?;
        let before = client.stat(&fh)?.fileid;
        client.gives(&rename((&dir, "x"), (&dir, "y")), &[S::OK])?;
        client.gives(&lookup(&dir, "x"), &[S::NOENT])?;
        let found = client.lookup(&dir, "y")?;
        let after = client.stat(&found)?.fileid;
        hold(before == after, "RENAME, LOOKUP, GETATTR", || format!("fileid {after}; {before} is right"))
    };
    "v3-rename-missing" V3 Must [V3 1813 "3.3.14"] "RENAME of a name that is not there is NOENT."
        => |t| { let dir = t.dir(); t.s()?.gives(&rename((&dir, "missing"), (&dir, "y")), &[S::NOENT]) };
    "v3-rename-replaces" V3 Must [V3 1813 "3.3.14"]
        "RENAME of a file over a file replaces it."
        => |t| {
        rename_onto(t, Kind::File, Kind::File, &[S::OK])?;
        let dir = t.dir();
        let has = t.s()?.has(&dir, "a")?;
        hold(!has, "RENAME a b, LOOKUP a", || "the old name is still there".into())
    };
    "v3-rename-file-over-directory" V3 Must [V3 1813 "3.3.14"] "RENAME of a file over a directory is EXIST (or ISDIR, as POSIX has it)."
        => |t| rename_onto(t, Kind::File, Kind::Dir, &[S::EXIST, S::ISDIR]);
    "v3-rename-directory-over-file" V3 Must [V3 1813 "3.3.14"] "RENAME of a directory over a file is EXIST (or NOTDIR, as POSIX has it)."
        => |t| rename_onto(t, Kind::Dir, Kind::File, &[S::EXIST, S::NOTDIR]);
    "v3-rename-over-empty-directory" V3 Must [V3 1813 "3.3.14"] "RENAME of a directory over an empty one replaces it."
        => |t| rename_onto(t, Kind::Dir, Kind::Dir, &[S::OK]);
    "v3-rename-over-full-directory" V3 Must [V3 1813 "3.3.14"]
        "RENAME over a directory with entries is NOTEMPTY or EXIST."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        client.mkdir(&dir, "a")?;
        let full = client.mkdir(&dir, "b")?;
        client.file(&full, "y", b"")?;
        client.gives(&rename((&dir, "a"), (&dir, "b")), &[S::NOTEMPTY, S::EXIST])
    };
    "v3-rename-into-itself" V3 Must [V3 1813 "3.3.14"] "RENAME of a directory into itself is INVAL."
        => |t| { let (dir, sub) = (t.dir(), t.object3(Kind::Dir)?); t.s()?.gives(&rename((&dir, "x"), (&sub, "y")), &[S::INVAL]) };
    "v3-rename-to-itself" V3 Must [V3 1813 "3.3.14"]
        "RENAME to the same name does nothing, and succeeds."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::File)?;
        t.s()?.gives(&rename((&dir, "x"), (&dir, "x")), &[S::OK])?;
        t.s()?.gives(&lookup(&dir, "x"), &[S::OK])
    };
    "v3-rename-to-link-of-itself" V3 Must [V3 1813 "3.3.14"]
        "RENAME of one link to another of the same file does nothing."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        linked(t.s()?.call(&v3::LinkArgs { file: (&fh[..]).into(), link: place(&dir, "y") })?)?;
        t.s()?.gives(&rename((&dir, "x"), (&dir, "y")), &[S::OK])?;
        t.s()?.gives(&lookup(&dir, "x"), &[S::OK])?;
        t.s()?.gives(&lookup(&dir, "y"), &[S::OK])
    };
    "v3-rename-across-directories" V3 Must [V3 1813 "3.3.14"]
        "RENAME moves between directories."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let client = t.s()?;
        let sub = client.mkdir(&dir, "sub")?;
        client.gives(&rename((&dir, "x"), (&sub, "y")), &[S::OK])?;
        let found = client.lookup(&sub, "y")?;
        let (one, two) = (client.stat(&fh)?.fileid, client.stat(&found)?.fileid);
        hold(one == two, "RENAME to another directory, LOOKUP, GETATTR", || format!("fileid {two}; {one} is right"))
    };
    "v3-link" V3 Must [V3 1813 "3.3.15"]
        "LINK gives a file one more name."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let answer = linked(t.s()?.call(&v3::LinkArgs { file: (&fh[..]).into(), link: place(&dir, "y") })?)?;
        let after = good!(answer).file_attributes;
        same_after(t, &answer.sent, &fh, after)?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.nlink == 2, &answer.sent, || format!("{stat:?}; 2 links are right"))
    };
    "v3-link-existing" V3 Must [V3 1813 "3.3.15"]
        "LINK to a name that is there is EXIST."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        t.s()?.file(&dir, "y", b"")?;
        t.s()?.gives(&v3::LinkArgs { file: (&fh[..]).into(), link: place(&dir, "y") }, &[S::EXIST, S::NOTSUPP])
    };
    "v3-link-directory" V3 Should [V3 1813 "3.3.15"]
        "LINK of a directory is refused (PERM, ISDIR, INVAL)."
        => |t| {
        let (dir, sub) = (t.dir(), t.object3(Kind::Dir)?);
        let args = v3::LinkArgs { file: (&sub[..]).into(), link: place(&dir, "y") };
        t.s()?.gives(&args, &[S::PERM, S::ISDIR, S::INVAL, S::NOTSUPP, S::BADTYPE])
    };
    "v3-link-into-file" V3 Must [V3 1813 "3.3.15"]
        "LINK into a file is NOTDIR."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let other = t.s()?.file(&dir, "other", b"")?;
        t.s()?.gives(&v3::LinkArgs { file: (&fh[..]).into(), link: place(&other, "y") }, &[S::NOTDIR])
    };
}

/// LINK succeeded, or the file system has no links.
pub(super) fn linked<'a>(answer: Answer<v3::LinkArgs<'a>>) -> Result<Answer<v3::LinkArgs<'a>>, Stop> {
    if answer.get()?.status() == S::NOTSUPP {
        return Err(Stop::not_applicable("the file system has no hard links"));
    }
    good!(answer);
    Ok(answer)
}
