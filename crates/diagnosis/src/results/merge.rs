//! One finding of what was found in several runs.

use std::collections::BTreeMap;

use benchmaster_record::results::RunKey;
use benchmaster_stats::interval::mean_interval;
use benchmaster_stats::median;
use benchmaster_stats::share::at_least;

use crate::diagnosis::{Absent, Diagnosis};
use crate::finding::Also;
use crate::prelude::*;
use crate::results::rule::label;

/// How often a test finds something in a run where nothing is, at most.
const BY_CHANCE: f64 = 0.02;
/// Found in so few runs of a treatment that chance gives as many more often than this, it is no finding.
const LEVEL: f64 = 0.05;

/// Of what a finding tells: a condition and a workload.
type Of = (&'static str, String);

/// What was found in the runs of each treatment.
type InRuns = BTreeMap<u32, Vec<(RunKey, Finding)>>;

/// What detectors said of all runs.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// In the order in which they were first found.
    found: Vec<(Of, InRuns)>,
    /// Runs in which each could have been found, by treatment.
    looked: BTreeMap<Of, BTreeMap<u32, usize>>,
    /// Reasons why something is not known, each once, with the runs.
    unknown: Vec<(Of, String, usize)>,
}

impl Merge {
    /// Adds what was said of one workload of one run.
    pub(super) fn add(&mut self, id: &'static str, measured: &Measured<'_>, verdict: Verdict) {
        let key = measured.run.key;
        let of: Of = (id, measured.recording.workload.clone());
        match verdict {
            Verdict::Irrelevant => return,
            Verdict::Unknown(why) => {
                match self.unknown.iter_mut().find(|(known, reason, _)| *known == of && *reason == why) {
                    Some((.., runs)) => *runs += 1,
                    None => self.unknown.push((of, why, 1)),
                }
                return;
            }
            Verdict::Clear => {}
            Verdict::Found(finding) => {
                let position = self.found.iter().position(|(known, _)| *known == of).unwrap_or_else(|| {
                    self.found.push((of.clone(), BTreeMap::new()));
                    self.found.len() - 1
                });
                self.found[position].1.entry(key.treatment).or_default().push((key, finding));
            }
        }
        *self.looked.entry(of).or_default().entry(key.treatment).or_default() += 1;
    }

    /// What follows.
    pub(super) fn finish(mut self, results: &StudyResults, diagnosis: &mut Diagnosis) {
        self.found.retain_mut(|(of, by_treatment)| {
            let looked = self.looked.get(of);
            by_treatment.retain(|treatment, found| {
                let of = looked.and_then(|looked| looked.get(treatment)).copied().unwrap_or(found.len());
                !rests_on_tests(found) || more_than_chance(found.len(), of)
            });
            // Treatments of a run or two are many tests as well.
            let found: Vec<_> = by_treatment.values().flatten().collect();
            let of = looked.map_or(found.len(), |looked| looked.values().sum());
            let surest = found.iter().filter_map(|(_, one)| least_p(one)).fold(1.0, f64::min);
            let sure = surest * of as f64 <= BY_CHANCE || more_than_chance(found.len(), of);
            !found.is_empty() && (sure || !by_treatment.values().all(|found| rests_on_tests(found)))
        });
        for (of, by_treatment) in std::mem::take(&mut self.found) {
            let looked = self.looked.get(&of);
            let mut places: Vec<AtTreatment> = by_treatment
                .iter()
                .map(|(&treatment, found)| AtTreatment {
                    treatment,
                    label: label(results, treatment),
                    runs: found.iter().map(|(run, _)| *run).collect(),
                    of: looked.and_then(|looked| looked.get(&treatment)).copied().unwrap_or(found.len()),
                    cost: typical(found).and_then(|(_, one)| Some(one.cost.as_ref()?.share)),
                })
                .collect();
            places.sort_by(|a, b| b.cost.unwrap_or(0.0).total_cmp(&a.cost.unwrap_or(0.0)));
            let Some(found) = places.first().and_then(|place| by_treatment.get(&place.treatment)) else {
                continue;
            };
            let looked = looked.into_iter().flatten().map(|(_, runs)| runs).sum();
            let finding = together(of.1, found, places, looked).filter(|finding| !finding.is_negligible());
            diagnosis.findings.extend(finding.map(Finding::without_nothing));
        }
        let found: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.id).collect();
        let clear = self.looked.keys().map(|(id, _)| *id).filter(|id| !found.contains(id));
        diagnosis.clear.extend(clear);
        diagnosis.absent.extend(self.unknown.into_iter().map(|((id, workload), why, runs)| Absent {
            id,
            place: format!("{workload}, {}", plural(runs, "run")),
            why,
        }));
    }
}

/// Whether chance alone could have found it: counters say what they say in a single run.
fn rests_on_tests(found: &[(RunKey, Finding)]) -> bool {
    found.iter().all(|(_, finding)| least_p(finding).is_some())
}

fn least_p(finding: &Finding) -> Option<f64> {
    finding.tests.iter().filter_map(|test| test.p).reduce(f64::min)
}

/// Whether chance seldom finds something in so many of the runs.
fn more_than_chance(found: usize, runs: usize) -> bool {
    at_least(found as u64, runs as u64, BY_CHANCE) <= LEVEL
}

/// The run whose cost is in the middle.
fn typical(found: &[(RunKey, Finding)]) -> Option<&(RunKey, Finding)> {
    let middle = median(&found.iter().map(|(_, one)| one.share()).collect::<Vec<_>>())?;
    let from_middle = |finding: &Finding| (finding.share() - middle).abs();
    found.iter().min_by(|(_, a), (_, b)| from_middle(a).total_cmp(&from_middle(b)))
}

/// Makes findings of one condition in several workloads one finding with a list: the costliest speaks. Those that compare
/// all runs stay apart, since each is of factors of its own.
pub(super) fn over_workloads(findings: &mut Vec<Finding>, apart: &[&str]) {
    let mut kept: Vec<Finding> = Vec::new();
    for finding in std::mem::take(findings) {
        let workload = finding.at.as_ref().and_then(|at| at.workload.clone());
        let same = |one: &&mut Finding| one.id == finding.id && one.workloads().next().is_some();
        let first = kept.iter_mut().find(same).filter(|_| !apart.contains(&finding.id));
        match (first, workload) {
            (Some(first), Some(workload)) => first.also.push(Also {
                workload,
                share: finding.cost.as_ref().map(|cost| cost.share),
                what: finding.what,
                place: finding.place,
            }),
            _ => kept.push(finding),
        }
    }
    for finding in kept.iter_mut().filter(|finding| !finding.also.is_empty()) {
        let cost =
            |also: &Also| also.share.map_or_else(String::new, |share| format!(" ({})", percent(share)));
        let list: Vec<String> =
            finding.also.iter().map(|also| format!("{}{}", also.place, cost(also))).collect();
        finding.place += &format!("; also {}", list.join("; "));
    }
    *findings = kept;
}

/// One finding of those of the runs of a treatment: the sentence of the run whose cost is in the middle, and means of the numbers.
fn together(
    workload: String,
    found: &[(RunKey, Finding)],
    places: Vec<AtTreatment>,
    looked: usize,
) -> Option<Finding> {
    // One cost wherever it is shown: that of the run that the sentence is about.
    let (shown, typical) = typical(found)?;
    let mut finding = typical.clone();
    for evidence in &mut finding.evidence {
        let same = |other: &&Evidence| (&other.name, other.unit) == (&evidence.name, evidence.unit);
        let of_runs = found.iter().filter_map(|(_, one)| one.evidence.iter().find(same));
        let values: Vec<f64> = of_runs.map(|evidence| evidence.value).collect();
        if let Ok(mean) = mean_interval(&values, 0.95) {
            (evidence.value, evidence.half_width, evidence.runs) = (mean.mean, mean.half_width, mean.n);
        }
    }
    let runs: usize = places.iter().map(|place| place.runs.len()).sum();
    finding.place = place(&workload, runs, looked, &places);
    let at = finding.at.get_or_insert_default();
    (at.workload, at.treatments, at.shown) = (Some(workload), places, Some(*shown));
    Some(finding)
}

/// `write: 4 of 5 runs` or `write: 8 of 20 runs, in 2 treatments, most in sync=sync`.
fn place(workload: &str, runs: usize, looked: usize, places: &[AtTreatment]) -> String {
    let place = format!("{workload}: {runs} of {}", plural(looked, "run"));
    match places {
        [] => place,
        [one] if one.label.is_empty() || one.of == looked => place,
        [one] => format!("{place}, all with {}", one.label),
        [first, ..] => format!("{place}, in {} treatments, most in {}", places.len(), first.label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_finds_in_one_of_many_runs_is_chance() {
        // 1 − 0.98² = 0.0396 and 1 − 0.98³ = 0.0588.
        assert!(more_than_chance(1, 1) && more_than_chance(1, 2) && !more_than_chance(1, 3));
        // 1 − 0.98^n − n · 0.02 · 0.98^(n − 1) passes 0.05 from 18 to 19.
        assert!(more_than_chance(2, 18) && !more_than_chance(2, 19));
        assert!(more_than_chance(3, 19) && more_than_chance(6, 6));
    }
}
