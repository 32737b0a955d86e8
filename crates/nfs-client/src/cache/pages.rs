//! Data of a file in pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

use super::readahead::Neighbours;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
const WHOLE: Range<u16> = 0..PAGE as u16;

#[derive(Debug)]
struct Page {
    data: Box<[u8; PAGE as usize]>,
    /// Bytes that are right: all, or those written here.
    valid: Range<u16>,
    /// Bytes written here that the server does not have and that are not on their way.
    dirty: Range<u16>,
    /// Bytes on their way, and with which run; they do not overlap.
    writing: Vec<(u64, Range<u16>)>,
    /// Since when it is dirty.
    since: Option<Instant>,
    /// Read ahead and not used yet.
    ahead: bool,
    /// Who comes here makes the next window be read.
    marked: bool,
    /// Used since it was last looked at for eviction.
    used: bool,
}

/// A page that is being read.
#[derive(Debug, Clone, Copy)]
struct Coming {
    ahead: bool,
    marked: bool,
}

/// How a page stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Cached,
    /// Only other bytes of it are, and they are not at the server.
    Partly,
    /// It is being read.
    Coming,
    Missing,
}

/// What was done with pages, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Uses {
    /// Pages that were read by the program.
    pub(crate) read: u64,
    /// Of these, pages that had been read ahead and are used for the first time.
    pub(crate) ahead: u64,
}

/// Dirty bytes that are to be sent.
#[derive(Debug)]
pub(crate) struct Run {
    number: u64,
    pub(crate) offset: u64,
    pub(crate) data: Vec<u8>,
}

/// Pages of a file.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: BTreeMap<u64, Page>,
    dirty: BTreeSet<u64>,
    /// Pages with bytes on their way.
    writing: usize,
    /// Number of the last run.
    runs: u64,
    /// Runs on their way.
    running: BTreeSet<u64>,
    /// One past the last byte written since nothing was dirty.
    end: u64,
    coming: BTreeMap<u64, Coming>,
    added: Vec<u64>,
    uses: Uses,
}

/// A piece of a byte range within one page: number of the page, where in the page.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = offset + len as u64;
    (offset / PAGE..end.div_ceil(PAGE)).map(move |number| {
        let start = number * PAGE;
        let from = offset.saturating_sub(start) as usize;
        let to = (end - start).min(PAGE) as usize;
        (number, from..to)
    })
}

fn short(range: &Range<usize>) -> Range<u16> {
    range.start as u16..range.end as u16
}

fn long(range: &Range<u16>) -> Range<usize> {
    usize::from(range.start)..usize::from(range.end)
}

/// The smallest range with both in it.
fn hull(a: &Range<u16>, b: &Range<u16>) -> Range<u16> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

impl Neighbours for Pages {
    fn before(&self, page: u64, most: u64) -> u64 {
        (1..=most.min(page)).take_while(|back| self.look(page - back) != Place::Missing).count() as u64
    }

    fn hole(&self, page: u64, most: u64) -> Option<u64> {
        (page..page + most).find(|page| self.look(*page) == Place::Missing)
    }
}

impl Pages {
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether the server does not have all of it.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.writing > 0
    }

    /// Pages that are dirty and not on their way.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Pages on their way.
    pub(crate) fn writing(&self) -> usize {
        self.writing
    }

    /// One past the last byte that was written since nothing was dirty; 0 if nothing is.
    pub(crate) fn dirty_end(&self) -> u64 {
        if self.is_dirty() { self.end } else { 0 }
    }

    /// Pages added since this was asked last.
    pub(crate) fn take_added(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.added)
    }

    /// Uses since this was asked last.
    pub(crate) fn take_uses(&mut self) -> Uses {
        std::mem::take(&mut self.uses)
    }

    pub(crate) fn look(&self, page: u64) -> Place {
        match self.pages.get(&page) {
            Some(page) if page.valid == WHOLE => Place::Cached,
            Some(_) => Place::Partly,
            None if self.coming.contains_key(&page) => Place::Coming,
            None => Place::Missing,
        }
    }

    /// Copies what is cached from `offset` on into the buffer, up to the first byte that is not.
    pub(crate) fn read(&mut self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        for (number, within) in pieces(offset, buffer.len()) {
            let Some(page) = self.pages.get_mut(&number) else { break };
            let valid = long(&page.valid);
            if !valid.contains(&within.start) {
                break;
            }
            let to = within.end.min(valid.end);
            buffer[done..done + to - within.start].copy_from_slice(&page.data[within.start..to]);
            page.used = true;
            self.uses.read += 1;
            self.uses.ahead += u64::from(std::mem::take(&mut page.ahead));
            done += to - within.start;
            if to < within.end {
                break;
            }
        }
        done
    }

    /// Runs of pages in a window that are neither cached nor being read, each of at most `most` pages. They are being
    /// read from now on; those from `ahead` on were not asked for.
    pub(crate) fn expect(
        &mut self,
        window: Range<u64>,
        ahead: u64,
        mark: Option<u64>,
        most: u64,
    ) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for page in window {
            let marked = mark == Some(page);
            match self.look(page) {
                Place::Missing => {
                    self.coming.insert(page, Coming { ahead: page >= ahead, marked });
                    match runs.last_mut() {
                        Some(run) if run.end == page && run.end - run.start < most => run.end += 1,
                        _ => runs.push(page..page + 1),
                    }
                }
                // Linux marks only pages that it reads.
                Place::Cached | Place::Partly | Place::Coming => {}
            }
        }
        runs
    }

    /// Takes the mark of a page.
    pub(crate) fn take_mark(&mut self, page: u64) -> bool {
        let cached = self.pages.get_mut(&page).map(|page| &mut page.marked);
        let mark = cached.or_else(|| self.coming.get_mut(&page).map(|coming| &mut coming.marked));
        mark.is_some_and(std::mem::take)
    }

    /// These pages are not being read any more.
    pub(crate) fn give_up(&mut self, pages: Range<u64>) {
        pages.for_each(|page| _ = self.coming.remove(&page));
    }

    /// Takes in what the server has at a page boundary; what is behind `data` up to the end of its last page is zero.
    /// Bytes written here stay.
    pub(crate) fn fill(&mut self, offset: u64, data: &[u8]) {
        for (number, chunk) in (offset / PAGE..).zip(data.chunks(PAGE as usize)) {
            let coming = self.coming.remove(&number);
            let page = Self::page(&mut self.pages, &mut self.added, number);
            if page.valid == WHOLE {
                continue;
            }
            let ours = long(&page.valid);
            let from = ours.start.min(chunk.len());
            page.data[..from].copy_from_slice(&chunk[..from]);
            if let Some(rest) = chunk.get(ours.end..) {
                page.data[ours.end..chunk.len()].copy_from_slice(rest);
            }
            page.valid = WHOLE;
            if let Some(coming) = coming {
                (page.ahead, page.marked) = (coming.ahead, coming.marked);
            }
        }
    }

    fn page<'p>(pages: &'p mut BTreeMap<u64, Page>, added: &mut Vec<u64>, number: u64) -> &'p mut Page {
        pages.entry(number).or_insert_with(|| {
            added.push(number);
            Page::new()
        })
    }

    /// Takes in written data. `size` is that of the file before: what lies behind it need not be read. Returns how many
    /// bytes were taken: fewer than all when a page has to be flushed first.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], size: u64, now: Instant) -> usize {
        let mut done = 0;
        for (number, within) in pieces(offset, data.len()) {
            let page = Self::page(&mut self.pages, &mut self.added, number);
            let added = short(&within);
            let touches = page.valid.start <= added.end && added.start <= page.valid.end;
            if !page.valid.is_empty() && !touches {
                return done;
            }
            let len = within.len();
            page.data[within].copy_from_slice(&data[done..done + len]);
            let behind = number * PAGE >= size && page.valid.is_empty();
            page.valid = if behind { WHOLE } else { hull(&page.valid, &added) };
            page.dirty = hull(&page.dirty, &added);
            page.used = true;
            page.since.get_or_insert(now);
            self.coming.remove(&number);
            self.dirty.insert(number);
            done += len;
        }
        self.end = self.end.max(offset + done as u64);
        done
    }

    /// The next dirty bytes in order, at most `most`, of pages dirty since before `old`: they are on their way from now on.
    pub(crate) fn begin(&mut self, most: usize, old: Option<Instant>) -> Option<Run> {
        // Bytes that are on their way are not sent once more before these have arrived.
        let is_due = |page: &Page| {
            let free = |(_, bytes): &(u64, Range<u16>)| {
                bytes.end <= page.dirty.start || page.dirty.end <= bytes.start
            };
            page.writing.iter().all(free) && old.is_none_or(|old| page.since.is_none_or(|since| since <= old))
        };
        let mut run: Option<Run> = None;
        self.runs += 1;
        let mut clean = Vec::new();
        for number in &self.dirty {
            let Some(page) = self.pages.get_mut(number).filter(|page| is_due(page)) else {
                match run {
                    Some(_) => break,
                    None => continue,
                }
            };
            let start = number * PAGE + u64::from(page.dirty.start);
            let run = run.get_or_insert_with(|| Run { number: self.runs, offset: start, data: Vec::new() });
            let len = page.dirty.len().min(most - run.data.len());
            // Pages are divided only where WRITEs do not consist of whole ones.
            let divides =
                len < page.dirty.len() && !run.data.is_empty() && most.is_multiple_of(PAGE as usize);
            if start != run.offset + run.data.len() as u64 || divides {
                break;
            }
            let piece = page.dirty.start..page.dirty.start + len as u16;
            run.data.extend_from_slice(&page.data[long(&piece)]);
            page.dirty.start = piece.end;
            self.writing += usize::from(page.writing.is_empty());
            page.writing.push((run.number, piece));
            if !page.dirty.is_empty() {
                break;
            }
            page.dirty = 0..0;
            clean.push(*number);
            if run.data.len() == most {
                break;
            }
        }
        clean.iter().for_each(|number| _ = self.dirty.remove(number));
        self.running.extend(run.as_ref().map(|run| run.number));
        run
    }

    /// Number of the run that was begun last.
    pub(crate) fn last_run(&self) -> u64 {
        self.runs
    }

    /// Whether a run up to this number is on its way.
    pub(crate) fn is_running(&self, last: u64) -> bool {
        self.running.first().is_some_and(|first| *first <= last)
    }

    /// Whether what was dirty at this time is neither at the server nor on its way.
    pub(crate) fn is_due(&self, old: Instant) -> bool {
        let due = |number| {
            let page: Option<&Page> = self.pages.get(number);
            page.is_some_and(|page| page.since.is_none_or(|since| since <= old))
        };
        self.dirty.iter().any(due)
    }

    /// Whether a single run on its way is all that the server does not have.
    pub(crate) fn is_one_run(&self) -> bool {
        self.dirty.is_empty() && self.running.len() == 1
    }

    /// The server has the bytes of a run. Whether pages were dropped, of which only these were known.
    pub(crate) fn written(&mut self, run: &Run) -> bool {
        self.running.remove(&run.number);
        let mut dropped = false;
        for (number, _) in pieces(run.offset, run.data.len()) {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            let before = page.writing.len();
            page.writing.retain(|(of, _)| *of != run.number);
            if page.writing.len() == before {
                continue;
            }
            self.writing -= usize::from(page.writing.is_empty());
            if page.dirty.is_empty() && page.writing.is_empty() {
                page.since = None;
                if page.valid != WHOLE {
                    dropped = true;
                    self.pages.remove(&number);
                }
            }
        }
        dropped
    }

    /// The server does not have the bytes of a run: they are dirty again.
    pub(crate) fn failed(&mut self, run: &Run) {
        self.running.remove(&run.number);
        for (number, _) in pieces(run.offset, run.data.len()) {
            let Some(page) = self.pages.get_mut(&number) else { continue };
            if let Some(at) = page.writing.iter().position(|(of, _)| *of == run.number) {
                let (_, bytes) = page.writing.swap_remove(at);
                self.writing -= usize::from(page.writing.is_empty());
                page.dirty = hull(&page.dirty, &bytes);
                self.dirty.insert(number);
            }
        }
    }

    /// Drops what is not dirty. Of what is partly dirty only that is right any more.
    pub(crate) fn drop_clean(&mut self) {
        if !self.is_dirty() {
            self.pages.clear();
            return;
        }
        self.pages.retain(|_, page| {
            page.valid = page.writing.iter().fold(page.dirty.clone(), |ours, (_, bytes)| hull(&ours, bytes));
            !page.valid.is_empty()
        });
    }

    /// A page was not used for long: it is dropped, unless it is dirty or was used since this was asked last.
    /// `None`: it is gone already.
    pub(crate) fn evict(&mut self, page: u64) -> Option<bool> {
        let found = self.pages.get_mut(&page)?;
        let stays = std::mem::take(&mut found.used) || !found.writing.is_empty() || !found.dirty.is_empty();
        if !stays {
            self.pages.remove(&page);
        }
        Some(!stays)
    }

    /// The file ends here: what lies behind is gone, dirty or not, and reads as zeros if the file grows again.
    pub(crate) fn cut(&mut self, size: u64) {
        let first = size / PAGE;
        let within = (size % PAGE) as u16;
        for (number, page) in self.pages.split_off(&(first + u64::from(within > 0))) {
            self.dirty.remove(&number);
            self.writing -= usize::from(!page.writing.is_empty());
        }
        self.end = self.end.min(size);
        if within > 0
            && let Some(page) = self.pages.get_mut(&first)
        {
            page.data[usize::from(within)..].fill(0);
            page.dirty = page.dirty.start.min(within)..page.dirty.end.min(within);
            for (_, bytes) in &mut page.writing {
                *bytes = bytes.start.min(within)..bytes.end.min(within);
            }
            if page.valid != WHOLE {
                page.valid = page.valid.start.min(within)..page.valid.end.min(within);
            }
            if page.dirty.is_empty() {
                page.dirty = 0..0;
                self.dirty.remove(&first);
                if page.valid.is_empty() && page.writing.is_empty() {
                    self.pages.remove(&first);
                }
            }
        }
    }
}

impl Page {
    fn new() -> Self {
        Self {
            data: Box::new([0; PAGE as usize]),
            valid: 0..0,
            dirty: 0..0,
            writing: Vec::new(),
            since: None,
            ahead: false,
            marked: false,
            used: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPACE: usize = 5 * PAGE as usize;

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize, usize),
        Read(usize, usize),
        Flush,
        Invalidate,
        Cut(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let place = || (0..SPACE, 1..2 * PAGE as usize);
        let step = prop_oneof![
            4 => place().prop_map(|(at, len)| Step::Write(at, len)),
            4 => place().prop_map(|(at, len)| Step::Read(at, len)),
            1 => Just(Step::Flush),
            1 => Just(Step::Invalidate),
            1 => (0..SPACE).prop_map(Step::Cut),
        ];
        proptest::collection::vec(step, 1..40)
    }

    /// A file behind the cache, as the client and the server see it.
    #[derive(Default)]
    struct Model {
        pages: Pages,
        server: Vec<u8>,
        wanted: Vec<u8>,
    }

    impl Model {
        fn flush(&mut self) {
            let mut failed = false;
            while let Some(run) = self.pages.begin(1000, None) {
                assert!(run.data.len() <= 1000);
                // The first one fails, and is tried again.
                if !std::mem::replace(&mut failed, true) {
                    self.pages.failed(&run);
                    continue;
                }
                let (from, to) = (run.offset as usize, run.offset as usize + run.data.len());
                if self.server.len() < to {
                    self.server.resize(to, 0);
                }
                self.server[from..to].copy_from_slice(&run.data);
                self.pages.written(&run);
            }
            assert!(!self.pages.is_dirty() && self.pages.writing() == 0);
        }

        fn read(&mut self, at: usize, len: usize) -> Vec<u8> {
            let end = self.wanted.len().min(at + len);
            let mut buffer = vec![0xaa; end.saturating_sub(at)];
            let mut done = 0;
            while done < buffer.len() {
                let offset = (at + done) as u64;
                let read = self.pages.read(offset, &mut buffer[done..]);
                done += read;
                if read == 0 {
                    if self.pages.look(offset / PAGE) == Place::Partly {
                        self.flush();
                    }
                    let page = offset / PAGE;
                    let last = (self.wanted.len().min(at + len) as u64).div_ceil(PAGE);
                    let runs = self.pages.expect(page..last, last, None, 2);
                    let missing = runs[0].start * PAGE..runs[0].end * PAGE;
                    runs[1..].iter().for_each(|run| self.pages.give_up(run.clone()));
                    assert!(missing.contains(&offset));
                    let to = (missing.end as usize).min(self.wanted.len());
                    // The server does not have yet what only lies between its end and dirty data.
                    let mut data = vec![0; to - missing.start as usize];
                    let there = self.server.get(missing.start as usize..).unwrap_or_default();
                    let there = &there[..there.len().min(data.len())];
                    data[..there.len()].copy_from_slice(there);
                    self.pages.fill(missing.start, &data);
                }
            }
            buffer
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(steps in steps()) {
            let mut model = Model::default();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Write(at, len) => {
                        let data: Vec<u8> = (0..len).map(|i| (i * 7 + number * 31 + 1) as u8).collect();
                        let mut done = 0;
                        while done < len {
                            let size = model.wanted.len() as u64;
                            done += model.pages.write((at + done) as u64, &data[done..], size, Instant::now());
                            if model.wanted.len() < at + done {
                                model.wanted.resize(at + done, 0);
                            }
                            model.wanted[at..at + done].copy_from_slice(&data[..done]);
                            if done < len {
                                model.flush();
                            }
                        }
                    }
                    Step::Read(at, len) => {
                        let read = model.read(at, len);
                        prop_assert!(read == model.wanted.get(at..).unwrap_or_default()[..read.len()]);
                    }
                    Step::Flush => model.flush(),
                    Step::Invalidate => model.pages.drop_clean(),
                    Step::Cut(size) => {
                        // Only ever shorter, and flushed first, as the mount does it.
                        model.flush();
                        let size = size.min(model.wanted.len());
                        model.pages.cut(size as u64);
                        model.wanted.truncate(size);
                        model.server.truncate(size);
                    }
                }
            }
            model.flush();
            model.server.resize(model.wanted.len(), 0);
            prop_assert!(model.server == model.wanted);
        }
    }
}
