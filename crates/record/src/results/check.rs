//! Validity checks that did not pass, and the numbers behind them.

use serde::{Deserialize, Serialize};

words! {
    /// A validity check.
    CheckKind {
        Corruption = "corruption",
        Errors = "errors",
        FileSystemFull = "file-system-full",
        CachedReads = "cached-reads",
        UnflushedWrites = "unflushed-writes",
        UnstableWrites = "unstable-writes",
        BurstAndFlush = "burst-and-flush",
        GeneratorLimit = "generator-limit",
        CpuLimit = "cpu-limit",
        TooFewOperations = "too-few-operations",
        UnevenFinish = "uneven-finish",
        ClockStep = "clock-step",
        ClockDrift = "clock-drift",
        NoisyHost = "noisy-host",
        TraceStall = "trace-stall",
        NotSteady = "not-steady",
        ClientState = "client-state",
        RpcRetransmissions = "rpc-retransmissions",
        RpcTimeouts = "rpc-timeouts",
        Reconnects = "reconnects",
        SlotsExhausted = "slots-exhausted",
        RpcErrors = "rpc-errors",
        EmulatedNetwork = "emulated-network",
        SharedHost = "shared-host",
        UnalignedStart = "unaligned-start",
        ClockBound = "clock-bound",
        AgentClockDrift = "agent-clock-drift",
        LateNetwork = "late-network",
        TcpRetransmissions = "tcp-retransmissions",
        SamplingCost = "sampling-cost",
        SharedClientId = "shared-client-id",
        LostWakeUps = "lost-wake-ups",
        GracePeriod = "grace-period",
        Neighbours = "neighbours",
        ReplayLeftOut = "replay-left-out",
        ReplayLate = "replay-late",
        KernelWarning = "kernel-warning",
        NotInEffect = "not-in-effect",
    }
}

/// How bad a validity check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The number may not mean what it seems to.
    Warning,
    /// The run's numbers must not be used.
    Invalid,
}

/// A validity check that did not pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    pub kind: CheckKind,
    pub severity: Severity,
    /// The workload it is about; `None` = the whole run.
    pub workload: Option<String>,
    /// What is wrong: a sentence with its numbers and names, made by the rule of the kind. What to do about it is no part
    /// of it.
    pub message: String,
    /// The numbers; one that is not known is absent.
    pub evidence: Vec<Evidence>,
}

impl Check {
    /// A number of the evidence.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.evidence.iter().find(|evidence| evidence.name == name).map(|evidence| evidence.value)
    }
}

words! {
    /// The unit of a number that supports a finding.
    EvidenceUnit {
        /// Counts and ratios.
        One = "1",
        Nanoseconds = "ns",
        Milliseconds = "ms",
        Seconds = "s",
        Bytes = "B",
        BytesPerSecond = "B/s",
        PerSecond = "1/s",
    }
}

/// A number that supports a finding or a failed check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Of a check a stable name, `flush_s`; of a finding what it is, and where it stands: ``transmissions − ops of READ``.
    pub name: String,
    /// Its value; over several runs the mean.
    pub value: f64,
    pub unit: EvidenceUnit,
    /// Half width of the 95 % confidence interval of the mean over runs; `None` for one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
    /// Runs that it is over.
    pub runs: usize,
}

impl Evidence {
    pub fn new(name: impl Into<String>, value: f64, unit: EvidenceUnit) -> Self {
        Self { name: name.into(), value, unit, half_width: None, runs: 1 }
    }

    /// A count or a ratio.
    pub fn number(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::One)
    }

    pub fn nanoseconds(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::Nanoseconds)
    }

    pub fn milliseconds(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::Milliseconds)
    }

    pub fn seconds(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::Seconds)
    }

    pub fn bytes(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::Bytes)
    }

    pub fn bytes_per_second(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::BytesPerSecond)
    }

    pub fn per_second(name: impl Into<String>, value: f64) -> Self {
        Self::new(name, value, EvidenceUnit::PerSecond)
    }
}
