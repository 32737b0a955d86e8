//! The current stateid through a compound, and delegations of others before a change.

use super::*;
use crate::state::{Callback, Effect};

fn open(c: &Client<'_>, name: &'static str, share_access: u32) -> Argop<'static> {
    Argop::Open(OpenArgs {
        seqid: 0,
        share_access,
        share_deny: SHARE_DENY_NONE,
        owner: OpenOwner4 { clientid: c.clientid, owner: "owner".into() },
        openhow: Openflag4::NoCreate,
        claim: OpenClaim4::Null(name.into()),
    })
}

fn lock(stateid: Stateid4, clientid: u64) -> Argop<'static> {
    Argop::Lock(LockArgs {
        locktype: LockType4::Write,
        reclaim: false,
        offset: 0,
        length: 10,
        locker: Locker4::OpenOwner(OpenToLockOwner4 {
            open_seqid: 0,
            open_stateid: stateid,
            lock_seqid: 0,
            lock_owner: LockOwner4 { clientid, owner: "locker".into() },
        }),
    })
}

/// RFC 8881 §16.2.3.1.2, figures 4 to 6.
#[test]
fn the_current_stateid_goes_from_operation_to_operation() {
    const NOW: Stateid4 = Stateid4::CURRENT;
    let server = populated();
    for minor in [1, 2] {
        let mut c = Client::with_session(&server, minor, 1);
        let both = open(&c, "file", SHARE_ACCESS_BOTH | WANT_NO_DELEG);
        let read = Argop::Read(ReadArgs { stateid: NOW, offset: 0, count: 5 });
        let write = Argop::Write(WriteArgs {
            stateid: NOW,
            offset: 0,
            stable: StableHow4::FileSync,
            data: Bulk::Bytes(b"J"),
        });
        let close = Argop::Close(CloseArgs { seqid: 0, open_stateid: NOW });
        let unlock = Argop::Locku(LockuArgs {
            locktype: LockType4::Write,
            seqid: 0,
            lock_stateid: NOW,
            offset: 0,
            length: 10,
        });
        let free = Argop::FreeStateid(FreeStateidArgs { stateid: NOW });
        let size = Attrs::none().with(fattr4::SIZE, &13u64);
        let truncate = Argop::Setattr(SetattrArgs { stateid: NOW, obj_attributes: size.get() });
        for (ops, status) in [
            (vec![both, read, write, truncate, close], Nfsstat4::OK),
            // What CLOSE returns is good for nothing.
            (vec![both, close, read], Nfsstat4::BAD_STATEID),
            (vec![both, Argop::Savefh, Argop::Putrootfh, read], Nfsstat4::BAD_STATEID),
            (vec![both, Argop::Savefh, Argop::Putrootfh, Argop::Restorefh, read, close], Nfsstat4::OK),
            (vec![both, Argop::Putrootfh, lookup("export"), lookup("file"), read], Nfsstat4::BAD_STATEID),
            (vec![both, lock(NOW, c.clientid), read, write, unlock, free], Nfsstat4::OK),
            (vec![both, getattr(&[1]), Argop::Getfh, read, close], Nfsstat4::OK),
        ] {
            let results = c.run_at("/export", &ops);
            assert_eq!(results.status(), status, "{ops:?}: {results:?}");
        }
    }
}

#[test]
fn what_others_hold_delegated_is_recalled_before_it_changes() {
    let server = populated();
    let mut holder = Client::with_session(&server, 2, 1);
    let wanted = open(&holder, "file", SHARE_ACCESS_READ | WANT_READ_DELEG);
    let results = holder.run_at("/export", &[wanted]);
    let Resop::Open(Ok(opened)) = results.last() else { panic!("{results:?}") };
    let OpenDelegation4::Read(delegation) = opened.delegation else { panic!("{results:?}") };
    let id = holder.id("/export/file");
    let handle = holder.handle("/export/file");
    let mode = Attrs::none().with(fattr4::MODE, &0o600u32);
    let dir = holder.handle("/export");
    let xattr = Argop::Setxattr(SetxattrArgs {
        option: SetxattrOption4::Either,
        key: "user.a".into(),
        value: (&b"x"[..]).into(),
    });
    let remove = Argop::Remove(RemoveArgs { target: "file".into() });
    let rename = |oldname: &'static str, newname: &'static str| {
        Argop::Rename(RenameArgs { oldname: oldname.into(), newname: newname.into() })
    };
    let link = Argop::Link(LinkArgs { newname: "second".into() });
    let change = |c: &mut Client<'_>| attributes(&c.run(&[putfh(&handle), getattr(&[3])])).change;
    let before = change(&mut holder);
    let in_dir = |op| vec![putfh(&dir), Argop::Savefh, op];
    let changes = [
        vec![putfh(&handle), setattr(&mode)],
        vec![putfh(&handle), write(0, b"x")],
        in_dir(remove),
        in_dir(rename("file", "moved")),
        in_dir(rename("link", "file")),
        vec![putfh(&handle), Argop::Savefh, putfh(&dir), link],
    ];
    for mut other in of_every_minor(&server).into_iter().chain([Client::with_session(&server, 2, 5)]) {
        // Number 1 is the holder's.
        if other.clientid == holder.clientid {
            continue;
        }
        let with_xattr = (other.minor == 2).then(|| vec![putfh(&handle), xattr]);
        for ops in changes.iter().cloned().chain(with_xattr) {
            let results = other.run(&ops);
            assert_eq!(results.status(), Nfsstat4::DELAY, "4.{} {ops:?}: {results:?}", other.minor);
            assert_eq!(change(&mut holder), before, "{ops:?}");
        }
        // Looking is free.
        assert_eq!(other.run(&[putfh(&handle), read(0, 1), getattr(&[3, 4])]).status(), Nfsstat4::OK);
        let recalls = other.effects.iter().filter(|effect| {
            matches!(effect, Effect::Call(_, Callback::Recall { file, stateid, .. }) if *file == id && stateid.other == delegation.stateid.other)
        });
        if other.minor == 0 {
            assert!(recalls.count() > 0, "{:?}", other.effects);
        }
    }
    let back = Argop::Delegreturn(DelegreturnArgs { deleg_stateid: delegation.stateid });
    assert_eq!(holder.run(&[putfh(&handle), back]).status(), Nfsstat4::OK);
    let mut other = Client::new(&server, 0, 9);
    assert_eq!(other.run(&changes[0]).status(), Nfsstat4::OK);
}

#[test]
fn the_holder_of_a_delegation_changes_its_file_itself() {
    let server = populated();
    let mut holder = Client::with_session(&server, 1, 1);
    let wanted = open(&holder, "file", SHARE_ACCESS_READ | WANT_READ_DELEG);
    let results = holder.run_at("/export", &[wanted]);
    let Resop::Open(Ok(opened)) = results.last() else { panic!("{results:?}") };
    assert!(matches!(opened.delegation, OpenDelegation4::Read(_)), "{results:?}");
    let mode = Attrs::none().with(fattr4::MODE, &0o600u32);
    assert_eq!(holder.run_at("/export/file", &[setattr(&mode)]).status(), Nfsstat4::OK);
    assert!(!holder.effects.iter().any(|effect| matches!(effect, Effect::Call(_, Callback::Recall { .. }))));
}
