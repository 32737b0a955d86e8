use std::collections::BTreeMap;

use benchmaster_record::model::OperationKind;
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{
    EncodedHistogram, FilesetFacts, HostUse, IntervalStats, OperationStats, PartOf, PartRow, PhaseTiming,
    RpcPhase, RpcRecording, RpcRow, RpcSource, SeriesKey, SeriesRecording, WorkerRecording, WorkerSeries,
    latency_histogram,
};
use benchmaster_record::samples::Samples;
use proptest::prelude::*;

use super::*;
use crate::clock::Estimate;
use crate::perform::Observations;

fn workload() -> Workload {
    let text = r#"
        until = { iterations = 1 }
        filesets.data = { files = 1, size = "4KiB" }
        [[groups]]
        name = "g"
        flow = [{ op = "stat", file = "own" }]
    "#;
    toml::from_str(text).unwrap()
}

fn stats(latencies: &[u64]) -> OperationStats {
    let mut histogram = latency_histogram();
    latencies.iter().for_each(|latency| histogram.record(*latency).unwrap());
    OperationStats {
        count: latencies.len() as u64,
        bytes: 4096 * latencies.len() as u64,
        errors: 0,
        sum_ns: latencies.iter().sum(),
        latency: EncodedHistogram::encode(&histogram),
    }
}

/// What one of some processes recorded that did operations of these latencies, in intervals of two.
fn performed(share: Share, latencies: &[u64], shift: i64) -> Performed {
    let intervals = latencies.chunks(2).zip(share.first % 4..);
    let series = SeriesRecording {
        key: SeriesKey { group: "g".into(), label: "read".into(), operation: OperationKind::Read },
        total: stats(latencies),
        intervals: intervals.map(|(some, index)| IntervalStats { index, stats: stats(some) }).collect(),
        errors: BTreeMap::from([("EIO".into(), u64::from(share.first))]),
        span: latencies.first().map(|first| (*first, 10 * first)),
        service: (share.total.is_multiple_of(2)).then(|| stats(latencies).latency),
    };
    let worker = WorkerRecording {
        client: share.first,
        series: vec![WorkerSeries {
            first_start_ns: latencies.first().copied(),
            last_end_ns: latencies.last().copied(),
            ..WorkerSeries::default()
        }],
        ..WorkerRecording::default()
    };
    let row = RpcRow { operation: "READ".into(), ..RpcRow::default() };
    let rpc = RpcRecording {
        source: if share.first.is_multiple_of(2) { RpcSource::Client } else { RpcSource::Kernel },
        phases: vec![RpcPhase { phase: Phase::Measure, rows: vec![row], events: BTreeMap::new() }],
        problems: vec!["one call is outstanding".into()],
        ..RpcRecording::default()
    };
    let recording = Recording {
        workload: "w".into(),
        timed: true,
        started_unix_ns: i64::from(share.first),
        length_ns: latencies.iter().sum(),
        interval_ns: 10,
        cut_ns: 0,
        cut_reason: String::new(),
        series: vec![series],
        workers: vec![worker],
        parts: vec![PartRow {
            part: PartOf::File,
            label: "read".into(),
            key: share.first % 3,
            count: 1,
            sum_ns: 7,
        }],
        phases: vec![PhaseTiming {
            phase: Phase::Measure,
            start_ns: i64::from(share.first),
            end_ns: 100,
            operations: latencies.len() as u64,
            errors: 0,
        }],
        filesets: vec![FilesetFacts {
            name: "data".into(),
            files: 3,
            bytes: 5,
            reused: share.first.is_multiple_of(4),
            cached_bytes: Some(2),
        }],
        cache: benchmaster_record::recording::CacheAction {
            requested: "drop".into(),
            done: if share.first.is_multiple_of(5) { "nothing".into() } else { "dropped".into() },
        },
        host: HostUse {
            process_user_ns: 5,
            process_system_ns: 7,
            host_busy: Some(1.0 / f64::from(share.first + 2)),
            host_steal: None,
            processors: 2,
            clock_step_ns: if share.first.is_multiple_of(2) { 5 } else { -6 },
            clock_drift: 1e-6 / f64::from(share.first + 1),
            trace_stall_ns: 1,
            free_before: Some(10),
            free_after: Some(9),
            read_ahead_kib: Some(128),
            written_back: Some(4),
            null_rate: Some(f64::from(share.first)),
        },
        error_details: vec![format!("read {}", share.first)],
        verified_bytes: Some(3),
        witness: None,
        corruption: (share.first == 3).then(|| "a byte".into()),
        rpc: Some(rpc),
        agents: Vec::new(),
        start: None,
        samples: Vec::new(),
        collected: Vec::new(),
        slow: vec![],
        replay: None,
    };
    let observations = Observations { samples: Some(Samples::default()), collected: Vec::new() };
    Performed { recording, start_monotonic_ns: 1_000 + shift + i64::from(share.first), observations }
}

/// A clock that is ahead by this, known to within that.
fn ahead(offset_ns: i64, bound_ns: u64) -> Relation {
    Relation { before: Estimate { offset_ns, bound_ns, at_ns: 0, exchanges: 24 }, after: None }
}

proptest! {
    /// However processes are divided into groups, and whatever clocks are in between.
    #[test]
    fn a_merge_of_merges_is_the_merge_of_all_and_so_are_its_percentiles(
        latencies in prop::collection::vec(prop::collection::vec(1u64..1_000_000_000_000, 0..5), 1..12),
        ends in prop::collection::btree_set(1usize..12, 0..4),
        clocks in prop::collection::vec((-1_000_000i64..1_000_000, 0u64..1_000), 16),
    ) {
        let workload = workload();
        let processes = latencies.len() as u32;
        let share = |first: u32| Share {
            first,
            count: 1,
            total: processes,
            process: first,
            processes,
            lead: first == 0,
            first_on_host: first.is_multiple_of(3),
        };
        const START: i64 = 50_000;
        let of = |agent: usize, offset: i64| {
            let share = share(agent as u32);
            let performed = performed(share, &latencies[agent], offset);
            Gathered::of(format!("a{agent}"), format!("h{}", agent / 3), 7, share, performed)
        };
        // The clock of each agent beside its group's, whose clock is beside the controller's.
        let mut bounds: Vec<usize> = ends.into_iter().filter(|end| *end < latencies.len()).collect();
        bounds.push(latencies.len());
        let (mut groups, mut flat, mut first) = (Vec::new(), Vec::new(), 0);
        for (end, outer) in bounds.into_iter().zip(&clocks[12..]) {
            let mut members = Vec::new();
            for (agent, inner) in (first..end).zip(&clocks[first..]) {
                let offset = inner.0 + outer.0;
                members.push(of(agent, offset).carried(&ahead(inner.0, inner.1), START + outer.0));
                flat.push(of(agent, offset).carried(&ahead(offset, inner.1 + outer.1), START));
            }
            let group = Gathered::merge(&workload, members).unwrap();
            groups.push(group.carried(&ahead(outer.0, outer.1), START));
            first = end;
        }
        groups.reverse();
        let one = Gathered::merge(&workload, flat).unwrap();
        let two = Gathered::merge(&workload, groups).unwrap();
        prop_assert_eq!(&one, &two);
        let frame = benchmaster_frames::encode(&[], &two, 1 << 24).unwrap();
        let decoded = benchmaster_frames::decode::<Gathered>(&frame[4..]);
        prop_assert_eq!(decoded.as_ref(), Ok(&two));

        let recording = two.finish(3);
        let mut all = latency_histogram();
        for latency in latencies.iter().flatten() {
            all.record(*latency).unwrap();
        }
        let merged = recording.series[0].total.latency.decode().unwrap();
        for quantile in [0.0, 0.5, 0.9, 0.99, 0.999, 1.0] {
            prop_assert_eq!(merged.value_at_quantile(quantile), all.value_at_quantile(quantile));
        }
        prop_assert_eq!(merged, all);
        prop_assert_eq!(recording.agents.len(), latencies.len());
        prop_assert_eq!(one.finish(3), recording);
    }
}

#[test]
fn who_did_not_drop_caches_is_named() {
    let workload = workload();
    let share = |first| Share {
        first,
        count: 1,
        total: 30,
        process: first,
        processes: 30,
        lead: first == 0,
        first_on_host: true,
    };
    let part = |first| {
        let share = share(first);
        Gathered::of(format!("c{first}"), "h".into(), 1, share, performed(share, &[5], 0))
    };
    let merged = Gathered::merge(&workload, (0..30).map(part).collect()).unwrap().finish(0);
    assert_eq!(
        merged.cache.done,
        "c0, c5, c10, c15, c20, c25: nothing; \
         c1, c2, c3, c4, c6, c7, c8, c9, c11, c12 and 14 more: dropped"
    );
}

/// What the controller of 10,000 agents has to merge in the end: recordings of 157 aggregators, of five minutes each.
#[test]
#[ignore = "full tier: a minute of processor time"]
#[allow(clippy::print_stdout, reason = "figures for docs/performance.md")]
fn the_recordings_of_ten_thousand_agents_are_merged_in_groups() {
    const GROUPS: usize = 157;
    let workload = workload();
    let latencies: Vec<u64> = (0..600).map(|number| 100_000 + 7_919 * number).collect();
    let part = |first: u32| {
        let (processes, lead) = (64, first == 0);
        let share =
            Share { first, count: 1, total: 64, process: first, processes, lead, first_on_host: true };
        let performed = performed(share, &latencies, 0);
        Gathered::of(format!("c{first}"), format!("h{first}"), 1, share, performed)
    };
    let merged = Gathered::merge(&workload, (0..64).map(part).collect()).unwrap();
    let frame = benchmaster_frames::encode(&[], &merged, 1 << 30).unwrap();
    let before = benchmaster_telemetry::process::cpu_time();
    let groups = (0..GROUPS).map(|_| benchmaster_frames::decode::<Gathered>(&frame[4..]).unwrap());
    let recording = Gathered::merge(&workload, groups.collect()).unwrap().finish(0);
    let after = benchmaster_telemetry::process::cpu_time();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let seconds = (after.0 + after.1 - before.0 - before.1) as f64 / 1e9;
    println!("{GROUPS} messages of {} bytes, {seconds:.2} s of processor time, {peak}", frame.len());
    assert_eq!(recording.series[0].total.count, 600 * 64 * GROUPS as u64);
    assert_eq!(recording.workers.len(), 64 * GROUPS);
}
