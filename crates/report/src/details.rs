//! What is too large to be held for all runs at once: traces, samples, outputs of attached commands.

use std::path::PathBuf;

pub use benchmaster_diagnosis::results::Details;
use benchmaster_record::recording::{Recording, TraceRecord};
use benchmaster_record::results::RunRecord;
use benchmaster_store::{Store, trace};

/// The files of a results directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultsDirectory(pub PathBuf);

impl Details for ResultsDirectory {
    fn trace(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>> {
        let path = self.0.join(run.traces.get(workload)?);
        Some(trace::read(&path, take).map(drop).map_err(|e| e.to_string()))
    }

    fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
        let has_more =
            |recording: &Recording| !recording.samples.is_empty() || !recording.collected.is_empty();
        if run.recordings.iter().any(has_more) {
            Store::load_run(&self.0, run.key).map_err(|e| e.to_string())
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
