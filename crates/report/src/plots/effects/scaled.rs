//! How values, effects and ratios of a response are drawn and told.

use benchmaster_analysis::experiment::{Experiment, MeanCell};
use benchmaster_record::results::Unit;

use super::super::figure::{Axis, axis_unit, short};
use crate::format::{Scale, rounded};

/// Largest over smallest value from which means are drawn on a logarithmic axis, if the analysis is on the log scale.
const LOG_FROM: f64 = 3.0;

/// A response: its unit, and whether its effects are ratios.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseScale<'e> {
    pub(super) response: &'e str,
    unit: Unit,
    /// From a value to its place on an axis.
    factor: f64,
    suffix: &'static str,
    pub(super) log: bool,
}

impl<'e> ResponseScale<'e> {
    pub(super) fn of(experiment: &'e Experiment) -> Self {
        // A number without a unit is told like a count: with as many digits as its interval supports.
        let unit = experiment.unit.unwrap_or(Unit::Count);
        let (factor, suffix) = axis_unit(unit);
        Self { response: &experiment.response, unit, factor, suffix, log: experiment.is_log() }
    }

    /// `write.throughput [B/s]`.
    pub(super) fn named(&self) -> String {
        if self.suffix.is_empty() {
            self.response.to_owned()
        } else {
            format!("{} [{}]", self.response, self.suffix)
        }
    }

    /// The place of a value in the unit of the response.
    pub(super) fn place(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// The place of a difference; of a logarithm itself.
    pub(super) fn change_place(&self, change: f64) -> f64 {
        if self.log { change } else { change * self.factor }
    }

    /// An axis of means that reaches over these values, already at their places.
    pub(super) fn mean_axis(&self, values: impl Iterator<Item = f64>) -> Axis {
        let (low, high) = reach(values);
        if self.log && low > 0.0 && high / low > LOG_FROM {
            let pad = (high / low).powf(0.06);
            let named = |value: &f64| (*value, self.round_value(*value));
            let ticks = round_numbers(low / pad, high * pad).iter().map(named).collect();
            let range = Some((short(low / pad), short(high * pad)));
            let title = format!("mean of {} (log)", self.response);
            return Axis { title, log: true, ticks, range, ..Axis::default() };
        }
        let pad = (high - low) * 0.06;
        Axis {
            title: format!("mean of {}", self.named()),
            unit: self.suffix,
            range: (pad > 0.0).then(|| (short(low - pad), short(high + pad))),
            ..Axis::default()
        }
    }

    /// A round value at its place, as it stands at a tick: `50 MB/s`.
    fn round_value(&self, place: f64) -> String {
        let value = place / self.factor;
        let scale = Scale::of(self.unit, value);
        format!("{} {}", ratio(value / scale.divisor), scale.unit).trim_end().to_owned()
    }

    /// An axis of changes that reaches over these values, already at their places: differences, or ratios at the places
    /// of their logarithms.
    pub(super) fn change_axis(&self, title: &str, values: impl Iterator<Item = f64>) -> Axis {
        if !self.log {
            let unit = if self.suffix.is_empty() { String::new() } else { format!(" [{}]", self.suffix) };
            return Axis { title: format!("{title}{unit}"), unit: self.suffix, ..Axis::default() };
        }
        let (low, high) = reach(values);
        Axis {
            title: format!("{title} (ratio, log)"),
            ticks: ratio_ticks(low.min(0.0), high.max(0.0)),
            ..Axis::default()
        }
    }

    /// A change with its half width: `+12.3 ± 0.4 MB/s`, on the log scale `×1.05 (1.02 to 1.08)`.
    pub(super) fn change(&self, change: f64, half_width: Option<f64>) -> String {
        if self.log {
            return match half_width {
                Some(half) => format!(
                    "×{} ({} to {})",
                    ratio(change.exp()),
                    ratio((change - half).exp()),
                    ratio((change + half).exp())
                ),
                None => format!("×{}", ratio(change.exp())),
            };
        }
        let sign = if change > 0.0 { "+" } else { "" };
        format!("{sign}{}", rounded(change, half_width, self.unit, None).text(true))
    }

    /// A value in the unit of the response.
    pub(super) fn value(&self, value: f64) -> String {
        rounded(value, None, self.unit, None).text(true)
    }

    /// A mean, in up to two lines: `512.3 MB/s` and `± 4.1 MB/s` or, on the log scale, `508.2 to 516.4 MB/s`.
    pub(super) fn mean(&self, cell: &MeanCell) -> (String, Option<String>) {
        let Some(mean) = cell.mean else { return ("not known".into(), None) };
        let Some([low, high]) = cell.interval else { return (self.value(mean), None) };
        let told = rounded(mean, Some((high - low) / 2.0), self.unit, None);
        let with_unit =
            |text: String| if told.unit.is_empty() { text } else { format!("{text} {}", told.unit) };
        let scale = Scale::of(self.unit, mean);
        let end = |value: f64| {
            let decimals = told.value.split_once('.').map_or(0, |(_, d)| d.len());
            format!("{:.decimals$}", value / scale.divisor)
        };
        let interval = match (&told.half_width, self.log) {
            (Some(half), false) => format!("± {half}"),
            _ => format!("{} to {}", end(low), end(high)),
        };
        (with_unit(told.value.clone()), Some(interval))
    }

    /// How far the interval of a mean reaches below and above it, at their places.
    pub(super) fn reaches(&self, cell: &MeanCell) -> Option<(f64, f64)> {
        let (mean, [low, high]) = (cell.mean?, cell.interval?);
        Some((short((mean - low) * self.factor), short((high - mean) * self.factor)))
    }

    /// The ends of a mean's interval, or the mean itself, at their places.
    pub(super) fn ends(&self, cell: &MeanCell) -> impl Iterator<Item = f64> + use<> {
        let factor = self.factor;
        let interval = cell.interval.filter(|ends| ends.iter().all(|end| end.is_finite()));
        cell.mean.into_iter().chain(interval.into_iter().flatten()).map(move |value| value * factor)
    }
}

/// The smallest and the largest of the numbers.
pub(super) fn reach(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// A ratio with as many digits as it needs: `1.05`, `12`, `0.034`.
pub(super) fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return "?".into();
    }
    // Near 1 what matters is the distance from 1.
    let distance = (value - 1.0).abs();
    let digits = match value {
        v if !(1e-4..1e5).contains(&v) => return format!("{value:.1e}"),
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ if (1e-9..0.1).contains(&distance) => 3 - (distance.log10().floor() as i32 + 1).min(0),
        v if v >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.*}", digits.clamp(0, 6) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Ticks at round ratios between two logarithms, at the places of their logarithms: `×0.5`, `×1`, `×2`.
pub(super) fn ratio_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    if !(low.is_finite() && high.is_finite()) || high <= low {
        return vec![(0.0, "×1".into())];
    }
    let named = |r: f64| (short(r.ln()), format!("×{}", ratio(r)));
    round_numbers(low.exp(), high.exp()).into_iter().map(named).collect()
}

/// Up to eight round numbers between two positive ones, for a logarithmic axis. Where the span is small they have equal
/// distances; where it is large, they are powers of ten.
fn round_numbers(low: f64, high: f64) -> Vec<f64> {
    let inside = |value: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value);
    // 1, 2 and 5 times powers of ten, from steps that are too small on.
    let magnitude = (high - low).log10().floor() as i32;
    let steps = (magnitude - 2..=magnitude).flat_map(|p| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(p)));
    if high / low < 2.5
        && let Some(step) = steps.into_iter().find(|step| (high - low) / step <= 7.0)
    {
        let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
        return (first..=last).map(|k| short(k as f64 * step)).collect();
    }
    let decades = |marks: &[f64], step: i32| -> Vec<f64> {
        let first = (low.log10().floor() as i32).div_euclid(step) * step;
        let powers = (first..=high.log10().ceil() as i32).step_by(step as usize);
        let all = powers.flat_map(|p| marks.iter().map(move |m| short(m * 10f64.powi(p))));
        all.filter(inside).collect()
    };
    let choices = [
        decades(&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], 1),
        decades(&[1.0, 2.0, 5.0], 1),
        decades(&[1.0, 3.0], 1),
        decades(&[1.0], 1),
        decades(&[1.0], 2),
        decades(&[1.0], 3),
    ];
    let fits = choices.iter().position(|numbers| numbers.len() <= 8).unwrap_or(choices.len() - 1);
    choices.into_iter().nth(fits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(low: f64, high: f64) -> Vec<String> {
        ratio_ticks(low.ln(), high.ln()).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn ticks_of_ratios_are_round_and_few() {
        assert_eq!(names(0.97, 1.06), ["×0.98", "×1", "×1.02", "×1.04", "×1.06"]);
        assert_eq!(names(0.4, 2.1), ["×0.5", "×0.7", "×1", "×1.5", "×2"]);
        assert_eq!(names(0.1, 30.0), ["×0.1", "×0.2", "×0.5", "×1", "×2", "×5", "×10", "×20"]);
        assert_eq!(names(1.0, 2e6).len(), 7);
        assert_eq!(names(1.0, 1.0), ["×1"]);
        for span in [1.001, 1.01, 1.1, 1.7, 3.0, 20.0, 1e3, 1e5, 1e9] {
            for low in [1.0, 1.0 / span] {
                let ticks = names(low, span);
                assert!((2..=9).contains(&ticks.len()), "{span}: {ticks:?}");
                assert!(ticks.contains(&"×1".to_owned()), "{span}: {ticks:?}");
            }
        }
    }

    #[test]
    fn ratios_have_the_digits_they_need() {
        let told = [1.0, 1.05, 1.0004, 0.5, 2.0, 12.34, 1234.0, 0.0345, 2e6].map(ratio);
        assert_eq!(told, ["1", "1.05", "1.0004", "0.5", "2", "12.3", "1234", "0.0345", "2.0e6"]);
    }
}
