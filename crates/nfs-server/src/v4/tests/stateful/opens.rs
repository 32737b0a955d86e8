use super::*;

#[test]
fn share_modes_conflict_by_bits() {
    let server = server_without_delegations();
    for minor in [0, 1, 2] {
        let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
        for (a, b) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))) {
            let modes = |n: u32| (n % 3 + 1, n / 3);
            let ((access, deny), (access2, deny2)) = (modes(a), modes(b));
            let first = one.open("file", access, deny);
            let second = two.try_open("file", access2, deny2);
            let expected =
                if access & deny2 != 0 || access2 & deny != 0 { Some(Nfsstat4::SHARE_DENIED) } else { None };
            assert_eq!(second.err(), expected, "{access}/{deny} then {access2}/{deny2}");
            if let Ok(second) = second {
                two.close("file", second.stateid).unwrap();
            }
            one.close("file", first.stateid).unwrap();
        }
        assert_eq!(server.state.all().files().counts().files, 0);
    }
}

#[test]
fn opens_of_one_owner_join_and_are_narrowed_to_what_was_opened() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        let first = c.open("file", R, 0);
        let second = c.open("file", W, 0);
        assert_eq!(second.stateid.other, first.stateid.other);
        assert!(second.stateid.seqid > first.stateid.seqid);
        // Its own modes stand against it, too (RFC 7530 §16.16.5).
        assert_eq!(c.try_open("file", R, W), Err(Nfsstat4::SHARE_DENIED));
        for (access, deny) in [(0, 0), (4, 0), (R, 4), (R, R), (RW, W)] {
            assert_eq!(
                c.downgrade("file", second.stateid, access, deny),
                Err(Nfsstat4::INVAL),
                "{access} {deny}"
            );
        }
        let narrow = c.downgrade("file", second.stateid, R, 0).unwrap();
        assert_eq!(narrow.other, first.stateid.other);
        assert_eq!(c.downgrade("file", narrow, RW, 0), Err(Nfsstat4::INVAL));
        assert_eq!(c.write("file", narrow), Nfsstat4::OPENMODE);
        assert_eq!(c.read("file", narrow), Nfsstat4::OK);
        let mut other = Holder::new(&server, minor, 2);
        let denying = other.open("file", R, W);
        assert_eq!(c.try_open("file", W, 0), Err(Nfsstat4::SHARE_DENIED));
        other.close("file", denying.stateid).unwrap();
        // READ|WRITE in one OPEN cannot be narrowed to a half that was never opened alone.
        let both = other.open("file", RW, 0);
        assert_eq!(other.downgrade("file", both.stateid, R, 0), Err(Nfsstat4::INVAL));
        other.close("file", both.stateid).unwrap();
        c.close("file", narrow).unwrap();
    }
}

#[test]
fn modes_that_are_none() {
    let server = server_without_delegations();
    let mut clients = [Holder::new(&server, 0, 1), Holder::new(&server, 1, 2)];
    for (minor, access, deny, expected) in [
        (0, 0, 0, Nfsstat4::INVAL),
        (0, 4, 0, Nfsstat4::INVAL),
        (0, R, 4, Nfsstat4::INVAL),
        (0, R | WANT_READ_DELEG, 0, Nfsstat4::INVAL),
        (1, 0, 0, Nfsstat4::INVAL),
        (1, WANT_NO_DELEG, 0, Nfsstat4::INVAL),
        (1, R | 0x600, 0, Nfsstat4::INVAL),
        (1, R | 8, 0, Nfsstat4::INVAL),
    ] {
        let opened = clients[minor].try_open("file", access, deny);
        assert_eq!(opened.err(), Some(expected), "{minor} {access:x} {deny}");
    }
}

#[test]
fn what_can_be_opened() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        let special = if minor == 0 { Nfsstat4::SYMLINK } else { Nfsstat4::WRONG_TYPE };
        for (name, expected) in [
            ("dir", Nfsstat4::ISDIR),
            ("link", Nfsstat4::SYMLINK),
            ("fifo", special),
            ("sock", special),
            ("block", special),
            ("char", special),
            ("nothing", Nfsstat4::NOENT),
            ("", Nfsstat4::INVAL),
        ] {
            assert_eq!(c.try_open(name, R, 0).err(), Some(expected), "{name}");
            let exists = if expected == Nfsstat4::NOENT { continue } else { expected };
            let made = c.open_in("/export", OpenClaim4::Null(name.into()), unchecked(), R, 0);
            assert_eq!(made.status(), exists, "{name}");
        }
        let not_a_directory = c.open_in("/export/file", OpenClaim4::Null("x".into()), unchecked(), R, 0);
        assert_eq!(not_a_directory.status(), Nfsstat4::NOTDIR);
        let frozen = c.open_in("/frozen", OpenClaim4::Null("x".into()), unchecked(), R, 0);
        assert_eq!(frozen.status(), Nfsstat4::ROFS);
        let unset = c.open_args(R, 0, Openflag4::NoCreate, OpenClaim4::Null("file".into()));
        let nowhere = Argop::Open(unset);
        let mut plain = Holder::new(&server, minor, 1);
        assert_eq!(plain.c.run(&[nowhere]).status(), Nfsstat4::NOFILEHANDLE);
    }
}

#[test]
fn permission_is_checked_when_the_file_was_there() {
    let server = server_without_delegations();
    let mut root = Holder::new(&server, 1, 1);
    let mode = Attrs::none().with(fattr4::MODE, &0o640u32);
    assert_eq!(root.at("file", setattr(&mode)).status(), Nfsstat4::OK);
    let open_to_all = Attrs::none().with(fattr4::MODE, &0o777u32);
    assert_eq!(root.c.run_at("/export", &[setattr(&open_to_all)]).status(), Nfsstat4::OK);
    let mut c = Holder::new(&server, 1, 2);
    c.c.who = user(1000);
    for access in [R, W, RW] {
        assert_eq!(c.try_open("file", access, 0).err(), Some(Nfsstat4::ACCESS));
    }
    // Who creates a file may write it, whatever its mode; not who finds it.
    let locked = Attrs::none().with(fattr4::MODE, &0o400u32);
    let how = Openflag4::Create(Createhow4::Unchecked(locked.get()));
    let made = c.open_in("/export", OpenClaim4::Null("mine".into()), how, RW, 0);
    let opened = c.opened("mine", &made).unwrap();
    assert_eq!(opened.attrset, Bitmap4::of(&[fattr4::MODE]));
    assert_eq!(c.write("mine", opened.stateid), Nfsstat4::OK);
    assert_eq!(c.try_open("mine", W, 0).err(), Some(Nfsstat4::ACCESS));
    // By its handle the owner may open what it had open before.
    let again = c.open_in("/export/mine", OpenClaim4::Fh, Openflag4::NoCreate, W, 0);
    assert_eq!(again.status(), Nfsstat4::OK);
}

#[test]
fn ways_to_create() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        let name = format!("made {minor}");
        let null = OpenClaim4::Null(name.as_str().into());
        let mode = Attrs::none().with(fattr4::MODE, &0o604u32);
        let guarded = Openflag4::Create(Createhow4::Guarded(mode.get()));
        let first = c.open_in("/export", null, guarded, RW, 0);
        let first = c.opened(&name, &first).unwrap();
        assert_eq!(first.attrset, Bitmap4::of(&[fattr4::MODE]));
        assert!(first.cinfo.atomic && first.cinfo.after > first.cinfo.before);
        assert_eq!(attributes(&c.at(&name, getattr(&[fattr4::MODE]))).mode, Some(0o604));
        assert_eq!(c.open_in("/export", null, guarded, RW, 0).status(), Nfsstat4::EXIST);
        // Unchecked: the attributes of a file that is there stay, but a size of 0 is set.
        assert_eq!(c.write(&name, first.stateid), Nfsstat4::OK);
        for (size, left) in [(5u64, 1), (0, 0)] {
            let attrs = Attrs::none().with(fattr4::SIZE, &size).with(fattr4::MODE, &0o666u32);
            let how = Openflag4::Create(Createhow4::Unchecked(attrs.get()));
            let found = c.open_in("/export", null, how, RW, 0);
            let found = c.opened(&name, &found).unwrap();
            let expected = if size == 0 { Bitmap4::of(&[fattr4::SIZE]) } else { Bitmap4::EMPTY };
            assert_eq!(found.attrset, expected);
            assert_eq!(found.cinfo.before, found.cinfo.after);
            let got = c.at(&name, getattr(&[fattr4::SIZE, fattr4::MODE]));
            assert_eq!((attributes(&got).size, attributes(&got).mode), (Some(left), Some(0o604)));
        }
        // What cannot be set, and what is not known.
        for (number, expected) in [(fattr4::FSID, Nfsstat4::INVAL), (fattr4::ARCHIVE, Nfsstat4::ATTRNOTSUPP)]
        {
            let attrs = Attrs::none().with(number, &[0u8; 16]);
            let how = Openflag4::Create(Createhow4::Unchecked(attrs.get()));
            let results = c.open_in("/export", OpenClaim4::Null("never".into()), how, RW, 0);
            assert_eq!(results.status(), expected);
        }
        // To create takes a name.
        let expected = if minor == 0 { Nfsstat4::BADXDR } else { Nfsstat4::INVAL };
        assert_eq!(c.open_in("/export/file", OpenClaim4::Fh, unchecked(), R, 0).status(), expected);
    }
}

#[test]
fn exclusive_creation_is_known_again_by_its_verifier() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        for n in 0..2 {
            let name = format!("exclusive {minor} {n}");
            let mode = Attrs::none().with(fattr4::MODE, &0o640u32);
            let how = |verf| {
                let with_attributes = Createhow4::Exclusive41(Creatverfattr { verf, attrs: mode.get() });
                Openflag4::Create(if n == 1 { with_attributes } else { Createhow4::Exclusive(verf) })
            };
            let null = OpenClaim4::Null(name.as_str().into());
            let made = c.open_in("/export", null, how([1; 8]), W, 0);
            if minor == 0 && n == 1 {
                assert_eq!(made.status(), Nfsstat4::BADXDR);
                continue;
            }
            let made = c.opened(&name, &made).unwrap();
            let expected = if n == 1 { Bitmap4::of(&[fattr4::MODE]) } else { Bitmap4::EMPTY };
            assert_eq!(made.attrset, expected);
            let again = c.open_in("/export", null, how([1; 8]), W, 0);
            let again = c.opened(&name, &again).unwrap();
            assert_eq!(again.stateid.other, made.stateid.other);
            assert_eq!(c.open_in("/export", null, how([2; 8]), W, 0).status(), Nfsstat4::EXIST);
            assert_eq!(
                c.open_in("/export", OpenClaim4::Null("file".into()), how([1; 8]), W, 0).status(),
                Nfsstat4::EXIST
            );
        }
    }
}

#[test]
fn claims_that_are_out_of_place() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        let only_41 = |status| if minor == 0 { Nfsstat4::BADXDR } else { status };
        let bad = Stateid4 { seqid: 1, other: [9; 12] };
        let stale = if minor == 0 { Nfsstat4::STALE_STATEID } else { Nfsstat4::BAD_STATEID };
        let cur =
            OpenClaim4::DelegateCur(OpenClaimDelegateCur4 { delegate_stateid: bad, file: "file".into() });
        for (at, claim, expected) in [
            ("/export/file", OpenClaim4::Previous(OpenDelegationType4::None), Nfsstat4::NO_GRACE),
            ("/export", cur, stale),
            ("/export", OpenClaim4::DelegatePrev("file".into()), Nfsstat4::NOTSUPP),
            ("/export/file", OpenClaim4::DelegPrevFh, only_41(Nfsstat4::NOTSUPP)),
            ("/export/file", OpenClaim4::DelegCurFh(bad), only_41(Nfsstat4::BAD_STATEID)),
            ("/export/file", OpenClaim4::Previous(OpenDelegationType4::NoneExt), only_41(Nfsstat4::NO_GRACE)),
            ("/export/file", OpenClaim4::Fh, only_41(Nfsstat4::OK)),
            ("/export/dir", OpenClaim4::Fh, only_41(Nfsstat4::ISDIR)),
        ] {
            let results = c.open_in(at, claim, Openflag4::NoCreate, R, 0);
            assert_eq!(results.status(), expected, "{minor} {claim:?}");
        }
    }
}

#[test]
fn nothing_is_made_under_a_delegation() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        let delegate_stateid = Stateid4 { seqid: 1, other: [9; 12] };
        let claim = OpenClaim4::DelegateCur(OpenClaimDelegateCur4 { delegate_stateid, file: "new".into() });
        assert_eq!(c.open_in("/export", claim, unchecked(), R, 0).status(), Nfsstat4::NOENT);
        assert_eq!(c.try_open("new", R, 0).err(), Some(Nfsstat4::NOENT));
    }
}

#[test]
fn a_file_removed_while_open_lives_until_it_is_closed() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 1, 1);
    let made = c.open_in("/export", OpenClaim4::Null("brief".into()), unchecked(), RW, 0);
    let opened = c.opened("brief", &made).unwrap();
    assert_ne!(opened.rflags & OPEN_RESULT_PRESERVE_UNLINKED, 0);
    let handle = c.c.handle("/export/brief");
    let gone = c.c.run_at("/export", &[Argop::Remove(RemoveArgs { target: "brief".into() })]);
    assert_eq!(gone.status(), Nfsstat4::OK);
    let read = Argop::Read(ReadArgs { stateid: opened.stateid, offset: 0, count: 1 });
    assert_eq!(c.c.run(&[putfh(&handle), read]).status(), Nfsstat4::OK);
    let close = Argop::Close(CloseArgs { seqid: 0, open_stateid: opened.stateid });
    assert_eq!(c.c.run(&[putfh(&handle), close]).status(), Nfsstat4::OK);
    c.callbacks();
    assert_eq!(c.c.run(&[putfh(&handle), getattr(&[fattr4::SIZE])]).status(), Nfsstat4::STALE);
}

#[test]
fn clients_whose_lease_ran_out_give_way() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
        let old = one.open("file", RW, RW);
        assert_eq!(two.try_open("file", R, 0).err(), Some(Nfsstat4::SHARE_DENIED));
        one.c.wait(LEASE * 2);
        two.c.wait(LEASE * 2);
        // Nobody wanted it meanwhile: it is as if nothing had been.
        assert_eq!(one.read("file", old.stateid), Nfsstat4::OK);
        assert_eq!(two.try_open("file", R, 0).err(), Some(Nfsstat4::SHARE_DENIED));
        one.c.wait(LEASE * 2);
        two.c.wait(LEASE * 2);
        let new = two.open("file", RW, RW);
        let expected = if minor == 0 { Nfsstat4::EXPIRED } else { Nfsstat4::BADSESSION };
        assert_eq!(one.read("file", old.stateid), expected);
        two.close("file", new.stateid).unwrap();
    }
}

/// A client that opens without end is told to come back, and leaves room for others.
#[test]
fn opens_and_locks_of_a_client_are_bounded() {
    for (minor, full) in [(0, Nfsstat4::RESOURCE), (1, Nfsstat4::DELAY)] {
        let config = ServerConfig { delegations: false, memory: 1 << 20, ..ServerConfig::default() };
        let server = populated_with(config);
        let (mut c, mut other) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
        let (mut opened, mut last) = (0, None);
        let refused = loop {
            (c.owner, c.seqid) = (format!("owner {opened}"), 0);
            match c.try_open("file", R, 0) {
                Ok(open) => last = Some((open.stateid, c.owner.clone(), c.seqid)),
                Err(status) => break status,
            }
            opened += 1;
        };
        assert_eq!(refused, full);
        assert!((500..4096).contains(&opened), "{opened}");
        let theirs = other.open("file", R, 0);
        // A closed one makes room.
        let (stateid, owner, seqid) = last.unwrap();
        (c.owner, c.seqid) = (owner, seqid);
        c.close("file", stateid).unwrap();
        (c.owner, c.seqid) = ("another".into(), 0);
        c.open("file", R, 0);
        other.close("file", theirs.stateid).unwrap();
    }
}

/// What one client makes the server keep is bounded whatever it is: ranges, owners, requests that wait.
mod floods {
    use super::*;

    const SMALL: u64 = 1 << 20;
    const FULL: [(u32, Nfsstat4); 2] = [(0, Nfsstat4::RESOURCE), (1, Nfsstat4::DELAY)];

    fn small() -> Shared {
        populated_with(ServerConfig {
            delegations: false,
            memory: SMALL,
            lease: LEASE,
            ..ServerConfig::default()
        })
    }

    /// Locks (or unlocks) every other byte until it is refused: how many there were, and the status.
    fn every_other_byte(mut step: impl FnMut(u64) -> Result<(), Nfsstat4>) -> (u64, Nfsstat4) {
        (0..100_000).find_map(|n| step(2 * n).err().map(|status| (n, status))).expect("an end")
    }

    #[test]
    fn ranges() {
        for (minor, full) in FULL {
            let server = small();
            let (mut c, mut other) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
            let open = c.open("file", RW, 0).stateid;
            let mut held = locks::lock(&mut c, "file", open, "l", LockType4::Write, 1 << 40, 1).unwrap();
            let mut seqid = 1;
            let (locked, status) = every_other_byte(|at| {
                seqid += 1;
                let locked = locks::lock_more(&mut c, "file", held, seqid, LockType4::Write, at, 1);
                locked.map(|stateid| held = stateid).map_err(|(status, _)| status)
            });
            assert_eq!(status, full);
            assert!((5000..40_000).contains(&locked), "{locked}");
            // Others go on; what is unlocked makes room.
            let theirs = other.open("file", RW, 0).stateid;
            locks::lock(&mut other, "file", theirs, "l", LockType4::Write, 1, 1).unwrap();
            seqid -= u32::from(minor == 0);
            held = locks::unlock_with(&mut c, "file", held, seqid + 1, 0, 1).unwrap();
            held = locks::lock_more(&mut c, "file", held, seqid + 2, LockType4::Read, 0, 1).unwrap();
            locks::unlock_with(&mut c, "file", held, seqid + 3, 0, u64::MAX).unwrap();
            c.close("file", open).unwrap();
            assert_eq!(locks_left(&server), 1);
        }
    }

    #[test]
    fn ranges_left_by_unlocking() {
        for (minor, full) in FULL {
            let server = small();
            let mut c = Holder::new(&server, minor, 1);
            let open = c.open("file", RW, 0).stateid;
            let mut held = locks::lock(&mut c, "file", open, "l", LockType4::Write, 0, u64::MAX).unwrap();
            let mut seqid = 1;
            let (_, status) = every_other_byte(|at| {
                seqid += 1;
                locks::unlock_with(&mut c, "file", held, seqid, at + 1, 1).map(|stateid| held = stateid)
            });
            assert_eq!(status, full);
            // What leaves nothing new is unlocked all the same.
            locks::unlock_with(&mut c, "file", held, seqid + u32::from(minor > 0), 0, u64::MAX).unwrap();
            assert_eq!(locks_left(&server), 0);
        }
    }

    /// Owners that open nothing, as a failing OPEN of 4.0 leaves them.
    #[test]
    fn owners() {
        let server = small();
        let mut c = Holder::new(&server, 0, 1);
        for n in 0..10_000 {
            (c.owner, c.seqid) = (format!("owner {n}"), 0);
            assert_eq!(c.try_open("nothing", R, 0).err(), Some(Nfsstat4::NOENT));
        }
        assert!(server.state.all().files().counts().owners < 1024);
        Holder::new(&server, 0, 2).open("file", R, 0);
    }

    #[test]
    fn requests_that_wait() {
        for (minor, full) in FULL {
            let server = small();
            let (mut c, mut other) = (Holder::new(&server, minor, 1), Holder::new(&server, minor, 2));
            let theirs = other.open("file", RW, 0).stateid;
            locks::lock(&mut other, "file", theirs, "l", LockType4::Write, 0, u64::MAX).unwrap();
            let open = c.open("file", RW, 0).stateid;
            let refused = (0..100_000).find_map(|n| {
                let refused =
                    locks::lock(&mut c, "file", open, &format!("{n}"), LockType4::WriteW, 0, u64::MAX);
                refused.err().filter(|status| *status != Nfsstat4::DENIED)
            });
            assert_eq!(refused, Some(full));
            pass(LEASE * 2, &mut [&mut c]);
            assert_eq!(server.state.all().files().counts().waiting, 0);
            let mut third = Holder::new(&server, minor, 3);
            third.open("file", R, 0);
        }
    }

    fn locks_left(server: &Shared) -> usize {
        let mut ranges = 0;
        server.state.each_part(|part| ranges += part.files().ranges());
        ranges
    }
}
