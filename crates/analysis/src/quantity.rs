//! Numbers as people read them: scaled units, and as many digits as the uncertainty supports.

use benchmaster_store::record::Unit;

/// `1 run`, `2 runs`.
pub fn plural(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A unit with its prefix, and what a value is divided by to be shown in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// What a value in the base unit is divided by.
    pub divisor: f64,
    /// The scaled unit; empty for counts and ratios.
    pub unit: &'static str,
}

const BYTES: [Scale; 5] = [
    scale_of(1.0, "B/s"),
    scale_of(1e3, "kB/s"),
    scale_of(1e6, "MB/s"),
    scale_of(1e9, "GB/s"),
    scale_of(1e12, "TB/s"),
];
const OPERATIONS: [Scale; 3] = [scale_of(1.0, "ops/s"), scale_of(1e3, "kops/s"), scale_of(1e6, "Mops/s")];
const TIME: [Scale; 4] = [scale_of(1.0, "ns"), scale_of(1e3, "µs"), scale_of(1e6, "ms"), scale_of(1e9, "s")];
const PLAIN: [Scale; 1] = [scale_of(1.0, "")];

const fn scale_of(divisor: f64, unit: &'static str) -> Scale {
    Scale { divisor, unit }
}

impl Scale {
    /// The scale in which a value of this magnitude has one to three digits before the point.
    pub fn of(unit: Unit, magnitude: f64) -> Self {
        let scales: &[Self] = match unit {
            Unit::BytesPerSecond => &BYTES,
            Unit::OperationsPerSecond => &OPERATIONS,
            Unit::Nanoseconds => &TIME,
            Unit::Count | Unit::Ratio => &PLAIN,
        };
        // 999.96 rounds to 1000 and is better shown in the next unit.
        let fits = |scale: &&Self| magnitude.abs() >= scale.divisor * 0.9995;
        *scales.iter().rev().find(fits).unwrap_or(&scales[0])
    }

    /// One scale for all values of a column, so that they can be compared at a glance: that of the largest, unless the
    /// smallest would then be less than a thousandth.
    pub fn common(unit: Unit, values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let magnitudes = values.into_iter().map(f64::abs).filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = magnitudes.fold((f64::INFINITY, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
        (high > 0.0 && low * 100.0 >= high).then(|| Self::of(unit, high))
    }
}

/// A value with its uncertainty, rounded as the uncertainty demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rounded {
    pub value: String,
    /// The half width of its interval, with as many decimals as the value; `None` when there is none.
    pub half_width: Option<String>,
    /// The scaled unit; empty for counts and ratios.
    pub unit: &'static str,
}

impl Rounded {
    /// `512.3 ± 4.1 MB/s`; without an interval `512.3 MB/s`.
    pub fn text(&self, unicode: bool) -> String {
        let sign = if unicode { "±" } else { "+/-" };
        let number = match &self.half_width {
            Some(half_width) => format!("{} {sign} {half_width}", self.value),
            None => self.value.clone(),
        };
        match (self.unit, unicode) {
            ("", _) => number,
            ("µs", false) => format!("{number} us"),
            (unit, _) => format!("{number} {unit}"),
        }
    }
}

/// Rounds a value to the place of the half width's second significant digit, or to four significant digits when there
/// is no half width, in `scale` or else in the scale that fits the value.
pub fn rounded(value: f64, half_width: Option<f64>, unit: Unit, scale: Option<Scale>) -> Rounded {
    let scale = scale.unwrap_or_else(|| Scale::of(unit, value));
    let value = value / scale.divisor;
    let half_width = half_width.map(|h| h / scale.divisor).filter(|h| h.is_finite());
    let decimals = match half_width {
        Some(h) if h > 0.0 => decimals_for(h, 2),
        _ if unit == Unit::Count && value.fract() == 0.0 => 0,
        _ => decimals_for(value, 4),
    };
    // More would be digits of the arithmetic, not of the measurement.
    let decimals = if unit == Unit::Ratio { decimals.min(4) } else { decimals };
    Rounded {
        value: fixed(value, decimals),
        half_width: half_width.map(|h| fixed(h, decimals)),
        unit: scale.unit,
    }
}

/// Decimals that show a number to this many significant digits: 0 to 9.
pub fn decimals_for(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let magnitude = value.abs().log10().floor() as i32;
    // 9.97 to two digits is 10, which has one digit more before the point.
    let step = 10f64.powi(magnitude - digits + 1);
    let carried = (value.abs() / step).round() * step >= 10f64.powi(magnitude + 1) * (1.0 - 1e-12);
    (digits - 1 - magnitude - i32::from(carried)).clamp(0, 9) as usize
}

/// Fixed decimals, without a minus sign in front of zero.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.into(),
        _ => text,
    }
}
