//! What a study will take.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::model::{Fileset, Sharing, Workload};
use benchmaster_record::results::{BlocksRecord, Replication};
use benchmaster_units::TimeSpan;
use serde::Serialize;

use super::study::{Plan, PlannedTreatment};

/// What a study will take, as far as it can be told before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The fewest runs.
    pub runs_min: u64,
    /// The most runs; more than `runs_min` when replication is sequential.
    pub runs_max: u64,
    /// Runs of load curves that are neither decided at once nor hard to decide; `None` for other studies.
    pub runs_likely: Option<u64>,
    /// Seconds of warm-up and measured phases of the fewest runs, without preparation and without workloads that may end
    /// earlier because their work is done.
    pub seconds_min: f64,
    /// The same of the most runs, with the time after which such workloads end in any case.
    pub seconds_max: f64,
    /// Seconds of `runs_likely`.
    pub seconds_likely: Option<f64>,
    /// Workloads that end when their work is done, whose time is therefore not in the estimate.
    pub open_ended: Vec<String>,
    /// Bytes of files that exist before a run is measured, for the treatment with the most.
    pub bytes_prepared: u64,
    /// Bytes of all files at their full size, for the treatment with the most.
    pub bytes_needed: u64,
}

impl Plan {
    /// What the study will take.
    pub fn estimate(&self) -> Estimate {
        let (min, max) = match self.study.replicates {
            Replication::Fixed(n) => (n, n),
            Replication::Sequential { min, max, .. } => (min, max),
        };
        let (centre, rows): (Vec<_>, Vec<_>) = self.treatments.iter().partition(|t| t.record.centre);
        let seconds = |limit: fn(&PlannedTreatment) -> f64| {
            let of_rows: f64 = rows.iter().map(|treatment| limit(treatment)).sum();
            (of_rows, centre.first().map_or(0.0, |treatment| limit(treatment)))
        };
        // As the schedule has them: centre runs belong to the blocks of the least number of replicates.
        let centre_runs = self.centre_runs(min);
        let runs = |replicates: u32| rows.len() as u64 * u64::from(replicates) + centre_runs;
        let time = |replicates: u32, (of_rows, of_centre): (f64, f64)| {
            of_rows * f64::from(replicates) + of_centre * centre_runs as f64
        };
        // Each treatment has a curve: at least one load, at most all of them as often as any load is run.
        let (max, likely) = match &self.study.design_details.load {
            None => (max, None),
            Some(load) => {
                let gap = load.rise.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1);
                let halvings = gap.next_power_of_two().ilog2();
                let loads = load.rise.last().map_or(1, |last| last + 1);
                (loads * load.max_replicates, Some(min * (load.rise.len() as u32 + halvings)))
            }
        };
        let most = |bytes: fn(&PlannedTreatment) -> u64| self.treatments.iter().map(bytes).max().unwrap_or(0);
        let open_ended: BTreeSet<_> = self.treatments.iter().flat_map(open_ended).collect();
        Estimate {
            runs_min: runs(min),
            runs_max: runs(max),
            runs_likely: likely.map(runs),
            seconds_min: time(min, seconds(least_seconds)),
            seconds_max: time(max, seconds(most_seconds)),
            seconds_likely: likely.map(|likely| time(likely, seconds(most_seconds))),
            open_ended: open_ended.into_iter().map(str::to_owned).collect(),
            bytes_prepared: most(|treatment| bytes(treatment, |fileset| fileset.prefill)),
            bytes_needed: most(|treatment| bytes(treatment, |_| 1.0)),
        }
    }
}

impl Plan {
    /// Runs of the centre point: so many in every block that is begun.
    fn centre_runs(&self, replicates: u32) -> u64 {
        let details = &self.study.design_details;
        let visits = match &details.blocks {
            None => 1,
            Some(BlocksRecord::Confounded { count, .. }) => u64::from(*count) * u64::from(replicates),
            Some(BlocksRecord::Replicates | BlocksRecord::Named { .. }) => u64::from(replicates),
        };
        visits * u64::from(details.centre_points)
    }
}

/// Warm-up and measured phases of one run: only those that nothing but time ends.
fn least_seconds(treatment: &PlannedTreatment) -> f64 {
    let timed = |w: &Workload| if ends_with_its_work(w) { None } else { w.until.duration };
    treatment.workloads.iter().map(|(_, w)| seconds(Some(w.warm_up)) + seconds(timed(w))).sum()
}

/// The same with those that time ends at the latest.
fn most_seconds(treatment: &PlannedTreatment) -> f64 {
    treatment.workloads.iter().map(|(_, w)| seconds(Some(w.warm_up)) + seconds(w.until.duration)).sum()
}

fn seconds(span: Option<TimeSpan>) -> f64 {
    span.map_or(0.0, |span| span.0.as_secs_f64())
}

fn ends_with_its_work(workload: &Workload) -> bool {
    let until = &workload.until;
    until.duration.is_none() || until.iterations.is_some() || until.bytes.is_some()
}

fn open_ended(treatment: &PlannedTreatment) -> impl Iterator<Item = &str> {
    treatment.workloads.iter().filter(|(_, w)| ends_with_its_work(w)).map(|(name, _)| name.as_str())
}

/// Bytes of the filesets of one run, each counted with its share. Those that workloads have in common count once.
fn bytes(treatment: &PlannedTreatment, share: impl Fn(&Fileset) -> f64) -> u64 {
    let filesets: BTreeMap<_, _> = treatment.workloads.iter().flat_map(|(_, w)| &w.filesets).collect();
    let clients = treatment.settings.clients();
    let total: f64 = filesets
        .values()
        .map(|fileset| {
            let sets = match fileset.sharing {
                Sharing::Private => f64::from(clients),
                Sharing::Shared => 1.0,
            };
            sets * fileset.files as f64 * fileset.size.mean() * share(fileset)
        })
        .sum();
    total as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::StudyFile;

    #[test]
    fn time_and_space_are_added_up() {
        let text = r#"
            [study]
            name = "e"
            [target]
            path = "/mnt/x"
            [clients]
            count = 3
            [factors.size]
            parameter = "workload.r.file_size"
            levels = ["1MiB", "2MiB"]
            [design]
            replicates = { min = 5, max = 10, relative_half_width = 0.1 }
            [workload.r]
            use = "random-read"
            fileset = "data"
            io_size = "4KiB"
            duration = "2s"
            warm_up = "500ms"
            [workload.c]
            use = "file-creation"
            files = 10
            file_size = "1KiB"
        "#;
        let plan = Plan::from_study(&StudyFile::parse("e.toml", text).unwrap(), "1").unwrap();
        let expected = Estimate {
            runs_min: 10,
            runs_max: 20,
            runs_likely: None,
            seconds_min: 25.0,
            seconds_max: 50.0,
            seconds_likely: None,
            open_ended: vec!["c".into()],
            bytes_prepared: 3 * (2 << 20),
            bytes_needed: 3 * (2 << 20) + 3 * 10 * 1024,
        };
        assert_eq!(plan.estimate(), expected);
    }

    /// A limit of time beside one of bytes is the latest end, and not the time that it will take.
    #[test]
    fn work_that_may_end_earlier_is_not_estimated_by_its_latest_end() {
        let text = r#"
            [study]
            name = "e"
            [target]
            path = "/mnt/x"
            [design]
            replicates = 2
            [workload.w]
            use = "sequential-write"
            file_size = "1MiB"
            duration = "1h"
            bytes = "1MiB"
            [workload.r]
            use = "random-read"
            file_size = "1MiB"
            duration = "2s"
            warm_up = "0s"
        "#;
        let plan = Plan::from_study(&StudyFile::parse("e.toml", text).unwrap(), "1").unwrap();
        let found = plan.estimate();
        assert_eq!((found.seconds_min, found.seconds_max), (4.0, 7204.0));
        assert_eq!(found.open_ended, ["w"]);
        let shown = plan.describe().render(crate::plan::design::TextForm { width: 100, all: false });
        let time = "time        4 s, and preparation; w ends when its work is done (2 h 00 min at most)";
        assert!(shown.contains(time), "{shown}");
    }
}
