//! Pages of file data: reference-counted, so that replies send them from where they are.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

/// Bytes of a file that one page holds at most. A page may be shorter: the rest up to here reads as zeros.
pub(super) const PAGE: usize = 64 * 1024;
/// [`PAGE`], for offsets.
pub(super) const PAGE_U64: u64 = PAGE as u64;

/// Unit in which pages of more than that grow.
const BLOCK: usize = 4096;
/// Shortest page.
const SHORTEST: usize = 64;

/// A page. Whoever holds the only reference may change it.
pub(super) type Page = Arc<[u8]>;

/// The page that all holes are read from; it has a second owner (this static), so it is never written to.
pub(super) fn zeros() -> &'static Page {
    static ZEROS: LazyLock<Page> = LazyLock::new(|| zeroed(PAGE));
    &ZEROS
}

/// A page of `len` zeros.
pub(super) fn zeroed(len: usize) -> Page {
    std::iter::repeat_n(0, len).collect()
}

/// Length of the shortest page that holds `needed` bytes.
pub(super) fn tight(needed: usize) -> usize {
    if needed < BLOCK {
        needed.next_power_of_two().max(SHORTEST)
    } else {
        needed.next_multiple_of(BLOCK).min(PAGE)
    }
}

/// Length to give a page of `old` bytes that must hold `needed`: at least doubled, so that appending copies each byte
/// about once.
pub(super) fn roomy(needed: usize, old: usize) -> usize {
    if needed <= old { old } else { tight(needed.max(2 * old).min(PAGE)) }
}

/// A page of `len` bytes: those of `old`, then `data` over them at `at`.
pub(super) fn build(len: usize, old: &[u8], at: usize, data: &[u8]) -> Page {
    if at == 0 && data.len() == len {
        return Arc::from(data);
    }
    let mut page = zeroed(len);
    if let Some(bytes) = Arc::get_mut(&mut page) {
        copy_to(bytes, 0, old);
        copy_to(bytes, at, data);
    }
    page
}

/// Puts `data` into `page` at `at`, in place when nothing else refers to the page; the page must be long enough.
pub(super) fn put(page: &mut Page, at: usize, data: &[u8]) {
    match Arc::get_mut(page) {
        Some(bytes) => copy_to(bytes, at, data),
        None => *page = build(page.len(), page, at, data),
    }
}

/// Makes `range` of `page` zeros.
pub(super) fn clear(page: &mut Page, range: Range<usize>) {
    let range = range.start.min(page.len())..range.end.min(page.len());
    if range.is_empty() || Arc::ptr_eq(page, zeros()) {
        return;
    }
    if Arc::get_mut(page).is_none() {
        *page = Arc::from(&page[..]);
    }
    if let Some(bytes) = Arc::get_mut(page).and_then(|bytes| bytes.get_mut(range)) {
        bytes.fill(0);
    }
}

/// Copies as much of `from` as there is room for.
fn copy_to(to: &mut [u8], at: usize, from: &[u8]) {
    if let Some(to) = to.get_mut(at..) {
        let len = to.len().min(from.len());
        to[..len].copy_from_slice(&from[..len]);
    }
}

/// Part of a page, kept alive by reference.
#[derive(Debug, Clone)]
pub struct PageSlice {
    page: Page,
    range: Range<u32>,
}

impl PageSlice {
    /// `range` of `page`.
    pub(super) fn new(page: &Page, range: Range<usize>) -> Self {
        Self { page: page.clone(), range: range.start as u32..range.end as u32 }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.page.get(self.range.start as usize..self.range.end as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_grow_in_steps_and_end_at_a_page() {
        assert_eq!([1, 64, 65, 4095, 4096, 4097, 65_536].map(tight), [64, 64, 128, 4096, 4096, 8192, 65_536]);
        assert_eq!(roomy(10, 64), 64);
        assert_eq!(roomy(65, 64), 128);
        assert_eq!(roomy(20_000, 12_288), 24_576);
        assert_eq!(roomy(40_000, 36_864), PAGE.min(73_728));
    }

    #[test]
    fn a_page_in_use_is_copied_and_one_alone_is_changed_in_place() {
        let mut page = build(64, b"abcdef", 2, b"XY");
        assert_eq!(&page[..7], b"abXYef\0");
        let at = page.as_ptr();
        put(&mut page, 0, b"12");
        assert_eq!(page.as_ptr(), at);
        let slice = PageSlice::new(&page, 0..4);
        put(&mut page, 0, b"zz");
        clear(&mut page, 3..100);
        assert_eq!(slice.as_slice(), b"12XY");
        assert_eq!(&page[..4], b"zzX\0");
    }
}
