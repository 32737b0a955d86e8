//! What is built in: workloads, schema, completions, manual pages, study files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::place::{Place, snapshot, stderr, stdout, transcript};

pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn workloads_are_listed() {
    let place = Place::new();
    snapshot("workloads", &place, &transcript(&place.run(&["workloads"])));
    let list: Value = serde_json::from_slice(&place.run(&["workloads", "--json"]).stdout).unwrap();
    for workload in list.as_array().unwrap() {
        for key in ["name", "summary", "source"] {
            assert!(workload[key].as_str().is_some_and(|text| !text.is_empty()), "{workload}");
        }
    }
}

#[test]
fn a_workload_shown_is_a_workload_of_a_study() {
    let place = Place::new();
    let list: Value = serde_json::from_slice(&place.run(&["workloads", "--json"]).stdout).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap()).collect();
    let study = "[study]\nname = \"shown\"\n[target]\npath = \"target\"\n[design]\nreplicates = 5\n";
    let mut plans = Vec::new();
    let names: Vec<_> = names.into_iter().filter(|name| *name != "custom").collect();
    for name in &names {
        for arguments in [&["workloads", "show", name][..], &["workloads", "show", name, "--full"]] {
            let shown = place.run(arguments);
            assert!(shown.status.success(), "{}", stderr(&shown));
            let shown = stdout(&shown);
            assert!(shown.starts_with(&format!("[workload.{name}]\nuse = ")), "{shown}");
            place.write("shown.toml", &format!("{study}{shown}"));
            let plan = place.run(&["plan", "shown.toml", "--json"]);
            assert!(plan.status.success(), "{name}: {}\n{shown}", stderr(&plan));
            plans.push(serde_json::from_slice::<Value>(&plan.stdout).unwrap());
        }
        // In full it is the same workload, so the plan differs only in what it is called.
        let [.., short, full] = plans.as_slice() else { panic!("two plans") };
        assert_eq!(short["estimate"], full["estimate"], "{name}");
        assert_eq!(full["workloads"][0]["use_name"], "custom", "{name}");
    }
    assert_eq!(plans.len(), 2 * names.len(), "each short and in full");
}

#[test]
fn workloads_shown_look_so() {
    let place = Place::new();
    snapshot("show_random_read", &place, &transcript(&place.run(&["workloads", "show", "random-read"])));
    snapshot(
        "show_metadata_full",
        &place,
        &transcript(&place.run(&["workloads", "show", "metadata", "--full"])),
    );
    for (name, workload) in [("show_unknown", "random-raed"), ("show_custom", "custom")] {
        let output = place.run(&["workloads", "show", workload]);
        assert_eq!(output.status.code(), Some(2));
        snapshot(name, &place, &transcript(&output));
    }
}

#[test]
fn the_schema_is_the_one_in_the_documentation() {
    let place = Place::new();
    let output = place.run(&["generate", "schema"]);
    assert!(output.status.success());
    assert_eq!(
        stdout(&output).trim_end(),
        fs::read_to_string(repository("docs/study-schema.json")).unwrap().trim_end()
    );
}

#[test]
fn there_are_completions_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = place.run(&["generate", "completions", shell]);
        assert!(output.status.success(), "{shell}");
        let text = stdout(&output);
        assert!(text.contains("BENCHMASTER_COMPLETE"), "{shell}: {text}");
    }
    assert_eq!(place.run(&["generate", "completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn there_are_manual_pages() {
    let place = Place::new();
    let page = stdout(&place.run(&["generate", "man"]));
    assert!(page.contains(".TH benchmaster 1") && page.contains(".SH SUBCOMMANDS"), "{page}");
    let page = stdout(&place.run(&["generate", "man", "run"]));
    assert!(page.contains(".TH benchmaster-run 1") && page.contains("kill \\-9"), "{page}");
    let output = place.run(&["generate", "man", "rum"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown command `rum`; available: run, quick"), "{}", stderr(&output));
}

#[test]
fn the_quickstart_is_planned_as_documented() {
    let place = Place::new();
    let study = repository("studies/quickstart.toml").canonicalize().unwrap();
    let study = study.to_str().unwrap();
    snapshot("plan_quickstart", &place, &transcript(&place.run(&["plan", study])));
    let plan: Value = serde_json::from_slice(&place.run(&["plan", study, "--json"]).stdout).unwrap();
    snapshot("plan_quickstart_json", &place, &serde_json::to_string_pretty(&shape(&plan)).unwrap());
    assert_eq!(plan["runs"].as_array().unwrap().len(), 40);
    assert_eq!(place.list("."), ["target", "tmp"], "planning creates nothing");
}

#[test]
fn every_study_file_of_the_repository_can_be_planned() {
    let place = Place::new();
    let mut seen = 0;
    for entry in fs::read_dir(repository("studies")).unwrap() {
        let path = entry.unwrap().path();
        let output = place.run(&["plan", path.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {}", path.display(), stderr(&output));
        seen += 1;
    }
    assert!(seen >= 9, "{seen}");
}

/// The first element of each list, and values as they are: the keys and kinds of values of a document.
pub(crate) fn shape(value: &Value) -> Value {
    match value {
        Value::Array(list) => Value::Array(list.iter().take(1).map(shape).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), shape(value))).collect())
        }
        other => other.clone(),
    }
}
