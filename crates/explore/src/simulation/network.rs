//! The network of a scenario: what leaves, when it arrives, what is lost.

use std::cmp::Reverse;
use std::time::Duration;

use rustix::io::Errno;

use super::{Event, Inner};
use crate::history::Who;
use crate::scenario::Dice;

/// When a lost segment is sent again, the first time.
const RETRANSMISSION: Duration = Duration::from_millis(200);

/// Directions of a connection.
const TO_SERVER: usize = 0;
pub(super) const TO_CLIENT: usize = 1;

#[derive(Debug)]
pub(super) struct Network {
    delay: Duration,
    jitter: Duration,
    /// Packets lost of a thousand.
    pub(super) permille: u64,
}

impl Network {
    pub(super) fn new(dice: &mut Dice) -> Self {
        Self {
            delay: dice.span(Duration::from_micros(50), Duration::from_millis(20)),
            jitter: dice.span(Duration::from_micros(10), Duration::from_millis(5)),
            permille: 0,
        }
    }
}

impl Inner {
    /// Takes what clients sent, and sends it on its way.
    pub(super) fn collect(&mut self) {
        let mut buffer = [0; 64 << 10];
        for number in 0..self.connections.len() {
            self.push_rest(number);
            while let Some(end) = &self.connections[number].end {
                match rustix::io::read(end, &mut buffer) {
                    // An empty datagram is nothing either.
                    Ok(0) => {
                        let client = self.connections[number].client;
                        self.connections[number].end = None;
                        if !self.dead[client] {
                            let at = self.arrival(number, TO_SERVER, Duration::ZERO);
                            self.put(at, Event::Closed(number));
                        }
                    }
                    Ok(len) => self.transmit(number, TO_SERVER, buffer[..len].to_vec(), Duration::ZERO),
                    Err(Errno::AGAIN | Errno::INTR) => break,
                    Err(_) => self.connections[number].end = None,
                }
            }
        }
    }

    /// What is on its way to the server arrives: what clients sent before they died, too.
    pub(super) fn arrive(&mut self) {
        let under_way = |event: &Event| matches!(event, Event::ToServer(..) | Event::Again(..));
        while self.queue.iter().any(|Reverse(due)| under_way(&due.event))
            && let Some(Reverse(due)) = self.queue.pop()
        {
            self.now = self.now.max(due.at);
            self.happen(due.event);
        }
    }

    /// When bytes arrive that leave after `wait`; those of a stream not before others.
    fn arrival(&mut self, number: usize, direction: usize, wait: Duration) -> Duration {
        let connection = &self.connections[number];
        let (client, stream) = (connection.client, connection.is_stream());
        let jitter = self.dice.below(self.network.jitter.as_nanos() as u64 + 1);
        let mut at = self.now + wait + self.network.delay + Duration::from_nanos(jitter);
        if stream {
            let mut pause = RETRANSMISSION;
            while self.network.permille > 0 && self.dice.below(1000) < self.network.permille {
                at += pause;
                pause = (pause * 2).min(Duration::from_secs(10));
                // Also after the network has become well.
                self.oracle.borrow_mut().disturbed(Some(client as u8), self.now, at);
            }
            at = at.max(self.cut_off[client]).max(self.connections[number].last[direction]);
            self.connections[number].last[direction] = at;
        }
        at
    }

    /// Sends bytes on their way, after `wait`.
    pub(super) fn transmit(&mut self, number: usize, direction: usize, bytes: Vec<u8>, wait: Duration) {
        let connection = &self.connections[number];
        let (client, stream) = (connection.client, connection.is_stream());
        if self.dead[client] {
            return;
        }
        let event = |bytes| {
            if direction == TO_SERVER {
                Event::ToServer(number, bytes)
            } else {
                Event::ToClient(number, bytes)
            }
        };
        if !stream {
            // Datagrams are lost, doubled, and overtake each other.
            let lost =
                self.cut_off[client] > self.now + wait || self.dice.below(1000) < self.network.permille;
            if lost {
                let who = if direction == TO_SERVER {
                    Who::ToServer(client as u8)
                } else {
                    Who::ToClient(client as u8)
                };
                self.line(who, "lost".into());
                return;
            }
            if self.dice.below(1000) < 10 + self.network.permille {
                let late = self.dice.span(Duration::from_micros(10), Duration::from_secs(3));
                let at = self.arrival(number, direction, wait) + late;
                self.put(at, event(bytes.clone()));
            }
        }
        let at = self.arrival(number, direction, wait);
        self.put(at, event(bytes));
    }

    /// Puts more of what waits into a client's end.
    pub(super) fn push_rest(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        while !connection.unwritten.is_empty() {
            let Some(end) = &connection.end else { return };
            match rustix::io::write(end, &connection.unwritten) {
                Ok(len) => drop(connection.unwritten.drain(..len)),
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(_) => connection.end = None,
            }
        }
    }
}
