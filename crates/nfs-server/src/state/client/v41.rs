//! Clients with sessions: EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION, DESTROY_CLIENTID, RECLAIM_COMPLETE
//! (RFC 8881 §18.35 to §18.37, §18.50, §18.51).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use benchmaster_nfs_proto::v4::{
    CREATE_SESSION_CONN_BACK_CHAN, CREATE_SESSION_CONN_RDMA, CREATE_SESSION_PERSIST, ChannelAttrs4,
    CreateSessionArgs, CreateSessionOk, EXCHGID_MASK_A, EXCHGID_SUPP_FENCE_OPS, EXCHGID_UPD_CONFIRMED_REC_A,
    Nfsstat4, SEQ_STATUS_RESTART_RECLAIM_NEEDED, Sessionid4, Verifier4,
};

use super::budget::Kept;
use super::record::{Kind, Principal, Sessioned};
use super::{ClientId, Clients, NewRecord, kept};
use crate::state::backchannel::{BackChannel, BackConnection, Credential};
use crate::state::session::{MIN_REPLY, MIN_REQUEST, Session};
use crate::state::shards::AllFiles;
use crate::state::{Callback, ConnectionId, Effect, Effects};

/// `eir_sequenceid` of every new client.
const FIRST_SEQUENCE: u32 = 1;
/// What RPC and COMPOUND add to the data of a READ or WRITE, with room for AUTH_SYS and further operations.
const HEADROOM: u32 = 4096;
/// Largest reply kept.
const MAX_CACHED: u32 = 16 << 10;
/// Most operations of a request.
const MAX_OPERATIONS: u32 = 256;
/// Most sessions of a client.
const MAX_SESSIONS: usize = 64;
/// Bytes of a CB_COMPOUND of CB_SEQUENCE and CB_RECALL: RPC header with AUTH_NONE 40, CB_COMPOUND 16, CB_SEQUENCE 44
/// and 32 of a referring call, CB_RECALL 60.
const MIN_BACK_REQUEST: u32 = 192;
/// Bytes of its reply: RPC header 24, CB_COMPOUND 12, CB_SEQUENCE 44, CB_RECALL 8.
const MIN_BACK_REPLY: u32 = 88;

/// Arguments of EXCHANGE_ID that the record depends on.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeId<'a> {
    /// Changes when the client restarts.
    pub verifier: Verifier4,
    /// Identity of the client, the same after a restart.
    pub owner: &'a [u8],
    /// Where the request came from.
    pub host: IpAddr,
    /// `EXCHGID_` flags.
    pub flags: u32,
    /// Minor version of the request.
    pub minor: u32,
}

/// Result of EXCHANGE_ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    /// Client id.
    pub client: ClientId,
    /// Sequence number for CREATE_SESSION.
    pub sequence: u32,
    /// Whether the record is confirmed.
    pub confirmed: bool,
}

/// A CREATE_SESSION: arguments, and the connection that it came over.
#[derive(Debug)]
pub struct CreateSession<'a> {
    /// Arguments as received.
    pub args: &'a CreateSessionArgs<'a>,
    /// Minor version of the request.
    pub minor: u32,
    /// Connection of the request, which joins the session.
    pub connection: ConnectionId,
    /// The same, where it can carry calls to the client.
    pub back: Option<BackConnection>,
}

impl Clients {
    /// EXCHANGE_ID, by the nine cases of RFC 8881 §18.35.4.
    pub fn exchange_id(
        &mut self,
        files: &mut AllFiles<'_>,
        args: &ExchangeId<'_>,
        principal: Principal,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Exchanged, Nfsstat4> {
        // RFC 8881 §18.35.1 defines these flags of a request, whatever the minor version: fencing by operations
        // (RFC 7862 §14.1) is not served, and as Linux's server does, its bit is refused.
        if args.flags & !(EXCHGID_MASK_A & !EXCHGID_SUPP_FENCE_OPS) != 0
            && !is_broken(Mutant::ClientFlagsUnchecked)
        {
            return Err(Nfsstat4::INVAL);
        }
        let update = args.flags & EXCHGID_UPD_CONFIRMED_REC_A != 0;
        let confirmed = self.owner_records(1, args.owner).confirmed.and_then(|id| self.by_id.get(&id));
        if let Some(client) = confirmed {
            let Kind::Session(state) = &client.kind else { return Err(Nfsstat4::SERVERFAULT) };
            let found =
                Exchanged { client: client.id(), sequence: state.sequence.wrapping_add(1), confirmed: true };
            let same = (client.verifier == args.verifier, client.principal == principal);
            match (update, same) {
                (true, (true, true)) => return Ok(found),             // 6: update
                (true, (false, _)) => return Err(Nfsstat4::NOT_SAME), // 8: wrong verifier
                (true, (true, false)) => return Err(Nfsstat4::PERM),  // 9: wrong principal
                (false, (true, true)) => return Ok(found),            // 2: retry or trunking
                (false, (_, false)) => {
                    // 3: collision, unless the other has nothing to lose.
                    let idle = state.sessions.is_empty() && !files.client_has_state(found.client);
                    if !idle && !self.is_courtesy(found.client, now) {
                        return Err(Nfsstat4::CLID_INUSE);
                    }
                    self.remove(files, found.client, effects);
                }
                (false, (false, true)) => {} // 5: restart; the old record lives until the new one is confirmed
            }
        } else if update && !is_broken(Mutant::UpdateMakesClient) {
            return Err(Nfsstat4::NOENT); // 7
        }
        // 1, and 4: an unconfirmed record is always replaced.
        let kind = Kind::Session(Sessioned {
            sessions: Vec::new(),
            sequence: FIRST_SEQUENCE.wrapping_sub(1),
            created: Err(Nfsstat4::SEQ_MISORDERED),
            reclaim_complete: false,
        });
        let new = NewRecord { owner: args.owner, host: args.host, verifier: args.verifier, principal, kind };
        let client = self.add_unconfirmed(files, new, now, effects).ok_or(Nfsstat4::DELAY)?;
        Ok(Exchanged { client, sequence: FIRST_SEQUENCE, confirmed: false })
    }

    /// CREATE_SESSION (RFC 8881 §18.36.4). A request that fails uses up its sequence number, but not for good: what
    /// comes with the same number again is executed, as nothing was done, be it a retry or a better request of a
    /// client that counts successes only.
    pub fn create_session(
        &mut self,
        files: &mut AllFiles<'_>,
        request: CreateSession<'_>,
        principal: Principal,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<CreateSessionOk, Nfsstat4> {
        let (id, sequence) = (ClientId(request.args.clientid), request.args.sequence);
        let client = self.by_id.get(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let Kind::Session(state) = &client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        if sequence == state.sequence {
            if matches!(state.created, Ok(_) | Err(Nfsstat4::SEQ_MISORDERED)) {
                return state.created;
            }
        } else if sequence != state.sequence.wrapping_add(1) {
            return Err(Nfsstat4::SEQ_MISORDERED);
        }
        let created = self.make_session(files, request, principal, now, effects);
        if let Some(Kind::Session(state)) = self.by_id.get_mut(&id).map(|client| &mut client.kind) {
            (state.sequence, state.created) = (sequence, created);
        }
        created
    }

    /// Confirms the client and creates the session: the last two phases of CREATE_SESSION.
    fn make_session(
        &mut self,
        files: &mut AllFiles<'_>,
        request: CreateSession<'_>,
        principal: Principal,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<CreateSessionOk, Nfsstat4> {
        let CreateSession { args, minor, connection, back } = request;
        let id = ClientId(args.clientid);
        let client = self.by_id.get(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let Kind::Session(state) = &client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        if !client.confirmed && client.principal != principal {
            return Err(Nfsstat4::CLID_INUSE);
        }
        let known = CREATE_SESSION_PERSIST | CREATE_SESSION_CONN_BACK_CHAN | CREATE_SESSION_CONN_RDMA;
        if args.flags & !known != 0 {
            return Err(Nfsstat4::INVAL);
        }
        let mut fore_chan_attrs = self.fore_attributes(&args.fore_chan_attrs)?;
        let back_chan_attrs = back_attributes(&args.back_chan_attrs)?;
        let credential = Credential::choose(&args.sec_parms)?;
        if state.sessions.len() >= MAX_SESSIONS {
            return Err(Nfsstat4::NOSPC);
        }
        let wanted =
            Kept { slots: fore_chan_attrs.maxrequests, reply: fore_chan_attrs.maxresponsesize_cached };
        let kept = loop {
            match self.replies.offer(id, wanted) {
                Some(kept) => break kept,
                // Those who let their leases run out keep replies that no client will ask for.
                None if self.make_room(files, None, now, effects) => {}
                None => return Err(Nfsstat4::NOSPC),
            }
        };
        let client = self.by_id.get(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let slots = kept.slots;
        (fore_chan_attrs.maxrequests, fore_chan_attrs.maxresponsesize_cached) = (slots, kept.reply);
        let (back_request, back_slots) = (back_chan_attrs.maxrequestsize, back_chan_attrs.maxrequests);
        let mut channel = BackChannel::new(args.cb_program, credential, minor, back_request, back_slots);
        let wanted = args.flags & CREATE_SESSION_CONN_BACK_CHAN != 0 && back_slots > 0;
        let back = back.filter(|_| wanted);
        let flags = if back.is_some() { CREATE_SESSION_CONN_BACK_CHAN } else { 0 };
        if let Some(back) = back {
            channel.add(back);
        }
        let sessionid = self.sessions.next_id();
        let session = Session::new(sessionid, client.lease.clone(), fore_chan_attrs, slots, channel)
            .sharing(&self.sessions);
        let session = Arc::new(session);
        session.add_fore(connection);
        let created =
            CreateSessionOk { sessionid, sequence: args.sequence, flags, fore_chan_attrs, back_chan_attrs };
        if !client.confirmed {
            self.confirm(files, id, now, effects);
        }
        self.replies.take(id, kept);
        self.sessions.insert(session.clone());
        let client = self.by_id.get_mut(&id).ok_or(Nfsstat4::SERVERFAULT)?;
        client.lease.renew(now);
        if let Kind::Session(state) = &mut client.kind {
            state.sessions.push(session);
        }
        client.refresh_paths();
        effects.push(Effect::Call(id, Callback::Probe));
        self.share_slots(id, effects);
        Ok(created)
    }

    /// Shares out what sessions should have outstanding; others than `new`, whose next SEQUENCE says it, are called where
    /// that is less than before.
    fn share_slots(&self, new: ClientId, effects: &mut Effects) {
        let Some(highest) = self.sessions.share_out() else { return };
        if is_broken(Mutant::SlotsNotRecalled) {
            return;
        }
        for (id, client) in &self.by_id {
            let more = |session: &Arc<Session>| session.slot_count() as u32 > highest + 1;
            if *id != new && matches!(&client.kind, Kind::Session(state) if state.sessions.iter().any(more)) {
                effects.push(Effect::Call(*id, Callback::RecallSlots { highest }));
            }
        }
    }

    /// DESTROY_SESSION from a request on `connection`; `slot` is the slot that this very request occupies, where it
    /// runs in the session.
    pub fn destroy_session(
        &mut self,
        id: &Sessionid4,
        connection: ConnectionId,
        slot: Option<u32>,
    ) -> Result<(), Nfsstat4> {
        let session = self.sessions.get(id).ok_or(Nfsstat4::BADSESSION)?;
        if !session.has_connection(connection) {
            return Err(Nfsstat4::CONN_NOT_BOUND_TO_SESSION);
        }
        if session.busy(slot) {
            return Err(Nfsstat4::DELAY);
        }
        session.kill();
        self.sessions.remove(id);
        self.sessions.share_out();
        self.replies.give_back(session.client(), kept(&session));
        if let Some(client) = self.by_id.get_mut(&session.client()) {
            if let Kind::Session(state) = &mut client.kind {
                state.sessions.retain(|known| known.id() != *id);
            }
            client.refresh_paths();
        }
        Ok(())
    }

    /// DESTROY_CLIENTID; `own` is the client whose session the request runs in.
    pub fn destroy_clientid(
        &mut self,
        files: &mut AllFiles<'_>,
        id: ClientId,
        own: Option<ClientId>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        let client = self.by_id.get(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let Kind::Session(state) = &client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        let holds = !state.sessions.is_empty() || files.client_has_state(id);
        if own == Some(id) || holds && client.lease.age(now) <= self.lease {
            return Err(Nfsstat4::CLIENTID_BUSY);
        }
        self.remove(files, id, effects);
        Ok(())
    }

    /// RECLAIM_COMPLETE for all file systems.
    pub fn reclaim_complete(&mut self, id: ClientId) -> Result<(), Nfsstat4> {
        let client = self.by_id.get_mut(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let Kind::Session(state) = &mut client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        if state.reclaim_complete {
            return Err(Nfsstat4::COMPLETE_ALREADY);
        }
        state.reclaim_complete = true;
        client.lease.set_flags(SEQ_STATUS_RESTART_RECLAIM_NEEDED, false);
        if self.grace.lasts() {
            self.grace.done(&client.owner);
        }
        Ok(())
    }

    /// A connection was tied to a back channel: what waits for one is tried again.
    pub fn back_channel_changed(&mut self, id: ClientId, effects: &mut Effects) {
        if let Some(client) = self.by_id.get(&id) {
            client.refresh_paths();
            effects.push(Effect::Call(id, Callback::Probe));
        }
    }

    fn fore_attributes(&self, asked: &ChannelAttrs4) -> Result<ChannelAttrs4, Nfsstat4> {
        let message = self.max_io.saturating_add(HEADROOM);
        let fits = asked.maxrequestsize >= MIN_REQUEST
            && asked.maxresponsesize >= MIN_REPLY
            && asked.maxoperations > 0
            && asked.maxrequests > 0;
        if !fits {
            return Err(Nfsstat4::TOOSMALL);
        }
        let maxresponsesize = asked.maxresponsesize.min(message);
        Ok(ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: asked.maxrequestsize.min(message),
            maxresponsesize,
            maxresponsesize_cached: asked.maxresponsesize_cached.min(MAX_CACHED).min(maxresponsesize),
            maxoperations: asked.maxoperations.min(MAX_OPERATIONS),
            maxrequests: asked.maxrequests.min(self.slots),
            rdma_ird: asked.rdma_ird,
        })
    }
}

/// The back channel's attributes: as offered, for the client is the replier there. One that could not carry a recall is
/// TOOSMALL; all zero means that the client wants none.
fn back_attributes(asked: &ChannelAttrs4) -> Result<ChannelAttrs4, Nfsstat4> {
    let sizes = [asked.maxrequestsize, asked.maxresponsesize, asked.maxoperations, asked.maxrequests];
    let fits = asked.maxrequestsize >= MIN_BACK_REQUEST
        && asked.maxresponsesize >= MIN_BACK_REPLY
        && asked.maxoperations >= 2
        && asked.maxrequests > 0;
    if fits || sizes == [0; 4] {
        Ok(ChannelAttrs4 { headerpadsize: 0, ..*asked })
    } else {
        Err(Nfsstat4::TOOSMALL)
    }
}
