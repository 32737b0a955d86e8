//! Latency that grows while a workload runs.

use benchmaster_record::recording::WorkerRecording;
use benchmaster_stats::association::{correlation, ranks};

use super::tools::{counted, digits, p_text};
use crate::prelude::*;
use crate::results::doubts::noisy_host::is_noisy;

/// Parts that the run is divided into, each with the mean latency of its calls.
const LEAST_PARTS: usize = 12;
/// Median of the last third over that of the first.
const LEAST_GROWTH: f64 = 1.5;
/// Part of the variation of the means' ranks that a straight line explains.
const LEAST_EXPLAINED: f64 = 0.6;
const MOST_P: f64 = 1e-4;
/// Calls in each part.
const LEAST_CALLS: u64 = 10;

pub(super) const DETECTOR: Detector = Detector { id: "latency-drift", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let mut found: Option<Finding> = None;
    let (mut judged, mut calls) = (false, false);
    for series in measured.recording.series.iter().filter(|series| series.total.count > 0) {
        calls = true;
        let Some(means) = course(measured, series) else { continue };
        judged = true;
        let Some(finding) = of(measured, series, &means) else { continue };
        if found.as_ref().is_none_or(|best| finding.share() > best.share()) {
            found = Some(finding);
        }
    }
    match (found, judged, calls) {
        (Some(finding), ..) => Verdict::Found(finding),
        (None, true, _) => Verdict::Clear,
        (None, false, false) => Verdict::Irrelevant,
        (None, false, true) => Verdict::Unknown(format!(
            "{LEAST_PARTS} intervals with {LEAST_CALLS} calls each tell it; ask for a shorter `run.interval`, or `trace = true` in the workload"
        )),
    }
}

/// Mean latencies in nanoseconds over the run.
fn course(measured: &Measured<'_>, series: &SeriesRecording) -> Option<Vec<f64>> {
    let (from, to) = together_at_work(measured);
    let interval = measured.recording.interval_ns.max(1);
    let whole = (from.div_ceil(interval))..(to / interval);
    let intervals = counted(measured, series).filter(|one| whole.contains(&u64::from(one.index)));
    let means = together(intervals.map(|interval| (interval.stats.count, interval.stats.sum_ns)));
    (means.len() >= LEAST_PARTS).then_some(means).or_else(|| traced(measured, series))
}

/// From when until when all workers were at work: calls take longer as others join, which is no drift.
fn together_at_work(measured: &Measured<'_>) -> (u64, u64) {
    let began =
        |worker: &WorkerRecording| worker.series.iter().filter_map(|series| series.first_start_ns).min();
    let working = || measured.recording.workers.iter().filter(|worker| began(worker).is_some());
    let from = working().filter_map(began).max().unwrap_or(0);
    let to = working().map(|worker| worker.end_ns).min().unwrap_or(measured.recording.length_ns);
    (from, to)
}

/// Mean latencies of parts with enough calls: neighbours with few are put together.
fn together(parts: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
    let (mut means, mut count, mut sum_ns) = (Vec::new(), 0, 0);
    for (more, more_ns) in parts {
        (count, sum_ns) = (count + more, sum_ns + more_ns);
        if count >= LEAST_CALLS {
            means.push(sum_ns as f64 / count as f64);
            (count, sum_ns) = (0, 0);
        }
    }
    means
}

/// The same of a trace, which may have more calls than memory has room for: of parts of the time, in which calls began.
fn traced(measured: &Measured<'_>, series: &SeriesRecording) -> Option<Vec<f64>> {
    const PARTS: u64 = 50;
    let number = measured.recording.series.iter().position(|other| other.key == series.key)?;
    let (from, to) = together_at_work(measured);
    let cut = measured.recording.cut_ns.max(from);
    let part = (to.checked_sub(cut)? / PARTS).max(1);
    let mut parts = [(0, 0); PARTS as usize];
    measured
        .trace(&mut |batch| {
            for call in batch.iter().filter(|call| usize::from(call.series) == number) {
                let Some(since) = call.start_ns.checked_sub(cut).filter(|_| call.start_ns < to) else {
                    continue;
                };
                let (count, sum_ns) = &mut parts[(since / part).min(PARTS - 1) as usize];
                (*count, *sum_ns) = (*count + 1, *sum_ns + call.latency_ns);
            }
        })?
        .ok()?;
    let means = together(parts.into_iter());
    (means.len() >= LEAST_PARTS).then_some(means)
}

fn of(measured: &Measured<'_>, series: &SeriesRecording, means: &[f64]) -> Option<Finding> {
    let third = means.len() / 3;
    let mean = |part: &[f64]| benchmaster_stats::mean(part);
    let (first, all) = (mean(&means[..third])?, mean(means)?);
    // Medians: a host that is held up for a moment makes a few means as large as it likes.
    let median = |part: &[f64]| benchmaster_stats::median(part);
    let (begin, end) = (median(&means[..third])?, median(&means[means.len() - third..])?);
    let (tau, p) = mann_kendall(means);
    let places = ranks(means);
    let explained = by_a_line(&places);
    let growth = end / begin.max(1.0);
    if tau <= 0.0 || p > MOST_P || growth < LEAST_GROWTH || explained < LEAST_EXPLAINED {
        return None;
    }
    // A step is no drift.
    if by_a_step(&places) >= explained {
        return None;
    }
    let label = &series.key.label;
    let what = format!(
        "Each {label} takes longer the longer the run goes on: {} in its first third, {} in its last ({} times as long; {}). There is no steady state.",
        time(begin),
        time(end),
        digits(growth),
        p_text(p)
    );
    let time_share = series.total.sum_ns as f64 / measured.operation_ns().max(1) as f64;
    let confidence = if is_noisy(measured) { Confidence::Possible } else { Confidence::Likely };
    Some(
        Finding::new(confidence, what)
            .with([
                Evidence::nanoseconds("mean latency, first third (median of its parts)", begin),
                Evidence::nanoseconds("mean latency, last third (median of its parts)", end),
                Evidence::number("Kendall's τ against time", tau),
                Evidence::number("variation of ranks explained by a straight line", explained),
            ])
            .tested("Mann-Kendall, mean latencies against time", p, None)
            .costs((1.0 - first / all) * time_share),
    )
}

/// Kendall's τ of a series against time, and the two-sided p value of none.
fn mann_kendall(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mut s: f64 = 0.0;
    for (i, a) in values.iter().enumerate() {
        for b in &values[i + 1..] {
            s += if b > a {
                1.0
            } else if b < a {
                -1.0
            } else {
                0.0
            };
        }
    }
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let z = if s == 0.0 { 0.0 } else { (s.abs() - 1.0) / variance.sqrt() };
    // With so many degrees of freedom Student's distribution is the normal one.
    let p = benchmaster_stats::t_two_sided_p(z, 1e6);
    (2.0 * s / (n * (n - 1.0)), p)
}

/// The share of the variation that a straight line over the numbers of the values explains.
fn by_a_line(values: &[f64]) -> f64 {
    let numbers: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
    correlation(&numbers, values).map_or(0.0, |r| r * r)
}

/// The share that the best of all single steps explains: three quarters of what a line does, if the values lie on one.
fn by_a_step(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let all: f64 = values.iter().sum();
    let mean = all / n;
    let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let (mut sum, mut best) = (0.0, 0.0f64);
    for (number, value) in (1..values.len()).zip(values) {
        sum += value;
        let (before, after) = (number as f64, n - number as f64);
        let between = before * (sum / before - mean).powi(2) + after * ((all - sum) / after - mean).powi(2);
        best = best.max(between);
    }
    if total > 0.0 { best / total } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;

    use super::super::made;
    use super::*;

    fn verdict(latency_us: impl Fn(u32) -> f64, intervals: u32) -> Verdict {
        let mut recording = made::recording("write", f64::from(intervals));
        made::intervals(&mut recording, OperationKind::Write, intervals, |i| {
            (100, 100 * 8192, latency_us(i) * 1e3)
        });
        made::judge(recording, detect)
    }

    #[test]
    fn latency_that_grows_by_more_than_half_is_told() {
        let wobble = |i: u32| f64::from(i * 7919 % 13) - 6.0;
        let Verdict::Found(found) = verdict(|i| 250.0 + 20.0 * f64::from(i) + wobble(i), 24) else {
            panic!()
        };
        assert!(found.what.contains("Each write takes longer"), "{}", found.what);
        assert!(found.tests[0].p.unwrap() < 1e-4);
        assert!(found.cost.unwrap().share > 0.3);
        // A third more; noise; falling; a single step is no drift that a line explains, but a jump in the middle of noise.
        assert_eq!(verdict(|i| 500.0 + 8.0 * f64::from(i) + wobble(i), 24), Verdict::Clear);
        assert_eq!(verdict(|i| 500.0 + 30.0 * wobble(i), 24), Verdict::Clear);
        assert_eq!(verdict(|i| 900.0 - 20.0 * f64::from(i), 24), Verdict::Clear);
        assert_eq!(verdict(|i| if i == 23 { 9_000.0 } else { 300.0 + wobble(i) }, 24), Verdict::Clear);
    }

    /// On random courses: means with noise up to 10 %, and a moment in which the host was held up.
    #[test]
    fn drifts_are_found_and_steps_are_not() {
        let mut state = 7u64;
        let mut unit = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut found, mut wrong) = (0, 0);
        const TRIALS: u32 = 1000;
        for trial in 0..2 * TRIALS {
            let drift = trial < TRIALS;
            let (intervals, growth, noise) = (20 + (unit() * 40.0) as u32, 2.0 + 4.0 * unit(), 0.1 * unit());
            let at = 0.2 + 0.6 * unit();
            let held_up = (unit() * f64::from(intervals)) as u32;
            let course: Vec<f64> = (0..intervals)
                .map(|i| {
                    let along = f64::from(i) / f64::from(intervals - 1);
                    let level = if drift {
                        1.0 + (growth - 1.0) * along
                    } else if along < at {
                        1.0
                    } else {
                        growth
                    };
                    let bell: f64 = (0..12).map(|_| unit()).sum::<f64>() - 6.0;
                    let held = if held_up == i { 1.0 + 10.0 * unit() } else { 1.0 };
                    100.0 * level * (1.0 + noise * bell).max(0.2) * held
                })
                .collect();
            let verdict = verdict(|i| course[i as usize], intervals);
            let is_found = matches!(verdict, Verdict::Found(_));
            if drift {
                found += u32::from(is_found);
            } else {
                wrong += u32::from(is_found);
            }
        }
        assert!(
            found >= 960 && wrong <= 20,
            "{found} drifts found, {wrong} steps taken for drifts, of {TRIALS} each"
        );
    }

    #[test]
    fn intervals_with_few_calls_are_put_together() {
        let few = |intervals: u32| {
            let mut recording = made::recording("write", f64::from(intervals));
            made::intervals(&mut recording, OperationKind::Write, intervals, |i| {
                (4, 4 * 8192, 250e3 + 10e3 * f64::from(i))
            });
            made::judge(recording, detect)
        };
        assert!(matches!(few(36), Verdict::Found(_)));
        assert!(matches!(few(35), Verdict::Unknown(_)));
    }

    #[test]
    fn too_few_intervals_and_no_trace() {
        assert!(matches!(verdict(f64::from, 11), Verdict::Unknown(why) if why.contains("run.interval")));
        assert_eq!(made::judge(made::recording("write", 1.0), detect), Verdict::Irrelevant);
    }

    #[test]
    fn the_test_of_a_trend() {
        let (tau, p) = mann_kendall(&(0..12).map(f64::from).collect::<Vec<_>>());
        // S = 66, variance 212.67: z = 65 / 14.58.
        assert_eq!(tau, 1.0);
        assert!((p - 8.3e-6).abs() < 3e-7, "{p}");
        assert_eq!(mann_kendall(&[1.0; 12]).0, 0.0);
    }
}
