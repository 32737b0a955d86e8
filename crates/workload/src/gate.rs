//! Lets all workers enter a phase at the same instant.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::clock::Ticks;

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
}

impl Gate {
    /// Lets workers into the next phase.
    pub(crate) fn open(&self, window: Window) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).opened.push(window);
        self.changed.notify_all();
    }

    /// Sends all workers home.
    pub(crate) fn abort(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).aborted = true;
        self.changed.notify_all();
    }

    /// Waits for phase number `phase` (from 0); `None` when the run was aborted.
    pub(crate) fn wait(&self, phase: usize) -> Option<Window> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |state: &mut State| !state.aborted && state.opened.len() <= phase;
        let state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        if state.aborted { None } else { state.opened.get(phase).copied() }
    }
}
