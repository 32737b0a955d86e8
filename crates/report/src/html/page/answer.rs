//! What is said beside the question and the answer.

use benchmaster_analysis::Analysis;
use benchmaster_record::results::StudyResults;

use crate::overview::unbroken;
use crate::{format, overview};

/// What else is to be said of an answer.
pub(super) fn more(results: &StudyResults, analysis: &Analysis, answer: &[String]) -> Vec<String> {
    let mut sentences = overview::adaptive_lines(analysis);
    sentences.extend(overview::load_lines(analysis));
    sentences.retain(|sentence| !answer.contains(sentence));
    let estimates = analysis.treatments.iter().filter_map(|t| t.response(&analysis.primary_response));
    let estimates: Vec<_> = estimates.filter_map(|response| response.estimate.as_ref()).collect();
    if estimates.iter().any(|estimate| estimate.half_width.is_some()) {
        sentences.push(format!(
            "The number after ± is the half width of the {} Student-t confidence interval of the mean over n runs.",
            unbroken(&format::percent(analysis.confidence))
        ));
    }
    if let Some(why) = estimates.iter().find_map(|estimate| estimate.no_interval.as_ref()) {
        sentences.push(format!("Where there is no interval: {why}."));
    }
    let left_out = analysis.excluded + analysis.failed;
    if left_out > 0 {
        sentences.push(format!(
            "{left_out} of {} do not count: {} failed, {} left out as invalid.",
            format::plural(analysis.runs, "run"),
            analysis.failed,
            analysis.excluded
        ));
    }
    sentences.push(match (results.interruptions(), analysis.errors) {
        (0, 0) => "The study was never interrupted, and no operation failed.".into(),
        (n, errors) => format!(
            "The study was {}, and {} failed.",
            match n {
                0 => "never interrupted".into(),
                1 => "interrupted once and resumed".into(),
                n => format!("interrupted {n} times and resumed"),
            },
            if errors == 0 { "no operation".into() } else { format::plural(errors as usize, "operation") }
        ),
    });
    sentences
}
