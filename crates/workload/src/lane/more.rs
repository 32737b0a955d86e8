//! What operations by name work on.

use super::{Lane, WorkerContext};
use crate::engine::Names;
use crate::files::{FileTable, Picked};
use crate::model::{Beside, OperationKind};
use crate::program::Operation;

/// What `chmod` sets: what files have when they are made.
const MODE: u32 = 0o644;

impl<H> Lane<H> {
    /// Names what an operation makes, or looks at, beside the picked file.
    pub(super) fn name_beside(&mut self, op: &Operation, table: &FileTable, picked: Picked) {
        let beside = match op.kind {
            OperationKind::Symlink | OperationKind::Readlink => Beside::Symlink,
            OperationKind::Link => Beside::Link,
            OperationKind::Copy => Beside::Copy,
            _ => return,
        };
        table.file_path(picked, &mut self.other);
        self.other.push(beside.suffix().as_bytes());
    }

    /// What an operation by name works on: the file whose name is in `path`, and perhaps the one in `other`.
    pub(super) fn names(&self, op: &Operation) -> Names<'_> {
        let names = Names { mode: MODE, ..Names::new(&self.path, &self.other) };
        match op.kind {
            OperationKind::Symlink => {
                // They are in the same directory.
                let name = self.path.bytes().rsplit(|byte| *byte == b'/').next();
                Names { path: &self.other, content: name.unwrap_or_default(), ..names }
            }
            OperationKind::Readlink => Names { path: &self.other, ..names },
            OperationKind::Setxattr => {
                Names { content: self.buffer.get(..op.length as usize).unwrap_or_default(), ..names }
            }
            _ => names,
        }
    }

    /// The open file has this size now.
    pub(super) fn cut(&mut self, context: &WorkerContext<'_>, slot: usize, size: u64) {
        let Some(open) = &mut self.handles[slot] else { return };
        context.tables[usize::from(open.fileset)].set_length(open.file, size);
        if open.grows {
            (open.size, open.end, open.places) = (size, size, (0, 0));
        }
    }
}
