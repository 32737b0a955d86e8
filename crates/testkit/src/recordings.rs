//! Recordings with made-up numbers that agree with each other.

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use std::collections::BTreeMap;

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{
    CacheAction, ConnectionFacts, EncodedHistogram, FilesetFacts, HostUse, IntervalStats, OperationStats,
    OperationStream, PartOf, PartRow, PhaseTiming, Recording, RpcCounters, RpcPhase, RpcRecording, RpcRow,
    RpcSource, SeriesKey, SeriesRecording, SlowOperation, StopReason, WorkerRecording, WorkerSeries,
    latency_histogram,
};

use benchmaster_record::results::{ServerOperation, ServerUse};

use super::{Random, SECOND_NS, WORKERS};

/// Intervals of each measured phase.
const INTERVALS: u32 = 20;

/// How a series is made.
pub(super) struct Serial {
    pub(super) operation: OperationKind,
    pub(super) latency_ns: f64,
    pub(super) every: u64,
    pub(super) bytes: u64,
}

/// How a recording is made.
pub(super) struct Shape<'a> {
    pub(super) workload: &'a str,
    pub(super) wall_ns: i64,
    pub(super) cut: u64,
    pub(super) series: &'a [Serial],
    pub(super) open_loop: bool,
}

pub(super) fn recording(random: &mut Random, shape: &Shape<'_>) -> Recording {
    // One round of the flow takes each series' latency in proportion to how often it is done.
    let round_ns: f64 = shape.series.iter().map(|s| s.latency_ns / s.every as f64).sum();
    let series: Vec<_> = shape.series.iter().map(|s| series(random, s, round_ns, shape)).collect();
    let length_ns = u64::from(INTERVALS) * SECOND_NS - 1_234_567;
    let slow = WORKERS - 1;
    let workers = (0..WORKERS)
        .map(|worker| WorkerRecording {
            client: 0,
            group: "main".into(),
            worker,
            start_ns: u64::from(worker) * 11_000,
            end_ns: length_ns - u64::from(worker) * 400_000,
            cpu_ns: (worker != slow).then_some((900_000_000, 7_300_000_000)),
            stop: StopReason::Time,
            series: (0..)
                .zip(&series)
                .map(|(index, series)| share(index, &series.total, worker, length_ns))
                .collect(),
            stream: OperationStream {
                first: OperationStream::FIRST,
                hash: u64::MAX / (u64::from(worker) + 2),
                all: u64::MAX - u64::from(worker),
            },
        })
        .collect();
    let measured: u64 = series.iter().map(|s| s.total.count).sum();
    let phase = |phase: Phase, start: f64, end: f64, operations| PhaseTiming {
        phase,
        start_ns: (start * 1e9) as i64,
        end_ns: (end * 1e9) as i64,
        operations,
        errors: 0,
    };
    Recording {
        workload: shape.workload.into(),
        timed: true,
        started_unix_ns: shape.wall_ns,
        length_ns,
        interval_ns: SECOND_NS,
        cut_ns: shape.cut * SECOND_NS,
        cut_reason: match shape.cut {
            0 => "MSER-5: steady from the start".into(),
            n => format!("MSER-5: the first {n} s differ from the rest"),
        },
        series,
        workers,
        phases: vec![
            phase(Phase::Prepare, -2.0, -0.1, 4),
            phase(Phase::Measure, 0.0, length_ns as f64 / 1e9, measured),
            phase(Phase::TearDown, length_ns as f64 / 1e9, length_ns as f64 / 1e9 + 0.3, 4),
        ],
        filesets: vec![FilesetFacts {
            name: "data".into(),
            files: 4,
            bytes: 4 << 30,
            reused: shape.open_loop,
            cached_bytes: shape.open_loop.then_some(1 << 20),
        }],
        cache: CacheAction { requested: "drop".into(), done: "wrote 3 to /proc/sys/vm/drop_caches".into() },
        host: HostUse {
            process_user_ns: 3_600_000_000,
            process_system_ns: 29_200_000_000 + random.bits() % SECOND_NS,
            host_busy: Some(0.4 + 0.1 * random.unit()),
            host_steal: (!shape.open_loop).then_some(0.001),
            processors: 8,
            clock_step_ns: (random.bits() % 2000) as i64 - 1000,
            clock_drift: 1e-7 * random.unit(),
            trace_stall_ns: 0,
            free_before: Some(900 << 30),
            free_after: Some((900 << 30) - (4 << 30)),
            read_ahead_kib: Some(128),
            written_back: Some(4 << 30),
            null_rate: Some(2.1e7),
        },
        error_details: vec![],
        verified_bytes: shape.open_loop.then_some(4 << 30),
        corruption: None,
        witness: None,
        rpc: None,
        agents: Vec::new(),
        start: None,
        samples: Vec::new(),
        collected: Vec::new(),
        parts: vec![PartRow {
            part: PartOf::File,
            label: "write".into(),
            key: 3,
            count: 40,
            sum_ns: 80_000_000,
        }],
        slow: vec![SlowOperation {
            series: 0,
            worker: 1,
            start_ns: 2_000_000,
            latency_ns: 80_000_000,
            since: Some(64),
            since_own: None,
        }],
        replay: None,
    }
}

fn series(random: &mut Random, serial: &Serial, round_ns: f64, shape: &Shape<'_>) -> SeriesRecording {
    let mut intervals = Vec::new();
    let mut total = latency_histogram();
    let mut service = latency_histogram();
    let mut sum = OperationStats::default();
    for index in 0..INTERVALS {
        let warm = if u64::from(index) < shape.cut { 0.6 } else { 1.0 };
        let rounds = f64::from(WORKERS) * 1e9 / round_ns * warm * random.spread(0.02);
        let count = ((rounds / serial.every as f64) as u64).max(1);
        let mut histogram = latency_histogram();
        let mut sum_ns = 0;
        let bins = count.min(48);
        for bin in 0..bins {
            let times = count / bins + u64::from(bin < count % bins);
            // One bin in some hundred is a spike.
            let spike = if random.bits().is_multiple_of(200) { 12.0 } else { 1.0 };
            let value = ((serial.latency_ns / warm * random.spread(0.25) * spike) as u64).max(1);
            histogram.saturating_record_n(value, times);
            sum_ns += value * times;
            service.saturating_record_n((value / 10 * 9).max(1), times);
        }
        // Both have the one shape of all latency histograms.
        let _ = total.add(&histogram);
        let stats = OperationStats {
            count,
            bytes: count * serial.bytes,
            errors: 0,
            sum_ns,
            latency: EncodedHistogram::encode(&histogram),
        };
        sum.add_counts(&stats);
        intervals.push(IntervalStats { index, stats });
    }
    sum.latency = EncodedHistogram::encode(&total);
    let name = serial.operation.name().to_owned();
    SeriesRecording {
        key: SeriesKey { group: "main".into(), label: name, operation: serial.operation },
        total: sum,
        intervals,
        errors: BTreeMap::new(),
        span: Some((13_000, u64::from(INTERVALS) * SECOND_NS - 1_234_567)),
        service: shape.open_loop.then(|| EncodedHistogram::encode(&service)),
    }
}

/// The part of one worker in a series: equal parts, the rest to worker 0.
fn share(index: u32, total: &OperationStats, worker: u32, length_ns: u64) -> WorkerSeries {
    let part = |n: u64| {
        let equal = n / u64::from(WORKERS);
        if worker == 0 { n - equal * u64::from(WORKERS - 1) } else { equal }
    };
    let count = part(total.count);
    let mean = total.sum_ns.checked_div(total.count).unwrap_or(0);
    WorkerSeries {
        series: index,
        count,
        bytes: if total.bytes == 0 { 0 } else { total.bytes / total.count * count },
        errors: 0,
        sum_ns: part(total.sum_ns),
        first_latency_ns: (count > 0).then_some(mean * 3),
        first_start_ns: (count > 0).then_some(u64::from(worker) * 11_000),
        last_end_ns: (count > 0).then_some(length_ns - u64::from(worker) * 400_000),
    }
}

/// RPCs that the operations of a recording may have made: one each, of which every 50th was sent twice.
pub(super) fn rpc(recording: &Recording) -> RpcRecording {
    let row = |operation: &str, ops: u64, bytes: u64, in_ns: u64| RpcRow {
        program: "NFSv4".into(),
        operation: operation.into(),
        counters: RpcCounters {
            ops,
            transmissions: ops + ops / 50,
            timeouts: ops / 50,
            bytes_sent: ops * 160 + if operation == "WRITE" { bytes } else { 0 },
            bytes_received: ops * 140 + if operation == "READ" { bytes } else { 0 },
            queue_ns: in_ns / 10,
            rtt_ns: in_ns / 10 * 7,
            execute_ns: in_ns / 10 * 9,
            errors: ops / 1000,
        },
    };
    let measured = recording.series.iter().map(|series| {
        let operation = match series.key.operation {
            OperationKind::Fsync => "COMMIT".into(),
            other => other.name().to_uppercase(),
        };
        row(&operation, series.total.count, series.total.bytes, series.total.sum_ns)
    });
    let events = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let mount = [("EXCHANGE_ID", 2), ("CREATE_SESSION", 2), ("RECLAIM_COMPLETE", 2), ("OPEN", 8)];
    RpcRecording {
        source: RpcSource::Client,
        phases: vec![
            RpcPhase {
                phase: Phase::SetUp,
                rows: mount.map(|(name, ops)| row(name, ops, 0, ops * 2_300_000)).to_vec(),
                events: events(&[("connect", 2)]),
            },
            RpcPhase {
                phase: Phase::Measure,
                rows: measured.collect(),
                events: events(&[("reconnect", 1), ("slot-wait", 12)]),
            },
            RpcPhase {
                phase: Phase::TearDown,
                rows: vec![row("CLOSE", 8, 0, 8 * 2_300_000)],
                events: BTreeMap::new(),
            },
        ],
        client_cpu_ns: (recording.host.process_user_ns / 2, recording.host.process_system_ns / 2),
        connection: ConnectionFacts {
            server: "nfs://{server}/export".into(),
            version: Some(NfsVersion::V41),
            rsize: 1 << 20,
            wsize: 1 << 20,
            nconnect: 1,
            tls: None,
            slots: Some(64),
            clients: 2,
            threads: Some(2),
        },
        problems: Vec::new(),
    }
}

/// What a server may have counted of these RPCs.
pub(super) fn server_use(workload: &str, rpc: &RpcRecording) -> ServerUse {
    let measured = rpc.phase(Phase::Measure).map_or(&[][..], |phase| &phase.rows);
    let calls = measured.iter().map(|row| row.transmissions).sum();
    let operation = |row: &RpcRow| ServerOperation {
        protocol: "v4".into(),
        operation: row.operation.clone(),
        ops: row.ops,
        errors: row.errors,
        bytes_received: row.bytes_sent,
        bytes_sent: row.bytes_received,
        service_ns: row.rtt_ns / 20,
    };
    ServerUse {
        workload: workload.to_owned(),
        calls,
        connections: 1,
        replayed: measured.iter().map(|row| row.timeouts).sum(),
        cpu_ns: Some(rpc.client_cpu_ns.0 + rpc.client_cpu_ns.1),
        held_ns: Some(0),
        operations: measured.iter().map(operation).collect(),
    }
}
