//! The Linux kernel's NFS server in a guest: its file system, exports, threads and grace period.
//!
//! Clients of every version mount [`EXPORT`]. It lies below a small file system in memory that is the root of what version
//! 4 shows, because the guest's own root, where it is a `ramfs`, cannot be exported.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::client;
use super::tools::{self, SHORT, ToolError};
use crate::config::{FileSystem, KnfsdConfig};

mod faults;
mod loops;
mod statistics;
pub(super) mod waking;

pub use faults::{ServerFault, ServerFaultError};

pub use statistics::{NfsClient, ServerStatistics, statistics};
pub use waking::WAKING_DISK;

/// What clients mount, in every version of NFS.
pub const EXPORT: &str = "/export";

/// The port of MOUNT.
pub const MOUNT_PORT: u16 = 20048;

/// The directory that is `/` for clients.
const ROOT: &str = "/srv/nfs";

/// Where the exported file system is mounted.
pub(super) const EXPORTED: &str = "/srv/nfs/export";

/// The server's files in the kernel.
const NFSD: &str = "/proc/fs/nfsd";

/// What the server was last set up as; of this boot, because /run is in memory.
const APPLIED: &str = "/run/benchmaster-knfsd.json";

/// First disks of machines: of user-mode Linux, of QEMU.
const DISKS: [&str; 2] = ["/dev/ubda", "/dev/vda"];

/// Largest READ and WRITE. The kernel's own choice depends on memory, and is 64 KiB for 512 MiB.
const MAX_IO: &str = "1048576";

/// Time for mkfs.
const MKFS: Duration = Duration::from_secs(120);

/// A grace period that took no longer was ended at once: it is the kernel's own work.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Leases that the kernel takes, in seconds.
const LEASES: std::ops::RangeInclusive<u64> = 10..=3600;

/// Most threads: more than a guest's memory can have.
const MOST_THREADS: u32 = 4096;

/// Why the kernel's server does not serve.
#[derive(Debug, thiserror::Error)]
pub enum KnfsdError {
    /// A setting that the kernel would not take.
    #[error("`{key}` is {value} for the lab's server: {needed}")]
    Setting {
        /// The field of [`KnfsdConfig`].
        key: &'static str,
        value: String,
        needed: &'static str,
    },
    /// Clients would lose what they have open.
    #[error(
        "the server cannot be set up again while clients hold files open, locked or delegated: {}; unmount there first",
        .0.join(", ")
    )]
    InUse(Vec<String>),
    /// The machine has no disk.
    #[error("the server machine has no disk for {0}; choose `tmpfs`, or bring the lab up again")]
    NoDisk(FileSystem),
    /// The machine's disk was made for less.
    #[error(
        "`disk_size` is {} MiB, but the server machine's disk has {} MiB; bring the lab up again with that size",
        .asked >> 20, .has >> 20
    )]
    SmallDisk {
        /// What was asked for, in bytes.
        asked: u64,
        /// What the disk has, in bytes.
        has: u64,
    },
    /// The grace period does not end.
    #[error(
        "the server's grace period has not ended after {} s, so that opens and locks would wait; is `nfsdcld` in the guest?",
        .0.as_secs()
    )]
    Grace(Duration),
    /// A program or a file of the kernel.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// What starting the server did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Whether the exported file system was made again.
    pub made: bool,
    /// Time waited for the end of the grace period; 0 when it could be ended at once.
    pub grace: Duration,
    pub threads: u32,
}

/// Makes the server what is asked for. Nothing happens when it is that already; when only threads change, it goes on
/// serving. The file system is made again when its type, size or options change, else files stay.
///
/// # Errors
/// [`KnfsdError`]. The server does not serve then, unless it is [`KnfsdError::Setting`] or [`KnfsdError::InUse`].
pub fn start(config: &KnfsdConfig) -> Result<Started, KnfsdError> {
    check(config)?;
    let applied = applied();
    if let Some(applied) = &applied
        && threads()? > 0
        && *applied == (KnfsdConfig { threads: applied.threads, ..config.clone() })
    {
        set_threads(config.threads)?;
        remember(config)?;
        return Ok(Started { made: false, grace: Duration::ZERO, threads: threads()? });
    }
    let held = statistics::holders()?;
    if !held.is_empty() {
        return Err(KnfsdError::InUse(held));
    }
    stop()?;
    // Until all is done, nothing is known of it.
    forget();
    prepare()?;
    let made = file_system(config, applied.as_ref())?;
    serve(config)?;
    let grace = end_grace(config.lease)?;
    remember(config)?;
    Ok(Started { made, grace, threads: threads()? })
}

/// What serving again after a power cut took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Why the file system could not be mounted, and what its repair said; `None`: it could.
    pub repaired: Option<String>,
    /// Whether there is a grace period in which clients reclaim what they held.
    pub grace: bool,
}

/// Serves again what was served before the machine lost power, from what is on its disk. The file system is not made
/// again, and the grace period is not ended. The next [`start`] makes it again: the cut may have damaged it.
///
/// # Errors
/// [`KnfsdError`]
pub fn recover(config: &KnfsdConfig) -> Result<Recovered, KnfsdError> {
    check(config)?;
    prepare()?;
    let device = disk(config)?;
    let options = mount_options(config);
    let repaired = match mount(config, &device, &options) {
        Ok(()) => None,
        Err(refused) => {
            let said = repair(config.file_system, &device)?;
            mount(config, &device, &options)?;
            Some(format!("{refused}\n{said}"))
        }
    };
    serve(config)?;
    // Clients of version 3 reclaim their locks when they hear that the server has restarted. It goes on in the
    // background.
    tools::run("sm-notify", &[], SHORT)?;
    let over = fs::read_to_string(Path::new(NFSD).join("v4_end_grace"));
    let grace = over.is_ok_and(|text| text.starts_with('N'));
    Ok(Recovered { repaired, grace })
}

/// Repairs a file system that cannot be mounted; what the program said.
fn repair(file_system: FileSystem, device: &str) -> Result<String, ToolError> {
    let (program, arguments): (_, &[&str]) = match file_system {
        // It exits with 1 when it has repaired everything.
        FileSystem::Ext4 => ("sh", &["-c", "e2fsck -fy \"$0\" || [ $? = 1 ]", device]),
        // The journal, which is what cannot be replayed, is thrown away.
        FileSystem::Xfs => ("xfs_repair", &["-L", device]),
        FileSystem::Tmpfs => return Ok(String::new()),
    };
    tools::run(program, arguments, MKFS)
}

/// Ends the threads and withdraws the exports. What clients hold is lost. Nothing happens when it does not serve.
///
/// # Errors
/// [`KnfsdError::Tool`].
pub fn stop() -> Result<(), KnfsdError> {
    if threads()? > 0 {
        set_threads(0)?;
    }
    if tools::mounted(NFSD)?.is_some() {
        tools::run("exportfs", &["-ua"], SHORT)?;
    }
    Ok(())
}

fn check(config: &KnfsdConfig) -> Result<(), KnfsdError> {
    let refused = |key, value: String, needed| Err(KnfsdError::Setting { key, value, needed });
    if config.threads == 0 || config.threads > MOST_THREADS {
        return refused("threads", config.threads.to_string(), "give 1 to 4096");
    }
    if !LEASES.contains(&config.lease.as_secs()) || config.lease.subsec_nanos() > 0 {
        return refused(
            "lease",
            format!("{:?}", config.lease),
            "the kernel takes whole seconds, 10 s to 1 h",
        );
    }
    if config.file_system == FileSystem::Xfs && config.disk_size < 300 << 20 {
        return refused("disk_size", format!("{} MiB", config.disk_size >> 20), "xfs needs 300 MiB");
    }
    if config.file_system == FileSystem::Tmpfs && !config.mkfs_options.is_empty() {
        return refused(
            "mkfs_options",
            config.mkfs_options.join(" "),
            "tmpfs is not made; choose `ext4` or `xfs`",
        );
    }
    Ok(())
}

fn applied() -> Option<KnfsdConfig> {
    serde_json::from_str(&fs::read_to_string(APPLIED).ok()?).ok()
}

fn remember(config: &KnfsdConfig) -> Result<(), ToolError> {
    // It has text keys and plain values only.
    tools::write(APPLIED, &serde_json::to_string(config).unwrap_or_default())
}

fn forget() {
    // It may not be there.
    let _ = fs::remove_file(APPLIED);
}

/// Threads that serve now; 0 also where the server's files are not mounted yet.
fn threads() -> Result<u32, ToolError> {
    let path = Path::new(NFSD).join("threads");
    if !path.exists() {
        return Ok(0);
    }
    Ok(tools::read(path)?.trim().parse().unwrap_or_default())
}

fn set_threads(count: u32) -> Result<(), ToolError> {
    tools::run("rpc.nfsd", &[&count.to_string()], SHORT).map(drop)
}

/// Module, mounts and services that the server needs however it is set up.
fn prepare() -> Result<(), ToolError> {
    client::modules(&["nfsd"])?;
    tools::mount("nfsd", c"", NFSD)?;
    client::services()?;
    for directory in ["/var/lib/nfs/nfsdcld", "/var/lib/nfs/v4recovery"] {
        tools::directory(directory)?;
    }
    // It keeps which clients held state. Without it, a server that is started makes all of them wait for the grace period.
    tools::service("nfsdcld", &[], "its process", || tools::runs("nfsdcld"))?;
    // Both exportfs and mountd look it up.
    tools::write("/etc/nfs.conf", &format!("[exports]\nrootdir={ROOT}\n"))?;
    tools::mount("tmpfs", c"size=1m,mode=755", ROOT)?;
    tools::directory(EXPORTED)?;
    let port = MOUNT_PORT.to_string();
    tools::service("rpc.mountd", &["--no-udp", "-p", &port], "its process", || tools::runs("rpc.mountd"))
}

/// Mounts what is exported; whether it was made again.
fn file_system(config: &KnfsdConfig, applied: Option<&KnfsdConfig>) -> Result<bool, KnfsdError> {
    let stored = |config: &KnfsdConfig| {
        let KnfsdConfig { file_system, disk_size, mkfs_options, mount_options, .. } = config.clone();
        (file_system, disk_size, mkfs_options, mount_options)
    };
    let there = tools::mounted(EXPORTED)?;
    if there.is_some() && applied.is_some_and(|applied| stored(applied) == stored(config)) {
        return Ok(false);
    }
    if there.is_some() {
        // What the server still writes back keeps it busy for a moment.
        let unmounted = tools::within(SHORT, || tools::run("umount", &[EXPORTED], SHORT).is_ok());
        if !unmounted {
            tools::run("umount", &[EXPORTED], SHORT)?;
        }
    }
    let device = disk(config)?;
    if config.file_system != FileSystem::Tmpfs {
        let command = mkfs(config, &device);
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (program, arguments) = words.split_first().unwrap_or((&"mkfs", &[]));
        tools::run(program, arguments, MKFS)?;
    }
    mount(config, &device, &mount_options(config))?;
    Ok(true)
}

/// The disk that is exported, with its driver and that of the file system; a word that means nothing for tmpfs.
fn disk(config: &KnfsdConfig) -> Result<String, KnfsdError> {
    if config.file_system == FileSystem::Tmpfs {
        return Ok("export".to_owned());
    }
    loops::attach()?;
    let disk = DISKS.into_iter().find(|disk| Path::new(disk).exists()).map(str::to_owned);
    let device = disk.or_else(loops::attached).ok_or(KnfsdError::NoDisk(config.file_system))?;
    let has = size(&device)?;
    if config.disk_size > has {
        return Err(KnfsdError::SmallDisk { asked: config.disk_size, has });
    }
    waking::start();
    client::modules(&[&config.file_system.to_string()])?;
    Ok(device)
}

/// Mounts what is exported, writable for everyone.
fn mount(config: &KnfsdConfig, device: &str, options: &str) -> Result<(), ToolError> {
    let kind = config.file_system.to_string();
    let options = if options.is_empty() { vec![] } else { vec!["-o", options] };
    let arguments = [&["-t", &kind], &options[..], &[device, EXPORTED]].concat();
    tools::run("mount", &arguments, SHORT)?;
    tools::run("chmod", &["777", EXPORTED], SHORT).map(drop)
}

/// The size of a disk, in bytes. The kernel counts sectors of 512.
fn size(device: &str) -> Result<u64, ToolError> {
    let sectors = tools::read(device.replacen("/dev", "/sys/class/block", 1) + "/size")?;
    Ok(sectors.trim().parse::<u64>().unwrap_or_default() * 512)
}

/// Mounts an empty file system in memory as what is exported, for another server than the kernel's.
pub(super) fn empty_export() -> Result<(), ToolError> {
    tools::mount("tmpfs", c"size=1m,mode=755", ROOT)?;
    tools::mount("tmpfs", c"size=80%,mode=777", EXPORTED)
}

/// The command that makes the file system on a disk. Options of the study come last, so that they win.
fn mkfs(config: &KnfsdConfig, device: &str) -> Vec<String> {
    // The disk is a sparse file: to discard its blocks one by one takes seconds, and they are zeros.
    let fixed: &[&str] = match config.file_system {
        FileSystem::Ext4 => &["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=1"],
        FileSystem::Xfs => &["mkfs.xfs", "-q", "-f", "-K"],
        FileSystem::Tmpfs => &[],
    };
    let mut command: Vec<String> = fixed.iter().map(|&word| word.to_owned()).collect();
    command.extend(config.mkfs_options.iter().cloned());
    match config.file_system {
        FileSystem::Xfs => command.extend(["-d".into(), format!("size={}", config.disk_size), device.into()]),
        FileSystem::Ext4 => command.extend([device.into(), format!("{}k", config.disk_size >> 10)]),
        FileSystem::Tmpfs => {}
    }
    command
}

fn mount_options(config: &KnfsdConfig) -> String {
    let fixed = match config.file_system {
        FileSystem::Tmpfs => "size=80%",
        // Else a thread of the kernel writes inode tables beside the measurement.
        FileSystem::Ext4 => "noinit_itable",
        FileSystem::Xfs => "",
    };
    let both = [fixed, config.mount_options.as_str()];
    both.into_iter().filter(|options| !options.is_empty()).collect::<Vec<_>>().join(",")
}

fn exports(config: &KnfsdConfig) -> String {
    let sync = if config.sync { "sync" } else { "async" };
    format!("{EXPORT} *(rw,no_root_squash,no_subtree_check,fsid=1,insecure,{sync})\n")
}

fn serve(config: &KnfsdConfig) -> Result<(), ToolError> {
    let nfsd = Path::new(NFSD);
    let lease = config.lease.as_secs().to_string();
    // None of these can be changed while threads serve.
    tools::write(nfsd.join("nfsv4leasetime"), &lease)?;
    tools::write(nfsd.join("nfsv4gracetime"), &lease)?;
    tools::write(nfsd.join("max_block_size"), MAX_IO)?;
    // A delegation is a lease of the server's own file system.
    tools::write("/proc/sys/fs/leases-enable", if config.delegations { "1" } else { "0" })?;
    tools::write("/etc/exports", &exports(config))?;
    tools::run("exportfs", &["-ra"], SHORT)?;
    wait_for_the_first_second();
    set_threads(config.threads)
}

/// Clients of version 4 that come while the kernel's clock shows no whole second are taken for expired from then on.
fn wait_for_the_first_second() {
    let left = Duration::from_secs(1).saturating_sub(super::facts::uptime());
    std::thread::sleep(left);
}

/// Ends the grace period, of version 4 and of the lock manager: there is nothing to reclaim. The time waited, if it could
/// not be ended at once.
///
/// Before it is over opens and locks wait, and no delegations are given.
fn end_grace(lease: Duration) -> Result<Duration, KnfsdError> {
    let begun = Instant::now();
    let limit = lease * 2 + SHORT;
    let files = [Path::new(NFSD).join("v4_end_grace"), "/proc/fs/lockd/nlm_end_grace".into()];
    let over = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.starts_with('Y'));
    for path in files.iter().filter(|path| path.exists()) {
        let ended = tools::within(limit, || {
            // The kernel refuses while it is starting, and once it is over.
            over(path) || (tools::write(path, "Y").is_ok() && over(path))
        });
        if !ended {
            return Err(KnfsdError::Grace(limit));
        }
    }
    Ok(Some(begun.elapsed()).filter(|waited| *waited > AT_ONCE).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(file_system: FileSystem) -> KnfsdConfig {
        KnfsdConfig { file_system, ..KnfsdConfig::default() }
    }

    #[test]
    fn settings_that_the_kernel_refuses_are_named() {
        let refused = |config: KnfsdConfig| check(&config).unwrap_err().to_string();
        check(&KnfsdConfig::default()).unwrap();
        let none = refused(KnfsdConfig { threads: 0, ..KnfsdConfig::default() });
        assert!(none.contains("`threads` is 0"), "{none}");
        for lease in [Duration::from_secs(5), Duration::from_millis(10_500), Duration::from_secs(3601)] {
            let short = refused(KnfsdConfig { lease, ..KnfsdConfig::default() });
            assert!(short.contains("`lease`") && short.contains("whole seconds"), "{short}");
        }
        let small = refused(KnfsdConfig { disk_size: 200 << 20, ..config(FileSystem::Xfs) });
        assert!(small.contains("200 MiB") && small.contains("xfs"), "{small}");
        let made = refused(KnfsdConfig { mkfs_options: vec!["-O".into()], ..KnfsdConfig::default() });
        assert!(made.contains("mkfs_options"), "{made}");
    }

    #[test]
    fn file_systems_are_made_in_the_size_asked_for() {
        let mut ext4 = config(FileSystem::Ext4);
        ext4.mkfs_options = vec!["-O".into(), "^has_journal".into()];
        let words = mkfs(&ext4, "/dev/ubda").join(" ");
        assert!(words.starts_with("mkfs.ext4 -q -F"), "{words}");
        assert!(words.ends_with("-O ^has_journal /dev/ubda 1048576k"), "{words}");
        let words = mkfs(&config(FileSystem::Xfs), "/dev/vda").join(" ");
        assert!(words.ends_with("-d size=1073741824 /dev/vda"), "{words}");
    }

    #[test]
    fn options_of_the_study_come_behind_ours() {
        let mut ext4 = config(FileSystem::Ext4);
        assert_eq!(mount_options(&ext4), "noinit_itable");
        ext4.mount_options = "data=journal".into();
        assert_eq!(mount_options(&ext4), "noinit_itable,data=journal");
        assert_eq!(mount_options(&config(FileSystem::Xfs)), "");
        assert!(exports(&ext4).contains(",sync)"));
        assert!(exports(&KnfsdConfig { sync: false, ..ext4 }).contains(",async)"));
    }
}
