//! Names and directories of version 4.

use benchmaster_nfs_proto::v4::{Argop, Bitmap4, Createtype4, Nfsstat4 as S, Specdata4, fattr4};

use super::Kind;
use crate::nfs::client4::body;
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Share;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// What a server may say to a name that it does not take.
const BAD_NAME: &[S] = &[S::BADNAME, S::INVAL, S::BADCHAR];
/// The same of LOOKUP: a name that cannot be is not there either.
const NOT_FOUND: &[S] = &[S::BADNAME, S::INVAL, S::BADCHAR, S::NOENT];
const SAVED: Argop<'static> = Argop::Savefh;

fn mkdir<'a>(name: &'a str, attrs: &'a Attrs) -> Argop<'a> {
    create(Createtype4::Dir, name.as_bytes(), attrs)
}

/// The change information of an operation in the directory of the check is right.
fn change_info(t: &mut Trial, op: Argop<'_>) -> Tried {
    let dir = t.dir();
    let client = t.a()?;
    let before = client.stat(&dir)?.change;
    let answer = client.done(&dir, &[op])?;
    let after = client.stat(&dir)?.change;
    let info = match answer.all().iter().find_map(|result| match result {
        benchmaster_nfs_proto::v4::Resop::Create(Ok(ok)) => Some(ok.cinfo),
        benchmaster_nfs_proto::v4::Resop::Remove(Ok(ok)) => Some(ok.cinfo),
        _ => None,
    }) {
        Some(info) => info,
        None => return Err(answer.wrong("change information is due")),
    };
    hold(before != after, &answer.sent, || format!("the directory's change attribute stays {after}"))?;
    hold(info.after == after, &answer.sent, || {
        format!("change {} after it, GETATTR says {after}", info.after)
    })?;
    hold(!info.atomic || info.before == before, &answer.sent, || {
        format!("change {} before it, called atomic; GETATTR said {before}", info.before)
    })
}

/// RENAME of `a` to `b` in the directory of the check, where both are what is given.
fn rename_onto(t: &mut Trial, from: Kind, to: Kind, allowed: &[S]) -> Tried {
    let dir = t.dir();
    let client = t.a()?;
    client.new_object(&dir, "a", from)?;
    client.new_object(&dir, "b", to)?;
    client.on(&dir, &[SAVED, rename("a", "b")], allowed)
}

/// Makes an object of a type, which has the type then.
fn makes(t: &mut Trial, kind: Createtype4<'_>, number: u32) -> Tried {
    let dir = t.dir();
    let client = t.a()?;
    let fh = client.make(&dir, "x", kind)?;
    let stat = client.stat(&fh)?;
    hold(stat.kind as u32 == number, &format!("CREATE {kind:?}, GETATTR"), || {
        format!("type {:?}; number {number} is right", stat.kind)
    })
}

checks! {
    /// Names and directories.
    LIST, Names;
    "lookup-missing" V4 Must [V40 7530 "16.13", V41 8881 "18.13"]
        "LOOKUP of a name that is not there is NOENT."
        => |t| t.at_dir(&[lookup("missing")], &[S::NOENT]);
    "lookup-in-file" V4 Must [V40 7530 "16.13.5", V41 8881 "18.13.4"]
        "LOOKUP in what is neither a directory nor a symbolic link is NOTDIR."
        => |t| t.at(Kind::File, &[lookup("y")], &[S::NOTDIR]);
    "lookup-in-fifo" V4 Must [V40 7530 "16.13.5", V41 8881 "18.13.4"]
        "LOOKUP in what is neither a directory nor a symbolic link is NOTDIR."
        => |t| t.at(Kind::Fifo, &[lookup("y")], &[S::NOTDIR]);
    "lookup-in-symlink" V4 Must [V40 7530 "16.13.5", V41 8881 "18.13.4"]
        "LOOKUP in a symbolic link is SYMLINK: the server does not follow it."
        => |t| t.at(Kind::Symlink, &[lookup("y")], &[S::SYMLINK]);
    "lookup-empty-name" V4 Must [V40 7530 "16.13.4", V41 8881 "18.13.3"]
        "LOOKUP of a name without characters is INVAL."
        => |t| t.at_dir(&[lookup("")], &[S::INVAL]);
    "lookup-dot" V4 Must [V40 7530 "16.13.5", V41 8881 "18.13.4"]
        "`.` has no meaning of its own: LOOKUP does not give the directory."
        => |t| t.at_dir(&[lookup(".")], NOT_FOUND);
    "lookup-dot-dot" V4 Must [V40 7530 "16.13.5", V41 8881 "18.13.4"]
        "`..` has no meaning of its own: LOOKUP does not give the parent."
        => |t| t.at_dir(&[lookup("..")], NOT_FOUND);
    "lookup-slash" V4 Must [V40 7530 "12.7", V41 8881 "14.5"]
        "A name is one component: LOOKUP does not walk a path."
        => |t| {
            let dir = t.dir();
            let sub = t.a()?.mkdir(&dir, "sub")?;
            t.a()?.mkdir(&sub, "y")?;
            t.at_dir(&[lookup("sub/y")], NOT_FOUND)
        };
    "lookup-long-name" V4 Must [V40 7530 "13.1.7.3", V41 8881 "15.1.7.3"]
        "A name longer than maxname is NAMETOOLONG."
        => |t| {
            let name = "n".repeat(t.longest_name()? + 1);
            t.at_dir(&[lookup(&name)], &[S::NAMETOOLONG])
        };
    "lookup-keeps-current" V4 Must [V40 7530 "16.13.4", V41 8881 "18.13.3"]
        "After a LOOKUP that fails a compound ends, and what follows is not carried out."
        => |t| {
            let dir = t.dir();
            let attrs = Attrs::mode(0o755);
            t.a()?.on(&dir, &[lookup("missing"), mkdir("made", &attrs)], &[S::NOENT])?;
            t.at_dir(&[lookup("made")], &[S::NOENT])
        };
    "lookup-finds" V4 Must [V40 7530 "16.13.4", V41 8881 "18.13.3"]
        "LOOKUP makes the object of the name the current one."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            let answer = client.done(&dir, &[lookup("x"), getattr(&[fattr4::FILEID]), Argop::Getfh])?;
            let (fileid, expected) = (client.decoded(&answer)?.fileid, client.stat(&fh)?.fileid);
            hold(fileid == Some(expected), &answer.sent, || format!("fileid {fileid:?}; {expected} is right"))
        };
    "lookup-case" V4 Must [V40 7530 "5.8.2.3", V41 8881 "5.8.2.3"]
        "Names that differ in case are the same exactly where case_insensitive says so."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            client.needs(&dir, fattr4::CASE_INSENSITIVE, "case_insensitive")?;
            let answer = client.done(&dir, &[getattr(&[fattr4::CASE_INSENSITIVE])])?;
            let ignores = client.decoded(&answer)?.case_insensitive == Some(true);
            client.on(&dir, &[lookup("X")], if ignores { &[S::OK] } else { &[S::NOENT] })
        };
    "lookupp-parent" V4 Must [V40 7530 "16.14", V41 8881 "18.14"]
        "LOOKUPP gives the parent directory."
        => |t| {
            let (dir, sub) = (t.dir(), t.object(Kind::Dir)?);
            let client = t.a()?;
            let answer = client.done(&sub, &[Argop::Lookupp, getattr(&[fattr4::FILEID])])?;
            let (fileid, expected) = (client.decoded(&answer)?.fileid, client.stat(&dir)?.fileid);
            hold(fileid == Some(expected), &answer.sent, || format!("fileid {fileid:?}; {expected} is right"))
        };
    "lookupp-of-root" V4 Must [V40 7530 "16.14", V41 8881 "18.14"]
        "LOOKUPP at the root of the name space is NOENT."
        => |t| t.a()?.gives(&[Argop::Putrootfh, Argop::Lookupp], &[S::NOENT]);
    "lookupp-of-file" V4 Must [V40 7530 "16.14", V41 8881 "18.14"]
        "LOOKUPP of a file is NOTDIR."
        => |t| t.at(Kind::File, &[Argop::Lookupp], &[S::NOTDIR]);
    "lookupp-of-symlink" V4 Must [V40 7530 "16.14", V41 8881 "18.14"]
        "LOOKUPP of a symbolic link is NOTDIR or SYMLINK."
        => |t| t.at(Kind::Symlink, &[Argop::Lookupp], &[S::SYMLINK, S::NOTDIR]);
    "create-directory" V4 Must [V40 7530 "16.4", V41 8881 "18.4"]
        "CREATE makes a directory." => |t| makes(t, Createtype4::Dir, 2);
    "create-symlink" V4 Must [V40 7530 "16.4", V41 8881 "18.4"]
        "CREATE makes a symbolic link." => |t| makes(t, Createtype4::Lnk("target".into()), 5);
    "create-fifo" V4 Must [V40 7530 "16.4", V41 8881 "18.4"]
        "CREATE makes a FIFO." => |t| makes(t, Createtype4::Fifo, 7);
    "create-socket" V4 Must [V40 7530 "16.4", V41 8881 "18.4"]
        "CREATE makes a socket." => |t| makes(t, Createtype4::Sock, 6);
    "create-block-device" V4 Must [V40 7530 "16.4", V41 8881 "18.4"]
        "CREATE makes a block device, of those who may."
        => |t| makes(t, Createtype4::Blk(Specdata4 { specdata1: 7, specdata2: 9 }), 3);
    "create-character-device" V4 Must [V40 7530 "16.4", V41 8881 "18.4"]
        "CREATE makes a character device with its numbers, of those who may."
        => |t| {
            let numbers = Specdata4 { specdata1: 1, specdata2: 3 };
            makes(t, Createtype4::Chr(numbers), 4)?;
            let dir = t.dir();
            let client = t.a()?;
            client.needs(&dir, fattr4::RAWDEV, "rawdev")?;
            let answer = client.done(&dir, &[lookup("x"), getattr(&[fattr4::RAWDEV])])?;
            let got = client.decoded(&answer)?.rawdev;
            hold(got == Some(numbers), &answer.sent, || format!("{got:?}; {numbers:?} is right"))
        };
    "create-regular-file" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE of a regular file is BADTYPE: OPEN makes files."
        => |t| t.at_dir(&[create(Createtype4::Other(1), b"x", &Attrs::none())], &[S::BADTYPE]);
    "create-unknown-type" V4 Must [V40 7530 "13.1.4.1", V41 8881 "15.1.4.1"]
        "CREATE of a type that does not exist is BADTYPE, or the number does not decode."
        => |t| t.at_dir(&[create(Createtype4::Other(99), b"x", &Attrs::none())], &[S::BADTYPE, S::BADXDR, S::INVAL]);
    "create-existing" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE of a name that is there is EXIST."
        => |t| { t.object(Kind::Dir)?; t.at_dir(&[mkdir("x", &Attrs::none())], &[S::EXIST]) };
    "create-over-file" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE of the name of a file is EXIST."
        => |t| { t.object(Kind::File)?; t.at_dir(&[mkdir("x", &Attrs::none())], &[S::EXIST]) };
    "create-empty-name" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE of a name without characters is INVAL."
        => |t| t.at_dir(&[mkdir("", &Attrs::none())], &[S::INVAL]);
    "create-dot" V4 Must [V40 7530 "12.7", V41 8881 "14.5"]
        "`.` is no name for a new object: BADNAME, or EXIST where it names the directory."
        => |t| t.at_dir(&[mkdir(".", &Attrs::none())], &[BAD_NAME, &[S::EXIST]].concat());
    "create-dot-dot" V4 Must [V40 7530 "12.7", V41 8881 "14.5"]
        "`..` is no name for a new object: BADNAME, or EXIST where it names the parent."
        => |t| t.at_dir(&[mkdir("..", &Attrs::none())], &[BAD_NAME, &[S::EXIST]].concat());
    "create-long-name" V4 Must [V40 7530 "13.1.7.3", V41 8881 "15.1.7.3"]
        "A name longer than maxname is NAMETOOLONG."
        => |t| {
            let name = "n".repeat(t.longest_name()? + 1);
            t.at_dir(&[mkdir(&name, &Attrs::none())], &[S::NAMETOOLONG])
        };
    "create-longest-name" V4 Must [V40 7530 "5.8.2.15", V41 8881 "5.8.2.17"]
        "A name of maxname bytes is taken, and found again."
        => |t| {
            let name = "n".repeat(t.longest_name()?);
            t.at_dir(&[mkdir(&name, &Attrs::mode(0o755))], &[S::OK])?;
            t.at_dir(&[lookup(&name)], &[S::OK])
        };
    "create-utf8-name" V4 Must [V40 7530 "12.4", V41 8881 "14.4"]
        "A name in UTF-8 is taken, and READDIR gives the same bytes or a normalised form."
        => |t| {
            t.at_dir(&[mkdir("größe-Ελ-日本", &Attrs::mode(0o755))], &[S::OK])?;
            t.at_dir(&[lookup("größe-Ελ-日本")], &[S::OK])
        };
    "create-in-file" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE in a file is NOTDIR."
        => |t| t.at(Kind::File, &[mkdir("y", &Attrs::none())], &[S::NOTDIR]);
    "create-in-symlink" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE in a symbolic link is NOTDIR (or SYMLINK)."
        => |t| t.at(Kind::Symlink, &[mkdir("y", &Attrs::none())], &[S::NOTDIR, S::SYMLINK]);
    "create-change-info" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE changes the directory's change attribute, and gives its values truly."
        => |t| change_info(t, mkdir("x", &Attrs::mode(0o755)));
    "create-mode" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE gives a new object the mode asked for, and says which attributes it set."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let attrs = Attrs::mode(0o705);
            let answer = client.done(&dir, &[mkdir("x", &attrs), Argop::Getfh])?;
            let set = body!(answer, Create).attrset;
            let mode = client.stat(&answer.fh()?)?.mode;
            hold(mode & 0o777 == 0o705, &answer.sent, || format!("mode {mode:o}; 705 is right"))?;
            hold(set.contains(fattr4::MODE), &answer.sent, || format!("attributes set: {set:?}; mode is missing"))
        };
    "create-attrset" V4 Must [V40 7530 "16.4.4", V41 8881 "18.4.3"]
        "CREATE does not say that it set attributes that were not asked for."
        => |t| {
            let dir = t.dir();
            let attrs = Attrs::mode(0o755);
            let answer = t.a()?.done(&dir, &[mkdir("x", &attrs)])?;
            let set = body!(answer, Create).attrset;
            let only = Bitmap4::of(&[fattr4::MODE]);
            hold(set.is_subset(&only), &answer.sent, || format!("attributes set: {set:?}; at most mode is right"))
        };
    "create-read-only-attribute" V4 Must [V40 7530 "5.5", V41 8881 "5.5"]
        "Setting an attribute that can only be read is INVAL."
        => |t| {
            let mask = Bitmap4::of(&[fattr4::FILEID]);
            t.at_dir(&[mkdir("x", &Attrs { mask, values: vec![0; 8] })], &[S::INVAL])
        };
    "readlink-text" V4 Must [V40 7530 "16.25", V41 8881 "18.24.3"]
        "READLINK gives the text that the link was made with, as it is."
        => |t| {
            let text = "a//b/../ü ";
            let dir = t.dir();
            let client = t.a()?;
            let fh = client.make(&dir, "x", Createtype4::Lnk(text.into()))?;
            let answer = client.done(&fh, &[Argop::Readlink])?;
            let link = body!(answer, Readlink).link;
            hold(link.0 == text.as_bytes(), &answer.sent, || format!("{link:?}; {text:?} is right"))?;
            let size = client.stat(&fh)?.size;
            hold(size == text.len() as u64, "GETATTR size of a symbolic link", || {
                format!("{size}; its text has {} bytes", text.len())
            })
        };
    "readlink-of-file" V40 Must [V40 7530 "16.25"]
        "READLINK of a file is INVAL." => |t| t.at(Kind::File, &[Argop::Readlink], &[S::INVAL]);
    "readlink-of-directory" V40 Must [V40 7530 "16.25"]
        "READLINK of a directory is INVAL or ISDIR."
        => |t| t.at(Kind::Dir, &[Argop::Readlink], &[S::INVAL, S::ISDIR]);
    "readlink-of-file-4.1" V41 Must [V41 8881 "18.24.4"]
        "READLINK of a file is WRONG_TYPE (INVAL was right in 4.0)."
        => |t| t.at(Kind::File, &[Argop::Readlink], &[S::WRONG_TYPE, S::INVAL]);
    "readlink-of-directory-4.1" V41 Must [V41 8881 "18.24.4"]
        "READLINK of a directory is WRONG_TYPE (INVAL and ISDIR were right in 4.0)."
        => |t| t.at(Kind::Dir, &[Argop::Readlink], &[S::WRONG_TYPE, S::INVAL, S::ISDIR]);
    "remove-missing" V4 Must [V40 7530 "16.26", V41 8881 "18.25"]
        "REMOVE of a name that is not there is NOENT."
        => |t| t.at_dir(&[remove("missing")], &[S::NOENT]);
    "remove-file" V4 Must [V40 7530 "16.26", V41 8881 "18.25"]
        "REMOVE of a file takes its name away."
        => |t| { t.object(Kind::File)?; t.at_dir(&[remove("x")], &[S::OK])?; t.at_dir(&[lookup("x")], &[S::NOENT]) };
    "remove-directory" V4 Must [V40 7530 "16.26", V41 8881 "18.25"]
        "REMOVE takes an empty directory away too."
        => |t| { t.object(Kind::Dir)?; t.at_dir(&[remove("x")], &[S::OK])?; t.at_dir(&[lookup("x")], &[S::NOENT]) };
    "remove-symlink" V4 Must [V40 7530 "16.26", V41 8881 "18.25"]
        "REMOVE takes a symbolic link away, not what it names."
        => |t| {
            let dir = t.dir();
            t.a()?.file(&dir, "target", b"")?;
            t.object(Kind::Symlink)?;
            t.at_dir(&[remove("x")], &[S::OK])?;
            t.at_dir(&[lookup("target")], &[S::OK])
        };
    "remove-full-directory" V4 Must [V40 7530 "16.26", V41 8881 "15.1.4.10"]
        "REMOVE of a directory with entries is NOTEMPTY."
        => |t| {
            let sub = t.object(Kind::Dir)?;
            t.a()?.file(&sub, "y", b"")?;
            t.at_dir(&[remove("x")], &[S::NOTEMPTY])?;
            t.a()?.on(&sub, &[lookup("y")], &[S::OK])
        };
    "remove-in-file" V4 Must [V40 7530 "16.26", V41 8881 "15.1.2.6"]
        "REMOVE in a file is NOTDIR." => |t| t.at(Kind::File, &[remove("y")], &[S::NOTDIR]);
    "remove-empty-name" V4 Must [V40 7530 "16.26.4", V41 8881 "18.25.3"]
        "REMOVE of a name without characters is INVAL." => |t| t.at_dir(&[remove("")], &[S::INVAL]);
    "remove-dot" V4 Must [V40 7530 "12.7", V41 8881 "14.5"]
        "REMOVE of `.` does not take the directory away."
        => |t| { t.at_dir(&[remove(".")], NOT_FOUND)?; t.at_dir(&[getattr(&[fattr4::TYPE])], &[S::OK]) };
    "remove-dot-dot" V4 Must [V40 7530 "12.7", V41 8881 "14.5"]
        "REMOVE of `..` does not take the parent away." => |t| t.at_dir(&[remove("..")], NOT_FOUND);
    "remove-change-info" V4 Must [V40 7530 "16.26.4", V41 8881 "18.25.3"]
        "REMOVE changes the directory's change attribute, and gives its values truly."
        => |t| { t.object(Kind::File)?; change_info(t, remove("x")) };
    "remove-makes-stale" V4 Must [V40 7530 "13.1.2.7", V41 8881 "15.1.2.7"]
        "The handle of an object that was removed, and that no client has open, is STALE."
        => |t| {
            let fh = t.object(Kind::Dir)?;
            t.at_dir(&[remove("x")], &[S::OK])?;
            t.a()?.gives(&[putfh(&fh), getattr(&[fattr4::TYPE])], &[S::STALE, S::FHEXPIRED, S::NOENT])
        };
    "remove-one-link" V4 Must [V40 7530 "16.26", V41 8881 "18.25.3"]
        "REMOVE of one of two links leaves the file under the other, with one link."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            linked(client.between(&fh, &dir, link("y"))?)?;
            client.done(&dir, &[remove("x")])?;
            let links = client.stat(&fh)?.links;
            hold(links == 1, "LINK, REMOVE of one name, GETATTR", || format!("{links} links; 1 is right"))?;
            client.on(&dir, &[lookup("y")], &[S::OK])
        };
    "remove-open-file" V4 Should [V40 7530 "16.26.5", V41 8881 "18.25.4"]
        "The name of an open file can be removed, and what has it open reads on."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("reader", &dir, "x", Share::READ)?;
            let answer = client.compound(&[putfh(&dir), remove("x")])?;
            answer.is(&[S::OK])?;
            client.on(&open.fh, &[read(open.stateid, 0, 10)], &[S::OK])
        };
    "rename-missing" V4 Must [V40 7530 "16.27", V41 8881 "18.26"]
        "RENAME of a name that is not there is NOENT."
        => |t| t.at_dir(&[SAVED, rename("missing", "y")], &[S::NOENT]);
    "rename-moves" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME gives an object its new name and takes the old one away; the object stays the same."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            client.done(&dir, &[SAVED, rename("x", "y")])?;
            client.on(&dir, &[lookup("x")], &[S::NOENT])?;
            let (old, found) = (client.stat(&fh)?.fileid, client.find(&dir, "y")?);
            let new = client.stat(&found.unwrap_or_default())?.fileid;
            hold(old == new, "RENAME x y, LOOKUP y, GETATTR", || format!("fileid {new}; {old} is right"))
        };
    "rename-keeps-handle" V4 Should [V40 7530 "16.27.5", V41 8881 "18.26.4"]
        "A filehandle stays good when its object is renamed."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            t.a()?.done(&dir, &[SAVED, rename("x", "y")])?;
            t.a()?.on(&fh, &[getattr(&[fattr4::TYPE])], &[S::OK])
        };
    "rename-replaces-file" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME over a file replaces it."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let a = client.file(&dir, "a", b"new")?;
            client.file(&dir, "b", b"old content")?;
            client.done(&dir, &[SAVED, rename("a", "b")])?;
            client.on(&dir, &[lookup("a")], &[S::NOENT])?;
            let found = client.find(&dir, "b")?.unwrap_or_default();
            let (one, other) = (client.stat(&a)?, client.stat(&found)?);
            hold(one.fileid == other.fileid && other.size == 3, "RENAME a b, LOOKUP b, GETATTR", || {
                format!("size {} and fileid {}; 3 and {} are right", other.size, other.fileid, one.fileid)
            })
        };
    "rename-file-over-directory" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME of a file over a directory is EXIST (Linux: also ISDIR)."
        => |t| rename_onto(t, Kind::File, Kind::Dir, &[S::EXIST, S::ISDIR]);
    "rename-directory-over-file" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME of a directory over a file is EXIST (Linux: also NOTDIR)."
        => |t| rename_onto(t, Kind::Dir, Kind::File, &[S::EXIST, S::NOTDIR]);
    "rename-over-empty-directory" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME of a directory over an empty one replaces it."
        => |t| rename_onto(t, Kind::Dir, Kind::Dir, &[S::OK]);
    "rename-over-full-directory" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME of a directory over one with entries is EXIST (Linux: NOTEMPTY)."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            client.mkdir(&dir, "a")?;
            let full = client.mkdir(&dir, "b")?;
            client.file(&full, "y", b"")?;
            client.on(&dir, &[SAVED, rename("a", "b")], &[S::EXIST, S::NOTEMPTY])?;
            client.on(&full, &[lookup("y")], &[S::OK])
        };
    "rename-into-itself" V4 Must [V40 7530 "16.27.5", V41 8881 "18.26.4"]
        "RENAME of a directory into itself is INVAL."
        => |t| {
            let (dir, sub) = (t.dir(), t.object(Kind::Dir)?);
            t.a()?.between(&dir, &sub, rename("x", "y"))?.is(&[S::INVAL])
        };
    "rename-to-itself" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME to the same name does nothing, and succeeds."
        => |t| {
            t.object(Kind::File)?;
            t.at_dir(&[SAVED, rename("x", "x")], &[S::OK])?;
            t.at_dir(&[lookup("x")], &[S::OK])
        };
    "rename-to-link-of-itself" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME of one link to another of the same file does nothing: both stay."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            linked(t.a()?.between(&fh, &dir, link("y"))?)?;
            t.at_dir(&[SAVED, rename("x", "y")], &[S::OK])?;
            t.at_dir(&[lookup("x")], &[S::OK])?;
            t.at_dir(&[lookup("y")], &[S::OK])
        };
    "rename-across-directories" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME between directories changes the change attribute of both; LOOKUPP gives the new parent."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let (one, two) = (client.mkdir(&dir, "one")?, client.mkdir(&dir, "two")?);
            let moved = client.mkdir(&one, "x")?;
            let before = (client.stat(&one)?.change, client.stat(&two)?.change);
            let answer = client.between(&one, &two, rename("x", "y"))?.ok()?;
            let after = (client.stat(&one)?.change, client.stat(&two)?.change);
            let info = body!(answer, Rename);
            hold(before.0 != after.0 && before.1 != after.1, &answer.sent, || {
                format!("change attributes {before:?} before, {after:?} after")
            })?;
            let told = (info.source_cinfo.after, info.target_cinfo.after);
            hold(told == after, &answer.sent, || format!("change {told:?} after; GETATTR says {after:?}"))?;
            let answer = client.done(&moved, &[Argop::Lookupp, getattr(&[fattr4::FILEID])])?;
            let (parent, expected) = (client.decoded(&answer)?.fileid, client.stat(&two)?.fileid);
            hold(parent == Some(expected), &answer.sent, || format!("parent {parent:?}; {expected} is right"))
        };
    "rename-from-file" V4 Must [V40 7530 "16.27.5", V41 8881 "15.1.2.6"]
        "RENAME out of a file is NOTDIR."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            t.a()?.between(&fh, &dir, rename("x", "y"))?.is(&[S::NOTDIR])
        };
    "rename-to-file" V4 Must [V40 7530 "16.27.5", V41 8881 "15.1.2.6"]
        "RENAME into a file is NOTDIR."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            t.a()?.between(&dir, &fh, rename("x", "y"))?.is(&[S::NOTDIR])
        };
    "rename-empty-old-name" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME of a name without characters is INVAL."
        => |t| t.at_dir(&[SAVED, rename("", "y")], &[S::INVAL]);
    "rename-empty-new-name" V4 Must [V40 7530 "16.27.4", V41 8881 "18.26.3"]
        "RENAME to a name without characters is INVAL."
        => |t| { t.object(Kind::File)?; t.at_dir(&[SAVED, rename("x", "")], &[S::INVAL]) };
    "rename-dot" V4 Must [V40 7530 "16.27.5", V41 8881 "18.26.4"]
        "RENAME to `.` or `..` is refused."
        => |t| {
            t.object(Kind::Dir)?;
            let refused = [BAD_NAME, &[S::EXIST, S::NOTEMPTY]].concat();
            t.at_dir(&[SAVED, rename("x", "..")], &refused)?;
            t.at_dir(&[SAVED, rename(".", "y")], NOT_FOUND)
        };
    "link-names-file" V4 Must [V40 7530 "16.9.4", V41 8881 "18.9.3"]
        "LINK gives a file one more name; its number of links and change attribute change."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            let before = client.stat(&fh)?;
            linked(client.between(&fh, &dir, link("y"))?)?;
            let (after, found) = (client.stat(&fh)?, client.find(&dir, "y")?.unwrap_or_default());
            let other = client.stat(&found)?;
            hold(after.links == 2 && other.fileid == after.fileid, "LINK, GETATTR of both names", || {
                format!("{} links, fileids {} and {}", after.links, after.fileid, other.fileid)
            })?;
            hold(after.change != before.change, "LINK, GETATTR", || "the file's change attribute stays".into())
        };
    "link-existing" V4 Must [V40 7530 "16.9.4", V41 8881 "18.9.3"]
        "LINK to a name that is there is EXIST."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            linked(t.a()?.between(&fh, &dir, link("y"))?)?;
            t.a()?.between(&fh, &dir, link("y"))?.is(&[S::EXIST])
        };
    "link-directory" V4 Must [V40 7530 "16.9.5", V41 8881 "18.9.4"]
        "LINK of a directory is ISDIR."
        => |t| {
            let (dir, sub) = (t.dir(), t.object(Kind::Dir)?);
            t.a()?.between(&sub, &dir, link("y"))?.is(&[S::ISDIR, S::WRONG_TYPE])
        };
    "link-into-file" V4 Must [V40 7530 "16.9", V41 8881 "15.1.2.6"]
        "LINK into what is no directory is NOTDIR."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let other = t.a()?.file(&dir, "other", b"")?;
            t.a()?.between(&fh, &other, link("y"))?.is(&[S::NOTDIR])
        };
    "link-empty-name" V4 Must [V40 7530 "16.9.4", V41 8881 "18.9.3"]
        "LINK to a name without characters is INVAL."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            t.a()?.between(&fh, &dir, link(""))?.is(&[S::INVAL])
        };
    "link-change-info" V4 Must [V40 7530 "16.9.4", V41 8881 "18.9.3"]
        "LINK gives the directory's change attribute after it truly."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            let answer = linked(client.between(&fh, &dir, link("y"))?)?;
            let (told, after) = (body!(answer, Link).cinfo.after, client.stat(&dir)?.change);
            hold(told == after, &answer.sent, || format!("change {told} after it; GETATTR says {after}"))
        };
}

/// LINK succeeded, or the file system has no links.
fn linked(answer: crate::nfs::client4::Answer) -> Result<crate::nfs::client4::Answer, Stop> {
    if matches!(answer.status(), S::NOTSUPP) {
        return Err(Stop::not_applicable("the file system has no hard links"));
    }
    answer.ok()
}
