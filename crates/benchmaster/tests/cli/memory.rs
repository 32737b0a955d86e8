//! Memory does not grow with the number of operations.

use std::fs;
use std::time::Duration;

use crate::place::{Place, stderr};

const MIB: u64 = 1 << 20;

/// Runs one workload of this many operations of 512 bytes; gives the operations done and the most memory used, from
/// start to report.
fn peak(operations: u64, trace: bool) -> (u64, u64) {
    let place = Place::in_memory();
    let bytes = operations * 512;
    place.write(
        "memory.toml",
        &format!(
            "[study]\nname = 'memory'\n[target]\npath = 'target'\n[run]\ninterval = '1s'\n\
             [design]\nreplicates = 1\n[workload.write]\nuse = 'sequential-write'\nfile_size = '64KiB'\nio_size = '512B'\n\
             duration = '10min'\nbytes = '{bytes}B'\ntrace = {trace}\n"
        ),
    );
    let mut child = place.command(&["run", "memory.toml", "-q"]).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0) * 1024);
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let results = place.results("results/memory");
    let done = results.runs[0].recordings[0].series.iter().map(|series| series.total.count).sum();
    (done, most)
}

/// Memory may differ by `slack`, which is much less than the additional operations would take if they were kept.
fn compare(few: u64, many: u64, trace: bool, slack: u64) {
    let (few_done, small) = peak(few, trace);
    let (many_done, large) = peak(many, trace);
    assert!(many_done >= 2 * few_done && few_done >= few, "{few_done} and {many_done} operations");
    let grown = large.saturating_sub(small);
    eprintln!("{few_done} operations: {} MiB, {many_done}: {} MiB", small / MIB, large / MIB);
    assert!(grown <= slack, "{few_done} operations took {small} bytes and {many_done} took {large}");
    assert!(large < 128 * MIB, "{large} bytes");
}

#[test]
#[ignore = "full tier: minutes"]
fn memory_does_not_grow_with_operations() {
    compare(250_000, 1_500_000, false, 8 * MIB);
}

#[test]
#[ignore = "full tier: minutes"]
fn traces_are_streamed_to_disk() {
    // 100 MB of records more in one. The buffers, 25 MB, need not be full in both: that depends on how fast they are written.
    compare(2_500_000, 5_000_000, true, 40 * MIB);
}
