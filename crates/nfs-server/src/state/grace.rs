//! The grace period after a restart (RFC 7530 §9.6.2, RFC 8881 §8.4.2.1): who may reclaim, and until when.

use std::time::{Duration, Instant};

use hashbrown::HashMap;

/// Grace period and the clients known from before the restart.
#[derive(Debug)]
pub(super) struct Grace {
    until: Option<Instant>,
    /// Hosts with locks of NLM may reclaim, too, and never say that they are done.
    hosts: bool,
    /// Known owners, and whether they are done reclaiming.
    known: HashMap<Vec<u8>, bool>,
}

impl Grace {
    /// Begins a grace period, unless there is no client to wait for.
    pub(super) fn new(now: Instant, length: Duration, known: Vec<Vec<u8>>) -> Self {
        let until = if known.is_empty() { None } else { now.checked_add(length) };
        Self { until, hosts: false, known: known.into_iter().map(|owner| (owner, false)).collect() }
    }

    /// Hosts with locks of NLM may reclaim, too: the period lasts its whole length.
    pub(super) fn await_hosts(&mut self, now: Instant, length: Duration) {
        self.hosts = true;
        self.until = self.until.or(now.checked_add(length));
    }

    pub(super) fn lasts(&self) -> bool {
        self.until.is_some()
    }

    /// Whether the owner was known before the restart.
    pub(super) fn knows(&self, owner: &[u8]) -> bool {
        self.known.contains_key(owner)
    }

    /// A client has reclaimed all that it wants; the period ends with the last one.
    pub(super) fn done(&mut self, owner: &[u8]) {
        if let Some(done) = self.known.get_mut(owner) {
            *done = true;
        }
        if !self.hosts && self.known.values().all(|done| *done) {
            self.end();
        }
    }

    /// Ends the period when it is over; whether this call ended it.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let over = self.until.is_some_and(|until| now >= until);
        if over {
            self.end();
        }
        over
    }

    /// Owners that are still awaited.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &[u8]> {
        self.known
            .iter()
            .filter(|(_, done)| !**done && self.until.is_some())
            .map(|(owner, _)| owner.as_slice())
    }

    fn end(&mut self) {
        self.until = None;
        // Whoever did not come back may not reclaim after the next restart either (RFC 8881 §8.4.3).
        self.known.clear();
    }
}
