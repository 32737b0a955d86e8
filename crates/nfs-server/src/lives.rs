//! The lives of a server: its threads leave what they share before it changes, and take it up again afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};

use crate::error::ServerError;
use crate::shared::Shared;

/// What the threads of a server share, and whether they may have it.
#[derive(Debug)]
pub(crate) struct Lives {
    shared: RwLock<Arc<Shared>>,
    phase: Mutex<Phase>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Phase {
    /// Threads that have what is shared.
    present: usize,
    /// A life is over, and the next one has not begun.
    between: bool,
    /// There is no next one.
    over: bool,
}

/// The part of a thread in one life.
#[derive(Debug)]
pub(crate) struct Present {
    // Dropped first: whoever is not counted does not have it.
    pub(crate) shared: Arc<Shared>,
    counted: Counted,
}

#[derive(Debug)]
struct Counted(Arc<Lives>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.phase.lock().present -= 1;
        self.0.changed.notify_all();
    }
}

impl Lives {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared: RwLock::new(shared), phase: Mutex::default(), changed: Condvar::new() }
    }

    /// What is shared in this life.
    pub(crate) fn shared(&self) -> MappedRwLockReadGuard<'_, Shared> {
        RwLockReadGuard::map(self.shared.read(), |shared| &**shared)
    }

    /// Waits for a life to take part in; `None`: there is none any more.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Present> {
        let mut phase = self.phase.lock();
        while phase.between && !phase.over {
            self.changed.wait(&mut phase);
        }
        if phase.over {
            return None;
        }
        phase.present += 1;
        drop(phase);
        let counted = Counted(Arc::clone(self));
        Some(Present { shared: Arc::clone(&self.shared.read()), counted })
    }

    /// Ends a life: `tell` tells the threads. Returns when all have left.
    pub(crate) fn interrupt(&self, tell: impl FnOnce()) {
        self.phase.lock().between = true;
        self.changed.notify_all();
        tell();
        let mut phase = self.phase.lock();
        while phase.present > 0 {
            self.changed.wait(&mut phase);
        }
    }

    /// Changes what is shared, between two lives.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Shared) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let mut shared = self.shared.write();
        change(Arc::get_mut(&mut shared).ok_or(ServerError::Stopped)?)
    }

    /// Begins the next life.
    pub(crate) fn resume(&self) {
        self.phase.lock().between = false;
        self.changed.notify_all();
    }

    /// Ends the last life.
    pub(crate) fn end(&self, tell: impl FnOnce()) {
        self.phase.lock().over = true;
        self.changed.notify_all();
        tell();
    }
}

impl Present {
    /// Waits for this long; whether this life goes on.
    pub(crate) fn lasts(&self, wait: Duration) -> bool {
        let lives = &self.counted.0;
        let until = Instant::now() + wait;
        let mut phase = lives.phase.lock();
        while !phase.between && !phase.over {
            if lives.changed.wait_until(&mut phase, until).timed_out() {
                return !phase.between && !phase.over;
            }
        }
        false
    }
}
