//! Traces as studies, and wrong bytes that a server plants.

use benchmaster_record::results::CheckKind;
use std::fs;

use crate::place::{Place, stderr, stdout, transcript};

const TRACE: &str = r#"7 100.000000 openat(AT_FDCWD, "in", O_RDONLY) = 3 <0.000010>
7 100.001000 read(3, "x"..., 4096) = 4096 <0.000010>
7 100.002000 close(3) = 0 <0.000010>
7 100.003000 mkdir("out", 0777) = 0 <0.000010>
7 100.004000 openat(AT_FDCWD, "out/new", O_WRONLY|O_CREAT, 0666) = 3 <0.000010>
7 100.005000 write(3, "x"..., 4096) = 4096 <0.000010>
7 100.006000 chown("out/new", 0, 0) = 0 <0.000010>
7 100.007000 close(3) = 0 <0.000010>
"#;

#[test]
fn a_trace_of_strace_is_imported_and_replayed() {
    let place = Place::new();
    place.write("job.strace", TRACE);
    fs::create_dir_all(place.path("target")).unwrap();
    let import = ["import", "strace", "job.strace", "--root", "/w", "--target", "target", "-o", "job.toml"];
    let output = place.run(&import);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(stderr(&output).contains("not replayed: 1 × chown"), "{}", stderr(&output));
    let strict = place.run(&[&import[..], &["--strict"]].concat());
    assert_eq!(strict.status.code(), Some(1), "{}", transcript(&strict));

    let run = place.run(&["run", "job.toml", "--set", "design.replicates=2"]);
    assert_eq!(run.status.code(), Some(0), "{}", transcript(&run));
    let results = place.results("results/replay-job-strace");
    assert_eq!(results.runs.len(), 2);
    for run in &results.runs {
        let totals: u64 = run.recordings[0].series.iter().map(|series| series.total.count).sum();
        assert_eq!(totals, 7);
        let check = run.checks.iter().find(|check| check.kind == CheckKind::ReplayLeftOut).unwrap();
        assert!(check.message.contains("1 × chown (cannot be replayed)"), "{}", check.message);
    }
    let missing = place.run(&["import", "strace", "none.strace"]);
    assert_eq!(missing.status.code(), Some(2), "{}", transcript(&missing));
    assert!(stderr(&missing).contains("none.strace"), "{}", stderr(&missing));
}

/// Captures of a session of the client with the server; `UPDATE_CAPTURES=1` makes the tests of `import` record them.
#[test]
fn a_capture_is_imported_and_replayed_call_by_call() {
    for version in ["3", "4.1"] {
        let place = Place::new();
        let capture =
            format!("{}/../import/tests/captures/session-{version}.pcap", env!("CARGO_MANIFEST_DIR"));
        fs::copy(&capture, place.path("nfs.pcap")).unwrap();
        fs::create_dir_all(place.path("target")).unwrap();
        let import = ["import", "pcap", "nfs.pcap", "--target", "target", "-o", "nfs.toml", "--strict"];
        let output = place.run(&import);
        assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
        let run = place.run(&["run", "nfs.toml", "--set", "design.replicates=2"]);
        assert_eq!(run.status.code(), Some(0), "{}", transcript(&run));
        let results = place.results("results/replay-nfs-pcap-strace");
        assert_eq!(results.runs.len(), 2);
        for run in &results.runs {
            let series = &run.recordings[0].series;
            let count = |label: &str| -> u64 {
                series
                    .iter()
                    .filter(|series| series.key.label == label)
                    .map(|series| series.total.count)
                    .sum()
            };
            let locks = if version == "3" { 0 } else { 1 };
            for (label, calls) in [
                ("mkdir", 2),
                ("create", 2),
                ("write", 2),
                ("fsync", 2),
                ("read", 3),
                ("lock", locks),
                ("unlock", locks),
                ("rename", 1),
                ("symlink", 1),
                ("readlink", 1),
                ("readdir", 1),
                ("unlink", 1),
                ("rmdir", 1),
            ] {
                assert_eq!(count(label), calls, "{version} {label}");
            }
            assert!(!run.checks.iter().any(|check| check.kind == CheckKind::ReplayLeftOut), "{version}");
        }
        let beside: Vec<_> = fs::read_dir(place.path("target")).unwrap().collect();
        assert!(beside.len() <= 1, "nothing outside the directory of the study: {beside:?}");
    }
    let place = Place::new();
    place.write("job.pcap", "no capture");
    let output = place.run(&["import", "pcap", "job.pcap"]);
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(stderr(&output).contains("neither pcap nor pcapng"), "{}", stderr(&output));
    assert!(!place.path("job.pcap.strace").exists());
}

/// A byte that the server gives or stores wrongly is found, located, and fails the run.
#[test]
fn a_wrong_byte_planted_by_the_server_fails_the_run() {
    for (name, rule, workload) in [
        ("read", "READ corrupt count=1", "use = 'sequential-read'"),
        // Every file is written once: what is written over what is wrong is right again.
        ("write", "WRITE corrupt p=0.3", "use = 'sequential-write'\nprefill = false\nbytes = '64KiB'"),
    ] {
        for version in ["3", "4.1"] {
            let place = Place::new();
            place.write(
                "planted.toml",
                &format!(
                    "[study]\nname = 'planted'\n[server]\nkind = 'memory'\ninject = ['{rule}']\n[target]\n\
                     url = 'nfs://{{server}}/export'\nversion = '{version}'\n[design]\nreplicates = 2\n\
                     [workload.{name}]\n{workload}\nfile_size = '64KiB'\nio_size = '4KiB'\nduration = '30ms'\n\
                     verify = true\n"
                ),
            );
            let output = place.run(&["run", "planted.toml"]);
            assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
            let results = place.results("results/planted");
            let failures: Vec<_> = results.runs.iter().filter_map(|run| run.failure.as_deref()).collect();
            assert!(!failures.is_empty(), "{}", transcript(&output));
            let reason = failures[0];
            let begins = format!("workload `{name}`: wrong data were read: {name}/c0/f00000000, offset ");
            assert!(reason.starts_with(&begins), "{reason}");
            assert!(reason.contains("wrong byte 0x") && reason.contains(" instead of 0x"), "{reason}");
            assert!(stdout(&output).contains("wrong data were read"), "{}", stdout(&output));
        }
    }
}
