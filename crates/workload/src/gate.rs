//! Lets all workers enter a phase at the same instant.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use benchmaster_nfs_client::reactor::{Reactor, Remote};

use benchmaster_clock::Ticks;

/// When a phase begins and ends, on the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Ticks,
    pub(crate) deadline: Ticks,
}

/// Opened once per phase by the coordinator.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    opened: Vec<Window>,
    aborted: bool,
    /// Reactors whose tasks wait here.
    reactors: Vec<Remote>,
}

impl State {
    /// `None` while phase number `phase` is not open.
    fn look(&self, phase: usize) -> Option<Entrance> {
        match self.opened.get(phase) {
            _ if self.aborted => Some(Entrance::Aborted),
            Some(window) => Some(Entrance::Open(*window)),
            None => None,
        }
    }
}

enum Entrance {
    Open(Window),
    Aborted,
}

impl Entrance {
    fn window(self) -> Option<Window> {
        match self {
            Self::Open(window) => Some(window),
            Self::Aborted => None,
        }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        state.reactors.iter().for_each(Remote::wake);
        self.changed.notify_all();
    }

    /// Lets workers into the next phase.
    pub(crate) fn open(&self, window: Window) {
        self.change(|state| state.opened.push(window));
    }

    /// Sends all workers home.
    pub(crate) fn abort(&self) {
        self.change(|state| state.aborted = true);
    }

    /// Waits for phase number `phase` (from 0); `None` when the run was aborted.
    pub(crate) fn wait(&self, phase: usize) -> Option<Window> {
        let closed = |state: &mut State| state.look(phase).is_none();
        let state = self.changed.wait_while(self.lock(), closed).unwrap_or_else(PoisonError::into_inner);
        state.look(phase).and_then(Entrance::window)
    }

    /// A reactor whose tasks will [wait](Self::entered) here.
    pub(crate) fn listen(&self, reactor: &Reactor) {
        self.lock().reactors.push(reactor.remote());
    }

    /// Waits until the run is aborted, in a task of a reactor that [listens](Self::listen).
    pub(crate) async fn aborted(&self, reactor: &Reactor) {
        // Bound before the wait: the lock must not be held meanwhile.
        while {
            let aborted = self.lock().aborted;
            !aborted
        } {
            reactor.notified().await;
        }
    }

    /// What [`Self::wait`] does, for a task of a reactor that [listens](Self::listen).
    pub(crate) async fn entered(&self, reactor: &Reactor, phase: usize) -> Option<Window> {
        loop {
            // Bound before the wait: the lock must not be held meanwhile.
            let entrance = self.lock().look(phase);
            match entrance {
                Some(entrance) => return entrance.window(),
                None => reactor.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { start: 3, deadline: 9 };

    #[test]
    fn threads_and_tasks_enter_phases_as_they_are_opened() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| (gate.wait(0), gate.wait(1)));
            let tasks = scope.spawn(|| {
                let reactor = Reactor::new().unwrap();
                gate.listen(&reactor);
                let task =
                    || Box::pin(async { (gate.entered(&reactor, 0).await, gate.entered(&reactor, 1).await) });
                reactor.run_all(&mut [task(), task()]).unwrap()
            });
            gate.open(WINDOW);
            gate.abort();
            for entered in tasks.join().unwrap().into_iter().chain([thread.join().unwrap()]) {
                // The first may have been missed before all were sent home.
                assert!([Some(WINDOW), None].contains(&entered.0), "{entered:?}");
                assert_eq!(entered.1, None);
            }
        });
    }
}
