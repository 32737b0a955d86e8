//! EXCHANGE_ID by the nine cases of RFC 8881 §18.35.4, sessions by §18.36.4 and §18.37, and the rest.

use benchmaster_nfs_proto::v4::{
    CREATE_SESSION_CONN_BACK_CHAN, CallbackSecParms4, ChannelAttrs4, CreateSessionArgs, CreateSessionOk,
    EXCHGID_CONFIRMED_R, EXCHGID_MASK_PNFS, EXCHGID_SUPP_FENCE_OPS, EXCHGID_UPD_CONFIRMED_REC_A,
    GssCbHandles4, RpcGssSvc,
};
use benchmaster_nfs_proto::xdr::List;

use super::*;
use crate::outbox::Outbox;
use crate::state::backchannel::BackConnection;

const ATTRIBUTES: ChannelAttrs4 = ChannelAttrs4 {
    headerpadsize: 0,
    maxrequestsize: 8192,
    maxresponsesize: 8192,
    maxresponsesize_cached: 4096,
    maxoperations: 16,
    maxrequests: 4,
    rdma_ird: None,
};

fn arguments(client: ClientId, sequence: u32) -> CreateSessionArgs<'static> {
    CreateSessionArgs {
        clientid: client.0,
        sequence,
        flags: CREATE_SESSION_CONN_BACK_CHAN,
        fore_chan_attrs: ATTRIBUTES,
        back_chan_attrs: ATTRIBUTES,
        cb_program: 0x4000_0000,
        sec_parms: List::Items(&[CallbackSecParms4::None]),
    }
}

fn back(id: ConnectionId) -> Option<BackConnection> {
    Some(BackConnection { id, outbox: Arc::new(Outbox::default()) })
}

impl World {
    pub(super) fn exchange(
        &mut self,
        owner: &str,
        verifier: u8,
        uid: u32,
        flags: u32,
    ) -> Result<Exchanged, Nfsstat4> {
        let (owner, host) = (owner.as_bytes(), self.host);
        let args = ExchangeId { verifier: [verifier; 8], owner, host, flags, minor: 1 };
        self.clients.exchange_id(&mut self.files, &args, user(uid), self.now, &mut self.effects)
    }

    fn create(&mut self, args: &CreateSessionArgs<'_>, uid: u32) -> Result<CreateSessionOk, Nfsstat4> {
        let request = CreateSession { args, minor: 1, connection: ONE, back: back(ONE) };
        self.clients.create_session(&mut self.files, request, user(uid), self.now, &mut self.effects)
    }

    fn client41(&mut self, owner: &str, verifier: u8) -> (ClientId, CreateSessionOk) {
        let client = self.exchange(owner, verifier, 7, 0).unwrap().client;
        (client, self.create(&arguments(client, 1), 7).unwrap())
    }

    fn destroy_client(&mut self, id: ClientId, own: Option<ClientId>) -> Result<(), Nfsstat4> {
        self.clients.destroy_clientid(&mut self.files, id, own, self.now, &mut self.effects)
    }
}

/// What an EXCHANGE_ID leads to.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// The id that the owner had, confirmed.
    Same,
    /// A new id; the old one lives.
    NewBeside,
    /// A new id in place of the old one.
    NewInstead,
    /// An error; the old record is as it was.
    Status(Nfsstat4),
}

#[test]
fn exchange_id_by_its_nine_cases() {
    use Expected::*;
    const UPDATE: u32 = EXCHGID_UPD_CONFIRMED_REC_A;
    /// State of the owner's record before.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Before {
        None,
        Unconfirmed,
        Idle,
        InUse,
        Expired,
    }
    use Before::{Expired, Idle, InUse, None, Unconfirmed};
    // Case of §18.35.4, record before, flags, whether verifier and principal are the same.
    let cases = [
        (7, None, UPDATE, true, true, Status(Nfsstat4::NOENT)),
        (4, Unconfirmed, 0, true, true, NewInstead),
        (4, Unconfirmed, 0, false, true, NewInstead),
        (4, Unconfirmed, 0, true, false, NewInstead),
        (4, Unconfirmed, 0, false, false, NewInstead),
        (7, Unconfirmed, UPDATE, true, true, Status(Nfsstat4::NOENT)),
        (7, Unconfirmed, UPDATE, false, true, Status(Nfsstat4::NOENT)),
        (7, Unconfirmed, UPDATE, true, false, Status(Nfsstat4::NOENT)),
        (7, Unconfirmed, UPDATE, false, false, Status(Nfsstat4::NOENT)),
        (2, InUse, 0, true, true, Same),
        (2, Idle, 0, true, true, Same),
        (3, InUse, 0, true, false, Status(Nfsstat4::CLID_INUSE)),
        (3, InUse, 0, false, false, Status(Nfsstat4::CLID_INUSE)),
        (3, Idle, 0, true, false, NewInstead),
        (3, Idle, 0, false, false, NewInstead),
        (3, Expired, 0, true, false, NewInstead),
        (5, InUse, 0, false, true, NewBeside),
        (5, Idle, 0, false, true, NewBeside),
        (6, InUse, UPDATE, true, true, Same),
        (8, InUse, UPDATE, false, true, Status(Nfsstat4::NOT_SAME)),
        (8, InUse, UPDATE, false, false, Status(Nfsstat4::NOT_SAME)),
        (9, InUse, UPDATE, true, false, Status(Nfsstat4::PERM)),
    ];
    for (number, before, flags, same_verifier, same_principal, expected) in cases {
        let mut w = World::new();
        let old = (before != None).then(|| w.exchange("a", 1, 7, 0).unwrap().client);
        if matches!(before, Idle | InUse | Expired) {
            let session = w.create(&arguments(old.unwrap(), 1), 7).unwrap();
            if before == Idle {
                w.clients.destroy_session(&session.sessionid, ONE, Option::None).unwrap();
            } else if before == Expired {
                w.pass(LEASE + Duration::from_secs(1));
            }
        }
        let verifier = if same_verifier { 1 } else { 2 };
        let uid = if same_principal { 7 } else { 8 };
        let outcome = w.exchange("a", verifier, uid, flags);
        let alive = old.is_some_and(|old| w.clients.by_id.contains_key(&old));
        let got = match outcome {
            Err(status) => {
                assert_eq!(alive, old.is_some(), "case {number}, {before:?}");
                Status(status)
            }
            Ok(exchanged) if Some(exchanged.client) == old => {
                assert!(exchanged.confirmed);
                Same
            }
            Ok(exchanged) => {
                assert!(!exchanged.confirmed);
                if alive { NewBeside } else { NewInstead }
            }
        };
        assert_eq!(
            got, expected,
            "case {number}, {before:?}, verifier {same_verifier}, principal {same_principal}"
        );
    }
    // 1: a new owner.
    let mut w = World::new();
    let new = w.exchange("a", 1, 7, 0).unwrap();
    assert_eq!((new.sequence, new.confirmed), (1, false));
}

#[test]
fn exchange_id_refuses_undefined_flags() {
    for (minor, flags, fine) in [
        (1, EXCHGID_MASK_PNFS, true),
        (1, 4, false),
        (2, EXCHGID_MASK_PNFS, true),
        (2, EXCHGID_SUPP_FENCE_OPS, false),
        (2, 8, false),
        (1, EXCHGID_CONFIRMED_R, false),
        (1, 0x0100_0000, false),
    ] {
        let mut w = World::new();
        let args = ExchangeId { verifier: [1; 8], owner: b"a", host: w.host, flags, minor };
        let outcome = w.clients.exchange_id(&mut w.files, &args, user(7), w.now, &mut w.effects);
        assert_eq!(outcome.map(drop), if fine { Ok(()) } else { Err(Nfsstat4::INVAL) }, "{flags:#x}");
    }
}

#[test]
fn create_session_has_a_reply_cache_of_one() {
    let mut w = World::new();
    let client = w.exchange("a", 1, 7, 0).unwrap().client;
    let misordered = Err(Nfsstat4::SEQ_MISORDERED);
    assert_eq!(w.create(&arguments(ClientId(99), 1), 7), Err(Nfsstat4::STALE_CLIENTID));
    for sequence in [0, 2, u32::MAX] {
        assert_eq!(w.create(&arguments(client, sequence), 7), misordered, "{sequence}");
    }
    assert_eq!(w.create(&arguments(client, 1), 8), Err(Nfsstat4::CLID_INUSE));
    assert_eq!(w.create(&arguments(client, 1), 8), Err(Nfsstat4::CLID_INUSE), "errors are not cached");
    assert_eq!(w.clients.check(client), Err(Nfsstat4::STALE_CLIENTID));
    let first = w.create(&arguments(client, 1), 7).unwrap();
    assert_eq!((first.sequence, first.flags), (1, CREATE_SESSION_CONN_BACK_CHAN));
    assert_eq!(w.clients.check(client), Ok(()));
    assert_eq!(w.clients.minor(client), 1);
    assert_eq!(w.create(&arguments(client, 1), 7), Ok(first));
    assert_eq!(w.create(&arguments(client, 1), 8), Ok(first), "a replay, whoever asks");
    for sequence in [0, 3] {
        assert_eq!(w.create(&arguments(client, sequence), 7), misordered);
    }
    let second = w.create(&arguments(client, 2), 8).unwrap();
    assert_ne!(second.sessionid, first.sessionid);
    assert_eq!(w.create(&arguments(client, 1), 7), misordered);
    assert_eq!(w.clients.sessions_of(client).len(), 2);
    assert_eq!(w.exchange("a", 1, 7, 0).unwrap().sequence, 3);
}

#[test]
fn create_session_checks_what_is_asked() {
    type Change = fn(&mut CreateSessionArgs<'static>);
    const GSS: CallbackSecParms4<'static> = CallbackSecParms4::Gss(GssCbHandles4 {
        service: RpcGssSvc::Privacy,
        handle_from_server: benchmaster_nfs_proto::xdr::Opaque(b"s"),
        handle_from_client: benchmaster_nfs_proto::xdr::Opaque(b"c"),
    });
    let small = Err(Nfsstat4::TOOSMALL);
    let cases: [(Change, Result<(), Nfsstat4>); 15] = [
        (|_| {}, Ok(())),
        (|args| args.flags = 0xf, Err(Nfsstat4::INVAL)),
        (|args| args.flags = 7, Ok(())),
        (|args| args.fore_chan_attrs.maxresponsesize = 0, small),
        (|args| args.fore_chan_attrs.maxrequestsize = 20, small),
        (|args| args.fore_chan_attrs.maxoperations = 0, small),
        (|args| args.fore_chan_attrs.maxrequests = 0, small),
        (|args| args.fore_chan_attrs.maxresponsesize = 400, Ok(())),
        (|args| args.fore_chan_attrs.maxresponsesize_cached = 0, Ok(())),
        (|args| args.back_chan_attrs.maxrequestsize = 10, small),
        (|args| args.back_chan_attrs.maxresponsesize = 10, small),
        (|args| args.back_chan_attrs.maxoperations = 1, small),
        (|args| args.sec_parms = List::Items(&[GSS]), Err(Nfsstat4::NOENT)),
        (|args| args.sec_parms = List::Items(&[GSS, CallbackSecParms4::None]), Ok(())),
        (|args| args.sec_parms = List::Items(&[]), Ok(())),
    ];
    for (number, (change, expected)) in cases.into_iter().enumerate() {
        let mut w = World::new();
        let client = w.exchange("a", 1, 7, 0).unwrap().client;
        let mut args = arguments(client, 1);
        change(&mut args);
        assert_eq!(w.create(&args, 7).map(drop), expected, "case {number}");
        // A failure uses up the sequence number, and does not insist on it.
        if expected.is_err() {
            assert_eq!(w.create(&args, 7).map(drop), expected, "case {number}");
            let next = 1 + number as u32 % 2;
            assert_eq!(w.create(&arguments(client, next), 7).map(drop), Ok(()), "case {number}");
            assert_eq!(w.exchange("a", 1, 7, 0).unwrap().sequence, next + 1, "case {number}");
        }
    }
}

#[test]
fn create_session_settles_the_channels() {
    let mut w = World::new();
    let client = w.exchange("a", 1, 7, 0).unwrap().client;
    let vast = ChannelAttrs4 {
        headerpadsize: 64,
        maxrequestsize: u32::MAX,
        maxresponsesize: u32::MAX,
        maxresponsesize_cached: u32::MAX,
        maxoperations: u32::MAX,
        maxrequests: u32::MAX,
        rdma_ird: Some(5),
    };
    let args =
        CreateSessionArgs { fore_chan_attrs: vast, back_chan_attrs: vast, flags: 7, ..arguments(client, 1) };
    let made = w.create(&args, 7).unwrap();
    let fore = made.fore_chan_attrs;
    assert_eq!(made.flags, CREATE_SESSION_CONN_BACK_CHAN, "neither persistent nor RDMA");
    assert!(fore.maxresponsesize >= (1 << 20) + 200 && fore.maxrequestsize >= (1 << 20) + 200);
    assert_eq!((fore.headerpadsize, fore.maxrequests), (0, 8), "the slots configured");
    assert!(fore.maxresponsesize_cached < fore.maxresponsesize && fore.maxoperations < u32::MAX);
    assert_eq!(made.back_chan_attrs, ChannelAttrs4 { headerpadsize: 0, ..vast }, "the client's to say");
    // Without a connection that can carry calls, or the wish for one, there is no back channel.
    for (sequence, flags, connection) in [(2, 2, None), (3, 0, back(ONE))] {
        let args = CreateSessionArgs { flags, ..arguments(client, sequence) };
        let request = CreateSession { args: &args, minor: 1, connection: ONE, back: connection };
        let made = w.clients.create_session(&mut w.files, request, user(7), w.now, &mut w.effects).unwrap();
        assert_eq!(made.flags, 0);
        let session = w.clients.sessions.get(&made.sessionid).unwrap();
        assert!(session.back().lock().connection().is_none());
    }
}

#[test]
fn a_restarted_client_loses_its_sessions_with_the_first_new_one() {
    let mut w = World::new();
    let (old, session) = w.client41("a", 1);
    let new = w.exchange("a", 2, 7, 0).unwrap();
    assert!(w.clients.sessions.get(&session.sessionid).is_some());
    let held = w.clients.sessions.get(&session.sessionid).unwrap();
    w.create(&arguments(new.client, 1), 7).unwrap();
    assert!(w.clients.sessions.get(&session.sessionid).is_none() && held.is_dead());
    assert_eq!(w.clients.check(old), Err(Nfsstat4::STALE_CLIENTID));
    assert_eq!(w.clients.len(), 1);
    assert!(w.clients.replies.used() > 0);
}

#[test]
fn sessions_and_clients_are_destroyed_by_their_rules() {
    let mut w = World::new();
    let (client, session) = w.client41("a", 1);
    let (other, _) = w.client41("b", 1);
    let unconfirmed = w.exchange("c", 1, 7, 0).unwrap().client;
    let busy = Err(Nfsstat4::CLIENTID_BUSY);
    let destroy = |w: &mut World, connection| w.clients.destroy_session(&session.sessionid, connection, None);
    assert_eq!(destroy(&mut w, ConnectionId(2)), Err(Nfsstat4::CONN_NOT_BOUND_TO_SESSION));
    assert_eq!(w.destroy_client(client, None), busy);
    assert_eq!(w.destroy_client(client, Some(client)), busy);
    assert_eq!(w.destroy_client(ClientId(0), None), Err(Nfsstat4::STALE_CLIENTID));
    assert_eq!(w.destroy_client(unconfirmed, Some(other)), Ok(()));
    assert_eq!(w.destroy_client(unconfirmed, None), Err(Nfsstat4::STALE_CLIENTID));
    assert_eq!(destroy(&mut w, ONE), Ok(()));
    assert_eq!(destroy(&mut w, ONE), Err(Nfsstat4::BADSESSION));
    assert_eq!(w.clients.check(client), Ok(()), "the lease stays");
    assert_eq!(w.destroy_client(client, Some(client)), busy, "never the own client");
    assert_eq!(w.destroy_client(client, Some(other)), Ok(()));
    // After the lease, sessions protect no longer.
    assert_eq!(w.destroy_client(other, None), busy);
    w.pass(LEASE + Duration::from_secs(1));
    assert_eq!(w.destroy_client(other, None), Ok(()));
    assert!(w.clients.is_empty() && w.clients.sessions.is_empty());
    assert_eq!(w.clients.replies.used(), 0);
}

#[test]
fn sessions_of_one_client_are_limited() {
    let mut w = World::new();
    let (client, _) = w.client41("a", 1);
    let made = (2..200).take_while(|sequence| w.create(&arguments(client, *sequence), 7).is_ok()).count();
    assert!((10..100).contains(&made));
    assert_eq!(w.create(&arguments(client, made as u32 + 2), 7), Err(Nfsstat4::NOSPC));
}

#[test]
fn expiry_destroys_the_sessions() {
    let mut w = World::new();
    let (client, session) = w.client41("a", 1);
    w.clients.expire(&mut w.files, client, &mut w.effects);
    assert!(w.clients.sessions.get(&session.sessionid).is_none());
    assert_eq!(w.create(&arguments(client, 2), 7), Err(Nfsstat4::STALE_CLIENTID));
}

#[test]
fn opens_wait_for_reclaim_complete() {
    let mut w = World::new();
    let (client, _) = w.client41("a", 1);
    assert_eq!(w.clients.may_claim(client), Err(Nfsstat4::GRACE));
    assert_eq!(w.clients.may_reclaim(client), Err(Nfsstat4::NO_GRACE));
    assert_eq!(w.clients.reclaim_complete(client), Ok(()));
    assert_eq!(w.clients.reclaim_complete(client), Err(Nfsstat4::COMPLETE_ALREADY));
    assert_eq!(w.clients.may_claim(client), Ok(()));
    assert_eq!(w.clients.may_reclaim(client), Err(Nfsstat4::NO_GRACE));
}

#[test]
fn grace_ends_with_the_last_known_client() {
    let mut w = World::restarted(&[b"a", b"b"]);
    assert_eq!(w.clients.known_clients(), [b"a".to_vec(), b"b".to_vec()]);
    let (a, _) = w.client41("a", 1);
    let (b, _) = w.client41("b", 1);
    let (stranger, _) = w.client41("c", 1);
    let flags = |w: &World, id| w.clients.by_id[&id].lease.flags() & SEQ_STATUS_RESTART_RECLAIM_NEEDED != 0;
    assert!(flags(&w, a) && flags(&w, b) && !flags(&w, stranger));
    assert_eq!(w.clients.may_reclaim(a), Ok(()));
    assert_eq!(w.clients.may_reclaim(stranger), Err(Nfsstat4::RECLAIM_BAD));
    w.clients.reclaim_complete(stranger).unwrap();
    w.clients.reclaim_complete(a).unwrap();
    assert!(w.clients.in_grace() && !flags(&w, a));
    assert_eq!(w.clients.may_reclaim(a), Err(Nfsstat4::NO_GRACE));
    assert_eq!(w.clients.may_claim(a), Err(Nfsstat4::GRACE), "b is still awaited");
    w.clients.reclaim_complete(b).unwrap();
    assert!(!w.clients.in_grace());
    assert_eq!(w.clients.may_claim(a), Ok(()));
    assert_eq!(w.clients.known_clients().len(), 3);
}

#[test]
fn who_does_not_come_back_is_forgotten_after_the_grace_period() {
    let mut w = World::restarted(&[b"a", b"b"]);
    w.client41("a", 1);
    assert_eq!(w.clients.known_clients().len(), 2);
    w.pass(LEASE);
    assert!(!w.clients.in_grace());
    assert_eq!(w.clients.known_clients(), [b"a".to_vec()]);
}

#[test]
fn the_flags_of_sequence_tell_about_callbacks_and_revocation() {
    let mut w = World::new();
    let (client, session) = w.client41("a", 1);
    let session = w.clients.sessions.get(&session.sessionid).unwrap();
    let flags = |w: &World| w.clients.by_id[&client].lease.flags();
    assert!(w.clients.callback_up(client));
    assert_eq!(flags(&w), 0);
    w.clients.revoked_delegations(client, true);
    assert_eq!(flags(&w), SEQ_STATUS_RECALLABLE_STATE_REVOKED);
    w.clients.revoked_delegations(client, false);
    assert_eq!(flags(&w), 0);
    session.back().lock().remove(ONE);
    assert!(!w.clients.callback_up(client));
    w.pass(Duration::from_secs(2));
    assert_eq!(flags(&w), SEQ_STATUS_CB_PATH_DOWN);
    let dir = benchmaster_nfs_proto::v4::ChannelDirFromClient4::Back;
    session.set_flags(SEQ_STATUS_CB_PATH_DOWN_SESSION, true);
    session.bind(ConnectionId(5), back(ConnectionId(5)), dir).unwrap();
    w.effects.clear();
    w.clients.back_channel_changed(client, &mut w.effects);
    assert_eq!((flags(&w), session.flags(), w.probes()), (0, 0, 1));
    session.set_flags(SEQ_STATUS_BACKCHANNEL_FAULT, true);
    assert!(!w.clients.callback_up(client));
}
