//! Job files run by fio and, imported, by this program in turn: reads and writes per second of both.
//!
//! `cargo bench -p benchmaster --bench imported_fio -- [DIRECTORY [ROUNDS [BINARY]]]`; the directory is `/dev/shm` unless told
//! otherwise, and the binary that runs the studies this build's. Needs fio in the PATH. The job files are those of the
//! import's tests.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// No job to run but an input of a test.
const NOT_RUN: &str = "everything.fio";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let base = PathBuf::from(arguments.first().map_or("/dev/shm", String::as_str));
    let rounds: usize = arguments.get(1).map_or(7, |rounds| rounds.parse().unwrap());
    let binary = arguments.get(2).map_or(env!("CARGO_BIN_EXE_benchmaster"), String::as_str);
    let directory = base.join(format!("imported-fio-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    println!("medians of {rounds} interleaved rounds on {}", base.display());
    println!("{:<24} {:>11} {:>11} {:>7}", "job file", "fio ops/s", "ours ops/s", "ratio");
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/jobs");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(jobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "fio") && !path.ends_with(NOT_RUN));
    files.sort();
    for file in files {
        let file = file.canonicalize().unwrap();
        let (mut fio, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            fio.push(by_fio(&file, &directory));
            ours.push(by_us(&file, &directory, binary));
        }
        let ratio = median(ours.iter().zip(&fio).map(|(ours, fio)| ours / fio).collect());
        let name = file.file_stem().unwrap().to_string_lossy();
        println!("{name:<24} {:>11.0} {:>11.0} {ratio:>7.2}", median(fio), median(ours));
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn checked(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Reads and writes per second of all jobs.
fn by_fio(file: &Path, directory: &Path) -> f64 {
    let files = directory.join("fio");
    std::fs::create_dir(&files).unwrap();
    let mut command = Command::new("fio");
    let output = checked(command.arg("--output-format=json").arg(file).current_dir(&files).output().unwrap());
    std::fs::remove_dir_all(&files).unwrap();
    let start = output.iter().position(|&byte| byte == b'{').unwrap();
    let report: Value = serde_json::from_slice(&output[start..]).unwrap();
    let rate = |job: &Value| job["read"]["iops"].as_f64().unwrap() + job["write"]["iops"].as_f64().unwrap();
    report["jobs"].as_array().unwrap().iter().map(rate).sum()
}

/// Reads and writes per second of all workloads.
fn by_us(file: &Path, directory: &Path, binary: &str) -> f64 {
    let (study, results, target) =
        (directory.join("study.toml"), directory.join("results"), directory.join("ours"));
    std::fs::create_dir(&target).unwrap();
    let mut import = Command::new(env!("CARGO_BIN_EXE_benchmaster"));
    import.args(["import", "fio"]).arg(file).arg("--target").arg(&target);
    let text = String::from_utf8(checked(import.output().unwrap())).unwrap();
    std::fs::write(&study, text.replacen("[run]", "[design]\nreplicates = 1\n\n[run]\ncut = \"none\"", 1))
        .unwrap();
    checked(Command::new(binary).arg("run").arg(&study).arg("-o").arg(&results).output().unwrap());
    let mut export = Command::new(binary);
    let export = export.args(["export", "--format", "json", "-o", "-"]).arg(&results).output().unwrap();
    let document: Value = serde_json::from_slice(&checked(export)).unwrap();
    std::fs::remove_dir_all(&results).unwrap();
    std::fs::remove_dir_all(&target).unwrap();
    let responses = document["runs"][0]["responses"].as_array().unwrap();
    let moves = |name: &str| name.ends_with(".read.operations") || name.ends_with(".write.operations");
    let rates = responses.iter().filter(|response| response["name"].as_str().is_some_and(moves));
    rates.map(|response| response["value"].as_f64().unwrap()).sum()
}
