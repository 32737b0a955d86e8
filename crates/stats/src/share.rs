//! Shares: how often something was so among trials.

use statrs::function::beta::beta_reg;

use crate::quantile::normal_quantile;

/// Wilson's interval of the share of `part` in `whole` (J. Am. Stat. Assoc. 22, 1927); from 0 to 1 of nothing.
pub fn wilson(part: u64, whole: u64, confidence: f64) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    let n = whole as f64;
    let p = part as f64 / n;
    let z = normal_quantile(0.5 + confidence / 2.0);
    let middle = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    (((middle - half) / scale).clamp(0.0, p), ((middle + half) / scale).clamp(p, 1.0))
}

/// The probability of `k` or more of `n` when each is so with probability `q`: the upper tail of the binomial distribution.
pub fn at_least(k: u64, n: u64, q: f64) -> f64 {
    match k {
        0 => 1.0,
        k if k > n => 0.0,
        k => beta_reg(k as f64, (n - k + 1) as f64, q.clamp(0.0, 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 of 10: 0.0179 to 0.4042 (Newcombe 1998 prints such tables); the others worked out by hand.
    #[test]
    fn shares_have_the_interval_of_wilson() {
        for (part, whole, low, high, digits) in [
            (1, 10, 0.017_876, 0.404_150, 1e-5),
            (0, 10, 0.0, 0.277_5, 1e-4),
            (5, 10, 0.236_6, 0.763_4, 1e-4),
            (10, 10, 0.722_5, 1.0, 1e-4),
            (80, 100, 0.711, 0.867, 1e-3),
        ] {
            let found = wilson(part, whole, 0.95);
            assert!((found.0 - low).abs() < digits && (found.1 - high).abs() < digits, "{part}: {found:?}");
        }
        assert_eq!(
            (wilson(0, 10, 0.95).0, wilson(10, 10, 0.95).1, wilson(0, 0, 0.95)),
            (0.0, 1.0, (0.0, 1.0))
        );
    }

    #[test]
    fn tails_of_the_binomial_distribution() {
        for (k, n, q, tail) in
            [(3, 3, 0.3, 0.027), (4, 4, 0.3, 0.008_1), (1, 2, 0.5, 0.75), (1, 3, 0.02, 0.058_808)]
        {
            assert!((at_least(k, n, q) - tail).abs() < 1e-12, "{k} of {n}: {}", at_least(k, n, q));
        }
        assert_eq!((at_least(0, 5, 0.3), at_least(6, 5, 0.3)), (1.0, 0.0));
        // The sum of the terms.
        let sum: f64 = [0.2f64.powi(5), 5.0 * 0.2f64.powi(4) * 0.8].iter().sum();
        assert!((at_least(4, 5, 0.2) - sum).abs() < 1e-12);
    }
}
