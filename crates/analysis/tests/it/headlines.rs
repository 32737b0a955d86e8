//! What the analysis of an experiment says: that noise is called noise, that facts are called facts, and that intervals cover
//! what they promise. Simulations have fixed seeds and two sizes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panic")]

use benchmaster_analysis::experiment::{
    Experiment, ExperimentError, Options, PredictionRequest, SampleOptions, Table, TableFactor, TableRow,
    Transform, analyze, sample,
};
use benchmaster_stats::random::Generator;

/// A table of all combinations of the levels, with this many runs of each, replicate by replicate.
fn table(levels: &[u32], replicates: u32, mut y: impl FnMut(&[u32], u32) -> f64) -> Table {
    let treatments: u32 = levels.iter().product();
    let mut rows = Vec::new();
    for replicate in 0..replicates {
        for treatment in 0..treatments {
            let mut rest = treatment;
            let own: Vec<u32> = levels.iter().map(|n| (rest % n, rest /= n).0).collect();
            rows.push(TableRow {
                response: y(&own, replicate),
                levels: own,
                block: None,
                whole_plot: None,
                order: None,
                centre: false,
            });
        }
    }
    let factor = |(number, &levels): (usize, &u32)| TableFactor {
        name: ["A", "B", "C", "D", "E"][number].into(),
        levels: (0..levels).map(|level| format!("l{level}")).collect(),
        values: None,
        hard_to_change: false,
    };
    let factors = levels.iter().enumerate().map(factor).collect();
    Table { response: "y".into(), unit: None, factors, rows, left_out: vec![] }
}

fn plain() -> Options {
    Options { transform: Transform::None, ..Options::default() }
}

fn matters(found: &Experiment) -> bool {
    found.sentences.iter().any(|sentence| sentence.starts_with("What matters"))
}

/// Text and tables must say the same.
fn assert_consistent(found: &Experiment) {
    let headline = matters(found);
    let terms = found.anova.lines.iter().filter(|line| line.matters == Some(true)).count();
    assert_eq!(headline, terms > 0, "{:#?}", found.sentences);
    for effect in &found.effects {
        let line =
            found.anova.lines.iter().find(|line| line.kind == "term" && line.term == effect.term).unwrap();
        assert_eq!(line.matters, effect.term_matters);
        assert!(effect.significant != Some(true) || line.matters == Some(true), "{effect:?}");
        let named = found.sentences.iter().any(|s| s.starts_with("What matters") && s.contains(&effect.name));
        assert!(effect.significant != Some(true) || named || terms > 8, "{effect:?} {:#?}", found.sentences);
    }
    let denied = found.sentences.iter().any(|s| s.starts_with("No factor and no interaction"));
    assert!(!(denied && headline), "{:#?}", found.sentences);
}

/// Designs of pure noise: name, levels, replicates, highest order of the terms.
const NOISE: [(&str, &[u32], u32, Option<u32>); 8] = [
    ("2^3, 2 replicates", &[2, 2, 2], 2, None),
    ("2^3, 5 replicates", &[2, 2, 2], 5, None),
    ("2^4, 2 replicates", &[2, 2, 2, 2], 2, None),
    ("2^5, 1 run, interactions of 3 and more as noise", &[2, 2, 2, 2, 2], 1, Some(2)),
    ("4 × 3 × 2, 2 replicates", &[4, 3, 2], 2, None),
    ("2^3, 1 run (Lenth)", &[2, 2, 2], 1, None),
    ("2^4, 1 run (Lenth)", &[2, 2, 2, 2], 1, None),
    ("2^5, 1 run (Lenth)", &[2, 2, 2, 2, 2], 1, None),
];

/// Share of analyses of noise in which something matters, in percent.
fn false_headlines(levels: &[u32], replicates: u32, max_order: Option<u32>, trials: u32) -> f64 {
    let mut draw = Generator::new(10 * u64::from(replicates) + levels.len() as u64, "noise");
    let options = Options { max_order, ..plain() };
    let mut alarms = 0u32;
    for _ in 0..trials {
        let found =
            analyze(&table(levels, replicates, |_, _| 100.0 + 2.0 * draw.normal()), &options).unwrap();
        assert_consistent(&found);
        alarms += u32::from(matters(&found));
    }
    100.0 * f64::from(alarms) / f64::from(trials)
}

#[test]
fn nothing_matters_in_noise() {
    for (name, levels, replicates, order) in NOISE {
        if levels.len() < 5 {
            // 150 trials at 5 %: 7.5 ± 2.7 alarms.
            let share = false_headlines(levels, replicates, order, 150);
            assert!(share <= 10.5, "{name}: {share} %");
        }
    }
}

/// One level of 25 differs. Which one is named first must not matter.
#[test]
fn the_order_of_the_levels_plays_no_part() {
    let with = |different: u32| {
        let mut draw = Generator::new(7, "levels");
        let noise: Vec<f64> = (0..75).map(|_| draw.normal()).collect();
        // The same values for the level that differs, whatever its place.
        let value = |levels: &[u32], replicate: u32| {
            let place = (levels[0] + 25 - different) % 25;
            100.0 + noise[(place * 3 + replicate) as usize] + if place == 0 { 5.0 } else { 0.0 }
        };
        analyze(&table(&[25], 3, value), &plain()).unwrap()
    };
    let (first, last) = (with(0), with(24));
    for found in [&first, &last] {
        assert_consistent(found);
        assert!(found.sentences.iter().any(|s| s.starts_with("What matters: A")), "{:#?}", found.sentences);
    }
    let p = |found: &Experiment| found.anova.lines[0].p_holm.unwrap();
    assert!((p(&first) - p(&last)).abs() < 1e-9 * p(&first));
}

#[test]
fn what_is_the_same_in_all_runs_has_no_effects() {
    let constant = analyze(&table(&[2, 2], 3, |_, _| 5.1), &plain()).unwrap();
    assert_consistent(&constant);
    assert!(constant.effects.iter().all(|e| e.significant == Some(false) && e.coefficient == 0.0));
    let text = constant.sentences.join("\n");
    assert!(text.contains("Every run gave the same value: nothing has an effect."), "{text}");
    assert!(!text.contains("NaN") && !text.contains("-0.0"), "{text}");
    // Counts that are exact: two effects are facts, the third is exactly 0.
    for scale in [1.0, 0.1, 1e-9, 1e30] {
        let counts = |l: &[u32], _: u32| scale * f64::from(7 + 4 * l[0] + 2 * l[1]);
        let found = analyze(&table(&[2, 2], 3, counts), &plain()).unwrap();
        assert_consistent(&found);
        let of = |term: &str| found.effects.iter().find(|e| e.term == term).unwrap().significant;
        assert_eq!((of("A"), of("B"), of("AB")), (Some(true), Some(true), Some(false)), "{scale}");
        let text = found.sentences.join("\n");
        assert!(
            text.contains("a fact of these runs")
                && text.contains("Without any effect: A × B.")
                && !text.contains("How sure: ,"),
            "{text}"
        );
    }
    // The same in one run of each: with errors of 0 nothing else is known, and nothing else differs.
    let single = analyze(&table(&[2, 2, 2], 1, |l, _| f64::from(3 + l[1])), &plain()).unwrap();
    assert_consistent(&single);
    assert!(single.effects.iter().all(|e| e.significant == Some(e.term == "B")), "{:#?}", single.effects);
}

#[test]
fn values_that_vanish_when_squared_are_refused() {
    let found = analyze(&table(&[2, 2], 3, |l, r| 1e-200 * f64::from(5 + l[0] + r)), &plain());
    let Err(ExperimentError::Stats(problem)) = found else { panic!("{found:?}") };
    assert!(problem.to_string().contains("too small to be squared"), "{problem}");
}

/// Treatment by treatment in the order of the levels, with a drift and nothing else.
#[test]
fn a_drift_that_may_be_an_effect_is_reported() {
    let mut draw = Generator::new(3, "drift");
    let drifting = |random: bool, draw: &mut Generator| {
        let mut data = table(&[2, 2, 2], 5, |_, _| 0.0);
        data.rows.sort_by_key(|row| row.levels.iter().rev().copied().collect::<Vec<_>>());
        if random {
            draw.shuffle(&mut data.rows);
        }
        for (place, row) in data.rows.iter_mut().enumerate() {
            row.order = Some(place as u64 + 1);
            row.response = 100.0 + 0.3 * place as f64 + draw.normal();
        }
        analyze(&data, &plain()).unwrap()
    };
    let found = drifting(false, &mut draw);
    let text = found.sentences.join("\n");
    assert!(text.contains("The order of the runs is confounded with"), "{text}");
    assert!(text.contains("C (75 % of its variation), p < 0.0001"), "{text}");
    assert!(!found.residuals.checks.iter().any(|c| c.sentence.contains("no drift")), "{found:#?}");
    // In random order the drift is seen, and nothing is confounded but by a rare accident (1 %).
    let confounded = |found: &Experiment| found.residuals.checks.iter().any(|check| check.name == "order");
    let accidents = (0..60).filter(|_| confounded(&drifting(true, &mut draw))).count();
    assert!(accidents <= 4, "{accidents} of 60");
}

/// In how many of 1000 experiments the intervals cover: an effect, the mean, the mean of a level, a further run.
fn blocks_covered(levels: &[u32], blocks: u32, trials: u32) -> [f64; 4] {
    let mut draw = Generator::new(u64::from(blocks), "blocks");
    let mut covered = [0u32; 4];
    let predictions =
        levels.iter().enumerate().map(|(f, _)| (["A", "B", "C"][f].to_owned(), "l1".to_owned())).collect();
    let options = Options {
        predictions: vec![PredictionRequest { levels: predictions, future_runs: Some(1) }],
        ..plain()
    };
    for _ in 0..trials {
        let of_block: Vec<f64> = (0..blocks).map(|_| 5.0 * draw.normal()).collect();
        let mut data = table(levels, blocks, |l, block| {
            100.0 + 3.0 * f64::from(l[0]) + of_block[block as usize] + 2.0 * draw.normal()
        });
        let treatments = data.rows.len() / blocks as usize;
        for (place, row) in data.rows.iter_mut().enumerate() {
            row.block = Some((place / treatments).to_string());
        }
        let found = analyze(&data, &options).unwrap();
        let a = found.effects.iter().find(|e| e.term == "A").unwrap();
        let further = 103.0 + 5.0 * draw.normal() + 2.0 * draw.normal();
        let level = found.main_effects[0].levels[1].cell.interval.unwrap();
        let intervals = [
            (a.effect_interval.unwrap(), 3.0),
            (found.mean.interval.unwrap(), 101.5),
            (level, 103.0),
            (found.predictions[0].future_interval.unwrap(), further),
        ];
        for (times, ([low, high], truth)) in covered.iter_mut().zip(intervals) {
            *times += u32::from(low <= truth && truth <= high);
        }
        assert!(found.sentences.iter().any(|s| s.contains("for further blocks like these")));
    }
    covered.map(|times| 100.0 * f64::from(times) / f64::from(trials))
}

const BLOCKS: [(&[u32], u32); 4] = [(&[2, 2], 3), (&[2, 2], 5), (&[2, 2, 2], 4), (&[2, 2, 2], 10)];

#[test]
fn means_and_predictions_cover_further_blocks() {
    for covered in blocks_covered(&[2, 2], 5, 250) {
        // 95 % with a standard error of 1.4 %.
        assert!((90.0..=99.5).contains(&covered), "{covered} %");
    }
}

/// The table of docs/metrics.md.
#[test]
#[ignore = "full tier: 8,000 analyses"]
fn the_documented_coverage_with_blocks() {
    let documented = std::fs::read_to_string("../../docs/metrics.md").unwrap();
    let mut missing = String::new();
    for (levels, blocks) in BLOCKS {
        let covered = blocks_covered(levels, blocks, 2_000);
        assert!(covered.iter().all(|c| (93.0..=97.0).contains(c)), "{blocks}: {covered:?}");
        let cells = covered.map(|share| format!("{share:.1} %"));
        let line = format!("| 2^{} in {blocks} blocks | {} |", levels.len(), cells.join(" | "));
        if !documented.contains(&line) {
            missing += &format!("{line}\n");
        }
    }
    assert!(missing.is_empty(), "docs/metrics.md lacks\n{missing}");
}

/// A half fraction of a 2^5 with centre points, nearly as many terms as runs: normal errors must look normal.
#[test]
fn residuals_of_nearly_saturated_models_are_normal() {
    let mut draw = Generator::new(5, "saturated");
    let mut alarms = 0;
    for _ in 0..60 {
        let mut data = table(&[2, 2, 2, 2], 1, |_, _| 0.0);
        data.factors.push(TableFactor { name: "E".into(), ..data.factors[0].clone() });
        for row in &mut data.rows {
            row.levels.push((row.levels.iter().sum::<u32>() + 1) % 2);
        }
        for factor in &mut data.factors {
            factor.values = Some(vec![-1.0, 1.0, 0.0]);
            factor.levels.push("middle".into());
        }
        let middle = TableRow { levels: vec![2; 5], ..data.rows[0].clone() };
        data.rows.extend(vec![middle; 5]);
        data.rows.iter_mut().for_each(|row| row.response = 100.0 + draw.normal());
        let found = analyze(&data, &plain()).unwrap();
        let check = found.residuals.checks.iter().find(|check| check.name == "normality");
        alarms += usize::from(check.is_some_and(|check| !check.fine));
    }
    // 3 of 60 are expected at 5 %; more than 9 have a probability below 0.1 %.
    assert!(alarms <= 9, "{alarms} of 60");
}

#[test]
fn many_numeric_levels_get_few_polynomials() {
    let mut draw = Generator::new(2, "levels");
    let mut data = table(&[50], 3, |l, _| 100.0 + f64::from(l[0]) + draw.normal());
    data.factors[0].values = Some((0..50).map(f64::from).collect());
    let found = analyze(&data, &plain()).unwrap();
    let shown: Vec<_> = found.effects.iter().map(|e| e.contrast.as_str()).collect();
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert_eq!((found.anova.lines[0].df, found.effects[0].contrast.as_str()), (49, "L"));
    assert!(matters(&found));
}

#[test]
fn a_sample_is_analysed_on_the_scale_that_was_asked_for() {
    let values = [0.1, 0.47, 0.7, 6.3, 3.1, 8.1, 0.16, 0.19, 0.42, 2.4];
    let options = SampleOptions { confidence: 0.95, seed: 1, changes: false, log: true };
    let found = sample(&values, 0, &options).unwrap();
    let mean = values.iter().map(|v: &f64| v.ln()).sum::<f64>() / 10.0;
    assert!(found.log && (found.mean - mean.exp()).abs() < 1e-12);
    let [low, high] = found.interval.unwrap();
    assert!(low > 0.0 && (low * high - found.mean * found.mean).abs() < 1e-9, "{low} {high}");
    assert!(found.sentences[0].starts_with("The geometric mean of 10 values"), "{:?}", found.sentences);
    assert!(
        found.sentences.iter().any(|s| s.contains("unreliable with fewer than 30")),
        "{:?}",
        found.sentences
    );
    assert!(sample(&[1.0, -2.0], 0, &options).is_err());
    let measured = sample(&[1.2e-9, 1.5e-9, 1.1e-9], 0, &SampleOptions { log: false, ..options }).unwrap();
    assert!(measured.sentences[0].contains("is 1.267e-9"), "{:?}", measured.sentences);
}

#[test]
fn each_estimate_is_listed_once_with_what_it_is_aliased_with() {
    let mut data = table(&[2, 2, 2], 2, |levels, replicate| f64::from(levels[0] + replicate));
    data.rows.retain(|row| row.levels.iter().sum::<u32>() <= 1);
    let found = analyze(&data, &plain()).unwrap();
    let estimates: Vec<_> = found.aliases.iter().flatten().map(|chain| &chain.terms[0]).collect();
    assert_eq!(estimates, ["I", "A", "B", "C"]);
}
