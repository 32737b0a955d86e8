use std::time::Duration;

use benchmaster_nfs_proto::v4::{
    Argop, Bitmap4, CallbackSecParms4, ChannelAttrs4, ChannelDirFromClient4, ChannelDirFromServer4,
    ClientOwner4, EXCHGID_MASK_PNFS, GetattrArgs, GssCbHandles4, Resop, RpcGssSvc, SsvSpParms4,
    StateProtectOps4,
};
use benchmaster_nfs_proto::xdr::{List, Opaque};

use super::*;
use crate::config::ServerConfig;
use crate::state::{Callback, ConnectionId, Effect};
use crate::v4::testing::{Client, Results, server};

const ROOT: Argop<'static> = Argop::Putrootfh;
const CHANNEL: ChannelAttrs4 = ChannelAttrs4 {
    headerpadsize: 0,
    maxrequestsize: 8192,
    maxresponsesize: 8192,
    maxresponsesize_cached: 8192,
    maxoperations: 8,
    maxrequests: 4,
    rdma_ird: None,
};

fn exchange<'a>(owner: &'a [u8], state_protect: StateProtect4A<'a>) -> Argop<'a> {
    let clientowner = ClientOwner4 { verifier: [1; 8], ownerid: owner.into() };
    Argop::ExchangeId(ExchangeIdArgs { clientowner, flags: 0, state_protect, client_impl_id: None })
}

/// A request on slot 0 with this distance from the last sequence number (1 is a new one, 0 a retry).
fn at(client: &Client<'_>, delta: u32, cachethis: bool) -> Argop<'static> {
    let (sessionid, last) = client.session.unwrap();
    let sequenceid = last.wrapping_add(delta);
    Argop::Sequence(SequenceArgs { sessionid, sequenceid, slotid: 0, highest_slotid: 0, cachethis })
}

fn statuses(results: &Results) -> Vec<Nfsstat4> {
    results.all().iter().map(Resop::status).collect()
}

/// The same client over another connection.
fn elsewhere<'s>(client: &Client<'s>, number: u16) -> Client<'s> {
    let mut other = Client::new(client.server, client.minor, number);
    (other.session, other.clientid) = (client.session, client.clientid);
    other
}

#[test]
fn exchange_id_names_the_server_and_refuses_what_needs_gss() {
    let server = server(ServerConfig::default());
    let mut client = Client::new(&server, 1, 1);
    let results = client.plain(&[exchange(b"a", StateProtect4A::None)]);
    let Resop::ExchangeId(Ok(first)) = results.last() else { panic!("{results:?}") };
    assert_eq!((first.sequenceid, first.flags & EXCHGID_MASK_PNFS), (1, EXCHGID_USE_NON_PNFS));
    assert_eq!(first.flags & EXCHGID_CONFIRMED_R, 0);
    assert!(!first.server_owner.major_id.0.is_empty() && !first.server_scope.0.is_empty());
    assert_eq!(client.done.client, Some(ClientId(first.clientid)));
    client.create_session(1, CHANNEL);
    let again = client.plain(&[exchange(b"client 1", StateProtect4A::None)]);
    let Resop::ExchangeId(Ok(again)) = again.last() else { panic!() };
    assert_eq!((again.clientid, again.flags & EXCHGID_CONFIRMED_R), (client.clientid, EXCHGID_CONFIRMED_R));

    let ops = StateProtectOps4 { must_enforce: Bitmap4::EMPTY, must_allow: Bitmap4::EMPTY };
    let ssv = SsvSpParms4 {
        ops,
        hash_algs: List::default(),
        encr_algs: List::default(),
        window: 1,
        num_gss_handles: 1,
    };
    for (protect, status) in [
        (StateProtect4A::MachCred(ops), Nfsstat4::INVAL),
        (StateProtect4A::Ssv(ssv), Nfsstat4::ENCR_ALG_UNSUPP),
    ] {
        assert_eq!(client.plain(&[exchange(b"b", protect)]).status(), status);
    }
}

#[test]
fn a_retry_gets_the_reply_byte_by_byte_or_learns_that_it_was_not_kept() {
    let server = server(ServerConfig::default());
    let mut client = Client::with_session(&server, 1, 1);
    let get = Argop::Getattr(GetattrArgs { attr_request: Bitmap4::EMPTY });
    for (ops, cache, kept) in [
        (vec![], false, true),
        (vec![ROOT, get], true, true),
        (vec![ROOT, get], false, false),
        (
            vec![ROOT, Argop::Lookup(benchmaster_nfs_proto::v4::LookupArgs { objname: "none".into() })],
            true,
            true,
        ),
        // What RETRY_UNCACHED_REP must not stand for.
        (vec![Argop::Illegal(10_044)], false, true),
    ] {
        client.cache_this = cache;
        let original = client.run(&ops);
        let retry: Vec<_> = std::iter::once(at(&client, 0, cache)).chain(ops.iter().copied()).collect();
        let again = elsewhere(&client, 9).plain(&retry);
        if kept {
            assert_eq!(again.bytes, original.bytes, "{ops:?}");
        } else {
            assert_eq!(statuses(&again), [Nfsstat4::OK, Nfsstat4::RETRY_UNCACHED_REP]);
            assert_eq!(again.status(), Nfsstat4::RETRY_UNCACHED_REP);
        }
    }
    // Another user asks for the reply.
    client.run(&[ROOT]);
    let mut thief = elsewhere(&client, 9);
    thief.who.uid = 5;
    assert_eq!(statuses(&thief.plain(&[at(&client, 0, false), ROOT])), [Nfsstat4::SEQ_FALSE_RETRY]);
    assert_eq!(statuses(&thief.plain(&[at(&client, 3, false), ROOT])), [Nfsstat4::SEQ_MISORDERED]);
}

#[test]
fn sequence_fails_as_a_whole() {
    let server = server(ServerConfig::default());
    let mut client = Client::new(&server, 1, 1);
    client.create_session(1, ChannelAttrs4 { maxrequestsize: 300, maxresponsesize_cached: 10, ..CHANNEL });
    let unknown =
        SequenceArgs { sessionid: [1; 16], sequenceid: 1, slotid: 0, highest_slotid: 0, cachethis: false };
    let bad_slot = SequenceArgs { sessionid: client.session.unwrap().0, slotid: 4, ..unknown };
    let long = [b'x'; 400];
    let long = Argop::Lookup(benchmaster_nfs_proto::v4::LookupArgs { objname: long[..].into() });
    for (ops, status) in [
        (vec![Argop::Sequence(unknown), ROOT], Nfsstat4::BADSESSION),
        (vec![Argop::Sequence(bad_slot), ROOT], Nfsstat4::BADSLOT),
        (vec![at(&client, 1, false), ROOT, long], Nfsstat4::REQ_TOO_BIG),
        ([&[at(&client, 1, false)][..], &[ROOT; 8]].concat(), Nfsstat4::TOO_MANY_OPS),
        (vec![at(&client, 1, true)], Nfsstat4::REP_TOO_BIG_TO_CACHE),
    ] {
        assert_eq!(statuses(&client.plain(&ops)), [status]);
    }
    assert_eq!(client.run(&[ROOT]).status(), Nfsstat4::OK, "the slot is as it was");
}

#[test]
fn connections_join_by_sequence_or_are_bound() {
    let server = server(ServerConfig::default());
    let client = Client::with_session(&server, 1, 1);
    let (sessid, _) = client.session.unwrap();
    let bind =
        |dir| Argop::BindConnToSession(BindConnToSessionArgs { sessid, dir, use_conn_in_rdma_mode: true });
    let destroy = Argop::DestroySession(DestroySessionArgs { sessionid: sessid });
    let mut stranger = Client::new(&server, 1, 2);
    assert_eq!(stranger.plain(&[destroy]).status(), Nfsstat4::CONN_NOT_BOUND_TO_SESSION);
    let bound = stranger.plain(&[bind(ChannelDirFromClient4::BackOrBoth)]);
    let Resop::BindConnToSession(Ok(bound)) = bound.last() else { panic!("{bound:?}") };
    assert_eq!(
        (bound.sessid, bound.dir, bound.use_conn_in_rdma_mode),
        (sessid, ChannelDirFromServer4::Both, false)
    );
    assert_eq!(stranger.effects, [Effect::Call(ClientId(client.clientid), Callback::Probe)]);
    assert_eq!(stranger.plain(&[bind(ChannelDirFromClient4::Fore)]).status(), Nfsstat4::INVAL);
    // A SEQUENCE is enough to belong to the session.
    let mut joining = elsewhere(&client, 3);
    assert_eq!(joining.run(&[ROOT]).status(), Nfsstat4::OK);
    assert_eq!(joining.plain(&[destroy]).status(), Nfsstat4::OK);
    assert_eq!(joining.plain(&[destroy]).status(), Nfsstat4::BADSESSION);
    assert_eq!(joining.run(&[ROOT]).status(), Nfsstat4::BADSESSION);
    assert_eq!(stranger.plain(&[bind(ChannelDirFromClient4::Fore)]).status(), Nfsstat4::BADSESSION);
}

#[test]
fn a_request_may_destroy_its_own_session_at_its_end() {
    let server = server(ServerConfig::default());
    let mut client = Client::with_session(&server, 1, 1);
    let destroy = Argop::DestroySession(DestroySessionArgs { sessionid: client.session.unwrap().0 });
    assert_eq!(client.run(&[destroy, ROOT]).status(), Nfsstat4::NOT_ONLY_OP);
    assert_eq!(client.run(&[ROOT, destroy]).status(), Nfsstat4::OK);
    assert_eq!(client.plain(&[at(&client, 0, false), ROOT, destroy]).status(), Nfsstat4::BADSESSION);
    let gone = Argop::DestroyClientid(DestroyClientidArgs { clientid: client.clientid });
    assert_eq!(client.plain(&[gone]).status(), Nfsstat4::OK);
    assert_eq!(client.plain(&[gone]).status(), Nfsstat4::STALE_CLIENTID);
}

#[test]
fn a_session_being_used_is_not_destroyed() {
    let server = server(ServerConfig::default());
    let mut client = Client::with_session(&server, 1, 1);
    let (sessionid, last) = client.session.unwrap();
    let session = server.state.session(&sessionid).unwrap();
    let args = SequenceArgs { sessionid, sequenceid: 1, slotid: 2, highest_slotid: 2, cachethis: false };
    let request = Request { len: 100, tag: b"", operations: 1, rest: b"" };
    let running = session.begin(ConnectionId(1), &client.who, &args, &request, client.now.instant);
    let destroy = Argop::DestroySession(DestroySessionArgs { sessionid });
    assert_eq!(client.plain(&[destroy]).status(), Nfsstat4::DELAY);
    assert_eq!(client.run(&[destroy]).status(), Nfsstat4::DELAY);
    drop(running);
    assert_eq!(client.plain(&[destroy]).status(), Nfsstat4::OK);
    assert!(last > 0);
}

#[test]
fn reclaim_complete_is_once_and_for_all_file_systems() {
    let server = server(ServerConfig::default());
    let mut client = Client::new(&server, 1, 1);
    client.create_session(1, CHANNEL);
    let complete = |one_fs| Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs });
    assert_eq!(client.run(&[complete(true)]).status(), Nfsstat4::NOFILEHANDLE);
    assert_eq!(client.run(&[ROOT, complete(true)]).status(), Nfsstat4::OK);
    assert_eq!(client.run(&[complete(false)]).status(), Nfsstat4::OK);
    assert_eq!(client.run(&[complete(false)]).status(), Nfsstat4::COMPLETE_ALREADY);
    assert_eq!(client.run(&[ROOT, complete(true)]).status(), Nfsstat4::OK);
}

#[test]
fn backchannel_ctl_changes_program_and_credential() {
    let server = server(ServerConfig::default());
    let mut client = Client::with_session(&server, 1, 1);
    let gss = [CallbackSecParms4::Gss(GssCbHandles4 {
        service: RpcGssSvc::None,
        handle_from_server: Opaque(b"s"),
        handle_from_client: Opaque(b"c"),
    })];
    let control = |sec_parms| Argop::BackchannelCtl(BackchannelCtlArgs { cb_program: 99, sec_parms });
    assert_eq!(client.run(&[control(List::Items(&gss))]).status(), Nfsstat4::NOENT);
    let session = server.state.session(&client.session.unwrap().0).unwrap();
    assert_ne!(session.back().lock().program, 99);
    assert_eq!(client.run(&[control(List::Items(&[CallbackSecParms4::None]))]).status(), Nfsstat4::OK);
    assert_eq!(session.back().lock().program, 99);
    let ssv = Argop::SetSsv(SetSsvArgs { ssv: Opaque(b"x"), digest: Opaque(b"y") });
    assert_eq!(client.run(&[ssv]).status(), Nfsstat4::INVAL);
}

#[test]
fn sequence_renews_the_lease_and_an_expired_client_has_no_session() {
    let server = server(ServerConfig::default());
    let mut client = Client::with_session(&server, 1, 1);
    let id = ClientId(client.clientid);
    client.wait(Duration::from_secs(100));
    assert!(server.state.clients().clients().is_courtesy(id, client.now.instant));
    assert_eq!(client.run(&[ROOT]).status(), Nfsstat4::OK, "by courtesy");
    assert!(!server.state.clients().clients().is_courtesy(id, client.now.instant));
    {
        let mut all = server.state.all();
        let (clients, files) = all.split();
        clients.expire(files, id, &mut client.effects);
    }
    assert_eq!(client.run(&[ROOT]).status(), Nfsstat4::BADSESSION);
}
