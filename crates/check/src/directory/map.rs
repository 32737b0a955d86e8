//! Files mapped into memory.

use std::ffi::c_void;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::Directory;
use super::data::pattern;
use super::here::{Asked, Tried, holds, read, resize, same, write_all};
use crate::{Check, Group};

const GROUP: Group = Group::Mmap;

/// A mapping of the first bytes of a file.
pub(super) struct Map {
    address: *mut c_void,
    length: usize,
}

impl Map {
    pub(super) fn new(file: &OwnedFd, length: usize, flags: MapFlags) -> Tried<Self> {
        // SAFETY: the kernel chooses the address; the mapping is owned by the value and ends with it.
        let answer = unsafe { mmap(null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, file, 0) };
        Ok(Self { address: Asked::new(format!("mmap of {length} bytes"), answer).offered()?, length })
    }

    /// Bytes of the file: `at + length` must be within the mapping and the file.
    pub(super) fn read(&self, at: usize, length: usize) -> Vec<u8> {
        let end = (at + length).min(self.length);
        // Others change a file that is mapped, so that each byte is read for itself.
        // SAFETY: each address is within the mapping, which lives as long as `self`.
        (at..end).map(|at| unsafe { self.address.cast::<u8>().add(at).read_volatile() }).collect()
    }

    pub(super) fn write(&self, at: usize, data: &[u8]) {
        for (at, byte) in (at..self.length).zip(data) {
            // SAFETY: as above; the mapping is writable.
            unsafe { self.address.cast::<u8>().add(at).write_volatile(*byte) };
        }
    }

    pub(super) fn sync(&self) -> Tried {
        // SAFETY: the range is the mapping's own.
        let answer = unsafe { msync(self.address, self.length, MsyncFlags::SYNC) };
        Asked::new("msync".to_owned(), answer).ok()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping's own, and nothing refers to it any more. Failure leaves it mapped.
        let _ = unsafe { munmap(self.address, self.length) };
    }
}

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("map-reads", "mmap()", "A mapping shows the file.", |here| {
        let data = pattern(10_000, 1);
        here.file("a", &data)?;
        let map = Map::new(&here.edit("a")?, data.len(), MapFlags::SHARED)?;
        holds(map.read(0, data.len()) == data, "mapped bytes", || "other bytes".into())
    }),
    must!("map-writes", "mmap()", "What is written to a shared mapping is read from the file.", |here| {
        here.file("a", &[0; 8192])?;
        let file = here.edit("a")?;
        let map = Map::new(&file, 8192, MapFlags::SHARED)?;
        map.write(4090, b"across pages");
        map.sync()?;
        same("bytes of the file", read(&file, 4090, 12)?, b"across pages".to_vec())?;
        same("bytes by another descriptor", read(here.edit("a")?, 4090, 12)?, b"across pages".to_vec())
    }),
    must!("map-sees-writes", "mmap()", "What is written to the file is seen in a shared mapping.", |here| {
        here.file("a", &[0; 8192])?;
        let file = here.edit("a")?;
        let map = Map::new(&file, 8192, MapFlags::SHARED)?;
        map.read(0, 8192);
        write_all(&file, b"news", 4094)?;
        same("mapped bytes", map.read(4094, 4), b"news".to_vec())
    }),
    must!("map-private", "mmap()", "What is written to a private mapping stays in it.", |here| {
        here.file("a", &[0; 4096])?;
        let file = here.edit("a")?;
        let map = Map::new(&file, 4096, MapFlags::PRIVATE)?;
        map.write(0, b"mine");
        same("mapped bytes", map.read(0, 4), b"mine".to_vec())?;
        same("bytes of the file", read(&file, 0, 4)?, vec![0; 4])
    }),
    must!(
        "map-outlives-descriptor",
        "mmap()",
        "A mapping works after its descriptor is closed and its name removed.",
        |here| {
            here.file("a", &[5; 4096])?;
            let map = Map::new(&here.edit("a")?, 4096, MapFlags::SHARED)?;
            here.unlink("a").ok()?;
            same("mapped bytes", map.read(0, 2), vec![5; 2])?;
            map.write(0, b"still");
            map.sync()?;
            same("mapped bytes", map.read(0, 5), b"still".to_vec())
        }
    ),
    must!(
        "map-after-growth",
        "mmap()",
        "Bytes that a file gains within its mapped pages are zeros, then what is written.",
        |here| {
            here.file("a", &[1; 100])?;
            let file = here.edit("a")?;
            let map = Map::new(&file, 4096, MapFlags::SHARED)?;
            same("mapped bytes behind the end", map.read(100, 10), vec![0; 10])?;
            resize(&file, 4096).ok()?;
            same("mapped bytes after growth", map.read(100, 10), vec![0; 10])?;
            write_all(&file, b"x", 4000)?;
            same("mapped byte that was written", map.read(4000, 1), b"x".to_vec())
        }
    ),
    must!("map-two", "mmap()", "Two shared mappings show each other's bytes.", |here| {
        here.file("a", &[0; 4096])?;
        let file = here.edit("a")?;
        let maps =
            [Map::new(&file, 4096, MapFlags::SHARED)?, Map::new(&here.edit("a")?, 4096, MapFlags::SHARED)?];
        maps[0].write(7, b"seven");
        same("bytes in the other mapping", maps[1].read(7, 5), b"seven".to_vec())
    }),
];
