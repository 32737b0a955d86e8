//! `explore STUDY`: Linux' client and server in the lab on virtual time, under faults.

use serde_json::{Value, json};

use crate::place::{Place, stderr, stdout};

const LOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/explore-locks.toml");
const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/explore-lab.toml");

/// What was found, with the exit status; `None` where there is no kernel with virtual time, which is said.
fn explore(place: &Place, arguments: &[&str]) -> Option<(i32, Value)> {
    let output = place.run(&[&["explore", "--json"], arguments].concat());
    let said = stderr(&output);
    let absent = ["lab kernel build", "lab setup", "does not work here"];
    if absent.iter().any(|sign| said.contains(sign)) {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_LAB").as_deref(), Ok("1"), "{said}");
        eprintln!("skipped: no virtual time: {said}");
        return None;
    }
    let found = serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {said}"));
    Some((output.status.code().unwrap(), found))
}

#[test]
fn what_cannot_be_explored_is_named() {
    let place = Place::new();
    let refused = |arguments: &[&str]| {
        let output = place.run(&[&["explore"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let real = refused(&[STUDY, "--set", "lab.time=real"]);
    assert!(real.contains("only studies on virtual time repeat exactly"), "{real}");
    let levels = "factors.sync={ parameter = \"lab.sync\", levels = [true, false] }";
    let several = refused(&[STUDY, "--set", levels]);
    assert!(several.contains("one treatment"), "{several}");
    let unchanged = refused(&["--set", "lab.sync=false"]);
    assert!(unchanged.contains("no study"), "{unchanged}");
    place.write("old.json", "{}");
    let drawn = refused(&["old.json", "--seeds", "3"]);
    assert!(drawn.contains("`--seeds`"), "{drawn}");
    let fault = json!({ "at": { "secs": 1, "nanos": 0 }, "kind": { "cut": { "client": 7 } } });
    let study = std::fs::read_to_string(STUDY).unwrap();
    let unknown = json!({ "study": study, "seed": 1, "hasty": false, "faults": [fault], "more": 1 });
    place.write("unknown.json", &unknown.to_string());
    let unknown = refused(&["unknown.json"]);
    assert!(unknown.contains("unknown field `more`"), "{unknown}");
}

#[test]
#[ignore = "full tier: machines"]
fn a_seed_has_the_same_history_each_time() {
    let place = Place::new();
    let arguments = [STUDY, "--first", "40", "--seeds", "3", "--history"];
    let Some((status, mut first)) = explore(&place, &arguments) else { return };
    assert_eq!((status, first["failed"].as_u64()), (0, Some(0)), "{first}");
    let (_, mut second) = explore(&place, &arguments).unwrap();
    assert_eq!(first["failures"].as_array().map(Vec::len), Some(3));
    assert_eq!(first["failures"].take(), second["failures"].take());
}

#[test]
#[ignore = "full tier: machines"]
fn a_server_that_acknowledges_too_early_is_found_and_its_trial_repeats() {
    let place = Place::new();
    let arguments = [STUDY, "--seeds", "3", "--faults", "1", "--set", "lab.sync=false"];
    let Some((status, found)) = explore(&place, &arguments) else { return };
    assert!(status == 1 && found["failed"].as_u64() >= Some(1), "{found}");
    let failure = &found["failures"][0];
    assert!(failure["what"].as_str().unwrap().contains("acknowledged"), "{failure}");
    let (status, again) = explore(&place, &[failure["file"].as_str().unwrap()]).unwrap();
    assert_eq!((status, again["failed"].as_u64()), (1, Some(1)), "{again}");
    assert_eq!(again["failures"][0]["fingerprint"], failure["fingerprint"]);
}

/// A client that cannot be reached for longer than its lease holds a lock; another gets it, writes, and gives it back a moment after
/// the first is there again.
#[test]
#[ignore = "full tier: machines"]
fn a_client_that_takes_a_lost_lock_again_is_found() {
    let place = Place::new();
    let study = std::fs::read_to_string(LOCKS).unwrap();
    let (start, end) = (study.find("    { choose").unwrap(), study.find("    { op = \"write\"").unwrap());
    let study = format!("{}    {{ pause = \"14s\" }},\n{}", &study[..start], &study[end..]);
    let away = json!({ "partition": { "client": 1, "length": { "secs": 28, "nanos": 200_000_000 } } });
    let fault = json!({ "at": { "secs": 2, "nanos": 0 }, "kind": away });
    for (recovers, expected) in [("0", 0), ("1", 1)] {
        let study = study.replace("echo 0 >", &format!("echo {recovers} >"));
        let trial = json!({ "study": study, "seed": 7, "hasty": false, "faults": [fault] });
        place.write("trial.json", &trial.to_string());
        let Some((status, found)) = explore(&place, &["trial.json"]) else { return };
        assert_eq!((status, found["failed"].as_i64()), (expected, Some(expected.into())), "{found}");
        if expected == 1 {
            assert!(found["failures"][0]["what"].as_str().unwrap().contains("two holders"), "{found}");
        }
    }
}
