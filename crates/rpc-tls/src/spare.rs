//! Buffers of records that connections of a thread share: one that is idle holds none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Plaintext of a record at most (RFC 8446 §5.1).
pub(crate) const FRAGMENT: usize = 1 << 14;
/// Header, and what a cipher suite and padding may add to the plaintext (RFC 8446 §5.2).
pub(crate) const LARGEST_RECORD: usize = 5 + FRAGMENT + 256;
/// Records sealed before they are sent, and room for those received at a time: they stay in the cache of a core.
pub(crate) const RECORDS: usize = 8;
const LEN: usize = RECORDS * LARGEST_RECORD;
/// Buffers that a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of [`RECORDS`] records while there is something in it; else nothing.
#[derive(Debug, Default)]
pub(crate) struct Spare(Option<Box<[u8]>>);

impl Spare {
    /// The whole buffer.
    pub(crate) fn take(&mut self) -> &mut [u8] {
        self.0.get_or_insert_with(|| {
            let kept = SPARE.with_borrow_mut(Vec::pop);
            kept.unwrap_or_else(|| vec![0; LEN].into_boxed_slice())
        })
    }

    /// There is nothing in it any more.
    pub(crate) fn give_back(&mut self) {
        if let Some(buffer) = self.0.take() {
            SPARE.with_borrow_mut(|kept| {
                if kept.len() < KEPT {
                    kept.push(buffer);
                }
            });
        }
    }
}

impl Deref for Spare {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl DerefMut for Spare {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().unwrap_or_default()
    }
}
