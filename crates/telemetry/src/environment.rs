//! Describes the environment of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub use benchmaster_record::environment::{Environment, TargetEnvironment};

use crate::facts::{self, VirtualizationClues};
use crate::fs::free_bytes;
use crate::{host, mountinfo};

/// Kernel settings that change what a file system measurement gives. Those a kernel does not have are left out.
const SYSCTLS: &str = include_str!("environment/sysctls.txt");

/// Describes this host, and the file system of `target` if it is a directory. Never fails: what the system does not
/// report is `None`.
pub fn collect(target: Option<&Path>) -> Environment {
    let system = rustix::system::uname();
    let [name, release, version, machine] =
        [system.sysname(), system.release(), system.version(), system.machine()]
            .map(|text| text.to_string_lossy());
    let memory = host::memory().ok();
    let cpuinfo = text("/proc/cpuinfo");
    // What the standard library counts takes quotas into account as well: the second best answer to both.
    let counted = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let online = text("/sys/devices/system/cpu/online").and_then(|list| facts::processors_in_list(&list));
    let allowed = text("/proc/self/status").and_then(|status| facts::processors_allowed(&status));
    Environment {
        host: system.nodename().to_string_lossy().into_owned(),
        benchmaster: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: format!("{name} {release} {version} {machine}"),
        distribution: ["/etc/os-release", "/usr/lib/os-release"]
            .into_iter()
            .find_map(text)
            .and_then(|release| facts::distribution(&release)),
        cpu_model: cpuinfo.as_deref().and_then(facts::cpu_model),
        processors: online.unwrap_or(counted),
        processors_allowed: allowed.unwrap_or(counted),
        memory_total: memory.map(|memory| memory.total),
        memory_available: memory.and_then(|memory| memory.available),
        clock_source: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtualization: virtualization(cpuinfo.as_deref()),
        governor: governor(Path::new("/sys/devices/system/cpu/cpufreq")),
        target: target.and_then(target_environment),
        sysctls: sysctls(Path::new("/proc/sys")),
    }
}

/// Describes the file system of `path`; a path that does not exist yet is on that of its nearest existing parent. `None`
/// when the system does not report it.
pub fn target_environment(path: &Path) -> Option<TargetEnvironment> {
    let absolute = std::path::absolute(path).ok()?;
    let real = absolute.ancestors().find_map(|ancestor| ancestor.canonicalize().ok())?;
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    let mounts = mountinfo::parse(&String::from_utf8_lossy(&mounts));
    let mount = mountinfo::mount_of(&mounts, &real)?;
    let space = free_bytes(&real).ok()?;
    let read_ahead = read_ahead_of(&mount.device);
    Some(TargetEnvironment {
        path: absolute.display().to_string(),
        mount_point: mount.mount_point.display().to_string(),
        source: mount.source.clone(),
        file_system: mount.file_system.clone(),
        options: mount.all_options(),
        mount_line: mount.line.clone(),
        total_bytes: space.total,
        free_bytes: space.free,
        free_files: space.free_files,
        read_ahead_kib: read_ahead,
    })
}

/// Largest readahead in KiB of the mount on which `path` lies; `None` where it has none.
pub fn read_ahead_kib(path: &Path) -> Option<u64> {
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    let mounts = mountinfo::parse(&String::from_utf8_lossy(&mounts));
    read_ahead_of(&mountinfo::mount_of(&mounts, &path.canonicalize().ok()?)?.device)
}

fn read_ahead_of(device: &str) -> Option<u64> {
    word(Path::new("/sys/class/bdi").join(device).join("read_ahead_kb"))?.parse().ok()
}

fn virtualization(cpuinfo: Option<&str>) -> Option<String> {
    let machine = ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(|name| text(Path::new("/sys/class/dmi/id").join(name)))
        .collect::<String>();
    facts::virtualization(VirtualizationClues {
        cpuinfo,
        machine: Some(&machine),
        hypervisor: text("/sys/hypervisor/type").as_deref(),
        clock_sources: text("/sys/devices/system/clocksource/clocksource0/available_clocksource").as_deref(),
        cgroup: text("/proc/self/cgroup").as_deref(),
        systemd_container: text("/run/systemd/container").as_deref(),
        dockerenv: Path::new("/.dockerenv").exists(),
        containerenv: Path::new("/run/.containerenv").exists(),
    })
}

/// The governor of all processors; several if they differ.
fn governor(policies: &Path) -> Option<String> {
    let policies = fs::read_dir(policies).ok()?.filter_map(Result::ok);
    let governors: BTreeSet<_> =
        policies.filter_map(|policy| word(policy.path().join("scaling_governor"))).collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
}

fn sysctls(root: &Path) -> BTreeMap<String, String> {
    let value = |name: &str| {
        let path: PathBuf = root.join(name.replace('.', "/"));
        let words = text(path)?.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        Some((name.to_owned(), words))
    };
    SYSCTLS.lines().filter_map(value).collect()
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn word(path: impl AsRef<Path>) -> Option<String> {
    Some(text(path)?.trim().to_owned()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_described() {
        let directory = tempfile::tempdir().unwrap();
        let found = collect(Some(directory.path()));
        assert!(found.kernel.starts_with("Linux "), "{}", found.kernel);
        assert!(!found.host.is_empty() && found.processors > 0 && found.processors_allowed > 0);
        assert!(found.processors_allowed <= found.processors);
        assert!(found.memory_total.unwrap() > 0);
        assert!(found.sysctls.contains_key("vm.dirty_ratio"));
        assert_eq!(found.sysctls["net.ipv4.tcp_rmem"].split(' ').count(), 3);
        let target = found.target.clone().unwrap();
        assert!(directory.path().canonicalize().unwrap().starts_with(&target.mount_point));
        assert!(target.total_bytes >= target.free_bytes && target.total_bytes > 0);
        assert!(target.mount_line.contains(&target.file_system));

        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&text).unwrap(), found);
    }

    #[test]
    fn links_are_followed_and_missing_paths_lie_on_their_parents() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/proc", &link).unwrap();
        assert_eq!(target_environment(&link).unwrap().file_system, "proc");
        let missing = directory.path().join("not/yet/there");
        let (there, here) =
            (target_environment(&missing).unwrap(), target_environment(directory.path()).unwrap());
        assert_eq!(there.mount_line, here.mount_line);
        assert_eq!(there.path, missing.display().to_string());
    }

    #[test]
    fn absent_settings_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("net/ipv4")).unwrap();
        fs::create_dir_all(root.path().join("sunrpc")).unwrap();
        fs::write(root.path().join("net/ipv4/tcp_wmem"), "4096\t16384\t4194304\n").unwrap();
        fs::write(root.path().join("sunrpc/tcp_slot_table_entries"), "2\n").unwrap();
        let expected = [("net.ipv4.tcp_wmem", "4096 16384 4194304"), ("sunrpc.tcp_slot_table_entries", "2")];
        assert_eq!(sysctls(root.path()), expected.map(|(name, value)| (name.into(), value.into())).into());
        assert!(SYSCTLS.lines().is_sorted());
    }

    #[test]
    fn governors_that_differ_are_all_listed() {
        let root = tempfile::tempdir().unwrap();
        for (policy, governor) in
            [("policy0", "powersave\n"), ("policy1", "performance\n"), ("policy2", "powersave\n")]
        {
            fs::create_dir(root.path().join(policy)).unwrap();
            fs::write(root.path().join(policy).join("scaling_governor"), governor).unwrap();
        }
        assert_eq!(governor(root.path()).as_deref(), Some("performance, powersave"));
        assert_eq!(governor(&root.path().join("none")), None);
    }
}
