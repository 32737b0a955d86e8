//! Keeping the lease, and the back channel, while nothing else is sent.

use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum, RenewArgs};

use super::Inner;
use super::compound::Ops;
use super::need::Need;
use super::request::Kind;
use crate::counters::Event;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;

impl Inner {
    /// Renews the lease in the background whenever nothing else did for a part of it.
    pub(super) fn keep_lease(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        let reactor = self.reactor.clone();
        self.reactor.spawn(async move {
            loop {
                let Some(due) = open(&this).map(|inner| inner.renewal_due()) else { return };
                if is_broken(Mutant::LeaseNotRenewed) {
                    reactor.sleep(Duration::from_millis(500)).await;
                    continue;
                }
                if reactor.now() < due {
                    // Short sleeps, so that the task ends soon after the client.
                    reactor
                        .sleep_until(due.max(reactor.now()).min(reactor.now() + Duration::from_millis(500)))
                        .await;
                    continue;
                }
                let Some(inner) = open(&this) else { return };
                if inner.recovery.is_running() {
                    let _ = inner.recovered().await;
                }
                let begun = reactor.now();
                match inner.renew(false).await {
                    Ok(()) => inner.counters.event(Event::LeaseRenewed),
                    Err(NfsError::V4(Nfsstat4::CB_PATH_DOWN)) => inner.call_back_lost().await,
                    // What could be recovered was; the next operation will meet the rest.
                    Err(_) => {}
                }
                // Also after a failure the next attempt has its time.
                inner.renewed.set(inner.renewed.get().max(begun));
            }
        });
    }

    fn renewal_due(&self) -> Instant {
        let part = self.options.lease_fraction.clamp(0.05, 0.95);
        self.renewed.get() + self.lease.get().mul_f64(part)
    }

    /// SEQUENCE or RENEW.
    pub(super) async fn renew(self: &Rc<Self>, recovery: bool) -> NfsResult<()> {
        if self.has_sessions() {
            let kind = Kind::reading(ops::SEQUENCE).recovering(recovery);
            return self.request(kind, |_| {}, |_| Ok(())).await;
        }
        let begun = self.reactor.now();
        let kind = Kind::reading(ops::RENEW).recovering(recovery);
        // After a recovery, with which it is repeated, the client id is another one.
        let encode = |ops: &mut Ops<'_>| {
            ops.put(Opnum::RENEW, &RenewArgs { clientid: self.client.get() });
        };
        let result = self.request(kind, encode, |results| results.take(Opnum::RENEW)).await;
        if matches!(result, Ok(()) | Err(NfsError::V4(Nfsstat4::CB_PATH_DOWN))) {
            self.renewed.set(self.reactor.now());
            if self.is_lapsed() {
                // The server may have taken delegations for others, of which it says nothing (RFC 7530 §9.6.3.1).
                self.give_back_all();
            }
            self.leased_since(begun);
        }
        result
    }

    /// A request that was sent then renewed the lease.
    pub(super) fn leased_since(&self, sent: Instant) {
        self.leased.set(self.leased.get().max(sent));
    }

    /// Whether the lease may have run out: what the server gave is not to be relied on before it was asked (RFC 7530 §9.8,
    /// RFC 8881 §8.5).
    pub(super) fn is_lapsed(&self) -> bool {
        self.reactor.now().saturating_duration_since(self.leased.get()) >= self.lease.get()
    }

    /// Version 4.0: the server cannot call back. It is sent the address again; delegations it holds to be lost it
    /// will revoke.
    async fn call_back_lost(self: &Rc<Self>) {
        if self.set_client_id().await.is_ok() {
            self.counters.event(Event::ConnectionBound);
        }
    }

    /// Binds the first connection to the back channel again whenever it was re-established.
    pub(super) fn keep_back_channel(self: &Rc<Self>) {
        if !self.has_sessions() {
            return;
        }
        let (this, rpc) = (Rc::downgrade(self), self.rpc.clone());
        self.reactor.spawn(async move {
            let mut seen = rpc.generation(0);
            loop {
                rpc.renewed(0, seen).await;
                let Some(inner) = open(&this) else { return };
                seen = rpc.generation(0);
                if inner.back.generation.get() != seen {
                    inner.demand(Need::BACK, inner.recovery.epoch());
                }
            }
        });
    }
}

/// The client, while it is not being closed.
fn open(this: &Weak<Inner>) -> Option<Rc<Inner>> {
    this.upgrade().filter(|inner| !inner.closing.get())
}
