//! Trace files: every operation of one workload of one run, streamed to a Parquet file and read back as a stream.
//!
//! Memory stays at one row group (128 Ki operations, some MiB) however long the trace is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use benchmaster_record::model::Fileset;
use benchmaster_record::recording::{NO_FILE, SeriesKey, TraceRecord};
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};

/// Where trace records go while a run is on.
pub trait TraceSink: Send {
    /// Takes a batch.
    ///
    /// # Errors
    /// When the batch could not be kept (disk full, …); the run then fails.
    fn write(&mut self, records: &[TraceRecord]) -> io::Result<()>;
}

/// Operations per row group.
const ROW_GROUP: usize = 128 * 1024;
/// Operations handed to the reader at once.
const READ_BATCH: usize = 8 * 1024;
/// An operation without an offset.
const NO_OFFSET: u64 = u64::MAX;

const SCHEMA: &str = "message trace {
    REQUIRED INT64 start_ns (INTEGER(64, false));
    REQUIRED INT64 latency_ns (INTEGER(64, false));
    OPTIONAL INT64 offset (INTEGER(64, false));
    REQUIRED INT32 bytes (INTEGER(32, false));
    REQUIRED INT32 worker (INTEGER(32, false));
    REQUIRED INT32 series (INTEGER(16, false));
    REQUIRED INT32 error (INTEGER(16, false));
    OPTIONAL INT32 file (INTEGER(32, false));
    REQUIRED INT32 fileset (INTEGER(16, false));
}";
/// Columns of numbers that are near their neighbours; the others have few different values and keep a dictionary.
const DELTAS: [&str; 4] = ["start_ns", "latency_ns", "offset", "file"];

const WORKLOAD: &str = "benchmaster.workload";
const SERIES: &str = "benchmaster.series";
const WORKERS: &str = "benchmaster.workers";
const FILESETS: &str = "benchmaster.filesets";

/// Columns of traces of versions that did not record files.
const WITHOUT_FILES: usize = 7;

/// A trace that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file system refused.
    #[error("trace `{}`: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// The file is not a trace, or damaged.
    #[error("`{}` is not a trace, or damaged: {detail}", .path.display())]
    Format { path: PathBuf, detail: String },
}

/// What a trace says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceInfo {
    /// Workload, series, workers, filesets. The last two are empty in traces of versions that did not record files.
    pub facts: TraceFacts,
    pub operations: u64,
}

/// What a trace says beside its operations.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceFacts {
    /// The workload's name in the study.
    pub workload: String,
    /// The series that [`TraceRecord::series`] counts: those of the recording, in its order.
    pub series: Vec<SeriesKey>,
    /// The workers that [`TraceRecord::worker`] counts.
    pub workers: Vec<TraceWorker>,
    /// The workload's filesets, which [`TraceRecord::fileset`] counts.
    pub filesets: BTreeMap<String, Fileset>,
    /// The seed of their files' sizes.
    pub fileset_seed: u64,
}

/// A worker of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceWorker {
    pub client: u32,
    pub group: String,
    /// Its number within client and group.
    pub worker: u32,
}

/// What a reader needs to know files by their numbers.
#[derive(Debug, Serialize, Deserialize)]
struct Filesets {
    seed: u64,
    sets: BTreeMap<String, Fileset>,
}

/// A trace being written to a file, one row group at a time.
#[derive(Debug)]
pub struct TraceFile {
    /// `None` after a failure.
    writer: Option<SerializedFileWriter<File>>,
    rows: Rows,
    path: PathBuf,
}

impl TraceFile {
    /// Begins a trace.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: PathBuf) -> Result<Self, TraceError> {
        let file = File::create(&path).map_err(at(&path))?;
        let writer = new_writer(file).map_err(|e| fault(&path, e))?;
        Ok(Self { writer: Some(writer), rows: Rows::default(), path })
    }

    /// Ends the trace and makes it durable.
    ///
    /// # Errors
    /// When an earlier write failed, or the file cannot be completed.
    pub fn finish(mut self, facts: &TraceFacts) -> Result<(), TraceError> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        let mut writer = self.take()?;
        let text = |json: Result<String, serde_json::Error>| json.map_err(|e| at(&self.path)(e.into()));
        let filesets = Filesets { seed: facts.fileset_seed, sets: facts.filesets.clone() };
        let facts = [
            (WORKLOAD, facts.workload.clone()),
            (SERIES, text(serde_json::to_string(&facts.series))?),
            (WORKERS, text(serde_json::to_string(&facts.workers))?),
            (FILESETS, text(serde_json::to_string(&filesets))?),
            ("benchmaster.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        for (key, value) in facts {
            writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        writer.finish().map_err(|e| fault(&self.path, e))?;
        writer.inner().sync_all().map_err(at(&self.path))
    }

    fn take(&mut self) -> Result<SerializedFileWriter<File>, TraceError> {
        // Taken out, so that nothing is appended to a file after a failure.
        self.writer.take().ok_or_else(|| at(&self.path)(io::Error::other("an earlier write failed")))
    }

    /// Writes what is buffered as one row group.
    fn flush(&mut self) -> Result<(), TraceError> {
        let mut writer = self.take()?;
        let write = |writer: &mut SerializedFileWriter<File>, rows: &Rows| {
            let mut group = writer.next_row_group()?;
            rows.write(&mut group)?;
            group.close()
        };
        write(&mut writer, &self.rows).map_err(|e| fault(&self.path, e))?;
        self.rows.clear();
        self.writer = Some(writer);
        Ok(())
    }
}

impl TraceSink for TraceFile {
    fn write(&mut self, mut records: &[TraceRecord]) -> io::Result<()> {
        while !records.is_empty() {
            let room = ROW_GROUP - self.rows.len();
            let (now, later) = records.split_at(room.min(records.len()));
            self.rows.extend(now);
            records = later;
            if self.rows.len() == ROW_GROUP {
                self.flush().map_err(|error| match &error {
                    TraceError::Io { source, .. } => io::Error::new(source.kind(), error),
                    TraceError::Format { .. } => io::Error::other(error),
                })?;
            }
        }
        Ok(())
    }
}

/// Reads a trace from start to end, in batches.
///
/// # Errors
/// When the file cannot be read or is not a trace.
pub fn read(path: &Path, mut each: impl FnMut(&[TraceRecord])) -> Result<TraceInfo, TraceError> {
    let (reader, info) = open(path)?;
    let mut batch = ReadBatch::default();
    for group in 0..reader.num_row_groups() {
        let group = guarded(path, || reader.get_row_group(group))?;
        let mut columns = guarded(path, || GroupReader::new(group.as_ref()))?;
        let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        while left > 0 {
            guarded(path, || batch.fill(&mut columns, left.min(READ_BATCH)))?;
            each(&batch.records);
            left -= batch.records.len();
        }
    }
    Ok(info)
}

/// Calls the Parquet library, which panics at some damaged pages.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, TraceError> {
    // Whatever it leaves behind is dropped with the reader.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| fault(path, error)),
        Err(_) => Err(TraceError::Format { path: path.into(), detail: "its pages are damaged".into() }),
    }
}

/// What a trace says of itself, without reading its operations.
///
/// # Errors
/// When the file cannot be read or is not a trace.
pub fn info(path: &Path) -> Result<TraceInfo, TraceError> {
    Ok(open(path)?.1)
}

fn open(path: &Path) -> Result<(SerializedFileReader<File>, TraceInfo), TraceError> {
    let format = |detail: &str| TraceError::Format { path: path.into(), detail: detail.into() };
    let file = File::open(path).map_err(at(path))?;
    let reader = guarded(path, || SerializedFileReader::new(file))?;
    let meta = reader.metadata().file_metadata();
    let expected = parse_message_type(SCHEMA).map_err(|e| fault(path, e))?;
    let (found, expected) = (meta.schema().get_fields(), expected.get_fields());
    if found != expected && found != &expected[..WITHOUT_FILES] {
        return Err(format("it does not have the columns of a trace"));
    }
    let value = |key: &str| {
        let pair = meta.key_value_metadata()?.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    };
    let damaged = |what: &str, error: serde_json::Error| format(&format!("{what}: {error}"));
    let workload = value(WORKLOAD).ok_or_else(|| format("the workload's name is missing"))?;
    let series = value(SERIES).ok_or_else(|| format("the names of the series are missing"))?;
    let series = serde_json::from_str(&series).map_err(|e| damaged("names of the series", e))?;
    let workers = value(WORKERS).map(|json| serde_json::from_str(&json)).transpose();
    let filesets: Option<Filesets> = value(FILESETS)
        .map(|json| serde_json::from_str(&json))
        .transpose()
        .map_err(|e| damaged("the filesets", e))?;
    let filesets = filesets.unwrap_or(Filesets { seed: 0, sets: BTreeMap::new() });
    let operations = u64::try_from(meta.num_rows()).map_err(|_| format("a negative number of rows"))?;
    let facts = TraceFacts {
        workload,
        series,
        workers: workers.map_err(|e| damaged("the workers", e))?.unwrap_or_default(),
        filesets: filesets.sets,
        fileset_seed: filesets.seed,
    };
    Ok((reader, TraceInfo { facts, operations }))
}

/// Rows that are still to be written, by column. Unsigned numbers are kept as Parquet has them: the same bits, signed.
#[derive(Debug, Default)]
struct Rows {
    start_ns: Vec<i64>,
    latency_ns: Vec<i64>,
    offset: Vec<i64>,
    has_offset: Vec<i16>,
    bytes: Vec<i32>,
    worker: Vec<i32>,
    series: Vec<i32>,
    error: Vec<i32>,
    file: Vec<i32>,
    has_file: Vec<i16>,
    fileset: Vec<i32>,
}

impl Rows {
    fn len(&self) -> usize {
        self.start_ns.len()
    }

    fn is_empty(&self) -> bool {
        self.start_ns.is_empty()
    }

    fn extend(&mut self, records: &[TraceRecord]) {
        self.start_ns.extend(records.iter().map(|r| r.start_ns.cast_signed()));
        self.latency_ns.extend(records.iter().map(|r| r.latency_ns.cast_signed()));
        let offsets = records.iter().map(|r| r.offset).filter(|&offset| offset != NO_OFFSET);
        self.offset.extend(offsets.map(u64::cast_signed));
        self.has_offset.extend(records.iter().map(|r| i16::from(r.offset != NO_OFFSET)));
        self.bytes.extend(records.iter().map(|r| r.bytes.cast_signed()));
        self.worker.extend(records.iter().map(|r| r.worker.cast_signed()));
        self.series.extend(records.iter().map(|r| i32::from(r.series)));
        self.error.extend(records.iter().map(|r| i32::from(r.error)));
        let files = records.iter().map(|r| r.file).filter(|&file| file != NO_FILE);
        self.file.extend(files.map(u32::cast_signed));
        self.has_file.extend(records.iter().map(|r| i16::from(r.file != NO_FILE)));
        self.fileset.extend(records.iter().map(|r| i32::from(r.fileset)));
    }

    fn clear(&mut self) {
        let Self { start_ns, latency_ns, offset, has_offset, bytes, worker, .. } = self;
        [start_ns, latency_ns, offset].into_iter().for_each(Vec::clear);
        [bytes, worker].into_iter().for_each(Vec::clear);
        let Self { series, error, file, has_file, fileset, .. } = self;
        [series, error, file, fileset].into_iter().for_each(Vec::clear);
        [has_offset, has_file].into_iter().for_each(Vec::clear);
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError> {
        column::<Int64Type>(group, &self.start_ns, None)?;
        column::<Int64Type>(group, &self.latency_ns, None)?;
        column::<Int64Type>(group, &self.offset, Some(&self.has_offset))?;
        column::<Int32Type>(group, &self.bytes, None)?;
        column::<Int32Type>(group, &self.worker, None)?;
        column::<Int32Type>(group, &self.series, None)?;
        column::<Int32Type>(group, &self.error, None)?;
        column::<Int32Type>(group, &self.file, Some(&self.has_file))?;
        column::<Int32Type>(group, &self.fileset, None)
    }
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".into()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

fn new_writer(file: File) -> Result<SerializedFileWriter<File>, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("benchmaster {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for name in DELTAS {
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
}

/// The columns of a row group, each read on its own.
struct GroupReader {
    start_ns: ColumnReaderImpl<Int64Type>,
    latency_ns: ColumnReaderImpl<Int64Type>,
    offset: ColumnReaderImpl<Int64Type>,
    small: [ColumnReaderImpl<Int32Type>; 4],
    /// Absent in traces that do not say.
    file: Option<(ColumnReaderImpl<Int32Type>, ColumnReaderImpl<Int32Type>)>,
}

impl GroupReader {
    fn new(group: &dyn RowGroupReader) -> Result<Self, ParquetError> {
        let long = |index| Ok::<_, ParquetError>(get_typed_column_reader(group.get_column_reader(index)?));
        let small = |index| Ok::<_, ParquetError>(get_typed_column_reader(group.get_column_reader(index)?));
        Ok(Self {
            start_ns: long(0)?,
            latency_ns: long(1)?,
            offset: long(2)?,
            small: [small(3)?, small(4)?, small(5)?, small(6)?],
            file: if group.num_columns() > WITHOUT_FILES { Some((small(7)?, small(8)?)) } else { None },
        })
    }
}

#[derive(Default)]
struct ReadBatch {
    start_ns: Vec<i64>,
    latency_ns: Vec<i64>,
    offset: Vec<i64>,
    has_offset: Vec<i16>,
    small: [Vec<i32>; 4],
    file: Vec<i32>,
    has_file: Vec<i16>,
    fileset: Vec<i32>,
    records: Vec<TraceRecord>,
}

impl ReadBatch {
    /// Reads the next `count` rows of every column.
    fn fill(&mut self, columns: &mut GroupReader, count: usize) -> Result<(), ParquetError> {
        values(&mut columns.start_ns, count, None, &mut self.start_ns)?;
        values(&mut columns.latency_ns, count, None, &mut self.latency_ns)?;
        values(&mut columns.offset, count, Some(&mut self.has_offset), &mut self.offset)?;
        for (column, into) in columns.small.iter_mut().zip(&mut self.small) {
            values(column, count, None, into)?;
        }
        match &mut columns.file {
            Some((file, fileset)) => {
                values(file, count, Some(&mut self.has_file), &mut self.file)?;
                values(fileset, count, None, &mut self.fileset)?;
            }
            None => {
                self.has_file.resize(count, 0);
                self.fileset.resize(count, 0);
            }
        }
        let narrow = |value: i32| {
            u16::try_from(value).map_err(|_| ParquetError::General(format!("{value} is out of range")))
        };
        let [bytes, worker, series, error] = &self.small;
        let (mut offsets, mut files) = (self.offset.iter(), self.file.iter());
        self.records.clear();
        for i in 0..count {
            let offset = if self.has_offset[i] == 1 { offsets.next() } else { None };
            let file = if self.has_file[i] == 1 { files.next() } else { None };
            self.records.push(TraceRecord {
                start_ns: self.start_ns[i].cast_unsigned(),
                latency_ns: self.latency_ns[i].cast_unsigned(),
                offset: offset.map_or(NO_OFFSET, |offset| offset.cast_unsigned()),
                bytes: bytes[i].cast_unsigned(),
                worker: worker[i].cast_unsigned(),
                file: file.map_or(NO_FILE, |file| file.cast_unsigned()),
                series: narrow(series[i])?,
                error: narrow(error[i])?,
                fileset: narrow(self.fileset[i])?,
            });
        }
        Ok(())
    }
}

/// Reads exactly `count` rows of a column.
fn values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    mut levels: Option<&mut Vec<i16>>,
    into: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    into.clear();
    if let Some(levels) = levels.as_deref_mut() {
        levels.clear();
    }
    let mut rows = 0;
    while rows < count {
        let (read, _, _) = reader.read_records(count - rows, levels.as_deref_mut(), None, into)?;
        if read == 0 {
            return Err(ParquetError::EOF("a column ends too early".into()));
        }
        rows += read;
    }
    Ok(())
}

fn at(path: &Path) -> impl Fn(io::Error) -> TraceError {
    move |source| TraceError::Io { path: path.into(), source }
}

/// An error of the Parquet library: the system's own where it has one inside.
fn fault(path: &Path, error: ParquetError) -> TraceError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(source) => TraceError::Io { path: path.into(), source: *source },
            Err(other) => TraceError::Format { path: path.into(), detail: other.to_string() },
        },
        other => TraceError::Format { path: path.into(), detail: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that says that it has no values where its row group has some: the library panics.
    #[test]
    fn a_page_without_values_is_damage() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parquet/no-values");
        let error = read(&path, |_| ()).unwrap_err();
        assert!(matches!(error, TraceError::Format { .. }), "{error}");
    }
}
