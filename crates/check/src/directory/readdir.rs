//! Listing directories: each name once, also while names come and go.

use rustix::fs::{FileType, OFlags, SeekFrom};

use super::Directory;
use super::here::{Asked, holds, listed, same};
use crate::{Check, Group};

const GROUP: Group = Group::Readdir;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("readdir-lists-each-once", "readdir()", "Of 3,000 names each is listed once.", |here| {
        let mut expected: Vec<Vec<u8>> =
            (0..3000).map(|number| format!("name-{number}").into_bytes()).collect();
        for name in &expected {
            drop(here.open(name, OFlags::CREATE | OFlags::WRONLY, 0o644).ok()?);
        }
        let mut names = here.names(".")?;
        names.sort();
        expected.sort();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        holds(twice.is_none(), "names listed twice", || {
            twice.map(|pair| String::from_utf8_lossy(&pair[0]).into_owned()).unwrap_or_default()
        })?;
        same("number of names", names.len(), expected.len())?;
        holds(names == expected, "names", || "others than those made".into())
    }),
    must!("readdir-dots", "readdir()", "Dot and dot-dot, where they are listed, are listed once.", |here| {
        here.file("a", b"")?;
        let open = here.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
        let entries = listed(&open)?;
        for name in [&b"."[..], b".."] {
            let times = entries.iter().filter(|entry| entry.name == name).count();
            holds(times <= 1, "entries for dot or dot-dot", || times.to_string())?;
        }
        Ok(())
    }),
    must!(
        "readdir-inode",
        "readdir()",
        "The inode and the type of an entry are those of its file.",
        |here| {
            here.file("file", b"")?;
            here.mkdir("directory").ok()?;
            here.symlink("file", "link").ok()?;
            let open = here.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
            for entry in listed(&open)?.iter().filter(|entry| !entry.name.starts_with(b".")) {
                let status = here.lstat(&entry.name).ok()?;
                same("inode of an entry", entry.inode, status.st_ino)?;
                let known =
                    entry.kind == FileType::Unknown || entry.kind == FileType::from_raw_mode(status.st_mode);
                holds(known, "type of an entry", || format!("{:?}", entry.kind))?;
            }
            Ok(())
        }
    ),
    must!(
        "readdir-while-removing",
        "readdir()",
        "Names that stay are listed once, also while others are removed.",
        |here| {
            for number in 0..1000 {
                here.file(format!("gone-{number}"), b"")?;
                here.file(format!("stay-{number}"), b"")?;
            }
            let open = here.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
            let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
            let mut listing = rustix::fs::RawDir::new(&open, &mut buffer);
            let mut stayed = Vec::new();
            let mut removed = 0;
            while let Some(entry) = listing.next() {
                let name = Asked::new("getdents".into(), entry).ok()?.file_name().to_bytes().to_vec();
                if name.starts_with(b"stay-") {
                    stayed.push(name);
                }
                // As many as are listed, from the end: those behind the position and those before it.
                if removed < 1000 {
                    here.unlink(format!("gone-{}", 999 - removed)).ok()?;
                    removed += 1;
                }
            }
            let listed = stayed.len();
            stayed.sort();
            stayed.dedup();
            same("names that stay, listed", (listed, stayed.len()), (1000, 1000))
        }
    ),
    must!(
        "readdir-remove-all",
        "readdir()",
        "Who lists and removes what is listed ends with an empty directory.",
        |here| {
            here.mkdir("d").ok()?;
            for number in 0..1500 {
                here.file(format!("d/f{number}"), b"")?;
            }
            // As `rm -r` does: until a listing is empty, three times at most.
            for _ in 0..3 {
                for name in here.names("d")? {
                    here.unlink([b"d/", &name[..]].concat()).ok()?;
                }
            }
            here.rmdir("d").ok()
        }
    ),
    must!(
        "readdir-again",
        "rewinddir()",
        "A listing that starts again shows what was made meanwhile.",
        |here| {
            here.file("a", b"")?;
            let open = here.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
            let before = listed(&open)?.len();
            here.file("b", b"")?;
            Asked::new("lseek to the start".into(), rustix::fs::seek(&open, SeekFrom::Start(0))).ok()?;
            same("entries", listed(&open)?.len(), before + 1)
        }
    ),
    must!(
        "readdir-positions",
        "seekdir()",
        "From the position of an entry the listing goes on behind it.",
        |here| {
            for number in 0..500 {
                here.file(format!("f{number}"), b"")?;
            }
            let open = here.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
            let all = listed(&open)?;
            for at in [0, 1, 17, 250, all.len() - 2, all.len() - 1] {
                let seek = rustix::fs::seek(&open, SeekFrom::Start(all[at].next));
                Asked::new("lseek to an entry's position".into(), seek).ok()?;
                let rest: Vec<Vec<u8>> = listed(&open)?.into_iter().map(|entry| entry.name).collect();
                let expected: Vec<Vec<u8>> = all[at + 1..].iter().map(|entry| entry.name.clone()).collect();
                holds(rest == expected, "entries behind a position", || {
                    format!("{} of {}", rest.len(), expected.len())
                })?;
            }
            Ok(())
        }
    ),
];
