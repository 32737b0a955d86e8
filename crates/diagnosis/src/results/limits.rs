//! What kept a result from being better.

pub(super) mod choice;
pub(crate) mod client_cpu;
mod delegation_wait;
mod emulated_delay;
pub(crate) mod generator;
mod host_processing;
mod in_turn;
pub(super) mod laws;
mod lock_wait;
pub(super) mod network_bandwidth;
mod packet_loss;
mod server_cpu;
mod server_disk;
pub(super) mod server_journal;
mod server_service_time;
mod server_threads;
pub(crate) mod slots;
mod tcp_window;
mod think_time;
mod tls;
pub(super) mod uneven;

use crate::results::rule::{Comparison, Detector};

/// What is looked for in each workload of each run.
pub(super) const DETECTORS: &[Detector] = &[
    tcp_window::DETECTOR,
    network_bandwidth::DETECTOR,
    packet_loss::DETECTOR,
    server_threads::DETECTOR,
    server_cpu::DETECTOR,
    server_disk::DETECTOR,
    server_journal::DETECTOR,
    lock_wait::DETECTOR,
    delegation_wait::DETECTOR,
    emulated_delay::DETECTOR,
    emulated_delay::DISTANCE,
    in_turn::DETECTOR,
    server_service_time::DETECTOR,
    host_processing::DETECTOR,
    think_time::DETECTOR,
    tls::DETECTOR,
    uneven::DETECTOR,
    laws::DETECTOR,
];

/// What is looked for in all runs together.
pub(super) const COMPARISONS: &[Comparison] = &[];
