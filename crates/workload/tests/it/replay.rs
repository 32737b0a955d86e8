//! Replays of traces of system calls and of earlier runs, on directories and NFS servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use benchmaster_builtin::{ReplayParameters, WorkloadSpec};
use benchmaster_record::model::{ReplaySpeed, ReplayWord, Workload};
use benchmaster_record::recording::{Recording, ReplayFacts};
use benchmaster_trace::TraceSink as _;
use benchmaster_trace::{TraceFacts, TraceFile, TraceWorker};

use crate::bench::{Bench, Sink, over_the_wire, series, workload};

const MAX: ReplaySpeed = ReplaySpeed::Word(ReplayWord::Max);

/// What a program did in `/w`: two threads, one of which makes what the other one uses.
const PROGRAM: &str = r#"7 100.000000 openat(AT_FDCWD, "data/in", O_RDONLY) = 3 <0.000010>
7 100.000100 read(3, "x"..., 4096) = 4096 <0.000010>
7 100.000200 read(3, "x"..., 4096) = 904 <0.000010>
7 100.000300 read(3, "", 4096) = 0 <0.000010>
7 100.000400 stat("data/none", 0x7ff) = -1 ENOENT (No such file or directory) <0.000010>
7 100.000500 mkdir("out", 0777) = 0 <0.000010>
7 100.000600 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES}, 88) = 8 <0.000010>
8 100.000700 openat(AT_FDCWD, "out/log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4 <0.000010>
8 100.000800 write(4, "x"..., 3000) = 3000 <0.000010>
7 100.000900 openat(AT_FDCWD, "out/tmp", O_RDWR|O_CREAT|O_TRUNC, 0666) = 5 <0.000010>
7 100.001000 pwrite64(5, "x"..., 8192, 4096) = 8192 <0.000010>
7 100.001100 fsync(5) = 0 <0.000010>
7 100.001200 writev(4, [{iov_base="x"..., iov_len=500}, {iov_base="x"..., iov_len=500}], 2) = 1000 <0.000010>
8 100.001300 rename("out/tmp", "out/done") = 0 <0.000010>
7 100.001400 close(5) = 0 <0.000010>
8 100.001500 openat(AT_FDCWD, "out", O_RDONLY|O_DIRECTORY|O_CLOEXEC) = 6 <0.000010>
8 100.001600 getdents64(6, 0x1 /* 4 entries */, 32768) = 112 <0.000010>
8 100.001700 getdents64(6, 0x1 /* 0 entries */, 32768) = 0 <0.000010>
8 100.001800 close(6) = 0 <0.000010>
8 100.001900 unlink("data/old") = 0 <0.000010>
8 100.002000 close(3) = 0 <0.000010>
8 100.002100 +++ exited with 0 +++
7 100.002200 exit_group(0) = ?
7 100.002300 +++ exited with 0 +++
"#;

/// Operations of [`PROGRAM`]: those by name and on open files, with their bytes.
const COUNTS: [(&str, u64, u64); 11] = [
    ("close", 3, 0),
    ("create", 2, 0),
    ("fsync", 1, 0),
    ("mkdir", 1, 0),
    ("open", 1, 0),
    ("read", 3, 5000),
    ("readdir", 1, 0),
    ("rename", 1, 0),
    ("stat", 2, 0),
    ("unlink", 1, 0),
    ("write", 3, 12_192),
];

struct Traced {
    directory: tempfile::TempDir,
}

impl Traced {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("trace"), text).unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("trace")
    }

    fn workload(&self, speed: ReplaySpeed) -> Workload {
        replay_of(&self.path(), speed, Some("/w"))
    }
}

fn replay_of(trace: &Path, speed: ReplaySpeed, root: Option<&str>) -> Workload {
    let parameters = ReplayParameters {
        trace: trace.to_str().unwrap().into(),
        speed,
        root: root.map(str::to_owned),
        ..ReplayParameters::default()
    };
    WorkloadSpec::Replay(parameters).expand("again").unwrap()
}

fn facts(recording: &Recording) -> &ReplayFacts {
    recording.replay.as_ref().unwrap()
}

fn counts(recording: &Recording) -> Vec<(&str, u64, u64)> {
    let mut counts: Vec<_> =
        recording.series.iter().map(|s| (s.key.label.as_str(), s.total.count, s.total.bytes)).collect();
    counts.sort_unstable();
    counts
}

fn a_program_does_what_it_did() {
    let traced = Traced::new(PROGRAM);
    for speed in [MAX, ReplaySpeed::Times(1.0), ReplaySpeed::Times(0.5)] {
        let mut bench = Bench::new();
        bench.clients = 2;
        let workload = traced.workload(speed);
        assert_eq!(workload.groups[0].workers, 2, "one for each thread");
        let recording = bench.run(&workload);
        let twice: Vec<_> =
            COUNTS.iter().map(|(label, count, bytes)| (*label, 2 * count, 2 * bytes)).collect();
        assert_eq!(counts(&recording), twice, "each client replays all of it");
        assert_eq!((facts(&recording).calls, facts(&recording).differing), (38, 0));
        assert_eq!(facts(&recording).left_out.len(), 0);
        let late = facts(&recording).late.decode().unwrap();
        match speed {
            ReplaySpeed::Word(_) => assert!(late.is_empty()),
            // The process ended 2.3 ms after the first call, and closed what was open.
            ReplaySpeed::Times(times) => {
                assert_eq!(late.len(), 38);
                let length = (2.3e6 / times) as u64;
                assert!(facts(&recording).length_ns.abs_diff(length) < 1000, "{:?}", facts(&recording));
                assert!(recording.length_ns >= facts(&recording).length_ns, "{}", recording.length_ns);
            }
        }
        assert_eq!(recording.filesets[0].files, 4, "`in` and `old` of each client");
        if bench.server.is_none() {
            let length = |path: &str| std::fs::metadata(bench.path(path)).map(|found| found.len()).ok();
            for client in ["c0", "c1"] {
                assert_eq!(length(&format!("again/{client}/out/log")), Some(4000));
                assert_eq!(length(&format!("again/{client}/out/done")), Some(12_288));
                assert_eq!(length(&format!("again/{client}/data/in")), Some(5000));
                assert_eq!(length(&format!("again/{client}/data/old")), None);
                assert_eq!(length(&format!("again/{client}/out/tmp")), None);
            }
        }
        // Again in the same working directory: what the first run left is made anew.
        bench.area.begin_run(false).unwrap();
        assert_eq!(counts(&bench.run(&workload)), twice);
    }
}

#[test]
fn a_program_does_what_it_did_on_a_directory() {
    a_program_does_what_it_did();
}

#[test]
fn a_program_does_what_it_did_over_nfs() {
    for version in ["3", "4.1"] {
        over_the_wire(version, a_program_does_what_it_did);
    }
}

/// A directory `/w` that is really there: what a replay must not touch.
#[test]
fn links_of_a_trace_lead_nowhere_out_of_the_replay() {
    let real = tempfile::tempdir().unwrap();
    let home = real.path().join("proj");
    std::fs::create_dir_all(home.join("keep/d")).unwrap();
    std::fs::write(home.join("real.txt"), "precious").unwrap();
    std::fs::write(home.join("keep/d/f1"), "precious").unwrap();
    let text = r#"7 1.00 symlink("HOME/real.txt", "current") = 0 <0.1>
7 1.01 openat(AT_FDCWD, "current", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3 <0.1>
7 1.02 write(3, "new content\n", 12) = 12 <0.1>
7 1.03 close(3) = 0 <0.1>
7 1.04 unlink("current") = 0 <0.1>
7 1.05 stat("HOME/keep/d/f1", {st_mode=S_IFREG|0644, st_size=8, ...}) = 0 <0.1>
7 1.06 symlink("HOME/keep/d", "dir") = 0 <0.1>
7 1.07 unlink("dir/f1") = 0 <0.1>
7 1.08 mkdir("dir/newdir", 0777) = 0 <0.1>
7 1.09 symlink("/etc/passwd", "secret") = 0 <0.1>
7 1.10 mkdir("a", 0777) = 0 <0.1>
7 1.101 mkdir("a/b", 0777) = 0 <0.1>
7 1.102 mkdir("a/b/c", 0777) = 0 <0.1>
7 1.103 mkdir("a/b/c/d", 0777) = 0 <0.1>
7 1.11 symlink("../../../../elsewhere", "a/b/c/d/l") = 0 <0.1>
7 1.12 rename("a/b/c/d/l", "moved") = 0 <0.1>
7 1.13 openat(AT_FDCWD, "moved", O_WRONLY|O_CREAT, 0666) = 3 <0.1>
7 1.14 close(3) = 0 <0.1>
"#
    .replace("HOME", home.to_str().unwrap());
    let traced = Traced::new(&text);
    let workload = replay_of(&traced.path(), MAX, home.to_str());
    let mut bench = Bench::new();
    let recording = bench.try_run(&workload).unwrap();
    let facts = facts(&recording);
    let left: Vec<_> = facts.left_out.iter().collect();
    assert!(left.len() == 1 && left[0].0.contains("symlink to elsewhere") && *left[0].1 == 1, "{left:?}");
    assert_eq!(facts.differing, 2, "the open through the link that was moved, and its close");
    let replayed = |path: &str| bench.path(&format!("again/c0/{path}"));
    assert_eq!(std::fs::metadata(replayed("real.txt")).unwrap().len(), 12, "the link's target in the replay");
    assert!(replayed("keep/d/newdir").is_dir() && !replayed("keep/d/f1").exists());
    let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap();
    assert_eq!((read("real.txt"), read("keep/d/f1")), ("precious".into(), "precious".into()));
    assert_eq!(std::fs::read_dir(home.join("keep/d")).unwrap().count(), 1);
    assert!(!home.parent().unwrap().join("elsewhere").exists());
    assert!(!bench.path("../elsewhere").exists() && !bench.path("../../elsewhere").exists());
}

#[test]
fn calls_that_end_otherwise_than_recorded_are_counted_and_named() {
    let traced = Traced::new(
        r#"7 1.0 stat("there", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.1>
7 1.1 mkdir("there", 0777) = 0 <0.1>
7 1.2 unlink("made") = -1 EACCES (Permission denied) <0.1>
7 1.3 openat(AT_FDCWD, "made", O_RDWR|O_CREAT|O_EXCL, 0666) = 3 <0.1>
7 1.4 unlink("made") = -1 EBUSY (Device or resource busy) <0.1>
7 1.5 pread64(3, "x"..., 100, 0) = 100 <0.1>
7 1.6 chown("made", 0, 0) = 0 <0.1>
"#,
    );
    let mut bench = Bench::new();
    let recording = bench.try_run(&traced.workload(MAX)).unwrap();
    let facts = facts(&recording);
    assert_eq!((facts.calls, facts.differing), (6, 4));
    let errors = |label: &str| series(&recording, label).errors.clone();
    assert_eq!(errors("mkdir").get("EEXIST"), Some(&1));
    assert_eq!(errors("unlink").get("unexpected success"), Some(&1));
    assert_eq!(errors("unlink").get("ENOENT"), Some(&1));
    assert_eq!(errors("read").get("short"), Some(&1));
    let first = &recording.error_details[0];
    assert!(first.contains("mkdir there (call 1 of thread 7; when recorded, it succeeded)"), "{first}");
    let left: Vec<_> = facts.left_out.iter().map(|(what, count)| (&what[..], *count)).collect();
    assert_eq!(left, [("chown (cannot be replayed)", 1)]);
}

/// As fast as possible, threads still wait for what others make, and none hangs when another one gives up.
#[test]
fn threads_wait_for_what_others_make() {
    let mut text = String::new();
    for thread in 0..8 {
        text += &format!(
            "{} 1.0{thread} stat(\"/w/x\", 0x1) = -1 ENOENT (No such file or directory) <0.1>\n",
            10 + thread
        );
    }
    for round in 0..200 {
        let (maker, user) = (10 + round % 8, 10 + (round + 3) % 8);
        let time = |step: u32| format!("{}.{:06}", 2 + round / 100, (round % 100) * 10_000 + step);
        text += &format!("{maker} {} mkdir(\"/w/d{round}\", 0777) = 0 <0.1>\n", time(0));
        text += &format!(
            "{user} {} openat(AT_FDCWD, \"/w/d{round}/f\", O_RDWR|O_CREAT|O_EXCL, 0666) = {} <0.1>\n",
            time(1),
            3 + round
        );
        text += &format!("{maker} {} stat(\"/w/d{round}/f\", {{st_size=0}}) = 0 <0.1>\n", time(2));
        text += &format!("{user} {} unlink(\"/w/d{round}/f\") = 0 <0.1>\n", time(3));
        text += &format!("{maker} {} rmdir(\"/w/d{round}\") = 0 <0.1>\n", time(4));
    }
    let traced = Traced::new(&text);
    for version in [None, Some("3"), Some("4.1")] {
        let mut bench = match version {
            None => Bench::new(),
            Some(version) => Bench::nfs(&format!("version={version}"), Default::default()),
        };
        for _ in 0..3 {
            let recording = bench.run(&traced.workload(MAX));
            assert_eq!((facts(&recording).calls, facts(&recording).differing), (1008, 0));
            bench.area.begin_run(false).unwrap();
        }
        // One of them loses its directory behind its back, fails, and gives up.
        bench.max_errors = 1;
        let broken = Traced::new(&text.replacen("mkdir(\"/w/d7\", 0777) = 0", "rmdir(\"/w/d7\") = 0", 1));
        let recording = bench.try_run(&broken.workload(MAX)).unwrap();
        assert!(facts(&recording).differing > 0);
    }
}

fn a_recorded_run_is_replayed() {
    let mut bench = Bench::new();
    bench.clients = 2;
    bench.sink = Some(Sink::default());
    let original = workload(
        "until = { iterations = 50 }
         filesets.data = { files = 6, size = '40KiB', directory_width = 2 }
         filesets.new = { files = 200, size = '8KiB', prefill = 0.0 }
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{ op = 'open', fileset = 'data', file = 'own', handle = 'kept', flags = ['write'] }]
         flow = [
             { op = 'write', handle = 'kept', io_size = '4KiB', offset = 'random' },
             { op = 'open', fileset = 'data', file = 'next' },
             { op = 'read', io_size = '16KiB', offset = 'sequential' },
             { op = 'close' },
             { op = 'create', fileset = 'new', file = 'new', flags = ['write'], handle = 'made' },
             { op = 'write', io_size = '8KiB', handle = 'made' },
             { op = 'fsync', handle = 'made' },
             { op = 'close', handle = 'made' },
             { op = 'rename', fileset = 'new', file = 'same' },
             { op = 'stat', fileset = 'new', file = 'same' },
             { op = 'unlink', fileset = 'new', file = 'same' },
             { op = 'readdir', fileset = 'data', file = 'next' },
         ]",
    );
    let recording = bench.run(&original);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.parquet");
    let mut file = TraceFile::create(path.clone()).unwrap();
    file.write(&bench.sink.take().unwrap().records).unwrap();
    let worker = |w: &benchmaster_record::recording::WorkerRecording| TraceWorker {
        client: w.client,
        group: w.group.clone(),
        worker: w.worker,
    };
    file.finish(&TraceFacts {
        workload: "w".into(),
        series: recording.series.iter().map(|series| series.key.clone()).collect(),
        workers: recording.workers.iter().map(worker).collect(),
        filesets: original.filesets.clone(),
        fileset_seed: 3,
    })
    .unwrap();
    bench.clients = 1;
    for speed in [MAX, ReplaySpeed::Times(2.0)] {
        let workload = replay_of(&path, speed, None);
        assert_eq!(workload.groups[0].workers, 4, "all workers of both clients");
        let again = bench.run(&workload);
        assert_eq!(counts(&again), counts(&recording));
        assert_eq!((facts(&again).differing, facts(&again).left_out.len()), (0, 0), "{:?}", facts(&again));
        bench.area.begin_run(false).unwrap();
    }
}

#[test]
fn a_recorded_run_is_replayed_on_a_directory() {
    a_recorded_run_is_replayed();
}

#[test]
fn a_recorded_run_is_replayed_over_nfs() {
    for version in ["3", "4.1"] {
        over_the_wire(version, a_recorded_run_is_replayed);
    }
}

#[test]
fn the_example_is_replayed_at_its_pace() {
    let parameters = ReplayParameters::default();
    let workload = WorkloadSpec::Replay(parameters).expand("w").unwrap();
    let recording = Bench::new().run(&workload);
    let facts = facts(&recording);
    assert_eq!((facts.calls, facts.differing, facts.length_ns), (34, 0, 18_300_000));
    assert!(recording.length_ns >= facts.length_ns);
}

/// What strace writes now, whatever its version.
#[test]
#[ignore = "full tier: strace"]
fn a_command_that_strace_watched_is_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, trace) = (directory.path().join("tree"), directory.path().join("trace"));
    std::fs::create_dir_all(tree.join("a/b")).unwrap();
    std::fs::write(tree.join("a/one"), vec![7; 100_000]).unwrap();
    std::fs::write(tree.join("a/b/two"), b"two").unwrap();
    let script = "cat a/one a/b/two > all; mkdir c; mv all c/; cat none; (cat c/all > d; rm -r a)";
    let strace = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-o"])
        .arg(&trace)
        .args(["sh", "-c", script])
        .current_dir(&tree)
        .stderr(std::process::Stdio::null())
        .status();
    let traced = strace.is_ok() && trace.metadata().is_ok_and(|found| found.len() > 0);
    if !traced {
        assert!(
            std::env::var("BENCHMASTER_REQUIRE_STRACE").as_deref() != Ok("1"),
            "strace does not work here"
        );
        eprintln!("skipped: strace does not work here");
        return;
    }
    for version in [None, Some("4.1")] {
        let mut bench = match version {
            None => Bench::new(),
            Some(version) => Bench::nfs(&format!("version={version}"), Default::default()),
        };
        bench.max_errors = 1000;
        let recording = bench.try_run(&replay_of(&trace, MAX, tree.to_str())).unwrap();
        let facts = facts(&recording);
        assert_eq!(facts.differing, 0, "{:?}", recording.error_details);
        let count = |label: &str| series(&recording, label).total.count;
        assert_eq!((count("unlink"), count("rmdir"), count("rename"), count("mkdir")), (2, 2, 1, 1));
        assert!(series(&recording, "read").total.bytes >= 2 * 100_003);
        assert!(count("open") >= 4, "three files that are read, and one that is missing");
    }
}
