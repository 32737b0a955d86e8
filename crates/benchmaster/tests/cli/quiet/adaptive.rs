//! Studies that decide by their results what to run.

use serde_json::Value;

use crate::built_in::repository;
use crate::place::{Place, stderr};

/// Four factors, of which the delay is all that matters much: it makes reads some forty times slower, on a busy host as well.
const STUDY: &str = r#"
[study]
name = "screened"

[target]
url = "nfs://{server}/export"

[network]
means = "relay"

[factors.version]
parameter = "target.version"
levels = ["3", "4.1"]

[factors.size]
parameter = "workload.read.io_size"
levels = ["4KiB", "8KiB"]

[factors.nconnect]
parameter = "target.nconnect"
levels = [1, 2]

[factors.delay]
parameter = "network.delay"
levels = ["1ms", "40ms"]

[design]
replicates = 2
response = "read.operations"
clear = ["delay", "version*delay", "size*nconnect"]
goal = "maximise read.operations"

[workload.read]
use = "random-read"
file_size = "64KiB"
duration = "200ms"
"#;

fn run(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[&["run", "study.toml", "-o", "results", "-q", "--json"], arguments].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// Every field of an answer is in docs/analysis-json.md.
fn documented(path: &str, value: &Value, docs: &str) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let field = format!("{path}.{name}");
                assert!(docs.contains(&format!("`{field}`")), "{field} is not documented");
                documented(&field, value, docs);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| documented(&format!("{path}[]"), item, docs)),
        _ => {}
    }
}

#[test]
#[ignore = "full tier: minutes"]
fn a_screening_adds_what_it_needs_and_confirms_the_best() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let found = run(&place, &["--screen"]);
    let answer = &found["adaptive"];
    assert_eq!(answer["state"], "finished", "{answer:#}");
    // The fraction D = ABC does not tell version × delay from size × nconnect, and both were asked for.
    assert!(answer["stages"].as_u64().unwrap() >= 1, "{answer:#}");
    let treatments = found["treatments"].as_array().unwrap().len();
    assert!((9..=16).contains(&treatments), "{treatments} treatments");
    let effects = answer["effects"].as_array().unwrap();
    let delay = effects.iter().find(|e| e["name"] == "delay").unwrap();
    assert_eq!(delay["significant"], true, "{delay:#}");
    assert!(delay["effect"].as_f64().unwrap() < 0.0);
    let best = &answer["best"];
    assert!(best["default"].as_str().unwrap().contains("delay=1ms"), "{best:#}");
    // Whatever else seemed to help, the longer delay cannot be part of it.
    assert!(best["best"].as_str().unwrap().contains("delay=1ms"), "{best:#}");
    let sentences = answer["sentences"].as_array().unwrap();
    assert!(sentences[0].as_str().unwrap().contains("all combinations would have taken 32"), "{sentences:?}");

    // The same command again finds nothing to do, and says the same.
    let again = run(&place, &["--screen"]);
    assert_eq!(again["adaptive"], *answer);
    let refused = place.run(&["run", "study.toml", "-o", "results"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("`screening` was true and is now false"), "{}", stderr(&refused));
    // So do the other commands, which know it from the results.
    let shown = place.run(&["analyze", "results"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("runs were needed"));
    let page = std::fs::read_to_string(place.path("results/report.html")).unwrap();
    assert!(page.contains("runs were needed"), "the report answers first");
}

#[test]
#[ignore = "full tier: minutes"]
fn a_goal_is_confirmed_without_a_screening_too() {
    let place = Place::new();
    let study = STUDY.replace("levels = [\"1ms\", \"40ms\"]", "levels = [\"40ms\", \"1ms\"]");
    place.write("study.toml", &study);
    let found = run(&place, &[]);
    let gain = &found["adaptive"]["best"]["gain"];
    assert_eq!(gain["confirmed"], true, "{:#}", found["adaptive"]);
    assert!(gain["ratio"].as_f64().unwrap() > 2.0, "{gain:#}");
    assert_eq!(gain["runs"], serde_json::json!([5, 5]));
    assert_eq!(found["treatments"].as_array().unwrap().len(), 16);
    let docs = std::fs::read_to_string(repository("docs/analysis-json.md")).unwrap();
    documented("adaptive", &found["adaptive"], &docs);
}
