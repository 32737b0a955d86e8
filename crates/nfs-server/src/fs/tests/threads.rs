//! Many threads on few directories.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::model::remove_below;
use super::*;

/// Errors that a race may bring; others are faults.
fn may_fail(error: FsError) {
    assert!(
        matches!(
            error,
            FsError::NotFound
                | FsError::Exists
                | FsError::Stale
                | FsError::NotEmpty
                | FsError::IsDirectory
                | FsError::NotDirectory
                | FsError::Invalid
                | FsError::IsSymlink
        ),
        "{error}"
    );
}

/// A handle of a file that is gone beside one of the file that has its number now: both would lock one slot.
#[test]
fn two_generations_of_a_number_are_not_locked_together() {
    let fs = new_fs();
    let root = Credentials::root();
    let make =
        |kind| fs.create(&root, fs.root(), b"x", kind, &SetAttr::default(), None, at(1)).unwrap().attr.node;
    let gone = make(NewFile::Directory);
    fs.remove(&root, fs.root(), b"x", RemoveKind::Any, at(2)).unwrap();
    let here = make(NewFile::Directory);
    assert_eq!((gone.ino, gone != here), (here.ino, true));
    assert_eq!(fs.rename(&root, gone, b"a", here, b"b", at(3)).err(), Some(FsError::Stale));
    assert_eq!(fs.rename(&root, here, b"a", gone, b"b", at(3)).err(), Some(FsError::Stale));
    assert_eq!(fs.link(&root, gone, here, b"a", at(3)).err(), Some(FsError::Stale));
    let copied = fs.copy_range(&root, gone, 0, here, 0, 1, at(3));
    assert_eq!(copied.err(), Some(FsError::Stale));
}

#[test]
fn threads_neither_block_each_other_for_ever_nor_break_counts() {
    let fs = new_fs();
    let root = Credentials::root();
    let make = |dir, name: &[u8]| {
        fs.create(&root, dir, name, NewFile::Directory, &SetAttr::default(), None, at(1)).unwrap().attr.node
    };
    let mut dirs = vec![fs.root()];
    for name in [b"p", b"q", b"r"] {
        let dir = make(dirs[0], name);
        dirs.push(dir);
        dirs.push(make(dir, b"s"));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|seed| {
                scope.spawn({
                    let (fs, dirs) = (&fs, &dirs);
                    move || work(fs, dirs, seed)
                })
            })
            .collect();
        let watch = scope.spawn(|| {
            // A deadlock would keep the test from ending at all: say so instead.
            for _ in 0..600 {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            eprintln!("threads hang");
            std::process::abort();
        });
        for worker in workers {
            worker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        watch.join().unwrap();
    });
    count_links(&fs, fs.root());
    remove_below(&fs, fs.root());
    let stat = fs.stat();
    assert_eq!((stat.used_files, stat.free_bytes), (1, stat.total_bytes));
    assert_eq!(fs.attr(fs.root()).unwrap().nlink, 2);
}

fn work(fs: &FileSystem, dirs: &[Node], seed: u64) {
    let root = Credentials::root();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut pages = Vec::new();
    for step in 0..20_000 {
        let mut pick = |most: usize| random.next_u32() as usize % most;
        let (dir, other) = (dirs[pick(dirs.len())], dirs[pick(dirs.len())]);
        let names: [&[u8]; 6] = [b"p", b"q", b"r", b"s", b"t", b"u"];
        let (name, new_name) = (names[pick(6)], names[pick(6)]);
        let now = at(step);
        let set = SetAttr::default();
        let failed = match pick(10) {
            0 => fs.create(&root, dir, name, NewFile::Regular, &set, None, now).err(),
            1 => fs.create(&root, dir, name, NewFile::Directory, &set, None, now).err(),
            2 | 3 => fs.remove(&root, dir, name, RemoveKind::Any, now).err(),
            4 | 5 => fs.rename(&root, dir, name, other, new_name, now).err(),
            6 => fs
                .lookup(&root, dir, name)
                .and_then(|(file, _)| fs.link(&root, file, other, new_name, now))
                .err(),
            7 => fs.read_dir(&root, dir, 0, true, now, &mut |_| true).err(),
            8 => fs
                .lookup(&root, dir, name)
                .and_then(|(file, _)| {
                    fs.hold(file)?;
                    let wrote = fs.write(&root, file, step as u64 % 9000, b"some data", now);
                    let read = fs.read(file, 0, 1 << 16, &mut pages, now);
                    fs.release(file);
                    wrote.and(read)
                })
                .err(),
            _ => fs
                .lookup(&root, dir, name)
                .and_then(|(file, _)| {
                    let (target, _) = fs.lookup(&root, other, new_name)?;
                    fs.copy_range(&root, file, 0, target, 8192, 4096, now)
                })
                .err(),
        };
        failed.into_iter().for_each(may_fail);
    }
}

fn count_links(fs: &FileSystem, dir: Node) {
    let below = model::listing(fs, dir);
    let dirs: Vec<Node> =
        below.into_values().filter(|node| fs.attr(*node).unwrap().kind == Kind::Directory).collect();
    assert_eq!(fs.attr(dir).unwrap().nlink as usize, 2 + dirs.len());
    for child in dirs {
        assert_eq!(fs.parent(child), Ok(dir));
        count_links(fs, child);
    }
}
