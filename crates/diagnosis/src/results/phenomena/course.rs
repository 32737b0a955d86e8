//! The course of a run from its first operation on, before anything is cut: stretches in which calls were slow, and moments
//! at which all of them were held up.

use benchmaster_stats::median;

use super::standstill::{explained, waited};
use super::stops::of_one_length;
use super::tools::{counted_whole, digits, p_text};
use crate::prelude::*;
use crate::results::doubts::noisy_host::is_noisy;
use crate::results::limits::client_cpu::throttled;
use crate::results::limits::laws::pauses;

/// Intervals that a course needs, and calls in each.
const LEAST_INTERVALS: usize = 20;
const LEAST_CALLS: u64 = 3;
/// Slow intervals over the others: their medians, and the quickest tenth of them over the slowest tenth of the others.
const LEAST_TIMES: f64 = 2.0;
const LEAST_GAP: f64 = 1.3;
/// Share of the variance of the logarithms that a division in two explains: 0.64 of normal values, 0.75 of a slope.
const LEAST_EXPLAINED: f64 = 0.82;
/// Nanoseconds that calls took longer; more where others used the processors.
const LEAST_NS: f64 = 1e6;
const LEAST_NS_NOISY: f64 = 20e6;
/// Of both kinds.
const LEAST_OF_A_KIND: usize = 3;
/// How likely so few stretches, or so few intervals with calls that were held up, come by chance.
const MOST_P: f64 = 1e-3;
const MOST_P_RUNS: f64 = 0.01;
/// Of the time of operations.
const LEAST_SHARE: f64 = 0.02;
/// A call that was held up: times the median, and nanoseconds.
const HELD_TIMES: u64 = 10;
const HELD_NS: u64 = 20_000_000;
const HELD_NS_NOISY: u64 = 100_000_000;
/// Calls that are held up at a time, by the number of workers: of all of them, each once.
const HELD_BY_WORKERS: (f64, f64) = (0.7, 1.7);

pub(super) const STRETCHES: Detector = Detector { id: "slow-stretches", detect: stretches };
pub(super) const PAUSES: Detector = Detector { id: "short-pauses", detect: paused };

/// One-sided p value of a normal value as low as this.
fn p_of_low(z: f64) -> f64 {
    let half = benchmaster_stats::t_two_sided_p(z, 1e6) / 2.0;
    if z < 0.0 { half } else { 1.0 - half }
}

fn irrelevant(measured: &Measured<'_>) -> bool {
    measured.is_virtual()
        || measured.operations() == 0
        || measured.recording.is_open_loop()
        || measured.workload.is_some_and(pauses)
}

/// What slow stretches cost, of the time of all operations; 0 where there are none that are likely.
pub(in crate::results) fn lost_in_stretches(measured: &Measured<'_>) -> f64 {
    match stretches(measured) {
        Verdict::Found(finding) if finding.confidence > Confidence::Possible => finding.share(),
        _ => 0.0,
    }
}

/// Where a division of sorted values separates them best; 0 where there are too few.
pub(in crate::results) fn divide(sorted: &[f64]) -> usize {
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(sorted.iter().scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        }))
        .collect();
    let (n, all) = (sorted.len() as f64, sums.last().copied().unwrap_or(0.0));
    let between = |at: usize| {
        let (low, high) = (at as f64, n - at as f64);
        low * high * (sums[at] / low - (all - sums[at]) / high).powi(2)
    };
    (1..sorted.len()).max_by(|a, b| between(*a).total_cmp(&between(*b))).unwrap_or(0)
}

/// The share of the variance of values that a division of them explains.
fn explains(values: &[f64], at: usize) -> f64 {
    let squares = |some: &[f64]| {
        let mean = benchmaster_stats::mean(some).unwrap_or(0.0);
        some.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let (low, high) = values.split_at(at);
    1.0 - share(squares(low) + squares(high), squares(values))
}

/// How likely as few runs of slow ones and others come by chance.
fn few_runs(slow: &[bool]) -> f64 {
    let n = slow.len() as f64;
    let ones = slow.iter().filter(|slow| **slow).count() as f64;
    let product = 2.0 * ones * (n - ones);
    let runs = 1.0 + slow.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let variance = product * (product - n) / (n * n * (n - 1.0));
    if variance <= 0.0 { 1.0 } else { p_of_low((runs - product / n - 1.0) / variance.sqrt()) }
}

fn stretches(measured: &Measured<'_>) -> Verdict {
    let Some(series) = measured.longest().filter(|_| !irrelevant(measured)) else {
        return Verdict::Irrelevant;
    };
    let moments: Vec<(u32, f64, u64)> = counted_whole(measured, series)
        .filter(|one| one.stats.count >= LEAST_CALLS)
        .map(|one| (one.index, one.stats.sum_ns as f64 / one.stats.count as f64, one.stats.count))
        .collect();
    if moments.len() < LEAST_INTERVALS {
        return Verdict::Unknown(format!(
            "{LEAST_INTERVALS} intervals with {LEAST_CALLS} calls each tell it: ask for a shorter or longer `run.interval`, or measure longer"
        ));
    }
    let mut sorted: Vec<f64> = moments.iter().map(|(_, mean, _)| *mean).collect();
    sorted.sort_by(f64::total_cmp);
    let logs: Vec<f64> = sorted.iter().map(|mean| mean.max(1.0).ln()).collect();
    let at = divide(&logs);
    let (quick, slow) = sorted.split_at(at);
    let (Some(usual), Some(long)) = (median(quick), median(slow)) else { return Verdict::Clear };
    let apart = slow[slow.len() / 10] >= LEAST_GAP * quick[(quick.len() - 1) * 9 / 10]
        || explains(&logs, at) >= LEAST_EXPLAINED;
    let least = if is_noisy(measured) { LEAST_NS_NOISY } else { LEAST_NS };
    let much = long >= LEAST_TIMES * usual && long - usual >= least;
    let is_slow: Vec<bool> = moments.iter().map(|(_, mean, _)| *mean >= slow[0]).collect();
    let p = few_runs(&is_slow);
    let lost: f64 = moments
        .iter()
        .filter(|(_, mean, _)| *mean >= slow[0])
        .map(|(_, mean, count)| (mean - usual) * *count as f64)
        .sum();
    let part = share(lost, measured.operation_ns() as f64);
    let enough = quick.len().min(slow.len()) >= LEAST_OF_A_KIND;
    if !apart || !much || !enough || p > MOST_P_RUNS || part < LEAST_SHARE || explained(measured) {
        return Verdict::Clear;
    }
    let interval = measured.recording.interval_ns;
    // A single interval between two of the other kind neither makes nor ends a stretch.
    let majority = |at: usize| {
        let around = &is_slow[at.saturating_sub(1)..is_slow.len().min(at + 2)];
        let slow = around.iter().filter(|slow| **slow).count();
        if around.len() < 3 { is_slow[at] } else { slow >= 2 }
    };
    let is_slow: Vec<bool> = (0..is_slow.len()).map(majority).collect();
    let begins: Vec<u64> = (0..is_slow.len())
        .filter(|at| is_slow[*at] && (*at == 0 || !is_slow[at - 1]))
        .map(|at| u64::from(moments[at].0) * interval)
        .collect();
    let turn = is_slow.windows(2).position(|pair| pair[0] != pair[1]).map_or(0, |at| at + 1);
    let turned = time(f64::from(moments[turn].0) * interval as f64);
    let when = match (begins.len(), is_slow[0], is_slow.last() == Some(&true)) {
        (1, true, _) => format!("Until {turned} from the beginning"),
        (1, _, true) => format!("From {turned} on, until the end"),
        (1, ..) => format!("Once, from {turned} on"),
        (times, ..) => format!("{times} times, about every {},", time(distance(&begins))),
    };
    let cut = match measured.recording.cut_ns {
        0 => String::new(),
        cut => format!(" The warm-up rule cut the first {}: the numbers are without it.", time(cut as f64)),
    };
    let what = format!(
        "{when} a {} took {}, {} times the {} at other times: {} of the time of all operations.{cut}",
        series.key.label,
        time(long),
        digits(long / usual.max(1.0)),
        time(usual),
        percent(part)
    );
    let confidence = if is_noisy(measured) { Confidence::Possible } else { Confidence::Likely };
    let slow_intervals = is_slow.iter().filter(|slow| **slow).count();
    Verdict::Found(
        Finding::new(confidence, what)
            .with([
                Evidence::nanoseconds("mean latency in slow intervals, median", long),
                Evidence::nanoseconds("mean latency in the others, median", usual),
                Evidence::number(
                    "share of the intervals that are slow",
                    share(slow_intervals as f64, is_slow.len() as f64),
                ),
                Evidence::number("stretches", begins.len() as f64),
            ])
            .tested(format!("Wald and Wolfowitz, runs of slow intervals ({})", p_text(p)), p, None)
            .costs(part),
    )
}

/// From one to the next, in nanoseconds.
pub(super) fn distance(times: &[u64]) -> f64 {
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    median(&gaps).unwrap_or(0.0)
}

fn paused(measured: &Measured<'_>) -> Verdict {
    let workers = measured.recording.workers.iter().filter(|worker| !worker.series.is_empty()).count();
    if irrelevant(measured) || workers < 2 {
        return Verdict::Irrelevant;
    }
    let Some(usual) = measured.usual_ns() else { return Verdict::Irrelevant };
    let elsewhere = throttled(measured).is_some() || waited(measured);
    if let Some(found) = of_one_length(measured, workers, usual).filter(|_| !elsewhere) {
        return Verdict::Found(found);
    }
    let noisy = is_noisy(measured);
    let least = (HELD_TIMES * usual).max(if noisy { HELD_NS_NOISY } else { HELD_NS });
    let interval = measured.recording.interval_ns.max(1);
    let intervals = (measured.recording.length_ns / interval) as usize;
    let mut held = vec![0_u64; intervals];
    let (mut held_ns, mut longest_ns) = (0.0, 0);
    for one in measured.recording.series.iter().flat_map(|series| counted_whole(measured, series)) {
        let Ok(latency) = one.stats.latency.decode() else { continue };
        if latency.max() < least {
            continue;
        }
        longest_ns = longest_ns.max(latency.max());
        for bucket in latency.iter_recorded().filter(|bucket| bucket.value_iterated_to() >= least) {
            held[one.index as usize] += bucket.count_at_value();
            held_ns += bucket.count_at_value() as f64 * bucket.value_iterated_to() as f64;
        }
    }
    let calls: u64 = held.iter().sum();
    let hit: Vec<u64> = (0..).zip(&held).filter(|(_, held)| **held > 0).map(|(at, _)| at).collect();
    // What one pause holds up may end in neighbouring intervals.
    let begins: Vec<u64> = hit
        .iter()
        .copied()
        .filter(|at| *at == 0 || !hit.contains(&(at - 1)))
        .map(|at| at * interval)
        .collect();
    let each = calls as f64 / begins.len().max(1) as f64 / workers as f64;
    let p = few_places(intervals as f64, calls as f64, hit.len() as f64);
    let part = share(held_ns, measured.operation_ns() as f64);
    let (fewest, most) = HELD_BY_WORKERS;
    if intervals < LEAST_INTERVALS
        || begins.len() < 2
        || !(fewest..=most).contains(&each)
        || p > MOST_P
        || part < LEAST_SHARE
        || elsewhere
        || explained(measured)
    {
        return Verdict::Clear;
    }
    let what = format!(
        "{} times, about every {}, all {workers} workers were held up together, for {} on average and {} at most, where half of the calls take {}: {} of the time of all operations.",
        begins.len(),
        time(distance(&begins)),
        time(held_ns / calls as f64),
        time(longest_ns as f64),
        time(usual as f64),
        percent(part)
    );
    let confidence = if noisy { Confidence::Possible } else { Confidence::Likely };
    Verdict::Found(
        Finding::new(confidence, what)
            .with([
                Evidence::number("pauses", begins.len() as f64),
                Evidence::number("calls that were held up", calls as f64),
                Evidence::number("of each worker, at a time", each),
                Evidence::nanoseconds("how long, on average", held_ns / calls as f64),
            ])
            .tested(format!("calls by chance are in as few intervals ({})", p_text(p)), p, None)
            .costs(part),
    )
}

/// How likely so many balls fall into so few of the urns.
fn few_places(urns: f64, balls: f64, hit: f64) -> f64 {
    let (one, two) = ((1.0 - 1.0 / urns).powf(balls), (1.0 - 2.0 / urns).max(0.0).powf(balls));
    let variance = urns * (urns - 1.0) * two + urns * one - urns * urns * one * one;
    if variance <= 0.0 { 1.0 } else { p_of_low((hit - urns * (1.0 - one)) / variance.sqrt()) }
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::{EncodedHistogram, Recording, latency_histogram};

    use super::super::made;
    use super::*;

    /// A minute in intervals of a second, 100 calls each with latencies in microseconds.
    fn course(of: impl Fn(u32) -> f64) -> Recording {
        let mut recording = made::recording("read", 60.0);
        made::intervals(&mut recording, OperationKind::Read, 60, |at| (100, 100 * 4096, of(at) * 1e3));
        recording
    }

    fn noise(at: u32) -> f64 {
        f64::from(at * 7919 % 13) * 10.0
    }

    fn told(of: impl Fn(u32) -> f64, cut_s: u64) -> Option<String> {
        let mut recording = course(of);
        recording.cut_ns = cut_s * 1_000_000_000;
        match made::judge(recording, stretches) {
            Verdict::Found(found) => Some(found.what),
            _ => None,
        }
    }

    #[test]
    fn slow_beginnings_ends_and_returns_are_told_also_where_they_were_cut() {
        let cold = told(|at| if at < 12 { 9_000.0 } else { 400.0 + noise(at) }, 12).unwrap();
        assert!(cold.starts_with("Until 12 s from the beginning a read took 9 ms"), "{cold}");
        assert!(cold.ends_with("The warm-up rule cut the first 12 s: the numbers are without it."), "{cold}");
        let credits = told(|at| if at < 40 { 400.0 + noise(at) } else { 5_000.0 }, 0).unwrap();
        assert!(credits.starts_with("From 40 s on, until the end"), "{credits}");
        let bursts = told(|at| if at % 20 < 6 { 5_000.0 } else { 400.0 + noise(at) }, 0).unwrap();
        assert!(bursts.starts_with("3 times, about every 20 s, a read"), "{bursts}");
    }

    #[test]
    fn noise_slopes_and_single_intervals_are_no_stretches() {
        assert_eq!(told(|at| 4_000.0 + 30.0 * noise(at), 0), None);
        assert_eq!(told(|at| 1_000.0 + 100.0 * f64::from(at), 0), None);
        // Slow ones here and there.
        assert_eq!(told(|at| if at % 7 == 3 { 9_000.0 } else { 400.0 }, 0), None);
        // Half a millisecond more, and a half more.
        assert_eq!(told(|at| if at < 12 { 900.0 } else { 400.0 }, 0), None);
        assert_eq!(told(|at| if at < 12 { 9_000.0 } else { 5_000.0 }, 0), None);
    }

    /// Four workers' calls of 1 ms, of which so many are of 90 ms in each second.
    fn pauses_of(held: impl Fn(u32) -> u64) -> Verdict {
        let mut recording = course(|_| 1_000.0);
        made::workers(&mut recording, &[1.0; 4]);
        let series = &mut recording.series[0];
        for one in &mut series.intervals {
            let mut latency = latency_histogram();
            latency.record_n(1_000_000, 100).unwrap();
            latency.record_n(90_000_000, held(one.index)).unwrap();
            one.stats.sum_ns += 90_000_000 * held(one.index);
            one.stats.count = latency.len();
            one.stats.latency = EncodedHistogram::encode(&latency);
        }
        series.total.sum_ns = series.intervals.iter().map(|one| one.stats.sum_ns).sum();
        made::judge(recording, paused)
    }

    #[test]
    fn calls_that_are_held_up_together_are_a_pause() {
        let Verdict::Found(found) = pauses_of(|at| if at % 6 == 2 { 4 } else { 0 }) else { panic!() };
        assert!(
            found
                .what
                .starts_with("10 times, about every 6 s, all 4 workers were held up together, for 90.2 ms"),
            "{}",
            found.what
        );
        // As many, one by one; one of four workers; the whole time.
        assert_eq!(pauses_of(|at| u64::from(at % 3 != 0)), Verdict::Clear);
        assert_eq!(pauses_of(|at| u64::from(at % 6 == 2)), Verdict::Clear);
        assert_eq!(pauses_of(|_| 4), Verdict::Clear);
        assert_eq!(pauses_of(|at| if at == 9 { 4 } else { 0 }), Verdict::Clear);
    }
}
