//! NFS version 2 (RFC 1094), with MOUNT and the lock manager: READ and WRITE of at most 8 KiB, sizes and offsets of
//! 32 bits (`EFBIG` beyond them), every WRITE stable, times of a microsecond.

use std::rc::Rc;

use benchmaster_nfs_proto::mount::VERSION_1 as MOUNT_VERSION;
use benchmaster_nfs_proto::nlm::v1::VERSION as NLM_VERSION;
use benchmaster_nfs_proto::v2::{
    Fhandle, MAX_DATA, MAX_NAME, Nfsstat2, PROGRAM, Proc2, StatfsOk, StatfsRes, VERSION,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, XdrError};

use crate::counters::Counters;
use crate::error::NfsError;
use crate::nlm::Holder;
use crate::ops::{self, Op};
use crate::protocol::NfsResult;
use crate::reactor::Reactor;
use crate::rpc::Call;
use crate::stateless::{Export, Versions};
use crate::types::{Handle, Limits, LockKind, Range};
use crate::v3::{Connect, ConnectError};

mod convert;
mod directory;
mod operations;

pub use crate::stateless::File;

/// A mounted export. The operations are those of [`Protocol`](crate::protocol::Protocol).
///
/// The version has no exclusive CREATE: the name is looked up before, so that two clients that create a file at the
/// same time may both succeed. A request that is sent again has the same transaction number, so that the server's
/// cache of replies answers it; a server that restarted has lost the cache and may say that a name that it made
/// exists already, or that one that it removed does not: the version has nothing to tell that from the truth, and the
/// error is returned.
#[derive(Debug)]
pub struct Client {
    export: Export,
    limits: Limits,
    uid: u32,
    gid: u32,
    gids: Vec<u32>,
}

impl Client {
    /// Mounts an export: MNT and STATFS.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn connect(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        connect: &Connect,
    ) -> Result<Self, ConnectError> {
        let versions = Versions { nfs: VERSION, mount: MOUNT_VERSION, nlm: NLM_VERSION };
        let export = Export::mount(reactor, counters, connect, versions).await?;
        let mut client = Self {
            export,
            limits: Limits { max_read: 0, max_write: 0, time_delta_ns: 1000, lease_seconds: 0 },
            uid: connect.uid,
            gid: connect.gid,
            gids: connect.gids.clone(),
        };
        match client.statfs().await {
            Ok(StatfsOk { tsize, .. }) => {
                client.limits.max_read = connect.size(connect.read_size, tsize, MAX_DATA);
                client.limits.max_write = connect.size(connect.write_size, tsize, MAX_DATA);
                Ok(client)
            }
            Err(error) => {
                client.export.end().await;
                Err(error.into())
            }
        }
    }

    async fn statfs(&self) -> NfsResult<StatfsOk> {
        let root = fhandle(self.export.root())?;
        self.call(Proc2::STATFS, &root, |d| Ok(d.get::<StatfsRes>()?.ok())).await
    }

    /// A file is closed, by which its owner gives up its locks.
    pub(crate) async fn unlock_closed(&self, file: &File, owner: u64) -> NfsResult<()> {
        self.export.close(file, owner).await
    }

    /// The holder of a conflicting lock (NLM TEST), if there is one.
    ///
    /// # Errors
    /// Those of the lock manager, and of reaching it.
    pub async fn test_lock(
        &self,
        file: &File,
        owner: u64,
        kind: LockKind,
        range: Range,
    ) -> NfsResult<Option<Holder>> {
        self.export.test_lock(file, owner, kind, range).await
    }

    /// Calls a procedure. `decode` gives the result or the status.
    async fn call<R>(
        &self,
        procedure: Proc2,
        args: &impl Encode,
        decode: impl Fn(&mut Decoder<'_>) -> Result<Result<R, Nfsstat2>, XdrError>,
    ) -> NfsResult<R> {
        let answer = self.export.rpc().call(call_of(procedure), |e, _| e.put(args), decode).await?;
        answer.map_err(|status| self.refused(procedure, status))
    }

    fn refused(&self, procedure: Proc2, status: Nfsstat2) -> NfsError {
        self.export.counters().error(op(procedure));
        NfsError::V2(status)
    }
}

/// What a procedure is counted under: they have the order of their numbers.
fn op(procedure: Proc2) -> Op {
    Op(ops::v2::NULL.0 + procedure.0 as u16)
}

fn call_of<'c>(procedure: Proc2) -> Call<'c> {
    Call::new(op(procedure), PROGRAM, VERSION, procedure.0)
}

fn fhandle(handle: &Handle) -> NfsResult<Fhandle> {
    let bytes = handle.bytes().try_into();
    bytes.map_err(|_| NfsError::Unsupported("filehandles of NFSv2 have 32 bytes"))
}

fn handle_of(fhandle: &Fhandle) -> NfsResult<Handle> {
    Handle::new(fhandle).ok_or(NfsError::Nonsense("a filehandle of 32 bytes that has more"))
}

/// A name that the version can say.
fn named(name: &[u8]) -> NfsResult<&[u8]> {
    if name.len() > MAX_NAME as usize { Err(NfsError::NameTooLong) } else { Ok(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_are_counted_under_their_names() {
        for procedure in Proc2::ALL {
            assert_eq!(Some(op(*procedure).name()), procedure.name());
            assert_eq!(op(*procedure).program(), "NFSv2");
        }
    }
}
