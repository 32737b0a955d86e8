//! The JSON Schema kept in the repository is that of the code, and covers what studies and documentation write.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use benchmaster_builtin::{BUILT_IN, WorkloadSpec};
use benchmaster_study::schema::{schema, schema_text};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_schema_in_the_repository_is_that_of_the_code() {
    let path = root().join("docs/study-schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, schema_text()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == schema_text(),
        "docs/study-schema.json is stale; make it anew with: UPDATE_SCHEMA=1 cargo test -p benchmaster-study schema"
    );
}

/// All names of properties anywhere in the schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                names.extend(properties.keys().cloned());
            }
            object.values().for_each(|value| properties(value, names));
        }
        Value::Array(array) => array.iter().for_each(|value| properties(value, names)),
        _ => {}
    }
}

fn known() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    properties(&schema(), &mut names);
    names
}

/// The keys of a study that are not names given by its author.
fn keys(value: &toml::Value, path: &str, found: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            let named = ["workload", "factors", "server.parameters"].contains(&path)
                || path.ends_with(".filesets")
                || (path.starts_with("factors.") && path.contains(".levels"));
            for (key, below) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if !named {
                    found.push((path.clone(), key.clone()));
                }
                keys(below, &path, found);
            }
        }
        toml::Value::Array(array) => array.iter().for_each(|value| keys(value, path, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_the_studies_is_in_the_schema() {
    let known = known();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("studies")).unwrap() {
        let path = entry.unwrap().path();
        let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let mut found = Vec::new();
        keys(&toml::Value::Table(table), "", &mut found);
        for (place, key) in found {
            assert!(known.contains(&key), "{}: `{place}` is not in the schema", path.display());
            count += 1;
        }
    }
    assert!(count > 50, "only {count} keys were looked at");
}

#[test]
fn everything_in_the_schema_is_described() {
    fn walk(schema: &Value, path: &str, bare: &mut Vec<String>) {
        match schema {
            Value::Object(object) => {
                if let Some(Value::Object(properties)) = object.get("properties") {
                    for (name, property) in properties {
                        let described =
                            ["description", "$ref", "const"].iter().any(|key| property.get(key).is_some());
                        if !described {
                            bare.push(format!("{path}.{name}"));
                        }
                    }
                }
                object.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}"), bare));
            }
            Value::Array(array) => array.iter().for_each(|value| walk(value, path, bare)),
            _ => {}
        }
    }
    let mut bare = Vec::new();
    walk(&schema(), "", &mut bare);
    assert_eq!(bare, Vec::<String>::new());
}

fn documentation() -> String {
    let read = |name: &str| std::fs::read_to_string(root().join("docs").join(name)).unwrap();
    read("study-file.md") + &read("workloads.md")
}

#[test]
fn every_parameter_is_in_the_documentation() {
    let document = documentation();
    let mentioned = |name: &String| {
        [format!("`{name}`"), format!("`[{name}]`")].iter().any(|text| document.contains(text))
    };
    let missing: Vec<_> = known().into_iter().filter(|name| !mentioned(name)).collect();
    assert!(missing.is_empty(), "docs/study-file.md and docs/workloads.md do not mention {missing:?}");
}

/// The documentation has a table for every built-in workload, with all parameters and their right defaults.
#[test]
fn the_tables_of_the_built_in_workloads_are_complete_and_right() {
    let document = documentation();
    let read = |name: &str, text: &str| {
        let table = toml::de::ValueDeserializer::parse(text).unwrap();
        WorkloadSpec::deserialize(name, table).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    for name in BUILT_IN.iter().map(|built_in| built_in.name).filter(|name| *name != "custom") {
        let section = document
            .split("\n### ")
            .find(|section| section.lines().next().unwrap().contains(&format!("`{name}`")))
            .unwrap_or_else(|| panic!("there is no section on {name}"));
        let section = section.split("\n## ").next().unwrap();
        let rows: BTreeMap<_, _> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
            .map(|(key, rest)| (key, rest.split(" |").next().unwrap()))
            .collect();
        let variants = schema()["$defs"]["WorkloadSpec"]["oneOf"].as_array().unwrap().clone();
        let variant = variants.iter().find(|variant| variant["properties"]["use"]["const"] == name).unwrap();
        let parameters: BTreeSet<_> =
            variant["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let listed: BTreeSet<_> = rows.keys().copied().chain(["use"]).collect();
        assert_eq!(listed, parameters, "the table of {name}");

        for (key, default) in rows {
            if let Some(value) = default.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
                assert_eq!(
                    read(name, &format!("{{ {key} = {value} }}")),
                    read(name, "{}"),
                    "{name}: {key} = {value}"
                );
            }
        }
    }
}
