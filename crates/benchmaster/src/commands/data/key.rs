//! Short texts as numbers.

/// A text of at most seven bytes as one number, which is compared faster than bytes: the bytes, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

/// The byte 1 eight times, and the highest bit of every byte.
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = ONES << 7;

impl Key {
    /// Of no text.
    pub(super) const NONE: Self = Self(u64::MAX);

    /// The key of a text; [`Key::NONE`] for a longer one.
    pub(super) fn of(text: &str) -> Self {
        match text.len() {
            length @ 0..8 => {
                let bytes = text.bytes().rev().fold(0, |bytes, byte| bytes << 8 | u64::from(byte));
                Self(bytes | (length as u64) << 56)
            }
            _ => Self::NONE,
        }
    }

    /// The key of a row's first cell; `None` when its delimiter is not among the first eight bytes, or when these are the
    /// last of the row.
    #[inline(always)]
    pub(super) fn until(row: &str, delimiter: u8) -> Option<Self> {
        let word = u64::from_le_bytes(*row.as_bytes().first_chunk()?);
        // A byte that is 0 borrows into its highest bit. The lowest found is the first delimiter; a borrow may make those
        // above it wrong.
        let others = word ^ (ONES * u64::from(delimiter));
        let found = others.wrapping_sub(ONES) & !others & HIGH;
        if found == 0 {
            return None;
        }
        let length = found.trailing_zeros() / 8;
        let bytes = word & ((1 << (8 * length)) - 1);
        Some(Self(bytes | u64::from(length) << 56))
    }

    /// Bytes of the text.
    #[inline(always)]
    pub(super) fn length(self) -> usize {
        (self.0 >> 56) as usize
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_cell_is_what_splitting_gives(row in "[-+0-9a-cA ,;.\u{e9}\u{a0}\t]{0,24}") {
            let expected = row.split(',').next().unwrap();
            match Key::until(&row, b',') {
                Some(key) => {
                    prop_assert_eq!(key.length(), expected.len());
                    prop_assert_eq!(key, Key::of(expected));
                }
                None => prop_assert!(expected.len() > 7 || row.len() < 8),
            }
        }

        #[test]
        fn keys_are_equal_where_texts_are(a in "[a-c\\x00]{0,9}", b in "[a-c\\x00]{0,9}") {
            let long = a.len() > 7 && b.len() > 7;
            prop_assert_eq!(Key::of(&a) == Key::of(&b), a == b || long);
        }
    }
}
