//! Which file an operation works on.

use super::{Lane, WorkerContext, WorkerShared};
use crate::files::{Choice, Cursor, FileTable, Part, Picked, Purpose};
use crate::model::{FilePick, OperationKind};
use crate::program::Operation;

/// A picked file and what must be given back after the operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick {
    pub(super) picked: Picked,
    pub(super) hold: Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    None,
    /// A use of the file.
    Used,
    /// A claim on it.
    Claimed,
}

/// Every file is claimed by other streams at this moment.
#[derive(Debug)]
pub(super) struct Busy;

impl Pick {
    fn free(picked: Picked) -> Self {
        Self { picked, hold: Hold::None }
    }

    /// Gives the file back as it was before the pick.
    pub(super) fn let_go(self, table: &FileTable, kind: OperationKind) {
        match self.hold {
            Hold::None => {}
            Hold::Used => table.release(self.picked.file),
            Hold::Claimed if kind == OperationKind::Create => table.set_absent(self.picked.file),
            Hold::Claimed => table.set_present(self.picked),
        }
    }
}

impl<H> Lane<H> {
    /// Picks the file of an operation by name. `Ok(None)`: there is none, and there will be none.
    pub(super) fn pick(
        &mut self,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
    ) -> Result<Option<Pick>, Busy> {
        let fileset = usize::from(op.fileset);
        let (table, cursor) = (&*context.tables[fileset], &shared.cursors[fileset]);
        match op.kind {
            // Directories are numbered like files, and are there whether their file is or not.
            kind if kind.is_of_directory() => {
                let number = match op.pick {
                    FilePick::Random | FilePick::New => Some(self.random.below(table.files())),
                    FilePick::Zipf { exponent } => {
                        Some(self.zipfs.get(table.files(), exponent).draw(&mut self.random))
                    }
                    FilePick::Once => table.once_number(context.part(table), cursor),
                    FilePick::Own
                    | FilePick::Next
                    | FilePick::Every
                    | FilePick::Neighbour
                    | FilePick::Same => Some(self.number(context, op, table)),
                };
                Ok(number.map(|file| Pick::free(table.at(file))))
            }
            OperationKind::Create => Ok(match op.pick {
                FilePick::Own | FilePick::Next | FilePick::Every | FilePick::Neighbour | FilePick::Same => {
                    Some(Pick::free(table.at(self.number(context, op, table))))
                }
                FilePick::New | FilePick::Random | FilePick::Once | FilePick::Zipf { .. } => table
                    .claim_new(context.part(table), cursor)
                    .map(|file| Pick { picked: Picked { file, renamed: false }, hold: Hold::Claimed }),
            }),
            OperationKind::Unlink | OperationKind::Rename if op.of.is_none() => {
                self.existing(context, cursor, op, Purpose::Claim)
            }
            _ => self.existing(context, cursor, op, Purpose::Use),
        }
    }

    fn existing(
        &mut self,
        context: &WorkerContext<'_>,
        cursor: &Cursor,
        op: &Operation,
        purpose: Purpose,
    ) -> Result<Option<Pick>, Busy> {
        let table = &*context.tables[usize::from(op.fileset)];
        let hold = match purpose {
            Purpose::Use => Hold::Used,
            Purpose::Claim => Hold::Claimed,
        };
        let found = match op.pick {
            FilePick::Next | FilePick::Every => {
                let (share, turn) = self.share(context, op, table);
                match table.take(share.file(turn), purpose) {
                    Some(picked) => Choice::File(picked),
                    None => table.first((turn..turn + share.length).map(|turn| share.file(turn)), purpose),
                }
            }
            FilePick::Once => {
                table.once(context.part(table), cursor, purpose).map_or(Choice::Nothing, Choice::File)
            }
            // The flow says which: there is nothing to choose, and it may be its own.
            FilePick::Own | FilePick::Neighbour => {
                return Ok(Some(named(self.number(context, op, table), table, purpose)));
            }
            FilePick::Same if self.last.is_some_and(|(fileset, _)| fileset == op.fileset) => {
                return Ok(Some(named(self.number(context, op, table), table, purpose)));
            }
            FilePick::Zipf { exponent } => {
                let draw = |files| self.zipfs.get(files, exponent).draw(&mut self.random);
                table.drawn(draw, context.part(table), purpose)
            }
            FilePick::Random | FilePick::New | FilePick::Same => {
                table.random(&mut self.random, context.part(table), purpose)
            }
        };
        match found {
            Choice::File(picked) => Ok(Some(Pick { picked, hold })),
            Choice::Nothing => Ok(None),
            Choice::Busy => Err(Busy),
        }
    }

    /// The number that `own`, `next`, `neighbour` and `same` stand for.
    fn number(&mut self, context: &WorkerContext<'_>, op: &Operation, table: &FileTable) -> u64 {
        match (op.pick, self.last) {
            (FilePick::Same, Some((fileset, picked))) if fileset == op.fileset => picked.file,
            (FilePick::Next | FilePick::Every | FilePick::Neighbour, _) => {
                let (share, turn) = self.share(context, op, table);
                share.file(turn)
            }
            _ => context.part(table).index % table.files(),
        }
    }

    /// This worker's share of a fileset (or its neighbour's), and whose turn it is in it.
    fn share(&mut self, context: &WorkerContext<'_>, op: &Operation, table: &FileTable) -> (Share, u64) {
        let part = match op.pick {
            FilePick::Every => Part { index: context.worker.into(), of: context.workers.into() },
            FilePick::Neighbour if table.is_shared() => context.part_of((context.place + 1) % context.places),
            _ => context.part(table),
        };
        let files = table.files();
        let length = files.saturating_sub(part.index).div_ceil(part.of).max(1);
        let share = Share { first: part.index % files, step: part.of, length };
        let turn = self.round * u64::from(self.lanes) + u64::from(self.lane);
        self.round += 1;
        (share, turn)
    }
}

/// Every `step`-th file from `first` on.
#[derive(Debug, Clone, Copy)]
struct Share {
    first: u64,
    step: u64,
    length: u64,
}

impl Share {
    fn file(self, turn: u64) -> u64 {
        self.first + turn % self.length * self.step
    }
}

fn named(file: u64, table: &FileTable, purpose: Purpose) -> Pick {
    match purpose {
        Purpose::Use => Pick { picked: table.hold(file), hold: Hold::Used },
        Purpose::Claim => Pick::free(table.at(file)),
    }
}
