//! A client of version 4: thin, one connection, one slot; all minor versions by the same calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_proto::portmap::{IPPROTO_TCP, UniversalAddress};
use benchmaster_nfs_proto::rpc::RpcReply;
use benchmaster_nfs_proto::v4::{
    self, Argop, ChannelAttrs4, CompoundHeader, CompoundRes, Nfsstat4, Opnum, Resop, Sessionid4, Verifier4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, List};

use super::callback::{Callback, Held, Listener};
use super::connection::{Connection, Procedure, User};
use super::ops;
use super::words::brief;
use crate::{Stop, Tried, Trouble};

/// COMPOUND.
pub(crate) const COMPOUND: Procedure =
    Procedure { program: v4::NFS_PROGRAM, version: v4::NFS_V4, number: v4::PROC_COMPOUND };
/// Comes back in every reply.
pub(crate) const TAG: &str = "check";
/// Program of callbacks, out of the range for such.
pub(crate) const CALLBACKS: u32 = 0x4000_0000;
/// How often a call is sent again that the server puts off, and the pause between.
const DELAYS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// A session, with one slot in use.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: Sessionid4,
    /// Sequence number of the last request on slot 0.
    pub(crate) sequence: u32,
    pub(crate) fore: ChannelAttrs4,
    pub(crate) back: ChannelAttrs4,
    pub(crate) flags: u32,
}

/// Channel attributes that are asked for.
pub(crate) const FORE: ChannelAttrs4 = ChannelAttrs4 {
    headerpadsize: 0,
    maxrequestsize: (1 << 20) + 4096,
    maxresponsesize: (1 << 20) + 4096,
    maxresponsesize_cached: 4096,
    maxoperations: 32,
    maxrequests: 8,
    rdma_ird: None,
};
/// Those of the back channel.
pub(crate) const BACK: ChannelAttrs4 = ChannelAttrs4 {
    headerpadsize: 0,
    maxrequestsize: 4096,
    maxresponsesize: 4096,
    maxresponsesize_cached: 0,
    maxoperations: 4,
    maxrequests: 1,
    rdma_ird: None,
};

/// A client.
#[derive(Debug)]
pub(crate) struct Client4 {
    pub(crate) connection: Connection,
    pub(crate) minor: u32,
    pub(crate) user: User,
    /// Its name to the server.
    pub(crate) owner: String,
    pub(crate) clientid: u64,
    pub(crate) session: Option<Session>,
    /// Next sequence number of each owner (4.0).
    seqids: BTreeMap<Vec<u8>, u32>,
    /// Where callbacks come (4.0).
    pub(crate) listener: Option<Arc<Listener>>,
    /// Whether delegations that come with an open (4.0) are kept; else they are returned at once.
    pub(crate) keeps_delegations: bool,
    /// What the server says of itself.
    pub(crate) implementation: Option<String>,
}

/// The results of a compound, all of which decode.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) sent: String,
    pub(crate) bytes: Vec<u8>,
    /// Results that are not of what was asked for: that of SEQUENCE.
    skip: usize,
}

impl Answer {
    /// The status of the compound.
    pub(crate) fn status(&self) -> Nfsstat4 {
        Decoder::new(&self.bytes).get().unwrap_or(Nfsstat4::SERVERFAULT)
    }

    /// The results, without that of SEQUENCE.
    pub(crate) fn results(&self) -> Vec<Resop<'_>> {
        let mut all = self.all();
        all.drain(..self.skip.min(all.len()));
        all
    }

    /// The results with that of SEQUENCE.
    pub(crate) fn all(&self) -> Vec<Resop<'_>> {
        let Ok(mut res) = Decoder::new(&self.bytes).get::<CompoundRes<'_>>() else { return Vec::new() };
        std::iter::from_fn(|| res.results.take()?.ok()).collect()
    }

    /// The last result.
    pub(crate) fn last(&self) -> Option<Resop<'_>> {
        self.all().pop()
    }

    /// Fails where the status is not one of these.
    pub(crate) fn is(&self, allowed: &[Nfsstat4]) -> Tried {
        if allowed.contains(&self.status()) {
            return Ok(());
        }
        Err(self.wrong(format!("{} is right", ops::names(allowed))))
    }

    /// Fails where not all went well.
    pub(crate) fn ok(self) -> Result<Self, Stop> {
        self.is(&[Nfsstat4::OK]).map(|()| self)
    }

    /// What came is wrong, and what would be right.
    pub(crate) fn wrong(&self, right: impl Into<String>) -> Stop {
        let came = match self.last() {
            Some(result) if self.status() != Nfsstat4::OK => {
                let place = result.opnum();
                format!("{} from {place}", self.status())
            }
            Some(result) => brief(&format!("{result:?}")),
            None => self.status().to_string(),
        };
        Stop::failed(self.sent.clone(), format!("{came}; {}", right.into()))
    }

    /// The filehandle of the last GETFH.
    pub(crate) fn fh(&self) -> Result<Vec<u8>, Stop> {
        let found = self.all().iter().rev().find_map(|result| match result {
            Resop::Getfh(Ok(ok)) => Some(ok.object.0.to_vec()),
            _ => None,
        });
        found.ok_or_else(|| self.wrong("GETFH is to give a filehandle"))
    }
}

/// The body of the last result of this kind, or the check has failed.
macro_rules! body {
    ($answer:expr, $op:ident) => {{
        let answer = &$answer;
        match answer.all().iter().rev().find_map(|result| match result {
            benchmaster_nfs_proto::v4::Resop::$op(Ok(body)) => Some(*body),
            _ => None,
        }) {
            Some(body) => body,
            None => return Err(answer.wrong(concat!(stringify!($op), " is to succeed"))),
        }
    }};
}
pub(crate) use body;

impl Client4 {
    /// A connection without a client.
    pub(crate) fn bare(connection: Connection, minor: u32, user: User, owner: &str) -> Self {
        Self {
            connection,
            minor,
            user,
            owner: owner.to_owned(),
            clientid: 0,
            session: None,
            seqids: BTreeMap::new(),
            listener: None,
            keeps_delegations: false,
            implementation: None,
        }
    }

    /// Introduces the client, as one that has just started: what an earlier one of this name held is given up.
    pub(crate) fn introduce(&mut self, verifier: Verifier4) -> Tried {
        match self.minor {
            0 => self.introduce_40(verifier),
            _ => self.introduce_41(verifier),
        }
    }

    fn introduce_40(&mut self, verifier: Verifier4) -> Tried {
        let trouble = |trouble| Stop::Trouble { sent: "the port for callbacks".into(), trouble };
        let listener = match &self.listener {
            Some(listener) => Arc::clone(listener),
            None => {
                let ip = self.connection.local().map_err(trouble)?.ip();
                Arc::new(Listener::start(ip).map_err(trouble)?)
            }
        };
        let address = UniversalAddress(listener.address());
        self.listener = Some(listener);
        let answer = self.setclientid(verifier, &address.to_string(), address.netid(IPPROTO_TCP))?.ok()?;
        let Some(Resop::Setclientid(v4::SetclientidRes::Ok(ok))) = answer.last() else {
            return Err(answer.wrong("SETCLIENTID is to give a client id"));
        };
        self.clientid = ok.clientid;
        let confirm =
            v4::SetclientidConfirmArgs { clientid: ok.clientid, setclientid_confirm: ok.setclientid_confirm };
        self.compound(&[Argop::SetclientidConfirm(confirm)])?.ok()?;
        self.seqids.clear();
        Ok(())
    }

    /// SETCLIENTID with the client's name.
    pub(crate) fn setclientid(
        &mut self,
        verifier: Verifier4,
        address: &str,
        netid: Option<&str>,
    ) -> Result<Answer, Stop> {
        let owner = self.owner.clone();
        let client = v4::NfsClientId4 { verifier, id: owner.as_bytes().into() };
        let r_netid = netid.unwrap_or("tcp").into();
        let cb_location = v4::Netaddr4 { r_netid, r_addr: address.into() };
        let callback = v4::CbClient4 { cb_program: CALLBACKS, cb_location };
        self.compound(&[Argop::Setclientid(v4::SetclientidArgs { client, callback, callback_ident: 1 })])
    }

    fn introduce_41(&mut self, verifier: Verifier4) -> Tried {
        self.session = None;
        let answer = self.exchange_id(verifier, v4::EXCHGID_USE_NON_PNFS)?.ok()?;
        let known = body!(answer, ExchangeId);
        self.clientid = known.clientid;
        self.implementation = known.server_impl_id.map(|id| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            format!("{} ({})", text(id.name.0), text(id.domain.0))
        });
        let sequence = known.sequenceid;
        let answer = self.create_session(known.clientid, sequence, FORE, BACK)?.ok()?;
        self.adopt(&answer)?;
        self.compound(&[Argop::ReclaimComplete(v4::ReclaimCompleteArgs { one_fs: false })])?.ok()?;
        Ok(())
    }

    /// Goes on with the session that was made.
    pub(crate) fn adopt(&mut self, answer: &Answer) -> Tried {
        let made = body!(*answer, CreateSession);
        self.session = Some(Session {
            id: made.sessionid,
            sequence: 0,
            fore: made.fore_chan_attrs,
            back: made.back_chan_attrs,
            flags: made.flags,
        });
        Ok(())
    }

    /// EXCHANGE_ID with the client's name.
    pub(crate) fn exchange_id(&mut self, verifier: Verifier4, flags: u32) -> Result<Answer, Stop> {
        let owner = self.owner.clone();
        let args = v4::ExchangeIdArgs {
            clientowner: v4::ClientOwner4 { verifier, ownerid: owner.as_bytes().into() },
            flags,
            state_protect: v4::StateProtect4A::None,
            client_impl_id: None,
        };
        self.plain(&[Argop::ExchangeId(args)])
    }

    /// CREATE_SESSION.
    pub(crate) fn create_session(
        &mut self,
        clientid: u64,
        sequence: u32,
        fore: ChannelAttrs4,
        back: ChannelAttrs4,
    ) -> Result<Answer, Stop> {
        let args = v4::CreateSessionArgs {
            clientid,
            sequence,
            flags: v4::CREATE_SESSION_CONN_BACK_CHAN,
            fore_chan_attrs: fore,
            back_chan_attrs: back,
            cb_program: CALLBACKS,
            sec_parms: List::Items(&[v4::CallbackSecParms4::Sys(self.user.auth_sys())]),
        };
        self.plain(&[Argop::CreateSession(args)])
    }

    /// Gives up session and client: nothing is left of it at the server (4.1).
    pub(crate) fn leave(&mut self) -> Tried {
        let Some(session) = self.session.take() else { return Ok(()) };
        self.plain(&[Argop::DestroySession(v4::DestroySessionArgs { sessionid: session.id })])?.ok()?;
        let clientid = self.clientid;
        self.plain(&[Argop::DestroyClientid(v4::DestroyClientidArgs { clientid })])?.ok().map(|_| ())
    }

    /// The next SEQUENCE on slot 0.
    pub(crate) fn sequence(&self, cachethis: bool) -> Option<v4::SequenceArgs> {
        let session = self.session.as_ref()?;
        Some(v4::SequenceArgs {
            sessionid: session.id,
            sequenceid: session.sequence.wrapping_add(1),
            slotid: 0,
            highest_slotid: 0,
            cachethis,
        })
    }

    /// Calls operations, after a SEQUENCE where there is a session; again while the server puts it off.
    pub(crate) fn compound(&mut self, ops: &[Argop<'_>]) -> Result<Answer, Stop> {
        for _ in 0..DELAYS {
            let answer = self.once(ops)?;
            if answer.status() != Nfsstat4::DELAY {
                return Ok(answer);
            }
            std::thread::sleep(PAUSE);
        }
        self.once(ops)
    }

    /// The same, but what is put off is not sent again.
    pub(crate) fn once(&mut self, ops: &[Argop<'_>]) -> Result<Answer, Stop> {
        let begun = self.begin(ops)?;
        self.finish(begun)
    }

    /// Sends a compound without waiting for its reply.
    pub(crate) fn begin(&mut self, ops: &[Argop<'_>]) -> Result<Begun, Stop> {
        match self.sequence(false) {
            None => self.send(ops, 0),
            Some(sequence) => {
                let mut all = vec![Argop::Sequence(sequence)];
                all.extend_from_slice(ops);
                let begun = self.send(&all, 1)?;
                if let Some(session) = &mut self.session {
                    session.sequence = sequence.sequenceid;
                }
                Ok(begun)
            }
        }
    }

    /// Calls operations as they are, without a SEQUENCE of its own.
    pub(crate) fn plain(&mut self, ops: &[Argop<'_>]) -> Result<Answer, Stop> {
        let begun = self.send(ops, 0)?;
        self.finish(begun)
    }

    /// Sends operations as they are.
    pub(crate) fn send(&mut self, ops: &[Argop<'_>], skip: usize) -> Result<Begun, Stop> {
        let sent = words_of(ops);
        let minorversion = self.minor;
        let encode = |e: &mut Encoder| {
            e.put(&CompoundHeader { tag: TAG.into(), minorversion, count: ops.len() as u32 });
            ops.iter().for_each(|op| e.put(op));
        };
        match self.connection.send(COMPOUND, Some(self.user), encode) {
            Ok(xid) => Ok(Begun { xid, sent, skip, numbers: ops.iter().map(Argop::opnum).collect() }),
            Err(trouble) => Err(Stop::Trouble { sent, trouble }),
        }
    }

    /// Waits for the reply.
    pub(crate) fn finish(&mut self, begun: Begun) -> Result<Answer, Stop> {
        let reply = self.connection.receive(begun.xid);
        let reply = reply.map_err(|trouble| Stop::Trouble { sent: begun.sent.clone(), trouble })?;
        begun.judge(&reply.rpc().map_err(|trouble| Stop::Trouble { sent: begun.sent.clone(), trouble })?)
    }

    /// Waits for the reply no longer than this; `None` when it does not come.
    pub(crate) fn finish_within(
        &mut self,
        begun: &Begun,
        patience: Duration,
    ) -> Result<Option<Answer>, Stop> {
        let stop = |trouble| Stop::Trouble { sent: begun.sent.clone(), trouble };
        match self.connection.receive_for(begun.xid, patience) {
            Ok(reply) => begun.judge(&reply.rpc().map_err(stop)?).map(Some),
            Err(Trouble::Silence { .. }) => Ok(None),
            Err(trouble) => Err(stop(trouble)),
        }
    }

    /// The next sequence number of an owner (4.0); any number with sessions.
    pub(crate) fn seqid(&self, owner: &[u8]) -> u32 {
        match self.minor {
            0 => self.seqids.get(owner).copied().unwrap_or(1),
            _ => 0,
        }
    }

    /// An operation of the owner was answered (4.0): its number is used up but for errors that say otherwise (RFC 7530
    /// §9.1.7).
    pub(crate) fn settle(&mut self, owner: &[u8], status: Nfsstat4) {
        if !status.keeps_seqid() {
            let next = self.seqid(owner).wrapping_add(1);
            self.seqids.insert(owner.to_vec(), next);
        }
    }

    /// Waits for a call of the server.
    pub(crate) fn called(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&Callback) -> bool,
    ) -> Result<Option<Callback>, Stop> {
        match &self.listener {
            Some(listener) => Ok(listener.called(patience, wanted)),
            None => self
                .connection
                .called(patience, wanted)
                .map_err(|trouble| Stop::Trouble { sent: "waiting for a callback".into(), trouble }),
        }
    }

    /// From now on CB_GETATTR is answered so.
    pub(crate) fn answer_getattr(&mut self, held: Option<Held>) {
        self.connection.held = held;
        if let Some(listener) = &self.listener {
            listener.hold(held);
        }
    }

    /// Forgets what the server called.
    pub(crate) fn forget_calls(&mut self) {
        self.connection.callbacks.clear();
        if let Some(listener) = &self.listener {
            listener.clear();
        }
    }
}

/// A compound whose reply has not come.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) xid: u32,
    pub(crate) sent: String,
    skip: usize,
    numbers: Vec<Opnum>,
}

impl Begun {
    /// Looks at the reply: it must decode, and have the form of the results of a compound (RFC 7530 §16.2.3).
    fn judge(&self, (rpc, results): &(RpcReply<'_>, &[u8])) -> Result<Answer, Stop> {
        let wrong = |came: String| Stop::failed(self.sent.clone(), came);
        if !matches!(rpc, RpcReply::Success(_)) {
            return Err(wrong(format!("{rpc:?}; results of COMPOUND are right")));
        }
        let malformed = |error| wrong(format!("the results cannot be decoded: {error}"));
        let mut res: CompoundRes<'_> = Decoder::new(results).get().map_err(malformed)?;
        if res.tag.0 != TAG.as_bytes() {
            return Err(wrong(format!("the tag {:?}; that of the request, `{TAG}`, is right", res.tag)));
        }
        let (mut number, mut last) = (0, Nfsstat4::OK);
        while let Some(result) = res.results.take::<Resop<'_>>() {
            let result = result.map_err(malformed)?;
            if last != Nfsstat4::OK {
                return Err(wrong(format!("results after {last}; a compound ends with the first error")));
            }
            last = result.status();
            let asked = self.numbers.get(number).copied();
            if result.opnum() != Opnum::ILLEGAL && asked != Some(result.opnum()) {
                let came = format!("a result of {} in place {number}", result.opnum());
                return Err(wrong(format!(
                    "{came}; results are of the operations asked for, in their order"
                )));
            }
            number += 1;
        }
        // A compound that is refused as a whole has no results.
        if (number > 0 && last != res.status)
            || (last == Nfsstat4::OK && res.status == Nfsstat4::OK && number != self.numbers.len())
        {
            return Err(wrong(format!(
                "status {} with {number} results, of which the last is {last}; the status is that of the last \
                 operation carried out",
                res.status
            )));
        }
        Ok(Answer { sent: self.sent.clone(), bytes: results.to_vec(), skip: self.skip })
    }
}

/// Operations in words, without SEQUENCE: `LOOKUP { objname: "x" }`.
fn words_of(ops: &[Argop<'_>]) -> String {
    let shown = ops.iter().filter(|op| ops.len() == 1 || !matches!(op, Argop::Sequence(_)));
    let text = |op: &Argop<'_>| {
        let debug = format!("{op:?}");
        let inner = debug.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
        let fields = inner.split_once("Args ").map_or(inner, |(_, fields)| fields);
        brief(format!("{} {fields}", op.opnum().to_string().trim_start_matches("OP_")).trim_end())
    };
    let texts: Vec<String> = shown.map(text).collect();
    texts.join(", ")
}
