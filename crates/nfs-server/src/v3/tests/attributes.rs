use benchmaster_nfs_proto::v3::access as bits;

use super::*;

#[test]
fn setting_attributes() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let time = Nfstime3 { seconds: 1, nseconds: 2 };
    let new = Sattr3 {
        mode: Some(0o100_4711),
        uid: Some(5),
        gid: Some(6),
        size: Some(7),
        atime: SetTime::SetToClientTime(time),
        mtime: SetTime::SetToServerTime,
    };
    let set = caller.setattr(&file, new, None).ok().unwrap();
    let attr = set.obj_wcc.after.unwrap();
    assert_eq!((attr.mode & 0o777, attr.uid, attr.gid, attr.size, attr.atime), (0o711, 5, 6, 7, time));
    assert_eq!(attr.mtime.seconds, 1_700_000_001);
    assert_eq!(caller.getattr(&file), Ok(attr));

    // The guard is the ctime that the client knows.
    let cut = Sattr3 { size: Some(1), ..Sattr3::NONE };
    let Res::Err(Nfsstat3::NOT_SYNC, wcc) = caller.setattr(&file, cut, Some(time)) else {
        panic!("NOT_SYNC")
    };
    assert_eq!(wcc.after, Some(attr));
    assert_eq!(caller.setattr(&file, cut, Some(attr.ctime)).status(), Nfsstat3::OK);

    let no_time = SetTime::SetToClientTime(Nfstime3 { seconds: 0, nseconds: 1_000_000_000 });
    for (bad, status) in [
        (Sattr3 { atime: no_time, ..Sattr3::NONE }, Nfsstat3::INVAL),
        (Sattr3 { size: Some(u64::MAX), ..Sattr3::NONE }, Nfsstat3::INVAL),
    ] {
        assert_eq!(caller.setattr(&file, bad, None).status(), status);
    }
    assert_eq!(caller.setattr(&dir, cut, None).status(), Nfsstat3::INVAL);
    let mut other = Caller::new(&server, 1000);
    let chmod = Sattr3 { mode: Some(0o777), ..Sattr3::NONE };
    assert_eq!(other.setattr(&file, chmod, None).status(), Nfsstat3::PERM);
}

#[test]
fn access_bits_by_kind_and_rights() {
    let server = server();
    let mut rootly = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = rootly.file(&dir, "a");
    let sub = rootly.mkdir(&dir, "d", 0o755).unwrap();
    let fixed = root(&server, "/fixed");
    let access = |uid: u32, object: &[u8]| {
        let mut caller = Caller::new(&server, uid);
        let results = caller.v3(Proc3::ACCESS, &AccessArgs { object: object.into(), access: 0x3f });
        decode::<AccessRes>(&results).ok().unwrap().access
    };
    let writing = bits::MODIFY | bits::EXTEND;
    assert_eq!(access(0, &file), bits::READ | writing);
    assert_eq!(access(1000, &file), bits::READ);
    assert_eq!(access(0, &sub), bits::READ | bits::LOOKUP | writing | bits::DELETE);
    assert_eq!(access(1000, &sub), bits::READ | bits::LOOKUP);
    assert_eq!(access(0, &fixed), bits::READ | bits::LOOKUP);
    // Only what was asked is answered.
    let args = AccessArgs { object: file[..].into(), access: bits::MODIFY };
    let results = rootly.v3(Proc3::ACCESS, &args);
    assert_eq!(decode::<AccessRes>(&results).ok().unwrap().access, bits::MODIFY);
}

#[test]
fn properties_of_the_file_system() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let args = FsArgs { fsroot: dir[..].into() };
    let info = decode::<FsinfoRes>(&caller.v3(Proc3::FSINFO, &args)).ok().unwrap();
    assert_eq!((info.rtmax, info.wtmax, info.maxfilesize), (65_536, 65_536, i64::MAX as u64));
    assert_eq!(info.properties, fsf::LINK | fsf::SYMLINK | fsf::HOMOGENEOUS | fsf::CANSETTIME);
    assert_eq!(info.time_delta, Nfstime3 { seconds: 0, nseconds: 1 });

    let stat = |caller: &mut Caller<'_>| decode::<FsstatRes>(&caller.v3(Proc3::FSSTAT, &args)).ok().unwrap();
    let empty = stat(&mut caller);
    assert_eq!(empty.tbytes, 1 << 30);
    let file = caller.file(&dir, "a");
    caller.write(&file, 0, &[1; 50_000]);
    let used = stat(&mut caller);
    assert!(used.fbytes + 50_000 <= empty.fbytes, "{} {}", used.fbytes, empty.fbytes);
    assert_eq!(used.ffiles + 1, empty.ffiles);

    let args = PathconfArgs { object: file[..].into() };
    let limits = decode::<PathconfRes>(&caller.v3(Proc3::PATHCONF, &args)).ok().unwrap();
    assert_eq!((limits.name_max, limits.no_trunc, limits.case_insensitive), (255, true, false));
}
