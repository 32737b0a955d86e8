//! NFS version 3 (RFC 1813), with MOUNT and the lock manager.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use benchmaster_nfs_proto::mount::VERSION_3 as MOUNT_VERSION;
use benchmaster_nfs_proto::nlm::v4::VERSION as NLM_VERSION;
use benchmaster_nfs_proto::v3::{
    Createverf3, Fh3, FsArgs, FsinfoOk, FsinfoRes, Nfsstat3, PROGRAM, PathconfArgs, PathconfRes, Proc3,
    VERSION,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, XdrError};

use crate::counters::{Counters, Event};
use crate::delay::{Delay, DelayPolicy};
use crate::error::NfsError;
use crate::nlm::Holder;
use crate::ops::{self, Op};
use crate::protocol::NfsResult;
use crate::reactor::Reactor;
use crate::rpc::{Call, History};
use crate::stateless::{Export, Versions};
use crate::types::{Handle, Limits, LockKind, Range, Time};

pub(crate) mod convert;
pub(crate) mod directory;
mod operations;
mod replay;

use self::replay::Seen;

pub use crate::connect::Connect;
pub use crate::portmap::ConnectError;
pub use crate::stateless::File;

/// A mounted export. The operations are those of [`Protocol`](crate::protocol::Protocol).
///
/// Requests whose reply does not come are sent again with the same transaction number, so that the server's cache of
/// replies answers them. `NFS3ERR_JUKEBOX` is waited for. Operations that a server restarted after are not repeated
/// blindly: exclusive CREATE has a verifier; what MKDIR, SYMLINK, LINK and RENAME did is looked at; of REMOVE and
/// RMDIR it is said that it is unknown.
#[derive(Debug)]
pub struct Client {
    export: Export,
    limits: Limits,
    /// Size of READDIR's results.
    directory_size: u32,
    delay: DelayPolicy,
    uid: u32,
    /// Whether the server is known to lack READDIRPLUS.
    plus: Cell<bool>,
    /// Whether it is known to lack exclusive CREATE.
    exclusive: Cell<bool>,
    verifier: Cell<u64>,
    seen: RefCell<Option<Box<Seen>>>,
    /// The latest time at which the server changed something, as far as its answers showed.
    latest: Cell<Time>,
}

impl Client {
    /// Mounts an export: MNT, FSINFO and PATHCONF.
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
        // Verifiers of exclusive CREATE: no other client, nor this one after a restart, may have the same.
        let verifier = reactor.random();
        let mut client = Self {
            export,
            limits: Limits { max_read: 0, max_write: 0, time_delta_ns: 0, lease_seconds: 0 },
            directory_size: 0,
            delay: connect.delay,
            uid: connect.uid,
            plus: Cell::new(true),
            exclusive: Cell::new(true),
            verifier: Cell::new(verifier),
            seen: RefCell::new(None),
            latest: Cell::default(),
        };
        match client.learn(connect).await {
            Ok(()) => Ok(client),
            Err(error) => {
                client.export.end().await;
                Err(error.into())
            }
        }
    }

    /// Asks for the limits of the file system, as Linux does.
    async fn learn(&mut self, connect: &Connect) -> NfsResult<()> {
        let info = self.fsinfo().await?;
        self.pathconf().await?;
        if info.rtmax == 0 || info.wtmax == 0 {
            return Err(NfsError::Nonsense("FSINFO: a largest READ or WRITE of 0 bytes"));
        }
        self.limits = Limits {
            max_read: connect.size(connect.read_size, info.rtpref, info.rtmax),
            max_write: connect.size(connect.write_size, info.wtpref, info.wtmax),
            time_delta_ns: u64::from(info.time_delta.seconds) * 1_000_000_000
                + u64::from(info.time_delta.nseconds),
            lease_seconds: 0,
        };
        self.directory_size = info.dtpref.clamp(4 << 10, 32 << 10);
        Ok(())
    }

    async fn fsinfo(&self) -> NfsResult<FsinfoOk> {
        let args = FsArgs { fsroot: fh(self.export.root()) };
        self.call(Proc3::FSINFO, &args, |d| Ok(d.get::<FsinfoRes>()?.ok())).await
    }

    async fn pathconf(&self) -> NfsResult<()> {
        let args = PathconfArgs { object: fh(self.export.root()) };
        self.call(Proc3::PATHCONF, &args, |d| Ok(d.get::<PathconfRes>()?.ok().map(|_| ()))).await
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

    fn next_verifier(&self) -> Createverf3 {
        let verifier = self.verifier.get().wrapping_add(1);
        self.verifier.set(verifier);
        verifier.to_be_bytes()
    }

    /// Calls a procedure, again and again while the server asks for patience. `decode` gives the result or the status.
    async fn call<R>(
        &self,
        procedure: Proc3,
        args: &impl Encode,
        decode: impl Fn(&mut Decoder<'_>) -> Result<Result<R, Nfsstat3>, XdrError>,
    ) -> NfsResult<R> {
        self.call_noting(&History::default(), procedure, args, decode).await
    }

    /// [`Self::call`], noting what becomes of the requests.
    async fn call_noting<R>(
        &self,
        history: &History,
        procedure: Proc3,
        args: &impl Encode,
        decode: impl Fn(&mut Decoder<'_>) -> Result<Result<R, Nfsstat3>, XdrError>,
    ) -> NfsResult<R> {
        let mut delay = Delay::new(self.delay);
        loop {
            let call = call_of(procedure).history(history);
            match self.export.rpc().call(call, |e, _| e.put(args), &decode).await? {
                Ok(result) => return Ok(result),
                Err(status) => self.refused(procedure, status, &mut delay).await?,
            }
        }
    }

    /// The server said no: returns when the call is to be made again.
    async fn refused(&self, procedure: Proc3, status: Nfsstat3, delay: &mut Delay) -> NfsResult<()> {
        self.export.counters().error(op(procedure));
        match status {
            Nfsstat3::JUKEBOX => {
                delay.pause(self.export.rpc().reactor(), self.export.counters(), Event::Delay).await
            }
            status => Err(NfsError::V3(status)),
        }
    }
}

/// What a procedure is counted under: they have the order of their numbers.
fn op(procedure: Proc3) -> Op {
    Op(ops::v3::NULL.0 + procedure.0 as u16)
}

fn call_of<'c>(procedure: Proc3) -> Call<'c> {
    Call::new(op(procedure), PROGRAM, VERSION, procedure.0)
}

fn fh(handle: &Handle) -> Fh3<'_> {
    handle.bytes().into()
}

fn handle_of(fh: Fh3<'_>) -> NfsResult<Handle> {
    let handle = Handle::new(fh.0).filter(|handle| !handle.bytes().is_empty());
    handle.ok_or(NfsError::Nonsense("an empty filehandle"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_are_counted_under_their_names() {
        for procedure in Proc3::ALL {
            assert_eq!(Some(op(*procedure).name()), procedure.name());
            assert_eq!(op(*procedure).program(), "NFSv3");
        }
    }
}
