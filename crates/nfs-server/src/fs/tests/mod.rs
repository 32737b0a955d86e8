//! Behaviour of the file system as its callers see it.

mod model;
mod threads;

use super::*;
use crate::cred::Credentials;

pub(super) fn at(seconds: i64) -> Time {
    Time { seconds, nanos: 0 }
}

pub(super) fn new_fs() -> FileSystem {
    FileSystem::new(FsConfig::default(), 0o755, at(1))
}

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

fn user(uid: u32) -> Credentials {
    Credentials { uid, gid: uid, ..Credentials::root() }
}

#[test]
fn a_file_is_made_written_read_renamed_and_removed() {
    let (fs, root) = (new_fs(), Credentials::root());
    let made = fs.create(&root, fs.root(), b"a", NewFile::Regular, &mode(0o640), None, at(2)).unwrap();
    let file = made.attr.node;
    assert_eq!((made.attr.mode, made.attr.nlink, made.attr.size), (0o640, 1, 0));
    let changed = fs.write(&root, file, 3, b"hello", at(3)).unwrap();
    assert_eq!((changed.before.size, changed.after.size), (0, 8));
    let mut out = Vec::new();
    let info = fs.read(file, 1, 100, &mut out, at(4)).unwrap();
    assert_eq!((info.len, info.eof, info.attr.atime), (7, true, at(4)));
    let bytes: Vec<u8> = out.iter().flat_map(|slice| slice.as_slice().to_vec()).collect();
    assert_eq!(bytes, b"\0\0hello");
    fs.rename(&root, fs.root(), b"a", fs.root(), b"b", at(5)).unwrap();
    assert_eq!(fs.lookup(&root, fs.root(), b"a").err(), Some(FsError::NotFound));
    assert_eq!(fs.lookup(&root, fs.root(), b"b").unwrap().0, file);
    assert!(fs.stat().free_bytes < fs.stat().total_bytes);
    fs.hold(file).unwrap();
    let removed = fs.remove(&root, fs.root(), b"b", RemoveKind::File, at(6)).unwrap();
    assert_eq!(removed.attr.nlink, 0);
    assert_eq!(fs.attr(file).unwrap().size, 8, "held");
    drop(out);
    fs.release(file);
    assert_eq!(fs.attr(file).err(), Some(FsError::Stale));
    assert_eq!(fs.stat().free_bytes, fs.stat().total_bytes);
    assert_eq!(fs.remove(&user(7), fs.root(), b"b", RemoveKind::Any, at(6)).err(), Some(FsError::NotFound));
}
