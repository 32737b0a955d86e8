//! Locks of versions 2 and 3: the network lock manager (RFC 1813 appendix II; version 1 of it for NFSv2).
//!
//! A lock that another holds is asked for again and again, with pauses that grow ([`DelayPolicy::LOCK`]), each time
//! counted as [`Event::LockPolled`]: nothing here listens for the server's GRANTED calls, which come to a port that a
//! client without root rarely can register. So a waiting lock is got up to one pause after it is free, and waiting
//! clients do not queue. Each of these calls can be repeated: the server gives a lock to who holds it already, and
//! takes an UNLOCK of what is not locked.
//!
//! The server forgets locks when it restarts, and nothing here listens for its status monitor either. What is seen is
//! that the connection broke: once it is up again every lock held is reclaimed. A server that is not in its grace
//! period refuses that, and is asked for the lock as for a new one, which it grants unless another client has taken
//! it. A lock that cannot be reclaimed is counted as [`Event::StateLost`], and its UNLOCK fails. Over UDP a restart
//! is not seen.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use benchmaster_nfs_proto::nlm::{NlmStats, PROGRAM, Proc, Res, v1, v4};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, XdrError};

use crate::connect::Connect;
use crate::counters::Event;
use crate::delay::{Delay, DelayPolicy};
use crate::error::NfsError;
use crate::ops::{self, Op};
use crate::portmap::{ConnectError, Site};
use crate::protocol::NfsResult;
use crate::reactor::Reactor;
use crate::rpc::{Call, Rpc};
use crate::types::{Handle, LockKind, Range};

mod locks;

use self::locks::{LockTable, OwnerLocks};

pub(crate) use self::locks::Lock;

/// Who holds a lock that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Shared or exclusive.
    pub kind: LockKind,
    /// Its owner's number at its client.
    pub svid: i32,
    /// Locked bytes.
    pub range: Range,
}

/// The client's side of the lock manager.
#[derive(Debug)]
pub(crate) struct LockManager(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    version: u32,
    port: Option<u16>,
    /// Calls to the lock manager, once the first lock was asked for.
    rpc: RefCell<Option<Rpc>>,
    caller: String,
    cookie: Cell<u32>,
    delay: DelayPolicy,
    lock_delay: DelayPolicy,
    held: RefCell<LockTable>,
    turns: OwnerLocks,
}

/// One request for, or about, a lock.
#[derive(Debug, Clone, Copy)]
struct Request<'r> {
    caller: &'r str,
    lock: &'r Lock,
    cookie: [u8; 4],
    owner: [u8; 8],
}

/// Lock of a request, in the messages of a version.
macro_rules! alock {
    ($version:ident, $offset:ty, $request:expr) => {
        $version::Lock {
            caller_name: $request.caller.into(),
            fh: $request.lock.file.bytes().into(),
            oh: $request.owner[..].into(),
            svid: svid($request.lock.owner),
            l_offset: $request.lock.range.offset as $offset,
            l_len: $request.lock.range.length as $offset,
        }
    };
}

/// Writes arguments in the version spoken: the fields before the lock, and those behind it.
macro_rules! arguments {
    ($e:expr, $version:expr, $request:expr,
     $args:ident { $($field:ident : $value:expr),* } $($behind:ident : $last:expr),*) => {
        match $version {
            v4::VERSION => $e.put(&v4::$args {
                cookie: $request.cookie[..].into(),
                $($field: $value,)*
                alock: alock!(v4, u64, $request),
                $($behind: $last,)*
            }),
            _ => $e.put(&v1::$args {
                cookie: $request.cookie[..].into(),
                $($field: $value,)*
                alock: alock!(v1, u32, $request),
                $($behind: $last,)*
            }),
        }
    };
}

impl LockManager {
    /// Version 4 of the lock manager for version 3 of NFS, 1 for 2.
    pub(crate) fn new(reactor: &Reactor, version: u32, connect: &Connect) -> Self {
        Self(Rc::new(Inner {
            version,
            port: connect.lock_port,
            rpc: RefCell::new(None),
            caller: caller_name(connect, reactor.process()),
            cookie: Cell::new(0),
            delay: connect.delay,
            lock_delay: connect.lock_delay,
            held: RefCell::default(),
            turns: OwnerLocks::default(),
        }))
    }

    /// Calls to the lock manager; connects where that was not done before.
    async fn rpc(&self, site: &Site) -> NfsResult<Rpc> {
        let known = self.0.rpc.borrow().clone();
        if let Some(rpc) = known {
            return Ok(rpc);
        }
        let rpc = site.service(PROGRAM, self.0.version, ops::nlm::NULL, self.0.port).await;
        let rpc = rpc.map_err(|error| match error {
            ConnectError::Nfs(error) => error,
            ConnectError::NoAddress | ConnectError::Unreachable { .. } => {
                NfsError::Unsupported("the server's lock manager cannot be reached")
            }
        })?;
        // Another task may have been faster.
        let rpc = self.0.rpc.borrow_mut().get_or_insert(rpc).clone();
        if !self.0.held.borrow_mut().watched {
            self.0.held.borrow_mut().watched = true;
            rpc.reactor().spawn(reclaim(Rc::downgrade(&self.0), rpc.clone()));
        }
        Ok(rpc)
    }

    /// LOCK; asks again while another holds it, if `wait`.
    pub(crate) async fn lock(&self, site: &Site, lock: Lock, wait: bool) -> NfsResult<()> {
        self.0.check(&lock)?;
        let rpc = self.rpc(site).await?;
        let mut polls = Delay::new(self.0.lock_delay);
        loop {
            let turn = self.0.turns.take(&lock).await;
            match self.0.ask(&rpc, &lock, false).await? {
                NlmStats::GRANTED => {
                    self.0.held.borrow_mut().add(lock);
                    return Ok(());
                }
                NlmStats::DENIED if wait => {
                    drop(turn);
                    polls.pause(rpc.reactor(), rpc.counters(), Event::LockPolled).await?;
                }
                status => return Err(NfsError::Nlm(status)),
            }
        }
    }

    pub(crate) async fn unlock(&self, site: &Site, lock: Lock) -> NfsResult<()> {
        self.0.check(&lock)?;
        let rpc = self.rpc(site).await?;
        self.unlock_by(&rpc, lock).await
    }

    async fn unlock_by(&self, rpc: &Rpc, lock: Lock) -> NfsResult<()> {
        let _turn = self.0.turns.take(&lock).await;
        // What is being unlocked is not reclaimed any more.
        let lost = self.0.held.borrow_mut().remove(&lock);
        let encode = |e: &mut Encoder, request: &Request<'_>| {
            arguments!(e, self.0.version, request, UnlockArgs {});
        };
        match self.0.patiently(rpc, Proc::UNLOCK, &lock, encode, status).await? {
            NlmStats::GRANTED if lost => Err(NfsError::StateLost("a lock")),
            NlmStats::GRANTED => Ok(()),
            status => Err(NfsError::Nlm(status)),
        }
    }

    /// TEST: who is in the way of a lock.
    pub(crate) async fn test(&self, site: &Site, lock: Lock) -> NfsResult<Option<Holder>> {
        self.0.check(&lock)?;
        let rpc = self.rpc(site).await?;
        let encode = |e: &mut Encoder, request: &Request<'_>| {
            arguments!(e, self.0.version, request, TestArgs { exclusive: lock.is_exclusive() });
        };
        let holder = Cell::new(None);
        let decode = |d: &mut Decoder<'_>| {
            let (status, found) = match self.0.version {
                v4::VERSION => match d.get::<v4::TestRes<'_>>()?.stat {
                    v4::TestReply::Denied(h) => {
                        (NlmStats::DENIED, Some((h.exclusive, h.svid, h.l_offset, h.l_len)))
                    }
                    v4::TestReply::Other(stat) => (NlmStats(stat), None),
                },
                _ => match d.get::<v1::TestRes<'_>>()?.stat {
                    v1::TestReply::Denied(h) => {
                        (NlmStats::DENIED, Some((h.exclusive, h.svid, h.l_offset.into(), h.l_len.into())))
                    }
                    v1::TestReply::Other(stat) => (NlmStats(stat), None),
                },
            };
            holder.set(found);
            Ok(status)
        };
        match self.0.patiently(&rpc, Proc::TEST, &lock, encode, decode).await? {
            NlmStats::GRANTED => Ok(None),
            NlmStats::DENIED => Ok(holder.get().map(|(exclusive, svid, offset, length)| Holder {
                kind: if exclusive { LockKind::Write } else { LockKind::Read },
                svid,
                range: Range { offset, length },
            })),
            status => Err(NfsError::Nlm(status)),
        }
    }

    /// Gives back the locks of an owner in a file that it closes, as `close` does (POSIX).
    pub(crate) async fn close(&self, site: &Site, file: &Handle, owner: u64) -> NfsResult<()> {
        let lock = Lock::new(file, owner, LockKind::Write, Range::WHOLE);
        if self.0.held.borrow().any_of(&lock) { self.unlock(site, lock).await } else { Ok(()) }
    }

    /// Gives all locks back, as far as the server can be reached.
    pub(crate) async fn release(&self) {
        let Some(rpc) = self.0.rpc.borrow().clone() else { return };
        let locks = self.0.held.borrow().all();
        for lock in locks {
            if let Err(NfsError::Rpc(_)) = self.unlock_by(&rpc, lock).await {
                break;
            }
        }
    }
}

impl Drop for Inner {
    /// Lets the task end that watches for restarts.
    fn drop(&mut self) {
        if let Some(rpc) = self.rpc.get_mut() {
            rpc.close();
        }
    }
}

impl Inner {
    /// Refuses what the version cannot say.
    fn check(&self, lock: &Lock) -> NfsResult<()> {
        let limit = if self.version == v4::VERSION { u64::MAX } else { u32::MAX.into() };
        let Range { offset, length } = lock.range;
        if offset <= limit && length <= limit { Ok(()) } else { Err(NfsError::Nlm(NlmStats::FBIG)) }
    }

    /// Asks for a lock once, whatever the answer, but for the grace period.
    async fn ask(&self, rpc: &Rpc, lock: &Lock, reclaim: bool) -> NfsResult<NlmStats> {
        let exclusive = lock.is_exclusive();
        let encode = |e: &mut Encoder, request: &Request<'_>| {
            arguments!(e, self.version, request,
                LockArgs { block: false, exclusive: exclusive } reclaim: reclaim, state: 0);
        };
        let answer = if reclaim {
            self.once(rpc, Proc::LOCK, lock, encode, status).await
        } else {
            self.patiently(rpc, Proc::LOCK, lock, encode, status).await
        };
        if answer != Ok(NlmStats::BLOCKED) {
            return answer;
        }
        // Not what was asked for: no callback service takes the grant.
        let cancel = |e: &mut Encoder, request: &Request<'_>| {
            arguments!(e, self.version, request, CancelArgs { block: false, exclusive: exclusive });
        };
        self.patiently(rpc, Proc::CANCEL, lock, cancel, status).await?;
        Ok(NlmStats::DENIED)
    }

    /// Calls again while the server is in its grace period.
    async fn patiently(
        &self,
        rpc: &Rpc,
        procedure: Proc,
        lock: &Lock,
        encode: impl Fn(&mut Encoder, &Request<'_>),
        decode: impl Fn(&mut Decoder<'_>) -> Result<NlmStats, XdrError>,
    ) -> NfsResult<NlmStats> {
        let mut delay = Delay::new(self.delay);
        loop {
            match self.once(rpc, procedure, lock, &encode, &decode).await? {
                NlmStats::DENIED_GRACE_PERIOD => {
                    delay.pause(rpc.reactor(), rpc.counters(), Event::Grace).await?;
                }
                status => return Ok(status),
            }
        }
    }

    async fn once(
        &self,
        rpc: &Rpc,
        procedure: Proc,
        lock: &Lock,
        encode: impl Fn(&mut Encoder, &Request<'_>),
        decode: impl Fn(&mut Decoder<'_>) -> Result<NlmStats, XdrError>,
    ) -> NfsResult<NlmStats> {
        let number = self.cookie.get();
        self.cookie.set(number.wrapping_add(1));
        let (cookie, owner) = (number.to_be_bytes(), lock.owner.to_be_bytes());
        let request = Request { caller: &self.caller, lock, cookie, owner };
        let op = op(procedure);
        // Always the same connection, the one that is watched.
        let call = Call::new(op, PROGRAM, self.version, procedure.0).on(0);
        let status = rpc.call(call, |e, _| encode(e, &request), decode).await?;
        if status != NlmStats::GRANTED {
            rpc.counters().error(op);
        }
        Ok(status)
    }

    /// Gets all locks again from a server that may have lost them.
    async fn reclaim_all(&self, rpc: &Rpc) {
        let locks = self.held.borrow().all();
        for lock in locks {
            let _turn = self.turns.take(&lock).await;
            if !self.held.borrow().contains(&lock) {
                continue;
            }
            let reclaimed = self.ask(rpc, &lock, true).await;
            let (status, event) = match reclaimed {
                // It is not in its grace period.
                Ok(NlmStats::DENIED_GRACE_PERIOD) => (self.ask(rpc, &lock, false).await, None),
                other => (other, Some(Event::LockReclaimed)),
            };
            match status {
                Ok(NlmStats::GRANTED) => event.into_iter().for_each(|event| rpc.counters().event(event)),
                Ok(_) | Err(_) => {
                    self.held.borrow_mut().lose(&lock);
                    rpc.counters().event(Event::StateLost);
                }
            }
        }
    }
}

/// Reclaims locks each time the connection was made again; ends with the lock manager.
async fn reclaim(manager: Weak<Inner>, rpc: Rpc) {
    let mut seen = rpc.generation(0);
    loop {
        rpc.renewed(0, seen).await;
        let Some(manager) = manager.upgrade() else { return };
        if rpc.is_closed() {
            return;
        }
        seen = rpc.generation(0);
        manager.reclaim_all(&rpc).await;
    }
}

/// The client's name as lock managers know it: one of its own for each client of each process of each machine. It has
/// the form of a host's name, because some servers hand it to their status monitor.
fn caller_name(connect: &Connect, process: u32) -> String {
    let name = format!("{}-{process}-{}", connect.machine, connect.identity);
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '-' };
    name.chars().map(plain).collect()
}

fn op(procedure: Proc) -> Op {
    match procedure {
        Proc::TEST => ops::nlm::TEST,
        Proc::LOCK => ops::nlm::LOCK,
        Proc::CANCEL => ops::nlm::CANCEL,
        Proc::UNLOCK => ops::nlm::UNLOCK,
        _ => ops::nlm::NULL,
    }
}

/// An owner's number as the protocol has room for it; the whole of it is in the owner handle beside it.
fn svid(owner: u64) -> i32 {
    (owner as u32 & i32::MAX.cast_unsigned()).cast_signed()
}

fn status(d: &mut Decoder<'_>) -> Result<NlmStats, XdrError> {
    Ok(d.get::<Res<'_>>()?.stat)
}

impl Lock {
    /// A lock of `owner`.
    pub(crate) fn new(file: &Handle, owner: u64, kind: LockKind, range: Range) -> Self {
        Self { file: *file, owner, kind, range }
    }

    fn is_exclusive(&self) -> bool {
        self.kind == LockKind::Write
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_have_names_as_hosts_have() {
        let mut connect = Connect::new([127, 0, 0, 1].into(), "/export");
        (connect.machine, connect.identity) = ("host.net".to_owned(), "study 1/clïent".to_owned());
        assert_eq!(caller_name(&connect, 42), "host.net-42-study-1-cl-ent");
    }

    #[test]
    fn owners_fit_the_protocol() {
        assert_eq!((svid(7), svid(1 << 31 | 7), svid(u64::MAX)), (7, 7, i32::MAX));
    }
}
