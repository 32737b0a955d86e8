//! What many hosts add to a made-up study: agents with their clocks and samples, an emulated network with its baseline,
//! commands that were run, and an attempt that failed.

use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use std::collections::BTreeMap;

use benchmaster_record::recording::{
    AgentRecording, ClockFacts, Collected, HostSamples, Recording, StartFacts,
};
use benchmaster_record::samples::{
    Cost, Kind, MetricKey, Point, SamplerCost, SamplerProblem, Samples, Series,
};

use super::{Random, SECOND_NS};
use benchmaster_record::results::{
    BaselineRecord, FlowsBaseline, HookRecord, NetworkAchieved, NetworkRecord, RetryRecord,
    RoundTripBaseline, ServiceRecord, StudyResults,
};

/// Agents: name, host, first client, clients. The last one only looks at the server.
const AGENTS: [(&str, &str, u32, u32); 3] =
    [("c1", "node-1", 0, 2), ("c2", "node-2", 2, 2), ("server", "filer", 0, 0)];

/// Makes the runs those of two hosts with two clients each, through a wire with 10 ms in each direction, and one of the
/// server, all of them sampled.
pub fn spread(results: &mut StudyResults) {
    let mut random = Random(results.study.seed ^ 0xf1ee7);
    for run in &mut results.runs {
        let (url, server) = match run.service.take() {
            Some(service) => (service.url, service.server),
            None => ("nfs://{server}/export".into(), ServedBy::Managed),
        };
        run.service = Some(ServiceRecord {
            url,
            server,
            network: wire(),
            achieved: Some(NetworkAchieved {
                packets: Some(4_000_000 + random.bits() % 100_000),
                lost: Some(0),
                overflowed: Some(random.bits() % 3),
                lateness_p99_ns: Some(60_000 + random.bits() % 30_000),
                lateness_max_ns: Some(2_100_000),
            }),
        });
        for recording in &mut run.recordings {
            of_many(&mut random, recording);
        }
    }
    if let Some(run) = results.runs.last_mut() {
        run.retries.push(RetryRecord {
            started: run.started,
            elapsed_ns: 7 * SECOND_NS,
            agent: Some("c2".into()),
            reason: "no sign of life for 5 s".into(),
        });
    }
    results.baselines =
        results.sessions.iter().map(|session| baseline(session.id, session.started)).collect();
    for session in &results.sessions {
        let first = results.runs.iter().find(|run| run.session == session.id);
        let hook = |step: &str, agent: &str, command: &str, output: &str, run| HookRecord {
            session: session.id,
            run,
            step: step.into(),
            agent: agent.into(),
            command: command.into(),
            started: session.started,
            elapsed_ns: 812_000_000,
            ended: "exit status 0".into(),
            succeeded: true,
            output: output.into(),
        };
        results.hooks.push(hook(
            "server.mkfs",
            "server",
            "mkfs.xfs -f /dev/vdb",
            "meta-data=/dev/vdb\n",
            None,
        ));
        let run = first.map(|run| run.key);
        results.hooks.push(hook("clients.mount", "c1", "mount -o nfsvers=4.1 filer:/export /mnt/x", "", run));
    }
}

fn wire() -> NetworkRecord {
    NetworkRecord {
        emulator: Emulator::Wire,
        delay_ns: 10_000_000,
        jitter_ns: 0,
        bandwidth: Some(10_000_000_000),
        loss: 0.0,
        base_rtt_ns: Some(58_000),
        note: "Ethernet frames carried between namespaces; TCP is that of the kernel".into(),
    }
}

fn baseline(session: u32, time: jiff::Timestamp) -> BaselineRecord {
    let flows = |flows: u32, direction: &str, throughput: f64, fairness| FlowsBaseline {
        flows,
        direction: direction.into(),
        count: 5,
        throughput,
        half_width: Some(throughput * 0.031),
        fairness,
        retransmissions: Some(u64::from(flows) * 2),
    };
    BaselineRecord {
        session,
        time,
        client: "c1".into(),
        target: "filer".into(),
        network: wire(),
        round_trip: Some(RoundTripBaseline {
            count: 200,
            min_ns: 20_041_000,
            median_ns: 20_078_000,
            p99_ns: 20_155_000,
        }),
        flows: vec![
            flows(1, "receive", 301_000_000.0, None),
            flows(4, "receive", 868_000_000.0, Some(0.987)),
            flows(4, "send", 842_000_000.0, Some(0.991)),
        ],
        result: "{\"round_trip\":{\"n\":200}}".into(),
    }
}

fn of_many(random: &mut Random, recording: &mut Recording) {
    for worker in &mut recording.workers {
        worker.client = worker.worker;
    }
    recording.start = Some(StartFacts {
        spread_ns: 18_000 + random.bits() % 20_000,
        bound_ns: 41_000,
        server_spread_ns: Some(22_000 + random.bits() % 20_000),
        stagger_ns: 0,
    });
    recording.agents = (1..)
        .zip(AGENTS)
        .map(|(number, (name, host, first_client, clients))| AgentRecording {
            name: name.into(),
            host: host.into(),
            pid: 4000 + number,
            first_client,
            clients,
            clock: ClockFacts {
                offset_ns: i64::from(number) * 7_300_111_222 - (random.bits() % 1_000_000) as i64,
                bound_ns: 20_000 + u64::from(number) * 300,
                exchanges: 64,
                drift: (number != 3).then_some(1.5e-6 * f64::from(number)),
            },
            host_use: recording.host,
        })
        .collect();
    recording.samples = AGENTS.map(|(name, ..)| host_samples(random, name, recording)).to_vec();
    recording.collected = vec![Collected {
        name: "stacks".into(),
        agent: "c1".into(),
        command: "perf record -g -a -o -".into(),
        ended: "ended with the window (SIGINT)".into(),
        output: b"# samples <of> \"all\" & sundry\n  61.2%  copy_user\n".to_vec(),
        lost: 0,
        start_ns: -8_000_000,
        end_ns: recording.length_ns as i64 + 3_000_000,
    }];
}

/// Samples of one host, each second from just before the start until just after the end.
fn host_samples(random: &mut Random, agent: &str, recording: &Recording) -> HostSamples {
    let moved: u64 = recording.series.iter().map(|series| series.total.bytes).sum();
    let ticks = (recording.length_ns / SECOND_NS) as u32 + 3;
    let rate = moved as f64 * 1e9 / recording.length_ns as f64;
    let server = agent == "server";
    // Of two clients each: half of the data.
    let wire = if server { rate } else { rate / 2.0 } * 1.03;
    let (received, sent) =
        if recording.workload == "read" { (wire * 0.04, wire) } else { (wire, wire * 0.04) };
    let (received, sent) = if server { (received, sent) } else { (sent, received) };
    let mut series = Vec::new();
    let mut add = |sampler: &str, metric: &str, instance: &str, kind, unit: &'static str, level: f64| {
        let mut sum = level * 1000.0;
        let points = (0..ticks).map(|tick| {
            let value = level * random.spread(0.05);
            sum += value;
            Point {
                time_ns: (i64::from(tick) - 1) * SECOND_NS as i64 + 1_500_000,
                value: if kind == Kind::Counter { sum.round() } else { value.round() },
            }
        });
        series.push(Series {
            key: MetricKey { sampler: sampler.into(), metric: metric.into(), instance: instance.into() },
            kind,
            unit: unit.into(),
            points: points.collect(),
        });
    };
    let processors = 8e9;
    for (metric, share) in
        [("user", 0.06), ("system", 0.31), ("idle", 0.58), ("iowait", 0.02), ("softirq", 0.03)]
    {
        add("cpu", metric, "", Kind::Counter, "ns", share * processors);
    }
    add("memory", "Dirty", "", Kind::Gauge, "B", 3.1e8);
    add("memory", "Writeback", "", Kind::Gauge, "B", 2.2e7);
    add("net", "rx_bytes", "eth0", Kind::Counter, "B", received);
    add("net", "tx_bytes", "eth0", Kind::Counter, "B", sent);
    add("net", "OutSegs", "Tcp", Kind::Counter, "1", sent / 1448.0);
    add("net", "RetransSegs", "Tcp", Kind::Counter, "1", 3.0);
    if server {
        add("diskstats", "busy_time", "vdb", Kind::Counter, "ns", 6.1e8);
        add("diskstats", "reads", "vdb", Kind::Counter, "1", 40.0);
        add("diskstats", "writes", "vdb", Kind::Counter, "1", 900.0);
        add("diskstats", "read_time", "vdb", Kind::Counter, "ns", 1.6e7);
        add("diskstats", "write_time", "vdb", Kind::Counter, "ns", 1.1e9);
        add("diskstats", "written_bytes", "vdb", Kind::Counter, "B", received);
    } else {
        let connection = "10.0.0.2:901-10.0.0.1:2049";
        add("tcp_info", "cwnd", connection, Kind::Gauge, "1", 640.0);
        add("tcp_info", "rtt", connection, Kind::Gauge, "ns", 20_080_000.0);
        add("tcp_info", "total_retransmitted", connection, Kind::Counter, "1", 2.0);
        add("mountstats", "ops", "/mnt/x WRITE", Kind::Counter, "1", rate / 65_536.0);
        add("mountstats", "ops", "/mnt/x COMMIT", Kind::Counter, "1", 4.0);
    }
    let cost = |share: u64| SamplerCost { cpu_ns: u64::from(ticks) * share, reads: ticks };
    let samplers: BTreeMap<String, SamplerCost> =
        [("cpu", 41_000), ("memory", 28_000), ("net", 55_000)].map(|(n, ns)| (n.into(), cost(ns))).into();
    let problem = "/proc/net/rpc/nfsd is not there: no NFS server runs on this host";
    HostSamples {
        agent: agent.into(),
        samples: Samples {
            series,
            ticks,
            late: 0,
            problems: if server {
                Vec::new()
            } else {
                vec![SamplerProblem { sampler: "nfsd".into(), problem: problem.into() }]
            },
            cost: Cost {
                cpu_ns: samplers.values().map(|cost| cost.cpu_ns).sum(),
                elapsed_ns: u64::from(ticks - 1) * SECOND_NS,
                samplers,
            },
        },
    }
}
