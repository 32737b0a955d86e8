//! Servers that answer nonsense: every operation ends, without a panic, and in bounded memory.

use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::types::{AccessBits, Create, LockKind, OpenHow, Range, SetAttributes, Stability};

mod between;
mod damage;
mod endless;
mod nonsense;

/// More than the messages and buffers of a few connections at their longest.
const BOUND: usize = 64 << 20;

/// Number of operations of [`operate`].
const OPERATIONS: u32 = 20;

/// One operation. Whether it fails is the server's luck. `wait`: for a lock that another client has.
async fn operate<P: Protocol>(client: &P, file: &P::File, number: u32, wait: bool) {
    let root = client.root();
    let (name, range) = (&b"name"[..], Range { offset: 0, length: 1 });
    let how = |create| OpenHow { read: true, write: true, create, truncate: true, mode: 0o600 };
    match number {
        0 => drop(client.lookup(&root, name).await),
        1 => drop(client.getattr(&root).await),
        2 => drop(
            client.setattr(&root, None, &SetAttributes { mode: Some(0o755), ..Default::default() }).await,
        ),
        3 => drop(client.access(&root, AccessBits(AccessBits::ALL)).await),
        4..=6 => {
            let create = [Create::No, Create::IfAbsent, Create::Exclusive][number as usize - 4];
            if let Ok(opened) = client.open(&root, name, &how(create)).await {
                let _ = client.close(opened.file).await;
            }
        }
        7 | 8 => {
            let mut buffer = vec![0; if number == 7 { 8192 } else { 65_536 }];
            if let Ok(read) = client.read(file, &mut buffer, 0).await {
                assert!(read.len <= buffer.len());
            }
        }
        9 => {
            let data = vec![1; client.limits().max_write.min(40_000) as usize];
            if let Ok(written) = client.write(file, &data, 0, Stability::Unstable).await {
                assert!(written.len <= data.len());
            }
        }
        10 => drop(client.commit(file, range).await),
        11 => drop(client.lock(file, 1, LockKind::Write, range, wait).await),
        12 => drop(client.unlock(file, 1, range).await),
        13 => drop(client.mkdir(&root, name, 0o700).await),
        14 => drop(client.symlink(&root, name, b"target").await),
        15 => drop(client.readlink(&root).await),
        16 => drop(client.link(&P::handle(file), &root, name).await),
        17 => drop(client.remove(&root, name).await.and(client.rmdir(&root, name).await)),
        18 => drop(client.rename((&root, name), (&root, b"other")).await),
        _ => {
            let mut entries = 0;
            for plus in [false, true] {
                let listed = client.readdir(&root, plus, &mut |_| entries += 1).await;
                assert!(entries < 100_000, "{listed:?}");
            }
            let _ = client.space().await;
        }
    }
}
