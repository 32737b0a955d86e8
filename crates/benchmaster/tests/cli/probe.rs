//! The network probe as a command. Nothing here passes or fails by how fast the host is.

use std::net::{SocketAddr, TcpListener};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Running, snapshot, stderr, stdout};

/// Short, but long enough that every connection gets something on a busy host: one that got nothing has no ratio.
const SHORT: [&str; 14] = [
    "--flows",
    "1,2",
    "--duration",
    "200ms",
    "--warm-up",
    "10ms",
    "--sample-interval",
    "10ms",
    "--round-trips",
    "20",
    "--connections",
    "2",
    "-r",
    "2",
];

fn far_end(place: &Place, more: &[&str]) -> (Running, String) {
    let arguments = [&["probe", "network", "--serve"], more].concat();
    let mut running = Running::start(place.command(&arguments));
    let line = running.wait_for("far end of network probes at ");
    (running, line.rsplit(' ').next().unwrap().to_owned())
}

fn network<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["probe", "network"], &SHORT[..], more].concat()
}

#[test]
fn a_far_end_serves_until_it_is_told_to_stop() {
    let place = Place::new();
    for signal in [Signal::TERM, Signal::INT] {
        let (running, address) = far_end(&place, &[]);
        assert!(address.parse::<SocketAddr>().unwrap().ip().is_loopback());
        let output = place.run(&network(&[&address, "--json"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let probe: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!((&probe["target"], &probe["own_far_end"]), (&address.as_str().into(), &false.into()));
        assert_eq!(probe["throughput"].as_array().unwrap().len(), 4);
        assert_eq!(probe["throughput"][1]["repetitions"][0]["flows"].as_array().unwrap().len(), 2);
        assert!(probe["round_trip"]["mean_us"]["half_width"].as_f64().is_some(), "{probe}");
        assert!(probe["null_data"]["bytes_per_s"]["mean"].as_f64().unwrap() > 0.0);
        let sample = &probe["throughput"][0]["repetitions"][0]["flows"][0]["samples"][0];
        assert!(sample["cwnd_segments"].as_u64().unwrap() > 0 && sample["rtt_us"].is_u64(), "{sample}");

        running.signal(signal);
        let (status, out, _) = running.end();
        assert_eq!(status.code(), Some(0));
        let served: Value = serde_json::from_str(&out).unwrap();
        // Round trips, transfers of one and two flows both ways, two connections of null data; twice.
        assert_eq!((&served["tests"], &served["failed"]), (&(2 * (1 + 6 + 2)).into(), &0.into()));
    }
}

#[test]
fn the_table_has_every_figure_with_its_interval() {
    let place = Place::new();
    let output = place.run(&network(&[]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains(", a far end in this process: this host, no network\n"), "{text}");
    for (front, intervals) in [
        ("round trip of 64 bytes", 1),
        ("opening a connection", 1),
        ("to far end", 1),
        ("to client", 1),
        ("null data: 2 connections × 4 threads, replies of 64 KiB", 0),
        ("  throughput", 1),
        ("  requests", 1),
        ("  fairness", 1),
        ("  winner-loser ratio", 1),
        ("  request to reply", 1),
    ] {
        let line = text.lines().find(|line| line.starts_with(front));
        let line = line.unwrap_or_else(|| panic!("no line `{front}`:\n{text}"));
        assert_eq!(line.matches('±').count(), intervals, "{line}");
    }
    let end = "±: half the 95 % interval (Student-t) over 2 repetitions, each on new connections\n";
    assert!(text.ends_with(end), "{text}");
    let little = ["--flows", "0", "--connections", "0", "--duration", "30ms", "--round-trips", "20"];
    let mut plain = place.command(&[&["probe", "network"], &little[..]].concat());
    plain.env("LANG", "C");
    let text = stdout(&crate::place::finish(plain));
    assert!(text.is_ascii() && text.contains("+/-") && !text.contains("throughput"), "{text}");
}

#[test]
fn a_token_is_wanted_and_never_told() {
    let place = Place::new();
    place.write("token", "a token that nobody guesses\n");
    place.write("other", "another token of good length\n");
    place.write("short", "short\n");
    let (running, address) = far_end(&place, &["--token-file", "token"]);
    let with = |file: &str| place.run(&network(&[&address, "--token-file", file]));
    assert_eq!(with("token").status.code(), Some(0));
    for (file, text) in [
        ("other", "the token differs from the one it was started with"),
        ("short", "a token of 5 bytes"),
        ("absent", "cannot read the token from `absent`"),
    ] {
        let output = with(file);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
    let output = place.run(&network(&[&address]));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("it requires a token; give the file it was started with (--token-file)")
    );
    running.signal(Signal::TERM);
    let (_, out, err) = running.end();
    assert!(!(out + &err).contains("nobody guesses"));
}

#[test]
fn what_is_wrong_is_named() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (name, arguments, status) in [
        ("probe_remote", &["probe", "network", "--serve", "--listen", "0.0.0.0:0"][..], 2),
        ("probe_in_use", &["probe", "network", "--serve", "--listen", &address], 2),
        ("probe_without_port", &["probe", "network", "filer"], 2),
        ("probe_too_many", &["probe", "network", "--flows", "1,1000"], 2),
        ("probe_listen_alone", &["probe", "network", "--listen", "7800"], 2),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{name}");
        assert!(output.stdout.is_empty(), "{name}");
        snapshot(name, &place, &stderr(&output).replace(&address, "ADDRESS"));
    }
    drop(taken);
    for command in [&["probe", "network", &address][..], &["probe", "rpc", &address]] {
        let output = place.run(command);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).starts_with(&format!("error: cannot connect to {address}")));
    }
}

#[test]
fn any_nfs_server_can_be_called() {
    let place = Place::new();
    let mut server = Running::start(place.command(&["serve", "--listen", "0"]));
    let address = server.wait_for("serving ").rsplit(' ').next().unwrap().to_owned();
    let output = place.run(&["probe", "rpc", &address, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let probe: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&probe["version"], &probe["connect"]["n"], &probe["null"]["n"]),
        (&3.into(), &20.into(), &20.into())
    );
    let text = stdout(&place.run(&["probe", "rpc", &address, "-n", "10"]));
    assert!(text.starts_with(&format!("NFS version 3 at {address}\n")), "{text}");
    assert!(text.contains("\ncall of NULL"), "{text}");
    // It is no far end: it waits for calls.
    let output = place.run(&network(&[&address]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is not a probe server"), "{}", stderr(&output));
}
