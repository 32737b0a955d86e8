//! States and settings of clients, servers and mounts that cost.

mod checks;
mod clients;
mod grace;
mod mounts;
mod observed;
mod readahead;
mod recovery;
mod tcp_stalls;
mod transfer_size;

pub(super) use self::observed::{asked, observed};
use super::stored::stored;
use super::{Comparison, Detector, Measured};
use crate::diagnosis::Verdict;

/// Whether operations stood still until TCP sent lost segments again.
pub(super) fn stood_still_for_tcp(measured: &Measured<'_>) -> bool {
    matches!((tcp_stalls::DETECTOR.detect)(measured), Verdict::Found(_))
}

/// What is looked for in each workload of each run.
pub(super) const DETECTORS: &[Detector] = &[
    stored!(checks::SHARED_CLIENT_ID),
    stored!(checks::TCP_RETRANSMISSIONS),
    stored!(mounts::RETRANSMISSION),
    stored!(mounts::MAJOR_TIMEOUT),
    grace::DETECTOR,
    recovery::DETECTOR,
    readahead::DETECTOR,
    tcp_stalls::DETECTOR,
    transfer_size::DETECTOR,
    mounts::RECONNECTS,
    mounts::ERRORS,
    mounts::ATTRIBUTES,
    mounts::COMMITS,
    mounts::IMBALANCE,
    mounts::DELAY,
    mounts::SOFT,
    mounts::SYNCHRONOUS,
    mounts::REWRITTEN,
    mounts::TRANSFER_SIZE,
];

/// What is looked for in all runs together.
pub(super) const COMPARISONS: &[Comparison] = &[clients::SLOW, clients::MOUNTS, clients::HOSTS];
