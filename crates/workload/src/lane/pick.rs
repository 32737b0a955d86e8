//! Which file an operation works on.

use super::{Lane, WorkerContext};
use crate::files::{FileTable, Found, Picked, Purpose};
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
    /// Nothing.
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
    pub(super) fn pick(&mut self, context: &WorkerContext<'_>, op: &Operation) -> Result<Option<Pick>, Busy> {
        let table = &*context.tables[usize::from(op.fileset)];
        match op.kind {
            // Directories are numbered like files, and are there whether their file is or not.
            OperationKind::Readdir | OperationKind::Mkdir | OperationKind::Rmdir => {
                let number = match op.pick {
                    FilePick::Random | FilePick::New => Some(self.random.below(table.files())),
                    FilePick::Once => table.once_number(),
                    FilePick::Own | FilePick::Next | FilePick::Same => Some(self.number(context, op, table)),
                };
                Ok(number.map(|file| Pick::free(table.at(file))))
            }
            OperationKind::Create => Ok(match op.pick {
                FilePick::Own | FilePick::Next | FilePick::Same => {
                    Some(Pick::free(table.at(self.number(context, op, table))))
                }
                FilePick::New | FilePick::Random | FilePick::Once => table
                    .claim_new()
                    .map(|file| Pick { picked: Picked { file, renamed: false }, hold: Hold::Claimed }),
            }),
            OperationKind::Unlink | OperationKind::Rename => {
                self.existing(context, op, table, Purpose::Claim)
            }
            _ => self.existing(context, op, table, Purpose::Use),
        }
    }

    fn existing(
        &mut self,
        context: &WorkerContext<'_>,
        op: &Operation,
        table: &FileTable,
        purpose: Purpose,
    ) -> Result<Option<Pick>, Busy> {
        let hold = match purpose {
            Purpose::Use => Hold::Used,
            Purpose::Claim => Hold::Claimed,
        };
        let found = match op.pick {
            FilePick::Next => {
                let (share, turn) = self.share(context, table);
                match table.take(share.file(turn), purpose) {
                    Some(picked) => Found::File(picked),
                    None => table.first((turn..turn + share.length).map(|turn| share.file(turn)), purpose),
                }
            }
            FilePick::Once => table.once(purpose).map_or(Found::Nothing, Found::File),
            // The flow says which: there is nothing to choose, and it may be its own.
            FilePick::Own => return Ok(Some(named(self.number(context, op, table), table, purpose))),
            FilePick::Same if self.last.is_some_and(|(fileset, _)| fileset == op.fileset) => {
                return Ok(Some(named(self.number(context, op, table), table, purpose)));
            }
            FilePick::Random | FilePick::New | FilePick::Same => table.random(&mut self.random, purpose),
        };
        match found {
            Found::File(picked) => Ok(Some(Pick { picked, hold })),
            Found::Nothing => Ok(None),
            Found::Busy => Err(Busy),
        }
    }

    /// The number that `own`, `next` and `same` stand for.
    fn number(&mut self, context: &WorkerContext<'_>, op: &Operation, table: &FileTable) -> u64 {
        match (op.pick, self.last) {
            (FilePick::Same, Some((fileset, picked))) if fileset == op.fileset => picked.file,
            (FilePick::Next, _) => {
                let (share, turn) = self.share(context, table);
                share.file(turn)
            }
            _ => u64::from(context.worker) % table.files(),
        }
    }

    /// This worker's share of a fileset, and whose turn it is in it.
    fn share(&mut self, context: &WorkerContext<'_>, table: &FileTable) -> (Share, u64) {
        let (client, clients) = if table.is_shared() { (context.client, context.clients) } else { (0, 1) };
        let workers = u64::from(context.workers);
        let (first, step) =
            (u64::from(client) * workers + u64::from(context.worker), u64::from(clients) * workers);
        let files = table.files();
        let share =
            Share { first: first % files, step, length: files.saturating_sub(first).div_ceil(step).max(1) };
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
