//! What CI reads: the exit status, JUnit, annotations, and the workflows of `docs/ci.md`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::compare::{level, results, write};
use crate::place::{PROGRAM, Place, Running, finish, stderr, stdout, transcript};

const COMPARE: [&str; 5] = ["compare", "a", "b", "--response", "write.throughput"];

/// Results `a` and `b`: one cell of four became slower by a tenth, and the others are the same.
fn slower() -> Place {
    let place = Place::new();
    write(&place, "a", &results(5, level));
    write(&place, "b", &results(5, |cell, run| level(cell, run) * if cell == 2 { 0.9 } else { 1.0 }));
    place
}

fn compare(place: &Place, more: &[&str]) -> std::process::Output {
    place.run(&[&COMPARE[..], more].concat())
}

#[test]
fn a_regression_fails_and_is_shown() {
    let place = slower();
    let output =
        compare(&place, &["--fail-on", "regression", "--junit", "junit.xml", "--annotations", "github"]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    let commands: Vec<_> =
        stdout(&output).lines().filter(|line| line.starts_with("::")).map(str::to_owned).collect();
    // The cell, and with it the mean over the cells.
    let [command, _] = &commands[..] else { panic!("{commands:?}") };
    assert!(command.starts_with("::error title=write.throughput%2C "), "{command}");
    assert!(command.contains("::Changed for the worse: by -10.0 %25"), "{command}");
    let junit = fs::read_to_string(place.path("junit.xml")).unwrap();
    assert!(
        junit.contains(r#"<testsuite name="write.throughput" tests="5" failures="2" errors="0" skipped="#),
        "{junit}"
    );
    assert_eq!(
        junit.matches("<failure type=\"regression\" message=\"Changed for the worse: by -10.0 %").count(),
        1
    );

    // What does not fail is a warning; JSON stays JSON.
    let output = compare(&place, &["--fail-on", "never", "--annotations", "github", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(serde_json::from_str::<Value>(&stdout(&output)).is_ok());
    assert!(stderr(&output).starts_with("::warning title=write.throughput%2C "), "{}", stderr(&output));

    let output = compare(&place, &["--fail-on", "worse", "--annotations", "gitlab"]);
    assert_eq!(output.status.code(), Some(1), "the old word: {}", transcript(&output));
    let report = fs::read_to_string(place.path("gl-code-quality-report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report.as_array().unwrap().len(), report[0]["severity"].as_str()), (2, Some("major")));
    assert_eq!(report[0]["location"]["path"], "b");
}

#[test]
fn warnings_of_checks_fail_a_comparison_if_asked() {
    let place = Place::new();
    write(&place, "a", &results(5, level));
    let mut warned = results(5, |cell, run| level(cell, run + 2));
    let check = benchmaster_testkit::study_results(7, 4, 5).runs.into_iter().flat_map(|run| run.checks);
    let check =
        check.into_iter().find(|check| check.severity == benchmaster_record::results::Severity::Warning);
    warned.runs[3].checks.extend(check);
    assert_eq!(warned.runs[3].checks.len(), 1);
    write(&place, "b", &warned);
    assert_eq!(compare(&place, &[]).status.code(), Some(0));
    assert_eq!(compare(&place, &["--fail-on", "regression"]).status.code(), Some(0));
    let output = compare(&place, &["--fail-on", "regression,warning", "--annotations", "github"]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    // Operations failed in both; a check warned in one of them.
    let errors = |side| stdout(&output).matches(&format!("\n::error title=checks of {side}%2C ")).count();
    assert_eq!((errors("A"), errors("B")), (1, 2), "{}", stdout(&output));
}

#[test]
fn what_cannot_fail_or_be_written_is_refused() {
    let place = slower();
    let status = |arguments: &[&str]| {
        let output = place.run(arguments);
        (output.status.code(), stderr(&output))
    };
    let (code, told) = status(&["quick", "target", "--fail-on", "regression"]);
    assert!(code == Some(2) && told.contains("`--against TARGET`"), "{told}");
    let (code, told) = status(&["run", "x.toml", "--fail-on", "regression"]);
    assert!(code == Some(2) && told.contains("[possible values: invalid, warning]"), "{told}");
    let output = compare(&place, &["--junit", "nowhere/junit.xml"]);
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(stderr(&output).contains("cannot write `nowhere/junit.xml`"), "{}", stderr(&output));
}

/// The scripts of a workflow's steps, as YAML has them: blocks after `run: |` or `- |`.
fn scripts(yaml: &str) -> Vec<String> {
    let mut scripts: Vec<String> = Vec::new();
    let mut block: Option<usize> = None;
    for line in yaml.lines() {
        let depth = line.len() - line.trim_start().len();
        if block.is_some_and(|above| depth > above) {
            *scripts.last_mut().unwrap() += &format!("{}\n", line.trim_start());
            continue;
        }
        block = (line.ends_with("run: |") || line.trim() == "- |").then_some(depth);
        scripts.extend(block.map(|_| String::new()));
    }
    scripts
}

/// The workflow of GitHub, with short measurements; the server before and after the change are two embedded ones.
#[test]
#[ignore = "full tier: a minute"]
fn the_workflows_of_the_page_work() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci.md")).unwrap();
    let yaml: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let [github, gitlab] = yaml[..] else { panic!("{} workflows", yaml.len()) };
    let [_, start, measure, summary] = &scripts(github)[..] else { panic!("{:?}", scripts(github)) };
    // GitLab's is the same but for the annotations, and GitLab shows no summary.
    assert_eq!(scripts(gitlab), [start.clone(), measure.replace("github", "gitlab")]);

    let place = Place::in_memory();
    let servers = [(); 2].map(|()| {
        let mut server = Running::start(place.command(&["serve", "--listen", "127.0.0.1:0"]));
        let line = server.wait_for("serving /export on ");
        (server, format!("nfs://{}/export", line.rsplit(' ').next().unwrap()))
    });
    assert_eq!(start.lines().count(), servers.len());
    fs::create_dir(place.path("bin")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, place.path("bin/benchmaster")).unwrap();
    let step = |script: &str| {
        let mut command = Command::new("bash");
        place.surround(&mut command);
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("BASELINE", &servers[0].1).env("CHANGE", &servers[1].1);
        command.env("GITHUB_STEP_SUMMARY", place.path("summary.md")).args(["-euo", "pipefail", "-c", script]);
        finish(command)
    };
    let output = step(&measure.replace("--against", "--duration 20ms --against"));
    // So short a measurement may find a difference.
    let failed = match output.status.code() {
        Some(code @ (0 | 1)) => code == 1,
        _ => panic!("{}", transcript(&output)),
    };
    assert_eq!(stdout(&output).contains("\n::error title="), failed, "{}", transcript(&output));
    let junit = fs::read_to_string(place.path("junit.xml")).unwrap();
    assert_eq!(
        junit.matches("<testsuite ").count(),
        8 + 1,
        "a suite for each workload, one for checks: {junit}"
    );
    assert_eq!(junit.contains("<failure "), failed, "{junit}");
    assert!(place.path("results/quick/report.html").is_file());
    let output = step(summary);
    assert!(output.status.success(), "{}", transcript(&output));
    assert!(fs::read_to_string(place.path("summary.md")).unwrap().contains("sequential-write"));
}
