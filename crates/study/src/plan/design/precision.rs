//! How precise the experiment will be, and how long it will take.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_design::term;
use benchmaster_stats::power::detectable_noncentrality;

use super::description::{DetectableEffect, ErrorFreedom, SmallestDetectable, SplitPlot, TimeEstimate};
use super::facts::Facts;
use super::pilot::Spread;
use super::text::decimals;
use super::words::counted;
use benchmaster_units::format::list;

/// Degrees of freedom of the experimental error.
pub(crate) fn error(facts: &Facts<'_>) -> ErrorFreedom {
    let input = facts.input;
    let replicates = facts.replicates().0;
    let runs = facts.runs().0;
    let cells = facts.distinct as u64 + u64::from(input.centre_points > 0);
    // What is confounded takes the place of differences within a replicate; the others cost degrees of freedom.
    let taken = facts.total_blocks(replicates) - input.blocks.blocks_of_replicate();
    let pure = runs.saturating_sub(cells);
    let degrees_of_freedom = pure.saturating_sub(taken);
    let high_order_contrasts = high_order(facts);
    let mut text =
        format!("{degrees_of_freedom}, from {} of {}", counted(runs, "run"), counted(cells, "treatment"));
    if taken > 0 {
        text += &format!("; {} used by differences between blocks", taken.min(pure));
    }
    if degrees_of_freedom == 0 {
        text = match high_order_contrasts {
            0 => "none: no degrees of freedom for the error; replicate".to_owned(),
            n => format!(
                "none from replicates: intervals will rest on Lenth's method, or on {} of three and more factors \
                 taken as error, if those interactions are nothing",
                counted(n, "contrast")
            ),
        };
    }
    ErrorFreedom { degrees_of_freedom, high_order_contrasts, text }
}

/// Contrasts without a main effect or interaction of two factors in them.
fn high_order(facts: &Facts<'_>) -> u64 {
    if let Some(fraction) = &facts.fraction {
        let columns: BTreeSet<u64> =
            term::up_to(fraction.factors(), 2).into_iter().map(|term| fraction.column(term)).collect();
        return fraction.runs() - columns.len() as u64;
    }
    if facts.full {
        let one: u64 = facts.levels.iter().map(|&n| u64::from(n) - 1).sum();
        let squares: u64 = facts.levels.iter().map(|&n| (u64::from(n) - 1).pow(2)).sum();
        return (facts.distinct as u64).saturating_sub(1 + one + (one * one - squares) / 2);
    }
    let model = facts.structure.as_ref().and_then(|found| found.as_ref().ok()).and_then(|structure| {
        structure.models.iter().rfind(|model| model.order <= 2).map(|model| model.rank)
    });
    model.map_or(0, |rank| facts.distinct.saturating_sub(rank) as u64)
}

/// The spread of runs: absolute, as a share of the mean, what it assumes.
struct Known {
    source: &'static str,
    absolute: Option<f64>,
    relative: Option<f64>,
    assumptions: Vec<String>,
}

fn spread(facts: &Facts<'_>) -> Option<Known> {
    let pilot = facts.input.pilot;
    if let Some(given) = facts.input.spread {
        let mean = pilot.map(|pilot| pilot.mean).filter(|&mean| mean > 0.0);
        let (absolute, relative) = match given {
            Spread::Absolute(s) => (Some(s), mean.map(|mean| s / mean)),
            Spread::Relative(share) => (mean.map(|mean| share * mean), Some(share)),
        };
        let assumptions = vec!["runs of every treatment vary as much as was given".to_owned()];
        return Some(Known { source: "given", absolute, relative, assumptions });
    }
    let pilot = pilot?;
    let runs = pilot.treatments.iter().map(|treatment| treatment.2).sum::<u64>();
    let mut assumptions = vec![format!(
        "runs vary as much as in the pilot `{}` ({} of {}, {} degrees of freedom)",
        pilot.name,
        counted(runs, "run"),
        counted(pilot.treatments.len() as u64, "treatment"),
        pilot.degrees_of_freedom
    )];
    let (absolute, relative) = if pilot.spans_magnitudes() && pilot.relative_standard_deviation.is_some() {
        assumptions.push(format!(
            "means of treatments differ by a factor of {:.0}, so that logarithms will be analysed: effects are shares \
             of each treatment's own mean",
            pilot.range.unwrap_or(0.0)
        ));
        (None, pilot.relative_standard_deviation)
    } else {
        assumptions.push("the spread is the same in all treatments".to_owned());
        let absolute = pilot.standard_deviation?;
        (Some(absolute), (pilot.mean > 0.0).then(|| absolute / pilot.mean))
    };
    relative.or(absolute)?;
    Some(Known { source: "pilot", absolute, relative, assumptions })
}

/// Terms that the analysis judges together, by F tests with Holm's correction.
fn family(facts: &Facts<'_>) -> usize {
    let factors = facts.levels.iter().filter(|&&levels| levels > 1).count();
    let contrasts = facts.distinct.saturating_sub(1);
    let terms = match &facts.fraction {
        _ if facts.full => {
            u32::try_from(factors).ok().and_then(|n| 2usize.checked_pow(n)).map_or(usize::MAX, |n| n - 1)
        }
        Some(fraction) => fraction.runs() as usize - 1,
        None => factors + factors * factors.saturating_sub(1) / 2,
    };
    terms.min(contrasts).max(1)
}

/// The standard error of the difference of two levels of a factor, for a standard deviation of 1, and the runs at the levels.
fn contrast(facts: &Facts<'_>, factor: usize) -> Option<([u64; 2], f64)> {
    let replicates = u64::from(facts.replicates().0);
    let (mut runs, levels) = (rarest_levels(facts, factor)?, *facts.levels.get(factor)?);
    let mut error = (1.0 / runs[0] as f64 + 1.0 / runs[1] as f64).sqrt();
    // Factors that are not balanced against each other: all are estimated together.
    let terms =
        facts.low_order().filter(|_| !facts.full && facts.fraction.is_none()).map(|found| &found.terms);
    let term = terms.into_iter().flatten().find(|term| term.factors == [factor as u32]);
    if let Some(inflation) = term.and_then(|term| term.variance_inflation) {
        let all = facts.input.rows.len() as u64 * replicates;
        error = (inflation * 2.0 * f64::from(levels) / all as f64).sqrt();
    }
    if facts.input.kind == "one-at-a-time" {
        runs = [replicates; 2];
    }
    Some((runs, error))
}

/// The smallest effect of each factor that will be found, with the fewest replicates.
pub(crate) fn detectable(facts: &Facts<'_>, plots: Option<&SplitPlot>) -> Option<SmallestDetectable> {
    let Known { source, absolute, relative, mut assumptions } = spread(facts)?;
    let freedom = error(facts);
    let (power, confidence) = (facts.input.power, facts.input.confidence);
    let degrees_of_freedom = match freedom.degrees_of_freedom {
        0 => {
            assumptions.push(format!(
                "without replicates, {} of three and more factors stand for the error",
                counted(freedom.high_order_contrasts, "contrast")
            ));
            freedom.high_order_contrasts
        }
        n => plots.map_or(n, |plots| plots.sub_plot_degrees_of_freedom),
    };
    if degrees_of_freedom == 0 {
        return None;
    }
    let family = family(facts);
    let level = 1.0 - (1.0 - confidence) / family as f64;
    if family > 1 {
        assumptions
            .push(format!("{family} terms are judged together (Holm), and it is the only one that is there"));
    }
    assumptions.push("what it is aliased with is nothing".to_owned());
    let between = plots.map_or(0, |plots| plots.whole_plot_degrees_of_freedom);
    let of_plots = |factor: usize| {
        plots.is_some_and(|plots| plots.whole_plot_effects.contains(&facts.words.letter(factor)))
    };
    if let Some(plots) = plots {
        let set = facts.input.factors.iter().enumerate().filter(|(index, _)| of_plots(*index));
        let names = list(&set.map(|(_, factor)| factor.name.clone()).collect::<Vec<_>>());
        assumptions.push(match between {
            0 => format!("{names} left out: nothing shows how much whole plots differ"),
            _ => format!(
                "for {names}, whole plots differ no more than their runs explain; if runs vary only from plot to plot, \
                 that effect is {} times as large",
                decimals((plots.runs_per_whole_plot.max as f64).sqrt(), 2)
            ),
        });
    }
    let effects = facts.input.factors.iter().enumerate().filter_map(|(index, factor)| {
        let degrees_of_freedom = if of_plots(index) { between } else { degrees_of_freedom };
        let (runs, errors) = contrast(facts, index).filter(|_| degrees_of_freedom > 0)?;
        let contrasts = facts.levels.get(index)?.saturating_sub(1).max(1) as usize;
        let squares = detectable_noncentrality(contrasts, degrees_of_freedom as usize, level, power).ok()?;
        let ratio = squares.sqrt();
        let effect = absolute.map(|s| ratio * s * errors);
        Some(DetectableEffect {
            term: facts.words.letter(index),
            name: factor.name.clone(),
            runs,
            effect,
            half_effect: effect.map(|effect| effect / 2.0),
            relative_effect: relative.map(|s| ratio * s * errors),
            degrees_of_freedom,
        })
    });
    Some(SmallestDetectable {
        source: source.to_owned(),
        response: facts.input.pilot.map(|pilot| pilot.response.clone()),
        unit: facts.input.pilot.map(|pilot| pilot.unit.clone()),
        standard_deviation: absolute,
        relative_standard_deviation: relative,
        degrees_of_freedom,
        power,
        effects: effects.collect(),
        assumptions,
    })
}

/// Runs at the two levels of a factor that have the fewest; `None` when it has not two levels in the rows.
fn rarest_levels(facts: &Facts<'_>, factor: usize) -> Option<[u64; 2]> {
    let mut runs: BTreeMap<u32, u64> = BTreeMap::new();
    for row in facts.input.rows.iter() {
        *runs.entry(*row.get(factor)?).or_default() += u64::from(facts.replicates().0);
    }
    let mut counts: Vec<u64> = runs.into_values().collect();
    counts.sort_unstable();
    Some([*counts.first()?, *counts.get(1)?])
}

/// The time of all runs, from those of the pilot.
pub(crate) fn time(facts: &Facts<'_>) -> Option<TimeEstimate> {
    let pilot = facts.input.pilot?;
    let runs: u64 = pilot.treatments.iter().map(|treatment| treatment.2).sum();
    let total: f64 = pilot.treatments.iter().map(|(_, seconds, runs)| seconds * *runs as f64).sum();
    let mean_run_seconds = total / runs as f64;
    let (mut seconds, mut measured) = (0.0, 0);
    for row in facts.input.rows.iter() {
        let planned = facts.input.factors.iter().zip(row);
        let planned: BTreeMap<&str, &str> = planned
            .filter_map(|(factor, &level)| {
                Some((factor.name.as_str(), factor.levels.get(level as usize)?.as_str()))
            })
            .collect();
        let same = pilot.treatments.iter().find(|(levels, ..)| {
            levels.len() == planned.len()
                && levels.iter().all(|(name, level)| planned.get(name.as_str()) == Some(&level.as_str()))
        });
        measured += u64::from(same.is_some());
        seconds += same.map_or(mean_run_seconds, |treatment| treatment.1);
    }
    let (min, max) = facts.replicates();
    let centre = facts.centre_runs(min) as f64 * mean_run_seconds;
    let of = |replicates: u32| seconds * f64::from(replicates) + centre;
    let rows = facts.input.rows.len() as u64;
    Some(TimeEstimate {
        seconds_min: of(min),
        seconds_max: of(max),
        mean_run_seconds,
        pilot_runs: runs,
        treatments_measured: measured,
        treatments_assumed: rows - measured,
    })
}
