//! Judging made-up runs.

#[path = "../../../tests/it/papers/made.rs"]
mod data;

use benchmaster_analysis::analyze;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::StudyResults;

pub(crate) use self::data::*;
use crate::details::Details;
use crate::diagnosis::Verdict;
use crate::measured::Measured;
use crate::results::rule::{Compared, Whole};

/// What a detector says of a run with this one recording, of a study that does nothing else.
pub(crate) fn judge(recording: Recording, detect: fn(&Measured<'_>) -> Verdict) -> Verdict {
    judge_with(recording, &Traces::default(), detect)
}

/// The same with traces.
pub(crate) fn judge_with(
    recording: Recording,
    traces: &Traces,
    detect: fn(&Measured<'_>) -> Verdict,
) -> Verdict {
    let mut results = study(&format!(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.{}]\nuse = \"random-read\"\nduration = \"1s\"\n",
        recording.workload
    ));
    add(&mut results, 0, vec![recording], &[]);
    judge_run(&results, 0, traces, detect)
}

/// What a detector says of the first workload of a run.
pub(crate) fn judge_run(
    results: &StudyResults,
    run: usize,
    traces: &Traces,
    detect: fn(&Measured<'_>) -> Verdict,
) -> Verdict {
    let results = with_parameters(results);
    let run = &results.runs[run];
    detect(&Measured::new(&results, run, &run.recordings[0], traces))
}

/// What a comparison says of all runs.
pub(crate) fn compare(results: &StudyResults, compare: fn(&Whole<'_>) -> Compared) -> Compared {
    let results = &with_parameters(results);
    compare(&Whole { results, analysis: &analyze(results) })
}
