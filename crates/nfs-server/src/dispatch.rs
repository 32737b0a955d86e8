//! From a record to a reply: RPC header, authentication, injected behaviour, program, version, procedure, statistics.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::rpc::{
    self, AuthFlavor, AuthStat, CALL, CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply,
};
use benchmaster_nfs_proto::v2::Proc2;
use benchmaster_nfs_proto::v3::{self, Proc3};
use benchmaster_nfs_proto::v4::{CompoundArgs, PROC_COMPOUND};
use benchmaster_nfs_proto::xdr::Decoder;
use benchmaster_nfs_proto::{mount, nlm, nsm, portmap as pmap, v2 as nfs2};
use benchmaster_rpc_tls::{is_probe, reply_to_probe};

mod protected;

pub(crate) use self::protected::Kerberos;
use self::protected::Protected;
use crate::call::{Call, Refusal};
use crate::cred::Credentials;
use crate::disk::Job;
use crate::drc::{Lookup, Slot};
use crate::inject::Decision;
use crate::moment::Moment;
use crate::peer::{Peer, Protection};
use crate::reply::{Reply, ReplyMark};
use crate::shared::Shared;
use crate::state::Effects;
use crate::state::session::Session;
use crate::stats::{ClientIndex, Operation, Sample};
use crate::thread::Counter;
use crate::{nlm as locks, portmap, v2, v3 as nfs3, v4};

/// What is remembered from one request of a connection to the next.
#[derive(Debug, Default)]
pub struct Conversation {
    /// The next call has most likely the credential of the last, byte for byte.
    caller: Option<Box<Caller>>,
    /// And the session.
    session: Option<Arc<Session>>,
    calls: u64,
    /// Whether a message may be handled again later ([`Disposition::Again`]).
    pub may_wait: bool,
}

/// In whose name a call comes.
#[derive(Debug)]
struct Caller {
    flavor: AuthFlavor,
    credential: Box<[u8]>,
    address: IpAddr,
    user: User,
}

/// Who a call is executed for.
#[derive(Debug)]
struct User {
    who: Credentials,
    client: ClientIndex,
}

impl Conversation {
    /// Calls received since this was asked last.
    pub(crate) fn take_calls(&mut self) -> u64 {
        std::mem::take(&mut self.calls)
    }

    #[inline]
    fn identify(&mut self, server: &Shared, peer: &Peer, cred: &OpaqueAuth<'_>) -> Result<&Caller, AuthStat> {
        let address = peer.address.ip();
        let same = self.caller.take().filter(|last| {
            last.flavor == cred.flavor && *last.credential == *cred.body.0 && last.address == address
        });
        let caller = match same {
            Some(caller) => caller,
            None => Box::new(Caller::new(server, peer, cred)?),
        };
        Ok(self.caller.insert(caller))
    }
}

impl Caller {
    fn new(server: &Shared, peer: &Peer, cred: &OpaqueAuth<'_>) -> Result<Self, AuthStat> {
        let who = Credentials::from_rpc(cred, server.config.root_squash)?;
        let machine = match cred.flavor {
            AuthFlavor::SYS => cred.sys().map_err(|_| AuthStat::BADCRED)?.machine_name.0,
            _ => &[],
        };
        let (flavor, credential) = (cred.flavor, cred.body.0.into());
        Ok(Self {
            flavor,
            credential,
            address: peer.address.ip(),
            user: User::new(server, peer, machine, who),
        })
    }
}

impl User {
    fn new(server: &Shared, peer: &Peer, machine: &[u8], who: Credentials) -> Self {
        let client = server.statistics.client(peer.address.ip(), machine);
        if let Some(outbox) = &peer.outbox {
            outbox.note_client(client);
        }
        Self { who, client }
    }
}

/// How often a request that waits for another client's answer is handled again ([`Disposition::Again`]).
pub const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// For how long; then it gets an error to come back later. As Linux's server waits for CB_GETATTR, and a little longer.
pub const WAIT_AT_MOST: Duration = Duration::from_millis(50);

/// What to do with what was appended to the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Send it with the others (nothing may have been appended: a message that gets no reply).
    Send,
    /// Send it after this time, and when the disk has done its part.
    Hold(Duration, Option<Job>),
    /// Take it back: the reply is lost (injected).
    Drop,
    /// Send it at once; what follows in both directions is TLS.
    StartTls,
    /// Close the connection, unsent.
    Disconnect,
    /// Take it back, and handle the message again in a moment: it waits for another client's answer. Only where
    /// [`Conversation::may_wait`] says so.
    Again,
}

/// The procedure of every program that does nothing.
const NULL: u32 = 0;

/// Shortest call: six words, credential and verifier without bodies.
const SHORTEST_CALL: usize = 40;

/// Handles one RPC message (without record mark): appends the reply message (without record mark) to `reply`.
pub fn handle(
    server: &Shared,
    peer: &Peer,
    conversation: &mut Conversation,
    message: &[u8],
    reply: &mut Reply,
    now: Moment,
) -> Disposition {
    let transport = &server.statistics.transport;
    let mut d = Decoder::new(message);
    match d.get::<Message<'_>>() {
        Ok(Message::Call(call)) => {
            conversation.calls += 1;
            let may_wait = conversation.may_wait;
            let protection = Protected::NONE;
            Request { server, peer, message, now, call, args: d, may_wait, protection }
                .handle(conversation, reply)
        }
        Ok(Message::Reply { .. }) => {
            server.callbacks.reply(peer.connection, message);
            Disposition::Send
        }
        Err(_) => {
            count(&transport.bad_format);
            bad_header(message, reply)
        }
    }
}

fn count(counter: &Counter) {
    counter.add(1);
}

/// A message whose header does not decode: with a whole call header it can only be a credential or verifier beyond its
/// limit; anything else is no RPC.
fn bad_header(message: &[u8], reply: &mut Reply) -> Disposition {
    let mut d = Decoder::new(message);
    match (d.get::<u32>(), d.get::<u32>()) {
        (Ok(xid), Ok(CALL)) if message.len() >= SHORTEST_CALL => {
            rpc::put_reply(&mut reply.encoder, xid, RpcReply::AuthError(AuthStat::BADCRED));
            Disposition::Send
        }
        _ => Disposition::Disconnect,
    }
}

/// The programs served, each with a function for its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Nfs2,
    Nfs3,
    Nfs4,
    Mount,
    Nlm,
    Nsm,
    Portmap,
}

impl Program {
    fn find(server: &Shared, peer: &Peer, program: u32, version: u32) -> Result<Self, RpcReply<'static>> {
        let versions = |low, high, served: bool, found| {
            if served { Ok(found) } else { Err(RpcReply::ProgMismatch(low, high)) }
        };
        // By port: a socket that listens on all addresses accepts on each.
        if server.portmap.is_some_and(|portmap| portmap.port() == peer.local.port()) {
            // Elsewhere these programs have ports of their own.
            return match program {
                pmap::PROGRAM => {
                    let (low, high) = portmap::VERSIONS;
                    versions(low, high, (low..=high).contains(&version), Self::Portmap)
                }
                _ => Err(RpcReply::ProgUnavail),
            };
        }
        let datagram = peer.outbox.is_none();
        if datagram && !server.config.udp {
            return Err(RpcReply::ProgUnavail);
        }
        match (program, version) {
            (v3::PROGRAM, nfs2::VERSION) => Ok(Self::Nfs2),
            (v3::PROGRAM, v3::VERSION) => Ok(Self::Nfs3),
            // RFC 7530 §3.1: not over a transport without congestion control.
            (v3::PROGRAM, 4) if !datagram => Ok(Self::Nfs4),
            (v3::PROGRAM, _) => Err(RpcReply::ProgMismatch(nfs2::VERSION, if datagram { 3 } else { 4 })),
            (mount::PROGRAM, _) => versions(1, 3, (1..=3).contains(&version), Self::Mount),
            (nlm::PROGRAM, _) => {
                let (low, high) = locks::VERSIONS;
                versions(low, high, matches!(version, 1 | 3 | 4), Self::Nlm)
            }
            (nsm::PROGRAM, _) => versions(nsm::VERSION, nsm::VERSION, version == nsm::VERSION, Self::Nsm),
            _ => Err(RpcReply::ProgUnavail),
        }
    }

    fn operation(self, procedure: u32) -> Operation {
        match self {
            Self::Nfs2 => Operation::V2(Proc2(procedure)),
            Self::Nfs3 => Operation::V3(Proc3(procedure)),
            Self::Nfs4 => Operation::Compound,
            Self::Mount => Operation::Mount,
            Self::Nlm | Self::Nsm => Operation::Nlm,
            Self::Portmap => Operation::Portmap,
        }
    }
}

/// A call on its way.
struct Request<'r> {
    server: &'r Shared,
    peer: &'r Peer,
    message: &'r [u8],
    now: Moment,
    call: CallHeader<'r>,
    args: Decoder<'r>,
    may_wait: bool,
    protection: Protected<'r>,
}

impl Request<'_> {
    fn handle(self, conversation: &mut Conversation, reply: &mut Reply) -> Disposition {
        let (server, call) = (self.server, &self.call);
        let transport = &server.statistics.transport;
        if call.rpc_version != RPC_VERSION {
            count(&transport.bad_format);
            return self.refuse(reply, RpcReply::RpcMismatch(RPC_VERSION, RPC_VERSION));
        }
        if call.cred.flavor == AuthFlavor::TLS && server.tls.is_some() {
            return self.start_tls(reply);
        }
        if server.config.require_tls && self.peer.protection == Protection::Plain && call.procedure != NULL {
            count(&transport.bad_auth);
            return self.refuse(reply, RpcReply::AuthError(AuthStat::TOOWEAK));
        }
        let program = match Program::find(server, self.peer, call.program, call.version) {
            Ok(program) => program,
            Err(refusal) => {
                count(&transport.bad_calls);
                return self.refuse(reply, refusal);
            }
        };
        let mut session = conversation.session.take();
        let disposition = match (conversation.identify(server, self.peer, &call.cred), &server.kerberos) {
            (Ok(caller), _) => self.carry_out(program, &caller.user, &mut session, reply),
            (Err(_), Some(kerberos)) if call.cred.flavor == AuthFlavor::RPCSEC_GSS => {
                self.carry_out_protected(program, kerberos, &mut session, reply)
            }
            (Err(stat), _) => {
                count(&transport.bad_auth);
                return self.refuse(reply, RpcReply::AuthError(stat));
            }
        };
        conversation.session = session;
        disposition
    }

    /// Executes the call of a user who is known, unless it is a repetition, or a rule has something else for it.
    fn carry_out(
        &self,
        program: Program,
        user: &User,
        session: &mut Option<Arc<Session>>,
        reply: &mut Reply,
    ) -> Disposition {
        let (server, call, client) = (self.server, &self.call, user.client);
        let transport = &server.statistics.transport;
        let operation = program.operation(call.procedure);
        let decision = if server.injector.is_idle() {
            Decision::default()
        } else {
            server.injector.decide(operation, client, self.bulk(program), self.now.instant)
        };
        let key = self.must_not_repeat(program).then(|| {
            server.replies.key(
                self.peer.address.ip(),
                call.xid,
                self.protection.same_in_repetitions(self.message),
            )
        });
        let slot = match key.map(|key| server.replies.begin(key)) {
            None => None,
            Some(Lookup::New(slot)) => Some(slot),
            Some(Lookup::InProgress) => {
                count(&transport.dropped_duplicates);
                return Disposition::Send;
            }
            Some(Lookup::Done(kept)) => {
                count(&transport.replayed);
                server.repeats();
                self.protection.put_header(reply, call.xid);
                reply.encoder.raw(&kept);
                return disposition(decision);
            }
        };
        reply.falsify(&decision);
        match self.execute(program, user, session, decision.error, slot, reply) {
            Some(suffered) => disposition(decision.and(suffered)),
            None => Disposition::Again,
        }
    }

    /// Executes the call, keeps its reply where that is due, and counts it. Returns what its operations suffer (v4);
    /// `None`: it has to be executed again.
    fn execute(
        &self,
        program: Program,
        user: &User,
        session: &mut Option<Arc<Session>>,
        injected: Option<u32>,
        slot: Option<Slot>,
        reply: &mut Reply,
    ) -> Option<Decision> {
        let (server, call, who) = (self.server, &self.call, &user.who);
        let began = server.clock.now();
        let mut effects = Effects::new();
        let start = reply.mark();
        rpc::put_reply(&mut reply.encoder, call.xid, RpcReply::Success(self.protection.verifier));
        let results = reply.mark();
        let mut decision = Decision::default();
        let mut keep = slot.is_some();
        let mut again = false;
        let header = self.message.len().saturating_sub(self.args.rest().len());
        let mut call = Call {
            server,
            peer: self.peer,
            who,
            client: user.client,
            flavor: self.protection.flavor,
            overhead: self.protection.overhead(),
            too_weak: false,
            version: call.version,
            procedure: call.procedure,
            header_len: header,
            args: self.args,
            session,
            now: self.now,
            reply,
            effects: &mut effects,
            injected,
            may_wait: self.may_wait,
            objects: [None; 2],
            disk: None,
        };
        let served = match program {
            Program::Nfs2 => v2::serve(&mut call),
            Program::Nfs3 => nfs3::serve(&mut call),
            Program::Nfs4 => v4::serve(&mut call).map(|done| {
                decision = done.injected;
                (keep, again) = (done.cache, done.again);
                first_word(call.reply, results)
            }),
            Program::Mount => crate::mount::serve(&mut call),
            Program::Nlm => locks::serve(&mut call),
            Program::Nsm => locks::nsm::serve(&mut call),
            Program::Portmap => portmap::serve(&mut call),
        };
        decision.disk = decision.disk.or(call.disk);
        let served = if call.too_weak { Err(Refusal::TooWeak) } else { served };
        if let Err(refusal) = served {
            keep = false;
            reply.rollback(start);
            if let Some(refusal) = refusal_reply(refusal) {
                count(&server.statistics.transport.bad_calls);
                rpc::put_reply_with(&mut reply.encoder, self.call.xid, self.protection.verifier, refusal);
            }
        }
        if let Some(slot) = slot {
            let from = self.protection.kept_from(start, results);
            let kept = keep.then_some(|out: &mut Vec<u8>| reply.copy_since_into(from, out));
            server.replies.finish(slot, kept);
        }
        server.apply(&mut effects);
        if matches!(program, Program::Nfs4 | Program::Nlm) {
            server.note_clients();
        }
        if again {
            return None;
        }
        let sample = Sample {
            received: self.message.len() as u64,
            sent: reply.encoder.len_since(start) as u64,
            service: server.clock.since(began),
            error: served != Ok(0),
        };
        server.statistics.record(user.client, program.operation(self.call.procedure), sample);
        Some(decision)
    }

    /// The flavour AUTH_TLS, which is allowed in the probe alone, on a connection without TLS (RFC 9289 §4.1).
    fn start_tls(&self, reply: &mut Reply) -> Disposition {
        let stream = self.peer.outbox.is_some();
        if !stream || !is_probe(&self.call) || self.peer.protection != Protection::Plain {
            count(&self.server.statistics.transport.bad_auth);
            return self.refuse(reply, RpcReply::AuthError(AuthStat::BADCRED));
        }
        reply_to_probe(&mut reply.encoder, self.call.xid);
        Disposition::StartTls
    }

    fn refuse(&self, reply: &mut Reply, refusal: RpcReply<'_>) -> Disposition {
        rpc::put_reply(&mut reply.encoder, self.call.xid, refusal);
        Disposition::Send
    }

    /// Whether a repetition must be answered from the duplicate request cache. Compounds of 4.0 say only when they are
    /// executed; from 4.1 on sessions do it.
    fn must_not_repeat(&self, program: Program) -> bool {
        if is_broken(Mutant::RepliesNotKept) {
            return false;
        }
        match program {
            Program::Nfs2 => v2::must_not_repeat(self.call.procedure),
            Program::Nfs3 => nfs3::must_not_repeat(self.call.procedure),
            Program::Nfs4 => {
                let args = self.args.clone().get::<CompoundArgs<'_>>();
                self.call.procedure == PROC_COMPOUND && args.is_ok_and(|args| args.minorversion == 0)
            }
            Program::Nlm => locks::must_not_repeat(self.call.procedure),
            Program::Mount | Program::Nsm | Program::Portmap => false,
        }
    }

    /// Bytes of data that the call moves, for injected bandwidth.
    fn bulk(&self, program: Program) -> u64 {
        match (program, Proc3(self.call.procedure)) {
            (Program::Nfs3, Proc3::READ) => {
                self.args.clone().get::<v3::ReadArgs<'_>>().map_or(0, |args| args.count.into())
            }
            (Program::Nfs2, _) if self.call.procedure == Proc2::READ.0 => {
                self.args.clone().get::<nfs2::ReadArgs>().map_or(0, |args| args.count.into())
            }
            _ => self.message.len() as u64,
        }
    }
}

/// Length of an opaque with its padding.
fn padded(len: usize) -> usize {
    len.div_ceil(4) * 4
}

/// What a call without results is answered; `None`: nothing.
fn refusal_reply(refusal: Refusal) -> Option<RpcReply<'static>> {
    match refusal {
        Refusal::ProcUnavail => Some(RpcReply::ProcUnavail),
        Refusal::GarbageArgs => Some(RpcReply::GarbageArgs),
        Refusal::TooWeak => Some(RpcReply::AuthError(AuthStat::TOOWEAK)),
        Refusal::NoReply => None,
    }
}

/// The status with which NFS results begin, at `mark`; 0 when there are none (NULL).
fn first_word(reply: &Reply, mark: ReplyMark) -> u32 {
    Decoder::new(reply.encoder.buffer().get(mark.buffer..).unwrap_or_default()).get().unwrap_or(0)
}

fn disposition(decision: Decision) -> Disposition {
    match decision {
        Decision { disconnect: true, .. } => Disposition::Disconnect,
        Decision { drop_reply: true, .. } => Disposition::Drop,
        Decision { delay, disk, .. } if !delay.is_zero() || disk.is_some() => Disposition::Hold(delay, disk),
        _ => Disposition::Send,
    }
}
