use super::*;
use crate::model::Size;
use benchmaster_units::ByteSize;

fn table(files: u64, prefill: f64, size: u64, block: Option<usize>) -> FileTable {
    let size = Size::Fixed(ByteSize(size));
    let fileset = Fileset { files, size, directory_width: 10, prefill, ..Fileset::default() };
    FileTable::new("data", &fileset, Some(3), 1, block)
}

#[test]
fn names_show_fileset_client_directory_and_number() {
    let table = table(25, 1.0, 1, None);
    let mut path = PathBuffer::new();
    table.file_path(Picked { file: 21, renamed: false }, &mut path);
    assert_eq!(path.as_c_str().to_str(), Ok("data/c3/d000002/f00000021"));
    table.file_path(Picked { file: 0, renamed: true }, &mut path);
    assert_eq!(path.text(), "data/c3/d000000/f00000000.renamed");
    assert_eq!(table.directories(), 3);
}

#[test]
fn new_files_are_claimed_once_by_any_number_of_threads() {
    let table = table(1000, 0.0, 0, None);
    let claimed: Vec<u64> = std::thread::scope(|scope| {
        let claim = || {
            let cursor = Cursor::default();
            std::iter::from_fn(|| table.claim_new(Part::WHOLE, &cursor)).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(claim)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut sorted = claimed.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!((claimed.len(), sorted.len()), (1000, 1000));
}

#[test]
fn every_existing_file_is_equally_likely() {
    let table = table(20, 0.5, 0, None);
    let mut random = Random::new(1, 0);
    let mut counts = [0u32; 20];
    for _ in 0..10_000 {
        let Choice::File(picked) = table.random(&mut random, Part::WHOLE, Purpose::Use) else {
            panic!("files exist")
        };
        table.release(picked.file);
        counts[picked.file as usize] += 1;
    }
    // Binomial with mean 1000 and standard deviation 30.
    assert!(counts[..10].iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    assert_eq!(counts[10..], [0; 10]);
}

#[test]
fn claimed_files_are_picked_by_nobody_and_used_ones_are_claimed_last() {
    let table = table(3, 1.0, 0, None);
    let mut random = Random::new(1, 0);
    let claimed = table.take(0, Purpose::Claim).unwrap();
    assert_eq!(table.take(0, Purpose::Use), None);
    table.hold(1);
    assert_eq!(table.take(1, Purpose::Claim), None);
    for _ in 0..20 {
        let Choice::File(picked) = table.random(&mut random, Part::WHOLE, Purpose::Claim) else {
            panic!("file 2 is free")
        };
        assert_eq!(picked.file, 2);
        table.set_present(picked);
    }
    let two = table.take(2, Purpose::Claim).unwrap();
    assert_eq!(
        table.random(&mut random, Part::WHOLE, Purpose::Claim),
        Choice::File(Picked { file: 1, renamed: false })
    );
    assert_eq!(table.random(&mut random, Part::WHOLE, Purpose::Use), Choice::Busy, "all are claimed");
    (0..3).for_each(|file| table.set_absent(file));
    assert_eq!(table.random(&mut random, Part::WHOLE, Purpose::Use), Choice::Nothing);
    table.release(1);
    table.set_present(Picked { renamed: true, ..two });
    assert_eq!(table.take(2, Purpose::Use), Some(Picked { file: 2, renamed: true }));
    assert_eq!(claimed, Picked { file: 0, renamed: false });
}

#[test]
fn each_number_is_had_once() {
    let (table, cursor) = (table(6, 0.5, 0, None), Cursor::default());
    let had: Vec<u64> = std::iter::from_fn(|| table.once(Part::WHOLE, &cursor, Purpose::Use))
        .map(|picked| picked.file)
        .collect();
    assert_eq!(had, [0, 1, 2]);
    let cursor = Cursor::default();
    assert_eq!(std::iter::from_fn(|| table.once_number(Part::WHOLE, &cursor)).count(), 6);
}

#[test]
fn workers_find_files_of_their_own_parts_whatever_others_do() {
    let table = table(10, 0.5, 0, None);
    let part = |index| Part { index, of: 4 };
    let new = |index| {
        let cursor = Cursor::default();
        std::iter::from_fn(|| table.claim_new(part(index), &cursor)).collect::<Vec<_>>()
    };
    assert_eq!([new(3), new(0), new(1), new(2)], [vec![7], vec![8], vec![5, 9], vec![6]]);
    let once = |index| {
        let cursor = Cursor::default();
        std::iter::from_fn(|| table.once_number(part(index), &cursor)).collect::<Vec<_>>()
    };
    assert_eq!([once(1), once(2)], [vec![1, 5, 9], vec![2, 6]]);
    table.keep_apart(true);
    let mut random = Random::new(1, 0);
    let mut drawn = |index, of| {
        let mut files: Vec<u64> = (0..50)
            .filter_map(|_| match table.random(&mut random, Part { index, of }, Purpose::Use) {
                Choice::File(picked) => Some(picked.file),
                _ => None,
            })
            .collect();
        files.sort_unstable();
        files.dedup();
        files
    };
    assert_eq!([drawn(0, 4), drawn(1, 4), drawn(2, 4)], [vec![0, 4], vec![1], vec![2]]);
    assert_eq!(drawn(13, 16), [3], "with fewer files than workers some share theirs");
}

#[test]
fn a_table_made_anew_has_the_same_files_as_in_the_beginning() {
    let fileset = Fileset { files: 4, size: Size::Fixed(ByteSize(7)), prefill: 0.5, ..Fileset::default() };
    let table = FileTable::new("data", &fileset, None, 9, Some(4096));
    table.set_absent(0);
    let anew = table.anew(&fileset);
    assert_eq!((anew.existing(), anew.tracked_block()), ((2, 14), None));
    assert_eq!(anew.file_id(3), table.file_id(3));
}

#[test]
fn a_lost_write_is_found_by_its_generation() {
    let table = table(2, 1.0, 10_000, Some(4096));
    let (mut data, mut scratch, mut seen) = (vec![0; 8192], [0; BLOCK], Vec::new());
    let claim = table.begin_write(1, 0, &mut data, 4096).unwrap();
    assert!(table.begin_write(1, 4096, &mut [0; 4096], 4096).is_none(), "another write of the block is on");
    claim.end(true);
    table.see(1, 0, 8192, 4096, &mut seen);
    assert_eq!(table.prove(1, 0, &data, 4096, &seen, &mut scratch), Ok(8192));
    content::fill(&mut data[..4096], Stamp { file: table.file_id(1), offset: 0, generation: 0 });
    let error = table.prove(1, 0, &data, 4096, &seen, &mut scratch).unwrap_err();
    assert_eq!(error, "offset 0: the block holds generation 0 where 1 was written last");
    assert_eq!(table.missing(0, 4096, 4096, &seen), Some(4096));
    assert_eq!(table.missing(0, 5000, 4096, &seen), Some(5000));
    assert_eq!(table.missing(0, 8192, 4096, &seen), None);
    drop(table.begin_write(1, 4096, &mut data[4096..], 4096));
    table.see(1, 0, 8192, 4096, &mut seen);
    data[5000] ^= 1;
    assert!(table.prove(1, 4096, &data[4096..], 4096, &seen[1..], &mut scratch) == Ok(0), "never ended");
}
