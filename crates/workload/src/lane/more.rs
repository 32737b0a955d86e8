//! The rarer operations by name: attributes, links, extended attributes, copies.

use super::{Lane, WorkerContext};
use crate::engine::Files;
use crate::files::{FileTable, Picked};
use crate::model::{Beside, OperationKind};
use crate::operation_error::OperationError;
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

    /// An operation on the file whose name is in `path`, and perhaps on the one in `other`.
    pub(super) async fn more_by_name<F>(&self, files: &F, op: &Operation) -> Result<(), OperationError>
    where
        F: Files<Handle = H>,
    {
        let (path, other) = (&self.path, &self.other);
        match op.kind {
            OperationKind::Chmod => files.chmod(path, MODE).await,
            OperationKind::Utimes => files.utimes(path).await,
            OperationKind::Access => files.access(path).await,
            OperationKind::Symlink => {
                // They are in the same directory.
                let name = path.bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                files.symlink(name, other).await
            }
            OperationKind::Readlink => files.readlink(other).await,
            OperationKind::Link => files.link(path, other).await,
            OperationKind::Copy => files.copy(path, other).await,
            OperationKind::Setxattr => {
                let value = self.buffer.get(..op.length as usize).unwrap_or_default();
                files.set_xattr(path, value).await
            }
            OperationKind::Getxattr => files.get_xattr(path).await.map(drop),
            OperationKind::Listxattr => files.list_xattrs(path).await.map(drop),
            OperationKind::Removexattr => files.remove_xattr(path).await,
            OperationKind::ReaddirStat => files.readdir_stat(path).await.map(drop),
            // Not by name: they are done elsewhere.
            _ => Err(OperationError::Os(libc::EINVAL)),
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
