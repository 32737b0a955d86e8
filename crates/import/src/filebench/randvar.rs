//! Random variables as they are written: Filebench's own (`randvar`) and those of its libraries (`cvar`).

use super::draw::{Draw, Law};
use super::parse::Attribute;
use super::value::{Attributes, Scope};
use crate::Mistake;

/// Attributes of Filebench's own random variables.
const OWN: &str = "type seed gamma mean min round randsrc";
/// Attributes of those of libraries.
const CUSTOM: &str = "type parameters min max round";

/// A random variable of Filebench's own.
///
/// # Errors
/// Attributes that it has not, or that have no number where one is needed.
pub(super) fn own(list: &[Attribute], scope: &Scope) -> Result<Draw, Mistake> {
    let attributes = Attributes::new(list, scope, "randvar", OWN)?;
    let number = |name: &str| Ok::<_, Mistake>(attributes.number(name)?.map(|number| number as f64));
    let least = number("min")?.unwrap_or(0.0);
    let round = attributes.number("round")?.unwrap_or(0);
    let draw = |law| Draw { law, least: None, most: None, round };
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
            if shape == 0.0 || mean <= least {
                Ok(draw(Law::Uniform { lower: mean.max(least), upper: mean.max(least) }))
            } else {
                Ok(draw(Law::Gamma { mean, shape, least }))
            }
        }
        Some(_) => {
            let place = attributes.find("type").unwrap_or(&list[0]);
            Err(place.mistake("this type is not supported: use `uniform` or `gamma`"))
        }
    }
}

/// A random variable of a library.
///
/// # Errors
/// As [`own`]; a library that Filebench does not have, and parameters that it does not have.
pub(super) fn custom(list: &[Attribute], scope: &Scope, place: &Attribute) -> Result<Draw, Mistake> {
    let attributes = Attributes::new(list, scope, "cvar", CUSTOM)?;
    let (kind, given) = (attributes.text("type")?.unwrap_or_default(), attributes.text("parameters")?);
    let place_of = |name: &str| attributes.find(name).unwrap_or(place);
    let mut parameters = Vec::new();
    for part in given.as_deref().unwrap_or_default().split(';').filter(|part| !part.is_empty()) {
        let parsed = part.split_once(':').and_then(|(name, value)| Some((name, value.parse::<f64>().ok()?)));
        let Some(parsed) = parsed.filter(|(_, value)| value.is_finite()) else {
            let message = format!("`{part}` is not a parameter; write `name:number;name:number`");
            return Err(place_of("parameters").mistake(message));
        };
        parameters.push(parsed);
    }
    let known: &[(&str, f64)] = match kind.as_str() {
        "cvar-uniform" => &[("lower", 0.0), ("upper", 1.0)],
        "cvar-gamma" => &[("mean", 4096.0), ("gamma", 1.5)],
        "cvar-lognormal" => &[("shape", 1.0), ("scale", 1.0)],
        _ => {
            let message =
                format!("`{kind}` is not supported: use `cvar-uniform`, `cvar-gamma` or `cvar-lognormal`");
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
        _ => Law::LogNormal { mu: of(1), sigma: of(0) },
    };
    let bound = |name: &str| Ok::<_, Mistake>(attributes.number(name)?.map(|number| number as f64));
    let draw = Draw {
        law,
        least: bound("min")?,
        most: bound("max")?,
        round: attributes.number("round")?.unwrap_or(0),
    };
    if draw.quantiles().is_some() {
        Ok(draw)
    } else {
        Err(place_of("parameters").mistake("no such distribution exists with these parameters"))
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::{Size, SizeDistribution};
    use benchmaster_units::ByteSize;

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
    fn other_distributions_keep_their_mean() {
        for (text, mean, within) in [
            ("randvar(type=gamma,min=1k,mean=5632,gamma=1500)", 5632.0, 0.03),
            ("cvar(type=cvar-uniform,parameters=lower:0;upper:8192,round=512)", 4096.0, 0.001),
        ] {
            let (SizeDistribution::Weighted { sizes }, true) = distribution(text) else { panic!("{text}") };
            let weight: f64 = sizes.iter().map(|each| each.weight).sum();
            let found = sizes.iter().map(|each| each.size.0 as f64 * each.weight).sum::<f64>() / weight;
            assert!((found - mean).abs() <= within * mean, "{text}: {found}");
        }
        let text = "cvar(type=cvar-gamma,parameters=mean:8192;gamma:2,min=4096,max=12288,round=1024)";
        let (SizeDistribution::Weighted { sizes }, _) = distribution(text) else { panic!("no sizes") };
        assert!(sizes.iter().all(|each| (4096..=12288).contains(&each.size.0) && each.size.0 % 1024 == 0));
    }

    #[test]
    fn variables_that_cannot_be_are_refused() {
        for (text, says) in [
            ("randvar(type=square)", "this type is not supported"),
            ("randvar(type=tabular)", "this type is not supported"),
            ("randvar(width=4)", "no attribute `width`"),
            ("randvar(type=tabular,randtable={{10,1,5}})", "`randtable` is not supported"),
            ("cvar(type=cvar-weibull,parameters=shape:1;scale:4096)", "`cvar-weibull` is not supported"),
            ("cvar(type=cvar-gamma,parameters=mean)", "not a parameter"),
            ("cvar(type=cvar-gamma,parameters=median:1)", "has no parameter `median`"),
            ("cvar(type=cvar-lognormal,parameters=shape:-1;scale:1)", "no such distribution"),
        ] {
            let error = draw(text).unwrap_err();
            assert!(error.message.contains(says), "{text}: {error}");
        }
    }
}
