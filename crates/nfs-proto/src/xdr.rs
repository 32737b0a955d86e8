//! XDR (RFC 4506): what can be decoded from borrowed bytes and encoded into an [`Encoder`].

use std::fmt;

mod list;

pub use list::{Chain, List};

/// Why bytes are not the XDR form of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum XdrError {
    /// The buffer ends before the value does.
    #[error("message ends within {what}")]
    Truncated {
        /// The type being decoded.
        what: &'static str,
    },
    /// A variable-length item is longer than its type allows.
    #[error("{what} has {len} elements or bytes; the limit is {limit}")]
    TooLong {
        /// The type being decoded.
        what: &'static str,
        /// Length on the wire.
        len: u32,
        /// Largest number of bytes or elements allowed.
        limit: u32,
    },
    /// An enumeration, union or boolean has a value outside its type.
    #[error("{value} is not a value of {what}")]
    BadValue {
        /// The type being decoded.
        what: &'static str,
        /// Value on the wire.
        value: u32,
    },
}

/// A type that can be decoded from a buffer that lives for `'a`, without allocating.
pub trait Decode<'a>: Sized {
    /// Takes one value from the front of `d`.
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError>;
}

/// A type that can be appended to an [`Encoder`].
pub trait Encode {
    /// Appends the XDR form of `self`.
    fn encode(&self, e: &mut Encoder);
}

/// A cursor over received bytes.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    /// Bulk data may lie elsewhere.
    detached: bool,
}

impl<'a> Decoder<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, detached: false }
    }

    /// Starts at the front of a message of which only the beginning is here: [`Bulk`] data that are not decode as
    /// [`Bulk::Detached`], and end what can be decoded.
    pub fn of_front(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, detached: true }
    }

    /// Bytes not yet decoded.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Decodes one value of type `T`.
    #[inline]
    pub fn get<T: Decode<'a>>(&mut self) -> Result<T, XdrError> {
        T::decode(self)
    }

    /// The next `n` bytes and the padding to a multiple of four (whose content is not looked at).
    #[inline]
    pub fn bytes(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], XdrError> {
        let padded = n.checked_add(3).ok_or(XdrError::Truncated { what })? & !3;
        if padded > self.rest.len() {
            return Err(XdrError::Truncated { what });
        }
        let (taken, rest) = self.rest.split_at(padded);
        self.rest = rest;
        Ok(&taken[..n])
    }

    /// A counted sequence of bytes of at most `limit`.
    #[inline]
    pub fn opaque(&mut self, limit: u32, what: &'static str) -> Result<&'a [u8], XdrError> {
        let len: u32 = self.get()?;
        if len > limit {
            return Err(XdrError::TooLong { what, len, limit });
        }
        self.bytes(len as usize, what)
    }
}

/// A place in an [`Encoder`]'s buffer where `len` bytes of the caller's memory belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Position in [`Encoder::buffer`] before which the bytes go.
    pub at: usize,
    /// Their number, without padding (padding, where needed, follows in the buffer).
    pub len: usize,
}

/// A growing message: a buffer, and cuts in it where bulk data belongs that is never copied.
///
/// Both are reused from message to message ([`Encoder::clear`]), so steady state does not allocate.
#[derive(Debug, Default, Clone)]
pub struct Encoder {
    buffer: Vec<u8>,
    cuts: Vec<Cut>,
    cut_bytes: usize,
}

impl Encoder {
    /// An empty encoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets content, keeps memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.cuts.clear();
        self.cut_bytes = 0;
    }

    /// The bytes encoded so far, without what belongs into the cuts.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// The bytes encoded, of which none belong into cuts.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// The same bytes, to overwrite some (templates).
    pub(crate) fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The cuts, in order.
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Length of the whole message: buffer and cuts.
    pub fn len(&self) -> usize {
        self.buffer.len() + self.cut_bytes
    }

    /// Whether nothing has been encoded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends one value.
    #[inline]
    pub fn put<T: Encode + ?Sized>(&mut self, value: &T) {
        value.encode(self);
    }

    /// Appends `bytes` as they are, without count or padding.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Appends a counted sequence of bytes, padded.
    #[inline]
    pub fn opaque(&mut self, bytes: &[u8]) {
        self.put(&(bytes.len() as u32));
        self.raw(bytes);
        self.pad(bytes.len());
    }

    /// Appends the padding that follows `len` bytes.
    #[inline]
    pub fn pad(&mut self, len: usize) {
        self.buffer.extend_from_slice(&[0; 3][..len.wrapping_neg() & 3]);
    }

    /// Leaves a place for `len` bytes of the caller's memory (no count, no padding: see [`Bulk`]). Nothing for `len` 0.
    #[inline]
    pub fn cut(&mut self, len: usize) {
        if len > 0 {
            self.cuts.push(Cut { at: self.buffer.len(), len });
            self.cut_bytes += len;
        }
    }

    /// Where the message stands, for [`Encoder::rollback`].
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { buffer: self.buffer.len(), cuts: self.cuts.len(), cut_bytes: self.cut_bytes }
    }

    /// Takes back everything after `mark`.
    #[inline]
    pub fn rollback(&mut self, mark: Mark) {
        self.buffer.truncate(mark.buffer);
        self.cuts.truncate(mark.cuts);
        self.cut_bytes = mark.cut_bytes;
    }

    /// Bytes of the message (buffer and cuts) after `mark`.
    #[inline]
    pub fn len_since(&self, mark: Mark) -> usize {
        self.len() - mark.buffer - mark.cut_bytes
    }

    /// Overwrites the four bytes that were encoded at `mark` (a count or status not known before).
    #[inline]
    pub fn patch_u32(&mut self, mark: Mark, value: u32) {
        if let Some(place) = self.buffer.get_mut(mark.buffer..mark.buffer + 4) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }
}

/// A position in an [`Encoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Position in [`Encoder::buffer`].
    pub buffer: usize,
    /// Number of cuts before it.
    pub cuts: usize,
    cut_bytes: usize,
}

macro_rules! integer {
    ($t:ty, $n:literal) => {
        impl<'a> Decode<'a> for $t {
            #[inline]
            fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
                let (head, rest) =
                    d.rest.split_first_chunk::<$n>().ok_or(XdrError::Truncated { what: stringify!($t) })?;
                d.rest = rest;
                Ok(Self::from_be_bytes(*head))
            }
        }
        impl Encode for $t {
            #[inline]
            fn encode(&self, e: &mut Encoder) {
                e.raw(&self.to_be_bytes());
            }
        }
    };
}
integer!(u32, 4);
integer!(i32, 4);
integer!(u64, 8);
integer!(i64, 8);

impl<'a> Decode<'a> for bool {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        match d.get::<u32>()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(XdrError::BadValue { what: "bool", value }),
        }
    }
}

impl Encode for bool {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        e.put(&u32::from(*self));
    }
}

impl<'a> Decode<'a> for () {
    fn decode(_: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(())
    }
}

impl Encode for () {
    fn encode(&self, _: &mut Encoder) {}
}

impl<'a, const N: usize> Decode<'a> for [u8; N] {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let mut out = [0; N];
        out.copy_from_slice(d.bytes(N, "fixed opaque")?);
        Ok(out)
    }
}

impl<const N: usize> Encode for [u8; N] {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        e.raw(self);
        e.pad(N);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        d.get::<bool>()?.then(|| d.get()).transpose()
    }
}

impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        e.put(&self.is_some());
        if let Some(value) = self {
            e.put(value);
        }
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        (**self).encode(e);
    }
}

/// Counted bytes or a string of at most `MAX` bytes. Strings of NFS are bytes too: names need not be UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Opaque<'a, const MAX: u32 = { u32::MAX }>(pub &'a [u8]);

impl<const MAX: u32> fmt::Debug for Opaque<'_, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) if !text.contains(|c: char| c.is_control()) => fmt::Debug::fmt(text, f),
            _ => write!(f, "{:02x?}", self.0),
        }
    }
}

impl<'a, const MAX: u32> From<&'a [u8]> for Opaque<'a, MAX> {
    fn from(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a, const MAX: u32> From<&'a str> for Opaque<'a, MAX> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl<'a, const MAX: u32> Decode<'a> for Opaque<'a, MAX> {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        d.opaque(MAX, "opaque or string").map(Self)
    }
}

impl<const MAX: u32> Encode for Opaque<'_, MAX> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        e.opaque(self.0);
    }
}

/// Payload of READ and WRITE: borrowed when decoded, a [`Cut`] or copied bytes when encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bulk<'a> {
    /// The bytes themselves; encoding copies them.
    Bytes(&'a [u8]),
    /// This many bytes, which the caller sends from its own memory: encoding writes count and padding around one cut.
    Detached(u32),
}

impl<'a> Bulk<'a> {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Detached(len) => *len as usize,
        }
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, where they are at hand.
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Detached(_) => None,
        }
    }
}

impl<'a> Decode<'a> for Bulk<'a> {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let len: u32 = d.get()?;
        if d.detached && len as usize > d.rest.len() {
            d.rest = &[];
            return Ok(Self::Detached(len));
        }
        d.bytes(len as usize, "data").map(Self::Bytes)
    }
}

impl Encode for Bulk<'_> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        match *self {
            Self::Bytes(bytes) => e.opaque(bytes),
            Self::Detached(len) => {
                e.put(&len);
                e.cut(len as usize);
                e.pad(len as usize);
            }
        }
    }
}

#[cfg(test)]
mod arbitrary_values {
    use arbitrary::{Arbitrary, Result, Unstructured};

    use super::{Bulk, Chain, List, Opaque};

    impl<'a, const MAX: u32> Arbitrary<'a> for Opaque<'a, MAX> {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            let bytes: &'a [u8] = u.arbitrary()?;
            Ok(Self(&bytes[..bytes.len().min(MAX as usize)]))
        }
    }

    impl<'a> Arbitrary<'a> for Bulk<'a> {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            u.arbitrary().map(Self::Bytes)
        }
    }

    // Slices must live as long as the values: tests may leak them.
    impl<'a, T: Arbitrary<'a>, const MAX: u32> Arbitrary<'a> for List<'a, T, MAX> {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            let mut items: Vec<T> = u.arbitrary()?;
            items.truncate(MAX.min(8) as usize);
            Ok(Self::Items(items.leak()))
        }
    }

    impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for Chain<'a, T> {
        fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
            let mut items: Vec<T> = u.arbitrary()?;
            items.truncate(8);
            Ok(Self::Items(items.leak()))
        }
    }
}
