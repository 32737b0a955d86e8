//! The same seed gives the same operations, on every engine and whatever the timing.

use std::collections::BTreeSet;

use benchmaster_nfs_server::ServerConfig;
use benchmaster_record::model::Workload;
use benchmaster_record::recording::OperationStream;

use crate::bench::{Bench, has_uring, workload};

/// What is drawn: choices, files that come and go, positions; with workers that get into each other's way if they can.
fn mixed() -> Workload {
    workload(
        "until = { iterations = 300 }
         filesets.files = { files = 400, size = '4KiB', prefill = 0.5 }
         filesets.shared = { files = 40, size = '64KiB', sharing = 'shared' }
         filesets.gone = { files = 200, size = 0, sharing = 'shared' }
         [[groups]]
         name = 'g'
         workers = 4
         setup = [{ op = 'open', fileset = 'shared', file = 'own', handle = 'data' }]
         flow = [
             { op = 'read', handle = 'data', io_size = '4KiB', offset = 'random' },
             { choose = [
                 { weight = 3, flow = [
                     { op = 'create', fileset = 'files', flags = ['write', 'exclusive'] },
                     { op = 'write', io_size = '4KiB' },
                     { op = 'close' },
                 ] },
                 { weight = 3, flow = [{ op = 'unlink', fileset = 'files', file = 'random' }] },
                 { weight = 1, flow = [{ op = 'rename', fileset = 'files', file = 'random' }] },
                 { weight = 2, flow = [{ op = 'open', fileset = 'files', file = 'random' }, { op = 'close' }] },
                 { weight = 1, flow = [{ op = 'stat', fileset = 'shared', file = 'random' }] },
             ] },
         ]
         [[groups]]
         name = 'removers'
         workers = 3
         flow = [{ op = 'unlink', fileset = 'gone', file = 'once' }]",
    )
}

fn streams(mut bench: Bench, workload: &Workload, seed: u64) -> (Vec<OperationStream>, u64) {
    bench.clients = 2;
    bench.seed = seed;
    bench.max_errors = 1000;
    let recording = bench.run(workload);
    let hash = recording.operations_hash().unwrap();
    (recording.workers.iter().map(|worker| worker.stream).collect(), hash)
}

fn on_wire() -> Bench {
    Bench::nfs("version=4.1", ServerConfig::default())
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    let workload = mixed();
    let first = streams(Bench::new(), &workload, 7);
    assert_eq!(first.0.len(), 14);
    let distinct: BTreeSet<u64> = first.0.iter().map(|stream| stream.hash).collect();
    assert_eq!(distinct.len(), 14, "workers do different things");
    for _ in 0..2 {
        assert_eq!(streams(Bench::new(), &workload, 7), first, "again");
    }
    assert_eq!(streams(on_wire(), &workload, 7), first, "over the wire");
    let other = streams(Bench::new(), &workload, 8);
    assert_ne!(other.1, first.1, "another seed");
    assert!((0..4).all(|worker| other.0[worker].hash != first.0[worker].hash));
    assert!(first.0[0].first > 300 && first.0[0].first <= OperationStream::FIRST, "{first:?}");
}

#[test]
fn only_the_order_of_the_first_operations_is_kept() {
    let reads = |iterations: u64| {
        workload(&format!(
            "until = {{ iterations = {iterations} }}
             filesets.data = {{ files = 1, size = '1MiB' }}
             [[groups]]
             name = 'g'
             setup = [{{ op = 'open', file = 'own' }}]
             flow = [{{ op = 'read', io_size = '4KiB', offset = 'random' }}]"
        ))
    };
    let of = |iterations| streams(Bench::new(), &reads(iterations), 7).0[0];
    let (all, more, few) = (of(1023), of(1500), of(1022));
    assert_eq!((all.first, all.hash), (1024, more.hash), "the open is the first of them");
    assert_eq!(few.first, 1023);
    assert_ne!(all.all, more.all);
}

#[test]
fn operations_do_not_depend_on_how_many_are_outstanding_at_once() {
    let reads = |io: &str| {
        workload(&format!(
            "until = {{ iterations = 700 }}
             filesets.data = {{ files = 2, size = '1MiB' }}
             [[groups]]
             name = 'g'
             workers = 2
             queue_depth = 16
             io = '{io}'
             setup = [{{ op = 'open', file = 'own' }}]
             flow = [{{ op = 'read', io_size = '4KiB', offset = 'random' }}]"
        ))
    };
    let first = streams(on_wire(), &reads("io_uring"), 7);
    assert_eq!(first.0[0].first, 716, "each of the streams opens the file");
    assert_eq!(streams(on_wire(), &reads("io_uring"), 7), first);
    if has_uring() {
        for _ in 0..2 {
            assert_eq!(streams(Bench::new(), &reads("io_uring"), 7), first, "io_uring");
        }
    } else {
        println!("skipped: the system allows no io_uring")
    }
}

#[test]
fn runs_that_end_by_time_have_no_hash_of_the_whole() {
    let text = "filesets.data = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]";
    let timed = Bench::new().run(&workload(&format!("until = {{ duration = '5ms' }}\n{text}")));
    assert_eq!(timed.operations_hash(), None);
    let warmed = format!("until = {{ iterations = 5 }}\nwarm_up = '5ms'\n{text}");
    assert_eq!(Bench::new().run(&workload(&warmed)).operations_hash(), None);
}
