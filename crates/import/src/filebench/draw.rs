//! The distributions of random variables.

use benchmaster_record::model::{Size, SizeDistribution, WeightedSize};
use benchmaster_units::ByteSize;
use statrs::distribution::{ContinuousCDF, Gamma, Normal};

/// Sizes of equal weight that stand for a distribution that has no name here.
const POINTS: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draw {
    pub(super) law: Law,
    /// Limits of what is drawn.
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    /// What is drawn becomes a multiple of this, unless 0.
    pub(super) round: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Law {
    Uniform {
        lower: f64,
        upper: f64,
    },
    /// Shifted by `least`, which is part of the mean.
    Gamma {
        mean: f64,
        shape: f64,
        least: f64,
    },
    LogNormal {
        mu: f64,
        sigma: f64,
    },
}

impl Draw {
    pub(super) fn mean(&self) -> f64 {
        match &self.law {
            Law::Gamma { mean, .. } => *mean,
            _ => {
                let points = self.quantiles().unwrap_or_default();
                points.iter().sum::<f64>() / points.len().max(1) as f64
            }
        }
    }

    /// The distribution of sizes, and what is different about it.
    pub(super) fn size(&self) -> (Size, Option<String>) {
        let bytes = |value: f64| ByteSize(value.max(0.0).round() as u64);
        let bounded = self.least.is_some() || self.most.is_some() || self.round > 1;
        let exact = |distribution| (Size::Distributed(distribution), None);
        match &self.law {
            Law::Uniform { lower, upper } if !bounded && lower == upper => (Size::Fixed(bytes(*lower)), None),
            Law::Uniform { lower, upper } if !bounded => {
                exact(SizeDistribution::Uniform { min: bytes(*lower), max: bytes(*upper) })
            }
            Law::Gamma { mean, shape, least: 0.0 } if !bounded => {
                exact(SizeDistribution::Gamma { mean: bytes(*mean), shape: *shape })
            }
            Law::LogNormal { mu, sigma } if !bounded && *sigma > 0.0 => {
                exact(SizeDistribution::LogNormal { median: bytes(mu.exp()), sigma: *sigma })
            }
            _ => {
                let points = self.quantiles().unwrap_or_default();
                let sizes = points
                    .iter()
                    .map(|point| WeightedSize { size: bytes(self.limited(*point)), weight: 1.0 });
                let message = format!("{POINTS} sizes of equal weight stand for the distribution");
                (Size::Distributed(SizeDistribution::Weighted { sizes: merged(sizes) }), Some(message))
            }
        }
    }

    fn limited(&self, value: f64) -> f64 {
        let value = value.max(self.least.unwrap_or(0.0)).min(self.most.unwrap_or(f64::MAX)).max(0.0);
        match self.round {
            0 | 1 => value,
            round => (value / round as f64).round() * round as f64,
        }
    }

    /// The middles of equally likely parts of the distribution; `None` when its parameters are none.
    pub(super) fn quantiles(&self) -> Option<Vec<f64>> {
        let at = |inverse: &dyn Fn(f64) -> f64| -> Option<Vec<f64>> {
            let points: Vec<f64> =
                (0..POINTS).map(|number| inverse((number as f64 + 0.5) / POINTS as f64)).collect();
            points.iter().all(|point| point.is_finite()).then_some(points)
        };
        match self.law {
            Law::Uniform { lower, upper } if lower <= upper => at(&|p| lower + p * (upper - lower)),
            Law::Gamma { mean, shape, least } => {
                let law = Gamma::new(shape, shape / (mean - least)).ok()?;
                at(&|p| least + law.inverse_cdf(p))
            }
            Law::LogNormal { mu, sigma } => {
                let law = Normal::new(mu, sigma).ok()?;
                at(&|p| law.inverse_cdf(p).exp())
            }
            Law::Uniform { .. } => None,
        }
    }
}

/// Equal sizes put together, in ascending order.
fn merged(sizes: impl Iterator<Item = WeightedSize>) -> Vec<WeightedSize> {
    let mut all: Vec<WeightedSize> = sizes.collect();
    all.sort_by_key(|each| each.size);
    let mut merged: Vec<WeightedSize> = Vec::new();
    for each in all {
        match merged.last_mut().filter(|last| last.size == each.size) {
            Some(last) => last.weight += each.weight,
            None => merged.push(each),
        }
    }
    merged
}
