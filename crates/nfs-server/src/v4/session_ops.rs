//! Operations of clients with sessions (RFC 8881 §18.33 to §18.37, §18.46, §18.47, §18.50, §18.51).

use std::sync::Arc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    BackchannelCtlArgs, BindConnToSessionArgs, BindConnToSessionOk, CreateSessionArgs, DestroyClientidArgs,
    DestroySessionArgs, EXCHGID_CONFIRMED_R, EXCHGID_USE_NON_PNFS, ExchangeIdArgs, ExchangeIdOk, NfsImplId4,
    Nfsstat4, Nfstime4, ReclaimCompleteArgs, SequenceArgs, ServerOwner4, SetSsvArgs, StateProtect4A,
    StateProtect4R,
};

use super::{Compound, OpResult};
use crate::cred::Credentials;
use crate::moment::Moment;
use crate::peer::Peer;
use crate::shared::Shared;
use crate::state::ClientId;
use crate::state::backchannel::{BackConnection, Credential};
use crate::state::client::{CreateSession, ExchangeId, Principal};
use crate::state::session::{Begun, Request, Session};

/// A leading SEQUENCE: finds the session and claims the slot. `known`: the session of the connection's last request,
/// which is most likely that of this one.
#[inline]
pub(crate) fn begin<'s>(
    server: &Shared,
    known: &'s mut Option<Arc<Session>>,
    peer: &Peer,
    who: &Credentials,
    args: &SequenceArgs,
    request: &Request<'_>,
    now: Moment,
) -> Begun<'s> {
    if !known.as_ref().is_some_and(|session| session.id() == args.sessionid && !session.is_dead()) {
        *known = server.state.session(&args.sessionid);
    }
    match known {
        Some(session) => session.begin(peer.connection, who, args, request, now.instant),
        None => Begun::Status(Nfsstat4::BADSESSION),
    }
}

pub(crate) fn exchange_id(c: &mut Compound<'_>, args: ExchangeIdArgs<'_>) -> OpResult {
    match args.state_protect {
        StateProtect4A::None => {}
        // Not offered, whatever the call's flavour: clients then go on without (RFC 8881 §18.35.3). No algorithm that
        // one can offer for SSV is known.
        StateProtect4A::MachCred(_) => return Err(Nfsstat4::INVAL.into()),
        StateProtect4A::Ssv(_) => return Err(Nfsstat4::ENCR_ALG_UNSUPP.into()),
    }
    let request = ExchangeId {
        verifier: args.clientowner.verifier,
        owner: args.clientowner.ownerid.0,
        host: c.peer.address.ip().to_canonical(),
        flags: args.flags,
        minor: c.minor,
    };
    let exchanged = {
        let mut all = c.server.state.all();
        let (clients, files) = all.split();
        clients.exchange_id(files, &request, Principal::from(c.who), c.now.instant, c.effects)?
    };
    c.client = c.client.or(Some(exchanged.client));
    // One name for owner and scope: client ids and state are shared with no other server.
    let address = if is_broken(Mutant::OwnerOfAddress) { c.peer.local } else { c.server.address };
    let name = format!("benchmaster-{:08x}@{address}", c.server.instance);
    let implementation = NfsImplId4 {
        domain: "benchmaster".into(),
        name: concat!("benchmaster ", env!("CARGO_PKG_VERSION")).into(),
        date: Nfstime4::default(),
    };
    c.answer(&ExchangeIdOk {
        clientid: exchanged.client.0,
        sequenceid: exchanged.sequence,
        flags: EXCHGID_USE_NON_PNFS | if exchanged.confirmed { EXCHGID_CONFIRMED_R } else { 0 },
        state_protect: StateProtect4R::None,
        server_owner: ServerOwner4 { minor_id: 0, major_id: name.as_bytes().into() },
        server_scope: name.as_bytes().into(),
        server_impl_id: Some(implementation),
    })
}

pub(crate) fn create_session(c: &mut Compound<'_>, args: CreateSessionArgs<'_>) -> OpResult {
    let (connection, back) = (c.peer.connection, back_connection(c.peer));
    let request = CreateSession { args: &args, minor: c.minor, connection, back };
    let created = {
        let mut all = c.server.state.all();
        let (clients, files) = all.split();
        clients.create_session(files, request, Principal::from(c.who), c.now.instant, c.effects)?
    };
    c.client = c.client.or(Some(ClientId(args.clientid)));
    c.answer(&created)
}

pub(crate) fn destroy_session(c: &mut Compound<'_>, args: DestroySessionArgs) -> OpResult {
    let own = c.session.as_ref().filter(|(session, _)| session.id() == args.sessionid).map(|(_, slot)| *slot);
    c.server.state.all().clients().destroy_session(&args.sessionid, c.peer.connection, own)?;
    Ok(())
}

pub(crate) fn bind_conn_to_session(c: &mut Compound<'_>, args: BindConnToSessionArgs) -> OpResult {
    if is_broken(Mutant::SessionOfAddress) && c.peer.local != c.server.address {
        return Err(Nfsstat4::BADSESSION.into());
    }
    let session = c.server.state.session(&args.sessid).ok_or(Nfsstat4::BADSESSION)?;
    let dir = session.bind(c.peer.connection, back_connection(c.peer), args.dir)?;
    c.client = c.client.or(Some(session.client()));
    c.server.state.all().clients().back_channel_changed(session.client(), c.effects);
    c.answer(&BindConnToSessionOk { sessid: args.sessid, dir, use_conn_in_rdma_mode: false })
}

pub(crate) fn backchannel_ctl(c: &mut Compound<'_>, args: BackchannelCtlArgs<'_>) -> OpResult {
    let (session, _) = c.session.as_ref().ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let credential = Credential::choose(&args.sec_parms)?;
    {
        let mut back = session.back().lock();
        back.program = args.cb_program;
        if !args.sec_parms.is_empty() {
            back.credential = credential;
        }
    }
    let client = session.client();
    c.server.state.all().clients().back_channel_changed(client, c.effects);
    Ok(())
}

pub(crate) fn destroy_clientid(c: &mut Compound<'_>, args: DestroyClientidArgs) -> OpResult {
    let own = c.session.as_ref().map(|(session, _)| session.client());
    let mut all = c.server.state.all();
    let (clients, files) = all.split();
    clients.destroy_clientid(files, ClientId(args.clientid), own, c.now.instant, c.effects)?;
    Ok(())
}

/// RECLAIM_COMPLETE. For one file system it means the end of a migration, of which there are none here: without effect
/// (RFC 8881 §18.51.3).
pub(crate) fn reclaim_complete(c: &mut Compound<'_>, args: ReclaimCompleteArgs) -> OpResult {
    if args.one_fs {
        c.file()?;
        return Ok(());
    }
    let (session, _) = c.session.as_ref().ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    c.server.state.all().clients().reclaim_complete(session.client())?;
    Ok(())
}

/// SET_SSV: for clients with SP4_SSV only, of which there are none (RFC 8881 §18.47.3: INVAL otherwise).
pub(crate) fn set_ssv(_: &mut Compound<'_>, _: SetSsvArgs<'_>) -> OpResult {
    Err(Nfsstat4::INVAL.into())
}

fn back_connection(peer: &Peer) -> Option<BackConnection> {
    let outbox = peer.outbox.clone()?;
    Some(BackConnection { id: peer.connection, outbox })
}

#[cfg(test)]
mod tests;
