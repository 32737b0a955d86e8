//! Blocks, split plots, centre points and exclusions.

use std::collections::BTreeMap;

use benchmaster_design::exclude;
use benchmaster_design::term::{self, Term};

use super::description::{
    BlockDescription, Bounds, CentrePoints, Exclusions, ModelCost, NewCorrelation, SplitPlot,
};
use super::facts::Facts;
use super::words::{counted, short_list};
use benchmaster_units::format::list;

pub(crate) fn blocks(facts: &Facts<'_>) -> Option<BlockDescription> {
    let input = &facts.input.blocks;
    let replicates = u64::from(facts.replicates().0);
    let within = input.blocks_of_replicate();
    let (kind, blocks, mut text) = match (&input.of_treatment, input.replicates, input.named.is_empty()) {
        (Some(_), true, _) => (
            "confounded within replicates",
            within * replicates,
            format!(
                "every replicate is complete before the next one begins, in its own {}",
                counted(within, "block")
            ),
        ),
        (Some(_), false, _) => ("confounded", within, format!("{} per replicate", counted(within, "block"))),
        (None, true, _) => (
            "replicates",
            replicates,
            "every replicate is complete before the next one begins; differences between replicates (drift, a server \
             that was restarted) are taken off the error"
                .to_owned(),
        ),
        (None, false, false) => (
            "named",
            facts.total_blocks(facts.replicates().0),
            format!(
                "complete replicates go to {} in turn; their differences are taken off the error",
                list(&input.named)
            ),
        ),
        (None, false, true) => return None,
    };
    let letters = |terms: &[Term]| terms.iter().map(|&term| term::letters(term)).collect::<Vec<_>>();
    if !input.confounded.is_empty() {
        let names: Vec<_> = input.confounded.iter().map(|&term| facts.words.both_of(term)).collect();
        text +=
            &format!("; what cannot be separated from differences between blocks: {}", short_list(&names, 8));
    }
    Some(BlockDescription {
        kind: kind.to_owned(),
        blocks,
        names: input.named.clone(),
        generators: letters(&input.generators),
        confounded: input.confounded.iter().map(|&term| with_aliases(facts, term)).collect(),
        of_row: input.of_treatment.clone(),
        text,
    })
}

/// A confounded interaction and what it is aliased with: `ABC=DE`.
fn with_aliases(facts: &Facts<'_>, of: Term) -> String {
    let aliases = facts.fraction.as_ref().map(|fraction| fraction.aliases(of, facts.input.max_order));
    aliases
        .unwrap_or_default()
        .iter()
        .fold(term::letters(of), |all, &alias| format!("{all}={}", facts.words.signed(alias)))
}

pub(crate) fn split_plot(facts: &Facts<'_>) -> Option<SplitPlot> {
    let hard: Vec<usize> = facts
        .input
        .factors
        .iter()
        .enumerate()
        .filter(|(_, factor)| factor.hard_to_change)
        .map(|(index, _)| index)
        .collect();
    if hard.is_empty() {
        return None;
    }
    let mut plots: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for row in facts.input.rows.iter() {
        *plots.entry(hard.iter().filter_map(|&f| row.get(f).copied()).collect()).or_default() += 1;
    }
    let whole_plots = plots.len() as u64;
    let replicates = u64::from(facts.replicates().0);
    let error = super::precision::error(facts).degrees_of_freedom;
    // Replicates as blocks take one degree of freedom each from the error between whole plots.
    let blocks = if facts.input.blocks.replicates { replicates - 1 } else { 0 };
    let between = (whole_plots * (replicates - 1)).saturating_sub(blocks);
    let factors: Vec<_> =
        hard.iter().filter_map(|&f| facts.input.factors.get(f)).map(|f| f.name.clone()).collect();
    let effects = whole_plot_effects(facts, &hard);
    let mut text = format!(
        "{} set up {} per replicate, each with {}; order is random between whole plots, and within each",
        if factors.len() == 1 { format!("{} is", factors[0]) } else { format!("{} are", list(&factors)) },
        if whole_plots == 1 { "once".to_owned() } else { format!("{whole_plots} times") },
        match (plots.values().min(), plots.values().max()) {
            (Some(min), Some(max)) if min != max => format!("{min} to {max} runs"),
            (Some(&min), _) => counted(min, "run"),
            _ => "no run".to_owned(),
        }
    );
    text += &match between {
        0 => {
            ". Their effects cannot be judged: there is no second whole plot with the same levels; plan more \
              replicates"
                .to_owned()
        }
        n => format!(
            ". Their effects are judged by the error between whole plots ({n} degrees of freedom), all others by \
             that within ({})",
            error.saturating_sub(n)
        ),
    };
    Some(SplitPlot {
        factors,
        whole_plots,
        runs_per_whole_plot: Bounds {
            min: plots.values().min().copied().unwrap_or(0),
            max: plots.values().max().copied().unwrap_or(0),
        },
        whole_plot_degrees_of_freedom: between,
        sub_plot_degrees_of_freedom: error.saturating_sub(between),
        whole_plot_effects: effects,
        text,
    })
}

/// Main effects of hard-to-change factors and their interactions; in a fraction also what they are aliased with.
fn whole_plot_effects(facts: &Facts<'_>, hard: &[usize]) -> Vec<String> {
    let count = facts.levels.len() as u32;
    if count > term::MAX_FACTORS {
        return hard.iter().map(|&factor| facts.words.letter(factor)).collect();
    }
    let all: Term = hard.iter().map(|&factor| 1u64 << factor).sum();
    let own = |of: Term| of & !all == 0;
    let is_between = |of: Term| match &facts.fraction {
        // A column that is a product of hard-to-change factors never changes within a whole plot.
        Some(fraction) => own(of) || span(fraction, hard).contains(&fraction.column(of)),
        None => own(of),
    };
    let terms = term::up_to(count, facts.input.max_order);
    let found = terms.into_iter().filter(|&of| of != 0 && is_between(of));
    found.map(term::letters).take(super::aliases::MOST_CHAINS).collect()
}

/// The columns of all products of these factors.
fn span(fraction: &benchmaster_design::regular::Fraction, hard: &[usize]) -> Vec<u64> {
    let mut columns = vec![0];
    for &factor in hard.iter().take(16) {
        let column = fraction.column(1 << factor);
        let more: Vec<u64> = columns.iter().map(|other| other ^ column).collect();
        columns.extend(more);
    }
    columns
}

pub(crate) fn centre_points(facts: &Facts<'_>) -> Option<CentrePoints> {
    let per_block = facts.input.centre_points;
    if per_block == 0 {
        return None;
    }
    let runs = facts.centre_runs(facts.replicates().0);
    let freedom = match runs - 1 {
        0 => "no degree of freedom".to_owned(),
        1 => "1 degree of freedom".to_owned(),
        n => format!("{n} degrees of freedom"),
    };
    let text = format!(
        "{} in the middle of all factors: they show whether the response is a straight line between the levels \
         (curvature), and add {freedom} for the error",
        counted(runs, "run")
    );
    Some(CentrePoints { per_block, runs, text })
}

pub(crate) fn exclusions(facts: &Facts<'_>) -> Option<Exclusions> {
    let all = facts.input.before_exclusion.as_ref()?;
    // It fails only for rows that do not fit the factors, and designs too large to be run.
    let cost = exclude::cost(all, &facts.input.rows, &facts.levels).ok()?;
    let left_out = all.len().saturating_sub(facts.input.rows.len()) as u64;
    let set = |factors: &[u32]| factors.iter().map(|&f| f as usize).collect::<Vec<_>>();
    let correlation = cost.correlation.as_ref().map(|found| NewCorrelation {
        terms: [0, 1].map(|index: usize| facts.words.letters(&set(&found.terms[index]))),
        before: found.before,
        after: found.after,
    });
    let models: Vec<_> = cost
        .models
        .iter()
        .map(|model| ModelCost {
            order: model.order,
            parameters_before: model.rank_before as u64,
            parameters_after: model.rank_after as u64,
            d_efficiency: model.d_efficiency,
        })
        .collect();
    let mut text = format!("{left_out} of {} left out", counted(all.len() as u64, "treatment"));
    for model in &models {
        let what = if model.order < 2 { "main effects" } else { "with two-factor interactions" };
        text += &match model.d_efficiency {
            Some(efficiency) => format!("; {what}: D-efficiency {:.1} %", 100.0 * efficiency),
            None => {
                let lost = model.parameters_before.saturating_sub(model.parameters_after);
                format!("; {what}: {} of {} parameters lost", lost, model.parameters_before)
            }
        };
    }
    if !cost.lost.is_empty() {
        let names: Vec<_> = cost.lost.iter().map(|term| facts.words.both(&set(&term.factors))).collect();
        text += &format!("; can no longer be estimated in full: {}", short_list(&names, 8));
    }
    if let Some(NewCorrelation { terms: [a, b], after, .. }) = &correlation {
        text += &format!("; {a} and {b} are now correlated by {after:.2}");
    }
    Some(Exclusions {
        treatments: left_out,
        of: all.len() as u64,
        models,
        lost: cost.lost.iter().map(|term| facts.words.letters(&set(&term.factors))).collect(),
        largest_correlation: correlation,
        text,
    })
}
