//! Phenomena with a name: what papers found, and when it is there.

use crate::results::rule::{Comparison, Detector};

mod bufferbloat;
mod clients;
mod counted;
mod course;
mod drift;
mod fast_server;
mod first_call;
mod grant;
mod hash_cast;
mod journal;
mod levels;
mod lock_cache;
mod mtu;
mod opens;
mod readahead;
mod recall;
mod rehash;
mod scaling;
mod server_threads;
mod single_pages;
mod slots;
mod small_calls;
mod spikes;
pub(super) mod standstill;
mod stops;
mod tools;
mod transmit_queues;
mod versions;
mod winners;

pub(super) use course::{divide, lost_in_stretches};

/// What is looked for in each workload of each run.
pub(super) const DETECTORS: &[Detector] = &[
    bufferbloat::DETECTOR,
    course::PAUSES,
    course::STRETCHES,
    drift::DETECTOR,
    first_call::DETECTOR,
    grant::DETECTOR,
    journal::DETECTOR,
    lock_cache::DETECTOR,
    opens::DETECTOR,
    readahead::DETECTOR,
    recall::DETECTOR,
    rehash::DETECTOR,
    single_pages::DETECTOR,
    small_calls::DETECTOR,
    spikes::DETECTOR,
    standstill::DETECTOR,
    winners::DETECTOR,
];

/// What is looked for in all runs together.
pub(super) const COMPARISONS: &[Comparison] = &[
    fast_server::COMPARISON,
    hash_cast::COMPARISON,
    mtu::COMPARISON,
    scaling::CLIENTS,
    scaling::FILE_SIZE,
    server_threads::COMPARISON,
    slots::COMPARISON,
    versions::COMPARISON,
];

#[cfg(test)]
#[path = "phenomena/testing.rs"]
pub(crate) mod made;
