//! Checks of the residuals of a model: whether they are normal, spread evenly, and free of drift.
//!
//! Each check gives a p value: small when residuals like these would be rare if the model were right. It is a question
//! put to the data, not a proof; with many runs small departures that do no harm are found as well.

use std::fmt;

use crate::association::{correlation, ranks};
use crate::descriptive::sorted;
use crate::error::{StatsError, check_values};
use crate::model::{Data, Fit, Source, SumOfSquares, all_terms, fit};
use crate::multiple::holm;
use crate::quantile::{normal_quantile, normal_upper_p, t_two_sided_p};
use crate::random::Generator;

/// Below this p value a check is suspicious.
pub const SUSPICIOUS_P: f64 = 0.05;

/// Which assumption is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The residuals come from a normal distribution.
    Normality,
    /// Their spread does not depend on the fitted value.
    Spread,
    /// They do not move with the order of the runs.
    Drift,
}

/// The test behind a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Test {
    /// Shapiro and Wilk's W, with Royston's p value (1995).
    ShapiroWilk,
    /// Anderson and Darling's A² for unknown mean and variance, with D'Agostino and Stephens' p value (1986): beyond
    /// the sizes that W was made for.
    AndersonDarling,
    /// Rank correlation of the residuals' size with the fitted values.
    Spearman,
    /// t of the run order as one more column of the model.
    RunOrder,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ShapiroWilk => "Shapiro-Wilk W",
            Self::AndersonDarling => "Anderson-Darling A²",
            Self::Spearman => "Spearman's rank correlation",
            Self::RunOrder => "t of the run order",
        })
    }
}

/// The answer of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Nothing contradicts the model.
    Unremarkable,
    /// Residuals like these would be rare if the model were right.
    Suspicious,
}

/// One check of the residuals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Check {
    /// What is checked.
    pub subject: Subject,
    /// How.
    pub test: Test,
    /// Value of the test's statistic. For [`Subject::Spread`] positive means that the spread grows with the fitted
    /// value, for [`Subject::Drift`] that the response rises in the course of the experiment.
    pub statistic: f64,
    /// Probability of a statistic as extreme as this when the model is right.
    pub p: f64,
    /// The answer at [`SUSPICIOUS_P`].
    pub verdict: Verdict,
    /// How far the response moved from the first run to the last, in its own unit; only for [`Subject::Drift`].
    pub drift: Option<f64>,
}

impl Check {
    fn new(subject: Subject, test: Test, statistic: f64, p: f64, drift: Option<f64>) -> Self {
        let verdict = if p < SUSPICIOUS_P { Verdict::Suspicious } else { Verdict::Unremarkable };
        Self { subject, test, statistic, p, verdict, drift }
    }
}

/// What the check found, and what follows from it, in one sentence.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suspicious = self.verdict == Verdict::Suspicious;
        let (finding, advice) = match self.subject {
            Subject::Normality if suspicious => (
                "The residuals are not normal",
                "; intervals and p values are approximate: look for outliers, or analyse it on another scale",
            ),
            Subject::Normality => ("The residuals look normal", ""),
            Subject::Spread if suspicious && self.statistic > 0.0 => (
                "The spread of the residuals grows with the fitted value",
                ": analyse the logarithm of the response",
            ),
            Subject::Spread if suspicious => (
                "The spread of the residuals falls as the fitted value grows",
                ": one error for all treatments is doubtful",
            ),
            Subject::Spread => {
                ("The spread of the residuals does not visibly depend on the fitted value", "")
            }
            Subject::Drift if suspicious && self.statistic > 0.0 => (
                "The response rose in the course of the experiment",
                ": find out what changed, and use replicates as blocks",
            ),
            Subject::Drift if suspicious => (
                "The response fell in the course of the experiment",
                ": find out what changed, and use replicates as blocks",
            ),
            Subject::Drift => ("The response shows no drift in the order of the runs", ""),
        };
        write!(f, "{finding} ({} = {:.3}, {}){advice}.", self.test, self.statistic, shown_p(self.p))
    }
}

/// `p = 0.012`, or that it is smaller than can be shown.
pub(crate) fn shown_p(p: f64) -> String {
    if p < 0.0005 { "p < 0.0005".into() } else { format!("p = {p:.3}") }
}

/// Whether the residuals of a model look normal, each divided by sqrt(1 − leverage), so that they vary alike. Runs that the model fits whatever they are, such as the only run of a
/// treatment in a model of all treatments, have none.
///
/// Residuals are dependent, as many as there are runs with the freedom of the error alone. Where the leverages are equal that
/// hardly matters; where they are not, the p value is the share of normal errors whose residuals by the same model have
/// as small a W.
pub fn normality(fit: &Fit) -> Result<Check, StatsError> {
    enough(fit)?;
    let of = |residuals: &[f64]| -> Vec<f64> {
        free(fit).map(|i| residuals[i] / (1.0 - fit.leverage[i]).sqrt()).collect()
    };
    let residuals = of(&fit.residuals);
    if residuals.len() <= MOST_FOR_W {
        let (w, p) = shapiro_wilk(&residuals)?;
        let p = match simulated_p(fit, w, of) {
            Some(simulated) => simulated?,
            None => p,
        };
        return Ok(Check::new(Subject::Normality, Test::ShapiroWilk, w, p, None));
    }
    let (a, p) = anderson_darling(&residuals)?;
    Ok(Check::new(Subject::Normality, Test::AndersonDarling, a, p, None))
}

/// The simulated p value of W; `None` where the leverages are equal, or the model is too large to be fitted so often.
fn simulated_p(fit: &Fit, w: f64, of: impl Fn(&[f64]) -> Vec<f64>) -> Option<Result<f64, StatsError>> {
    let leverages = || free(fit).map(|i| fit.leverage[i]);
    let (low, high) = leverages().fold((1.0f64, 0.0f64), |(low, high), h| (low.min(h), high.max(h)));
    let columns = fit.n - fit.df_error;
    if high - low < 1e-9 || fit.n * columns * SIMULATED > MOST_WORK {
        return None;
    }
    // Errors are dealt in the order of the responses, so that the order of the rows plays no part.
    let size =
        (0..fit.n).fold(f64::MIN_POSITIVE, |a: f64, i| a.max((fit.fitted[i] + fit.residuals[i]).abs()));
    let whole = |value: f64| (value * 1e10).round() as i64;
    let mut places: Vec<usize> = (0..fit.n).collect();
    places.sort_by_key(|&i| (whole((fit.fitted[i] + fit.residuals[i]) / size), whole(fit.leverage[i])));
    let mut generator = Generator::new(fit.n as u64, "normality of residuals");
    let mut errors = vec![0.0; fit.n];
    let mut one = || -> Result<bool, StatsError> {
        places.iter().for_each(|&i| errors[i] = generator.normal());
        Ok(shapiro_wilk(&of(&fit.residualise(&errors)?))?.0 <= w)
    };
    let smaller = (0..SIMULATED).try_fold(0, |sum, _| Ok(sum + usize::from(one()?)));
    Some(smaller.map(|smaller| (smaller + 1) as f64 / (SIMULATED + 1) as f64))
}

/// Simulated samples of normal errors.
const SIMULATED: usize = 1_999;
/// Products (runs × columns × samples) beyond which nothing is simulated.
const MOST_WORK: usize = 500_000_000;

/// Whether the residuals spread more, or less, where the fitted value is large.
///
/// Each residual is divided by sqrt(1 − leverage), as a run that determines its own fitted value leaves little. The
/// p value counts degrees of freedom of the error, not residuals: the two residuals of a treatment with two runs are
/// of equal size whatever happened.
pub fn spread(fit: &Fit) -> Result<Check, StatsError> {
    enough(fit)?;
    let sizes: Vec<_> = free(fit).map(|i| fit.residuals[i].abs() / (1.0 - fit.leverage[i]).sqrt()).collect();
    let fitted: Vec<_> = free(fit).map(|i| fit.fitted[i]).collect();
    let rho = correlation(&ranks(&sizes), &ranks(&fitted)).ok_or(StatsError::NothingToCheck)?;
    let df = fit.df_error as f64 - 2.0;
    let p = t_two_sided_p(rho * (df / (1.0 - rho * rho).max(f64::MIN_POSITIVE)).sqrt(), df);
    Ok(Check::new(Subject::Spread, Test::Spearman, rho, p, None))
}

/// Whether the response moved in the order of the runs, beyond what the model explains: the order of each run (in any
/// unit of time) becomes one more column of the model.
pub fn drift(fit: &Fit, order: &[f64]) -> Result<Check, StatsError> {
    check_values("a check for drift", order, fit.n)?;
    enough(fit)?;
    let slope = fit.added(order)?.ok_or(StatsError::NothingToCheck)?;
    let (Some(error), Some(df)) = (slope.standard_error.filter(|&s| s > 0.0), slope.df) else {
        return Err(StatsError::NothingToCheck);
    };
    let (first, last) =
        order.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &o| (a.min(o), b.max(o)));
    let (t, moved) = (slope.value / error, slope.value * (last - first));
    Ok(Check::new(Subject::Drift, Test::RunOrder, t, t_two_sided_p(t, df), Some(moved)))
}

/// A factor that was changed in the order of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confounded {
    /// Its number.
    pub factor: usize,
    /// Share of the variation of the order (within blocks) that it explains.
    pub share: f64,
    /// p value of this under random order, with Holm's correction over the factors.
    pub p: f64,
}

/// Below this p value the order of the runs was not random. It is asked of every experiment, so it is a rare accident.
const NOT_RANDOM_P: f64 = 0.01;
/// Share of the variation of the order below which a factor is not confounded with it in any way that matters.
const LEAST_SHARE: f64 = 0.1;

/// The factors that go with the order of the runs. A drift in the course of the experiment would be taken for an effect of
/// these, and the residuals know nothing of it.
///
/// The order is analysed like a response, with the blocks and whole plots of the design: under random order, F tests hold.
pub fn confounded_with_order(
    data: &Data,
    order: &[f64],
    confidence: f64,
) -> Result<Vec<Confounded>, StatsError> {
    check_values("a check of the run order", order, data.y.len())?;
    let ordered = Data { y: order.to_vec(), ..data.clone() };
    let fitted = fit(&ordered, &all_terms(data.factors.len(), 1), confidence)?;
    let table = fitted.anova(SumOfSquares::III);
    let blocks = table.rows.iter().filter(|row| row.source == Source::Blocks).map(|row| row.sum_of_squares);
    let variation = table.sst - blocks.sum::<f64>();
    let rows: Vec<_> = table
        .rows
        .iter()
        .filter_map(|row| {
            let Source::Term(term) = row.source else { return None };
            let df = fitted.errors.iter().find(|e| e.stratum == row.stratum).map_or(0, |e| e.df);
            // An order that the factors explain completely leaves no error.
            let exact = (df > 0 && row.df > 0).then_some(if row.sum_of_squares > 0.0 { 0.0 } else { 1.0 });
            let p = row.p.or(exact)?;
            Some((*fitted.terms[term].first()?, row.sum_of_squares / variation, p))
        })
        .collect();
    let adjusted = holm(&rows.iter().map(|(.., p)| *p).collect::<Vec<_>>());
    let found = rows.into_iter().zip(adjusted).map(|((factor, share, _), p)| Confounded { factor, share, p });
    Ok(found.filter(|c| c.p < NOT_RANDOM_P && c.share >= LEAST_SHARE).collect())
}

/// Too few degrees of freedom say nothing about a distribution.
const LEAST_DF: usize = 3;

/// The largest sample that the p value of W was fitted for.
const MOST_FOR_W: usize = 5_000;

/// The runs that do not determine their own fitted values.
fn free(fit: &Fit) -> impl Iterator<Item = usize> {
    (0..fit.n).filter(|&i| 1.0 - fit.leverage[i] > 1e-9)
}

fn enough(fit: &Fit) -> Result<(), StatsError> {
    if fit.df_error < LEAST_DF || fit.sse <= 0.0 { Err(StatsError::NothingToCheck) } else { Ok(()) }
}

/// Shapiro and Wilk's W for 3 to 5,000 values, and its p value (Royston 1995, algorithm AS R94).
pub fn shapiro_wilk(values: &[f64]) -> Result<(f64, f64), StatsError> {
    check_values("a test of normality", values, 3)?;
    let x = sorted(values);
    let n = x.len();
    let (mean, range) = (x.iter().sum::<f64>() / n as f64, x[n - 1] - x[0]);
    if range <= 0.0 {
        return Err(StatsError::NothingToCheck);
    }
    // Scaled by the range, squares neither vanish nor overflow.
    let weights = royston_weights(n);
    let product: f64 = weights.iter().zip(&x).map(|(a, x)| a * (x - mean) / range).sum();
    let squares: f64 = x.iter().map(|x| ((x - mean) / range).powi(2)).sum();
    let w = (product * product / squares).min(1.0);
    Ok((w, royston_p(w, n)))
}

/// Approximately the normalised best linear weights of the ordered values, from the ends inwards by polynomials.
fn royston_weights(n: usize) -> Vec<f64> {
    if n == 3 {
        return vec![-std::f64::consts::FRAC_1_SQRT_2, 0.0, std::f64::consts::FRAC_1_SQRT_2];
    }
    let m: Vec<_> = (1..=n).map(|i| normal_quantile((i as f64 - 0.375) / (n as f64 + 0.25))).collect();
    let squares: f64 = m.iter().map(|m| m * m).sum();
    let (u, length) = (1.0 / (n as f64).sqrt(), squares.sqrt());
    let last =
        polynomial(&[0.0, 0.221_157, -0.147_981, -2.071_190, 4.434_685, -2.706_056], u) + m[n - 1] / length;
    let mut weights = vec![0.0; n];
    let (ends, rest) = if n > 5 {
        let second = polynomial(&[0.0, 0.042_981, -0.293_762, -1.752_461, 5.682_633, -3.582_633], u)
            + m[n - 2] / length;
        (weights[n - 2], weights[1]) = (second, -second);
        let without = squares - 2.0 * (m[n - 1].powi(2) + m[n - 2].powi(2));
        (2, without / (1.0 - 2.0 * (last * last + second * second)))
    } else {
        (1, (squares - 2.0 * m[n - 1].powi(2)) / (1.0 - 2.0 * last * last))
    };
    (weights[n - 1], weights[0]) = (last, -last);
    for i in ends..n - ends {
        weights[i] = m[i] / rest.sqrt();
    }
    weights
}

fn royston_p(w: f64, n: usize) -> f64 {
    let size = n as f64;
    if n == 3 {
        let p = 6.0 / std::f64::consts::PI * (w.sqrt().asin() - 0.75f64.sqrt().asin());
        return p.clamp(0.0, 1.0);
    }
    if w >= 1.0 {
        return 1.0;
    }
    let y = (1.0 - w).ln();
    let (y, mean, deviation) = if n <= 11 {
        let gamma = 0.459 * size - 2.273;
        if y >= gamma {
            return 0.0;
        }
        let mean = polynomial(&[0.544, -0.399_78, 0.025_054, -6.714e-4], size);
        (-(gamma - y).ln(), mean, polynomial(&[1.3822, -0.778_57, 0.062_767, -0.002_032_2], size).exp())
    } else {
        let x = size.ln();
        let mean = polynomial(&[-1.5861, -0.310_82, -0.083_751, 0.003_891_5], x);
        (y, mean, polynomial(&[-0.4803, -0.082_676, 0.003_030_2], x).exp())
    };
    normal_upper_p((y - mean) / deviation)
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// Anderson and Darling's A² against a normal distribution of unknown mean and variance, corrected for the sample's
/// size, and its p value.
fn anderson_darling(values: &[f64]) -> Result<(f64, f64), StatsError> {
    let x = sorted(values);
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let deviation = (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    if deviation <= 0.0 {
        return Err(StatsError::NothingToCheck);
    }
    let z: Vec<_> = x.iter().map(|x| (x - mean) / deviation).collect();
    let term = |i: usize| {
        let (below, above) = (normal_upper_p(-z[i]), normal_upper_p(z[z.len() - 1 - i]));
        (2 * i + 1) as f64 * (below.max(f64::MIN_POSITIVE).ln() + above.max(f64::MIN_POSITIVE).ln())
    };
    let a = -n - (0..z.len()).map(term).sum::<f64>() / n;
    let a = a * (1.0 + 0.75 / n + 2.25 / (n * n));
    let p = match a {
        _ if a >= 13.0 => 0.0,
        _ if a >= 0.6 => polynomial(&[1.2937, -5.709, 0.0186], a).exp(),
        _ if a >= 0.34 => polynomial(&[0.9177, -4.279, -1.38], a).exp(),
        _ if a >= 0.2 => 1.0 - polynomial(&[-8.318, 42.796, -59.938], a).exp(),
        _ => 1.0 - polynomial(&[-13.436, 101.14, -223.73], a).exp(),
    };
    Ok((a, p.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Factor;

    /// Evenly mixed numbers between 0 and 1.
    fn mixed(n: usize, modulus: usize) -> Vec<f64> {
        (1..=n).map(|i| (i * 7919 % modulus) as f64 / modulus as f64).collect()
    }

    #[test]
    fn shapiro_and_wilk_as_in_r_and_scipy() {
        let cases: [(&[f64], f64, f64); 4] = [
            (&[2.1, 3.3, 2.9], 0.964_285_714_285_714_2, 0.636_886_845_028_948_9),
            (
                &[148.0, 154.0, 158.0, 160.0, 161.0, 162.0, 166.0, 170.0, 182.0, 195.0, 236.0],
                0.788_814_694_863_171_6,
                0.006_703_814_061_898_823,
            ),
            (&[0.1, 0.9, 1.3, 1.7, 2.2], 0.989_177_981_757_647, 0.976_735_599_191_463),
            (
                &[12.1, 9.7, 10.3, 11.2, 30.5, 10.9, 11.8, 10.1, 9.4, 10.0, 12.7, 11.1, 10.6, 10.2],
                0.459_427_695_822_89,
                2.894_081_786_175_625_2e-6,
            ),
        ];
        for (values, w, p) in cases {
            let found = shapiro_wilk(values).unwrap();
            assert!(
                (found.0 - w).abs() < 1e-6 && (found.1 / p - 1.0).abs() < 1e-4,
                "{found:?} is not ({w}, {p})"
            );
        }
        let (w, p) = shapiro_wilk(&mixed(200, 1009)).unwrap();
        assert!((w - 0.953_803_860_882_596).abs() < 1e-6 && (p / 4.468_573e-6 - 1.0).abs() < 1e-3, "{w} {p}");
        assert_eq!(shapiro_wilk(&[2.0; 5]), Err(StatsError::NothingToCheck));
        assert!(shapiro_wilk(&[1.0, 2.0]).is_err());
        // Only the shape counts, however large or small the values.
        let tiny: Vec<_> = cases[1].0.iter().map(|x| x * 1e-200).collect();
        assert!((shapiro_wilk(&tiny).unwrap().0 - cases[1].1).abs() < 1e-6);
    }

    #[test]
    fn large_samples_are_tested_by_anderson_and_darling() {
        let uniform = mixed(6_000, 10_007);
        let (a, p) = anderson_darling(&uniform).unwrap();
        assert!(
            (a / (1.0 + 0.75 / 6e3 + 2.25 / 36e6) - 66.690_532_942_6).abs() < 1e-6 && p < 1e-10,
            "{a} {p}"
        );
        let normal: Vec<_> =
            uniform.iter().map(|u| normal_quantile((u * 10_007.0 + 0.5) / 10_007.5)).collect();
        let (a, p) = anderson_darling(&normal).unwrap();
        assert!((a - 0.006_251).abs() < 1e-4 && p > 0.99, "{a} {p}");
    }

    /// A 2³ with four runs of each treatment, in random order; `error` is what run number i adds to its fitted value.
    fn experiment(error: impl Fn(usize, f64) -> f64) -> Fit {
        let rows: Vec<Vec<u32>> =
            (0..32u32).map(|i| (0..3).map(|j| ((i * 13 % 32) >> j) & 1).collect()).collect();
        let truth = |row: &[u32]| 10.0 + f64::from(8 * row[0] + 4 * row[1]);
        let y = rows.iter().enumerate().map(|(i, row)| truth(row) + error(i, truth(row))).collect();
        let data = Data { factors: vec![Factor::named(2); 3], rows, y, block: None, whole_plot: None };
        fit(&data, &all_terms(3, 3), 0.95).unwrap()
    }

    fn normal(i: usize) -> f64 {
        normal_quantile((mixed(i + 1, 101)[i] * 101.0 + 0.5) / 101.5)
    }

    const ORDER: [f64; 32] = {
        let mut order = [0.0; 32];
        let mut i = 0;
        while i < 32 {
            order[i] = i as f64;
            i += 1;
        }
        order
    };

    #[test]
    fn a_good_experiment_is_unremarkable() {
        let fit = experiment(|i, _| normal(i));
        for check in [normality(&fit), spread(&fit), drift(&fit, &ORDER)] {
            let check = check.unwrap();
            assert_eq!(check.verdict, Verdict::Unremarkable, "{check:?}");
            assert!(check.to_string().contains("p = 0."), "{check}");
        }
    }

    #[test]
    fn spread_that_grows_is_found() {
        let check = spread(&experiment(|i, truth| normal(i) * (truth / 10.0).powi(4))).unwrap();
        assert_eq!((check.subject, check.verdict), (Subject::Spread, Verdict::Suspicious));
        assert!(check.statistic > 0.5 && check.to_string().contains("analyse the logarithm"), "{check}");
        let falls = spread(&experiment(|i, truth| normal(i) * (10.0 / truth).powi(4))).unwrap();
        assert!(falls.statistic < -0.5 && falls.to_string().contains("falls"), "{falls}");
    }

    #[test]
    fn drift_is_found_with_its_size() {
        let check = drift(&experiment(|i, _| normal(i) + 0.2 * i as f64), &ORDER).unwrap();
        assert_eq!(check.verdict, Verdict::Suspicious);
        assert!((check.drift.unwrap() - 6.2).abs() < 1.5 && check.to_string().contains("rose"), "{check}");
    }

    #[test]
    fn an_outlier_is_not_normal() {
        let check = normality(&experiment(|i, _| if i == 7 { 12.0 } else { normal(i) })).unwrap();
        assert_eq!(check.verdict, Verdict::Suspicious);
        assert!(check.to_string().starts_with("The residuals are not normal (Shapiro-Wilk W = "), "{check}");
    }

    #[test]
    fn the_two_runs_of_a_treatment_count_once() {
        // Residuals come in pairs of equal size, so 4 treatments × 2 runs have 4 sizes, and say little.
        let rows: Vec<Vec<u32>> = (0..8u32).map(|i| vec![(i / 2) & 1, i / 4]).collect();
        let y = vec![1.0, 1.1, 2.0, 2.2, 3.0, 3.3, 4.0, 4.4];
        let data = Data { factors: vec![Factor::named(2); 2], rows, y, block: None, whole_plot: None };
        let check = spread(&fit(&data, &all_terms(2, 2), 0.95).unwrap()).unwrap();
        assert!((check.statistic - 1.0).abs() < 1e-12 && check.p < 1e-6);
        let other = Data { y: vec![1.0, 1.1, 2.0, 2.2, 3.0, 3.4, 4.0, 4.3], ..data };
        let check = spread(&fit(&other, &all_terms(2, 2), 0.95).unwrap()).unwrap();
        assert!((check.statistic - 0.8).abs() < 1e-12 && (check.p - 0.2).abs() < 1e-9, "{check:?}");
    }

    #[test]
    fn runs_that_the_model_fits_whatever_they_are_do_not_count() {
        // One treatment with six runs and three with one: the residuals of those are 0 by arithmetic.
        let six = [9.1, 10.4, 9.8, 10.9, 10.1, 9.6];
        let mut rows = vec![vec![0, 0]; 6];
        rows.extend([vec![1, 0], vec![0, 1], vec![1, 1]]);
        let y = [&six[..], &[20.0, 30.0, 47.0]].concat();
        let data = Data { factors: vec![Factor::named(2); 2], rows, y, block: None, whole_plot: None };
        let check = normality(&fit(&data, &all_terms(2, 2), 0.95).unwrap()).unwrap();
        let (w, p) = shapiro_wilk(&six).unwrap();
        assert!((check.statistic - w).abs() < 1e-9 && (check.p - p).abs() < 1e-9, "{check:?}");
        assert_eq!(check.verdict, Verdict::Unremarkable);
    }

    #[test]
    fn without_error_nothing_is_checked() {
        let fit = experiment(|_, _| 0.0);
        assert_eq!(normality(&fit), Err(StatsError::NothingToCheck));
        assert_eq!(spread(&fit), Err(StatsError::NothingToCheck));
        assert_eq!(drift(&fit, &ORDER), Err(StatsError::NothingToCheck));
        let fit = experiment(|i, _| normal(i));
        assert_eq!(drift(&fit, &[1.0; 32]), Err(StatsError::NothingToCheck));
        assert!(drift(&fit, &[1.0; 3]).is_err());
    }
}
