//! Opens and locks of a client of version 4.

use benchmaster_nfs_proto::v4::{
    self, Argop, Createhow4, LockType4, Nfsstat4, OpenClaim4, OpenDelegation4, Openflag4, Resop, Stateid4,
};

use super::client4::{Answer, Client4, body};
use super::ops::{self, Attrs};
use crate::{Stop, Tried};

/// A file that is open.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) fh: Vec<u8>,
    pub(crate) stateid: Stateid4,
    pub(crate) owner: Vec<u8>,
    /// A delegation, and whether it is for writing.
    pub(crate) delegation: Option<(Stateid4, bool)>,
    pub(crate) rflags: u32,
}

/// A lock owner's lock on a file.
#[derive(Debug, Clone)]
pub(crate) struct Locked {
    pub(crate) fh: Vec<u8>,
    pub(crate) stateid: Stateid4,
    pub(crate) owner: Vec<u8>,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) access: u32,
    pub(crate) deny: u32,
}

impl Share {
    pub(crate) const READ: Self = Self { access: v4::SHARE_ACCESS_READ, deny: 0 };
    pub(crate) const WRITE: Self = Self { access: v4::SHARE_ACCESS_WRITE, deny: 0 };
    pub(crate) const BOTH: Self = Self { access: v4::SHARE_ACCESS_BOTH, deny: 0 };

    pub(crate) const fn deny(self, deny: u32) -> Self {
        Self { access: self.access, deny }
    }

    pub(crate) const fn want(self, want: u32) -> Self {
        Self { access: self.access | want, deny: self.deny }
    }
}

impl Client4 {
    /// OPEN; where the server wants it (4.0), OPEN_CONFIRM. An error of OPEN is the inner result.
    pub(crate) fn open_how(
        &mut self,
        owner: &[u8],
        dir: &[u8],
        share: Share,
        openhow: Openflag4<'_>,
        claim: OpenClaim4<'_>,
    ) -> Result<(Answer, Result<Open, Nfsstat4>), Stop> {
        let mut tries = 0;
        let answer = loop {
            let answer = self.once(&[
                ops::putfh(dir),
                Argop::Open(self.open_args(owner, share, openhow, claim)),
                Argop::Getfh,
            ])?;
            self.settle(owner, answer.status());
            tries += 1;
            if answer.status() != Nfsstat4::DELAY || tries > 100 {
                break answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        };
        if answer.status() != Nfsstat4::OK {
            let status = answer.status();
            return Ok((answer, Err(status)));
        }
        let opened = self.opened(owner, &answer)?;
        Ok((answer, Ok(opened)))
    }

    /// The arguments of OPEN with the owner's next number.
    pub(crate) fn open_args<'a>(
        &self,
        owner: &'a [u8],
        share: Share,
        openhow: Openflag4<'a>,
        claim: OpenClaim4<'a>,
    ) -> v4::OpenArgs<'a> {
        let want_none = match self.minor {
            0 => 0,
            _ if share.access & v4::WANT_DELEG_MASK != 0 => 0,
            _ => v4::WANT_NO_DELEG,
        };
        v4::OpenArgs {
            seqid: self.seqid(owner),
            share_access: share.access | want_none,
            share_deny: share.deny,
            owner: v4::StateOwner4 { clientid: self.clientid, owner: owner.into() },
            openhow,
            claim,
        }
    }

    /// What OPEN gave; confirms it where that is wanted.
    pub(crate) fn opened(&mut self, owner: &[u8], answer: &Answer) -> Result<Open, Stop> {
        let ok = body!(*answer, Open);
        let delegation = match ok.delegation {
            OpenDelegation4::Read(given) | OpenDelegation4::ReadAttrs(given) => Some((given.stateid, false)),
            OpenDelegation4::Write(given) | OpenDelegation4::WriteAttrs(given) => Some((given.stateid, true)),
            OpenDelegation4::None | OpenDelegation4::NoneExt(_) => None,
        };
        let mut open = Open {
            fh: answer.fh()?,
            stateid: ok.stateid,
            owner: owner.to_vec(),
            delegation,
            rflags: ok.rflags,
        };
        if self.minor == 0 && ok.rflags & v4::OPEN_RESULT_CONFIRM != 0 {
            let confirm = v4::OpenConfirmArgs { open_stateid: open.stateid, seqid: self.seqid(owner) };
            let answer = self.compound(&[ops::putfh(&open.fh), Argop::OpenConfirm(confirm)])?;
            self.settle(owner, answer.status());
            let answer = answer.ok()?;
            open.stateid = body!(answer, OpenConfirm).open_stateid;
        }
        if let Some((deleg_stateid, _)) = open.delegation
            && self.minor == 0
            && !self.keeps_delegations
        {
            let back = Argop::Delegreturn(v4::DelegreturnArgs { deleg_stateid });
            self.compound(&[ops::putfh(&open.fh), back])?.ok()?;
        }
        Ok(open)
    }

    /// Makes a file, mode 0644, and opens it for both.
    pub(crate) fn create(
        &mut self,
        owner: &[u8],
        dir: &[u8],
        name: &str,
    ) -> Result<Result<Open, Nfsstat4>, Stop> {
        let attrs = Attrs::mode(0o644);
        let how = Openflag4::Create(Createhow4::Unchecked(attrs.fattr()));
        Ok(self.open_how(owner, dir, Share::BOTH, how, OpenClaim4::Null(name.into()))?.1)
    }

    /// A file that is made and open, or the check has failed.
    pub(crate) fn made(&mut self, owner: &str, dir: &[u8], name: &str) -> Result<Open, Stop> {
        let made = self.create(owner.as_bytes(), dir, name)?;
        made.map_err(|status| Stop::failed(format!("OPEN creates `{name}`"), status.to_string()))
    }

    /// A file with content, closed.
    pub(crate) fn file(&mut self, dir: &[u8], name: &str, content: &[u8]) -> Result<Vec<u8>, Stop> {
        let open = self.made("maker", dir, name)?;
        if !content.is_empty() {
            self.compound(&[ops::putfh(&open.fh), ops::write(open.stateid, 0, content)])?.ok()?;
        }
        self.close(&open)?;
        Ok(open.fh)
    }

    /// Opens a file that is there.
    pub(crate) fn open(
        &mut self,
        owner: &str,
        dir: &[u8],
        name: &str,
        share: Share,
    ) -> Result<(Answer, Result<Open, Nfsstat4>), Stop> {
        self.open_how(owner.as_bytes(), dir, share, Openflag4::NoCreate, OpenClaim4::Null(name.into()))
    }

    /// Opens a file that is there, or the check has failed.
    pub(crate) fn opens(&mut self, owner: &str, dir: &[u8], name: &str, share: Share) -> Result<Open, Stop> {
        let (answer, open) = self.open(owner, dir, name, share)?;
        open.map_err(|_| answer.wrong("OPEN is to succeed"))
    }

    /// CLOSE, whatever it gives.
    pub(crate) fn try_close(&mut self, open: &Open) -> Result<Answer, Stop> {
        let close = v4::CloseArgs { seqid: self.seqid(&open.owner), open_stateid: open.stateid };
        let answer = self.compound(&[ops::putfh(&open.fh), Argop::Close(close)])?;
        self.settle(&open.owner, answer.status());
        Ok(answer)
    }

    /// CLOSE, which must succeed.
    pub(crate) fn close(&mut self, open: &Open) -> Tried {
        self.try_close(open)?.ok().map(|_| ())
    }

    /// OPEN_DOWNGRADE, whatever it gives.
    pub(crate) fn downgrade(&mut self, open: &Open, share: Share) -> Result<Answer, Stop> {
        let args = v4::OpenDowngradeArgs {
            open_stateid: open.stateid,
            seqid: self.seqid(&open.owner),
            share_access: share.access,
            share_deny: share.deny,
        };
        let answer = self.compound(&[ops::putfh(&open.fh), Argop::OpenDowngrade(args)])?;
        self.settle(&open.owner, answer.status());
        Ok(answer)
    }

    /// The first LOCK of a lock owner on an open file, whatever it gives.
    pub(crate) fn try_lock(
        &mut self,
        open: &Open,
        owner: &str,
        locktype: LockType4,
        (offset, length): (u64, u64),
    ) -> Result<Answer, Stop> {
        self.try_lock_how(open, owner, locktype, (offset, length), false)
    }

    /// The same, perhaps to reclaim it.
    pub(crate) fn try_lock_how(
        &mut self,
        open: &Open,
        owner: &str,
        locktype: LockType4,
        (offset, length): (u64, u64),
        reclaim: bool,
    ) -> Result<Answer, Stop> {
        let owner = owner.as_bytes();
        let to = v4::OpenToLockOwner4 {
            open_seqid: self.seqid(&open.owner),
            open_stateid: open.stateid,
            lock_seqid: self.seqid(owner),
            lock_owner: v4::StateOwner4 { clientid: self.clientid, owner: owner.into() },
        };
        let locker = v4::Locker4::OpenOwner(to);
        let lock = Argop::Lock(v4::LockArgs { locktype, reclaim, offset, length, locker });
        let answer = self.compound(&[ops::putfh(&open.fh), lock])?;
        self.settle(&open.owner, answer.status());
        if answer.status() == Nfsstat4::OK {
            self.settle(owner, answer.status());
        }
        Ok(answer)
    }

    /// The first LOCK of a lock owner, which must succeed.
    pub(crate) fn lock(
        &mut self,
        open: &Open,
        owner: &str,
        locktype: LockType4,
        range: (u64, u64),
    ) -> Result<Locked, Stop> {
        let answer = self.try_lock(open, owner, locktype, range)?;
        let stateid = locked(&answer)?;
        Ok(Locked { fh: open.fh.clone(), stateid, owner: owner.as_bytes().to_vec() })
    }

    /// Another LOCK of an owner, whatever it gives.
    pub(crate) fn try_relock(
        &mut self,
        lock: &Locked,
        locktype: LockType4,
        (offset, length): (u64, u64),
    ) -> Result<Answer, Stop> {
        let held = v4::ExistLockOwner4 { lock_stateid: lock.stateid, lock_seqid: self.seqid(&lock.owner) };
        let locker = v4::Locker4::LockOwner(held);
        let again = Argop::Lock(v4::LockArgs { locktype, reclaim: false, offset, length, locker });
        let answer = self.compound(&[ops::putfh(&lock.fh), again])?;
        self.settle(&lock.owner, answer.status());
        Ok(answer)
    }

    /// Another LOCK of an owner, which must succeed.
    pub(crate) fn relock(&mut self, lock: &mut Locked, locktype: LockType4, range: (u64, u64)) -> Tried {
        let answer = self.try_relock(lock, locktype, range)?;
        lock.stateid = locked(&answer)?;
        Ok(())
    }

    /// LOCKU, whatever it gives.
    pub(crate) fn try_unlock(&mut self, lock: &Locked, (offset, length): (u64, u64)) -> Result<Answer, Stop> {
        let args = v4::LockuArgs {
            locktype: LockType4::Write,
            seqid: self.seqid(&lock.owner),
            lock_stateid: lock.stateid,
            offset,
            length,
        };
        let answer = self.compound(&[ops::putfh(&lock.fh), Argop::Locku(args)])?;
        self.settle(&lock.owner, answer.status());
        Ok(answer)
    }

    /// LOCKU, which must succeed.
    pub(crate) fn unlock(&mut self, lock: &mut Locked, range: (u64, u64)) -> Tried {
        let answer = self.try_unlock(lock, range)?.ok()?;
        lock.stateid = body!(answer, Locku).lock_stateid;
        Ok(())
    }

    /// LOCKT for an owner that has no other use.
    pub(crate) fn test_lock(
        &mut self,
        fh: &[u8],
        owner: &str,
        locktype: LockType4,
        (offset, length): (u64, u64),
    ) -> Result<Answer, Stop> {
        let owner = v4::StateOwner4 { clientid: self.clientid, owner: owner.as_bytes().into() };
        let test = Argop::Lockt(v4::LocktArgs { locktype, offset, length, owner });
        self.compound(&[ops::putfh(fh), test])
    }
}

/// The stateid that LOCK gave.
pub(crate) fn locked(answer: &Answer) -> Result<Stateid4, Stop> {
    match answer.last() {
        Some(Resop::Lock(v4::LockRes::Ok(ok))) => Ok(ok.lock_stateid),
        _ => Err(answer.wrong("LOCK is to succeed")),
    }
}
