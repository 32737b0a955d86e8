//! A network between real namespaces. Without the right to make one the tests are skipped, unless
//! `BENCHMASTER_REQUIRE_NAMESPACES=1`. Times are asserted with room for a busy machine; exact figures are in
//! docs/performance.md.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_netem::link::{Link, LinkError};
use benchmaster_netem::namespace::{Namespace, capabilities};
use benchmaster_netem::network::{Means, Network, NetworkConfig, NetworkError};
use benchmaster_netem::wire::{self, End, Wire, WireConfig, WireError};

/// Nothing comes later on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A network by the wire, or nothing where it cannot be.
fn network(clients: u32, link: Link) -> Option<Network> {
    if let Err(reason) = capabilities().wire {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{reason}");
        eprintln!("skipped: {reason}");
        return None;
    }
    let config = NetworkConfig { means: Some(Means::Wire), seed: 5, ..NetworkConfig::new(clients, link) };
    Some(Network::start(config).unwrap())
}

/// A socket of the server, and one of a client that is connected to it.
fn sockets(network: &Network, client: u32) -> [UdpSocket; 2] {
    let bind =
        |namespace: &Namespace, address| namespace.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    let server = bind(network.server(), network.server_address());
    let client = bind(network.client(client), network.client_address(client));
    client.connect(server.local_addr().unwrap()).unwrap();
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    [server, client]
}

/// The median round trip of so many small packets.
fn round_trip(network: &Network, client: u32, count: usize) -> Duration {
    let [server, client] = sockets(network, client);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = [0; 64];
            for _ in 0..count {
                let (length, from) = server.recv_from(&mut buffer).unwrap();
                server.send_to(&buffer[..length], from).unwrap();
            }
        });
        let exchange = |_| {
            let sent = Instant::now();
            client.send(&[1; 32]).unwrap();
            client.recv(&mut [0; 64]).unwrap();
            sent.elapsed()
        };
        let mut took: Vec<Duration> = (0..count).map(exchange).collect();
        took.sort_unstable();
        took[count / 2]
    })
}

/// Sends so many bytes to the server over TCP; gives the time from the first to the last received.
fn transfer(network: &Network, client: u32, bytes: usize) -> Duration {
    let listener =
        network.server().run(|| TcpListener::bind((network.server_address(), 0))).unwrap().unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut stream = network.client(client).run(|| TcpStream::connect(address)).unwrap().unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&vec![7; bytes]).unwrap();
        });
        let (mut stream, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip(), network.client_address(client));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let started = Instant::now();
        let (mut buffer, mut received) = (vec![0; 1 << 20], 0);
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            assert!(buffer[..length].iter().all(|byte| *byte == 7));
            received += length;
        }
        assert_eq!(received, bytes);
        started.elapsed()
    })
}

#[test]
#[ignore = "full tier: network namespaces"]
fn round_trips_take_twice_the_delay() {
    let Some(mut network) = network(1, Link::default()) else { return };
    assert!(network.base_rtt() > Duration::ZERO);
    for (micros, count) in [(0, 500), (100, 500), (1_000, 100), (10_000, 20), (80_000, 5)] {
        let delay = Duration::from_micros(micros);
        network.set(Link::of_delay(delay)).unwrap();
        let limit = 2 * delay + Duration::from_millis(30);
        // A busy machine may be late.
        let mut medians = Vec::new();
        while medians.len() < 5 && medians.iter().all(|median| *median >= limit) {
            network.clear().unwrap();
            medians.push(round_trip(&network, 0, count));
        }
        assert!(medians.iter().all(|median| *median >= 2 * delay), "{medians:?} at {delay:?}");
        assert!(medians.iter().any(|median| *median < limit), "{medians:?} at {delay:?}");
        let report = network.achieved().unwrap();
        let [up, down] = [&report.clients[0].to_server, &report.clients[0].to_client];
        assert_eq!((up.frames, down.frames), (count as u64, count as u64), "{report:?}");
        // Ethernet, IP and UDP: 42 bytes.
        assert_eq!((up.bytes, up.lost, up.queue_drops, report.overruns()), (count as u64 * 74, 0, 0, 0));
        let late = report.lateness().unwrap();
        assert!(late.median <= late.p99 && late.p99 <= late.max.max(late.p99));
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn five_clients_each_have_their_own_link_and_reach_the_server_alone() {
    let Some(network) = network(5, Link::of_delay(Duration::from_millis(2))) else { return };
    thread::scope(|scope| {
        for client in 0..5 {
            let network = &network;
            scope.spawn(move || assert!(round_trip(network, client, 50) >= Duration::from_millis(4)));
        }
    });
    let report = network.achieved().unwrap();
    assert!(report.directions().all(|direction| direction.frames == 50), "{report:?}");
    let bind = |client| {
        let bind = || UdpSocket::bind((network.client_address(client), 0));
        network.client(client).run(bind).unwrap().unwrap()
    };
    let [first, second] = [bind(0), bind(1)];
    first.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    // It is not even known where the other one is.
    second.send_to(b"hello", first.local_addr().unwrap()).unwrap();
    assert!(first.recv(&mut [0; 8]).is_err());
}

#[test]
#[ignore = "full tier: network namespaces"]
fn jitter_keeps_the_order() {
    // So many find room in the socket.
    const FRAMES: u32 = 150;
    let jitter = Duration::from_millis(3);
    let Some(network) = network(1, Link { jitter, ..Link::of_delay(jitter) }) else { return };
    let [server, client] = sockets(&network, 0);
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..FRAMES {
                client.send(&number.to_be_bytes()).unwrap();
                if number % 16 == 0 {
                    thread::yield_now();
                }
            }
        });
        let mut number = [0; 4];
        for expected in 0..FRAMES {
            server.recv(&mut number).unwrap();
            assert_eq!(u32::from_be_bytes(number), expected);
        }
    });
}

/// Which of so many packets, sent one after the other, arrive.
fn arrivals(network: &Network, count: u32) -> Vec<u32> {
    /// So many find room in the socket.
    const BURST: u32 = 50;
    let [server, client] = sockets(network, 0);
    server.set_nonblocking(true).unwrap();
    let mut arrived = Vec::new();
    for first in (0..count).step_by(BURST as usize) {
        (first..first + BURST).for_each(|number| assert_eq!(client.send(&number.to_be_bytes()).unwrap(), 4));
        // The wire has dealt with all of them when as many are counted.
        let deadline = Instant::now() + PATIENCE;
        loop {
            let report = network.achieved().unwrap();
            let up = &report.clients[0].to_server;
            assert_eq!(up.overruns, 0);
            if up.frames + up.lost == u64::from(first + BURST) {
                break;
            }
            assert!(Instant::now() < deadline, "{report:?}");
            thread::sleep(Duration::from_millis(1));
        }
        let mut number = [0; 4];
        let receive = || server.recv(&mut number).ok().map(|_| u32::from_be_bytes(number));
        arrived.extend(std::iter::from_fn(receive));
    }
    arrived
}

#[test]
#[ignore = "full tier: network namespaces"]
fn the_same_frames_are_lost_with_the_same_seed() {
    const FRAMES: u32 = 400;
    let link = Link { loss: 0.2, ..Link::default() };
    let mut found = Vec::new();
    for _ in 0..2 {
        let Some(network) = network(1, link) else { return };
        found.push(arrivals(&network, FRAMES));
        let report = network.achieved().unwrap();
        assert_eq!(report.clients[0].to_server.lost as usize + found[0].len(), FRAMES as usize);
    }
    // Four standard deviations of 8 frames.
    assert!((288..=352).contains(&found[0].len()), "{}", found[0].len());
    assert_eq!(found[0], found[1]);
}

#[test]
#[ignore = "full tier: network namespaces"]
fn tcp_gets_through_loss_and_bandwidth_and_takes_its_time() {
    let Some(mut network) = network(1, Link::default()) else { return };
    transfer(&network, 0, 20 << 20);
    let bandwidth = Some(50_000_000);
    network.set(Link { bandwidth, ..Link::of_delay(Duration::from_millis(1)) }).unwrap();
    // 4 MiB of TCP at 50 Mbit/s on the wire: not before 0.67 s.
    let took = transfer(&network, 0, 4 << 20);
    assert!(took > Duration::from_millis(660), "{took:?}");
    let report = network.achieved().unwrap();
    assert!(report.clients[0].to_server.queue_drops > 0 || took < Duration::from_secs(10), "{report:?}");
    network.set(Link { loss: 0.01, ..Link::of_delay(Duration::from_millis(1)) }).unwrap();
    network.clear().unwrap();
    transfer(&network, 0, 4 << 20);
    let report = network.achieved().unwrap();
    // Frames of the size of the MTU, of which about one in a hundred is lost.
    assert!(report.clients[0].to_server.lost > 0, "{report:?}");
    assert!(report.clients[0].to_server.frames > (4 << 20) / 1_448, "{report:?}");
}

#[test]
#[ignore = "full tier: network namespaces"]
fn throughput_falls_with_the_delay_as_that_of_tcp() {
    const BYTES: usize = 8 << 20;
    let Some(mut network) = network(1, Link::of_delay(Duration::from_millis(1))) else { return };
    let near = transfer(&network, 0, BYTES);
    network.set(Link::of_delay(Duration::from_millis(40))).unwrap();
    let far = transfer(&network, 0, BYTES);
    // An initial window of 10 segments that doubles in every round trip of 80 ms takes 9 of them to carry 8 MiB.
    assert!(far > Duration::from_millis(6 * 80), "{far:?}");
    assert!(far > near, "{far:?} after {near:?}");
}

#[test]
#[ignore = "full tier: network namespaces"]
fn the_servers_port_is_shared() {
    let Some(network) = network(2, Link::default()) else { return };
    drop(network);
    let config = NetworkConfig {
        means: Some(Means::Wire),
        server_bandwidth: Some(50_000_000),
        ..NetworkConfig::new(2, Link::default())
    };
    let network = Network::start(config).unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        for client in 0..2 {
            let network = &network;
            scope.spawn(move || transfer(network, client, 2 << 20));
        }
    });
    // 4 MiB in all.
    assert!(started.elapsed() > Duration::from_millis(660), "{:?}", started.elapsed());
}

#[test]
#[ignore = "full tier: network namespaces"]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let Some(mut network) = network(1, Link::default()) else { return };
    let link = Link { loss: 2.0, ..Link::default() };
    assert!(matches!(network.set(link), Err(NetworkError::Link(LinkError::Loss(_)))));
    assert_eq!(*network.link(), Link::default());
    assert!(matches!(Wire::start(WireConfig::new(0, Link::default())), Err(WireError::Clients(0))));
    assert!(matches!(Wire::start(WireConfig::new(1_001, Link::default())), Err(WireError::Clients(1_001))));
    round_trip(&network, 0, 3);
}

#[test]
#[ignore = "full tier: network namespaces"]
fn netem_is_used_where_the_kernel_has_it() {
    let found = capabilities();
    if let Err(reason) = found.netem {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NETEM").as_deref(), Ok("1"), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    }
    let mut network = Network::start(NetworkConfig::new(2, Link::default())).unwrap();
    assert_eq!(network.means(), Means::Netem);
    for delay in [Duration::from_millis(1), Duration::from_millis(5)] {
        network.set(Link::of_delay(delay)).unwrap();
        let median = round_trip(&network, 1, 20);
        assert!(median >= 2 * delay && median < 2 * delay + Duration::from_millis(30), "{median:?}");
    }
    let link = Link { bandwidth: Some(50_000_000), jitter: Duration::from_micros(100), ..*network.link() };
    network.set(link).unwrap();
    assert!(transfer(&network, 0, 4 << 20) > Duration::from_millis(660));
    network.set(Link { loss: 0.01, ..Link::default() }).unwrap();
    network.clear().unwrap();
    transfer(&network, 0, 4 << 20);
    assert!(network.achieved().unwrap().clients[0].to_server.lost > 0);
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_bridge_leads_on_from_the_end_of_a_wire() {
    if let Err(reason) = capabilities().wire {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{reason}");
        eprintln!("skipped: {reason}");
        return;
    }
    // Client, wire, bridge, wire, server: the bridge is where a machine's would be, on either side.
    let between = Arc::new(Namespace::new().unwrap());
    let port = |name: &str| End::Port { namespace: Arc::clone(&between), name: name.into() };
    let wire = |milliseconds| WireConfig::new(1, Link::of_delay(Duration::from_millis(milliseconds)));
    let to_server = Wire::start(WireConfig { clients: vec![port("w1")], ..wire(2) }).unwrap();
    let to_client = Wire::start(WireConfig { server: port("w0"), ..wire(3) }).unwrap();
    let interfaces = between.interfaces().unwrap();
    interfaces.add_bridge("data").unwrap();
    interfaces.add_port("data", "w0").unwrap();
    interfaces.add_port("data", "w1").unwrap();
    interfaces.up("data").unwrap();
    let bind = |namespace: &Namespace, address: std::net::Ipv4Addr| {
        let socket = namespace.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let server = bind(to_server.server(), wire::server_address());
    let client = bind(&to_client.clients()[0], wire::client_address(0));
    let sent = Instant::now();
    client.send_to(b"there", server.local_addr().unwrap()).unwrap();
    let (length, from) = server.recv_from(&mut [0; 64]).unwrap();
    assert_eq!((length, from), (5, client.local_addr().unwrap()));
    server.send_to(b"and back", from).unwrap();
    assert_eq!(client.recv(&mut [0; 64]).unwrap(), 8);
    assert!(sent.elapsed() >= Duration::from_millis(10), "{:?}", sent.elapsed());
    // A bridge that looks for members of groups would tell the others so within a second.
    thread::sleep(Duration::from_secs(2));
    let report = to_server.achieved().unwrap();
    assert_eq!((report.clients[0].to_server.frames, report.clients[0].to_client.frames), (1, 1));
}
