//! Trying again after a pause that grows: what the client does when a server asks for patience (`NFS3ERR_JUKEBOX`,
//! `NFS4ERR_DELAY`, grace periods) and while a lock is held by another.

use std::time::{Duration, Instant};

use crate::counters::{Counters, Event};
use crate::error::NfsError;
use crate::reactor::Reactor;

/// How long to pause before a call is made again, and when to give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayPolicy {
    /// The first pause; each one after it is twice as long.
    pub initial: Duration,
    /// Upper limit of a pause: each is twice as long as the one before, up to this.
    pub longest: Duration,
    /// From the first refusal on: when it is over the operation fails with [`NfsError::TriedTooLong`].
    pub give_up: Duration,
}

impl Default for DelayPolicy {
    /// Pauses of Linux' NFSv4 client (0.1 s doubling to 15 s). Linux retries forever; this client it ends after as
    /// long as Linux waits for a reply over TCP (`timeo=600,retrans=2`).
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            longest: Duration::from_secs(15),
            give_up: Duration::from_secs(180),
        }
    }
}

impl DelayPolicy {
    /// How a lock that another holds is asked for again: 1 ms doubling to 0.1 s.
    pub const LOCK: Self = Self {
        initial: Duration::from_millis(1),
        longest: Duration::from_millis(100),
        give_up: Duration::from_secs(180),
    };
}

/// The pauses of one operation. Costs nothing until the first one.
#[derive(Debug, Clone, Copy)]
pub struct Delay {
    policy: DelayPolicy,
    next: Duration,
    deadline: Option<Instant>,
}

impl Delay {
    /// A sequence of pauses that has not begun.
    pub fn new(policy: DelayPolicy) -> Self {
        Self { policy, next: policy.initial, deadline: None }
    }

    /// When to try again after a refusal at `now`. The last try is at the deadline.
    ///
    /// # Errors
    /// [`NfsError::TriedTooLong`] when the deadline is over.
    pub fn again(&mut self, now: Instant) -> Result<Instant, NfsError> {
        let deadline = *self.deadline.get_or_insert(now + self.policy.give_up);
        if now >= deadline {
            return Err(NfsError::TriedTooLong);
        }
        let pause = self.next.min(self.policy.longest);
        self.next = pause.saturating_mul(2);
        Ok((now + pause).min(deadline))
    }

    /// Pauses, and counts `event`: the call is to be made again after it.
    ///
    /// # Errors
    /// [`NfsError::TriedTooLong`], at once, when the deadline is over.
    pub async fn pause(
        &mut self,
        reactor: &Reactor,
        counters: &Counters,
        event: Event,
    ) -> Result<(), NfsError> {
        let at = self.again(reactor.now())?;
        counters.event(event);
        reactor.sleep_until(at).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(initial: u64, longest: u64, give_up: u64) -> DelayPolicy {
        let [initial, longest, give_up] = [initial, longest, give_up].map(Duration::from_millis);
        DelayPolicy { initial, longest, give_up }
    }

    /// The pauses in milliseconds when every try is refused at once.
    fn pauses(policy: DelayPolicy) -> Vec<u128> {
        let mut delay = Delay::new(policy);
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        while let Ok(at) = delay.again(now) {
            pauses.push((at - now).as_millis());
            now = at;
        }
        assert_eq!(delay.again(now), Err(NfsError::TriedTooLong));
        pauses
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_at_the_deadline() {
        assert_eq!(pauses(policy(100, 1000, 4000)), [100, 200, 400, 800, 1000, 1000, 500]);
        assert_eq!(pauses(policy(100, 50, 120)), [50, 50, 20]);
        let linux = pauses(DelayPolicy::default());
        assert_eq!(linux[..9], [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000]);
        assert_eq!(linux.iter().sum::<u128>(), 180_000);
    }

    #[test]
    fn the_deadline_counts_from_the_first_refusal() {
        let mut delay = Delay::new(policy(10, 10, 25));
        let start = Instant::now() + Duration::from_secs(3600);
        let later = |ms| start + Duration::from_millis(ms);
        assert_eq!(delay.again(start), Ok(later(10)));
        // The tries themselves take time too.
        assert_eq!(delay.again(later(20)), Ok(later(25)));
        assert_eq!(delay.again(later(25)), Err(NfsError::TriedTooLong));
    }

    #[test]
    fn nothing_is_waited_for_without_time() {
        assert!(pauses(policy(1, 1, 0)).is_empty());
    }

    #[test]
    fn every_pause_is_counted() {
        let reactor = Reactor::new().unwrap();
        let counters = Counters::new();
        let mut delay = Delay::new(policy(1, 4, 10));
        let begun = Instant::now();
        let result = reactor.block_on(async {
            loop {
                delay.pause(&reactor, &counters, Event::Grace).await?;
            }
        });
        let result: Result<(), NfsError> = result.unwrap();
        assert_eq!(result, Err(NfsError::TriedTooLong));
        assert!(begun.elapsed() >= Duration::from_millis(10));
        // 1, 2, 4, and what is left; each may last longer than asked for.
        assert!((1..=4).contains(&counters.snapshot().event(Event::Grace)));
    }
}
