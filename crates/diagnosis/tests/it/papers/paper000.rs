//! The Linux NFSv4.1 study: 1 GbE, five clients.

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{Recording, RpcSource};
use benchmaster_record::results::{CheckKind, StudyResults};
use benchmaster_record::samples::Kind;

use super::made::{self, Traces};
use super::{found, one, phenomena};

const MB: f64 = 1e6;

fn study(workload: &str) -> StudyResults {
    made::study(&format!(
        "[study]\nname = \"made\"\n[target]\nmount = {{ source = \"server:/export\", options = \"vers=4.1\", path = \"/mnt/x\" }}\n\
         [workload.{workload}]\nuse = \"sequential-read\"\nduration = \"300s\"\n"
    ))
}

/// Five clients that read for five minutes at these rates in MB/s.
fn scan(rates: [f64; 5]) -> Recording {
    let mut recording = made::recording("read", 300.0);
    let sum: f64 = rates.iter().sum();
    made::series(
        &mut recording,
        OperationKind::Read,
        65_536,
        &[(2_900_000, (sum * MB * 300.0 / 65_536.0) as u64)],
    );
    made::workers(&mut recording, &rates);
    recording
}

fn one_run(recording: Recording) -> StudyResults {
    let mut results = study(&recording.workload);
    made::add(&mut results, 0, vec![recording], &[]);
    results
}

#[test]
fn winners_and_losers_of_four_in_five_experiments() {
    let mut results = study("read");
    // Section 4: usually 2 at 14 and 3 at 28, sometimes 2 at 37 and 3 at 12, sometimes 5 at 22.5; always 112 together.
    for rates in [
        [14.0, 28.0, 14.0, 28.0, 28.0],
        [28.0, 28.0, 14.0, 14.0, 28.0],
        [22.5, 22.5, 22.4, 22.5, 22.6],
        [14.0, 28.0, 28.0, 28.0, 14.0],
        [37.0, 12.0, 12.0, 37.0, 12.0],
        [28.0, 14.0, 28.0, 14.0, 28.0],
        [28.0, 28.0, 28.0, 14.0, 14.0],
        [22.5, 22.4, 22.5, 22.5, 22.6],
        [12.0, 37.0, 12.0, 12.0, 37.0],
        [28.0, 14.0, 14.0, 28.0, 28.0],
    ] {
        made::add(&mut results, 0, vec![scan(rates)], &[]);
    }
    assert_eq!(phenomena(&results, &Traces::default()), ["hash-cast", "winners-and-losers"]);
    let diagnosis = found(&results, &Traces::default());
    let over_runs = one(&diagnosis, "hash-cast");
    assert!(over_runs.what.starts_with("In 8 of 10 runs (80 %) some clients get "), "{}", over_runs.what);
    let place = &one(&diagnosis, "winners-and-losers").at.as_ref().unwrap().treatments[0];
    assert_eq!((place.runs.len(), place.of), (8, 10));
}

#[test]
fn shared_evenly_nothing_has_a_name() {
    assert_eq!(phenomena(&one_run(scan([22.5, 22.4, 22.5, 22.6, 22.5])), &Traces::default()), [""; 0]);
}

#[test]
fn figures_7_and_8_of_the_newer_kernel() {
    // Client4 below 1.3 MB/s, all others above 25: 19 to 1.
    let results = one_run(scan([25.1, 25.6, 25.3, 1.3, 25.8]));
    assert_eq!(phenomena(&results, &Traces::default()), ["winners-and-losers"]);
    let diagnosis = found(&results, &Traces::default());
    let finding = one(&diagnosis, "winners-and-losers");
    assert!(
        finding.what.contains("(4) 1.30 MB/s: 19.6 to 1") && finding.what.contains("look for another reason"),
        "{}",
        finding.what
    );
    // Client2 at 18 and Client3 at 10 share a transmit queue: together a winner's 28.
    let results = one_run(scan([28.0, 18.0, 10.0, 28.2, 27.9]));
    assert_eq!(phenomena(&results, &Traces::default()), ["winners-and-losers"]);
}

/// Clients that begin a minute apart; their shares of 112 MB/s by transmit queue. Samples of each client's interface.
pub(super) fn staggered(total: f64, queues: impl Fn(f64) -> [u32; 5]) -> Recording {
    let mut recording = made::recording("read", 300.0);
    let begins = |client: usize| client as f64 * 60.0;
    made::agents(&mut recording, 5);
    let mut sums = [0.0; 5];
    let mut points = vec![vec![(0.0, 0.0)]; 5];
    for second in 0..300 {
        let now = f64::from(second);
        let of = queues(now);
        let active: Vec<usize> = (0..5).filter(|client| now >= begins(*client)).collect();
        let mut used: Vec<u32> = active.iter().map(|client| of[*client]).collect();
        used.sort_unstable();
        used.dedup();
        for &client in &active {
            let sharing = active.iter().filter(|other| of[**other] == of[client]).count() as f64;
            let wobble = 1.0 + 0.02 * (f64::from((second * 7 + client as i32 * 5) % 11) - 5.0) / 5.0;
            sums[client] += total * MB / used.len() as f64 / sharing * wobble;
        }
        for client in 0..5 {
            points[client].push((now + 1.0, sums[client]));
        }
    }
    for (client, points) in points.iter().enumerate() {
        made::sample(
            &mut recording,
            &format!("c{}", client + 1),
            ("net", "rx_bytes", "eth0"),
            Kind::Counter,
            points,
        );
    }
    made::series(
        &mut recording,
        OperationKind::Read,
        65_536,
        &[(2_900_000, (sums.iter().sum::<f64>() / 65_536.0) as u64)],
    );
    made::workers(&mut recording, &sums);
    for (client, worker) in recording.workers.iter_mut().enumerate() {
        worker.start_ns = (begins(client) * 1e9) as u64;
    }
    recording
}

#[test]
fn figure_4_one_more_client_each_minute() {
    // Client1 and 3 in tx4, the others in queues of their own.
    let results = one_run(staggered(112.0, |_| [4, 2, 4, 1, 6]));
    assert_eq!(phenomena(&results, &Traces::default()), ["winners-and-losers"]);
    let diagnosis = found(&results, &Traces::default());
    let finding = one(&diagnosis, "winners-and-losers");
    assert_eq!(finding.at.as_ref().unwrap().clients, ["0", "2"]);
    assert!(
        finding.what.starts_with("3 of 5 clients get 28.0 MB/s each, the others (1, 3) 14"),
        "{}",
        finding.what
    );
    // Winners win all the time, by their hosts' counters.
    assert!(finding.tests.iter().any(|test| test.name.starts_with("Welch") && test.p.unwrap() < 1e-6));
}

#[test]
fn bufferbloat_of_cubic_and_not_of_vegas() {
    // Section 4.3: 1,900 packets under way with CUBIC, 23 with VEGAS; 0.17 ms; 117 MB/s.
    let with = |cwnd: f64| {
        let mut recording = scan([22.5; 5]);
        made::agents(&mut recording, 5);
        let queued = (5.0 * cwnd * 1500.0 / (117.0 * MB)).max(0.000_17);
        for client in 0..5 {
            let connection = format!("10.0.0.1:2049-10.0.0.{}:900", client + 2);
            let mut add = |metric: &str, kind, from: f64, to: f64| {
                made::sample(
                    &mut recording,
                    "server",
                    ("tcp_info", metric, &connection),
                    kind,
                    &[(0.0, from), (300.0, to)],
                );
            };
            add("bytes_acked", Kind::Counter, 0.0, 300.0 * 22.5 * MB);
            for (metric, value) in
                [("cwnd", cwnd), ("mss", 1500.0), ("min_rtt", 170_000.0), ("rtt", queued * 1e9)]
            {
                add(metric, Kind::Gauge, value, value);
            }
        }
        one_run(recording)
    };
    assert_eq!(phenomena(&with(1_900.0), &Traces::default()), ["bufferbloat"]);
    let diagnosis = found(&with(1_900.0), &Traces::default());
    let times = one(&diagnosis, "bufferbloat")
        .evidence
        .iter()
        .find(|evidence| evidence.name.starts_with("window /"))
        .unwrap();
    // 21,250 bytes are enough at 1 Gbit/s; at the 112.5 MB/s that were sent, 19,125.
    assert!((times.value - 149.0).abs() < 1.0, "{}", times.value);
    assert_eq!(phenomena(&with(23.0), &Traces::default()), [""; 0]);
}

/// Random reads of a client whose machine receives 22 MB/s.
fn random_read(io_size: u64, art: f64, crt: f64, read_size: u64) -> StudyResults {
    let mut recording = made::recording("read", 300.0);
    made::series(
        &mut recording,
        OperationKind::Read,
        io_size,
        &[(300_000, (art * MB * 300.0) as u64 / io_size)],
    );
    made::workers(&mut recording, &[1.0]);
    let calls = (crt * MB * 300.0) as u64 / read_size;
    made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &[("READ", calls, read_size + 160, 0.0, 200.0)]);
    one_run(recording)
}

#[test]
fn readahead_that_wastes_two_thirds_of_the_network() {
    for io_size in [4096, 16_384, 65_536] {
        // Kernel 2.6.32: the application gets 1 / 3.3 to 1 / 3.4 of what it gets with 3.12, where it gets all.
        let older = random_read(io_size, 22.0 / 3.35, 22.0, 65_536);
        assert_eq!(phenomena(&older, &Traces::default()), ["readahead-waste"]);
        let diagnosis = found(&older, &Traces::default());
        let cost = one(&diagnosis, "readahead-waste").cost.as_ref().unwrap().share;
        assert!((0.69..0.71).contains(&cost), "{cost}");
        assert_eq!(phenomena(&random_read(io_size, 22.0, 22.0, io_size), &Traces::default()), [""; 0]);
    }
}

#[test]
fn no_readahead_splits_reads_into_pages() {
    // 64 KiB reads: 22 MB/s with a readahead of 0, 68 MB/s with 64 KiB.
    assert_eq!(phenomena(&random_read(65_536, 22.0, 22.0, 4096), &Traces::default()), ["single-page-reads"]);
    assert_eq!(phenomena(&random_read(65_536, 68.0, 68.0, 65_536), &Traces::default()), [""; 0]);
}

#[test]
fn table_1_locked_reads_with_and_without_delegations() {
    let table = |calls: &[(&str, u64)], seconds: f64| {
        let mut recording = made::recording("read", seconds);
        for (kind, count) in [
            (OperationKind::Open, 1_000),
            (OperationKind::Lock, 10_000),
            (OperationKind::Unlock, 10_000),
            (OperationKind::Close, 1_000),
        ] {
            made::series(&mut recording, kind, 0, &[(150_000, count)]);
        }
        made::series(&mut recording, OperationKind::Read, 4096, &[(200_000, 10_000)]);
        made::files(&mut recording, 1_000, 4_096_000);
        made::workers(&mut recording, &[1.0]);
        let calls: Vec<made::Call<'_>> = calls
            .iter()
            .map(|(name, ops)| (*name, *ops, if *name == "READ" { 4_300 } else { 180 }, 0.0, 150.0))
            .collect();
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &calls);
        one_run(recording)
    };
    let without = table(
        &[
            ("OPEN", 1_000),
            ("READ", 10_000),
            ("CLOSE", 1_000),
            ("GETATTR", 10_001),
            ("LOCK", 10_000),
            ("LOCKU", 10_000),
            ("FREE_STATEID", 10_000),
        ],
        7.8,
    );
    assert_eq!(
        phenomena(&without, &Traces::default()),
        ["delegation-not-granted", "lock-invalidates-cache", "open-close-share"]
    );
    let diagnosis = found(&without, &Traces::default());
    let locks = one(&diagnosis, "lock-invalidates-cache");
    assert!(locks.what.starts_with("Each LOCK is followed by 1.00 GETATTR and 0.900 READ"), "{}", locks.what);
    let with = table(&[("OPEN", 1_000), ("READ", 1_000), ("CLOSE", 1_000), ("GETATTR", 1)], 0.76);
    // Two of three calls that are left open and close, once for each file.
    assert_eq!(phenomena(&with, &Traces::default()), ["open-close-share"]);
}

#[test]
fn tables_2_and_3_recalls_of_a_thousand_delegations() {
    let opens = |latency_ns: u64, calls: &[made::Call<'_>]| {
        let mut recording = made::recording("recall", 101.0);
        made::series(&mut recording, OperationKind::Open, 0, &[(latency_ns, 1_000)]);
        made::workers(&mut recording, &[1.0]);
        made::files(&mut recording, 1_000, 4_096_000);
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", calls);
        one_run(recording)
    };
    // 0.2 s without, 100 s with delegations, for 1,000 opens.
    let with = opens(
        100_000_000,
        &[
            ("OPEN", 2_000, 300, 0.0, 200.0),
            ("DELEGRETURN", 1_000, 100, 0.0, 200.0),
            ("OPEN_NOATTR", 1_000, 200, 0.0, 200.0),
        ],
    );
    assert_eq!(phenomena(&with, &Traces::default()), ["delegation-recall", "open-close-share"]);
    let diagnosis = found(&with, &Traces::default());
    assert!(one(&diagnosis, "delegation-recall").cost.as_ref().unwrap().share > 0.99);
    let without = opens(200_000, &[("OPEN", 1_000, 300, 0.0, 200.0)]);
    // The experiment does nothing but open files.
    assert_eq!(phenomena(&without, &Traces::default()), ["open-close-share"]);
}

#[test]
fn journal_writes_of_synchronous_writes() {
    // 92 MB/s at most over NFS; 2.7 journal I/Os for each NFS write with 1 client, 0.96 with 5; 19 and 53 updates each.
    for (per_write, updates) in [(2.7, 19.0), (0.96, 53.0)] {
        let mut recording = made::recording("write", 300.0);
        let writes = 300_000_u64;
        made::series(&mut recording, OperationKind::Write, 65_536, &[(900_000, writes)]);
        made::workers(&mut recording, &[1.0]);
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &[("WRITE", writes, 200, 0.0, 800.0)]);
        made::agents(&mut recording, 1);
        // A transaction of 19 updates serves 19 / 3 writes or so: how many there are follows from the blocks.
        let transactions = writes as f64 / (updates / 3.0);
        let mut add = |metric: &str, kind, to: f64| {
            let from = if kind == Kind::Counter { 0.0 } else { to };
            made::sample(
                &mut recording,
                "server",
                ("jbd2", metric, "sda-8"),
                kind,
                &[(0.0, from), (300.0, to)],
            );
        };
        add("transactions", Kind::Counter, transactions);
        add("requested", Kind::Counter, transactions);
        add("mean_logged_blocks", Kind::Gauge, (per_write * writes as f64 / transactions).floor());
        add("mean_handles", Kind::Gauge, updates);
        add("mean_commit", Kind::Gauge, 1e6);
        let results = one_run(recording);
        assert_eq!(phenomena(&results, &Traces::default()), ["journal-amplification"]);
        let diagnosis = found(&results, &Traces::default());
        let blocks = one(&diagnosis, "journal-amplification").evidence[0].value;
        // The kernel prints means in whole numbers: half a block for each transaction.
        assert!((blocks - per_write).abs() <= 0.5 * transactions / writes as f64, "{blocks}");
    }
}

#[test]
fn bursts_into_the_cache_and_five_minutes_of_nothing() {
    // More than 1 GB/s, then 0 for up to five minutes, and again.
    let rates: Vec<f64> = (0..700).map(|second| if second % 310 < 10 { 1.1e9 } else { 0.0 }).collect();
    let pattern = benchmaster_stats::burst::burst_and_flush(&rates).unwrap();
    let mut recording = made::recording("write", 700.0);
    made::series(&mut recording, OperationKind::Write, 65_536, &[(60_000, 500_000)]);
    made::workers(&mut recording, &[1.0]);
    let mut results = one_run(recording);
    let evidence = [
        ("burst_rate", pattern.burst_rate),
        ("stall_share", pattern.stall_share),
        ("period_s", pattern.period.unwrap()),
    ];
    results.runs[0].checks.push(made::check(CheckKind::BurstAndFlush, "write", &evidence));
    assert_eq!(phenomena(&results, &Traces::default()), ["burst-and-flush"]);
    let diagnosis = found(&results, &Traces::default());
    assert!(one(&diagnosis, "burst-and-flush").cost.as_ref().unwrap().share > 0.9);
}
