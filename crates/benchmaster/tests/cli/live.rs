//! What a study shows while it runs: lines for programs, lines on a terminal, names for shells.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::built_in::repository;
use crate::place::{PROGRAM, Place, finish, stderr, stdout};
use crate::terminal::on_a_terminal;

/// Two clients in processes of their own, each run long enough to be looked at.
const STUDY: &str = "[study]\nname = \"shown\"\nseed = 1\n[target]\nurl = \"nfs://{server}/export\"\n\
    [clients]\ncount = 2\n[factors.io_size]\nparameter = \"workload.read.io_size\"\n\
    levels = [\"1KiB\", \"4KiB\"]\n[design]\nreplicates = 2\n[workload.read]\nuse = \"random-read\"\n\
    file_size = \"64KiB\"\nduration = \"900ms\"\n";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

type Fields = BTreeMap<(String, String), String>;
type Seen = BTreeSet<(String, String)>;

/// The type or unit of each field, by event and path, as docs/watch.md has them.
fn documented() -> Fields {
    let text = fs::read_to_string(repository("docs/watch.md")).unwrap();
    let (_, text) = text.split_once("## JSON lines").unwrap();
    let text = text.split_once("\n## ").map_or(text, |(section, _)| section);
    let mut fields = BTreeMap::new();
    for row in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for event in cells[0].split(", ") {
            let key = (event.trim_matches('`').to_owned(), cells[1].trim_matches('`').to_owned());
            assert!(fields.insert(key, cells[2].trim_matches('`').to_owned()).is_none(), "{row}");
        }
    }
    fields
}

/// Every field has its place in the documentation, and every number its unit there or beside it.
fn check(fields: &Fields, seen: &mut Seen, (event, path): (&str, &str), value: &Value, beside: &Value) {
    let key = (event.to_owned(), path.to_owned());
    let kind = fields.get(&key).unwrap_or_else(|| panic!("docs/watch.md does not have {key:?}"));
    seen.insert(key);
    match value {
        Value::Number(_) if kind == "unit" => {
            let unit = beside["unit"].as_str().unwrap_or_else(|| panic!("{beside}"));
            assert!(["B/s", "ops/s", "ns", "count", "ratio"].contains(&unit), "{beside}");
        }
        Value::Number(_) => {
            assert!(!["", "text", "list", "object"].contains(&kind.as_str()), "{path}: {kind}")
        }
        Value::Array(items) => {
            items.iter().for_each(|item| check(fields, seen, (event, &format!("{path}[]")), item, value));
        }
        Value::Object(of) => {
            for (name, inner) in of {
                check(fields, seen, (event, &format!("{path}.{name}")), inner, value);
            }
        }
        Value::String(_) => assert!(["text", "list"].contains(&kind.as_str()), "{path}: {kind}"),
        Value::Null | Value::Bool(_) => {}
    }
}

#[test]
fn lines_for_programs_are_json_and_every_number_has_its_unit() {
    let place = Place::in_memory();
    place.write("shown.toml", STUDY);
    let output = place.run(&["run", "shown.toml", "--json-lines"]);
    let lines = lines(&stdout(&output));
    let (fields, mut seen) = (documented(), BTreeSet::new());
    for line in &lines {
        let event = line["event"].as_str().unwrap();
        for (name, value) in line.as_object().unwrap() {
            check(&fields, &mut seen, (event, name), value, line);
        }
    }
    let first = &lines[0];
    assert_eq!(
        (&first["event"], &first["runs_min"], &first["runs_done"]),
        (&"start".into(), &4.into(), &0.into())
    );
    assert_eq!((of(&lines, "run-begun").len(), of(&lines, "run-ended").len()), (4, 4));
    let [end] = of(&lines, "end")[..] else { panic!("one end") };
    assert_eq!(Some(end), lines.last());
    assert_eq!(end["exit_status"].as_i64(), output.status.code().map(i64::from));
    assert_eq!((&end["outcome"], &end["report"]), (&"complete".into(), &"results/shown/report.html".into()));
    let treatments = end["treatments"].as_array().unwrap();
    assert_eq!(treatments.len(), 2);
    for treatment in treatments {
        let responses = treatment["responses"].as_array().unwrap();
        let rate = responses.iter().find(|response| response["name"] == "read.operations").unwrap();
        assert!(rate["runs"] == 2 && rate["half_width"].is_number() && rate["unit"] == "ops/s", "{rate}");
    }
    // Rates are those of both clients, of the measured phase only.
    let progress = of(&lines, "progress");
    assert!(progress.iter().all(|line| line["clients"] == 2), "{progress:?}");
    let measured: Vec<_> = progress.iter().filter(|line| line["phase"] == "measure").collect();
    assert!(progress.iter().all(|line| line["phase"] == "measure" || line["rates"].is_null()));
    let rates =
        measured.iter().filter(|line| line["rates"]["mean_latency_s"].as_f64().is_some_and(|s| s > 0.0));
    assert!(rates.count() > 0, "{measured:?}");
    let fourth = of(&lines, "progress").into_iter().find(|line| line["run"] == 4).unwrap();
    assert_eq!((&fourth["precision"]["runs"], &fourth["precision"]["runs_max"]), (&1.into(), &2.into()));
    // What is for people is elsewhere, as are the progress and the summary.
    let text = stderr(&output);
    assert!(text.contains("[4/4] io_size=") && text.contains("report: results/shown/report.html"), "{text}");
    // All that is documented exists.
    let unseen: Vec<_> = fields.into_keys().filter(|key| !seen.contains(key)).collect();
    // No check has to fail.
    let rare = |(event, path): &(String, String)| event == "run-ended" && path.starts_with("checks[]");
    let missing: Vec<_> = unseen.iter().filter(|key| !rare(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_last_line_says_why_a_study_stopped() {
    let place = Place::new();
    place.write("shown.toml", &STUDY.replace("{server}", "127.0.0.1:1"));
    let output = place.run(&["run", "shown.toml", "--json-lines"]);
    let lines = lines(&stdout(&output));
    let end = lines.last().unwrap();
    assert_eq!((&end["event"], &end["outcome"]), (&"end".into(), &"failed".into()));
    assert!(end["error"].as_str().is_some_and(|error| stderr(&output).contains(error)), "{end}");
    assert_eq!(end["exit_status"].as_i64(), output.status.code().map(i64::from));
    let both = place.run(&["run", "shown.toml", "--json-lines", "--json"]);
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}

#[test]
fn a_terminal_gets_rates_of_the_moment_and_the_interval_so_far() {
    let place = Place::in_memory();
    place.write("shown.toml", STUDY);
    let (_, text) = on_a_terminal(place.command(&["run", "shown.toml"]));
    for part in [
        "4/4 runs, about ",
        "read, measure ",
        " of 0.9 s",
        "live: ",
        "ops/s, ",
        "B/s, mean latency ",
        ", 0 errors so far",
        "2 clients, slowest local-",
        "read.throughput: an interval needs 2 runs, 0 of 2 done",
        "read.throughput: an interval needs 2 runs, 1 of 2 done",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// What bash makes of a line whose last word is being typed.
fn completed(place: &Place, words: &[&str]) -> Vec<String> {
    let typed = words.last().unwrap();
    let script = format!(
        "set -eu; source <(benchmaster generate completions bash); complete -p benchmaster >&2; COMP_TYPE=9; \
         COMP_WORDS=(benchmaster {}); COMP_CWORD={}; _clap_complete_benchmaster benchmaster '{typed}' x; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len()
    );
    let mut bash = Command::new("bash");
    place.surround(&mut bash);
    let directory = std::path::Path::new(PROGRAM).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    bash.env("PATH", format!("{}:{path}", directory.display())).args(["--norc", "-c", &script]);
    let output = finish(bash);
    assert!(
        output.status.success() && stderr(&output).contains("-F _clap_complete_benchmaster"),
        "{output:?}"
    );
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_names() {
    let place = Place::new();
    for directory in ["results/quick-nfs", "results/quick-wan", "results/empty", "studies"] {
        fs::create_dir_all(place.path(directory)).unwrap();
    }
    for file in
        ["results/quick-nfs/results.db", "results/quick-wan/results.db", "studies/wan.toml", "own.toml"]
    {
        place.write(file, "");
    }
    let both = ["results/quick-nfs", "results/quick-wan"];
    assert_eq!(completed(&place, &["workloads", "show", "random-"]), ["random-read", "random-write"]);
    assert_eq!(completed(&place, &["analyze", "quick"]), both);
    assert_eq!(completed(&place, &["compare", both[0], "results/quick-w"]), [both[1]]);
    assert_eq!(completed(&place, &["results", "tag", "quick-n"]), [both[0]]);
    assert_eq!(completed(&place, &["run", "wan"]), ["studies/wan.toml"]);
    assert_eq!(completed(&place, &["plan", "ow"]), ["own.toml"]);
    assert_eq!(completed(&place, &["run", "own.toml", "-o", "quick-w"]), [both[1]]);
    // Paths where no name fits, commands and options as before.
    assert_eq!(completed(&place, &["watch", "tar"]), ["target/"]);
    assert_eq!(completed(&place, &["wat"]), ["watch"]);
    assert_eq!(completed(&place, &["run", "--json"]), ["--json", "--json-lines"]);
    assert_eq!(completed(&place, &["run", "--fail-on", "w"]), ["warning"]);
}
