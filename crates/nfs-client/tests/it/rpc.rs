//! Calls over real sockets to a scripted server: matching, resending, landing, and what a hostile server can do.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use benchmaster_nfs_client::counters::{Counters, Event, OpCounters};
use benchmaster_nfs_client::ops::{self, Op};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::rpc::{Call, Rpc, RpcError, RpcOptions, Transport, land};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder, XdrError};
use proptest::prelude::*;

use crate::support::scripted::{Act, Server, body, record, reply, words};

fn options(address: SocketAddr) -> RpcOptions {
    RpcOptions {
        address,
        others: Vec::new(),
        transport: Transport::Tcp,
        nagle: false,
        connections: 1,
        timeout: Duration::from_secs(5),
        retransmissions: 1,
        resend_on_live_connection: true,
        max_message: (1 << 20) + 4096,
        credential: Vec::new(),
        tls: None,
        gss: None,
    }
}

fn call_of(op: Op) -> Call<'static> {
    Call::new(op, 100_003, 3, 1)
}

async fn echo(rpc: &Rpc, value: u64) -> Result<u64, RpcError> {
    rpc.call(call_of(ops::v3::GETATTR), |e, _| e.put(&value), |d| d.get()).await
}

/// Runs `test` with a client of `options`.
fn with<T>(options: RpcOptions, test: impl AsyncFnOnce(&Rpc) -> T) -> (T, Rc<Counters>) {
    let reactor = Reactor::new().unwrap();
    let counters = Rc::new(Counters::new());
    let result = reactor.block_on(async {
        let rpc = Rpc::connect(&reactor, &counters, options).await.unwrap();
        test(&rpc).await
    });
    (result.unwrap(), counters)
}

/// A client that outlives one `block_on`.
fn client(options: RpcOptions) -> (Reactor, Rc<Counters>, Rpc) {
    let (reactor, counters) = (Reactor::new().unwrap(), Rc::new(Counters::new()));
    let rpc = reactor.block_on(Rpc::connect(&reactor, &counters, options)).unwrap().unwrap();
    (reactor, counters, rpc)
}

#[test]
fn replies_out_of_order_and_in_pieces_find_their_calls() {
    let waiting: Mutex<Vec<(u32, Vec<u8>)>> = Mutex::new(Vec::new());
    let server = Server::start(move |seen| {
        let mut waiting = waiting.lock().unwrap();
        waiting.push((seen.xid, seen.args.to_vec()));
        if waiting.len() < 50 {
            return Vec::new();
        }
        let bytes: Vec<u8> = waiting.drain(..).rev().flat_map(|(xid, args)| reply(xid, &args)).collect();
        bytes.chunks(7).map(|piece| Act::Send(piece.to_vec())).collect()
    });
    let (reactor, counters, rpc) = client(options(server.address));
    let mut calls: Vec<_> = (0..200).map(|value| Box::pin(echo(&rpc, value))).collect();
    assert_eq!(reactor.run_all(&mut calls).unwrap(), (0..200).map(Ok).collect::<Vec<_>>());
    let counted = counters.snapshot().op(ops::v3::GETATTR);
    assert_eq!((counted.ops, counted.transmissions, counted.errors), (200, 200, 0));
    assert_eq!((counted.bytes_sent, counted.bytes_received), (200 * 48, 200 * 32));
    assert!(counted.rtt_ns > 0 && counted.execute_ns >= counted.rtt_ns);
    assert_eq!(counters.outstanding(), 0);
}

#[test]
fn a_record_of_many_fragments_is_one_reply() {
    let server = Server::start(|seen| {
        let (mut bytes, body) = (Vec::new(), body(seen.xid, seen.args));
        for piece in body[..body.len() - 1].chunks(5) {
            bytes.extend(words(&[piece.len() as u32]));
            bytes.extend_from_slice(piece);
        }
        bytes.extend(record(&body[body.len() - 1..]));
        vec![Act::Send(bytes)]
    });
    let (results, _) =
        with(options(server.address), async |rpc: &Rpc| (echo(rpc, 5).await, echo(rpc, 6).await));
    assert_eq!(results, (Ok(5), Ok(6)));
}

#[test]
fn what_was_outstanding_on_a_broken_connection_is_sent_again_with_the_same_number() {
    let xids = Arc::new(Mutex::new(Vec::new()));
    let seen_xids = xids.clone();
    let server = Server::start(move |seen| {
        seen_xids.lock().unwrap().push(seen.xid);
        match seen.connection {
            0 => vec![Act::Close],
            _ => vec![Act::Send(reply(seen.xid, seen.args))],
        }
    });
    let (result, counters) = with(options(server.address), async |rpc: &Rpc| {
        let result = echo(rpc, 9).await;
        assert_eq!(rpc.generation(0), 2);
        result
    });
    assert_eq!(result, Ok(9));
    let xids = xids.lock().unwrap();
    assert_eq!(xids.len(), 2);
    assert_eq!(xids[0], xids[1]);
    let snapshot = counters.snapshot();
    let event = |event| snapshot.event(event);
    assert_eq!((event(Event::Connect), event(Event::Reconnect), event(Event::Resent)), (1, 1, 1));
    assert_eq!(snapshot.op(ops::v3::GETATTR).transmissions, 2);
}

#[test]
fn a_lost_reply_is_asked_for_again_and_a_silent_server_is_given_up_in_time() {
    let server = Server::start(|seen| match seen.number {
        1 => vec![Act::Send(reply(seen.xid, seen.args))],
        _ => Vec::new(),
    });
    let timeout = Duration::from_millis(100);
    let options = RpcOptions { timeout, ..options(server.address) };
    let (results, counters) = with(options, async |rpc: &Rpc| (echo(rpc, 1).await, echo(rpc, 2).await));
    assert_eq!(results, (Ok(1), Err(RpcError::TimedOut)));
    let counted = counters.snapshot().op(ops::v3::GETATTR);
    assert_eq!((counted.ops, counted.errors), (2, 1));
    // The second time that the second call is given up is the end of its time: one major timeout.
    assert_eq!((counted.transmissions, counted.timeouts), (4, 1));
    assert_eq!(counters.snapshot().event(Event::Retransmission), 2);
}

#[test]
fn a_call_is_counted_when_it_ends() {
    let server = Server::start(|seen| match seen.number {
        0 => Vec::new(),
        _ => vec![Act::Send(reply(seen.xid, seen.args))],
    });
    let (_, counters) = with(options(server.address), async |rpc: &Rpc| {
        let mut silent = Box::pin(echo(rpc, 1));
        let soon = Instant::now() + Duration::from_millis(5);
        assert!(rpc.reactor().until(soon, silent.as_mut()).await.is_none());
        // It was sent, and is under way: a snapshot now must not show a transmission without its call.
        assert_eq!(rpc.counters().snapshot().op(ops::v3::GETATTR), OpCounters::default());
        assert_eq!(echo(rpc, 2).await, Ok(2));
        let counted = rpc.counters().snapshot().op(ops::v3::GETATTR);
        assert_eq!((counted.ops, counted.transmissions, counted.errors), (1, 1, 0));
        drop(silent);
    });
    let counted = counters.snapshot().op(ops::v3::GETATTR);
    assert_eq!((counted.ops, counted.transmissions, counted.errors, counted.timeouts), (2, 2, 1, 0));
}

#[test]
fn version_4_does_not_send_again_on_a_living_connection() {
    let server = Server::start(|seen| match seen.connection {
        0 => Vec::new(),
        _ => vec![Act::Send(reply(seen.xid, seen.args))],
    });
    let timeout = Duration::from_millis(100);
    let options = RpcOptions { timeout, resend_on_live_connection: false, ..options(server.address) };
    let (result, counters) = with(options, async |rpc: &Rpc| echo(rpc, 1).await);
    assert_eq!(result, Ok(1));
    assert_eq!(counters.snapshot().event(Event::Reconnect), 1);
}

/// Results of a READ: status, length, data at the end.
fn data_reply(len: usize, seed: usize) -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(&0u32);
    let data: Vec<u8> = (0..len).map(|at| (at * 7 + seed) as u8).collect();
    e.put(&Bulk::Bytes(&data));
    e.buffer().to_vec()
}

async fn read(rpc: &Rpc, buffer: &mut [u8]) -> Result<Result<usize, u32>, RpcError> {
    let len = buffer.len() as u32;
    let call = call_of(ops::v3::READ);
    let decode = |d: &mut Decoder<'_>, buffer: &mut [u8]| -> Result<_, XdrError> {
        match d.get::<u32>()? {
            0 => {
                let data: Bulk<'_> = d.get()?;
                Ok((Ok(data.len()), land(data, buffer)?))
            }
            status => Ok((Err(status), 0)),
        }
    };
    rpc.call_into(call, buffer, |e, _| e.put(&len), decode).await
}

#[test]
fn data_of_every_length_land_whole() {
    let server = Server::start(|seen| {
        let len = u32::from_be_bytes(seen.args.try_into().unwrap()) as usize;
        if len % 5 == 4 {
            // A large buffer and no data: an error.
            return vec![Act::Send(reply(seen.xid, &words(&[13])))];
        }
        let bytes = reply(seen.xid, &data_reply(len, len));
        bytes.chunks(50_021).map(|piece| Act::Send(piece.to_vec())).collect()
    });
    let lengths =
        [1, 3, 4095, 4096, 16_383, 16_385, 16_386, 65_536, 99_999, 262_142, 300_001, 1 << 20, 20_004, 16_384];
    let (reactor, counters, rpc) = client(options(server.address));
    for _ in 0..20 {
        let one = async |len: usize| {
            let mut buffer = vec![0u8; len];
            let result = read(&rpc, &mut buffer).await.unwrap();
            if len % 5 == 4 {
                return assert_eq!(result, Err(13));
            }
            assert_eq!(result, Ok(len));
            assert!(buffer.iter().enumerate().all(|(at, &byte)| byte == (at * 7 + len) as u8), "{len}");
        };
        let mut calls: Vec<_> = lengths.iter().cycle().take(40).map(|&len| Box::pin(one(len))).collect();
        reactor.run_all(&mut calls).unwrap();
    }
    let counted = counters.snapshot();
    assert_eq!((counted.event(Event::Reconnect), counted.op(ops::v3::READ).ops), (0, 800));
}

#[test]
fn payloads_of_every_length_arrive_whole() {
    let server = Server::start(|seen| {
        let mut d = Decoder::new(seen.args);
        let (seed, data): (u32, Bulk<'_>) = (d.get().unwrap(), d.get().unwrap());
        let data = data.bytes().unwrap();
        let good = data.iter().enumerate().all(|(at, &byte)| byte == (at * 3 + seed as usize) as u8);
        vec![Act::Send(reply(seen.xid, &words(&[u32::from(good), data.len() as u32])))]
    });
    let (reactor, counters, rpc) = client(RpcOptions { connections: 2, ..options(server.address) });
    let write = async |len: usize, seed: u32| {
        let data: Vec<u8> = (0..len).map(|at| (at * 3 + seed as usize) as u8).collect();
        let call = call_of(ops::v3::WRITE).payload(&data);
        let encode = |e: &mut Encoder, data: Bulk<'_>| {
            e.put(&seed);
            e.put(&data);
        };
        assert_eq!(rpc.call(call, encode, |d| d.get::<u64>()).await, Ok(1 << 32 | len as u64));
    };
    let lengths = [0, 1, 4096, 16_383, 16_384, 16_387, 100_000, 1 << 20];
    let mut calls: Vec<_> = (0..200).map(|seed| Box::pin(write(lengths[seed as usize % 8], seed))).collect();
    reactor.run_all(&mut calls).unwrap();
    assert_eq!(counters.snapshot().event(Event::Reconnect), 0);
}

/// A server with little room that reads slowly: sockets are full again and again in the middle of a payload, also of one that
/// follows another in the same turn.
#[test]
fn payloads_pass_through_sockets_that_are_full() {
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.set_recv_buffer_size(4096).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(1).unwrap();
    let listener = TcpListener::from(listener);
    let address = listener.local_addr().unwrap();
    const CALLS: u32 = 150;
    const LEN: usize = 60_000;
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        let mut part = [0; 10_000];
        for _ in 0..CALLS {
            let whole = loop {
                let mark = received.first_chunk::<4>().map(|mark| u32::from_be_bytes(*mark) & !LAST_FRAGMENT);
                match mark.map(|len| len as usize + 4).filter(|whole| received.len() >= *whole) {
                    Some(whole) => break whole,
                    None => {
                        std::thread::sleep(Duration::from_micros(50));
                        let n = stream.read(&mut part).unwrap();
                        received.extend_from_slice(&part[..n]);
                    }
                }
            };
            let message: Vec<u8> = received.drain(..whole).collect();
            let xid = u32::from_be_bytes(message[4..8].try_into().unwrap());
            let good = message[whole - LEN..].iter().enumerate().all(|(at, &byte)| byte == (at * 3) as u8);
            stream.write_all(&reply(xid, &words(&[u32::from(good), LEN as u32]))).unwrap();
        }
    });
    let (reactor, counters, rpc) = client(options(address));
    let data: Vec<u8> = (0..LEN).map(|at| (at * 3) as u8).collect();
    let write = async || {
        let call = call_of(ops::v3::WRITE).payload(&data);
        rpc.call(call, |e: &mut Encoder, data: Bulk<'_>| e.put(&data), |d| d.get::<u64>()).await
    };
    let mut calls: Vec<_> = (0..CALLS).map(|_| Box::pin(write())).collect();
    assert_eq!(reactor.run_all(&mut calls).unwrap(), vec![Ok(1 << 32 | LEN as u64); CALLS as usize]);
    assert_eq!(counters.snapshot().event(Event::Reconnect), 0);
    server.join().unwrap();
}

#[test]
fn a_call_given_up_while_its_data_come_harms_no_other() {
    let server = Server::start(|seen| {
        let len = u32::from_be_bytes(seen.args.try_into().unwrap()) as usize;
        let bytes = reply(seen.xid, &data_reply(len, 1));
        // The first reply on the first connection stops in the middle of its data.
        match (seen.connection, seen.number) {
            (0, 0) => vec![Act::Send(bytes[..bytes.len() / 2].to_vec())],
            _ => vec![Act::Send(bytes)],
        }
    });
    let (reactor, counters, rpc) = client(options(server.address));
    let done = reactor.block_on(async {
        let mut buffer = vec![0; 500_000];
        let at = Instant::now() + Duration::from_millis(200);
        assert!(reactor.until(at, read(&rpc, &mut buffer)).await.is_none());
        drop(buffer);
        let mut buffer = vec![0; 100_000];
        read(&rpc, &mut buffer).await
    });
    assert_eq!(done.unwrap(), Ok(Ok(100_000)));
    assert_eq!(counters.snapshot().event(Event::Reconnect), 1);
}

#[test]
fn a_server_that_stops_in_the_middle_of_data_is_given_up_in_time() {
    let server = Server::start(|seen| {
        let len = u32::from_be_bytes(seen.args.try_into().unwrap()) as usize;
        let bytes = reply(seen.xid, &data_reply(len, 1));
        match seen.connection {
            1 => vec![Act::Send(bytes)],
            _ => vec![Act::Send(bytes[..bytes.len() / 2].to_vec())],
        }
    });
    let options = RpcOptions { timeout: Duration::from_millis(100), ..options(server.address) };
    let (results, counters) = with(options, async |rpc: &Rpc| {
        let mut buffer = vec![0; 100_000];
        let first = read(rpc, &mut buffer).await;
        rpc.reset(0);
        (first, read(rpc, &mut buffer).await)
    });
    assert_eq!(results, (Ok(Ok(100_000)), Err(RpcError::TimedOut)));
    assert!(counters.snapshot().event(Event::Reconnect) >= 3);
}

#[test]
fn a_call_given_up_before_its_reply_leaves_a_stray_one() {
    let server = Server::start(|seen| {
        if seen.number == 0 {
            return Vec::new();
        }
        vec![Act::Send(reply(seen.xid - 1, &[0; 8])), Act::Send(reply(seen.xid, seen.args))]
    });
    let (reactor, counters, rpc) = client(options(server.address));
    let result = reactor.block_on(async {
        let at = Instant::now() + Duration::from_millis(50);
        assert!(reactor.until(at, echo(&rpc, 1)).await.is_none());
        echo(&rpc, 2).await
    });
    assert_eq!(result.unwrap(), Ok(2));
    assert_eq!(counters.snapshot().event(Event::StrayReply), 1);
    assert_eq!(counters.outstanding(), 0);
}

#[test]
fn the_server_can_call_back_on_our_connection() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let seen_answers = answers.clone();
    let server = Server::start(move |seen| match seen.number {
        0 => {
            let call = words(&[77, 0, 2, 0x4000_0000, 1, 0, 0, 0, 0, 0]);
            vec![Act::Send(record(&call)), Act::Send(reply(seen.xid, seen.args))]
        }
        // Our answer, which the script takes for a call.
        _ => {
            seen_answers.lock().unwrap().push(seen.xid);
            vec![Act::Close]
        }
    });
    let (reactor, counters, rpc) = client(options(server.address));
    let heard = Rc::new(RefCell::new(Vec::new()));
    let handler_heard = heard.clone();
    rpc.set_handler(Rc::new(move |connection, call: &[u8], e: &mut Encoder| {
        handler_heard.borrow_mut().push((connection, call.to_vec()));
        e.raw(&body(77, &[]));
    }));
    reactor
        .block_on(async {
            assert_eq!(echo(&rpc, 1).await, Ok(1));
            // The script closes the connection once it has our answer.
            rpc.renewed(0, 1).await;
        })
        .unwrap();
    let heard = heard.borrow();
    assert_eq!((heard.len(), heard[0].0, &heard[0].1[..4]), (1, 0, &words(&[77])[..]));
    assert_eq!(counters.snapshot().event(Event::Callback), 1);
    assert_eq!(answers.lock().unwrap()[..], [77]);
}

#[test]
fn refusals_of_the_rpc_layer_are_errors_with_names() {
    let server = Server::start(|seen| {
        let mut bytes = words(&[seen.xid]);
        bytes.extend(match seen.args[7] {
            1 => words(&[1, 0, 0, 0, 1]),
            2 => words(&[1, 0, 0, 0, 2, 4, 4]),
            3 => words(&[1, 0, 0, 0, 3]),
            4 => words(&[1, 0, 0, 0, 4]),
            5 => words(&[1, 0, 0, 0, 5]),
            6 => words(&[1, 1, 1, 1]),
            7 => words(&[1, 0, 0, 0, 99]),
            8 => words(&[1, 0, 0, 0, 0]),
            _ => words(&[1, 7]),
        });
        vec![Act::Send(record(&bytes))]
    });
    let (texts, _) = with(options(server.address), async |rpc: &Rpc| {
        let mut texts = Vec::new();
        for value in 1..10 {
            texts.push(echo(rpc, value).await.unwrap_err().to_string());
        }
        texts
    });
    assert_eq!(
        texts,
        [
            "the server does not serve RPC program 100003",
            "the server serves versions 4 to 4 of RPC program 100003, and not 3",
            "the server does not know procedure 1 of RPC program 100003",
            "the server could not decode the arguments",
            "the server failed (SYSTEM_ERR)",
            "the server refuses the credential (AUTH_BADCRED)",
            "the reply has an unknown RPC status (99)",
            "the reply cannot be decoded: message ends within u64",
            "the reply cannot be decoded: 7 is not a value of reply_stat",
        ]
    );
}

#[test]
fn datagrams_are_sent_again_when_lost() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        for number in 0..40 {
            let (len, from) = socket.recv_from(&mut buffer).unwrap();
            let xid = u32::from_be_bytes(buffer[..4].try_into().unwrap());
            if number % 2 == 1 {
                socket.send_to(&body(xid, &buffer[40..len]), from).unwrap();
            }
        }
    });
    let (transport, timeout, retransmissions) = (Transport::Udp, Duration::from_millis(50), 20);
    let options = RpcOptions { transport, timeout, retransmissions, ..options(address) };
    let (results, counters) = with(options, async |rpc: &Rpc| {
        let mut results = Vec::new();
        for value in 0..20 {
            results.push(echo(rpc, value).await);
        }
        results
    });
    assert_eq!(results, (0..20).map(Ok).collect::<Vec<_>>());
    assert!(counters.snapshot().event(Event::Retransmission) >= 20);
    server.join().unwrap();
}

#[test]
fn nobody_there_is_said_and_closing_ends_calls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (reactor, counters, rpc) =
        client(RpcOptions { timeout: Duration::from_secs(60), ..options(address) });
    let closer = rpc.clone();
    reactor.spawn(async move { closer.close() });
    let results = reactor.block_on(async { (echo(&rpc, 1).await, echo(&rpc, 1).await) });
    assert_eq!(results.unwrap(), (Err(RpcError::Closed), Err(RpcError::Closed)));
    drop(listener);
    let options = RpcOptions { timeout: Duration::from_millis(200), ..options(address) };
    let error = reactor.block_on(Rpc::connect(&reactor, &counters, options)).unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A server that answers with anything: every call ends, with a result or an error.
    #[test]
    fn a_hostile_server_costs_an_error(
        replies in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| (bytes, false)),
                (any::<u32>(), proptest::collection::vec(any::<u8>(), 0..100)).prop_map(|(mark, bytes)| {
                    (words(&[mark]).into_iter().chain(bytes).collect(), false)
                }),
                proptest::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| (bytes, true)),
                // The front of a large READ whose data never come, or are more than was asked for.
                (30_000..60_000u32).prop_map(|len| (words(&[0, len]), true)),
            ],
            1..6,
        ),
        closes in any::<bool>(),
    ) {
        let server = Server::start(move |seen| {
            let (bytes, framed) = &replies[(seen.number + seen.connection) % replies.len()];
            let mut acts = vec![Act::Send(if *framed { reply(seen.xid, bytes) } else { bytes.clone() })];
            if closes {
                acts.push(Act::Close);
            }
            acts
        });
        let timeout = Duration::from_millis(20);
        let options = RpcOptions { timeout, retransmissions: 2, ..options(server.address) };
        let ((), counters) = with(options, async |rpc: &Rpc| {
            for value in 0..3 {
                let _ = echo(rpc, value).await;
                let mut buffer = vec![0; 40_000];
                let _ = read(rpc, &mut buffer).await;
            }
        });
        prop_assert_eq!(counters.outstanding(), 0);
    }
}
