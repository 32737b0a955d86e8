//! Changes that are found again after a crash, logs that were cut anywhere, and damaged ones.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::config::{ExportConfig, ServerConfig};
use crate::cred::Credentials;
use crate::exports::Exports;
use crate::fs::{Ace, Acl, FileSystem, NewFile, Node, RemoveKind, SetAttr, SetTime, Time, Who, XattrSet};
use crate::snapshot::{SnapshotError, load};

fn at(seconds: i64) -> Time {
    Time { seconds, nanos: 5 }
}

/// Exports with a log, in a directory of their own.
struct World {
    place: TempDir,
    config: ServerConfig,
    exports: Exports,
    wal: Arc<Wal>,
}

impl World {
    fn new() -> Self {
        let export = |path: &str| ExportConfig { path: path.into(), ..ExportConfig::default() };
        let exports = vec![export("/a"), export("/b")];
        let config = ServerConfig { exports, memory: 1 << 30, ..ServerConfig::default() };
        let place = tempfile::tempdir().unwrap();
        let exports = Exports::new(&config, at(1)).unwrap();
        Self::with(place, config, exports, 1)
    }

    fn with(place: TempDir, config: ServerConfig, mut exports: Exports, number: u64) -> Self {
        let state = place.path().join("state");
        let meta = Meta { instance: 7, number, clients: Vec::new() };
        let save = || Ok::<_, ServerError>(snapshot::save(&state, &exports, &meta)?);
        let wal = Wal::start(&state, Durability::Process, (number, 99), &[], save).unwrap();
        let wal = Arc::new(wal);
        exports.log_to(&wal);
        Self { place, config, exports, wal }
    }

    fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    fn log(&self) -> PathBuf {
        path(&self.state(), self.wal.number())
    }

    fn load(&self) -> Result<(Exports, u64), SnapshotError> {
        let loaded = load(&self.state(), &self.config, at(50))?.unwrap();
        Ok((loaded.exports, loaded.cut.unwrap()))
    }

    /// The files after a crash now.
    fn crashed(&self) -> Vec<String> {
        let (exports, cut) = self.load().unwrap();
        assert_eq!(cut, 0);
        all(&exports)
    }

    fn fs(&self) -> &FileSystem {
        &self.exports.get(1).unwrap().fs
    }
}

/// All files of all exports: what clients see and what must not change.
fn all(exports: &Exports) -> Vec<String> {
    let mut out = Vec::new();
    for export in exports.list() {
        tree(&export.fs, export.fs.root(), &export.path, &mut out);
    }
    out
}

fn tree(fs: &FileSystem, node: Node, path: &str, out: &mut Vec<String>) {
    let mut attr = fs.attr(node).unwrap();
    // More after a crash, on purpose; and pages may be longer or shorter.
    (attr.change, attr.used) = (attr.change % (1 << 32), 0);
    // Not promised.
    attr.atime = at(0);
    let mut line = format!("{path} {attr:?} {:?} {:?}", fs.parent(node).ok(), fs.verifier(node).unwrap());
    let _ = fs.list_xattrs(node, 0, &mut |cookie, name| {
        line += &format!(" {cookie} {name:?}");
        fs.xattr(node, name, &mut |value| line += &format!("={value:?}")).unwrap();
        true
    });
    let _ = fs.read_link(node, at(0), &mut |target| line += &format!(" -> {target:?}"));
    let mut pages = Vec::new();
    if fs.read(node, 0, 1 << 21, &mut pages, at(0)).is_ok() {
        let bytes: Vec<u8> = pages.iter().flat_map(|page| page.as_slice().iter().copied()).collect();
        line += &format!(" {} {:08x}", bytes.len(), crc32fast::hash(&bytes));
    }
    out.push(line);
    let mut entries = Vec::new();
    let _ = fs.read_dir(&Credentials::root(), node, 0, false, at(0), &mut |entry| {
        entries.push((entry.cookie, String::from_utf8_lossy(entry.name).into_owned(), entry.node));
        true
    });
    for (cookie, name, child) in entries {
        tree(fs, child, &format!("{path}/{name}@{cookie}"), out);
    }
}

fn name(number: u8) -> Vec<u8> {
    vec![b'a' + number % 6; 1 + usize::from(number % 2) * 40]
}

/// Does something to a file system; what it says of it does not matter.
fn step(fs: &FileSystem, (what, one, two, size): (u8, u8, u8, u32), now: Time) {
    let root = Credentials::root();
    let dir = |number: u8| {
        let found = fs.lookup(&root, fs.root(), &name(number)).ok();
        found.filter(|(_, attr)| attr.kind == crate::fs::Kind::Directory).map_or(fs.root(), |it| it.0)
    };
    let (here, there) = (dir(one / 6), dir(two / 6));
    let file = fs.lookup(&root, here, &name(one)).map(|found| found.0);
    let other = fs.lookup(&root, there, &name(two)).map(|found| found.0);
    let new = |new| {
        let mode = SetAttr { mode: Some(0o640), ..SetAttr::default() };
        let verifier = size.is_multiple_of(3).then_some(u64::from(size));
        let _ = fs.create(&root, here, &name(one), new, &mode, verifier, now);
    };
    let (offset, len) = (u64::from(size % 200_000), u64::from(size / 7 % 150_000) + 1);
    match (what, file, other) {
        (0 | 1, ..) => new(NewFile::Regular),
        (2, ..) => new(NewFile::Directory),
        (3, ..) => new(NewFile::Symlink(b"target")),
        (4, ..) => new(NewFile::Special(crate::fs::Kind::Fifo, (0, 0))),
        (5, ..) => drop(fs.remove(&root, here, &name(one), RemoveKind::Any, now)),
        (6 | 7, ..) => drop(fs.rename(&root, here, &name(one), there, &name(two), now)),
        (8, Ok(file), _) => drop(fs.link(&root, file, there, &name(two), now)),
        (9..=12, Ok(file), _) => {
            let data: Vec<u8> = (0..len).map(|at| (at as u8).wrapping_mul(what) ^ one).collect();
            if fs.write(&root, file, offset, &data, now).is_ok() && what > 10 {
                fs.settle(file, offset..offset + len).unwrap();
            }
        }
        (13, Ok(file), _) => {
            let set = SetAttr { size: Some(offset), uid: Some(3), ..SetAttr::default() };
            let _ = fs.set_attr(&root, file, &set, None, false, now);
        }
        (14, Ok(file), _) => {
            let set = SetAttr { mtime: Some(SetTime::To(at(-7))), mode: Some(0o4711), ..SetAttr::default() };
            let _ = fs.set_attr(&root, file, &set, None, false, now);
        }
        (22, Ok(file), _) => {
            let flags = u32::from(one % 4) | if two % 2 == 0 { 8 } else { 0 };
            let who = if two % 3 == 0 { Who::Members(7) } else { Who::User(u32::from(two)) };
            let ace = Ace { deny: one % 2 == 0, flags, mask: size & 0x7f, who };
            let acl = Some(Acl { flags: u32::from(one % 8), aces: [ace].into() }.into());
            let _ = fs.set_attr(&root, file, &SetAttr { acl, ..SetAttr::default() }, None, false, now);
        }
        (15, Ok(file), _) => drop(fs.allocate(&root, file, offset, len, now)),
        (16, Ok(file), _) => drop(fs.deallocate(&root, file, offset, len, now)),
        (17, Ok(file), Ok(other)) => drop(fs.copy_range(&root, file, 0, other, offset & !0xffff, len, now)),
        (18, Ok(file), _) => drop(fs.set_xattr(file, &name(two), &[one; 30], XattrSet::Either, now)),
        (19, Ok(file), _) => drop(fs.remove_xattr(file, &name(two), now)),
        (20, Ok(file), _) => drop(fs.commit(file, now)),
        (21, Ok(file), _) => drop(fs.set_delegated_times(file, None, Some(at(30)), true, now)),
        _ => {}
    }
}

/// Makes everything stable.
fn commit_all(fs: &FileSystem, dir: Node) {
    let mut entries = Vec::new();
    let _ = fs.read_dir(&Credentials::root(), dir, 0, false, at(0), &mut |entry| {
        entries.push(entry.node);
        true
    });
    for node in entries {
        let _ = fs.commit(node, at(0));
        commit_all(fs, node);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    /// After any changes, and a commit, a crash loses nothing; nor does one after more of them, or after the state file was
    /// written in between.
    #[test]
    fn what_is_stable_is_found_after_a_crash(
        steps in prop::collection::vec((0..23u8, 0..36u8, 0..36u8, any::<u32>()), 1..120),
        renew in any::<bool>(),
    ) {
        let mut world = World::new();
        for (number, chunk) in steps.chunks(40).enumerate() {
            for (second, change) in (2..).zip(chunk) {
                step(world.fs(), *change, at(second));
            }
            if renew && number == 0 {
                let (state, exports) = (world.state(), &world.exports);
                let save = |number, clients| {
                    let meta = Meta { instance: 7, number, clients };
                    Ok::<_, ServerError>(snapshot::save(&state, exports, &meta)?)
                };
                world.wal.renew(5, save).unwrap();
            }
            commit_all(world.fs(), world.fs().root());
            prop_assert!(world.wal.flush());
            let expected = all(&world.exports);
            prop_assert_eq!(&world.crashed(), &expected);
            // The next one starts from there.
            let (exports, _) = world.load().unwrap();
            prop_assert_eq!(exports.get(1).unwrap().fs.stat().used_files, world.fs().stat().used_files);
            let number = world.wal.number() + 1;
            world = World::with(world.place, world.config, exports, number);
        }
    }
}

#[test]
fn data_that_are_not_stable_are_lost_and_caches_notice() {
    let world = World::new();
    let (fs, root) = (world.fs(), Credentials::root());
    let made = fs.create(&root, fs.root(), b"f", NewFile::Regular, &SetAttr::default(), None, at(2)).unwrap();
    let file = made.attr.node;
    fs.write(&root, file, 0, &[1; 100], at(3)).unwrap();
    fs.settle(file, 0..100).unwrap();
    fs.write(&root, file, 50, &[2; 100], at(4)).unwrap();
    let seen = fs.attr(file).unwrap().change;
    assert!(world.wal.flush());
    let (exports, _) = world.load().unwrap();
    let mut pages = Vec::new();
    let fs = &exports.get(1).unwrap().fs;
    let info = fs.read(file, 0, 1000, &mut pages, at(5)).unwrap();
    assert!(info.len == 100 && pages.iter().all(|page| page.as_slice().iter().all(|byte| *byte == 1)));
    assert!(info.attr.change > seen + 1000);
}

#[test]
fn names_of_clients_come_and_go() {
    let world = World::new();
    world.wal.note_clients(1, || vec![b"one".to_vec(), b"two".to_vec()]);
    world.wal.note_clients(1, || unreachable!());
    world.wal.note_clients(2, || vec![b"three".to_vec(), b"two".to_vec()]);
    assert!(world.wal.flush());
    let meta = load(&world.state(), &world.config, at(50)).unwrap().unwrap().meta;
    assert_eq!(meta.clients, [b"three".to_vec(), b"two".to_vec()]);
}

/// A log of some frames, one per name, and where each begins.
fn names() -> (World, Vec<usize>, Vec<u8>) {
    let world = World::new();
    let mut ends = vec![HEADER as usize];
    for name in [&b"one"[..], b"two", b"three"] {
        let fs = world.fs();
        let root = Credentials::root();
        fs.create(&root, fs.root(), name, NewFile::Regular, &SetAttr::default(), None, at(2)).unwrap();
        assert!(world.wal.flush());
        ends.push(world.wal.current.lock().at as usize);
    }
    let mut bytes = std::fs::read(world.log()).unwrap();
    assert!(bytes.len() as u64 > STEP, "space is taken in advance");
    bytes.truncate(*ends.last().unwrap());
    (world, ends, bytes)
}

fn count(exports: &Exports) -> u64 {
    exports.get(1).unwrap().fs.stat().used_files - 1
}

#[test]
fn a_log_that_ends_anywhere_has_all_that_was_written_before() {
    let (world, ends, bytes) = names();
    for len in 0..=bytes.len() {
        std::fs::write(world.log(), &bytes[..len]).unwrap();
        let (exports, cut) = world.load().unwrap();
        let whole = ends.iter().filter(|end| **end <= len).count().saturating_sub(1);
        assert_eq!(count(&exports), whole as u64, "{len} of {ends:?}");
        let last = ends.iter().rfind(|end| **end <= len).copied().unwrap_or(0);
        // Zeros at its end look like space that was taken in advance.
        assert!(
            cut <= (len - last) as u64 && (cut == 0) == bytes[last..len].iter().all(|byte| *byte == 0),
            "{len} {cut}"
        );
    }
}

#[test]
fn damage_in_the_middle_is_named_and_damage_at_the_end_is_cut_off() {
    let (world, ends, bytes) = names();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        std::fs::write(world.log(), &damaged).unwrap();
        let frame = ends.iter().rposition(|end| *end <= at);
        match (world.load(), frame) {
            (Err(SnapshotError::Log(LogError::Foreign { path })), None) => assert_eq!(path, world.log()),
            (Err(SnapshotError::Log(LogError::Damaged { path, offset, .. })), Some(frame)) => {
                assert!(frame < 2, "byte {at}");
                assert_eq!((path, offset as usize), (world.log(), ends[frame]));
            }
            (Ok((exports, cut)), Some(2)) => assert_eq!((count(&exports), cut > 0), (2, true), "byte {at}"),
            (found, _) => panic!("byte {at}: {:?}", found.map(|(_, cut)| cut)),
        }
    }
}

#[test]
fn a_log_of_another_state_file_is_not_followed() {
    let (world, _, bytes) = names();
    let next = path(&world.state(), 2);
    std::fs::write(&next, &bytes).unwrap();
    let meta = Meta { instance: 7, number: 2, clients: Vec::new() };
    snapshot::save(&world.state(), &world.exports, &meta).unwrap();
    assert!(matches!(world.load(), Err(SnapshotError::Log(LogError::Foreign { .. }))));
    remove_others(&world.state(), None).unwrap();
    assert!(!next.exists() && world.state().exists());
}

#[test]
fn a_log_whose_state_file_is_gone_is_not_taken_for_a_leftover() {
    let (world, ..) = names();
    let log = path(&world.state(), 1);
    assert!(has_changes(&log));
    std::fs::remove_file(world.state()).unwrap();
    assert!(matches!(world.load(), Err(SnapshotError::Log(LogError::Orphan { path })) if path == log));
    // Of a first start that was interrupted: nothing was acknowledged.
    std::fs::write(&log, frame::header(1, 1)).unwrap();
    assert!(!has_changes(&log));
}

#[test]
fn without_room_nothing_changes_and_with_room_again_it_goes_on() {
    let world = World::new();
    let (fs, root) = (world.fs(), Credentials::root());
    let create = |name: &[u8]| {
        fs.create(&root, fs.root(), name, NewFile::Regular, &SetAttr::default(), None, at(2))
            .map(|made| made.attr.node)
    };
    let file = create(b"one").unwrap();
    fs.write(&root, file, 0, &[1; 50_000], at(3)).unwrap();
    // A file opened for reading cannot be extended.
    let unwritable = File::open(world.log()).unwrap();
    let writable = {
        let mut space = world.wal.space.lock();
        space.allocated = space.needed;
        std::mem::replace(&mut space.file, unwritable)
    };
    assert_eq!(create(b"two").unwrap_err(), FsError::NoSpace);
    assert_eq!(fs.commit(file, at(4)), Err(FsError::NoSpace));
    assert_eq!(fs.remove(&root, fs.root(), b"one", RemoveKind::Any, at(4)).unwrap_err(), FsError::NoSpace);
    assert!(world.wal.space.lock().full);
    world.wal.space.lock().file = writable;
    fs.commit(file, at(4)).unwrap();
    create(b"two").unwrap();
    assert!(world.wal.flush());
    assert_eq!(world.crashed(), all(&world.exports));
}

#[test]
fn a_log_that_cannot_be_written_acknowledges_nothing_more() {
    let world = World::new();
    let (fs, root) = (world.fs(), Credentials::root());
    let create = |name: &[u8]| {
        fs.create(&root, fs.root(), name, NewFile::Regular, &SetAttr::default(), None, at(2))
            .map(|made| made.attr.node)
    };
    create(b"one").unwrap();
    assert!(world.wal.flush());
    create(b"two").unwrap();
    world.wal.current.lock().file = File::open(world.log()).unwrap();
    assert!(!world.wal.flush());
    assert!(world.wal.flush(), "what comes next speaks of nothing that is not safe");
    world.wal.require_all();
    assert!(!world.wal.flush());
    assert_eq!(create(b"three").unwrap_err(), FsError::Io);
    let (exports, _) = world.load().unwrap();
    assert_eq!(count(&exports), 1);
}

#[test]
fn threads_share_writes_and_lose_nothing() {
    let world = World::new();
    let fs = world.fs();
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let wal = &world.wal;
            scope.spawn(move || {
                let root = Credentials::root();
                for number in 0..50 {
                    let name = format!("{thread} {number}").into_bytes();
                    fs.create(&root, fs.root(), &name, NewFile::Regular, &SetAttr::default(), None, at(2))
                        .unwrap();
                    assert!(wal.flush());
                }
            });
        }
    });
    assert_eq!(world.crashed(), all(&world.exports));
    // All room that was taken is used or given back.
    let (needed, written) = (world.wal.space.lock().needed, world.wal.current.lock().at);
    assert_eq!(needed, written);
}
