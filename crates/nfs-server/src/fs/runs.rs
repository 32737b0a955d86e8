//! Sets of page numbers in runs: space that was reserved and is not written costs nothing per page.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers in runs that neither overlap nor touch.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// First number of a run, and the one after its last.
    runs: BTreeMap<u64, u64>,
    len: u64,
}

impl Runs {
    /// How many numbers there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The runs, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().map(|(start, end)| *start..*end)
    }

    /// The end of the run that `at` is in.
    pub(super) fn end(&self, at: u64) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        self.runs.range(..=at).next_back().map(|(_, end)| *end).filter(|end| at < *end)
    }

    /// The first number in `range`.
    pub(super) fn first(&self, range: Range<u64>) -> Option<u64> {
        if self.end(range.start).is_some() && !range.is_empty() {
            return Some(range.start);
        }
        self.runs.range(range).next().map(|(start, _)| *start)
    }

    /// How many numbers of `range` there are.
    pub(super) fn count(&self, range: Range<u64>) -> u64 {
        self.parts(range).map(|part| part.end - part.start).sum()
    }

    /// Adds numbers, none of which is there.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.len += range.end - range.start;
        let end = self.runs.remove(&range.end).unwrap_or(range.end);
        match self.runs.range_mut(..range.start).next_back() {
            Some((_, before)) if *before == range.start => *before = end,
            _ => drop(self.runs.insert(range.start, end)),
        }
    }

    /// Takes numbers out; how many there were.
    pub(super) fn remove(&mut self, range: Range<u64>) -> u64 {
        let gone: Vec<Range<u64>> = self.parts(range).collect();
        let mut count = 0;
        for part in gone {
            count += part.end - part.start;
            let Some((start, end)) = self.runs.range(..=part.start).next_back().map(|(a, b)| (*a, *b)) else {
                continue;
            };
            self.runs.remove(&start);
            if start < part.start {
                self.runs.insert(start, part.start);
            }
            if part.end < end {
                self.runs.insert(part.end, end);
            }
        }
        self.len -= count;
        count
    }

    /// The runs in `range`, cut to it.
    fn parts(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.end(range.start).map(|end| range.start..end.min(range.end));
        let later = if range.is_empty() { 0..0 } else { range.start + 1..range.end };
        let later = (!later.is_empty()).then(|| self.runs.range(later)).into_iter().flatten();
        let end = range.end;
        first
            .filter(|part| !part.is_empty())
            .into_iter()
            .chain(later.map(move |(start, run_end)| *start..(*run_end).min(end)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_what_a_set_is(steps in prop::collection::vec((any::<bool>(), 0u64..40, 0u64..12), 1..60)) {
            let (mut runs, mut model) = (Runs::default(), BTreeSet::new());
            for (add, start, len) in steps {
                let range = start..start + len;
                if add {
                    let mut at = range.start;
                    while at < range.end {
                        let from = at;
                        while at < range.end && model.insert(at) {
                            at += 1;
                        }
                        runs.insert(from..at);
                        at += 1;
                    }
                } else {
                    let before = model.len();
                    model.retain(|at| !range.contains(at));
                    prop_assert_eq!(runs.remove(range.clone()), (before - model.len()) as u64);
                }
                prop_assert_eq!(runs.len(), model.len() as u64);
                prop_assert_eq!(runs.count(range.clone()), model.range(range.clone()).count() as u64);
                prop_assert_eq!(runs.first(range.clone()), model.range(range).next().copied());
                for at in 0..60 {
                    let end = model.contains(&at).then(|| (at..).find(|at| !model.contains(at)).unwrap());
                    prop_assert_eq!(runs.end(at), end);
                }
                let touching = runs.runs.iter().zip(runs.runs.iter().skip(1));
                prop_assert!(touching.clone().all(|((_, end), (start, _))| end < start));
            }
        }
    }
}
