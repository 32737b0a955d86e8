//! Whether the analysis may be believed: residuals, and the power that the response should be raised to.

use benchmaster_analysis::experiment::{ErrorKind, RunResidual, ScaleUsed};
use benchmaster_stats::{normal_quantile, standard_deviation};

use super::super::figure::{Axis, Figure, Line, Mode, View};
use super::About;

const NORMAL: &str = "normal distribution with the same deviation";
/// Residuals drawn, at most.
const POINTS: usize = 2_000;

pub(super) fn figures(about: &About<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    if about.experiment.residuals.runs.len() > 1 && residuals_vary(about) {
        figures.push(against_fitted(about));
        figures.push(quantiles(about));
        figures.extend(against_order(about));
        figures.push(histogram(about));
    }
    figures.extend(box_cox(about));
    figures
}

/// Whether the model leaves anything: residuals of a model with as many terms as runs are 0 up to rounding.
fn residuals_vary(about: &About<'_>) -> bool {
    let runs = &about.experiment.residuals.runs;
    let largest = |value: fn(&RunResidual) -> f64| runs.iter().map(|r| value(r).abs()).fold(0.0, f64::max);
    largest(|r| r.residual) > 1e-9 * largest(|r| r.response)
}

/// The sentence of a check, or why there is none; then what the plot shows.
fn note(about: &About<'_>, checks: &[&str], shown: &str) -> String {
    let residuals = &about.experiment.residuals;
    let mut sentences: Vec<&str> = residuals
        .checks
        .iter()
        .filter(|check| checks.contains(&check.name))
        .map(|check| check.sentence.as_str())
        .collect();
    if let (true, Some(why)) = (sentences.is_empty(), &residuals.no_checks) {
        sentences.push(why);
    }
    let end = |sentence: &str| if sentence.ends_with('.') { "" } else { "." };
    let sentences: Vec<_> = sentences.iter().map(|s| format!("{s}{}", end(s))).collect();
    let listed = residuals.runs.len();
    let mut limits = String::new();
    if listed < residuals.runs_total {
        limits += &format!(" Of {} runs {listed} are listed.", residuals.runs_total);
    }
    if listed > POINTS {
        limits += &format!(" About {POINTS} are drawn, among them the largest residuals.");
    }
    let ratio = if about.scale.log {
        " On the log scale a residual is the ratio of the measured response to the model's."
    } else {
        ""
    };
    format!(
        "{} {shown} {}; no interval applies to single residuals.{ratio}{limits}",
        sentences.join(" "),
        about.n()
    )
    .trim_start()
    .to_owned()
}

/// At most so many residuals: the largest, and an even choice of the others.
fn drawn(runs: &[RunResidual]) -> Vec<RunResidual> {
    if runs.len() <= POINTS {
        return runs.to_vec();
    }
    let mut by_size: Vec<usize> = (0..runs.len()).collect();
    by_size.sort_by(|a, b| runs[*b].residual.abs().total_cmp(&runs[*a].residual.abs()));
    let rest = by_size.split_off(POINTS / 4);
    let mut rest: Vec<usize> = rest;
    rest.sort_unstable();
    let step = rest.len().div_ceil(POINTS * 3 / 4);
    by_size.extend(rest.into_iter().step_by(step));
    by_size.sort_unstable();
    by_size.into_iter().map(|run| runs[run]).collect()
}

fn residual_axis(about: &About<'_>) -> Axis {
    let values = about.experiment.residuals.runs.iter().map(|r| about.scale.change_place(r.residual));
    about.scale.change_axis("residual", values)
}

fn points(about: &About<'_>, runs: &[RunResidual], x: impl Iterator<Item = f64>) -> Line {
    Line {
        unlisted: true,
        what: "row ",
        text: runs.iter().map(|r| (r.row + 1).to_string()).collect(),
        ..Line::through(
            "run",
            0,
            Mode::Markers,
            x.zip(runs.iter().map(|r| about.scale.change_place(r.residual))),
        )
    }
}

fn panel(id: &str, title: &str, note: String, x: Axis, y: Axis, view: View) -> Figure {
    Figure {
        id: format!("effects-{id}"),
        title: title.into(),
        note,
        height: 300,
        x,
        y,
        views: vec![View { label: title.into(), ..view }],
        ..Figure::default()
    }
}

/// The line that residuals should scatter about.
fn zero() -> Vec<(f64, String)> {
    vec![(0.0, String::new())]
}

fn against_fitted(about: &About<'_>) -> Figure {
    let runs = drawn(&about.experiment.residuals.runs);
    let value = |fitted: f64| about.scale.place(if about.scale.log { fitted.exp() } else { fitted });
    let x = about.scale.mean_axis(runs.iter().map(|r| value(r.fitted)));
    let x = Axis { title: x.title.replacen("mean of", "fitted", 1), ..x };
    let line = points(about, &runs, runs.iter().map(|r| value(r.fitted)));
    panel(
        "residuals-fitted",
        "Residuals against fitted values",
        note(about, &["spread"], "The spread should be the same everywhere."),
        x,
        residual_axis(about),
        View { lines: vec![line], marks_y: zero(), ..View::default() },
    )
}

fn quantiles(about: &About<'_>) -> Figure {
    let mut sorted = about.experiment.residuals.runs.clone();
    sorted.sort_by(|a, b| a.residual.total_cmp(&b.residual));
    let n = sorted.len() as f64;
    let ranked: Vec<_> =
        sorted.iter().enumerate().map(|(i, r)| (normal_quantile((i as f64 + 0.5) / n), *r)).collect();
    // Both ends whole, of the middle an even choice.
    let ends = POINTS / 8;
    let step = ranked.len().div_ceil(POINTS).max(1);
    let kept: Vec<_> = ranked
        .iter()
        .enumerate()
        .filter(|(i, _)| *i < ends || *i + ends >= ranked.len() || i % step == 0)
        .map(|(_, point)| *point)
        .collect();
    let runs: Vec<_> = kept.iter().map(|(_, r)| *r).collect();
    let mut lines = vec![points(about, &runs, kept.iter().map(|(quantile, _)| *quantile))];
    let residuals: Vec<f64> = sorted.iter().map(|r| r.residual).collect();
    if let (Some(deviation), Some(end)) = (standard_deviation(&residuals), ranked.last().map(|p| p.0)) {
        let ends = [-end, end].map(|quantile| (quantile, about.scale.change_place(quantile * deviation)));
        lines.push(Line::through(NORMAL, 1, Mode::Lines, ends));
    }
    panel(
        "residuals-quantiles",
        "Normal quantiles of residuals",
        note(about, &["normality"], "Normally distributed residuals follow the line."),
        Axis::titled("quantile of the normal distribution"),
        residual_axis(about),
        View { lines, ..View::default() },
    )
}

fn against_order(about: &About<'_>) -> Option<Figure> {
    let known: Vec<RunResidual> =
        about.experiment.residuals.runs.iter().filter(|r| r.order.is_some()).copied().collect();
    if known.len() < 2 {
        return None;
    }
    let runs = drawn(&known);
    let place = |r: &RunResidual| r.order.unwrap_or(0) as f64 + 1.0;
    let line = points(about, &runs, runs.iter().map(place));
    Some(panel(
        "residuals-order",
        "Residuals in the order of execution",
        note(about, &["drift"], "They should show no trend and no waves."),
        Axis::titled("place in the order of execution"),
        residual_axis(about),
        View { lines: vec![line], marks_y: zero(), ..View::default() },
    ))
}

/// Bins of equal width (Sturges' number of them, at most 40), with what a normal distribution would have in them.
fn histogram(about: &About<'_>) -> Figure {
    let residuals: Vec<f64> =
        about.experiment.residuals.runs.iter().map(|r| about.scale.change_place(r.residual)).collect();
    let (low, high) = super::scaled::reach(residuals.iter().copied());
    let bins = ((residuals.len() as f64).log2().ceil() as usize + 1).clamp(3, 40);
    let width = (high - low) / bins as f64;
    let mut counts = vec![0usize; bins];
    for residual in &residuals {
        counts[(((residual - low) / width) as usize).min(bins - 1)] += 1;
    }
    let middle = |bin: usize| low + (bin as f64 + 0.5) * width;
    let bars = counts.iter().enumerate().map(|(bin, count)| (middle(bin), *count as f64));
    let bars = Line { unlisted: true, ..Line::through("runs", 0, Mode::Bars, bars) };
    let mut lines = vec![bars];
    if let Some(deviation) = standard_deviation(&residuals).filter(|d| *d > 0.0) {
        let steps = 60;
        let x = (0..=steps).map(|i| low + (high - low) * f64::from(i) / f64::from(steps));
        let scale = residuals.len() as f64 * width / (deviation * std::f64::consts::TAU.sqrt());
        let curve = x.map(|x| (x, scale * (-0.5 * (x / deviation).powi(2)).exp()));
        lines.push(Line::through(NORMAL, 1, Mode::Lines, curve));
    }
    panel(
        "residuals-histogram",
        "Histogram of residuals",
        note(about, &["normality"], "It should be bell-shaped."),
        residual_axis(about),
        Axis { title: "runs per bin".into(), zero: true, ..Axis::default() },
        View { lines, ..View::default() },
    )
}

/// How well each power of the response fits.
fn box_cox(about: &About<'_>) -> Option<Figure> {
    let scale = &about.experiment.scale;
    let mut profile = scale.box_cox.clone();
    profile.retain(|point| point.log_likelihood.is_finite());
    if profile.len() < 2 {
        return None;
    }
    profile.sort_by(|a, b| a.lambda.total_cmp(&b.lambda));
    let best = profile.iter().map(|p| p.log_likelihood).fold(f64::NEG_INFINITY, f64::max);
    // The likelihood ratio of a single parameter: half the quantile of χ² with one degree of freedom.
    let z = normal_quantile(0.5 + about.experiment.confidence / 2.0);
    let bound = best - z * z / 2.0;
    let used = match scale.used {
        ScaleUsed::Identity => (1.0, "as measured"),
        ScaleUsed::Log => (0.0, "logarithm"),
    };
    let likelihoods = profile.iter().map(|point| (point.lambda, point.log_likelihood));
    let line = Line {
        unlisted: true,
        size: Some(9),
        ..Line::through("log likelihood", 0, Mode::Joined, likelihoods)
    };
    let name = |lambda: f64| match lambda {
        -1.0 => "−1\n(1/y)".to_owned(),
        -0.5 => "−½".into(),
        0.0 => "0\n(log y)".into(),
        0.5 => "½\n(√y)".into(),
        1.0 => "1\n(y)".into(),
        l => l.to_string(),
    };
    let ticks = profile.iter().map(|p| (p.lambda, name(p.lambda))).collect();
    let (first, last) = (profile[0].lambda, profile[profile.len() - 1].lambda);
    let reasons: Vec<_> = scale.reasons.iter().map(|r| r.trim_end_matches('.')).collect();
    let who = if scale.asked { "as asked" } else { "by rule" };
    let split = match about.experiment.error.kind {
        ErrorKind::SplitPlot => " The profile treats all runs as independent and ignores whole plots.",
        _ => "",
    };
    Some(Figure {
        id: "effects-box-cox".into(),
        title: "Box-Cox profile".into(),
        note: format!(
            "{}. The higher the likelihood, the better the model fits the response raised to the power λ; powers \
             above the dashed line are inside the {} confidence interval of the best. Used: {} (λ = {}), {who}. \
             {}{}{split}",
            about.n(),
            about.level(),
            used.1,
            used.0,
            reasons.join(". "),
            if reasons.is_empty() { "" } else { "." },
        ),
        height: 300,
        x: Axis {
            title: "power λ of the response".into(),
            ticks,
            range: Some((first - 0.15, last + 0.15)),
            ..Axis::default()
        },
        y: Axis::titled("log likelihood"),
        views: vec![View {
            label: "profile".into(),
            lines: vec![line],
            marks: vec![(used.0, "used".into())],
            marks_y: vec![(bound, format!("{} confidence", about.level()))],
            ..View::default()
        }],
        ..Figure::default()
    })
}
