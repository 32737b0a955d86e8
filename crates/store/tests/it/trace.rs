//! Traces read as written, and leave nothing behind when they fail.

use std::fs;
use std::path::Path;

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{SeriesKey, TraceRecord};
use benchmaster_record::results::RunKey;
use benchmaster_store::trace::{self, TraceError, TraceFacts, TraceSink, TraceWorker, TraceWriter};
use benchmaster_testkit::{Random, damage, trace_records};
use proptest::prelude::*;
use tempfile::tempdir;

const RUN: RunKey = RunKey { treatment: 2, replicate: 11 };

fn series() -> Vec<SeriesKey> {
    [OperationKind::Write, OperationKind::Fsync]
        .map(|operation| SeriesKey { group: "main".into(), label: operation.name().into(), operation })
        .into()
}

fn facts(workload: &str) -> TraceFacts {
    TraceFacts {
        workload: workload.into(),
        series: series(),
        workers: vec![TraceWorker { client: 1, group: "main".into(), worker: 2 }],
        filesets: toml::from_str("data = { files = 4, size = '64KiB' }").unwrap(),
        fileset_seed: 3,
    }
}

fn write(results: &Path, workload: &str, batches: &[&[TraceRecord]]) -> String {
    let mut writer = TraceWriter::create(results, RUN, workload).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish(&facts(workload)).unwrap()
}

fn read(path: &Path) -> (Vec<TraceRecord>, trace::TraceInfo) {
    let mut records = Vec::new();
    let info = trace::read(path, |batch| records.extend_from_slice(batch)).unwrap();
    (records, info)
}

#[test]
fn several_row_groups_read_as_written() {
    let directory = tempdir().unwrap();
    let records = trace_records(9, 300_000);
    // Batches that do not fit the row groups.
    let batches: Vec<_> = records.chunks(70_001).collect();
    let relative = write(directory.path(), "write", &batches);
    assert_eq!(relative, "traces/run-2-11-write.parquet");
    let path = directory.path().join(relative);
    let (found, info) = read(&path);
    assert_eq!(found, records);
    assert_eq!((&info.facts, info.operations), (&facts("write"), 300_000));
    assert_eq!(trace::info(&path).unwrap(), info);
    assert_eq!(fs::read_dir(directory.path().join("traces")).unwrap().count(), 1);
}

#[test]
fn an_empty_trace_is_a_trace() {
    let directory = tempdir().unwrap();
    let (found, info) = read(&directory.path().join(write(directory.path(), "write", &[])));
    assert!(found.is_empty());
    assert_eq!(info.operations, 0);
}

#[test]
fn any_workload_name_makes_a_file_of_its_own() {
    let directory = tempdir().unwrap();
    let names = ["a/b", "a%2Fb", "../x", "ä ö"].map(|name| write(directory.path(), name, &[]));
    assert_eq!(names[0], "traces/run-2-11-a%2Fb.parquet");
    assert_eq!(names[2], "traces/run-2-11-..%2Fx.parquet");
    assert_eq!(fs::read_dir(directory.path().join("traces")).unwrap().count(), names.len());
}

#[test]
fn a_trace_not_finished_leaves_nothing() {
    let directory = tempdir().unwrap();
    let mut writer = TraceWriter::create(directory.path(), RUN, "write").unwrap();
    writer.write(&trace_records(1, 1000)).unwrap();
    let traces = directory.path().join("traces");
    assert!(traces.join("run-2-11-write.parquet.partial").exists());
    drop(writer);
    assert_eq!(fs::read_dir(traces).unwrap().count(), 0);
}

#[test]
fn a_full_disk_fails_the_trace_and_leaves_nothing() {
    let directory = tempdir().unwrap();
    let traces = directory.path().join("traces");
    fs::create_dir(&traces).unwrap();
    let partial = traces.join("run-2-11-write.parquet.partial");
    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let mut writer = TraceWriter::create(directory.path(), RUN, "write").unwrap();
    let records = trace_records(1, 400_000);
    let error = writer.write(&records).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    assert!(error.to_string().contains("run-2-11-write.parquet.partial"), "{error}");
    assert!(writer.write(&records).is_err(), "nothing is appended after a failure");
    assert!(writer.finish(&facts("write")).is_err());
    assert_eq!(fs::read_dir(traces).unwrap().count(), 0);
}

#[test]
fn what_is_no_trace_is_refused() {
    let directory = tempdir().unwrap();
    let path = directory.path().join(write(directory.path(), "write", &[&trace_records(1, 5000)]));
    let missing = trace::read(&directory.path().join("none"), |_| ()).unwrap_err();
    assert!(matches!(missing, TraceError::Io { .. }), "{missing}");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let cut = trace::read(&path, |_| ()).unwrap_err();
    assert!(matches!(cut, TraceError::Format { .. }), "{cut}");
    fs::write(&path, b"").unwrap();
    assert!(matches!(trace::info(&path), Err(TraceError::Format { .. })));
}

#[test]
fn changed_bytes_of_a_trace_are_read_or_refused() {
    let directory = tempdir().unwrap();
    let path = directory.path().join(write(directory.path(), "write", &[&trace_records(1, 500)]));
    let good = fs::read(&path).unwrap();
    let (mut random, mut refused) = (Random(5), 0);
    for _ in 0..1000 {
        let mut bytes = good.clone();
        damage(&mut bytes, 4, &mut random);
        fs::write(&path, bytes).unwrap();
        refused += usize::from(trace::read(&path, |_| ()).is_err());
    }
    assert!(refused > 100, "{refused} of 1000 were refused");
}

fn any_record() -> impl Strategy<Value = TraceRecord> {
    let any = (any::<[u64; 3]>(), any::<[u32; 3]>(), any::<[u16; 3]>());
    any.prop_map(|([start_ns, latency_ns, offset], [bytes, worker, file], [series, error, fileset])| {
        TraceRecord {
            start_ns,
            latency_ns,
            offset: if offset % 3 == 0 { u64::MAX } else { offset },
            bytes,
            worker,
            file: if file % 3 == 0 { u32::MAX } else { file },
            series,
            error,
            fileset,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_numbers_read_as_written(records in proptest::collection::vec(any_record(), 0..400)) {
        let directory = tempdir().unwrap();
        let path = directory.path().join(write(directory.path(), "write", &[&records]));
        prop_assert_eq!(read(&path).0, records);
    }
}
