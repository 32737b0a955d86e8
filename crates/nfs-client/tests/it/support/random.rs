//! Random numbers with a long period, the same in every run.

/// A linear congruential generator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Random(u64);

impl Random {
    /// Seeds that differ by little give sequences that differ much.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn draw(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}
