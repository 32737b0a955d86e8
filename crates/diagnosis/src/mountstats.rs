//! Findings from nothing but `/proc/self/mountstats`: of a production client, with one reading or two.
//!
//! With one reading per client the counters are those since each file system was mounted, good and bad times together.
//! With two they are those of the time between, which is what one wants while something is slow.

use crate::diagnosis::{Absent, Diagnosis, Verdict};
use crate::finding::{Finding, Setup};

mod attributes;
mod cached;
mod clients;
mod commits;
mod connections;
mod delay;
mod errors;
pub(crate) mod observed;
mod opens;
mod options;
mod queue;
mod readahead;
mod recovery;
mod retransmission;
pub(crate) mod rule;
mod sizes;
mod slow_operation;

const DETECTORS: [Detector; 19] = [
    attributes::DETECTOR,
    cached::DETECTOR,
    commits::DETECTOR,
    RECONNECTS,
    IMBALANCE,
    delay::DETECTOR,
    errors::DETECTOR,
    opens::DETECTOR,
    SOFT,
    SYNCHRONOUS,
    queue::DETECTOR,
    readahead::WASTE,
    REWRITTEN,
    recovery::DETECTOR,
    RETRANSMISSION,
    MAJOR_TIMEOUT,
    sizes::OPTIONS,
    sizes::SMALL_READS,
    slow_operation::DETECTOR,
];

const COMPARISONS: [Comparison; 2] = [clients::UNEQUAL, clients::SLOW];

// Rules that apply to the clients of a run too.
pub(crate) use self::attributes::DETECTOR as ATTRIBUTES;
pub(crate) use self::clients::OWN as OWN_OPTIONS;
pub(crate) use self::commits::DETECTOR as COMMITS;
pub(crate) use self::connections::{IMBALANCE, RECONNECTS};
pub(crate) use self::delay::DETECTOR as DELAY;
pub(crate) use self::errors::DETECTOR as ERRORS;
pub use self::observed::{Observations, Observed, Reading, between, since_mounted};
pub(crate) use self::opens::{AROUND, LEAST_CALLS as LEAST_OPENING, LEAST_SHARE as LEAST_OF_OPENS};
pub(crate) use self::options::{SOFT, SYNCHRONOUS};
pub(crate) use self::readahead::REWRITTEN;
pub(crate) use self::recovery::CALLS as RECOVERY_CALLS;
pub(crate) use self::retransmission::{MAJOR_TIMEOUT, RETRANSMISSION};
use self::rule::{Comparison, Detector};
pub(crate) use self::sizes::OPTIONS as TRANSFER_SIZE;

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
