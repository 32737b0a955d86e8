//! Counts what each thread allocates: a test runs the client on its own thread, and counts neither servers nor other tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes allocated by this thread minus bytes freed by it.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Allocations and reallocations of this thread so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// The most memory in bytes that this thread held more during `test` than before it.
pub(crate) fn peak_bytes(test: impl FnOnce()) -> usize {
    let before = BYTES.get();
    PEAK.set(before);
    test();
    PEAK.get().saturating_sub(before) as usize
}

struct Counting;

impl Counting {
    fn count(allocations: u64, bytes: isize) {
        ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
        let bytes = BYTES.get() + bytes;
        BYTES.set(bytes);
        PEAK.set(PEAK.get().max(bytes));
    }
}

// SAFETY: everything is left to the system's allocator; calls are counted in constant-initialised thread-locals without
// destructors, which allocate nothing themselves.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(1, layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count(0, -(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(1, size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
