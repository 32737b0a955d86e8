//! What is read ahead of a reader.
//!
//! The algorithm is the on-demand readahead of Linux 6.1: a first window at the start of a file or of a sequence, then
//! windows that grow up to a limit. In each window one page is marked, and the reader that comes there makes the next
//! window be read meanwhile. A read that follows nothing is a random one, and only what it asks for is read, unless the
//! pages before it are cached: how many of them count as a sequence is the difference to Linux 2.6.32, which paper 000
//! measured.

use std::ops::Range;

use crate::options::ReadaheadRule;

/// Limits of a mount, in pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub(crate) rule: ReadaheadRule,
    /// Most pages of a window (`read_ahead_kb`).
    pub(crate) most: u64,
    /// Pages of one READ (`rsize`).
    pub(crate) read: u64,
}

/// Pages cached around a read.
pub(crate) trait Neighbours {
    /// Consecutive cached pages right before `page`, counted up to `most`.
    fn before(&self, page: u64, most: u64) -> u64;
    /// First page from `page` on that is not cached, looked for in `most` pages.
    fn hole(&self, page: u64, most: u64) -> Option<u64>;
}

/// What is to be read now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) pages: Range<u64>,
    /// The page at which the next window is due.
    pub(crate) mark: Option<u64>,
}

/// Readahead of one open file.
#[derive(Debug, Default)]
pub(crate) struct Readahead {
    /// The window that was read last.
    start: u64,
    size: u64,
    /// Its last pages: the first of these is marked.
    ahead: u64,
    /// Page of the byte after the last read.
    previous: Option<u64>,
}

impl Readahead {
    /// A read ended before this page.
    pub(crate) fn read_to(&mut self, page: u64) {
        self.previous = Some(page);
    }

    /// The first of `wanted` pages from `page` on is not cached.
    pub(crate) fn missed(&mut self, reach: Reach, page: u64, wanted: u64, pages: &impl Neighbours) -> Window {
        if reach.most == 0 {
            // Without readahead Linux reads page by page.
            return Window { pages: page..page + 1, mark: None };
        }
        let most = reach.most.max(wanted.min(reach.read));
        if page == 0 {
            return self.begin(reach.rule, page, wanted, most);
        }
        if self.is_next(page) {
            return self.go_on(reach.rule, page, most);
        }
        let follows = self.previous.is_some_and(|previous| page == previous || page == previous + 1);
        if wanted > most || follows {
            return self.begin(reach.rule, page, wanted, most);
        }
        if self.joins(reach.rule, page, wanted, most, pages) {
            return self.window(reach.rule, page, most);
        }
        Window { pages: page..page + wanted, mark: None }
    }

    /// The reader came to a marked page and wants this many from there on.
    pub(crate) fn marked(
        &mut self,
        reach: Reach,
        page: u64,
        wanted: u64,
        pages: &impl Neighbours,
    ) -> Option<Window> {
        let most = reach.most.max(wanted.min(reach.read));
        if page == 0 {
            return Some(self.begin(reach.rule, page, wanted, most));
        }
        if self.is_next(page) {
            return Some(self.go_on(reach.rule, page, most));
        }
        // The mark of another reader, or of an earlier window: what is cached behind it is the size to grow from.
        let start = pages.hole(page + 1, most)?;
        self.start = start;
        self.size = start - page + wanted;
        self.size = grown(self.size, most);
        self.ahead = self.size;
        Some(self.window(reach.rule, page, most))
    }

    /// Whether the window goes on here: at its mark, or behind it.
    fn is_next(&self, page: u64) -> bool {
        page == self.start + self.size - self.ahead || page == self.start + self.size
    }

    fn go_on(&mut self, rule: ReadaheadRule, page: u64, most: u64) -> Window {
        self.start += self.size;
        self.size = grown(self.size, most);
        self.ahead = self.size;
        self.window(rule, page, most)
    }

    fn begin(&mut self, rule: ReadaheadRule, page: u64, wanted: u64, most: u64) -> Window {
        self.start = page;
        self.size = first(wanted, most);
        self.ahead = if self.size > wanted { self.size - wanted } else { self.size };
        self.window(rule, page, most)
    }

    /// Whether the pages before make it a sequence: the question in which the rules differ.
    fn joins(
        &mut self,
        rule: ReadaheadRule,
        page: u64,
        wanted: u64,
        most: u64,
        pages: &impl Neighbours,
    ) -> bool {
        let mut history = pages.before(page, most);
        let enough = match rule {
            ReadaheadRule::Linux61 => history > wanted,
            ReadaheadRule::Linux2632 => history > 0,
        };
        if !enough {
            return false;
        }
        if history >= page {
            // All from the start of the file.
            history *= 2;
        }
        self.start = page;
        (self.size, self.ahead) = match rule {
            ReadaheadRule::Linux61 => ((history + wanted).min(most), 1),
            ReadaheadRule::Linux2632 => {
                let size = first(history + wanted, most);
                (size, size)
            }
        };
        true
    }

    /// The window as it was set; one that begins with its own mark is joined with the next at once.
    fn window(&mut self, rule: ReadaheadRule, page: u64, most: u64) -> Window {
        if page == self.start && self.size == self.ahead {
            let more = grown(self.size, most);
            if rule == ReadaheadRule::Linux2632 || self.size + more <= most {
                (self.size, self.ahead) = (self.size + more, more);
            } else {
                (self.size, self.ahead) = (most, most / 2);
            }
        }
        let end = self.start + self.size;
        Window { pages: self.start..end, mark: (self.ahead > 0).then(|| end - self.ahead) }
    }
}

/// Size of the first window of a sequence.
fn first(wanted: u64, most: u64) -> u64 {
    let size = wanted.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// Size of the window after one of this size.
fn grown(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::slice;

    use super::*;

    /// A file of which these pages are cached, and its reader.
    #[derive(Default)]
    struct Model {
        cached: BTreeSet<u64>,
        marks: BTreeSet<u64>,
        ahead: Readahead,
        read: u64,
    }

    impl Neighbours for BTreeSet<u64> {
        fn before(&self, page: u64, most: u64) -> u64 {
            (1..=most.min(page)).take_while(|back| self.contains(&(page - back))).count() as u64
        }

        fn hole(&self, page: u64, most: u64) -> Option<u64> {
            (page..page + most).find(|page| !self.contains(page))
        }
    }

    impl Model {
        fn take(&mut self, window: &Window) {
            self.marks.extend(window.mark);
            let new: Vec<u64> = window.pages.clone().filter(|page| !self.cached.contains(page)).collect();
            self.read += new.len() as u64;
            self.cached.extend(new);
        }

        fn read(&mut self, reach: Reach, page: u64, wanted: u64) -> Vec<Range<u64>> {
            let mut windows = Vec::new();
            for at in page..page + wanted {
                let left = page + wanted - at;
                if !self.cached.contains(&at) {
                    let window = self.ahead.missed(reach, at, left, &self.cached);
                    self.take(&window);
                    windows.push(window.pages);
                }
                if self.marks.remove(&at)
                    && let Some(window) = self.ahead.marked(reach, at, left, &self.cached)
                {
                    self.take(&window);
                    windows.push(window.pages);
                }
            }
            self.ahead.read_to(page + wanted);
            windows
        }
    }

    const NEW: Reach = Reach { rule: ReadaheadRule::Linux61, most: 32, read: 256 };
    const OLD: Reach = Reach { rule: ReadaheadRule::Linux2632, most: 3840, read: 256 };

    #[test]
    fn a_sequence_is_read_in_windows_that_double_and_come_before_they_are_needed() {
        let mut model = Model::default();
        let windows: Vec<_> = (0..100).flat_map(|page| model.read(NEW, page, 1)).collect();
        assert_eq!(windows[..5], [0..4, 4..12, 12..28, 28..60, 60..92]);
        // What is cached ahead of the reader is never more than two windows.
        assert!(model.read <= 100 + 64, "{}", model.read);
    }

    #[test]
    fn large_reads_are_read_as_they_are_and_nothing_at_all_is_read_ahead_without_readahead() {
        let mut model = Model::default();
        assert_eq!(model.read(NEW, 100, 200), slice::from_ref(&(100..300)));
        let none = Reach { most: 0, ..NEW };
        let mut model = Model::default();
        assert_eq!(model.read(none, 8, 4), [8..9, 9..10, 10..11, 11..12]);
    }

    #[test]
    fn a_random_read_after_cached_pages_is_a_sequence_for_the_old_rule_only() {
        for (reach, history, end) in [
            (NEW, 1, 216),
            (NEW, 16, 216),
            (NEW, 17, 232),
            (OLD, 0, 216),
            // 17 pages round up to 32, four times that is the window, and it is joined with the next.
            (OLD, 1, 200 + 128 + 512),
        ] {
            let mut model = Model { cached: (200 - history..200).collect(), ..Model::default() };
            model.ahead.read_to(5000);
            assert_eq!(model.read(reach, 200, 16), slice::from_ref(&(200..end)), "{reach:?} {history}");
        }
    }

    #[test]
    fn random_reads_of_a_cached_file_waste_with_the_old_rule_and_not_with_the_new_one() {
        // Aligned reads of 64 KiB in a file of 256 MiB.
        let file = 1 << 16;
        let read = |reach| {
            let mut model = Model::default();
            let mut random = 7u64;
            for _ in 0..1500 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                model.read(reach, (random >> 33) % (file / 16) * 16, 16);
            }
            model.read as f64 / (1500.0 * 16.0)
        };
        let (new, old) = (read(Reach { most: 3840, ..NEW }), read(OLD));
        assert!(new < 1.0, "{new}");
        assert!(old > 1.5, "{old}");
    }
}
