//! Version 2 against the embedded server, over sockets.

use std::net::{IpAddr, Ipv4Addr};

use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::types::{Create, LockKind, Range, SetAttributes, Stability};
use benchmaster_nfs_client::v2::Client;
use benchmaster_nfs_client::v3::Connect;
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server};
use crate::support::operations::{Can, every_operation, how};

fn to(server: &Server) -> Connect {
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Connect { port: Some(server.address().port()), ..Connect::new(localhost, "/export") }
}

#[test]
fn every_operation_over_tcp_and_udp() {
    let server = server(&[]);
    for transport in [Transport::Tcp, Transport::Udp] {
        run(async |reactor, counters| {
            let connect = Connect { transport, ..to(&server) };
            let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
            assert_eq!((client.limits().max_read, client.limits().max_write), (8192, 8192));
            every_operation(&client, Can { nanoseconds: false, unstable: false, ..Can::ALL }).await;
            client.unmount().await.unwrap();
            let counted = counters.snapshot();
            for op in [ops::mount::MNT, ops::mount::UMNT] {
                assert_eq!((counted.op(op).ops, counted.op(op).errors), (1, 0), "{op:?}");
            }
        });
    }
}

#[test]
fn beyond_32_bits_files_are_too_big() {
    let server = server(&[]);
    run(async |reactor, counters| {
        let client = Client::connect(&reactor, &counters, &to(&server)).await.unwrap();
        let file = client.open(&client.root(), b"f", &how(Create::IfAbsent)).await.unwrap().file;
        let too_big = |error: NfsError| assert_eq!(error.errno(), libc::EFBIG, "{error}");
        let set = SetAttributes { size: Some(1 << 32), ..SetAttributes::default() };
        too_big(client.setattr(&Client::handle(&file), None, &set).await.unwrap_err());
        too_big(client.write(&file, b"1234", (1 << 32) - 4, Stability::File).await.unwrap_err());
        too_big(client.read(&file, &mut [0], 1 << 32).await.unwrap_err());
        let range = Range { offset: 1 << 32, length: 1 };
        too_big(client.lock(&file, 1, LockKind::Write, range, false).await.unwrap_err());
        assert_eq!(client.getattr(&Client::handle(&file)).await.unwrap().size, 0);
        // Longer than the protocol's names and paths.
        let error = client.lookup(&client.root(), &[b'n'; 256]).await.unwrap_err();
        assert_eq!(error, NfsError::NameTooLong);
        let error = client.symlink(&client.root(), b"s", &[b'n'; 1025]).await.unwrap_err();
        assert_eq!(error, NfsError::NameTooLong);
    });
}
