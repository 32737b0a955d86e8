//! What the file system costs: bytes of memory per empty file, nanoseconds per operation, from few files to many.
//!
//! `cargo run --release -p benchmaster-nfs-server --example fs_cost [FILES]` (10,000,000 without an argument).

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement, run by hand")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use benchmaster_nfs_server::cred::Credentials;
use benchmaster_nfs_server::fs::{FileSystem, FsConfig, NewFile, Node, PageSlice, RemoveKind, SetAttr, Time};

/// Counts the bytes that are allocated.
struct Counting;

static HELD: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all work is the system allocator's; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as u64, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NOW: Time = Time { seconds: 1_700_000_000, nanos: 0 };

fn main() {
    let most: u64 = std::env::args().nth(1).map_or(10_000_000, |files| files.parse().unwrap());
    println!(
        "{:>10} {:>6} {:>11} {:>9}  ns of processor time per operation",
        "files", "dirs", "bytes/file", "RSS/file"
    );
    let mut files = 10;
    while files <= most {
        one_directory(files);
        files *= 100.min(most / files).max(10);
    }
    many_directories(most.min(1_000_000), 100);
    data();
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn new_fs() -> FileSystem {
    FileSystem::new(FsConfig::default(), 0o755, NOW)
}

fn create(fs: &FileSystem, dir: Node, name: &str, new: NewFile<'_>) -> Node {
    let root = Credentials::root();
    fs.create(&root, dir, name.as_bytes(), new, &SetAttr::default(), None, NOW).unwrap().attr.node
}

/// Processor time of this thread in nanoseconds: others on the machine count less than on the wall clock.
fn spent() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds per call.
fn time(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let start = spent();
    (0..calls).for_each(&mut call);
    (spent() - start) / calls as f64
}

/// Numbers in no order, each below `most`.
fn scatter(number: u64, most: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % most
}

fn name(buffer: &mut String, number: u64) -> &str {
    buffer.clear();
    write!(buffer, "file-{number:07}").unwrap();
    buffer
}

fn one_directory(files: u64) {
    let fs = new_fs();
    let root = Credentials::root();
    let (held, rss) = (HELD.load(Ordering::Relaxed), resident());
    let (dir, mut text) = (fs.root(), String::new());
    let mut slowest = 0;
    let create = time(files, |number| {
        let start = Instant::now();
        create(&fs, dir, name(&mut text, number), NewFile::Regular);
        slowest = slowest.max(start.elapsed().as_micros());
    });
    let bytes = (HELD.load(Ordering::Relaxed) - held) as f64 / files as f64;
    let rss = resident().saturating_sub(rss) as f64 / files as f64;
    let lookup = time(1_000_000, |number| {
        black_box(fs.lookup(&root, dir, name(&mut text, scatter(number, files)).as_bytes()).unwrap());
    });
    let attr = time(1_000_000, |number| {
        black_box(fs.attr(Node { ino: 2 + scatter(number, files), generation: 1 }).unwrap());
    });
    let mut entries = 0;
    let start = spent();
    fs.read_dir(&root, dir, 0, true, NOW, &mut |entry| {
        entries += entry.name.len() as u64;
        true
    })
    .unwrap();
    let list = (spent() - start) / files as f64;
    let rounds = files.min(1_000_000);
    let rename = time(rounds, |number| {
        let old = name(&mut text, number).to_owned();
        fs.rename(&root, dir, old.as_bytes(), dir, format!("{old}.new").as_bytes(), NOW).unwrap();
    });
    let remove = time(files, |number| {
        let mut name = name(&mut text, number).to_owned();
        if number < rounds {
            name += ".new";
        }
        fs.remove(&root, dir, name.as_bytes(), RemoveKind::File, NOW).unwrap();
    });
    println!(
        "{files:>10} {:>6} {bytes:>11.0} {rss:>9.0}  create {create:.0} (slowest {slowest} us), lookup {lookup:.0}, getattr \
         {attr:.0}, list {list:.0}, rename {rename:.0}, remove {remove:.0}",
        1
    );
}

fn many_directories(dirs: u64, each: u64) {
    let dirs = dirs / each;
    let fs = new_fs();
    let held = HELD.load(Ordering::Relaxed);
    let mut text = String::new();
    let create = time(dirs, |number| {
        let dir = create(&fs, fs.root(), name(&mut text, number), NewFile::Directory);
        for number in 0..each {
            create(&fs, dir, name(&mut text, number), NewFile::Regular);
        }
    }) / (each + 1) as f64;
    let bytes = (HELD.load(Ordering::Relaxed) - held) as f64 / (dirs * each) as f64;
    println!("{:>10} {dirs:>6} {bytes:>11.0} {:>9}  create {create:.0}", dirs * each, "");
}

fn data() {
    let fs = new_fs();
    let root = Credentials::root();
    let file = create(&fs, fs.root(), "data", NewFile::Regular);
    const SIZE: u64 = 256 << 20;
    let block = vec![7; 1 << 20];
    let fill = time(SIZE >> 20, |number| {
        fs.write(&root, file, number << 20, &block, NOW).unwrap();
    });
    let mut out: Vec<PageSlice> = Vec::new();
    for size in [4096_u64, 65_536, 1 << 20] {
        let blocks = SIZE / size;
        let calls = CALLS.load(Ordering::Relaxed);
        let mut pieces = 0;
        let read = time(200_000, |number| {
            fs.read(file, scatter(number, blocks) * size, size as u32, &mut out, NOW).unwrap();
            pieces = out.len();
        });
        out.clear();
        let calls = CALLS.load(Ordering::Relaxed) - calls;
        let writes = (1 << 30) / size;
        let write = time(writes, |number| {
            let at = scatter(number, blocks) * size;
            fs.write(&root, file, at, &block[..size as usize], NOW).unwrap();
        });
        println!(
            "{size:>8} B: read {read:.0} ns ({pieces} pieces, {calls} allocations in 200,000), write {write:.0} ns ({:.1} GB/s)",
            size as f64 / write
        );
    }
    println!("first write of 1 MiB: {:.0} us ({:.1} GB/s)", fill / 1000.0, (1 << 20) as f64 / fill);
    let append = create(&fs, fs.root(), "append", NewFile::Regular);
    let small = time(65_536, |number| {
        fs.write(&root, append, number * 4096, &block[..4096], NOW).unwrap();
    });
    println!("append of 4 KiB: {small:.0} ns");
}
