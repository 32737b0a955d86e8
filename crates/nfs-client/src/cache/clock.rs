//! The time by which the cache goes.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::world::World;

/// Source of time for the cache's timeouts.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The monotonic clock of the system.
    #[default]
    System,
    /// One that stands still until it is moved.
    Manual(Rc<Cell<Instant>>),
    /// That of a simulation.
    World(Rc<dyn World>),
}

impl Clock {
    /// One that stands still. Clones are the same one.
    pub fn manual() -> Self {
        Self::Manual(Rc::new(Cell::new(Instant::now())))
    }

    /// Moves a clock that stands still; the system's cannot be moved.
    pub fn advance(&self, time: Duration) {
        if let Self::Manual(now) = self {
            now.set(now.get() + time);
        }
    }

    /// Current time of this clock.
    pub fn now(&self) -> Instant {
        match self {
            Self::System => Instant::now(),
            Self::Manual(now) => now.get(),
            Self::World(world) => world.now(),
        }
    }
}
