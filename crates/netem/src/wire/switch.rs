//! Which frame leaves when: the links of all clients and the server's port. Pure: the time is an argument.
//!
//! A frame to the server passes the client's link (bandwidth, then delay) and then the server's port; one from the
//! server passes the port and then the link. Where hosts have transmit queues, these take the place of the first
//! bandwidth of each way: the client's to the server, and the port's from the server. All times are those of an ideal
//! network, however late the caller comes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::frame::Frame;
use super::queues::{Packet, Queues};
use crate::interface::{Host, Interface, InterfaceReport};
use crate::link::{Fate, Line, Link, Path, nanoseconds};
use crate::toeplitz::HashKey;

/// Where a frame comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    ToServer(usize),
    ToClient(usize),
}

/// A frame that has come through.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Departure<T> {
    pub(super) way: Route,
    /// When it was to leave, in nanoseconds.
    pub(super) due: u64,
    pub(super) frame: T,
}

/// What was lost on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// By the link's chance.
    pub(super) lost: u64,
    /// For want of room in the queue of a bandwidth.
    pub(super) no_room: u64,
}

#[derive(Debug)]
struct Direction<T> {
    path: Path,
    /// In order of time.
    waiting: VecDeque<Waiting<T>>,
    losses: Losses,
}

impl<T> Direction<T> {
    /// A frame has this fate. What it was is given back when it does not arrive.
    fn settle(
        &mut self,
        number: usize,
        fate: Fate,
        packet: Packet<T>,
        heads: &mut BinaryHeap<Reverse<(u64, usize)>>,
    ) -> Option<T> {
        let Packet { frames, bytes, frame, .. } = packet;
        match fate {
            Fate::Arrives(due) => {
                if self.waiting.is_empty() {
                    heads.push(Reverse((due, number)));
                }
                self.waiting.push_back(Waiting { due, frames, bytes, frame });
                return None;
            }
            Fate::Lost => self.losses.lost += frames,
            Fate::NoRoom => self.losses.no_room += frames,
        }
        Some(frame)
    }
}

#[derive(Debug)]
struct Waiting<T> {
    due: u64,
    frames: u64,
    /// Bytes on the wire.
    bytes: u64,
    frame: T,
}

#[derive(Debug)]
pub(super) struct Switch<T> {
    /// Of client `i`: to the server at `2 i`, to the client at `2 i + 1`.
    directions: Vec<Direction<T>>,
    /// The server's port: to the server, from the server.
    lines: [Line; 2],
    /// Frames that wait for the server's port, with client and time, in order of time.
    port: VecDeque<(usize, u64, T)>,
    /// The first frames of all directions that have some; and, counted on from the last direction, hosts whose transmit
    /// queues have something.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Hosts' transmit queues, of the clients and then of the server; none where hosts have none.
    hosts: Vec<Sender<T>>,
    /// What does not arrive, and was not given back yet.
    gone: Vec<T>,
}

/// A host with transmit queues.
#[derive(Debug)]
struct Sender<T> {
    queues: Queues<T>,
    /// Whether it is among the heads.
    is_head: bool,
    /// The shortest delay of what it sends: nothing arrives earlier than this after it left its queue.
    least_delay: u64,
}

impl<T> Switch<T> {
    pub(super) fn new(
        links: &[Link],
        server_bandwidth: Option<u64>,
        interface: Option<&Interface>,
        seed: u64,
    ) -> Self {
        let direction = |number: usize| Direction {
            path: Path::new(links[number / 2], seed, number as u64),
            waiting: VecDeque::new(),
            losses: Losses::default(),
        };
        let clients = (0..links.len() as u32).map(Host::Client);
        let sender = |(host, interface): (Host, &Interface)| Sender {
            queues: Queues::new(host, *interface, None, 0),
            is_head: false,
            least_delay: 0,
        };
        let mut switch = Self {
            directions: (0..2 * links.len()).map(direction).collect(),
            lines: [Line::new(None, 0), Line::new(None, 0)],
            port: VecDeque::new(),
            heads: BinaryHeap::new(),
            hosts: clients
                .chain([Host::Server])
                .filter_map(|host| Some((host, interface?)))
                .map(sender)
                .collect(),
            gone: Vec::new(),
        };
        links.iter().enumerate().for_each(|(client, link)| switch.set(client, *link));
        switch.set_server(server_bandwidth, links);
        switch
    }

    /// Changes a client's link for frames from now on.
    pub(super) fn set(&mut self, client: usize, link: Link) {
        for direction in &mut self.directions[2 * client..2 * client + 2] {
            direction.path.set(link);
        }
        if let Some(host) = self.hosts.get_mut(client) {
            host.queues.set(link.bandwidth, link.queue());
            host.least_delay = nanoseconds(link.delay.saturating_sub(link.jitter));
        }
    }

    /// Changes the server's port. Its queue is that of a link with the longest delay of the clients.
    pub(super) fn set_server(&mut self, bandwidth: Option<u64>, links: &[Link]) {
        let delay = links.iter().map(|link| link.delay).max().unwrap_or_default();
        let queue = Link { bandwidth, ..Link::of_delay(delay) }.queue();
        self.lines.iter_mut().for_each(|line| line.set(bandwidth, queue));
        if let Some(host) = self.hosts.last_mut() {
            let least = links.iter().map(|link| link.delay.saturating_sub(link.jitter)).min();
            host.queues.set(bandwidth, queue);
            host.least_delay = nanoseconds(least.unwrap_or_default());
        }
    }

    /// Whether hosts have transmit queues, and frames need their [`Frame::flow`].
    pub(super) fn has_queues(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Hashes all flows with this key.
    pub(super) fn set_key(&mut self, now: u64, key: HashKey) {
        for host in 0..self.hosts.len() {
            self.advance(host, now);
            self.hosts[host].queues.set_key(now, key);
        }
    }

    /// What transmit queues did until `now`.
    pub(super) fn interfaces(&mut self, now: u64) -> Vec<InterfaceReport> {
        (0..self.hosts.len()).for_each(|host| self.advance(host, now));
        self.hosts.iter().filter_map(|host| host.queues.report()).collect()
    }

    /// A frame comes in at `now`. What it was is given back when it does not arrive, here or by [`Switch::pop`].
    pub(super) fn send(&mut self, way: Route, now: u64, size: &Frame, frame: T) -> Result<(), T> {
        let (number, bytes) = (index(way), size.on_wire());
        let from_server = number % 2 == 1;
        let packet = Packet { client: number / 2, frames: size.frames, bytes, frame };
        if !self.hosts.is_empty() {
            let host = if from_server { self.hosts.len() - 1 } else { packet.client };
            self.advance(host, now);
            let dropped = self.hosts[host].queues.send(now, size.flow, packet);
            self.gone.extend(dropped.map(|packet| {
                self.directions[2 * packet.client + number % 2].losses.no_room += packet.frames;
                packet.frame
            }));
            self.advance(host, now);
            return Ok(());
        }
        let passed = if from_server { self.lines[1].pass(now, bytes) } else { Some(now) };
        let direction = &mut self.directions[number];
        let fate = passed.map_or(Fate::NoRoom, |passed| direction.path.send(passed, bytes));
        direction.settle(number, fate, packet, &mut self.heads).map_or(Ok(()), Err)
    }

    /// What a host's line takes until `now` is on its way.
    fn advance(&mut self, host: usize, now: u64) {
        let Self { hosts, directions, heads, gone, .. } = self;
        let from_server = host + 1 == hosts.len();
        let Sender { queues, is_head, least_delay } = &mut hosts[host];
        queues.advance(now, |packet, passed| {
            let number = 2 * packet.client + usize::from(from_server);
            let direction = &mut directions[number];
            let fate = if from_server {
                direction.path.send(passed, packet.bytes)
            } else {
                direction.path.passed(passed)
            };
            gone.extend(direction.settle(number, fate, packet, heads));
        });
        if let Some(next) = queues.next().filter(|_| !*is_head) {
            *is_head = true;
            heads.push(Reverse((next.saturating_add(*least_delay), directions.len() + host)));
        }
    }

    /// The next frame that was to leave at `now` or before.
    ///
    /// # Errors
    /// One that does not arrive: it is counted already.
    pub(super) fn pop(&mut self, now: u64) -> Option<Result<Departure<T>, T>> {
        loop {
            if let Some(frame) = self.gone.pop() {
                return Some(Err(frame));
            }
            let head = self.heads.peek().map(|Reverse((due, _))| *due);
            let waits = |due: &u64| *due <= now && head.is_none_or(|head| *due <= head);
            if self.port.front().map(|(_, due, _)| due).is_some_and(waits) {
                let (client, due, frame) = self.port.pop_front()?;
                return Some(Ok(Departure { way: Route::ToServer(client), due, frame }));
            }
            if head? > now {
                return None;
            }
            let Reverse((_, number)) = self.heads.pop()?;
            if let Some(host) = number.checked_sub(self.directions.len()) {
                self.hosts[host].is_head = false;
                self.advance(host, now);
                continue;
            }
            let direction = &mut self.directions[number];
            let Waiting { due, frames, bytes, frame } = direction.waiting.pop_front()?;
            if let Some(next) = direction.waiting.front() {
                self.heads.push(Reverse((next.due, number)));
            }
            let client = number / 2;
            if number % 2 == 1 {
                return Some(Ok(Departure { way: Route::ToClient(client), due, frame }));
            }
            // Frames come here in order of time, as to a port.
            match self.lines[0].pass(due, bytes) {
                Some(due) => self.port.push_back((client, due, frame)),
                None => {
                    direction.losses.no_room += frames;
                    return Some(Err(frame));
                }
            }
        }
    }

    /// When [`Switch::pop`] has something next.
    pub(super) fn next(&self) -> Option<u64> {
        let heads = self.heads.peek().map(|Reverse((due, _))| *due);
        let port = self.port.front().map(|(_, due, _)| *due);
        [heads, port].into_iter().flatten().min()
    }

    pub(super) fn losses(&self, way: Route) -> Losses {
        self.directions[index(way)].losses
    }

    pub(super) fn forget_losses(&mut self) {
        self.directions.iter_mut().for_each(|direction| direction.losses = Losses::default());
        self.hosts.iter_mut().for_each(|host| host.queues.clear());
    }
}

fn index(way: Route) -> usize {
    match way {
        Route::ToServer(client) => 2 * client,
        Route::ToClient(client) => 2 * client + 1,
    }
}

#[cfg(test)]
mod tests;
