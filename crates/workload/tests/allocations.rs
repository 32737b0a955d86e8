//! No operation allocates: runs of any length allocate exactly as often.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use benchmaster_builtin::{DataParameters, MetadataParameters, SmallFileReadParameters, WorkloadSpec};
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::model::{Until, Workload};
use benchmaster_units::ByteSize;
use benchmaster_workload::area::WorkArea;
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::calibrate::NullBench;
use benchmaster_workload::conduct::{Alone, Share};
use benchmaster_workload::execute::{Edge, Options, execute};
use benchmaster_workload::program::Program;
use benchmaster_workload::target::{NfsTarget, Target};

/// Counts the allocations of each thread.
struct Counting;

/// Threads whose allocations others can ask for.
const THREADS: usize = 1024;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Place in the table below.
    static PLACE: Cell<Option<usize>> = const { Cell::new(None) };
}

static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Number of each thread, and its allocations.
static TABLE: [(AtomicI32, AtomicU64); THREADS] = [const { (AtomicI32::new(0), AtomicU64::new(0)) }; THREADS];

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    let place = PLACE.get().unwrap_or_else(|| {
        let place = NEXT.fetch_add(1, Ordering::Relaxed) % THREADS;
        // SAFETY: the call has no arguments and cannot fail.
        TABLE[place].0.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        TABLE[place].1.store(0, Ordering::Relaxed);
        PLACE.set(Some(place));
        place
    });
    TABLE[place].1.fetch_add(1, Ordering::Relaxed);
}

/// Allocations so far of the living thread of this process that has this name.
fn allocations_of(name: &str) -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let named = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let number: i32 = tasks.into_iter().find(named)?.file_name().to_str()?.parse().ok()?;
    let place = TABLE.iter().find(|(thread, _)| thread.load(Ordering::Relaxed) == number)?;
    Some(place.1.load(Ordering::Relaxed))
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

/// Operations of the measured phase, and allocations of the client's thread in it.
fn run_over_the_wire(area: &mut WorkArea, flow: &str, iterations: u64) -> (u64, u64) {
    let text = format!(
        "until = {{ iterations = {iterations} }}
         filesets.data = {{ files = 16, size = '64KiB' }}
         [[groups]]
         name = 'g'
         {flow}"
    );
    let workload: Workload = toml::from_str(&text).unwrap();
    let stop = AtomicBool::new(false);
    let options = Options {
        share: Share::all(1),
        stagger: Duration::ZERO,
        neighbours: 1,
        seed: 1,
        fileset_seed: 1,
        interval_ns: 600_000_000_000,
        cache: CacheControl::Keep,
        hook: None,
        max_errors: 1,
        ledgers: std::path::Path::new("/tmp"),
        stop: &stop,
    };
    let mut counts = Vec::new();
    let recording = execute(area, "w", &workload, &options, &mut Alone, None, &mut |progress| {
        if matches!(progress.edge, Some(Edge::Begin | Edge::End)) {
            counts.extend(allocations_of("reactor-0"));
        }
    });
    let recording = recording.unwrap();
    assert_eq!(recording.error_details, [""; 0]);
    let operations = recording.series.iter().map(|series| series.total.count).sum();
    (operations, counts[1] - counts[0])
}

#[test]
fn no_operation_over_the_wire_allocates() {
    let listen = ([127, 0, 0, 1], 0).into();
    let config = ServerConfig { listen, threads: 1, null_data: true, ..ServerConfig::default() };
    let server = Server::start(config).unwrap();
    let read = "setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = '4KiB', offset = 'random' }]";
    let write = "setup = [{ op = 'open', file = 'own', flags = ['write'] }]
         flow = [{ op = 'write', io_size = '4KiB', offset = 'random' }]";
    let stat = "flow = [{ op = 'stat', file = 'random' }]";
    for version in ["2", "3", "4.0", "4.1", "4.2"] {
        let url = format!("nfs://{}/export?version={version}", server.address());
        let target = Target::Nfs(NfsTarget::new(url.parse().unwrap()));
        let mut area = WorkArea::create(&target, "alloc").unwrap();
        // The spare ones are for queues and buffers that happen to need more room once; one for each operation would be
        // thousands.
        for (name, flow, spare) in [
            ("read", read.to_owned(), 8),
            ("many reads", format!("workers = 3\nqueue_depth = 16\n{read}"), 8),
            // What was written and is not yet stable is kept in memory that grows to its size.
            ("write", write.to_owned(), 40),
            ("stable write", write.replace("'write']", "'write', 'sync']"), 8),
            ("stat", stat.to_owned(), 8),
            ("many stats", format!("workers = 5\n{stat}"), 8),
        ] {
            // Queues and tables get their sizes in the first of these.
            let few = run_over_the_wire(&mut area, &flow, 300);
            let many = run_over_the_wire(&mut area, &flow, 1200);
            assert_eq!(many.0, 4 * few.0, "{name}");
            assert!(
                many.1 <= few.1 + spare,
                "version {version}: {} {name} operations allocated {} times, {} of them {}",
                few.0,
                few.1,
                many.0,
                many.1
            );
        }
        area.remove().unwrap();
    }
}
