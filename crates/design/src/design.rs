//! Which treatments a design has.

use thiserror::Error;

use crate::error::FractionError;

/// The most treatments a design may have (2¹⁶).
pub const MAX_TREATMENTS: u64 = 1 << 16;

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
    /// A row with too few or too many levels.
    #[error(
        "row {} of the design has {found} {}, but there are {factors} factors; give one level per factor",
        row + 1,
        if *found == 1 { "level" } else { "levels" }
    )]
    RowLength {
        /// Number of the row, from 0.
        row: usize,
        /// Levels it has.
        found: usize,
        /// Levels it needs.
        factors: usize,
    },
    /// A row with a level that its factor has not.
    #[error(
        "row {} of the design has level number {level} of factor {}, which has {levels} levels, numbered from 0",
        row + 1, factor + 1
    )]
    RowLevel {
        /// Number of the row, from 0.
        row: usize,
        /// Number of the factor, from 0.
        factor: usize,
        /// The level number that is there.
        level: u32,
        /// How many levels the factor has.
        levels: u32,
    },
    /// Nothing to find a structure in.
    #[error("the design has no rows; give it at least one treatment")]
    NoRows,
    /// More terms than can be treated in reasonable time.
    #[error(
        "the terms up to order {max_order} ({terms} terms, {parameters} parameters) are more than can be distinguished in \
         reasonable time (limit: {limit}); ask for terms up to order {possible}"
    )]
    StructureTooLarge {
        /// The order asked for.
        max_order: u32,
        /// Terms up to it.
        terms: u64,
        /// Their degrees of freedom.
        parameters: u64,
        /// What is too much.
        limit: String,
        /// The highest order that can be treated.
        possible: u32,
    },
    /// An orthogonal array that does not exist, or is not known.
    #[error(
        "no orthogonal array{} for factors with {levels} levels: {reason}{}",
        runs.map(|runs| format!(" of {runs} runs")).unwrap_or_default(), sizes_that_will_do(sizes)
    )]
    NoArray {
        /// The factors, as "2^5·3".
        levels: String,
        /// Runs asked for.
        runs: Option<u32>,
        /// Why.
        reason: String,
        /// Some numbers of runs for which an array is known.
        sizes: Vec<u32>,
    },
    /// A two-level fraction, its search, its blocks or a Plackett-Burman design.
    #[error(transparent)]
    Fraction(#[from] FractionError),
}

fn sizes_that_will_do(sizes: &[u32]) -> String {
    let sizes: Vec<_> = sizes.iter().map(u32::to_string).collect();
    if sizes.is_empty() {
        "; take a full design, or factors with fewer levels".to_owned()
    } else {
        format!("; numbers of runs that will do: {}", sizes.join(", "))
    }
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

/// Checks rows that somebody else made: one level per factor, each below the factor's number of levels.
pub fn check_rows(rows: &[Vec<u32>], levels: &[u32]) -> Result<(), DesignError> {
    refuse_empty_factors(levels)?;
    for (number, row) in rows.iter().enumerate() {
        if row.len() != levels.len() {
            return Err(DesignError::RowLength { row: number, found: row.len(), factors: levels.len() });
        }
        for (factor, (&level, &levels)) in row.iter().zip(levels).enumerate() {
            if level >= levels {
                return Err(DesignError::RowLevel { row: number, factor, level, levels });
            }
        }
    }
    Ok(())
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
        assert_eq!(full(&[2; 16]).map(|rows| rows.len()), Ok(1 << 16));
        let error = full(&[2; 21]).unwrap_err();
        assert!(error.to_string().contains("more than 65536 treatments; remove factors"), "{error}");
        assert!(full(&[u32::MAX; 8]).is_err());
        assert!(one_at_a_time(&[u32::MAX; 2]).is_err());
        assert_eq!(full(&[2, 0]), Err(DesignError::NoLevels { factor: 1 }));
        assert_eq!(
            one_at_a_time(&[0]).unwrap_err().to_string(),
            "factor 1 of the design has no levels; give it at least one"
        );
    }

    #[test]
    fn rows_are_checked_against_the_factors() {
        assert_eq!(check_rows(&[vec![1, 2], vec![0, 0]], &[2, 3]), Ok(()));
        assert_eq!(
            check_rows(&[vec![0, 0], vec![1]], &[2, 3]).unwrap_err().to_string(),
            "row 2 of the design has 1 level, but there are 2 factors; give one level per factor"
        );
        assert_eq!(
            check_rows(&[vec![0, 3]], &[2, 3]).unwrap_err().to_string(),
            "row 1 of the design has level number 3 of factor 2, which has 3 levels, numbered from 0"
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
