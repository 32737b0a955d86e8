//! `bitmap4`: sets of attribute, operation and other small numbers.

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};

use crate::xdr::{Decode, Decoder, Encode, Encoder, XdrError};

const WORDS: usize = 3;

/// A set of the numbers 0 to 95, which is all that NFS up to 4.2 uses. Larger numbers on the wire are not kept, only
/// that there were some. Encodes without trailing zero words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bitmap4 {
    words: [u32; WORDS],
    beyond: bool,
}

impl Bitmap4 {
    /// The empty set.
    pub const EMPTY: Self = Self { words: [0; WORDS], beyond: false };

    /// The set of these numbers, all below 96.
    pub const fn of(bits: &[u32]) -> Self {
        let mut set = Self::EMPTY;
        let mut i = 0;
        while i < bits.len() {
            set = set.with(bits[i]);
            i += 1;
        }
        set
    }

    /// The set with `bit` added; numbers above 95 only leave their trace in [`Bitmap4::has_unknown`].
    #[must_use]
    pub const fn with(mut self, bit: u32) -> Self {
        if bit < 96 {
            self.words[(bit / 32) as usize] |= 1 << (bit % 32);
        } else {
            self.beyond = true;
        }
        self
    }

    /// The set without `bit`.
    #[must_use]
    pub const fn without(mut self, bit: u32) -> Self {
        if bit < 96 {
            self.words[(bit / 32) as usize] &= !(1 << (bit % 32));
        }
        self
    }

    /// Adds `bit`.
    #[inline]
    pub const fn set(&mut self, bit: u32) {
        *self = self.with(bit);
    }

    /// Whether `bit` is in the set.
    #[inline]
    pub const fn contains(&self, bit: u32) -> bool {
        bit < 96 && self.words[(bit / 32) as usize] & 1 << (bit % 32) != 0
    }

    /// Whether no number is in the set, none above 95 either.
    pub const fn is_empty(&self) -> bool {
        self.words[0] == 0 && self.words[1] == 0 && self.words[2] == 0 && !self.beyond
    }

    /// Whether the wire had numbers above 95.
    pub const fn has_unknown(&self) -> bool {
        self.beyond
    }

    /// Whether every number of `self` is in `other`, too; never where there are numbers above 95.
    pub const fn is_subset(&self, other: &Self) -> bool {
        let (a, b) = (&self.words, &other.words);
        !self.beyond && a[0] & !b[0] == 0 && a[1] & !b[1] == 0 && a[2] & !b[2] == 0
    }

    /// Whether some number is in both sets.
    pub const fn intersects(&self, other: &Self) -> bool {
        let (a, b) = (&self.words, &other.words);
        a[0] & b[0] != 0 || a[1] & b[1] != 0 || a[2] & b[2] != 0
    }

    /// The intersection, for constants.
    #[must_use]
    pub const fn intersection(&self, other: &Self) -> Self {
        let (a, b) = (&self.words, &other.words);
        Self { words: [a[0] & b[0], a[1] & b[1], a[2] & b[2]], beyond: false }
    }

    /// The union, for constants.
    #[must_use]
    pub const fn union(&self, other: &Self) -> Self {
        let (a, b) = (&self.words, &other.words);
        Self { words: [a[0] | b[0], a[1] | b[1], a[2] | b[2]], beyond: self.beyond || other.beyond }
    }

    /// Numbers in the set.
    pub const fn len(&self) -> usize {
        (self.words[0].count_ones() + self.words[1].count_ones() + self.words[2].count_ones()) as usize
    }

    /// The numbers, rising.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let words = self.words;
        let (mut at, mut left) = (0, words[0]);
        std::iter::from_fn(move || {
            while left == 0 {
                at += 1;
                left = *words.get(at)?;
            }
            let bit = left.trailing_zeros();
            left &= left - 1;
            Some(at as u32 * 32 + bit)
        })
    }

    /// Words it takes on the wire, without the count.
    pub const fn wire_words(&self) -> usize {
        match self.words {
            [0, 0, 0] => 0,
            [_, 0, 0] => 1,
            [_, _, 0] => 2,
            _ => 3,
        }
    }

    /// The first word: bits 0 to 31, as flags of callbacks and advice use them.
    pub const fn word0(&self) -> u32 {
        self.words[0]
    }
}

impl BitAnd for Bitmap4 {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        self.intersection(&other)
    }
}

impl BitOr for Bitmap4 {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(&other)
    }
}

impl Not for Bitmap4 {
    type Output = Self;
    /// All numbers below 96 that are not in the set.
    #[inline]
    fn not(self) -> Self {
        Self { words: self.words.map(|word| !word), beyond: false }
    }
}

impl FromIterator<u32> for Bitmap4 {
    fn from_iter<I: IntoIterator<Item = u32>>(bits: I) -> Self {
        bits.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for Bitmap4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()?;
        if self.beyond { f.write_str("+") } else { Ok(()) }
    }
}

impl<'a> Decode<'a> for Bitmap4 {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let count: u32 = d.get()?;
        let mut set = Self::EMPTY;
        for i in 0..count as usize {
            let word = d.get()?;
            match set.words.get_mut(i) {
                Some(place) => *place = word,
                None => set.beyond |= word != 0,
            }
        }
        Ok(set)
    }
}

impl Encode for Bitmap4 {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        let words = self.wire_words();
        e.put(&(words as u32));
        self.words.iter().take(words).for_each(|word| e.put(word));
    }
}

#[cfg(test)]
impl arbitrary::Arbitrary<'_> for Bitmap4 {
    fn arbitrary(u: &mut arbitrary::Unstructured<'_>) -> arbitrary::Result<Self> {
        Ok(Self { words: u.arbitrary()?, beyond: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn longer_bitmaps_are_taken_and_remembered() {
        let bytes = wire(&[5, 1, 0, 1 << 31, 0, 0]);
        let set: Bitmap4 = Decoder::new(&bytes).get().unwrap();
        assert_eq!(set, Bitmap4::of(&[0, 95]));
        let bytes = wire(&[4, 1, 0, 0, 8]);
        let set: Bitmap4 = Decoder::new(&bytes).get().unwrap();
        assert!(set.has_unknown() && set.contains(0) && !set.is_subset(&!Bitmap4::EMPTY) && !set.is_empty());
        assert!(Decoder::new(&wire(&[u32::MAX, 1])).get::<Bitmap4>().is_err());
    }

    #[test]
    fn encodes_without_trailing_zero_words() {
        for (set, expected) in [
            (Bitmap4::EMPTY, vec![0]),
            (Bitmap4::of(&[1]), vec![1, 2]),
            (Bitmap4::of(&[33]), vec![2, 0, 2]),
            (Bitmap4::of(&[0, 64]), vec![3, 1, 0, 1]),
        ] {
            let mut e = Encoder::new();
            e.put(&set);
            assert_eq!(e.buffer(), wire(&expected));
        }
    }

    #[test]
    fn set_operations() {
        let (a, b) = (Bitmap4::of(&[1, 40, 70]), Bitmap4::of(&[40, 71]));
        assert_eq!((a & b).iter().collect::<Vec<_>>(), [40]);
        assert_eq!((a | b).len(), 4);
        assert!(!a.is_subset(&b) && (a & b).is_subset(&b) && a.intersects(&b));
        assert_eq!((!a & a), Bitmap4::EMPTY);
        assert_eq!(a.without(40).with(2), [1, 2, 70].into_iter().collect());
    }
}
