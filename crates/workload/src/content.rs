//! File contents: incompressible, different in every block, and provable.
//!
//! A *stamped* block is a function of (file, offset, generation) alone: a header that says so, then random bytes from a
//! fixed pool at a position derived from the same three numbers. Reading it back therefore needs no memory of what was
//! written beyond the generation, and a wrong block usually tells where it came from.

use std::sync::LazyLock;

use crate::random::{Random, mix};

/// The largest block that is stamped as one.
pub const BLOCK: usize = 4096;
/// The smallest: a header and some payload.
pub const MIN_BLOCK: usize = 64;
const MAGIC: u64 = 0x424d_4253_5441_4d50; // "BMBSTAMP"
const HEADER: usize = 32;
const POOL: usize = 1 << 20;

static POOL_BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = vec![0; POOL + BLOCK];
    Random::new(0x6265_6e63_686d_6173, 0).fill(&mut bytes);
    bytes
});

/// The block size for I/O of `io_size` bytes: the largest power of two that divides it, at most [`BLOCK`]. `None` when
/// that is less than [`MIN_BLOCK`].
pub fn block_size(io_size: u64) -> Option<usize> {
    let power = 1usize << io_size.trailing_zeros().min(BLOCK.trailing_zeros());
    (io_size > 0 && power >= MIN_BLOCK).then_some(power)
}

/// What a stamped block says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub file: u64,
    /// Offset of the block in the file.
    pub offset: u64,
    /// How often the block has been written; 0 when the file was prepared.
    pub generation: u32,
}

/// Fills `block` with the content of `stamp`. Blocks shorter than [`MIN_BLOCK`] get the payload alone.
pub fn fill(block: &mut [u8], stamp: Stamp) {
    let length = block.len();
    let start = (mix(stamp.file, stamp.offset, stamp.generation.into()) % POOL as u64) as usize;
    block.copy_from_slice(&POOL_BYTES[start..start + length]);
    if length >= MIN_BLOCK {
        block[..8].copy_from_slice(&MAGIC.to_le_bytes());
        block[8..16].copy_from_slice(&stamp.file.to_le_bytes());
        block[16..24].copy_from_slice(&stamp.offset.to_le_bytes());
        block[24..HEADER].copy_from_slice(&u64::from(stamp.generation).to_le_bytes());
    }
}

/// What the header of a block says, if it is one of ours.
pub fn read_stamp(block: &[u8]) -> Option<Stamp> {
    let word = |at: usize| block.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    (word(0)? == MAGIC).then_some(())?;
    Some(Stamp { file: word(8)?, offset: word(16)?, generation: u32::try_from(word(24)?).ok()? })
}

/// Checks that `block` has the content of `stamp`.
///
/// # Errors
/// Says what was found instead and the first wrong byte.
pub fn check(block: &[u8], stamp: Stamp, scratch: &mut [u8; BLOCK]) -> Result<(), String> {
    let expected = &mut scratch[..block.len()];
    fill(expected, stamp);
    let Some(first) = block.iter().zip(&*expected).position(|(found, right)| found != right) else {
        return Ok(());
    };
    let (at, right) = (stamp.offset + first as u64, expected[first]);
    // A header is only believed when all that follows agrees with it: it may be what is damaged.
    let whole = |found: &Stamp| {
        fill(expected, *found);
        block == &*expected
    };
    let found = if block.len() >= MIN_BLOCK { read_stamp(block).filter(whole) } else { None };
    Err(match found {
        Some(found) if found.file != stamp.file => {
            format!("offset {at}: the block belongs to another file, offset {}", found.offset)
        }
        Some(found) if found.offset != stamp.offset => {
            format!("offset {at}: the block belongs to offset {} of this file", found.offset)
        }
        Some(found) => format!(
            "offset {}: the block holds generation {} where {} was written last",
            stamp.offset, found.generation, stamp.generation
        ),
        None if block.iter().all(|&byte| byte == 0) => format!("offset {at}: the block is all zero"),
        None => format!("offset {at}: wrong byte {:#04x} instead of {right:#04x}", block[first]),
    })
}

/// Fills `buffer` with random bytes for writes that are not verified.
pub fn fill_random(buffer: &mut [u8], seed: u64, stream: u64) {
    Random::new(seed, stream).fill(buffer);
}

/// Makes every 4 KiB of `buffer` differ from anything written before, so that deduplication finds nothing. `counter`
/// is the writer's own and begins at a random number.
#[inline]
pub fn make_unique(buffer: &mut [u8], counter: &mut u64) {
    for block in buffer.chunks_mut(BLOCK) {
        if let Some(head) = block.first_chunk_mut::<8>() {
            *counter = counter.wrapping_add(1);
            *head = counter.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn block_sizes() {
        assert_eq!(block_size(64 << 10), Some(4096));
        assert_eq!(block_size(1536), Some(512));
        assert_eq!(block_size(1000), None);
        assert_eq!(block_size(0), None);
    }

    #[test]
    fn every_kind_of_damage_is_told_apart() {
        let mut scratch = [0; BLOCK];
        let mut block = vec![0; BLOCK];
        let stamp = Stamp { file: 1, offset: 8192, generation: 3 };
        fill(&mut block, stamp);
        assert_eq!(check(&block, stamp, &mut scratch), Ok(()));
        let error = |block: &[u8], scratch: &mut [u8; BLOCK]| check(block, stamp, scratch).unwrap_err();
        fill(&mut block, Stamp { generation: 2, ..stamp });
        assert_eq!(
            error(&block, &mut scratch),
            "offset 8192: the block holds generation 2 where 3 was written last"
        );
        fill(&mut block, Stamp { file: 2, ..stamp });
        assert!(error(&block, &mut scratch).contains("another file"));
        fill(&mut block, Stamp { offset: 0, ..stamp });
        assert!(error(&block, &mut scratch).contains("belongs to offset 0"));
        fill(&mut block, stamp);
        block[777] ^= 1;
        assert!(error(&block, &mut scratch).starts_with("offset 8969: wrong byte"));
        block.fill(0);
        assert!(error(&block, &mut scratch).contains("all zero"));
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(at in 0usize..BLOCK, bit in 0u8..8, file: u64, offset in 0u64..1 << 50) {
            let (mut block, mut scratch) = (vec![0; BLOCK], [0; BLOCK]);
            let stamp = Stamp { file, offset, generation: 1 };
            fill(&mut block, stamp);
            prop_assert!(check(&block, stamp, &mut scratch).is_ok());
            block[at] ^= 1 << bit;
            let error = check(&block, stamp, &mut scratch).unwrap_err();
            let place = format!("offset {}: wrong byte", offset + at as u64);
            prop_assert!(error.starts_with(&place), "{}", error);
        }

        #[test]
        fn a_short_last_block_is_proved_as_well(length in 1usize..BLOCK, generation: u32) {
            let (mut block, mut scratch) = (vec![0; length], [0; BLOCK]);
            let stamp = Stamp { file: 1, offset: 4096, generation };
            fill(&mut block, stamp);
            prop_assert!(check(&block, stamp, &mut scratch).is_ok());
            block[length - 1] ^= 1;
            prop_assert!(check(&block, stamp, &mut scratch).is_err());
        }

        #[test]
        fn no_two_blocks_written_are_the_same(lengths in prop::collection::vec(1usize..20_000, 1..20), start: u64) {
            let (mut buffer, mut counter, mut heads) = (vec![0; 20_000], start, std::collections::BTreeSet::new());
            for length in lengths {
                make_unique(&mut buffer[..length], &mut counter);
                for block in buffer[..length].chunks(BLOCK).filter(|block| block.len() >= 8) {
                    prop_assert!(heads.insert(block[..8].to_vec()));
                }
            }
        }
    }
}
