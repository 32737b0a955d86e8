//! NFS mounts, live: what the kernel's client counted between two readings of `mountstats`.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use benchmaster_telemetry::mountstats::{ChangeError, Mountstats, NfsMount};

use crate::draw::remember;

mod interval;
mod lines;
pub mod prometheus;
mod view;

pub use interval::{Connections, Interval, OperationRates};
pub use lines::{Snapshot, lines};
pub use view::MountsView;

/// All mounts that are watched, and what they did lately.
#[derive(Debug, Default)]
pub struct Mounts {
    mounts: Vec<Watched>,
    read: Option<Duration>,
    interval: Option<Duration>,
}

/// A mount.
#[derive(Debug)]
pub struct Watched {
    /// The latest reading.
    pub stats: NfsMount,
    /// What was counted since the one before; `None` after the first, and when they cannot be compared.
    pub interval: Option<Interval>,
    /// Why two readings could not be compared.
    pub note: Option<String>,
    history: History,
}

/// Rates of the intervals so far, oldest first.
#[derive(Debug, Default)]
struct History {
    operations: VecDeque<f64>,
    bytes: VecDeque<f64>,
    rtt: VecDeque<f64>,
    by_operation: HashMap<String, VecDeque<f64>>,
}

impl Mounts {
    /// Takes a reading. `at` is the time of a clock that does not jump.
    pub fn take(&mut self, stats: Mountstats, at: Duration) {
        self.interval = self.read.and_then(|before| at.checked_sub(before)).filter(|time| !time.is_zero());
        self.read = Some(at);
        let mut before = std::mem::take(&mut self.mounts);
        for stats in stats.mounts {
            // Several mounts on one point keep their order.
            let same = |watched: &Watched| is_same(&watched.stats, &stats);
            let earlier = before.iter().position(same).map(|at| before.remove(at));
            self.mounts.push(match (earlier, self.interval) {
                (Some(earlier), Some(time)) => earlier.next(stats, time),
                _ => Watched { stats, interval: None, note: None, history: History::default() },
            });
        }
    }

    /// The mounts, in the kernel's order.
    pub fn mounts(&self) -> &[Watched] {
        &self.mounts
    }

    /// Time between the latest two readings.
    pub fn interval(&self) -> Option<Duration> {
        self.interval
    }
}

fn is_same(one: &NfsMount, other: &NfsMount) -> bool {
    (&one.device, &one.mount_point, &one.file_system)
        == (&other.device, &other.mount_point, &other.file_system)
}

impl Watched {
    fn next(self, stats: NfsMount, time: Duration) -> Self {
        let mut history = self.history;
        match Interval::between(&self.stats, &stats, time) {
            Ok(interval) => {
                history.add(&interval);
                Self { stats, interval: Some(interval), note: None, history }
            }
            Err(error) => {
                let note = match error {
                    ChangeError::Backwards { .. } => "its counters went back: it was mounted again".into(),
                    error => error.to_string(),
                };
                Self { stats, interval: None, note: Some(note), history: History::default() }
            }
        }
    }

    /// Version of NFS: `4.1`, or as much as the mount tells.
    pub fn version(&self) -> &str {
        version(&self.stats)
    }
}

fn version(mount: &NfsMount) -> &str {
    mount.option("vers").unwrap_or(if mount.file_system == "nfs4" { "4" } else { "?" })
}

impl History {
    fn add(&mut self, interval: &Interval) {
        let total = &interval.total;
        remember(&mut self.operations, total.ops_per_s);
        remember(&mut self.bytes, total.sent_bytes_per_s + total.received_bytes_per_s);
        remember(&mut self.rtt, total.rtt_ms.unwrap_or(0.0));
        for operation in &interval.operations {
            // An operation that was never used has no history.
            if operation.ops > 0 || self.by_operation.contains_key(&operation.name) {
                remember(self.by_operation.entry(operation.name.clone()).or_default(), operation.ops_per_s);
            }
        }
    }
}

#[cfg(test)]
mod tests;
