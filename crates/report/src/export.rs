//! Exports: results as tidy tables (CSV, Parquet), as one JSON document, and as Markdown for people.
//!
//! Every table has one row per observation and begins with the columns that say which run it is of, one for each factor
//! among them; see `docs/results.md` for all columns.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use benchmaster_diagnosis::results::found;
use benchmaster_record::recording::HistogramError;
use benchmaster_record::results::{RunRecord, StudyRecord, StudyResults};
use parquet::errors::ParquetError;

mod json;
mod markdown;
mod parquet_file;
mod table;
mod tables;

pub use json::export_json;

use self::parquet_file::ParquetWriter;
use self::table::CsvWriter;
use crate::details::Details;
use crate::pages::study;
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One CSV file per table (RFC 4180, UTF-8, with a header).
    Csv,
    /// One document with everything, `results.json`.
    Json,
    /// One Parquet file per table.
    Parquet,
    /// A text for issues and pull requests, `results.md`.
    Markdown,
}

/// Why results were not exported. Files that were complete before stay; none is left half written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file could not be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot write the export: {0}")]
    Output(#[source] io::Error),
    #[error("cannot write `{}`: {source}", .path.display())]
    Parquet { path: PathBuf, source: ParquetError },
    /// The samples of a run cannot be read.
    #[error("the samples of run {run} cannot be read: {reason}")]
    Samples { run: u32, reason: String },
    #[error("run {run}, workload `{workload}`, series `{series}`: {source}")]
    Histogram { run: u32, workload: String, series: String, source: HistogramError },
}

/// Writes results into the directory `out`, which is made if needed, and returns the files in a fixed order. Samples and
/// outputs of attached commands are read from `details` a run at a time.
///
/// Each file is written under a temporary name first, so that a file is there whole or not at all; files of an earlier
/// export are replaced.
///
/// # Errors
/// When a file cannot be written, a stored histogram is damaged, or the details of a run cannot be read.
pub fn export(
    results: &StudyResults,
    details: &dyn Details,
    format: Format,
    out: &Path,
) -> Result<Vec<PathBuf>, ExportError> {
    fs::create_dir_all(out).map_err(at(out))?;
    if format == Format::Markdown {
        let (analysis, diagnosis) = found(results, details);
        let path = out.join("results.md");
        let text = study(results, &analysis, &diagnosis, None).markdown();
        replace(&path, |mut file| file.write_all(text.as_bytes()).map_err(at(&path)))?;
        return Ok(vec![path]);
    }
    if format == Format::Json {
        let document = export_json(results, &found(results, details).1)?;
        let path = out.join("results.json");
        replace(&path, |file| {
            let mut writer = BufWriter::new(file);
            serde_json::to_writer(&mut writer, &document).map_err(|e| at(&path)(e.into()))?;
            writer.write_all(b"\n").and_then(|()| writer.flush()).map_err(at(&path))
        })?;
        let samples = out.join("samples.jsonl");
        replace(&samples, |file| {
            let mut writer = BufWriter::new(file);
            for run in &results.runs {
                let run = whole(details, run)?;
                json::samples(&run, &results.study, &mut writer).map_err(at(&samples))?;
            }
            writer.flush().map_err(at(&samples))
        })?;
        return Ok(vec![path, samples]);
    }
    let mut files = Vec::new();
    for table in tables::all(results)? {
        let name = table.name;
        files.push(write_table(name, format, out, |put| put(&table))?);
    }
    for (name, of_run) in
        [("samples", tables::hosts::samples as OfRun), ("collected", tables::hosts::collected)]
    {
        files.push(write_table(name, format, out, |put| {
            // The columns are there even where no run has rows.
            put(&of_run(None, &results.study))?;
            results.runs.iter().try_for_each(|run| put(&of_run(Some(&*whole(details, run)?), &results.study)))
        })?);
    }
    Ok(files)
}

/// The part of a table that is of one run; no rows without one.
type OfRun = fn(Option<&RunRecord>, &StudyRecord) -> table::Table;

/// Writes one table in parts, the first of which has all columns.
fn write_table(
    name: &str,
    format: Format,
    out: &Path,
    parts: impl FnOnce(&mut dyn FnMut(&table::Table) -> Result<(), ExportError>) -> Result<(), ExportError>,
) -> Result<PathBuf, ExportError> {
    let extension = if format == Format::Csv { "csv" } else { "parquet" };
    let path = out.join(format!("{name}.{extension}"));
    replace(&path, |file| match format {
        Format::Parquet => {
            let fault = |source| ExportError::Parquet { path: path.clone(), source };
            let mut writer = None;
            parts(&mut |table| {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => none.insert(ParquetWriter::new(table, file).map_err(fault)?),
                };
                writer.put(table).map_err(fault)
            })?;
            writer.map_or(Ok(()), |writer| writer.finish().map_err(fault))
        }
        _ => {
            let mut writer = CsvWriter::new(BufWriter::new(file));
            parts(&mut |table| writer.put(table).map_err(at(&path)))?;
            writer.finish().map_err(at(&path))
        }
    })?;
    Ok(path)
}

fn whole<'r>(details: &dyn Details, run: &'r RunRecord) -> Result<Cow<'r, RunRecord>, ExportError> {
    let read = details.whole(run).map_err(|reason| ExportError::Samples { run: run.position, reason })?;
    Ok(read.map_or(Cow::Borrowed(run), Cow::Owned))
}

/// Writes the table of responses as CSV, as [`export`] does to `responses.csv`.
///
/// # Errors
/// When `out` refuses.
pub fn responses_csv(results: &StudyResults, out: impl Write) -> Result<(), ExportError> {
    let mut writer = CsvWriter::new(out);
    writer.put(&tables::responses(results)).and_then(|()| writer.finish()).map_err(ExportError::Output)
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
