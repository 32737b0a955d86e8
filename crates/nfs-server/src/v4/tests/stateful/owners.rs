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
    assert_eq!(server.state.all().files().counts().files, 0);
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
    assert_eq!(server.state.all().files().counts(), Default::default());
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
    assert_eq!(server.state.all().files().counts().owners, 3);
    pass(LEASE / 2, &mut [&mut c, &mut brief, &mut never]);
    assert_eq!(server.state.all().files().counts().owners, 3);
    assert_eq!(c.read("file", used.stateid), Nfsstat4::OK);
    pass(LEASE / 2, &mut [&mut c, &mut brief, &mut never]);
    let counts = server.state.all().files().counts();
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

/// The request of a row of the table: where it is sent, and what.
fn failing<'a>(word: &str, open: Stateid4, clientid: u64, next: u32) -> (Option<&'static str>, Argop<'a>) {
    let owner = |name: &'static str| StateOwner4 { clientid, owner: name.into() };
    let (file, dir) = (Some("/export/file"), Some("/export"));
    let seqid = if word.ends_with("-SEQID") && word != "LOCK-OWNER-SEQID" { next + 5 } else { next };
    let old = Stateid4 { seqid: open.seqid - 1, ..open };
    let opening = OpenArgs {
        seqid,
        share_access: R,
        share_deny: 0,
        owner: owner("owner 1"),
        openhow: Openflag4::NoCreate,
        claim: OpenClaim4::Null("file".into()),
    };
    let named = |name: &'static str| OpenArgs { claim: OpenClaim4::Null(name.into()), ..opening };
    let (open_stateid, share_access) = (open, RW);
    let downgrade = OpenDowngradeArgs { open_stateid, seqid, share_access, share_deny: 0 };
    let close = CloseArgs { seqid, open_stateid };
    let new = OpenToLockOwner4 { open_seqid: seqid, open_stateid, lock_seqid: 1, lock_owner: owner("locks") };
    let locking = |new, offset, length| LockArgs {
        locktype: LockType4::Write,
        reclaim: false,
        offset,
        length,
        locker: Locker4::OpenOwner(new),
    };
    let lock = |new| Argop::Lock(locking(new, 0, 1));
    match word {
        "OPEN-MISSING" => (dir, Argop::Open(named("missing"))),
        "OPEN-GUARDED" => {
            let openhow = Openflag4::Create(Createhow4::Guarded(no_attrs()));
            (dir, Argop::Open(OpenArgs { openhow, ..opening }))
        }
        "OPEN-DIRECTORY" => (dir, Argop::Open(named("dir"))),
        "OPEN-LINK" => (dir, Argop::Open(named("link"))),
        "OPEN-DENIED" => (dir, Argop::Open(OpenArgs { share_deny: W, ..opening })),
        "OPEN-NO-ACCESS" => (dir, Argop::Open(OpenArgs { share_access: 0, ..opening })),
        "OPEN-NAME" => (dir, Argop::Open(named(".."))),
        "OPEN-IN-FILE" => (file, Argop::Open(opening)),
        "OPEN-DELEGATE-PREV" => {
            (dir, Argop::Open(OpenArgs { claim: OpenClaim4::DelegatePrev("file".into()), ..opening }))
        }
        "OPEN-PREVIOUS" => {
            let claim = OpenClaim4::Previous(OpenDelegationType4::None);
            (file, Argop::Open(OpenArgs { claim, ..opening }))
        }
        "OPEN-NO-HANDLE" => (None, Argop::Open(opening)),
        "OPEN-SEQID" => (dir, Argop::Open(opening)),
        "OPEN-41" => (file, Argop::Open(OpenArgs { claim: OpenClaim4::Fh, ..opening })),
        "DOWNGRADE-WIDER" => (file, Argop::OpenDowngrade(OpenDowngradeArgs { share_deny: R, ..downgrade })),
        "DOWNGRADE-NOTHING" => {
            (file, Argop::OpenDowngrade(OpenDowngradeArgs { share_access: 0, ..downgrade }))
        }
        "DOWNGRADE-WORD" => (file, Argop::OpenDowngrade(OpenDowngradeArgs { share_access: 7, ..downgrade })),
        "DOWNGRADE-OLD" => (file, Argop::OpenDowngrade(OpenDowngradeArgs { open_stateid: old, ..downgrade })),
        "DOWNGRADE-FUTURE" => {
            let open_stateid = Stateid4 { seqid: open.seqid + 1, ..open };
            (file, Argop::OpenDowngrade(OpenDowngradeArgs { open_stateid, ..downgrade }))
        }
        "DOWNGRADE-SEQID" => (file, Argop::OpenDowngrade(downgrade)),
        "DOWNGRADE-OTHER-FILE" => (dir, Argop::OpenDowngrade(downgrade)),
        "DOWNGRADE-NO-HANDLE" => (None, Argop::OpenDowngrade(downgrade)),
        "CLOSE-OLD" => (file, Argop::Close(CloseArgs { open_stateid: old, ..close })),
        "CLOSE-SEQID" => (file, Argop::Close(close)),
        "CLOSE-OTHER-FILE" => (dir, Argop::Close(close)),
        "CLOSE-NO-HANDLE" => (None, Argop::Close(close)),
        "CONFIRM-AGAIN" => (file, Argop::OpenConfirm(OpenConfirmArgs { open_stateid, seqid })),
        "LOCK-LENGTH" => (file, Argop::Lock(locking(new, 0, 0))),
        "LOCK-OVERFLOW" => (file, Argop::Lock(locking(new, 2, u64::MAX - 1))),
        "LOCK-DENIED" => (file, Argop::Lock(locking(new, 100, 1))),
        "LOCK-OLD" => (file, lock(OpenToLockOwner4 { open_stateid: old, ..new })),
        "LOCK-RECLAIM" => (file, Argop::Lock(LockArgs { reclaim: true, ..locking(new, 0, 1) })),
        "LOCK-SEQID" => (file, lock(new)),
        "LOCK-OWNER-SEQID" => {
            (file, lock(OpenToLockOwner4 { lock_seqid: 9, lock_owner: owner("known"), ..new }))
        }
        "LOCK-OTHER-CLIENT" => {
            let lock_owner = StateOwner4 { clientid: 5, owner: "locks".into() };
            (file, lock(OpenToLockOwner4 { lock_owner, ..new }))
        }
        "LOCK-OTHER-FILE" => (Some("/other/file"), lock(new)),
        _ => panic!("{word}"),
    }
}

/// After a failure the owner's next number is the one that the table says; the same request again fails the same way.
#[test]
fn which_failures_count() {
    let (mut rules, mut wrong) = (0, Vec::new());
    for line in include_str!("../rules/sequences.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split_whitespace();
        let [word, status, counts] = [(); 3].map(|()| columns.next().unwrap());
        let server = server_without_delegations();
        let (mut c, mut other) = (Holder::new(&server, 0, 1), Holder::new(&server, 0, 2));
        let theirs = other.open("file", RW, 0).stateid;
        locks::lock(&mut other, "file", theirs, "theirs", LockType4::Write, 100, 1).unwrap();
        let open = c.open("file", RW, 0).stateid;
        locks::lock(&mut c, "file", open, "known", LockType4::Write, 50, 1).unwrap();
        let next = c.seqid + 1;
        let (place, op) = failing(word, open, c.c.clientid, next);
        for _ in 0..2 {
            let results = match place {
                Some(path) => c.c.run_at(path, &[op]),
                None => c.c.run(&[op]),
            };
            let found = results.status().to_string();
            if found.trim_start_matches("NFS4ERR_") != status {
                wrong.push(format!("{word}: {found}, not {status}"));
            }
        }
        // The number that is not the next one is refused, as is another operation with the one of before.
        for (seqid, is_next) in [(next, counts == "keeps"), (next + 1, counts == "counts")] {
            c.seqid = seqid - 1;
            let found = c.downgrade("file", open, RW, 0);
            let expected = if is_next { None } else { Some(Nfsstat4::BAD_SEQID) };
            // Done with the first number, the second is the next one; and that of another OPEN_DOWNGRADE repeats it.
            let says_nothing = if seqid > next { counts == "keeps" } else { word.starts_with("DOWNGRADE") };
            if found.err() != expected && !says_nothing {
                wrong.push(format!("{word}: then {seqid} of {next}: {found:?}"));
            }
            rules += 1;
        }
    }
    assert!(wrong.is_empty(), "of {rules}: {wrong:#?}");
    assert!(rules > 60, "{rules}");
}
