//! io_uring does the same as system calls.

use benchmaster_record::model::Workload;

use crate::bench::{Bench, count, has_uring, total, workload};

fn random(io: &str, op: &str, workers: u32, depth: u32, iterations: u64) -> Workload {
    workload(&format!(
        "until = {{ iterations = {iterations} }}
         verify = true
         filesets.data = {{ files = 1, size = '256KiB' }}
         [[groups]]
         name = 'g'
         workers = {workers}
         queue_depth = {depth}
         io = '{io}'
         setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
         flow = [{{ op = '{op}', io_size = '4KiB', offset = 'random' }}]"
    ))
}

#[test]
fn any_depth_does_as_much_and_what_is_written_is_right() {
    if !has_uring() {
        let error = Bench::new().try_run(&random("io_uring", "read", 1, 2, 10)).unwrap_err().to_string();
        assert!(error.contains("cannot create an io_uring"), "{error}");
        return;
    }
    for (io, depth) in [("sync", 1), ("io_uring", 1), ("io_uring", 32)] {
        for op in ["read", "write"] {
            let mut bench = Bench::new();
            let recording = bench.run(&random(io, op, 2, depth, 1000));
            assert_eq!(
                (count(&recording, op), total(&recording, op).bytes),
                (2000, 2000 * 4096),
                "{io} {depth}"
            );
            let proved = recording.verified_bytes.unwrap();
            let expected = if op == "read" { 2000 * 4096 } else { 256 << 10 };
            assert_eq!(proved, expected, "{io} {depth} {op}");
        }
    }
}

#[test]
fn lanes_share_one_sequential_position() {
    if !has_uring() {
        return;
    }
    let mut bench = Bench::new();
    let (_, trace) = bench.trace(&workload(
        "until = { iterations = 64 }
         filesets.data = { files = 1, size = '256KiB' }
         [[groups]]
         name = 'g'
         queue_depth = 8
         io = 'io_uring'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = '4KiB' }]",
    ));
    let mut offsets: Vec<u64> = trace.iter().map(|record| record.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..64).map(|n| n * 4096).collect::<Vec<_>>(), "each block once");
}

#[test]
fn errors_arrive_as_they_are() {
    if !has_uring() {
        return;
    }
    let mut bench = Bench::new();
    let file = bench.path("data/c0/f00000000");
    bench.hook(format!("rm {0} && ln -s /dev/full {0}", file.display()));
    let mut broken = random("io_uring", "write", 1, 4, 1000);
    broken.verify = false.into();
    let recording = bench.try_run(&broken).unwrap();
    let written = &recording.series[0];
    assert_eq!(written.errors.keys().collect::<Vec<_>>(), ["ENOSPC"]);
    // The limit is 10 in a row; four were outstanding.
    assert!((10..=13).contains(&written.total.errors), "{:?}", written.errors);
}

#[test]
fn an_open_loop_sleeps_between_operations() {
    if !has_uring() {
        return;
    }
    let mut bench = Bench::new();
    let mut workload = random("io_uring", "read", 1, 4, 20);
    workload.groups[0].rate = Some("100/s".parse().unwrap());
    let recording = bench.run(&workload);
    assert_eq!(count(&recording, "read"), 20);
    assert!(recording.length_ns >= 190_000_000);
    let (user, system) = recording.workers[0].cpu_ns.unwrap();
    assert!(user + system < recording.length_ns / 2, "{user} {system} of {}", recording.length_ns);
}
