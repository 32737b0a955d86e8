//! How large the effects are: Pareto plot, effects in standard order, half-normal plot.

use benchmaster_analysis::experiment::{ErrorKind, TermEstimate};
use benchmaster_design::term::parse_letters;
use benchmaster_stats::normal_quantile;

use super::super::figure::{Axis, Figure, Line, Mode, View, both_sides};
use super::{About, EFFECTS};
use crate::format;

/// Effects drawn in standard order: all of a full design of six factors at two levels.
const IN_ORDER: usize = 64;
/// Smaller effects drawn in the half-normal plot beside the largest.
const SMALL: usize = 160;
/// Effects that are named in the half-normal plot.
const NAMED: usize = 12;
/// Names of aliases that fit beside an effect's own.
const ALIASES: usize = 2;

pub(super) fn figures(about: &About<'_>) -> Vec<Figure> {
    let experiment = about.experiment;
    if experiment.effects.is_empty() {
        return Vec::new();
    }
    let measure = Measure::of(about);
    let mut figures = vec![sizes(about, &measure)];
    if experiment.effects.len() > 2 {
        figures.push(half_normal(about, &measure));
    }
    figures
}

/// What makes effects comparable.
struct Measure {
    kind: Kind,
    /// Beyond this an effect stands out.
    margin: Option<f64>,
    /// Beyond this it does even as one of all (Lenth).
    simultaneous: Option<f64>,
    /// Standard error of every effect, in the same measure.
    error: Option<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Full effects 2q: all factors have two levels, and all effects the same error.
    Full,
    /// Coefficients as multiples of the half width of their interval.
    Multiples,
    /// Roots of sums of squares: nothing is known about the error, or the contrasts have no common scale.
    Roots,
}

impl Measure {
    fn of(about: &About<'_>) -> Self {
        let effects = &about.experiment.effects;
        let two_level = effects.iter().all(|e| e.effect.is_some());
        let halves: Option<Vec<f64>> = effects.iter().map(|e| e.half_width.filter(|h| *h > 0.0)).collect();
        if let (true, Some(lenth)) = (two_level, &about.experiment.lenth) {
            let place = |value: f64| about.scale.change_place(value);
            return Self {
                kind: Kind::Full,
                margin: Some(place(lenth.me.min(lenth.simultaneous))),
                simultaneous: Some(place(lenth.simultaneous)),
                error: Some(place(lenth.pse)),
            };
        }
        let same = |halves: &[f64]| halves.iter().all(|h| (h / halves[0] - 1.0).abs() < 1e-6);
        match halves {
            Some(halves) if two_level && same(&halves) => Self {
                kind: Kind::Full,
                margin: Some(about.scale.change_place(2.0 * halves[0])),
                simultaneous: None,
                error: effects[0].standard_error.map(|s| about.scale.change_place(2.0 * s)),
            },
            Some(_) => Self {
                kind: Kind::Multiples,
                margin: Some(1.0),
                simultaneous: None,
                error: effects[0].standard_error.zip(effects[0].half_width).map(|(s, h)| s / h),
            },
            None if two_level => Self { kind: Kind::Full, margin: None, simultaneous: None, error: None },
            None => Self { kind: Kind::Roots, margin: None, simultaneous: None, error: None },
        }
    }

    /// How large an effect is, never negative.
    fn size(&self, about: &About<'_>, effect: &TermEstimate) -> f64 {
        match self.kind {
            Kind::Full => about.scale.change_place(effect.effect.unwrap_or(0.0)).abs(),
            Kind::Multiples => effect.half_width.map_or(0.0, |half| (effect.coefficient / half).abs()),
            Kind::Roots => effect.sum_of_squares.max(0.0).sqrt(),
        }
    }

    fn axis(&self, about: &About<'_>, values: impl Iterator<Item = f64>) -> Axis {
        let named = |title: &str| Axis { title: title.into(), ..Axis::default() };
        let axis = match self.kind {
            Kind::Full => about.scale.change_axis("|full effect 2q|", values),
            Kind::Multiples => named("|coefficient| / half width"),
            Kind::Roots => named("root of the sum of squares"),
        };
        Axis { zero: true, ..axis }
    }

    /// The margins with their names.
    fn marks(&self) -> Vec<(f64, String)> {
        let name = if self.simultaneous.is_some() { "ME" } else { "margin" };
        let marks = [(self.margin, name), (self.simultaneous, "SME")];
        marks.into_iter().filter_map(|(margin, name)| Some((margin?, name.to_owned()))).collect()
    }

    /// What is drawn, in sentences.
    fn title(&self, about: &About<'_>) -> String {
        let level = about.level();
        match (self.kind, self.simultaneous) {
            (Kind::Full, Some(_)) => format!(
                "Full effects 2q. The design is not replicated: the dashed lines are margins of error at {level} by Lenth's \
                 method, ME for one effect chosen in advance, SME for the largest of all effects, which decides what matters."
            ),
            (Kind::Full, None) if self.margin.is_some() => format!(
                "Full effects 2q. The dashed line is the half width of their {level} Student-t interval, for an effect chosen \
                 in advance; the colours say which differ from 0 when all terms are judged together."
            ),
            (Kind::Full, None) => {
                "Full effects 2q, without a margin: the scatter of runs cannot be estimated.".into()
            }
            (Kind::Multiples, _) => format!(
                "Effects have different errors or more than two levels, so each coefficient (of two levels: the half \
                 effect q) is divided by the half width of its {level} Student-t interval. The dashed line, at 1, is for an \
                 effect chosen in advance; the colours say which differ from 0 when all terms are judged together."
            ),
            (Kind::Roots, _) => {
                "Roots of sums of squares, which compare contrasts of different kinds; without a margin, as the \
                 scatter of runs cannot be estimated."
                    .into()
            }
        }
    }
}

/// The Pareto plot and the effects in standard order, to choose from.
fn sizes(about: &About<'_>, measure: &Measure) -> Figure {
    let experiment = about.experiment;
    let mut views = vec![pareto(about, measure)];
    let (mut full, half) = (in_order(about, Shown::Full), in_order(about, Shown::Half));
    match &mut full {
        Some(_) => views.extend(full.into_iter().chain(half)),
        None => views.extend(in_order(about, Shown::Coefficients)),
    }
    let drawn = |limit: usize| match experiment.effects_total.saturating_sub(limit) {
        0 => String::new(),
        n => format!(" {} more, all smaller, are not drawn.", format::plural(n, "effect")),
    };
    let in_order = match experiment.effects_total {
        n if n > IN_ORDER => format!(" In standard order, the largest {EFFECTS} are shown."),
        _ => String::new(),
    };
    let intervals = if experiment.effects.iter().any(|e| e.half_width.is_some()) {
        format!(" In standard order, error bars are {} intervals.", about.level())
    } else if experiment.lenth.is_some() {
        " In standard order, the dashed lines are ME.".into()
    } else {
        String::new()
    };
    let aliases = match &experiment.aliases {
        Some(_) => {
            " The design is a fraction: an estimate is the sum of the terms in its name (the shortest are named), \
             and these terms are not separately estimable."
        }
        None => "",
    };
    let pooled = match experiment.error.kind {
        ErrorKind::Pooled | ErrorKind::ReplicatesAndPooled => " The error includes terms pooled as noise.",
        _ => "",
    };
    Figure {
        id: "effects-sizes".into(),
        title: format!("Effects on {}", experiment.response),
        note: format!(
            "{}. Largest first: {}{}{intervals}{in_order}{pooled}{aliases}{} {}",
            about.n(),
            measure.title(about),
            drawn(EFFECTS),
            about.scale(),
            about.letters()
        ),
        choice: "order",
        height: 300,
        views,
        ..Figure::default()
    }
}

fn pareto(about: &About<'_>, measure: &Measure) -> View {
    let mut effects: Vec<_> = about.experiment.effects.iter().map(|e| (measure.size(about, e), e)).collect();
    effects.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    effects.truncate(EFFECTS);
    let mut lines = Vec::new();
    for class in CLASSES {
        let found: Vec<_> = effects
            .iter()
            .enumerate()
            .filter(|(_, (_, effect))| class.has(measure.kind, effect))
            .map(|(row, (size, effect))| (row, *size, *effect))
            .collect();
        if found.is_empty() {
            continue;
        }
        let places = found.iter().map(|(row, size, _)| (*size, *row as f64));
        lines.push(Line {
            quiet: class.quiet,
            text: found.iter().map(|(.., effect)| hover_text(about, effect)).collect(),
            ..Line::through(class.name, class.color, Mode::Across, places)
        });
    }
    let ticks = effects.iter().enumerate().map(|(row, (_, e))| (row as f64, label(about, e))).collect();
    let marks = measure.marks();
    let reaches = effects.iter().map(|(size, _)| *size).chain(marks.iter().map(|m| m.0));
    let (_, high) = super::scaled::reach(reaches.clone().chain([0.0]));
    View {
        label: "largest first (Pareto)".into(),
        x: Some(Axis { range: (high > 0.0).then_some((0.0, high * 1.05)), ..measure.axis(about, reaches) }),
        y: Some(Axis { reversed: true, ticks, ..Axis::default() }),
        height: Some(110 + 17 * effects.len().max(4)),
        lines,
        marks,
        ..View::default()
    }
}

/// How an effect is coloured.
struct Class {
    name: &'static str,
    color: usize,
    quiet: bool,
    significant: Option<bool>,
    /// Whether it is for positive or negative effects; `None`: for both.
    positive: Option<bool>,
}

const CLASSES: [Class; 5] = [
    Class { name: "positive effect", color: 0, quiet: false, significant: Some(true), positive: Some(true) },
    Class { name: "negative effect", color: 1, quiet: false, significant: Some(true), positive: Some(false) },
    Class {
        name: "positive, significance unknown",
        color: 5,
        quiet: false,
        significant: None,
        positive: Some(true),
    },
    Class {
        name: "negative, significance unknown",
        color: 4,
        quiet: false,
        significant: None,
        positive: Some(false),
    },
    Class {
        name: "not distinguishable from noise",
        color: 2,
        quiet: true,
        significant: Some(false),
        positive: None,
    },
];

impl Class {
    fn has(&self, kind: Kind, effect: &TermEstimate) -> bool {
        // The sign of a contrast of several levels tells nothing without its codes, but is that of the coefficient.
        let value = if kind == Kind::Full { effect.effect.unwrap_or(0.0) } else { effect.coefficient };
        self.significant == effect.significant && self.positive.is_none_or(|p| p == (value >= 0.0))
    }
}

/// Names, colours and whether they stand back, of effects by whether they differ from 0.
const VERDICTS: [(&str, usize, bool, Option<bool>); 3] = [
    ("differs from 0", 0, false, Some(true)),
    ("not distinguishable from noise", 2, true, Some(false)),
    ("significance unknown", 5, false, None),
];

/// Which value is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Full,
    Half,
    Coefficients,
}

/// Effects in standard order (A, B, AB, C, …) with their intervals, as papers print them. `None` when full or half effects
/// are asked for and not all contrasts have one.
fn in_order(about: &About<'_>, shown: Shown) -> Option<View> {
    let experiment = about.experiment;
    let two_level = experiment.effects.iter().all(|e| e.effect.is_some());
    if (shown == Shown::Coefficients) == two_level {
        return None;
    }
    let mut effects: Vec<&TermEstimate> = experiment.effects.iter().collect();
    if experiment.effects_total > IN_ORDER {
        effects.truncate(EFFECTS);
    }
    effects.sort_by_cached_key(|e| (parse_letters(&e.term).unwrap_or(u64::MAX), contrast_order(&e.contrast)));
    let times = if shown == Shown::Full { 2.0 } else { 1.0 };
    let value = |e: &TermEstimate| about.scale.change_place(times * e.coefficient);
    let half = |e: &TermEstimate| Some(about.scale.change_place(times * e.half_width?));
    let mut lines = Vec::new();
    for (name, color, quiet, significant) in VERDICTS {
        let found: Vec<_> =
            effects.iter().enumerate().filter(|(_, e)| e.significant == significant).collect();
        if found.is_empty() {
            continue;
        }
        let places = found.iter().map(|(place, e)| (*place as f64, value(e)));
        let bars: Vec<_> = found.iter().map(|(_, e)| half(e).map(both_sides)).collect();
        lines.push(Line {
            quiet,
            error_y: bars.iter().any(Option::is_some).then_some(bars),
            text: found.iter().map(|(_, e)| hover_text(about, e)).collect(),
            ..Line::through(name, color, Mode::Bars, places)
        });
    }
    let ends = effects.iter().flat_map(|e| {
        let half = half(e).unwrap_or(0.0);
        [value(e) - half, value(e) + half]
    });
    let title = match shown {
        Shown::Full => "full effect 2q",
        Shown::Half => "half effect q",
        Shown::Coefficients => "coefficient",
    };
    let ticks = effects.iter().enumerate().map(|(place, e)| (place as f64, short_label(e))).collect();
    let margin = experiment.lenth.as_ref().map(|lenth| match shown {
        Shown::Full => lenth.me.min(lenth.simultaneous),
        Shown::Half | Shown::Coefficients => lenth.me_half.min(lenth.simultaneous_half),
    });
    let marks =
        margin.map(|m| about.scale.change_place(m)).map(|m| [(m, "ME".to_owned()), (-m, String::new())]);
    Some(View {
        label: format!("standard order, {title}"),
        x: Some(Axis { title: "factors and interactions".into(), upright: true, ticks, ..Axis::default() }),
        y: Some(about.scale.change_axis(title, ends.chain(marks.iter().flatten().map(|m| m.0)))),
        height: Some(420),
        turns: true,
        lines,
        marks_y: marks.into_iter().flatten().collect(),
        ..View::default()
    })
}

/// Where a contrast stands among those of its term: linear, quadratic, cubic, and so on.
fn contrast_order(contrast: &str) -> Vec<(usize, &str)> {
    let place = |part| ["L", "Q", "C"].iter().position(|known| *known == part).unwrap_or(3);
    contrast.split('×').map(|part| (place(part), part)).collect()
}

/// Sizes of effects against what pure noise would give: what differs from 0 leaves the line.
fn half_normal(about: &About<'_>, measure: &Measure) -> Figure {
    let experiment = about.experiment;
    let total = experiment.effects_total.max(experiment.effects.len());
    let mut effects: Vec<_> = experiment.effects.iter().map(|e| (measure.size(about, e), e)).collect();
    effects.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let ranked = effects.iter().enumerate().map(|(place, (size, effect))| {
        let rank = (total - place) as f64;
        (normal_quantile(0.5 + 0.5 * (rank - 0.5) / total as f64), *size, *effect)
    });
    let mut points: Vec<_> = ranked.collect();
    let small = points.split_off(EFFECTS.min(points.len()));
    let step = small.len().div_ceil(SMALL).max(1);
    points.extend(small.into_iter().step_by(step));
    let drawn = points.len();
    // Without any verdict the largest are named, as a reader would.
    let judged = points.iter().any(|(.., e)| e.significant.is_some());
    let named = |place: usize, effect: &TermEstimate| {
        if judged { place < NAMED && effect.significant == Some(true) } else { place < 5 }
    };
    let (_, high) = super::scaled::reach(points.iter().map(|p| p.1).chain(measure.margin));
    let mut lines = Vec::new();
    for (name, color, quiet, significant) in VERDICTS {
        let found: Vec<_> =
            points.iter().enumerate().filter(|(_, (.., e))| e.significant == significant).collect();
        if found.is_empty() {
            continue;
        }
        let mut labels: Vec<String> = Vec::new();
        let mut last: Option<(f64, usize)> = None;
        for (place, (_, size, effect)) in &found {
            let mut text = String::new();
            if named(*place, effect) {
                match last {
                    // Names of neighbours would cover each other.
                    Some((above, at)) if above - size < 0.045 * high => {
                        labels[at] = format!("{}, {}", labels[at], name_of(effect));
                    }
                    _ => {
                        text = name_of(effect);
                        last = Some((*size, labels.len()));
                    }
                }
            }
            labels.push(text);
        }
        let places = found.iter().map(|(_, (x, size, _))| (*x, *size));
        lines.push(Line {
            quiet,
            size: Some(8),
            text: found.iter().map(|(_, (.., e))| hover_text(about, e)).collect(),
            labels: if labels.iter().all(String::is_empty) { Vec::new() } else { labels },
            ..Line::through(name, color, Mode::Markers, places)
        });
    }
    let furthest = points.first().map_or(1.0, |p| p.0);
    if let Some(error) = measure.error {
        let end = furthest.min(high / error);
        let ends = [(0.0, 0.0), (end, end * error)];
        lines.push(Line::through("expected from the error alone", 3, Mode::Lines, ends));
    }
    let marks_y = measure.marks();
    let reaches = points.iter().map(|p| p.1).chain(marks_y.iter().map(|m| m.0));
    let (_, top) = super::scaled::reach(reaches.clone());
    let left_out = match total - drawn {
        0 => String::new(),
        n => format!(
            " Of {total} effects, the largest {EFFECTS} and an even selection of the others are drawn; \
         {n} are not."
        ),
    };
    Figure {
        id: "effects-half-normal".into(),
        title: format!("Half-normal plot of effects on {}", experiment.response),
        note: format!(
            "{}. Effects that are only noise follow a straight line through 0; real effects rise above it and are \
             labelled. {}{left_out}{} {}",
            about.n(),
            measure.title(about),
            about.scale(),
            about.letters()
        ),
        height: 400,
        x: Axis {
            title: "half-normal quantile".into(),
            range: Some((0.0, furthest * 1.06)),
            ..Axis::default()
        },
        y: Axis { range: (top > 0.0).then_some((0.0, top * 1.08)), ..measure.axis(about, reaches) },
        views: vec![View { label: "half-normal".into(), lines, marks_y, ..View::default() }],
        ..Figure::default()
    }
}

/// `AB`, `C (L)`.
fn name_of(effect: &TermEstimate) -> String {
    if effect.contrast.is_empty() {
        effect.term.clone()
    } else {
        format!("{} ({})", effect.term, effect.contrast)
    }
}

/// The term with the shortest terms that it cannot be separated from: `D+AB`.
pub(crate) fn short_label(effect: &TermEstimate) -> String {
    let mut label = name_of(effect);
    for (number, alias) in effect.aliased_with.iter().enumerate() {
        if number == ALIASES {
            label += "+…";
            break;
        }
        if alias.starts_with(['-', '−']) {
            label += &alias.replace('-', "−");
        } else {
            label += "+";
            label += alias.trim_start_matches('+');
        }
    }
    label
}

/// The same with names of the factors where there is room.
fn label(about: &About<'_>, effect: &TermEstimate) -> String {
    let short = short_label(effect);
    let room = about.experiment.aliases.is_none() || effect.order == 1;
    if effect.order <= 2 && room { format!("{short} {}", effect.name) } else { short }
}

/// What is said of an effect when it is pointed at.
fn hover_text(about: &About<'_>, effect: &TermEstimate) -> String {
    let mut parts = vec![effect.name.clone()];
    parts.push(match effect.effect {
        Some(full) => {
            format!("2q = {}", about.scale.change(full, effect.half_width.map(|half| 2.0 * half)))
        }
        None => {
            let contrast = if effect.contrast.is_empty() { "coefficient" } else { &effect.contrast };
            format!("{contrast}: {}", about.scale.change(effect.coefficient, effect.half_width))
        }
    });
    parts.extend(effect.variation_percent.map(|p| format!("{p:.1} % of the variation")));
    parts.extend(effect.p.map(p_value));
    if !effect.aliased_with.is_empty() {
        let shown: Vec<_> = effect.aliased_with.iter().take(6).map(String::as_str).collect();
        let more = if effect.aliased_with.len() > shown.len() { ", …" } else { "" };
        parts.push(format!("aliased with {}{more}", shown.join(", ")));
    }
    parts.join("\n")
}

/// `p = 0.034`, `p < 0.0001`.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 1e-4 => "p < 0.0001".into(),
        p if p < 0.01 => format!("p = {p:.4}"),
        p => format!("p = {p:.2}"),
    }
}
