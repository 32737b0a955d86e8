//! Values that can be written in several forms: what is written decides which, so that a mistake in one is reported as a
//! mistake in that form.

use std::fmt;

use benchmaster_units::ByteSize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected};

use super::fileset::{Size, SizeDistribution, WeightedSize, gamma_shape};
use super::{Repeat, RepeatFor, RepeatUntil, ReplaySpeed, ReplayWord};

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a size such as \"64KiB\", or a distribution such as \
                     `{ distribution = \"uniform\", min = \"1KiB\", max = \"1MiB\" }`",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map(Size::Fixed).map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Size, E> {
                Ok(Size::Fixed(ByteSize(bytes)))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                let invalid = |_| E::invalid_type(Unexpected::Signed(bytes), &self);
                bytes.try_into().map(|bytes| Size::Fixed(ByteSize(bytes))).map_err(invalid)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Size, A::Error> {
                SizeDistribution::deserialize(MapAccessDeserializer::new(table)).map(Size::Distributed)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Every key that a distribution can have.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct DistributionKeys {
    distribution: DistributionWord,
    min: Option<ByteSize>,
    max: Option<ByteSize>,
    mean: Option<ByteSize>,
    shape: Option<f64>,
    median: Option<ByteSize>,
    sigma: Option<f64>,
    sizes: Option<Vec<WeightedSize>>,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DistributionWord {
    Uniform,
    Gamma,
    LogNormal,
    Weighted,
}

impl<'de> Deserialize<'de> for SizeDistribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn required<T, E: de::Error>(value: Option<T>, key: &'static str) -> Result<T, E> {
            value.ok_or_else(|| E::missing_field(key))
        }
        let keys = DistributionKeys::deserialize(deserializer)?;
        let of_it: &'static [&'static str] = match keys.distribution {
            DistributionWord::Uniform => &["distribution", "min", "max"],
            DistributionWord::Gamma => &["distribution", "mean", "shape"],
            DistributionWord::LogNormal => &["distribution", "median", "sigma"],
            DistributionWord::Weighted => &["distribution", "sizes"],
        };
        let given = [
            ("min", keys.min.is_some()),
            ("max", keys.max.is_some()),
            ("mean", keys.mean.is_some()),
            ("shape", keys.shape.is_some()),
            ("median", keys.median.is_some()),
            ("sigma", keys.sigma.is_some()),
            ("sizes", keys.sizes.is_some()),
        ];
        if let Some((other, _)) = given.iter().find(|(key, given)| *given && !of_it.contains(key)) {
            return Err(de::Error::unknown_field(other, of_it));
        }
        Ok(match keys.distribution {
            DistributionWord::Uniform => {
                Self::Uniform { min: required(keys.min, "min")?, max: required(keys.max, "max")? }
            }
            DistributionWord::Gamma => Self::Gamma {
                mean: required(keys.mean, "mean")?,
                shape: keys.shape.unwrap_or_else(gamma_shape),
            },
            DistributionWord::LogNormal => Self::LogNormal {
                median: required(keys.median, "median")?,
                sigma: required(keys.sigma, "sigma")?,
            },
            DistributionWord::Weighted => Self::Weighted { sizes: required(keys.sizes, "sizes")? },
        })
    }
}

impl<'de> Deserialize<'de> for ReplaySpeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = ReplaySpeed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number such as 2.0, or \"max\"")
            }

            fn visit_f64<E: de::Error>(self, times: f64) -> Result<ReplaySpeed, E> {
                Ok(ReplaySpeed::Times(times))
            }

            fn visit_i64<E: de::Error>(self, times: i64) -> Result<ReplaySpeed, E> {
                Ok(ReplaySpeed::Times(times as f64))
            }

            fn visit_u64<E: de::Error>(self, times: u64) -> Result<ReplaySpeed, E> {
                Ok(ReplaySpeed::Times(times as f64))
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<ReplaySpeed, E> {
                ReplayWord::deserialize(StrDeserializer::new(word)).map(ReplaySpeed::Word)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Repeat;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of times, \"end-of-file\", or `{ duration = \"10s\" }`")
            }

            fn visit_u64<E: de::Error>(self, times: u64) -> Result<Repeat, E> {
                Ok(Repeat::Times(times))
            }

            fn visit_i64<E: de::Error>(self, times: i64) -> Result<Repeat, E> {
                let invalid = |_| E::invalid_type(Unexpected::Signed(times), &self);
                times.try_into().map(Repeat::Times).map_err(invalid)
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Repeat, E> {
                RepeatUntil::deserialize(StrDeserializer::new(word)).map(Repeat::Until)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Repeat, A::Error> {
                RepeatFor::deserialize(MapAccessDeserializer::new(table)).map(Repeat::For)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
