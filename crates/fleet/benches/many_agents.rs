//! What many agents cost, all led by the controller (`flat`) and behind aggregators: the time to launch them, to take them through a run, how well they begin together, and the
//! controller's processor time and memory.
//!
//! `cargo bench -p benchmaster-fleet --bench many_agents [-- AGENTS ...]`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

#[path = "common/fleet.rs"]
mod fleet;

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use benchmaster_fleet::tree::FAN_OUT;
use benchmaster_telemetry::process::cpu_time;
use benchmaster_workload::target::Target;

/// Runs of each fleet.
const RUNS: u32 = 3;

fn main() {
    if fleet::is_agent() {
        return;
    }
    let mut counts: Vec<u32> =
        std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if counts.is_empty() {
        counts = vec![10, 100, 500];
    }
    println!(
        "{:>6} {:>5} {:>9} {:>9} {:>10} {:>10} {:>11} {:>11} {:>10} {:>9} {:>9}",
        "agents",
        "led",
        "launch s",
        "open s",
        "run s",
        "spread ms",
        "ctrl cpu s",
        "ctrl cores",
        "ctrl MiB",
        "agent MiB",
        "end s"
    );
    for agents in counts {
        for (led, fan_out) in [("tree", FAN_OUT), ("flat", u32::MAX), ("tree", FAN_OUT), ("flat", u32::MAX)] {
            measure(agents, led, fan_out);
        }
    }
}

fn measure(agents: u32, led: &str, fan_out: u32) {
    let never = AtomicBool::new(false);
    // The peak of memory counts from now on.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let began = Instant::now();
    let mut controller = fleet::launch(agents, fan_out);
    let launched = began.elapsed();
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let began = Instant::now();
    controller.open("local", &Target::from(place.path()), "many").unwrap();
    let opened = began.elapsed();
    let job = fleet::job(r#"flow = [{ op = "stat", file = "own" }]"#);
    let (mut took, mut spread, mut cpu) = (Duration::ZERO, 0, 0);
    for _ in 0..RUNS {
        let (began, before) = (Instant::now(), cpu_time());
        let recording = controller.perform("local", &job, None, &never, &mut |_| {}).unwrap();
        took += began.elapsed();
        let after = cpu_time();
        cpu += after.0 + after.1 - before.0 - before.1;
        spread = spread.max(recording.start.unwrap().spread_ns);
    }
    let pid = controller.members()[0].pid;
    let (own, agent) = (memory("self", "VmHWM"), memory(&pid.to_string(), "VmRSS"));
    let began = Instant::now();
    controller.remove().unwrap();
    controller.end().unwrap();
    let cpu = Duration::from_nanos(cpu);
    println!(
        "{agents:>6} {led:>5} {:>9.2} {:>9.2} {:>10.2} {:>10.3} {:>11.3} {:>11.3} {own:>10.1} {agent:>9.1} {:>9.2}",
        launched.as_secs_f64(),
        opened.as_secs_f64(),
        (took / RUNS).as_secs_f64(),
        spread as f64 / 1e6,
        (cpu / RUNS).as_secs_f64(),
        cpu.as_secs_f64() / took.as_secs_f64(),
        began.elapsed().as_secs_f64(),
    );
}

/// A line of `/proc/PID/status`, in MiB.
fn memory(process: &str, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|text| text.starts_with(line)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}
