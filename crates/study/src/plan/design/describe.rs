//! What a design can tell, worked out from its treatments alone.

use std::collections::BTreeMap;

use benchmaster_design::word_length::generalised_resolution;

use super::description::*;
use super::facts::{DesignFactor, DesignInput, Facts};
use super::{advice, aliases, blocks, precision, replicates, text};

/// Everything that can be said of a design before it is run.
pub fn describe(input: &DesignInput<'_>) -> DesignDescription {
    let facts = Facts::new(input);
    let (min, max) = facts.replicates();
    let (runs_min, runs_max) = facts.runs();
    let found = aliases::find(&facts);
    let (pattern, resolution, generalised) = word_lengths(&facts);
    let split_plot = blocks::split_plot(&facts);
    let mut description = DesignDescription {
        kind: input.kind.clone(),
        title: String::new(),
        confidence: input.confidence,
        factors: input
            .factors
            .iter()
            .zip(0..)
            .map(|(factor, index)| FactorDescription {
                letter: facts.words.letter(index),
                name: factor.name.clone(),
                levels: factor.levels.clone(),
                hard_to_change: factor.hard_to_change,
            })
            .collect(),
        treatments: facts.distinct as u64,
        combinations: facts.combinations,
        replicates: Bounds { min: u64::from(min), max: u64::from(max) },
        runs: Bounds { min: runs_min, max: runs_max },
        sign_table: sign_table(&facts),
        generators: facts.fraction.iter().flat_map(|f| f.generators()).map(ToString::to_string).collect(),
        defining_words: found.defining_words,
        defining_relation: found.defining_relation,
        word_length_pattern: pattern,
        resolution,
        generalised_resolution: generalised,
        max_order: found.max_order,
        chains: found.chains,
        chains_left_out: found.chains_left_out,
        terms: found.terms,
        terms_left_out: found.terms_left_out,
        clear: found.clear,
        interest: found.interest,
        error: precision::error(&facts),
        smallest_detectable: precision::detectable(&facts, split_plot.as_ref()),
        replicates_needed: replicates::replicates_needed(input),
        time: precision::time(&facts),
        split_plot,
        blocks: blocks::blocks(&facts),
        centre_points: blocks::centre_points(&facts),
        exclusions: blocks::exclusions(&facts),
        warnings: Vec::new(),
        proposals: Vec::new(),
    };
    description.title = text::title(&description);
    description.proposals = advice::proposals(&facts, &description);
    description.warnings = advice::warnings(&facts, &description);
    description
}

/// The word-length pattern, the resolution and its generalisation.
fn word_lengths(facts: &Facts<'_>) -> (BTreeMap<u32, WordCount>, Option<u32>, Option<f64>) {
    if facts.full || facts.input.rows.is_empty() {
        return Default::default();
    }
    let lengths = |pattern: Vec<WordCount>| -> BTreeMap<_, _> {
        pattern.into_iter().zip(0..).skip(1).filter(|(n, _)| !n.is_zero()).map(|(n, l)| (l, n)).collect()
    };
    if let Some(fraction) = &facts.fraction {
        let pattern = fraction.word_length_pattern().into_iter().map(WordCount::Words).collect();
        let resolution = fraction.resolution();
        return (lengths(pattern), resolution, resolution.map(f64::from));
    }
    let Some(Ok(structure)) = &facts.structure else { return Default::default() };
    let pattern = structure.word_length_pattern.clone().unwrap_or_default();
    let pattern = lengths(pattern.into_iter().map(WordCount::Share).collect());
    let resolution = pattern.keys().next().copied();
    let generalised = resolution.and_then(|_| generalised_resolution(&facts.input.rows, &facts.levels));
    (pattern, resolution, generalised)
}

fn sign_table(facts: &Facts<'_>) -> SignTable {
    let input = facts.input;
    let cell = |(factor, &level): (&DesignFactor, &u32)| match factor.levels.len() {
        2 => Cell::Sign(if level == 0 { -1 } else { 1 }),
        _ => Cell::Level(factor.levels.get(level as usize).cloned().unwrap_or_default()),
    };
    let rows = input.rows.iter().map(|row| input.factors.iter().zip(row).map(cell).collect());
    let centre = (input.centre_points > 0).then(|| vec![Cell::Sign(0); input.factors.len()]);
    SignTable {
        columns: (0..input.factors.len()).map(|factor| facts.words.letter(factor)).collect(),
        rows: rows.chain(centre).collect(),
    }
}
