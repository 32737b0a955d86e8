//! Once every series is known, ticks allocate nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use benchmaster_telemetry::sampling::{
    Metric, Places, Recorder, Sampler, SamplingConfig, Sink, Watched, samplers,
};

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; counting does not allocate, because the counter is
// initialised by a constant and needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MILLISECOND: i64 = 1_000_000;

/// Allocations of the readings of a sampler after the first ones, all within a second.
fn allocations(sampler: &mut dyn Sampler) -> u64 {
    let mut recorder = Recorder::new(sampler.name());
    let mut read = |number: i64| {
        let mut reading = recorder.reading(number * 10 * MILLISECOND);
        let _ = sampler.read(&mut reading);
    };
    // Buffers grow to the length of texts, and the first chunk of the log is had.
    (0..10).for_each(&mut read);
    let before = ALLOCATIONS.get();
    (10..30).for_each(&mut read);
    ALLOCATIONS.get() - before
}

#[test]
fn ticks_allocate_nothing() {
    let recorded = include_str!("../src/mountstats/samples/linux-6.1.txt");
    let mounts = tempfile::tempdir().unwrap();
    std::fs::write(mounts.path().join("mountstats"), recorded).unwrap();
    let mountinfo = include_str!("../src/mountstats/samples/linux-6.1-mountinfo.txt");
    std::fs::write(mounts.path().join("mountinfo"), mountinfo).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let _connection = std::net::TcpStream::connect(server).unwrap();
    let config = SamplingConfig {
        watch: Watched {
            mount: Some("/mnt/4.1".into()),
            server_ports: vec![server.port()],
            ..Watched::default()
        },
        places: Places { mounts: Some(mounts.path().into()), ..Places::default() },
        ..SamplingConfig::default()
    };
    let counts: Vec<_> =
        samplers(&config).iter_mut().map(|sampler| (sampler.name(), allocations(sampler.as_mut()))).collect();
    // Instances that come in these milliseconds, on a host with other work, may cost a few.
    let allocating: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    assert!(allocating.is_empty(), "{allocating:?}");
    assert_eq!(counts.len(), 16);
}

#[test]
fn the_log_allocates_in_chunks() {
    let mut recorder = Recorder::new("test");
    let mut tick = |number: i64| {
        let mut out = recorder.reading(number);
        for instance in ["a", "b", "c", "d"] {
            out.put(Metric::counter("count", "1"), instance, number as f64);
        }
    };
    (0..10).for_each(&mut tick);
    let before = ALLOCATIONS.get();
    (10..100_000).for_each(&mut tick);
    // 400,000 values in chunks of 32,768, and the times of readings, which double their room.
    let allocations = ALLOCATIONS.get() - before;
    assert!(allocations <= 12 + 8, "{allocations}");
}
