//! Of 4.0, every operation answers with the errors that are listed for it, and no others.

use super::*;

/// RFC 7530 §13.2.
const LISTED: [(Opnum, &str); 38] = [
    (
        Opnum::ACCESS,
        "ACCESS BADHANDLE BADXDR DELAY FHEXPIRED INVAL IO MOVED NOFILEHANDLE RESOURCE SERVERFAULT \
          STALE",
    ),
    (
        Opnum::CLOSE,
        "ADMIN_REVOKED BADHANDLE BAD_SEQID BAD_STATEID BADXDR DELAY EXPIRED FHEXPIRED INVAL ISDIR \
          LEASE_MOVED LOCKS_HELD MOVED NOFILEHANDLE OLD_STATEID RESOURCE SERVERFAULT STALE \
          STALE_STATEID",
    ),
    (
        Opnum::COMMIT,
        "ACCESS BADHANDLE BADXDR DELAY FHEXPIRED INVAL IO ISDIR MOVED NOFILEHANDLE RESOURCE ROFS \
          SERVERFAULT STALE SYMLINK",
    ),
    (
        Opnum::CREATE,
        "ACCESS ATTRNOTSUPP BADCHAR BADHANDLE BADNAME BADOWNER BADTYPE BADXDR DELAY DQUOT EXIST \
          FHEXPIRED INVAL IO MOVED NAMETOOLONG NOFILEHANDLE NOSPC NOTDIR PERM RESOURCE ROFS \
          SERVERFAULT STALE",
    ),
    (Opnum::DELEGPURGE, "BADXDR DELAY LEASE_MOVED NOTSUPP RESOURCE SERVERFAULT STALE_CLIENTID"),
    (
        Opnum::DELEGRETURN,
        "ADMIN_REVOKED BAD_STATEID BADXDR DELAY EXPIRED INVAL LEASE_MOVED MOVED NOFILEHANDLE NOTSUPP \
          OLD_STATEID RESOURCE SERVERFAULT STALE STALE_STATEID",
    ),
    (
        Opnum::GETATTR,
        "ACCESS BADHANDLE BADXDR DELAY FHEXPIRED GRACE INVAL IO MOVED NOFILEHANDLE RESOURCE \
          SERVERFAULT STALE",
    ),
    (Opnum::GETFH, "BADHANDLE FHEXPIRED MOVED NOFILEHANDLE RESOURCE SERVERFAULT STALE"),
    (Opnum::ILLEGAL, "BADXDR OP_ILLEGAL"),
    (
        Opnum::LINK,
        "ACCESS BADCHAR BADHANDLE BADNAME BADXDR DELAY DQUOT EXIST FHEXPIRED FILE_OPEN INVAL IO ISDIR \
          MLINK MOVED NAMETOOLONG NOENT NOFILEHANDLE NOSPC NOTDIR NOTSUPP RESOURCE ROFS SERVERFAULT \
          STALE WRONGSEC XDEV",
    ),
    (
        Opnum::LOCK,
        "ACCESS ADMIN_REVOKED BADHANDLE BAD_RANGE BAD_SEQID BAD_STATEID BADXDR DEADLOCK DELAY DENIED \
          EXPIRED FHEXPIRED GRACE INVAL ISDIR LEASE_MOVED LOCK_NOTSUPP LOCK_RANGE MOVED NOFILEHANDLE \
          NO_GRACE OLD_STATEID OPENMODE RECLAIM_BAD RECLAIM_CONFLICT RESOURCE SERVERFAULT STALE \
          STALE_CLIENTID STALE_STATEID",
    ),
    (
        Opnum::LOCKT,
        "ACCESS BADHANDLE BAD_RANGE BADXDR DELAY DENIED EXPIRED FHEXPIRED GRACE INVAL ISDIR \
          LEASE_MOVED LOCK_RANGE MOVED NOFILEHANDLE RESOURCE SERVERFAULT STALE STALE_CLIENTID",
    ),
    (
        Opnum::LOCKU,
        "ACCESS ADMIN_REVOKED BADHANDLE BAD_RANGE BAD_SEQID BAD_STATEID BADXDR DELAY EXPIRED \
          FHEXPIRED GRACE INVAL ISDIR LEASE_MOVED LOCK_RANGE MOVED NOFILEHANDLE OLD_STATEID RESOURCE \
          SERVERFAULT STALE STALE_STATEID",
    ),
    (
        Opnum::LOOKUP,
        "ACCESS BADCHAR BADHANDLE BADNAME BADXDR DELAY FHEXPIRED INVAL IO MOVED NAMETOOLONG NOENT \
          NOFILEHANDLE NOTDIR RESOURCE SERVERFAULT STALE SYMLINK WRONGSEC",
    ),
    (
        Opnum::LOOKUPP,
        "ACCESS BADHANDLE DELAY FHEXPIRED IO MOVED NOENT NOFILEHANDLE NOTDIR RESOURCE SERVERFAULT \
          STALE SYMLINK WRONGSEC",
    ),
    (
        Opnum::NVERIFY,
        "ACCESS ATTRNOTSUPP BADCHAR BADHANDLE BADXDR DELAY FHEXPIRED GRACE INVAL IO MOVED \
          NOFILEHANDLE SAME SERVERFAULT STALE",
    ),
    (
        Opnum::OPEN,
        "ACCESS ADMIN_REVOKED ATTRNOTSUPP BADCHAR BADHANDLE BADNAME BADOWNER BAD_SEQID BAD_STATEID \
          BADXDR DELAY DQUOT EXIST EXPIRED FBIG FHEXPIRED GRACE INVAL IO ISDIR MOVED NAMETOOLONG NOENT \
          NOFILEHANDLE NO_GRACE NOSPC NOTDIR NOTSUPP OLD_STATEID PERM RECLAIM_BAD RECLAIM_CONFLICT \
          RESOURCE ROFS SERVERFAULT SHARE_DENIED STALE STALE_CLIENTID SYMLINK WRONGSEC",
    ),
    (
        Opnum::OPENATTR,
        "ACCESS BADHANDLE BADXDR DELAY DQUOT FHEXPIRED IO MOVED NOENT NOFILEHANDLE NOSPC NOTSUPP \
          RESOURCE ROFS SERVERFAULT STALE",
    ),
    (
        Opnum::OPEN_CONFIRM,
        "ADMIN_REVOKED BADHANDLE BAD_SEQID BAD_STATEID BADXDR EXPIRED FHEXPIRED INVAL ISDIR \
          LEASE_MOVED MOVED NOFILEHANDLE OLD_STATEID RESOURCE SERVERFAULT STALE STALE_STATEID",
    ),
    (
        Opnum::OPEN_DOWNGRADE,
        "ADMIN_REVOKED BADHANDLE BAD_SEQID BAD_STATEID BADXDR DELAY EXPIRED FHEXPIRED INVAL \
          LEASE_MOVED LOCKS_HELD MOVED NOFILEHANDLE OLD_STATEID RESOURCE ROFS SERVERFAULT STALE \
          STALE_STATEID",
    ),
    (Opnum::PUTFH, "BADHANDLE BADXDR DELAY FHEXPIRED MOVED SERVERFAULT STALE WRONGSEC"),
    (Opnum::PUTPUBFH, "DELAY SERVERFAULT WRONGSEC"),
    (Opnum::PUTROOTFH, "DELAY SERVERFAULT WRONGSEC"),
    (
        Opnum::READ,
        "ACCESS ADMIN_REVOKED BADHANDLE BAD_STATEID BADXDR DELAY EXPIRED FHEXPIRED GRACE INVAL IO \
          ISDIR LEASE_MOVED LOCKED MOVED NOFILEHANDLE OLD_STATEID OPENMODE RESOURCE SERVERFAULT STALE \
          STALE_STATEID SYMLINK",
    ),
    (
        Opnum::READDIR,
        "ACCESS BAD_COOKIE BADHANDLE BADXDR DELAY FHEXPIRED INVAL IO MOVED NOFILEHANDLE NOTDIR \
          NOT_SAME RESOURCE SERVERFAULT STALE TOOSMALL",
    ),
    (
        Opnum::READLINK,
        "ACCESS BADHANDLE DELAY FHEXPIRED INVAL IO ISDIR MOVED NOFILEHANDLE NOTSUPP RESOURCE \
          SERVERFAULT STALE",
    ),
    (Opnum::RELEASE_LOCKOWNER, "BADXDR EXPIRED LEASE_MOVED LOCKS_HELD RESOURCE SERVERFAULT STALE_CLIENTID"),
    (
        Opnum::REMOVE,
        "ACCESS BADCHAR BADHANDLE BADNAME BADXDR DELAY FHEXPIRED FILE_OPEN GRACE INVAL IO MOVED \
          NAMETOOLONG NOENT NOFILEHANDLE NOTDIR NOTEMPTY RESOURCE ROFS SERVERFAULT STALE",
    ),
    (
        Opnum::RENAME,
        "ACCESS BADCHAR BADHANDLE BADNAME BADXDR DELAY DQUOT EXIST FHEXPIRED FILE_OPEN GRACE INVAL IO \
          MOVED NAMETOOLONG NOENT NOFILEHANDLE NOSPC NOTDIR NOTEMPTY RESOURCE ROFS SERVERFAULT STALE \
          WRONGSEC XDEV",
    ),
    (Opnum::RENEW, "ACCESS BADXDR CB_PATH_DOWN EXPIRED LEASE_MOVED RESOURCE SERVERFAULT STALE_CLIENTID"),
    (Opnum::RESTOREFH, "BADHANDLE FHEXPIRED MOVED RESOURCE RESTOREFH SERVERFAULT STALE WRONGSEC"),
    (Opnum::SAVEFH, "BADHANDLE FHEXPIRED MOVED NOFILEHANDLE RESOURCE SERVERFAULT STALE"),
    (
        Opnum::SECINFO,
        "ACCESS BADCHAR BADHANDLE BADNAME BADXDR DELAY FHEXPIRED INVAL MOVED NAMETOOLONG NOENT \
          NOFILEHANDLE NOTDIR RESOURCE SERVERFAULT STALE",
    ),
    (
        Opnum::SETATTR,
        "ACCESS ADMIN_REVOKED ATTRNOTSUPP BADCHAR BADHANDLE BADOWNER BAD_STATEID BADXDR DELAY DQUOT \
          EXPIRED FBIG FHEXPIRED GRACE INVAL IO ISDIR LEASE_MOVED LOCKED MOVED NOFILEHANDLE NOSPC \
          OLD_STATEID OPENMODE PERM RESOURCE ROFS SERVERFAULT STALE STALE_STATEID",
    ),
    (Opnum::SETCLIENTID, "BADXDR CLID_INUSE DELAY INVAL RESOURCE SERVERFAULT"),
    (Opnum::SETCLIENTID_CONFIRM, "BADXDR CLID_INUSE DELAY RESOURCE SERVERFAULT STALE_CLIENTID"),
    (
        Opnum::VERIFY,
        "ACCESS ATTRNOTSUPP BADCHAR BADHANDLE BADXDR DELAY FHEXPIRED GRACE INVAL IO MOVED \
          NOFILEHANDLE NOT_SAME RESOURCE SERVERFAULT STALE",
    ),
    (
        Opnum::WRITE,
        "ACCESS ADMIN_REVOKED BADHANDLE BAD_STATEID BADXDR DELAY DQUOT EXPIRED FBIG FHEXPIRED GRACE \
          INVAL IO ISDIR LEASE_MOVED LOCKED MOVED NOFILEHANDLE NOSPC NXIO OLD_STATEID OPENMODE \
          RESOURCE ROFS SERVERFAULT STALE STALE_STATEID SYMLINK",
    ),
];

/// Where an operation is tried: nowhere, on every kind of object, in the pseudo file system, in a read-only export.
const PLACES: [Option<&str>; 12] = [
    None,
    Some("/"),
    Some("/export"),
    Some("/export/file"),
    Some("/export/dir"),
    Some("/export/link"),
    Some("/export/fifo"),
    Some("/export/sock"),
    Some("/export/block"),
    Some("/export/char"),
    Some("/frozen"),
    Some("/other/file"),
];
const SAVED: [Option<&str>; 5] =
    [None, Some("/export/file"), Some("/export/dir"), Some("/frozen"), Some("/other")];
const NAMES: [&[u8]; 10] =
    [b"", b".", b"..", b"a/b", b"\xc3\x28", &[b'x'; 256], b"none", b"file", b"dir", b"link"];

fn stateids(c: &mut Client<'_>) -> Vec<Stateid4> {
    let owner = StateOwner4 { clientid: c.clientid, owner: "owner".into() };
    let opened = c.run_at(
        "/export",
        &[Argop::Open(OpenArgs {
            seqid: 1,
            share_access: SHARE_ACCESS_READ,
            share_deny: 0,
            owner,
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null("file".into()),
        })],
    );
    let Resop::Open(Ok(opened)) = opened.last() else { panic!("{opened:?}") };
    let confirm = Argop::OpenConfirm(OpenConfirmArgs { open_stateid: opened.stateid, seqid: 2 });
    let confirmed = c.run_at("/export/file", &[confirm]);
    let Resop::OpenConfirm(Ok(confirmed)) = confirmed.last() else { panic!("{confirmed:?}") };
    let open = confirmed.open_stateid;
    vec![
        Stateid4::ANONYMOUS,
        Stateid4::READ_BYPASS,
        Stateid4::CURRENT,
        Stateid4::INVALID,
        Stateid4 { seqid: 3, other: [7; 12] },
        opened.stateid,
        Stateid4 { seqid: open.seqid + 1, ..open },
        open,
    ]
}

fn with_names<'a>(clientid: u64, name: &'a [u8]) -> Vec<Argop<'a>> {
    let objname: Component4<'a> = name.into();
    let kinds = [
        Createtype4::Dir,
        Createtype4::Lnk(objname),
        Createtype4::Fifo,
        Createtype4::Sock,
        Createtype4::Chr(Specdata4 { specdata1: 1, specdata2: 1 }),
        Createtype4::Other(1),
    ];
    let createattrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: (&[][..]).into() };
    let made = kinds.map(|objtype| Argop::Create(CreateArgs { objtype, objname, createattrs }));
    let hows = [
        Openflag4::NoCreate,
        Openflag4::Create(Createhow4::Guarded(createattrs)),
        Openflag4::Create(Createhow4::Exclusive([1; 8])),
        Openflag4::Create(Createhow4::Exclusive41(Creatverfattr { verf: [1; 8], attrs: createattrs })),
    ];
    let claims = [
        OpenClaim4::Null(objname),
        OpenClaim4::Previous(OpenDelegationType4::None),
        OpenClaim4::DelegateCur(OpenClaimDelegateCur4 { delegate_stateid: Stateid4::CURRENT, file: objname }),
        OpenClaim4::DelegatePrev(objname),
        OpenClaim4::Fh,
    ];
    let opens = hows.into_iter().flat_map(|openhow| {
        claims.map(|claim| {
            Argop::Open(OpenArgs {
                seqid: 1,
                share_access: SHARE_ACCESS_BOTH,
                share_deny: 0,
                owner: StateOwner4 { clientid, owner: "another".into() },
                openhow,
                claim,
            })
        })
    });
    let others = [
        Argop::Lookup(LookupArgs { objname }),
        Argop::Link(LinkArgs { newname: objname }),
        Argop::Secinfo(SecinfoArgs { name: objname }),
        Argop::Rename(RenameArgs { oldname: "file".into(), newname: objname }),
        Argop::Rename(RenameArgs { oldname: objname, newname: "dir".into() }),
        Argop::Remove(RemoveArgs { target: objname }),
    ];
    others.into_iter().chain(made).chain(opens).collect()
}

fn with_stateid(clientid: u64, stateid: Stateid4, attrs: &[Attrs]) -> Vec<Argop<'_>> {
    let mut all = Vec::new();
    for offset in [0, 1, i64::MAX as u64, u64::MAX] {
        let data = Bulk::Bytes(b"data");
        all.push(Argop::Read(ReadArgs { stateid, offset, count: 4 }));
        all.push(Argop::Write(WriteArgs { stateid, offset, stable: StableHow4::Unstable, data }));
        all.push(Argop::Commit(CommitArgs { offset, count: 4 }));
        for length in [0, 1, u64::MAX - 1, u64::MAX] {
            let owner = StateOwner4 { clientid, owner: "locks".into() };
            let locktype = LockType4::Write;
            let existing = ExistLockOwner4 { lock_stateid: stateid, lock_seqid: 1 };
            let new =
                OpenToLockOwner4 { open_seqid: 3, open_stateid: stateid, lock_seqid: 1, lock_owner: owner };
            for locker in [Locker4::LockOwner(existing), Locker4::OpenOwner(new)] {
                all.push(Argop::Lock(LockArgs { locktype, reclaim: false, offset, length, locker }));
            }
            all.push(Argop::Lockt(LocktArgs { locktype, offset, length, owner }));
            all.push(Argop::Locku(LockuArgs { locktype, seqid: 1, lock_stateid: stateid, offset, length }));
        }
    }
    let (open_stateid, seqid) = (stateid, 3);
    all.push(Argop::OpenConfirm(OpenConfirmArgs { open_stateid, seqid }));
    let (share_access, share_deny) = (SHARE_ACCESS_WRITE, 0);
    all.push(Argop::OpenDowngrade(OpenDowngradeArgs { open_stateid, seqid, share_access, share_deny }));
    all.push(Argop::Close(CloseArgs { open_stateid, seqid: 9 }));
    all.push(Argop::Delegreturn(DelegreturnArgs { deleg_stateid: stateid }));
    for attrs in attrs {
        let obj_attributes = attrs.get();
        all.push(Argop::Setattr(SetattrArgs { stateid, obj_attributes }));
        all.push(Argop::Verify(VerifyArgs { obj_attributes }));
        all.push(Argop::Nverify(VerifyArgs { obj_attributes }));
    }
    all
}

fn others(clientid: u64) -> Vec<Argop<'static>> {
    let readdir = |cookie, verifier: u8, maxcount, bit| {
        let attr_request = Bitmap4::of(&[bit]);
        Argop::Readdir(ReaddirArgs { cookie, cookieverf: [verifier; 8], dircount: 0, maxcount, attr_request })
    };
    vec![
        Argop::Access(AccessArgs { access: 0x3f }),
        Argop::Access(AccessArgs { access: 0x40 }),
        Argop::Delegpurge(DelegpurgeArgs { clientid }),
        getattr(&[fattr4::SIZE]),
        getattr(&[fattr4::TIME_ACCESS_SET]),
        Argop::Getfh,
        Argop::Lookupp,
        Argop::Openattr(OpenattrArgs { createdir: true }),
        putfh(b""),
        putfh(&[1; 32]),
        Argop::Putpubfh,
        Argop::Putrootfh,
        readdir(0, 0, 8192, fattr4::SIZE),
        readdir(0, 0, 8192, fattr4::TIME_MODIFY_SET),
        readdir(1, 0, 8192, fattr4::SIZE),
        readdir(3, 1, 8192, fattr4::SIZE),
        readdir(0, 0, 8, fattr4::SIZE),
        Argop::Readlink,
        Argop::Renew(RenewArgs { clientid }),
        Argop::Renew(RenewArgs { clientid: 5 }),
        Argop::Restorefh,
        Argop::Savefh,
        Argop::ReleaseLockowner(ReleaseLockownerArgs {
            lock_owner: StateOwner4 { clientid: 5, owner: "locks".into() },
        }),
        Argop::SetclientidConfirm(SetclientidConfirmArgs { clientid, setclientid_confirm: [9; 8] }),
        Argop::Illegal(77),
    ]
}

#[test]
fn are_those_of_the_table() {
    let attrs = [
        Attrs::none(),
        Attrs::none().with(fattr4::SIZE, &0u64),
        Attrs::none().with(fattr4::SIZE, &u64::MAX),
        Attrs::none().with(fattr4::SIZE, &0u32),
        Attrs::none().with(fattr4::SUPPORTED_ATTRS, &Bitmap4::EMPTY),
        Attrs::none().with(fattr4::RDATTR_ERROR, &0u32),
        Attrs::none().with(fattr4::HIDDEN, &true),
        Attrs::none().with(fattr4::MODE, &0o10_000u32),
        Attrs::none().with(fattr4::MODE, &0o644u32),
        Attrs::none().with(fattr4::OWNER, &Utf8::from("nobody@example.org")),
        Attrs::none().with(fattr4::OWNER, &Utf8::from("17")),
        Attrs::none().with(fattr4::TIME_MODIFY_SET, &2u32),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (uid, saved) in [0, 1000].into_iter().flat_map(|uid| SAVED.map(|saved| (uid, saved))) {
        let server = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
        let mut c = stateful::client_of_40(&server, 1);
        let stateids = stateids(&mut c);
        c.who = user(uid);
        // First what leaves the names as they are.
        let mut ops = others(c.clientid);
        stateids.iter().for_each(|stateid| ops.extend(with_stateid(c.clientid, *stateid, &attrs)));
        let naming = NAMES.iter().flat_map(|name| with_names(c.clientid, name)).collect();
        let handles = PLACES.map(|place| place.map(|path| c.handle(path)));
        let saved = saved.map(|path| c.handle(path));
        for ops in [ops, naming] {
            for ((place, handle), op) in
                PLACES.iter().zip(&handles).flat_map(|at| ops.iter().map(move |op| (at, op)))
            {
                let mut all = Vec::new();
                if let Some(saved) = &saved {
                    all.extend([putfh(saved), Argop::Savefh]);
                }
                all.extend(handle.as_ref().map(|handle| putfh(handle)));
                all.push(*op);
                let results = c.run(&all);
                c.effects.clear();
                if results.status() == Nfsstat4::OK || results.ops().len() < all.len() {
                    continue;
                }
                let opnum = results.last().opnum();
                let (_, listed) = LISTED.iter().find(|(listed, _)| *listed == opnum).unwrap();
                let name = results.status().to_string();
                let name = name.trim_start_matches("NFS4ERR_");
                seen.insert(format!("{opnum} {name}"));
                assert!(listed.split(' ').any(|it| it == name), "{place:?}: {op:?}: {name}");
            }
        }
    }
    // That the places and arguments do meet with errors.
    assert!(seen.len() > 100, "{}: {seen:?}", seen.len());
}
