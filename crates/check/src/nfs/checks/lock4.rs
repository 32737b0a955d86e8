//! Byte-range locks of version 4.

use benchmaster_nfs_proto::v4::{self, Argop, LockType4 as L, Nfsstat4 as S, Stateid4};

use super::Kind;
use crate::nfs::client4::{Answer, Client4, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::{Locked, Open, Share};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const ALL: (u64, u64) = (0, u64::MAX);

/// A file that both clients have open.
fn open_of_both(t: &mut Trial) -> Result<(Open, Open), Stop> {
    t.object(Kind::File)?;
    let dir = t.dir();
    let (a, b) = t.both()?;
    Ok((a.opens("one", &dir, "x", Share::BOTH)?, b.opens("two", &dir, "x", Share::BOTH)?))
}

/// A file open, and a write lock on some bytes.
fn locked(t: &mut Trial, range: (u64, u64)) -> Result<(Open, Locked), Stop> {
    t.object(Kind::File)?;
    let dir = t.dir();
    let client = t.a()?;
    let open = client.opens("one", &dir, "x", Share::BOTH)?;
    let lock = client.lock(&open, "locker", L::Write, range)?;
    Ok((open, lock))
}

/// One client has a lock; another asks for one.
fn second_lock(t: &mut Trial, first: (L, (u64, u64)), second: (L, (u64, u64)), right: S) -> Tried {
    let (one, two) = open_of_both(t)?;
    let (a, b) = t.both()?;
    a.lock(&one, "locker", first.0, first.1)?;
    b.try_lock(&two, "other", second.0, second.1)?.is(&[right])
}

/// What stands in the way of a lock, as LOCK and LOCKT say.
fn denied(answer: &Answer) -> Result<v4::LockDenied<'_>, Stop> {
    match answer.last() {
        Some(v4::Resop::Lock(v4::LockRes::Denied(denied))) => Ok(denied),
        Some(v4::Resop::Lockt(v4::LocktRes::Denied(denied))) => Ok(denied),
        _ => Err(answer.wrong("NFS4ERR_DENIED is right")),
    }
}

/// A first lock with an impossible range.
fn range_gives(t: &mut Trial, range: (u64, u64), allowed: &[S]) -> Tried {
    t.object(Kind::File)?;
    let dir = t.dir();
    let client = t.a()?;
    let open = client.opens("one", &dir, "x", Share::BOTH)?;
    client.try_lock(&open, "locker", L::Write, range)?.is(allowed)?;
    client.test_lock(&open.fh, "tester", L::Write, range)?.is(allowed)
}

/// Whether another owner could have a range.
fn free(client: &mut Client4, fh: &[u8], range: (u64, u64), right: S) -> Tried {
    client.test_lock(fh, "tester", L::Write, range)?.is(&[right])
}

checks! {
    /// Locks.
    LIST, Lock;
    "lock-write-excludes-write" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A write lock keeps the write lock of another client away: DENIED."
        => |t| second_lock(t, (L::Write, (0, 10)), (L::Write, (5, 1)), S::DENIED);
    "lock-write-excludes-read" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A write lock keeps read locks away: DENIED."
        => |t| second_lock(t, (L::Write, (0, 10)), (L::Read, (9, 100)), S::DENIED);
    "lock-read-excludes-write" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A read lock keeps write locks away: DENIED."
        => |t| second_lock(t, (L::Read, (0, 10)), (L::Write, (0, 1)), S::DENIED);
    "lock-reads-together" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "Read locks of several owners stand together."
        => |t| second_lock(t, (L::Read, (0, 10)), (L::Read, (0, 10)), S::OK);
    "lock-beside" V4 Must [V40 7530 "9.2", V41 8881 "9.2"]
        "Locks of ranges that touch but do not overlap stand together."
        => |t| second_lock(t, (L::Write, (0, 10)), (L::Write, (10, 10)), S::OK);
    "lock-to-the-end" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A length of all ones locks to the end, however far."
        => |t| second_lock(t, (L::Write, (100, u64::MAX)), (L::Write, (1 << 60, 1)), S::DENIED);
    "lock-before-the-end-lock" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A lock to the end leaves what is before it."
        => |t| second_lock(t, (L::Write, (100, u64::MAX)), (L::Write, (0, 100)), S::OK);
    "lock-beyond-end-of-file" V4 Must [V40 7530 "9.2", V41 8881 "9.2"]
        "Bytes beyond the end of the file can be locked."
        => |t| second_lock(t, (L::Write, (1 << 20, 10)), (L::Write, (1 << 20, 1)), S::DENIED);
    "lock-last-byte" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "The last byte that an offset can name can be locked (or the server has only 32 bits: BAD_RANGE)."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("one", &dir, "x", Share::BOTH)?;
            let answer = client.try_lock(&open, "locker", L::Write, (u64::MAX - 1, 1))?;
            answer.is(&[S::OK, S::BAD_RANGE, S::INVAL])
        };
    "lock-blocking-denied" V4 Must [V40 7530 "9.4", V41 8881 "9.6"]
        "LOCK with a type that waits is answered at once all the same: DENIED."
        => |t| second_lock(t, (L::Write, (0, 10)), (L::WriteW, (5, 1)), S::DENIED);
    "lock-blocking-read-denied" V4 Must [V40 7530 "9.4", V41 8881 "9.6"]
        "LOCK for reading with a type that waits is answered at once: DENIED."
        => |t| second_lock(t, (L::Write, (0, 10)), (L::ReadW, (5, 1)), S::DENIED);
    "lock-no-length" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A length of zero is INVAL." => |t| range_gives(t, (0, 0), &[S::INVAL]);
    "lock-overflow" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A range that goes beyond the last offset is INVAL."
        => |t| range_gives(t, (u64::MAX - 5, 100), &[S::INVAL]);
    "lock-denied-holder" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "DENIED says who has what lock: its owner, its range, its type."
        => |t| {
            let (one, two) = open_of_both(t)?;
            let (a, b) = t.both()?;
            a.lock(&one, "locker", L::Write, (3, 7))?;
            let answer = b.try_lock(&two, "other", L::Write, (0, 100))?;
            let holder = denied(&answer)?;
            let right = holder.owner.owner.0 == b"locker" && holder.owner.clientid == a.clientid
                && (holder.offset, holder.length) == (3, 7) && holder.locktype == L::Write;
            hold(right, &answer.sent, || format!("{holder:?}; owner locker of client {:#x}, 7 bytes at 3 are right", a.clientid))
        };
    "lockt-denied-holder" V4 Must [V40 7530 "16.11.4", V41 8881 "18.11.3"]
        "LOCKT says who stands in the way as LOCK does."
        => |t| {
            let (one, _) = open_of_both(t)?;
            let (a, b) = t.both()?;
            a.lock(&one, "locker", L::Read, (3, 7))?;
            let answer = b.test_lock(&one.fh, "tester", L::Write, (0, 100))?;
            let holder = denied(&answer)?;
            let right = holder.owner.owner.0 == b"locker" && (holder.offset, holder.length) == (3, 7)
                && holder.locktype == L::Read;
            hold(right, &answer.sent, || format!("{holder:?}; a read lock of locker, 7 bytes at 3, is right"))
        };
    "lockt-free" V4 Must [V40 7530 "16.11.4", V41 8881 "18.11.3"]
        "LOCKT of a range without locks is OK, and needs no open." => |t| {
            let fh = t.object(Kind::File)?;
            free(t.a()?, &fh, ALL, S::OK)
        };
    "lockt-takes-nothing" V4 Must [V40 7530 "16.11.4", V41 8881 "18.11.3"]
        "LOCKT takes no lock." => |t| {
            let (_, two) = open_of_both(t)?;
            let (a, b) = t.both()?;
            free(a, &two.fh, ALL, S::OK)?;
            b.lock(&two, "other", L::Write, ALL).map(|_| ())
        };
    "lockt-own-lock" V4 Must [V40 7530 "16.11.4", V41 8881 "18.11.3"]
        "LOCKT does not see the owner's own locks." => |t| {
            let (open, _) = locked(t, (0, 10))?;
            t.a()?.test_lock(&open.fh, "locker", L::Write, (0, 10))?.is(&[S::OK])
        };
    "lockt-other-owner-of-the-client" V4 Must [V40 7530 "16.11.4", V41 8881 "18.11.3"]
        "Locks of two owners of one client exclude each other." => |t| {
            let (open, _) = locked(t, (0, 10))?;
            free(t.a()?, &open.fh, (0, 10), S::DENIED)
        };
    "lockt-of-directory" V4 Must [V40 7530 "16.11.5", V41 8881 "18.11.4"]
        "LOCKT of a directory is ISDIR." => |t| {
            let dir = t.dir();
            t.a()?.test_lock(&dir, "tester", L::Write, ALL)?.is(&[S::ISDIR])
        };
    "lockt-of-symlink" V4 Must [V40 7530 "16.11.5", V41 8881 "18.11.4"]
        "LOCKT of what is no file is INVAL, WRONG_TYPE or SYMLINK." => |t| {
            let fh = t.object(Kind::Symlink)?;
            t.a()?.test_lock(&fh, "tester", L::Write, ALL)?.is(&[S::INVAL, S::WRONG_TYPE, S::SYMLINK])
        };
    "lock-needs-write-access" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "A write lock by an open for reading is OPENMODE."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("one", &dir, "x", Share::READ)?;
            client.try_lock(&open, "locker", L::Write, (0, 1))?.is(&[S::OPENMODE])
        };
    "lock-with-lock-stateid-of-no-open" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "LOCK with an open stateid that names nothing is BAD_STATEID (4.0: also STALE_STATEID)."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let mut open = client.opens("one", &dir, "x", Share::BOTH)?;
            open.stateid.other[11] ^= 0x5a;
            client.try_lock(&open, "locker", L::Write, (0, 1))?.is(&[S::BAD_STATEID, S::STALE_STATEID])
        };
    "lock-stateid-counts" V4 Must [V40 7530 "9.1.4.2", V41 8881 "8.2.2"]
        "Each LOCK and LOCKU of an owner on a file gives the same stateid with the next number."
        => |t| {
            let (_, mut lock) = locked(t, (0, 10))?;
            let first = lock.stateid;
            t.a()?.relock(&mut lock, L::Write, (20, 10))?;
            let second = lock.stateid;
            t.a()?.unlock(&mut lock, (0, 10))?;
            let third = lock.stateid;
            let right = first.other == second.other && second.other == third.other
                && second.seqid == first.seqid + 1 && third.seqid == second.seqid + 1;
            hold(right, "LOCK, LOCK, LOCKU", || format!("{first:?}, {second:?}, {third:?}"))
        };
    "lock-old-stateid" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "LOCKU with an earlier sequence number of the lock stateid is OLD_STATEID."
        => |t| {
            let (_, mut lock) = locked(t, (0, 10))?;
            let old = lock.stateid;
            t.a()?.relock(&mut lock, L::Write, (20, 10))?;
            lock.stateid = old;
            t.a()?.try_unlock(&lock, (0, 10))?.is(&[S::OLD_STATEID])
        };
    "unlock-frees" V4 Must [V40 7530 "16.12.4", V41 8881 "18.12.3"]
        "LOCKU frees its range for others."
        => |t| {
            let (open, mut lock) = locked(t, (0, 10))?;
            let (a, b) = t.both()?;
            a.unlock(&mut lock, (0, 10))?;
            free(b, &open.fh, ALL, S::OK)
        };
    "unlock-part" V4 Must [V40 7530 "9.2", V41 8881 "9.2"]
        "LOCKU of the middle of a lock leaves both ends (or is LOCK_RANGE, where the server does not split)."
        => |t| {
            let (open, lock) = locked(t, (0, 30))?;
            let (a, b) = t.both()?;
            let answer = a.try_unlock(&lock, (10, 10))?;
            if answer.status() == S::LOCK_RANGE {
                return Ok(());
            }
            answer.ok()?;
            free(b, &open.fh, (10, 10), S::OK)?;
            free(b, &open.fh, (0, 10), S::DENIED)?;
            free(b, &open.fh, (20, 10), S::DENIED)
        };
    "unlock-nothing" V4 Must [V40 7530 "16.12.4", V41 8881 "18.12.3"]
        "LOCKU of a range that is not locked succeeds and frees nothing else."
        => |t| {
            let (open, lock) = locked(t, (0, 10))?;
            let (a, b) = t.both()?;
            a.try_unlock(&lock, (100, 10))?.is(&[S::OK])?;
            free(b, &open.fh, (0, 10), S::DENIED)
        };
    "unlock-no-length" V4 Must [V40 7530 "16.12.4", V41 8881 "18.12.3"]
        "LOCKU of a length of zero is INVAL."
        => |t| { let (_, lock) = locked(t, (0, 10))?; t.a()?.try_unlock(&lock, (0, 0))?.is(&[S::INVAL]) };
    "unlock-unknown-stateid" V4 Must [V40 7530 "16.12.4", V41 8881 "18.12.3"]
        "LOCKU with a stateid that names nothing is BAD_STATEID (4.0: also STALE_STATEID)."
        => |t| {
            let (_, mut lock) = locked(t, (0, 10))?;
            lock.stateid.other[11] ^= 0x5a;
            t.a()?.try_unlock(&lock, (0, 10))?.is(&[S::BAD_STATEID, S::STALE_STATEID])
        };
    "unlock-open-stateid" V4 Must [V40 7530 "16.12.4", V41 8881 "18.12.3"]
        "LOCKU with the stateid of an open, where there are no locks, is BAD_STATEID."
        => |t| {
            let (open, mut lock) = locked(t, (0, 10))?;
            lock.stateid = open.stateid;
            // Numbers of 4.0 are of owners, and the owner of the open is another.
            t.a()?.try_unlock(&lock, (0, 10))?.is(&[S::BAD_STATEID, S::BAD_SEQID])
        };
    "lock-merges" V4 Must [V40 7530 "9.2", V41 8881 "9.2"]
        "Locks of one owner that overlap are one: LOCKU of all frees all."
        => |t| {
            let (open, mut lock) = locked(t, (0, 20))?;
            let (a, b) = t.both()?;
            a.relock(&mut lock, L::Write, (10, 20))?;
            free(b, &open.fh, (25, 1), S::DENIED)?;
            a.unlock(&mut lock, (0, 30))?;
            free(b, &open.fh, ALL, S::OK)
        };
    "lock-downgrades" V4 Must [V40 7530 "9.3", V41 8881 "9.3"]
        "A read lock over the owner's write lock makes it one for reading (or is LOCK_NOTSUPP)."
        => |t| {
            let (open, lock) = locked(t, (0, 10))?;
            let (a, b) = t.both()?;
            let answer = a.try_relock(&lock, L::Read, (0, 10))?;
            if matches!(answer.status(), S::LOCK_NOTSUPP | S::LOCK_RANGE) {
                return Ok(());
            }
            answer.ok()?;
            b.test_lock(&open.fh, "tester", L::Read, (0, 10))?.is(&[S::OK])?;
            free(b, &open.fh, (0, 10), S::DENIED)
        };
    "lock-upgrades" V4 Must [V40 7530 "9.3", V41 8881 "9.3"]
        "A write lock over the owner's read lock makes it one for writing, where no other owner has one."
        => |t| {
            let (open, mut lock) = locked(t, (100, 1))?;
            let (a, b) = t.both()?;
            a.relock(&mut lock, L::Read, (0, 10))?;
            let answer = a.try_relock(&lock, L::Write, (0, 10))?;
            if matches!(answer.status(), S::LOCK_NOTSUPP | S::LOCK_RANGE) {
                return Ok(());
            }
            answer.ok()?;
            b.test_lock(&open.fh, "tester", L::Read, (0, 10))?.is(&[S::DENIED])
        };
    "lock-upgrade-denied" V4 Must [V40 7530 "9.3", V41 8881 "9.3"]
        "A lock cannot become one for writing while another has a read lock: DENIED."
        => |t| {
            let (one, two) = open_of_both(t)?;
            let (a, b) = t.both()?;
            let lock = a.lock(&one, "locker", L::Read, (0, 10))?;
            b.lock(&two, "other", L::Read, (0, 10))?;
            a.try_relock(&lock, L::Write, (0, 10))?.is(&[S::DENIED, S::DEADLOCK, S::LOCK_NOTSUPP])
        };
    "lock-after-denied" V4 Must [V40 7530 "16.10.4", V41 8881 "18.10.3"]
        "What was denied is given once it is free."
        => |t| {
            let (one, two) = open_of_both(t)?;
            let (a, b) = t.both()?;
            let mut lock = a.lock(&one, "locker", L::Write, (0, 10))?;
            b.try_lock(&two, "other", L::Write, (0, 10))?.is(&[S::DENIED])?;
            a.unlock(&mut lock, (0, 10))?;
            b.lock(&two, "other", L::Write, (0, 10)).map(|_| ())
        };
    "close-with-locks" V4 Must [V40 7530 "16.2.4", V41 8881 "18.2.3"]
        "CLOSE frees the locks of the open, or is LOCKS_HELD."
        => |t| {
            let (open, _) = locked(t, (0, 10))?;
            let (a, b) = t.both()?;
            let answer = a.try_close(&open)?;
            answer.is(&[S::OK, S::LOCKS_HELD])?;
            free(b, &open.fh, ALL, if answer.status() == S::OK { S::OK } else { S::DENIED })
        };
    "lock-stateid-after-close" V4 Must [V40 7530 "16.2.4", V41 8881 "18.2.3"]
        "A lock stateid is BAD_STATEID after CLOSE (4.0: also STALE_STATEID, EXPIRED)."
        => |t| {
            let (open, lock) = locked(t, (0, 10))?;
            let client = t.a()?;
            if client.try_close(&open)?.status() == S::LOCKS_HELD {
                return Err(Stop::not_applicable("CLOSE is refused while there are locks"));
            }
            client.on(&lock.fh, &[read(lock.stateid, 0, 1)], &[S::BAD_STATEID, S::STALE_STATEID, S::EXPIRED])
        };
    "write-with-lock-stateid" V4 Must [V40 7530 "9.1.4.5", V41 8881 "8.2.5"]
        "READ and WRITE take the stateid of a lock."
        => |t| {
            let (_, lock) = locked(t, (0, 10))?;
            t.a()?.on(&lock.fh, &[write(lock.stateid, 0, b"data"), read(lock.stateid, 0, 4)], &[S::OK])
        };
    "lock-no-reclaim" V4 Must [V40 7530 "13.1.9.2", V41 8881 "15.1.9.3"]
        "LOCK that reclaims when there is no grace period is NO_GRACE (or RECLAIM_BAD)."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("one", &dir, "x", Share::BOTH)?;
            client.try_lock_how(&open, "locker", L::Write, (0, 1), true)?.is(&[S::NO_GRACE, S::RECLAIM_BAD])
        };
    "lock-bad-seqid" V40 Must [V40 7530 "9.1.7"]
        "LOCKU with a number out of order is BAD_SEQID."
        => |t| {
            let (_, lock) = locked(t, (0, 10))?;
            let client = t.a()?;
            let seqid = client.seqid(&lock.owner).wrapping_add(5);
            let args = v4::LockuArgs { locktype: L::Write, seqid, lock_stateid: lock.stateid, offset: 0, length: 1 };
            client.on(&lock.fh, &[Argop::Locku(args)], &[S::BAD_SEQID])
        };
    "release-lockowner-held" V40 Must [V40 7530 "16.37.4"]
        "RELEASE_LOCKOWNER of an owner that has locks is LOCKS_HELD."
        => |t| {
            locked(t, (0, 10))?;
            let client = t.a()?;
            let lock_owner = v4::StateOwner4 { clientid: client.clientid, owner: (&b"locker"[..]).into() };
            client.gives(&[Argop::ReleaseLockowner(v4::ReleaseLockownerArgs { lock_owner })], &[S::LOCKS_HELD])
        };
    "release-lockowner" V40 Must [V40 7530 "16.37.4"]
        "RELEASE_LOCKOWNER of an owner that has unlocked succeeds, and its stateid is gone."
        => |t| {
            let (_, mut lock) = locked(t, (0, 10))?;
            let client = t.a()?;
            client.unlock(&mut lock, (0, 10))?;
            let lock_owner = v4::StateOwner4 { clientid: client.clientid, owner: (&b"locker"[..]).into() };
            client.gives(&[Argop::ReleaseLockowner(v4::ReleaseLockownerArgs { lock_owner })], &[S::OK])?;
            let gone = [S::BAD_STATEID, S::STALE_STATEID, S::EXPIRED];
            client.on(&lock.fh, &[read(lock.stateid, 0, 1)], &gone)
        };
    "release-lockowner-unknown-client" V40 Must [V40 7530 "16.37.4"]
        "RELEASE_LOCKOWNER with a client id that the server does not know is STALE_CLIENTID (or EXPIRED)."
        => |t| {
            let client = t.a()?;
            let clientid = client.clientid ^ 0x0102_0304_0506;
            let lock_owner = v4::StateOwner4 { clientid, owner: (&b"locker"[..]).into() };
            let release = Argop::ReleaseLockowner(v4::ReleaseLockownerArgs { lock_owner });
            client.gives(&[release], &[S::STALE_CLIENTID, S::EXPIRED])
        };
    "free-stateid-locked" V41 Must [V41 8881 "18.38.3"]
        "FREE_STATEID of a stateid with locks is LOCKS_HELD."
        => |t| {
            let (_, lock) = locked(t, (0, 10))?;
            t.a()?.gives(&[Argop::FreeStateid(v4::FreeStateidArgs { stateid: lock.stateid })], &[S::LOCKS_HELD])
        };
    "free-stateid-unlocked" V41 Must [V41 8881 "18.38.3"]
        "FREE_STATEID of a lock stateid without locks frees it: it is BAD_STATEID then."
        => |t| {
            let (_, mut lock) = locked(t, (0, 10))?;
            let client = t.a()?;
            client.unlock(&mut lock, (0, 10))?;
            client.gives(&[Argop::FreeStateid(v4::FreeStateidArgs { stateid: lock.stateid })], &[S::OK])?;
            client.on(&lock.fh, &[read(lock.stateid, 0, 1)], &[S::BAD_STATEID])
        };
    "lock-current-stateid" V41 Must [V41 8881 "16.2.3.1.2"]
        "LOCK takes the current stateid of the OPEN before it, and becomes the current one."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.open_args(b"one", Share::BOTH, v4::Openflag4::NoCreate, v4::OpenClaim4::Null("x".into()));
            let to = v4::OpenToLockOwner4 {
                open_seqid: 0,
                open_stateid: Stateid4::CURRENT,
                lock_seqid: 0,
                lock_owner: v4::StateOwner4 { clientid: client.clientid, owner: (&b"locker"[..]).into() },
            };
            let lock = v4::LockArgs {
                locktype: L::Write, reclaim: false, offset: 0, length: 10, locker: v4::Locker4::OpenOwner(to),
            };
            let unlock = v4::LockuArgs {
                locktype: L::Write, seqid: 0, lock_stateid: Stateid4::CURRENT, offset: 0, length: 10,
            };
            let answer = client.done(&dir, &[Argop::Open(open), Argop::Lock(lock), Argop::Locku(unlock)])?;
            let seqid = body!(answer, Locku).lock_stateid.seqid;
            hold(seqid == 2, &answer.sent, || format!("number {seqid}; 2 is right"))
        };
}
