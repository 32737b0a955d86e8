use super::*;

const MODE: Sattr3 = Sattr3 { mode: Some(0o640), ..Sattr3::NONE };

#[test]
fn creation_unchecked_guarded_and_exclusive() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.create(&dir, "a", CreateHow::Guarded(MODE)).unwrap();
    assert_eq!(caller.getattr(&file).unwrap().mode, 0o640);
    assert_eq!(caller.create(&dir, "a", CreateHow::Guarded(MODE)), Err(Nfsstat3::EXIST));

    // UNCHECKED takes what is there, and applies the size alone.
    caller.write(&file, 0, b"0123456789");
    let other = Sattr3 { mode: Some(0o777), ..Sattr3::NONE };
    assert_eq!(caller.create(&dir, "a", CreateHow::Unchecked(other)), Ok(file.clone()));
    assert_eq!(caller.getattr(&file).map(|attr| (attr.size, attr.mode)), Ok((10, 0o640)));
    let cut = Sattr3 { size: Some(3), ..other };
    assert_eq!(caller.create(&dir, "a", CreateHow::Unchecked(cut)), Ok(file.clone()));
    assert_eq!(caller.getattr(&file).map(|attr| (attr.size, attr.mode)), Ok((3, 0o640)));
    caller.mkdir(&dir, "d", 0o755).unwrap();
    assert_eq!(caller.create(&dir, "d", CreateHow::Unchecked(MODE)), Err(Nfsstat3::EXIST));

    // EXCLUSIVE may be repeated with its own verifier until attributes are set.
    let once = CreateHow::Exclusive([1; 8]);
    let exclusive = caller.create(&dir, "e", once).unwrap();
    assert_eq!(caller.create(&dir, "e", once), Ok(exclusive));
    assert_eq!(caller.create(&dir, "e", CreateHow::Exclusive([2; 8])), Err(Nfsstat3::EXIST));
    assert_eq!(caller.create(&dir, "a", once), Err(Nfsstat3::EXIST));
}

#[test]
fn names_that_are_none() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let long = "n".repeat(256);
    for (name, looked, made, removed, moved) in [
        ("", Nfsstat3::ACCES, Nfsstat3::ACCES, Nfsstat3::ACCES, Nfsstat3::ACCES),
        ("a/b", Nfsstat3::ACCES, Nfsstat3::ACCES, Nfsstat3::ACCES, Nfsstat3::ACCES),
        ("a\0b", Nfsstat3::ACCES, Nfsstat3::ACCES, Nfsstat3::ACCES, Nfsstat3::ACCES),
        (&long, Nfsstat3::NAMETOOLONG, Nfsstat3::NAMETOOLONG, Nfsstat3::NAMETOOLONG, Nfsstat3::NAMETOOLONG),
        (".", Nfsstat3::OK, Nfsstat3::EXIST, Nfsstat3::ISDIR, Nfsstat3::INVAL),
        ("..", Nfsstat3::OK, Nfsstat3::EXIST, Nfsstat3::ISDIR, Nfsstat3::INVAL),
        ("none", Nfsstat3::NOENT, Nfsstat3::OK, Nfsstat3::OK, Nfsstat3::NOENT),
    ] {
        let status = |result: Result<Handle, Nfsstat3>| result.err().unwrap_or(Nfsstat3::OK);
        assert_eq!(status(caller.lookup(&dir, name)), looked, "{name:?}");
        assert_eq!(status(caller.create(&dir, name, CreateHow::Guarded(MODE))), made, "{name:?}");
        assert_eq!(caller.remove(Proc3::REMOVE, &dir, name).status(), removed, "{name:?}");
        assert_eq!(caller.rename((&dir, name), (&dir, "new")).status(), moved, "{name:?}");
        if made != Nfsstat3::OK {
            assert_eq!(caller.link(&file, (&dir, name)).status(), made, "{name:?}");
            assert_eq!(caller.rename((&dir, "a"), (&dir, name)).status(), moved, "{name:?}");
        }
    }
    assert_eq!(caller.remove(Proc3::RMDIR, &dir, ".").status(), Nfsstat3::INVAL);
    assert_eq!(caller.remove(Proc3::RMDIR, &dir, "..").status(), Nfsstat3::EXIST);
}

#[test]
fn kinds_that_do_not_fit() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "f");
    let sub = caller.mkdir(&dir, "d", 0o755).unwrap();
    assert_eq!(caller.lookup(&file, "x"), Err(Nfsstat3::NOTDIR));
    assert_eq!(caller.create(&file, "x", CreateHow::Guarded(MODE)), Err(Nfsstat3::NOTDIR));
    assert_eq!(caller.remove(Proc3::REMOVE, &dir, "d").status(), Nfsstat3::ISDIR);
    assert_eq!(caller.remove(Proc3::RMDIR, &dir, "f").status(), Nfsstat3::NOTDIR);
    caller.file(&sub, "x");
    assert_eq!(caller.remove(Proc3::RMDIR, &dir, "d").status(), Nfsstat3::NOTEMPTY);
    assert_eq!(caller.link(&sub, (&dir, "l")).status(), Nfsstat3::INVAL);
    assert_eq!(caller.rename((&dir, "d"), (&sub, "below")).status(), Nfsstat3::INVAL);
    caller.mkdir(&dir, "e", 0o755).unwrap();
    assert!(matches!(caller.rename((&dir, "e"), (&dir, "d")).status(), Nfsstat3::NOTEMPTY | Nfsstat3::EXIST));
    let fixed = root(&server, "/fixed");
    assert_eq!(caller.rename((&dir, "f"), (&fixed, "f")).status(), Nfsstat3::XDEV);
    assert_eq!(caller.link(&file, (&fixed, "f")).status(), Nfsstat3::XDEV);
}

#[test]
fn special_files() {
    let server = server();
    let dir = root(&server, "/export");
    let mut rootly = Caller::new(&server, 0);
    rootly.mkdir(&dir, "open", 0o777).unwrap();
    let open = rootly.lookup(&dir, "open").unwrap();
    let device = DeviceData { dev_attributes: MODE, spec: Specdata3 { major: 8, minor: 1 } };
    for (name, what, ftype) in [
        ("b", MknodData::Blk(device), Ftype3::Blk),
        ("c", MknodData::Chr(device), Ftype3::Chr),
        ("s", MknodData::Sock(MODE), Ftype3::Sock),
        ("p", MknodData::Fifo(MODE), Ftype3::Fifo),
    ] {
        let results = rootly.v3(Proc3::MKNOD, &MknodArgs { where_: at(&open, name), what });
        let attr = decode::<CreateRes<'_>>(&results).ok().unwrap().obj_attributes.unwrap();
        let is_device = matches!(what, MknodData::Blk(_) | MknodData::Chr(_));
        let rdev = if is_device { device.spec } else { Specdata3 { major: 0, minor: 0 } };
        assert_eq!((attr.ftype, attr.rdev, attr.mode), (ftype, rdev, 0o640));
    }
    let results = rootly.v3(Proc3::MKNOD, &MknodArgs { where_: at(&open, "r"), what: MknodData::Other(1) });
    assert_eq!(decode::<CreateRes<'_>>(&results).status(), Nfsstat3::BADTYPE);
    let mut user = Caller::new(&server, 1000);
    let results = user.v3(Proc3::MKNOD, &MknodArgs { where_: at(&open, "x"), what: MknodData::Chr(device) });
    assert_eq!(decode::<CreateRes<'_>>(&results).status(), Nfsstat3::PERM);
    let results = user.v3(Proc3::MKNOD, &MknodArgs { where_: at(&open, "q"), what: MknodData::Fifo(MODE) });
    assert_eq!(decode::<CreateRes<'_>>(&results).status(), Nfsstat3::OK);
}

#[test]
fn symbolic_links() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let symlink = SymlinkData { symlink_attributes: MODE, symlink_data: "../some/where".into() };
    let results = caller.v3(Proc3::SYMLINK, &SymlinkArgs { where_: at(&dir, "l"), symlink });
    let link = decode::<CreateRes<'_>>(&results).ok().unwrap().obj.unwrap().0.to_vec();
    let results = caller.v3(Proc3::READLINK, &ReadlinkArgs { symlink: link[..].into() });
    let read = decode::<ReadlinkRes<'_>>(&results).ok().unwrap();
    assert_eq!(read.data.0, b"../some/where");
    assert_eq!(read.symlink_attributes.unwrap().ftype, Ftype3::Lnk);
    let results = caller.v3(Proc3::READLINK, &ReadlinkArgs { symlink: dir[..].into() });
    assert_eq!(decode::<ReadlinkRes<'_>>(&results).status(), Nfsstat3::INVAL);
}

#[test]
fn consistency_data_chains_from_change_to_change() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let sub = caller.mkdir(&dir, "d", 0o755).unwrap();
    let wcc_of = |attr: Fattr3| WccAttr { size: attr.size, mtime: attr.mtime, ctime: attr.ctime };
    let mut before = wcc_of(caller.getattr(&sub).unwrap());
    let mut follow = |wcc: WccData, caller: &mut Caller<'_>| {
        assert_eq!(wcc.before, Some(before));
        assert_ne!(wcc.after.map(wcc_of), Some(before), "a change is seen");
        assert_eq!(wcc.after, caller.getattr(&sub).ok());
        before = wcc_of(wcc.after.unwrap());
    };
    let made = caller.v3(Proc3::CREATE, &CreateArgs { where_: at(&sub, "a"), how: CreateHow::Guarded(MODE) });
    let made = decode::<CreateRes<'_>>(&made).ok().unwrap();
    follow(made.dir_wcc, &mut caller);
    let linked = caller.link(made.obj.unwrap().0, (&sub, "b")).ok().unwrap();
    assert_eq!(linked.file_attributes.unwrap().nlink, 2);
    follow(linked.linkdir_wcc, &mut caller);
    let renamed = caller.rename((&sub, "b"), (&sub, "c")).ok().unwrap();
    assert_eq!(renamed.fromdir_wcc, renamed.todir_wcc);
    follow(renamed.todir_wcc, &mut caller);
    follow(caller.remove(Proc3::REMOVE, &sub, "c").ok().unwrap().dir_wcc, &mut caller);
    // A failure tells what is, but not what was.
    let Res::Err(Nfsstat3::NOENT, wcc) = caller.remove(Proc3::REMOVE, &sub, "c") else { panic!("NOENT") };
    assert_eq!(wcc, WccData { before: None, after: caller.getattr(&sub).ok() });
    // Two names of one file: nothing to be done (RFC 1813 §3.3.14).
    let file = caller.lookup(&sub, "a").unwrap();
    assert_eq!(caller.link(&file, (&sub, "b")).status(), Nfsstat3::OK);
    assert_eq!(caller.rename((&sub, "a"), (&sub, "b")).status(), Nfsstat3::OK);
    assert_eq!(caller.lookup(&sub, "a"), Ok(file));
}

#[test]
fn a_read_only_export_and_rights() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let fixed = root(&server, "/fixed");
    assert_eq!(caller.create(&fixed, "a", CreateHow::Guarded(MODE)), Err(Nfsstat3::ROFS));
    assert_eq!(caller.mkdir(&fixed, "a", 0o755), Err(Nfsstat3::ROFS));
    assert_eq!(caller.setattr(&fixed, MODE, None).status(), Nfsstat3::ROFS);
    assert_eq!(caller.remove(Proc3::REMOVE, &fixed, "a").status(), Nfsstat3::ROFS);
    assert_eq!(caller.rename((&fixed, "a"), (&fixed, "b")).status(), Nfsstat3::ROFS);

    let dir = root(&server, "/export");
    let private = caller.mkdir(&dir, "private", 0o700).unwrap();
    let public = caller.mkdir(&dir, "public", 0o755).unwrap();
    caller.file(&private, "a");
    let mut user = Caller::new(&server, 1000);
    assert_eq!(user.lookup(&private, "a"), Err(Nfsstat3::ACCES));
    assert_eq!(user.create(&public, "a", CreateHow::Unchecked(MODE)), Err(Nfsstat3::ACCES));
    assert_eq!(user.remove(Proc3::REMOVE, &private, "a").status(), Nfsstat3::ACCES);
}
