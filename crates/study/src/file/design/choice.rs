//! What `[design]` says of factors and levels, by number.

use std::collections::BTreeMap;

use benchmaster_design::regular::Generator;
use benchmaster_design::term::{self, Term};
use benchmaster_record::results::{Direction, GoalRecord};

use super::blocks::Blocks;
use super::check;
use super::sections::{DesignKind, DesignSection, LevelWord, RunOrder};
use crate::diagnostics::Diagnostic;
use crate::file::factors::{Factor, Level};
use crate::file::section::Reader;
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
    let mut good = two_levels(reader, design, factors);
    let names: Vec<_> = factors.iter().map(|factor| factor.name.as_str()).collect();
    let mut choice = DesignChoice {
        layout: Layout::Full,
        interest: Vec::new(),
        exclude: Vec::new(),
        hard_to_change: Vec::new(),
        goal: goal(reader, design),
    };
    good &= choice.goal.is_some() == design.goal.is_some();
    for (index, text) in design.clear.iter().flatten().enumerate() {
        match term::parse(text, &names) {
            Ok(term) => choice.interest.push(term),
            Err(error) => {
                good = false;
                report(
                    reader,
                    &format!("clear[{index}]"),
                    Diagnostic::error(error.to_string()).help(known(&names)),
                );
            }
        }
    }
    for (index, written) in design.exclude.iter().enumerate() {
        let at = format!("exclude[{index}]");
        match combination(reader, &at, written, factors) {
            Some(row) if row.iter().all(Option::is_none) => {
                good = false;
                let message = "an empty combination leaves everything out";
                report(
                    reader,
                    &at,
                    Diagnostic::error(message)
                        .help("name levels: `{ version = \"v3\", delegations = \"on\" }`"),
                );
            }
            Some(row) => choice.exclude.push(row),
            None => good = false,
        }
    }
    let mut explicit = Vec::new();
    good &= treatments(reader, design, factors, &mut explicit);
    choice.layout = match design.kind {
        DesignKind::Full => Layout::Full,
        DesignKind::OneAtATime => Layout::OneAtATime,
        DesignKind::PlackettBurman => Layout::PlackettBurman,
        DesignKind::OrthogonalArray => Layout::OrthogonalArray { runs: design.runs },
        DesignKind::Fractional => Layout::Fraction(fraction(reader, design, &names)),
        DesignKind::Explicit => Layout::Explicit(explicit),
    };
    good &= hard_to_change(reader, design, factors, &mut choice.hard_to_change);
    good.then_some(choice)
}

fn report(reader: &mut Reader<'_>, path: &str, diagnostic: Diagnostic) {
    reader.report_at(&format!("design.{path}"), diagnostic);
}

fn known(names: &[&str]) -> String {
    match names {
        [] => "the study has no factors".into(),
        names => {
            let lettered =
                names.iter().enumerate().map(|(index, name)| format!("{} = `{name}`", term::letter(index)));
            format!("factors: {}", lettered.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Kinds of designs that only factors with two levels can have.
fn two_levels(reader: &mut Reader<'_>, design: &DesignSection, factors: &[Factor]) -> bool {
    let confounded = matches!(design.blocks, Some(Blocks::Confounded(_)));
    let (path, what) = match design.kind {
        DesignKind::Fractional => ("kind", "a fractional design"),
        DesignKind::PlackettBurman => ("kind", "a Plackett-Burman design"),
        DesignKind::Full if confounded => ("blocks", "a design that is spread over blocks"),
        _ => return true,
    };
    if factors.is_empty() {
        let message = format!("{what} needs factors, and the study has none");
        report(
            reader,
            path,
            Diagnostic::error(message).help("add `[factors.NAME]`, or write `kind = \"full\"`"),
        );
        return false;
    }
    let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) else { return true };
    let message =
        format!("{what} has factors with two levels, but `{}` has {}", factor.name, factor.levels.len());
    let help = match path {
        "kind" => {
            "`kind = \"orthogonal-array\"` makes fractions for any numbers of levels; or keep two levels of each factor"
        }
        _ => "`blocks = \"replicates\"` fits every design; or keep two levels of each factor",
    };
    report(reader, path, Diagnostic::error(message).help(help));
    false
}

/// By what a fraction is chosen. Mistakes are reported.
fn fraction(reader: &mut Reader<'_>, design: &DesignSection, names: &[&str]) -> FractionBy {
    if let Some(texts) = &design.generators {
        let mut generators = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            match Generator::parse(text, names) {
                Ok(generator) => generators.push(generator),
                Err(error) => {
                    let diagnostic = Diagnostic::error(error.to_string()).help(known(names));
                    report(reader, &format!("generators[{index}]"), diagnostic);
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
        report(reader, "goal", Diagnostic::error(message).help(help));
        return None;
    };
    if let Some(other) = design.response.as_ref().filter(|other| other != response) {
        let message = format!("the goal is about `{response}`, but `response` is `{other}`");
        report(reader, "goal", Diagnostic::error(message).help("remove `response`: it is that of the goal"));
        return None;
    }
    Some(GoalRecord { direction, response: (*response).to_owned() })
}

/// The level of each factor that is named. `None` when one is not there, which has then been reported.
fn combination(
    reader: &mut Reader<'_>,
    at: &str,
    written: &BTreeMap<String, LevelWord>,
    factors: &[Factor],
) -> Option<Vec<Option<u32>>> {
    let mut row = vec![None; factors.len()];
    let mut good = true;
    for (name, word) in written {
        let path = format!("{at}.{name}");
        let Some(index) = factors.iter().position(|factor| factor.name == *name) else {
            let message = format!("unknown factor `{name}`");
            let help = suggest::suggest(name, "factors", factors.iter().map(|factor| factor.name.as_str()));
            report(reader, &path, Diagnostic::error(message).help(help));
            good = false;
            continue;
        };
        let levels = &factors[index].levels;
        match levels.iter().position(|level| word.is(level)) {
            Some(level) => row[index] = Some(level as u32),
            None => {
                let message = format!("the factor `{name}` has no level `{word}`");
                let help = suggest::suggest(
                    &word.to_string(),
                    "levels",
                    levels.iter().map(|level| level.name.as_str()),
                );
                report(reader, &path, Diagnostic::error(message).help(help));
                good = false;
            }
        }
    }
    good.then_some(row)
}

impl LevelWord {
    fn is(&self, level: &Level) -> bool {
        let plain = level.name.replace('_', "");
        match self {
            Self::Text(text) => level.name == *text,
            Self::Whole(n) => plain.parse() == Ok(*n) || plain.parse() == Ok(*n as f64),
            Self::Number(x) => plain.parse() == Ok(*x),
            Self::Truth(truth) => level.name == truth.to_string(),
        }
    }
}

impl std::fmt::Display for LevelWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Truth(truth) => truth.fmt(f),
        }
    }
}

fn treatments(
    reader: &mut Reader<'_>,
    design: &DesignSection,
    factors: &[Factor],
    rows: &mut Vec<Vec<u32>>,
) -> bool {
    let mut good = true;
    for (index, written) in design.treatments.iter().flatten().enumerate() {
        let at = format!("treatments[{index}]");
        let Some(row) = combination(reader, &at, written, factors) else {
            good = false;
            continue;
        };
        if let Some(missing) = row.iter().position(Option::is_none) {
            let message = format!("the treatment does not say the level of `{}`", factors[missing].name);
            let levels: Vec<_> = factors[missing].levels.iter().map(|level| level.name.as_str()).collect();
            report(
                reader,
                &at,
                Diagnostic::error(message).help(format!("one of {}", suggest::quoted(&levels))),
            );
            good = false;
            continue;
        }
        let row: Vec<_> = row.into_iter().flatten().collect();
        if let Some(first) = rows.iter().position(|other| *other == row) {
            let message = format!("this treatment is the same as number {}", first + 1);
            let help = "remove it; `replicates` says how often each treatment is run";
            report(reader, &at, Diagnostic::error(message).help(help));
            good = false;
        }
        rows.push(row);
    }
    good
}

/// Those named in `[design]` and those that say so themselves.
fn hard_to_change(
    reader: &mut Reader<'_>,
    design: &DesignSection,
    factors: &[Factor],
    hard: &mut Vec<u32>,
) -> bool {
    let mut good = true;
    for (index, name) in design.hard_to_change.iter().enumerate() {
        let path = format!("hard_to_change[{index}]");
        match factors.iter().position(|factor| factor.name == *name) {
            Some(factor) if hard.contains(&(factor as u32)) => {
                report(
                    reader,
                    &path,
                    Diagnostic::error(format!("`{name}` is named twice")).help("name it once"),
                );
                good = false;
            }
            Some(factor) => hard.push(factor as u32),
            None => {
                let message = format!("unknown factor `{name}`");
                let help =
                    suggest::suggest(name, "factors", factors.iter().map(|factor| factor.name.as_str()));
                report(reader, &path, Diagnostic::error(message).help(help));
                good = false;
            }
        }
    }
    for (index, factor) in
        factors.iter().enumerate().filter(|(_, factor)| factor.hard_to_change == Some(true))
    {
        if !hard.contains(&(index as u32)) {
            hard.push(index as u32);
        }
        if design.order == RunOrder::Listed {
            reader.report_at(&format!("factors.{}.hard_to_change", factor.name), check::listed_plots());
            good = false;
        }
    }
    let slow = factors
        .iter()
        .enumerate()
        .filter(|(index, factor)| factor.takes_long() && !hard.contains(&(*index as u32)));
    let slow: Vec<_> = slow.map(|(index, _)| index as u32).collect();
    // Where nothing else changes between two runs there is nothing to be gained.
    let plain = matches!(design.kind, DesignKind::Full | DesignKind::Fractional) && design.blocks.is_none();
    if plain && design.order == RunOrder::Random && hard.len() + slow.len() < factors.len() {
        hard.extend(slow);
    }
    hard.sort_unstable();
    if !hard.is_empty() && hard.len() == factors.len() && good {
        report(
            reader,
            "hard_to_change",
            Diagnostic::warning("all factors are hard to change: every whole plot has one run")
                .help("leave out those that can be changed between two runs"),
        );
    }
    good
}
