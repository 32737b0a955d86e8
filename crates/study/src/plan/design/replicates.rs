//! How many replicates an effect takes.

use std::convert::Infallible;

use benchmaster_record::results::Replication;
use benchmaster_stats::power::least;

use super::description::ReplicatesNeeded;
use super::facts::{DesignInput, Facts};
use super::pilot::Spread;
use super::{blocks, precision};

/// The least number of replicates that find an effect of the size that was asked for, of every factor.
pub(crate) fn replicates_needed(input: &DesignInput<'_>) -> Option<ReplicatesNeeded> {
    let effect = input.effect?;
    let of = |replicates: u32| {
        let input = DesignInput { replicates: Replication::Fixed(replicates), ..input.clone() };
        let facts = Facts::new(&input);
        let found = precision::detectable(&facts, blocks::split_plot(&facts).as_ref())?;
        let sizes = found.effects.iter().map(|one| match effect {
            Spread::Absolute(_) => one.effect,
            Spread::Relative(_) => one.relative_effect,
        });
        let most = sizes.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)?;
        let (Spread::Absolute(wanted) | Spread::Relative(wanted)) = effect;
        Some((most <= wanted, facts.runs().0))
    };
    // Whether that can be said at all.
    of(2)?;
    let enough = |replicates: usize| {
        let found = u32::try_from(replicates).ok().and_then(of);
        Ok::<_, Infallible>(found.is_some_and(|(enough, _)| enough))
    };
    let Ok(needed) = least(2, enough);
    let replicates = needed.and_then(|needed| u32::try_from(needed).ok());
    let runs = replicates.and_then(of).map(|(_, runs)| runs);
    Some(ReplicatesNeeded { effect, replicates, runs })
}
