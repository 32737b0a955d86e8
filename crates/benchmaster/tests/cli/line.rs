//! `run --rw …`: a study in one line.

use std::fs;
use std::process::Command;

use benchmaster_import::line::{self, Line};
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::target::Target;
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::built_in::repository;
use crate::place::{Place, finish, snapshot, stderr, stdout, transcript};

#[test]
fn every_mistake_ends_in_one_line_that_says_what_to_type() {
    let place = Place::tiny();
    for (arguments, expected) in [
        ("", "`benchmaster run --rw randread --bs 4k --time 30s /mnt/nfs`"),
        ("--bs 4k tiny.toml", "add `--rw randread`"),
        ("-n 3 tiny.toml", "add `--rw randread`"),
        ("--rw read tiny.toml", "leave out `--rw` to run it as a study"),
        ("--rw read --create 5", "run one of them, then the other"),
        ("--rw seqread target", "`read`, `write`, `randread`"),
        ("--rw trim target", "write `write` or `randwrite`"),
        ("--rw read,read target", "remove one"),
        ("--rw read --bs 4q", "write `k`, `m`, `g`"),
        ("--rw read --bs 4k, target", "does not begin with a number"),
        ("--rw read --bs 1m --size 64k", "write `--size 1024k` or more"),
        ("--rw read --time 10sec", "write `s`"),
        ("--rw read --time 0", "write `30s`"),
        ("--rw read --direct", "leave it out"),
        ("--rw read --direct=2 target", "neither `0` nor `1`"),
        ("--rw read --direct --bs 1000 target", "write `--bs 1024`"),
        ("--rw write --fsync 1 --iodepth 4", "leave out `--iodepth`"),
        ("--rw read --rwmixread 70", "add `--rw rw`"),
        ("--rw rw,read --rwmixread 70,50", "give one of them one value"),
        ("--rw rw --rwmixread 101", "a percentage from 0 to 100"),
        ("--rw read --verify --bs 100", "write `--bs 128`"),
        ("--rw read --verify=md4", "fio knows md5"),
        ("--rw read --clients 0", "less than 1"),
        ("--create 10 --iodepth 4", "leave it out"),
        ("--create 10 --fsync 8", "neither `0` nor `1`"),
        ("--rw read nowhere", "name the directory (or mount point)"),
        ("--rw read nfs://filer/vol1?verz=3", "did you mean `vers`?"),
        ("--rw read nfs://filer/vol1?vers=4", "write one of 2, 3, 4.0, 4.1, 4.2"),
    ] {
        let words: Vec<&str> = std::iter::once("run").chain(arguments.split_whitespace()).collect();
        let output = place.run(&words);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {text}");
        assert!(text.starts_with("error: ") && text.lines().count() == 1, "{arguments}: {text}");
        assert!(text.contains(expected), "{arguments}: {text}");
    }
    let output = place.run(&["run", "--rw", "read", "mount -F nfs filer:/vol1 /mnt"]);
    assert!(
        stderr(&output).contains("`mount -t nfs -o vers=4.1 SERVER:/EXPORT /mnt`"),
        "{}",
        stderr(&output)
    );
    assert_eq!(place.list("."), ["target", "tiny.toml", "tmp"]);
}

#[test]
fn a_line_is_printed_as_a_study_and_that_is_what_it_measures() {
    let place = Place::in_memory();
    let line = ["run", "--rw", "randread,randrw", "--rwmixread", "75", "--bs", "4k,16k", "--size", "256k"];
    let line = [&line[..], &["--iodepth", "4", "--time", "20ms", "-n", "2"]].concat();
    let printed = place.run(&[&line[..], &["--print"]].concat());
    snapshot("line_print", &place, &transcript(&printed));
    place.write("line.toml", &stdout(&printed));
    let output = place.run(&["run", "line.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let output = place.run(&[&line[..], &["-q"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    // A row for each direction, with its latencies by name.
    let table: Vec<String> = stdout(&output).lines().map(|line| line.replace("  ", " ")).collect();
    let rows = |start: &str, label: &str| {
        let words = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let is_row = |words: &Vec<String>| words.first().is_some_and(|word| word == start);
        table.iter().map(words).filter(is_row).filter(|words| words.contains(&label.to_owned())).count()
    };
    let counts = [("randread", "read"), ("randread", "write"), ("randrw", "read"), ("randrw", "write")];
    assert_eq!(counts.map(|(start, label)| rows(start, label)), [2, 0, 2, 2], "{}", stdout(&output));
    for head in ["IOPS", "throughput", "latency of", "mean", "p50", "p99"] {
        assert!(stdout(&output).contains(head), "{head} in {}", stdout(&output));
    }
    let names = place.list("results");
    let own =
        names.iter().find(|name| name.starts_with("randread-randrw-embedded-export-")).expect("its results");
    let (own, file) = (place.results(&format!("results/{own}")), place.results("results/randread-randrw"));
    assert_eq!((own.runs.len(), own.study.treatments), (8, file.study.treatments));
}

#[test]
fn a_directory_is_written_flushed_and_verified_and_files_are_created() {
    let place = Place::in_memory();
    let write = "run --rw=write --bs=4k --size=64k --numjobs=2 --fsync=4 --verify --rate=1m --clients=2 --runtime=20ms -n2 -q";
    let words: Vec<&str> = write.split(' ').chain(["target", "-o", "results/write"]).collect();
    let output = place.run(&words);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let series = |name: &str, label: &str| -> u64 {
        let results = place.results(name);
        let recordings = results.runs.iter().flat_map(|run| &run.recordings);
        let series = recordings.flat_map(|recording| &recording.series);
        series.filter(|series| series.key.label == label).map(|series| series.total.count).sum()
    };
    assert!(series("results/write", "write") > 0 && series("results/write", "fsync") > 0);
    let output = place.run(&["run", "--create", "20,40", "-n", "2", "target", "-o", "results/create", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert_eq!(series("results/create", "create"), 2 * (20 + 40));
    place.assert_nothing_left();
}

/// Lines of the documents as a shell reads them: each prints a study that can be planned.
#[test]
fn documented_lines_are_studies() {
    let place = Place::new();
    let documents = ["README.md", "docs/one-line.md", "docs/compare.md", "docs/probe.md", "docs/ci.md"];
    let text: String =
        documents.iter().filter_map(|name| fs::read_to_string(repository(name)).ok()).collect();
    let is_line = |line: &&str| {
        line.starts_with("benchmaster quick")
            || line.starts_with("benchmaster run --rw")
            || line.starts_with("benchmaster run --create")
    };
    let mut lines = 0;
    for line in text.lines().filter(is_line) {
        let line = line.split(" #").next().unwrap().split(" > ").next().unwrap().trim_end();
        let arguments = line.strip_prefix("benchmaster").unwrap().replace(" --print", "");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {}{arguments} --print", env!("CARGO_BIN_EXE_benchmaster"))]);
        place.surround(&mut shell);
        let output = finish(shell);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", transcript(&output));
        let study = StudyFile::parse("study.toml", &stdout(&output)).map_err(|e| e.to_string());
        Plan::from_study(&study.unwrap_or_else(|e| panic!("{line}: {e}")), "1").unwrap();
        lines += 1;
    }
    assert!(lines >= 8, "{lines}");
}

/// Some values of a flag, each once.
fn some(
    flag: &'static str,
    values: &'static [&'static str],
) -> impl Strategy<Value = (&'static str, String)> {
    subsequence(values, 0..=values.len()).prop_map(move |values| (flag, values.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_line_is_a_study_with_the_product_of_its_values(
        rw in subsequence(&["read", "write", "randread", "randwrite", "rw", "randrw"][..], 1..=6),
        bs in some("bs", &["512", "4k", "64K", "1m", "4kb"]),
        size in some("size", &["16m", "1g", "(2*16)m"]),
        numjobs in some("numjobs", &["1", "2", "16"]),
        time in some("time", &["30", "30s", "5m", "250ms"]),
        rate in some("rate", &["20m", "1000"]),
        clients in some("clients", &["1", "3"]),
        deep in any::<bool>(),
        iodepth in some("iodepth", &["1", "32"]),
        fsync in some("fsync", &["0", "1", "32"]),
        runs in 5u32..9,
        target in prop::sample::select(&["/mnt/nfs", "nfs://{server}/export", "filer:/vol1?vers=4.2"][..]),
    ) {
        let other = if deep { iodepth } else { fsync };
        let rw = ("rw", rw.join(","));
        let all = [rw, bs, size, numjobs, time, rate, clients, other];
        let flags: Vec<(&str, &str)> =
            all.iter().filter(|(_, text)| !text.is_empty()).map(|(flag, text)| (*flag, text.as_str())).collect();
        // The same value in two units is refused.
        prop_assume!(!flags.iter().any(|(_, text)| text.contains("30,30s") || text.contains("4k") && text.contains("4kb")));
        let target = Target::read(target).unwrap();
        let line = Line { flags: &flags, target: (target.key, &target.value), runs };
        let text = line::to_study(&line).unwrap();
        let file = StudyFile::parse("line", &text).map_err(|found| TestCaseError::fail(format!("{found}\n{text}")))?;
        let plan = Plan::from_study(&file, "1").map_err(|found| TestCaseError::fail(format!("{found}\n{text}")))?;
        let product: usize = flags.iter().map(|(_, text)| text.split(',').count()).product();
        prop_assert_eq!(plan.study.treatments.len(), product, "{}", text);
    }
}
