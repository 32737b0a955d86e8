use super::*;

#[test]
fn reading_what_was_written() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let before = caller.getattr(&file).unwrap();
    let data: Vec<u8> = (0..10_000u32).map(|n| (n * 7) as u8).collect();
    let written = caller.write(&file, 5, &data).ok().unwrap();
    assert_eq!((written.count, written.committed), (10_000, StableHow::Unstable));
    let wcc = written.file_wcc;
    assert_eq!(wcc.before, Some(WccAttr { size: 0, mtime: before.mtime, ctime: before.ctime }));
    assert_eq!(wcc.after.map(|attr| attr.size), Some(10_005));

    assert_eq!(caller.read(&file, 5, 10_000), Ok((data.clone(), true)));
    assert_eq!(caller.read(&file, 0, 8), Ok((vec![0, 0, 0, 0, 0, data[0], data[1], data[2]], false)));
    assert_eq!(caller.read(&file, 10_000, 4096), Ok((data[9_995..].to_vec(), true)));
    assert_eq!(caller.read(&file, 10_005, 1), Ok((vec![], true)));
    assert_eq!(caller.read(&file, u64::MAX, u32::MAX), Ok((vec![], true)));
    assert_eq!(caller.read(&file, 7, 0), Ok((vec![], false)));

    let args = CommitArgs { file: file[..].into(), offset: 0, count: 0 };
    let committed = decode::<CommitRes>(&caller.v3(Proc3::COMMIT, &args)).ok().unwrap();
    assert_eq!(committed.verf, written.verf);
    assert_eq!(committed.file_wcc.after.map(|attr| attr.size), Some(10_005));
    let far = CommitArgs { offset: u64::MAX, count: 1, ..args };
    // No range is wrong: RFC 1813 §3.3.21 has no status for it.
    assert_eq!(decode::<CommitRes>(&caller.v3(Proc3::COMMIT, &far)).status(), Nfsstat3::OK);
}

#[test]
fn limits_of_reading_and_writing() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let data = vec![1; 70_000];
    // wtmax is 64 KiB: the rest is up to the client.
    assert_eq!(caller.write(&file, 0, &data).ok().unwrap().count, 65_536);
    assert_eq!(caller.write(&file, 65_536, &data[65_536..]).ok().unwrap().count, 4464);
    assert_eq!(caller.read(&file, 0, 70_000).map(|(data, eof)| (data.len(), eof)), Ok((65_536, false)));
    // Over UDP all must fit a datagram.
    let outbox = caller.peer.outbox.take();
    assert_eq!(caller.read(&file, 0, 70_000).map(|(data, _)| data.len()), Ok(32_768));
    let info =
        decode::<FsinfoRes>(&caller.v3(Proc3::FSINFO, &FsArgs { fsroot: dir[..].into() })).ok().unwrap();
    assert_eq!((info.rtmax, info.wtmax), (32_768, 32_768));
    caller.peer.outbox = outbox;
    assert_eq!(caller.write(&file, i64::MAX as u64, b"x").status(), Nfsstat3::FBIG);
    assert_eq!(caller.write(&file, u64::MAX, b"x").status(), Nfsstat3::FBIG);
    let args = WriteArgs {
        file: file[..].into(),
        offset: 0,
        count: 3,
        stable: StableHow::FileSync,
        data: Bulk::Bytes(b"four"),
    };
    assert_eq!(decode::<WriteRes>(&caller.v3(Proc3::WRITE, &args)).status(), Nfsstat3::INVAL);
    assert_eq!(caller.read(&dir, 0, 1), Err(Nfsstat3::INVAL));
    assert_eq!(caller.write(&dir, 0, b"x").status(), Nfsstat3::INVAL);
}

#[test]
fn a_full_export() {
    let export = ExportConfig { path: "/export".into(), limit: Some(100_000), ..ExportConfig::default() };
    let server = testing::server(ServerConfig { exports: vec![export], ..ServerConfig::default() });
    let mut caller = Caller::new(&server, 0);
    let file = caller.file(&root(&server, "/export"), "a");
    assert_eq!(caller.write(&file, 0, &[1; 50_000]).status(), Nfsstat3::OK);
    let Res::Err(Nfsstat3::NOSPC, wcc) = caller.write(&file, 50_000, &[1; 60_000]) else { panic!("NOSPC") };
    assert_eq!(wcc.after.map(|attr| attr.size), Some(50_000));
    assert_eq!(caller.write(&file, 0, &[2; 50_000]).status(), Nfsstat3::OK);
}

#[test]
fn rights_to_read_and_write() {
    let server = server();
    let mut rootly = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = rootly.file(&dir, "a");
    rootly.write(&file, 0, b"data");
    let mode = |mode| Sattr3 { mode: Some(mode), ..Sattr3::NONE };
    let mut other = Caller::new(&server, 1000);
    for (bits, reads, writes) in
        [(0o644, true, false), (0o600, false, false), (0o601, true, false), (0o602, false, true)]
    {
        assert_eq!(rootly.setattr(&file, mode(bits), None).status(), Nfsstat3::OK);
        assert_eq!(other.read(&file, 0, 4).is_ok(), reads, "{bits:o}");
        assert_eq!(other.write(&file, 0, b"x").status() == Nfsstat3::OK, writes, "{bits:o}");
    }
    // The owner goes on after chmod, as with a file opened before.
    let own = Sattr3 { uid: Some(1000), ..mode(0) };
    assert_eq!(rootly.setattr(&file, own, None).status(), Nfsstat3::OK);
    assert!(other.read(&file, 0, 4).is_ok());
    assert_eq!(other.write(&file, 0, b"x").status(), Nfsstat3::OK);
    let cut = Sattr3 { size: Some(1), ..Sattr3::NONE };
    assert_eq!(other.setattr(&file, cut, None).status(), Nfsstat3::OK);
    let mut third = Caller::new(&server, 1001);
    assert_eq!(third.setattr(&file, cut, None).status(), Nfsstat3::ACCES);
    assert_eq!(third.read(&file, 0, 4), Err(Nfsstat3::ACCES));
}
