//! Numbers as people read them: scaled units, and as many digits as the uncertainty supports.

pub use benchmaster_analysis::quantity::{Rounded, Scale, plural, rounded};
use benchmaster_analysis::quantity::{decimals_for, fixed};

use benchmaster_store::record::Unit;

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
