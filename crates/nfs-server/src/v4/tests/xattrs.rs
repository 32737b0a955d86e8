//! Extended attributes.

use super::*;

fn set<'a>(key: &'a str, value: &'a [u8], option: SetxattrOption4) -> Argop<'a> {
    Argop::Setxattr(SetxattrArgs { option, key: key.into(), value: value.into() })
}

fn get(name: &str) -> Argop<'_> {
    Argop::Getxattr(GetxattrArgs { name: name.into() })
}

fn remove(name: &str) -> Argop<'_> {
    Argop::Removexattr(RemovexattrArgs { name: name.into() })
}

fn list(cookie: u64, maxcount: u32) -> Argop<'static> {
    Argop::Listxattrs(ListxattrsArgs { cookie, maxcount })
}

const EITHER: SetxattrOption4 = SetxattrOption4::Either;

#[test]
fn values_are_set_read_and_removed() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    for path in ["/export/file", "/export/dir"] {
        let results = c.run_at(path, &[set("user.a", b"1", SetxattrOption4::Create)]);
        let Resop::Setxattr(Ok(got)) = results.last() else { panic!("{results:?}") };
        assert!(got.info.atomic && got.info.after > got.info.before);
        for (op, status) in [
            (set("user.a", b"2", SetxattrOption4::Create), Nfsstat4::EXIST),
            (set("user.b", b"2", SetxattrOption4::Replace), Nfsstat4::NOXATTR),
            (set("user.a", b"22", SetxattrOption4::Replace), Nfsstat4::OK),
            (set("user.b", b"", EITHER), Nfsstat4::OK),
            (get("user.c"), Nfsstat4::NOXATTR),
            (remove("user.c"), Nfsstat4::NOXATTR),
            (get(""), Nfsstat4::INVAL),
            (set("", b"x", EITHER), Nfsstat4::INVAL),
            (remove(""), Nfsstat4::INVAL),
            (set("user.a", &[7; 70_000], EITHER), Nfsstat4::XATTR2BIG),
        ] {
            assert_eq!(c.run_at(path, &[op]).status(), status, "{path} {op:?}");
        }
        for (name, value) in [("user.a", &b"22"[..]), ("user.b", b"")] {
            let results = c.run_at(path, &[get(name)]);
            let Resop::Getxattr(Ok(got)) = results.last() else { panic!("{results:?}") };
            assert_eq!(got.value.0, value);
        }
        let results = c.run_at(path, &[remove("user.a")]);
        let Resop::Removexattr(Ok(got)) = results.last() else { panic!("{results:?}") };
        assert!(got.info.after > got.info.before);
        assert_eq!(c.run_at(path, &[get("user.a")]).status(), Nfsstat4::NOXATTR);
    }
}

#[test]
fn names_are_listed_page_by_page() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    let mut expected: Vec<_> = (0..20).map(|i| format!("user.{}", "n".repeat(i + 1))).collect();
    for name in &expected {
        assert_eq!(c.run_at("/export/file", &[set(name, b"v", EITHER)]).status(), Nfsstat4::OK);
    }
    expected.sort();
    for maxcount in [48, 49, 60, 100, 1000, 100_000] {
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let results = c.run_at("/export/file", &[list(cookie, maxcount)]);
            let Resop::Listxattrs(Ok(got)) = results.last() else { panic!("{maxcount}: {results:?}") };
            let mut e = benchmaster_nfs_proto::xdr::Encoder::new();
            e.put(&got);
            assert!(e.len() <= maxcount as usize);
            names.extend(got.names.iter().map(|name| String::from_utf8(name.0.to_vec()).unwrap()));
            cookie = got.cookie;
            if got.eof {
                break;
            }
            assert!(!got.names.is_empty());
        }
        names.sort();
        assert_eq!(names, expected, "{maxcount}");
    }
    for maxcount in [0, 15, 20] {
        assert_eq!(c.run_at("/export/file", &[list(0, maxcount)]).status(), Nfsstat4::TOOSMALL);
    }
    let results = c.run_at("/export/dir", &[list(0, 16)]);
    let Resop::Listxattrs(Ok(got)) = results.last() else { panic!("{results:?}") };
    assert!(got.eof && got.names.is_empty());
}

#[test]
fn files_and_directories_have_them_for_those_who_may() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    let all = [get("user.a"), set("user.a", b"x", EITHER), list(0, 1000), remove("user.a")];
    for path in ["/export/link", "/export/fifo", "/export/char"] {
        for op in all {
            assert_eq!(c.run_at(path, &[op]).status(), Nfsstat4::WRONG_TYPE, "{path} {op:?}");
        }
    }
    for op in all {
        assert_eq!(c.run(&[op]).status(), Nfsstat4::NOFILEHANDLE);
    }
    for op in [set("user.a", b"x", EITHER), remove("user.a")] {
        assert_eq!(c.run_at("/frozen", &[op]).status(), Nfsstat4::ROFS);
        c.who = user(1000);
        assert_eq!(c.run_at("/export/file", &[op]).status(), Nfsstat4::ACCESS);
        c.who = user(0);
    }
}

#[test]
fn a_value_that_does_not_fit_the_session_is_refused() {
    let server = populated();
    let mut c = Client::new(&server, 2, 6);
    let channel = ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: 100_000,
        maxresponsesize: 2000,
        maxresponsesize_cached: 1000,
        maxoperations: 10,
        maxrequests: 1,
        rdma_ird: None,
    };
    c.create_session(6, channel);
    assert_eq!(c.run_at("/export/file", &[set("user.a", &[5; 3000], EITHER)]).status(), Nfsstat4::OK);
    assert_eq!(c.run_at("/export/file", &[get("user.a")]).status(), Nfsstat4::REP_TOO_BIG);
}
