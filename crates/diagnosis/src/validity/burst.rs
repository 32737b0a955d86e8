//! Writes without synchronisation that alternate between filling a cache and standing still.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_analysis::responses::progress_series;
use benchmaster_record::model::{Group as Workers, OpenFlag, Step, Workload, leaves};
use benchmaster_record::recording::IntervalStats;
use benchmaster_stats::burst::{BurstAndFlush, Stretch, burst_and_flush as find};

use crate::prelude::*;

/// Seconds: shorter stalls wait for a server or a processor, and not for a cache to be written out.
const LEAST_STALL: f64 = 0.1;

pub(crate) static BURST_AND_FLUSH: Rule = Rule {
    check: burst_and_flush,
    remedy: Some(|check| {
        let period = check.number("period_s").filter(|period| *period > 0.0);
        let longer = period.map_or(String::new(), |period| format!(", at least {:.0} s", period * 10.0));
        Remedy::new(format!("Measure what reaches the server: with `sync`, or with a flush in the flow, or over ten whole cycles{longer}. For steadier writes let the client start writing out earlier."))
            .by(Need::Anywhere, "sysctl vm.dirty_background_bytes=67108864 vm.dirty_bytes=268435456   # on the client")
            .confirmed_by("`studies/paper000-unsynchronised-write.toml`; the same workload with `sync = \"o_sync\"`")
    }),
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.of_kind(OperationKind::Write).any(|series| series.total.count > 0)),
        worth: |failed| failed.number("longest_stall_s").is_none_or(|longest| longest >= LEAST_STALL),
        numbers: &[
            ("burst_rate", "rate in bursts"),
            ("stall_rate", "rate in stalls"),
            ("stall_share", "share of the intervals that are stalls"),
            ("period_s", "from burst to burst"),
            ("longest_stall_s", "longest stall"),
            ("cycles", "whole cycles"),
        ],
        cost: |failed| failed.number("stall_share"),
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::BurstAndFlush)
};

/// Writes per interval within bursts from which on an interval without any means something.
const ENOUGH_WRITES: f64 = 10.0;
/// Whole cycles over which a mean rate hardly depends on where the run ended.
const ENOUGH_CYCLES: usize = 5;

/// Whether the workload's unsynchronised writes went in bursts with stalls between them.
fn burst_and_flush(s: Subject<'_>) -> Option<Check> {
    // A client that keeps nothing sends each write before it ends.
    if s.service
        .is_some_and(|service| service.url.starts_with("nfs://") && !service.url.contains("cache=linux"))
    {
        return None;
    }
    let labels = unsynchronised(s.workload);
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
    describe(s, &pattern, seconds)
}

fn describe(s: Subject<'_>, pattern: &BurstAndFlush, seconds: f64) -> Option<Check> {
    let of = |list: &[Stretch]| -> f64 {
        let samples: usize = list.iter().map(|stretch| stretch.length).sum();
        samples as f64 * seconds / list.len().max(1) as f64
    };
    let (burst, stall) = (of(&pattern.bursts), of(&pattern.stalls));
    let longest = pattern.longest_stall() as f64 * seconds;
    let cycles = pattern.cycles();
    let again = match pattern.period {
        Some(period) => {
            let varies = match pattern.period_variation {
                Some(variation) => format!(" (varying by {})", percent(variation)),
                None => String::new(),
            };
            format!("every {:.1} s{varies}, {cycles} whole cycles", period * seconds)
        }
        None => "which had not ended when the run did".into(),
    };
    let meanwhile = match pattern.stall_rate as u64 {
        0 => "nothing".into(),
        _ => rate(pattern.stall_rate),
    };
    let message = format!(
        "Unsynchronised writes came in bursts: {} for {burst:.1} s, then {meanwhile} for {stall:.1} s (at most {longest:.1} s) \
         while the cache was written out, {again}; {} of the time was stalled, so the mean depends on where the run ended.",
        rate(pattern.burst_rate),
        percent(pattern.stall_share),
    );
    let severity = if cycles < ENOUGH_CYCLES { Severity::Warning } else { Severity::Note };
    let evidence = [
        Evidence::bytes_per_second("burst_rate", pattern.burst_rate),
        Evidence::bytes_per_second("stall_rate", pattern.stall_rate),
        Evidence::number("stall_share", pattern.stall_share),
        Evidence::number("duty", pattern.duty.unwrap_or(f64::NAN)),
        Evidence::seconds("period_s", pattern.period.map_or(f64::NAN, |period| period * seconds)),
        Evidence::number("period_variation", pattern.period_variation.unwrap_or(f64::NAN)),
        Evidence::seconds("longest_stall_s", longest),
        Evidence::number("cycles", cycles as f64),
    ];
    failed(s, CheckKind::BurstAndFlush, severity, message, evidence)
}

/// Group and label of the writes of a workload that nothing makes stable.
pub(super) fn unsynchronised(workload: &Workload) -> BTreeSet<(&str, &str)> {
    let of = |group| unsynchronised_in(group).map(|label| (group.name.as_str(), label));
    workload.groups.iter().flat_map(of).collect()
}

/// The labels of a group's writes that nothing makes stable: their handle is opened without O_SYNC, O_DSYNC and O_DIRECT,
/// and the flow never flushes.
fn unsynchronised_in(group: &Workers) -> impl Iterator<Item = &str> {
    const STABLE: [OpenFlag; 3] = [OpenFlag::Sync, OpenFlag::Dsync, OpenFlag::Direct];
    let handle = |step: &Step| step.handle.clone().unwrap_or_default();
    let mut stable: BTreeMap<String, bool> = BTreeMap::new();
    for step in leaves(&group.setup).chain(leaves(&group.flow)) {
        if matches!(step.op, Some(OperationKind::Open | OperationKind::Create)) {
            *stable.entry(handle(step)).or_default() |= step.flags.iter().any(|flag| STABLE.contains(flag));
        }
    }
    let flushes = |step: &Step| matches!(step.op, Some(OperationKind::Fsync | OperationKind::Fdatasync));
    let flushed = leaves(&group.flow).any(flushes);
    leaves(&group.flow)
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
    // Workers that are done write nothing, and wait for nothing.
    let done = recording.workers.iter().map(|worker| worker.end_ns).min().unwrap_or(recording.length_ns);
    let whole = (done / recording.interval_ns.max(1)) as usize;
    let mut sums = vec![0.0; progress_series(recording).len().min(whole)];
    let series =
        recording.series.iter().filter(|series| labels.contains(&(&*series.key.group, &*series.key.label)));
    for interval in series.flat_map(|series| &series.intervals) {
        if let Some(sum) = sums.get_mut(interval.index as usize) {
            *sum += of(interval) as f64;
        }
    }
    sums
}
