//! How much memory there is: what clients can make the server keep is a share of it.

use std::path::Path;

/// Bytes of memory that this process may use at most: the host's, or the limit of its control group.
pub(crate) fn of_host() -> u64 {
    let system = rustix::system::sysinfo();
    let total = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit.max(1)));
    total.min(of_control_group(Path::new("/sys/fs/cgroup")).unwrap_or(u64::MAX))
}

/// The limit of the control group that a container sees as its own; `None` without one.
fn of_control_group(directory: &Path) -> Option<u64> {
    std::fs::read_to_string(directory.join("memory.max")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_limits_the_memory() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(of_control_group(directory.path()), None);
        for (text, expected) in [("max\n", None), ("1073741824\n", Some(1 << 30))] {
            std::fs::write(directory.path().join("memory.max"), text).unwrap();
            assert_eq!(of_control_group(directory.path()), expected);
        }
        assert!(of_host() > 64 << 20);
    }
}
