//! No operation allocates: runs of any length allocate exactly as often.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use benchmaster_units::ByteSize;
use benchmaster_workload::builtin::{
    DataParameters, MetadataParameters, SmallFileReadParameters, WorkloadSpec,
};
use benchmaster_workload::calibrate::NullBench;
use benchmaster_workload::model::Until;
use benchmaster_workload::program::Program;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: everything is passed on to the system's allocator; counting does not allocate, because the counter is
// initialised by a constant and needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Operations and allocations of a run of so many repetitions of the flow.
fn run(spec: &WorkloadSpec, iterations: u64) -> (u64, u64) {
    let mut workload = spec.expand("w").unwrap();
    workload.until = Until { iterations: Some(iterations), ..Until::default() };
    let program = Program::compile(&workload).unwrap();
    loop {
        let mut bench = NullBench::new(&program, &workload, 0).unwrap();
        let before = ALLOCATIONS.get();
        let (operations, nanos) = bench.run(Duration::from_secs(600));
        let allocations = ALLOCATIONS.get() - before;
        // Once a second a worker hands in what it recorded, which allocates: a machine under heavy load may need longer.
        if nanos < 1_000_000_000 {
            return (operations, allocations);
        }
    }
}

#[test]
fn no_operation_allocates() {
    let data = DataParameters {
        io_size: ByteSize::kib(64),
        file_size: ByteSize::mib(16),
        ..DataParameters::default()
    };
    let small = SmallFileReadParameters { files: 100, ..SmallFileReadParameters::default() };
    for (spec, each) in [
        (WorkloadSpec::RandomRead(data.clone()), 1),
        (WorkloadSpec::SequentialRead(data.clone()), 1),
        (WorkloadSpec::RandomWrite(data.clone()), 1),
        (WorkloadSpec::SequentialWrite(data), 1),
        (WorkloadSpec::SmallFileRead(small), 3),
        (WorkloadSpec::Metadata(MetadataParameters::default()), 6),
    ] {
        let (few, many) = (run(&spec, 50), run(&spec, 5000));
        assert_eq!((few.0, many.0), (50 * each, 5000 * each), "{}", spec.use_name());
        assert_eq!(few.1, many.1, "allocations of {}", spec.use_name());
        assert!(few.1 > 0, "the counter counts");
    }
}
