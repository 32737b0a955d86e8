//! Transmit queues between real TCP connections: winners and losers, a small flow behind a large one, and what ends both.
//! Without the right to make namespaces the tests are skipped, unless `BENCHMASTER_REQUIRE_NAMESPACES=1`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_netem::interface::{Discipline, Host, Interface, InterfaceReport};
use benchmaster_netem::link::Link;
use benchmaster_netem::namespace::capabilities;
use benchmaster_netem::network::{Means, Network, NetworkConfig, NetworkError};
use benchmaster_netem::toeplitz::HashKey;

/// So much that the host is not the limit, in bit/s.
const BANDWIDTH: u64 = 100_000_000;
const PORT: u16 = 2049;

/// A network whose server has these queues, or nothing where it cannot be.
fn network(clients: u32, interface: Interface) -> Option<Network> {
    if let Err(reason) = capabilities().wire {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{reason}");
        eprintln!("skipped: {reason}");
        return None;
    }
    let config = NetworkConfig {
        server_bandwidth: Some(BANDWIDTH),
        interface: Some(interface),
        // That of the papers. Others (BBR) share queues in ways of their own.
        congestion: Some("cubic".into()),
        ..NetworkConfig::new(clients, Link::default())
    };
    Some(Network::start(config).unwrap())
}

/// A bulk transfer from the server to each client, while `during` looks on; bytes received so far, by client.
fn sending<R>(network: &Network, clients: u32, during: impl FnOnce(&[AtomicU64]) -> R) -> R {
    let listener =
        network.server().run(|| TcpListener::bind((network.server_address(), PORT))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let received: Vec<AtomicU64> = (0..clients).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for client in 0..clients {
            let (received, stop) = (&received[client as usize], &stop);
            let connect = || TcpStream::connect(address);
            let mut stream = network.client(client).run(connect).unwrap().unwrap();
            scope.spawn(move || {
                let mut buffer = vec![0; 256 << 10];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    received.fetch_add(length as u64, Relaxed);
                    if stop.load(Relaxed) {
                        return;
                    }
                }
            });
            let mut stream = listener.accept().unwrap().0;
            scope.spawn(move || while stream.write_all(&[0; 64 << 10]).is_ok() {});
        }
        let result = during(&received);
        stop.store(true, Relaxed);
        result
    })
}

/// The server's transmit queues.
fn server(network: &Network) -> InterfaceReport {
    let found = network.interfaces().unwrap().read();
    found.into_iter().find(|interface| interface.host == Host::Server).unwrap()
}

/// The queue of each client's flow.
fn queues_of(network: &Network, clients: u32) -> Vec<u32> {
    let flows = server(network).flows;
    let of = |client: u32| {
        let (from, to) = (
            format!("{}:{PORT}-", network.server_address()),
            format!("-{}:", network.client_address(client)),
        );
        flows.iter().find(|flow| flow.name.starts_with(&from) && flow.name.contains(&to)).unwrap().queue
    };
    (0..clients).map(of).collect()
}

/// The number of flows in the queue of each client's.
fn loads(queues: &[u32]) -> Vec<usize> {
    queues.iter().map(|queue| queues.iter().filter(|other| *other == queue).count()).collect()
}

/// A key by which clients' flows share queues so: the loads in ascending order.
fn use_key(network: &Network, clients: u32, wanted: &[usize]) -> Vec<usize> {
    for seed in 0..1_000 {
        network.set_hash_key(HashKey::of_seed(seed));
        let loads = loads(&queues_of(network, clients));
        let mut sorted = loads.clone();
        sorted.sort_unstable();
        if sorted == wanted {
            return loads;
        }
    }
    panic!("no key has these loads: {wanted:?}");
}

/// The shares of the clients, once the connections have found their rates.
fn shares(received: &[AtomicU64]) -> Vec<f64> {
    let now = || received.iter().map(|bytes| bytes.load(Relaxed)).collect::<Vec<u64>>();
    thread::sleep(Duration::from_millis(1_500));
    let before = now();
    thread::sleep(Duration::from_secs(4));
    let moved: Vec<f64> = now().iter().zip(&before).map(|(now, before)| (now - before) as f64).collect();
    let sum: f64 = moved.iter().sum();
    moved.iter().map(|moved| moved / sum).collect()
}

#[test]
#[ignore = "full tier: network namespaces"]
fn hash_cast_makes_winners_and_losers_and_one_fair_queue_or_other_keys_none() {
    let deep = Interface { limit: Some(256 << 10), ..Interface::new(8) };
    let Some(network) = network(5, deep) else { return };
    sending(&network, 5, |received| {
        for wanted in [[1, 1, 1, 2, 2], [1, 1, 3, 3, 3]] {
            let loads = use_key(&network, 5, &wanted);
            let used: f64 = loads.iter().map(|load| 1.0 / *load as f64).sum();
            let shares = shares(received);
            for load in [1, 2, 3] {
                let of: Vec<f64> = shares
                    .iter()
                    .zip(&loads)
                    .filter(|(_, of)| **of == load)
                    .map(|(share, _)| *share)
                    .collect();
                // Connections that share a queue need not share it alike; together they have that queue's part.
                let expected = of.len() as f64 / load as f64 / used;
                let together: f64 = of.iter().sum();
                assert!((together - expected).abs() < 0.03, "{loads:?}: {shares:?}");
            }
        }
        // The control: all apart.
        use_key(&network, 5, &[1; 5]);
        let shares = shares(received);
        assert!(shares.iter().all(|share| (share - 0.2).abs() < 0.02), "{shares:?}");
    });
    drop(network);
    let rehash = Some(Duration::from_millis(100));
    for cure in [
        Interface { discipline: Discipline::Fq, queues: 1, ..deep },
        Interface { discipline: Discipline::Sfq, queues: 1, rehash, ..deep },
    ] {
        let network = self::network(5, cure).unwrap();
        let shares = sending(&network, 5, shares);
        assert!(shares.iter().all(|share| (share - 0.2).abs() < 0.03), "{cure:?}: {shares:?}");
    }
    // By chance evened out, 40 times in the time.
    let network = self::network(5, Interface { rehash, ..deep }).unwrap();
    let shares = sending(&network, 5, shares);
    assert!(shares.iter().all(|share| (share - 0.2).abs() < 0.08), "{shares:?}");
}

/// The time of a small request and its reply: nine of ten took longer.
fn small_requests(network: &Network) -> Duration {
    let listener =
        network.server().run(|| TcpListener::bind((network.server_address(), 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let mut client = network.client(0).run(|| TcpStream::connect(address)).unwrap().unwrap();
    let mut server = listener.accept().unwrap().0;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            while let Ok(1) = server.read(&mut byte) {
                let _ = server.write_all(&byte);
            }
        });
        let mut took: Vec<Duration> = (0..30)
            .map(|_| {
                let sent = Instant::now();
                client.write_all(&[1]).unwrap();
                client.read_exact(&mut [0]).unwrap();
                sent.elapsed()
            })
            .collect();
        drop(client);
        took.sort_unstable();
        // What waits in a queue makes all of them slow; a busy host only some.
        took[3]
    })
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_bulk_transfer_bloats_its_hosts_queue_unless_that_is_fair_or_flows_are_limited() {
    let deep = Interface { limit: Some(512 << 10), ..Interface::new(1) };
    // 512 KiB take 42 ms; loss-based congestion control keeps the queue between seven tenths of it and all of it.
    let filled: u64 = 400 << 10;
    let measure = |interface: Interface, until: u64| {
        let network = network(1, interface)?;
        Some(sending(&network, 1, |_| {
            thread::sleep(Duration::from_millis(1_000));
            // On a busy host it takes longer.
            let started = Instant::now();
            while server(&network).queues[0].longest <= until && started.elapsed() < Duration::from_secs(30) {
                thread::sleep(Duration::from_millis(50));
            }
            let took = small_requests(&network);
            (took, server(&network).queues[0].longest)
        }))
    };
    let Some((bloated, longest)) = measure(deep, filled) else { return };
    assert!(bloated > Duration::from_millis(15), "{bloated:?}");
    assert!(longest > filled, "{longest}");
    for cure in [
        Interface { discipline: Discipline::Fq, ..deep },
        Interface { discipline: Discipline::Sfq, ..deep },
        Interface { flow_limit: Some(16 << 10), ..deep },
    ] {
        let (took, _) = measure(cure, 0).unwrap();
        assert!(took < bloated / 4, "{cure:?}: {took:?}, {bloated:?}");
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn only_the_wire_has_transmit_queues() {
    let config = |means| NetworkConfig {
        interface: Some(Interface::new(8)),
        means,
        ..NetworkConfig::new(1, Link::default())
    };
    let refused = Network::start(config(Some(Means::Netem))).unwrap_err();
    assert!(matches!(refused, NetworkError::Unavailable { means: Means::Netem, .. }), "{refused}");
    if capabilities().wire.is_ok() {
        assert_eq!(Network::start(config(None)).unwrap().means(), Means::Wire);
        let none = NetworkConfig { interface: Some(Interface::new(0)), ..config(None) };
        assert!(matches!(Network::start(none), Err(NetworkError::Wire(_) | NetworkError::Link(_))));
    }
}
