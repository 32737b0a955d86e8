//! How data are cached: names and defaults are those of Linux 6.1 where it has them.

use std::time::Duration;

/// When to read ahead of what looks sequential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadaheadRule {
    /// As Linux 3.12 to 6.1: more pages than are asked for must be cached before them.
    #[default]
    Linux61,
    /// As Linux 2.6.32: one cached page before them is enough.
    Linux2632,
}

/// How writers are held back when too much is dirty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Throttle {
    /// As Linux since 3.2: halfway between both limits writers become as slow as data are written back.
    #[default]
    Pace,
    /// At the limit writers stand still until no more than the background limit is dirty.
    Flush,
}

/// How a write finds an earlier request for the same page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestList {
    /// By the page, whatever the number of requests.
    #[default]
    Hash,
    /// As Linux 2.4.4: in a list by offset, searched from its start.
    Sorted,
}

/// Options of the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// Bytes of data cached per mount; ratios refer to it.
    pub memory: u64,
    /// When to read ahead.
    pub readahead: ReadaheadRule,
    /// Most KiB read ahead of a reader; 0 makes every READ a single page.
    pub read_ahead_kb: u32,
    /// Percentage of [`Self::memory`] that may be dirty before write-back starts.
    pub dirty_background_ratio: u32,
    /// Percentage of [`Self::memory`] that may be dirty before writers are throttled.
    pub dirty_ratio: u32,
    /// Bytes instead of [`Self::dirty_background_ratio`]; 0: the ratio counts.
    pub dirty_background_bytes: u64,
    /// Bytes instead of [`Self::dirty_ratio`]; 0: the ratio counts.
    pub dirty_bytes: u64,
    /// Age from which dirty data are written back whatever their amount (`dirty_expire_centisecs`).
    pub dirty_expire: Duration,
    /// How often the age of dirty data is looked at (`dirty_writeback_centisecs`); 0: never.
    pub dirty_writeback: Duration,
    /// How writers are held back.
    pub throttle: Throttle,
    /// Whether a WRITE is sent as soon as a file has `wsize` of dirty data (Linux 2.4).
    pub write_behind: bool,
    /// Requests of a file from which on a writer flushes it and waits (`MAX_REQUEST_SOFT` of Linux 2.4); 0: no limit.
    pub max_request_soft: u32,
    /// Requests of a mount from which on writers wait (`MAX_REQUEST_HARD` of Linux 2.4); 0: no limit.
    pub max_request_hard: u32,
    /// How a write finds an earlier request.
    pub request_list: RequestList,
    /// Whether one lock is held by writers and while a WRITE is sent (Linux 2.4).
    pub send_lock: bool,
}

impl Default for Paging {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            readahead: ReadaheadRule::Linux61,
            read_ahead_kb: 128,
            dirty_background_ratio: 10,
            dirty_ratio: 20,
            dirty_background_bytes: 0,
            dirty_bytes: 0,
            dirty_expire: Duration::from_secs(30),
            dirty_writeback: Duration::from_secs(5),
            throttle: Throttle::Pace,
            write_behind: false,
            max_request_soft: 0,
            max_request_hard: 0,
            request_list: RequestList::Hash,
            send_lock: false,
        }
    }
}

impl Paging {
    /// Bytes that may be dirty before write-back starts, and before writers are throttled. As in Linux, the first is at
    /// most half of the second.
    pub fn dirty_limits(&self) -> (u64, u64) {
        let limit = |bytes: u64, ratio: u32| match bytes {
            0 => self.memory / 100 * u64::from(ratio),
            bytes => bytes,
        };
        let most = limit(self.dirty_bytes, self.dirty_ratio);
        let background = limit(self.dirty_background_bytes, self.dirty_background_ratio);
        (if background >= most { most / 2 } else { background }, most)
    }

    /// Two options that exclude each other: name and value of one, the other, and what would be right.
    pub(super) fn conflict(&self) -> Option<(&'static str, String, String, &'static str)> {
        let (soft, hard) = (self.max_request_soft, self.max_request_hard);
        if hard > 0 && soft > hard {
            let other = format!("max_request_hard={hard}");
            return Some((
                "max_request_soft",
                soft.to_string(),
                other,
                "the limit of a file must not be larger",
            ));
        }
        let most = self.dirty_limits().1;
        if most > self.memory {
            let memory = format!("memory={}", benchmaster_units::ByteSize(self.memory));
            let value = benchmaster_units::ByteSize(self.dirty_bytes).to_string();
            return Some(("dirty_bytes", value, memory, "no more can be dirty than is cached"));
        }
        None
    }
}
