//! The page cache: readahead, write-back, limits of what is dirty and of requests, and errors of the background.

use std::time::Duration;

use benchmaster_nfs_client::cache::CacheCount;
use benchmaster_nfs_client::mount::{File, Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_server::Server;

use crate::support::embedded::{run, server};

const PAGE: usize = 4096;

async fn mount(reactor: &Reactor, server: &Server, options: &str) -> Mount {
    let port = server.address().port();
    let options: MountOptions =
        format!("nfs://127.0.0.1:{port}/export?version=3&mountport={port}{options}").parse().unwrap();
    Mount::connect(reactor, &options, "paging").await.unwrap()
}

fn calls(mount: &Mount, name: &str) -> u64 {
    mount
        .counters()
        .snapshot()
        .ops()
        .filter(|(op, _)| op.name() == name)
        .map(|(_, counted)| counted.ops)
        .sum()
}

fn content(pages: usize) -> Vec<u8> {
    (0..pages * PAGE).map(|at| (at / 7 + at / PAGE) as u8).collect()
}

async fn put(reactor: &Reactor, server: &Server, data: &[u8]) {
    let mount = mount(reactor, server, "").await;
    let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
    mount.write(&file, data, 0).await.unwrap();
    mount.close(file).await.unwrap();
    mount.unmount().await.unwrap();
}

/// Reads that must give what was written.
async fn read(mount: &Mount, file: &File, data: &[u8], page: usize, pages: usize) {
    let mut buffer = vec![0; pages * PAGE];
    let read = mount.read(file, &mut buffer, (page * PAGE) as u64).await.unwrap();
    let end = data.len().min((page + pages) * PAGE);
    assert!(buffer[..read] == data[page * PAGE..end], "{page}");
}

#[test]
fn a_sequence_is_read_ahead_and_single_pages_without_readahead() {
    let server = server(&[]);
    run(async |reactor, _| {
        let data = content(256);
        put(&reactor, &server, &data).await;
        for (options, reads) in
            [("", 10..=16), ("&read_ahead_kb=0", 256..=256), ("&read_ahead_kb=4096", 1..=7)]
        {
            let mount = mount(&reactor, &server, &format!("&cache=linux{options}")).await;
            let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
            for page in 0..256 {
                read(&mount, &file, &data, page, 1).await;
            }
            assert!(reads.contains(&calls(&mount, "READ")), "{options}: {}", calls(&mount, "READ"));
            let counts = mount.cache_counts().unwrap();
            assert_eq!(counts.get(CacheCount::Read), 256);
            assert_eq!(counts.get(CacheCount::Ahead), counts.get(CacheCount::AheadUsed), "{options}");
            assert_eq!(counts.get(CacheCount::Cached), 256);
            // All of it is there now.
            let before = calls(&mount, "READ");
            read(&mount, &file, &data, 100, 100).await;
            mount.close(file).await.unwrap();
            assert_eq!(calls(&mount, "READ"), before);
            mount.unmount().await.unwrap();
        }
    });
}

#[test]
fn random_reads_waste_with_the_rule_of_2_6_32_only() {
    let server = server(&[]);
    run(async |reactor, _| {
        let data = content(4096);
        put(&reactor, &server, &data).await;
        let received = async |rule: &str| {
            let options = format!("&cache=linux&read_ahead_kb=15360&readahead={rule}");
            let mount = mount(&reactor, &server, &options).await;
            let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
            let mut random = 5u64;
            for _ in 0..400 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                read(&mount, &file, &data, 1 + (random >> 33) as usize % 4000, 1).await;
            }
            mount.close(file).await.unwrap();
            let ahead = mount.cache_counts().unwrap().get(CacheCount::Ahead);
            mount.unmount().await.unwrap();
            ahead
        };
        let (new, old) = (received("6.1").await, received("2.6.32").await);
        assert!(new < 200 && old > 4 * new.max(100), "{new} {old}");
    });
}

#[test]
fn no_more_is_cached_than_fits_and_what_is_used_again_stays() {
    let server = server(&[]);
    run(async |reactor, _| {
        let data = content(512);
        put(&reactor, &server, &data).await;
        let mount = mount(&reactor, &server, "&cache=linux&memory=1MiB").await;
        let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
        for page in 0..512 {
            read(&mount, &file, &data, page, 1).await;
            read(&mount, &file, &data, 3, 1).await;
            assert!(mount.cache_counts().unwrap().get(CacheCount::Cached) <= 256);
        }
        assert!(mount.cache_counts().unwrap().get(CacheCount::Evicted) >= 256);
        let before = calls(&mount, "READ");
        read(&mount, &file, &data, 3, 1).await;
        assert_eq!(calls(&mount, "READ"), before, "the page that is used again and again");
        read(&mount, &file, &data, 20, 1).await;
        assert!(calls(&mount, "READ") > before, "one that was used once");
        mount.close(file).await.unwrap();
        mount.unmount().await.unwrap();
    });
}

#[test]
fn write_back_begins_at_the_lower_limit_and_writers_wait_at_the_upper_one() {
    let server = server(&["WRITE delay=2ms"]);
    run(async |reactor, _| {
        for throttle in ["pace", "flush"] {
            let limits = "&memory=64MiB&dirty_background_bytes=256KiB&dirty_bytes=1MiB&wsize=64KiB";
            let options = format!("&cache=linux{limits}&dirty_throttle={throttle}");
            let mount = mount(&reactor, &server, &options).await;
            let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
            let data = content(1024);
            let counts = mount.cache_counts().unwrap();
            let mut least = u64::MAX;
            for (at, chunk) in data.chunks(4 * PAGE).enumerate() {
                mount.write(&file, chunk, (at * 4 * PAGE) as u64).await.unwrap();
                let dirty = counts.get(CacheCount::Dirty) + counts.get(CacheCount::Writeback);
                assert!(dirty <= 256 + 4, "{throttle}: {dirty}");
                if at == 8 {
                    assert_eq!(calls(&mount, "WRITE"), 0, "less than the lower limit");
                }
                if counts.get(CacheCount::Throttled) > 0 {
                    least = least.min(dirty);
                }
            }
            assert!(calls(&mount, "WRITE") >= 8 && counts.get(CacheCount::Throttled) > 0, "{throttle}");
            if throttle == "flush" {
                assert!(least <= 64 + 4, "held back until no more than the lower limit is dirty: {least}");
            }
            mount.close(file).await.unwrap();
            assert_eq!(counts.get(CacheCount::Dirty) + counts.get(CacheCount::Writeback), 0);
            let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
            read(&mount, &file, &data, 0, 1024).await;
            mount.close(file).await.unwrap();
            mount.unmount().await.unwrap();
        }
    });
}

#[test]
fn what_is_dirty_for_long_is_written_without_being_asked() {
    let server = server(&[]);
    run(async |reactor, _| {
        let mount = mount(&reactor, &server, "&cache=linux&dirty_expire=50ms&dirty_writeback=20ms").await;
        let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
        mount.write(&file, b"old", 0).await.unwrap();
        assert_eq!(calls(&mount, "WRITE"), 0);
        while calls(&mount, "COMMIT") == 0 {
            reactor.sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(calls(&mount, "WRITE"), 1);
        mount.close(file).await.unwrap();
        assert_eq!(calls(&mount, "WRITE"), 1, "nothing was left to do");
        mount.unmount().await.unwrap();
    });
}

#[test]
fn an_error_of_the_background_is_the_error_of_the_next_fsync_or_close_of_each_open_file() {
    let server = server(&["WRITE error=NFS3ERR_NOSPC count=1"]);
    run(async |reactor, _| {
        let mount = mount(&reactor, &server, "&cache=linux&dirty_expire=20ms&dirty_writeback=10ms").await;
        let first = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
        let second = mount.open(b"f", &OpenFlags::WRITE).await.unwrap();
        mount.write(&first, b"lost?", 0).await.unwrap();
        while calls(&mount, "WRITE") < 2 {
            reactor.sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(mount.fsync(&first).await.unwrap_err().errno(), libc::ENOSPC);
        mount.fsync(&first).await.unwrap();
        mount.close(first).await.unwrap();
        assert_eq!(mount.close(second).await.unwrap_err().errno(), libc::ENOSPC);
        // The data were kept, and written at the second try.
        let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
        let mut data = [0; 5];
        assert_eq!((mount.read(&file, &mut data, 0).await, &data), (Ok(5), b"lost?"));
        mount.close(file).await.unwrap();
        mount.unmount().await.unwrap();
    });
}

#[test]
fn limits_of_requests_make_a_writer_flush_again_and_again() {
    let server = server(&[]);
    run(async |reactor, _| {
        let data = content(1000);
        for (limits, commits) in [
            ("&max_request_soft=192&max_request_hard=256", 5..=11),
            ("&max_request_hard=256", 3..=20),
            ("", 1..=1),
        ] {
            let options =
                format!("&cache=linux&wsize=8KiB&write_behind=on&request_list=sorted&send_lock=on{limits}");
            let mount = mount(&reactor, &server, &options).await;
            let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
            for (at, chunk) in data.chunks(2 * PAGE).enumerate() {
                mount.write(&file, chunk, (at * 2 * PAGE) as u64).await.unwrap();
            }
            mount.close(file).await.unwrap();
            let found = (calls(&mount, "WRITE"), calls(&mount, "COMMIT"));
            assert!(found.0 >= 500 && commits.contains(&found.1), "{limits}: {found:?}");
            let file = mount.open(b"f", &OpenFlags::READ).await.unwrap();
            read(&mount, &file, &data, 0, 1000).await;
            mount.close(file).await.unwrap();
            mount.unmount().await.unwrap();
        }
    });
}
