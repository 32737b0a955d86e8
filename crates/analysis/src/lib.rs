//! What the results of studies say, from stored records to every number that is shown.
//!
//! Pure: no input or output, no clock, and randomness only from seeds that are arguments. From the bottom up:
//! [`responses`] and [`derived`] take the numbers of one run from its recordings, [`schedule`] decides which run is next,
//! [`experiment`] estimates effects, [`load`] and [`adaptive`] decide which runs to add, [`analyze`] summarises a study,
//! and [`compare`] compares studies.

pub mod adaptive;
pub mod compare;
pub mod derived;
mod durability;
pub mod experiment;
pub mod headline;
pub mod load;
pub mod responses;
mod runs;
pub mod schedule;
mod starts;
mod summary;

pub use durability::durability;
pub use runs::{Estimate, counts, is_invalid};
pub use starts::{Starts, starts};
pub use summary::{
    Analysis, AnalysisError, ClusterSummary, ContrastSummary, Effects, FactorSummary, FailedRun,
    FairnessSummary, LatencyKind, LatencySummary, LevelComparison, LevelSummary, LevelsSummary, MemberRate,
    Percentile, ResponseSummary, RpcRowSummary, RpcSummary, RunValue, TreatmentSummary, WarningSummary,
    analyze, analyze_with, table,
};
