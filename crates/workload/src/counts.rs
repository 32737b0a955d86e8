//! Latency counts of one worker and interval: the layout of an HDR histogram with two significant digits, in a flat
//! array, so that recording is an index and an increment.

use hdrhistogram::Histogram;

use crate::recording::HISTOGRAM_RANGE_NS;

/// Counters per power of two; values below twice as many are kept exactly.
const HALF: u64 = 128;
const SHIFT: u32 = HALF.trailing_zeros();
/// Enough for an hour in nanoseconds.
const LENGTH: usize = ((63 - HISTOGRAM_RANGE_NS.1.leading_zeros() - SHIFT + 2) as usize) * HALF as usize;

#[derive(Clone)]
pub(crate) struct LatencyCounts {
    counts: Box<[u64; LENGTH]>,
    total: u64,
}

impl LatencyCounts {
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; LENGTH]), total: 0 }
    }

    #[inline(always)]
    pub(crate) fn record(&mut self, nanos: u64) {
        // Never out of range, which the compiler cannot see.
        if let Some(count) = self.counts.get_mut(index(nanos.min(HISTOGRAM_RANGE_NS.1))) {
            *count += 1;
            self.total += 1;
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// Adds the counts to a histogram.
    pub(crate) fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (at, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(lowest(at), count);
        }
    }
}

impl std::fmt::Debug for LatencyCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyCounts").field("total", &self.total).finish_non_exhaustive()
    }
}

/// The counter of a value.
#[inline(always)]
fn index(value: u64) -> usize {
    // The power of two beyond the exact range, 0 within it.
    let exponent = (63 - (value | HALF).leading_zeros()) - SHIFT;
    (u64::from(exponent) * HALF + (value >> exponent)) as usize
}

/// The smallest value of a counter.
fn lowest(index: usize) -> u64 {
    let index = index as u64;
    let exponent = (index / HALF).saturating_sub(1);
    (index - exponent * HALF) << exponent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::latency_histogram;
    use proptest::prelude::*;

    #[test]
    fn every_counter_has_its_own_value() {
        for at in 0..LENGTH {
            assert_eq!(index(lowest(at)), at);
        }
        assert!(index(HISTOGRAM_RANGE_NS.1) < LENGTH);
    }

    proptest! {
        #[test]
        fn the_same_as_recording_into_the_histogram(values in prop::collection::vec(0u64..1 << 50, 1..200)) {
            let (mut counts, mut expected, mut filled) = (LatencyCounts::new(), latency_histogram(), latency_histogram());
            for &value in &values {
                counts.record(value);
                expected.record(value.min(HISTOGRAM_RANGE_NS.1)).unwrap();
            }
            counts.add_to(&mut filled);
            let recorded = |histogram: &Histogram<u64>| -> Vec<(u64, u64)> {
                histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
            };
            prop_assert_eq!(recorded(&filled), recorded(&expected));
            prop_assert_eq!(counts.len(), values.len() as u64);
            counts.clear();
            prop_assert!(counts.is_empty());
            counts.add_to(&mut filled);
            prop_assert_eq!(filled.len(), values.len() as u64);
        }
    }
}
