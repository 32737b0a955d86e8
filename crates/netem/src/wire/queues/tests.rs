use std::net::Ipv4Addr;
use std::time::Duration;

use benchmaster_stats::hash_cast;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::*;
use crate::interface::MOST_QUEUES;
use crate::link::Line;

const SECOND: u64 = 1_000_000_000;
/// Bytes of a full frame on the wire.
const FRAME: u64 = 1_538;
/// In bit/s.
const BANDWIDTH: u64 = 100_000_000;
/// The time of a full frame on such a line, in nanoseconds.
const FRAME_TIME: u64 = FRAME * 8 * SECOND / BANDWIDTH;

/// The flow of the server's replies to a client.
fn flow(client: usize, port: u16) -> Flow {
    let address = Ipv4Addr::new(10, 77, 1, 1 + client as u8);
    Flow::tcp((Ipv4Addr::new(10, 77, 0, 1), 2049), (address, port))
}

/// What passes: the client, a number, and when.
type Passed = Vec<(usize, u64, u64)>;

struct Host {
    queues: Queues<u64>,
    passed: Passed,
    dropped: Vec<(usize, u64)>,
}

impl Host {
    fn new(interface: Interface, bandwidth: Option<u64>) -> Self {
        let queues = Queues::new(crate::interface::Host::Server, interface, bandwidth, 1 << 20);
        Self { queues, passed: Vec::new(), dropped: Vec::new() }
    }

    fn advance(&mut self, now: u64) {
        self.queues.advance(now, |packet, at| self.passed.push((packet.client, packet.frame, at)));
    }

    fn send(&mut self, now: u64, client: usize, port: u16, bytes: u64, number: u64) {
        self.advance(now);
        let packet = Packet { client, frames: 1, bytes, frame: number };
        let dropped = self.queues.send(now, flow(client, port), packet);
        self.dropped.extend(dropped.map(|packet| (packet.client, packet.frame)));
        self.advance(now);
    }

    fn queue(&self, client: usize, port: u16) -> usize {
        self.queues.flows[self.queues.numbers[&flow(client, port)]].queue
    }
}

/// Flows that always have as many full frames on their way as their windows allow: what each client gets until then, in
/// shares of the line. A frame that arrives is followed by the next; one that is dropped by one a second later.
fn shares(interface: Interface, windows: &[u64], ports: &[u16], until: u64) -> Vec<f64> {
    let mut host = Host::new(interface, Some(BANDWIDTH));
    let mut send_at: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let clients = 0..windows.len();
    send_at.insert(0, clients.clone().flat_map(|client| vec![client; windows[client] as usize]).collect());
    let mut got = vec![0; windows.len()];
    while let Some((now, clients)) = send_at.pop_first() {
        if now > until {
            break;
        }
        for client in clients {
            host.send(now, client, ports[client], FRAME, 0);
        }
        host.advance(now);
        for (client, _, at) in host.passed.drain(..) {
            got[client] += u64::from(at <= until);
            send_at.entry(at).or_default().push(client);
        }
        host.dropped.drain(..).for_each(|(client, _)| send_at.entry(now + SECOND).or_default().push(client));
        if let Some(next) = host.queues.next() {
            send_at.entry(next).or_default();
        }
    }
    got.iter().map(|frames| (frames * FRAME_TIME) as f64 / until as f64).collect()
}

/// A set-up: ports of five clients, as random as the kernel's.
fn ports(seed: u64) -> Vec<u16> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..5).map(|_| 32_768 + (random.next_u32() % 28_232) as u16).collect()
}

/// The loads of eight queues with five flows, in a set-up: the numbers of flows in each queue that has some, most first.
fn loads(interface: &Interface, ports: &[u16]) -> Vec<u32> {
    let mut loads = vec![0; interface.queues as usize];
    for (client, port) in ports.iter().enumerate() {
        loads[place(interface, &interface.key, &flow(client, *port), 0).0] += 1;
    }
    loads.retain(|load| *load > 0);
    loads.sort_unstable_by(|a, b| b.cmp(a));
    loads
}

fn seeded(queues: u32, seed: u64) -> Interface {
    Interface { key: HashKey::of_seed(seed), ..Interface::new(queues) }
}

/// The first set-up with these loads.
fn set_up_with(wanted: &[u32]) -> (Interface, Vec<u16>) {
    let set_ups = (0..1_000).map(|seed| (seeded(8, seed), ports(seed)));
    set_ups.into_iter().find(|(interface, ports)| loads(interface, ports) == wanted).unwrap()
}

#[test]
fn flows_are_spread_as_often_as_the_exact_model_has_it() {
    const SET_UPS: u64 = 20_000;
    // Another key each time, as after a re-hash; and one key with other ports each time, as with new connections.
    let keys: Vec<(Interface, Vec<u16>)> = (0..SET_UPS).map(|seed| (seeded(8, seed), ports(7))).collect();
    let connections: Vec<(Interface, Vec<u16>)> =
        (0..SET_UPS).map(|seed| (seeded(8, 7), ports(seed))).collect();
    for set_ups in [keys, connections] {
        let mut counts: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        for (interface, ports) in &set_ups {
            *counts.entry(loads(interface, ports)).or_default() += 1;
        }
        // Those that come in less than 2 % of all cases are one.
        let patterns: [&[&[u32]]; 5] =
            [&[&[1, 1, 1, 1, 1]], &[&[2, 1, 1, 1]], &[&[2, 2, 1]], &[&[3, 1, 1]], &[&[3, 2], &[4, 1], &[5]]];
        let (mut sum, mut square) = (0.0, 0.0);
        for patterns in patterns {
            let of = |pattern: &&[u32]| hash_cast::probability_of_loads(pattern, 8).unwrap();
            let expected = patterns.iter().map(of).sum::<f64>() * SET_UPS as f64;
            let seen: u64 = patterns.iter().filter_map(|pattern| counts.get(*pattern)).sum();
            square += (seen as f64 - expected).powi(2) / expected;
            sum += expected;
        }
        assert!((sum / SET_UPS as f64 - 1.0).abs() < 1e-9);
        // The 95 % quantile of χ² with four degrees of freedom.
        assert!(square < 9.488, "{square}: {counts:?}");
    }
}

#[test]
fn a_table_of_128_entries_spreads_hashes_evenly() {
    for queues in [1, 2, 3, 6, 8, 48, MOST_QUEUES] {
        let interface = seeded(queues, 1);
        let mut counts = vec![0u32; queues as usize];
        for port in 0..16_384 {
            counts[place(&interface, &interface.key, &flow(0, port), 0).0] += 1;
        }
        // Of 128 entries a queue has some, or one more.
        let share = TABLE / queues;
        let least = share * 16_384 / TABLE;
        let most = share.div_ceil(1).max(TABLE.div_ceil(queues)) * 16_384 / TABLE;
        assert!(counts.iter().all(|count| (least * 8 / 10..=most * 12 / 10).contains(count)), "{counts:?}");
    }
}

#[test]
fn hash_cast_divides_clients_into_winners_and_losers_and_its_cures_end_it() {
    let windows = [120; 5];
    for wanted in [&[2, 1, 1, 1][..], &[3, 1, 1], &[2, 2, 1]] {
        let (interface, ports) = set_up_with(wanted);
        let of_queue: Vec<f64> = (0..5)
            .map(|client| {
                let queue =
                    |client: usize| place(&interface, &interface.key, &flow(client, ports[client]), 0).0;
                (0..5).filter(|other| queue(*other) == queue(client)).count() as f64
            })
            .collect();
        // Queues in use share the line alike, and flows their queue.
        for (share, flows) in shares(interface, &windows, &ports, 4 * SECOND).iter().zip(&of_queue) {
            let expected = 1.0 / wanted.len() as f64 / flows;
            assert!((share / expected - 1.0).abs() < 0.03, "{wanted:?}: {share} instead of {expected}");
        }
        let even = |interface: Interface, tolerance: f64| {
            let shares = shares(interface, &windows, &ports, 4 * SECOND);
            let within = shares.iter().all(|share| (share / 0.2 - 1.0).abs() < tolerance);
            assert!(within, "{interface:?}: {shares:?}");
        };
        even(Interface { queues: 1, ..interface }, 0.03);
        even(Interface { queues: 1, discipline: Discipline::Fq, ..interface }, 0.03);
        // As in paper 001: the classes of stochastic fair queueing are many, and change.
        let rehash = Some(Duration::from_millis(100));
        even(Interface { queues: 1, discipline: Discipline::Sfq, rehash, ..interface }, 0.1);
        // Chance evens out: the ratio is that of the mean over 100 draws.
        even(Interface { rehash: Some(Duration::from_millis(10)), ..interface }, 0.25);
        // A limit per flow does not help, as paper 000 found of TSQ.
        let limited =
            shares(Interface { flow_limit: Some(16 << 10), ..interface }, &windows, &ports, 4 * SECOND);
        let [least, most] = [f64::min, f64::max].map(|of| limited.iter().copied().reduce(of).unwrap());
        assert!(most / least > 1.8, "{limited:?}");
    }
    // All apart is fair without a cure.
    let (interface, ports) = set_up_with(&[1, 1, 1, 1, 1]);
    assert!(shares(interface, &windows, &ports, SECOND).iter().all(|share| (share / 0.2 - 1.0).abs() < 0.03));
}

#[test]
fn in_one_fifo_windows_divide_the_line_and_fair_queueing_does_not_mind_them() {
    let windows = [400, 100, 100];
    let ports = [1_000, 1_001, 1_002];
    let fifo = shares(Interface::new(1), &windows, &ports, SECOND);
    assert!((fifo[0] / fifo[1] - 4.0).abs() < 0.4, "{fifo:?}");
    for cured in [
        Interface { discipline: Discipline::Fq, ..Interface::new(1) },
        // A flow has as much in the queue as any other.
        Interface { flow_limit: Some(20 * FRAME), ..Interface::new(1) },
    ] {
        let shares = shares(cured, &windows, &ports, SECOND);
        assert!(shares.iter().all(|share| (share * 3.0 - 1.0).abs() < 0.05), "{cured:?}: {shares:?}");
    }
}

/// How long a small packet takes behind a flow that fills its queue.
fn small_behind_bulk(interface: Interface) -> u64 {
    let mut host = Host::new(interface, Some(BANDWIDTH));
    for _ in 0..1_000 {
        host.send(0, 0, 900, FRAME, 0);
    }
    host.send(SECOND / 1_000, 1, 901, 84, 7);
    host.advance(u64::MAX / 2);
    let (.., at) = *host.passed.iter().find(|(client, number, _)| (*client, *number) == (1, 7)).unwrap();
    at - SECOND / 1_000
}

#[test]
fn a_small_flow_waits_behind_what_a_large_one_has_queued() {
    let one = Interface { limit: Some(1 << 20), ..Interface::new(1) };
    let waited = small_behind_bulk(one);
    // 1 MiB at 100 Mbit/s, all but what passed in the first millisecond.
    assert!((80_000_000..84_000_000).contains(&waited), "{waited}");
    for discipline in [Discipline::Sfq, Discipline::Fq] {
        let waited = small_behind_bulk(Interface { discipline, ..one });
        assert!(waited <= 3 * FRAME_TIME, "{discipline}: {waited}");
    }
    let limited = small_behind_bulk(Interface { flow_limit: Some(16 << 10), ..one });
    assert!(limited <= 12 * FRAME_TIME, "{limited}");
    // A shorter queue helps as well, and drops the rest.
    let short = small_behind_bulk(Interface { limit: Some(16 << 10), ..one });
    assert!(short <= 12 * FRAME_TIME, "{short}");
}

#[test]
fn queues_share_the_line_packet_by_packet() {
    // Paper 000, figure 7: as many packets of each, so that small ones make a loser.
    let ports = (0..100).find(|port| {
        let queue = |client, port| place(&seeded(8, 1), &HashKey::of_seed(1), &flow(client, port), 0).0;
        queue(0, 7) != queue(1, *port)
    });
    let mut host = Host::new(seeded(8, 1), Some(BANDWIDTH));
    for number in 0..10 {
        host.send(0, 0, 7, 60_000, number);
        host.send(0, 1, ports.unwrap(), 3_000, number);
    }
    host.advance(u64::MAX / 2);
    let order: Vec<usize> = host.passed.iter().map(|(client, ..)| *client).collect();
    assert_eq!(order, [0, 1].repeat(10));
    assert_ne!(host.queue(0, 7), host.queue(1, ports.unwrap()));
}

#[test]
fn reports_name_flows_their_queues_and_what_waits() {
    let interface = Interface { limit: Some(4 * FRAME), flow_limit: Some(3 * FRAME), ..Interface::new(1) };
    let mut host = Host::new(interface, Some(BANDWIDTH));
    assert_eq!(host.queues.report(), None);
    (0..6).for_each(|number| host.send(0, 0, 900, FRAME, number));
    (0..3).for_each(|number| host.send(0, 1, 901, FRAME, number));
    let report = host.queues.report().unwrap();
    let FlowReport { name, queue, held_bytes, .. } = &report.flows[0];
    // One is on the line, three are in the queue, two stay with their sender.
    assert_eq!((name.as_str(), *queue, *held_bytes), ("10.77.0.1:2049-10.77.1.1:900", 0, 2 * FRAME));
    let queue = report.queues[0];
    assert_eq!((queue.packets, queue.bytes, queue.drops, queue.sent_packets), (4, 4 * FRAME, 2, 1));
    assert_eq!((report.flows[1].drops, queue.longest), (2, 5 * FRAME));
    host.queues.clear();
    let cleared = host.queues.report().unwrap().queues[0];
    assert_eq!((cleared.packets, cleared.longest, cleared.drops, cleared.sent_packets), (4, 4 * FRAME, 0, 0));
    host.advance(SECOND);
    assert_eq!((host.passed.len(), host.dropped.len()), (7, 2));
    // Flows are known at the beginning of what is counted, and forgotten when they sent nothing in all of it.
    host.queues.clear();
    assert_eq!(host.queues.report().unwrap().flows.iter().map(|flow| flow.sent_bytes).sum::<u64>(), 0);
    host.queues.clear();
    assert_eq!(host.queues.report(), None);
}

#[test]
fn keys_change_by_themselves_and_at_will_and_what_waits_goes_along() {
    let queue_by = |key: HashKey| place(&Interface::new(8), &key, &flow(0, 900), 0).0;
    let rehash = Some(Duration::from_secs(1));
    let mut host = Host::new(Interface { rehash, ..seeded(8, 1) }, Some(BANDWIDTH));
    let first = HashKey::of_seed(1);
    (0..200).for_each(|number| host.send(0, 0, 900, FRAME, number));
    let other = (2..).find(|seed| queue_by(HashKey::of_seed(*seed)) != queue_by(first)).unwrap();
    host.advance(SECOND / 1_000);
    host.queues.set_key(SECOND / 1_000, HashKey::of_seed(other));
    let queue = queue_by(HashKey::of_seed(other));
    let waiting = host.queues.report().unwrap().queues.iter().map(|queue| queue.packets).collect::<Vec<_>>();
    assert!(waiting.iter().enumerate().all(|(at, packets)| (*packets > 0) == (at == queue)), "{waiting:?}");
    // A period from then on, and each time by another key.
    let mut queues = Vec::new();
    for second in 1..=30 {
        host.advance(second * SECOND);
        assert_eq!(host.queues.rehashes, second - 1);
        host.advance(second * SECOND + SECOND / 1_000);
        assert_eq!(host.queues.rehashes, second);
        queues.push(host.queue(0, 900));
    }
    queues.sort_unstable();
    queues.dedup();
    assert!(queues.len() >= 6, "{queues:?}");
    assert!(host.passed.is_sorted_by_key(|(_, number, _)| *number) && host.passed.len() == 200);
}

#[test]
fn as_many_flows_as_fit_are_remembered() {
    let mut host = Host::new(Interface::new(8), None);
    for number in 0..MOST_FLOWS as u64 + 10 {
        host.send(number, (number / 50_000) as usize, (number % 50_000) as u16, 84, number);
    }
    assert_eq!(host.queues.flows.len(), 10);
    assert_eq!(host.queues.flows.len(), host.queues.numbers.len());
}

fn interfaces() -> impl Strategy<Value = Interface> {
    let rehash = prop::option::of((10u64..40).prop_map(Duration::from_millis));
    (1..=MOST_QUEUES, 0usize..3, 0u64..40_000, any::<u64>(), rehash, prop::option::of(0u64..9_000)).prop_map(
        |(queues, discipline, limit, seed, rehash, flow_limit)| Interface {
            discipline: Discipline::ALL[discipline],
            limit: Some(limit),
            rehash,
            flow_limit,
            ..seeded(queues, seed)
        },
    )
}

proptest! {
    #[test]
    fn one_fifo_is_the_line(frames in prop::collection::vec((0u64..300_000, 84u64..9_100), 1..200)) {
        let mut line = Line::new(Some(BANDWIDTH), u64::MAX);
        let mut host = Host::new(Interface { limit: Some(u64::MAX), ..Interface::new(1) }, Some(BANDWIDTH));
        let (mut now, mut expected) = (0, Vec::new());
        for (number, (gap, bytes)) in (0..).zip(frames) {
            now += gap;
            expected.push((0, number, line.pass(now, bytes).unwrap()));
            host.send(now, 0, 900, bytes, number);
        }
        host.advance(u64::MAX / 2);
        prop_assert_eq!(host.passed, expected);
    }

    #[test]
    fn packets_leave_once_in_the_order_of_their_flow_or_are_dropped(
        interface in interfaces(),
        bandwidth in prop::option::of(1_000_000u64..1_000_000_000),
        frames in prop::collection::vec((0usize..12, 0u64..2_000_000, 84u64..3_000), 1..300),
    ) {
        let run = || {
            let mut host = Host::new(interface, bandwidth);
            let mut now = 0;
            for (number, (client, gap, bytes)) in (0..).zip(&frames) {
                now += gap;
                host.send(now, *client, 900, *bytes, number);
                for queue in &host.queues.queues {
                    let bytes = queue.classes.values().map(|class| class.bytes).sum::<u64>();
                    prop_assert_eq!(queue.counts.bytes, bytes);
                }
                for (_, seen) in &host.queues.flows {
                    prop_assert!(seen.held.is_empty() || seen.queued > 0, "held with nothing in the queue");
                    let most = interface.flow_limit.unwrap_or(u64::MAX);
                    prop_assert!(seen.queued <= most.max(3_000));
                }
            }
            host.advance(u64::MAX / 2);
            Ok((host.passed, host.dropped))
        };
        let (passed, dropped): (Passed, _) = run()?;
        prop_assert_eq!(passed.len() + dropped.len(), frames.len());
        prop_assert!(passed.is_sorted_by_key(|(.., at)| *at));
        for client in 0..12 {
            let of: Vec<_> = passed.iter().filter(|passed| passed.0 == client).collect();
            prop_assert!(of.is_sorted_by_key(|(_, number, _)| *number), "a flow overtakes itself");
        }
        prop_assert_eq!(run()?, (passed, dropped), "not the same again");
    }

    #[test]
    fn backlogged_flows_get_the_same_by_fair_queueing(
        sizes in prop::collection::vec(84u64..9_000, 2..6),
        counts in 20u64..60,
    ) {
        let interface = Interface { discipline: Discipline::Fq, limit: Some(u64::MAX), ..Interface::new(1) };
        let mut host = Host::new(interface, Some(BANDWIDTH));
        // Something that occupies the line until all are there.
        host.send(0, 99, 1, 100_000, 0);
        let most = *sizes.iter().max().unwrap();
        for (client, size) in sizes.iter().enumerate() {
            (0..counts * most / size).for_each(|number| host.send(0, client, 900, *size, number));
        }
        host.advance(u64::MAX / 2);
        // As long as all have something to send.
        let mut sent = vec![0; sizes.len()];
        for (client, ..) in host.passed.iter().skip(1) {
            sent[*client] += sizes[*client];
            if sent[*client] + sizes[*client] > (counts - 1) * most {
                break;
            }
            let [least, top] = [sent.iter().min().unwrap(), sent.iter().max().unwrap()];
            prop_assert!(top - least <= 2 * (QUANTUM as u64 + most), "{sent:?}");
        }
    }
}
