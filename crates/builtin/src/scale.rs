//! Making a workload smaller, so that an experiment of a large machine runs on a small one.

use std::time::Duration;

use benchmaster_units::{ByteSize, TimeSpan};

/// A phase is not made shorter than this.
const SHORTEST: TimeSpan = TimeSpan::seconds(1);

/// A factor by which amounts of data, numbers of files and lengths of time are multiplied. What makes a workload what it
/// is stays: sizes of I/Os and of small files, workers, mixes, rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale(f64);

/// What a [`Scale`] can change.
pub trait Scaled {
    /// Changes amounts, numbers and times.
    fn scale(&mut self, scale: Scale);
}

impl Scale {
    /// `factor` must be above 0 and finite.
    pub fn new(factor: f64) -> Option<Self> {
        (factor > 0.0 && factor.is_finite()).then_some(Self(factor))
    }

    pub fn factor(self) -> f64 {
        self.0
    }

    fn times(self, value: u64) -> u64 {
        // A float that is too large becomes the largest number.
        (value as f64 * self.0).round() as u64
    }

    /// An amount of data: a multiple of `unit` (the I/O size), at least one, unless it was smaller before.
    pub fn size(self, size: ByteSize, unit: ByteSize) -> ByteSize {
        let unit = unit.0.max(1);
        if size.0 <= unit {
            return size;
        }
        ByteSize((self.times(size.0) / unit).max(1).saturating_mul(unit))
    }

    /// A number of files: at least `least` (the workers that want one each), unless it was less before.
    pub fn count(self, count: u64, least: u64) -> u64 {
        self.times(count).max(least.min(count)).max(count.min(1))
    }

    /// A time between two events, however short it becomes.
    pub fn part(self, time: TimeSpan) -> TimeSpan {
        TimeSpan(Duration::from_nanos(self.times(time.nanos())))
    }

    /// A length of time: at least a second, unless it was less before.
    pub fn duration(self, time: TimeSpan) -> TimeSpan {
        TimeSpan(Duration::from_nanos(self.times(time.nanos())).max(SHORTEST.0.min(time.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_shrink_to_what_still_makes_sense() {
        let scale = Scale::new(0.01).unwrap();
        let io = ByteSize::kib(64);
        assert_eq!(scale.size(ByteSize(20_000_000_000), io), ByteSize(200_000_000 / 65536 * 65536));
        assert_eq!(scale.size(ByteSize::kib(128), io), io);
        assert_eq!(scale.size(ByteSize(10), io), ByteSize(10));
        assert_eq!((scale.count(10_000, 1), scale.count(1000, 64), scale.count(3, 64)), (100, 64, 3));
        assert_eq!((scale.count(10, 0), scale.count(0, 5)), (1, 0));
        assert_eq!(scale.duration(TimeSpan::seconds(300)), TimeSpan::seconds(3));
        assert_eq!(scale.duration(TimeSpan::seconds(10)), SHORTEST);
        assert_eq!(scale.duration(TimeSpan::millis(10)), TimeSpan::millis(10));
        assert_eq!(scale.duration(TimeSpan::default()), TimeSpan::default());
        assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(Scale::new), [None; 4]);
    }
}
