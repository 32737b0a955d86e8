//! Combinations that cannot be run, and what leaving them out costs.

use serde::Serialize;

use crate::design::{DesignError, check_rows};
use crate::structure::Blocks;

/// The order of terms for which a cost is given: main effects and interactions of two factors.
const MAX_ORDER: u32 = 2;

/// What leaving rows out of a design costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Runs of the design without exclusions.
    pub runs_before: usize,
    /// Runs that are left.
    pub runs_after: usize,
    /// For the model of main effects, then for that with interactions of two factors.
    pub models: Vec<ModelCost>,
    /// Main effects and interactions of two factors that can be estimated less completely than before, or not at all, in
    /// the model of all terms of their order and lower.
    pub lost: Vec<LostTerm>,
    /// The strongest of the correlations between two terms that were weaker or absent before.
    pub correlation: Option<NewCorrelation>,
}

/// The cost for the terms up to an order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCost {
    /// The highest order of the model's terms.
    pub order: u32,
    /// Independent parameters that the whole design estimates.
    pub rank_before: usize,
    /// Those that the rows left do.
    pub rank_after: usize,
    /// Precision of these parameters per run, against the whole design's: (|X'X|/nᵖ)^(1/p) over its value there, 1 when
    /// nothing is lost. `None` when some cannot be estimated any more.
    pub d_efficiency: Option<f64>,
}

/// A term that is estimated less completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostTerm {
    /// Its factors, ascending.
    pub factors: Vec<u32>,
    /// Contrasts that the whole design estimates.
    pub before: u32,
    /// Contrasts that the rows left do.
    pub after: u32,
}

/// Two terms that exclusions correlate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NewCorrelation {
    /// The two terms; no factors for the mean.
    pub terms: [Vec<u32>; 2],
    /// Their correlation in the whole design, as in [`crate::structure::TermStructure::aliases`].
    pub before: f64,
    /// Their correlation in the rows left.
    pub after: f64,
}

/// What it costs to run only the rows `kept` of a full or fractional design `all`.
///
/// # Errors
/// Rows that do not fit the levels, no rows left, and too many terms.
pub fn cost(all: &[Vec<u32>], kept: &[Vec<u32>], levels: &[u32]) -> Result<Cost, DesignError> {
    check_rows(all, levels)?;
    check_rows(kept, levels)?;
    if all.is_empty() || kept.is_empty() {
        return Err(DesignError::NoRows);
    }
    let (before, after) = (Blocks::new(all, levels, MAX_ORDER)?, Blocks::new(kept, levels, MAX_ORDER)?);
    let ((models_before, terms_before), (models_after, terms_after)) = (before.analyse(), after.analyse());
    let models = models_before.iter().zip(&models_after).skip(1).map(|(whole, left)| {
        let columns: Vec<_> = (0..before.columns(whole.order)).collect();
        // The parameters that the whole design distinguishes.
        let whole = before.independent(&columns);
        let same = after.independent(&whole.columns);
        let estimated = whole.columns.len();
        let complete = same.columns.len() == estimated;
        let per_run = kept.len() as f64 / all.len() as f64;
        let ratio = ((same.log_determinant - whole.log_determinant) / estimated as f64).exp() / per_run;
        ModelCost {
            order: left.order,
            rank_before: estimated,
            rank_after: left.rank,
            d_efficiency: complete.then_some(ratio),
        }
    });
    let models = models.collect();
    let lost = terms_before.iter().zip(&terms_after).map(|(whole, left)| LostTerm {
        factors: whole.factors.clone(),
        before: whole.estimable_degrees_of_freedom,
        after: left.estimable_degrees_of_freedom,
    });
    Ok(Cost {
        runs_before: all.len(),
        runs_after: kept.len(),
        models,
        lost: lost.filter(|term| !term.factors.is_empty() && term.after < term.before).collect(),
        correlation: new_correlation(&before, &after),
    })
}

fn new_correlation(before: &Blocks, after: &Blocks) -> Option<NewCorrelation> {
    let mut worst: Option<(usize, usize, f64, f64)> = None;
    for (term, (whole, left)) in before.aliases().iter().zip(after.aliases()).enumerate() {
        for (other, now) in left.into_iter().filter(|(other, _)| *other > term) {
            let then = whole.iter().find(|(number, _)| *number == other).map_or(0.0, |(_, then)| *then);
            // What differs less is rounding, also between equal candidates.
            let margin = 1e-8;
            if now.abs() > then.abs() + margin
                && worst.is_none_or(|(.., most)| now.abs() > most.abs() + margin)
            {
                worst = Some((term, other, then, now));
            }
        }
    }
    let factors = |term: usize| before.terms.factors[term].clone();
    worst.map(|(a, b, before, after)| NewCorrelation { terms: [factors(a), factors(b)], before, after })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::design::full;

    /// The rows without those that have all levels of any exclusion, in their order.
    ///
    /// An exclusion is a list of (factor, level), both from 0; one without any factor excludes nothing.
    fn without(rows: &[Vec<u32>], exclusions: &[Vec<(u32, u32)>]) -> Vec<Vec<u32>> {
        let kept = |row: &&Vec<u32>| !exclusions.iter().any(|exclusion| matches(row, exclusion));
        rows.iter().filter(kept).cloned().collect()
    }

    /// Whether a row has all levels of an exclusion.
    fn matches(row: &[u32], exclusion: &[(u32, u32)]) -> bool {
        !exclusion.is_empty()
            && exclusion.iter().all(|&(factor, level)| row.get(factor as usize) == Some(&level))
    }

    #[test]
    fn a_missing_quarter_loses_its_interaction() {
        // Without the cells where A and B are both high, AB cannot be distinguished from A, B and the mean.
        let levels = [2, 2, 2];
        let all = full(&levels).unwrap();
        let kept = without(&all, &[vec![(0, 1), (1, 1)]]);
        assert_eq!(kept.len(), 6);
        let cost = cost(&all, &kept, &levels).unwrap();
        let lost: Vec<_> =
            cost.lost.iter().map(|lost| (&lost.factors[..], lost.before, lost.after)).collect();
        // In the model with all interactions of two factors AB takes A and B with it, but terms of lower order are judged
        // in the model of their own order.
        assert_eq!(lost, [(&[0, 1][..], 1, 0)]);
        assert_eq!((cost.models[0].rank_before, cost.models[0].rank_after), (4, 4));
        assert_eq!((cost.models[1].rank_before, cost.models[1].rank_after), (7, 6));
        assert_eq!(cost.models[1].d_efficiency, None);
        // Columns 1, A, B, C over 6 runs: the determinant of [[6, -2, -2], [-2, 6, -2], [-2, -2, 6]] times 6.
        let expected = (128.0f64 * 6.0).powf(0.25) / 6.0;
        assert!((cost.models[0].d_efficiency.unwrap() - expected).abs() < 1e-12);
        let correlation = cost.correlation.unwrap();
        assert_eq!(correlation.before, 0.0);
        assert!((correlation.after.abs() - 0.5).abs() < 1e-12, "{correlation:?}");
    }

    #[test]
    fn leaving_nothing_out_costs_nothing() {
        let levels = [2, 3];
        let all = full(&levels).unwrap();
        let cost = cost(&all, &without(&all, &[vec![]]), &levels).unwrap();
        assert_eq!((cost.lost.len(), cost.correlation), (0, None));
        assert!(
            cost.models.iter().all(|model| (model.d_efficiency.unwrap() - 1.0).abs() < 1e-12),
            "{:?}",
            cost.models
        );
    }

    #[test]
    fn a_level_that_is_left_out_is_a_lost_contrast() {
        let levels = [3, 2];
        let all = full(&levels).unwrap();
        let cost = cost(&all, &without(&all, &[vec![(0, 2)]]), &levels).unwrap();
        assert_eq!(cost.lost[0], LostTerm { factors: vec![0], before: 2, after: 1 });
        assert_eq!(super::cost(&all, &[], &levels), Err(DesignError::NoRows));
    }

    proptest! {
        #[test]
        fn excluded_rows_never_appear(
            levels in prop::collection::vec(1u32..4, 1..5),
            exclusions in prop::collection::vec(prop::collection::vec((0u32..5, 0u32..4), 0..4), 0..4),
        ) {
            let all = full(&levels)?;
            let kept = without(&all, &exclusions);
            let excluded = |row: &Vec<u32>| {
                let has = |&(factor, level): &(u32, u32)| row.get(factor as usize) == Some(&level);
                exclusions.iter().any(|exclusion| !exclusion.is_empty() && exclusion.iter().all(has))
            };
            prop_assert!(!kept.iter().any(excluded));
            prop_assert_eq!(all.iter().filter(|row| !excluded(row)).cloned().collect::<Vec<_>>(), kept);
        }
    }
}
