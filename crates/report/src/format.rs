//! Numbers as people read them: scaled units, and as many digits as the uncertainty supports.

use benchmaster_store::record::Unit;

/// A unit with its prefix, and what a value is divided by to be told in it.
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
        // 999.96 rounds to 1000 and is better told in the next unit.
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
    /// The value.
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

/// A latency to three significant digits, the most its histogram (1 % wide) can tell: `1.24 ms`.
pub fn latency(ns: f64, unicode: bool) -> String {
    let scale = Scale::of(Unit::Nanoseconds, ns);
    let value = ns / scale.divisor;
    let unit = if scale.unit == "µs" && !unicode { "us" } else { scale.unit };
    format!("{} {unit}", fixed(value, decimals_for(value, 3)))
}

/// A whole number with thin groups of three: `1 234 567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// `1 run`, `2 runs`.
pub fn plural(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A share as a percentage with as many digits as it deserves: `3.4 %`, `87 %`.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    format!("{} %", fixed(value, if value.abs() < 9.95 { 1 } else { 0 }))
}

/// With blanks at which no line may break.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Bytes in the largest IEC unit that leaves at least 1: `15.6 GiB`.
pub fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let decimals = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.decimals$} {}", units[unit])
}

/// A length of time for people: `48 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(ns: u64) -> String {
    let seconds = (ns as f64 / 1e9).round() as u64;
    match seconds {
        0 => latency(ns as f64, true),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Decimals that show a number to so many significant digits: 0 to 9.
fn decimals_for(value: f64, digits: i32) -> usize {
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
fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.into(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, half_width: impl Into<Option<f64>>, unit: Unit) -> String {
        rounded(value, half_width.into(), unit, None).text(true)
    }

    #[test]
    fn digits_follow_the_half_width() {
        assert_eq!(text(512_345_678.0, 4_123_000.0, Unit::BytesPerSecond), "512.3 ± 4.1 MB/s");
        assert_eq!(text(512_345_678.0, 41_230_000.0, Unit::BytesPerSecond), "512 ± 41 MB/s");
        assert_eq!(text(512_345_678.0, 412_300_000.0, Unit::BytesPerSecond), "512 ± 412 MB/s");
        assert_eq!(text(512_345_678.0, 9_970_000.0, Unit::BytesPerSecond), "512 ± 10 MB/s");
        assert_eq!(text(1.2345e9, 3.4e5, Unit::BytesPerSecond), "1.23450 ± 0.00034 GB/s");
        assert_eq!(text(0.98765, 0.0123, Unit::Ratio), "0.988 ± 0.012");
        assert_eq!(text(1.0, 1e-12, Unit::Ratio), "1.0000 ± 0.0000");
    }

    #[test]
    fn without_an_interval_four_digits_are_shown() {
        assert_eq!(text(512_345_678.0, None, Unit::BytesPerSecond), "512.3 MB/s");
        assert_eq!(text(12_345.0, None, Unit::OperationsPerSecond), "12.35 kops/s");
        assert_eq!(text(3.0, None, Unit::Count), "3");
        assert_eq!(text(0.0, None, Unit::OperationsPerSecond), "0 ops/s");
        assert_eq!(text(5.0, 0.0, Unit::Count), "5 ± 0");
    }

    #[test]
    fn units_scale_and_carry() {
        assert_eq!(text(999.96, None, Unit::BytesPerSecond), "1.000 kB/s");
        assert_eq!(text(950.0, None, Unit::Nanoseconds), "950.0 ns");
        assert_eq!(text(1_500_000.0, 20_000.0, Unit::Nanoseconds), "1.500 ± 0.020 ms");
        assert_eq!(text(-1_500_000.0, 20_000.0, Unit::Nanoseconds), "-1.500 ± 0.020 ms");
        assert_eq!(rounded(15_000.0, None, Unit::Nanoseconds, None).text(false), "15.00 us");
        assert_eq!(rounded(2e6, Some(1e5), Unit::BytesPerSecond, None).text(false), "2.00 +/- 0.10 MB/s");
    }

    #[test]
    fn a_column_has_one_scale_unless_its_values_lie_too_far_apart() {
        let scale = Scale::common(Unit::BytesPerSecond, [5e7, 2e9]).unwrap();
        assert_eq!(scale.unit, "GB/s");
        assert_eq!(rounded(5e7, None, Unit::BytesPerSecond, Some(scale)).text(true), "0.05000 GB/s");
        assert_eq!(Scale::common(Unit::BytesPerSecond, [5e6, 2e9]), None);
        assert_eq!(Scale::common(Unit::BytesPerSecond, []), None);
    }

    #[test]
    fn latencies_have_three_digits() {
        assert_eq!(latency(1_243_000.0, true), "1.24 ms");
        assert_eq!(latency(12_430.0, false), "12.4 us");
        assert_eq!(latency(999_900.0, true), "1.00 ms");
        assert_eq!(latency(7.0, true), "7.00 ns");
    }

    #[test]
    fn counts_sizes_times() {
        assert_eq!(count(1234), "1234");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(plural(1, "run"), "1 run");
        assert_eq!(plural(0, "run"), "0 runs");
        assert_eq!(percent(0.0341), "3.4 %");
        assert_eq!(percent(0.8712), "87 %");
        assert_eq!(bytes(16_000_000_000), "14.9 GiB");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(duration(48_400_000_000), "48 s");
        assert_eq!(duration(200_000_000_000), "3 min 20 s");
        assert_eq!(duration(7_500_000_000_000), "2 h 5 min");
        assert_eq!(duration(35_000_000), "35.0 ms");
    }

    #[test]
    fn no_negative_zero() {
        assert_eq!(text(-0.0004, 0.12, Unit::Ratio), "0.00 ± 0.12");
    }
}
