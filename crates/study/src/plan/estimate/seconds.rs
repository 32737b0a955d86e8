//! A time that is not known exactly.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul};

use serde::Serialize;

use crate::plan::design::text::{duration, range};

/// Seconds, from the shortest to the longest that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Seconds {
    /// The shortest.
    pub low: f64,
    /// The longest.
    pub high: f64,
}

impl Seconds {
    pub(super) const fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    pub(super) const fn exactly(seconds: f64) -> Self {
        Self::new(seconds, seconds)
    }

    pub(super) fn at_most(self, limit: f64) -> Self {
        Self::new(self.low.min(limit), self.high.min(limit))
    }

    /// Of two things that happen at the same time.
    pub(super) fn beside(self, other: Self) -> Self {
        Self::new(self.low.max(other.low), self.high.max(other.high))
    }

    /// Done as often as `times` says.
    pub(super) fn times(self, times: Self) -> Self {
        Self::new(self.low * times.low, self.high * times.high)
    }
}

impl Add for Seconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(self.low + other.low, self.high + other.high)
    }
}

impl Mul<f64> for Seconds {
    type Output = Self;

    fn mul(self, times: f64) -> Self {
        self.times(Self::exactly(times))
    }
}

impl Sum for Seconds {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Seconds {
    /// `12 s`, or `12 s to 1 min 30 s`, to two digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |seconds: f64| {
            let scale = 10f64.powi(1 - seconds.max(0.1).log10().floor() as i32);
            duration(if seconds < 60.0 { (seconds * scale).round() / scale } else { seconds })
        };
        f.write_str(&range(text(self.low), text(self.high), |text| text))
    }
}
