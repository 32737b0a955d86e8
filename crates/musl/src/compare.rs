//! `memcmp`: equal bytes 32 at a time, then eight.

use core::ffi::c_int;

/// The order of two strings of bytes: negative, zero or positive.
///
/// # Safety
/// Both are readable for `length` bytes.
#[inline]
pub unsafe fn compare(a: *const u8, b: *const u8, length: usize) -> c_int {
    const WORD: usize = size_of::<u64>();
    const WIDE: usize = size_of::<u128>();
    // SAFETY: no word begins after `length - WORD`, and no two wide ones after `length - 2 * WIDE`.
    unsafe {
        if length < WORD {
            for at in 0..length {
                let (a, b) = (*a.add(at), *b.add(at));
                if a != b {
                    return c_int::from(a) - c_int::from(b);
                }
            }
            return 0;
        }
        let differ =
            |at| a.add(at).cast::<u128>().read_unaligned() ^ b.add(at).cast::<u128>().read_unaligned();
        let mut at = 0;
        while length - at > 2 * WIDE && differ(at) | differ(at + WIDE) == 0 {
            at += 2 * WIDE;
        }
        loop {
            // The last word overlaps the one before.
            at = at.min(length - WORD);
            let (a, b) = (a.add(at).cast::<u64>().read_unaligned(), b.add(at).cast::<u64>().read_unaligned());
            if a != b {
                return if u64::from_be(a) < u64::from_be(b) { -1 } else { 1 };
            }
            at += WORD;
            if at == length {
                return 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_decides() {
        for length in (0..70).chain([255]) {
            for shift in 0..9 {
                let a: Vec<u8> = (0..shift + length).map(|at| at as u8).collect();
                let b: Vec<u8> = a[shift..].to_vec();
                // SAFETY: both have `length` bytes from there on.
                let order = |b: &[u8]| unsafe { compare(a[shift..].as_ptr(), b.as_ptr(), length) }.signum();
                assert_eq!(order(&b), 0);
                for at in 0..length {
                    let mut other = b.clone();
                    // A later difference in the other direction must not matter.
                    *other.last_mut().unwrap() = b[length - 1].wrapping_add(1);
                    other[at] = b[at].wrapping_add(128);
                    assert_eq!(order(&other), a[shift..].cmp(&other) as c_int, "{length} {shift} {at}");
                }
            }
        }
    }
}
