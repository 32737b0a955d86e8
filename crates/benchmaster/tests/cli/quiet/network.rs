//! The emulated network of a study.

use benchmaster_netem::namespace::capabilities;
use benchmaster_record::phase::Phase;

use crate::place::{Place, transcript};

const NETWORK: &str = r#"[study]
name = "network"

[target]
url = "nfs://{server}/export?version=4.1"

[run]
interval = "50ms"

[network]
delay = "2ms"

[design]
replicates = 1

[workload.read]
use = "random-read"
file_size = "64KiB"
io_size = "4KiB"
duration = "300ms"
"#;

/// Whether there can be networks between namespaces. Says so, and fails where it is required, when not.
fn namespaces() -> bool {
    let found = capabilities();
    if let (Err(netem), Err(wire)) = (&found.netem, &found.wire) {
        assert!(std::env::var_os("BENCHMASTER_REQUIRE_NAMESPACES").is_none(), "{netem}; {wire}");
        eprintln!("skipped: {netem}; {wire}");
        return false;
    }
    true
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_delay_is_that_of_a_network_between_namespaces() {
    if !namespaces() {
        return;
    }
    for clients in ["count = 1", "count = 3", "count = 2\nlauncher = \"threads\""] {
        let place = Place::in_memory();
        place.write("network.toml", &format!("{NETWORK}[clients]\n{clients}\n"));
        let output = place.run(&["run", "network.toml"]);
        assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
        let results = place.results("results/network");
        let run = &results.runs[0];
        let service = run.service.as_ref().unwrap();
        assert!(["wire", "tc-netem"].contains(&service.network.emulator.name()), "{service:?}");
        assert!(service.network.base_rtt_ns.is_some_and(|ns| ns > 0) && !service.network.note.is_empty());
        let achieved = service.achieved.as_ref().unwrap();
        assert!(achieved.packets.is_some_and(|packets| packets > 0), "{achieved:?}");
        let rpc = run.recordings[0].rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
        let read = rpc.row("READ").unwrap();
        assert!(read.rtt_ns >= read.ops * 4_000_000, "a round trip takes twice the delay: {read:?}");
        let baseline = &results.baselines[0];
        assert!(baseline.round_trip.unwrap().min_ns >= 4_000_000, "{baseline:?}");
        assert_eq!(baseline.flows.len(), 4, "one and eight connections in both directions");
        place.assert_nothing_left();
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn bandwidth_and_loss_are_emulated() {
    if !namespaces() {
        return;
    }
    let place = Place::in_memory();
    let text =
        NETWORK.replace("delay = \"2ms\"", "bandwidth = \"8Mbit/s\"\nloss = \"1%\"").replace("4KiB", "64KiB");
    place.write("network.toml", &text.replace("300ms", "1s"));
    let output = place.run(&["run", "network.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results/network");
    let run = &results.runs[0];
    let throughput = run.responses.iter().find(|response| response.name == "read.throughput").unwrap();
    assert!(throughput.value <= 1.05e6, "{} of 1 MB/s", throughput.value);
    assert!(run.service.as_ref().unwrap().achieved.as_ref().unwrap().lost.is_some());
}

#[test]
fn a_relay_is_used_where_it_is_asked_for_and_where_nothing_else_can_be() {
    let place = Place::in_memory();
    place.write("network.toml", &NETWORK.replace("delay = \"2ms\"", "delay = \"2ms\"\nmeans = \"relay\""));
    let output = place.run(&["run", "network.toml", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results/network");
    let service = results.runs[0].service.as_ref().unwrap();
    assert_eq!(service.network.emulator.name(), "tcp-relay");
    assert!(service.achieved.as_ref().unwrap().lateness_p99_ns.is_some());
    assert!(results.baselines[0].round_trip.unwrap().min_ns >= 4_000_000);
}

#[test]
fn the_plan_says_by_what_means() {
    let place = Place::new();
    place.write("network.toml", &NETWORK.replace("2ms\"", "2ms\"\nbandwidth = \"1Gbit/s\"\nloss = 0.001"));
    let text = transcript(&place.run(&["plan", "network.toml"]));
    let line = text.lines().find(|line| line.starts_with("network ")).expect("a line on the network");
    assert!(line.contains("delay 2ms, 125MB/s per client, loss 0.1%: "), "{line}");
    assert!(line.contains("namespaces") || line.contains("cannot be emulated"), "{line}");
}
