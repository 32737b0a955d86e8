//! States and settings of clients, servers and mounts that cost.

mod clients;
pub(crate) mod grace;
mod mounts;
pub(super) mod observed;
mod readahead;
mod recovery;
pub(crate) mod rpc;
pub(super) mod tcp_stalls;
mod transfer_size;

use crate::results::rule::{Comparison, Detector};

/// What is looked for in each workload of each run.
pub(super) const DETECTORS: &[Detector] = &[
    recovery::DETECTOR,
    readahead::DETECTOR,
    tcp_stalls::DETECTOR,
    transfer_size::DETECTOR,
    mounts::ATTRIBUTES,
    mounts::COMMITS,
    mounts::IMBALANCE,
    mounts::DELAY,
    mounts::STATE_TESTS,
    mounts::SOFT,
    mounts::SYNCHRONOUS,
    mounts::REWRITTEN,
    mounts::TRANSFER_SIZE,
];

/// What is looked for in all runs together.
pub(super) const COMPARISONS: &[Comparison] = &[clients::SLOW, clients::MOUNTS, clients::HOSTS];
