//! Load curves of the embedded server behind a slow wire.

use serde_json::Value;

use crate::place::{Place, stderr};

/// Every read takes 10 ms, so that four workers can ask for no more than 400/s.
const STUDY: &str = r#"
[study]
name = "curve"

[target]
url = "nfs://{server}/export"

[network]
means = "relay"
delay = "5ms"

[load]
workload = "read"
curve = "open"
from = "20/s"
to = "1280/s"
factor = 4
resolution = 0.5
max_replicates = 3

[design]
replicates = 2

[workload.read]
use = "random-read"
io_size = "4KiB"
file_size = "64KiB"
workers = 4
duration = "500ms"
"#;

fn run(place: &Place, study: &str) -> Value {
    place.write("study.toml", study);
    let output = place.run(&["run", "study.toml", "-o", "results", "-q", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

fn loads(curve: &Value) -> Vec<f64> {
    curve["points"].as_array().unwrap().iter().map(|point| point["load"].as_f64().unwrap()).collect()
}

#[test]
#[ignore = "full tier: minutes"]
fn workers_that_cannot_ask_for_more_end_an_open_curve_and_are_not_the_servers_limit() {
    let place = Place::new();
    let found = run(&place, STUDY);
    let curve = &found["load"]["curves"][0];
    assert_eq!(curve["end"]["reason"], "client", "{curve:#}");
    let loads = loads(curve);
    // The rise, and nothing in between: what the client cannot do is not searched.
    assert!([20.0, 80.0, 320.0, 1280.0].starts_with(&loads), "{curve:#}");
    for point in curve["points"].as_array().unwrap() {
        assert_eq!(point["requested"], point["load"]);
        let achieved = point["achieved"]["mean"].as_f64().unwrap();
        assert!(achieved > 0.0 && achieved <= 1.1 * 400.0, "{point:#}");
    }
    // The other commands say so as well.
    let shown = place.run(&["analyze", "results"]);
    // Wherever lines are broken.
    let text = String::from_utf8_lossy(&shown.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Load curve of read") && text.contains("not what is measured"), "{text}");
    let page = std::fs::read_to_string(place.path("results/report.html")).unwrap();
    assert!(page.contains("load-achieved") && page.contains("load-response-time"));
    // What is complete is not run again.
    let before = found["runs"].clone();
    assert_eq!(run(&place, STUDY)["runs"], before);
}

#[test]
#[ignore = "full tier: minutes"]
fn a_closed_curve_rises_with_the_workers_for_every_level_of_a_factor() {
    let place = Place::new();
    let load = "curve = \"closed\"\nfrom = 1\nto = 4\nfactor = 2";
    let study = STUDY.replace("curve = \"open\"\nfrom = \"20/s\"\nto = \"1280/s\"\nfactor = 4", load);
    let study = study.replace("workers = 4\n", "");
    let factor = "[factors.version]\nparameter = \"target.version\"\nlevels = [\"3\", \"4.1\"]\n\n[design]";
    let found = run(&place, &study.replace("[design]", factor));
    let curves = found["load"]["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 2);
    for (curve, label) in curves.iter().zip(["version=3", "version=4.1"]) {
        assert_eq!((curve["label"].as_str(), curve["end"]["reason"].as_str()), (Some(label), Some("range")));
        assert_eq!(loads(curve), [1.0, 2.0, 4.0], "{curve:#}");
        assert!(curve["points"][0]["requested"].is_null());
        let rate = |point: usize| curve["points"][point]["achieved"]["mean"].as_f64().unwrap();
        assert!(rate(2) > 2.0 * rate(0), "{curve:#}");
    }
}
