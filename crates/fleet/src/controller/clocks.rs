//! The clocks of agents beside the controller's.

use std::time::Duration;

use super::connection::{CallError, Connection};
use crate::clock::{Estimate, Exchange, Relation};

/// Exchanges of one round.
pub(crate) const EXCHANGES: u32 = 24;

/// Two estimates at least so far apart tell a drift that is worth being carried into the future.
const APART_NS: i64 = 10_000_000_000;

/// An estimate older than this is renewed before it is used for a start.
const STALE_NS: i64 = 30_000_000_000;

/// What is known of the clock of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// It reads the controller's clock itself.
    same: bool,
    first: Estimate,
    last: Estimate,
    /// Shortest round trip seen.
    pub(crate) round_trip: Duration,
}

impl Known {
    /// After the first round. `same`: whether agent and controller say that they read one clock, which is believed as far as
    /// the exchanges agree.
    pub(crate) fn new(same: bool, measured: Measured) -> Self {
        let same = same && measured.estimate.offset_ns.unsigned_abs() <= measured.estimate.bound_ns;
        let mut known =
            Self { same, first: measured.estimate, last: measured.estimate, round_trip: measured.round_trip };
        if same {
            let exact = Estimate { offset_ns: 0, bound_ns: 0, ..measured.estimate };
            (known.first, known.last) = (exact, exact);
        }
        known
    }

    /// The offset is right to within this.
    pub(crate) fn bound(&self) -> Duration {
        Duration::from_nanos(self.last.bound_ns)
    }

    /// Whether another round improves the estimate before a start.
    pub(crate) fn is_stale(&self, now_ns: i64) -> bool {
        !self.same && now_ns - self.last.at_ns > STALE_NS
    }

    /// Whether a round after a run adds anything.
    pub(crate) fn can_drift(&self) -> bool {
        !self.same
    }

    /// Another round, or none where the clocks are one: gives the relation over the time since the last one.
    pub(crate) fn renew(&mut self, measured: Option<Measured>, now_ns: i64) -> Relation {
        let before = self.last;
        let after = if self.same {
            Some(Estimate { at_ns: now_ns, exchanges: 0, ..before })
        } else {
            measured.map(|measured| measured.estimate)
        };
        if let Some(measured) = measured.filter(|_| !self.same) {
            self.last = measured.estimate;
            self.round_trip = self.round_trip.min(measured.round_trip);
        }
        Relation { before, after }
    }

    /// The agent's time at a time of the controller, soon.
    pub(crate) fn to_agent(self, controller_ns: i64) -> i64 {
        let apart = self.last.at_ns - self.first.at_ns >= APART_NS;
        let relation = if apart {
            Relation { before: self.first, after: Some(self.last) }
        } else {
            Relation { before: self.last, after: None }
        };
        controller_ns + relation.offset_at(controller_ns)
    }
}

/// What a round of exchanges gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured {
    pub(crate) estimate: Estimate,
    pub(crate) round_trip: Duration,
}

/// Agents whose clocks are measured at once: few, as each waits for the others in between.
pub(crate) const AT_ONCE: usize = 4;

/// A round of exchanges of time stamps, while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Round {
    best: Option<Exchange>,
    exchanges: u32,
}

impl Round {
    /// Notes an exchange; the outcome when there were enough.
    pub(crate) fn note(&mut self, exchange: Exchange) -> Option<Measured> {
        let best = match self.best {
            Some(best) if best.way_ns() <= exchange.way_ns() => best,
            _ => exchange,
        };
        self.best = Some(best);
        self.exchanges += 1;
        (self.exchanges == EXCHANGES).then(|| Measured {
            estimate: Estimate::of(&best, EXCHANGES),
            round_trip: Duration::from_nanos(best.way_ns()),
        })
    }
}

/// Exchanges time stamps with an agent.
///
/// Each is noted where its message is written or read: before the write and after the read, so that the bound holds.
pub(super) async fn measure(connection: &Connection) -> Result<Measured, CallError> {
    let mut round = Round::default();
    loop {
        if let Some(measured) = round.note(connection.exchange().await?) {
            return Ok(measured);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(offset_ns: i64, at_ns: i64) -> Measured {
        let estimate = Estimate { offset_ns, bound_ns: 100, at_ns, exchanges: 24 };
        Measured { estimate, round_trip: Duration::from_nanos(200) }
    }

    #[test]
    fn a_common_clock_is_believed_as_far_as_exchanges_agree() {
        let mut same = Known::new(true, measured(-80, 0));
        assert_eq!((same.to_agent(5), same.bound(), same.is_stale(i64::MAX)), (5, Duration::ZERO, false));
        let relation = same.renew(None, 9);
        assert_eq!((relation.drift(), relation.bound_ns()), (Some(0.0), 0));
        let other = Known::new(true, measured(500, 0));
        assert_eq!((other.to_agent(5), other.bound()), (505, Duration::from_nanos(100)));
    }

    #[test]
    fn a_drift_is_carried_on_once_it_is_known_well() {
        const SECOND: i64 = 1_000_000_000;
        let mut known = Known::new(false, measured(1000, 0));
        // A fast clock: 10 microseconds a second.
        known.renew(Some(measured(11_000, SECOND)), SECOND);
        assert_eq!(known.to_agent(2 * SECOND), 2 * SECOND + 11_000, "too short a time to tell");
        let relation = known.renew(Some(measured(201_000, 20 * SECOND)), 20 * SECOND);
        assert_eq!(relation.before.offset_ns, 11_000);
        assert_eq!(known.to_agent(30 * SECOND), 30 * SECOND + 301_000);
    }
}
