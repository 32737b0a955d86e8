//! Locks: points at which the cache is made coherent.

use std::rc::Rc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::{Mount, Node, parts};
use crate::cache::Lock;
use crate::counters::Event;
use crate::delay::{Delay, DelayPolicy};
use crate::mount::ClientFile;
use crate::mount::node::{Cached, Slot};
use crate::protocol::{NfsResult, Protocol};
use crate::types::{LockKind, Range};

/// Times at least as fine as this, in nanoseconds, show every change.
const FINE: u64 = 1000;
/// NFS4ERR_DENIED.
const DENIED: u32 = 10010;

impl Mount {
    /// LOCK, after what is dirty was flushed. Afterwards the cache is made coherent: attributes are asked for where the
    /// server's times show every change, else all that is cached of the file is dropped (Linux: `do_setlk`). Attributes
    /// that came with LOCK spare the GETATTR. With a delegation the lock is kept here.
    pub(in crate::mount) async fn lock_cached(
        &self,
        node: &Node,
        slot: &Rc<Slot>,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<()> {
        let cached = parts(node)?;
        let mut polls = Delay::new(DelayPolicy::LOCK);
        let lock = Lock { owner: slot.owner, kind, range, there: false };
        // A recall that is being answered is waited for: it takes locks to the server.
        drop(cached.opening.shared().await);
        loop {
            if cached.locks.borrow().is_free(&lock) {
                if self.is_enough(node, &slot.how) && !cached.locked_there.get() {
                    cached.locks.borrow_mut().add(lock);
                    return Ok(());
                }
                break;
            }
            if !wait {
                return Err(self.0.client.error(DENIED));
            }
            polls.pause(&self.0.reactor, &self.0.counters, Event::LockPolled).await?;
            drop(cached.opening.shared().await);
        }
        self.flush_any(node).await?;
        let open = self.at_server(node, slot).await?;
        cached.locked_there.set(true);
        let changes = cached.changes.get();
        let attributes = self.0.client.lock(&open, slot.owner, kind, range, wait).await?;
        if self.is_delegated(node) {
            return Ok(());
        }
        // Those of before a WRITE that was answered meanwhile are of no use.
        let attributes = attributes.filter(|_| cached.changes.get() == changes);
        let fine = self.0.limits.time_delta_ns <= FINE;
        if !fine {
            cached.known.borrow_mut().invalidate();
            cached.access.borrow_mut().forget();
            self.drop_data(cached);
        }
        match attributes {
            _ if is_broken(Mutant::LockWithoutLook) => {}
            Some(attributes) => self.learn(node, attributes, false),
            None if fine => drop(self.fresh(node, true).await?),
            None => {}
        }
        Ok(())
    }

    /// LOCKU, after what is dirty was flushed, and FREE_STATEID after the last one; with a delegation nothing.
    pub(in crate::mount) async fn unlock_cached(
        &self,
        node: &Node,
        slot: &Rc<Slot>,
        range: Range,
    ) -> NfsResult<()> {
        let cached = parts(node)?;
        self.flush_any(node).await?;
        drop(cached.opening.shared().await);
        cached.locks.borrow_mut().remove(slot.owner, range);
        if !cached.locked_there.get() {
            return Ok(());
        }
        let open = self.at_server(node, slot).await?;
        self.0.client.unlock(&open, slot.owner, range).await?;
        self.0.client.free_stateid(&open, slot.owner).await
    }

    /// The locks of an open file that were kept here are taken to the server. Each stays among those kept here until the
    /// server has it, so that it is reclaimed if the server is started again meanwhile.
    pub(super) async fn lock_there(&self, cached: &Cached, slot: &Slot, open: &ClientFile) -> NfsResult<()> {
        let mut result = Ok(());
        loop {
            let Some(lock) = cached.locks.borrow().first(slot.owner) else { return result };
            cached.locked_there.set(true);
            let taken = self.0.client.lock(open, lock.owner, lock.kind, lock.range, false).await;
            match taken {
                Ok(_) => cached.locks.borrow_mut().taken(&lock),
                Err(error) => {
                    // Another has it, or may have had it (Linux: `NFS_LOCK_LOST`).
                    cached.locks.borrow_mut().remove(lock.owner, lock.range);
                    self.0.client.assume_lock(open, &lock, true);
                    result = Err(error);
                }
            }
        }
    }
}
