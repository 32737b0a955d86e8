//! The rules of COMPOUND: versions, order, sizes, replay, current stateid.

use benchmaster_nfs_proto::xdr::{Encoder, Opaque};

use super::super::REPLY_HEADER;
use super::*;
use crate::call::Refusal;

fn encoded(tag: &[u8], minorversion: u32, count: u32, ops: &[Argop<'_>], tail: &[u8]) -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(&CompoundHeader { tag: Opaque(tag), minorversion, count });
    ops.iter().for_each(|op| e.put(op));
    e.raw(tail);
    e.buffer().to_vec()
}

#[test]
fn minor_versions_beyond_2_and_tags_that_are_no_text_are_refused_at_once() {
    let server = populated();
    let mut c = Client::new(&server, 0, 1);
    for minor in [3, 4, u32::MAX] {
        let results = c.raw(&encoded(b"tag", minor, 1, &[Argop::Putrootfh], &[]));
        assert_eq!(results.status(), Nfsstat4::MINOR_VERS_MISMATCH);
        assert_eq!((results.tag(), results.all().len()), (&b"tag"[..], 0));
    }
    for minor in 0..3 {
        let results = c.raw(&encoded(b"\xc3\x28", minor, 1, &[Argop::Putrootfh], &[]));
        assert_eq!((results.status(), results.all().len()), (Nfsstat4::INVAL, 0));
        let results = c.raw(&encoded("Zür".as_bytes(), minor, 0, &[], &[]));
        assert_eq!((results.status(), results.all().len()), (Nfsstat4::OK, 0));
        assert_eq!(results.tag(), "Zür".as_bytes());
    }
}

#[test]
fn the_first_error_ends_a_compound() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let results = c.run(&[Argop::Putrootfh, lookup("absent"), Argop::Getfh]);
        assert_eq!(results.ops(), [Resop::Putrootfh(Ok(())), Resop::Lookup(Err(Nfsstat4::NOENT))]);
    }
}

#[test]
fn operations_that_do_not_exist_are_illegal() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for number in [0, 1, 2, 76, 200, 10_044, u32::MAX] {
            let results = c.run(&[Argop::Putrootfh, Argop::Illegal(number), Argop::Getfh]);
            assert_eq!(results.last(), Resop::Illegal(Nfsstat4::OP_ILLEGAL));
            assert_eq!(results.ops().len(), 2);
            // Even where SEQUENCE is missing.
            let results = c.plain(&[Argop::Illegal(number)]);
            assert_eq!(results.all(), [Resop::Illegal(Nfsstat4::OP_ILLEGAL)]);
        }
        let reclaim = Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false });
        let seek =
            Argop::Seek(SeekArgs { stateid: Stateid4::ANONYMOUS, offset: 0, what: DataContent4::DATA });
        if c.minor < 1 {
            assert_eq!(c.run(&[reclaim]).last(), Resop::Illegal(Nfsstat4::OP_ILLEGAL));
        }
        if c.minor < 2 {
            assert_eq!(c.run(&[seek]).last(), Resop::Illegal(Nfsstat4::OP_ILLEGAL));
        }
        if c.minor > 0 {
            let owner = LockOwner4 { clientid: 1, owner: "o".into() };
            for op in [
                Argop::Renew(RenewArgs { clientid: 1 }),
                Argop::ReleaseLockowner(ReleaseLockownerArgs { lock_owner: owner }),
                Argop::OpenConfirm(OpenConfirmArgs { open_stateid: Stateid4::ANONYMOUS, seqid: 1 }),
            ] {
                assert_eq!(c.run(&[op]).status(), Nfsstat4::NOTSUPP);
            }
        }
    }
}

#[test]
fn an_operation_that_does_not_decode_fails_after_those_before_it() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let before: Vec<_> = if c.minor > 0 { vec![c.sequence()] } else { vec![] };
        let ops: Vec<_> = before.into_iter().chain([Argop::Putrootfh]).collect();
        let count = ops.len() as u32;
        // LOOKUP with a name of 2³²−1 bytes.
        let tail = [0, 0, 0, 15, 0xff, 0xff, 0xff, 0xff];
        let results = c.raw(&encoded(b"", c.minor, count + 2, &ops, &tail));
        assert_eq!(results.status(), Nfsstat4::BADXDR);
        assert_eq!(results.all().last(), Some(&Resop::Lookup(Err(Nfsstat4::BADXDR))));
        assert_eq!(results.all().len() as u32, count + 1);
    }
    // SETATTR's result has a bitmap even then.
    let mut c = Client::new(&server, 0, 9);
    let results = c.raw(&encoded(b"", 0, 1, &[], &[0, 0, 0, 34, 0]));
    let expected = SetattrRes { status: Nfsstat4::BADXDR, attrsset: Bitmap4::EMPTY };
    assert_eq!(results.all(), [Resop::Setattr(expected)]);
}

#[test]
fn arguments_without_a_header_are_garbage() {
    let server = populated();
    let mut c = Client::new(&server, 0, 1);
    let mut reply = crate::reply::Reply::new();
    assert_eq!(c.call(PROC_COMPOUND, &[0, 0, 0, 9, 1], &mut reply), Err(Refusal::GarbageArgs));
    assert_eq!(c.call(2, &[], &mut reply), Err(Refusal::ProcUnavail));
    assert_eq!(c.call(PROC_NULL, &[], &mut reply), Ok(Default::default()));
    assert!(reply.is_empty());
}

#[test]
fn from_41_on_operations_belong_into_sessions() {
    let server = populated();
    for minor in [1, 2] {
        let mut c = Client::with_session(&server, minor, 5);
        for op in [Argop::Putrootfh, Argop::Getfh, lookup("x"), getattr(&[1])] {
            assert_eq!(c.plain(&[op]).status(), Nfsstat4::OP_NOT_IN_SESSION, "{op:?}");
        }
        let destroy = Argop::DestroySession(DestroySessionArgs { sessionid: [9; 16] });
        let bind = Argop::BindConnToSession(BindConnToSessionArgs {
            sessid: [9; 16],
            dir: ChannelDirFromClient4::Fore,
            use_conn_in_rdma_mode: false,
        });
        let forget = Argop::DestroyClientid(DestroyClientidArgs { clientid: 99 });
        for op in [destroy, bind, forget] {
            let results = c.plain(&[op, Argop::Putrootfh]);
            assert_eq!((results.status(), results.all().len()), (Nfsstat4::NOT_ONLY_OP, 1), "{op:?}");
        }
        assert_eq!(c.run(&[bind]).status(), Nfsstat4::NOT_ONLY_OP);
        assert_eq!(c.plain(&[destroy]).status(), Nfsstat4::BADSESSION);
        assert_eq!(c.run(&[destroy, Argop::Putrootfh]).status(), Nfsstat4::BADSESSION);
        let (first, again) = (c.sequence(), c.sequence());
        c.session.as_mut().unwrap().1 -= 1;
        let results = c.plain(&[first, Argop::Putrootfh, again]);
        assert_eq!(results.last(), Resop::Sequence(Err(Nfsstat4::SEQUENCE_POS)));
        let (sessionid, _) = c.session.unwrap();
        let own = Argop::DestroySession(DestroySessionArgs { sessionid });
        assert_eq!(c.run(&[own, Argop::Putrootfh]).status(), Nfsstat4::NOT_ONLY_OP);
        assert_eq!(c.run(&[Argop::Putrootfh, own]).status(), Nfsstat4::OK);
        assert_eq!(c.run(&[Argop::Putrootfh]).status(), Nfsstat4::BADSESSION);
    }
}

fn session(server: &Shared, number: u16, cached: u32, reply: u32) -> Client<'_> {
    let mut c = Client::new(server, 1, number);
    c.create_session(
        number,
        ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 8192,
            maxresponsesize: reply,
            maxresponsesize_cached: cached,
            maxoperations: 50,
            maxrequests: 4,
            rdma_ird: None,
        },
    );
    c
}

/// Makes replies longer byte by byte and notes where the error comes: the reply that fits is never longer than the
/// limit, and the one refused would have been.
#[test]
fn replies_are_measured_to_the_byte() {
    let server = populated();
    let limit = 1024;
    for cache in [false, true] {
        let (reply, cached) = if cache { (1 << 20, limit) } else { (limit, 8192) };
        let mut c = session(&server, 20 + u16::from(cache), cached, reply);
        c.cache_this = cache;
        let too_big = if cache { Nfsstat4::REP_TOO_BIG_TO_CACHE } else { Nfsstat4::REP_TOO_BIG };
        let mut seen = [0; 2];
        for gets in 0..25 {
            for bits in [&[1][..], &[1, 3], &[1, 19], &[0, 1, 2, 3, 4], &[]] {
                let mut ops = vec![Argop::Putrootfh];
                ops.extend(std::iter::repeat_n(Argop::Getfh, gets));
                ops.push(getattr(bits));
                let results = c.run(&ops);
                let len = REPLY_HEADER + results.bytes.len();
                assert!(len <= limit as usize, "{len}");
                match results.status() {
                    Nfsstat4::OK => seen[0] += 1,
                    status => {
                        assert_eq!(status, too_big);
                        // Even with the room that is kept for an error there was not enough for the next result.
                        assert!(len + 12 + 8 + 36 > limit as usize || results.ops().len() == ops.len());
                        seen[1] += 1;
                    }
                }
            }
        }
        assert!(seen.iter().all(|n| *n > 10), "{seen:?}");
    }
}

#[test]
fn a_reply_of_exactly_the_limit_is_sent() {
    let server = populated();
    let mut c = session(&server, 30, 8192, 1 << 20);
    // GETATTR as the last operation needs no room for another error.
    let ops = [Argop::Putrootfh, getattr(&[0, 1, 3, 8, 19])];
    let len = REPLY_HEADER + c.run(&ops).bytes.len();
    for (number, limit, status) in [(31, len, Nfsstat4::OK), (32, len - 1, Nfsstat4::REP_TOO_BIG)] {
        let mut c = session(&server, number, 4096, limit as u32);
        let results = c.run(&ops);
        // A server may grant less than was asked for, or refuse so small a session; this one must not grant more.
        assert_eq!(results.status(), status, "{limit}");
    }
}

#[test]
fn nothing_is_changed_when_the_answer_would_not_fit() {
    let server = populated();
    let mut c = session(&server, 33, 1 << 12, 400);
    let root = Credentials::root();
    let exists = |name: &str| server.exports.walk(&root, format!("/export/{name}").as_bytes()).is_ok();
    for (op, gone, there) in [
        (create("made", Createtype4::Dir), "", "made"),
        (Argop::Rename(RenameArgs { oldname: "made".into(), newname: "renamed".into() }), "made", "renamed"),
        (Argop::Remove(RemoveArgs { target: "renamed".into() }), "renamed", ""),
    ] {
        let id = c.handle("/export");
        let mut refused = 0;
        // From a reply that is full long before the operation to one that has room for it.
        for fill in (0..40).rev() {
            let mut ops = vec![putfh(&id), Argop::Savefh];
            ops.extend(std::iter::repeat_n(Argop::Savefh, fill));
            ops.push(op);
            let results = c.run(&ops);
            let done = results.status() == Nfsstat4::OK;
            assert!(done || results.status() == Nfsstat4::REP_TOO_BIG, "{results:?}");
            refused += usize::from(!done && results.ops().len() == ops.len());
            assert!(there.is_empty() || exists(there) == done, "{op:?}");
            assert!(gone.is_empty() || exists(gone) != done, "{op:?}");
            if done {
                break;
            }
        }
        assert!(refused > 0 && (there.is_empty() || exists(there)), "{op:?}");
    }
}

#[test]
fn a_delegation_is_not_granted_when_the_answer_would_not_fit() {
    let server = populated();
    let mut c = session(&server, 34, 1 << 12, 400);
    c.run(&[Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false })]);
    let id = c.handle("/export/file");
    let want = WantDelegationArgs { want: WANT_READ_DELEG, claim: DelegClaim4::Fh };
    let mut refused = 0;
    for fill in (0..40).rev() {
        let mut ops = vec![putfh(&id)];
        ops.extend(std::iter::repeat_n(Argop::Savefh, fill));
        ops.push(Argop::WantDelegation(want));
        let results = c.run(&ops);
        let done = results.status() == Nfsstat4::OK;
        assert!(done || results.status() == Nfsstat4::REP_TOO_BIG, "{results:?}");
        assert_eq!(server.state.report().delegations.granted, u64::from(done));
        refused += usize::from(!done && results.ops().len() == ops.len());
        if done {
            break;
        }
    }
    assert!(refused > 0 && server.state.report().delegations.held == 1);
}

#[test]
fn a_session_for_sequence_alone_has_no_room_for_other_operations() {
    let server = populated();
    let mut c = session(&server, 35, 84, 84);
    for cached in [false, true] {
        c.cache_this = cached;
        let results = c.run(&[]);
        assert_eq!((results.status(), REPLY_HEADER + results.bytes.len()), (Nfsstat4::OK, 84));
        let results = c.run(&[Argop::Putrootfh]);
        // SEQUENCE itself fails, and its slot is as it was (RFC 8881 §2.10.6.4).
        assert_eq!((results.status(), results.all().len()), (Nfsstat4::REP_TOO_BIG, 1));
        let (_, last) = c.session.as_mut().unwrap();
        *last -= 1;
    }
}

#[test]
fn v40_bounds_operations_and_replies_by_resource() {
    let server = populated();
    let mut c = Client::new(&server, 0, 1);
    let many = vec![Argop::Putrootfh; 300];
    let results = c.run(&many);
    assert_eq!((results.status(), results.all().len()), (Nfsstat4::RESOURCE, 257));
}

#[test]
fn a_retry_gets_the_reply_that_was_kept() {
    let server = populated();
    for minor in [1, 2] {
        let mut c = Client::with_session(&server, minor, 8);
        c.cache_this = true;
        let name = format!("once {minor}");
        let handle = c.handle("/export");
        let ops = [c.sequence(), putfh(&handle), create(&name, Createtype4::Dir), getattr(&[1])];
        let first = c.plain(&ops);
        assert_eq!(first.status(), Nfsstat4::OK);
        assert_eq!(c.plain(&ops), first);
        c.cache_this = false;
        let ops = [c.sequence(), putfh(&handle), getattr(&[1])];
        assert_eq!(c.plain(&ops).status(), Nfsstat4::OK);
        let retry = c.plain(&ops);
        assert_eq!(retry.all().last(), Some(&Resop::Putfh(Err(Nfsstat4::RETRY_UNCACHED_REP))));
        // Another user does not get the reply.
        c.who = user(1000);
        assert_eq!(c.plain(&ops).status(), Nfsstat4::SEQ_FALSE_RETRY);
    }
}

#[test]
fn only_changes_of_v40_need_the_duplicate_request_cache() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        c.run_at("/export", &[getattr(&[1])]);
        assert!(!c.done.cache);
        c.run_at("/export", &[create("x", Createtype4::Dir)]);
        assert_eq!(c.done.cache, c.minor == 0);
    }
}

#[test]
fn the_current_stateid_must_be_there_and_goes_with_the_handle() {
    let server = populated();
    let mut c = Client::with_session(&server, 1, 4);
    let current = Argop::Read(ReadArgs { stateid: Stateid4::CURRENT, offset: 0, count: 1 });
    assert_eq!(c.run_at("/export/file", &[current]).status(), Nfsstat4::BAD_STATEID);
    let handle = c.handle("/export/file");
    let ops = [putfh(&handle), Argop::Savefh, Argop::Putrootfh, Argop::Restorefh, current];
    assert_eq!(c.run(&ops).status(), Nfsstat4::BAD_STATEID);
}

#[test]
fn injected_errors_stand_for_operations_and_leave_slots_alone() {
    let rules = |rules: &[&str]| rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let config = |list: &[&str]| ServerConfig { rules: rules(list), ..ServerConfig::default() };
    let server = populated_with(config(&["REMOVE error=NFS4ERR_IO", "GETFH delay=3ms"]));
    for mut c in of_every_minor(&server) {
        let remove = Argop::Remove(RemoveArgs { target: "file".into() });
        let results = c.run_at("/export", &[Argop::Getfh, remove, Argop::Getfh]);
        assert_eq!(results.last(), Resop::Remove(Err(Nfsstat4::IO)));
        assert_eq!(c.done.injected.delay, std::time::Duration::from_millis(3));
        c.id("/export/file");
    }
    let server = populated_with(config(&["SEQUENCE error=NFS4ERR_DELAY count=2"]));
    let mut c = Client::new(&server, 1, 1);
    c.create_session(
        1,
        ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 8192,
            maxresponsesize: 8192,
            maxresponsesize_cached: 4096,
            maxoperations: 8,
            maxrequests: 2,
            rdma_ird: None,
        },
    );
    let ops = [c.sequence(), Argop::Putrootfh];
    for status in [Nfsstat4::DELAY, Nfsstat4::DELAY, Nfsstat4::OK] {
        assert_eq!(c.plain(&ops).status(), status);
    }
}
