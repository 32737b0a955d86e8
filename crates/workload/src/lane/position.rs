//! Where in a file a read or write goes, and how long it is.

use super::{Lane, Open, Turn, WorkerContext, WorkerShared};
use crate::files::FileTable;
use crate::model::{FilePick, OffsetPick};
use crate::program::Operation;
use crate::random::{Random, Zipfs};

/// Where a read or write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// Offset (0 where the file system decides) and length.
    At(u64, usize),
    /// The file has no place for this worker.
    Nowhere,
    /// No file is open.
    NotOpen,
}

impl<H> Lane<H> {
    /// Where the next read or write of an open handle goes, and how long it is; counts its bytes.
    #[inline(always)]
    pub(super) fn place(&mut self, shared: &WorkerShared, op: &Operation) -> Position {
        let Some(open) = self.handles[usize::from(op.slot)].as_mut() else { return Position::NotOpen };
        let length = match &op.drawn {
            None => op.length,
            Some(sampler) => sampler.draw(&mut self.random),
        };
        let (offset, length) = match op.offset {
            OffsetPick::Random if op.drawn.is_none() => {
                if open.places.0 != length {
                    open.places = (length, (open.size / length).max(1));
                }
                let offset = self.random.below(open.places.1) * length;
                (offset, length.min(open.size - offset))
            }
            OffsetPick::Sequential => {
                let position = &shared.positions[usize::from(op.slot)];
                let now = position.get();
                let from = if now >= open.size { 0 } else { now };
                position.set(from + length);
                (from, length.min(open.size - from))
            }
            OffsetPick::Append => (0, length),
            _ => match elsewhere(open, shared, op, length, &mut self.random, &mut self.zipfs) {
                Some(place) => place,
                None => return Position::Nowhere,
            },
        };
        shared.moved.set(shared.moved.get() + length);
        shared.stream.note(op.kind, open.name, offset, length);
        Position::At(offset, length as usize)
    }

    /// Workers that share a file start at different places of it, at a multiple of the largest I/O.
    pub(super) fn first_position(&self, op: &Operation, turn: Turn, size: u64) -> u64 {
        if op.pick != FilePick::Own
            || turn.of < 2
            || self.max_io == 0
            || matches!(op.offset, OffsetPick::Segments { .. })
        {
            return 0;
        }
        size / self.max_io * turn.index / turn.of * self.max_io
    }
}

/// The less usual places. `None`: there is none for this worker.
fn elsewhere<H>(
    open: &Open<H>,
    shared: &WorkerShared,
    op: &Operation,
    length: u64,
    random: &mut Random,
    zipfs: &mut Zipfs,
) -> Option<(u64, u64)> {
    let position = &shared.positions[usize::from(op.slot)];
    let size = open.size;
    // Positions at which a whole I/O fits, if one does.
    let places = || size.saturating_sub(length) / op.unit + 1;
    let within = |offset: u64| (offset, length.min(size.saturating_sub(offset)));
    Some(match op.offset {
        OffsetPick::Zipf { exponent } => {
            within(zipfs.get(places(), exponent).draw_scattered(random) * op.unit)
        }
        OffsetPick::Hotspot { share, accesses } => {
            let places = places();
            let hot = ((places as f64 * share).ceil() as u64).clamp(1, places);
            let place = if random.unit() < accesses || hot == places {
                random.below(hot)
            } else {
                hot + random.below(places - hot)
            };
            within(place * op.unit)
        }
        OffsetPick::Reverse => {
            // The position counts from the end.
            let now = position.get();
            let end = if now >= size { size } else { size - now };
            // Sizes that are drawn are multiples of what positions have to be multiples of.
            let unit = op.drawn.as_ref().map_or(length, |sampler| sampler.grain());
            let offset = end.saturating_sub(length).next_multiple_of(unit);
            let length = end - offset;
            position.set(size - offset);
            (offset, length)
        }
        OffsetPick::Strided { stride } => {
            let now = position.get();
            let from = if now >= size { 0 } else { now };
            position.set(from.saturating_add(stride.0));
            within(from)
        }
        OffsetPick::Segments { block, shift } => {
            if open.end == 0 {
                return None;
            }
            let now = position.get();
            let from = if now >= open.end { 0 } else { now };
            let turn = (open.turn.index + u64::from(shift)) % open.turn.of;
            let offset = (from / block.0 * open.turn.of + turn) * block.0 + from % block.0;
            if offset >= size {
                return None;
            }
            let place = within(offset);
            position.set(from + length);
            place
        }
        OffsetPick::At(at) => within(at.0),
        // Any position, of a size that was drawn.
        _ => within(random.below(places()) * op.unit),
    })
}

/// Which of the workers that have the picked file open a worker is, over all clients if all use it.
pub(super) fn turn_of(context: &WorkerContext<'_>, op: &Operation, table: &FileTable) -> Turn {
    let part = context.part(table);
    // Workers that have the same file for their own.
    let files = if op.pick == FilePick::Own { table.files().max(1) } else { 1 };
    let each = (part.of - part.index % files).div_ceil(files);
    Turn { index: part.index / files, of: each.max(1) }
}

/// Where the sequential position of an open file ends: with segments after as many bytes as the worker's blocks have in the
/// file.
pub(super) fn end_of(op: &Operation, turn: Turn, size: u64) -> u64 {
    let OffsetPick::Segments { block, shift } = op.offset else { return size };
    let (block, index) = (block.0, (turn.index + u64::from(shift)) % turn.of);
    // Blocks before the last segment, and what this one has of that.
    let segment = block.saturating_mul(turn.of).max(1);
    let rest = (size % segment).saturating_sub(index * block).min(block);
    size / segment * block + rest
}
