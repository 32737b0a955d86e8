//! Replies that leave later: injected delay and bandwidth, and those that wait for the disk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::disk::{Disk, Job};
use crate::reply::Reply;

/// Where a delayed reply goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// To the connection at this place, if it is still there.
    Connection(u64),
    /// As a datagram from the socket of this index.
    Datagram(usize, SocketAddr),
}

#[derive(Debug)]
struct Item {
    due: Instant,
    /// Keeps the order of replies that are due at the same time.
    number: u64,
    destination: Destination,
    reply: Reply,
}

/// Replies by the time they are due.
#[derive(Debug, Default)]
pub(super) struct DelayedReplies {
    heap: BinaryHeap<Reverse<Item>>,
    next: u64,
    /// Replies that wait for the disk: since when, how long at least, and where they go.
    on_disk: HashMap<Job, (Instant, Duration, Destination, Reply)>,
    /// When the disk may have done one of them.
    disk_due: Option<Instant>,
}

impl DelayedReplies {
    pub(super) fn push(&mut self, due: Instant, destination: Destination, reply: Reply) {
        let number = self.next;
        self.next += 1;
        self.heap.push(Reverse(Item { due, number, destination, reply }));
    }

    /// Keeps a reply until the disk has done its job, and no less than `delay`.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        (delay, job): (Duration, Job),
        destination: Destination,
        reply: Reply,
    ) {
        self.on_disk.insert(job, (now, delay, destination, reply));
    }

    /// Looks which replies that wait for the disk can leave.
    pub(super) fn look(&mut self, disk: Option<&Disk>, thread: usize, now: Instant) {
        let Some(disk) = disk.filter(|_| !self.on_disk.is_empty()) else { return };
        let (jobs, next) = disk.done(now, thread);
        let mut held = Duration::ZERO;
        for job in jobs {
            let Some((since, delay, destination, reply)) = self.on_disk.remove(&job) else { continue };
            held += now.saturating_duration_since(since);
            self.push(now.max(since + delay), destination, reply);
        }
        disk.held(held);
        self.disk_due = (!self.on_disk.is_empty()).then_some(next);
    }

    /// When there is something to do: the first is due, or the disk may have done something.
    pub(super) fn due(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(item)| item.due).into_iter().chain(self.disk_due).min()
    }

    /// The next one that is due by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Destination, Reply)> {
        if self.heap.peek()?.0.due > now {
            return None;
        }
        self.heap.pop().map(|Reverse(item)| (item.destination, item.reply))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn replies_leave_by_time_and_then_in_order() {
        let mut delayed = DelayedReplies::default();
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        for (ms, name) in [(3, b"c"), (1, b"a"), (1, b"b")] {
            let mut reply = Reply::new();
            reply.encoder.raw(name);
            delayed.push(at(ms), Destination::Connection(0), reply);
        }
        assert_eq!(delayed.due(), Some(at(1)));
        let mut due = |ms| {
            let names = std::iter::from_fn(|| delayed.pop(at(ms)));
            names.flat_map(|(_, reply)| reply.encoder.buffer().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!([due(0), due(2), due(2), due(3)], [&b""[..], b"ab", b"", b"c"]);
    }
}
