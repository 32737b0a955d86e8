//! The Linux client's cache against the embedded server: what is sent, what is believed, for how long, and what two
//! clients see of each other.

use std::time::Duration;

use benchmaster_nfs_client::cache::Clock;
use benchmaster_nfs_client::counters::{Event, Snapshot};
use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server, server_with};

const WHOLE: Range = Range { offset: 0, length: 0 };
const VERSIONS: [&str; 4] = ["3", "4.0", "4.1&delegations=off", "4.2&delegations=off"];

fn options(server: &Server, options: &str) -> MountOptions {
    let port = server.address().port();
    format!("nfs://127.0.0.1:{port}/export?version={options}").parse().unwrap()
}

async fn cached(reactor: &Reactor, server: &Server, version: &str, clock: &Clock) -> Mount {
    let options = options(server, &format!("{version}&cache=linux"));
    Mount::connect_by(clock.clone(), reactor, &options, "cached").await.unwrap()
}

async fn plain(reactor: &Reactor, server: &Server) -> Mount {
    Mount::connect(reactor, &options(server, "4.1"), "plain").await.unwrap()
}

async fn put(mount: &Mount, path: &[u8], data: &[u8]) {
    let flags = OpenFlags { truncate: false, ..OpenFlags::CREATE };
    let file = mount.open(path, &flags).await.unwrap();
    mount.write(&file, data, 0).await.unwrap();
    mount.close(file).await.unwrap();
}

async fn get(mount: &Mount, path: &[u8], len: usize) -> Vec<u8> {
    let file = mount.open(path, &OpenFlags::READ).await.unwrap();
    let mut data = vec![0; len];
    let read = mount.read(&file, &mut data, 0).await.unwrap();
    mount.close(file).await.unwrap();
    data.truncate(read);
    data
}

/// Number of calls since `before`, by name, of those that happened; `before` moves on.
fn calls(mount: &Mount, before: &mut Snapshot) -> Vec<(&'static str, u64)> {
    let now = mount.counters().snapshot();
    let since = now.since(before);
    *before = now;
    let quiet = |name: &str| matches!(name, "SEQUENCE" | "RENEW" | "OPEN_CONFIRM");
    let of_op = since.ops().filter(|(op, _)| !quiet(op.name()) && op.program() != "PORTMAP");
    of_op.map(|(op, counters)| (op.name(), counters.ops)).collect()
}

fn number(calls: &[(&str, u64)], name: &str) -> u64 {
    calls.iter().filter(|(other, _)| *other == name).map(|(_, n)| n).sum()
}

#[test]
fn attributes_are_asked_for_when_their_time_is_over() {
    for version in VERSIONS {
        let server = server(&[]);
        run(async |reactor, _| {
            let other = plain(&reactor, &server).await;
            put(&other, b"f", b"12345").await;
            let clock = Clock::manual();
            let mount = cached(&reactor, &server, version, &clock).await;
            assert_eq!(mount.stat(b"f").await.unwrap().size, 5);
            let mut before = mount.counters().snapshot();
            for _ in 0..3 {
                assert_eq!(mount.stat(b"f").await.unwrap().size, 5);
            }
            assert_eq!(calls(&mount, &mut before), [], "{version}");
            put(&other, b"f", b"123456").await;
            clock.advance(Duration::from_millis(2900));
            assert_eq!(mount.stat(b"f").await.unwrap().size, 5);
            clock.advance(Duration::from_millis(200));
            assert_eq!(mount.stat(b"f").await.unwrap().size, 6);
            assert_eq!(calls(&mount, &mut before), [("GETATTR", 1)], "{version}");
            // Without a change they are believed twice as long each time.
            for seconds in [3, 6, 12] {
                clock.advance(Duration::from_millis(seconds * 1000 - 100));
                mount.stat(b"f").await.unwrap();
                let first = number(&calls(&mount, &mut before), "GETATTR");
                clock.advance(Duration::from_millis(200));
                mount.stat(b"f").await.unwrap();
                let second = number(&calls(&mount, &mut before), "GETATTR");
                // The directory's time is over once too.
                assert!(first == 0 && (1..=2).contains(&second), "{version} {seconds}: {first} {second}");
            }
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn names_are_looked_up_when_their_directory_changed() {
    for version in VERSIONS {
        let server = server(&[]);
        run(async |reactor, _| {
            let other = plain(&reactor, &server).await;
            other.create_dirs(b"d").await.unwrap();
            put(&other, b"d/f", b"old").await;
            let clock = Clock::manual();
            let mount = cached(&reactor, &server, version, &clock).await;
            assert_eq!(get(&mount, b"d/f", 10).await, b"old");
            assert!(mount.stat(b"d/none").await.unwrap_err().is_absent());
            let mut before = mount.counters().snapshot();
            assert!(mount.stat(b"d/none").await.unwrap_err().is_absent());
            assert_eq!(calls(&mount, &mut before), [], "{version}");
            // The name becomes another file, and the missing one appears.
            put(&other, b"d/g", b"newer").await;
            other.rename(b"d/g", b"d/f").await.unwrap();
            put(&other, b"d/none", b"").await;
            clock.advance(Duration::from_secs(61));
            assert_eq!(get(&mount, b"d/f", 10).await, b"newer", "{version}");
            assert_eq!(mount.stat(b"d/none").await.unwrap().size, 0);
            // What we change ourselves is seen at once.
            mount.rename(b"d/f", b"d/h").await.unwrap();
            assert!(mount.stat(b"d/f").await.unwrap_err().is_absent());
            mount.remove(b"d/h").await.unwrap();
            assert!(mount.open(b"d/h", &OpenFlags::READ).await.unwrap_err().is_absent());
            put(&mount, b"d/h", b"again").await;
            assert_eq!(get(&mount, b"d/h", 10).await, b"again");
            // A directory that is replaced is found again, although its handle is stale.
            other.remove_tree(b"d").await.unwrap();
            other.create_dirs(b"d").await.unwrap();
            put(&other, b"d/h", b"other").await;
            clock.advance(Duration::from_secs(61));
            assert_eq!(get(&mount, b"d/h", 10).await, b"other", "{version}");
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn opening_shows_what_others_closed() {
    for version in VERSIONS {
        let server = server(&[]);
        run(async |reactor, _| {
            let other = plain(&reactor, &server).await;
            put(&other, b"f", b"one").await;
            let mount = cached(&reactor, &server, version, &Clock::manual()).await;
            assert_eq!(get(&mount, b"f", 10).await, b"one");
            let mut before = mount.counters().snapshot();
            assert_eq!(get(&mount, b"f", 10).await, b"one");
            let again = calls(&mount, &mut before);
            assert_eq!(number(&again, "READ"), 0, "{version} {again:?}");
            let asked = match version {
                "3" => vec![("GETATTR", 1)],
                "4.0" => vec![("OPEN", 1), ("CLOSE", 1)],
                _ => vec![("OPEN", 1), ("CLOSE", 1), ("GETATTR", 1)],
            };
            assert_eq!(again, asked, "{version}");
            put(&other, b"f", b"two").await;
            assert_eq!(get(&mount, b"f", 10).await, b"two", "{version}");
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn locks_make_the_cache_coherent() {
    let appended = ["4.0&append_to_locks=on", "4.1&delegations=off&append_to_locks=on"];
    let versions = VERSIONS.iter().chain(&appended);
    for (version, fine) in versions.flat_map(|version| [(*version, true), (*version, false)]) {
        let alone = !version.contains("append");
        let server = server_with(&[], |config| {
            config.change_granularity = (!fine).then(|| Duration::from_secs(1));
        });
        run(async |reactor, _| {
            let other = plain(&reactor, &server).await;
            put(&other, b"f", b"aaaa").await;
            let mount = cached(&reactor, &server, version, &Clock::manual()).await;
            let file = mount.open(b"f", &OpenFlags::READ_WRITE).await.unwrap();
            let mut data = [0; 4];
            mount.read(&file, &mut data, 0).await.unwrap();
            let mut before = mount.counters().snapshot();
            mount.lock(&file, LockKind::Write, WHOLE, false).await.unwrap();
            mount.read(&file, &mut data, 0).await.unwrap();
            let locked = calls(&mount, &mut before);
            // Fine times show that nothing has changed; else everything is read again.
            let wanted = (u64::from(alone), u64::from(!fine));
            assert_eq!((number(&locked, "GETATTR"), number(&locked, "READ")), wanted, "{version} {locked:?}");
            // What is written is there for others when it is unlocked, not before.
            mount.write(&file, b"bb", 1).await.unwrap();
            assert_eq!(calls(&mount, &mut before), []);
            assert_eq!(get(&other, b"f", 9).await, b"aaaa");
            mount.unlock(&file, WHOLE).await.unwrap();
            assert_eq!(get(&other, b"f", 9).await, b"abba");
            assert_eq!(number(&calls(&mount, &mut before), "COMMIT"), 0, "one WRITE is stable by itself");
            let theirs = other.open(b"f", &OpenFlags::WRITE).await.unwrap();
            other.write(&theirs, b"c", 0).await.unwrap();
            mount.lock(&file, LockKind::Read, WHOLE, false).await.unwrap();
            mount.read(&file, &mut data, 0).await.unwrap();
            assert_eq!(&data, b"cbba", "{version}");
            mount.unlock(&file, WHOLE).await.unwrap();
            calls(&mount, &mut before);
            // The stateid is freed once nothing is locked any more, and a lock after that gets another.
            for offset in [0, 20] {
                mount.lock(&file, LockKind::Write, Range { offset, length: 10 }, false).await.unwrap();
            }
            mount.unlock(&file, Range { offset: 0, length: 10 }).await.unwrap();
            let freed = |calls: &[_]| number(calls, "FREE_STATEID");
            assert_eq!(freed(&calls(&mount, &mut before)), 0, "{version}");
            mount.unlock(&file, WHOLE).await.unwrap();
            let sessions = !version.starts_with('3') && !version.starts_with("4.0");
            assert_eq!(freed(&calls(&mount, &mut before)), u64::from(sessions && alone), "{version}");
            mount.lock(&file, LockKind::Write, WHOLE, false).await.unwrap();
            mount.unlock(&file, WHOLE).await.unwrap();
            mount.close(file).await.unwrap();
            other.close(theirs).await.unwrap();
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn writes_are_collected_until_they_have_to_go() {
    for version in VERSIONS {
        let server = server(&[]);
        run(async |reactor, _| {
            let mount = cached(&reactor, &server, &format!("{version}&wsize=64KiB"), &Clock::manual()).await;
            let file = mount.open(b"f", &OpenFlags { read: true, ..OpenFlags::CREATE }).await.unwrap();
            let mut before = mount.counters().snapshot();
            let data: Vec<u8> = (0..300_000).map(|i: u32| ((i * 7) >> 5) as u8).collect();
            for (n, chunk) in data.chunks(1000).enumerate() {
                mount.write(&file, chunk, n as u64 * 1000).await.unwrap();
            }
            let mut found = vec![0; 400_000];
            assert_eq!(mount.read(&file, &mut found, 0).await, Ok(300_000));
            assert!(found[..300_000] == data[..]);
            assert_eq!(calls(&mount, &mut before), [], "{version}");
            mount.fsync(&file).await.unwrap();
            let flushed = calls(&mount, &mut before);
            assert_eq!((number(&flushed, "WRITE"), number(&flushed, "COMMIT")), (5, 1), "{flushed:?}");
            mount.fsync(&file).await.unwrap();
            assert_eq!(calls(&mount, &mut before), []);
            // It is our own change: what is cached stays.
            assert_eq!(mount.read(&file, &mut found, 0).await, Ok(300_000));
            assert_eq!(number(&calls(&mount, &mut before), "READ"), 0, "{version}");
            mount.close(file).await.unwrap();
            assert!(get(&mount, b"f", 400_000).await == data);
            assert_eq!(number(&calls(&mount, &mut before), "READ"), 0, "{version}");
            // A page of which a part is written is read when the rest of it is wanted.
            let other = plain(&reactor, &server).await;
            put(&other, b"g", &data[..10_000]).await;
            let file = mount.open(b"g", &OpenFlags::READ_WRITE).await.unwrap();
            mount.write(&file, b"part", 5000).await.unwrap();
            mount.write(&file, b"apart", 6000).await.unwrap();
            let mut wanted = data[..10_000].to_vec();
            wanted[5000..5004].copy_from_slice(b"part");
            wanted[6000..6005].copy_from_slice(b"apart");
            assert_eq!(mount.read(&file, &mut found, 0).await, Ok(10_000));
            assert!(found[..10_000] == wanted[..]);
            mount.write(&file, b"end", 20_000).await.unwrap();
            assert_eq!(mount.stat_file(&file).await.unwrap().size, 20_003);
            mount.truncate_file(&file, 5002).await.unwrap();
            mount.close(file).await.unwrap();
            assert!(get(&other, b"g", 30_000).await == wanted[..5002]);
            assert!(get(&mount, b"g", 30_000).await == wanted[..5002]);
            let sync = mount.open(b"g", &OpenFlags { sync: true, ..OpenFlags::WRITE }).await.unwrap();
            mount.write(&sync, b"now", 0).await.unwrap();
            assert_eq!(&get(&other, b"g", 3).await, b"now");
            mount.close(sync).await.unwrap();
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn access_is_checked_here_with_what_the_server_said() {
    for version in VERSIONS {
        let server = server(&[]);
        run(async |reactor, _| {
            let root = Mount::connect(&reactor, &options(&server, "4.1&uid=0&gid=0"), "root").await.unwrap();
            put(&root, b"f", b"secret").await;
            let private =
                benchmaster_nfs_client::types::SetAttributes { mode: Some(0o600), ..Default::default() };
            root.set_attributes(b"f", &private).await.unwrap();
            let user = format!("{version}&uid=1234&gid=1234");
            let mount = cached(&reactor, &server, &user, &Clock::manual()).await;
            for _ in 0..2 {
                let refused = mount.open(b"f", &OpenFlags::READ).await.unwrap_err();
                assert_eq!(refused.errno(), libc::EACCES, "{version}");
            }
            mount.unmount().await.unwrap();
            root.unmount().await.unwrap();
        });
    }
}

#[test]
fn a_delegation_is_used_and_given_up_with_all_that_was_done_under_it() {
    for version in ["4.0", "4.1", "4.2"] {
        let server = server(&[]);
        run(async |reactor, _| {
            let other =
                Mount::connect(&reactor, &options(&server, "4.1&delay_initial=10ms"), "other").await.unwrap();
            put(&other, b"f", b"data").await;
            let clock = Clock::manual();
            let mount = cached(&reactor, &server, version, &clock).await;
            // In version 4.0 the server looks first, in its own time, whether it can call back.
            let first = loop {
                let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
                if mount.counters().snapshot().event(Event::DelegationGranted) == 1 {
                    break file;
                }
                assert_eq!(version, "4.0");
                mount.close(file).await.unwrap();
                reactor.sleep(Duration::from_millis(5)).await;
            };
            let mut data = [0; 4];
            mount.read(&first, &mut data, 0).await.unwrap();
            let mut before = mount.counters().snapshot();
            // Opened, locked, read and looked at without a word, however long it takes.
            clock.advance(Duration::from_secs(1000));
            let second = mount.open(b"f", &OpenFlags::READ).await.unwrap();
            let third = mount.open(b"f", &OpenFlags::READ).await.unwrap();
            mount.lock(&second, LockKind::Read, WHOLE, false).await.unwrap();
            mount.lock(&third, LockKind::Read, Range { offset: 0, length: 2 }, false).await.unwrap();
            mount.read(&third, &mut data, 0).await.unwrap();
            mount.stat_file(&second).await.unwrap();
            mount.close(third).await.unwrap();
            let silent: Vec<_> = calls(&mount, &mut before)
                .into_iter()
                .filter(|(name, _)| *name != "GETATTR" && *name != "ACCESS")
                .collect();
            assert_eq!(silent, [], "{version}");

            // Another client wants to write: the opens and the lock go to the server.
            let theirs = other.open(b"f", &OpenFlags::READ_WRITE).await.unwrap();
            assert!(other.counters().snapshot().event(Event::Delay) > 0);
            let events = mount.counters().snapshot();
            assert_eq!(events.event(Event::DelegationRecalled), 1, "{version}");
            assert_eq!(events.event(Event::DelegationReturned), 1, "{version}");
            let sent = calls(&mount, &mut before);
            let count = |name| number(&sent, name);
            assert_eq!(
                (count("OPEN_NOATTR"), count("LOCK"), count("DELEGRETURN")),
                (2, 1, 1),
                "{version} {sent:?}"
            );
            let refused = other.lock(&theirs, LockKind::Write, WHOLE, false).await.unwrap_err();
            assert_eq!(refused.errno(), libc::EAGAIN, "{version}");
            mount.unlock(&second, WHOLE).await.unwrap();
            other.lock(&theirs, LockKind::Write, WHOLE, false).await.unwrap();
            other.write(&theirs, b"more", 0).await.unwrap();
            other.close(theirs).await.unwrap();
            mount.close(first).await.unwrap();
            mount.close(second).await.unwrap();
            assert_eq!(get(&mount, b"f", 9).await, b"more", "{version}");
            mount.unmount().await.unwrap();
            other.unmount().await.unwrap();
        });
    }
}

#[test]
fn what_was_opened_under_a_delegation_only_can_be_read() {
    let server = server(&[]);
    run(async |reactor, _| {
        let other = plain(&reactor, &server).await;
        put(&other, b"f", &[7; 10_000]).await;
        let mount = cached(&reactor, &server, "4.1&rsize=4096", &Clock::manual()).await;
        let first = mount.open(b"f", &OpenFlags::READ).await.unwrap();
        mount.close(first).await.unwrap();
        let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
        let mut before = mount.counters().snapshot();
        let mut data = [0; 10_000];
        assert_eq!(mount.read(&file, &mut data, 0).await, Ok(10_000));
        assert!(data == [7; 10_000]);
        let sent = calls(&mount, &mut before);
        assert_eq!((number(&sent, "OPEN_NOATTR"), number(&sent, "READ")), (1, 3), "{sent:?}");
        mount.close(file).await.unwrap();
        // Our own open for writing gives the delegation back first.
        let file = mount.open(b"f", &OpenFlags::READ_WRITE).await.unwrap();
        assert_eq!(mount.counters().snapshot().event(Event::DelegationReturned), 1);
        mount.write(&file, b"x", 9999).await.unwrap();
        mount.close(file).await.unwrap();
        assert_eq!(get(&other, b"f", 20_000).await[9998..], [7, b'x']);
        mount.unmount().await.unwrap();
        other.unmount().await.unwrap();
    });
}

#[test]
fn a_write_delegation_keeps_writes_here_until_it_is_recalled() {
    let server = server_with(&[], |config| config.write_delegations = true);
    run(async |reactor, _| {
        let other =
            Mount::connect(&reactor, &options(&server, "4.1&delay_initial=10ms"), "other").await.unwrap();
        put(&other, b"f", b"data").await;
        let mount = cached(&reactor, &server, "4.1", &Clock::manual()).await;
        let first = mount.open(b"f", &OpenFlags::READ_WRITE).await.unwrap();
        assert_eq!(mount.counters().snapshot().event(Event::DelegationGranted), 1);
        let second = mount.open(b"f", &OpenFlags::READ_WRITE).await.unwrap();
        mount.lock(&second, LockKind::Write, WHOLE, false).await.unwrap();
        let refused = mount.lock(&first, LockKind::Write, WHOLE, false).await.unwrap_err();
        assert_eq!(refused.errno(), libc::EAGAIN);
        mount.write(&second, b"mine", 0).await.unwrap();
        // Reading elsewhere recalls it, and sees what was written.
        assert_eq!(get(&other, b"f", 9).await, b"mine");
        let counted = mount.counters().snapshot();
        assert_eq!(counted.event(Event::DelegationReturned), 1);
        assert_eq!(counted.event(Event::StateLost), 0);
        mount.unlock(&second, WHOLE).await.unwrap();
        mount.close(first).await.unwrap();
        mount.close(second).await.unwrap();
        mount.unmount().await.unwrap();
        other.unmount().await.unwrap();
    });
}
