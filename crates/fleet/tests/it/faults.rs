//! What goes wrong: processes that die, hang or are not what they should be, full disks, and stops.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_fleet::controller::{FailureKind, Fleet, FleetConfig, FleetError};
use benchmaster_fleet::job::{CollectSpec, HookSpec, Job, Side};
use benchmaster_record::phase::Phase;
use benchmaster_workload::target::Target;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    DEADLINE, NEVER, config, is_alive, is_root, is_there, job, launch, meets, names, parent, reads, tree,
    wait_for,
};

/// A moment of a run, by name of its phase; `hook`: while the hook before the measured phase runs.
const MOMENTS: [&str; 3] = ["hook", "warm-up", "measure"];

/// A job that is long in a phase.
fn long_in(phase: &str, file: &Path) -> Job {
    let job = match phase {
        "warm-up" => reads("1000s", "1s"),
        _ => reads("0s", "1000s"),
    };
    let command = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display());
    let slow = HookSpec { command, timeout: Duration::from_secs(1000), environment: Vec::new() };
    Job { hook: (phase == "hook").then_some(slow), ..job }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

pub(crate) fn a_killed_agent_fails_its_run_alone() {
    MOMENTS.into_iter().for_each(|moment| one_is_killed(moment, launch));
}

pub(crate) fn a_killed_agent_behind_an_aggregator_is_named() {
    MOMENTS.into_iter().for_each(|moment| one_is_killed(moment, tree));
}

fn one_is_killed(moment: &str, start: fn(u32, u32) -> Fleet) {
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("pid");
    let target = Target::from(place.path());
    let mut fleet = start(4, 4);
    let pids: Vec<u32> = fleet.members().iter().map(|member| member.pid).collect();
    fleet.open("data", &target, "killed").unwrap();
    let mut killed = None;
    let result = fleet.perform("data", &long_in(moment, &file), None, &NEVER, &mut |progress| {
        let there = if moment == "hook" { file.exists() } else { progress.total.phase.name() == moment };
        if there && killed.is_none() {
            signal(pids[2], Signal::KILL);
            killed = Some(Instant::now());
        }
    });
    assert!(killed.unwrap().elapsed() < DEADLINE);
    let Err(FleetError::Lost { agent, reason }) = result else { panic!("{moment}: {result:?}") };
    assert_eq!(agent, "local-3");
    assert!(reason.contains("SIGKILL"), "{reason}");
    assert!(matches!(fleet.begin_run("data", true), Err(FleetError::Lost { .. })), "it is of no more use");
    drop(fleet);
    wait_for("nothing is left", || !pids.iter().any(|pid| is_there(*pid)));
    if moment == "hook" {
        let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        wait_for("the hook is killed", || !is_alive(pid));
    }
    // The next fleet of the session finds what is left and goes on.
    let mut next = launch(2, 2);
    next.open("data", &target, "killed").unwrap();
    next.perform("data", &reads("0s", "50ms"), None, &NEVER, &mut |_| {}).unwrap();
    next.remove().unwrap();
    assert!(names(place.path()).is_empty());
}

/// It has no result then, and its agents end with what they do.
pub(crate) fn a_killed_aggregator_is_named_and_its_agents_end() {
    for moment in MOMENTS {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("pid");
        let mut fleet = tree(5, 5);
        let pids: Vec<u32> = fleet.members().iter().map(|member| member.pid).collect();
        let aggregator = parent(pids[if moment == "hook" { 0 } else { 2 }]);
        fleet.open("data", &Target::from(place.path()), "killed").unwrap();
        let mut killed = false;
        let result = fleet.perform("data", &long_in(moment, &file), None, &NEVER, &mut |progress| {
            let there = if moment == "hook" { file.exists() } else { progress.total.phase.name() == moment };
            if there && !killed {
                signal(aggregator, Signal::KILL);
                killed = true;
            }
        });
        let Err(FleetError::Lost { agent, reason }) = result else { panic!("{moment}: {result:?}") };
        let expected = if moment == "hook" { "1 (local-1 to local-2)" } else { "2 (local-3 to local-4)" };
        assert_eq!(agent, format!("aggregator-{expected}"));
        assert!(reason.contains("SIGKILL"), "{reason}");
        assert!(
            matches!(fleet.begin_run("data", true), Err(FleetError::Lost { .. })),
            "it is of no more use"
        );
        drop(fleet);
        wait_for("nothing is left", || !pids.iter().any(|pid| is_alive(*pid)));
        if moment == "hook" {
            let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
            wait_for("the hook is killed", || !is_alive(pid));
        }
    }
}

pub(crate) fn a_lost_agent_holds_no_others_up_at_a_meeting() {
    one_is_lost_at_a_meeting(launch(4, 4));
    one_is_lost_at_a_meeting(tree(4, 4));
}

fn one_is_lost_at_a_meeting(mut fleet: Fleet) {
    let place = tempfile::tempdir().unwrap();
    let target = Target::from(place.path());
    let pids: Vec<u32> = fleet.members().iter().map(|member| member.pid).collect();
    fleet.open("data", &target, "meeting").unwrap();
    let mut killed = None;
    let result = fleet.perform("data", &meets(u64::MAX), None, &NEVER, &mut |progress| {
        if progress.total.phase == Phase::Measure && killed.is_none() {
            signal(pids[1], Signal::KILL);
            killed = Some(Instant::now());
        }
    });
    assert!(killed.unwrap().elapsed() < DEADLINE);
    let Err(FleetError::Lost { agent, .. }) = result else { panic!("{result:?}") };
    assert_eq!(agent, "local-2");
    drop(fleet);
    wait_for("nothing is left", || !pids.iter().any(|pid| is_there(*pid)));
}

pub(crate) fn a_stopped_process_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let config = FleetConfig { patience: Duration::from_secs(1), ..config(3, 3) };
    let mut fleet = Fleet::launch(&config, &NEVER, &mut |_| {}).unwrap();
    let pids: Vec<u32> = fleet.members().iter().map(|member| member.pid).collect();
    fleet.open("data", &Target::from(place.path()), "hangs").unwrap();
    let mut done = false;
    let result = fleet.perform("data", &reads("0s", "1000s"), None, &NEVER, &mut |progress| {
        if progress.total.phase == Phase::Measure && !done {
            signal(pids[1], Signal::STOP);
            done = true;
        }
    });
    let Err(FleetError::Lost { agent, reason }) = result else { panic!("{result:?}") };
    assert_eq!(agent, "local-2");
    assert!(reason.contains("no sign of life for 1 s"), "{reason}");
    fleet.end().unwrap();
    assert!(!pids.into_iter().any(is_there), "one that is stopped is killed");
}

/// Agents hear of the controller although they themselves give signs of life all the time.
pub(crate) fn agents_at_work_for_longer_than_the_patience_hear_of_their_controller() {
    let place = tempfile::tempdir().unwrap();
    let config = FleetConfig { patience: Duration::from_millis(1500), ..config(2, 2) };
    let mut fleet = Fleet::launch(&config, &NEVER, &mut |_| {}).unwrap();
    fleet.open("data", &Target::from(place.path()), "long").unwrap();
    fleet.perform("data", &reads("0s", "4s"), None, &NEVER, &mut |_| {}).unwrap();
    fleet.remove().unwrap();
    fleet.end().unwrap();
}

pub(crate) fn what_is_no_agent_is_refused() {
    let attempt = |binary: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let config = FleetConfig { binary: binary.into(), arguments, ..config(2, 2) };
        Fleet::launch(&config, &NEVER, &mut |_| {}).unwrap_err().to_string()
    };
    let error = attempt("sh", &["-c", "echo no such library >&2; exit 127"]);
    assert!(error.contains("`local-1` could not be started: it ended with exit status 127"), "{error}");
    assert!(error.contains("no such library"), "{error}");
    let error = attempt("/nowhere/benchmaster", &[]);
    assert!(error.contains("/nowhere/benchmaster"), "{error}");
    let error = attempt("echo", &["Welcome to this host"]);
    assert!(error.contains("`local-1` could not be started"), "{error}");
    // It never says anything.
    let silent = FleetConfig {
        binary: "sleep".into(),
        arguments: vec!["1000".into()],
        launch_timeout: Duration::from_millis(300),
        ..config(1, 1)
    };
    let error = Fleet::launch(&silent, &NEVER, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("did not answer within 0.3 s"), "{error}");
    let error = Fleet::launch(&config(3, 2), &NEVER, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("3 agents for 2 clients"), "{error}");
    let stopped = AtomicBool::new(true);
    let result = Fleet::launch(&config(2, 2), &stopped, &mut |_| {});
    assert!(matches!(result, Err(FleetError::Stopped)), "{result:?}");
}

/// Unmounts at the end.
struct Mounted(tempfile::TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

pub(crate) fn a_full_disk_is_named() {
    if !is_root() {
        return;
    }
    let small = Mounted(tempfile::tempdir().unwrap());
    let mount = ["-t", "tmpfs", "-o", "size=2m", "none"];
    assert!(Command::new("mount").args(mount).arg(small.0.path()).status().unwrap().success());
    let mut fleet = launch(3, 3);
    fleet.open("small", &Target::from(small.0.path()), "full").unwrap();
    let large = job(r#"
        until = { iterations = 1 }
        [filesets.data]
        files = 1
        size = "16MiB"
        [[groups]]
        name = "g"
        flow = [{ op = "stat", file = "own" }]
    "#);
    let result = fleet.perform("small", &large, None, &NEVER, &mut |_| {});
    let Err(FleetError::Job { agent, text, kind }) = result else { panic!("{result:?}") };
    assert!(agent.starts_with("local-"), "{agent}");
    assert!(text.contains("needs") && text.contains("free"), "{text}");
    assert_eq!(kind, FailureKind::Job);
    // The fleet is as good as before.
    fleet.begin_run("small", true).unwrap();
    let small_job = reads("0s", "50ms");
    fleet.perform("small", &small_job, None, &NEVER, &mut |_| {}).unwrap();
    fleet.remove().unwrap();
    fleet.end().unwrap();
}

pub(crate) fn a_run_stops_in_every_phase() {
    stops(launch(3, 3));
    stops(tree(3, 3));
}

fn stops(mut fleet: Fleet) {
    let place = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fleet.open("data", &Target::from(place.path()), "stops").unwrap();
    for moment in MOMENTS {
        let file = outside.path().join(moment);
        let stop = AtomicBool::new(false);
        let mut stopped = None;
        let result = fleet.perform("data", &long_in(moment, &file), None, &stop, &mut |progress| {
            let there = if moment == "hook" { file.exists() } else { progress.total.phase.name() == moment };
            if there && stopped.is_none() {
                stop.store(true, Ordering::Relaxed);
                stopped = Some(Instant::now());
            }
        });
        assert!(matches!(result, Err(FleetError::Stopped)), "{moment}: {result:?}");
        assert!(stopped.unwrap().elapsed() < DEADLINE, "{moment}");
        fleet.begin_run("data", false).unwrap();
        fleet.perform("data", &reads("0s", "50ms"), None, &NEVER, &mut |_| {}).unwrap();
    }
    fleet.remove().unwrap();
    assert!(names(place.path()).is_empty());
}

/// A controller that measures until it is killed and prints its processes.
pub(crate) fn controller(directory: &Path) {
    let mut fleet = launch(4, 4);
    fleet.open("data", &Target::from(directory), "left").unwrap();
    let pids: Vec<String> = fleet.members().iter().map(|member| member.pid.to_string()).collect();
    let file = directory.join("command");
    let command = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display());
    let spec = CollectSpec { name: "c".into(), command, on: Side::Clients, limit: 1000 };
    let job = Job { collect: vec![spec], ..reads("0s", "1000s") };
    let mut printed = false;
    let result = fleet.perform("data", &job, None, &NEVER, &mut |progress| {
        if progress.total.phase == Phase::Measure && file.exists() && !printed {
            let command = std::fs::read_to_string(&file).unwrap();
            println!("{} {}", pids.join(" "), command.trim());
            std::io::stdout().flush().unwrap();
            printed = true;
        }
    });
    panic!("{result:?}");
}

pub(crate) fn nothing_is_left_of_a_killed_controller() {
    let place = tempfile::tempdir().unwrap();
    let mut controller = Command::new(std::env::current_exe().unwrap())
        .arg("controller")
        .arg(place.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(controller.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pids: Vec<u32> = line.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 5, "four agents and a command: {line}");
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    controller.kill().unwrap();
    controller.wait().unwrap();
    for pid in pids {
        wait_for("nothing is left", || !is_alive(pid));
    }
}
