//! Wrong input: exit status 2, a message that says what and where, and nothing created.

use std::fs;
use std::process::Output;

use benchmaster_testkit as synthetic;

use crate::place::{Place, Running, TINY, snapshot, stderr, transcript};

fn refused(place: &Place, name: &str, output: &Output) {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(output.stdout.is_empty());
    snapshot(name, place, &transcript(output));
}

#[test]
fn a_study_file_that_is_not_there() {
    let place = Place::new();
    refused(&place, "missing_study", &place.run(&["run", "nowhere.toml"]));
    refused(&place, "missing_study_plan", &place.run(&["plan", "nowhere.toml"]));
    refused(&place, "directory_as_study", &place.run(&["run", "target"]));
    assert_eq!(place.list("."), ["target", "tmp"]);
}

#[test]
fn mistakes_in_a_study_are_shown_at_their_places_and_nothing_is_created() {
    let place = Place::new();
    let study = TINY
        .replace("file_size = \"64KiB\"", "file_sise = \"64KiB\"")
        .replace("duration = \"30ms\"", "duration = \"30\"")
        .replace("workload.write.io_size", "workload.wrote.io_size");
    place.write("wrong.toml", &study);
    for command in ["run", "plan"] {
        let output = place.run(&[command, "wrong.toml"]);
        refused(&place, &format!("mistakes_{command}"), &output);
        let text = stderr(&output);
        for part in ["wrong.toml:12:13", "file_size", "30s", "help: ", "3 errors"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
    assert_eq!(place.list("."), ["target", "tmp", "wrong.toml"]);
    place.assert_nothing_left();
}

#[test]
fn a_target_that_is_not_there() {
    let place = Place::new();
    refused(&place, "quick_missing", &place.run(&["quick", "nowhere"]));
    place.write("file", "");
    refused(&place, "quick_file", &place.run(&["quick", "file"]));
    place.write("away.toml", &TINY.replace("\"target\"", "\"/nowhere/at/all\""));
    refused(&place, "missing_target", &place.run(&["run", "away.toml"]));
    assert_eq!(place.list("."), ["away.toml", "file", "target", "tmp"]);
}

#[test]
fn quick_can_be_printed_as_a_study() {
    let place = Place::new();
    let output = place.run(&["quick", "target", "--print", "--duration", "500ms"]);
    assert!(output.status.success() && output.stderr.is_empty());
    snapshot("quick_print", &place, &transcript(&output));
    assert_eq!(place.list("."), ["target", "tmp"], "printing creates nothing");
    place.write("printed.toml", &String::from_utf8(output.stdout).unwrap());
    let plan = place.run(&["plan", "printed.toml"]);
    assert!(plan.status.success(), "{}", stderr(&plan));
}

#[test]
fn a_directory_that_holds_something_else() {
    let place = Place::tiny();
    fs::create_dir(place.path("photos")).unwrap();
    place.write("photos/cat.jpeg", "meow");
    refused(&place, "not_empty", &place.run(&["run", "tiny.toml", "-o", "photos"]));
    assert_eq!(place.list("photos"), ["cat.jpeg"]);

    refused(&place, "file_as_results", &place.run(&["run", "tiny.toml", "-o", "tiny.toml"]));
    refused(&place, "below_a_file", &place.run(&["run", "tiny.toml", "-o", "tiny.toml/results"]));

    fs::create_dir(place.path("foreign")).unwrap();
    let database = rusqlite::Connection::open(place.path("foreign/results.db")).unwrap();
    database.execute_batch("CREATE TABLE cats (name TEXT)").unwrap();
    drop(database);
    refused(&place, "foreign_database", &place.run(&["run", "tiny.toml", "-o", "foreign"]));
    refused(&place, "foreign_database_analyze", &place.run(&["analyze", "foreign"]));
    place.assert_nothing_left();
}

#[test]
fn a_directory_that_holds_another_study() {
    let place = Place::tiny();
    synthetic::write(&place.path("other"), &synthetic::study_results(1, 2, 2)).unwrap();
    let before = place.results("other");
    let output = place.run(&["run", "tiny.toml", "-o", "other"]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("`other`: the study has changed") && text.contains("-o"), "{text}");
    assert_eq!(place.results("other"), before);
    place.assert_nothing_left();
}

#[test]
fn a_study_that_was_changed_is_another_one() {
    let place = Place::tiny();
    assert!(place.run(&["run", "tiny.toml", "-q"]).status.code() != Some(2));
    place.write("tiny.toml", &TINY.replace("64KiB", "128KiB"));
    let output = place.run(&["run", "tiny.toml"]);
    refused(&place, "changed_study", &output);
    // What does not change the meaning is no change.
    place.write("tiny.toml", &TINY.replace("seed = 1", "seed   = 1 # one"));
    let output = place.run(&["run", "tiny.toml"]);
    assert!(stderr(&output).contains("tiny: complete with 10 runs"), "{}", stderr(&output));
}

#[test]
fn a_second_run_in_the_same_directory_is_refused_and_the_first_goes_on() {
    let place = Place::new();
    place.write(
        "long.toml",
        &TINY.replace("duration = \"30ms\"", "duration = \"400ms\"").replace("= 5", "= 2"),
    );
    let mut first = Running::start(place.command(&["run", "long.toml", "-o", "results"]));
    first.wait_for("results in");
    refused(&place, "second_run", &place.run(&["run", "long.toml", "-o", "results", "-q"]));
    let (status, summary, progress) = first.end();
    assert!(matches!(status.code(), Some(0 | 1)), "{progress}");
    assert!(summary.contains("4 of 4 runs finished; never interrupted"), "{summary}");
    place.assert_nothing_left();
}

#[test]
fn results_that_are_not_there() {
    let place = Place::new();
    refused(&place, "analyze_missing", &place.run(&["analyze", "nowhere"]));
    refused(&place, "report_missing", &place.run(&["report", "nowhere"]));
    refused(&place, "export_missing", &place.run(&["export", "nowhere", "--format", "csv"]));
    refused(&place, "analyze_other", &place.run(&["analyze", "target"]));
    assert_eq!(place.list("."), ["target", "tmp"]);
}
