//! Rules of the RFCs as tables: what operations say to objects of each kind, to names, and to words of their arguments.

use benchmaster_nfs_proto::xdr::{Encoder, List};

use super::*;

/// Stateids for I/O, and for operations on a state: one that names nothing.
const STATEIDS: (Stateid4, Stateid4) = (Stateid4::ANONYMOUS, Stateid4 { seqid: 1, other: [0x55; 12] });

/// The rows of a table: minor versions, and the other columns.
fn rows(table: &str) -> impl Iterator<Item = (u32, Vec<&str>)> {
    table.lines().filter(|line| !line.starts_with('#')).flat_map(|line| {
        let mut columns = line.split_whitespace();
        let minors = columns.next().unwrap();
        let columns: Vec<_> = columns.collect();
        minors.chars().map(move |minor| (minor.to_digit(10).unwrap(), columns.clone()))
    })
}

fn client(server: &Shared, minor: u32) -> Client<'_> {
    match minor {
        0 => stateful::client_of_40(server, 1),
        _ => Client::with_session(server, minor, 1),
    }
}

fn size(size: u64) -> Attrs {
    Attrs::none().with(fattr4::SIZE, &size)
}

/// An operation by the word of the tables, with the name that they are about.
fn operation<'a>(
    word: &str,
    c: &Client<'_>,
    name: &'a [u8],
    attrs: &'a [Attrs; 3],
    (stateid, held): (Stateid4, Stateid4),
) -> Argop<'a> {
    let [size, mode, compared] = attrs.each_ref().map(Attrs::get);
    let (objname, offset, length) = (Component4::from(name), 0, 1);
    let none = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: (&[][..]).into() };
    let owner = StateOwner4 { clientid: c.clientid, owner: "owner".into() };
    let open = |claim| OpenArgs {
        seqid: 1,
        share_access: SHARE_ACCESS_READ,
        share_deny: 0,
        owner,
        openhow: Openflag4::NoCreate,
        claim,
    };
    let (locktype, other) = (LockType4::Write, Component4::from("file"));
    let locker = Locker4::LockOwner(ExistLockOwner4 { lock_stateid: held, lock_seqid: 1 });
    let write = |data| WriteArgs { stateid, offset, stable: StableHow4::FileSync, data: Bulk::Bytes(data) };
    let readdir = ReaddirArgs {
        cookie: 0,
        cookieverf: [0; 8],
        dircount: 0,
        maxcount: 4096,
        attr_request: Bitmap4::EMPTY,
    };
    let (open_stateid, share_access) = (held, 1);
    let (src_stateid, dst_stateid) = (stateid, stateid);
    let value = (&[1][..]).into();
    match word {
        "ACCESS" => Argop::Access(AccessArgs { access: 1 }),
        "COMMIT" => Argop::Commit(CommitArgs { offset: u64::MAX, count: u32::MAX }),
        "CREATE" => Argop::Create(CreateArgs { objtype: Createtype4::Dir, objname, createattrs: none }),
        "READ" => Argop::Read(ReadArgs { stateid, offset, count: 1 }),
        "READ-NOTHING" => read(u64::MAX, 0),
        "WRITE" => Argop::Write(write(b"x")),
        "WRITE-NOTHING" => Argop::Write(write(b"")),
        "LOCKT" => Argop::Lockt(LocktArgs { locktype, offset, length, owner }),
        "LOCKU" => Argop::Locku(LockuArgs { locktype, seqid: 1, lock_stateid: held, offset, length }),
        "LOCK" => Argop::Lock(LockArgs { locktype, reclaim: false, offset, length, locker }),
        "LOCK-NEW" => {
            let new = OpenToLockOwner4 { open_seqid: 1, open_stateid, lock_seqid: 1, lock_owner: owner };
            let locker = Locker4::OpenOwner(new);
            Argop::Lock(LockArgs { locktype, reclaim: false, offset, length, locker })
        }
        "OPEN_CONFIRM" => Argop::OpenConfirm(OpenConfirmArgs { open_stateid, seqid: 1 }),
        "OPEN-DELEG-FH" => Argop::Open(open(OpenClaim4::DelegCurFh(held))),
        "FREE_STATEID" => Argop::FreeStateid(FreeStateidArgs { stateid: held }),
        "CLONE" => {
            Argop::Clone(CloneArgs { src_stateid, dst_stateid, src_offset: 0, dst_offset: 8, count: 1 })
        }
        "COPY" => Argop::Copy(CopyArgs {
            src_stateid,
            dst_stateid,
            src_offset: 0,
            dst_offset: 0,
            count: 1,
            consecutive: true,
            synchronous: true,
            source_server: Default::default(),
        }),
        "OPEN-FH" => Argop::Open(open(OpenClaim4::Fh)),
        "OPEN-NULL" => Argop::Open(open(OpenClaim4::Null(objname))),
        "LOOKUP" => Argop::Lookup(LookupArgs { objname }),
        "LOOKUPP" => Argop::Lookupp,
        "READDIR" => Argop::Readdir(readdir),
        "READLINK" => Argop::Readlink,
        "REMOVE" => Argop::Remove(RemoveArgs { target: objname }),
        "SECINFO" => Argop::Secinfo(SecinfoArgs { name: objname }),
        "SECINFO-PARENT" => Argop::SecinfoNoName(SecinfoStyle4::Parent),
        "SECINFO-CURRENT" | "SECINFO_NO_NAME" => Argop::SecinfoNoName(SecinfoStyle4::CurrentFh),
        "SETATTR-SIZE" => Argop::Setattr(SetattrArgs { stateid, obj_attributes: size }),
        "SETATTR-MODE" => Argop::Setattr(SetattrArgs { stateid, obj_attributes: mode }),
        "VERIFY" => Argop::Verify(VerifyArgs { obj_attributes: compared }),
        "NVERIFY" => Argop::Nverify(VerifyArgs { obj_attributes: compared }),
        "GETATTR" => getattr(&[fattr4::TYPE, fattr4::RDATTR_ERROR]),
        "GETFH" => Argop::Getfh,
        "SAVEFH" => Argop::Savefh,
        "RESTOREFH" => Argop::Restorefh,
        "LINK" => Argop::Link(LinkArgs { newname: objname }),
        "RENAME" => Argop::Rename(RenameArgs { oldname: objname, newname: other }),
        "RENAME-TO" => Argop::Rename(RenameArgs { oldname: other, newname: objname }),
        "OPENATTR" => Argop::Openattr(OpenattrArgs { createdir: true }),
        "DELEGRETURN" => Argop::Delegreturn(DelegreturnArgs { deleg_stateid: held }),
        "CLOSE" => Argop::Close(CloseArgs { seqid: 1, open_stateid }),
        "OPEN_DOWNGRADE" => {
            Argop::OpenDowngrade(OpenDowngradeArgs { open_stateid, seqid: 1, share_access, share_deny: 0 })
        }
        "ALLOCATE" => Argop::Allocate(AllocateArgs { stateid, offset, length }),
        "DEALLOCATE" => Argop::Deallocate(DeallocateArgs { stateid, offset, length }),
        "SEEK" => Argop::Seek(SeekArgs { stateid, offset, what: DataContent4::DATA }),
        "READ_PLUS" => Argop::ReadPlus(ReadPlusArgs { stateid, offset, count: 1 }),
        "IO_ADVISE" => Argop::IoAdvise(IoAdviseArgs { stateid, offset, count: 1, hints: Bitmap4::of(&[63]) }),
        "GETXATTR" => Argop::Getxattr(GetxattrArgs { name: objname }),
        "SETXATTR" => Argop::Setxattr(SetxattrArgs { option: SetxattrOption4::Either, key: objname, value }),
        "REMOVEXATTR" => Argop::Removexattr(RemovexattrArgs { name: objname }),
        "LISTXATTRS" => Argop::Listxattrs(ListxattrsArgs { cookie: 0, maxcount: 4096 }),
        "WANT" => Argop::WantDelegation(WantDelegationArgs { want: 0, claim: DelegClaim4::Fh }),
        _ => panic!("{word}"),
    }
}

/// What a status is called in the tables.
fn name(status: Nfsstat4) -> String {
    match status {
        Nfsstat4::OK => "OK".into(),
        status => status.to_string().trim_start_matches("NFS4ERR_").into(),
    }
}

fn attrs() -> [Attrs; 3] {
    [size(3), Attrs::none().with(fattr4::MODE, &0o700u32), Attrs::none().with(fattr4::TYPE, &1u32)]
}

#[test]
fn of_kinds_of_objects() {
    const PLACES: [Option<&str>; 5] =
        [Some("/export/dir"), Some("/export/link"), Some("/export/fifo"), Some("/export/file"), None];
    let (mut rules, mut wrong) = (0, Vec::new());
    for (minor, columns) in rows(include_str!("rules/objects.txt")) {
        let (word, expected) = columns.split_first().unwrap();
        for (place, expected) in PLACES.iter().zip(expected).filter(|(_, expected)| **expected != "*") {
            let server = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
            let (mut c, attrs) = (client(&server, minor), attrs());
            let op = operation(word, &c, b"none", &attrs, STATEIDS);
            let results = match place {
                Some(path) => c.run_at(path, &[op]),
                None => c.run(&[op]),
            };
            rules += 1;
            let found = name(results.status());
            if found != *expected {
                wrong.push(format!("4.{minor} {word} {place:?}: {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "of {rules}: {wrong:#?}");
    assert!(rules > 400, "{rules}");
}

#[test]
fn of_names() {
    const NAMES: [&[u8]; 6] = [b"", b".", b"..", b"a/b", &[b'x'; 256], b"\xff\xfe"];
    let (mut rules, mut wrong) = (0, Vec::new());
    for (minor, columns) in rows(include_str!("rules/names.txt")) {
        let (word, expected) = columns.split_first().unwrap();
        for (bytes, expected) in NAMES.iter().zip(expected) {
            let server = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
            let (mut c, attrs) = (client(&server, minor), attrs());
            let (from, dir) = (c.handle("/export/file"), c.handle("/export"));
            let saved = if *word == "LINK" { from } else { dir };
            let op = operation(word, &c, bytes, &attrs, STATEIDS);
            let found = name(c.run(&[putfh(&saved), Argop::Savefh, putfh(&dir), op]).status());
            rules += 1;
            if found != *expected {
                wrong.push(format!("4.{minor} {word} {bytes:?}: {found}, not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "of {rules}: {wrong:#?}");
    assert!(rules > 100, "{rules}");
}

/// An encoded operation whose word at an index is another.
fn with_word(op: Argop<'_>, index: usize, word: u32) -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(&op);
    let mut bytes = e.buffer().to_vec();
    bytes[4 * index..4 * index + 4].copy_from_slice(&word.to_be_bytes());
    bytes
}

#[test]
fn of_words() {
    let (mut rules, mut wrong) = (0, Vec::new());
    for (minor, columns) in rows(include_str!("rules/words.txt")) {
        let [word, value, expected] = columns[..] else { panic!("{columns:?}") };
        let server = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
        let (mut c, attrs) = (client(&server, minor), attrs());
        let of = |word| operation(word, &c, b"file", &attrs, STATEIDS);
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 4096,
            maxresponsesize: 4096,
            maxresponsesize_cached: 4096,
            maxoperations: 8,
            maxrequests: 1,
            rdma_ird: None,
        };
        // The place of the word, counted from the number of the operation.
        let (place, op, index, alone) = match word {
            "ACCESS" => ("/export/file", of("ACCESS"), 1, false),
            "OPEN-ACCESS" => ("/export", of("OPEN-NULL"), 2, false),
            "OPEN-DENY" => ("/export", of("OPEN-NULL"), 3, false),
            "CLAIM" => ("/export", of("OPEN-NULL"), 10, false),
            "WANT" => ("/export/file", of("WANT"), 1, false),
            "LOCKTYPE" => ("/export/file", of("LOCKT"), 1, false),
            "SECINFO_NO_NAME" => ("/export", of("SECINFO_NO_NAME"), 1, false),
            "SEEK" => ("/export/file", of("SEEK"), 7, false),
            "SETXATTR" => ("/export/file", of("SETXATTR"), 1, false),
            "STABLE" => ("/export/file", of("WRITE"), 7, false),
            "EXCHANGE_ID" => {
                let args = ExchangeIdArgs {
                    clientowner: ClientOwner4 { verifier: [1; 8], ownerid: "x".into() },
                    flags: 0,
                    state_protect: StateProtect4A::None,
                    client_impl_id: None,
                };
                ("", Argop::ExchangeId(args), 5, true)
            }
            "CREATE_SESSION" => {
                let args = CreateSessionArgs {
                    clientid: c.clientid,
                    sequence: 2,
                    flags: 0,
                    fore_chan_attrs: channel,
                    back_chan_attrs: channel,
                    cb_program: 1,
                    sec_parms: Default::default(),
                };
                ("", Argop::CreateSession(args), 4, true)
            }
            "BIND" => {
                let (sessid, _) = c.session.unwrap();
                let dir = ChannelDirFromClient4::Fore;
                let args = BindConnToSessionArgs { sessid, dir, use_conn_in_rdma_mode: false };
                ("", Argop::BindConnToSession(args), 5, true)
            }
            _ => panic!("{word}"),
        };
        let op = with_word(op, index, u32::from_str_radix(value, 16).unwrap());
        let mut before = Vec::new();
        let handle = if alone { [0; crate::handle::HANDLE_LEN] } else { c.handle(place) };
        if !alone {
            before.extend((minor > 0).then(|| c.sequence()));
            before.push(putfh(&handle));
        }
        let mut e = Encoder::new();
        e.put(&CompoundHeader { tag: "".into(), minorversion: minor, count: before.len() as u32 + 1 });
        before.iter().for_each(|op| e.put(op));
        e.raw(&op);
        let found = name(c.raw(e.buffer()).status());
        rules += 1;
        if expected != "*" && found != expected {
            wrong.push(format!("4.{minor} {word} {value}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "of {rules}: {wrong:#?}");
    assert!(rules > 100, "{rules}");
}

#[test]
fn of_stateids() {
    const ZEROS: [u8; 12] = [0; 12];
    let old = Stateid4 { seqid: 1, other: [1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1] };
    let stateids = [
        Stateid4::ANONYMOUS,
        Stateid4::READ_BYPASS,
        Stateid4 { seqid: 1, other: ZEROS },
        Stateid4 { seqid: u32::MAX, other: ZEROS },
        Stateid4 { seqid: 5, other: ZEROS },
        Stateid4 { seqid: 1, other: [0xff; 12] },
        STATEIDS.1,
        old,
    ];
    let (mut rules, mut wrong) = (0, Vec::new());
    for (minor, columns) in rows(include_str!("rules/stateids.txt")) {
        let (word, expected) = columns.split_first().unwrap();
        for (stateid, expected) in stateids.into_iter().zip(expected) {
            let server = populated_with(ServerConfig { delegations: false, ..ServerConfig::default() });
            let (mut c, attrs) = (client(&server, minor), attrs());
            make_file(&c, "/export", "another", b"some bytes");
            let saved = c.handle(if *word == "COPY" { "/export/another" } else { "/export/file" });
            let file = c.handle("/export/file");
            let test = [stateid];
            let op = match *word {
                "TEST_STATEID" => Argop::TestStateid(TestStateidArgs { stateids: List::Items(&test) }),
                word => operation(word, &c, b"none", &attrs, (stateid, stateid)),
            };
            let results = c.run(&[putfh(&saved), Argop::Savefh, putfh(&file), op]);
            let found = match results.last() {
                Resop::TestStateid(Ok(ok)) => ok.status_codes.iter().next().unwrap(),
                result => result.status(),
            };
            rules += 1;
            if name(found) != *expected {
                wrong.push(format!("4.{minor} {word} {stateid:?}: {}, not {expected}", name(found)));
            }
        }
    }
    assert!(wrong.is_empty(), "of {rules}: {wrong:#?}");
    assert!(rules > 300, "{rules}");
}
