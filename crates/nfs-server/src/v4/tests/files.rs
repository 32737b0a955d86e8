//! File handles, lookups, access, links.

use super::*;

/// Runs `ops` in every minor version and expects the status that belongs to it.
fn expect(server: &Shared, path: &str, ops: &[Argop<'_>], statuses: [Nfsstat4; 3]) {
    for (mut c, status) in of_every_minor(server).into_iter().zip(statuses) {
        let results = if path.is_empty() { c.run(ops) } else { c.run_at(path, ops) };
        assert_eq!(results.status(), status, "4.{} {path} {ops:?}", c.minor);
    }
}

#[test]
fn root_and_lookup_reach_a_file_in_every_minor_version() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for root in [Argop::Putrootfh, Argop::Putpubfh] {
            let results = c.run(&[root, lookup("export"), lookup("file"), Argop::Getfh]);
            let Resop::Getfh(Ok(got)) = results.last() else { panic!("{results:?}") };
            assert_eq!(got.object.0, c.handle("/export/file"));
            assert_eq!(results.tag(), b"test");
        }
    }
}

#[test]
fn lookup_has_its_errors() {
    let server = populated();
    let long = "x".repeat(256);
    for (path, name, status) in [
        ("/export", "absent", Nfsstat4::NOENT),
        ("/export", "", Nfsstat4::INVAL),
        ("/export", ".", Nfsstat4::BADNAME),
        ("/export", "..", Nfsstat4::BADNAME),
        ("/export", "a/b", Nfsstat4::BADCHAR),
        ("/export", &long, Nfsstat4::NAMETOOLONG),
        ("/export/file", "x", Nfsstat4::NOTDIR),
        ("/export/fifo", "x", Nfsstat4::NOTDIR),
        ("/export/link", "x", Nfsstat4::SYMLINK),
    ] {
        expect(&server, path, &[lookup(name)], [status; 3]);
    }
    expect(&server, "", &[lookup("x")], [Nfsstat4::NOFILEHANDLE; 3]);
    let bad = Argop::Lookup(LookupArgs { objname: (&b"\xff\xfe"[..]).into() });
    expect(&server, "/export", &[bad], [Nfsstat4::INVAL; 3]);
}

#[test]
fn lookup_and_lookupp_need_the_right_to_search() {
    let server = populated();
    let closed = Attrs::none().with(fattr4::MODE, &0o600u32);
    for mut c in of_every_minor(&server) {
        assert_eq!(c.run_at("/export/dir", &[setattr(&closed)]).status(), Nfsstat4::OK);
        c.who = user(1000);
        assert_eq!(c.run_at("/export/dir", &[lookup("x")]).status(), Nfsstat4::ACCESS);
        assert_eq!(c.run_at("/export/dir", &[Argop::Lookupp]).status(), Nfsstat4::ACCESS);
    }
}

#[test]
fn lookupp_goes_up_and_out_of_an_export() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for (path, parent) in [("/export/dir", "/export"), ("/export", "/")] {
            let results = c.run_at(path, &[Argop::Lookupp, Argop::Getfh]);
            let Resop::Getfh(Ok(got)) = results.last() else { panic!("{results:?}") };
            assert_eq!(got.object.0, c.handle(parent), "{path}");
        }
        assert_eq!(c.run(&[Argop::Putrootfh, Argop::Lookupp]).status(), Nfsstat4::NOENT);
        for path in ["/export/file", "/export/link", "/export/sock"] {
            let link = path == "/export/link" && c.minor > 0;
            let expected = if link { Nfsstat4::SYMLINK } else { Nfsstat4::NOTDIR };
            assert_eq!(c.run_at(path, &[Argop::Lookupp]).status(), expected, "{path}");
        }
    }
    expect(&server, "", &[Argop::Lookupp], [Nfsstat4::NOFILEHANDLE; 3]);
}

#[test]
fn file_handles_are_set_saved_and_restored() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let (file, dir) = (c.handle("/export/file"), c.handle("/export/dir"));
        let ops = [putfh(&file), Argop::Savefh, putfh(&dir), Argop::Getfh, Argop::Restorefh, Argop::Getfh];
        let results = c.run(&ops);
        let handles: Vec<_> = results
            .ops()
            .into_iter()
            .filter_map(|op| if let Resop::Getfh(Ok(got)) = op { Some(got.object.0) } else { None })
            .collect();
        assert_eq!(handles, [&dir[..], &file[..]]);
    }
    for op in [Argop::Getfh, Argop::Savefh, Argop::Readlink, getattr(&[1])] {
        expect(&server, "", &[op], [Nfsstat4::NOFILEHANDLE; 3]);
    }
    let missing = [Nfsstat4::RESTOREFH, Nfsstat4::NOFILEHANDLE, Nfsstat4::NOFILEHANDLE];
    expect(&server, "/export", &[Argop::Restorefh], missing);
}

#[test]
fn damaged_foreign_and_outlived_handles_are_told_apart() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let handle = c.handle("/export/file");
        let mut damaged = handle;
        damaged[13] ^= 1;
        for bad in [&damaged[..], &handle[..31], &[]] {
            assert_eq!(c.run(&[putfh(bad)]).status(), Nfsstat4::BADHANDLE);
        }
        let foreign = crate::handle::encode(server.instance + 1, c.id("/export/file"));
        assert_eq!(c.run(&[putfh(&foreign)]).status(), Nfsstat4::STALE);
        let name = format!("short-lived {}", c.minor);
        make_file(&c, "/export", &name, b"");
        let handle = c.handle(&format!("/export/{name}"));
        let remove = Argop::Remove(RemoveArgs { target: name.as_str().into() });
        assert_eq!(c.run_at("/export", &[remove]).status(), Nfsstat4::OK);
        // Whoever notices first: PUTFH, or what follows it.
        for next in [Argop::Getfh, getattr(&[3]), lookup("x"), Argop::Savefh] {
            assert_eq!(c.run(&[putfh(&handle), next]).status(), Nfsstat4::STALE, "{next:?}");
        }
        assert_eq!(c.run(&[putfh(&handle)]).status(), Nfsstat4::STALE);
    }
}

fn access(bits: u32) -> Argop<'static> {
    Argop::Access(AccessArgs { access: bits })
}

#[test]
fn access_tells_rights_by_kind_and_mode() {
    let server = populated();
    let ask = |c: &mut Client<'_>, path: &str, bits: u32| {
        let results = c.run_at(path, &[access(bits)]);
        let Resop::Access(Ok(got)) = results.last() else { panic!("{path}: {results:?}") };
        (got.supported, got.access)
    };
    for mut c in of_every_minor(&server) {
        assert_eq!(ask(&mut c, "/export/file", 0x3f), (0x2d, 0x0d));
        assert_eq!(ask(&mut c, "/export/dir", 0x3f), (0x1f, 0x1f));
        assert_eq!(ask(&mut c, "/export/dir", 0x02), (0x02, 0x02));
        assert_eq!(ask(&mut c, "/frozen", 0x3f), (0x1f, 0x03));
        assert_eq!(ask(&mut c, "/", 0x3f), (0x1f, 0x03));
        c.who = user(1000);
        // The file is 0644 and user 0's, the directory as made: for its owner.
        assert_eq!(ask(&mut c, "/export/file", 0x3f), (0x2d, 0x01));
        assert_eq!(ask(&mut c, "/export", 0x3f), (0x1f, 0x1f));
        for combination in 0..64 {
            let (supported, granted) = ask(&mut c, "/export/file", combination);
            assert_eq!(supported & !combination, 0);
            assert_eq!(granted & !supported, 0);
        }
    }
    let unknown = [Nfsstat4::INVAL; 3];
    expect(&server, "/export", &[access(0x200)], unknown);
    let xattr = [Nfsstat4::INVAL, Nfsstat4::INVAL, Nfsstat4::OK];
    expect(&server, "/export", &[access(0x40)], xattr);
    let mut c = Client::with_session(&server, 2, 9);
    assert_eq!(ask(&mut c, "/export/file", 0x1c0), (0x1c0, 0x1c0));
    assert_eq!(ask(&mut c, "/frozen", 0x1c0), (0x1c0, 0x140));
    assert_eq!(ask(&mut c, "/export/link", 0x1c0), (0, 0));
    c.who = user(1000);
    assert_eq!(ask(&mut c, "/export/file", 0x1c0), (0x1c0, 0x140));
}

#[test]
fn readlink_reads_links_only() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let results = c.run_at("/export/link", &[Argop::Readlink]);
        let Resop::Readlink(Ok(got)) = results.last() else { panic!("{results:?}") };
        assert_eq!(got.link.0, b"file");
    }
    let wrong = [Nfsstat4::INVAL, Nfsstat4::WRONG_TYPE, Nfsstat4::WRONG_TYPE];
    for path in ["/export/file", "/export/dir", "/export/fifo", "/export/block"] {
        expect(&server, path, &[Argop::Readlink], wrong);
    }
}

#[test]
fn secinfo_lists_flavours_and_uses_up_the_handle_from_41_on() {
    let server = populated();
    let secinfo = |name: &'static str| Argop::Secinfo(SecinfoArgs { name: name.into() });
    for mut c in of_every_minor(&server) {
        let results = c.run_at("/export", &[secinfo("file")]);
        let Resop::Secinfo(Ok(got)) = results.last() else { panic!("{results:?}") };
        let flavors: Vec<_> = got.flavors.iter().collect();
        assert_eq!(flavors, [Secinfo4::Flavor(1), Secinfo4::Flavor(0)]);
        assert_eq!(
            c.run_at("/export", &[secinfo("file"), Argop::Getfh]).status(),
            if c.minor == 0 { Nfsstat4::OK } else { Nfsstat4::NOFILEHANDLE }
        );
    }
    for (path, name, status) in [
        ("/export", "absent", Nfsstat4::NOENT),
        ("/export", "", Nfsstat4::INVAL),
        ("/export", "..", Nfsstat4::BADNAME),
        ("/export/file", "x", Nfsstat4::NOTDIR),
        ("", "x", Nfsstat4::NOFILEHANDLE),
    ] {
        expect(&server, path, &[secinfo(name)], [status; 3]);
    }
    let no_name = |style| Argop::SecinfoNoName(style);
    let mut c = Client::with_session(&server, 1, 9);
    for style in [SecinfoStyle4::CurrentFh, SecinfoStyle4::Parent] {
        assert_eq!(c.run_at("/export/dir", &[no_name(style)]).status(), Nfsstat4::OK);
        let consumed = c.run_at("/export/dir", &[no_name(style), Argop::Getfh]);
        assert_eq!(consumed.status(), Nfsstat4::NOFILEHANDLE);
    }
    let status = |c: &mut Client<'_>, ops: &[Argop<'_>]| c.run(ops).status();
    assert_eq!(status(&mut c, &[Argop::Putrootfh, no_name(SecinfoStyle4::Parent)]), Nfsstat4::NOENT);
    assert_eq!(status(&mut c, &[no_name(SecinfoStyle4::CurrentFh)]), Nfsstat4::NOFILEHANDLE);
    let of_file = c.run_at("/export/file", &[no_name(SecinfoStyle4::Parent)]);
    assert_eq!(of_file.status(), Nfsstat4::NOTDIR);
}
