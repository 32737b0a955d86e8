//! A lab's directory: its lock, what is known of it, its socket, its consoles.

use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::LabConfig;

/// How often, and after which time, a lock that is held is tried again.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(5);

/// Where labs of this user are: below `$XDG_RUNTIME_DIR`, root's below `/run`, else below `~/.cache`.
pub(crate) fn root() -> PathBuf {
    let set = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let parent = set("XDG_RUNTIME_DIR").or_else(|| {
        if rustix::process::geteuid().is_root() {
            Some("/run".into())
        } else {
            Some(set("HOME")?.join(".cache"))
        }
    });
    parent.unwrap_or_else(env::temp_dir).join("benchmaster")
}

/// What is known of a lab that is up, in `lab.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) config: LabConfig,
    /// Process 1 of the lab, as the process that brought it up saw it.
    pub(crate) process: u32,
    /// When that process started, in ticks since the host's boot: another process may have the number later.
    pub(crate) started: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn of(name: &str) -> Self {
        Self(root().join(format!("lab-{name}")))
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    pub(crate) fn share(&self) -> PathBuf {
        self.0.join("share")
    }

    pub(crate) fn machine(&self, name: &str) -> PathBuf {
        self.0.join("machines").join(name)
    }

    pub(crate) fn console(&self, name: &str) -> PathBuf {
        self.machine(name).join("console.log")
    }

    /// Makes it, for this user alone, and takes its lock; `None`: a lab holds it.
    pub(crate) fn take(&self) -> io::Result<Option<File>> {
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        make(&self.0)?;
        // It may have been there, with other rights.
        fs::set_permissions(&self.0, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).read(true).open(self.lock())?;
        for _ in 0..LOOKS {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(lock)),
                // Somebody may only be looking whether it is held.
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Whether a lab holds it.
    pub(crate) fn is_held(&self) -> bool {
        let lock = OpenOptions::new().read(true).write(true).open(self.lock());
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Removes what an earlier lab left in it, but the lock.
    pub(crate) fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else if entry.path() != self.lock() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes everything but what the machines and the supervisor said.
    pub(crate) fn keep_logs(&self) {
        // What cannot be removed is removed with the next lab of the name.
        let disks =
            ["disk", "wakes", "state", "log.0", "log.1"].map(|disk| self.machine("server").join(disk));
        for file in disks.into_iter().chain([self.socket(), self.0.join("lab.json"), self.lock()]) {
            let _ = fs::remove_file(file);
        }
        let _ = fs::remove_dir_all(self.share());
    }

    /// Removes it, and the directory of all labs if it was the last.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(parent) = self.0.parent() {
            // Others may be in it.
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    }

    pub(crate) fn known(&self) -> Option<Known> {
        serde_json::from_slice(&fs::read(self.0.join("lab.json")).ok()?).ok()
    }

    /// Writes what is known, complete or not at all.
    pub(crate) fn make_known(&self, known: &Known) -> io::Result<()> {
        let new = self.0.join("lab.json.new");
        fs::write(&new, serde_json::to_vec_pretty(known)?)?;
        fs::rename(new, self.0.join("lab.json"))
    }
}

/// The directories of all labs of this user.
pub(crate) fn all() -> Vec<(String, Directory)> {
    let entries = fs::read_dir(root()).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?.strip_prefix("lab-")?.to_owned();
            Some((name, Directory(entry.path())))
        })
        .collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// When a process started, in ticks since the host's boot; `None`: there is none.
pub(crate) fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_directory_is_taken_once_and_nothing_stays_of_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory(parent.path().join("benchmaster/lab-x"));
        assert!(!directory.is_held());
        let lock = directory.take().unwrap().unwrap();
        assert!(directory.is_held());
        assert!(directory.take().unwrap().is_none());
        fs::create_dir_all(directory.machine("c1")).unwrap();
        fs::write(directory.console("c1"), "text").unwrap();
        fs::write(directory.log(), "text").unwrap();
        directory.clear().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(lock);
        // A program that another test is just starting has it, too, until it is another program.
        let deadline = Instant::now() + Duration::from_secs(20);
        while directory.is_held() {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
        directory.remove().unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        directory.remove().unwrap();
    }

    #[test]
    fn processes_are_known_by_their_start() {
        let own = started(std::process::id()).unwrap();
        assert_eq!(started(std::process::id()), Some(own));
        assert!(own > 0);
        assert_eq!(started(u32::MAX), None);
    }
}
