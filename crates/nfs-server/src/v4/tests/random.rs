//! Whatever comes, an answer goes that decodes and stays within its limit.

use proptest::prelude::*;

use super::super::REPLY_HEADER;
use super::*;

const PATHS: [&str; 8] =
    ["/", "/export", "/export/file", "/export/dir", "/export/link", "/export/fifo", "/frozen", "/other/file"];
const NAMES: [&str; 8] = ["file", "dir", "link", "new", "..", "", "x/y", "export"];
const STATEIDS: [Stateid4; 4] =
    [Stateid4::ANONYMOUS, Stateid4::READ_BYPASS, Stateid4::CURRENT, Stateid4 { seqid: 3, other: [7; 12] }];
const OFFSETS: [u64; 6] = [0, 1, 13, 70_000, i64::MAX as u64, u64::MAX];

/// Operation number `which`, its arguments drawn from `r`.
fn operation<'a>(which: u8, r: [u8; 4], handles: &'a [[u8; 32]], attrs: &'a Attrs) -> Argop<'a> {
    let name = |i: usize| NAMES[r[i] as usize % NAMES.len()].into();
    let stateid = STATEIDS[r[0] as usize % STATEIDS.len()];
    let offset = OFFSETS[r[1] as usize % OFFSETS.len()];
    let other = OFFSETS[r[2] as usize % OFFSETS.len()];
    let bits = Bitmap4::of(&[u32::from(r[0]) % 96, u32::from(r[1]) % 96, u32::from(r[2]) % 96]);
    match which % 32 {
        0 | 1 => putfh(&handles[r[0] as usize % handles.len()]),
        2 => Argop::Savefh,
        3 => Argop::Restorefh,
        4 => Argop::Lookup(LookupArgs { objname: name(0) }),
        5 => Argop::Lookupp,
        6 => Argop::Getattr(GetattrArgs { attr_request: bits }),
        7 => setattr(attrs),
        8 => Argop::Read(ReadArgs { stateid, offset, count: u32::from(r[3]) * 300 }),
        9 => Argop::Write(WriteArgs {
            stateid,
            offset,
            stable: StableHow4::Unstable,
            data: Bulk::Bytes(&attrs.get().attr_vals.0[..0]),
        }),
        10 => Argop::Readdir(ReaddirArgs {
            cookie: u64::from(r[0] % 5),
            cookieverf: [0; 8],
            dircount: u32::from(r[1]),
            maxcount: u32::from(r[2]) * 10,
            attr_request: bits,
        }),
        11 => Argop::Remove(RemoveArgs { target: name(1) }),
        12 => Argop::Rename(RenameArgs { oldname: name(0), newname: name(1) }),
        13 => Argop::Link(LinkArgs { newname: name(0) }),
        14 => Argop::Create(CreateArgs {
            objtype: Createtype4::Dir,
            objname: name(0),
            createattrs: attrs.get(),
        }),
        15 => Argop::Access(AccessArgs { access: u32::from(r[0]) }),
        16 => Argop::Readlink,
        17 => Argop::Commit(CommitArgs { offset, count: u32::from(r[0]) }),
        18 => Argop::Verify(VerifyArgs { obj_attributes: attrs.get() }),
        19 => Argop::Nverify(VerifyArgs { obj_attributes: attrs.get() }),
        20 => Argop::Secinfo(SecinfoArgs { name: name(0) }),
        21 => Argop::SecinfoNoName(SecinfoStyle4::Parent),
        22 => Argop::Allocate(AllocateArgs { stateid, offset, length: u64::from(r[3]) }),
        23 => Argop::Deallocate(DeallocateArgs { stateid, offset, length: other }),
        24 => Argop::Seek(SeekArgs { stateid, offset, what: DataContent4::HOLE }),
        25 => Argop::ReadPlus(ReadPlusArgs { stateid, offset, count: u32::from(r[3]) * 300 }),
        26 => Argop::Clone(CloneArgs {
            src_stateid: stateid,
            dst_stateid: stateid,
            src_offset: offset,
            dst_offset: other,
            count: u64::from(r[3]),
        }),
        27 => Argop::Setxattr(SetxattrArgs {
            option: SetxattrOption4::Either,
            key: name(0),
            value: (&[1, 2, 3][..]).into(),
        }),
        28 => Argop::Listxattrs(ListxattrsArgs { cookie: u64::from(r[0]), maxcount: u32::from(r[1]) }),
        29 => Argop::Removexattr(RemovexattrArgs { name: name(0) }),
        30 => Argop::Getfh,
        _ => Argop::Illegal(u32::from(r[0]) + 76),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_gets_its_results(
        compounds in proptest::collection::vec(
            proptest::collection::vec((any::<u8>(), any::<[u8; 4]>()), 1..12), 1..8),
        minor in 0u32..3,
        limit in 300u32..3000,
        cache: bool,
    ) {
        let server = populated();
        let mut c = Client::new(&server, minor, 1);
        if minor > 0 {
            c.create_session(1, ChannelAttrs4 {
                headerpadsize: 0,
                maxrequestsize: 8192,
                maxresponsesize: limit,
                maxresponsesize_cached: limit - 100,
                maxoperations: 20,
                maxrequests: 1,
                rdma_ird: None,
            });
            c.cache_this = cache;
        }
        let handles: Vec<_> = PATHS.iter().map(|path| c.handle(path)).collect();
        let attrs = Attrs::none().with(fattr4::SIZE, &70_000u64).with(fattr4::MODE, &0o640u32);
        for compound in compounds {
            let ops: Vec<_> = compound.into_iter().map(|(which, r)| operation(which, r, &handles, &attrs)).collect();
            let results = c.run(&ops);
            let all = results.ops();
            prop_assert!(all.len() <= ops.len());
            if let Some(last) = all.last() {
                prop_assert_eq!(last.status(), results.status());
            }
            for (op, result) in ops.iter().zip(&all) {
                prop_assert!(op.opnum() == result.opnum() || matches!(result, Resop::Illegal(_)));
            }
            if minor > 0 {
                let most = if cache { limit - 100 } else { limit } as usize;
                let len = REPLY_HEADER + results.bytes.len();
                prop_assert!(len <= most, "{len} > {most}: {results:?}");
            }
            c.effects.clear();
        }
    }

    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200), minor in 0u32..3) {
        let server = populated();
        let mut c = Client::new(&server, minor, 1);
        let mut args = vec![0, 0, 0, 0];
        args.extend(minor.to_be_bytes());
        args.extend(3u32.to_be_bytes());
        args.extend(bytes);
        prop_assert!(!c.raw(&args).all().is_empty());
    }
}
