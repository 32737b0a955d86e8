//! Which treatments a design has.

use thiserror::Error;

/// The most treatments a design may have (2²⁰).
pub const MAX_TREATMENTS: u64 = 1 << 20;

/// Why a design cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DesignError {
    /// A factor without levels.
    #[error("factor {} of the design has no levels; give it at least one", factor + 1)]
    NoLevels {
        /// Number of the factor, from 0.
        factor: usize,
    },
    /// More treatments than anybody can run.
    #[error(
        "a {design} design with {levels:?} levels has more than {MAX_TREATMENTS} treatments; \
         remove factors or levels"
    )]
    TooManyTreatments {
        /// Kind of design.
        design: &'static str,
        /// Levels per factor.
        levels: Vec<u32>,
    },
}

/// All combinations of the factors' levels in standard order: the first factor's level changes fastest.
///
/// `levels` is the number of levels of each factor; a row is the level number of each factor, from 0. Without factors
/// there is one treatment.
pub fn full(levels: &[u32]) -> Result<Vec<Vec<u32>>, DesignError> {
    refuse_empty_factors(levels)?;
    let count = levels
        .iter()
        .try_fold(1u64, |product, &n| product.checked_mul(n.into()).filter(|&p| p <= MAX_TREATMENTS))
        .ok_or_else(|| too_many("full", levels))?;
    let row = |mut index: u64| {
        let digit = |&n: &u32| {
            let level = index % u64::from(n);
            index /= u64::from(n);
            level as u32
        };
        levels.iter().map(digit).collect()
    };
    Ok((0..count).map(row).collect())
}

/// The base treatment (every factor at its first level), then each factor's other levels alone.
pub fn one_at_a_time(levels: &[u32]) -> Result<Vec<Vec<u32>>, DesignError> {
    refuse_empty_factors(levels)?;
    let count = 1 + levels.iter().map(|&n| u64::from(n) - 1).sum::<u64>();
    if count > MAX_TREATMENTS {
        return Err(too_many("one-at-a-time", levels));
    }
    let base = vec![0; levels.len()];
    let alone = |factor: usize, level: u32| {
        let mut row = base.clone();
        row[factor] = level;
        row
    };
    let others = levels.iter().enumerate().flat_map(|(factor, &n)| (1..n).map(move |level| (factor, level)));
    Ok(std::iter::once(base.clone()).chain(others.map(|(factor, level)| alone(factor, level))).collect())
}

fn refuse_empty_factors(levels: &[u32]) -> Result<(), DesignError> {
    match levels.iter().position(|&n| n == 0) {
        Some(factor) => Err(DesignError::NoLevels { factor }),
        None => Ok(()),
    }
}

fn too_many(design: &'static str, levels: &[u32]) -> DesignError {
    DesignError::TooManyTreatments { design, levels: levels.to_vec() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn standard_order_changes_the_first_factor_fastest() {
        assert_eq!(
            full(&[2, 3]),
            Ok(vec![vec![0, 0], vec![1, 0], vec![0, 1], vec![1, 1], vec![0, 2], vec![1, 2]])
        );
    }

    #[test]
    fn without_factors_there_is_one_treatment() {
        assert_eq!(full(&[]), Ok(vec![vec![]]));
        assert_eq!(one_at_a_time(&[]), Ok(vec![vec![]]));
    }

    #[test]
    fn one_at_a_time_starts_from_the_base() {
        assert_eq!(
            one_at_a_time(&[3, 1, 2]),
            Ok(vec![vec![0, 0, 0], vec![1, 0, 0], vec![2, 0, 0], vec![0, 0, 1]])
        );
    }

    #[test]
    fn designs_out_of_bounds_are_refused() {
        assert_eq!(full(&[2; 20]).map(|rows| rows.len()), Ok(1 << 20));
        let error = full(&[2; 21]).unwrap_err();
        assert!(error.to_string().contains("more than 1048576 treatments; remove factors"), "{error}");
        assert!(full(&[u32::MAX; 8]).is_err());
        assert!(one_at_a_time(&[u32::MAX; 2]).is_err());
        assert_eq!(full(&[2, 0]), Err(DesignError::NoLevels { factor: 1 }));
        assert_eq!(
            one_at_a_time(&[0]).unwrap_err().to_string(),
            "factor 1 of the design has no levels; give it at least one"
        );
    }

    proptest! {
        #[test]
        fn full_designs_are_balanced(levels in prop::collection::vec(1u32..5, 0..5)) {
            let rows = full(&levels)?;
            let distinct: BTreeSet<_> = rows.iter().collect();
            prop_assert_eq!(distinct.len(), rows.len());
            prop_assert_eq!(rows.len() as u32, levels.iter().product::<u32>());
            for (factor, &n) in levels.iter().enumerate() {
                for level in 0..n {
                    let times = rows.iter().filter(|row| row[factor] == level).count();
                    prop_assert_eq!(times, rows.len() / n as usize);
                }
            }
        }

        #[test]
        fn one_at_a_time_differs_from_the_base_in_one_factor(levels in prop::collection::vec(1u32..6, 1..6)) {
            let rows = one_at_a_time(&levels)?;
            prop_assert_eq!(rows.len() as u32, 1 + levels.iter().map(|n| n - 1).sum::<u32>());
            prop_assert!(rows[0].iter().all(|&level| level == 0));
            for row in &rows[1..] {
                prop_assert_eq!(row.iter().filter(|&&level| level != 0).count(), 1);
                prop_assert!(row.iter().zip(&levels).all(|(level, n)| level < n));
            }
            prop_assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len());
        }
    }
}
