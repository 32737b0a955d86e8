//! `watch --prometheus`: what a scraper gets, and what `promtool` says of it, of the rules and of the dashboard.
//!
//! Without `promtool` (Debian: package `prometheus`) its tests are skipped, unless `BENCHMASTER_REQUIRE_PROMTOOL=1`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::{Place, Running, stderr, stdout, transcript};

const RECORDED: &str = include_str!("../../../telemetry/src/mountstats/samples/linux-6.1.txt");

fn place() -> Place {
    let place = Place::new();
    place.write("mountstats", RECORDED);
    place
}

fn printed(place: &Place) -> String {
    let output = place.run(&["watch", "--mountstats", "mountstats", "--prometheus=-"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    stdout(&output)
}

/// Sends a request, and gives status line, headers and body.
fn request(address: &str, text: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    (head.to_owned(), body.to_owned())
}

#[test]
fn a_scraper_gets_what_is_printed() {
    let place = place();
    let mut exporter =
        Running::start(place.command(&["watch", "--mountstats", "mountstats", "--prometheus=0"]));
    let line = exporter.wait_for("serving http://127.0.0.1:");
    let address = line.trim_start_matches("serving http://").trim_end_matches("/metrics");
    let get = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let (head, body) = request(address, &get);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"), "{head}");
    assert_eq!(body, printed(&place));
    assert!(body.contains("benchmaster_nfs_mounts 4\n"), "{body}");
    assert!(request(address, "GET / HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 404 "));
    assert!(request(address, "PUT /metrics HTTP/1.1\r\n\r\n").0.starts_with("HTTP/1.1 405 "));

    // Connections that send nothing do not keep others waiting.
    let idle: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(request(address, &get).0.starts_with("HTTP/1.1 200 "));
    drop(idle);
    // What cannot be read is reported, and the next scrape works.
    place.write("mountstats", "nonsense");
    assert!(request(address, &get).0.starts_with("HTTP/1.1 500 "));
    place.write("mountstats", "");
    assert_eq!(request(address, &get).1, printed(&place));
}

#[test]
fn what_cannot_be_exported_is_named() {
    let place = place();
    fs::create_dir(place.path("results")).unwrap();
    place.write("results/study.toml", "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("--prometheus={}", taken.local_addr().unwrap());
    for (arguments, reason) in [
        (&["watch", "results", "--prometheus"][..], "`results` is a study, and `--prometheus` is for mounts"),
        (&["watch", "--prometheus", "--once"], "cannot be used with"),
        (&["watch", "--prometheus", "--interval", "2s"], "cannot be used with"),
        (&["watch", "--prometheus=everywhere"], "write an address such as 127.0.0.1"),
        (&["watch", &taken], "choose another with `--prometheus=ADDRESS`"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/prometheus")
}

/// Runs `promtool` with an input; `None`, said aloud, where there is none.
fn promtool(arguments: &[&str], input: &str) -> Option<()> {
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(documents());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let required = std::env::var("BENCHMASTER_REQUIRE_PROMTOOL").as_deref() == Ok("1");
            assert!(!required, "promtool: {error}");
            eprintln!(
                "skipped: promtool is not installed ({error}); Debian has it in the package prometheus"
            );
            return None;
        }
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "promtool {arguments:?}: {}", transcript(&output));
    Some(())
}

#[test]
fn promtool_accepts_metrics_and_rules_and_the_rules_do_what_they_should() {
    let Some(()) = promtool(&["check", "metrics"], &printed(&place())) else { return };
    promtool(&["check", "rules", "benchmaster.rules.yml"], "");
    promtool(&["test", "rules", "benchmaster.rules.test.yml"], "");
}

/// Each expression of the dashboard as a rule, which `promtool` parses.
#[test]
fn promtool_understands_the_dashboard() {
    let text = fs::read_to_string(documents().join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    let panels = dashboard["panels"].as_array().unwrap();
    for (number, target) in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()).enumerate() {
        let expression = target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
        assert!(!target["legendFormat"].as_str().unwrap().is_empty());
        let quoted = serde_json::to_string(&expression).unwrap();
        rules += &format!("      - {{record: \"dashboard:{number}\", expr: {quoted}}}\n");
    }
    assert!(rules.contains("dashboard:15"), "{rules}");
    let place = Place::new();
    place.write("rules.yml", &rules);
    promtool(&["check", "rules", place.path("rules.yml").to_str().unwrap()], "");
}
