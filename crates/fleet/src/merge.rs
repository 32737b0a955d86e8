//! The recordings of the processes of a run as one. Merging is associative: processes can be merged in groups, and the
//! groups then, with the same result (see [`Gathered`]).

use benchmaster_record::model::Workload;
use benchmaster_record::recording::Recording;
use benchmaster_workload::conduct::Share;

use crate::clock::Relation;
use crate::perform::{Observations, Performed};

pub(crate) mod gathered;
mod rpc;
mod series;
#[cfg(test)]
mod tests;

pub use self::gathered::Gathered;

/// What one process brought home, and who it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its name in the study.
    pub name: String,
    pub host: String,
    pub pid: u32,
    pub share: Share,
    /// Its clock beside the controller's.
    pub relation: Relation,
    /// What it did.
    pub performed: Performed,
}

/// What a process without clients brought home.
#[derive(Debug, Clone, PartialEq)]
pub struct Observer {
    /// Its name in the study.
    pub name: String,
    pub host: String,
    pub pid: u32,
    /// Its clock beside the controller's.
    pub relation: Relation,
    /// What it saw.
    pub observations: Observations,
}

/// Why recordings cannot be one.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There are none.
    #[error("no agent recorded anything")]
    Nothing,
    #[error(
        "agent `{agent}` recorded different data than the first one ({what}): the agents differ in version"
    )]
    Different { agent: String, what: String },
    /// A histogram cannot be read.
    #[error("agent `{agent}`: {source}")]
    Histogram { agent: String, source: benchmaster_record::recording::HistogramError },
}

/// The number of workers of all clients before each share: what the worker numbers of a process's trace are to be
/// increased by.
pub fn first_workers(workload: &Workload, shares: &[Share]) -> Vec<u32> {
    let of_client = |client: u32| -> u32 {
        let groups = workload.groups.iter();
        let own = groups.filter(|group| group.clients.is_none_or(|clients| clients.contains(client)));
        own.map(|group| group.workers).sum()
    };
    let most = shares.iter().map(|share| share.first).max().unwrap_or(0);
    let mut sum = 0;
    let mut before = vec![0];
    before.extend((0..most).map(|client| {
        sum += of_client(client);
        sum
    }));
    shares.iter().map(|share| before.get(share.first as usize).copied().unwrap_or(sum)).collect()
}

/// Makes one recording of those of all processes, of which the measured phase began at `start_ns` of the controller's
/// clock. `stagger_ns` lies between the starts of one client and the next.
///
/// Counts and histograms are added, intervals by their number; times of a phase span those of all.
///
/// # Errors
/// See [`MergeError`].
pub fn merge(
    workload: &Workload,
    parts: Vec<Part>,
    observers: Vec<Observer>,
    start_ns: i64,
    stagger_ns: u64,
) -> Result<Recording, MergeError> {
    let parts = parts.into_iter().map(|part| {
        let Part { name, host, pid, share, relation, performed } = part;
        Gathered::of(name, host, pid, share, performed).carried(&relation, start_ns)
    });
    let mut all = Gathered::merge(workload, parts.collect())?;
    for observer in observers {
        all.observe(observer, start_ns);
    }
    Ok(all.finish(stagger_ns))
}
