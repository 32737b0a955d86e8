//! Process 1 of a guest on virtual time: mounts, the controller, its results, the end.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use benchmaster_netem::namespace::Interfaces;
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};

use super::{HOST, JOB};
use crate::kernel::Kernel;

/// Has the controller and the agents keep memory that they have had once: each page that a program touches for the first time takes
/// the host three changes of process, as much as three system calls. Large pieces are given back all the same: memory that is kept
/// has to be cleared page by page before it is used again, and most of a large piece is never used.
const KEEP_MEMORY: &str =
    "glibc.malloc.mmap_threshold=524288:glibc.malloc.trim_threshold=1073741824:glibc.malloc.arena_max=1";

/// Bytes of a file that a program gets at once when it touches one of them: the kernel's own choice is 65,536.
const FAULT_AROUND: &str = "262144";

/// What the controller in the guest does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Arguments of this program. Files of the share are below `/host`.
    pub arguments: Vec<String>,
    /// Directories of the guest that are copied into the share when it has ended, under these names.
    pub results: Vec<(PathBuf, String)>,
    /// The kernel, for the record.
    pub kernel: Kernel,
    /// SHA-256 of the root, in hexadecimal digits, for the record.
    pub image: String,
    /// The guest's memory, in bytes.
    pub memory: u64,
    /// Size of the server's disk, in bytes; `None`: it has none.
    #[serde(default)]
    pub disk: Option<u64>,
    /// What everything is drawn from that is random in the guest; 0 is as good as any other.
    #[serde(default)]
    pub seed: u64,
}

/// Does the job of the share, and switches the guest off. What it printed, and its exit status, go to the share.
pub fn first() {
    if let Err(error) = carry_out() {
        // The console is all there is when the share cannot be written.
        let _ = fs::write(Path::new(HOST).join("error"), &error);
        let _ = fs::write("/dev/console", format!("benchmaster: {error}\n"));
    }
    super::end();
}

fn carry_out() -> Result<(), String> {
    for (kind, at) in
        [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/run")]
    {
        mounted(kind, at)?;
    }
    // A kernel without it only takes longer.
    let _ = mounted("debugfs", "/sys/kernel/debug").and_then(|()| {
        fs::write("/sys/kernel/debug/fault_around_bytes", FAULT_AROUND).map_err(|error| error.to_string())
    });
    let interfaces = Interfaces::here().map_err(|error| error.to_string())?;
    interfaces.up("lo").map_err(|error| error.to_string())?;
    let text = fs::read_to_string(JOB).map_err(|error| format!("{JOB}: {error}"))?;
    let job: Job = serde_json::from_str(&text).map_err(|error| format!("{JOB}: {error}"))?;
    let file = |name: &str| {
        let path = Path::new(HOST).join(name);
        File::create(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let status = Command::new(&program)
        .args(&job.arguments)
        .env("PATH", "/bin:/sbin:/usr/bin:/usr/sbin")
        .env("HOME", "/tmp")
        .env("GLIBC_TUNABLES", KEEP_MEMORY)
        .stdin(Stdio::null())
        .stdout(file("output")?)
        .stderr(file("messages")?)
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    for (from, name) in &job.results {
        let to = Path::new(HOST).join(name);
        copy(from, &to).map_err(|error| format!("cannot copy {} to the host: {error}", from.display()))?;
    }
    let status = status.code().unwrap_or(255);
    fs::write(Path::new(HOST).join("status"), status.to_string()).map_err(|error| error.to_string())
}

fn mounted(kind: &str, at: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot mount {at}: {error}");
    fs::create_dir_all(at).map_err(failed)?;
    match mount(kind, at, kind, MountFlags::empty(), None) {
        // Who came before has mounted some.
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}

/// Copies a directory with everything in it; nothing when it is not there.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&from, &to)?,
            kind if kind.is_file() => fs::write(&to, fs::read(&from)?)?,
            // Results are files and directories.
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_copied_whole() {
        let temporary = tempfile::tempdir().unwrap();
        let (from, to) = (temporary.path().join("from"), temporary.path().join("to"));
        copy(&from, &to).unwrap();
        assert!(!to.exists(), "there was nothing");
        fs::create_dir_all(from.join("traces")).unwrap();
        fs::write(from.join("results.db"), "db").unwrap();
        fs::write(from.join("traces/1"), "trace").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("results.db")).unwrap(), "db");
        assert_eq!(fs::read_to_string(to.join("traces/1")).unwrap(), "trace");
        assert!(!to.join("link").exists());
    }
}
