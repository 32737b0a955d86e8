//! What `[design]` says of factors and levels, by number.

use std::collections::BTreeMap;

use benchmaster_design::regular::Generator;
use benchmaster_design::term::{self, Term};
use benchmaster_record::results::{Direction, GoalRecord};

use super::blocks::Blocks;
use super::check::listed_plots;
use super::sections::{DesignKind, DesignSection, LevelWord, RunOrder};
use super::{error, warn};
use crate::file::factors::{Factor, Level};
use crate::file::section::Reader;
use crate::scalar::Scalar;
use crate::suggest;

/// What `[design]` says of factors and levels, by number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DesignChoice {
    /// Which combinations of levels are run.
    pub layout: Layout,
    /// Effects of interest.
    pub interest: Vec<Term>,
    /// Combinations of levels that are left out: per factor a level, or any.
    pub exclude: Vec<Vec<Option<u32>>>,
    /// Factors that are hard to change, in ascending order.
    pub hard_to_change: Vec<u32>,
    /// What the best treatment is to be found for.
    pub goal: Option<GoalRecord>,
}

/// Which combinations of levels are run.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Layout {
    #[default]
    Full,
    OneAtATime,
    PlackettBurman,
    OrthogonalArray {
        runs: Option<u32>,
    },
    Fraction(FractionBy),
    /// The number of the level of each factor.
    Explicit(Vec<Vec<u32>>),
}

/// How a fractional design is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FractionBy {
    /// By these generators.
    Generators(Vec<Generator>),
    /// The fewest runs with at least this resolution.
    Resolution(u32),
    /// The best with so many runs.
    Runs(u64),
    /// The fewest runs that keep the effects of interest clear.
    Clear,
}

/// Finds factors and levels that `[design]` names. `None` when one is not there, which has then been reported.
pub(crate) fn choose(
    reader: &mut Reader<'_>,
    design: &DesignSection,
    factors: &[Factor],
) -> Option<DesignChoice> {
    let before = reader.diagnostics.errors();
    two_levels(reader, design, factors);
    let names: Vec<_> = factors.iter().map(|factor| factor.name.as_str()).collect();
    let choice = DesignChoice {
        goal: goal(reader, design),
        interest: interest(reader, design, &names),
        exclude: exclusions(reader, design, factors),
        layout: match design.kind {
            DesignKind::Full => Layout::Full,
            DesignKind::OneAtATime => Layout::OneAtATime,
            DesignKind::PlackettBurman => Layout::PlackettBurman,
            DesignKind::OrthogonalArray => Layout::OrthogonalArray { runs: design.runs },
            DesignKind::Fractional => Layout::Fraction(fraction(reader, design, &names)),
            DesignKind::Explicit => Layout::Explicit(treatments(reader, design, factors)),
        },
        hard_to_change: hard_to_change(reader, design, factors),
    };
    (reader.diagnostics.errors() == before).then_some(choice)
}

/// What effects can be named by.
fn known(names: &[&str]) -> String {
    let lettered =
        names.iter().enumerate().map(|(index, name)| format!("{} = `{name}`", term::letter(index)));
    match names {
        [] => "the study has no factors".into(),
        _ => format!("factors: {}", lettered.collect::<Vec<_>>().join(", ")),
    }
}

fn interest(reader: &mut Reader<'_>, design: &DesignSection, names: &[&str]) -> Vec<Term> {
    let mut interest = Vec::new();
    for (index, text) in design.clear.iter().flatten().enumerate() {
        match term::parse(text, names) {
            Ok(term) => interest.push(term),
            Err(problem) => error(reader, &format!("clear[{index}]"), problem.to_string(), known(names)),
        }
    }
    interest
}

/// The combinations that are left out.
fn exclusions(reader: &mut Reader<'_>, design: &DesignSection, factors: &[Factor]) -> Vec<Vec<Option<u32>>> {
    let mut exclusions = Vec::new();
    for (index, written) in design.exclude.iter().enumerate() {
        let at = format!("exclude[{index}]");
        let Some(row) = combination(reader, &at, written, factors) else { continue };
        if row.iter().all(Option::is_none) {
            let help = "name levels: `{ version = \"v3\", delegations = \"on\" }`";
            error(reader, &at, "an empty combination leaves everything out", help);
        }
        exclusions.push(row);
    }
    exclusions
}

/// Kinds of designs that only factors with two levels can have.
fn two_levels(reader: &mut Reader<'_>, design: &DesignSection, factors: &[Factor]) {
    let confounded = matches!(design.blocks, Some(Blocks::Confounded(_)));
    let (path, what) = match design.kind {
        DesignKind::Fractional => ("kind", "a fractional design"),
        DesignKind::PlackettBurman => ("kind", "a Plackett-Burman design"),
        DesignKind::Full if confounded => ("blocks", "a design that is spread over blocks"),
        _ => return,
    };
    if factors.is_empty() {
        let message = format!("{what} needs factors, and the study has none");
        return error(reader, path, message, "add `[factors.NAME]`, or write `kind = \"full\"`");
    }
    let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) else { return };
    let message =
        format!("{what} has factors with two levels, but `{}` has {}", factor.name, factor.levels.len());
    let help = match path {
        "kind" => {
            "`kind = \"orthogonal-array\"` makes fractions for any numbers of levels; or keep two levels of each factor"
        }
        _ => "`blocks = \"replicates\"` fits every design; or keep two levels of each factor",
    };
    error(reader, path, message, help);
}

/// By what a fraction is chosen. Mistakes are reported.
fn fraction(reader: &mut Reader<'_>, design: &DesignSection, names: &[&str]) -> FractionBy {
    if let Some(texts) = &design.generators {
        let mut generators = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match Generator::parse(text, names) {
                Ok(generator) => generators.push(generator),
                Err(problem) => {
                    error(reader, &format!("generators[{index}]"), problem.to_string(), known(names));
                }
            }
        }
        return FractionBy::Generators(generators);
    }
    let runs = design.runs.map(|runs| FractionBy::Runs(runs.into()));
    design.resolution.map(FractionBy::Resolution).or(runs).unwrap_or(FractionBy::Clear)
}

fn goal(reader: &mut Reader<'_>, design: &DesignSection) -> Option<GoalRecord> {
    let text = design.goal.as_ref()?;
    let words: Vec<_> = text.split_whitespace().collect();
    let direction = match words.first() {
        Some(&("maximise" | "maximize")) => Some(Direction::Maximise),
        Some(&("minimise" | "minimize")) => Some(Direction::Minimise),
        _ => None,
    };
    let (Some(direction), [_, response]) = (direction, &words[..]) else {
        let message = format!("`{text}` is not a goal");
        let help = "write `\"maximise RESPONSE\"` or `\"minimise RESPONSE\"`, such as `\"maximise write.throughput\"`";
        error(reader, "goal", message, help);
        return None;
    };
    if let Some(other) = design.response.as_ref().filter(|other| other != response) {
        let message = format!("the goal is about `{response}`, but `response` is `{other}`");
        error(reader, "goal", message, "remove `response`: it is that of the goal");
        return None;
    }
    Some(GoalRecord { direction, response: (*response).to_owned() })
}

/// The levels that a combination names, by factor. `None` when one is not there, which has then been reported.
fn combination(
    reader: &mut Reader<'_>,
    at: &str,
    written: &BTreeMap<String, LevelWord>,
    factors: &[Factor],
) -> Option<Vec<Option<u32>>> {
    let before = reader.diagnostics.errors();
    let mut row = vec![None; factors.len()];
    for (name, word) in written {
        let path = format!("{at}.{name}");
        let Some(index) = factor(reader, &path, name, factors) else { continue };
        let levels = &factors[index].levels;
        row[index] = levels.iter().position(|level| word.is(level)).map(|level| level as u32);
        if row[index].is_none() {
            let word = &word.0;
            let names = levels.iter().map(|level| level.name.as_str());
            let help = suggest::suggest(&word.to_string(), "levels", names);
            error(reader, &path, format!("the factor `{name}` has no level `{word}`"), help);
        }
    }
    (reader.diagnostics.errors() == before).then_some(row)
}

/// The number of a factor. `None` when it is not there, which has then been reported.
fn factor(reader: &mut Reader<'_>, at: &str, name: &str, factors: &[Factor]) -> Option<usize> {
    let found = factors.iter().position(|factor| factor.name == *name);
    if found.is_none() {
        let help = suggest::suggest(name, "factors", factors.iter().map(|factor| factor.name.as_str()));
        error(reader, at, format!("unknown factor `{name}`"), help);
    }
    found
}

impl LevelWord {
    /// Whether it stands for this level.
    fn is(&self, level: &Level) -> bool {
        let plain = level.name.replace('_', "");
        match &self.0 {
            Scalar::Text(text) => level.name == *text,
            Scalar::Whole(n) => plain.parse() == Ok(*n) || plain.parse() == Ok(*n as f64),
            Scalar::Number(x) => plain.parse() == Ok(*x),
            Scalar::Truth(truth) => level.name == truth.to_string(),
        }
    }
}

/// The treatments that are listed.
fn treatments(reader: &mut Reader<'_>, design: &DesignSection, factors: &[Factor]) -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> = Vec::new();
    for (index, written) in design.treatments.iter().flatten().enumerate() {
        let at = format!("treatments[{index}]");
        let Some(row) = combination(reader, &at, written, factors) else { continue };
        if let Some(missing) = row.iter().position(Option::is_none) {
            let message = format!("the treatment does not say the level of `{}`", factors[missing].name);
            let levels: Vec<_> = factors[missing].levels.iter().map(|level| level.name.as_str()).collect();
            error(reader, &at, message, format!("one of {}", suggest::quoted(&levels)));
            continue;
        }
        let row: Vec<_> = row.into_iter().flatten().collect();
        if let Some(first) = rows.iter().position(|other| *other == row) {
            let message = format!("this treatment is the same as number {}", first + 1);
            error(reader, &at, message, "remove it; `replicates` says how often each treatment is run");
        }
        rows.push(row);
    }
    rows
}

/// The factors that are hard to change: those that say so, and those that are so by nature where it costs nothing.
fn hard_to_change(reader: &mut Reader<'_>, design: &DesignSection, factors: &[Factor]) -> Vec<u32> {
    let before = reader.diagnostics.errors();
    let mut hard = Vec::new();
    for (index, name) in design.hard_to_change.iter().enumerate() {
        let path = format!("hard_to_change[{index}]");
        let Some(factor) = factor(reader, &path, name, factors) else { continue };
        if hard.contains(&(factor as u32)) {
            error(reader, &path, format!("`{name}` is named twice"), "name it once");
        } else {
            hard.push(factor as u32);
        }
    }
    for (index, factor) in (0..).zip(factors).filter(|(_, factor)| factor.hard_to_change == Some(true)) {
        if !hard.contains(&index) {
            hard.push(index);
        }
        if design.order == RunOrder::Listed {
            reader.report_at(&format!("factors.{}.hard_to_change", factor.name), listed_plots());
        }
    }
    let slow = (0..).zip(factors).filter(|(index, factor)| factor.takes_long() && !hard.contains(index));
    let slow: Vec<u32> = slow.map(|(index, _)| index).collect();
    // Where nothing else changes between two runs there is nothing to be gained.
    let plain = matches!(design.kind, DesignKind::Full | DesignKind::Fractional) && design.blocks.is_none();
    if plain && design.order == RunOrder::Random && hard.len() + slow.len() < factors.len() {
        hard.extend(slow);
    }
    hard.sort_unstable();
    if !hard.is_empty() && hard.len() == factors.len() && reader.diagnostics.errors() == before {
        let message = "all factors are hard to change: every whole plot has one run";
        warn(reader, "hard_to_change", message, "leave out those that can be changed between two runs");
    }
    hard
}
