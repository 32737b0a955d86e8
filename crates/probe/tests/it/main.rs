//! The probe, both ends in this process, over loopback. Nothing here passes or fails by how fast the host is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use benchmaster_netem::relay::{Relay, RelayConfig};
use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{Message, OpaqueAuth, RpcReply, put_reply};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};
use benchmaster_probe::{
    Direction, FarEnd, NetworkProbe, NullDataConfig, ProbeConfig, ProbeError, ServeConfig, Token, network,
    network_with, rpc_null, serve,
};

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Everything, as short as it can be.
fn short(target: Option<SocketAddr>) -> ProbeConfig {
    ProbeConfig {
        target,
        repetitions: 2,
        round_trips: 40,
        connects: 4,
        flows: vec![1, 3],
        duration: Duration::from_millis(100),
        warm_up: Some(Duration::from_millis(20)),
        sample_interval: Duration::from_millis(10),
        null_data: Some(NullDataConfig { connections: 2, threads: 3, reply_bytes: 10_000 }),
        ..ProbeConfig::default()
    }
}

fn far_end(change: impl FnOnce(&mut ServeConfig)) -> FarEnd {
    let mut config = ServeConfig::new(LOOPBACK.into());
    change(&mut config);
    serve(config).unwrap()
}

fn check(probe: &NetworkProbe) {
    // Fewer where the host is so busy that there is no time for them.
    assert!((2..=40).contains(&probe.round_trip.n) && probe.connect.n == 4, "{:?}", probe.round_trip);
    let trip = &probe.round_trip;
    assert!(0.0 < trip.min_us && trip.min_us <= trip.median_us && trip.median_us <= trip.max_us, "{trip:?}");
    assert_eq!((trip.mean_us.n, trip.p99_us), (2, None));
    assert!(trip.mean_us.half_width.is_some());
    let of: Vec<_> = probe.throughput.iter().map(|t| (t.direction, t.flows)).collect();
    let (to, from) = (Direction::ToFarEnd, Direction::ToClient);
    assert_eq!(of, [(to, 1), (to, 3), (from, 1), (from, 3)]);
    for transfer in &probe.throughput {
        assert_eq!((transfer.bytes_per_s.n, transfer.repetitions.len()), (2, 2));
        assert_eq!(transfer.fairness.is_some(), transfer.flows > 1);
        for repetition in &transfer.repetitions {
            assert_eq!(repetition.flows.len(), usize::from(transfer.flows));
            let sum: f64 = repetition.flows.iter().map(|flow| flow.bytes_per_s).sum();
            assert!((sum / repetition.bytes_per_s - 1.0).abs() < 1e-9 && sum > 0.0);
            for flow in &repetition.flows {
                assert!(flow.seconds >= 0.05, "{flow:?}");
                assert!(flow.samples.len() >= 2, "{flow:?}");
                assert!(flow.samples.is_sorted_by_key(|sample| sample.at_us), "{flow:?}");
                // It is the sender whose window is told, in both directions: only it has had much acknowledged.
                let last = flow.samples.last().unwrap();
                assert!(last.cwnd_segments > 0 && last.bytes_acked.unwrap() > 20_000, "{last:?}");
            }
        }
    }
    let null = probe.null_data.as_ref().unwrap();
    assert_eq!((null.bytes_per_s.n, null.connection_bytes_per_s.len()), (2, 2));
    assert!((null.bytes_per_s.mean / null.requests_per_s.mean - 10_000.0).abs() < 1e-6);
    // On a busy host one of them may get nothing in so short a time, and then there is no ratio.
    assert!(null.winner_loser_ratio.as_ref().is_none_or(|ratio| ratio.mean >= 1.0));
    assert!(null.latency.n > 0);
}

#[test]
fn without_a_target_it_measures_this_host() {
    let mut seen = Vec::new();
    let probe = network_with(&short(None), &mut |what, share| seen.push((what.to_owned(), share))).unwrap();
    check(&probe);
    assert!(probe.own_far_end && probe.target.ip().is_loopback());
    assert_eq!(
        (seen.len(), seen[0].0.as_str(), seen[1].0.as_str()),
        (11, "round trips", "1 flow to the far end")
    );
    assert!(seen.is_sorted_by(|a, b| a.1 <= b.1) && seen.iter().all(|(_, share)| (0.0..1.0).contains(share)));
    let text = serde_json::to_string(&probe).unwrap();
    assert_eq!(serde_json::from_str::<NetworkProbe>(&text).unwrap().throughput.len(), 4);
}

#[test]
fn a_far_end_counts_what_it_did() {
    let far = far_end(|_| {});
    let probe = network(&short(Some(far.address()))).unwrap();
    check(&probe);
    assert!(!probe.own_far_end);
    let served = far.stop();
    // Round trips twice; one and three flows in two directions twice; two connections of null data twice.
    assert_eq!((served.tests, served.refused, served.failed), (2 + 16 + 4, 0, 0));
}

#[test]
fn the_round_trip_is_that_of_the_network() {
    let far = far_end(|_| {});
    let relay = Relay::start(RelayConfig::new(far.address(), Duration::from_millis(4))).unwrap();
    let config =
        ProbeConfig { null_data: None, flows: vec![], round_trips: 6, ..short(Some(relay.address())) };
    let probe = network(&config).unwrap();
    assert!(probe.round_trip.min_us >= 8_000.0, "{:?}", probe.round_trip);
    assert!(probe.throughput.is_empty() && probe.null_data.is_none());
}

#[test]
fn slow_networks_end_round_trips_early() {
    let far = far_end(|_| {});
    let relay = Relay::start(RelayConfig::new(far.address(), Duration::from_millis(10))).unwrap();
    let config = ProbeConfig {
        null_data: None,
        flows: vec![],
        round_trips: 1_000_000,
        ..short(Some(relay.address()))
    };
    let probe = network(&config).unwrap();
    assert!((2..=12).contains(&probe.round_trip.n), "{:?}", probe.round_trip);
}

#[test]
fn only_those_who_know_the_token_are_served() {
    let token = |text: &str| Some(Token::new(text).unwrap());
    let far = far_end(|config| config.token = token("the right token of this far end"));
    let address = far.address();
    let probe =
        |token| network(&ProbeConfig { token, flows: vec![], null_data: None, ..short(Some(address)) });
    assert!(probe(token("the right token of this far end")).is_ok());
    let error = probe(token("the wrong token of this far end")).unwrap_err().to_string();
    assert_eq!(error, format!("{address} refuses: the token differs from the one it was started with"));
    let error = probe(None).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{address} refuses: it requires a token; ")), "{error}");
    let served = far.stop();
    assert_eq!((served.tests, served.failed), (2, 0));
    assert!(served.refused >= 1, "{served:?}");
    assert!(!format!("{:?}", token("the right token of this far end")).contains("right"));
}

#[test]
fn tokens_are_read_from_files_and_are_not_short() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("token");
    std::fs::write(&path, "0123456789abcdef\n").unwrap();
    assert!(Token::read(&path).is_ok());
    std::fs::write(&path, "short\n").unwrap();
    let error = Token::read(&path).unwrap_err().to_string();
    assert!(error.starts_with("a token of 5 bytes; write 16 to 4096"), "{error}");
    assert!(Token::read(place.path()).unwrap_err().to_string().starts_with("cannot read the token from"));
}

#[test]
fn a_far_end_does_not_do_more_than_it_may() {
    let far = far_end(|config| config.longest = Duration::from_millis(50));
    let error = network(&short(Some(far.address()))).unwrap_err().to_string();
    assert_eq!(error, format!("{} refuses: its limit is 50 ms per test", far.address()));
    let far = far_end(|config| config.connections = 2);
    let error = network(&short(Some(far.address()))).unwrap_err().to_string();
    assert!(error.contains("its limit of connections is reached"), "{error}");
}

#[test]
fn what_cannot_be_measured_is_named() {
    let wrong = |change: fn(&mut ProbeConfig)| {
        let mut config = short(None);
        change(&mut config);
        match network(&config).unwrap_err() {
            ProbeError::Config(text) => text,
            other => panic!("{other}"),
        }
    };
    assert_eq!(wrong(|config| config.flows = vec![1, 65]), "65 connections at once; write 1 to 64");
    assert_eq!(wrong(|config| config.flows = vec![0]), "0 connections at once; write 1 to 64");
    assert!(wrong(|config| config.repetitions = 0).starts_with("no repetitions"));
    assert!(wrong(|config| config.message_bytes = 0).starts_with("messages of 0 bytes"));
    assert!(wrong(|config| config.duration = Duration::from_secs(70)).starts_with("transfers of 70s"));
    assert!(wrong(|config| config.sample_interval = Duration::ZERO).starts_with("TCP_INFO every"));
    let large = |config: &mut ProbeConfig| {
        config.null_data = Some(NullDataConfig { reply_bytes: u32::MAX, ..NullDataConfig::default() });
    };
    assert!(wrong(large).starts_with("replies of 4294967295 bytes"));
}

#[test]
fn a_stopped_probe_ends() {
    let stop = Arc::new(AtomicBool::new(true));
    let error = network(&ProbeConfig { stop: Some(stop), ..short(None) }).unwrap_err();
    assert!(matches!(error, ProbeError::Stopped));
}

#[test]
fn other_servers_are_told_from_far_ends() {
    let says = |bytes: &'static [u8]| {
        let listener = TcpListener::bind(SocketAddr::from(LOOPBACK)).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            // One connection to measure how long that takes, one for a test.
            let _first = listener.accept().unwrap();
            listener.accept().unwrap().0.write_all(bytes).unwrap();
        });
        let config = ProbeConfig { connects: 1, repetitions: 1, ..short(Some(address)) };
        let error = network(&config).unwrap_err().to_string().replace(&address.to_string(), "ADDRESS");
        thread.join().unwrap();
        error
    };
    let start = "start `benchmaster probe network --serve` there";
    assert_eq!(says(b""), format!("ADDRESS is not a probe server (it closes the connection); {start}"));
    let page = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n";
    assert_eq!(says(page), format!("ADDRESS is not a probe server (it sends something else); {start}"));
    let newer = b"bm-probe\x00\x09__________________________________";
    assert!(says(newer).starts_with("ADDRESS speaks version 9 of the probe protocol"));
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind(SocketAddr::from(LOOPBACK)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = network(&short(Some(address))).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot connect to {address}"));
}

#[test]
fn hostile_clients_are_dropped_and_others_served() {
    let far = far_end(|config| config.patience = Duration::from_millis(200));
    let connect = || TcpStream::connect(far.address()).unwrap();
    let mut held = Vec::new();
    // Silent, byte by byte, random bytes, and a request of an unknown kind.
    held.push(connect());
    let mut slow = connect();
    slow.write_all(b"x").unwrap();
    held.push(slow);
    for bytes in [[0xff; 200], [0; 200]] {
        let mut socket = connect();
        socket.write_all(&bytes).unwrap();
        held.push(socket);
    }
    for socket in &mut held {
        // All of them are closed by the far end, the silent ones when its patience ends.
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut said = Vec::new();
        match socket.read_to_end(&mut said) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        assert!(said.len() <= 52, "{}", said.len());
    }
    assert!(network(&short(Some(far.address()))).is_ok());
    assert!(far.stop().refused >= 4);
}

#[test]
fn stopping_does_not_wait_for_clients() {
    let far = far_end(|_| {});
    let mut client = TcpStream::connect(far.address()).unwrap();
    client.read_exact(&mut [0; 44]).unwrap();
    let began = Instant::now();
    far.stop();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
}

/// A server that answers every call so, until the listener's last connection ends.
fn rpc_server(reply: fn(u32) -> RpcReply<'static>) -> SocketAddr {
    let listener = TcpListener::bind(SocketAddr::from(LOOPBACK)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut header = [0; 4];
            while socket.read_exact(&mut header).is_ok() {
                let mut call = vec![0; (u32::from_be_bytes(header) & !record::LAST_FRAGMENT) as usize];
                socket.read_exact(&mut call).unwrap();
                let Ok(Message::Call(call)) = Decoder::new(&call).get() else { panic!("no call") };
                assert_eq!((call.program, call.procedure), (100_003, 0));
                let mut answer = Encoder::new();
                let mark = record::begin(&mut answer);
                put_reply(&mut answer, call.xid, reply(call.version));
                record::end(&mut answer, mark);
                socket.write_all(answer.buffer()).unwrap();
            }
        }
    });
    address
}

#[test]
fn any_nfs_server_answers_null() {
    let address = rpc_server(|_| RpcReply::Success(OpaqueAuth::NONE));
    let probe = rpc_null(address, 20).unwrap();
    assert_eq!((probe.version, probe.connect.n, probe.null.n), (3, 20, 20));
    assert_eq!((probe.null.mean_us.n, probe.connect.mean_us.n), (5, 5));
    assert!(probe.null.min_us > 0.0 && probe.null.mean_us.half_width.is_some());
    let address = rpc_server(|version| match version {
        4 => RpcReply::Success(OpaqueAuth::NONE),
        _ => RpcReply::ProgMismatch(4, 4),
    });
    assert_eq!(rpc_null(address, 5).unwrap().version, 4);
}

#[test]
fn servers_of_other_programs_are_named() {
    let address = rpc_server(|_| RpcReply::ProgUnavail);
    let error = rpc_null(address, 5).unwrap_err().to_string();
    let right = format!("a call of NULL with {address} failed: it replies to an NFS call with ProgUnavail");
    assert_eq!(error, right);
    let address = rpc_server(|_| RpcReply::ProgMismatch(2, 2));
    let error = rpc_null(address, 5).unwrap_err().to_string();
    assert!(error.contains("it replies to a call of version 2 with Highest(2)"), "{error}");
    // A far end greets first; it knows nothing of RPC.
    let far = far_end(|_| {});
    assert!(rpc_null(far.address(), 5).unwrap_err().to_string().contains("failed"));
}
