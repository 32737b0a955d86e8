//! Which frame leaves when: the links of all clients and the server's port. Pure: the time is an argument.
//!
//! A frame to the server passes the client's link (bandwidth, then delay) and then the server's port; one from the
//! server passes the port and then the link. All times are those of an ideal network, however late the caller comes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::frame::Frame;
use crate::link::{Fate, Line, Link, Path};

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
    /// The first frames of all directions that have some.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<T> Switch<T> {
    pub(super) fn new(links: &[Link], server_bandwidth: Option<u64>, seed: u64) -> Self {
        let direction = |number: usize| Direction {
            path: Path::new(links[number / 2], seed, number as u64),
            waiting: VecDeque::new(),
            losses: Losses::default(),
        };
        let mut switch = Self {
            directions: (0..2 * links.len()).map(direction).collect(),
            lines: [Line::new(None, 0), Line::new(None, 0)],
            port: VecDeque::new(),
            heads: BinaryHeap::new(),
        };
        switch.set_server(server_bandwidth, links);
        switch
    }

    /// Changes a client's link for frames from now on.
    pub(super) fn set(&mut self, client: usize, link: Link) {
        for direction in &mut self.directions[2 * client..2 * client + 2] {
            direction.path.set(link);
        }
    }

    /// Changes the server's port. Its queue is that of a link with the longest delay of the clients.
    pub(super) fn set_server(&mut self, bandwidth: Option<u64>, links: &[Link]) {
        let delay = links.iter().map(|link| link.delay).max().unwrap_or_default();
        let queue = Link { bandwidth, ..Link::of_delay(delay) }.queue();
        self.lines.iter_mut().for_each(|line| line.set(bandwidth, queue));
    }

    /// A frame comes in at `now`. What it was is given back when it does not arrive.
    pub(super) fn send(&mut self, way: Route, now: u64, size: &Frame, frame: T) -> Result<(), T> {
        let (number, bytes) = (index(way), size.on_wire());
        let direction = &mut self.directions[number];
        let from_server = number % 2 == 1;
        let passed = if from_server { self.lines[1].pass(now, bytes) } else { Some(now) };
        let fate = passed.map_or(Fate::NoRoom, |passed| direction.path.send(passed, bytes));
        match fate {
            Fate::Arrives(due) => {
                if direction.waiting.is_empty() {
                    self.heads.push(Reverse((due, number)));
                }
                direction.waiting.push_back(Waiting { due, frames: size.frames, bytes, frame });
                Ok(())
            }
            Fate::Lost => {
                direction.losses.lost += size.frames;
                Err(frame)
            }
            Fate::NoRoom => {
                direction.losses.no_room += size.frames;
                Err(frame)
            }
        }
    }

    /// The next frame that was to leave at `now` or before.
    ///
    /// # Errors
    /// One that found no room at the server's port: it is lost, and is counted already.
    pub(super) fn pop(&mut self, now: u64) -> Option<Result<Departure<T>, T>> {
        loop {
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
