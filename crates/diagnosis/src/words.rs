//! Numbers in sentences.

pub(crate) use benchmaster_analysis::quantity::plural;

/// A share of 0 to 1; 0 of nothing.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    match whole > 0.0 {
        true => (part / whole).clamp(0.0, 1.0),
        false => 0.0,
    }
}

/// As a percentage.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent >= 10.0 => format!("{percent:.0} %"),
        _ if percent >= 0.1 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// Bytes with a unit of powers of 1024.
pub(crate) fn size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit == 0 || value >= 100.0 || value.fract() == 0.0 {
        true => format!("{value:.0} {}", units[unit]),
        false => format!("{value:.1} {}", units[unit]),
    }
}

/// A time given in nanoseconds, with three digits: `2.13 ms`.
pub(crate) fn time(ns: f64) -> String {
    scaled(ns, &["ns", "µs", "ms", "s"])
}

/// Bytes per second with a unit of powers of 1000, as networks and disks are sold: `117 MB/s`.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    scaled(bytes_per_second, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
}

/// Three digits and a unit of powers of 1000.
fn scaled(value: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 999.5 && unit + 1 < units.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    let unit = units.get(unit).copied().unwrap_or_default();
    match scaled.abs() {
        _ if scaled.fract() == 0.0 => format!("{scaled:.0} {unit}"),
        size if size >= 99.95 => format!("{scaled:.0} {unit}"),
        size if size >= 9.995 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_they_need() {
        assert_eq!([0.954, 0.0213, 0.0004].map(percent), ["95 %", "2.1 %", "0.04 %"]);
        assert_eq!([512.0, 1536.0, 1048576.0].map(size), ["512 B", "1.5 KiB", "1 MiB"]);
        assert_eq!(
            [0.0, 12.0, 2134.0, 40_123_456.0, 2.5e9, 1.5e12].map(time),
            ["0 ns", "12 ns", "2.13 µs", "40.1 ms", "2.50 s", "1500 s"]
        );
        assert_eq!([117.4e6, 1.25e9].map(rate), ["117 MB/s", "1.25 GB/s"]);
        assert_eq!([plural(1, "run"), plural(2, "run")], ["1 run", "2 runs"]);
        assert_eq!([share(1.0, 0.0), share(3.0, 2.0), share(1.0, 4.0)], [0.0, 1.0, 0.25]);
    }
}
