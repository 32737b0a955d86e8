//! Traces: every operation of one workload of one run, streamed to a Parquet file and read back as a stream.
//!
//! Memory stays at one row group (128 Ki operations, some MiB) however long the trace is. The file has a temporary name
//! until it is whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use benchmaster_workload::recording::{SeriesKey, TraceRecord, TraceSink};
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

use crate::directory::TRACES;
use crate::record::RunKey;

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
}";
/// Columns of numbers that are near their neighbours; the others have few different values and keep a dictionary.
const DELTAS: [&str; 3] = ["start_ns", "latency_ns", "offset"];

const WORKLOAD: &str = "benchmaster.workload";
const SERIES: &str = "benchmaster.series";

/// A trace that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file system refused.
    #[error("trace `{}`: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not a trace, or damaged.
    #[error("`{}` is not a trace, or damaged: {detail}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
}

/// What a trace says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceInfo {
    /// The workload's name in the study.
    pub workload: String,
    /// The series that [`TraceRecord::series`] counts.
    pub series: Vec<SeriesKey>,
    /// Operations in it.
    pub operations: u64,
}

/// A trace being written. Dropped before [`TraceWriter::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct TraceWriter {
    /// `None` once finished, or after a failure.
    writer: Option<SerializedFileWriter<File>>,
    rows: Rows,
    directory: PathBuf,
    name: String,
    partial: PathBuf,
    workload: String,
}

impl TraceWriter {
    /// Begins the trace of a workload of a run in a results directory.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(results: &Path, run: RunKey, workload: &str) -> Result<Self, TraceError> {
        let directory = results.join(TRACES);
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        let RunKey { treatment, replicate } = run;
        let name = format!("run-{treatment}-{replicate}-{}.parquet", file_name(workload));
        let partial = directory.join(format!("{name}.partial"));
        let file = File::create(&partial).map_err(at(&partial))?;
        let mut trace =
            Self { writer: None, rows: Rows::default(), directory, name, partial, workload: workload.into() };
        let writer = new_writer(file).map_err(|e| fault(&trace.partial, e))?;
        trace.writer = Some(writer);
        Ok(trace)
    }

    /// Ends the trace, makes it durable and gives it its name. Returns its path relative to the results directory, for
    /// [`RunRecord::traces`](crate::record::RunRecord::traces).
    ///
    /// `series` are those of the recording, in its order.
    ///
    /// # Errors
    /// When an earlier write failed, or the file cannot be completed; it is then removed.
    pub fn finish(mut self, series: &[SeriesKey]) -> Result<String, TraceError> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        let Some(mut writer) = self.writer.take() else {
            return Err(at(&self.partial)(io::Error::other("an earlier write failed")));
        };
        let names = serde_json::to_string(series).map_err(|e| at(&self.partial)(e.into()))?;
        let facts = [
            (WORKLOAD, self.workload.clone()),
            (SERIES, names),
            ("benchmaster.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        for (key, value) in facts {
            writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        writer.finish().map_err(|e| fault(&self.partial, e))?;
        writer.inner().sync_all().map_err(at(&self.partial))?;
        let path = self.directory.join(&self.name);
        fs::rename(&self.partial, &path).map_err(at(&path))?;
        File::open(&self.directory).and_then(|file| file.sync_all()).map_err(at(&self.directory))?;
        Ok(format!("{TRACES}/{}", self.name))
    }

    /// Writes what is buffered as one row group.
    fn flush(&mut self) -> Result<(), TraceError> {
        // Taken out, so that nothing is appended to a file after a failure.
        let Some(mut writer) = self.writer.take() else {
            return Err(at(&self.partial)(io::Error::other("an earlier write failed")));
        };
        let write = |writer: &mut SerializedFileWriter<File>, rows: &Rows| {
            let mut group = writer.next_row_group()?;
            rows.write(&mut group)?;
            group.close()
        };
        write(&mut writer, &self.rows).map_err(|e| fault(&self.partial, e))?;
        self.rows.clear();
        self.writer = Some(writer);
        Ok(())
    }
}

impl TraceSink for TraceWriter {
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

impl Drop for TraceWriter {
    fn drop(&mut self) {
        // Gone when finished. Otherwise it is of no use, and the next session removes it if this fails.
        let _ = fs::remove_file(&self.partial);
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
        let mut read = |each: &mut dyn FnMut(&[TraceRecord])| {
            let group = reader.get_row_group(group)?;
            let mut columns = GroupReader::new(group.as_ref())?;
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                batch.fill(&mut columns, left.min(READ_BATCH))?;
                each(&batch.records);
                left -= batch.records.len();
            }
            Ok(())
        };
        read(&mut each).map_err(|e| fault(path, e))?;
    }
    Ok(info)
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
    let reader = SerializedFileReader::new(file).map_err(|e| fault(path, e))?;
    let meta = reader.metadata().file_metadata();
    let expected = parse_message_type(SCHEMA).map_err(|e| fault(path, e))?;
    if meta.schema().get_fields() != expected.get_fields() {
        return Err(format("it does not have the columns of a trace"));
    }
    let value = |key: &str| {
        let pair = meta.key_value_metadata()?.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    };
    let workload = value(WORKLOAD).ok_or_else(|| format("the workload's name is missing"))?;
    let series = value(SERIES).ok_or_else(|| format("the names of the series are missing"))?;
    let series = serde_json::from_str(&series).map_err(|e| format(&format!("names of the series: {e}")))?;
    let operations = u64::try_from(meta.num_rows()).map_err(|_| format("a negative number of rows"))?;
    Ok((reader, TraceInfo { workload, series, operations }))
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
    }

    fn clear(&mut self) {
        let Self { start_ns, latency_ns, offset, has_offset, bytes, worker, series, error } = self;
        [start_ns, latency_ns, offset].into_iter().for_each(Vec::clear);
        [bytes, worker, series, error].into_iter().for_each(Vec::clear);
        has_offset.clear();
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError> {
        column::<Int64Type>(group, &self.start_ns, None)?;
        column::<Int64Type>(group, &self.latency_ns, None)?;
        column::<Int64Type>(group, &self.offset, Some(&self.has_offset))?;
        column::<Int32Type>(group, &self.bytes, None)?;
        column::<Int32Type>(group, &self.worker, None)?;
        column::<Int32Type>(group, &self.series, None)?;
        column::<Int32Type>(group, &self.error, None)
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
        let narrow = |value: i32| {
            u16::try_from(value).map_err(|_| ParquetError::General(format!("{value} is out of range")))
        };
        let [bytes, worker, series, error] = &self.small;
        let mut offsets = self.offset.iter();
        self.records.clear();
        for i in 0..count {
            let offset = if self.has_offset[i] == 1 { offsets.next() } else { None };
            self.records.push(TraceRecord {
                start_ns: self.start_ns[i].cast_unsigned(),
                latency_ns: self.latency_ns[i].cast_unsigned(),
                offset: offset.map_or(NO_OFFSET, |offset| offset.cast_unsigned()),
                bytes: bytes[i].cast_unsigned(),
                worker: worker[i].cast_unsigned(),
                series: narrow(series[i])?,
                error: narrow(error[i])?,
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

/// A workload's name as part of a file name: other characters than letters, digits, `-`, `_` and `.` as `%` and hex.
fn file_name(workload: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let mut name = String::new();
    for byte in workload.bytes() {
        match byte {
            byte if plain(byte) => name.push(char::from(byte)),
            byte => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
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
