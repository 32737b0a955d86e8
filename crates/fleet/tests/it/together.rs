//! Several processes (here threads, each with a working directory of its own) do one job in step, and their recordings are
//! merged.

use benchmaster_record::phase::Phase;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use benchmaster_fleet::clock::Relation;
use benchmaster_fleet::job::{CollectSpec, Job, Side};
use benchmaster_fleet::merge::{Observer, Part, first_workers, merge};
use benchmaster_fleet::perform::{Performed, Surroundings, observe, perform};
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::model::{OperationKind, Workload};
use benchmaster_record::recording::{PartOf, Recording, TraceRecord};
use benchmaster_telemetry::sampling::SamplingConfig;
use benchmaster_trace::TraceSink;
use benchmaster_workload::area::{AreaError, WorkArea};
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::conduct::{
    Assembly, Attendance, Conductor, Held, MeetingTracker, Share, Start, Step, Stopped,
};
use benchmaster_workload::execute::ExecuteError;
use benchmaster_workload::target::{NfsTarget, Target};

/// Where all meet.
struct Meeting {
    processes: usize,
    state: Mutex<State>,
    changed: Condvar,
    stop: AtomicBool,
    hall: Arc<Hall>,
}

/// Where workers of all processes meet.
#[derive(Default)]
struct Hall(Mutex<(MeetingTracker, Vec<Option<Held>>)>);

impl std::fmt::Debug for Hall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hall")
    }
}

#[derive(Debug)]
struct Door(usize, Arc<Hall>);

impl Assembly for Door {
    fn tell(&self, meeting: u16, attendance: Attendance) {
        let (assembled, held) = {
            let (roll, held) = &mut *self.1.0.lock().unwrap();
            (roll.note(self.0, meeting, attendance), held.clone())
        };
        for process in assembled.iter().flat_map(|assembled| &assembled.processes) {
            held[*process].as_ref().unwrap()(meeting, assembled.as_ref().unwrap().time);
        }
    }
}

#[derive(Default)]
struct State {
    waiting: usize,
    round: u64,
    start: i64,
    steps: Vec<String>,
}

impl Meeting {
    fn new(processes: usize) -> Self {
        let roll = MeetingTracker::new(std::iter::repeat_n(true, processes));
        Self {
            processes,
            state: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            hall: Arc::new(Hall(Mutex::new((roll, vec![None; processes])))),
        }
    }

    /// Waits for all; the last one to come says what the start is.
    fn wait(&self, what: &str, lead: Duration) -> Result<i64, Stopped> {
        let mut state = self.state.lock().unwrap();
        state.steps.push(what.to_owned());
        state.waiting += 1;
        if state.waiting == self.processes {
            let step: BTreeSet<String> = state.steps.drain(..).collect();
            assert_eq!(step.len(), 1, "all are at the same step: {step:?}");
            state.waiting = 0;
            state.round += 1;
            state.start = monotonic_ns() + lead.as_nanos() as i64 + 5_000_000;
            self.changed.notify_all();
            return Ok(state.start);
        }
        let round = state.round;
        while state.round == round {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped);
            }
            state = self.changed.wait_timeout(state, Duration::from_millis(20)).unwrap().0;
        }
        Ok(state.start)
    }
}

struct Member<'a>(&'a Meeting, usize);

impl Conductor for Member<'_> {
    fn meet(&mut self, step: Step) -> Result<(), Stopped> {
        self.0.wait(&format!("{step:?}"), Duration::ZERO).map(drop)
    }

    fn start(&mut self, phase: Start, lead: Duration) -> Result<i64, Stopped> {
        self.0.wait(&format!("{phase:?}"), lead)
    }

    fn assembly(&mut self, held: Held) -> Option<Arc<dyn Assembly>> {
        self.0.hall.0.lock().unwrap().1[self.1] = Some(held);
        Some(Arc::new(Door(self.1, Arc::clone(&self.0.hall))))
    }
}

#[derive(Default)]
struct Records(Vec<TraceRecord>);

impl TraceSink for Records {
    fn write(&mut self, records: &[TraceRecord]) -> std::io::Result<()> {
        self.0.extend(records);
        Ok(())
    }
}

fn job(workload: &str) -> Job {
    let workload: Workload = toml::from_str(workload).unwrap();
    Job {
        name: "w".into(),
        workload,
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

/// Processes with `per` clients each.
fn shares(processes: u32, per: u32) -> Vec<Share> {
    let share = |process| Share {
        first: process * per,
        count: per,
        total: processes * per,
        process,
        processes,
        lead: process == 0,
        first_on_host: process == 0,
    };
    (0..processes).map(share).collect()
}

/// A working directory for each share.
fn areas(target: &Target, shares: &[Share]) -> Vec<WorkArea> {
    let area = |share: &Share| {
        if share.lead { WorkArea::create(target, "together") } else { WorkArea::join(target, "together") }
    };
    shares.iter().map(|share| area(share).unwrap()).collect()
}

type Outcome = (Result<Performed, ExecuteError>, Records);

fn perform_all(areas: &mut [WorkArea], shares: &[Share], job: &Job) -> Vec<Outcome> {
    let meeting = Meeting::new(shares.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = areas
            .iter_mut()
            .zip(shares)
            .map(|(area, share)| {
                let meeting = &meeting;
                scope.spawn(move || {
                    let surroundings = Surroundings {
                        agent: "a",
                        side: Side::Clients,
                        neighbours: share.processes,
                        looks: share.first_on_host,
                        stop: &meeting.stop,
                        samplers: Vec::new(),
                    };
                    let mut records = Records::default();
                    let sink = job.trace.then_some(&mut records as &mut dyn TraceSink);
                    let result = perform(
                        area,
                        job,
                        *share,
                        surroundings,
                        &mut Member(meeting, share.process as usize),
                        sink,
                        &mut |_| {},
                    );
                    if result.is_err() {
                        meeting.stop.store(true, Ordering::Relaxed);
                    }
                    (result, records)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn parts(outcomes: Vec<Outcome>, shares: &[Share]) -> Vec<Part> {
    let part = |((result, _), share): (Outcome, &Share)| Part {
        name: format!("local-{}", share.process),
        host: "h".into(),
        pid: 100 + share.process,
        share: *share,
        relation: Relation::same(),
        performed: result.unwrap(),
    };
    outcomes.into_iter().zip(shares).map(part).collect()
}

fn merged(job: &Job, parts: Vec<Part>) -> Recording {
    let start = parts[0].performed.start_monotonic_ns;
    let stagger = job.stagger.as_nanos() as u64;
    merge(&job.workload, parts, Vec::new(), start, stagger).unwrap()
}

fn total(recording: &Recording, operation: OperationKind) -> u64 {
    let series = recording.series.iter().filter(|series| series.key.operation == operation);
    series.map(|series| series.total.count).sum()
}

fn directory(path: &Path) -> Target {
    path.into()
}

fn reads() -> Job {
    job(r#"
        until = { duration = "200ms" }
        [filesets.data]
        files = 8
        size = "64KiB"
        [[groups]]
        name = "readers"
        workers = 2
        flow = [
            { op = "open", file = "next" },
            { op = "read", io_size = "4KiB", offset = "random" },
            { op = "close" },
        ]
        "#)
}

pub(crate) fn private_files_are_made_by_their_processes_and_counts_are_added() {
    let place = tempfile::tempdir().unwrap();
    let target = directory(place.path());
    let job = Job { trace: true, ..reads() };
    let shares = shares(3, 2);
    let mut areas = areas(&target, &shares);
    assert_eq!(areas.iter().map(WorkArea::is_joined).collect::<Vec<_>>(), [false, true, true]);
    let outcomes = perform_all(&mut areas, &shares, &job);
    let traced: usize = outcomes.iter().map(|(_, records)| records.0.len()).sum();
    let most = outcomes.iter().flat_map(|(_, records)| &records.0).map(|record| record.worker).max();
    assert_eq!(first_workers(&job.workload, &shares), [0, 4, 8]);
    assert_eq!(most, Some(3), "workers are numbered within their process");
    let parts = parts(outcomes, &shares);
    let starts: BTreeSet<i64> = parts.iter().map(|part| part.performed.start_monotonic_ns).collect();
    assert_eq!(starts.len(), 1, "one start for all");
    let single: Vec<u64> =
        parts.iter().map(|part| total(&part.performed.recording, OperationKind::Read)).collect();
    let recording = merged(&job, parts);
    assert_eq!(total(&recording, OperationKind::Read), single.iter().sum::<u64>());
    let by_file = recording.parts.iter().filter(|row| row.part == PartOf::File && row.label == "read");
    let by_file: Vec<(u32, u64)> = by_file.map(|row| (row.key, row.count)).collect();
    assert!(by_file.len() <= 8 && by_file.windows(2).all(|pair| pair[0].0 < pair[1].0), "{by_file:?}");
    assert_eq!(by_file.iter().map(|(_, count)| count).sum::<u64>(), single.iter().sum::<u64>());
    let all: u64 = recording.series.iter().map(|series| series.total.count + series.total.errors).sum();
    assert_eq!(traced as u64, all);
    for series in &recording.series {
        let counted: u64 = series.intervals.iter().map(|interval| interval.stats.count).sum();
        assert_eq!(counted, series.total.count);
        assert_eq!(series.total.latency.decode().unwrap().len(), series.total.count);
    }
    let clients: BTreeSet<u32> = recording.workers.iter().map(|worker| worker.client).collect();
    assert_eq!((recording.workers.len(), clients), (12, (0..6).collect()));
    assert_eq!((recording.filesets[0].files, recording.filesets[0].bytes), (48, 48 * 65536));
    assert!(recording.error_details.is_empty(), "{:?}", recording.error_details);
    let agents: Vec<_> =
        recording.agents.iter().map(|a| (a.name.as_str(), a.first_client, a.clients)).collect();
    assert_eq!(agents, [("local-0", 0, 2), ("local-1", 2, 2), ("local-2", 4, 2)]);
    let start = recording.start.unwrap();
    assert_eq!(start.bound_ns, 0, "{start:?}");

    // The next run finds its files.
    let again = merged(&job, self::parts(perform_all(&mut areas, &shares, &job), &shares));
    assert!(again.filesets[0].reused);
    for area in areas.into_iter().rev() {
        area.remove().unwrap();
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

fn names(prefill: &str, flow: &str) -> Job {
    let text = r#"
        until = { duration = "20s" }
        [filesets.data]
        files = 500
        size = "1KiB"
        sharing = "shared"
        prefill = PREFILL
        [[groups]]
        name = "g"
        workers = 2
        flow = [FLOW]
    "#;
    job(&text.replace("PREFILL", prefill).replace("FLOW", flow))
}

/// Every file of a shared fileset is created once, and removed once, whoever does it.
fn shared_names(target: &Target) {
    let shares = shares(3, 1);
    for (prefill, flow, operation) in [
        ("0.0", r#"{ op = "create", file = "new" }, { op = "close" }"#, OperationKind::Create),
        ("1.0", r#"{ op = "unlink", file = "once" }"#, OperationKind::Unlink),
        ("1.0", r#"{ op = "unlink", file = "random" }"#, OperationKind::Unlink),
        ("1.0", r#"{ op = "unlink", file = "next" }"#, OperationKind::Unlink),
    ] {
        let job = names(prefill, flow);
        let mut areas = areas(target, &shares);
        let recording = merged(&job, parts(perform_all(&mut areas, &shares, &job), &shares));
        assert_eq!(total(&recording, operation), 500, "{flow}");
        assert!(recording.error_details.is_empty(), "{flow}: {:?}", recording.error_details);
        let existing = if prefill == "1.0" { 500 } else { 0 };
        assert_eq!(recording.filesets[0].files, existing, "{flow}");
        areas.into_iter().rev().for_each(|area| area.remove().unwrap());
    }
}

pub(crate) fn names_of_shared_files_are_divided_in_a_directory() {
    let place = tempfile::tempdir().unwrap();
    shared_names(&directory(place.path()));
}

fn serve() -> (Server, Target) {
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(ServerConfig { listen, threads: 1, ..ServerConfig::default() }).unwrap();
    let url = format!("nfs://{}/export?version=4.1", server.address());
    (server, Target::Nfs(NfsTarget::new(url.parse().unwrap())))
}

pub(crate) fn names_of_shared_files_are_divided_on_a_server() {
    let (_server, target) = serve();
    shared_names(&target);
}

pub(crate) fn rpcs_are_added_up() {
    let (_server, target) = serve();
    let shares = shares(4, 1);
    let mut areas = areas(&target, &shares);
    let job = job(r#"
        until = { iterations = 1 }
        [filesets.data]
        files = 1
        size = "4KiB"
        [[groups]]
        name = "g"
        setup = [{ op = "open", file = "own" }]
        flow = [{ op = "read", io_size = "4KiB", offset = "random" }]
    "#);
    let recording = merged(&job, parts(perform_all(&mut areas, &shares, &job), &shares));
    let rpc = recording.rpc.as_ref().unwrap();
    let measured = rpc.phase(Phase::Measure).unwrap();
    assert_eq!(measured.row("READ").map(|row| (row.ops, row.errors)), Some((4, 0)));
    assert_eq!(rpc.connection.clients, 4);
    assert!(rpc.problems.is_empty(), "{:?}", rpc.problems);
}

pub(crate) fn a_client_that_is_to_start_later_does() {
    let place = tempfile::tempdir().unwrap();
    let shares = shares(2, 2);
    let job = Job { stagger: Duration::from_millis(40), ..reads() };
    let mut areas = areas(&directory(place.path()), &shares);
    let recording = merged(&job, parts(perform_all(&mut areas, &shares, &job), &shares));
    for worker in &recording.workers {
        let planned = u64::from(worker.client) * 40_000_000;
        assert!(worker.start_ns >= planned, "{worker:?}");
        let first = worker.series.iter().filter_map(|series| series.first_start_ns).min().unwrap();
        assert!(first >= planned, "{worker:?}");
    }
    let start = recording.start.unwrap();
    assert_eq!(start.stagger_ns, 40_000_000);
}

pub(crate) fn counters_and_commands_of_every_host_come_home_on_the_common_clock() {
    let place = tempfile::tempdir().unwrap();
    let shares = shares(2, 1);
    let sampling = SamplingConfig { interval: Duration::from_millis(20), ..SamplingConfig::default() };
    let collect = |name: &str, on| CollectSpec {
        name: name.into(),
        command: format!("echo {name}; exec sleep 100"),
        on,
        limit: 100,
    };
    let job = Job {
        sampling: Some(sampling),
        collect: vec![collect("at-clients", Side::Clients), collect("at-server", Side::Server)],
        ..reads()
    };
    let mut areas = areas(&directory(place.path()), &shares);
    let parts = parts(perform_all(&mut areas, &shares, &job), &shares);
    let alone = Meeting::new(1);
    let surroundings = Surroundings {
        agent: "server",
        side: Side::Server,
        neighbours: 1,
        looks: true,
        stop: &alone.stop,
        samplers: Vec::new(),
    };
    let before = monotonic_ns();
    let observations = observe(&job, surroundings, &mut Member(&alone, 0)).unwrap();
    // A clock that is an hour ahead.
    let hour = 3_600_000_000_000;
    let mut relation = Relation::same();
    relation.before.offset_ns = hour;
    let observer = Observer { name: "server".into(), host: "s".into(), pid: 1, relation, observations };
    let start = parts[0].performed.start_monotonic_ns;
    let recording = merge(&job.workload, parts, vec![observer], start, 0).unwrap();

    let names: Vec<_> = recording.collected.iter().map(|c| (c.name.as_str(), c.agent.as_str())).collect();
    assert_eq!(names, [("at-clients", "a"), ("at-server", "server")], "one process of each host runs them");
    assert_eq!(recording.collected[0].output, b"at-clients\n");
    assert!(recording.collected[0].start_ns < 0 && recording.collected[0].end_ns > 200_000_000);
    assert_eq!(recording.samples.len(), 2);
    let times = |samples: usize| {
        let series = recording.samples[samples].samples.series.iter().flat_map(|series| &series.points);
        let times: Vec<i64> = series.map(|point| point.time_ns).collect();
        (*times.iter().min().unwrap(), *times.iter().max().unwrap())
    };
    let (first, last) = times(0);
    assert!(first <= 0 && last >= 200_000_000, "read before the start and after the end: {first} {last}");
    assert!(times(1).0 >= before - hour - start, "the other clock was taken into account");
    assert!(times(1).1 < -hour + 60_000_000_000);
    let server = recording.agents.last().unwrap();
    assert_eq!((server.name.as_str(), server.clients, server.clock.offset_ns), ("server", 0, hour));
}

pub(crate) fn what_processes_cannot_share_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let shares = shares(2, 1);
    let proved = job(r#"
        verify = true
        until = { iterations = 1 }
        [filesets.data]
        files = 2
        size = "4KiB"
        sharing = "shared"
        [[groups]]
        name = "g"
        flow = [
            { op = "open", file = "own", flags = ["write"] },
            { op = "write", io_size = "4KiB", offset = "random" },
            { op = "close" },
        ]
    "#);
    let mut joined = areas(&directory(place.path()), &shares);
    let refused = perform_all(&mut joined, &shares, &proved).remove(0).0.unwrap_err();
    assert!(matches!(refused, ExecuteError::Area(AreaError::NotProvableTogether { .. })), "{refused}");

    // The second one sees another directory under the same name.
    let other = tempfile::tempdir().unwrap();
    let apart = WorkArea::join(&directory(other.path()), "together").unwrap();
    assert!(!apart.is_joined());
    let mut areas = vec![joined.remove(0), apart];
    let job = names("1.0", r#"{ op = "unlink", file = "once" }"#);
    let refused = perform_all(&mut areas, &shares, &job).remove(1).0.unwrap_err();
    assert!(matches!(refused, ExecuteError::Area(AreaError::NotShared { .. })), "{refused}");
    // Files of their own they may have.
    let recording = merged(&reads(), parts(perform_all(&mut areas, &shares, &reads()), &shares));
    assert!(total(&recording, OperationKind::Read) > 0);
    areas.into_iter().for_each(|area| area.remove().unwrap());
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
}

/// Workers of all processes in step, and one process whose workers end early.
fn meetings() -> Job {
    job(r#"
        until = { iterations = 20 }
        filesets.data = { files = 4, size = "4KiB" }
        filesets.few = { files = 3, size = 0 }
        [[groups]]
        name = "all"
        workers = 2
        setup = [{ op = "open", file = "own", fileset = "data" }, { meet = "opened" }]
        flow = [
            { op = "read", label = "first", io_size = "4KiB" },
            { meet = "between" },
            { op = "stat", label = "second", fileset = "data", file = "own" },
            { meet = "end" },
        ]
        [[groups]]
        name = "some"
        clients = { first = 1, last = 1 }
        flow = [
            { op = "stat", label = "third", fileset = "few", file = "once" },
            { meet = "between" },
            { meet = "end" },
        ]
        "#)
}

pub(crate) fn workers_of_different_processes_meet() {
    let place = tempfile::tempdir().unwrap();
    let job = Job { trace: true, ..meetings() };
    let shares = shares(4, 1);
    let mut areas = areas(&directory(place.path()), &shares);
    let outcomes = perform_all(&mut areas, &shares, &job);
    let spans = |label: &str, round: usize| -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        for (performed, records) in &outcomes {
            let recording = &performed.as_ref().unwrap().recording;
            let series = recording.series.iter().position(|series| series.key.label == label).unwrap();
            for worker in 0..2 {
                let own =
                    |record: &&TraceRecord| usize::from(record.series) == series && record.worker == worker;
                let record = records.0.iter().filter(own).nth(round).unwrap();
                spans.push((record.start_ns, record.start_ns + record.latency_ns));
            }
        }
        assert_eq!(spans.len(), 8);
        spans
    };
    // All are on one host and begin at the same instant, to within some ticks.
    let slack = 10_000;
    let before = |one: &[(u64, u64)], other: &[(u64, u64)]| {
        one.iter().map(|span| span.1).max().unwrap() <= other.iter().map(|span| span.0).min().unwrap() + slack
    };
    for round in 0..20 {
        assert!(before(&spans("first", round), &spans("second", round)), "round {round}");
        if round > 0 {
            assert!(before(&spans("second", round - 1), &spans("first", round)), "start of round {round}");
        }
    }
    let recording = merged(&job, parts(outcomes, &shares));
    let count = |label: &str| {
        let found = recording.series.iter().find(|series| series.key.label == label).unwrap();
        found.total.count
    };
    assert_eq!([count("first"), count("second"), count("third")], [160, 160, 3]);
}

pub(crate) fn operations_do_not_depend_on_how_clients_are_divided() {
    let job = job(r#"
        until = { iterations = 200 }
        filesets.own = { files = 200, size = "4KiB", prefill = 0.5 }
        filesets.all = { files = 300, size = "64KiB", sharing = "shared" }
        filesets.gone = { files = 50, size = 0, sharing = "shared" }
        [[groups]]
        name = "g"
        workers = 2
        flow = [
            { op = "open", fileset = "all", file = "random" },
            { op = "read", io_size = "4KiB", offset = "random" },
            { op = "close" },
            { choose = [
                { weight = 1, flow = [{ op = "create", fileset = "own", flags = ["write"] }, { op = "close" }] },
                { weight = 1, flow = [{ op = "unlink", fileset = "own", file = "random" }] },
            ] },
        ]
        [[groups]]
        name = "removers"
        clients = { first = 1, last = 2 }
        workers = 2
        flow = [{ op = "unlink", fileset = "gone", file = "once" }]
        "#);
    let streams = |processes: u32| {
        let place = tempfile::tempdir().unwrap();
        let shares = shares(processes, 4 / processes);
        let mut areas = areas(&directory(place.path()), &shares);
        let recording = merged(&job, parts(perform_all(&mut areas, &shares, &job), &shares));
        assert_eq!(recording.error_details, [""; 0]);
        assert!(total(&recording, OperationKind::Unlink) >= 50, "every file was removed once");
        let of = |worker: &benchmaster_record::recording::WorkerRecording| {
            (worker.client, worker.group.clone(), worker.worker, worker.stream)
        };
        let mut streams: Vec<_> = recording.workers.iter().map(of).collect();
        streams.sort_by(|a, b| (a.0, &a.1, a.2).cmp(&(b.0, &b.1, b.2)));
        (streams, recording.operations_hash())
    };
    let one = streams(1);
    assert_eq!(one.0.len(), 12);
    assert_eq!(streams(2), one);
    assert_eq!(streams(4), one);
}
