//! The same job run by fio and by this program in turn: operations per second and CPU time per operation.
//!
//! `cargo bench -p benchmaster --bench against_fio -- [--loop] [DIRECTORY [ROUNDS [SECONDS]]]`; the directory is `/dev/shm`
//! by default. Needs fio in the PATH. Both work on files of the same size that exist before, with the default accounting of
//! each. CPU time is that of fio's whole process, and of ours during the measured phase.
//!
//! `--loop` (as root) makes a loop device over a file in the directory, with an ext4 on it, and measures io_uring there,
//! bypassing the page cache.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// One job.
struct Job {
    name: &'static str,
    fio: &'static [&'static str],
    uses: &'static str,
    parameters: &'static str,
    jobs: u32,
    direct: bool,
}

const JOBS: [Job; 6] = [
    Job { name: "4 KiB random read, psync, 1 job", jobs: 1, ..RANDOM_READ },
    Job { name: "4 KiB random read, psync, 2 jobs", jobs: 2, ..RANDOM_READ },
    Job { name: "64 KiB sequential write, psync, 1 job", jobs: 1, ..SEQUENTIAL_WRITE },
    Job { name: "64 KiB sequential write, psync, 2 jobs", jobs: 2, ..SEQUENTIAL_WRITE },
    Job {
        name: "4 KiB random read, io_uring, depth 32",
        fio: &["--ioengine=io_uring", "--iodepth=32", "--rw=randread", "--bs=4k"],
        parameters: "io_size = \"4KiB\"\nio = \"io_uring\"\nqueue_depth = 32",
        ..RANDOM_READ
    },
    Job {
        name: "64 KiB sequential write, io_uring, depth 32",
        fio: &["--ioengine=io_uring", "--iodepth=32", "--rw=write", "--bs=64k"],
        parameters: "io_size = \"64KiB\"\nio = \"io_uring\"\nqueue_depth = 32",
        ..SEQUENTIAL_WRITE
    },
];
/// On a loop device.
const DIRECT: [Job; 2] = {
    let [.., read, write] = JOBS;
    [
        Job { name: "4 KiB random read, direct, io_uring, depth 32", direct: true, ..read },
        Job { name: "64 KiB sequential write, direct, io_uring, 32", direct: true, ..write },
    ]
};
const RANDOM_READ: Job = Job {
    name: "",
    fio: &["--ioengine=psync", "--rw=randread", "--bs=4k"],
    uses: "random-read",
    parameters: "io_size = \"4KiB\"",
    jobs: 1,
    direct: false,
};
const SEQUENTIAL_WRITE: Job = Job {
    name: "",
    fio: &["--ioengine=psync", "--rw=write", "--bs=64k"],
    uses: "sequential-write",
    parameters: "io_size = \"64KiB\"",
    jobs: 1,
    direct: false,
};

/// Operations per second, and CPU nanoseconds per operation.
type Figures = (f64, f64);

fn main() {
    let on_loop = std::env::args().any(|argument| argument == "--loop");
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let base = PathBuf::from(arguments.first().map_or("/dev/shm", String::as_str));
    let rounds: usize = arguments.get(1).map_or(7, |rounds| rounds.parse().unwrap());
    let seconds: u32 = arguments.get(2).map_or(3, |seconds| seconds.parse().unwrap());
    let own = format!("against-fio-{}", std::process::id());
    let directory = base.join(&own);
    std::fs::create_dir(&directory).unwrap();
    let device = on_loop.then(|| LoopDevice::new(&directory));
    let directory = device.as_ref().map_or(directory.clone(), |device| device.mounted.clone());
    let jobs: &[Job] = if on_loop { &DIRECT } else { &JOBS };
    println!("medians of {rounds} interleaved rounds of {seconds} s on {}", base.display());
    println!(
        "{:<46} {:>11} {:>11} {:>7} {:>9} {:>9} {:>7}",
        "job", "fio ops/s", "ours ops/s", "ratio", "fio ns", "ours ns", "ratio"
    );
    for job in jobs {
        let (mut fio, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            fio.push(run_fio(job, &directory, seconds));
            ours.push(run_ours(job, &directory, seconds));
        }
        let ratio = |pick: fn(&Figures) -> f64| {
            let ratios = ours.iter().zip(&fio).map(|(ours, fio)| pick(ours) / pick(fio));
            median(ratios.collect())
        };
        let of = |all: &[Figures], pick: fn(&Figures) -> f64| median(all.iter().map(pick).collect());
        println!(
            "{:<46} {:>11.0} {:>11.0} {:>7.2} {:>9.0} {:>9.0} {:>7.2}",
            job.name,
            of(&fio, |f| f.0),
            of(&ours, |f| f.0),
            ratio(|f| f.0),
            of(&fio, |f| f.1),
            of(&ours, |f| f.1),
            ratio(|f| f.1),
        );
    }
    drop(device);
    std::fs::remove_dir_all(base.join(own)).unwrap();
}

/// An ext4 on a loop device over a file; gone when dropped.
struct LoopDevice {
    mounted: PathBuf,
}

impl LoopDevice {
    fn new(directory: &Path) -> Self {
        let (image, mounted) = (directory.join("image"), directory.join("mounted"));
        std::fs::File::create(&image).unwrap().set_len(2 << 30).unwrap();
        std::fs::create_dir(&mounted).unwrap();
        run("mkfs.ext4", &["-q", "-F"], &[&image]);
        run("mount", &["-o", "loop"], &[&image, &mounted]);
        Self { mounted }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        run("umount", &[], &[&self.mounted]);
    }
}

fn run(program: &str, options: &[&str], paths: &[&Path]) {
    let status = Command::new(program).args(options).args(paths).status().unwrap();
    assert!(status.success(), "{program}: {status}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn run_fio(job: &Job, directory: &Path, seconds: u32) -> Figures {
    let files = directory.join("fio");
    std::fs::create_dir(&files).unwrap();
    let command = |extra: &[String]| {
        let mut command = Command::new("fio");
        command
            .args(["--name=job", "--size=256m", "--group_reporting", "--output-format=json"])
            .args(job.fio);
        command
            .arg(format!("--directory={}", files.display()))
            .arg(format!("--numjobs={}", job.jobs))
            .arg(format!("--direct={}", u8::from(job.direct)))
            .args(extra);
        let output = command.output().unwrap();
        assert!(output.status.success(), "fio: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    // Both tools find their files in place: fio only lays them out by itself for reads.
    for number in 0..job.jobs {
        std::fs::write(files.join(format!("job.{number}.0")), vec![0x5a; 256 << 20]).unwrap();
    }
    let before = cpu_of_children();
    let output = command(&["--time_based".into(), format!("--runtime={seconds}")]);
    let cpu = cpu_of_children() - before;
    let start = output.iter().position(|&byte| byte == b'{').unwrap();
    let report: Value = serde_json::from_slice(&output[start..]).unwrap();
    let result = &report["jobs"][0];
    let side = if job.uses.ends_with("read") { &result["read"] } else { &result["write"] };
    let operations = side["total_ios"].as_f64().unwrap();
    std::fs::remove_dir_all(&files).unwrap();
    (side["iops"].as_f64().unwrap(), cpu / operations)
}

/// CPU nanoseconds of all children that have ended. fio's own figures leave out the kernel's io_uring workers.
fn cpu_of_children() -> f64 {
    // SAFETY: all bits zero are a valid `rusage`, and the call fills it.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    let nanos = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

fn run_ours(job: &Job, directory: &Path, seconds: u32) -> Figures {
    let (study, results) = (directory.join("study.toml"), directory.join("results"));
    let mut text = String::new();
    writeln!(
        text,
        "[study]\nname = \"against-fio\"\n[target]\npath = {directory:?}\n[design]\nreplicates = 1"
    )
    .unwrap();
    writeln!(text, "[run]\ncut = \"none\"\n[workload.w]\nuse = {:?}\n{}", job.uses, job.parameters).unwrap();
    if job.direct {
        writeln!(text, "direct = true").unwrap();
    }
    writeln!(text, "file_size = \"256MiB\"\nworkers = {}\nduration = \"{seconds}s\"", job.jobs).unwrap();
    std::fs::write(&study, text).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_benchmaster"))
        .arg("run")
        .arg(&study)
        .arg("-o")
        .arg(&results)
        .output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let command = ["export", "--format", "json", "-o", "-"];
    let export =
        Command::new(env!("CARGO_BIN_EXE_benchmaster")).args(command).arg(&results).output().unwrap();
    let document: Value = serde_json::from_slice(&export.stdout).unwrap();
    std::fs::remove_dir_all(&results).unwrap();
    figures(&document).unwrap_or_else(|| panic!("the export has another shape: {document:#}"))
}

fn figures(document: &Value) -> Option<Figures> {
    let run = document["runs"].get(0)?;
    let rate =
        run["responses"].as_array()?.iter().find(|r| r["name"] == "w.operations")?["value"].as_f64()?;
    let recording = run["recordings"].get(0)?;
    let operations: f64 =
        recording["series"].as_array()?.iter().filter_map(|s| s["total"]["count"].as_f64()).sum();
    let host = &recording["host"];
    let cpu = host["process_user_ns"].as_f64()? + host["process_system_ns"].as_f64()?;
    Some((rate, cpu / operations))
}
