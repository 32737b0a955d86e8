//! What nearly every rule uses.

pub(crate) use benchmaster_record::model::OperationKind;
pub(crate) use benchmaster_record::nfs::NfsVersion;
pub(crate) use benchmaster_record::phase::Phase;
pub(crate) use benchmaster_record::recording::{Recording, RpcPhase, RpcRow, RpcSource, SeriesRecording};
pub(crate) use benchmaster_record::results::{Check, CheckKind, RunRecord, Severity, StudyResults};

pub(crate) use crate::diagnosis::Verdict;
pub(crate) use crate::explanation::case;
pub(crate) use crate::finding::{
    At, AtTreatment, Confidence, CostOf, Evidence, Finding, Need, Plot, Remedy, Test, TestInterval,
};
pub(crate) use crate::measured::Measured;
pub(crate) use crate::results::rule::{Compared, Comparison, Detector, Whole};
pub(crate) use crate::validity::rule::{
    Consequence, Could, Failed, Follows, Rule, Subject, failed, stored, when,
};
pub(crate) use crate::words::{percent, plural, rate, share, size, time};
