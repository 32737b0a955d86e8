//! Content of a regular file: pages by number, nothing where there is a hole.
//!
//! Bytes of pages after the end of the file are zeros, always: extending a file never has to touch them.

use std::collections::BTreeMap;
use std::ops::Range;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::page::{self, PAGE, PAGE_U64, Page, PageSlice};
use super::runs::Runs;
use super::{FsError, SeekKind};

/// Largest size of a file.
pub(super) const SIZE_MAX: u64 = i64::MAX as u64;

/// Pages that one leaf of a large file's map holds.
const LEAF: u64 = 64;

/// Size and pages of a file.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) size: u64,
    pages: Pages,
}

#[derive(Debug, Default)]
enum Pages {
    #[default]
    None,
    /// Page 0 alone: most files.
    One(Page),
    Many(Box<Many>),
}

#[derive(Debug, Default)]
struct Many {
    leaves: BTreeMap<u64, Box<Leaf>>,
    /// Pages that are reserved and were not written since: they read as zeros and have no place in a leaf.
    reserved: Runs,
    used: u64,
}

#[derive(Debug)]
struct Leaf {
    pages: [Option<Page>; LEAF as usize],
    count: usize,
}

/// How pages grow: with room for more, or no further than needed (when space is short).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    Roomy,
    Tight,
}

impl Growth {
    fn len(self, needed: usize, old: usize) -> usize {
        match self {
            Self::Roomy => page::roomy(needed, old),
            Self::Tight if needed <= old => old,
            Self::Tight => page::tight(needed),
        }
    }
}

/// Data to be copied to another place: by reference to the page it is in.
#[derive(Debug)]
pub(super) struct Piece {
    /// Distance from the start of the copied range.
    pub(super) at: u64,
    page: Page,
    range: Range<usize>,
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        self.page.get(self.range.clone()).unwrap_or_default()
    }
}

impl Data {
    /// Bytes of memory that the pages take.
    pub(super) fn used(&self) -> u64 {
        match &self.pages {
            Pages::None => 0,
            Pages::One(page) => page.len() as u64,
            Pages::Many(many) => many.used,
        }
    }

    /// Appends references to `range` (which is within the file) to `out`.
    pub(super) fn read(&self, range: Range<u64>, out: &mut Vec<PageSlice>) {
        let mut at = range.start;
        while at < range.end {
            let (index, part) = part(at, range.end);
            let page = self.page(index);
            let held = page.map_or(0, |page| page.len()).clamp(part.start, part.end);
            if let Some(page) = page
                && part.start < held
            {
                out.push(PageSlice::new(page, part.start..held));
            }
            if held < part.end {
                out.push(PageSlice::new(page::zeros(), held..part.end));
            }
            at += part.len() as u64;
        }
    }

    /// Writes into a page that is there and long enough; `false` when there is none.
    pub(super) fn overwrite(&mut self, offset: u64, data: &[u8]) -> bool {
        let (index, part) = part(offset, offset + data.len() as u64);
        if part.len() != data.len() {
            return false;
        }
        let Some(page) = self.page_mut(index).filter(|page| part.end <= page.len()) else { return false };
        page::put(page, part.start, data);
        self.size = self.size.max(offset + data.len() as u64);
        true
    }

    /// How many bytes of memory [`Data::write`] of `range` will take more.
    pub(super) fn write_needs(&self, range: Range<u64>, growth: Growth) -> u64 {
        parts(range)
            .map(|(index, part)| {
                let old = self.page(index).map_or(0, |page| page.len());
                (growth.len(part.end, old) - old) as u64
            })
            .sum()
    }

    /// Writes `data` at `offset`, extending the file.
    pub(super) fn write(&mut self, offset: u64, data: &[u8], growth: Growth) {
        let end = offset + data.len() as u64;
        let mut rest = data;
        for (index, part) in parts(offset..end) {
            let (now, later) = rest.split_at(part.len());
            rest = later;
            match self.page_mut(index) {
                Some(page) if part.end <= page.len() => page::put(page, part.start, now),
                old => {
                    let old: &[u8] = old.map_or(&[], |page| &page[..]);
                    let len = growth.len(part.end, old.len());
                    let page = page::build(len, old, part.start, now);
                    self.insert(index, page);
                }
            }
        }
        self.size = self.size.max(end);
    }

    /// Sets the size; what is cut off is gone for good.
    pub(super) fn resize(&mut self, size: u64) {
        if size < self.size && !is_broken(Mutant::TailReturns) {
            let (index, keep) = (size / PAGE_U64, (size % PAGE_U64) as usize);
            self.remove(index + u64::from(keep > 0)..u64::MAX);
            if let Some(page) = self.page_mut(index) {
                let len = page::tight(keep);
                if len < page.len() {
                    let short = page::build(len, &page[..keep], 0, &[]);
                    self.insert(index, short);
                } else {
                    page::clear(page, keep..PAGE);
                }
            }
        }
        self.size = size;
    }

    /// Makes `range` a hole; the size stays.
    pub(super) fn punch(&mut self, range: Range<u64>) {
        // What comes after the end is zeros anyway: a range to the end takes the whole last page.
        let end = if range.end >= self.size { self.size.next_multiple_of(PAGE_U64) } else { range.end };
        if range.start >= end {
            return;
        }
        let whole = range.start.div_ceil(PAGE_U64)..end / PAGE_U64;
        let (first, first_part) = part(range.start, end);
        if !whole.contains(&first)
            && let Some(page) = self.page_mut(first)
        {
            page::clear(page, first_part);
        }
        let last = end / PAGE_U64;
        if last != first
            && let Some(page) = self.page_mut(last)
        {
            page::clear(page, 0..(end % PAGE_U64) as usize);
        }
        self.remove(whole);
    }

    /// How many bytes [`Data::allocate`] of `range` will take more.
    pub(super) fn allocate_needs(&self, range: Range<u64>) -> u64 {
        let last = range.end / PAGE_U64;
        let tail = (range.end % PAGE_U64) as usize;
        let first = range.start / PAGE_U64;
        let mut needs = (last - first).saturating_mul(PAGE_U64);
        if tail > 0 {
            needs = needs.saturating_add(page::tight(tail) as u64);
        }
        let mut pages = first..last + u64::from(tail > 0);
        let mut held = 0;
        if let Some(many) = self.many() {
            held += many.reserved.count(first..last) * PAGE_U64;
            if tail > 0 && many.reserved.end(last).is_some() {
                held += page::tight(tail) as u64;
            }
        }
        while let Some((index, page)) = self.next_written(pages.clone()) {
            let most = if index == last { page::tight(tail) } else { PAGE };
            held += page.len().min(most) as u64;
            pages.start = index + 1;
        }
        needs.saturating_sub(held)
    }

    /// Reserves the holes in `range`: whole pages without memory until they are written. Extends the file.
    pub(super) fn allocate(&mut self, range: Range<u64>) {
        // A page that is needed to its end is whole.
        let (first, last) = (range.start / PAGE_U64, range.end / PAGE_U64);
        let tail = (range.end % PAGE_U64) as usize;
        let mut at = first;
        while at < last {
            let next = self.next_written(at..last).map(|(index, page)| (index, page.len()));
            let (end, short) = next.map_or((last, false), |(index, len)| (index, len < PAGE));
            self.reserve(at..end);
            if short && let Some(page) = self.page(end) {
                let whole = page::build(PAGE, page, 0, &[]);
                self.insert(end, whole);
            }
            at = end + 1;
        }
        if tail > 0 {
            let len = page::tight(tail);
            let page = match self.page(last) {
                Some(page) if page.len() >= len => None,
                Some(page) => Some(page::build(len, page, 0, &[])),
                None if len == PAGE => {
                    self.reserve(last..last + 1);
                    None
                }
                None => Some(page::zeroed(len)),
            };
            if let Some(page) = page {
                self.insert(last, page);
            }
        }
        self.size = self.size.max(range.end);
    }

    /// Reserves pages none of which is written.
    pub(super) fn reserve(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.change_many(|many| {
            many.used -= many.reserved.remove(range.clone()) * PAGE_U64;
            many.used += (range.end - range.start) * PAGE_U64;
            many.reserved.insert(range);
        });
    }

    /// Whether any page of these was written.
    pub(super) fn is_written(&self, range: Range<u64>) -> bool {
        self.next_written(range).is_some()
    }

    /// The runs of reserved pages, for saving.
    pub(super) fn reserved(&self) -> impl Iterator<Item = Range<u64>> {
        self.many().into_iter().flat_map(|many| many.reserved.iter())
    }

    /// First data or hole at or after `offset`.
    pub(super) fn seek(&self, offset: u64, what: SeekKind) -> Result<Option<u64>, FsError> {
        if offset >= self.size {
            return Err(FsError::NoSuchRange);
        }
        let (mut index, part) = part(offset, self.size);
        let here = self.page(index).is_some_and(|page| part.start < page.len());
        Ok(match what {
            SeekKind::Data if here => Some(offset),
            SeekKind::Data => self.next_page(index + 1..u64::MAX).map(|index| index * PAGE_U64),
            SeekKind::Hole if !here => Some(offset),
            SeekKind::Hole => {
                loop {
                    if let Some(end) = self.reserved_to(index) {
                        index = end;
                    } else if self.page(index).is_some_and(|page| page.len() == PAGE) {
                        index += 1;
                    } else {
                        break;
                    }
                }
                let held = self.page(index).map_or(0, |page| page.len() as u64);
                Some((index * PAGE_U64 + held).min(self.size))
            }
        })
    }

    /// References to the data in `range` (which is within the file), without the holes and what is reserved only.
    pub(super) fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut pages = range.start / PAGE_U64..range.end.div_ceil(PAGE_U64);
        while let Some((index, page)) = self.next_written(pages.clone()) {
            pages.start = index + 1;
            let start = index * PAGE_U64;
            let from = range.start.saturating_sub(start) as usize;
            let to = (range.end - start).min(page.len() as u64) as usize;
            if from < to {
                out.push(Piece {
                    at: start + from as u64 - range.start,
                    page: page.clone(),
                    range: from..to,
                });
            }
        }
        out
    }

    /// How many bytes of memory [`Data::paste`] will take more, at most.
    pub(super) fn paste_needs(&self, offset: u64, pieces: &[Piece]) -> u64 {
        let mut needs = 0;
        let mut current = (u64::MAX, 0);
        for piece in pieces {
            let from = offset + piece.at;
            for (index, part) in parts(from..from + piece.range.len() as u64) {
                if index != current.0 {
                    current = (index, self.page(index).map_or(0, |page| page.len()));
                }
                let shared = if part.start == 0 && piece.range.start == 0 { piece.page.len() } else { 0 };
                let len = Growth::Tight.len(part.end, current.1).max(shared);
                needs += (len - current.1) as u64;
                current.1 = len;
            }
        }
        needs
    }

    /// Puts `pieces` of a range of `len` bytes to `offset`, holes where there were holes; whole pages are shared.
    pub(super) fn paste(&mut self, offset: u64, len: u64, pieces: &[Piece]) {
        let end = offset + len;
        let mut at = offset;
        for piece in pieces {
            let from = offset + piece.at;
            let to = from + piece.range.len() as u64;
            self.punch_inside(at..from);
            at = to;
            let whole = piece.range.start == 0
                && from.is_multiple_of(PAGE_U64)
                && piece.range.end == piece.page.len()
                && (piece.range.end == PAGE || to >= self.size);
            if whole {
                self.insert(from / PAGE_U64, piece.page.clone());
                self.size = self.size.max(to);
            } else {
                self.write(from, &piece.page[piece.range.clone()], Growth::Tight);
            }
        }
        self.punch_inside(at..end);
        self.size = self.size.max(end);
    }

    fn punch_inside(&mut self, range: Range<u64>) {
        let range = range.start..range.end.min(self.size);
        if !range.is_empty() {
            self.punch(range);
        }
    }

    /// All pages that were written, in order.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u64, &Page)> {
        let mut pages = 0..u64::MAX;
        std::iter::from_fn(move || {
            let (index, page) = self.next_written(pages.clone())?;
            pages.start = index + 1;
            Some((index, page))
        })
    }

    /// The first page in `range`, written or reserved.
    fn next_page(&self, range: Range<u64>) -> Option<u64> {
        let written = self.next_written(range.clone()).map(|(index, _)| index);
        let reserved = self.many().and_then(|many| many.reserved.first(range));
        written.into_iter().chain(reserved).min()
    }

    /// The end of the reserved run that a page is in.
    fn reserved_to(&self, index: u64) -> Option<u64> {
        self.many()?.reserved.end(index)
    }

    fn many(&self) -> Option<&Many> {
        if let Pages::Many(many) = &self.pages { Some(many) } else { None }
    }

    /// The first page whose number is in `range` and that was written.
    fn next_written(&self, range: Range<u64>) -> Option<(u64, &Page)> {
        match &self.pages {
            _ if range.is_empty() => None,
            Pages::None => None,
            Pages::One(page) => (range.start == 0).then_some((0, page)),
            Pages::Many(many) => many
                .leaves
                .range(range.start / LEAF..=(range.end - 1) / LEAF)
                .find_map(|(number, leaf)| {
                    let base = number * LEAF;
                    let from = range.start.saturating_sub(base) as usize;
                    let pages = leaf.pages.iter().enumerate().skip(from);
                    pages.filter_map(|(slot, page)| Some((base + slot as u64, page.as_ref()?))).next()
                })
                .filter(|(index, _)| *index < range.end),
        }
    }

    fn page(&self, index: u64) -> Option<&Page> {
        match &self.pages {
            Pages::None => None,
            Pages::One(page) => (index == 0).then_some(page),
            Pages::Many(many) => many.page(index),
        }
    }

    fn page_mut(&mut self, index: u64) -> Option<&mut Page> {
        match &mut self.pages {
            Pages::None => None,
            Pages::One(page) => (index == 0).then_some(page),
            Pages::Many(many) => {
                if many.reserved.end(index).is_some() {
                    many.insert(index, page::zeros().clone());
                }
                many.leaves.get_mut(&(index / LEAF))?.pages.get_mut((index % LEAF) as usize)?.as_mut()
            }
        }
    }

    /// Puts a page in, in place of what was there.
    pub(super) fn insert(&mut self, index: u64, page: Page) {
        match &mut self.pages {
            Pages::None | Pages::One(_) if index == 0 => self.pages = Pages::One(page),
            _ => self.change_many(|many| many.insert(index, page)),
        }
    }

    /// Changes the map of a large file, which the file becomes.
    fn change_many(&mut self, change: impl FnOnce(&mut Many)) {
        let mut many = match std::mem::take(&mut self.pages) {
            Pages::None => Box::default(),
            Pages::One(first) => {
                let mut many = Box::<Many>::default();
                many.insert(0, first);
                many
            }
            Pages::Many(many) => many,
        };
        change(&mut many);
        self.pages = Pages::Many(many);
    }

    /// Drops the pages with numbers in `range`.
    fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match &mut self.pages {
            Pages::One(_) if range.start == 0 => self.pages = Pages::None,
            Pages::Many(many) => {
                many.remove(range);
                if many.leaves.is_empty() && many.reserved.is_empty() {
                    self.pages = Pages::None;
                }
            }
            _ => {}
        }
    }
}

impl Many {
    fn page(&self, index: u64) -> Option<&Page> {
        let written =
            self.leaves.get(&(index / LEAF)).and_then(|leaf| leaf.pages.get((index % LEAF) as usize));
        match written {
            Some(Some(page)) => Some(page),
            _ => self.reserved.end(index).map(|_| page::zeros()),
        }
    }

    fn insert(&mut self, index: u64, page: Page) {
        if !self.reserved.is_empty() {
            self.used -= self.reserved.remove(index..index + 1) * PAGE_U64;
        }
        let leaf = self
            .leaves
            .entry(index / LEAF)
            .or_insert_with(|| Box::new(Leaf { pages: [const { None }; LEAF as usize], count: 0 }));
        if let Some(slot) = leaf.pages.get_mut((index % LEAF) as usize) {
            self.used += page.len() as u64;
            match slot.replace(page) {
                Some(old) => self.used -= old.len() as u64,
                None => leaf.count += 1,
            }
        }
    }

    fn remove(&mut self, range: Range<u64>) {
        self.used -= self.reserved.remove(range.clone()) * PAGE_U64;
        let mut empty = Vec::new();
        for (number, leaf) in self.leaves.range_mut(range.start / LEAF..=(range.end - 1) / LEAF) {
            let base = number * LEAF;
            let from = range.start.saturating_sub(base) as usize;
            let to = (range.end - base).min(LEAF) as usize;
            for slot in leaf.pages.iter_mut().take(to).skip(from) {
                if let Some(page) = slot.take() {
                    self.used -= page.len() as u64;
                    leaf.count -= 1;
                }
            }
            if leaf.count == 0 {
                empty.push(*number);
            }
        }
        for number in empty {
            self.leaves.remove(&number);
        }
    }
}

/// Number of the page that `at` is in, and the part of it from there to `end` at most.
fn part(at: u64, end: u64) -> (u64, Range<usize>) {
    let start = at % PAGE_U64;
    let len = (end - at).min(PAGE_U64 - start);
    (at / PAGE_U64, start as usize..(start + len) as usize)
}

/// The pages that `range` touches, and which part of each.
fn parts(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        (at < range.end).then(|| {
            let (index, part) = part(at, range.end);
            at += part.len() as u64;
            (index, part)
        })
    })
}
