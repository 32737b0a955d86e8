//! NFS version 3 (RFC 1813): all 22 procedures.

use benchmaster_nfs_proto::v3::{Nfsstat3, PostOpAttr, Proc3, WccData};
use benchmaster_nfs_proto::xdr::{Decode, Encode};

use crate::call::{Call, Refusal, Served};
use crate::disk::Access;
use crate::handle::FileId;
use crate::stateless::StatelessError;

mod attributes;
mod convert;
mod data;
mod listing;
mod names;
#[cfg(test)]
mod tests;

use convert::fattr;

pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    let procedure = Proc3(call.procedure);
    match procedure {
        Proc3::NULL => Ok(0),
        Proc3::GETATTR => run(call, attributes::getattr),
        Proc3::SETATTR => run(call, attributes::setattr),
        Proc3::LOOKUP => run(call, names::lookup),
        Proc3::ACCESS => run(call, attributes::access),
        Proc3::READLINK => run(call, data::readlink),
        Proc3::READ => run(call, data::read),
        Proc3::WRITE => run(call, data::write),
        Proc3::CREATE => run(call, names::create),
        Proc3::MKDIR => run(call, names::mkdir),
        Proc3::SYMLINK => run(call, names::symlink),
        Proc3::MKNOD => run(call, names::mknod),
        Proc3::REMOVE => run(call, names::remove),
        Proc3::RMDIR => run(call, names::rmdir),
        Proc3::RENAME => run(call, names::rename),
        Proc3::LINK => run(call, names::link),
        Proc3::READDIR => run(call, listing::readdir),
        Proc3::READDIRPLUS => run(call, listing::readdirplus),
        Proc3::FSSTAT => run(call, attributes::fsstat),
        Proc3::FSINFO => run(call, attributes::fsinfo),
        Proc3::PATHCONF => run(call, attributes::pathconf),
        Proc3::COMMIT => run(call, data::commit),
        _ => Err(Refusal::ProcUnavail),
    }
}

/// Whether a repeated call must be answered from the duplicate request cache: executed again it would fail, or change
/// what others did meanwhile.
pub(crate) fn must_not_repeat(procedure: u32) -> bool {
    matches!(
        Proc3(procedure),
        Proc3::SETATTR
            | Proc3::WRITE
            | Proc3::CREATE
            | Proc3::MKDIR
            | Proc3::SYMLINK
            | Proc3::MKNOD
            | Proc3::REMOVE
            | Proc3::RMDIR
            | Proc3::RENAME
            | Proc3::LINK
    )
}

/// A procedure writes its whole result with [`Call::ok`], or fails.
fn run<'r, A: Decode<'r>>(
    call: &mut Call<'r>,
    procedure: impl FnOnce(&mut Call<'r>, A) -> Result<(), Nfsstat3>,
) -> Served {
    let args = call.args()?;
    let mark = call.reply.mark();
    let result = match call.injected {
        None => procedure(call, args),
        Some(status) => Err(Nfsstat3(status)),
    };
    if let Err(status) = result {
        call.reply.rollback(mark);
        fail(call, status);
        return Ok(status.0);
    }
    changed(call);
    Ok(0)
}

/// What a change of names or attributes writes to the disk.
fn changed(call: &mut Call<'_>) {
    let [first, second] = call.objects;
    let (file, directory) = match Proc3(call.procedure) {
        Proc3::SETATTR => (first, None),
        Proc3::LINK => (first, second),
        Proc3::CREATE | Proc3::MKDIR | Proc3::SYMLINK | Proc3::MKNOD | Proc3::REMOVE | Proc3::RMDIR => {
            (None, first)
        }
        Proc3::RENAME => {
            if let Some(directory) = second.filter(|_| first != second) {
                call.on_disk(|| Access::Names { directory });
            }
            (None, first)
        }
        _ => return,
    };
    if let Some(file) = file {
        call.on_disk(|| Access::Attributes { file });
    }
    if let Some(directory) = directory {
        call.on_disk(|| Access::Names { directory });
    }
}

/// Writes the result of a failure: status, and attributes in the form of the procedure.
fn fail(call: &mut Call<'_>, status: Nfsstat3) {
    let attributes =
        |id: Option<FileId>| -> PostOpAttr { id.and_then(|id| Some(fattr(id.export, &call.attr(id).ok()?))) };
    let (first, second) = (attributes(call.objects[0]), attributes(call.objects[1]));
    // What was before is not known to have been atomic with what is now.
    let wcc = |after| WccData { before: None, after };
    let e = &mut call.reply.encoder;
    e.put(&status);
    match Proc3(call.procedure) {
        Proc3::GETATTR => {}
        Proc3::RENAME => {
            e.put(&wcc(first));
            e.put(&wcc(second));
        }
        Proc3::LINK => {
            e.put(&first);
            e.put(&wcc(second));
        }
        Proc3::SETATTR
        | Proc3::WRITE
        | Proc3::CREATE
        | Proc3::MKDIR
        | Proc3::SYMLINK
        | Proc3::MKNOD
        | Proc3::REMOVE
        | Proc3::RMDIR
        | Proc3::COMMIT => e.put(&wcc(first)),
        _ => e.put(&first),
    }
}

impl Call<'_> {
    /// Writes the result of a success.
    fn ok(&mut self, result: &impl Encode) -> Result<(), Nfsstat3> {
        self.reply.encoder.put(&Nfsstat3::OK);
        self.reply.encoder.put(result);
        Ok(())
    }

    /// The file of a handle, noted in `object`.
    fn object(&mut self, handle: &[u8]) -> Result<FileId, StatelessError> {
        let id = self.resolve(handle)?;
        let place = usize::from(self.objects[0].is_some());
        self.objects[place] = Some(id);
        Ok(id)
    }
}
