//! `results`: what was measured and kept.

use benchmaster_testkit as synthetic;

use crate::place::{Place, stderr, stdout, transcript};

fn made(place: &Place, name: &str) {
    synthetic::write(&place.path(&format!("results/{name}")), &synthetic::study_results(7, 4, 2)).unwrap();
}

#[test]
fn results_are_listed_shown_tagged_and_removed() {
    let place = Place::new();
    let output = place.run(&["results", "list"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(stdout(&output).contains("0 results in results"), "{}", transcript(&output));
    for name in ["a", "b", "c"] {
        made(&place, name);
    }
    std::fs::write(place.path("results/c/notes.txt"), "mine").unwrap();
    std::fs::create_dir(place.path("results/other")).unwrap();
    let output = place.run(&["results", "tag", "results/a", "before the upgrade"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let text = stdout(&place.run(&["results", "list"]));
    assert!(text.contains("3 results in results") && text.contains("before the upgrade"), "{text}");
    assert!(!text.contains("other"), "{text}");
    let found: serde_json::Value =
        serde_json::from_str(&stdout(&place.run(&["results", "list", "--json"]))).unwrap();
    assert_eq!(found[0]["outline"]["runs"], 8, "{found:#}");
    let shown = place.run(&["results", "show", "results/a"]);
    assert!(stdout(&shown).contains("8 of 8 runs"), "{}", transcript(&shown));

    // Nothing is removed until that is confirmed, and then only what was chosen and is ours.
    let output = place.run(&["results", "clean", "--older-than", "1h"]);
    assert!(stderr(&output).contains("--yes removes them"), "{}", transcript(&output));
    assert_eq!(place.list("results"), ["a", "b", "c", "other"]);
    let output = place.run(&["results", "clean", "--older-than", "1h", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert_eq!(place.list("results"), ["a", "c", "other"], "{}", transcript(&output));
    assert_eq!(place.list("results/c"), ["notes.txt"]);
    // A tag protects from choices, and not from being named.
    let output = place.run(&["results", "clean", "results/a", "--yes"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert_eq!(place.list("results"), ["c", "other"]);
    for wrong in [&["results", "clean"][..], &["results", "show", "nowhere"], &["results", "list", "nowhere"]]
    {
        let output = place.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    }
}
