//! Locks of version 3: the network lock manager.

use std::time::{Duration, Instant};

use benchmaster_nfs_proto::nlm::{self, NlmStats as S, v4};
use benchmaster_nfs_proto::nsm;
use benchmaster_nfs_proto::xdr::{Decoder, Encode};

use super::Kind;
use crate::nfs::connection::{Connection, Procedure};
use crate::nfs::hold;
use crate::nfs::stateless;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// One who locks.
#[derive(Debug, Clone, Copy)]
struct Owner(&'static str, i32);

const ONE: Owner = Owner("one", 1);
const TWO: Owner = Owner("two", 2);

/// The host whose locks they are.
const CALLER: &str = "benchmaster-check";

/// How long a monitor may take to tell the lock manager.
const SOON: Duration = Duration::from_secs(1);

/// A lock: process, start, length, whether it is exclusive.
type InTheWay = (i32, u64, u64, bool);

/// The lock manager, and a file.
struct Locks {
    connection: Connection,
    user: crate::nfs::User,
    fh: Vec<u8>,
}

fn locks(t: &mut Trial) -> Result<Locks, Stop> {
    let fh = t.object3(Kind::File)?;
    let connection = t.connect_to(t.nlm_address()?)?;
    Ok(Locks { connection, user: t.target.user, fh })
}

impl Locks {
    fn lock(&self, owner: Owner, (l_offset, l_len): (u64, u64)) -> v4::Lock<'_> {
        let (caller_name, fh) = (CALLER.into(), (&self.fh[..]).into());
        v4::Lock { caller_name, fh, oh: owner.0.into(), svid: owner.1, l_offset, l_len }
    }

    fn call(
        connection: &mut Connection,
        user: crate::nfs::User,
        number: nlm::Proc,
        sent: &str,
        args: &impl Encode,
    ) -> Result<Vec<u8>, Stop> {
        let procedure = Procedure { program: nlm::PROGRAM, version: v4::VERSION, number: number.0 };
        stateless::results(connection, procedure, Some(user), sent, |e| e.put(args))
    }

    /// Status and cookie of a call.
    fn status(&mut self, number: nlm::Proc, args: &[u8], sent: &str) -> Result<S, Stop> {
        struct Raw<'a>(&'a [u8]);
        impl Encode for Raw<'_> {
            fn encode(&self, e: &mut benchmaster_nfs_proto::xdr::Encoder) {
                e.raw(self.0);
            }
        }
        let bytes = Self::call(&mut self.connection, self.user, number, sent, &Raw(args))?;
        let res: nlm::Res<'_> = Decoder::new(&bytes)
            .get()
            .map_err(|error| Stop::failed(sent, format!("the result cannot be decoded: {error}")))?;
        hold(res.cookie.0 == b"cookie", sent, || format!("cookie {:?}", res.cookie))?;
        if matches!(res.stat, S::DENIED_NOLOCKS | S::DENIED_GRACE_PERIOD) && number == nlm::Proc::LOCK {
            return Err(Stop::not_applicable(format!("the lock manager gives no locks here: {}", res.stat)));
        }
        Ok(res.stat)
    }

    fn try_lock(&mut self, owner: Owner, exclusive: bool, range: (u64, u64)) -> Result<S, Stop> {
        let mut e = benchmaster_nfs_proto::xdr::Encoder::new();
        let alock = self.lock(owner, range);
        e.put(&v4::LockArgs {
            cookie: "cookie".into(),
            block: false,
            exclusive,
            alock,
            reclaim: false,
            state: 1,
        });
        let bytes = e.buffer().to_vec();
        self.status(nlm::Proc::LOCK, &bytes, &format!("LOCK {range:?} of {}, exclusive {exclusive}", owner.0))
    }

    fn unlock(&mut self, owner: Owner, range: (u64, u64)) -> Result<S, Stop> {
        let mut e = benchmaster_nfs_proto::xdr::Encoder::new();
        e.put(&v4::UnlockArgs { cookie: "cookie".into(), alock: self.lock(owner, range) });
        let bytes = e.buffer().to_vec();
        self.status(nlm::Proc::UNLOCK, &bytes, &format!("UNLOCK {range:?} of {}", owner.0))
    }

    fn cancel(&mut self, owner: Owner, range: (u64, u64)) -> Result<S, Stop> {
        let mut e = benchmaster_nfs_proto::xdr::Encoder::new();
        let alock = self.lock(owner, range);
        e.put(&v4::CancelArgs { cookie: "cookie".into(), block: true, exclusive: true, alock });
        let bytes = e.buffer().to_vec();
        self.status(nlm::Proc::CANCEL, &bytes, &format!("CANCEL {range:?} of {}", owner.0))
    }

    /// TEST: the status, and who is in the way: owner's handle, number, start, length, exclusive.
    fn test(
        &mut self,
        owner: Owner,
        exclusive: bool,
        range: (u64, u64),
    ) -> Result<(S, Option<InTheWay>), Stop> {
        let sent = format!("TEST {range:?} of {}, exclusive {exclusive}", owner.0);
        let alock = v4::Lock {
            caller_name: CALLER.into(),
            fh: (&self.fh[..]).into(),
            oh: owner.0.into(),
            svid: owner.1,
            l_offset: range.0,
            l_len: range.1,
        };
        let args = v4::TestArgs { cookie: "cookie".into(), exclusive, alock };
        let bytes = Self::call(&mut self.connection, self.user, nlm::Proc::TEST, &sent, &args)?;
        let res: v4::TestRes<'_> = Decoder::new(&bytes)
            .get()
            .map_err(|error| Stop::failed(sent, format!("the result cannot be decoded: {error}")))?;
        Ok((
            res.stat.stat(),
            match res.stat {
                v4::TestReply::Denied(holder) => {
                    Some((holder.svid, holder.l_offset, holder.l_len, holder.exclusive))
                }
                v4::TestReply::Other(_) => None,
            },
        ))
    }

    fn share(
        &mut self,
        number: nlm::Proc,
        owner: Owner,
        mode: nlm::FshMode,
        access: nlm::FshAccess,
    ) -> Result<S, Stop> {
        let sent = format!("{number} {mode:?} {access:?} of {}", owner.0);
        let share = nlm::Share {
            caller_name: owner.0.into(),
            fh: (&self.fh[..]).into(),
            oh: owner.0.into(),
            mode,
            access,
        };
        let args = nlm::ShareArgs { cookie: "cookie".into(), share, reclaim: false };
        let bytes = Self::call(&mut self.connection, self.user, number, &sent, &args)?;
        let res: nlm::ShareRes<'_> = Decoder::new(&bytes)
            .get()
            .map_err(|error| Stop::failed(sent, format!("the result cannot be decoded: {error}")))?;
        Ok(res.stat)
    }
}

/// One has a lock, another asks for one.
fn second(t: &mut Trial, first: (bool, (u64, u64)), other: (bool, (u64, u64)), right: S) -> Tried {
    let mut locks = locks(t)?;
    let status = locks.try_lock(ONE, first.0, first.1)?;
    hold(status == S::GRANTED, "LOCK of a free file", || format!("{status}; GRANTED is right"))?;
    let status = locks.try_lock(TWO, other.0, other.1)?;
    locks.unlock(ONE, (0, 0))?;
    locks.unlock(TWO, (0, 0))?;
    let sent = format!("LOCK {first:?} of one, then LOCK {other:?} of another");
    hold(status == right, &sent, || format!("{status}; {right} is right"))
}

checks! {
    /// The lock manager.
    LIST, Lock;
    "nlm-exclusive" V3 Must [V3 1813 "6.2"]
        "An exclusive lock keeps others away: DENIED."
        => |t| second(t, (true, (0, 10)), (true, (5, 1)), S::DENIED);
    "nlm-exclusive-and-shared" V3 Must [V3 1813 "6.2"]
        "An exclusive lock keeps shared ones away: DENIED."
        => |t| second(t, (true, (0, 10)), (false, (9, 5)), S::DENIED);
    "nlm-shared-and-exclusive" V3 Must [V3 1813 "6.2"]
        "A shared lock keeps exclusive ones away: DENIED."
        => |t| second(t, (false, (0, 10)), (true, (0, 1)), S::DENIED);
    "nlm-shared-together" V3 Must [V3 1813 "6.2"]
        "Shared locks stand together."
        => |t| second(t, (false, (0, 10)), (false, (0, 10)), S::GRANTED);
    "nlm-beside" V3 Must [V3 1813 "6.2"]
        "Ranges that touch do not overlap."
        => |t| second(t, (true, (0, 10)), (true, (10, 10)), S::GRANTED);
    "nlm-to-the-end" V3 Must [V3 1813 "6.2"]
        "A length of 0 locks to the end, however far."
        => |t| second(t, (true, (100, 0)), (true, (1 << 40, 1)), S::DENIED);
    "nlm-before-the-end-lock" V3 Must [V3 1813 "6.2"]
        "A lock to the end leaves what is before it."
        => |t| second(t, (true, (100, 0)), (true, (0, 100)), S::GRANTED);
    "nlm-test" V3 Must [V3 1813 "6.2"]
        "TEST says who is in the way, of what range and kind; a free range is GRANTED."
        => |t| {
        let mut locks = locks(t)?;
        let (free, _) = locks.test(TWO, true, (0, 100))?;
        hold(free == S::GRANTED, "TEST of a free file", || free.to_string())?;
        locks.try_lock(ONE, true, (3, 7))?;
        let (status, holder) = locks.test(TWO, true, (0, 100))?;
        locks.unlock(ONE, (0, 0))?;
        let right = matches!(holder, Some((_, 3, 7, true)));
        hold(status == S::DENIED && right, "LOCK of 7 bytes at 3, TEST by another", || {
            format!("{status}, {holder:?}; 3, 7, exclusive are right")
        })
    };
    "nlm-test-process" V3 Should [V3 1813 "6.1.4"]
        "TEST gives the process id that the holder locked with."
        => |t| {
        let mut locks = locks(t)?;
        locks.try_lock(ONE, true, (3, 7))?;
        let (_, holder) = locks.test(TWO, true, (0, 100))?;
        locks.unlock(ONE, (0, 0))?;
        let process = holder.map(|(process, ..)| process);
        hold(process == Some(1), "LOCK by process 1, TEST by another", || format!("process {process:?}"))
    };
    "nlm-test-takes-nothing" V3 Must [V3 1813 "6.2"]
        "TEST takes no lock."
        => |t| {
        let mut locks = locks(t)?;
        locks.test(TWO, true, (0, 100))?;
        let status = locks.try_lock(ONE, true, (0, 100))?;
        locks.unlock(ONE, (0, 0))?;
        hold(status == S::GRANTED, "TEST by one, LOCK by another", || format!("{status}; GRANTED is right"))
    };
    "nlm-unlock" V3 Must [V3 1813 "6.2"]
        "UNLOCK frees its range, and leaves the rest."
        => |t| {
        let mut locks = locks(t)?;
        locks.try_lock(ONE, true, (0, 30))?;
        let status = locks.unlock(ONE, (10, 10))?;
        let (middle, _) = locks.test(TWO, true, (10, 10))?;
        let (head, _) = locks.test(TWO, true, (0, 10))?;
        let (tail, _) = locks.test(TWO, true, (20, 10))?;
        locks.unlock(ONE, (0, 0))?;
        let right = status == S::GRANTED && middle == S::GRANTED && head == S::DENIED && tail == S::DENIED;
        hold(right, "LOCK of 30 bytes, UNLOCK of 10 in the middle, TESTs", || format!("{status}; {head}, {middle}, {tail}"))
    };
    "nlm-unlock-nothing" V3 Must [V3 1813 "6.2"]
        "UNLOCK of what is not locked is GRANTED."
        => |t| {
        let mut locks = locks(t)?;
        let status = locks.unlock(ONE, (0, 10))?;
        hold(status == S::GRANTED, "UNLOCK of a free file", || format!("{status}; GRANTED is right"))
    };
    "nlm-again" V3 Must [V3 1813 "6.2"]
        "A lock that its owner has already is given again."
        => |t| {
        let mut locks = locks(t)?;
        locks.try_lock(ONE, true, (0, 10))?;
        let status = locks.try_lock(ONE, true, (0, 10))?;
        locks.unlock(ONE, (0, 0))?;
        hold(status == S::GRANTED, "LOCK twice by one owner", || format!("{status}; GRANTED is right"))
    };
    "nlm-cancel-nothing" V3 Should [V3 1813 "6.2"]
        "CANCEL of what does not wait is DENIED (or GRANTED)."
        => |t| {
        let mut locks = locks(t)?;
        let status = locks.cancel(ONE, (0, 10))?;
        hold([S::DENIED, S::GRANTED].contains(&status), "CANCEL without a LOCK", || status.to_string())
    };
    "nlm-stale-handle" V3 Must [V3 1813 "6.2"]
        "LOCK of bytes that are no handle is STALE_FH or FAILED."
        => |t| {
        let mut locks = locks(t)?;
        locks.fh = b"no handle at all".to_vec();
        let status = locks.try_lock(ONE, true, (0, 10))?;
        hold([S::STALE_FH, S::FAILED].contains(&status), "LOCK with a bad handle", || format!("{status}; STALE_FH is right"))
    };
    "nlm-share" V3 Must [V3 1813 "6.2"]
        "SHARE keeps those away whom it denies, until UNSHARE."
        => |t| {
        let mut locks = locks(t)?;
        let (share, unshare) = (nlm::Proc::SHARE, nlm::Proc::UNSHARE);
        let deny = nlm::FshMode::DenyWrite;
        let first = locks.share(share, ONE, deny, nlm::FshAccess::Read)?;
        if matches!(first, S::FAILED | S::DENIED_NOLOCKS | S::DENIED_GRACE_PERIOD) {
            return Err(Stop::not_applicable(format!("the lock manager gives no shares: {first}")));
        }
        let second = locks.share(share, TWO, nlm::FshMode::DenyNone, nlm::FshAccess::Write)?;
        let third = locks.share(unshare, ONE, deny, nlm::FshAccess::Read)?;
        let fourth = locks.share(share, TWO, nlm::FshMode::DenyNone, nlm::FshAccess::Write)?;
        locks.share(unshare, TWO, nlm::FshMode::DenyNone, nlm::FshAccess::Write)?;
        let right = [first, second, third, fourth] == [S::GRANTED, S::DENIED, S::GRANTED, S::GRANTED];
        hold(right, "SHARE, SHARE of another, UNSHARE, SHARE", || format!("{first}, {second}, {third}, {fourth}"))
    };
    "nsm-notify" V3 Should [V3 xnfs "SM_NOTIFY"]
        "SM_NOTIFY says that a host restarted: its locks are free."
        => |t| {
        let monitor = t.program(nsm::PROGRAM, nsm::VERSION, None)?;
        let (mut locks, mut connection) = (locks(t)?, t.connect_to(monitor)?);
        locks.try_lock(ONE, true, (0, 10))?;
        let procedure =
            Procedure { program: nsm::PROGRAM, version: nsm::VERSION, number: nsm::Proc::NOTIFY.0 };
        let change = nsm::StatChge { mon_name: CALLER.into(), state: 3 };
        stateless::results(&mut connection, procedure, Some(locks.user), "SM_NOTIFY", |e| e.put(&change))?;
        // The monitor may be another program, which tells the lock manager.
        let until = Instant::now() + SOON;
        let status = loop {
            let (status, _) = locks.test(TWO, true, (0, 10))?;
            if status == S::GRANTED || Instant::now() > until {
                break status;
            }
            std::thread::sleep(SOON / 20);
        };
        locks.unlock(ONE, (0, 0))?;
        hold(status == S::GRANTED, "LOCK, SM_NOTIFY, TEST by another", || format!("{status}; GRANTED is right"))
    };
    "nlm-free-all" V3 Should [V3 xnfs "NLM_FREE_ALL"]
        "FREE_ALL of a host frees its locks."
        => |t| {
        let mut locks = locks(t)?;
        locks.try_lock(ONE, true, (0, 10))?;
        let notify = nlm::Notify { name: CALLER.into(), state: 0 };
        Locks::call(&mut locks.connection, locks.user, nlm::Proc::FREE_ALL, "FREE_ALL", &notify)?;
        let (status, _) = locks.test(TWO, true, (0, 10))?;
        locks.unlock(ONE, (0, 0))?;
        hold(status == S::GRANTED, "LOCK, FREE_ALL, TEST by another", || format!("{status}; GRANTED is right"))
    };
}
