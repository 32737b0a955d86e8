//! One thread's tasks, timers and sockets.
//!
//! Tasks are futures polled on the thread that made the reactor. A turn polls the tasks that can go on, lets every
//! socket send what they queued, in one call each, and then waits for sockets and timers.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use slab::Slab;

mod waiters;
mod wake;

pub(crate) use self::waiters::{Line, Waiters};
use self::wake::{FOREGROUND, waker};
use crate::cache::Clock;
use crate::world::{self, World};

pub use rustix::event::epoll::EventFlags;

/// Before the end of a sleep the reactor does not block any more, because the kernel wakes it late by some tens of
/// microseconds.
const SPIN: Duration = Duration::from_micros(60);
/// Events taken from the kernel at a time.
const EVENTS: usize = 256;
/// Turns after which sockets and timers are looked at though tasks can go on.
const TURNS: u32 = 16;
/// `epoll` data of the descriptor that other threads write to.
const REMOTE: u64 = u64::MAX;
/// `epoll` data of the timer.
const TIMER: u64 = u64::MAX - 1;

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// What a reactor waits for on a descriptor.
pub trait Source {
    /// The descriptor is readable, writable or broken.
    fn ready(&self, flags: EventFlags);
    /// All tasks of a turn have been polled: what they queued can leave. Called after [`Registration::mark`].
    fn end_of_turn(&self);
}

/// A thread's reactor; clones are the same one.
#[derive(Clone)]
pub struct Reactor(Rc<Inner>);

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Inner {
    /// Tells wakers of this reactor from others'.
    number: u32,
    epoll: OwnedFd,
    remote: Arc<OwnedFd>,
    /// Ends waits in time: those of `epoll_wait` are rounded up to milliseconds.
    timer: OwnedFd,
    /// What it is set for.
    timer_at: Cell<Option<Instant>>,
    sources: RefCell<Slab<Weak<dyn Source>>>,
    /// Sources with something to send, by number.
    marked: RefCell<Vec<usize>>,
    /// Background tasks; `None` while one is polled.
    tasks: RefCell<Slab<Option<Task>>>,
    timers: RefCell<Timers>,
    /// Waiting for another thread.
    notified: Waiters,
    notifications: Cell<u64>,
    running: Cell<bool>,
    /// `None`: the system.
    world: Option<Rc<dyn World>>,
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reactor").field("number", &self.0.number).finish_non_exhaustive()
    }
}

/// Wakes a reactor from another thread.
#[derive(Debug, Clone)]
pub struct Remote(Arc<OwnedFd>);

impl Remote {
    /// Wakes every task that waits in [`Reactor::notified`].
    pub fn wake(&self) {
        // The counter is only full when the reactor has not looked at it for 2^64 - 2 wakes.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }
}

/// A source's place in a reactor; leaves it when dropped.
#[derive(Debug)]
pub struct Registration {
    reactor: Reactor,
    number: usize,
}

impl Registration {
    /// Waits on `fd` from now on.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn watch(&self, fd: BorrowedFd<'_>, flags: EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(self.number as u64);
        Ok(epoll::add(&self.reactor.0.epoll, fd, data, flags)?)
    }

    /// Waits for other events on it.
    ///
    /// # Errors
    /// Those of `epoll_ctl`.
    pub fn change(&self, fd: BorrowedFd<'_>, flags: EventFlags) -> io::Result<()> {
        let data = epoll::EventData::new_u64(self.number as u64);
        Ok(epoll::modify(&self.reactor.0.epoll, fd, data, flags)?)
    }

    /// [`Source::end_of_turn`] will be called, once, at the end of this turn. Call it once per turn.
    pub fn mark(&self) {
        self.reactor.0.marked.borrow_mut().push(self.number);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.0.sources.borrow_mut().try_remove(self.number);
    }
}

impl Reactor {
    /// A reactor for this thread.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Self::within(None)
    }

    /// A reactor in a simulated world: it never waits for the kernel, and its time is the world's.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn simulated(world: Rc<dyn World>) -> io::Result<Self> {
        Self::within(Some(world))
    }

    fn within(world: Option<Rc<dyn World>>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let remote = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &remote, epoll::EventData::new_u64(REMOTE), EventFlags::IN)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self(Rc::new(Inner {
            number: wake::next_number(),
            epoll,
            remote: Arc::new(remote),
            timer,
            timer_at: Cell::default(),
            sources: RefCell::default(),
            marked: RefCell::default(),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            notified: Waiters::default(),
            notifications: Cell::new(0),
            running: Cell::new(false),
            world,
        })))
    }

    /// Current time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// A number by which a client, a verifier or a connection differs from others.
    pub(crate) fn random(&self) -> u64 {
        self.0.world.as_ref().map_or_else(world::random, |world| world.random())
    }

    /// The number of this process.
    pub(crate) fn process(&self) -> u32 {
        // In a simulation clients differ by their identities alone.
        if self.0.world.is_some() { 1 } else { std::process::id() }
    }

    /// Its world, if that is a simulation.
    pub(crate) fn world(&self) -> Option<&dyn World> {
        self.0.world.as_deref()
    }

    /// The clock that its time comes from.
    pub(crate) fn clock(&self) -> Clock {
        self.0.world.clone().map_or(Clock::System, Clock::World)
    }

    /// Gives `source` a place.
    pub fn register(&self, source: Weak<dyn Source>) -> Registration {
        let number = self.0.sources.borrow_mut().insert(source);
        Registration { reactor: self.clone(), number }
    }

    /// Starts a task in the background. It is polled while [`Self::run_all`] or [`Self::block_on`] runs, and dropped
    /// with the reactor or by [`Self::end_background`].
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let task = self.0.tasks.borrow_mut().insert(Some(Box::pin(future)));
        wake::push(self.0.number, task as u32);
    }

    /// Drops all background tasks when what it returns is dropped. Tasks hold the reactor that holds them: a thread
    /// that is done with its reactor and has not ended them leaks both, with three descriptors.
    #[must_use]
    pub fn ends_background(&self) -> EndsBackground {
        EndsBackground(self.clone())
    }

    /// Drops all background tasks.
    pub fn end_background(&self) {
        let tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
        drop(tasks);
    }

    /// Waits until another thread calls [`Remote::wake`].
    pub async fn notified(&self) {
        let seen = self.0.notifications.get();
        self.0.notified.until(|| self.0.notifications.get() != seen).await;
    }

    /// A handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote(self.0.remote.clone())
    }

    /// Suspends the task until `at`.
    pub async fn sleep_until(&self, at: Instant) {
        self.until(at, pending::<()>()).await;
    }

    /// Suspends the task for `time`.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// The result of `future`, or `None` when it takes longer than until `at`.
    pub async fn until<F: Future>(&self, at: Instant, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        let mut timer = None;
        poll_fn(|context| {
            if let Poll::Ready(result) = future.as_mut().poll(context) {
                return Poll::Ready(Some(result));
            }
            if self.now() >= at {
                return Poll::Ready(None);
            }
            timer.get_or_insert_with(|| self.wake_at(at, context.waker().clone()));
            Poll::Pending
        })
        .await
    }

    fn wake_at(&self, at: Instant, waker: Waker) -> Timer<'_> {
        Timer { reactor: &self.0, key: self.0.timers.borrow_mut().set(at, waker) }
    }

    /// Lets tasks of the next turn go first.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|context| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Runs one future to its end, and the background tasks meanwhile.
    ///
    /// # Errors
    /// When the kernel does not let it wait, or this is called from within a task.
    pub fn block_on<F: Future>(&self, future: F) -> io::Result<F::Output> {
        let mut results = self.run_all(&mut [Box::pin(future)])?;
        results.pop().ok_or_else(|| io::Error::other("a future without a result"))
    }

    /// Runs all futures to their ends, and the background tasks meanwhile; returns their results in order.
    ///
    /// # Errors
    /// When the kernel does not let it wait, or this is called from within a task.
    pub fn run_all<F: Future + Unpin>(&self, futures: &mut [F]) -> io::Result<Vec<F::Output>> {
        if self.0.running.replace(true) {
            return Err(io::Error::other("a reactor was run from within one of its tasks"));
        }
        let _running = Running(&self.0);
        let number = self.0.number;
        let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
        let mut left = futures.len();
        let mut turn = Vec::with_capacity(futures.len());
        for task in 0..futures.len() as u32 {
            wake::push(number, FOREGROUND | task);
        }
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        while left > 0 {
            // Tasks that always have something to do must not keep sockets and timers waiting.
            for _ in 0..TURNS {
                wake::take(number, &mut turn);
                if turn.is_empty() {
                    break;
                }
                for &task in &turn {
                    if task & FOREGROUND == 0 {
                        self.poll_background(task);
                        continue;
                    }
                    let at = (task & !FOREGROUND) as usize;
                    // A task can be woken once more after its end, or by a leftover of an earlier call.
                    let Some(result @ None) = results.get_mut(at) else { continue };
                    let waker = waker(number, task);
                    if let Poll::Ready(done) =
                        Pin::new(&mut futures[at]).poll(&mut Context::from_waker(&waker))
                    {
                        *result = Some(done);
                        left -= 1;
                    }
                }
                self.end_turn();
            }
            if left > 0 {
                self.wait(&mut events, wake::is_waiting(number))?;
            }
        }
        Ok(results.into_iter().flatten().collect())
    }

    fn poll_background(&self, task: u32) {
        let at = task as usize;
        let taken = self.0.tasks.borrow_mut().get_mut(at).and_then(Option::take);
        let Some(mut future) = taken else { return };
        let waker = waker(self.0.number, task);
        let result = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut tasks = self.0.tasks.borrow_mut();
        match result {
            Poll::Ready(()) => drop(tasks.try_remove(at)),
            Poll::Pending => match tasks.get_mut(at) {
                Some(place) => *place = Some(future),
                // The background was ended meanwhile.
                None => {
                    drop(tasks);
                    drop(future);
                }
            },
        }
    }

    fn source(&self, number: usize) -> Option<Rc<dyn Source>> {
        self.0.sources.borrow().get(number).and_then(Weak::upgrade)
    }

    fn end_turn(&self) {
        let mut marked = std::mem::take(&mut *self.0.marked.borrow_mut());
        for &number in &marked {
            if let Some(source) = self.source(number) {
                source.end_of_turn();
            }
        }
        marked.clear();
        let mut place = self.0.marked.borrow_mut();
        // A source may have marked itself again.
        marked.append(&mut place);
        *place = marked;
    }

    /// Takes what sockets and timers bring; waits for it unless a task can go on.
    fn wait(&self, events: &mut Vec<epoll::Event>, hurry: bool) -> io::Result<()> {
        let next = self.0.timers.borrow_mut().first();
        let simulated = self.0.world.is_some();
        let blocks = !hurry && !simulated && next.map_or(Ok(true), |at| self.set_timer(at))?;
        let timeout = (!blocks).then_some(NO_TIME);
        events.clear();
        match epoll::wait(&self.0.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(world) = self.0.world.as_ref().filter(|_| events.is_empty() && !hurry) {
            world.advance(next)?;
        }
        for event in events.iter() {
            match event.data.u64() {
                REMOTE => self.take_notification(),
                TIMER => self.0.timer_at.set(None),
                number => {
                    if let Some(source) = self.source(number as usize) {
                        source.ready(event.flags);
                    }
                }
            }
        }
        // What arrived may be answered without any task (calls of the server).
        self.end_turn();
        if next.is_some() {
            self.fire(self.now());
        }
        Ok(())
    }

    /// Sets the timer for shortly before `at`; whether it is so far away that it is worth to block.
    fn set_timer(&self, at: Instant) -> io::Result<bool> {
        let left = at.saturating_duration_since(Instant::now()).saturating_sub(SPIN);
        if left.is_zero() {
            return Ok(false);
        }
        // One that is set for earlier wakes in vain, and is then set again.
        if self.0.timer_at.get().is_none_or(|set| set > at) {
            let it_value =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            let once = Itimerspec { it_interval: NO_TIME, it_value };
            timerfd_settime(&self.0.timer, TimerfdTimerFlags::empty(), &once)?;
            self.0.timer_at.set(Some(at));
        }
        Ok(true)
    }

    fn take_notification(&self) {
        let _ = rustix::io::read(&*self.0.remote, &mut [0u8; 8]);
        self.0.notifications.set(self.0.notifications.get() + 1);
        self.0.notified.wake();
    }

    fn fire(&self, now: Instant) {
        let mut timers = self.0.timers.borrow_mut();
        while timers.first().is_some_and(|at| at <= now) {
            timers.fire();
        }
    }
}

impl Inner {
    #[inline]
    fn now(&self) -> Instant {
        self.world.as_ref().map_or_else(Instant::now, |world| world.now())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        wake::forget(self.number);
    }
}

/// Wakes tasks at times. A timer that was cancelled stays in the queue until it comes first, or until half of them are
/// such.
#[derive(Default)]
struct Timers {
    /// Time, number and place of the waker.
    queue: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    /// With the number of its timer: places are used again.
    wakers: Slab<(u64, Waker)>,
    number: u64,
}

impl Timers {
    fn set(&mut self, at: Instant, waker: Waker) -> (u64, usize) {
        if self.queue.len() > 2 * self.wakers.len() + 64 {
            let wakers = &self.wakers;
            self.queue.retain(|Reverse((_, number, place))| is_set(wakers, *number, *place));
        }
        self.number += 1;
        let place = self.wakers.insert((self.number, waker));
        self.queue.push(Reverse((at, self.number, place)));
        (self.number, place)
    }

    /// The time of the first one.
    fn first(&mut self) -> Option<Instant> {
        while let Some(&Reverse((at, number, place))) = self.queue.peek() {
            if is_set(&self.wakers, number, place) {
                return Some(at);
            }
            self.queue.pop();
        }
        None
    }

    /// Wakes the task of the first one.
    fn fire(&mut self) {
        if let Some(Reverse((_, number, place))) = self.queue.pop()
            && is_set(&self.wakers, number, place)
        {
            self.wakers.remove(place).1.wake();
        }
    }

    fn cancel(&mut self, (number, place): (u64, usize)) {
        if is_set(&self.wakers, number, place) {
            self.wakers.remove(place);
        }
    }
}

fn is_set(wakers: &Slab<(u64, Waker)>, number: u64, place: usize) -> bool {
    wakers.get(place).is_some_and(|(of, _)| *of == number)
}

/// A timer that is set; cancelled when dropped. Of calls that had to wait, each would else leave one behind for as long as
/// it might have waited.
struct Timer<'r> {
    reactor: &'r Inner,
    key: (u64, usize),
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.reactor.timers.borrow_mut().cancel(self.key);
    }
}

/// See [`Reactor::ends_background`].
#[derive(Debug)]
pub struct EndsBackground(Reactor);

impl Drop for EndsBackground {
    fn drop(&mut self) {
        self.0.end_background();
    }
}

/// Clears the mark that a reactor runs, also when a task panics.
struct Running<'a>(&'a Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_that_end_before_their_time_leave_few_timers() {
        let reactor = Reactor::new().unwrap();
        let set = || reactor.0.timers.borrow().wakers.len();
        let late = Instant::now() + Duration::from_secs(3600);
        reactor
            .block_on(async {
                for _ in 0..1000 {
                    assert!(reactor.until(late, reactor.yield_now()).await.is_some());
                    assert_eq!(set(), 0);
                }
                assert!(reactor.0.timers.borrow().queue.len() <= 66);
                // The inner wait is given up, the outer one is over.
                let soon = Instant::now() + Duration::from_millis(1);
                assert!(reactor.until(soon, reactor.sleep_until(late)).await.is_none());
                assert_eq!((set(), reactor.0.timers.borrow_mut().first()), (0, None));
            })
            .unwrap();
    }
}
