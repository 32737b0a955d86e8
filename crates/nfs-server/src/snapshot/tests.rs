//! State written and read back, damaged, and not written at all.

use super::*;
use crate::config::ExportConfig;
use crate::cred::Credentials;
use crate::fs::{Ace, Acl, FsError, NewFile, Node, RemoveKind, SeekKind, SetAttr, Who, XattrSet};
use crate::handle::FileId;

fn at(seconds: i64) -> Time {
    Time { seconds, nanos: 7 }
}

fn config(paths: &[&str]) -> ServerConfig {
    let export = |path: &&str| ExportConfig { path: path.to_string(), ..ExportConfig::default() };
    ServerConfig { exports: paths.iter().map(export).collect(), ..ServerConfig::default() }
}

fn meta() -> Meta {
    Meta { instance: 77, number: 3, clients: vec![Vec::new(), b"one".to_vec(), vec![0xff; 1024]] }
}

/// Everything there is, as text: attributes, entries with cookies, data, extended attributes.
fn dump(exports: &Exports) -> Vec<String> {
    let mut out = Vec::new();
    for (number, export) in exports.list().iter().enumerate() {
        out.push(format!("{number} {} {:?}", export.path, export.fs.stat()));
        dump_file(&export.fs, export.fs.root(), &mut out);
    }
    out
}

fn dump_file(fs: &FileSystem, node: Node, out: &mut Vec<String>) {
    let mut line = format!("{:?} {:?} {:?}", fs.attr(node), fs.parent(node), fs.verifier(node));
    let mut names = Vec::new();
    let xattrs = fs.list_xattrs(node, 0, &mut |cookie, name| {
        names.push((cookie, name.to_vec()));
        true
    });
    line += &format!(" {xattrs:?}");
    for (cookie, name) in names {
        let show = &mut |value: &[u8]| line += &format!(" {cookie} {name:?}={value:?}");
        fs.xattr(node, &name, show).unwrap();
    }
    let mut entries = Vec::new();
    let dir = fs.read_dir(&Credentials::root(), node, 0, false, at(0), &mut |entry| {
        entries.push((entry.cookie, entry.name.to_vec(), entry.node));
        true
    });
    let mut pages = Vec::new();
    if fs.read(node, 0, 1 << 20, &mut pages, at(0)).is_ok() {
        let bytes: Vec<u8> = pages.iter().flat_map(|page| page.as_slice().to_vec()).collect();
        line += &format!(" {:08x} {:?}", crc32fast::hash(&bytes), fs.seek(node, 0, SeekKind::Data));
    }
    let _ = fs.read_link(node, at(0), &mut |target| line += &format!(" -> {}", target.escape_ascii()));
    line += &format!(" {dir:?} {entries:?}");
    out.push(line);
    for (.., child) in entries {
        dump_file(fs, child, out);
    }
}

fn fill(exports: &Exports) -> FileId {
    let root = Credentials::root();
    let any = SetAttr::default();
    let dir = exports.walk(&root, b"/export").unwrap();
    let (fs, top) = exports.file(dir).unwrap();
    let make = |dir, name: &[u8], new| fs.create(&root, dir, name, new, &any, None, at(3)).unwrap().attr.node;
    let deep = make(top, b"deep", NewFile::Directory);
    for number in 0..600 {
        make(deep, format!("file {number}").as_bytes(), NewFile::Regular);
    }
    for number in (0..600).step_by(3) {
        fs.remove(&root, deep, format!("file {number}").as_bytes(), RemoveKind::File, at(4)).unwrap();
    }
    let sparse = make(top, b"sparse", NewFile::Regular);
    fs.write(&root, sparse, 5 << 30, b"far out", at(5)).unwrap();
    fs.write(&root, sparse, 70_000, &vec![9; 80_000], at(6)).unwrap();
    fs.allocate(&root, sparse, 1 << 20, 200_000, at(7)).unwrap();
    fs.link(&root, sparse, deep, b"again", at(8)).unwrap();
    make(top, b"link", NewFile::Symlink(b"deep/again"));
    make(deep, b"pipe", NewFile::Special(crate::fs::Kind::Fifo, (0, 0)));
    make(deep, b"disk", NewFile::Special(crate::fs::Kind::Block, (8, 1)));
    fs.set_xattr(sparse, b"colour", b"green", XattrSet::Either, at(9)).unwrap();
    fs.set_xattr(sparse, b"gone", b"", XattrSet::Either, at(9)).unwrap();
    fs.set_xattr(sparse, b"size", &[1; 3000], XattrSet::Either, at(9)).unwrap();
    fs.remove_xattr(sparse, b"gone", at(10)).unwrap();
    fs.create(&root, deep, b"exclusive", NewFile::Regular, &any, Some(42), at(11)).unwrap();
    let set = SetAttr {
        mode: Some(0o6751),
        uid: Some(1000),
        gid: Some(0xffff_fffe),
        birth: Some(Time { seconds: -5, nanos: 999_999_999 }),
        ..SetAttr::default()
    };
    fs.set_attr(&root, sparse, &set, None, false, at(12)).unwrap();
    let passed_on = Ace { deny: true, flags: 3, mask: 7, who: Who::Members(100) };
    let named = Ace { deny: false, flags: 0, mask: 1, who: Who::User(1000) };
    let acl = Some(Acl { flags: 1, aces: [passed_on, named].into() }.into());
    fs.set_attr(&root, deep, &SetAttr { acl, ..SetAttr::default() }, None, false, at(12)).unwrap();
    make(deep, b"heir", NewFile::Directory);
    let open = make(top, b"open", NewFile::Regular);
    fs.write(&root, open, 0, b"content", at(13)).unwrap();
    fs.hold(open).unwrap();
    fs.remove(&root, top, b"open", RemoveKind::File, at(14)).unwrap();
    FileId { ino: open.ino, generation: open.generation, ..dir }
}

#[test]
fn everything_with_a_name_comes_back() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    let config = config(&["/export", "/export/inner", "/other/place"]);
    assert!(load(&path, &config, at(1)).unwrap().is_none());
    let exports = Exports::new(&config, at(1)).unwrap();
    let unnamed = fill(&exports);
    let (fs, node) = exports.file(unnamed).unwrap();
    save(&path, &exports, &meta()).unwrap();
    let Loaded { exports: loaded, meta: found, cut } = load(&path, &config, at(100)).unwrap().unwrap();
    assert_eq!(cut, None);
    assert_eq!(found, meta());
    // What was open without a name is the only difference.
    fs.release(node);
    assert_eq!(dump(&loaded), dump(&exports));
    let (loaded_fs, _) = loaded.file(unnamed).unwrap();
    assert_eq!(loaded_fs.attr(node).err(), Some(FsError::Stale));

    // New files get neither the cookies nor the handles of old ones.
    let root = Credentials::root();
    let top = loaded_fs.root();
    let any = SetAttr::default();
    for name in 0..300u32 {
        let name = name.to_string();
        let new =
            loaded_fs.create(&root, top, name.as_bytes(), NewFile::Regular, &any, None, at(101)).unwrap();
        assert_eq!(fs.attr(new.attr.node).err(), Some(FsError::Stale));
    }
    save(&path, &loaded, &meta()).unwrap();
    let again = load(&path, &config, at(200)).unwrap().unwrap().exports;
    assert_eq!(dump(&again), dump(&loaded));
}

#[test]
fn a_damaged_or_short_file_is_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    let config = config(&["/export"]);
    let exports = Exports::new(&config, at(1)).unwrap();
    fill(&exports);
    save(&path, &exports, &meta()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = load(&path, &config, at(2)).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        error
    };
    for len in [0, 7, 11].into_iter().chain((12..whole.len()).step_by(997)) {
        let error = refused(&whole[..len]);
        let expected = if len < 12 { "not a state file" } else { "damaged" };
        assert!(error.to_string().contains(expected), "{len}: {error}");
    }
    for at in (0..whole.len()).step_by(499) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        let error = refused(&bytes);
        match at {
            0..8 => assert!(matches!(error, SnapshotError::Foreign { .. })),
            8..12 => assert!(matches!(error, SnapshotError::Version { .. })),
            _ => assert!(matches!(error, SnapshotError::Damaged { .. }), "{at}: {error}"),
        }
    }
    let mut later = whole.clone();
    later[8] = 1;
    assert!(matches!(refused(&later), SnapshotError::Version { found: 1, .. }));
}

#[test]
fn damage_that_the_sum_does_not_show_is_no_panic() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    let config = config(&["/export"]);
    let exports = Exports::new(&config, at(1)).unwrap();
    let root = Credentials::root();
    let (fs, top) = exports.file(exports.walk(&root, b"/export").unwrap()).unwrap();
    let any = SetAttr::default();
    let file = fs.create(&root, top, b"file", NewFile::Regular, &any, None, at(2)).unwrap().attr.node;
    fs.write(&root, file, 100, b"data", at(2)).unwrap();
    fs.set_xattr(file, b"name", b"value", XattrSet::Either, at(2)).unwrap();
    fs.create(&root, top, b"dir", NewFile::Directory, &any, None, at(2)).unwrap();
    save(&path, &exports, &meta()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let body = HEADER as usize..whole.len() - TRAILER as usize;
    let mut refused = 0;
    for at_byte in body.clone() {
        for bit in [0, 7] {
            let mut bytes = whole.clone();
            bytes[at_byte] ^= 1 << bit;
            let sum = crc32fast::hash(&bytes[body.clone()]);
            bytes[body.end..].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(&path, &bytes).unwrap();
            refused += usize::from(load(&path, &config, at(3)).is_err());
        }
    }
    assert!(refused > body.len() / 4, "{refused} of {}", body.len() * 2);
}

#[test]
fn other_exports_are_refused_and_further_ones_are_empty() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    let exports = Exports::new(&config(&["/a", "/b"]), at(1)).unwrap();
    save(&path, &exports, &meta()).unwrap();
    for other in [&["/a"][..], &["/b", "/a"], &["/", "/a", "/b"], &["/a", "/c"]] {
        let error = load(&path, &config(other), at(2)).unwrap_err();
        assert!(matches!(error, SnapshotError::Exports { .. }), "{other:?}: {error}");
    }
    let more = load(&path, &config(&["/a", "/b", "/a/c"]), at(2)).unwrap().unwrap().exports;
    assert_eq!(more.mountable().count(), 3);
    assert_eq!(more.walk(&Credentials::root(), b"/a/c").unwrap().export, 3);
}

#[test]
fn what_was_there_stays_when_writing_fails() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state");
    let exports = Exports::new(&config(&["/export"]), at(1)).unwrap();
    save(&path, &exports, &meta()).unwrap();
    let before = std::fs::read(&path).unwrap();
    fill(&exports);
    // A disk that is always full.
    std::os::unix::fs::symlink("/dev/full", place.path().join("state.new")).unwrap();
    let error = save(&path, &exports, &meta()).unwrap_err();
    match &error {
        SnapshotError::Write { path: named, source } => {
            assert_eq!((named, source.kind()), (&path, io::ErrorKind::StorageFull));
        }
        other => panic!("{other}"),
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside");
    save(&path, &exports, &meta()).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), before);

    let nowhere = place.path().join("missing/state");
    let error = save(&nowhere, &exports, &meta()).unwrap_err();
    assert!(error.to_string().contains("missing/state"), "{error}");
    std::fs::create_dir(place.path().join("dir")).unwrap();
    assert!(matches!(save(&place.path().join("dir"), &exports, &meta()), Err(SnapshotError::Write { .. })));
    assert!(matches!(
        load(&place.path().join("dir"), &config(&["/export"]), at(1)),
        Err(SnapshotError::Read { .. })
    ));
}
