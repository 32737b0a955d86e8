//! Space, limits, holes, and data that readers still refer to.

use super::model::read_all;
use super::*;

fn limited(limit: u64) -> FileSystem {
    FileSystem::new(FsConfig { limit: Some(limit), ..FsConfig::default() }, 0o755, at(1))
}

#[test]
fn offsets_reach_to_the_end_and_not_beyond() {
    let (fs, root) = (new_fs(), Credentials::root());
    let one = file(&fs, b"file");
    let last = i64::MAX as u64 - 1;
    assert_eq!(fs.write(&root, one, last, b"x", at(3)).unwrap().after.size, i64::MAX as u64);
    assert_eq!(fs.write(&root, one, last, b"xy", at(3)).err(), Some(FsError::TooLarge));
    assert_eq!(fs.write(&root, one, u64::MAX, b"x", at(3)).err(), Some(FsError::TooLarge));
    let resize = |size| {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        fs.set_attr(&root, one, &set, None, false, at(4)).err()
    };
    assert_eq!(resize(i64::MAX as u64 + 1), Some(FsError::TooLarge));
    let mut out = Vec::new();
    for (offset, len, eof) in
        [(last, 1, true), (last - 10, 11, true), (u64::MAX, 0, true), (0, 65_536, false)]
    {
        let info = fs.read(one, offset, 65_536, &mut out, at(5)).unwrap();
        assert_eq!((info.len, info.eof), (len, eof), "{offset}");
    }
    assert_eq!(fs.seek(one, 5, SeekKind::Data), Ok(Some(last / 65_536 * 65_536)));
    assert_eq!(fs.seek(one, last, SeekKind::Hole), Ok(Some(i64::MAX as u64)));
    assert!(fs.attr(one).unwrap().used <= 65_536);
    assert_eq!(fs.deallocate(&root, one, 0, i64::MAX as u64, at(6)).unwrap().after.used, 0);
    assert_eq!(fs.deallocate(&root, one, 1, u64::MAX, at(6)).err(), Some(FsError::TooLarge));
    assert_eq!(fs.allocate(&root, one, 0, i64::MAX as u64, at(6)).err(), Some(FsError::NoSpace));
    assert_eq!(resize(0), None);
}

#[test]
fn a_full_file_system_takes_exactly_what_fits() {
    let (fs, root) = (limited(100_000 / 4096 * 4096), Credentials::root());
    let one = file(&fs, b"one");
    let fits = fs.stat().free_bytes;
    assert_eq!(fs.write(&root, one, 0, &vec![1; fits as usize + 1], at(3)).err(), Some(FsError::NoSpace));
    assert_eq!((fs.attr(one).unwrap().size, fs.stat().free_bytes), (0, fits));
    for at_byte in (0..fits).step_by(1000) {
        let len = 1000.min(fits - at_byte) as usize;
        fs.write(&root, one, at_byte, &vec![2; len], at(3)).unwrap();
    }
    assert_eq!(fs.stat().free_bytes, 0);
    let two = file(&fs, b"two");
    assert_eq!(fs.write(&root, two, 0, b"x", at(4)).err(), Some(FsError::NoSpace));
    assert_eq!(fs.set_xattr(two, b"a", b"b", XattrSet::Either, at(4)).err(), Some(FsError::NoSpace));
    assert_eq!(fs.copy_range(&root, one, 0, two, 0, 0, at(4)).err(), Some(FsError::NoSpace));
    fs.write(&root, one, 0, b"over", at(4)).unwrap();
    fs.set_attr(&root, two, &SetAttr { size: Some(1 << 40), ..SetAttr::default() }, None, false, at(4))
        .unwrap();
    fs.set_attr(&root, one, &SetAttr { size: Some(10), ..SetAttr::default() }, None, false, at(4)).unwrap();
    assert_eq!(fs.stat().free_bytes, fits - 64);
    fs.remove(&root, fs.root(), b"one", RemoveKind::File, at(5)).unwrap();
    assert_eq!(fs.stat().free_bytes, fits);
}

#[test]
fn what_is_allocated_can_be_written_when_all_else_is_full() {
    let (fs, root) = (limited(10 * 65_536), Credentials::root());
    let (one, two) = (file(&fs, b"one"), file(&fs, b"two"));
    assert_eq!(fs.allocate(&root, one, 1000, 5 * 65_536, at(3)).unwrap().after.size, 1000 + 5 * 65_536);
    while fs.write(&root, two, fs.attr(two).unwrap().size, &[1; 4096], at(3)).is_ok() {}
    fs.write(&root, one, 1000, &vec![7; 5 * 65_536], at(4)).unwrap();
    assert!(read_all(&fs, one)[1000..].iter().all(|byte| *byte == 7));
    assert_eq!(fs.seek(one, 0, SeekKind::Data), Ok(Some(0)));
}

#[test]
fn readers_keep_what_they_read() {
    let (fs, root) = (new_fs(), Credentials::root());
    let one = file(&fs, b"file");
    fs.write(&root, one, 0, &vec![1; 200_000], at(3)).unwrap();
    let mut out = Vec::new();
    fs.read(one, 0, 200_000, &mut out, at(4)).unwrap();
    assert!(out.len() <= 4);
    fs.write(&root, one, 70_000, &[2; 10], at(5)).unwrap();
    fs.deallocate(&root, one, 131_000, 100, at(5)).unwrap();
    fs.remove(&root, fs.root(), b"file", RemoveKind::File, at(6)).unwrap();
    assert_eq!(out.iter().map(|slice| slice.as_slice().len()).sum::<usize>(), 200_000);
    assert!(out.iter().all(|slice| slice.as_slice().iter().all(|byte| *byte == 1)));
}

#[test]
fn a_megabyte_is_read_in_few_pieces_and_a_small_file_is_small() {
    let (fs, root) = (new_fs(), Credentials::root());
    let one = file(&fs, b"file");
    for number in 0..256 {
        fs.write(&root, one, number * 4096, &[3; 4096], at(3)).unwrap();
    }
    let mut out = Vec::new();
    fs.read(one, 0, 1 << 20, &mut out, at(4)).unwrap();
    assert_eq!((out.len(), fs.attr(one).unwrap().used), (16, 1 << 20));
    let two = file(&fs, b"two");
    assert_eq!(fs.write(&root, two, 0, b"0123456789", at(3)).unwrap().after.used, 64);
}

#[test]
fn clones_share_pages_until_written() {
    let (fs, root) = (new_fs(), Credentials::root());
    let (one, two) = (file(&fs, b"one"), file(&fs, b"two"));
    fs.write(&root, one, 0, &vec![4; 300_000], at(3)).unwrap();
    let (count, _) = fs.copy_range(&root, one, 0, two, 0, 0, at(4)).unwrap();
    assert_eq!(count, 300_000);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    fs.read(one, 0, 65_536, &mut first, at(5)).unwrap();
    fs.read(two, 0, 65_536, &mut second, at(5)).unwrap();
    assert_eq!(first[0].as_slice().as_ptr(), second[0].as_slice().as_ptr());
    drop((first, second));
    fs.write(&root, two, 10, b"other", at(6)).unwrap();
    assert!(read_all(&fs, one).iter().all(|byte| *byte == 4));
    assert_eq!(&read_all(&fs, two)[9..16], b"\x04other\x04");
}

#[test]
fn null_data_keeps_sizes_only() {
    let (fs, root) = (
        FileSystem::new(FsConfig { null_data: true, ..FsConfig::default() }, 0o755, at(1)),
        Credentials::root(),
    );
    let one = file(&fs, b"file");
    let changed = fs.write(&root, one, 1 << 40, b"nothing", at(3)).unwrap();
    assert_eq!((changed.after.size, changed.after.used, changed.after.mtime), ((1 << 40) + 7, 0, at(3)));
    let mut out = Vec::new();
    assert_eq!(fs.read(one, 1 << 40, 100, &mut out, at(4)).unwrap().len, 7);
    assert_eq!(out[0].as_slice(), [0; 7]);
    assert_eq!(fs.seek(one, 9, SeekKind::Data), Ok(Some(9)));
    assert_eq!(fs.stat().free_bytes, fs.stat().total_bytes);
}

#[test]
fn a_large_directory_is_listed_while_it_changes() {
    let (fs, root) = (new_fs(), Credentials::root());
    let count = 50_000u32;
    let name = |number: u32| format!("some name {number}");
    let all: Vec<Node> = (0..count).map(|number| file(&fs, name(number).as_bytes())).collect();
    let mut seen = std::collections::HashSet::new();
    let (mut cookie, mut step) = (0, 0);
    loop {
        let mut left = 100;
        let end = fs
            .read_dir(&root, fs.root(), cookie, false, at(3), &mut |entry| {
                left -= 1;
                cookie = entry.cookie;
                assert!(seen.insert(entry.node), "twice");
                left > 0
            })
            .unwrap();
        if end {
            break;
        }
        // Remove behind, at and before the reader; what is made now comes at the end.
        for number in [step * 50, step * 100 + 99, count - 1 - step * 10] {
            let _ = fs.remove(&root, fs.root(), name(number).as_bytes(), RemoveKind::Any, at(3));
        }
        step += 1;
    }
    for (number, node) in (0..).zip(&all) {
        let there = fs.lookup(&root, fs.root(), name(number).as_bytes()).is_ok();
        assert_eq!(there, fs.attr(*node).is_ok());
        assert!(!there || seen.contains(node), "{number} was there all the time");
    }
    assert_eq!(fs.lookup(&root, fs.root(), b"some name 50000").err(), Some(FsError::NotFound));
}

/// Space is reserved by the run, not by the page: neither time nor memory grows with it.
#[test]
fn reserving_a_huge_range_costs_nothing_per_page() {
    const TIB: u64 = 1 << 40;
    let (fs, root) = (new_fs(), Credentials::root());
    let (one, two) = (file(&fs, b"one"), file(&fs, b"two"));
    let begun = std::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(fs.allocate(&root, one, 0, TIB, at(3)).unwrap().after.size, TIB);
        assert_eq!(fs.attr(one).unwrap().used, TIB);
        assert_eq!(fs.seek(one, 5, SeekKind::Hole), Ok(Some(TIB)));
        assert_eq!(fs.seek(one, TIB / 2, SeekKind::Data), Ok(Some(TIB / 2)));
        assert_eq!(fs.write(&root, two, 0, b"x", at(4)).err(), Some(FsError::NoSpace), "all is promised");
        fs.write(&root, one, TIB / 2, b"in the middle", at(4)).unwrap();
        fs.write(&root, one, TIB - 1, b"x", at(4)).unwrap();
        fs.copy_range(&root, one, TIB / 2, two, 0, 5, at(4)).unwrap_err();
        assert_eq!(fs.attr(one).unwrap().used, TIB, "what is written takes the place of what was reserved");
        assert_eq!(fs.allocate(&root, one, 0, TIB, at(5)).unwrap().after.used, TIB);
        fs.deallocate(&root, one, 0, TIB / 4, at(5)).unwrap();
        assert_eq!((fs.attr(one).unwrap().used, fs.stat().free_bytes), (TIB / 4 * 3, TIB / 4));
        let cut = SetAttr { size: Some(TIB / 2 + 7), ..SetAttr::default() };
        fs.set_attr(&root, one, &cut, None, false, at(6)).unwrap();
        let mut out = Vec::new();
        let read = fs.read(one, TIB / 2 - 3, 100, &mut out, at(7)).unwrap();
        let bytes: Vec<u8> = out.iter().flat_map(|slice| slice.as_slice().to_vec()).collect();
        assert_eq!((read.len, &bytes[..]), (10, &b"\0\0\0in the "[..]));
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        fs.set_attr(&root, one, &cut, None, false, at(6)).unwrap();
        assert_eq!(fs.stat().free_bytes, TIB);
    }
    // By the page it takes seconds each time.
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

/// Files, names and links count, too: apart from the data, and as much as that may take.
#[test]
fn files_and_names_are_bounded_and_given_back() {
    const LIMIT: u64 = 16 << 20;
    let (fs, root) = (limited(LIMIT), Credentials::root());
    let make = |name: &str, new: NewFile<'_>| {
        fs.create(&root, fs.root(), name.as_bytes(), new, &SetAttr::default(), None, at(2))
    };
    let fill = |name: &str, kind: u8| {
        let (mut count, target) = (0u64, [b'x'; 4000]);
        loop {
            let name = format!("{name}{count}");
            let made = match kind {
                0 => make(&name, NewFile::Regular).map(drop),
                1 => make(&name, NewFile::Symlink(&target)).map(drop),
                2 => make(&name, NewFile::Directory).map(drop),
                _ => {
                    let (first, _) = fs.lookup(&root, fs.root(), b"first").unwrap();
                    fs.link(&root, first, fs.root(), name.as_bytes(), at(2)).map(drop)
                }
            };
            match made {
                Ok(()) => count += 1,
                Err(error) => {
                    assert_eq!(error, FsError::NoSpace);
                    break;
                }
            }
        }
        for n in 0..count {
            fs.remove(&root, fs.root(), format!("{name}{n}").as_bytes(), RemoveKind::Any, at(3)).unwrap();
        }
        count
    };
    make("first", NewFile::Regular).unwrap();
    let before = fs.stat();
    assert_eq!(before.free_bytes, LIMIT);
    let long = "n".repeat(240);
    assert!(fill("f", 0) <= LIMIT / 512 && fill(&long, 0) <= LIMIT / 800);
    assert!(fill("l", 1) <= LIMIT / 4096 && fill("d", 2) <= LIMIT / 512);
    assert!(fill(&long, 3) <= LIMIT / 300);
    // A name that is moved, or replaces another, leaves nothing behind.
    for n in 0..50_000 {
        let (from, to) = if n % 2 == 0 {
            (b"first".as_slice(), long.as_bytes())
        } else {
            (long.as_bytes(), b"first".as_slice())
        };
        fs.rename(&root, fs.root(), from, fs.root(), to, at(4)).unwrap();
        if n % 1000 == 0 {
            make("first", NewFile::Regular).unwrap();
        }
        if n % 1000 == 1 {
            fs.lookup(&root, fs.root(), b"first").unwrap();
        }
    }
    assert_eq!(fs.stat(), before);
}

fn volatile() -> (FileSystem, Node) {
    let fs = FileSystem::new(FsConfig { volatile: true, ..FsConfig::default() }, 0o755, at(1));
    let one = file(&fs, b"file");
    (fs, one)
}

#[test]
fn what_is_not_stable_is_lost_with_the_power_or_not() {
    let root = Credentials::root();
    for (kept, expected) in [(true, [vec![2; 1024], vec![3; 512]].concat()), (false, vec![1; 1000])] {
        let (fs, one) = volatile();
        fs.write(&root, one, 0, &[1; 1000], at(3)).unwrap();
        fs.commit(one, at(3)).unwrap();
        fs.write(&root, one, 0, &[2; 1024], at(4)).unwrap();
        fs.write(&root, one, 1024, &[3; 512], at(5)).unwrap();
        let before = fs.attr(one).unwrap().change;
        let lost = fs.lose_power(at(6), &mut || u64::from(!kept));
        assert_eq!((read_all(&fs, one), lost), (expected, if kept { 0 } else { 3 }));
        assert!(fs.attr(one).unwrap().change > before, "caches must notice");
        assert_eq!(fs.lose_power(at(7), &mut || 1), 0, "the disk has it now");
    }
}

#[test]
fn a_stable_write_and_a_new_size_survive_among_data_that_does_not() {
    let (fs, one) = volatile();
    let root = Credentials::root();
    fs.write(&root, one, 0, &[1; 512], at(3)).unwrap();
    fs.write(&root, one, 100, &[2; 50], at(4)).unwrap();
    fs.settle(one, 100..150).unwrap();
    assert_eq!(fs.lose_power(at(5), &mut || 1), 1);
    assert_eq!(read_all(&fs, one), [vec![0; 100], vec![2; 50]].concat());

    fs.write(&root, one, 0, &[3; 2000], at(6)).unwrap();
    let set = SetAttr { size: Some(120), ..SetAttr::default() };
    fs.set_attr(&root, one, &set, None, false, at(7)).unwrap();
    assert_eq!(fs.lose_power(at(8), &mut || 1), 1);
    assert_eq!(read_all(&fs, one), [vec![0; 100], vec![2; 20]].concat());
}

#[test]
fn without_volatile_data_nothing_is_lost() {
    let fs = new_fs();
    let one = file(&fs, b"file");
    fs.write(&Credentials::root(), one, 0, &[1; 512], at(3)).unwrap();
    assert_eq!(fs.lose_power(at(5), &mut || 1), 0);
    assert_eq!(read_all(&fs, one), vec![1; 512]);
}
