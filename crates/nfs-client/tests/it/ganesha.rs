//! Every version against nfs-ganesha.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use benchmaster_nfs_client::counters::Event;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::types::{Create, LockKind, OpenHow, Range, Stability};
use benchmaster_nfs_client::v3::{self, Connect};
use benchmaster_nfs_client::v4;

use crate::support::embedded::run;
use crate::support::ganesha::{Fsal, Ganesha, inside};
use crate::support::operations::{Can, every_operation, how};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What its back end in memory lacks.
fn can(fsal: Fsal) -> Can {
    let all = fsal == Fsal::Vfs;
    Can { links: all, server_time: all, data: all, locks: Ganesha::locks(), ..Can::ALL }
}

fn v3(fsal: Fsal) {
    let server = Ganesha::start(fsal);
    let ports = Connect {
        port: Some(server.nfs),
        mount_port: Some(server.mount),
        lock_port: Some(server.nlm),
        ..Connect::new(LOCALHOST, Ganesha::path(fsal))
    };
    // MOUNT and the lock manager are elsewhere; the portmapper knows where.
    let asking = Connect { mount_port: None, lock_port: None, ..ports.clone() };
    let unknown = Connect { port: None, ..asking.clone() };
    let udp = Connect { transport: Transport::Udp, ..ports.clone() };
    for connect in [ports, asking, unknown, udp] {
        run(async |reactor, counters| {
            let client = v3::Client::connect(&reactor, &counters, &connect).await.unwrap();
            every_operation(&client, can(fsal)).await;
            client.unmount().await.unwrap();
        });
    }
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_3_in_memory() {
    inside("ganesha::version_3_in_memory", || v3(Fsal::Mem));
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_3_on_a_file_system() {
    inside("ganesha::version_3_on_a_file_system", || v3(Fsal::Vfs));
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_3_over_a_restart() {
    inside("ganesha::version_3_over_a_restart", || {
        if !Ganesha::locks() {
            println!("skipped: rpc.statd is not installed (package nfs-common)");
            return;
        }
        let mut server = Ganesha::start_with(Fsal::Vfs, "Lease_Lifetime = 4; Grace_Period = 5;");
        let named = |identity: &str| Connect {
            port: Some(server.nfs),
            mount_port: Some(server.mount),
            lock_port: Some(server.nlm),
            identity: identity.to_owned(),
            ..Connect::new(LOCALHOST, Ganesha::path(Fsal::Vfs))
        };
        let (one, two) = (named("one"), named("two"));
        run(async |reactor, counters| {
            let client = v3::Client::connect(&reactor, &counters, &one).await.unwrap();
            let how =
                OpenHow { read: true, write: true, create: Create::Exclusive, truncate: false, mode: 0o600 };
            let file = client.open(&client.root(), b"file", &how).await.unwrap().file;
            // A new server is in its grace period.
            let range = Range { offset: 10, length: 20 };
            client.lock(&file, 1, LockKind::Write, range, true).await.unwrap();
            let written = client.write(&file, b"data", 0, Stability::Unstable).await.unwrap();
            server.restart();
            let committed = client.commit(&file, Range { offset: 0, length: 0 }).await.unwrap();
            assert!(committed != written.verifier, "{committed:?}");
            while counters.snapshot().event(Event::LockReclaimed) == 0 {
                assert_eq!(counters.snapshot().event(Event::StateLost), 0);
                reactor.sleep(Duration::from_millis(20)).await;
            }
            let other = v3::Client::connect(&reactor, &counters, &two).await.unwrap();
            let refused = other.lock(&file, 1, LockKind::Read, range, false).await.unwrap_err();
            assert_eq!(refused.errno(), libc::EAGAIN, "{refused}");
            assert!(counters.snapshot().event(Event::Grace) > 0);
            client.unlock(&file, 1, range).await.unwrap();
            other.lock(&file, 1, LockKind::Read, range, false).await.unwrap();
            other.unlock(&file, 1, range).await.unwrap();
            client.remove(&client.root(), b"file").await.unwrap();
            other.unmount().await.unwrap();
            client.unmount().await.unwrap();
        });
    });
}

fn v4(fsal: Fsal) {
    let server = Ganesha::start(fsal);
    for minor in 0..3 {
        let connect = v4::Connect {
            ..v4::Connect::new(
                (LOCALHOST, server.nfs).into(),
                Ganesha::PSEUDO,
                minor,
                "a test",
                [minor as u8; 8],
            )
        };
        for nconnect in [1, 3] {
            let connect = v4::Connect { nconnect, ..connect.clone() };
            run(async |reactor, counters| {
                let client = v4::Client::connect(&reactor, &counters, &connect).await.unwrap();
                every_operation(&client, Can { locks: true, ..can(fsal) }).await;
                client.unmount().await.unwrap();
            });
        }
    }
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_4_in_memory() {
    inside("ganesha::version_4_in_memory", || v4(Fsal::Mem));
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_4_on_a_file_system() {
    inside("ganesha::version_4_on_a_file_system", || v4(Fsal::Vfs));
}

/// Open files and locks are had again when the server comes back, within its grace period.
#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_4_over_a_restart() {
    use benchmaster_nfs_client::counters::Event;
    use benchmaster_nfs_client::types::{LockKind, Range, Stability};
    inside("ganesha::version_4_over_a_restart", || {
        let mut server = Ganesha::start_with(Fsal::Vfs, "Lease_Lifetime = 5; Grace_Period = 5;");
        for minor in 0..3 {
            let address = (LOCALHOST, server.nfs).into();
            let identity = format!("a test of 4.{minor}");
            let connect = v4::Connect::new(address, Ganesha::PSEUDO, minor, &identity, [minor as u8; 8]);
            let server = &mut server;
            run(async |reactor, counters| {
                let client = v4::Client::connect(&reactor, &counters, &connect).await.unwrap();
                let root = client.root();
                let how = how(Create::IfAbsent);
                let file = client.open(&root, b"file", &how).await.unwrap().file;
                client.write(&file, b"text", 0, Stability::File).await.unwrap();
                let range = Range { offset: 0, length: 10 };
                client.lock(&file, 1, LockKind::Write, range, false).await.unwrap();
                server.restart();
                client.write(&file, b"TEXT", 0, Stability::File).await.unwrap();
                client.unlock(&file, 1, range).await.unwrap();
                client.close(file).await.unwrap();
                let counted = counters.snapshot();
                let events = [Event::ClientRecovered, Event::OpenReclaimed, Event::LockReclaimed];
                assert_eq!(events.map(|event| counted.event(event)), [1, 1, 1], "{counted:?}");
                assert_eq!(counted.event(Event::StateLost), 0);
                client.unmount().await.unwrap();
            });
        }
    });
}
