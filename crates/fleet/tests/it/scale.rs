//! Many real processes on this machine.

use std::time::{Duration, Instant};

use benchmaster_fleet::controller::{Fleet, FleetConfig, FleetError};
use benchmaster_record::model::OperationKind;
use benchmaster_telemetry::process::cpu_time;
use benchmaster_workload::target::Target;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{NEVER, config, job, parent, total};

/// What a process has in memory of its own share, in MiB.
fn memory(pid: u32) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).map_or(0.0, |kib: f64| kib / 1024.0)
}

/// They end in one result; then one aggregator is killed, which is named, and there is none.
pub(crate) fn a_thousand_processes_end_in_one_result() {
    const AGENTS: u32 = 1_000;
    let patience = Duration::from_secs(60);
    let config = FleetConfig { patience, launch_timeout: patience * 5, ..config(AGENTS, AGENTS) };
    let began = Instant::now();
    let mut fleet = Fleet::launch(&config, &NEVER, &mut |note| println!("{note}")).unwrap();
    println!("launched in {:.1} s", began.elapsed().as_secs_f64());
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fleet.open("local", &Target::from(directory.path()), "many").unwrap();
    let job = job(r#"
        until = { iterations = 10 }
        filesets.data = { files = 1, size = "4KiB" }
        [[groups]]
        name = "g"
        flow = [{ op = "stat", file = "own" }]
    "#);
    let (began, before) = (Instant::now(), cpu_time());
    let recording = fleet.perform("local", &job, None, &NEVER, &mut |_| {}).unwrap();
    let after = cpu_time();
    println!(
        "a run in {:.1} s, {:.3} s of processor time of the controller, spread {:.1} ms; an agent has {:.1} MiB, an \
         aggregator {:.1}, the controller {:.1}",
        began.elapsed().as_secs_f64(),
        (after.0 + after.1 - before.0 - before.1) as f64 / 1e9,
        recording.start.unwrap().spread_ns as f64 / 1e6,
        memory(fleet.members()[0].pid),
        memory(parent(fleet.members()[0].pid)),
        memory(std::process::id()),
    );
    assert_eq!(total(&recording, OperationKind::Stat), 10 * u64::from(AGENTS));
    assert_eq!(recording.agents.len(), AGENTS as usize);
    assert_eq!(recording.workers.len(), AGENTS as usize);
    assert_eq!(recording.filesets[0].files, u64::from(AGENTS));
    let merged = recording.series[0].total.latency.decode().unwrap();
    assert_eq!(merged.len(), 10 * u64::from(AGENTS));

    let aggregator = parent(fleet.members()[500].pid);
    let mut killed = false;
    let result = fleet.perform("local", &job, None, &NEVER, &mut |_| {
        if !killed {
            kill_process(Pid::from_raw(aggregator.cast_signed()).unwrap(), Signal::KILL).unwrap();
            killed = true;
        }
    });
    let Err(FleetError::Lost { agent, reason }) = result else { panic!("{killed}: {result:?}") };
    assert_eq!(agent, "aggregator-8 (local-442 to local-504)", "{reason}");
}
