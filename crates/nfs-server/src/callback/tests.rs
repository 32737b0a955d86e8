mod v40;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::rpc::{CallHeader, OpaqueAuth, RpcReply, put_reply};
use benchmaster_nfs_proto::v4::{
    CREATE_SESSION_CONN_BACK_CHAN, CallbackSecParms4, CbArgop, CbCompoundArgs, CbOpnum, CbRecallArgs,
    CbSequenceArgs, CbSequenceOk, ChannelAttrs4, ChannelDirFromClient4, CompoundResHeader, CreateSessionArgs,
    Nfsstat4, SEQ_STATUS_BACKCHANNEL_FAULT, SEQ_STATUS_CB_PATH_DOWN_SESSION, Stateid4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, List};

use super::*;
use crate::config::ServerConfig;
use crate::cred::Credentials;
use crate::handle::{self, FileId};
use crate::state::Effect;
use crate::state::backchannel::{BackConnection, CallSink};
use crate::state::client::{CallbackTarget, CreateSession, ExchangeId, Principal, SetClientId};
use crate::state::session::Session;
use crate::state::shards::All;

const HERE: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const INSTANCE: u32 = 77;
const PROGRAM: u32 = 0x4000_1234;
const FILE: FileId = FileId { export: 0, ino: 5, generation: 1 };
/// A third of it is the time for a reply.
const LEASE: Duration = Duration::from_millis(900);
const PATIENCE: Duration = Duration::from_secs(20);

fn stateid(number: u8) -> Stateid4 {
    Stateid4 { seqid: 1, other: [number; 12] }
}

/// State, and the thread that calls its clients.
struct Server {
    state: Arc<State>,
    callbacks: Arc<Callbacks>,
    thread: Option<JoinHandle<io::Result<()>>>,
    next_connection: AtomicU64,
}

/// The client's end of a connection that carries callbacks.
struct Wire {
    id: ConnectionId,
    sink: Arc<Sink>,
    calls: Receiver<Vec<u8>>,
}

#[derive(Debug)]
struct Sink {
    calls: Mutex<Sender<Vec<u8>>>,
    open: AtomicBool,
}

impl CallSink for Sink {
    fn send(&self, message: Vec<u8>) -> bool {
        self.is_open() && self.calls.lock().send(message).is_ok()
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}

/// A CB_COMPOUND as the client sees it.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    xid: u32,
    program: u32,
    procedure: u32,
    minor: u32,
    ident: u32,
    session: [u8; 16],
    slot: u32,
    sequence: u32,
    /// Referring calls: session, slot, sequence number.
    refers: Vec<([u8; 16], u32, u32)>,
    operation: Option<Operation>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operation {
    Recall(Stateid4, bool),
    NotifyLock(Vec<u8>),
}

fn parse(message: &[u8]) -> Call {
    let mut d = Decoder::new(message);
    let header: CallHeader<'_> = d.get().unwrap();
    let mut call = Call {
        xid: header.xid,
        program: header.program,
        procedure: header.procedure,
        minor: 0,
        ident: 0,
        session: [0; 16],
        slot: 0,
        sequence: 0,
        refers: Vec::new(),
        operation: None,
    };
    assert_eq!((header.rpc_version, header.version), (2, 1));
    if header.procedure == 0 {
        return call;
    }
    let compound: CbCompoundArgs<'_> = d.get().unwrap();
    (call.minor, call.ident) = (compound.minorversion, compound.callback_ident);
    let mut ops = compound.ops;
    while let Some(op) = ops.take::<CbArgop<'_>>() {
        match op.unwrap() {
            CbArgop::Sequence(CbSequenceArgs {
                sessionid,
                sequenceid,
                slotid,
                cachethis,
                referring_call_lists,
                ..
            }) => {
                assert!(!cachethis);
                (call.session, call.slot, call.sequence) = (sessionid, slotid, sequenceid);
                for list in referring_call_lists.iter() {
                    let refers = list.referring_calls.iter();
                    call.refers.extend(refers.map(|call| (list.sessionid, call.slotid, call.sequenceid)));
                }
            }
            CbArgop::Recall(CbRecallArgs { stateid, truncate, fh }) => {
                assert_eq!(handle::decode(fh.0), Ok((INSTANCE, FILE)));
                call.operation = Some(Operation::Recall(stateid, truncate));
            }
            CbArgop::NotifyLock(args) => {
                assert_eq!(handle::decode(args.fh.0), Ok((INSTANCE, FILE)));
                call.operation = Some(Operation::NotifyLock(args.lock_owner.owner.0.to_vec()));
            }
            other => panic!("{other:?}"),
        }
    }
    call
}

/// A reply: statuses of CB_SEQUENCE (from 4.1 on) and of the operation.
fn reply(call: &Call, sequence: Nfsstat4, operation: Nfsstat4) -> Vec<u8> {
    let mut e = Encoder::new();
    put_reply(&mut e, call.xid, RpcReply::Success(OpaqueAuth::NONE));
    if call.procedure == 0 {
        return e.buffer().to_vec();
    }
    let number = match &call.operation {
        Some(Operation::Recall(..)) => CbOpnum::RECALL,
        _ => CbOpnum::NOTIFY_LOCK,
    };
    let ok = sequence == Nfsstat4::OK;
    let status = if ok { operation } else { sequence };
    let count = u32::from(call.minor > 0) + u32::from(ok);
    e.put(&CompoundResHeader { status, tag: "".into(), count });
    if call.minor > 0 {
        e.put(&CbOpnum::SEQUENCE);
        e.put(&sequence);
        if ok {
            e.put(&CbSequenceOk {
                sessionid: call.session,
                sequenceid: call.sequence,
                slotid: call.slot,
                highest_slotid: 0,
                target_highest_slotid: 0,
            });
        }
    }
    if ok {
        e.put(&number);
        e.put(&operation);
    }
    e.buffer().to_vec()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Server {
    fn new() -> Self {
        Self::with_lease(LEASE)
    }

    fn with_lease(lease: Duration) -> Self {
        // Leases of clients are not at stake here.
        let config = ServerConfig::default();
        let state = Arc::new(State::new(&config, 9, Instant::now(), Vec::new()));
        let callbacks = Arc::new(Callbacks::new(lease).unwrap());
        let thread = std::thread::spawn({
            let (state, callbacks) = (state.clone(), callbacks.clone());
            move || callbacks.run(&state, INSTANCE, |_| {})
        });
        Self { state, callbacks, thread: Some(thread), next_connection: AtomicU64::new(1) }
    }

    fn wire(&self) -> Wire {
        let (sender, calls) = channel();
        let sink = Arc::new(Sink { calls: Mutex::new(sender), open: AtomicBool::new(true) });
        Wire { id: ConnectionId(self.next_connection.fetch_add(1, Ordering::SeqCst)), sink, calls }
    }

    /// Carries out what a change of state asks for.
    fn change<T>(&self, change: impl FnOnce(&mut All<'_>, &mut Effects) -> T) -> T {
        let mut effects = Effects::new();
        let outcome = change(&mut self.state.all(), &mut effects);
        for effect in effects {
            let Effect::Call(client, callback) = effect else { continue };
            self.callbacks.submit(client, callback);
        }
        outcome
    }

    fn client(&self, minor: u32) -> ClientId {
        let args = ExchangeId { verifier: [1; 8], owner: b"client", host: HERE, flags: 0, minor };
        let who = Principal::from(&Credentials::root());
        self.change(|all, effects| {
            let (clients, files) = all.split();
            clients.exchange_id(files, &args, who, Instant::now(), effects).unwrap().client
        })
    }

    fn session(&self, client: ClientId, sequence: u32, minor: u32, slots: u32, wire: &Wire) -> Arc<Session> {
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 4096,
            maxresponsesize: 4096,
            maxresponsesize_cached: 0,
            maxoperations: 2,
            maxrequests: slots,
            rdma_ird: None,
        };
        let args = CreateSessionArgs {
            clientid: client.0,
            sequence,
            flags: CREATE_SESSION_CONN_BACK_CHAN,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: PROGRAM,
            sec_parms: List::Items(&[CallbackSecParms4::None]),
        };
        let back = Some(BackConnection { id: wire.id, outbox: wire.sink.clone() });
        let request = CreateSession { args: &args, minor, connection: wire.id, back };
        let who = Principal::from(&Credentials::root());
        let made = self.change(|all, effects| {
            let (clients, files) = all.split();
            clients.create_session(files, request, who, Instant::now(), effects).unwrap()
        });
        self.state.session(&made.sessionid).unwrap()
    }

    /// A client of 4.1 with a session, its probe answered.
    fn ready(&self, slots: u32) -> (ClientId, Arc<Session>, Wire) {
        let wire = self.wire();
        let client = self.client(1);
        let session = self.session(client, 1, 1, slots, &wire);
        self.answer_probe(&wire);
        (client, session, wire)
    }

    fn answer_probe(&self, wire: &Wire) {
        let probe = wire.next();
        assert_eq!((probe.procedure, probe.program), (0, PROGRAM));
        self.answer(wire, &probe, Nfsstat4::OK, Nfsstat4::OK);
    }

    fn recall(&self, client: ClientId, number: u8) {
        self.callbacks
            .submit(client, Callback::Recall { stateid: stateid(number), file: FILE, truncate: true });
    }

    fn answer(&self, wire: &Wire, call: &Call, sequence: Nfsstat4, operation: Nfsstat4) {
        self.callbacks.reply(wire.id, &reply(call, sequence, operation));
    }

    fn up(&self, client: ClientId) -> bool {
        self.state.clients().clients().callback_up(client)
    }

    fn client40(&self, address: Option<SocketAddr>, ident: u32) -> ClientId {
        let callback =
            CallbackTarget { program: PROGRAM, ident, netid: Vec::new(), universal: Vec::new(), address };
        let args = SetClientId { verifier: [1; 8], owner: b"old", host: HERE, callback };
        let who = Principal::from(&Credentials::root());
        self.change(|all, effects| {
            let (clients, files) = all.split();
            let now = Instant::now();
            let (id, confirm) = clients.setclientid(files, args, who, now, effects).unwrap();
            clients.setclientid_confirm(files, id, confirm, who, now, effects).unwrap();
            id
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.callbacks.stop();
        let outcome = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            outcome.unwrap().unwrap();
        }
    }
}

impl Wire {
    fn next(&self) -> Call {
        parse(&self.calls.recv_timeout(PATIENCE).expect("a callback"))
    }

    fn quiet(&self) {
        assert!(self.calls.recv_timeout(Duration::from_millis(50)).is_err(), "no callback expected");
    }

    fn close(&self) {
        self.sink.open.store(false, Ordering::SeqCst);
    }
}

#[test]
fn a_new_session_is_probed_and_one_without_the_program_is_down() {
    let server = Server::new();
    let (client, _, wire) = server.ready(1);
    assert!(server.up(client));
    server.callbacks.submit(client, Callback::Probe);
    let probe = wire.next();
    let mut e = Encoder::new();
    put_reply(&mut e, probe.xid, RpcReply::ProgUnavail);
    server.callbacks.reply(wire.id, e.buffer());
    eventually("down", || !server.up(client));
}

#[test]
fn a_client_that_answers_no_probe_is_down() {
    let server = Server::new();
    let wire = server.wire();
    let client = server.client(1);
    server.session(client, 1, 1, 1, &wire);
    wire.next();
    assert!(server.up(client));
    eventually("down", || !server.up(client));
}

#[test]
fn a_recall_carries_session_sequence_and_the_request_it_refers_to() {
    let server = Server::new();
    let wire = server.wire();
    let client = server.client(2);
    let session = server.session(client, 1, 2, 2, &wire);
    server.answer_probe(&wire);
    // The delegation was granted by a request on slot 1 whose reply the client may not have seen.
    use benchmaster_nfs_proto::v4::SequenceArgs;
    let args = SequenceArgs {
        sessionid: session.id(),
        sequenceid: 1,
        slotid: 1,
        highest_slotid: 1,
        cachethis: false,
    };
    let request = crate::state::session::Request { len: 100, tag: b"", operations: 1, rest: b"" };
    let begun = session.begin(wire.id, &Credentials::root(), &args, &request, Instant::now());
    session.granted(1, [1; 12]);
    drop(begun);
    server.recall(client, 1);
    server.recall(client, 2);
    let (first, second) = (wire.next(), wire.next());
    assert_eq!((first.minor, first.session, first.slot, first.sequence), (2, session.id(), 0, 1));
    assert_eq!(first.refers, [(session.id(), 1, 1)]);
    assert_eq!(first.operation, Some(Operation::Recall(stateid(1), true)));
    assert_eq!((second.slot, second.sequence, second.refers.len()), (1, 1, 0));
    server.recall(client, 1);
    wire.quiet();
    server.answer(&wire, &first, Nfsstat4::OK, Nfsstat4::OK);
    // Answered: the same recall is a new one.
    eventually("answered", || {
        server.recall(client, 1);
        wire.calls.recv_timeout(Duration::from_millis(20)).is_ok_and(|message| {
            let call = parse(&message);
            call.slot == 0 && call.sequence == 2
        })
    });
}

#[test]
fn no_more_callbacks_at_a_time_than_the_client_takes() {
    let server = Server::with_lease(Duration::from_secs(60));
    let (client, _, wire) = server.ready(1);
    for number in 1..=3 {
        server.recall(client, number);
    }
    let owner = b"owner".to_vec();
    server.callbacks.submit(client, Callback::NotifyLock { file: FILE, owner: owner.clone() });
    let mut seen = Vec::new();
    for sequence in 1..=4 {
        let call = wire.next();
        wire.quiet();
        assert_eq!((call.slot, call.sequence), (0, sequence));
        seen.push(call.operation.clone().unwrap());
        // Nobody else's answer counts.
        server.callbacks.reply(ConnectionId(999), &reply(&call, Nfsstat4::OK, Nfsstat4::OK));
        wire.quiet();
        server.answer(&wire, &call, Nfsstat4::OK, Nfsstat4::OK);
    }
    assert!(seen.contains(&Operation::NotifyLock(owner)));
    assert_eq!(seen.len(), 4);
}

#[test]
fn delay_is_waited_for() {
    let server = Server::with_lease(Duration::from_secs(60));
    let (client, _, wire) = server.ready(1);
    server.recall(client, 1);
    let call = wire.next();
    server.answer(&wire, &call, Nfsstat4::DELAY, Nfsstat4::OK);
    let again = wire.next();
    assert_eq!((again.slot, again.sequence), (0, 1), "not executed: the same number");
    server.answer(&wire, &again, Nfsstat4::OK, Nfsstat4::DELAY);
    let again = wire.next();
    assert_eq!(again.sequence, 2, "executed: the next one");
    server.answer(&wire, &again, Nfsstat4::OK, Nfsstat4::BAD_STATEID);
    let again = wire.next();
    assert_eq!((again.sequence, again.operation), (3, Some(Operation::Recall(stateid(1), true))));
}

#[test]
fn a_callback_in_doubt_is_repeated_on_its_slot_over_another_connection() {
    let server = Server::with_lease(Duration::from_secs(60));
    let (client, session, wire) = server.ready(2);
    server.recall(client, 1);
    let call = wire.next();
    wire.close();
    eventually("flag", || session.flags() & SEQ_STATUS_CB_PATH_DOWN_SESSION != 0);
    assert!(!server.up(client));
    let other = server.wire();
    let back = Some(BackConnection { id: other.id, outbox: other.sink.clone() });
    session.bind(other.id, back, ChannelDirFromClient4::BackOrBoth).unwrap();
    server.change(|tables, effects| tables.clients().back_channel_changed(client, effects));
    let calls = [other.next(), other.next()];
    let again = calls.iter().find(|call| call.procedure == 1).unwrap();
    assert_eq!((again.session, again.slot, again.sequence), (call.session, call.slot, call.sequence));
    assert_eq!(again.operation, call.operation);
    assert_eq!(session.flags() & SEQ_STATUS_CB_PATH_DOWN_SESSION, 0);
    // The client had executed it, and its answer was lost: no reply kept.
    server.answer(&other, again, Nfsstat4::OK, Nfsstat4::RETRY_UNCACHED_REP);
    server.recall(client, 2);
    assert_eq!(other.next().sequence, call.sequence + 1);
}

#[test]
fn a_callback_goes_to_the_next_session_when_its_own_is_destroyed() {
    let server = Server::with_lease(Duration::from_secs(60));
    let (client, session, wire) = server.ready(1);
    server.recall(client, 1);
    let call = wire.next();
    server.change(|tables, _| tables.clients().destroy_session(&session.id(), wire.id, None)).unwrap();
    let next = server.session(client, 2, 1, 1, &wire);
    let calls = [wire.next(), wire.next()];
    let again = calls.iter().find(|call| call.procedure == 1).unwrap();
    assert_eq!((again.session, again.slot, again.sequence), (next.id(), 0, 1));
    assert_eq!(again.operation, call.operation);
}

#[test]
fn a_back_channel_that_lost_count_is_left_for_another_session() {
    for status in [Nfsstat4::BADSESSION, Nfsstat4::SEQ_MISORDERED, Nfsstat4::BADSLOT] {
        let server = Server::with_lease(Duration::from_secs(60));
        let (client, first, wire) = server.ready(1);
        let other = server.wire();
        let second = server.session(client, 2, 1, 1, &other);
        server.answer_probe(&other);
        server.recall(client, 1);
        let call = other.next();
        assert_eq!(call.session, second.id(), "the newest is asked first");
        server.answer(&other, &call, status, Nfsstat4::OK);
        assert_eq!(wire.next().session, first.id());
        assert_ne!(second.flags() & SEQ_STATUS_BACKCHANNEL_FAULT, 0);
        assert!(server.up(client));
    }
}

#[test]
fn a_callback_without_any_path_is_given_up() {
    let server = Server::with_lease(Duration::from_millis(300));
    let (client, session, wire) = server.ready(1);
    server.recall(client, 1);
    wire.next();
    // Neither answered nor to be repeated elsewhere: the slot's number is lost, and so is the channel.
    eventually("fault", || session.flags() & SEQ_STATUS_BACKCHANNEL_FAULT != 0);
    assert!(!server.up(client));
}

#[test]
fn the_thread_ends_with_callbacks_waiting_and_in_flight() {
    let server = Server::with_lease(Duration::from_secs(60));
    let (client, _, wire) = server.ready(1);
    server.recall(client, 1);
    wire.next();
    server.recall(client, 2);
    let start = Instant::now();
    drop(server);
    assert!(start.elapsed() < Duration::from_secs(5));
}
