//! Agents on this host that work together.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use benchmaster_fleet::agent;
use benchmaster_fleet::controller::{Fleet, FleetConfig, Launch, MemberState};
use benchmaster_fleet::job::{HookSpec, Job, Side};
use benchmaster_fleet::secure::{AgentOptions, ControllerKey, agent_stream};
use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::TraceRecord;
use benchmaster_telemetry::sampling::SamplingConfig;
use benchmaster_workload::execute::Edge;
use benchmaster_workload::target::Target;

use crate::support::{
    NEVER, Records, config, is_root, is_there, job, launch, meets, names, parent, reads, serve, total, tree,
    wait_for,
};

pub(crate) fn five_agents_work_in_a_directory_as_one() {
    five_in_a_directory(launch(5, 7));
}

pub(crate) fn agents_behind_aggregators_work_in_a_directory_as_one() {
    let fleet = tree(5, 7);
    let own = std::process::id();
    let parents: Vec<u32> = fleet.members().iter().map(|member| parent(member.pid)).collect();
    assert!(parents[0] == parents[1] && parents[2] == parents[3] && !parents.contains(&own), "{parents:?}");
    assert_eq!(parents.iter().collect::<BTreeSet<_>>().len(), 3);
    five_in_a_directory(fleet);
    wait_for("aggregators have ended", || !parents.iter().any(|pid| is_there(*pid)));
}

fn five_in_a_directory(mut fleet: Fleet) {
    let place = tempfile::tempdir().unwrap();
    let target = Target::from(place.path());
    let pids: BTreeSet<u32> = fleet.members().iter().map(|member| member.pid).collect();
    assert_eq!(pids.len(), 5);
    assert!(fleet.members().iter().all(|member| member.clock_bound == Duration::ZERO), "one clock");
    assert!(!fleet.members()[4].environment.kernel.is_empty());
    fleet.open("data", &target, "five").unwrap();
    let sampling = Some(SamplingConfig::default());
    let job = Job { trace: true, sampling, ..reads("50ms", "400ms") };
    let mut reused = Vec::new();
    for _ in 0..2 {
        let (mut records, mut edges, mut seen) = (Records::default(), Vec::new(), 0);
        fleet.begin_run("data", false).unwrap();
        let recording = fleet
            .perform("data", &job, Some(&mut records), &NEVER, &mut |progress| {
                edges.extend(progress.total.edge);
                seen += 1;
                assert_eq!(progress.members.len(), 5);
                assert!(progress.members.iter().all(|member| member.state != MemberState::Failed));
            })
            .unwrap();
        assert_eq!(edges, [Edge::Begin, Edge::End]);
        assert!(seen > 2);
        let all: u64 = recording.series.iter().map(|series| series.total.count + series.total.errors).sum();
        assert_eq!(records.0.len() as u64, all);
        let workers: BTreeSet<u32> = records.0.iter().map(|record| record.worker).collect();
        assert_eq!(workers, (0..14).collect(), "workers are numbered over all agents");
        assert!(total(&recording, OperationKind::Read) > 0);
        let agents: Vec<_> =
            recording.agents.iter().map(|a| (a.name.as_str(), a.first_client, a.clients, a.pid)).collect();
        let named =
            [("local-1", 0, 2), ("local-2", 2, 2), ("local-3", 4, 1), ("local-4", 5, 1), ("local-5", 6, 1)];
        let expected = named.iter().zip(fleet.members()).map(|(&(n, f, c), m)| (n, f, c, m.pid));
        assert_eq!(agents, expected.collect::<Vec<_>>());
        assert!(recording.start.is_some_and(|start| start.bound_ns == 0));
        assert_eq!(recording.filesets[0].files, 28);
        assert_eq!(recording.samples.len(), 1, "one agent of a host reads its counters");
        reused.push(recording.filesets[0].reused);
    }
    assert_eq!(reused, [false, true]);
    fleet.remove().unwrap();
    assert!(names(place.path()).is_empty());
    fleet.end().unwrap();
    assert!(!pids.into_iter().any(is_there), "all have ended and were waited for");
}

pub(crate) fn five_agents_work_on_a_server_as_one() {
    five_on_a_server(launch(5, 5));
}

pub(crate) fn agents_behind_aggregators_work_on_a_server_as_one() {
    five_on_a_server(tree(5, 5));
}

fn five_on_a_server(mut fleet: Fleet) {
    let (server, target) = serve();
    fleet.open("nfs", &target, "wire").unwrap();
    fleet.begin_run("nfs", true).unwrap();
    let job = job(r#"
        until = { iterations = 3 }
        [filesets.data]
        files = 1
        size = "8KiB"
        [[groups]]
        name = "g"
        setup = [{ op = "open", file = "own" }]
        flow = [{ op = "read", io_size = "4KiB", offset = "random" }, { op = "stat", file = "own" }]
    "#);
    server.arrivals().watch();
    let recording = fleet.perform("nfs", &job, None, &NEVER, &mut |_| {}).unwrap();
    assert_eq!(total(&recording, OperationKind::Read), 15);
    assert_eq!(total(&recording, OperationKind::Stat), 15);
    assert!(recording.error_details.is_empty(), "{:?}", recording.error_details);
    assert!(recording.rpc.is_some());
    let Target::Nfs(mut export) = target else { panic!("an export") };
    export.options.connections = 2;
    fleet.reach_by("nfs", &Target::Nfs(export.clone())).unwrap();
    let again = fleet.perform("nfs", &job, None, &NEVER, &mut |_| {}).unwrap();
    assert!(again.filesets[0].reused);
    export.options.export = b"/other".into();
    let error = fleet.reach_by("nfs", &Target::Nfs(export)).unwrap_err().to_string();
    assert!(error.contains("local-1") && error.contains("holds other files"), "{error}");
    let error = fleet.perform("elsewhere", &job, None, &NEVER, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("place `elsewhere` was not opened"), "{error}");
    fleet.remove().unwrap();
    fleet.end().unwrap();
}

pub(crate) fn workers_of_five_agents_keep_in_step() {
    let (_server, target) = serve();
    let place = tempfile::tempdir().unwrap();
    let directory = Target::from(place.path());
    for (name, target, start) in [
        ("wire", &target, launch as fn(_, _) -> _),
        ("directory", &directory, launch),
        ("tree", &directory, tree),
    ] {
        let mut fleet: Fleet = start(5, 7);
        fleet.open(name, target, "step").unwrap();
        fleet.begin_run(name, false).unwrap();
        let rounds = 20;
        let mut job = meets(rounds);
        job.trace = true;
        let mut records = Records::default();
        let recording = fleet.perform(name, &job, Some(&mut records), &NEVER, &mut |_| {}).unwrap();
        assert!(recording.error_details.is_empty(), "{name}: {:?}", recording.error_details);
        let series = |label: &str| recording.series.iter().position(|s| s.key.label == label).unwrap();
        let spans = |label: &str, round: usize| -> Vec<(u64, u64)> {
            let number = series(label);
            let of = |worker: u32| {
                let own = |r: &&TraceRecord| usize::from(r.series) == number && r.worker == worker;
                records.0.iter().filter(own).nth(round).map(|r| (r.start_ns, r.start_ns + r.latency_ns))
            };
            (0..14).map(|worker| of(worker).unwrap()).collect()
        };
        for round in 0..rounds as usize {
            let last = spans("before", round).into_iter().map(|span| span.1).max().unwrap();
            let first = spans("after", round).into_iter().map(|span| span.0).min().unwrap();
            // Agents count from the same instant, to within what their clocks were read apart.
            assert!(last <= first + 1_000, "{name}, round {round}: {last} {first}");
        }
        fleet.remove().unwrap();
        fleet.end().unwrap();
    }
}

pub(crate) fn a_hook_runs_once_on_a_host() {
    let mut fleet = launch(3, 3);
    let hook = |command: &str| HookSpec {
        command: command.into(),
        timeout: Duration::from_secs(60),
        environment: vec![("LEVEL".into(), "warm".into())],
    };
    let done = fleet.run_hook(Side::Clients, &hook("echo is $LEVEL; exit 4"), &NEVER).unwrap();
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].agent.as_str(), done[0].fine), ("local-1", false));
    assert_eq!(
        (done[0].output.as_slice(), done[0].ended.as_str()),
        (&b"is warm\n"[..], "ended with exit status: 4")
    );
    assert!(fleet.run_hook(Side::Server, &hook("true"), &NEVER).unwrap().is_empty());
    let environments = fleet.environment(Some(std::path::Path::new("/"))).unwrap();
    assert_eq!(environments.len(), 1);
    assert_eq!(environments[0].1.target.as_ref().unwrap().mount_point, "/");
    // Given up, it is killed.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("the command begins", || file.exists());
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let slow = hook(&format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 1000", file.display()));
        let error = fleet.run_hook(Side::Clients, &slow, &stop).unwrap_err();
        assert_eq!(error.to_string(), "the run was stopped");
    });
    let pid = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    wait_for("the command is killed", || !is_there(pid));
    assert_eq!(fleet.run_hook(Side::Clients, &hook("true"), &NEVER).unwrap().len(), 1);
}

/// Agents in a time namespace of their own, in which the monotonic clock is a day ahead.
pub(crate) fn clocks_that_differ_are_related() {
    if !is_root() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let unshare = ["--time", "--monotonic", "86400", "--fork", "--kill-child", "--"].map(str::to_owned);
    let arguments = unshare.into_iter().chain([own.to_string_lossy().into_owned(), "agent".into()]).collect();
    let flat = FleetConfig { binary: "unshare".into(), arguments, ..config(3, 3) };
    related(flat.clone());
    // Clocks beside those of aggregators beside the controller's.
    related(FleetConfig { fan_out: 2, ..flat });
}

fn related(config: FleetConfig) {
    let mut fleet = Fleet::launch(&config, &NEVER, &mut |_| {}).unwrap();
    let bound = fleet.members().iter().map(|member| member.clock_bound).max().unwrap();
    assert!(bound > Duration::ZERO);
    let place = tempfile::tempdir().unwrap();
    fleet.open("data", &Target::from(place.path()), "time").unwrap();
    let recording = fleet.perform("data", &reads("0s", "200ms"), None, &NEVER, &mut |_| {}).unwrap();
    for agent in &recording.agents {
        const DAY: i64 = 86_400;
        let error = (agent.clock.offset_ns - DAY * 1_000_000_000).unsigned_abs();
        assert!(error <= agent.clock.bound_ns, "{:?}", agent.clock);
        assert!(agent.clock.exchanges >= 40 && agent.clock.drift.is_some(), "{:?}", agent.clock);
    }
    let start = recording.start.unwrap();
    assert!(start.bound_ns > 0);
    // Without the relation they would be a day apart.
    assert!(start.spread_ns < 1_000_000_000, "{start:?}");
    fleet.remove().unwrap();
}

/// An agent that dials: its address, rank and file of credentials.
pub(crate) fn dialling(arguments: &[String]) {
    let [dial, rank, credentials] = arguments else { panic!("{arguments:?}") };
    let options = AgentOptions {
        dial: dial.clone(),
        rank: Some(rank.parse().unwrap()),
        wait: None,
        credentials: Some(credentials.into()),
    };
    let ended = agent::serve(async || agent_stream(&options).await.map_err(std::io::Error::other));
    if let Err(error) = &ended {
        println!("rank {rank}: {error}");
    }
    std::process::exit(if ended.is_ok() { 0 } else { 1 });
}

/// Five agents of ranks, of which the controller is to lead no more than two itself.
pub(crate) fn agents_that_dial_join_the_aggregator_of_their_group() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let key = ControllerKey::generate().unwrap();
    let own = file("controller", &key.to_json());
    let theirs = file("agent", &key.credentials().unwrap().to_json());
    // It is free for a moment.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let dial = |rank: u32| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["dialling", &address, &rank.to_string()]).arg(&theirs).spawn().unwrap()
    };
    let mut agents: Vec<_> = (0..5).rev().map(dial).collect();
    let launch = Launch::External { agents: 5, address: address.clone(), credentials: own };
    let config = FleetConfig { launch, fan_out: 2, ..config(5, 7) };
    let mut fleet = Fleet::launch(&config, &NEVER, &mut |_| {}).unwrap();
    let place = tempfile::tempdir().unwrap();
    fleet.open("data", &Target::from(place.path()), "dialled").unwrap();
    let pids: Vec<u32> = fleet.members().iter().map(|member| member.pid).collect();
    let dialled: Vec<u32> = agents.iter().map(std::process::Child::id).collect();
    // Ranks 0, 2 and 4 lead, with agents beside them.
    let own: Vec<bool> = pids.iter().map(|pid| dialled.contains(pid)).collect();
    assert_eq!(own, [false, true, false, true, false]);
    assert_eq!([pids[0], pids[2], pids[4]].map(parent), [dialled[4], dialled[2], dialled[0]]);
    let names: BTreeSet<&str> = fleet.members().iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let recording = fleet.perform("data", &meets(5), None, &NEVER, &mut |_| {}).unwrap();
    assert_eq!(total(&recording, OperationKind::Stat), 7 * 2 * 2 * 5);
    assert_eq!(recording.agents.iter().map(|agent| agent.clients).collect::<Vec<_>>(), [2, 2, 1, 1, 1]);
    fleet.remove().unwrap();
    fleet.end().unwrap();
    for agent in &mut agents {
        assert!(agent.wait().unwrap().success());
    }
}
