//! NFS version 2 (RFC 1094): all its procedures, within 32 bits.

use benchmaster_nfs_proto::v2::{Nfsstat2, Proc2};
use benchmaster_nfs_proto::xdr::{Decode, Encode};

use crate::call::{Call, Refusal, Served};

mod convert;
mod data;
mod names;
#[cfg(test)]
mod tests;

use convert::Stop;

pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    match Proc2(call.procedure) {
        // The latter two are obsolete and have neither arguments nor results.
        Proc2::NULL | Proc2::ROOT | Proc2::WRITECACHE => Ok(0),
        Proc2::GETATTR => run(call, data::getattr),
        Proc2::SETATTR => run(call, data::setattr),
        Proc2::LOOKUP => run(call, names::lookup),
        Proc2::READLINK => run(call, data::readlink),
        Proc2::READ => run(call, data::read),
        Proc2::WRITE => run(call, data::write),
        Proc2::CREATE => run(call, names::create),
        Proc2::REMOVE => run(call, names::remove),
        Proc2::RENAME => run(call, names::rename),
        Proc2::LINK => run(call, names::link),
        Proc2::SYMLINK => run(call, names::symlink),
        Proc2::MKDIR => run(call, names::mkdir),
        Proc2::RMDIR => run(call, names::rmdir),
        Proc2::READDIR => run(call, names::readdir),
        Proc2::STATFS => run(call, data::statfs),
        _ => Err(Refusal::ProcUnavail),
    }
}

/// Whether a repeated call must be answered from the duplicate request cache.
pub(crate) fn must_not_repeat(procedure: u32) -> bool {
    matches!(
        Proc2(procedure),
        Proc2::SETATTR
            | Proc2::WRITE
            | Proc2::CREATE
            | Proc2::REMOVE
            | Proc2::RENAME
            | Proc2::LINK
            | Proc2::SYMLINK
            | Proc2::MKDIR
            | Proc2::RMDIR
    )
}

/// A procedure writes its whole result with [`Call::ok2`], or stops.
fn run<'r, A: Decode<'r>>(
    call: &mut Call<'r>,
    procedure: impl FnOnce(&mut Call<'r>, A) -> Result<(), Stop>,
) -> Served {
    let args = call.args()?;
    let mark = call.reply.mark();
    let result = match call.injected {
        None => procedure(call, args),
        Some(status) => Err(Stop::Status(Nfsstat2(status))),
    };
    match result {
        Ok(()) => Ok(0),
        Err(Stop::Status(status)) => {
            call.reply.rollback(mark);
            call.reply.encoder.put(&status);
            Ok(status.0)
        }
        Err(Stop::Refused(refusal)) => Err(refusal),
    }
}

impl Call<'_> {
    /// Writes the result of a success.
    fn ok2(&mut self, result: &impl Encode) -> Result<(), Stop> {
        self.reply.encoder.put(&Nfsstat2::OK);
        self.reply.encoder.put(result);
        Ok(())
    }
}
