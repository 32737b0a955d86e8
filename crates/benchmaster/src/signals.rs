//! The signals that end a command in good order.

use std::fs;
use std::os::raw::c_int;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// SIGINT, SIGTERM, and SIGHUP unless it is ignored, as below `nohup`.
pub(crate) fn ending() -> Vec<c_int> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = vec![SIGINT, SIGTERM];
    if !is_ignored(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether a process ignores a signal, from its `/proc/PID/status` (proc_pid_status(5)).
fn is_ignored(status: &str, signal: c_int) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_is_found_in_the_mask() {
        let status =
            "Name:\tsh\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGTERM));
        assert!(!is_ignored("", SIGHUP));
    }
}
