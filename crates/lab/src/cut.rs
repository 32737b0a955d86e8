//! A power cut of the server machine: what its disk does at it, and what came of it.
//!
//! * `log`: what the machine wrote to its disk, and when it flushed it.
//! * `survivors`: what of it is still there afterwards.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

pub(crate) mod log;
pub(crate) mod survivors;

pub use log::LogError;
pub use survivors::Survivors;

/// Bytes of a disk that are written whole or not at all.
pub const SECTOR: u64 = 512;

/// A power cut of the server machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerCut {
    pub disk: CutDisk,
    /// Decides about each write that is at risk: the same writes and the same seed give the same disk.
    pub seed: u64,
}

/// What a disk does with writes until power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutDisk {
    /// It has no volatile cache: every write that was done is kept.
    Durable,
    /// Its cache is volatile: of the writes since the last flush each is kept, dropped, or torn between sectors.
    Cached,
    /// It lies: flushes were reported and not done, so that recent writes are at risk as well.
    Lying(Recent),
}

/// Which writes a lying disk has only in its cache, besides those since the last flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recent {
    /// The last ones, this number of them.
    Writes(u64),
    /// Those of the time before the cut.
    Time(Duration),
}

/// What a power cut was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutFacts {
    /// When the machine was killed, by the host's clock.
    pub killed: SystemTime,
    /// From then until NFS was served again.
    pub outage: Duration,
    /// The part of it until the machine, which had booted again, served requests of the lab.
    pub boot: Duration,
    /// What the disk had afterwards.
    pub disk: Survivors,
    /// What mounting the file system needed besides its journal: why it was refused, and what the repair said. `None`:
    /// nothing, as it should be.
    pub repaired: Option<String>,
    /// Whether the server has begun a grace period, in which clients reclaim what they held: it knew of some.
    pub grace: bool,
}
