//! Which treatments a study has: the rows of its design, without what is left out, with its centre, in blocks.

use std::collections::BTreeMap;

use benchmaster_design::regular::Fraction;
use benchmaster_design::term::{self, Term};
use benchmaster_design::{DesignError, array, block, centre, full, one_at_a_time, plackett_burman, search};
use benchmaster_record::results::{BlocksRecord, DesignRecord, TreatmentRecord};

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::file::{Blocks, FractionBy, Layout, StudyFile, only_regular};

/// The most runs of a fraction that is chosen by the effects that must be clear.
const MOST_CLEAR_RUNS: u64 = benchmaster_design::MAX_TREATMENTS;

/// The treatments of a study.
pub(super) struct Listed {
    pub(super) treatments: Vec<TreatmentRecord>,
    pub(super) details: DesignRecord,
}

/// Lists the treatments of a study.
///
/// # Errors
/// A design that cannot be made, at the key that asks for it.
pub(super) fn list(file: &StudyFile) -> Result<Listed, Diagnostics> {
    let mut found = file.warnings.clone();
    make(file).map_err(|(path, diagnostic)| {
        found.push(match path {
            Some(path) => diagnostic.at(file.span_of(&format!("design.{path}"))),
            None => diagnostic,
        });
        found
    })
}

/// The key of `[design]` that is wrong, and what is wrong with it.
type Mistake = (Option<&'static str>, Diagnostic);

fn make(file: &StudyFile) -> Result<Listed, Mistake> {
    let (design, choice) = (&file.design, &file.choice);
    let levels = design_levels(file);
    let Rows { rows, fraction } = rows(&choice.layout, &choice.interest, &levels)?;
    let allowed = DesignRecord { exclude: choice.exclude.clone(), ..DesignRecord::default() };
    let (kept, excluded): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| allowed.allows(row));
    check_kept(file, &kept, &levels)?;
    let blocking = blocking(file, fraction.as_ref(), &kept)?;

    let record = |index: usize, levels: Vec<u32>, block, centre| {
        let label = file.label(&levels);
        let label = if centre { format!("{label} (centre)") } else { label };
        TreatmentRecord { index: index as u32, label, levels, block, whole_plot: None, stage: 0, centre }
    };
    let kept = kept.into_iter().zip(blocking.rows).enumerate();
    let mut treatments: Vec<_> =
        kept.map(|(index, (levels, block))| record(index, levels, block, false)).collect();
    if design.centre_points > 0 {
        treatments.push(record(treatments.len(), centre::row(levels.len()), None, true));
    }
    tell_apart(&mut treatments);
    number_whole_plots(&mut treatments, &choice.hard_to_change);
    let details = DesignRecord {
        generators: fraction.iter().flat_map(|f| f.generators()).map(ToString::to_string).collect(),
        interest: choice.interest.iter().map(|&term| factors(term)).collect(),
        hard_to_change: choice.hard_to_change.clone(),
        blocks: blocking.record,
        centre_points: design.centre_points,
        excluded,
        goal: choice.goal.clone(),
        precision: design.precision,
        load: file.load_record.clone(),
        scale: (file.study.scale != 1.0).then_some(file.study.scale),
        ..allowed
    };
    Ok(Listed { treatments, details })
}

/// A design can have a combination of levels more than once, each time as a treatment of its own.
fn tell_apart(treatments: &mut [TreatmentRecord]) {
    let mut times: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for treatment in treatments {
        let times = times.entry(treatment.levels.clone()).or_default();
        *times += 1;
        if *times > 1 {
            treatment.label.push_str(&format!(" ({times})"));
        }
    }
}

/// Levels per factor, without the centre. A load curve begins with the first of its loads.
fn design_levels(file: &StudyFile) -> Vec<u32> {
    let centre = u32::from(file.design.centre_points > 0);
    let is_load = |index: usize| file.load_record.as_ref().is_some_and(|load| load.factor as usize == index);
    let levels = file.factors.iter().enumerate().map(|(index, factor)| {
        if is_load(index) { 1 } else { (factor.levels.len() as u32).saturating_sub(centre) }
    });
    levels.collect()
}

fn factors(term: Term) -> Vec<u32> {
    term::factors(term).collect()
}

/// Treatments with the same levels of the factors that are hard to change have the same number, in order of appearance.
pub(super) fn number_whole_plots(treatments: &mut [TreatmentRecord], hard: &[u32]) {
    if hard.is_empty() {
        return;
    }
    let mut numbers: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for treatment in treatments {
        let levels =
            hard.iter().filter_map(|&factor| treatment.levels.get(factor as usize).copied()).collect();
        let next = numbers.len() as u32;
        treatment.whole_plot = Some(*numbers.entry(levels).or_insert(next));
    }
}

struct Rows {
    rows: Vec<Vec<u32>>,
    /// The regular two-level fraction that they are, when the design is one.
    fraction: Option<Fraction>,
}

fn rows(layout: &Layout, interest: &[Term], levels: &[u32]) -> Result<Rows, Mistake> {
    let plain = |rows| Rows { rows, fraction: None };
    let count = levels.len() as u32;
    match layout {
        Layout::Full => Ok(plain(full(levels).map_err(too_large)?)),
        Layout::OneAtATime => Ok(plain(one_at_a_time(levels).map_err(too_large)?)),
        Layout::Explicit(treatments) => Ok(plain(treatments.clone())),
        Layout::PlackettBurman => {
            Ok(plain(plackett_burman::plackett_burman(count).map_err(|error| at("kind", &error))?))
        }
        Layout::OrthogonalArray { runs } => {
            let key = if runs.is_some() { "runs" } else { "kind" };
            let array = array::orthogonal_array(levels, *runs).map_err(|error| at(key, &error))?;
            Ok(plain(array.rows))
        }
        Layout::Fraction(by) => {
            let (key, fraction) = match by {
                FractionBy::Generators(generators) => {
                    ("generators", Fraction::from_generators(count, generators))
                }
                FractionBy::Resolution(resolution) => {
                    ("resolution", search::by_resolution(count, *resolution))
                }
                FractionBy::Runs(runs) => ("runs", search::by_runs(count, *runs)),
                FractionBy::Clear => ("clear", search::by_clear(count, interest, MOST_CLEAR_RUNS)),
            };
            let fraction = fraction.map_err(|error| at(key, &error))?;
            Ok(Rows { rows: fraction.rows(), fraction: Some(fraction) })
        }
    }
}

fn too_large(error: DesignError) -> Mistake {
    let help = "`kind = \"one-at-a-time\"` in `[design]` has far fewer treatments than `\"full\"`, and a \
                `\"fractional\"` design or an `\"orthogonal-array\"` shows interactions as well";
    (None, Diagnostic::error(error.to_string()).help(help))
}

/// The message of an error says after `; ` what to do.
fn at(path: &'static str, error: &DesignError) -> Mistake {
    let text = error.to_string();
    let diagnostic = match text.split_once("; ") {
        Some((message, help)) => Diagnostic::error(message).help(help),
        None => Diagnostic::error(text),
    };
    (Some(path), diagnostic)
}

/// How runs are blocked.
struct Blocked {
    record: Option<BlocksRecord>,
    /// The block of each row, when rows are spread over blocks.
    rows: Vec<Option<u32>>,
}

fn blocking(file: &StudyFile, fraction: Option<&Fraction>, rows: &[Vec<u32>]) -> Result<Blocked, Mistake> {
    let everywhere = |record| Blocked { record, rows: vec![None; rows.len()] };
    let count = match &file.design.blocks {
        None => return Ok(everywhere(None)),
        Some(Blocks::Replicates(_)) => return Ok(everywhere(Some(BlocksRecord::Replicates))),
        Some(Blocks::Named(blocks)) => {
            let names = blocks.iter().map(|block| block.name.clone()).collect();
            return Ok(everywhere(Some(BlocksRecord::Named { names })));
        }
        Some(Blocks::Confounded(blocks)) => blocks.count,
    };
    let whole;
    let fraction = match (fraction, &file.choice.layout) {
        (Some(fraction), _) => fraction,
        (None, Layout::Full) => {
            whole = Fraction::full(file.factors.len() as u32).map_err(|error| at("blocks", &error))?;
            &whole
        }
        (None, _) => return Err((Some("blocks"), only_regular(file.design.kind))),
    };
    let blocking = block::blocks(fraction, count).map_err(|error| at("blocks.count", &error))?;
    let effects = blocking.confounded.iter().map(|&term| factors(term)).collect();
    let own: BTreeMap<_, _> = fraction.rows().into_iter().zip(blocking.block_of_row).collect();
    Ok(Blocked {
        record: Some(BlocksRecord::Confounded { count, effects }),
        rows: rows.iter().map(|row| own.get(row).copied()).collect(),
    })
}

/// Whether enough is left to vary every factor.
fn check_kept(file: &StudyFile, kept: &[Vec<u32>], levels: &[u32]) -> Result<(), Mistake> {
    if kept.is_empty() && !file.choice.exclude.is_empty() {
        let diagnostic = Diagnostic::error("`exclude` leaves no treatment").help("exclude less");
        return Err((Some("exclude"), diagnostic));
    }
    for (number, (factor, &count)) in file.factors.iter().zip(levels).enumerate() {
        let used = |level: &u32| kept.iter().any(|row| row.get(number) == Some(level));
        let used: Vec<_> = (0..count).filter(used).collect();
        let (Some(&only), true) = (used.first(), used.len() == 1 && count > 1) else { continue };
        let level = factor.levels.get(only as usize).map_or("?", String::as_str);
        let (key, what) = match file.choice.layout {
            Layout::Explicit(_) => ("treatments", "all treatments have"),
            _ => ("exclude", "all treatments that are left have"),
        };
        let message = format!("{what} the level `{level}` of `{}`, and it does not vary", factor.name);
        let help = match key {
            "treatments" => "add treatments with another level, or remove the factor",
            _ => "exclude less, or remove the factor",
        };
        return Err((Some(key), Diagnostic::error(message).help(help)));
    }
    Ok(())
}
