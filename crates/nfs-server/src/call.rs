//! An RPC call as the modules of the programs get it: `v2`, `v3`, `v4`, `mount`, `nlm` and `portmap` each have one
//! function `serve(&mut Call)`.

use std::sync::Arc;

use benchmaster_nfs_proto::xdr::{Decode, Decoder, XdrError};
use benchmaster_rpc_gss::Flavor;

use crate::cred::Credentials;
use crate::disk::{Access, Job};
use crate::handle::FileId;
use crate::moment::Moment;
use crate::peer::Peer;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::state::Effects;
use crate::state::session::Session;
use crate::stats::ClientIndex;

/// A call whose header is checked: program and version are served here, the credential is accepted.
#[derive(Debug)]
pub(crate) struct Call<'r> {
    pub(crate) server: &'r Shared,
    /// Where the call comes from.
    pub(crate) peer: &'r Peer,
    pub(crate) who: &'r Credentials,
    /// The client's number in rules and statistics.
    pub(crate) client: ClientIndex,
    /// Version of the program.
    pub(crate) version: u32,
    pub(crate) procedure: u32,
    /// Length in bytes of the RPC header, which precedes the arguments.
    pub(crate) header_len: usize,
    pub(crate) args: Decoder<'r>,
    /// Session of the connection's last request.
    pub(crate) session: &'r mut Option<Arc<Session>>,
    pub(crate) now: Moment,
    /// Where the results go; the header of a successful reply is already there.
    pub(crate) reply: &'r mut Reply,
    /// To be carried out when the call is done.
    pub(crate) effects: &'r mut Effects,
    /// What protects the call.
    pub(crate) flavor: Flavor,
    /// Bytes by which protection makes the reply longer.
    pub(crate) overhead: usize,
    /// Set when an export may not be used by calls of that flavour: the call is refused.
    pub(crate) too_weak: bool,
    /// NFS only: do not execute the procedure, this is its status.
    pub(crate) injected: Option<u32>,
    /// Whether the call may be put aside for a moment and executed again.
    pub(crate) may_wait: bool,
    /// Objects of a call of NFSv3, as far as their handles were good: a failure tells their attributes, too (RFC 1813
    /// §3.1: as much as possible).
    pub(crate) objects: [Option<FileId>; 2],
    /// What the disk has to do before the reply may leave.
    pub(crate) disk: Option<Job>,
}

/// Why there are no results. Whatever was appended to the reply is to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No such procedure in this version.
    ProcUnavail,
    /// The arguments do not decode.
    GarbageArgs,
    /// The export wants a stronger security flavour.
    TooWeak,
    /// Nothing is sent: the client will ask again (NFS version 2 has no JUKEBOX).
    NoReply,
}

/// The procedure's status (0: success), for the statistics.
pub(crate) type Served = Result<u32, Refusal>;

impl From<XdrError> for Refusal {
    fn from(_: XdrError) -> Self {
        Self::GarbageArgs
    }
}

impl<'r> Call<'r> {
    pub(crate) fn args<T: Decode<'r>>(&mut self) -> Result<T, Refusal> {
        Ok(self.args.get()?)
    }

    /// What the disk does for the call, if there is one.
    #[inline]
    pub(crate) fn on_disk(&mut self, access: impl FnOnce() -> Access) {
        if let Some(disk) = &self.server.disk {
            self.disk = disk.access(self.now.instant, self.disk, access());
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Calls without sockets: encoded arguments in, encoded results out.

    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Instant;

    use std::fs;
    use std::io::Write as _;
    use std::path::Path;

    use benchmaster_nfs_proto::record;
    use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthSys, CallHeader, OpaqueAuth, RPC_VERSION};
    use benchmaster_nfs_proto::xdr::{Decode, Decoder, Encode, Encoder, List};
    use benchmaster_rpc_gss::Flavor;

    use super::{Call, Refusal, Served};
    use crate::cred::Credentials;
    use crate::fs::Time;
    use crate::moment::Moment;
    use crate::outbox::Outbox;
    use crate::peer::Peer;
    use crate::reply::Reply;
    use crate::shared::Shared;
    use crate::state::{ConnectionId, Effects};
    use crate::stats::ClientIndex;

    /// A program's number and its function.
    pub(crate) type Program = (u32, fn(&mut Call<'_>) -> Served);

    /// Appends a call to the recorded traffic of this test, as a record, when asked to:
    /// `UPDATE_CORPUS=1 cargo test -p benchmaster-nfs-server`. What the fuzz target of the dispatcher mutates.
    pub(crate) fn keep((program, version, procedure): (u32, u32, u32), uid: u32, args: &[u8]) {
        /// Longest file of traffic: mutating much data tells no more than mutating little.
        const LONGEST: u64 = 16 << 10;
        let thread = std::thread::current();
        let (Some(name), Some(_)) = (thread.name(), std::env::var_os("UPDATE_CORPUS")) else { return };
        let mut body = Encoder::new();
        let gids = List::Items(&[]);
        body.put(&AuthSys { stamp: 0, machine_name: "client".into(), uid, gid: uid, gids });
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: body.buffer().into() };
        let (rpc_version, verf) = (RPC_VERSION, OpaqueAuth::NONE);
        let mut e = Encoder::new();
        let mark = record::begin(&mut e);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/dispatch");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name.replace("::", "-"));
        let len = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        // The place in the file makes calls differ that are otherwise the same.
        let xid = len as u32 + 1;
        e.put(&CallHeader { xid, rpc_version, program, version, procedure, cred, verf });
        e.raw(args);
        record::end(&mut e, mark);
        if len + e.len() as u64 <= LONGEST {
            fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap()
                .write_all(e.buffer())
                .unwrap();
        }
    }

    /// A client of one user.
    pub(crate) struct Caller<'s> {
        pub(crate) server: &'s Shared,
        pub(crate) peer: Peer,
        pub(crate) who: Credentials,
        pub(crate) now: Moment,
        pub(crate) effects: Effects,
        pub(crate) injected: Option<u32>,
    }

    impl<'s> Caller<'s> {
        pub(crate) fn new(server: &'s Shared, uid: u32) -> Self {
            Self {
                server,
                peer: Peer {
                    connection: ConnectionId(1),
                    address: SocketAddr::from(([127, 0, 0, 1], 700)),
                    local: server.address,
                    outbox: Some(Arc::new(Outbox::default())),
                    protection: Default::default(),
                },
                who: Credentials { uid, gid: uid, ..Credentials::root() },
                now: Moment { instant: Instant::now(), wall: Time { seconds: 1_700_000_001, nanos: 0 } },
                effects: Effects::new(),
                injected: None,
            }
        }

        /// Calls a procedure with arguments as bytes. Time passes.
        pub(crate) fn raw(
            &mut self,
            (program, serve): Program,
            (version, procedure): (u32, u32),
            args: &[u8],
        ) -> (Served, Vec<u8>) {
            keep((program, version, procedure), self.who.uid, args);
            self.now.wall.nanos += 1;
            let mut reply = Reply::new();
            let mark = reply.mark();
            let served = serve(&mut Call {
                server: self.server,
                peer: &self.peer,
                who: &self.who,
                client: ClientIndex(1),
                version,
                procedure,
                header_len: 40,
                args: Decoder::new(args),
                session: &mut None,
                now: self.now,
                reply: &mut reply,
                effects: &mut self.effects,
                injected: self.injected,
                flavor: Flavor::Sys,
                overhead: 0,
                too_weak: false,
                may_wait: false,
                objects: [None; 2],
                disk: None,
            });
            (served, reply.copy_since(mark))
        }

        /// Calls a procedure that is not refused.
        pub(crate) fn call(
            &mut self,
            program: Program,
            procedure: (u32, u32),
            args: &impl Encode,
        ) -> Vec<u8> {
            let mut e = Encoder::new();
            e.put(args);
            let (served, results) = self.raw(program, procedure, e.buffer());
            assert!(served.is_ok(), "{served:?}");
            results
        }

        /// Calls a procedure that is refused.
        pub(crate) fn refused(&mut self, program: Program, procedure: (u32, u32), args: &[u8]) -> Refusal {
            self.raw(program, procedure, args).0.unwrap_err()
        }
    }

    /// Decodes results, all of them.
    pub(crate) fn decode<'a, T: Decode<'a>>(results: &'a [u8]) -> T {
        let mut d = Decoder::new(results);
        let value = d.get().unwrap();
        assert!(d.rest().is_empty(), "{} bytes after the result", d.rest().len());
        value
    }
}
