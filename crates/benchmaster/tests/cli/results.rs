//! `analyze`, `report`, `export` on a directory of made-up results, the same on every machine.

use std::fs;

use benchmaster_record::results::StudyResults;
use benchmaster_testkit as synthetic;
use serde_json::Value;

use crate::place::{Place, snapshot, stderr, stdout, transcript};

/// Twelve runs of a study that was interrupted once; one has a warning and one is invalid.
fn measured() -> (Place, StudyResults) {
    let place = Place::new();
    let results = synthetic::study_results(7, 4, 3);
    synthetic::write(&place.path("results"), &results).unwrap();
    (place, results)
}

#[test]
fn analyze_prints_effects_and_intervals() {
    let (place, _) = measured();
    let output = place.run(&["analyze", "results"]);
    assert_eq!(output.status.code(), Some(1), "one run is invalid");
    snapshot("analyze", &place, &transcript(&output));
    let mut narrow = place.command(&["analyze", "results"]);
    narrow.env("COLUMNS", "60").env("LC_ALL", "C");
    let narrow = crate::place::finish(narrow);
    assert!(stdout(&narrow).is_ascii(), "the C locale has no other letters");
}

#[test]
fn analyze_prints_json() {
    let (place, results) = measured();
    let output = place.run(&["analyze", "results", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(analysis["runs"], results.runs.len());
    assert_eq!(analysis["treatments"].as_array().unwrap().len(), 4);
    assert!(analysis["treatments"][0]["responses"][0]["estimate"]["half_width"].is_number());
}

#[test]
fn the_report_is_written_anew() {
    let (place, _) = measured();
    let output = place.run(&["report", "results"]);
    assert!(stdout(&output).ends_with("\nreport: results/report.html\n"), "{}", stderr(&output));
    let page = fs::read_to_string(place.path("results/report.html")).unwrap();
    assert!(page.starts_with("<!") && page.trim_end().ends_with("</html>"));
    place.run(&["report", "results", "-o", "elsewhere.html"]);
    assert_eq!(fs::read_to_string(place.path("elsewhere.html")).unwrap(), page);
    let output = place.run(&["report", "results", "-o", "no/such/place.html"]);
    assert_eq!(output.status.code(), Some(2));
    snapshot("report_nowhere", &place, &transcript(&output));
    assert!(!place.list("results").iter().any(|name| name.contains("partial")));
}

#[test]
fn exports_are_files_or_text() {
    let (place, results) = measured();
    for (format, first) in [("csv", "results/export/"), ("parquet", "results/export/")] {
        let output = place.run(&["export", "results", "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let files = stdout(&output);
        assert!(files.lines().count() > 5, "{files}");
        for file in files.lines() {
            assert!(file.starts_with(first) && file.ends_with(&format!(".{format}")), "{file}");
            assert!(fs::metadata(place.path(file)).unwrap().len() > 0, "{file}");
        }
    }
    let parquet = fs::read(place.path("results/export/responses.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));

    let output = place.run(&["export", "results", "--format", "json", "-o", "out"]);
    assert_eq!(stdout(&output), "out/results.json\nout/samples.jsonl\n");
    let file: Value = serde_json::from_slice(&fs::read(place.path("out/results.json")).unwrap()).unwrap();
    let printed = place.run(&["export", "results", "--format", "json", "-o", "-"]);
    assert_eq!(serde_json::from_slice::<Value>(&printed.stdout).unwrap(), file);
    assert_eq!(file["runs"].as_array().unwrap().len(), results.runs.len());
    assert_eq!(file["interruptions"], 1);

    let output = place.run(&["export", "results", "--format", "markdown", "-o", "out"]);
    assert_eq!(stdout(&output), "out/results.md\n", "{}", stderr(&output));
    let printed = stdout(&place.run(&["export", "results", "--format", "markdown", "-o", "-"]));
    assert_eq!(printed, fs::read_to_string(place.path("out/results.md")).unwrap());
    assert!(printed.trim_end().ends_with("</details>"), "{printed}");
    let printed = stdout(&place.run(&["export", "results", "--format", "csv", "-o", "-"]));
    assert_eq!(printed, fs::read_to_string(place.path("results/export/responses.csv")).unwrap());
    let of_table: usize = results.runs.iter().map(|run| run.responses.len()).sum();
    assert_eq!(printed.lines().count(), of_table + 1);
    assert!(!place.path("-").exists());
}

#[test]
fn exports_that_cannot_be() {
    let (place, _) = measured();
    let output = place.run(&["export", "results", "--format", "parquet", "-o", "-"]);
    assert_eq!(output.status.code(), Some(2));
    snapshot("export_parquet_printed", &place, &transcript(&output));
    place.write("file", "");
    let output = place.run(&["export", "results", "--format", "csv", "-o", "file"]);
    assert_eq!(output.status.code(), Some(2));
    snapshot("export_into_a_file", &place, &transcript(&output));
}

#[test]
fn damaged_results_are_told_with_the_path() {
    let (place, _) = measured();
    let database = place.path("results/results.db");
    let mut bytes = fs::read(&database).unwrap();
    bytes[100..4096].fill(0xa5);
    fs::write(&database, bytes).unwrap();
    for command in
        [&["analyze", "results"][..], &["report", "results"], &["export", "results", "--format", "csv"]]
    {
        let output = place.run(command);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("`results/results.db` is damaged"), "{}", stderr(&output));
    }
}
