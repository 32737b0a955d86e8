//! How evenly workers and clients were served.

use std::collections::BTreeMap;

use benchmaster_record::recording::{Recording, WorkerRecording};
use benchmaster_record::results::RunRecord;
use benchmaster_stats::fairness;
use serde::Serialize;

use super::clusters::{ClusterSummary, Member, clusters};
use crate::runs::Estimate;

/// How evenly a workload's workers or clients were served.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairnessSummary {
    pub workload: String,
    /// The group of workers; `None` when clients are compared.
    pub group: Option<String>,
    /// What is compared: `bytes per second` or `operations per second`.
    pub measure: &'static str,
    /// Workers or clients compared.
    pub members: usize,
    /// Jain's index, over runs: 1 = all alike, 1/members = one has all.
    pub jain: Estimate,
    /// Rate of each member, averaged over runs.
    pub rates: Vec<MemberRate>,
    /// The largest of these rates over the smallest; `None` when the smallest is 0.
    pub max_over_min: Option<f64>,
    /// Winners and losers among clients; `None` for workers, and when no run has any.
    pub clusters: Option<ClusterSummary>,
}

/// The rate of a worker or client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemberRate {
    pub client: u32,
    /// Its number; `None` for a client as a whole.
    pub worker: Option<u32>,
    /// Bytes or operations per second while it was active.
    pub rate: f64,
}

/// Fairness over the workers of each group, and over clients where there are several.
pub(super) fn fairness_of(runs: &[&RunRecord], confidence: f64) -> Vec<FairnessSummary> {
    let mut summaries = Vec::new();
    let mut workloads: Vec<&str> = Vec::new();
    for recording in runs.iter().flat_map(|r| &r.recordings) {
        if !workloads.contains(&recording.workload.as_str()) {
            workloads.push(&recording.workload);
        }
    }
    for workload in workloads {
        let recordings: Vec<_> =
            runs.iter().flat_map(|r| &r.recordings).filter(|r| r.workload == workload).collect();
        let moves_bytes = recordings.iter().flat_map(|r| &r.series).any(|s| s.total.bytes > 0);
        let mut groups: Vec<&str> = Vec::new();
        for worker in recordings.iter().flat_map(|r| &r.workers) {
            if !groups.contains(&worker.group.as_str()) {
                groups.push(&worker.group);
            }
        }
        // Groups do different things, so only clients, which do the same, are compared over all groups.
        let comparisons = groups.iter().map(|g| Some(*g)).chain([None]);
        for group in comparisons {
            let per_run: Vec<_> = recordings.iter().map(|r| member_rates(r, group, moves_bytes)).collect();
            summaries.extend(compare_members(workload, group, moves_bytes, &per_run, confidence));
        }
    }
    summaries
}

/// The rate of each worker of a group, or of each client when there is no group.
fn member_rates(recording: &Recording, group: Option<&str>, in_bytes: bool) -> BTreeMap<Member, f64> {
    let mut rates = BTreeMap::new();
    for worker in recording.workers.iter().filter(|w| group.is_none_or(|g| w.group == g)) {
        let member = (worker.client, group.map(|_| worker.worker));
        *rates.entry(member).or_insert(0.0) += worker_rate(worker, in_bytes);
    }
    rates
}

fn worker_rate(worker: &WorkerRecording, in_bytes: bool) -> f64 {
    let work: u64 = worker.series.iter().map(|s| if in_bytes { s.bytes } else { s.count }).sum();
    match worker.end_ns.saturating_sub(worker.start_ns) {
        0 => 0.0,
        active => work as f64 / (active as f64 / 1e9),
    }
}

fn compare_members(
    workload: &str,
    group: Option<&str>,
    in_bytes: bool,
    per_run: &[BTreeMap<Member, f64>],
    confidence: f64,
) -> Option<FairnessSummary> {
    let mut sums: BTreeMap<Member, (f64, usize)> = BTreeMap::new();
    for (member, rate) in per_run.iter().flatten() {
        let sum = sums.entry(*member).or_default();
        *sum = (sum.0 + rate, sum.1 + 1);
    }
    if sums.len() < 2 {
        return None;
    }
    let indices: Vec<f64> =
        per_run.iter().filter_map(|run| fairness::jain(&run.values().copied().collect::<Vec<_>>())).collect();
    let rates: Vec<_> = sums
        .into_iter()
        .map(|((client, worker), (sum, n))| MemberRate { client, worker, rate: sum / n as f64 })
        .collect();
    let (low, high) = rates.iter().fold((f64::INFINITY, 0.0f64), |(l, h), m| (l.min(m.rate), h.max(m.rate)));
    Some(FairnessSummary {
        workload: workload.into(),
        group: group.map(Into::into),
        measure: if in_bytes { "bytes per second" } else { "operations per second" },
        members: rates.len(),
        jain: Estimate::of(&indices, confidence).ok()?,
        rates,
        max_over_min: (low > 0.0).then(|| high / low),
        clusters: group.is_none().then(|| clusters(per_run)).flatten(),
    })
}
