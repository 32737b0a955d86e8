//! What a process has used, from `/proc`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// CPU time of all threads of process `pid`, in nanoseconds as the scheduler counts them. Threads that have ended are not in
/// it: servers keep theirs.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let run: u64 = text.split(' ').next().and_then(|field| field.parse().ok()).context("schedstat")?;
        sum += run;
    }
    Ok(Duration::from_nanos(sum))
}

/// User and system time of process `pid` as `stat` has them: coarse, but with ended threads.
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
