//! Listing directories with version 4.

use std::collections::HashSet;

use benchmaster_nfs_proto::v4::{Attributes, Nfsstat4 as S, Verifier4, fattr4};

use super::Kind;
use crate::nfs::client4::{Client4, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const MANY: usize = 60;

/// An entry: cookie and name.
type Entry = (u64, String);

/// One page of a directory, whether it is the last, and the verifier.
fn page(
    client: &mut Client4,
    dir: &[u8],
    from: (u64, Verifier4),
    most: u32,
) -> Result<(Vec<Entry>, bool, Verifier4), Stop> {
    let answer = client.done(dir, &[readdir(from.0, from.1, most, &[])])?;
    let page = body!(answer, Readdir);
    let entry = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let entries: Vec<Entry> = page.entries.iter().map(|one| (one.cookie, entry(one.name.0))).collect();
    hold(!entries.is_empty() || page.eof, &answer.sent, || "no entries, and not the end".into())?;
    Ok((entries, page.eof, page.cookieverf))
}

/// All of a directory, in pages.
fn all(client: &mut Client4, dir: &[u8], most: u32) -> Result<Vec<Entry>, Stop> {
    let (mut from, mut entries) = ((0, [0; 8]), Vec::new());
    for _ in 0..10 * MANY {
        let (some, eof, verifier) = page(client, dir, from, most)?;
        entries.extend(some);
        if eof {
            return Ok(entries);
        }
        from = (entries.last().map_or(0, |(cookie, _)| *cookie), verifier);
    }
    Err(Stop::failed("READDIR, page after page", "no end"))
}

/// A directory with many entries, and their names.
fn full(t: &mut Trial) -> Result<HashSet<String>, Stop> {
    let dir = t.dir();
    let client = t.a()?;
    let names: HashSet<String> = (0..MANY).map(|n| format!("entry-{n:03}")).collect();
    for name in &names {
        client.mkdir(&dir, name)?;
    }
    Ok(names)
}

/// Each name is listed once.
fn lists_each_once(t: &mut Trial, most: u32) -> Tried {
    let names = full(t)?;
    let dir = t.dir();
    let entries = all(t.a()?, &dir, most)?;
    let listed: HashSet<String> = entries.iter().map(|(_, name)| name.clone()).collect();
    hold(
        listed == names && entries.len() == MANY,
        &format!("READDIR of {MANY} entries, {most} bytes a page"),
        || {
            let missing: Vec<&String> = names.difference(&listed).collect();
            format!("{} entries, {} different; missing {missing:?}", entries.len(), listed.len())
        },
    )
}

checks! {
    /// Listings.
    LIST, Readdir;
    "readdir-empty" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR of an empty directory gives the end, and no `.` and `..`."
        => |t| {
            let sub = t.object(Kind::Dir)?;
            let (entries, eof, _) = page(t.a()?, &sub, (0, [0; 8]), 4096)?;
            hold(entries.is_empty() && eof, "READDIR of an empty directory", || format!("{entries:?}, eof {eof}"))
        };
    "readdir-each-once" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR gives each entry once, in one page." => |t| lists_each_once(t, 65_536);
    "readdir-each-once-in-pages" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR gives each entry once, over many small pages." => |t| lists_each_once(t, 512);
    "readdir-page-size" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR gives no more than maxcount bytes."
        => |t| {
            full(t)?;
            let dir = t.dir();
            let answer = t.a()?.done(&dir, &[readdir(0, [0; 8], 600, &[fattr4::TYPE, fattr4::FILEID])])?;
            // Before it: the head of the compound, PUTFH and status.
            let page = body!(answer, Readdir);
            let bytes: usize = page.entries.iter().map(|one| {
                4 + 8 + 4 + one.name.0.len().next_multiple_of(4) + 4 + 4 * one.attrs.attrmask.wire_words() + 4
                    + one.attrs.attr_vals.0.len().next_multiple_of(4)
            }).sum();
            hold(bytes + 16 <= 600, &answer.sent, || format!("{} bytes", bytes + 16))
        };
    "readdir-too-small" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR with a maxcount in which no entry fits is TOOSMALL."
        => |t| { t.object(Kind::File)?; t.at_dir(&[readdir(0, [0; 8], 16, &[])], &[S::TOOSMALL]) };
    "readdir-of-file" V4 Must [V40 7530 "13.1.2.6", V41 8881 "15.1.2.6"]
        "READDIR of a file is NOTDIR." => |t| t.at(Kind::File, &[readdir(0, [0; 8], 4096, &[])], &[S::NOTDIR]);
    "readdir-of-symlink" V4 Must [V40 7530 "13.1.2.6", V41 8881 "15.1.2.6"]
        "READDIR of a symbolic link is NOTDIR (or SYMLINK)."
        => |t| t.at(Kind::Symlink, &[readdir(0, [0; 8], 4096, &[])], &[S::NOTDIR, S::SYMLINK]);
    "readdir-reserved-cookie" V4 Should [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR from the cookies 1 and 2, which are reserved, is BAD_COOKIE."
        => |t| {
            t.object(Kind::File)?;
            t.at_dir(&[readdir(1, [0; 8], 4096, &[])], &[S::BAD_COOKIE])?;
            t.at_dir(&[readdir(2, [0; 8], 4096, &[])], &[S::BAD_COOKIE])
        };
    "readdir-cookies" V4 Should [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR gives each entry a cookie of its own, and none of 0, 1 and 2."
        => |t| {
            full(t)?;
            let dir = t.dir();
            let entries = all(t.a()?, &dir, 8192)?;
            let cookies: HashSet<u64> = entries.iter().map(|(cookie, _)| *cookie).collect();
            hold(cookies.len() == entries.len() && !cookies.iter().any(|cookie| *cookie <= 2), "READDIR", || {
                format!("{} cookies for {} entries, the smallest {:?}", cookies.len(), entries.len(), cookies.iter().min())
            })
        };
    "readdir-attributes" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR gives of each entry the attributes asked for, as GETATTR does."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            let asked = [fattr4::TYPE, fattr4::SIZE, fattr4::FILEID, fattr4::MODE];
            let stat = client.stat(&fh)?;
            let answer = client.done(&dir, &[readdir(0, [0; 8], 4096, &asked)])?;
            let entry = body!(answer, Readdir).entries.iter().next();
            let entry = entry.ok_or_else(|| answer.wrong("the entry `x` is right"))?;
            let got = Attributes::decode(&entry.attrs).map_err(|error| answer.wrong(error.to_string()))?;
            let right = got.file_type == Some(stat.kind) && got.size == Some(stat.size)
                && got.fileid == Some(stat.fileid) && got.mode == Some(stat.mode);
            hold(right, &answer.sent, || format!("{got:?}; GETATTR says {stat:?}"))
        };
    "readdir-write-only" V4 Must [V40 7530 "5.5", V41 8881 "5.5"]
        "READDIR with an attribute that can only be set is INVAL."
        => |t| { t.object(Kind::File)?; t.at_dir(&[readdir(0, [0; 8], 4096, &[fattr4::TIME_ACCESS_SET])], &[S::INVAL]) };
    "readdir-rdattr-error" V4 Must [V40 7530 "5.8.1.12", V41 8881 "5.8.1.12"]
        "READDIR may be asked for rdattr_error; where nothing is wrong it does not say otherwise."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let answer = t.a()?.done(&dir, &[readdir(0, [0; 8], 4096, &[fattr4::RDATTR_ERROR, fattr4::TYPE])])?;
            let entry = body!(answer, Readdir).entries.iter().next();
            let entry = entry.ok_or_else(|| answer.wrong("the entry `x` is right"))?;
            let got = Attributes::decode(&entry.attrs).map_err(|error| answer.wrong(error.to_string()))?;
            hold(got.rdattr_error.is_none_or(|status| status == S::OK), &answer.sent, || format!("{got:?}"))
        };
    "readdir-sees-changes" V4 Must [V40 7530 "16.24.4", V41 8881 "18.23.3"]
        "READDIR from the start sees what was made and removed before."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            client.mkdir(&dir, "one")?;
            client.mkdir(&dir, "two")?;
            client.done(&dir, &[remove("one")])?;
            let names: Vec<String> = all(client, &dir, 4096)?.into_iter().map(|(_, name)| name).collect();
            hold(names == ["two"], "READDIR after two CREATEs and a REMOVE", || format!("{names:?}"))
        };
    "readdir-while-removing" V4 Linux [V40 linux "readdir(3)", V41 linux "readdir(3)"]
        "Removing the entries of a page that was read does not hide those of the next (`rm -r` depends on it)."
        => |t| {
            let names = full(t)?;
            let dir = t.dir();
            let client = t.a()?;
            let (mut from, mut seen) = ((0, [0; 8]), HashSet::new());
            loop {
                let (some, eof, verifier) = page(client, &dir, from, 700)?;
                from = (some.last().map_or(from.0, |(cookie, _)| *cookie), verifier);
                for (_, name) in some {
                    client.done(&dir, &[remove(&name)])?;
                    seen.insert(name);
                }
                if eof {
                    break;
                }
            }
            hold(seen == names, "READDIR and REMOVE in turns", || format!("{} of {} entries seen", seen.len(), names.len()))
        };
}
