//! Scenarios in which client or server once broke a promise.

use std::fs;
use std::path::Path;

use benchmaster_explore::{Scenario, run};

#[test]
fn what_failed_once_does_not_fail_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let scenario: Scenario = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let outcome = run(&scenario).unwrap();
        assert_eq!(outcome.violation, None, "{}", path.display());
        count += 1;
    }
    assert!(count >= 5, "{count} scenarios");
}
