//! The answer of [`describe`](super::describe()), as it is printed with `--json`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::pilot::Spread;

/// What a design can tell, and what it cannot. Effects are named by letters (`"BF"`), with `-` in front where the sign is
/// switched; `"I"` is the mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DesignDescription {
    /// `full`, `fractional`, `plackett-burman`, `orthogonal-array`, `one-at-a-time`, `explicit` or `data`.
    pub kind: String,
    /// The design in a few words: `2^(6-3) fraction of resolution III`.
    pub title: String,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// The factors in order, with their letters.
    pub factors: Vec<FactorDescription>,
    /// Different combinations of levels that are run, without centre points.
    pub treatments: u64,
    /// All combinations of levels there are; `None` when they are more than 2⁶⁴.
    pub combinations: Option<u64>,
    /// Replicates of each treatment.
    pub replicates: Bounds,
    /// Runs in all: treatments times replicates, and centre runs.
    pub runs: Bounds,
    /// The treatments, in standard order; the centre point, if there is one, at the end.
    pub sign_table: SignTable,
    /// `D=AB`: how the levels of added factors follow from the others. Empty when the design is full or not regular.
    pub generators: Vec<String>,
    /// Number of words of the defining relation, 2^p − 1; 0 when the design is full or not regular.
    pub defining_words: u64,
    /// The words that are equal to the mean: `ABD`, `-ACE`, …, by length; I is equal to each of them. The first 2,000.
    pub defining_relation: Vec<String>,
    /// How many words there are of each length; lengths without words are left out. Of a design that is not regular, the
    /// generalised word-length pattern A1, A2, ….
    pub word_length_pattern: BTreeMap<u32, WordCount>,
    /// Length of the shortest word; `None`: a full design, in which nothing is aliased.
    pub resolution: Option<u32>,
    /// The same with a part that says how bad the worst of the shortest words is; a whole number for regular designs.
    pub generalised_resolution: Option<f64>,
    /// Interactions of this many factors are listed below.
    pub max_order: u32,
    /// Sets of effects that cannot be separated, of a regular design: the mean's first, then by order. Effects alone in
    /// their chain are there too.
    pub chains: Vec<AliasChain>,
    /// Chains that are left out because there are too many.
    pub chains_left_out: u64,
    /// Main effects and interactions of a design that is not regular.
    pub terms: Vec<TermDescription>,
    /// Terms that are left out because there are too many.
    pub terms_left_out: u64,
    /// Effects that are not aliased, not even in part, with any main effect or interaction of two factors.
    pub clear: ClearEffects,
    /// The effects that were named as being of interest.
    pub interest: Vec<InterestingEffect>,
    /// Degrees of freedom of the experimental error.
    pub error: ErrorFreedom,
    /// The smallest effect that the experiment will find; `None` when the spread of runs is not known.
    pub smallest_detectable: Option<SmallestDetectable>,
    /// Replicates for the effect that was asked for; `None` when none was, or when the spread of runs is not known.
    pub replicates_needed: Option<ReplicatesNeeded>,
    /// Time it will take, from runs that were measured; `None` without a pilot.
    pub time: Option<TimeEstimate>,
    /// How hard-to-change factors are handled.
    pub split_plot: Option<SplitPlot>,
    pub blocks: Option<BlockDescription>,
    pub centre_points: Option<CentrePoints>,
    /// What leaving treatments out costs.
    pub exclusions: Option<Exclusions>,
    /// What speaks against the design, in plain words.
    pub warnings: Vec<String>,
    /// Designs that are better.
    pub proposals: Vec<Proposal>,
}

/// A factor and its letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactorDescription {
    /// `A`, `B`, … without `I`.
    pub letter: String,
    pub name: String,
    /// Its levels; of two, the first is low (−) and the second high (+).
    pub levels: Vec<String>,
    /// Whether it is changed as rarely as possible.
    pub hard_to_change: bool,
}

/// The fewest and the most; they differ when replication is sequential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bounds {
    pub min: u64,
    pub max: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignTable {
    /// The letters of the factors.
    pub columns: Vec<String>,
    /// Per treatment, its level of each factor.
    pub rows: Vec<Vec<Cell>>,
}

/// A level in the sign table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// −1 or +1 of a factor with two levels; 0 at a centre point.
    Sign(i8),
    /// The name of the level of a factor with more.
    Level(String),
}

/// How many words of one length there are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WordCount {
    /// Of a regular design.
    Words(u64),
    /// Generalised (Xu & Wu 2001).
    Share(f64),
}

impl WordCount {
    pub(crate) fn is_zero(self) -> bool {
        self.value() < 1e-9
    }

    pub fn value(self) -> f64 {
        match self {
            Self::Words(n) => n as f64,
            Self::Share(share) => share,
        }
    }
}

/// Effects that one column of a regular design estimates together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AliasChain {
    /// Order of the shortest: 0 the mean, 1 a main effect, 2 an interaction of two factors.
    pub order: u32,
    /// The effects by letters, the shortest first; the estimate is their sum with these signs.
    pub members: Vec<String>,
    /// The same effects by the names of the factors.
    pub names: Vec<String>,
    /// Those of them that are of interest.
    pub interest: Vec<String>,
}

/// A main effect or interaction of a design that is not regular.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermDescription {
    /// By letters.
    pub term: String,
    /// By the names of the factors.
    pub name: String,
    /// Degrees of freedom it has in a full design.
    pub degrees_of_freedom: u32,
    /// Whether it can be estimated beside all terms up to its own order.
    pub estimable: bool,
    /// How many times larger the variance of its estimate is than in an orthogonal design with as many runs, beside all
    /// terms up to its own order; `None` where it cannot be estimated.
    pub variance_inflation: Option<f64>,
    /// Whether it was named as being of interest.
    pub interest: bool,
    /// Terms it is mixed up with: main effects and interactions of two factors first, then the others, of both the worst
    /// first. All that cannot be separated from it, and of the others the 32 worst of each kind at most.
    pub aliases: Vec<PartialAlias>,
    /// Terms it is mixed up with that are not listed.
    pub aliases_left_out: u64,
}

/// A term that another one is mixed up with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartialAlias {
    /// By letters.
    pub term: String,
    /// By the names of the factors.
    pub name: String,
    /// Largest correlation of their columns: ±1 when they cannot be separated at all.
    pub correlation: f64,
}

/// Effects that are clear of main effects and interactions of two factors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ClearEffects {
    /// Main effects, by letter.
    pub main_effects: Vec<String>,
    /// Interactions of two factors.
    pub two_factor_interactions: Vec<String>,
}

/// An effect of interest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterestingEffect {
    /// By letters.
    pub term: String,
    /// By the names of the factors.
    pub name: String,
    /// Whether it is aliased with no main effect and no interaction of two factors.
    pub clear: bool,
    /// What it is aliased with, up to `max_order`.
    pub aliased_with: Vec<String>,
}

/// Degrees of freedom of the experimental error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorFreedom {
    /// From replicates, with the fewest replicates that are planned; blocks are taken off.
    pub degrees_of_freedom: u64,
    /// Contrasts that no main effect and no interaction of two factors takes part in; without replicates they can stand for
    /// the error, if interactions of three and more factors are nothing.
    pub high_order_contrasts: u64,
    /// The same in a sentence.
    pub text: String,
}

/// The smallest effect that will be found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SmallestDetectable {
    /// `pilot` or `given`.
    pub source: String,
    /// The response that the spread belongs to.
    pub response: Option<String>,
    pub unit: Option<String>,
    /// Standard deviation of runs of one treatment, in the response's unit.
    pub standard_deviation: Option<f64>,
    /// The same as a share of the mean.
    pub relative_standard_deviation: Option<f64>,
    /// Degrees of freedom of the error that it was worked out with.
    pub degrees_of_freedom: u64,
    /// Probability of finding an effect of this size.
    pub power: f64,
    /// Per factor.
    pub effects: Vec<DetectableEffect>,
    /// What it assumes.
    pub assumptions: Vec<String>,
}

/// The smallest difference between two levels of a factor that will be found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DetectableEffect {
    pub term: String,
    pub name: String,
    /// Runs at the two levels that are compared: those with the fewest runs.
    pub runs: [u64; 2],
    /// Difference between the means of the two levels (the full effect 2q), in the response's unit.
    pub effect: Option<f64>,
    /// Half of it (the half effect q).
    pub half_effect: Option<f64>,
    /// The difference as a share of the mean.
    pub relative_effect: Option<f64>,
    /// Of the error that it is judged by: that between whole plots for factors that are hard to change.
    pub degrees_of_freedom: u64,
}

/// How many replicates find an effect.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReplicatesNeeded {
    /// The effect that was asked for (2q).
    pub effect: Spread,
    /// The least number; `None` where 100,000 are not enough.
    pub replicates: Option<u32>,
    /// Runs of that many.
    pub runs: Option<u64>,
}

/// Time from a pilot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimeEstimate {
    /// Of the fewest runs, in seconds.
    pub seconds_min: f64,
    /// Of the most.
    pub seconds_max: f64,
    /// Mean of a run of the pilot.
    pub mean_run_seconds: f64,
    /// Runs of the pilot.
    pub pilot_runs: u64,
    /// Treatments whose own runs the pilot has.
    pub treatments_measured: u64,
    /// Treatments for which the mean of all its runs stands.
    pub treatments_assumed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitPlot {
    pub factors: Vec<String>,
    /// Times they are set up in one replicate.
    pub whole_plots: u64,
    /// Runs of the smallest and the largest whole plot.
    pub runs_per_whole_plot: Bounds,
    /// Degrees of freedom of the error between whole plots: for their effects.
    pub whole_plot_degrees_of_freedom: u64,
    /// Degrees of freedom of the error within: for all other effects.
    pub sub_plot_degrees_of_freedom: u64,
    /// Effects that are judged by the error between whole plots, up to `max_order`, by letters.
    pub whole_plot_effects: Vec<String>,
    /// The same in a sentence.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockDescription {
    /// `replicates`, `confounded`, `confounded within replicates` or `named`.
    pub kind: String,
    /// Number of blocks with the fewest replicates.
    pub blocks: u64,
    /// Names, where the study gives them.
    pub names: Vec<String>,
    /// Interactions whose signs say in which block a treatment is.
    pub generators: Vec<String>,
    /// All interactions that cannot be separated from differences between blocks, each with its aliases up to `max_order`.
    pub confounded: Vec<String>,
    /// Per row of the sign table its block, when blocks are confounded.
    pub of_row: Option<Vec<u32>>,
    /// The same in a sentence.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CentrePoints {
    /// In each block; all together when runs are not blocked.
    pub per_block: u32,
    /// Centre runs in all, with the fewest replicates.
    pub runs: u64,
    /// What they are good for.
    pub text: String,
}

/// What leaving treatments out costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exclusions {
    /// Treatments that are left out.
    pub treatments: u64,
    /// Those of the design without exclusions.
    pub of: u64,
    /// For the model of main effects, then for that with interactions of two factors.
    pub models: Vec<ModelCost>,
    /// Terms that can be estimated less completely than before, or not at all, by letters.
    pub lost: Vec<String>,
    /// The strongest correlation between two terms that was weaker before.
    pub largest_correlation: Option<NewCorrelation>,
    /// The same in a sentence.
    pub text: String,
}

/// What exclusions cost a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModelCost {
    /// The highest order of its terms.
    pub order: u32,
    /// Parameters that the whole design estimates.
    pub parameters_before: u64,
    /// Those that the treatments left do.
    pub parameters_after: u64,
    /// Precision per run against the whole design; `None` when parameters are lost.
    pub d_efficiency: Option<f64>,
}

/// A correlation that exclusions bring.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewCorrelation {
    /// The two terms, by letters.
    pub terms: [String; 2],
    /// In the whole design.
    pub before: f64,
    /// In the treatments left.
    pub after: f64,
}

/// A design that is better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    pub treatments: u64,
    /// Its runs with the same (fewest) replicates.
    pub runs: u64,
    /// Its generators; empty for a full design.
    pub generators: Vec<String>,
    /// Its resolution; `None`: full.
    pub resolution: Option<u32>,
    /// Interactions of two factors that it still cannot tell apart, as chains.
    pub still_aliased: Vec<String>,
    /// The command that shows it.
    pub options: String,
    /// The keys of a study's `[design]` that make it.
    pub study_keys: String,
    /// The same in a sentence.
    pub text: String,
}
