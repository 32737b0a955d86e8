//! Where services are when nobody says: what the portmapper says, and where there is none. In a network namespace, as the
//! portmapper has one port only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::types::{Create, LockKind, OpenHow, Range};
use benchmaster_nfs_client::v2;
use benchmaster_nfs_client::v3::{self, Connect};
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server_with};
use crate::support::ganesha::alone;

/// Mounts, locks, and returns how often the portmapper was asked.
fn asked(connect: &Connect) -> u64 {
    run(async |reactor, counters| {
        let client = v3::Client::connect(&reactor, &counters, connect).await.unwrap();
        let how = OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };
        let file = client.open(&client.root(), b"file", &how).await.unwrap().file;
        let range = Range { offset: 0, length: 1 };
        client.lock(&file, 1, LockKind::Write, range, false).await.unwrap();
        client.unlock(&file, 1, range).await.unwrap();
        client.unmount().await.unwrap();
        let client = v2::Client::connect(&reactor, &counters, connect).await.unwrap();
        client.getattr(&client.root()).await.unwrap();
        client.unmount().await.unwrap();
        let counted = counters.snapshot();
        assert_eq!(counted.op(ops::mount::UMNT).errors, 0);
        counted.op(ops::portmap::GETPORT).ops + counted.op(ops::portmap::GETADDR).ops
    })
}

fn at(ip: IpAddr, port: u16, portmap: bool) -> Server {
    server_with(&[], |config| {
        config.listen = SocketAddr::new(ip, port);
        config.portmap = portmap.then_some(SocketAddr::new(ip, 111));
    })
}

#[test]
fn the_portmapper_is_asked_where_no_port_is_given() {
    alone("v3_portmap::the_portmapper_is_asked_where_no_port_is_given", || {
        for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let server = at(ip, 0, true);
            let connect = Connect::new(ip, "/export");
            for transport in [Transport::Tcp, Transport::Udp] {
                // NFS, MOUNT and the lock manager, and NFS and MOUNT of version 2.
                assert_eq!(asked(&Connect { transport, ..connect.clone() }), 5);
            }
            // Nobody is asked about a port that serves all of it.
            let given = Connect { port: Some(server.address().port()), ..connect };
            assert_eq!(asked(&given), 0);
        }
    });
}

#[test]
fn without_a_portmapper_all_is_at_the_port_of_nfs() {
    alone("v3_portmap::without_a_portmapper_all_is_at_the_port_of_nfs", || {
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let _server = at(localhost, 2049, false);
        // An address where nobody listens is passed over.
        let addresses = vec![IpAddr::V6(Ipv6Addr::LOCALHOST), localhost];
        assert_eq!(asked(&Connect { addresses, ..Connect::new(localhost, "/export") }), 0);
    });
}
