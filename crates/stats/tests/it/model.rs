//! Linear models against published analyses and R's `aov`/`lm`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use benchmaster_stats::StatsError;
use benchmaster_stats::factorial::{Leverage, effects};
use benchmaster_stats::model::{
    Anova, CENTRE, Data, Factor, Rule, Source, Stratum, SumOfSquares, all_terms, anova, fit, hierarchy,
    reduce,
};
use serde_json::Value;

fn vector(id: &str) -> Value {
    let file: Value = serde_json::from_str(include_str!("../vectors/statistics.json")).unwrap();
    file["vectors"].as_array().unwrap().iter().find(|v| v["id"] == id).unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(found: f64, expected: f64, relative: f64) {
    let allowed = relative * expected.abs().max(1e-12);
    assert!((found - expected).abs() <= allowed, "{found} is not {expected} ± {allowed}");
}

/// Plain data: no blocks, no whole plots.
fn data(factors: Vec<Factor>, rows: Vec<Vec<u32>>, y: Vec<f64>) -> Data {
    Data { factors, rows, y, block: None, whole_plot: None }
}

const ALL_KINDS: [SumOfSquares; 3] = [SumOfSquares::I, SumOfSquares::II, SumOfSquares::III];

/// Sums of squares of all rows and errors, which in a sequential table are the whole variation.
fn total(table: &Anova) -> f64 {
    let rows = table.rows.iter().map(|row| row.sum_of_squares);
    rows.chain(table.errors.iter().map(|e| e.sum_of_squares)).sum()
}

#[test]
fn warpbreaks_by_wool_and_tension() {
    let vector = vector("r-warpbreaks-2x3x9");
    let breaks = numbers(&vector["input"]["breaks"]);
    let rows: Vec<_> = (0..54u32).map(|run| vec![run / 27, run / 9 % 3]).collect();
    for (scale, y) in [("raw", breaks.clone()), ("log", breaks.iter().map(|y| y.ln()).collect())] {
        let data = data(vec![Factor::named(2), Factor::named(3)], rows.clone(), y);
        let expect = &vector["expect"][scale];
        for kind in ALL_KINDS {
            let table = anova(&data, &all_terms(2, 2), kind).unwrap();
            assert!(table.orthogonal);
            for (i, name) in ["wool", "tension", "interaction"].into_iter().enumerate() {
                let row = &table.rows[i];
                assert_eq!(
                    (row.source, row.df, row.stratum),
                    (Source::Term(i + 1), [1, 2, 2][i], Stratum::Runs)
                );
                close(row.sum_of_squares, expect["SS"][name].as_f64().unwrap(), 5e-5);
                close(row.f.unwrap(), expect["F"][i].as_f64().unwrap(), 5e-5);
                let p = expect["p"][i].as_f64().unwrap();
                assert!((row.p.unwrap() - p).abs() <= (5e-5 * p).max(5.01e-7), "{:?} is not {p}", row.p);
            }
            assert_eq!(table.errors[0].df, 48);
            let (wool, mse) = (&table.rows[0], table.errors[0].mean_square.unwrap());
            close(wool.eta_squared.unwrap(), wool.sum_of_squares / table.sst, 1e-12);
            close(wool.omega_squared.unwrap(), (wool.sum_of_squares - mse) / (table.sst + mse), 1e-12);
            close(table.errors[0].sum_of_squares, expect["SS"]["error"].as_f64().unwrap(), 5e-5);
            close(total(&table), table.sst, 1e-12);
        }
    }
}

/// R's `npk`: 24 plots in 6 blocks; the interaction of all three factors is confounded with the blocks.
fn npk() -> Data {
    let block: Vec<u32> = (0..24).map(|run| run / 4).collect();
    let setting = |digits: &str| -> Vec<u32> { digits.bytes().map(|b| u32::from(b - b'0')).collect() };
    let (n, p, k) = (
        setting("010111000110110010101100"),
        setting("110001011100010110010110"),
        setting("100101100101011000111010"),
    );
    let rows = (0..24).map(|run| vec![n[run], p[run], k[run]]).collect();
    let y = [
        [49.5, 62.8, 46.8, 57.0, 59.8, 58.5, 55.5, 56.0, 62.8, 55.8, 69.5, 55.0],
        [62.0, 48.8, 45.5, 44.2, 52.0, 51.5, 49.8, 48.8, 57.2, 59.0, 53.2, 56.0],
    ];
    Data { block: Some(block), ..data(vec![Factor::named(2); 3], rows, y.concat()) }
}

#[test]
fn npk_with_blocks_names_the_confounded_interaction() {
    let data = npk();
    let fit = fit(&data, &all_terms(3, 3), 0.95).unwrap();
    let table = fit.anova(SumOfSquares::I);
    assert!(table.orthogonal);
    // summary(aov(yield ~ block + N*P*K, npk)); the last term has no degree of freedom left.
    let expected = [
        (5, 343.295, 4.446667, 0.015939),
        (1, 189.281667, 12.258734, 0.004372),
        (1, 8.401667, 0.544130, 0.474904),
        (1, 95.201667, 6.165689, 0.028795),
        (1, 21.281667, 1.378297, 0.263165),
        (1, 33.135, 2.145972, 0.168648),
        (1, 0.481667, 0.031195, 0.862752),
    ];
    assert_eq!(table.rows.len(), 8);
    assert_eq!(table.rows[0].source, Source::Blocks);
    for (row, (df, ss, f, p)) in table.rows.iter().zip(expected) {
        assert_eq!((row.df, row.aliased_df), (df, 0));
        close(row.sum_of_squares, ss, 1e-6);
        close(row.f.unwrap(), f, 2e-5);
        close(row.p.unwrap(), p, 2e-4);
    }
    let last = table.rows[7];
    assert_eq!((last.source, last.df, last.aliased_df, last.f), (Source::Term(7), 0, 1, None));
    assert_eq!((fit.df_error, table.errors[0].df), (12, 12));
    close(fit.sse, 185.286667, 1e-8);
    assert_eq!(fit.aliased.len(), 1);
    assert_eq!(fit.terms[fit.aliased[0].term], [0, 1, 2]);
    assert!(fit.aliased[0].with_blocks && fit.aliased[0].with.is_empty());
    close(total(&table), table.sst, 1e-12);
}

/// `summary(aov(yield ~ N*V + Error(B/V), MASS::oats))`: 6 blocks of 3 whole plots (varieties) of 4 sub-plots
/// (nitrogen).
fn oats() -> Data {
    let y = [
        [111.0, 130.0, 157.0, 174.0, 117.0, 114.0, 161.0, 141.0, 105.0, 140.0, 118.0, 156.0],
        [61.0, 91.0, 97.0, 100.0, 70.0, 108.0, 126.0, 149.0, 96.0, 124.0, 121.0, 144.0],
        [68.0, 64.0, 112.0, 86.0, 60.0, 102.0, 89.0, 96.0, 89.0, 129.0, 132.0, 124.0],
        [74.0, 89.0, 81.0, 122.0, 64.0, 103.0, 132.0, 133.0, 70.0, 89.0, 104.0, 117.0],
        [62.0, 90.0, 100.0, 116.0, 80.0, 82.0, 94.0, 126.0, 63.0, 70.0, 109.0, 99.0],
        [53.0, 74.0, 118.0, 113.0, 89.0, 82.0, 86.0, 104.0, 97.0, 99.0, 119.0, 121.0],
    ];
    let rows = (0..72u32).map(|run| vec![run / 4 % 3, run % 4]).collect();
    let factors = vec![Factor::named(3), Factor::numeric(vec![0.0, 0.2, 0.4, 0.6])];
    let block = Some((0..72).map(|run| run / 12).collect());
    // The plots of all blocks are called by the same three numbers.
    Data {
        block,
        whole_plot: Some((0..72).map(|run| run / 4 % 3).collect()),
        ..data(factors, rows, y.concat())
    }
}

#[test]
fn oats_are_judged_against_whole_plots_and_sub_plots() {
    let data = oats();
    for kind in ALL_KINDS {
        let table = anova(&data, &all_terms(2, 2), kind).unwrap();
        assert!(table.orthogonal);
        let expected = [
            (Source::Blocks, 5, 15_875.28, Stratum::WholePlot, None),
            (Source::Term(1), 2, 1_786.361, Stratum::WholePlot, Some((1.485_34, 0.272_39))),
            (Source::Term(2), 3, 20_020.5, Stratum::SubPlot, Some((37.685_6, 2.457_7e-12))),
            (Source::Term(3), 6, 321.75, Stratum::SubPlot, Some((0.302_8, 0.932_2))),
        ];
        for (row, (source, df, ss, stratum, test)) in table.rows.iter().zip(expected) {
            assert_eq!((row.source, row.df, row.stratum), (source, df, stratum));
            close(row.sum_of_squares, ss, 1e-4);
            if let Some((f, p)) = test {
                close(row.f.unwrap(), f, 1e-4);
                close(row.p.unwrap(), p, 5e-4);
            }
            let error = table.errors.iter().find(|e| e.stratum == stratum).unwrap();
            close(row.f.unwrap(), row.mean_square.unwrap() / error.mean_square.unwrap(), 1e-9);
        }
        let errors: Vec<_> = table.errors.iter().map(|e| (e.stratum, e.df)).collect();
        assert_eq!(errors, [(Stratum::WholePlot, 10), (Stratum::SubPlot, 45)]);
        close(table.errors[0].sum_of_squares, 6_013.306, 1e-6);
        close(table.errors[1].sum_of_squares, 7_968.75, 1e-9);
        close(total(&table), table.sst, 1e-12);
    }
    // Standard errors of the balanced design by hand: sqrt(MS of the stratum/(runs·mean square of the code)).
    let fit = fit(&data, &all_terms(2, 2), 0.95).unwrap();
    let (whole, sub) = (fit.errors[0].mean_square.unwrap(), fit.errors[1].mean_square.unwrap());
    let variety = &fit.coefficients[1];
    assert_eq!((variety.contrast.as_str(), variety.df_error), ("level 2", 10));
    close(variety.standard_error.unwrap(), (whole * 2.0 / 72.0).sqrt(), 1e-9);
    let linear = &fit.coefficients[3];
    assert_eq!((linear.contrast.as_str(), linear.df_error), ("L", 45));
    close(linear.standard_error.unwrap(), (sub / (72.0 * 5.0)).sqrt(), 1e-9);
    // The variances by REML, `lmer(yield ~ N*V + (1 | B/V))`: blocks 214.48, plots 106.06, runs 177.08. The mean of a
    // treatment has a run in each of six blocks.
    close(fit.block_spread().unwrap().variance, 214.48, 1e-4);
    let all = 214.477 + 106.062 + 177.083;
    let predicted = fit.predict(&[0, 0], None).unwrap();
    close(predicted.standard_error.unwrap().powi(2), all / 6.0, 1e-5);
    assert!((5.0..20.0).contains(&predicted.df.unwrap()), "{predicted:?}");
    // One further run adds the variances of a run, of its plot and of its block.
    let single = fit.predict(&[0, 0], Some(1)).unwrap().standard_error.unwrap().powi(2);
    close(single - all / 6.0, all, 1e-5);
    // Differences within blocks know nothing of them.
    let difference = fit.contrast(&[(3, 2.0)]).unwrap();
    close(difference.standard_error.unwrap(), 2.0 * linear.standard_error.unwrap(), 1e-12);
}

#[test]
fn a_smaller_model_of_a_split_plot_has_a_lack_of_fit_in_each_stratum() {
    let table = anova(&oats(), &[vec![1]], SumOfSquares::III).unwrap();
    let whole = table.errors[0].lack_of_fit.unwrap();
    assert_eq!(whole.df, 2);
    close(whole.sum_of_squares, 1_786.361, 1e-6);
    close(whole.f.unwrap(), 1.485_34, 1e-4);
    let sub = table.errors[1].lack_of_fit.unwrap();
    assert_eq!((sub.df, table.errors[1].pure_error.1), (6, 45));
    close(sub.p.unwrap(), 0.932_2, 1e-4);
}

#[test]
fn whole_plots_of_one_run_are_runs() {
    let plain = npk();
    let plots = Data { whole_plot: Some((0..24).collect()), ..plain.clone() };
    let (plain, plots) =
        (fit(&plain, &all_terms(3, 2), 0.9).unwrap(), fit(&plots, &all_terms(3, 2), 0.9).unwrap());
    assert_eq!(plain, plots);
}

#[test]
fn blocks_as_whole_plots_leave_the_confounded_interaction_to_them() {
    // summary(aov(yield ~ N*P*K + Error(block), npk))
    let npk = npk();
    let data = Data { whole_plot: npk.block.clone(), block: None, ..npk };
    let table = anova(&data, &all_terms(3, 3), SumOfSquares::I).unwrap();
    let last = table.rows[6];
    assert_eq!((last.stratum, last.df), (Stratum::WholePlot, 1));
    close(last.sum_of_squares, 37.0, 1e-3);
    close(last.f.unwrap(), 0.483_18, 1e-3);
    close(table.errors[0].sum_of_squares, 306.29, 1e-4);
    assert_eq!((table.errors[0].df, table.errors[1].df), (4, 12));
    close(table.rows[0].f.unwrap(), 12.258_734, 1e-6);
}

#[test]
fn tooth_growth_by_supplement_and_dose() {
    let y = [
        [4.2, 11.5, 7.3, 5.8, 6.4, 10.0, 11.2, 11.2, 5.2, 7.0],
        [16.5, 16.5, 15.2, 17.3, 22.5, 17.3, 13.6, 14.5, 18.8, 15.5],
        [23.6, 18.5, 33.9, 25.5, 26.4, 32.5, 26.7, 21.5, 23.3, 29.5],
        [15.2, 21.5, 17.6, 9.7, 14.5, 10.0, 8.2, 9.4, 16.5, 9.7],
        [19.7, 23.3, 23.6, 26.4, 20.0, 25.2, 25.8, 21.2, 14.5, 27.3],
        [25.5, 26.4, 22.4, 24.5, 24.8, 30.9, 26.4, 27.3, 29.4, 23.0],
    ];
    let rows = (0..60u32).map(|run| vec![u32::from(run < 30), run / 10 % 3]).collect();
    let data = data(vec![Factor::named(2), Factor::numeric(vec![0.5, 1.0, 2.0])], rows, y.concat());
    let table = anova(&data, &all_terms(2, 2), SumOfSquares::II).unwrap();
    let expected =
        [(1, 205.35, 15.572, 2.311_8e-4), (2, 2_426.434, 92.0, 4.046_3e-18), (2, 108.319, 4.107, 0.021_860)];
    for (row, (df, ss, f, p)) in table.rows.iter().zip(expected) {
        assert_eq!(row.df, df);
        close(row.sum_of_squares, ss, 1e-5);
        close(row.f.unwrap(), f, 1e-4);
        close(row.p.unwrap(), p, 1e-3);
    }
    close(table.errors[0].sum_of_squares, 712.106, 1e-5);
    // The contrasts of the dose are orthogonal polynomials of 0.5, 1 and 2, and divide its sum of squares.
    let fit = fit(&data, &all_terms(2, 2), 0.95).unwrap();
    let dose: Vec<_> = fit.coefficients.iter().filter(|c| fit.terms[c.term] == [1]).collect();
    assert_eq!(dose.iter().map(|c| c.contrast.as_str()).collect::<Vec<_>>(), ["L", "Q"]);
    close(dose.iter().map(|c| c.sum_of_squares).sum(), 2_426.434, 1e-6);
    let both: Vec<_> = fit.coefficients.iter().filter(|c| fit.terms[c.term] == [0, 1]).collect();
    assert_eq!(both.iter().map(|c| c.contrast.as_str()).collect::<Vec<_>>(), ["L", "Q"]);
    // Means of levels are those of the runs.
    for level in 0..3 {
        let runs = data.rows.iter().zip(&data.y).filter(|(row, _)| row[1] == level).map(|(_, y)| y);
        let mean = fit.marginal_mean(&[(1, level)]).unwrap();
        close(mean.value, runs.sum::<f64>() / 20.0, 1e-12);
        close(mean.standard_error.unwrap(), fit.s_e.unwrap() / 20f64.sqrt(), 1e-12);
    }
}

#[test]
fn ceramics_to_three_factors_pool_the_rest() {
    let vector = vector("nist-ceramics-2^5");
    let rows: Vec<Vec<u32>> = (0..32u32).map(|run| (0..5).map(|j| run >> j & 1).collect()).collect();
    let data = data(vec![Factor::named(2); 5], rows, numbers(&vector["input"]["y"]));
    let expect = &vector["expect"]["model_to_3fi"];
    let fit = fit(&data, &all_terms(5, 3), 0.95).unwrap();
    assert_eq!(expect["error_df"], fit.df_error);
    close(fit.sse, expect["SSE"].as_f64().unwrap(), 1e-6);
    close(fit.s_e.unwrap(), expect["RMSE"].as_f64().unwrap(), 1e-6);
    close(fit.r_squared.unwrap(), expect["R2"].as_f64().unwrap(), 1e-6);
    let table = fit.anova(SumOfSquares::III);
    let name = |term: &[usize]| term.iter().map(|f| (f + 1).to_string()).collect::<String>();
    let (mut tests, mut sums) = (0, 0);
    for (row, term) in table.rows.iter().zip(&fit.terms[1..]) {
        if let Some(f) = expect["F"][name(term)].as_f64() {
            close(row.f.unwrap(), f, 5e-5);
            tests += 1;
        }
        close(row.sum_of_squares, vector["expect"]["SS"][name(term)].as_f64().unwrap(), 5e-5);
        sums += 1;
    }
    assert_eq!((tests, sums), (7, 25));
    for coefficient in &fit.coefficients[1..] {
        let q = vector["expect"]["q"][name(&fit.terms[coefficient.term])].as_f64().unwrap();
        close(coefficient.value, q, 1e-9);
    }

    // All 31 effects leave no error: Lenth's margin finds the large ones, and hierarchy keeps what they contain.
    let reduced = reduce(&data, &all_terms(5, 5), 0.95).unwrap();
    assert!(
        matches!(reduced.rules[..], [(Stratum::Runs, Rule::Lenth { margin })] if margin > 5.0),
        "{reduced:?}"
    );
    // [0, 1, 3] exceeds the margin for one effect named beforehand, and not the one for 31.
    for term in [vec![3], vec![4], vec![2]] {
        assert!(reduced.significant.contains(&term), "{term:?} {:?}", reduced.significant);
    }
    assert!(reduced.dropped.contains(&vec![0, 1, 3]), "{:?}", reduced.significant);
    assert_eq!(reduced.dropped.len() + reduced.fit.terms.len() - 1, 31);
    assert_eq!(reduced.fit.df_error, reduced.dropped.len());
}

#[test]
fn jain_compares_caches_without_replicates() {
    // Jain 1991, table 21.2: five workloads on two, one and no cache; additive model.
    let y =
        [[54.0, 60.0, 43.0, 49.0, 49.0], [55.0, 60.0, 43.0, 52.0, 50.0], [106.0, 123.0, 120.0, 111.0, 108.0]];
    let rows = (0..15u32).map(|run| vec![run / 5, run % 5]).collect();
    let data = data(vec![Factor::named(3), Factor::named(5)], rows, y.concat());
    let fit = fit(&data, &all_terms(2, 1), 0.9).unwrap();
    let table = fit.anova(SumOfSquares::I);
    close(fit.coefficients[0].value, 72.2, 1e-12);
    close(fit.coefficients[1].value, -20.2, 1e-12);
    close(fit.coefficients[2].value, 41.4, 1e-12);
    close(table.rows[0].sum_of_squares, 12_857.2, 1e-9);
    close(table.rows[1].sum_of_squares, 308.4, 1e-9);
    close(fit.sse, 236.8, 1e-9);
    assert_eq!(fit.df_error, 8);
    close(table.rows[0].f.unwrap(), 217.2, 1e-3);
    close(100.0 * table.rows[0].eta_squared.unwrap(), 95.9, 1e-3);
    // s of a column effect: s_e·sqrt((a − 1)/(ab)).
    close(fit.coefficients[1].standard_error.unwrap(), fit.s_e.unwrap() * (2.0f64 / 15.0).sqrt(), 1e-9);
    // 21.2: with nothing left out there is no error.
    let full = benchmaster_stats::model::fit(&data, &all_terms(2, 2), 0.9).unwrap();
    assert_eq!((full.df_error, full.s_e, full.coefficients[1].standard_error), (0, None, None));
    assert!(full.predict(&[0, 0], None).unwrap().half_width.is_none());
}

#[test]
fn jain_compares_code_sizes_with_three_replicates() {
    // Jain 1991, table 22.2: log10 of the code size of five workloads on four processors, three programmers each.
    let y = [
        [
            [7006.0, 6593.0, 7302.0],
            [12042.0, 11794.0, 13074.0],
            [29061.0, 27045.0, 30057.0],
            [9903.0, 9206.0, 10035.0],
        ],
        [
            [3207.0, 2883.0, 3523.0],
            [5123.0, 5632.0, 4608.0],
            [8960.0, 8064.0, 9677.0],
            [4153.0, 4257.0, 4065.0],
        ],
        [
            [4707.0, 4935.0, 4465.0],
            [9407.0, 8933.0, 9964.0],
            [19740.0, 19345.0, 21122.0],
            [7089.0, 6982.0, 6678.0],
        ],
        [
            [5107.0, 5508.0, 4743.0],
            [5613.0, 5947.0, 5161.0],
            [22340.0, 23102.0, 21446.0],
            [5356.0, 5734.0, 4965.0],
        ],
        [
            [6807.0, 6392.0, 7208.0],
            [12243.0, 11995.0, 12974.0],
            [28560.0, 26846.0, 30559.0],
            [9803.0, 9306.0, 10233.0],
        ],
    ];
    let rows = (0..60u32).map(|run| vec![run / 3 % 4, run / 12]).collect();
    let y = y.concat().concat().into_iter().map(f64::log10).collect();
    let data = data(vec![Factor::named(4), Factor::named(5)], rows, y);
    let table = anova(&data, &all_terms(2, 2), SumOfSquares::III).unwrap();
    for (row, (df, ss, f)) in
        table.rows.iter().zip([(3, 2.93, 1340.0), (4, 1.33, 455.65), (12, 0.1548, 17.70)])
    {
        assert_eq!(row.df, df);
        close(row.sum_of_squares, ss, 3e-3);
        close(row.f.unwrap(), f, 3e-3);
    }
    assert_eq!(table.errors[0].df, 40);
    close(table.sst, 4.44, 2e-3);
}

/// A 2×3×2 with two runs each, of which five failed.
fn unbalanced() -> Data {
    let all = (0..24usize).map(|i| vec![i / 12, i / 4 % 3, i / 2 % 2]);
    let y = |i: usize| ((37 * i * i + 11 * i) % 101) as f64 / 7.0;
    let kept = all.enumerate().filter(|(i, _)| ![0, 5, 6, 17, 22].contains(i));
    let (rows, y) = kept.map(|(i, row)| (row.iter().map(|&l| l as u32).collect(), y(i))).unzip();
    data(vec![Factor::named(2), Factor::named(3), Factor::named(2)], rows, y)
}

#[test]
fn failed_runs_give_the_three_kinds_of_statsmodels() {
    let data = unbalanced();
    let expected = [
        (SumOfSquares::I, [20.669006, 29.592585, 1.262101, 42.647808, 30.868132, 18.883354]),
        (SumOfSquares::II, [17.339506, 34.085219, 0.653061, 26.097135, 38.646141, 18.883354]),
        (SumOfSquares::III, [12.196294, 26.054434, 2.196684, 26.097135, 38.646141, 18.883354]),
    ];
    for (kind, sums) in expected {
        let table = anova(&data, &all_terms(3, 2), kind).unwrap();
        assert!(!table.orthogonal);
        for (row, ss) in table.rows.iter().zip(sums) {
            close(row.sum_of_squares, ss, 1e-6);
        }
        assert_eq!(table.errors[0].df, 9);
        close(table.errors[0].sum_of_squares, 52.867562, 1e-8);
        let p = table.rows[4].p.unwrap();
        close(p, if kind == SumOfSquares::I { 0.047591 } else { 0.030439 }, 1e-4);
        if kind == SumOfSquares::I {
            close(total(&table), table.sst, 1e-12);
        }
    }
}

#[test]
fn the_kinds_are_differences_of_models() {
    let data = unbalanced();
    let terms = all_terms(3, 3);
    let sse = |terms: &[Vec<usize>]| fit(&data, terms, 0.95).unwrap().sse;
    let (two, three) =
        (anova(&data, &terms, SumOfSquares::II).unwrap(), anova(&data, &terms, SumOfSquares::III).unwrap());
    for (i, term) in terms.iter().enumerate() {
        let contains = |other: &Vec<usize>| term.iter().all(|f| other.contains(f));
        let without: Vec<_> = terms.iter().filter(|other| !contains(other)).cloned().collect();
        let with: Vec<_> = without.iter().cloned().chain([term.clone()]).collect();
        close(two.rows[i].sum_of_squares, sse(&without) - sse(&with), 1e-9);
    }
    // Only the highest interaction is the same last as after all that do not contain it.
    close(three.rows[6].sum_of_squares, two.rows[6].sum_of_squares, 1e-9);
    assert!((three.rows[0].sum_of_squares - two.rows[0].sum_of_squares).abs() > 1e-3);
    // Type III of a two-level factor is the test of its coefficient, and F = t².
    let found = fit(&data, &terms, 0.95).unwrap();
    for (coefficient, row) in [(1, 0), (4, 2)] {
        let coefficient = &found.coefficients[coefficient];
        close(three.rows[row].f.unwrap(), coefficient.t.unwrap().powi(2), 1e-9);
        close(three.rows[row].p.unwrap(), coefficient.p.unwrap(), 1e-9);
        close(three.rows[row].sum_of_squares, coefficient.sum_of_squares, 1e-9);
    }
}

#[test]
fn a_fraction_names_what_it_cannot_tell_apart() {
    // D = AB, E = −AC, F = BC in 8 runs.
    let sign = |run: u32, bits: &[u32]| bits.iter().fold(0, |odd, j| odd ^ (run >> j & 1) ^ 1);
    let rows: Vec<Vec<u32>> = (0..8u32)
        .map(|run| {
            let base = (0..3).map(|j| run >> j & 1);
            let [d, e, f] = [sign(run, &[0, 1]) ^ 1, sign(run, &[0, 2]), sign(run, &[1, 2]) ^ 1];
            base.chain([d, e, f]).collect()
        })
        .collect();
    let data = data(vec![Factor::named(2); 6], rows, (0..8).map(|i| f64::from(i * i)).collect());
    let fit = fit(&data, &all_terms(6, 2), 0.95).unwrap();
    assert_eq!((fit.coefficients.len(), fit.aliased.len(), fit.df_error), (8, 14, 0));
    let find = |term: &[usize]| fit.aliased.iter().find(|a| fit.terms[a.term] == term).unwrap();
    for (term, with, factor) in [([0, 1], vec![3], 1.0), ([0, 2], vec![4], -1.0), ([1, 5], vec![2], 1.0)] {
        let found = find(&term);
        assert_eq!(found.with.len(), 1);
        assert_eq!(fit.terms[found.with[0].term], with);
        close(found.with[0].factor, factor, 1e-12);
    }
    // A treatment that was not run is predicted only if what is aliased is nothing.
    assert_eq!(fit.predictable(&data.rows[3]), Ok(true));
    assert_eq!(fit.predictable(&[0, 0, 0, 0, 0, 0]), Ok(false));
    let table = fit.anova(SumOfSquares::III);
    assert_eq!(table.rows.iter().filter(|row| row.df == 0 && row.aliased_df == 1).count(), 14);
    close(total(&table), table.sst, 1e-12);
}

#[test]
fn the_model_is_jains_factorial_where_both_hold() {
    let cells = [[15.0, 18.0, 12.0], [45.0, 48.0, 51.0], [25.0, 28.0, 19.0], [75.0, 75.0, 81.0]];
    let jain = effects(&cells.map(|c| c.to_vec()), 0.9).unwrap();
    let rows = (0..12u32).map(|run| vec![(run / 3) & 1, run / 6]).collect();
    let data = data(vec![Factor::named(2); 2], rows, cells.concat());
    let fit = fit(&data, &all_terms(2, 2), 0.9).unwrap();
    for (coefficient, effect) in fit.coefficients.iter().zip(&jain.terms) {
        close(coefficient.value, effect.q, 1e-12);
        close(coefficient.half_width.unwrap(), effect.half_width.unwrap(), 1e-12);
    }
    let found = fit.contrast(&[(1, 1.0), (2, 1.0), (3, -2.0)]).unwrap();
    close(found.value, 21.0, 1e-12);
    close(found.standard_error.unwrap(), 2.525, 1e-3);
    for future in [Some(1), Some(5), None] {
        let expected = jain.predict(0, future, Leverage::LeastSquares, 0.9).unwrap().unwrap();
        let found = fit.predict(&[0, 0], future).unwrap();
        close(found.value, expected.value, 1e-12);
        close(found.half_width.unwrap(), expected.half_width, 1e-12);
    }
    assert!(fit.leverage.iter().all(|h| (h - 4.0 / 12.0).abs() < 1e-12));
    assert!(fit.contrast(&[(4, 1.0)]).is_err() && fit.predict(&[0, 2], None).is_err());
    assert!(fit.predict(&[0], None).is_err() && fit.marginal_mean(&[(2, 0)]).is_err());
}

#[test]
fn the_reduced_model_pools_what_it_drops() {
    // Only A matters; replicates give the pure error.
    let rows: Vec<Vec<u32>> = (0..16u32).map(|i| (0..3).map(|j| i >> j & 1).collect()).collect();
    let noise = [0.3, -0.2, 0.1, -0.4, 0.2, 0.1, -0.3, 0.4, -0.1, 0.2, 0.3, -0.1, 0.0, -0.2, 0.1, -0.3];
    let y = rows.iter().zip(noise).map(|(row, e)| 10.0 + 3.0 * f64::from(row[0]) + e).collect();
    let data = data(vec![Factor::named(2); 3], rows, y);
    let reduced = reduce(&data, &all_terms(3, 3), 0.95).unwrap();
    assert_eq!(reduced.rules, [(Stratum::Runs, Rule::FTest)]);
    assert_eq!(
        (reduced.significant.clone(), reduced.by_hierarchy.len(), reduced.dropped.len()),
        (vec![vec![0]], 0, 6)
    );
    let full = anova(&data, &all_terms(3, 3), SumOfSquares::III).unwrap();
    let dropped: f64 = full.rows[1..].iter().map(|row| row.sum_of_squares).sum();
    let error = reduced.fit.errors[0];
    let lack = error.lack_of_fit.unwrap();
    assert_eq!((error.df, lack.df, error.pure_error.1), (14, 6, 8));
    close(lack.sum_of_squares, dropped, 1e-9);
    close(error.pure_error.0, full.errors[0].sum_of_squares, 1e-9);
    close(error.sum_of_squares, dropped + full.errors[0].sum_of_squares, 1e-9);
    close(lack.f.unwrap(), dropped / 6.0 / full.errors[0].mean_square.unwrap(), 1e-9);
    assert_eq!(
        hierarchy(&[vec![0, 2, 3]]),
        [vec![0], vec![2], vec![3], vec![0, 2], vec![0, 3], vec![2, 3], vec![0, 2, 3]]
    );
}

#[test]
fn unusable_data_are_refused_with_the_place() {
    let good = unbalanced();
    let problem = |data: &Data, terms: &[Vec<usize>]| fit(data, terms, 0.95).unwrap_err().to_string();
    assert_eq!(
        problem(&good, &[vec![1, 0]]),
        "the term [1, 0] cannot be in a model of 3 factors; give each term once, by ascending numbers of its factors, \
         which begin at 0"
    );
    assert!(
        problem(&good, &[vec![3]]).contains("[3]") && problem(&good, &[vec![0], vec![0]]).contains("once")
    );
    let mut bad = good.clone();
    bad.rows[4][1] = 3;
    assert!(problem(&bad, &[vec![0]]).starts_with("run 5 has factor 2 at level 3"));
    let bad = Data { block: Some(vec![0; 3]), ..good.clone() };
    assert!(problem(&bad, &[vec![0]]).starts_with("there are 3 blocks where there should be 19"));
    let mut bad = good.clone();
    bad.factors[1] = Factor::numeric(vec![1.0, 1.0, 2.0]);
    assert!(problem(&bad, &[vec![1]]).contains("factor 2 has the same value twice"));
    let mut bad = good.clone();
    bad.y[2] = f64::NAN;
    assert!(problem(&bad, &[vec![1]]).contains("value 3 of a linear model is NaN"));
    assert!(fit(&good, &[vec![0]], 1.0).is_err());
    let none = Data { rows: Vec::new(), y: Vec::new(), ..good };
    assert!(fit(&none, &[vec![0]], 0.95).is_err());
}

#[test]
fn centre_points_carry_the_error_of_an_unreplicated_design() {
    // Montgomery's 2² with five centre points: an error of 0.0430 on 4 degrees of freedom; F = 55.87 for A, 9.83 for B
    // and 0.063 for the curvature.
    let mut rows = vec![vec![0, 0], vec![1, 0], vec![0, 1], vec![1, 1]];
    let mut y = vec![39.3, 40.9, 40.0, 41.5];
    for value in [40.3, 40.5, 40.7, 40.2, 40.6] {
        rows.push(vec![CENTRE, CENTRE]);
        y.push(value);
    }
    let data = Data { factors: vec![Factor::named(2); 2], rows, y, block: None, whole_plot: None };
    let found = fit(&data, &all_terms(2, 2), 0.95).unwrap();
    assert_eq!((found.n, found.corners, found.df_error), (9, 4, 4));
    assert_eq!(found.errors[0].pure_error.1, 4);
    close(found.s_e.unwrap().powi(2), 0.043, 1e-9);
    let curvature = found.curvature().unwrap();
    close(curvature.value, -0.035, 1e-9);
    close(curvature.standard_error.unwrap(), (0.043f64 * (1.0 / 4.0 + 1.0 / 5.0)).sqrt(), 1e-9);
    assert_eq!(curvature.df, Some(4.0));
    let table = found.anova(SumOfSquares::III);
    let f: Vec<_> =
        table.rows.iter().map(|row| (row.source, (row.f.unwrap() * 100.0).round() / 100.0)).collect();
    let expected = [
        (Source::Term(1), 55.87),
        (Source::Term(2), 9.83),
        (Source::Term(3), 0.06),
        (Source::Curvature, 0.06),
    ];
    assert_eq!(f, expected);
    let explained: f64 = table.rows.iter().map(|row| row.sum_of_squares).sum();
    close(explained + found.sse, table.sst, 1e-9);
    assert_eq!(table.total_df, 8);
    // Effects are those of the corners alone.
    for (coefficient, q) in found.coefficients.iter().zip([40.425, 0.775, 0.325, -0.025]) {
        close(coefficient.value, q, 1e-9);
    }
    // Not halfway in a factor of three levels.
    let three = Data { factors: vec![Factor::named(3), Factor::named(2)], ..data };
    assert!(matches!(fit(&three, &all_terms(2, 1), 0.95), Err(StatsError::NoSuchLevel { .. })));
}

#[test]
fn centre_points_in_blocks_are_compared_within_them() {
    // Blocks 10 apart, with one corner pair and two centre points each: the blocks are no error, and no curvature.
    let corner = |a: u32, b: u32, block: u32, y: f64| (vec![a, b], block, y);
    let middle = |block: u32, y: f64| (vec![CENTRE, CENTRE], block, y);
    let runs = [
        corner(0, 0, 0, 1.0),
        corner(1, 1, 0, 7.0),
        middle(0, 5.1),
        middle(0, 4.9),
        corner(1, 0, 1, 13.0),
        corner(0, 1, 1, 15.0),
        middle(1, 15.2),
        middle(1, 14.8),
    ];
    let data = Data {
        factors: vec![Factor::named(2); 2],
        rows: runs.iter().map(|run| run.0.clone()).collect(),
        y: runs.iter().map(|run| run.2).collect(),
        block: Some(runs.iter().map(|run| run.1).collect()),
        whole_plot: None,
    };
    let found = fit(&data, &all_terms(2, 1), 0.95).unwrap();
    assert_eq!((found.df_error, found.errors[0].pure_error.1), (3, 2));
    close(found.errors[0].pure_error.0, 0.02 + 0.08, 1e-9);
    close(found.curvature().unwrap().value, -1.0, 1e-9);
    // In a block of their own they cannot be distinguished from it.
    let block = data.rows.iter().map(|row| u32::from(row[0] == CENTRE)).collect();
    let apart = fit(&Data { block: Some(block), ..data }, &all_terms(2, 1), 0.95).unwrap();
    assert!(apart.curvature().is_none());
}
