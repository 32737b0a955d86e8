//! Random variables: Filebench's own (`randvar`) and those of its libraries (`cvar`).

use benchmaster_record::model::{Size, SizeDistribution, WeightedSize};
use benchmaster_units::ByteSize;
use statrs::distribution::{ContinuousCDF, Erlang, Exp, Gamma, Normal, Triangular, Weibull};

use super::parse::{Attribute, Raw};
use super::value::{Attributes, Scope, Value};
use crate::Mistake;

/// Sizes of equal weight that stand for a distribution that has no name here.
const POINTS: usize = 32;
/// Most sizes of a table that is taken over exactly.
const MOST_SIZES: u64 = 256;

/// A random variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draw {
    pub(super) law: Law,
    /// Limits of what is drawn.
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    /// What is drawn becomes a multiple of this, unless 0.
    pub(super) round: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Law {
    Uniform {
        lower: f64,
        upper: f64,
    },
    /// Shifted by `least`, which is part of the mean.
    Gamma {
        mean: f64,
        shape: f64,
        least: f64,
    },
    /// Percent, least, largest.
    Table(Vec<(f64, u64, u64)>),
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Exponential {
        mean: f64,
    },
    Erlang {
        shape: u64,
        rate: f64,
    },
    Normal {
        mean: f64,
        sigma: f64,
    },
    Weibull {
        shape: f64,
        scale: f64,
    },
    Triangular {
        lower: f64,
        upper: f64,
        mode: f64,
    },
}

/// Attributes of Filebench's own random variables.
const OWN: [&str; 8] = ["type", "seed", "gamma", "mean", "min", "round", "randsrc", "randtable"];
/// Attributes of those of libraries.
const CUSTOM: [&str; 5] = ["type", "parameters", "min", "max", "round"];

/// A random variable of Filebench's own.
///
/// # Errors
/// Attributes that it has not, or that have no number where one is needed.
pub(super) fn own(list: &[Attribute], scope: &Scope) -> Result<Draw, Mistake> {
    let attributes = Attributes::new(list, scope, "randvar", &OWN)?;
    let number = |name: &str| Ok::<_, Mistake>(attributes.number(name)?.map(|number| number as f64));
    let least = number("min")?.unwrap_or(0.0);
    let round = attributes.number("round")?.unwrap_or(0);
    let draw = |law| Draw { law, least: None, most: None, round };
    if let Some(Attribute { value: Some(Raw::Table(segments)), .. }) = attributes.find("randtable") {
        let mut table = Vec::new();
        for segment in segments {
            let value = |raw: &Raw| match scope.value(raw) {
                Ok(Value::Number(number)) if number >= 0 => Ok(number as u64),
                Ok(_) => Err("a segment holds numbers from 0 on: percent, least, largest".to_owned()),
                Err(message) => Err(message),
            };
            let [percent, low, high] = segment;
            let numbers = [value(percent), value(low), value(high)];
            let place = || attributes.find("randtable").unwrap_or(&list[0]);
            let [percent, low, high] =
                numbers.map(|number| number.map_err(|message| place().mistake(message)));
            table.push((percent? as f64, low?, high?));
        }
        if table.iter().any(|(_, low, high)| low > high) || table.iter().all(|(percent, ..)| *percent == 0.0)
        {
            let place = attributes.find("randtable").unwrap_or(&list[0]);
            return Err(place.mistake("each segment ends after it begins, and one has a percentage above 0"));
        }
        return Ok(draw(Law::Table(table)));
    }
    let mean = number("mean")?;
    match attributes.text("type")?.as_deref() {
        Some("uniform") => {
            let upper = (2.0 * mean.unwrap_or(0.0) - least).max(least);
            Ok(draw(Law::Uniform { lower: least, upper }))
        }
        None | Some("gamma") => {
            let shape = number("gamma")?.unwrap_or(1500.0) / 1000.0;
            // Without a mean the variable is a share around 1.
            let mean = mean.unwrap_or(1.0);
            match shape == 0.0 || mean <= least {
                true => Ok(draw(Law::Uniform { lower: mean.max(least), upper: mean.max(least) })),
                false => Ok(draw(Law::Gamma { mean, shape, least })),
            }
        }
        Some(_) => {
            let place = attributes.find("type").unwrap_or(&list[0]);
            Err(place.mistake("types are `uniform`, `gamma` and, with a `randtable`, `tabular`"))
        }
    }
}

/// A random variable of a library.
///
/// # Errors
/// As [`own`]; a library that Filebench does not have, and parameters that it does not have.
pub(super) fn custom(list: &[Attribute], scope: &Scope, place: &Attribute) -> Result<Draw, Mistake> {
    let attributes = Attributes::new(list, scope, "cvar", &CUSTOM)?;
    let (kind, given) = (attributes.text("type")?.unwrap_or_default(), attributes.text("parameters")?);
    let place_of = |name: &str| attributes.find(name).unwrap_or(place);
    let mut parameters = Vec::new();
    for part in given.as_deref().unwrap_or_default().split(';').filter(|part| !part.is_empty()) {
        let parsed = part.split_once(':').and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
        let Some(parsed) = parsed.filter(|(_, value)| value.is_finite()) else {
            let message = format!("`{part}` is no parameter: write `name:number;name:number`");
            return Err(place_of("parameters").mistake(message));
        };
        parameters.push(parsed);
    }
    let known: &[(&str, f64)] = match kind.as_str() {
        "cvar-uniform" => &[("lower", 0.0), ("upper", 1.0)],
        "cvar-gamma" => &[("mean", 4096.0), ("gamma", 1.5)],
        "cvar-lognormal" => &[("shape", 1.0), ("scale", 1.0)],
        "cvar-exponential" => &[("mean", 1.0)],
        "cvar-erlang" => &[("shape", 1.0), ("rate", 1.0)],
        "cvar-normal" => &[("mean", 0.0), ("sigma", 1.0)],
        "cvar-weibull" => &[("shape", 1.0), ("scale", 1.0)],
        "cvar-triangular" => &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)],
        _ => {
            let message = "the variables of libraries are cvar-uniform, -gamma, -lognormal, -exponential, -erlang, -normal, \
                           -weibull and -triangular";
            return Err(place_of("type").mistake(message));
        }
    };
    if let Some((name, _)) = parameters.iter().find(|(name, _)| !known.iter().any(|(other, _)| other == name))
    {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        let message = format!("`{kind}` has no parameter `{name}`: it has {}", names.join(", "));
        return Err(place_of("parameters").mistake(message));
    }
    let of = |at: usize| {
        let (name, default) = known[at];
        parameters.iter().rev().find(|(other, _)| *other == name).map_or(default, |(_, value)| *value)
    };
    let law = match kind.as_str() {
        "cvar-uniform" => Law::Uniform { lower: of(0), upper: of(1) },
        "cvar-gamma" => Law::Gamma { mean: of(0), shape: of(1), least: 0.0 },
        "cvar-lognormal" => Law::LogNormal { mu: of(1), sigma: of(0) },
        "cvar-exponential" => Law::Exponential { mean: of(0) },
        "cvar-erlang" => Law::Erlang { shape: of(0).max(1.0) as u64, rate: of(1) },
        "cvar-normal" => Law::Normal { mean: of(0), sigma: of(1) },
        "cvar-weibull" => Law::Weibull { shape: of(0), scale: of(1) },
        _ => Law::Triangular { lower: of(0), upper: of(1), mode: of(2) },
    };
    let bound = |name: &str| Ok::<_, Mistake>(attributes.number(name)?.map(|number| number as f64));
    let draw = Draw {
        law,
        least: bound("min")?,
        most: bound("max")?,
        round: attributes.number("round")?.unwrap_or(0),
    };
    match draw.quantiles().is_some() {
        true => Ok(draw),
        false => Err(place_of("parameters").mistake("with these parameters there is no such distribution")),
    }
}

impl Draw {
    pub(super) fn mean(&self) -> f64 {
        match &self.law {
            Law::Gamma { mean, .. } => *mean,
            Law::Table(table) => {
                let weight: f64 = table.iter().map(|(percent, ..)| percent).sum();
                let sum: f64 =
                    table.iter().map(|(p, low, high)| p * f64::midpoint(*low as f64, *high as f64)).sum();
                sum / weight
            }
            _ => {
                let points = self.quantiles().unwrap_or_default();
                points.iter().sum::<f64>() / points.len().max(1) as f64
            }
        }
    }

    /// The distribution of sizes, and what is different about it.
    pub(super) fn size(&self) -> (Size, Option<String>) {
        let bytes = |value: f64| ByteSize(value.max(0.0).round() as u64);
        let bounded = self.least.is_some() || self.most.is_some() || self.round > 1;
        let exact = |distribution| (Size::Distributed(distribution), None);
        match &self.law {
            Law::Uniform { lower, upper } if !bounded && lower == upper => (Size::Fixed(bytes(*lower)), None),
            Law::Uniform { lower, upper } if !bounded => {
                exact(SizeDistribution::Uniform { min: bytes(*lower), max: bytes(*upper) })
            }
            Law::Gamma { mean, shape, least: 0.0 } if !bounded => {
                exact(SizeDistribution::Gamma { mean: bytes(*mean), shape: *shape })
            }
            Law::LogNormal { mu, sigma } if !bounded && *sigma > 0.0 => {
                exact(SizeDistribution::LogNormal { median: bytes(mu.exp()), sigma: *sigma })
            }
            Law::Table(table) => self.table(table),
            _ => {
                let points = self.quantiles().unwrap_or_default();
                let sizes = points
                    .iter()
                    .map(|point| WeightedSize { size: bytes(self.limited(*point)), weight: 1.0 });
                let message = format!("{POINTS} sizes of equal weight stand for the distribution");
                (Size::Distributed(SizeDistribution::Weighted { sizes: merged(sizes) }), Some(message))
            }
        }
    }

    fn table(&self, table: &[(f64, u64, u64)]) -> (Size, Option<String>) {
        let round = self.round.max(1);
        let steps = |low: u64, high: u64| (high - low) / round + 1;
        let used = table.iter().filter(|(percent, ..)| *percent > 0.0);
        let all: u64 = used.clone().map(|(_, low, high)| steps(*low, *high)).fold(0, u64::saturating_add);
        let exact = all <= MOST_SIZES;
        let mut sizes = Vec::new();
        for (percent, low, high) in used {
            let number = if exact { steps(*low, *high) } else { steps(*low, *high).min(8) };
            for step in 0..number {
                // Whole steps where all are taken, else the middles of equal parts.
                let size = match exact {
                    true => low + step * round,
                    false => {
                        low + ((high - low) as f64 * (step as f64 + 0.5) / number as f64) as u64 / round
                            * round
                    }
                };
                sizes.push(WeightedSize { size: ByteSize(size), weight: percent / number as f64 });
            }
        }
        let message = (!exact).then(|| "8 sizes stand for each segment of the table".to_owned());
        (Size::Distributed(SizeDistribution::Weighted { sizes: merged(sizes.into_iter()) }), message)
    }

    fn limited(&self, value: f64) -> f64 {
        let value = value.max(self.least.unwrap_or(0.0)).min(self.most.unwrap_or(f64::MAX)).max(0.0);
        match self.round {
            0 | 1 => value,
            round => (value / round as f64).round() * round as f64,
        }
    }

    /// The middles of equally likely parts of the distribution; `None` when its parameters are none.
    fn quantiles(&self) -> Option<Vec<f64>> {
        let at = |inverse: &dyn Fn(f64) -> f64| -> Option<Vec<f64>> {
            let points: Vec<f64> =
                (0..POINTS).map(|number| inverse((number as f64 + 0.5) / POINTS as f64)).collect();
            points.iter().all(|point| point.is_finite()).then_some(points)
        };
        match self.law {
            Law::Uniform { lower, upper } if lower <= upper => at(&|p| lower + p * (upper - lower)),
            Law::Gamma { mean, shape, least } => {
                let law = Gamma::new(shape, shape / (mean - least)).ok()?;
                at(&|p| least + law.inverse_cdf(p))
            }
            Law::LogNormal { mu, sigma } => {
                let law = Normal::new(mu, sigma).ok()?;
                at(&|p| law.inverse_cdf(p).exp())
            }
            Law::Exponential { mean } => {
                let law = Exp::new(1.0 / mean).ok()?;
                at(&|p| law.inverse_cdf(p))
            }
            Law::Erlang { shape, rate } => {
                let law = Erlang::new(shape, rate).ok()?;
                at(&|p| law.inverse_cdf(p))
            }
            Law::Normal { mean, sigma } => {
                let law = Normal::new(mean, sigma).ok()?;
                at(&|p| law.inverse_cdf(p))
            }
            Law::Weibull { shape, scale } => {
                let law = Weibull::new(shape, scale).ok()?;
                at(&|p| law.inverse_cdf(p))
            }
            Law::Triangular { lower, upper, mode } => {
                let law = Triangular::new(lower, upper, mode).ok()?;
                at(&|p| law.inverse_cdf(p))
            }
            Law::Uniform { .. } | Law::Table(_) => None,
        }
    }
}

/// Equal sizes put together, in ascending order.
fn merged(sizes: impl Iterator<Item = WeightedSize>) -> Vec<WeightedSize> {
    let mut all: Vec<WeightedSize> = sizes.collect();
    all.sort_by_key(|each| each.size);
    let mut merged: Vec<WeightedSize> = Vec::new();
    for each in all {
        match merged.last_mut().filter(|last| last.size == each.size) {
            Some(last) => last.weight += each.weight,
            None => merged.push(each),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filebench::parse::{What, parse};

    fn draw(text: &str) -> Result<Draw, Mistake> {
        let text = format!("set $x={text}");
        let What::Draw { custom: library, attributes, .. } = parse(&text)?.remove(0).what else {
            panic!("no variable")
        };
        let scope = Scope::default();
        if library { custom(&attributes, &scope, &attributes[0]) } else { own(&attributes, &scope) }
    }

    fn distribution(text: &str) -> (SizeDistribution, bool) {
        let (size, different) = draw(text).unwrap().size();
        let Size::Distributed(distribution) = size else { panic!("{size:?}") };
        (distribution, different.is_some())
    }

    #[test]
    fn distributions_that_have_a_name_here_are_exact() {
        let kib = ByteSize::kib;
        let uniform = SizeDistribution::Uniform { min: kib(2), max: kib(6) };
        assert_eq!(distribution("randvar(type=uniform,min=2k,mean=4k)"), (uniform, false));
        let gamma = |shape| SizeDistribution::Gamma { mean: kib(16), shape };
        assert_eq!(distribution("randvar(type=gamma,mean=16k,gamma=2000)"), (gamma(2.0), false));
        assert_eq!(distribution("randvar(mean=16k)"), (gamma(1.5), false));
        assert_eq!(
            distribution("cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)"),
            (gamma(1.5), false)
        );
        let uniform = SizeDistribution::Uniform { min: kib(4), max: kib(8) };
        assert_eq!(
            distribution("cvar(type=cvar-uniform,parameters=lower:4096;upper:8192)"),
            (uniform, false)
        );
        let (SizeDistribution::LogNormal { median, sigma }, false) =
            distribution("cvar(type=cvar-lognormal,parameters=shape:2;scale:9)")
        else {
            panic!("no log-normal distribution")
        };
        assert_eq!((median, sigma), (ByteSize(8103), 2.0));
        assert_eq!(draw("randvar(type=gamma,mean=5k,gamma=0)").unwrap().size(), (Size::Fixed(kib(5)), None));
    }

    #[test]
    fn tables_are_exact_where_they_have_steps() {
        let text = "randvar(type=tabular,round=1k,randtable={{50,1k,1k},{0,9k,9k},{50,2k,5k}})";
        let (SizeDistribution::Weighted { sizes }, different) = distribution(text) else {
            panic!("no table")
        };
        let found: Vec<_> = sizes.iter().map(|each| (each.size.0, each.weight)).collect();
        assert_eq!(found, [(1024, 50.0), (2048, 12.5), (3072, 12.5), (4096, 12.5), (5120, 12.5)]);
        assert!(!different);
        assert_eq!(draw(text).unwrap().mean(), 2304.0);
        let (SizeDistribution::Weighted { sizes }, true) =
            distribution("randvar(type=tabular,randtable={{100,0,8m}})")
        else {
            panic!("told as exact")
        };
        assert_eq!((sizes.len(), sizes[0].size), (8, ByteSize::kib(512)));
    }

    #[test]
    fn other_distributions_keep_their_mean() {
        for (text, mean, within) in [
            ("randvar(type=gamma,min=1k,mean=5632,gamma=1500)", 5632.0, 0.03),
            ("cvar(type=cvar-exponential,parameters=mean:8192)", 8192.0, 0.03),
            ("cvar(type=cvar-erlang,parameters=shape:4;rate:0.001)", 4000.0, 0.02),
            ("cvar(type=cvar-normal,parameters=mean:8192;sigma:1024)", 8192.0, 0.001),
            ("cvar(type=cvar-weibull,parameters=shape:1;scale:4096)", 4096.0, 0.03),
            ("cvar(type=cvar-triangular,parameters=lower:0;upper:8192;mode:4096)", 4096.0, 0.001),
            ("cvar(type=cvar-uniform,parameters=lower:0;upper:8192,round=512)", 4096.0, 0.001),
        ] {
            let (SizeDistribution::Weighted { sizes }, true) = distribution(text) else { panic!("{text}") };
            let weight: f64 = sizes.iter().map(|each| each.weight).sum();
            let found = sizes.iter().map(|each| each.size.0 as f64 * each.weight).sum::<f64>() / weight;
            assert!((found - mean).abs() <= within * mean, "{text}: {found}");
        }
        let text = "cvar(type=cvar-normal,parameters=mean:8192;sigma:4096,min=4096,max=12288,round=1024)";
        let (SizeDistribution::Weighted { sizes }, _) = distribution(text) else { panic!("no sizes") };
        assert!(sizes.iter().all(|each| (4096..=12288).contains(&each.size.0) && each.size.0 % 1024 == 0));
    }

    #[test]
    fn variables_that_cannot_be_are_refused() {
        for (text, says) in [
            ("randvar(type=square)", "types are"),
            ("randvar(width=4)", "no attribute `width`"),
            ("randvar(type=tabular,randtable={{10,5,1}})", "ends after it begins"),
            ("cvar(type=cvar-zipf)", "the variables of libraries are"),
            ("cvar(type=cvar-normal,parameters=mean)", "no parameter"),
            ("cvar(type=cvar-normal,parameters=median:1)", "has no parameter `median`"),
            ("cvar(type=cvar-normal,parameters=mean:1;sigma:-1)", "no such distribution"),
        ] {
            let error = draw(text).unwrap_err();
            assert!(error.message.contains(says), "{text}: {error}");
        }
    }
}
