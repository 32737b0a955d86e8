//! `doctor`: what this host can do, found by trying.

use std::fs;
use std::path::Path;

use benchmaster_lab::{KernelChoice, choice};
use benchmaster_netem::namespace::capabilities;
use benchmaster_report::pages::{self, Ability};
use benchmaster_telemetry::environment;
use rustix::process::{Resource, getrlimit};

use crate::cli::DoctorArgs;
use crate::failure::{Result, Status};
use crate::output;

/// Clocks that are read without a system call.
const FAST_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
/// Open files that ten thousand connections need.
const FILES: u64 = 16_384;

pub(crate) fn doctor(args: &DoctorArgs) -> Result<Status> {
    let host = environment::collect(None);
    let abilities = abilities(host.clock_source, host.governor);
    output::document(args.json, &abilities, || pages::doctor(&host.host, &abilities))
}

fn abilities(clock: Option<String>, governor: Option<String>) -> Vec<Ability> {
    let tried = |what, purpose, outcome: std::result::Result<String, String>, fix: Option<&str>| {
        let works = outcome.is_ok();
        let found = outcome.unwrap_or_else(|reason| reason);
        Ability { what, purpose, works, found, fix: fix.filter(|_| !works).map(str::to_owned) }
    };
    let network = capabilities();
    let works = |outcome: std::result::Result<(), String>| outcome.map(|()| "works".to_owned());
    let machines = choice::choose(None, &KernelChoice::Packaged, &mut |_| {});
    let machines = machines.map(|back_end| back_end.to_string()).map_err(|error| error.to_string());
    let uring = benchmaster_workload::try_io_uring().map_err(|error| error.to_string());
    let file_systems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let module = Path::new("/lib/modules").join(release).join("kernel/fs/nfs");
    let mounts = match (file_systems.contains("\tnfs"), module.is_dir(), program("mount.nfs")) {
        (false, false, _) => Err("this kernel has no NFS client".to_owned()),
        (.., None) => Err("`mount.nfs` is not installed".to_owned()),
        (.., Some(path)) => Ok(path),
    };
    let files = getrlimit(Resource::Nofile).current;
    let clock = clock.unwrap_or_else(|| "unknown".into());
    let clock = if FAST_CLOCKS.contains(&clock.as_str()) { Ok(clock) } else { Err(clock) };
    let governor = match governor {
        Some(governor) if governor != "performance" => Err(governor),
        known => Ok(known.unwrap_or_else(|| "no scaling that can be set".into())),
    };
    let installed = |name: &str| program(name).ok_or_else(|| format!("`{name}` is not installed"));
    let connections = match files {
        Some(limit) if limit < FILES => Err(format!("{limit} open files")),
        Some(limit) => Ok(format!("{limit} open files")),
        None => Ok("any number of open files".into()),
    };
    vec![
        tried(
            "wire",
            "emulated networks with queues, in user space",
            works(network.wire),
            Some("sudo modprobe tun"),
        ),
        tried(
            "tc netem",
            "emulated networks by the kernel",
            works(network.netem),
            Some("sudo apt-get install iproute2; sudo modprobe sch_netem"),
        ),
        tried(
            "machines",
            "the lab: real Linux NFS clients and servers",
            machines,
            Some("sudo apt-get install user-mode-linux"),
        ),
        tried(
            "NFS mounts",
            "measuring through the kernel's client",
            mounts,
            Some("sudo apt-get install nfs-common"),
        ),
        tried(
            "io_uring",
            "`queue_depth` of directories",
            uring.map(|()| "works".to_owned()),
            Some("sudo sysctl kernel.io_uring_disabled=0"),
        ),
        tried("ssh", "clients on other hosts", installed("ssh"), Some("sudo apt-get install openssh-client")),
        tried(
            "srun",
            "clients as tasks of Slurm",
            installed("srun"),
            Some("sudo apt-get install slurm-client"),
        ),
        tried("fio", "comparing with its own results", installed("fio"), Some("sudo apt-get install fio")),
        tried(
            "clock",
            "timing each operation without a system call",
            clock,
            Some("echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        tried(
            "frequency",
            "processors that do not change their speed",
            governor,
            Some("sudo cpupower frequency-set -g performance"),
        ),
        tried("open files", "thousands of connections", connections, Some("ulimit -n 65536")),
    ]
}

/// Where a program is, if it is installed.
fn program(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where programs of root are.
    let more = ["/usr/sbin", "/sbin"].map(Into::into);
    let file = std::env::split_paths(&path).chain(more).map(|directory| directory.join(name));
    file.into_iter().find(|file| file.is_file()).map(|file| file.display().to_string())
}
