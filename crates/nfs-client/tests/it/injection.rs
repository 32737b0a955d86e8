//! Whatever a server does to requests and replies, and when it restarts: every operation ends, and what it says is true.
//!
//! Tasks work on files of their own and keep a model of them; together they count under a lock. Under everything that a
//! client can mend, no operation may fail, and content, names and the count are the model's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_client::counters::Event;
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::mount::{File, Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::{Server, ServerConfig};
use proptest::prelude::*;

use crate::support::embedded::{run, server};
use crate::support::futures::all;

const TASKS: u64 = 4;
const LARGEST: usize = 40_000;
const ALL: Range = Range { offset: 0, length: 0 };

/// How a task ended: what failed, and why.
type End = Result<(), (&'static str, NfsError)>;

/// What the server does, and when it restarts.
#[derive(Debug, Clone)]
struct Plan {
    version: &'static str,
    nconnect: u32,
    rules: Vec<String>,
    /// After so many operations of all tasks.
    restarts: Vec<u64>,
    keeps_state: bool,
    operations: u64,
    seed: u64,
}

/// Random numbers of a task.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % limit
    }
}

struct World {
    plan: Plan,
    server: RefCell<Option<Server>>,
    address: Cell<Option<SocketAddr>>,
    state: tempfile::TempDir,
    done: Cell<u64>,
    restarts: Cell<usize>,
    counted: Cell<u64>,
}

impl World {
    fn new(plan: Plan) -> Self {
        let world = Self {
            plan,
            server: RefCell::new(None),
            address: Cell::new(None),
            state: tempfile::tempdir().unwrap(),
            done: Cell::new(0),
            restarts: Cell::new(0),
            counted: Cell::new(0),
        };
        world.start();
        world
    }

    fn start(&self) {
        let state = self.plan.keeps_state.then(|| self.state.path().join("state"));
        let config = ServerConfig {
            listen: self.address.get().unwrap_or_else(|| "127.0.0.1:0".parse().unwrap()),
            threads: 2,
            // Also the grace period. A busy machine may not let us renew a short one in time.
            lease: Duration::from_secs(if self.plan.restarts.is_empty() { 60 } else { 2 }),
            rules: self.plan.rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            seed: self.plan.seed + self.restarts.get() as u64,
            state,
            ..ServerConfig::default()
        };
        let server = Server::start(config).unwrap();
        self.address.set(Some(server.address()));
        *self.server.borrow_mut() = Some(server);
    }

    fn keeps_files(&self) -> bool {
        self.plan.keeps_state || self.plan.restarts.is_empty()
    }

    /// An operation was done: the server restarts if it is time.
    fn tick(&self) {
        let done = self.done.get() + 1;
        self.done.set(done);
        if self.plan.restarts.get(self.restarts.get()).is_some_and(|&at| at <= done) {
            self.restarts.set(self.restarts.get() + 1);
            self.server.take().unwrap().stop().unwrap();
            self.start();
        }
    }

    fn options(&self) -> MountOptions {
        let Plan { version, nconnect, .. } = &self.plan;
        let address = self.address.get().unwrap();
        let more = "timeo=200ms&retrans=60&delay_initial=2ms&delay_longest=30ms&slots=8";
        format!("nfs://{address}/export?version={version}&nconnect={nconnect}&{more}").parse().unwrap()
    }
}

/// One task: its files as they must be.
struct Task<'w> {
    world: &'w World,
    mount: &'w Mount,
    directory: String,
    draw: Draw,
    files: BTreeMap<String, Vec<u8>>,
    names: u64,
}

impl Task<'_> {
    fn path(&self, name: &str) -> Vec<u8> {
        format!("{}/{name}", self.directory).into_bytes()
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("f{}", self.names)
    }

    fn some_name(&mut self) -> Option<String> {
        let at = self.draw.below(self.files.len().max(1) as u64) as usize;
        self.files.keys().nth(at).cloned()
    }

    async fn all(&mut self) -> End {
        for _ in 0..self.world.plan.operations {
            self.one().await?;
            self.world.tick();
        }
        Ok(())
    }

    async fn one(&mut self) -> End {
        let kind = self.draw.below(10);
        let Some(name) = self.some_name().filter(|_| kind > 1) else {
            return self.create().await.map_err(|e| ("create", e));
        };
        let path = self.path(&name);
        match kind {
            2 | 3 => self.write(&name).await.map_err(|e| ("write", e)),
            4 => self.read(&name).await.map_err(|e| ("read", e)),
            5 => {
                let to = self.new_name();
                self.mount.rename(&path, &self.path(&to)).await.map_err(|e| ("rename", e))?;
                let content = self.files.remove(&name).unwrap();
                self.files.insert(to, content);
                Ok(())
            }
            6 => {
                self.mount.remove(&path).await.map_err(|e| ("remove", e))?;
                self.files.remove(&name);
                Ok(())
            }
            7 => {
                let attributes = self.mount.stat(&path).await.map_err(|e| ("stat", e))?;
                assert_eq!(attributes.size, self.files[&name].len() as u64, "size of {name}");
                Ok(())
            }
            8 => {
                let directory = format!("{}/d{}", self.directory, self.names);
                self.mount.mkdir(directory.as_bytes(), 0o755).await.map_err(|e| ("mkdir", e))?;
                self.mount.rmdir(directory.as_bytes()).await.map_err(|e| ("rmdir", e))
            }
            _ => self.count().await.map_err(|e| ("count under a lock", e)),
        }
    }

    async fn create(&mut self) -> Result<(), NfsError> {
        let name = self.new_name();
        let flags = OpenFlags { exclusive: true, ..OpenFlags::WRITE };
        let file = self.mount.open(&self.path(&name), &flags).await?;
        self.mount.close(file).await?;
        self.files.insert(name, Vec::new());
        Ok(())
    }

    async fn write(&mut self, name: &str) -> Result<(), NfsError> {
        let (offset, len) =
            (self.draw.below(LARGEST as u64 / 2) as usize, 1 + self.draw.below(LARGEST as u64 / 2) as usize);
        let (fill, synced) = (self.draw.below(256) as u8, self.draw.below(2) == 0);
        let data: Vec<u8> = (0..len).map(|at| fill.wrapping_add(at as u8)).collect();
        let file = self.mount.open(&self.path(name), &OpenFlags::WRITE).await?;
        let half = len / 2;
        assert_eq!(self.mount.write(&file, &data[..half], offset as u64).await?, half);
        if synced {
            self.mount.fsync(&file).await?;
        }
        assert_eq!(self.mount.write(&file, &data[half..], (offset + half) as u64).await?, len - half);
        self.mount.close(file).await?;
        let content = self.files.get_mut(name).unwrap();
        content.resize(content.len().max(offset + len), 0);
        content[offset..offset + len].copy_from_slice(&data);
        Ok(())
    }

    async fn read(&mut self, name: &str) -> Result<(), NfsError> {
        let file = self.mount.open(&self.path(name), &OpenFlags::READ).await?;
        let mut buffer = vec![0; LARGEST + 1];
        let read = self.mount.read(&file, &mut buffer, 0).await?;
        self.mount.close(file).await?;
        assert!(buffer[..read] == self.files[name], "content of {name}: {read} bytes");
        Ok(())
    }

    /// Adds one to a number that all tasks share, which is lost if two do it at once.
    async fn count(&mut self) -> Result<(), NfsError> {
        if self.world.plan.version == "2" {
            return Ok(());
        }
        // Locks of version 3 do not outlive a restart of the server.
        if self.world.plan.version == "3" && !self.world.plan.restarts.is_empty() {
            return Ok(());
        }
        let file = self.mount.open(b"number", &OpenFlags::READ_WRITE).await?;
        let counted = self.count_in(&file).await;
        // Others wait for the lock.
        self.mount.close(file).await.and(counted)?;
        self.world.counted.set(self.world.counted.get() + 1);
        Ok(())
    }

    async fn count_in(&self, file: &File) -> Result<(), NfsError> {
        self.mount.lock(file, LockKind::Write, ALL, true).await?;
        let mut number = [0; 8];
        self.mount.read(file, &mut number, 0).await?;
        let next = u64::from_be_bytes(number) + 1;
        self.mount.write(file, &next.to_be_bytes(), 0).await?;
        self.mount.fsync(file).await?;
        self.mount.unlock(file, ALL).await
    }
}

/// Runs a plan. Returns each task's end.
fn carry_out(plan: Plan) -> Vec<End> {
    let world = Rc::new(World::new(plan));
    run(async |reactor: Reactor, _| {
        let mount = Mount::connect(&reactor, &world.options(), "injected").await.unwrap();
        let file = mount.open(b"number", &OpenFlags::CREATE).await.unwrap();
        mount.write(&file, &[0; 8], 0).await.unwrap();
        mount.close(file).await.unwrap();
        let mut tasks = Vec::new();
        for number in 0..TASKS {
            let directory = format!("task{number}");
            mount.mkdir(directory.as_bytes(), 0o755).await.unwrap();
            let draw = Draw(world.plan.seed ^ (number << 32));
            tasks.push(Task {
                world: &world,
                mount: &mount,
                directory,
                draw,
                files: BTreeMap::new(),
                names: 0,
            });
        }
        let ends = all(tasks.iter_mut().map(Task::all)).await;
        // Calls in the background (lease, probes of slots) end too.
        while mount.counters().outstanding() > 0 {
            reactor.sleep(Duration::from_millis(5)).await;
        }
        verify(&mount, &tasks, &ends, &world).await;
        let _ = mount.unmount().await;
        ends
    })
}

/// The end state is the models', of tasks that came to their ends.
async fn verify(mount: &Mount, tasks: &[Task<'_>], ends: &[End], world: &World) {
    for (task, _) in tasks.iter().zip(ends).filter(|(_, end)| end.is_ok()) {
        let mut names = Vec::new();
        let directory = task.directory.as_bytes();
        mount
            .readdir(directory, &mut |entry| names.push(String::from_utf8(entry.name.to_vec()).unwrap()))
            .await
            .unwrap();
        names.sort();
        let mut expected: Vec<_> = task.files.keys().cloned().collect();
        expected.sort();
        assert_eq!(names, expected, "names in {}", task.directory);
        for (name, content) in &task.files {
            let file = mount.open(&task.path(name), &OpenFlags::READ).await.unwrap();
            let mut buffer = vec![0; LARGEST + 1];
            let read = mount.read(&file, &mut buffer, 0).await.unwrap();
            assert!(buffer[..read] == content[..], "content of {name}: {read} bytes");
            mount.close(file).await.unwrap();
        }
    }
    if ends.iter().any(|end| matches!(end, Err(("count under a lock", _)))) || !world.keeps_files() {
        return;
    }
    let file = mount.open(b"number", &OpenFlags::READ).await.unwrap();
    let mut number = [0; 8];
    mount.read(&file, &mut number, 0).await.unwrap();
    mount.close(file).await.unwrap();
    assert_eq!(u64::from_be_bytes(number), world.counted.get(), "counted under the lock");
}

fn rule() -> impl Strategy<Value = String> {
    let operation = prop::sample::select(vec![
        "*", "READ", "WRITE", "COMMIT", "OPEN", "CLOSE", "CREATE", "REMOVE", "RENAME", "LOOKUP", "GETATTR",
        "LOCK", "LOCKU", "MKDIR", "RMDIR", "SEQUENCE", "COMPOUND", "READDIR",
    ]);
    let what = prop::sample::select(vec![
        "delay=3ms",
        "drop-reply",
        "disconnect",
        "error=NFS4ERR_DELAY",
        "error=NFS3ERR_JUKEBOX",
    ]);
    (operation, what, 1..8u32).prop_map(|(operation, what, percent)| {
        // A lost reply costs a wait, and every request of a compound may be struck.
        let percent = if what == "drop-reply" { percent.div_ceil(4) } else { percent };
        format!("{operation} {what} p=0.{percent:02}")
    })
}

fn rules() -> impl Strategy<Value = Vec<String>> {
    let every = prop::option::of(Just("* disconnect every=150ms".to_owned()));
    (prop::collection::vec(rule(), 1..4), every).prop_map(|(mut rules, every)| {
        rules.extend(every);
        rules
    })
}

fn plan(restarts: impl Strategy<Value = Vec<u64>>, keeps_state: bool) -> impl Strategy<Value = Plan> {
    let version = prop::sample::select(vec!["3", "4.0", "4.1", "4.2"]);
    (version, 1..3u32, rules(), restarts, 0..1000u64).prop_map(
        move |(version, nconnect, rules, restarts, seed)| Plan {
            version,
            nconnect,
            rules,
            restarts,
            keeps_state,
            operations: 30,
            seed,
        },
    )
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: count,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn nothing_fails_and_nothing_happens_twice(plan in plan(Just(Vec::new()), false)) {
        let ends = carry_out(plan);
        prop_assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    }
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn a_restart_that_keeps_files_is_mended_or_said(plan in plan((20..60u64, 61..110u64).prop_map(|(a, b)| vec![a, b]), true)) {
        let ends = carry_out(plan);
        // A change whose reply was lost with the session may have been made or not: it is said so.
        let mended = |end: &End| matches!(end, Ok(()) | Err((_, NfsError::StateLost(_))));
        prop_assert!(ends.iter().all(mended), "{ends:?}");
    }

    #[test]
    fn a_restart_that_loses_files_is_an_error_and_no_hang(plan in plan((20..60u64).prop_map(|at| vec![at]), false)) {
        let ends = carry_out(plan);
        prop_assert!(ends.iter().all(Result::is_err), "files that are gone were used: {ends:?}");
    }
}

#[test]
fn a_version_2_client_survives_losses_too() {
    let rules =
        ["* drop-reply p=0.02", "* disconnect p=0.02", "* delay=2ms p=0.1"].map(str::to_owned).to_vec();
    let (version, nconnect, restarts, keeps_state, operations, seed) = ("2", 1, Vec::new(), false, 60, 5);
    let ends = carry_out(Plan { version, nconnect, rules, restarts, keeps_state, operations, seed });
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
}

#[test]
fn what_was_mended_is_counted() {
    let server = server(&["OPEN error=NFS4ERR_DELAY count=3", "WRITE disconnect count=2"]);
    run(async |reactor, _| {
        let more = "delay_initial=1ms&timeo=1s";
        let options = format!("nfs://{}/export?version=4.1&{more}", server.address()).parse().unwrap();
        let mount = Mount::connect(&reactor, &options, "counted").await.unwrap();
        let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
        for at in 0..4u64 {
            mount.write(&file, b"data", at * 4).await.unwrap();
        }
        mount.close(file).await.unwrap();
        let counted = mount.counters().snapshot();
        assert_eq!(counted.event(Event::Delay), 3);
        assert_eq!((counted.event(Event::Reconnect), counted.event(Event::Resent)), (2, 2));
        mount.unmount().await.unwrap();
    });
}
