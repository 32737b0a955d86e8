//! The centre between the two levels of a factor.

use benchmaster_units::{Bandwidth, ByteSize, Rate, TimeSpan};

/// The value in the middle of two values, all as written in TOML. `None` when they are not of one kind that has a middle,
/// or the middle cannot be written.
///
/// Whole numbers stay whole: there is no middle of 1 and 4 workers.
pub(crate) fn between(low: &str, high: &str) -> Option<String> {
    if let (Ok(low), Ok(high)) = (whole(low), whole(high)) {
        let sum = i128::from(low) + i128::from(high);
        return (sum % 2 == 0).then(|| (sum / 2).to_string());
    }
    if let (Ok(low), Ok(high)) = (low.replace('_', "").parse::<f64>(), high.replace('_', "").parse::<f64>()) {
        let middle = low / 2.0 + high / 2.0;
        // With its point it stays a number that may have a fraction.
        return middle.is_finite().then(|| format!("{middle:?}"));
    }
    let (low, high) = (inner(low)?, inner(high)?);
    let text = size(low, high)
        .or_else(|| span(low, high))
        .or_else(|| rate(low, high))
        .or_else(|| bandwidth(low, high));
    text.map(|text| format!("\"{text}\""))
}

fn whole(text: &str) -> Result<i64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

fn inner(text: &str) -> Option<&str> {
    let quote = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    quote('"').or_else(|| quote('\'')).filter(|inner| inner.trim().parse::<f64>().is_err())
}

fn size(low: &str, high: &str) -> Option<String> {
    let (ByteSize(low), ByteSize(high)) = (low.parse().ok()?, high.parse().ok()?);
    let sum = low.checked_add(high)?;
    sum.is_multiple_of(2).then(|| ByteSize(sum / 2).to_string())
}

fn span(low: &str, high: &str) -> Option<String> {
    let (TimeSpan(low), TimeSpan(high)) = (low.parse().ok()?, high.parse().ok()?);
    let middle = (low + high) / 2;
    let text = TimeSpan(middle).to_string();
    (text.parse() == Ok(TimeSpan(middle))).then_some(text)
}

fn rate(low: &str, high: &str) -> Option<String> {
    let (Rate(low), Rate(high)) = (low.parse().ok()?, high.parse().ok()?);
    Some(Rate((low + high) / 2.0).to_string())
}

fn bandwidth(low: &str, high: &str) -> Option<String> {
    let (Bandwidth(low), Bandwidth(high)) = (low.parse().ok()?, high.parse().ok()?);
    Some(Bandwidth((low + high) / 2.0).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_is_the_mean_of_the_two_values() {
        let is =
            |low, high, centre: &str| assert_eq!(between(low, high).as_deref(), Some(centre), "{low} {high}");
        is("1", "5", "3");
        is("1_000", "2_000", "1500");
        is("0.5", "1", "0.75");
        is("1.0", "3.0", "2.0");
        is("\"64KiB\"", "'1MiB'", "\"544KiB\"");
        is("\"1MB\"", "\"2MB\"", "\"1500KB\"");
        is("\"0ms\"", "\"13.9ms\"", "\"6950us\"");
        is("\"100/s\"", "\"300/s\"", "\"200/s\"");
        is("\"1Gbit/s\"", "\"100Mbit/s\"", "\"68750KB/s\"");
    }

    #[test]
    fn some_values_have_no_centre() {
        for (low, high) in [
            ("1", "4"),
            ("\"1B\"", "\"2B\""),
            ("\"3\"", "\"4.1\""),
            ("\"64KiB\"", "\"1s\""),
            ("true", "false"),
            ("1", "\"1s\""),
            ("\"none\"", "\"o_sync\""),
            ("nan", "1.0"),
        ] {
            assert_eq!(between(low, high), None, "{low} {high}");
        }
    }
}
