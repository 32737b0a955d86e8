//! One cell of two results: the difference of means and of ranks, the ratio, and what they say.

use benchmaster_record::results::Unit;
use benchmaster_stats::equivalence::{self, inner_confidence, ratio_band};
use benchmaster_stats::ratio::{KnownMean, RatioInterval, fieller, fieller_of_means, fieller_welch, log_t};
use benchmaster_stats::{StatsError, interval, rank};
use benchmaster_units::format::exact_percent;
use serde::Serialize;

use super::common::{Better, Values, better, two_digits};
use crate::runs::Estimate;

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// There is a difference, and it is larger than the band.
    Changed,
    /// A difference, if there is one, is within the band.
    Same,
    /// Neither can be said.
    Undecided,
}

impl Verdict {
    /// Changed if any is, else undecided if any is.
    pub(super) fn worst(all: impl Iterator<Item = Self>) -> Self {
        let rank = |v: &Self| match v {
            Self::Changed => 2,
            Self::Undecided => 1,
            Self::Same => 0,
        };
        all.max_by_key(rank).unwrap_or(Self::Undecided)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Better,
    Worse,
}

/// A response in a cell of both results. Differences are second minus first, ratios second over first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellComparison {
    /// The cell: levels of all factors.
    pub cell: String,
    /// Values of the first, one per run.
    pub a_values: Vec<f64>,
    /// Values of the second.
    pub b_values: Vec<f64>,
    /// Their mean; `None` without runs.
    pub a: Option<Estimate>,
    /// Mean of the second.
    pub b: Option<Estimate>,
    /// Difference of means; `None` with fewer than two runs of either, and when nothing varies.
    pub welch: Option<WelchSummary>,
    /// Difference of ranks; `None` without runs.
    pub ranks: Option<RankSummary>,
    /// Ratio of means; `None` with fewer than two runs, and when the first mean is 0.
    pub ratio: Option<RatioSummary>,
    /// What that says.
    pub verdict: Verdict,
    /// Which way it changed; `None` unless it did and it is known which way is better.
    pub direction: Option<Direction>,
    /// The same in a sentence.
    pub sentence: String,
    /// Why there is no mean of either; fewer values than runs are none, as their mean would depend on which runs have one.
    #[serde(skip)]
    lacking: [Option<String>; 2],
}

/// Welch's test of two means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WelchSummary {
    /// Second mean minus first.
    pub difference: f64,
    pub interval: [f64; 2],
    pub t: f64,
    pub df: f64,
    pub p: f64,
    /// The same, corrected for all tests of the comparison (Holm).
    pub p_holm: f64,
}

/// Mann-Whitney's test with Hodges and Lehmann's shift.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankSummary {
    /// U of the second results: pairs in which their value is the larger one.
    pub u: f64,
    /// `exact` or `normal` (ties, or 50 and more runs).
    pub method: &'static str,
    pub p: f64,
    /// The same, corrected for all tests by rank (Holm).
    pub p_holm: f64,
    /// The smallest two-sided p that this many runs can have.
    pub smallest_p: f64,
    /// Whether the confidence level can be reached with this many runs, and after the correction.
    pub can_reach: bool,
    /// Median of all differences, second minus first.
    pub shift: f64,
    pub interval: [f64; 2],
    /// What that interval really covers: more, or with few runs less, than asked for.
    pub coverage: f64,
    /// Share of pairs in which the second value is larger, minus the share in which it is smaller.
    pub cliffs_delta: f64,
}

/// The ratio of two means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatioSummary {
    /// Second mean over first.
    pub ratio: f64,
    /// Fieller's interval, with Welch and Satterthwaite's degrees of freedom; `None` when the first mean may be 0. This one
    /// is judged.
    pub interval: Option<[f64; 2]>,
    /// The same with the confidence of two one-sided tests (90 % for 95 %): within the band, the ratio is the same.
    pub equivalence_interval: Option<[f64; 2]>,
    /// The same with a t quantile for each mean, as Kalibera and Jones publish it: wider with few runs.
    pub kalibera_jones: Option<[f64; 2]>,
    /// Ratio of geometric means with the t interval of logarithms; `None` for values that are not positive.
    pub log_t: Option<[f64; 3]>,
}

/// The mean over all cells, which count alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverallComparison {
    /// Cells with two or more runs in both.
    pub cells: usize,
    /// Mean of the first's cell means.
    pub a: f64,
    /// Of the second's.
    pub b: f64,
    /// Second minus first.
    pub difference: f64,
    pub interval: [f64; 2],
    /// Degrees of freedom (Satterthwaite).
    pub df: f64,
    pub p: f64,
    /// The same, corrected for all tests of the comparison (Holm).
    pub p_holm: f64,
    /// Second over first.
    pub ratio: f64,
    /// Fieller's interval of it.
    pub ratio_interval: Option<[f64; 2]>,
    /// The same with the confidence of two one-sided tests.
    pub equivalence_interval: Option<[f64; 2]>,
    /// What that says.
    pub verdict: Verdict,
    pub direction: Option<Direction>,
    /// The same in a sentence.
    pub sentence: String,
}

impl CellComparison {
    /// Everything but the verdict, which needs the other cells.
    pub(super) fn of(cell: String, values: [Values; 2], confidence: f64) -> Self {
        let [(a, lacks_a), (b, lacks_b)] = values.map(|values| match values {
            Values::All(values) => (values, None),
            Values::Some { with, runs } => {
                (vec![], Some(format!("only {with} of {runs} runs have it, and not by chance")))
            }
        });
        let estimate = |values: &[f64]| Estimate::of(values, confidence).ok();
        Self {
            cell,
            a: estimate(&a),
            b: estimate(&b),
            welch: welch(&a, &b, confidence).ok(),
            ranks: ranks(&a, &b, confidence).ok(),
            ratio: ratio(&a, &b, confidence).ok(),
            a_values: a,
            b_values: b,
            verdict: Verdict::Undecided,
            direction: None,
            sentence: String::new(),
            lacking: [lacks_a, lacks_b],
        }
    }

    /// Decides, once p values are corrected.
    pub(super) fn judge(&mut self, confidence: f64, band: f64, unit: Unit, family: usize) {
        let (Some(a), Some(b)) = (&self.a, &self.b) else {
            let (whose, lacking) = match &self.lacking {
                [_, lacks_b] if self.a.is_some() => ("second", lacks_b),
                [lacks_a, _] => ("first", lacks_a),
            };
            self.sentence = match lacking {
                Some(lacking) => format!("Undecided: in this cell of the {whose} results {lacking}."),
                None => format!("Undecided: no run of the {whose} results counts in this cell."),
            };
            return;
        };
        if a.n < 2 || b.n < 2 {
            self.sentence =
                "Undecided: one run tells nothing about the spread between runs; measure more.".into();
            return;
        }
        let change = Change {
            difference: b.mean - a.mean,
            ratio: self.ratio.as_ref().map(|r| r.ratio),
            interval: self.ratio.as_ref().and_then(|r| r.interval),
            inner: self.ratio.as_ref().and_then(|r| r.equivalence_interval),
            p_holm: self.welch.as_ref().map(|w| w.p_holm),
            confidence,
            band,
            family,
        };
        (self.verdict, self.direction, self.sentence) = change.judge(unit);
    }

    /// Adds to the sentence that so few runs cannot show a difference by ranks, where that is so.
    pub(super) fn tell_what_ranks_cannot(&mut self) {
        let cannot = self.ranks.as_ref().filter(|r| !r.can_reach && self.verdict != Verdict::Same);
        if let Some(ranks) = cannot {
            self.sentence += &format!(
                " By ranks, {} + {} runs cannot show any difference at this level (p ≥ {}).",
                self.a_values.len(),
                self.b_values.len(),
                two_digits(ranks.smallest_p)
            );
        }
    }
}

impl OverallComparison {
    /// The mean over the cells that have intervals; `None` for fewer than two, and when nothing varies.
    pub(super) fn of(cells: &[CellComparison], confidence: f64) -> Option<Self> {
        if cells.len() < 2 {
            return None;
        }
        let usable: Vec<_> = cells
            .iter()
            .filter_map(|c| c.a.as_ref().zip(c.b.as_ref()))
            .filter(|(a, b)| a.n > 1 && b.n > 1)
            .collect();
        if usable.len() < 2 {
            return None;
        }
        let a = over_cells(usable.iter().map(|(a, _)| *a))?;
        let b = over_cells(usable.iter().map(|(_, b)| *b))?;
        let error = a.error.hypot(b.error);
        if error == 0.0 {
            return None;
        }
        let shares = ((a.error / error).powi(2), (b.error / error).powi(2));
        // A side that does not vary at all has no degrees of freedom, and no part in the error.
        let part = |share: f64, df: f64| if share == 0.0 { 0.0 } else { share * share / df };
        let df = 1.0 / (part(shares.0, a.df) + part(shares.1, b.df));
        let difference = b.mean - a.mean;
        let half_width = benchmaster_stats::t_quantile(0.5 + confidence / 2.0, df) * error;
        let ratio = |confidence| fieller_of_means(&a, &b, confidence).ok().and_then(|found| ends(&found));
        Some(Self {
            cells: usable.len(),
            a: a.mean,
            b: b.mean,
            difference,
            interval: [difference - half_width, difference + half_width],
            df,
            p: benchmaster_stats::t_two_sided_p(difference / error, df),
            p_holm: f64::NAN,
            ratio: b.mean / a.mean,
            ratio_interval: ratio(confidence),
            equivalence_interval: ratio(inner_confidence(confidence)),
            verdict: Verdict::Undecided,
            direction: None,
            sentence: String::new(),
        })
    }

    pub(super) fn judge(&mut self, confidence: f64, band: f64, unit: Unit, family: usize) {
        let change = Change {
            difference: self.difference,
            ratio: Some(self.ratio).filter(|r| r.is_finite()),
            interval: self.ratio_interval,
            inner: self.equivalence_interval,
            p_holm: Some(self.p_holm),
            confidence,
            band,
            family,
        };
        (self.verdict, self.direction, self.sentence) = change.judge(unit);
    }
}

/// The mean of cell means, its standard error and degrees of freedom.
fn over_cells<'a>(cells: impl Iterator<Item = &'a Estimate>) -> Option<KnownMean> {
    let (mut count, mut sum, mut squares, mut shares) = (0.0, 0.0, 0.0, 0.0);
    for cell in cells {
        let n = cell.n as f64;
        let square = cell.standard_deviation?.powi(2) / n;
        count += 1.0;
        sum += cell.mean;
        squares += square;
        shares += square * square / (n - 1.0);
    }
    let df = if shares > 0.0 { squares * squares / shares } else { count };
    Some(KnownMean { mean: sum / count, error: squares.sqrt() / count, df })
}

/// A difference that is to be judged.
struct Change {
    difference: f64,
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    /// That of two one-sided tests.
    inner: Option<[f64; 2]>,
    /// `None` when nothing varies.
    p_holm: Option<f64>,
    confidence: f64,
    band: f64,
    family: usize,
}

impl Change {
    fn judge(&self, unit: Unit) -> (Verdict, Option<Direction>, String) {
        let (verdict, why) = self.verdict();
        let direction = better(unit).filter(|_| verdict == Verdict::Changed).map(|better| {
            let rises = self.difference > 0.0;
            if rises == (better == Better::Larger) { Direction::Better } else { Direction::Worse }
        });
        let head = match (verdict, direction) {
            (Verdict::Changed, Some(Direction::Better)) => "Changed for the better",
            (Verdict::Changed, Some(Direction::Worse)) => "Changed for the worse",
            (Verdict::Changed, None) => "Changed",
            (Verdict::Same, _) => "The same",
            (Verdict::Undecided, _) => "Undecided",
        };
        (verdict, direction, format!("{head}: {why}"))
    }

    fn verdict(&self) -> (Verdict, String) {
        let band = exact_percent(self.band);
        let significant = self.p_holm.is_none_or(|p| p <= 1.0 - self.confidence);
        let Some([low, high]) = self.interval else {
            return self.without_ratio(significant);
        };
        let range = |[low, high]: [f64; 2]| {
            format!("from {} to {}", signed_percent(low - 1.0), signed_percent(high - 1.0))
        };
        let inner = self.inner.unwrap_or([low, high]);
        let ratio = self.ratio.unwrap_or(f64::NAN);
        let by = format!("{} ({})", signed_percent(ratio - 1.0), range([low, high]));
        match equivalence::verdict((low, high), inner.into(), ratio_band(self.band)) {
            equivalence::Verdict::Changed if significant => {
                (Verdict::Changed, format!("by {by}, which is outside ±{band}."))
            }
            equivalence::Verdict::Changed => (
                Verdict::Undecided,
                format!(
                    "{by} is outside ±{band}, but of {} tests one may look like this by chance (corrected p = {}).",
                    self.family,
                    two_digits(self.p_holm.unwrap_or(f64::NAN))
                ),
            ),
            equivalence::Verdict::Same => {
                let confidence = exact_percent(inner_confidence(self.confidence));
                let range = range(inner);
                (
                    Verdict::Same,
                    format!("a difference, if any, is {range} ({confidence}), which is within ±{band}."),
                )
            }
            equivalence::Verdict::Undecided => (
                Verdict::Undecided,
                format!(
                    "the difference may be anything {}; more runs would tell whether it is outside ±{band}.",
                    range([low, high])
                ),
            ),
        }
    }

    /// The first mean is 0, or may be.
    fn without_ratio(&self, significant: bool) -> (Verdict, String) {
        match (self.p_holm, self.difference == 0.0) {
            (None, true) => (Verdict::Same, "every run of both gave the same value.".into()),
            (None, false) => (Verdict::Changed, "from 0 to another value, in every run.".into()),
            (Some(p), _) if significant => (
                Verdict::Changed,
                format!(
                    "the means differ (corrected p = {}); the first may be 0, so there is no ratio.",
                    two_digits(p)
                ),
            ),
            (Some(p), _) => (
                Verdict::Undecided,
                format!(
                    "the means cannot be distinguished (corrected p = {}), and the first may be 0, so there is no ratio.",
                    two_digits(p)
                ),
            ),
        }
    }
}

fn welch(a: &[f64], b: &[f64], confidence: f64) -> Result<WelchSummary, StatsError> {
    let found = interval::welch(b, a, confidence)?;
    Ok(WelchSummary {
        difference: found.difference,
        interval: [found.difference - found.half_width, found.difference + found.half_width],
        t: found.t,
        df: found.df,
        p: found.p,
        p_holm: found.p,
    })
}

fn ranks(a: &[f64], b: &[f64], confidence: f64) -> Result<RankSummary, StatsError> {
    let test = rank::mann_whitney(b, a)?;
    let shift = rank::hodges_lehmann(b, a, confidence)?;
    Ok(RankSummary {
        u: test.u,
        method: match test.method {
            rank::Method::Exact => "exact",
            rank::Method::Normal => "normal",
        },
        p: test.p_two_sided,
        p_holm: test.p_two_sided,
        smallest_p: test.smallest_p,
        can_reach: test.smallest_p <= 1.0 - confidence,
        shift: shift.estimate,
        interval: [shift.lower, shift.upper],
        coverage: shift.coverage,
        cliffs_delta: rank::cliffs_delta(b, a)?,
    })
}

fn ratio(a: &[f64], b: &[f64], confidence: f64) -> Result<RatioSummary, StatsError> {
    let found = fieller_welch(a, b, confidence)?;
    let log_t = log_t(a, b, confidence).ok();
    Ok(RatioSummary {
        ratio: found.ratio,
        interval: ends(&found),
        equivalence_interval: fieller_welch(a, b, inner_confidence(confidence)).ok().and_then(|r| ends(&r)),
        kalibera_jones: ends(&fieller(a, b, confidence)?),
        log_t: log_t.and_then(|found| ends(&found).map(|[low, high]| [found.ratio, low, high])),
    })
}

fn ends(found: &RatioInterval) -> Option<[f64; 2]> {
    found.interval.map(|(low, high)| [low, high])
}

/// `+3.2 %`.
fn signed_percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.abs() >= 999.95 {
        return format!("{percent:+.0} %");
    }
    // Nothing is −0.0.
    let tenths = (10.0 * percent).round() / 10.0;
    if tenths == 0.0 { "0.0 %".into() } else { format!("{tenths:+.1} %") }
}
