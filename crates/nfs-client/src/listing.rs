//! How far the listing of a directory is. A server that lists in circles, or on without end, must cost neither time nor
//! memory without end.

use crate::error::NfsError;
use crate::protocol::NfsResult;

/// Most entries of a directory.
const MOST_ENTRIES: usize = 1 << 24;
/// Pages that may have less than two entries each.
const MEAGRE_PAGES: usize = 1 << 14;

/// Place in a directory, and what was needed to come there.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Cookie of the last entry; 0 before the first.
    pub(crate) cookie: u64,
    /// Where this page begins.
    from: u64,
    /// A place that later pages must not come to again. It moves with every doubling of their number, so that any
    /// circle is closed over it before three times its length (Brent).
    mark: u64,
    pages: usize,
    entries: usize,
}

impl Progress {
    /// Counts an entry.
    pub(crate) fn entry(&mut self, cookie: u64) -> NfsResult<()> {
        self.cookie = cookie;
        self.entries += 1;
        if self.entries > MOST_ENTRIES { Err(NfsError::TooManyEntries(MOST_ENTRIES)) } else { Ok(()) }
    }

    /// The page ends, and is not the last.
    pub(crate) fn next_page(&mut self) -> NfsResult<()> {
        self.pages += 1;
        if self.cookie == self.from {
            return Err(NfsError::Nonsense("a directory page that leads nowhere"));
        }
        if self.cookie == self.mark {
            return Err(NfsError::Nonsense("a directory listing that goes in circles"));
        }
        if self.pages > MEAGRE_PAGES + self.entries / 2 {
            return Err(NfsError::Nonsense("a directory listing of too many small pages"));
        }
        self.from = self.cookie;
        if self.pages.is_power_of_two() {
            self.mark = self.cookie;
        }
        Ok(())
    }

    /// The listing starts over.
    pub(crate) fn restart(&mut self) {
        (self.cookie, self.from, self.mark) = (0, 0, 0);
    }
}

/// Whether an entry is the directory itself or its parent.
pub(crate) fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(cookies: impl Iterator<Item = u64>) -> (usize, NfsResult<()>) {
        let mut progress = Progress::default();
        for (n, cookie) in cookies.enumerate() {
            if let end @ Err(_) = progress.entry(cookie).and_then(|()| progress.next_page()) {
                return (n, end);
            }
        }
        (0, Ok(()))
    }

    #[test]
    fn any_circle_is_noticed_within_three_rounds_and_no_way_is_taken_for_one() {
        for lead in [0, 1, 5, 100] {
            for length in [1, 2, 3, 7, 64, 1000] {
                let (n, end) =
                    pages((0..).map(|n| if n < lead { 1 << 32 | n } else { 1 + (n - lead) % length }));
                assert!(matches!(end, Err(NfsError::Nonsense(_))), "{lead} {length}");
                assert!(n as u64 <= 3 * (lead + length) + 1, "{lead} {length}: {n}");
            }
        }
        assert_eq!(pages(1..10_000).1, Ok(()));
        assert_eq!(pages((1..10_000).map(|n: u64| n.reverse_bits())).1, Ok(()));
    }

    #[test]
    fn a_directory_of_the_most_entries_is_listed_and_one_more_is_too_many() {
        let mut progress = Progress::default();
        for n in 1..=MOST_ENTRIES as u64 {
            progress.entry(n).unwrap();
            if n % 2 == 0 {
                progress.next_page().unwrap();
            }
        }
        assert_eq!(progress.entry(u64::MAX), Err(NfsError::TooManyEntries(MOST_ENTRIES)));
    }
}
