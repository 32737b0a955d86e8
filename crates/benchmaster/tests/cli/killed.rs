//! A server with `--durability`, killed in the middle of work: what it acknowledged is there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::Command;
use std::task::Poll;

use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::Entry;
use rustix::process::Signal;

use crate::place::{PROGRAM, Place, Running};
use crate::serve::serve;

const TASKS: usize = 4;

/// SplitMix64.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// What a task did, as far as it was acknowledged.
#[derive(Default)]
struct Done {
    files: BTreeMap<String, Vec<u8>>,
    /// Names that a change under way concerns: it is made or not.
    open: Vec<String>,
}

fn connect<'m>(
    reactor: &'m Reactor,
    address: SocketAddr,
    options: &str,
) -> impl Future<Output = Mount> + use<'m> {
    let url =
        format!("nfs://127.0.0.1:{}/export?{options}&wsize=4KiB&timeo=200ms&retrans=50", address.port());
    let options = url.parse().unwrap();
    async move { Mount::connect(reactor, &options, "killed").await.unwrap() }
}

/// Creates, writes, commits, renames, truncates and removes files of its own, without end.
async fn work(mount: &Mount, task: usize, mut dice: Dice, done: &RefCell<Done>, count: &Cell<u64>) {
    let path = |name: &str| format!("task {task}/{name}").into_bytes();
    mount.create_dirs(format!("task {task}").as_bytes()).await.unwrap();
    loop {
        let name = format!("file {}", dice.below(5));
        let other = format!("file {}", dice.below(5));
        done.borrow_mut().open = vec![name.clone(), other.clone()];
        let known = done.borrow().files.contains_key(&name);
        match dice.below(6) {
            0 if known => {
                mount.remove(&path(&name)).await.unwrap();
                done.borrow_mut().files.remove(&name);
            }
            1 if known && name != other => {
                mount.rename(&path(&name), &path(&other)).await.unwrap();
                let mut done = done.borrow_mut();
                let content = done.files.remove(&name).unwrap();
                done.files.insert(other, content);
            }
            2 if known => {
                let size = dice.below(9000) as usize;
                mount.truncate(&path(&name), size as u64).await.unwrap();
                done.borrow_mut().files.get_mut(&name).unwrap().resize(size, 0);
            }
            what => {
                let sync = what == 3;
                let flags = OpenFlags { truncate: false, sync, ..OpenFlags::CREATE };
                let file = mount.open(&path(&name), &flags).await.unwrap();
                let (at, len) = (dice.below(20_000) as usize, 1 + dice.below(30_000) as usize);
                let byte = 1 + dice.below(255) as u8;
                assert_eq!(mount.write(&file, &vec![byte; len], at as u64).await, Ok(len));
                mount.fsync(&file).await.unwrap();
                mount.close(file).await.unwrap();
                let mut done = done.borrow_mut();
                let content = done.files.entry(name).or_default();
                content.resize(content.len().max(at + len), 0);
                content[at..at + len].fill(byte);
            }
        }
        done.borrow_mut().open.clear();
        count.set(count.get() + 1);
    }
}

/// What differs between what was acknowledged to a task and what is there.
async fn difference(mount: &Mount, task: usize, done: &Done) -> Option<String> {
    let directory = format!("task {task}");
    let mut names = Vec::new();
    let list = &mut |entry: &Entry<'_>| names.push(String::from_utf8(entry.name.to_vec()).unwrap());
    if mount.readdir(directory.as_bytes(), list).await.is_err() {
        return (!done.files.is_empty()).then(|| format!("{directory} is gone"));
    }
    for name in names.iter().filter(|name| !done.open.contains(name)) {
        let Some(expected) = done.files.get(name) else { return Some(format!("{directory}/{name} is back")) };
        let file = mount.open(format!("{directory}/{name}").as_bytes(), &OpenFlags::READ).await.unwrap();
        let mut data = vec![0; 60_000];
        let read = mount.read(&file, &mut data, 0).await.unwrap();
        mount.close(file).await.unwrap();
        if data[..read] != expected[..] {
            let at = data[..read].iter().zip(expected).position(|(found, expected)| found != expected);
            return Some(format!("{directory}/{name}: {read} bytes of {}, wrong at {at:?}", expected.len()));
        }
    }
    let lost = done.files.keys().find(|name| !names.contains(name) && !done.open.contains(name));
    lost.map(|name| format!("{directory}/{name} is gone"))
}

/// Kills a server after some changes, starts it again, and says what is not there; some times in a row.
fn killed(options: &str, durability: &str, rules: &[&str], seed: u64, cuts: usize) -> Option<String> {
    println!("{options} --durability {durability} {rules:?}, seed {seed}");
    let place = Place::new();
    let mut arguments = vec!["--state", "state", "--durability", durability, "--lease", "1s"];
    arguments.extend(rules.iter().flat_map(|rule| ["--inject", rule]));
    let mut dice = Dice(seed);
    let tasks: Vec<RefCell<Done>> = (0..TASKS).map(|_| RefCell::default()).collect();
    for cut in 0..cuts {
        let (mut running, address) = serve(&place, &arguments);
        let reactor = Reactor::new().unwrap();
        let limit = 5 + dice.below(60);
        reactor
            .block_on(async {
                let mount = connect(&reactor, address, options).await;
                let count = Cell::new(0);
                let mut working: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
                for (task, done) in tasks.iter().enumerate() {
                    let dice = Dice(dice.below(u64::MAX));
                    working.push(Box::pin(work(&mount, task, dice, done, &count)));
                }
                poll_fn(|context| {
                    for task in &mut working {
                        let _ = task.as_mut().poll(context);
                    }
                    if count.get() >= limit { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                running.child.kill().unwrap();
            })
            .unwrap();
        running.end();
        let (running, address) = serve(&place, &arguments);
        let reactor = Reactor::new().unwrap();
        let found = reactor
            .block_on(async {
                let mount = connect(&reactor, address, "version=3").await;
                for (task, done) in tasks.iter().enumerate() {
                    let was = done.take();
                    if let Some(found) = difference(&mount, task, &was).await {
                        return Some(format!("cut {cut}: {found}"));
                    }
                    // What came of a change that was under way is known only now.
                    if was.open.is_empty() {
                        done.replace(was);
                    } else {
                        mount.remove_tree(format!("task {task}").as_bytes()).await.unwrap();
                    }
                }
                None
            })
            .unwrap();
        // Orderly or not, the next start has it all.
        if dice.below(2) == 0 {
            running.signal(Signal::TERM);
            assert_eq!(running.end().0.code(), Some(0));
        }
        if found.is_some() {
            return found;
        }
    }
    None
}

#[test]
fn what_was_acknowledged_is_there_after_kill_9() {
    for (options, durability, seed) in
        [("version=3", "process", 1), ("version=4.0", "process", 2), ("version=4.1", "power", 3)]
    {
        assert_eq!(killed(options, durability, &[], seed, 2), None, "{options}, seed {seed}");
    }
}

#[test]
#[ignore = "full tier: hundreds of starts"]
fn what_was_acknowledged_is_there_after_many_kills() {
    for seed in 100..110 {
        for (options, durability) in [
            ("version=3", "process"),
            ("version=4.0", "power"),
            ("version=4.1", "process"),
            ("version=4.2&cache=linux", "process"),
        ] {
            assert_eq!(killed(options, durability, &[], seed, 6), None, "{options}, seed {seed}");
        }
    }
}

#[test]
fn a_lie_is_found_after_kill_9() {
    for rules in [&["COMMIT lie"][..], &["WRITE lie"]] {
        let found = (0..5).find_map(|seed| killed("version=3", "process", rules, seed, 1));
        assert!(found.is_some(), "{rules:?}");
    }
}

#[test]
fn a_full_disk_refuses_changes_and_the_server_goes_on() {
    let place = Place::new();
    // The largest file may have 2 MiB; the signal that tells of it is ignored.
    let script =
        r#"trap "" XFSZ; ulimit -f 4096; exec "$0" serve --listen 0 --state state --durability process"#;
    let mut command = Command::new("sh");
    place.surround(&mut command);
    let mut running = Running::start({
        command.args(["-c", script, PROGRAM]);
        command
    });
    let line = running.wait_for("serving ");
    let address = line.rsplit(' ').next().unwrap().parse().unwrap();
    let reactor = Reactor::new().unwrap();
    reactor
        .block_on(async {
            let mount = connect(&reactor, address, "version=4.1").await;
            let small = mount.open(b"small", &OpenFlags { read: true, ..OpenFlags::CREATE }).await.unwrap();
            mount.write(&small, b"text", 0).await.unwrap();
            mount.fsync(&small).await.unwrap();
            let large = mount.open(b"large", &OpenFlags::CREATE).await.unwrap();
            let written = mount.write(&large, &vec![1; 8 << 20], 0).await;
            let synced = mount.fsync(&large).await;
            let error = written.err().or(synced.err()).unwrap();
            assert_eq!(error.errno(), libc::ENOSPC, "{error:?}");
            let mut buffer = [0; 10];
            assert_eq!(mount.read(&small, &mut buffer, 0).await, Ok(4));
        })
        .unwrap();
    running.child.kill().unwrap();
    let (_, _, err) = running.end();
    assert_eq!(err.matches("no room for the log").count(), 1, "{err}");
    let (_running, address) = serve(&place, &["--state", "state"]);
    let reactor = Reactor::new().unwrap();
    reactor
        .block_on(async {
            let mount = connect(&reactor, address, "version=3").await;
            assert_eq!(mount.stat(b"small").await.unwrap().size, 4);
        })
        .unwrap();
}

#[test]
fn durability_needs_a_place() {
    let place = Place::new();
    let output = place.command(&["serve", "--durability", "process"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--state"));
}
