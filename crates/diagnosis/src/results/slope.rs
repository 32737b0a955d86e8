//! A line through points that are in groups, whatever the groups' means are.

use benchmaster_stats::{mean, t_quantile, t_two_sided_p};

/// Points less the means of their groups.
#[derive(Debug, Default)]
pub(super) struct Within {
    pub(super) points: Vec<(f64, f64)>,
    groups: usize,
}

impl Within {
    /// Of groups none of which is empty.
    pub(super) fn of(groups: impl IntoIterator<Item = Vec<(f64, f64)>>) -> Self {
        let mut within = Self::default();
        for group in groups {
            let middle = |part: fn(&(f64, f64)) -> f64| mean(&group.iter().map(part).collect::<Vec<_>>());
            let Some((x, y)) = middle(|of| of.0).zip(middle(|of| of.1)) else { continue };
            within.points.extend(group.into_iter().map(|of| (of.0 - x, of.1 - y)));
            within.groups += 1;
        }
        within
    }

    /// The least-squares slope. `None` without degrees of freedom for error, or without two x.
    pub(super) fn slope(&self) -> Option<Slope> {
        let df = self.points.len().checked_sub(self.groups + 1).filter(|df| *df > 0)? as f64;
        let xx: f64 = self.points.iter().map(|(x, _)| x * x).sum();
        let xy: f64 = self.points.iter().map(|(x, y)| x * y).sum();
        let value = (xx > 0.0).then(|| xy / xx)?;
        let left: f64 = self.points.iter().map(|(x, y)| (y - value * x).powi(2)).sum();
        Some(Slope { value, standard_error: (left / df / xx).sqrt(), df })
    }
}

/// How much y changes with x, within groups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slope {
    pub(super) value: f64,
    pub(super) standard_error: f64,
    pub(super) df: f64,
}

impl Slope {
    /// The two-sided p value of no change.
    pub(super) fn p(&self) -> f64 {
        if self.standard_error > 0.0 {
            t_two_sided_p(self.value / self.standard_error, self.df)
        } else {
            f64::from(u8::from(self.value == 0.0))
        }
    }

    /// Its interval.
    pub(super) fn interval(&self, confidence: f64) -> (f64, f64) {
        let half = t_quantile((1.0 + confidence) / 2.0, self.df) * self.standard_error;
        (self.value - half, self.value + half)
    }
}
