//! What is too large to be held for all runs at once: traces, samples, outputs of attached commands.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

pub use benchmaster_diagnosis::results::Details;
use benchmaster_record::recording::{Recording, TraceRecord};
use benchmaster_record::results::{RunKey, RunRecord};
use benchmaster_store::{LoadError, Reader, trace};

/// The files of a results directory. Its database is opened once for all runs.
#[derive(Debug)]
pub struct ResultsDirectory {
    path: PathBuf,
    reader: RefCell<Option<Reader>>,
}

impl ResultsDirectory {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), reader: RefCell::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn load_run(&self, key: RunKey) -> Result<Option<RunRecord>, LoadError> {
        let mut reader = self.reader.borrow_mut();
        let open = match reader.take() {
            Some(open) => open,
            None => Reader::open(&self.path)?,
        };
        reader.insert(open).load_run(key)
    }
}

impl Details for ResultsDirectory {
    fn trace(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>> {
        let path = self.path.join(run.traces.get(workload)?);
        Some(trace::read(&path, take).map(drop).map_err(|e| e.to_string()))
    }

    fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
        let has_more =
            |recording: &Recording| !recording.samples.is_empty() || !recording.collected.is_empty();
        if run.recordings.iter().any(has_more) {
            self.load_run(run.key).map_err(|e| e.to_string())
        } else {
            Ok(None)
        }
    }
}

/// Nothing more than the results have, for those without a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoDetails;

impl Details for NoDetails {
    fn trace(&self, _: &RunRecord, _: &str, _: &mut dyn FnMut(&[TraceRecord])) -> Option<Result<(), String>> {
        None
    }
}
