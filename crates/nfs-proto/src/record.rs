//! Record marking (RFC 5531 §11): how messages are cut out of a TCP stream.

use crate::xdr::{Encoder, Mark};

/// Bit of a fragment header that says "last fragment".
pub const LAST_FRAGMENT: u32 = 0x8000_0000;

/// Begins a record of one fragment: leaves room for its header. Close it with [`end`].
#[inline]
pub fn begin(e: &mut Encoder) -> Mark {
    let mark = e.mark();
    e.put(&0u32);
    mark
}

/// Ends the record begun at `mark`: writes its length.
#[inline]
pub fn end(e: &mut Encoder, mark: Mark) {
    let len = (e.len_since(mark) - 4) as u32;
    e.patch_u32(mark, LAST_FRAGMENT | len);
}
