//! Two levels of a factor of one study against each other.

use benchmaster_record::results::StudyResults;

use super::conditions::DURABILITY;
use super::{CompareError, Comparison, Difference, Options, compare};

/// Compares the two levels of a factor, in each cell of all other factors. Their runs were made in turns, on the same hosts:
/// what differs between the levels is what the factor sets, and noted; only levels of different durability are not compared,
/// unless `force` says so.
///
/// # Errors
/// When there is no such factor, or it has not two levels, and as [`compare`].
pub fn compare_levels(
    results: &StudyResults,
    factor: &str,
    options: &Options,
    force: bool,
) -> Result<Comparison, CompareError> {
    let factors = &results.study.factors;
    let Some(index) = factors.iter().position(|one| one.name == factor) else {
        let known = factors.iter().map(|one| one.name.clone()).collect();
        return Err(CompareError::NoSuchFactor { name: factor.into(), known });
    };
    let varied = &factors[index];
    let [_, _] = varied.levels.as_slice() else {
        return Err(CompareError::NotTwoLevels { name: factor.into(), levels: varied.levels.len() });
    };
    let names = varied.levels.iter().zip(&varied.settings).map(|(level, settings)| {
        let set: Vec<String> = settings.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        format!("{factor}={level}, {}", set.join(", "))
    });
    let [a, b] = [0, 1].map(|level| of_level(results, index, level));
    let mut comparison = compare(&a, &b, options, true)?;
    let durability = |one: &&Difference| one.key.starts_with(DURABILITY);
    let durability: Vec<_> = comparison.forced.iter().filter(durability).cloned().collect();
    if !force && !durability.is_empty() {
        return Err(CompareError::Different(durability));
    }
    for (side, name) in [&mut comparison.a, &mut comparison.b].into_iter().zip(names) {
        side.study = name;
    }
    let decisive = std::mem::take(&mut comparison.forced);
    comparison.noted.splice(0..0, decisive);
    Ok(comparison)
}

/// The results of the treatments with this level, as if the factor had not been varied.
fn of_level(results: &StudyResults, index: usize, level: u32) -> StudyResults {
    let mut of = StudyResults {
        study: results.study.clone(),
        runs: Vec::new(),
        sessions: results.sessions.clone(),
        hooks: results.hooks.clone(),
        baselines: results.baselines.clone(),
    };
    of.study.factors.remove(index);
    of.study.treatments.retain(|treatment| treatment.levels.get(index) == Some(&level));
    for treatment in &mut of.study.treatments {
        treatment.levels.remove(index);
        let named = of.study.factors.iter().zip(&treatment.levels).filter_map(|(factor, level)| {
            Some(format!("{}={}", factor.name, factor.levels.get(*level as usize)?))
        });
        treatment.label = named.collect::<Vec<_>>().join(" ");
    }
    let kept = |treatment: u32| of.study.treatments.iter().any(|one| one.index == treatment);
    of.runs = results.runs.iter().filter(|run| kept(run.key.treatment)).cloned().collect();
    of
}
