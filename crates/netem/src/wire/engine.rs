//! The thread of a wire: reads frames, asks the switch, writes them in time.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::arena::{Arena, FrameRef};
use super::flow::Flow;
use super::frame::Frame;
use super::report::{ClientReport, Counts, Report};
use super::switch::{Departure, Route, Switch};
use super::tap::Tap;
use super::{LARGE_FRAMES_FROM, WireConfig, client_of, precedence};
use crate::interface::InterfaceReport;
use crate::link::{Link, nanoseconds};
use crate::toeplitz::HashKey;

/// Most frames read from one device before the others have their turn.
const BATCH: usize = 64;
/// Most memory of frames under way. What comes on top is an overrun.
const MOST_MEMORY: usize = 2 << 30;

const WAKE: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;

#[derive(Debug)]
struct QueuedFrame {
    place: FrameRef,
    frames: u64,
    bytes: u64,
}

/// What the thread works on, and others look at and change between its turns.
#[derive(Debug)]
pub(super) struct State {
    /// Of the clients, then of the server.
    taps: Vec<Tap>,
    links: Vec<Link>,
    server_bandwidth: Option<u64>,
    switch: Switch<QueuedFrame>,
    arena: Arena,
    /// To the server, to the client; by client.
    counts: Vec<[Counts; 2]>,
    started: Instant,
    stop: bool,
}

impl State {
    pub(super) fn new(taps: Vec<Tap>, config: &WireConfig) -> io::Result<Self> {
        let state = Self {
            taps,
            links: config.links.clone(),
            server_bandwidth: config.server_bandwidth,
            switch: Switch::new(
                &config.links,
                config.server_bandwidth,
                config.interface.as_ref(),
                config.seed,
            ),
            arena: Arena::new(),
            counts: config.links.iter().map(|_| [Counts::new(), Counts::new()]).collect(),
            started: Instant::now(),
            stop: false,
        };
        state.choose_frames()?;
        Ok(state)
    }

    pub(super) fn set(&mut self, client: usize, link: Link) -> io::Result<()> {
        self.links[client] = link;
        self.switch.set(client, link);
        self.switch.set_server(self.server_bandwidth, &self.links);
        self.choose_frames()
    }

    pub(super) fn set_server_bandwidth(&mut self, bandwidth: Option<u64>) -> io::Result<()> {
        self.server_bandwidth = bandwidth;
        self.switch.set_server(bandwidth, &self.links);
        self.choose_frames()
    }

    pub(super) fn set_key(&mut self, key: HashKey) {
        let now = self.now();
        self.switch.set_key(now, key);
    }

    /// What transmit queues did so far.
    pub(super) fn interfaces(&mut self) -> Vec<InterfaceReport> {
        let now = self.now();
        self.switch.interfaces(now)
    }

    pub(super) fn stop(&mut self) {
        self.stop = true;
    }

    pub(super) fn report(&mut self) -> Report {
        let interfaces = self.interfaces();
        let direction = |way, counts: &Counts| {
            let losses = self.switch.losses(way);
            counts.report(losses.lost, losses.no_room)
        };
        let client = |(client, [up, down]): (usize, &[Counts; 2])| ClientReport {
            to_server: direction(Route::ToServer(client), up),
            to_client: direction(Route::ToClient(client), down),
        };
        Report { clients: self.counts.iter().enumerate().map(client).collect(), interfaces }
    }

    pub(super) fn clear(&mut self) {
        self.switch.forget_losses();
        self.counts.iter_mut().flatten().for_each(Counts::clear);
    }

    /// Sets for every device whether frames may be large.
    fn choose_frames(&self) -> io::Result<()> {
        let fast = |bandwidth: Option<u64>| bandwidth.is_none_or(|bandwidth| bandwidth >= LARGE_FRAMES_FROM);
        let port = fast(self.server_bandwidth);
        let large = |link: &Link| port && link.loss == 0.0 && fast(link.bandwidth);
        let clients = self.links.iter().map(large);
        let server = self.links.iter().all(large);
        self.taps.iter().zip(clients.chain([server])).try_for_each(|(tap, large)| tap.set_large_frames(large))
    }

    fn now(&self) -> u64 {
        nanoseconds(self.started.elapsed())
    }

    /// Reads what a device has, up to some frames; frames that are due meanwhile leave.
    fn receive(&mut self, device: usize) {
        for _ in 0..BATCH {
            let length = match rustix::io::read(&self.taps[device], self.arena.room()) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                // Nothing is there, or the interface is down.
                Err(_) => return,
            };
            let now = self.now();
            self.take(device, length, now);
            self.deliver(now);
        }
    }

    /// A frame of this many bytes was read.
    fn take(&mut self, device: usize, length: usize, now: u64) {
        let place = self.arena.keep(length);
        let data = self.arena.get(&place);
        let Some(mut size) = Frame::parse(data) else { return self.arena.release(place) };
        if self.switch.has_queues() {
            size.flow = Flow::parse(data);
        }
        if device < self.links.len() {
            // Clients reach the server alone.
            return if size.to.is_group() || client_of(size.to).is_none() {
                self.send(Route::ToServer(device), now, &size, place)
            } else {
                self.arena.release(place)
            };
        }
        if size.to.is_group() {
            for client in 0..self.links.len() {
                let place = self.arena.share(&place);
                self.send(Route::ToClient(client), now, &size, place);
            }
            return self.arena.release(place);
        }
        match client_of(size.to).filter(|client| *client < self.links.len()) {
            Some(client) => self.send(Route::ToClient(client), now, &size, place),
            None => self.arena.release(place),
        }
    }

    fn send(&mut self, way: Route, now: u64, size: &Frame, place: FrameRef) {
        if self.arena.size() > MOST_MEMORY {
            self.counts_of(way).overruns += size.frames;
            return self.arena.release(place);
        }
        let held = QueuedFrame { place, frames: size.frames, bytes: size.bytes };
        if let Err(held) = self.switch.send(way, now, size, held) {
            self.arena.release(held.place);
        }
    }

    /// Writes all frames that are due.
    fn deliver(&mut self, mut now: u64) {
        while let Some(popped) = self.switch.pop(now) {
            let Departure { way, due, frame } = match popped {
                Ok(departure) => departure,
                Err(held) => {
                    self.arena.release(held.place);
                    continue;
                }
            };
            let device = match way {
                Route::ToServer(_) => self.links.len(),
                Route::ToClient(client) => client,
            };
            let written = rustix::io::write(&self.taps[device], self.arena.get(&frame.place));
            self.arena.release(frame.place);
            match written {
                Ok(_) => self.counts_of(way).left(frame.frames, frame.bytes, now.saturating_sub(due)),
                // The kernel has no memory, or somebody took the interface down.
                Err(_) => self.counts_of(way).overruns += frame.frames,
            }
            now = self.now();
        }
    }

    fn counts_of(&mut self, way: Route) -> &mut Counts {
        match way {
            Route::ToServer(client) => &mut self.counts[client][0],
            Route::ToClient(client) => &mut self.counts[client][1],
        }
    }
}

/// How long before a frame is due the thread does not block: as late as the kernel woke it nine times in ten. Since
/// clients and servers need the processor too, all this waiting takes no more than a part of the time.
#[derive(Debug)]
struct Spin {
    most: f64,
    length: f64,
    /// Nanoseconds that may be spent.
    budget: f64,
    /// Until when the budget was earned.
    earned: u64,
}

impl Spin {
    /// The part of the time.
    const PART: f64 = 0.25;
    /// Most that is saved up, in nanoseconds.
    const SAVED: f64 = 5e6;

    fn new(most: Duration) -> Self {
        let most = nanoseconds(most) as f64;
        Self { most, length: most / 2.0, budget: Self::SAVED, earned: 0 }
    }

    /// The thread was woken this many nanoseconds after the time it had asked for.
    fn woken(&mut self, late: u64) {
        const STEP: f64 = 1_000.0;
        let step = if late as f64 > self.length { 0.9 * STEP } else { -0.1 * STEP };
        self.length = (self.length + step).clamp(0.0, self.most);
    }

    /// The thread did not block from one time to another.
    fn spent(&mut self, from: u64, to: u64) {
        self.budget -= to.saturating_sub(from) as f64;
    }

    /// How long it may be now, in nanoseconds.
    fn allowed(&mut self, now: u64) -> u64 {
        let earned = now.saturating_sub(self.earned) as f64 * Self::PART;
        (self.budget, self.earned) = ((self.budget + earned).min(Self::SAVED), now);
        if self.budget < self.length { 0 } else { self.length as u64 }
    }
}

/// What the thread is woken by at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// A frame.
    Forever,
    /// A frame, or this time.
    Until(u64),
    /// It only looks what is there: a frame is due soon.
    Not,
}

#[derive(Debug)]
pub(super) struct Engine {
    state: Arc<Mutex<State>>,
    wake: Arc<OwnedFd>,
    epoll: OwnedFd,
    timer: OwnedFd,
    spin: Spin,
}

impl Engine {
    pub(super) fn new(state: Arc<Mutex<State>>, wake: Arc<OwnedFd>, spin: Duration) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        for (device, tap) in state.lock().taps.iter().enumerate() {
            epoll::add(&epoll, tap.as_fd(), EventData::new_u64(device as u64), EventFlags::IN)?;
        }
        Ok(Self { state, wake, epoll, timer, spin: Spin::new(spin) })
    }

    /// Moves frames until it is stopped.
    pub(super) fn run(mut self) {
        // Timers of this thread are then as exact as the hardware. It cannot fail with such a value.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        // Without the right to it the thread runs as others do.
        let _ = precedence::take();
        let mut events: Vec<Event> = Vec::with_capacity(64);
        let (mut wait, mut before) = (Wait::Forever, 0);
        loop {
            events.clear();
            let timeout = self.prepare(wait, before);
            // It fails only when interrupted: the descriptor and the buffer are right.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref());
            let mut state = self.state.lock();
            let now = state.now();
            if wait == Wait::Not {
                self.spin.spent(before, now);
            }
            state.deliver(now);
            for event in &events {
                match event.data.u64() {
                    WAKE => {
                        // It is there: the event says so.
                        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
                    }
                    TIMER => {
                        if let Wait::Until(asked) = wait {
                            self.spin.woken(now.saturating_sub(asked));
                        }
                    }
                    device => state.receive(device as usize),
                }
            }
            if state.stop {
                return;
            }
            before = state.now();
            let next = state.switch.next();
            drop(state);
            wait = self.choose(next, before);
        }
    }

    /// How to wait when the next frame is due at such a time.
    fn choose(&mut self, next: Option<u64>, now: u64) -> Wait {
        let Some(due) = next else { return Wait::Forever };
        let until = due.saturating_sub(self.spin.allowed(now));
        if until > now { Wait::Until(until) } else { Wait::Not }
    }

    /// Sets the timer for it; gives the timeout of waiting.
    fn prepare(&self, wait: Wait, now: u64) -> Option<Timespec> {
        const NOT_AT_ALL: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        match wait {
            Wait::Forever => None,
            Wait::Not => Some(NOT_AT_ALL),
            Wait::Until(until) => {
                let left = until.saturating_sub(now).max(1);
                let it_value = Timespec {
                    tv_sec: (left / 1_000_000_000).cast_signed(),
                    tv_nsec: (left % 1_000_000_000).cast_signed(),
                };
                let once = Itimerspec { it_interval: NOT_AT_ALL, it_value };
                // Cannot fail with such times; looking again and again is right all the same.
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).err().map(|_| NOT_AT_ALL)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_spins_as_long_as_it_was_late_nine_times_in_ten() {
        let mut spin = Spin::new(Duration::from_micros(100));
        for round in 0..10_000u64 {
            spin.woken(round % 10 * 5_000);
        }
        assert!((38_000..47_000).contains(&spin.allowed(0)), "{spin:?}");
        (0..1_000).for_each(|_| spin.woken(1_000_000));
        assert_eq!(spin.allowed(0), 100_000);
        (0..2_000).for_each(|_| spin.woken(0));
        assert_eq!(spin.allowed(0), 0);
        assert_eq!(Spin::new(Duration::ZERO).allowed(0), 0);
    }

    #[test]
    fn it_spins_for_a_part_of_the_time() {
        let mut spin = Spin::new(Duration::from_micros(100));
        let (mut now, mut spun) = (0, 0);
        while now < 10_000_000_000 {
            let length = spin.allowed(now);
            spin.spent(now, now + length);
            spun += length;
            now += length + 10_000;
        }
        let part = spun as f64 / now as f64;
        assert!((0.24..0.26).contains(&part), "{part}");
    }
}
