//! What a link does to frames: delay, jitter, bandwidth, loss. Pure: the time is an argument, chance comes from a seed.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::interface::{LEAST_REHASH, MOST_QUEUES};

/// The longest delay and jitter: ten seconds.
pub const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// The smallest bandwidth, in bit/s: a modem's.
pub const LEAST_BANDWIDTH: u64 = 1_000;
/// The MTU of Ethernet: the largest IP packet in a frame, in bytes.
pub const MTU: u16 = 1_500;
/// The smallest MTU, in bytes: what every host of the internet takes (RFC 1122 §3.3.3).
pub const LEAST_MTU: u16 = 576;
/// The largest MTU, in bytes: that of jumbo frames, as network cards and switches have it.
pub const MOST_MTU: u16 = 9_000;

/// How the link between a client and the server is, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Link {
    /// Time from one end to the other, half of what a round trip takes longer. At most [`LONGEST_DELAY`].
    pub delay: Duration,
    /// The delay of each frame is drawn evenly from `delay - jitter` to `delay + jitter`. Order is kept: a frame
    /// never leaves before the one before it, so that with many frames under way the mean delay is above `delay`. At
    /// most `delay`.
    pub jitter: Duration,
    /// Bit/s on the wire: the bits of Ethernet frames with preamble, checksum and the gap between frames (24 bytes
    /// each; a frame takes at least 84). At least [`LEAST_BANDWIDTH`]; `None`: as fast as the host is.
    pub bandwidth: Option<u64>,
    /// The part of frames lost, each by itself: 0 to 1.
    pub loss: f64,
    /// Most bytes that wait for the bandwidth; what comes on top is dropped (drop-tail). `None`: what the bandwidth
    /// carries in a round trip, and 64 KiB. Without a bandwidth nothing waits.
    pub queue: Option<u64>,
}

/// Why there is no such link.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum LinkError {
    #[error("the delay {0:?} exceeds the maximum, {LONGEST_DELAY:?}")]
    Delay(Duration),
    /// Frames cannot arrive before they were sent.
    #[error("a jitter of {jitter:?} is more than the delay of {delay:?}")]
    Jitter { jitter: Duration, delay: Duration },
    #[error("the bandwidth {0} bit/s is below the minimum, {LEAST_BANDWIDTH} bit/s")]
    Bandwidth(u64),
    /// Not from 0 to 1.
    #[error("the loss {0} is not between 0 and 1")]
    Loss(f64),
    /// Not from [`LEAST_MTU`] to [`MOST_MTU`].
    #[error("the MTU {0} is not between {LEAST_MTU} and {MOST_MTU}")]
    Mtu(u16),
    /// Not from 1 to [`MOST_QUEUES`].
    #[error("{0} transmit queues: the number must be from 1 to {MOST_QUEUES}")]
    Queues(u32),
    /// Less than [`LEAST_REHASH`].
    #[error("a re-hash every {0:?} is more often than the maximum, every {LEAST_REHASH:?}")]
    Rehash(Duration),
}

impl Link {
    /// A link with this delay and nothing else.
    pub fn of_delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// [`LinkError`]
    pub fn check(&self) -> Result<(), LinkError> {
        if self.delay > LONGEST_DELAY {
            return Err(LinkError::Delay(self.delay));
        }
        if self.jitter > self.delay {
            return Err(LinkError::Jitter { jitter: self.jitter, delay: self.delay });
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(LinkError::Loss(self.loss));
        }
        check_bandwidth(self.bandwidth)
    }

    /// Most bytes that wait for the bandwidth.
    pub fn queue(&self) -> u64 {
        let carried = match self.bandwidth {
            Some(bandwidth) => u128::from(bandwidth) * 2 * self.delay.as_nanos() / 8_000_000_000,
            None => 0,
        };
        self.queue.unwrap_or(u64::try_from(carried).unwrap_or(u64::MAX).saturating_add(64 << 10))
    }
}

/// Whether a bandwidth can be.
pub(crate) fn check_bandwidth(bandwidth: Option<u64>) -> Result<(), LinkError> {
    match bandwidth {
        Some(bandwidth) if bandwidth < LEAST_BANDWIDTH => Err(LinkError::Bandwidth(bandwidth)),
        _ => Ok(()),
    }
}

/// Whether interfaces can have such an MTU.
pub(crate) fn check_mtu(mtu: u16) -> Result<(), LinkError> {
    if (LEAST_MTU..=MOST_MTU).contains(&mtu) { Ok(()) } else { Err(LinkError::Mtu(mtu)) }
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It arrives at this time, in nanoseconds.
    Arrives(u64),
    /// By the link's chance.
    Lost,
    /// There was no room in the queue.
    NoRoom,
}

/// Where bits pass one after the other.
#[derive(Debug)]
pub(crate) struct Line {
    /// In bit/s.
    bandwidth: Option<u64>,
    /// Most bytes waiting.
    queue: u64,
    /// When the last bit accepted has passed, in picoseconds.
    free_at: u128,
}

impl Line {
    pub(crate) fn new(bandwidth: Option<u64>, queue: u64) -> Self {
        Self { bandwidth, queue, free_at: 0 }
    }

    /// Changes it; what was accepted keeps its time.
    pub(crate) fn set(&mut self, bandwidth: Option<u64>, queue: u64) {
        (self.bandwidth, self.queue) = (bandwidth, queue);
    }

    /// When the last bit of this many bytes offered at `now` has passed, or `None` when there is no room to wait.
    ///
    /// A frame always finds room when none waits, however large it is.
    pub(crate) fn pass(&mut self, now: u64, bytes: u64) -> Option<u64> {
        let Some(bandwidth) = self.bandwidth else { return Some(now) };
        let now = u128::from(now) * 1_000;
        let waits = self.free_at.saturating_sub(now);
        let waiting = waits * u128::from(bandwidth) / 8_000_000_000_000;
        if waiting > 0 && waiting + u128::from(bytes) > u128::from(self.queue) {
            return None;
        }
        self.free_at = self.free_at.max(now) + u128::from(bytes) * 8_000_000_000_000 / u128::from(bandwidth);
        Some(u64::try_from(self.free_at.div_ceil(1_000)).unwrap_or(u64::MAX))
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Path {
    link: Link,
    line: Line,
    random: ChaCha8Rng,
    /// When the last frame arrives.
    last: u64,
}

impl Path {
    /// Paths of one seed and different numbers draw independently.
    pub(crate) fn new(link: Link, seed: u64, number: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number);
        Self { line: Line::new(link.bandwidth, link.queue()), link, random, last: 0 }
    }

    /// Changes it for frames from now on. What is under way keeps its time and is never overtaken.
    pub(crate) fn set(&mut self, link: Link) {
        self.line.set(link.bandwidth, link.queue());
        self.link = link;
    }

    /// A frame of this many bytes on the wire is sent at `now`.
    ///
    /// A frame that is lost took its time on the line before.
    pub(crate) fn send(&mut self, now: u64, bytes: u64) -> Fate {
        let chance = self.chance();
        match self.line.pass(now, bytes) {
            Some(passed) => self.arrive(passed, chance),
            None => Fate::NoRoom,
        }
    }

    /// A frame has passed the host's own line at this time.
    pub(crate) fn passed(&mut self, passed: u64) -> Fate {
        let chance = self.chance();
        self.arrive(passed, chance)
    }

    /// Two draws for every frame, used or not: chance treats a frame by its number alone.
    fn chance(&mut self) -> [f64; 2] {
        [self.draw(), self.draw()]
    }

    fn arrive(&mut self, passed: u64, [loss, jitter]: [f64; 2]) -> Fate {
        if loss < self.link.loss {
            return Fate::Lost;
        }
        let delay = nanoseconds(self.link.delay);
        let jitter = nanoseconds(self.link.jitter) as f64 * (2.0 * jitter - 1.0);
        let delay = delay.saturating_add_signed(jitter as i64);
        self.last = self.last.max(passed.saturating_add(delay));
        Fate::Arrives(self.last)
    }

    /// Evenly from 0 to below 1.
    fn draw(&mut self) -> f64 {
        const STEPS: f64 = (1u64 << 53) as f64;
        (self.random.next_u64() >> 11) as f64 / STEPS
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
