//! Clients in processes of their own: counted together, begun together, lost and left behind.

use benchmaster_record::phase::Phase;
use std::fs;
use std::time::{Duration, Instant};

use benchmaster_record::results::{SessionEnd, StudyResults};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::place::{Place, Running, finish, stderr, transcript};

/// Three clients, each in a process of its own, on the embedded server.
pub(crate) const FLEET: &str = r#"[study]
name = "fleet"
seed = 1

[target]
url = "nfs://{server}/export?version=4.1"

[clients]
count = 3

[run]
interval = "50ms"
baseline = false

[design]
replicates = 2

[workload.read]
use = "random-read"
file_size = "64KiB"
io_size = "4KiB"
duration = "300ms"
"#;

/// Processes of this program that are agents and belong to a controller.
fn agents(of: u32) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // Both are gone when the process ends meanwhile.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let parent =
            stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        let is_agent = command.split(|byte| *byte == 0).any(|argument| argument == b"agent");
        if parent == Some(of) && is_agent {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// Waits until all of them are gone.
fn gone(agents: &[Pid]) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while agents.iter().any(|pid| test_kill_process(*pid).is_ok()) {
        assert!(Instant::now() < deadline, "{agents:?} are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn check(results: &StudyResults, clients: u32) {
    for run in &results.runs {
        assert_eq!(run.failure, None);
        for recording in &run.recordings {
            assert_eq!(recording.agents.len() as u32, clients);
            assert_eq!(recording.agents.iter().map(|agent| agent.clients).sum::<u32>(), clients);
            let mut pids: Vec<_> = recording.agents.iter().map(|agent| agent.pid).collect();
            pids.dedup();
            assert_eq!(pids.len() as u32, clients, "each in a process of its own");
            let start = recording.start.expect("clients did something");
            assert!(start.server_spread_ns.is_some(), "the server saw them begin: {start:?}");
            let mut seen: Vec<_> = recording.workers.iter().map(|worker| worker.client).collect();
            seen.dedup();
            assert_eq!(seen, (0..clients).collect::<Vec<_>>());
            // What the server executed is what the clients counted.
            let rpc = recording.rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
            let used = run.server_use.iter().find(|used| used.workload == recording.workload).unwrap();
            let server = used.operations.iter().find(|operation| operation.operation == "READ").unwrap();
            assert_eq!(rpc.row("READ").unwrap().ops, server.ops);
            assert!(recording.samples.iter().any(|host| host.agent == "embedded server"));
        }
    }
}

#[test]
fn clients_are_processes_that_begin_together() {
    let place = Place::in_memory();
    place.write("fleet.toml", FLEET);
    let output = place.run(&["run", "fleet.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results/fleet");
    assert_eq!(results.runs.len(), 2);
    check(&results, 3);
    place.assert_nothing_left();
    let live = fs::read_to_string(place.path("results/fleet/live.json")).unwrap();
    assert!(live.contains("\"finished\""), "{live}");
}

#[test]
fn the_number_of_clients_and_where_they_run_can_be_factors() {
    let place = Place::in_memory();
    let factors = "[factors.clients]\nparameter = \"clients.count\"\nlevels = [1, 2]\n\
                   [factors.launcher]\nparameter = \"clients.launcher\"\nlevels = [\"threads\", \"local\"]\n[design]";
    place.write("fleet.toml", &FLEET.replace("[clients]\ncount = 3\n", "").replace("[design]", factors));
    let output = place.run(&["run", "fleet.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results/fleet");
    assert_eq!(results.runs.len(), 8);
    for run in &results.runs {
        let label = &results.study.treatments[run.key.treatment as usize].label;
        let expected = match (label.contains("clients=2"), label.contains("launcher=local")) {
            (true, true) => 2,
            _ => 1,
        };
        assert_eq!(run.recordings[0].agents.len(), expected, "{label}");
    }
    place.assert_nothing_left();
}

#[test]
fn clients_that_begin_later_end_with_the_others() {
    let place = Place::in_memory();
    let staggered =
        FLEET.replace("count = 3", "count = 3\nstagger = \"80ms\"").replace("\"300ms\"", "\"400ms\"");
    place.write("fleet.toml", &staggered);
    let output = place.run(&["run", "fleet.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    for run in place.results("results/fleet").runs {
        let recording = &run.recordings[0];
        assert_eq!(recording.start.unwrap().stagger_ns, 80_000_000);
        for worker in &recording.workers {
            assert!(worker.start_ns >= u64::from(worker.client) * 80_000_000, "{worker:?}");
            assert!(worker.end_ns >= 390_000_000, "{worker:?}");
        }
    }
}

#[test]
fn a_run_that_loses_a_client_is_tried_again() {
    let place = Place::in_memory();
    place.write("fleet.toml", &FLEET.replace("\"300ms\"", "\"2s\""));
    let mut run = Running::start(place.command(&["run", "fleet.toml"]));
    run.wait_for("clocks of 3 agents");
    let first = agents(run.child.id());
    assert_eq!(first.len(), 3);
    kill_process(first[1], Signal::KILL).unwrap();
    let (status, _, err) = run.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(err.contains("tried again"), "{err}");
    let results = place.results("results/fleet");
    let retried: Vec<_> = results.runs.iter().flat_map(|run| &run.retries).collect();
    assert_eq!(retried.len(), 1, "{retried:?}");
    assert!(retried[0].agent.as_deref().is_some_and(|agent| agent.contains("agent `")), "{retried:?}");
    check(&results, 3);
    gone(&first);
    place.assert_nothing_left();
}

#[test]
fn without_retries_the_run_fails_and_the_study_goes_on() {
    let place = Place::in_memory();
    let text =
        FLEET.replace("\"300ms\"", "\"2s\"").replace("baseline = false", "baseline = false\nretries = 0");
    place.write("fleet.toml", &text);
    let mut run = Running::start(place.command(&["run", "fleet.toml"]));
    run.wait_for("clocks of 3 agents");
    let first = agents(run.child.id());
    kill_process(first[0], Signal::KILL).unwrap();
    let (status, _, err) = run.end();
    assert_eq!(status.code(), Some(1), "{err}");
    let results = place.results("results/fleet");
    let failures: Vec<_> = results.runs.iter().map(|run| run.failure.is_some()).collect();
    assert_eq!(failures, [true, false], "{err}");
    assert!(results.runs[0].failure.as_deref().is_some_and(|reason| reason.contains("agent `")), "{err}");
    assert_eq!(results.sessions[0].ended.map(|(_, end)| end), Some(SessionEnd::Complete));
}

#[test]
fn nothing_is_left_of_a_controller_that_is_killed_or_stopped() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let place = Place::in_memory();
        place.write("fleet.toml", &FLEET.replace("\"300ms\"", "\"5s\""));
        let mut run = Running::start(place.command(&["run", "fleet.toml"]));
        run.wait_for("clocks of 3 agents");
        let agents = agents(run.child.id());
        assert_eq!(agents.len(), 3);
        run.signal(signal);
        run.end();
        gone(&agents);
        let output = finish(place.command(&["plan", "fleet.toml"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn what_several_processes_cannot_do_is_said() {
    let place = Place::new();
    let text = FLEET
        .replace("duration = \"300ms\"", "duration = \"300ms\"\nsharing = \"shared\"\nverify = true")
        .replace("random-read", "random-write");
    place.write("fleet.toml", &text);
    let output = place.run(&["run", "fleet.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("launcher = \"threads\""), "{}", stderr(&output));
    place.write("threads.toml", &text.replace("count = 3", "count = 3\nlauncher = \"threads\""));
    let output = place.run(&["run", "threads.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
}
