use super::*;

fn test(c: &mut Holder<'_>, stateids: &[Stateid4]) -> Vec<Nfsstat4> {
    let mut e = benchmaster_nfs_proto::xdr::Encoder::new();
    e.put(&(stateids.len() as u32));
    stateids.iter().for_each(|stateid| e.put(stateid));
    let args = benchmaster_nfs_proto::xdr::Decoder::new(e.buffer()).get().unwrap();
    let results = c.c.run(&[Argop::TestStateid(args)]);
    let Resop::TestStateid(Ok(ok)) = results.last() else { panic!("{results:?}") };
    ok.status_codes.iter().collect()
}

fn free(c: &mut Holder<'_>, stateid: Stateid4) -> Nfsstat4 {
    c.c.run(&[Argop::FreeStateid(FreeStateidArgs { stateid })]).status()
}

#[test]
fn stateids_are_checked_field_by_field() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        c.open("file", R, 0);
        let now = c.open("file", R, 0).stateid;
        let with = |seqid, at: usize, xor: u8| {
            let mut stateid = Stateid4 { seqid, ..now };
            stateid.other[at] ^= xor;
            stateid
        };
        let of_another_boot = if minor == 0 { Nfsstat4::STALE_STATEID } else { Nfsstat4::BAD_STATEID };
        let latest = if minor == 0 { Nfsstat4::OLD_STATEID } else { Nfsstat4::OK };
        for (stateid, expected) in [
            (now, Nfsstat4::OK),
            (with(0, 0, 0), latest),
            (with(now.seqid - 1, 0, 0), Nfsstat4::OLD_STATEID),
            (with(now.seqid + 1, 0, 0), Nfsstat4::BAD_STATEID),
            (with(now.seqid, 0, 1), of_another_boot),
            (with(now.seqid, 7, 0x40), Nfsstat4::BAD_STATEID),
            (with(now.seqid, 11, 1), Nfsstat4::BAD_STATEID),
            (Stateid4::INVALID, Nfsstat4::BAD_STATEID),
            (Stateid4 { seqid: 5, other: [0; 12] }, Nfsstat4::BAD_STATEID),
            (Stateid4 { seqid: 5, other: [0xff; 12] }, Nfsstat4::BAD_STATEID),
            // Without a current stateid.
            (Stateid4::CURRENT, Nfsstat4::BAD_STATEID),
            (Stateid4::ANONYMOUS, Nfsstat4::OK),
            (Stateid4::READ_BYPASS, Nfsstat4::OK),
        ] {
            assert_eq!(c.read("file", stateid), expected, "{minor} {stateid:?}");
        }
        // Of another file, of another client.
        make_file(&c.c, "/export", &format!("other {minor}"), b"x");
        assert_eq!(c.read(&format!("other {minor}"), now), Nfsstat4::BAD_STATEID);
        let mut stranger = Holder::new(&server, 1, 7);
        assert_eq!(stranger.read("file", now), Nfsstat4::BAD_STATEID);
        assert_eq!(c.close("file", Stateid4::ANONYMOUS), Err(Nfsstat4::BAD_STATEID));
        c.seqid -= 1;
        let closed = c.close("file", now).unwrap();
        if minor == 1 {
            assert_eq!(closed, Stateid4::INVALID);
        }
        assert_eq!(c.read("file", now), Nfsstat4::BAD_STATEID);
        assert_eq!(c.read("file", closed), Nfsstat4::BAD_STATEID);
    }
}

#[test]
fn deny_modes_hold_against_io_without_an_open() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
        let opened = one.open("file", RW, RW);
        assert_eq!(two.read("file", Stateid4::ANONYMOUS), Nfsstat4::LOCKED);
        assert_eq!(two.read("file", Stateid4::READ_BYPASS), Nfsstat4::OK);
        assert_eq!(two.write("file", Stateid4::ANONYMOUS), Nfsstat4::LOCKED);
        assert_eq!(two.write("file", Stateid4::READ_BYPASS), Nfsstat4::LOCKED);
        assert_eq!(one.write("file", opened.stateid), Nfsstat4::OK);
        one.close("file", opened.stateid).unwrap();
        assert_eq!(two.write("file", Stateid4::ANONYMOUS), Nfsstat4::OK);
    }
}

/// RFC 7530 §9.6.3.1: also to requests that have no open.
#[test]
fn deny_modes_of_a_client_whose_lease_ran_out_give_way() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        for write in [false, true] {
            let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
            let opened = one.open("file", R, RW);
            let io = |two: &mut Holder<'_>| {
                if write {
                    two.write("file", Stateid4::ANONYMOUS)
                } else {
                    two.read("file", Stateid4::ANONYMOUS)
                }
            };
            assert_eq!(io(&mut two), Nfsstat4::LOCKED);
            two.c.wait(LEASE * 2);
            assert_eq!(io(&mut two), Nfsstat4::OK);
            let expected = if minor == 0 { Nfsstat4::EXPIRED } else { Nfsstat4::BADSESSION };
            assert_eq!(one.read("file", opened.stateid), expected);
            two.callbacks();
        }
    }
}

#[test]
fn who_only_writes_may_advise() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 2, 1);
    let opened = c.open("file", W, 0);
    let advise =
        |stateid| Argop::IoAdvise(IoAdviseArgs { stateid, offset: 0, count: 0, hints: Bitmap4::EMPTY });
    assert_eq!(c.at("file", advise(opened.stateid)).status(), Nfsstat4::OK);
    assert_eq!(c.read("file", opened.stateid), Nfsstat4::OPENMODE);
    c.close("file", opened.stateid).unwrap();
    assert_eq!(c.at("file", advise(opened.stateid)).status(), Nfsstat4::BAD_STATEID);
}

#[test]
fn the_current_stateid_goes_from_operation_to_operation() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 1, 1);
    let current = Stateid4::CURRENT;
    let open = || {
        Argop::Open(OpenArgs {
            seqid: 0,
            share_access: RW,
            share_deny: 0,
            owner: StateOwner4 { clientid: 0, owner: "me".into() },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null("file".into()),
        })
    };
    let read = Argop::Read(ReadArgs { stateid: current, offset: 0, count: 1 });
    let close = Argop::Close(CloseArgs { seqid: 0, open_stateid: current });
    let all = c.c.run_at("/export", &[open(), read, close]);
    assert_eq!(all.status(), Nfsstat4::OK, "{all:?}");
    // CLOSE leaves one that is good for nothing (RFC 8881 §8.2.3).
    let after = c.c.run_at("/export", &[open(), close, close]);
    assert_eq!((after.status(), after.ops().len()), (Nfsstat4::BAD_STATEID, 4));
    // A saved one means the state, not its version, which has moved on; but CLOSE means the version (RFC 8881 §8.2.3).
    let dir = c.c.handle("/export");
    let narrow = Argop::OpenDowngrade(OpenDowngradeArgs {
        open_stateid: current,
        seqid: 0,
        share_access: RW,
        share_deny: 0,
    });
    for (op, status) in
        [(read, Nfsstat4::OK), (close, Nfsstat4::OLD_STATEID), (narrow, Nfsstat4::OLD_STATEID)]
    {
        let all = c.c.run_at("/export", &[open(), Argop::Savefh, putfh(&dir), open(), Argop::Restorefh, op]);
        assert_eq!((all.status(), all.ops().len()), (status, 7), "{all:?}");
    }
    // Another file handle takes it away.
    let handle = c.c.handle("/export/file");
    let moved = c.c.run_at("/export", &[open(), putfh(&handle), close]);
    assert_eq!(moved.status(), Nfsstat4::BAD_STATEID);
}

#[test]
fn stateids_are_tested_and_freed() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 1, 1);
    let old = c.open("file", R, 0).stateid;
    let now = c.open("file", W, 0).stateid;
    let unknown = Stateid4 { seqid: 1, other: [3; 12] };
    let special = [Stateid4::ANONYMOUS, Stateid4::READ_BYPASS, Stateid4::CURRENT, Stateid4::INVALID];
    let bad = Nfsstat4::BAD_STATEID;
    assert_eq!(test(&mut c, &[now, old, unknown]), [Nfsstat4::OK, Nfsstat4::OLD_STATEID, bad]);
    assert_eq!(test(&mut c, &special), [bad; 4]);
    assert_eq!(test(&mut c, &[]), []);
    assert_eq!(free(&mut c, now), Nfsstat4::LOCKS_HELD);
    assert_eq!(free(&mut c, old), Nfsstat4::OLD_STATEID);
    assert_eq!(free(&mut c, unknown), bad);
    let lock = locks::lock(&mut c, "file", now, "l", LockType4::Write, 0, 10).unwrap();
    assert_eq!(free(&mut c, lock), Nfsstat4::LOCKS_HELD);
    let lock = locks::unlock(&mut c, "file", lock, 0, u64::MAX).unwrap();
    assert_eq!(free(&mut c, lock), Nfsstat4::OK);
    assert_eq!((free(&mut c, lock), test(&mut c, &[lock])), (bad, vec![bad]));
    assert_eq!(c.close("file", now), Ok(Stateid4::INVALID));
    assert_eq!(test(&mut c, &[now]), [bad]);
}

/// A stateid is no key: who did not open needs the file's own permission, whichever operation names it.
#[test]
fn io_with_the_stateid_of_another_user_takes_the_permission_of_the_file() {
    let server = server_without_delegations();
    for minor in [0, 1, 2] {
        let mut c = Holder::new(&server, minor, 1);
        let name = format!("private {minor}");
        make_file(&c.c, "/export", &name, b"0123456789");
        let private = Attrs::none().with(fattr4::MODE, &0o600u32).with(fattr4::OWNER, &Utf8::from("1000"));
        assert_eq!(c.at(&name, setattr(&private)).status(), Nfsstat4::OK);
        c.c.who = user(1000);
        let stateid = c.open(&name, RW, 0).stateid;
        let size = Attrs::none().with(fattr4::SIZE, &4u64);
        let cut = Argop::Setattr(SetattrArgs { stateid, obj_attributes: size.get() });
        let all = |c: &mut Holder<'_>| {
            let mut all = vec![c.read(&name, stateid), c.write(&name, stateid), c.at(&name, cut).status()];
            if minor == 2 {
                let range = (0, 2);
                let allocate = AllocateArgs { stateid, offset: range.0, length: range.1 };
                let seek = SeekArgs { stateid, offset: 0, what: DataContent4::DATA };
                let plus = ReadPlusArgs { stateid, offset: 0, count: 4 };
                all.push(c.at(&name, Argop::Allocate(allocate)).status());
                all.push(c.at(&name, Argop::Seek(seek)).status());
                all.push(c.at(&name, Argop::ReadPlus(plus)).status());
            }
            all
        };
        let fine = |statuses: &[Nfsstat4]| statuses.iter().all(|status| *status == Nfsstat4::OK);
        assert!(fine(&all(&mut c)), "{minor}");
        c.c.who = user(2000);
        let statuses = all(&mut c);
        assert!(statuses.iter().all(|status| *status == Nfsstat4::ACCESS), "{minor}: {statuses:?}");
        // What the file grants is granted, reading or writing for themselves.
        c.c.who = user(1000);
        let mode = |mode: u32| Attrs::none().with(fattr4::MODE, &mode);
        assert_eq!(c.at(&name, setattr(&mode(0o604))).status(), Nfsstat4::OK);
        c.c.who = user(2000);
        assert_eq!((c.read(&name, stateid), c.write(&name, stateid)), (Nfsstat4::OK, Nfsstat4::ACCESS));
        // The opener goes on, whatever the mode has become; so do root and the owner.
        c.c.who = Credentials::root();
        assert_eq!(c.at(&name, setattr(&mode(0))).status(), Nfsstat4::OK);
        for uid in [1000, 0] {
            c.c.who = if uid == 0 { Credentials::root() } else { user(uid) };
            assert!(fine(&all(&mut c)), "{minor} {uid}");
        }
    }
}

/// An open that two users had a part in is neither's.
#[test]
fn an_open_that_was_widened_by_another_user_is_nobodys() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 1, 1);
    let owned = Attrs::none().with(fattr4::MODE, &0o642u32).with(fattr4::OWNER, &Utf8::from("7"));
    assert_eq!(c.at("file", setattr(&owned)).status(), Nfsstat4::OK);
    c.c.who = user(2000);
    c.open("file", W, 0);
    c.c.who = Credentials { gid: 0, ..user(1000) };
    let stateid = c.open("file", R, 0).stateid;
    assert_eq!((c.read("file", stateid), c.write("file", stateid)), (Nfsstat4::OK, Nfsstat4::ACCESS));
    c.c.who = user(2000);
    assert_eq!((c.read("file", stateid), c.write("file", stateid)), (Nfsstat4::ACCESS, Nfsstat4::OK));
}
