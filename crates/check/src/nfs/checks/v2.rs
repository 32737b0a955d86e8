//! Version 2.

use benchmaster_nfs_proto::v2::{self, Nfsstat2 as S, Sattr};
use benchmaster_nfs_proto::xdr::Bulk;

use super::io4::pattern;
use crate::nfs::hold;
use crate::nfs::stateless::{Client, Getattr2, Mkdir2, Readlink2, Remove2, Rmdir2, Statfs2, good};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

fn place<'a>(dir: &[u8], name: &'a str) -> v2::DirOpArgs<'a> {
    v2::DirOpArgs { dir: Client::fh2(dir), name: name.into() }
}

fn mode(mode: u32) -> Sattr {
    Sattr { mode, ..Sattr::NONE }
}

impl Client {
    fn stat2(&mut self, fh: &[u8]) -> Result<v2::Fattr, Stop> {
        let answer = self.call(&Getattr2::of(Self::fh2(fh)))?;
        Ok(good!(answer))
    }
}

/// A new file `x` of seven bytes.
fn file(t: &mut Trial) -> Result<Vec<u8>, Stop> {
    let dir = t.dir();
    t.s()?.file(&dir, "x", b"content")
}

fn sets(t: &mut Trial, attributes: Sattr, right: impl Fn(&v2::Fattr) -> bool) -> Tried {
    let fh = file(t)?;
    let answer = t.s()?.call(&v2::SetattrArgs { file: Client::fh2(&fh), attributes })?;
    let told = good!(answer);
    let stat = t.s()?.stat2(&fh)?;
    hold(right(&stat) && right(&told), &answer.sent, || format!("{told:?}; GETATTR says {stat:?}"))
}

fn write_and_read(t: &mut Trial, offset: u32, len: usize) -> Tried {
    let dir = t.dir();
    let client = t.s()?;
    let (fh, data) = (client.file(&dir, "x", b"")?, pattern(len));
    let file = Client::fh2(&fh);
    let answer = client.call(&v2::WriteArgs {
        file,
        beginoffset: 0,
        offset,
        totalcount: 0,
        data: Bulk::Bytes(&data),
    })?;
    let size = good!(answer).size;
    hold(size as usize == offset as usize + len, &answer.sent, || format!("size {size}"))?;
    let answer = client.call(&v2::ReadArgs { file, offset, count: len as u32, totalcount: 0 })?;
    let got = good!(answer).data;
    hold(got.bytes() == Some(&data[..]), &answer.sent, || format!("{} bytes, other content", got.len()))
}

checks! {
    /// Names.
    NAMES, Names;
    "v2-lookup" V2 Must [V2 1094 "2.2.5"]
        "LOOKUP gives the handle and attributes of a name."
        => |t| {
        let (fh, dir) = (file(t)?, t.dir());
        let answer = t.s()?.call(&place(&dir, "x"))?;
        let ok = good!(answer);
        hold(ok.file[..] == fh[..] && ok.attributes.size == 7, &answer.sent, || format!("{ok:?}"))
    };
    "v2-lookup-missing" V2 Must [V2 1094 "2.2.5"]
        "LOOKUP of a name that is not there is NOENT."
        => |t| { let dir = t.dir(); t.s()?.gives(&place(&dir, "missing"), &[S::NOENT]) };
    "v2-lookup-in-file" V2 Must [V2 1094 "2.2.5"]
        "LOOKUP in a file is NOTDIR."
        => |t| { let fh = file(t)?; t.s()?.gives(&place(&fh, "y"), &[S::NOTDIR]) };
    "v2-lookup-bad-handle" V2 Must [V2 1094 "2.3.1"]
        "A handle that names nothing is STALE."
        => |t| t.s()?.gives(&place(&[0x5a; 32], "x"), &[S::STALE, S::IO, S::ACCES]);
    "v2-create" V2 Must [V2 1094 "2.2.10"]
        "CREATE makes a file with the mode asked for."
        => |t| {
        let dir = t.dir();
        let answer = t.s()?.call(&v2::CreateArgs { where_: place(&dir, "x"), attributes: mode(0o604) })?;
        let ok = good!(answer).attributes;
        hold(ok.mode & 0o7777 == 0o604 && ok.size == 0 && ok.ftype == v2::Ftype::Reg, &answer.sent, || format!("{ok:?}"))
    };
    "v2-create-in-file" V2 Must [V2 1094 "2.2.10"]
        "CREATE in a file is NOTDIR."
        => |t| {
            let fh = file(t)?;
            t.s()?.gives(&v2::CreateArgs { where_: place(&fh, "y"), attributes: mode(0o644) }, &[S::NOTDIR])
        };
    "v2-mkdir" V2 Must [V2 1094 "2.2.15"]
        "MKDIR makes a directory; a name that is there is EXIST."
        => |t| {
        let dir = t.dir();
        let answer = t.s()?.call(&Mkdir2::of(v2::CreateArgs { where_: place(&dir, "x"), attributes: mode(0o755) }))?;
        let ok = good!(answer).attributes;
        hold(ok.ftype == v2::Ftype::Dir, &answer.sent, || format!("{ok:?}"))?;
        t.s()?.gives(&Mkdir2::of(v2::CreateArgs { where_: place(&dir, "x"), attributes: mode(0o755) }), &[S::EXIST])
    };
    "v2-remove" V2 Must [V2 1094 "2.2.11"]
        "REMOVE takes a name away; a second one is NOENT."
        => |t| {
        let dir = t.dir();
        file(t)?;
        t.s()?.gives(&Remove2::of(place(&dir, "x")), &[S::OK])?;
        t.s()?.gives(&Remove2::of(place(&dir, "x")), &[S::NOENT])
    };
    "v2-remove-stale" V2 Should [V2 1094 "2.3.1"]
        "The handle of what was removed is STALE."
        => |t| {
        let (dir, fh) = (t.dir(), file(t)?);
        t.s()?.gives(&Remove2::of(place(&dir, "x")), &[S::OK])?;
        t.s()?.gives(&Getattr2::of(Client::fh2(&fh)), &[S::STALE])
    };
    "v2-rmdir" V2 Must [V2 1094 "2.2.16"]
        "RMDIR of a directory with entries is NOTEMPTY, of an empty one OK."
        => |t| {
        let dir = t.dir();
        let sub = t.s()?.mkdir(&dir, "sub")?;
        t.s()?.file(&sub, "y", b"")?;
        t.s()?.gives(&Rmdir2::of(place(&dir, "sub")), &[S::NOTEMPTY, S::EXIST])?;
        t.s()?.gives(&Remove2::of(place(&sub, "y")), &[S::OK])?;
        t.s()?.gives(&Rmdir2::of(place(&dir, "sub")), &[S::OK])
    };
    "v2-rmdir-of-file" V2 Must [V2 1094 "2.2.16"]
        "RMDIR of a file is NOTDIR."
        => |t| { let dir = t.dir(); file(t)?; t.s()?.gives(&Rmdir2::of(place(&dir, "x")), &[S::NOTDIR]) };
    "v2-rename" V2 Must [V2 1094 "2.2.12"]
        "RENAME gives an object its new name, over what has it."
        => |t| {
        let dir = t.dir();
        file(t)?;
        t.s()?.file(&dir, "y", b"")?;
        t.s()?.gives(&v2::RenameArgs { from: place(&dir, "x"), to: place(&dir, "y") }, &[S::OK])?;
        t.s()?.gives(&place(&dir, "x"), &[S::NOENT])?;
        let found = t.s()?.lookup(&dir, "y")?;
        let size = t.s()?.stat2(&found)?.size;
        hold(size == 7, "RENAME over a file, GETATTR", || format!("size {size}"))
    };
    "v2-rename-missing" V2 Must [V2 1094 "2.2.12"]
        "RENAME of a name that is not there is NOENT."
        => |t| {
        let dir = t.dir();
        t.s()?.gives(&v2::RenameArgs { from: place(&dir, "missing"), to: place(&dir, "y") }, &[S::NOENT])
    };
    "v2-link" V2 Must [V2 1094 "2.2.13"]
        "LINK gives a file one more name; one that is there is EXIST."
        => |t| {
        let (dir, fh) = (t.dir(), file(t)?);
        let args = v2::LinkArgs { from: Client::fh2(&fh), to: place(&dir, "y") };
        t.s()?.gives(&args, &[S::OK])?;
        let links = t.s()?.stat2(&fh)?.nlink;
        hold(links == 2, "LINK, GETATTR", || format!("{links} links"))?;
        t.s()?.gives(&args, &[S::EXIST])
    };
    "v2-symlink" V2 Must [V2 1094 "2.2.14"]
        "SYMLINK makes a link, whose text READLINK gives."
        => |t| {
        let dir = t.dir();
        let args = v2::SymlinkArgs { from: place(&dir, "x"), to: "../a//b".into(), attributes: Sattr::NONE };
        t.s()?.gives(&args, &[S::OK])?;
        let fh = t.s()?.lookup(&dir, "x")?;
        let answer = t.s()?.call(&Readlink2::of(Client::fh2(&fh)))?;
        let text = good!(answer);
        hold(text.0 == b"../a//b", &answer.sent, || format!("{text:?}"))
    };
}

checks! {
    /// Attributes.
    ATTRIBUTES, Attributes;
    "v2-getattr" V2 Must [V2 1094 "2.2.2"]
        "GETATTR gives type, size, mode and links of a file."
        => |t| {
        let fh = file(t)?;
        let stat = t.s()?.stat2(&fh)?;
        let right = stat.ftype == v2::Ftype::Reg && stat.size == 7 && stat.nlink == 1 && stat.mode & 0o7777 == 0o644;
        hold(right, "GETATTR", || format!("{stat:?}"))
    };
    "v2-mode-has-type" V2 Should [V2 1094 "2.3.5"]
        "The mode has the bits of the type too."
        => |t| {
        let fh = file(t)?;
        let mode = t.s()?.stat2(&fh)?.mode;
        hold(mode & 0o170_000 == 0o100_000, "GETATTR", || format!("mode {mode:o}"))
    };
    "v2-setattr-mode" V2 Must [V2 1094 "2.2.3"]
        "SETATTR sets the mode, and what is all ones stays."
        => |t| sets(t, mode(0o640), |stat| stat.mode & 0o7777 == 0o640 && stat.size == 7);
    "v2-setattr-size" V2 Must [V2 1094 "2.2.3"]
        "SETATTR sets the size."
        => |t| sets(t, Sattr { size: 3, ..Sattr::NONE }, |stat| stat.size == 3);
    "v2-setattr-times" V2 Must [V2 1094 "2.2.3"]
        "SETATTR sets the times."
        => |t| {
        let time = v2::Timeval { seconds: 1_234_567_890, useconds: 0 };
        sets(t, Sattr { atime: time, mtime: time, ..Sattr::NONE }, move |stat| stat.atime == time && stat.mtime == time)
    };
    "v2-statfs" V2 Must [V2 1094 "2.2.18"]
        "STATFS gives no more free blocks than there are, and sizes."
        => |t| {
        let root = t.export.clone();
        let answer = t.s()?.call(&Statfs2::of(Client::fh2(&root)))?;
        let ok = good!(answer);
        hold(ok.tsize > 0 && ok.bsize > 0 && ok.bfree <= ok.blocks && ok.bavail <= ok.bfree, &answer.sent, || format!("{ok:?}"))
    };
}

checks! {
    /// Data and listings.
    IO, Io;
    "v2-read" V2 Must [V2 1094 "2.2.7"]
        "READ gives what is there, and nothing beyond the end."
        => |t| {
        let fh = file(t)?;
        let file = Client::fh2(&fh);
        for (offset, count, right) in [(0, 100, &b"content"[..]), (1, 3, b"ont"), (100, 10, b"")] {
            let answer = t.s()?.call(&v2::ReadArgs { file, offset, count, totalcount: 0 })?;
            let got = good!(answer).data;
            hold(got.bytes() == Some(right), &answer.sent, || format!("{got:?}; {right:02x?} is right"))?;
        }
        Ok(())
    };
    "v2-read-of-directory" V2 Must [V2 1094 "2.2.7"]
        "READ of a directory is ISDIR."
        => |t| {
        let dir = t.dir();
        t.s()?.gives(&v2::ReadArgs { file: Client::fh2(&dir), offset: 0, count: 10, totalcount: 0 }, &[S::ISDIR])
    };
    "v2-write-one-byte" V2 Must [V2 1094 "2.2.9"]
        "What WRITE wrote READ gives back: one byte."
        => |t| write_and_read(t, 0, 1);
    "v2-write-largest" V2 Must [V2 1094 "2.2.9"]
        "What WRITE wrote READ gives back: 8192 bytes."
        => |t| write_and_read(t, 0, 8192);
    "v2-write-odd" V2 Must [V2 1094 "2.2.9"]
        "What WRITE wrote READ gives back: at an offset within a page."
        => |t| write_and_read(t, 4093, 1001);
    "v2-readdir" V2 Must [V2 1094 "2.2.17"]
        "READDIR gives each entry once, over several pages."
        => |t| {
        let dir = t.dir();
        let mut right: Vec<Vec<u8>> = (0..40).map(|n| format!("entry-{n:02}").into_bytes()).collect();
        for name in &right {
            t.s()?.mkdir(&dir, &String::from_utf8_lossy(name))?;
        }
        let (mut cookie, mut names) = (0, Vec::new());
        loop {
            let answer = t.s()?.call(&v2::ReaddirArgs { dir: Client::fh2(&dir), cookie, count: 256 })?;
            let page = good!(answer);
            let before = names.len();
            for entry in page.entries.iter() {
                (cookie, _) = (entry.cookie, names.push(entry.name.0.to_vec()));
            }
            if page.eof {
                break;
            }
            hold(names.len() > before, &answer.sent, || "no entries, and not the end".into())?;
        }
        names.retain(|name| name != b"." && name != b"..");
        names.sort();
        right.sort();
        hold(names == right, "READDIR, page after page", || format!("{} entries; 40 are right", names.len()))
    };
    "v2-readdir-of-file" V2 Must [V2 1094 "2.2.17"]
        "READDIR of a file is NOTDIR."
        => |t| {
        let fh = file(t)?;
        t.s()?.gives(&v2::ReaddirArgs { dir: Client::fh2(&fh), cookie: 0, count: 4096 }, &[S::NOTDIR])
    };
}
