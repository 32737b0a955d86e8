//! What every thread has for itself: its own part of what all count, take or look at, in cache lines of its own.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde::{Serialize, Serializer};

/// Parts. With more threads some have one in common.
const PARTS: usize = 64;

/// The number of this thread, from 0 in the order in which threads ask.
#[inline]
pub(crate) fn number_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// A value for every thread. The processor fetches lines in pairs: two lines keep neighbours apart.
pub(crate) struct PerThread<T>(Box<[Padded<T>]>);

#[derive(Default)]
#[repr(align(128))]
struct Padded<T>(T);

impl<T: Default> PerThread<T> {
    /// One for each of this number of threads, at most 64; a power of two.
    pub(crate) fn new(threads: usize) -> Self {
        Self((0..threads.clamp(1, PARTS).next_power_of_two()).map(|_| Padded::default()).collect())
    }
}

impl<T> PerThread<T> {
    /// That of this thread.
    #[inline]
    pub(crate) fn mine(&self) -> &T {
        &self.0[number_of_this_thread() & (self.0.len() - 1)].0
    }

    /// Those of all threads, this one's first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> + Clone {
        let (before, from) = self.0.split_at(number_of_this_thread() & (self.0.len() - 1));
        from.iter().chain(before).map(|part| &part.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self::new(PARTS)
    }
}

impl<T> fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThread").field("parts", &self.0.len()).finish_non_exhaustive()
    }
}

/// A counter to which threads add without contention.
#[derive(Debug, Default)]
pub struct Counter(PerThread<AtomicU64>);

impl Counter {
    /// Counts this number of times; what is counted out again is added as its two's complement.
    #[inline]
    pub fn add(&self, number: u64) {
        self.0.mine().fetch_add(number, Ordering::Relaxed);
    }

    /// What all threads have counted.
    pub fn sum(&self) -> u64 {
        self.0.all().fold(0, |sum, part| sum.wrapping_add(part.load(Ordering::Relaxed)))
    }
}

impl Serialize for Counter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_adds_up() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| (0..100).for_each(|_| counter.add(2)));
            }
        });
        counter.add(1u64.wrapping_neg());
        assert_eq!(counter.sum(), 19_999);
    }

    #[test]
    fn threads_are_apart() {
        assert!(align_of::<Padded<u8>>() == 128 && size_of::<Padded<u8>>() == 128);
        let places = PerThread::<AtomicU64>::new(2);
        places.mine().store(7, Ordering::Relaxed);
        assert_eq!(places.all().map(|place| place.load(Ordering::Relaxed)).collect::<Vec<_>>(), [7, 0]);
    }
}
