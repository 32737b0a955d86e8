//! Plots of the effects of factors.
//!
//! Every plot says the number of runs, the confidence level, and whether it shows half or full effects. Effects of a
//! logarithm are labelled as ratios: an axis of effects has the logarithms' places and the ratios' names.

mod checks;
mod means;
mod scaled;
mod sizes;

use benchmaster_analysis::experiment::Experiment;

use self::scaled::ResponseScale;
pub(crate) use self::sizes::short_label;
use super::figure::Figure;
use crate::format;
use crate::overview::unbroken;

/// Effects drawn, at most: the largest.
const EFFECTS: usize = 40;

/// The plots of an experiment, those that answer most first.
pub(crate) fn of_experiment(experiment: &Experiment) -> Vec<Figure> {
    let about = About { experiment, scale: ResponseScale::of(experiment) };
    let mut figures = Vec::new();
    figures.extend(sizes::figures(&about));
    figures.extend(means::figures(&about));
    figures.extend(checks::figures(&about));
    figures
}

/// Whether a plot is about how sure the effects are, and not about what they are.
pub(crate) fn is_check(figure: &Figure) -> bool {
    !matches!(figure.id.as_str(), "effects-sizes" | "effects-main" | "effects-interactions" | "effects-cube")
}

/// What every plot is about.
struct About<'e> {
    experiment: &'e Experiment,
    scale: ResponseScale<'e>,
}

impl About<'_> {
    /// `n = 320 runs of 64 treatments`.
    fn n(&self) -> String {
        format!(
            "n = {} of {}",
            unbroken(&format::plural(self.experiment.runs, "run")),
            format::plural(self.experiment.treatments, "treatment")
        )
    }

    /// `95 %`.
    fn level(&self) -> String {
        unbroken(&format::percent(self.experiment.confidence))
    }

    /// What the letters stand for, where the plot has letters alone.
    fn letters(&self) -> String {
        let factors = &self.experiment.factors;
        let named: Vec<_> = factors.iter().take(16).map(|f| format!("{} = {}", f.letter, f.name)).collect();
        let more = if factors.len() > named.len() { ", …" } else { "" };
        format!("{}{more}.", named.join(", "))
    }

    /// On which scale the effects are, in a sentence with a blank before it; nothing where it is the response's own.
    fn scale(&self) -> &'static str {
        if self.scale.log {
            " The logarithm of the response is analysed, so an effect is a ratio: ×2 doubles the response."
        } else {
            ""
        }
    }
}
