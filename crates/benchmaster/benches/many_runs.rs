//! What a study of many short runs costs beside its measured phases: time, CPU time and memory.
//!
//! `cargo bench -p benchmaster --bench many_runs -- [RUNS [PROGRAM...]]`; 1,000 runs with this build unless told otherwise,
//! several programs in turn. A run measures 10 ms, in a directory or from the embedded server. Phases take what their
//! recordings say; the rest is divided by the number of runs. Memory is the peak until then, of the whole process.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use benchmaster_record::live::Session;
use benchmaster_store::{Store, live};

const TARGETS: [(&str, &str); 2] =
    [("directory", "path = \"{scratch}\""), ("server", "url = \"nfs://{server}/export\"")];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let runs: u32 = arguments.next().map_or(1000, |runs| runs.parse().unwrap());
    let mut programs: Vec<String> = arguments.collect();
    if programs.is_empty() {
        programs.push(env!("CARGO_BIN_EXE_benchmaster").into());
    }
    println!("{runs} runs of 10 ms; ms per run beside its phase, s of the report, MiB");
    println!(
        "{:<10} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9} {:>9}  program",
        "target", "wall", "CPU", "report", "CPU", "100 runs", "all runs", "report"
    );
    for (name, target) in TARGETS {
        for program in &programs {
            let f = measure(program, target, runs);
            println!(
                "{name:<10} {:>8.1} {:>8.1} {:>10.2} {:>10.2} {:>9.1} {:>9.1} {:>9.1}  {program}",
                f.wall, f.cpu, f.report.0, f.report.1, f.memory[0], f.memory[1], f.memory[2]
            );
        }
    }
}

struct Figures {
    /// Milliseconds per run.
    wall: f64,
    cpu: f64,
    /// Seconds, on the clock and of CPU time.
    report: (f64, f64),
    /// After 100 runs, after all, and at the end.
    memory: [f64; 3],
}

fn measure(program: &str, target: &str, runs: u32) -> Figures {
    let directory = tempfile::tempdir().unwrap();
    let (study, results) = (directory.path().join("study.toml"), directory.path().join("results"));
    let text = format!(
        "[study]\nname = \"many-runs\"\n[target]\n{target}\n[design]\nreplicates = {runs}\n[workload.read]\n\
         use = \"random-read\"\nfile_size = \"1MiB\"\nworkers = 2\nduration = \"10ms\"\n"
    );
    std::fs::write(&study, text).unwrap();
    let mut command = Command::new(program);
    command.arg("run").arg(&study).arg("-o").arg(&results).stdout(Stdio::null()).stderr(Stdio::null());
    let before = cpu_of_children();
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let (mut early, mut measured, mut memory) = (None, None, 0.0);
    while child.try_wait().unwrap().is_none() {
        memory = peak(child.id()).unwrap_or(memory);
        let Ok(state) = live::read(&results) else { continue };
        if early.is_none() && state.runs.stored >= 100 {
            early = Some(memory);
        }
        if measured.is_none() && state.session == Session::Finished {
            measured = Some((memory, began.elapsed(), cpu(child.id())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (whole, all_cpu) = (began.elapsed(), cpu_of_children() - before);
    let (measured_memory, wall, cpu) = measured.unwrap();
    let (phases, in_phases) = phases(&results);
    let per_run = |seconds: f64| seconds * 1e3 / f64::from(runs);
    Figures {
        wall: per_run(wall.as_secs_f64() - phases),
        cpu: per_run(cpu - in_phases),
        report: ((whole - wall).as_secs_f64(), all_cpu - cpu),
        memory: [early.unwrap_or(measured_memory), measured_memory, memory],
    }
}

/// Seconds of all measured phases, on the clock and of CPU time.
fn phases(results: &Path) -> (f64, f64) {
    let results = Store::load(results).unwrap();
    let recordings = || results.runs.iter().flat_map(|run| &run.recordings);
    let length: u64 = recordings().map(|recording| recording.length_ns).sum();
    let host = recordings().map(|recording| &recording.host);
    let cpu: u64 = host.map(|host| host.process_user_ns + host.process_system_ns).sum();
    (length as f64 / 1e9, cpu as f64 / 1e9)
}

/// Peak resident memory of a process in MiB.
fn peak(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0)
}

/// Seconds of CPU time of a process so far; ticks are of 10 ms.
fn cpu(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields = fields.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().unwrap());
    fields.sum::<f64>() / 100.0
}

/// Seconds of CPU time of all children that have ended.
fn cpu_of_children() -> f64 {
    // SAFETY: all bits zero are a valid `rusage`, and the call fills it.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
