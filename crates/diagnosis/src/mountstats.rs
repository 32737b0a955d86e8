//! Findings from nothing but `/proc/self/mountstats`: of a production client, with one reading or two.
//!
//! With one reading per client the counters are those since each file system was mounted, good and bad times together.
//! With two they are those of the time between, which is what one wants while something is slow.

use crate::diagnosis::{Absent, Diagnosis, Verdict};
use crate::explanation::Explanation;
use crate::remedy;

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
pub(crate) use self::cached::EXPLANATION as CACHED_READS;
pub(crate) use self::clients::{OWN as OWN_OPTIONS, SLOW_CLIENT, UNEQUAL_MOUNTS};
pub(crate) use self::commits::DETECTOR as COMMITS;
pub(crate) use self::connections::{IMBALANCE, RECONNECTS};
pub(crate) use self::delay::DETECTOR as DELAY;
pub(crate) use self::errors::{DETECTOR as ERRORS, trace_errors};
pub use self::observed::{Observations, Observed, Reading, between, since_mounted};
pub(crate) use self::opens::{
    AROUND, EXPLANATION as OPENS, LEAST_CALLS as LEAST_OPENING, LEAST_SHARE as LEAST_OF_OPENS,
};
pub(crate) use self::options::{SOFT, SYNCHRONOUS};
pub(crate) use self::readahead::{READAHEAD, REWRITTEN};
pub(crate) use self::recovery::{CALLS as RECOVERY_CALLS, DETECTOR as RECOVERY, remedy as after_recovery};
pub(crate) use self::retransmission::{MAJOR_TIMEOUT, RETRANSMISSION};
use self::rule::{Comparison, Detector};
pub(crate) use self::sizes::OPTIONS as TRANSFER_SIZE;

/// What can be found.
pub(crate) fn explanations() -> impl Iterator<Item = &'static Explanation> {
    let of_one = DETECTORS.iter().map(|detector| detector.explanation);
    of_one.chain(COMPARISONS.iter().map(|comparison| comparison.explanation))
}

/// Looks for everything that can be found.
pub fn diagnose(observed: &[Observed]) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for Detector { explanation, detect } in &DETECTORS {
        let mut clear = !observed.is_empty();
        for one in observed {
            match detect(one) {
                Verdict::Found(finding) => diagnosis.findings.push(finding),
                Verdict::Clear | Verdict::Irrelevant => continue,
                Verdict::Unknown(why) => {
                    let place = one.place();
                    diagnosis.absent.push(Absent { id: explanation.id, place, why });
                }
            }
            clear = false;
        }
        diagnosis.clear.extend(clear.then_some(explanation.id));
    }
    for Comparison { explanation, compare } in &COMPARISONS {
        let found = compare(observed);
        diagnosis.clear.extend((found.is_empty() && observed.len() > 1).then_some(explanation.id));
        diagnosis.findings.extend(found);
    }
    diagnosis.findings.retain(|finding| !finding.is_negligible());
    for finding in &mut diagnosis.findings {
        *finding = finding.clone().without_nothing();
        finding.remedy = finding.remedy.clone().fit(&remedy::Setup::of_mounts());
    }
    diagnosis.sort();
    diagnosis
}

#[cfg(test)]
mod tests;
