//! A client for tests: encodes compounds, hands them to [`super::serve`], decodes results. No sockets, no clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v4::{
    Argop, Bitmap4, ChannelAttrs4, ClientOwner4, CompoundHeader, CompoundRes, CreateSessionArgs,
    ExchangeIdArgs, Fattr4, NFS_PROGRAM, NFS_V4, Nfsstat4, PROC_COMPOUND, PutfhArgs, ReclaimCompleteArgs,
    Resop, SequenceArgs, Sessionid4, StateProtect4A,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, Encoder, Opaque};

use super::{Done, REPLY_HEADER, serve};
use crate::call::testing::keep;
use crate::call::{Call, Refusal};
use crate::config::ServerConfig;
use crate::cred::Credentials;
use crate::exports::Exports;
use crate::fs::Time;
use crate::handle::{self, FileId};
use crate::moment::Moment;
use crate::outbox::Outbox;
use crate::peer::Peer;
use crate::reply::Reply;
use crate::shared::{Identity, Shared};
use crate::state::open::Share;
use crate::state::{ClientId, ConnectionId, Effects};
use crate::stats::ClientIndex;

/// What all test servers call themselves.
const INSTANCE: u32 = 77;
const BOOT: u64 = 0x1122_3344_5566_7788;

/// A server without sockets.
pub(crate) fn server(config: ServerConfig) -> Shared {
    let now = Time { seconds: 1_700_000_000, nanos: 5 };
    let exports = Exports::new(&config, now).unwrap();
    let identity = Identity { instance: INSTANCE, boot: BOOT, known: Vec::new(), wal: None };
    let address = config.listen;
    Shared::new(config, exports, identity, address, None, Instant::now()).unwrap()
}

/// A client: one connection, one user, perhaps one session, of which it uses slot 0.
pub(crate) struct Client<'s> {
    pub(crate) server: &'s Shared,
    pub(crate) peer: Peer,
    pub(crate) who: Credentials,
    /// Minor version of its compounds.
    pub(crate) minor: u32,
    /// The time of its next request: does not run by itself.
    pub(crate) now: Moment,
    /// Its session, and the sequence number of its last request on slot 0.
    pub(crate) session: Option<(Sessionid4, u32)>,
    /// Whether requests ask for their replies to be kept.
    pub(crate) cache_this: bool,
    /// Client id of the session.
    pub(crate) clientid: u64,
    /// What its requests asked to be done outside; emptied by whoever looks.
    pub(crate) effects: Effects,
    /// What the last request was besides its results.
    pub(crate) done: Done,
}

impl<'s> Client<'s> {
    /// A client of user 0, without a session. `number` tells it from others.
    pub(crate) fn new(server: &'s Shared, minor: u32, number: u16) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], 700 + number));
        Self {
            server,
            peer: Peer {
                connection: ConnectionId(u64::from(number)),
                address,
                local: server.address,
                outbox: Some(Arc::new(Outbox::default())),
                protection: Default::default(),
            },
            who: Credentials::root(),
            minor,
            now: Moment { instant: Instant::now(), wall: Time { seconds: 1_700_000_001, nanos: 0 } },
            session: None,
            cache_this: false,
            clientid: 0,
            effects: Effects::new(),
            done: Done::default(),
        }
    }

    /// A client with a session of generous size that has completed reclaiming.
    pub(crate) fn with_session(server: &'s Shared, minor: u32, number: u16) -> Self {
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 2 << 20,
            maxresponsesize: 2 << 20,
            maxresponsesize_cached: 64 << 10,
            maxoperations: 64,
            maxrequests: 16,
            rdma_ird: None,
        };
        let mut client = Self::new(server, minor, number);
        client.create_session(number, channel);
        let done = client.run(&[Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false })]);
        // A client that is made anew with the same number is the same to the server.
        assert!(matches!(done.status(), Nfsstat4::OK | Nfsstat4::COMPLETE_ALREADY));
        client
    }

    /// EXCHANGE_ID and CREATE_SESSION.
    pub(crate) fn create_session(&mut self, number: u16, fore: ChannelAttrs4) {
        let owner = format!("client {number}");
        let exchanged = self.plain(&[Argop::ExchangeId(ExchangeIdArgs {
            clientowner: ClientOwner4 { verifier: [1; 8], ownerid: owner.as_bytes().into() },
            flags: 0,
            state_protect: StateProtect4A::None,
            client_impl_id: None,
        })]);
        let Resop::ExchangeId(Ok(id)) = exchanged.last() else { panic!("{exchanged:?}") };
        let back = ChannelAttrs4 { maxrequestsize: 4096, maxresponsesize: 4096, maxoperations: 8, ..fore };
        let created = self.plain(&[Argop::CreateSession(CreateSessionArgs {
            clientid: id.clientid,
            sequence: id.sequenceid,
            flags: 2,
            fore_chan_attrs: fore,
            back_chan_attrs: back,
            cb_program: 0x4000_0000,
            sec_parms: Default::default(),
        })]);
        let Resop::CreateSession(Ok(session)) = created.last() else { panic!("{created:?}") };
        self.session = Some((session.sessionid, 0));
        self.clientid = id.clientid;
    }

    /// Lets time pass for this client.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.now.instant += time;
        self.now.wall.seconds += time.as_secs() as i64;
    }

    /// The SEQUENCE of the next request (slot 0).
    pub(crate) fn sequence(&mut self) -> Argop<'static> {
        let (sessionid, last) = self.session.as_mut().expect("a session");
        *last = last.wrapping_add(1);
        Argop::Sequence(SequenceArgs {
            sessionid: *sessionid,
            sequenceid: *last,
            slotid: 0,
            highest_slotid: 0,
            cachethis: self.cache_this,
        })
    }

    /// Executes a compound, after a SEQUENCE where there is a session; the result of SEQUENCE is left out where it
    /// succeeded.
    pub(crate) fn run(&mut self, ops: &[Argop<'_>]) -> Results {
        if self.session.is_none() {
            return self.plain(ops);
        }
        let all: Vec<_> = std::iter::once(self.sequence()).chain(ops.iter().copied()).collect();
        let mut results = self.plain(&all);
        results.skip = usize::from(matches!(results.all().first(), Some(Resop::Sequence(Ok(_)))));
        results
    }

    /// As [`Client::run`], on the file at `path` below the root (`/a/b`).
    pub(crate) fn run_at(&mut self, path: &str, ops: &[Argop<'_>]) -> Results {
        let handle = self.handle(path);
        let put = Argop::Putfh(PutfhArgs { object: handle[..].into() });
        let all: Vec<_> = std::iter::once(put).chain(ops.iter().copied()).collect();
        self.run(&all)
    }

    /// Executes a compound exactly as given.
    pub(crate) fn plain(&mut self, ops: &[Argop<'_>]) -> Results {
        let mut e = Encoder::new();
        let tag = Opaque(b"test");
        e.put(&CompoundHeader { tag, minorversion: self.minor, count: ops.len() as u32 });
        ops.iter().for_each(|op| e.put(op));
        self.raw(e.buffer())
    }

    /// Executes encoded arguments of COMPOUND.
    pub(crate) fn raw(&mut self, args: &[u8]) -> Results {
        keep((NFS_PROGRAM, NFS_V4, PROC_COMPOUND), self.who.uid, args);
        let mut reply = Reply::new();
        // Another reply of the same receive, and the header of this one.
        reply.encoder.raw(&[0xee; 100 + REPLY_HEADER]);
        let start = reply.mark();
        let called = self.call(PROC_COMPOUND, args, &mut reply);
        self.done = called.unwrap_or_else(|refusal| panic!("{refusal:?}"));
        let bytes = reply.copy_since(start);
        assert_eq!(bytes.len(), reply.encoder.len_since(start));
        Results { bytes, skip: 0 }
    }

    /// Executes a call: its results are appended to `reply`.
    pub(crate) fn call(&mut self, procedure: u32, args: &[u8], reply: &mut Reply) -> Result<Done, Refusal> {
        serve(&mut Call {
            flavor: benchmaster_rpc_gss::Flavor::Sys,
            overhead: 0,
            too_weak: false,
            server: self.server,
            peer: &self.peer,
            who: &self.who,
            client: ClientIndex(1),
            version: NFS_V4,
            procedure,
            // With a credential of 20 bytes.
            header_len: 60,
            args: Decoder::new(args),
            session: &mut None,
            now: self.now,
            reply,
            effects: &mut self.effects,
            injected: None,
            may_wait: false,
            objects: [None; 2],
            disk: None,
        })
    }

    /// File handle of the file at `path` (`/a/b`), looked up as user 0 behind the protocol's back.
    pub(crate) fn handle(&self, path: &str) -> [u8; handle::HANDLE_LEN] {
        handle::encode(INSTANCE, self.id(path))
    }

    /// The file at `path`, looked up as user 0 behind the protocol's back.
    pub(crate) fn id(&self, path: &str) -> FileId {
        let found = self.server.exports.walk(&Credentials::root(), path.as_bytes());
        found.unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

/// Opens the root of the exports for a client, behind the protocol's back.
pub(crate) fn open_something(server: &Shared, client: ClientId) {
    let mut part = server.state.write(server.exports.root());
    let files = part.files();
    let owner = files.open_owner(client, b"owner", None);
    files.open(false, owner, server.exports.root(), Share { access: 1, deny: 0 }, 0);
}

/// Results of a compound.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Results {
    /// As encoded.
    pub(crate) bytes: Vec<u8>,
    skip: usize,
}

impl std::fmt::Debug for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}: {:?}", self.status(), self.ops())
    }
}

impl Results {
    /// Status of the compound.
    pub(crate) fn status(&self) -> Nfsstat4 {
        self.header().status
    }

    /// The results, without that of the SEQUENCE that [`Client::run`] added.
    pub(crate) fn ops(&self) -> Vec<Resop<'_>> {
        self.all().split_off(self.skip)
    }

    pub(crate) fn last(&self) -> Resop<'_> {
        self.ops().pop().expect("a result")
    }

    pub(crate) fn all(&self) -> Vec<Resop<'_>> {
        let mut results = self.header().results;
        let mut all = Vec::new();
        while let Some(result) = results.take() {
            all.push(result.expect("a result that decodes"));
        }
        all
    }

    pub(crate) fn tag(&self) -> &[u8] {
        self.header().tag.0
    }

    fn header(&self) -> CompoundRes<'_> {
        Decoder::new(&self.bytes).get().expect("a compound's results")
    }
}

/// A `fattr4` of encoded values, in order of their numbers.
pub(crate) struct Attrs {
    mask: Bitmap4,
    values: Encoder,
}

impl Attrs {
    /// No attribute.
    pub(crate) fn none() -> Self {
        Self { mask: Bitmap4::EMPTY, values: Encoder::new() }
    }

    /// One more attribute, of a higher number.
    pub(crate) fn with(mut self, number: u32, value: &impl Encode) -> Self {
        self.mask.set(number);
        self.values.put(value);
        self
    }

    /// As an argument.
    pub(crate) fn get(&self) -> Fattr4<'_> {
        Fattr4 { attrmask: self.mask, attr_vals: self.values.buffer().into() }
    }
}
