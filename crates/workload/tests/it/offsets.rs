//! Positions in files, and files, are picked as a step says.

use std::collections::BTreeMap;

use benchmaster_record::recording::{Recording, TraceRecord};

use crate::bench::{Bench, count, total, workload};

/// Offsets and bytes of a label's operations in the order in which they began.
fn places(recording: &Recording, trace: &[TraceRecord], label: &str) -> Vec<(u64, u64)> {
    let series = recording.series.iter().position(|series| series.key.label == label).unwrap();
    let mut records: Vec<_> = trace.iter().filter(|record| usize::from(record.series) == series).collect();
    records.sort_by_key(|record| record.start_ns);
    records.into_iter().map(|record| (record.offset, record.bytes.into())).collect()
}

/// One worker reads a file of `size` bytes by `flow`, so often.
fn reads(size: u64, iterations: u64, flow: &str) -> Vec<(u64, u64)> {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(&format!(
        "until = {{ iterations = {iterations} }}
         filesets.data = {{ files = 1, size = {size} }}
         [[groups]]
         name = 'g'
         setup = [{{ op = 'open', file = 'own' }}]
         flow = [{flow}]"
    )));
    places(&recording, &trace, "read")
}

#[test]
pub(crate) fn in_reverse_a_file_is_read_from_its_end_and_again() {
    let read = "{ op = 'read', io_size = '4KiB', offset = 'reverse' }";
    assert_eq!(
        reads(10_000, 5, read),
        [(8192, 1808), (4096, 4096), (0, 4096), (8192, 1808), (4096, 4096)],
        "positions are multiples of the size"
    );
    let whole = format!("{{ repeat = 'end-of-file', flow = [{read}] }}");
    assert_eq!(reads(12_288, 2, &whole).len(), 6);
}

#[test]
pub(crate) fn strides_leave_out_what_lies_between() {
    let read = "{ op = 'read', io_size = 1024, offset = { strided = { stride = '4KiB' } } }";
    let expected = [(0, 1024), (4096, 1024), (8192, 1024), (0, 1024)];
    assert_eq!(reads(10_240, 4, read), expected);
}

#[test]
pub(crate) fn a_place_can_be_given() {
    let read = "{ op = 'read', io_size = 1024, offset = { at = 9500 } }";
    assert_eq!(reads(10_000, 2, read), [(9500, 500), (9500, 500)]);
}

#[test]
pub(crate) fn popular_positions_are_read_more_often_and_a_hot_part_as_often_as_it_says() {
    let read = "{ op = 'read', io_size = '1KiB', offset = { zipf = { exponent = 1.2 } } }";
    let all = reads(100 << 10, 2000, read);
    assert!(all.iter().all(|&(offset, bytes)| offset % 1024 == 0 && bytes == 1024 && offset < 100 << 10));
    let mut counts = BTreeMap::new();
    all.iter().for_each(|&(offset, _)| *counts.entry(offset).or_insert(0) += 1);
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // The first of 100 has a share of 0.276: 553 of 2,000, with a standard deviation of 20.
    assert!((470..640).contains(&counts[0]), "{counts:?}");
    assert!(counts.len() > 60, "{}", counts.len());

    let read = "{ op = 'read', io_size = '1KiB', offset = { hotspot = { share = 0.1, accesses = 0.9 } } }";
    let all = reads(100 << 10, 2000, read);
    let hot = all.iter().filter(|(offset, _)| *offset < 10 << 10).count();
    // Binomial with mean 1,800 and standard deviation 13.
    assert!((1740..1860).contains(&hot), "{hot}");
    assert!(all.iter().any(|(offset, _)| *offset > 90 << 10));
}

const SEGMENTS: &str = "filesets.data = { files = 1, size = '96KiB', sharing = 'shared', prefill = 0.0 }";

#[test]
pub(crate) fn workers_of_all_clients_write_blocks_of_their_own_and_read_those_of_others() {
    let mut bench = Bench::new();
    bench.clients = 2;
    let offset = "offset = { segments = { block = '8KiB'";
    let written = workload(&format!(
        "verify = true
         until = {{ iterations = 1 }}
         {SEGMENTS}
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{{ op = 'create', file = 'own', flags = ['write'] }}]
         flow = [
             {{ repeat = 'end-of-file', flow = [{{ op = 'write', io_size = '4KiB', {offset} }} }} }}] }},
             {{ op = 'fsync' }},
         ]"
    ));
    let (recording, trace) = bench.trace(&written);
    // 4 writers, 3 segments of a block each, 2 writes per block.
    assert_eq!((count(&recording, "write"), total(&recording, "write").bytes), (24, 96 << 10));
    let mut of_workers: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let writes = recording.series.iter().position(|series| series.key.label == "write").unwrap();
    for record in trace.iter().filter(|record| usize::from(record.series) == writes) {
        of_workers.entry(record.worker).or_default().push(record.offset >> 10);
    }
    let mut starts: Vec<Vec<u64>> = of_workers.into_values().collect();
    starts.sort();
    let block = |turn: u64| -> Vec<u64> {
        (0..3).flat_map(|segment| [32 * segment + 8 * turn, 32 * segment + 8 * turn + 4]).collect()
    };
    assert_eq!(starts, [block(0), block(1), block(2), block(3)]);
    assert_eq!(bench.size("data/shared/f00000000"), 96 << 10);

    let read = workload(&format!(
        "verify = true
         until = {{ iterations = 1 }}
         {SEGMENTS}
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{{ op = 'open', file = 'own' }}]
         flow = [{{ repeat = 'end-of-file', flow = [
             {{ op = 'read', io_size = '4KiB', {offset}, shift = 2 }} }} }}
         ] }}]"
    ));
    let (recording, trace) = bench.trace(&read);
    assert_eq!((count(&recording, "read"), recording.verified_bytes), (24, Some(96 << 10)));
    let firsts: Vec<u64> = (0..4)
        .map(|worker| trace.iter().filter(|r| r.worker == worker).map(|r| r.offset >> 10).min().unwrap())
        .collect();
    assert_eq!(firsts, [16, 24, 0, 8], "each reads what a worker of the other client wrote");
}

#[test]
pub(crate) fn a_file_too_small_for_all_workers_leaves_some_without_work() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 5 }
         filesets.data = { files = 1, size = '10KiB' }
         [[groups]]
         name = 'g'
         workers = 3
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = '4KiB', offset = { segments = { block = '8KiB' } } }]",
    ));
    let counts: Vec<u64> =
        recording.workers.iter().map(|w| w.series.iter().map(|part| part.count).sum()).collect();
    assert_eq!(counts, [5, 5, 0]);
}

#[test]
pub(crate) fn popular_files_are_picked_more_often() {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 1000 }
         filesets.data = { files = 20, size = '1KiB', directory_width = 5 }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat', file = { zipf = { exponent = 1.0 } } }]",
    ));
    assert_eq!(count(&recording, "stat"), 1000);
    let of = |file| trace.iter().filter(|record| record.file == file).count();
    // Shares 0.278 and 0.0139: means 278 and 13.9, standard deviations 14 and 3.7.
    assert!((210..350).contains(&of(0)), "{}", of(0));
    assert!((1..35).contains(&of(19)), "{}", of(19));
}

#[test]
pub(crate) fn neighbours_look_at_each_others_files() {
    let mut bench = Bench::new();
    bench.clients = 3;
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 4 }
         filesets.data = { files = 24, size = '1KiB', sharing = 'shared' }
         [[groups]]
         name = 'g'
         workers = 2
         flow = [{ op = 'stat', file = 'neighbour' }]",
    ));
    assert_eq!(count(&recording, "stat"), 24);
    for (number, worker) in recording.workers.iter().enumerate() {
        let mut files: Vec<u32> =
            trace.iter().filter(|r| r.worker as usize == number).map(|r| r.file).collect();
        files.sort_unstable();
        let first = (worker.client + 1) % 3 * 2 + worker.worker;
        assert_eq!(files, (0..4).map(|turn| first + 6 * turn).collect::<Vec<_>>(), "worker {number}");
    }
}
