//! `explore` by separate processes.

use serde_json::Value;

use crate::place::{Place, stdout};

/// Histories of seeds, from a process of its own. All versions, restarts and failing disks are among them.
fn histories(place: &Place) -> Value {
    let output = place.run(&["explore", "--first", "40", "--seeds", "12", "--history", "--json"]);
    let mut found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    found["failures"].take()
}

#[test]
fn a_seed_has_the_same_history_in_every_process() {
    let place = Place::new();
    let (first, second) = (histories(&place), histories(&place));
    assert_eq!(first.as_array().map(Vec::len), Some(12));
    assert_eq!(first, second);
}
