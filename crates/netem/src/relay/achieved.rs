//! What a relay did, and how exactly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// What a relay forwarded, and how much later than it should have.
///
/// Lateness is that of forwarding: from when a piece of data was due, the delay after the kernel received it, to when
/// it was handed to the kernel again. What the kernels of both sides need besides is not in it. Data that the
/// receiver does not take in time are counted apart, because the relay is not to blame for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Achieved {
    pub connections: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Connections that could not be opened to the target, or not be accepted for want of descriptors.
    pub refused: u64,
    /// Bytes from clients handed to connections to the target.
    pub bytes_to_target: u64,
    /// Bytes from the target handed to connections of clients.
    pub bytes_to_clients: u64,
    /// Pieces of data forwarded; each was received in one call.
    pub forwarded: u64,
    /// Pieces that waited longer than their delay because the receiver did not take what was before them; they are
    /// not in the lateness.
    pub held_up: u64,
    /// Half of the pieces were forwarded no later than this after their time.
    pub lateness_median: Duration,
    /// 99 of 100 pieces were.
    pub lateness_99: Duration,
    pub lateness_max: Duration,
}

/// The histogram's largest lateness, in nanoseconds: a minute. The thread would have to stand still for so long.
const MOST_LATE: u64 = 60_000_000_000;

/// Counters of a running relay.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) refused: AtomicU64,
    /// To the target, to clients.
    pub(super) bytes: [AtomicU64; 2],
    pub(super) held_up: AtomicU64,
    /// In nanoseconds.
    lateness: Mutex<Histogram<u64>>,
}

impl Counters {
    pub(super) fn new() -> Self {
        #[expect(clippy::expect_used, reason = "the bounds are constants")]
        let lateness = Histogram::new_with_bounds(1, MOST_LATE, 3).expect("valid bounds");
        Self {
            connections: AtomicU64::new(0),
            open: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            bytes: [AtomicU64::new(0), AtomicU64::new(0)],
            held_up: AtomicU64::new(0),
            lateness: Mutex::new(lateness),
        }
    }

    /// Pieces were forwarded this many nanoseconds late.
    pub(super) fn forwarded(&self, late: &[u64]) {
        let mut lateness = self.lateness.lock();
        late.iter().for_each(|late| lateness.saturating_record(*late));
    }

    pub(super) fn achieved(&self) -> Achieved {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let lateness = self.lateness.lock();
        let at = |quantile| Duration::from_nanos(lateness.value_at_quantile(quantile));
        Achieved {
            connections: get(&self.connections),
            open: get(&self.open),
            refused: get(&self.refused),
            bytes_to_target: get(&self.bytes[0]),
            bytes_to_clients: get(&self.bytes[1]),
            forwarded: lateness.len() + get(&self.held_up),
            held_up: get(&self.held_up),
            lateness_median: at(0.5),
            lateness_99: at(0.99),
            lateness_max: Duration::from_nanos(lateness.max()),
        }
    }
}
