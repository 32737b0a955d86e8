//! The time of a request.

use std::time::Instant;

use crate::fs::Time;

/// One reading of both clocks, shared by all requests of a receive.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Monotonic clock, for leases and timers.
    pub instant: Instant,
    /// Wall clock: file times.
    pub wall: Time,
}

impl Moment {
    /// Reads both clocks of the system.
    pub fn now() -> Self {
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let wall = Time { seconds: wall.as_secs() as i64, nanos: wall.subsec_nanos() };
        Self { instant: Instant::now(), wall }
    }
}
