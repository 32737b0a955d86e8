//! What a study will take.

mod pace;
mod seconds;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use benchmaster_record::model::{Fileset, Sharing, Workload};
use benchmaster_record::results::{BlocksRecord, LoadRecord, Replication};
use benchmaster_units::TimeSpan;
use benchmaster_units::format::{decimals_for, plural};
use benchmaster_workload::program::{Effect, Program};
use serde::Serialize;

pub use self::seconds::Seconds;

use self::pace::Pace;
use self::work::{ends_with_its_work, measured};
use super::design::text::{decimals, range};
use super::study::{Plan, PlannedTreatment};
use crate::settings::FilesetReuse;

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
    /// Workloads that end when their work is done, whose time is therefore not in `seconds_min`.
    pub open_ended: Vec<String>,
    /// The whole study, with everything that is done beside measuring.
    pub time: TimeEstimate,
    /// Bytes of files that exist before a run is measured, for the treatment with the most.
    pub bytes_prepared: u64,
    /// Bytes of all files at their full size, for the treatment with the most.
    pub bytes_needed: u64,
}

/// The time of a whole study and of its parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeEstimate {
    /// The sum of the parts.
    pub all: Seconds,
    /// Warm-up and measured phases.
    pub measuring: Seconds,
    /// Files that are made, read back and removed.
    pub files: Seconds,
    /// What sessions and runs have around that.
    pub around: Seconds,
    /// Runs that are expected: where the data decide, neither decided at once nor hard to decide.
    pub runs: Seconds,
    /// Workloads of which nothing says how much work they have; they are not in the time.
    pub unknown: Vec<String>,
    /// Steps on hosts, which are not in the time either.
    pub steps: usize,
    /// Hosts of clients that a site counts, those of the treatment with the most; 0 when clients are on this host.
    pub nodes: u32,
    /// What that is in hours of one host.
    pub node_hours: [f64; 2],
}

impl fmt::Display for TimeEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, measuring, files, around, unknown, .. } = self;
        write!(f, "{all}: {measuring} of measuring, {files} for files, {around} around runs")?;
        if !unknown.is_empty() {
            write!(f, "; without {}, whose work is not known", unknown.join(", "))?;
        }
        if self.steps > 0 {
            write!(f, "; without the steps on hosts")?;
        }
        if self.nodes > 0 {
            let hours = self.node_hours.map(|hours| decimals(hours, decimals_for(hours, 2)));
            let hours = range(hours[0].as_str(), hours[1].as_str(), str::to_owned);
            write!(f, "; {hours} node-hours on {}", plural(self.nodes as usize, "host"))?;
        }
        Ok(())
    }
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
                let loads = load.rise.last().map_or(1, |last| last + 1);
                (loads * load.max_replicates, Some(min * (load.rise.len() as u32 + halvings(load))))
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
            time: self.time(),
            bytes_prepared: most(|treatment| bytes(treatment, |fileset| fileset.prefill)),
            bytes_needed: most(|treatment| bytes(treatment, |_| 1.0)),
        }
    }
}

impl Plan {
    fn time(&self) -> TimeEstimate {
        let expected = self.expected();
        let treatments = &self.treatments;
        let number = treatments.len().max(1) as f64;
        let mut unknown = BTreeSet::new();
        let mean = |part: &mut dyn FnMut(&PlannedTreatment) -> Seconds| {
            treatments.iter().map(part).sum::<Seconds>() * (1.0 / number)
        };
        let measuring = mean(&mut |treatment| {
            let (clients, pace) = (f64::from(treatment.settings.clients()), Pace::of(&treatment.settings));
            let each = treatment.workloads.iter().map(|(name, workload)| {
                measured(workload, clients, &pace).unwrap_or_else(|| {
                    unknown.insert(name.clone());
                    Seconds::default()
                })
            });
            each.sum()
        });
        let measuring = measuring.times(expected.runs);
        let files = mean(&mut filesets).times(self.preparations(&expected))
            + mean(&mut read_back).times(expected.runs);
        let session = mean(&mut |treatment| pace::around_session(&treatment.settings));
        let around = mean(&mut |treatment| pace::around_run(&treatment.settings)).times(expected.runs)
            + (session + self.networks()).times(expected.sessions)
            + pace::conclusion(expected.runs);
        let all = measuring + files + around;
        let nodes = treatments.iter().map(|treatment| treatment.settings.nodes()).max().unwrap_or(0);
        TimeEstimate {
            all,
            nodes,
            node_hours: [all.low, all.high].map(|seconds| f64::from(nodes) * seconds / 3600.0),
            measuring,
            files,
            around,
            runs: expected.runs,
            unknown: unknown.into_iter().collect(),
            steps: super::setup::steps(treatments).len(),
        }
    }

    /// Runs and sessions that are expected.
    fn expected(&self) -> Expected {
        let (min, max) = match self.study.replicates {
            Replication::Fixed(n) => (n, n),
            Replication::Sequential { min, max, .. } => (min, max),
        };
        let details = &self.study.design_details;
        let cells = self.treatments.iter().filter(|treatment| !treatment.record.centre).count() as f64;
        let of_centre = self.centre_runs(min) as f64;
        let fixed = |replicates: u32| cells * f64::from(replicates) + of_centre;
        if let Some(load) = &details.load {
            let (loads, last) = loads(load);
            let more = f64::from(load.max_replicates.saturating_sub(min));
            let runs = Seconds::new(loads.low * f64::from(min), loads.high * f64::from(min) + more) * cells;
            return Expected { runs, sessions: Seconds::new(loads.low, loads.high + last) };
        }
        let mut runs = Seconds::new(fixed(min), fixed(max));
        let mut sessions = Seconds::exactly(1.0);
        if details.screen {
            // Every combination separates all effects.
            let levels = self.study.design_levels().into_iter().take(self.study.designed_factors());
            let all: f64 = levels.map(f64::from).product();
            runs.high = runs.high.max(all * f64::from(max));
            sessions.high += SEPARATIONS;
        }
        if details.goal.is_some() {
            runs.high += CONFIRMATIONS;
            sessions.high += 1.0;
        }
        Expected { runs, sessions }
    }

    /// How often filesets are made: once in a session, and again for runs that leave other files, or follow others' files.
    fn preparations(&self, expected: &Expected) -> Seconds {
        let again = |treatment: &PlannedTreatment| {
            let access = treatment.settings.access();
            let changes = |workload: &Workload| match Program::compile_for(workload, access) {
                Ok(program) => program.effects.contains(&Effect::Names),
                // The plan has been checked; a trace may be gone.
                Err(_) => true,
            };
            treatment.settings.run.filesets == FilesetReuse::Fresh
                || treatment.workloads.iter().any(|(_, workload)| changes(workload))
        };
        if self.treatments.iter().any(again) {
            return expected.runs;
        }
        let mut kinds: Vec<(&str, BTreeMap<_, _>)> = Vec::new();
        for treatment in &self.treatments {
            let kind = (treatment.settings.target.place(), filesets_of(treatment));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        match kinds.len() {
            0 | 1 => expected.sessions,
            several => Seconds::new((several as f64).max(expected.sessions.low), expected.runs.high),
        }
    }

    /// The measurement of each network, once in a session.
    fn networks(&self) -> Seconds {
        let mut seen: Vec<_> = Vec::new();
        let each = self.treatments.iter().map(|treatment| {
            let network = (&treatment.settings.network, treatment.settings.target.place());
            if seen.contains(&network) {
                return Seconds::default();
            }
            seen.push(network);
            pace::network(&treatment.settings)
        });
        each.sum()
    }

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

/// Runs and sessions that are expected.
struct Expected {
    runs: Seconds,
    sessions: Seconds,
}

/// How often a screening study adds runs, to separate effects and to make them precise.
const SEPARATIONS: f64 = 6.0;
/// Runs of the best and of the default treatment that confirm a goal.
const CONFIRMATIONS: f64 = 10.0;

/// Loads of a curve that are expected: the limit lies in the rise, and is searched between two of its steps. Second, how
/// often loads next to it are run again.
fn loads(load: &LoadRecord) -> (Seconds, f64) {
    let rise = load.rise.len() as f64;
    (Seconds::new((rise / 2.0).ceil(), rise + f64::from(halvings(load))), 2.0)
}

/// Loads that are run between two steps of the rise, at most.
fn halvings(load: &LoadRecord) -> u32 {
    let gap = load.rise.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1);
    gap.next_power_of_two().ilog2()
}

/// The filesets of a run; those that workloads have in common are there once.
fn filesets_of(treatment: &PlannedTreatment) -> BTreeMap<&String, &Fileset> {
    treatment.workloads.iter().flat_map(|(_, w)| &w.filesets).collect()
}

/// How many sets there are.
fn sets(fileset: &Fileset, treatment: &PlannedTreatment) -> f64 {
    match fileset.sharing {
        Sharing::Private => f64::from(treatment.settings.clients()),
        Sharing::Shared => 1.0,
    }
}

/// Filesets that are made before a run, and all their files removed some time after it.
fn filesets(treatment: &PlannedTreatment) -> Seconds {
    let pace = Pace::of(&treatment.settings);
    let each = filesets_of(treatment).into_values().map(|fileset| {
        let files = fileset.files as f64 * sets(fileset, treatment);
        let made = files * fileset.prefill;
        // Created, written, closed; several at once at best.
        let calls = pace.calls(3.0 * made + files, 4.0, 1.0).low;
        let alone = pace.calls(3.0 * made + files, 1.0, 1.0).high;
        Seconds::new(calls, alone) + pace.byte * (made * fileset.size.mean())
    });
    each.sum()
}

/// What workloads that verify read back at the end.
fn read_back(treatment: &PlannedTreatment) -> Seconds {
    let pace = Pace::of(&treatment.settings);
    let verified = treatment.workloads.iter().filter(|(_, workload)| workload.verify.is_on());
    let each = verified.flat_map(|(_, workload)| workload.filesets.values()).map(|fileset| {
        let files = fileset.files as f64 * sets(fileset, treatment);
        pace.calls(3.0 * files, 1.0, 1.0) + pace.byte * (files * fileset.size.mean())
    });
    each.sum()
}

fn open_ended(treatment: &PlannedTreatment) -> impl Iterator<Item = &str> {
    treatment.workloads.iter().filter(|(_, w)| ends_with_its_work(w)).map(|(name, _)| name.as_str())
}

/// Bytes of the filesets of one run, each counted with its share. Those that workloads have in common count once.
fn bytes(treatment: &PlannedTreatment, share: impl Fn(&Fileset) -> f64) -> u64 {
    let each = filesets_of(treatment).into_values().map(|fileset| {
        sets(fileset, treatment) * fileset.files as f64 * fileset.size.mean() * share(fileset)
    });
    each.sum::<f64>() as u64
}

#[cfg(test)]
mod tests;
