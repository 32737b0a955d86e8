//! Studies in a lab: the kernels' client and server on machines in user space. Where a lab cannot be brought up the tests are
//! skipped, unless `BENCHMASTER_REQUIRE_LAB=1`.

use benchmaster_record::phase::Phase;
use std::process::{Command, Output};

use benchmaster_record::results::{CheckKind, RunRecord, Severity, StudyResults};
use benchmaster_store::Store;

use crate::limit::output_within;
use crate::place::{PATIENCE, PROGRAM, Place, stderr};
use crate::serve::serve;

/// Labs of a user have different names, and tests run at once.
pub(crate) struct Standing<'p> {
    place: &'p Place,
    name: String,
}

impl<'p> Standing<'p> {
    /// A lab with two clients; `None` where there can be none, which is said.
    fn up(place: &'p Place, test: &str) -> Option<Self> {
        Self::with(place, test, &["--clients", "2"])
    }

    /// A lab with options of `lab up`; `None` where there can be none, which is said.
    pub(crate) fn with(place: &'p Place, test: &str, options: &[&str]) -> Option<Self> {
        let name = format!("{test}-{}", std::process::id());
        let up = run(place, &[&["lab", "up", "--name", &name], options].concat());
        if !up.status.success() {
            let reason = stderr(&up);
            assert_ne!(std::env::var("BENCHMASTER_REQUIRE_LAB").as_deref(), Ok("1"), "{reason}");
            eprintln!("skipped: no lab: {reason}");
            return None;
        }
        Some(Self { place, name })
    }

    fn exec(&self, machine: &str, script: &str) {
        let done = self.output(machine, script);
        assert!(done.status.success(), "{}", stderr(&done));
    }

    /// What a script does in a machine, and how it ends.
    pub(crate) fn output(&self, machine: &str, script: &str) -> Output {
        run(self.place, &["lab", "exec", "--name", &self.name, machine, "--", "sh", "-c", script])
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        run(self.place, &["lab", "down", "--name", &self.name]);
    }
}

fn run(place: &Place, arguments: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    place.surround(&mut command);
    command.args(arguments);
    output_within(command, PATIENCE).unwrap()
}

/// A study of two clients that lock and read, with more text in and after its section `[lab]`.
fn study(name: &str, more: &str) -> String {
    format!(
        r#"[study]
name = "locks"

[target]
mount = {{ source = "{{server}}:/export", options = "vers=4.1" }}

[clients]
count = 2

[design]
replicates = 1

[workload.lock]
use = "locked-read"
files = 10
file_size = "64KiB"

[lab]
name = "{name}"
{more}
"#
    )
}

fn carried_out(place: &Place, text: &str) -> StudyResults {
    place.write("study.toml", text);
    let done = run(place, &["run", "study.toml", "-o", "out"]);
    assert!(place.path("out/results.db").exists(), "{}", stderr(&done));
    let results = place.results("out");
    assert!(!results.runs.is_empty(), "{}", stderr(&done));
    results
}

/// Calls of a kind by all clients while it was measured, and how often the server says that it did them.
fn counted(run: &RunRecord, operation: &str) -> (u64, u64) {
    let rpc = run.recordings[0].rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
    let server = run.server_use.iter().flat_map(|used| &used.operations);
    let done = server.filter(|done| done.operation == operation).map(|done| done.ops).sum();
    let calls = |name: &str| rpc.row(name).map_or(0, |row| row.ops);
    // The client counts opens of files that it knows, by their handles, apart.
    let by_handle = if operation == "OPEN" { calls("OPEN_NOATTR") } else { 0 };
    (calls(operation) + by_handle, done)
}

#[test]
#[ignore = "full tier: machines"]
fn clients_and_server_of_the_kernel_count_the_same_operations() {
    let place = Place::new();
    let Some(standing) = Standing::up(&place, "counts") else { return };
    let factor = "[factors.delegations]\nparameter = \"lab.delegations\"\nlevels = [false, true]\n";
    let results = carried_out(&place, &study(&standing.name, factor));
    assert_eq!(results.runs.iter().filter_map(|run| run.failure.as_ref()).next(), None);
    let run = results.runs.iter().find(|run| run.key.treatment == 0).unwrap();
    for operation in ["OPEN", "CLOSE", "LOCK", "LOCKU", "READ", "FREE_STATEID"] {
        let (calls, done) = counted(run, operation);
        assert_eq!(calls, done, "{operation}");
    }
    assert!(counted(run, "LOCK").0 >= 20, "{:?}", run.recordings[0].rpc);
    let delegated = results.runs.iter().find(|run| run.key.treatment == 1).unwrap();
    assert_eq!(counted(delegated, "LOCK"), (0, 0), "with a delegation the client locks by itself");

    let lab = run.lab.as_ref().unwrap();
    let machines: Vec<_> = lab.machines.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!((machines.as_slice(), lab.server.as_str()), (&["server", "c1", "c2"][..], "knfsd"));
    assert!(lab.machines.iter().all(|machine| !machine.kernel.is_empty() && machine.console.is_none()));
    assert_eq!(run.service.as_ref().unwrap().url, "{server}:/export?vers=4.1");
    let agents: Vec<_> = run.recordings[0].samples.iter().map(|samples| samples.agent.as_str()).collect();
    assert!(agents.contains(&"server") && agents.contains(&"c2"), "{agents:?}");
}

#[test]
#[ignore = "full tier: machines"]
fn machines_reach_a_server_of_the_host() {
    let place = Place::new();
    if Standing::up(&place, "relay").is_none() {
        return;
    }
    // An address of this test alone.
    let (_server, _) = serve(&place, &["--listen", "127.0.0.77:2049"]);
    let text = study("none", "server = \"host\"\n[server]\nhost = \"127.0.0.77\"\n");
    let results = carried_out(&place, &text);
    let run = &results.runs[0];
    assert_eq!(run.failure, None);
    assert!(counted(run, "OPEN").0 >= 20, "{:?}", run.recordings[0].rpc);
    assert_eq!(run.lab.as_ref().unwrap().server, "127.0.0.77");
}

#[test]
#[ignore = "full tier: machines"]
fn our_client_reads_over_the_wire_from_machines_and_from_namespaces() {
    let place = Place::new();
    if Standing::up(&place, "url").is_none() {
        return;
    }
    for (back_end, server) in [("uml", "knfsd"), ("namespaces", "memory")] {
        let more = format!("server = \"{server}\"\nback_end = \"{back_end}\"\n[network]\ndelay = \"1ms\"\n");
        let text = study("none", &more).replace(
            "mount = { source = \"{server}:/export\", options = \"vers=4.1\" }",
            "url = \"nfs://{server}/export?version=4.1\"",
        );
        let results = carried_out(&place, &text);
        let run = &results.runs[0];
        assert_eq!(run.failure, None, "{back_end}");
        let lab = run.lab.as_ref().unwrap();
        assert_eq!((lab.back_end.as_str(), lab.server.as_str()), (back_end, server));
        let locks =
            run.recordings[0].rpc.as_ref().unwrap().phase(Phase::Measure).unwrap().row("LOCK").unwrap();
        assert!(locks.ops >= 20 && locks.rtt_ns >= locks.ops * 2_000_000, "{back_end}: {locks:?}");
        std::fs::remove_dir_all(place.path("out")).unwrap();
    }
}

#[test]
#[ignore = "full tier: machines"]
fn machines_of_one_name_make_a_run_invalid() {
    let place = Place::new();
    let Some(standing) = Standing::up(&place, "clones") else { return };
    for machine in ["c1", "c2"] {
        standing.exec(machine, "hostname same");
    }
    let results = carried_out(&place, &study(&standing.name, ""));
    let found = results.runs[0].checks.iter().find(|check| check.kind == CheckKind::SharedClientId).unwrap();
    assert_eq!(found.severity, Severity::Invalid);
    assert!(found.message.contains("(c1, c2)"), "{}", found.message);

    for machine in ["c1", "c2"] {
        standing.exec(machine, &format!("hostname {machine}; arp -d 10.77.0.1"));
    }
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let results = carried_out(&place, &study(&standing.name, ""));
    let found: Vec<_> = results.runs[0].checks.iter().map(|check| check.kind.name()).collect();
    assert!(found.contains(&"neighbours") && !found.contains(&"shared-client-id"), "{found:?}");
}

/// What clients hold is reclaimed, and what is opened and locked anew waits for the end of the grace period.
#[test]
#[ignore = "full tier: machines"]
fn a_server_that_is_started_again_costs_time_and_no_operation() {
    let place = Place::new();
    if Standing::up(&place, "restart").is_none() {
        return;
    }
    let text = r#"[study]
name = "restart"

[lab]
lease = "10s"
# Readers of files that others lock have delegations else, and lock by themselves.
delegations = false

[clients]
count = 2

[target]
mount = { source = "{server}:/export", options = "vers=4.1" }

[design]
replicates = 1

# The lock manager's grace period, which takes 50 s, is ended; that of version 4 ends when all clients have their state back.
[[collect]]
name = "restart"
on = "server"
command = "sleep 3; rpc.nfsd 0 && sleep 1 && rpc.nfsd 8 && echo Y > /proc/fs/lockd/nlm_end_grace; echo started: $?"

[workload.locks]
until = { duration = "25s" }

[workload.locks.filesets.data]
files = 8
size = "64KiB"

[[workload.locks.groups]]
name = "lockers"
workers = 2
setup = [{ op = "open", file = "own", flags = ["write"] }]
flow = [
    { op = "lock", lock = "write" },
    { op = "write", io_size = "4KiB", offset = "random" },
    { op = "unlock" },
    { pause = "20ms" },
]

[[workload.locks.groups]]
name = "openers"
flow = [
    { op = "open", file = "random", flags = ["write"] },
    { op = "close" },
    { pause = "20ms" },
]
"#;
    let results = carried_out(&place, text);
    // With what attached commands printed.
    let run = Store::load_run(&place.path("out"), results.runs[0].key).unwrap().unwrap();
    assert_eq!(run.failure, None);
    let [recording] = &run.recordings[..] else { panic!("{} recordings", run.recordings.len()) };
    let collected = recording.collected.iter().find(|collected| collected.name == "restart").unwrap();
    assert_eq!(String::from_utf8_lossy(&collected.output).trim(), "started: 0");

    // Nothing failed, every lock was given back, and all went on afterwards.
    let total = |label: &str| {
        let series = recording.series.iter().find(|series| series.key.label == label);
        series.map(|series| (series.total.count, series.total.errors)).unwrap()
    };
    assert!(recording.series.iter().all(|series| series.total.errors == 0), "{:?}", recording.series);
    let ((locks, _), (unlocks, _), (writes, _)) = (total("lock"), total("unlock"), total("write"));
    assert!(locks == unlocks && locks == writes && locks > 50, "{locks} {unlocks} {writes}");
    let last = recording.series.iter().find(|series| series.key.label == "lock").unwrap().span.unwrap().1;
    assert!(last > 20_000_000_000, "the last lock was taken after {last} ns of 25 s");

    // It is counted and told: by the server, and by what its clients had to do.
    let phase = recording.rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
    let row = |operation: &str| phase.row(operation).unwrap();
    assert_eq!((row("RECLAIM_COMPLETE").ops, row("EXCHANGE_ID").ops), (2, 2), "{:?}", phase.rows);
    assert!(row("LOCK").errors > 0, "{:?}", row("LOCK"));
    let check = run.checks.iter().find(|check| check.kind == CheckKind::GracePeriod).unwrap();
    assert_eq!(check.severity, Severity::Warning);
    assert!(check.message.contains("was restarted in the measured phase"), "{}", check.message);
    let said = run_of(&place, &["diagnose", "out"]);
    for condition in ["grace-period (certain", "session-recovery (certain"] {
        assert!(said.contains(condition), "{said}");
    }
}

fn run_of(place: &Place, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&run(place, arguments).stdout).into_owned()
}

/// Of a lab that the study brings up itself, and of two treatments: the hook is run in the first.
fn with_a_hook(place: &Place, hook: &str) -> StudyResults {
    let more = format!(
        "[run]\nretries = 0\n[factors.fate]\nparameter = \"run.cache_hook\"\nlevels = ['{hook}', 'true']\n"
    );
    let text = study("none", &more).replace("replicates = 1", "replicates = 1\norder = \"listed\"");
    carried_out(place, &text)
}

#[test]
#[ignore = "full tier: machines"]
fn a_machine_that_panics_fails_its_run_and_the_next_one_has_another_lab() {
    let place = Place::new();
    if Standing::up(&place, "panic").is_none() {
        return;
    }
    let results = with_a_hook(&place, "[ $(hostname) != c2 ] || echo c > /proc/sysrq-trigger");
    let [panicked, after] = &results.runs[..] else { panic!("{} runs", results.runs.len()) };
    let failure = panicked.failure.as_ref().unwrap();
    assert!(
        failure.contains("machine `c2`") && failure.contains("panicked: sysrq triggered crash"),
        "{failure}"
    );
    let console = |name: &str| {
        let lab = panicked.lab.as_ref().unwrap();
        lab.machines.iter().find(|machine| machine.name == name).unwrap().console.clone().unwrap()
    };
    let kept = std::fs::read_to_string(place.path("out").join(console("c2"))).unwrap();
    assert!(kept.contains("Kernel panic"), "{kept}");
    assert_eq!(after.failure, None);
    assert!(after.lab.as_ref().unwrap().machines.iter().all(|machine| machine.console.is_none()));
    let name = format!("study-{}", &results.study.id[..8]);
    let status = run(&place, &["lab", "status"]);
    assert!(!String::from_utf8_lossy(&status.stdout).contains(&name), "the lab has ended with the study");
}

#[test]
#[ignore = "full tier: machines"]
fn a_client_without_memory_is_named_with_the_words_of_its_kernel() {
    let place = Place::new();
    if Standing::up(&place, "memory").is_none() {
        return;
    }
    // The kernel kills what has most memory, which is the agent.
    let results = with_a_hook(&place, "[ $(hostname) != c2 ] || { echo f > /proc/sysrq-trigger; sleep 1; }");
    let [killed, after] = &results.runs[..] else { panic!("{} runs", results.runs.len()) };
    let failure = killed.failure.as_ref().unwrap();
    assert!(failure.contains("agent `c2`") && failure.contains("Out of memory: Killed process"), "{failure}");
    assert_eq!(after.failure, None);
}

/// By the kernel's client of a machine, as a user of that machine types it.
#[test]
#[ignore = "full tier: a lab"]
fn exports_are_measured_as_mount_and_fstab_write_them() {
    let place = Place::new();
    let Some(lab) = Standing::up(&place, "targets") else { return };
    for (target, version) in [
        ("server:/export?vers=4.2", "4.2"),
        ("server:/export /mnt nfs vers=3,nconnect=2 0 0", "3"),
        ("mount -t nfs -o vers=4.1 server:/export /mnt", "4.1"),
    ] {
        // Results are read on the machine: they lie in its memory.
        lab.exec(
            "c1",
            &format!(
                "cd /tmp && rm -rf results && /benchmaster run --create 20 -n 2 '{target}' -q -o results; \
                 test $? -le 1 && /benchmaster export results -f json -o - | grep -q '\"version\": *\"{version}\"' && \
                 ! grep -q ' nfs4* ' /proc/mounts"
            ),
        );
    }
}

/// What findings print is the readahead that the run had, and not that of the mount before the hook of each run.
#[test]
#[ignore = "full tier: a lab"]
fn a_readahead_that_a_hook_sets_is_the_one_that_findings_print() {
    let place = Place::new();
    let Some(lab) = Standing::up(&place, "readahead") else { return };
    let hook = |kib: u32| {
        format!("echo {kib} > /sys/class/bdi/0:$(stat -c %d \\\"$BENCHMASTER_TARGET\\\")/read_ahead_kb")
    };
    let study = format!(
        r#"[study]
name = "readahead"
[lab]
name = "{}"
[target]
mount = {{ source = "{{server}}:/export", options = "vers=4.1" }}
[run]
cache = "remount"
[factors.readahead.levels]
small = {{ "run.cache_hook" = "{}" }}
large = {{ "run.cache_hook" = "{}" }}
[design]
replicates = 2
[workload.read]
use = "sequential-read"
file_size = "32MiB"
io_size = "64KiB"
duration = "1s"
claims = "cache"
"#,
        lab.name,
        hook(64),
        hook(15360)
    );
    place.write("readahead.toml", &study);
    let done = run(&place, &["run", "readahead.toml", "-o", "results", "-q"]);
    assert!(matches!(done.status.code(), Some(0 | 1)), "{}", stderr(&done));
    for run in place.results("results").runs {
        let kib = run.recordings.iter().map(|recording| recording.host.read_ahead_kib).collect::<Vec<_>>();
        let asked = if run.key.treatment == 0 { 64 } else { 15360 };
        assert_eq!(kib, [Some(asked)], "{:?}", run.key);
    }
    let found = run(&place, &["diagnose", "results", "--json"]);
    let found = String::from_utf8(found.stdout).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let printed = evidence_of(&found, "readahead of the mount (read_ahead_kb)");
    // On a fast host a short readahead costs nothing, and there is no finding that could print it.
    assert!(printed.iter().all(|bytes| *bytes == f64::from(64 << 10)), "{printed:?}");
}

/// The values of evidence of a name, wherever it is.
fn evidence_of(value: &serde_json::Value, name: &str) -> Vec<f64> {
    match value {
        serde_json::Value::Object(fields) => {
            let own = fields.get("name").is_some_and(|own| own == name);
            let own = fields.get("value").filter(|_| own).and_then(serde_json::Value::as_f64);
            own.into_iter().chain(fields.values().flat_map(|field| evidence_of(field, name))).collect()
        }
        serde_json::Value::Array(items) => items.iter().flat_map(|item| evidence_of(item, name)).collect(),
        _ => Vec::new(),
    }
}
