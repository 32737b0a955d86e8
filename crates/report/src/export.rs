//! Exports: results as tidy tables (CSV, Parquet) or as one JSON document.
//!
//! Every table has one row per observation and begins with the columns that say which run it is of, one for each factor
//! among them; see `docs/results.md` for all columns.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use benchmaster_store::record::StudyResults;
use benchmaster_workload::recording::HistogramError;
use parquet::errors::ParquetError;

mod json;
mod parquet_file;
mod table;
mod tables;

pub use json::export_json;

/// A format of export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One CSV file per table (RFC 4180, UTF-8, with a header).
    Csv,
    /// One document with everything, `results.json`.
    Json,
    /// One Parquet file per table.
    Parquet,
}

/// Why results were not exported. Files that were complete before stay; none is left half written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file could not be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("cannot write the export: {0}")]
    Output(#[source] io::Error),
    /// A table does not become Parquet.
    #[error("cannot write `{}`: {source}", .path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ParquetError,
    },
    /// A histogram does not decode.
    #[error("run {run}, workload `{workload}`, series `{series}`: {source}")]
    Histogram {
        /// Position of the run in the order of execution.
        run: u32,
        /// The workload.
        workload: String,
        /// The series.
        series: String,
        /// The reason.
        source: HistogramError,
    },
}

/// Writes results into the directory `out`, which is made if needed, and returns the files in a fixed order.
///
/// Each file is written under a temporary name first, so that a file is there whole or not at all; files of an earlier
/// export are replaced.
///
/// # Errors
/// When a file cannot be written or a stored histogram is damaged.
pub fn export(results: &StudyResults, format: Format, out: &Path) -> Result<Vec<PathBuf>, ExportError> {
    fs::create_dir_all(out).map_err(at(out))?;
    if format == Format::Json {
        let document = export_json(results)?;
        let path = out.join("results.json");
        replace(&path, |file| {
            let mut writer = BufWriter::new(file);
            serde_json::to_writer(&mut writer, &document).map_err(|e| at(&path)(e.into()))?;
            writer.write_all(b"\n").and_then(|()| writer.flush()).map_err(at(&path))
        })?;
        return Ok(vec![path]);
    }
    let mut files = Vec::new();
    for table in tables::all(results)? {
        let extension = if format == Format::Csv { "csv" } else { "parquet" };
        let path = out.join(format!("{}.{extension}", table.name));
        replace(&path, |file| match format {
            Format::Parquet => parquet_file::write(&table, file)
                .map_err(|source| ExportError::Parquet { path: path.clone(), source }),
            _ => table.write_csv(BufWriter::new(file)).map_err(at(&path)),
        })?;
        files.push(path);
    }
    Ok(files)
}

/// Writes the table of responses as CSV, as [`export`] does to `responses.csv`.
///
/// # Errors
/// When `out` refuses.
pub fn responses_csv(results: &StudyResults, out: impl Write) -> Result<(), ExportError> {
    tables::responses(results).write_csv(out).map_err(ExportError::Output)
}

/// Writes a file under a temporary name beside its place, and moves it there when it is whole.
fn replace(path: &Path, write: impl FnOnce(&File) -> Result<(), ExportError>) -> Result<(), ExportError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".partial");
    let temporary = PathBuf::from(temporary);
    let write = || {
        let file = File::create(&temporary).map_err(at(&temporary))?;
        write(&file)?;
        file.sync_all().map_err(at(&temporary))?;
        fs::rename(&temporary, path).map_err(at(path))
    };
    write().inspect_err(|_| {
        // The error is that of writing; a file that cannot be removed either adds nothing to it.
        let _ = fs::remove_file(&temporary);
    })
}

fn at(path: &Path) -> impl Fn(io::Error) -> ExportError {
    move |source| ExportError::Io { path: path.into(), source }
}

#[cfg(test)]
mod tests;
