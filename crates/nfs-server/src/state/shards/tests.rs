use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::*;
use crate::state::open::Share;
use crate::state::session::Sessions;
use crate::state::{ClientId, Effects};

const THREADS: usize = 4;
const EACH: u64 = 2000;

fn file(ino: u64) -> FileId {
    FileId { export: 1, ino, generation: 1 }
}

fn shards() -> Shards {
    let config = ServerConfig { threads: THREADS, ..ServerConfig::default() };
    let clients = Clients::new(&config, 7, Arc::new(Sessions::new(7, None)), Instant::now(), Vec::new());
    Shards::new(&config, 7, clients, &Arc::default())
}

#[test]
fn a_stateid_names_the_part_of_its_file() {
    let shards = shards();
    for ino in 0..100 {
        let id = file(ino);
        let mut part = shards.write(shards.part_of(id));
        let owner = part.files().open_owner(ClientId(1), b"owner", None);
        let (stateid, _) = part.files().open(false, owner, id, Share { access: 1, deny: 0 }, 0);
        assert_eq!(shards.part_of_stateid(&stateid), shards.part_of(id));
        assert!(part.files().find_open(1, Some(ClientId(1)), &stateid, id).is_ok());
        assert!(part.files().find_open(1, Some(ClientId(1)), &stateid, file(ino + 1)).is_err());
        drop(part);
        let mut other = shards.write(shards.part_of(file(ino + 1)));
        assert!(other.files().find_open(1, Some(ClientId(1)), &stateid, id).is_err(), "of another part");
    }
    let counts = shards.all().files().counts();
    assert_eq!((counts.states, counts.files), (100, 100));
    assert_eq!(counts.owners, shards.len(), "one in every part");
}

/// Threads open and close files of their own, and some that all use, while others look at and change what concerns all.
/// What is left is what they left open, whatever the order.
#[test]
fn threads_leave_what_they_opened() {
    let shards = shards();
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let everything = scope.spawn(|| {
            while !stopped.load(Ordering::Relaxed) {
                let mut all = shards.all();
                let (clients, files) = all.split();
                let counts = files.counts();
                assert!(counts.states >= counts.files, "no file without state is kept");
                clients.tick(files, Instant::now(), &mut Effects::new());
                drop(all);
                assert!(shards.whole().clients().is_empty());
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let workers: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let shards = &shards;
                scope.spawn(move || {
                    let client = ClientId(thread);
                    for n in 0..EACH {
                        // Every fourth file is one that all open.
                        let id = if n % 4 == 0 { file(n) } else { file((thread + 1) << 32 | n) };
                        let mut part = shards.write(shards.part_of(id));
                        let (clients, files) = part.split();
                        assert!(clients.is_empty());
                        let owner = files.open_owner(client, b"owner", None);
                        let share = Share { access: 1, deny: if n % 8 == 1 { 2 } else { 0 } };
                        let (stateid, new) = files.open(false, owner, id, share, 0);
                        assert!(new);
                        drop(part);
                        if n % 2 == 0 {
                            let mut part = shards.write(shards.part_of_stateid(&stateid));
                            let at = part.files().find_open(1, Some(client), &stateid, id).unwrap();
                            part.files().close(at, &mut Effects::new()).unwrap();
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        stopped.store(true, Ordering::Relaxed);
        everything.join().unwrap();
    });
    let left = THREADS * EACH as usize / 2;
    let denied = (0..EACH).filter(|n| n % 8 == 1).map(|n| file(1 << 32 | n));
    for id in denied {
        assert!(!shards.is_unguarded(shards.part_of(id)));
        assert!(shards.read(shards.part_of(id)).files().denied(id, true));
    }
    let mut all = shards.all();
    assert_eq!(all.files().counts().states, left);
    for thread in 0..THREADS as u64 {
        all.files().purge_client(ClientId(thread), &mut Effects::new());
    }
    assert_eq!(all.files().counts(), Default::default());
    drop(all);
    assert!((0..shards.len()).all(|part| shards.is_unguarded(part)), "what guarded is gone");
}

/// Owners with many files, and files with many owners: each finds its own open.
#[test]
fn an_open_is_found_by_owner_and_file() {
    let shards = shards();
    let ids: Vec<_> = (0..20).map(|n| file(n * shards.len() as u64)).collect();
    let mut part = shards.write(0);
    let files = part.files();
    let share = Share { access: 1, deny: 0 };
    let open = |files: &mut Files, owner: u8, id| {
        let owner = files.open_owner(ClientId(1), &[owner], None);
        files.open(false, owner, id, share, 0)
    };
    for (n, id) in ids.iter().enumerate() {
        for owner in 0..20 {
            assert!(open(files, owner, *id).1, "{owner} {n}");
        }
    }
    for id in &ids {
        for owner in 0..20 {
            let (first, new) = open(files, owner, *id);
            assert!(!new && first.seqid > 1);
            let other = open(files, owner.wrapping_add(1) % 20, *id).0;
            assert_ne!(first.other, other.other);
        }
    }
    drop(part);
    assert_eq!(shards.all().files().counts().states, 400);
}
