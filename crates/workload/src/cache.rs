//! Control of this host's page cache before a measurement, and how much of a fileset is in it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_client::options::{Cache, MountOptions};
use rustix::fs::{Advice, fadvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use serde::{Deserialize, Serialize};

use crate::files::{FileTable, PathBuffer};

/// What to do to the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CacheControl {
    #[default]
    Keep,
    /// Write back and drop everything through `/proc/sys/vm/drop_caches`; needs root.
    Drop,
    /// Flush the fileset's files and advise the kernel that they are not needed.
    Fadvise,
}

/// Why caches could not be put into the state asked for.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Not root, or the file system of `/proc` is read-only.
    #[error(
        "cannot drop caches through {path}: {source}; run as root, or use `cache = \"fadvise\"` or a `cache_hook`"
    )]
    Drop { path: &'static str, source: io::Error },
    /// A file of the set could not be advised on.
    #[error("cannot advise on `{}`: {source}", path.display())]
    Advise { path: PathBuf, source: io::Error },
    /// The hook could not be started, failed, or took too long.
    #[error("the cache hook `{command}` {problem}")]
    Hook {
        command: String,
        /// What happened, with the end of what it printed.
        problem: String,
    },
    /// The run was stopped meanwhile.
    #[error("the run was stopped")]
    Stopped,
}

const DROP: &str = "/proc/sys/vm/drop_caches";

/// Carries out `control` for the files of `tables` below `root`; says what was done.
///
/// # Errors
/// When it cannot be done, or `stop` was set meanwhile. Nothing else is tried instead.
pub fn control(
    control: CacheControl,
    root: &Path,
    tables: &[&FileTable],
    stop: &AtomicBool,
) -> Result<String, CacheError> {
    match control {
        CacheControl::Keep => Ok("nothing".into()),
        CacheControl::Drop => {
            let fail = |source| CacheError::Drop { path: DROP, source };
            let mut file = File::options().write(true).open(DROP).map_err(fail)?;
            // Only clean pages are dropped.
            rustix::fs::sync();
            file.write_all(b"3").map_err(fail)?;
            Ok(format!("sync, then wrote 3 to {DROP}"))
        }
        CacheControl::Fadvise => {
            let mut count = 0u64;
            for path in existing_files(root, tables, u64::MAX) {
                if stop.load(Ordering::Relaxed) {
                    return Err(CacheError::Stopped);
                }
                advise_unneeded(&path).map_err(|source| CacheError::Advise { path, source })?;
                count += 1;
            }
            Ok(format!("fdatasync and POSIX_FADV_DONTNEED on {count} files"))
        }
    }
}

fn advise_unneeded(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // Only clean pages are dropped.
    rustix::fs::fdatasync(&file)?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// What happens to the cache of the user-space client: its clients mount anew for every workload.
pub(crate) fn of_client(control: CacheControl, options: &MountOptions) -> String {
    match (options.cache, control) {
        (Cache::Off, CacheControl::Keep) => "nothing".into(),
        (Cache::Off, CacheControl::Drop | CacheControl::Fadvise) => {
            "nothing to drop: the client keeps no cache".into()
        }
        (Cache::Linux, _) => "the clients mounted again, with empty caches".into(),
    }
}

/// Runs the user's shell command with `BENCHMASTER_TARGET` set; says that it was run.
///
/// # Errors
/// When it fails, takes longer than `timeout`, or `stop` is set (it is then killed with everything it started).
pub fn run_hook(
    command: &str,
    target: &Path,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<String, CacheError> {
    let fail = |problem: String| CacheError::Hook { command: command.into(), problem };
    // An unnamed file, so that a hook that prints much never blocks on a pipe nobody reads.
    let output = rustix::fs::memfd_create("hook-output", rustix::fs::MemfdFlags::CLOEXEC).map(File::from);
    let output = output.map_err(|error| fail(format!("cannot be run: {error}")))?;
    let copy =
        || output.try_clone().map(Stdio::from).map_err(|error| fail(format!("cannot be run: {error}")));
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("BENCHMASTER_TARGET", target)
        .stdin(Stdio::null())
        .stdout(copy()?)
        .stderr(copy()?)
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(|error| fail(format!("cannot be started: {error}")))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if stop.load(Ordering::Relaxed) => {
                kill(&mut child);
                return Err(CacheError::Stopped);
            }
            Ok(None) if started.elapsed() < timeout => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                kill(&mut child);
                let limit = timeout.as_secs_f64();
                return Err(fail(format!("was killed after {limit} s (`hook_timeout`){}", printed(&output))));
            }
            Err(error) => return Err(fail(format!("was lost: {error}"))),
        }
    };
    if status.success() {
        Ok(format!("ran `{command}`"))
    } else {
        Err(fail(format!("failed ({status}){}", printed(&output))))
    }
}

/// Ends a hook with everything it started.
fn kill(child: &mut Child) {
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        // It may have ended just now.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

/// The end of what a hook printed.
fn printed(output: &File) -> String {
    const KEPT: u64 = 4096;
    let length = output.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(KEPT);
    let mut bytes = vec![0; (length - from) as usize];
    match output.read_exact_at(&mut bytes, from) {
        Ok(()) if length > 0 => format!(": {}", String::from_utf8_lossy(&bytes).trim()),
        _ => String::new(),
    }
}

/// Whether a directory lies on a mount of the kernel's NFS client.
pub(crate) fn is_nfs(directory: &Path) -> bool {
    const NFS: rustix::fs::FsWord = 0x6969;
    rustix::fs::statfs(directory).is_ok_and(|found| found.f_type == NFS)
}

/// Files looked at by [`cached_bytes`]; beyond that a sample stands for the rest. Looking opens a file, which on a network
/// file system warms caches of attributes that may just have been emptied: so only few.
const LOOKED_AT: u64 = 256;

/// Bytes of the existing files that are in the page cache; of large sets an estimate from evenly spaced files. `None`
/// when the kernel does not tell.
pub fn cached_bytes(root: &Path, tables: &[&FileTable]) -> Option<u64> {
    let (mut cached, mut seen) = (0u64, 0u64);
    for path in existing_files(root, tables, LOOKED_AT) {
        let (resident, size) = File::open(path).and_then(|file| resident(&file)).ok()?;
        cached += resident;
        seen += size;
    }
    let total = tables.iter().map(|table| table.existing().1).sum::<u64>();
    match seen {
        0 => Some(0),
        _ => Some((cached as f64 / seen as f64 * total.max(seen) as f64) as u64),
    }
}

/// Bytes of a file in the page cache, and its size.
fn resident(file: &File) -> io::Result<(u64, u64)> {
    /// Mapped at a time, so that a large file needs little address space and memory.
    const WINDOW: u64 = 1 << 30;
    let size = file.metadata()?.len();
    let page = rustix::param::page_size();
    let (mut pages, mut offset) = (0u64, 0);
    let mut map = vec![0u8; (size.min(WINDOW) as usize).div_ceil(page)];
    while offset < size {
        let length = (size - offset).min(WINDOW) as usize;
        // SAFETY: a fresh mapping at an address of the kernel's choice; it is never accessed, only asked about.
        let address = unsafe {
            mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), offset)?
        };
        // SAFETY: the mapping is `length` bytes long, and `map` has a byte for each of its pages.
        let result = unsafe { libc::mincore(address, length, map.as_mut_ptr()) };
        let error = io::Error::last_os_error();
        // SAFETY: the mapping made above, with nothing referring to it.
        unsafe { munmap(address, length)? };
        if result != 0 {
            return Err(error);
        }
        pages += map[..length.div_ceil(page)].iter().filter(|&&byte| byte & 1 == 1).count() as u64;
        offset += length as u64;
    }
    Ok(((pages * page as u64).min(size), size))
}

/// Paths of the existing files of `tables`, of each table at most about `limit`, evenly spaced.
fn existing_files<'t>(
    root: &'t Path,
    tables: &'t [&FileTable],
    limit: u64,
) -> impl Iterator<Item = PathBuf> + 't {
    tables.iter().flat_map(move |table| {
        let step = usize::try_from(table.files().div_ceil(limit).max(1)).unwrap_or(usize::MAX);
        let files = (0..table.files()).step_by(step).filter(|&file| table.exists(file));
        files.map(move |file| {
            let mut path = PathBuffer::new();
            table.file_path(table.at(file), &mut path);
            root.join(path.text())
        })
    })
}
