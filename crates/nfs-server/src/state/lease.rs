//! The lease of a client (RFC 7530 §9.5, RFC 8881 §8.3): when it was last renewed, and what SEQUENCE tells about the
//! client's state. Shared by the client's record and its sessions, so that a request renews it without any lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::ClientId;

/// Renewals closer together than this write nothing: requests on many processors would only move the cache line.
const GRAIN_NANOS: u64 = 1_000_000;

/// Time until which a client's state is valid.
#[derive(Debug)]
pub struct Lease {
    client: ClientId,
    epoch: Instant,
    /// Nanoseconds from `epoch` to the last renewal.
    renewed: AtomicU64,
    flags: AtomicU32,
    /// Nanoseconds from `epoch` to the last recall that came to nothing, plus one; 0: there was none.
    failed: AtomicU64,
}

impl Lease {
    pub(crate) fn new(client: ClientId, epoch: Instant, now: Instant) -> Self {
        let renewed = AtomicU64::new(nanos(epoch, now));
        Self { client, epoch, renewed, flags: AtomicU32::new(0), failed: AtomicU64::new(0) }
    }

    /// Whose lease it is.
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// Extends the lease from `now`.
    #[inline]
    pub fn renew(&self, now: Instant) {
        let now = nanos(self.epoch, now);
        if now > self.renewed.load(Ordering::Relaxed).saturating_add(GRAIN_NANOS) {
            self.renewed.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Time since the last renewal.
    pub fn age(&self, now: Instant) -> Duration {
        Duration::from_nanos(nanos(self.epoch, now).saturating_sub(self.renewed.load(Ordering::Relaxed)))
    }

    pub(super) fn recall_failed(&self, now: Instant) {
        self.failed.fetch_max(nanos(self.epoch, now).saturating_add(1), Ordering::Relaxed);
    }

    /// Whether a recall came to nothing within this time.
    pub(super) fn failed_within(&self, now: Instant, time: Duration) -> bool {
        let failed = self.failed.load(Ordering::Relaxed);
        failed > 0 && u128::from(nanos(self.epoch, now).saturating_sub(failed - 1)) < time.as_nanos()
    }

    /// `SEQ_STATUS_` flags that hold for all sessions of the client.
    #[inline]
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Sets or clears flags.
    pub fn set_flags(&self, flags: u32, on: bool) {
        if on {
            self.flags.fetch_or(flags, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flags, Ordering::Relaxed);
        }
    }
}

fn nanos(epoch: Instant, now: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(epoch).as_nanos()).unwrap_or(u64::MAX)
}
