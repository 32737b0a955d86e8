//! What the factors do to the response.

use benchmaster_analysis::experiment::{Experiment, LevelMeans, Prediction, Ranged, TermEstimate};
use benchmaster_analysis::{self, Analysis, ContrastSummary, FactorSummary};
use benchmaster_record::results::Unit;

use super::results::show;
use crate::document::{Block, Cell, Section, Table};
use crate::format::{self, Scale, rounded};
use crate::plots::effects::{is_check, short_label};
use crate::plots::figure::Figure;

/// Rows of a table of effects; the JSON of `benchmaster analyze` has all.
const MOST_EFFECTS: usize = 64;

/// How the factors change the response: sentences, plots, tables.
pub(super) fn section(analysis: &Analysis, has_factors: bool, plots: Vec<Figure>) -> Section {
    let title = format!("Effects of the factors on {}", analysis.effects_on);
    let blocks = if has_factors { effects(analysis, plots) } else { Vec::new() };
    Section::new("effects", title).full(blocks)
}

fn effects(analysis: &Analysis, plots: Vec<Figure>) -> Vec<Block> {
    let unit = analysis.effects_unit.unwrap_or(Unit::Ratio);
    let mut blocks = match &analysis.effects {
        benchmaster_analysis::Effects::None { reason } => {
            vec![Block::Sentence(format!("Not estimable: {reason}."))]
        }
        benchmaster_analysis::Effects::Experiment(found) => experiment(found, plots),
        benchmaster_analysis::Effects::OneAtATime(_) => Vec::new(),
    };
    let levels = match &analysis.effects {
        benchmaster_analysis::Effects::OneAtATime(levels) => Some(levels),
        _ => analysis.levels.as_ref(),
    };
    if let Some(levels) = levels {
        let mut tables: Vec<_> = levels.factors.iter().map(|f| level_table(f, unit)).collect();
        if let Some(last) = tables.last_mut() {
            last.note = format!("{} {}", levels.note, comparison_note(analysis.confidence));
        }
        // Level means are what is looked for first.
        let is_fold = |block: &Block| matches!(block, Block::Fold(..));
        let first = blocks.iter().position(is_fold).unwrap_or(blocks.len());
        blocks.splice(first..first, tables.into_iter().map(Block::Table));
    }
    blocks
}

/// The effects of an experiment without the means of its levels.
pub(crate) fn experiment(found: &Experiment, plots: Vec<Figure>) -> Vec<Block> {
    let coding: Vec<_> = found
        .factors
        .iter()
        .map(|factor| match (&factor.levels[..], factor.coding) {
            ([low, high], "two-level") => {
                format!("{} {}: low (−1) {low}, high (+1) {high}", factor.letter, factor.name)
            }
            (levels, _) => format!("{} {}: {}", factor.letter, factor.name, levels.join(", ")),
        })
        .collect();
    // The conclusion stands alone; everything else is how sure it is.
    let conclusion = found.conclusion();
    let mut text: Vec<String> =
        found.sentences.iter().filter(|s| Some(*s) != conclusion.as_ref()).cloned().collect();
    text.push(format!(
        "Half effect q: from low to high the response changes by the full effect 2q. {}.",
        coding.join("; ")
    ));
    text.extend(found.predictions.iter().filter(|p| p.asked).map(|p| prediction(p, found)));
    text.extend(found.residuals.checks.iter().filter(|c| c.fine).map(|c| c.sentence.clone()));
    text.extend(
        found.residuals.no_checks.iter().map(|reason| format!("Residuals cannot be checked: {reason}.")),
    );
    let (mut checks, mut plots): (Vec<_>, Vec<_>) = plots.into_iter().partition(is_check);
    let first = (!plots.is_empty()).then(|| plots.remove(0));
    let effects = match first {
        Some(sizes) => Block::Beside(Box::new(sizes), effect_table(found)),
        None => Block::Table(effect_table(found)),
    };
    let tables = [Some(variation_table(found)), chains(found), reduced(found)];
    let sure = text.into_iter().map(Block::Sentence);
    let sure =
        sure.chain(tables.into_iter().flatten().map(Block::Table)).chain(checks.drain(..).map(Block::from));
    let conclusion = conclusion.into_iter().map(Block::Sentence);
    let shown = conclusion.chain([effects]).chain(plots.into_iter().map(Block::from));
    shown.chain([Block::Fold("How sure".into(), sure.collect())]).collect()
}

fn chains(found: &Experiment) -> Option<Table> {
    let aliased = found.aliases.iter().flatten().filter(|chain| chain.terms.len() > 1);
    Table::of("Aliased terms of each estimate", aliased.take(MOST_EFFECTS))
        .column("estimate", |chain| Cell::text(chain.terms.first().map_or("", String::as_str)))
        .column("sum of", |chain| Cell::text(&chain.text))
        .column("by name|1", |chain| Cell::text(chain.names.join(", ")))
        .filled()
}

fn reduced(found: &Experiment) -> Option<Table> {
    let reduced = found.reduced.as_ref()?;
    let caption = format!("Reduced model: {}", reduced.equation.as_deref().unwrap_or("significant terms"));
    let table = Table::of(caption, &reduced.coefficients)
        .column("term", |term| Cell::text(term_name(term)))
        .column("#coefficient", |term| Cell::amount(term.coefficient, term.half_width, unit_of(found), None))
        .column("#p", |term| Cell::p(term.p))
        .note(format!("Dropped as noise: {}.", reduced.dropped.join(", ")));
    Some(table.table())
}

/// The unit of effects: a logarithm has none.
fn unit_of(found: &Experiment) -> Unit {
    found.unit.filter(|_| !found.is_log()).unwrap_or(Unit::Count)
}

fn term_name(term: &TermEstimate) -> String {
    if term.contrast.is_empty() { term.name.clone() } else { format!("{} ({})", term.name, term.contrast) }
}

fn percent_cell(share: Option<f64>) -> Cell {
    Cell::some(share, |percent| format!("{} %", format::fixed(percent, 1)))
}

fn effect_table(found: &Experiment) -> Table {
    let log = found.is_log();
    let unit = unit_of(found);
    let scale = Scale::common(unit, found.effects.iter().take(MOST_EFFECTS).map(|e| e.coefficient));
    let shown = &found.effects[..found.effects.len().min(MOST_EFFECTS)];
    let two_level = shown.iter().all(|term| term.half_effect.is_some());
    let first = if two_level { "#half effect q" } else { "#coefficient" };
    let show = |value: f64, half| Cell::amount(value, half, unit, scale);
    let table = Table::of(format!("Effects on {}", found.response), shown)
        .column("letters", |term| {
            Cell::text(if term.aliased_with.is_empty() { term.term.clone() } else { short_label(term) })
        })
        .column("term", |term| Cell::text(term_name(term)))
        .column_if(log, "#ratio low to high|1", |term| term.ratio.map_or_else(Cell::none, times))
        .column(first, |term| show(term.coefficient, term.half_width))
        .column("#full effect 2q|3", |term| {
            term.effect.map_or_else(Cell::none, |full| show(full, term.half_width.map(|h| 2.0 * h)))
        })
        .column("#t|6", |term| Cell::fixed(term.t, 2))
        .column("#p|2", |term| Cell::p(term.p_holm))
        .column("#variation|1", |term| percent_cell(term.variation_percent))
        .column("differs from 0", |term| Cell::text(differs(term)));
    let log = if log { " Effects are of the natural logarithm of the response." } else { "" };
    let more = match found.effects_total.saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" {more} smaller effects are not shown."),
    };
    let margin =
        if found.error.df == 0 && found.lenth.is_some() { " by Lenth's margin of error" } else { "" };
    let note = format!(
        "±: {} interval{margin}, for each effect by itself. p: of its term, adjusted for all terms together; up to {} \
         it differs from 0.{log}{more}",
        format::percent(found.confidence),
        format::percent(1.0 - found.confidence)
    );
    table.note(note).table()
}

fn variation_table(found: &Experiment) -> Table {
    let size = |value: f64| Cell::amount(value, None, Unit::Count, None);
    let note = if found.anova.kind_matters {
        format!(
            "Sums of squares of type {}; the data are not balanced, so shares do not add up to 100 %.",
            found.anova.sums_of_squares
        )
    } else {
        "The terms are orthogonal: all types of sums of squares agree.".into()
    };
    Table::of("Analysis of variance", found.anova.lines.iter().take(MOST_EFFECTS))
        .column("source", |line| Cell::text(&line.name))
        .column("#degrees of freedom", |line| Cell::count(line.df as usize))
        .column("#sum of squares|3", |line| size(line.sum_of_squares))
        .column("#mean square|4", |line| line.mean_square.map_or_else(Cell::none, size))
        .column("#F", |line| Cell::fixed(line.f, 4))
        .column("#p", |line| Cell::p(line.p))
        .column("#adjusted p|1", |line| Cell::p(line.p_holm))
        .column("#share|2", |line| percent_cell(line.variation_percent))
        .column("#ω²|5", |line| Cell::fixed(line.omega_squared, 4))
        .note(note)
        .table()
}

fn level_table(factor: &FactorSummary, unit: Unit) -> Table {
    let scale = Scale::common(unit, factor.levels.iter().filter_map(|l| l.estimate.as_ref()).map(|e| e.mean));
    Table::of(format!("Factor {}", factor.factor), factor.levels.iter().enumerate())
        .column("level", |(_, level)| Cell::text(&level.level))
        .column("#mean ± half width", |(_, level)| {
            let mean = level.estimate.as_ref().map(|estimate| show(estimate, unit, scale));
            mean.unwrap_or_else(|| Cell::text("no run counts"))
        })
        .column("#n|2", |(_, level)| Cell::count(level.estimate.as_ref().map_or(0, |e| e.n)))
        .column("#difference from base", |(number, level)| match &level.against_base {
            Some(contrast) => Cell::amount(contrast.difference, contrast.half_width, unit, scale),
            None => Cell::text(if *number == 0 { "base" } else { "–" }),
        })
        .column("#relative|1", |(_, level)| {
            Cell::change(level.against_base.as_ref().and_then(|contrast| contrast.relative))
        })
        .column("verdict", |(_, level)| Cell::text(level.against_base.as_ref().map_or("", verdict)))
        .table()
}

/// The means at the levels of each factor.
pub(crate) fn level_means(found: &Experiment) -> Vec<Table> {
    let unit = found.unit.unwrap_or(Unit::Count);
    let of_factor = |factor: &LevelMeans| {
        Table::of(format!("Factor {}", factor.factor), &factor.levels)
            .column("level", |level| Cell::text(&level.level))
            .column("#n|2", |level| Cell::count(level.cell.n))
            .column("#mean", |level| {
                Cell::some(level.cell.mean, |mean| ranged(mean, level.cell.interval, unit))
            })
            .column("#against base", |level| match level.against_base {
                None => Cell::text("(base)"),
                Some(ratio) if found.is_log() => times(ratio),
                Some(r) => Cell::number(ranged(r.value, r.interval, unit), r.value),
            })
            .table()
    };
    found.main_effects.iter().map(of_factor).collect()
}

/// `× 1.05 (1.02 to 1.08)`.
fn times(ratio: Ranged) -> Cell {
    Cell::number(format!("× {}", ranged(ratio.value, ratio.interval, Unit::Count)), ratio.value)
}

fn prediction(prediction: &Prediction, found: &Experiment) -> String {
    let unit = found.unit.unwrap_or(Unit::Count);
    let mean = ranged(prediction.value, prediction.interval, unit);
    let further = match (prediction.future_runs, prediction.future_interval) {
        (Some(m), Some([low, high])) => {
            let half = (high - low) / 2.0;
            let end = |v: f64| rounded(v, Some(half), unit, Some(Scale::of(unit, high))).value;
            format!(
                "; the mean of {} is expected between {} and {}",
                format::plural(m as usize, "further run"),
                end(low),
                end(high)
            )
        }
        _ => String::new(),
    };
    format!("Predicted at {}: {mean}{further}.", prediction.label)
}

/// A value with the ends of its interval: `12.3 (11.0 to 13.8)`.
fn ranged(value: f64, interval: Option<[f64; 2]>, unit: Unit) -> String {
    let Some([low, high]) = interval.filter(|[low, high]| low.is_finite() && high.is_finite()) else {
        return rounded(value, None, unit, None).text(true);
    };
    let half = Some((high - low) / 2.0);
    let scale = Some(Scale::of(unit, value));
    let value = rounded(value, half, unit, scale);
    let end = |v: f64| rounded(v, half, unit, scale).value;
    let name = if value.unit.is_empty() { String::new() } else { format!(" {}", value.unit) };
    format!("{} ({} to {}){name}", value.value, end(low), end(high))
}

/// Whether an effect differs from 0, in words that do not claim too much.
fn differs(effect: &TermEstimate) -> &'static str {
    match effect.significant {
        Some(true) => "yes",
        Some(false) if effect.term_matters == Some(true) => "only together with its other parts",
        Some(false) if effect.half_width == Some(0.0) => "no",
        Some(false) => "not distinguishable from noise",
        None => "unknown (no interval)",
    }
}

/// Whether a level differs from the base, in words that do not claim too much.
fn verdict(contrast: &ContrastSummary) -> &'static str {
    match (contrast.told_apart, contrast.difference > 0.0) {
        (Some(true), true) => "higher",
        (Some(true), false) => "lower",
        (Some(false), _) => "not distinguishable from noise",
        (None, _) => "unknown: one run, no interval",
    }
}

/// What the intervals of level comparisons are.
fn comparison_note(confidence: f64) -> String {
    format!(
        "±: {} Welch interval, for each comparison by itself. Verdict: Welch's test, adjusted for all comparisons together \
         (Holm).",
        format::percent(confidence)
    )
}
