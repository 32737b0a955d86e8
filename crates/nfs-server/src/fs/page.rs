//! Pieces of file data.

use std::ops::Range;
use std::sync::Arc;

/// Part of a page, kept alive by reference.
#[derive(Debug, Clone)]
pub struct PageSlice {
    page: Arc<[u8]>,
    range: Range<u32>,
}

impl PageSlice {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.page.get(self.range.start as usize..self.range.end as usize).unwrap_or_default()
    }
}
