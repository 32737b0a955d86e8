//! Arrays and linked lists of XDR, decoded one element after the other without allocating.

use std::fmt;

use super::{Decode, Decoder, Encode, Encoder, XdrError};

/// A counted array of at most `MAX` elements: a slice to encode, or checked bytes of the wire that [`List::iter`]
/// decodes again one by one, without allocating.
#[derive(Clone, Copy)]
pub enum List<'a, T, const MAX: u32 = { u32::MAX }> {
    /// Values to encode.
    Items(&'a [T]),
    /// Elements on the wire, known to decode.
    Wire {
        /// Their number.
        count: u32,
        /// Their bytes.
        bytes: &'a [u8],
    },
}

impl<'a, T: Decode<'a> + Copy, const MAX: u32> List<'a, T, MAX> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Items(items) => items.len(),
            Self::Wire { count, .. } => *count as usize,
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T, MAX> {
        let (items, wire) = match *self {
            Self::Items(items) => (items, &[][..]),
            Self::Wire { bytes, .. } => (&[][..], bytes),
        };
        let mut decoder = Decoder::new(wire);
        let decoded = std::iter::from_fn(move || decoder.get().ok());
        items.iter().copied().chain(decoded).take(self.len())
    }
}

impl<T, const MAX: u32> Default for List<'_, T, MAX> {
    fn default() -> Self {
        Self::Items(&[])
    }
}

impl<'a, T: Decode<'a> + Copy + PartialEq, const MAX: u32> PartialEq for List<'a, T, MAX> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Decode<'a> + Copy + Eq, const MAX: u32> Eq for List<'a, T, MAX> {}

impl<'a, T: Decode<'a> + Copy + fmt::Debug, const MAX: u32> fmt::Debug for List<'a, T, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Decode<'a>, const MAX: u32> Decode<'a> for List<'a, T, MAX> {
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let what = "array";
        let count: u32 = d.get()?;
        if count > MAX {
            return Err(XdrError::TooLong { what, len: count, limit: MAX });
        }
        let start = d.rest;
        for _ in 0..count {
            // An element without bytes (void) would let a count alone cost time.
            if d.rest.is_empty() {
                return Err(XdrError::Truncated { what });
            }
            d.get::<T>()?;
        }
        Ok(Self::Wire { count, bytes: &start[..start.len() - d.rest.len()] })
    }
}

impl<'a, T: Encode, const MAX: u32> Encode for List<'a, T, MAX> {
    fn encode(&self, e: &mut Encoder) {
        match self {
            Self::Items(items) => {
                e.put(&(items.len() as u32));
                items.iter().for_each(|item| e.put(item));
            }
            Self::Wire { count, bytes } => {
                e.put(count);
                e.raw(bytes);
            }
        }
    }
}

/// A linked list (`*next`, RFC 4506 §4.19): every element after a `TRUE`, then a `FALSE`.
#[derive(Clone, Copy)]
pub enum Chain<'a, T> {
    /// Values to encode.
    Items(&'a [T]),
    /// Elements on the wire, known to decode, up to but without the last `FALSE`.
    Wire(&'a [u8]),
}

impl<'a, T: Decode<'a> + Copy> Chain<'a, T> {
    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let (items, wire) = match *self {
            Self::Items(items) => (items, &[][..]),
            Self::Wire(bytes) => (&[][..], bytes),
        };
        let mut decoder = Decoder::new(wire);
        let decoded = std::iter::from_fn(move || decoder.get::<bool>().ok()?.then(|| decoder.get().ok())?);
        items.iter().copied().chain(decoded)
    }
}

impl<T> Default for Chain<'_, T> {
    fn default() -> Self {
        Self::Items(&[])
    }
}

impl<'a, T: Decode<'a> + Copy + PartialEq> PartialEq for Chain<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Decode<'a> + Copy + Eq> Eq for Chain<'a, T> {}

impl<'a, T: Decode<'a> + Copy + fmt::Debug> fmt::Debug for Chain<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Chain<'a, T> {
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let start = d.rest;
        loop {
            let end = start.len() - d.rest.len();
            if !d.get::<bool>()? {
                return Ok(Self::Wire(&start[..end]));
            }
            d.get::<T>()?;
        }
    }
}

impl<T: Encode> Encode for Chain<'_, T> {
    fn encode(&self, e: &mut Encoder) {
        match self {
            Self::Items(items) => {
                for item in *items {
                    e.put(&true);
                    e.put(item);
                }
            }
            Self::Wire(bytes) => e.raw(bytes),
        }
        e.put(&false);
    }
}
