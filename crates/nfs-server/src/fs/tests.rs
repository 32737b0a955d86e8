//! Behaviour of the file system as its callers see it.

mod data;
mod model;
mod permissions;
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

fn file(fs: &FileSystem, name: &[u8]) -> Node {
    let root = Credentials::root();
    fs.create(&root, fs.root(), name, NewFile::Regular, &SetAttr::default(), None, at(2)).unwrap().attr.node
}

fn directory(fs: &FileSystem, dir: Node, name: &[u8]) -> Node {
    let root = Credentials::root();
    fs.create(&root, dir, name, NewFile::Directory, &SetAttr::default(), None, at(2)).unwrap().attr.node
}

#[test]
fn names_that_are_none_are_refused() {
    let (fs, root) = (new_fs(), Credentials::root());
    let top = fs.root();
    let made = file(&fs, b"file");
    let long = [b'x'; NAME_MAX + 1];
    for (name, making, taking) in [
        (&b""[..], FsError::BadName, FsError::BadName),
        (b"a/b", FsError::BadName, FsError::BadName),
        (b"a\0b", FsError::BadName, FsError::BadName),
        (&long, FsError::NameTooLong, FsError::NameTooLong),
        (b".", FsError::Exists, FsError::Invalid),
        (b"..", FsError::Exists, FsError::Invalid),
    ] {
        let set = SetAttr::default();
        assert_eq!(fs.create(&root, top, name, NewFile::Regular, &set, None, at(3)).err(), Some(making));
        assert_eq!(fs.link(&root, made, top, name, at(3)).err(), Some(making));
        assert_eq!(fs.rename(&root, top, b"file", top, name, at(3)).err(), Some(making));
        assert_eq!(fs.rename(&root, top, name, top, b"b", at(3)).err(), Some(taking));
        assert_eq!(fs.remove(&root, top, name, RemoveKind::Any, at(3)).err(), Some(taking));
        let found = fs.lookup(&root, top, name);
        assert_eq!(found.err(), (making != FsError::Exists).then_some(making));
    }
    assert!(fs.create(&root, top, &long[1..], NewFile::Regular, &mode(0o600), None, at(3)).is_ok());
    assert_eq!(fs.lookup(&root, made, b"x").err(), Some(FsError::NotDirectory));
}

#[test]
fn kinds_are_told_apart() {
    let (fs, root) = (new_fs(), Credentials::root());
    let (top, set) = (fs.root(), SetAttr::default());
    let (one, dir) = (file(&fs, b"file"), directory(&fs, fs.root(), b"dir"));
    let make = |name: &[u8], new| fs.create(&root, top, name, new, &set, None, at(3));
    let link = make(b"link", NewFile::Symlink(b"dir/x")).unwrap().attr;
    let pipe = make(b"pipe", NewFile::Special(Kind::Fifo, (9, 9))).unwrap().attr;
    let disk = make(b"disk", NewFile::Special(Kind::Block, (8, 1))).unwrap().attr;
    assert_eq!((link.mode, link.size, link.kind), (0o777, 5, Kind::Symlink));
    assert_eq!((pipe.device, disk.device), ((0, 0), (8, 1)));
    assert_eq!(make(b"x", NewFile::Special(Kind::Regular, (0, 0))).err(), Some(FsError::Invalid));
    assert_eq!(make(b"x", NewFile::Symlink(b"")).err(), Some(FsError::Invalid));
    assert_eq!(make(b"x", NewFile::Symlink(b"a\0")).err(), Some(FsError::Invalid));
    assert_eq!(make(b"x", NewFile::Symlink(&[b'a'; PATH_MAX + 1])).err(), Some(FsError::NameTooLong));
    let mut out = Vec::new();
    for (node, error) in
        [(dir, FsError::IsDirectory), (link.node, FsError::IsSymlink), (pipe.node, FsError::WrongKind)]
    {
        assert_eq!(fs.read(node, 0, 1, &mut out, at(4)).err(), Some(error));
        assert_eq!(fs.write(&root, node, 0, b"x", at(4)).err(), Some(error));
        let size = SetAttr { size: Some(0), ..set.clone() };
        assert_eq!(fs.set_attr(&root, node, &size, None, true, at(4)).err(), Some(error));
    }
    let mut content = Vec::new();
    fs.read_link(link.node, at(4), &mut |it| content.extend_from_slice(it)).unwrap();
    assert_eq!(content, b"dir/x");
    assert_eq!(fs.read_link(one, at(4), &mut |_| {}).err(), Some(FsError::Invalid));
    let remove = |name: &[u8], what| fs.remove(&root, top, name, what, at(5)).err();
    assert_eq!(remove(b"dir", RemoveKind::File), Some(FsError::IsDirectory));
    assert_eq!(remove(b"file", RemoveKind::Directory), Some(FsError::NotDirectory));
    assert_eq!(fs.link(&root, dir, top, b"other", at(5)).err(), Some(FsError::IsDirectory));
    assert_eq!(fs.link(&root, top, top, b"other", at(5)).err(), Some(FsError::IsDirectory));
    assert_eq!(fs.link(&root, one, one, b"other", at(5)).err(), Some(FsError::NotDirectory));
    assert_eq!(fs.read_dir(&root, one, 0, false, at(5), &mut |_| true).err(), Some(FsError::NotDirectory));
}

#[test]
fn links_end_at_the_limit() {
    let (fs, root) = (new_fs(), Credentials::root());
    let one = file(&fs, b"file");
    let link = |number: u32| fs.link(&root, one, fs.root(), format!("{number}").as_bytes(), at(3));
    assert!((1..LINK_MAX).all(|number| link(number).is_ok()));
    assert_eq!(link(LINK_MAX).err(), Some(FsError::TooManyLinks));
    assert_eq!(fs.attr(one).unwrap().nlink, LINK_MAX);
}

#[test]
fn a_removed_directory_that_is_held_takes_no_new_names() {
    let (fs, root) = (new_fs(), Credentials::root());
    let dir = directory(&fs, fs.root(), b"dir");
    let one = file(&fs, b"file");
    fs.hold(dir).unwrap();
    assert_eq!(fs.remove(&root, fs.root(), b"dir", RemoveKind::Any, at(3)).unwrap().attr.nlink, 0);
    let made = fs.create(&root, dir, b"x", NewFile::Regular, &SetAttr::default(), None, at(4));
    assert_eq!(made.err(), Some(FsError::NotFound));
    assert_eq!(fs.link(&root, one, dir, b"x", at(4)).err(), Some(FsError::NotFound));
    assert_eq!(fs.rename(&root, fs.root(), b"file", dir, b"x", at(4)).err(), Some(FsError::NotFound));
    assert_eq!(fs.read_dir(&root, dir, 0, true, at(4), &mut |_| true), Ok(true));
    fs.release(dir);
    assert_eq!(fs.attr(dir).err(), Some(FsError::Stale));
}

#[test]
fn access_times_follow_relatime() {
    let fs = new_fs();
    let one = file(&fs, b"file");
    let mut out = Vec::new();
    let mut read = |seconds| fs.read(one, 0, 1, &mut out, at(seconds)).unwrap().attr.atime.seconds;
    assert_eq!([read(2), read(10), read(11), read(10 + 86_399), read(10 + 86_400)], [2, 10, 10, 10, 86_410]);
    fs.write(&Credentials::root(), one, 0, b"x", at(90_000)).unwrap();
    assert_eq!([read(90_001), read(90_002)], [90_001, 90_001]);
    let change = fs.attr(one).unwrap().change;
    assert_eq!(read(300_000), 300_000);
    assert_eq!(fs.attr(one).unwrap().change, change, "reading is no change");
}

#[test]
fn a_coarse_clock_hides_changes_within_a_step() {
    let config = FsConfig { change_granularity: Some(Duration::from_secs(10)), ..FsConfig::default() };
    let (fs, root) = (FileSystem::new(config, 0o755, at(1)), Credentials::root());
    let one = file(&fs, b"file");
    let first = fs.write(&root, one, 0, b"x", at(13)).unwrap().after;
    let second = fs.write(&root, one, 1, b"y", at(19)).unwrap();
    assert_eq!((first.mtime, first.change), (at(10), second.after.change));
    let third = fs.write(&root, one, 2, b"z", at(20)).unwrap().after;
    assert_eq!((third.mtime, third.ctime), (at(20), at(20)));
    assert!(third.change > first.change);
}

#[test]
fn setting_attributes_is_guarded_and_forgets_the_verifier() {
    let (fs, root) = (new_fs(), Credentials::root());
    let top = fs.root();
    let made = fs.create(&root, top, b"a", NewFile::Regular, &mode(0o600), Some(7), at(2)).unwrap().attr;
    assert_eq!(fs.verifier(made.node), Ok(Some(7)));
    let refused = fs.set_attr(&root, made.node, &mode(0o400), Some(at(1)), false, at(3));
    assert_eq!(refused.err(), Some(FsError::NotSync));
    let same = fs.set_attr(&root, made.node, &SetAttr::default(), Some(at(2)), false, at(3)).unwrap();
    assert_eq!((same.before, same.after.change), (same.after, made.change));
    fs.set_attr(&root, made.node, &mode(0o400), Some(at(2)), false, at(3)).unwrap();
    assert_eq!(fs.verifier(made.node), Ok(None));
    assert_eq!(fs.attr(made.node).unwrap().ctime, at(3));
}

#[test]
fn extended_attributes_have_limits_and_cookies() {
    let (fs, root) = (new_fs(), Credentials::root());
    let one = file(&fs, b"file");
    let set = |name: &[u8], value: &[u8], how| fs.set_xattr(one, name, value, how, at(3)).err();
    assert_eq!(set(b"a", b"1", XattrSet::Replace), Some(FsError::NoXattr));
    assert_eq!(set(b"a", b"1", XattrSet::Create), None);
    assert_eq!(set(b"a", b"2", XattrSet::Create), Some(FsError::Exists));
    assert_eq!(set(b"a", b"3", XattrSet::Replace), None);
    assert_eq!(set(b"", b"3", XattrSet::Either), Some(FsError::BadName));
    assert_eq!(set(&[b'n'; 256], b"3", XattrSet::Either), Some(FsError::NameTooLong));
    let large = vec![0; XATTR_SIZE_MAX + 1];
    assert_eq!(set(b"b", &large, XattrSet::Either), Some(FsError::XattrTooBig));
    let results: Vec<_> =
        (0..20).map(|n| set(format!("{n}").as_bytes(), &large[1..], XattrSet::Either)).collect();
    assert_eq!(results.iter().position(|it| *it == Some(FsError::NoSpace)), Some(15));
    let mut names = Vec::new();
    let mut from = 0;
    while !fs
        .list_xattrs(one, from, &mut |cookie, name| {
            let again = cookie == from;
            from = cookie;
            names.push(name.to_vec());
            again
        })
        .unwrap()
    {
        if names.len() == 3 {
            fs.remove_xattr(one, b"0", at(4)).unwrap();
        }
    }
    assert_eq!(names.len(), 16);
    assert_eq!(fs.remove_xattr(one, b"0", at(4)).err(), Some(FsError::NoXattr));
    assert_eq!(fs.xattr(one, b"0", &mut |_| {}).err(), Some(FsError::NoXattr));
    let mut value = Vec::new();
    fs.xattr(one, b"a", &mut |it| value.extend_from_slice(it)).unwrap();
    assert_eq!(value, b"3");
    fs.remove(&root, fs.root(), b"file", RemoveKind::File, at(5)).unwrap();
    assert_eq!(fs.stat().free_bytes, fs.stat().total_bytes);
}

#[test]
fn a_pinned_directory_stays() {
    let (fs, root) = (new_fs(), Credentials::root());
    let dir = directory(&fs, fs.root(), b"dir");
    directory(&fs, fs.root(), b"other");
    fs.pin(dir).unwrap();
    let removed = fs.remove(&root, fs.root(), b"dir", RemoveKind::Any, at(3)).err();
    assert_eq!(removed, Some(FsError::NotEmpty));
    let replaced = fs.rename(&root, fs.root(), b"other", fs.root(), b"dir", at(3)).err();
    assert_eq!(replaced, Some(FsError::NotEmpty));
}
