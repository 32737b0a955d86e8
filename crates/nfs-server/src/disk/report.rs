//! What a disk has done, for statistics and samplers.

use serde::Serialize;

use super::device::DeviceCounts;
use super::journal::JournalCounts;

/// What a disk, its journal and the memory before it did since the server started. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiskReport {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time of all reads, with queueing.
    pub read_ns: u64,
    /// Writes completed, those of the journal included.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time of all writes, with queueing.
    pub write_ns: u64,
    /// Requests in flight now.
    pub in_flight: u64,
    /// Time with a request in flight.
    pub busy_ns: u64,
    /// Time of all requests in flight.
    pub queue_ns: u64,
    /// Flushes of the disk's cache.
    pub flushes: u64,
    /// Time of all flushes.
    pub flush_ns: u64,
    /// Transactions of the journal committed or being committed.
    pub transactions: u64,
    /// Those that a request waited for.
    pub requested: u64,
    /// Changes in them.
    pub handles: u64,
    /// Blocks of the file system in them.
    pub metadata_blocks: u64,
    /// Blocks written to the journal, with descriptors and commit blocks.
    pub journal_blocks: u64,
    /// Time of all commits.
    pub commit_ns: u64,
    /// Time for which transactions were open for changes.
    pub running_ns: u64,
    /// Bytes that clients wrote.
    pub asked_bytes: u64,
    /// Blocks of file data on the disk, each time that they were written.
    pub data_blocks: u64,
    /// Bytes that the disk does not have now: lost without power.
    pub dirty_bytes: u64,
    /// Pages read from memory.
    pub cache_hits: u64,
    /// Pages read that had to come from the disk.
    pub cache_misses: u64,
    /// Time for which replies were held back until the disk had done its part.
    pub held_ns: u64,
}

impl DiskReport {
    /// With what device and journal count.
    pub(super) fn with(self, device: DeviceCounts, journal: JournalCounts) -> Self {
        Self {
            reads: device.reads,
            read_bytes: device.read_bytes,
            read_ns: device.read_ns,
            writes: device.writes,
            written_bytes: device.written_bytes,
            write_ns: device.write_ns,
            in_flight: device.in_flight,
            busy_ns: device.busy_ns,
            queue_ns: device.queue_ns,
            flushes: device.flushes,
            flush_ns: device.flush_ns,
            transactions: journal.transactions,
            requested: journal.requested,
            handles: journal.handles,
            metadata_blocks: journal.blocks,
            journal_blocks: journal.logged_blocks,
            commit_ns: journal.commit_ns,
            running_ns: journal.running_ns,
            ..self
        }
    }
}
