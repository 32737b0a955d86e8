//! Numbers in few columns, and texts that do no harm to a terminal.

pub(crate) use benchmaster_units::format::{duration, short, short_before_unit as spaced};

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
    }

    proptest! {
        #[test]
        fn shortened_texts_fit(text in ".{0,40}", columns in 1usize..30) {
            prop_assert!(tail(&text, columns).chars().count() <= columns);
            prop_assert!(front(&text, columns).chars().count() <= columns);
        }
    }
}
