//! Mounts, with and without cache, while the server is slow, asks for patience, loses replies and closes connections: what
//! is at the end on the server is what was done.

use std::collections::BTreeMap;

use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::Server;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::support::embedded::{run, server_with};
use crate::support::futures::all;

const TASKS: usize = 4;
/// Largest file.
const SPACE: usize = 40_000;

/// One step of a task on one of its files.
#[derive(Debug, Clone)]
enum Step {
    Write { file: u8, at: usize, len: usize },
    Append { file: u8, len: usize },
    Read { file: u8 },
    Sync { file: u8 },
    Locked { file: u8, at: usize, len: usize },
    Cut { file: u8, size: usize },
    Reopen { file: u8 },
    Remove { file: u8 },
    Rename { file: u8, to: u8 },
    Stat { file: u8 },
}

const FILES: u8 = 3;

fn step() -> impl Strategy<Value = Step> {
    let file = || 0..FILES;
    let (at, len) = (0..SPACE / 2, 1..SPACE / 2);
    prop_oneof![
        6 => (file(), at.clone(), len.clone()).prop_map(|(file, at, len)| Step::Write { file, at, len }),
        2 => (file(), 1..5000usize).prop_map(|(file, len)| Step::Append { file, len }),
        4 => file().prop_map(|file| Step::Read { file }),
        2 => file().prop_map(|file| Step::Sync { file }),
        2 => (file(), at, len).prop_map(|(file, at, len)| Step::Locked { file, at, len }),
        1 => (file(), 0..SPACE).prop_map(|(file, size)| Step::Cut { file, size }),
        3 => file().prop_map(|file| Step::Reopen { file }),
        1 => file().prop_map(|file| Step::Remove { file }),
        1 => (file(), file()).prop_map(|(file, to)| Step::Rename { file, to }),
        2 => file().prop_map(|file| Step::Stat { file }),
    ]
}

/// What a server may do to requests without failing them.
fn rules() -> impl Strategy<Value = Vec<String>> {
    let rule = prop_oneof![
        Just("* delay=1ms p=0.1".to_owned()),
        Just("READ delay=3ms p=0.3".to_owned()),
        Just("WRITE drop-reply p=0.05 count=3".to_owned()),
        Just("COMMIT disconnect p=0.2 count=3".to_owned()),
        Just("* disconnect p=0.01 count=5".to_owned()),
        Just("GETATTR error=NFS4ERR_DELAY p=0.1".to_owned()),
        Just("WRITE error=NFS4ERR_DELAY p=0.1".to_owned()),
        Just("OPEN error=NFS4ERR_DELAY p=0.1".to_owned()),
        Just("READ error=NFS3ERR_JUKEBOX p=0.1".to_owned()),
        Just("LOOKUP error=NFS3ERR_JUKEBOX p=0.1".to_owned()),
    ];
    proptest::collection::vec(rule, 0..4)
}

fn path(task: usize, file: u8) -> Vec<u8> {
    format!("dir {task}/file {file}").into_bytes()
}

fn content(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 13 + seed * 101 + 1) as u8).collect()
}

/// Does the steps, each of which must succeed, and returns what the files must contain.
async fn work(mount: &Mount, task: usize, steps: &[Step]) -> BTreeMap<u8, Vec<u8>> {
    let mut wanted: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    let mut open = BTreeMap::new();
    let flags = OpenFlags { read: true, truncate: false, ..OpenFlags::CREATE };
    for (number, step) in steps.iter().enumerate() {
        let (Step::Write { file, .. }
        | Step::Append { file, .. }
        | Step::Read { file }
        | Step::Sync { file }
        | Step::Locked { file, .. }
        | Step::Cut { file, .. }
        | Step::Reopen { file }
        | Step::Remove { file }
        | Step::Rename { file, .. }
        | Step::Stat { file }) = *step;
        let path = |file| path(task, file);
        #[allow(clippy::map_entry, reason = "the file is opened in between")]
        if !open.contains_key(&file) {
            open.insert(file, mount.open(&path(file), &flags).await.unwrap());
            wanted.entry(file).or_default();
        }
        let (handle, model) = (&open[&file], wanted.get_mut(&file).unwrap());
        let put = |model: &mut Vec<u8>, at: usize, data: &[u8]| {
            model.resize(model.len().max(at + data.len()), 0);
            model[at..at + data.len()].copy_from_slice(data);
        };
        match *step {
            Step::Write { at, len, .. } => {
                let data = content(number, len);
                assert_eq!(mount.write(handle, &data, at as u64).await, Ok(len));
                put(model, at, &data);
            }
            Step::Append { len, .. } => {
                let data = content(number, len);
                assert_eq!(mount.append(handle, &data).await, Ok(len));
                model.extend_from_slice(&data);
            }
            Step::Read { .. } => {
                let mut data = vec![0; 3 * SPACE];
                let read = mount.read(handle, &mut data, 0).await.unwrap();
                assert!(data[..read] == model[..], "{task} {number} {step:?}: {read} {}", model.len());
            }
            Step::Sync { .. } => mount.fsync(handle).await.unwrap(),
            Step::Locked { at, len, .. } => {
                let range = Range { offset: at as u64, length: len as u64 };
                mount.lock(handle, LockKind::Write, range, true).await.unwrap();
                let data = content(number, len);
                mount.write(handle, &data, at as u64).await.unwrap();
                put(model, at, &data);
                mount.unlock(handle, range).await.unwrap();
            }
            Step::Cut { size, .. } => {
                mount.truncate_file(handle, size as u64).await.unwrap();
                model.resize(size, 0);
            }
            Step::Reopen { .. } => {
                mount.close(open.remove(&file).unwrap()).await.unwrap();
                open.insert(file, mount.open(&path(file), &flags).await.unwrap());
            }
            Step::Remove { .. } => {
                mount.close(open.remove(&file).unwrap()).await.unwrap();
                mount.remove(&path(file)).await.unwrap();
                assert!(mount.stat(&path(file)).await.unwrap_err().is_absent());
                wanted.remove(&file);
            }
            Step::Rename { to, .. } => {
                for file in [file, to] {
                    if let Some(handle) = open.remove(&file) {
                        mount.close(handle).await.unwrap();
                    }
                }
                mount.rename(&path(file), &path(to)).await.unwrap();
                let moved = wanted.remove(&file).unwrap();
                wanted.insert(to, moved);
            }
            Step::Stat { .. } => {
                // Without a cache what is not committed counts as well.
                assert_eq!(
                    mount.stat(&path(file)).await.unwrap().size,
                    model.len() as u64,
                    "{task} {number}"
                );
            }
        }
    }
    for (_, handle) in open {
        mount.close(handle).await.unwrap();
    }
    wanted
}

async fn connect(reactor: &Reactor, server: &Server, options: &str) -> Mount {
    let url = format!("nfs://127.0.0.1:{}/export?{options}", server.address().port());
    Mount::connect(reactor, &url.parse().unwrap(), "test").await.unwrap()
}

/// Runs the tasks' steps, and looks with a client of its own whether all is there.
fn check(options: &str, rules: &[String], steps: &[Vec<Step>]) {
    let rules: Vec<&str> = rules.iter().map(|rule| &**rule).collect();
    let server = server_with(&rules, |config| config.write_delegations = options.contains("linux"));
    run(async |reactor, _| {
        // A reply that does not come is asked for again soon.
        let options = format!("{options}&rsize=8KiB&wsize=8KiB&timeo=200ms&retrans=50&delay_initial=1ms");
        let mount = connect(&reactor, &server, &options).await;
        for task in 0..steps.len() {
            mount.create_dirs(format!("dir {task}").as_bytes()).await.unwrap();
        }
        let tasks = steps.iter().enumerate().map(|(task, steps)| work(&mount, task, steps));
        let wanted = all(tasks).await;
        let other = connect(&reactor, &server, "version=4.2&timeo=200ms&retrans=50&delay_initial=1ms").await;
        for (task, files) in wanted.iter().enumerate() {
            let mut names = Vec::new();
            let directory = format!("dir {task}");
            other.readdir(directory.as_bytes(), &mut |entry| names.push(entry.name.to_vec())).await.unwrap();
            names.sort();
            let expected: Vec<_> = files.keys().map(|file| format!("file {file}").into_bytes()).collect();
            assert_eq!(names, expected);
            for (file, content) in files {
                let file = other.open(&path(task, *file), &OpenFlags::READ).await.unwrap();
                let mut data = vec![0; 3 * SPACE];
                let read = other.read(&file, &mut data, 0).await.unwrap();
                assert!(data[..read] == content[..], "{task}: {read} {}", content.len());
                other.close(file).await.unwrap();
            }
        }
        other.unmount().await.unwrap();
        mount.unmount().await.unwrap();
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn what_was_done_is_there(
        options in proptest::sample::select(vec![
            "version=3",
            "version=4.0",
            "version=4.1",
            "version=4.2&nconnect=2&slots=2",
            "version=4.1&unstable_limit=20000",
            "version=3&cache=linux",
            "version=4.0&cache=linux",
            "version=4.1&cache=linux",
            "version=4.1&cache=linux&delegations=off",
            "version=4.2&cache=linux&actimeo=0",
        ]),
        rules in rules(),
        steps in proptest::collection::vec(proptest::collection::vec(step(), 1..25), TASKS),
    ) {
        check(options, &rules, &steps);
    }
}

#[test]
fn every_kind_of_mount_without_faults() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for options in ["version=3", "version=4.1", "version=3&cache=linux", "version=4.1&cache=linux"] {
        for _ in 0..4 {
            let steps = proptest::collection::vec(proptest::collection::vec(step(), 25), TASKS);
            let steps = steps.new_tree(&mut runner).unwrap().current();
            check(options, &[], &steps);
        }
    }
}
