//! `plan` of designs: without a study, of the rows of a file, and with the results of a pilot.

use serde_json::Value;

use crate::place::{Place, snapshot, stderr, stdout, transcript};

fn json(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[&["plan"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_fraction_of_paper_004_without_a_study() {
    let place = Place::new();
    let arguments =
        ["plan", "--factors", "A,B,C,D,E,F", "--generators", "D=AB,E=AC,F=BC", "--replicates", "5"];
    let output = place.run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    snapshot("plan_paper_004", &place, &transcript(&output));
    let design = json(&place, &arguments[1..]);
    assert_eq!(design["runs"]["max"], 40);
    assert_eq!(design["generators"], serde_json::json!(["D=AB", "E=AC", "F=BC"]));
    assert_eq!(design["word_length_pattern"], serde_json::json!({"3": 4, "4": 3}));
    assert_eq!(design["resolution"], 3);
    assert_eq!(design["chains"][1]["members"], serde_json::json!(["A", "BD", "CE", "BEF", "CDF"]));
    assert_eq!(place.list("."), ["target", "tmp"], "planning creates nothing");
}

#[test]
fn every_way_to_choose_a_design() {
    let place = Place::new();
    let cases: [(&[&str], u64); 9] = [
        (&["--factors", "6"], 64),
        (&["--factors", "6", "--resolution", "4"], 16),
        (&["--factors", "7", "--runs", "16"], 16),
        (&["--factors", "6", "--clear", "AB,AC"], 16),
        (&["--factors", "a,b,c,delay", "--generators", "delay=-a*b*c"], 8),
        (&["--levels", "2,2,2,2,2,3", "--runs", "48"], 48),
        (&["--factors", "9", "--plackett-burman"], 12),
        (&["--factors", "4", "--one-at-a-time"], 5),
        (&["--factors", "5", "--blocks", "4"], 32),
    ];
    for (arguments, treatments) in cases {
        let design = json(&place, arguments);
        assert_eq!(design["treatments"], treatments, "{arguments:?}");
        let rows = design["sign_table"]["rows"].as_array().unwrap().len() as u64;
        assert_eq!(rows, treatments, "{arguments:?}");
        let text = place.run(&[&["plan"], arguments].concat());
        assert!(text.status.success() && text.stdout.starts_with(b"design "), "{arguments:?}");
    }
}

#[test]
fn rows_of_a_file_tell_how_they_were_made() {
    let place = Place::new();
    // D=ABC with run order and responses, in the order in which it was run.
    place.write(
        "design.csv",
        "order,A,B,C,D,y\n3,+,-,-,+,8.1\n1,-,-,-,-,5\n2,+,+,+,+,9\n4,-,+,-,+,7\n5,+,+,-,-,6\n6,-,-,+,+,4\n7,+,-,+,-,3\n8,-,+,+,-,2\n",
    );
    let output = place.run(&["plan", "--data", "design.csv"]);
    assert!(output.status.success(), "{}", stderr(&output));
    snapshot("plan_data", &place, &transcript(&output));
    let design = json(&place, &["--data", "design.csv", "--factors", "A,B,C,D"]);
    assert_eq!(design["generators"], serde_json::json!(["D=ABC"]));
    assert_eq!(design["word_length_pattern"], serde_json::json!({"4": 1}));
    // Levels in another order turn the sign.
    let design = json(&place, &["--data", "design.csv", "--factors", "A,B,C,D=+:-"]);
    assert_eq!(design["generators"], serde_json::json!(["D=-ABC"]));
    // Fewer columns are a full design, twice.
    let design = json(&place, &["--data", "design.csv", "--factors", "A,B"]);
    assert_eq!((&design["treatments"], &design["error"]["degrees_of_freedom"]), (&4.into(), &4.into()));
    assert_eq!(design["resolution"], Value::Null);
}

#[test]
fn wrong_designs_are_refused() {
    let place = Place::new();
    place.write(
        "numbers.csv",
        &(0..70).map(|n| format!("{n}\n")).fold("latency\n".to_owned(), |all, n| all + &n),
    );
    let cases: [(&str, &[&str]); 6] = [
        ("plan_circular", &["--factors", "4", "--generators", "C=AD,D=AC"]),
        ("plan_contradiction", &["--factors", "6", "--runs", "16", "--resolution", "4"]),
        ("plan_study_and_factors", &["s.toml", "--factors", "6"]),
        ("plan_no_array", &["--levels", "2,2,3", "--runs", "7"]),
        ("plan_no_column", &["--data", "numbers.csv", "--factors", "sync"]),
        ("plan_too_many_levels", &["--data", "numbers.csv"]),
    ];
    for (name, arguments) in cases {
        let output = place.run(&[&["plan"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stdout(&output));
        assert!(output.stdout.is_empty(), "{name}");
        snapshot(name, &place, &transcript(&output));
    }
}

#[test]
fn a_pilot_gives_time_and_precision() {
    let place = Place::tiny();
    let run = place.run(&["run", "tiny.toml", "-o", "pilot", "--quiet"]);
    // Whether the tiny runs pass the checks is not the question here.
    assert!(run.status.code().is_some_and(|code| code < 2), "{}", stderr(&run));
    let plan = json(&place, &["tiny.toml", "--pilot", "pilot"]);
    let design = &plan["design"];
    assert_eq!(design["time"]["pilot_runs"], 10);
    assert_eq!(design["time"]["treatments_measured"], 2);
    let seconds = design["time"]["seconds_min"].as_f64().unwrap();
    let elapsed: f64 = place.results("pilot").runs.iter().map(|run| run.elapsed_ns as f64 / 1e9).sum();
    assert!((seconds - elapsed).abs() < 1e-6 * elapsed, "{seconds} against {elapsed}");
    let found = &design["smallest_detectable"];
    assert_eq!((&found["source"], &found["degrees_of_freedom"]), (&"pilot".into(), &8.into()));
    assert!(found["effects"][0]["relative_effect"].as_f64().unwrap() > 0.0);
    let text =
        stdout(&place.run(&["plan", "tiny.toml", "--pilot", "pilot", "--response", "write.operations"]));
    assert!(text.contains("the smallest effect of write.operations that is found"), "{text}");
    let output = place.run(&["plan", "tiny.toml", "--pilot", "pilot", "--response", "read.throughput"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has the response `read.throughput`; it has"), "{}", stderr(&output));
    let output = place.run(&["plan", "--factors", "3", "--pilot", "nowhere"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
