//! A rate that had not settled.

use benchmaster_analysis::responses::{Course, counted, progress_series};
use benchmaster_stats::rank::{hodges_lehmann, mann_whitney};
use benchmaster_stats::steady::{ROUNDS_LEVEL, snia_last_rounds};
use benchmaster_stats::{mean, median};

use super::noisy_host::is_noisy;
use crate::finding::EvidenceUnit;
use crate::prelude::*;

/// Intervals of each half.
const LEAST: usize = 5;
/// p value of the halves.
const LEVEL: f64 = 0.01;
/// A stall at the end that is a finding: longer than a busy scheduler, or a CPU quota with its period of 100 ms, holds a
/// process back.
const STALL_NS: f64 = 2e8;
/// Evidence of a stall: the share of the time before it.
const UNTIL: &str = "until_share";
/// Difference of the halves, of the mean.
const DIFFERENCE: f64 = 0.1;

pub(crate) static RULE: Rule = Rule {
    check,
    remedy: Some(|check| {
        if check.number(UNTIL).is_some() { Remedy::default() } else { case("not-steady", "unsettled") }
    }),
    finding: Follows::Detector(detect),
    ..Rule::of(CheckKind::NotSteady)
};

fn detect(measured: &Measured<'_>) -> Verdict {
    let recording = measured.recording;
    if !recording.timed {
        return Verdict::Irrelevant;
    }
    let Some(check) = stored(measured, RULE.kind) else { return Verdict::Clear };
    let stood = check.number(UNTIL).map_or(0.0, |share| (1.0 - share) * recording.length_ns as f64);
    if stood >= STALL_NS {
        let number = |name: &str| check.number(name);
        let evidence = [
            number("operations").map(|n| Evidence::number("operations completed", n)),
            number(UNTIL).map(|share| Evidence::number("share of the time in which they were", share)),
        ];
        let stalled = Finding::new(Confidence::Certain, check.message.clone());
        return Verdict::Found(stalled.with(evidence.into_iter().flatten()));
    }
    let rates = progress_series(recording);
    let first = (recording.cut_ns / recording.interval_ns.max(1)) as usize;
    let rates: Vec<f64> = rates
        .get(first..)
        .unwrap_or_default()
        .iter()
        .map(|sum| sum * 1e9 / recording.interval_ns as f64)
        .collect();
    let (before, after) = rates.split_at(rates.len() / 2);
    if before.len() < LEAST {
        return Verdict::Unknown(format!(
            "{} intervals are too few to decide whether the rate changed; measure longer, or with a shorter `[run] interval`",
            rates.len()
        ));
    }
    let (Some(average), Ok(test), Ok(shift)) = (
        mean(&rates).filter(|mean| *mean > 0.0),
        mann_whitney(after, before),
        hodges_lehmann(after, before, 0.95),
    ) else {
        return Verdict::Clear;
    };
    let moved = shift.estimate / average;
    if test.p_two_sided >= LEVEL || moved.abs() < DIFFERENCE {
        return Verdict::Clear;
    }
    let middle = |half: &[f64]| median(half).unwrap_or(0.0);
    let word = if moved > 0.0 { "rose" } else { "fell" };
    let bytes = recording.series.iter().any(|series| series.total.bytes > 0);
    let told =
        |half: &[f64]| if bytes { rate(middle(half)) } else { format!("{:.0} operations/s", middle(half)) };
    let what = format!(
        "The rate {word} from {} to {}, the medians of the first and the second half of what was measured, and had not settled when it ended.",
        told(before),
        told(after)
    );
    let unit = if bytes { EvidenceUnit::BytesPerSecond } else { EvidenceUnit::PerSecond };
    let mut evidence = vec![
        Evidence::new("median rate of the first half", middle(before), unit),
        Evidence::new("median rate of the second half", middle(after), unit),
    ];
    let number = |name: &str| check.number(name).map(|percent| percent / 100.0);
    evidence.extend(
        number("range_pct").map(|v| Evidence::number("range of the last five rounds, of their mean", v)),
    );
    evidence.extend(
        number("drift_pct").map(|v| Evidence::number("drift over the last five rounds, of their mean", v)),
    );
    let interval = TestInterval {
        value: moved,
        lower: shift.lower / average,
        upper: shift.upper / average,
        confidence: shift.coverage,
    };
    // Others that come and go on the processors move the rate as well.
    let noisy = is_noisy(measured);
    let confidence = if noisy { Confidence::Possible } else { Confidence::Likely };
    let finding = Finding::new(confidence, what).advised(case("not-steady", "unsettled"))
        .with(evidence)
        .tested("Mann-Whitney, rates of the intervals of the second half against the first; shift of Hodges and Lehmann, of the mean", test.p_two_sided, interval);
    // How much of it others on the processors took is not known then.
    Verdict::Found(if noisy { finding } else { finding.costs(moved.abs() / 2.0) })
}

fn check(s: Subject<'_>) -> Option<Check> {
    if !s.recording.timed {
        return None;
    }
    match s.course {
        Course::NotSteady => {
            let message = "The rate had not settled: MSER-5 finds no warm-up to cut within the first half.";
            return failed(s, RULE.kind, Severity::Warning, message.into(), []);
        }
        Course::Stalled { operations, until_ns } => {
            let (until, length) = (until_ns as f64, s.recording.length_ns as f64);
            let message = format!(
                "Nothing was completed after {} of {}: the rate is that of the {operations} operations before over the whole \
                 time, and one run does not tell how often such a standstill comes.",
                time(until),
                time(length)
            );
            let evidence =
                [Evidence::number("operations", operations as f64), Evidence::number(UNTIL, until / length)];
            return failed(s, RULE.kind, Severity::Warning, message, evidence);
        }
        Course::Steady | Course::Unknown => {}
    }
    let (first, _) = counted(s.recording).intervals?;
    let series = progress_series(s.recording);
    let (rounds, p) = snia_last_rounds(series.get(first as usize..)?, 5)?;
    if rounds.steady || p > ROUNDS_LEVEL {
        return None;
    }
    let message = format!(
        "The rate was not steady by the SNIA rule: over five rounds it ranged over {:.0} % of its average (20 % allowed) and \
         drifted by {:.0} % (10 % allowed).",
        rounds.range_pct, rounds.slope_excursion_pct
    );
    let evidence = [
        Evidence::number("range_pct", rounds.range_pct),
        Evidence::number("drift_pct", rounds.slope_excursion_pct),
    ];
    failed(s, RULE.kind, Severity::Note, message, evidence)
}
