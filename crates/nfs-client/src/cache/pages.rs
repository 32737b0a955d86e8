//! Data of a file in pages.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

#[derive(Debug)]
struct Page {
    data: Box<[u8; PAGE as usize]>,
    /// Whether it has what the server has; else only the dirty bytes count.
    filled: bool,
    /// Bytes written here that the server does not have.
    dirty: Range<u16>,
}

/// Pages of a file.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: BTreeMap<u64, Page>,
    dirty: usize,
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

impl Pages {
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether something is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty > 0
    }

    /// Pages that are dirty.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    /// One past the last dirty byte; 0 if nothing is dirty.
    pub(crate) fn dirty_end(&self) -> u64 {
        if self.dirty == 0 {
            return 0;
        }
        let last = self.pages.iter().rev().find(|(_, page)| !page.dirty.is_empty());
        last.map_or(0, |(number, page)| number * PAGE + u64::from(page.dirty.end))
    }

    /// Copies what is cached from `offset` on into the buffer, up to the first byte that is not.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        for (number, within) in pieces(offset, buffer.len()) {
            let Some(page) = self.pages.get(&number) else { break };
            let dirty = usize::from(page.dirty.start)..usize::from(page.dirty.end);
            let to = if page.filled {
                within.end
            } else if dirty.contains(&within.start) {
                within.end.min(dirty.end)
            } else {
                break;
            };
            buffer[done..done + to - within.start].copy_from_slice(&page.data[within.start..to]);
            done += to - within.start;
            if to < within.end {
                break;
            }
        }
        done
    }

    /// Whether what is not cached at an offset is in a page that has to be flushed before it is read.
    pub(crate) fn must_flush(&self, offset: u64) -> bool {
        self.pages.get(&(offset / PAGE)).is_some_and(|page| !page.filled && !page.dirty.is_empty())
    }

    /// Pages from that of `offset` on, up to `most` bytes, that are not cached at all: as bytes.
    pub(crate) fn missing(&self, offset: u64, most: u64) -> Range<u64> {
        let first = offset / PAGE;
        let last = (offset + most).div_ceil(PAGE);
        let end = self.pages.range(first..last).next().map_or(last, |(number, _)| *number);
        first * PAGE..end * PAGE
    }

    /// Takes in what the server has at a page boundary; what is behind `data` up to the end of its last page is zero.
    /// Dirty bytes stay.
    pub(crate) fn fill(&mut self, offset: u64, data: &[u8]) {
        for (number, chunk) in (offset / PAGE..).zip(data.chunks(PAGE as usize)) {
            let page = self.pages.entry(number).or_insert_with(Page::new);
            let dirty = usize::from(page.dirty.start)..usize::from(page.dirty.end);
            let old = page.data.clone();
            page.data[..chunk.len()].copy_from_slice(chunk);
            page.data[chunk.len()..].fill(0);
            page.data[dirty.clone()].copy_from_slice(&old[dirty]);
            page.filled = true;
        }
    }

    /// Takes in written data. `size` is that of the file before: what lies behind it need not be read. Returns how many
    /// bytes were taken: fewer than all when a page has to be flushed first.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], size: u64) -> usize {
        let mut done = 0;
        for (number, within) in pieces(offset, data.len()) {
            let page = self.pages.entry(number).or_insert_with(Page::new);
            let was_dirty = !page.dirty.is_empty();
            let whole = number * PAGE >= size || (within.start == 0 && within.end == PAGE as usize);
            let added = short(&within);
            let touches = page.dirty.start <= added.end && added.start <= page.dirty.end;
            if !page.filled && was_dirty && !touches {
                return done;
            }
            let len = within.len();
            page.data[within].copy_from_slice(&data[done..done + len]);
            page.filled |= whole && !was_dirty;
            page.dirty = if was_dirty {
                page.dirty.start.min(added.start)..page.dirty.end.max(added.end)
            } else {
                added
            };
            self.dirty += usize::from(!was_dirty);
            done += len;
        }
        done
    }

    /// Dirty data as runs of bytes of at most `most`, in order.
    pub(crate) fn runs(&self, most: usize) -> Vec<(u64, usize)> {
        let mut runs: Vec<(u64, usize)> = Vec::new();
        for (number, page) in self.pages.iter().filter(|(_, page)| !page.dirty.is_empty()) {
            let mut from = number * PAGE + u64::from(page.dirty.start);
            let end = number * PAGE + u64::from(page.dirty.end);
            while from < end {
                match runs.last_mut() {
                    Some((start, len)) if *start + *len as u64 == from && *len < most => {
                        let more = ((end - from) as usize).min(most - *len);
                        *len += more;
                        from += more as u64;
                    }
                    _ => runs.push((from, 0)),
                }
            }
        }
        runs
    }

    /// Copies dirty data of a run.
    pub(crate) fn copy(&self, offset: u64, buffer: &mut [u8]) {
        let mut done = 0;
        for (number, within) in pieces(offset, buffer.len()) {
            let len = within.len();
            if let Some(page) = self.pages.get(&number) {
                buffer[done..done + len].copy_from_slice(&page.data[within]);
            }
            done += len;
        }
    }

    /// The server has all of it.
    pub(crate) fn clean(&mut self) {
        let mut dropped = false;
        for page in self.pages.values_mut() {
            dropped |= !page.filled;
            page.dirty = 0..0;
        }
        if dropped {
            self.pages.retain(|_, page| page.filled);
        }
        self.dirty = 0;
    }

    /// Drops what is not dirty. What is partly dirty is not filled any more.
    pub(crate) fn drop_clean(&mut self) {
        if self.dirty == 0 {
            self.pages.clear();
            return;
        }
        self.pages.retain(|_, page| !page.dirty.is_empty());
        self.pages.values_mut().for_each(|page| page.filled = false);
    }

    /// The file ends here: what lies behind is gone, dirty or not, and reads as zeros if the file grows again.
    pub(crate) fn cut(&mut self, size: u64) {
        let first = size / PAGE;
        let within = (size % PAGE) as usize;
        for page in self.pages.split_off(&(first + u64::from(within > 0))).into_values() {
            self.dirty -= usize::from(!page.dirty.is_empty());
        }
        if within > 0
            && let Some(page) = self.pages.get_mut(&first)
        {
            page.data[within..].fill(0);
            if !page.dirty.is_empty() {
                let within = within as u16;
                page.dirty = page.dirty.start.min(within)..page.dirty.end.min(within);
                self.dirty -= usize::from(page.dirty.is_empty());
            }
        }
    }
}

impl Page {
    fn new() -> Self {
        Self { data: Box::new([0; PAGE as usize]), filled: false, dirty: 0..0 }
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
            for (offset, len) in self.pages.runs(1000) {
                assert!(len <= 1000);
                let (from, to) = (offset as usize, offset as usize + len);
                if self.server.len() < to {
                    self.server.resize(to, 0);
                }
                self.pages.copy(offset, &mut self.server[from..to]);
            }
            self.pages.clean();
            assert!(!self.pages.is_dirty());
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
                    if self.pages.must_flush(offset) {
                        self.flush();
                    }
                    let missing = self.pages.missing(offset, (buffer.len() - done) as u64);
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
                            done += model.pages.write((at + done) as u64, &data[done..], size);
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
