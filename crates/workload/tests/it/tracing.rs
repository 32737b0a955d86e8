//! Traces: every call, exactly once, or the run fails.

use benchmaster_record::recording::TraceRecord;
use benchmaster_workload::execute::ExecuteError;

use crate::bench::{Bench, Sink, workload};

#[test]
pub(crate) fn the_trace_holds_every_operation_of_the_recording() {
    let mut bench = Bench::new();
    bench.clients = 2;
    bench.hook(format!("rm {}", bench.path("data/c1/f00000003").display()));
    bench.sink = Some(Sink::default());
    let recording = bench
        .try_run(&workload(
            "until = { iterations = 5000 }
             filesets.data = { files = 4, size = '16KiB' }
             [[groups]]
             name = 'g'
             workers = 2
             flow = [
                 { op = 'open', file = 'next' },
                 { op = 'read', io_size = '4KiB', offset = 'random' },
                 { op = 'close' },
             ]",
        ))
        .unwrap();
    let trace = bench.sink.take().unwrap().records;
    let errors: u64 = recording.series.iter().map(|series| series.total.errors).sum();
    assert_eq!(errors, 2500, "one of the four files of one client is gone");
    for (worker, recorded) in recording.workers.iter().enumerate() {
        for part in &recorded.series {
            let of = |r: &&_| {
                let r: &TraceRecord = r;
                r.worker as usize == worker && u32::from(r.series) == part.series
            };
            let records: Vec<_> = trace.iter().filter(of).collect();
            let good: Vec<_> = records.iter().filter(|r| r.error == 0).collect();
            assert_eq!(good.len() as u64, part.count);
            assert_eq!((records.len() - good.len()) as u64, part.errors);
            assert_eq!(good.iter().map(|r| u64::from(r.bytes)).sum::<u64>(), part.bytes);
            assert_eq!(good.iter().map(|r| r.latency_ns).sum::<u64>(), part.sum_ns);
            assert_eq!(good.first().map(|r| r.latency_ns), part.first_latency_ns);
            assert!(
                records.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns),
                "in order for each worker"
            );
            assert!(records.iter().all(|r| r.error == 0 || i32::from(r.error) == libc::ENOENT));
        }
    }
    let recorded: u64 = recording.series.iter().map(|series| series.total.count + series.total.errors).sum();
    assert_eq!(trace.len() as u64, recorded);
}

#[test]
pub(crate) fn a_trace_that_cannot_be_written_ends_the_run() {
    let mut bench = Bench::new();
    bench.sink = Some(Sink { fails_after: Some(20_000), ..Sink::default() });
    let result = bench.try_run(&workload(
        "until = { duration = '10min' }
         filesets.data = { files = 3, size = '4KiB' }
         [[groups]]
         name = 'g'
         workers = 3
         flow = [{ op = 'stat', file = 'own' }]",
    ));
    let Err(ExecuteError::Trace(error)) = result else { panic!("{result:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(bench.sink.unwrap().records.len() < 30_000, "nothing more was written");
}
