//! Files that people hand over, or that lie in a directory of results: whoever made them may have damaged them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use benchmaster_import::{filebench, fio, pcap, to_study};
use benchmaster_store::Store;
use benchmaster_workload::replay::{Where, strace};

use crate::decoders::{self, Target};

/// All targets of this kind.
pub const FILES: &[Target] = &[
    ("fio", fio),
    ("filebench", filebench),
    ("strace", strace),
    ("pcap", pcap),
    ("parquet", parquet),
    ("results", results),
];

/// Runs the target of that name.
pub fn run(name: &str, bytes: &[u8]) {
    decoders::run_of(FILES, name, bytes);
}

/// Folders with samples: those of the tests that read such files, and those in `corpus/`.
pub fn folders(name: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let elsewhere = match name {
        "fio" => Some("../crates/import/tests/jobs"),
        "strace" => Some("../crates/workload/src/replay"),
        "pcap" => Some("../crates/import/tests/captures"),
        _ => None,
    };
    let own = root.join("corpus").join(name);
    elsewhere.map(|folder| root.join(folder)).into_iter().chain(own.is_dir().then_some(own)).collect()
}

/// A host on which nothing is defined.
struct Nowhere;

impl fio::Surroundings for Nowhere {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn include(&self, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn existing_size(&self) -> Option<u64> {
        Some(1 << 20)
    }

    fn keyword(&self, _: fio::Keyword) -> u64 {
        4096
    }
}

/// What is imported is a study, if perhaps one with mistakes.
fn imported(imported: &benchmaster_import::Imported) {
    let text = to_study(imported);
    assert!(text.parse::<toml::Table>().is_ok(), "no TOML: {text}");
}

fn fio(bytes: &[u8]) {
    if let Ok(job) = fio::import("job", &String::from_utf8_lossy(bytes), &Nowhere) {
        imported(&job);
    }
}

fn filebench(bytes: &[u8]) {
    if let Ok(job) = filebench::import("job", &String::from_utf8_lossy(bytes)) {
        imported(&job);
    }
}

fn strace(bytes: &[u8]) {
    let place = Where::new(None, None).expect("everything below `/`");
    if let Ok(plan) = strace::read(bytes, &place) {
        assert!(plan.calls() == 0 || plan.threads() > 0);
        plan.files();
    }
}

/// What a capture becomes is a trace of system calls, if it has one that can be replayed.
fn pcap(bytes: &[u8]) {
    let mut trace = Vec::new();
    if pcap::convert(bytes, &mut trace).is_ok() && !trace.is_empty() {
        let place = Where::new(None, None).expect("everything below `/`");
        strace::read(&trace[..], &place).expect("a trace that can be replayed");
    }
}

static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();

/// A directory in memory, for what is read by its path.
fn directory() -> &'static Path {
    DIRECTORY.get_or_init(|| {
        let directory = Path::new("/dev/shm").join(format!("benchmaster-fuzz-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory in memory");
        directory
    })
}

/// Removes what the targets wrote.
pub fn clean() {
    if let Some(directory) = DIRECTORY.get() {
        let _ = fs::remove_dir_all(directory);
    }
}

fn parquet(bytes: &[u8]) {
    let path = directory().join("trace.parquet");
    fs::write(&path, bytes).expect("room in memory");
    let mut rows = 0;
    if let Ok(info) = benchmaster_trace::read(&path, |batch| rows += batch.len() as u64) {
        assert_eq!(rows, info.operations);
    }
}

fn results(bytes: &[u8]) {
    let directory = directory();
    fs::write(directory.join("results.db"), bytes).expect("room in memory");
    if let Ok(results) = Store::load(directory) {
        for run in &results.runs {
            let _ = Store::load_run(directory, run.key);
        }
    }
}
