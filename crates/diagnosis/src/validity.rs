//! Validity checks of one workload of one run: does the number mean what it seems to mean?
//!
//! Each kind of check is one `Rule`: a function of what was recorded, which returns typed evidence and a sentence
//! with the numbers; and the finding that follows once the run is stored. What to do stands with the explanation, unless it
//! depends on what the check knows. A rule whose finding a detector makes stands in the detector's file.

mod burst;
mod clocks;
mod course;
pub(crate) mod data;
mod effect;
mod host;
mod lab;
pub mod machines;
mod network;
mod replay;
pub(crate) mod rule;
mod stable;

use benchmaster_record::results::{Check, CheckKind};

pub use self::lab::kernel_warning;
use self::rule::Rule;
pub use self::rule::Subject;
use crate::finding::Remedy;
use crate::results::conditions::{grace, rpc};
use crate::results::doubts::{noisy_host, not_steady};
use crate::results::limits::{client_cpu, generator, slots};

/// All rules, in the order in which checks of equal severity are listed.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    CheckKind::ALL.iter().map(|kind| rule(*kind))
}

pub(crate) fn rule(kind: CheckKind) -> &'static Rule {
    match kind {
        CheckKind::Corruption => &data::CORRUPTION,
        CheckKind::Errors => &data::ERRORS,
        CheckKind::FileSystemFull => &data::FILE_SYSTEM_FULL,
        CheckKind::CachedReads => &data::CACHED_READS,
        CheckKind::UnflushedWrites => &data::UNFLUSHED_WRITES,
        CheckKind::UnstableWrites => &stable::UNSTABLE_WRITES,
        CheckKind::BurstAndFlush => &burst::BURST_AND_FLUSH,
        CheckKind::GeneratorLimit => &generator::RULE,
        CheckKind::CpuLimit => &client_cpu::RULE,
        CheckKind::TooFewOperations => &course::TOO_FEW_OPERATIONS,
        CheckKind::UnevenFinish => &course::UNEVEN_FINISH,
        CheckKind::ClockStep => &clocks::CLOCK_STEP,
        CheckKind::ClockDrift => &clocks::CLOCK_DRIFT,
        CheckKind::NoisyHost => &noisy_host::RULE,
        CheckKind::TraceStall => &course::TRACE_STALL,
        CheckKind::NotSteady => &not_steady::RULE,
        CheckKind::ClientState => &rpc::CLIENT_STATE,
        CheckKind::RpcRetransmissions => &rpc::RETRANSMISSIONS,
        CheckKind::RpcTimeouts => &rpc::TIMEOUTS,
        CheckKind::Reconnects => &rpc::RECONNECTS,
        CheckKind::SlotsExhausted => &slots::RULE,
        CheckKind::RpcErrors => &rpc::ERRORS,
        CheckKind::EmulatedNetwork => &network::EMULATED_NETWORK,
        CheckKind::SharedHost => &host::SHARED_HOST,
        CheckKind::UnalignedStart => &clocks::UNALIGNED_START,
        CheckKind::ClockBound => &clocks::CLOCK_BOUND,
        CheckKind::AgentClockDrift => &clocks::AGENT_CLOCK_DRIFT,
        CheckKind::LateNetwork => &network::LATE_NETWORK,
        CheckKind::TcpRetransmissions => &network::TCP_RETRANSMISSIONS,
        CheckKind::SamplingCost => &host::SAMPLING_COST,
        CheckKind::SharedClientId => &lab::SHARED_CLIENT_ID,
        CheckKind::LostWakeUps => &lab::LOST_WAKE_UPS,
        CheckKind::GracePeriod => &grace::RULE,
        CheckKind::Neighbours => &lab::NEIGHBOURS,
        CheckKind::KernelWarning => &lab::KERNEL_WARNING,
        CheckKind::ReplayLeftOut => &replay::LEFT_OUT,
        CheckKind::NotInEffect => &effect::NOT_IN_EFFECT,
        CheckKind::ReplayLate => &replay::LATE,
    }
}

/// All checks that do not pass, the worst first.
pub fn check(subject: Subject<'_>) -> Vec<Check> {
    let mut found: Vec<Check> = rules().filter_map(|rule| (rule.check)(subject)).collect();
    found.sort_by_key(|check| std::cmp::Reverse(check.severity));
    found
}

/// What to do about a check that did not pass.
pub fn remedy(check: &Check) -> Remedy {
    rule(check.kind).advice(check)
}

#[cfg(test)]
mod tests;
