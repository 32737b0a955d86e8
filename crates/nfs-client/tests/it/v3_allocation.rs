//! Operations of versions 2 and 3 allocate nothing once everything has its size.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};

use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::types::{AccessBits, Create, OpenHow, Range, Stability};
use benchmaster_nfs_client::v3::Connect;
use benchmaster_nfs_client::{v2, v3};

use crate::support::allocations;
use crate::support::embedded::{run, server};
use crate::support::futures::all;

/// Tasks at work at the same time.
const TASKS: usize = 16;

/// Rounds of every operation by several tasks, of which only the last ones may not allocate.
async fn rounds<P: Protocol>(client: &P, sizes: &[usize]) {
    let root = client.root();
    let how = OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };
    let mut files = Vec::new();
    for number in 0..TASKS {
        let name = format!("file {number}").into_bytes();
        let file = client.open(&root, &name, &how).await.unwrap().file;
        files.push((name, file, vec![7u8; *sizes.last().unwrap()]));
    }
    // The tasks run in turns: counted is from when the last one is warm until the first one ends.
    let (warm, measured) = (200, 200);
    let (warm_tasks, before, after) = (Cell::new(0), Cell::new(0), Cell::new(None));
    let (warm_tasks, before, after) = (&warm_tasks, &before, &after);
    let tasks = files.iter_mut().map(|(name, file, buffer)| async move {
        for round in 0..warm + measured {
            if round == warm {
                warm_tasks.set(warm_tasks.get() + 1);
                before.set(allocations::allocations());
            }
            client.getattr(&P::handle(file)).await.unwrap();
            client.lookup(&root, name).await.unwrap();
            client.access(&P::handle(file), AccessBits(AccessBits::ALL)).await.unwrap();
            for &size in sizes {
                let written = client.write(file, &buffer[..size], 0, Stability::Unstable).await.unwrap();
                assert_eq!(written.len, size);
                assert_eq!(client.read(file, &mut buffer[..size], 0).await.unwrap().len, size);
            }
            client.commit(file, Range { offset: 0, length: 0 }).await.unwrap();
        }
        if after.get().is_none() {
            assert_eq!(warm_tasks.get(), TASKS, "one ended before all were warm");
            after.set(Some(allocations::allocations()));
        }
    });
    all(tasks).await;
    assert!(before.get() > 0);
    let allocations = after.get().unwrap() - before.get();
    // More than twenty thousand operations; a buffer may still reach a new largest size.
    assert!(allocations < 10, "{allocations} allocations");
}

#[test]
fn operations_allocate_nothing() {
    let server = server(&[]);
    run(async |reactor, counters| {
        let mut connect = Connect::new(IpAddr::V4(Ipv4Addr::LOCALHOST), "/export");
        connect.port = Some(server.address().port());
        let client = v2::Client::connect(&reactor, &counters, &connect).await.unwrap();
        rounds(&client, &[512, 8192]).await;
        connect.connections = 2;
        let client = v3::Client::connect(&reactor, &counters, &connect).await.unwrap();
        rounds(&client, &[512, 8192]).await;
    });
}
