//! The thread of a relay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use slab::Slab;

use super::Shared;
use super::connection::{Connection, Progress};

/// So long before something is due the thread does not block any more, because the kernel wakes it late by some tens of
/// microseconds.
const SPIN: Duration = Duration::from_micros(50);
/// Most connections accepted before those that are there have their turn.
const ACCEPTED: usize = 64;
/// Most bytes of one receive.
const RECEIVE: usize = 256 << 10;

const STOP: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const LISTENER: u64 = u64::MAX - 2;

/// When a pipe has something to do. Entries are left behind when that changes; `scheduled` of the connection tells
/// those that count.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Instant,
    number: u64,
    place: usize,
    pipe: usize,
}

#[derive(Debug)]
pub(super) struct Worker {
    shared: Arc<Shared>,
    listener: TcpListener,
    /// A descriptor to give up when there are no more: a connection can then be accepted and closed.
    reserve: Option<File>,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set for.
    timer_at: Option<Instant>,
    connections: Slab<Connection>,
    accepted: u64,
    schedule: BinaryHeap<Reverse<Entry>>,
    /// Connections that get a turn next, and whether each of them is in the list.
    turns: Vec<usize>,
    buffer: Vec<u8>,
    late: Vec<u64>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, listener: TcpListener, wake: Arc<OwnedFd>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &wake, EventData::new_u64(STOP), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Self {
            shared,
            listener,
            reserve: File::open("/dev/null").ok(),
            epoll,
            timer,
            timer_at: None,
            connections: Slab::new(),
            accepted: 0,
            schedule: BinaryHeap::new(),
            turns: Vec::new(),
            buffer: vec![0; RECEIVE],
            late: Vec::new(),
        })
    }

    /// Relays until it is stopped.
    pub(super) fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(256);
        while !self.shared.stop.load(Ordering::Acquire) {
            let wait = self.wait();
            events.clear();
            // It fails only when interrupted: the descriptor and the buffer are right.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), wait.as_ref());
            for event in &events {
                match event.data.u64() {
                    STOP => return,
                    TIMER => self.timer_at = None,
                    LISTENER => self.accept(),
                    token => {
                        let place = (token >> 1) as usize;
                        // What is reported of a closed connection may hit the next one in its place, which then tries
                        // in vain.
                        if let Some(connection) = self.connections.get_mut(place) {
                            connection.note((token & 1) as usize, event.flags);
                            self.turns.push(place);
                        }
                    }
                }
            }
            self.collect_due();
            self.take_turns();
        }
    }

    /// How long to block: not at all when something is due soon, else until the timer or an event.
    fn wait(&mut self) -> Option<Timespec> {
        const NOT_AT_ALL: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        if !self.turns.is_empty() {
            return Some(NOT_AT_ALL);
        }
        let Reverse(next) = self.schedule.peek()?;
        let at = next.due.checked_sub(SPIN).unwrap_or(next.due);
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(NOT_AT_ALL);
        }
        if self.timer_at.is_none_or(|set| set != at) {
            let it_value =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let once = Itimerspec { it_interval: NOT_AT_ALL, it_value };
            if timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).is_err() {
                // Cannot be with such times; spinning is right all the same.
                return Some(NOT_AT_ALL);
            }
            self.timer_at = Some(at);
        }
        None
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            match self.listener.accept() {
                Ok((socket, _)) => self.open(socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if is_out_of_descriptors(&error) => {
                    // Left waiting, the connection would wake this thread forever.
                    self.reserve = None;
                    drop(self.listener.accept());
                    self.reserve = File::open("/dev/null").ok();
                    self.shared.counters.refused.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                // The client gave up (ECONNABORTED), or there is no memory.
                Err(_) => return,
            }
        }
    }

    fn open(&mut self, socket: TcpStream) {
        let counters = &self.shared.counters;
        let (target, delay) = (self.shared.target, self.shared.delay());
        self.accepted += 1;
        let Ok(connection) = Connection::new(socket, target, delay, Instant::now(), self.accepted) else {
            counters.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if connection.is_refused() {
            counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        let entry = self.connections.vacant_entry();
        let place = entry.key();
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for (side, socket) in connection.sockets().into_iter().enumerate() {
            let data = EventData::new_u64((place as u64) << 1 | side as u64);
            if epoll::add(&self.epoll, socket, data, flags).is_err() {
                counters.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        entry.insert(connection);
        self.turns.push(place);
        counters.connections.fetch_add(1, Ordering::Relaxed);
        counters.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives turns to connections for which something is due.
    fn collect_due(&mut self) {
        let now = Instant::now();
        while self.schedule.peek().is_some_and(|Reverse(entry)| entry.due <= now) {
            let Some(Reverse(entry)) = self.schedule.pop() else { return };
            let Some(connection) = self.connections.get_mut(entry.place) else { continue };
            let scheduled = &mut connection.scheduled[entry.pipe];
            if connection.number == entry.number && *scheduled == Some(entry.due) {
                *scheduled = None;
                self.turns.push(entry.place);
            }
        }
    }

    fn take_turns(&mut self) {
        let mut turns = std::mem::take(&mut self.turns);
        turns.sort_unstable();
        turns.dedup();
        for place in turns.drain(..) {
            let Some(connection) = self.connections.get_mut(place) else { continue };
            match connection.turn(&self.shared, &mut self.buffer, &mut self.late) {
                Progress::Over => {
                    // Closing the sockets takes them off the epoll.
                    self.connections.remove(place);
                    self.shared.counters.open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                Progress::Again => self.turns.push(place),
                Progress::Wait => {}
            }
            for pipe in 0..2 {
                let next = connection.next_due(pipe);
                if let Some(due) = next
                    && connection.scheduled[pipe] != next
                {
                    let number = connection.number;
                    self.schedule.push(Reverse(Entry { due, number, place, pipe }));
                }
                connection.scheduled[pipe] = next;
            }
        }
        if self.turns.is_empty() {
            // Keeps its memory.
            self.turns = turns;
        }
        if !self.late.is_empty() {
            self.shared.counters.forwarded(&self.late);
            self.late.clear();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.counters.open.store(0, Ordering::Relaxed);
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE].iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}
