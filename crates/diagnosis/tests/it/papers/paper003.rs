//! Lever and Honeyman, FREENIX 2002: write latency of the Linux client.

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::TraceRecord;
use benchmaster_record::results::{StudyResults, Unit};

use super::made::{self, Traces};
use super::{found, one, phenomena};

/// One run of 8 KiB writes, one after the other, with every call recorded.
fn writes(latencies_ns: &[u64]) -> (StudyResults, Traces) {
    let mut start_ns = 0;
    let mut records = Vec::new();
    for (call, &latency_ns) in latencies_ns.iter().enumerate() {
        records.push(TraceRecord {
            start_ns,
            latency_ns,
            bytes: 8192,
            offset: call as u64 * 8192,
            ..TraceRecord::default()
        });
        start_ns += latency_ns;
    }
    let mut recording = made::recording("write", start_ns as f64 / 1e9);
    let each: Vec<(u64, u64)> = latencies_ns.iter().map(|ns| (*ns, 1)).collect();
    made::series(&mut recording, OperationKind::Write, 8192, &each);
    made::workers(&mut recording, &[1.0]);
    recording.workers[0].series[0].first_latency_ns = latencies_ns.first().copied();
    let mut results = made::study(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.write]\nuse = \"write-latency\"\ntrace = true\n",
    );
    made::add(&mut results, 0, vec![recording], &[]);
    let mut traces = Traces::default();
    traces.0.insert("write".into(), records);
    (results, traces)
}

/// So much more or less than 1, without any rule in it.
fn wobble(call: usize) -> f64 {
    1.0 + ((call * 7919 + 13) % 97) as f64 / 97.0 * 0.2 - 0.1
}

#[test]
fn figure_2_37_slow_calls_of_2560() {
    // Fast calls of 139.6 µs in the mean; the mean of all is 482.1: slow calls of 23.8 ms, all above 19.
    let slow_mean = (482.1 * 2560.0 - 139.6 * 2523.0) / 37.0;
    let latencies: Vec<u64> = (0..2560)
        .map(|call| {
            if call % 69 == 68 && call / 69 < 37 {
                (slow_mean * 1e3 * (1.0 + (wobble(call) - 1.0) * 0.9)) as u64
            } else {
                (139.6e3 * wobble(call)) as u64
            }
        })
        .collect();
    let (results, traces) = writes(&latencies);
    assert_eq!(phenomena(&results, &traces), ["periodic-spikes"]);
    let diagnosis = found(&results, &traces);
    let spikes = one(&diagnosis, "periodic-spikes");
    let number = |name: &str| spikes.evidence.iter().find(|evidence| evidence.name == name).unwrap().value;
    assert_eq!(number("slow calls"), 37.0);
    assert!((number("share of the calls that are slow") - 0.0145).abs() < 1e-4);
    assert!(
        (number("mean latency") / 482.1e3 - 1.0).abs() < 0.02
            && (number("mean latency without them") / 139.6e3 - 1.0).abs() < 0.02
    );
    assert!((number("mean latency") / number("mean latency without them") - 3.45).abs() < 0.1);
    assert_eq!(number("bytes from spike to spike"), 69.0 * 8192.0);
}

#[test]
fn figure_3_latency_that_grows() {
    // 6,400 writes of 484.7 µs in the mean, growing.
    let latencies: Vec<u64> =
        (0..6400).map(|call| ((137.0 + 695.4 * call as f64 / 6400.0) * 1e3 * wobble(call)) as u64).collect();
    let mean = latencies.iter().sum::<u64>() as f64 / 6400e3;
    assert!((mean - 484.7).abs() < 1.0, "{mean}");
    let (results, traces) = writes(&latencies);
    assert_eq!(phenomena(&results, &traces), ["latency-drift"]);
}

#[test]
fn figure_4_flat_after_the_repair() {
    // 136.9 µs; a gap of low jitter for a few hundred calls is the filer's checkpoint.
    let latencies: Vec<u64> = (0..6400)
        .map(|call| if (3000..3300).contains(&call) { 120_000 } else { (137.6e3 * wobble(call)) as u64 })
        .collect();
    let (results, traces) = writes(&latencies);
    assert_eq!(phenomena(&results, &traces), [""; 0]);
}

#[test]
fn figure_6_a_first_call_of_a_millisecond() {
    // 105 µs against the Linux server without the lock; the first call of about 1 ms is left out of it.
    let latencies: Vec<u64> =
        (0..2560).map(|call| if call == 0 { 1_000_000 } else { (105e3 * wobble(call)) as u64 }).collect();
    let (results, traces) = writes(&latencies);
    assert_eq!(phenomena(&results, &traces), ["slow-first-call"]);
}

#[test]
fn table_1_the_faster_server_has_the_slower_client() {
    let mut results = made::study(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[factors.server.levels]\nlinux = { \"run.cache_hook\" = \"use linux\" }\nfiler = { \"run.cache_hook\" = \"use filer\" }\n\
         [factors.lock.levels]\nheld = { \"run.cache\" = \"keep\" }\nreleased = { \"run.cache\" = \"drop\" }\n[workload.write]\nuse = \"write-latency\"\n",
    );
    // MB/s: network, write() with the lock held while sending, and without. Runs vary by 1 % here; the paper tells means.
    for (server, network, held, released) in [("linux", 26.0, 138.0, 147.0), ("filer", 38.0, 115.0, 140.0)] {
        for (lock, write) in [("held", held), ("released", released)] {
            for wobble in [0.99, 1.0, 1.01] {
                let treatment = made::treatment(&results, &format!("server={server} lock={lock}"));
                let unit = Unit::BytesPerSecond;
                let responses = [
                    ("write.write_throughput", write * wobble * 1e6, unit),
                    ("write.close_throughput", network * wobble * 1e6, unit),
                ];
                made::add(&mut results, treatment, vec![], &responses);
            }
        }
    }
    assert_eq!(phenomena(&results, &Traces::default()), ["faster-server-slower-client"]);
    let diagnosis = found(&results, &Traces::default());
    let inverted = one(&diagnosis, "faster-server-slower-client");
    assert!(
        inverted.what.starts_with("With filer all data are there 1.46 times as fast as with linux"),
        "{}",
        inverted.what
    );
}
