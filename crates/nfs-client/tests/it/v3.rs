//! Version 3 against the embedded server, over sockets.

use std::net::{IpAddr, Ipv4Addr};

use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::v3::{Client, Connect};
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server};
use crate::support::operations::{Can, every_operation};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn to(server: &Server) -> Connect {
    Connect { port: Some(server.address().port()), ..Connect::new(LOCALHOST, "/export") }
}

#[test]
fn every_operation_over_tcp() {
    let server = server(&[]);
    run(async |reactor, counters| {
        let client = Client::connect(&reactor, &counters, &to(&server)).await.unwrap();
        assert_eq!((client.limits().max_read, client.limits().max_write), (1 << 20, 1 << 20));
        every_operation(&client, Can::ALL).await;
        client.unmount().await.unwrap();
        let counted = counters.snapshot();
        for op in [ops::mount::MNT, ops::mount::UMNT, ops::v3::FSINFO, ops::v3::PATHCONF] {
            assert_eq!((counted.op(op).ops, counted.op(op).errors), (1, 0), "{op:?}");
        }
        assert_eq!(counters.outstanding(), 0);
    });
}

#[test]
fn every_operation_over_udp_and_over_several_connections() {
    let server = server(&[]);
    for change in
        [(|connect: &mut Connect| connect.transport = Transport::Udp) as fn(&mut Connect), |connect| {
            (connect.connections, connect.read_size, connect.write_size) = (4, 65_536, 32_768)
        }]
    {
        run(async |reactor, counters| {
            let mut connect = to(&server);
            change(&mut connect);
            let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
            assert_eq!(client.limits().max_write, 32_768);
            every_operation(&client, Can::ALL).await;
            client.unmount().await.unwrap();
        });
    }
}
