//! `memcpy` and `memmove` for x86_64, in one function: whatever could be overwritten is read first.
//!
//! Without loops in Rust, which the compiler would turn into calls of `memcpy`.

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

const VECTOR: usize = size_of::<__m128i>();
const BLOCK: usize = 4 * VECTOR;
/// From here on the processor's own copying is faster, if the destination is aligned.
const STRING: usize = 1024;

/// Copies bytes; the places may overlap.
///
/// # Safety
/// `from` is readable and `to` writable for `length` bytes.
#[inline]
pub unsafe fn copy(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: every access is within `length` bytes of either.
    unsafe {
        match length {
            0 => {}
            1..4 => {
                let (first, middle, last) = (*from, *from.add(length / 2), *from.add(length - 1));
                *to = first;
                *to.add(length / 2) = middle;
                *to.add(length - 1) = last;
            }
            4..8 => ends::<u32>(to, from, length),
            8..16 => ends::<u64>(to, from, length),
            16..=32 => {
                let (first, last) = (load(from), load(from.add(length - VECTOR)));
                store(to, first);
                store(to.add(length - VECTOR), last);
            }
            33..=64 => {
                let (head, tail) = (pair(from), pair(from.add(length - 2 * VECTOR)));
                store_pair(to, head);
                store_pair(to.add(length - 2 * VECTOR), tail);
            }
            65..=128 => {
                let (head, tail) = (block(from), block(from.add(length - BLOCK)));
                store_block(to, head);
                store_block(to.add(length - BLOCK), tail);
            }
            _ if to.addr().wrapping_sub(from.addr()) < length => backwards(to, from, length),
            STRING.. if from.addr().wrapping_sub(to.addr()) >= length => string(to, from, length),
            _ => forwards(to, from, length),
        }
    }
}

/// The first and the last word, which overlap.
#[inline(always)]
unsafe fn ends<Word: Copy>(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the caller's promise: a word is at most `length` bytes.
    unsafe {
        let rest = length - size_of::<Word>();
        let first = from.cast::<Word>().read_unaligned();
        let last = from.add(rest).cast::<Word>().read_unaligned();
        to.cast::<Word>().write_unaligned(first);
        to.add(rest).cast::<Word>().write_unaligned(last);
    }
}

#[inline(always)]
unsafe fn load(from: *const u8) -> __m128i {
    // SAFETY: the caller's promise; SSE2 is part of x86_64.
    unsafe { _mm_loadu_si128(from.cast()) }
}

#[inline(always)]
unsafe fn store(to: *mut u8, vector: __m128i) {
    // SAFETY: as above.
    unsafe { _mm_storeu_si128(to.cast(), vector) }
}

type Pair = (__m128i, __m128i);

#[inline(always)]
unsafe fn pair(from: *const u8) -> Pair {
    // SAFETY: as above.
    unsafe { (load(from), load(from.add(VECTOR))) }
}

#[inline(always)]
unsafe fn store_pair(to: *mut u8, (first, second): Pair) {
    // SAFETY: as above.
    unsafe {
        store(to, first);
        store(to.add(VECTOR), second);
    }
}

#[inline(always)]
unsafe fn block(from: *const u8) -> (Pair, Pair) {
    // SAFETY: as above.
    unsafe { (pair(from), pair(from.add(2 * VECTOR))) }
}

#[inline(always)]
unsafe fn store_block(to: *mut u8, (first, second): (Pair, Pair)) {
    // SAFETY: as above.
    unsafe {
        store_pair(to, first);
        store_pair(to.add(2 * VECTOR), second);
    }
}

/// More than a block, and the destination does not begin within the source.
unsafe fn forwards(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: blocks that end before the last byte; the last block is stored whole, as it was before the others.
    unsafe {
        let tail = block(from.add(length - BLOCK));
        asm!(
            "2:",
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            "movups [{to}], {a}",
            "movups [{to} + 16], {b}",
            "movups [{to} + 32], {c}",
            "movups [{to} + 48], {d}",
            "add {from}, 64",
            "add {to}, 64",
            "dec {blocks}",
            "jnz 2b",
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            blocks = inout(reg) (length - 1) / BLOCK => _,
            options(nostack)
        );
        store_block(to.add(length - BLOCK), tail);
    }
}

/// More than a block, and the destination begins within the source.
unsafe fn backwards(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: as above, from the end.
    unsafe {
        let head = block(from);
        asm!(
            "2:",
            "movups {a}, [{from} - 16]",
            "movups {b}, [{from} - 32]",
            "movups {c}, [{from} - 48]",
            "movups {d}, [{from} - 64]",
            "movups [{to} - 16], {a}",
            "movups [{to} - 32], {b}",
            "movups [{to} - 48], {c}",
            "movups [{to} - 64], {d}",
            "sub {from}, 64",
            "sub {to}, 64",
            "dec {blocks}",
            "jnz 2b",
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            from = inout(reg) from.add(length) => _,
            to = inout(reg) to.add(length) => _,
            blocks = inout(reg) (length - 1) / BLOCK => _,
            options(nostack)
        );
        store_block(to, head);
    }
}

/// Places that do not overlap, by the processor's string instruction: eight bytes at a time, from an aligned destination on.
unsafe fn string(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: the first vector covers what is before the aligned address, the last one what remains of a word.
    unsafe {
        let (head, tail) = (load(from), load(from.add(length - VECTOR)));
        let skipped = VECTOR - to.addr() % VECTOR;
        asm!(
            "rep movsq",
            inout("rdi") to.add(skipped) => _,
            inout("rsi") from.add(skipped) => _,
            inout("rcx") (length - skipped) / 8 => _,
            options(nostack, preserves_flags)
        );
        store(to, head);
        store(to.add(length - VECTOR), tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_overlap() {
        let lengths = (0..=300).chain([511, 512, 1000, 1023, 1024, 1025, 1031, 1040, 4096, 5001]);
        for length in lengths {
            for (to, from) in [
                (0, 0),
                (0, 1),
                (1, 0),
                (3, 20),
                (20, 3),
                (0, 64),
                (64, 1),
                (200, 1),
                (5, 300),
                (5100, 7),
                (9, 6003),
            ] {
                let before: Vec<u8> = (0..12_000_u32).map(|at| (at * 31 / 7) as u8).collect();
                let (mut ours, mut expected) = (before.clone(), before);
                expected.copy_within(from..from + length, to);
                let base = ours.as_mut_ptr();
                // SAFETY: both are within `ours`.
                unsafe { copy(base.add(to), base.add(from), length) };
                assert!(ours == expected, "{length} bytes from {from} to {to}");
            }
        }
    }
}
