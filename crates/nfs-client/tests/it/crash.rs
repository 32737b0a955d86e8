//! The embedded server crashes in the middle of work: mounts go on, and what was called stable is there, unless the server lies.

use std::cell::Cell;
use std::time::Duration;

use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::protocol::NfsResult;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::{Durability, Loss, Server, ServerConfig, ServerError};

use crate::support::embedded::{run, server_with};
use crate::support::futures::all;
use crate::support::operations::pattern;

const SIZE: usize = 20_000;

async fn connect(reactor: &Reactor, server: &Server, options: &str) -> Mount {
    let port = server.address().port();
    let url = format!("nfs://127.0.0.1:{port}/export?{options}&rsize=8KiB&wsize=4KiB&timeo=200ms&retrans=50");
    Mount::connect(reactor, &url.parse().unwrap(), options).await.unwrap()
}

fn losing(config: &mut ServerConfig) {
    config.volatile = true;
    config.lease = Duration::from_secs(1);
}

fn name(task: usize, number: usize) -> Vec<u8> {
    format!("{task}-{number}").into_bytes()
}

/// A change of names. Of one whose reply was lost in the crash, the repetition finds that it is done; where a session was lost
/// with it, what came of it is unknown: it is made once more.
async fn change<F: Future<Output = NfsResult<()>>>(change: impl Fn() -> F) {
    loop {
        match change().await {
            Err(NfsError::StateLost(_)) => {}
            Err(error) if !error.is_absent() => panic!("{error:?}"),
            _ => return,
        }
    }
}

/// Makes files under one name and renames them to their own, until told to end. Removes every second one of them. Returns how
/// many there were.
async fn work(mount: &Mount, task: usize, done: &Cell<usize>, stop: &Cell<bool>) -> usize {
    let kept = mount.open(format!("kept {task}").as_bytes(), &OpenFlags::CREATE).await.unwrap();
    mount.lock(&kept, LockKind::Write, Range { offset: 0, length: 10 }, false).await.unwrap();
    let mut number = 0;
    while !stop.get() {
        let first = format!("{task} new").into_bytes();
        let file = mount.open(&first, &OpenFlags::CREATE).await.unwrap();
        assert_eq!(mount.write(&file, &pattern(SIZE, number as u64), 0).await, Ok(SIZE));
        mount.fsync(&file).await.unwrap();
        mount.close(file).await.unwrap();
        let own = name(task, number);
        change(|| mount.rename(&first, &own)).await;
        if number % 2 == 1 {
            let before = name(task, number - 1);
            change(|| mount.remove(&before)).await;
        }
        number += 1;
        done.set(done.get() + 1);
    }
    mount.close(kept).await.unwrap();
    number
}

/// Whether a file has its data.
async fn is_whole(mount: &Mount, path: &[u8], seed: u64) -> bool {
    let file = mount.open(path, &OpenFlags::READ).await.unwrap();
    let mut data = vec![0; 2 * SIZE];
    let read = mount.read(&file, &mut data, 0).await.unwrap();
    mount.close(file).await.unwrap();
    data[..read] == pattern(SIZE, seed)
}

#[test]
fn mounts_of_every_version_survive_crashes() {
    const TASKS: usize = 4;
    let versions = ["version=3", "version=4.0", "version=4.1", "version=4.2&cache=linux"];
    // From memory, and from a state file and its log.
    for (at, (options, logged)) in
        [false, true].into_iter().flat_map(|logged| versions.map(|options| (options, logged))).enumerate()
    {
        let place = tempfile::tempdir().unwrap();
        let server = server_with(&[], |config| {
            losing(config);
            if logged {
                (config.state, config.durability) = (Some(place.path().join("state")), Durability::Process);
            }
        });
        run(async |reactor, _| {
            let mount = connect(&reactor, &server, options).await;
            let (done, stop) = (Cell::new(0), Cell::new(false));
            let crashes = async {
                for round in 0..3 {
                    let more = done.get() + 10;
                    while done.get() < more {
                        reactor.sleep(Duration::from_micros(700)).await;
                    }
                    let loss = if round == 1 { Loss::Process } else { Loss::Power };
                    let crash = server.crash(loss, 10 * at as u64 + round).unwrap();
                    // A host that reclaimed its locks of version 3 too late is forgotten.
                    let late = options.contains("=3") && round > 0;
                    assert!(crash.known_clients == 1 || late, "{options}, {round}: {crash:?}");
                }
                let more = done.get() + 10;
                while done.get() < more {
                    reactor.sleep(Duration::from_millis(1)).await;
                }
                stop.set(true);
                0
            };
            let mut tasks: Vec<std::pin::Pin<Box<dyn Future<Output = usize>>>> = vec![Box::pin(crashes)];
            for task in 0..TASKS {
                tasks.push(Box::pin(work(&mount, task, &done, &stop)));
            }
            let made = all(tasks).await;
            let other = connect(&reactor, &server, "version=4.1").await;
            for (task, made) in made[1..].iter().enumerate() {
                for number in 0..*made {
                    if number % 2 == 0 && number + 1 < *made {
                        assert!(other.stat(&name(task, number)).await.unwrap_err().is_absent());
                        continue;
                    }
                    assert!(
                        is_whole(&other, &name(task, number), number as u64).await,
                        "{options} {task} {number}"
                    );
                }
            }
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

/// Writes a file, has it called stable, crashes: whether it has its data afterwards.
fn survives(rules: &[&str], options: &str, flags: &OpenFlags, seed: u64) -> bool {
    let server = server_with(rules, losing);
    run(async |reactor, _| {
        let mount = connect(&reactor, &server, options).await;
        let file = mount.open(b"file", flags).await.unwrap();
        assert_eq!(mount.write(&file, &pattern(SIZE, seed), 0).await, Ok(SIZE));
        mount.fsync(&file).await.unwrap();
        let crash = server.crash(Loss::Power, seed).unwrap();
        let other = connect(&reactor, &server, "version=4.1").await;
        let whole = is_whole(&other, b"file", seed).await;
        assert_eq!(crash.lost_blocks > 0, !whole, "{crash:?}");
        whole
    })
}

#[test]
fn a_server_that_lies_loses_what_it_called_stable() {
    let sync = OpenFlags { sync: true, ..OpenFlags::CREATE };
    for (seed, options) in (1..).zip(["version=3", "version=4.0", "version=4.1"]) {
        assert!(survives(&[], options, &OpenFlags::CREATE, seed), "{options}");
        assert!(survives(&[], options, &sync, seed), "{options}");
        assert!(!survives(&["COMMIT lie"], options, &OpenFlags::CREATE, seed), "{options}");
        assert!(survives(&["COMMIT lie"], options, &sync, seed), "{options}: it needs no COMMIT");
        assert!(!survives(&["WRITE lie", "COMMIT lie"], options, &sync, seed), "{options}");
    }
}

/// Data that were not called stable are sent again where the verifier of COMMIT shows the crash.
#[test]
fn what_was_not_stable_is_sent_again_unless_the_verifier_stays() {
    for options in ["version=3", "version=4.1"] {
        for (rules, mended) in [(&[][..], true), (&["* keep-verifier"], false)] {
            let server = server_with(rules, losing);
            run(async |reactor, _| {
                let mount = connect(&reactor, &server, options).await;
                let file = mount.open(b"file", &OpenFlags::CREATE).await.unwrap();
                assert_eq!(mount.write(&file, &pattern(SIZE, 7), 0).await, Ok(SIZE));
                assert!(server.crash(Loss::Power, 3).unwrap().lost_blocks > 0);
                mount.fsync(&file).await.unwrap();
                mount.close(file).await.unwrap();
                let other = connect(&reactor, &server, "version=4.1").await;
                assert_eq!(is_whole(&other, b"file", 7).await, mended, "{options} {rules:?}");
            });
        }
    }
}

/// What was written stable over data that are sent again afterwards lies over them.
#[test]
fn what_is_sent_again_does_not_cover_what_is_newer() {
    for options in ["version=3", "version=4.1", "version=3&cache=linux"] {
        let server = server_with(&[], losing);
        run(async |reactor, _| {
            let mount = connect(&reactor, &server, options).await;
            let file = mount.open(b"file", &OpenFlags::CREATE).await.unwrap();
            let sync = OpenFlags { sync: true, ..OpenFlags::CREATE };
            let stable = mount.open(b"file", &sync).await.unwrap();
            assert_eq!(mount.write(&file, &pattern(SIZE, 1), 0).await, Ok(SIZE));
            assert_eq!(mount.write(&stable, &pattern(SIZE, 2), 0).await, Ok(SIZE));
            server.crash(Loss::Power, 3).unwrap();
            mount.close(file).await.unwrap();
            mount.close(stable).await.unwrap();
            let other = connect(&reactor, &server, "version=4.1").await;
            assert!(is_whole(&other, b"file", 2).await, "{options}");
        });
    }
}

/// What is cut off while a COMMIT is under way is not sent again when that shows a crash.
#[test]
fn what_is_sent_again_ends_where_the_file_was_cut() {
    for options in ["version=3", "version=4.1"] {
        let server = server_with(&["COMMIT delay=100ms"], losing);
        run(async |reactor, _| {
            let mount = connect(&reactor, &server, options).await;
            let file = mount.open(b"file", &OpenFlags::CREATE).await.unwrap();
            assert_eq!(mount.write(&file, &pattern(SIZE, 1), 0).await, Ok(SIZE));
            server.crash(Loss::Power, 3).unwrap();
            // The one after a crash finds the connection broken.
            mount.stat(b"file").await.unwrap();
            let cut = async {
                reactor.sleep(Duration::from_millis(30)).await;
                mount.truncate_file(&file, 100).await.unwrap();
            };
            let sync = async { mount.fsync(&file).await.unwrap() };
            let tasks: Vec<std::pin::Pin<Box<dyn Future<Output = ()>>>> = vec![Box::pin(sync), Box::pin(cut)];
            all(tasks).await;
            mount.close(file).await.unwrap();
            let other = connect(&reactor, &server, "version=4.1").await;
            assert_eq!(other.stat(b"file").await.unwrap().size, 100, "{options}");
        });
    }
}

#[test]
fn what_cannot_be_lost_is_an_error() {
    let server = server_with(&[], |_| {});
    assert!(matches!(server.crash(Loss::Power, 1), Err(ServerError::Steady)));
    assert_eq!(server.crash(Loss::Process, 1).unwrap().lost_blocks, 0);
    server.stop().unwrap();
    assert!(matches!(server.crash(Loss::Process, 1), Err(ServerError::Stopped)));
}
