use super::*;

pub(super) fn lock(
    c: &mut Holder<'_>,
    name: &str,
    stateid: Stateid4,
    owner: &str,
    kind: LockType4,
    offset: u64,
    length: u64,
) -> Result<Stateid4, Nfsstat4> {
    let open_seqid = c.next();
    match lock_result(c, name, stateid, open_seqid, owner, 1, kind, offset, length) {
        Ok(stateid) => Ok(stateid),
        Err((status, _)) => Err(status),
    }
}

type Denial = Option<(u64, u64, LockType4, u64, Vec<u8>)>;

#[allow(clippy::too_many_arguments)]
fn lock_result(
    c: &mut Holder<'_>,
    name: &str,
    open_stateid: Stateid4,
    open_seqid: u32,
    owner: &str,
    lock_seqid: u32,
    locktype: LockType4,
    offset: u64,
    length: u64,
) -> Result<Stateid4, (Nfsstat4, Denial)> {
    let lock_owner = StateOwner4 { clientid: c.c.clientid, owner: owner.into() };
    let locker = Locker4::OpenOwner(OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner });
    run_lock(c, name, LockArgs { locktype, reclaim: false, offset, length, locker })
}

pub(super) fn lock_more(
    c: &mut Holder<'_>,
    name: &str,
    lock_stateid: Stateid4,
    lock_seqid: u32,
    locktype: LockType4,
    offset: u64,
    length: u64,
) -> Result<Stateid4, (Nfsstat4, Denial)> {
    let locker = Locker4::LockOwner(ExistLockOwner4 { lock_stateid, lock_seqid });
    run_lock(c, name, LockArgs { locktype, reclaim: false, offset, length, locker })
}

fn denial(denied: &LockDenied<'_>) -> Denial {
    Some((
        denied.offset,
        denied.length,
        denied.locktype,
        denied.owner.clientid,
        denied.owner.owner.0.to_vec(),
    ))
}

fn run_lock(c: &mut Holder<'_>, name: &str, args: LockArgs<'_>) -> Result<Stateid4, (Nfsstat4, Denial)> {
    match c.at(name, Argop::Lock(args)).last() {
        Resop::Lock(LockRes::Ok(ok)) => Ok(ok.lock_stateid),
        Resop::Lock(LockRes::Denied(denied)) => Err((Nfsstat4::DENIED, denial(&denied))),
        Resop::Lock(LockRes::Err(status)) => Err((status, None)),
        other => panic!("{other:?}"),
    }
}

pub(super) fn unlock(
    c: &mut Holder<'_>,
    name: &str,
    lock_stateid: Stateid4,
    offset: u64,
    length: u64,
) -> Result<Stateid4, Nfsstat4> {
    unlock_with(c, name, lock_stateid, 2, offset, length)
}

pub(super) fn unlock_with(
    c: &mut Holder<'_>,
    name: &str,
    lock_stateid: Stateid4,
    seqid: u32,
    offset: u64,
    length: u64,
) -> Result<Stateid4, Nfsstat4> {
    let args = LockuArgs { locktype: LockType4::Read, seqid, lock_stateid, offset, length };
    match c.at(name, Argop::Locku(args)).last() {
        Resop::Locku(result) => result.map(|ok| ok.lock_stateid),
        other => panic!("{other:?}"),
    }
}

fn test(
    c: &mut Holder<'_>,
    name: &str,
    owner: &str,
    locktype: LockType4,
    offset: u64,
    length: u64,
) -> Result<(), (Nfsstat4, Denial)> {
    let owner = StateOwner4 { clientid: c.c.clientid, owner: owner.into() };
    match c.at(name, Argop::Lockt(LocktArgs { locktype, offset, length, owner })).last() {
        Resop::Lockt(LocktRes::Ok(())) => Ok(()),
        Resop::Lockt(LocktRes::Denied(denied)) => Err((Nfsstat4::DENIED, denial(&denied))),
        Resop::Lockt(LocktRes::Err(status)) => Err((status, None)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lock_denied_names_what_is_in_the_way() {
    let server = server_without_delegations();
    for minor in [0, 1, 2] {
        let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
        let (a, b) = (one.open("file", RW, 0).stateid, two.open("file", RW, 0).stateid);
        let held = lock(&mut one, "file", a, "first", LockType4::Write, 10, 20).unwrap();
        let expected = Some((10, 20, LockType4::Write, one.c.clientid, b"first".to_vec()));
        let seqid = two.next();
        let denied =
            lock_result(&mut two, "file", b, seqid, "second", 1, LockType4::Read, 29, 1).unwrap_err();
        assert_eq!(denied, (Nfsstat4::DENIED, expected.clone()));
        assert_eq!(
            test(&mut two, "file", "second", LockType4::Read, 0, u64::MAX),
            Err((Nfsstat4::DENIED, expected))
        );
        assert_eq!(test(&mut two, "file", "second", LockType4::Write, 30, u64::MAX), Ok(()));
        assert_eq!(test(&mut one, "file", "first", LockType4::Write, 0, u64::MAX), Ok(()));
        let free = lock(&mut two, "file", b, "second", LockType4::Write, 30, u64::MAX).unwrap();
        let to_the_end = Some((30, u64::MAX, LockType4::Write, two.c.clientid, b"second".to_vec()));
        assert_eq!(
            test(&mut one, "file", "first", LockType4::Read, u64::MAX - 1, 1).unwrap_err().1,
            to_the_end
        );
        // Locks go with their open.
        one.close("file", a).unwrap();
        assert_eq!(test(&mut two, "file", "second", LockType4::Write, 0, 30), Ok(()));
        unlock(&mut two, "file", free, 30, u64::MAX).unwrap();
        two.close("file", b).unwrap();
        assert_eq!(unlock(&mut one, "file", held, 0, 1), Err(Nfsstat4::BAD_STATEID));
        assert_eq!(server.state.all().files().counts().files, 0);
    }
}

#[test]
fn ranges_modes_and_kinds_are_checked() {
    for minor in [0, 1] {
        let server = server_without_delegations();
        let mut c = Holder::new(&server, minor, 1);
        let read = c.open("file", R, 0).stateid;
        for (offset, length) in [(0, 0), (u64::MAX, 1), (u64::MAX, u64::MAX - 1), (2, u64::MAX - 1)] {
            assert_eq!(
                lock(&mut c, "file", read, "l", LockType4::Read, offset, length),
                Err(Nfsstat4::INVAL)
            );
            assert_eq!(
                test(&mut c, "file", "l", LockType4::Read, offset, length),
                Err((Nfsstat4::INVAL, None))
            );
        }
        assert_eq!(lock(&mut c, "file", read, "l", LockType4::Write, 0, 1), Err(Nfsstat4::OPENMODE));
        assert_eq!(lock(&mut c, "file", read, "l", LockType4::WriteW, 0, 1), Err(Nfsstat4::OPENMODE));
        let mut writer = Holder::new(&server, minor, 2);
        let write = writer.open("file", W, 0).stateid;
        assert_eq!(lock(&mut writer, "file", write, "l", LockType4::Read, 0, 1), Err(Nfsstat4::OPENMODE));
        assert_eq!(
            lock(&mut writer, "file", Stateid4::ANONYMOUS, "l", LockType4::Read, 0, 1),
            Err(Nfsstat4::BAD_STATEID)
        );
        writer.seqid -= 1;
        let held = lock(&mut writer, "file", write, "l", LockType4::Write, 0, 1).unwrap();
        // An open stateid is no lock stateid, nor the other way round.
        assert_eq!(unlock(&mut writer, "file", write, 0, 1), Err(Nfsstat4::BAD_STATEID));
        assert_eq!(writer.close("file", held), Err(Nfsstat4::BAD_STATEID));
        // I/O goes by the mode of the open.
        assert_eq!(writer.write("file", held), Nfsstat4::OK);
        assert_eq!(writer.read("file", held), Nfsstat4::OPENMODE);
        let special = if minor == 0 { Nfsstat4::INVAL } else { Nfsstat4::WRONG_TYPE };
        let link = if minor == 0 { Nfsstat4::INVAL } else { Nfsstat4::SYMLINK };
        for (name, expected) in [("dir", Nfsstat4::ISDIR), ("fifo", special), ("link", link)] {
            assert_eq!(test(&mut c, name, "l", LockType4::Read, 0, 1), Err((expected, None)), "{name}");
        }
    }
}

#[test]
fn an_owner_upgrades_downgrades_and_splits_its_locks() {
    let server = server_without_delegations();
    let (mut one, mut two) = (Holder::new(&server, 1, 1), Holder::new(&server, 1, 2));
    let (a, b) = (one.open("file", RW, 0).stateid, two.open("file", RW, 0).stateid);
    let mine = lock(&mut one, "file", a, "l", LockType4::Write, 0, 100).unwrap();
    let again = lock(&mut one, "file", a, "l", LockType4::Read, 40, 20).unwrap();
    assert_eq!((again.other, again.seqid), (mine.other, mine.seqid + 1));
    let theirs = lock(&mut two, "file", b, "l", LockType4::Read, 45, 5).unwrap();
    assert_eq!(
        lock_more(&mut one, "file", again, 0, LockType4::Write, 40, 20).unwrap_err().0,
        Nfsstat4::DENIED
    );
    unlock(&mut two, "file", theirs, 45, 5).unwrap();
    let whole = lock_more(&mut one, "file", again, 0, LockType4::Write, 40, 20).unwrap();
    let hole = unlock(&mut one, "file", whole, 50, 1).unwrap();
    assert_eq!(test(&mut two, "file", "l", LockType4::Write, 50, 1), Ok(()));
    assert_eq!(test(&mut two, "file", "l", LockType4::Write, 51, 1).unwrap_err().1.unwrap().0, 51);
    assert_eq!(
        test(&mut two, "file", "l", LockType4::Write, 49, 1).unwrap_err().1.map(|d| (d.0, d.1)),
        Some((0, 50))
    );
    unlock(&mut one, "file", hole, 0, u64::MAX).unwrap();
}

/// Open, lock, open wider by the same owner, lock again through the open: the lock owner goes on counting.
#[test]
fn a_lock_of_40_is_upgraded_through_an_open_that_was_widened() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let open = c.open("file", R, 0).stateid;
    let seqid = c.next();
    let first = lock_result(&mut c, "file", open, seqid, "l", 0, LockType4::Read, 0, 10).unwrap();
    let wider = c.open("file", W, 0).stateid;
    let seqid = c.next();
    let second = lock_result(&mut c, "file", wider, seqid, "l", 1, LockType4::Write, 0, 10).unwrap();
    assert_eq!((second.other, second.seqid), (first.other, first.seqid + 1));
    let unlocked = unlock_with(&mut c, "file", second, 2, 0, 10).unwrap();
    let narrower = c.downgrade("file", wider, R, 0).unwrap();
    let seqid = c.next();
    let third = lock_result(&mut c, "file", narrower, seqid, "l", 3, LockType4::Read, 0, 10).unwrap();
    assert_eq!(third.seqid, unlocked.seqid + 1);
}

#[test]
fn lock_owners_of_40_have_sequences_of_their_own() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let open = c.open("file", RW, 0).stateid;
    let seqid = c.next();
    let w = LockType4::Write;
    let first = lock_result(&mut c, "file", open, seqid, "l", 5, w, 0, 10).unwrap();
    // Repeated; then with other numbers of either owner.
    assert_eq!(lock_result(&mut c, "file", open, seqid, "l", 5, w, 0, 10), Ok(first));
    assert_eq!(
        lock_result(&mut c, "file", open, seqid + 2, "l", 6, w, 0, 10),
        Err((Nfsstat4::BAD_SEQID, None))
    );
    // An owner with a lock stateid goes on with its own number, also where it begins with the open once more.
    for number in [5, 7] {
        assert_eq!(
            lock_result(&mut c, "file", open, seqid + 1, "l", number, w, 0, 10),
            Err((Nfsstat4::BAD_SEQID, None))
        );
    }
    let second = lock_more(&mut c, "file", first, 6, w, 20, 10).unwrap();
    assert_eq!(lock_more(&mut c, "file", first, 6, w, 20, 10), Ok(second));
    assert_eq!(lock_more(&mut c, "file", second, 8, w, 40, 10), Err((Nfsstat4::BAD_SEQID, None)));
    assert_eq!(lock_more(&mut c, "file", first, 7, w, 40, 10), Err((Nfsstat4::OLD_STATEID, None)));
    let third = unlock_with(&mut c, "file", second, 8, 0, 5).unwrap();
    assert_eq!(unlock_with(&mut c, "file", second, 8, 0, 5), Ok(third));
    assert_eq!(unlock_with(&mut c, "file", third, 8, 0, 5), Ok(third), "only the number tells");
    assert_eq!(lock_more(&mut c, "file", third, 8, w, 0, 5), Err((Nfsstat4::BAD_SEQID, None)));
    // DENIED takes a number, and is repeated with what was in the way.
    let mut other = Holder::new(&server, 0, 2);
    let their_open = other.open("file", RW, 0).stateid;
    let seqid = other.next();
    let denied = lock_result(&mut other, "file", their_open, seqid, "x", 1, w, 0, 100);
    assert_eq!(denied.as_ref().unwrap_err().0, Nfsstat4::DENIED);
    let fourth = unlock_with(&mut c, "file", third, 9, 0, u64::MAX).unwrap();
    assert_eq!(lock_result(&mut other, "file", their_open, seqid, "x", 1, w, 0, 100), denied);
    assert!(lock_result(&mut other, "file", their_open, seqid + 1, "x", 1, w, 0, 100).is_ok());
    assert_eq!(fourth.seqid, third.seqid + 1);
}

/// RFC 7530 §16.10.5: with the open owner's next number the request is no repetition, whatever the lock owner's number.
#[test]
fn a_lock_owner_goes_on_counting_in_another_file() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    make_file(&c.c, "/export", "other", b"");
    let w = LockType4::Write;
    let open = c.open("file", RW, 0).stateid;
    let seqid = c.next();
    lock_result(&mut c, "file", open, seqid, "l", 5, w, 0, 10).unwrap();
    let open = c.open("other", RW, 0).stateid;
    let seqid = c.next();
    for wrong in [4, 5, 7] {
        let outcome = lock_result(&mut c, "other", open, seqid, "l", wrong, w, 0, 10);
        assert_eq!(outcome, Err((Nfsstat4::BAD_SEQID, None)), "{wrong}");
    }
    let first = lock_result(&mut c, "other", open, seqid, "l", 6, w, 0, 10).unwrap();
    assert_eq!(lock_result(&mut c, "other", open, seqid, "l", 6, w, 0, 10), Ok(first), "a repetition");
}

#[test]
fn lock_owners_are_released_when_they_hold_nothing() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 0, 1);
    let clientid = c.c.clientid;
    let release = |owner: &str, clientid| {
        let lock_owner = StateOwner4 { clientid, owner: owner.into() };
        let mut c = Client::new(&server, 0, 9);
        c.run(&[Argop::ReleaseLockowner(ReleaseLockownerArgs { lock_owner })]).status()
    };
    let open = c.open("file", RW, 0).stateid;
    let held = lock(&mut c, "file", open, "l", LockType4::Write, 0, 10).unwrap();
    assert_eq!(release("l", clientid), Nfsstat4::LOCKS_HELD);
    let held = unlock(&mut c, "file", held, 0, 10).unwrap();
    assert_eq!(release("l", clientid), Nfsstat4::OK);
    assert_eq!(release("l", clientid), Nfsstat4::OK);
    assert_eq!(unlock_with(&mut c, "file", held, 3, 0, 10), Err(Nfsstat4::BAD_STATEID));
    assert_eq!(release("l", clientid ^ 0xffff_0000_0000_0000), Nfsstat4::STALE_CLIENTID);
    let mut session = Holder::new(&server, 1, 2);
    let lock_owner = StateOwner4 { clientid, owner: "l".into() };
    let unknown = session.c.run(&[Argop::ReleaseLockowner(ReleaseLockownerArgs { lock_owner })]);
    assert_eq!(unknown.status(), Nfsstat4::NOTSUPP);
}

#[test]
fn a_lock_that_becomes_free_is_kept_for_who_waited() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut all: Vec<_> = (1..4).map(|n| Holder::new(&server, minor, n)).collect();
        let opens: Vec<_> = all.iter_mut().map(|c| c.open("file", RW, 0).stateid).collect();
        let [one, two, three] = &mut all[..] else { panic!() };
        let held = lock(one, "file", opens[0], "l1", LockType4::Write, 0, 10).unwrap();
        let waits = |c: &mut Holder<'_>, n: usize, kind| {
            lock(c, "file", opens[n], &format!("l{}", n + 1), kind, 0, 10)
        };
        assert_eq!(waits(two, 1, LockType4::WriteW), Err(Nfsstat4::DENIED));
        assert_eq!(waits(three, 2, LockType4::WriteW), Err(Nfsstat4::DENIED));
        unlock(one, "file", held, 0, 10).unwrap();
        let told: Vec<_> = one.callbacks();
        let expected = Effect::Call(
            two.id(),
            Callback::NotifyLock { file: two.c.id("/export/file"), owner: b"l2".to_vec() },
        );
        assert_eq!(told, if minor == 0 { vec![] } else { vec![expected] });
        // First come, first served.
        assert_eq!(waits(three, 2, LockType4::WriteW), Err(Nfsstat4::DENIED));
        let second = waits(two, 1, LockType4::WriteW).unwrap();
        assert_eq!(waits(three, 2, LockType4::WriteW), Err(Nfsstat4::DENIED));
        unlock(two, "file", second, 0, 10).unwrap();
        two.callbacks();
        // Who asks once more without waiting, and is denied, waits no more (RFC 7530 §9.4).
        let mut four = Holder::new(&server, minor, 4);
        let open = four.open("file", RW, 0).stateid;
        assert_eq!(lock(&mut four, "file", open, "l4", LockType4::Write, 0, 10), Err(Nfsstat4::DENIED));
        // It is kept for a while only.
        server.state.tick(three.c.now.instant);
        pass(LEASE, &mut [three, &mut four]);
        let fourth = lock(&mut four, "file", open, "l4", LockType4::Write, 0, 10).unwrap();
        assert_eq!(waits(three, 2, LockType4::WriteW), Err(Nfsstat4::DENIED));
        assert_eq!(waits(three, 2, LockType4::Write), Err(Nfsstat4::DENIED));
        unlock(&mut four, "file", fourth, 0, 10).unwrap();
        assert_eq!(four.callbacks(), []);
        assert_eq!(server.state.all().files().counts().waiting, 0);
        all.drain(..);
        let ids: Vec<_> = (1..5).map(|n| Holder::new(&server, minor, n).id()).collect();
        let mut everything = server.state.all();
        let (clients, files) = everything.split();
        ids.iter().for_each(|id| clients.expire(files, *id, &mut Vec::new()));
        assert_eq!(files.counts(), Default::default());
    }
}

#[test]
fn locks_of_a_client_whose_lease_ran_out_give_way() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
        let (a, b) = (one.open("file", RW, 0).stateid, two.open("file", RW, 0).stateid);
        let held = lock(&mut one, "file", a, "l", LockType4::Write, 0, 10).unwrap();
        two.c.wait(LEASE + Duration::from_secs(1));
        one.c.wait(LEASE + Duration::from_secs(1));
        two.read("file", b);
        let taken = lock(&mut two, "file", b, "l", LockType4::Write, 0, 10).unwrap();
        let expected = if minor == 0 { Nfsstat4::EXPIRED } else { Nfsstat4::BADSESSION };
        let lost = one.at(
            "file",
            Argop::Locku(LockuArgs {
                locktype: LockType4::Write,
                seqid: 2,
                lock_stateid: held,
                offset: 0,
                length: 10,
            }),
        );
        assert_eq!(lost.status(), expected);
        unlock(&mut two, "file", taken, 0, 10).unwrap();
        two.close("file", b).unwrap();
    }
}
