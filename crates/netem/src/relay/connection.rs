//! A connection through the relay: two sockets, and a pipe in each direction.

use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::pipe::{End, Pipe};
use super::{Shared, arrival};

/// Most bytes received for a connection in its turn.
const TURN: usize = 1 << 20;

/// A socket, and what is known of it. Readiness is reported once (edge-triggered), so it is remembered.
#[derive(Debug)]
struct Side {
    socket: Socket,
    readable: bool,
    writable: bool,
    /// The peer will send no more, or an error waits: a short receive does not mean that there is nothing left.
    ending: bool,
    error: bool,
    /// Still in its handshake.
    connecting: bool,
    /// It did not take what was due.
    blocked: bool,
    /// What is received next arrived after this.
    empty: Instant,
}

impl Side {
    fn new(socket: Socket, connecting: bool) -> Self {
        // Only times are less exact where the kernel cannot note them.
        let _ = arrival::note_arrivals(&socket);
        Self {
            socket,
            readable: false,
            writable: !connecting,
            ending: false,
            error: false,
            connecting,
            blocked: false,
            empty: Instant::now(),
        }
    }
}

/// What is left to do for a connection after its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing until something happens on it or becomes due.
    Wait,
    /// It goes on when others had their turn.
    Again,
    Over,
}

/// Sides and pipes: 0 is the client, and what comes from it; 1 the target.
#[derive(Debug)]
pub(super) struct Connection {
    sides: [Side; 2],
    pipes: [Pipe; 2],
    /// What arrives before this counts as arriving then: the handshake was under way.
    floors: [Instant; 2],
    /// The pipe's end was passed on, or its receiver is gone.
    done: [bool; 2],
    /// Numbers connections, unlike their places, which are used again.
    pub(super) number: u64,
    /// For what time each pipe waits in the worker's schedule.
    pub(super) scheduled: [Option<Instant>; 2],
}

impl Connection {
    /// A connection accepted at `now`, and the one to the target begun.
    pub(super) fn new(
        accepted: std::net::TcpStream,
        target: SocketAddr,
        delay: Duration,
        now: Instant,
        number: u64,
    ) -> io::Result<Self> {
        let client = Socket::from(accepted);
        client.set_nonblocking(true)?;
        client.set_tcp_nodelay(true)?;
        let socket =
            Socket::new(Domain::for_address(target), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        let connecting = match socket.connect(&target.into()) {
            Ok(()) => Ok(false),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                Ok(true)
            }
            Err(error) => Err(error),
        };
        let mut connection = Self {
            sides: [Side::new(client, false), Side::new(socket, *connecting.as_ref().unwrap_or(&false))],
            pipes: [Pipe::default(), Pipe::default()],
            floors: [now + 2 * delay, now + 3 * delay],
            done: [false, false],
            number,
            scheduled: [None, None],
        };
        if connecting.is_err() {
            connection.refused(delay);
        }
        Ok(connection)
    }

    /// Whether the target refused it.
    pub(super) fn is_refused(&self) -> bool {
        self.done[0]
    }

    /// The refusal comes back to the client a round trip after it asked.
    fn refused(&mut self, delay: Duration) {
        self.sides[1].connecting = false;
        self.done[0] = true;
        self.pipes[0].clear();
        self.pipes[1].finish(End::Reset, self.floors[1] - delay);
    }

    pub(super) fn sockets(&self) -> [&Socket; 2] {
        [&self.sides[0].socket, &self.sides[1].socket]
    }

    /// The kernel reported an event of a side.
    pub(super) fn note(&mut self, side: usize, flags: EventFlags) {
        let side = &mut self.sides[side];
        let ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        side.readable |= flags.contains(EventFlags::IN) || ending;
        side.writable |= flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR);
        side.ending |= ending;
        side.error |= flags.contains(EventFlags::ERR);
    }

    /// When something has to be done for a pipe next; `None` while its receiver takes nothing.
    pub(super) fn next_due(&self, pipe: usize) -> Option<Instant> {
        if self.done[pipe] {
            return None;
        }
        let receiver = &self.sides[1 - pipe];
        let moves = !receiver.connecting && receiver.writable;
        if moves { self.pipes[pipe].next_due() } else { self.pipes[pipe].reset_due() }
    }

    /// Receives and forwards what can be. `late` gets the lateness of pieces forwarded, in nanoseconds.
    pub(super) fn turn(&mut self, shared: &Shared, buffer: &mut [u8], late: &mut Vec<u64>) -> Progress {
        if self.sides[1].connecting && self.sides[1].writable {
            match self.sides[1].socket.take_error() {
                Ok(None) => self.sides[1].connecting = false,
                Ok(Some(_)) | Err(_) => {
                    shared.counters.refused.fetch_add(1, Ordering::Relaxed);
                    self.refused(shared.delay());
                }
            }
        }
        let mut again = false;
        for pipe in 0..2 {
            again |= self.receive(pipe, shared, buffer);
        }
        for pipe in 0..2 {
            if self.forward(pipe, shared, late) == Progress::Over {
                return Progress::Over;
            }
        }
        // Room was made for what could not be received.
        again |= (0..2).any(|pipe| self.receives(pipe) && self.pipes[pipe].room(shared.queue()) > 0);
        if self.done == [true, true] {
            Progress::Over
        } else if again {
            Progress::Again
        } else {
            Progress::Wait
        }
    }

    fn receives(&self, pipe: usize) -> bool {
        self.sides[pipe].readable && !self.pipes[pipe].is_finished() && !self.sides[pipe].connecting
    }

    /// Whether there may be more after this turn.
    fn receive(&mut self, pipe: usize, shared: &Shared, buffer: &mut [u8]) -> bool {
        let limit = shared.queue();
        let mut received = 0;
        while self.receives(pipe) {
            let side = &mut self.sides[pipe];
            let room = self.pipes[pipe].room(limit).min(buffer.len());
            if room == 0 {
                // Nothing is read, so an error would not be seen.
                if side.error && side.socket.take_error().is_ok_and(|error| error.is_some()) {
                    self.pipes[pipe].finish(End::Reset, Instant::now() + shared.delay());
                }
                return false;
            }
            if received >= TURN {
                return true;
            }
            let called = Instant::now();
            let taken = arrival::receive(&side.socket, &mut buffer[..room], side.empty);
            let due = |arrived: Instant| arrived.max(self.floors[pipe]) + shared.delay();
            match taken {
                Ok((0, _)) => self.pipes[pipe].finish(End::Closed, due(Instant::now())),
                Ok((len, arrived)) => {
                    // A receiver that is gone takes nothing; its reset is on the way back.
                    if !self.done[pipe] {
                        self.pipes[pipe].push(&buffer[..len], due(arrived));
                    }
                    received += len;
                    side.readable = len == room || side.ending;
                    if len < room {
                        side.empty = called;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    side.readable = false;
                    side.empty = called;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.pipes[pipe].finish(End::Reset, due(Instant::now())),
            }
        }
        false
    }

    fn forward(&mut self, pipe: usize, shared: &Shared, late: &mut Vec<u64>) -> Progress {
        let receiver = &mut self.sides[1 - pipe];
        while !receiver.connecting && !self.done[pipe] && receiver.writable {
            let now = Instant::now();
            let due = self.pipes[pipe].due(now);
            if due == 0 {
                receiver.blocked = false;
                break;
            }
            match receiver.socket.send_vectored(&self.pipes[pipe].slices(due)) {
                Ok(sent) => {
                    shared.counters.bytes[pipe].fetch_add(sent as u64, Ordering::Relaxed);
                    let blocked = receiver.blocked;
                    self.pipes[pipe].consume(sent, |due| {
                        if blocked {
                            shared.counters.held_up.fetch_add(1, Ordering::Relaxed);
                        } else {
                            late.push(now.duration_since(due).as_nanos() as u64);
                        }
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    receiver.writable = false;
                    receiver.blocked = true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    // The receiver is gone; who sends to it will know in the time of the delay.
                    self.done = [false, false];
                    self.done[pipe] = true;
                    self.pipes[pipe].clear();
                    self.pipes[1 - pipe].finish(End::Reset, now + shared.delay());
                }
            }
        }
        match self.pipes[pipe].ended(Instant::now()) {
            Some(End::Closed) if !self.done[pipe] && !receiver.connecting => {
                self.done[pipe] = true;
                // It fails when the receiver is gone already.
                let _ = receiver.socket.shutdown(Shutdown::Write);
                Progress::Wait
            }
            Some(End::Reset) => {
                // Closing without lingering sends a reset.
                let _ = receiver.socket.set_linger(Some(Duration::ZERO));
                Progress::Over
            }
            _ => Progress::Wait,
        }
    }
}
