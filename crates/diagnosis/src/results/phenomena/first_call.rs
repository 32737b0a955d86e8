//! A first call that takes far longer than those that follow.

use super::tools::{digits, latencies, p_text};
use crate::prelude::*;
use crate::results::doubts::noisy_host::is_noisy;

/// Times the median.
const LEAST_RATIO: f64 = 8.0;
/// Share of the time of all operations of its kind from which on it moves the mean.
const LEAST_SHARE: f64 = 0.003;
/// Nanoseconds; less is nothing that a protocol does.
const LEAST_NS: f64 = 500_000.0;
/// Fewer calls of each worker say nothing of the first of them.
const LEAST_CALLS: u64 = 50;
const MOST_P: f64 = 0.005;

pub(super) const DETECTOR: Detector = Detector { id: "slow-first-call", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let judged: Vec<Verdict> = measured
        .recording
        .series
        .iter()
        .enumerate()
        .map(|(number, series)| of(measured, number, series))
        .collect();
    let cost = |verdict: &Verdict| match verdict {
        Verdict::Found(finding) => finding.cost.as_ref().map(|cost| cost.share),
        _ => None,
    };
    let dearest = judged.iter().filter(|verdict| cost(verdict).is_some());
    if let Some(found) = dearest.max_by(|a, b| cost(a).unwrap_or(0.0).total_cmp(&cost(b).unwrap_or(0.0))) {
        return found.clone();
    }
    if judged.contains(&Verdict::Clear) { Verdict::Clear } else { Verdict::Irrelevant }
}

fn of(measured: &Measured<'_>, number: usize, series: &SeriesRecording) -> Verdict {
    let workers = measured.recording.workers.iter().flat_map(|worker| &worker.series);
    let mut of_series = workers.filter(|of| of.series as usize == number && of.count > 0).peekable();
    let Some(histogram) = latencies(series).filter(|_| of_series.peek().is_some()) else {
        return Verdict::Irrelevant;
    };
    let (mut first, mut calls) = (Vec::new(), 0);
    for of in of_series {
        first.extend(of.first_latency_ns.map(|ns| ns as f64));
        calls += of.count;
    }
    if first.is_empty() || calls < LEAST_CALLS * first.len() as u64 {
        return Verdict::Irrelevant;
    }
    let middle = histogram.value_at_quantile(0.5) as f64;
    let typical = benchmaster_stats::median(&first).unwrap_or(0.0);
    let more: f64 = first.iter().map(|ns| (ns - middle).max(0.0)).sum();
    let part = share(more, series.total.sum_ns as f64);
    // Histograms keep values to within 1 %.
    let slower = |ns: f64| {
        let below = histogram.count_between(0, (ns * 0.99) as u64);
        ((histogram.len() - below.min(histogram.len())).max(1)) as f64 / histogram.len() as f64
    };
    let p = fisher(&first.iter().map(|ns| slower(*ns)).collect::<Vec<_>>());
    if typical < LEAST_RATIO * middle || typical - middle < LEAST_NS || part < LEAST_SHARE || p > MOST_P {
        return Verdict::Clear;
    }
    let label = &series.key.label;
    let name = "first calls are like any others (rank of each among all calls, Fisher's method)";
    let what = format!(
        "The first {label} takes {}, {} times the median of {}: {} of the time of all of them, and the maximum of the run ({}).",
        time(typical),
        digits(typical / middle.max(1.0)),
        time(middle),
        percent(part),
        p_text(p)
    );
    // All begin together, and wait for processors that others have.
    let confidence = if is_noisy(measured) { Confidence::Possible } else { Confidence::Certain };
    let finding = Finding::new(confidence, what)
        .with([
            Evidence::nanoseconds("first call, median over workers", typical),
            Evidence::nanoseconds("all calls, median", middle),
            Evidence::number("workers with a first call", first.len() as f64),
            Evidence::number("calls", calls as f64),
        ])
        .tested(name, p, None)
        .costs(share(more, measured.operation_ns() as f64));
    Verdict::Found(finding)
}

/// The p value of several independent ones together.
fn fisher(p: &[f64]) -> f64 {
    let half: f64 = -p.iter().map(|p| p.max(1e-300).ln()).sum::<f64>();
    // The chi-square distribution with 2k degrees of freedom is a sum of Poisson probabilities.
    let (mut term, mut sum) = (1.0, 1.0);
    for i in 1..p.len() {
        term *= half / i as f64;
        sum += term;
    }
    ((-half).exp() * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;

    use super::super::made;
    use super::*;

    fn verdict(first_us: f64, calls: u64) -> Verdict {
        let mut recording = made::recording("write", 10.0);
        let mut latencies = vec![(105e3 as u64, calls - 1)];
        latencies.push(((first_us * 1e3) as u64, 1));
        made::series(&mut recording, OperationKind::Write, 8192, &latencies);
        made::workers(&mut recording, &[1.0]);
        recording.workers[0].series[0].first_latency_ns = Some((first_us * 1e3) as u64);
        made::judge(recording, detect)
    }

    #[test]
    fn a_first_call_of_a_millisecond_beside_a_tenth() {
        let Verdict::Found(found) = verdict(1_000.0, 2_560) else { panic!() };
        assert!(found.what.contains("1 ms, 9.48"), "{}", found.what);
        assert!(found.tests[0].p.unwrap() < 0.001);
        let cost = found.cost.unwrap().share;
        assert!((cost - 0.895 / (2559.0 * 0.105 + 1.0)).abs() < 1e-4, "{cost}");
        // Seven times the median, or in so long a run that it does not matter.
        assert_eq!(verdict(735.0, 2_560), Verdict::Clear);
        assert_eq!(verdict(1_000.0, 3_500), Verdict::Clear);
        // Too few to know what is usual.
        assert_eq!(verdict(1_000.0, 49), Verdict::Irrelevant);
    }

    #[test]
    fn nothing_was_done() {
        assert_eq!(made::judge(made::recording("write", 1.0), detect), Verdict::Irrelevant);
    }

    #[test]
    fn p_values_together() {
        assert!((fisher(&[0.03]) - 0.03).abs() < 1e-12);
        // Fisher's method of 0.1 and 0.1: q = 0.01, p = q (1 − ln q).
        assert!((fisher(&[0.1, 0.1]) - 0.01 * (1.0 + 100f64.ln())).abs() < 1e-12);
    }
}
