//! A fleet of this executable, and jobs for it.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use benchmaster_fleet::agent;
use benchmaster_fleet::controller::{Fleet, FleetConfig, Launch};
use benchmaster_fleet::job::Job;
use benchmaster_fleet::stream::stdio;
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{Recording, TraceRecord};
use benchmaster_trace::TraceSink;
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::target::{NfsTarget, Target};

/// Against tests that hang.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

/// The agent.
pub(crate) fn agent() {
    let ended = agent::serve(async || stdio::take());
    std::process::exit(if ended.is_ok() { 0 } else { 1 });
}

/// Agents of this executable.
pub(crate) fn config(processes: u32, clients: u32) -> FleetConfig {
    let launch = Launch::Local { processes, namespaces: Vec::new() };
    let own = std::env::current_exe().unwrap();
    FleetConfig { arguments: vec!["agent".into()], ..FleetConfig::new(launch, clients, own) }
}

pub(crate) fn launch(processes: u32, clients: u32) -> Fleet {
    Fleet::launch(&config(processes, clients), &NEVER, &mut |_| {}).unwrap()
}

/// The same behind aggregators, of which each leads two.
pub(crate) fn tree(processes: u32, clients: u32) -> Fleet {
    let config = FleetConfig { fan_out: 2, ..config(processes, clients) };
    Fleet::launch(&config, &NEVER, &mut |_| {}).unwrap()
}

/// The process that started another one.
pub(crate) fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn job(workload: &str) -> Job {
    Job {
        name: "w".into(),
        workload: toml::from_str(workload).unwrap(),
        stagger: Duration::ZERO,
        seed: 3,
        fileset_seed: 4,
        interval_ns: 10_000_000,
        cache: CacheControl::Keep,
        hook: None,
        max_errors: 10,
        ledgers: None,
        trace: false,
        sampling: None,
        collect: Vec::new(),
    }
}

/// Reads for so long after a warm-up.
pub(crate) fn reads(warm_up: &str, duration: &str) -> Job {
    let text = r#"
        until = { duration = "DURATION" }
        warm_up = "WARM"
        [filesets.data]
        files = 4
        size = "64KiB"
        [[groups]]
        name = "readers"
        workers = 2
        flow = [
            { op = "open", file = "next" },
            { op = "read", io_size = "4KiB", offset = "random" },
            { op = "close" },
        ]
    "#;
    job(&text.replace("DURATION", duration).replace("WARM", warm_up))
}

/// Two workers on each client, in step with all others in every round.
pub(crate) fn meets(rounds: u64) -> Job {
    let text = r#"
        until = { iterations = ROUNDS }
        [filesets.data]
        files = 2
        size = "4KiB"
        [[groups]]
        name = "g"
        workers = 2
        flow = [
            { op = "stat", label = "before", file = "own" },
            { meet = "between" },
            { op = "stat", label = "after", file = "own" },
            { meet = "end" },
        ]
    "#;
    job(&text.replace("ROUNDS", &rounds.to_string()))
}

pub(crate) fn total(recording: &Recording, operation: OperationKind) -> u64 {
    let series = recording.series.iter().filter(|series| series.key.operation == operation);
    series.map(|series| series.total.count).sum()
}

pub(crate) fn serve() -> (Server, Target) {
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(ServerConfig { listen, threads: 1, ..ServerConfig::default() }).unwrap();
    let url = format!("nfs://{}/export?version=4.1", server.address());
    (server, Target::Nfs(NfsTarget::new(url.parse().unwrap())))
}

#[derive(Default)]
pub(crate) struct Records(pub(crate) Vec<TraceRecord>);

impl TraceSink for Records {
    fn write(&mut self, records: &[TraceRecord]) -> std::io::Result<()> {
        self.0.extend(records);
        Ok(())
    }
}

/// Whether a process is there and not just waited for.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Whether a child of this process was not waited for.
pub(crate) fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Whether this process may mount and make namespaces. Says that a test is skipped when it may not.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    assert!(root || std::env::var_os("BENCHMASTER_REQUIRE_ROOT").is_none(), "root is required");
    if !root {
        println!("skipped: it takes root");
    }
    root
}

/// Runs an asynchronous test, or part of one.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.unwrap().block_on(future)
}
