//! Spikes among the latencies of single calls, and the consistency of latency with throughput.

/// Calls that took far longer than the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spikes {
    /// Calls slower than this are spikes, in ns.
    pub threshold_ns: u64,
    /// All calls.
    pub calls: usize,
    /// Calls above the threshold.
    pub slow_calls: usize,
    /// Share of calls above the threshold.
    pub share: f64,
    /// Mean latency of all calls, in ns.
    pub mean_ns: f64,
    /// Mean latency without the spikes, in ns.
    pub mean_without_ns: f64,
    /// Mean latency of the spikes, in ns; `None` when there is none.
    pub mean_of_slow_ns: Option<f64>,
    /// Factor by which the spikes raise the mean.
    pub inflation: f64,
    /// Spacing of the spikes; `None` for fewer than three.
    pub spacing: Option<Spacing>,
}

/// How many calls apart spikes are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing {
    /// Median number of calls from one spike to the next.
    pub median_gap: f64,
    /// Standard deviation of the gaps divided by their mean.
    pub variation: f64,
    /// Whether the spikes come at regular distances: a variation below 0.3.
    pub periodic: bool,
}

/// Finds the calls slower than `times_median` times the median (10 is a good choice), but at least slower than
/// `least_ns`.
///
/// `None` for no calls, and when every call is above the threshold or the others took no time at all.
pub fn spikes(latencies_ns: &[u64], times_median: f64, least_ns: u64) -> Option<Spikes> {
    let calls = latencies_ns.len();
    let mut scratch = latencies_ns.to_vec();
    let middle = calls / 2;
    let (_, &mut median, _) = (calls > 0).then(|| scratch.select_nth_unstable(middle))?;
    let threshold_ns = ((median as f64 * times_median) as u64).max(least_ns);
    let slow: Vec<_> = (0..calls).filter(|&i| latencies_ns[i] > threshold_ns).collect();
    let total: u128 = latencies_ns.iter().map(|&ns| u128::from(ns)).sum();
    let total_slow: u128 = slow.iter().map(|&i| u128::from(latencies_ns[i])).sum();
    let mean_ns = total as f64 / calls as f64;
    let mean_without_ns = (total - total_slow) as f64 / (calls - slow.len()) as f64;
    (mean_without_ns > 0.0).then(|| Spikes {
        threshold_ns,
        calls,
        slow_calls: slow.len(),
        share: slow.len() as f64 / calls as f64,
        mean_ns,
        mean_without_ns,
        mean_of_slow_ns: (!slow.is_empty()).then(|| total_slow as f64 / slow.len() as f64),
        inflation: mean_ns / mean_without_ns,
        spacing: spacing(&slow),
    })
}

/// What a latency stands for when calls should have started every `expected_interval` and one of them held up the next
/// ones: itself, and the latencies `value` − i, `value` − 2i, … ≥ i that those would have had. All in one unit.
///
/// This is the correction of HdrHistogram's `recordValueWithExpectedInterval` for coordinated omission. It is an
/// estimate: an open loop that measures from the intended start needs none. An interval of 0 corrects nothing.
pub fn with_expected_interval(value: u64, expected_interval: u64) -> impl Iterator<Item = u64> {
    let missing = value.checked_div(expected_interval).unwrap_or(0).saturating_sub(1);
    (0..=missing).map(move |calls| value - calls * expected_interval)
}

/// Little's law: by how much `rate`·`mean_latency` differs from the `concurrency`, relative to it.
///
/// Rate and latency use the same unit of time. In a closed loop, −0.1 means that the workers spent a tenth of their
/// time outside the calls that were timed. `None` unless the concurrency is positive and all are finite.
pub fn little_law_mismatch(concurrency: f64, rate: f64, mean_latency: f64) -> Option<f64> {
    let mismatch = rate * mean_latency / concurrency - 1.0;
    (concurrency > 0.0 && mismatch.is_finite()).then_some(mismatch)
}

fn spacing(slow: &[usize]) -> Option<Spacing> {
    let gaps: Vec<_> = slow.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let variation = crate::standard_deviation(&gaps)? / crate::mean(&gaps)?;
    Some(Spacing { median_gap: crate::median(&gaps)?, variation, periodic: variation < 0.3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_spikes_are_periodic() {
        let regular: Vec<_> = (0..1_000).map(|i| if i % 85 == 84 { 20_000 } else { 100 }).collect();
        let found = spikes(&regular, 10.0, 1_000).unwrap();
        assert_eq!((found.threshold_ns, found.slow_calls), (1_000, 11));
        assert_eq!(found.spacing, Some(Spacing { median_gap: 85.0, variation: 0.0, periodic: true }));
        assert_eq!(found.mean_of_slow_ns, Some(20_000.0));

        let irregular: Vec<_> =
            (0..1_000).map(|i| if [10, 20, 500, 980].contains(&i) { 20_000 } else { 100 }).collect();
        assert!(!spikes(&irregular, 10.0, 0).unwrap().spacing.unwrap().periodic);
    }

    #[test]
    fn without_spikes_nothing_is_inflated() {
        let found = spikes(&[100, 110, 90], 10.0, 0).unwrap();
        assert_eq!((found.slow_calls, found.share, found.inflation), (0, 0.0, 1.0));
        assert_eq!((found.mean_of_slow_ns, found.spacing), (None, None));
        assert_eq!(spikes(&[], 10.0, 0), None);
        assert_eq!(spikes(&[0, 0, 0], 10.0, 0), None);
        assert_eq!(spikes(&[5, 6], 0.0, 0), None);
    }

    #[test]
    fn omitted_calls_are_added() {
        let added = |value, interval| with_expected_interval(value, interval).collect::<Vec<_>>();
        assert_eq!(added(35, 10), [35, 25, 15]);
        assert_eq!(added(9, 10), [9]);
        assert_eq!(added(19, 10), [19]);
        assert_eq!(added(20, 10), [20, 10]);
        assert_eq!(added(7, 0), [7]);
    }

    #[test]
    fn little_law() {
        // Four workers, 2,000 calls a second of 2 ms each.
        assert_eq!(little_law_mismatch(4.0, 2_000.0, 0.002), Some(0.0));
        assert!((little_law_mismatch(4.0, 1_800.0, 0.002).unwrap() + 0.1).abs() < 1e-12);
        assert_eq!(little_law_mismatch(0.0, 1.0, 1.0), None);
        assert_eq!(little_law_mismatch(1.0, f64::NAN, 1.0), None);
    }
}
