//! Reads and writes: sizes, offsets, holes.

use std::io::{IoSlice, IoSliceMut};

use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Here, Tried, holds, joined, read, resize, same, status, sync, write, write_all};
use crate::{Check, Group, Stop};

const GROUP: Group = Group::Io;

/// Bytes that differ from place to place.
pub(super) fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| ((at * 31) >> 3) as u8 ^ (at as u8).wrapping_add(seed)).collect()
}

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "write-reads-back",
        "read()",
        "What was written is read, for sizes around pages and blocks.",
        |here| {
            for size in [0, 1, 511, 512, 513, 4095, 4096, 4097, 65_535, 65_536, 1_048_577] {
                let name = format!("f{size}");
                let data = pattern(size, 1);
                here.file(&name, &data)?;
                holds(here.content(&name)? == data, &format!("content of {size} bytes"), || {
                    "other bytes".into()
                })?;
            }
            Ok(())
        }
    ),
    must!("write-in-the-middle", "pwrite()", "Only the bytes that are written change.", |here| {
        let mut expected = pattern(20_000, 2);
        here.file("a", &expected)?;
        let file = here.edit("a")?;
        for (at, length) in [(0, 1), (4090, 13), (8191, 2), (12_288, 4096), (19_999, 1)] {
            let data = pattern(length, 77);
            write_all(&file, &data, at as u64)?;
            expected[at..at + length].copy_from_slice(&data);
        }
        holds(read(&file, 0, 30_000)? == expected, "content", || "other bytes".into())
    }),
    must!("write-beyond-the-end", "pwrite()", "The gap reads as zeros.", |here| {
        let file = here.create("a")?;
        write_all(&file, b"end", 100_000)?;
        same("size", status(&file)?.st_size, 100_003)?;
        let content = read(&file, 0, 200_000)?;
        holds(content[..100_000].iter().all(|byte| *byte == 0), "the gap", || "not zeros".into())?;
        same("the end", &content[100_000..], b"end")
    }),
    must!("write-nothing", "write()", "A write of no bytes changes no size.", |here| {
        let file = here.create("a")?;
        same("bytes written", write(&file, b"", 1000).ok()?, 0)?;
        same("size", status(&file)?.st_size, 0)
    }),
    must!("read-at-the-end", "read()", "At the end and behind it nothing is read.", |here| {
        here.file("a", b"data")?;
        let file = here.edit("a")?;
        same("bytes at the end", read(&file, 4, 10)?, Vec::new())?;
        same("bytes behind the end", read(&file, 1 << 40, 10)?, Vec::new())?;
        same("bytes across the end", read(&file, 2, 10)?, b"ta".to_vec())
    }),
    must!("write-far", "pwrite()", "Offsets beyond 4 GiB work, or are refused with EFBIG.", |here| {
        let file = here.create("a")?;
        for at in [(1u64 << 31) - 1, (1 << 32) - 1, 1 << 32, 1 << 36] {
            match write(&file, b"far", at).answer() {
                Err(Errno::FBIG) => {
                    return Err(Stop::not_applicable(format!("files end before {at}: EFBIG")));
                }
                answer => same("bytes written", Asked::new(format!("pwrite at {at}"), answer).ok()?, 3)?,
            }
            same("bytes read back", read(&file, at, 10)?, b"far".to_vec())?;
            same("size", status(&file)?.st_size, at as i64 + 3)?;
        }
        Ok(())
    }),
    must!("write-too-far", "pwrite()", "An offset behind the largest file: EFBIG or EINVAL.", |here| {
        let file = here.create("a")?;
        write(&file, b"far", i64::MAX as u64).fails(&[Errno::FBIG, Errno::INVAL, Errno::OVERFLOW])?;
        same("size", status(&file)?.st_size, 0)
    }),
    must!("write-vectors", "writev()", "Vectors are written and read as one piece.", |here| {
        let file = here.create("a")?;
        let parts = [pattern(3, 1), Vec::new(), pattern(5000, 2), pattern(1, 3)];
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let written =
            Asked::new("pwritev of 5004 bytes".into(), rustix::io::pwritev(&file, &slices, 0)).ok()?;
        same("bytes written", written, 5004)?;
        let (mut first, mut second) = (vec![0; 4000], vec![0; 2000]);
        let mut slices = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let count =
            Asked::new("preadv of 6000 bytes".into(), rustix::io::preadv(&file, &mut slices, 0)).ok()?;
        same("bytes read", count, 5004)?;
        first.extend(&second[..1004]);
        holds(first == parts.concat(), "content", || "other bytes".into())
    }),
    must!(
        "position-moves",
        "read()",
        "Reads and writes move the position, pread and pwrite do not.",
        |here| {
            let file = here.create("a")?;
            Asked::new("write".into(), rustix::io::write(&file, b"0123456789")).ok()?;
            write_all(&file, b"X", 0)?;
            let position = Asked::new("lseek".into(), rustix::fs::tell(&file)).ok()?;
            same("position", position, 10)?;
            Asked::new("lseek to 4".into(), rustix::fs::seek(&file, SeekFrom::Start(4))).ok()?;
            let mut buffer = [0; 3];
            Asked::new("read".into(), rustix::io::read(&file, &mut buffer)).ok()?;
            same("bytes at 4", &buffer, b"456")?;
            let end =
                Asked::new("lseek to the end".into(), rustix::fs::seek(&file, SeekFrom::End(0))).ok()?;
            same("the end", end, 10)
        }
    ),
    must!("position-negative", "lseek()", "A position before the start: EINVAL.", |here| {
        let file = here.create("a")?;
        Asked::new("lseek to -1".into(), rustix::fs::seek(&file, SeekFrom::Current(-1)))
            .fails(&[Errno::INVAL])
    }),
    must!("append-and-truncate", "write()", "After truncation O_APPEND writes at the new end.", |here| {
        let file = here.open("a", OFlags::CREATE | OFlags::RDWR | OFlags::APPEND, 0o644).ok()?;
        Asked::new("write".into(), rustix::io::write(&file, b"long data")).ok()?;
        resize(&file, 4).ok()?;
        Asked::new("write".into(), rustix::io::write(&file, b"!")).ok()?;
        same("content", here.content("a")?, b"long!".to_vec())
    }),
    must!("sync-file", "fsync()", "fsync and fdatasync succeed, and the data stay.", |here| {
        let file = here.create("a")?;
        write_all(&file, b"data", 0)?;
        sync(&file)?;
        Asked::new("fdatasync".into(), rustix::fs::fdatasync(&file)).ok()?;
        same("content", here.content("a")?, b"data".to_vec())
    }),
    must!("two-descriptors", "write()", "What one descriptor wrote another reads at once.", |here| {
        let writer = here.create("a")?;
        let reader = here.open("a", OFlags::RDONLY, 0).ok()?;
        for turn in 0..20u8 {
            let data = pattern(5000, turn);
            write_all(&writer, &data, u64::from(turn) * 100)?;
            holds(read(&reader, u64::from(turn) * 100, 5000)? == data, "what the other reads", || {
                "older bytes".into()
            })?;
        }
        Ok(())
    }),
    must!("writers-in-turn", "write()", "Threads that write each its own blocks lose none.", |here| {
        const BLOCK: usize = 5000;
        let file = here.create("a")?;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u8)
                .map(|thread| {
                    let file = &file;
                    let block = move |turn: usize| (turn * 4 + usize::from(thread)) * BLOCK;
                    scope.spawn(move || {
                        (0..25)
                            .try_for_each(|turn| write_all(file, &[b'a' + thread; BLOCK], block(turn) as u64))
                    })
                })
                .collect();
            threads.into_iter().try_for_each(joined)
        })?;
        let content = read(&file, 0, 100 * BLOCK + 1)?;
        same("size", content.len(), 100 * BLOCK)?;
        let wrong = content.chunks(BLOCK).enumerate().find(|(at, block)| {
            let expected = b'a' + (at % 4) as u8;
            block.iter().any(|byte| *byte != expected)
        });
        holds(wrong.is_none(), "blocks", || {
            format!("block {} has other bytes", wrong.map_or(0, |(at, _)| at))
        })
    }),
    linux!("seek-holes", "lseek(2)", "SEEK_DATA and SEEK_HOLE find data where they are.", |here| {
        let file = here.create("a")?;
        write_all(&file, &[1; 65_536], 1 << 20)?;
        resize(&file, 1 << 21).ok()?;
        sync(&file)?;
        let seek = |from| Asked::new(format!("lseek({from:?})"), rustix::fs::seek(&file, from));
        let data = seek(SeekFrom::Data(0)).offered()?;
        holds(data <= 1 << 20, "first data", || data.to_string())?;
        let hole = seek(SeekFrom::Hole(1 << 20)).ok()?;
        holds(hole >= (1 << 20) + 65_536, "hole behind the data", || hole.to_string())?;
        seek(SeekFrom::Data(1 << 21)).fails(&[Errno::NXIO])
    }),
    linux!("allocate", "fallocate(2)", "Space is allocated, reads as zeros and extends the file.", |here| {
        let file = here.create("a")?;
        write_all(&file, b"data", 0)?;
        allocate(&file, FallocateFlags::empty(), 0, 100_000).offered()?;
        same("size", status(&file)?.st_size, 100_000)?;
        let content = read(&file, 0, 100_001)?;
        same("data before", &content[..4], b"data")?;
        holds(content[4..].iter().all(|byte| *byte == 0), "allocated space", || "not zeros".into())
    }),
    linux!("punch-hole", "fallocate(2)", "A hole reads as zeros, the size stays.", |here| {
        let file = here.create("a")?;
        write_all(&file, &[7; 65_536], 0)?;
        allocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 5000, 20_000).offered()?;
        let content = read(&file, 0, 65_537)?;
        same("size", content.len(), 65_536)?;
        let zeros = content.iter().enumerate().all(|(at, byte)| (*byte == 0) == (5000..25_000).contains(&at));
        holds(zeros, "content", || "zeros in other places than the hole".into())
    }),
    linux!("copy-range", "copy_file_range(2)", "A range is copied as it is.", |here| {
        let data = pattern(100_000, 9);
        here.file("a", &data)?;
        let (from, to) = (here.edit("a")?, here.create("b")?);
        let (mut source, mut target) = (1000, 0);
        while target < 50_000 {
            let rest = 50_000 - target as usize;
            let answer = rustix::fs::copy_file_range(&from, Some(&mut source), &to, Some(&mut target), rest);
            if Asked::new(format!("copy_file_range of {rest} bytes"), answer).offered()? == 0 {
                break;
            }
        }
        holds(here.content("b")? == data[1000..51_000], "the copy", || "other bytes".into())
    }),
    linux!(
        "direct-and-buffered",
        "open(2)",
        "O_DIRECT reads what was written through the cache, and the reverse.",
        |here| direct(here)
    ),
];

fn allocate(file: &std::os::fd::OwnedFd, mode: FallocateFlags, offset: u64, length: u64) -> Asked<()> {
    Asked::new(
        format!("fallocate({mode:?}, {offset}, {length})"),
        rustix::fs::fallocate(file, mode, offset, length),
    )
}

/// A page for direct access has an address that is a multiple of its size.
#[repr(align(4096))]
struct Page([u8; 4096]);

fn direct(here: &Here) -> Tried {
    here.file("a", &[1; 8192])?;
    let direct = here.open("a", OFlags::RDWR | OFlags::DIRECT, 0).offered()?;
    let buffered = here.edit("a")?;
    let mut page = Box::new(Page([0; 4096]));
    let count = Asked::new("direct pread".into(), rustix::io::pread(&direct, &mut page.0, 4096)).offered()?;
    same("bytes read directly", (count, page.0[0], page.0[4095]), (4096, 1, 1))?;
    write_all(&buffered, &[2; 4096], 0)?;
    Asked::new("direct pread".into(), rustix::io::pread(&direct, &mut page.0, 0)).ok()?;
    same("bytes read directly after a write through the cache", (page.0[0], page.0[4095]), (2, 2))?;
    page.0 = [3; 4096];
    same("bytes written directly", write(&direct, &page.0, 4096).ok()?, 4096)?;
    holds(read(&buffered, 4096, 4096)? == page.0, "bytes read through the cache", || "older bytes".into())
}
