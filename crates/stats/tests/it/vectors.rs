//! Every formula in this crate against `vectors/statistics.json`: published examples and values recomputed with R.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panic")]

use std::collections::BTreeSet;
use std::path::Path;

use benchmaster_stats::bootstrap::{self, acceleration, bootstrap};
use benchmaster_stats::change::{EDivisive, best_split, e_divisive};
use benchmaster_stats::factorial::{Estimate, FactorialEffects, Leverage, effects};
use benchmaster_stats::interval::{mean_interval, welch};
use benchmaster_stats::latency::{spikes, with_expected_interval};
use benchmaster_stats::monitor::monitor;
use benchmaster_stats::rank::{hodges_lehmann, mann_whitney};
use benchmaster_stats::steady::{mser5, snia};
use benchmaster_stats::{fairness, hash_cast, t_quantile};
use serde_json::{Map, Value};

/// Vectors that are checked elsewhere, with the file below `crates` that does it: of designs in their own crate, of linear
/// models beside this file.
const ELSEWHERE: [(&str, &str); 7] = [
    ("alias-2^(5-1)", "design/tests/it/vectors.rs"),
    ("alias-2^(6-3)-seed004", "design/tests/it/vectors.rs"),
    ("foldover-2^(7-4)", "design/tests/it/vectors.rs"),
    ("minimum-aberration-catalogue", "design/tests/it/vectors.rs"),
    ("mixed-level-oa-gwlp", "design/tests/it/arrays.rs"),
    ("plackett-burman", "design/tests/it/vectors.rs"),
    ("r-warpbreaks-2x3x9", "stats/tests/it/model.rs"),
];

type Check = fn(&Vector);

const CHECKS: [(&str, Check); 16] = [
    ("bca-aircondit", bca_aircondit),
    ("bhh-pilot-plant-2x2x2x2", factorial),
    ("edivisive-nile", e_divisive_nile),
    ("hash-cast-exact", hash_cast_exact),
    ("hdr-coordinated-omission", coordinated_omission),
    ("jain-2k-memcache-2x2", factorial),
    ("jain-2kr-memcache-2x2x3", factorial_with_predictions),
    ("jain-fairness", jain_fairness),
    ("latency-spikes-seed003", latency_spikes),
    ("mann-whitney-exact", mann_whitney_exact),
    ("mser-5-ramp", mser),
    ("nist-ceramics-2^5", factorial),
    ("snia-steady-pass", snia_window),
    ("t-interval-n3", t_interval),
    ("t-quantiles", t_quantiles),
    ("welch-sleep", welch_sleep),
];

#[test]
fn every_vector_is_checked_here_or_elsewhere() {
    let vectors = vectors();
    let ids: BTreeSet<_> = vectors.iter().map(|v| v.id.as_str()).collect();
    assert_eq!(ids.len(), vectors.len(), "ids are unique");
    let checked = CHECKS.iter().map(|(id, _)| *id);
    let known: Vec<_> = checked.chain(ELSEWHERE.map(|(id, _)| id)).collect();
    let distinct: BTreeSet<_> = known.iter().copied().collect();
    assert_eq!(distinct.len(), known.len(), "an id is both checked here and listed as checked elsewhere");
    assert_eq!(distinct, ids, "new vectors need a check, and checks a vector");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (id, file) in ELSEWHERE {
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        assert!(text.contains(&format!("\"{id}\"")), "{file} does not check {id}");
    }
}

#[test]
fn every_implemented_formula_reproduces_its_vector() {
    for vector in vectors() {
        if let Some((_, check)) = CHECKS.iter().find(|(id, _)| *id == vector.id) {
            check(&vector);
        }
    }
}

/// 2^k and 2^k·r designs: everything the vector expects, term by term.
fn factorial(vector: &Vector) {
    analyse(vector);
}

fn factorial_with_predictions(vector: &Vector) {
    let (found, terms) = analyse(vector);
    let term = |name: &str| terms.iter().position(|t| t == name).unwrap() as u32;

    let expected = &vector.expect["contrast_A_plus_B_minus_2AB"];
    let coefficients = [(term("A"), 1.0), (term("B"), 1.0), (term("AB"), -2.0)];
    let contrast = found.contrast(&coefficients, 0.9).unwrap().unwrap();
    vector.close("contrast mean", contrast.value, &expected["mean"]);
    vector.close("contrast s", contrast.standard_deviation, &expected["s"]);
    vector.interval("contrast", contrast, &expected["ci90"]);

    let expected =
        vector.expect["predicted_response_at_minus_minus_ci90_for_m_future_runs"].as_object().unwrap();
    assert_eq!(expected.len(), 3);
    for (runs, interval) in expected {
        let runs = if runs == "inf" { None } else { Some(runs.parse().unwrap()) };
        let predicted = found.predict(0, runs, Leverage::Jain, 0.9).unwrap().unwrap();
        vector.interval("prediction", predicted, interval);
    }
}

fn analyse(vector: &Vector) -> (FactorialEffects, Vec<String>) {
    let cells: Vec<_> = vector.input["y"].as_array().unwrap().iter().map(numbers_or_one).collect();
    let found = effects(&cells, 0.95).unwrap();
    // Factors are named by their first letter; a term by those of its factors, the first one first.
    let letters: Vec<_> =
        vector.input["factors"].as_array().unwrap().iter().map(|f| &f.as_str().unwrap()[..1]).collect();
    let name = |term: usize| match term {
        0 => "I".to_owned(),
        _ => (0..letters.len()).filter(|j| term >> j & 1 == 1).map(|j| letters[j]).collect(),
    };
    let terms: Vec<_> = (0..found.terms.len()).map(name).collect();
    let each = |key: &str| {
        let expected = vector.expect.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        for name in expected.keys() {
            assert!(terms.contains(name), "{}: {key} has the unknown term {name}", vector.id);
        }
        found
            .terms
            .iter()
            .zip(&terms)
            .filter_map(move |(effect, name)| Some((effect, expected.get(name)?.clone())))
    };
    assert_eq!(each("q").count(), found.terms.len(), "{}: an effect is missing", vector.id);
    for (effect, q) in each("q") {
        vector.close("q", effect.q, &q);
    }
    for (effect, double) in each("effects_2q") {
        vector.close("2q", 2.0 * effect.q, &double);
    }
    assert_eq!(each("percent_of_variation").count(), found.terms.len() - 1);
    for (effect, percent) in each("percent_of_variation") {
        vector.close("percent", effect.percent.unwrap(), &percent);
    }
    for (effect, sum) in each("SS") {
        vector.close("SS", effect.sum_of_squares, &sum);
    }
    for (key, value) in [
        ("SSY", found.ssy),
        ("SS0", found.ss0),
        ("SST", found.sst),
        ("SSE", found.sse),
        ("percent_error", found.percent_error.unwrap()),
    ] {
        vector.close(key, value, &vector.expect[key]);
    }
    if cells[0].len() == 1 {
        assert_eq!((found.df, found.s_e), (0, None));
        return (found, terms);
    }
    assert_eq!(vector.expect["df"], found.df);
    vector.close("s_e", found.s_e.unwrap(), &vector.expect["s_e"]);
    vector.close("s_q", found.s_q.unwrap(), &vector.expect["s_q"]);
    for (key, confidence) in [("ci90", 0.9), ("ci95", 0.95)] {
        let at_level = effects(&cells, confidence).unwrap();
        assert_eq!(each(key).count(), found.terms.len());
        for (effect, interval) in each(key) {
            let half_width = at_level.terms[effect.term as usize].half_width.unwrap();
            let estimate = Estimate { value: effect.q, standard_deviation: 0.0, half_width };
            vector.interval(key, estimate, &interval);
            let ends = numbers(&interval);
            let excludes_zero = ends[0] > 0.0 || ends[1] < 0.0;
            assert_eq!(at_level.terms[effect.term as usize].significant, Some(excludes_zero));
        }
    }
    (found, terms)
}

fn t_quantiles(vector: &Vector) {
    let p = vector.input["p"].as_f64().unwrap();
    let (df, expected) = (numbers(&vector.input["df"]), numbers(&vector.expect["q"]));
    assert_eq!(df.len(), expected.len());
    for (df, expected) in df.into_iter().zip(expected) {
        let found = t_quantile(p, df);
        assert!((found - expected).abs() < 1e-9, "t({p}, {df}) = {found}, not {expected}");
    }
}

fn t_interval(vector: &Vector) {
    let found = mean_interval(&numbers(&vector.input["x"]), vector.input["conf"].as_f64().unwrap()).unwrap();
    vector.close("mean", found.mean, &vector.expect["mean"]);
    vector.close("lo", found.lower().unwrap(), &vector.expect["lo"]);
    vector.close("hi", found.upper().unwrap(), &vector.expect["hi"]);
}

fn welch_sleep(vector: &Vector) {
    let (a, b) = (numbers(&vector.input["a"]), numbers(&vector.input["b"]));
    let found = welch(&a, &b, 0.95).unwrap();
    vector.close("t", found.t, &vector.expect["t"]);
    vector.close("df", found.df, &vector.expect["df"]);
    vector.close("p", found.p, &vector.expect["p"]);
    let ends = numbers(&vector.expect["ci95"]);
    assert!((found.difference - found.half_width - ends[0]).abs() < 1e-7);
    assert!((found.difference + found.half_width - ends[1]).abs() < 1e-7);
    let ends = numbers(&vector.expect["one_sample_a_ci95"]);
    let one = mean_interval(&a, 0.95).unwrap();
    assert!((one.lower().unwrap() - ends[0]).abs() < 1e-7);
    assert!((one.upper().unwrap() - ends[1]).abs() < 1e-7);
}

fn jain_fairness(vector: &Vector) {
    let cases = vector.input["cases"].as_array().unwrap();
    let expected = vector.expect["J"].as_array().unwrap();
    assert_eq!(cases.len(), expected.len());
    for (case, expected) in cases.iter().zip(expected) {
        vector.close("J", fairness::jain(&numbers(case)).unwrap(), expected);
    }
}

fn snia_window(vector: &Vector) {
    let found = snia(&numbers(&vector.input["window"])).unwrap();
    vector.close("average", found.average, &vector.expect["average"]);
    vector.close("range", found.range_pct, &vector.expect["range_pct"]);
    vector.close("slope", found.slope, &vector.expect["slope"]);
    vector.close("excursion", found.slope_excursion_pct, &vector.expect["slope_excursion_pct"]);
    assert_eq!(vector.expect["steady"], found.steady);
}

fn mser(vector: &Vector) {
    let found = mser5(&numbers(&vector.input["x"])).unwrap();
    assert_eq!(vector.expect["batches"], found.batches);
    assert_eq!(vector.expect["truncate_batches"], found.truncate_batches);
    assert_eq!(vector.expect["truncate_samples"], found.truncate_samples);
    vector.close("statistic", found.statistic, &vector.expect["statistic"]);
    assert!(found.steady);
}

fn mann_whitney_exact(vector: &Vector) {
    let (x, y) = (numbers(&vector.input["x"]), numbers(&vector.input["y"]));
    let found = mann_whitney(&x, &y).unwrap();
    assert_eq!(vector.expect["W"].as_f64(), Some(found.u));
    vector.close("p greater", found.p_greater, &vector.expect["p_greater"]);
    vector.close("p two-sided", found.p_two_sided, &vector.expect["p_two_sided"]);
    let shift = hodges_lehmann(&x, &y, 0.95).unwrap();
    vector.close("shift", shift.estimate, &vector.expect["hl_shift"]);
    let ends = vector.expect["ci95"].as_array().unwrap();
    vector.close("lower", shift.lower, &ends[0]);
    vector.close("upper", shift.upper, &ends[1]);
}

fn bca_aircondit(vector: &Vector) {
    let x = numbers(&vector.input["x"]);
    let of_mean = |values: &[f64]| benchmaster_stats::mean(values).unwrap();
    let found =
        bootstrap(&x, of_mean, &bootstrap::Options { resamples: 99_999, ..bootstrap::Options::default() })
            .unwrap();
    let expected = |key: &str| vector.expect[key].as_f64().unwrap();
    assert!((found.estimate - expected("mean")).abs() < 1e-7);
    assert!((acceleration(&x, of_mean).unwrap() - expected("acceleration")).abs() < 1e-7);
    let bca = found.bca.unwrap();
    assert!((bca.acceleration - expected("acceleration")).abs() < 1e-7);
    assert!((bca.z0 - expected("z0_approx")).abs() < 0.01, "{}", bca.z0);
    for (key, interval) in [
        ("bca95", bca.interval),
        ("perc95", found.percentile),
        ("basic95", found.basic),
        ("normal95", found.normal),
    ] {
        let ends = numbers(&vector.expect[key]);
        for (found, expected) in [interval.0, interval.1].into_iter().zip(ends) {
            assert!((found / expected - 1.0).abs() < 0.02, "{key}: {found} is not {expected}");
        }
    }
}

fn e_divisive_nile(vector: &Vector) {
    let y = numbers(&vector.input["y"]);
    let split = best_split(&y, 1, false).unwrap().unwrap();
    vector.close("Q", split.q, &vector.expect["qhat_full_series"]);
    assert_eq!(vector.expect["argmax"], split.index);
    // Otava's Q, where the end of the second part is searched for too: from the vector's notes.
    assert!((best_split(&y, 1, true).unwrap().unwrap().q - 4916.5908).abs() < 5e-5);

    let found = e_divisive(&y, &EDivisive::default()).unwrap();
    assert_eq!(found.points.len(), 1);
    let point = found.points[0];
    assert_eq!(vector.expect["first_index_of_second_segment_zero_based"], point.index);
    assert_eq!(vector.expect["p_permutation_999"], point.p);
    vector.close("mean before", point.mean_before, &vector.expect["mean_before"]);
    vector.close("mean after", point.mean_after, &vector.expect["mean_after"]);
    assert!(found.rejected.unwrap().p > 0.05);

    // The same change by the rule that is made for series that grow.
    let found = monitor(&y, &[], 0.05).unwrap();
    assert_eq!(found.changes.iter().map(|change| change.index).collect::<Vec<_>>(), [28]);
}

fn hash_cast_exact(vector: &Vector) {
    let expected = |key: &str| vector.expect[key].as_f64().unwrap();
    let close =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    for (key, queues) in
        [("five_flows_eight_queues_min_max_load", 8), ("five_flows_six_queues_min_max_load", 6)]
    {
        let outcomes = hash_cast::distribution(5, queues).unwrap();
        let all = vector.expect[key].as_object().unwrap();
        assert_eq!(outcomes.len(), all.len());
        for outcome in outcomes {
            let name = format!("{}:{}", outcome.min, outcome.max);
            close(outcome.probability, all[&name].as_f64().unwrap());
        }
    }
    let loads = |loads: &[u32], queues| hash_cast::probability_of_loads(loads, queues).unwrap();
    close(loads(&[1; 5], 8), expected("P_all_distinct_5_into_8"));
    close(loads(&[1, 1, 1, 2], 8), expected("P_1112_5_into_8"));
    close(loads(&[0, 0, 1, 1, 1, 2], 6), expected("P_001112_5_into_6"));
    let two = loads(&[1, 1, 1, 2], 6) + loads(&[1, 2, 2], 6);
    close(two, expected("P_max_load_2_5_into_6"));
    for (key, ratio) in [("P_ratio_ge_2_eight_queues", 2.0), ("P_ratio_ge_5_eight_queues", 5.0)] {
        for (flows, probability) in vector.expect[key].as_object().unwrap() {
            let found = hash_cast::probability_of_ratio(flows.parse().unwrap(), 8, ratio).unwrap();
            close(found, probability.as_f64().unwrap());
        }
    }
}

fn coordinated_omission(vector: &Vector) {
    let number = |key: &str| vector.input[key].as_u64().unwrap();
    let found: Vec<_> = with_expected_interval(number("value"), number("expected_interval")).collect();
    assert_eq!(vector.expect["recorded"], serde_json::json!(found));
}

/// The paper prints summaries, so the calls are made up to have them.
fn latency_spikes(vector: &Vector) {
    let number = |map: &Map<String, Value>, key: &str| map[key].as_f64().unwrap();
    let calls = number(&vector.input, "calls") as usize;
    let slow = number(&vector.input, "slow_calls") as usize;
    let normal_ns = (number(&vector.input, "mean_without_us") * 1e3) as u64;
    let slow_ns = (number(&vector.expect, "implied_mean_of_slow_us") * 1e3) as u64;
    let threshold_ns = (number(&vector.input, "threshold_us") * 1e3) as u64;
    let latencies: Vec<_> = (0..calls).map(|i| if i < slow { slow_ns } else { normal_ns }).collect();
    let found = spikes(&latencies, 0.0, threshold_ns).unwrap();
    assert_eq!(found.slow_calls, slow);
    vector.close("share", found.share, &vector.expect["share"]);
    vector.close("inflation", found.inflation, &vector.expect["inflation"]);
    vector.close("mean", found.mean_ns / 1e3, &vector.input["mean_us"]);
    vector.close(
        "mean of slow",
        found.mean_of_slow_ns.unwrap() / 1e3,
        &vector.expect["implied_mean_of_slow_us"],
    );
}

struct Vector {
    id: String,
    input: Map<String, Value>,
    expect: Map<String, Value>,
    tolerance: Tolerance,
}

enum Tolerance {
    Relative(f64),
    Absolute(f64),
    /// Relative, but no closer than the last digit of a value with three or more decimals, which may be rounded to
    /// them.
    RelativeOrPrinted(f64),
    Printed,
}

impl Vector {
    fn close(&self, what: &str, found: f64, expected: &Value) {
        let number = expected.as_f64().unwrap_or_else(|| panic!("{}: no number for {what}", self.id));
        let printed = half_of_last_digit(&expected.to_string());
        let allowed = match self.tolerance {
            Tolerance::Relative(relative) => relative * number.abs(),
            Tolerance::Absolute(absolute) => absolute,
            Tolerance::RelativeOrPrinted(relative) if printed > 1e-3 => relative * number.abs(),
            Tolerance::RelativeOrPrinted(relative) => (relative * number.abs()).max(printed),
            Tolerance::Printed => printed,
        };
        // Sums of a few numbers near 1 may end some units off in the last place.
        let difference = (found - number).abs();
        assert!(difference <= allowed + 1e-12, "{}: {what} is {found}, not {number} ± {allowed}", self.id);
    }

    fn interval(&self, what: &str, found: Estimate, expected: &Value) {
        let ends = expected.as_array().unwrap();
        self.close(what, found.value - found.half_width, &ends[0]);
        self.close(what, found.value + found.half_width, &ends[1]);
    }
}

/// Half a unit of the last digit of a number in decimal notation, and a little more for its rounding.
fn half_of_last_digit(text: &str) -> f64 {
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.501 * 10f64.powi(-(decimals as i32))
}

fn vectors() -> Vec<Vector> {
    let text = include_str!("../vectors/statistics.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    file["vectors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| Vector {
            id: v["id"].as_str().unwrap().to_owned(),
            input: object(&v["input"]),
            expect: object(&v["expect"]),
            tolerance: tolerance(v["tolerance"].as_str().unwrap()),
        })
        .collect()
}

fn tolerance(text: &str) -> Tolerance {
    match text {
        "1e-9 relative unless the value is printed rounded" => Tolerance::RelativeOrPrinted(1e-9),
        "as printed" => Tolerance::Printed,
        "1e-9" => Tolerance::Absolute(1e-9),
        "1e-3" => Tolerance::Absolute(1e-3),
        "1e-6" => Tolerance::Relative(1e-6),
        // Of vectors that are checked elsewhere, or with tolerances of their own.
        _ => Tolerance::Absolute(0.0),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// A cell of an unreplicated design is a number, of a replicated one a list.
fn numbers_or_one(value: &Value) -> Vec<f64> {
    value.as_f64().map_or_else(|| numbers(value), |number| vec![number])
}
