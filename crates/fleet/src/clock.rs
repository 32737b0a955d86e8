//! The offset of another host's clock, by exchanges of time stamps as in NTP (RFC 5905, section 8).
//!
//! One exchange: the controller notes its time `sent`, the agent its times of `received` and `replied`, the controller its
//! time `returned`. Whatever the two directions took, the agent's clock minus the controller's lies within half the time on
//! the way of the mean difference; the exchange with the shortest way gives the tightest bound.

use benchmaster_record::recording::ClockFacts;
use serde::{Deserialize, Serialize};

/// Times of one exchange in nanoseconds, each of the clock of the side that noted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the controller sent its request.
    pub sent: i64,
    /// When the agent received it.
    pub received: i64,
    /// When the agent replied.
    pub replied: i64,
    /// When the controller received the reply.
    pub returned: i64,
}

impl Exchange {
    /// Time that both messages together were on the way; at least 0.
    pub fn way_ns(&self) -> u64 {
        ((self.returned - self.sent) - (self.replied - self.received)).max(0).unsigned_abs()
    }

    /// The agent's clock minus the controller's, if both directions took the same time.
    pub fn offset_ns(&self) -> i64 {
        (self.received - self.sent).midpoint(self.replied - self.returned)
    }
}

/// What is known of a clock from one round of exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// The agent's clock minus the controller's.
    pub offset_ns: i64,
    /// The offset is right to within this.
    pub bound_ns: u64,
    /// The time of the controller at which it was found.
    pub at_ns: i64,
    /// Exchanges it was chosen from.
    pub exchanges: u32,
}

impl Estimate {
    /// That of the exchange that was the shortest time on the way, which was chosen from this number.
    pub fn of(best: &Exchange, exchanges: u32) -> Self {
        Self {
            offset_ns: best.offset_ns(),
            bound_ns: best.way_ns().div_ceil(2),
            at_ns: best.sent.midpoint(best.returned),
            exchanges,
        }
    }
}

/// A clock beside the controller's over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    /// Before the run.
    pub before: Estimate,
    /// After it; `None` when it could not be measured again.
    pub after: Option<Estimate>,
}

impl Relation {
    /// A clock that is the controller's own.
    pub fn same() -> Self {
        Self { before: Estimate { offset_ns: 0, bound_ns: 0, at_ns: 0, exchanges: 0 }, after: None }
    }

    /// The agent's time minus the controller's at a time of the controller: on the line through both estimates.
    pub fn offset_at(&self, controller_ns: i64) -> i64 {
        let passed = controller_ns - self.before.at_ns;
        self.before.offset_ns + (self.drift().unwrap_or(0.0) * passed as f64).round() as i64
    }

    /// Relative difference of rates; positive when the agent's clock runs fast.
    pub fn drift(&self) -> Option<f64> {
        let after = self.after?;
        let passed = after.at_ns - self.before.at_ns;
        (passed > 0).then(|| (after.offset_ns - self.before.offset_ns) as f64 / passed as f64)
    }

    /// The controller's time at a time of the agent.
    pub fn to_controller(&self, agent_ns: i64) -> i64 {
        // The line is over the controller's time, which the offset itself leads to: each step is right to within the drift
        // times the error of the one before.
        let first = agent_ns - self.before.offset_ns;
        let second = agent_ns - self.offset_at(first);
        agent_ns - self.offset_at(second)
    }

    /// The offset is right to within this between the estimates.
    pub fn bound_ns(&self) -> u64 {
        self.after.map_or(self.before.bound_ns, |after| after.bound_ns.max(self.before.bound_ns))
    }

    /// What is stored of it, for a measured phase that began at this time of the controller.
    pub fn facts(&self, start_ns: i64) -> ClockFacts {
        ClockFacts {
            offset_ns: self.offset_at(start_ns),
            bound_ns: self.bound_ns(),
            exchanges: self.before.exchanges + self.after.map_or(0, |after| after.exchanges),
            drift: self.drift(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(sent: i64, there: i64, think: i64, back: i64, offset: i64) -> Exchange {
        let received = sent + there + offset;
        let replied = received + think;
        Exchange { sent, received, replied, returned: sent + there + think + back }
    }

    proptest! {
        #[test]
        fn the_bound_holds_whatever_the_ways(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            ways in prop::collection::vec((0i64..5_000_000, 0i64..1_000_000, 0i64..5_000_000), 1..40),
        ) {
            let exchanges: Vec<_> = ways
                .iter()
                .zip(0i64..)
                .map(|((there, think, back), i)| exchange(i * 20_000_000, *there, *think, *back, offset))
                .collect();
            let best = exchanges.iter().min_by_key(|exchange| exchange.way_ns()).unwrap();
            let estimate = Estimate::of(best, exchanges.len() as u32);
            prop_assert!((estimate.offset_ns - offset).unsigned_abs() <= estimate.bound_ns + 1, "{estimate:?}");
            let shortest = ways.iter().map(|(there, _, back)| there + back).min().unwrap();
            prop_assert_eq!(estimate.bound_ns, shortest.unsigned_abs().div_ceil(2));
        }

        #[test]
        fn a_drift_is_taken_out(offset in -1_000_000_000i64..1_000_000_000, ppm in -200i64..200, at in 0i64..300_000) {
            // A clock that is `offset` ahead at 0 and gains `ppm` microseconds a second, looked at after 0 and 300 s.
            let agent = |time: i64| time + offset + time / 1_000_000 * ppm;
            let look = |time: i64| Estimate { offset_ns: agent(time) - time, bound_ns: 5, at_ns: time, exchanges: 20 };
            let relation = Relation { before: look(0), after: Some(look(300_000_000_000)) };
            let time = at * 1_000_000;
            let back = relation.to_controller(agent(time));
            prop_assert!((back - time).abs() <= 100, "{time} became {back}");
            prop_assert!((relation.drift().unwrap() - ppm as f64 * 1e-6).abs() < 1e-9);
        }
    }

    #[test]
    fn a_clock_beside_itself_is_exact() {
        assert_eq!(Relation::same().to_controller(77), 77);
        assert_eq!(Relation::same().drift(), None);
    }
}
