//! Stops of everything that are all of one length: a host that is disturbed makes some of any length.

use benchmaster_stats::median;
use benchmaster_stats::share::at_least;

use super::course::distance;
use crate::prelude::*;
use crate::results::slow::{Together, together};

/// Operations are held up that take this many times the median, and this long in nanoseconds, or more.
const TIMES: u64 = 4;
const LEAST_NS: u64 = 20_000_000;
/// Share of the workers that a stop holds up.
const WORKERS: f64 = 0.7;
/// Stops that tell.
const LEAST: usize = 4;
/// How far from their median alike ones may be, of it; and how likely one is there by chance: of exponential lengths 0.15.
const ALIKE: f64 = 0.15;
const CHANCE: f64 = 0.25;
const LEVEL: f64 = 0.01;
/// Of their length, from which on stops are compared.
const SHORTER: f64 = 1.0 / 3.0;
/// Share of the time of all that were held up.
const MOST_OF_IT: f64 = 0.5;
/// Operations of each worker between two stops.
const BETWEEN: f64 = 8.0;
/// Of the time of all operations.
const LEAST_SHARE: f64 = 0.02;

/// Operations that took at least so long.
fn slow(measured: &Measured<'_>, least_ns: u64) -> f64 {
    let of = measured.recording.series.iter().filter_map(|series| series.total.latency.decode().ok());
    of.map(|latency| latency.count_between(least_ns, u64::MAX)).sum::<u64>().max(1) as f64
}

fn sum<'a>(some: impl Iterator<Item = &'a Together>) -> f64 {
    some.map(|one| one.sum_ns as f64).sum()
}

/// The share of the time of all slow operations that those have which held up most workers together.
pub(super) fn share_together(measured: &Measured<'_>, usual_ns: u64) -> f64 {
    let workers = measured.recording.workers.iter().filter(|worker| !worker.series.is_empty()).count();
    let held = together(measured, 0, usual_ns);
    let least = (WORKERS * workers as f64).max(2.0);
    let full = held.iter().filter(|one| one.workers as f64 >= least && one.is_released());
    share(sum(full), sum(held.iter()))
}

/// Stops of one length.
pub(super) fn of_one_length(measured: &Measured<'_>, workers: usize, usual_ns: u64) -> Option<Finding> {
    let least = (TIMES * usual_ns).max(LEAST_NS);
    let kept = together(measured, 0, usual_ns);
    let is_full = |one: &&Together| one.workers as f64 >= WORKERS * workers as f64 && one.is_released();
    let long = kept.iter().filter(is_full).filter(|one| one.longest_ns >= least);
    let lengths: Vec<f64> = long.map(|one| one.longest_ns as f64).collect();
    let length = median(&lengths)?;
    // Shorter ones count as well: of those alone that are beyond a limit, many are near it.
    let held: Vec<Together> =
        kept.into_iter().filter(|one| one.longest_ns as f64 >= length * SHORTER).collect();
    let full: Vec<&Together> = held.iter().filter(is_full).collect();
    let near = |one: &&&Together| (one.longest_ns as f64 - length).abs() <= ALIKE * length + usual_ns as f64;
    let alike: Vec<&Together> = full.iter().filter(near).copied().collect();
    let lost = sum(alike.iter().copied());
    let p = at_least(alike.len() as u64, full.len() as u64, CHANCE);
    let part = share(lost, measured.operation_ns() as f64);
    let calls: usize = alike.iter().map(|one| one.operations).sum();
    // The recording may have kept the first ones only.
    let (slow, kept) = (slow(measured, least), held.iter().map(|one| one.operations as f64).sum::<f64>());
    let between = (measured.operations() as f64 - slow) / slow * kept;
    let is = alike.len() >= LEAST
        && between >= BETWEEN * (alike.len() * workers) as f64
        && p <= LEVEL
        && lost >= MOST_OF_IT * sum(held.iter())
        && part >= LEAST_SHARE;
    if !is {
        return None;
    }
    let ends: Vec<u64> = alike.iter().map(|one| one.ended_ns).collect();
    let what = format!(
        "{} times, about every {}, all {workers} workers were held up together for {}, always about as long, where half of the calls take {}: {} of the time of all operations.",
        alike.len(),
        time(distance(&ends)),
        time(length),
        time(usual_ns as f64),
        percent(part)
    );
    Some(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::number("pauses", alike.len() as f64),
                Evidence::number("calls that were held up", calls as f64),
                Evidence::number("of each worker, at a time", calls as f64 / (alike.len() * workers) as f64),
                Evidence::nanoseconds("how long, median", length),
            ])
            .tested("binomial: stops of one length, against 25 % by chance", p, None)
            .costs(part),
    )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::SlowOperation;

    use super::super::course::PAUSES;
    use super::super::made;
    use super::*;

    /// Four workers' calls of 1 ms in a minute on a host that others use, with a stop each second, of some milliseconds, that holds
    /// up some workers.
    fn verdict(length: impl Fn(u64) -> u64, workers: u32) -> Verdict {
        let mut recording = made::recording("read", 20.0);
        made::series(&mut recording, OperationKind::Read, 4096, &[(1_000_000, 40_000), (60_000_000, 72)]);
        made::workers(&mut recording, &[1.0; 4]);
        for second in 1..19_u64 {
            let slow = |worker: u32| SlowOperation {
                worker,
                start_ns: second * 1_000_000_000 + u64::from(worker) * 200_000,
                latency_ns: length(second) * 1_000_000 - u64::from(worker) * 150_000,
                ..SlowOperation::default()
            };
            recording.slow.extend((0..workers).map(slow));
        }
        let mut results = made::study(
            "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.read]\nuse = \"random-read\"\nduration = \"1s\"\n",
        );
        made::add(&mut results, 0, vec![recording], &[]);
        results.runs[0].checks.push(made::check(CheckKind::NoisyHost, "read", &[("steal", 0.1)]));
        made::judge_run(&results, 0, &made::Traces::default(), PAUSES.detect)
    }

    #[test]
    fn stops_of_one_length_are_found_on_a_noisy_host() {
        let Verdict::Found(found) = verdict(|_| 60, 4) else { panic!() };
        assert!(
            found.what.starts_with("18 times, about every 1 s, all 4 workers were held up together for 60 ms, always about as long"),
            "{}",
            found.what
        );
        assert_eq!(found.confidence, Confidence::Likely);
        // Of two of four workers; of any length; too short.
        assert_eq!(verdict(|_| 60, 2), Verdict::Clear);
        assert_eq!(verdict(|second| 25 + (second * 7919) % 150, 4), Verdict::Clear);
        assert_eq!(verdict(|_| 15, 4), Verdict::Clear);
    }
}
