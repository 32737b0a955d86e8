//! Operations of version 4 allocate nothing once everything has its size.

use std::cell::Cell;
use std::pin::Pin;

use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::types::{AccessBits, Create, OpenHow, Range, Stability};
use benchmaster_nfs_client::v4::{Client, Connect};

use crate::support::allocations;
use crate::support::embedded::{run, server};
use crate::support::futures::all;

const HOW: OpenHow =
    OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };

/// Allocations of the last rounds of operations by several tasks, on as many files.
async fn allocated(client: &Client, tasks: usize) -> u64 {
    let root = client.root();
    // Counted is from when the last task is warm until it has done as much again. Tasks need not be equally fast.
    let (warm, measured) = (100, 100);
    let (warm_tasks, before, after) = (Cell::new(0), Cell::new(0), Cell::new(None));
    let (warm_tasks, before, after) = (&warm_tasks, &before, &after);
    let task = |number: usize| async move {
        let name = format!("file {number}").into_bytes();
        let file = client.open(&root, &name, &HOW).await.unwrap().file;
        let mut buffer = vec![7; 8192];
        let (mut round, mut last) = (0, false);
        while after.get().is_none() {
            round += 1;
            if round == warm {
                warm_tasks.set(warm_tasks.get() + 1);
                last = warm_tasks.get() == tasks;
                before.set(allocations::allocations());
            }
            if last && round == warm + measured {
                after.set(Some(allocations::allocations()));
            }
            client.getattr(&file.handle()).await.unwrap();
            client.lookup(&root, &name).await.unwrap();
            client.access(&file.handle(), AccessBits(AccessBits::ALL)).await.unwrap();
            for size in [512, 8192] {
                let written = client.write(&file, &buffer[..size], 0, Stability::Unstable).await.unwrap();
                assert_eq!(written.len, size);
                assert_eq!(client.read(&file, &mut buffer[..size], 0).await.unwrap().len, size);
            }
            client.commit(&file, Range { offset: 0, length: 0 }).await.unwrap();
            let again = client.open(&root, &name, &HOW).await.unwrap().file;
            client.close(again).await.unwrap();
        }
        client.close(file).await.unwrap();
        // OPEN and CLOSE of the last user of a file.
        for _ in 0..50 {
            let again = client.open(&root, &name, &HOW).await.unwrap().file;
            client.close(again).await.unwrap();
        }
    };
    all((0..tasks).map(|number| -> Pin<Box<dyn Future<Output = ()>>> { Box::pin(task(number)) })).await;
    assert!(before.get() > 0);
    after.get().unwrap() - before.get()
}

#[test]
fn operations_allocate_nothing() {
    for minor in 0..3 {
        let server = server(&[]);
        run(async |reactor, counters| {
            let connect =
                Connect { slots: 12, ..Connect::new(server.address(), "/export", minor, "a test", [1; 8]) };
            let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
            let many = allocated(&client, 16).await;
            // Of more than fifteen thousand operations. A buffer may still reach a new largest size; in version 4.0 as many
            // open owners are made as opens meet.
            assert!(many < if minor == 0 { 100 } else { 10 }, "{many} allocations in version 4.{minor}");
            let root = client.root();
            let (mut before, mut last) = (0, 0);
            for round in 0..200 {
                if round == 100 {
                    before = allocations::allocations();
                }
                let file = client.open(&root, b"file 1", &HOW).await.unwrap().file;
                client.close(file).await.unwrap();
                last = allocations::allocations();
            }
            let open_and_close = last - before;
            assert!(
                open_and_close < 3,
                "{open_and_close} allocations of OPEN and CLOSE in version 4.{minor}"
            );
            client.unmount().await.unwrap();
        });
    }
}
