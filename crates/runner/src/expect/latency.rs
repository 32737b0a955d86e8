//! Exact latencies as text.

use std::collections::BTreeMap;

/// Different latencies of which each is told; of more the quantiles.
const MOST: usize = 16;

/// Latencies and how often each came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    pub(super) fn add(&mut self, nanoseconds: u64) {
        *self.0.entry(nanoseconds).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The smallest latency that this share of the operations does not exceed.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let mut at_least = self.0.iter().filter_map(|(latency, count)| {
            seen += count;
            (seen >= wanted).then_some(*latency)
        });
        at_least.next()
    }

    /// From the smallest on: each with how often it came, or of many the quantiles with the sum, in which every change shows.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.0.len() <= MOST {
            return self.0.iter().map(|(latency, count)| format!("{count} x {}", time(*latency))).collect();
        }
        let quantiles = [("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];
        let quantiles = quantiles
            .into_iter()
            .filter_map(|(name, share)| Some(format!("{name} {}", time(self.quantile(share)?))));
        let sum: u64 = self.0.iter().map(|(latency, count)| latency * count).sum();
        quantiles.chain([format!("sum {}", time(sum)), format!("{} different", self.0.len())]).collect()
    }

    /// The median in round trips, to a thousandth.
    pub(super) fn round_trips(&self, round_trip_ns: u64) -> Option<String> {
        let median = self.quantile(0.5)?;
        (round_trip_ns > 0).then(|| format!("{:.3}", median as f64 / round_trip_ns as f64))
    }
}

/// A time, exactly.
fn time(nanoseconds: u64) -> String {
    let (unit, name) = match nanoseconds {
        0..1_000 => return format!("{nanoseconds}ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let digits = if unit == 1_000 {
        3
    } else if unit == 1_000_000 {
        6
    } else {
        9
    };
    let fraction = format!("{:0digits$}", nanoseconds % unit);
    match fraction.trim_end_matches('0') {
        "" => format!("{}{name}", nanoseconds / unit),
        fraction => format!("{}.{fraction}{name}", nanoseconds / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let times = [0, 256, 1_000, 4_010_752, 4_000_000, 13_423_473_001, 60_000_000_000];
        let texts = ["0ns", "256ns", "1us", "4.010752ms", "4ms", "13.423473001s", "60s"];
        assert_eq!(times.map(time), texts);
    }

    #[test]
    fn few_latencies_are_listed_and_many_summed() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.lines(), latencies.quantile(0.5)), (Vec::new(), None));
        for latency in [2_000_000, 4_000_000, 4_000_000] {
            latencies.add(latency);
        }
        assert_eq!(latencies.lines(), ["1 x 2ms", "2 x 4ms"]);
        assert_eq!(latencies.round_trips(2_000_000).as_deref(), Some("2.000"));
        assert_eq!(latencies.round_trips(0), None);
        for latency in 1..=100 {
            latencies.add(latency * 1_000);
        }
        let lines = ["min 1us", "p50 52us", "p90 93us", "p99 4ms", "max 4ms", "sum 15.05ms", "102 different"];
        assert_eq!(latencies.lines(), lines);
    }
}
