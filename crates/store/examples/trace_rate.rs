//! How fast traces are written and read, and how large they are: `cargo run --release -p benchmaster-store --example
//! trace_rate`.
#![allow(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::time::Instant;

use benchmaster_record::results::RunKey;
use benchmaster_store::trace::{self, TraceFacts, TraceSink, TraceWriter};
use benchmaster_testkit::trace_records;

fn main() -> Result<(), Box<dyn Error>> {
    const COUNT: usize = 10_000_000;
    let directory = tempfile::tempdir()?;
    let records = trace_records(1, COUNT);
    let key = RunKey { treatment: 0, replicate: 0 };

    let start = Instant::now();
    let mut writer = TraceWriter::create(directory.path(), key, "write")?;
    for batch in records.chunks(4096) {
        writer.write(batch)?;
    }
    let path = directory.path().join(writer.finish(&TraceFacts::default())?);
    let seconds = start.elapsed().as_secs_f64();
    let bytes = std::fs::metadata(&path)?.len() as f64 / COUNT as f64;
    println!("written: {:.1} million operations/s, {bytes:.1} bytes each", COUNT as f64 / seconds / 1e6);

    let start = Instant::now();
    let mut sum = 0;
    trace::read(&path, |batch| sum += batch.iter().map(|r| r.latency_ns).sum::<u64>())?;
    let seconds = start.elapsed().as_secs_f64();
    println!("read:    {:.1} million operations/s (sum {sum} ns)", COUNT as f64 / seconds / 1e6);
    Ok(())
}
