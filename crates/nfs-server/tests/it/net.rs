//! The transport over real sockets: records however they are cut, clients that flood, send nonsense or leave.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthStat, AuthSys, OpaqueAuth, RpcReply, put_reply};
use benchmaster_nfs_proto::xdr::{Encoder, List, Opaque};
use benchmaster_nfs_server::{Server, ServerConfig};

use crate::support::transport::{
    Client, MOUNT, NFS, NLM, PATIENCE, PORTMAP, call, config, fragment, framed, null, outcome, stall, start,
    with_cred, xid_of,
};

/// Small numbers with a long period, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> usize {
        (self.next() % n) as usize
    }
}

#[test]
fn records_arrive_however_they_are_cut() {
    let server = start(&[]);
    let mut client = Client::new(&server);
    // One byte at a time.
    for byte in framed(&null(1)) {
        client.send(&[byte]);
    }
    assert_eq!(xid_of(&client.reply().unwrap()), 1);
    // Fragments of one byte, with empty ones between them, in one send.
    let message = null(2);
    let mut stream: Vec<u8> = message[..39].iter().flat_map(|byte| fragment(&[*byte], false)).collect();
    stream.extend(fragment(&[], false));
    stream.extend(fragment(&message[39..], true));
    stream.extend(framed(&null(3)));
    client.send(&stream);
    assert_eq!(xid_of(&client.reply().unwrap()), 2);
    assert_eq!(xid_of(&client.reply().unwrap()), 3);
    // Fragments, a byte at a time.
    for byte in [fragment(&null(4)[..7], false), fragment(&null(4)[7..], true)].concat() {
        client.send(&[byte]);
    }
    assert_eq!(xid_of(&client.reply().unwrap()), 4);
}

#[test]
fn a_thousand_calls_of_one_send_are_answered_in_order() {
    let server = start(&[]);
    let mut client = Client::new(&server);
    for round in 0..5 {
        let stream: Vec<u8> = (0..1000).flat_map(|n| framed(&null(round * 1000 + n))).collect();
        client.send(&stream);
        for n in 0..1000 {
            let reply = client.reply().unwrap();
            assert_eq!(xid_of(&reply), round * 1000 + n);
            assert_eq!(outcome(&reply), RpcReply::Success(OpaqueAuth::NONE));
        }
    }
}

#[test]
fn large_records_and_small_ones_follow_each_other() {
    let server = start(&[]);
    let mut client = Client::new(&server);
    let mut random = Random(5);
    let limit = server.shared().config.max_io as usize;
    let sizes: Vec<usize> = (0..60)
        .map(|n| match n % 4 {
            0 => limit - random.below(1000),
            1 => random.below(600_000),
            2 => random.below(100_000),
            _ => 0,
        })
        .collect();
    let mut writer = client.stream.try_clone().unwrap();
    let sent = sizes.clone();
    let sender = std::thread::spawn(move || {
        for (xid, size) in sent.into_iter().enumerate() {
            // NULL takes no arguments; those it gets are nobody's business.
            let message = [null(xid as u32), vec![7; size.next_multiple_of(4)]].concat();
            writer.write_all(&framed(&message)).unwrap();
        }
    });
    for xid in 0..sizes.len() as u32 {
        assert_eq!(xid_of(&client.reply().unwrap()), xid);
    }
    sender.join().unwrap();
}

#[test]
fn the_rpc_header_is_judged_by_rfc_5531() {
    let server = start(&[]);
    let mut client = Client::new(&server);
    let auth = |flavor, body: &'static [u8]| OpaqueAuth { flavor: AuthFlavor(flavor), body: Opaque(body) };
    let wrong_rpc = {
        let mut message = null(0);
        message[8..12].copy_from_slice(&3u32.to_be_bytes());
        message
    };
    let long_cred = {
        let mut message = null(0);
        message[28..32].copy_from_slice(&404u32.to_be_bytes());
        message.extend_from_slice(&[0; 412]);
        message
    };
    let cases: Vec<(Vec<u8>, RpcReply<'_>)> = vec![
        (wrong_rpc, RpcReply::RpcMismatch(2, 2)),
        (call(0, 100_099, 1, 0, &[]), RpcReply::ProgUnavail),
        (call(0, NFS, 1, 0, &[]), RpcReply::ProgMismatch(2, 4)),
        (call(0, NFS, 5, 0, &[]), RpcReply::ProgMismatch(2, 4)),
        (call(0, MOUNT, 4, 0, &[]), RpcReply::ProgMismatch(1, 3)),
        (call(0, NLM, 2, 0, &[]), RpcReply::ProgMismatch(1, 4)),
        (call(0, NFS, 2, 18, &[]), RpcReply::ProcUnavail),
        (call(0, NFS, 3, 22, &[]), RpcReply::ProcUnavail),
        (call(0, NFS, 4, 2, &[]), RpcReply::ProcUnavail),
        (call(0, NFS, 3, 1, &[]), RpcReply::GarbageArgs),
        (call(0, NFS, 3, 1, &[65]), RpcReply::GarbageArgs),
        (call(0, NFS, 4, 1, &[9]), RpcReply::GarbageArgs),
        (with_cred(0, auth(1, b"no credential"), NFS, 3, 0, &[]), RpcReply::AuthError(AuthStat::BADCRED)),
        (with_cred(0, auth(6, b""), NFS, 3, 0, &[]), RpcReply::AuthError(AuthStat::REJECTEDCRED)),
        (long_cred, RpcReply::AuthError(AuthStat::BADCRED)),
    ];
    for (number, (mut message, expected)) in cases.into_iter().enumerate() {
        let xid = 1000 + number as u32;
        message[..4].copy_from_slice(&xid.to_be_bytes());
        client.send(&framed(&message));
        let reply = client.reply().unwrap_or_else(|| panic!("case {number}: closed"));
        assert_eq!((xid_of(&reply), outcome(&reply)), (xid, expected), "case {number}");
    }
    // A reply to nothing is taken, and not answered.
    let mut e = Encoder::new();
    put_reply(&mut e, 77, RpcReply::ProgUnavail);
    client.send(&framed(e.buffer()));
    client.ping(5);
    // What is no RPC ends the connection, after what came before it is answered.
    for junk in [&b""[..], &[0; 3], &[0; 7], &[0, 0, 0, 1, 0, 0, 0, 9], &[0xff; 100]] {
        let mut client = Client::new(&server);
        client.send(&[framed(&null(8)), framed(junk), framed(&null(9))].concat());
        assert_eq!(client.reply().map(|reply| xid_of(&reply)), Some(8), "{junk:?}");
        assert!(client.is_closed(), "{junk:?}");
    }
}

#[test]
fn a_record_beyond_the_limit_closes_the_connection() {
    let server = start(&[]);
    for header in [LAST_FRAGMENT | 0x7fff_ffff, 0x7fff_ffff, LAST_FRAGMENT | (2 << 20)] {
        let mut client = Client::new(&server);
        client.ping(1);
        client.send(&header.to_be_bytes());
        assert!(client.is_closed(), "{header:x}");
    }
    // The same length in many fragments.
    let mut client = Client::new(&server);
    let piece = fragment(&[0; 60_000], false);
    let mut sent = 0;
    while client.stream.write_all(&piece).is_ok() {
        sent += piece.len();
        assert!(sent < 64 << 20, "{sent} bytes of one record taken");
    }
    assert!(Client::new(&server).ping(2) < PATIENCE);
}

#[test]
fn nonsense_harms_nobody() {
    let server = start(&[]);
    let mut good = Client::new(&server);
    let mut random = Random(11);
    let samples: Vec<Vec<u8>> = (0..40)
        .map(|n| {
            call(
                n,
                [NFS, MOUNT, NLM, PORTMAP][n as usize % 4],
                1 + n / 4 % 4,
                n % 23,
                &[32, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            )
        })
        .collect();
    for round in 0..300u32 {
        let mut stream = Vec::new();
        for _ in 0..=random.below(20) {
            let mut message = samples[random.below(40)].clone();
            for _ in 0..random.below(4) {
                let at = random.below(message.len() as u64);
                message[at] ^= random.next() as u8;
            }
            stream.extend(framed(&message));
        }
        match random.below(4) {
            0 => {
                let at = random.below(stream.len() as u64);
                stream[at] ^= 1 << random.below(8);
            }
            1 => stream = (0..random.below(2000)).map(|_| random.next() as u8).collect(),
            _ => {}
        }
        let mut client = TcpStream::connect(server.address()).unwrap();
        // It may be closed at any time.
        let _ = client.write_all(&stream);
        let _ = client.shutdown(std::net::Shutdown::Write);
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = Vec::new();
        match client.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("round {round}: neither answered nor closed: {error}"),
        }
        assert!(good.ping(round) < PATIENCE);
    }
}

#[test]
fn what_was_asked_before_the_client_stopped_sending_is_answered() {
    let server = start(&["NULL delay=30ms"]);
    let mut client = Client::new(&server);
    client.send(&(0..200).flat_map(|n| framed(&null(n))).collect::<Vec<u8>>());
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    for n in 0..200 {
        assert_eq!(xid_of(&client.reply().unwrap()), n);
    }
    assert!(client.is_closed());
}

#[test]
fn held_replies_keep_their_order_and_hold_up_nobody() {
    let server = start(&["NULL delay=80ms"]);
    let mut client = Client::new(&server);
    let began = Instant::now();
    let mut stream: Vec<u8> = (0..100).flat_map(|n| framed(&null(n))).collect();
    stream.extend(framed(&call(500, NFS, 3, 22, &[])));
    client.send(&stream);
    // Not delayed, so it comes first although it was asked last.
    assert_eq!(xid_of(&client.reply().unwrap()), 500);
    let first = began.elapsed();
    for n in 0..100 {
        assert_eq!(xid_of(&client.reply().unwrap()), n);
        assert!(began.elapsed() >= Duration::from_millis(80), "reply {n} after {:?}", began.elapsed());
    }
    // Delays run side by side.
    assert!(began.elapsed() < Duration::from_millis(100 * 80 / 2), "{:?}", began.elapsed());
    assert!(first < Duration::from_millis(80), "{first:?}");
}

#[test]
fn more_held_replies_than_are_kept_come_too() {
    let server = start(&["NULL delay=5ms"]);
    let mut client = Client::new(&server);
    let mut writer = client.stream.try_clone().unwrap();
    const CALLS: u32 = 100_000;
    let sender = std::thread::spawn(move || {
        for chunk in 0..100 {
            let range = chunk * (CALLS / 100)..(chunk + 1) * (CALLS / 100);
            writer.write_all(&range.flat_map(|n| framed(&null(n))).collect::<Vec<u8>>()).unwrap();
        }
    });
    for n in 0..CALLS {
        assert_eq!(xid_of(&client.reply().unwrap()), n);
    }
    sender.join().unwrap();
}

#[test]
fn injected_loss_and_disconnect() {
    let server = start(&["NULL drop-reply count=2", "GETATTR disconnect count=1"]);
    let mut client = Client::new(&server);
    client.send(&(0..4).flat_map(|n| framed(&null(n))).collect::<Vec<u8>>());
    assert_eq!([2, 3], [0, 1].map(|_| xid_of(&client.reply().unwrap())));
    client.send(&framed(&call(4, NFS, 3, 1, &[4, 0])));
    assert!(client.is_closed());
    assert!(Client::new(&server).ping(5) < PATIENCE);
}

#[test]
fn a_flood_of_calls_does_not_keep_others_waiting() {
    let server = start(&[]);
    let flood = Client::new(&server);
    let (mut writer, mut reader) = (flood.stream.try_clone().unwrap(), flood.stream);
    let drain = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while reader.read(&mut buffer).is_ok_and(|n| n > 0) {}
    });
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let send = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            let stream: Vec<u8> = (0..10_000).flat_map(|n| framed(&null(n))).collect();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                writer.write_all(&stream).unwrap();
            }
            writer.shutdown(std::net::Shutdown::Both).unwrap();
        })
    };
    let mut good = Client::new(&server);
    let mut waits: Vec<Duration> = (0..200).map(|xid| good.ping(xid)).collect();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    send.join().unwrap();
    drain.join().unwrap();
    waits.sort();
    assert!(waits[100] < Duration::from_millis(100), "median {:?}", waits[100]);
}

#[test]
fn datagrams_are_answered_one_by_one() {
    let server = start(&["NULL delay=20ms"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let ask = |message: &[u8]| {
        socket.send(message).unwrap();
        let mut buffer = [0; 65_536];
        let len = socket.recv(&mut buffer).unwrap();
        buffer[..len].to_vec()
    };
    let success = RpcReply::Success(OpaqueAuth::NONE);
    for (program, version) in [(NFS, 2), (NFS, 3), (MOUNT, 1), (MOUNT, 3), (NLM, 4)] {
        let began = Instant::now();
        let reply = ask(&call(program + version, program, version, 0, &[]));
        assert!(program != NFS || began.elapsed() >= Duration::from_millis(20), "NULL of NFS is delayed");
        assert_eq!((xid_of(&reply), outcome(&reply)), (program + version, success), "{program} {version}");
    }
    let reply = ask(&call(1, NFS, 4, 0, &[]));
    assert_eq!(outcome(&reply), RpcReply::ProgMismatch(2, 3), "version 4 needs TCP");
    // Nonsense gets no answer, what follows does.
    socket.send(b"nonsense").unwrap();
    socket.send(&[]).unwrap();
    assert_eq!(xid_of(&ask(&null(9))), 9);
}

#[test]
fn the_portmapper_has_its_own_port_and_answers_nothing_else() {
    let portmap = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = Server::start(ServerConfig { portmap, ..config() }).unwrap();
    let address = server.portmap_address().unwrap();
    assert_ne!(address, server.address());
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut client = Client { stream: stream.try_clone().unwrap() };
    // PMAPPROC_GETPORT of NFS version 3 over TCP.
    stream.write_all(&framed(&call(1, PORTMAP, 2, 3, &[NFS, 3, 6, 0]))).unwrap();
    let reply = client.reply().unwrap();
    assert_eq!(outcome(&reply), RpcReply::Success(OpaqueAuth::NONE));
    assert_eq!(reply[reply.len() - 4..], u32::from(server.address().port()).to_be_bytes());
    stream.write_all(&framed(&call(2, NFS, 3, 0, &[]))).unwrap();
    assert_eq!(outcome(&client.reply().unwrap()), RpcReply::ProgUnavail);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(&call(3, PORTMAP, 2, 0, &[]), address).unwrap();
    let mut buffer = [0; 100];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!((from, xid_of(&buffer[..len])), (address, 3));
}

#[test]
fn connections_are_closed_from_outside_all_or_those_of_a_client() {
    let server = Server::start(ServerConfig { threads: 2, ..config() }).unwrap();
    let named = |name: &'static str| {
        let mut e = Encoder::new();
        let machine_name = Opaque(name.as_bytes());
        e.put(&AuthSys { stamp: 0, machine_name, uid: 0, gid: 0, gids: List::Items(&[]) });
        let body = e.buffer().to_vec();
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: Opaque(&body) };
        let mut client = Client::new(&server);
        client.send(&framed(&with_cred(1, cred, NFS, 3, 0, &[])));
        assert!(client.reply().is_some());
        client
    };
    let (mut a, mut b) = (named("a"), named("b"));
    let report = serde_json::to_value(server.report()).unwrap();
    let clients = report["clients"].as_array().unwrap();
    let number = clients.iter().find(|client| client["machine"] == "a").unwrap()["client"].as_u64().unwrap();
    server.disconnect(Some(benchmaster_nfs_server::stats::ClientIndex(number as u32)));
    assert!(a.is_closed());
    b.ping(2);
    server.disconnect(None);
    assert!(b.is_closed());
}

#[test]
fn callers_who_share_a_connection_are_told_apart() {
    let server = start(&[]);
    let mut client = Client::new(&server);
    let credential = |name: &str| {
        let mut e = Encoder::new();
        let machine_name = Opaque(name.as_bytes());
        e.put(&AuthSys { stamp: 0, machine_name, uid: 0, gid: 0, gids: List::Items(&[]) });
        e.buffer().to_vec()
    };
    for (xid, name) in ["a", "a", "b", "a", "", "b", "a"].into_iter().enumerate() {
        let body = credential(name);
        let cred = match name {
            "" => OpaqueAuth::NONE,
            _ => OpaqueAuth { flavor: AuthFlavor::SYS, body: Opaque(&body) },
        };
        client.send(&framed(&with_cred(xid as u32, cred, NFS, 3, 0, &[])));
        assert!(client.reply().is_some());
    }
    let report = serde_json::to_value(server.report()).unwrap();
    let calls = |name: &str| {
        let clients = report["clients"].as_array().unwrap();
        let client = clients.iter().find(|client| client["machine"] == name).unwrap();
        client["operations"][0]["ops"].as_u64().unwrap()
    };
    assert_eq!([calls("a"), calls("b"), calls("")], [4, 2, 1]);
}

#[test]
fn stopping_while_busy_is_prompt_and_final() {
    let server = Server::start(ServerConfig { threads: 2, ..config() }).unwrap();
    let address = server.address();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut client = Client::new(&server);
            std::thread::spawn(move || {
                let mut calls = 0u32;
                let stream: Vec<u8> = (0..64).flat_map(|n| framed(&null(n))).collect();
                while client.stream.write_all(&stream).is_ok() {
                    for _ in 0..64 {
                        let mut header = [0; 4 + 24];
                        // Whole replies until the end: a reply is never torn.
                        match client.stream.read(&mut header) {
                            Ok(0) | Err(_) => return calls,
                            Ok(n) => client.stream.read_exact(&mut header[n..]).unwrap(),
                        }
                        calls += 1;
                    }
                }
                calls
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    let mut stalled = Client::new(&server);
    stall(&mut stalled);
    let began = Instant::now();
    server.stop().unwrap();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
    assert!(TcpStream::connect(address).is_err(), "still listening");
    server.stop().unwrap();
    let again = Server::start(ServerConfig { listen: address, ..config() });
    assert!(again.is_ok(), "the port is free at once: {again:?}");
}

#[test]
fn an_address_in_use_is_named() {
    let first = start(&[]);
    let error = Server::start(ServerConfig { listen: first.address(), ..config() }).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&first.address().to_string()) && text.contains("TCP"), "{text}");
}
