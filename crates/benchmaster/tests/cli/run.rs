//! Studies from start to end.

use std::fs;
use std::process::Stdio;

use benchmaster_record::results::Severity;
use serde_json::Value;

use crate::place::{Place, TINY, finish, snapshot, stderr, stdout, transcript};

/// Numbers, the columns' widths with them, and what depends on how busy the machine is.
fn without_numbers(text: &str) -> String {
    let (mut lines, mut in_table, mut in_answer) = (Vec::new(), false, false);
    for line in text.lines() {
        let number = |word: &str| {
            let digits = word.trim_end_matches(|c: char| c.is_alphabetic());
            !digits.is_empty() && digits.parse::<f64>().is_ok()
        };
        in_table = (in_table || line.starts_with("io_size  ")) && !line.is_empty();
        // On a busy host it may be that no difference is significant.
        if line.starts_with("write.throughput is ") {
            in_answer = true;
            lines.push("[ANSWER]".to_owned());
        }
        in_answer &= !line.is_empty();
        if in_answer {
            continue;
        }
        if !in_table {
            lines.push(line.to_owned());
            continue;
        }
        let line = match line.rsplit_once("  ") {
            Some((cells, validity)) if validity == "ok" || validity.ends_with(" warned") => {
                format!("{cells} [VALIDITY]")
            }
            _ => line.replace('─', ""),
        };
        let cell = |word: &str| match word {
            word if number(word) => "#".to_owned(),
            "kB/s" | "MB/s" | "GB/s" | "ns" | "µs" | "ms" => "[UNIT]".to_owned(),
            word => word.to_owned(),
        };
        let line = line.split_whitespace().map(cell).collect::<Vec<_>>().join(" ");
        // On a busy host an interval may reach below 0, and is then shown with its ends.
        let interval = regex_lite::Regex::new(r"\(\S+ to \S+\)").unwrap();
        lines.push(interval.replace_all(&line, "± #").into_owned());
    }
    lines.join("\n") + "\n"
}

/// Wide, so that lines do not break differently where paths and host names are longer.
fn wide(place: &Place, arguments: &[&str]) -> std::process::Output {
    let mut command = place.command(arguments);
    command.env("COLUMNS", "240");
    finish(command)
}

#[test]
fn a_study_is_run_and_nothing_is_measured_again() {
    let place = Place::tiny();
    let output = wide(&place, &["run", "tiny.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    snapshot("run", &place, &without_numbers(&transcript(&output)));
    assert_eq!(place.list("results/tiny"), [".lock", "live.json", "report.html", "results.db", "study.toml"]);
    assert_eq!(fs::read_to_string(place.path("results/tiny/study.toml")).unwrap(), TINY);
    place.assert_nothing_left();

    let first = place.results("results/tiny");
    assert_eq!((first.runs.len(), first.sessions.len(), first.interruptions()), (10, 1, 0));
    let again = wide(&place, &["run", "tiny.toml"]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(stderr(&again), "tiny: complete with 10 runs; nothing left to measure\n");
    assert_eq!(stdout(&again), stdout(&output), "the same summary");
    assert_eq!(place.results("results/tiny"), first, "not even a session is added");
    // The results can be asked for even when what was measured is gone.
    fs::remove_dir(place.path("target")).unwrap();
    assert_eq!(stdout(&place.run(&["run", "tiny.toml", "--json"])).lines().next(), Some("{"));
}

#[test]
fn json_goes_to_standard_output_and_progress_does_not() {
    let place = Place::tiny();
    let output = place.run(&["run", "tiny.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let analysis: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(analysis["runs"], 10);
    let keys: Vec<&String> = analysis.as_object().unwrap().keys().collect();
    snapshot("run_json_keys", &place, &format!("{keys:#?}"));
    let treatment = &analysis["treatments"][1];
    assert_eq!(treatment["label"], "io_size=4KiB");
    let response = &treatment["responses"][0];
    assert_eq!(response["name"], "write.throughput");
    assert_eq!(response["estimate"]["n"], 5);
    assert!(response["estimate"]["mean"].as_f64().unwrap() > 0.0);
    assert!(response["estimate"]["half_width"].as_f64().unwrap() > 0.0);
    assert!(stderr(&output).contains("[10/10] "), "{}", stderr(&output));
}

#[test]
fn warnings_end_with_1_when_that_is_asked_for() {
    let place = Place::tiny();
    // Too few operations for percentiles.
    place.write(
        "few.toml",
        &TINY.replace("duration = \"30ms\"", "bytes = \"16KiB\"").replace("\"tiny\"", "\"few\""),
    );
    assert_eq!(place.run(&["run", "few.toml"]).status.code(), Some(0));
    let output = place.run(&["run", "few.toml", "--fail-on", "warning"]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    // One without a warning ends with 0, and busy hosts give some.
    assert_eq!(place.run(&["run", "tiny.toml", "-q"]).status.code(), Some(0));
    let warned = place
        .results("results/tiny")
        .runs
        .iter()
        .any(|run| run.checks.iter().any(|check| check.severity == Severity::Warning));
    let output = place.run(&["run", "tiny.toml", "--fail-on", "warning"]);
    assert_eq!(output.status.code(), Some(i32::from(warned)), "{}", transcript(&output));
}

#[test]
fn quiet_is_quiet() {
    let place = Place::tiny();
    let output = place.run(&["run", "tiny.toml", "--quiet"]);
    assert_eq!(stderr(&output), "");
    assert!(stdout(&output).starts_with("tiny: "), "{}", stdout(&output));
}

#[test]
fn a_scratch_target_is_named_and_removed() {
    let place = Place::new();
    place.write("scratch.toml", &TINY.replace("\"target\"", "\"{scratch}\"").replace("= 5", "= 2"));
    let output = wide(&place, &["run", "scratch.toml"]);
    let scratch = place.path("tmp").join("benchmaster-scratch-");
    let begins = format!("measuring {}", scratch.display());
    let progress = stderr(&output);
    let line = progress.lines().find(|line| line.starts_with(&begins)).expect("where it measures");
    assert!(line.contains(", a temporary directory, on "), "{line}");
    assert!(stdout(&output).contains(&scratch.display().to_string()), "{}", stdout(&output));
    place.assert_nothing_left();
}

#[test]
fn replicates_are_added_until_intervals_are_tight_and_that_is_told() {
    let place = Place::new();
    let sequential = "replicates = { min = 2, max = 4, relative_half_width = 0.000001 }";
    place.write("more.toml", &TINY.replace("replicates = 5", sequential));
    let output = place.run(&["run", "more.toml"]);
    let progress = stderr(&output);
    assert!(progress.contains("tiny: 4+ runs; "), "{progress}");
    assert!(progress.contains("\n[1/4+] ") && progress.contains("\n[8/8] "), "{progress}");
    assert_eq!(place.results("results/tiny").runs.len(), 8);
}

#[test]
fn wrong_data_fail_the_run_and_the_study_goes_on() {
    let place = Place::new();
    let root = place.root().display();
    // Damages one block of the file, once; `fresh` files make the later runs sound again.
    let hook = format!(
        "test -e {root}/once || {{ touch {root}/once; find $BENCHMASTER_TARGET -type f -size +8k \
         -exec sh -c 'printf damage | dd of=$0 bs=1 seek=5000 conv=notrunc 2>/dev/null' {{}} \\; ; }}"
    );
    place.write(
        "verified.toml",
        &format!(
            "[study]\nname = 'verified'\n[target]\npath = 'target'\n[run]\nfilesets = 'fresh'\ncache_hook = \
             '''{hook}'''\n[design]\nreplicates = 3\n[workload.read]\nuse = 'sequential-read'\nfile_size = '64KiB'\n\
             io_size = '4KiB'\nduration = '500ms'\nverify = true\nclaims = 'cache'\n"
        ),
    );
    let output = place.run(&["run", "verified.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    assert!(place.path("once").exists(), "the hook was run");
    let results = place.results("results/verified");
    let failures: Vec<bool> = results.runs.iter().map(|run| run.failure.is_some()).collect();
    assert_eq!(failures, [true, false, false]);
    assert!(results.runs[0].responses.is_empty());
    let reason = results.runs[0].failure.as_deref().unwrap();
    assert!(
        reason.starts_with("workload `read`: wrong data were read: ") && reason.contains("offset 5000"),
        "{reason}"
    );
    let progress = stderr(&output);
    assert!(progress.contains(&format!("[1/3] verified, replicate 1: FAILED: {reason}")), "{progress}");
    assert!(
        stdout(&output).contains("FAILED: verified, replicate 1: workload `read`: wrong data"),
        "{}",
        stdout(&output)
    );
    let page = fs::read_to_string(place.path("results/verified/report.html")).unwrap();
    assert!(page.contains("wrong data were read"), "the report names the failure");
    // It stays so when nothing is measured any more.
    for command in [
        &["run", "verified.toml", "-q"][..],
        &["analyze", "results/verified"],
        &["report", "results/verified"],
    ] {
        assert_eq!(place.run(command).status.code(), Some(1), "{command:?}");
    }
}

#[test]
fn a_hook_that_fails_stops_the_study_and_says_what_is_kept() {
    let place = Place::new();
    let hook = "cache_hook = \"echo cannot mount; exit 3\"\ninterval";
    place.write("hook.toml", &TINY.replace("interval", hook));
    let output = place.run(&["run", "hook.toml", "-q"]);
    assert_eq!(output.status.code(), Some(1));
    snapshot("hook_fails", &place, &transcript(&output));
    place.assert_nothing_left();
}

#[test]
fn commands_work_from_another_directory_and_with_relative_paths() {
    let place = Place::tiny();
    fs::create_dir_all(place.path("a/b")).unwrap();
    fs::create_dir_all(place.path("a/b/target")).unwrap();
    let from = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.current_dir(place.path("a/b"));
        finish(command)
    };
    let output = from(&["run", "../../tiny.toml", "-o", "../results", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("../results/report.html\n"), "{}", stdout(&output));
    assert_eq!(place.list("a/b/target"), [""; 0]);
    assert_eq!(from(&["analyze", "../results"]).status.code(), Some(0));
    assert!(stdout(&from(&["report", "../results", "-o", "page.html"])).ends_with("\nreport: page.html\n"));
    assert!(place.path("a/b/page.html").exists());
    assert!(stdout(&from(&["export", "../results", "-f", "csv", "-o", "out"])).starts_with("out/"));
    assert!(place.path("a/b/out/responses.csv").exists());
    assert_eq!(from(&["plan", "../../tiny.toml"]).status.code(), Some(0));
    // By default results are below the current directory, named after the study.
    assert_eq!(from(&["run", "../../tiny.toml", "-q"]).status.code(), Some(0));
    assert_eq!(place.list("a/b"), ["out", "page.html", "results", "target"]);
    let printed = stdout(&from(&["quick", "target", "--print"]));
    assert!(printed.contains(&format!("path = \"{}\"", place.path("a/b/target").display())), "{printed}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::tiny();
    for arguments in [
        &["--help"][..],
        &["workloads"],
        &["generate", "schema"],
        &["generate", "man"],
        &["generate", "completions", "bash"],
        &["plan", "tiny.toml"],
        &["run", "tiny.toml"],
        &["analyze", "results/tiny"],
        &["export", "results/tiny", "--format", "json", "-o", "-"],
    ] {
        let mut child = place.command(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
    assert_eq!(place.results("results/tiny").runs.len(), 10);
}

#[test]
fn a_run_needs_nobody_to_read_its_progress() {
    let place = Place::tiny();
    let mut child = place.command(&["run", "tiny.toml"]).spawn().unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("10 of 10 runs finished"));

    // Not even open files.
    let mut closed = std::process::Command::new("sh");
    closed.args(["-c", &format!("exec {} run tiny.toml -o closed 0<&- 1>&- 2>&-", crate::place::PROGRAM)]);
    place.surround(&mut closed);
    closed.stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(finish(closed).status.code(), Some(0));
    assert_eq!(place.results("closed").runs.len(), 10);
    place.assert_nothing_left();
}
