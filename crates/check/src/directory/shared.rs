//! The same directory through two mounts: what one host must see of another's work.

use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Here, Tried, holds, joined, read, same, status, tick, write_all};
use super::lock::{Owner, TAKEN, blocker, set, unlocks, wait, writes};
use crate::{Check, Group};

const GROUP: Group = Group::Coherence;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "shared-close-to-open",
        "close()",
        "Who opens a file after it was closed elsewhere reads what was written.",
        |here| {
            let there = here.there()?;
            for turn in 0..20u8 {
                let [writer, reader] = in_turn(here, there, turn);
                let data = vec![turn; 1000 + usize::from(turn) * 777];
                let file = writer.open("a", OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY, 0o644).ok()?;
                write_all(&file, &data, 0)?;
                drop(file);
                holds(reader.content("a")? == data, "content through the other path", || {
                    format!("older, in turn {turn}")
                })?;
            }
            Ok(())
        }
    ),
    must!(
        "shared-same-size",
        "close()",
        "Who opens a file after it was rewritten elsewhere, at the same size, reads the new bytes.",
        |here| { rewritten(here, tick) }
    ),
    should!(
        "shared-same-size-at-once",
        "close()",
        "The same when it is rewritten within a tick of the server's clock (over NFS only where the change attribute counts).",
        |here| { rewritten(here, || {}) }
    ),
    must!(
        "shared-truncation",
        "close()",
        "Who opens a file after it was truncated elsewhere sees the new size.",
        |here| {
            let there = here.there()?;
            here.file("a", &[1; 10_000])?;
            same("size before", status(there.edit("a")?)?.st_size, 10_000)?;
            here.truncate("a", 10)?;
            same("size by a new open", status(there.edit("a")?)?.st_size, 10)?;
            same("content by a new open", there.content("a")?, vec![1; 10])
        }
    ),
    must!(
        "shared-exclusive-create",
        "open()",
        "O_EXCL fails for a name that was made elsewhere: EEXIST.",
        |here| {
            let there = here.there()?;
            there.stat("a").fails(&[Errno::NOENT])?;
            here.file("a", b"")?;
            there.open("a", OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY, 0o644).fails(&[Errno::EXIST])?;
            there.mkdir("a").fails(&[Errno::EXIST])
        }
    ),
    must!("shared-exclusive-race", "open()", "Of creators on both sides exactly one wins.", |here| {
        let there = here.there()?;
        for round in 0..20 {
            let name = format!("race-{round}");
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            let winners = std::thread::scope(|scope| {
                let threads: Vec<_> = [here, there, here, there]
                    .map(|side| scope.spawn(|| side.open(&name, flags, 0o644).answer().is_ok()))
                    .into_iter()
                    .collect();
                threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|won| *won).count()
            });
            same("winners", winners, 1)?;
        }
        Ok(())
    }),
    must!(
        "shared-unlink",
        "unlink()",
        "A name that was removed elsewhere is not opened: ENOENT (or ESTALE).",
        |here| {
            let there = here.there()?;
            here.file("a", b"x")?;
            there.content("a")?;
            here.unlink("a").ok()?;
            there.open("a", OFlags::RDONLY, 0).fails(&[Errno::NOENT, Errno::STALE])
        }
    ),
    should!(
        "shared-rename",
        "rename()",
        "Who opens a name that was replaced elsewhere reads the new file (an NFS client may take until its directory's attributes expire).",
        |here| {
            let there = here.there()?;
            for turn in 0..10u8 {
                let [writer, reader] = in_turn(here, there, turn);
                writer.file("next", &[turn; 100])?;
                writer.rename("next", "a").ok()?;
                same("first and last byte", first_and_last(&reader.content("a")?), Some((turn, turn)))?;
            }
            Ok(())
        }
    ),
    must!(
        "shared-lock-excludes",
        "fcntl()",
        "A lock excludes the other side, and is free for it when released.",
        |here| {
            let there = here.there()?;
            let mine = here.create("a")?;
            let other = there.edit("a")?;
            set(&mine, Owner::Open, writes(0, 10)).offered()?;
            set(&other, Owner::Open, writes(0, 10)).fails(TAKEN)?;
            set(&other, Owner::Open, writes(10, 10)).ok()?;
            same("blocker", blocker(&other, writes(0, 5)).ok()?, Some(writes(0, 10)))?;
            set(&mine, Owner::Open, unlocks(0, 0)).ok()?;
            set(&other, Owner::Open, writes(0, 10)).ok()
        }
    ),
    must!(
        "shared-lock-ends-with-close",
        "close()",
        "A lock is free for the other side when its file is closed.",
        |here| {
            let there = here.there()?;
            let mine = here.create("a")?;
            let other = there.edit("a")?;
            set(&mine, Owner::Open, writes(0, 0)).offered()?;
            drop(mine);
            set(&other, Owner::Open, writes(0, 0)).ok()
        }
    ),
    must!(
        "shared-lock-shows-data",
        "fcntl()",
        "Who gets a lock reads what its last holder wrote: a counter on both sides loses no step.",
        |here| {
            let there = here.there()?;
            counted(here, &[here, there])
        }
    ),
    should!(
        "shared-new-name",
        "open()",
        "A name that was looked for in vain is found when it was made elsewhere (an NFS client may take until its directory's attributes expire).",
        |here| {
            let there = here.there()?;
            there.open("a", OFlags::RDONLY, 0).fails(&[Errno::NOENT])?;
            here.file("a", b"x")?;
            there.content("a").map(drop)
        }
    ),
    should!(
        "shared-listing",
        "readdir()",
        "A listing shows what was made elsewhere before (an NFS client may take until its directory's attributes expire).",
        |here| {
            let there = here.there()?;
            there.names(".")?;
            here.file("a", b"")?;
            same("names through the other path", there.names(".")?, vec![b"a".to_vec()])
        }
    ),
    should!(
        "shared-unlink-open",
        "unlink()",
        "A file that is open on one side stays readable when the other removes it (over NFS version 3: ESTALE).",
        |here| {
            let there = here.there()?;
            here.file("a", b"data")?;
            let open = there.edit("a")?;
            here.unlink("a").ok()?;
            same("content through the open descriptor", read(&open, 0, 10)?, b"data".to_vec())
        }
    ),
    should!(
        "shared-append",
        "write()",
        "Appends of both sides lose nothing (over NFS they may overwrite each other).",
        |here| {
            let there = here.there()?;
            let flags = OFlags::WRONLY | OFlags::APPEND;
            here.file("a", b"")?;
            let files = [here.open("a", flags, 0).ok()?, there.open("a", flags, 0).ok()?];
            for turn in 0..20u8 {
                let answer = rustix::io::write(&files[usize::from(turn % 2)], &[b'a' + turn]);
                Asked::new("write of 1 byte".into(), answer).ok()?;
                super::here::sync(&files[usize::from(turn % 2)])?;
            }
            drop(files);
            same("content", here.content("a")?, (b'a'..b'a' + 20).collect())
        }
    ),
];

/// Who writes and who reads: each side in turn.
fn in_turn<'a>(here: &'a Here, there: &'a Here, turn: u8) -> [&'a Here; 2] {
    if turn.is_multiple_of(2) { [here, there] } else { [there, here] }
}

fn first_and_last(bytes: &[u8]) -> Option<(u8, u8)> {
    Some((*bytes.first()?, *bytes.last()?))
}

/// Each side rewrites a file in turn, and the other reads it.
fn rewritten(here: &Directory, pause: fn()) -> Tried {
    let there = here.there()?;
    here.file("a", &[0; 10_000])?;
    for turn in 1..=20u8 {
        let [writer, reader] = in_turn(here, there, turn);
        pause();
        write_all(writer.edit("a")?, &[turn; 10_000], 0)?;
        same("first and last byte", first_and_last(&reader.content("a")?), Some((turn, turn)))?;
    }
    Ok(())
}

/// Threads that add one to the number in a file, each under a lock: a few seconds, since locks may be slow to be granted.
/// The number must be that of all steps.
pub(super) fn counted(here: &Here, sides: &[&Here]) -> Tried {
    here.file("counter", &0u64.to_le_bytes())?;
    let begun = Instant::now();
    let count = |side: &Here| {
        let file = side.edit("counter")?;
        let mut steps = 0;
        while steps < 50 && begun.elapsed() < Duration::from_secs(3) {
            wait(&file, writes(0, 8)).offered()?;
            let bytes: [u8; 8] = read(&file, 0, 8)?.try_into().unwrap_or_default();
            write_all(&file, &(u64::from_le_bytes(bytes) + 1).to_le_bytes(), 0)?;
            set(&file, Owner::Open, unlocks(0, 8)).ok()?;
            steps += 1;
        }
        Ok(steps)
    };
    let steps = std::thread::scope(|scope| {
        let threads: Vec<_> = sides.iter().map(|side| scope.spawn(|| count(side))).collect();
        threads.into_iter().try_fold(0u64, |sum, thread| Ok(sum + joined(thread)?))
    })?;
    same("the counter", here.content("counter")?, steps.to_le_bytes().to_vec())
}
