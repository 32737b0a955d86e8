//! What holds for any data: invariance, sums that add up, and agreement of different ways to the same answer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use benchmaster_stats::factorial::effects;
use benchmaster_stats::model::{Data, Factor, Fit, Stratum, SumOfSquares, all_terms, fit};
use benchmaster_stats::normal_quantile;
use benchmaster_stats::residual::{Verdict, drift};
use proptest::prelude::*;

/// Any numbers of levels, any number of runs of each treatment (0 for failed ones), and the response.
fn mixed() -> impl Strategy<Value = Data> {
    let level = prop_oneof![Just(2usize), Just(2), Just(3), Just(4)];
    prop::collection::vec((level, any::<bool>()), 1..4).prop_flat_map(|factors| {
        let treatments: usize = factors.iter().map(|(levels, _)| levels).product();
        let runs = prop::collection::vec((0..treatments, -50.0..50.0f64), treatments..3 * treatments);
        runs.prop_map(move |runs| {
            let row = |mut place: usize| {
                let level = |(levels, _): &(usize, bool)| {
                    let own = place % levels;
                    place /= levels;
                    own as u32
                };
                factors.iter().map(level).collect::<Vec<_>>()
            };
            let values = |levels: usize| (0..levels).map(|l| (l * l + l) as f64).collect();
            let factors = factors.iter().map(|&(levels, numeric)| {
                if numeric { Factor::numeric(values(levels)) } else { Factor::named(levels) }
            });
            let (rows, y) = runs.iter().map(|&(place, y)| (row(place), y)).unzip();
            Data { factors: factors.collect(), rows, y, block: None, whole_plot: None }
        })
    })
}

fn reordered(data: &Data, order: &[usize]) -> Data {
    let pick = |values: &Option<Vec<u32>>| values.as_ref().map(|v| order.iter().map(|&i| v[i]).collect());
    Data {
        factors: data.factors.clone(),
        rows: order.iter().map(|&i| data.rows[i].clone()).collect(),
        y: order.iter().map(|&i| data.y[i]).collect(),
        block: pick(&data.block),
        whole_plot: pick(&data.whole_plot),
    }
}

/// Stride through all runs in another order.
fn shuffled(runs: usize) -> Vec<usize> {
    let step = (2..runs).find(|step| gcd(*step, runs) == 1 && *step > runs / 3).unwrap_or(1);
    (0..runs).map(|i| (i * step + 1) % runs).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn near(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-8 * scale.max(1.0)
}

/// Coefficients and errors are the same, the former times `factor`.
fn same(a: &Fit, b: &Fit, factor: f64) -> bool {
    let pairs = a.coefficients.iter().zip(&b.coefficients);
    let close = |x: Option<f64>, y: Option<f64>| match (x, y) {
        (Some(x), Some(y)) => near(x * factor, y, 1e3 * factor.abs()),
        (x, y) => x.is_some() == y.is_some(),
    };
    a.coefficients.len() == b.coefficients.len()
        && a.df_error == b.df_error
        && near(a.sse * factor * factor, b.sse, 1e5 * factor * factor)
        && pairs.into_iter().all(|(x, y)| {
            near(x.value * factor, y.value, 1e3 * factor.abs())
                && close(x.standard_error, y.standard_error)
                && (x.term, &x.contrast) == (y.term, &y.contrast)
        })
}

proptest! {
    #[test]
    fn a_sequential_table_adds_up(data in mixed(), max_order in 1usize..4) {
        let terms = all_terms(data.factors.len(), max_order);
        let table = fit(&data, &terms, 0.95).unwrap().anova(SumOfSquares::I);
        let rows: f64 = table.rows.iter().map(|row| row.sum_of_squares).sum();
        prop_assert!(near(rows + table.errors[0].sum_of_squares, table.sst, table.sst));
        let df: usize = table.rows.iter().map(|row| row.df).sum();
        prop_assert_eq!(df + table.errors[0].df, table.total_df);
        // Columns are never lost: each is fitted or named as aliased.
        let all: usize = terms.iter().map(|t| t.iter().map(|&f| data.factors[f].levels - 1).product::<usize>()).sum();
        prop_assert_eq!(table.rows.iter().map(|row| row.df + row.aliased_df).sum::<usize>(), all);
    }

    #[test]
    fn the_order_of_runs_does_not_matter(data in mixed()) {
        let terms = all_terms(data.factors.len(), 2);
        let a = fit(&data, &terms, 0.95).unwrap();
        let b = fit(&reordered(&data, &shuffled(data.y.len())), &terms, 0.95).unwrap();
        prop_assert!(same(&a, &b, 1.0), "{:?} {:?}", a.coefficients, b.coefficients);
    }

    #[test]
    fn the_unit_of_the_response_scales_everything(data in mixed(), factor in 0.001..1000.0f64) {
        let terms = all_terms(data.factors.len(), 2);
        let scaled = Data { y: data.y.iter().map(|y| y * factor).collect(), ..data.clone() };
        let (a, b) = (fit(&data, &terms, 0.95).unwrap(), fit(&scaled, &terms, 0.95).unwrap());
        prop_assert!(same(&a, &b, factor));
    }

    #[test]
    fn other_names_of_levels_do_not_change_the_table(data in mixed()) {
        // Turning the levels of factors without numbers around changes signs and bases, but no sum of squares.
        let terms = all_terms(data.factors.len(), 2);
        let mut turned = data.clone();
        for row in &mut turned.rows {
            for (level, factor) in row.iter_mut().zip(&data.factors) {
                if factor.values.is_none() {
                    *level = factor.levels as u32 - 1 - *level;
                }
            }
        }
        let (a, b) = (fit(&data, &terms, 0.95).unwrap(), fit(&turned, &terms, 0.95).unwrap());
        prop_assert!(near(a.sse, b.sse, a.sst));
        // With aliased columns which of them are kept depends on the coding.
        if a.aliased.is_empty() && b.aliased.is_empty() {
            for kind in [SumOfSquares::I, SumOfSquares::II, SumOfSquares::III] {
                for (x, y) in a.anova(kind).rows.iter().zip(b.anova(kind).rows) {
                    prop_assert!(near(x.sum_of_squares, y.sum_of_squares, a.sst), "{kind:?} {x:?} {y:?}");
                }
            }
        }
    }

    #[test]
    fn reversing_a_two_level_factor_turns_the_signs_of_its_terms(y in prop::collection::vec(-9.0..9.0f64, 16)) {
        let rows: Vec<Vec<u32>> = (0..16u32).map(|i| (0..3).map(|j| i >> j & 1).collect()).collect();
        let data = Data { factors: vec![Factor::named(2); 3], rows, y, block: None, whole_plot: None };
        let mut turned = data.clone();
        turned.rows.iter_mut().for_each(|row| row[1] = 1 - row[1]);
        let terms = all_terms(3, 3);
        let (a, b) = (fit(&data, &terms, 0.95).unwrap(), fit(&turned, &terms, 0.95).unwrap());
        for (x, y) in a.coefficients.iter().zip(&b.coefficients) {
            let sign = if a.terms[x.term].contains(&1) { -1.0 } else { 1.0 };
            prop_assert!(near(x.value * sign, y.value, 1.0));
        }
    }

    #[test]
    fn balanced_two_level_data_are_analysed_as_by_the_fast_transform(
        (factors, cells) in (1u32..5, 1usize..4).prop_flat_map(|(factors, replicates)| {
            let cell = prop::collection::vec(-1e3..1e3f64, replicates);
            (Just(factors), prop::collection::vec(cell, 1usize << factors))
        })
    ) {
        let fast = effects(&cells, 0.95).unwrap();
        let row = |cell: usize| (0..factors).map(|j| (cell >> j & 1) as u32).collect::<Vec<_>>();
        let rows = cells.iter().enumerate().flat_map(|(cell, y)| y.iter().map(move |_| row(cell))).collect();
        let factor = vec![Factor::named(2); factors as usize];
        let data = Data { factors: factor, rows, y: cells.concat(), block: None, whole_plot: None };
        let slow = fit(&data, &all_terms(factors as usize, factors as usize), 0.95).unwrap();
        prop_assert_eq!(slow.coefficients.len(), fast.terms.len());
        prop_assert_eq!(slow.df_error, fast.df);
        for coefficient in &slow.coefficients {
            let term: usize = slow.terms[coefficient.term].iter().map(|j| 1 << j).sum();
            let effect = &fast.terms[term];
            prop_assert!((coefficient.value - effect.q).abs() <= 1e-9 * 1e3);
            prop_assert!(near(coefficient.sum_of_squares, effect.sum_of_squares, 1e6));
            match (coefficient.half_width, effect.half_width) {
                (Some(a), Some(b)) => prop_assert!(near(a, b, 1e3)),
                (a, b) => prop_assert_eq!(a.is_some(), b.is_some()),
            }
        }
        prop_assert!(near(slow.sse, fast.sse, fast.sst) && near(slow.sst, fast.sst, fast.sst));
    }

    #[test]
    fn balanced_split_plots_divide_into_their_strata(y in prop::collection::vec(-9.0..9.0f64, 24)) {
        // 3 replicates of 2 plots of 4 runs: A by plot, B and C within.
        let rows: Vec<Vec<u32>> = (0..24u32).map(|i| vec![i / 4 % 2, i & 1, i >> 1 & 1]).collect();
        let plots = (0..24u32).map(|i| i / 4).collect();
        let data = Data { factors: vec![Factor::named(2); 3], rows, y, block: None, whole_plot: Some(plots) };
        let terms = all_terms(3, 3);
        let split = fit(&data, &terms, 0.95).unwrap();
        let plain = fit(&Data { whole_plot: None, ..data.clone() }, &terms, 0.95).unwrap();
        // The estimates are those of the ordinary analysis, whose error is the sum of the two.
        for (a, b) in split.coefficients.iter().zip(&plain.coefficients) {
            prop_assert!(near(a.value, b.value, 10.0));
        }
        prop_assert!(near(split.errors.iter().map(|e| e.sum_of_squares).sum(), plain.sse, plain.sst));
        prop_assert_eq!(split.errors.iter().map(|e| e.df).collect::<Vec<_>>(), [4, 12]);
        // The error of A is the spread of the means of the plots around those of their setting.
        let means: Vec<f64> = data.y.chunks(4).map(|plot| plot.iter().sum::<f64>() / 4.0).collect();
        let around = |first: usize| {
            let own: Vec<_> = means.iter().skip(first).step_by(2).copied().collect();
            let mean = own.iter().sum::<f64>() / 3.0;
            own.iter().map(|m| (m - mean).powi(2)).sum::<f64>()
        };
        let by_hand = 4.0 * (around(0) + around(1));
        prop_assert!(near(split.errors[0].sum_of_squares, by_hand, plain.sst));
        let table = split.anova(SumOfSquares::III);
        let a = &table.rows[0];
        prop_assert_eq!(a.stratum, Stratum::WholePlot);
        prop_assert!(near(a.f.unwrap() * by_hand / 4.0, a.sum_of_squares, plain.sst));
        prop_assert!(near(split.coefficients[1].standard_error.unwrap().powi(2), by_hand / 4.0 / 24.0, 10.0));
        prop_assert!(table.rows[1..].iter().all(|row| row.stratum == Stratum::SubPlot));
    }
}

/// SplitMix64, as uniform numbers between 0 and 1.
fn uniform(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn intervals_of_split_plots_with_failed_runs_cover() {
    // 12 plots of 4 runs, A by plot; nine runs failed, so that plots have 2 to 4 runs. Plots vary as much as runs.
    let failed = [1usize, 2, 9, 13, 22, 30, 33, 40, 47];
    let runs: Vec<usize> = (0..48).filter(|i| !failed.contains(i)).collect();
    let rows: Vec<Vec<u32>> =
        runs.iter().map(|&i| [i / 4 % 2, i & 1, i >> 1 & 1].map(|l| l as u32).into()).collect();
    let plots: Vec<u32> = runs.iter().map(|&i| i as u32 / 4).collect();
    let terms = all_terms(3, 2);
    let trials = 4_000u64;
    let mut covered = [0u32; 7];
    let (mut predicted, mut drifting) = (0, 0);
    let order: Vec<f64> = runs.iter().map(|&i| 1.7e9 + i as f64).collect();
    for trial in 0..trials {
        let normal = |i: u64| normal_quantile(uniform(trial << 10 | i).max(1e-12));
        let y = runs.iter().zip(&plots).map(|(&i, &plot)| normal(i as u64) + normal(100 + u64::from(plot)));
        let data = Data {
            factors: vec![Factor::named(2); 3],
            rows: rows.clone(),
            y: y.collect(),
            block: None,
            whole_plot: Some(plots.clone()),
        };
        let found = fit(&data, &terms, 0.95).unwrap();
        assert_eq!(found.errors.iter().map(|e| e.df).collect::<Vec<_>>(), [10, 22]);
        for (count, coefficient) in covered.iter_mut().zip(&found.coefficients) {
            *count += u32::from(coefficient.value.abs() <= coefficient.half_width.unwrap());
        }
        let mean = found.predict(&[0, 1, 0], None).unwrap();
        predicted += u32::from(mean.value.abs() <= mean.half_width.unwrap());
        drifting += u32::from(drift(&found, &order).unwrap().verdict == Verdict::Suspicious);
    }
    for count in covered.into_iter().chain([predicted]) {
        let coverage = f64::from(count) / trials as f64;
        assert!((0.935..0.965).contains(&coverage), "{covered:?} {predicted}");
    }
    let alarms = f64::from(drifting) / trials as f64;
    // Fewer than 5 in 100, as the order is judged by the degrees of freedom of the plots alone.
    assert!((0.005..0.06).contains(&alarms), "false alarms of drift: {alarms}");
}
