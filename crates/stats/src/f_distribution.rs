//! Tail of Fisher's F distribution.

use statrs::function::beta::beta_reg;
use statrs::function::gamma::{gamma_ur, ln_gamma};

use crate::quantile::t_two_sided_p;

/// The probability that F with `df1` and `df2` degrees of freedom is larger than `f`.
pub(crate) fn f_upper_p(f: f64, df1: usize, df2: usize) -> f64 {
    let (d1, d2) = (df1 as f64, df2 as f64);
    if f <= 0.0 {
        return 1.0;
    }
    match df1 {
        1 => t_two_sided_p(f.sqrt(), d2),
        _ if f == f64::INFINITY => 0.0,
        _ if d2 <= EXPANSION_DF => beta_reg(0.5 * d2, 0.5 * d1, d2 / (d2 + d1 * f)),
        _ => expanded(d1 * f, d1, d2),
    }
}

/// Above this many degrees of freedom of the denominator the tail is expanded around that of χ²: the continued fraction of
/// the beta function converges too slowly there.
const EXPANSION_DF: f64 = 1e4;

/// E[Q(x·W)] for the upper tail Q of χ² with `k` degrees of freedom and W = χ²(d)/d, by the first four moments of W
/// around 1: 2/d, 8/d² and 12/d². The error is below 1e-6 up to 200 degrees of freedom of the numerator.
fn expanded(x: f64, k: f64, d: f64) -> f64 {
    let a = 0.5 * k - 1.0;
    let density = (a * x.ln() - 0.5 * x - 0.5 * k * std::f64::consts::LN_2 - ln_gamma(0.5 * k)).exp();
    // xⁿ times the nth derivative of Q, in terms of u = a − x/2: x·g' = u·g, and so on.
    let u = a - 0.5 * x;
    let second = -density * x * u;
    let third = -density * x * (u * u - a);
    let fourth = -density * x * (u * u * u - 3.0 * a * u + 2.0 * a);
    let sum = gamma_ur(0.5 * k, 0.5 * x)
        + second / d
        + third * 8.0 / (6.0 * d * d)
        + fourth * 12.0 / (24.0 * d * d);
    sum.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tails() {
        // From R's pf(…, lower.tail = FALSE) and closed forms: F(2, d) has the tail (1 + 2f/d)^(−d/2).
        for (f, d) in
            [(0.3, 5usize), (4.1891, 48), (20.0, 1000), (3.0, 9_999), (3.0, 20_000), (1.2, 1_000_000)]
        {
            let exact = (-0.5 * d as f64 * (2.0 * f / d as f64).ln_1p()).exp();
            let found = f_upper_p(f, 2, d);
            assert!((found / exact - 1.0).abs() < 1e-9, "F({f}; 2, {d}) is {found}, not {exact}");
        }
        assert_eq!((f_upper_p(0.0, 3, 4), f_upper_p(f64::INFINITY, 3, 4)), (1.0, 0.0));
        assert!((f_upper_p(4.0, 1, 10) - t_two_sided_p(2.0, 10.0)).abs() < 1e-15);
    }

    #[test]
    fn the_two_methods_agree_where_both_hold() {
        for df1 in [2, 3, 7, 40, 200] {
            for f in [0.5, 0.9, 1.0, 1.3, 2.0] {
                let (d1, d2) = (df1 as f64, EXPANSION_DF);
                let (beta, series) = (f_upper_p(f, df1, EXPANSION_DF as usize), expanded(d1 * f, d1, d2));
                assert!((beta - series).abs() < 1e-6, "F({f}; {df1}): {beta} {series}");
            }
        }
    }
}
