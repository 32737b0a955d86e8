//! States and settings of clients, servers and mounts that cost.

mod checks;
mod clients;
mod grace;
mod mounts;
pub(super) mod observed;
mod readahead;
mod recovery;
pub(super) mod tcp_stalls;
mod transfer_size;

use super::stored::stored;
use crate::results::rule::{Comparison, Detector};

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
