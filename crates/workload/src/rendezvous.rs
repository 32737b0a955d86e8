//! Workers that wait for each other inside a workload: meetings and counters.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use benchmaster_nfs_client::reactor::{Reactor, Remote};

use crate::conduct::{self, Assembly, Conductor};
use crate::program::{Instruction, Program};

/// Wakes whoever waits for something to change: threads, and tasks of reactors.
#[derive(Debug, Default)]
pub struct Bell {
    rings: AtomicU64,
    lock: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    /// How often it has rung. What is looked at after this call and has not changed yet will ring once more.
    pub(crate) fn rings(&self) -> u64 {
        self.rings.load(Ordering::Acquire)
    }

    fn ring(&self) {
        let lock = locked(&self.lock);
        self.rings.fetch_add(1, Ordering::Release);
        drop(lock);
        self.rung.notify_all();
    }

    /// Blocks until it has rung more than `seen` times, or for `time` at most.
    pub(crate) fn wait(&self, seen: u64, time: Duration) {
        let quiet = |(): &mut ()| self.rings() == seen;
        let _ = self.rung.wait_timeout_while(locked(&self.lock), time, quiet);
    }
}

/// The meetings and counters of a run, as far as the workers of this process are concerned.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    meetings: Vec<Meeting>,
    /// By client of this process, then by number of the counter.
    counters: Vec<Vec<Counter>>,
    first_client: u32,
    /// The way to workers of other processes.
    assembly: OnceLock<Arc<dyn Assembly>>,
    /// Reactors whose tasks wait here.
    reactors: Mutex<Vec<Remote>>,
}

#[derive(Debug)]
struct Meeting {
    state: Mutex<MeetingState>,
    bell: Bell,
}

/// Who is at a meeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MeetingState {
    /// Streams that take part.
    active: u32,
    /// Those of them that wait.
    waiting: u32,
    /// How often all were there, over all processes.
    held: u64,
    /// For which time this process was last told to be there.
    told: u64,
}

impl MeetingState {
    /// Whether this was the last one that the others waited for.
    fn is_complete(&self) -> bool {
        self.waiting > 0 && self.waiting == self.active
    }
}

#[derive(Debug)]
struct Counter {
    state: Mutex<Count>,
    bell: Bell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Count {
    value: u64,
    /// Streams that post and take in the set-up, and in the flow.
    posting: [u32; 2],
    taking: [u32; 2],
}

/// Result of a look at a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    Done,
    Wait,
    /// Nobody is left who could change it.
    Never,
}

/// What a piece of code does together with others.
#[derive(Debug, Default)]
struct Shared {
    meets: BTreeSet<u16>,
    posts: BTreeSet<u16>,
    takes: BTreeSet<u16>,
}

impl Shared {
    fn of(code: &[Instruction]) -> Self {
        let mut shared = Self::default();
        for instruction in code {
            let _ = match instruction {
                Instruction::Meet(meeting) => shared.meets.insert(*meeting),
                Instruction::Post { counter, .. } => shared.posts.insert(*counter),
                Instruction::Take { counter, .. } => shared.takes.insert(*counter),
                _ => continue,
            };
        }
        shared
    }
}

impl Rendezvous {
    /// Those of `program` for the workers of these clients, in touch with those of other processes. `None` where the workers have nothing to do with each other.
    pub(crate) fn new(program: &Program, clients: std::ops::Range<u32>) -> Option<Self> {
        if program.meetings.is_empty() && program.counters.is_empty() {
            return None;
        }
        let mut meetings = vec![MeetingState::default(); program.meetings.len()];
        let mut counters = vec![vec![Count::default(); program.counters.len()]; clients.len()];
        for (client, counters) in clients.clone().zip(&mut counters) {
            for group in program.groups.iter().filter(|group| group.contains(client)) {
                let streams = group.workers.saturating_mul(group.queue_depth);
                for (section, code) in [&group.setup, &group.flow].into_iter().enumerate() {
                    let shared = Shared::of(code);
                    shared.meets.iter().for_each(|&at| meetings[usize::from(at)].active += streams);
                    shared.posts.iter().for_each(|&at| counters[usize::from(at)].posting[section] += streams);
                    shared.takes.iter().for_each(|&at| counters[usize::from(at)].taking[section] += streams);
                }
            }
        }
        let meeting = |state| Meeting { state: Mutex::new(state), bell: Bell::default() };
        let counter = |state| Counter { state: Mutex::new(state), bell: Bell::default() };
        Some(Self {
            meetings: meetings.into_iter().map(meeting).collect(),
            counters: counters.into_iter().map(|all| all.into_iter().map(counter).collect()).collect(),
            first_client: clients.start,
            assembly: OnceLock::new(),
            reactors: Mutex::default(),
        })
    }

    /// Gets in touch with the workers of other processes, before there are any here.
    pub(crate) fn connect(self: &Arc<Self>, conductor: &mut dyn Conductor) {
        if self.meetings.is_empty() {
            return;
        }
        let rendezvous = Arc::clone(self);
        let held = move |meeting, time| rendezvous.was_held_by_all(meeting, time);
        let Some(assembly) = conductor.assembly(Arc::new(held)) else { return };
        let assembly = self.assembly.get_or_init(|| assembly);
        for (number, meeting) in (0..).zip(&self.meetings) {
            if locked(&meeting.state).active == 0 {
                assembly.tell(number, conduct::Attendance::Left);
            }
        }
    }

    /// All processes were at a meeting.
    fn was_held_by_all(&self, meeting: u16, time: u64) {
        let Some(of) = self.meetings.get(usize::from(meeting)) else { return };
        let mut state = locked(&of.state);
        if state.held < time {
            (state.waiting, state.held) = (0, time);
            drop(state);
            self.ring(&of.bell);
        }
    }

    /// A reactor whose tasks will wait here.
    pub(crate) fn listen(&self, reactor: &Reactor) {
        locked(&self.reactors).push(reactor.remote());
    }

    fn ring(&self, bell: &Bell) {
        bell.ring();
        locked(&self.reactors).iter().for_each(Remote::wake);
    }

    /// What rings when a meeting is held.
    pub(crate) fn bell_of_meeting(&self, meeting: u16) -> &Bell {
        &self.meetings[usize::from(meeting)].bell
    }

    /// A stream has come to a meeting; returns how often it must have been held for the stream to go on.
    pub(crate) fn arrive(&self, meeting: u16) -> u64 {
        let mut state = locked(&self.meetings[usize::from(meeting)].state);
        state.waiting += 1;
        let awaited = state.held + 1;
        self.look(meeting, state);
        awaited
    }

    /// Whether a meeting has been held so often.
    pub(crate) fn was_held(&self, meeting: u16, times: u64) -> bool {
        locked(&self.meetings[usize::from(meeting)].state).held >= times
    }

    /// Holds the meeting if all of this process are there, and tells the other processes so.
    fn look(&self, meeting: u16, mut state: MutexGuard<'_, MeetingState>) {
        let time = state.held + 1;
        match self.assembly.get() {
            None if state.is_complete() => {
                (state.waiting, state.held) = (0, time);
                drop(state);
                self.ring(self.bell_of_meeting(meeting));
            }
            Some(assembly) if state.is_complete() && state.told < time => {
                state.told = time;
                drop(state);
                assembly.tell(meeting, conduct::Attendance::Arrived(time));
            }
            Some(assembly) if state.active == 0 => {
                drop(state);
                assembly.tell(meeting, conduct::Attendance::Left);
            }
            _ => {}
        }
    }

    /// A stream that runs, or would have run, `code` for `client` takes no further part.
    pub(crate) fn leave(&self, client: u32, code: &[Instruction], in_flow: bool) {
        let shared = Shared::of(code);
        for &meeting in &shared.meets {
            let mut state = locked(&self.meetings[usize::from(meeting)].state);
            if state.active > 0 {
                state.active -= 1;
                self.look(meeting, state);
            }
        }
        let section = usize::from(in_flow);
        for &counter in shared.posts.union(&shared.takes) {
            let counter_at = self.counter(client, counter);
            let mut state = locked(&counter_at.state);
            if shared.posts.contains(&counter) {
                state.posting[section] = state.posting[section].saturating_sub(1);
            }
            if shared.takes.contains(&counter) {
                state.taking[section] = state.taking[section].saturating_sub(1);
            }
            drop(state);
            self.ring(&counter_at.bell);
        }
    }

    fn counter(&self, client: u32, counter: u16) -> &Counter {
        &self.counters[(client - self.first_client) as usize][usize::from(counter)]
    }

    /// What rings when a counter of a client changes.
    pub(crate) fn bell_of_counter(&self, client: u32, counter: u16) -> &Bell {
        &self.counter(client, counter).bell
    }

    /// Adds to a counter, unless it holds `limit`.
    pub(crate) fn post(&self, client: u32, counter: u16, count: u64, limit: u64, in_flow: bool) -> Readiness {
        let counter = self.counter(client, counter);
        let mut state = locked(&counter.state);
        if state.value < limit {
            state.value = state.value.saturating_add(count)
        } else if state.taking[usize::from(in_flow)] == 0 {
            return Readiness::Never;
        } else {
            return Readiness::Wait;
        }
        drop(state);
        self.ring(&counter.bell);
        Readiness::Done
    }

    /// Subtracts from a counter, if it holds enough.
    pub(crate) fn take(&self, client: u32, counter: u16, count: u64, in_flow: bool) -> Readiness {
        let counter = self.counter(client, counter);
        let mut state = locked(&counter.state);
        match state.value.checked_sub(count) {
            Some(left) => state.value = left,
            None if state.posting[usize::from(in_flow)] == 0 => return Readiness::Never,
            None => return Readiness::Wait,
        }
        drop(state);
        self.ring(&counter.bell);
        Readiness::Done
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
