//! `compare`, `history`, `simulate`: on made-up results, the same on every machine.

use benchmaster_record::results::ServedBy;
use std::process::Output;

use benchmaster_record::results::StudyResults;
use benchmaster_testkit as synthetic;
use jiff::SignedDuration;
use serde_json::Value;

use crate::place::{Place, snapshot, stderr, stdout, transcript};

const THROUGHPUT: &str = "write.throughput";

/// Results of 4 cells × `replicates` runs that all count, the throughput of writes being `values(cell, replicate)`.
pub(crate) fn results(replicates: u32, values: impl Fn(u32, u32) -> f64) -> StudyResults {
    of_cells(4, replicates, values)
}

fn of_cells(cells: u32, replicates: u32, values: impl Fn(u32, u32) -> f64) -> StudyResults {
    let mut results = synthetic::study_results(7, cells, replicates);
    for run in &mut results.runs {
        run.checks.clear();
        let key = run.key;
        let response = run.responses.iter_mut().find(|r| r.name == THROUGHPUT).unwrap();
        response.value = values(key.treatment, key.replicate);
    }
    results
}

/// 100 to 400 MB/s, ±0.5 % between replicates.
pub(crate) fn level(cell: u32, replicate: u32) -> f64 {
    let noise = [0.0, 0.004, -0.005, 0.002, -0.001][replicate as usize % 5];
    1e8 * f64::from(cell + 1) * (1.0 + noise)
}

pub(crate) fn write(place: &Place, name: &str, results: &StudyResults) {
    synthetic::write(&place.path(name), results).unwrap();
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(output)))
}

#[test]
fn the_same_twice_is_the_same() {
    let place = Place::new();
    write(&place, "a", &results(5, level));
    write(&place, "b", &results(5, |cell, replicate| level(cell, replicate + 2)));
    let output = place.run(&["compare", "a", "b", "--response", THROUGHPUT]);
    snapshot("compare_same", &place, &transcript(&output));
    assert_eq!(output.status.code(), Some(0));
    let found = json(&place.run(&["compare", "a", "b", "--response", THROUGHPUT, "--json"]));
    assert_eq!(found["verdict"], "same");
    let cells = found["responses"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert!(cells.iter().all(|c| c["verdict"] == "same" && c["ratio"]["interval"][0].is_number()));
}

#[test]
fn one_cell_that_changed_is_found_and_named() {
    let place = Place::new();
    write(&place, "a", &results(5, level));
    let slower = |cell, replicate| level(cell, replicate) * if cell == 2 { 0.9 } else { 1.0 };
    write(&place, "b", &results(5, slower));
    let output = place.run(&["compare", "a", "b", "--response", THROUGHPUT]);
    snapshot("compare_worse", &place, &transcript(&output));
    assert_eq!(output.status.code(), Some(1));
    let found = json(&place.run(&["compare", "a", "b", "--response", THROUGHPUT, "--json"]));
    assert_eq!(found["verdict"], "changed");
    let verdicts: Vec<_> =
        found["responses"][0]["cells"].as_array().unwrap().iter().map(|c| &c["verdict"]).collect();
    assert_eq!(verdicts, ["same", "same", "changed", "same"]);
    let cell = &found["responses"][0]["cells"][2];
    assert_eq!(cell["direction"], "worse");
    assert!((cell["ratio"]["ratio"].as_f64().unwrap() - 0.9).abs() < 1e-12);
    // Exact ranks of 5 and 5: 2/C(10, 5), corrected for four cells.
    assert!((cell["ranks"]["p"].as_f64().unwrap() - 2.0 / 252.0).abs() < 1e-12);
    assert!((cell["ranks"]["p_holm"].as_f64().unwrap() - 8.0 / 252.0).abs() < 1e-12);
    assert_eq!(found["family"], 5);

    for (fail_on, there, back) in
        [("never", 0, 0), ("regression", 1, 0), ("changed", 1, 1), ("undecided", 1, 1)]
    {
        let status = |a, b| {
            place.run(&["compare", a, b, "--response", THROUGHPUT, "--fail-on", fail_on]).status.code()
        };
        assert_eq!((status("a", "b"), status("b", "a")), (Some(there), Some(back)), "{fail_on}");
    }
    // A band that is wide enough makes it one that does not matter.
    let output = place.run(&["compare", "a", "b", "--response", THROUGHPUT, "--band", "15%", "--json"]);
    assert_eq!((output.status.code(), json(&output)["verdict"].as_str()), (Some(0), Some("same")));
}

#[test]
fn few_runs_cannot_show_a_difference_by_ranks() {
    let place = Place::new();
    write(&place, "a", &results(3, level));
    write(&place, "b", &results(3, |cell, replicate| 1.01 * level(cell, replicate)));
    let output = place.run(&["compare", "a", "b", "--response", THROUGHPUT]);
    snapshot("compare_few", &place, &transcript(&output));
    let found = json(&place.run(&["compare", "a", "b", "--response", THROUGHPUT, "--json"]));
    let ranks = &found["responses"][0]["cells"][0]["ranks"];
    assert!((ranks["smallest_p"].as_f64().unwrap() - 0.1).abs() < 1e-12);
    assert_eq!(ranks["can_reach"], false);

    write(&place, "one", &results(1, level));
    let output = place.run(&["compare", "one", "b", "--response", THROUGHPUT]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("one run tells nothing"), "{}", stdout(&output));
    assert_eq!(
        place.run(&["compare", "one", "b", "--response", THROUGHPUT, "--fail-on", "undecided"]).status.code(),
        Some(1)
    );
}

#[test]
fn results_of_other_things_are_refused_unless_forced() {
    let place = Place::new();
    write(&place, "a", &results(3, level));
    let mut other = results(3, level);
    for session in &mut other.sessions {
        session.environment.values_mut().for_each(|e| e.kernel = "Linux 6.99.0 #1 SMP x86_64".into());
    }
    for run in &mut other.runs {
        let service = run.service.get_or_insert_with(|| benchmaster_record::results::ServiceRecord {
            url: String::new(),
            server: ServedBy::Embedded,
            network: Default::default(),
            achieved: None,
        });
        service.server = ServedBy::Managed;
        service.url = "nfs://{server}/export".into();
    }
    other.study.text = other.study.text.replacen("[workload.write]", "[workload.write]\nextra = 1", 1);
    assert!(other.study.text.contains("extra = 1"), "{}", other.study.text);
    write(&place, "b", &other);
    let output = place.run(&["compare", "a", "b"]);
    assert_eq!(output.status.code(), Some(2));
    snapshot("compare_refused", &place, &transcript(&output));
    let output = place.run(&["compare", "a", "b", "--force"]);
    assert_ne!(output.status.code(), Some(2));
    let text = stdout(&output);
    for key in ["FORCED", "kernel", "server.kind", "workload.write.extra"] {
        assert!(text.contains(key), "{key} is missing:\n{text}");
    }
    let forced = json(&place.run(&["compare", "a", "b", "--force", "--json"]));
    let keys: Vec<_> =
        forced["forced"].as_array().unwrap().iter().map(|d| d["key"].as_str().unwrap()).collect();
    assert!(keys.contains(&"kernel") && keys.contains(&"workload.write.extra"), "{keys:?}");
}

#[test]
fn wrong_input_is_told() {
    let place = Place::new();
    write(&place, "a", &results(3, level));
    let mut renamed = results(3, level);
    renamed.study.factors[0].name = "block".into();
    write(&place, "renamed", &renamed);
    let mut none = results(3, level);
    none.runs.clear();
    write(&place, "none", &none);
    let cases: [(&str, &[&str]); 6] = [
        ("compare_missing", &["compare", "a", "nowhere"]),
        ("compare_unknown_response", &["compare", "a", "a", "--response", "write.latency"]),
        ("compare_no_cell", &["compare", "a", "renamed", "--force"]),
        ("compare_no_run", &["compare", "a", "none"]),
        ("compare_bad_band", &["compare", "a", "a", "--band", "two"]),
        ("history_no_response", &["history", "a", "--response", "nothing"]),
    ];
    for (name, arguments) in cases {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(output.stdout.is_empty(), "{name}");
        snapshot(name, &place, &transcript(&output));
    }
}

#[test]
fn headline_responses_are_one_family_and_all_others_another() {
    let place = Place::new();
    write(&place, "a", &results(4, level));
    write(&place, "b", &results(4, |cell, replicate| level(cell, replicate + 1)));
    let found = json(&place.run(&["compare", "a", "b", "--response", "all", "--json"]));
    let responses = found["responses"].as_array().unwrap();
    assert!(responses.len() > 3);
    let tests = |headline: bool| -> Vec<&Value> {
        let of = responses.iter().filter(|r| r["headline"] == headline).flat_map(|r| {
            let cells = r["cells"].as_array().unwrap().iter().filter(|c| c["welch"].is_object());
            cells.map(|c| &c["welch"]).chain(r.get("overall").filter(|o| o.is_object()))
        });
        of.collect()
    };
    assert_eq!(
        (&found["family"], &found["other_family"]),
        (&tests(true).len().into(), &tests(false).len().into())
    );
    for test in tests(true).into_iter().chain(tests(false)) {
        assert!(test["p_holm"].as_f64().unwrap() >= test["p"].as_f64().unwrap());
    }
    // Without a choice: those that stand for the workloads, with the same correction.
    let headlines = json(&place.run(&["compare", "a", "b", "--json"]));
    let names: Vec<_> = headlines["responses"].as_array().unwrap().iter().map(|r| &r["response"]).collect();
    assert_eq!(names, ["write.throughput", "read.throughput"]);
    assert_eq!((&headlines["family"], &headlines["other_family"]), (&found["family"], &0.into()));
    assert_eq!(headlines["responses"][1], responses[1]);
    let two = format!("{THROUGHPUT},read.throughput");
    let found = json(&place.run(&["compare", "a", "b", "--response", &two, "--json"]));
    assert_eq!(found["responses"].as_array().unwrap().len(), 2);
}

/// Of the four cells of two factors those of one level against those of the other.
#[test]
fn two_levels_of_a_factor_are_compared_within_one_study() {
    let place = Place::new();
    // The second factor doubles it; the first does nothing.
    let mut made = results(5, |cell, replicate| level(0, replicate) * if cell < 2 { 1.0 } else { 2.0 });
    made.study.factors.truncate(2);
    let names: Vec<String> = made.study.factors.iter().map(|factor| factor.name.clone()).collect();
    for treatment in &mut made.study.treatments {
        treatment.levels.truncate(2);
    }
    write(&place, "a", &made);
    let found = |factor: &str| {
        json(&place.run(&["compare", "a", "--factor", factor, "--response", THROUGHPUT, "--json"]))
    };
    let [first, second] = [found(&names[0]), found(&names[1])];
    assert_eq!((&first["verdict"], &second["verdict"]), (&Value::from("same"), &Value::from("changed")));
    let cells = second["responses"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{second:#}");
    assert!(cells.iter().all(|cell| (cell["ratio"]["ratio"].as_f64().unwrap() - 2.0).abs() < 1e-9));
    let output = place.run(&["compare", "a", "--factor", "colour"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the study has no factor `colour`; it has: "), "{}", stderr(&output));
}

#[test]
fn a_history_has_change_points_in_the_order_of_time() {
    let place = Place::new();
    let mut names = Vec::new();
    for night in 0..14u32 {
        let factor = if night < 8 { 1.0 } else { 0.8 };
        let mut one = of_cells(2, 1, |cell, replicate| factor * level(cell, replicate + night));
        for run in &mut one.runs {
            run.started += SignedDuration::from_hours(24 * i64::from(night));
        }
        let name = format!("night-{night:02}");
        write(&place, &name, &one);
        names.push(name);
    }
    // In whatever order they are given.
    names.reverse();
    let mut arguments = vec!["history"];
    arguments.extend(names.iter().map(String::as_str));
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    snapshot("history", &place, &transcript(&output));
    let with = |more: &[&str]| place.run(&[&arguments[..], more].concat());
    let found = json(&with(&["--json"]));
    let series = found["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    let mut revealed = 0;
    for one in series {
        assert_eq!(one["points"].as_array().unwrap().len(), 14);
        let changes = one["changes"].as_array().unwrap();
        assert_eq!((changes.len(), &one["verdict"]), (1, &"changed".into()), "{changes:?}");
        assert_eq!((&changes[0]["index"], &changes[0]["first"]), (&8.into(), &"night-08".into()));
        assert_eq!(changes[0]["direction"], "worse");
        revealed = revealed.max(changes[0]["found"].as_u64().unwrap());
    }
    let recent = |n: u64| with(&["--fail-on", "regression", "--recent", &n.to_string()]).status.code();
    // The last results that reveal it are those from `found` on.
    assert_eq!((recent(14 - revealed), recent(14 - revealed - 1)), (Some(1), Some(0)));
    let large = json(&with(&["--min-change", "30%", "--json"]));
    assert!(large["series"].as_array().unwrap().iter().all(|s| s["changes"] == serde_json::json!([])));
}

#[test]
fn a_stray_file_among_results_is_skipped_with_a_note() {
    let place = Place::new();
    write(&place, "n1", &of_cells(1, 3, level));
    write(&place, "n2", &of_cells(1, 3, level));
    place.write("n.toml", "[study]");
    let output = place.run(&["history", "n.toml", "n1", "n2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("skipped: ") && stderr(&output).contains("n.toml"),
        "{}",
        stderr(&output)
    );
    assert!(!stdout(&output).contains("Nothing changed"), "{}", stdout(&output));
    assert_eq!(place.run(&["history", "n.toml"]).status.code(), Some(2));
}

/// The flow of the Nile at Aswan, 1871 to 1970, which changed in 1899.
#[test]
fn a_history_can_be_a_column_of_a_file() {
    const VECTORS: &str = include_str!("../../../stats/tests/vectors/statistics.json");
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let nile = vectors["vectors"].as_array().unwrap().iter().find(|v| v["id"] == "edivisive-nile").unwrap();
    let rows: Vec<_> = nile["input"]["y"].as_array().unwrap().iter().zip(1871..).collect();
    let csv: String = rows.iter().map(|(y, year)| format!("{year},{y}\n")).collect();
    let place = Place::new();
    place.write("nile.csv", &format!("year,y\n{csv}"));
    let arguments = ["history", "--data", "nile.csv", "--response", "y"];
    let output = place.run(&arguments);
    snapshot("history_nile", &place, &transcript(&output));
    let found = json(&place.run(&[&arguments[..], &["--json"]].concat()));
    let series = &found["series"][0];
    assert_eq!(series["changes"].as_array().unwrap().len(), 1);
    let change = &series["changes"][0];
    assert_eq!(change["index"], 28);
    assert!(change["p"].as_f64().unwrap() < 0.05);
    assert!((change["mean_before"].as_f64().unwrap() - 1097.75).abs() < 1e-9);
    let missing = place.run(&["history", "--data", "nile.csv", "--response", "flow"]);
    assert_eq!(missing.status.code(), Some(2));
    place.write("first.csv", "year,y\n1871,1120\n");
    let first = stdout(&place.run(&["history", "--data", "first.csv", "--response", "y"]));
    assert!(first.contains("\ny (1 result)\n"), "{first}");
    assert!(first.contains("\nCannot tell: no change could be found in 1 result yet.\n"), "{first}");
}

#[test]
fn hash_cast_is_exact_and_simulated() {
    let place = Place::new();
    let arguments = ["simulate", "hash-cast", "--flows", "5", "--trials", "20000", "--seed", "7"];
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    snapshot("hash_cast", &place, &transcript(&output));
    assert_eq!(stdout(&place.run(&arguments)), stdout(&output), "the same seed, the same draws");
    let found = json(&place.run(&[&arguments[..], &["--json"]].concat()));
    let ratio = &found["flows"][0]["ratios"][0];
    assert_eq!(ratio["ratio"], 2.0);
    assert!((ratio["probability"].as_f64().unwrap() - 0.777588).abs() < 1e-6);
    assert!((ratio["simulated"].as_f64().unwrap() - 0.777588).abs() < 0.015);
    let loads = found["flows"][0]["loads"].as_array().unwrap();
    assert_eq!((&loads[0]["min"], &loads[0]["max"]), (&1.into(), &2.into()));

    // The three claims beside Fig 6 of the paper.
    let curves = json(&place.run(&["simulate", "hash-cast", "--flows", "2..60", "--ratio", "2,5", "--json"]));
    let of = |flows: usize, ratio: usize| {
        curves["flows"][flows - 2]["ratios"][ratio]["probability"].as_f64().unwrap()
    };
    assert!((6..=60).all(|flows| of(flows, 0) > 0.9) && of(5, 0) < 0.9);
    assert!((15..=53).all(|flows| of(flows, 1) > 0.2) && of(14, 1) < 0.2 && of(54, 1) < 0.2);
    assert!((18..=33).all(|flows| of(flows, 1) > 0.4) && of(17, 1) < 0.4 && of(34, 1) < 0.4);
    let short = place.run(&["simulate", "hash-cast", "--flows", "2..6"]);
    snapshot("hash_cast_range", &place, &transcript(&short));
    for wrong in [&["--flows", "0"][..], &["--flows", "9..2"], &["--flows", "5", "--ratio", "0.5"]] {
        let output = place.run(&[&["simulate", "hash-cast"][..], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
}
