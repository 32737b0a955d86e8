//! Locks of ranges and of whole files: who excludes whom.
//!
//! Two opens of one process stand for two processes: their locks (`F_OFD_SETLK`) exclude each other by the same rules.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Here, Tried, holds, joined, same};
use super::lock::{Lock, Owner, TAKEN, blocker, reads, set, unlocks, wait, writes};
use super::shared::counted;
use crate::{Check, Group};

const GROUP: Group = Group::Lock;

/// Two opens of a new file.
fn two(here: &Here) -> Tried<[OwnedFd; 2]> {
    Ok([here.create("a")?, here.edit("a")?])
}

fn lock(file: &OwnedFd, lock: Lock) -> Asked<()> {
    set(file, Owner::Open, lock)
}

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("lock-excludes", "fcntl()", "A write lock excludes read and write locks of others.", |here| {
        let [mine, other] = two(here)?;
        lock(&mine, writes(0, 10)).offered()?;
        lock(&other, writes(0, 10)).fails(TAKEN)?;
        lock(&other, reads(0, 10)).fails(TAKEN)
    }),
    must!("lock-shared", "fcntl()", "Read locks share a range, and exclude write locks.", |here| {
        let [mine, other] = two(here)?;
        lock(&mine, reads(0, 10)).offered()?;
        lock(&other, reads(0, 10)).ok()?;
        lock(&other, writes(0, 10)).fails(TAKEN)?;
        lock(&mine, writes(0, 10)).fails(TAKEN)
    }),
    must!(
        "lock-ranges-touch",
        "fcntl()",
        "Ranges that touch do not conflict, ranges that share a byte do.",
        |here| {
            let [mine, other] = two(here)?;
            lock(&mine, writes(10, 10)).offered()?;
            lock(&other, writes(0, 10)).ok()?;
            lock(&other, writes(20, 10)).ok()?;
            lock(&other, unlocks(0, 0)).ok()?;
            lock(&other, writes(0, 11)).fails(TAKEN)?;
            lock(&other, writes(19, 1)).fails(TAKEN)?;
            lock(&other, writes(0, 100)).fails(TAKEN)
        }
    ),
    must!(
        "lock-to-the-end",
        "fcntl()",
        "A length of zero reaches to the end, wherever it will be.",
        |here| {
            let [mine, other] = two(here)?;
            lock(&mine, writes(100, 0)).offered()?;
            lock(&other, writes(0, 100)).ok()?;
            for at in [100, 1 << 20, 1 << 40, i64::MAX - 1] {
                lock(&other, reads(at, 1)).fails(TAKEN)?;
            }
            Ok(())
        }
    ),
    must!("lock-negative-length", "fcntl()", "A negative length locks the bytes before the start.", |here| {
        let [mine, other] = two(here)?;
        lock(&mine, writes(20, -10)).offered()?;
        lock(&other, writes(0, 10)).ok()?;
        lock(&other, writes(20, 10)).ok()?;
        lock(&other, writes(19, 1)).fails(TAKEN)?;
        lock(&mine, writes(5, -10)).fails(&[Errno::INVAL])
    }),
    must!("lock-far", "fcntl()", "Ranges beyond 4 GiB are distinguished.", |here| {
        let [mine, other] = two(here)?;
        for at in [(1i64 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40] {
            lock(&mine, writes(at, 1)).offered()?;
            lock(&other, writes(at, 1)).fails(TAKEN)?;
            lock(&other, writes(at + 1, 1)).ok()?;
            lock(&other, unlocks(0, 0)).ok()?;
            lock(&mine, unlocks(0, 0)).ok()?;
        }
        Ok(())
    }),
    must!("lock-splits", "fcntl()", "Unlocking the middle leaves both ends.", |here| {
        let [mine, other] = two(here)?;
        lock(&mine, writes(0, 30)).offered()?;
        lock(&mine, unlocks(10, 10)).ok()?;
        lock(&other, writes(10, 10)).ok()?;
        lock(&other, writes(9, 1)).fails(TAKEN)?;
        lock(&other, writes(20, 1)).fails(TAKEN)
    }),
    must!("lock-joins", "fcntl()", "Locks that touch are unlocked as one range.", |here| {
        let [mine, other] = two(here)?;
        for at in [0, 10, 20] {
            lock(&mine, writes(at, 10)).offered()?;
        }
        lock(&mine, unlocks(5, 20)).ok()?;
        lock(&other, writes(5, 20)).ok()?;
        lock(&other, writes(4, 1)).fails(TAKEN)?;
        lock(&other, writes(25, 1)).fails(TAKEN)
    }),
    must!(
        "lock-changes-kind",
        "fcntl()",
        "A new lock of the same owner replaces the old one in its range.",
        |here| {
            let [mine, other] = two(here)?;
            lock(&mine, writes(0, 30)).offered()?;
            lock(&mine, reads(10, 10)).ok()?;
            lock(&other, reads(10, 10)).ok()?;
            lock(&other, reads(9, 1)).fails(TAKEN)?;
            lock(&other, unlocks(0, 0)).ok()?;
            lock(&mine, writes(0, 30)).ok()?;
            lock(&other, reads(10, 10)).fails(TAKEN)
        }
    ),
    must!("lock-unlock-nothing", "fcntl()", "Unlocking what is not locked succeeds.", |here| {
        let [mine, _] = two(here)?;
        lock(&mine, unlocks(0, 0)).offered()?;
        lock(&mine, unlocks(7, 3)).ok()
    }),
    must!("lock-blocker", "fcntl()", "F_GETLK tells kind and range of the lock in the way.", |here| {
        let [mine, other] = two(here)?;
        same("blocker of a free range", blocker(&other, writes(0, 0)).offered()?, None)?;
        lock(&mine, reads(10, 5)).ok()?;
        same("blocker of a write lock", blocker(&other, writes(0, 0)).ok()?, Some(reads(10, 5)))?;
        same("blocker of a read lock", blocker(&other, reads(0, 0)).ok()?, None)?;
        lock(&mine, writes(10, 5)).ok()?;
        same("blocker of a read lock", blocker(&other, reads(12, 1)).ok()?, Some(writes(10, 5)))
    }),
    must!(
        "lock-needs-access",
        "fcntl()",
        "A write lock needs a descriptor for writing, a read lock one for reading: EBADF.",
        |here| {
            here.file("a", b"")?;
            let reader = here.open("a", OFlags::RDONLY, 0).ok()?;
            set(&reader, Owner::Process, writes(0, 1)).fails(&[Errno::BADF])?;
            set(&reader, Owner::Process, reads(0, 1)).offered()?;
            let writer = here.open("a", OFlags::WRONLY, 0).ok()?;
            set(&writer, Owner::Process, reads(0, 1)).fails(&[Errno::BADF])
        }
    ),
    must!("lock-ends-with-close", "close()", "Locks end when their open is closed.", |here| {
        let [mine, other] = two(here)?;
        lock(&mine, writes(0, 0)).offered()?;
        drop(mine);
        lock(&other, writes(0, 0)).ok()
    }),
    must!(
        "lock-of-process-ends-with-any-close",
        "fcntl()",
        "Closing any descriptor of a file ends all of the process's locks on it.",
        |here| {
            let [mine, other] = two(here)?;
            set(&mine, Owner::Process, writes(0, 10)).offered()?;
            lock(&other, writes(0, 10)).fails(TAKEN)?;
            drop(here.edit("a")?);
            lock(&other, writes(0, 10)).ok()
        }
    ),
    must!(
        "lock-of-process-is-one-owner",
        "fcntl()",
        "Two descriptors of a process do not exclude each other.",
        |here| {
            let [mine, other] = two(here)?;
            set(&mine, Owner::Process, writes(0, 10)).offered()?;
            set(&other, Owner::Process, writes(0, 10)).ok()
        }
    ),
    must!("lock-waits", "fcntl()", "Who waits for a lock gets it when it is free, and not before.", |here| {
        let [mine, other] = two(here)?;
        lock(&mine, writes(0, 10)).offered()?;
        let released = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                wait(&other, writes(0, 10)).ok()?;
                holds(released.load(Ordering::SeqCst), "the lock that was waited for", || {
                    "granted before it was free".into()
                })
            });
            std::thread::sleep(Duration::from_millis(100));
            released.store(true, Ordering::SeqCst);
            let unlocked = lock(&mine, unlocks(0, 10)).ok();
            let waited = joined(waiter);
            unlocked.and(waited)
        })
    }),
    must!("lock-counts", "fcntl()", "A counter under a lock loses no step.", |here| {
        counted(here, &[&here.here; 4])
    }),
    must!(
        "lock-survives-rename",
        "fcntl()",
        "A lock stays with its file when that is renamed or its name removed.",
        |here| {
            let [mine, other] = two(here)?;
            lock(&mine, writes(0, 10)).offered()?;
            here.rename("a", "b").ok()?;
            lock(&other, writes(0, 10)).fails(TAKEN)?;
            here.unlink("b").ok()?;
            lock(&other, writes(0, 10)).fails(TAKEN)
        }
    ),
    linux!(
        "flock-excludes",
        "flock(2)",
        "An exclusive lock of the file excludes others, shared ones share.",
        |here| {
            let [mine, other] = two(here)?;
            let ask = |file, operation| Asked::new(format!("flock({operation:?})"), flock(file, operation));
            ask(&mine, FlockOperation::NonBlockingLockExclusive).offered()?;
            ask(&other, FlockOperation::NonBlockingLockShared).fails(TAKEN)?;
            ask(&mine, FlockOperation::NonBlockingLockShared).ok()?;
            ask(&other, FlockOperation::NonBlockingLockShared).ok()?;
            ask(&other, FlockOperation::NonBlockingLockExclusive).fails(TAKEN)?;
            ask(&mine, FlockOperation::NonBlockingUnlock).ok()?;
            ask(&other, FlockOperation::NonBlockingLockExclusive).ok()
        }
    ),
];
