//! Rates of the moment, from counters that are behind by up to half a second and grow in steps.

use std::collections::VecDeque;
use std::time::Duration;

use benchmaster_record::live::Rates;
use benchmaster_workload::execute::Done;

/// Rates are over at least this time, so that steps of counters are small against them.
const WINDOW: Duration = Duration::from_secs(1);

/// Counters that stand still for longer do so because nothing is done.
const STILL: Duration = Duration::from_secs(2);

/// The latest counters of a phase.
#[derive(Debug)]
pub(super) struct Meter {
    /// Each change of the counters, with the time since the phase began; the first is at least [`WINDOW`] older than the
    /// last, where there are such.
    changes: VecDeque<(Duration, Done)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self { changes: VecDeque::from([(Duration::ZERO, Done::default())]) }
    }
}

impl Meter {
    /// The rates when `done` is what the phase did in `elapsed`; `None` before anything is known.
    pub(super) fn rates(&mut self, elapsed: Duration, done: Done) -> Option<Rates> {
        if self.changes.back().is_none_or(|(_, last)| *last != done) {
            self.changes.push_back((elapsed, done));
        }
        let (last, _) = *self.changes.back()?;
        while self.changes.get(1).is_some_and(|(then, _)| *then + WINDOW <= last) {
            self.changes.pop_front();
        }
        let still = elapsed > last + STILL;
        let (from, before) = *if still { self.changes.back() } else { self.changes.front() }?;
        let to = if still { elapsed } else { last };
        let interval_s = to.checked_sub(from).filter(|length| !length.is_zero())?.as_secs_f64();
        let operations = done.operations.saturating_sub(before.operations);
        let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / interval_s;
        let latency_s = done.latency_ns.saturating_sub(before.latency_ns) as f64 / 1e9;
        Some(Rates {
            interval_s,
            operations_per_s: operations as f64 / interval_s,
            bytes_per_s: per_s(done.bytes, before.bytes),
            errors_per_s: per_s(done.errors, before.errors),
            mean_latency_s: (operations > 0).then(|| latency_s / operations as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(operations: u64) -> Done {
        Done {
            operations,
            bytes: operations * 4096,
            errors: operations / 100,
            latency_ns: operations * 2_000_000,
        }
    }

    /// Rates after this number of milliseconds.
    fn at(meter: &mut Meter, ms: u64, operations: u64) -> Option<Rates> {
        meter.rates(Duration::from_millis(ms), done(operations))
    }

    #[test]
    fn steps_of_counters_are_no_steps_of_rates() {
        let mut meter = Meter::default();
        assert_eq!(at(&mut meter, 100, 0), None);
        // A worker hands in 500 operations every 500 ms, and it is looked at every 100 ms.
        for tick in 5..60u64 {
            let rates = at(&mut meter, tick * 100, tick / 5 * 500).unwrap();
            assert_eq!((rates.operations_per_s, rates.bytes_per_s), (1000.0, 4_096_000.0), "{tick}");
            assert_eq!(rates.mean_latency_s, Some(0.002));
            assert!(rates.interval_s <= 1.0 && rates.errors_per_s == 10.0, "{rates:?}");
        }
        assert!(meter.changes.len() <= 3);
    }

    #[test]
    fn what_stands_still_has_no_rate() {
        let mut meter = Meter::default();
        let quick = at(&mut meter, 1000, 1000).unwrap();
        assert_eq!(at(&mut meter, 3000, 1000), Some(quick));
        let still = at(&mut meter, 3100, 1000).unwrap();
        assert_eq!((still.operations_per_s, still.mean_latency_s), (0.0, None));
        // An operation that took long: over all of its time.
        assert_eq!(at(&mut meter, 6000, 1001).unwrap().operations_per_s, 0.2);
        // A phase in which nothing is done from its beginning.
        let mut meter = Meter::default();
        assert_eq!(at(&mut meter, 2000, 0), None);
        assert_eq!(at(&mut meter, 2100, 0).unwrap().operations_per_s, 0.0);
    }
}
