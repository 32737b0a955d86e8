//! The list of metrics in `docs/metrics.md` is that of the code.
use std::collections::BTreeSet;
use std::path::Path;

use benchmaster_telemetry::derived::DERIVED;
use benchmaster_telemetry::sampling::{all_metrics, documentation, sampler_names};

const BEGIN: &str =
    "<!-- Made from the code: UPDATE_METRICS=1 cargo test -p benchmaster-telemetry --test it -->\n\n";
const END: &str = "<!-- End of what is made from the code. -->";

#[test]
fn the_metrics_in_the_documentation_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("docs/metrics.md has the mark where the list begins");
    let (kept, after) = rest.split_once(END).expect("docs/metrics.md has the mark where the list ends");
    if std::env::var_os("UPDATE_METRICS").is_some() {
        std::fs::write(&path, [before, BEGIN, &documentation(), END, after].concat()).unwrap();
        return;
    }
    assert!(
        kept == documentation(),
        "docs/metrics.md is stale; regenerate it with: UPDATE_METRICS=1 cargo test -p benchmaster-telemetry --test it"
    );
}

#[test]
fn every_metric_is_described_and_named_once() {
    let mut seen = BTreeSet::new();
    for (sampler, metric) in all_metrics() {
        assert!(seen.insert((sampler, metric.name)), "{sampler} {} is listed twice", metric.name);
        assert!(!metric.about.is_empty() && !metric.unit.is_empty(), "{sampler} {}", metric.name);
    }
    assert!(sampler_names().all(|sampler| all_metrics().any(|(of, _)| of == sampler)));
    assert!(
        DERIVED.iter().all(|[name, unit, about]| !name.is_empty() && !unit.is_empty() && !about.is_empty())
    );
}
