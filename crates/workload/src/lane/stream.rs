//! What a worker does, as a hash: the same seed must give the same operations everywhere.

use std::cell::Cell;

use crate::model::OperationKind;
use crate::recording::OperationStream;

/// Hash of the operations of a worker, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct StreamHash {
    first: Cell<(u64, u64)>,
    all: Cell<u64>,
}

impl StreamHash {
    /// An operation on the file that `name` stands for begins.
    #[inline(always)]
    pub(crate) fn note(&self, kind: OperationKind, name: u64, offset: u64, length: u64) {
        let mut z = (name ^ offset.rotate_left(23)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 31) ^ (length << 8) ^ kind as u64).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 29;
        self.all.set(self.all.get().wrapping_add(z));
        let (count, hash) = self.first.get();
        if count < OperationStream::FIRST {
            self.first.set((count + 1, (hash.rotate_left(5) ^ z).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        }
    }

    /// What was done so far.
    pub(crate) fn get(&self) -> OperationStream {
        let (first, hash) = self.first.get();
        OperationStream { first, hash, all: self.all.get() }
    }
}
