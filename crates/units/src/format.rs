//! Numbers as people read them: scaled units, and as many digits as the uncertainty supports.
//!
//! Everything that is shown goes through here, so that one number looks the same wherever it stands.

use serde::{Deserialize, Serialize};

/// The unit of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unit {
    #[serde(rename = "B/s")]
    BytesPerSecond,
    #[serde(rename = "ops/s")]
    OperationsPerSecond,
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "count")]
    Count,
    /// A ratio without unit.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// `B/s`, `ops/s`, `ns`, `count` or `ratio`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::BytesPerSecond => "B/s",
            Self::OperationsPerSecond => "ops/s",
            Self::Nanoseconds => "ns",
            Self::Count => "count",
            Self::Ratio => "ratio",
        }
    }

    /// Whether larger values are better.
    pub fn larger_is_better(self) -> bool {
        matches!(self, Self::BytesPerSecond | Self::OperationsPerSecond)
    }
}

/// A unit with its prefix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// What a value in the base unit is divided by.
    pub divisor: f64,
    /// The scaled unit; empty for counts and ratios.
    pub unit: &'static str,
}

const BYTES: [Scale; 5] =
    [scale(1.0, "B/s"), scale(1e3, "kB/s"), scale(1e6, "MB/s"), scale(1e9, "GB/s"), scale(1e12, "TB/s")];
const OPERATIONS: [Scale; 3] = [scale(1.0, "ops/s"), scale(1e3, "kops/s"), scale(1e6, "Mops/s")];
const TIME: [Scale; 4] = [scale(1.0, "ns"), scale(1e3, "µs"), scale(1e6, "ms"), scale(1e9, "s")];
const BITS: [Scale; 4] =
    [scale(1.0, "bit/s"), scale(1e3, "kbit/s"), scale(1e6, "Mbit/s"), scale(1e9, "Gbit/s")];
const PLAIN: [Scale; 1] = [scale(1.0, "")];

const fn scale(divisor: f64, unit: &'static str) -> Scale {
    Scale { divisor, unit }
}

impl Scale {
    /// The scale in which a value of this magnitude has one to three digits before the point.
    pub fn of(unit: Unit, magnitude: f64) -> Self {
        Self::fitting(
            match unit {
                Unit::BytesPerSecond => &BYTES,
                Unit::OperationsPerSecond => &OPERATIONS,
                Unit::Nanoseconds => &TIME,
                Unit::Count | Unit::Ratio => &PLAIN,
            },
            magnitude,
        )
    }

    fn fitting(scales: &[Self], magnitude: f64) -> Self {
        // 999.96 rounds to 1000, which belongs to the next unit.
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
    /// `512.3 ± 4.1 MB/s`; without an interval `512.3 MB/s`. ASCII only unless `unicode`.
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
    let magnitude = half_width.map_or(value.abs(), |h| h.max(value.abs()));
    if let Some(exponent) = exponent(magnitude).filter(|_| scale.unit.is_empty() && unit != Unit::Ratio) {
        let part = |v: f64| v / 10f64.powi(exponent);
        let decimals = half_width.filter(|h| *h > 0.0).map_or(3, |h| decimals_for(part(h), 2));
        let text = |v: f64| format!("{}e{exponent}", fixed(part(v), decimals));
        return Rounded { value: text(value), half_width: half_width.map(text), unit: scale.unit };
    }
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

/// The mean of a quantity that is never negative, such as a rate or a time: `512.3 ± 4.1 MB/s`, and where the interval
/// would reach below 0, its ends: `780 (0 to 2689) MB/s`.
pub fn estimate(mean: f64, half_width: Option<f64>, unit: Unit, scale: Option<Scale>) -> String {
    let shown = rounded(mean, half_width, unit, scale);
    match half_width.filter(|h| h.is_finite() && *h > mean && mean >= 0.0) {
        None => shown.text(true),
        Some(half_width) => {
            let scale = Some(scale.unwrap_or_else(|| Scale::of(unit, mean)));
            let upper = rounded(mean + half_width, Some(half_width), unit, scale).value;
            let unit = if shown.unit.is_empty() { String::new() } else { format!(" {}", shown.unit) };
            format!("{} (0 to {upper}){unit}", shown.value)
        }
    }
}

/// A number without a unit, to four significant digits: `12.35`, `1.275e-9`.
pub fn plain(value: f64) -> String {
    match exponent(value.abs()) {
        Some(exponent) => format!("{}e{exponent}", fixed(value / 10f64.powi(exponent), 3)),
        None => fixed(value, decimals_for(value, 4)),
    }
}

/// The power of ten that a number without a unit is written with: none from 0.0001 to 10^15.
fn exponent(magnitude: f64) -> Option<i32> {
    let outside = magnitude.is_finite() && magnitude > 0.0 && !(1e-4..1e15).contains(&magnitude);
    // 9.9996 to four digits is 10.00, which has the next exponent; 10^-308 has no reciprocal.
    outside.then(|| (magnitude.log10() + 2.17e-5).floor().max(-300.0) as i32)
}

/// Decimals that show a number to so many significant digits: 0 to 9.
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

/// Three significant digits in the scale that fits; whole numbers without decimals.
fn three_digits(value: f64, scales: &[Scale]) -> String {
    let scale = Scale::fitting(scales, value);
    let scaled = value / scale.divisor;
    let decimals = if scaled.fract() == 0.0 { 0 } else { decimals_for(scaled, 3) };
    format!("{} {}", fixed(scaled, decimals), scale.unit).trim_end().to_owned()
}

/// A time given in nanoseconds, to three significant digits, the most that a latency histogram (1 % wide) resolves:
/// `2.13 ms`, `10 s`.
pub fn time(ns: f64) -> String {
    three_digits(ns, &TIME)
}

/// Bytes per second in powers of 1000, as networks and disks are sold: `117 MB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    three_digits(bytes_per_second, &BYTES)
}

/// Bits per second in powers of 1000: `10 Gbit/s`.
pub fn bits(per_second: f64) -> String {
    three_digits(per_second, &BITS)
}

/// Bytes in powers of 1024: `512 B`, `1 MiB`, `15.6 GiB`.
pub fn bytes(n: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (n, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let decimals = usize::from(unit > 0 && value < 99.95 && value.fract() != 0.0);
    format!("{value:.decimals$} {}", units[unit])
}

/// A share from 0 to 1 as a percentage with two significant digits: `3.4 %`, `87 %`, `0.04 %`. Near 100 % the distance
/// from it counts: `99.6 %`. Whole percentages have no decimals.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    let size = value.abs();
    let decimals = match size {
        _ if (value - value.round()).abs() < 1e-9 => 0,
        0.0..0.095 => decimals_for(value, 1),
        0.095..9.95 => 1,
        99.0..99.95 => 1,
        _ => 0,
    };
    format!("{} %", fixed(value, decimals))
}

/// A share that someone has chosen, such as a threshold, as a percentage with all its digits: `2 %`, `0.25 %`.
pub fn exact_percent(share: f64) -> String {
    let text = format!("{:.6}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A length of time: `35 ms`, `48 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0 if seconds > 0.0 => time(seconds * 1e9),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A whole number in groups of three digits, from five digits on: `1234`, `1 234 567`.
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

/// A text in ASCII, for terminals that have no Unicode: `+/-` for `±`, `us` for `µs`.
pub fn ascii(text: &str) -> String {
    let pairs = [
        ("±", "+/-"),
        ("×", "x"),
        ("·", "*"),
        ("µs", "us"),
        ("−", "-"),
        ("–", "-"),
        ("…", "..."),
        ("ω²", "omega^2"),
    ];
    pairs.iter().fold(text.to_owned(), |text, (unicode, ascii)| text.replace(unicode, ascii))
}

/// At most six columns: three significant digits with a prefix, as `0`, `0.5`, `12.3k`, `45.6M`.
pub fn short(value: f64) -> String {
    let (number, prefix) = short_parts(value);
    format!("{number}{prefix}")
}

/// [`short`] with a blank before the prefix, for a unit that follows: `12.3 k`, `456 `.
pub fn short_before_unit(value: f64) -> String {
    let (number, prefix) = short_parts(value);
    format!("{number} {prefix}")
}

fn short_parts(value: f64) -> (String, &'static str) {
    let (mut scaled, mut prefix) = (value.abs(), "");
    for next in ["k", "M", "G", "T", "P"] {
        // What would be rounded to four digits belongs to the next prefix.
        if scaled < 999.5 {
            break;
        }
        (scaled, prefix) = (scaled / 1e3, next);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let decimals = match prefix {
        "" => usize::from(scaled != 0.0 && scaled < 9.95),
        _ if scaled < 9.995 => 2,
        _ if scaled < 99.95 => 1,
        _ => 0,
    };
    (format!("{sign}{scaled:.decimals$}"), prefix)
}

/// Items in a sentence: `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn very_small_and_very_large_numbers_have_an_exponent() {
        assert_eq!(text(1.284e-9, 2.7e-10, Unit::Count), "1.28e-9 ± 0.27e-9");
        assert_eq!(text(1e100, None, Unit::Count), "1.000e100");
        assert_eq!(text(-3e-7, 5e-6, Unit::Count), "-0.3e-6 ± 5.0e-6");
        assert_eq!(
            (plain(1.2e-9), plain(1e100), plain(0.0)),
            ("1.200e-9".into(), "1.000e100".into(), "0".into())
        );
        assert_eq!(
            (plain(9.99996e-5), plain(1e-4), plain(5e14)),
            ("1.000e-4".into(), "0.0001000".into(), "500000000000000".into())
        );
        assert_eq!((plain(5e-324).len() < 20, plain(f64::MAX)), (true, "1.798e308".into()));
    }

    #[test]
    fn a_rate_is_never_below_zero() {
        let rate = |mean, half| estimate(mean, half, Unit::BytesPerSecond, None);
        assert_eq!(rate(512_345_678.0, Some(4_123_000.0)), "512.3 ± 4.1 MB/s");
        assert_eq!(rate(780e6, Some(1909e6)), "780 (0 to 2689) MB/s");
        assert_eq!(rate(0.0, Some(0.0)), "0 ± 0 B/s");
        assert_eq!(rate(87e6, None), "87.00 MB/s");
        assert_eq!(estimate(-2.0, Some(3.0), Unit::Count, None), "-2.0 ± 3.0");
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
    fn times_rates_and_bandwidths_have_three_digits() {
        let times = [0.0, 7.0, 2134.0, 12_430.0, 999_900.0, 1_243_000.0, 2.5e9, 1.5e12].map(time);
        let expected = ["0 ns", "7 ns", "2.13 µs", "12.4 µs", "1.00 ms", "1.24 ms", "2.50 s", "1500 s"];
        assert_eq!(times, expected);
        assert_eq!([117.4e6, 1.25e9].map(rate), ["117 MB/s", "1.25 GB/s"]);
        assert_eq!([1e10, 2.5e6, 300.0].map(bits), ["10 Gbit/s", "2.50 Mbit/s", "300 bit/s"]);
    }

    #[test]
    fn counts_sizes_durations() {
        assert_eq!([1234, 1_234_567].map(count), ["1234", "1 234 567"]);
        assert_eq!([plural(0, "run"), plural(1, "run")], ["0 runs", "1 run"]);
        assert_eq!([512.0, 1536.0, 1_048_576.0, 16e9].map(bytes), ["512 B", "1.5 KiB", "1 MiB", "14.9 GiB"]);
        let lengths = [0.0, 0.035, 48.4, 200.0, 7_500.0].map(duration);
        assert_eq!(lengths, ["0 s", "35 ms", "48 s", "3 min 20 s", "2 h 5 min"]);
    }

    #[test]
    fn shares_have_the_digits_that_matter() {
        let shares = [0.0, 0.0341, 0.05, 0.07, 0.8712, 0.95, 1.0].map(percent);
        assert_eq!(shares, ["0 %", "3.4 %", "5 %", "7 %", "87 %", "95 %", "100 %"]);
        let ends = [0.0004, 0.000_01, 0.00097, 0.0996, 0.995, 0.9999, -0.0123].map(percent);
        assert_eq!(ends, ["0.04 %", "0.001 %", "0.1 %", "10 %", "99.5 %", "100 %", "-1.2 %"]);
        assert_eq!([0.02, 0.025, 0.0125].map(exact_percent), ["2 %", "2.5 %", "1.25 %"]);
    }

    #[test]
    fn no_negative_zero() {
        assert_eq!(text(-0.0004, 0.12, Unit::Ratio), "0.00 ± 0.12");
    }

    #[test]
    fn short_numbers_have_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.04, "0.0"),
            (0.5, "0.5"),
            (9.96, "10"),
            (123.4, "123"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (999_600.0, "1.00M"),
            (5.12e9, "5.12G"),
            (-3_500.0, "-3.50k"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!([short_before_unit(12_345.0), short_before_unit(456.0)], ["12.3 k", "456 "]);
    }

    proptest! {
        #[test]
        fn short_numbers_fit_into_six_columns(value in -1e14..1e14f64) {
            prop_assert!(short(value).chars().count() <= 6, "{}", short(value));
        }
    }
}
