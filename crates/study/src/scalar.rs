//! Values that are written in TOML in several ways: as a string, a number or a truth value.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Unexpected};
use serde::{Deserializer, Serialize};

/// A single value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Scalar {
    /// `"64KiB"`, `"on"`.
    Text(String),
    /// `4`.
    Whole(i64),
    /// `0.5`.
    Number(f64),
    /// `true`.
    Truth(bool),
}

impl Scalar {
    /// Reads one, where `expected` stands for what the value may be.
    pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D, expected: &str) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor(expected))
    }

    /// The error of a value whose type is not among those expected.
    pub(crate) fn unexpected<E: de::Error>(&self, expected: &str) -> E {
        let found = match self {
            Self::Text(text) => Unexpected::Str(text),
            Self::Whole(number) => Unexpected::Signed(*number),
            Self::Number(number) => Unexpected::Float(*number),
            Self::Truth(truth) => Unexpected::Bool(*truth),
        };
        E::invalid_type(found, &expected)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Whole(n) => n.fmt(f),
            Self::Number(x) => x.fmt(f),
            Self::Truth(truth) => truth.fmt(f),
        }
    }
}

struct Visitor<'a>(&'a str);

impl de::Visitor<'_> for Visitor<'_> {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
        Ok(Scalar::Truth(truth))
    }
}
