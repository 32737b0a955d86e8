//! What is known of the content of each block of a fileset: the proof behind verification.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often a block has been written, in the low half of a word; the bits above say more.
const COUNT: u64 = 0xffff_ffff;
/// A write is on.
const WRITING: u64 = 1 << 32;
/// The block has no content of ours: its file is new or was emptied.
const EMPTY: u64 = 1 << 33;
/// A write failed. It may or may not show, even after later writes (a network file system may repeat it), so that
/// nothing can be proved of the block any more.
const LOST: u64 = 1 << 34;

/// One word per block. The blocks of a file are consecutive.
#[derive(Debug)]
pub(super) struct Generations {
    block: u64,
    /// Number of each file's first block, and of the one after the last.
    first: Box<[u64]>,
    words: Box<[AtomicU64]>,
}

/// A state of a block that [`Generations::proved`] compares with a later one.
pub(crate) type Seen = u64;

impl Generations {
    /// For files of the sizes given, of which some exist already, with content of generation 0.
    pub(super) fn new(block: u64, files: impl Iterator<Item = (u64, bool)>) -> Self {
        let (mut first, mut words) = (vec![0], Vec::new());
        for (size, exists) in files {
            let state = if exists { 0 } else { EMPTY };
            words.extend((0..size.div_ceil(block)).map(|_| AtomicU64::new(state)));
            first.push(words.len() as u64);
        }
        Self { block, first: first.into(), words: words.into() }
    }

    pub(super) fn block(&self) -> u64 {
        self.block
    }

    /// `None` beyond the file's planned size, where nothing is tracked.
    fn word(&self, file: u64, offset: u64) -> Option<&AtomicU64> {
        let index = self.first[file as usize] + offset / self.block;
        (index < self.first[file as usize + 1]).then(|| &self.words[index as usize])
    }

    /// The generation of block number `number` of a file that was written last, whether another write is on or not; `None`
    /// where its content is not known.
    pub(super) fn written(&self, file: u64, number: u32) -> Option<u32> {
        let now = self.word(file, u64::from(number) * self.block)?.load(Ordering::Acquire);
        (now & (LOST | EMPTY) == 0).then_some(now as u32)
    }

    /// Blocks of a file.
    pub(super) fn blocks(&self, file: u64) -> u32 {
        let blocks = self.first[file as usize + 1] - self.first[file as usize];
        u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// Begins a write and gives its generation; `None` while another write is on.
    pub(super) fn begin(&self, file: u64, offset: u64) -> Option<u32> {
        let Some(word) = self.word(file, offset) else { return Some(0) };
        let now = word.load(Ordering::Acquire);
        if now & LOST != 0 {
            return Some(0);
        }
        if now & WRITING != 0 {
            return None;
        }
        let claimed = word.compare_exchange(now, now | WRITING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        claimed.then_some((now as u32).wrapping_add(1))
    }

    /// Takes a [`Self::begin`] back: nothing was written.
    pub(super) fn cancel(&self, file: u64, offset: u64) {
        if let Some(word) = self.word(file, offset) {
            word.fetch_and(!WRITING, Ordering::AcqRel);
        }
    }

    pub(super) fn end(&self, file: u64, offset: u64, success: bool) {
        let Some(word) = self.word(file, offset) else { return };
        let now = word.load(Ordering::Acquire);
        let next = if success && now & LOST == 0 && now & COUNT < COUNT { (now & COUNT) + 1 } else { LOST };
        word.store(next, Ordering::Release);
    }

    /// All content of a file goes away, or will have gone when the call that follows succeeds.
    pub(super) fn empty(&self, file: u64) {
        let blocks = self.first[file as usize] as usize..self.first[file as usize + 1] as usize;
        for word in &self.words[blocks] {
            let change = |now: u64| {
                if now & (WRITING | LOST) == 0 && now & COUNT < COUNT {
                    // A new count, so that a read that is on proves nothing.
                    Some(((now & COUNT) + 1) | EMPTY)
                } else {
                    Some(LOST)
                }
            };
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        }
    }

    /// The state of a block before it is read.
    pub(super) fn see(&self, file: u64, offset: u64) -> Seen {
        self.word(file, offset).map_or(LOST, |word| word.load(Ordering::Acquire))
    }

    /// The generation a block had during all of a read that began at `seen`; `None` when its content is not known or was
    /// written meanwhile. (Linux does not make reads and writes of a page exclude each other, so that a read during a
    /// write may rightly see some of both.)
    pub(super) fn proved(&self, file: u64, offset: u64, seen: Seen) -> Option<u32> {
        (known(seen).is_some() && self.see(file, offset) == seen).then_some(seen as u32)
    }
}

/// Whether a write failed, so that nothing is known any more.
pub(super) fn is_lost(seen: Seen) -> bool {
    seen & LOST != 0
}

/// The generation of a state, if its content is known.
pub(super) fn known(seen: Seen) -> Option<u32> {
    (seen & !COUNT == 0).then_some(seen as u32)
}

/// The right of one stream to write some blocks, ended by [`WriteClaim::end`]. When it is lost instead, nothing is known
/// about the blocks, as after a failed write.
#[derive(Debug)]
pub(crate) struct WriteClaim<'t> {
    pub(super) generations: Option<&'t Generations>,
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl WriteClaim<'_> {
    /// The write is over.
    pub(crate) fn end(mut self, success: bool) {
        self.settle(success);
        self.generations = None;
    }

    fn settle(&self, success: bool) {
        let Some(generations) = self.generations else { return };
        let blocks = (self.offset..self.offset + self.length).step_by(generations.block as usize);
        blocks.for_each(|at| generations.end(self.file, at, success));
    }
}

impl Drop for WriteClaim<'_> {
    fn drop(&mut self) {
        self.settle(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Generations {
        Generations::new(4096, [(10_000, true), (0, true), (4096, false)].into_iter())
    }

    #[test]
    fn a_write_is_proved_when_it_has_ended_and_not_before() {
        let table = table();
        let before = table.see(0, 4096);
        assert_eq!(table.proved(0, 4096, before), Some(0));
        assert_eq!(table.begin(0, 4096), Some(1));
        assert_eq!(table.begin(0, 4096), None, "one write at a time");
        assert_eq!(table.proved(0, 4096, before), None, "a read during a write may see some of both");
        assert_eq!(table.proved(0, 4096, table.see(0, 4096)), None);
        table.end(0, 4096, true);
        assert_eq!(table.proved(0, 4096, before), None, "the read may have begun before the write");
        assert_eq!(table.proved(0, 4096, table.see(0, 4096)), Some(1));
        assert_eq!(table.proved(0, 0, table.see(0, 0)), Some(0), "other blocks are others");
    }

    #[test]
    fn nothing_is_known_after_a_failed_write_ever() {
        let table = table();
        assert!(table.begin(0, 0).is_some());
        table.end(0, 0, false);
        assert_eq!(known(table.see(0, 0)), None);
        assert!(table.begin(0, 0).is_some());
        table.end(0, 0, true);
        assert_eq!(known(table.see(0, 0)), None);
    }

    #[test]
    fn a_cancelled_write_leaves_the_block_as_it_was() {
        let table = table();
        assert!(table.begin(0, 0).is_some());
        table.cancel(0, 0);
        assert_eq!(known(table.see(0, 0)), Some(0));
        assert_eq!(table.begin(0, 0), Some(1));
    }

    #[test]
    fn files_that_are_new_or_emptied_hold_nothing_until_they_are_written() {
        let table = table();
        assert_eq!(known(table.see(2, 0)), None);
        assert_eq!(table.begin(2, 0), Some(1));
        table.end(2, 0, true);
        assert_eq!(known(table.see(2, 0)), Some(1));
        let before = table.see(0, 8192);
        table.empty(0);
        assert_eq!(known(table.see(0, 8192)), None);
        assert!(table.begin(0, 8192).is_some());
        table.end(0, 8192, true);
        assert_eq!(table.proved(0, 8192, before), None, "the read may have seen the empty file");
        assert_eq!(known(table.see(2, 0)), Some(1), "other files keep their content");
    }

    #[test]
    fn nothing_is_tracked_beyond_a_files_size() {
        let table = table();
        assert_eq!(known(table.see(1, 0)), None);
        assert_eq!(table.begin(1, 0), Some(0));
        table.end(1, 0, true);
        assert_eq!(known(table.see(2, 0)), None, "the next file's block is untouched");
    }
}
