//! A mount without cache allocates nothing per operation once everything has its size.

use benchmaster_nfs_client::buffer::Buffer;
use benchmaster_nfs_client::mount::{File, Mount, OpenFlags};

use crate::support::allocations;
use crate::support::embedded::{run, server};
use crate::support::futures::all;

/// Tasks at work at the same time.
const TASKS: usize = 8;

/// Writes copies and references, makes stable, reads, looks.
async fn round(mount: &Mount, file: &File, path: &[u8], buffer: &mut [u8], large: &mut Buffer) {
    for piece in 0..8 {
        assert_eq!(mount.write(file, buffer, piece * buffer.len() as u64).await, Ok(buffer.len()));
        mount.renew(large);
        large.fill(piece as u8);
        mount.write_buffer(file, large, 0..large.len(), 65_536).await.unwrap();
    }
    mount.fsync(file).await.unwrap();
    mount.write(file, buffer, 0).await.unwrap();
    assert_eq!(mount.read(file, buffer, 0).await, Ok(buffer.len()));
    mount.stat_file(file).await.unwrap();
    mount.stat(path).await.unwrap();
}

#[test]
fn nothing_is_allocated_per_operation() {
    for version in ["2", "3", "4.0", "4.1", "4.2"] {
        let server = server(&[]);
        run(async |reactor, _| {
            let url = format!("nfs://127.0.0.1:{}/export?version={version}", server.address().port());
            let mount = Mount::connect(&reactor, &url.parse().unwrap(), "test").await.unwrap();
            mount.create_dirs(b"a/b").await.unwrap();
            let mut allocated = Vec::new();
            for _ in 0..5 {
                let tasks = (0..TASKS as u64).map(|number| {
                    let mount = &mount;
                    async move {
                        let path = format!("a/b/{number}");
                        let mut buffer = vec![number as u8; 4096];
                        // Of a size that is kept by reference; in version 2 the largest write.
                        let mut large = Buffer::new(if version == "2" { 8 << 10 } else { 16 << 10 });
                        let flags = OpenFlags { read: true, truncate: false, ..OpenFlags::CREATE };
                        let file = mount.open(path.as_bytes(), &flags).await.unwrap();
                        for _ in 0..20 {
                            round(mount, &file, path.as_bytes(), &mut buffer, &mut large).await;
                        }
                        mount.close(file).await.unwrap();
                    }
                });
                let before = allocations::allocations();
                all(tasks).await;
                allocated.push(allocations::allocations() - before);
            }
            // Making the tasks, their paths and buffers, and opening and closing; 160 rounds of 20 operations add nothing.
            let least = allocated.iter().min().unwrap();
            assert!(*least <= 8 * TASKS as u64, "{version}: {allocated:?}");
            mount.unmount().await.unwrap();
        });
    }
}
