//! Hash-Cast, produced by the wire's transmit queues and found by the diagnosis; and its cures. Without the right to make
//! namespaces it is skipped, unless `BENCHMASTER_REQUIRE_NAMESPACES=1`.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_netem::namespace::capabilities;
use benchmaster_record::results::RunRecord;
use benchmaster_store::Store;
use serde_json::Value;

use crate::place::{Place, stdout, transcript};

/// Five clients over eight transmit queues of the server, or one that is fair.
const STUDY: &str = r#"[study]
name = "hash-cast"

[target]
url = "nfs://{server}/export?version=4.1"

[server]
null_data = true

[clients]
count = 5

[network]
server_bandwidth = "100Mbit/s"
queue_limit = "256KiB"
congestion = "cubic"

[run]
cut = "none"
baseline = false

[sampling]
interval = "100ms"

[factors.card.levels]
hashed = { "network.queues" = 8, "network.queue_discipline" = "fifo" }
fair = { "network.queues" = 1, "network.queue_discipline" = "fq" }

[design]
replicates = 6
response = "read.throughput"

[workload.read]
use = "sequential-read"
file_size = "16MiB"
io_size = "64KiB"
queue_depth = 8
duration = "4s"
"#;

/// A run: for each client, bytes that the server sent it, and the number of clients in its queue.
fn truth(run: &RunRecord) -> Vec<(f64, usize)> {
    let samples = &run.recordings[0].samples;
    let samples = &samples.iter().find(|host| host.agent == "embedded server").unwrap().samples;
    let mut clients: BTreeMap<u32, (f64, u64)> = BTreeMap::new();
    for series in samples.of("transmit_queues", "flow_queue") {
        let sent = samples.find("transmit_queues", "flow_sent_bytes", &series.key.instance).unwrap();
        let sent = sent.points.last().unwrap().value - sent.points[0].value;
        let mut words = series.key.instance.split(' ');
        if words.next() == Some("server") && sent > 1e6 {
            let client = words.next().unwrap().parse().unwrap();
            clients.insert(client, (sent, series.points.last().unwrap().value as u64));
        }
    }
    let load = |queue: u64| clients.values().filter(|(_, other)| *other == queue).count();
    clients.values().map(|(sent, queue)| (*sent, load(*queue))).collect()
}

/// The runs of each treatment in which a finding of this id was made; and with which confidence.
fn found(findings: &Value, id: &str) -> (BTreeSet<(u64, u64)>, Option<String>) {
    let of: Vec<&Value> =
        findings["findings"].as_array().unwrap().iter().filter(|finding| finding["id"] == id).collect();
    let treatments = of.iter().flat_map(|finding| finding["at"]["treatments"].as_array().unwrap());
    let runs = treatments.flat_map(|treatment| treatment["runs"].as_array().unwrap());
    let key = |run: &Value| (run["treatment"].as_u64().unwrap(), run["replicate"].as_u64().unwrap());
    (runs.map(key).collect(), of.first().map(|finding| finding["confidence"].as_str().unwrap().to_owned()))
}

#[test]
#[ignore = "full tier: network namespaces"]
fn clients_that_share_a_queue_lose_and_the_diagnosis_finds_it_there_and_only_there() {
    if let Err(reason) = capabilities().wire {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    }
    let place = Place::in_memory();
    place.write("hash-cast.toml", STUDY);
    let output = place.run(&["run", "hash-cast.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results/hash-cast");
    let output = place.run(&["diagnose", "results/hash-cast", "--json"]);
    let findings: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let (runs, confidence) = found(&findings, "winners-and-losers");
    let (mut clear, mut losers_of, mut throughputs) = (0, BTreeSet::new(), BTreeMap::new());
    // Runs in which the host held a client up: it asked for less than its part, and the queues are not what divided the line.
    let mut held_up = Vec::new();
    for run in &results.runs {
        let key = (u64::from(run.key.treatment), u64::from(run.key.replicate));
        // With its samples.
        let whole = Store::load_run(&place.path("results/hash-cast"), run.key).unwrap().unwrap();
        let clients = truth(&whole);
        let told = format!("{key:?}: {clients:?}");
        assert_eq!(clients.len(), 5, "{told}");
        let throughput = run.responses.iter().find(|response| response.name == "read.throughput").unwrap();
        throughputs.entry(key.0).or_insert_with(Vec::new).push(throughput.value);
        let sum: f64 = clients.iter().map(|(sent, _)| sent).sum();
        if key.0 == 1 {
            // One fair queue: all get the same, though all are in it.
            assert!(clients.iter().all(|(_, load)| *load == 5), "{told}");
            if clients.iter().any(|(sent, _)| (sent / sum - 0.2).abs() > 0.02) {
                held_up.push(told);
            } else {
                assert!(!runs.contains(&key), "{told}");
            }
            continue;
        }
        // Queues in use have the same part of the line.
        let used: f64 = clients.iter().map(|(_, load)| 1.0 / *load as f64).sum();
        let is_divided = (1..=5).all(|load| {
            let of: Vec<f64> = clients.iter().filter(|of| of.1 == load).map(|of| of.0).collect();
            let expected = of.len() as f64 / load as f64 / used;
            (of.iter().sum::<f64>() / sum - expected).abs() < 0.05
        });
        if !is_divided {
            held_up.push(told);
            continue;
        }
        let losers: Vec<usize> = (0..5).filter(|client| clients[*client].1 > 1).collect();
        // Found wherever some have a queue of their own and others share theirs, however these divide it; and nowhere else.
        let is_uneven = !losers.is_empty() && losers.len() < 5;
        assert_eq!(runs.contains(&key), is_uneven, "{told}: {findings:#}");
        let shares = losers.iter().map(|client| clients[*client].0);
        let (least, most) = (shares.clone().fold(f64::MAX, f64::min), shares.fold(0.0, f64::max));
        // Clear by rates alone.
        if is_uneven && most < 1.3 * least {
            clear += 1;
            losers_of.insert(losers);
        }
    }
    assert!(held_up.len() <= 2, "of 12 runs: {held_up:#?}");
    assert!(runs.is_empty() || confidence.as_deref() == Some("certain"), "{confidence:?}");
    // Over all runs: as often as the model has it, which is in 79 % of them.
    let (of, confidence) = found(&findings, "hash-cast");
    assert!(of.iter().all(|(treatment, _)| *treatment == 0), "{of:?}");
    if !of.is_empty() || (clear >= 3 && losers_of.len() >= 2) {
        assert_eq!((of.len(), confidence.as_deref()), (6, Some("likely")), "{findings:#}");
    }
    // Paper 001: the cure costs nothing.
    let medians: Vec<f64> = throughputs
        .into_values()
        .map(|mut values| {
            values.sort_by(f64::total_cmp);
            f64::midpoint(values[2], values[3])
        })
        .collect();
    assert!((medians[1] / medians[0] - 1.0).abs() < 0.03, "{medians:?}");
}
