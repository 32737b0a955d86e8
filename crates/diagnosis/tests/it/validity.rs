//! Each validity check: a recording that provokes it, and one that is clean.

mod fleet;
mod lab;

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use std::collections::BTreeMap;

use benchmaster_analysis::responses::Course;
use benchmaster_builtin::{DataParameters, WorkloadSpec};
use benchmaster_diagnosis::validity::machines::LabLook;
use benchmaster_diagnosis::validity::{Subject, check, remedy};
use benchmaster_record::environment::Environment;
use benchmaster_record::environment::TargetEnvironment;
use benchmaster_record::model::{Claim, OpenFlag, OperationKind, Step, Workload};
use benchmaster_record::recording::{
    AgentRecording, CacheAction, ClockFacts, ConnectionFacts, EncodedHistogram, FilesetFacts, HostSamples,
    HostUse, IntervalStats, OperationStats, PartOf, PartRow, PhaseTiming, Recording, RpcCounters, RpcPhase,
    RpcRecording, RpcRow, RpcSource, SeriesKey, SeriesRecording, StartFacts, StopReason, WorkerRecording,
    latency_histogram,
};
use benchmaster_record::results::{
    Check, CheckKind, NetworkAchieved, NetworkRecord, ServerUse, ServiceRecord, Severity,
};
use benchmaster_record::samples::{Cost, Kind, MetricKey, Point, Samples, Series};

const SECOND: u64 = 1_000_000_000;
const GB: u64 = 1_000_000_000;

struct Case {
    workload: Workload,
    recording: Recording,
    environment: Environment,
    course: Course,
    service: Option<ServiceRecord>,
    server: Option<ServerUse>,
    lab: Option<LabLook>,
}

impl Case {
    /// One worker for 60 s at 1000 operations of 64 KiB per second, steady, from a disk and far from any limit.
    fn clean(operation: OperationKind) -> Self {
        let spec = match operation {
            Write => WorkloadSpec::SequentialWrite(DataParameters::default()),
            _ => WorkloadSpec::RandomRead(DataParameters::default()),
        };
        let stats = |seconds: u64| {
            let mut latency = latency_histogram();
            latency.record_n(900_000, 1000 * seconds).unwrap();
            OperationStats {
                count: 1000 * seconds,
                bytes: 65_536_000 * seconds,
                errors: 0,
                sum_ns: 900_000_000 * seconds,
                latency: EncodedHistogram::encode(&latency),
            }
        };
        let key = SeriesKey { group: "g".into(), label: operation.name().into(), operation };
        let series = SeriesRecording {
            key,
            total: stats(60),
            intervals: (0..60).map(|index| IntervalStats { index, stats: stats(1) }).collect(),
            errors: BTreeMap::new(),
            span: Some((0, 60 * SECOND)),
            service: None,
        };
        let phase = |phase: Phase, start_ns: i64, end_ns: i64, operations| PhaseTiming {
            phase,
            start_ns,
            end_ns,
            operations,
            errors: 0,
        };
        let recording = Recording {
            workload: "w".into(),
            timed: true,
            started_unix_ns: 0,
            length_ns: 60 * SECOND,
            interval_ns: SECOND,
            cut_ns: 0,
            cut_reason: String::new(),
            series: vec![series],
            workers: vec![WorkerRecording {
                group: "g".into(),
                end_ns: 60 * SECOND,
                cpu_ns: Some((3 * SECOND, 6 * SECOND)),
                stop: StopReason::Time,
                ..WorkerRecording::default()
            }],
            phases: vec![
                phase(Phase::Prepare, -5_000_000_000, 0, 1),
                phase(Phase::Measure, 0, 60_000_000_000, 60_000),
                phase(Phase::TearDown, 60_000_000_000, 61_000_000_000, 1),
            ],
            filesets: vec![FilesetFacts {
                name: "w".into(),
                files: 1,
                bytes: 20 * GB,
                reused: false,
                cached_bytes: Some(0),
            }],
            cache: CacheAction::default(),
            host: HostUse {
                process_user_ns: 3 * SECOND,
                process_system_ns: 6 * SECOND,
                host_busy: Some(0.1),
                host_steal: Some(0.0),
                processors: 4,
                null_rate: Some(20e6),
                free_after: Some(500 * GB),
                ..HostUse::default()
            },
            error_details: Vec::new(),
            verified_bytes: None,
            corruption: None,
            witness: None,
            rpc: None,
            agents: Vec::new(),
            start: None,
            samples: Vec::new(),
            collected: Vec::new(),
            parts: vec![],
            slow: vec![],
            replay: None,
        };
        let environment = Environment {
            memory_total: Some(16 * GB),
            target: Some(TargetEnvironment {
                file_system: "ext4".into(),
                total_bytes: 1000 * GB,
                ..TargetEnvironment::default()
            }),
            ..Environment::default()
        };
        let workload = spec.expand("w").unwrap();
        Self {
            workload,
            recording,
            environment,
            course: Course::Steady,
            service: None,
            server: None,
            lab: None,
        }
    }

    /// The same on an external server's export, every operation by one RPC.
    fn export(operation: OperationKind) -> Self {
        let mut case = Self::clean(operation);
        let total = &case.recording.series[0].total;
        let bytes = total.bytes;
        let row = RpcRow {
            program: "NFSv4".into(),
            operation: if operation == Write { "WRITE" } else { "READ" }.into(),
            counters: RpcCounters {
                ops: total.count,
                transmissions: total.count,
                bytes_sent: if operation == Write { bytes } else { 0 } + 160 * total.count,
                bytes_received: if operation == Write { 0 } else { bytes } + 140 * total.count,
                queue_ns: total.sum_ns / 100,
                rtt_ns: total.sum_ns / 10 * 9,
                execute_ns: total.sum_ns / 100 * 95,
                ..RpcCounters::default()
            },
        };
        let measure = RpcPhase { phase: Phase::Measure, rows: vec![row], events: BTreeMap::new() };
        case.recording.rpc = Some(RpcRecording {
            phases: vec![measure],
            client_cpu_ns: (3 * SECOND, 3 * SECOND),
            connection: ConnectionFacts {
                version: Some(NfsVersion::V41),
                nconnect: 1,
                clients: 1,
                slots: Some(64),
                threads: Some(1),
                ..ConnectionFacts::default()
            },
            ..RpcRecording::default()
        });
        case.recording.workers[0].cpu_ns = None;
        case.recording.filesets[0].cached_bytes = None;
        case.service = Some(ServiceRecord {
            url: "nfs://filer/vol?version=4.1".into(),
            server: ServedBy::External,
            network: NetworkRecord::default(),
            achieved: None,
        });
        case
    }

    fn measure(&mut self) -> &mut RpcPhase {
        &mut self.recording.rpc.as_mut().unwrap().phases[0]
    }

    fn checks(&self) -> Vec<Check> {
        check(Subject {
            workload: &self.workload,
            recording: &self.recording,
            environment: &self.environment,
            course: self.course,
            service: self.service.as_ref(),
            server: self.server.as_ref(),
            lab: self.lab.as_ref(),
        })
    }

    /// The one check that does not pass.
    fn only(&self) -> (CheckKind, Severity, String) {
        let checks = self.checks();
        assert_eq!(checks.len(), 1, "{checks:#?}");
        assert_eq!(checks[0].workload.as_deref(), Some("w"));
        assert!(checks[0].evidence.iter().all(|evidence| evidence.value.is_finite()));
        (checks[0].kind, checks[0].severity, checks[0].message.clone())
    }
}

fn provoked(operation: OperationKind, change: impl FnOnce(&mut Case)) -> (CheckKind, Severity, String) {
    let mut case = Case::clean(operation);
    change(&mut case);
    case.only()
}

use OperationKind::{Read, Write};

#[test]
fn clean_recordings_pass() {
    for operation in [Read, Write] {
        assert_eq!(Case::clean(operation).checks(), []);
    }
}

#[test]
fn reads_that_may_come_from_the_cache() {
    let small = |case: &mut Case| case.recording.filesets[0].bytes = GB;
    let (id, severity, message) = provoked(Read, small);
    assert_eq!((id, severity), (CheckKind::CachedReads, Severity::Warning));
    assert!(
        message.contains("(954 MiB)") && message.contains("(14.9 GiB)") && message.contains("3.9 times"),
        "{message}"
    );

    let (_, _, message) = provoked(Read, |case| {
        case.recording.filesets[0].bytes = 10 * GB;
        case.recording.filesets[0].cached_bytes = Some(5 * GB);
    });
    assert!(message.contains("50 % of it was cached"), "{message}");
    let (_, _, message) = provoked(Read, |case| {
        small(case);
        case.recording.filesets[0].cached_bytes = None;
    });
    assert!(message.contains("not known"), "{message}");

    let passes = |change: &dyn Fn(&mut Case)| {
        let mut case = Case::clean(Read);
        small(&mut case);
        change(&mut case);
        assert_eq!(case.checks(), []);
    };
    passes(&|case| case.workload.claims = Claim::Cache);
    passes(&|case| case.environment.target.as_mut().unwrap().file_system = "tmpfs".into());
    passes(&|case| case.workload.groups[0].setup[0].flags.push(OpenFlag::Direct));
    // Read once from a cold cache: nothing of it can have been cached.
    passes(&|case| case.recording.filesets[0].bytes = 10 * GB);
}

#[test]
fn errors_and_wrong_data_are_never_valid() {
    let (id, severity, message) = provoked(Read, |case| {
        case.recording.series[0].total.errors = 3;
        case.recording.series[0].errors = BTreeMap::from([("EIO".into(), 2), ("ESTALE".into(), 1)]);
        case.recording.error_details = vec!["read w/c0/f00000000, offset 4096: Input/output error".into()];
    });
    assert_eq!((id, severity), (CheckKind::Errors, Severity::Invalid));
    assert!(
        message.contains("3 operations failed (2 × EIO, 1 × ESTALE)") && message.contains("offset 4096"),
        "{message}"
    );
    let (id, _, message) = provoked(Write, |case| case.recording.phases[2].errors = 1);
    assert!(id == CheckKind::Errors && message.contains("1 outside the measured phase"), "{message}");
    let (id, severity, _) = provoked(Read, |case| case.recording.corruption = Some("f, offset 7".into()));
    assert_eq!((id, severity), (CheckKind::Corruption, Severity::Invalid));
}

#[test]
fn full_file_systems() {
    let (id, severity, _) = provoked(Write, |case| case.recording.host.free_after = Some(5 * GB));
    assert_eq!((id, severity), (CheckKind::FileSystemFull, Severity::Warning));
    let mut case = Case::clean(Write);
    case.recording.series[0].total.errors = 1;
    case.recording.series[0].errors = BTreeMap::from([("ENOSPC".into(), 1)]);
    let ids: Vec<_> = case.checks().into_iter().map(|check| (check.kind, check.severity)).collect();
    assert_eq!(ids, [(CheckKind::Errors, Severity::Invalid), (CheckKind::FileSystemFull, Severity::Invalid)]);
}

#[test]
fn writes_that_did_not_reach_the_storage() {
    let (id, _, message) = provoked(Write, |case| case.recording.phases[2].end_ns = 70_000_000_000);
    assert!(id == CheckKind::UnflushedWrites && message.contains("10.00 s after 60.00 s"), "{message}");
}

#[test]
fn the_share_of_writes_on_stable_storage_is_stated() {
    let of = |case: &mut Case, change: &dyn Fn(&mut Case)| {
        case.recording.series[0].key.group = case.workload.groups[0].name.clone();
        change(case);
        case.checks().into_iter().find(|check| check.kind == CheckKind::UnstableWrites)
    };
    let check = |change: &dyn Fn(&mut Case)| of(&mut Case::clean(Write), change);
    let written = Case::clean(Write).recording.series[0].total.bytes;
    let little = check(&|case| case.recording.host.written_back = Some(written / 80)).unwrap();
    assert_eq!(little.severity, Severity::Warning);
    assert!(little.message.contains("(1.2 %)") || little.message.contains("(1 %)"), "{}", little.message);
    assert!((little.number("stable_share").unwrap() - 1.0 / 80.0).abs() < 1e-6);
    let half = check(&|case| case.recording.host.written_back = Some(written / 4 * 3)).unwrap();
    assert_eq!(half.severity, Severity::Note);
    // All of it, none known, memory that is the storage, and writes that are stable when they end.
    for change in [
        &(|case: &mut Case| case.recording.host.written_back = Some(2 * written)) as &dyn Fn(&mut Case),
        &|case| case.recording.host.written_back = None,
        &|case| {
            case.recording.host.written_back = Some(0);
            case.environment.target.as_mut().unwrap().file_system = "tmpfs".into();
        },
        &|case| {
            case.recording.host.written_back = Some(0);
            case.workload.groups[0].setup[0].flags.push(OpenFlag::Dsync);
        },
    ] {
        assert_eq!(check(change), None);
    }
    let export = |change: &dyn Fn(&mut Case)| of(&mut Case::export(Write), change);
    let none = export(&|_| ()).unwrap();
    assert!(
        none.message.contains("at most 0 B of them (0 %)") && none.message.contains("no COMMIT"),
        "{}",
        none.message
    );
    assert_eq!(export(&|case| case.service.as_mut().unwrap().url += "&sync=file"), None);
    assert_eq!(export(&|case| case.service.as_mut().unwrap().server = ServedBy::Embedded), None);
}

/// Writes of 64 KiB: 1 GB/s for so many seconds, then nothing, until 60 s are over.
fn bursts(case: &mut Case, burst: u32, stall: u32) {
    let series = &mut case.recording.series[0];
    series.key.group = case.workload.groups[0].name.clone();
    let intervals = &mut series.intervals;
    intervals.retain(|interval| interval.index % (burst + stall) < burst);
    for interval in intervals {
        (interval.stats.bytes, interval.stats.count) = (GB, GB / 65_536);
    }
}

#[test]
fn writes_in_bursts_with_stalls_between_them() {
    let check = |operation, change: &dyn Fn(&mut Case)| {
        let mut case = Case::clean(operation);
        change(&mut case);
        case.checks().into_iter().find(|check| check.kind == CheckKind::BurstAndFlush)
    };
    let found = check(Write, &|case| bursts(case, 3, 17)).unwrap();
    assert_eq!(found.severity, Severity::Warning);
    for part in
        ["1 GB/s for 3.0 s", "then nothing for 17.0 s", "every 20.0 s", "2 whole cycles", "85 % of the time"]
    {
        assert!(found.message.contains(part), "{part}: {}", found.message);
    }
    assert!(remedy(&found).text.contains("at least 200 s"));
    assert_eq!((found.number("period_s").unwrap(), found.number("stall_share").unwrap()), (20.0, 0.85));
    assert_eq!((found.number("burst_rate").unwrap(), found.number("longest_stall_s").unwrap()), (1e9, 17.0));
    // Many cycles: the mean is one over whole cycles, nearly.
    assert_eq!(check(Write, &|case| bursts(case, 2, 4)).unwrap().severity, Severity::Note);
    // One burst, and then nothing until the end.
    let once = check(Write, &|case| bursts(case, 20, 40)).unwrap();
    assert!(once.message.contains("had not ended") && once.number("period_s").is_none(), "{}", once.message);

    // Workers that are done stall no more, and clients that keep nothing have no cache to flush.
    let ended = |case: &mut Case| {
        bursts(case, 20, 40);
        case.recording.workers[0].end_ns = 20_000_000_000;
    };
    assert_eq!(check(Write, &ended), None);
    let mut export = Case::export(Write);
    bursts(&mut export, 3, 17);
    assert!(export.checks().iter().all(|check| check.kind != CheckKind::BurstAndFlush));

    // Reads, writes that wait for the storage, and so few writes that an interval without one means nothing.
    assert_eq!(check(Read, &|case| bursts(case, 3, 17)), None);
    for flag in [OpenFlag::Sync, OpenFlag::Dsync, OpenFlag::Direct] {
        let stable = |case: &mut Case| {
            bursts(case, 3, 17);
            case.workload.groups[0].setup[0].flags.push(flag);
        };
        assert_eq!(check(Write, &stable), None, "{flag:?}");
    }
    let flushed = |case: &mut Case| {
        bursts(case, 3, 17);
        case.workload.groups[0].flow.push(Step { op: Some(OperationKind::Fsync), ..Step::default() });
    };
    assert_eq!(check(Write, &flushed), None);
    let few = |case: &mut Case| {
        bursts(case, 3, 17);
        case.recording.series[0].intervals.iter_mut().for_each(|interval| interval.stats.count = 2);
    };
    assert_eq!(check(Write, &few), None);
}

#[test]
fn limits_of_the_generator() {
    let (id, _, _) = provoked(Read, |case| case.recording.host.null_rate = Some(1900.0));
    assert_eq!(id, CheckKind::GeneratorLimit);
    let (id, _, message) = provoked(Read, |case| case.recording.host.host_busy = Some(0.99));
    assert!(
        id == CheckKind::CpuLimit && message.contains("99 % busy") && message.contains("67 %"),
        "{message}"
    );
    let (id, _, message) =
        provoked(Read, |case| case.recording.workers[0].cpu_ns = Some((20 * SECOND, 39 * SECOND)));
    assert!(id == CheckKind::CpuLimit && message.contains("98 % of the time"), "{message}");
}

#[test]
fn too_little_or_uneven_work() {
    let (id, _, _) = provoked(Read, |case| case.recording.series[0].total.count = 99);
    assert_eq!(id, CheckKind::TooFewOperations);
    let (id, _, message) = provoked(Read, |case| {
        let mut early = case.recording.workers[0].clone();
        (early.worker, early.end_ns, early.stop) = (1, 54 * SECOND, StopReason::Errors);
        early.cpu_ns = Some((SECOND, SECOND));
        case.recording.workers.push(early);
    });
    assert!(
        id == CheckKind::UnevenFinish && message.contains("10 %") && message.contains("1 gave up"),
        "{message}"
    );
}

#[test]
fn clocks_and_noise() {
    for (step, wrong) in [(20_000_000, false), (40_000_000, true), (-40_000_000, true)] {
        let mut case = Case::clean(Read);
        case.recording.host.clock_step_ns = step;
        assert_eq!(case.checks().iter().any(|check| check.kind == CheckKind::ClockStep), wrong, "{step}");
    }
    let (id, severity, _) = provoked(Read, |case| case.recording.host.clock_drift = -0.002);
    assert_eq!((id, severity), (CheckKind::ClockDrift, Severity::Invalid));
    let (id, _, _) = provoked(Read, |case| case.recording.host.host_steal = Some(0.2));
    assert_eq!(id, CheckKind::NoisyHost);
    let (id, _, _) = provoked(Read, |case| case.recording.host.trace_stall_ns = 3 * SECOND);
    assert_eq!(id, CheckKind::TraceStall);
}

#[test]
fn rates_that_do_not_settle() {
    let (id, severity, _) = provoked(Read, |case| case.course = Course::NotSteady);
    assert_eq!((id, severity), (CheckKind::NotSteady, Severity::Warning));
    let stalled = Course::Stalled { operations: 1334, until_ns: 24 * SECOND };
    let (id, severity, message) = provoked(Read, |case| case.course = stalled);
    assert_eq!((id, severity), (CheckKind::NotSteady, Severity::Warning));
    assert!(
        message
            .starts_with("Nothing was completed after 24 s of 60 s: the rate is that of the 1334 operations"),
        "{message}"
    );
    // Intervals that scatter range over more than 20 % in rounds of 12, and tell nothing of a change.
    let mut scattered = Case::clean(Read);
    for interval in &mut scattered.recording.series[0].intervals {
        interval.stats.bytes = 65_536_000 * u64::from(interval.index * 7919 % 13);
    }
    assert_eq!(scattered.checks(), []);
    let drift = |case: &mut Case| {
        for interval in &mut case.recording.series[0].intervals {
            interval.stats.bytes += u64::from(interval.index) * 500_000;
        }
    };
    let (id, severity, message) = provoked(Read, drift);
    assert_eq!((id, severity), (CheckKind::NotSteady, Severity::Note));
    assert!(message.contains("over five rounds"), "{message}");
    // Work that is done once has no steady state to reach.
    let mut case = Case::clean(Read);
    drift(&mut case);
    case.recording.timed = false;
    assert_eq!(case.checks(), []);
}

fn provoked_over_the_wire(
    operation: OperationKind,
    change: impl FnOnce(&mut Case),
) -> (CheckKind, Severity, String) {
    let mut case = Case::export(operation);
    change(&mut case);
    case.only()
}

#[test]
fn an_export_that_is_read_and_written_in_good_order_passes() {
    for operation in [Read, Write] {
        let checks = Case::export(operation).checks();
        assert!(checks.is_empty(), "{checks:#?}");
    }
    // The host's memory is no cache of an export: there is nothing to say of a small data set.
    let mut small = Case::export(Read);
    small.recording.filesets[0].bytes = GB;
    assert!(small.checks().is_empty());
}

#[test]
fn what_the_client_cached_is_the_part_that_never_went_over_the_wire() {
    let (id, severity, message) = provoked_over_the_wire(Read, |case| {
        let row = &mut case.measure().rows[0];
        row.bytes_received /= 2;
    });
    assert_eq!((id, severity), (CheckKind::CachedReads, Severity::Warning));
    assert!(message.contains("50 % of 3.7 GiB"), "{message}");
    // The kernel's client is judged by its counters too, and no longer by what is in the page cache.
    let mut mounted = Case::export(Read);
    mounted.service = None;
    mounted.recording.rpc.as_mut().unwrap().source = RpcSource::Kernel;
    mounted.recording.filesets[0].bytes = GB;
    assert_eq!(mounted.checks(), []);
    mounted.measure().rows[0].bytes_received /= 4;
    let checks = mounted.checks();
    let [check] = &checks[..] else { panic!("{checks:#?}") };
    assert!(check.message.contains("75 % of 3.7 GiB"), "{}", check.message);
    assert!(remedy(check).text.contains("empty it before each run"));
    let mut meant = Case::export(Read);
    meant.measure().rows[0].bytes_received = 0;
    meant.workload.claims = Claim::Cache;
    assert!(meant.checks().is_empty());
}

#[test]
fn what_went_wrong_on_the_wire_is_a_failed_check() {
    let (id, severity, message) =
        provoked_over_the_wire(Read, |case| case.measure().rows[0].transmissions += 7);
    assert_eq!((id, severity), (CheckKind::RpcRetransmissions, Severity::Warning));
    assert!(message.contains("7 requests") && message.contains("READ 7"), "{message}");

    let (id, severity, _) = provoked_over_the_wire(Read, |case| case.measure().rows[0].timeouts = 2);
    assert_eq!((id, severity), (CheckKind::RpcTimeouts, Severity::Warning));

    let events = |case: &mut Case, name: &str, count| case.measure().events.insert(name.into(), count);
    let (id, severity, message) = provoked_over_the_wire(Write, |case| {
        events(case, "reconnect", 3);
        events(case, "connect", 1);
    });
    assert_eq!((id, severity), (CheckKind::Reconnects, Severity::Warning));
    assert!(message.contains("3 times"), "{message}");

    let (id, severity, _) = provoked_over_the_wire(Write, |case| case.measure().rows[0].errors = 1);
    assert_eq!((id, severity), (CheckKind::RpcErrors, Severity::Note));

    let (id, severity, message) = provoked_over_the_wire(Write, |case| {
        case.recording.rpc.as_mut().unwrap().problems =
            vec!["2 calls outstanding".into(), "state lost".into()];
    });
    assert_eq!((id, severity), (CheckKind::ClientState, Severity::Warning));
    assert!(message.ends_with("2 calls outstanding (and 1 more)."), "{message}");
}

#[test]
fn slots_are_exhausted_by_the_share_of_waiting() {
    let waiting = |share: u64| {
        move |case: &mut Case| {
            case.measure().events.insert("slot-wait".into(), 30_000);
            let row = &mut case.measure().rows[0];
            row.queue_ns = row.execute_ns / 100 * share;
        }
    };
    let (id, severity, message) = provoked_over_the_wire(Read, waiting(40));
    assert_eq!((id, severity), (CheckKind::SlotsExhausted, Severity::Warning));
    assert!(message.contains("(64)") && message.contains("50 %") && message.contains("40 %"), "{message}");
    let mut little = Case::export(Read);
    waiting(5)(&mut little);
    assert!(little.checks().is_empty());
}

#[test]
fn throughput_through_a_relay_is_doubted_when_much_is_in_flight() {
    let relay = |delay_ms: u64| {
        move |case: &mut Case| {
            let service = case.service.as_mut().unwrap();
            (service.network.emulator, service.network.delay_ns) = (Emulator::Relay, delay_ms * 1_000_000);
        }
    };
    let (id, severity, message) = provoked_over_the_wire(Read, relay(10));
    assert_eq!((id, severity), (CheckKind::EmulatedNetwork, Severity::Warning));
    assert!(message.contains("10 ms one-way delay and 1.2 MiB in flight"), "{message}");
    let (id, severity, _) = provoked_over_the_wire(Read, |case| {
        relay(1)(case);
        case.recording.rpc.as_mut().unwrap().connection.clients = 20;
    });
    assert_eq!((id, severity), (CheckKind::EmulatedNetwork, Severity::Note));
}

#[test]
fn an_embedded_server_is_noted_with_its_processor_time() {
    let (id, severity, message) = provoked_over_the_wire(Read, |case| {
        case.service.as_mut().unwrap().server = ServedBy::Embedded;
        case.server = Some(ServerUse {
            workload: "w".into(),
            calls: 60_000,
            connections: 0,
            replayed: 0,
            cpu_ns: Some(30 * SECOND),
            held_ns: Some(0),
            operations: Vec::new(),
        });
    });
    assert_eq!((id, severity), (CheckKind::SharedHost, Severity::Note));
    assert!(message.contains("it used 0.50 of them, the clients 0.10"), "{message}");
}

#[test]
fn clients_whose_threads_are_always_busy_are_the_limit() {
    let (id, _, message) = provoked_over_the_wire(Read, |case| {
        case.recording.rpc.as_mut().unwrap().client_cpu_ns = (30 * SECOND, 29 * SECOND);
    });
    assert_eq!(id, CheckKind::CpuLimit);
    assert!(message.contains("the clients' threads were on a processor 98 %"), "{message}");
}

/// Clean, with two clients on hosts of their own.
fn two_clients() -> Case {
    let mut case = Case::clean(Read);
    let agent = |name: &str, first_client| AgentRecording {
        name: name.into(),
        first_client,
        clients: 1,
        clock: ClockFacts { bound_ns: 40_000, drift: Some(2e-6), ..ClockFacts::default() },
        ..AgentRecording::default()
    };
    case.recording.agents = vec![agent("c1", 0), agent("c2", 1)];
    case.recording.start = Some(StartFacts { spread_ns: 30_000, bound_ns: 80_000, ..StartFacts::default() });
    case
}

fn only(case: &Case) -> (CheckKind, Severity, String) {
    let checks = case.checks();
    assert_eq!(checks.len(), 1, "{checks:?}");
    (checks[0].kind, checks[0].severity, checks[0].message.clone())
}

#[test]
fn what_the_target_asks_for_was_in_effect() {
    let with = |url: &str, slots: Option<u32>, used: &[u64]| {
        let mut case = Case::export(Read);
        case.service.as_mut().unwrap().url = url.to_owned();
        let connection = &mut case.recording.rpc.as_mut().unwrap().connection;
        (connection.slots, connection.nconnect) = (slots, used.len() as u32);
        let part = |(key, &count): (usize, &u64)| PartRow {
            part: PartOf::Connection,
            label: String::new(),
            key: key as u32,
            count,
            sum_ns: 1000 * count,
        };
        // Those without a call are not stored.
        case.recording.parts.extend(used.iter().enumerate().map(part).filter(|part| part.count > 0));
        case
    };
    let (kind, severity, message) = with("nfs://s/v?version=4.1&slots=256", Some(64), &[99]).only();
    assert_eq!((kind, severity), (CheckKind::NotInEffect, Severity::Invalid));
    assert_eq!(message, "`slots=256` was not in effect: the server granted 64 of 256.");
    let (kind, _, message) = with("nfs://s/v?version=4.1&nconnect=3", Some(64), &[50, 0, 50]).only();
    assert_eq!(kind, CheckKind::NotInEffect);
    assert_eq!(message, "`nconnect=3` was not in effect: the connections in use were 2 of 3.");
    let (_, _, message) =
        with("nfs://s/v?version=4.1&addresses=t+u&nconnect=1", Some(64), &[99, 0, 0]).only();
    assert!(message.starts_with("`addresses=t+u` was not in effect"), "{message}");
    // As asked; not asked for; too few calls to tell; no sessions.
    for (url, slots, used) in [
        ("nfs://s/v?version=4.1&slots=256&nconnect=2", Some(256), &[50, 50][..]),
        ("nfs://s/v?version=4.1", Some(16), &[99]),
        ("nfs://s/v?version=4.1&nconnect=4", Some(64), &[20, 20, 20, 0]),
        ("nfs://s/v?version=3&slots=256", None, &[99]),
    ] {
        assert_eq!(with(url, slots, used).checks(), [], "{url}");
    }
}
