//! Sizes of the files of a fileset.

use std::sync::Arc;

use crate::model::{Fileset, Size};
use crate::random::Random;
use crate::sizes::with_quantiles;

/// The size of every file. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) enum Sizes {
    Fixed(u64),
    Each(Arc<[u64]>),
}

impl Sizes {
    /// Draws the sizes of `fileset` by `seed`.
    pub(super) fn draw(fileset: &Fileset, seed: u64) -> Self {
        match &fileset.size {
            Size::Fixed(size) => Self::Fixed(size.0),
            Size::Distributed(distribution) => with_quantiles(distribution, |quantile| {
                let mut random = Random::new(seed, 1);
                Self::Each((0..fileset.files).map(|_| quantile(random.unit())).collect())
            }),
        }
    }

    #[inline]
    pub(super) fn of(&self, file: u64) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            Self::Each(sizes) => sizes[file as usize],
        }
    }

    pub(super) fn total(&self, files: u64) -> u64 {
        match self {
            Self::Fixed(size) => size.saturating_mul(files),
            Self::Each(sizes) => sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SizeDistribution;
    use benchmaster_units::ByteSize;

    fn draw(files: u64, distribution: SizeDistribution, seed: u64) -> Vec<u64> {
        let size = Size::Distributed(distribution);
        let fileset = Fileset { files, size, ..Fileset::default() };
        let sizes = Sizes::draw(&fileset, seed);
        let all: Vec<u64> = (0..files).map(|file| sizes.of(file)).collect();
        assert_eq!(sizes.total(files), all.iter().sum::<u64>());
        all
    }

    #[test]
    fn drawn_sizes_have_the_mean_asked_for_and_depend_on_the_seed_alone() {
        let gamma = |seed| draw(4000, SizeDistribution::Gamma { mean: ByteSize::kib(128), shape: 1.5 }, seed);
        let mean = gamma(5).iter().sum::<u64>() as f64 / 4000.0 / 131_072.0;
        assert!((0.95..1.05).contains(&mean), "{mean}");
        assert_eq!(gamma(5), gamma(5));
        assert_ne!(gamma(5), gamma(6));
    }

    #[test]
    fn the_median_of_a_log_normal_distribution_is_as_asked() {
        let mut sizes = draw(4001, SizeDistribution::LogNormal { median: ByteSize::kib(64), sigma: 1.0 }, 3);
        sizes.sort_unstable();
        let median = sizes[2000] as f64 / 65_536.0;
        assert!((0.9..1.1).contains(&median), "{median}");
    }

    #[test]
    fn every_uniform_size_is_equally_likely() {
        let sizes = draw(11_000, SizeDistribution::Uniform { min: ByteSize(10), max: ByteSize(20) }, 1);
        for size in 10..=20 {
            let count = sizes.iter().filter(|&&s| s == size).count();
            // Binomial with mean 1000 and standard deviation 30.
            assert!((850..1150).contains(&count), "{size}: {count}");
        }
    }
}
