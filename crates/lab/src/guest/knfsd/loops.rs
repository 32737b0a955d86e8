//! The server's disk on virtual time: a file of a small file system in the guest, behind a loop device.
//!
//! That file system is itself on a file of the host, which takes no time and keeps no cache. The page cache of the guest is the disk's
//! volatile cache, therefore: what is written to the disk is in it, and a flush writes it through. What the disk has for certain is
//! where the file system has the file's blocks. The disk drivers of user-mode Linux take time of the host instead, which would show.
//!
//! After a power cut the disk goes on as another file, so that what the old one still writes back is of no consequence.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::tools::{self, SHORT, ToolError};
use super::MKFS;
use crate::cut::survivors::{Fate, Survivors, fates, survivor};
use crate::cut::{CutDisk, PowerCut};
use crate::virtual_time::{DISK, HOST, LIVES};

/// What is kept, dropped or torn as one: a block of the file system below.
const BLOCK: usize = 4096;
/// Bytes that are compared at once.
const PART: usize = 1 << 20;
/// Where the file system with the disk's files is mounted, and its device.
const BELOW: &str = "/run/disk";
const DEVICE: &str = "/dev/loop0";

/// The device of the disk; `None`: there is no such disk.
pub(super) fn attached() -> Option<String> {
    let has_size = |device: &String| tools::read(size_of(device)).is_ok_and(|size| size.trim() != "0");
    (0..LIVES).rev().map(device).find(has_size)
}

/// Makes the disk, if there is to be one.
///
/// # Errors
/// [`ToolError`]
pub(super) fn attach() -> Result<(), ToolError> {
    let host = host();
    if attached().is_some() || !host.exists() {
        return Ok(());
    }
    tools::run("losetup", &[DEVICE, &host.display().to_string()], SHORT)?;
    let plain = [
        "-q",
        "-F",
        "-m",
        "0",
        "-N",
        "64",
        "-O",
        "^has_journal",
        "-E",
        "nodiscard,lazy_itable_init=1",
        DEVICE,
    ];
    tools::run("mkfs.ext4", &plain, MKFS)?;
    tools::directory(BELOW)?;
    tools::run("mount", &["-t", "ext4", "-o", "noinit_itable", DEVICE, BELOW], SHORT)?;
    let file = file_of(0);
    let made = host.metadata().and_then(|facts| make(&file, facts.len() / u64::from(LIVES + 1)).map(drop));
    made.map_err(|source| ToolError::File {
        action: "make".into(),
        path: file.display().to_string(),
        source,
    })?;
    put_behind(0)
}

/// The host's file that has all.
fn host() -> PathBuf {
    Path::new(HOST).join(DISK)
}

/// The device of a life of the disk.
fn device(life: u32) -> String {
    format!("/dev/loop{}", life + 1)
}

fn size_of(device: &str) -> String {
    device.replacen("/dev", "/sys/class/block", 1) + "/size"
}

fn file_of(life: u32) -> PathBuf {
    Path::new(BELOW).join(life.to_string())
}

/// Makes a file of the disk, with all its blocks.
fn make(file: &Path, length: u64) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).open(file)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, length)?;
    file.sync_all()?;
    Ok(file)
}

fn put_behind(life: u32) -> Result<(), ToolError> {
    tools::run("losetup", &[&device(life), &file_of(life).display().to_string()], SHORT).map(drop)
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
        .and_then(|device| device.strip_prefix("/dev/loop")?.parse::<u32>().ok()?.checked_sub(1))
        .ok_or_else(|| other("the server has no disk; choose `file_system = \"ext4\"` or `\"xfs\"`"))?;
    if life + 1 >= LIVES {
        return Err(other("the power of a disk on virtual time can be cut six times in a study"));
    }
    let cached = File::open(file_of(life))?;
    let length = cached.metadata()?.len();
    let stable = match cut.disk {
        CutDisk::Cached => Some((File::open(host())?, extents(&cached)?)),
        CutDisk::Durable => None,
        CutDisk::Lying(_) => {
            return Err(other(
                "no disk on virtual time lies; `mount_options = \"nobarrier\"` has ext4 not flush it",
            ));
        }
    };
    let next = make(&file_of(life + 1), length)?;
    let mut at_risk = Vec::new();
    let (mut new, mut old) = (vec![0; PART], vec![0; PART]);
    for offset in (0..length).step_by(PART) {
        let size = usize::try_from(length - offset).unwrap_or(PART).min(PART);
        cached.read_exact_at(&mut new[..size], offset)?;
        match &stable {
            Some((host, extents)) => read(host, extents, &mut old[..size], offset)?,
            None => old[..size].copy_from_slice(&new[..size]),
        }
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

/// Where a piece of a file is on the disk below it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
}

/// Where all of a file is (ioctl_fiemap(2)). It is not flushed for that.
fn extents(file: &File) -> io::Result<Vec<Extent>> {
    const FIEMAP: libc::c_ulong = 0xc020_660b;
    const MOST: usize = 1024;
    // A head of four words: start, length, flags and number of extents found, room for extents. An extent has seven.
    let mut words = vec![0_u64; 4 + 7 * MOST];
    (words[1], words[3]) = (u64::MAX, MOST as u64);
    // SAFETY: the descriptor is open, and the kernel writes no more extents than the head says there is room for.
    if unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, words.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let found = usize::try_from(words[2] >> 32).unwrap_or(MOST);
    if found >= MOST {
        return Err(io::Error::other("the file of the server's disk is in too many pieces"));
    }
    let pieces = words[4..].chunks_exact(7).take(found);
    Ok(pieces.map(|words| Extent { logical: words[0], physical: words[1], length: words[2] }).collect())
}

/// Reads what a piece of a file is on the disk below it; zeros where it is nowhere.
fn read(below: &File, extents: &[Extent], into: &mut [u8], offset: u64) -> io::Result<()> {
    into.fill(0);
    let end = offset + into.len() as u64;
    for extent in extents {
        let (from, to) = (offset.max(extent.logical), end.min(extent.logical + extent.length));
        if from < to {
            let place = (from - offset) as usize..(to - offset) as usize;
            below.read_exact_at(&mut into[place], extent.physical + (from - extent.logical))?;
        }
    }
    Ok(())
}

impl Lost {
    /// Takes the old file away from its device, and puts the new one behind the next.
    ///
    /// # Errors
    /// [`ToolError`]
    pub(super) fn replace(&self) -> Result<(), ToolError> {
        tools::run("losetup", &["-d", &device(self.life - 1)], SHORT)?;
        put_behind(self.life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_file_are_read_where_they_are() {
        let below = tempfile::tempfile().unwrap();
        below.write_all_at(&[1; 100], 1000).unwrap();
        below.write_all_at(&[2; 100], 500).unwrap();
        let extent = |logical, physical, length| Extent { logical, physical, length };
        let extents = [extent(0, 1000, 100), extent(100, 500, 50), extent(200, 550, 50)];
        let mut bytes = [9; 150];
        read(&below, &extents, &mut bytes, 90).unwrap();
        let expected = [&[1; 10][..], &[2; 50], &[0; 50], &[2; 40]].concat();
        assert_eq!(bytes[..], expected);
    }

    #[test]
    fn a_file_is_somewhere() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().write_all_at(&[1; 8192], 0).unwrap();
        file.as_file().sync_all().unwrap();
        // Not every file system can say it.
        if let Ok(extents) = extents(file.as_file()) {
            assert_eq!(extents.iter().map(|extent| extent.length).sum::<u64>(), 8192, "{extents:?}");
        }
    }
}
