//! Sizes of reads and writes that are drawn.

use crate::bench::{Bench, count, total, workload};

#[test]
pub(crate) fn reads_have_the_sizes_of_their_distribution() {
    let mut bench = Bench::new();
    let (recording, trace) = bench.trace(&workload(
        "until = { iterations = 2000 }
         filesets.data = { files = 1, size = '1MiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', offset = 'random', io_size = { distribution = 'weighted', sizes = [
             { size = '4KiB', weight = 3 }, { size = '64KiB', weight = 1 },
         ] } }]",
    ));
    let large = trace.iter().filter(|record| record.bytes == 65_536).count() as u64;
    let small = trace.iter().filter(|record| record.bytes == 4096).count() as u64;
    assert_eq!(small + large, 2000);
    // Binomial with mean 500 and standard deviation 19.
    assert!((420..580).contains(&large), "{large}");
    assert_eq!(total(&recording, "read").bytes, large * 65_536 + small * 4096);
    assert!(trace.iter().all(|record| record.offset % 4096 == 0));
}

#[test]
pub(crate) fn sequential_writes_of_drawn_sizes_leave_no_gaps_and_are_proved() {
    let mut bench = Bench::new();
    let sizes = [
        "{ distribution = 'uniform', min = '1KiB', max = '20KiB' }",
        "{ distribution = 'gamma', mean = '16KiB' }",
        "{ distribution = 'log-normal', median = '8KiB', sigma = 1.0 }",
    ];
    for (number, size) in sizes.into_iter().enumerate() {
        let recording = bench.run(&workload(&format!(
            "verify = true
             until = {{ iterations = 1 }}
             filesets.data{number} = {{ files = 1, size = 500000, prefill = 0.0 }}
             [[groups]]
             name = 'g'
             flow = [
                 {{ op = 'create', file = 'own', flags = ['write'] }},
                 {{ repeat = 'end-of-file', flow = [{{ op = 'write', io_size = {size} }}] }},
                 {{ op = 'close' }},
                 {{ op = 'open', file = 'own' }},
                 {{ repeat = 'end-of-file', flow = [{{ op = 'read', io_size = {size} }}] }},
                 {{ op = 'close' }},
             ]"
        )));
        assert_eq!(total(&recording, "write").bytes, 500_000);
        // All files are read once more in the end.
        let read = (total(&recording, "read").bytes, recording.verified_bytes);
        assert_eq!(read, (500_000, Some(1_000_000)), "{size}");
        assert!(count(&recording, "write") > 5);
    }
}

#[test]
pub(crate) fn the_same_seed_draws_the_same_sizes_and_places() {
    let drawn = || {
        let (_, mut trace) = Bench::new().trace(&workload(
            "until = { iterations = 200 }
             filesets.data = { files = 1, size = '1MiB' }
             [[groups]]
             name = 'g'
             setup = [{ op = 'open', file = 'own' }]
             flow = [{ op = 'read', offset = { zipf = { exponent = 0.9 } },
                       io_size = { distribution = 'gamma', mean = '8KiB', shape = 2.0 } }]",
        ));
        trace.sort_by_key(|record| record.start_ns);
        trace.iter().map(|record| (record.offset, record.bytes)).collect::<Vec<_>>()
    };
    let first = drawn();
    assert_eq!(first.len(), 200);
    assert_eq!(first, drawn());
}
