//! Quantiles of the normal and of Student's t distribution.

use std::f64::consts::SQRT_2;

use statrs::function::beta::{beta_reg, ln_beta};
use statrs::function::erf::{erfc, erfc_inv};

/// The `p` quantile of the standard normal distribution. NaN when `p` is not within 0..=1.
pub fn normal_quantile(p: f64) -> f64 {
    match p {
        _ if !(0.0..=1.0).contains(&p) => f64::NAN,
        0.5 => 0.0,
        _ => -SQRT_2 * erfc_inv(2.0 * p),
    }
}

/// The `p` quantile of Student's t distribution with `df` degrees of freedom. NaN when `p` is not within 0..=1 or
/// `df` is not positive; infinite degrees of freedom give the normal quantile.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    let magnitude = match tail {
        0.0 => f64::INFINITY,
        0.5 => 0.0,
        _ if df > EXPANSION_DF => expanded(-normal_quantile(tail), df),
        _ => solved(tail, df),
    };
    if p < 0.5 { -magnitude } else { magnitude }
}

/// The probability that a standard normal variable is larger than `z`.
pub(crate) fn normal_upper_p(z: f64) -> f64 {
    erfc(z / SQRT_2) / 2.0
}

/// The probability that |t| is larger than |`t`| under Student's t distribution with `df` degrees of freedom, the
/// two-sided p value.
pub fn t_two_sided_p(t: f64, df: f64) -> f64 {
    if df > EXPANSION_DF {
        return erfc(normal_equivalent(t.abs(), df) / SQRT_2);
    }
    beta_reg(0.5 * df, 0.5, df / (df + t * t))
}

/// Above this many degrees of freedom expansions around the normal distribution are used: the continued fraction of the
/// beta function no longer converges there, while the expansions' errors are below 1e-11.
const EXPANSION_DF: f64 = 1e4;

/// The upper quantile by Newton's method on the logarithm of a probability over x = ln t.
///
/// As ln|t| has a log-concave density, both ln P(|t| > eˣ) and ln P(|t| < eˣ) are concave, so the steps cannot
/// diverge. The smaller probability is taken, which does not cancel.
fn solved(tail: f64, df: f64) -> f64 {
    let outer = tail < 0.25;
    let target = if outer { 2.0 * tail } else { 1.0 - 2.0 * tail };
    let probability = |t: f64| {
        let square = t * t;
        if outer { t_two_sided_p(t, df) } else { beta_reg(0.5, 0.5 * df, square / (df + square)) }
    };
    let ln_scale = std::f64::consts::LN_2 - ln_beta(0.5 * df, 0.5) - 0.5 * df.ln();
    let ln_density = |t: f64| ln_scale - 0.5 * (df + 1.0) * (t * t / df).ln_1p();

    // The normal quantile is below and, unless there are few degrees of freedom, near.
    let mut x = (-normal_quantile(tail)).max(f64::MIN_POSITIVE).ln();
    let mut p = probability(x.exp());
    for _ in 0..MOST_STEPS {
        // d ln p/dx = ±t·density/p, where density and p alone may be too small to be represented.
        let slope = (x + ln_density(x.exp()) - p.ln()).exp();
        let step = (target / p).ln() / slope;
        let mut next = if outer { x - step } else { x + step };
        if next > POWER_LAW {
            return next.exp();
        }
        p = probability(next.exp());
        while p < f64::MIN_POSITIVE {
            next = x.midpoint(next);
            p = probability(next.exp());
        }
        if (next - x).abs() <= 1e-15 * x.abs().max(1.0) {
            return next.exp();
        }
        x = next;
    }
    x.exp()
}

/// Newton's method needs ten steps or so; a few digits before the last place it may swing between neighbours.
const MOST_STEPS: u32 = 60;

/// ln t beyond which t² would overflow. The tail is a power law there, which one Newton step solves.
const POWER_LAW: f64 = 350.0;

/// The normal deviate with the same tail as `t` (Hill 1970, algorithm 395).
fn normal_equivalent(t: f64, df: f64) -> f64 {
    if df.is_infinite() {
        return t;
    }
    let a = df - 0.5;
    let b = 48.0 * a * a;
    let s = a * (t * t / df).ln_1p();
    let correction = (((-0.4 * s - 3.3) * s - 24.0) * s - 85.5) / (0.8 * s * s + 100.0 + b) + s + 3.0;
    (correction / b + 1.0) * s.sqrt()
}

/// Cornish-Fisher expansion of the t quantile around the normal quantile `x` (Abramowitz & Stegun 26.7.5).
fn expanded(x: f64, df: f64) -> f64 {
    let s = x * x;
    let terms = [
        (s + 1.0) / 4.0,
        ((5.0 * s + 16.0) * s + 3.0) / 96.0,
        (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
        ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92_160.0,
    ];
    x * (1.0 + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / df))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{found} is not {expected}");
    }

    #[test]
    fn known_normal_quantiles() {
        assert_close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-13);
        assert_close(normal_quantile(0.95), 1.644_853_626_951_472_7, 1e-13);
        assert_close(normal_quantile(1e-9), -5.997_807_015_007_687, 1e-12);
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert!(normal_quantile(1.1).is_nan());
    }

    #[test]
    fn known_t_quantiles() {
        // Closed forms: df = 1 is tan(π(p − ½)), df = 2 is (2p − 1)·sqrt(2/(4p(1 − p))).
        for p in [1e-6f64, 0.01, 0.2, 0.3, 0.5001, 0.6, 0.9, 0.975, 0.9995] {
            let cauchy = -1.0 / (std::f64::consts::PI * p).tan();
            assert_close(t_quantile(p, 1.0), cauchy, 1e-12);
            assert_close(t_quantile(p, 2.0), (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt(), 1e-12);
        }
        assert_eq!(t_quantile(0.5, 3.0), 0.0);
        assert_eq!(t_quantile(1.0, 3.0), f64::INFINITY);
        assert_eq!(t_quantile(0.975, f64::INFINITY), normal_quantile(0.975));
        assert!(t_quantile(0.975, 0.0).is_nan());
        assert!(t_quantile(f64::NAN, 3.0).is_nan());
    }

    #[test]
    fn the_two_methods_agree_where_both_hold() {
        for df in [1_000.0, 2_247.2, 5_000.0, EXPANSION_DF] {
            for tail in [0.4, 0.3, 0.1, 0.025, 1e-4] {
                assert_close(expanded(-normal_quantile(tail), df), solved(tail, df), 2e-11);
            }
        }
        for t in [0.1, 1.0, 3.0, 6.0] {
            let (below, above) = (t_two_sided_p(t, EXPANSION_DF), t_two_sided_p(t, EXPANSION_DF + 1e-6));
            assert!((above / below - 1.0).abs() < 1e-9, "{t}: {below} {above}");
        }
    }

    #[test]
    fn extreme_arguments_give_an_answer() {
        for df in [0.1, 0.5, 1.0, 30.0, 1e4, 1e5, 1e300] {
            for tail in [1e-300, 1e-12, 0.1, 0.249_999, 0.25, 0.499_999_999, 0.5f64.next_down()] {
                let quantile = t_quantile(tail, df);
                assert!(quantile < 0.0 && !quantile.is_nan(), "t({tail}, {df}) = {quantile}");
            }
        }
        assert_eq!(t_two_sided_p(1e6, 1e6), 0.0);
        assert_eq!(t_two_sided_p(0.0, 1e6), 1.0);
    }

    proptest! {
        #[test]
        fn the_quantile_inverts_the_distribution(exponent in -250.0..-0.31f64, df in 0.5..1e4f64) {
            let tail = 10f64.powf(exponent);
            prop_assume!(exponent / df > -150.0);
            let p = t_two_sided_p(t_quantile(tail, df), df) / 2.0;
            prop_assert!((p / tail - 1.0).abs() < 1e-9, "{p} is not {tail}");
        }

        #[test]
        fn quantiles_are_symmetric(tail in 1e-6..0.5f64, df in 1.0..1e6f64) {
            let (lower, upper) = (t_quantile(tail, df), t_quantile(1.0 - tail, df));
            prop_assert!((lower + upper).abs() < 1e-8 * upper.max(1.0), "{lower} {upper}");
        }
    }
}
