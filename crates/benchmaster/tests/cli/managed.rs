//! Servers that steps of the study set up, and mounts that the study makes.

use std::fs;

use rustix::process::{Signal, geteuid};

use crate::place::{Place, Running, finish, snapshot, stderr, transcript};

/// Whether this is root. Says so, and fails where it is required, when not.
fn root() -> bool {
    if !geteuid().is_root() {
        assert!(std::env::var_os("BENCHMASTER_REQUIRE_ROOT").is_none(), "mounting needs root");
        eprintln!("skipped: mounting needs root");
    }
    geteuid().is_root()
}

/// A "server" of directories of this host: its file system is a tmpfs that a step makes, its export a bind mount.
fn study(place: &Place) -> String {
    let root = place.root().display();
    format!(
        r#"[study]
name = "managed"

[server]
kind = "managed"

[server.parameters]
size = "8m"
log = "{root}/log"

[[server.steps]]
name = "begin"
when = "study"
command = "echo begin >> {{log}}"

[[server.steps]]
name = "mkfs"
command = "mkdir -p {root}/srv; if mountpoint -q {root}/srv; then umount {root}/srv; fi; mount -t tmpfs -o size={{size}} none {root}/srv && echo \"mkfs $BENCHMASTER_TREATMENT\" >> {{log}}"

[[server.steps]]
name = "each"
when = "run"
on = "clients"
command = "echo run $BENCHMASTER_REPLICATE >> {{log}}"

[[server.teardown]]
name = "end"
command = "echo end >> {{log}}; if mountpoint -q {root}/srv; then umount {root}/srv; fi"

[target]
mount = {{ source = "{root}/srv", type = "none", options = "bind", path = "{root}/mnt" }}

[run]
cache = "remount"
interval = "30ms"

[factors.size]
parameter = "server.parameters.size"
levels = ["8m", "9m"]

[design]
replicates = 2
order = "listed"

[workload.write]
use = "sequential-write"
file_size = "64KiB"
duration = "60ms"
claims = "cache"
"#
    )
}

fn mounts(place: &Place) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let root = place.root().display().to_string();
    table.lines().filter(|line| line.contains(&root)).map(str::to_owned).collect()
}

#[test]
#[ignore = "full tier: mounts, as root"]
fn steps_and_mounts_are_done_when_they_are_due_and_undone() {
    if !root() {
        return;
    }
    for clients in ["", "[clients]\ncount = 2\n"] {
        let place = Place::new();
        place.write("managed.toml", &(study(&place) + clients));
        let output = place.run(&["run", "managed.toml"]);
        assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
        let log = fs::read_to_string(place.path("log")).unwrap();
        assert_eq!(
            log.lines().collect::<Vec<_>>(),
            [
                "begin",
                "mkfs size=8m",
                "run 1",
                "mkfs size=9m",
                "run 1",
                "mkfs size=8m",
                "run 2",
                "mkfs size=9m",
                "run 2",
                "end"
            ]
        );
        assert_eq!(mounts(&place), [""; 0]);
        let results = place.results("results/managed");
        let mkfs: Vec<_> = results.hooks.iter().filter(|hook| hook.step == "server.mkfs").collect();
        assert_eq!(mkfs.len(), 4);
        assert!(mkfs.iter().all(|hook| hook.succeeded && hook.command.contains("mount -t tmpfs -o size=")));
        assert!(mkfs[0].command.contains("size=8m") && mkfs[1].command.contains("size=9m"));
        assert_eq!(results.hooks.iter().filter(|hook| hook.step == "clients.mount").count(), 4);
        assert_eq!(results.hooks.iter().filter(|hook| hook.step == "clients.unmount").count(), 4);
        for run in &results.runs {
            let cache = &run.recordings[0].cache;
            assert!(cache.requested.contains("umount") && cache.done.contains("umount"), "{cache:?}");
        }
    }
}

#[test]
#[ignore = "full tier: mounts, as root"]
fn a_step_that_fails_stops_the_study_and_nothing_stays_mounted() {
    if !root() {
        return;
    }
    let place = Place::new();
    let bad =
        study(&place).replace("echo run $BENCHMASTER_REPLICATE >> {log}", "echo no such device >&2; exit 5");
    place.write("managed.toml", &bad);
    let output = place.run(&["run", "managed.toml", "-q"]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    let text = stderr(&output);
    assert!(text.contains("the step `clients.each` failed on controller (exit status 5)"), "{text}");
    assert!(text.contains("no such device"), "{text}");
    assert_eq!(mounts(&place), [""; 0]);
    let log = fs::read_to_string(place.path("log")).unwrap();
    assert!(log.ends_with("end\n"), "what steps set up is undone: {log}");
}

#[test]
#[ignore = "full tier: mounts, as root"]
fn a_session_after_a_kill_unmounts_what_that_left() {
    if !root() {
        return;
    }
    let place = Place::new();
    place.write("managed.toml", &study(&place));
    let mut run = Running::start(place.command(&["run", "managed.toml"]));
    run.wait_for("[1/4]");
    run.signal(Signal::KILL);
    run.end();
    let output = finish(place.command(&["run", "managed.toml"]));
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert_eq!(place.results("results/managed").runs.len(), 4);
    assert_eq!(mounts(&place), [""; 0]);
}

#[test]
#[ignore = "full tier: mounts, as root"]
fn what_is_mounted_already_stays_as_it_is() {
    if !root() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("mnt")).unwrap();
    let mnt = place.path("mnt");
    let mount = |arguments: &[&str]| {
        std::process::Command::new("sh").arg("-c").arg(arguments.join(" ")).status().unwrap().success()
    };
    assert!(mount(&["mount -t tmpfs none", mnt.to_str().unwrap()]));
    place.write("managed.toml", &study(&place));
    let output = place.run(&["run", "managed.toml", "-q"]);
    let kept = mounts(&place);
    assert!(mount(&["umount", mnt.to_str().unwrap()]), "{}", transcript(&output));
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    assert!(stderr(&output).contains("is already a mount point"), "{}", stderr(&output));
    assert_eq!(kept.iter().filter(|line| line.contains("/mnt ")).count(), 1, "{kept:?}");
}

#[test]
fn the_plan_shows_every_command() {
    let place = Place::new();
    place.write("managed.toml", &study(&place));
    let text = transcript(&place.run(&["plan", "managed.toml"]));
    let text = text.replace(&place.root().display().to_string(), "[ROOT]");
    snapshot("plan_managed", &place, &text);
}
