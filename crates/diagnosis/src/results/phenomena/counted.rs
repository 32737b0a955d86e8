//! Slow operations after a fixed number of others, where no trace has every call: by how many ended between slow ones.

use std::collections::BTreeMap;

use benchmaster_record::recording::SlowOperation;
use benchmaster_stats::median;
use benchmaster_stats::share::at_least;

use super::stops::share_together;
use super::tools::digits;
use crate::prelude::*;
use crate::results::limits::uneven;

/// Calls from one to the next.
const LEAST_GAP: u64 = 6;
/// Slow operations at that distance.
const LEAST: usize = 8;
/// Operations are compared with those of like latency too: from the shorter to the next longer one it is no more than this.
const ALIKE: f64 = 1.15;
/// How far from it they may be, of it and in calls.
const NEAR: f64 = 0.1;
/// Share of distances there by chance: the most of geometric ones within a tenth of any, if four are left out.
const CHANCE: f64 = 0.3;
/// Distances that are tried.
const TRIED: f64 = 20.0;
const LEVEL: f64 = 0.01;
/// Share of the slow operations' time from which on they are of pauses.
const MOST_TOGETHER: f64 = 0.5;
/// What they do to the mean.
const LEAST_INFLATION: f64 = 1.1;

/// Between which operations others were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Thread,
    Worker,
}

/// Slow operations of one series at one distance.
struct Regular {
    series: usize,
    of: Of,
    gap: u64,
    count: usize,
    sum_ns: f64,
    p: f64,
}

/// What the slow operations of a recording tell.
pub(super) fn counted(measured: &Measured<'_>) -> Verdict {
    let slow = &measured.recording.slow;
    if slow.is_empty() || measured.recording.is_open_loop() {
        return Verdict::Unknown(
            "every call must be recorded to see it: `trace = true` in the workload".into(),
        );
    }
    // Workers that are held up together, or on one file or connection, make as many calls between.
    let usual = measured.usual_ns().unwrap_or(0);
    let part = matches!((uneven::DETECTOR.detect)(measured), Verdict::Found(_));
    if part || share_together(measured, usual) >= MOST_TOGETHER {
        return Verdict::Clear;
    }
    let all = measured.recording.series.len();
    let ways = (0..all).flat_map(|series| [(series, Of::Thread), (series, Of::Worker)]);
    let found = ways.filter_map(|(series, of)| regular(slow, series, of));
    let worst = found.filter(|one| inflation(measured, one) >= LEAST_INFLATION);
    match worst.max_by(|a, b| a.sum_ns.total_cmp(&b.sum_ns)) {
        Some(one) => Verdict::Found(finding(measured, &one)),
        None => Verdict::Clear,
    }
}

/// The one of which most are at one distance.
fn regular(slow: &[SlowOperation], series: usize, of: Of) -> Option<Regular> {
    let numbered = numbered(slow.iter().filter(|one| one.series as usize == series), of);
    let all = classes(&numbered);
    let tried = TRIED * all.len() as f64;
    let found =
        all.iter().filter_map(|class| at_a_distance(class, tried)).map(|one| Regular { series, of, ..one });
    found.max_by(|a, b| a.sum_ns.total_cmp(&b.sum_ns))
}

/// A slow operation: in which count, its number there, its latency.
type Numbered = (u32, u64, f64);

/// In the order in which they ended, each with the number of operations that ended before.
fn numbered<'a>(slow: impl Iterator<Item = &'a SlowOperation>, of: Of) -> Vec<Numbered> {
    let mut numbers: BTreeMap<u32, u64> = BTreeMap::new();
    slow.map(|one| {
        let (count, since) = match of {
            Of::Thread => (0, one.since),
            Of::Worker => (one.worker, one.since_own),
        };
        let number = numbers.entry(count).or_default();
        *number += since.unwrap_or(0);
        (count, *number, one.latency_ns as f64)
    })
    .collect()
}

/// All of them, and those of each length where there are several.
fn classes(numbered: &[Numbered]) -> Vec<Vec<Numbered>> {
    let mut lengths: Vec<f64> = numbered.iter().map(|(_, _, ns)| *ns).collect();
    lengths.sort_by(f64::total_cmp);
    let parts: Vec<&[f64]> = lengths.chunk_by(|a, b| *b <= ALIKE * a).collect();
    let within = |part: &&[f64]| {
        let (least, most) = (part[0], part[part.len() - 1]);
        numbered.iter().filter(|(_, _, ns)| (least..=most).contains(ns)).copied().collect()
    };
    let of_one = parts.iter().filter(|part| parts.len() > 1 && part.len() > LEAST).map(within);
    std::iter::once(numbered.to_vec()).chain(of_one).collect()
}

fn at_a_distance(class: &[Numbered], tried: f64) -> Option<Regular> {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    let since = |(count, number, ns): &Numbered| Some((number - last.insert(*count, *number)?, *ns));
    let gaps: Vec<(u64, f64)> = class.iter().filter_map(since).filter(|(gap, _)| *gap >= LEAST_GAP).collect();
    let near = |gap: u64| {
        let most = (NEAR * gap as f64).max(1.0);
        move |one: &&(u64, f64)| one.0.abs_diff(gap) as f64 <= most
    };
    let middle = gaps.iter().map(|(gap, _)| *gap).max_by_key(|gap| gaps.iter().filter(near(*gap)).count())?;
    let at: Vec<&(u64, f64)> = gaps.iter().filter(near(middle)).collect();
    let p = (at_least(at.len() as u64, gaps.len() as u64, CHANCE) * tried).min(1.0);
    let gap = median(&at.iter().map(|(gap, _)| *gap as f64).collect::<Vec<_>>())? as u64;
    let sum_ns = at.iter().map(|(_, ns)| ns).sum();
    let one = Regular { series: 0, of: Of::Thread, gap, count: at.len(), sum_ns, p };
    (one.count >= LEAST && p <= LEVEL).then_some(one)
}

/// Mean latency without them.
fn without(measured: &Measured<'_>, one: &Regular) -> f64 {
    let total = &measured.recording.series[one.series].total;
    let others = total.count.saturating_sub(one.count as u64).max(1);
    (total.sum_ns as f64 - one.sum_ns).max(1.0) / others as f64
}

fn inflation(measured: &Measured<'_>, one: &Regular) -> f64 {
    let total = &measured.recording.series[one.series].total;
    total.sum_ns as f64 / total.count.max(1) as f64 / without(measured, one)
}

fn finding(measured: &Measured<'_>, one: &Regular) -> Finding {
    let series = &measured.recording.series[one.series];
    let (slow, usual) = (one.sum_ns / one.count as f64, without(measured, one));
    let of = match one.of {
        Of::Thread => "",
        Of::Worker => " of a worker",
    };
    let what = format!(
        "Every {} calls{of} a {} takes {}: {} of {} calls, which raise the mean from {} by a factor of {}.",
        one.gap,
        series.key.label,
        time(slow),
        one.count,
        series.total.count,
        time(usual),
        digits(inflation(measured, one))
    );
    let lost = one.sum_ns - one.count as f64 * usual;
    Finding::new(Confidence::Likely, what)
        .with([
            Evidence::number("calls from spike to spike, median", one.gap as f64),
            Evidence::number("slow calls", one.count as f64),
            Evidence::nanoseconds("mean latency without them", usual),
            Evidence::nanoseconds("mean latency of slow calls", slow),
        ])
        .tested("binomial: distances alike, against 30 % by chance", one.p, None)
        .costs_as(
            share(lost, measured.operation_ns() as f64),
            CostOf::OperationTime,
            "time of slow calls beyond the mean of the others / time of all operations",
        )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;

    use super::super::made;
    use super::super::spikes::DETECTOR;
    use super::*;

    /// 6,400 writes of 0.2 ms, of which a hundred took 15 ms, this many calls apart.
    fn verdict(since: impl Fn(u64) -> u64, own: impl Fn(u64) -> u64) -> Verdict {
        let mut recording = made::recording("write", 2.0);
        made::series(&mut recording, OperationKind::Write, 8192, &[(200_000, 6_300), (15_000_000, 100)]);
        recording.slow = (0..100)
            .map(|at| SlowOperation {
                start_ns: at * 20_000_000,
                latency_ns: 15_000_000,
                since: (at > 0).then(|| since(at)),
                since_own: (at > 0).then(|| own(at)),
                ..SlowOperation::default()
            })
            .collect();
        made::judge(recording, DETECTOR.detect)
    }

    #[test]
    fn a_fixed_number_of_calls_between_slow_ones_is_found() {
        let by_chance = |at: u64| 1 + at * 7919 % 130;
        let Verdict::Found(found) = verdict(|_| 64, by_chance) else { panic!() };
        assert!(
            found.what.starts_with("Every 64 calls a write takes 15 ms: 99 of 6400 calls, which raise"),
            "{}",
            found.what
        );
        let Verdict::Found(found) = verdict(by_chance, |_| 16) else { panic!() };
        assert!(found.what.starts_with("Every 16 calls of a worker a write"), "{}", found.what);
        // Others between them.
        assert!(matches!(verdict(|at| if at % 3 == 0 { 20 } else { 64 }, by_chance), Verdict::Found(_)));
    }

    #[test]
    fn others_of_another_length_between_them_do_not_hide_them() {
        let mut at: Vec<(u64, u64)> = (1..=60).map(|k| (64 * k, 15_000_000)).collect();
        at.extend((1..=90).map(|k: u64| (k * k * 7919 % 3989, 100_000_000)));
        at.sort_unstable();
        let before = std::iter::once(0).chain(at.iter().map(|(number, _)| *number));
        let slow: Vec<SlowOperation> = at
            .iter()
            .zip(before)
            .map(|((number, latency_ns), before)| SlowOperation {
                start_ns: number * 1_000_000,
                latency_ns: *latency_ns,
                since: Some(number - before),
                ..SlowOperation::default()
            })
            .collect();
        let numbered = numbered(slow.iter(), Of::Thread);
        assert!(at_a_distance(&numbered, TRIED).is_none_or(|one| one.gap != 64));
        let one = regular(&slow, 0, Of::Thread).unwrap();
        assert_eq!((one.gap, one.count), (64, 59));
    }

    #[test]
    fn what_comes_by_chance_or_all_at_once_is_none() {
        let by_chance = |at: u64| 1 + at * 7919 % 130;
        assert_eq!(verdict(by_chance, by_chance), Verdict::Clear);
        assert_eq!(verdict(|_| 2, |_| 3), Verdict::Clear);
    }
}
