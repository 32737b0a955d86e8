//! The server's disk on virtual time: a file of the share, behind a loop device.
//!
//! The page cache of the guest is the disk's volatile cache: what is written to the loop device is in it, and a flush writes it to
//! the host's file, in no time. The disk drivers of user-mode Linux take time of the host instead, which would show.
//! After a power cut the disk goes on as another file, so that what the old one still writes back is of no consequence.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::super::tools::{self, SHORT, ToolError};
use crate::cut::survivors::{Fate, Survivors, fates, survivor};
use crate::cut::{CutDisk, PowerCut};
use crate::virtual_time::{DISK, HOST};

/// Most lives of a disk: loop devices that the kernel has from the start.
const LIVES: u32 = 8;
/// What is kept, dropped or torn as one.
const BLOCK: usize = 4096;
/// Bytes that are compared at once.
const PART: usize = 1 << 20;
/// Where the share is seen once more, with a cache of its own: as the host has it.
const STABLE: &str = "/run/stable";

/// The device of the disk; `None`: there is no such disk.
pub(super) fn attached() -> Option<String> {
    (0..LIVES)
        .rev()
        .map(device)
        .find(|device| tools::read(size_of(device)).is_ok_and(|size| size.trim() != "0"))
}

/// Puts the first file of the disk behind its device, if there is one.
///
/// # Errors
/// [`ToolError`]
pub(super) fn attach() -> Result<(), ToolError> {
    let first = file_of(0);
    if attached().is_some() || !first.exists() {
        return Ok(());
    }
    tools::run("losetup", &[&device(0), &first.display().to_string()], SHORT).map(drop)
}

/// The device behind which the disk's next file will be.
fn device(life: u32) -> String {
    format!("/dev/loop{life}")
}

fn size_of(device: &str) -> String {
    device.replacen("/dev", "/sys/class/block", 1) + "/size"
}

fn file_of(life: u32) -> PathBuf {
    Path::new(HOST).join(format!("{DISK}{life}"))
}

/// A disk whose power was cut: what it will be.
#[derive(Debug)]
pub(super) struct Lost {
    life: u32,
}

/// Makes the file that the disk goes on with: what was flushed, and of the rest what the cut leaves.
///
/// # Errors
/// [`io::Error`], also when there is no disk or it has had too many lives.
pub(super) fn cut(cut: &PowerCut) -> io::Result<(Lost, Survivors)> {
    let other = |text: &str| io::Error::other(text.to_owned());
    let life = attached()
        .and_then(|device| device.strip_prefix("/dev/loop")?.parse().ok())
        .ok_or_else(|| other("the server has no disk; choose `file_system = \"ext4\"` or `\"xfs\"`"))?;
    if life + 1 >= LIVES {
        return Err(other("the power of a disk on virtual time can be cut seven times in a study"));
    }
    share_again()?;
    let file = file_of(life);
    let stable = match cut.disk {
        CutDisk::Cached => Path::new(STABLE).join(format!("{DISK}{life}")),
        CutDisk::Durable => file.clone(),
        CutDisk::Lying(_) => {
            return Err(other(
                "no disk on virtual time lies; `mount_options = \"nobarrier\"` has ext4 not flush it",
            ));
        }
    };
    let (cached, stable) = (File::open(file)?, File::open(stable)?);
    let next = File::options().write(true).create(true).truncate(true).open(file_of(life + 1))?;
    let length = cached.metadata()?.len();
    next.set_len(length)?;
    let mut at_risk = Vec::new();
    let (mut new, mut old) = (vec![0; PART], vec![0; PART]);
    for offset in (0..length).step_by(PART) {
        let size = usize::try_from(length - offset).unwrap_or(PART).min(PART);
        cached.read_exact_at(&mut new[..size], offset)?;
        stable.read_exact_at(&mut old[..size], offset)?;
        for (number, (new, old)) in new[..size].chunks(BLOCK).zip(old[..size].chunks(BLOCK)).enumerate() {
            let offset = offset + (number * BLOCK) as u64;
            if new != old {
                at_risk.push((offset, new.to_vec(), old.to_vec()));
            } else if old.iter().any(|byte| *byte != 0) {
                next.write_all_at(old, offset)?;
            }
        }
    }
    let mut result = Survivors::default();
    let fates: Vec<Fate> = fates(at_risk.len(), cut.seed);
    for ((offset, new, old), fate) in at_risk.iter().zip(fates) {
        next.write_all_at(&survivor(new, old, fate, &mut result), *offset)?;
    }
    // That is what the disk has: another cut takes none of it.
    next.sync_all()?;
    Ok((Lost { life: life + 1 }, result))
}

impl Lost {
    /// Takes the old file away from its device, and puts the new one behind the next.
    ///
    /// # Errors
    /// [`ToolError`]
    pub(super) fn replace(&self) -> Result<(), ToolError> {
        tools::run("losetup", &["-d", &device(self.life - 1)], SHORT)?;
        tools::run("losetup", &[&device(self.life), &file_of(self.life).display().to_string()], SHORT)
            .map(drop)
    }
}

/// Mounts the share once more.
fn share_again() -> io::Result<()> {
    // What an earlier look has in its cache is old.
    let _ = rustix::mount::unmount(STABLE, rustix::mount::UnmountFlags::empty());
    fs::create_dir_all(STABLE)?;
    let words = fs::read_to_string("/proc/cmdline")?;
    let share = words.split_whitespace().find_map(|word| word.strip_prefix("lab_share=")).unwrap_or_default();
    let share = CString::new(share).map_err(io::Error::other)?;
    Ok(mount("stable", STABLE, "hostfs", MountFlags::RDONLY, share.as_c_str())?)
}
