//! Whether the effects that were asked for are known precisely enough, and the replicates that would make them so.

use benchmaster_record::results::StageKind;
use benchmaster_stats::model::{Fit, SumOfSquares, judge};
use serde::Serialize;

use super::addition::{Addition, MOST_ROUNDS};
use super::facts::{Facts, Scale};

/// Replicates that are added to each treatment at once, at most.
const MOST_REPLICATES: f64 = 30.0;

/// An effect that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownEffect {
    /// Its factors: `sync × delay`.
    pub name: String,
    /// Which contrast of factors with more than two levels; empty for two.
    pub contrast: String,
    /// The full effect 2q on the scale of the analysis (for factors with more than two levels, twice the coefficient): a
    /// difference, or on the logarithmic scale the logarithm of a ratio.
    pub effect: f64,
    /// Half the width of its confidence interval; `None` when it has none.
    pub half_width: Option<f64>,
    /// The half width as a share of the mean response, or of the ratio; `None` without one.
    pub relative_half_width: Option<f64>,
    /// Whether its term matters, by the rule of every analysis; `None` when that is not known.
    pub significant: Option<bool>,
    /// The effect in words.
    pub sentence: String,
}

/// The effects that were asked for, as estimated from all runs so far.
pub(super) fn effects(facts: &Facts, fit: &Fit) -> Vec<KnownEffect> {
    let decided = judge(fit, SumOfSquares::III).terms;
    let mean = fit.coefficients.first().map_or(f64::NAN, |c| c.value);
    let mut known = Vec::new();
    for coefficient in &fit.coefficients {
        let term = &fit.terms[coefficient.term];
        if !facts.interest.contains(term) {
            continue;
        }
        let effect = 2.0 * coefficient.value;
        let half_width = coefficient.half_width.map(|h| 2.0 * h);
        let relative = half_width
            .map(|h| match facts.scale {
                Scale::Identity => h / mean.abs(),
                Scale::Log => h.exp() - 1.0,
            })
            .filter(|r| r.is_finite());
        let mut one = KnownEffect {
            name: facts.name(term),
            contrast: coefficient.contrast.clone(),
            effect,
            half_width,
            relative_half_width: relative,
            significant: decided.get(coefficient.term).and_then(|decision| decision.matters),
            sentence: String::new(),
        };
        one.sentence = sentence(facts, &one, term, mean);
        known.push(one);
    }
    known
}

fn sentence(facts: &Facts, effect: &KnownEffect, term: &[usize], mean: f64) -> String {
    let what = match (effect.contrast.is_empty(), term) {
        (true, [factor]) => {
            let levels = &facts.level_names[*factor];
            format!("{} from {} to {}", effect.name, levels[0], levels[1])
        }
        (true, _) => format!("The interaction {}", effect.name),
        (false, _) => format!("{} ({})", effect.name, effect.contrast),
    };
    let response = &facts.response;
    let Some(half_width) = effect.half_width else {
        return format!(
            "{what}: the effect on {response} has no interval, because too few runs are left to estimate the error."
        );
    };
    if effect.significant != Some(true) {
        return format!("{what}: the effect on {response} cannot be distinguished from noise.");
    }
    if !effect.contrast.is_empty() {
        // With more than two levels a coefficient is the difference of one of them from the average of all.
        let (own, half_width) = (effect.effect / 2.0, half_width / 2.0);
        return match facts.scale {
            Scale::Log => format!(
                "{what}: {response} is {:.3} times ({:.3} to {:.3}) the average over all levels.",
                own.exp(),
                (own - half_width).exp(),
                (own + half_width).exp()
            ),
            Scale::Identity => format!(
                "{what}: {response} differs by {:+.1} % (± {:.1} %) of its mean from the average over all levels.",
                100.0 * own / mean.abs(),
                100.0 * half_width / mean.abs()
            ),
        };
    }
    match facts.scale {
        Scale::Log => format!(
            "{what}: {response} is multiplied by {:.3} ({:.3} to {:.3}).",
            effect.effect.exp(),
            (effect.effect - half_width).exp(),
            (effect.effect + half_width).exp()
        ),
        Scale::Identity => format!(
            "{what}: {response} changes by {:+.1} % of its mean (± {:.1} %; full effect 2q).",
            100.0 * effect.effect / mean.abs(),
            100.0 * half_width / mean.abs()
        ),
    }
}

/// More replicates, when an effect is not as precise as asked.
pub(super) fn replicates(facts: &Facts, effects: &[KnownEffect]) -> Option<Addition> {
    let asked = facts.precision?;
    if facts.replicating_rounds >= MOST_ROUNDS || effects.is_empty() {
        return None;
    }
    if effects.iter().any(|e| e.half_width.is_none()) {
        return Some(Addition {
            kind: StageKind::Augment,
            reason: "without replicates nothing tells how large the error is".into(),
            rows: facts.distinct.clone(),
            replicates: 1,
        });
    }
    let worst = effects.iter().filter_map(|e| e.relative_half_width).max_by(f64::total_cmp)?;
    if worst <= asked {
        return None;
    }
    // Half widths shrink with the square root of the number of runs.
    let now = facts.values.len() as f64 / facts.distinct.len().max(1) as f64;
    let more = (now * ((worst / asked).powi(2) - 1.0)).ceil().clamp(1.0, MOST_REPLICATES);
    Some(Addition {
        kind: StageKind::Augment,
        reason: format!(
            "the least precise effect is known to ±{:.1} %, and ±{:.1} % was asked for",
            100.0 * worst,
            100.0 * asked
        ),
        rows: facts.distinct.clone(),
        replicates: more as u32,
    })
}

/// What is not as precise as asked.
pub(super) fn imprecise(facts: &Facts, effects: &[KnownEffect]) -> Vec<String> {
    let Some(asked) = facts.precision else { return Vec::new() };
    let mut open = Vec::new();
    for effect in effects {
        match effect.relative_half_width {
            Some(half_width) if half_width > asked => open.push(format!(
                "{} is known to ±{:.1} %, not to the ±{:.1} % that was asked for.",
                effect.name,
                100.0 * half_width,
                100.0 * asked
            )),
            Some(_) => {}
            None => open.push(format!("{} has no interval: more replicates are needed.", effect.name)),
        }
    }
    open
}

/// That the model misses something, where the replicates show it.
pub(super) fn misfit(fit: &Fit, confidence: f64) -> Option<String> {
    let p = fit.errors.iter().filter_map(|e| e.lack_of_fit?.p).min_by(f64::total_cmp)?;
    (p < 1.0 - confidence).then(|| {
        format!(
            "The runs differ by more than these effects explain (lack of fit, p = {p:.4}): an interaction that was not \
             looked at has an effect as well. A full design would show it."
        )
    })
}
