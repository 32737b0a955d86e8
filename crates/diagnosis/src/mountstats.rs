//! Findings from nothing but `/proc/self/mountstats`: of a production client, with one reading or two.
//!
//! With one reading per client the counters are those since each file system was mounted, good and bad times together.
//! With two they are those of the time between, which is what one wants while something is slow.

use crate::diagnosis::{Absent, Diagnosis, Verdict};
use crate::finding::{Finding, Setup};

pub(crate) mod attributes;
mod cached;
pub(crate) mod clients;
pub(crate) mod commits;
pub(crate) mod connections;
pub(crate) mod delay;
pub(crate) mod errors;
pub(crate) mod observed;
pub(crate) mod opens;
pub(crate) mod options;
mod queue;
pub(crate) mod readahead;
pub(crate) mod recovery;
mod retransmission;
pub(crate) mod rule;
pub(crate) mod sizes;
mod slow_operation;
pub(crate) mod state_tests;

const DETECTORS: [Detector; 20] = [
    attributes::DETECTOR,
    cached::DETECTOR,
    commits::DETECTOR,
    connections::RECONNECTS,
    connections::IMBALANCE,
    delay::DETECTOR,
    errors::DETECTOR,
    opens::DETECTOR,
    options::SOFT,
    options::SYNCHRONOUS,
    queue::DETECTOR,
    readahead::WASTE,
    readahead::REWRITTEN,
    recovery::DETECTOR,
    retransmission::RETRANSMISSION,
    retransmission::MAJOR_TIMEOUT,
    sizes::OPTIONS,
    sizes::SMALL_READS,
    slow_operation::DETECTOR,
    state_tests::DETECTOR,
];

const COMPARISONS: [Comparison; 2] = [clients::UNEQUAL, clients::SLOW];

pub use self::observed::{Observations, Observed, Reading, between, since_mounted};
use self::rule::{Comparison, Detector};

/// What can be found, by name.
#[cfg(test)]
pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    let of_one = DETECTORS.iter().map(|detector| detector.id);
    of_one.chain(COMPARISONS.iter().map(|comparison| comparison.id))
}

/// Looks for everything that can be found.
pub fn diagnose(observed: &[Observed]) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let setup = Setup::of_mounts();
    for Detector { id, detect } in &DETECTORS {
        let mut clear = !observed.is_empty();
        for one in observed {
            match detect(one) {
                Verdict::Found(finding) => {
                    diagnosis.findings.push(Finding { place: one.place(), ..finding.of(id, Some(&setup)) });
                }
                Verdict::Clear | Verdict::Irrelevant => continue,
                Verdict::Unknown(why) => {
                    let place = one.place();
                    diagnosis.absent.push(Absent { id, place, why });
                }
            }
            clear = false;
        }
        diagnosis.clear.extend(clear.then_some(*id));
    }
    for Comparison { id, compare } in &COMPARISONS {
        let found = compare(observed);
        diagnosis.clear.extend((found.is_empty() && observed.len() > 1).then_some(*id));
        diagnosis.findings.extend(found.into_iter().map(|finding| finding.of(id, Some(&setup))));
    }
    diagnosis.findings.retain(|finding| !finding.is_negligible());
    for finding in &mut diagnosis.findings {
        *finding = Finding { at: None, ..finding.clone().without_nothing() };
    }
    diagnosis.sort();
    diagnosis
}

#[cfg(test)]
mod tests;
