//! Mounted exports of the embedded server, over sockets, in every version.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use benchmaster_nfs_client::buffer::Buffer;
use benchmaster_nfs_client::counters::{Event, Snapshot};
use benchmaster_nfs_client::mount::{Mount, MountError, OpenFlags};
use benchmaster_nfs_client::ops::Op;
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{FileType, LockKind, Range, SetAttributes};
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server, server_with};

const VERSIONS: [&str; 5] = ["2", "3", "4.0", "4.1", "4.2"];
/// With and without cache.
const CASES: [(&str, &str); 10] = [
    ("2", ""),
    ("3", ""),
    ("4.0", ""),
    ("4.1", ""),
    ("4.2", ""),
    ("3", "&cache=linux"),
    ("4.0", "&cache=linux"),
    ("4.1", "&cache=linux"),
    ("4.1", "&cache=linux&delegations=off"),
    ("4.2", "&cache=linux"),
];
/// Versions in which written data need not be stable at once.
const UNSTABLE: [&str; 4] = ["3", "4.0", "4.1", "4.2"];

fn options(server: &Server, version: &str, more: &str) -> MountOptions {
    let port = server.address().port();
    format!("nfs://127.0.0.1:{port}/export?version={version}{more}").parse().unwrap()
}

async fn mount(reactor: &Reactor, server: &Server, version: &str, more: &str) -> Mount {
    let options = options(server, version, more);
    Mount::connect(reactor, &options, "test").await.unwrap_or_else(|error| panic!("{options}: {error}"))
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9).wrapping_add(seed) >> 7) as u8).collect()
}

/// Number of calls with this name in any program of NFS itself.
fn count(counted: &Snapshot, name: &str) -> u64 {
    let of_name = counted.ops().filter(|(op, _)| op.name() == name && op.program().starts_with("NFS"));
    of_name.map(|(_, counters)| counters.ops).sum()
}

fn total(counted: &Snapshot) -> u64 {
    let quiet = |op: &Op| matches!(op.name(), "SEQUENCE" | "RENEW");
    counted.ops().filter(|(op, _)| !quiet(op)).map(|(_, counters)| counters.ops).sum()
}

#[test]
fn names_and_attributes() {
    for (version, cache) in CASES {
        let server = server(&[]);
        run(async |reactor, _| {
            let mount = mount(&reactor, &server, version, cache).await;
            mount.create_dirs(b"/a/b/c/").await.unwrap();
            mount.create_dirs(b"a/b/c").await.unwrap();
            let file = mount.open(b"a/b/c/f", &OpenFlags::CREATE).await.unwrap();
            assert_eq!(mount.write(&file, b"hello", 0).await, Ok(5));
            mount.close(file).await.unwrap();
            assert_eq!(mount.stat(b"a/b/c/f").await.unwrap().size, 5);
            assert_eq!(mount.stat(b"").await.unwrap().kind, FileType::Directory);
            let error = mount.open(b"a/b/c/f", &OpenFlags { exclusive: true, ..OpenFlags::CREATE }).await;
            assert!(error.unwrap_err().is_present());
            mount.truncate(b"a/b/c/f", 2).await.unwrap();
            let set = SetAttributes { mode: Some(0o600), ..SetAttributes::default() };
            mount.set_attributes(b"a/b/c/f", &set).await.unwrap();
            let found = mount.stat(b"a/b/c/f").await.unwrap();
            assert_eq!((found.size, found.mode), (2, 0o600));
            mount.link(b"a/b/c/f", b"a/hard").await.unwrap();
            mount.symlink(b"b/c/f", b"a/soft").await.unwrap();
            assert_eq!(mount.readlink(b"a/soft").await.unwrap(), b"b/c/f");
            assert_eq!(mount.stat(b"a/soft").await.unwrap().kind, FileType::Symlink);
            assert_eq!(mount.stat(b"a/hard").await.unwrap().links, 2);

            // A directory that moves takes what is known of it along.
            mount.rename(b"a/b", b"a/moved").await.unwrap();
            assert!(mount.stat(b"a/b/c/f").await.unwrap_err().is_absent());
            assert_eq!(mount.stat(b"a/moved/c/f").await.unwrap().size, 2);
            let mut names = BTreeMap::new();
            mount
                .readdir_plus(b"a", &mut |entry| {
                    let kind = entry.attributes.map(|attributes| attributes.kind);
                    names.insert(String::from_utf8(entry.name.to_vec()).unwrap(), kind);
                })
                .await
                .unwrap();
            assert_eq!(names.keys().collect::<Vec<_>>(), ["hard", "moved", "soft"]);
            mount.remove(b"a/hard").await.unwrap();
            assert!(mount.remove(b"a/hard").await.unwrap_err().is_absent());
            assert!(mount.rmdir(b"a").await.is_err());
            mount.remove_tree(b"a").await.unwrap();
            mount.remove_tree(b"a").await.unwrap();
            let mut entries = 0;
            mount.readdir(b"/", &mut |_| entries += 1).await.unwrap();
            assert_eq!(entries, 0);
            for bad in [&b"a//b"[..], b"../x", b"a/."] {
                assert!(mount.stat(bad).await.is_err());
            }
            assert!(mount.space().await.unwrap().total > 0);
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn a_path_is_looked_up_once_and_again_when_stale() {
    for version in VERSIONS {
        let server = server(&[]);
        run(async |reactor, _| {
            let mount = mount(&reactor, &server, version, "").await;
            let other = Mount::connect(&reactor, &options(&server, version, ""), "other").await.unwrap();
            other.create_dirs(b"a/b").await.unwrap();
            other.close(other.open(b"a/b/f", &OpenFlags::CREATE).await.unwrap()).await.unwrap();
            let before = mount.counters().snapshot();
            for _ in 0..10 {
                mount.stat(b"a/b/f").await.unwrap();
            }
            // `a` and `b` once, `f` every time.
            let counted = mount.counters().snapshot().since(&before);
            assert_eq!((count(&counted, "LOOKUP"), total(&counted)), (12, 12), "{counted:?}");

            // The directory is replaced by another one of the same name.
            other.remove_tree(b"a").await.unwrap();
            other.create_dirs(b"a/b").await.unwrap();
            other.close(other.open(b"a/b/f", &OpenFlags::CREATE).await.unwrap()).await.unwrap();
            mount.stat(b"a/b/f").await.unwrap();
            mount.rename(b"a/b/f", b"a/g").await.unwrap();
            other.remove_tree(b"a").await.unwrap();
            let mut list = Vec::new();
            assert!(mount.readdir(b"a", &mut |entry| list.push(entry.fileid)).await.unwrap_err().is_absent());
            other.unmount().await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn data_in_pieces_and_their_end() {
    for (version, cache) in CASES {
        let server = server(&[]);
        run(async |reactor, _| {
            let mount = mount(&reactor, &server, version, &format!("&rsize=4096&wsize=1000{cache}")).await;
            assert_eq!((mount.limits().max_read, mount.limits().max_write), (4096, 1000));
            let flags = OpenFlags { read: true, ..OpenFlags::CREATE };
            let file = mount.open(b"f", &flags).await.unwrap();
            let data = pattern(100_001, 3);
            assert_eq!(mount.write(&file, &data, 0).await, Ok(100_001));
            mount.fsync(&file).await.unwrap();
            let counted = mount.counters().snapshot();
            assert_eq!(count(&counted, "WRITE"), 101);
            for (offset, len) in
                [(0, 100_001), (5, 4096), (4096, 90_000), (99_999, 5), (70_000, 200_000), (7, 0)]
            {
                let mut buffer = vec![0; len];
                let read = mount.read(&file, &mut buffer, offset as u64).await.unwrap();
                assert_eq!(read, len.min(data.len() - offset), "{offset} {len}");
                assert!(buffer[..read] == data[offset..offset + read], "{offset} {len}");
            }
            assert_eq!(mount.read(&file, &mut [0; 10], 200_000).await, Ok(0));
            assert_eq!(mount.read(&file, &mut vec![0; 50_000], 200_000).await, Ok(0));
            mount.truncate_file(&file, 10).await.unwrap();
            assert_eq!(mount.read(&file, &mut vec![0; 50_000], 0).await, Ok(10));
            mount.append(&file, b"end").await.unwrap();
            assert_eq!(mount.stat_file(&file).await.unwrap().size, 13);
            mount.close(file).await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn appends_of_one_mount_do_not_overwrite_each_other() {
    for (version, cache) in CASES {
        let server = server(&[]);
        run(async |reactor, _| {
            let mount = mount(&reactor, &server, version, cache).await;
            let flags = OpenFlags { append: true, truncate: false, ..OpenFlags::CREATE };
            let files = [mount.open(b"f", &flags).await.unwrap(), mount.open(b"f", &flags).await.unwrap()];
            let (one, two) = (b"one ", b"two ");
            let mut tasks: Vec<_> = (0..20)
                .map(|n: usize| {
                    let (mount, file) = (&mount, &files[n % 2]);
                    Box::pin(async move {
                        mount.write(file, if n.is_multiple_of(2) { one } else { two }, 0).await
                    })
                })
                .collect();
            std::future::poll_fn(|context| {
                tasks.retain_mut(|task| match task.as_mut().poll(context) {
                    std::task::Poll::Ready(result) => {
                        assert_eq!(result, Ok(4));
                        false
                    }
                    std::task::Poll::Pending => true,
                });
                if tasks.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
            drop(tasks);
            assert_eq!(mount.stat_file(&files[0]).await.unwrap().size, 80);
            for file in files {
                mount.close(file).await.unwrap();
            }
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn what_is_stable_and_what_is_committed() {
    for version in UNSTABLE {
        let server = server(&[]);
        run(async |reactor, _| {
            for (more, flags, committed) in [
                ("", OpenFlags::CREATE, true),
                ("&sync=file", OpenFlags::CREATE, false),
                ("&sync=data", OpenFlags::CREATE, false),
                ("", OpenFlags { sync: true, ..OpenFlags::CREATE }, false),
                ("", OpenFlags { dsync: true, ..OpenFlags::CREATE }, false),
                // Nothing may be kept.
                ("&unstable_limit=0", OpenFlags::CREATE, false),
            ] {
                let mount = mount(&reactor, &server, version, more).await;
                let file = mount.open(b"f", &flags).await.unwrap();
                for n in 0..4 {
                    mount.write(&file, &[1; 100], n * 100).await.unwrap();
                }
                mount.fsync(&file).await.unwrap();
                mount.fsync(&file).await.unwrap();
                let commits = count(&mount.counters().snapshot(), "COMMIT");
                assert_eq!(commits, u64::from(committed), "{version} {more} {flags:?}");
                mount.write(&file, b"x", 0).await.unwrap();
                mount.close(file).await.unwrap();
                let commits = count(&mount.counters().snapshot(), "COMMIT");
                assert_eq!(commits, 2 * u64::from(committed), "{version} {more} {flags:?}");
                mount.unmount().await.unwrap();
            }
            // What is kept has a limit: the mount commits on its own.
            let mount = mount(&reactor, &server, version, "&unstable_limit=1000").await;
            let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
            for n in 0..11 {
                mount.write(&file, &[1; 100], n * 100).await.unwrap();
            }
            assert_eq!(count(&mount.counters().snapshot(), "COMMIT"), 1);
            let other = mount.open(b"g", &OpenFlags::CREATE).await.unwrap();
            mount.write(&other, &[1; 950], 0).await.unwrap();
            mount.close(other).await.unwrap();
            // It was stable at once, because the other file's copies take the room.
            assert_eq!(count(&mount.counters().snapshot(), "COMMIT"), 1);
            mount.close(file).await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

/// The server stops, and comes back at the same place as if it had crashed when `kept` was saved: all that was written
/// since is lost.
fn crash(server: &mut Option<Server>, state: &Path, kept: &Path) {
    let address = server.as_ref().unwrap().address();
    drop(server.take());
    std::fs::copy(kept, state).unwrap();
    *server = Some(at(address, state));
}

fn at(address: SocketAddr, state: &Path) -> Server {
    server_with(&[], |config| {
        config.listen = address;
        config.state = Some(state.to_owned());
        // Nothing is reclaimed here: no need to wait for it.
        config.lease = std::time::Duration::from_secs(1);
    })
}

#[test]
fn unstable_data_survive_a_crash_of_the_server() {
    for version in UNSTABLE {
        let directory = tempfile::tempdir().unwrap();
        let [state, kept] = ["state", "kept"].map(|name| directory.path().join(name));
        let mut server = Some(at((Ipv4Addr::LOCALHOST, 0).into(), &state));
        run(async |reactor, _| {
            let first = mount(&reactor, server.as_ref().unwrap(), version, "&wsize=512").await;
            let address = server.as_ref().unwrap().address();
            first.close(first.open(b"f", &OpenFlags::CREATE).await.unwrap()).await.unwrap();
            // The server saves the empty file, and goes on.
            drop(server.take());
            std::fs::copy(&state, &kept).unwrap();
            server = Some(at(address, &state));

            let flags = OpenFlags { read: true, ..OpenFlags::WRITE };
            let file = first.open(b"f", &flags).await.unwrap();
            let data = pattern(10_000, 9);
            first.write(&file, &data, 0).await.unwrap();
            first.write(&file, b"over it", 3000).await.unwrap();
            crash(&mut server, &state, &kept);
            // Written to the server that came back, over what it lost.
            first.write(&file, b"new", 3002).await.unwrap();
            first.truncate_file(&file, 9000).await.unwrap();
            first.fsync(&file).await.unwrap();
            let mut wanted = data[..9000].to_vec();
            wanted[3000..3007].copy_from_slice(b"ovnewit");
            let mut found = vec![0; 20_000];
            assert_eq!(first.read(&file, &mut found, 0).await, Ok(9000));
            assert!(found[..9000] == wanted[..], "{version}");
            let counted = first.counters().snapshot();
            assert!(counted.event(Event::Rewritten) >= 18, "{counted:?}");

            // Nothing is left to write again.
            let before = counted;
            first.close(file).await.unwrap();
            let counted = first.counters().snapshot().since(&before);
            assert_eq!((count(&counted, "COMMIT"), count(&counted, "WRITE")), (0, 0));
            first.unmount().await.unwrap();
        });
    }
}

#[test]
fn buffers_survive_a_crash_of_the_server_as_they_were_written() {
    const SIZE: usize = 32 << 10;
    for (version, more) in [("3", ""), ("3", "&unstable_limit=256KiB"), ("4.1", ""), ("4.2", "&wsize=16KiB")]
    {
        // With a limit it commits before.
        let loses = !more.contains("limit");
        let directory = tempfile::tempdir().unwrap();
        let [state, kept] = ["state", "kept"].map(|name| directory.path().join(name));
        let mut server = Some(at((Ipv4Addr::LOCALHOST, 0).into(), &state));
        run(async |reactor, _| {
            let mount = mount(&reactor, server.as_ref().unwrap(), version, more).await;
            let address = server.as_ref().unwrap().address();
            mount.close(mount.open(b"f", &OpenFlags::CREATE).await.unwrap()).await.unwrap();
            drop(server.take());
            std::fs::copy(&state, &kept).unwrap();
            server = Some(at(address, &state));

            let flags = OpenFlags { read: true, ..OpenFlags::WRITE };
            let file = mount.open(b"f", &flags).await.unwrap();
            let (mut buffer, mut wanted) = (Buffer::new(SIZE), vec![0; 6 * SIZE]);
            // One buffer for all; each round leaves something of the one before, and small writes lie over it. What was lost is written
            // again by the first fsync, after which buffers are used a second time.
            for round in 0..3u64 {
                for place in 0..6 - 2 * round {
                    mount.renew(&mut buffer);
                    buffer.copy_from_slice(&pattern(SIZE, round * 100 + place));
                    let at = (place * 5 % 6) as usize * SIZE;
                    assert_eq!(mount.write_buffer(&file, &buffer, 0..SIZE, at as u64).await, Ok(SIZE));
                    wanted[at..at + SIZE].copy_from_slice(&buffer);
                    // Its owner goes on with it at once.
                    buffer.fill(0xee);
                    mount.write(&file, b"over it", at as u64 + 5000).await.unwrap();
                    wanted[at + 5000..at + 5007].copy_from_slice(b"over it");
                }
                if round == 0 && loses {
                    crash(&mut server, &state, &kept);
                }
                if round > 0 {
                    mount.fsync(&file).await.unwrap();
                    let mut found = vec![0; 7 * SIZE];
                    assert_eq!(mount.read(&file, &mut found, 0).await, Ok(wanted.len()));
                    assert!(found[..wanted.len()] == wanted[..], "{version} {more} {round}");
                }
            }
            let rewritten = mount.counters().snapshot().event(Event::Rewritten);
            assert_eq!(rewritten >= 10, loses, "{version} {more}: {rewritten}");
            mount.close(file).await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn a_server_that_never_commits_makes_no_more_be_kept() {
    const SIZE: usize = 32 << 10;
    for (version, error) in [("3", "NFS3ERR_IO"), ("4.1", "NFS4ERR_IO")] {
        let server = server(&[&format!("COMMIT error={error}")]);
        run(async |reactor, _| {
            let mount = mount(&reactor, &server, version, "&unstable_limit=128KiB").await;
            let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
            let mut buffer = Buffer::new(SIZE);
            let mut addresses = std::collections::BTreeSet::new();
            for number in 0..20 {
                mount.renew(&mut buffer);
                buffer.fill(number as u8);
                addresses.insert(buffer.as_ptr().addr());
                let written = mount.write_buffer(&file, &buffer, 0..SIZE, number * SIZE as u64).await;
                assert_eq!(written.is_ok(), number < 4, "{version} {number}: {written:?}");
            }
            // Four that are kept, and the one that could not be written.
            assert_eq!(addresses.len(), 5, "{version}");
            assert_eq!(mount.close(file).await.unwrap_err().errno(), libc::EIO);
            // What could not be made stable was given up with the file: there is room again.
            let file = mount.open(b"g", &OpenFlags::CREATE).await.unwrap();
            for number in 0..4 {
                mount.renew(&mut buffer);
                buffer.fill(1);
                mount.write_buffer(&file, &buffer, 0..SIZE, number * SIZE as u64).await.unwrap();
                addresses.insert(buffer.as_ptr().addr());
            }
            assert_eq!(addresses.len(), 5, "{version}: buffers are used again");
            mount.close(file).await.unwrap_err();
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn locks_of_open_files_and_of_mounts_exclude_each_other() {
    for (version, cache) in CASES {
        let server = server(&[]);
        run(async |reactor, _| {
            let mounts = [
                Mount::connect(&reactor, &options(&server, version, cache), "one").await.unwrap(),
                Mount::connect(&reactor, &options(&server, version, cache), "two").await.unwrap(),
            ];
            let flags = OpenFlags { truncate: false, read: true, ..OpenFlags::CREATE };
            let [first, second] = &mounts;
            let (a, b) = (first.open(b"f", &flags).await.unwrap(), second.open(b"f", &flags).await.unwrap());
            let c = first.open(b"f", &flags).await.unwrap();
            let range = Range { offset: 10, length: 10 };
            first.lock(&a, LockKind::Write, range, false).await.unwrap();
            for (mount, file) in [(first, &c), (second, &b)] {
                let refused = mount.lock(file, LockKind::Read, Range { offset: 19, length: 1 }, false).await;
                assert_eq!(refused.unwrap_err().errno(), libc::EAGAIN, "{version}");
                mount.lock(file, LockKind::Read, Range { offset: 20, length: 1 }, false).await.unwrap();
            }
            first.unlock(&a, range).await.unwrap();
            second.lock(&b, LockKind::Write, range, true).await.unwrap();
            second.unlock(&b, Range { offset: 0, length: 0 }).await.unwrap();
            first.unlock(&c, Range { offset: 0, length: 0 }).await.unwrap();
            for (mount, file) in [(first, a), (first, c), (second, b)] {
                mount.close(file).await.unwrap();
            }
            for mount in mounts {
                mount.unmount().await.unwrap();
            }
        });
    }
}

#[test]
fn what_cannot_be_mounted_says_why() {
    let server = server(&[]);
    run(async |reactor, _| {
        for version in VERSIONS {
            let failed = async |options: &MountOptions| -> MountError {
                Mount::connect(&reactor, options, "test").await.unwrap_err()
            };
            let mut wrong = options(&server, version, "&timeo=5s&retrans=0");
            wrong.export = b"/nothing".to_vec();
            let message = failed(&wrong).await.to_string();
            let place = format!("/nothing of NFS server 127.0.0.1:{}", server.address().port());
            assert!(message.contains(&place) && message.contains("check the path"), "{message}");

            let nobody = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = nobody.local_addr().unwrap().port();
            drop(nobody);
            wrong.port = Some(port);
            let message = failed(&wrong).await.to_string();
            assert!(message.contains(&format!("127.0.0.1:{port} cannot be reached")), "{message}");
            assert!(message.contains("start the server"), "{message}");
        }
        let mut wrong = options(&server, "4.1", "");
        wrong.host = "no-such-host.invalid".to_owned();
        let error = Mount::connect(&reactor, &wrong, "test").await.unwrap_err();
        assert!(error.to_string().contains("cannot resolve NFS server `no-such-host.invalid`"), "{error}");
    });
}

#[test]
fn version_4_2_copies_reserves_seeks_and_has_extended_attributes() {
    for cache in ["", "&cache=linux"] {
        let server = server(&[]);
        run(async |reactor, _| {
            let mount = mount(&reactor, &server, "4.2", cache).await;
            let flags = OpenFlags { create: true, ..OpenFlags::READ_WRITE };
            let file = mount.open(b"sparse", &flags).await.unwrap();
            assert_eq!(mount.seek_data(&file, 0).await, Ok(None), "there is nothing in a new file");
            let data = pattern(5000, 3);
            mount.write(&file, &data, 1 << 20).await.unwrap();
            let found = mount.seek_data(&file, 0).await.unwrap().unwrap();
            assert!(found > 0 && found <= 1 << 20, "{found}");
            assert_eq!(mount.seek_data(&file, 4 << 20).await, Ok(None));
            mount.allocate(&file, Range { offset: 0, length: 2 << 20 }).await.unwrap();
            assert_eq!(mount.stat_file(&file).await.unwrap().size, 2 << 20);
            mount.close(file).await.unwrap();

            assert_eq!(mount.copy(b"sparse", b"copy").await, Ok(2 << 20));
            let copy = mount.open(b"copy", &OpenFlags::READ).await.unwrap();
            let mut read = vec![1; 5001];
            assert_eq!(mount.read(&copy, &mut read, 1 << 20).await, Ok(5001));
            assert!(read[..5000] == data[..] && read[5000] == 0, "the copy has what was written");
            mount.close(copy).await.unwrap();

            mount.set_xattr(b"copy", b"colour", b"green").await.unwrap();
            mount.set_xattr(b"copy", b"colour", b"blue").await.unwrap();
            mount.set_xattr(b"copy", b"shape", b"").await.unwrap();
            assert_eq!(mount.get_xattr(b"copy", b"colour").await.unwrap(), b"blue");
            let mut names = Vec::new();
            mount.list_xattrs(b"copy", &mut |name| names.push(name.to_vec())).await.unwrap();
            names.sort();
            assert_eq!(names, [&b"colour"[..], b"shape"]);
            mount.remove_xattr(b"copy", b"colour").await.unwrap();
            let gone = mount.get_xattr(b"copy", b"colour").await.unwrap_err();
            assert_eq!(gone.errno(), libc::ENODATA);
            mount.unmount().await.unwrap();
        });
    }
}
