use std::time::Duration;

use benchmaster_nfs_proto::v4::{CompoundRes, Opnum, Resop};
use benchmaster_nfs_proto::xdr::Decoder;
use proptest::prelude::*;

use super::*;
use crate::outbox::Outbox;
use crate::reply::Reply;
use crate::state::backchannel::Credential;

const SLOTS: u32 = 4;
const CONNECTION: ConnectionId = ConnectionId(3);
const LIMITS: ChannelAttrs4 = ChannelAttrs4 {
    headerpadsize: 0,
    maxrequestsize: 1000,
    maxresponsesize: 1000,
    maxresponsesize_cached: 500,
    maxoperations: 8,
    maxrequests: 1,
    rdma_ird: None,
};
/// PUTROOTFH, as an operation after SEQUENCE.
const ROOT: &[u8] = &[0, 0, 0, 24];
const FILE: &[u8] = &[0, 0, 0, 10];

fn session_with(limits: ChannelAttrs4) -> Arc<Session> {
    let now = Instant::now();
    let lease = Arc::new(Lease::new(ClientId(1), now, now));
    let back = BackChannel::new(0x4000_0000, Credential::root(), 1, 4096, 2);
    Arc::new(Session::new([9; 16], lease, limits, SLOTS, back))
}

fn session() -> Arc<Session> {
    session_with(LIMITS)
}

fn args(slot: u32, sequence: u32, cachethis: bool) -> SequenceArgs {
    SequenceArgs { sessionid: [9; 16], sequenceid: sequence, slotid: slot, highest_slotid: slot, cachethis }
}

fn request(rest: &[u8]) -> Request<'_> {
    let operations = if rest.is_empty() { 1 } else { 2 };
    Request { len: 100 + rest.len(), tag: b"tag", operations, rest }
}

fn begin<'s>(session: &'s Session, args: SequenceArgs, rest: &[u8]) -> Begun<'s> {
    session.begin(CONNECTION, &Credentials::root(), &args, &request(rest), Instant::now())
}

fn new(begun: Begun<'_>) -> SlotGuard<'_> {
    match begun {
        Begun::New(guard) => guard,
        other => panic!("{other:?}"),
    }
}

fn status(begun: Begun<'_>) -> Nfsstat4 {
    match begun {
        Begun::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

fn replay(begun: Begun<'_>) -> Vec<u8> {
    match begun {
        Begun::Replay(reply) => reply,
        other => panic!("{other:?}"),
    }
}

/// Ends a request with a reply of so many results, after the bytes of another reply in the same buffer.
fn finish(guard: SlotGuard, outcome: Nfsstat4, results: u32, text: &str) -> Vec<u8> {
    let mut reply = Reply::new();
    reply.encoder.raw(b"another reply");
    let body = reply.mark();
    reply.encoder.put(&outcome);
    reply.encoder.opaque(text.as_bytes());
    let copy = reply.copy_since(body);
    guard.finish(&reply, body, results);
    copy
}

#[test]
fn sequence_numbers_of_a_slot() {
    let session = session();
    // Of a slot never used.
    for (sequence, expected) in [(0, Nfsstat4::SEQ_MISORDERED), (2, Nfsstat4::SEQ_MISORDERED)] {
        assert_eq!(status(begin(&session, args(2, sequence, true), ROOT)), expected);
    }
    let kept = finish(new(begin(&session, args(2, 1, true), ROOT)), Nfsstat4::OK, 2, "one");
    assert_eq!(replay(begin(&session, args(2, 1, true), ROOT)), kept);
    for sequence in [0, 3, u32::MAX] {
        assert_eq!(status(begin(&session, args(2, sequence, true), ROOT)), Nfsstat4::SEQ_MISORDERED);
    }
    assert_eq!(replay(begin(&session, args(2, 1, true), ROOT)), kept, "errors change nothing");
    finish(new(begin(&session, args(2, 2, true), ROOT)), Nfsstat4::OK, 2, "two");
    assert_eq!(status(begin(&session, args(2, 1, true), ROOT)), Nfsstat4::SEQ_MISORDERED);
    assert_eq!(status(begin(&session, args(SLOTS, 1, true), ROOT)), Nfsstat4::BADSLOT);
    assert_eq!(status(begin(&session, args(u32::MAX, 1, true), ROOT)), Nfsstat4::BADSLOT);
    session.kill();
    assert_eq!(status(begin(&session, args(2, 3, true), ROOT)), Nfsstat4::BADSESSION);
}

#[test]
fn a_request_in_execution_is_not_executed_again() {
    let session = session();
    let guard = new(begin(&session, args(0, 1, true), ROOT));
    assert_eq!(status(begin(&session, args(0, 1, true), ROOT)), Nfsstat4::DELAY);
    assert_eq!(status(begin(&session, args(0, 2, true), ROOT)), Nfsstat4::DELAY, "the slot is taken");
    assert_eq!(status(begin(&session, args(0, 3, true), ROOT)), Nfsstat4::SEQ_MISORDERED);
    assert!(session.busy(None) && !session.busy(Some(0)) && session.busy(Some(1)));
    new(begin(&session, args(1, 1, true), ROOT));
    let kept = finish(guard, Nfsstat4::OK, 2, "done");
    assert!(!session.busy(None));
    assert_eq!(replay(begin(&session, args(0, 1, true), ROOT)), kept);
}

#[test]
fn a_reply_that_was_not_kept_is_told_by_the_operation_after_sequence() {
    let session = session();
    finish(new(begin(&session, args(1, 1, false), ROOT)), Nfsstat4::OK, 2, "not kept");
    // So is one whose execution broke off.
    drop(new(begin(&session, args(2, 1, true), ROOT)));
    for slot in [1, 2] {
        let reply = replay(begin(&session, args(slot, 1, false), ROOT));
        let mut compound: CompoundRes<'_> = Decoder::new(&reply).get().unwrap();
        assert_eq!(compound.status, Nfsstat4::RETRY_UNCACHED_REP);
        assert_eq!(compound.tag.0, b"tag");
        let Resop::Sequence(Ok(first)) = compound.results.take().unwrap().unwrap() else { panic!() };
        assert_eq!((first.sessionid, first.slotid, first.sequenceid), ([9; 16], slot, 1));
        let second: Resop<'_> = compound.results.take().unwrap().unwrap();
        assert_eq!((second.opnum(), second.status()), (Opnum::PUTROOTFH, Nfsstat4::RETRY_UNCACHED_REP));
        assert_eq!(compound.results.left(), 0);
        drop(new(begin(&session, args(slot, 2, false), ROOT)));
    }
    // SEQUENCE alone is always kept, and so is the failure of the second operation.
    for (slot, rest, outcome, results) in [(0, &[][..], Nfsstat4::OK, 1), (3, FILE, Nfsstat4::OP_ILLEGAL, 2)]
    {
        let kept = finish(new(begin(&session, args(slot, 1, false), rest)), outcome, results, "kept");
        assert_eq!(replay(begin(&session, args(slot, 1, false), rest)), kept);
    }
}

#[test]
fn a_false_retry_gets_no_reply_of_another() {
    let session = session();
    let original = [ROOT, FILE].concat();
    let kept = finish(new(begin(&session, args(0, 1, true), &original)), Nfsstat4::OK, 3, "secret");
    let longer = [&original[..], &[0; 200]].concat();
    for other in [&[][..], ROOT, FILE, &longer, &[FILE, ROOT].concat()] {
        assert_eq!(status(begin(&session, args(0, 1, true), other)), Nfsstat4::SEQ_FALSE_RETRY, "{other:?}");
    }
    let who = |uid, flavor| Credentials { uid, flavor, ..Credentials::root() };
    use benchmaster_nfs_proto::rpc::AuthFlavor;
    for (who, same) in [
        (who(5, AuthFlavor::SYS), false),
        (who(0, AuthFlavor::NONE), false),
        (Credentials { gid: 9, ..Credentials::root() }, true),
    ] {
        let begun = session.begin(CONNECTION, &who, &args(0, 1, true), &request(&original), Instant::now());
        match begun {
            Begun::Replay(reply) => assert!(same && reply == kept),
            begun => assert!(!same && status(begun) == Nfsstat4::SEQ_FALSE_RETRY),
        }
    }
    // An honest retry may have another tag, and another idea of the highest slot and of caching.
    let retry = Request { tag: b"other", ..request(&original) };
    let again = SequenceArgs { highest_slotid: 3, cachethis: false, ..args(0, 1, true) };
    let begun = session.begin(ConnectionId(8), &Credentials::root(), &again, &retry, Instant::now());
    assert_eq!(replay(begun), kept);
}

#[test]
fn limits_hold_before_the_slot_is_touched() {
    let tiny = ChannelAttrs4 { maxresponsesize_cached: 10, ..LIMITS };
    let cases = [
        (LIMITS, Request { len: 1001, ..request(ROOT) }, true, Nfsstat4::REQ_TOO_BIG),
        (LIMITS, Request { operations: 9, ..request(ROOT) }, true, Nfsstat4::TOO_MANY_OPS),
        (tiny, request(&[]), true, Nfsstat4::REP_TOO_BIG_TO_CACHE),
        (ChannelAttrs4 { maxresponsesize: 82, ..LIMITS }, request(&[]), false, Nfsstat4::REP_TOO_BIG),
    ];
    for (limits, much, cache, expected) in cases {
        let session = session_with(limits);
        let who = Credentials::root();
        let begun = session.begin(CONNECTION, &who, &args(0, 1, cache), &much, Instant::now());
        assert_eq!(status(begun), expected);
        let small = Request { tag: b"", ..request(&[]) };
        let begun = session.begin(CONNECTION, &who, &args(0, 1, false), &small, Instant::now());
        assert!(matches!(begun, Begun::New(_)), "{expected}");
    }
}

#[test]
fn sequence_reports_slots_and_flags_and_renews_the_lease() {
    let session = session();
    let start = Instant::now();
    session.set_flags(0x200, true);
    session.lease.set_flags(0x40, true);
    let later = start + Duration::from_secs(50);
    let begun = session.begin(CONNECTION, &Credentials::root(), &args(1, 1, false), &request(ROOT), later);
    let guard = new(begun);
    let result = guard.result;
    assert_eq!((result.highest_slotid, result.target_highest_slotid), (SLOTS - 1, SLOTS - 1));
    assert_eq!(result.status_flags, 0x240);
    assert!(session.lease.age(later + Duration::from_secs(1)) <= Duration::from_secs(1));
    // An error renews nothing.
    let much_later = later + Duration::from_secs(50);
    let who = Credentials::root();
    status(session.begin(CONNECTION, &who, &args(1, 7, false), &request(ROOT), much_later));
    assert!(session.lease.age(much_later) >= Duration::from_secs(49));
}

#[test]
fn a_grant_is_referred_to_until_the_slot_is_used_again() {
    let session = session();
    let guard = new(begin(&session, args(2, 1, true), ROOT));
    session.granted(2, [7; 12]);
    assert_eq!(session.grant(&[7; 12]), Some((2, 1)));
    finish(guard, Nfsstat4::OK, 2, "granted");
    assert_eq!(session.grant(&[7; 12]), Some((2, 1)), "the client may not have seen it");
    assert_eq!(session.grant(&[8; 12]), None);
    drop(new(begin(&session, args(2, 2, true), ROOT)));
    assert_eq!(session.grant(&[7; 12]), None);
}

#[test]
fn connections_are_tied_to_channels() {
    use ChannelDirFromClient4 as Asked;
    use ChannelDirFromServer4 as Bound;
    let back = || Some(BackConnection { id: CONNECTION, outbox: Arc::new(Outbox::default()) });
    let inval = Err(Nfsstat4::INVAL);
    // Tied before (fore, back), asked, able to carry calls, expected.
    let cases = [
        ((false, false), Asked::Fore, true, Ok(Bound::Fore)),
        ((false, false), Asked::Back, true, Ok(Bound::Back)),
        ((false, false), Asked::ForeOrBoth, true, Ok(Bound::Both)),
        ((false, false), Asked::BackOrBoth, true, Ok(Bound::Both)),
        ((false, false), Asked::Fore, false, Ok(Bound::Fore)),
        ((false, false), Asked::Back, false, inval),
        ((false, false), Asked::ForeOrBoth, false, Ok(Bound::Fore)),
        ((false, false), Asked::BackOrBoth, false, inval),
        ((true, false), Asked::Fore, true, Ok(Bound::Fore)),
        ((true, false), Asked::Back, true, inval),
        ((true, false), Asked::ForeOrBoth, true, Ok(Bound::Both)),
        ((true, false), Asked::BackOrBoth, true, Ok(Bound::Both)),
        ((false, true), Asked::Fore, true, inval),
        ((false, true), Asked::Back, true, Ok(Bound::Back)),
        ((true, true), Asked::Fore, true, inval),
        ((true, true), Asked::Back, true, inval),
        ((true, true), Asked::ForeOrBoth, true, Ok(Bound::Both)),
        ((true, true), Asked::BackOrBoth, true, Ok(Bound::Both)),
    ];
    for (before, asked, able, expected) in cases {
        let session = session();
        if before.0 {
            session.add_fore(CONNECTION);
        }
        if before.1 {
            session.back().lock().add(back().unwrap());
        }
        let connection = if able { back() } else { None };
        assert_eq!(session.bind(CONNECTION, connection, asked), expected, "{before:?} {asked:?} {able}");
        let tied = before.0 || before.1 || expected.is_ok();
        assert_eq!(session.has_connection(CONNECTION), tied);
        let is_back = before.1 || matches!(expected, Ok(Bound::Back | Bound::Both));
        assert_eq!(session.back().lock().has(CONNECTION), is_back);
    }
}

#[test]
fn connections_are_remembered_within_bounds() {
    let session = session();
    for id in 0..2 * MAX_CONNECTIONS as u64 {
        session.add_fore(ConnectionId(id));
        assert!(session.has_connection(ConnectionId(id)));
    }
    assert!(session.connections.all.lock().len() <= MAX_CONNECTIONS);
    assert!(!session.has_connection(ConnectionId(u64::MAX)));
    // After all were forgotten, a SEQUENCE on one of them brings it back.
    for id in [0, 16, 32] {
        drop(session.begin(
            ConnectionId(id),
            &Credentials::root(),
            &args(0, id as u32 / 16 + 1, false),
            &request(&[]),
            Instant::now(),
        ));
        assert!(session.has_connection(ConnectionId(id)));
    }
    let back = &mut *session.back().lock();
    for id in 0..1000 {
        back.add(BackConnection { id: ConnectionId(id), outbox: Arc::new(Outbox::default()) });
    }
    assert!(back.has(ConnectionId(999)) && !back.has(ConnectionId(0)));
}

#[test]
fn back_slots_count_executed_calls() {
    let mut back = BackChannel::new(1, Credential::root(), 1, 4096, 2);
    let first = back.claim().unwrap();
    let second = back.claim().unwrap();
    assert_eq!((first.slot, first.sequence, second.slot, second.highest), (0, 1, 1, 1));
    assert_eq!(back.claim(), None, "no more than the client takes");
    back.release(first, true);
    back.release(second, false);
    assert_eq!(back.claim().map(|claim| (claim.slot, claim.sequence)), Some((0, 2)));
    assert_eq!(back.claim().map(|claim| (claim.slot, claim.sequence)), Some((1, 1)));
}

/// What a client does to one slot.
#[derive(Debug, Clone)]
enum Step {
    /// Sends a request with the sequence number of the last plus this, and this content.
    Send { delta: i8, cache: bool, content: u8, uid: u32 },
    /// The oldest request in execution ends, or breaks off.
    End { broken: bool, results: u32 },
}

/// A slot by the letter of RFC 8881 §2.10.6.1.
#[derive(Default)]
struct Model {
    sequence: u32,
    /// Content, user and fate of the last request.
    last: Option<(u8, u32, Fate)>,
}

#[derive(Clone, PartialEq)]
enum Fate {
    Running,
    Kept(Vec<u8>),
    Forgotten,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (-2i8..=2, any::<bool>(), 0u8..2, 0u32..2).prop_map(|(delta, cache, content, uid)| Step::Send { delta, cache, content, uid }),
        4 => (Just(1i8), any::<bool>(), Just(0u8), Just(0u32)).prop_map(|(delta, cache, content, uid)| Step::Send { delta, cache, content, uid }),
        4 => (any::<bool>(), 1u32..4).prop_map(|(broken, results)| Step::End { broken, results }),
    ]
}

proptest! {
    #[test]
    fn a_slot_behaves_as_the_model(start in prop_oneof![Just(0u32), Just(u32::MAX - 2)], steps in proptest::collection::vec(step(), 1..60)) {
        let session = session();
        let slot = 1;
        // To get to the wrap-around: as if so many requests had been answered.
        let mut model = Model::default();
        if start > 0 {
            session.slot(slot).unwrap().set_sequence(start);
            model.sequence = start;
        }
        let mut running: Option<SlotGuard<'_>> = None;
        let mut executed = 0u32;
        for step in steps {
            match step {
                Step::Send { delta, cache, content, uid } => {
                    let sequence = model.sequence.wrapping_add_signed(delta.into());
                    let rest = [0, 0, 0, content];
                    let who = Credentials { uid, ..Credentials::root() };
                    let args = args(slot, sequence, cache);
                    let begun = session.begin(CONNECTION, &who, &args, &request(&rest), Instant::now());
                    let busy = matches!(model.last, Some((_, _, Fate::Running)));
                    match (delta, &model.last) {
                        (1, _) if busy => prop_assert_eq!(status(begun), Nfsstat4::DELAY),
                        (1, _) => {
                            executed += 1;
                            running = Some(new(begun));
                            model.sequence = sequence;
                            model.last = Some((content, uid, Fate::Running));
                        }
                        (0, Some((before, by, fate))) => {
                            if (*before, *by) != (content, uid) {
                                prop_assert_eq!(status(begun), Nfsstat4::SEQ_FALSE_RETRY);
                            } else {
                                match fate {
                                    Fate::Running => prop_assert_eq!(status(begun), Nfsstat4::DELAY),
                                    Fate::Kept(reply) => prop_assert_eq!(&replay(begun), reply),
                                    Fate::Forgotten => {
                                        let first = Nfsstat4::RETRY_UNCACHED_REP.0.to_be_bytes();
                                        prop_assert_eq!(&replay(begun)[..4], &first);
                                    }
                                }
                            }
                        }
                        _ => prop_assert_eq!(status(begun), Nfsstat4::SEQ_MISORDERED),
                    }
                }
                Step::End { broken, results } => {
                    let Some(guard) = running.take() else { continue };
                    let cached = guard.cache_this || results == 1;
                    let fate = if broken {
                        drop(guard);
                        Fate::Forgotten
                    } else {
                        let reply = finish(guard, Nfsstat4::OK, results, &format!("reply {executed}"));
                        if cached { Fate::Kept(reply) } else { Fate::Forgotten }
                    };
                    if let Some(last) = &mut model.last {
                        last.2 = fate;
                    }
                }
            }
        }
    }
}

#[test]
fn requests_on_all_slots_at_once_are_executed_once() {
    use std::sync::atomic::AtomicU32;
    let session = session();
    let executions: Vec<AtomicU32> = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
    const ROUNDS: u32 = 2000;
    std::thread::scope(|scope| {
        // Two threads send the same requests on every slot: every request is executed by one of them.
        for _ in 0..2 {
            scope.spawn(|| {
                for sequence in 1..=ROUNDS {
                    for slot in 0..SLOTS {
                        loop {
                            match begin(&session, args(slot, sequence, true), ROOT) {
                                Begun::New(guard) => {
                                    executions[slot as usize].fetch_add(1, Ordering::Relaxed);
                                    finish(guard, Nfsstat4::OK, 2, "done");
                                }
                                // The other thread may be ahead, or not there yet.
                                Begun::Status(Nfsstat4::DELAY) => std::thread::yield_now(),
                                Begun::Status(Nfsstat4::SEQ_MISORDERED) | Begun::Replay(_) => break,
                                begun => panic!("{begun:?}"),
                            }
                        }
                    }
                }
            });
        }
    });
    for slot in executions {
        assert_eq!(slot.into_inner(), ROUNDS);
    }
}

#[test]
fn sessions_are_found_by_id() {
    let table = Sessions::new(7, None);
    let ids: Vec<Sessionid4> = (0..300).map(|_| table.next_id()).collect();
    for id in &ids {
        let made = session();
        let lease = made.lease.clone();
        let back = BackChannel::new(0, Credential::root(), 1, 0, 0);
        table.insert(Arc::new(Session::new(*id, lease, LIMITS, 1, back)));
    }
    assert_eq!(table.len(), 300);
    assert!(ids.iter().all(|id| table.get(id).unwrap().id() == *id));
    table.remove(&ids[5]);
    assert!(table.get(&ids[5]).is_none() && table.get(&[0; 16]).is_none());
}
