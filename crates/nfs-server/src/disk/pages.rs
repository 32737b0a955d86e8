//! The server's memory in front of the disk: which pages of files are there, and which of them the disk does not have.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use hashbrown::HashMap;

use super::device::Nanos;
use crate::handle::FileId;

/// Bytes of a page, and of a block of the file system.
pub(super) const PAGE: u64 = 4096;
/// Most pages written with one request.
const CHUNK: u64 = 256;

pub(super) type Page = (FileId, u64);

/// The pages that bytes lie on.
pub(super) fn pages_of(offset: u64, len: u64) -> Range<u64> {
    let end = offset.saturating_add(len).div_ceil(PAGE);
    offset / PAGE..if len == 0 { offset / PAGE } else { end }
}

#[derive(Debug)]
pub(super) struct Pages {
    most: usize,
    /// Pages in memory, with the number of their last use.
    present: HashMap<Page, u64>,
    /// Uses in their order; of a page only the last counts.
    uses: VecDeque<(u64, Page)>,
    used: u64,
    /// Since when the disk does not have what a page has.
    dirty: BTreeMap<Page, Nanos>,
}

impl Pages {
    pub(super) fn new(memory: u64) -> Self {
        Self {
            most: (memory / PAGE) as usize,
            present: HashMap::new(),
            uses: VecDeque::new(),
            used: 0,
            dirty: BTreeMap::new(),
        }
    }

    pub(super) fn has(&self, page: Page) -> bool {
        self.present.contains_key(&page)
    }

    /// Notes the use of a page, which is in memory from now on.
    pub(super) fn touch(&mut self, page: Page) {
        self.used += 1;
        self.present.insert(page, self.used);
        self.uses.push_back((self.used, page));
        let mut kept = 0;
        while (self.present.len() > self.most || self.uses.len() > 2 * self.most) && kept < self.uses.len() {
            let Some((number, page)) = self.uses.pop_front() else { return };
            if self.present.get(&page) != Some(&number) {
                continue;
            }
            if self.present.len() <= self.most || self.dirty.contains_key(&page) {
                // Still needed: behind the others, in their order.
                self.uses.push_back((number, page));
                kept += 1;
            } else {
                self.present.remove(&page);
            }
        }
    }

    pub(super) fn soil(&mut self, page: Page, now: Nanos) {
        self.dirty.entry(page).or_insert(now);
        self.touch(page);
    }

    pub(super) fn dirty_bytes(&self) -> u64 {
        self.dirty.len() as u64 * PAGE
    }

    /// Whether a page has been dirty since before `time`.
    pub(super) fn is_old(&self, time: Nanos) -> bool {
        self.dirty.values().any(|since| *since <= time)
    }

    /// Takes the dirty pages of a range of a file, as runs: they are clean from now on.
    pub(super) fn clean(&mut self, file: FileId, range: Range<u64>) -> Vec<(FileId, Range<u64>)> {
        let pages: Vec<Page> =
            self.dirty.range((file, range.start)..(file, range.end)).map(|(page, _)| *page).collect();
        let mut runs: Vec<(FileId, Range<u64>)> = Vec::new();
        for page in pages {
            self.dirty.remove(&page);
            match runs.last_mut() {
                Some((_, run)) if run.end == page.1 && run.end - run.start < CHUNK => run.end += 1,
                _ => runs.push((file, page.1..page.1 + 1)),
            }
        }
        runs
    }

    /// Takes the first run of dirty pages at or behind a page, or else of all.
    pub(super) fn clean_from(&mut self, from: Page) -> Option<(FileId, Range<u64>)> {
        let (page, _) = self.dirty.range(from..).next().or_else(|| self.dirty.first_key_value())?;
        let (file, first) = *page;
        let end =
            (first..first + CHUNK).take_while(|page| self.dirty.contains_key(&(file, *page))).count() as u64;
        let run = first..first + end;
        run.clone().for_each(|page| {
            self.dirty.remove(&(file, page));
        });
        Some((file, run))
    }
}
