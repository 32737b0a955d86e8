//! What is too large to be held for all runs at once.

use benchmaster_record::recording::TraceRecord;
use benchmaster_record::results::RunRecord;

/// Where the details of runs come from: what is too large to be held for all runs at once.
pub trait Details {
    /// Hands the trace of a workload of a run to `take`, batch by batch. `None` when there is none; `Some(Err)` with the
    /// reason when it cannot be read.
    fn trace(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>>;

    /// The run with its samples and collected outputs. `None` when there is nothing more than `run` has.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
        let _ = run;
        Ok(None)
    }
}
