//! Memory of frames under way: read into once, written from once, never copied between.

use slab::Slab;

/// The largest frame that a TAP device gives, with its header, and some more.
pub(crate) const LARGEST: usize = 68 << 10;
/// Bytes of a piece of memory.
const CHUNK: usize = 1 << 20;
/// Pieces of memory kept for the next frames when no frame is in them.
const KEPT: usize = 64;

/// Where a frame is. Made by [`Arena::keep`]; as often as [`Arena::share`] was called and once more it is given back to
/// [`Arena::release`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrameRef {
    chunk: usize,
    start: usize,
    length: usize,
}

#[derive(Debug)]
struct Chunk {
    data: Box<[u8]>,
    used: usize,
    live: usize,
}

/// Frames in pieces of memory, which are used again when all frames in them have left.
#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Slab<Chunk>,
    current: usize,
    spare: Vec<Box<[u8]>>,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let mut chunks = Slab::new();
        let current = chunks.insert(Chunk { data: memory(), used: 0, live: 0 });
        Self { chunks, current, spare: Vec::new() }
    }

    /// Room for the next frame.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let chunk = &self.chunks[self.current];
        if chunk.data.len() - chunk.used < LARGEST {
            let data = self.spare.pop().unwrap_or_else(memory);
            self.current = self.chunks.insert(Chunk { data, used: 0, live: 0 });
        }
        let chunk = &mut self.chunks[self.current];
        &mut chunk.data[chunk.used..chunk.used + LARGEST]
    }

    /// What was written at the start of the last room is a frame of this many bytes.
    pub(crate) fn keep(&mut self, length: usize) -> FrameRef {
        let chunk = &mut self.chunks[self.current];
        let start = chunk.used;
        chunk.used += length;
        chunk.live += 1;
        FrameRef { chunk: self.current, start, length }
    }

    /// The same frame once more.
    pub(crate) fn share(&mut self, place: &FrameRef) -> FrameRef {
        self.chunks[place.chunk].live += 1;
        FrameRef { ..*place }
    }

    pub(crate) fn get(&self, place: &FrameRef) -> &[u8] {
        &self.chunks[place.chunk].data[place.start..place.start + place.length]
    }

    pub(crate) fn release(&mut self, place: FrameRef) {
        let chunk = &mut self.chunks[place.chunk];
        chunk.live -= 1;
        if chunk.live > 0 {
            return;
        }
        if place.chunk == self.current {
            // The same memory again, which caches still hold.
            chunk.used = 0;
        } else {
            let chunk = self.chunks.remove(place.chunk);
            if self.spare.len() < KEPT {
                self.spare.push(chunk.data);
            }
        }
    }

    /// Bytes of memory in use.
    pub(crate) fn size(&self) -> usize {
        self.chunks.len() * CHUNK
    }
}

fn memory() -> Box<[u8]> {
    vec![0; CHUNK].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn put(arena: &mut Arena, length: usize, fill: u8) -> FrameRef {
        arena.room()[..length].fill(fill);
        arena.keep(length)
    }

    #[test]
    fn one_frame_after_the_other_uses_the_same_memory() {
        let mut arena = Arena::new();
        for round in 0..1000 {
            let place = put(&mut arena, 60_000, round as u8);
            assert_eq!(place.start, 0);
            arena.release(place);
        }
        assert_eq!(arena.size(), CHUNK);
    }

    #[test]
    fn a_shared_frame_stays_until_the_last_has_left() {
        let mut arena = Arena::new();
        let first = put(&mut arena, 100, 1);
        let second = arena.share(&first);
        arena.release(first);
        let other = put(&mut arena, 100, 2);
        assert_eq!(arena.get(&second), [1; 100]);
        arena.release(second);
        arena.release(other);
        assert_eq!(put(&mut arena, 1, 3).start, 0);
    }

    proptest! {
        #[test]
        fn frames_are_what_was_read(lengths in prop::collection::vec((1..LARGEST, 0usize..40), 1..100)) {
            let mut arena = Arena::new();
            let mut under_way = VecDeque::new();
            for (number, (length, held)) in lengths.into_iter().enumerate() {
                under_way.push_back((put(&mut arena, length, number as u8), length, number as u8));
                while under_way.len() > held {
                    let (place, length, fill) = under_way.pop_front().unwrap();
                    prop_assert_eq!(arena.get(&place).len(), length);
                    let data = arena.get(&place);
                    prop_assert!(data[0] == fill && data[length / 2] == fill && data[length - 1] == fill);
                    arena.release(place);
                }
                // Each piece but the last is full but for one frame; those at the ends are pinned.
                let held: usize = under_way.iter().map(|(_, length, _)| length).sum();
                prop_assert!(arena.size() <= held * 2 + 3 * CHUNK);
            }
            while let Some((place, ..)) = under_way.pop_front() {
                arena.release(place);
            }
            prop_assert_eq!(arena.size(), CHUNK);
        }
    }
}
