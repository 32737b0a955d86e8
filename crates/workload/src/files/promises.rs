//! What of a fileset was acknowledged as stable: the part of a durability witness that goes with each file.
//!
//! A promise is noted after the reply that makes it, and forgotten before an operation that may end it. One that is noted
//! therefore holds, whatever streams do at the same time; one whose reply never came is not noted.

use std::sync::Arc;

use benchmaster_record::witness::Promise;
use parking_lot::Mutex;

use super::generations::{Generations, is_lost};
use super::{FileTable, Picked};
use crate::ledger::{Entry, Ledger};

/// What replies mean where the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// A reply to a change of names promises it.
    pub(crate) names: bool,
    /// Closing a file flushes it.
    pub(crate) close: bool,
}

/// What a file is promised to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameState {
    /// Its usual name.
    Usual = 0,
    /// Its other name.
    Renamed = 1,
    /// Nothing: it was removed.
    Absent = 2,
}

impl NameState {
    pub(crate) fn of(picked: Picked) -> Self {
        if picked.renamed { Self::Renamed } else { Self::Usual }
    }

    /// The state with this number in a ledger.
    pub(crate) fn from_word(word: u32) -> Option<Self> {
        [Self::Usual, Self::Renamed, Self::Absent].get(word as usize).copied()
    }
}

/// Something promised: of a block the generation that it has at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promised<T> {
    pub(crate) what: T,
    pub(crate) by: Promise,
    /// Milliseconds since the ledger was begun.
    pub(crate) at_ms: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    promised: Option<Promised<u32>>,
    /// Written since it was flushed; it is in the list of its file.
    dirty: bool,
}

#[derive(Debug, Default)]
struct FileState {
    name: Option<Promised<NameState>>,
    blocks: Box<[Block]>,
    /// What was written and not flushed: client and number of the block.
    dirty: Vec<(u32, u32)>,
    /// How often its content went away.
    emptied: u32,
}

/// Blocks whose content will be promised if nothing goes away meanwhile.
#[derive(Debug)]
pub(crate) struct Flushing {
    emptied: u32,
    /// Number and generation.
    blocks: Vec<(u32, u32)>,
}

/// The promises of one table.
#[derive(Debug)]
pub(crate) struct Promises {
    rules: Rules,
    /// Where promises are noted as well; `None`: they come from there.
    ledger: Option<Arc<Ledger>>,
    /// Its number in the ledger.
    table: u32,
    files: Box<[Mutex<FileState>]>,
}

impl Promises {
    /// Nothing is promised yet of files with these numbers of blocks.
    pub(super) fn new(
        rules: Rules,
        ledger: Option<Arc<Ledger>>,
        table: u32,
        blocks: impl Iterator<Item = usize>,
    ) -> Self {
        let file =
            |blocks| FileState { blocks: vec![Block::default(); blocks].into(), ..FileState::default() };
        Self { rules, ledger, table, files: blocks.map(|blocks| Mutex::new(file(blocks))).collect() }
    }

    fn now_ms(&self) -> u32 {
        self.ledger.as_ref().map_or(0, |ledger| ledger.now_ms())
    }

    fn note(&self, entry: &Entry) {
        if let Some(ledger) = &self.ledger {
            ledger.write(entry);
        }
    }

    fn promise(&self, file: u64, state: &mut FileState, flushing: Flushing, by: Promise) {
        if flushing.emptied != state.emptied {
            return;
        }
        let at_ms = self.now_ms();
        for (number, generation) in flushing.blocks {
            let Some(block) = state.blocks.get_mut(number as usize) else { continue };
            if block.promised.is_none_or(|known| known.what < generation) {
                block.promised = Some(Promised { what: generation, by, at_ms });
                self.note(&Entry::block(self.table, file, number, generation, by, at_ms));
            }
        }
    }

    /// What becomes of a write to these blocks, asked before it.
    pub(super) fn emptied(&self, file: u64) -> u32 {
        self.files[file as usize].lock().emptied
    }

    /// Blocks were written through a file that syncs every write.
    pub(super) fn synced(&self, file: u64, emptied: u32, blocks: Vec<(u32, u32)>) {
        let mut state = self.files[file as usize].lock();
        self.promise(file, &mut state, Flushing { emptied, blocks }, Promise::Write);
    }

    /// Blocks were written; the next flush of the client promises them.
    pub(super) fn wrote(&self, client: u32, file: u64, blocks: impl Iterator<Item = u32>) {
        let FileState { blocks: all, dirty, .. } = &mut *self.files[file as usize].lock();
        for number in blocks {
            if let Some(block) = all.get_mut(number as usize).filter(|block| !block.dirty) {
                block.dirty = true;
                dirty.push((client, number));
            }
        }
    }

    /// A flush of a file begins: what it will promise.
    pub(super) fn flushing(&self, client: u32, file: u64, generations: &Generations) -> Flushing {
        let FileState { blocks: all, dirty, emptied, .. } = &mut *self.files[file as usize].lock();
        let mut blocks = Vec::new();
        dirty.retain(|&(writer, number)| {
            if writer == client {
                all[number as usize].dirty = false;
                // The write may be followed by one that is on: what had ended before the flush is flushed.
                blocks.extend(generations.written(file, number).map(|generation| (number, generation)));
            }
            writer != client
        });
        Flushing { emptied: *emptied, blocks }
    }

    /// It succeeded.
    pub(super) fn flushed(&self, file: u64, flushing: Flushing, by: Promise) {
        self.promise(file, &mut self.files[file as usize].lock(), flushing, by);
    }

    /// The content of a file goes away, or may.
    pub(super) fn empty(&self, file: u64) {
        let mut state = self.files[file as usize].lock();
        state.emptied = state.emptied.wrapping_add(1);
        state.dirty.clear();
        let known = state.blocks.iter().any(|block| block.promised.is_some());
        state.blocks.fill(Block::default());
        if known {
            self.note(&Entry::emptied(self.table, file));
        }
    }

    /// What a file is called may change.
    pub(super) fn unsure(&self, file: u64) {
        if self.files[file as usize].lock().name.take().is_some() {
            self.note(&Entry::unsure(self.table, file));
        }
    }

    /// What a file is called now.
    pub(super) fn name(&self, file: u64, name: NameState, by: Promise) {
        let at_ms = self.now_ms();
        self.files[file as usize].lock().name = Some(Promised { what: name, by, at_ms });
        self.note(&Entry::name(self.table, file, name, by, at_ms));
    }

    /// A file that was there when the workload began, flushed, with these blocks. Only what the fileset's description does
    /// not say is noted.
    fn prepared(&self, file: u64, name: NameState, blocks: impl Iterator<Item = (u32, u32)>) {
        let by = Promise::Prepared;
        let mut state = self.files[file as usize].lock();
        state.name = Some(Promised { what: name, by, at_ms: 0 });
        if name != NameState::Usual {
            self.note(&Entry::name(self.table, file, name, by, 0));
        }
        for (number, generation) in blocks {
            let Some(block) = state.blocks.get_mut(number as usize) else { continue };
            block.promised = Some(Promised { what: generation, by, at_ms: 0 });
            if generation > 0 {
                self.note(&Entry::block(self.table, file, number, generation, by, 0));
            }
        }
    }

    /// What a ledger says.
    pub(crate) fn again(&self, entry: &Entry) {
        let (_, file) = entry.place();
        let state = &mut *self.files[file as usize].lock();
        match *entry {
            Entry::Block { number, generation, by, at_ms, .. } => {
                if let Some(block) = state.blocks.get_mut(number as usize) {
                    block.promised = Some(Promised { what: generation, by, at_ms });
                }
            }
            Entry::Name { name, by, at_ms, .. } => state.name = Some(Promised { what: name, by, at_ms }),
            Entry::Emptied { .. } => state.blocks.fill(Block::default()),
            Entry::Unsure { .. } => state.name = None,
        }
    }

    /// What is promised of a file: its name, and its blocks by number.
    pub(crate) fn of(&self, file: u64) -> (Option<Promised<NameState>>, Vec<Option<Promised<u32>>>) {
        let state = self.files[file as usize].lock();
        (state.name, state.blocks.iter().map(|block| block.promised).collect())
    }
}

impl FileTable {
    /// Begins to note what is acknowledged as stable, as table number `table` of a ledger. Nothing is, yet.
    pub(crate) fn witness(&self, rules: Rules, ledger: Option<Arc<Ledger>>, table: u32) {
        let blocks = |file| self.generations.as_ref().map_or(0, |known| known.blocks(file) as usize);
        let promises = Promises::new(rules, ledger, table, (0..self.files()).map(blocks));
        *self.promises.write() = Some(Arc::new(promises));
    }

    /// All that is there now is promised: it was flushed.
    pub(crate) fn promise_all(&self) {
        let Some((promises, generations)) = self.promises().zip(self.generations.as_ref()) else { return };
        for file in (0..self.files()).filter(|&file| self.exists(file)) {
            let name = NameState::of(self.at(file));
            let blocks = (0..generations.blocks(file))
                .filter_map(|number| Some((number, generations.written(file, number)?)));
            promises.prepared(file, name, blocks);
        }
        for file in (0..self.files()).filter(|&file| !self.exists(file) && self.is_prefilled(file)) {
            promises.note(&Entry::unsure(promises.table, file));
            promises.note(&Entry::emptied(promises.table, file));
        }
    }

    /// Ends that.
    pub(crate) fn end_witness(&self) {
        *self.promises.write() = None;
    }

    pub(crate) fn promises(&self) -> Option<Arc<Promises>> {
        self.generations.as_ref().and_then(|_| self.promises.read().clone())
    }

    /// To be called before a write: what [`Self::after_write`] is to be given.
    pub(crate) fn before_write(&self, file: u64) -> Option<u32> {
        Some(self.promises()?.emptied(file))
    }

    /// A write of whole blocks has ended: not (`None`), or well, with `true` through a file that syncs every write.
    pub(crate) fn after_write(
        &self,
        client: u32,
        file: u64,
        emptied: Option<u32>,
        (offset, length): (u64, usize),
        written: Option<bool>,
    ) {
        let Some(((promises, generations), emptied)) =
            self.promises().zip(self.generations.as_ref()).zip(emptied)
        else {
            return;
        };
        let block = generations.block();
        let numbers = (offset / block..(offset + length as u64).div_ceil(block)).map(|number| number as u32);
        match written {
            // What the blocks hold is not known any more.
            None => promises.empty(file),
            Some(false) => promises.wrote(client, file, numbers),
            Some(true) => {
                let blocks = numbers.filter_map(|number| Some((number, generations.written(file, number)?)));
                promises.synced(file, emptied, blocks.collect());
            }
        }
    }

    /// A flush of a file by a client begins.
    pub(crate) fn flushing(&self, client: u32, file: u64) -> Option<Flushing> {
        let (promises, generations) = self.promises().zip(self.generations.as_ref())?;
        Some(promises.flushing(client, file, generations))
    }

    /// It succeeded.
    pub(crate) fn flushed(&self, file: u64, flushing: Option<Flushing>, by: Promise) {
        if let Some((promises, flushing)) = self.promises().zip(flushing) {
            promises.flushed(file, flushing, by);
        }
    }

    /// Whether closing a file flushes it.
    pub(crate) fn close_flushes(&self) -> bool {
        self.promises().is_some_and(|promises| promises.rules.close)
    }

    /// What a file is called is about to change.
    pub(crate) fn name_changes(&self, file: u64) {
        if let Some(promises) = self.promises() {
            promises.unsure(file);
        }
    }

    /// It has changed.
    pub(crate) fn name_changed(&self, file: u64, name: NameState, by: Promise) {
        if let Some(promises) = self.promises().filter(|promises| promises.rules.names) {
            promises.name(file, name, by);
        }
    }

    /// The content of a file goes away.
    pub(super) fn promises_end(&self, file: u64) {
        if let Some(promises) = self.promises() {
            promises.empty(file);
        }
    }

    /// Whether a write to a block failed, so that nothing is known of it.
    pub(crate) fn is_unknown(&self, file: u64, number: u32) -> bool {
        self.generations
            .as_ref()
            .is_none_or(|known| is_lost(known.see(file, u64::from(number) * known.block())))
    }
}
