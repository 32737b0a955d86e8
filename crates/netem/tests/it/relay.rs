//! The relay between real sockets. Times are only asserted from below; whoever waits does so for a long time at most.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_netem::relay::{LONGEST_DELAY, Relay, RelayConfig, RelayError};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server: `serve` gets every connection, each in a thread of its own.
fn server(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (serve, stream) = (serve.clone(), stream.unwrap());
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Sends back what it gets.
fn echo(mut stream: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
}

fn relay(target: SocketAddr, delay: Duration) -> Relay {
    Relay::start(RelayConfig::new(target, delay)).unwrap()
}

fn connect(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn exchange(stream: &mut TcpStream, message: &[u8]) -> Duration {
    let started = Instant::now();
    stream.write_all(message).unwrap();
    let mut reply = vec![0; message.len()];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, message);
    started.elapsed()
}

/// Bytes without a short period.
fn pattern(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..len).map(next).collect()
}

/// Waits for something that other threads bring about.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_round_trip_takes_both_delays_and_the_first_one_the_handshake_too() {
    let target = server(echo);
    for delay in
        [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(1), Duration::from_millis(15)]
    {
        let relay = relay(target, delay);
        let opened = Instant::now();
        let mut stream = connect(&relay);
        exchange(&mut stream, b"first");
        assert!(opened.elapsed() >= 4 * delay);
        for round in 0..20u32 {
            let took = exchange(&mut stream, &round.to_be_bytes());
            assert!(took >= 2 * delay, "{took:?} at {delay:?}");
        }
        // Counted after the bytes left, so only whole once it stopped.
        let achieved = relay.stop();
        assert_eq!((achieved.connections, achieved.refused, achieved.held_up), (1, 0, 0));
        assert_eq!((achieved.bytes_to_target, achieved.bytes_to_clients), (85, 85));
        assert_eq!(achieved.forwarded, 42);
        assert!(achieved.lateness_median <= achieved.lateness_99);
        assert!(achieved.lateness_99 <= achieved.lateness_max);
    }
}

#[test]
fn what_the_server_says_first_comes_after_the_handshake() {
    let delay = Duration::from_millis(5);
    let target = server(|mut stream| stream.write_all(b"hello").unwrap());
    let relay = relay(target, delay);
    let opened = Instant::now();
    let mut greeting = String::new();
    connect(&relay).read_to_string(&mut greeting).unwrap();
    assert_eq!(greeting, "hello");
    assert!(opened.elapsed() >= 4 * delay);
}

#[test]
fn a_change_of_the_delay_never_lets_bytes_overtake() {
    let relay = relay(server(echo), Duration::from_millis(30));
    let mut stream = connect(&relay);
    exchange(&mut stream, b"open");
    let started = Instant::now();
    stream.write_all(b"slow").unwrap();
    // The relay has it: it is on its way for 30 ms.
    eventually("the first message arrives", || started.elapsed() > Duration::from_millis(2));
    relay.set_delay(Duration::ZERO).unwrap();
    stream.write_all(b"fast").unwrap();
    let mut reply = [0; 8];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"slowfast");
    relay.set_delay(Duration::from_millis(7)).unwrap();
    assert_eq!(relay.delay(), Duration::from_millis(7));
    assert!(exchange(&mut stream, b"again") >= Duration::from_millis(14));
}

#[test]
fn one_direction_can_end_before_the_other() {
    // The server counts what it gets until the end, and answers only then.
    let target = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    for delay in [Duration::ZERO, Duration::from_millis(3)] {
        let relay = relay(target, delay);
        let mut stream = connect(&relay);
        let sent = pattern(300_000, 7);
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == sent);
        eventually("the connection is over", || relay.achieved().open == 0);
    }
}

#[test]
fn a_reset_reaches_the_other_side() {
    let delay = Duration::from_millis(2);
    let (tell, told) = mpsc::channel();
    let target = server(move |mut stream| {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        if byte[0] == b's' {
            // The server goes.
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            return;
        }
        tell.send(stream.read(&mut byte).map_err(|error| error.kind())).unwrap();
    });
    let relay = relay(target, delay);
    let mut stream = connect(&relay);
    let started = Instant::now();
    stream.write_all(b"s").unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(started.elapsed() >= 2 * delay);

    let mut stream = connect(&relay);
    stream.write_all(b"c").unwrap();
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), Err(ErrorKind::ConnectionReset));
    eventually("both are over", || relay.achieved().open == 0);
}

#[test]
fn a_reset_overtakes_bytes_that_nobody_takes() {
    let (hold, held) = mpsc::channel::<()>();
    let held = std::sync::Arc::new(parking_lot::Mutex::new(held));
    let (tell, told) = mpsc::channel();
    let target = server(move |mut stream| {
        // Reads nothing while the client fills every queue.
        let _ = held.lock().recv_timeout(PATIENCE);
        let mut buffer = vec![0; 1 << 20];
        let error = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break None,
                Ok(_) => {}
                Err(error) => break Some(error.kind()),
            }
        };
        tell.send(error).unwrap();
    });
    let config = RelayConfig { queue: Some(64 << 10), ..RelayConfig::new(target, Duration::from_millis(1)) };
    let relay = Relay::start(config).unwrap();
    let stream = connect(&relay);
    fill(&stream);
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    eventually("the connection is over although the server reads nothing", || relay.achieved().open == 0);
    hold.send(()).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), Some(ErrorKind::ConnectionReset));
}

/// Writes until nothing goes any more, for long enough that all buffers between are full; says how much went.
fn fill(stream: &TcpStream) -> usize {
    stream.set_nonblocking(true).unwrap();
    let (data, mut written, mut idle) = (pattern(1 << 16, 3), 0, 0);
    while idle < 50 {
        match (&*stream).write(&data[written % data.len()..]) {
            Ok(len) => {
                written += len;
                idle = 0;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                idle += 1;
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    written
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender_and_nothing_is_lost() {
    let (hold, held) = mpsc::channel::<()>();
    let held = std::sync::Arc::new(parking_lot::Mutex::new(held));
    let (tell, told) = mpsc::channel();
    let target = server(move |mut stream| {
        held.lock().recv_timeout(PATIENCE).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        tell.send(all).unwrap();
    });
    let queue = 256 << 10;
    let config = RelayConfig { queue: Some(queue), ..RelayConfig::new(target, Duration::from_millis(1)) };
    let relay = Relay::start(config).unwrap();
    let mut stream = connect(&relay);
    let written = fill(&stream);
    // What is neither with the target's kernel nor in the relay's queue waits in this side's socket buffers.
    let under_way = written as u64 - relay.achieved().bytes_to_target;
    assert!(under_way >= queue as u64 / 2, "{under_way} bytes are under way: the queue is not used");
    hold.send(()).unwrap();
    let data = pattern(1 << 16, 3);
    stream.write_all(&data[written % data.len()..]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let received = told.recv_timeout(PATIENCE).unwrap();
    assert!(received.chunks(data.len()).all(|chunk| chunk == data));
    let achieved = relay.stop();
    assert_eq!(achieved.bytes_to_target, received.len() as u64);
    assert!(achieved.held_up > 0);
}

#[test]
fn many_connections_keep_their_bytes_apart() {
    let relay = relay(server(echo), Duration::from_millis(2));
    let mut streams: Vec<_> = (0..200).map(|_| connect(&relay)).collect();
    for round in 0..5 {
        let messages: Vec<_> = (0..streams.len())
            .map(|at| pattern(1 + at * 37 % 5000, (round * 1000 + at) as u32 * 2))
            .collect();
        for (stream, message) in streams.iter_mut().zip(&messages) {
            stream.write_all(message).unwrap();
        }
        for (stream, message) in streams.iter_mut().zip(&messages) {
            let mut reply = vec![0; message.len()];
            stream.read_exact(&mut reply).unwrap();
            assert!(reply == *message);
        }
    }
    assert_eq!(relay.achieved().open, 200);
    // Places are used again.
    drop(streams);
    eventually("all are over", || relay.achieved().open == 0);
    let mut stream = connect(&relay);
    exchange(&mut stream, b"one more");
    assert_eq!(relay.achieved().connections, 201);
}

#[test]
fn bulk_data_arrive_whole_in_both_directions_at_once() {
    let relay = relay(server(echo), Duration::from_micros(500));
    let stream = connect(&relay);
    let sent = pattern(20_000_000, 11);
    thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        (&stream).read_to_end(&mut received).unwrap();
        assert!(received == sent);
    });
}

#[test]
fn stopping_while_busy_ends_every_connection() {
    for _ in 0..5 {
        let relay = relay(server(echo), Duration::from_micros(200));
        let address = relay.address();
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let mut stream = connect(&relay);
                thread::spawn(move || -> io::Result<()> {
                    let data = pattern(50_000, 5);
                    let mut reply = vec![0; data.len()];
                    loop {
                        stream.write_all(&data)?;
                        stream.read_exact(&mut reply)?;
                        assert!(reply == data);
                    }
                })
            })
            .collect();
        eventually("they are busy", || relay.achieved().bytes_to_clients > 1_000_000);
        let achieved = relay.stop();
        assert_eq!((achieved.connections, achieved.open), (8, 0));
        for worker in workers {
            let error = worker.join().unwrap().unwrap_err();
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe
                ),
                "{error}"
            );
        }
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_target_that_refuses_is_a_reset_after_a_round_trip() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let delay = Duration::from_millis(4);
    let relay = relay(free, delay);
    let started = Instant::now();
    let mut stream = connect(&relay);
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(started.elapsed() >= 2 * delay);
    eventually("it is over", || relay.achieved().open == 0);
    assert_eq!(relay.achieved().refused, 1);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = taken.local_addr().unwrap();
    let config = RelayConfig::new(target, Duration::ZERO);
    let error = Relay::start(RelayConfig { listen: target, ..config.clone() }).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {target}"));
    let late = LONGEST_DELAY + Duration::from_nanos(1);
    let error = Relay::start(RelayConfig { delay: late, ..config.clone() }).unwrap_err();
    assert!(matches!(error, RelayError::Delay(delay) if delay == late));
    let relay = Relay::start(config).unwrap();
    assert!(matches!(relay.set_delay(late), Err(RelayError::Delay(_))));
    assert_eq!(relay.delay(), Duration::ZERO);
}
