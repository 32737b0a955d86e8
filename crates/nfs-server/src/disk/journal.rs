//! The file system's journal: changes gather in a transaction, which is committed when somebody waits for it, and every
//! few seconds.

use std::collections::{BTreeMap, HashSet};

use hashbrown::HashMap;

use super::device::Nanos;
use super::pages::PAGE;
use crate::handle::FileId;

/// Where the journal lies, and how long it is before it begins again.
const PLACE: u64 = 1 << 63;
const LENGTH: u64 = 128 << 20;
/// Blocks that one descriptor block describes.
const DESCRIBED: u64 = 500;

/// What a journal did, as `/proc/fs/jbd2` tells it, in sums instead of means.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct JournalCounts {
    pub(super) transactions: u64,
    pub(super) requested: u64,
    pub(super) handles: u64,
    pub(super) blocks: u64,
    pub(super) logged_blocks: u64,
    pub(super) commit_ns: u64,
    pub(super) running_ns: u64,
}

#[derive(Debug, Default)]
struct Transaction {
    number: u64,
    blocks: HashSet<u64>,
    handles: u64,
    began: Nanos,
    /// Whether somebody waits for it.
    requested: bool,
}

/// The transaction on its way to the disk.
#[derive(Debug)]
struct Committing {
    number: u64,
    began: Nanos,
}

#[derive(Debug)]
pub(super) struct Journal {
    running: Transaction,
    committing: Option<Committing>,
    /// Next block of the journal, in bytes from its beginning.
    head: u64,
    /// The last transaction with a change of a file, unless it is committed.
    files: HashMap<FileId, u64>,
    /// Who waits for which transaction.
    waiting: BTreeMap<u64, Vec<u64>>,
    pub(super) counts: JournalCounts,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            running: Transaction { number: 1, ..Transaction::default() },
            committing: None,
            head: 0,
            files: HashMap::new(),
            waiting: BTreeMap::new(),
            counts: JournalCounts::default(),
        }
    }
}

impl Journal {
    /// Adds a change of some blocks to the running transaction: its number.
    pub(super) fn join(&mut self, now: Nanos, file: Option<FileId>, blocks: &[u64]) -> u64 {
        if self.running.handles == 0 {
            self.running.began = now;
        }
        self.running.handles += 1;
        self.running.blocks.extend(blocks);
        if let Some(file) = file {
            self.files.insert(file, self.running.number);
        }
        self.running.number
    }

    /// The transaction that a file waits for.
    pub(super) fn of(&self, file: FileId) -> Option<u64> {
        self.files.get(&file).copied()
    }

    /// Lets a task wait for a transaction.
    pub(super) fn wait(&mut self, transaction: u64, task: u64) {
        if transaction == self.running.number {
            self.running.requested = true;
        }
        self.waiting.entry(transaction).or_default().push(task);
    }

    /// Whether a transaction can be committed now: `idle` if nothing waits for it.
    pub(super) fn can_commit(&self, idle: bool) -> bool {
        self.committing.is_none() && self.running.handles > 0 && (idle || self.running.requested)
    }

    /// Closes the running transaction: place and bytes of its descriptors and blocks in the journal.
    pub(super) fn begin(&mut self, now: Nanos) -> (u64, u64) {
        let number = self.running.number;
        let closed = std::mem::replace(
            &mut self.running,
            Transaction { number: number + 1, ..Transaction::default() },
        );
        let blocks = closed.blocks.len() as u64;
        let logged = blocks + blocks.div_ceil(DESCRIBED).max(1);
        self.counts.transactions += 1;
        self.counts.requested += u64::from(closed.requested);
        self.counts.handles += closed.handles;
        self.counts.blocks += blocks;
        // With the commit block.
        self.counts.logged_blocks += logged + 1;
        self.counts.running_ns += now - closed.began;
        self.committing = Some(Committing { number, began: now });
        self.place(logged)
    }

    /// Place of a number of blocks behind the last.
    fn place(&mut self, blocks: u64) -> (u64, u64) {
        if self.head + (blocks + 1) * PAGE > LENGTH {
            self.head = 0;
        }
        let at = PLACE + self.head;
        self.head += blocks * PAGE;
        (at, blocks * PAGE)
    }

    /// Place and bytes of the commit block.
    pub(super) fn commit_block(&mut self) -> (u64, u64) {
        self.place(1)
    }

    /// The transaction is committed: who waited for it.
    pub(super) fn end(&mut self, now: Nanos) -> Vec<u64> {
        let Some(Committing { number, began }) = self.committing.take() else { return Vec::new() };
        self.counts.commit_ns += now - began;
        self.files.retain(|_, last| *last > number);
        self.waiting.remove(&number).unwrap_or_default()
    }
}
