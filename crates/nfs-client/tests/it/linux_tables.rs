//! The operations per client that papers 000 and 001 print, counted with the cache of the Linux client against the
//! embedded server, over sockets. What differs is said in docs/papers.md.

use std::time::{Duration, Instant};

use benchmaster_nfs_client::counters::{Event, Snapshot};
use benchmaster_nfs_client::mount::{File, Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server_with};

const WHOLE: Range = Range { offset: 0, length: 0 };
/// What counts apart in the papers' tables.
const PRINTED: [&str; 11] = [
    "OPEN",
    "READ",
    "CLOSE",
    "ACCESS",
    "GETATTR",
    "LOCK",
    "LOCKU",
    "LOOKUP",
    "FREE_STATEID",
    "DELEGRETURN",
    "OPEN_NOATTR",
];

/// A server whose times have a granularity of one second, as the papers' had.
fn coarse() -> Server {
    server_with(&[], |config| config.change_granularity = Some(Duration::from_secs(1)))
}

async fn mount(reactor: &Reactor, server: &Server, options: &str, identity: &str) -> Mount {
    let port = server.address().port();
    // The papers' minute, so long that it does not end within the test on a busy host: what expires is asked for again.
    let url = format!("nfs://127.0.0.1:{port}/export?cache=linux&actimeo=3600&{options}");
    let options: MountOptions = url.parse().unwrap();
    Mount::connect(reactor, &options, identity).await.unwrap()
}

fn path(directory: &str, file: usize) -> Vec<u8> {
    format!("bench/{directory}/{file:06}").into_bytes()
}

/// Files of 4 KB in directories, made by a client without cache.
async fn prepare(reactor: &Reactor, server: &Server, directories: &[&str], files: usize) {
    let url = format!("nfs://127.0.0.1:{}/export?sync=file", server.address().port());
    let mount = Mount::connect(reactor, &url.parse().unwrap(), "prepare").await.unwrap();
    for directory in directories {
        mount.create_dirs(format!("bench/{directory}").as_bytes()).await.unwrap();
        for file in 0..files {
            let open = mount.open(&path(directory, file), &OpenFlags::CREATE).await.unwrap();
            mount.write(&open, &[file as u8; 4096], 0).await.unwrap();
            mount.close(open).await.unwrap();
        }
    }
    mount.unmount().await.unwrap();
}

/// What was counted under the printed names.
fn printed(counted: &Snapshot) -> [u64; 11] {
    PRINTED.map(|name| {
        let nlm = match name {
            "LOCKU" => "UNLOCK",
            name => name,
        };
        let of_name = counted.ops().filter(|(op, _)| match op.program() {
            "NLM" => op.name() == nlm,
            program => program.starts_with("NFS") && op.name() == name,
        });
        of_name.map(|(_, counters)| counters.ops).sum()
    })
}

async fn read_locked(mount: &Mount, file: &File, byte: u8) {
    let mut data = [0; 4096];
    mount.lock(file, LockKind::Read, WHOLE, true).await.unwrap();
    assert_eq!(mount.read(file, &mut data, 0).await, Ok(4096));
    assert!(data == [byte; 4096]);
    mount.unlock(file, WHOLE).await.unwrap();
}

/// Paper 000 §5.2: each file opened once, then ten times locked, read and unlocked, then closed.
async fn locked_read(mount: &Mount, directory: &str, files: usize) {
    for number in 0..files {
        let file = mount.open(&path(directory, number), &OpenFlags::READ).await.unwrap();
        for _ in 0..10 {
            read_locked(mount, &file, number as u8).await;
        }
        mount.close(file).await.unwrap();
    }
}

/// Paper 001: each file ten times opened, locked, read, unlocked and closed.
async fn reopened_read(mount: &Mount, directory: &str, files: usize) {
    for number in 0..files {
        for _ in 0..10 {
            let file = mount.open(&path(directory, number), &OpenFlags::READ).await.unwrap();
            read_locked(mount, &file, number as u8).await;
            mount.close(file).await.unwrap();
        }
    }
}

/// As many as in the papers take minutes without optimisation, and the counts are per file.
const FILES: usize = if cfg!(debug_assertions) { 200 } else { 1000 };

#[test]
fn paper_000_table_1() {
    const N: u64 = FILES as u64;
    let server = coarse();
    run(async |reactor, _| {
        let directories = ["c0"];
        prepare(&reactor, &server, &directories, FILES).await;
        for (delegations, wanted) in [
            ("off", [N, 10 * N, N, 3, 10 * N + 1, 10 * N, 10 * N, 2, 10 * N, 0, 0]),
            // What the paper proposes: GETATTR within LOCK, FREE_STATEID within LOCKU.
            ("off&append_to_locks=on", [N, 10 * N, N, 3, 1, 10 * N, 10 * N, 2, 0, 0, 0]),
            ("on", [N, N, N, 3, 1, 0, 0, 2, 0, 0, 0]),
        ] {
            let options = format!("version=4.1&delegations={delegations}");
            for directory in directories {
                let mount = mount(&reactor, &server, &options, directory).await;
                locked_read(&mount, directory, FILES).await;
                // With those of mounting, as mountstats has them.
                let counted = mount.counters().snapshot();
                assert_eq!(printed(&counted), wanted, "{PRINTED:?} {delegations}: {counted:?}");
                let granted = counted.event(Event::DelegationGranted);
                assert_eq!(granted, if delegations == "on" { N } else { 0 });
                mount.unmount().await.unwrap();
            }
        }
    });
}

#[test]
fn paper_001_table_2() {
    const N: u64 = FILES as u64;
    let server = coarse();
    run(async |reactor, _| {
        prepare(&reactor, &server, &["shared"], FILES).await;
        for (options, wanted) in [
            ("version=3", [0, 10 * N, 0, 10 * N + 3, 19 * N + 1, 10 * N, 10 * N, N + 2, 0, 0, 0]),
            (
                "version=4.1&delegations=off",
                [10 * N, 10 * N, 10 * N, 9 * N + 3, 19 * N + 1, 10 * N, 10 * N, 2, 10 * N, 0, 0],
            ),
            ("version=4.1&delegations=on", [N, N, N, 3, 1, 0, 0, 2, 0, 0, 0]),
        ] {
            let mount = mount(&reactor, &server, options, "client").await;
            reopened_read(&mount, "shared", FILES).await;
            let counted = mount.counters().snapshot();
            assert_eq!(printed(&counted), wanted, "{PRINTED:?} {options}: {counted:?}");
            mount.unmount().await.unwrap();
        }
    });
}

/// Files per recall experiment: each takes 0.1 s, as in the paper (1,000 files: 100 s).
const RECALLED: usize = 12;

async fn recall(
    reactor: &Reactor,
    server: &Server,
    directory: &str,
    delegations: &str,
    holders: usize,
) -> ([u64; 11], [u64; 11]) {
    let n = RECALLED as u64;
    let options = format!("version=4.1&delegations={delegations}");
    let mut group = Vec::new();
    for holder in 0..holders {
        let mount = mount(reactor, server, &options, &format!("holder {holder}")).await;
        let mut files = Vec::new();
        for number in 0..RECALLED {
            files.push(mount.open(&path(directory, number), &OpenFlags::READ).await.unwrap());
        }
        group.push((mount, files));
    }
    let other = mount(reactor, server, &options, "recaller").await;
    let before = other.counters().snapshot();
    let began = Instant::now();
    for number in 0..RECALLED {
        let file = other.open(&path(directory, number), &OpenFlags::READ_WRITE).await.unwrap();
        other.close(file).await.unwrap();
    }
    let took = began.elapsed();
    let recalling = other.counters().snapshot().since(&before);
    if delegations == "on" {
        assert!(took >= Duration::from_millis(100) * RECALLED as u32, "{took:?} {recalling:?}");
        // Each first OPEN is refused; on a busy host a second one may come before the delegations are back too.
        let delays = recalling.event(Event::Delay);
        assert!((n..2 * n).contains(&delays), "{delays}");
        assert_eq!(printed(&recalling)[0], n + delays);
    }
    let mut holding = None;
    for (mount, files) in group {
        // What was open is still open.
        for (number, file) in files.into_iter().enumerate() {
            let mut data = [0; 4096];
            assert_eq!(mount.read(&file, &mut data, 0).await, Ok(4096));
            assert!(data == [number as u8; 4096]);
            if number == 0 {
                let counted = mount.counters().snapshot();
                assert_eq!(counted.event(Event::DelegationRecalled), if delegations == "on" { n } else { 0 });
                let mut counts = printed(&counted);
                // The READ just made.
                counts[1] -= 1;
                assert!(holding.is_none_or(|other| other == counts));
                holding = Some(counts);
            }
            mount.close(file).await.unwrap();
        }
        mount.unmount().await.unwrap();
    }
    other.unmount().await.unwrap();
    (holding.unwrap(), printed(&recalling))
}

#[test]
fn paper_000_tables_2_and_3() {
    let n = RECALLED as u64;
    let server = coarse();
    run(async |reactor, _| {
        // A file is not delegated again for some time after a recall: every case has its own.
        let directories = ["a", "b", "c"];
        prepare(&reactor, &server, &directories, RECALLED).await;
        let of = |counts: [u64; 11], name: &str| counts[PRINTED.iter().position(|n| *n == name).unwrap()];
        for (directory, (delegations, holders)) in directories.iter().zip([("off", 1), ("on", 1), ("on", 4)])
        {
            let (holding, recalling) = recall(&reactor, &server, directory, delegations, holders).await;
            let on = u64::from(delegations == "on");
            let held = ["OPEN", "DELEGRETURN", "OPEN_NOATTR"].map(|name| of(holding, name));
            assert_eq!(held, [n, on * n, on * n], "{delegations} {holders}");
            // The first OPEN of each file is answered with DELAY.
            assert!(of(recalling, "OPEN") >= n + on * n, "{delegations} {holders}");
        }
    });
}
