//! Texts as levels of a factor, and as numbers.

use std::collections::BTreeSet;

use benchmaster_units::{ByteSize, TimeSpan};

/// Levels, and their values where all of them are quantities of one kind.
type Levels = (Vec<String>, Option<Vec<f64>>);

/// Levels from low to high.
pub(super) fn ordered(known: &[&str]) -> Levels {
    let mut levels = known.to_vec();
    levels.sort_unstable();
    match values(&levels) {
        Some(values) => {
            let mut pairs: Vec<_> = values.into_iter().zip(levels).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (values, levels): (Vec<_>, Vec<_>) =
                pairs.into_iter().map(|(v, l)| (v, l.to_owned())).unzip();
            (levels, Some(values))
        }
        None => {
            levels.sort_by_key(|level| rank(level));
            (levels.into_iter().map(str::to_owned).collect(), None)
        }
    }
}

/// Levels in an order that names each of them once.
pub(super) fn as_named(known: &[&str], order: &[String]) -> Result<Levels, String> {
    let present: BTreeSet<&str> = known.iter().copied().collect();
    let mut rest = present.clone();
    let all = || format!("name every level once: {}", present.iter().copied().collect::<Vec<_>>().join(", "));
    for level in order {
        if !rest.remove(level.as_str()) {
            let problem =
                if present.contains(level.as_str()) { "is named twice" } else { "is not in the file" };
            return Err(format!("`{level}` {problem}; {}", all()));
        }
    }
    match rest.first() {
        Some(level) => Err(format!("`{level}` is not named; {}", all())),
        None => {
            let texts: Vec<&str> = order.iter().map(String::as_str).collect();
            Ok((order.to_vec(), values(&texts)))
        }
    }
}

/// Numbers, all of one kind. Two texts for one number (`1`, `+1`) are no numbers, but two levels.
fn values(levels: &[&str]) -> Option<Vec<f64>> {
    let size = |text: &str| text.parse::<ByteSize>().ok().map(|size| size.0 as f64);
    let span = |text: &str| text.parse::<TimeSpan>().ok().map(|span| span.0.as_secs_f64());
    type Read = fn(&str) -> Option<f64>;
    let kinds: [Read; 3] = [number, size, span];
    let read = |kind: &Read| levels.iter().map(|text| kind(text)).collect();
    let values: Vec<f64> = kinds.iter().find_map(read)?;
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.windows(2).all(|pair| pair[0] < pair[1]).then_some(values)
}

/// A finite number.
pub(super) fn number(text: &str) -> Option<f64> {
    let value = match text.parse() {
        Ok(value) => value,
        // The minus sign of typesetting is what spreadsheets and papers give.
        Err(_) => text.strip_prefix('\u{2212}')?.parse().map(|value: f64| -value).ok()?,
    };
    Some(value).filter(|value| value.is_finite())
}

/// Whether a cell says that there is no value.
pub(super) fn is_missing(text: &str) -> bool {
    text.is_empty() || ["NA", "N/A", "NaN"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Where a level stands among others by its name alone.
fn rank(level: &str) -> u8 {
    match level.to_lowercase().as_str() {
        "-" | "\u{2212}" | "low" | "off" | "no" | "false" => 0,
        "+" | "high" | "on" | "yes" | "true" => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_by_what_they_mean() {
        let levels = |known: &[&str]| ordered(known).0;
        assert_eq!(levels(&["10", "9", "-1"]), ["-1", "9", "10"]);
        assert_eq!(levels(&["+1", "-1"]), ["-1", "+1"]);
        assert_eq!(levels(&["1", "\u{2212}1"]), ["\u{2212}1", "1"]);
        assert_eq!(levels(&["1MiB", "64KiB"]), ["64KiB", "1MiB"]);
        assert_eq!(ordered(&["13.9ms", "0.027ms"]).1, Some(vec![0.000_027, 0.013_9]));
        assert_eq!(levels(&["+", "-"]), ["-", "+"]);
        assert_eq!(levels(&["on", "off"]), ["off", "on"]);
        assert_eq!(levels(&["high", "middle", "low"]), ["low", "middle", "high"]);
        assert_eq!(levels(&["v4", "v3"]), ["v3", "v4"]);
        assert_eq!(levels(&["1", "+1"]), ["+1", "1"]);
        assert_eq!(ordered(&["1", "+1"]).1, None);
    }

    #[test]
    fn numbers_are_finite() {
        assert_eq!((number("1e3"), number("\u{2212}2"), number("+4")), (Some(1000.0), Some(-2.0), Some(4.0)));
        assert_eq!((number("inf"), number("nan"), number("1,5"), number("")), (None, None, None, None));
        assert!(
            is_missing("") && is_missing("na") && is_missing("NaN") && !is_missing("0") && !is_missing("x")
        );
    }
}
