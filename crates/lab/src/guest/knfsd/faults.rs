//! What goes wrong with the kernel's server on virtual time, done inside the machine: a part of a kernel cannot be
//! killed from outside.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::tools::{self, SHORT, ToolError};
use super::{EXPORTED, KnfsdError, NFSD, loops, prepare, recover, serve, stop};
use crate::config::{FileSystem, KnfsdConfig};
use crate::cut::PowerCut;

/// `EXT4_IOC_SHUTDOWN` and `XFS_IOC_GOINGDOWN`, which are the same.
const SHUT_DOWN: libc::c_ulong = 0x8004_587d;
/// Nothing is written any more, not even the journal (`EXT4_GOING_FLAGS_NOLOGFLUSH`).
const NO_LOG_FLUSH: u32 = 2;

/// Something that goes wrong with the server, or is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerFault {
    /// Its threads end, and clients are refused.
    Stop,
    /// They serve again. There is a grace period if clients held anything.
    Start,
    /// It loses power: what it had in memory is gone, and the disk has what such a disk can have. Whoever calls it sees to it
    /// that nothing reaches clients from then on.
    LosePower(PowerCut),
    /// It has power again: its file system is recovered and it serves as after any boot.
    Boot,
    /// It ends its grace period early, although clients may have something to reclaim.
    EndGrace,
    /// The disk stands still: whatever writes to it waits.
    Freeze,
    /// It goes on.
    Thaw,
    /// Others fill the disk.
    Fill,
    /// They remove what filled it.
    Empty,
}

/// Why a fault could not be brought about.
#[derive(Debug, thiserror::Error)]
pub enum ServerFaultError {
    #[error(transparent)]
    Server(#[from] KnfsdError),
    #[error("the server's disk: {0}")]
    Disk(#[source] io::Error),
}

impl From<ToolError> for ServerFaultError {
    fn from(error: ToolError) -> Self {
        Self::Server(error.into())
    }
}

impl ServerFault {
    /// Brings it about; what it did, in words, where that is not always the same.
    ///
    /// # Errors
    /// [`ServerFaultError`]
    pub fn bring_about(&self, config: &KnfsdConfig) -> Result<String, ServerFaultError> {
        match self {
            Self::Stop => stop()?,
            Self::Start => {
                prepare()?;
                serve(config)?;
            }
            Self::LosePower(cut) => return lose_power(config, cut),
            Self::Boot => {
                let recovered = recover(config)?;
                let repaired =
                    recovered.repaired.map(|said| format!("; the file system had to be repaired: {said}"));
                let grace = if recovered.grace { "with a grace period" } else { "without a grace period" };
                return Ok(format!("{grace}{}", repaired.unwrap_or_default()));
            }
            Self::EndGrace => end_grace()?,
            Self::Freeze => tools::run("fsfreeze", &["--freeze", EXPORTED], SHORT).map(drop)?,
            Self::Thaw => tools::run("fsfreeze", &["--unfreeze", EXPORTED], SHORT).map(drop)?,
            Self::Fill => return fill().map_err(ServerFaultError::Disk),
            Self::Empty => match fs::remove_file(filler()) {
                // A loss of power may have taken it.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(ServerFaultError::Disk(error));
                }
                _ => {}
            },
        }
        Ok(String::new())
    }
}

fn lose_power(config: &KnfsdConfig, cut: &PowerCut) -> Result<String, ServerFaultError> {
    if config.file_system == FileSystem::Tmpfs {
        let needed = "a loss of power needs a disk: choose `ext4` or `xfs`";
        return Err(KnfsdError::Setting { key: "file_system", value: "tmpfs".into(), needed }.into());
    }
    shut_down().map_err(ServerFaultError::Disk)?;
    let (disk, survivors) = loops::cut(cut).map_err(ServerFaultError::Disk)?;
    stop()?;
    let unmounted = tools::within(SHORT, || tools::run("umount", &[EXPORTED], SHORT).is_ok());
    if !unmounted {
        tools::run("umount", &[EXPORTED], SHORT)?;
    }
    disk.replace()?;
    Ok(format!(
        "of {} blocks that were not flushed {} were lost and {} torn",
        survivors.at_risk, survivors.dropped, survivors.torn
    ))
}

/// From now on the file system writes nothing.
fn shut_down() -> io::Result<()> {
    let root = File::open(EXPORTED)?;
    let how = NO_LOG_FLUSH;
    // SAFETY: the descriptor is open, and the argument is a number that outlives the call, which reads it.
    match unsafe { libc::ioctl(root.as_raw_fd(), SHUT_DOWN as _, &raw const how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn end_grace() -> Result<(), ToolError> {
    let path = Path::new(NFSD).join("v4_end_grace");
    let is_over = || fs::read_to_string(&path).is_ok_and(|text| text.starts_with('Y'));
    // The kernel refuses while it is starting, and once it is over.
    tools::within(SHORT, || is_over() || (tools::write(&path, "Y").is_ok() && is_over()));
    Ok(())
}

fn filler() -> PathBuf {
    Path::new(EXPORTED).join(".filler")
}

/// Takes all room that is left, in ever smaller pieces.
fn fill() -> io::Result<String> {
    let file = File::create(filler())?;
    let (mut length, mut piece) = (0, 1 << 30);
    while piece >= 4096 {
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), length, piece) {
            Ok(()) => length += piece,
            Err(rustix::io::Errno::NOSPC) => piece /= 2,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(format!("{} KiB were left", length >> 10))
}
