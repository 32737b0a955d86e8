//! How runs are put into blocks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, IntoDeserializer, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// How runs are put into blocks: those of one block are done after each other, under the same conditions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Blocks {
    /// `"replicates"`: each replicate of all treatments is a block.
    Replicates(ReplicateBlocks),
    /// Blocks within each replicate, confounded with interactions.
    Confounded(ConfoundedBlocks),
    /// Blocks with names; complete replicates go to them in turn.
    Named(#[schemars(length(min = 1))] Vec<NamedBlock>),
}

impl<'de> Deserialize<'de> for Blocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Blocks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`\"replicates\"`, `{ count = 4 }`, or tables `[[design.blocks]]` with `name`, `at` and `set`",
                )
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Blocks, E> {
                ReplicateBlocks::deserialize(word.into_deserializer()).map(Blocks::Replicates)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Blocks, A::Error> {
                ConfoundedBlocks::deserialize(MapAccessDeserializer::new(table)).map(Blocks::Confounded)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<Blocks, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(blocks)).map(Blocks::Named)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The word `"replicates"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicateBlocks {
    /// Each replicate of all treatments is complete before the next begins.
    Replicates,
}

/// Blocks that are smaller than a replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfoundedBlocks {
    /// Blocks in each replicate: 2, 4, 8, ….
    #[schemars(range(min = 2))]
    pub count: u32,
}

/// A block with a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedBlock {
    /// Its name: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// Time of day, on the clock of the controller, that is waited for before each of its replicates begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<TimeOfDay>,
    /// Parameters that are different in this block, by path. All blocks set the same parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Value>,
}

/// A time of day, to the minute: `09:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay {
    hour: i8,
    minute: i8,
}

impl TimeOfDay {
    /// The hour, from 0 to 23.
    pub fn hour(self) -> i8 {
        self.hour
    }

    /// The minute, from 0 to 59.
    pub fn minute(self) -> i8 {
        self.minute
    }
}

impl FromStr for TimeOfDay {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let part = |part: &str, limit: i8| {
            let good = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|&value: &i8| good && value < limit)
        };
        let read = || {
            let (hour, minute) = text.split_once(':')?;
            Some(Self { hour: part(hour, 24)?, minute: part(minute, 60)? })
        };
        read().ok_or_else(|| {
            format!("`{text}` is not a time of day; write hours and minutes as in `\"09:00\"` or `\"21:30\"`")
        })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for TimeOfDay {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
            "description": "A time of day.",
            "examples": ["09:00", "21:30"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_hours_and_minutes() {
        for good in ["00:00", "09:05", "23:59"] {
            assert_eq!(good.parse::<TimeOfDay>().unwrap().to_string(), good);
        }
        for bad in ["", "9:00", "24:00", "12:60", "12", "12:00:00", "+1:00", "１２:00", "noon"] {
            let error = bad.parse::<TimeOfDay>().unwrap_err();
            assert!(error.contains("`\"09:00\"`"), "{error}");
        }
    }
}
