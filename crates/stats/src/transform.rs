//! On which scale to analyse a response: as it is, or its logarithm.
//!
//! Effects of rates and times multiply (Jain 1991, 18.8): on the logarithm they add, and an effect becomes a ratio.

use std::fmt;

use crate::error::{StatsError, check_confidence};
use crate::model::{Data, Fit, SumOfSquares, Term, fit, judge};
use crate::quantile::normal_quantile;
use crate::residual::{Verdict, shown_p, spread};

/// The exponents that are compared.
pub const LAMBDAS: [f64; 5] = [-1.0, -0.5, 0.0, 0.5, 1.0];

/// Largest response over smallest, beyond which effects are taken to multiply (Jain's rule of thumb).
pub const WIDE_SPREAD: f64 = 10.0;

/// How well the model fits powers of the response (Box and Cox 1964); exponent 0 is the logarithm.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxCox {
    /// Exponent and log-likelihood, up to a constant: −n/2·ln(SSE of the scaled power).
    pub profile: Vec<(f64, f64)>,
    /// The exponent with the largest.
    pub best: f64,
    /// The exponents that the data do not exclude at the confidence level (likelihood ratio, χ² with one degree of
    /// freedom).
    pub plausible: Vec<f64>,
}

/// The profile of a positive response. The fit has to be of the same runs; its own response does not matter.
pub fn box_cox(fit: &Fit, y: &[f64], confidence: f64) -> Result<BoxCox, StatsError> {
    check_confidence(confidence)?;
    if let Some(index) = y.iter().position(|y| y.is_nan() || *y <= 0.0 || y.is_infinite()) {
        return Err(StatsError::NotPositive { what: "a Box-Cox profile", index, value: y[index] });
    }
    if fit.df_error == 0 {
        return Err(StatsError::NothingToCheck);
    }
    let mean_log = y.iter().map(|y| y.ln()).sum::<f64>() / y.len() as f64;
    let mut profile = Vec::new();
    for lambda in LAMBDAS {
        // With the geometric mean as unit the Jacobian is 1.
        let scaled = y.iter().map(|y| y.ln() - mean_log);
        let power: Vec<_> = match lambda {
            0.0 => scaled.collect(),
            _ => scaled.map(|log| (lambda * log).exp_m1() / lambda).collect(),
        };
        let sse: f64 = fit.residualise(&power)?.iter().map(|e| e * e).sum();
        if sse <= 1e-28 * power.iter().map(|y| y * y).sum::<f64>() {
            return Err(StatsError::NothingToCheck);
        }
        profile.push((lambda, -0.5 * y.len() as f64 * sse.ln()));
    }
    let (best, highest) =
        profile.iter().fold((1.0, f64::NEG_INFINITY), |a, &b| if b.1 > a.1 { b } else { a });
    let allowed = 0.5 * normal_quantile(0.5 + confidence / 2.0).powi(2);
    let plausible =
        profile.iter().filter(|(_, l)| highest - l <= allowed).map(|(lambda, _)| *lambda).collect();
    Ok(BoxCox { profile, best, plausible })
}

/// A finding for or against the logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// A response of 0 or less has no logarithm.
    NotPositive {
        /// The smallest response.
        value: f64,
    },
    /// Responses span more than [`WIDE_SPREAD`].
    WideSpread {
        /// Largest over smallest.
        ratio: f64,
    },
    /// The spread of the residuals grows with the fitted value, and no longer does on the logarithm.
    SpreadGrows {
        /// p value of the response as it is.
        p: f64,
        /// p value of its logarithm.
        p_log: f64,
    },
    /// Box and Cox's likelihood prefers the logarithm and excludes the response as it is.
    BoxCox {
        /// The best exponent.
        best: f64,
    },
    /// Interactions that matter on the response as it is vanish on the logarithm: effects multiply.
    InteractionsVanish {
        /// How many matter on the response as it is.
        plain: usize,
    },
    /// None of these: the response is analysed as it is.
    NoneFound,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPositive { value } => {
                write!(f, "the smallest response is {value}, which has no logarithm")
            }
            Self::WideSpread { ratio } => write!(
                f,
                "the largest response is {ratio:.1} times the smallest (more than {WIDE_SPREAD}), so effects are taken \
                 to multiply"
            ),
            Self::SpreadGrows { p, p_log } => write!(
                f,
                "the spread of the residuals grows with the fitted value ({}), and no longer does on the logarithm ({})",
                shown_p(*p),
                shown_p(*p_log)
            ),
            Self::BoxCox { best } => write!(
                f,
                "Box and Cox's likelihood is largest at the exponent {best}, the logarithm (0) fits better than the \
                 response as it is (1), and 1 is excluded"
            ),
            Self::InteractionsVanish { plain } => {
                write!(f, "{plain} interactions matter on the response as it is, and none on its logarithm")
            }
            Self::NoneFound => f.write_str(
                "no wide span, no growing spread, and no better fit speaks for the logarithm, so the response is \
                 analysed as it is",
            ),
        }
    }
}

/// Whether to analyse the logarithm, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleChoice {
    /// Whether the logarithm is the better scale.
    pub log: bool,
    /// Evidence for it; or why it cannot be, or need not be.
    pub reasons: Vec<Reason>,
    /// Largest response over smallest; `None` unless all are positive.
    pub spread: Option<f64>,
    /// The likelihood of powers; `None` when the model leaves no error, or when a response is not positive.
    pub box_cox: Option<BoxCox>,
}

/// Decides by rule whether the response of `data` (as measured) should be analysed as its logarithm.
///
/// It should when all responses are positive and any of these holds: the largest is more than [`WIDE_SPREAD`] times the
/// smallest; the residuals' spread grows with the fitted value, but not on the logarithm; Box and Cox's likelihood
/// prefers 0 to 1 and excludes 1; interactions vanish on the logarithm, which fits no worse.
pub fn choose_scale(data: &Data, terms: &[Term], confidence: f64) -> Result<ScaleChoice, StatsError> {
    let plain = fit(data, terms, confidence)?;
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = data.y.iter().fold(ends, |(low, high): (f64, f64), &y| (low.min(y), high.max(y)));
    if low <= 0.0 {
        let reasons = vec![Reason::NotPositive { value: low }];
        return Ok(ScaleChoice { log: false, reasons, spread: None, box_cox: None });
    }
    let ratio = high / low;
    let logarithm = Data { y: data.y.iter().map(|y| y.ln()).collect(), ..data.clone() };
    let log = fit(&logarithm, terms, confidence)?;

    let mut reasons = Vec::new();
    if ratio > WIDE_SPREAD {
        reasons.push(Reason::WideSpread { ratio });
    }
    // Without error there is nothing to check, and then nothing suggests the logarithm.
    if let (Ok(plain), Ok(log)) = (spread(&plain), spread(&log)) {
        let grows = plain.verdict == Verdict::Suspicious && plain.statistic > 0.0;
        if grows && log.verdict == Verdict::Unremarkable {
            reasons.push(Reason::SpreadGrows { p: plain.p, p_log: log.p });
        }
    }
    let box_cox = box_cox(&plain, &data.y, confidence).ok();
    let likelihood = |lambda: f64| {
        let profile = box_cox.as_ref()?.profile.iter().find(|(l, _)| *l == lambda);
        profile.map(|(_, likelihood)| *likelihood)
    };
    let no_worse = likelihood(0.0) >= likelihood(1.0);
    if let Some(found) = box_cox.as_ref().filter(|found| no_worse && !found.plausible.contains(&1.0)) {
        reasons.push(Reason::BoxCox { best: found.best });
    }
    let interactions = |fit: &Fit| {
        let judgement = judge(fit, SumOfSquares::III);
        let own = fit.terms.iter().enumerate().filter(|(_, term)| term.len() > 1);
        own.filter(|(place, _)| judgement.keeps(*place)).count()
    };
    let (of_plain, of_log) = (interactions(&plain), interactions(&log));
    if of_plain > 0 && of_log == 0 && no_worse {
        reasons.push(Reason::InteractionsVanish { plain: of_plain });
    }
    let choose = !reasons.is_empty();
    if !choose {
        reasons.push(Reason::NoneFound);
    }
    Ok(ScaleChoice { log: choose, reasons, spread: Some(ratio), box_cox })
}

/// The base of the logarithm that was analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogBase {
    /// ln.
    Natural,
    /// log10.
    Ten,
}

impl LogBase {
    /// The number whose logarithm is `x`.
    pub fn raise(self, x: f64) -> f64 {
        match self {
            Self::Natural => x.exp(),
            Self::Ten => 10f64.powf(x),
        }
    }

    /// The logarithm of a positive number.
    pub fn log(self, y: f64) -> f64 {
        match self {
            Self::Natural => y.ln(),
            Self::Ten => y.log10(),
        }
    }
}

/// How many times as large the response is at the high level as at the low one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Estimate.
    pub value: f64,
    /// Its confidence interval; `None` without an estimate of the error.
    pub interval: Option<(f64, f64)>,
}

/// The ratio that a half effect q of a logarithm stands for, from the low level to the high one: the base to the power
/// 2q.
pub fn ratio(q: f64, half_width: Option<f64>, base: LogBase) -> Ratio {
    let interval = half_width.map(|h| (base.raise(2.0 * (q - h)), base.raise(2.0 * (q + h))));
    Ratio { value: base.raise(2.0 * q), interval }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Factor, all_terms};

    /// A 2² with five runs of each treatment.
    fn experiment(response: impl Fn(&[u32], usize) -> f64) -> Data {
        let rows: Vec<Vec<u32>> = (0..20u32).map(|i| vec![i & 1, i >> 1 & 1]).collect();
        let y = rows.iter().enumerate().map(|(i, row)| response(row, i)).collect();
        Data { factors: vec![Factor::named(2); 2], rows, y, block: None, whole_plot: None }
    }

    fn error(i: usize) -> f64 {
        normal_quantile(((i * 37 + 11) % 101) as f64 / 101.0)
    }

    fn chosen(data: &Data) -> ScaleChoice {
        choose_scale(data, &all_terms(2, 2), 0.95).unwrap()
    }

    #[test]
    fn effects_that_multiply_are_analysed_as_logarithms() {
        let wide =
            chosen(&experiment(|row, i| 3f64.powf(f64::from(2 * row[0] + row[1])) * (0.1 * error(i)).exp()));
        assert!(wide.log && wide.spread.unwrap() > 10.0);
        let has = |choice: &ScaleChoice, wanted: fn(&Reason) -> bool| choice.reasons.iter().any(wanted);
        assert!(has(&wide, |r| matches!(r, Reason::WideSpread { .. })));
        assert!(has(&wide, |r| matches!(r, Reason::InteractionsVanish { plain: 1 })));
        // A narrow span with an error in proportion: the likelihood and the residuals decide.
        let narrow =
            chosen(&experiment(|row, i| 1.9f64.powf(f64::from(row[0] + row[1])) * (0.2 * error(i)).exp()));
        assert!(narrow.log && narrow.spread.unwrap() < 10.0, "{narrow:?}");
        assert!(has(&narrow, |r| matches!(r, Reason::BoxCox { .. } | Reason::SpreadGrows { .. })));
        let steep =
            chosen(&experiment(|row, i| 2.4f64.powf(f64::from(row[0] + row[1])) * (0.1 * error(i)).exp()));
        assert!(
            steep.spread.unwrap() < 10.0 && has(&steep, |r| matches!(r, Reason::BoxCox { .. })),
            "{steep:?}"
        );
        let plausible = steep.box_cox.unwrap().plausible;
        assert!(plausible.contains(&0.0) && !plausible.contains(&1.0), "{plausible:?}");
    }

    #[test]
    fn effects_that_add_are_left_as_they_are() {
        let found = chosen(&experiment(|row, i| 20.0 + f64::from(8 * row[0] + 4 * row[1]) + error(i)));
        assert_eq!((found.log, found.reasons), (false, vec![Reason::NoneFound]));
        assert!(found.box_cox.unwrap().plausible.contains(&1.0));
        let negative = chosen(&experiment(|row, i| f64::from(row[0]) + error(i)));
        assert!(!negative.log && matches!(negative.reasons[..], [Reason::NotPositive { .. }]));
        let smallest = experiment(|row, i| f64::from(row[0]) + error(i)).y.into_iter().fold(0.0, f64::min);
        let expected = format!("the smallest response is {smallest}, which has no logarithm");
        assert_eq!(negative.reasons[0].to_string(), expected);
    }

    #[test]
    fn the_profile_does_not_depend_on_the_unit() {
        let data = experiment(|row, i| 1.7f64.powf(f64::from(row[0] + row[1])) * (0.2 * error(i)).exp());
        let model = fit(&data, &all_terms(2, 2), 0.95).unwrap();
        let milli: Vec<_> = data.y.iter().map(|y| y * 1e3).collect();
        let (one, other) = (box_cox(&model, &data.y, 0.95).unwrap(), box_cox(&model, &milli, 0.95).unwrap());
        for (a, b) in one.profile.iter().zip(&other.profile) {
            assert!((a.1 - b.1).abs() < 1e-9, "{one:?} {other:?}");
        }
        // At 1 it is the residual sum of squares over the squared geometric mean.
        let log_mean = data.y.iter().map(|y| y.ln()).sum::<f64>() / 20.0;
        let direct = -10.0 * (model.sse.ln() - 2.0 * log_mean);
        assert!((one.profile[4].1 - direct).abs() < 1e-9);
        assert!(matches!(box_cox(&model, &[0.0; 20], 0.95), Err(StatsError::NotPositive { index: 0, .. })));
    }

    #[test]
    fn an_effect_on_a_logarithm_is_a_ratio() {
        let found = ratio(0.150_515, Some(0.05), LogBase::Ten);
        assert!((found.value - 2.0).abs() < 1e-5);
        let (low, high) = found.interval.unwrap();
        assert!((low * high - found.value.powi(2)).abs() < 1e-9 && low < 2.0 && high > 2.0);
        let natural = ratio(0.150_515 * std::f64::consts::LN_10, None, LogBase::Natural);
        assert!((natural.value - found.value).abs() < 1e-12 && natural.interval.is_none());
        assert!((LogBase::Ten.raise(LogBase::Ten.log(7.0)) - 7.0).abs() < 1e-12);
    }
}
