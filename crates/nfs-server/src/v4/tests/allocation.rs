//! The common requests allocate nothing once buffers have grown.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use benchmaster_nfs_proto::xdr::Encoder;

use super::*;
use crate::reply::Reply;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more, and needs none.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and all memory comes from `System`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Repeats a compound, each time with the slot's next sequence number, and counts allocations of the later rounds.
fn allocations(minor: u32, ops: &[Argop<'_>]) -> usize {
    const ROUNDS: usize = 100;
    let server = populated();
    let mut c = match minor {
        0 => Client::new(&server, 0, 1),
        _ => Client::with_session(&server, minor, 1),
    };
    assert_eq!(c.run_at("/export/file", &[write(0, &[7; 8192])]).status(), Nfsstat4::OK);
    let handle = c.handle("/export/file");
    let (mut args, mut reply) = (Encoder::new(), Reply::new());
    let mut before = 0;
    for round in 0..2 * ROUNDS {
        if round == ROUNDS {
            before = ALLOCATIONS.with(Cell::get);
        }
        args.clear();
        let sequence = (minor > 0).then(|| c.sequence());
        let count = ops.len() + 1 + usize::from(sequence.is_some());
        args.put(&CompoundHeader { tag: "".into(), minorversion: minor, count: count as u32 });
        for op in sequence.iter().chain([&putfh(&handle)]).chain(ops) {
            args.put(op);
        }
        reply.clear();
        assert!(c.call(PROC_COMPOUND, args.buffer(), &mut reply).is_ok());
        assert_eq!(reply.encoder.buffer()[..4], [0; 4]);
    }
    assert!(before > 0, "making the files must have been counted");
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn reading_and_asking_for_attributes_does_not_allocate() {
    let attributes = getattr(&[1, 3, 4, 8, 20, 33, 35, 36, 37, 45, 47, 52, 53, 55]);
    for minor in 0..3 {
        assert_eq!(allocations(minor, &[read(0, 4096)]), 0, "READ in 4.{minor}");
        assert_eq!(allocations(minor, &[attributes]), 0, "GETATTR in 4.{minor}");
        assert_eq!(allocations(minor, &[access(0x1f)]), 0, "ACCESS in 4.{minor}");
    }
}

fn access(access: u32) -> Argop<'static> {
    Argop::Access(AccessArgs { access })
}
