//! The twelve rules of Hoefler and Belli, and whether a report keeps them.
//!
//! T. Hoefler and R. Belli, *Scientific Benchmarking of Parallel Computing Systems: Twelve ways to tell the masses when
//! reporting performance results*, SC '15. Each rule is judged by what the report shows: the runs, the analysis, the
//! environments.

mod rules;

use serde::Serialize;

use crate::results::Whole;

/// A rule, and whether it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lint {
    /// Its number in the paper, from 1 to 12.
    pub number: u32,
    /// What it asks for, in short.
    pub rule: &'static str,
    /// Whether it is kept, and how; or where it is broken.
    pub outcome: Outcome,
}

/// Whether a rule is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "text", rename_all = "kebab-case")]
pub enum Outcome {
    /// How it is kept.
    Held(String),
    /// Where it is not kept, and what would correct that.
    Broken(String),
    /// Why it does not apply.
    NotNeeded(String),
}

impl Outcome {
    /// In a word or two.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Broken(_) => "broken",
            Self::NotNeeded(_) => "not needed",
        }
    }

    /// How, where or why.
    pub fn text(&self) -> &str {
        match self {
            Self::Held(text) | Self::Broken(text) | Self::NotNeeded(text) => text,
        }
    }
}

type Rule = (&'static str, fn(&Whole<'_>) -> Outcome);

const RULES: [Rule; 11] = [
    ("A ratio is shown together with its base case and that case's own result", rules::bases),
    ("Say why when only a part of the runs or of the machine is used", rules::parts),
    ("Arithmetic means for times and amounts, harmonic means for rates", rules::rates),
    ("No means of ratios; if there must be some, geometric ones", rules::ratios),
    ("Say whether values are deterministic; if not, show confidence intervals", rules::intervals),
    ("Do not assume a normal distribution without checking", rules::normality),
    ("Compare by intervals or tests, not by means alone", rules::comparisons),
    ("Look beyond the mean: percentiles where they matter, never averaged", rules::percentiles),
    ("Document all factors, their levels, and the whole set-up", rules::setup),
    (
        "For parallel measurements, say how clients were started together and how their times were combined",
        rules::together,
    ),
    ("Show upper bounds beside the results", rules::bounds),
];

const PLOTS: &str = "Plot as much as is needed; join points only where interpolation makes sense";

/// All twelve rules in order, for a report that draws at most `drawn` treatments.
pub fn lints(whole: &Whole<'_>, drawn: usize) -> Vec<Lint> {
    let of_results = RULES.iter().map(|(rule, look)| (*rule, look(whole)));
    let all = of_results.chain([(PLOTS, rules::plots(whole, drawn))]);
    (1..).zip(all).map(|(number, (rule, outcome))| Lint { number, rule, outcome }).collect()
}

#[cfg(test)]
mod tests;
