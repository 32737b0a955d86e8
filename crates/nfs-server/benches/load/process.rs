//! What a process has used, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time of process `pid`, threads that have ended included (servers start and end them as they like); in clock ticks.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    Ok(user_and_system(pid)?.iter().sum())
}

/// User and system time of process `pid`.
pub(crate) fn user_and_system(pid: u32) -> Result<[Duration; 2]> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name may contain anything, its closing parenthesis is the last.
    let fields: Vec<&str> = text.rsplit(") ").next().context("stat")?.split(' ').collect();
    let ticks = |index: usize| -> Result<Duration> {
        let ticks: u64 = fields.get(index).context("stat")?.parse()?;
        Ok(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
    };
    Ok([ticks(11)?, ticks(12)?])
}

/// Resident memory of process `pid`, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages: u64 = text.split(' ').nth(1).context("statm")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}
