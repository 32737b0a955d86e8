//! Sequences of 4.0 owners (RFC 7530 §9.1.7–9.1.11).

use super::*;

fn open_with(c: &mut Holder<'_>, seqid: u32, name: &str) -> Results {
    c.seqid = seqid.wrapping_sub(1);
    c.open_in("/export", OpenClaim4::Null(name.into()), Openflag4::NoCreate, R, 0)
}

fn stateid(results: &Results) -> Stateid4 {
    let Resop::Open(Ok(ok)) = results.last() else { panic!("{results:?}") };
    ok.stateid
}

fn is_to_confirm(results: &Results) -> bool {
    matches!(results.last(), Resop::Open(Ok(ok)) if ok.rflags & OPEN_RESULT_CONFIRM != 0)
}

#[test]
fn a_repetition_gets_the_reply_of_before() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let opened = c.open("file", R, 0);
    let (getfh, null) = (Argop::Getfh, OpenClaim4::Null("file".into()));
    // OPEN, and its file handle, too.
    let first = c.open_in("/export", null, Openflag4::NoCreate, W, 0);
    c.seqid -= 1;
    let dir = c.c.handle("/export");
    let owner = c.owner.clone();
    let args = OpenArgs {
        owner: StateOwner4 { clientid: c.c.clientid, owner: owner.as_bytes().into() },
        seqid: c.seqid + 1,
        share_access: W,
        share_deny: 0,
        openhow: Openflag4::NoCreate,
        claim: OpenClaim4::Null("file".into()),
    };
    let again = c.c.run(&[putfh(&dir), Argop::Open(args), getfh]);
    assert_eq!(again.ops()[1], first.last());
    let Resop::Getfh(Ok(handle)) = again.last() else { panic!("{again:?}") };
    assert_eq!(handle.object.0, c.c.handle("/export/file"));
    c.seqid += 1;
    let now = stateid(&first);
    assert_eq!((now.other, now.seqid), (opened.stateid.other, opened.stateid.seqid + 1));

    // Errors that advance the sequence, too.
    let failed = c.open_in("/export", OpenClaim4::Null("nothing".into()), Openflag4::NoCreate, R, 0);
    assert_eq!(failed.status(), Nfsstat4::NOENT);
    make_file(&c.c, "/export", "nothing", b"now there");
    c.seqid -= 1;
    let again = c.open_in("/export", OpenClaim4::Null("nothing".into()), Openflag4::NoCreate, R, 0);
    assert_eq!(again.status(), Nfsstat4::NOENT);

    // OPEN_DOWNGRADE and CLOSE; not another operation with the same number.
    let narrow = c.downgrade("file", now, R, 0).unwrap();
    c.seqid -= 1;
    assert_eq!(c.downgrade("file", now, R, 0), Ok(narrow));
    c.seqid -= 1;
    assert_eq!(c.close("file", narrow), Err(Nfsstat4::BAD_SEQID));
    let closed = c.close("file", narrow).unwrap();
    c.seqid -= 1;
    assert_eq!(c.close("file", narrow), Ok(closed));
    // The next request of the owner ends that.
    let opened = c.open("file", R, 0);
    c.seqid -= 2;
    assert_eq!(c.close("file", narrow), Err(Nfsstat4::BAD_STATEID));
    c.seqid += 1;
    assert_eq!(c.close("file", opened.stateid).err(), None);
    assert_eq!(server.state.read().files.counts().files, 0);
}

#[test]
fn what_is_out_of_sequence_is_refused() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let opened = c.open("file", R, 0);
    let at = c.seqid;
    for seqid in [at.wrapping_sub(1), at + 2, at + 1000, 0] {
        assert_eq!(open_with(&mut c, seqid, "file").status(), Nfsstat4::BAD_SEQID, "{seqid}");
        c.seqid = seqid.wrapping_sub(1);
        assert_eq!(c.close("file", opened.stateid), Err(Nfsstat4::BAD_SEQID), "{seqid}");
    }
    // BAD_SEQID comes before OLD_STATEID (RFC 7530 §9.1.9), and neither BAD_SEQID nor BAD_STATEID takes a number.
    let old = Stateid4 { seqid: opened.stateid.seqid - 1, ..opened.stateid };
    c.seqid = at + 3;
    assert_eq!(c.close("file", old), Err(Nfsstat4::BAD_SEQID));
    c.seqid = at;
    assert_eq!(c.close("file", Stateid4 { seqid: 99, ..opened.stateid }), Err(Nfsstat4::BAD_STATEID));
    c.seqid = at;
    assert_eq!(c.close("file", old), Err(Nfsstat4::OLD_STATEID));
    assert_eq!(c.close("file", opened.stateid).err(), None);
}

/// libnfs 4.0 does not count an OPEN that failed.
#[test]
fn another_open_with_the_number_of_a_failed_one_is_executed() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    c.open("file", R, 0);
    let next = c.seqid.wrapping_add(1);
    for _ in 0..2 {
        assert_eq!(open_with(&mut c, next, "missing").status(), Nfsstat4::NOENT);
    }
    assert_eq!(open_with(&mut c, next, "file").status(), Nfsstat4::OK);
    // What succeeded is only repeated.
    assert_eq!(open_with(&mut c, next, "missing").status(), Nfsstat4::OK);
}

#[test]
fn numbers_wrap_around() {
    let server = server_without_delegations();
    for first_after in [0, 1] {
        let mut c = Holder::new(&server, 0, 1);
        c.owner = format!("wraps to {first_after}");
        c.seqid = u32::MAX - 2;
        let opened = c.open("file", R, 0);
        assert_eq!(c.seqid, u32::MAX);
        c.seqid = first_after - u32::from(first_after > 0);
        if first_after == 0 {
            c.seqid = u32::MAX;
        }
        assert_eq!(c.close("file", opened.stateid).err(), None);
        assert_eq!(c.seqid, first_after);
    }
}

#[test]
fn new_owners_confirm() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let first = open_with(&mut c, 10, "file");
    assert!(is_to_confirm(&first));
    let open = stateid(&first);
    // Until then the stateid is good for nothing.
    assert_eq!(c.read("file", open), Nfsstat4::BAD_STATEID);
    assert_eq!(c.close("file", open), Err(Nfsstat4::BAD_STATEID));
    // A repetition is one; anything else starts anew.
    assert_eq!(open_with(&mut c, 10, "file"), first);
    let second = open_with(&mut c, 77, "file");
    assert!(is_to_confirm(&second) && stateid(&second).other != open.other);
    c.seqid = 77;
    let confirmed = c.confirm("file", stateid(&second)).unwrap();
    assert_eq!((confirmed.other, confirmed.seqid), (stateid(&second).other, 2));
    c.seqid -= 1;
    assert_eq!(c.confirm("file", stateid(&second)), Ok(confirmed));
    assert_eq!(c.confirm("file", confirmed), Err(Nfsstat4::BAD_STATEID));
    c.seqid -= 1;
    assert_eq!(c.read("file", confirmed), Nfsstat4::OK);
    // Known owners do not confirm again, even when they have nothing open.
    c.close("file", confirmed).unwrap();
    let again = c.open_in("/export", OpenClaim4::Null("file".into()), Openflag4::NoCreate, R, 0);
    assert!(!is_to_confirm(&again));
    c.close("file", stateid(&again)).unwrap();
}

#[test]
fn who_confirms_out_of_sequence_loses_the_open() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let first = open_with(&mut c, 10, "file");
    c.seqid = 11;
    assert_eq!(c.confirm("file", stateid(&first)), Err(Nfsstat4::BAD_SEQID));
    c.seqid = 10;
    assert_eq!(c.confirm("file", stateid(&first)), Err(Nfsstat4::BAD_STATEID));
    assert_eq!(server.state.read().files.counts(), Default::default());
}

#[test]
fn owners_are_forgotten_when_they_are_not_used() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let used = c.open("file", R, 0);
    let mut brief = Holder { c: client_of_40(&server, 2), owner: "brief".into(), seqid: 0 };
    let opened = brief.open("file", R, 0);
    brief.close("file", opened.stateid).unwrap();
    let mut never = Holder { c: client_of_40(&server, 3), owner: "never confirms".into(), seqid: 0 };
    open_with(&mut never, 1, "file");
    assert_eq!(server.state.read().files.counts().owners, 3);
    pass(LEASE / 2, &mut [&mut c, &mut brief, &mut never]);
    assert_eq!(server.state.read().files.counts().owners, 3);
    assert_eq!(c.read("file", used.stateid), Nfsstat4::OK);
    pass(LEASE / 2, &mut [&mut c, &mut brief, &mut never]);
    let counts = server.state.read().files.counts();
    assert_eq!((counts.owners, counts.states, counts.files), (1, 1, 1));
    assert_eq!(c.read("file", used.stateid), Nfsstat4::OK);
    // One that comes back confirms again.
    let again = brief.open_in("/export", OpenClaim4::Null("file".into()), Openflag4::NoCreate, R, 0);
    assert!(is_to_confirm(&again));
}

#[test]
fn clients_that_are_not_known() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    c.c.clientid ^= 0xffff_0000_0000_0000;
    assert_eq!(c.try_open("file", R, 0).err(), Some(Nfsstat4::STALE_CLIENTID));
}
