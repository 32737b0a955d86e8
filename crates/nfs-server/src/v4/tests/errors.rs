//! Every operation answers with the errors that the RFCs list for it, and no others.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Errors by operation, by minor version: those of 4.2 are in addition to 4.1's.
const LISTED: [&str; 3] =
    [include_str!("errors/v40.txt"), include_str!("errors/v41.txt"), include_str!("errors/v42.txt")];

/// The errors of each operation in a minor version.
fn listed(minor: u32) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let tables = match minor {
        0 => &LISTED[..1],
        1 => &LISTED[1..2],
        _ => &LISTED[1..],
    };
    let mut listed = BTreeMap::<_, BTreeSet<_>>::new();
    for line in tables.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        listed.entry(words.next().unwrap()).or_default().extend(words);
    }
    listed
}

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
    let mut open = opened.stateid;
    if c.minor == 0 {
        let confirm = Argop::OpenConfirm(OpenConfirmArgs { open_stateid: open, seqid: 2 });
        let confirmed = c.run_at("/export/file", &[confirm]);
        let Resop::OpenConfirm(Ok(confirmed)) = confirmed.last() else { panic!("{confirmed:?}") };
        open = confirmed.open_stateid;
    }
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

/// What came with sessions.
fn of_41(c: &Client<'_>, stateid: Stateid4) -> Vec<Argop<'static>> {
    let (clientid, (sessid, _)) = (c.clientid, c.session.unwrap());
    let channel = ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: 4096,
        maxresponsesize: 4096,
        maxresponsesize_cached: 4096,
        maxoperations: 8,
        maxrequests: 1,
        rdma_ird: None,
    };
    let create = |clientid, sequence, flags, fore_chan_attrs| {
        Argop::CreateSession(CreateSessionArgs {
            clientid,
            sequence,
            flags,
            fore_chan_attrs,
            back_chan_attrs: channel,
            cb_program: 1,
            sec_parms: Default::default(),
        })
    };
    let exchange = |flags| {
        Argop::ExchangeId(ExchangeIdArgs {
            clientowner: ClientOwner4 { verifier: [1; 8], ownerid: "another".into() },
            flags,
            state_protect: StateProtect4A::None,
            client_impl_id: None,
        })
    };
    let dir = ChannelDirFromClient4::Fore;
    let mut all = vec![
        create(5, 1, 0, channel),
        create(clientid, 9, 0, channel),
        create(clientid, 2, 0x80, channel),
        create(clientid, 2, 0, ChannelAttrs4 { maxrequests: 0, ..channel }),
        exchange(0),
        exchange(0x4000),
        exchange(EXCHGID_UPD_CONFIRMED_REC_A),
        Argop::BackchannelCtl(BackchannelCtlArgs { cb_program: 1, sec_parms: Default::default() }),
        Argop::BindConnToSession(BindConnToSessionArgs { sessid, dir, use_conn_in_rdma_mode: false }),
        Argop::DestroySession(DestroySessionArgs { sessionid: [9; 16] }),
        Argop::DestroyClientid(DestroyClientidArgs { clientid }),
        Argop::DestroyClientid(DestroyClientidArgs { clientid: 5 }),
        Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false }),
        Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: true }),
        Argop::SecinfoNoName(SecinfoStyle4::CurrentFh),
        Argop::SecinfoNoName(SecinfoStyle4::Parent),
        Argop::SetSsv(SetSsvArgs { ssv: (&[][..]).into(), digest: (&[][..]).into() }),
        Argop::FreeStateid(FreeStateidArgs { stateid }),
        c.session
            .map(|(sessionid, sequenceid)| SequenceArgs {
                sessionid,
                sequenceid,
                slotid: 0,
                highest_slotid: 0,
                cachethis: false,
            })
            .map(Argop::Sequence)
            .unwrap(),
    ];
    for want in [0, WANT_READ_DELEG, WANT_WRITE_DELEG, WANT_NO_DELEG, WANT_CANCEL, 0x600, 0x40_0000] {
        for claim in
            [DelegClaim4::Fh, DelegClaim4::DelegPrevFh, DelegClaim4::Previous(OpenDelegationType4::Read)]
        {
            all.push(Argop::WantDelegation(WantDelegationArgs { want, claim }));
        }
    }
    all
}

/// What came with 4.2, on ranges and extended attributes.
fn of_42<'a>(stateid: Stateid4, name: &'a [u8]) -> Vec<Argop<'a>> {
    let mut all = Vec::new();
    for offset in [0, 14, i64::MAX as u64, u64::MAX] {
        for length in [0, 1, u64::MAX] {
            let (src_stateid, dst_stateid) = (stateid, stateid);
            let (src_offset, dst_offset, count) = (offset, offset, length);
            all.extend([
                Argop::Allocate(AllocateArgs { stateid, offset, length }),
                Argop::Deallocate(DeallocateArgs { stateid, offset, length }),
                Argop::IoAdvise(IoAdviseArgs { stateid, offset, count, hints: Bitmap4::of(&[1, 60]) }),
                Argop::Clone(CloneArgs { src_stateid, dst_stateid, src_offset, dst_offset, count }),
                Argop::Copy(CopyArgs {
                    src_stateid,
                    dst_stateid,
                    src_offset,
                    dst_offset,
                    count,
                    consecutive: true,
                    synchronous: true,
                    source_server: Default::default(),
                }),
            ]);
        }
        all.push(Argop::ReadPlus(ReadPlusArgs { stateid, offset, count: 4 }));
        for what in [DataContent4::DATA, DataContent4::HOLE, DataContent4(7)] {
            all.push(Argop::Seek(SeekArgs { stateid, offset, what }));
        }
    }
    let (name, value) = (name.into(), (&[1, 2][..]).into());
    all.push(Argop::Getxattr(GetxattrArgs { name }));
    for option in [SetxattrOption4::Either, SetxattrOption4::Create, SetxattrOption4::Replace] {
        all.push(Argop::Setxattr(SetxattrArgs { option, key: name, value }));
    }
    all.push(Argop::Removexattr(RemovexattrArgs { name }));
    all.extend([0, 1, 400].map(|maxcount| Argop::Listxattrs(ListxattrsArgs { cookie: 0, maxcount })));
    all
}

/// Tries everything everywhere; how many pairs of operation and error there were, and those that are not listed.
fn unlisted(minor: u32) -> (usize, BTreeMap<String, String>) {
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
    let listed = listed(minor);
    let (mut seen, mut unlisted) = (BTreeSet::new(), BTreeMap::new());
    for (uid, saved) in [0, 1000].into_iter().flat_map(|uid| SAVED.map(|saved| (uid, saved))) {
        let server = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
        let mut c = match minor {
            0 => stateful::client_of_40(&server, 1),
            _ => Client::with_session(&server, minor, 1),
        };
        let stateids = stateids(&mut c);
        c.who = user(uid);
        // First what leaves the names as they are.
        let mut ops = others(c.clientid);
        stateids.iter().for_each(|stateid| ops.extend(with_stateid(c.clientid, *stateid, &attrs)));
        if minor > 0 {
            stateids.iter().for_each(|stateid| ops.extend(of_41(&c, *stateid)));
        }
        if minor > 1 {
            stateids.iter().for_each(|stateid| ops.extend(of_42(*stateid, b"name")));
            NAMES.iter().for_each(|name| ops.extend(of_42(Stateid4::INVALID, name)));
        }
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
                let opnum = results.last().opnum().to_string();
                let opnum = opnum.trim_start_matches("OP_");
                let name = results.status().to_string();
                let name = name.trim_start_matches("NFS4ERR_");
                seen.insert(format!("{opnum} {name}"));
                if !listed.get(opnum).is_some_and(|errors| errors.contains(name)) {
                    unlisted.entry(format!("{opnum} {name}")).or_insert(format!("{place:?}: {op:?}"));
                }
            }
        }
    }
    (seen.len(), unlisted)
}

#[test]
fn are_those_of_the_tables() {
    // That the places and arguments do meet with errors.
    let least = [100, 150, 200];
    let tried = [0, 1, 2].map(unlisted);
    let unlisted: Vec<_> = tried.iter().map(|(_, unlisted)| unlisted).collect();
    assert!(unlisted.iter().all(|unlisted| unlisted.is_empty()), "{unlisted:#?}");
    let seen = tried.map(|(seen, _)| seen);
    assert!(seen.iter().zip(least).all(|(seen, least)| *seen > least), "{seen:?}");
}
