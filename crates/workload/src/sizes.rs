//! Sizes drawn from distributions.

use statrs::distribution::{ContinuousCDF, Gamma, LogNormal};

use crate::content::{BLOCK, MIN_BLOCK, block_size};
use crate::model::{SizeDistribution, WeightedSize};
use crate::random::Random;

/// Larger sizes cannot be drawn: 1 EB.
const LARGEST: f64 = 1e18;

/// Pieces of the line that stands for the quantiles of a distribution when sizes are drawn one after the other.
const PIECES: usize = 4096;

/// The quantile up to which that line goes; sizes have to end somewhere, because buffers do.
const LAST: f64 = 1.0 - 1.0 / (16 * PIECES) as f64;

/// Calls `draw` with the function that gives the size below which a share of the sizes lies.
pub(crate) fn with_quantiles<T>(
    distribution: &SizeDistribution,
    draw: impl FnOnce(&dyn Fn(f64) -> u64) -> T,
) -> T {
    let whole = |size: f64| size.clamp(0.0, LARGEST).round() as u64;
    match distribution {
        SizeDistribution::Uniform { min, max } => {
            let (low, high) = (min.0 as f64, max.0 as f64);
            // Whole sizes from `min` to `max`, both included.
            draw(&|u| whole((low + u * (high - low + 1.0)).floor().min(high)))
        }
        SizeDistribution::Gamma { mean, shape } => match Gamma::new(*shape, *shape / mean.0 as f64) {
            Ok(gamma) => draw(&|u| whole(gamma.inverse_cdf(u))),
            Err(_) => draw(&|_| mean.0),
        },
        SizeDistribution::LogNormal { median, sigma } => {
            match LogNormal::new((median.0 as f64).ln(), *sigma) {
                Ok(distribution) => draw(&|u| whole(distribution.inverse_cdf(u))),
                Err(_) => draw(&|_| median.0),
            }
        }
        SizeDistribution::Weighted { sizes } => {
            let shares = shares(sizes);
            draw(&|u| weighted(&shares, u))
        }
    }
}

/// Sizes with the cumulative shares below which each is drawn.
fn shares(sizes: &[WeightedSize]) -> Box<[(f64, u64)]> {
    let total: f64 = sizes.iter().map(|each| each.weight).sum();
    let mut share = 0.0;
    let add = |each: &WeightedSize| {
        share += each.weight / total;
        (share, each.size.0)
    };
    sizes.iter().map(add).collect()
}

fn weighted(shares: &[(f64, u64)], drawn: f64) -> u64 {
    let found = shares.iter().find(|(below, _)| drawn < *below).or(shares.last());
    found.map_or(0, |(_, size)| *size)
}

/// Draws the sizes of reads and writes: without allocating, and without computing quantiles.
///
/// Gamma and log-normal sizes lie on a line of 4,096 pieces between the distribution's quantiles, which ends at the
/// quantile of 0.99998.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeSampler {
    kind: Kind,
    /// Sizes are multiples of it.
    grain: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Uniform {
        min: u64,
        max: u64,
    },
    /// Sizes at quantiles in equal steps.
    Line(Box<[u64]>),
    Weighted(Box<[(f64, u64)]>),
}

impl SizeSampler {
    /// A sampler whose sizes are rounded to multiples of `grain`, at least one.
    pub(crate) fn new(distribution: &SizeDistribution, grain: u64) -> Self {
        let kind = match distribution {
            SizeDistribution::Uniform { min, max } => Kind::Uniform { min: min.0, max: max.0 },
            SizeDistribution::Weighted { sizes } => Kind::Weighted(shares(sizes)),
            _ => Kind::Line(with_quantiles(distribution, |quantile| {
                (0..=PIECES).map(|at| quantile((at as f64 / PIECES as f64).min(LAST))).collect()
            })),
        };
        Self { kind, grain: grain.max(1) }
    }

    /// The same with another grain.
    pub(crate) fn with_grain(&self, grain: u64) -> Self {
        Self { kind: self.kind.clone(), grain: grain.max(1) }
    }

    /// A size, at least 1.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let size = match &self.kind {
            Kind::Uniform { min, max } => min + random.below(max - min + 1),
            Kind::Line(line) => {
                let drawn = random.unit() * PIECES as f64;
                let piece = drawn as usize;
                let (from, to) = (line[piece], line[piece + 1]);
                from + ((to - from) as f64 * (drawn - piece as f64)) as u64
            }
            Kind::Weighted(shares) => weighted(shares, random.unit()),
        };
        self.round(size)
    }

    fn round(&self, size: u64) -> u64 {
        match self.grain {
            1 => size.max(1),
            grain => ((size + grain / 2) / grain).max(1) * grain,
        }
    }

    /// The largest size that is drawn.
    pub(crate) fn largest(&self) -> u64 {
        self.round(match &self.kind {
            Kind::Uniform { max, .. } => *max,
            Kind::Line(line) => line.last().copied().unwrap_or(0),
            Kind::Weighted(shares) => shares.iter().map(|(_, size)| *size).max().unwrap_or(0),
        })
    }

    /// Sizes are multiples of it.
    pub(crate) fn grain(&self) -> u64 {
        self.grain
    }

    /// Random positions are multiples of it.
    pub(crate) fn alignment(&self) -> u64 {
        match (&self.kind, self.grain) {
            (Kind::Uniform { min, .. }, 1) => (*min).max(1),
            (Kind::Weighted(shares), 1) => shares.iter().map(|(_, size)| *size).min().unwrap_or(1).max(1),
            (Kind::Line(_), 1) => BLOCK as u64,
            (_, grain) => grain,
        }
    }

    /// The block that all sizes can be made multiples of without changing them much, so that their data can be proved.
    /// `None` when it would be less than [`MIN_BLOCK`].
    pub(crate) fn block(&self) -> Option<usize> {
        let below = |size: u64| {
            let power = size.checked_ilog2().map_or(0, |bits| 1 << bits.min(BLOCK.ilog2()));
            (power >= MIN_BLOCK).then_some(power)
        };
        match &self.kind {
            Kind::Uniform { min, .. } => below(*min),
            Kind::Line(line) => below(line[PIECES / 2] / 4),
            Kind::Weighted(shares) => {
                let blocks = shares.iter().map(|(_, size)| block_size(*size));
                blocks.collect::<Option<Vec<_>>>()?.into_iter().min()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Size;
    use benchmaster_units::ByteSize;

    fn draws(distribution: &SizeDistribution, grain: u64) -> Vec<u64> {
        let sampler = SizeSampler::new(distribution, grain);
        let mut random = Random::new(11, 0);
        let sizes: Vec<u64> = (0..40_000).map(|_| sampler.draw(&mut random)).collect();
        assert!(sizes.iter().all(|size| (1..=sampler.largest()).contains(size) && size % grain == 0));
        sizes
    }

    fn mean(sizes: &[u64]) -> f64 {
        sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
    }

    #[test]
    fn drawn_sizes_have_the_mean_of_the_distribution() {
        let gamma = SizeDistribution::Gamma { mean: ByteSize::kib(16), shape: 1.5 };
        let drawn = mean(&draws(&gamma, 1)) / 16384.0;
        // The standard error is 0.8165 / 200.
        assert!((0.98..1.02).contains(&drawn), "{drawn}");
        let drawn = mean(&draws(&gamma, 512)) / 16384.0;
        assert!((0.98..1.03).contains(&drawn), "{drawn}");
        let normal = SizeDistribution::LogNormal { median: ByteSize(10_000), sigma: 0.5 };
        let mut sizes = draws(&normal, 1);
        sizes.sort_unstable();
        assert!((9_800..10_200).contains(&sizes[20_000]), "{}", sizes[20_000]);
    }

    #[test]
    fn the_mean_of_a_size_is_known() {
        let mean = |distribution| Size::Distributed(distribution).mean();
        assert_eq!(Size::Fixed(ByteSize(7)).mean(), 7.0);
        assert_eq!(mean(SizeDistribution::Uniform { min: ByteSize(100), max: ByteSize(300) }), 200.0);
        assert_eq!(mean(SizeDistribution::Gamma { mean: ByteSize(50), shape: 1.5 }), 50.0);
        let log_normal = mean(SizeDistribution::LogNormal { median: ByteSize(1000), sigma: 1.0 });
        assert!((log_normal - 1648.72).abs() < 0.01, "{log_normal}");
        let each = |size, weight| WeightedSize { size: ByteSize(size), weight };
        let weighted = SizeDistribution::Weighted { sizes: vec![each(100, 3.0), each(500, 1.0)] };
        assert_eq!(mean(weighted), 200.0);
    }

    #[test]
    fn weighted_sizes_come_as_often_as_their_weights_say() {
        let size = |size, weight| WeightedSize { size: ByteSize(size), weight };
        let mix =
            SizeDistribution::Weighted { sizes: vec![size(4096, 6.0), size(65536, 2.0), size(512, 2.0)] };
        let sizes = draws(&mix, 1);
        for (size, expected) in [(4096, 24_000.0), (65536, 8_000.0), (512, 8_000.0)] {
            let share = sizes.iter().filter(|&&drawn| drawn == size).count() as f64 / expected;
            assert!((0.95..1.05).contains(&share), "{size}: {share}");
        }
        let sampler = SizeSampler::new(&mix, 1);
        assert_eq!((sampler.block(), sampler.alignment(), sampler.largest()), (Some(512), 512, 65536));
    }

    #[test]
    fn sizes_that_are_to_be_proved_are_multiples_of_a_block() {
        let uniform = SizeDistribution::Uniform { min: ByteSize(1000), max: ByteSize(5000) };
        let sampler = SizeSampler::new(&uniform, 1);
        assert_eq!((sampler.block(), sampler.alignment()), (Some(512), 1000));
        let sizes = draws(&uniform, 512);
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&1024), Some(&5120)));
        assert_eq!(sampler.with_grain(512).alignment(), 512);
        let tiny = SizeDistribution::Uniform { min: ByteSize(10), max: ByteSize(5000) };
        assert_eq!(SizeSampler::new(&tiny, 1).block(), None);
        let gamma = SizeDistribution::Gamma { mean: ByteSize::kib(128), shape: 1.5 };
        assert_eq!(SizeSampler::new(&gamma, 1).block(), Some(BLOCK));
    }
}
