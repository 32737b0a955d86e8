//! Attributes, rights and listings of version 3.

use benchmaster_nfs_proto::v3::{self, Nfsstat3 as S, Sattr3, SetTime, access};

use super::Kind;
use super::attributes4::stranger;
use super::names3::*;
use crate::Stop;
use crate::nfs::hold;
use crate::nfs::stateless::good;

checks! {
    /// Attributes and rights.
    ATTRIBUTES, Attributes;
    "v3-getattr" V3 Must [V3 1813 "3.3.1"]
        "GETATTR gives type, size and links of a file."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let stat = t.s()?.stat(&fh)?;
        let right = stat.ftype == v3::Ftype3::Reg && stat.size == 7 && stat.nlink == 1 && stat.mode & 0o7777 == 0o644;
        hold(right, "GETATTR", || format!("{stat:?}"))
    };
    "v3-getattr-bad-handle" V3 Must [V3 1813 "3.3.1"] "GETATTR of bytes that are no handle is BADHANDLE (or STALE)."
        => |t| t.s()?.gives(&getattr(b"no handle at all, but longer than one"), &[S::BADHANDLE, S::STALE]);
    "v3-getattr-empty-handle" V3 Must [V3 1813 "3.3.1"] "GETATTR of an empty handle is BADHANDLE (or STALE)."
        => |t| or_garbage(t.s()?.gives(&getattr(b""), &[S::BADHANDLE, S::STALE]));
    "v3-fileid-unique" V3 Must [V3 1813 "2.5"]
        "Two objects have different fileids and the same fsid."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let other = t.s()?.file(&dir, "other", b"")?;
        let (one, two) = (t.s()?.stat(&fh)?, t.s()?.stat(&other)?);
        hold(one.fileid != two.fileid && one.fsid == two.fsid, "GETATTR of two files", || {
            format!("fileids {} and {}, fsids {} and {}", one.fileid, two.fileid, one.fsid, two.fsid)
        })
    };
    "v3-setattr-mode" V3 Must [V3 1813 "3.3.2"]
        "SETATTR sets the mode."
        => |t| sets(t, mode(0o640), |stat| stat.mode & 0o7777 == 0o640);
    "v3-setattr-shrinks" V3 Must [V3 1813 "3.3.2"] "SETATTR of a smaller size cuts the file."
        => |t| sets(t, Sattr3 { size: Some(3), ..Sattr3::NONE }, |stat| stat.size == 3);
    "v3-setattr-grows" V3 Must [V3 1813 "3.3.2"]
        "SETATTR of a larger size adds zeros."
        => |t| {
        sets(t, Sattr3 { size: Some(9), ..Sattr3::NONE }, |stat| stat.size == 9)?;
        let dir = t.dir();
        let fh = t.s()?.lookup(&dir, "x")?;
        let answer = t.s()?.call(&v3::ReadArgs { file: (&fh[..]).into(), offset: 0, count: 100 })?;
        let data = good!(answer).data.bytes().unwrap_or_default();
        hold(data == b"content\0\0", &answer.sent, || format!("{data:02x?}"))
    };
    "v3-setattr-times" V3 Must [V3 1813 "3.3.2"]
        "SETATTR sets both times to given ones."
        => |t| {
        let time = SetTime::SetToClientTime(THEN);
        sets(t, Sattr3 { atime: time, mtime: time, ..Sattr3::NONE }, |stat| stat.atime == THEN && stat.mtime == THEN)
    };
    "v3-setattr-server-time" V3 Must [V3 1813 "3.3.2"]
        "SETATTR sets a time to the server's."
        => |t| {
        let time = SetTime::SetToServerTime;
        sets(t, Sattr3 { mtime: time, ..Sattr3::NONE }, |stat| stat.mtime.seconds + 2 >= stat.ctime.seconds)
    };
    "v3-setattr-nothing" V3 Must [V3 1813 "3.3.2"]
        "SETATTR of nothing succeeds."
        => |t| sets(t, Sattr3::NONE, |stat| stat.size == 7);
    "v3-setattr-guard" V3 Must [V3 1813 "3.3.2"]
        "SETATTR with a guard that is not the ctime is NOT_SYNC, and sets nothing."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let args = v3::SetattrArgs { guard: Some(THEN), ..setattr(&fh, mode(0o600)) };
        t.s()?.gives(&args, &[S::NOT_SYNC])?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.mode & 0o777 == 0o644, "SETATTR with a wrong guard, GETATTR", || format!("{stat:?}"))
    };
    "v3-setattr-right-guard" V3 Must [V3 1813 "3.3.2"]
        "SETATTR with a guard that is the ctime succeeds."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let ctime = t.s()?.stat(&fh)?.ctime;
        t.s()?.gives(&v3::SetattrArgs { guard: Some(ctime), ..setattr(&fh, mode(0o600)) }, &[S::OK])
    };
    "v3-setattr-wcc" V3 Should [V3 1813 "2.6"]
        "SETATTR gives the attributes before and after it truly, where it gives them."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let before = t.s()?.stat(&fh)?;
        let answer = t.s()?.call(&setattr(&fh, mode(0o600)))?;
        let wcc = good!(answer).obj_wcc;
        wcc_is_right(t, &fh, before, &answer.sent, wcc)
    };
    "v3-setattr-size-of-directory" V3 Must [V3 1813 "3.3.2"]
        "The size of a directory cannot be set."
        => |t| {
        let fh = t.object3(Kind::Dir)?;
        t.s()?.gives(&setattr(&fh, Sattr3 { size: Some(0), ..Sattr3::NONE }), &[S::INVAL, S::ISDIR, S::PERM, S::ACCES, S::BADTYPE])
    };
    "v3-setattr-of-stranger" V3 Must [V3 1813 "3.3.2"]
        "Who does not own an object cannot set its mode: PERM (or ACCES)."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let client = t.s()?;
        client.user = stranger(client.user);
        client.gives(&setattr(&fh, mode(0o777)), &[S::PERM, S::ACCES])
    };
    "v3-create-of-stranger" V3 Must [V3 1813 "2.6"]
        "Who may not write a directory makes nothing in it: ACCES."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        client.user = stranger(client.user);
        client.gives(&mkdir(&dir, "y"), &[S::ACCES])
    };
    "v3-access-of-owner" V3 Must [V3 1813 "3.3.4"]
        "ACCESS tells the owner of a file with mode 0644 that he may read and write it, and no bit more than asked."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let asked = access::READ | access::MODIFY;
        let answer = t.s()?.call(&v3::AccessArgs { object: (&fh[..]).into(), access: asked })?;
        let given = good!(answer).access;
        hold(given == asked, &answer.sent, || format!("{given:#x}; {asked:#x} is right"))
    };
    "v3-access-of-stranger" V3 Must [V3 1813 "3.3.4"] "ACCESS tells others of a file with mode 0644 that they may read only."
        => |t| stranger_may(t, 0o644, access::READ | access::MODIFY, access::READ);
    "v3-access-denied" V3 Must [V3 1813 "3.3.4"] "ACCESS tells others of a file with mode 0600 that they may nothing."
        => |t| stranger_may(t, 0o600, access::READ | access::MODIFY | access::EXTEND, 0);
    "v3-entries-change-directory" V3 Must [V3 1813 "2.5"]
        "A new entry moves the mtime of its directory, or stays within one tick."
        => |t| {
        let dir = t.dir();
        let time = SetTime::SetToClientTime(THEN);
        t.s()?.gives(&setattr(&dir, Sattr3 { mtime: time, ..Sattr3::NONE }), &[S::OK])?;
        t.object3(Kind::File)?;
        let stat = t.s()?.stat(&dir)?;
        hold(stat.mtime != THEN, "CREATE, GETATTR of the directory", || format!("{stat:?}"))
    };
}

checks! {
    /// Listings.
    READDIR, Readdir;
    "v3-readdir-each-once" V3 Must [V3 1813 "3.3.16"]
        "READDIR gives each entry once."
        => |t| lists_each_once(t, 65_536);
    "v3-readdir-each-once-in-pages" V3 Must [V3 1813 "3.3.16"]
        "READDIR gives each entry once, over many small pages."
        => |t| lists_each_once(t, 512);
    "v3-readdir-of-file" V3 Must [V3 1813 "3.3.16"]
        "READDIR of a file is NOTDIR."
        => |t| {
        let fh = t.object3(Kind::File)?;
        t.s()?.gives(&v3::ReaddirArgs { dir: (&fh[..]).into(), cookie: 0, cookieverf: [0; 8], count: 4096 }, &[S::NOTDIR])
    };
    "v3-readdir-too-small" V3 Should [V3 1813 "3.3.16"]
        "READDIR with a count in which nothing fits is TOOSMALL."
        => |t| {
        let dir = t.dir();
        t.object3(Kind::File)?;
        t.s()?.gives(&v3::ReaddirArgs { dir: (&dir[..]).into(), cookie: 0, cookieverf: [0; 8], count: 8 }, &[S::TOOSMALL, S::INVAL])
    };
    "v3-readdir-fileids" V3 Must [V3 1813 "3.3.16"]
        "READDIR gives the fileid that GETATTR gives."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let answer = t.s()?.call(&v3::ReaddirArgs { dir: (&dir[..]).into(), cookie: 0, cookieverf: [0; 8], count: 4096 })?;
        let found = good!(answer).entries.iter().find(|entry| entry.name.0 == b"x").map(|entry| entry.fileid);
        let right = t.s()?.stat(&fh)?.fileid;
        hold(found == Some(right), &answer.sent, || format!("fileid {found:?}; {right} is right"))
    };
    "v3-readdirplus" V3 Must [V3 1813 "3.3.17"]
        "READDIRPLUS gives handles and attributes, where it gives them, as LOOKUP and GETATTR do."
        => |t| {
        let (dir, fh) = (t.dir(), t.object3(Kind::File)?);
        let args = v3::ReaddirplusArgs { dir: (&dir[..]).into(), cookie: 0, cookieverf: [0; 8], dircount: 4096, maxcount: 16_384 };
        let answer = t.s()?.call(&args)?;
        if answer.get()?.status() == S::NOTSUPP {
            return Err(Stop::not_applicable("the server does not have READDIRPLUS"));
        }
        let entry = good!(answer).entries.iter().find(|entry| entry.name.0 == b"x");
        let entry = entry.ok_or_else(|| answer.wrong("the entry `x` is right"))?;
        hold(entry.name_handle.is_none_or(|given| given.0 == fh), &answer.sent, || "another handle".into())?;
        same_after(t, &answer.sent, &fh, entry.name_attributes)
    };
    "v3-readdirplus-of-file" V3 Must [V3 1813 "3.3.17"]
        "READDIRPLUS of a file is NOTDIR."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let args = v3::ReaddirplusArgs { dir: (&fh[..]).into(), cookie: 0, cookieverf: [0; 8], dircount: 4096, maxcount: 4096 };
        t.s()?.gives(&args, &[S::NOTDIR, S::NOTSUPP])
    };
    "v3-readdir-while-removing" V3 Linux [V3 linux "readdir(3)"]
        "Removing what a page listed does not hide the next (`rm -r` depends on it)."
        => |t| {
        let dir = t.dir();
        let client = t.s()?;
        for n in 0..60 {
            client.mkdir(&dir, &format!("entry-{n:03}"))?;
        }
        let (mut cookie, mut cookieverf, mut seen) = (0, [0; 8], 0);
        loop {
            let answer = client.call(&v3::ReaddirArgs { dir: (&dir[..]).into(), cookie, cookieverf, count: 700 })?;
            let page = good!(answer);
            let entries: Vec<(u64, String)> =
                page.entries.iter().map(|one| (one.cookie, String::from_utf8_lossy(one.name.0).into_owned())).collect();
            (cookie, cookieverf) = (entries.last().map_or(cookie, |(cookie, _)| *cookie), page.cookieverf);
            for (_, name) in entries.iter().filter(|(_, name)| name != "." && name != "..") {
                client.gives(&rmdir(&dir, name), &[S::OK])?;
                seen += 1;
            }
            if page.eof {
                break;
            }
            hold(!entries.is_empty(), &answer.sent, || "no entries, and not the end".into())?;
        }
        hold(seen == 60, "READDIR and RMDIR in turns", || format!("{seen} of 60 entries seen"))
    };
}
