//! The emulated network as a command.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::place::{Place, Running, snapshot};

#[test]
fn it_delays_until_it_is_told_to_stop_and_says_what_it_achieved() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let place = Place::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut running = Running::start(place.command(&["relay", "--target", &target, "--delay", "3ms"]));
        let line = running.wait_for("relaying ");
        let address: SocketAddr = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(line, format!("relaying to {target}, 3ms each way, from {address}"));
        assert!(address.ip().is_loopback());

        let opened = Instant::now();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"ping").unwrap();
        let mut message = [0; 4];
        server.read_exact(&mut message).unwrap();
        server.write_all(&message).unwrap();
        client.read_exact(&mut message).unwrap();
        assert_eq!(&message, b"ping");
        assert!(opened.elapsed() >= Duration::from_millis(12));

        running.signal(signal);
        let (status, out, err) = running.end();
        assert_eq!(status.code(), Some(0), "{err}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["connections"], 1);
        assert_eq!((&report["bytes_to_target"], &report["bytes_to_clients"]), (&4.into(), &4.into()));
        assert!(report["lateness_us"]["max"].as_f64().unwrap() > 0.0, "{report}");
    }
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = Place::new();
    let output = place.run(&["relay", "--listen", &address, "--target", &address, "--delay", "0s"]);
    assert_eq!(output.status.code(), Some(2));
    let text = crate::place::stderr(&output).replace(&address, "ADDRESS");
    snapshot("relay_address_in_use", &place, &text);
}
