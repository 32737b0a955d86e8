//! What a disk and the host around it are like.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use benchmaster_units::{Bandwidth, ByteSize, TimeSpan};
use serde::{Deserialize, Serialize};

/// Kind of a disk: what it is like by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// None: memory is as stable as can be.
    None,
    /// One head above platters of 7,200 turns a minute.
    #[default]
    Hdd,
    /// Flash: eight channels, the same access time wherever data is.
    Ssd,
}

/// Which of the waiting requests a disk serves next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskOrder {
    /// The one that came first.
    #[default]
    Fifo,
    /// The nearest in the direction of ascending places, and from the lowest again (C-SCAN).
    Elevator,
}

/// When changes are answered, as the option of `exports(5)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportMode {
    /// When they are on stable storage, where the protocol wants that.
    #[default]
    Sync,
    /// At once, whatever the protocol wants.
    Async,
}

/// A disk, its file system's journal, and the memory in front of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskConfig {
    /// Mean time to move the head, or to access flash.
    pub seek: Duration,
    /// Time of a turn of the platter; zero for flash. A request elsewhere waits for a part of it, drawn at random; a
    /// write that follows another without a break goes on, and after a break it waits until its place comes by again.
    pub rotation: Duration,
    /// Bytes per second, all channels together.
    pub rate: f64,
    /// Requests served at once.
    pub channels: u32,
    /// Which request is next.
    pub order: DiskOrder,
    /// Bytes of the disk's own write cache, which is lost without power: a flush waits until it is empty.
    pub cache: u64,
    /// Bytes of file data that the server keeps in memory. Background writing begins when a tenth of it is dirty, and
    /// writers wait when a fifth is.
    pub memory: u64,
    /// Bytes read ahead of a sequential reader.
    pub readahead: u64,
}

/// A disk that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// Neither kind.
    #[error("no disk is called `{0}`; kinds are hdd and ssd")]
    Kind(String),
    /// A key that a disk does not have.
    #[error("a disk has no `{0}`; keys are {KEYS}")]
    Key(String),
    /// A value that the key cannot have.
    #[error("`{key}` of a disk: {problem}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

const KEYS: &str = "seek, rotation, rate, channels, order, cache, memory, readahead";

impl DiskConfig {
    /// A disk of a kind, with a gigabyte of memory in front of it.
    pub fn of(kind: DiskKind) -> Option<Self> {
        let (seek, rotation, rate, channels) = match kind {
            DiskKind::None => return None,
            DiskKind::Hdd => (Duration::from_millis(8), Duration::from_secs(60) / 7200, 150e6, 1),
            DiskKind::Ssd => (Duration::from_micros(80), Duration::ZERO, 500e6, 8),
        };
        let (cache, memory, readahead) = (0, 1 << 30, 128 << 10);
        Some(Self { seek, rotation, rate, channels, order: DiskOrder::Fifo, cache, memory, readahead })
    }

    /// Checks values against each other and their limits.
    ///
    /// # Errors
    /// The first key whose value cannot be.
    pub fn check(&self) -> Result<(), DiskError> {
        let bad =
            |key: &str, problem: &str| Err(DiskError::Value { key: key.into(), problem: problem.into() });
        if !(self.rate >= 1e3 && self.rate <= 1e12) {
            return bad("rate", "write a rate from 1kB/s to 1TB/s, such as 150MB/s");
        }
        if !(1..=1024).contains(&self.channels) {
            return bad("channels", "write a number from 1 to 1024");
        }
        if self.seek > Duration::from_secs(1) || self.rotation > Duration::from_secs(1) {
            let key = if self.rotation > self.seek { "rotation" } else { "seek" };
            return bad(key, "write a time of at most 1s, such as 8ms");
        }
        if self.memory < 1 << 20 {
            return bad("memory", "write a size of at least 1MiB: data waits there for the disk");
        }
        if self.readahead > self.memory / 4 {
            return bad("readahead", "write at most a quarter of `memory`");
        }
        Ok(())
    }

    /// Sets a key from its text.
    fn set(&mut self, key: &str, text: &str) -> Result<(), DiskError> {
        fn parsed<T: FromStr<Err: fmt::Display>>(key: &str, text: &str) -> Result<T, DiskError> {
            let problem = |error: T::Err| DiskError::Value { key: key.into(), problem: error.to_string() };
            text.parse().map_err(problem)
        }
        match key {
            "seek" => self.seek = parsed::<TimeSpan>(key, text)?.0,
            "rotation" => self.rotation = parsed::<TimeSpan>(key, text)?.0,
            "rate" => self.rate = parsed::<Bandwidth>(key, text)?.0,
            "channels" => self.channels = parsed(key, text)?,
            "cache" => self.cache = parsed::<ByteSize>(key, text)?.0,
            "memory" => self.memory = parsed::<ByteSize>(key, text)?.0,
            "readahead" => self.readahead = parsed::<ByteSize>(key, text)?.0,
            "order" => {
                self.order = match text {
                    "fifo" => DiskOrder::Fifo,
                    "elevator" => DiskOrder::Elevator,
                    _ => {
                        return Err(DiskError::Value {
                            key: key.into(),
                            problem: format!("`{text}` is neither fifo nor elevator"),
                        });
                    }
                }
            }
            _ => return Err(DiskError::Key(key.into())),
        }
        Ok(())
    }
}

impl FromStr for DiskConfig {
    type Err = DiskError;

    /// `hdd`, `ssd`, with keys behind them: `hdd,seek=4ms,memory=64MiB`.
    fn from_str(text: &str) -> Result<Self, DiskError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let kind = match name {
            "hdd" => DiskKind::Hdd,
            "ssd" => DiskKind::Ssd,
            _ => DiskKind::None,
        };
        let mut disk = Self::of(kind).ok_or_else(|| DiskError::Kind(name.into()))?;
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| DiskError::Key(part.into()))?;
            disk.set(key, value)?;
        }
        disk.check()?;
        Ok(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_as_written() {
        let disk: DiskConfig =
            "hdd,seek=4ms,rotation=11.1ms,rate=50MB/s,order=elevator,cache=16MiB,memory=64MiB"
                .parse()
                .unwrap();
        assert_eq!((disk.seek, disk.rate, disk.cache), (Duration::from_millis(4), 50e6, 16 << 20));
        assert_eq!((disk.order, disk.channels), (DiskOrder::Elevator, 1));
        assert_eq!("ssd".parse(), DiskConfig::of(DiskKind::Ssd).ok_or(DiskError::Kind(String::new())));
        for (bad, named) in [
            ("tape", "tape"),
            ("hdd,speed=1", "speed"),
            ("hdd,seek", "seek"),
            ("hdd,seek=2s", "seek"),
            ("ssd,rotation=2s", "rotation"),
            ("hdd,rate=0B/s", "rate"),
            ("ssd,channels=0", "channels"),
            ("hdd,order=lifo", "lifo"),
            ("hdd,memory=64KiB", "memory"),
            ("hdd,memory=1MiB,readahead=1MiB", "readahead"),
        ] {
            let error = bad.parse::<DiskConfig>().unwrap_err().to_string();
            assert!(error.contains(named), "{bad}: {error}");
        }
    }
}
