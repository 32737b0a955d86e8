//! What the factors do: means by level, by two factors' levels, and at the corners of a cube.

use benchmaster_analysis::experiment::{Cube, InteractionMeans, LevelMeans, MeanCell};

use super::super::figure::{Axis, Figure, Line, Mode, View, Words};
use super::About;
use super::sizes::p_value;
use crate::format;

/// Levels drawn in the plot of main effects.
const LEVELS: usize = 60;
/// Levels of a factor drawn in an interaction.
const LEVELS_OF_A_PAIR: usize = 12;
/// How far the base of the cube's back lies to the right of and above that of its front.
const BACK: (f64, f64) = (0.42, 0.34);

pub(super) fn figures(about: &About<'_>) -> Vec<Figure> {
    let experiment = about.experiment;
    let mut figures = Vec::new();
    figures.extend(main_effects(about));
    figures.extend(interactions(about));
    figures.extend(experiment.cube.as_ref().map(|cube| cube_of(about, cube)));
    figures
}

/// What means and their bars are.
fn label(about: &About<'_>) -> String {
    let kind = if about.scale.log { "geometric means" } else { "means" };
    let bars = if about.experiment.error.no_interval.is_some() {
        "No intervals: the scatter of runs cannot be estimated.".to_owned()
    } else {
        format!("Error bars are {} intervals.", about.level())
    };
    format!(
        "{}; marks are {kind} over all levels of the other factors with equal weight. {bars} The difference from \
         low to high is the full effect.",
        about.n()
    )
}

fn of_runs(cell: &MeanCell) -> String {
    format!("n = {}", cell.n)
}

/// The means at the levels of every factor, below each other, so that long names can be read on small screens.
fn main_effects(about: &About<'_>) -> Option<Figure> {
    let means = &about.experiment.main_effects;
    let span = |factor: &LevelMeans| {
        let (low, high) = super::scaled::reach(factor.levels.iter().filter_map(|l| l.cell.mean));
        if about.scale.log { (high / low).ln() } else { high - low }
    };
    // The factors that change most, if there is no room for all; drawn in the order of the design.
    let mut by_span: Vec<usize> = (0..means.len()).collect();
    by_span.sort_by(|a, b| span(&means[*b]).total_cmp(&span(&means[*a])));
    let mut rows = 0;
    let mut kept: Vec<usize> = by_span
        .into_iter()
        .take_while(|factor| {
            rows += means[*factor].levels.len();
            rows <= LEVELS
        })
        .collect();
    kept.sort_unstable();
    let mut view = View { label: "main effects".into(), ..View::default() };
    let mut ticks = Vec::new();
    let mut row = 0.0;
    for factor in kept.iter().map(|number| &means[*number]) {
        let places: Vec<f64> = (0..factor.levels.len()).map(|level| row + level as f64).collect();
        row += factor.levels.len() as f64 + 0.6;
        let name = |level: &str| format!("{}: {level}", factor.factor);
        ticks.extend(places.iter().zip(&factor.levels).map(|(place, l)| (*place, name(&l.level))));
        let known: Vec<_> =
            places.iter().zip(&factor.levels).filter_map(|(p, l)| Some((*p, l, l.cell.mean?))).collect();
        let bars: Vec<_> = known.iter().map(|(_, l, _)| about.scale.reaches(&l.cell)).collect();
        let means = known.iter().map(|(place, _, mean)| (about.scale.place(*mean), *place));
        view.lines.push(Line {
            error_x: bars.iter().any(Option::is_some).then_some(bars),
            text: known.iter().map(|(_, l, _)| format!("{}, {}", name(&l.level), of_runs(&l.cell))).collect(),
            unlisted: true,
            size: Some(9),
            ..Line::through(factor.factor.clone(), 0, Mode::Joined, means)
        });
    }
    if view.lines.is_empty() {
        return None;
    }
    let ends = means.iter().flat_map(|f| f.levels.iter().flat_map(|l| about.scale.ends(&l.cell)));
    let left_out = match means.len() - kept.len() {
        0 => String::new(),
        n => format!(" {} with smaller changes are not drawn.", format::plural(n, "factor")),
    };
    let rows = ticks.len() + kept.len();
    Some(Figure {
        id: "effects-main".into(),
        title: format!("Main effects on {}", about.experiment.response),
        note: format!(
            "{} Lines only connect the levels of a factor; nothing was measured between them. The axis does not \
             begin at 0.{left_out}",
            label(about)
        ),
        height: 90 + 22 * rows.max(5),
        x: about.scale.mean_axis(ends),
        y: Axis { ticks, range: Some((row - 0.8, -0.8)), reversed: true, ..Axis::default() },
        views: vec![view],
        ..Figure::default()
    })
}

/// The means at the combinations of two factors' levels, a view for each pair, the strongest first.
fn interactions(about: &About<'_>) -> Option<Figure> {
    let views: Vec<View> =
        about.experiment.interactions.iter().filter_map(|pair| interaction(about, pair)).collect();
    let factors = about.experiment.factors.len();
    let pairs = factors * factors.saturating_sub(1) / 2;
    let left_out = match pairs - views.len().min(pairs) {
        0 => String::new(),
        n => format!(" {n} weaker pairs are not drawn."),
    };
    let fraction = match about.experiment.aliases {
        Some(_) => {
            " The design is a fraction: an interaction may be due to the terms that it is aliased with, or be \
             hidden in another effect."
        }
        None => "",
    };
    (!views.is_empty()).then(|| Figure {
        id: "effects-interactions".into(),
        title: format!("Interactions on {}", about.experiment.response),
        note: format!(
            "{} Lines that are not parallel show an interaction: the effect of one factor depends on the other. \
             Of {} the \
             strongest is shown first.{left_out}{fraction} The axis does not begin at 0.",
            label(about),
            format::plural(pairs, "pair")
        ),
        choice: "pair of factors",
        height: 380,
        views,
        ..Figure::default()
    })
}

fn interaction(about: &About<'_>, pair: &InteractionMeans) -> Option<View> {
    // The factor with more levels along the axis, so that there are few lines.
    let turned = pair.second.len() > pair.first.len();
    let (along, beside) = if turned { (1, 0) } else { (0, 1) };
    let levels = [&pair.first, &pair.second];
    let cell = |i: usize, j: usize| {
        let (first, second) = if turned { (j, i) } else { (i, j) };
        pair.cells.get(first)?.get(second)
    };
    let columns = levels[along].len().min(LEVELS_OF_A_PAIR);
    let series = levels[beside].len().min(LEVELS_OF_A_PAIR);
    let mut lines = Vec::new();
    for (j, level) in levels[beside].iter().enumerate().take(series) {
        let found: Vec<_> = (0..columns)
            .filter_map(|i| {
                let cell = cell(i, j)?;
                // Beside each other, so that no interval hides another.
                let aside = (j as f64 - (series - 1) as f64 / 2.0) * 0.05;
                Some((i as f64 + aside, cell, about.scale.place(cell.mean?)))
            })
            .collect();
        if found.is_empty() {
            continue;
        }
        let bars: Vec<_> = found.iter().map(|(_, cell, _)| about.scale.reaches(cell)).collect();
        let name = format!("{} = {level}", pair.factors[beside]);
        lines.push(Line {
            error_y: bars.iter().any(Option::is_some).then_some(bars),
            text: found.iter().map(|(_, cell, _)| of_runs(cell)).collect(),
            size: Some(9),
            ..Line::through(name, j, Mode::Joined, found.iter().map(|(place, _, mean)| (*place, *mean)))
        });
    }
    if lines.is_empty() {
        return None;
    }
    let verdict = match (pair.p, pair.significant) {
        (Some(p), _) => format!(" ({})", p_value(p)),
        (None, Some(true)) => " (differs from 0)".into(),
        (None, Some(false)) => " (not distinguishable from noise)".into(),
        (None, None) => String::new(),
    };
    let ends = pair.cells.iter().flatten().flat_map(|cell| about.scale.ends(cell));
    let ticks = levels[along][..columns].iter().enumerate().map(|(i, level)| (i as f64, level.clone()));
    Some(View {
        label: format!("{} × {}{verdict}", pair.factors[0], pair.factors[1]),
        x: Some(Axis {
            title: pair.factors[along].clone(),
            ticks: ticks.collect(),
            range: Some((-0.4, columns as f64 - 0.6)),
            ..Axis::default()
        }),
        y: Some(about.scale.mean_axis(ends)),
        lines,
        ..View::default()
    })
}

/// A cube as it is drawn in books: the front below and to the left, its back above and to the right.
fn cube_of(about: &About<'_>, cube: &Cube) -> Figure {
    let place = |levels: [u32; 3]| {
        let [a, b, c] = levels.map(f64::from);
        (a + BACK.0 * c, b + BACK.1 * c)
    };
    let mut edges = Vec::new();
    for corner in 0..8u32 {
        let levels = [0, 1, 2].map(|bit| corner >> bit & 1);
        for axis in (0..3).filter(|axis| levels[*axis] == 0) {
            let mut other = levels;
            other[axis] = 1;
            // A gap after each edge, so that one line draws them all.
            edges.extend([place(levels), place(other), (f64::NAN, f64::NAN)]);
        }
    }
    let frame = Line { quiet: true, unlisted: true, ..Line::through("", 0, Mode::Lines, edges) };
    let combination = |levels: [u32; 3]| {
        let named = (0..3).map(|f| format!("{} = {}", cube.factors[f], cube.levels[f][levels[f] as usize]));
        named.collect::<Vec<_>>().join(", ")
    };
    let places = cube.corners.iter().map(|corner| place(corner.levels));
    let corners = Line {
        unlisted: true,
        size: Some(12),
        text: cube
            .corners
            .iter()
            .map(|corner| format!("{}, {}", combination(corner.levels), of_runs(&corner.cell)))
            .collect(),
        ..Line::through("", 0, Mode::Markers, places)
    };
    let mut words: Vec<Words> = cube
        .corners
        .iter()
        .map(|corner| {
            let (x, y) = place(corner.levels);
            let (mean, interval) = about.scale.mean(&corner.cell);
            let text = interval.map_or(mean.clone(), |interval| format!("{mean}\n{interval}"));
            // Where no edge goes: outside at the front's bottom and the back's top, else inside.
            let at = match corner.levels {
                [_, 0, 0] => "below",
                [0, 1, 0] => "below right",
                [_, 1, 0] => "below left",
                [0, 0, _] => "above right",
                [_, 0, _] => "above left",
                _ => "above",
            };
            Words { x, y, text, at, quiet: false }
        })
        .collect();
    for (row, (arrow, factor)) in ["→", "↑", "↗"].into_iter().zip(0..3).enumerate() {
        let [low, high] = &cube.levels[factor];
        words.push(Words {
            x: -0.3,
            y: -0.5 - 0.13 * row as f64,
            text: format!("{arrow} {}: {low} → {high}", cube.factors[factor]),
            at: "right",
            quiet: true,
        });
    }
    let hidden = |range| Axis { hidden: true, range: Some(range), ..Axis::default() };
    Figure {
        id: "effects-cube".into(),
        title: format!("Cube of {} on {}", cube.factors.join(", "), about.experiment.response),
        note: format!(
            "{} At each corner is the mean with its interval; along an edge one factor goes from low to high, and \
             the \
             difference is its full effect there. Drawn are the three two-level factors that explain most of the \
             variation.",
            label(about)
        ),
        height: 430,
        x: hidden((-0.32, 1.74)),
        y: hidden((-0.85, 1.62)),
        views: vec![View { label: "cube".into(), lines: vec![frame, corners], words, ..View::default() }],
        ..Figure::default()
    }
}
