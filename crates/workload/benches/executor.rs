//! The executor's own cost: operations per second and core with the null engine and full recording.
//!
//! `cargo bench -p benchmaster-workload --bench executor [-- PART_OF_A_NAME]`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Duration;

use benchmaster_builtin::{
    DataParameters, FileCreationParameters, FileServerParameters, MailServerParameters, MetadataParameters,
    WebServerParameters, WorkloadSpec,
};
use benchmaster_units::ByteSize;
use benchmaster_workload::calibrate::{Crowd, NullBench};
use benchmaster_workload::program::Program;

fn main() {
    let data =
        |io_size| DataParameters { io_size, file_size: ByteSize::mib(256), ..DataParameters::default() };
    let specs = [
        ("random read 4 KiB", WorkloadSpec::RandomRead(data(ByteSize::kib(4)))),
        ("sequential read 64 KiB", WorkloadSpec::SequentialRead(data(ByteSize::kib(64)))),
        ("sequential write 4 KiB", WorkloadSpec::SequentialWrite(data(ByteSize::kib(4)))),
        (
            "file creation",
            WorkloadSpec::FileCreation(FileCreationParameters { files: 2_000_000, ..Default::default() }),
        ),
        ("metadata", WorkloadSpec::Metadata(MetadataParameters::default())),
        ("file-server", WorkloadSpec::FileServer(FileServerParameters::default())),
        ("web-server", WorkloadSpec::WebServer(WebServerParameters::default())),
        ("mail-server", WorkloadSpec::MailServer(MailServerParameters::default())),
    ];
    // Cargo passes `--bench`.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!(
        "9 runs of 0.3 s; median and best\n{:<24} {:>14} {:>10} {:>14}",
        "flow on null engine", "op/s", "ns each", "best op/s"
    );
    for (name, spec) in specs.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let workload = spec.expand("w").unwrap();
        let program = Program::compile(&workload).unwrap();
        let mut rates: Vec<f64> = (0..9)
            .map(|_| {
                let mut bench = NullBench::new(&program, &workload, 0).unwrap();
                let (operations, nanos) = bench.run(Duration::from_millis(300));
                operations as f64 * 1e9 / nanos as f64
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        println!("{name:<24} {:>14.0} {:>10.1} {:>14.0}", rates[4], 1e9 / rates[4], rates[8]);
    }

    if "crowd".contains(&wanted) {
        crowds();
    }
}

/// How late operations of many workers begin and end that share one thread.
fn crowds() {
    let parameters = MetadataParameters::default();
    let workload = WorkloadSpec::Metadata(parameters).expand("w").unwrap();
    let program = Program::compile(&workload).unwrap();
    let bench = NullBench::new(&program, &workload, 0).unwrap();
    println!("\n5 s each; latency from the intended start, in microseconds");
    println!(
        "{:<24} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}",
        "workers on one thread", "asked/s", "op/s", "p50", "p99", "p99.9", "max"
    );
    for rate in [10_000.0, 100_000.0] {
        for workers in [1, 100, 1_000, 10_000] {
            let duration = Duration::from_secs(5);
            let crowd = Crowd { workers, rate, duration, interval: Duration::from_secs(1) };
            let latencies = bench.run_crowd(&crowd).unwrap();
            let micros = |part| latencies.value_at_quantile(part) as f64 / 1e3;
            println!(
                "{workers:<24} {rate:>10} {:>10.0} {:>8.1} {:>8.1} {:>8.1} {:>8.0}",
                latencies.len() as f64 / duration.as_secs_f64(),
                micros(0.5),
                micros(0.99),
                micros(0.999),
                latencies.max() as f64 / 1e3,
            );
        }
    }
}
