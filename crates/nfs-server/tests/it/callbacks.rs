//! Recall of delegations from clients on sockets: over the client's own connection (4.1), and over one that the server opens
//! to the client (4.0).

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::portmap::UniversalAddress;
use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthSys, CallHeader, Message, OpaqueAuth, RpcReply, put_reply};
use benchmaster_nfs_proto::v4::*;
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, List, Opaque};
use benchmaster_nfs_server::{Server, ServerConfig};

const PROGRAM: u32 = 0x4000_0077;
const PATIENCE: Duration = Duration::from_secs(20);

/// One end of a connection that carries calls in both directions.
struct Peer {
    stream: TcpStream,
    xid: u32,
    /// Calls of the server that came while a reply was awaited.
    calls: VecDeque<Vec<u8>>,
}

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, xid: 0, calls: VecDeque::new() }
    }

    fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).unwrap())
    }

    fn send(&mut self, put: impl FnOnce(&mut Encoder)) {
        let mut e = Encoder::new();
        let mark = record::begin(&mut e);
        put(&mut e);
        record::end(&mut e, mark);
        self.stream.write_all(e.buffer()).unwrap();
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).unwrap();
        let mut message = vec![0; (u32::from_be_bytes(header) & !record::LAST_FRAGMENT) as usize];
        self.stream.read_exact(&mut message).unwrap();
        message
    }

    /// Sends a COMPOUND and returns its result.
    fn compound(&mut self, minorversion: u32, ops: &[Argop<'_>]) -> Vec<u8> {
        self.xid += 1;
        let xid = self.xid;
        let mut credential = Encoder::new();
        credential.put(&AuthSys {
            stamp: 0,
            machine_name: "m".into(),
            uid: 0,
            gid: 0,
            gids: List::Items(&[]),
        });
        self.send(|e| {
            let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: credential.buffer().into() };
            let (program, version, procedure) = (NFS_PROGRAM, NFS_V4, PROC_COMPOUND);
            e.put(&CallHeader {
                xid,
                rpc_version: 2,
                program,
                version,
                procedure,
                cred,
                verf: OpaqueAuth::NONE,
            });
            e.put(&CompoundHeader { tag: "".into(), minorversion, count: ops.len() as u32 });
            ops.iter().for_each(|op| e.put(op));
        });
        loop {
            let message = self.receive();
            let mut d = Decoder::new(&message);
            match d.get().unwrap() {
                Message::Reply { xid: answered, reply: RpcReply::Success(_) } if answered == xid => {
                    return d.rest().to_vec();
                }
                Message::Call(_) => self.calls.push_back(message),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The next call of the server.
    fn call(&mut self) -> Callback {
        let message = self.calls.pop_front().unwrap_or_else(|| self.receive());
        let mut d = Decoder::new(&message);
        let header: CallHeader<'_> = d.get().unwrap();
        assert_eq!((header.program, header.version), (PROGRAM, NFS_CB));
        let mut call =
            Callback { xid: header.xid, minor: 0, ident: 0, sequence: None, recall: None, asked: None };
        if header.procedure == PROC_NULL {
            return call;
        }
        let compound: CbCompoundArgs<'_> = d.get().unwrap();
        (call.minor, call.ident) = (compound.minorversion, compound.callback_ident);
        let mut ops = compound.ops;
        while let Some(op) = ops.take::<CbArgop<'_>>() {
            match op.unwrap() {
                CbArgop::Sequence(args) => {
                    call.sequence = Some((args.sessionid, args.slotid, args.sequenceid))
                }
                CbArgop::Getattr(args) => call.asked = Some(args.attr_request),
                CbArgop::Recall(args) => call.recall = Some((args.stateid, args.fh.0.to_vec())),
                other => panic!("{other:?}"),
            }
        }
        call
    }

    /// Answers a call of the server well.
    fn answer(&mut self, call: &Callback) {
        self.send(|e| {
            put_reply(e, call.xid, RpcReply::Success(OpaqueAuth::NONE));
            if call.recall.is_none() && call.asked.is_none() {
                return;
            }
            let count = 1 + u32::from(call.sequence.is_some());
            e.put(&CompoundResHeader { status: Nfsstat4::OK, tag: "".into(), count });
            if let Some((sessionid, slotid, sequenceid)) = call.sequence {
                e.put(&CbResop::Sequence(Ok(CbSequenceOk {
                    sessionid,
                    sequenceid,
                    slotid,
                    highest_slotid: 0,
                    target_highest_slotid: 0,
                })));
            }
            if call.asked.is_none() {
                return e.put(&CbResop::Recall(Ok(())));
            }
            let held = Attributes { change: Some(1 << 40), size: Some(4321), ..Attributes::default() };
            let mut attrs = Encoder::new();
            held.encode_masked(&mut attrs, Bitmap4::of(&[fattr4::CHANGE, fattr4::SIZE]));
            let obj_attributes: Fattr4<'_> = Decoder::new(attrs.buffer()).get().unwrap();
            e.put(&CbResop::Getattr(Ok(CbGetattrOk { obj_attributes })));
        });
    }
}

/// CB_NULL, or CB_COMPOUND with CB_RECALL or CB_GETATTR.
#[derive(Debug, PartialEq)]
struct Callback {
    xid: u32,
    minor: u32,
    ident: u32,
    sequence: Option<([u8; 16], u32, u32)>,
    recall: Option<(Stateid4, Vec<u8>)>,
    /// Attributes that CB_GETATTR asks for.
    asked: Option<Bitmap4>,
}

/// Results of a COMPOUND in order.
fn results(bytes: &[u8]) -> (Nfsstat4, Vec<Resop<'_>>) {
    let mut compound: CompoundRes<'_> = Decoder::new(bytes).get().unwrap();
    let mut all = Vec::new();
    while let Some(result) = compound.results.take() {
        all.push(result.unwrap());
    }
    (compound.status, all)
}

/// A client with a session.
struct Client {
    peer: Peer,
    clientid: u64,
    session: [u8; 16],
    sequence: u32,
}

impl Client {
    fn new(address: SocketAddr, name: &str) -> Self {
        let mut peer = Peer::connect(address);
        let owner = ClientOwner4 { verifier: [1; 8], ownerid: name.as_bytes().into() };
        let state_protect = StateProtect4A::None;
        let exchange = ExchangeIdArgs { clientowner: owner, flags: 0, state_protect, client_impl_id: None };
        let reply = peer.compound(1, &[Argop::ExchangeId(exchange)]);
        let (_, all) = results(&reply);
        let [Resop::ExchangeId(Ok(exchanged))] = all[..] else { panic!("{all:?}") };
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 8192,
            maxresponsesize: 8192,
            maxresponsesize_cached: 4096,
            maxoperations: 16,
            maxrequests: 4,
            rdma_ird: None,
        };
        let create = CreateSessionArgs {
            clientid: exchanged.clientid,
            sequence: exchanged.sequenceid,
            flags: CREATE_SESSION_CONN_BACK_CHAN,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: PROGRAM,
            sec_parms: List::Items(&[CallbackSecParms4::None]),
        };
        let reply = peer.compound(1, &[Argop::CreateSession(create)]);
        let (_, all) = results(&reply);
        let [Resop::CreateSession(Ok(created))] = all[..] else { panic!("{all:?}") };
        let probe = peer.call();
        assert_eq!((probe.sequence, probe.recall.is_none()), (None, true));
        peer.answer(&probe);
        let mut client = Self { peer, clientid: exchanged.clientid, session: created.sessionid, sequence: 0 };
        let complete = Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false });
        assert_eq!(results(&client.run(&[complete])).0, Nfsstat4::OK);
        client
    }

    fn run(&mut self, ops: &[Argop<'_>]) -> Vec<u8> {
        self.sequence += 1;
        let sequence = Argop::Sequence(SequenceArgs {
            sessionid: self.session,
            sequenceid: self.sequence,
            slotid: 0,
            highest_slotid: 0,
            cachethis: false,
        });
        let all: Vec<_> = std::iter::once(sequence).chain(ops.iter().copied()).collect();
        self.peer.compound(1, &all)
    }

    /// Status flags of SEQUENCE.
    fn flags(&mut self) -> u32 {
        let reply = self.run(&[]);
        let (_, all) = results(&reply);
        let [Resop::Sequence(Ok(sequence))] = all[..] else { panic!("{all:?}") };
        sequence.status_flags
    }

    /// Opens `file`: status, and the read delegation where one is granted.
    fn open(&mut self, access: u32, create: bool) -> (Nfsstat4, Option<Stateid4>) {
        let clientid = self.clientid;
        let reply = self.run(&open(clientid, 0, access, create));
        let (status, all) = results(&reply);
        let delegation = all.iter().find_map(|result| match result {
            Resop::Open(Ok(OpenOk { delegation: OpenDelegation4::Read(read), .. })) => Some(read.stateid),
            _ => None,
        });
        (status, delegation)
    }

    /// Opens for writing until nothing is in the way.
    fn open_at_last(&mut self) {
        let start = Instant::now();
        loop {
            match self.open(SHARE_ACCESS_WRITE | WANT_NO_DELEG, false).0 {
                Nfsstat4::OK => return,
                Nfsstat4::DELAY => assert!(start.elapsed() < PATIENCE),
                other => panic!("{other}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn open(clientid: u64, seqid: u32, share_access: u32, create: bool) -> Vec<Argop<'static>> {
    const NOTHING: Fattr4<'static> = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(&[]) };
    let how = if create { Openflag4::Create(Createhow4::Unchecked(NOTHING)) } else { Openflag4::NoCreate };
    let open = OpenArgs {
        seqid,
        share_access,
        share_deny: SHARE_DENY_NONE,
        owner: OpenOwner4 { clientid, owner: b"owner"[..].into() },
        openhow: how,
        claim: OpenClaim4::Null("file".into()),
    };
    let export = LookupArgs { objname: "export".into() };
    vec![Argop::Putrootfh, Argop::Lookup(export), Argop::Open(open), Argop::Getfh]
}

fn handle(reply: &[u8]) -> Vec<u8> {
    let (_, all) = results(reply);
    let Some(Resop::Getfh(Ok(got))) = all.last() else { panic!("{all:?}") };
    got.object.0.to_vec()
}

fn server() -> Server {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Server::start(ServerConfig { listen, threads: 2, ..ServerConfig::default() }).unwrap()
}

fn give_back(client: &mut Client, fh: &[u8], deleg_stateid: Stateid4) {
    let put = Argop::Putfh(PutfhArgs { object: fh.into() });
    let reply = client.run(&[put, Argop::Delegreturn(DelegreturnArgs { deleg_stateid })]);
    assert_eq!(results(&reply).0, Nfsstat4::OK);
}

#[test]
fn a_delegation_is_recalled_over_the_clients_own_connection() {
    let server = server();
    let mut holder = Client::new(server.address(), "holder");
    let mut writer = Client::new(server.address(), "writer");
    let (status, delegation) = holder.open(SHARE_ACCESS_READ | WANT_READ_DELEG, true);
    assert_eq!(status, Nfsstat4::OK);
    let delegation = delegation.expect("a delegation");
    assert_eq!(holder.flags(), 0);
    assert_eq!(writer.open(SHARE_ACCESS_WRITE | WANT_NO_DELEG, false).0, Nfsstat4::DELAY);
    let recall = holder.peer.call();
    assert_eq!((recall.minor, recall.sequence), (1, Some((holder.session, 0, 1))));
    let (stateid, fh) = recall.recall.clone().unwrap();
    assert_eq!(stateid.other, delegation.other);
    holder.peer.answer(&recall);
    give_back(&mut holder, &fh, delegation);
    writer.open_at_last();
    server.stop().unwrap();
}

/// A GETATTR of another client waits for the holder's answer, on a server with one thread, and others do not wait.
#[test]
fn the_holder_of_a_write_delegation_answers_for_the_file() {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::start(ServerConfig { listen, threads: 1, ..ServerConfig::default() }).unwrap();
    let mut holder = Client::new(server.address(), "holder");
    let mut reader = Client::new(server.address(), "reader");
    let clientid = holder.clientid;
    let reply = holder.run(&open(clientid, 0, SHARE_ACCESS_BOTH | WANT_WRITE_DELEG, true));
    let fh = handle(&reply);
    let granted = results(&reply).1.iter().any(|result| {
        matches!(result, Resop::Open(Ok(OpenOk { delegation: OpenDelegation4::Write(_), .. })))
    });
    assert!(granted, "a write delegation");
    let look = [
        Argop::Putfh(PutfhArgs { object: fh[..].into() }),
        Argop::Getattr(GetattrArgs { attr_request: Bitmap4::of(&[fattr4::SIZE]) }),
    ];
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let call = holder.peer.call();
            assert_eq!(call.asked, Some(Bitmap4::of(&[fattr4::CHANGE, fattr4::SIZE])));
            // The request is put aside, not the server.
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(5) {
                holder.flags();
            }
            holder.peer.answer(&call);
            // While no holder answers, the client must try again.
            holder.peer.call()
        });
        let mut size = || {
            let reply = reader.run(&look);
            let (status, all) = results(&reply);
            match all.last() {
                Some(Resop::Getattr(Ok(got))) => Ok(Attributes::decode(&got.obj_attributes).unwrap().size),
                _ => Err(status),
            }
        };
        let start = Instant::now();
        let first = loop {
            match size() {
                // Where the holder's thread got no processor in time.
                Err(Nfsstat4::DELAY) => assert!(start.elapsed() < PATIENCE),
                first => break first,
            }
        };
        assert_eq!(first, Ok(Some(4321)));
        std::thread::sleep(Duration::from_millis(1100));
        let start = Instant::now();
        assert_eq!(size(), Err(Nfsstat4::DELAY));
        assert!(start.elapsed() >= Duration::from_millis(40), "{:?}", start.elapsed());
        let again = answering.join().unwrap();
        assert!(again.asked.is_some());
    });
    server.stop().unwrap();
}

#[test]
fn a_recall_is_repeated_over_the_connection_that_replaces_a_broken_one() {
    let server = server();
    let mut holder = Client::new(server.address(), "holder");
    let mut writer = Client::new(server.address(), "writer");
    let delegation = holder.open(SHARE_ACCESS_READ | WANT_READ_DELEG, true).1.expect("a delegation");
    assert_eq!(writer.open(SHARE_ACCESS_WRITE | WANT_NO_DELEG, false).0, Nfsstat4::DELAY);
    let first = holder.peer.call();
    holder.peer = Peer::connect(server.address());
    let start = Instant::now();
    while holder.flags() & SEQ_STATUS_CB_PATH_DOWN_SESSION == 0 {
        assert!(start.elapsed() < PATIENCE, "the path is down");
        std::thread::sleep(Duration::from_millis(10));
    }
    let bind = Argop::BindConnToSession(BindConnToSessionArgs {
        sessid: holder.session,
        dir: ChannelDirFromClient4::ForeOrBoth,
        use_conn_in_rdma_mode: false,
    });
    let reply = holder.peer.compound(1, &[bind]);
    let (_, all) = results(&reply);
    let [Resop::BindConnToSession(Ok(bound))] = all[..] else { panic!("{all:?}") };
    assert_eq!(bound.dir, ChannelDirFromServer4::Both);
    let calls = [holder.peer.call(), holder.peer.call()];
    for call in &calls {
        holder.peer.answer(call);
    }
    let again = calls.iter().find(|call| call.recall.is_some()).expect("the recall");
    assert_eq!((again.sequence, &again.recall), (first.sequence, &first.recall));
    let (_, fh) = again.recall.clone().unwrap();
    give_back(&mut holder, &fh, delegation);
    writer.open_at_last();
    assert_eq!(holder.flags(), 0);
    server.stop().unwrap();
}

#[test]
fn a_client_of_40_is_called_at_its_own_address() {
    let server = server();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let universal = UniversalAddress(service.local_addr().unwrap()).to_string();
    let mut holder = Peer::connect(server.address());
    let location = Netaddr4 { r_netid: "tcp".into(), r_addr: universal.as_str().into() };
    let set = SetclientidArgs {
        client: NfsClientId4 { verifier: [1; 8], id: b"old client"[..].into() },
        callback: CbClient4 { cb_program: PROGRAM, cb_location: location },
        callback_ident: 4711,
    };
    let reply = holder.compound(0, &[Argop::Setclientid(set)]);
    let (_, all) = results(&reply);
    let [Resop::Setclientid(SetclientidRes::Ok(set))] = all[..] else { panic!("{all:?}") };
    let SetclientidOk { clientid, setclientid_confirm } = set;
    let confirm = SetclientidConfirmArgs { clientid, setclientid_confirm };
    assert_eq!(results(&holder.compound(0, &[Argop::SetclientidConfirm(confirm)])).0, Nfsstat4::OK);
    let mut callbacks = Peer::new(service.accept().unwrap().0);
    let probe = callbacks.call();
    assert!(probe.recall.is_none());
    callbacks.answer(&probe);
    let start = Instant::now();
    while !server
        .shared()
        .state
        .clients()
        .clients()
        .callback_up(benchmaster_nfs_server::state::ClientId(clientid))
    {
        assert!(start.elapsed() < PATIENCE, "the path is up");
        std::thread::sleep(Duration::from_millis(5));
    }

    // The first open of an owner has to be confirmed, and brings no delegation; the second may.
    let reply = holder.compound(0, &open(clientid, 1, SHARE_ACCESS_READ, true));
    let fh = handle(&reply);
    let (_, all) = results(&reply);
    let Resop::Open(Ok(opened)) = all[2] else { panic!("{all:?}") };
    if opened.rflags & OPEN_RESULT_CONFIRM != 0 {
        let put = Argop::Putfh(PutfhArgs { object: fh.as_slice().into() });
        let confirm = Argop::OpenConfirm(OpenConfirmArgs { open_stateid: opened.stateid, seqid: 2 });
        assert_eq!(results(&holder.compound(0, &[put, confirm])).0, Nfsstat4::OK);
    }
    let reply = holder.compound(0, &open(clientid, 3, SHARE_ACCESS_READ, false));
    let (_, all) = results(&reply);
    let Resop::Open(Ok(OpenOk { delegation: OpenDelegation4::Read(delegation), .. })) = all[2] else {
        panic!("{all:?}")
    };
    let renew = Argop::Renew(RenewArgs { clientid });
    assert_eq!(results(&holder.compound(0, &[renew])).0, Nfsstat4::OK);

    let mut writer = Client::new(server.address(), "writer");
    assert_eq!(writer.open(SHARE_ACCESS_WRITE | WANT_NO_DELEG, false).0, Nfsstat4::DELAY);
    let recall = callbacks.call();
    assert_eq!((recall.minor, recall.ident, recall.sequence), (0, 4711, None));
    assert_eq!(recall.recall.as_ref().unwrap().0.other, delegation.stateid.other);
    // Unanswered and cut off: the server dials again, and RENEW tells meanwhile that it cannot call.
    drop(callbacks);
    let start = Instant::now();
    while results(&holder.compound(0, &[renew])).0 != Nfsstat4::CB_PATH_DOWN {
        assert!(start.elapsed() < PATIENCE, "the path is down");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut callbacks = Peer::new(service.accept().unwrap().0);
    let again = callbacks.call();
    assert_eq!(again.recall, recall.recall);
    callbacks.answer(&again);
    let put = Argop::Putfh(PutfhArgs { object: fh.as_slice().into() });
    let back = Argop::Delegreturn(DelegreturnArgs { deleg_stateid: delegation.stateid });
    assert_eq!(results(&holder.compound(0, &[put, back])).0, Nfsstat4::OK);
    writer.open_at_last();
    server.stop().unwrap();
}
