//! Numbers in few columns, and texts that do no harm to a terminal.

/// Three significant digits with a prefix: `0`, `0.5`, `12.3`, `456`, `1.23k`, `45.6M`.
pub(crate) fn short(value: f64) -> String {
    let (mut scaled, mut prefix) = (value.abs(), "");
    for next in ["k", "M", "G", "T", "P"] {
        // What would be rounded to four digits belongs to the next prefix.
        if scaled < 999.5 {
            break;
        }
        (scaled, prefix) = (scaled / 1e3, next);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let number = match prefix {
        "" if scaled == 0.0 => return "0".into(),
        "" if scaled < 9.95 => format!("{scaled:.1}"),
        "" => format!("{scaled:.0}"),
        _ if scaled < 9.995 => format!("{scaled:.2}"),
        _ if scaled < 99.95 => format!("{scaled:.1}"),
        _ => format!("{scaled:.0}"),
    };
    format!("{sign}{number}{prefix}")
}

/// [`short`], its prefix apart: `12.3 k`, for a unit that follows.
pub(crate) fn spaced(value: f64) -> String {
    let text = short(value);
    match text.find(|c: char| c.is_alphabetic()) {
        Some(at) => format!("{} {}", &text[..at], &text[at..]),
        None => format!("{text} "),
    }
}

/// Milliseconds with as many decimals as were measured: the sum over `n` calls is in whole milliseconds, so that their mean
/// is known to 1/n. `None`: there were no calls.
pub(crate) fn milliseconds(mean: Option<f64>, n: u64) -> String {
    let Some(mean) = mean else { return String::new() };
    let decimals = match n {
        ..10 => 0,
        10..100 => 1,
        100..1_000 => 2,
        _ => 3,
    };
    let decimals = match mean {
        100.0.. => 0,
        10.0.. => decimals.min(1),
        1.0.. => decimals.min(2),
        _ => decimals,
    };
    format!("{mean:.decimals$}")
}

/// Length of time: `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Names come from servers, files and users: control characters would reach the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The end of a text that is too long, where names differ most: `…/project/data`.
pub(crate) fn tail(text: &str, columns: usize) -> String {
    let text = clean(text);
    let length = text.chars().count();
    if length > columns {
        "…".chars().chain(text.chars().skip(length + 1 - columns.max(1))).collect()
    } else {
        text
    }
}

/// The beginning of a text that is too long.
pub(crate) fn front(text: &str, columns: usize) -> String {
    let text = clean(text);
    if text.chars().count() > columns {
        text.chars().take(columns.max(1) - 1).chain(['…']).collect()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_three_digits() {
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
    }

    #[test]
    fn means_have_no_digits_that_were_not_measured() {
        assert_eq!(milliseconds(None, 0), "");
        assert_eq!(milliseconds(Some(3.0), 1), "3");
        assert_eq!(milliseconds(Some(0.35), 20), "0.3");
        assert_eq!(milliseconds(Some(0.352), 500), "0.35");
        assert_eq!(milliseconds(Some(0.3524), 5_000), "0.352");
        assert_eq!(milliseconds(Some(3.3524), 5_000), "3.35");
        assert_eq!(milliseconds(Some(123.4), 5_000), "123");
    }

    #[test]
    fn texts_are_shortened_and_cleaned() {
        assert_eq!((tail("/mnt/data", 9), tail("/mnt/data", 6)), ("/mnt/data".into(), "…/data".into()));
        assert_eq!((front("version=3", 9), front("version=3", 5)), ("version=3".into(), "vers…".into()));
        assert_eq!(clean("a\x1b[2Jb\n"), "a?[2Jb?");
        assert_eq!([duration(3.4), duration(200.0), duration(7_500.0)], ["3 s", "3 min 20 s", "2 h 5 min"]);
    }

    proptest! {
        #[test]
        fn all_numbers_are_short(value in -1e14..1e14f64) {
            prop_assert!(short(value).chars().count() <= 6, "{}", short(value));
        }

        #[test]
        fn shortened_texts_fit(text in ".{0,40}", columns in 1usize..30) {
            prop_assert!(tail(&text, columns).chars().count() <= columns);
            prop_assert!(front(&text, columns).chars().count() <= columns);
        }
    }
}
