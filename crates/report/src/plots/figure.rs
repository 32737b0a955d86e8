//! Plots as data; the page's script draws them.

use benchmaster_record::results::Unit;
use serde::Serialize;

/// One plot, with several views of which one is shown.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Figure {
    /// Identifier within the page.
    pub(crate) id: String,
    /// The section it stands in: a workload's name.
    pub(crate) workload: String,
    pub(crate) title: String,
    /// What it shows: n, what bars and marks mean.
    pub(crate) note: String,
    /// What is chosen between views: `operation`, `treatment`, `response`.
    pub(crate) choice: &'static str,
    /// Height in pixels.
    pub(crate) height: usize,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// At least one.
    pub(crate) views: Vec<View>,
}
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Axis {
    /// Title with unit; a view may have its own for x.
    pub(crate) title: String,
    /// Unit after the SI prefix at each tick: `s`, `B/s`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) unit: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) log: bool,
    /// Begins at 0.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) zero: bool,
    /// First tick on top.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) reversed: bool,
    /// Ticks at given places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ticks: Vec<(f64, String)>,
    /// Labels of ticks are written upwards, so that many fit beside each other.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) upright: bool,
    /// From where to where, if not as far as the values go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<(f64, f64)>,
    /// Not drawn: the places along it mean nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) hidden: bool,
}

impl Axis {
    pub(crate) fn titled(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde asks for")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// What one choice shows.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct View {
    pub(crate) label: String,
    /// The unit of the x axis, where it depends on the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x_unit: Option<&'static str>,
    /// Whether x is logarithmic in this view.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) x_log: bool,
    pub(crate) lines: Vec<Line>,
    /// Parts of the plot, one above the other, with an axis of its own each; none for a plot of one part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) panels: Vec<Panel>,
    /// Values by time and size, below the lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heat: Option<Heat>,
    /// Vertical marks: place and label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<(f64, String)>,
    /// Horizontal marks: place and label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks_y: Vec<(f64, String)>,
    /// An x axis of its own instead of the figure's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x: Option<Axis>,
    /// A y axis of its own instead of the figure's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) y: Option<Axis>,
    /// A height of its own in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) height: Option<usize>,
    /// Drawn on its side on narrow screens, where its x labels would not fit beside each other.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) turns: bool,
    /// Texts within the plot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<Words>,
}

/// A text at a place of the plot, in the axes' values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Words {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) text: String,
    /// Where the text stands about its place: `above`, `below`, `right`, `above left`, `below right` and so on.
    pub(crate) at: &'static str,
    /// Less prominent than the values.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) quiet: bool,
}

/// A part of a plot, above which its title and the names of its lines stand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Unit after the SI prefix at each tick.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) unit: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) log: bool,
    /// Horizontal marks: place and label.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<(f64, String)>,
}

/// How many values lie in each cell of a grid: a column for each part of the time, rows of equal width on a logarithmic axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Heat {
    /// Number of the panel it is in.
    pub(crate) panel: usize,
    /// Where the first column begins, and how wide a column is.
    pub(crate) grid: (f64, f64),
    /// The logarithm to base ten of the lower end of the lowest row.
    pub(crate) low: f64,
    /// Rows to a decade.
    pub(crate) per_decade: u32,
    pub(crate) rows: usize,
    /// Of each column the number of its lowest row that is not empty, and the counts from there on.
    pub(crate) columns: Vec<(usize, Vec<u64>)>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    #[default]
    Lines,
    /// Steps: each value holds from its x to the next.
    Steps,
    Markers,
    /// Markers that are joined by lines.
    Joined,
    Bars,
    /// Bars to the right, at the places of y.
    Across,
}
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Number of the colour.
    pub(crate) color: usize,
    /// Number of the panel it is in.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) panel: usize,
    pub(crate) mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) x: Option<Values>,
    /// First x and distance, where x is regular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grid: Option<(f64, f64)>,
    pub(crate) y: Values,
    /// How far the intervals of x reach below and above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_x: Option<Vec<Option<(f64, f64)>>>,
    /// The same for y.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_y: Option<Vec<Option<(f64, f64)>>>,
    /// Name of the marker in plot.js: `circle`, `diamond`, `x`; `-open` ones are outlines.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) symbol: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u32>,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) faint: bool,
    /// Drawn in the colour of what stands back, whatever its number of the colour.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) quiet: bool,
    /// Lines of the same group are one entry of the legend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// Left out of the legend.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) unlisted: bool,
    /// What `text` begins with.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) what: &'static str,
    /// Per value, what it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) text: Vec<String>,
    /// Per value, what stands beside it in the plot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
}
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Values {
    Numbers(Vec<f64>),
    Names(Vec<String>),
}

impl Default for Values {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

impl Values {
    pub(crate) fn numbers(values: impl IntoIterator<Item = f64>) -> Self {
        Self::Numbers(values.into_iter().map(short).collect())
    }
}

impl Line {
    pub(crate) fn new(name: impl Into<String>, color: usize, mode: Mode, y: Values) -> Self {
        Self { name: name.into(), color, mode, y, ..Self::default() }
    }

    /// Through places of x and y.
    pub(crate) fn through(
        name: impl Into<String>,
        color: usize,
        mode: Mode,
        places: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let (x, y): (Vec<f64>, Vec<f64>) = places.into_iter().unzip();
        Self::new(name, color, mode, Values::numbers(y)).at(Values::numbers(x))
    }

    pub(crate) fn at(self, x: Values) -> Self {
        Self { x: Some(x), ..self }
    }
}

/// A number with five significant digits: no plot shows more, and it takes less room.
pub(crate) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// An interval that reaches as far to both sides.
pub(crate) fn both_sides(half_width: f64) -> (f64, f64) {
    let half_width = short(half_width);
    (half_width, half_width)
}

/// The factor from a stored value to the axis (nanoseconds are shown as seconds), and the unit at the ticks.
pub(crate) fn axis_unit(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::BytesPerSecond => (1.0, "B/s"),
        Unit::OperationsPerSecond => (1.0, "ops/s"),
        Unit::Nanoseconds => (1e-9, "s"),
        Unit::Count | Unit::Ratio => (1.0, ""),
    }
}

/// Thins a regular series to at most about `limit` points without losing its extremes: of each part the smallest and
/// the largest value stay, at their places.
pub(crate) fn thin(values: &[f64], limit: usize) -> Vec<(usize, f64)> {
    if values.len() <= limit {
        return values.iter().copied().enumerate().collect();
    }
    let parts = (limit / 2).max(1);
    let mut kept = Vec::with_capacity(parts * 2);
    for part in 0..parts {
        let range = part * values.len() / parts..(part + 1) * values.len() / parts;
        let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        let ends = (range.clone().min_by(by_value), range.max_by(by_value));
        if let (Some(low), Some(high)) = ends {
            kept.extend([low.min(high), low.max(high)].map(|i| (i, values[i])));
        }
    }
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_spikes_and_stalls() {
        let mut values = vec![100.0; 100_000];
        values[54_321] = 7.0;
        values[67_890] = 900.0;
        let kept = thin(&values, 200);
        assert!(kept.len() <= 200, "{}", kept.len());
        assert!(kept.contains(&(54_321, 7.0)) && kept.contains(&(67_890, 900.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(thin(&[3.0, 1.0], 10), [(0, 3.0), (1, 1.0)]);
    }

    #[test]
    fn numbers_are_shortened() {
        assert_eq!(short(123_456_789.0), 123_460_000.0);
        assert_eq!(short(-0.000_012_345_678), -0.000_012_346);
        assert_eq!(short(0.0), 0.0);
    }
}
