//! Changes of a study on the command line: `--scale`, `--target`, `--set`.

use crate::place::{Place, TINY, stderr, transcript};

#[test]
fn what_was_run_is_what_is_stored_and_resumed() {
    let place = Place::in_memory();
    place.write("tiny.toml", TINY);
    let change = ["--scale", "0.5", "--set", "design.replicates=2", "--set", "workload.write.io_size=2KiB"];
    let arguments = [&["run", "tiny.toml", "--target", "nfs://{server}/export"], &change[..]].concat();
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(stderr(&output).contains("the study is scaled by 0.5"), "{}", stderr(&output));
    let results = place.results("results/tiny");
    assert_eq!(results.runs.len(), 4);
    assert!(results.study.text.contains("scale = 0.5"), "{}", results.study.text);
    assert!(results.study.text.contains("url = \"nfs://{server}/export\""), "{}", results.study.text);
    assert!(!results.study.text.contains("path ="), "{}", results.study.text);
    // The file of 64 KiB is half as large, and no phase becomes shorter than it was when that is less than a second.
    let filesets = results.runs.iter().flat_map(|run| &run.recordings).flat_map(|r| &r.filesets);
    assert_eq!(filesets.map(|fileset| fileset.bytes).collect::<Vec<_>>(), [32 << 10; 4]);

    let again = place.run(&arguments);
    assert_eq!(again.status.code(), Some(0), "{}", transcript(&again));
    assert_eq!(place.results("results/tiny").runs.len(), 4, "all runs are done");
    let without = place.run(&["run", "tiny.toml"]);
    assert_eq!(without.status.code(), Some(2), "results of another study: {}", transcript(&without));
}

#[test]
fn a_change_that_has_no_place_is_refused_before_anything_is_made() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    for (change, says) in [
        (&["--set", "study"][..], "`study` is not of the form KEY=VALUE"),
        (&["--set", "a b=1"], "`a b` is not the path of a parameter"),
        (&["--set", "study.name.first=x"], "`name` is a value"),
        (&["--set", "workload.write.size=1"], "unknown key `size`"),
        (&["--scale", "0"], "a study cannot be scaled by 0"),
        (&["--target", "nfs://"], "`nfs://` names no server"),
    ] {
        let output = place.run(&[&["run", "tiny.toml"], change].concat());
        assert_eq!(output.status.code(), Some(2), "{change:?}: {}", transcript(&output));
        assert!(stderr(&output).contains(says), "{change:?}: {}", stderr(&output));
    }
    assert_eq!(place.list("."), ["target", "tiny.toml", "tmp"]);
    let output = place.run(&["plan", "--levels", "2,2", "--scale", "0.1"]);
    assert_eq!(output.status.code(), Some(2), "a scale needs a study: {}", transcript(&output));
}
