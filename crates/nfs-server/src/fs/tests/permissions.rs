//! Who may do what.

use benchmaster_nfs_proto::v4::{ACE_FILE_INHERIT, ACE_INHERIT_ONLY};

use super::*;

fn owned(fs: &FileSystem, name: &[u8], uid: u32, bits: u32) -> Node {
    let set = SetAttr { mode: Some(bits), uid: Some(uid), gid: Some(uid), ..SetAttr::default() };
    fs.create(&Credentials::root(), fs.root(), name, NewFile::Regular, &set, None, at(2)).unwrap().attr.node
}

fn folder(fs: &FileSystem, name: &[u8], uid: u32, bits: u32) -> Node {
    let set = SetAttr { mode: Some(bits), uid: Some(uid), gid: Some(uid), ..SetAttr::default() };
    fs.create(&Credentials::root(), fs.root(), name, NewFile::Directory, &set, None, at(2)).unwrap().attr.node
}

#[test]
fn changing_a_directory_takes_the_right_to_write_and_search() {
    let fs = new_fs();
    let (owner, other, set) = (user(5), user(6), SetAttr::default());
    let dir = folder(&fs, b"dir", 5, 0o755);
    let make =
        |who: &Credentials, name: &[u8]| fs.create(who, dir, name, NewFile::Regular, &set, None, at(3));
    let made = make(&owner, b"a").unwrap().attr;
    assert_eq!((made.uid, made.gid, made.mode), (5, 5, 0o644));
    assert_eq!(make(&other, b"b").err(), Some(FsError::Access));
    assert_eq!(make(&other, b"a").err(), Some(FsError::Exists), "that it exists is no secret");
    assert_eq!(fs.remove(&other, dir, b"a", RemoveKind::Any, at(3)).err(), Some(FsError::Access));
    assert_eq!(fs.link(&other, made.node, dir, b"b", at(3)).err(), Some(FsError::Access));
    assert_eq!(fs.rename(&other, dir, b"a", dir, b"b", at(3)).err(), Some(FsError::Access));
    for (bits, read, search) in [(0o600, true, false), (0o100, false, true), (0o000, false, false)] {
        fs.set_attr(&owner, dir, &mode(bits), None, false, at(4)).unwrap();
        assert_eq!(fs.read_dir(&owner, dir, 0, false, at(4), &mut |_| true).is_ok(), read);
        assert_eq!(fs.lookup(&owner, dir, b"a").is_ok(), search);
        assert_eq!(make(&owner, b"c").err(), Some(FsError::Access));
    }
    assert!(make(&Credentials::root(), b"c").is_ok());
}

#[test]
fn sticky_directories_protect_the_files_of_others() {
    let fs = new_fs();
    let dir = folder(&fs, b"tmp", 9, 0o1777);
    let set = SetAttr::default();
    for name in [b"a", b"b", b"c", b"d"] {
        fs.create(&user(5), dir, name, NewFile::Regular, &set, None, at(3)).unwrap();
    }
    let (other, to) = (user(6), folder(&fs, b"to", 6, 0o755));
    fs.create(&other, dir, b"mine", NewFile::Regular, &set, None, at(3)).unwrap();
    assert_eq!(fs.remove(&other, dir, b"a", RemoveKind::Any, at(4)).err(), Some(FsError::NotOwner));
    assert_eq!(fs.rename(&other, dir, b"a", to, b"a", at(4)).err(), Some(FsError::NotOwner));
    assert_eq!(fs.rename(&other, dir, b"mine", dir, b"a", at(4)).err(), Some(FsError::NotOwner));
    assert!(fs.remove(&user(5), dir, b"a", RemoveKind::Any, at(4)).is_ok());
    assert!(fs.remove(&user(9), dir, b"b", RemoveKind::Any, at(4)).is_ok());
    assert!(fs.remove(&Credentials::root(), dir, b"c", RemoveKind::Any, at(4)).is_ok());
    assert!(fs.rename(&other, dir, b"mine", to, b"a", at(4)).is_ok());
}

#[test]
fn set_group_id_directories_hand_their_group_down() {
    let fs = new_fs();
    let dir = folder(&fs, b"dir", 7, 0o2777);
    let make = |who: &Credentials, name: &[u8], new, bits| {
        fs.create(who, dir, name, new, &mode(bits), None, at(3)).unwrap().attr
    };
    let file = make(&user(5), b"file", NewFile::Regular, 0o2755);
    assert_eq!((file.uid, file.gid, file.mode), (5, 7, 0o755), "not of that group: no set-group-ID");
    let below = make(&user(5), b"dir", NewFile::Directory, 0o755);
    assert_eq!((below.gid, below.mode), (7, 0o2755));
    assert_eq!(make(&user(7), b"own", NewFile::Regular, 0o2755).mode, 0o2755);
}

#[test]
fn writing_takes_set_ids_away() {
    let fs = new_fs();
    let after = |who: &Credentials, bits, change: &dyn Fn(&Credentials, Node)| {
        let node = owned(&fs, b"x", 5, bits);
        change(who, node);
        let mode = fs.attr(node).unwrap().mode;
        fs.remove(&Credentials::root(), fs.root(), b"x", RemoveKind::Any, at(9)).unwrap();
        mode
    };
    let write = |who: &Credentials, node| assert!(fs.write(who, node, 0, b"x", at(3)).is_ok());
    let resize = |who: &Credentials, node| {
        let set = SetAttr { size: Some(3), ..SetAttr::default() };
        fs.set_attr(who, node, &set, None, true, at(3)).unwrap();
    };
    let chown = |who: &Credentials, node| {
        let set = SetAttr { gid: Some(5), ..SetAttr::default() };
        fs.set_attr(who, node, &set, None, false, at(3)).unwrap();
    };
    assert_eq!(after(&user(5), 0o6755, &write), 0o755);
    assert_eq!(after(&user(6), 0o6777, &resize), 0o777);
    assert_eq!(after(&user(5), 0o2644, &write), 0o2644, "set-group-ID without execute hands over nothing");
    assert_eq!(after(&Credentials::root(), 0o6755, &write), 0o6755);
    assert_eq!(after(&user(5), 0o6755, &chown), 0o755);
    assert_eq!(after(&Credentials::root(), 0o6755, &chown), 0o755);
}

#[test]
fn only_owners_change_modes_and_only_the_superuser_gives_away() {
    let fs = new_fs();
    let node = owned(&fs, b"x", 5, 0o644);
    let set = |who: &Credentials, set: SetAttr| fs.set_attr(who, node, &set, None, false, at(3)).err();
    let none = SetAttr::default();
    let mut member = user(5);
    member.gids.push(8);
    assert_eq!(set(&user(6), mode(0o777)), Some(FsError::NotOwner));
    assert_eq!(set(&user(5), mode(0o600)), None);
    assert_eq!(set(&user(5), SetAttr { uid: Some(6), ..none.clone() }), Some(FsError::NotOwner));
    assert_eq!(set(&user(5), SetAttr { uid: Some(5), ..none.clone() }), None);
    assert_eq!(set(&user(6), SetAttr { uid: Some(5), ..none.clone() }), Some(FsError::NotOwner));
    assert_eq!(set(&user(5), SetAttr { gid: Some(8), ..none.clone() }), Some(FsError::NotOwner));
    assert_eq!(set(&member, SetAttr { gid: Some(8), ..none.clone() }), None);
    assert_eq!(set(&user(5), mode(0o2755)), None);
    assert_eq!(fs.attr(node).unwrap().mode, 0o755, "no member of group 8");
    assert_eq!(set(&Credentials::root(), SetAttr { uid: Some(6), gid: Some(9), ..none.clone() }), None);
    let attr = fs.attr(node).unwrap();
    assert_eq!((attr.uid, attr.gid), (6, 9));
    // All or nothing.
    let both = SetAttr { mode: Some(0o777), uid: Some(1), ..none.clone() };
    assert_eq!(set(&user(6), both), Some(FsError::NotOwner));
    assert_eq!(fs.attr(node).unwrap().mode, 0o755);
}

#[test]
fn writers_may_set_times_to_now_and_owners_to_anything() {
    let fs = new_fs();
    let node = owned(&fs, b"x", 5, 0o666);
    let set = |who: &Credentials, atime, mtime| {
        let set = SetAttr { atime, mtime, ..SetAttr::default() };
        fs.set_attr(who, node, &set, None, false, at(3)).map(|changed| changed.after)
    };
    let (now, then) = (Some(SetTime::Now), Some(SetTime::To(at(-7))));
    let after = set(&user(6), now, now).unwrap();
    assert_eq!((after.atime, after.mtime), (at(3), at(3)));
    assert_eq!(set(&user(6), now, then).err(), Some(FsError::NotOwner));
    let after = set(&user(5), then, None).unwrap();
    assert_eq!((after.atime, after.mtime, after.ctime), (at(-7), at(3), at(3)));
    fs.set_attr(&user(5), node, &mode(0o444), None, false, at(3)).unwrap();
    assert_eq!(set(&user(6), now, now).err(), Some(FsError::Access));
    assert!(set(&user(5), now, now).is_ok());
}

#[test]
fn truncating_takes_the_right_to_write() {
    let fs = new_fs();
    let node = owned(&fs, b"x", 5, 0o464);
    let set = |who: &Credentials, checked| {
        let set = SetAttr { size: Some(3), ..SetAttr::default() };
        fs.set_attr(who, node, &set, None, checked, at(3)).err()
    };
    let mut member = user(6);
    member.gids.push(5);
    assert_eq!(set(&user(5), false), Some(FsError::Access));
    assert_eq!(set(&user(5), true), None);
    assert_eq!(set(&member, false), None);
    assert_eq!(set(&user(7), false), Some(FsError::Access));
    assert_eq!(set(&Credentials::root(), false), None);
}

#[test]
fn moving_a_directory_elsewhere_takes_the_right_to_write_to_it() {
    let fs = new_fs();
    let (from, to) = (folder(&fs, b"from", 5, 0o777), folder(&fs, b"to", 5, 0o777));
    let set = SetAttr::default();
    fs.create(&user(6), from, b"theirs", NewFile::Directory, &set, None, at(3)).unwrap();
    assert!(fs.rename(&user(5), from, b"theirs", from, b"same", at(4)).is_ok());
    assert_eq!(fs.rename(&user(5), from, b"same", to, b"same", at(4)).err(), Some(FsError::Access));
    assert!(fs.rename(&user(6), from, b"same", to, b"same", at(4)).is_ok());
}

#[test]
fn a_new_file_gets_only_owners_that_chown_would_give() {
    let fs = new_fs();
    let dir = folder(&fs, b"dir", 5, 0o777);
    let make = |who: &Credentials, name: &[u8], uid, gid| {
        let set = SetAttr { uid, gid, ..SetAttr::default() };
        fs.create(who, dir, name, NewFile::Regular, &set, None, at(3))
            .map(|made| (made.attr.uid, made.attr.gid))
    };
    let mut member = user(6);
    member.gids.push(5);
    assert_eq!(make(&member, b"a", Some(6), Some(5)), Ok((6, 5)));
    assert_eq!(make(&member, b"b", Some(5), None), Err(FsError::NotOwner));
    assert_eq!(make(&member, b"b", None, Some(9)), Err(FsError::NotOwner));
    assert_eq!(make(&Credentials::root(), b"b", Some(1), Some(2)), Ok((1, 2)));
}

#[test]
fn lists_decide_instead_of_modes_and_cost_space() {
    let fs = new_fs();
    let dir = folder(&fs, b"d", 5, 0o755);
    let used = || fs.stat().total_bytes - fs.stat().free_bytes;
    let before = used();
    let passed_on = |flags| Ace { deny: false, flags, mask: 0x27, who: Who::User(6) };
    let acl = Acl { flags: 0, aces: [passed_on(0), passed_on(ACE_FILE_INHERIT | ACE_INHERIT_ONLY)].into() };
    let set = SetAttr { acl: Some(acl.into()), ..SetAttr::default() };
    assert_eq!(fs.set_attr(&user(6), dir, &set, None, false, at(3)).err(), Some(FsError::NotOwner));
    fs.set_attr(&user(5), dir, &set, None, false, at(3)).unwrap();
    assert_eq!(fs.attr(dir).unwrap().mode, 0, "only user 6 has rights");
    assert!(used() > before);
    let make = |who: &Credentials, name: &[u8], set: &SetAttr| {
        fs.create(who, dir, name, NewFile::Regular, set, None, at(4)).map(|created| created.attr)
    };
    assert_eq!(make(&user(5), b"x", &mode(0o644)).err(), Some(FsError::Access));
    let made = make(&user(6), b"x", &SetAttr { umask: 0o077, ..mode(0o664) }).unwrap();
    // The list is inherited, so that the umask does not count (RFC 8275 §4.2).
    assert_eq!(made.mode, 0o664);
    assert!(made.acl.is_some());
    fs.remove(&user(6), dir, b"x", RemoveKind::File, at(5)).unwrap();
    let plain = SetAttr { acl: Some(Acl::of_mode(0o755, true).into()), ..SetAttr::default() };
    let after = fs.set_attr(&user(5), dir, &plain, None, false, at(6)).unwrap().after;
    assert_eq!((after.mode, after.acl, used()), (0o755, None, before));
    assert_eq!(make(&user(5), b"y", &SetAttr { umask: 0o027, ..mode(0o664) }).unwrap().mode, 0o640);
}
