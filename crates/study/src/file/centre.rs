//! The centre between the two levels of a factor.

use benchmaster_units::{Bandwidth, ByteSize, Rate, TimeSpan};

use super::tree::Value;

/// The value in the middle of two values. `None` when they are not of one kind that has a middle, or the middle cannot be
/// written.
///
/// Whole numbers stay whole: there is no middle of 1 and 4 workers.
pub(crate) fn between(low: &Value, high: &Value) -> Option<Value> {
    if let (Value::Integer(low), Value::Integer(high)) = (low, high) {
        let sum = i128::from(*low) + i128::from(*high);
        return (sum % 2 == 0).then_some(sum / 2)?.try_into().ok().map(Value::Integer);
    }
    if let (Some(low), Some(high)) = (number(low), number(high)) {
        let middle = low / 2.0 + high / 2.0;
        return middle.is_finite().then_some(Value::Float(middle));
    }
    let (Value::Text(low), Value::Text(high)) = (low, high) else { return None };
    if [low, high].iter().any(|text| text.trim().parse::<f64>().is_ok()) {
        return None;
    }
    let text = size(low, high)
        .or_else(|| span(low, high))
        .or_else(|| rate(low, high))
        .or_else(|| bandwidth(low, high));
    text.map(Value::Text)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
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
    use std::sync::Arc;

    use super::*;
    use crate::diagnostics::Diagnostics;
    use crate::file::tree::{self, Node};

    fn centre(low: &str, high: &str) -> Option<String> {
        let text = format!("low = {low}\nhigh = {high}");
        let tree = tree::parse(&text, &mut Diagnostics::new("a.toml", &text));
        let value = |key| tree.get(key).map(|node: &Arc<Node>| node.value.clone()).unwrap();
        between(&value("low"), &value("high")).map(|centre| centre.to_toml())
    }

    #[test]
    fn the_centre_is_the_mean_of_the_two_values() {
        let is =
            |low, high, middle: &str| assert_eq!(centre(low, high).as_deref(), Some(middle), "{low} {high}");
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
            assert_eq!(centre(low, high), None, "{low} {high}");
        }
    }
}
