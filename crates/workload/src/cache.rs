//! Control of this host's page cache before a measurement, and how much of a fileset is in it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::files::{FileTable, PathBuffer};

/// What to do to the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheControl {
    /// Nothing.
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
    #[error("cannot drop caches through {path}: {source}; run as root, or use `cache = \"fadvise\"` or a `cache_hook`")]
    Drop {
        /// The file written.
        path: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A file of the set could not be advised on.
    #[error("cannot advise on `{}`: {source}", path.display())]
    Advise {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The hook could not be started, failed, or took too long.
    #[error("the cache hook `{command}` {problem}")]
    Hook {
        /// The command.
        command: String,
        /// What happened, with what it printed.
        problem: String,
    },
}

const DROP: &str = "/proc/sys/vm/drop_caches";

/// Carries out `control` for the files of `tables` below `root`; says what was done.
///
/// # Errors
/// When it cannot be done. Nothing else is tried instead.
pub fn control(control: CacheControl, root: &Path, tables: &[&FileTable]) -> Result<String, CacheError> {
    match control {
        CacheControl::Keep => Ok("nothing".into()),
        CacheControl::Drop => {
            rustix::fs::sync();
            std::fs::write(DROP, "3").map_err(|source| CacheError::Drop { path: DROP, source })?;
            Ok(format!("sync, then wrote 3 to {DROP}"))
        }
        CacheControl::Fadvise => {
            let mut files = 0u64;
            for_each_file(root, tables, u64::MAX, |path, file| {
                let advise = || -> io::Result<()> {
                    rustix::fs::fdatasync(file)?;
                    fadvise(file, 0, None, Advice::DontNeed)?;
                    Ok(())
                };
                files += 1;
                advise().map_err(|source| CacheError::Advise { path: path.into(), source })
            })?;
            Ok(format!("fdatasync and POSIX_FADV_DONTNEED on {files} files"))
        }
    }
}

/// Runs the user's shell command with `BENCHMASTER_TARGET` set; says that it was run.
///
/// # Errors
/// When it fails or takes longer than `timeout` (it is then killed with everything it started).
pub fn run_hook(command: &str, target: &Path, timeout: Duration) -> Result<String, CacheError> {
    let fail = |problem: String| CacheError::Hook { command: command.into(), problem };
    let mut output = tempfile().map_err(|error| fail(format!("cannot be run: {error}")))?;
    let copy = |file: &File| file.try_clone().map(Stdio::from).map_err(|e| fail(format!("cannot be run: {e}")));
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("BENCHMASTER_TARGET", target)
        .stdin(Stdio::null())
        .stdout(copy(&output)?)
        .stderr(copy(&output)?)
        .current_dir("/")
        .process_group(0)
        .spawn()
        .map_err(|error| fail(format!("cannot be started: {error}")))?;
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() < timeout => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.wait();
                return Err(fail(format!("was killed after {} s (`hook_timeout`)", timeout.as_secs_f64())));
            }
            Err(error) => return Err(fail(format!("was lost: {error}"))),
        }
    };
    match status.success() {
        true => Ok(format!("ran `{command}`")),
        false => {
            let mut text = String::new();
            let read = io::Seek::rewind(&mut output).and_then(|()| io::Read::read_to_string(&mut output, &mut text));
            let text = if read.is_ok() { text.trim().to_owned() } else { String::new() };
            Err(fail(format!("failed ({status}): {text}")))
        }
    }
}

/// An unnamed file, so that a hook that prints much never blocks on a pipe nobody reads.
fn tempfile() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("hook-output", rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// Files looked at by [`cached_bytes`]; beyond that a sample stands for the rest.
const LOOKED_AT: u64 = 10_000;

/// Bytes of the existing files that are in the page cache; of large sets an estimate from evenly spaced files. `None`
/// when the kernel does not tell.
pub fn cached_bytes(root: &Path, tables: &[&FileTable]) -> Option<u64> {
    let (mut cached, mut seen, mut total) = (0u64, 0u64, 0u64);
    for table in tables {
        total += (0..table.files()).filter(|&file| table.exists(file)).map(|file| table.size(file)).sum::<u64>();
    }
    for_each_file(root, tables, LOOKED_AT, |_, file| -> io::Result<()> {
        let (resident, size) = resident(file)?;
        cached += resident;
        seen += size;
        Ok(())
    })
    .ok()?;
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
        let address = unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), offset)? };
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

fn for_each_file<E: From<io::Error>>(
    root: &Path,
    tables: &[&FileTable],
    limit: u64,
    mut visit: impl FnMut(&Path, &File) -> Result<(), E>,
) -> Result<(), E> {
    let mut path = PathBuffer::new();
    for table in tables {
        let step = usize::try_from(table.files().div_ceil(limit).max(1)).unwrap_or(1);
        for file in (0..table.files()).step_by(step).filter(|&file| table.exists(file)) {
            table.file_path(table.at(file), &mut path);
            let full = root.join(path.text());
            visit(&full, &File::open(&full)?)?;
        }
    }
    Ok(())
}

impl From<io::Error> for CacheError {
    fn from(source: io::Error) -> Self {
        Self::Advise { path: PathBuf::from("a file of the fileset"), source }
    }
}
