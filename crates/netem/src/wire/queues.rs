//! The transmit queues of one host's interface, and the line that they share. Pure: the time is an argument.

use std::collections::{BTreeMap, HashMap, VecDeque};

use slab::Slab;

use super::flow::Flow;
use crate::interface::{Discipline, FlowReport, Host, Interface, InterfaceReport, QueueReport, TABLE};
use crate::link::nanoseconds;
use crate::toeplitz::HashKey;

/// Classes of stochastic fair queueing, as Linux has had them until 3.3.
const CLASSES: u32 = 127;
/// Bytes that a class may send in its turn: a frame of Ethernet, as on the wire.
const QUANTUM: i64 = 1_538;
/// Flows that are remembered; then those are forgotten of which nothing waits.
const MOST_FLOWS: usize = 65_536;

/// A packet on its way through the interface. A large frame is one.
#[derive(Debug)]
pub(super) struct Packet<T> {
    /// The client from or to which it goes.
    pub(super) client: usize,
    /// Ethernet frames in it.
    pub(super) frames: u64,
    /// Bytes on the wire.
    pub(super) bytes: u64,
    pub(super) frame: T,
}

/// A packet in a queue, and the number of its flow.
type Queued<T> = (usize, Packet<T>);

/// The flows of a queue that take turns as one.
#[derive(Debug)]
struct Class<T> {
    packets: VecDeque<Queued<T>>,
    bytes: u64,
    /// Bytes that it may still send in its turn.
    credit: i64,
}

#[derive(Debug)]
struct Queue<T> {
    /// Those of which something waits, by number; and whose turn it is, in order.
    classes: BTreeMap<usize, Class<T>>,
    turns: VecDeque<usize>,
    counts: QueueReport,
}

impl<T> Queue<T> {
    fn new() -> Self {
        Self { classes: BTreeMap::new(), turns: VecDeque::new(), counts: QueueReport::default() }
    }

    fn push(&mut self, class: usize, flow: usize, packet: Packet<T>) {
        let counts = &mut self.counts;
        counts.bytes += packet.bytes;
        counts.packets += 1;
        counts.longest = counts.longest.max(counts.bytes);
        let turns = &mut self.turns;
        let class = self.classes.entry(class).or_insert_with(|| {
            turns.push_back(class);
            Class { packets: VecDeque::new(), bytes: 0, credit: QUANTUM }
        });
        class.bytes += packet.bytes;
        class.packets.push_back((flow, packet));
    }

    /// The next packet by deficit round robin. A class alone has all turns.
    fn pop(&mut self) -> Option<Queued<T>> {
        loop {
            let number = *self.turns.front()?;
            let class = self.classes.get_mut(&number)?;
            if self.turns.len() > 1 && class.credit <= 0 {
                class.credit += QUANTUM;
                self.turns.rotate_left(1);
                continue;
            }
            let (flow, packet) = class.packets.pop_front()?;
            class.bytes -= packet.bytes;
            if self.turns.len() > 1 {
                class.credit -= packet.bytes.cast_signed();
            }
            if class.packets.is_empty() {
                self.classes.remove(&number);
                self.turns.pop_front();
            }
            self.counts.bytes -= packet.bytes;
            self.counts.packets -= 1;
            return Some((flow, packet));
        }
    }

    /// Takes the last packet of the longest class away.
    fn drop_last(&mut self) -> Option<Queued<T>> {
        let (number, class) = self.classes.iter_mut().max_by_key(|(_, class)| class.bytes)?;
        let (number, (flow, packet)) = (*number, class.packets.pop_back()?);
        class.bytes -= packet.bytes;
        if class.packets.is_empty() {
            self.classes.remove(&number);
            self.turns.retain(|other| *other != number);
        }
        self.counts.bytes -= packet.bytes;
        self.counts.packets -= 1;
        self.counts.drops += packet.frames;
        Some((flow, packet))
    }
}

/// A flow that was seen.
#[derive(Debug)]
struct Seen<T> {
    flow: Flow,
    client: usize,
    queue: usize,
    class: usize,
    /// Bytes of it in the queue.
    queued: u64,
    /// What its sender holds back. Only if something of it is in the queue.
    held: VecDeque<Packet<T>>,
    held_bytes: u64,
    sent_bytes: u64,
    drops: u64,
}

#[derive(Debug)]
pub(super) struct Queues<T> {
    host: Host,
    interface: Interface,
    /// In bit/s.
    bandwidth: Option<u64>,
    /// Most bytes that wait in a queue.
    limit: u64,
    key: HashKey,
    rehashes: u64,
    /// When flows are hashed again, in nanoseconds.
    rehash_at: Option<u64>,
    queues: Vec<Queue<T>>,
    /// The queue whose turn it is.
    turn: usize,
    waiting: u64,
    /// When the last bit sent has passed, in picoseconds.
    free_at: u128,
    flows: Slab<Seen<T>>,
    numbers: HashMap<Flow, usize>,
}

impl<T> Queues<T> {
    /// `limit`: that of each queue if the interface states none.
    pub(super) fn new(host: Host, interface: Interface, bandwidth: Option<u64>, limit: u64) -> Self {
        Self {
            host,
            interface,
            bandwidth,
            limit: interface.limit.unwrap_or(limit),
            key: interface.key,
            rehashes: 0,
            rehash_at: interface.rehash.map(nanoseconds),
            queues: (0..interface.queues).map(|_| Queue::new()).collect(),
            turn: 0,
            waiting: 0,
            free_at: 0,
            flows: Slab::new(),
            numbers: HashMap::new(),
        }
    }

    /// Changes the line; what waits will pass at the new rate.
    pub(super) fn set(&mut self, bandwidth: Option<u64>, limit: u64) {
        (self.bandwidth, self.limit) = (bandwidth, self.interface.limit.unwrap_or(limit));
    }

    /// A packet comes at `now`, after [`Queues::advance`] to that time. Gives one for which there was no room.
    pub(super) fn send(&mut self, now: u64, flow: Flow, packet: Packet<T>) -> Option<Packet<T>> {
        if self.waiting == 0 {
            self.free_at = self.free_at.max(u128::from(now) * 1_000);
        }
        let number = self.number(flow, packet.client);
        let seen = &mut self.flows[number];
        let most = self.interface.flow_limit.unwrap_or(u64::MAX);
        if seen.queued > 0 && (!seen.held.is_empty() || seen.queued + packet.bytes > most) {
            seen.held_bytes += packet.bytes;
            seen.held.push_back(packet);
            return None;
        }
        let queue = seen.queue;
        self.enter(number, packet);
        let counts = &self.queues[queue].counts;
        if counts.packets < 2 || counts.bytes <= self.limit {
            return None;
        }
        let (number, packet) = self.queues[queue].drop_last()?;
        self.waiting -= 1;
        self.flows[number].drops += packet.frames;
        self.left(number, packet.bytes);
        Some(packet)
    }

    /// Sends what the line takes until `now`: each packet with the time, in nanoseconds, at which its last bit has passed.
    pub(super) fn advance(&mut self, now: u64, mut sent: impl FnMut(Packet<T>, u64)) {
        loop {
            let next = self.next();
            if let Some(due) =
                self.rehash_at.filter(|due| *due <= now && next.is_none_or(|next| *due <= next))
            {
                self.rehash();
                let period = self.interface.rehash.map_or(u64::MAX, nanoseconds);
                // Where nothing waits, it does not matter how often.
                let missed = if next.is_none() { (now - due) / period } else { 0 };
                self.rehash_at = due.checked_add(period.saturating_mul(missed + 1));
                continue;
            }
            if next.is_none_or(|next| next > now) {
                return;
            }
            let Some((number, packet)) = self.pop() else { return };
            if let Some(bandwidth) = self.bandwidth {
                self.free_at += u128::from(packet.bytes) * 8_000_000_000_000 / u128::from(bandwidth);
            }
            self.flows[number].sent_bytes += packet.bytes;
            self.left(number, packet.bytes);
            let passed = u64::try_from(self.free_at.div_ceil(1_000)).unwrap_or(u64::MAX);
            sent(packet, passed);
        }
    }

    /// When the line takes the next packet, if one waits.
    pub(super) fn next(&self) -> Option<u64> {
        (self.waiting > 0).then(|| u64::try_from(self.free_at.div_ceil(1_000)).unwrap_or(u64::MAX))
    }

    /// Hashes all flows with this key from `now` on; until the next re-hash it is a whole period.
    pub(super) fn set_key(&mut self, now: u64, key: HashKey) {
        (self.interface.key, self.rehashes) = (key, 0);
        self.rehash_at = self.interface.rehash.map(|period| now.saturating_add(nanoseconds(period)));
        self.spread(key);
    }

    /// What its queues did. Nothing of a host that sent nothing.
    pub(super) fn report(&self) -> Option<InterfaceReport> {
        let flow = |(_, seen): (usize, &Seen<T>)| FlowReport {
            name: seen.flow.to_string(),
            client: seen.client as u32,
            queue: seen.queue as u32,
            sent_bytes: seen.sent_bytes,
            held_bytes: seen.held_bytes,
            drops: seen.drops,
        };
        (!self.flows.is_empty()).then(|| InterfaceReport {
            host: self.host,
            queues: self.queues.iter().map(|queue| queue.counts).collect(),
            flows: self.flows.iter().map(flow).collect(),
        })
    }

    /// Resets counts, and forgets flows of which nothing was sent since they were reset before, and nothing waits.
    pub(super) fn clear(&mut self) {
        for Queue { counts, .. } in &mut self.queues {
            *counts = QueueReport {
                bytes: counts.bytes,
                packets: counts.packets,
                longest: counts.bytes,
                ..QueueReport::default()
            };
        }
        self.forget(|seen| seen.queued == 0 && seen.sent_bytes == 0);
        for (_, seen) in &mut self.flows {
            (seen.sent_bytes, seen.drops) = (0, 0);
        }
    }

    fn forget(&mut self, is_over: impl Fn(&Seen<T>) -> bool) {
        let numbers = &mut self.numbers;
        self.flows.retain(|_, seen| {
            let over = is_over(seen);
            if over {
                numbers.remove(&seen.flow);
            }
            !over
        });
    }

    /// The number of a flow, which gets its queue when it is first seen.
    fn number(&mut self, flow: Flow, client: usize) -> usize {
        if let Some(number) = self.numbers.get(&flow) {
            return *number;
        }
        if self.flows.len() >= MOST_FLOWS {
            self.forget(|seen| seen.queued == 0);
        }
        let entry = self.flows.vacant_entry();
        let number = entry.key();
        let (queue, class) = place(&self.interface, &self.key, &flow, number);
        let (held, held_bytes) = (VecDeque::new(), 0);
        entry.insert(Seen {
            flow,
            client,
            queue,
            class,
            queued: 0,
            held,
            held_bytes,
            sent_bytes: 0,
            drops: 0,
        });
        self.numbers.insert(flow, number);
        number
    }

    fn enter(&mut self, number: usize, packet: Packet<T>) {
        let seen = &mut self.flows[number];
        seen.queued += packet.bytes;
        self.waiting += 1;
        self.queues[seen.queue].push(seen.class, number, packet);
    }

    /// Bytes of a flow have left its queue: what its sender holds back follows.
    fn left(&mut self, number: usize, bytes: u64) {
        self.flows[number].queued -= bytes;
        let most = self.interface.flow_limit.unwrap_or(u64::MAX);
        loop {
            let seen = &mut self.flows[number];
            let fits = |next: &Packet<T>| seen.queued == 0 || seen.queued + next.bytes <= most;
            if !seen.held.front().is_some_and(fits) {
                return;
            }
            let Some(packet) = seen.held.pop_front() else { return };
            seen.held_bytes -= packet.bytes;
            self.enter(number, packet);
        }
    }

    /// The next packet: of the queues that have some, each in its turn.
    fn pop(&mut self) -> Option<Queued<T>> {
        let count = self.queues.len();
        let turns = (self.turn..self.turn + count).map(|turn| turn % count);
        let queue = turns.into_iter().find(|queue| self.queues[*queue].counts.packets > 0)?;
        self.turn = (queue + 1) % count;
        let (number, packet) = self.queues[queue].pop()?;
        self.waiting -= 1;
        let counts = &mut self.queues[queue].counts;
        counts.sent_bytes += packet.bytes;
        counts.sent_packets += 1;
        Some((number, packet))
    }

    fn rehash(&mut self) {
        self.rehashes += 1;
        self.spread(self.interface.key.after(self.rehashes));
    }

    /// Hashes all flows with another key. What waits goes with its flow, so that none overtakes itself.
    fn spread(&mut self, key: HashKey) {
        self.key = key;
        for (number, seen) in &mut self.flows {
            (seen.queue, seen.class) = place(&self.interface, &key, &seen.flow, number);
        }
        let taken = self.queues.iter_mut().flat_map(|queue| {
            (queue.counts.bytes, queue.counts.packets) = (0, 0);
            queue.turns.clear();
            std::mem::take(&mut queue.classes).into_values().flat_map(|class| class.packets)
        });
        for (number, packet) in taken.collect::<Vec<_>>() {
            let seen = &self.flows[number];
            self.queues[seen.queue].push(seen.class, number, packet);
        }
    }
}

/// The queue and the class of a flow of this number.
fn place(interface: &Interface, key: &HashKey, flow: &Flow, number: usize) -> (usize, usize) {
    let hash = key.hash(flow.input());
    let class = match interface.discipline {
        Discipline::Fifo => 0,
        Discipline::Sfq => (hash % CLASSES) as usize,
        Discipline::Fq => number,
    };
    ((hash % TABLE % interface.queues) as usize, class)
}

#[cfg(test)]
mod tests;
