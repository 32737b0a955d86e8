//! SIGINT, SIGTERM and SIGHUP.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::place::{Place, Running, TINY, ending_signals, finish, snapshot, stderr};

/// One short run, then one that would take a minute.
fn one_short_one_long() -> Place {
    let place = Place::in_memory();
    let study = TINY
        .replace("workload.write.io_size", "workload.write.duration")
        .replace("[\"1KiB\", \"4KiB\"]", "[\"30ms\", \"60s\"]")
        .replace("duration = \"30ms\"\n", "")
        .replace("replicates = 5", "replicates = 2\norder = \"listed\"");
    place.write("long.toml", &study);
    place
}

#[test]
fn a_signal_stops_the_study_which_can_be_resumed() {
    for signal in ending_signals() {
        let place = one_short_one_long();
        let mut running = Running::start(place.command(&["run", "long.toml"]));
        running.wait_for("[1/4]");
        std::thread::sleep(Duration::from_millis(300));
        let sent = Instant::now();
        running.signal(signal);
        let (status, summary, progress) = running.end();
        assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
        assert_eq!(status.code(), Some(130), "{progress}");
        assert!(summary.contains("1 of 4 runs finished"), "{summary}");
        assert!(place.path("results/tiny/report.html").exists());
        let last = progress.lines().last().unwrap_or_default();
        assert_eq!(
            last,
            "interrupted: the run in flight is lost, all others are stored; the same command resumes"
        );
        place.assert_nothing_left();
        let stored = place.results("results/tiny");
        assert_eq!(stored.runs.len(), 1);
        assert!(stored.sessions[0].lost_run.is_some(), "{:?}", stored.sessions[0].ended);

        let mut running = Running::start(place.command(&["run", "long.toml"]));
        running.wait_for("tiny: resuming after 1 of 4 runs, interrupted once; ");
        running.wait_for("results in");
        running.signal(signal);
        let (status, _, _) = running.end();
        assert_eq!(status.code(), Some(130));
        let resumed = place.results("results/tiny");
        assert_eq!(resumed.runs, stored.runs);
        assert_eq!((resumed.sessions.len(), resumed.interruptions()), (2, 1));
        place.assert_nothing_left();
    }
}

#[test]
fn a_study_is_not_resumed_on_another_target() {
    let place = one_short_one_long();
    let mut running = Running::start(place.command(&["run", "long.toml"]));
    running.wait_for("[1/4]");
    running.signal(Signal::INT);
    assert_eq!(running.end().0.code(), Some(130));
    let stored = place.results("results/tiny");
    // The same relative path from another current directory.
    fs::create_dir_all(place.path("elsewhere/target")).unwrap();
    let mut command = place.command(&["run", "../long.toml", "-o", "../results/tiny"]);
    command.current_dir(place.path("elsewhere"));
    let output = finish(command);
    assert_eq!(output.status.code(), Some(2));
    let (then, now) = (place.path("target"), place.path("elsewhere/target"));
    let text = stderr(&output);
    assert!(text.contains(&format!("finished runs measured `{}` on ", then.display())), "{text}");
    assert!(text.contains(&format!("and this would measure `{}` on ", now.display())), "{text}");
    assert_eq!(place.results("results/tiny"), stored);
    place.assert_nothing_left();
    assert_eq!(place.list("elsewhere/target"), [""; 0]);
}

#[test]
fn before_the_first_run_there_is_nothing_to_summarise() {
    let place = Place::in_memory();
    place.write("long.toml", &TINY.replace("duration = \"30ms\"", "duration = \"60s\""));
    let mut running = Running::start(place.command(&["run", "long.toml"]));
    running.wait_for("results in");
    running.signal(Signal::INT);
    let (status, summary, progress) = running.end();
    assert_eq!((status.code(), summary.as_str()), (Some(130), ""));
    snapshot("interrupted_before_the_first_run", &place, &progress);
    place.assert_nothing_left();
}

#[test]
fn preparation_is_stopped_as_well() {
    let place = Place::new();
    let large = TINY.replace("file_size = \"64KiB\"", "file_size = \"1GiB\"");
    place.write("large.toml", &large);
    let mut running = Running::start(place.command(&["run", "large.toml"]));
    running.wait_for("results in");
    std::thread::sleep(Duration::from_millis(100));
    let sent = Instant::now();
    running.signal(Signal::INT);
    let (status, _, progress) = running.end();
    assert_eq!(status.code(), Some(130), "{progress}");
    assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
    place.assert_nothing_left();
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let place = Place::in_memory();
    // The command of a hook is waited for, so that the first signal does not take effect at once.
    place.write("slow.toml", &TINY.replace("interval", "cache_hook = \"sleep 4\"\ninterval"));
    let mut running = Running::start(place.command(&["run", "slow.toml"]));
    running.wait_for("results in");
    std::thread::sleep(Duration::from_millis(300));
    let sent = Instant::now();
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(200));
    // It may be gone already, if it did not need to wait for the hook.
    if running.child.try_wait().unwrap().is_none() {
        running.signal(Signal::INT);
    }
    let status = running.child.wait().unwrap();
    assert!(sent.elapsed() < Duration::from_secs(3), "{:?}", sent.elapsed());
    assert_eq!(status.code(), Some(130));
}
