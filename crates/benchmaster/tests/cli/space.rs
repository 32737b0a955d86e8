//! No space, no permission.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::place::{PROGRAM, Place, TINY, finish, snapshot, stderr, stdout, transcript};

/// A file system in memory of a given size, mounted while the value lives.
struct Mounted(PathBuf);

impl Mounted {
    /// `None`, with a line that says so, where this process may not mount.
    fn new(path: PathBuf, options: &str) -> Option<Self> {
        fs::create_dir_all(&path).unwrap();
        if mount(&["-t", "tmpfs", "-o", options, "tmpfs"], &path) {
            return Some(Self(path));
        }
        eprintln!("skipped: mounting a tmpfs is not allowed here (it needs root)");
        None
    }

    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.0));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).stderr(Stdio::null()).status();
    }
}

fn mount(arguments: &[&str], path: &Path) -> bool {
    let status = Command::new("mount").args(arguments).arg(path).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// It stopped for want of space, naming the database, with some runs finished; given space, the same command ends well.
fn stopped_and_resumed(place: &Place, directory: &str, full: &Output, give_space: impl FnOnce()) {
    assert_eq!(full.status.code(), Some(1), "{}", transcript(full));
    let text = stderr(full);
    assert!(text.contains(&format!("{directory}/results.db`")), "{text}");
    assert!(text.contains("kept in `") && text.contains("the same command continues from there"), "{text}");
    assert_eq!(place.list("target"), [""; 0], "the target is clean");
    let kept = place.results(directory).runs;
    assert!(!kept.is_empty() && kept.len() < 10, "{} runs", kept.len());
    assert!(text.contains(&format!("note: {} finished run", kept.len())), "{text}");
    give_space();
    let resumed = place.run(&["run", "tiny.toml", "-o", directory]);
    assert_eq!(resumed.status.code(), Some(0), "{}", transcript(&resumed));
    let results = place.results(directory);
    assert_eq!(results.runs.len(), 10);
    assert!(results.runs.starts_with(&kept), "what was finished is untouched");
    assert_eq!(results.interruptions(), 1);
}

#[test]
fn a_full_disk_below_the_results_stops_the_study() {
    let place = Place::tiny();
    let Some(disk) = Mounted::new(place.path("disk"), "size=768k") else { return };
    let full = place.run(&["run", "tiny.toml", "-o", "disk/results"]);
    assert!(stderr(&full).contains("no space left for `disk/results/results.db`"), "{}", stderr(&full));
    stopped_and_resumed(&place, "disk/results", &full, || disk.remount("size=64m"));
}

#[test]
fn a_limit_on_the_size_of_files_stops_the_study() {
    let place = Place::tiny();
    let mut limited = Command::new("sh");
    // 512 KiB: enough for the tables and a run or two.
    let script = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" run tiny.toml -o results";
    limited.args(["-c", script, PROGRAM]);
    place.surround(&mut limited);
    let full = finish(limited);
    stopped_and_resumed(&place, "results", &full, || ());
}

#[test]
fn a_report_without_space_does_not_cost_the_summary() {
    let place = Place::tiny();
    assert_eq!(place.run(&["run", "tiny.toml", "-q"]).status.code(), Some(0));
    fs::remove_file(place.path("results/tiny/report.html")).unwrap();
    // Neither can a directory be replaced by the report.
    fs::create_dir(place.path("results/tiny/report.html")).unwrap();
    let output = place.run(&["run", "tiny.toml", "-q"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("10 of 10 runs finished"), "{}", stdout(&output));
    assert!(stderr(&output).contains("cannot write `results/tiny/report.html`: "), "{}", stderr(&output));
    assert_eq!(place.list("results/tiny"), [".lock", "live.json", "report.html", "results.db", "study.toml"]);
}

#[test]
fn a_full_target_makes_the_run_invalid() {
    let place = Place::new();
    let Some(_disk) = Mounted::new(place.path("disk"), "size=2m") else { return };
    // The space is there when the run is prepared, and taken by somebody else when the first workload is measured; it is
    // free again for the second one.
    place.write(
        "full.toml",
        "[study]\nname = 'full'\n[target]\npath = 'disk'\n[run]\n\
         cache_hook = 'cd $BENCHMASTER_TARGET; rm others || head -c 1700000 /dev/zero > others'\nfilesets = 'fresh'\n\
         [design]\nreplicates = 2\n\
         [workload.write]\nuse = 'sequential-write'\nfile_size = '1MiB'\nio_size = '64KiB'\nprefill = false\n\
         duration = '100ms'\n\
         [workload.metadata]\nuse = 'metadata'\nduration = '20ms'\ndirectory_entries = 1\n",
    );
    let output = place.run(&["run", "full.toml"]);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    let results = place.results("results/full");
    assert_eq!(results.runs.len(), 2, "the study goes on");
    for run in &results.runs {
        let write = &run.recordings[0];
        let errors = |name: &str| -> u64 {
            let counted = write.series.iter().flat_map(|series| &series.errors);
            counted.filter(|(error, _)| error.as_str() == name).map(|(_, count)| count).sum()
        };
        assert!(errors("ENOSPC") > 0, "{:?}", write.series);
        let all: u64 = write.series.iter().map(|series| series.total.errors).sum();
        // The first write beyond the end is short.
        assert_eq!(errors("ENOSPC") + errors("short"), all, "no other errors");
        for id in ["errors", "file-system-full"] {
            assert!(run.checks.iter().any(|check| check.kind.name() == id), "{id}: {:?}", run.checks);
        }
    }
    let (summary, progress) = (stdout(&output), stderr(&output));
    assert!(summary.contains("file-system-full (write, 2 of 2 runs"), "{summary}");
    assert!(progress.contains("; INVALID ("), "{progress}");
    assert_eq!(place.list("disk"), [""; 0]);
}

#[test]
fn files_that_cannot_fit_are_refused_before_they_are_written() {
    let place = Place::new();
    let Some(_disk) = Mounted::new(place.path("disk"), "size=2m") else { return };
    place.write("large.toml", &TINY.replace("\"target\"", "\"disk\"").replace("64KiB", "1GiB"));
    let output = place.run(&["run", "large.toml", "-q"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("fileset `write` needs 1073741824 bytes and `"), "{text}");
    assert!(text.contains("make it smaller (`file_size`, `files`) or free space"), "{text}");
    assert_eq!(place.list("disk"), [""; 0]);
}

#[test]
fn a_read_only_place_for_results() {
    let place = Place::tiny();
    let _disk = if is_root() {
        let Some(disk) = Mounted::new(place.path("locked"), "size=1m") else { return };
        disk.remount("ro");
        Some(disk)
    } else {
        fs::create_dir(place.path("locked")).unwrap();
        fs::set_permissions(place.path("locked"), PermissionsExt::from_mode(0o555)).unwrap();
        None
    };
    let output = place.run(&["run", "tiny.toml", "-o", "locked/results", "-q"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.starts_with("error: cannot write `locked/results`: "), "{text}");
    assert!(!text.contains("note:"), "nothing was begun: {text}");
    place.assert_nothing_left();
}

#[test]
fn results_that_became_read_only() {
    let place = Place::tiny();
    let Some(disk) = Mounted::new(place.path("disk"), "size=32m") else { return };
    assert_eq!(place.run(&["run", "tiny.toml", "-o", "disk/results", "-q"]).status.code(), Some(0));
    disk.remount("ro");
    let output = place.run(&["analyze", "disk/results"]);
    assert_eq!(output.status.code(), Some(0), "reading needs no permission to write: {}", stderr(&output));
    let output = place.run(&["export", "disk/results", "--format", "csv", "-o", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = place.run(&["report", "disk/results"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write `disk/results/report.html`"), "{}", stderr(&output));
}

#[test]
fn a_study_file_that_may_not_be_read() {
    let place = Place::tiny();
    fs::set_permissions(place.path("tiny.toml"), PermissionsExt::from_mode(0o000)).unwrap();
    let output = if is_root() {
        // Root may read everything, so somebody else does it, with a copy of the program at a place for everybody.

        fs::set_permissions(place.root(), PermissionsExt::from_mode(0o755)).unwrap();
        // Not by this process: what it starts meanwhile would hold the file open for writing, and that cannot be run.
        let copied = Command::new("cp").args([PROGRAM.as_ref(), place.path("program").as_path()]).status();
        assert!(copied.unwrap().success());
        let mut command = Command::new(place.path("program"));
        place.surround(&mut command);
        command.args(["run", "tiny.toml"]).uid(65_534);
        match command.spawn() {
            Ok(child) => child.wait_with_output().unwrap(),
            Err(error) => {
                eprintln!("skipped: a program cannot be started as another user here: {error}");
                return;
            }
        }
    } else {
        place.run(&["run", "tiny.toml"])
    };
    assert_eq!(output.status.code(), Some(2));
    snapshot("unreadable_study", &place, &transcript(&output));
}
