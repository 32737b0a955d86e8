//! Sizes, durations and rates as users write them (`64KiB`, `5GB`, `250ms`, `1000/s`), and in [`mod@format`] numbers as
//! they are shown.
//!
//! Both SI (`kB`, `MB`: powers of 1000) and IEC (`KiB`, `MiB`: powers of 1024) units are accepted and kept apart; a
//! size without a unit is refused unless it is a plain integer number of bytes, because `64k` means both.

pub mod format;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why a quantity could not be read; the message names the text and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not start with a number.
    #[error("`{text}` does not start with a number; write {example}")]
    NotANumber {
        /// What was written.
        text: String,
        /// A right way to write such a quantity.
        example: &'static str,
    },
    /// The unit is missing or not one of those known.
    #[error("`{text}` has {found}; write {fix}")]
    Unit {
        /// What was written.
        text: String,
        /// `no unit` or ``the unknown unit `x` ``.
        found: String,
        /// What would be right.
        fix: String,
    },
    /// The quantity does not fit, is negative, or is not whole where it must be.
    #[error("`{text}` is {problem}")]
    Range {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text, "a size such as `64KiB`")?;
        if unit.is_empty() && number.fract() == 0.0 && !text.contains('.') {
            let bytes = text.trim().parse().map(Self);
            return bytes.map_err(|_| out_of_range(text, "not a number of bytes that fits in 64 bits"));
        }
        let factor =
            factor(SIZE_UNITS, unit).ok_or_else(|| unknown(text, unit, size_fix(text, number, unit)))?;
        let bytes = number * factor as f64;
        if bytes > (1u64 << 62) as f64 {
            return Err(out_of_range(text, "more than 4 EiB"));
        }
        if (bytes - bytes.round()).abs() > 1e-6 * bytes.max(1.0) {
            return Err(out_of_range(text, "not a whole number of bytes"));
        }
        Ok(Self(bytes.round() as u64))
    }
}

/// What the writer of an unknown size unit may have meant.
fn size_fix(text: &str, number: f64, unit: &str) -> String {
    let letter = unit.chars().next().map(|c| c.to_ascii_uppercase());
    match letter {
        Some(c @ ('K' | 'M' | 'G' | 'T')) => {
            let n = text.trim().trim_end_matches(|c: char| c.is_alphabetic()).trim();
            let power = match c {
                'K' => 1,
                'M' => 2,
                'G' => 3,
                _ => 4,
            };
            format!(
                "`{n}{c}iB` ({:.0} bytes) or `{n}{c}B` ({:.0} bytes)",
                number * 1024f64.powi(power),
                number * 1000f64.powi(power)
            )
        }
        _ => "one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB".into(),
    }
}

impl fmt::Display for ByteSize {
    /// The largest unit that expresses the size exactly, so that the text reads back as the same size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iec = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let si = [("TB", 1_000_000_000_000u64), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];
        let best = iec
            .iter()
            .chain(&si)
            .filter(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor))
            .max_by_key(|(_, factor)| *factor);
        match best {
            Some((unit, factor)) => f.pad(&format!("{}{unit}", self.0 / factor)),
            None => f.pad(&format!("{}B", self.0)),
        }
    }
}

/// A length of time, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeSpan(pub Duration);

const TIME_UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];

impl TimeSpan {
    /// `n` seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }
    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(Duration::from_millis(n))
    }
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl FromStr for TimeSpan {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const EXAMPLE: &str = "a duration such as `250ms`, `30s` or `5min`";
        let (number, unit) = split_number(text, EXAMPLE)?;
        let Some(factor) = factor(TIME_UNITS, unit) else {
            let fix = if unit.is_empty() && number == 0.0 {
                "`0s`".into()
            } else if unit.is_empty() {
                format!("`{number}s` if seconds are meant")
            } else {
                "one of ns, us, ms, s, min, h, d".into()
            };
            return Err(unknown(text, unit, fix));
        };
        let nanos = number * factor;
        if nanos > 3.2e18 {
            return Err(out_of_range(text, "more than 100 years"));
        }
        Ok(Self(Duration::from_nanos(nanos.round() as u64)))
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [
            ("h", 3_600_000_000_000),
            ("min", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
        ];
        let exact = units.iter().find(|(_, factor)| nanos > 0 && nanos.is_multiple_of(*factor));
        match exact {
            Some((unit, factor)) => f.pad(&format!("{}{unit}", nanos / factor)),
            None if nanos == 0 => f.pad("0s"),
            None => f.pad(&format!("{nanos}ns")),
        }
    }
}

/// Operations per second, written `1000/s`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text, "a rate such as `1000/s`")?;
        let per_second = match unit {
            "/s" => number,
            "/min" => number / 60.0,
            _ => return Err(unknown(text, unit, format!("`{number}/s`"))),
        };
        if per_second <= 0.0 {
            return Err(out_of_range(text, "not more than 0/s"));
        }
        Ok(Self(per_second))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

/// Bytes per second, written `20MB/s` or `1Gbit/s`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Bandwidth(pub f64);

const BIT_UNITS: &[(&str, f64)] =
    &[("bit/s", 1.0), ("kbit/s", 1e3), ("Kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12)];

impl FromStr for Bandwidth {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split_number(text, "a bandwidth such as `20MB/s` or `1Gbit/s`")?;
        let bits = factor(BIT_UNITS, unit).map(|bits| bits / 8.0);
        let bytes = || factor(SIZE_UNITS, unit.strip_suffix("/s")?).map(|bytes| bytes as f64);
        let Some(factor) = bits.or_else(bytes) else {
            return Err(unknown(text, unit, format!("`{number}MB/s` (bytes) or `{number}Mbit/s` (bits)")));
        };
        if number <= 0.0 {
            return Err(out_of_range(text, "not more than nothing"));
        }
        Ok(Self(number * factor))
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.fract() == 0.0 && self.0 < (1u64 << 53) as f64 {
            write!(f, "{}/s", ByteSize(self.0 as u64))
        } else {
            write!(f, "{}B/s", self.0)
        }
    }
}

/// Splits `64KiB` into 64 and `KiB`.
fn split_number<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), UnitError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let number = number.parse::<f64>().map_err(|_| UnitError::NotANumber { text: text.into(), example })?;
    Ok((number, unit.trim()))
}

fn factor<T: Copy>(units: &[(&str, T)], unit: &str) -> Option<T> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn unknown(text: &str, unit: &str, fix: String) -> UnitError {
    let found = if unit.is_empty() { "no unit".into() } else { format!("the unknown unit `{unit}`") };
    UnitError::Unit { text: text.into(), found, fix }
}

fn out_of_range(text: &str, problem: &'static str) -> UnitError {
    UnitError::Range { text: text.into(), problem }
}

macro_rules! text_quantity {
    ($type:ident, $what:literal, $pattern:literal, $examples:expr, $integer:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, n: i64) -> Result<$type, E> {
                        let accept: Option<fn(u64) -> $type> = $integer;
                        match (accept, u64::try_from(n)) {
                            (Some(accept), Ok(n)) => Ok(accept(n)),
                            _ => Err(E::invalid_type(de::Unexpected::Signed(n), &self)),
                        }
                    }
                    fn visit_u64<E: de::Error>(self, n: u64) -> Result<$type, E> {
                        self.visit_i64(i64::try_from(n).unwrap_or(-1))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let accept: Option<fn(u64) -> $type> = $integer;
                let text = json_schema!({ "type": "string", "pattern": $pattern });
                match accept {
                    Some(_) => json_schema!({
                        "description": $what, "examples": $examples,
                        "anyOf": [text, { "type": "integer", "minimum": 0 }]
                    }),
                    None => json_schema!({
                        "description": $what, "examples": $examples,
                        "type": "string", "pattern": $pattern
                    }),
                }
            }
        }
    };
}

text_quantity!(
    ByteSize,
    "a size such as \"64KiB\", \"5GB\" or a whole number of bytes",
    r"^\s*[0-9]+(\.[0-9]*)?\s*(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?\s*$",
    ["64KiB", "5GB", "4096"],
    Some(ByteSize)
);
text_quantity!(
    TimeSpan,
    "a duration such as \"250ms\", \"30s\" or \"5min\"",
    r"^\s*[0-9]+(\.[0-9]*)?\s*(ns|us|µs|ms|s|sec|m|min|h|d)\s*$",
    ["250ms", "30s", "5min"],
    None
);
text_quantity!(Rate, "a rate such as \"1000/s\"", r"^\s*[0-9]+(\.[0-9]*)?\s*(/s|/min)\s*$", ["1000/s"], None);
text_quantity!(
    Bandwidth,
    "a bandwidth such as \"1Gbit/s\" or \"20MB/s\"",
    r"^\s*[0-9]+(\.[0-9]*)?\s*((k|K|M|G|T)?bit|B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)/s\s*$",
    ["1Gbit/s", "20MB/s"],
    None
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn si_and_iec_sizes_are_kept_apart() {
        assert_eq!("64KiB".parse(), Ok(ByteSize(65_536)));
        assert_eq!("64KB".parse(), Ok(ByteSize(64_000)));
        assert_eq!("64 kB".parse(), Ok(ByteSize(64_000)));
        assert_eq!("1.5MiB".parse(), Ok(ByteSize(1_572_864)));
        assert_eq!("5GB".parse(), Ok(ByteSize(5_000_000_000)));
        assert_eq!("4096".parse(), Ok(ByteSize(4096)));
    }

    #[test]
    fn ambiguous_sizes_are_refused_with_both_readings() {
        let error = "64k".parse::<ByteSize>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`64k` has the unknown unit `k`; write `64KiB` (65536 bytes) or `64KB` (64000 bytes)"
        );
        let error = "big".parse::<ByteSize>().unwrap_err().to_string();
        assert!(error.contains("does not start with a number"), "{error}");
        assert!("0.5B".parse::<ByteSize>().is_err());
        assert!("99999999TiB".parse::<ByteSize>().is_err());
        assert!("-1MiB".parse::<ByteSize>().is_err());
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!("0.027ms".parse(), Ok(TimeSpan(Duration::from_nanos(27_000))));
        assert_eq!("5min".parse(), Ok(TimeSpan::seconds(300)));
        let error = "30".parse::<TimeSpan>().unwrap_err().to_string();
        assert_eq!(error, "`30` has no unit; write `30s` if seconds are meant");
    }

    #[test]
    fn rates() {
        assert_eq!("120/min".parse(), Ok(Rate(2.0)));
        assert!("0/s".parse::<Rate>().is_err());
        assert!("5".parse::<Rate>().is_err());
    }

    #[test]
    fn bandwidths_in_bytes_and_bits() {
        assert_eq!("20MB/s".parse(), Ok(Bandwidth(20e6)));
        assert_eq!("1MiB/s".parse(), Ok(Bandwidth(1_048_576.0)));
        assert_eq!("1Gbit/s".parse(), Ok(Bandwidth(125e6)));
        assert_eq!(Bandwidth(20e6).to_string(), "20MB/s");
        let error = "20M".parse::<Bandwidth>().unwrap_err().to_string();
        assert_eq!(error, "`20M` has the unknown unit `M`; write `20MB/s` (bytes) or `20Mbit/s` (bits)");
        assert!("0MB/s".parse::<Bandwidth>().is_err());
    }

    proptest! {
        #[test]
        fn any_size_reads_back(bytes in 0u64..(1 << 53)) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }

        #[test]
        fn any_duration_reads_back(nanos in 0u64..(1 << 52)) {
            let span = TimeSpan(Duration::from_nanos(nanos));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (text.parse::<ByteSize>(), text.parse::<TimeSpan>(), text.parse::<Rate>());
        }
    }
}
