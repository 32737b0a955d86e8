//! What an experiment says: every number with its uncertainty, and the sentences that describe it.

use benchmaster_record::results::Unit;
use serde::Serialize;

use super::ranged::Ranged;
use super::sample::TwoGroups;

/// The analysis of an experiment.
///
/// On the log scale coefficients, effects and their intervals are of the natural logarithm of the response; means and
/// predictions are always in the unit of the response (on the log scale they are geometric means).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Experiment {
    pub response: String,
    /// Its unit; `None` when it is not known.
    pub unit: Option<Unit>,
    /// Runs that count.
    pub runs: usize,
    /// Runs that do not count, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Different combinations of levels that have runs, centre points not counted.
    pub treatments: usize,
    /// Fewest and most runs of a treatment.
    pub replicates: (usize, usize),
    /// Whether all treatments of a full or orthogonal design have equally many runs.
    pub balanced: bool,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Factors with their letters and codes.
    pub factors: Vec<FactorCoding>,
    /// What kind of design the runs are.
    pub design: DesignSummary,
    /// The scale of the response, and why.
    pub scale: ScaleChoice,
    /// The mean over all treatments.
    pub mean: TermEstimate,
    /// Coefficients, those that explain most first. No more than [`Experiment::MOST_EFFECTS`].
    pub effects: Vec<TermEstimate>,
    /// Coefficients of the model, the mean not counted; more than `effects` when only the largest are listed.
    pub effects_total: usize,
    pub anova: AnovaTable,
    /// What the effects are compared with.
    pub error: ErrorSummary,
    /// Lenth's method, for unreplicated designs.
    pub lenth: Option<LenthSummary>,
    /// What each estimate is the sum of; `None` when every term can be distinguished from every other.
    pub aliases: Option<Vec<AliasChain>>,
    /// Terms of the model that these runs cannot estimate together with the others.
    pub not_separable: Vec<NotSeparable>,
    /// The model of the terms that matter; `None` when all or none do.
    pub reduced: Option<ReducedSummary>,
    /// Whether the model fits, tested against the spread between replicates.
    pub lack_of_fit: Option<LackOfFit>,
    /// Whether the response bends between low and high, from centre points.
    pub curvature: Option<TestSummary>,
    /// Residuals and what they say about the assumptions.
    pub residuals: ResidualSummary,
    /// The two levels of the only factor compared without a model; `None` in all other experiments.
    pub groups: Option<TwoGroups>,
    /// Means at the levels of each factor, averaged over all levels of the others.
    pub main_effects: Vec<LevelMeans>,
    /// Means at the combinations of two factors' levels, of the pairs that explain most.
    pub interactions: Vec<InteractionMeans>,
    /// Means at the corners of the three two-level factors that explain most.
    pub cube: Option<Cube>,
    /// The response of every treatment that was run, as the model has it, and of those that were asked for.
    pub predictions: Vec<Prediction>,
    /// The answer in words.
    pub sentences: Vec<String>,
}

impl Experiment {
    /// The most coefficients that are listed.
    pub const MOST_EFFECTS: usize = 1024;
    /// The most treatments whose predictions are listed.
    pub const MOST_PREDICTIONS: usize = 1024;
    /// The most runs whose residuals are listed.
    pub const MOST_RESIDUALS: usize = 10_000;
    /// The most pairs of factors whose means are listed.
    pub const MOST_INTERACTIONS: usize = 15;

    /// Whether effects have an interval or a margin.
    pub fn has_error(&self) -> bool {
        self.error.kind != ErrorKind::None
    }

    /// Whether effects are those of the logarithm of the response.
    pub fn is_log(&self) -> bool {
        self.scale.used == ScaleUsed::Log
    }
}

/// Runs that do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Why, such as `failed`, `a check found the run invalid`, `no value`.
    pub reason: String,
    pub runs: usize,
}

/// A factor, its letter and its codes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorCoding {
    pub letter: String,
    pub name: String,
    /// Its levels; of two, the first is −1 and the second +1.
    pub levels: Vec<String>,
    /// The levels as numbers, where they are quantities.
    pub values: Option<Vec<f64>>,
    /// How the levels are described: `two-level`, `polynomial`, `sum-to-zero` or `not varied`.
    pub coding: &'static str,
    /// Contrasts: for two levels one without a name, for polynomials `L`, `Q`, `C`, `4`, …, else one per level but the first
    /// (`level NAME`), each against the mean of all levels.
    pub contrasts: Vec<String>,
    /// Per contrast, the number that stands for each level.
    pub codes: Vec<Vec<f64>>,
    /// Changed only between whole plots.
    pub hard_to_change: bool,
}

/// What kind of design the runs are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignSummary {
    /// `none` (no factors), `full`, `regular fraction`, `orthogonal array` or `irregular`.
    pub kind: &'static str,
    /// Combinations of all levels.
    pub full_treatments: u64,
    /// Generators of a regular fraction, such as `D=AB`.
    pub generators: Vec<String>,
    /// Defining words of a regular fraction with their signs, shortest first, such as `-ABD`.
    pub defining_words: Vec<String>,
    /// Resolution of a regular fraction.
    pub resolution: Option<u32>,
    /// Blocks, whose differences are taken out of the error. They are random: means and predictions are for others like them.
    pub blocks: usize,
    /// Standard deviation between blocks beyond that of the runs in them; on the scale used.
    pub block_deviation: Option<f64>,
    pub whole_plots: usize,
    pub centre_points: usize,
}

/// The scale of the response, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaleChoice {
    pub used: ScaleUsed,
    /// Whether the user chose it.
    pub asked: bool,
    /// Evidence for it, a sentence each.
    pub reasons: Vec<String>,
    /// The profile of Box and Cox; empty when the response is not positive or nothing is left to vary.
    pub box_cox: Vec<BoxCoxPoint>,
    /// The λ of the profile with the largest likelihood.
    pub box_cox_best: Option<f64>,
    /// The λ that the data do not exclude.
    pub box_cox_plausible: Vec<f64>,
    /// Largest response over smallest; `None` when the smallest is not positive.
    pub spread: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleUsed {
    /// As measured.
    Identity,
    /// The natural logarithm.
    Log,
}

/// How well a power of the response fits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BoxCoxPoint {
    /// The power; 0 is the logarithm.
    pub lambda: f64,
    /// Its log likelihood; only differences have a meaning.
    pub log_likelihood: f64,
}

/// A coefficient of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermEstimate {
    /// The term by letters: `AB`; `I` for the mean.
    pub term: String,
    /// The term by names: `sync × io_size`; `mean` for the mean.
    pub name: String,
    /// Factors in it; 0 for the mean.
    pub order: u32,
    /// Which contrast of the term, such as `L`, `L×Q`, `level M`; empty when the term has one.
    pub contrast: String,
    /// Degrees of freedom of the error it is compared with; 0 without one.
    pub df: u32,
    /// Half effect q, when all factors of the term have two levels: the coefficient on −1/+1 columns.
    pub half_effect: Option<f64>,
    /// Full effect 2q: the change of the response from low to high.
    pub effect: Option<f64>,
    /// The coefficient as fitted; for two levels the half effect.
    pub coefficient: f64,
    /// Standard error of the coefficient.
    pub standard_error: Option<f64>,
    /// Half width of the interval of the coefficient.
    pub half_width: Option<f64>,
    /// Interval of the coefficient (of the half effect).
    pub interval: Option<[f64; 2]>,
    /// Interval of the full effect.
    pub effect_interval: Option<[f64; 2]>,
    /// On the log scale: what the response is multiplied by from low to high. For the mean: the geometric mean.
    pub ratio: Option<Ranged>,
    /// The coefficient over its standard error.
    pub t: Option<f64>,
    /// Two-sided p value.
    pub p: Option<f64>,
    /// The p value of its term, adjusted for all terms that are judged together; of several coefficients of a term, that or
    /// its own adjusted within the term, whichever is larger.
    pub p_holm: Option<f64>,
    /// Variation the coefficient explains after all others.
    pub sum_of_squares: f64,
    /// Share of the total variation in percent; `None` for the mean and where shares do not add up.
    pub variation_percent: Option<f64>,
    /// Whether it differs from 0: `p_holm` is at most 1 − confidence; where the error is exactly 0, whether it is not
    /// exactly 0. `None` when nothing can be said.
    pub significant: Option<bool>,
    /// Whether its term matters. A term of several coefficients may matter while none of them stands out by itself.
    pub term_matters: Option<bool>,
    /// A polynomial of too high a degree to be listed.
    #[serde(skip)]
    pub(super) beyond: bool,
    /// Terms that the estimate cannot be distinguished from, with signs, such as `-CD`; up to order 3.
    pub aliased_with: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnovaTable {
    /// `I`, `II` or `III`.
    pub sums_of_squares: &'static str,
    /// Whether the kind matters: `false` for orthogonal data, where all three are the same.
    pub kind_matters: bool,
    /// Lines: blocks, terms, error lines and the total.
    pub lines: Vec<AnovaLine>,
    /// Terms of the model; more than lines of terms when only the largest are listed.
    pub terms_total: usize,
}

/// A line of the analysis of variance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnovaLine {
    /// `block`, `term`, `whole-plot error`, `error`, `lack of fit`, `pure error` or `total`. Lack of fit and pure error are
    /// the parts of the error.
    pub kind: &'static str,
    /// The term by letters; empty for other lines.
    pub term: String,
    /// The term by names, or the kind of line.
    pub name: String,
    pub df: u32,
    pub sum_of_squares: f64,
    /// Mean square; `None` without degrees of freedom and for the total.
    pub mean_square: Option<f64>,
    /// F ratio.
    pub f: Option<f64>,
    /// Degrees of freedom of the error it is compared with.
    pub error_df: Option<u32>,
    pub p: Option<f64>,
    /// The same of a term, adjusted for all terms that are judged together (Holm). From Lenth's method where there is no
    /// error to compare with.
    pub p_holm: Option<f64>,
    /// Whether a term matters: `p_holm` is at most 1 − confidence; where the error is exactly 0, whether it explains anything.
    pub matters: Option<bool>,
    /// Allocation of variation: share of the total sum of squares, in percent (η² in percent).
    pub variation_percent: Option<f64>,
    /// ω², the share of the variation in the population, less biased than η².
    pub omega_squared: Option<f64>,
}

/// What an error is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The spread between replicates.
    Replicates,
    /// Replicates, and terms that are not in the model.
    ReplicatesAndPooled,
    /// Terms that are not in the model, taken as noise.
    Pooled,
    /// Lenth's pseudo standard error, for unreplicated designs.
    Lenth,
    /// Whole plots for hard-to-change factors, runs inside them for the others.
    SplitPlot,
    None,
}

/// What the effects are compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorSummary {
    /// What it is made of.
    pub kind: ErrorKind,
    /// Degrees of freedom (inside whole plots, for a split plot).
    pub df: u32,
    /// Standard deviation of one run; `None` without degrees of freedom.
    pub s_e: Option<f64>,
    /// Standard deviation of a half effect, when all factors have two levels and the data are balanced.
    pub s_q: Option<f64>,
    /// Unexplained sum of squares.
    pub sse: f64,
    /// Total sum of squares around the mean.
    pub sst: f64,
    /// Sum of the squared responses.
    pub ssy: f64,
    /// Share of the total variation in percent; `None` when nothing varies.
    pub percent: Option<f64>,
    /// Share of the variation that the model explains.
    pub r_squared: Option<f64>,
    /// The same, adjusted for the number of terms.
    pub r_squared_adjusted: Option<f64>,
    /// Whole plots: degrees of freedom and standard deviation of their error.
    pub whole_plot: Option<(u32, f64)>,
    /// Terms that were taken as noise (the largest are listed).
    pub pooled: Vec<String>,
    /// Why there are no intervals.
    pub no_interval: Option<String>,
}

/// Lenth's method for unreplicated designs. All margins are for full effects; divide by 2 for half effects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LenthSummary {
    /// Number of effects m.
    pub effects: usize,
    /// Degrees of freedom m/3.
    pub df: f64,
    /// Pseudo standard error of a full effect.
    pub pse: f64,
    /// Margin of error of a single effect.
    pub me: f64,
    /// Simultaneous margin of error, for all effects together, by Lenth's approximation.
    pub sme: f64,
    /// What the largest of as many effects of noise stays below, by simulation. This one decides what matters.
    pub simultaneous: f64,
    /// The three for half effects.
    pub pse_half: f64,
    /// Margin of error of a half effect.
    pub me_half: f64,
    /// Simultaneous margin of error of half effects.
    pub sme_half: f64,
    pub simultaneous_half: f64,
}

/// What one estimate is the sum of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AliasChain {
    /// Terms by letters with signs, by order: `A`, `-BC`; the mean is `I`.
    pub terms: Vec<String>,
    /// The same by names.
    pub names: Vec<String>,
    /// How much each is part of the estimate: 1 and −1 in regular fractions, where they cannot be distinguished at all;
    /// correlations elsewhere.
    pub weights: Vec<f64>,
    /// In words: `B + DF − ACE`, `A − 0.33 BC`.
    pub text: String,
}

/// A term that the runs cannot estimate together with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotSeparable {
    /// The term by letters.
    pub term: String,
    /// The term by names.
    pub name: String,
    /// Contrast, when only one of the term cannot be estimated.
    pub contrast: String,
    /// Terms of the model it is the same as, or a mixture of, by letters.
    pub with: Vec<String>,
}

/// The model of the terms that matter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReducedSummary {
    /// Terms that stay, by letters. Terms that are contained in one that stays do too.
    pub terms: Vec<String>,
    /// The same by names.
    pub names: Vec<String>,
    /// Those that stay only because a term that contains them does.
    pub by_hierarchy: Vec<String>,
    /// Terms that were dropped into the error.
    pub dropped: Vec<String>,
    /// Degrees of freedom of its error.
    pub df: u32,
    pub s_e: Option<f64>,
    /// Unexplained sum of squares.
    pub sse: f64,
    /// Share of the variation it explains.
    pub r_squared: Option<f64>,
    /// Coefficients, the mean first.
    pub coefficients: Vec<TermEstimate>,
    pub lack_of_fit: Option<LackOfFit>,
    /// The model as a formula in codes −1/+1, for two-level factors.
    pub equation: Option<String>,
}

/// A test whether a model fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LackOfFit {
    /// Sum of squares that the model leaves between treatments.
    pub sum_of_squares: f64,
    pub df: u32,
    /// Spread between replicates.
    pub pure_error_sum_of_squares: f64,
    pub pure_error_df: u32,
    /// F ratio of the two.
    pub f: f64,
    pub p: f64,
    /// What that means.
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestSummary {
    /// What is estimated; for curvature the mean of the corners minus the mean of the centre points.
    pub estimate: f64,
    pub standard_error: f64,
    /// Interval of the estimate.
    pub interval: [f64; 2],
    pub statistic: f64,
    pub df: f64,
    pub p: f64,
    /// What that means.
    pub sentence: String,
}

/// Residuals and what they say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResidualSummary {
    /// The runs, in their order of execution where that is known. No more than [`Experiment::MOST_RESIDUALS`].
    pub runs: Vec<RunResidual>,
    /// Runs of the analysis.
    pub runs_total: usize,
    /// Checks that could be made.
    pub checks: Vec<ResidualCheck>,
    /// Why there are none.
    pub no_checks: Option<String>,
}

/// A run as the model has it. On the log scale, response, fitted value and residual are logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunResidual {
    /// Row of the table, from 0.
    pub row: usize,
    /// Place in the order of execution.
    pub order: Option<u64>,
    /// The response on the scale used.
    pub response: f64,
    /// What the model says.
    pub fitted: f64,
    /// Response minus fitted.
    pub residual: f64,
    /// How much the run determines its own fitted value, 0 to 1.
    pub leverage: f64,
}

/// A check of an assumption.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResidualCheck {
    /// `normality`, `spread` or `drift`.
    pub name: &'static str,
    pub test: String,
    pub statistic: f64,
    pub p: f64,
    /// Whether the assumption may be kept.
    pub fine: bool,
    /// What that means.
    pub sentence: String,
}

/// A mean in the unit of the response (on the log scale a geometric mean).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanCell {
    /// Runs with these levels.
    pub n: usize,
    /// The mean, averaged over all levels of the other factors with equal weight; `None` when it cannot be estimated.
    pub mean: Option<f64>,
    pub interval: Option<[f64; 2]>,
}

/// Means at the levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelMeans {
    pub factor: String,
    pub letter: String,
    pub levels: Vec<LevelMean>,
}

/// The mean at a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelMean {
    pub level: String,
    /// Its number, where it is a quantity.
    pub value: Option<f64>,
    #[serde(flatten)]
    pub cell: MeanCell,
    /// The level's effect: its mean minus the mean of all levels, on the scale used.
    pub effect: Option<f64>,
    /// Standard error of that.
    pub effect_standard_error: Option<f64>,
    /// Interval of that.
    pub effect_interval: Option<[f64; 2]>,
    /// Mean minus that of the base level (on the log scale divided by it). `None` for the base.
    pub against_base: Option<Ranged>,
}

/// Means at the combinations of two factors' levels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteractionMeans {
    pub factors: [String; 2],
    pub letters: [String; 2],
    /// Levels of the first factor.
    pub first: Vec<String>,
    /// Levels of the second factor.
    pub second: Vec<String>,
    /// Per level of the first factor, per level of the second.
    pub cells: Vec<Vec<MeanCell>>,
    /// p value of the interaction, adjusted for all terms that are judged together; where it is in the model.
    pub p: Option<f64>,
    /// Whether the interaction matters.
    pub significant: Option<bool>,
}

/// Means at the corners of three two-level factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cube {
    pub factors: [String; 3],
    pub levels: [[String; 2]; 3],
    /// The eight corners, the first factor fastest.
    pub corners: Vec<CubeCorner>,
}

/// A corner of a cube.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CubeCorner {
    /// Levels of the three factors, 0 or 1.
    pub levels: [u32; 3],
    #[serde(flatten)]
    pub cell: MeanCell,
}

/// The response that the model predicts, in its unit (on the log scale a geometric mean).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Per factor, its level.
    pub levels: Vec<String>,
    /// For people: `sync=on io_size=64KiB`.
    pub label: String,
    /// Runs of that treatment.
    pub runs: usize,
    pub value: f64,
    /// Interval of the mean of infinitely many runs.
    pub interval: Option<[f64; 2]>,
    /// Number of further runs, where asked.
    pub future_runs: Option<u32>,
    /// Interval of the mean of this many further runs.
    pub future_interval: Option<[f64; 2]>,
    /// The wider interval for it by Jain's leverage, (1 + parameters)/runs, where the data are balanced.
    pub jain_interval: Option<[f64; 2]>,
    /// Whether it was asked for.
    pub asked: bool,
}
