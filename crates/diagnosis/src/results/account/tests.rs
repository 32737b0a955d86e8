//! Parts that add up.

use benchmaster_record::results::ServedBy;

use super::*;
use crate::results::testing::{Made, NoDetails};

/// 1,000 READs of a round trip over a network of 1 ms each way, against a server of this kind.
fn made(server: ServedBy, rtt_ns: u64) -> Made {
    let mut made = Made::served();
    let rows = made.rows();
    rows.truncate(1);
    let row = &mut rows[0];
    (row.program, row.operation) = ("NFSv4".into(), "READ".into());
    (row.ops, row.transmissions, row.queue_ns) = (1000, 1000, 0);
    (row.rtt_ns, row.execute_ns) = (1000 * rtt_ns, 1000 * rtt_ns);
    (row.bytes_sent, row.bytes_received) = (0, 0);
    made.recording().rpc.as_mut().unwrap().client_cpu_ns = (0, 0);
    let service = made.run().service.as_mut().unwrap();
    service.server = server;
    (service.network.base_rtt_ns, service.network.bandwidth, service.network.loss) = (None, None, 0.0);
    for used in &mut made.run().server_use {
        used.operations.clear();
        used.held_ns = Some(0);
    }
    made
}

fn account(made: &Made) -> Account {
    let run = &made.results.runs[0];
    let measured = Measured::new(&made.results, run, &run.recordings[made.which], &NoDetails);
    let account = Account::of(&measured).unwrap();
    let shares: f64 = Part::ALL.iter().map(|part| account.share(*part)).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{account:?}");
    account
}

#[test]
fn what_the_embedded_server_did_not_count_is_not_its_time() {
    let mut slow_network = made(ServedBy::Embedded, 33_000_000);
    let account_of = |made: &Made| account(made);
    let host = account_of(&slow_network);
    assert!((host.share(Part::Host) - 31.0 / 33.0).abs() < 1e-9 && host.share(Part::Server) == 0.0);
    // The link is used up: requests wait before it.
    let length = slow_network.recording().length_ns;
    slow_network.rows()[0].bytes_received = 12_500_000 * length / 1_000_000_000 * 9 / 10;
    slow_network.run().service.as_mut().unwrap().network.bandwidth = Some(100_000_000);
    slow_network.recording().rpc.as_mut().unwrap().connection.clients = 1;
    let queued = account_of(&slow_network);
    assert!(queued.share(Part::NetworkQueue) > 0.1, "{queued:?}");
    assert_eq!((queued.ns(Part::Server), queued.ns(Part::Host), queued.ns(Part::Unknown)), (0.0, 0.0, 0.0));
    // Replies that were held back on demand are the server's.
    slow_network.run().server_use.iter_mut().for_each(|used| used.held_ns = Some(3_000_000_000));
    let held = account_of(&slow_network);
    assert!((held.ns(Part::Server) - 3e9).abs() < 1.0, "{held:?}");
}

#[test]
fn of_other_servers_the_most_that_the_network_can_have_held_is_not_theirs() {
    // An emulated network whose links have no limit has no queue.
    let lab = account(&made(ServedBy::Knfsd, 33_000_000));
    assert!((lab.share(Part::Server) - 31.0 / 33.0).abs() < 1e-9, "{lab:?}");
    // Of a network that is as it is, TCP tells how long requests wait.
    let real = |rtt_ns: f64| {
        let mut made = made(ServedBy::External, 33_000_000);
        made.run().service.as_mut().unwrap().network = Default::default();
        made.results.baselines.clear();
        made.recording().samples.clear();
        made.gauge("c1", "tcp_info", "min_rtt", "10.0.0.1:2049", 2_000_000.0);
        made.gauge("c1", "tcp_info", "rtt", "10.0.0.1:2049", rtt_ns);
        made.recording().agents.clear();
        made
    };
    let quick = account(&real(3_000_000.0));
    assert!((quick.ns(Part::Server) - 30e9).abs() < 1e3, "{quick:?}");
    assert!((quick.ns(Part::Unknown) - 1e9).abs() < 1e3, "{quick:?}");
    // Acknowledgements that come with the replies tell nothing.
    let silent = account(&real(32_000_000.0));
    assert_eq!(silent.ns(Part::Server), 0.0);
    assert!(silent.missing.is_some() && silent.share(Part::Unknown) > 0.9, "{silent:?}");
    // What the clients' threads work is not the server's either.
    let mut worked = real(3_000_000.0);
    worked.recording().rpc.as_mut().unwrap().client_cpu_ns = (10_000_000_000, 0);
    assert!((account(&worked).ns(Part::Host) - 10e9).abs() < 1e3);
    // Nor does a network that was not measured, of calls with many bytes.
    let mut large = real(3_000_000.0);
    large.rows()[0].bytes_received = 1000 << 20;
    assert!(account(&large).share(Part::Unknown) > 0.3);
}

#[test]
fn queues_of_clients_and_requests_sent_again_come_first() {
    let mut waits = made(ServedBy::Knfsd, 4_000_000);
    let row = &mut waits.rows()[0];
    (row.queue_ns, row.execute_ns) = (3_000_000_000, 9_000_000_000);
    let account = account(&waits);
    assert!((account.share(Part::ClientQueue) - 3.0 / 9.0).abs() < 1e-9);
    assert!((account.share(Part::Resent) - 2.0 / 9.0).abs() < 1e-9);
    assert!((account.share(Part::Path) - 2.0 / 9.0).abs() < 1e-9);
    assert!((account.share(Part::Server) - 2.0 / 9.0).abs() < 1e-9);
}

#[test]
fn at_most_a_round_trip_is_held_back_at_each_end_that_was_asked_to() {
    let mut held = made(ServedBy::Embedded, 5_000_000);
    held.recording().length_ns = 1_000_000_000;
    held.recording().rpc.as_mut().unwrap().connection.clients = 1;
    (held.recording().host.process_user_ns, held.recording().host.process_system_ns) =
        (400_000_000, 100_000_000);
    let back = |made: &Made| account(made).ns(Part::HeldBack);
    assert_eq!(back(&held), 0.0);
    held.run().parameters.nagle.clients = true;
    // Of 5 ms 2 are the way and 0.5 work.
    assert!((back(&held) - 2e9).abs() < 1.0 && (account(&held).ns(Part::Host) - 1e9).abs() < 1.0);
    held.run().parameters.nagle.server = true;
    assert!((back(&held) - 2.5e9).abs() < 1.0);
    // A busy host: what its processors worked is not held back.
    held.recording().host.process_user_ns = 2_500_000_000;
    assert!((back(&held) - 0.4e9).abs() < 1.0);
    // One call at a time has nothing to wait for.
    held.recording().length_ns = 10_000_000_000;
    assert_eq!(back(&held), 0.0);
    // Calls of many segments fill them.
    held.recording().length_ns = 1_000_000_000;
    let row = &mut held.rows()[0];
    (row.bytes_sent, row.bytes_received) = (2_000_000, 2_000_000);
    assert_eq!(back(&held), 0.0);
}
