//! What TCP connections over a network have of its settings: the size of segments, the congestion control. Without the right to
//! make namespaces the tests are skipped, unless `BENCHMASTER_REQUIRE_NAMESPACES=1`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use benchmaster_netem::link::{Link, LinkError};
use benchmaster_netem::namespace::capabilities;
use benchmaster_netem::network::{CongestionError, Means, Network, NetworkConfig, NetworkError};
use rustix::net::sockopt;

/// Nothing comes later on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The means that this host has.
fn means() -> Vec<Means> {
    let found = capabilities();
    let all = [(Means::Wire, found.wire), (Means::Netem, found.netem)];
    let usable = all.into_iter().filter_map(|(means, result)| match result {
        Ok(()) => Some(means),
        Err(reason) => {
            let required = std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref() == Ok("1");
            assert!(!required || means == Means::Netem, "{reason}");
            eprintln!("skipped: {means}: {reason}");
            None
        }
    });
    usable.collect()
}

fn config(means: Means, link: Link) -> NetworkConfig {
    NetworkConfig { means: Some(means), seed: 5, ..NetworkConfig::new(1, link) }
}

/// Both ends of a connection, the client's first.
fn connection(network: &Network) -> [TcpStream; 2] {
    let listen = || TcpListener::bind((network.server_address(), 0));
    let listener = network.server().run(listen).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let client = network.client(0).run(|| TcpStream::connect(address)).unwrap().unwrap();
    let server = listener.accept().unwrap().0;
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    [client, server]
}

/// The largest segment that is sent: `tcpi_snd_mss`.
fn segment(stream: &TcpStream) -> u32 {
    tcp_info::<16>(stream)
}

/// The congestion window in segments: `tcpi_snd_cwnd`.
fn window(stream: &TcpStream) -> u32 {
    tcp_info::<80>(stream)
}

/// The number at this place of `struct tcp_info`.
fn tcp_info<const AT: usize>(stream: &TcpStream) -> u32 {
    let mut info = vec![0u8; AT + 4];
    let mut length = info.len() as libc::socklen_t;
    let into = info.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    let result = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, into, &raw mut length)
    };
    assert_eq!((result, length as usize), (0, info.len()));
    u32::from_ne_bytes(info[AT..].try_into().unwrap())
}

/// Sends so many bytes through a connection.
fn move_bytes(network: &Network, bytes: usize) {
    let [mut client, mut server] = connection(network);
    thread::scope(|scope| {
        scope.spawn(move || client.write_all(&vec![7; bytes]).unwrap());
        let mut received = Vec::new();
        server.read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), bytes);
    });
}

#[test]
#[ignore = "full tier: network namespaces"]
fn segments_are_as_large_as_the_mtu_allows() {
    for means in means() {
        // With a bandwidth the kernel cuts segments before the wire, without one it does not.
        for (mtu, bandwidth) in
            [(576, None), (1_500, Some(500_000_000)), (9_000, None), (9_000, Some(500_000_000))]
        {
            let link = Link { bandwidth, ..Link::of_delay(Duration::from_micros(100)) };
            let mut network = Network::start(NetworkConfig { mtu, ..config(means, link) }).unwrap();
            assert_eq!(network.mtu(), mtu);
            let mtu = u32::from(mtu);
            for stream in &connection(&network) {
                // Headers of IP and TCP take 40 bytes, timestamps 12.
                assert_eq!(segment(stream), mtu - 52, "{means} {mtu} {bandwidth:?}");
            }
            network.clear().unwrap();
            let bytes: u64 = 2_000_000;
            move_bytes(&network, bytes as usize);
            let report = network.achieved().unwrap();
            let carried = &report.clients[0].to_server;
            assert_eq!((carried.lost, report.overruns()), (0, 0), "{report:?}");
            if means == Means::Wire {
                // Those of the data, and a few of opening, closing and cutting elsewhere.
                let least = bytes.div_ceil(u64::from(mtu) - 52);
                assert!((least..least + least / 5 + 20).contains(&carried.frames), "{mtu}: {carried:?}");
            }
        }
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn both_ends_have_the_congestion_control_asked_for() {
    for means in means() {
        let network = |name: Option<&str>| {
            Network::start(NetworkConfig {
                congestion: name.map(str::to_owned),
                ..config(means, Link::default())
            })
        };
        let plain = network(None).unwrap();
        assert_eq!(plain.congestion(), None);
        let usual = connection(&plain).map(|stream| sockopt::tcp_congestion(&stream).unwrap());
        assert_eq!(usual[0], usual[1]);
        // Also what the host does not allow every user.
        let available =
            std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        for name in available.split_ascii_whitespace() {
            let controlled = network(Some(name)).unwrap();
            for stream in &connection(&controlled) {
                assert_eq!(sockopt::tcp_congestion(stream).unwrap(), name);
            }
            move_bytes(&controlled, 100_000);
        }
        // Other networks keep theirs.
        assert_eq!(sockopt::tcp_congestion(&connection(&plain)[0]).unwrap(), usual[0]);
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn congestion_windows_end_at_the_clamp() {
    for means in means() {
        let longest = |cwnd_clamp| {
            let link = Link::of_delay(Duration::from_millis(5));
            let network = Network::start(NetworkConfig { cwnd_clamp, ..config(means, link) }).unwrap();
            assert_eq!(network.cwnd_clamp(), cwnd_clamp);
            let [mut client, mut server] = connection(&network);
            thread::scope(|scope| {
                scope.spawn(move || std::io::copy(&mut server, &mut std::io::sink()).unwrap());
                let send = |_| {
                    client.write_all(&[7; 1 << 16]).unwrap();
                    window(&client)
                };
                let longest = (0..100).map(send).max();
                drop(client);
                longest.unwrap()
            })
        };
        assert!(longest(None) > 64, "{means}");
        // What TCP begins with is less.
        assert_eq!(longest(Some(64)), 64, "{means}");
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn what_cannot_be_is_said() {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let available = available.split_ascii_whitespace().collect::<Vec<_>>().join(", ");
    for means in means() {
        for name in ["nosuch", "", "a name", "a-name-longer-than-15"] {
            let config =
                NetworkConfig { congestion: Some(name.to_owned()), ..config(means, Link::default()) };
            let error = Network::start(config).unwrap_err();
            assert!(
                matches!(&error, NetworkError::Congestion(CongestionError::Unavailable { .. })),
                "{error:?}"
            );
            let said = error.to_string();
            assert!(
                said.contains(&format!("`{name}` is not available")) && said.ends_with(&available),
                "{said}"
            );
        }
        for mtu in [575, 9_001] {
            let error = Network::start(NetworkConfig { mtu, ..config(means, Link::default()) }).unwrap_err();
            assert!(matches!(error, NetworkError::Link(LinkError::Mtu(asked)) if asked == mtu), "{error:?}");
        }
    }
}
