use benchmaster_nfs_proto::xdr::Decoder;

use super::*;
use crate::stats::DelegationCounts;

fn delegating() -> Shared {
    populated_with(ServerConfig { lease: LEASE, ..ServerConfig::default() })
}

fn give_back(c: &mut Holder<'_>, name: &str, deleg_stateid: Stateid4) -> Nfsstat4 {
    c.at(name, Argop::Delegreturn(DelegreturnArgs { deleg_stateid })).status()
}

fn recall(c: &Holder<'_>, stateid: Stateid4, truncate: bool) -> Effect {
    Effect::Call(c.id(), Callback::Recall { stateid, file: c.c.id("/export/file"), truncate })
}

/// Two clients of a minor version, whose callbacks work.
fn two(server: &Shared, minor: u32) -> (Holder<'_>, Holder<'_>) {
    let (one, two) = (Holder::new(server, minor, 1), Holder::new(server, minor, 2));
    if minor == 0 {
        one.callback(true);
        two.callback(true);
    }
    (one, two)
}

/// Makes a 4.0 owner known: opens that have to be confirmed bring no delegation.
fn known(c: &mut Holder<'_>) {
    let opened = c.open("file", W, 0);
    c.close("file", opened.stateid).unwrap();
    c.callbacks();
}

#[test]
fn readers_get_a_delegation_while_nobody_writes() {
    for minor in [0, 1] {
        let server = delegating();
        let (mut one, mut two) = two(&server, minor);
        if minor == 0 {
            assert_eq!(one.open("file", R, 0).delegation, None, "to be confirmed");
            known(&mut two);
            let stateid = one.open("file", R, 0);
            assert!(stateid.delegation.is_some());
            one.callback(false);
            make_file(&one.c, "/export", "unreachable", b"");
            assert_eq!(one.open("unreachable", R, 0).delegation, None);
            one.callback(true);
        }
        let first = one.open("file", R, 0);
        if minor == 1 {
            assert!(matches!(first.delegation, Some((_, false))), "{first:?}");
        }
        let second = two.open("file", R, 0);
        assert!(matches!(second.delegation, Some((_, false))), "{second:?}");
        // One is enough.
        assert_eq!(two.open("file", R, 0).delegation, None);
        let stateid = second.delegation.unwrap().0;
        assert_eq!(two.read("file", stateid), Nfsstat4::OK);
        assert_eq!(two.write("file", stateid), Nfsstat4::OPENMODE);
        assert_eq!(give_back(&mut two, "file", second.stateid), Nfsstat4::BAD_STATEID);
        assert_eq!(give_back(&mut two, "dir", stateid), Nfsstat4::BAD_STATEID);
        assert_eq!(give_back(&mut two, "file", stateid), Nfsstat4::OK);
        assert_eq!(give_back(&mut two, "file", stateid), Nfsstat4::BAD_STATEID);
        make_file(&one.c, "/export", "written", b"");
        one.open("written", W, 0);
        assert_eq!(two.open("written", R, 0).delegation, None);
    }
}

#[test]
fn a_writer_waits_until_others_have_returned_theirs() {
    for minor in [0, 1] {
        let server = delegating();
        let (mut one, mut two) = two(&server, minor);
        known(&mut one);
        known(&mut two);
        let held = one.open("file", R, 0);
        let stateid = held.delegation.unwrap().0;
        // Its own writing does not recall it.
        let wider = one.open("file", W, 0);
        assert_eq!(one.callbacks(), []);
        one.downgrade("file", wider.stateid, R, 0).unwrap();
        assert_eq!(two.try_open("file", W, 0).err(), Some(Nfsstat4::DELAY));
        assert_eq!(two.callbacks(), [recall(&one, stateid, false)]);
        assert_eq!(two.try_open("file", R, R).err(), Some(Nfsstat4::SHARE_DENIED));
        assert_eq!(two.try_open("file", W, 0).err(), Some(Nfsstat4::DELAY));
        assert_eq!(two.callbacks(), [], "recalled once");
        // Readers are not in the way, but there are no new delegations meanwhile.
        assert_eq!(two.open("file", R, 0).delegation, None);
        assert_eq!(give_back(&mut one, "file", stateid), Nfsstat4::OK);
        two.open("file", W, 0);
        let counts = server.state.all().files().delegation_counts(one.id());
        assert_eq!(counts, DelegationCounts { granted: 1, held: 0, recalled: 1, returned: 1, revoked: 0 });
    }
}

#[test]
fn changes_without_an_open_recall_too() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    let size = Attrs::none().with(fattr4::SIZE, &0u64);
    let truncating = Openflag4::Create(Createhow4::Unchecked(size.get()));
    make_file(&one.c, "/export", "b", b"");
    for n in 0..6 {
        let name = format!("file {n}");
        make_file(&one.c, "/export", &name, b"content");
        let held = one.open(&name, R, 0).delegation.unwrap().0;
        let id = one.c.id(&format!("/export/{name}"));
        let handle = two.c.handle(&format!("/export/{name}"));
        let dir = two.c.handle("/export");
        let truncate = n == 5;
        let results = match n {
            0 => two.at(&name, setattr(&Attrs::none().with(fattr4::MODE, &0o600u32))),
            1 => two.at(&name, write(0, b"x")),
            2 => two.c.run(&[putfh(&dir), Argop::Remove(RemoveArgs { target: name.as_str().into() })]),
            3 => two.c.run(&[
                putfh(&dir),
                Argop::Savefh,
                Argop::Rename(RenameArgs { oldname: name.as_str().into(), newname: "new".into() }),
            ]),
            4 => two.c.run(&[
                putfh(&handle),
                Argop::Savefh,
                putfh(&dir),
                Argop::Link(LinkArgs { newname: "second name".into() }),
            ]),
            _ => two.open_in("/export", OpenClaim4::Null(name.as_str().into()), truncating, R, 0),
        };
        assert_eq!(results.status(), Nfsstat4::DELAY, "{n}");
        assert_eq!(
            two.callbacks(),
            [Effect::Call(one.id(), Callback::Recall { stateid: held, file: id, truncate })]
        );
        assert_eq!(one.at(&name, getattr(&[fattr4::SIZE])).status(), Nfsstat4::OK);
        assert_eq!(give_back(&mut one, &name, held), Nfsstat4::OK);
    }
}

#[test]
fn what_is_wanted_is_weighed() {
    use OpenNoneDelegation4::{Cancelled, Contention, NotSuppDowngrade, NotSuppUpgrade, NotWanted, Resource};
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    for (n, (access, granted, why)) in [
        (R, Some(false), None),
        (RW, None, None),
        (R | WANT_NO_DELEG, None, Some(NotWanted)),
        (R | WANT_CANCEL, None, Some(Cancelled)),
        (R | WANT_READ_DELEG, Some(false), None),
        (R | WANT_WRITE_DELEG, Some(true), None),
        (RW | WANT_WRITE_DELEG, Some(true), None),
        (R | WANT_ANY_DELEG, Some(false), None),
        (RW | WANT_ANY_DELEG, Some(true), None),
        (RW | WANT_READ_DELEG, None, Some(Contention(false))),
        (R | WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL, Some(false), None),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("wanted {n}");
        make_file(&one.c, "/export", &name, b"");
        let opened = one.open(&name, access, 0);
        assert_eq!((opened.delegation.map(|(_, write)| write), opened.why), (granted, why), "{access:x}");
    }
    // Against what there is already.
    let held = one.open("file", R | WANT_READ_DELEG, 0);
    assert_eq!(one.open("file", R | WANT_READ_DELEG, 0).why, Some(Resource(false)));
    assert_eq!(one.open("file", R | WANT_WRITE_DELEG, 0).why, Some(NotSuppUpgrade));
    assert_eq!(two.open("file", R | WANT_WRITE_DELEG, 0).why, Some(Contention(false)));
    assert_eq!(one.open("wanted 5", R | WANT_READ_DELEG, 0).why, Some(NotSuppDowngrade));
    assert_eq!(give_back(&mut one, "file", held.delegation.unwrap().0), Nfsstat4::OK);
    // Others have it open.
    assert_eq!(one.open("file", R | WANT_WRITE_DELEG, 0).why, Some(Contention(false)));

    let off = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
    let mut c = Holder::new(&off, 1, 1);
    assert_eq!(c.open("file", R | WANT_READ_DELEG, 0).why, Some(Resource(false)));
    let on = populated_with(ServerConfig { write_delegations: true, ..ServerConfig::default() });
    let mut c = Holder::new(&on, 1, 1);
    assert!(matches!(c.open("file", RW, 0).delegation, Some((_, true))));
}

#[test]
fn the_opens_of_others_recall_a_write_delegation() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    let opened = one.open("file", RW | WANT_WRITE_DELEG, 0);
    let (held, _) = opened.delegation.unwrap();
    assert_eq!(one.write("file", held), Nfsstat4::OK);
    assert_eq!(one.at("file", getattr(&[fattr4::SIZE])).status(), Nfsstat4::OK);
    assert_eq!(one.callbacks(), []);
    assert_eq!(two.try_open("file", R, 0).err(), Some(Nfsstat4::DELAY));
    assert_eq!(two.callbacks(), [recall(&one, held, false)]);
    assert_eq!(two.at("file", getattr(&[fattr4::SIZE])).status(), Nfsstat4::DELAY);
    assert_eq!(two.callbacks(), [], "recalled already");
    // The holder opens by its delegation what it had open, and returns it.
    let cur = OpenClaim4::DelegateCur(OpenClaimDelegateCur4 { delegate_stateid: held, file: "file".into() });
    assert_eq!(one.open_in("/export", cur, Openflag4::NoCreate, W, 0).status(), Nfsstat4::OK);
    let by_handle = one.open_in("/export/file", OpenClaim4::DelegCurFh(held), Openflag4::NoCreate, R, 0);
    assert_eq!(by_handle.status(), Nfsstat4::OK);
    assert_eq!(
        one.open_in("/export/file", OpenClaim4::DelegCurFh(opened.stateid), Openflag4::NoCreate, R, 0)
            .status(),
        Nfsstat4::BAD_STATEID
    );
    assert_eq!(give_back(&mut one, "file", held), Nfsstat4::OK);
    assert_eq!(two.try_open("file", R, 0).err(), None);
}

#[test]
fn what_is_not_returned_is_revoked() {
    for minor in [0, 1] {
        let server = delegating();
        let (mut one, mut two) = two(&server, minor);
        known(&mut one);
        known(&mut two);
        let opened = one.open("file", R, 0);
        let held = opened.delegation.unwrap().0;
        assert_eq!(two.try_open("file", W, 0).err(), Some(Nfsstat4::DELAY));
        two.callbacks();
        // The grant had not been seen yet: the recall is repeated.
        let answer = |status, now| {
            let mut part = server.state.write_of(&held);
            let (clients, files) = part.split();
            files.recall_answered(clients, one.id(), held, status, now);
        };
        let now = one.c.now.instant;
        answer(Nfsstat4::BAD_STATEID, now);
        assert_eq!(server.state.tick(now + Duration::from_millis(249)), []);
        assert_eq!(server.state.tick(now + Duration::from_millis(250)), [recall(&one, held, false)]);
        answer(Nfsstat4::OK, now);
        let half = pass(LEASE / 2, &mut [&mut one, &mut two]);
        assert_eq!(half, []);
        assert_eq!(one.read("file", held), Nfsstat4::OK);
        two.at("file", getattr(&[fattr4::SIZE]));
        two.try_open("file", W, 0).unwrap_err();
        pass(LEASE / 2, &mut [&mut one, &mut two]);
        two.open("file", W, 0);
        let (using, returning) = if minor == 0 {
            (Nfsstat4::ADMIN_REVOKED, Nfsstat4::ADMIN_REVOKED)
        } else {
            (Nfsstat4::DELEG_REVOKED, Nfsstat4::DELEG_REVOKED)
        };
        assert_eq!(one.read("file", held), using);
        assert_eq!(give_back(&mut one, "file", held), returning);
        assert_eq!(one.read("file", opened.stateid), Nfsstat4::OK, "the open stays");
        let counts = server.state.all().files().delegation_counts(one.id());
        assert_eq!(counts, DelegationCounts { granted: 1, held: 0, recalled: 1, returned: 0, revoked: 1 });
        // Who does not return them gets none for a while.
        make_file(&one.c, "/export", "next", b"");
        assert_eq!(one.open("next", R, 0).delegation, None);
        if minor == 0 {
            continue;
        }
        let flags = |c: &mut Client<'_>| {
            let sequence = c.sequence();
            let results = c.plain(&[sequence]);
            let Resop::Sequence(Ok(ok)) = results.last() else { panic!("{results:?}") };
            ok.status_flags & SEQ_STATUS_RECALLABLE_STATE_REVOKED
        };
        assert_ne!(flags(&mut one.c), 0);
        let free = Argop::FreeStateid(FreeStateidArgs { stateid: held });
        assert_eq!(one.c.run(&[free]).status(), Nfsstat4::OK);
        assert_eq!(flags(&mut one.c), 0);
        assert_eq!(one.read("file", held), Nfsstat4::BAD_STATEID);
    }
}

/// A client that slept through its lease loses the delegation that is in somebody's way, not its session and opens.
#[test]
fn a_sleeping_client_loses_the_delegation_and_keeps_its_session() {
    for minor in [0, 1] {
        let server = delegating();
        let (mut one, mut two) = two(&server, minor);
        known(&mut one);
        known(&mut two);
        let opened = one.open("file", R, 0);
        let held = opened.delegation.unwrap().0;
        assert_eq!(two.try_open("file", W, 0).err(), Some(Nfsstat4::DELAY));
        pass(LEASE + Duration::from_secs(1), &mut [&mut two]);
        let now = two.c.now;
        one.c.now = now;
        two.open("file", W, 0);
        let expected = if minor == 0 { Nfsstat4::EXPIRED } else { Nfsstat4::DELEG_REVOKED };
        assert_eq!(one.read("file", held), expected);
        assert_eq!(one.read("file", opened.stateid), Nfsstat4::OK, "the open stays");
        if minor == 0 {
            continue;
        }
        let sequence = one.c.sequence();
        let results = one.c.plain(&[sequence]);
        let Resop::Sequence(Ok(ok)) = results.last() else { panic!("{results:?}") };
        assert_ne!(ok.status_flags & SEQ_STATUS_RECALLABLE_STATE_REVOKED, 0);
        let free = Argop::FreeStateid(FreeStateidArgs { stateid: held });
        assert_eq!(one.c.run(&[free]).status(), Nfsstat4::OK);
        assert_eq!(one.read("file", held), Nfsstat4::BAD_STATEID);
    }
}

#[test]
fn contended_files_are_not_delegated_again_at_once() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    let held = one.open("file", R, 0);
    assert_eq!(two.at("file", write(0, b"x")).status(), Nfsstat4::DELAY);
    assert_eq!(give_back(&mut one, "file", held.delegation.unwrap().0), Nfsstat4::OK);
    assert_eq!(one.open("file", R, 0).delegation, None);
    // Who asks for one by name gets it, and so does everybody a while later.
    let asked = one.open("file", R | WANT_READ_DELEG, 0).delegation.unwrap().0;
    assert_eq!(give_back(&mut one, "file", asked), Nfsstat4::OK);
    pass(LEASE, &mut [&mut one, &mut two]);
    assert!(one.open("file", R, 0).delegation.is_some());
}

#[test]
fn delegations_without_an_open() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    let want = |c: &mut Holder<'_>, name: &str, want, claim| {
        let results = c.at(name, Argop::WantDelegation(WantDelegationArgs { want, claim }));
        match results.last() {
            Resop::WantDelegation(Ok(OpenDelegation4::Read(read))) => Ok(Ok((read.stateid, false))),
            Resop::WantDelegation(Ok(OpenDelegation4::Write(write))) => Ok(Ok((write.stateid, true))),
            Resop::WantDelegation(Ok(OpenDelegation4::NoneExt(why))) => Ok(Err(why)),
            Resop::WantDelegation(Err(status)) => Err(status),
            other => panic!("{other:?}"),
        }
    };
    let fh = DelegClaim4::Fh;
    for flags in [0, WANT_NO_DELEG, 0x600] {
        assert_eq!(want(&mut one, "file", flags, fh), Err(Nfsstat4::INVAL));
    }
    assert_eq!(want(&mut one, "file", WANT_READ_DELEG, DelegClaim4::DelegPrevFh), Err(Nfsstat4::NOTSUPP));
    let previous = DelegClaim4::Previous(OpenDelegationType4::Read);
    assert_eq!(want(&mut one, "file", WANT_READ_DELEG, previous), Err(Nfsstat4::NO_GRACE));
    assert_eq!(want(&mut one, "dir", WANT_READ_DELEG, fh), Ok(Err(OpenNoneDelegation4::IsDir)));
    assert_eq!(want(&mut one, "link", WANT_READ_DELEG, fh), Ok(Err(OpenNoneDelegation4::NotSuppFtype)));
    assert_eq!(
        want(&mut one, "fifo", WANT_WRITE_DELEG, fh),
        Ok(Err(OpenNoneDelegation4::WriteDelegNotSuppFtype))
    );
    assert_eq!(want(&mut one, "file", WANT_CANCEL, fh), Ok(Err(OpenNoneDelegation4::Cancelled)));
    let (stateid, write) = want(&mut one, "file", WANT_READ_DELEG, fh).unwrap().unwrap();
    assert!(!write);
    assert_eq!(want(&mut two, "file", WANT_WRITE_DELEG, fh), Ok(Err(OpenNoneDelegation4::Contention(false))));
    assert_eq!(two.callbacks(), []);
    assert_eq!(give_back(&mut one, "file", stateid), Nfsstat4::OK);
    // Under a delegation reads would not be denied.
    let alone = two.open("file", R | WANT_NO_DELEG, R);
    assert_eq!(want(&mut one, "file", WANT_READ_DELEG, fh), Ok(Err(OpenNoneDelegation4::Contention(false))));
    two.close("file", alone.stateid).unwrap();
    assert!(want(&mut one, "file", WANT_READ_DELEG, fh).unwrap().is_ok());
    for op in [
        Argop::Delegpurge(DelegpurgeArgs { clientid: 0 }),
        Argop::Openattr(OpenattrArgs { createdir: false }),
    ] {
        assert_eq!(one.at("file", op).status(), Nfsstat4::NOTSUPP);
    }
}

const NO_DELAY: Nfstime4 = Nfstime4 { seconds: 0, nseconds: 0 };

/// GET_DIR_DELEGATION without notifications, as Linux 6.19 asks.
fn delegate_directory(c: &mut Holder<'_>, name: &str) -> Result<Option<Stateid4>, Nfsstat4> {
    delegate_notified(c, name, Bitmap4::EMPTY)
}

/// GET_DIR_DELEGATION with these notifications.
fn delegate_notified(c: &mut Holder<'_>, name: &str, kinds: Bitmap4) -> Result<Option<Stateid4>, Nfsstat4> {
    let args = GetDirDelegationArgs {
        signal_deleg_avail: false,
        notification_types: kinds,
        child_attr_delay: NO_DELAY,
        dir_attr_delay: NO_DELAY,
        child_attributes: Bitmap4::of(&[fattr4::FILEID]),
        dir_attributes: Bitmap4::of(&[fattr4::CHANGE]),
    };
    match c.at(name, Argop::GetDirDelegation(args)).last() {
        Resop::GetDirDelegation(Ok(GetDirDelegationOk::Granted(granted))) => {
            assert_eq!(granted.notification, kinds);
            Ok(Some(granted.stateid))
        }
        Resop::GetDirDelegation(Ok(GetDirDelegationOk::Unavailable(signal))) => {
            assert!(!signal, "no callback will come");
            Ok(None)
        }
        Resop::GetDirDelegation(Err(status)) => Err(status),
        other => panic!("{other:?}"),
    }
}

#[test]
fn directories_are_delegated_until_others_change_them() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    assert_eq!(two.at("dir", create("sub", Createtype4::Dir)).status(), Nfsstat4::OK);
    assert_eq!(two.at("dir", create("other", Createtype4::Dir)).status(), Nfsstat4::OK);
    let dir = one.c.id("/export/dir");
    assert_eq!(delegate_directory(&mut one, "file"), Err(Nfsstat4::NOTDIR));
    assert_eq!(delegate_directory(&mut one, "link"), Err(Nfsstat4::NOTDIR));

    let open = |name: &'static str| {
        move |c: &mut Holder<'_>| {
            c.open_in("/export/dir", OpenClaim4::Null(name.into()), unchecked(), W, 0).status()
        }
    };
    let made = open("new");
    let rename = |c: &mut Holder<'_>| {
        let from = c.c.handle("/export/dir");
        let rename = RenameArgs { oldname: "other".into(), newname: "renamed".into() };
        c.c.run(&[putfh(&from), Argop::Savefh, Argop::Rename(rename)]).status()
    };
    let link = |c: &mut Holder<'_>| {
        let (file, dir) = (c.c.handle("/export/file"), c.c.handle("/export/dir"));
        let link = Argop::Link(LinkArgs { newname: "link".into() });
        c.c.run(&[putfh(&file), Argop::Savefh, putfh(&dir), link]).status()
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Holder<'_>) -> Nfsstat4);
    let changes: [Change<'_>; 6] = [
        ("CREATE", &|c| c.at("dir", create("made", Createtype4::Dir)).status()),
        ("OPEN", &made),
        ("LINK", &link),
        ("RENAME", &rename),
        ("REMOVE", &|c| c.at("dir", Argop::Remove(RemoveArgs { target: "sub".into() })).status()),
        ("SETATTR", &|c| c.at("dir", setattr(&Attrs::none().with(fattr4::MODE, &0o700u32))).status()),
    ];
    for (name, change) in changes {
        let stateid =
            delegate_directory(&mut one, "dir").unwrap().unwrap_or_else(|| panic!("{name}: no delegation"));
        assert_eq!(delegate_directory(&mut one, "dir"), Ok(None), "one is enough");
        assert_eq!(
            two.at("dir", lookup("other")).status(),
            if name == "REMOVE" || name == "SETATTR" { Nfsstat4::NOENT } else { Nfsstat4::OK }
        );
        assert_eq!(two.callbacks(), [], "{name}: reading does not recall");
        assert_eq!(change(&mut two), Nfsstat4::DELAY, "{name}");
        let recalled = Effect::Call(one.id(), Callback::Recall { stateid, file: dir, truncate: false });
        assert_eq!(two.callbacks(), [recalled], "{name}");
        assert_eq!(give_back(&mut one, "dir", stateid), Nfsstat4::OK, "{name}");
        one.callbacks();
        assert_eq!(change(&mut two), Nfsstat4::OK, "{name}");
        two.callbacks();
        pass(LEASE / 2, &mut [&mut one, &mut two]);
    }
    assert_eq!(two.callbacks(), []);
}

#[test]
fn who_has_a_directory_delegated_changes_it_freely_and_two_may_have_it() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 2);
    let first = delegate_directory(&mut one, "dir").unwrap().unwrap();
    assert_eq!(one.at("dir", create("own", Createtype4::Dir)).status(), Nfsstat4::OK);
    assert_eq!(one.callbacks(), []);
    let second = delegate_directory(&mut two, "dir").unwrap().unwrap();
    // Its own is not in its way, but the other's is.
    assert_eq!(one.at("dir", create("more", Createtype4::Dir)).status(), Nfsstat4::DELAY);
    let dir = one.c.id("/export/dir");
    let recalled = Effect::Call(two.id(), Callback::Recall { stateid: second, file: dir, truncate: false });
    assert_eq!(one.callbacks(), [recalled]);
    // Being removed is a change of the directory, too, and of the one that it is in.
    assert_eq!(give_back(&mut two, "dir", second), Nfsstat4::OK);
    for name in ["own", "more"] {
        one.at("dir", Argop::Remove(RemoveArgs { target: name.into() }));
    }
    let root = two.c.handle("/export");
    let remove = Argop::Remove(RemoveArgs { target: "dir".into() });
    assert_eq!(two.c.run(&[putfh(&root), remove]).status(), Nfsstat4::DELAY);
    assert_eq!(give_back(&mut one, "dir", first), Nfsstat4::OK);
    assert_eq!(two.c.run(&[putfh(&root), remove]).status(), Nfsstat4::OK);
}

#[test]
fn version_40_recalls_directories_too() {
    let server = delegating();
    let (mut one, mut old) = (Holder::new(&server, 1, 1), Holder::new(&server, 0, 2));
    let dir = one.c.id("/export/dir");
    let open = |c: &mut Holder<'_>, name: &'static str| {
        c.open_in("/export/dir", OpenClaim4::Null(name.into()), unchecked(), W, 0).status()
    };
    let stateid = delegate_directory(&mut one, "dir").unwrap().unwrap();
    assert_eq!(open(&mut old, "new"), Nfsstat4::DELAY);
    let recalled = Effect::Call(one.id(), Callback::Recall { stateid, file: dir, truncate: false });
    assert_eq!(old.callbacks(), [recalled]);
    assert_eq!(give_back(&mut one, "dir", stateid), Nfsstat4::OK);
    assert_eq!(open(&mut old, "new"), Nfsstat4::OK);
}

#[test]
fn a_server_without_delegations_delegates_no_directory() {
    let server = server_without_delegations();
    let mut one = Holder::new(&server, 1, 1);
    assert_eq!(delegate_directory(&mut one, "dir"), Ok(None));
}

/// Names that one call tells.
fn notified_names(effects: &[Effect]) -> Vec<Vec<u8>> {
    let [Effect::Call(_, Callback::Notify { changes, .. })] = effects else { panic!("{effects:?}") };
    let added = |change: &Vec<u8>| {
        let note: Notify4<'_> = Decoder::new(change).get().unwrap();
        let add: NotifyAdd4<'_> = Decoder::new(note.values.0).get().unwrap();
        assert!(add.last);
        add.new_entry.file.0.to_vec()
    };
    changes.iter().map(added).collect()
}

#[test]
fn holders_are_notified_in_order_by_one_call_at_a_time() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 1);
    let kinds = Bitmap4::of(&[notify::ADD_ENTRY]);
    let stateid = delegate_notified(&mut one, "dir", kinds).unwrap().unwrap();
    let make = |c: &mut Holder<'_>, name: String| {
        let status = c.at("dir", create(&name, Createtype4::Dir)).status();
        (status, c.callbacks())
    };
    let answer = |one: &mut Holder<'_>, status: Nfsstat4| {
        let mut effects = Vec::new();
        let mut part = server.state.write_of(&stateid);
        part.files().notified(one.id(), stateid, status, one.c.now.instant, &mut effects);
        effects
    };
    let (status, sent) = make(&mut two, "0".into());
    assert_eq!((status, notified_names(&sent)), (Nfsstat4::OK, vec![b"0".to_vec()]));
    // Until this is answered, the next ones wait.
    for n in 1..=64 {
        assert_eq!(make(&mut two, n.to_string()), (Nfsstat4::OK, vec![]), "{n}");
    }
    // Too many.
    let recall =
        Effect::Call(one.id(), Callback::Recall { stateid, file: one.c.id("/export/dir"), truncate: false });
    assert_eq!(make(&mut two, "65".into()), (Nfsstat4::DELAY, vec![recall.clone()]));
    assert_eq!(answer(&mut one, Nfsstat4::OK), [], "a recall is enough");
    assert_eq!(give_back(&mut one, "dir", stateid), Nfsstat4::OK);
    assert_eq!(make(&mut two, "65".into()), (Nfsstat4::OK, vec![]));
}

#[test]
fn who_takes_no_notification_has_to_return_the_directory() {
    let server = delegating();
    let (mut one, mut two) = two(&server, 2);
    let kinds = Bitmap4::of(&[notify::ADD_ENTRY, notify::CHANGE_DIR_ATTRS]);
    let stateid = delegate_notified(&mut one, "dir", kinds).unwrap().unwrap();
    let dir = one.c.id("/export/dir");
    let sent = |c: &mut Holder<'_>, name: &str| {
        assert_eq!(c.at("dir", create(name, Createtype4::Dir)).status(), Nfsstat4::OK);
        c.callbacks()
    };
    // The entry, and the directory's change attribute.
    assert!(
        matches!(&sent(&mut two, "a")[..], [Effect::Call(_, Callback::Notify { changes, .. })] if changes.len() == 2)
    );
    assert_eq!(sent(&mut one, "b"), [], "its own waits, too");
    let mut effects = Vec::new();
    let now = one.c.now.instant;
    server.state.write_of(&stateid).files().notified(one.id(), stateid, Nfsstat4::OK, now, &mut effects);
    assert!(
        matches!(&effects[..], [Effect::Call(_, Callback::Notify { changes, .. })] if changes.len() == 2)
    );
    effects.clear();
    server.state.write_of(&stateid).files().notified(one.id(), stateid, Nfsstat4::NOTSUPP, now, &mut effects);
    assert_eq!(effects, [Effect::Call(one.id(), Callback::Recall { stateid, file: dir, truncate: false })]);
    // A list is no attribute of notifications.
    assert_eq!(give_back(&mut one, "dir", stateid), Nfsstat4::OK);
    let stateid = delegate_notified(&mut one, "dir", kinds).unwrap().unwrap();
    let no_one = Attrs::none().with(fattr4::ACL, &0u32);
    assert_eq!(two.at("dir", setattr(&no_one)).status(), Nfsstat4::DELAY);
    assert_eq!(
        two.callbacks(),
        [Effect::Call(one.id(), Callback::Recall { stateid, file: dir, truncate: false })]
    );
}
