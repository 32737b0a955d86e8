//! Numbers of which the first come more often than the others.

use super::Random;

/// Numbers below a bound, where number `k` has a probability in proportion to `1 / (k + 1)^exponent`. Drawn in constant time by
/// rejection-inversion (W. Hörmann and G. Derflinger, Rejection-inversion to generate variates from monotone discrete
/// distributions, 1996).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipf {
    bound: u64,
    exponent: f64,
    /// The integral up to the first number and up to the last.
    first: f64,
    last: f64,
    /// Where the first number is accepted without a further look.
    near: f64,
    /// Odd in the sense of having no divisor in common with the bound: scatters the numbers.
    stride: u64,
}

impl Zipf {
    /// Numbers in `0..bound` (at least 1 of them); `exponent` is above 0.
    pub fn new(bound: u64, exponent: f64) -> Self {
        let bound = bound.max(1);
        let mut stride = (bound as f64 * 0.618_033_988_749_895) as u64 | 1;
        while divisor(stride, bound) > 1 {
            stride += 2;
        }
        let mut zipf = Self { bound, exponent, first: 0.0, last: 0.0, near: 0.0, stride };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(bound as f64 + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Whether it is the one of these parameters.
    #[inline]
    pub fn is(&self, bound: u64, exponent: f64) -> bool {
        self.bound == bound && self.exponent == exponent
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let at = self.last + random.unit() * (self.first - self.last);
            let x = self.inverse(at);
            let number = (x + 0.5).floor().clamp(1.0, self.bound as f64);
            if number - x <= self.near || at >= self.integral(number + 0.5) - self.density(number) {
                return number as u64 - 1;
            }
        }
    }

    /// A number, scattered over all of them: every number stands for another one.
    pub fn draw_scattered(&self, random: &mut Random) -> u64 {
        let number = self.draw(random);
        (u128::from(number) * u128::from(self.stride) % u128::from(self.bound)) as u64
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// An antiderivative of the density.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        log * expm1_over((1.0 - self.exponent) * log)
    }

    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.exponent)).max(-1.0);
        (y * ln_1p_over(t)).exp()
    }
}

/// `(e^x - 1) / x`, also near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// `ln(1 + x) / x`, also near 0.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

fn divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Those used last, because to make one takes longer than to draw.
#[derive(Debug, Default)]
pub(crate) struct Zipfs {
    known: [Option<Zipf>; 4],
    next: usize,
}

impl Zipfs {
    /// The one of these parameters.
    #[inline]
    pub(crate) fn get(&mut self, bound: u64, exponent: f64) -> Zipf {
        let found = self.known.iter().flatten().find(|zipf| zipf.is(bound, exponent));
        found.copied().unwrap_or_else(|| self.make(bound, exponent))
    }

    #[cold]
    fn make(&mut self, bound: u64, exponent: f64) -> Zipf {
        let zipf = Zipf::new(bound.max(1), exponent);
        self.known[self.next] = Some(zipf);
        self.next = (self.next + 1) % self.known.len();
        zipf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_as_often_as_the_law_says() {
        for exponent in [0.5, 0.99, 1.0, 1.2, 2.0, 3.5] {
            let bound = 50;
            let weight = |number: u64| (number as f64 + 1.0).powf(-exponent);
            let total: f64 = (0..bound).map(weight).sum();
            let (zipf, mut random) = (Zipf::new(bound, exponent), Random::new(5, 1));
            let mut counts = vec![0u32; bound as usize];
            let draws = 100_000;
            (0..draws).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
            // Chi-square with 49 degrees of freedom: above 94.6 once in 10,000 times. Rare numbers are put together.
            let (mut square, mut rest) = (0.0, (0.0, 0.0));
            for (number, &count) in (0..).zip(&counts) {
                let expected = f64::from(draws) * weight(number) / total;
                if expected >= 10.0 {
                    square += (f64::from(count) - expected).powi(2) / expected
                } else {
                    rest = (rest.0 + f64::from(count), rest.1 + expected)
                }
            }
            if rest.1 > 0.0 {
                square += (rest.0 - rest.1).powi(2) / rest.1;
            }
            assert!(square < 94.6, "exponent {exponent}: {square} {counts:?}");
        }
    }

    #[test]
    fn scattered_numbers_are_all_numbers_and_the_first_are_far_apart() {
        for bound in [1u64, 2, 3, 10, 97, 1000, 1 << 20] {
            let zipf = Zipf::new(bound, 1.0);
            assert_eq!(divisor(zipf.stride, bound), 1);
        }
        let (zipf, mut random) = (Zipf::new(1000, 1.5), Random::new(1, 0));
        let mut counts = vec![0u32; 1000];
        (0..20_000).for_each(|_| counts[zipf.draw_scattered(&mut random) as usize] += 1);
        let mut order: Vec<usize> = (0..1000).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(counts[at]));
        assert_eq!(order[0], 0, "the most frequent number is the first");
        assert!(order[1] > 300 && order[1].abs_diff(order[2]) > 100, "{:?}", &order[..4]);
    }

    #[test]
    fn bounds_are_kept_for_large_numbers() {
        let mut random = Random::new(3, 0);
        let mut zipfs = Zipfs::default();
        for bound in [1, 2, 1 << 40] {
            let zipf = zipfs.get(bound, 1.1);
            assert!((0..1000).all(|_| zipf.draw(&mut random) < bound));
            assert_eq!(zipfs.get(bound, 1.1), zipf);
        }
    }
}
