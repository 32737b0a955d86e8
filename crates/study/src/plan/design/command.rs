//! The command that shows another design for what was asked: all options of a description, with other treatments.

use benchmaster_design::term;

use super::facts::{DesignInput, Facts, MAX_ORDER, POWER};
use super::pilot::Spread;
use super::request::level_names;
use super::text::decimals;
use super::words::bits;
use crate::settings::quote;

/// Which treatments are proposed.
pub(super) enum Treatments<'a> {
    /// A fraction by its generators; all combinations without any.
    Fraction(&'a [String]),
    /// An orthogonal array of this size.
    Array(u64),
}

pub(super) fn command(facts: &Facts<'_>, treatments: &Treatments<'_>) -> String {
    let words: Vec<_> = arguments(facts, treatments).iter().map(|word| quote(word)).collect();
    format!("benchmaster plan {}", words.join(" "))
}

/// Options that are at their defaults are left out.
fn arguments(facts: &Facts<'_>, treatments: &Treatments<'_>) -> Vec<String> {
    let DesignInput { factors, interest, blocks, pilot, .. } = facts.input;
    let mut all = Vec::new();
    let mut add = |option: &str, value: Option<String>| {
        all.extend(value.into_iter().flat_map(|value| [format!("--{option}"), value]));
    };
    let named: Vec<String> = factors.iter().map(named).collect();
    let letters = factors.iter().enumerate().all(|(index, _)| named[index] == facts.words.letter(index));
    let counted = named.iter().all(|text| !text.contains('=')) && !facts.all_two_level();
    let counts = facts.levels.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    add("factors", (!(letters && counted)).then(|| named.join(",")));
    add("levels", counted.then_some(counts));
    match treatments {
        Treatments::Fraction([]) => {}
        Treatments::Fraction(generators) => add("generators", Some(generators.join(","))),
        Treatments::Array(runs) => add("runs", Some(runs.to_string())),
    }
    let effects = interest.iter().map(|effect| effect_name(facts, effect)).collect::<Vec<_>>().join(",");
    add("clear", Some(effects).filter(|text| !text.is_empty()));
    let within = blocks.of_treatment.as_ref().map(|_| blocks.blocks_of_replicate());
    add("blocks", within.map(|count| count.to_string()));
    let hard: Vec<&str> = factors.iter().filter(|f| f.hard_to_change).map(|f| f.name.as_str()).collect();
    add("hard-to-change", (!hard.is_empty()).then(|| hard.join(",")));
    let number = |value: u32, default: u32| (value != default).then(|| value.to_string());
    add("centre-points", number(facts.input.centre_points, 0));
    add("replicates", number(facts.replicates().0, 1));
    let share = |value: f64, default: f64| (value != default).then(|| value.to_string());
    add("confidence", share(facts.input.confidence, 0.95));
    add("pilot", pilot.map(|pilot| pilot.name.clone()));
    add("response", pilot.map(|pilot| pilot.response.clone()));
    add("sd", facts.input.spread.map(spread));
    add("effect", facts.input.effect.map(spread));
    add("power", share(facts.input.power, POWER));
    add("max-order", number(facts.input.max_order, MAX_ORDER));
    if blocks.replicates && within.is_none() {
        all.push("--replicate-blocks".into());
    }
    all
}

/// A factor with its levels, unless they are those of a factor whose levels have no names, or cannot be written in a list.
fn named(factor: &super::facts::DesignFactor) -> String {
    let known = factor.levels == level_names(factor.levels.len() as u32);
    if known || factor.levels.iter().any(|level| level.contains([',', ':'])) {
        return factor.name.clone();
    }
    format!("{}={}", factor.name, factor.levels.join(":"))
}

/// An effect in letters, unless names of factors make those ambiguous.
fn effect_name(facts: &Facts<'_>, effect: &[usize]) -> String {
    let letters = facts.words.letters(effect);
    let names: Vec<&str> = facts.input.factors.iter().map(|factor| factor.name.as_str()).collect();
    if bits(effect).is_some_and(|term| term::parse(&letters, &names) == Ok(term)) {
        return letters;
    }
    effect.iter().filter_map(|&factor| names.get(factor).copied()).collect::<Vec<_>>().join("*")
}

fn spread(spread: Spread) -> String {
    match spread {
        Spread::Absolute(value) => value.to_string(),
        Spread::Relative(share) => format!("{}%", decimals(100.0 * share, 9)),
    }
}
