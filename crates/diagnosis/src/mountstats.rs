//! Findings from nothing but `/proc/self/mountstats`: of a production client, with one reading or two.
//!
//! With one reading per client the counters are those since each file system was mounted, good and bad times together.
//! With two they are those of the time between, which is what one wants while something is slow.

use benchmaster_telemetry::mountstats::{
    Change, ChangeError, Mountstats, NfsMount, Numbers, Operation, Transport,
};

use crate::diagnosis::{Absent, Diagnosis, Verdict};
use crate::explanation::Explanation;
use crate::finding::Finding;
use crate::words::{percent, share, size};

mod attributes;
mod cached;
mod clients;
mod commits;
mod connections;
mod delay;
mod errors;
mod opens;
mod options;
mod queue;
mod readahead;
mod recovery;
mod retransmission;
mod sizes;

/// What one client counted.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The client's name.
    pub client: String,
    /// The text of its `mountstats`, parsed.
    pub mountstats: Mountstats,
}

/// One mount of one client over a time.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The client's name.
    pub client: String,
    /// The mount as it was last.
    pub mount: NfsMount,
    /// What was counted.
    pub counted: Change,
    /// Over how many seconds.
    pub seconds: u64,
    /// Whether since it was mounted, not between two readings.
    pub since_mount: bool,
    /// Attributes and permissions that applications asked for themselves, as far as that is known.
    pub asked_for: u64,
}

/// What there is to look at.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// Mounts with calls.
    pub observed: Vec<Observed>,
    /// Mounts that cannot be looked at, and why.
    pub left_out: Vec<String>,
}

/// The mounts of all clients since they were mounted. Several mounts of one file system share their counters; the first is
/// taken.
pub fn since_mounted(readings: Vec<Reading>) -> Observations {
    let mut observations = Observations::default();
    for Reading { client, mountstats } in readings {
        for mount in distinct(mountstats.mounts) {
            observations.add(Observed::since_mounted(client.clone(), mount));
        }
    }
    observations
}

/// The mounts of all clients between two readings of each, in the same order.
///
/// # Errors
/// Where a mount of the later readings went back: it was mounted again meanwhile.
pub fn between(readings: Vec<(Reading, Reading)>) -> Result<Observations, ChangeError> {
    let mut observations = Observations::default();
    for (earlier, Reading { client, mountstats }) in readings {
        for mount in distinct(mountstats.mounts) {
            let same = |other: &&NfsMount| {
                (&other.device, &other.mount_point) == (&mount.device, &mount.mount_point)
            };
            let Some(before) = earlier.mountstats.mounts.iter().find(same) else {
                observations.left_out.push(format!("{client}, {mount}: it is not in the earlier reading"));
                continue;
            };
            let counted = mount.since(before)?;
            let seconds = mount.age.saturating_sub(before.age);
            observations.add(Observed {
                client: client.clone(),
                mount,
                counted,
                seconds,
                since_mount: false,
                asked_for: 0,
            });
        }
    }
    Ok(observations)
}

/// One mount of each file system.
fn distinct(mounts: Vec<NfsMount>) -> Vec<NfsMount> {
    let mut distinct: Vec<NfsMount> = Vec::new();
    for mount in mounts {
        let same = |other: &NfsMount| {
            (&other.device, other.age, &other.operations) == (&mount.device, mount.age, &mount.operations)
        };
        if !distinct.iter().any(same) {
            distinct.push(mount);
        }
    }
    distinct
}

impl Observations {
    fn add(&mut self, observed: Observed) {
        match observed.calls() {
            0 => self.left_out.push(format!("{}: it made no calls", observed.place())),
            _ => self.observed.push(observed),
        }
    }
}

/// Looks for one condition.
pub(crate) struct Detector {
    pub(crate) explanation: &'static Explanation,
    pub(crate) detect: fn(&Observed) -> Verdict,
}

/// Looks for one condition in all mounts together.
struct Comparison {
    explanation: &'static Explanation,
    compare: fn(&[Observed]) -> Vec<Finding>,
}

const DETECTORS: [Detector; 18] = [
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
];

const COMPARISONS: [Comparison; 2] = [clients::UNEQUAL, clients::SLOW];

/// What can be found.
// What is told of the clients of a run as well.
pub(crate) use self::attributes::DETECTOR as ATTRIBUTES;
pub(crate) use self::cached::EXPLANATION as CACHED_READS;
pub(crate) use self::clients::{OWN as OWN_OPTIONS, SLOW_CLIENT, UNEQUAL_MOUNTS};
pub(crate) use self::commits::DETECTOR as COMMITS;
pub(crate) use self::connections::{IMBALANCE, RECONNECTS};
pub(crate) use self::delay::DETECTOR as DELAY;
pub(crate) use self::errors::DETECTOR as ERRORS;
pub(crate) use self::opens::{
    AROUND, EXPLANATION as OPENS, LEAST_CALLS as LEAST_OPENING, LEAST_SHARE as LEAST_OF_OPENS,
};
pub(crate) use self::options::{SOFT, SYNCHRONOUS};
pub(crate) use self::readahead::{READAHEAD, REWRITTEN};
pub(crate) use self::recovery::{CALLS as RECOVERY_CALLS, DETECTOR as RECOVERY, remedy as after_recovery};
pub(crate) use self::retransmission::{MAJOR_TIMEOUT, RETRANSMISSION};
pub(crate) use self::sizes::OPTIONS as TRANSFER_SIZE;

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
    diagnosis.sort();
    diagnosis
}

impl Observed {
    /// All that a mount counted.
    pub(crate) fn since_mounted(client: String, mount: NfsMount) -> Self {
        let counted = Change {
            operations: mount.operations.clone(),
            events: mount.events.clone(),
            bytes: mount.bytes.clone(),
            transports: mount.transports.clone(),
        };
        let seconds = mount.age;
        Self { client, mount, counted, seconds, since_mount: true, asked_for: 0 }
    }

    /// Client and mount.
    pub fn place(&self) -> String {
        format!("{}, {}", self.client, self.mount)
    }

    /// Calls of all operations.
    pub fn calls(&self) -> u64 {
        self.sum(|operation| operation.ops)
    }

    /// An operation that was called.
    fn operation(&self, name: &str) -> Option<&Operation> {
        self.counted.operations.iter().find(|operation| operation.name == name && operation.ops > 0)
    }

    fn ops(&self, name: &str) -> u64 {
        self.operation(name).map_or(0, |operation| operation.ops)
    }

    /// Operations that were called.
    fn called(&self) -> impl Iterator<Item = &Operation> {
        self.counted.operations.iter().filter(|operation| operation.ops > 0)
    }

    fn sum(&self, of: impl Fn(&Operation) -> u64) -> u64 {
        self.counted.operations.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Seconds that calls took, summed over calls.
    fn call_seconds(&self) -> f64 {
        self.sum(|operation| operation.execute_ms) as f64 / 1e3
    }

    fn is_v4(&self) -> bool {
        self.mount.rpc.as_ref().is_some_and(|rpc| rpc.version == 4) || self.mount.file_system == "nfs4"
    }

    fn event(&self, name: &str) -> Option<u64> {
        number(&self.counted.events, name)
    }

    fn bytes(&self, name: &str) -> Option<u64> {
        number(&self.counted.bytes, name)
    }

    /// Bytes that applications read by calls, if the kernel counts them.
    fn application_read(&self) -> Option<u64> {
        Some(self.bytes("normal_read")? + self.bytes("direct_read")?)
    }

    /// The same of bytes written.
    fn application_written(&self) -> Option<u64> {
        Some(self.bytes("normal_written")? + self.bytes("direct_written")?)
    }

    /// A number of every connection that has it.
    fn of_connections<'a>(&'a self, name: &'a str) -> impl Iterator<Item = u64> + 'a {
        self.counted
            .transports
            .iter()
            .filter_map(move |transport: &Transport| number(&transport.numbers, name))
    }

    /// In words, over what time was counted.
    fn period(&self) -> String {
        let time = match self.seconds {
            seconds if seconds < 120 => format!("{seconds} s"),
            seconds if seconds < 7200 => format!("{} min", seconds / 60),
            seconds if seconds < 172_800 => format!("{} h", seconds / 3600),
            seconds => format!("{} days", seconds / 86_400),
        };
        match self.since_mount {
            true => format!("in the {time} since it was mounted"),
            false => format!("in {time}"),
        }
    }
}

fn number(numbers: &Numbers, name: &str) -> Option<u64> {
    numbers.get(name).and_then(|value| u64::try_from(value).ok())
}

#[cfg(test)]
mod tests;
