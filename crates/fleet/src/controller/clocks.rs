//! The clocks of agents beside the controller's.

use std::sync::Arc;
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use tokio::sync::Semaphore;

use super::connection::{CallError, Connection};
use crate::clock::{Estimate, Exchange, Relation};

/// Exchanges of one round.
pub(super) const EXCHANGES: usize = 24;

/// Two estimates at least so far apart tell a drift that is worth being carried into the future.
const APART_NS: i64 = 10_000_000_000;

/// An estimate older than this is renewed before it is used for a start.
const STALE_NS: i64 = 30_000_000_000;

/// What is known of the clock of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// It reads the controller's clock itself.
    same: bool,
    first: Estimate,
    last: Estimate,
    /// Shortest round trip seen.
    pub(super) round_trip: Duration,
}

impl Known {
    /// After the first round. `same`: whether agent and controller say that they read one clock, which is believed as far as
    /// the exchanges agree.
    pub(super) fn new(same: bool, measured: Measured) -> Self {
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
    pub(super) fn bound(&self) -> Duration {
        Duration::from_nanos(self.last.bound_ns)
    }

    /// Whether another round improves the estimate before a start.
    pub(super) fn is_stale(&self) -> bool {
        !self.same && monotonic_ns() - self.last.at_ns > STALE_NS
    }

    /// Whether a round after a run adds anything.
    pub(super) fn can_drift(&self) -> bool {
        !self.same
    }

    /// Another round: gives the relation over the time since the last one.
    pub(super) fn renew(&mut self, measured: Option<Measured>) -> Relation {
        let before = self.last;
        let after = if self.same {
            Some(Estimate { at_ns: monotonic_ns(), exchanges: 0, ..before })
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
    pub(super) fn to_agent(self, controller_ns: i64) -> i64 {
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
pub(super) struct Measured {
    pub(super) estimate: Estimate,
    pub(super) round_trip: Duration,
}

/// Agents whose clocks are measured at once: few, as each waits for the others in between.
const AT_ONCE: usize = 4;

/// A round with each of many agents, to be done at once.
pub(super) fn rounds<'a>(
    connections: impl Iterator<Item = &'a Connection>,
) -> impl Iterator<Item = impl Future<Output = Result<Measured, CallError>> + Send + 'static> {
    let turn = Arc::new(Semaphore::new(AT_ONCE));
    connections.cloned().map(move |connection| {
        let turn = Arc::clone(&turn);
        async move {
            let _turn = turn.acquire_owned().await;
            measure(&connection).await
        }
    })
}

/// Exchanges time stamps with an agent.
///
/// Each is noted where its message is written or read: before the write and after the read, so that the bound holds.
pub(super) async fn measure(connection: &Connection) -> Result<Measured, CallError> {
    let mut exchanges = Vec::with_capacity(EXCHANGES);
    while exchanges.len() < EXCHANGES {
        exchanges.push(connection.exchange().await?);
    }
    let ways = exchanges.iter().map(Exchange::way_ns).min().unwrap_or(0);
    let estimate = Estimate::of(&exchanges).ok_or(CallError::Lost)?;
    Ok(Measured { estimate, round_trip: Duration::from_nanos(ways) })
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
        assert_eq!((same.to_agent(5), same.bound(), same.is_stale()), (5, Duration::ZERO, false));
        let relation = same.renew(None);
        assert_eq!((relation.drift(), relation.bound_ns()), (Some(0.0), 0));
        let other = Known::new(true, measured(500, 0));
        assert_eq!((other.to_agent(5), other.bound()), (505, Duration::from_nanos(100)));
    }

    #[test]
    fn a_drift_is_carried_on_once_it_is_known_well() {
        const SECOND: i64 = 1_000_000_000;
        let mut known = Known::new(false, measured(1000, 0));
        // A fast clock: 10 microseconds a second.
        known.renew(Some(measured(11_000, SECOND)));
        assert_eq!(known.to_agent(2 * SECOND), 2 * SECOND + 11_000, "too short a time to tell");
        let relation = known.renew(Some(measured(201_000, 20 * SECOND)));
        assert_eq!(relation.before.offset_ns, 11_000);
        assert_eq!(known.to_agent(30 * SECOND), 30 * SECOND + 301_000);
    }
}
