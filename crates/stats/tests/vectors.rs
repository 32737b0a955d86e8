//! Every formula in this crate against `vectors/statistics.json`: published examples and values recomputed with R.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panic")]

use std::collections::BTreeSet;

use benchmaster_stats::factorial::{Estimate, FactorialEffects, Leverage, effects};
use benchmaster_stats::interval::{mean_interval, welch};
use benchmaster_stats::latency::spikes;
use benchmaster_stats::steady::{mser5, snia};
use benchmaster_stats::{fairness, t_quantile};
use serde_json::{Map, Value};

/// Vectors of formulas that no crate has yet. Take an id out of this list and add its check below when it is
/// implemented.
const NOT_IMPLEMENTED: [&str; 12] = [
    "alias-2^(5-1)",
    "alias-2^(6-3)-seed004",
    "bca-aircondit",
    "edivisive-nile",
    "foldover-2^(7-4)",
    "hash-cast-exact",
    "hdr-coordinated-omission",
    "mann-whitney-exact",
    "minimum-aberration-catalogue",
    "mixed-level-oa-gwlp",
    "plackett-burman",
    "r-warpbreaks-2x3x9",
];

type Check = fn(&Vector);

const CHECKS: [(&str, Check); 11] = [
    ("bhh-pilot-plant-2x2x2x2", factorial),
    ("jain-2k-memcache-2x2", factorial),
    ("jain-2kr-memcache-2x2x3", factorial_with_predictions),
    ("jain-fairness", jain_fairness),
    ("latency-spikes-seed003", latency_spikes),
    ("mser-5-ramp", mser),
    ("nist-ceramics-2^5", factorial),
    ("snia-steady-pass", snia_window),
    ("t-interval-n3", t_interval),
    ("t-quantiles", t_quantiles),
    ("welch-sleep", welch_sleep),
];

#[test]
fn every_vector_is_checked_or_listed_as_missing() {
    let vectors = vectors();
    let ids: BTreeSet<_> = vectors.iter().map(|v| v.id.as_str()).collect();
    assert_eq!(ids.len(), vectors.len(), "ids are unique");
    let checked = CHECKS.iter().map(|(id, _)| *id);
    let known: Vec<_> = checked.chain(NOT_IMPLEMENTED).collect();
    let distinct: BTreeSet<_> = known.iter().copied().collect();
    assert_eq!(distinct.len(), known.len(), "an id is both checked and listed as not implemented");
    assert_eq!(distinct, ids, "new vectors need a check, and checks a vector");
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
    let text = include_str!("vectors/statistics.json");
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
        // Of formulas that are not implemented.
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
