//! Random operations on one file, compared with what its bytes must be: in the manner of `fsx`.

use std::os::fd::OwnedFd;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::MapFlags;

use super::Directory;
use super::data::pattern;
use super::here::{Asked, Here, Tried, read, resize, status, sync, write_all};
use super::map::Map;
use crate::{Check, Group, Stop};

const GROUP: Group = Group::Io;

/// Size that the file never exceeds.
const LARGEST: u64 = 256 * 1024;
const OPERATIONS: u32 = 1500;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "random-operations",
        "write()",
        "After random reads, writes and truncations all bytes are as they must be.",
        |here| { (1..=3).try_for_each(|seed| Trial::new(here, seed)?.run(&[READ, WRITE, TRUNCATE, REOPEN])) }
    ),
    must!(
        "random-operations-mapped",
        "mmap()",
        "The same with reads and writes of shared mappings among them.",
        |here| {
            (4..=6).try_for_each(|seed| {
                Trial::new(here, seed)?.run(&[READ, WRITE, TRUNCATE, REOPEN, MAP_READ, MAP_WRITE])
            })
        }
    ),
    linux!(
        "random-operations-holes",
        "fallocate(2)",
        "The same with holes that are punched and space that is allocated.",
        |here| {
            let probe = here.create("probe")?;
            let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            Asked::new("fallocate".into(), fallocate(&probe, punch, 0, 4096)).offered()?;
            (7..=9).try_for_each(|seed| {
                Trial::new(here, seed)?.run(&[READ, WRITE, TRUNCATE, REOPEN, MAP_WRITE, PUNCH])
            })
        }
    ),
];

/// An operation on the file and on what its bytes must be.
type Operation = (&'static str, fn(&mut Trial<'_>, u64, usize) -> Tried);

const READ: Operation = ("read", |trial, at, length| {
    let bytes = read(&trial.file, at, length)?;
    trial.compare(at, length, &bytes)
});

const WRITE: Operation = ("write", |trial, at, length| {
    let data = trial.data(length);
    write_all(&trial.file, &data, at)?;
    trial.keep(at, &data);
    Ok(())
});

const TRUNCATE: Operation = ("truncate", |trial, at, _| {
    resize(&trial.file, at).ok()?;
    trial.bytes.resize(at as usize, 0);
    Ok(())
});

const REOPEN: Operation = ("close and open", |trial, at, _| {
    if at % 2 == 0 {
        sync(&trial.file)?;
    }
    trial.file = trial.here.edit(&trial.name)?;
    Ok(())
});

const MAP_READ: Operation = ("read of a mapping", |trial, at, length| {
    let Some(map) = trial.map()? else { return Ok(()) };
    let length = length.min(trial.bytes.len().saturating_sub(at as usize));
    let bytes = map.read(at as usize, length);
    trial.compare(at, length, &bytes)
});

const MAP_WRITE: Operation = ("write to a mapping", |trial, at, length| {
    let Some(map) = trial.map()? else { return Ok(()) };
    let length = length.min(trial.bytes.len().saturating_sub(at as usize));
    let data = trial.data(length);
    map.write(at as usize, &data);
    trial.keep(at, &data);
    Ok(())
});

const PUNCH: Operation = ("punch a hole", |trial, at, length| {
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let length = length.max(1);
    Asked::new("fallocate".into(), fallocate(&trial.file, punch, at, length as u64)).ok()?;
    let end = trial.bytes.len().min(at as usize + length);
    if let Some(hole) = trial.bytes.get_mut(at as usize..end) {
        hole.fill(0);
    }
    Ok(())
});

struct Trial<'a> {
    here: &'a Here,
    name: String,
    file: OwnedFd,
    seed: u64,
    random: ChaCha8Rng,
    /// What the file's bytes must be.
    bytes: Vec<u8>,
}

impl<'a> Trial<'a> {
    fn new(here: &'a Here, seed: u64) -> Tried<Self> {
        let name = format!("random-{seed}");
        let file = here.create(&name)?;
        Ok(Self { here, name, file, seed, random: ChaCha8Rng::seed_from_u64(seed), bytes: Vec::new() })
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn data(&mut self, length: usize) -> Vec<u8> {
        pattern(length, self.random.next_u32() as u8)
    }

    fn keep(&mut self, at: u64, data: &[u8]) {
        let (at, end) = (at as usize, at as usize + data.len());
        if data.is_empty() {
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(data);
    }

    fn map(&self) -> Tried<Option<Map>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        Map::new(&self.file, self.bytes.len(), MapFlags::SHARED).map(Some)
    }

    fn compare(&self, at: u64, length: usize, bytes: &[u8]) -> Tried {
        let begin = self.bytes.len().min(at as usize);
        let expected = &self.bytes[begin..self.bytes.len().min(at as usize + length)];
        if bytes == expected {
            return Ok(());
        }
        let first = bytes.iter().zip(expected).position(|(came, expected)| came != expected);
        let first = first.unwrap_or(bytes.len().min(expected.len()));
        let came =
            format!("{} bytes for {}, the first wrong one at {}", bytes.len(), expected.len(), begin + first);
        Err(Stop::failed(format!("{length} bytes at {at}"), came))
    }

    fn run(mut self, operations: &[Operation]) -> Tried {
        for turn in 1..=OPERATIONS {
            let (name, operation) = operations[self.below(operations.len() as u64) as usize];
            let at = self.below(LARGEST);
            let longest = (LARGEST - at).min(64 * 1024);
            let length = self.below(longest + 1) as usize;
            let checked = operation(&mut self, at, length).and_then(|()| self.check_size());
            checked.map_err(|stop| self.name_turn(stop, turn, name, at, length))?;
        }
        let bytes = read(&self.file, 0, LARGEST as usize + 1)?;
        self.compare(0, LARGEST as usize + 1, &bytes)
    }

    fn check_size(&self) -> Tried {
        super::here::same("size", status(&self.file)?.st_size, self.bytes.len() as i64)
    }

    fn name_turn(&self, stop: Stop, turn: u32, name: &str, at: u64, length: usize) -> Stop {
        match stop {
            Stop::Failed { sent, came } => {
                let seed = self.seed;
                Stop::failed(
                    format!("operation {turn} of seed {seed}, {name} ({length} bytes at {at}): {sent}"),
                    came,
                )
            }
            other => other,
        }
    }
}
