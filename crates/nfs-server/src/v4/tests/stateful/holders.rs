//! Holders of write delegations asked by CB_GETATTR, and the extensions of RFC 9754.

use super::*;
use crate::fs::Time;
use crate::state::delegated::HolderAttributes;

const WRITER: u32 = RW | WANT_WRITE_DELEG;
const SHOWN: [u32; 4] = [fattr4::CHANGE, fattr4::SIZE, fattr4::TIME_ACCESS, fattr4::TIME_MODIFY];

fn delegating() -> Shared {
    populated_with(ServerConfig { lease: LEASE, ..ServerConfig::default() })
}

/// Change, size, access and modification time, or why not.
fn look(c: &mut Holder<'_>) -> Result<(u64, u64, i64, i64), Nfsstat4> {
    let results = c.at("file", getattr(&SHOWN));
    match results.last() {
        Resop::Getattr(Ok(ok)) => {
            let attrs = Attributes::decode(&ok.obj_attributes).unwrap();
            let seconds = |time: Option<Nfstime4>| time.unwrap().seconds;
            Ok((
                attrs.change.unwrap(),
                attrs.size.unwrap(),
                seconds(attrs.time_access),
                seconds(attrs.time_modify),
            ))
        }
        Resop::Getattr(Err(status)) => Err(status),
        other => panic!("{other:?}"),
    }
}

fn answer(c: &Holder<'_>, stateid: Stateid4, answer: Option<HolderAttributes>) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut part = c.c.server.state.write_of(&stateid);
    part.files().attributes_answered(c.id(), stateid, answer, c.c.now.instant, &mut effects);
    effects
}

fn question(c: &Holder<'_>, stateid: Stateid4, times: bool) -> Effect {
    Effect::Call(c.id(), Callback::GetAttributes { stateid, file: c.c.id("/export/file"), times })
}

fn time(seconds: i64) -> Option<Time> {
    Some(Time { seconds, nanos: 0 })
}

#[test]
fn the_holder_of_a_write_delegation_is_asked_before_others_are_told() {
    let server = delegating();
    let (mut one, mut two) = (Holder::new(&server, 1, 1), Holder::new(&server, 1, 2));
    let held = one.open("file", WRITER, 0).delegation.unwrap().0;
    let own = look(&mut one).unwrap();
    assert_eq!(one.callbacks(), [], "the holder itself is not asked");
    assert_eq!(look(&mut two), Err(Nfsstat4::DELAY));
    assert_eq!(two.callbacks(), [question(&one, held, false)]);
    assert_eq!(look(&mut two), Err(Nfsstat4::DELAY));
    assert_eq!(two.callbacks(), [], "asked once");
    // Unchanged.
    let same = HolderAttributes { change: Some(own.0), size: Some(own.1), ..HolderAttributes::default() };
    assert_eq!(answer(&one, held, Some(same)), []);
    assert_eq!(look(&mut two), Ok(own));
    // What was answered a while ago is asked again; what the holder has changed moves the change attribute.
    two.c.wait(Duration::from_secs(2));
    assert_eq!(look(&mut two), Err(Nfsstat4::DELAY));
    assert_eq!(two.callbacks(), [question(&one, held, false)]);
    one.c.now = two.c.now;
    let grown = HolderAttributes { change: Some(own.0 + 1), size: Some(own.1 + 500), ..same };
    answer(&one, held, Some(grown));
    let shown = look(&mut two).unwrap();
    assert!(shown.0 > own.0 && shown.1 == own.1 + 500 && shown.3 > own.3, "{shown:?} {own:?}");
    assert_eq!(look(&mut two), Ok(shown), "one answer, one change");
    // No answer: the delegation is recalled.
    two.c.wait(Duration::from_secs(2));
    look(&mut two).unwrap_err();
    two.callbacks();
    let recall = Effect::Call(
        one.id(),
        Callback::Recall { stateid: held, file: one.c.id("/export/file"), truncate: false },
    );
    assert_eq!(answer(&one, held, None), [recall]);
    assert_eq!(look(&mut two), Err(Nfsstat4::DELAY));
    assert_eq!(two.callbacks(), []);
    one.at("file", Argop::Delegreturn(DelegreturnArgs { deleg_stateid: held }));
    assert!(look(&mut two).is_ok());
}

/// VERIFY of a size: OK, NOT_SAME or why not.
fn verify_size(c: &mut Holder<'_>, size: u64) -> Nfsstat4 {
    let attrs = Attrs::none().with(fattr4::SIZE, &size);
    c.at("file", Argop::Verify(VerifyArgs { obj_attributes: attrs.get() })).status()
}

/// Size of `file` in a listing, or the error of its attributes, or of all.
fn listed(c: &mut Holder<'_>, wanted: &[u32]) -> Result<Result<u64, Nfsstat4>, Nfsstat4> {
    let attr_request = Bitmap4::of(wanted);
    let args = ReaddirArgs { cookie: 0, cookieverf: [0; 8], dircount: 4096, maxcount: 4096, attr_request };
    let results = c.c.run_at("/export", &[Argop::Readdir(args)]);
    match results.last() {
        Resop::Readdir(Ok(ok)) => {
            assert_eq!(ok.entries.iter().count(), 7);
            let entry = ok.entries.iter().find(|entry| entry.name.0 == b"file").unwrap();
            let attrs = Attributes::decode(&entry.attrs).unwrap();
            Ok(attrs.size.ok_or_else(|| attrs.rdattr_error.unwrap()))
        }
        Resop::Readdir(Err(status)) => Err(status),
        other => panic!("{other:?}"),
    }
}

/// Whatever shows size, change or times asks, as GETATTR does, in every version.
#[test]
fn verify_and_readdir_ask_the_holder_too() {
    const WITH_ERROR: &[u32] = &[fattr4::SIZE, fattr4::RDATTR_ERROR];
    let grown = HolderAttributes { change: Some(1), size: Some(500), ..HolderAttributes::default() };
    for minor in [0, 1, 2] {
        let server = delegating();
        let (mut one, mut two) = (Holder::new(&server, 1, 1), Holder::new(&server, minor, 2));
        let held = one.open("file", WRITER, 0).delegation.unwrap().0;
        let asked = [question(&one, held, false)];
        assert_eq!(verify_size(&mut two, 13), Nfsstat4::DELAY, "{minor}");
        assert_eq!(two.callbacks(), asked);
        answer(&one, held, Some(grown));
        assert_eq!(verify_size(&mut two, 13), Nfsstat4::NOT_SAME);
        assert_eq!(verify_size(&mut two, 500), Nfsstat4::OK);
        assert_eq!(listed(&mut two, WITH_ERROR), Ok(Ok(500)));
        two.c.wait(Duration::from_secs(2));
        one.c.now = two.c.now;
        // An entry without attributes where there is a way to say so, else none.
        assert_eq!(listed(&mut two, WITH_ERROR), Ok(Err(Nfsstat4::DELAY)), "{minor}");
        assert_eq!(two.callbacks(), asked);
        assert_eq!(listed(&mut two, &[fattr4::SIZE]), Err(Nfsstat4::DELAY));
        assert_eq!(listed(&mut two, &[fattr4::RDATTR_ERROR]), Ok(Err(Nfsstat4::OK)), "no question of size");
        answer(&one, held, Some(grown));
        assert_eq!(listed(&mut two, &[fattr4::SIZE]), Ok(Ok(500)));
        // Its own are the holder's to know.
        assert_eq!((verify_size(&mut one, 13), listed(&mut one, WITH_ERROR)), (Nfsstat4::OK, Ok(Ok(13))));
        assert_eq!(one.callbacks(), []);
    }
}

/// GETATTR of 4.0 does not say whose it is: the holder may be of 4.0, too, on the same host.
#[test]
fn a_client_of_40_is_another_unless_it_may_be_the_holder() {
    for (minor, elsewhere, asks) in [(0, false, false), (0, true, true), (1, false, true)] {
        let config = ServerConfig { lease: LEASE, write_delegations: true, ..ServerConfig::default() };
        let server = populated_with(config);
        let (mut one, mut two) = (Holder::new(&server, minor, 1), Holder::new(&server, 0, 2));
        one.callback(true);
        // 4.0 owners are confirmed by their first OPEN, and get nothing with it.
        let first = one.open("file", RW, 0);
        let second = if minor == 0 { one.open("file", RW, 0) } else { first };
        second.delegation.unwrap();
        if elsewhere {
            two.c.peer.address = "198.51.100.7:800".parse().unwrap();
        }
        let expected = if asks { Err(Nfsstat4::DELAY) } else { Ok(()) };
        assert_eq!(look(&mut two).map(drop), expected, "{minor} {elsewhere}");
    }
}

#[test]
fn the_holder_of_a_delegation_with_times_keeps_them() {
    let server = delegating();
    let (mut one, mut two) = (Holder::new(&server, 2, 1), Holder::new(&server, 2, 2));
    let before = look(&mut one).unwrap();
    let claim = OpenClaim4::Null("file".into());
    let results = one.open_in("/export", claim, Openflag4::NoCreate, WRITER | WANT_DELEG_TIMESTAMPS, 0);
    let Resop::Open(Ok(opened)) = results.last() else { panic!("{results:?}") };
    let OpenDelegation4::WriteAttrs(write) = opened.delegation else { panic!("{opened:?}") };
    let (held, stateid) = (write.stateid, opened.stateid);
    assert_eq!(look(&mut two), Err(Nfsstat4::DELAY));
    assert_eq!(two.callbacks(), [question(&one, held, true)]);
    // The clock says 1,700,000,001: what is earlier than the delegation is not taken, what is later is cut.
    two.c.wait(Duration::from_secs(100));
    one.c.now = two.c.now;
    look(&mut one).unwrap();
    let now = one.c.now.wall.seconds;
    look(&mut two).unwrap_err();
    let same = HolderAttributes { change: Some(before.0), size: Some(before.1), atime: None, mtime: None };
    answer(&one, held, Some(HolderAttributes { atime: time(5), mtime: time(now - 40), ..same }));
    let shown = look(&mut two).unwrap();
    assert_eq!((shown.2, shown.3), (before.2, now - 40));
    assert!(shown.0 > before.0);
    // It sets them by SETATTR, too, under the stateid of the delegation and no other.
    let at = |seconds| Nfstime4 { seconds, nseconds: 0 };
    let times = Attrs::none()
        .with(fattr4::TIME_DELEG_ACCESS, &at(now + 1_000_000))
        .with(fattr4::TIME_DELEG_MODIFY, &at(now - 30));
    let set = |stateid| Argop::Setattr(SetattrArgs { stateid, obj_attributes: times.get() });
    assert_eq!(one.at("file", set(stateid)).status(), Nfsstat4::BAD_STATEID);
    assert_eq!(one.at("file", set(Stateid4::ANONYMOUS)).status(), Nfsstat4::BAD_STATEID);
    assert_eq!(one.at("file", set(held)).status(), Nfsstat4::OK);
    let own = look(&mut one).unwrap();
    assert_eq!((own.2, own.3), (now, now - 30));
    // They are written only, and belong to files that are there.
    assert_eq!(one.at("file", getattr(&[fattr4::TIME_DELEG_MODIFY])).status(), Nfsstat4::INVAL);
    let create = CreateArgs { objtype: Createtype4::Dir, objname: "new".into(), createattrs: times.get() };
    assert_eq!(one.c.run_at("/export", &[Argop::Create(create)]).status(), Nfsstat4::INVAL);
    let mut old = Holder::new(&server, 1, 3);
    assert_eq!(old.at("file", set(held)).status(), Nfsstat4::ATTRNOTSUPP);
    assert_eq!(
        old.try_open("file", R | WANT_DELEG_TIMESTAMPS, 0).err(),
        Some(Nfsstat4::INVAL),
        "4.1 does not know it"
    );
}

#[test]
fn a_delegation_takes_the_place_of_the_open_where_the_client_says_so() {
    let server = delegating();
    let mut c = Holder::new(&server, 2, 1);
    let wide = WANT_OPEN_XOR_DELEGATION;
    let opened = c.open("file", R | WANT_READ_DELEG | wide, 0);
    let (held, write) = opened.delegation.unwrap();
    assert_eq!((opened.stateid, write), (Stateid4::ANONYMOUS, false));
    assert_ne!(opened.rflags & OPEN_RESULT_NO_OPEN_STATEID, 0);
    assert_eq!(c.read("file", held), Nfsstat4::OK);
    assert_eq!(server.state.all().files().counts().states, 1, "no open beside it");
    // Without a delegation, and beside an open that there is, the open is told.
    let second = c.open("file", R | wide, 0);
    assert_eq!((second.delegation, second.rflags & OPEN_RESULT_NO_OPEN_STATEID), (None, 0));
    assert_eq!(c.read("file", second.stateid), Nfsstat4::OK);
    for (name, access, deny) in [("denies", R | WANT_READ_DELEG, W), ("writes", RW | WANT_READ_DELEG, 0)] {
        make_file(&c.c, "/export", name, b"x");
        let opened = c.open(name, access | wide, deny);
        assert_eq!(opened.rflags & OPEN_RESULT_NO_OPEN_STATEID, 0, "{name}");
        assert_eq!(c.read(name, opened.stateid), Nfsstat4::OK);
    }
}

#[test]
fn the_arguments_of_open_are_listed() {
    let server = delegating();
    let mut c = Holder::new(&server, 2, 1);
    let results = c.at("file", getattr(&[fattr4::OPEN_ARGUMENTS]));
    let Resop::Getattr(Ok(ok)) = results.last() else { panic!("{results:?}") };
    let open = Attributes::decode(&ok.obj_attributes).unwrap().open_arguments.unwrap();
    assert_eq!(open.share_access, Bitmap4::of(&[1, 2, 3]));
    assert!(open.share_access_want.contains(20) && open.share_access_want.contains(21));
    assert!(open.open_claim.contains(5) && !open.open_claim.contains(6));
    assert_eq!(open.create_mode.len(), 4);
    let mut old = Holder::new(&server, 1, 2);
    let results = old.at("file", getattr(&[fattr4::OPEN_ARGUMENTS]));
    let Resop::Getattr(Ok(ok)) = results.last() else { panic!("{results:?}") };
    assert!(ok.obj_attributes.attrmask.is_empty());
}
