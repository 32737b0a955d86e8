//! Warnings and proposals, in plain words.

use benchmaster_design::array::orthogonal_array;
use benchmaster_design::block::blocks;
use benchmaster_design::regular::{Chain, Fraction};
use benchmaster_design::search;
use benchmaster_design::term::{self, Term};
use benchmaster_stats::t_quantile;

use super::command::{Treatments, command};
use super::description::{DesignDescription, Proposal};
use super::facts::Facts;
use super::text::{decimals, roman};
use super::words::{bits, counted, short_list};
use benchmaster_units::format::list;

/// So many effects are named in a warning.
const NAMED: usize = 12;

pub(crate) fn warnings(facts: &Facts<'_>, design: &DesignDescription) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(Err(error)) = &facts.structure {
        warnings.push(format!("what the treatments can tell is not known: {error}"));
    }
    if let Some(fraction) = &facts.fraction {
        of_fraction(facts, fraction, &mut warnings);
    } else {
        of_rows(facts, design, &mut warnings);
    }
    if design.kind == "one-at-a-time" && design.factors.len() > 1 {
        warnings.push(
            "one factor at a time: interactions cannot be seen, and every effect rests on the runs of two treatments \
             alone"
                .to_owned(),
        );
    }
    of_interest(facts, design, &mut warnings);
    of_precision(facts, design, &mut warnings);
    of_blocks(facts, design, &mut warnings);
    warnings
}

/// What a regular fraction mixes up.
fn of_fraction(facts: &Facts<'_>, fraction: &Fraction, warnings: &mut Vec<String>) {
    let both = |term: Term| facts.words.both_of(term);
    let chains = fraction.chains(2);
    let interactions = |chain: &Chain| -> Vec<String> {
        let two = chain.members.iter().filter(|member| term::order(member.term) == 2);
        two.map(|member| both(member.term)).collect()
    };
    match fraction.resolution() {
        Some(3) => {
            let mixed: Vec<_> = chains
                .iter()
                .filter(|chain| {
                    let orders: Vec<_> =
                        chain.members.iter().map(|member| term::order(member.term)).collect();
                    orders.first() == Some(&1) && orders.contains(&2)
                })
                .map(|chain| {
                    let main = chain.members.first().map(|first| both(first.term)).unwrap_or_default();
                    format!("{main} with {}", list(&interactions(chain)))
                })
                .collect();
            warnings.push(format!(
                "resolution III: main effects are aliased with interactions of two factors, so that an effect that is \
                 seen may be that of the interaction: {}",
                joined(&mixed)
            ));
            let words = fraction.defining_words();
            let three: Vec<_> =
                words.iter().filter(|word| term::order(word.term) == 3).map(|word| both(word.term)).collect();
            warnings.push(format!(
                "the mean is aliased with {} {}",
                if three.len() == 1 { "the interaction" } else { "the interactions" },
                short_list(&three, NAMED)
            ));
        }
        Some(4) => {
            let mixed: Vec<_> = chains
                .iter()
                .filter(|chain| chain.members.len() > 1)
                .map(|chain| interactions(chain).join(" = "))
                .collect();
            warnings.push(format!(
                "resolution IV: main effects are clear of interactions of two factors, but these are aliased with each \
                 other: {}",
                joined(&mixed)
            ));
        }
        _ => {}
    }
}

/// The first items with `; ` between them.
fn joined(items: &[String]) -> String {
    match items.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{}; and {more} more", items[..NAMED].join("; ")),
        _ => items.join("; "),
    }
}

/// What rows that are no regular fraction mix up.
fn of_rows(facts: &Facts<'_>, design: &DesignDescription, warnings: &mut Vec<String>) {
    let Some(structure) = facts.low_order() else { return };
    let set = |factors: &[u32]| factors.iter().map(|&factor| factor as usize).collect::<Vec<_>>();
    let constant: Vec<_> = facts
        .input
        .factors
        .iter()
        .enumerate()
        .filter(|(index, _)| {
            let mut levels = facts.input.rows.iter().filter_map(|row| row.get(*index));
            let first = levels.next();
            levels.all(|level| Some(level) == first)
        })
        .map(|(index, _)| facts.words.both(&[index]))
        .collect();
    if !constant.is_empty() {
        warnings.push(format!("never varied, so its effect is unknown: {}", short_list(&constant, NAMED)));
    }
    let lost: Vec<_> = structure
        .terms
        .iter()
        .filter(|term| term.factors.len() == 1 && !term.estimable)
        .map(|term| facts.words.both(&set(&term.factors)))
        .filter(|name| !constant.contains(name))
        .collect();
    if !lost.is_empty() {
        warnings.push(format!(
            "main effects that cannot be estimated beside the others: {}",
            short_list(&lost, NAMED)
        ));
    }
    let worst = |order: usize, with: usize| {
        let terms = structure.terms.iter().filter(move |term| term.factors.len() == order);
        let aliases = terms.flat_map(move |term| {
            let others = term.aliases.iter().filter(move |(other, _)| other.len() == with);
            others.map(move |(other, correlation)| (term, other, correlation.abs()))
        });
        aliases.max_by(|a, b| a.2.total_cmp(&b.2))
    };
    if let Some((term, other, correlation)) = worst(1, 1).filter(|_| design.kind != "one-at-a-time") {
        warnings.push(format!(
            "factors are not varied independently: {} and {} are correlated by {}",
            facts.words.both(&set(&term.factors)),
            facts.words.both(&set(other)),
            decimals(correlation, 2)
        ));
    }
    if design.kind == "one-at-a-time" {
        return;
    }
    if let Some((term, other, correlation)) = worst(1, 2) {
        let (term, other) = (facts.words.both(&set(&term.factors)), facts.words.both(&set(other)));
        let screening = if design.kind == "plackett-burman" { "screening only: " } else { "" };
        let how = if correlation > 1.0 - 1e-6 {
            "cannot all be separated from".to_owned()
        } else {
            format!("are partially aliased (correlation up to {}) with", decimals(correlation, 2))
        };
        warnings.push(format!(
            "{screening}main effects {how} interactions of two factors, as {term} with {other}; a main effect is what \
             it seems only when those interactions are small"
        ));
    }
}

/// Effects of interest that are not clear.
fn of_interest(facts: &Facts<'_>, design: &DesignDescription, warnings: &mut Vec<String>) {
    let Some(fraction) = &facts.fraction else {
        for effect in design.interest.iter().filter(|effect| !effect.clear) {
            warnings.push(format!(
                "the effect of interest {} is partially aliased with {}",
                effect.name,
                short_list(&effect.aliased_with, NAMED)
            ));
        }
        return;
    };
    for of in facts.input.interest.iter().filter_map(|set| bits(set)) {
        let aliases = fraction.aliases(of, 2);
        let aliases: Vec<_> = aliases.iter().map(|alias| facts.words.both_of(alias.term)).collect();
        if !aliases.is_empty() {
            warnings.push(format!(
                "the effect of interest {} cannot be separated from {}",
                facts.words.both_of(of),
                short_list(&aliases, NAMED)
            ));
        }
    }
}

/// Too few runs for an interval worth the name.
fn of_precision(facts: &Facts<'_>, design: &DesignDescription, warnings: &mut Vec<String>) {
    let freedom = design.error.degrees_of_freedom;
    if facts.replicates().0 == 1 && freedom == 0 {
        let without = match design.error.high_order_contrasts {
            0 => "no interval can be given",
            _ => "intervals will rest on effects that are assumed to be zero",
        };
        warnings.push(format!(
            "no treatment is replicated, so the experimental error is not estimated: {without}"
        ));
    } else if (1..6).contains(&freedom) {
        let quantile = t_quantile(0.5 + facts.input.confidence / 2.0, freedom as f64);
        warnings.push(format!(
            "only {} for the error: intervals are {} standard errors to each side, against 2 with many runs",
            if freedom == 1 {
                "1 degree of freedom".to_owned()
            } else {
                format!("{freedom} degrees of freedom")
            },
            decimals(quantile, 2)
        ));
    }
    if let Some(pilot) = facts.input.pilot.filter(|_| facts.input.spread.is_none()) {
        if pilot.standard_deviation.is_none() {
            warnings.push(format!(
                "the pilot `{}` has no treatment with two runs: how much runs vary is not known, and so not the \
                 smallest detectable effect",
                pilot.name
            ));
        } else if pilot.degrees_of_freedom < 6 {
            warnings.push(format!(
                "the pilot `{}` has only {} degrees of freedom: its standard deviation may be wrong by a factor of 2",
                pilot.name, pilot.degrees_of_freedom
            ));
        }
    }
}

/// Blocks that are confounded with what one wants to know.
fn of_blocks(facts: &Facts<'_>, design: &DesignDescription, warnings: &mut Vec<String>) {
    if facts.input.blocks.confounded.is_empty() || design.blocks.is_none() {
        return;
    }
    let touched = |of: Term| {
        let aliases = facts.fraction.as_ref().map(|fraction| fraction.aliases(of, 2)).unwrap_or_default();
        std::iter::once(of).chain(aliases.into_iter().map(|alias| alias.term)).collect::<Vec<_>>()
    };
    let all: Vec<Term> = facts.input.blocks.confounded.iter().flat_map(|&of| touched(of)).collect();
    let interest: Vec<Term> = facts.input.interest.iter().filter_map(|set| bits(set)).collect();
    let names =
        |terms: &mut dyn Iterator<Item = &Term>| terms.map(|&of| facts.words.both_of(of)).collect::<Vec<_>>();
    let lost = names(&mut all.iter().filter(|of| interest.contains(of)));
    if !lost.is_empty() {
        warnings.push(format!(
            "blocks are confounded with effects of interest: {} cannot be separated from differences between blocks",
            short_list(&lost, NAMED)
        ));
    }
    let two = names(&mut all.iter().filter(|&&of| term::order(of) == 2 && !interest.contains(&of)));
    if !two.is_empty() {
        warnings.push(format!(
            "interactions of two factors are confounded with blocks: {}",
            short_list(&two, NAMED)
        ));
    }
}

/// The most runs and factors of fractions that are looked up for proposals: these are found at once.
const MOST_RUNS: u64 = 128;
const MOST_FACTORS: usize = 15;

/// Designs of two-level factors that are better or smaller.
pub(crate) fn proposals(facts: &Facts<'_>, design: &DesignDescription) -> Vec<Proposal> {
    let count = facts.levels.len();
    if design.kind == "data" || !(3..=MOST_FACTORS).contains(&count) {
        return Vec::new();
    }
    if !facts.all_two_level() {
        return mixed(facts, design).into_iter().collect();
    }
    let own = facts.distinct as u64;
    let all = 1u64 << count;
    let sizes: Vec<u64> =
        (2..).map(|log| 1u64 << log).take_while(|&runs| runs < all && runs <= MOST_RUNS).collect();
    // The command has to be one that works: as many blocks as were asked for.
    let within = facts.input.blocks.of_treatment.as_ref().map(|_| facts.input.blocks.blocks_of_replicate());
    let blockable = |fraction: &Fraction| within.is_none_or(|count| blocks(fraction, count as u32).is_ok());
    let found = sizes.iter().filter_map(|&runs| search::by_runs(count as u32, runs).ok());
    let found: Vec<Fraction> = found.filter(blockable).collect();
    let first = |resolution: u32| {
        found.iter().find(|fraction| fraction.resolution().is_some_and(|found| found >= resolution))
    };
    let mut chosen: Vec<Fraction> = Vec::new();
    let mut propose = |fraction: Option<&Fraction>| match fraction {
        Some(fraction) if chosen.iter().all(|other| other.runs() != fraction.runs()) => {
            chosen.push(fraction.clone());
            true
        }
        found => found.is_some(),
    };
    if facts.full {
        // What the full design gives beyond these are interactions of three and more factors.
        if count >= 5 {
            let _ = propose(first(5).filter(|fraction| fraction.runs() < own));
            let _ = propose(first(4).filter(|fraction| fraction.runs() < own));
        }
    } else {
        let resolution = facts.fraction.as_ref().and_then(Fraction::resolution);
        let weaker = |than: u32| resolution.is_none_or(|resolution| resolution < than);
        let mut any = false;
        if let Some(fraction) = &facts.fraction {
            let same = found.iter().find(|other| other.runs() == fraction.runs());
            any |= propose(same.filter(|other| other.word_length_pattern() < fraction.word_length_pattern()));
        }
        for wanted in [4, 5].into_iter().filter(|&wanted| weaker(wanted)) {
            any |= propose(first(wanted));
        }
        let interest: Vec<Term> = facts.input.interest.iter().filter_map(|set| bits(set)).collect();
        if design.interest.iter().any(|effect| !effect.clear) && interest.len() == design.interest.len() {
            let clear = search::by_clear(count as u32, &interest, MOST_RUNS.min(all)).ok();
            any |= propose(clear.filter(blockable).as_ref());
        }
        if !any && weaker(5) && all <= MOST_RUNS {
            let _ = propose(Fraction::full(count as u32).ok().as_ref());
        }
    }
    chosen.sort_by_key(Fraction::runs);
    chosen.iter().map(|fraction| proposal(facts, design, fraction)).collect()
}

/// The most treatments of a mixed-level array that is looked for, and of the design it is compared with.
const MOST_ARRAY_RUNS: u64 = 128;

/// An array of mixed levels in twice, three or four times the treatments whose main effects are clear, when the planned one's are
/// not.
fn mixed(facts: &Facts<'_>, design: &DesignDescription) -> Option<Proposal> {
    let own = facts.distinct as u64;
    if facts.full || design.resolution.is_none_or(|resolution| resolution >= 4) {
        return None;
    }
    let sizes = (2..=4).map(|times| own * times);
    let sizes =
        sizes.filter(|&runs| runs <= MOST_ARRAY_RUNS && facts.combinations.is_none_or(|all| runs < all));
    let (treatments, resolution) = sizes.into_iter().find_map(|runs| {
        let array = orthogonal_array(&facts.levels, u32::try_from(runs).ok()).ok()?;
        array.generalised_resolution.filter(|&resolution| resolution >= 4.0).map(|found| (runs, found))
    })?;
    let replicates = u64::from(facts.replicates().0);
    Some(Proposal {
        treatments,
        runs: treatments * replicates,
        generators: Vec::new(),
        resolution: Some(4),
        still_aliased: Vec::new(),
        options: command(facts, &Treatments::Array(treatments)),
        study_keys: format!("kind = \"orthogonal-array\", runs = {treatments}"),
        text: format!(
            "{}, generalised resolution {}: main effects are clear of interactions of two factors",
            size(treatments, replicates),
            decimals(resolution, 2)
        ),
    })
}

/// `16 treatments (80 runs with 5 replicates)`.
fn size(treatments: u64, replicates: u64) -> String {
    match replicates {
        1 => format!("{treatments} runs"),
        n => format!("{treatments} treatments ({} runs with {n} replicates)", treatments * n),
    }
}

fn proposal(facts: &Facts<'_>, design: &DesignDescription, fraction: &Fraction) -> Proposal {
    let treatments = fraction.runs();
    let replicates = u64::from(facts.replicates().0);
    let runs = treatments * replicates;
    let generators: Vec<_> = fraction.generators().iter().map(ToString::to_string).collect();
    let chains = fraction.chains(2);
    let still_aliased: Vec<_> = chains
        .iter()
        .filter(|chain| chain.members.len() > 1 && chain.members.iter().all(|m| term::order(m.term) > 0))
        .map(ToString::to_string)
        .collect();
    let interest: Vec<_> = facts
        .input
        .interest
        .iter()
        .filter_map(|set| bits(set))
        .filter(|&of| !fraction.aliases(of, 2).is_empty())
        .map(|of| facts.words.both_of(of))
        .collect();
    let gain = match fraction.resolution() {
        None => "full: every effect is estimated alone".to_owned(),
        Some(n) if n >= 5 => format!(
            "resolution {}: main effects and interactions of two factors are clear of each other",
            roman(n)
        ),
        Some(4) => format!(
            "resolution IV: main effects are clear of interactions of two factors; these are still aliased with each \
             other ({})",
            short_list(&still_aliased, 8)
        ),
        Some(n) => format!(
            "resolution {}, with fewer short words than the {} planned: still aliased are {}",
            roman(n),
            counted(design.treatments, "treatment"),
            short_list(&still_aliased, 8)
        ),
    };
    let less = if facts.full { " instead of all combinations" } else { "" };
    let given =
        if generators.is_empty() { String::new() } else { format!(" with {}", generators.join(", ")) };
    let interest = match (facts.input.interest.is_empty(), interest.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "; all effects of interest are clear".to_owned(),
        (false, false) => format!("; of interest and not clear: {}", list(&interest)),
    };
    Proposal {
        treatments,
        runs,
        resolution: fraction.resolution(),
        still_aliased,
        options: command(facts, &Treatments::Fraction(&generators)),
        study_keys: study_keys(&generators),
        text: format!("{}{given}{less}, {gain}{interest}", size(treatments, replicates)),
        generators,
    }
}

/// Keys of a study that make a design with these generators.
fn study_keys(generators: &[String]) -> String {
    match generators {
        [] => "kind = \"full\"".to_owned(),
        generators => format!("kind = \"fractional\", generators = {generators:?}"),
    }
}
