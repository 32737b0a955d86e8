//! CREATE, LINK, REMOVE, RENAME, READDIR.

use super::*;

fn remove(name: &str) -> Argop<'_> {
    Argop::Remove(RemoveArgs { target: name.into() })
}

fn link(name: &str) -> Argop<'_> {
    Argop::Link(LinkArgs { newname: name.into() })
}

fn rename<'a>(old: &'a str, new: &'a str) -> Argop<'a> {
    Argop::Rename(RenameArgs { oldname: old.into(), newname: new.into() })
}

/// `ops` with one directory (or file) saved and another current.
fn between(c: &mut Client<'_>, saved: &str, current: &str, op: Argop<'_>) -> Results {
    let (saved, current) = (c.handle(saved), c.handle(current));
    c.run(&[putfh(&saved), Argop::Savefh, putfh(&current), op])
}

fn change(c: &mut Client<'_>, path: &str) -> u64 {
    attributes(&c.run_at(path, &[getattr(&[fattr4::CHANGE])])).change.unwrap()
}

#[test]
fn create_makes_every_kind_but_files_and_changes_the_handle() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let minor = c.minor;
        for (objtype, kind) in [
            (Createtype4::Dir, Ftype4::Dir),
            (Createtype4::Lnk("target".into()), Ftype4::Lnk),
            (Createtype4::Fifo, Ftype4::Fifo),
            (Createtype4::Sock, Ftype4::Sock),
            (Createtype4::Blk(Specdata4 { specdata1: 5, specdata2: 6 }), Ftype4::Blk),
            (Createtype4::Chr(Specdata4 { specdata1: 7, specdata2: 8 }), Ftype4::Chr),
        ] {
            let name = format!("new {kind:?} {minor}");
            let before = change(&mut c, "/export");
            let attrs = Attrs::none().with(fattr4::MODE, &0o750u32).with(fattr4::OWNER, &opaque("12"));
            let args = CreateArgs { objtype, objname: name.as_str().into(), createattrs: attrs.get() };
            let results = c.run_at("/export", &[Argop::Create(args), getattr(&[1, 33, 36, 41])]);
            let Resop::Create(Ok(made)) = results.ops()[1] else { panic!("{results:?}") };
            assert_eq!(made.attrset, Bitmap4::of(&[fattr4::MODE, fattr4::OWNER]));
            assert!(made.cinfo.atomic);
            assert_eq!((made.cinfo.before, made.cinfo.after), (before, change(&mut c, "/export")));
            assert!(made.cinfo.after > made.cinfo.before);
            let got = attributes(&results);
            assert_eq!((got.file_type, got.mode), (Some(kind), Some(0o750)));
            assert_eq!(got.owner.unwrap().0, b"12");
            let device = match objtype {
                Createtype4::Blk(device) | Createtype4::Chr(device) => device,
                _ => Specdata4::default(),
            };
            assert_eq!(got.rawdev, Some(device));
        }
    }
}

fn opaque(text: &str) -> benchmaster_nfs_proto::xdr::Opaque<'_> {
    text.into()
}

#[test]
fn create_has_its_errors() {
    let server = populated();
    let long = "x".repeat(256);
    for mut c in of_every_minor(&server) {
        for (path, name, objtype, status) in [
            ("/export", "dir", Createtype4::Dir, Nfsstat4::EXIST),
            ("/export", "file", Createtype4::Fifo, Nfsstat4::EXIST),
            ("/export", "", Createtype4::Dir, Nfsstat4::INVAL),
            ("/export", ".", Createtype4::Dir, Nfsstat4::BADNAME),
            ("/export", "..", Createtype4::Dir, Nfsstat4::BADNAME),
            ("/export", "a/b", Createtype4::Dir, Nfsstat4::BADCHAR),
            ("/export", &long, Createtype4::Dir, Nfsstat4::NAMETOOLONG),
            ("/export", "x", Createtype4::Other(1), Nfsstat4::BADTYPE),
            ("/export", "x", Createtype4::Other(9), Nfsstat4::BADTYPE),
            ("/export", "x", Createtype4::Other(77), Nfsstat4::BADTYPE),
            ("/export", "x", Createtype4::Lnk("".into()), Nfsstat4::INVAL),
            ("/export/file", "x", Createtype4::Dir, Nfsstat4::NOTDIR),
            ("/export/link", "x", Createtype4::Dir, Nfsstat4::NOTDIR),
            ("/frozen", "x", Createtype4::Dir, Nfsstat4::ROFS),
            ("/", "x", Createtype4::Dir, Nfsstat4::ROFS),
        ] {
            let results = c.run_at(path, &[create(name, objtype)]);
            assert_eq!(results.status(), status, "4.{} {path} {name} {objtype:?}", c.minor);
        }
        assert_eq!(c.run(&[create("x", Createtype4::Dir)]).status(), Nfsstat4::NOFILEHANDLE);
        for (attrs, status) in [
            (Attrs::none().with(fattr4::SIZE, &0u64), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::CHANGE, &0u64), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::HIDDEN, &true), Nfsstat4::ATTRNOTSUPP),
            (Attrs::none().with(fattr4::OWNER, &opaque("joe@nowhere")), Nfsstat4::BADOWNER),
            (Attrs::none().with(fattr4::MODE, &0o10_000u32), Nfsstat4::INVAL),
        ] {
            let args =
                CreateArgs { objtype: Createtype4::Dir, objname: "x".into(), createattrs: attrs.get() };
            assert_eq!(c.run_at("/export", &[Argop::Create(args)]).status(), status);
        }
        c.who = user(1000);
        assert_eq!(
            c.run_at("/export", &[create("x", Createtype4::Blk(Specdata4::default()))]).status(),
            Nfsstat4::PERM
        );
        let in_roots = c.run_at("/export/dir", &[create("x", Createtype4::Dir)]);
        assert_eq!(in_roots.status(), Nfsstat4::ACCESS);
    }
}

#[test]
fn link_gives_a_file_one_more_name() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let name = format!("link {}", c.minor);
        let results = between(&mut c, "/export/file", "/export/dir", link(&name));
        let Resop::Link(Ok(got)) = results.last() else { panic!("{results:?}") };
        assert!(got.cinfo.atomic && got.cinfo.after > got.cinfo.before);
        assert_eq!(c.handle(&format!("/export/dir/{name}")), c.handle("/export/file"));
        let links = attributes(&c.run_at("/export/file", &[getattr(&[fattr4::NUMLINKS])])).numlinks;
        assert_eq!(links, Some(c.minor + 2));
        for (saved, current, new, status) in [
            ("/export/file", "/export", "dir", Nfsstat4::EXIST),
            ("/export/file", "/export", "file", Nfsstat4::EXIST),
            ("/export/dir", "/export", "x", Nfsstat4::ISDIR),
            ("/export/file", "/export/file", "x", Nfsstat4::NOTDIR),
            ("/export/file", "/export/link", "x", Nfsstat4::NOTDIR),
            ("/export/file", "/other", "x", Nfsstat4::XDEV),
            ("/export/file", "/frozen", "x", Nfsstat4::ROFS),
            ("/export/file", "/export", "", Nfsstat4::INVAL),
            ("/export/file", "/export", ".", Nfsstat4::BADNAME),
            ("/export/file", "/export", "a/b", Nfsstat4::BADCHAR),
        ] {
            let results = between(&mut c, saved, current, link(new));
            assert_eq!(results.status(), status, "{saved} {current} {new}");
        }
        assert_eq!(c.run_at("/export", &[link("x")]).status(), Nfsstat4::NOFILEHANDLE);
        assert_eq!(c.run(&[link("x")]).status(), Nfsstat4::NOFILEHANDLE);
    }
}

#[test]
fn remove_takes_files_and_empty_directories() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for name in ["a", "b"] {
            assert_eq!(c.run_at("/export", &[create(name, Createtype4::Dir)]).status(), Nfsstat4::OK);
        }
        make_file(&c, "/export/a", "inside", b"");
        let results = c.run_at("/export", &[remove("b")]);
        let Resop::Remove(Ok(got)) = results.last() else { panic!("{results:?}") };
        assert!(got.cinfo.atomic && got.cinfo.after > got.cinfo.before);
        for (path, name, status) in [
            ("/export", "b", Nfsstat4::NOENT),
            ("/export", "a", Nfsstat4::NOTEMPTY),
            ("/export/a", "inside", Nfsstat4::OK),
            ("/export", "a", Nfsstat4::OK),
            ("/export", "", Nfsstat4::INVAL),
            ("/export", ".", Nfsstat4::BADNAME),
            ("/export", "..", Nfsstat4::BADNAME),
            ("/export/file", "x", Nfsstat4::NOTDIR),
            ("/export/link", "x", Nfsstat4::NOTDIR),
            ("/", "export", Nfsstat4::ROFS),
        ] {
            assert_eq!(c.run_at(path, &[remove(name)]).status(), status, "{path} {name}");
        }
        assert_eq!(c.run(&[remove("x")]).status(), Nfsstat4::NOFILEHANDLE);
        c.who = user(1000);
        // The export's root is sticky: everybody's, but not everybody's files.
        assert_eq!(c.run_at("/export", &[remove("file")]).status(), Nfsstat4::ACCESS);
        assert_eq!(between(&mut c, "/export", "/export", rename("file", "x")).status(), Nfsstat4::ACCESS);
    }
}

#[test]
fn rename_replaces_what_is_compatible() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for name in ["a", "b", "full"] {
            assert_eq!(c.run_at("/export/dir", &[create(name, Createtype4::Dir)]).status(), Nfsstat4::OK);
        }
        make_file(&c, "/export/dir/full", "inside", b"");
        make_file(&c, "/export/dir", "f", b"f");
        make_file(&c, "/export/dir", "g", b"g");
        assert_eq!(between(&mut c, "/export/dir/f", "/export/dir", link("f2")).status(), Nfsstat4::OK);
        let dir = "/export/dir";
        let before = change(&mut c, dir);
        // Two names of one file: nothing happens.
        let same = between(&mut c, dir, dir, rename("f", "f2"));
        let Resop::Rename(Ok(got)) = same.last() else { panic!("{same:?}") };
        assert_eq!((got.source_cinfo.before, got.target_cinfo.after), (before, before));
        let handle = c.handle("/export/dir/f");
        let moved = between(&mut c, dir, "/export", rename("f", "moved"));
        let Resop::Rename(Ok(got)) = moved.last() else { panic!("{moved:?}") };
        assert_eq!((got.source_cinfo.before, got.source_cinfo.after), (before, change(&mut c, dir)));
        assert_eq!(got.target_cinfo.after, change(&mut c, "/export"));
        assert_eq!(c.handle("/export/moved"), handle);
        for (from, old, to, new, status) in [
            (dir, "f2", dir, "g", Nfsstat4::OK),
            (dir, "a", dir, "b", Nfsstat4::OK),
            (dir, "b", dir, "full", Nfsstat4::EXIST),
            (dir, "b", dir, "g", Nfsstat4::EXIST),
            (dir, "g", dir, "b", Nfsstat4::EXIST),
            (dir, "absent", dir, "x", Nfsstat4::NOENT),
            (dir, "", dir, "x", Nfsstat4::INVAL),
            (dir, "g", dir, "", Nfsstat4::INVAL),
            (dir, ".", dir, "x", Nfsstat4::BADNAME),
            (dir, "g", dir, "..", Nfsstat4::BADNAME),
            (dir, "g", "/other", "x", Nfsstat4::XDEV),
            (dir, "g", "/export/file", "x", Nfsstat4::NOTDIR),
            ("/export/file", "g", dir, "x", Nfsstat4::NOTDIR),
            (dir, "g", "/export/link", "x", Nfsstat4::NOTDIR),
            (dir, "g", "/frozen", "x", Nfsstat4::ROFS),
            // Into itself.
            ("/export", "dir", "/export/dir/b", "x", Nfsstat4::INVAL),
        ] {
            let results = between(&mut c, from, to, rename(old, new));
            assert_eq!(results.status(), status, "{from} {old} {to} {new}");
        }
        assert_eq!(c.run_at(dir, &[rename("g", "h")]).status(), Nfsstat4::NOFILEHANDLE);
        for (path, name) in [(dir, "b"), (dir, "g"), ("/export", "moved")] {
            assert_eq!(c.run_at(path, &[remove(name)]).status(), Nfsstat4::OK);
        }
        assert_eq!(c.run_at("/export/dir/full", &[remove("inside")]).status(), Nfsstat4::OK);
        assert_eq!(c.run_at(dir, &[remove("full")]).status(), Nfsstat4::OK);
    }
}

struct Listing {
    names: Vec<String>,
    last: u64,
    verifier: Verifier4,
    eof: bool,
    size: usize,
}

fn args(cookie: u64, verifier: Verifier4, maxcount: u32, bits: &[u32]) -> ReaddirArgs {
    ReaddirArgs { cookie, cookieverf: verifier, dircount: 0, maxcount, attr_request: Bitmap4::of(bits) }
}

fn list(c: &mut Client<'_>, path: &str, args: ReaddirArgs) -> Result<Listing, Nfsstat4> {
    let results = c.run_at(path, &[Argop::Readdir(args)]);
    let Resop::Readdir(got) = results.last() else { panic!("{results:?}") };
    let got = got?;
    let entries: Vec<_> = got.entries.iter().collect();
    let mut e = benchmaster_nfs_proto::xdr::Encoder::new();
    e.put(&got);
    assert!(entries.iter().all(|entry| entry.cookie > 2));
    Ok(Listing {
        names: entries.iter().map(|entry| String::from_utf8(entry.name.0.to_vec()).unwrap()).collect(),
        last: entries.last().map_or(args.cookie, |entry| entry.cookie),
        verifier: got.cookieverf,
        eof: got.eof,
        size: e.len(),
    })
}

#[test]
fn readdir_pages_through_a_directory_within_its_limits() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let whole = list(&mut c, "/export", args(0, [0; 8], 1 << 20, &[1, 20])).unwrap();
        assert!(whole.eof);
        let mut expected = ["block", "char", "dir", "fifo", "file", "link", "sock"].map(String::from);
        expected.sort();
        let mut all = whole.names.clone();
        all.sort();
        assert_eq!(all, expected);
        for maxcount in [100, 101, 150, 200, 300, whole.size as u32 - 1, whole.size as u32] {
            let mut names = Vec::new();
            let (mut cookie, mut verifier) = (0, [0; 8]);
            loop {
                let page = list(&mut c, "/export", args(cookie, verifier, maxcount, &[1, 20])).unwrap();
                assert!(page.size <= maxcount as usize, "{} > {maxcount}", page.size);
                assert!(page.eof || !page.names.is_empty());
                names.extend(page.names);
                (cookie, verifier) = (page.last, page.verifier);
                if page.eof {
                    break;
                }
            }
            assert_eq!(names, whole.names, "{maxcount}");
        }
        // One entry at a time, by the hint.
        let hint = ReaddirArgs { dircount: 1, ..args(0, [0; 8], 4096, &[1]) };
        assert_eq!(list(&mut c, "/export", hint).unwrap().names.len(), 1);
        // Past the end.
        let end = list(&mut c, "/export", args(whole.last, whole.verifier, 4096, &[])).unwrap();
        assert!(end.eof && end.names.is_empty());
        let empty = list(&mut c, "/export/dir", args(0, [0; 8], 16, &[1])).unwrap();
        assert!(empty.eof && empty.names.is_empty());
    }
}

#[test]
fn readdir_has_its_errors() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let whole = list(&mut c, "/export", args(0, [0; 8], 1 << 20, &[])).unwrap();
        let mut wrong = whole.verifier;
        wrong[3] ^= 1;
        for (path, args, status) in [
            ("/export", args(1, whole.verifier, 4096, &[]), Nfsstat4::BAD_COOKIE),
            ("/export", args(2, [0; 8], 4096, &[]), Nfsstat4::BAD_COOKIE),
            ("/export", args(whole.last, wrong, 4096, &[]), Nfsstat4::NOT_SAME),
            ("/export", args(0, [0; 8], 0, &[]), Nfsstat4::TOOSMALL),
            ("/export", args(0, [0; 8], 15, &[]), Nfsstat4::TOOSMALL),
            ("/export", args(0, [0; 8], 40, &[1]), Nfsstat4::TOOSMALL),
            ("/export/dir", args(0, [0; 8], 15, &[]), Nfsstat4::TOOSMALL),
            ("/export", args(0, [0; 8], 4096, &[fattr4::TIME_ACCESS_SET]), Nfsstat4::INVAL),
            ("/export/file", args(0, [0; 8], 4096, &[]), Nfsstat4::NOTDIR),
            ("/export/link", args(0, [0; 8], 4096, &[]), Nfsstat4::NOTDIR),
        ] {
            let status_of = list(&mut c, path, args).map(|listing| listing.names);
            assert_eq!(status_of, Err(status), "{path} {args:?}");
        }
        let unset = Argop::Readdir(args(0, [0; 8], 4096, &[]));
        assert_eq!(c.run(&[unset]).status(), Nfsstat4::NOFILEHANDLE);
        let closed = Attrs::none().with(fattr4::MODE, &0o711u32);
        assert_eq!(c.run_at("/export/dir", &[setattr(&closed)]).status(), Nfsstat4::OK);
        c.who = user(1000);
        let denied = list(&mut c, "/export/dir", args(0, [0; 8], 4096, &[]));
        assert_eq!(denied.err(), Some(Nfsstat4::ACCESS));
    }
}

#[test]
fn readdir_shows_the_roots_of_exports_at_their_mount_points() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let bits =
            [fattr4::FSID, fattr4::FILEID, fattr4::MODE, fattr4::MOUNTED_ON_FILEID, fattr4::SPACE_TOTAL];
        let results =
            c.run(&[Argop::Putrootfh, Argop::Readdir(args(0, [0; 8], 4096, &bits)), getattr(&bits)]);
        let root = attributes(&results);
        let ops = results.ops();
        let Resop::Readdir(Ok(got)) = ops[1] else { panic!("{results:?}") };
        let mut fsids = vec![root.fsid.unwrap()];
        for entry in got.entries.iter() {
            let path = format!("/{}", String::from_utf8_lossy(entry.name.0));
            let listed = Attributes::decode(&entry.attrs).unwrap();
            let looked_up = c.run_at(&path, &[getattr(&bits)]);
            assert_eq!(listed, attributes(&looked_up), "{path}");
            assert_ne!(listed.mounted_on_fileid, listed.fileid, "{path}");
            fsids.push(listed.fsid.unwrap());
        }
        fsids.sort_by_key(|fsid| (fsid.major, fsid.minor));
        fsids.dedup();
        assert_eq!(fsids.len(), 4);
    }
}
