//! Threads, numbered: each has its own part of what all count or look at.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of this thread, from 0 in the order in which threads ask.
#[inline]
pub(crate) fn number_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}
