//! Percentiles of merged histograms, as far as the number of values supports them.

use hdrhistogram::Histogram;

use crate::error::StatsError;

/// Values that must lie beyond a percentile for it to be printed; p50 and p90 need this many values in all.
pub const SUPPORT: u64 = 10;

/// Percentiles of a distribution. Each is `None` when too few values were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PercentileTable {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90 % are at or below this.
    pub p90: Option<u64>,
    /// 95 % are at or below this; needs 200 values.
    pub p95: Option<u64>,
    /// 99 % are at or below this; needs 1,000 values.
    pub p99: Option<u64>,
    /// 99.9 % are at or below this; needs 10,000 values.
    pub p999: Option<u64>,
    /// 99.99 % are at or below this; needs 100,000 values.
    pub p9999: Option<u64>,
    /// Largest value.
    pub max: Option<u64>,
}

/// One line of a [`PercentileTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PercentileRow {
    /// `min`, `p50`, …, `p99.99`, `max`.
    pub label: &'static str,
    /// The value; `None` when too few values were recorded.
    pub value: Option<u64>,
}

impl PercentileTable {
    /// The percentiles of one histogram. To summarise several, merge them (see [`PercentileTable::of_merged`]):
    /// percentiles must never be averaged.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let count = histogram.len();
        // Percentiles in hundredths of a percent keep the condition exact.
        let percentile = |hundredths: u64| {
            let beyond = u128::from(count) * u128::from(10_000 - hundredths) / 10_000;
            let supported = if hundredths <= 9_000 { count >= SUPPORT } else { beyond >= SUPPORT.into() };
            supported.then(|| histogram.value_at_quantile(hundredths as f64 / 10_000.0).min(histogram.max()))
        };
        let extreme = |value: u64| (count > 0).then_some(value);
        Self {
            count,
            min: extreme(histogram.min()),
            p50: percentile(5_000),
            p90: percentile(9_000),
            p95: percentile(9_500),
            p99: percentile(9_900),
            p999: percentile(9_990),
            p9999: percentile(9_999),
            max: extreme(histogram.max()),
        }
    }

    /// The percentiles of all values of several histograms together.
    pub fn of_merged<'a>(
        histograms: impl IntoIterator<Item = &'a Histogram<u64>>,
    ) -> Result<Self, StatsError> {
        let mut histograms = histograms.into_iter();
        let Some(first) = histograms.next() else { return Ok(Self::default()) };
        let mut merged = first.clone();
        for histogram in histograms {
            merged.add(histogram).map_err(|error| StatsError::Merge(error.to_string()))?;
        }
        Ok(Self::of(&merged))
    }

    /// The table line by line, from the smallest to the largest value.
    pub fn rows(&self) -> [PercentileRow; 8] {
        [
            ("min", self.min),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p999),
            ("p99.99", self.p9999),
            ("max", self.max),
        ]
        .map(|(label, value)| PercentileRow { label, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        values.into_iter().for_each(|v| histogram.record(v).unwrap());
        histogram
    }

    #[test]
    fn an_empty_histogram_tells_nothing() {
        assert_eq!(PercentileTable::of(&histogram([])), PercentileTable::default());
        assert_eq!(PercentileTable::of_merged([]), Ok(PercentileTable::default()));
    }

    #[test]
    fn a_percentile_needs_its_support() {
        let labels = |count: u64| {
            let table = PercentileTable::of(&histogram((0..count).map(|i| 1 + i % 1_000)));
            assert_eq!(table.count, count);
            table.rows().iter().filter(|row| row.value.is_some()).map(|row| row.label).collect::<Vec<_>>()
        };
        assert_eq!(labels(9), ["min", "max"]);
        assert_eq!(labels(10), ["min", "p50", "p90", "max"]);
        assert_eq!(labels(199), ["min", "p50", "p90", "max"]);
        assert_eq!(labels(200), ["min", "p50", "p90", "p95", "max"]);
        assert_eq!(labels(999), ["min", "p50", "p90", "p95", "max"]);
        assert_eq!(labels(1_000), ["min", "p50", "p90", "p95", "p99", "max"]);
        assert_eq!(labels(10_000), ["min", "p50", "p90", "p95", "p99", "p99.9", "max"]);
        assert_eq!(labels(100_000).len(), 8);
    }

    #[test]
    fn values_are_those_of_the_distribution() {
        let table = PercentileTable::of(&histogram(1..=1_000));
        assert_eq!((table.min, table.p50, table.p90), (Some(1), Some(500), Some(900)));
        assert_eq!((table.p95, table.p99, table.max), (Some(950), Some(990), Some(1_000)));
    }

    #[test]
    fn merging_is_not_averaging() {
        let (fast, slow) = (histogram((0..900).map(|_| 10)), histogram((0..100).map(|_| 1_000)));
        let merged = PercentileTable::of_merged([&fast, &slow]).unwrap();
        assert_eq!(
            (merged.count, merged.p50, merged.p95, merged.max),
            (1_000, Some(10), Some(1_000), Some(1_000))
        );
        let (narrow, slow) = (Histogram::new_with_bounds(1, 100, 3).unwrap(), histogram([100_000]));
        let error = PercentileTable::of_merged([&narrow, &slow]).unwrap_err().to_string();
        assert!(error.contains("cannot be merged") && error.contains("same range"), "{error}");
    }
}
