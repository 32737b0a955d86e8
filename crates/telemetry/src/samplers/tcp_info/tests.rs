use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;
use crate::samplers::testing::{sampled, sampled_every, values};
use crate::sampling::Watched;

#[test]
fn a_connection_of_this_test_is_found_and_others_are_not() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address) else {
            println!("skipped: no {address} here");
            continue;
        };
        let other = TcpListener::bind(address).unwrap();
        let server = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(server).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let _unwatched = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        let watch = Watched { server_ports: vec![9, server.port()], ..Watched::default() };
        let config = SamplingConfig { watch, ..SamplingConfig::default() };
        let mut transfer = [0; 1000];
        let client_end = client.local_addr().unwrap();
        let (client, accepted) =
            (std::cell::RefCell::new(&mut client), std::cell::RefCell::new(&mut accepted));
        let transfer = std::cell::RefCell::new(&mut transfer);
        let step = || {
            client.borrow_mut().write_all(&[1; 1000]).unwrap();
            accepted.borrow_mut().read_exact(&mut transfer.borrow_mut()[..]).unwrap();
        };
        let samples = sampled(&REGISTERED, &config, &[&|| (), &step]);
        assert_eq!(samples.problems, []);
        let mut instances: Vec<_> =
            samples.of("tcp_info", "cwnd").map(|series| &series.key.instance).collect();
        instances.sort();
        let mut expected = [format!("{client_end}-{server}"), format!("{server}-{client_end}")];
        expected.sort();
        assert_eq!(instances, expected.iter().collect::<Vec<_>>());
        assert_eq!(values(&samples, "bytes_received", &format!("{server}-{client_end}")), [0.0, 1000.0]);
        let received = values(&samples, "state", &format!("{client_end}-{server}"));
        assert_eq!(received, [1.0, 1.0]);
        let windows = values(&samples, "cwnd", &format!("{client_end}-{server}"));
        assert!(windows.iter().all(|window| *window >= 1.0), "{windows:?}");
        // Addresses narrow it down.
        let mut config = config.clone();
        config.watch.server_addresses = vec!["192.0.2.1".parse().unwrap()];
        assert_eq!(sampled(&REGISTERED, &config, &[&|| ()]).series, []);
        config.watch.server_addresses.push(server.ip());
        assert!(!sampled(&REGISTERED, &config, &[&|| ()]).series.is_empty());
    }
}

#[test]
fn between_two_looks_at_all_each_connection_is_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let connect = || {
        let client = TcpStream::connect(server).unwrap();
        (client, listener.accept().unwrap().0)
    };
    // More than are asked about at once.
    let connections = std::cell::RefCell::new((0..40).map(|_| connect()).collect::<Vec<_>>());
    let name = |at: usize| {
        let client = connections.borrow()[at].0.local_addr().unwrap();
        format!("{server}-{client}")
    };
    let (first, last) = (name(0), name(39));
    let send = || {
        connections.borrow_mut().iter_mut().for_each(|(client, accepted)| {
            client.write_all(&[1; 100]).unwrap();
            accepted.read_exact(&mut [0; 100]).unwrap();
        })
    };
    let replace = || {
        // Closed without waiting for the other end: it is gone at once.
        let gone = connections.borrow_mut().remove(39);
        for end in [&gone.0, &gone.1] {
            rustix::net::sockopt::set_socket_linger(end, Some(std::time::Duration::ZERO)).unwrap();
        }
        drop(gone);
        connections.borrow_mut().push(connect());
    };
    let watch = Watched { server_ports: vec![server.port()], ..Watched::default() };
    let config = SamplingConfig { watch, ..SamplingConfig::default() };
    let samples = sampled_every(10_000_000, &REGISTERED, &config, &[&|| (), &send, &send, &replace, &send]);
    assert_eq!(samples.problems, []);
    assert_eq!(values(&samples, "bytes_received", &first), [0.0, 100.0, 200.0, 200.0, 300.0]);
    assert_eq!(values(&samples, "bytes_received", &last), [0.0, 100.0, 200.0]);
    // The new one was looked for because one was missing.
    assert_eq!(values(&samples, "bytes_received", &name(39)), [100.0]);
}

#[test]
fn new_connections_are_found_after_quiet_times_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let _first = TcpStream::connect(server).unwrap();
    let later = std::cell::OnceCell::new();
    let connect = || drop(later.set(TcpStream::connect(server).unwrap()));
    let watch = Watched { server_ports: vec![server.port()], ..Watched::default() };
    let config = SamplingConfig { watch, ..SamplingConfig::default() };
    let nothing = || ();
    let mut steps: Vec<&dyn Fn()> = vec![&nothing; 20];
    steps.push(&connect);
    steps.extend([&nothing as &dyn Fn(); 8]);
    let samples = sampled(&REGISTERED, &config, &steps);
    let client = later.get().unwrap().local_addr().unwrap();
    let series = samples.find("tcp_info", "state", &format!("{client}-{server}")).unwrap();
    assert!(series.points[0].time_ns >= 20_000_000_000);
    assert_eq!(samples.problems, []);
}

#[test]
fn nothing_is_asked_when_nothing_is_watched() {
    let samples = sampled(&REGISTERED, &SamplingConfig::default(), &[&|| ()]);
    assert_eq!((samples.series, samples.problems), (vec![], vec![]));
}

/// A message of a kernel with a `tcp_info` of `length` bytes, in which byte n is n.
fn message(length: usize) -> Vec<u8> {
    let mut bytes = vec![libc::AF_INET as u8, 1, 0, 0];
    bytes.extend(700_u16.to_be_bytes());
    bytes.extend(2049_u16.to_be_bytes());
    bytes.extend([10, 0, 0, 1]);
    bytes.extend([0; 12]);
    bytes.extend([10, 0, 0, 2]);
    bytes.resize(56, 0);
    bytes.extend(5_u32.to_ne_bytes());
    bytes.extend(7_u32.to_ne_bytes());
    bytes.resize(72, 0);
    // An attribute that nobody asked for, of odd length.
    bytes.extend([5, 0, 8, 0, 1, 0, 0, 0]);
    bytes.extend((4 + length as u16).to_ne_bytes());
    bytes.extend(2_u16.to_ne_bytes());
    bytes.extend((0..length).map(|byte| byte as u8));
    bytes
}

#[test]
fn kernels_tell_more_and_more() {
    // Linux 2.6, 4.9, 4.18 and later.
    for (length, last, absent) in [
        (104, "total_retransmitted", Some("pacing_rate")),
        (160, "min_rtt", Some("delivery_rate")),
        (216, "bytes_retransmitted", None),
        (248, "bytes_retransmitted", None),
    ] {
        let message = message(length);
        let connection = parse(&message).unwrap();
        assert_eq!(connection.local.to_string(), "10.0.0.1:700");
        assert_eq!((connection.receive_queue, connection.send_queue), (5, 7));
        let mut values = crate::samplers::testing::Values::default();
        connection.record(&mut String::new(), &mut values);
        values.are_as_listed(&REGISTERED);
        let instance = "10.0.0.1:700-10.0.0.2:2049";
        assert!(values.get(last, instance).is_some(), "{length}");
        assert!(absent.is_none_or(|name| values.get(name, instance).is_none()), "{length}");
        let micros = f64::from(u32::from_ne_bytes([68, 69, 70, 71]));
        assert_eq!(values.get("rtt", instance), Some(micros * 1e3));
        assert_eq!(values.get("cwnd", instance), Some(f64::from(u32::from_ne_bytes([80, 81, 82, 83]))));
        for cut in 0..message.len() {
            let _ = parse(&message[..cut]);
        }
    }
}

#[test]
fn a_rate_without_limit_is_left_out() {
    let mut message = message(216);
    let info = message.len() - 216;
    message[info + 104..info + 112].fill(0xff);
    let mut values = crate::samplers::testing::Values::default();
    parse(&message).unwrap().record(&mut String::new(), &mut values);
    assert_eq!(values.get("pacing_rate", "10.0.0.1:700-10.0.0.2:2049"), None);
}
