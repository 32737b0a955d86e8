//! Writes without synchronisation that alternate between filling a cache and standing still.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::model::{Group, OpenFlag, OperationKind, Step};
use benchmaster_record::recording::{IntervalStats, Recording};
use benchmaster_record::results::{Check, Severity};
use benchmaster_stats::burst::{BurstAndFlush, burst_and_flush as find};

use super::{Subject, found, percent, size};
use benchmaster_analysis::responses::progress_series;

/// Writes per interval within bursts from which on an interval without any means something.
const ENOUGH_WRITES: f64 = 10.0;
/// Whole cycles over which a mean rate hardly depends on where the run ended.
const ENOUGH_CYCLES: usize = 5;

/// Whether the workload's unsynchronised writes went in bursts with stalls between them.
pub(super) fn burst_and_flush(s: Subject<'_>) -> Option<Check> {
    let labels: BTreeSet<(&str, &str)> = s
        .workload
        .groups
        .iter()
        .flat_map(|group| unsynchronised(group).map(|label| (&*group.name, label)))
        .collect();
    let writes = |of: fn(&IntervalStats) -> u64| interval_sums(s.recording, &labels, of);
    let (bytes, counts) = (writes(|interval| interval.stats.bytes), writes(|interval| interval.stats.count));
    let seconds = s.recording.interval_ns as f64 / 1e9;
    let rates: Vec<f64> = bytes.iter().map(|bytes| bytes / seconds).collect();
    let pattern = find(&rates)?;
    let bursting: usize = pattern.bursts.iter().map(|burst| burst.length).sum();
    let written: f64 =
        pattern.bursts.iter().flat_map(|burst| &counts[burst.start..burst.start + burst.length]).sum();
    if written / (bursting as f64) < ENOUGH_WRITES {
        return None;
    }
    told(s, &pattern, seconds)
}

fn told(s: Subject<'_>, pattern: &BurstAndFlush, seconds: f64) -> Option<Check> {
    let of = |list: &[benchmaster_stats::burst::Stretch]| -> f64 {
        let samples: usize = list.iter().map(|stretch| stretch.length).sum();
        samples as f64 * seconds / list.len().max(1) as f64
    };
    let (burst, stall) = (of(&pattern.bursts), of(&pattern.stalls));
    let longest = pattern.longest_stall() as f64 * seconds;
    let cycles = pattern.cycles();
    let (again, remedy) = match pattern.period {
        Some(period) => {
            let varies = match pattern.period_variation {
                Some(variation) => format!(" (which varies by {})", percent(variation)),
                None => String::new(),
            };
            let again = format!("again every {:.1} s{varies}, {cycles} whole cycles", period * seconds);
            let remedy = match cycles {
                n if n < ENOUGH_CYCLES => {
                    format!("measure for at least {:.0} s", period * seconds * 2.0 * ENOUGH_CYCLES as f64)
                }
                _ => "look at the rates of the bursts and of the stalls beside the mean".into(),
            };
            (again, remedy)
        }
        None => ("which had not ended when the run did".into(), "measure longer".into()),
    };
    let meanwhile = match pattern.stall_rate as u64 {
        0 => "nothing".into(),
        rate => format!("{}/s", size(rate)),
    };
    let message = format!(
        "unsynchronised writes went in bursts: {}/s for {burst:.1} s, then {meanwhile} for {stall:.1} s (at most {longest:.1} s) while \
         what had been taken into a cache was written out, {again}; {} of the time was stalled, so the mean depends on where \
         the run ended; use `sync`, or {remedy}",
        size(pattern.burst_rate as u64),
        percent(pattern.stall_share),
    );
    let severity = if cycles < ENOUGH_CYCLES { Severity::Warning } else { Severity::Note };
    let evidence = [
        ("burst_rate", pattern.burst_rate),
        ("stall_rate", pattern.stall_rate),
        ("stall_share", pattern.stall_share),
        ("duty", pattern.duty.unwrap_or(f64::NAN)),
        ("period_s", pattern.period.map_or(f64::NAN, |period| period * seconds)),
        ("period_variation", pattern.period_variation.unwrap_or(f64::NAN)),
        ("longest_stall_s", longest),
        ("cycles", cycles as f64),
    ];
    let mut check = found(s, "burst-and-flush", severity, message, evidence)?;
    check.evidence.retain(|_, value| value.is_finite());
    Some(check)
}

/// The labels of a group's writes that nothing makes stable: their handle is opened without O_SYNC, O_DSYNC and O_DIRECT,
/// and the flow never flushes.
fn unsynchronised(group: &Group) -> impl Iterator<Item = &str> {
    const STABLE: [OpenFlag; 3] = [OpenFlag::Sync, OpenFlag::Dsync, OpenFlag::Direct];
    let handle = |step: &Step| step.handle.clone().unwrap_or_default();
    let mut stable: BTreeMap<String, bool> = BTreeMap::new();
    for step in
        benchmaster_record::model::leaves(&group.setup).chain(benchmaster_record::model::leaves(&group.flow))
    {
        if matches!(step.op, Some(OperationKind::Open | OperationKind::Create)) {
            *stable.entry(handle(step)).or_default() |= step.flags.iter().any(|flag| STABLE.contains(flag));
        }
    }
    let flushes = |step: &Step| matches!(step.op, Some(OperationKind::Fsync | OperationKind::Fdatasync));
    let flushed = benchmaster_record::model::leaves(&group.flow).any(flushes);
    benchmaster_record::model::leaves(&group.flow)
        .filter(move |step| {
            step.op == Some(OperationKind::Write) && !flushed && stable.get(&handle(step)) != Some(&true)
        })
        .map(|step| step.label.as_deref().unwrap_or(OperationKind::Write.name()))
}

/// The sums over these series by interval, as long as all workers were at work.
fn interval_sums(
    recording: &Recording,
    labels: &BTreeSet<(&str, &str)>,
    of: fn(&IntervalStats) -> u64,
) -> Vec<f64> {
    let mut sums = vec![0.0; progress_series(recording).len()];
    let series =
        recording.series.iter().filter(|series| labels.contains(&(&*series.key.group, &*series.key.label)));
    for interval in series.flat_map(|series| &series.intervals) {
        if let Some(sum) = sums.get_mut(interval.index as usize) {
            *sum += of(interval) as f64;
        }
    }
    sums
}
