//! A curve in words.

use benchmaster_record::results::{LoadCurve, LoadRecord, Unit};

use benchmaster_units::format::{plural, rounded};

use super::decide::EndReason;
use super::judge::{Question, time};
use super::summary::{CurveSummary, WithInterval};

/// A load by its level: `1500/s`, `16 workers`.
pub(super) fn load(question: &Question, level: u32) -> String {
    question.loads.get(level as usize).map_or_else(|| "?".into(), |&load| of(question, load))
}

fn of(question: &Question, load: f64) -> String {
    match question.curve {
        LoadCurve::Open => format!("{load}/s"),
        LoadCurve::Closed if load == 1.0 => "1 worker".into(),
        LoadCurve::Closed => format!("{load} workers"),
    }
}

pub(super) fn sentences(question: &Question, record: &LoadRecord, curve: &CurveSummary) -> Vec<String> {
    let mut all = Vec::new();
    let Some(end) = &curve.end else {
        return vec!["The curve is not finished: runs are missing.".into()];
    };
    let per_client = if curve.points.iter().any(|p| p.requested.is_some_and(|all| all > 1.0001 * p.load)) {
        " of each client"
    } else {
        ""
    };
    let of = |load: f64| format!("{}{per_client}", of(question, load));
    let kept = curve.kept.map(of);
    let broken = curve.broken.map(of).unwrap_or_default();
    let asked = match (question.goal, question.curve) {
        (Some(goal), _) => format!(
            "keeps the goal (the latency's {} at most {})",
            goal.latency.name(),
            time(goal.at_most_ns)
        ),
        (None, LoadCurve::Open) => "is achieved".to_owned(),
        (None, LoadCurve::Closed) => "was run".to_owned(),
    };
    all.push(match end.reason {
        EndReason::Rate | EndReason::Latency => match &kept {
            Some(kept) => format!(
                "The highest load that {asked} lies between {kept} and {broken}: there, {}.",
                end.why
            ),
            None => format!("No load that was run {asked}: at {broken}, {}.", end.why),
        },
        EndReason::Saturated => match question.goal {
            Some(_) => format!("The goal was kept as long as the rate grew; at {broken} it did not: {}.", end.why),
            None => format!("The rate grew up to {}; {}.", kept.unwrap_or_default(), end.why),
        },
        EndReason::Client => {
            let up_to = match &kept {
                Some(kept) => format!("what is measured {} up to {kept}, and", keeps(question)),
                None => "no load was low enough, and".into(),
            };
            format!(
                "The generator of the load was the limit at {broken}, not what is measured: {up_to} how far it goes is not known ({}).",
                end.why
            )
        }
        EndReason::Failed => format!("The curve ends at {broken}: {}.", end.why),
        EndReason::Range => within(curve.kept, &curve.undecided, &end.why, of),
    });
    if !curve.undecided.is_empty() {
        let loads: Vec<_> = curve.undecided.iter().map(|load| of(*load)).collect();
        all.push(format!(
            "Not decided with up to {}: {}; the intervals contain a limit.",
            plural(record.max_replicates as usize, "run"),
            loads.join(", ")
        ));
    }
    if let (Some(peak), Some(at)) = (&curve.peak, curve.peak_load) {
        let rate = rounded(peak.mean, peak.half_width, Unit::OperationsPerSecond, None).text(true);
        all.push(format!("The highest rate achieved was {rate}, at {}.", of(at)));
    }
    if let Some(knee) = &curve.knee {
        let place = between(knee.load, of);
        all.push(if knee.at_the_end { format!(
                "There is no knee up to {place}, the highest load that counts: the rate divided by the response time \
                 still grows."
            ) } else { format!(
                "The knee, where the rate divided by the response time is greatest, is at {place}: beyond it the \
                 response time grows faster than the rate."
            ) });
    }
    if let Some(overall) = curve.overall_response_time {
        all.push(format!("Overall response time: {}.", between(overall, time)));
    }
    all
}

/// What is known where no load was too high for certain.
fn within(kept: Option<f64>, undecided: &[f64], why: &str, of: impl Fn(f64) -> String) -> String {
    let Some(load) = kept else { return format!("No load could be decided: {why}.") };
    let kept = of(load);
    if undecided.iter().any(|higher| *higher > load) {
        return format!(
            "The highest load that was certainly kept is {kept}; whether higher ones are kept could not be decided: \
             raise `max_replicates`, or measure longer."
        );
    }
    format!("Every load was kept up to {kept}, the highest to be tried; raise `to` to find the limit.")
}

fn keeps(question: &Question) -> &'static str {
    if question.goal.is_some() { "keeps the goal" } else { "keeps up" }
}

fn between(number: WithInterval, text: impl Fn(f64) -> String) -> String {
    match number.interval {
        Some([low, high]) => format!("{} ({} to {})", text(number.value), text(low), text(high)),
        None => text(number.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_below_undecided_ones_is_not_the_highest_that_was_tried() {
        let said =
            |kept, undecided: &[f64]| within(kept, undecided, "too few runs", |load| format!("{load}/s"));
        assert!(said(Some(400.0), &[]).starts_with("Every load was kept up to 400/s, the highest"));
        assert!(said(Some(400.0), &[200.0]).contains("raise `to`"));
        let open = said(Some(200.0), &[400.0]);
        assert!(open.starts_with("The highest load that was certainly kept is 200/s;"), "{open}");
        assert!(!open.contains("raise `to`"), "{open}");
        assert_eq!(said(None, &[200.0]), "No load could be decided: too few runs.");
    }
}
