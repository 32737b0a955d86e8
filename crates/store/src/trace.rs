//! Traces in a results directory. The file has a temporary name until it is whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub use benchmaster_trace::{TraceError, TraceFacts, TraceInfo, TraceSink, TraceWorker, info, read};

use benchmaster_record::recording::TraceRecord;
use benchmaster_trace::TraceFile;

use crate::directory::TRACES;
use benchmaster_record::results::RunKey;

/// A trace being written. Dropped before [`TraceWriter::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct TraceWriter {
    /// `None` once finished.
    file: Option<TraceFile>,
    directory: PathBuf,
    name: String,
    partial: PathBuf,
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
        let mut trace = Self { file: None, directory, name, partial };
        trace.file = Some(TraceFile::create(trace.partial.clone())?);
        Ok(trace)
    }

    /// Ends the trace, makes it durable and gives it its name. Returns its path relative to the results directory, for
    /// [`RunRecord::traces`](benchmaster_record::results::RunRecord::traces).
    ///
    /// # Errors
    /// When an earlier write failed, or the file cannot be completed; it is then removed.
    pub fn finish(mut self, facts: &TraceFacts) -> Result<String, TraceError> {
        if let Some(file) = self.file.take() {
            file.finish(facts)?;
        }
        let path = self.directory.join(&self.name);
        fs::rename(&self.partial, &path).map_err(at(&path))?;
        File::open(&self.directory).and_then(|file| file.sync_all()).map_err(at(&self.directory))?;
        Ok(format!("{TRACES}/{}", self.name))
    }
}

impl TraceSink for TraceWriter {
    fn write(&mut self, records: &[TraceRecord]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write(records),
            None => Err(io::Error::other("the trace is finished")),
        }
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        // Gone when finished. Otherwise it is of no use, and the next session removes it if this fails.
        let _ = fs::remove_file(&self.partial);
    }
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
