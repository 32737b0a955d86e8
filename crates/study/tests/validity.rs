//! Each validity check: a recording that provokes it, and one that is clean.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use benchmaster_store::record::{Check, Severity};
use benchmaster_study::validity::{Subject, check};
use benchmaster_telemetry::Environment;
use benchmaster_telemetry::environment::TargetEnvironment;
use benchmaster_workload::builtin::{DataParameters, WorkloadSpec};
use benchmaster_workload::model::{Claim, OperationKind, Workload};
use benchmaster_workload::recording::{
    CacheAction, EncodedHistogram, FilesetFacts, HostUse, IntervalStats, OperationStats, PhaseTiming,
    Recording, SeriesKey, SeriesRecording, StopReason, WorkerRecording, latency_histogram,
};

const SECOND: u64 = 1_000_000_000;
const GB: u64 = 1_000_000_000;

struct Case {
    workload: Workload,
    recording: Recording,
    environment: Environment,
    steady: Option<bool>,
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
            service: None,
        };
        let phase = |phase: &str, start_ns: i64, end_ns: i64, operations| PhaseTiming {
            phase: phase.into(),
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
                phase("prepare", -5_000_000_000, 0, 1),
                phase("measure", 0, 60_000_000_000, 60_000),
                phase("tear-down", 60_000_000_000, 61_000_000_000, 1),
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
        Self { workload: spec.expand("w").unwrap(), recording, environment, steady: Some(true) }
    }

    fn checks(&self) -> Vec<Check> {
        check(Subject {
            workload: &self.workload,
            recording: &self.recording,
            environment: &self.environment,
            steady: self.steady,
        })
    }

    /// The one check that does not pass.
    fn only(&self) -> (String, Severity, String) {
        let checks = self.checks();
        assert_eq!(checks.len(), 1, "{checks:#?}");
        assert_eq!(checks[0].workload.as_deref(), Some("w"));
        assert!(checks[0].evidence.values().all(|value| value.is_finite()));
        (checks[0].id.clone(), checks[0].severity, checks[0].message.clone())
    }
}

fn provoked(operation: OperationKind, change: impl FnOnce(&mut Case)) -> (String, Severity, String) {
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
    assert_eq!((id.as_str(), severity), ("cached-reads", Severity::Warning));
    assert!(
        message.contains("(1.0 GB)") && message.contains("(16.0 GB)") && message.contains("3.9 times"),
        "{message}"
    );

    let (_, _, message) = provoked(Read, |case| {
        case.recording.filesets[0].bytes = 10 * GB;
        case.recording.filesets[0].cached_bytes = Some(5 * GB);
    });
    assert!(message.contains("50 % of it were cached"), "{message}");
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
    passes(&|case| {
        case.workload.groups[0].setup[0].flags.push(benchmaster_workload::model::OpenFlag::Direct)
    });
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
    assert_eq!((id.as_str(), severity), ("errors", Severity::Invalid));
    assert!(
        message.contains("3 operations failed (2 × EIO, 1 × ESTALE)") && message.contains("offset 4096"),
        "{message}"
    );
    let (id, _, message) = provoked(Write, |case| case.recording.phases[2].errors = 1);
    assert!(id == "errors" && message.contains("1 outside the measured phase"), "{message}");
    let (id, severity, _) = provoked(Read, |case| case.recording.corruption = Some("f, offset 7".into()));
    assert_eq!((id.as_str(), severity), ("corruption", Severity::Invalid));
}

#[test]
fn full_file_systems() {
    let (id, severity, _) = provoked(Write, |case| case.recording.host.free_after = Some(5 * GB));
    assert_eq!((id.as_str(), severity), ("file-system-full", Severity::Warning));
    let mut case = Case::clean(Write);
    case.recording.series[0].total.errors = 1;
    case.recording.series[0].errors = BTreeMap::from([("ENOSPC".into(), 1)]);
    let ids: Vec<_> = case.checks().into_iter().map(|check| (check.id, check.severity)).collect();
    assert_eq!(ids, [("errors".into(), Severity::Invalid), ("file-system-full".into(), Severity::Invalid)]);
}

#[test]
fn writes_that_did_not_reach_the_storage() {
    let (id, _, message) = provoked(Write, |case| case.recording.phases[2].end_ns = 70_000_000_000);
    assert!(id == "unflushed-writes" && message.contains("10.00 s after 60.00 s"), "{message}");
}

#[test]
fn limits_of_the_generator() {
    let (id, _, _) = provoked(Read, |case| case.recording.host.null_rate = Some(1900.0));
    assert_eq!(id, "generator-limit");
    let (id, _, message) = provoked(Read, |case| case.recording.host.host_busy = Some(0.99));
    assert!(id == "cpu-limit" && message.contains("99 % busy") && message.contains("67 %"), "{message}");
    let (id, _, message) =
        provoked(Read, |case| case.recording.workers[0].cpu_ns = Some((20 * SECOND, 39 * SECOND)));
    assert!(id == "cpu-limit" && message.contains("98 % of the time"), "{message}");
}

#[test]
fn too_little_or_uneven_work() {
    let (id, _, _) = provoked(Read, |case| case.recording.series[0].total.count = 99);
    assert_eq!(id, "too-few-operations");
    let (id, _, message) = provoked(Read, |case| {
        let mut early = case.recording.workers[0].clone();
        (early.worker, early.end_ns, early.stop) = (1, 54 * SECOND, StopReason::Errors);
        early.cpu_ns = Some((SECOND, SECOND));
        case.recording.workers.push(early);
    });
    assert!(id == "uneven-finish" && message.contains("10 %") && message.contains("1 gave up"), "{message}");
}

#[test]
fn clocks_and_noise() {
    for (step, wrong) in [(20_000_000, false), (40_000_000, true), (-40_000_000, true)] {
        let mut case = Case::clean(Read);
        case.recording.host.clock_step_ns = step;
        assert_eq!(case.checks().iter().any(|check| check.id == "clock-step"), wrong, "{step}");
    }
    let (id, severity, _) = provoked(Read, |case| case.recording.host.clock_drift = -0.002);
    assert_eq!((id.as_str(), severity), ("clock-drift", Severity::Invalid));
    let (id, _, _) = provoked(Read, |case| case.recording.host.host_steal = Some(0.2));
    assert_eq!(id, "noisy-host");
    let (id, _, _) = provoked(Read, |case| case.recording.host.trace_stall_ns = 3 * SECOND);
    assert_eq!(id, "trace-stall");
}

#[test]
fn rates_that_do_not_settle() {
    let (id, severity, _) = provoked(Read, |case| case.steady = Some(false));
    assert_eq!((id.as_str(), severity), ("not-steady", Severity::Warning));
    let drift = |case: &mut Case| {
        for interval in &mut case.recording.series[0].intervals {
            interval.stats.bytes += u64::from(interval.index) * 500_000;
        }
    };
    let (id, severity, message) = provoked(Read, drift);
    assert_eq!((id.as_str(), severity), ("not-steady", Severity::Note));
    assert!(message.contains("over five rounds"), "{message}");
    // Work that is done once has no steady state to reach.
    let mut case = Case::clean(Read);
    drift(&mut case);
    case.recording.timed = false;
    assert_eq!(case.checks(), []);
}
