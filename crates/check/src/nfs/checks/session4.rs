//! Clients, sessions and slots of 4.1.

use benchmaster_nfs_proto::v4::{self, Argop, Nfsstat4 as S, Resop, SequenceArgs, Sessionid4};

use super::Kind;
use crate::nfs::client4::{Answer, BACK, Client4, FORE, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Share;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const FLAGS: u32 = v4::EXCHGID_USE_NON_PNFS;

/// The next SEQUENCE of a client.
pub(super) fn next(client: &Client4) -> Result<SequenceArgs, Stop> {
    client.sequence(true).ok_or_else(|| Stop::failed("SEQUENCE", "the client has no session"))
}

/// A compound of a SEQUENCE and operations, as they are; a good SEQUENCE counts.
pub(super) fn call(client: &mut Client4, sequence: SequenceArgs, ops: &[Argop<'_>]) -> Result<Answer, Stop> {
    let answer = client.plain(&[&[Argop::Sequence(sequence)], ops].concat())?;
    let taken = matches!(answer.all().first(), Some(Resop::Sequence(Ok(_))));
    if let Some(session) = client.session.as_mut().filter(|_| taken && sequence.slotid == 0) {
        session.sequence = sequence.sequenceid;
    }
    Ok(answer)
}

/// A SEQUENCE that was changed gives a status.
fn sequence_gives(t: &mut Trial, change: impl Fn(&mut SequenceArgs), allowed: &[S]) -> Tried {
    let client = t.a()?;
    let mut sequence = next(client)?;
    change(&mut sequence);
    call(client, sequence, &[])?.is(allowed)
}

/// Makes a directory, which cannot be done twice.
fn mkdir<'a>(name: &'a str, attrs: &'a Attrs) -> Argop<'a> {
    create(v4::Createtype4::Dir, name.as_bytes(), attrs)
}

/// A client whose EXCHANGE_ID was answered, and the answer.
fn exchanged(t: &mut Trial, role: &str) -> Result<(Client4, Answer), Stop> {
    let verifier = t.verifier();
    let mut client = t.stranger(role)?;
    let answer = client.exchange_id(verifier, FLAGS)?.ok()?;
    Ok((client, answer))
}

/// A client id that nothing else uses is given back.
fn give_back(client: &mut Client4, clientid: u64) -> Tried {
    client.plain(&[Argop::DestroyClientid(v4::DestroyClientidArgs { clientid })])?.ok().map(|_| ())
}

fn destroy_session(id: Sessionid4) -> Argop<'static> {
    Argop::DestroySession(v4::DestroySessionArgs { sessionid: id })
}

/// An operation that must stand behind a SEQUENCE, first in a compound.
fn out_of_session(t: &mut Trial, op: Argop<'_>) -> Tried {
    t.a()?.plain(&[op])?.is(&[S::OP_NOT_IN_SESSION])
}

/// Sends a request, breaks the connection before the reply is read, and sends it again on a new one.
fn again_on_new_connection(t: &mut Trial) -> Tried {
    let dir = t.dir();
    let attrs = Attrs::mode(0o755);
    let connection = t.connect()?;
    let client = t.a()?;
    let sequence = next(client)?;
    let ops = [Argop::Sequence(sequence), putfh(&dir), mkdir("x", &attrs)];
    let first = client.plain(&ops)?.ok()?;
    client.connection = connection;
    let second = client.plain(&ops)?;
    if let Some(session) = &mut client.session {
        session.sequence = sequence.sequenceid;
    }
    hold(second.status() == first.status(), &second.sent, || {
        format!("{} when it came again on a new connection; the first answer, OK, is right", second.status())
    })
}

checks! {
    /// Clients and sessions.
    LIST, Session;
    "sequence-echoes" V41 Must [V41 8881 "18.46.3"]
        "SEQUENCE gives back session, slot and sequence number."
        => |t| {
            let client = t.a()?;
            let sequence = next(client)?;
            let answer = call(client, sequence, &[])?.ok()?;
            let ok = body!(answer, Sequence);
            let right = ok.sessionid == sequence.sessionid && ok.sequenceid == sequence.sequenceid && ok.slotid == 0;
            hold(right, &answer.sent, || format!("{ok:?}"))
        };
    "sequence-unknown-session" V41 Must [V41 8881 "15.1.11.1"]
        "SEQUENCE with a session that does not exist is BADSESSION."
        => |t| sequence_gives(t, |sequence| sequence.sessionid[3] ^= 0x55, &[S::BADSESSION]);
    "sequence-bad-slot" V41 Must [V41 8881 "15.1.11.2"]
        "SEQUENCE with a slot that the session does not have is BADSLOT."
        => |t| {
            let slots = t.a()?.session.as_ref().map_or(1, |session| session.fore.maxrequests);
            let far = move |sequence: &mut SequenceArgs| {
                (sequence.slotid, sequence.sequenceid, sequence.highest_slotid) = (slots + 1000, 1, slots + 1000);
            };
            sequence_gives(t, far, &[S::BADSLOT])
        };
    "sequence-bad-highest-slot" V41 Must [V41 8881 "15.1.11.3"]
        "SEQUENCE with a highest slot below its own is BAD_HIGH_SLOT, or beyond those of the session: also ignored."
        => |t| sequence_gives(t, |sequence| sequence.highest_slotid = 0xffff, &[S::BAD_HIGH_SLOT, S::OK]);
    "sequence-skips" V41 Must [V41 8881 "2.10.6.1"]
        "A sequence number two ahead is SEQ_MISORDERED."
        => |t| sequence_gives(t, |sequence| sequence.sequenceid += 1, &[S::SEQ_MISORDERED]);
    "sequence-goes-back" V41 Must [V41 8881 "2.10.6.1"]
        "A sequence number behind the last is SEQ_MISORDERED."
        => |t| {
            let client = t.a()?;
            client.compound(&[])?.ok()?;
            client.compound(&[])?.ok()?;
            sequence_gives(t, |sequence| sequence.sequenceid -= 3, &[S::SEQ_MISORDERED])
        };
    "sequence-error-keeps-slot" V41 Must [V41 8881 "2.10.6.1.2"]
        "After a SEQUENCE that failed the slot waits for the same number as before."
        => |t| {
            sequence_gives(t, |sequence| sequence.sequenceid += 7, &[S::SEQ_MISORDERED])?;
            t.a()?.gives(&[], &[S::OK])
        };
    "sequence-not-first" V41 Must [V41 8881 "18.46.3"]
        "SEQUENCE in any place but the first is SEQUENCE_POS."
        => |t| {
            let client = t.a()?;
            let sequence = next(client)?;
            call(client, sequence, &[Argop::Sequence(sequence)])?.is(&[S::SEQUENCE_POS])
        };
    "slot-replay" V41 Must [V41 8881 "2.10.6.2"]
        "A request that comes again on its slot gets the first answer, and is not carried out again."
        => |t| {
            let dir = t.dir();
            let attrs = Attrs::mode(0o755);
            let client = t.a()?;
            let sequence = next(client)?;
            let ops = [putfh(&dir), mkdir("x", &attrs), getattr(&[v4::fattr4::FILEID])];
            let first = call(client, sequence, &ops)?.ok()?;
            let second = call(client, sequence, &ops)?;
            hold(second.status() == S::OK, &second.sent, || {
                format!("{} when it came again; the first answer, OK, is right", second.status())
            })?;
            let (one, two) = (client.decoded(&first)?.fileid, client.decoded(&second)?.fileid);
            hold(one == two, &second.sent, || format!("fileid {two:?} when it came again, {one:?} before"))
        };
    "slot-replay-of-error" V41 Must [V41 8881 "2.10.6.2"]
        "A request that failed gives the same error when it comes again, whatever has changed since."
        => |t| {
            let dir = t.dir();
            let attrs = Attrs::mode(0o755);
            let client = t.a()?;
            let mut sequence = next(client)?;
            (sequence.slotid, sequence.sequenceid, sequence.highest_slotid) = (1, 1, 1);
            if client.session.as_ref().is_some_and(|session| session.fore.maxrequests < 2) {
                return Err(Stop::not_applicable("the session has one slot"));
            }
            call(client, sequence, &[putfh(&dir), lookup("x")])?.is(&[S::NOENT])?;
            client.done(&dir, &[mkdir("x", &attrs)])?;
            call(client, sequence, &[putfh(&dir), lookup("x")])?.is(&[S::NOENT])
        };
    "slot-replay-on-new-connection" V41 Must [V41 8881 "2.10.6.2"]
        "A request that comes again on a new connection gets the first answer: that is what replay is for."
        => again_on_new_connection;
    "slot-false-retry" V41 Should [V41 8881 "2.10.6.1.3.1"]
        "Another request with a number that was used is SEQ_FALSE_RETRY, or gets the answer of the first; it is not carried out."
        => |t| {
            let dir = t.dir();
            let attrs = Attrs::mode(0o755);
            let client = t.a()?;
            let sequence = next(client)?;
            call(client, sequence, &[putfh(&dir), mkdir("x", &attrs)])?.ok()?;
            // What comes back may be the results of the first request, which are not of the second.
            match call(client, sequence, &[putfh(&dir), mkdir("y", &attrs)]) {
                Ok(answer) => answer.is(&[S::SEQ_FALSE_RETRY, S::OK])?,
                Err(Stop::Failed { .. }) => {}
                Err(other) => return Err(other),
            }
            client.on(&dir, &[lookup("y")], &[S::NOENT])
        };
    "slots-are-independent" V41 Must [V41 8881 "2.10.6.1"]
        "Each slot counts for itself, from 1."
        => |t| {
            let client = t.a()?;
            client.compound(&[])?.ok()?;
            if client.session.as_ref().is_some_and(|session| session.fore.maxrequests < 2) {
                return Err(Stop::not_applicable("the session has one slot"));
            }
            let mut sequence = next(client)?;
            (sequence.slotid, sequence.sequenceid, sequence.highest_slotid) = (1, 1, 1);
            call(client, sequence, &[])?.is(&[S::OK])
        };
    "out-of-session-putfh" V41 Must [V41 8881 "18.46.3"]
        "PUTROOTFH first in a compound is OP_NOT_IN_SESSION." => |t| out_of_session(t, Argop::Putrootfh);
    "out-of-session-getattr" V41 Must [V41 8881 "18.46.3"]
        "GETATTR first in a compound is OP_NOT_IN_SESSION."
        => |t| out_of_session(t, getattr(&[v4::fattr4::TYPE]));
    "out-of-session-reclaim-complete" V41 Must [V41 8881 "18.46.3"]
        "RECLAIM_COMPLETE first in a compound is OP_NOT_IN_SESSION."
        => |t| out_of_session(t, Argop::ReclaimComplete(v4::ReclaimCompleteArgs { one_fs: false }));
    "exchange-id-not-alone" V41 Must [V41 8881 "18.35.3"]
        "EXCHANGE_ID without SEQUENCE that is not alone is NOT_ONLY_OP."
        => |t| {
            let verifier = t.verifier();
            let mut client = t.stranger("alone")?;
            let owner = client.owner.clone();
            let args = v4::ExchangeIdArgs {
                clientowner: v4::ClientOwner4 { verifier, ownerid: owner.as_bytes().into() },
                flags: FLAGS,
                state_protect: v4::StateProtect4A::None,
                client_impl_id: None,
            };
            client.plain(&[Argop::ExchangeId(args), Argop::Putrootfh])?.is(&[S::NOT_ONLY_OP])
        };
    "exchange-id-bad-flags" V41 Must [V41 8881 "18.35.3"]
        "EXCHANGE_ID with a flag that does not exist is INVAL."
        => |t| {
            let verifier = t.verifier();
            t.stranger("flags")?.exchange_id(verifier, FLAGS | 0x0200_0000)?.is(&[S::INVAL])
        };
    "exchange-id-confirmed-flag" V41 Must [V41 8881 "18.35.3"]
        "EXCHANGE_ID with EXCHGID4_FLAG_CONFIRMED_R, which only a server sets, is INVAL."
        => |t| {
            let verifier = t.verifier();
            t.stranger("flags")?.exchange_id(verifier, FLAGS | v4::EXCHGID_CONFIRMED_R)?.is(&[S::INVAL])
        };
    "exchange-id-role" V41 Must [V41 8881 "18.35.3"]
        "EXCHANGE_ID says which role the server has, and not that a new client is confirmed."
        => |t| {
            let (mut client, answer) = exchanged(t, "role")?;
            let ok = body!(answer, ExchangeId);
            let right = ok.flags & v4::EXCHGID_MASK_PNFS != 0 && ok.flags & v4::EXCHGID_CONFIRMED_R == 0;
            hold(right, &answer.sent, || format!("flags {:#x}", ok.flags))?;
            give_back(&mut client, ok.clientid)
        };
    "exchange-id-again" V41 Must [V41 8881 "18.35.4"]
        "EXCHANGE_ID of a client that is known and has not restarted gives the same client id, as confirmed."
        => |t| {
            let verifier = t.verifier();
            let mut client = t.stranger("again")?;
            client.introduce(verifier)?;
            let first = client.clientid;
            let answer = client.exchange_id(verifier, FLAGS)?.ok()?;
            let ok = body!(answer, ExchangeId);
            let right = ok.clientid == first && ok.flags & v4::EXCHGID_CONFIRMED_R != 0;
            let tried = hold(right, &answer.sent, || {
                format!("client id {:#x}, flags {:#x}; {first:#x} and CONFIRMED_R are right", ok.clientid, ok.flags)
            });
            client.leave()?;
            tried
        };
    "exchange-id-update-unknown" V41 Must [V41 8881 "18.35.4"]
        "EXCHANGE_ID that updates a client that is not there is NOENT."
        => |t| {
            let verifier = t.verifier();
            let update = FLAGS | v4::EXCHGID_UPD_CONFIRMED_REC_A;
            t.stranger("update")?.exchange_id(verifier, update)?.is(&[S::NOENT])
        };
    "exchange-id-update-restarted" V41 Must [V41 8881 "18.35.4"]
        "EXCHANGE_ID that updates a client with another verifier is NOT_SAME."
        => |t| {
            let mut client = t.start("update")?;
            let verifier = t.verifier();
            let update = FLAGS | v4::EXCHGID_UPD_CONFIRMED_REC_A;
            let tried = client.exchange_id(verifier, update)?.is(&[S::NOT_SAME]);
            client.leave()?;
            tried
        };
    "client-restart-drops-state" V41 Must [V41 8881 "18.35.4"]
        "When a client comes with another verifier and makes a session, what it had open before is given up."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let mut other = t.start("restart")?;
            other.opens("one", &dir, "x", Share::BOTH.deny(3))?;
            let mut other = t.start("restart")?;
            let tried = t.a()?.opens("two", &dir, "x", Share::BOTH).map(|_| ());
            other.leave()?;
            tried
        };
    "client-restart-ends-sessions" V41 Must [V41 8881 "18.35.4"]
        "When a client comes with another verifier and makes a session, its old sessions are BADSESSION."
        => |t| {
            let mut old = t.start("restart")?;
            let mut new = t.start("restart")?;
            let tried = old.compound(&[])?.is(&[S::BADSESSION, S::DEADSESSION]);
            new.leave()?;
            tried
        };
    "create-session-unknown-client" V41 Must [V41 8881 "18.36.4"]
        "CREATE_SESSION with a client id that does not exist is STALE_CLIENTID."
        => |t| {
            let clientid = t.a()?.clientid ^ 0x0102_0304_0506;
            t.stranger("session")?.create_session(clientid, 1, FORE, BACK)?.is(&[S::STALE_CLIENTID])
        };
    "create-session-misordered" V41 Must [V41 8881 "18.36.4"]
        "CREATE_SESSION with a number out of order is SEQ_MISORDERED."
        => |t| {
            let (mut client, answer) = exchanged(t, "misordered")?;
            let ok = body!(answer, ExchangeId);
            let tried = client.create_session(ok.clientid, ok.sequenceid + 5, FORE, BACK)?.is(&[S::SEQ_MISORDERED]);
            give_back(&mut client, ok.clientid)?;
            tried
        };
    "create-session-replay" V41 Must [V41 8881 "18.36.4"]
        "CREATE_SESSION that comes again with the same number gives the same session."
        => |t| {
            let (mut client, answer) = exchanged(t, "replay")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let first = client.create_session(clientid, sequence, FORE, BACK)?.ok()?;
            let second = client.create_session(clientid, sequence, FORE, BACK)?;
            client.clientid = clientid;
            client.adopt(&first)?;
            let same = second.status() == S::OK
                && body!(first, CreateSession).sessionid == body!(second, CreateSession).sessionid;
            client.leave()?;
            hold(same, &second.sent, || format!("{} and another session", second.status()))
        };
    "create-session-second" V41 Must [V41 8881 "18.36.4"]
        "A client may have several sessions; each counts its slots for itself."
        => |t| {
            let (mut client, answer) = exchanged(t, "second")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            client.clientid = clientid;
            let first = client.create_session(clientid, sequence, FORE, BACK)?.ok()?;
            client.adopt(&first)?;
            client.compound(&[])?.ok()?;
            let second = client.create_session(clientid, sequence + 1, FORE, BACK)?.ok()?;
            let (one, two) = (body!(first, CreateSession).sessionid, body!(second, CreateSession).sessionid);
            hold(one != two, &second.sent, || "the same session".into())?;
            client.adopt(&second)?;
            client.compound(&[])?.ok()?;
            client.plain(&[destroy_session(one)])?.ok()?;
            client.leave()
        };
    "create-session-limits" V41 Must [V41 8881 "18.36.3"]
        "CREATE_SESSION does not raise the sizes that the client offered, nor change what only the client may set."
        => |t| {
            let (mut client, answer) = exchanged(t, "limits")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let fore = v4::ChannelAttrs4 { maxrequestsize: 40_000, maxresponsesize: 50_000, ..FORE };
            let answer = client.create_session(clientid, sequence, fore, BACK)?.ok()?;
            let made = body!(answer, CreateSession);
            client.clientid = clientid;
            client.adopt(&answer)?;
            client.leave()?;
            let (got, back) = (made.fore_chan_attrs, made.back_chan_attrs);
            let right = got.maxrequestsize <= fore.maxrequestsize && got.maxresponsesize <= fore.maxresponsesize
                && got.maxresponsesize_cached <= fore.maxresponsesize_cached && got.maxrequests >= 1
                && back.maxrequestsize <= BACK.maxrequestsize && back.maxresponsesize <= BACK.maxresponsesize;
            hold(right, &answer.sent, || format!("{made:?}"))?;
            hold(made.sequence == sequence, &answer.sent, || format!("number {}; {sequence} is right", made.sequence))
        };
    "create-session-back-channel" V41 Must [V41 8881 "18.36.3"]
        "CREATE_SESSION leaves the numbers of requests and operations of the back channel as the client offered them."
        => |t| {
            let session = t.a()?.session.clone();
            let back = session.map(|session| session.back);
            let right = back.is_some_and(|back| {
                back.maxoperations == BACK.maxoperations && back.maxrequests == BACK.maxrequests
            });
            hold(right, "CREATE_SESSION", || format!("{back:?}; {BACK:?} was offered"))
        };
    "create-session-flags" V41 Must [V41 8881 "18.36.3"]
        "CREATE_SESSION does not set a flag that was not asked for."
        => |t| {
            let flags = t.a()?.session.as_ref().map_or(0, |session| session.flags);
            let asked = v4::CREATE_SESSION_CONN_BACK_CHAN | v4::CREATE_SESSION_PERSIST;
            hold(flags & !asked == 0, "CREATE_SESSION", || format!("flags {flags:#x}"))
        };
    "create-session-too-small" V41 Should [V41 8881 "18.36.3"]
        "CREATE_SESSION with replies too small for anything is TOOSMALL."
        => |t| {
            let (mut client, answer) = exchanged(t, "small")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let fore = v4::ChannelAttrs4 { maxrequestsize: 20, maxresponsesize: 0, ..FORE };
            let answer = client.create_session(clientid, sequence, fore, BACK)?;
            if answer.status() == S::OK {
                client.clientid = clientid;
                client.adopt(&answer)?;
                client.leave()?;
            } else {
                give_back(&mut client, clientid)?;
            }
            answer.is(&[S::TOOSMALL])
        };
    "create-session-not-alone" V41 Must [V41 8881 "18.36.3"]
        "CREATE_SESSION without SEQUENCE that is not alone is NOT_ONLY_OP."
        => |t| {
            let client = t.a()?;
            let args = v4::CreateSessionArgs {
                clientid: client.clientid,
                sequence: 2,
                flags: 0,
                fore_chan_attrs: FORE,
                back_chan_attrs: BACK,
                cb_program: 0x4000_0000,
                sec_parms: benchmaster_nfs_proto::xdr::List::Items(&[v4::CallbackSecParms4::None]),
            };
            client.plain(&[Argop::CreateSession(args), Argop::Putrootfh])?.is(&[S::NOT_ONLY_OP])
        };
    "destroy-session" V41 Must [V41 8881 "18.37.3"]
        "After DESTROY_SESSION a session is BADSESSION, for SEQUENCE and for a second DESTROY_SESSION."
        => |t| {
            let mut client = t.start("destroyed")?;
            let sequence = next(&client)?;
            client.plain(&[destroy_session(sequence.sessionid)])?.ok()?;
            client.plain(&[Argop::Sequence(sequence)])?.is(&[S::BADSESSION])?;
            client.plain(&[destroy_session(sequence.sessionid)])?.is(&[S::BADSESSION])?;
            let clientid = client.clientid;
            give_back(&mut client, clientid)
        };
    "destroy-session-not-last" V41 Must [V41 8881 "18.37.3"]
        "DESTROY_SESSION of the compound's own session must be the last operation: else NOT_ONLY_OP."
        => |t| {
            let client = t.a()?;
            let sequence = next(client)?;
            let ops = [destroy_session(sequence.sessionid), Argop::Putrootfh];
            call(client, sequence, &ops)?.is(&[S::NOT_ONLY_OP])
        };
    "destroy-clientid-busy" V41 Must [V41 8881 "18.50.3"]
        "DESTROY_CLIENTID of a client with a session is CLIENTID_BUSY."
        => |t| {
            let mut client = t.start("busy")?;
            let clientid = client.clientid;
            let destroy = Argop::DestroyClientid(v4::DestroyClientidArgs { clientid });
            let tried = client.plain(&[destroy])?.is(&[S::CLIENTID_BUSY]);
            client.leave()?;
            tried
        };
    "destroy-clientid" V41 Must [V41 8881 "18.50.3"]
        "DESTROY_CLIENTID forgets a client: a second one is STALE_CLIENTID."
        => |t| {
            let (mut client, answer) = exchanged(t, "forgotten")?;
            let clientid = body!(answer, ExchangeId).clientid;
            give_back(&mut client, clientid)?;
            let destroy = Argop::DestroyClientid(v4::DestroyClientidArgs { clientid });
            client.plain(&[destroy])?.is(&[S::STALE_CLIENTID])
        };
    "reclaim-complete-twice" V41 Must [V41 8881 "18.51.4"]
        "A second RECLAIM_COMPLETE is COMPLETE_ALREADY."
        => |t| {
            let complete = Argop::ReclaimComplete(v4::ReclaimCompleteArgs { one_fs: false });
            t.a()?.gives(&[complete], &[S::COMPLETE_ALREADY])
        };
    "reclaim-complete-missing" V41 Must [V41 8881 "18.51.3"]
        "An open before RECLAIM_COMPLETE is GRACE."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let (mut client, answer) = exchanged(t, "incomplete")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let made = client.create_session(clientid, sequence, FORE, BACK)?.ok()?;
            client.clientid = clientid;
            client.adopt(&made)?;
            let (answer, open) = client.open("one", &dir, "x", Share::READ)?;
            if let Ok(open) = open {
                client.close(&open)?;
            }
            client.leave()?;
            answer.is(&[S::GRACE])
        };
    "too-many-operations" V41 Must [V41 8881 "18.36.3"]
        "A compound with more operations than ca_maxoperations is TOO_MANY_OPS."
        => |t| {
            let (mut client, answer) = exchanged(t, "many")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let fore = v4::ChannelAttrs4 { maxoperations: 8, ..FORE };
            let made = client.create_session(clientid, sequence, fore, BACK)?.ok()?;
            client.clientid = clientid;
            client.adopt(&made)?;
            let most = body!(made, CreateSession).fore_chan_attrs.maxoperations.min(2000) as usize;
            let answer = client.compound(&vec![Argop::Putrootfh; most]);
            client.leave()?;
            answer?.is(&[S::TOO_MANY_OPS])
        };
    "reply-too-big" V41 Must [V41 8881 "2.10.6.4"]
        "A reply larger than the session's is REP_TOO_BIG, or less data."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let fh = client.file(&dir, "x", &super::io4::pattern(20_000))?;
            let (mut small, answer) = exchanged(t, "small reply")?;
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let fore = v4::ChannelAttrs4 { maxresponsesize: 4096, maxresponsesize_cached: 2048, ..FORE };
            let made = small.create_session(clientid, sequence, fore, BACK)?.ok()?;
            small.clientid = clientid;
            small.adopt(&made)?;
            let answer = small.compound(&[putfh(&fh), read(v4::Stateid4::ANONYMOUS, 0, 20_000)]);
            small.leave()?;
            let answer = answer?;
            answer.is(&[S::REP_TOO_BIG, S::OK])?;
            hold(answer.bytes.len() <= 4096, &answer.sent, || format!("{} bytes of results", answer.bytes.len()))
        };
    "reply-too-big-to-cache" V41 Must [V41 8881 "2.10.6.4"]
        "A reply to be kept that is larger than ca_maxresponsesize_cached is REP_TOO_BIG_TO_CACHE, or kept all the same."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let fh = client.file(&dir, "x", &super::io4::pattern(20_000))?;
            let sequence = next(client)?;
            let ops = [putfh(&fh), read(v4::Stateid4::ANONYMOUS, 0, 20_000)];
            let answer = call(client, sequence, &ops)?;
            answer.is(&[S::REP_TOO_BIG_TO_CACHE, S::REP_TOO_BIG, S::OK])?;
            if answer.status() != S::OK {
                return Ok(());
            }
            let again = call(client, sequence, &ops)?;
            hold(again.results() == answer.results(), &again.sent, || "another answer when it came again".into())
        };
    "request-too-big" V41 Must [V41 8881 "2.10.6.4"]
        "A request larger than the session's is REQ_TOO_BIG."
        => |t| {
            let (dir, (mut small, answer)) = (t.dir(), exchanged(t, "small request")?);
            let (clientid, sequence) = (body!(answer, ExchangeId).clientid, body!(answer, ExchangeId).sequenceid);
            let fore = v4::ChannelAttrs4 { maxrequestsize: 4096, ..FORE };
            let made = small.create_session(clientid, sequence, fore, BACK)?.ok()?;
            small.clientid = clientid;
            small.adopt(&made)?;
            let data = super::io4::pattern(8000);
            let answer = small.compound(&[putfh(&dir), write(v4::Stateid4::ANONYMOUS, 0, &data)]);
            small.leave()?;
            answer?.is(&[S::REQ_TOO_BIG])
        };
    "server-owner-stays" V41 Must [V41 8881 "2.10.5"]
        "EXCHANGE_ID over another connection gives the same server owner and scope, by which clients know what to trunk."
        => |t| {
            let verifier = t.verifier();
            let mut said = Vec::new();
            for _ in 0..2 {
                let answer = t.stranger("trunking")?.exchange_id(verifier, v4::EXCHGID_USE_NON_PNFS)?.ok()?;
                let ok = body!(answer, ExchangeId);
                said.push(format!("{:?} {:?}", ok.server_owner, ok.server_scope));
            }
            hold(said[0] == said[1], "EXCHANGE_ID over two connections", || format!("{said:?}"))
        };
    "bind-unknown-session" V41 Must [V41 8881 "18.34.3"]
        "BIND_CONN_TO_SESSION with a session that does not exist is BADSESSION."
        => |t| {
            let dir = v4::ChannelDirFromClient4::ForeOrBoth;
            let args = v4::BindConnToSessionArgs { sessid: [0x5a; 16], dir, use_conn_in_rdma_mode: false };
            t.stranger("bind")?.plain(&[Argop::BindConnToSession(args)])?.is(&[S::BADSESSION])
        };
    "bind-not-alone" V41 Must [V41 8881 "18.34.3"]
        "BIND_CONN_TO_SESSION must be alone: else NOT_ONLY_OP."
        => |t| {
            let client = t.a()?;
            let sessid = next(client)?.sessionid;
            let dir = v4::ChannelDirFromClient4::Fore;
            let args = v4::BindConnToSessionArgs { sessid, dir, use_conn_in_rdma_mode: false };
            client.plain(&[Argop::BindConnToSession(args), Argop::Putrootfh])?.is(&[S::NOT_ONLY_OP])
        };
    "bind-new-connection" V41 Must [V41 8881 "18.34.3"]
        "BIND_CONN_TO_SESSION lets another connection call on the session."
        => |t| {
            let connection = t.connect()?;
            let client = t.a()?;
            client.connection = connection;
            let sessid = next(client)?.sessionid;
            let dir = v4::ChannelDirFromClient4::ForeOrBoth;
            let args = v4::BindConnToSessionArgs { sessid, dir, use_conn_in_rdma_mode: false };
            client.plain(&[Argop::BindConnToSession(args)])?.ok()?;
            client.gives(&[], &[S::OK])
        };
    "test-stateid-of-none" V41 Must [V41 8881 "18.48.3"]
        "TEST_STATEID of no stateid gives none."
        => |t| {
            let args = v4::TestStateidArgs { stateids: benchmaster_nfs_proto::xdr::List::Items(&[]) };
            t.a()?.gives(&[Argop::TestStateid(args)], &[S::OK])
        };
    "secinfo-no-name" V41 Must [V41 8881 "18.45.3"]
        "SECINFO_NO_NAME gives flavours, and takes the current filehandle away."
        => |t| {
            let dir = t.dir();
            let answer = t.a()?.done(&dir, &[Argop::SecinfoNoName(v4::SecinfoStyle4::CurrentFh)])?;
            let empty = match answer.last() {
                Some(Resop::SecinfoNoName(Ok(ok))) => ok.flavors.is_empty(),
                _ => true,
            };
            hold(!empty, &answer.sent, || "no flavours".into())?;
            let ops = [Argop::SecinfoNoName(v4::SecinfoStyle4::CurrentFh), Argop::Getfh];
            t.a()?.on(&dir, &ops, &[S::NOFILEHANDLE])
        };
}
