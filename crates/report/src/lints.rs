//! The twelve rules of Hoefler and Belli, and whether a report keeps them.
//!
//! T. Hoefler and R. Belli, *Scientific Benchmarking of Parallel Computing Systems: Twelve ways to tell the masses when
//! reporting performance results*, SC '15. Each rule is looked up in what the report shows: in the runs, in what was calculated
//! from them, and in what is known of where they were made.

mod rules;

use benchmaster_analysis::Analysis;
use benchmaster_record::results::StudyResults;
use serde::Serialize;

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
    /// It is; how.
    Held(String),
    /// It is not; where, and what would mend it.
    Broken(String),
    /// There is nothing here that it is about; why.
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

type Rule = (&'static str, fn(&StudyResults, &Analysis) -> Outcome);

const RULES: [Rule; 12] = [
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
        "For parallel measurements, say how clients were started together and their times put together",
        rules::together,
    ),
    ("Show upper bounds beside the results", rules::bounds),
    ("Plot as much as is needed; join points only where what lies between is meant", rules::plots),
];

/// All twelve rules in order.
pub fn lints(results: &StudyResults, analysis: &Analysis) -> Vec<Lint> {
    let lint = |(number, (rule, look)): (u32, &Rule)| Lint { number, rule, outcome: look(results, analysis) };
    (1..).zip(&RULES).map(lint).collect()
}

#[cfg(test)]
mod tests;
