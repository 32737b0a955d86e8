//! User-mode Linux: the kernel as a process.

mod preload;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{StatVfsMountFlags, statfs, statvfs};

use crate::machine::{MachineError, MachineSpec};
use crate::root;

/// Whether it works on this host; why not.
pub(crate) fn available(virtual_time: bool) -> Result<(), String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("user-mode Linux exists for x86-64 only".into());
    }
    memory_directory(0)
        .and_then(|_| preload::preload(virtual_time, false))
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The command that runs a machine, whose clock with virtual time moves only when everything in it waits.
pub(crate) fn command(machine: &MachineSpec, virtual_time: bool) -> Result<Command, MachineError> {
    let failed = |what: &Path| machine.failed(what.display().to_string());
    // What an earlier machine of this name left.
    let state = state_directory(machine);
    match fs::remove_dir_all(&state) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&state)(error)),
        _ => {}
    }
    let mut command = Command::new(&machine.kernel.file);
    command.args(arguments(machine, virtual_time)?);
    // It takes a file there as its memory.
    command.env("TMPDIR", memory_directory(machine.memory).map_err(failed(Path::new("memory")))?);
    let libraries = preload::preload(virtual_time, machine.disk_log.is_some())
        .map_err(failed(Path::new("libraries to preload")))?;
    if !libraries.is_empty() {
        command.env("LD_PRELOAD", libraries);
    }
    if let (Some(files), Some(disk)) = (&machine.disk_log, machine.disks.first()) {
        command.env("BENCHMASTER_DISK", disk);
        command.env("BENCHMASTER_DISK_LOG_0", &files[0]).env("BENCHMASTER_DISK_LOG_1", &files[1]);
    }
    if virtual_time {
        command.current_dir(&machine.share);
        determine(&mut command);
    }
    Ok(command)
}

/// Words of the kernel's command line with virtual time: what is drawn at random or depends on when it is would show in how
/// often programs read the clock, and so in latencies.
const DETERMINED: [&str; 3] = ["time-travel=inf-cpu", "norandmaps", "time-travel-start=1767225600"];

/// Where user-mode Linux with virtual time runs, in words that are the same wherever that is: its share.
const WORKING_DIRECTORY: &str = "/proc/self/cwd";

/// Where user-mode Linux has its process id and its management console.
fn state_directory(machine: &MachineSpec) -> PathBuf {
    machine.console.with_file_name("uml")
}

/// Gives the process the same addresses in every run: how much memory the guest has depends on them.
fn determine(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    let same_addresses = || {
        const NOW: libc::c_ulong = 0xffff_ffff;
        // SAFETY: the call takes numbers, and changes nothing but flags of the calling process.
        match unsafe { libc::personality(NOW) } {
            flags @ 0.. => {
                let flags = flags as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
                // SAFETY: as above.
                let set = unsafe { libc::personality(flags) };
                if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
            }
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: between fork and exec only two system calls are made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(same_addresses) };
}

/// The kernel's command line.
fn arguments(machine: &MachineSpec, virtual_time: bool) -> Result<Vec<String>, MachineError> {
    let program =
        root::program().map_err(|error| machine.failed("its program".into())(io::Error::other(error)))?;
    // The guest's kernel stirs its command line into its random numbers, and temporary directories have random names.
    let share = if virtual_time { Path::new(WORKING_DIRECTORY) } else { &machine.share };
    let state = state_directory(machine);
    let state = match state.strip_prefix(&machine.share) {
        Ok(below) if virtual_time => share.join(below),
        _ => state,
    };
    let mut words = vec![
        format!("mem={}M", machine.memory >> 20),
        format!("initrd={}", machine.word(&machine.image)?),
        format!("uml_dir={}/", machine.word(&state)?),
        format!("umid={}", machine.name),
        // Only what is written to the console comes out, and nothing goes in.
        "con=null".into(),
        "con0=null,fd:1".into(),
        // Warnings, and worse.
        "loglevel=5".into(),
        "panic=-1".into(),
        "noreboot".into(),
        format!("lab_program={}", machine.word(&program)?),
        format!("lab_share={}", machine.word(share)?),
    ];
    if virtual_time {
        words.extend(DETERMINED.map(str::to_owned));
    }
    for (number, interface) in machine.interfaces.iter().enumerate() {
        let (tap, mac) = (&interface.tap, interface.mac);
        words.push(format!("vec{number}:transport=tap,ifname={tap},mac={mac},depth=64,gro=1"));
    }
    for (number, disk) in machine.disks.iter().enumerate() {
        words.push(format!("ubd{number}={}", machine.word(disk)?));
    }
    words.extend(machine.words());
    Ok(words)
}

/// Where the memory of machines is best: in memory.
pub(crate) fn memory_directory(size: u64) -> io::Result<PathBuf> {
    const TMPFS: i64 = 0x0102_1994;
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let candidates = [Some("/dev/shm".into()), runtime, Some("/run".into()), Some("/tmp".into())];
    let usable = |path: &PathBuf| {
        let (Ok(kind), Ok(stat)) = (statfs(path), statvfs(path)) else { return None };
        let fits = !stat.f_flag.contains(StatVfsMountFlags::NOEXEC)
            && stat.f_bavail.saturating_mul(stat.f_frsize) > size
            && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        fits.then_some(kind.f_type == TMPFS)
    };
    let rated: Vec<(bool, PathBuf)> =
        candidates.into_iter().flatten().filter_map(|path| Some((usable(&path)?, path))).collect();
    let best = rated.iter().find(|(in_memory, _)| *in_memory).or(rated.first());
    best.map(|(_, path)| path.clone()).ok_or_else(|| {
        let size = size >> 20;
        io::Error::other(format!(
            "none of /dev/shm, $XDG_RUNTIME_DIR, /run and /tmp has {size} MiB free, is writable and allows programs (noexec)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_machines_has_a_place() {
        assert!(memory_directory(1 << 20).unwrap().is_dir());
        assert!(memory_directory(u64::MAX).unwrap_err().to_string().contains("MiB free"));
    }
}
