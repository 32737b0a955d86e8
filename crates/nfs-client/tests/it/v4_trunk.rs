//! One session over several addresses of a server.

use std::io::copy;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use benchmaster_nfs_client::counters::Event;
use benchmaster_nfs_client::mount::Mount;
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::v4::{Client, Connect, ConnectError};
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server_with};

const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn server() -> Server {
    server_with(&[], |config| config.also_listen = vec![SocketAddr::new(SECOND, 0)])
}

fn to(server: &Server, others: Vec<SocketAddr>) -> Connect {
    let verifier = [7; 8];
    Connect {
        others,
        nconnect: 2,
        timeo: Duration::from_secs(5),
        retrans: 1,
        ..Connect::new(server.address(), "/export", 1, "a test", verifier)
    }
}

#[test]
fn calls_go_to_all_addresses_in_one_session() {
    let server = server();
    let addresses = server.addresses();
    assert_eq!(addresses[1], SocketAddr::new(SECOND, addresses[0].port()));
    let connect = to(&server, vec![addresses[1]]);
    run(async |reactor, counters| {
        let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
        assert_eq!(client.rpc().connections(), 4);
        let before: Vec<u64> = counters.snapshot().connections().map(|(count, _)| count).collect();
        for _ in 0..40 {
            client.getattr(&client.root()).await.unwrap();
        }
        let counted = counters.snapshot();
        for (number, (count, _)) in counted.connections().enumerate().take(4) {
            let earlier = before.get(number).copied().unwrap_or_default();
            assert_eq!(count - earlier, 10, "connection {number}");
        }
        assert_eq!(counted.event(Event::ConnectionBound), 2);
        client.unmount().await.unwrap();
    });
    let state = server.report().state;
    assert_eq!((state.sessions, server.report().transport.connections), (0, 4));
}

#[test]
fn an_address_of_another_server_is_refused() {
    let (server, other) = (server(), server());
    let refused = |others: Vec<SocketAddr>| {
        run(async |reactor, counters| {
            Client::connect(&reactor, &counters, &to(&server, others)).await.map(drop).unwrap_err()
        })
    };
    match refused(vec![other.address()]) {
        ConnectError::Trunk { address, beside, reason } => {
            assert_eq!((address, beside), (other.address(), server.address()));
            assert!(reason.to_string().contains("another server"), "{reason}");
        }
        error => panic!("{error}"),
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    match refused(vec![closed]) {
        ConnectError::Connection { address, .. } => assert_eq!(address, closed),
        error => panic!("{error}"),
    }
    // As users meet it.
    let options = MountOptions {
        port: Some(server.address().port()),
        addresses: vec!["127.0.0.3".to_owned()],
        ..MountOptions::new("127.0.0.1", "/export")
    };
    let message =
        run(async |reactor, _| Mount::connect(&reactor, &options, "x").await.map(drop).unwrap_err());
    assert!(message.to_string().contains("127.0.0.3"), "{message}");
}

/// A way to the server that can be cut.
fn way(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<TcpStream>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, streams) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&streams);
    std::thread::spawn(move || {
        // Two connections, and the listener closes then.
        for stream in listener.incoming().take(2) {
            let (client, server) = (stream.unwrap(), TcpStream::connect(server).unwrap());
            for (mut from, mut to) in [(&client, &server), (&server, &client)]
                .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
            {
                std::thread::spawn(move || {
                    let _ = copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
            kept.lock().unwrap().push(client);
        }
    });
    (address, streams)
}

#[test]
fn calls_go_on_over_the_other_addresses_when_one_is_gone() {
    let server = server();
    let (address, streams) = way(server.address());
    let connect = to(&server, vec![address]);
    run(async |reactor, counters| {
        let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
        client.getattr(&client.root()).await.unwrap();
        for stream in streams.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).unwrap();
        }
        // The client notices; until then a call may have gone that way, and comes back after its time.
        while counters.snapshot().event(Event::ConnectFailed) < 2 {
            reactor.sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..40 {
            client.getattr(&client.root()).await.unwrap();
        }
        assert_eq!(counters.snapshot().event(Event::Retransmission), 0);
        client.unmount().await.unwrap();
    });
}
