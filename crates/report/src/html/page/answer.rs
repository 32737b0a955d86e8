//! The answer in sentences.

use benchmaster_stats::interval::welch;
use benchmaster_store::record::StudyResults;
use benchmaster_study::analysis::{Analysis, Estimate, ResponseSummary, TreatmentSummary};

use crate::format::{self, rounded};

/// What the study found about its primary response.
pub(super) fn answer(results: &StudyResults, analysis: &Analysis) -> Vec<String> {
    let name = &analysis.primary_response;
    let mut found: Vec<(&TreatmentSummary, &ResponseSummary, &Estimate)> = analysis
        .treatments
        .iter()
        .filter_map(|t| {
            let response = t.response(name)?;
            Some((t, response, response.estimate.as_ref()?))
        })
        .collect();
    let Some(unit) = analysis.primary_unit else {
        return vec![format!("No run has the response {name}: there is no answer yet.")];
    };
    if found.is_empty() {
        return vec![format!("No run counts, so nothing is known about {name}.")];
    }
    let show = |e: &Estimate| {
        let value = format::unbroken(&rounded(e.mean, e.half_width, unit, None).text(true));
        let n = format::unbroken(&format!("n = {}", e.n));
        match &e.no_interval {
            Some(reason) => format!("{value} ({n}; no interval: {reason})"),
            None => format!("{value} ({n})"),
        }
    };
    let mut sentences = Vec::new();
    if let [(_, _, estimate)] = found.as_slice() {
        sentences.push(format!("{name} is {}.", show(estimate)));
    } else {
        found.sort_by(|a, b| b.2.mean.total_cmp(&a.2.mean));
        if !unit.larger_is_better() {
            found.reverse();
        }
        let (first, last) = (&found[0], &found[found.len() - 1]);
        let (most, least) =
            if unit.larger_is_better() { ("highest", "lowest") } else { ("lowest", "highest") };
        sentences.push(format!(
            "{name} is {most} with {}: {}; it is {least} with {}: {}.",
            first.0.label,
            show(first.2),
            last.0.label,
            show(last.2)
        ));
        sentences.extend(second(&found, analysis.confidence, most));
    }
    if found.iter().any(|(.., e)| e.half_width.is_some()) {
        sentences.push(format!(
            "The number after ± is the half width of the {} Student-t confidence interval of the mean over n runs.",
            format::unbroken(&format::percent(analysis.confidence))
        ));
    }
    if analysis.excluded + analysis.failed > 0 {
        sentences.push(format!(
            "{} of {} do not count: {} failed, {} left out as invalid.",
            analysis.excluded + analysis.failed,
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

/// Whether the best treatment can be told apart from the next.
fn second(
    found: &[(&TreatmentSummary, &ResponseSummary, &Estimate)],
    confidence: f64,
    most: &str,
) -> Option<String> {
    let values = |r: &ResponseSummary| -> Vec<f64> {
        r.values.iter().filter(|v| !v.excluded).map(|v| v.value).collect()
    };
    let (best, next) = (found.first()?, found.get(1)?);
    let comparison = welch(&values(best.1), &values(next.1), confidence).ok()?;
    let label = &next.0.label;
    Some(if comparison.difference.abs() > comparison.half_width {
        format!(
            "The {most} differs from the next, {label} (Welch interval at {}).",
            format::unbroken(&format::percent(confidence))
        )
    } else {
        format!(
            "The {most} cannot be told apart from the next, {label}, given the noise (Welch interval at {}).",
            format::unbroken(&format::percent(confidence))
        )
    })
}
