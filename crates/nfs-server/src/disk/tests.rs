//! The model against closed forms, on its own clock.

use std::time::Duration;

use super::device::{Device, Nanos, Request};
use super::model::{Access, Job, Model, Stability};
use super::*;
use crate::handle::FileId;

const SECOND: f64 = 1e9;
const FILE: FileId = FileId { export: 1, ino: 20, generation: 1 };

fn model(text: &str) -> Model {
    Model::new(text.parse().unwrap(), ExportMode::Sync, 1, 7)
}

fn file(ino: u64) -> FileId {
    FileId { ino, ..FILE }
}

/// Lets time pass until jobs are done: when, and which.
fn next_done(model: &mut Model) -> (Nanos, Vec<Job>) {
    loop {
        let at = model.next();
        model.advance(at);
        let done = model.take_done(0);
        if !done.is_empty() {
            return (at, done);
        }
    }
}

/// The time of an access that starts at `now`.
fn time(model: &mut Model, now: Nanos, access: Access) -> Nanos {
    let Some(job) = model.access(now, None, access) else { return 0 };
    assert!(model.hold(job, 0));
    next_done(model).0 - now
}

fn read(offset: u64, len: u64) -> Access {
    Access::Read { file: FILE, offset, len, size: 1 << 40 }
}

fn write(ino: u64, offset: u64, len: u64, stability: Stability) -> Access {
    Access::Write { file: file(ino), offset, len, stability, grew: false }
}

/// One after the other: the mean time of an access.
fn mean(model: &mut Model, count: u64, access: impl Fn(u64) -> Access) -> f64 {
    let mut now = 0;
    for n in 0..count {
        now += time(model, now, access(n));
    }
    now as f64 / count as f64
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() < tolerance, "{value} instead of {expected}");
}

/// A place that no other comes near: neither in memory nor next to the last.
fn scattered(n: u64) -> u64 {
    (n * 7919 % 65_536 + 1) << 24
}

#[test]
fn random_reads_of_a_hard_disk_take_seek_half_a_turn_and_transfer() {
    let mut disk = model("hdd,seek=5ms,rotation=8ms,rate=100MB/s");
    let took = mean(&mut disk, 4000, |n| read(scattered(n), 4096));
    assert_near(took, (0.005 + 0.004 + 4096.0 / 100e6) * SECOND, 0.01);
    let report = disk.report();
    assert_eq!((report.reads, report.cache_hits, report.cache_misses), (4000, 0, 4000));
}

#[test]
fn random_reads_of_flash_scale_with_its_channels_up_to_its_rate() {
    for (channels, per_second) in [(1, 1.0 / 120e-6), (4, 4.0 / 120e-6), (64, 100e6 / 4096.0)] {
        let mut disk = model(&format!("ssd,seek=79us,rate=100MB/s,channels={channels}"));
        let (mut done, mut begun, mut now) = (0, 0, 0);
        while done < 4000 {
            while begun < done + 128 {
                let job = disk.access(now, None, read(scattered(begun), 4096)).unwrap();
                disk.hold(job, 0);
                begun += 1;
            }
            let (at, jobs) = next_done(&mut disk);
            (now, done) = (at, done + jobs.len() as u64);
        }
        // One channel: 79 µs and 41 µs for each; a few overlap those, until the transfers are the limit.
        let expected = if channels == 4 { f64::min(4.0 / 79e-6, 100e6 / 4096.0) } else { per_second };
        assert_near(done as f64 / now as f64 * SECOND, expected, 0.03);
    }
}

#[test]
fn sequential_reads_have_the_rate_of_the_disk() {
    let mut disk = model("hdd,rate=100MB/s");
    let took = mean(&mut disk, 4000, |n| read(n * 65_536, 65_536));
    assert_near(65_536.0 / took * SECOND, 100e6, 0.02);
}

#[test]
fn what_is_in_memory_costs_nothing_and_what_was_evicted_does() {
    let mut disk = model("hdd,memory=4MiB,readahead=0B");
    assert!(time(&mut disk, 0, read(0, 1 << 20)) > 0);
    let mut now = SECOND as Nanos;
    assert_eq!(time(&mut disk, now, read(0, 1 << 20)), 0);
    for n in 1..6 {
        now += time(&mut disk, now, read(n << 24, 1 << 20));
    }
    assert!(time(&mut disk, now, read(0, 4096)) > 0, "4 MiB were read meanwhile");
}

#[test]
fn the_queue_is_that_of_m_d_1() {
    // Poisson arrivals at flash with one channel: W = ρ/(2(1 − ρ)) · S beyond the service.
    let mut disk = model("ssd,seek=959040ns,rate=100MB/s,channels=1");
    let (service, load) = (1e6, 0.7);
    let mut random = 88_172_645_463_325_252_u64;
    let (mut now, mut held) = (0.0, Vec::new());
    let mut started = std::collections::HashMap::new();
    let (mut total, mut count) = (0.0, 0);
    for n in 0..40_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let uniform = (random >> 11) as f64 / (1u64 << 53) as f64;
        now -= (1.0 - uniform).ln() * service / load;
        while !held.is_empty() && disk.next() <= now as Nanos {
            let at = disk.next();
            disk.advance(at);
            for job in disk.take_done(0) {
                held.retain(|other| *other != job);
                total += at as f64 - started.remove(&job).unwrap_or_default();
                count += 1;
            }
        }
        let job = disk.access(now as Nanos, None, read((n + 1) << 24, 4096)).unwrap();
        disk.hold(job, 0);
        held.push(job);
        started.insert(job, now);
    }
    assert_near(total / f64::from(count), service * (1.0 + load / (2.0 * (1.0 - load))), 0.05);
}

#[test]
fn the_cache_of_the_disk_takes_writes_until_it_is_full() {
    let config: DiskConfig = "hdd,seek=0s,rotation=8ms,rate=10MB/s,cache=10MiB".parse().unwrap();
    let mut disk = Device::new(config, 7);
    let bytes = 1 << 20;
    for id in 0..60 {
        disk.submit(0, Request { id, write: true, through: false, position: id * bytes, bytes });
    }
    disk.flush(0, 60);
    let mut done = Vec::new();
    while let Some(at) = disk.next() {
        done.extend(disk.completed(at).map(|id| (id, at)));
    }
    let at = |id: u64| done.iter().find(|(found, _)| *found == id).unwrap().1 as f64;
    // As many as fit at once, the others at the rate of the medium, and the flush when the first ten are on it.
    assert_eq!((done.len(), at(9)), (61, 0.0));
    assert!(at(10) > 0.0);
    let each = bytes as f64 / 10e6 * SECOND;
    assert_near(at(59) - at(19), 40.0 * each, 0.01);
    assert_near(at(60), 10.0 * each, 0.02);
}

#[test]
fn dirty_data_throttles_writers_to_the_rate_of_the_disk() {
    let mut disk = model("hdd,rate=10MB/s,memory=100MiB");
    let (len, mut now) = (1 << 20, 0);
    let mut free = 0;
    for n in 0..200 {
        let took = time(&mut disk, now, write(30, n * len, len, Stability::Memory));
        free += u64::from(took == 0 && free == n);
        now += took;
    }
    // A fifth of 100 MiB, and then the disk's 10 MB/s.
    assert!((20..=22).contains(&free), "{free}");
    assert_near((200 - free) as f64 * len as f64 / now as f64 * SECOND, 10e6, 0.1);
}

#[test]
fn one_synchronous_writer_commits_with_every_write() {
    let mut disk = model("hdd,seek=8ms,rotation=8ms,rate=150MB/s");
    let took = mean(&mut disk, 2000, |n| write(30, n * 65_536, 65_536, Stability::File));
    // Data elsewhere, the journal elsewhere, and a turn later its commit block.
    let transfer = (65_536.0 + 8192.0 + 4096.0) / 150e6;
    assert_near(took, (2.0 * (0.008 + 0.004) + 0.008 + transfer) * SECOND, 0.02);
    let report = disk.report();
    assert_eq!((report.transactions, report.requested, report.handles), (2000, 2000, 2000));
    assert_eq!((report.journal_blocks, report.metadata_blocks), (3 * 2000, 2000));
    assert_eq!((report.data_blocks, report.asked_bytes), (16 * 2000, 65_536 * 2000));
    assert_eq!((report.writes, report.dirty_bytes), (3 * 2000, 0));
}

#[test]
fn concurrent_writers_share_commits() {
    let per_write = |writers: u64| {
        let mut disk = model("ssd");
        let mut of = std::collections::HashMap::new();
        let begin = |disk: &mut Model, now, ino, of: &mut std::collections::HashMap<Job, u64>| {
            let job = disk.access(now, None, write(ino, 0, 4096, Stability::File)).unwrap();
            disk.hold(job, 0);
            of.insert(job, ino);
        };
        for n in 0..writers {
            begin(&mut disk, 0, 100 * n, &mut of);
        }
        let mut done = 0;
        while done < 1000 {
            let (now, jobs) = next_done(&mut disk);
            done += jobs.len();
            for job in jobs {
                begin(&mut disk, now, of[&job], &mut of);
            }
        }
        let report = disk.report();
        report.transactions as f64 / report.handles as f64
    };
    assert_near(per_write(1), 1.0, 0.01);
    assert!(per_write(8) < 0.3, "{}", per_write(8));
}

#[test]
fn asynchronous_exports_answer_at_once_and_lose_data() {
    let mut disk = Model::new("hdd".parse().unwrap(), ExportMode::Async, 1, 7);
    for access in [
        write(30, 0, 65_536, Stability::File),
        Access::Commit { file: file(30) },
        Access::Names { directory: file(2) },
        Access::Attributes { file: file(30) },
    ] {
        assert_eq!(disk.access(0, None, access), None, "{access:?}");
    }
    assert_eq!(disk.report().dirty_bytes, 65_536);
    disk.advance(4_900_000_000);
    assert_eq!((disk.report().transactions, disk.report().dirty_bytes), (0, 65_536));
    // The periodic commit has two inodes' blocks, the directory's entries and two more, with descriptor and commit block;
    // and half a minute later the data is old.
    disk.advance(6_000_000_000);
    let report = disk.report();
    assert_eq!((report.transactions, report.requested, report.journal_blocks), (1, 0, 7));
    disk.advance(40_000_000_000);
    assert_eq!(disk.report().dirty_bytes, 0);
}

#[test]
fn a_job_of_several_accesses_waits_for_all() {
    let mut disk = model("hdd");
    let job = disk.access(0, None, read(1 << 24, 4096));
    assert_eq!(disk.access(0, job, read(2 << 24, 4096)), job);
    let job = job.unwrap();
    disk.hold(job, 0);
    next_done(&mut disk);
    assert_eq!(disk.report().reads, 2);
    assert!(!disk.hold(job, 0), "nothing is left of it");
}

#[test]
fn elevators_serve_a_crowd_of_neighbours_in_order() {
    let took = |order: &str| {
        let mut disk = model(&format!("hdd,readahead=0B,order={order}"));
        let jobs = (0..64).filter_map(|n| disk.access(0, None, read(n * 37 % 64 * 4096, 4096)));
        let jobs: Vec<Job> = jobs.collect();
        jobs.iter().for_each(|job| assert!(disk.hold(*job, 0)));
        let (mut done, mut last) = (0, 0);
        while done < jobs.len() {
            let (at, now) = next_done(&mut disk);
            (last, done) = (at, done + now.len());
        }
        Duration::from_nanos(last)
    };
    assert!(took("elevator") < took("fifo") / 8, "{:?} {:?}", took("elevator"), took("fifo"));
}
