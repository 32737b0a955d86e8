//! This program as a disk: QEMU's machines do not see the files of the host.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::file_error::{FileError, at};
use crate::packages::Trees;
use crate::root;

/// A disk with this program as `benchmaster`, an ext4 file system to be mounted read-only.
pub(super) fn disk() -> Result<PathBuf, FileError> {
    let directory = root::program().map_err(|error| at("the program")(io::Error::other(error)))?;
    let program = directory.join("benchmaster");
    let disk = directory.with_extension("ext4");
    if disk.exists() {
        let used = File::options().append(true).open(&disk);
        used.and_then(|file| file.set_modified(std::time::SystemTime::now())).map_err(at(&disk))?;
        return Ok(disk);
    }
    let trees = Trees::now().map_err(|error| at("packages")(io::Error::other(error)))?;
    let Some(make) = trees.program("mkfs.ext4") else {
        let hint = "it is not installed; run `benchmaster lab setup`";
        return Err(at("mkfs.ext4")(io::Error::new(io::ErrorKind::NotFound, hint)));
    };
    let size = fs::metadata(&program).map_err(at(&program))?.len();
    let temporary =
        tempfile::NamedTempFile::new_in(directory.parent().unwrap_or(&directory)).map_err(at(&disk))?;
    // Room for what describes the file: inodes, and blocks of indexes.
    let mebibytes = ((size + size / 64) >> 20) + 8;
    let mut command = Command::new(&make);
    command.args(["-q", "-F", "-O", "^has_journal", "-N", "32", "-m", "0", "-d"]).arg(&directory);
    command.arg(temporary.path()).arg(format!("{mebibytes}M"));
    let output = command.stdin(Stdio::null()).output().map_err(at(&make))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(at(&make)(io::Error::other(text)));
    }
    temporary.persist(&disk).map_err(|error| at(&disk)(error.error))?;
    Ok(disk)
}
